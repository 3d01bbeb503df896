"""Filters (cellar-query(7), "FILTER EXPRESSIONS"): parser and evaluation over a row's list of cells.

A filter becomes a function from (context, cells) to cells. `sink` appends to `context.sunk`, which
joins the result at the end. A string keeps its kind: `Literal('string', ...)`.

Copies of one cell (the manual leaves their order open) come branch by branch, as an interleave's branches
give them; what has gone into a sink comes behind what has not.
"""

import re
from collections import namedtuple
from fractions import Fraction

from . import times, values
from .orders import Bounds
from .refusals import Refused

FilterCell = namedtuple('FilterCell', 'family ranks qualifier timestamp type value labels expiry')
Literal = namedtuple('Literal', 'kind value')
BYTES_MAX = 20 * 1024
DEPTH_MAX = 20
_SPACE = b' \t\r\n'
_SUBJECTS = (b'row', b'family', b'qualifier', b'value', b'ts')


def in_order(cells):
    """Cells by column, newest first; equal ones stay as they came."""
    return sorted(cells, key=lambda cell: (cell.family, cell.ranks, -cell.timestamp))


class Context:
    """What a filter may ask about the row."""

    def __init__(self, table, row):
        self.table = table
        self.row = row
        self.sunk = []


class Filter:
    """A parsed expression; `families` are those that it names."""

    def __init__(self, text):
        parser = _Parser(text)
        self.step = parser.whole()
        self.families = parser.families

    def resolve(self, table):
        for name in self.families:
            table.family(name)
        return self

    def __call__(self, table, row, cells):
        context = Context(table, row)
        passed = self.step(context, cells)
        return in_order(passed + context.sunk) if context.sunk else passed


class _Parser:
    def __init__(self, text):
        if len(text) > BYTES_MAX:
            self.bad()
        self.text = text
        self.at = 0
        self.families = []

    def bad(self):
        raise Refused('BADFILTER')

    def space(self):
        while self.at < len(self.text) and self.text[self.at:self.at + 1] in (b' ', b'\t', b'\r', b'\n'):
            self.at += 1

    def see(self, mark):
        self.space()
        return self.text.startswith(mark, self.at)

    def take(self, mark):
        if self.see(mark):
            self.at += len(mark)
            return True
        return False

    def need(self, mark):
        if not self.take(mark):
            self.bad()

    def word(self):
        self.space()
        match = re.compile(rb'[a-z]+').match(self.text, self.at)
        if not match:
            self.bad()
        self.at = match.end()
        return match.group()

    def whole(self):
        step = self.filter(0, False)
        self.space()
        if self.at != len(self.text):
            self.bad()
        return step

    def filter(self, depth, inside_if):
        if depth > DEPTH_MAX:
            self.bad()
        steps = [self.step(depth, inside_if)]
        while self.take(b'|'):
            steps.append(self.step(depth, inside_if))

        def chain(context, cells):
            for step in steps:
                cells = step(context, cells)
            return cells

        return chain if len(steps) > 1 else steps[0]

    def step(self, depth, inside_if):
        if self.take(b'('):
            inner = self.filter(depth + 1, inside_if)
            self.need(b')')
            return inner
        if self.take(b'{'):
            branches = [self.filter(depth + 1, inside_if)]
            while self.take(b','):
                branches.append(self.filter(depth + 1, inside_if))
            self.need(b'}')
            return lambda context, cells: in_order(
                [cell for branch in branches for cell in branch(context, cells)])
        name = self.word()
        if name in _SUBJECTS:
            return self.comparison(name)
        if name == b'if':
            return self.condition(depth)
        if name == b'pass':
            return lambda context, cells: cells
        if name == b'block':
            return lambda context, cells: []
        if name == b'strip':
            return lambda context, cells: [_stripped(cell) for cell in cells]
        if name == b'sink':
            if inside_if:
                self.bad()
            return _sink
        self.need(b'(')
        step = self.call(name)
        self.need(b')')
        return step

    def condition(self, depth):
        self.need(b'(')
        test = self.filter(depth + 1, True)
        self.need(b';')
        yes = self.filter(depth + 1, True)
        no = self.filter(depth + 1, True) if self.take(b';') else None
        self.need(b')')

        def choose(context, cells):
            if test(context, cells):
                return yes(context, cells)
            return no(context, cells) if no is not None else []

        return choose

    def call(self, name):
        if name == b'label':
            label = self.literal()
            if label.kind != 'string' or not re.fullmatch(rb'[a-z0-9-]{1,15}', label.value):
                self.bad()
            return lambda context, cells: [
                cell._replace(labels=cell.labels + (label.value,)) for cell in cells]
        number = self.literal()
        if number.kind != 'number':
            self.bad()
        if name == b'sample':
            if not 0 <= number.value <= 1:
                self.bad()
            return lambda context, cells: cells
        if name not in (b'latest', b'limit', b'offset'):
            self.bad()
        if number.value != int(number.value) or number.value < 1:
            self.bad()
        count = int(number.value)
        if name == b'limit':
            return lambda context, cells: cells[:count]
        if name == b'offset':
            return lambda context, cells: cells[count:]

        def latest(context, cells):
            seen = {}
            kept = []
            for cell in cells:
                place = (cell.family, cell.ranks)
                seen[place] = seen.get(place, 0) + 1
                if seen[place] <= count:
                    kept.append(cell)
            return kept

        return latest

    def comparison(self, subject):
        if self.take(b'~'):
            pattern = self.literal()
            if pattern.kind != 'string' or subject == b'ts':
                self.bad()
            try:
                compiled = re.compile(pattern.value)
            except (re.error, OverflowError):
                self.bad()
            return lambda context, cells: [
                cell for cell in cells if compiled.fullmatch(_text(subject, context, cell))]
        for mark in (b'!=', b'<=', b'>=', b'=', b'<', b'>'):
            if self.take(mark):
                literal = self.literal(subject)
                self.note(subject, literal)
                return lambda context, cells: [
                    cell for cell in cells if _compares(subject, mark, literal, context, cell)]
        if self.word() != b'in':
            self.bad()
        low_mark = b'[' if self.take(b'[') else b'('
        if low_mark == b'(':
            self.need(b'(')
        low = None if self.see(b',') else self.literal(subject)
        self.need(b',')
        high = None if self.see(b']') or self.see(b')') else self.literal(subject)
        high_mark = b']' if self.take(b']') else b')'
        if high_mark == b')':
            self.need(b')')
        if low is not None and high is not None and low.kind != high.kind:
            self.bad()
        for literal in (low, high):
            if literal is not None and subject == b'ts' and literal.kind != 'number':
                self.bad()
        return lambda context, cells: [
            cell for cell in cells
            if _within(subject, (low_mark, low), (high_mark, high), context, cell)]

    def note(self, subject, literal):
        if subject == b'family' and literal.kind == 'string':
            self.families.append(literal.value)
        if subject == b'ts' and literal.kind != 'number':
            self.bad()

    def literal(self, subject=None):
        self.space()
        if self.take(b'"'):
            text = self.string()
            return self.moment(text) if subject == b'ts' else Literal('string', text)
        bare = re.compile(rb'[-+.A-Za-z0-9]*').match(self.text, self.at).group()
        if subject == b'ts' and times.read(bare) is not None:
            self.at += len(bare)
            return self.moment(bare)
        match = re.compile(rb'-?(inf|[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)').match(self.text, self.at)
        if match:
            self.at = match.end()
            text = match.group()
            return Literal('number', float(text) if b'inf' in text else Fraction(text.decode()))
        word = self.word()
        if word in (b'true', b'false'):
            return Literal('bool', word == b'true')
        return self.bad()

    def moment(self, text):
        micros = times.read(text)
        return self.bad() if micros is None else Literal('number', Fraction(micros))

    def string(self):
        out = bytearray()
        while True:
            if self.at >= len(self.text):
                self.bad()
            byte = self.text[self.at:self.at + 1]
            self.at += 1
            if byte == b'"':
                return bytes(out)
            if byte != b'\\':
                out += byte
                continue
            escape = self.text[self.at:self.at + 1]
            simple = {b'"': b'"', b'\\': b'\\', b'n': b'\n', b'r': b'\r', b't': b'\t'}
            if escape in simple:
                out += simple[escape]
                self.at += 1
            elif escape == b'x' and re.match(rb'[0-9a-fA-F]{2}', self.text[self.at + 1:self.at + 3]):
                out.append(int(self.text[self.at + 1:self.at + 3], 16))
                self.at += 3
            else:
                out += b'\\'


def _sink(context, cells):
    context.sunk.extend(cells)
    return []


def _stripped(cell):
    kind = 'string' if cell.type == 'string' else 'bytes'
    return cell._replace(type=kind, value=b'')


def _text(subject, context, cell):
    if subject == b'row':
        return context.row.key
    if subject == b'family':
        return cell.family
    if subject == b'qualifier':
        return cell.qualifier
    return values.print_value(cell.type, cell.value)


def _against(subject, literal, context, cell):
    """-1, 0, 1 of the cell against the literal; None where their kinds do not fit."""
    if subject in (b'row', b'qualifier'):
        if literal.kind != 'string':
            return None
        order = context.table.order if subject == b'row' else \
            context.table.families[cell.family].order
        mine = context.row.ranks if subject == b'row' else cell.ranks
        try:  # perhaps of the first components alone
            other = order.position(literal.value)
        except Refused:
            return None
        mine = mine[:len(other)]
    elif subject == b'family':
        if literal.kind != 'string':
            return None
        mine, other = cell.family, literal.value
    elif subject == b'ts':
        mine, other = cell.timestamp, literal.value
    else:
        mine, other = _value_and_literal(literal, cell)
        if other is None:
            return None
    return (mine > other) - (mine < other)


def _value_and_literal(literal, cell):
    kind, value = values.seen(cell.type, cell.value)
    cell = cell._replace(type=kind, value=value)
    if literal.kind == 'number':
        if cell.type in values.INTEGER_RANGES:
            return cell.value, literal.value
        if cell.type in values.FLOATS:
            return cell.value, values.round_literal(cell.type, literal.value)
    elif literal.kind == 'bool':
        if cell.type == 'bool':
            return cell.value, literal.value
    elif cell.type in values.TEXTS or cell.type == 'uuid':
        return values.print_value(cell.type, cell.value), literal.value
    return None, None


def _compares(subject, mark, literal, context, cell):
    sign = _against(subject, literal, context, cell)
    if sign is None:
        return False
    return {b'=': sign == 0, b'!=': sign != 0, b'<': sign < 0, b'<=': sign <= 0,
            b'>': sign > 0, b'>=': sign >= 0}[mark]


def _within(subject, low, high, context, cell):
    if subject in (b'row', b'qualifier'):
        if any(bound[1] is not None and bound[1].kind != 'string' for bound in (low, high)):
            return False
        order = context.table.order if subject == b'row' else \
            context.table.families[cell.family].order
        ranks = context.row.ranks if subject == b'row' else cell.ranks
        first = ('-',) if low[1] is None else ('[' if low[0] == b'[' else '(', low[1].value)
        last = ('+',) if high[1] is None else ('[' if high[0] == b']' else '(', high[1].value)
        try:
            return Bounds(order, first, last)(ranks)
        except Refused:
            return False
    if low[1] is not None:
        sign = _against(subject, low[1], context, cell)
        if sign is None or sign < 0 or (sign == 0 and low[0] == b'('):
            return False
    if high[1] is not None:
        sign = _against(subject, high[1], context, cell)
        if sign is None or sign > 0 or (sign == 0 and high[0] == b')'):
            return False
    return True
