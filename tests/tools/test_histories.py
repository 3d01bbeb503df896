"""The judges of tests/histories pass what one server could have answered, and nothing else."""

import itertools
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from histories import appends, rows  # noqa: E402
from histories.appends import Transaction  # noqa: E402
from histories.rows import FOREVER, Command, Register  # noqa: E402


def brute_force(commands):
    """The definition, for a few commands: some order of all, but for unanswered ones, fits times and answers."""
    known = [i for i, c in enumerate(commands) if c.reply != FOREVER]
    unknown = [i for i, c in enumerate(commands) if c.reply == FOREVER]
    for count in range(len(unknown) + 1):
        for some in itertools.combinations(unknown, count):
            for order in itertools.permutations(known + list(some)):
                if any(commands[b].reply < commands[a].call
                       for i, a in enumerate(order) for b in order[i + 1:]):
                    continue
                state = Register.initial
                for i in order:
                    after = Register.step(state, commands[i])
                    if after is None:
                        break
                    state = after[0]
                else:
                    return True
    return False


def run_row(generator, count, clients=4):
    """A history that is linearizable: each command is done at a moment between call and reply."""
    state, commands, busy = None, [], [0.0] * clients
    moments = []
    for _ in range(count):
        client = generator.randrange(clients)
        call = busy[client] + generator.random()
        done = call + generator.random()
        reply = done + generator.random()
        busy[client] = reply
        kind = generator.choice(['put', 'get', 'get', 'delete', 'swap'])
        argument = {'put': generator.randrange(4), 'swap': (generator.choice([None, 0, 1, 2, 3]), generator.randrange(4))}
        moments.append((done, call, reply, kind, argument.get(kind)))
    for done, call, reply, kind, argument in sorted(moments, key=lambda moment: moment[0]):
        answer = None
        if kind == 'get':
            answer = state
        elif kind == 'swap':
            answer = state == argument[0]
        lost = generator.random() < 0.1
        if lost and generator.random() < 0.5:
            commands.append(Command(call, FOREVER, kind, argument))  # and never done
            continue
        state = Register.step(state, Command(call, FOREVER, kind, argument))[0]
        commands.append(Command(call, FOREVER if lost else reply, kind, argument, None if lost else answer))
    return commands


class RowCase(unittest.TestCase):
    def judge(self, good, *commands):
        self.assertEqual(rows.linearizable(list(commands)), good, commands)
        self.assertEqual(brute_force(list(commands)), good, commands)

    def test_one_after_the_other(self):
        self.judge(True)
        self.judge(True, Command(0, 1, 'put', 5), Command(2, 3, 'get', answer=5))
        self.judge(False, Command(0, 1, 'put', 5), Command(2, 3, 'get', answer=None))
        self.judge(False, Command(0, 1, 'get', answer=7))

    def test_a_read_beside_a_write_may_see_either(self):
        for seen in (None, 5):
            self.judge(True, Command(0, 9, 'put', 5), Command(2, 3, 'get', answer=seen))
        self.judge(True, Command(0, 9, 'put', 5), Command(2, 3, 'get'), Command(4, 5, 'get', answer=5))

    def test_a_stale_read_is_found(self):
        self.judge(False, Command(0, 9, 'put', 5), Command(2, 3, 'get', answer=5), Command(4, 5, 'get'))

    def test_an_acknowledged_write_that_is_lost_is_found(self):
        self.judge(False, Command(0, 1, 'put', 1), Command(2, 3, 'put', 2), Command(4, 5, 'get', answer=1))

    def test_what_was_not_answered_may_have_been_done_later_or_never(self):
        lost = Command(0, FOREVER, 'put', 5)
        self.judge(True, lost, Command(1, 2, 'get'), Command(3, 4, 'get', answer=5))
        self.judge(True, lost, Command(1, 2, 'get'))
        self.judge(False, lost, Command(1, 2, 'get', answer=5), Command(3, 4, 'get'))

    def test_two_that_both_swap_are_found(self):
        put = Command(0, 1, 'put', 1)
        self.judge(False, put, Command(2, 5, 'swap', (1, 2), True), Command(2, 5, 'swap', (1, 3), True))
        self.judge(True, put, Command(2, 5, 'swap', (1, 2), True), Command(2, 5, 'swap', (1, 3), False))

    def test_sums_tell_of_each_addition(self):
        self.judge(True, Command(0, 5, 'add', 1, 2), Command(0, 5, 'add', 1, 1))
        self.judge(False, Command(0, 5, 'add', 1, 1), Command(0, 5, 'add', 1, 1))

    def test_it_is_the_definition(self):
        for seed in range(600):
            generator = random.Random(seed)
            commands = run_row(generator, 5, 3)
            if generator.random() < 0.7:  # and one answer is another one
                at = generator.randrange(len(commands))
                if commands[at].kind == 'get' and commands[at].reply != FOREVER:
                    old = commands[at]
                    commands[at] = Command(old.call, old.reply, 'get', None, generator.choice([None, 0, 1, 2, 3]))
            self.assertEqual(rows.linearizable(commands), brute_force(commands), f'seed {seed}: {commands}')

    def test_long_histories_that_are_linearizable_pass(self):
        for seed in range(20):
            self.assertTrue(rows.linearizable(run_row(random.Random(seed), 400)), f'seed {seed}')

    def test_the_row_and_a_short_beginning_are_named(self):
        history = [('a', Command(i, i + 0.5, 'put', i)) for i in range(50)]
        history += [('b', Command(i, i + 0.5, 'put', i)) for i in range(20)]
        history.append(('b', Command(20, 21, 'get', answer=3)))
        history += [('b', Command(i, i + 0.5, 'put', i)) for i in range(30, 60)]
        row, commands = rows.first_unlinearizable(history)
        self.assertEqual(row, 'b')
        self.assertEqual(len(commands), 21)
        self.assertIsNone(rows.first_unlinearizable(history[:70]))


def run_appends(generator, count, clients=5):
    """Transactions that are done one after the other, each at a moment between its begin and its end."""
    state = {row: [] for row in 'abc'}
    moments, busy, value = [], [0.0] * clients, itertools.count()
    for _ in range(count):
        client = generator.randrange(clients)
        begin = busy[client] + generator.random()
        done = begin + generator.random()
        busy[client] = end = done + generator.random()
        moments.append((done, begin, end))
    transactions = []
    for done, begin, end in sorted(moments):
        steps = [(generator.choice(['append', 'read']), generator.choice('abc')) for _ in range(1 + generator.randrange(3))]
        fate = generator.random()
        result = []
        for kind, row in steps:
            if kind == 'read':
                result.append(('read', row, None if fate < 0.1 else list(state[row])))
                continue
            result.append(('append', row, next(value)))
            if fate > 0.05:
                state[row].append(result[-1][2])
        if fate < 0.02:
            transactions.append(Transaction(begin, end, result, refused=True))
        else:
            transactions.append(Transaction(begin, FOREVER if fate < 0.1 else end, result))
    return transactions


class AppendCase(unittest.TestCase):
    def judge(self, word, *transactions):
        wrong = appends.fault([Transaction(*each) for each in transactions])
        if word is None:
            self.assertIsNone(wrong)
        else:
            self.assertIn(word, wrong or 'nothing wrong')

    def test_histories_of_one_server_pass(self):
        for seed in range(200):
            transactions = run_appends(random.Random(seed), 150)
            random.Random(seed).shuffle(transactions)
            self.assertIsNone(appends.fault(transactions), f'seed {seed}')

    def test_a_long_history_takes_linear_time(self):
        self.assertIsNone(appends.fault(run_appends(random.Random(1), 3000)))

    def test_bad_reads(self):
        one = (0, 1, [('append', 'a', 1)])
        self.judge('nobody appended', one, (2, 3, [('read', 'a', [1, 2])]))
        self.judge('refused', (0, 1, [('append', 'a', 1)], True), (2, 3, [('read', 'a', [1])]))
        self.judge('another order', one, (0, 1, [('append', 'a', 2)]), (2, 3, [('read', 'a', [1, 2])]),
                   (2, 3, [('read', 'a', [2, 1])]))
        self.judge('twice', one, (2, 3, [('read', 'a', [1, 1])]))
        self.judge('in the middle', (0, 1, [('append', 'a', 1), ('append', 'a', 2)]), (0, 1, [('read', 'a', [1])]))
        self.judge('its own', (0, 1, [('append', 'a', 1), ('read', 'a', [])]))
        self.judge('still to append', (0, 1, [('read', 'a', [1]), ('append', 'a', 1)]))

    def test_a_stale_read_is_found(self):
        self.judge('no order', (0, 1, [('append', 'a', 1)]), (2, 3, [('read', 'a', [])]), (4, 5, [('read', 'a', [1])]))

    def test_an_acknowledged_append_that_is_lost_is_found(self):
        one = (0, 1, [('append', 'a', 1)])
        self.judge('no order', one, (2, 3, [('read', 'a', [])]))
        # Without an answer it may have been done later, or not at all.
        self.judge(None, (0, FOREVER, [('append', 'a', 1)]), (2, 3, [('read', 'a', [])]))

    def test_half_a_transaction_is_found(self):
        both = (0, 9, [('append', 'a', 1), ('append', 'b', 1)])
        self.judge('no order', both, (2, 3, [('read', 'a', [1]), ('read', 'b', [])]), (10, 11, [('read', 'b', [1])]))
        self.judge(None, both, (2, 3, [('read', 'a', [1]), ('read', 'b', [1])]))

    def test_two_that_do_not_see_each_other_are_found(self):
        self.judge('no order', (0, 9, [('read', 'a', []), ('append', 'b', 1)]),
                   (0, 9, [('read', 'b', []), ('append', 'a', 1)]), (10, 11, [('read', 'a', [1]), ('read', 'b', [1])]))

    def test_an_order_against_time_is_found(self):
        self.judge('no order', (0, 1, [('append', 'a', 1)]), (2, 3, [('append', 'a', 2)]),
                   (4, 5, [('read', 'a', [2, 1])]))

    def test_a_good_history_with_one_read_cut_short_is_found(self):
        found = 0
        for seed in range(100):
            generator = random.Random(seed)
            transactions = run_appends(generator, 100)
            reads = [(t, i) for t in transactions if t.end != FOREVER and not t.refused
                     for i, step in enumerate(t.steps)
                     if step[0] == 'read' and step[2] and len(t.steps) == 1]
            transaction, at = generator.choice(reads)
            kind, row, values = transaction.steps[at]
            transaction.steps[at] = (kind, row, values[:-min(len(values), 5)])
            found += appends.fault(transactions) is not None
        self.assertGreater(found, 90)


if __name__ == '__main__':
    unittest.main()
