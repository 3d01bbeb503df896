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
