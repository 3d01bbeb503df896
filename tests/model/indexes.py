"""Indexes (cellar-model(7), "INDEXES"): what is in one, computed from the table whenever it is asked for."""

from . import orders, retention, values
from .refusals import Refused


ENTRY_BYTES_MAX = 64 * 1024     # of the ON values and the row key
WIDTHS = {'bool': 1, 'u8': 1, 'i8': 1, 'i16': 2, 'u16': 2, 'i32': 4, 'u32': 4, 'f32': 4, 'i64': 8,
          'u64': 8, 'f64': 8, 'uuid': 16}


class OnColumn:
    """A column of an index. `place` is (family, ranks), or (family,) where every qualifier is meant.
    Without `given` (AS), its type is the column's."""

    def __init__(self, place, kind, descending, text, given=True):
        self.given = given
        self.place = place
        self.kind = kind
        self.descending = descending
        self.text = text


class Index:
    def __init__(self, name, on, include, unique):
        self.name = name
        self.on = on
        self.include = include
        self.unique = unique
        self.failed = ()        # the codes of what its scans may meet
        self.serial = object()  # of another one that has the same name

    def copy(self):
        other = Index(self.name, self.on, self.include, self.unique)
        other.failed = self.failed
        other.serial = self.serial
        return other

    def refusal(self):
        return Refused(self.failed[0], alternatives=self.failed[1:])

    def families(self):
        named = {column.place[0] for column in self.on}
        named.update(text.split(b':', 1)[0] for text in self.include)
        return named

    def is_of_qualifiers(self):
        return len(self.on) == 1 and len(self.on[0].place) == 1

    def rank(self, at, value):
        """The value as it is compared in the index."""
        if self.is_of_qualifiers():
            rank = value
            return tuple(orders._backwards(part) for part in rank) if self.on[at].descending else rank
        return orders._backwards(value) if self.on[at].descending else value

    def read(self, at, text, table):
        """A value from text as a search gives it; BADVALUE if it does not fit."""
        column = self.on[at]
        if not self.is_of_qualifiers():
            return values.read(column.kind, text)
        try:
            return table.families[column.place[0]].order.read(text)[0]
        except Refused:
            raise Refused('BADVALUE', alternatives=('BADKEY',)) from None


def entry_values(table, index, row, now):
    """The tuples of values under which `row` stands in the index: none, one, or one a qualifier."""
    if index.is_of_qualifiers():
        family = index.on[0].place[0]
        return [(place[1],) for place in row.columns
                if place[0] == family and table.live(row, place, now)]
    found = []
    for column in index.on:
        cell = table.newest(row, column.place, now)
        if cell is None or cell.type != column.kind:
            return []
        found.append(cell.value)
    if not found and not table.row_is_live(row, now):
        return []
    return [tuple(found)]


def left_out(table, index, now):
    """How many rows have live cells in all ON columns, and no entry since one is of another type."""
    if index.is_of_qualifiers() or not index.on:
        return 0
    rows = [[table.newest(row, column.place, now) for column in index.on] for row in table.rows.values()]
    return sum(all(cells) and any(cell.type != column.kind for cell, column in zip(cells, index.on)) for cells in rows)


def _moments(table, index, row, now):
    """`now`, and when something expires in the ON columns: between them no entry changes."""
    found = {now}
    for column in index.on:
        held = row.columns.get(column.place)
        if held is None:
            continue
        ages = retention.ages(table.families[column.place[0]].policy())
        for cell in held.cells:
            found.update(cell.timestamp + age for age in ages)
            if cell.expiry is not None:
                found.add(cell.expiry)
    return [moment for moment in found if moment >= now]


def _bytes_of(column, value):
    return WIDTHS.get(column.kind) or len(value)


def is_too_large(table, index, row, now):
    """Whether the row has, or comes to have as others expire, an entry that is too large."""
    if index.is_of_qualifiers():
        family = index.on[0].place[0]
        return any(len(column.qualifier) + len(row.key) > ENTRY_BYTES_MAX
                   for place, column in row.columns.items()
                   if place[0] == family and table.live(row, place, now))
    most = len(row.key)
    for column in index.on:
        held = row.columns.get(column.place)
        if held is None or not held.cells:
            return False
        most += max((_bytes_of(column, cell.value) for cell in held.cells
                     if cell.type == column.kind), default=0)
    if not index.on or most <= ENTRY_BYTES_MAX:
        return False
    for moment in _moments(table, index, row, now):
        for held in entry_values(table, index, row, moment):
            if len(row.key) + sum(map(_bytes_of, index.on, held)) > ENTRY_BYTES_MAX:
                return True
    return False


def why_failed(table, index, now):
    """Of an index that cannot be built, what its scans may be refused with; else ()."""
    codes = []
    if any(is_too_large(table, index, row, now) for row in table.rows.values()):
        codes.append('TOOLARGE')
    if index.unique and has_duplicates(table, index, now):
        codes.append('NOTUNIQUE')
    return tuple(codes)


def entries(table, index, now):
    """All entries in index order: (ranks of the values, ranks of the row, values, row)."""
    found = []
    for row in table.rows.values():
        for held in entry_values(table, index, row, now):
            ranks = tuple(index.rank(at, value) for at, value in enumerate(held))
            found.append((ranks, row.ranks, held, row))
    found.sort(key=lambda entry: entry[:2])
    return found


def has_duplicates(table, index, now):
    ranks = [entry[0] for entry in entries(table, index, now)]
    return len(set(ranks)) != len(ranks)


def reply_values(table, index, held, row, protocol):
    """The values of an entry on the wire."""
    if index.is_of_qualifiers():
        return [row.columns[(index.on[0].place[0], held[0])].qualifier]
    # As in keys, -0.0 is 0.0.
    return [values.reply(column.kind, 0.0 if value == 0 and column.kind in values.FLOATS else value,
                         protocol) for column, value in zip(index.on, held)]
