"""CAGG (cellar-query(7)): what a scan would return, folded in the plainest way."""

import functools
import math
import re
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

from . import hll, values, zones
from .orders import TEXTS, UUIDS
from .reads import IDLE, ScanOptions
from .refusals import Refused
from .resp import BigNumber, Double, Predicate, as_map, make_map, same
from .words import split_column

FUNCTIONS = (b'ROWS', b'COUNT', b'SUM', b'AVG', b'MIN', b'MAX', b'FIRST', b'LAST', b'STDDEV', b'VARIANCE', b'DELTA',
             b'RATE', b'DISTINCT', b'QUANTILE', b'HISTOGRAM')
CELL_FUNCTIONS = (b'MIN', b'MAX', b'FIRST', b'LAST')
ARRAY_FUNCTIONS = (b'QUANTILE', b'HISTOGRAM')
QUANTILE_EXACT_MAX = 1024
OPERATORS = {b'EQ': lambda sign: sign == 0, b'NE': lambda sign: sign != 0, b'LT': lambda sign: sign < 0,
             b'LE': lambda sign: sign <= 0, b'GT': lambda sign: sign > 0, b'GE': lambda sign: sign >= 0}
# More groups than these, or of longer keys, are not made here. Whether the server's memory is enough for them is not for a
# model to say, but beyond FITTING_MAX it never is.
FILLED_MAX = 20000
FILLED_KEY_BYTES_MAX = 16 << 20
FITTING_MAX = 10**6
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


def written(type_name, number):
    """The number that a stored one is as it is written; infinities stay floats."""
    if isinstance(number, int) or math.isinf(number):
        return number
    return Fraction(Decimal(values.print_float(type_name, number)))


def floor_to(step, type_name, number):
    """`step` is a Fraction. Integers stay integers, of decimals each is the decimal that it is written as."""
    if isinstance(number, int):
        if step.denominator == 1 and step < 2**64:
            return number // step.numerator * step.numerator
        if abs(number) > 2**53:
            raise Refused('ERR')
    elif math.isinf(number):
        return number
    multiple = written(type_name, number) // step * step
    return max(to_double(multiple), -sys.float_info.max) + 0.0


def is_number(text):
    if re.fullmatch(rb'[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?', text):
        return True
    return values.read_float('f64', text) is not None


def sign_beside(number, text):
    """Of a result, beside a text that is a number; None if the result is none."""
    if isinstance(number, float) and math.isnan(number):
        return None
    literal = values.read_float('f64', text)
    if literal is None or not math.isinf(literal):
        literal = Fraction(Decimal(text.decode()))
    return three_way(written('f64', number), literal)


NULL_RESULT = (0,), lambda protocol: None, lambda text: None


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
            word = words.next()
            self.time_step = zones.TimeStep(word, words.next() if words.take(b'TZ') else None, read_duration)
        elif self.kind == b'VALUE':
            self.family, self.qualifier = split_column(words.next())
            self._take_step(words)
        elif self.kind not in (b'FAMILY', b'COLUMN'):
            raise Refused('ERR')

    def _take_step(self, words):
        if words.take(b'STEP'):
            text = words.next()
            number = values.read_float('f64', text)
            if number is None or not 0 < number < math.inf:
                raise Refused('ERR')
            self.step = Fraction(Decimal(text.decode()))
            digits = Decimal(text.decode()).as_tuple().digits
            if int(''.join(map(str, digits)).rstrip('0')) >= 2**64:
                raise Refused('ERR')

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
            declared = table.families[self.family].type_of(self.place[1])
            if self.step is not None and declared is not None and class_of(declared) != 1:
                raise Refused('ERR')

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
        if self.type not in values.FLOATS and (self.step.denominator != 1 or self.step >= 2**64):
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
        floored = floor_to(self.step, self.type, number)
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
        floored = self.time_step.begin(cell.timestamp)
        return floored, floored

    def has_steps(self):
        return self.kind == b'TIME' or self.step is not None

    def step_of(self, key):
        """(number, is it an integer) behind a key; None if it is no step."""
        if self.kind == b'TIME':
            return key, True
        if self.kind == b'PART':
            number = key.key[0] if isinstance(key, Backwards) else key[0]
            whole = self.type not in values.FLOATS
        elif key[0] == 0:
            return None
        else:
            number, whole = key[1], key[2] == 1
        return None if isinstance(number, float) else (number, whole)

    def next_step(self, step):
        """(number, key, shown) of the one behind it."""
        number, whole = step
        if self.kind == b'TIME':
            number = self.time_step.next(number)
            return (number, True), number, lambda protocol: number
        if whole:
            number = int(number) + int(self.step)
        else:
            behind = float(number) + 1.5 * to_double(self.step)
            number = floor_to(self.step, 'f64', behind)
        if self.kind == b'PART':
            key = Backwards((exact(number),)) if self.descending else (exact(number),)
        else:
            key = 1, exact(number), 1 if whole else 2
        return (exact(number), whole), key, functools.partial(show_number, number)

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
        floored = floor_to(self.step, cell.type, int(cell.value) if cell.type == 'bool' else cell.value)
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
            if not (isinstance(number, float) and math.isinf(number)):
                number = Fraction(Decimal(text.decode()))
            if self.function == b'QUANTILE':
                if not 0 <= number <= 1:
                    raise Refused('BADVALUE')
            elif self.bounds and number <= self.bounds[-1]:
                raise Refused('BADVALUE')
            self.bounds.append(number)

    def takes(self, cell):
        if self.family is None:
            return True
        return cell.family == self.family and self.place in (None, (cell.family, cell.ranks))

    def numbers_of(self, table, cells):
        return [number for _, number in self.typed_numbers_of(table, cells)]

    @staticmethod
    def typed_numbers_of(table, cells):
        """(type as which it is written, number)"""
        found = []
        for _, cell in cells:
            cell = as_seen(cell)
            if class_of(cell.type) == 1:
                found.append((cell.type, int(cell.value) if cell.type == 'bool' else cell.value))
            elif cell.type in values.TEXTS and table.families[cell.family].type_of(cell.ranks) is None:
                number = read_number(cell.value)
                if number is not None and not (isinstance(number, float) and math.isinf(number)):
                    found.append(('f64', number))
        return found

    def result(self, table, cells):
        """(what SORT compares, show(protocol), sign(text): of the result beside a text, None if they do not compare)"""
        return getattr(self, '_' + self.function.decode().lower())(table, cells)

    @staticmethod
    def _integer(number):
        return (2, number, 1), functools.partial(show_integer, number), functools.partial(sign_beside, number)

    @staticmethod
    def _double(number):
        key = (1,) if math.isnan(number) else (2, exact(number), 2)
        return key, functools.partial(show_double, number), functools.partial(sign_beside, number)

    def _number(self, number):
        return self._integer(number) if isinstance(number, int) else self._double(number)

    @staticmethod
    def _cell(type_name, value):
        return (2,) + value_key(type_name, value), functools.partial(values.reply, type_name, value), \
            functools.partial(values.compare, type_name, value)

    def _first(self, table, cells):
        del table
        return self._by_time(cells, min)

    def _last(self, table, cells):
        del table
        return self._by_time(cells, max)

    def _by_time(self, cells, choose):
        if not cells:
            return NULL_RESULT
        _, cell = choose(cells, key=lambda pair: (pair[1].timestamp, pair[0][1], pair[1].family, pair[1].ranks))
        cell = as_seen(cell)
        return self._cell(cell.type, cell.value)

    def _spread(self, table, cells, root):
        numbers = self.numbers_of(table, cells)
        if len(numbers) < 2:
            return NULL_RESULT
        if any(isinstance(number, float) and math.isinf(number) for number in numbers):
            return self._double(math.nan)
        numbers = [Fraction(number) for number in numbers]
        mean = sum(numbers) / len(numbers)
        variance = sum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1)
        if root:
            with localcontext() as context:
                context.prec = 60
                variance = (Decimal(variance.numerator) / Decimal(variance.denominator)).sqrt()
        number = to_double(variance)
        near = functools.partial(self._near, number, 1e-9)
        return (2, exact(number), 2), \
            lambda protocol: Predicate('about %r' % number, functools.partial(near, protocol)), \
            functools.partial(sign_beside, number)

    def _stddev(self, table, cells):
        return self._spread(table, cells, True)

    def _variance(self, table, cells):
        return self._spread(table, cells, False)

    def _growth(self, table, cells):
        """(sum, micros from first to last), None without numbers"""
        counters, times, floats = {}, [], False
        for place, cell in cells:
            numbers = self.numbers_of(table, [(place, cell)])
            if numbers:
                counters.setdefault((place, cell.family, cell.ranks), []).append((cell.timestamp, numbers[0]))
                times.append(cell.timestamp)
                floats |= isinstance(numbers[0], float)
        if not times:
            return None
        steps = [0.0] if floats else []
        for counter in counters.values():
            counter.sort(key=lambda pair: pair[0])
            for (_, before), (_, after) in zip(counter, counter[1:]):
                if exact(after) != exact(before):
                    steps += [after, -before] if exact(after) > exact(before) else [after]
        return self.sum_of(steps), max(times) - min(times)

    def _delta(self, table, cells):
        found = self._growth(table, cells)
        return NULL_RESULT if found is None else self._number(found[0])

    def _rate(self, table, cells):
        found = self._growth(table, cells)
        if found is None or not found[1]:
            return NULL_RESULT
        return self._double(to_double(found[0]) / (found[1] / 1e6))

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
        return self._number(self.sum_of(self.numbers_of(table, cells)))

    def _avg(self, table, cells):
        numbers = self.numbers_of(table, cells)
        if not numbers:
            return NULL_RESULT
        return self._double(to_double(self.sum_of(numbers)) / len(numbers))

    def _extreme(self, cells, choose):
        if not cells:
            return NULL_RESULT
        cell = choose((as_seen(cell) for _, cell in cells), key=extreme_key)
        return self._cell(cell.type, cell.value)

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
        return (2, count, 1), lambda protocol: near, functools.partial(sign_beside, count)

    def _quantile(self, table, cells):
        numbers = sorted(map(to_double, self.numbers_of(table, cells)))
        if not numbers:
            return NULL_RESULT
        found = []
        for q in self.bounds:
            rank = max(1, math.ceil(q * len(numbers)))
            found.append(numbers[rank - 1])

        part = 0 if len(set(numbers)) <= QUANTILE_EXACT_MAX else 0.01

        def show(protocol):
            return [Predicate('within %g of %r' % (part, number), functools.partial(self._near, number, part, protocol))
                    for number in found]
        return (0,), show, None

    @staticmethod
    def _near(number, part, protocol, got):
        text = got.text if protocol == 3 and isinstance(got, Double) else got
        if not isinstance(text, (bytes, str)):
            return False
        shown = float(text)
        return shown == number or abs(shown - number) <= abs(number) * part

    def _histogram(self, table, cells):
        counts = [0] * (len(self.bounds) + 1)
        for number in self.typed_numbers_of(table, cells):
            counts[sum(bound <= written(*number) for bound in self.bounds)] += 1
        return (0,), lambda protocol: counts, None


class AggregateOptions(ScanOptions):
    def __init__(self):
        super().__init__()
        self.terms = []
        self.reduces = []
        self.having = []
        self.fill = None
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
        elif name == b'HAVING':
            words.next()
            result, operator = words.next(), words.next().upper()
            if operator not in OPERATORS:
                raise Refused('ERR')
            self.having.append((result, operator, words.next()))
        elif name == b'FILL':
            words.next()
            self.once(b'FILL')
            self.fill = words.next()
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
        if not self.reduces or self.seen & IDLE:
            raise Refused('ERR')

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
        for name, _, text in self.having:
            if self._of_name(name).function not in CELL_FUNCTIONS and not is_number(text):
                raise Refused('BADVALUE')
        self._resolve_fill()
        if self.sort is not None:
            self._of_name(self.sort)

    def _of_name(self, name):
        found = [reduce for reduce in self.reduces if reduce.name == name]
        if not found or found[0].function in ARRAY_FUNCTIONS:
            raise Refused('ERR')
        return found[0]

    def _resolve_fill(self):
        self.fill_at = None
        if self.fill is None:
            return
        steps = [at for at, term in enumerate(self.terms) if term.has_steps()]
        if len(steps) != 1:
            raise Refused('ERR')
        self.fill_at = steps[0]
        self.fill_result = NULL_RESULT
        if self.fill.upper() in (b'NULL', b'PREVIOUS'):
            return
        for kind in ('i64', 'u64', 'f64'):
            number = values.read_or_none(kind, self.fill)
            if number is not None:
                self.fill_result = kind, number
                return
        raise Refused('BADVALUE')

    def filled(self, groups):
        """[(key, shown terms, results)] with the groups that FILL adds; None if they are too many."""
        at, term = self.fill_at, self.terms[self.fill_at]
        series = {}
        for key, shown, results in groups:
            series.setdefault(key[:at] + key[at + 1:], []).append((key, shown, results))
        found, runs = [], []
        for members in series.values():
            steps = sorted(((term.step_of(member[0][at]), member) for member in members if term.step_of(member[0][at])),
                           key=lambda pair: (pair[0][0], not pair[0][1]))
            runs += zip(steps, steps[1:])
        missing = key_bytes = 0
        for (step, (key, _, _)), (until, _) in runs:
            size = term.next_step(step)[0][0] - step[0]
            if size <= 0 or missing > FITTING_MAX:
                raise Refused('TOOLARGE')
            missing += (until[0] - step[0]) / size
            key_bytes += (until[0] - step[0]) / size * len(repr(key))
        if missing > FILLED_MAX + len(runs) or key_bytes > FILLED_KEY_BYTES_MAX:
            if missing > FITTING_MAX + len(runs):
                raise Refused('TOOLARGE')
            return None
        for (step, (key, shown, results)), (until, _) in runs:
            if self.fill.upper() != b'PREVIOUS':
                results = [self._filling(reduce) for reduce in self.reduces]
            while True:
                following, part, show = term.next_step(step)
                if following[0] <= step[0]:
                    raise Refused('TOOLARGE')
                if not following[0] < until[0]:
                    break
                found.append((key[:at] + (part,) + key[at + 1:], shown[:at] + [show] + shown[at + 1:], results))
                step = following
        return groups + found

    def _filling(self, reduce):
        if self.fill_result is NULL_RESULT:
            return NULL_RESULT
        kind, number = self.fill_result
        key, show, sign = Reduce._cell(kind, number)
        if reduce.function not in CELL_FUNCTIONS:
            key = (2, exact(number), 2 if kind == 'f64' else 1)
        return key, show, sign


def fold(options, table, now, protocol):
    """Groups in the order of their terms: [(key, shown terms, [[(row, cell) ...] for each REDUCE])]"""
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
                    group[1][at].append(((serial, row.ranks), cell))
    return [(key,) + groups[key] for key in sorted(groups)]


def having_holds(options, results):
    for name, operator, text in options.having:
        sign = results[[reduce.name for reduce in options.reduces].index(name)][2](text)
        if not (operator == b'NE' if sign is None else OPERATORS[operator](sign)):
            return False
    return True


def results_of(options, table, now, protocol):
    """[(key, shown terms, results)] with FILL and HAVING; None if FILL makes too many."""
    groups = [(key, terms, [reduce.result(table, cells[at]) for at, reduce in enumerate(options.reduces)])
              for key, terms, cells in fold(options, table, now, protocol)]
    if options.fill is not None:
        groups = options.filled(groups)
        if groups is None:
            return None
        groups.sort(key=lambda group: group[0])
    return [group for group in groups if having_holds(options, group[2])]


def cagg(model, session, words):
    name = words.next()
    options = AggregateOptions()
    options.parse_all(words)
    table = model.table(session, name)
    options.resolve_names(table)
    options.resolve_groups(table)
    options.resolve_rest(table)
    protocol = session.protocol
    shown = []
    drawn = options.sample is not None and options.sample < 1
    try:
        groups = results_of(options, table, model.now, protocol)
    except Refused as refused:
        if drawn and refused.code == 'TOOLARGE':  # fewer rows, fewer groups to fill between
            return Predicate('groups of a sample, or too many', lambda got: True)
        raise
    if groups is None:
        return Predicate('many groups, or too many', lambda got: True)
    for _, terms, results in groups:
        terms = [term(protocol) if callable(term) else term for term in terms]
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
    if drawn:
        return Predicate('groups of a sample', lambda got: isinstance(got, list))
    if not options.stats:
        return groups

    def holds(got):
        return isinstance(got, list) and len(got) == 2 and same(groups, got[0]) and \
            {field for field, _ in as_map(got[1])} - {b'index', b'notes'} == STATS_FIELDS
    return Predicate('%r and STATS' % (groups,), holds)


