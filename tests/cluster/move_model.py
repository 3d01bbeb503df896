#!/usr/bin/python3
"""An explicit-state model of how a tablet moves between sets (src/cluster/move_protocol.h): every state of three sets, a few
jobs, writes and one change of the schema is visited.

Each set's log is one place that forgets nothing told (how a set keeps it is not asked here); messages come at any time,
again, in any order, or never. Of the donor any leader, also one that does not know that it leads no more, begins attempts;
the recipient takes the parts of the newest one alone.

  job -> Begin -> attempt, copy complete -> Give -> Own -> Done; or Cancel before Give, and the recipient drops

Checked of each state: one set owns the tablet, or one has given it; who owns it has every acknowledged write, and none of
before a change of the schema that it has taken. And from each state the end can be reached. Usage: move_model.py [fault].
"""

import sys
from collections import deque

SETS = 3
FAULTS = {
    "no-floor": "the number of a job that has ended may begin again",
    "take-back": "the donor takes back what it has given",
    "own-early": "the recipient owns what has not been given",
    "no-tail": "what has changed since the copy is not sent",
    "reassign": "the map gives the tablet to a set by itself",
    "schema-any-time": "a set takes a change of the schema while its tablet is between two sets",
    "schema-stays": "a change of the schema does not end the jobs that have not come so far",
    "restart-unbinds": "... nor where another attempt has begun behind one that was complete",
}

NONE = ("none",)
# A set: (tablet, catalog). Tablet: none; own, epoch, write, schema, job or None; given, epoch, write, schema, job, to;
# stage, job, from, attempt, write (-1: not complete), schema, binds.
# State: sets, ended (of each: job -> moved?), floors, next job, map (set, epoch), ended at the donor, at the recipient,
# floor, acknowledged (write), attempts begun, messages, catalog at set 0.


def start(owner):
    sets = tuple((("own", 1, 0, 0, None) if at == owner else NONE, 0) for at in range(SETS))
    return (sets, (frozenset(),) * SETS, (0,) * SETS, 1, (owner, 1), frozenset(), frozenset(), 0, 0, 0, frozenset())


def put(items, at, item):
    return items[:at] + (item,) + items[at + 1:]


def steps(state, fault, jobs, writes, changes, attempts):
    sets, ended, floors, following, known, gone, dropped, floor, acked, begun, messages = state

    def made(**new):
        all_of = dict(sets=sets, ended=ended, floors=floors, following=following, known=known, gone=gone, dropped=dropped,
                      floor=floor, acked=acked, begun=begun, messages=messages)
        all_of.update(new)
        return tuple(all_of[name] for name in ("sets", "ended", "floors", "following", "known", "gone", "dropped", "floor",
                                               "acked", "begun", "messages"))

    def with_set(at, tablet=None, catalog=None):
        old_tablet, old_catalog = sets[at]
        return put(sets, at, (old_tablet if tablet is None else tablet, old_catalog if catalog is None else catalog))

    def live(at, job):
        return job not in ended[at] and (job > floors[at] or fault == "no-floor")

    # A client's write, acknowledged at once.
    for at, (tablet, _) in enumerate(sets):
        if tablet[0] == "own" and acked < writes:
            yield made(sets=with_set(at, ("own", tablet[1], acked + 1, tablet[3], tablet[4])), acked=acked + 1)
    # The director, by a map that may be old.
    if following <= jobs:
        for to in range(SETS):
            if to != known[0]:
                yield made(following=following + 1, messages=messages | {("job", following, known[0], to, known[1])})
                if fault == "reassign":
                    yield made(following=following + 1, messages=messages | {("own", following, known[0], to, known[1] + 1, acked, 0, -1)})
    if floor + 1 < following and floor + 1 in gone and floor + 1 in dropped:
        yield made(floor=floor + 1)
    for at, (tablet, _) in enumerate(sets):
        if floors[at] < floor:
            yield made(floors=put(floors, at, floor), ended=put(ended, at, frozenset(job for job in ended[at] if job > floor)))
        if tablet[0] == "own" and tablet[1] > known[1]:
            yield made(known=(at, tablet[1]))
    # The schema: set 0 first, then the others; it empties the tablet.
    for at, (tablet, catalog) in enumerate(sets):
        if catalog >= changes or (at != 0 and sets[0][1] <= catalog):
            continue
        binds = tablet[0] == "stage" and (tablet[6] if fault != "restart-unbinds" else tablet[4] >= 0)
        if (tablet[0] == "given" or binds) and fault != "schema-any-time":
            continue
        more = {}
        job = tablet[4] and tablet[4][0] if tablet[0] == "own" else tablet[1] if tablet[0] == "stage" else None
        if tablet[0] == "own":
            ends = job is not None and fault != "schema-stays"
            fresh = ("own", tablet[1], tablet[2], catalog + 1, None if ends else tablet[4])
            if ends:
                more = dict(gone=gone | {job}, ended=put(ended, at, ended[at] | {job}),
                            messages=messages | {("cancelled", job, tablet[4][1])})
        elif tablet[0] == "stage" and fault != "schema-stays":
            fresh = NONE
            more = dict(ended=put(ended, at, ended[at] | {job}))
        else:
            fresh = tablet[:5] + (catalog + 1,) + tablet[6:] if tablet[0] == "stage" else tablet
        yield made(sets=with_set(at, fresh, catalog + 1), **more)
    for at, (tablet, catalog) in enumerate(sets):
        if tablet[0] == "own" and tablet[4]:
            job, to = tablet[4]
            if begun < attempts:
                yield made(begun=begun + 1, messages=messages | {("stage", job, at, to, begun + 1, catalog)})
            # The copy, complete as of now.
            for message in messages:
                if message[0] == "staged" and message[1] == job and ("copy", job, to, message[2], tablet[2], tablet[3]) not in messages:
                    yield made(messages=messages | {("copy", job, to, message[2], tablet[2], tablet[3])})
            for message in messages:
                if message[0] == "ready" and message[1] == job:
                    yield made(sets=with_set(at, ("given", tablet[1], tablet[2], tablet[3], job, to)))
                    if fault == "own-early":
                        yield made(messages=messages | {("own", job, at, to, tablet[1] + 1, tablet[2], tablet[3], message[2])})
            yield made(sets=with_set(at, ("own",) + tablet[1:4] + (None,)), gone=gone | {job},
                       ended=put(ended, at, ended[at] | {job}), messages=messages | {("cancelled", job, to)})
        if tablet[0] == "given":
            _, epoch, write, schema, job, to = tablet
            # Whoever leads by now may begin anew, and copies all that it keeps.
            if begun < attempts:
                yield made(begun=begun + 1, messages=messages | {("stage", job, at, to, begun + 1, None)})
            for message in messages:
                if message[0] == "staged" and message[1] == job:
                    new = messages | {("copy", job, to, message[2], write, schema)}
                    if new != messages:
                        yield made(messages=new)
                if message[0] == "ready" and message[1] == job:
                    new = messages | {("own", job, at, to, epoch + 1, write, schema, message[2])}
                    if new != messages:
                        yield made(messages=new)
            if ("owned", job) in messages:
                yield made(sets=with_set(at, NONE), gone=gone | {job}, ended=put(ended, at, ended[at] | {job}))
            if fault == "take-back":
                yield made(sets=with_set(at, ("own", epoch, write, schema, None)), gone=gone | {job})
    for message in messages:
        kind, job = message[0], message[1]
        if kind == "job":
            _, _, giver, to, epoch = message
            tablet = sets[giver][0]
            if job in gone or not live(giver, job) or job in ended[giver]:
                continue
            if tablet[0] == "own" and tablet[1] == epoch and tablet[4] is None:
                yield made(sets=with_set(giver, ("own",) + tablet[1:4] + ((job, to),)))
            elif not (tablet[0] == "own" and tablet[4] and tablet[4][0] == job) and not (tablet[0] == "given" and tablet[4] == job):
                yield made(gone=gone | {job}, ended=put(ended, giver, ended[giver] | {job}),
                           messages=messages | {("cancelled", job, to)})
        elif kind == "stage":
            _, _, giver, to, attempt, schema = message
            tablet, catalog = sets[to]
            if not live(to, job) or (schema is not None and catalog != schema):
                continue
            # What is given is taken at whatever schema: neither set has changed it since.
            if tablet == NONE:
                yield made(sets=with_set(to, ("stage", job, giver, attempt, -1, catalog, False)),
                           messages=messages | {("staged", job, attempt)})
            elif tablet[0] == "stage" and tablet[1] == job and tablet[3] < attempt:
                yield made(sets=with_set(to, ("stage", job, giver, attempt, -1, catalog, tablet[6])),
                           messages=messages | {("staged", job, attempt)})
        elif kind == "copy":
            _, _, to, attempt, write, schema = message
            tablet, _ = sets[to]
            if tablet[0] == "stage" and tablet[1] == job and tablet[3] == attempt and tablet[4] < write:
                yield made(sets=with_set(to, tablet[:4] + (write, schema, True)), messages=messages | {("ready", job, attempt)})
        elif kind == "own":
            _, _, _, to, epoch, write, schema, attempt = message
            tablet, _ = sets[to]
            fits = tablet[0] == "stage" and tablet[1] == job and tablet[3] == attempt and tablet[4] >= 0
            if not live(to, job) or not (fits or (fault == "reassign" and tablet == NONE) or
                                         (fault == "no-floor" and tablet == NONE)):
                continue
            has = tablet[4] if fault == "no-tail" and fits else write
            yield made(sets=with_set(to, ("own", epoch, has, schema, None)), ended=put(ended, to, ended[to] | {job}),
                       dropped=dropped | {job}, messages=messages | {("owned", job)})
        elif kind == "cancelled":
            _, _, to = message
            tablet, _ = sets[to]
            if job not in dropped:
                drops = tablet[0] == "stage" and tablet[1] == job
                yield made(sets=with_set(to, NONE) if drops else sets,
                           ended=put(ended, to, ended[to] | ({job} if job > floors[to] else set())), dropped=dropped | {job})


def wrong(state):
    sets, acked = state[0], state[8]
    owners = [(tablet, catalog) for tablet, catalog in sets if tablet[0] == "own"]
    if len(owners) > 1:
        return "two owners"
    if not owners:
        given = [tablet for tablet, _ in sets if tablet[0] == "given"]
        if given and all(any(tablet[4] in ended for ended in state[1]) for tablet in given):
            return "what is given away nobody will own"
        return "" if given else "nobody has it"
    (tablet, catalog) = owners[0]
    if tablet[2] != acked:
        return "an acknowledged write is not there"
    return "" if tablet[3] == catalog else "it is of before a change of the schema"


def rests(state, jobs, changes):
    return state[3] > jobs and all(tablet[0] == "none" or (tablet[0] == "own" and tablet[4] is None) for tablet, _ in state[0]) and \
        all(catalog == changes for _, catalog in state[0])


def check(fault="", jobs=1, writes=1, changes=1, attempts=2, owner=1, most=4_000_000):
    """(states, what is wrong or ""); a state from which no end can be reached counts as wrong."""
    first = start(owner)
    seen, queue, before = {first}, deque([first]), {}
    while queue:
        state = queue.popleft()
        if wrong(state):
            return len(seen), wrong(state)
        for after in steps(state, fault, jobs, writes, changes, attempts):
            before.setdefault(after, []).append(state)
            if after not in seen:
                seen.add(after)
                queue.append(after)
        if len(seen) > most:
            return len(seen), "too many states"
    ends = deque(state for state in seen if rests(state, jobs, changes))
    reach = set(ends)
    while ends:
        for state in before.get(ends.popleft(), ()):
            if state not in reach:
                reach.add(state)
                ends.append(state)
    # Where all attempts are used up a job may have to wait for another one: that is no end of the model's making.
    stuck = [state for state in seen - reach if state[9] < attempts]
    return len(seen), "no end can be reached" if stuck else ""


if __name__ == "__main__":
    found = check(*sys.argv[1:2])
    print(f"{found[0]} states: {found[1] or 'all is well'}")
