"""Typed values (cellar-model(7), "TYPES"): reading them from text, printing, comparing with a literal.

A value is held as bytes (bytes, string), bool, int, float, or 16 bytes (uuid); its type is a name
beside it. `byte` is `u8` everywhere after reading.
"""

import math
import re
import struct
import uuid
from fractions import Fraction

from . import hll
from .refusals import Refused
from .resp import BigNumber, Boolean, Double

INTEGER_RANGES = {
    'i8': (-2**7, 2**7 - 1), 'i16': (-2**15, 2**15 - 1), 'i32': (-2**31, 2**31 - 1),
    'i64': (-2**63, 2**63 - 1),
    'u8': (0, 2**8 - 1), 'u16': (0, 2**16 - 1), 'u32': (0, 2**32 - 1), 'u64': (0, 2**64 - 1),
}
FLOATS = ('f32', 'f64')
TEXTS = ('bytes', 'string')
TYPES = TEXTS + ('bool', 'uuid') + FLOATS + tuple(INTEGER_RANGES)

_INTEGER = re.compile(rb'-?[0-9]+\Z')
_FLOAT = re.compile(rb'-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z')
_UUID = re.compile(rb'[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z')


def read_type(word):
    """A type's name; `byte` is `u8`. ERR for an unknown one."""
    name = word.decode('latin-1').lower()
    if name == 'byte':
        return 'u8'
    if name not in TYPES:
        raise Refused('ERR')
    return name


def read_integer(text):
    """The integer in `text` or None."""
    return int(text) if _INTEGER.match(text) else None


def round_f32(number):
    """`number` rounded to single precision; infinity when it is beyond that."""
    try:
        return struct.unpack('<f', struct.pack('<f', number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def read_float(type_name, text):
    """The number in `text` at the precision of the type, or None (nan, beyond the type, no number)."""
    if text in (b'inf', b'-inf'):
        return float(text)
    if not _FLOAT.match(text):
        return None
    number = float(text)
    if type_name == 'f32':
        number = round_f32(number)
    return None if math.isinf(number) else number


def round_literal(type_name, number):
    """A literal as the float type has it; one beyond the type stays the number that it is."""
    if isinstance(number, float):
        return number
    try:
        rounded = float(number)
    except OverflowError:
        return number
    if type_name == 'f32':
        rounded = round_f32(rounded)
    return number if math.isinf(rounded) else rounded


def read_uuid(text):
    return uuid.UUID(text.decode()).bytes if _UUID.match(text) else None


def is_utf8(text):
    try:
        text.decode('utf-8')
        return True
    except UnicodeDecodeError:
        return False


def read_or_none(type_name, text):
    """The value that `text` says in this type, or None."""
    if type_name == 'bytes':
        return text
    if type_name == 'string':
        return text if is_utf8(text) else None
    if type_name == 'bool':
        return {b'true': True, b'1': True, b'false': False, b'0': False}.get(text)
    if type_name == 'uuid':
        return read_uuid(text)
    if type_name in FLOATS:
        return read_float(type_name, text)
    number = read_integer(text)
    low, high = INTEGER_RANGES[type_name]
    return number if number is not None and low <= number <= high else None


def convert(type_name, value, to):
    """The value as one of another type (FAMILY ALTER ... CONVERT), or None."""
    if type_name == to:
        return value
    if type_name in TEXTS or to in TEXTS:
        return read_or_none(to, print_value(type_name, value))
    if 'uuid' in (type_name, to):
        return None
    if type_name in FLOATS:
        if to in FLOATS:
            number = round_f32(value) if to == 'f32' else value
            return number if number == value else None
        if math.isinf(value) or value != int(value):
            return None
    number = int(value)
    if to == 'bool':
        return bool(number) if number in (0, 1) else None
    if to in FLOATS:
        rounded = round_f32(number) if to == 'f32' else float(number)
        return rounded if rounded == number else None
    low, high = INTEGER_RANGES[to]
    return number if low <= number <= high else None


def read(type_name, text):
    value = read_or_none(type_name, text)
    if value is None:
        raise Refused('BADVALUE')
    return value


def print_float(type_name, number):
    """Fewest digits that read back the same; an exponent outside 1e-4 <= |x| < 1e16; no `.0`."""
    if math.isinf(number):
        return 'inf' if number > 0 else '-inf'
    if number == 0:
        return '-0' if math.copysign(1, number) < 0 else '0'
    if type_name == 'f32':
        for digits in range(1, 10):
            text = '%.*e' % (digits - 1, number)
            if round_f32(float(text)) == number:
                break
    else:
        for digits in range(1, 18):
            text = '%.*e' % (digits - 1, number)
            if float(text) == number:
                break
    mantissa, _, exponent = text.partition('e')
    exponent = int(exponent)
    sign = '-' if mantissa.startswith('-') else ''
    numerals = mantissa.lstrip('-').replace('.', '').rstrip('0') or '0'
    if not -4 <= exponent < 16:
        point = '.' + numerals[1:] if len(numerals) > 1 else ''
        return '%s%s%se%s%02d' % (sign, numerals[0], point, '-' if exponent < 0 else '+',
                                  abs(exponent))
    if exponent < 0:
        return sign + '0.' + '0' * (-exponent - 1) + numerals
    if len(numerals) <= exponent + 1:
        return sign + numerals + '0' * (exponent + 1 - len(numerals))
    return sign + numerals[:exponent + 1] + '.' + numerals[exponent + 1:]


def seen(type_name, value):
    """(type, value) as everything but STATE sees them: of an hll its estimate."""
    return ('u64', hll.estimate(value)) if type_name == 'hll' else (type_name, value)


def print_value(type_name, value):
    """The canonical text, which MATCH and `value ~` see."""
    type_name, value = seen(type_name, value)
    if type_name in TEXTS:
        return value
    if type_name == 'bool':
        return b'true' if value else b'false'
    if type_name == 'uuid':
        return str(uuid.UUID(bytes=value)).encode()
    if type_name in FLOATS:
        return print_float(type_name, value).encode()
    return b'%d' % value


def reply(type_name, value, protocol):
    """The value as it stands on the wire."""
    type_name, value = seen(type_name, value)
    if type_name in TEXTS:
        return value
    if type_name == 'bool':
        return Boolean(value) if protocol == 3 else int(value)
    if type_name in FLOATS:
        text = print_float(type_name, value)
        return Double(text) if protocol == 3 else text.encode()
    if type_name == 'uuid':
        return print_value(type_name, value)
    if value > 2**63 - 1:
        return BigNumber(value) if protocol == 3 else b'%d' % value
    return value


def fold_key(type_name):
    """What min and max compare by: -0 is below 0."""
    if type_name in FLOATS:
        return lambda value: (value, math.copysign(1, value))
    return lambda value: value


def same(type_name, one, other):
    """Whether two values of a type are kept alike."""
    if type_name in FLOATS:
        return struct.pack('<d', one) == struct.pack('<d', other)
    return one == other


def reply_state(type_name, value, protocol):
    """The same under STATE."""
    return hll.encode(value) if type_name == 'hll' else reply(type_name, value, protocol)


def compare(type_name, value, text):
    """-1, 0, 1 against a predicate's literal, read as the cell's own type; None if it cannot be."""
    type_name, value = seen(type_name, value)
    if type_name in TEXTS:
        other = text
    elif type_name in INTEGER_RANGES:
        if text in (b'inf', b'-inf'):
            other = float(text)
        elif _FLOAT.match(text):
            other = Fraction(text.decode().rstrip('.'))
        else:
            return None
    else:
        other = read_or_none(type_name, text)
        if other is None and type_name in FLOATS and _FLOAT.match(text):
            other = Fraction(text.decode().rstrip('.'))  # beyond the type
        if other is None:
            return None
    return (value > other) - (value < other)
