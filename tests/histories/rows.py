"""Whether the history of one row is linearizable: whether each command can be given one moment between its
call and its reply, so that the commands in the order of these moments answer what they did answer.

The search is Wing and Gong's ("Testing and verifying concurrent objects", 1993), with the memo of
Lowe's ("Testing for linearizability", 2017): a state that was reached once with the same set of
commands done is not looked at again. Rows are independent of each other, so a history is judged row
by row, which keeps the sets small.

A command whose reply never came has the reply None: it may have been done at any time after its call, or
never. One that was refused, so that it surely was not done, does not belong into a history.
"""

import dataclasses

FOREVER = float('inf')


@dataclasses.dataclass(frozen=True)
class Command:
    """`call` and `reply` are times; `reply` is FOREVER if none came, and `answer` is None then."""

    call: float
    reply: float
    kind: str
    argument: object = None
    answer: object = None


class Register:
    """What a row's column does: `put` a value, `get` it, `add` to it, `delete` it, `swap` (old, new) if it
    is `old` (answers whether). Steps return None if the answer is not what the command would say."""

    initial = None

    @staticmethod
    def step(state, command):
        """The state behind `command`, as a tuple of one; None if it cannot have answered so."""
        kind, argument, answer = command.kind, command.argument, command.answer
        unknown = command.reply == FOREVER
        if kind == 'put':
            return (argument,)
        if kind == 'delete':
            return (None,)
        if kind == 'get':
            return (state,) if unknown or answer == state else None
        if kind == 'add':
            result = (state or 0) + argument
            return (result,) if unknown or answer == result else None
        if kind == 'swap':
            old, new = argument
            done = state == old
            if not unknown and answer != done:
                return None
            return (new if done else state,)
        raise ValueError(f'a register cannot {kind}')


class _Event:
    """A call or a reply in the list of all, by time."""

    __slots__ = ('index', 'is_call', 'match', 'previous', 'next')

    def __init__(self, index, is_call):
        self.index = index
        self.is_call = is_call
        self.match = None
        self.previous = None
        self.next = None


def _events(commands):
    """The head of a list of calls and replies in order of time; at one moment calls come first, which allows
    more. Commands without a reply have it at the end."""
    events = []
    for index, command in enumerate(commands):
        call, reply = _Event(index, True), _Event(index, False)
        call.match = reply
        events.append((command.call, 0, index, call))
        events.append((command.reply, 1, index, reply))
    events.sort(key=lambda entry: entry[:3])
    head = _Event(-1, True)
    last = head
    for *_, event in events:
        last.next, event.previous = event, last
        last = event
    return head


def _lift(call):
    """Takes a call and its reply out of the list."""
    for event in (call, call.match):
        event.previous.next = event.next
        if event.next is not None:
            event.next.previous = event.previous


def _unlift(call):
    for event in (call.match, call):
        event.previous.next = event
        if event.next is not None:
            event.next.previous = event


def linearizable(commands, model=Register):
    """Whether `commands`, all of one row, are. Exponential in how many run at once, at worst."""
    open_ones = sum(1 << i for i, command in enumerate(commands) if command.reply == FOREVER)
    everything = (1 << len(commands)) - 1
    head = _events(commands)
    state, done = model.initial, 0
    seen = set()
    stack = []
    event = head.next
    while done | open_ones != everything:
        if event.is_call:
            after = model.step(state, commands[event.index])
            mark = done | 1 << event.index
            if after is not None and (mark, after) not in seen:
                seen.add((mark, after))
                stack.append((event, state))
                state, done = after[0], mark
                _lift(event)
                event = head.next
            else:
                event = event.next
            continue
        # A reply that must lie behind its command, which is not done: back to the last choice.
        if commands[event.index].reply == FOREVER:
            event = None
        if not stack:
            return False
        event, state = stack.pop()
        done &= ~(1 << event.index)
        _unlift(event)
        event = event.next
    return True


def first_unlinearizable(history, model=Register):
    """`history` is pairs of a row and a Command. The first row that is not linearizable, with the shortest
    beginning of its commands that is not; None if all are."""
    rows = {}
    for row, command in history:
        rows.setdefault(row, []).append(command)
    for row, commands in rows.items():
        if linearizable(commands, model):
            continue
        commands.sort(key=lambda command: command.reply)
        low, high = 1, len(commands)
        while low < high:  # replies known by some moment: the rest may be unanswered as yet
            middle = (low + high) // 2
            if linearizable(_until(commands, middle), model):
                low = middle + 1
            else:
                high = middle
        return row, _until(commands, low)
    return None


def _until(commands, count):
    """The first `count` by their replies, and of the others those that had been called by then, unanswered."""
    moment = commands[count - 1].reply
    begun = [dataclasses.replace(command, reply=FOREVER, answer=None)
             for command in commands[count:] if command.call <= moment]
    return commands[:count] + begun
