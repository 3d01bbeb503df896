#!/usr/bin/python3
"""An explicit-state model of how a tablet moves between sets (src/cluster/move_protocol.h): every state of three sets, a few
jobs, writes and one change of the schema is visited.

Each set's log is one place that forgets nothing told (how a set keeps it is not asked here); messages come at any time,
again, in any order, or never. Of the donor any leader, also one that does not know that it leads no more, begins attempts;
the recipient takes the parts of the newest one alone.

  job -> Begin -> attempt, copy complete -> Give -> Own -> Done; or Cancel before Give, and the recipient drops

Checked of each state: one set owns the tablet, or one has given it; who owns it has every acknowledged write, and none of
before a change of the schema that it has taken. And from each state the end can be reached.

With `loses`, a set may be lost for good at any time, with what it alone had: not set 0, which has the director's tables. What
it has sent may still come, or none of it ever does. The director

  cancels jobs from it, and counts those to it as dropped there
  lets who has given the tablet to it take it back, with an epoch above the one that the lost set may have had
  lets a set adopt what the map says is the lost one's: a job like others, once all others have ended at both ends and each set
  that is left has said, one after the other, that it holds nothing of it, and empty then; where one does hold it the
  adoption is called off
  knows from the donor, too, where a tablet has moved: whoever owns it then may be lost before it says so

Nobody has the tablet only where it went with the set, until it is taken back or adopted: what was lost with it, and nothing
else, is forgiven. Usage: move_model.py [fault [loses [adoptions]]].
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
    # Where a set may be lost:
    "reclaim-early": "the donor takes back what it has given though the recipient is not lost",
    "reclaim-same-epoch": "what is taken back has the epoch that it had, which the map may take for older than the lost set's",
    "adopt-unasked": "no set is asked whether it holds what another is to adopt",
    "adopt-beside-jobs": "something is adopted while a job, such as another adoption, has not ended at both ends",
    "job-beside-jobs": "the next job is ordered though the donor has not ended the one before",
    "moved-unheard": "the map has it from its owner alone where a tablet is, not from the donor that it has moved there",
}

NONE = ("none",)
GONE = ("gone",)
# A set: (tablet, catalog). Tablet: none; own, epoch, write, schema, job or None; given, epoch, write, schema, job, to;
# stage, job, from, attempt, write (-1: not complete), schema, binds.
# State: sets, ended (of each: job -> moved?), floors, next job, map (set, epoch), ended at the donor, at the recipient,
# floor, acknowledged (write), attempts begun, messages, catalog at set 0.
# Then of a loss: (set, the tablet is missing with it, the epoch that it has told the director, who has not heard it yet, or 0),
# adoptions ordered, and the one that sets are asked about: (job, to, epoch, who has said no).


def start(owner):
    sets = tuple((("own", 1, 0, 0, None) if at == owner else NONE, 0) for at in range(SETS))
    return (sets, (frozenset(),) * SETS, (0,) * SETS, 1, (owner, 1), frozenset(), frozenset(), 0, 0, 0, frozenset(),
            None, 0, None)


FIELDS = ("sets", "ended", "floors", "following", "known", "gone", "dropped", "floor", "acked", "begun", "messages", "lost",
          "orders", "adoption")


def put(items, at, item):
    return items[:at] + (item,) + items[at + 1:]


def holds(tablet):
    return tablet[0] in ("own", "given") or (tablet[0] == "stage" and tablet[6])


def steps(state, fault, jobs, writes, changes, attempts, loses, adoptions):
    sets, ended, floors, following, known, gone, dropped, floor, acked, begun, messages, lost, orders, adoption = state

    def made(**new):
        all_of = dict(sets=sets, ended=ended, floors=floors, following=following, known=known, gone=gone, dropped=dropped,
                      floor=floor, acked=acked, begun=begun, messages=messages, lost=lost, orders=orders, adoption=adoption)
        all_of.update(new)
        return tuple(all_of[name] for name in FIELDS)

    def with_set(at, tablet=None, catalog=None):
        old_tablet, old_catalog = sets[at]
        return put(sets, at, (old_tablet if tablet is None else tablet, old_catalog if catalog is None else catalog))

    def live(at, job):
        return job not in ended[at] and (job > floors[at] or fault == "no-floor")

    # A client's write, acknowledged at once.
    for at, (tablet, _) in enumerate(sets):
        if tablet[0] == "own" and acked < writes:
            yield made(sets=with_set(at, ("own", tablet[1], acked + 1, tablet[3], tablet[4])), acked=acked + 1)
    if loses:
        yield from losses(state, fault, adoptions, made, with_set, live)
    # Where a set may be lost the next job waits until those before have ended at the donor, as the director's table has them.
    follows = not loses or fault == "job-beside-jobs" or all(job in gone for job in range(1, following))
    # The director, by a map that may be old.
    if following - orders <= jobs and follows:
        for to in range(SETS):
            if to != known[0]:
                yield made(following=following + 1, messages=messages | {("job", following, known[0], to, known[1])})
                if fault == "reassign":
                    yield made(following=following + 1, messages=messages | {("own", following, known[0], to, known[1] + 1, acked, 0, -1)})
    if floor + 1 < following and floor + 1 in gone and floor + 1 in dropped:
        yield made(floor=floor + 1)
    for at, (tablet, _) in enumerate(sets):
        if floors[at] < floor and tablet != GONE:
            yield made(floors=put(floors, at, floor), ended=put(ended, at, frozenset(job for job in ended[at] if job > floor)))
        if tablet[0] == "own" and tablet[1] > known[1]:
            yield made(known=(at, tablet[1]))
    # The schema: set 0 first, then the others; it empties the tablet.
    for at, (tablet, catalog) in enumerate(sets):
        if catalog >= changes or (at != 0 and sets[0][1] <= catalog) or tablet == GONE:
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
                hears = loses and epoch + 1 > known[1] and fault != "moved-unheard"
                yield made(sets=with_set(at, NONE), gone=gone | {job}, ended=put(ended, at, ended[at] | {job}),
                           known=(to, epoch + 1) if hears else known)
            if fault == "take-back":
                yield made(sets=with_set(at, ("own", epoch, write, schema, None)), gone=gone | {job})
    for message in messages:
        kind, job = message[0], message[1]
        if kind == "job":
            _, _, giver, to, epoch = message
            tablet = sets[giver][0]
            if job in gone or not live(giver, job) or job in ended[giver] or tablet == GONE:
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
                       dropped=dropped | {job}, messages=messages | {("owned", job)}, lost=is_back(lost))
        elif kind == "cancelled":
            _, _, to = message
            tablet, _ = sets[to]
            if job not in dropped and tablet != GONE:
                drops = tablet[0] == "stage" and tablet[1] == job
                yield made(sets=with_set(to, NONE) if drops else sets,
                           ended=put(ended, to, ended[to] | ({job} if job > floors[to] else set())), dropped=dropped | {job})


def is_back(lost):
    """Somebody owns the tablet: nothing is missing any more, and nothing more is forgiven."""
    return lost and (lost[0], False, lost[2])


def losses(state, fault, adoptions, made, with_set, live):
    sets, ended, following, known, gone, dropped, acked, messages, lost, orders, adoption = (
        state[FIELDS.index(name)] for name in ("sets", "ended", "following", "known", "gone", "dropped", "acked", "messages",
                                               "lost", "orders", "adoption"))
    ordered = {message[1]: message[2:4] for message in messages if message[0] == "job"}
    for at in range(1, SETS) if lost is None else ():
        tablet = sets[at][0]
        # Where it was given to the set that is lost, or was by it and is owned, nothing has gone.
        missing = tablet[0] in ("own", "given") and not any(of[0] == "own" for of, _ in sets[:at] + sets[at + 1:])
        says = tablet[1] if tablet[0] == "own" and tablet[1] > known[1] else 0
        new = dict(sets=put(sets, at, (GONE, 0)), ended=put(ended, at, frozenset()), floors=put(state[2], at, 0))
        yield made(lost=(at, missing, says), **new)
        # Or nothing of what it has sent comes any more; what the director has to tell does not depend on it.
        sent = {message for message in messages if message[1] in ordered and (
            (message[0] in ("stage", "copy", "own") and ordered[message[1]][0] == at) or
            (message[0] in ("staged", "ready", "owned") and ordered[message[1]][1] == at))}
        if sent or says:
            yield made(lost=(at, missing, 0), messages=messages - sent, **new)
    if lost and lost[2] > known[1]:
        yield made(known=(lost[0], lost[2]), lost=(lost[0], lost[1], 0))
    for job, (giver, to) in ordered.items():
        if lost and giver == lost[0] and job not in gone:
            yield made(gone=gone | {job}, messages=messages | {("cancelled", job, to)})
        if lost and to == lost[0] and job not in dropped:
            yield made(dropped=dropped | {job})
        # The director may say this at any time from then on, and again; what is not given yet is cancelled as ever.
        tablet, catalog = sets[giver]
        if (fault == "reclaim-early" or (lost and to == lost[0])) and tablet[0] == "given" and tablet[4] == job:
            epoch = tablet[1] + (0 if fault == "reclaim-same-epoch" else 2)
            has = (acked, catalog) if lost and lost[1] else tablet[2:4]
            yield made(sets=with_set(giver, ("own", epoch) + has + (None,)), gone=gone | {job}, dropped=dropped | {job},
                       ended=put(ended, giver, ended[giver] | {job}), lost=is_back(lost))
    over = all(job in gone and job in dropped for job in range(1, following)) or fault == "adopt-beside-jobs"
    if lost and known[0] == lost[0] and orders < adoptions and over:
        for to in range(SETS):
            if to != lost[0]:
                yield made(following=following + 1, orders=orders + 1, adoption=(following, to, known[1] + 1, frozenset()))
    if adoption:
        job, to, epoch, free = adoption
        for at, (tablet, _) in enumerate(sets):
            if tablet != GONE and holds(tablet):
                yield made(adoption=None, gone=gone | {job}, dropped=dropped | {job})
            elif tablet != GONE and at not in free:
                yield made(adoption=(job, to, epoch, free | {at}))
        if len(free) == SETS - 1 or fault == "adopt-unasked":
            yield made(adoption=None, messages=messages | {("adopt", job, to, epoch)})
    for message in messages:
        if message[0] == "adopt":
            _, job, to, epoch = message
            tablet, catalog = sets[to]
            if live(to, job) and tablet == NONE:
                yield made(sets=with_set(to, ("own", epoch, acked, catalog, None)), gone=gone | {job}, dropped=dropped | {job},
                           ended=put(ended, to, ended[to] | {job}), lost=is_back(lost), orders=orders if lost[1] else -1)


def wrong(state):
    sets, acked, lost = state[0], state[8], state[11]
    if state[12] < 0:
        return "what was not lost is adopted"
    owners = [(tablet, catalog) for tablet, catalog in sets if tablet[0] == "own"]
    if len(owners) > 1:
        return "two owners"
    if not owners:
        given = [tablet for tablet, _ in sets if tablet[0] == "given"]
        if given and all(any(tablet[4] in ended for ended in state[1]) for tablet in given):
            return "what is given away nobody will own"
        return "" if given or (lost and lost[1]) else "nobody has it"
    (tablet, catalog) = owners[0]
    if tablet[2] != acked:
        return "an acknowledged write is not there"
    return "" if tablet[3] == catalog else "it is of before a change of the schema"


def rests(state, jobs, changes, loses):
    sets, following, known, gone, dropped, orders = (state[at] for at in (0, 3, 4, 5, 6, 12))
    if following - orders <= jobs or any(catalog != changes and tablet != GONE for tablet, catalog in sets):
        return False
    if any(tablet not in (NONE, GONE) and (tablet[0] != "own" or tablet[4]) for tablet, _ in sets):
        return False
    # Where a set may be lost: the map knows who owns it, and all jobs are over.
    owns = any(tablet[0] == "own" and (at, tablet[1]) == known for at, (tablet, _) in enumerate(sets))
    return not loses or (owns and all(job in gone and job in dropped for job in range(1, following)))


def tell(state, before, first):
    """How a state came about: what changed from one to the next."""
    path = [state]
    while path[-1] != first:
        path.append(before[path[-1]][0])
    for old, new in zip(path[:0:-1], path[-2::-1]):
        for name, was, now in zip(FIELDS, old, new):
            if was != now:
                print(f"  {name}:", f"+{list(now - was)} -{list(was - now)}" if isinstance(now, frozenset) else now)
        print()


def check(fault="", jobs=1, writes=1, changes=1, attempts=2, owner=1, most=4_000_000, loses=0, adoptions=1, trace=False):
    """(states, what is wrong or ""); a state from which no end can be reached counts as wrong."""
    first = start(owner)
    seen, queue, before = {first}, deque([first]), {}
    while queue:
        state = queue.popleft()
        if wrong(state):
            if trace:
                tell(state, before, first)
            return len(seen), wrong(state)
        for after in steps(state, fault, jobs, writes, changes, attempts, loses, adoptions):
            before.setdefault(after, []).append(state)
            if after not in seen:
                seen.add(after)
                queue.append(after)
        if len(seen) > most:
            return len(seen), "too many states"
    ends = deque(state for state in seen if rests(state, jobs, changes, loses))
    reach = set(ends)
    while ends:
        for state in before.get(ends.popleft(), ()):
            if state not in reach:
                reach.add(state)
                ends.append(state)
    # Where all attempts are used up a job may have to wait for another one: that is no end of the model's making.
    stuck = [state for state in before if state not in reach and (state[9] < attempts or loses)]
    if stuck and trace:
        tell(stuck[0], before, first)
    return len(seen), "no end can be reached" if stuck else ""


if __name__ == "__main__":
    limits = dict(zip(("loses", "adoptions"), map(int, sys.argv[2:])))
    count, what = check(*sys.argv[1:2], **limits, trace=True)
    print(f"{count} states: {what or 'all is well'}")
