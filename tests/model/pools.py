"""Texts to draw from: keys, values, patterns. Few of each kind, so that commands meet; many nasty."""

import uuid

UUIDS = [str(uuid.UUID(int=n)).encode() for n in (0, 1, 2**127, 2**128 - 1, 2**63, 2**64 - 1)]
# Version 1, made so that the order by time differs from the order by bytes.
TIME_UUIDS = [
    b'00000000-0000-1000-8000-000000000000', b'ffffffff-0000-1000-8000-000000000000',
    b'00000000-0001-1000-8000-000000000000', b'00000000-0000-1001-8000-000000000000',
    b'00000000-0001-1000-8000-0000000000ff', b'00000000-0001-1000-ff00-000000000000',
    b'A0B1C2D3-0000-1ABC-9000-00000000000F', b'7f000000-ffff-1fff-bfff-ffffffffffff',
    b'80000000-ffff-1fff-bfff-ffffffffffff',
]
SPELLED_UUIDS = UUIDS + TIME_UUIDS + [b'123E4567-E89B-42D3-A456-426614174000']
LONG = b'long' * 75
# Beside each other, and beside row keys, so wide that an entry of an index may or may not hold them.
WIDE = [b'w' * 65536, b'w' * 65500, b'v' * 25000, b'u' * 25000, b't' * 40000, b's' * 70000, b'r' * 102400,
        b'\x00' * 30000, b'\x00' * 65000, b'q' * 32700]
WIDE_KEYS = [b'K' * 30000, b'K' * 65000, b'k' * 1000, b'k' * 7000]

TEXTS = {
    'bytes': [b'', b'a', b'ab', b'abc', b'b', b'\x00', b'a\x00', b'a\x00b', b'\x00\xff', b'\xff',
              b'\xff\xff', b'zz', b'*', b'#', b'x:y', b'\x01', b'a\x01', LONG, b'line\nbreak'],
    'ascii': [b'', b'a', b'ab', b'abc', b'b', b'\x00', b'a\x00', b'~', b'zz', b'\x7f', LONG],
    'utf8': [b'', b'a', b'ab', b'abc', b'b', b'\x00', b'a\x00', b'zz', 'ü'.encode(),
             'é€'.encode(), '\U0001f600'.encode(), b'STC', b'STC2', LONG],
}


def _integers(low, high):
    found = [low, low + 1, high - 1, high] + [n for n in (-10, -5, -1, 0, 1, 2, 9, 10, 22, 100)
                                            if low <= n <= high]
    return [b'%d' % n for n in found] + [b'007', b'-0']


FLOATS = [b'-inf', b'-1e30', b'-1.5', b'-1', b'-0', b'0', b'0.5', b'1', b'1.5', b'2.25', b'3.5',
          b'1e-7', b'0.0001', b'1e15', b'1e16', b'123456789', b'inf', b'0.1', b'1.50', b'1e3']


def component_texts(kind):
    """Texts that are good keys of a component."""
    if kind in TEXTS:
        return TEXTS[kind]
    if kind == 'recno':
        return [b'%d' % n for n in range(1, 12)] + [b'007']
    if kind == 'timeuuid':
        return TIME_UUIDS
    if kind in ('uuid', 'luuid'):
        return SPELLED_UUIDS
    if kind == 'bool':
        return [b'true', b'false', b'1', b'0']
    if kind == 'f64':
        return FLOATS + [b'1e300', b'5e-324', b'-1e300', b'0.30000000000000004']
    if kind == 'f32':
        return FLOATS + [b'3.4028235e38', b'1e-45', b'16777217']
    from .values import INTEGER_RANGES
    return _integers(*INTEGER_RANGES[kind])


def value_texts(kind):
    """Texts that are good values of a type."""
    if kind == 'bytes':
        return TEXTS['bytes'] + [b'5', b'-7', b'1.5', b'9223372036854775807', b'true', b'x' * 2000,
                                 b'hello world', b'hello']
    if kind == 'string':
        return TEXTS['utf8'] + [b'5', b'12', b'hello world', b'hello', b'line\nbreak']
    return component_texts(kind)


BAD_VALUES = {
    'string': [b'\xff', b'\xc0\x80', b'\xed\xa0\x80', b'ab\xc3'],
    'bool': [b'', b'yes', b'2', b'truee'], 'uuid': [b'', b'abc', UUIDS[0][:-1], b'g' * 36],
    'f32': [b'', b'nan', b'abc', b'1e39', b'1.5x'], 'f64': [b'', b'nan', b'abc', b'1e400', b'--1'],
}


def bad_value(kind, rng):
    """A text that is no value of the type, or None if every text is one."""
    if kind == 'bytes':
        return None
    if kind in BAD_VALUES:
        return rng.choice(BAD_VALUES[kind])
    from .values import INTEGER_RANGES
    low, high = INTEGER_RANGES[kind]
    return rng.choice([b'', b'x', b'1.5', b'+1', b' 1', b'1 ', b'%d' % (high + 1),
                       b'%d' % (low - 1), b'0x10', b'-'])


def bad_component(kind, rng):
    """A text that is no key of the component, or None."""
    if kind == 'bytes':
        return None
    if kind == 'ascii':
        return b'\x80'
    if kind == 'utf8':
        return rng.choice([b'\xff', b'\xc0\x80', b'a\xed\xa0\x80'])
    if kind == 'recno':
        return rng.choice([b'0', b'-1', b'x', b'9223372036854775808', b''])
    if kind in ('uuid', 'luuid'):
        return rng.choice([b'', b'x', UUIDS[0][:-1], UUIDS[1] + b'0'])
    if kind == 'timeuuid':
        return rng.choice([b'', b'x', UUIDS[0], b'123e4567-e89b-42d3-a456-426614174000'])
    return bad_value(kind, rng)


KEY_ORDERS = [b'bytes', b'bytes', b'utf8', b'ascii', b'i64', b'-u64', b'utf8#utf8#-u64',
              b'utf8#i64#utf8', b'bytes/bytes', b'uuid', b'timeuuid', b'luuid', b'recno', b'recno',
              b'f64', b'-utf8', b'-bytes|utf8', b'i16:bool:f32', b'u8', b'byte;ascii', b'utf8~-i32',
              b'-f32', b'utf8,-utf8,bytes', b'timeuuid:bytes', b'-timeuuid', b'-i64|bool|-uuid',
              b'i8.u16.bytes', b'-luuid#u32', b'bool']
NAMED_ORDERS = [b'country=utf8#-year=u16', b'a=bytes', b'utf8#-at=u64', b'A_b-1=i64|-2=bool|bytes',
                b'a=utf8#a=u8', b'=utf8', b'a=b=utf8', b'-x=recno']
QUALIFIER_ORDERS = [order for order in KEY_ORDERS if order != b'recno'] + [b'bytes'] * 20
GLOBS = [b'*', b'a*', b'*b*', b'?', b'[a-c]*', b'hello*', b'', b'\\*', b'*1*', b'[^a]*', b'true',
         b'-*', b'*\x00*']
PATTERNS = [b'.*', b'.*', b'.+', b'.*[a-z0-9].*', b'a.*', b'.', b'[a-c]+', b'hello.*', b'\\d+', b'(a|b|zz)', b'a?b*c*', b'.*\\.5',
            b'', b'(?s).*', b'-?[0-9]+', b'true|false', b'\\x00', b'line.break', b'.+']
POLICIES = [b'maxversions=2', b'maxage=30s', b'maxversions=3 || maxage=1m',
            b'(maxversions=2 or maxage=45s)', b'maxversions=1', b'maxage=90']
STRICT_POLICIES = [b'maxversions=1 && maxage=20s', b'maxversions=2 and maxage=10s || maxage=40s',
                   b'(maxage=5s || maxversions=3) && maxversions=1', b'maxversions=3&&maxage=15s']
DURATIONS = [b'250ms', b'1', b'5s', b'20s', b'1m', b'90s', b'2h', b'7d', b'3']
