#!/usr/bin/python3
"""An explicit-state model of one moment over sets (src/cluster/catalog_agreement.h): every state of a cut over three sets, of
writes that are made one after the other, of a tablet that goes from set 1 to set 2, and of leaders that die is visited.

  set 0 logs the cut, and holds replies behind it; when it is committed, the others are told; each logs it, holds replies
  behind it, and answers when it is committed there; when all have, they are told the end of the hold; each says whether its
  hold has lasted until then, under one leader, and whether no tablet was on its way there; if all say so, set 0 logs that
  the cut is good, and tells that when it is committed.

Checked of each cut that was told good: nobody marks it bad; of two writes of which the second was begun when the first was
acknowledged, it has the first if it has the second; and the tablet is owned by one set in it, not by two and not by none.
Messages may be lost, late and repeated. Usage: cut_model.py [fault], one of FAULTS; it is to be found.
"""

import sys
from collections import deque

SETS = 3
WRITES = 2
DEATHS = 1
FAULTS = {
    "no-hold": "a set does not hold replies behind the cut",
    "no-confirmation": "the cut is good when all have it",
    "give-past-the-hold": "that a tablet is given away is told behind a hold",
    "leader-change": "the next leader of a set confirms the hold of the one before",
    "told-early": "the cut is told good before that is committed",
    "given-unseen": "a set confirms though a tablet is on its way from it",
}
NONE, LOGGED, COMMITTED = range(3)
# of a set: (its cut, whether it holds, whether its hold has lasted and nothing was on its way, what it has confirmed)
SET = (NONE, False, False, None)
# sets, writes (set, behind its cut, acknowledged), (give, own, done: None, or whether behind the cut), have, released, verdict
# of the cut (None, "logged", "good", "bad"), told, deaths
START = ((SET,) * SETS, (), (None, None, None), frozenset(), False, None, False, 0)


def put(items, at, item):
    return items[:at] + (item,) + items[at + 1:]


def steps(state, fault):
    sets, writes, move, have, released, verdict, told, deaths = state

    def so(**changed):
        whole = dict(sets=sets, writes=writes, move=move, have=have, released=released, verdict=verdict, told=told,
                     deaths=deaths)
        whole.update(changed)
        return tuple(whole.values())

    def shown(at, behind):  # whether what depends on a record there may be told
        return not (behind and sets[at][1])

    give, own, done = move
    behind = [cut != NONE for cut, _, _, _ in sets]
    # Writes.
    if (not writes or writes[-1][2]) and len(writes) < WRITES:
        for at in range(SETS):
            yield f"write at {at}", so(writes=writes + ((at, behind[at], False),))
    if writes and not writes[-1][2]:
        at, is_behind, _ = writes[-1]
        if shown(at, is_behind):
            yield "its reply", so(writes=put(writes, len(writes) - 1, (at, is_behind, True)))
    # The tablet: given by 1 when nothing is held there, owned by 2.
    if give is None and not sets[1][1]:
        yield "give", so(move=(behind[1], None, None))
    if give is None and fault == "give-past-the-hold":
        yield "give", so(move=(behind[1], None, None))
    if give is not None and own is None and (shown(1, give) or fault == "give-past-the-hold"):
        yield "own", so(move=(give, behind[2], None))
    if own is not None and done is None and shown(2, own):
        yield "done", so(move=(give, own, behind[1]))
    # The cut.
    for at in range(SETS):
        cut, holds, lasts, said = sets[at]
        may = at == 0 or sets[0][0] == COMMITTED
        if cut == NONE and may and (at > 0 or verdict is None):
            on_its_way = at == 1 and give is not None and done is None and fault != "given-unseen"
            yield f"{at} logs", so(sets=put(sets, at, (LOGGED, fault != "no-hold", not on_its_way, None)))
        if cut == LOGGED:
            yield f"{at} commits", so(sets=put(sets, at, (COMMITTED, holds, lasts, said)), have=have | {at})
        if cut != NONE and holds:
            yield f"hold of {at} ends", so(sets=put(sets, at, (cut, False, False, said)))
        if cut == COMMITTED and released and said is None:
            says = lasts and (holds or fault in ("no-hold", "leader-change"))
            yield f"{at} confirms {says}", so(sets=put(sets, at, (cut, False, lasts, says)))
        if deaths < DEATHS and cut != NONE:
            # The next one holds if it knows of it for no longer than a hold; it confirms nothing.
            for after in (True, False):
                then = (cut, after, lasts and fault == "leader-change", said)
                ends = so(sets=put(sets, at, then), deaths=deaths + 1)
                if at == 0 and verdict != "good":
                    # What was not committed is lost, and who comes next takes nothing for good.
                    ends = so(sets=put(sets, at, then), deaths=deaths + 1, verdict="bad")
                if cut == COMMITTED:
                    yield f"leader of {at} dies", ends
            if cut == LOGGED and at > 0:
                lost = tuple(w for w in writes if not (w[0] == at and w[1]))
                if all(not w[2] for w in writes if w not in lost) and not (at == 1 and True in (give, done)) and not (
                        at == 2 and own):
                    yield f"leader of {at} dies, with the cut", so(sets=put(sets, at, SET), writes=lost, deaths=deaths + 1)
    if len(have) == SETS and not released and verdict is None:
        yield "release", so(released=True)
    good = all(said for _, _, _, said in sets)
    if fault == "no-confirmation":
        good = len(have) == SETS
    if good and verdict is None:
        yield "good is logged", so(verdict="logged", told=told or fault == "told-early")
    if verdict == "logged":
        yield "good is committed", so(verdict="good", told=True)


def wrong(state):
    sets, writes, (give, own, done), _, _, verdict, told, _ = state
    if not told:
        return None
    if verdict == "bad":
        return "a cut that was told good is bad"
    inside = [not behind for _, behind, _ in writes]
    if any(inside[j] and not inside[i] for j in range(len(writes)) for i in range(j)):
        return "a write is in the cut, and one that was acknowledged before it is not"
    donor = give is None or give
    recipient = own is not None and not own
    if donor and recipient:
        return "two sets own the tablet"
    if not donor and not recipient:
        return "no set owns the tablet"
    return None


def check(fault=None):
    """The numbers of states and of those with a good cut; or what is wrong, and the way there."""
    came = {START: None}
    queue = deque([START])
    good = 0
    while queue:
        state = queue.popleft()
        good += state[5] == "good"
        error = wrong(state)
        if error is not None:
            way = []
            while came[state] is not None:
                state, step = came[state]
                way.append(step)
            return error, list(reversed(way))
        for step, after in steps(state, fault):
            if after not in came:
                came[after] = (state, step)
                queue.append(after)
    if good == 0:
        return "no cut is ever good", []
    return len(came), [f"{good} with a good cut"]


if __name__ == "__main__":
    found, path = check(sys.argv[1] if len(sys.argv) > 1 else None)
    print(found, *path, sep="\n  ")
    sys.exit(0 if isinstance(found, int) else 1)
