"""Drives a server and the model with the same steps and compares every reply.

A step is ('time', micros), ('call', client, words), ('open', client, words) of a scan of an index,
('resume', client) of that scan, ('reload',), ('crash',), ('restart',), ('save',) or ('dump',). Calls of one client are pipelined; a batch ends where another client speaks, where a
scan's cursor must be followed, or where an index is built.
"""

import time

from . import scans, strangers
from .commands import Model
from .reads import Scan
from .resp import Client, Error, same
from .scans import Difference

START_MICROS = 2 * 10**15      # in 2033: what expires by this clock has not expired by the machine's
BATCH_MAX = 50


class Driver:
    """`server` is a started server (tests/e2e/cellar_server.py); `protocols` one per client."""

    def __init__(self, server, protocols=(2, 3), follower=None, has_strangers=False):
        self.server = server
        self.follower = follower  # model.follower.Follower, or None
        self.protocols = protocols
        self.has_strangers = has_strangers  # rows of another set in each table, which nobody may see
        self.model = Model(START_MICROS)
        self.sessions = [self.model.session(protocol) for protocol in protocols]
        self.observer = Model.session(Model(0), 3)
        self.batch = []
        self.batch_client = None
        self.calls = 0
        self.refused = 0
        self.digests = 0
        self.opened = None
        self.clients = []
        self._connect()
        self._set_time()

    def close(self):
        for client in self.clients:
            client.close()
        self.clients = []

    def _connect(self):
        self.close()
        self.clients = [Client(self.server.port, protocol) for protocol in self.protocols]
        self.admin = Client(self.server.port, 3)
        self.clients.append(self.admin)

    def _set_time(self):
        reply = self.admin.call(b'DEBUG', b'SET-TIME', b'%d' % self.model.now)
        if isinstance(reply, Error):
            raise Difference('DEBUG SET-TIME', 'OK', reply)

    # Steps.

    def take(self, step):
        kind = step[0]
        if kind == 'call':
            self._call(step[1], step[2])
        elif kind in ('open', 'resume'):
            self.flush()
            getattr(self, '_' + kind)(*step[1:])
        elif kind == 'time':
            self.model.now = step[1]
            client = self.batch_client if self.batch_client is not None else 0
            if self.sessions[client].queue is not None:
                self.flush()
                self._set_time()
            else:
                self._add(client, [b'DEBUG', b'SET-TIME', b'%d' % step[1]], None)
        else:
            self.flush()
            getattr(self, '_' + kind)(*step[1:])

    def _call(self, client, words):
        if self.batch_client is not None and (client != self.batch_client or
                                              len(self.batch) >= BATCH_MAX):
            self.flush()
        session = self.sessions[client]
        expected = self.model.execute(session, words)
        self.calls += 1
        wants_digest = isinstance(expected, Error) and session.queue is None
        if wants_digest:
            self.refused += 1
            wants_digest = self.refused % 16 == 0
        if wants_digest:
            self.flush()
            before = self.digest()
        self._add(client, words, expected)
        name = words[0].upper()
        waits = name in (b'INDEX', b'EXEC') or (
            name == b'FAMILY' and words[1:2] and words[1].upper() in (b'ALTER', b'DROP'))
        if isinstance(expected, Scan) or waits or wants_digest:
            self.flush()
            if waits:
                self._wait_for_indexes()
        if self.has_strangers and name == b'TABLE' and session.queue is None and not isinstance(expected, Error):
            self._settle_strangers(session, words)
        if wants_digest and name not in (b'EXEC', b'CUPDATE'):  # what an update did before stays
            self.digests += 1
            after = self.digest()
            if after != before:
                raise Difference('the digest after a refused command: %r' % words, before, after)

    def _settle_strangers(self, session, words):
        if words[1].upper() != b'CREATE':
            return
        self.flush()
        space, name = self.model.keyspaces.split(words[2], session.space)
        strangers.settle(self.admin.call, self.model.keyspaces.spaces[space][name], self.model.now)

    def _strangers(self):
        """New ones, where none might be taken for a change that a client waits for."""
        if any(session.watched or session.queue is not None for session in self.sessions):
            return
        for _, table in list(self.model.all_tables()):
            strangers.settle(self.admin.call, table, self.model.now)

    def _add(self, client, words, expected):
        self.batch_client = client
        self.batch.append((words, expected))

    def flush(self):
        if not self.batch:
            return
        batch, self.batch = self.batch, []
        client = self.clients[self.batch_client]
        self.batch_client = None
        replies = client.pipeline([words for words, _ in batch])
        for (words, expected), got in zip(batch, replies):
            self._compare(client, words, expected, got)

    def _compare(self, client, words, expected, got):
        if expected is None and words[0] == b'DEBUG':
            if isinstance(got, Error):
                raise Difference(repr(words), 'OK', got)
            return
        try:
            if isinstance(expected, Scan):
                scans.check(expected, got, words, lambda more: client.call(*more))
            elif words[0].upper() == b'EXEC' and isinstance(expected, list) and \
                    isinstance(got, list) and len(expected) == len(got):
                for at, (one, other) in enumerate(zip(expected, got)):
                    if isinstance(one, Scan):
                        scans.check_queued(one, other)
                    elif not same(one, other):
                        raise Difference('reply %d of EXEC' % at, one, other)
            elif not same(expected, got):
                raise Difference('', expected, got)
        except Difference as difference:
            difference.what = '%s %s' % (show(words), difference.what)
            raise

    def digest(self):
        # With a follower it is of what lived at the newest record, so that what has died is in it for
        # as long as no record is newer: nothing to compare with what was before.
        if self.follower is not None:
            return None
        return self.admin.call(b'DEBUG', b'DIGEST')

    def _wait_for_indexes(self):
        for space, table in self.model.all_tables():
            for name in table.indexes:
                deadline = time.monotonic() + 600
                words = [b'INDEX', b'INFO', space + b'/' + table.name, name]
                while True:
                    reply = self.admin.call(*words)
                    if isinstance(reply, Error):
                        raise Difference(repr(words), 'a map', reply)
                    if dict(reply.pairs).get(b'state') != b'building':
                        break
                    if time.monotonic() > deadline:
                        raise Difference('an index is never ready', 'ready', reply)
                    time.sleep(0.002)

    # Cursors of indexes that may be gone when they are used.

    def _index_of(self, client, words):
        """The index that a scan names: what tells it from another one; None if there is none."""
        space, name = self.model.keyspaces.split(words[1], self.sessions[client].space)
        table = self.model.keyspaces.spaces.get(space, {}).get(name)
        index = table.indexes.get(words[4]) if table else None
        return index and (table.serial, index.serial)

    def _open(self, client, words):
        if self.sessions[client].queue is not None:
            return
        reply = self.clients[client].call(*words)
        if isinstance(reply, list) and reply[0] != b'0':
            self.opened = (words[:2] + [reply[0]] + words[3:], self._index_of(client, words))

    def _resume(self, client):
        if self.opened is None or self.sessions[client].queue is not None:
            return
        (words, was), self.opened = self.opened, None
        reply = self.clients[client].call(*words)
        now = self._index_of(client, words)
        code = reply.code if isinstance(reply, Error) else 'rows'
        fits = {'rows', 'TOOLARGE', 'NOTUNIQUE'} if was == now else {'STALECURSOR'}
        if was and (now is None or was[0] is not now[0]):
            fits |= {'ERR', 'NOTABLE', 'NOKEYSPACE'}
        if code not in fits:
            raise Difference('%s of an index that is %s' % (
                show(words), 'the same' if was == now else 'another'), fits, reply)

    # Everything.

    def _dump(self):
        """Compares all that can be read, at the follower too."""
        if self.follower is not None:
            self._compare_digests()
        for words in self._dump_commands():
            for client in self._readers():
                expected = self.model.execute(self.observer, words)
                self._compare(client, words, expected, client.call(*words))

    def _readers(self):
        return [self.admin] if self.follower is None else [self.admin, self.follower.client]

    def _compare_digests(self):
        words = (b'DEBUG', b'DIGEST', b'WITHLSN')
        while True:  # what has died may be reclaimed at any moment
            self.follower.catch_up(self.admin, self.model.now)
            here, there = self.admin.call(*words), self.follower.call(*words)
            if here[1] == there[1]:
                break
        if here != there:
            raise Difference('the digest of the follower', here, there)

    def _follower(self, how):
        """It ends and comes back, or leads from now on."""
        if how == 'leads':
            self.server = self.follower.take_lead(self.admin, self.model.now, self.server)
            return self._come_back(None)
        self.follower.come_back(how)
        self._dump()

    def _dump_commands(self):
        yield [b'KEYSPACE', b'LIST']
        for space in sorted(self.model.keyspaces.spaces):
            if not self.model.keyspaces.spaces[space] and space.isdigit() and space != b'0':
                continue
            yield [b'SELECT', space]
            yield [b'TABLE', b'LIST']
        yield [b'SELECT', b'0']
        for space, table in list(self.model.all_tables()):
            name = space + b'/' + table.name
            yield [b'CSCAN', name, b'0', b'VERSIONS', b'ALL', b'WITHTYPE']
            yield [b'CCOUNT', name, b'VERSIONS', b'ALL', b'BY', b'CELLS']
            yield [b'TABLE', b'INFO', name]
            yield [b'INDEX', b'LIST', name]
            for family in sorted(table.families):
                yield [b'FAMILY', b'INFO', name, family]
            for index in sorted(table.indexes):
                yield [b'INDEX', b'INFO', name, index]
                yield [b'CSCAN', name, b'0', b'INDEX', index, b'WITHTS']

    def _reload(self):
        before = self.digest()
        reply = self.admin.call(b'DEBUG', b'RELOAD')
        if isinstance(reply, Error):
            raise Difference('DEBUG RELOAD', 'OK', reply)
        self._set_time()
        self._wait_for_indexes()
        after = self.digest()
        if before != after:
            raise Difference('the digest after DEBUG RELOAD', before, after)
        self._dump()

    def _crash(self):
        before = self.digest()
        self.server.crash()
        self._come_back(before)

    def _restart(self):
        before = self.digest()
        self.server.restart()
        self._come_back(before)

    def _save(self):
        reply = self.admin.call(b'SAVE')
        if isinstance(reply, Error):
            raise Difference('SAVE', 'OK', reply)

    def _pages(self, bytes_max):
        """From now on a page of a scan ends here too."""
        self.admin.call(b'CONFIG', b'SET', b'scan-reply-max-bytes', b'%d' % bytes_max)

    def _come_back(self, before):
        self._connect()
        for session in self.sessions:
            session.leave_transaction()
            session.space = b'0'
        self._set_time()
        self._wait_for_indexes()
        after = self.digest()
        if before != after:
            self._dump()
            raise Difference('the digest after a restart', before, after)
        self._dump()


def show(words):
    """A command so that a person can type it into redis-cli."""
    def quote(word):
        if word and all(0x21 <= byte < 0x7f and byte not in b'"\'\\' for byte in word):
            return word.decode()
        if len(word) > 400:
            return '"%s..."(%d bytes)' % (repr(word[:40])[2:-1], len(word))
        return '"%s"' % ''.join(
            chr(byte) if 0x20 <= byte < 0x7f and byte not in b'"\\' else '\\x%02x' % byte
            for byte in word)
    return ' '.join(map(quote, words))


def show_step(step):
    if step[0] == 'call':
        return '[%d] %s' % (step[1], show(step[2]))
    return ' '.join(map(str, step))
