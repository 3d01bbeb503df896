"""CAGG (cellar-query(7)): what a scan would return, folded in the plainest way."""

import functools
import math
from fractions import Fraction

from . import hll, values
from .orders import TEXTS, UUIDS
from .reads import ScanOptions
from .refusals import Refused
from .resp import BigNumber, Double, Predicate, as_map, make_map, same
from .words import split_column

FUNCTIONS = (b'ROWS', b'COUNT', b'SUM', b'AVG', b'MIN', b'MAX', b'DISTINCT', b'QUANTILE', b'HISTOGRAM')
DURATIONS = {b'ms': 1000, b's': 10**6, b'm': 60 * 10**6, b'h': 3600 * 10**6, b'd': 86400 * 10**6, b'': 10**6}
STATS_FIELDS = {b'rows', b'cells', b'bytes', b'groups', b'micros', b'skipped'}
DISTINCT_EXACT = 1024
# As the server counts types, for values that are equal but for it.
TYPE_ORDER = ('bytes', 'string', 'bool', 'u8', 'i8', 'i16', 'i32', 'i64', 'u16', 'u32', 'u64', 'f32', 'f64', 'uuid')


def three_way(a, b):
    return (a > b) - (a < b)


def read_duration(word):
    digits = word.rstrip(b'mshd')
    if not digits.isdigit() or word[len(digits):] not in DURATIONS:
        raise Refused('ERR')
    micros = int(digits) * DURATIONS[word[len(digits):]]
    if micros == 0 or micros > 2**63 - 1:
        raise Refused('ERR')
    return micros


def read_number(text):
    """An integer of 64 bits, or a float; None if it is neither."""
    number = values.read_integer(text)
    if number is not None and -2**63 <= number < 2**64:
        return number
    return values.read_float('f64', text)


def exact(number):
    """What numbers compare by: infinities stay floats."""
    return number if isinstance(number, int) or math.isinf(number) else Fraction(number)


def kind_of(type_name):
    return 0 if type_name == 'bool' else 2 if type_name in values.FLOATS else 1


def class_of(type_name):
    return 3 if type_name in values.TEXTS else 2 if type_name == 'uuid' else 1


def value_key(type_name, value):
    """What makes two values one, and sorts them."""
    type_name, value = values.seen(type_name, value)
    group = class_of(type_name)
    if group != 1:
        return group, value, 0
    return 1, exact(int(value) if type_name == 'bool' else value), kind_of(type_name)


def as_seen(cell):
    kind, value = values.seen(cell.type, cell.value)
    return cell if kind == cell.type else cell._replace(type=kind, value=value)


def extreme_key(cell):
    key = value_key(cell.type, cell.value)
    minus = cell.type in values.FLOATS and math.copysign(1, cell.value) < 0
    return key + (not minus, TYPE_ORDER.index(cell.type))


def show_integer(number, protocol):
    if -2**63 <= number < 2**63:
        return number
    return BigNumber(number) if protocol == 3 else b'%d' % number


def show_double(number, protocol):
    text = 'nan' if math.isnan(number) else values.print_float('f64', number)
    return Double(text) if protocol == 3 else text.encode()


def show_number(number, protocol):
    return show_integer(number, protocol) if isinstance(number, int) else show_double(number, protocol)


def to_double(number):
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def floor_to(step, number):
    if isinstance(step, int) and isinstance(number, int):
        return number // step * step
    by = float(step)
    quotient = to_double(number) / by if math.isfinite(to_double(number)) else to_double(number)
    whole = quotient if math.isinf(quotient) else float(math.floor(quotient))
    return whole * by


class Backwards:
    """A key turned round."""

    def __init__(self, key):
        self.key = key

    def __lt__(self, other):
        return other.key < self.key

    def __eq__(self, other):
        return self.key == other.key

    def __hash__(self):
        return hash(self.key)


class Term:
    def __init__(self, words):
        self.kind = words.next().upper()
        self.count = None
        self.step = None
        if self.kind == b'KEY':
            if words.more() and words.keyword().isdigit():
                self.count = words.count()
        elif self.kind == b'PART':
            word = words.next()
            self.part = word
            if word.isdigit() and not int(word):
                raise Refused('ERR')
            self._take_step(words)
        elif self.kind in (b'BYTES', b'QUALIFIER'):
            self.count = words.count()
        elif self.kind == b'TIME':
            self.duration = read_duration(words.next())
        elif self.kind == b'VALUE':
            self.family, self.qualifier = split_column(words.next())
            self._take_step(words)
        elif self.kind not in (b'FAMILY', b'COLUMN'):
            raise Refused('ERR')

    def _take_step(self, words):
        if words.take(b'STEP'):
            self.step_text = words.next()
            self.step = self.step_text

    def _resolve_step(self):
        if self.step is None:
            return
        number = values.read_integer(self.step_text)
        if number is None or not 0 < number < 2**63:
            number = values.read_float('f64', self.step_text)
            if number is None or not 0 < number < math.inf:
                raise Refused('ERR')
        self.step = number

    def resolve(self, table, families):
        parts = table.order.parts
        if self.kind == b'KEY':
            if self.count is not None and self.count > len(parts):
                raise Refused('ERR')
        elif self.kind == b'PART':
            self._resolve_part(table)
        elif self.kind == b'BYTES':
            if len(parts) > 1 or parts[0][0] not in TEXTS:
                raise Refused('ERR')
        elif self.kind == b'QUALIFIER':
            orders = [table.families[name].order for name in families]
            self.as_text = len({order.text() for order in orders}) > 1
            if orders and self.count > max(len(order.parts) for order in orders):
                raise Refused('ERR')
        elif self.kind == b'VALUE':
            self.place, _ = table.column(self.family, self.qualifier)
            declared = table.families[self.family].type
            if self.step is not None and declared is not None and class_of(declared) != 1:
                raise Refused('ERR')
            self._resolve_step()

    def _resolve_part(self, table):
        parts = table.order.parts
        name = self.part.decode('latin-1')
        if self.part.isdigit() and int(self.part) <= len(parts):
            self.at = int(self.part) - 1
        elif not self.part.isdigit() and name in table.order.names:
            self.at = table.order.names.index(name)
        else:
            raise Refused('ERR')
        self.type, self.descending = parts[self.at]
        if self.step is None:
            return
        if self.type in TEXTS + UUIDS + ('bool',):
            raise Refused('ERR')
        self._resolve_step()
        if self.type not in values.FLOATS and not isinstance(self.step, int):
            raise Refused('ERR')

    def of(self, table, row, cell, now, protocol):
        """(what sorts and tells groups apart, what is shown)"""
        return getattr(self, '_' + self.kind.decode().lower())(table, row, cell, now, protocol)

    @staticmethod
    def _texts(order, text):
        return text.split(order.delimiter, len(order.parts) - 1) if len(order.parts) > 1 else [text]

    def _key(self, table, row, cell, now, protocol):
        del cell, now, protocol
        count = self.count or len(table.order.parts)
        return row.ranks[:count], table.order.delimiter.join(self._texts(table.order, row.key)[:count])

    def _part(self, table, row, cell, now, protocol):
        del cell, now
        text = self._texts(table.order, row.key)[self.at]
        if self.type in TEXTS + UUIDS:
            return row.ranks[self.at], text
        if self.type == 'recno':
            number = int(text)
        else:
            number = values.read_or_none(self.type, text)
            if self.step is None:
                return row.ranks[self.at], values.reply(self.type, number, protocol)
        if self.step is None:
            return number, number
        floored = floor_to(self.step, number)
        floored = floored if isinstance(floored, int) else floored + 0.0
        key = (exact(floored),)
        return (Backwards(key) if self.descending else key), show_number(floored, protocol)

    def _bytes(self, table, row, cell, now, protocol):
        del cell, now, protocol
        text = row.key[:self.count]
        return (Backwards((text,)) if table.order.parts[0][1] else (text,)), text

    @staticmethod
    def _family(table, row, cell, now, protocol):
        del table, row, now, protocol
        return cell.family, cell.family

    @staticmethod
    def _column(table, row, cell, now, protocol):
        del table, row, now, protocol
        return (cell.family, cell.ranks), cell.family + b':' + cell.qualifier

    def _qualifier(self, table, row, cell, now, protocol):
        del row, now, protocol
        order = table.families[cell.family].order
        text = order.delimiter.join(self._texts(order, cell.qualifier)[:self.count])
        return (text if self.as_text else cell.ranks[:self.count]), text

    def _time(self, table, row, cell, now, protocol):
        del table, row, now, protocol
        floored = cell.timestamp // self.duration * self.duration
        return floored, floored

    def _value(self, table, row, cell, now, protocol):
        del cell
        cell = table.newest(row, self.place, now)
        cell = cell and as_seen(cell)
        if cell is None or (self.step is not None and class_of(cell.type) != 1):
            return (0,), None
        if self.step is None:
            value = cell.value
            if cell.type in values.FLOATS and value == 0:
                value = 0.0
            return value_key(cell.type, value), values.reply(cell.type, value, protocol)
        floored = floor_to(self.step, int(cell.value) if cell.type == 'bool' else cell.value)
        floored = floored if isinstance(floored, int) else floored + 0.0
        kind = 1 if isinstance(floored, int) else 2
        return (1, exact(floored), kind), show_number(floored, protocol)


class Reduce:
    def __init__(self, words):
        self.function = words.next().upper()
        if self.function not in FUNCTIONS:
            raise Refused('ERR')
        self.target = words.next()
        self.numbers = words.several() if self.function in (b'QUANTILE', b'HISTOGRAM') else []
        self.name = words.next() if words.take(b'AS') else None

    def resolve_target(self, table):
        self.family, colon, qualifier = self.target.partition(b':')
        self.place = None
        if self.target == b'*':
            self.family = None
            return b'*'
        if not colon:
            table.family(self.family)
            return self.family
        self.place, text = table.column(self.family, qualifier)
        return self.family + b':' + text

    def resolve(self, table):
        target = self.resolve_target(table)
        if self.name is None:
            self.name = self.function.lower() + b'(' + target + b')'
        self.bounds = []
        for text in self.numbers:
            number = read_number(text)
            if number is None:
                raise Refused('BADVALUE')
            if self.function == b'QUANTILE':
                if not 0 <= number <= 1:
                    raise Refused('BADVALUE')
            elif self.bounds and exact(number) <= exact(self.bounds[-1]):
                raise Refused('BADVALUE')
            self.bounds.append(number)

    def takes(self, cell):
        if self.family is None:
            return True
        return cell.family == self.family and self.place in (None, (cell.family, cell.ranks))

    def numbers_of(self, table, cells):
        found = []
        for _, cell in cells:
            cell = as_seen(cell)
            if class_of(cell.type) == 1:
                found.append(int(cell.value) if cell.type == 'bool' else cell.value)
            elif cell.type in values.TEXTS and table.families[cell.family].type is None:
                number = read_number(cell.value)
                if number is not None:
                    found.append(number)
        return found

    def result(self, table, cells):
        """(what SORT compares, show(protocol))"""
        return getattr(self, '_' + self.function.decode().lower())(table, cells)

    @staticmethod
    def _integer(number):
        return (2, number, 1), functools.partial(show_integer, number)

    @staticmethod
    def _double(number):
        key = (1,) if math.isnan(number) else (2, exact(number), 2)
        return key, functools.partial(show_double, number)

    def _rows(self, table, cells):
        del table
        return self._integer(len({row for row, _ in cells}))

    def _count(self, table, cells):
        del table
        return self._integer(len(cells))

    @staticmethod
    def sum_of(numbers):
        floats = [number for number in numbers if isinstance(number, float)]
        if not floats:
            return sum(numbers)
        infinite = {number for number in floats if math.isinf(number)}
        if infinite:
            return infinite.pop() if len(infinite) == 1 else math.nan
        return to_double(sum(map(Fraction, numbers)))

    def _sum(self, table, cells):
        total = self.sum_of(self.numbers_of(table, cells))
        return self._integer(total) if isinstance(total, int) else self._double(total)

    def _avg(self, table, cells):
        numbers = self.numbers_of(table, cells)
        if not numbers:
            return (0,), lambda protocol: None
        return self._double(to_double(self.sum_of(numbers)) / len(numbers))

    def _extreme(self, cells, choose):
        if not cells:
            return (0,), lambda protocol: None
        cell = choose((as_seen(cell) for _, cell in cells), key=extreme_key)
        return (2,) + value_key(cell.type, cell.value), \
            lambda protocol: values.reply(cell.type, cell.value, protocol)

    def _min(self, table, cells):
        del table
        return self._extreme(cells, min)

    def _max(self, table, cells):
        del table
        return self._extreme(cells, max)

    def _distinct(self, table, cells):
        del table
        union = ()
        for _, cell in cells:
            if cell.type == 'hll':
                union = hll.merge(union, cell.value)
        count = len({value_key(cell.type, cell.value) for _, cell in cells if cell.type != 'hll'})
        if union:
            return self._integer(count + hll.estimate(union))
        if count <= DISTINCT_EXACT:
            return self._integer(count)
        near = Predicate('about %d' % count,
                         lambda got: isinstance(got, int) and abs(got - count) <= 0.05 * count)
        return (2, count, 1), lambda protocol: near

    def _quantile(self, table, cells):
        numbers = sorted(map(to_double, self.numbers_of(table, cells)))
        if not numbers:
            return (0,), lambda protocol: None
        found = []
        for q in self.bounds:
            rank = max(1, math.ceil(Fraction(float(q) * len(numbers))))
            found.append(numbers[rank - 1])

        def show(protocol):
            return [Predicate('within 1 %% of %r' % number, functools.partial(self._near, number, protocol))
                    for number in found]
        return (0,), show

    @staticmethod
    def _near(number, protocol, got):
        text = got.text if protocol == 3 and isinstance(got, Double) else got
        if not isinstance(text, (bytes, str)):
            return False
        shown = float(text)
        return shown == number or abs(shown - number) <= abs(number) * 0.01

    def _histogram(self, table, cells):
        counts = [0] * (len(self.bounds) + 1)
        bounds = [exact(bound) for bound in self.bounds]
        for number in self.numbers_of(table, cells):
            counts[sum(bound <= exact(number) for bound in bounds)] += 1
        return (0,), lambda protocol: counts


class AggregateOptions(ScanOptions):
    def __init__(self):
        super().__init__()
        self.terms = []
        self.reduces = []
        self.sort = None
        self.descending = False
        self.limit = (0, None)

    def _parse_row_option(self, words, counting):
        name = words.keyword()
        if name == b'BY':
            words.next()
            self.terms.append(Term(words))
        elif name == b'REDUCE':
            words.next()
            self.reduces.append(Reduce(words))
        elif name == b'SORT':
            words.next()
            self.once(b'SORT')
            self.sort = words.next()
            self.descending = words.take(b'DESC')
            if not self.descending:
                words.take(b'ASC')
        elif name == b'LIMIT':
            words.next()
            self.once(b'LIMIT')
            self.limit = (words.count(zero=True), words.count())
        else:
            return super()._parse_row_option(words, False)
        return True

    def parse_all(self, words, counting=False):
        super().parse_all(words, False)
        if not self.reduces:
            raise Refused('ERR')

    def resolve(self, table):
        """The targets are read as columns where nothing but them can matter."""
        super().resolve(table)
        targets = [reduce.target for reduce in self.reduces]
        if self.filter_text is None and not self.each and not self.skip and not self.groups and not self.per_row \
                and b'*' not in targets:
            for reduce in self.reduces:
                reduce.resolve_target(table)

    def families(self, table):
        """Families of which cells may be taken."""
        names = {spec[1] for spec in self.selection.specs} if self.selection else set(table.families)
        if all(reduce.target != b'*' for reduce in self.reduces):
            names &= {reduce.target.partition(b':')[0] for reduce in self.reduces}
        return sorted(names)

    def resolve_groups(self, table):
        families = self.families(table)
        for term in self.terms:
            term.resolve(table, families)
        names = set()
        for reduce in self.reduces:
            reduce.resolve(table)
            if reduce.name in names:
                raise Refused('ERR')
            names.add(reduce.name)
        if self.sort is not None:
            found = [reduce for reduce in self.reduces if reduce.name == self.sort]
            if not found or found[0].function in (b'QUANTILE', b'HISTOGRAM'):
                raise Refused('ERR')


def fold(options, table, now, protocol):
    """Groups in the order of their terms: [(shown terms, [[(row, cell) ...] for each REDUCE])]"""
    groups = {}
    if not options.terms:
        groups[()] = ([], [[] for _ in options.reduces])
    for serial, (row, columns) in enumerate(options.matching(table, now)):
        for column in columns:
            for cell in column:
                takers = [at for at, reduce in enumerate(options.reduces) if reduce.takes(cell)]
                if not takers:
                    continue
                pairs = [term.of(table, row, cell, now, protocol) for term in options.terms]
                key = tuple(pair[0] for pair in pairs)
                group = groups.setdefault(key, ([pair[1] for pair in pairs], [[] for _ in options.reduces]))
                for at in takers:
                    group[1][at].append((serial, cell))
    return [groups[key] for key in sorted(groups)]


def cagg(model, session, words):
    name = words.next()
    options = AggregateOptions()
    options.parse_all(words)
    table = model.table(session, name)
    options.resolve_all(table)
    options.resolve_groups(table)
    protocol = session.protocol
    shown = []
    for terms, cells in fold(options, table, model.now, protocol):
        results = [reduce.result(table, cells[at]) for at, reduce in enumerate(options.reduces)]
        pairs = [(reduce.name, results[at][1](protocol)) for at, reduce in enumerate(options.reduces)]
        sort = None
        if options.sort is not None:
            sort = results[[reduce.name for reduce in options.reduces].index(options.sort)][0]
        shown.append((sort, [terms, make_map(pairs, protocol)]))
    if options.row_reverse:
        shown.reverse()
    if options.sort is not None:
        sign = -1 if options.descending else 1
        shown.sort(key=functools.cmp_to_key(lambda a, b: sign * three_way(a[0], b[0])))
    skip, limit = options.limit
    groups = [group for _, group in shown][skip:None if limit is None else skip + limit]
    if options.sample is not None and options.sample < 1:
        return Predicate('groups of a sample', lambda got: isinstance(got, list))
    if not options.stats:
        return groups

    def holds(got):
        return isinstance(got, list) and len(got) == 2 and same(groups, got[0]) and \
            {field for field, _ in as_map(got[1])} - {b'index', b'notes'} == STATS_FIELDS
    return Predicate('%r and STATS' % (groups,), holds)


