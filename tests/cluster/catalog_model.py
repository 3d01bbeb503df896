#!/usr/bin/python3
"""An explicit-state model of how sets agree on a schema (src/cluster/catalog_agreement.h): every state of three sets, two
changes and two leaders that die is visited.

  set 0 logs change n, and holds replies behind it; when it is committed, the others are told, in order; each logs it, holds
  replies behind it and answers when it is committed there; when all have, the holds end.

Checked of each state: sets have the same changes by number; what one set shows all sets have; and the end, with all equal
and nothing held, can be reached. And once more with holds that end before their time, as of a set that does not answer: then
the second promise falls, the others do not. Usage: catalog_model.py [fault], one of FAULTS; it is to be found.
"""

import sys
from collections import deque

SETS = 3
CHANGES = 2
DEATHS = 2
FAULTS = {
    "early": "others are told of what is not committed",
    "gap": "a set takes a change that is not its next one",
    "no-hold": "a set does not hold replies behind a change",
    "no-hold-0": "set 0 does not",
    "forgets-hold": "the next leader of a set does not hold",
    "forgets-hold-0": "the next director does not hold",
    "one-is-enough": "holds end when one of the others has it",
    "old-release": "a release ends the hold of a later change",
}

# (committed of set 0, the uncommitted one or none, held, releases), ((log, held) of the others), messages, next change, deaths
START = ((), None, False), (((), False),) * (SETS - 1), frozenset(), 1, 0


def put(items, at, item):
    return items[:at] + (item,) + items[at + 1:]


def steps(state, fault, expires):
    (log, tail, held), others, messages, following, deaths = state
    if following <= CHANGES and tail is None and not held:
        yield "change", ((log, following, fault != "no-hold-0"), others, messages, following + 1, deaths)
    if tail is not None:
        yield "commit", ((log + (tail,), None, held), others, messages, following, deaths)
    if deaths < DEATHS:
        hold = bool(log) and fault != "forgets-hold-0"
        yield "dies", ((log, None, hold), others, messages, following, deaths + 1)
        if tail is not None and fault != "no-hold-0":
            yield "dies, the change stands", ((log + (tail,), None, fault != "forgets-hold-0"), others, messages, following,
                                              deaths + 1)
    told = log + ((tail,) if tail is not None and fault == "early" else ())
    if expires and held and tail is None:
        yield "hold ends", ((log, tail, False), others, messages, following, deaths)
    for number, change in enumerate(told, 1):
        cut = ("cut", number, change)
        if cut not in messages:
            yield f"tell {number}", ((log, tail, held), others, messages | {cut}, following, deaths)
    for at, (its, holds) in enumerate(others):
        for message in messages:
            if message[0] == "cut" and (message[1] == len(its) + 1 or (fault == "gap" and message[1] > len(its))):
                taken = (its + (message[2],), fault != "no-hold")
                yield f"{at + 1} takes {message[1]}", ((log, tail, held), put(others, at, taken), messages, following, deaths)
            if message[0] == "release" and holds and (message[1] >= len(its) or fault == "old-release"):
                yield f"{at + 1} shows", ((log, tail, held), put(others, at, (its, False)), messages, following, deaths)
        have = ("have", at, len(its))
        if its and have not in messages:
            yield f"{at + 1} has {len(its)}", ((log, tail, held), others, messages | {have}, following, deaths)
        if deaths < DEATHS and its and not holds:
            again = (its, fault != "forgets-hold")
            yield f"leader of {at + 1} dies", ((log, tail, held), put(others, at, again), messages, following, deaths + 1)
        if deaths < DEATHS and its and holds and fault == "forgets-hold":
            yield f"leader of {at + 1} dies", ((log, tail, held), put(others, at, (its, False)), messages, following,
                                               deaths + 1)
    def has(at):
        return any(message[0] == "have" and message[1] == at and message[2] >= len(log) for message in messages)
    enough = any if fault == "one-is-enough" else all
    if log and tail is None and enough(has(at) for at in range(SETS - 1)):
        release = ("release", len(log))
        if held or release not in messages:
            yield "release", ((log, tail, False), others, messages | {release}, following, deaths)


def wrong(state, expires):
    (log, tail, held), others, _, _, _ = state
    whole = log + ((tail,) if tail is not None else ())
    logs = [(whole, held)] + list(others)
    for its, _ in others:
        if its != whole[:len(its)]:
            return "sets have other changes of one number"
    for its, holds in logs:
        if not expires and not holds and any(len(other) < len(its) for other, _ in logs):
            return "a set shows what another one has not"
    return None


def ended(state):
    (log, tail, held), others, _, _, _ = state
    return tail is None and not held and all(its == log and not holds for its, holds in others)


def check(fault=None, expires=False):
    """The number of states; or what is wrong, and the way there."""
    came = {START: None}
    before = {START: []}
    queue = deque([START])
    while queue:
        state = queue.popleft()
        error = wrong(state, expires)
        if error is not None:
            way = []
            while came[state] is not None:
                state, step = came[state]
                way.append(step)
            return error, list(reversed(way))
        for step, after in steps(state, fault, expires):
            before.setdefault(after, []).append(state)
            if after not in came:
                came[after] = (state, step)
                queue.append(after)
    reached = {state for state in came if ended(state)}
    queue = deque(reached)
    while queue:
        for state in before[queue.popleft()]:
            if state not in reached:
                reached.add(state)
                queue.append(state)
    if len(reached) < len(came):
        return "some states have no end", [str(next(iter(set(came) - reached)))]
    return len(came), []


if __name__ == "__main__":
    for in_time in (False, True):
        found, path = check(sys.argv[1] if len(sys.argv) > 1 else None, in_time)
        print(found, *path, sep="\n  ")
        if not isinstance(found, int):
            sys.exit(1)
