"""Retention (cellar-model(7), "RETENTION"): durations, GC policies, and which versions of a column are dropped.

A policy is a nested tuple: ('versions', n), ('age', micros), ('and', a, b), ('or', a, b); None
drops nothing.
"""

import re

from .refusals import Refused

_UNITS = {b'': 10**6, b'ms': 10**3, b's': 10**6, b'm': 60 * 10**6, b'h': 3600 * 10**6,
          b'd': 86400 * 10**6}
_DURATION = re.compile(rb'([0-9]+)(ms|s|m|h|d|)\Z')


def read_duration(text):
    """Microseconds; ERR for nothing, zero, or an unknown unit."""
    match = _DURATION.match(text)
    if not match or int(match.group(1)) == 0:
        raise Refused('ERR')
    return int(match.group(1)) * _UNITS[match.group(2)]


def read_policy(text):
    """The policy that a GC option says; ERR when it cannot be read."""
    words = re.findall(rb'\(|\)|&&|\|\||[A-Za-z]+=[0-9a-z]+|[A-Za-z]+|\S', text)
    at = 0

    def peek():
        return words[at].lower() if at < len(words) else None

    def either():
        nonlocal at
        left = both()
        while peek() in (b'||', b'or'):
            at += 1
            left = ('or', left, both())
        return left

    def both():
        nonlocal at
        left = single()
        while peek() in (b'&&', b'and'):
            at += 1
            left = ('and', left, single())
        return left

    def single():
        nonlocal at
        word = peek()
        if word is None:
            raise Refused('ERR')
        at += 1
        if word == b'(':
            inner = either()
            if peek() != b')':
                raise Refused('ERR')
            at += 1
            return inner
        name, _, argument = word.partition(b'=')
        if name == b'maxversions' and re.fullmatch(rb'[0-9]+', argument) and int(argument) > 0:
            return ('versions', int(argument))
        if name == b'maxage':
            return ('age', read_duration(argument))
        raise Refused('ERR')

    policy = either()
    if at != len(words):
        raise Refused('ERR')
    return policy


def simple_policy(versions, ttl):
    """VERSIONS n together with TTL d: either drops."""
    parts = []
    if versions is not None:
        parts.append(('versions', versions))
    if ttl is not None:
        parts.append(('age', ttl))
    if len(parts) == 2:
        return ('or',) + tuple(parts)
    return parts[0] if parts else None


def drops(policy, rank, timestamp, now):
    """Whether the policy drops the version of this rank (1 is the newest)."""
    kind = policy[0]
    if kind == 'versions':
        return rank > policy[1]
    if kind == 'age':
        return timestamp != 0 and now - timestamp >= policy[1]
    if kind == 'and':
        return drops(policy[1], rank, timestamp, now) and drops(policy[2], rank, timestamp, now)
    return drops(policy[1], rank, timestamp, now) or drops(policy[2], rank, timestamp, now)


def ages(policy):
    """The ages that a policy asks for."""
    if policy is None or policy[0] == 'versions':
        return []
    if policy[0] == 'age':
        return [policy[1]]
    return ages(policy[1]) + ages(policy[2])


def live(policy, cells, now):
    """The cells (newest first) that are neither dropped nor expired."""
    if policy is None:
        return [cell for cell in cells if cell.expiry is None or now < cell.expiry]
    return [cell for rank, cell in enumerate(cells, 1)
            if (cell.expiry is None or now < cell.expiry)
            and not drops(policy, rank, cell.timestamp, now)]
