"""Orders of row keys and qualifiers (cellar-model(7), "KEY ORDERS"): reading, canonical text, bounds, prefixes.

A key is held as a tuple of *ranks*, one a component, that Python compares in the order's sense;
beside it stands its canonical text. A descending component's rank is turned round, so that tuples
always compare ascending.
"""

import math
import re
import uuid

from . import times, values
from .refusals import Refused

DELIMITERS = b'#/|:,;~.'
_NAME = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_-]{0,63}\Z')
TEXTS = ('bytes', 'ascii', 'utf8')
UUIDS = ('uuid', 'luuid', 'timeuuid')
COMPONENTS = TEXTS + UUIDS + ('bool',) + values.FLOATS + tuple(values.INTEGER_RANGES)


class _Backwards:
    """A text's rank in a descending component. A prefix comes after what it begins."""

    __slots__ = ('text',)

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return self.text == other.text

    def __lt__(self, other):
        return self.text > other.text

    def __gt__(self, other):
        return self.text < other.text

    def __le__(self, other):
        return self.text >= other.text

    def __ge__(self, other):
        return self.text <= other.text

    def __hash__(self):
        return hash(self.text)

    def __repr__(self):
        return '-%r' % self.text


def bad_key():
    return Refused('BADKEY')


def _rank_and_text(kind, text):
    """(rank, canonical text) of an ascending component, or BADKEY."""
    if kind == 'bytes':
        return text, text
    if kind == 'ascii':
        if any(byte >= 0x80 for byte in text):
            raise bad_key()
        return text, text
    if kind == 'utf8':
        if not values.is_utf8(text):
            raise bad_key()
        return text, text
    if kind == 'recno':
        number = values.read_integer(text)
        if number is None or not 1 <= number <= 2**63 - 1:
            raise bad_key()
        return number, b'%d' % number
    if kind in UUIDS:
        raw = values.read_uuid(text)
        if raw is None:
            raise bad_key()
        canonical = str(uuid.UUID(bytes=raw)).encode()
        if kind == 'uuid':
            return raw, canonical
        if kind == 'luuid':
            return (int.from_bytes(raw[:8], 'big', signed=True),
                    int.from_bytes(raw[8:], 'big', signed=True)), canonical
        if uuid.UUID(bytes=raw).bytes[6] >> 4 != 1:
            raise bad_key()
        return (uuid.UUID(bytes=raw).time, raw), canonical
    value = values.read_or_none(kind, text)
    if value is None:
        raise bad_key()
    if kind in values.FLOATS and value == 0:
        value = 0.0
    return value, values.print_value(kind, value)


def _backwards(rank):
    if isinstance(rank, bytes):
        return _Backwards(rank)
    if isinstance(rank, tuple):
        return tuple(map(_backwards, rank))
    if isinstance(rank, _Backwards):
        return rank.text
    return -rank


class Order:
    """`parts` is a list of (component, descending), `names` one of names, empty where there is none."""

    def __init__(self, parts, delimiter, names=None):
        self.parts = parts
        self.names = names or [''] * len(parts)
        self.delimiter = delimiter

    @staticmethod
    def parse(text, recno=False):
        """ERR when `text` is no order. `recno` only where a table's key is meant."""
        try:
            text = text.decode('ascii')
        except UnicodeDecodeError:
            raise Refused('ERR') from None
        if recno and text == 'recno':
            return Order([('recno', False)], b'')
        words = re.split('([^-A-Za-z0-9_=])', text)
        delimiters = set(words[1::2])
        if len(delimiters) > 1 or any(d.encode() not in DELIMITERS for d in delimiters):
            raise Refused('ERR')
        delimiter = delimiters.pop() if delimiters else ''
        parts, names = [], []
        for word in words[0::2]:
            descending = word.startswith('-')
            kind = word[1:] if descending else word
            name, equals, rest = kind.partition('=')
            names.append(name if equals else '')
            if equals:
                if not recno or not _NAME.match(name) or names.count(name) > 1:
                    raise Refused('ERR')
                kind = rest
            if kind == 'byte':
                kind = 'u8'
            if kind not in COMPONENTS:
                raise Refused('ERR')
            if kind in values.FLOATS and delimiter == '.':
                raise Refused('ERR')
            parts.append((kind, descending))
        return Order(parts, delimiter.encode(), names)

    def text(self):
        names = [('-' if descending else '') + (name + '=' if name else '') + kind
                 for name, (kind, descending) in zip(self.names, self.parts)]
        return self.delimiter.decode().join(names).encode()

    def is_recno(self):
        return self.parts[0][0] == 'recno'

    def _split(self, text):
        return text.split(self.delimiter, len(self.parts) - 1) if len(self.parts) > 1 else [text]

    def _component(self, at, text):
        kind, descending = self.parts[at]
        rank, canonical = _rank_and_text(kind, text)
        return (_backwards(rank) if descending else rank), canonical

    def read(self, text):
        """(ranks, canonical text) of a whole key."""
        words = self._split(text)
        if len(words) != len(self.parts):
            raise bad_key()
        if len(self.parts) == 1:
            rank, canonical = self._component(0, text)
            return (rank,), canonical
        pairs = [self._component(at, word) for at, word in enumerate(words)]
        return tuple(pair[0] for pair in pairs), self.delimiter.join(pair[1] for pair in pairs)

    def position(self, text):
        """Ranks of the first components that a bound names."""
        return tuple(self._component(at, self._or_time(at, word))[0] for at, word in enumerate(self._split(text)))

    def _or_time(self, at, word):
        """A time in a bound is the least UUID of it."""
        if self.parts[at][0] != 'timeuuid' or values.read_uuid(word) is not None:
            return word
        return times.least_uuid(word) or word

    def prefix(self, text):
        """A test of ranks: whether a key has this prefix."""
        if not text:
            return lambda ranks: True
        words = self._split(text)
        last = len(words) - 1
        head = tuple(self._component(at, words[at])[0] for at in range(last))
        kind, descending = self.parts[last]
        if not words[last]:
            return lambda ranks: ranks[:last] == head
        if kind not in TEXTS:
            whole = head + (self._component(last, words[last])[0],)
            return lambda ranks: ranks[:last + 1] == whole
        rank = self._component(last, words[last])[0]
        tail = words[last]
        del rank
        if descending:
            return lambda ranks: ranks[:last] == head and ranks[last].text.startswith(tail)
        return lambda ranks: ranks[:last] == head and ranks[last].startswith(tail)

    def first_component(self, ranks):
        return ranks[0]


def read_bound(word):
    """A bound of keys as ('[', text), ('(', text), ('-',) or ('+',); ERR for anything else."""
    if word in (b'-', b'+'):
        return (word.decode(),)
    if word[:1] in (b'[', b'('):
        return (word[:1].decode(), word[1:])
    raise Refused('ERR')


class Bounds:
    """The keys between two bounds (positions in the order)."""

    def __init__(self, order, low, high):
        self.low = self._resolve(order, low)
        self.high = self._resolve(order, high)

    @staticmethod
    def _resolve(order, bound):
        if len(bound) == 1:
            return bound[0], None
        return bound[0], order.position(bound[1])

    def __call__(self, ranks):
        kind, at = self.low
        if kind == '+':
            return False
        if kind != '-':
            head = ranks[:len(at)]
            if head < at or (kind == '(' and head == at):
                return False
        kind, at = self.high
        if kind == '-':
            return False
        if kind != '+':
            head = ranks[:len(at)]
            if head > at or (kind == '(' and head == at):
                return False
        return True


def is_infinite(number):
    return isinstance(number, float) and math.isinf(number)
