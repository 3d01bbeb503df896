"""The stored state: keyspaces, tables, families, rows, columns, cells. Dictionaries and lists only.

Nothing is kept sorted but the versions of a column (newest first); every read sorts what it needs.
A write works on a copy of its row, and `Table.commit` puts the copy in, so that a refused command
leaves nothing behind.
"""

import re
from collections import namedtuple

from . import retention
from .indexes import entry_values, is_too_large
from .orders import Order
from .refusals import Refused

Cell = namedtuple('Cell', 'timestamp type value expiry')
NAME = re.compile(rb'[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z')
ROW_KEY_BYTES_MAX = 64 * 1024
QUALIFIER_BYTES_MAX = 16 * 1024
FAMILIES_MAX = 256


class Family:
    def __init__(self, name):
        self.name = name
        self.type = None        # of columns that have none of their own
        self.columns = {}       # COLUMN: ranks -> (qualifier, type)
        self.order = Order.parse(b'bytes')
        self.versions = None
        self.ttl = None
        self.gc = None
        self.group = b'default'
        self.fold = None        # sum, min, max, hll
        self.bucket = 0         # microseconds
        self.compress = b'none'  # how values are kept, which nobody sees

    def policy(self):
        if self.gc is not None:
            return self.gc
        return retention.simple_policy(self.versions, self.ttl)

    def bucket_of(self, timestamp):
        return timestamp - timestamp % self.bucket if self.bucket else timestamp

    def type_of(self, ranks):
        """The declared type of a column."""
        return self.columns[ranks][1] if ranks in self.columns else self.type

    def type_of_text(self, qualifier):
        """The same by its text; that of the family where it cannot be one."""
        try:
            return self.type_of(self.order.read(qualifier)[0])
        except Refused:
            return self.type

    def copy(self):
        other = Family(self.name)
        other.__dict__.update(self.__dict__)
        other.columns = dict(self.columns)
        return other


class Column:
    __slots__ = ('qualifier', 'cells')

    def __init__(self, qualifier, cells):
        self.qualifier = qualifier
        self.cells = cells


class Row:
    """`columns` maps (family name, ranks of the qualifier) to a Column."""

    __slots__ = ('ranks', 'key', 'columns')

    def __init__(self, ranks, key):
        self.ranks = ranks
        self.key = key
        self.columns = {}

    def copy(self):
        other = Row(self.ranks, self.key)
        other.columns = {place: Column(column.qualifier, list(column.cells))
                         for place, column in self.columns.items()}
        return other


class Table:
    def __init__(self, space, name, order):
        self.space = space
        self.name = name
        self.order = order
        self.families = {}
        self.indexes = {}
        self.rows = {}
        self.record_max = 0
        self.serial = object()  # of another table that has the same name

    def copy(self):
        other = Table(self.space, self.name, self.order)
        other.families = {name: family.copy() for name, family in self.families.items()}
        other.indexes = {name: index.copy() for name, index in self.indexes.items()}
        other.rows = {ranks: row.copy() for ranks, row in self.rows.items()}
        other.record_max = self.record_max
        other.serial = self.serial
        return other

    # Names and keys, with the refusals that they may meet.

    def family(self, name):
        if name not in self.families:
            raise Refused('NOFAMILY')
        return self.families[name]

    def row_key(self, text):
        """(ranks, canonical text)"""
        if len(text) > ROW_KEY_BYTES_MAX:
            raise Refused('TOOLARGE')
        if not text:
            raise Refused('BADKEY')
        return self.order.read(text)

    def qualifier(self, family, text):
        if len(text) > QUALIFIER_BYTES_MAX:
            raise Refused('TOOLARGE')
        return family.order.read(text)

    def column(self, family_name, qualifier):
        """(place, canonical qualifier) of a column."""
        family = self.family(family_name)
        ranks, text = self.qualifier(family, qualifier)
        return (family_name, ranks), text

    # Reading.

    def live(self, row, place, now):
        """The live cells of a column, newest first."""
        column = row.columns.get(place)
        if column is None:
            return []
        return retention.live(self.families[place[0]].policy(), column.cells, now)

    def newest(self, row, place, now):
        cells = self.live(row, place, now) if row is not None else []
        return cells[0] if cells else None

    def row_is_live(self, row, now):
        return row is not None and any(self.live(row, place, now) for place in row.columns)

    def sorted_rows(self, now):
        return [self.rows[ranks] for ranks in sorted(self.rows)
                if self.row_is_live(self.rows[ranks], now)]

    def count_cells(self, now):
        return sum(len(self.live(row, place, now)) for row in self.rows.values()
                   for place in row.columns)

    # Writing.

    def draft(self, ranks, key):
        row = self.rows.get(ranks)
        return row.copy() if row is not None else Row(ranks, key)

    def reclaim(self, row, place, now):
        column = row.columns.get(place)
        if column is not None:
            column.cells = retention.live(self.families[place[0]].policy(), column.cells, now)

    def put(self, row, place, qualifier, cell):
        column = row.columns.setdefault(place, Column(qualifier, []))
        column.cells = [old for old in column.cells if old.timestamp != cell.timestamp]
        column.cells.append(cell)
        column.cells.sort(key=lambda old: -old.timestamp)

    def remove(self, row, place, now, between=None):
        """Deletes a column's versions (those whose timestamp `between` accepts); how many."""
        self.reclaim(row, place, now)
        column = row.columns.get(place)
        if column is None:
            return 0
        kept = [cell for cell in column.cells
                if between is not None and not between(cell.timestamp)]
        count = len(column.cells) - len(kept)
        column.cells = kept
        return count

    def commit(self, row, now):
        """Puts a draft in the place of its row, or refuses it (TOOLARGE, NOTUNIQUE)."""
        for _, index in sorted(self.indexes.items()):
            if index.failed:
                continue
            if is_too_large(self, index, row, now):
                raise Refused('TOOLARGE')
            if not index.unique:
                continue
            old = self.rows.get(row.ranks)
            held = entry_values(self, index, old, now) if old is not None else []
            for mine in entry_values(self, index, row, now):
                if mine in held:
                    continue
                for other in self.rows.values():
                    if other.ranks != row.ranks and mine in entry_values(self, index, other, now):
                        raise Refused('NOTUNIQUE')
        row.columns = {place: column for place, column in row.columns.items() if column.cells}
        if row.columns:
            self.rows[row.ranks] = row
        else:
            self.rows.pop(row.ranks, None)


class Keyspaces:
    """name -> {table name -> Table}; `0`..`15` exist from the start."""

    def __init__(self):
        self.spaces = {b'%d' % number: {} for number in range(16)}

    def copy(self):
        other = Keyspaces()
        other.spaces = {space: {name: table.copy() for name, table in tables.items()}
                        for space, tables in self.spaces.items()}
        return other

    def tables(self, space):
        if space not in self.spaces:
            raise Refused('NOKEYSPACE')
        return self.spaces[space]

    @staticmethod
    def split(name, current):
        """(keyspace, table name) of a table's name as it is written."""
        space, slash, table = name.partition(b'/')
        return (space, table) if slash else (current, name)

    def table(self, name, current):
        space, table = self.split(name, current)
        tables = self.tables(space)
        if table not in tables:
            raise Refused('NOTABLE', "no table '%s' in keyspace '%s'" %
                          (table.decode('latin-1'), space.decode('latin-1')))
        return tables[table]
