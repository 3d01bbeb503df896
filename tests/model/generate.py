"""Random commands from a seed, most of which hit what is there.

`Generator.step` gives one step of a history: ('time', micros), or ('call', client, [word ...]).
It looks at the model to know what exists, and never at the server.
"""

from . import hll, pools, times
from .faults import spoil
from .filter_text import random_filter
from .orders import Order
from .refusals import Refused
from .values import FLOATS, INTEGER_RANGES, TYPES, print_value

TABLES = [b't1', b't2', b't3', b't4', b'alpha/t1', b'alpha/t5']
TABLES_WANTED = 4
FAMILIES = [b'a', b'b', b'c', b'meta', b'x-1.y']
INDEXES = [b'i1', b'i2', b'i3']
MICROS = 10**6


class Profile:
    """How large things get. Small tables make commands meet; big ones make reads go in slices."""

    def __init__(self, rows=14, qualifiers=6, cells_put=5, fresh=0.0, change=2.5, whole=1.0,
                 loaded=0, wide=0.01):
        self.wide = wide                # how many values and keys are as wide as an index may hold
        self.rows = rows                # row keys to draw from, for each order
        self.qualifiers = qualifiers
        self.cells_put = cells_put      # at most, in one CPUT
        self.fresh = fresh              # how many key components are made rather than picked
        self.change = change            # weight of schema changes
        self.whole = whole              # how many reads of whole tables are made at all
        self.loaded = loaded            # cells in a table that is there from the start


SMALL = Profile()
BIG = Profile(rows=2000, qualifiers=60, cells_put=120, fresh=0.9, change=0.05, whole=0.15)
HUGE = Profile(rows=2000, qualifiers=60, cells_put=120, fresh=0.9, change=0.02, whole=0.6,
               loaded=30000)


class Generator:
    def __init__(self, rng, model, clients, profile=SMALL):
        self.rng = rng
        self.profile = profile
        self.model = model
        self.clients = clients
        self.pending = []
        self.keys = {}
        self.in_transaction = False
        self.client = 0
        if profile.loaded:
            self.pending = list(self._load(profile.loaded))

    def _load(self, cells):
        """A table whose scans take several slices: narrow rows, and one that is wide."""
        yield 'call', 0, [b'TABLE', b'CREATE', b't1', b'KEY', b'utf8#i64', b'FAMILY', b'a', b'TYPE',
                          b'i64', b'ORDER', b'i64', b'FAMILY', b'b', b'TTL', b'2m', b'FAMILY', b'c',
                          b'GROUP', b'g1', b'VERSIONS', b'2']
        for number in range(0, cells // 2, 300):
            words = [b'CPUT', b't1', b'wide#1']
            for column in range(number, number + 300):
                words += [b'a:%d' % column, b'%d' % (column % 97)]
            yield 'call', 0, words
        for number in range(cells // 40):
            words = [b'CPUT', b't1', b'%c#%d' % (97 + number % 20, number)]
            for column in range(8):
                words += [b'a:%d' % column, b'%d' % number, b'b:%d' % column, b'x',
                          b'c:%d' % column, b'%d' % (number % 50), b'AS', b'u16']
            yield 'call', 0, words

    # Choices.

    def chance(self, probability):
        return self.rng.random() < probability

    def pick(self, items):
        return self.rng.choice(items)

    def weighted(self, table):
        return self.rng.choices([item for item, _ in table], [weight for _, weight in table])[0]

    def table(self):
        """(name as the commands write it, Table), of an existing table."""
        space = self.model.sessions[self.client].space
        found = [(name if held == space else held + b'/' + name, table)
                 for held, tables in self.model.keyspaces.spaces.items()
                 for name, table in tables.items()]
        return self.pick(found) if found else None

    def pool(self, order, size):
        """A few key texts of an order, always the same in one run."""
        name = (order.text(), size)
        if name not in self.keys:
            found = []
            while len(found) < size:
                text = self.random_key(order)
                if text:
                    found.append(text)
            if size < 100 and order.text() in (b'bytes', b'utf8'):
                found[0] = b''
            self.keys[name] = found
        return self.keys[name]

    def component(self, kind):
        if self.chance(self.profile.fresh):
            if kind in INTEGER_RANGES:
                low, high = INTEGER_RANGES[kind]
                return b'%d' % self.rng.randint(max(low, -3000), min(high, 3000))
            if kind in ('bytes', 'ascii', 'utf8'):
                return b'%x' % self.rng.randrange(4096)
            if kind in ('uuid', 'luuid'):
                return b'%08x-0000-0000-%04x-000000000000' % (self.rng.getrandbits(32),
                                                              self.rng.getrandbits(16))
            if kind == 'timeuuid':
                return b'%08x-0000-1000-8000-000000000000' % self.rng.getrandbits(32)
            if kind == 'recno':
                return b'%d' % self.rng.randint(1, 4000)
        return self.pick(pools.component_texts(kind))

    def random_key(self, order):
        words = []
        for at, (kind, _) in enumerate(order.parts):
            last = at == len(order.parts) - 1
            word = self.component(kind)
            while not last and order.delimiter in word:
                word = self.component(kind)
            words.append(word)
        return order.delimiter.join(words)

    def row_key(self, table):
        if table.rows and self.chance(0.6):
            return self.pick(list(table.rows.values())).key
        if table.indexes and table.order.text() in (b'bytes', b'utf8') and \
                self.chance(self.profile.wide / 2):
            return self.pick(pools.WIDE_KEYS)
        if self.chance(0.03):
            text = self.random_key(table.order)
            if text:
                return text
        return self.pick(self.pool(table.order, self.profile.rows))

    def family(self, table):
        return table.families[self.pick(sorted(table.families))]

    def qualifier(self, family):
        if family.order.text() in (b'bytes', b'utf8') and self.chance(self.profile.wide / 10):
            return b'Q' * 16000
        return self.pick(self.pool(family.order, self.profile.qualifiers))

    def column(self, table, row=None, family=None):
        """(word, Family)"""
        if family is None and table.rows and self.chance(0.5):
            row = row or self.pick(list(table.rows.values()))
            if row.columns:
                place = self.pick(list(row.columns))
                return place[0] + b':' + row.columns[place].qualifier, table.families[place[0]]
        family = family or self.family(table)
        return family.name + b':' + self.qualifier(family), family

    def value(self, kind):
        if kind in ('bytes', 'string') and self.chance(self.profile.wide / 4):
            return self.pick(pools.WIDE)
        if kind in ('bytes', 'string') and self.chance(0.04):  # what COMPRESS is about
            words = [self.pick(pools.value_texts(kind)) for _ in range(3)] + [b'<td class="x">', b' ']
            size = self.pick([126, 127, 128, 129, 200, 1000])
            text = b''
            while len(text) < size:
                text += self.pick(words)
            return text[:size] if kind == 'bytes' else text
        if kind == 'bytes' and self.chance(0.01):
            return bytes(self.rng.randrange(256) for _ in range(self.rng.randrange(300)))
        return self.pick(pools.value_texts(kind))

    def timestamp(self):
        now = self.model.now
        return self.weighted([(0, 3), (self.rng.randint(1, 5), 4), (now, 3), (now - 5 * MICROS, 3),
                              (now - 25 * MICROS, 2), (now - self.rng.randrange(60 * MICROS), 3),
                              (now + 1000, 2), (now + 100 * MICROS, 1), (2**63 - 1, 0.05)])

    def time_word(self, micros):
        return times.written(self.rng, micros, self.model.now)

    def expiry(self):
        now = self.model.now
        return self.weighted([(0, 1), (1, 1), (now, 1), (now - MICROS, 1), (now + 1, 1),
                              (now + self.rng.randrange(60 * MICROS), 6), (2**63 - 1, 1)])

    def bound(self, texts, low):
        if self.chance(0.25):
            return b'-' if low else b'+'
        if self.chance(0.03):
            return b'+' if low else b'-'
        return (b'[' if self.chance(0.6) else b'(') + self.pick(texts)

    def _with_time(self, order, bound):
        if len(bound) == 1 or bound.count(order.delimiter or b'-') < len(order.parts) - 1:
            return bound
        head = bound[1:].rpartition(order.delimiter)[0] + order.delimiter if order.delimiter else b''
        moment = self.pick([b'1998-02-04', b'2023-11-14T22:13:20Z', b'now', b'now-1h', b'0', b'1700000000000000', b'soon'])
        return bound[:1] + head + moment

    def key_bounds(self, order, texts):
        """Two bounds, mostly the smaller first; sometimes they name only first components."""
        low, high = self.bound(texts, True), self.bound(texts, False)
        if len(order.parts) > 1 and self.chance(0.4):
            low, high = [self._shorten(order, bound) for bound in (low, high)]
        if order.parts[-1][0] == 'timeuuid' and order.delimiter != b':' and self.chance(0.3):
            low, high = [self._with_time(order, bound) for bound in (low, high)]
        if len(low) > 1 and len(high) > 1 and self.chance(0.8):
            try:
                if order.position(low[1:]) > order.position(high[1:]):
                    low, high = high, low
            except Refused:
                pass
        return [low, high]

    def _shorten(self, order, bound):
        if len(bound) < 2:
            return bound
        words = bound.split(order.delimiter, len(order.parts) - 1)
        if len(words) == len(order.parts):
            words = words[:self.rng.randint(1, len(words))]
        short = order.delimiter.join(words)
        return short

    def prefix(self, order, texts):
        text = self.pick(texts)
        words = text.split(order.delimiter, len(order.parts) - 1) if order.delimiter else [text]
        count = self.rng.randint(0, len(words))
        if count == 0:
            return b''
        words = words[:count]
        last = words[-1]
        kind = order.parts[count - 1][0]
        if kind in ('bytes', 'ascii') and self.chance(0.5):
            words[-1] = last[:self.rng.randint(0, len(last))]
        prefix = order.delimiter.join(words)
        if count < len(order.parts) and self.chance(0.4):
            prefix += order.delimiter
        return prefix

    def row_texts(self, table):
        return [row.key for row in table.rows.values()] + self.pool(table.order, self.profile.rows)

    def qualifier_texts(self, family):
        return self.pool(family.order, self.profile.qualifiers)

    # Options.

    def cell_options(self, table, with_filter=True, shown=True):
        """`shown` if the reply shows cells: what says how is refused where it does not."""
        words = []
        for _ in range(self.weighted([(0, 6), (1, 3), (2, 1)])):
            family = self.family(table)
            choice = self.rng.random()
            if choice < 0.5:
                names = [self.column(table)[0] if self.chance(0.6) else self.family(table).name
                         for _ in range(self.rng.randint(1, 3))]
                words += [b'COLUMNS', b'%d' % len(names)] + names
            elif choice < 0.75:
                words += [b'COLPREFIX', family.name,
                          self.prefix(family.order, self.qualifier_texts(family))]
            else:
                words += [b'COLRANGE', family.name] + self.key_bounds(
                    family.order, self.qualifier_texts(family))
        options = []
        if self.chance(0.15):
            low, high = map(self.time_word, sorted((self.timestamp(), self.timestamp())))
            options.append([b'TIME', self.pick([low, b'(' + low, b'-inf']), self.pick([high, b'(' + high, b'+inf'])])
        if self.chance(0.25):
            options.append([b'VERSIONS', self.pick([b'ALL', b'1', b'2', b'3'])])
        for name, low in ((b'PERROW', 1), (b'SKIP', 0), (b'GROUPS', 1)):
            if self.chance(0.1):
                options.append([name, b'%d' % self.rng.randint(low, 3)])
        for name in (b'COLREVERSE', b'WITHTS', b'WITHTYPE', b'WITHTTL', b'WITHLABELS', b'STATE'):
            if self.chance(0.12 if shown or name == b'COLREVERSE' else 0.005):
                options.append([name])
        if with_filter and self.chance(0.2):
            options.append([b'FILTER', random_filter(self, table)])
        self.rng.shuffle(options)
        return words + [word for option in options for word in option]

    def literal_for(self, table, word, family):
        """A literal that is likely to fit the column."""
        kind = family.type_of_text(word.partition(b':')[2]) or self.pick(['bytes', 'i64', 'f64', 'string', 'bool'])
        if self.chance(0.1):
            return self.pick([b'4.5', b'abc', b'300', b'-1', b'', b'1e3', b'1e39', b'-1e39', b'1e309', b'-1e309', b'inf'])
        return self.value(kind)

    def predicate(self, table):
        choice = self.rng.random()
        if choice < 0.1:
            return [b'ROW', self.pick([b'EXISTS', b'MISSING', b'exists'])]
        if choice < 0.2:
            return [b'FILTER', random_filter(self, table)]
        word, family = self.column(table)
        if choice < 0.4:
            return [word, self.pick([b'EXISTS', b'MISSING'])]
        if choice < 0.5:
            return [word, b'MATCH', self.pick(pools.GLOBS)]
        return [word, self.pick([b'EQ', b'NE', b'LT', b'LE', b'GT', b'GE', b'eq']),
                self.literal_for(table, word, family)]

    def conditions(self, table, probability=0.25):
        words = []
        while self.chance(probability):
            words += [b'IF'] + self.predicate(table)
        return words

    def row_options(self, table, counting=False):
        """Of a CSCAN; `counting`: of what shows no rows. 'CCOUNT' has REVERSE with EACH or FROM alone."""
        words = []
        if table.indexes and self.chance(0.4):
            words += self.index_options(table)
            on = len(table.indexes[words[1]].on)
            if on and b'EQ' in words and words[words.index(b'EQ') + 1] == b'%d' % on and \
                    self.chance(0.3):
                texts = self.row_texts(table)
                words += [b'PREFIX', self.prefix(table.order, texts)] if self.chance(0.5) else \
                    [b'RANGE'] + self.key_bounds(table.order, texts)
        elif self.chance(0.1):
            words.append(b'NOINDEX')
        else:
            texts = self.row_texts(table)
            for _ in range(self.weighted([(0, 5), (1, 4), (2, 1)])):
                choice = self.rng.random()
                if choice < 0.4:
                    words += [b'PREFIX', self.prefix(table.order, texts)]
                elif choice < 0.8:
                    words += [b'RANGE'] + self.key_bounds(table.order, texts)
                else:
                    rows = [self.pick(texts) for _ in range(self.rng.randint(1, 4))]
                    words += [b'ROWS', b'%d' % len(rows)] + rows
        reverse = self.chance(0.25)
        if reverse and not (counting == 'CCOUNT' and b'FROM' not in words and self.chance(0.9)):
            words.append(b'REVERSE')
            reverse = False
        while self.chance(0.15):
            words += [b'WHERE'] + self.predicate(table)
        if b'INDEX' not in words and self.chance(0.3):
            words += self.where_of_index(table)
        drawn = b'1'
        if self.chance(0.02):
            drawn = self.pick([b'1', b'0.5', b'1.0'])
            words += [b'SAMPLE', drawn]
        if self.chance(0.12) and drawn != b'0.5':
            words += [b'EACH', b'%d' % self.weighted([(1, 6), (2, 2), (3, 0.3)]),
                      b'%d' % self.weighted([(1, 5), (2, 3), (3, 1), (2**63 - 1, 0.1)])]
            if reverse:
                words.append(b'REVERSE')
        if not counting or self.chance(0.03):  # refused where rows are counted
            if self.in_transaction:
                words += [b'COUNT', b'1000']
            elif self.chance(0.3):
                words += [b'COUNT', b'%d' % self.rng.randint(1, 4)]
            if self.chance(0.15) and not self.in_transaction and not self._repeats_rows(table, words):
                words += [b'CELLS', b'%d' % self.rng.randint(1, 6)]
            for name in (b'KEYSONLY', b'STATS', b'SNAPSHOT'):
                if self.chance(0.07):
                    words.append(name)
        return words

    def where_of_index(self, table):
        """Conditions on the columns of an index, often by EQ on all of them."""
        names = [name for name, index in table.indexes.items() if index.on and not index.is_of_qualifiers()]
        if not names:
            return []
        index = table.indexes[self.pick(sorted(names))]
        words = []
        for at, column in enumerate(index.on):
            if self.chance(0.9):
                operator = b'EQ' if self.chance(0.8) else self.pick([b'LT', b'LE', b'GT', b'GE', b'EXISTS'])
                words += [b'WHERE', column.text, operator]
                if operator != b'EXISTS':
                    words.append(self._indexed_value(table, index, at))
        return words

    @staticmethod
    def _repeats_rows(table, words):
        """Whether the scan may give a row more than once, so that pieces could not be told apart."""
        return b'INDEX' in words and table.indexes[words[words.index(b'INDEX') + 1]].is_of_qualifiers()

    def index_options(self, table):
        index = table.indexes[self.pick(sorted(table.indexes))]
        words = [b'INDEX', index.name]
        if not index.on or self.chance(0.2):
            return words

        def value(at):
            if index.is_of_qualifiers():
                return self.qualifier(table.families[index.on[at].place[0]])
            return self._indexed_value(table, index, at)

        if self.chance(0.2):
            count = self.rng.randint(1, len(index.on))
            return words + [b'FROM', b'%d' % count] + [value(at) for at in range(count)]
        fixed = self.rng.randint(0, len(index.on))
        if fixed:
            words += [b'EQ', b'%d' % fixed] + [value(at) for at in range(fixed)]
        if self.chance(0.5):
            if fixed == len(index.on):
                if not any(descending for _, descending in table.order.parts):
                    words += [b'BETWEEN'] + self.key_bounds(table.order, self.row_texts(table))
            elif not (index.is_of_qualifiers() and index.on[0].descending):
                texts = [value(fixed), value(fixed)]
                words += [b'BETWEEN', self.bound(texts[:1], True), self.bound(texts[1:], False)]
        return words

    def _indexed_value(self, table, index, at):
        column = index.on[at]
        if self.chance(0.7):
            found = [cell for row in table.rows.values() if column.place in row.columns
                     for cell in row.columns[column.place].cells if cell.type == column.kind]
            if found:
                return print_value(column.kind, self.pick(found).value)
        return self.value(column.kind)

    # Commands. Each returns its words, or None when there is nothing to do it to.

    def on_column(self, table):
        """(word, Family) of an ON column, or None."""
        found = [column for index in table.indexes.values() if not index.is_of_qualifiers()
                 for column in index.on]
        if not found:
            return None
        column = self.pick(found)
        return column.text, table.families[column.place[0]]

    def hll_state(self):
        """What MERGE and a put into an hll family take; now and then it is none."""
        state = ()
        for _ in range(self.weighted([(0, 1), (1, 4), (3, 3), (40, 0.3)])):
            state = hll.add(state, b'%d' % self.rng.randrange(60))
        text = hll.encode(state)
        choice = self.rng.random()
        if choice < 0.04:
            text = text[:self.rng.randrange(len(text))]
        elif choice < 0.08:
            at = self.rng.randrange(len(text))
            text = text[:at] + bytes([self.rng.randrange(256)]) + text[at + 1:]
        elif choice < 0.1:
            text += b'\x80'
        return text

    def fold_words(self, table, merges=False):
        """`column input [TS time]` of ADD or MERGE."""
        folds = [family for family in table.families.values() if family.fold]
        family = self.pick(folds) if folds and self.chance(0.95) else self.family(table)
        places = [(row, place) for row in table.rows.values() for place in row.columns
                  if place[0] == family.name]
        if places and self.chance(0.5):
            row, place = self.pick(places)
            word = family.name + b':' + row.columns[place].qualifier
        else:
            word = self.column(table, family=family)[0]
        if family.fold == 'hll':
            text = self.hll_state() if merges else b'%d' % self.rng.randrange(60)
        elif family.fold == 'sum' and not merges:
            text = self.pick([b'1', b'1', b'2', b'-1', b'-3', b'100', b'0', b'0.5', b'1e3', b'1e308', b'inf', b'-0',
                              b'9223372036854775807', b'18446744073709551615', b'-9223372036854775808', b'x'])
        else:
            text = self.value(family.type or 'bytes')
        if self.chance(0.4):
            return [word, text, b'TS', self.time_word(self.timestamp())]
        return [word, text]

    def cadd(self, name, table):
        if not any(family.fold for family in table.families.values()) and self.chance(0.9):
            return None
        words = [b'CADD', name, self.row_key(table)] + self.conditions(table, 0.1)
        for _ in range(self.weighted([(1, 5), (2, 3), (4, 1)])):
            words += self.fold_words(table)
        return words

    def put_words(self, table, row=None):
        indexed = self.on_column(table) if self.chance(0.2) else None
        word, family = indexed or self.column(table, row)
        if family.fold == 'hll' and self.chance(0.97):
            words = [word, self.hll_state()]
            if self.chance(0.3):
                words += [b'TS', self.time_word(self.timestamp())]
            if self.chance(0.15):
                words += [b'EXPIREAT', self.time_word(self.expiry())]
            return words
        declared = family.type_of_text(word.partition(b':')[2])
        kind = declared or 'bytes'
        words = [word]
        modifiers = []
        if self.chance(0.35):
            if declared is None:
                kind = self.pick(list(TYPES) + ['i64', 'i64', 'f64', 'string', 'byte'])
            modifiers.append([b'AS', kind.encode()])
            kind = 'u8' if kind == 'byte' else kind
        if self.chance(0.35):
            modifiers.append([b'TS', self.time_word(self.timestamp())])
        strict = family.gc is not None and 'and' in repr(family.gc)
        if self.chance(0.12) and not strict:
            modifiers.append([b'TTL', self.pick(pools.DURATIONS)])
        elif self.chance(0.06) and not strict:
            modifiers.append([b'EXPIREAT', self.time_word(self.expiry())])
        self.rng.shuffle(modifiers)
        wide = kind in ('bytes', 'string') and table.indexes and self.chance(
            self.profile.wide * (12 if indexed else 2))
        return words + [self.pick(pools.WIDE) if wide else self.value(kind)] + [word for modifier in modifiers for word in modifier]

    def cput(self, name, table):
        key = self.row_key(table)
        if table.order.is_recno() and self.chance(0.4):
            key = b'*'
        words = [b'CPUT', name, key]
        if self.chance(0.12):
            words.append(self.pick([b'NX', b'XX', b'nx']))
        words += self.conditions(table, 0.12)
        count = self.weighted([(1, 5), (2, 2), (3, 1), (self.profile.cells_put, 0.5)])
        for _ in range(count if self.chance(0.9) else self.profile.cells_put):
            words += self.put_words(table)
        return words

    def increment_column(self, table, kinds):
        """A column whose newest cell is likely to be of these kinds."""
        found = [(place, row) for row in table.rows.values() for place, column in
                 row.columns.items() if column.cells and column.cells[0].type in kinds]
        if found and self.chance(0.7):
            place, row = self.pick(found)
            return row.key, place[0] + b':' + row.columns[place].qualifier
        families = [family for family in table.families.values()
                    if family.type is None or family.type in kinds]
        family = self.pick(families) if families and self.chance(0.9) else self.family(table)
        return self.row_key(table), self.column(table, family=family)[0]

    def cincrby(self, name, table):
        key, column = self.increment_column(table, INTEGER_RANGES)
        delta = self.pick([b'1', b'-1', b'5', b'10', b'100', b'0', b'-7', b'9223372036854775807'])
        return [b'CINCRBY', name, key, column, delta]

    def cincrbyfloat(self, name, table):
        key, column = self.increment_column(table, FLOATS)
        return [b'CINCRBYFLOAT', name, key, column,
                self.pick([b'1', b'0.5', b'-1.5', b'0.25', b'1e3', b'1e30', b'-2'])]

    def cappend(self, name, table):
        key, column = self.increment_column(table, ('bytes', 'string'))
        return [b'CAPPEND', name, key, column, self.pick([b'', b'x', b'ab', b'5', b'\x00', b'\xff'])]

    def operation(self, table):
        folds = any(family.fold for family in table.families.values())
        choice = self.weighted([('PUT', 5), ('DEL', 3), ('DELROW', 0.5), ('INCR', 3), ('APPEND', 1),
                                ('ADD', 5 if folds else 0.1), ('MERGE', 2.5 if folds else 0.1)])
        if choice in ('ADD', 'MERGE'):
            return [choice.encode()] + self.fold_words(table, choice == 'MERGE')
        if choice == 'PUT':
            return [b'PUT'] + self.put_words(table)
        if choice == 'DELROW':
            return [b'DELROW']
        if choice == 'INCR':
            kinds = INTEGER_RANGES if self.chance(0.7) else FLOATS
            column = self.increment_column(table, kinds)[1]
            delta = [b'1', b'-3', b'10'] if kinds is INTEGER_RANGES else [b'0.5', b'-1.5']
            if self.chance(0.1):
                delta = [b'99999999999999999999', b'-99999999999999999999', b'18446744073709551616',
                         b'18446744073709551615', b'-9223372036854775809', b'9' * 50, b'9' * 400]
            return [b'INCR', column, self.pick(delta)]
        if choice == 'APPEND':
            return [b'APPEND', self.increment_column(table, ('bytes', 'string'))[1],
                    self.pick([b'', b'x', b'\x00'])]
        words = [b'DEL'] + self.target(table)
        if self.chance(0.2):
            words += [b'TIME'] + self.times()
        return words

    def times(self):
        low, high = map(self.time_word, sorted((self.timestamp(), self.timestamp())))
        return [self.pick([low, b'-inf']), self.pick([high, b'(' + high, b'+inf'])]

    def target(self, table):
        choice = self.rng.random()
        family = self.family(table)
        if choice < 0.6:
            return [self.column(table)[0]]
        if choice < 0.75:
            return [family.name]
        if choice < 0.87:
            return [b'COLPREFIX', family.name,
                    self.prefix(family.order, self.qualifier_texts(family))]
        return [b'COLRANGE', family.name] + self.key_bounds(family.order,
                                                            self.qualifier_texts(family))

    def cmutate(self, name, table):
        words = [b'CMUTATE', name, self.row_key(table)]
        conditions = self.conditions(table, 0.3)
        words += conditions
        first = [self.operation(table) for _ in range(self.rng.randint(0 if conditions else 1, 4))]
        other = None
        if conditions and (not first or self.chance(0.5)):
            other = [self.operation(table)
                     for _ in range(self.rng.randint(0 if first else 1, 3))]
        words += [word for operation in first for word in operation]
        if other is not None:
            words += [b'ELSE'] + [word for operation in other for word in operation]
        return words

    def cupdate(self, name, table):
        texts = self.row_texts(table)
        choice = self.rng.random()
        words = [b'CUPDATE', name]
        if table.indexes and choice < 0.35:
            words += self.index_options(table)
        elif choice < 0.55:
            words += [b'PREFIX', self.prefix(table.order, texts)]
        elif choice < 0.75:
            words += [b'RANGE'] + self.key_bounds(table.order, texts)
        elif choice < 0.85:
            rows = [self.pick(texts) for _ in range(self.rng.randint(1, 4))]
            words += [b'ROWS', b'%d' % len(rows)] + rows
        else:
            words.append(b'ALL')
        while self.chance(0.4):
            words += [b'WHERE'] + self.predicate(table)
        if b'INDEX' not in words and self.chance(0.3):
            words += self.where_of_index(table)
        if self.chance(0.2):
            words += [b'LIMIT', b'%d' % self.rng.randint(1, 3)]
        for _ in range(self.weighted([(1, 5), (2, 2), (3, 1)])):
            words += self.operation(table)
        return words

    def cdel(self, name, table):
        words = [b'CDEL', name, self.row_key(table)] + self.conditions(table, 0.1)
        for _ in range(self.weighted([(0, 1), (1, 5), (2, 2)])):
            words += self.target(table)
        if self.chance(0.2):
            words += [b'TIME'] + self.times()
        return words

    def cdelrange(self, name, table):
        texts = self.row_texts(table)
        if self.chance(0.1):
            return [b'CDELRANGE', name, b'ALL']
        if self.chance(0.5):
            return [b'CDELRANGE', name, b'PREFIX', self.prefix(table.order, texts)]
        return [b'CDELRANGE', name, b'RANGE'] + self.key_bounds(table.order, texts)

    def cget(self, name, table):
        row = self.pick(list(table.rows.values())) if table.rows and self.chance(0.8) else None
        words = [b'CGET', name, row.key if row else self.row_key(table), self.column(table, row)[0]]
        options = []
        if self.chance(0.2):
            options.append([b'AT', self.time_word(self.timestamp())])
        if self.chance(0.2):
            options.append([b'WITHTS'])
        if self.chance(0.1):
            options.append([b'STATE'])
        self.rng.shuffle(options)
        return words + [word for option in options for word in option]

    def cmget(self, name, table):
        return [b'CMGET', name, self.row_key(table)] + [
            self.column(table)[0] for _ in range(self.rng.randint(1, 4))]

    def crow(self, name, table):
        return [b'CROW', name, self.row_key(table)] + self.cell_options(table)

    def crows(self, name, table):
        keys = [self.row_key(table) for _ in range(self.weighted([(1, 1), (2, 3), (5, 3), (40, 0.5)]))]
        return [b'CROWS', name, b'%d' % len(keys)] + keys + self.cell_options(table)

    def cscan(self, name, table):
        return [b'CSCAN', name, b'0'] + self.row_options(table) + self.cell_options(table)

    def _term(self, table):
        parts = len(table.order.parts)
        kind = self.weighted([(b'KEY', 3), (b'PART', 4), (b'BYTES', 2), (b'FAMILY', 2), (b'COLUMN', 3),
                              (b'QUALIFIER', 2), (b'TIME', 2), (b'VALUE', 4)])
        words = [b'BY', kind]
        if kind == b'KEY' and self.chance(0.7):
            words.append(b'%d' % self.rng.randint(1, parts))
        elif kind == b'PART':
            at = self.rng.randint(1, parts)
            name = table.order.names[at - 1].encode()
            words.append(name if name and self.chance(0.6) else
                         b'%d' % (parts + 1 if self.chance(0.03) else at))
            number = table.order.parts[at - 1][0] in FLOATS + tuple(INTEGER_RANGES) + ('recno',)
            if self.chance(0.5 if number else 0.05):
                words += [b'STEP', self._step()]
        elif kind == b'BYTES':
            if self.chance(0.9) and (parts > 1 or table.order.parts[0][0] not in ('bytes', 'ascii', 'utf8')):
                return []
            words.append(b'%d' % self.rng.randint(1, 3))
        elif kind == b'QUALIFIER':
            words.append(self.pick([b'1', b'1', b'1', b'2']))
        elif kind == b'TIME':
            words.append(self.pick([b'1', b'10s', b'1m', b'1h', b'250ms', b'1d', b'1d', b'1w', b'1mo', b'1y', b'3mo', b'2w']))
            if self.chance(0.4):
                words += [b'TZ', self.pick([b'Europe/Berlin', b'America/New_York', b'Asia/Kolkata', b'UTC',
                                            b'America/Sao_Paulo', b'Australia/Lord_Howe', b'Nowhere/At_All'])]
        elif kind == b'VALUE':
            word, family = self.column(table)
            words.append(word)
            if self.chance(0.3 if family.type not in ('bytes', 'string', 'uuid') else 0.05):
                words += [b'STEP', self._step()]
        return words

    def _step(self):
        if self.chance(0.5):
            return self.pick([b'1', b'2', b'7', b'10', b'100', b'3600', b'9223372036854775807',
                              b'9223372036854775808', b'18446744073709551615', b'18446744073709551616'])
        return self.pick([b'0.1', b'0.25', b'0.5', b'2.5', b'.3', b'1e-3', b'1e9', b'1.0', b'5e-324', b'1e300',
                          b'0.00000000000000000001', b'1.2345678901234567', b'0', b'-1', b'1.23456789012345678901'])

    def _reduce(self, table):
        function = self.pick([b'ROWS', b'COUNT', b'SUM', b'SUM', b'AVG', b'MIN', b'MAX', b'DISTINCT',
                              b'QUANTILE', b'HISTOGRAM', b'FIRST', b'LAST', b'STDDEV', b'VARIANCE', b'DELTA', b'RATE'])
        target = self.weighted([(b'*', 4), (None, 4), (b'', 4)])
        if target is None:
            target = self.column(table)[0]
        words = [b'REDUCE', function, target or self.family(table).name]
        if function == b'QUANTILE':
            words += self.pick([[b'1', b'0.5'], [b'3', b'0', b'0.99', b'1'], [b'2', b'.25', b'0.75'],
                                [b'3', b'0.07', b'0.1', b'0.7'], [b'1', b'1e-30']])
            if self.chance(0.03):
                words[-1] = b'1.5'
        elif function == b'HISTOGRAM':
            words += self.pick([[b'1', b'0'], [b'3', b'-1.5', b'1', b'100'], [b'2', b'-inf', b'inf'],
                                [b'2', b'9223372036854775807', b'9223372036854775808'],
                                [b'4', b'-0.1', b'0.1', b'0.3', b'0.7'], [b'2', b'0.1', b'0.10000000000000000001'],
                                [b'3', b'-1e39', b'2.5', b'1e39']])
            if self.chance(0.03):
                words += [words[-1]]
                words[3] = b'%d' % (int(words[3]) + 1)
        return words

    def cagg(self, name, table):
        words = [b'CAGG', name]
        if self.chance(0.5):
            words += self.row_options(table, True)
        elif self.chance(0.3):
            words += [b'REVERSE']
        if self.chance(0.5):
            words += self.cell_options(table, shown=False)
        for _ in range(self.weighted([(0, 2), (1, 5), (2, 2), (3, 1)])):
            words += self._term(table)
        names = []
        for at in range(self.rng.randint(1, 4)):
            reduce = self._reduce(table)
            if self.chance(0.6):
                reduce += [b'AS', b'n%d' % at]
                # Those are compared with a tolerance, so what they sort and leave out is not.
                if reduce[1] not in (b'STDDEV', b'VARIANCE'):
                    names.append(reduce[-1])
            words += reduce
        for _ in range(self.weighted([(0, 6), (1, 2), (2, 1)]) if names else 0):
            words += [b'HAVING', b'nix' if self.chance(0.03) else self.pick(names),
                      self.pick([b'EQ', b'NE', b'LT', b'LE', b'GT', b'ge']),
                      self.pick([b'0', b'1', b'2', b'3.5', b'-1', b'1e3', b'1e400', b'inf', b'a', b'0.1',
                                 b'9223372036854775808', b'true'])]
        # Between 1970 and now there are so many hours that they may, or may not, fit into the memory.
        if b'1h' not in words and self.chance(0.4 if b'TIME' in words or b'STEP' in words else 0.02):
            words += [b'FILL', self.pick([b'NULL', b'null', b'PREVIOUS', b'0', b'-1.5', b'18446744073709551615', b'x'])]
        if names and self.chance(0.4):
            words += [b'SORT', b'nix' if self.chance(0.03) else self.pick(names)]
            words += self.pick([[], [b'ASC'], [b'DESC']])
        if self.chance(0.3):
            words += [b'LIMIT', self.pick([b'0', b'0', b'1', b'3']), self.pick([b'1', b'2', b'5', b'1000'])]
        if self.chance(0.1):
            words.append(b'STATS')
        return words

    def ccount(self, name, table):
        if self.chance(0.3):
            return [b'CCOUNT', name] + self.pick([[], [], [b'BY', b'ROWS'], [b'REVERSE', b'EACH', b'1', b'1'],
                                                  [b'VERSIONS', b'ALL', b'BY', b'CELLS'],
                                                  [b'BY', b'CELLS'], [b'BY', b'COLUMNS']])
        words = [b'CCOUNT', name] + self.row_options(table, 'CCOUNT') + self.cell_options(table, shown=False)
        if self.chance(0.6):
            words += [b'BY', self.pick([b'ROWS', b'GROUPS', b'COLUMNS', b'CELLS'])]
        return words

    def cnear(self, name, table):
        usable = [index for index in table.indexes.values() if index.on]
        if usable and self.chance(0.5):
            index = self.pick(usable)
            count = self.rng.randint(1, len(index.on))
            if index.is_of_qualifiers():
                texts = [self.qualifier(table.families[index.on[0].place[0]])]
            else:
                texts = [self._indexed_value(table, index, at) for at in range(count)]
            return [b'CNEAR', name, b'INDEX', index.name, b'%d' % len(texts)] + texts
        return [b'CNEAR', name, self.row_key(table)]

    def cexists(self, name, table):
        words = [b'CEXISTS', name, self.row_key(table)]
        return words + [self.column(table)[0]] if self.chance(0.6) else words

    # Schema.

    def family_options(self, altering=False):
        options = []
        fold = None
        if self.chance(0.03 if altering else 0.35):
            fold = self.pick([b'sum', b'sum', b'min', b'max', b'hll', b'SUM'])
            options.append([b'AGGREGATE', fold])
        if self.chance(0.02 if altering else 0.25):
            options.append([b'BUCKET', self.pick([b'1ms', b'1', b'10s', b'60', b'7d', b'9223372036854775ms'])])
        if fold is not None and self.chance(0.85):
            numbers = [kind.encode() for kind in list(INTEGER_RANGES) + list(FLOATS)]
            if fold != b'hll' and self.chance(0.7):
                options.append([b'TYPE', self.pick(numbers + ([b'uuid', b'bytes', b'string']
                                                              if fold in (b'min', b'max') else []))])
        elif self.chance(0.5):
            kinds = [kind.encode() for kind in TYPES] + [b'i64', b'i64', b'byte']
            options.append([b'TYPE', self.pick(kinds + ([b'NONE'] * 4 if altering else []))])
        if not altering and self.chance(0.6):
            options.append([b'ORDER', self.pick(pools.QUALIFIER_ORDERS)])
        if not altering and self.chance(0.3):
            options.append([b'GROUP', self.pick([b'g1', b'g2', b'default'])])
        if self.chance(0.35):
            options.append([b'COMPRESS', self.pick([b'lz4', b'zstd', b'lz4', b'zstd', b'NONE', b'none', b'gz'])])
        if self.chance(0.2):
            choice = pools.POLICIES + ([b'NONE'] if altering else pools.STRICT_POLICIES)
            options.append([b'GC', self.pick(choice)])
        else:
            if self.chance(0.35):
                options.append([b'VERSIONS', self.pick([b'1', b'2', b'3', b'ALL'])])
            if self.chance(0.12):
                options.append([b'TTL', self.pick([b'10s', b'30s', b'2m', b'NONE', b'60'])])
        if altering and any(option[0] == b'TYPE' for option in options) and self.chance(0.8):
            options.append(self.pick(self.OTHER_CELLS))
        self.rng.shuffle(options)
        return [word for option in options for word in option]

    OTHER_CELLS = [[b'KEEP'], [b'CONVERT'], [b'CONVERT', b'SKIP'], [b'CONVERT', b'SKIP']]

    def column_types(self, order, family=None):
        """COLUMN and, of a family that is there, NOCOLUMN and what becomes of other cells."""
        words = []
        kinds = [kind.encode() for kind in TYPES] + [b'i64', b'u64', b'f64', b'bytes', b'string', b'byte']
        while not words or self.chance(0.5):
            if family is not None and family.columns and self.chance(0.4):
                words += [b'NOCOLUMN', self.pick(sorted(text for text, _ in family.columns.values()))]
            else:
                words += [b'COLUMN', self.pick(self.pool(order, self.profile.qualifiers)), self.pick(kinds)]
        if family is not None and self.chance(0.8):
            words += self.pick(self.OTHER_CELLS)
        return words

    def family_with_columns(self, name, family=None):
        """A family's name and options."""
        words = [name] + self.family_options(family is not None)
        if family is not None and self.chance(0.5):
            return [name] + self.column_types(family.order, family)
        if family is None and self.chance(0.35):
            order = words[words.index(b'ORDER') + 1] if b'ORDER' in words else b'bytes'
            words += self.column_types(Order.parse(order))
        return words

    def table_create(self, name):
        words = [b'TABLE', b'CREATE', name]
        if self.chance(0.8):
            words += [b'KEY', self.pick(pools.KEY_ORDERS + pools.NAMED_ORDERS)]
        families = list(FAMILIES)
        self.rng.shuffle(families)
        for family in families[:self.rng.randint(1, 4)]:
            words += [b'FAMILY'] + self.family_with_columns(family)
        return words

    def schema_change(self, name, table):
        choice = self.weighted([('add', 3), ('alter', 6), ('drop family', 0.5), ('drop', 0.2),
                                ('truncate', 0.2), ('rename', 0.5), ('create', 0.5), ('index', 6),
                                ('drop index', 2), ('list', 4), ('generic', 3), ('keyspace', 0.5)])
        if choice == 'add':
            return [b'FAMILY', b'ADD', name] + self.family_with_columns(self.pick(FAMILIES))
        if choice == 'alter':
            family = self.family(table)
            words = self.family_with_columns(family.name, family)
            return [b'FAMILY', b'ALTER', name] + words if len(words) > 1 else None
        if choice == 'drop family':
            if len(table.families) < 2:
                return None
            return [b'FAMILY', b'DROP', name, self.family(table).name]
        if choice == 'drop':
            return self.pick([[b'TABLE', b'DROP', name], [b'DEL', name], [b'UNLINK', name, b'nix']])
        if choice == 'truncate':
            return [b'TABLE', b'TRUNCATE', name]
        if choice == 'rename':
            if self.chance(0.7):
                return [b'TABLE', b'RENAME', name, self.pick(TABLES[:4])]
            return [b'RENAME', self.pick(TABLES[:4]), self.pick(TABLES[:4])]
        if choice == 'create':
            return self.table_create(self.pick(TABLES))
        if choice == 'index':
            return self.index_create(name, table)
        if choice == 'drop index':
            if not table.indexes:
                return [b'INDEX', b'LIST', name]
            return [b'INDEX', b'DROP', name, self.pick(sorted(table.indexes))]
        if choice == 'list':
            indexes = [[b'INDEX', b'INFO', name, index] for index in table.indexes]
            return self.pick([[b'TABLE', b'LIST'], [b'TABLE', b'LIST', b'MATCH', b't[1-3]'],
                              [b'TABLE', b'INFO', name], [b'INDEX', b'LIST', name],
                              [b'FAMILY', b'INFO', name, self.family(table).name],
                              [b'KEYSPACE', b'LIST']] + indexes)
        if choice == 'generic':
            return self.pick([[b'EXISTS', b't1', b't2', b'nix'], [b'TYPE', b't1'], [b'DBSIZE'],
                              [b'KEYS', b'*'], [b'KEYS', b't?'], [b'PING'], [b'ECHO', b'\x00']])
        return self.pick([[b'KEYSPACE', b'CREATE', b'alpha'], [b'SELECT', b'alpha'],
                          [b'SELECT', b'0'], [b'SELECT', b'0'], [b'KEYSPACE', b'DROP', b'alpha'],
                          [b'KEYSPACE', b'DROP', b'3'], [b'SELECT', b'nix'],
                          [b'FLUSHDB'] if self.chance(0.2) else [b'DBSIZE']])

    def index_create(self, name, table):
        if self.in_transaction and table.rows:
            return None
        words = [b'INDEX', b'CREATE', name, self.pick(INDEXES), b'ON']
        choice = self.rng.random()
        if choice < 0.15:
            words += [b'0']
        elif choice < 0.35:
            words += [b'1', self.pick([b'', b'', b'-']) + self.family(table).name]
        else:
            columns = []
            while not columns or self.chance(0.4):
                row = self.pick(list(table.rows.values())) if table.rows else None
                word, kind = self._column_and_type(table, row)
                if word in [column for column, _ in columns]:
                    break
                columns.append((word, kind))
            words.append(b'%d' % len(columns))
            for word, kind in columns:
                words.append(self.pick([b'', b'', b'-']) + word)
                if kind is not None and self.chance(0.8):
                    words += [b'AS', kind.encode()]
                elif self.chance(0.2):
                    words += [b'AS', self.pick([b'i64', b'bytes', b'f64', b'string', b'u8'])]
        if choice < 0.15 or self.chance(0.4):
            names = [self.pick([self.column(table)[0], self.family(table).name])
                     for _ in range(self.rng.randint(1, 2))]
            words += [b'INCLUDE', b'%d' % len(names)] + names
        if self.chance(0.15):
            words.append(b'UNIQUE')
        return words

    def _column_and_type(self, table, row):
        """A column, and the type of its newest cell where it is known."""
        if row is not None and row.columns and self.chance(0.8):
            place = self.pick(list(row.columns))
            column = row.columns[place]
            return place[0] + b':' + column.qualifier, column.cells[0].type if column.cells else None
        word, family = self.column(table, row)
        return word, family.type_of_text(word.partition(b':')[2])

    # Steps.

    # A weight of 2.5 for schema changes, as Profile.change says.
    COMMANDS = [('cput', 24), ('cadd', 6), ('cmutate', 9), ('cincrby', 4), ('cincrbyfloat', 3), ('cappend', 3),
                ('cupdate', 2), ('cdel', 6), ('cdelrange', 0.4), ('cget', 9), ('cmget', 3), ('crow', 8), ('crows', 3),
                ('cscan', 11), ('ccount', 5), ('cagg', 6), ('cnear', 4), ('cexists', 2), ('schema_change', 2.5)]

    def command(self):
        """The words of one command for the current client."""
        found = self.table()
        if found is None or sum(map(len, self.model.keyspaces.spaces.values())) < TABLES_WANTED \
                and self.chance(0.3):
            return self.table_create(self.pick(TABLES))
        name, table = found
        if not table.families:
            return [b'FAMILY', b'ADD', name] + self.family_with_columns(self.pick(FAMILIES))
        words = None
        while words is None:
            choice = self.weighted(self.COMMANDS)
            if choice == 'schema_change' and not self.chance(self.profile.change / 2.5):
                continue
            if choice in ('cscan', 'ccount', 'cagg', 'cnear', 'cdelrange', 'cupdate') and \
                    not self.chance(self.profile.whole):
                continue
            words = getattr(self, choice)(name, table)
        if self.chance(0.05):
            words = spoil(self, words, table)
        return words

    def step(self):
        if self.pending:
            step = self.pending.pop(0)
            return step() if callable(step) else step
        self.client = self.rng.randrange(self.clients)
        choice = self.rng.random()
        if choice < 0.1:
            return self._time()
        if choice < 0.13:
            self._transaction()
            return self.step()
        if choice < 0.132:
            self._stale_cursor()
            return self.step()
        return self._call()

    def _time(self):
        move = self.weighted([(1, 3), (1000, 3), (MICROS, 3), (5 * MICROS, 1), (40 * MICROS, 0.4),
                              (200 * MICROS, 0.05), (self.rng.randrange(1, 10 * MICROS), 2)])
        return 'time', max(self.model.now, self.model.last_stamp) + move

    def _call(self):
        return 'call', self.client, self.command()

    def _say(self, *words):
        client = self.client
        return lambda: self._as(client, words)

    def _as(self, client, words):
        self.client = client
        return 'call', client, list(words)

    def _queued(self):
        """A command inside MULTI."""
        client = self.client

        def make():
            self.client = client
            self.in_transaction = True
            words = self.command()
            self.in_transaction = False
            return 'call', client, words
        return make

    def _other(self):
        """A command of any client between WATCH and EXEC."""
        def make():
            mine = self.client
            self.client = self.rng.randrange(self.clients)
            step = self._call()
            self.client = mine
            return step
        return make

    def _stale_cursor(self):
        """A scan of an index is begun, the index perhaps made anew, the scan gone on with."""
        found = self.table()
        if found is None or not found[1].indexes:
            return
        name, table = found
        index = self.pick(sorted(table.indexes))
        words = [b'CSCAN', name, b'0', b'INDEX', index, b'COUNT', b'1']
        if self.chance(0.3):
            words += [b'REVERSE']
        self.pending.append(('open', self.client, words))
        choice = self.rng.random()
        if choice < 0.7:
            self.pending.append(self._say(b'INDEX', b'DROP', name, index))
        if choice < 0.6:
            def again():
                made = self.index_create(name, table) if table.families else None
                return self._as(self.client, made[:3] + [index] + made[4:] if made else [b'PING'])
            self.pending.append(again)
        if choice > 0.9:
            self.pending += [self._say(b'TABLE', b'RENAME', name, b't9'),
                             self._say(b'TABLE', b'RENAME', b't9', name)]
        if self.chance(0.2):
            self.pending.append(self._other())
        if self.chance(0.05):
            self.pending.append(('reload',))
        self.pending.append(('resume', self.client))

    def _disturb_watch(self, name):
        """What may happen between WATCH and EXEC beside ordinary commands."""
        choice = self.rng.random()
        space, _, own = name.rpartition(b'/')
        other = space + b'/t9' if space else b't9'
        if choice < 0.08:
            self.pending += [self._say(b'TABLE', b'RENAME', name, other),
                             self._say(b'TABLE', b'RENAME', other, name)]
        elif choice < 0.12:
            self.pending += [self._say(b'RENAME', own, b't9'), self._say(b'RENAME', b't9', own)]
        elif choice < 0.13:
            self.pending.append(('reload',))
        elif choice < 0.135:
            self.pending += [('save',), ('reload',)]
        elif choice < 0.145:
            self.pending += [self._other(), ('reload',)]

    def _transaction(self):
        found = self.table()
        if found is not None and self.chance(0.4):
            name, table = found
            if self.chance(0.5):
                self.pending.append(self._say(b'WATCH', name))
            else:
                self.pending.append(self._say(b'CWATCH', name, self.row_key(table)))
            for _ in range(self.rng.randint(0, 2)):
                self.pending.append(self._other())
            self._disturb_watch(name)
        if self.chance(0.03):
            self.pending.append(self._say(b'EXEC'))
        atomic = self.chance(0.4)
        self.pending.append(self._say(*([b'MULTI', b'ATOMIC'] if atomic else [b'MULTI'])))
        for _ in range(self.rng.randint(0, 5)):
            self.pending.append(self._queued())
        if self.chance(0.03):
            self.pending.append(self._say(b'CPUT'))
        self.pending.append(self._say(b'DISCARD' if self.chance(0.08) else b'EXEC'))
        self.pending.append(self._time)
