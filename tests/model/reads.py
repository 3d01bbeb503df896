"""Read commands (cellar-query(7)). Each takes (model, session, Words) and returns the expected reply."""

from . import indexes, values
from .cells import CellOptions, group_of
from .orders import Bounds, read_bound
from .predicates import Predicate, all_hold
from .refusals import Refused
from .resp import Predicate as Expectation
from .words import read_timestamp, split_column


class Scan:
    """What a CSCAN returns from cursor 0 to its end.

    `rows` is the concatenation over all calls; the cursor and the way the calls cut it are the
    server's choice. `count` and `cells` bound each call.
    """

    def __init__(self, rows, options):
        self.rows = rows
        self.count = options.count or 100
        self.cells = options.cells
        self.keys_only = options.keys_only
        self.stats = options.stats
        self.shows_versions = options.shows_versions()
        self.sampled = options.sample is not None and options.sample < 1

    def __repr__(self):
        return 'Scan(%r)' % (self.rows,)


# Options of CSCAN that would do nothing where cells are counted or folded: refused there.
IDLE = frozenset((b'COUNT', b'CELLS', b'KEYSONLY', b'SNAPSHOT', b'WITHTS', b'WITHTYPE', b'WITHTTL', b'WITHLABELS', b'STATE'))


class ScanOptions(CellOptions):
    """Row options and cell options of CSCAN and CCOUNT."""

    def __init__(self):
        super().__init__()
        self.rows = []
        self.row_tests = []
        self.index_name = None
        self.equal = []
        self.between = None
        self.start = None
        self.row_reverse = False
        self.each = None
        self.no_index = False
        self.found_index = None
        self.where = []
        self.count = None
        self.cells = None
        self.sample = None
        self.keys_only = False
        self.stats = False
        self.by = None
        self.limit = None

    def parse_all(self, words, counting):
        while words.more():
            if not self.parse(words) and not self._parse_row_option(words, counting):
                raise Refused('ERR')
        self._check_together()

    def parse_update(self, words, operations):
        """The selection of a CUPDATE, up to the first op."""
        fronts = 0
        while words.more() and words.keyword() not in operations:
            name = words.keyword()
            if name in (b'PREFIX', b'RANGE', b'ROWS', b'INDEX', b'ALL'):
                fronts += 1
            elif name not in (b'EQ', b'BETWEEN', b'FROM', b'WHERE', b'NOINDEX', b'LIMIT'):
                raise Refused('ERR')
            if fronts != 1:
                raise Refused('ERR')
            if name == b'ALL':
                words.next()
            elif name == b'LIMIT':
                words.next()
                self.once(name)
                self.limit = words.count()
            else:
                self._parse_row_option(words, False)
        if fronts != 1:
            raise Refused('ERR')
        self._check_together()

    def _check_together(self):
        if self.index_name is not None:
            if any(kind == 'rows' for kind, *_ in self.rows) or self.no_index or (
                    self.rows and not self.equal):
                raise Refused('ERR')
        if self.index_name is None and (self.equal or self.between or self.start):
            raise Refused('ERR')
        if self.start and (self.equal or self.between):
            raise Refused('ERR')

    def _parse_row_option(self, words, counting):
        name = words.next().upper()
        if name == b'PREFIX':
            self.rows.append(('prefix', words.next()))
        elif name == b'RANGE':
            self.rows.append(('range', read_bound(words.next()), read_bound(words.next())))
        elif name == b'ROWS':
            self.rows.append(('rows', words.several()))
        elif name == b'WHERE':
            self.where.append(Predicate(words))
        elif name in (b'INDEX', b'EQ', b'BETWEEN', b'FROM', b'REVERSE', b'EACH', b'COUNT', b'CELLS',
                      b'SAMPLE', b'KEYSONLY', b'STATS', b'SNAPSHOT', b'NOINDEX') or (
                          counting and name == b'BY'):
            self.once(name)
            self._single_row_option(name, words)
        else:
            return False
        return True

    def _single_row_option(self, name, words):
        if name == b'INDEX':
            self.index_name = words.next()
        elif name == b'EQ':
            self.equal = words.several()
        elif name == b'BETWEEN':
            self.between = (read_bound(words.next()), read_bound(words.next()))
        elif name == b'FROM':
            self.start = words.several()
        elif name == b'REVERSE':
            self.row_reverse = True
        elif name == b'EACH':
            self.each = words.count(), words.count()
        elif name == b'COUNT':
            self.count = words.count()
        elif name == b'CELLS':
            self.cells = words.count()
        elif name == b'SAMPLE':
            self.sample = values.read_float('f64', words.next())
            if self.sample is None or not 0 <= self.sample <= 1:
                raise Refused('ERR')
        elif name == b'KEYSONLY':
            self.keys_only = True
        elif name == b'STATS':
            self.stats = True
        elif name == b'NOINDEX':
            self.no_index = True
        elif name == b'BY':
            self.by = words.next().upper()
            if self.by not in (b'ROWS', b'GROUPS', b'COLUMNS', b'CELLS'):
                raise Refused('ERR')

    def resolve_all(self, table):
        self.resolve_names(table)
        self.resolve_rest(table)

    def resolve_names(self, table):
        """Names and keys. The index must have been found before."""
        index = find_index(table, self.index_name) if self.index_name is not None else None
        self.row_tests = []
        for spec in self.rows:
            if spec[0] == 'prefix':
                self.row_tests.append(table.order.prefix(spec[1]))
            elif spec[0] == 'range':
                self.row_tests.append(Bounds(table.order, spec[1], spec[2]))
            else:
                wanted = {table.row_key(word)[0] for word in spec[1]}
                self.row_tests.append(wanted.__contains__)
        if index is not None:
            self._resolve_index(table, index)
        groups = index.on if index is not None else table.order.parts
        if self.each and self.each[0] > len(groups):
            raise Refused('ERR')
        for predicate in self.where:
            predicate.resolve(table)
        self.resolve(table)
        self.found_index = index

    def resolve_rest(self, table):
        """Filters; then whether the index can be read."""
        for predicate in self.where:
            predicate.compile_filter(table)
        self.compile_filter(table)
        if self.found_index is not None and self.found_index.failed:
            raise self.found_index.refusal()

    def _resolve_index(self, table, index):
        self.index = index
        columns = len(index.on)
        if len(self.equal) > columns or (self.start and len(self.start) > columns):
            raise Refused('ERR')
        if self.rows and len(self.equal) < columns:
            raise Refused('ERR')
        self.equal_values = [index.read(at, text, table) for at, text in enumerate(self.equal)]
        if self.between:
            at = len(self.equal)
            if at == columns:
                self.between_test = Bounds(table.order, *self.between)
            else:
                self.between_test = _value_bounds(index, at, self.between, table)
        if self.start:
            held = [index.read(at, text, table) for at, text in enumerate(self.start)]
            self.start_ranks = tuple(index.rank(at, value) for at, value in enumerate(held))

    def matching(self, table, now):
        """The rows that the scan returns, each with its columns that passed."""
        if self.index_name is not None:
            rows = self._index_rows(table, now)
        else:
            rows = [(row.ranks, row) for row in table.sorted_rows(now)]
            if self.row_tests:
                rows = [(ranks, row) for ranks, row in rows
                        if any(test(ranks) for test in self.row_tests)]
            if self.row_reverse:
                rows.reverse()
        front, given = None, 0
        for ranks, row in rows:
            if not all_hold(self.where, table, row, now):
                continue
            columns = self.columns(table, row, now)
            if not columns:
                continue
            if self.each:
                if ranks[:self.each[0]] != front:
                    front, given = ranks[:self.each[0]], 0
                given += 1
                if given > self.each[1]:
                    continue
            yield row, columns

    def _index_rows(self, table, now):
        found = indexes.entries(table, self.index, now)
        size = len(self.equal)
        found = [entry for entry in found if list(entry[2][:size]) == self.equal_values]
        if self.between:
            if size == len(self.index.on):
                found = [entry for entry in found if self.between_test(entry[1])]
            else:
                found = [entry for entry in found if self.between_test(entry[2][size])]
        if self.row_tests:
            found = [entry for entry in found if any(test(entry[1]) for test in self.row_tests)]
        if self.row_reverse:
            found.reverse()
        if self.start:
            size = len(self.start_ranks)
            if self.row_reverse:
                found = [entry for entry in found if entry[0][:size] <= self.start_ranks]
            else:
                found = [entry for entry in found if entry[0][:size] >= self.start_ranks]
        return [(entry[0], entry[3]) for entry in found]


def _value_bounds(index, at, between, table):
    """min <= v <= max, also on a descending column."""
    def resolve(bound):
        return (bound[0], index.read(at, bound[1], table)) if len(bound) == 2 else bound + (None,)

    low, high = resolve(between[0]), resolve(between[1])

    def holds(value):
        if low[0] == '+' or high[0] == '-':
            return False
        if low[0] != '-' and (value < low[1] or (low[0] == '(' and value == low[1])):
            return False
        return high[0] == '+' or not (value > high[1] or (high[0] == '(' and value == high[1]))

    return holds


def find_index(table, name):
    if name not in table.indexes:
        raise Refused('NOINDEX')
    return table.indexes[name]


def cget(model, session, words):
    name, key = words.next(), words.next()
    column = split_column(words.next())
    at, with_ts = None, False
    seen = set()
    while words.more():
        option = words.next().upper()
        if option in seen or option not in (b'AT', b'WITHTS', b'STATE'):
            raise Refused('ERR')
        seen.add(option)
        if option == b'AT':
            at = read_timestamp(words.next())
        elif option == b'WITHTS':
            with_ts = True
    table = model.table(session, name)
    ranks, _ = table.row_key(key)
    place, _ = table.column(*column)
    row = table.rows.get(ranks)
    for cell in table.live(row, place, model.now) if row else []:
        if at is None or cell.timestamp <= at:
            show = values.reply_state if b'STATE' in seen else values.reply
            value = show(cell.type, cell.value, session.protocol)
            return [cell.timestamp, value] if with_ts else value
    return None


def cmget(model, session, words):
    name, key = words.next(), words.next()
    columns = [split_column(words.next())]
    while words.more():
        columns.append(split_column(words.next()))
    table = model.table(session, name)
    ranks, _ = table.row_key(key)
    places = [table.column(*column)[0] for column in columns]
    row = table.rows.get(ranks)
    found = [table.newest(row, place, model.now) for place in places]
    return [None if cell is None else values.reply(cell.type, cell.value, session.protocol)
            for cell in found]


def crow(model, session, words):
    name, key = words.next(), words.next()
    options = CellOptions()
    while words.more():
        if not options.parse(words):
            raise Refused('ERR')
    table = model.table(session, name)
    ranks, _ = table.row_key(key)
    options.resolve(table)
    options.compile_filter(table)
    row = table.rows.get(ranks)
    columns = options.columns(table, row, model.now) if row else []
    return options.show(columns, session.protocol)


def crows(model, session, words):
    name = words.next()
    keys = words.several()
    options = CellOptions()
    while words.more():
        if not options.parse(words):
            raise Refused('ERR')
    table = model.table(session, name)
    found = [table.row_key(key)[0] for key in keys]
    options.resolve(table)
    options.compile_filter(table)
    rows = [table.rows.get(ranks) for ranks in found]
    return [options.show(options.columns(table, row, model.now) if row else [], session.protocol)
            for row in rows]


def cscan(model, session, words):
    name, cursor = words.next(), words.next()
    options = ScanOptions()
    options.parse_all(words, counting=False)
    if cursor != b'0':
        raise Refused('ERR')
    table = model.table(session, name)
    options.resolve_all(table)
    rows = []
    for row, columns in options.matching(table, model.now):
        rows.append(row.key if options.keys_only
                    else [row.key, options.show(columns, session.protocol)])
    return Scan(rows, options)


def ccount(model, session, words):
    name = words.next()
    options = ScanOptions()
    options.parse_all(words, counting=True)
    if options.seen & (IDLE | {b'STATS'}) or (b'REVERSE' in options.seen and not options.each and not options.start):
        raise Refused('ERR')
    table = model.table(session, name)
    options.resolve_all(table)
    by = options.by or b'ROWS'
    total = 0
    for _, columns in options.matching(table, model.now):
        if by == b'ROWS':
            total += 1
        elif by == b'COLUMNS':
            total += len(columns)
        elif by == b'CELLS':
            total += sum(map(len, columns))
        else:
            total += len({group_of(table, column[0]) for column in columns})
    if options.sample is not None and options.sample < 1:
        return Expectation('at most %d' % total,
                           lambda got: isinstance(got, int) and 0 <= got <= total)
    return total


def cnear(model, session, words):
    name = words.next()
    key = words.next()
    index_name = None
    if words.more():
        if key.upper() != b'INDEX':
            raise Refused('ERR')
        index_name = words.next()
        texts = words.several()
        words.end()
    table = model.table(session, name)
    if index_name is not None:
        return _near_in_index(model, session, table, find_index(table, index_name), texts)
    ranks, _ = table.row_key(key)
    rows = table.sorted_rows(model.now)
    if not rows:
        return None
    for row in rows:
        if row.ranks >= ranks:
            return [row.key, 0 if row.ranks == ranks else 1]
    return [rows[-1].key, -1]


def _near_in_index(model, session, table, index, texts):
    if len(texts) > len(index.on):
        raise Refused('ERR')
    held = [index.read(at, text, table) for at, text in enumerate(texts)]
    ranks = tuple(index.rank(at, value) for at, value in enumerate(held))
    if index.failed:
        raise index.refusal()
    found = indexes.entries(table, index, model.now)
    if not found:
        return None

    def reply(entry, sign):
        shown = indexes.reply_values(table, index, entry[2], entry[3], session.protocol)
        return [shown, entry[3].key, sign]

    for entry in found:
        if entry[0][:len(ranks)] >= ranks:
            return reply(entry, 0 if entry[0][:len(ranks)] == ranks else 1)
    return reply(found[-1], -1)


def cexists(model, session, words):
    name, key = words.next(), words.next()
    column = split_column(words.next()) if words.more() else None
    words.end()
    table = model.table(session, name)
    ranks, _ = table.row_key(key)
    row = table.rows.get(ranks)
    if column is None:
        return int(table.row_is_live(row, model.now))
    place, _ = table.column(*column)
    return int(table.newest(row, place, model.now) is not None)
