"""The words of one command, read from left to right; and the small notations of cellar-query(7)."""

from . import times, values
from .refusals import Refused


class Words:
    def __init__(self, words):
        self.words = words
        self.at = 0

    def more(self):
        return self.at < len(self.words)

    def left(self):
        return len(self.words) - self.at

    def next(self):
        if not self.more():
            raise Refused('ERR')
        self.at += 1
        return self.words[self.at - 1]

    def keyword(self):
        """The next word in upper case, not taken."""
        return self.words[self.at].upper() if self.more() else None

    def take(self, keyword):
        if self.keyword() == keyword:
            self.at += 1
            return True
        return False

    def count(self, zero=False):
        """A count: an integer above 0 (or 0 where `zero`)."""
        number = values.read_integer(self.next())
        if number is None or number < (0 if zero else 1):
            raise Refused('ERR')
        return number

    def several(self):
        """`n word ...`: n words."""
        return [self.next() for _ in range(self.count())]

    def end(self):
        if self.more():
            raise Refused('ERR')


def split_column(word):
    """(family, qualifier); ERR without a colon."""
    family, colon, qualifier = word.partition(b':')
    if not colon:
        raise Refused('ERR')
    return family, qualifier


def read_timestamp(word):
    number = read_moment(word)
    if number is None or not 0 <= number <= 2**63 - 1:
        raise Refused('ERR')
    return number


def read_moment(word):
    """An integer, or a time as people write it; None if it is neither."""
    number = values.read_integer(word)
    return times.read(word) if number is None else number


def read_time_range(low, high):
    """A test of timestamps."""
    def bound(word, infinite):
        if word == infinite:
            return None
        exclusive = word[:1] == b'('
        number = read_moment(word[1:] if exclusive else word)
        if number is None:
            if word in (b'-inf', b'+inf'):
                return (float(word), False)
            raise Refused('ERR')
        return number, exclusive

    first, last = bound(low, b'-inf'), bound(high, b'+inf')

    def between(timestamp):
        if first is not None and (timestamp < first[0] or (first[1] and timestamp == first[0])):
            return False
        return last is None or not (timestamp > last[0] or (last[1] and timestamp == last[0]))

    return between
