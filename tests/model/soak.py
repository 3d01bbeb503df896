"""The model test as a program: python3 tests/model/soak.py --seed 1 --commands 200000 --protocol both

Exit status 1 and a shrunk history on a difference. `--minutes` runs seed after seed until then.
"""

import argparse
import contextlib
import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'e2e'))

from cellar_server import CellarServer  # noqa: E402
from model.cluster import ClusterDriver  # noqa: E402
from model.drive import Driver, show_step  # noqa: E402
from model.follower import Follower  # noqa: E402
from model.generate import BIG, HUGE, SMALL, Generator  # noqa: E402
from model.resp import narrow  # noqa: E402
from model.scans import Difference  # noqa: E402
from model.shrink import shrink, shrink_words  # noqa: E402

PROTOCOLS = {'2': (2, 2), '3': (3, 3), 'both': (2, 3, 2)}
OPTIONS = {'enable-debug-command': 'yes', 'appendonly': 'yes', 'appendfsync': 'always', 'save': ''}
EVENTS = [('dump', 400), ('reload', 3000), ('save', 3500), ('crash', 5000), ('restart', 9000)]
# With a replica beside it.
FOLLOWER_EVENTS = [('dump', 300), ('follower', 2000)]
STRANGERS_EVENTS = [('strangers', 200)]
# Of a cluster of three sets; DEBUG RELOAD is not of sets.
CLUSTER_EVENTS = [('dump', 400), ('save', 3500), ('crash', 2500), ('restart', 4500), ('tablets', 10)]
# Pages of one row, of a few, of all: every so many steps another size.
PAGES_EVERY = 100
PAGE_BYTES = (1, 100, 300, 1000, 16 << 20)


@contextlib.contextmanager
def new_driver(protocols, follows, strangers=False, cluster=None):
    """A Driver of a fresh server, with a replica if `follows`; with a seed for `cluster`, of three sets."""
    with contextlib.ExitStack() as stack:
        if cluster is not None:
            from cluster_server import ClusterServer  # it stands behind all clients
            server = stack.enter_context(ClusterServer(OPTIONS))
            server.fixed = False
            driver = ClusterDriver(server, protocols, cluster)
            stack.callback(driver.close)
            yield driver
            return
        server = stack.enter_context(CellarServer(options=OPTIONS))
        follower = None
        if follows:
            follower = Follower(stack.enter_context(CellarServer(options=OPTIONS)), server)
            stack.callback(follower.close)
        driver = Driver(server, protocols, follower, strangers)
        stack.callback(driver.close)
        yield driver


class Failure(Exception):
    """A difference, with all that is needed to repeat it."""

    def __init__(self, seed, history, difference):
        super().__init__('seed %d, step %d: %s' % (seed, len(history), difference.what))
        self.seed = seed
        self.history = history
        self.difference = difference

    def report(self):
        lines = ['seed %d, %d steps' % (self.seed, len(self.history))]
        lines += ['  ' + show_step(step) for step in self.history[-60:]]
        path, expected, got = narrow(self.difference.expected, self.difference.got)
        lines += ['at:       %s' % self.difference.what,
                  'first:    %s expected %.1000r, got %.1000r' % (path, expected, got),
                  'expected: %.3000r' % (self.difference.expected,),
                  'got:      %.3000r' % (self.difference.got,)]
        return '\n'.join(lines)


def run(seed, commands, protocols, deadline=None, profile=SMALL, follows=False, strangers=False, cluster=False):
    """Drives a fresh server; the number of commands compared. Failure on a difference."""
    rng = random.Random(seed)
    history = []
    events = EVENTS + (FOLLOWER_EVENTS if follows else []) + (STRANGERS_EVENTS if strangers else [])
    if cluster:
        events = CLUSTER_EVENTS
    with new_driver(protocols, follows, strangers, seed if cluster else None) as driver:
        generator = Generator(rng, driver.model, len(protocols), profile)
        try:
            while driver.calls < commands:
                if deadline is not None and time.monotonic() > deadline:
                    break
                step = None
                if not generator.pending:
                    for name, every in events:
                        if rng.random() < 1 / every:
                            step = (name,)
                            if name == 'follower':
                                step = (name, rng.choice(('crash', 'restart', 'leads')))
                            elif name == 'tablets':
                                step = (name, rng.randrange(1 << 30))
                    if rng.random() < 1 / PAGES_EVERY:
                        step = ('pages', rng.choice(PAGE_BYTES))
                step = step or generator.step()
                history.append(step)
                driver.take(step)
            driver.flush()
            driver.take(('dump',))
        except Difference as difference:
            raise Failure(seed, history, difference) from None
        except (ConnectionError, OSError, ValueError, AssertionError) as error:
            text = '%r\n%s' % (error, driver.server.log()[-3000:])
            raise Failure(seed, history, Difference('the connection', 'replies', text)) from None
    return driver


def replay(history, protocols, follows=False, strangers=False, cluster=None):
    """The Difference of a history on a fresh server, or None."""
    with new_driver(protocols, follows, strangers, cluster) as driver:
        try:
            for step in history:
                driver.take(step)
            driver.flush()
            driver.take(('dump',))
        except Difference as difference:
            return difference
        except (ConnectionError, OSError, ValueError, AssertionError) as error:
            return Difference('the connection', 'replies',
                              '%r\n%s' % (error, driver.server.log()[-3000:]))
    return None


def kind_of(difference):
    """What a shorter history must fail with, so that it is still about the same mistake."""
    return difference.what.split(' ')[0], hasattr(difference.got, 'code')


def shrunk(failure, protocols, seconds_max=90, follows=False, strangers=False, cluster=False):
    """The same failure with a short history."""
    seed = failure.seed if cluster else None

    def fails(steps):
        found = replay(steps, protocols, follows, strangers, seed)
        return found is not None and kind_of(found) == kind_of(failure.difference)

    history = shrink(failure.history, fails, seconds_max)
    history = shrink_words(history, fails, seconds_max / 2)
    difference = replay(history, protocols, follows, strangers, seed)
    return Failure(failure.seed, history, difference) if difference else failure


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seed', type=int, default=None)
    parser.add_argument('--commands', type=int, default=50000, help='for each seed')
    parser.add_argument('--minutes', type=float, default=None)
    parser.add_argument('--protocol', choices=sorted(PROTOCOLS), default='both')
    parser.add_argument('--follower', action='store_true', help='a replica beside it is compared, too')
    parser.add_argument('--strangers', action='store_true', help="rows of another set stand in each table")
    parser.add_argument('--cluster', action='store_true', help='a cluster of three sets, with CELLAR_CLUSTER=3')
    parser.add_argument('--big', action='store_true', help='tables that are read in slices')
    parser.add_argument('--huge', action='store_true', help='one table of 30,000 cells to begin with')
    parser.add_argument('--shrink-seconds', type=float, default=90)
    parser.add_argument('--go-on', action='store_true', help='report a difference and take the next seed')
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.randrange(10**9)
    deadline = time.monotonic() + arguments.minutes * 60 if arguments.minutes else None
    protocols = PROTOCOLS[arguments.protocol]
    failed = 0
    while True:
        began = time.monotonic()
        try:
            driver = run(seed, arguments.commands, protocols, deadline,
                         HUGE if arguments.huge else BIG if arguments.big else SMALL,
                         arguments.follower, arguments.strangers, arguments.cluster)
            print('seed %d: %d commands, %d refused, %d digests, %.0f s' % (
                seed, driver.calls, driver.refused, driver.digests, time.monotonic() - began),
                flush=True)
        except Failure as failure:
            failed += 1
            print(failure, flush=True)
            print(shrunk(failure, protocols, arguments.shrink_seconds,
                         arguments.follower, arguments.strangers, arguments.cluster).report(), flush=True)
            if not arguments.go_on:
                return 1
        if deadline is None or time.monotonic() > deadline:
            return 1 if failed else 0
        seed += 1


if __name__ == '__main__':
    sys.exit(main())
