"""Makes a failing history short: leaves out pieces for as long as it still fails."""

import time


def shrink(history, fails, seconds_max):
    """The shortest history found in the time. `fails(history)` replays it on a fresh server."""
    deadline = time.monotonic() + seconds_max
    piece = max(1, len(history) // 2)
    while piece >= 1 and time.monotonic() < deadline:
        at = 0
        removed = False
        while at < len(history) and time.monotonic() < deadline:
            shorter = history[:at] + history[at + piece:]
            if shorter and fails(shorter):
                history = shorter
                removed = True
            else:
                at += piece
        if piece == 1 and not removed:
            break
        piece = max(1, piece // 2) if piece > 1 or not removed else 1
    return history


def shrink_words(history, fails, seconds_max):
    """Leaves out cells of the CPUTs that are left."""
    deadline = time.monotonic() + seconds_max
    for at, step in enumerate(history):
        if step[0] != 'call' or step[2][0].upper() != b'CPUT':
            continue
        head, groups = _cells(step[2])

        def with_groups(kept, at=at, step=step, head=head):
            words = head + [word for group in kept for word in group]
            return history[:at] + [(step[0], step[1], words)] + history[at + 1:]

        if len(groups) > 1:
            left = max(0, deadline - time.monotonic())
            groups = shrink(groups, lambda kept, make=with_groups: fails(make(kept)), left)
            history = with_groups(groups)
    return history


def _cells(words):
    """(what comes before the cells, each cell's words) of a CPUT."""
    at = 3
    while at < len(words) and words[at].upper() in (b'NX', b'XX'):
        at += 1
    if at < len(words) and words[at].upper() == b'IF':
        return words, []
    head, groups = words[:at], []
    while at < len(words):
        group = words[at:at + 2]
        at += 2
        while at < len(words) and words[at].upper() in (b'AS', b'TS', b'TTL'):
            group += words[at:at + 2]
            at += 2
        groups.append(group)
    return head, groups
