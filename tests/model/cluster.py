"""The model against a cluster of three sets: each client at a node of its own, every table cut at keys that the generator
draws, tablets split and merged in between.

What the contract has a cluster refuse is not asked of it. Two things one server tells are no promise of a cluster, and are
kept out of the comparison: which microsecond a stamp is when others write in the same one (the clock moves before each
command), and what CUPDATE did before the row that it fails at.
"""

import copy
import random
import time

from .drive import Driver
from .pools import component_texts
from .resp import Client, Error

KINDS = ('bytes', 'ascii', 'utf8', 'u8', 'u16', 'u32', 'u64', 'i8', 'i16', 'i32', 'i64', 'f32', 'f64', 'bool', 'uuid', 'luuid',
         'timeuuid')
STEP_MICROS = 1000
OF_ONE_SET = {b'COPY', b'CEXPLAIN', b'SNAPSHOT', b'FEED'}
# Whether these are of one set the cluster says.
ASKED_FIRST = {b'EXEC', b'WATCH', b'CWATCH'}


def bounds(kind, rng, count):
    """Keys to cut at, no two of them the same."""
    texts = [text for text in component_texts(kind) if text]
    if kind == 'bool':
        return [b'true']
    if kind not in ('bytes', 'ascii', 'utf8') and 'uuid' not in kind:
        texts = list({float(text): text for text in texts if kind != 'f32' or len(text) < 8}.values())
    elif 'uuid' in kind:
        texts = list({text.lower(): text for text in texts}.values())
    return rng.sample(texts, min(count, len(texts)))


def is_of_one_set(words):
    """Whether the contract has a cluster answer it in another way than one server."""
    words = [word.upper() for word in words]
    name = words[0]
    if name in OF_ONE_SET or b'SNAPSHOT' in words or any(b'@' in word for word in words[1:3]):
        return True
    if name == b'KEYSPACE':
        return b'LIST' in words[1:2]  # which has the cluster's own, too
    if name == b'TABLE':
        return b'SAMPLE' in words[1:2]
    if name == b'INDEX':
        return b'UNIQUE' in words
    if name == b'FAMILY':
        return b'ALTER' in words[1:2]
    return False


class ClusterDriver(Driver):
    """`server` is a ClusterServer (tests/e2e/cluster_server.py)."""

    def __init__(self, server, protocols, seed):
        self.cuts = random.Random(seed)
        super().__init__(server, protocols)
        self._cut_tables()

    def _cut_tables(self):
        for kind in KINDS:
            rows = bounds(kind, self.cuts, 3)
            client = Client(self.server.director, 3)
            reply = client.call(b'DEBUG', b'CLUSTER', b'CUT-TABLES', kind.encode(), *rows)
            client.close()
            assert not isinstance(reply, Error), (kind, rows, reply)

    def take(self, step):
        if step[0] == 'reload' or step[0] == 'call' and is_of_one_set(step[2]):
            return
        if step[0] == 'time':  # behind all stamps: where the clock goes back each set goes on from its own last one
            step = ('time', max(step[1], self.model.now))
        super().take(step)

    def _call(self, client, words):
        self.model.now += STEP_MICROS
        self._set_time()
        name = words[0].upper()
        session = self.sessions[client]
        if name in ASKED_FIRST:
            return self._ask_first(client, session, words)
        if name == b'CUPDATE' and (session.queue is not None or not self._is_exact(client, words)):
            return
        super()._call(client, words)
        self.flush()

    def _ask_first(self, client, session, words):
        """What goes over several sets is refused, and nothing of it is done."""
        self.flush()
        got = self.clients[client].call(*words)
        self.calls += 1
        is_exec = words[0].upper() == b'EXEC'
        if isinstance(got, Error) and got.code == 'CROSSSET':
            if is_exec:
                session.leave_transaction()
            return
        self._compare(self.clients[client], words, self.model.execute(session, words), got)
        if is_exec:
            self._wait_for_indexes()

    def _is_exact(self, client, words):
        """Whether all of an update is done, or nothing, and no more than one row is stamped."""
        model, sessions = copy.deepcopy((self.model, self.sessions))
        return not isinstance(model.execute(sessions[client], words), Error) and model.last_stamp <= model.now

    def _add(self, client, words, expected):
        super()._add(client, words, expected)
        self.flush()

    def _tablets(self, seed):
        """Splits and merges some; what cannot be is refused."""
        rng = random.Random(seed)
        for _ in range(rng.randint(1, 3)):
            tables = list(self.model.all_tables())
            if not tables:
                return
            space, table = rng.choice(tables)
            name = space + b'/' + table.name
            kind = table.order.parts[0][0]
            if kind == 'recno':
                continue
            row = bounds(kind, rng, 1)[0]
            self.admin.call(b'TABLET', rng.choice((b'SPLIT', b'SPLIT', b'MERGE')), name, row)
        # The map is written a moment later where the tablet is not set 0's, and takes stamps there.
        deadline = time.monotonic() + 20
        while self.admin.call(b'CLUSTER', b'MAP', b'CHECK') != [] and time.monotonic() < deadline:
            time.sleep(0.002)

    def digest(self):
        return None

    def _come_back(self, before):
        super()._come_back(before)
        self._cut_tables()

    def _dump_commands(self):
        for words in super()._dump_commands():
            if not is_of_one_set(words):
                yield words
