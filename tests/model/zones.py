"""Steps of the calendar and of time zones (BY TIME of CAGG), by Python's zoneinfo."""

import datetime
import functools
import zoneinfo

from .refusals import Refused

DAY = 86400 * 10**6
CYCLE_DAYS = 146097  # of 400 years, after which the calendar, and rules of summer time, repeat
CYCLE = CYCLE_DAYS * DAY
LATE = 400 * 365 * DAY  # before it no repetition is needed
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
UNITS = ((b'mo', 'month'), (b'w', 'week'), (b'y', 'year'))


def instant(when):
    return (when - EPOCH) // datetime.timedelta(microseconds=1)


def moment(micros, zone):
    return (EPOCH + datetime.timedelta(microseconds=micros)).astimezone(zone)


@functools.lru_cache(maxsize=None)
def load(name):
    try:
        return zoneinfo.ZoneInfo(name.decode('ascii'))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise Refused('ERR') from None


def local_day(micros, zone):
    """Number of the local day since 1970-01-01."""
    cycles = micros // CYCLE if micros > LATE else 0
    date = moment(micros - cycles * CYCLE, zone).date()
    return date.toordinal() - EPOCH.toordinal() + cycles * CYCLE_DAYS


@functools.lru_cache(maxsize=4096)
def begin_of_day(day, zone):
    """Its first instant: the first midnight, or when clocks skip it."""
    cycles = day // CYCLE_DAYS if day * DAY > LATE or day < -700000 else 0
    date = datetime.date.fromordinal(day - cycles * CYCLE_DAYS + EPOCH.toordinal())
    midnight = datetime.datetime.combine(date, datetime.time(), tzinfo=zone)
    begin = instant(midnight)
    if moment(begin, zone).replace(tzinfo=None) != midnight.replace(tzinfo=None):
        after = midnight.replace(fold=1).utcoffset()
        low, high = begin - 2 * DAY, begin  # clocks are changed within
        while low < high:
            middle = (low + high) // 2
            if moment(middle, zone).utcoffset() == after:
                high = middle
            else:
                low = middle + 1
        begin = low
    return begin + cycles * CYCLE


def month_of(day):
    cycles = day // CYCLE_DAYS
    date = datetime.date.fromordinal(day - cycles * CYCLE_DAYS + EPOCH.toordinal())
    return date.year * 12 + date.month - 1 + cycles * 4800


def first_day(month):
    """`month` is counted from the year 0."""
    cycles = (month - 1970 * 12) // 4800
    month -= cycles * 4800
    date = datetime.date(month // 12, month % 12 + 1, 1)
    return date.toordinal() - EPOCH.toordinal() + cycles * CYCLE_DAYS


class TimeStep:
    """begin(micros), next(begin)"""

    def __init__(self, word, zone, read_duration):
        self.zone = datetime.timezone.utc if zone is None else load(zone)
        for suffix, unit in UNITS:
            if word.endswith(suffix):
                digits = word[:-len(suffix)]
                if not digits.isdigit() or not 1 <= int(digits) <= 10**6:
                    raise Refused('ERR')
                self.unit, self.count = unit, int(digits)
                return
        micros = read_duration(word)
        if zone is None:
            self.unit, self.count = 'length', micros
        elif micros % DAY == 0:
            self.unit, self.count = 'day', micros // DAY
        else:
            self.unit, self.count = 'of day', micros

    def _first(self, day, ahead=0):
        count = self.count
        if self.unit == 'day':
            return day // count * count + ahead * count
        if self.unit == 'week':
            return (day + 3) // (7 * count) * 7 * count - 3 + ahead * 7 * count
        months = 12 * count if self.unit == 'year' else count
        return first_day(month_of(day) // months * months + ahead * months)

    def begin(self, micros):
        if self.unit == 'length':
            return micros // self.count * self.count
        day = local_day(micros, self.zone)
        if self.unit != 'of day':
            return begin_of_day(self._first(day), self.zone)
        midnight = begin_of_day(day, self.zone)
        return midnight + (micros - midnight) // self.count * self.count

    def next(self, begin):
        if self.unit == 'length':
            return begin + self.count
        day = local_day(begin, self.zone)
        if self.unit == 'of day':
            return min(begin + self.count, begin_of_day(day + 1, self.zone))
        return begin_of_day(self._first(day, 1), self.zone)
