"""Base of end-to-end tests that read like a session of redis-cli.

    class FleetTest(Conversation):
        def test_newest(self):
            self.ask('TABLE CREATE planes FAMILY position')
            self.expect('CGET planes D-ABCD position:height', b'33000')

A command is a line in a shell's quoting, or its words. Replies are those of tests/model/resp.py over
RESP3. With CELLAR_TEST_MODEL=1 the naive model answers instead of a server, so that the examples
test the model too.
"""

import os
import shlex
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cellar_server import ServedTest, shared_server, wait_until  # noqa: E402
from model.commands import Model  # noqa: E402
from model.reads import Scan  # noqa: E402
from model.resp import Client, Error, MapWith, as_map  # noqa: E402

ON_MODEL = bool(os.environ.get('CELLAR_TEST_MODEL'))
START_MICROS = 2 * 10**15


def words_of(line):
    """The words of a line, or of a list of texts and bytes."""
    if isinstance(line, str):
        line = shlex.split(line)
    return [word if isinstance(word, bytes) else str(word).encode() for word in line]


def plain(reply):
    """A reply without the types that only the wire knows: maps as dicts, doubles as floats."""
    if hasattr(reply, 'pairs'):
        return {key: plain(value) for key, value in reply.pairs}
    if isinstance(reply, MapWith):
        return reply.known
    if isinstance(reply, list):
        return [plain(item) for item in reply]
    if hasattr(reply, 'text') and not isinstance(reply, Error):
        return float(reply.text)
    if hasattr(reply, 'value') and not isinstance(reply, Error):
        return reply.value
    return reply


class ModelConnection:
    """The model behind the interface of a Client. It cuts scans, which the model answers whole."""

    def __init__(self, model, protocol):
        self.model = model
        self.session = model.session(protocol)
        self.rest = {}        # cursor -> (the rows still to come, how many a call)

    def call(self, *words):
        if words[0] == b'DEBUG':
            self.model.now = int(words[2])
            return b'OK'
        if len(words) > 2 and words[0].upper() == b'CSCAN' and words[2] in self.rest:
            return self.cut(*self.rest[words[2]])
        reply = self.model.execute(self.session, list(words))
        return self.cut(reply.rows, reply.count) if isinstance(reply, Scan) else reply

    def cut(self, rows, count):
        """One call of a scan: `count` rows at most, and the cursor of the rest."""
        cursor = b'0'
        if len(rows) > count:
            cursor = b'%d' % (len(self.rest) + 1)
            self.rest[cursor] = (rows[count:], count)
        return [cursor, rows[:count]]

    def close(self):
        self.model.sessions.remove(self.session)


class Conversation(ServedTest):
    """One server for the class, emptied before each test; its clock stands where the test puts it."""

    OPTIONS = {}
    PROTOCOL = 3
    clock = START_MICROS      # never goes back in one server, as its timestamps do not either
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if ON_MODEL:
            cls.model = Model(START_MICROS)
            return
        options = {'enable-debug-command': 'yes', 'save': ''}
        options.update(cls.OPTIONS)
        cls.server = shared_server(options, cls)
        cls.addClassCleanup(cls.server.close)
        cls.server.start()

    def setUp(self):
        if not ON_MODEL:
            self.server.begin(self)
        self.connection = self.connect()
        self.ask('FLUSHALL')
        for name in self.ask('KEYSPACE LIST'):
            if not name.isdigit() and name != b'_cluster':
                self.ask(['KEYSPACE', 'DROP', name])
        self.set_time(type(self).clock + 10**9)

    def connect(self, protocol=None):
        """Another client; closed after the test."""
        if ON_MODEL:
            made = ModelConnection(self.model, protocol or self.PROTOCOL)
        else:
            made = Client(self.server.port, protocol or self.PROTOCOL)
        self.addCleanup(made.close)
        return made

    def set_time(self, micros):
        self.now = micros
        type(self).clock = max(type(self).clock, micros)
        self.connection.call(b'DEBUG', b'SET-TIME', b'%d' % micros)

    def advance(self, seconds):
        self.set_time(self.now + int(seconds * 10**6))

    def raw(self, line, connection=None):
        """The reply as it is, errors too."""
        return (connection or self.connection).call(*words_of(line))

    def ask(self, line, connection=None):
        """The plain reply of a command that must not be refused."""
        reply = self.raw(line, connection)
        if isinstance(reply, Error):
            self.fail('%s\n  was refused: %s %s' % (line, reply.code, reply.text))
        if words_of(line)[:2] == [b'INDEX', b'CREATE']:
            self.wait_for_index(words_of(line)[2], words_of(line)[3])
        return plain(reply)

    def wait_for_index(self, table, index):
        def is_built():
            return ON_MODEL or dict(as_map(self.connection.call(b'INDEX', b'INFO', table, index)))[b'state'] != b'building'
        wait_until(is_built, f'{index} is built', 0.002)

    def expect(self, line, reply):
        self.assertEqual(self.ask(line), reply, line)

    def refused(self, line, code, *names, connection=None):
        """The command must be refused with this code, in a text that names these things."""
        reply = self.raw(line, connection)
        self.assertIsInstance(reply, Error, 'not refused: %s' % (line,))
        self.assertEqual(reply.code, code, '%s: %s' % (line, reply.text))
        if not ON_MODEL:
            for name in names:
                self.assertIn(name, reply.text, line)
        return reply

    def row(self, line):
        """A CROW as a list of (column, entry) in the order in which they came."""
        reply = self.raw(line)
        if isinstance(reply, Error):
            self.fail('%s\n  was refused: %s %s' % (line, reply.code, reply.text))
        return [(name.decode('latin-1'), plain(entry)) for name, entry in as_map(reply)]

    def scan(self, line):
        """All rows of `CSCAN table 0 ...` as (row key, [(column, entry)]), or the keys alone."""
        words = words_of(line)
        rows = []
        while True:
            reply = self.raw(words)
            if isinstance(reply, Error):
                self.fail('%s\n  was refused: %s %s' % (line, reply.code, reply.text))
            for row in reply[1]:
                if isinstance(row, bytes):
                    rows.append(row.decode('latin-1'))
                else:
                    rows.append((row[0].decode('latin-1'), [
                        (name.decode('latin-1'), plain(entry)) for name, entry in as_map(row[1])]))
            if reply[0] == b'0':
                return rows
            words[2] = reply[0]

    def keys(self, line):
        """The row keys of a scan."""
        return self.scan(line + ' KEYSONLY')
