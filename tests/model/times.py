"""Points in time as people write them (cellar-model(7), "CELLS AND TIMESTAMPS"): now-1h, RFC 3339, a day."""

import datetime
import re
import uuid

from . import values

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
TICKS_1970 = 0x01b21dd213814000
UUID_MICROS_MAX = (2**63 - 1 >> 4) // 10
UNITS = {b'ms': 1000, b's': 10**6, b'': 10**6, b'm': 60 * 10**6, b'h': 3600 * 10**6, b'd': 86400 * 10**6}
_RELATIVE = re.compile(rb'[nN][oO][wW](?:([+-])(\d+)(ms|s|m|h|d|))?')
_TIME = re.compile(rb'(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-])(\d\d):(\d\d)))?')

# What `now` means; the model sets it before each command.
clock = {'now': 0}


def read(text):
    """Microseconds since 1970, perhaps negative; None if it is no time."""
    found = _RELATIVE.fullmatch(text)
    if found:
        sign, digits, unit = found.groups()
        if not sign:
            return clock['now']
        length = int(digits) * UNITS[unit]
        if not 0 < length // 1000 <= (2**63 - 1) // 1000:
            return None
        moment = clock['now'] + (length if sign == b'+' else -length)
        return moment if -2**63 <= moment < 2**63 else None
    found = _TIME.fullmatch(text)
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zulu, sign, hours, minutes = found.groups()
    del zulu
    fraction = (fraction or b'').ljust(9, b'0')
    if fraction[6:] != b'000' or int(hours or 0) > 23 or int(minutes or 0) > 59:
        return None
    try:
        when = datetime.datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0),
                                 tzinfo=datetime.timezone.utc)
    except ValueError:
        return None
    offset = (int(hours or 0) * 60 + int(minutes or 0)) * 60 * 10**6
    micros = (when - EPOCH) // datetime.timedelta(microseconds=1) + int(fraction[:6])
    return micros + (offset if sign == b'-' else -offset)


def least_uuid(text):
    """The least UUID of version 1 of a time, as text; None if it is none."""
    micros = values.read_integer(text)
    if micros is None:
        micros = read(text)
    if micros is None or not 0 <= micros <= UUID_MICROS_MAX:
        return None
    ticks = TICKS_1970 + 10 * micros
    return str(uuid.UUID(int=(ticks & 0xffffffff) << 96 | (ticks >> 32 & 0xffff) << 80 | 1 << 76 |
                         (ticks >> 48) << 64)).encode()


def written(rng, micros, now):
    """One of the ways to write a moment."""
    choice = rng.random()
    if micros == now and choice < 0.4:
        return rng.choice([b'now', b'NOW'])
    if choice < 0.2 and abs(now - micros) % 1000 == 0 and micros != now:
        return b'now%s%dms' % (b'+' if micros > now else b'-', abs(now - micros) // 1000)
    if choice < 0.35 and 86400 * 10**6 < micros < 2 * 10**15:
        minutes = rng.choice([0, 0, 60, -330, 845])
        local = EPOCH + datetime.timedelta(microseconds=micros, minutes=minutes)
        fraction = '.%06d' % local.microsecond + rng.choice(['', '000', '0']) if local.microsecond else ''
        zone = rng.choice('Zz') if not minutes else '%s%02d:%02d' % ('+' if minutes > 0 else '-', *divmod(abs(minutes), 60))
        return (local.strftime('%Y-%m-%d' + rng.choice('Tt ') + '%H:%M:%S') + fraction + zone).encode()
    if choice < 0.37:
        return rng.choice([b'2023-11-15', b'2023-11-31', b'2023-11-14T22:13:20', b'now-', b'now-1y', b'2023-11-14T22:13:20.0000001Z',
                           b'1960-01-01', b'soon', b''])
    return b'%d' % micros
