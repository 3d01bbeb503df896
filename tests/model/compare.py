"""Two builds side by side: the model's random commands go to both, and every reply must be the same bytes.

    make compare OLD=path/to/older/cellar [COMPARE_COMMANDS=200000]

For those who change how something is done and not what: error texts, cursors, CEXPLAIN and STATS count.
Beside each read go its CEXPLAIN, the pages behind its cursor, and spoilt ones: a word less, one twice,
two the other way round, an option from anywhere. Both servers have the same clock (DEBUG SET-TIME). What
a build draws by its own seed is not compared: replies to SAMPLE and sample(), ids of SNAPSHOT cursors.
Where figures alone differ, the query is asked again when both sweepers have passed. Differences are printed, at most DIFFERENCES_MAX of them; status 1 if there was one.
"""

import argparse
import os
import random
import re
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, 'tests'), os.path.join(ROOT, 'tests', 'e2e')]

from cellar_server import CellarServer  # noqa: E402
from model.commands import Model  # noqa: E402
from model.drive import START_MICROS  # noqa: E402
from model.generate import BIG, HUGE, SMALL, Generator  # noqa: E402
from model.resp import Client  # noqa: E402

OPTIONS = {'enable-debug-command': 'yes', 'appendonly': 'yes', 'appendfsync': 'no', 'save': '',
           'reply-max-bytes': '16mb'}
DIFFERENCES_MAX = 20
COMMANDS_PER_SEED = 20000
PAGES_MAX = 3
READS = {b'CSCAN', b'CCOUNT', b'CAGG', b'CROW', b'CROWS', b'CGET', b'CNEAR', b'CUPDATE', b'CDELRANGE'}
# May be asked as often as one likes.
QUERIES = READS - {b'CUPDATE', b'CDELRANGE'}
REPEATABLE = QUERIES | {b'CEXPLAIN'}
DRAWN = re.compile(rb'sample', re.IGNORECASE)
MEASURED = re.compile(rb'\r\n(micros|seconds|progress|memory|reclaimed|log_bytes)\r\n[:,$][^*%]*?(?=\r\n[$*%]|$)')
FIGURE = re.compile(rb'\d+')
EXAMINED = re.compile(rb'\r\n(rows|cells|bytes)\r\n:\d+')  # of STATS; by the sweeper's grace
SWEEPS_MAX = 12
SWEEP_SECONDS = .12
SPARE_WORDS = [
    b'PREFIX', b'RANGE', b'ROW', b'ROWS', b'COLUMNS', b'TIME', b'VERSIONS', b'FILTER', b'PERROW', b'SKIP',
    b'GROUPS', b'COUNT', b'CELLS', b'KEYSONLY', b'NOVALUES', b'WITHTS', b'WITHTYPES', b'WITHEXPIRY', b'STATS',
    b'REVERSE', b'SNAPSHOT', b'INDEX', b'NOINDEX', b'EQ', b'BETWEEN', b'FROM', b'WHERE', b'EACH', b'SAMPLE',
    b'LIMIT', b'BY', b'REDUCE', b'SORT', b'AT', b'STATE', b'ANALYZE', b'ALL', b'IN', b'SET', b'AS', b'1', b'0', b'a',
    b'-1', b'x', b'5', b'', b'*', b'a:b', b'DESC', b'ASC', b'KEY', b'VALUE', b'COLREVERSE', b'18446744073709551616']


class RawClient(Client):
    """Gives replies as they come, without reading more into them than where they end."""

    def read(self):
        begin = self._line()
        parts = [begin]
        mark, rest = begin[:1], begin[1:]
        if mark in b'$=' and int(rest) >= 0:
            parts.append(self._exactly(int(rest)))
        elif mark in b'*~>%' and int(rest) >= 0:
            parts += [self.read() for _ in range(int(rest) * (2 if mark == b'%' else 1))]
        return b'\r\n'.join(parts)


class Side:
    """One build: a server, and the clients of a history."""

    def __init__(self, binary, protocols):
        self.server = CellarServer(options=OPTIONS)
        os.environ['CELLAR_BINARY'] = binary
        self.server.start()
        self.clients = []
        for protocol in protocols:
            client = RawClient(self.server.port)
            if protocol == 3:
                client.call(b'HELLO', b'3')
            self.clients.append(client)

    def close(self):
        for client in self.clients:
            client.close()
        self.server.stop()


def spoilt(rng, words):
    """A read with a mistake in it, or with an option more."""
    words = list(words)
    for _ in range(rng.choice([1, 1, 1, 2])):
        at = rng.randrange(1, len(words) + 1)
        kind = rng.random()
        if kind < .45:
            words[at:at] = rng.sample(SPARE_WORDS, rng.choice([1, 1, 2, 3]))
        elif kind < .6 and at < len(words):
            del words[at]
        elif kind < .75 and at < len(words):
            words.insert(rng.randrange(1, len(words) + 1), words[at])
        elif kind < .9 and at + 1 < len(words):
            words[at], words[at + 1] = words[at + 1], words[at]
        elif at < len(words):
            words[at] = rng.choice(SPARE_WORDS)
    return words


def is_drawn(words):
    return any(DRAWN.search(word) for word in words)


def comparable(reply, words):
    if is_drawn(words):
        return reply[:1] if reply[:1] != b'-' else reply
    reply = MEASURED.sub(rb'\r\n\1', reply)
    if words[0].upper() == b'EXEC':  # it cannot be asked again
        reply = EXAMINED.sub(rb'\r\n\1', reply)
    if words[0].upper() == b'CSCAN' and any(word.upper() == b'SNAPSHOT' for word in words):
        return re.sub(rb'^(\*\d+\r\n\$)\d+\r\n[^\r]*', rb'\1', reply)
    return reply


def around(one, other):
    """Of two that differ: how each goes on from shortly before the difference."""
    at = len(os.path.commonprefix([one, other]))
    return one[max(0, at - 80):at + 120], other[max(0, at - 80):at + 120]


class Comparison:
    def __init__(self, old, new, seed, commands, allowed):
        self.rng = random.Random(seed)
        self.seed = seed
        self.protocols = (2, 3, 2)
        self.sides = [Side(old, self.protocols), Side(new, self.protocols)]
        self.model = Model(START_MICROS)
        for protocol in self.protocols:
            self.model.session(protocol)
        profile = self.rng.choice([SMALL, SMALL, BIG, HUGE])
        self.generator = Generator(self.rng, self.model, len(self.protocols), profile)
        self.commands = commands
        self.allowed = allowed
        self.sent = 0
        self.errors = 0
        self.differences = []

    def ask(self, client, words):
        """Both replies are compared; that of the older build is given back."""
        self.sent += 1
        replies, old, new = self.both(client, words)
        self.errors += old[:1] == b'-'
        name = words[0].upper()
        for _ in range(SWEEPS_MAX if name in REPEATABLE or words[1:2] == [b'INFO'] else 0):
            if old == new or FIGURE.sub(b'', old) != FIGURE.sub(b'', new):
                break
            time.sleep(SWEEP_SECONDS)
            _, old, new = self.both(client, words)
        if old != new and not (self.allowed and self.allowed.search(new)):
            self.differences.append((words, old, new))
            print('seed %d, command %d: %s\n  old: %r\n  new: %r' % (
                self.seed, self.sent, b' '.join(words[:60])[:1000].decode('latin-1'), *around(old, new)),
                flush=True)
        return replies[0]

    def both(self, client, words):
        for side in self.sides:
            side.clients[client].send(*words)
        replies = [side.clients[client].read() for side in self.sides]
        return [replies] + [comparable(reply, words) for reply in replies]

    def pages(self, client, words, reply):
        """What is behind the cursor of a CSCAN."""
        for _ in range(PAGES_MAX):
            found = re.match(rb'\*\d+\r\n\$\d+\r\n([^\r]+)', reply)
            if not found or found.group(1) == b'0' or is_drawn(words) or b'SNAPSHOT' in words:
                return
            words = words[:2] + [found.group(1)] + words[3:]
            reply = self.ask(client, words)

    def beside(self, client, words):
        name = words[0].upper()
        if name in QUERIES and self.rng.random() < .5:
            for _ in range(3):
                self.ask(client, spoilt(self.rng, words))
        if name in READS and self.rng.random() < .5:
            analyze = [b'ANALYZE'] if name in QUERIES and self.rng.random() < .3 else []
            explained = words if self.rng.random() < .7 else spoilt(self.rng, words)
            self.ask(client, [b'CEXPLAIN'] + analyze + explained)

    def take(self, step):
        kind = step[0]
        if kind == 'time':
            self.model.now = step[1]
            for client in range(len(self.protocols)):
                if self.model.sessions[client].queue is None:
                    self.ask(client, [b'DEBUG', b'SET-TIME', b'%d' % step[1]])
                    break
        elif kind in ('call', 'open'):
            client, words = step[1], step[2]
            session = self.model.sessions[client]
            if kind == 'call':
                self.model.execute(session, words)
            reply = self.ask(client, words)
            if session.queue is None:
                if words[0].upper() in (b'INDEX', b'EXEC', b'FAMILY'):
                    self.settle()
                if words[0].upper() == b'CSCAN':
                    self.pages(client, words, reply)
                self.beside(client, words)
        elif kind == 'reload' and all(session.queue is None for session in self.model.sessions):
            self.ask(0, [b'DEBUG', b'RELOAD'])

    def settle(self):
        """Until all indexes are built: builds need not be as fast as one another."""
        for space, table in self.model.all_tables():
            for name in table.indexes:
                for side in self.sides:
                    deadline = time.monotonic() + 600
                    while b'building' in side.clients[0].call(
                            b'INDEX', b'INFO', space + b'/' + table.name, name) and time.monotonic() < deadline:
                        time.sleep(.001)

    def run(self):
        self.ask(0, [b'DEBUG', b'SET-TIME', b'%d' % self.model.now])
        try:
            while self.sent < self.commands and len(self.differences) < DIFFERENCES_MAX:
                self.take(self.generator.step())
            self.ask(0, [b'DEBUG', b'DIGEST'])
        finally:
            for side in self.sides:
                side.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('old')
    parser.add_argument('new')
    parser.add_argument('--commands', type=int, default=200000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--allow', help='a pattern: replies of the new build that may differ')
    arguments = parser.parse_args()
    allowed = arguments.allow and re.compile(arguments.allow.encode())
    sent = differences = errors = 0
    seed = arguments.seed
    while sent < arguments.commands and differences < DIFFERENCES_MAX:
        comparison = Comparison(os.path.abspath(arguments.old), os.path.abspath(arguments.new), seed,
                                min(COMMANDS_PER_SEED, arguments.commands - sent), allowed)
        comparison.run()
        sent += comparison.sent
        errors += comparison.errors
        differences += len(comparison.differences)
        seed += 1
    print('%d commands, %d of them refused, %d differences' % (sent, errors, differences))
    return 1 if differences else 0


if __name__ == '__main__':
    sys.exit(main())
