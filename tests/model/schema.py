"""Schema commands (cellar-commands(7), "SCHEMA COMMANDS") and the generic commands that see tables as keys."""

from . import globs, indexes, retention, values
from .orders import Order
from .refusals import Refused
from .resp import ANYTHING, OK, MapWith, Predicate, Simple, as_map
from .tables import FAMILIES_MAX, NAME, QUALIFIER_BYTES_MAX, Cell, Family, Table
from .words import split_column


TYPED_COLUMNS_MAX = 256


def check_name(name):
    if not NAME.match(name):
        raise Refused('ERR')


def _same_set(names):
    def holds(got):
        return isinstance(got, list) and sorted(got) == sorted(names)
    return Predicate('in any order %r' % (names,), holds)


class FamilyOptions:
    """What stands behind a family's name. `altering`: in FAMILY ALTER."""

    NAMES = (b'TYPE', b'ORDER', b'VERSIONS', b'TTL', b'GC', b'GROUP', b'AGGREGATE', b'BUCKET', b'COMPRESS')

    TYPE_NAMES = (b'COLUMN', b'NOCOLUMN', b'CONVERT', b'KEEP')

    def __init__(self, words, altering=False):
        self.given = {}
        self.columns = []       # (qualifier, type or None)
        self.others = None      # of another type: 'keep', 'convert', 'skip'
        while words.keyword() in self.NAMES + self.TYPE_NAMES:
            name = words.next().upper()
            if name in self.TYPE_NAMES:
                self._take_type_word(name, words, altering)
                continue
            if name in self.given:
                raise Refused('ERR')
            self.given[name] = self._read(name, words.next())
        if b'GC' in self.given and (b'VERSIONS' in self.given or b'TTL' in self.given):
            raise Refused('ERR')

        if self.others and not self.says_types():
            raise Refused('ERR')

    def _take_type_word(self, name, words, altering):
        if name == b'COLUMN':
            qualifier = words.next()
            self.columns.append((qualifier, values.read_type(words.next())))
            return
        if not altering:
            raise Refused('ERR')
        if name == b'NOCOLUMN':
            self.columns.append((words.next(), None))
            return
        if self.others is not None:
            raise Refused('ERR')
        self.others = 'keep' if name == b'KEEP' else 'skip' if words.take(b'SKIP') else 'convert'

    def says_types(self):
        return b'TYPE' in self.given or bool(self.columns)

    def empty(self):
        return not self.given and not self.columns

    @staticmethod
    def _read(name, word):
        if name == b'TYPE':
            return None if word.upper() == b'NONE' else values.read_type(word)
        if name == b'ORDER':
            return Order.parse(word)
        if name == b'VERSIONS':
            if word.upper() == b'ALL':
                return None
            count = values.read_integer(word)
            if count is None or count < 1:
                raise Refused('ERR')
            return count
        if name == b'TTL':
            return None if word.upper() == b'NONE' else retention.read_duration(word)
        if name == b'GC':
            return None if word.upper() == b'NONE' else retention.read_policy(word)
        if name == b'AGGREGATE':
            if word.lower() not in (b'sum', b'min', b'max', b'hll'):
                raise Refused('ERR')
            return word.lower().decode()
        if name == b'BUCKET':
            return retention.read_duration(word)
        if name == b'COMPRESS':
            if word.lower() not in (b'lz4', b'zstd', b'none'):
                raise Refused('ERR')
            return word.lower()
        check_name(word)
        return word

    def create(self, name):
        """A new family."""
        made = Family(name)
        made.fold = self.given.get(b'AGGREGATE')
        made.bucket = self.given.get(b'BUCKET', 0)
        self.apply(made)
        if made.fold in ('sum', 'min', 'max'):
            made.type = made.type or 'i64'
        takes = {None: True, 'hll': made.type is None, 'min': made.type != 'bool',
                 'max': made.type != 'bool',
                 'sum': made.type in values.FLOATS or made.type in values.INTEGER_RANGES}
        if not takes[made.fold]:
            raise Refused('ERR')
        self.apply_columns(made)
        return made

    def apply_columns(self, family):
        """COLUMN and NOCOLUMN; the ranks of those that are named."""
        if self.columns and family.fold:
            raise Refused('ERR')
        if len(self.columns) > 2 * TYPED_COLUMNS_MAX:
            raise Refused('TOOLARGE')
        read = []
        for qualifier, _ in self.columns:
            if len(qualifier) > QUALIFIER_BYTES_MAX:
                raise Refused('TOOLARGE')
            read.append(family.order.read(qualifier))
        named = [ranks for ranks, _ in read]
        if any(named.count(ranks) > 1 for ranks in named):
            raise Refused('ERR')
        for (ranks, text), (_, kind) in zip(read, self.columns):
            if kind is not None:
                family.columns[ranks] = (text, kind)
            elif family.columns.pop(ranks, None) is None:
                raise Refused('ERR')
        if len(family.columns) > TYPED_COLUMNS_MAX:
            raise Refused('TOOLARGE')
        return named

    def apply(self, family):
        given = self.given
        family.compress = given.get(b'COMPRESS', family.compress)
        if b'TYPE' in given:
            family.type = given[b'TYPE']
        if b'ORDER' in given:
            family.order = given[b'ORDER']
        if b'GROUP' in given:
            family.group = given[b'GROUP']
        if b'GC' in given:
            family.gc = given[b'GC']
            family.versions = family.ttl = None
        if b'VERSIONS' in given:
            family.versions = given[b'VERSIONS']
            family.gc = None
        if b'TTL' in given:
            family.ttl = given[b'TTL']
            family.gc = None


def table(model, session, words):
    action = words.next().upper()
    if action == b'CREATE':
        return _table_create(model, session, words)
    if action == b'LIST':
        pattern = None
        if words.more():
            if words.next().upper() != b'MATCH':
                raise Refused('ERR')
            pattern = words.next()
        words.end()
        names = sorted(model.keyspaces.tables(session.space))
        return [name for name in names if pattern is None or globs.matches(pattern, name)]
    if action not in (b'DROP', b'TRUNCATE', b'RENAME', b'INFO'):
        raise Refused('ERR')
    name = words.next()
    new = words.next() if action == b'RENAME' else None
    words.end()
    if action == b'RENAME':
        space, target = model.keyspaces.split(new, session.space)
        check_name(target)
    found = model.table(session, name)
    if action == b'INFO':
        return MapWith({b'key': found.order.text(), b'families': sorted(found.families),
                        b'rows': len(found.sorted_rows(model.now)),
                        b'cells': found.count_cells(model.now)})
    if action == b'TRUNCATE':
        found.rows.clear()
    elif action == b'DROP':
        del model.keyspaces.tables(found.space)[found.name]
    else:
        tables = model.keyspaces.tables(space)
        if target in tables:
            raise Refused('BUSYKEY')
        model.touch(found)
        del model.keyspaces.tables(found.space)[found.name]
        found.space, found.name = space, target
        tables[target] = found
    model.touch(found)
    return OK


def _table_create(model, session, words):
    name = words.next()
    order = Order.parse(b'bytes')
    families = []
    seen_key = False
    while words.more():
        word = words.next().upper()
        if word == b'KEY' and not seen_key:
            seen_key = True
            order = Order.parse(words.next(), recno=True)
        elif word == b'FAMILY':
            family = words.next()
            check_name(family)
            families.append((family, FamilyOptions(words)))
        else:
            raise Refused('ERR')
    space, target = model.keyspaces.split(name, session.space)
    check_name(target)
    tables = model.keyspaces.tables(space)
    if target in tables:
        raise Refused('BUSYKEY')
    made = Table(space, target, order)
    if len(families) > FAMILIES_MAX:
        raise Refused('TOOLARGE')
    for family_name, options in families:
        if family_name in made.families:
            raise Refused('BUSYKEY')
        made.families[family_name] = options.create(family_name)
    tables[target] = made
    model.touch(made)
    return OK


def family(model, session, words):
    action = words.next().upper()
    if action not in (b'ADD', b'ALTER', b'DROP', b'INFO'):
        raise Refused('ERR')
    name, family_name = words.next(), words.next()
    options = None
    if action in (b'ADD', b'ALTER'):
        if action == b'ADD':
            check_name(family_name)
        options = FamilyOptions(words, action == b'ALTER')
        if action == b'ALTER' and options.empty():
            raise Refused('ERR')
    words.end()
    found = model.table(session, name)
    if action == b'ADD':
        if family_name in found.families:
            raise Refused('BUSYKEY')
        if len(found.families) >= FAMILIES_MAX:
            raise Refused('TOOLARGE')
        found.families[family_name] = options.create(family_name)
        model.touch(found)
        return OK
    held = found.family(family_name)
    if action == b'INFO':
        cells = sum(len(found.live(row, place, model.now)) for row in found.rows.values()
                    for place in row.columns if place[0] == family_name)
        return MapWith({b'name': family_name, b'type': (held.type or 'none').encode(),
                        b'columns': Predicate('the types of columns', lambda got: [
                            tuple(pair) for pair in as_map(got)] == [
                                (text, kind.encode()) for _, (text, kind) in sorted(held.columns.items())]),
                        b'order': held.order.text(), b'group': held.group, b'cells': cells,
                        b'compress': held.compress,
                        b'aggregate': (held.fold or 'none').encode(),
                        b'bucket': b'%dms' % (held.bucket // 1000) if held.bucket else b'NONE'})
    if action == b'ALTER':
        fixed = {b'ORDER', b'GROUP', b'AGGREGATE', b'BUCKET'} | ({b'TYPE'} if held.fold else set())
        if fixed & set(options.given):
            raise Refused('ERR')
        after = held.copy()
        after.type = options.given.get(b'TYPE', held.type)
        wanted = WantedTypes(after, options, options.apply_columns(after))
        if any(_loses_type(index, held, after) for index in found.indexes.values()):
            raise Refused('ERR')
        if options.says_types():
            wanted.look(found, model.now)
        held.columns = after.columns
        before = held.policy()
        for row in found.rows.values():
            for place in row.columns:
                if place[0] == family_name:
                    found.reclaim(row, place, model.now)
        options.apply(held)
        for index in found.indexes.values() if held.policy() != before else ():
            if not index.failed and family_name in index.families():
                index.failed = tuple(code for code in indexes.why_failed(found, index, model.now)
                                     if code == 'TOOLARGE')
        if options.others in ('convert', 'skip'):
            model.touch(found)
            wanted.convert(found, model.now)
    else:
        if any(family_name in index.families() for index in found.indexes.values()):
            raise Refused('ERR')
        for row in list(found.rows.values()):
            row.columns = {place: column for place, column in row.columns.items()
                           if place[0] != family_name}
            if not row.columns:
                del found.rows[row.ranks]
        del found.families[family_name]
    model.touch(found)
    return OK


def _loses_type(index, before, after):
    """Is the type that TypeOf said for a column of ON, which says none by AS, another one?"""
    return not index.is_of_qualifiers() and any(
        column.place[0] == before.name and not column.given and
        before.type_of(column.place[1]) != after.type_of(column.place[1]) for column in index.on)


class WantedTypes:
    """Which types FAMILY ALTER wants the family's cells to have, once it is `after`."""

    def __init__(self, after, options, named):
        self.after = after
        self.others = options.others
        self.named = named
        self.of_family = b'TYPE' in options.given

    def of(self, ranks):
        """The types that a cell of the column may have, the first one to be made; None: any."""
        kind = self.after.type_of(ranks)
        if ranks not in self.named and (ranks in self.after.columns or not self.of_family):
            return None
        if kind is None:
            return values.TEXTS if self.others in ('convert', 'skip') else None
        return (kind,)

    def cells(self, table, row, now):
        """(place, cell, the value as it should be or None) of the live cells of other types."""
        for place in row.columns:
            kinds = self.of(place[1]) if place[0] == self.after.name else None
            for cell in table.live(row, place, now) if kinds else ():
                if cell.type not in kinds:
                    yield place, cell, kinds[0], values.convert(cell.type, cell.value, kinds[0])

    def look(self, table, now):
        if self.others in ('keep', 'skip'):
            return
        for row in table.rows.values():
            for _, _, _, value in self.cells(table, row, now):
                if self.others is None or value is None:
                    raise Refused('WRONGTYPE')

    def convert(self, table, now):
        """Row by row, in the order of their keys; what an index refuses ends it, or is skipped."""
        for ranks in sorted(table.rows):
            row = table.rows[ranks].copy()
            found = list(self.cells(table, row, now))
            for place, cell, kind, value in found:
                if value is not None:
                    table.put(row, place, row.columns[place].qualifier,
                              Cell(cell.timestamp, kind, value, cell.expiry))
            try:
                if found:
                    table.commit(row, now)
            except Refused:
                if self.others != 'skip':
                    raise


def keyspace(model, session, words):
    action = words.next().upper()
    spaces = model.keyspaces.spaces
    if action == b'LIST':
        words.end()
        return sorted(spaces)
    if action not in (b'CREATE', b'DROP'):
        raise Refused('ERR')
    name = words.next()
    words.end()
    if action == b'CREATE':
        check_name(name)
        if name in spaces:
            raise Refused('BUSYKEY')
        spaces[name] = {}
        return OK
    if name not in spaces:
        raise Refused('NOKEYSPACE')
    if name.isdigit() and int(name) < 16:
        raise Refused('ERR')
    for found in spaces[name].values():
        model.touch(found)
    del spaces[name]
    return OK


def index(model, session, words):
    action = words.next().upper()
    if action == b'CREATE':
        return _index_create(model, session, words)
    if action not in (b'DROP', b'LIST', b'INFO'):
        raise Refused('ERR')
    name = words.next()
    index_name = words.next() if action != b'LIST' else None
    words.end()
    found = model.table(session, name)
    if action == b'LIST':
        return sorted(found.indexes)
    if index_name not in found.indexes:
        raise Refused('NOINDEX')
    held = found.indexes[index_name]
    if action == b'INFO':
        known = {b'name': index_name, b'table': found.name, b'unique': int(held.unique),
                 b'state': b'failed' if held.failed else b'ready',
                 b'entries': 0 if held.failed else len(indexes.entries(found, held, model.now))}
        left_out = 0 if held.failed else indexes.left_out(found, held, model.now)
        known[b'left_out'] = Predicate('at least %d' % left_out, lambda got: got >= left_out)
        if held.failed:
            known[b'error'] = Predicate('one of %r, naming a row' % (held.failed,), lambda got: (
                got.split(b' ')[0].decode() in held.failed and b" row '" in got))
        return MapWith(known)
    del found.indexes[index_name]
    model.touch(found)
    return OK


def _index_create(model, session, words):
    name, index_name = words.next(), words.next()
    check_name(index_name)
    if not words.take(b'ON'):
        raise Refused('ERR')
    on = []
    for _ in range(words.count(zero=True)):
        word = words.next()
        kind = values.read_type(words.next()) if words.take(b'AS') else None
        on.append((word, kind))
    include, unique = None, False
    while words.more():
        word = words.next().upper()
        if word == b'INCLUDE' and include is None:
            include = words.several()
        elif word == b'UNIQUE' and not unique:
            unique = True
        else:
            raise Refused('ERR')
    if not on and not include:
        raise Refused('ERR')
    for word, _ in on:
        if b':' not in word and len(on) > 1:
            raise Refused('ERR')
    found = model.table(session, name)
    columns = [_on_column(found, word, kind) for word, kind in on]
    for word in include or []:
        family_name, colon, qualifier = word.partition(b':')
        _indexed_family(found, family_name)
        if colon:
            found.column(family_name, qualifier)
    if index_name in found.indexes:
        raise Refused('BUSYKEY')
    made = indexes.Index(index_name, columns, include or [], unique)
    made.failed = indexes.why_failed(found, made, model.now)
    found.indexes[index_name] = made
    model.touch(found)
    return OK


def _indexed_family(found, name):
    held = found.family(name)
    if held.fold == 'hll':
        raise Refused('ERR')
    return held


def _on_column(found, word, kind):
    descending = word.startswith(b'-')
    text = word[1:] if descending else word
    family_name, colon, _ = text.partition(b':')
    held = _indexed_family(found, family_name)
    if not colon:
        return indexes.OnColumn((family_name,), None, descending, word)
    place, _ = found.column(*split_column(text))
    return indexes.OnColumn(place, kind or held.type_of(place[1]) or 'bytes', descending, word,
                            kind is not None)


# Tables as keys. What they answer in a keyspace that is gone is left open.

def _in_any_keyspace(command):
    def run(model, session, words):
        try:
            return command(model, session, words)
        except Refused as refusal:
            if refusal.code == 'NOKEYSPACE':
                return ANYTHING
            raise
    return run


def select(model, session, words):
    name = words.next()
    words.end()
    if name not in model.keyspaces.spaces:
        raise Refused('NOKEYSPACE', alternatives=('ERR',))  # a number: Redis' own answer fits too
    session.space = name
    return OK


def _find(model, session, word):
    """(tables of the keyspace, name in it) of a key; `keyspace/table` is one too."""
    space, name = model.keyspaces.split(word, session.space)
    return model.keyspaces.tables(space), name


@_in_any_keyspace
def exists(model, session, words):
    found = [_find(model, session, word) for word in words.words]
    return sum(name in tables for tables, name in found)


@_in_any_keyspace
def type_of(model, session, words):
    tables, name = _find(model, session, words.next())
    return Simple(b'table' if name in tables else b'none')


@_in_any_keyspace
def dbsize(model, session, words):
    return len(model.keyspaces.tables(session.space))


@_in_any_keyspace
def keys(model, session, words):
    pattern = words.next()
    return _same_set([name for name in model.keyspaces.tables(session.space)
                      if globs.matches(pattern, name)])


@_in_any_keyspace
def delete(model, session, words):
    found = [_find(model, session, word) for word in words.words]
    count = 0
    for tables, name in found:
        if name in tables:
            model.touch(tables.pop(name))
            count += 1
    return count


def rename(model, session, words):
    old, new = words.next(), words.next()
    tables, old = _find(model, session, old)
    if old not in tables:
        raise Refused('ERR', alternatives=('NOTABLE',))
    others, name = _find(model, session, new)
    check_name(name)
    if others is not tables or name != old:
        found = tables.pop(old)
        model.touch(found)
        if name in others:
            model.touch(others[name])
        found.space, found.name = model.keyspaces.split(new, session.space)
        others[name] = found
        model.touch(found)
    return OK


@_in_any_keyspace
def flushdb(model, session, words):
    tables = model.keyspaces.tables(session.space)
    for found in tables.values():
        model.touch(found)
    tables.clear()
    return OK


def flushall(model, session, words):
    for tables in model.keyspaces.spaces.values():
        for found in tables.values():
            model.touch(found)
        tables.clear()
    return OK


