"""Replies while the disk stands still: under `always` none leaves before what it tells of is durable."""

import os
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from cellar_server import CellarServer, is_sanitized, wait_until
from table_reads import READS
from test_protocol import command

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = "written-to-the-held-disk"
# How long a reply that must not come is waited for. A longer wait finds no more: it would come at once.
SILENCE_SECONDS = 0.3


@unittest.skipIf(is_sanitized(), "the sanitizers' own functions must be loaded first")
class HeldDiskTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="cellar-held-")
        cls.library = os.path.join(cls.folder, "held_sync.so")
        subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", os.path.join(HERE, "held_sync.cc"),
                        "-o", cls.library, "-ldl"], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def begin(self, **options):
        """A server with table t, whose syncs of MARK will wait for release()."""
        self.gate = os.path.join(self.folder, self.id())
        server = CellarServer(**options)
        server.environment.update(LD_PRELOAD=self.library, HELD_SYNC_MARK=MARK, HELD_SYNC_GATE=self.gate)
        self.addCleanup(server.__exit__, None, None, None)
        server.start()
        server.client().execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        open(self.gate, "w", encoding="ascii").close()
        self.addCleanup(self.release)
        return server

    def release(self):
        """Syncs go on."""
        if os.path.exists(self.gate):
            os.unlink(self.gate)

    def wait_until_held(self):
        """Returns when a sync waits."""
        wait_until(lambda: os.path.exists(self.gate + ".waiting"), "no sync of what was written", pause=0.001)

    def send(self, server, *commands):
        """A connection on which the commands have been sent together."""
        connection = server.connect()
        self.addCleanup(connection.close)
        connection.sendall(b"".join(command(*words) for words in commands))
        return connection

    def read(self, connection, reply):
        """Reads this reply, and no byte more."""
        got = b""
        while len(got) < len(reply):
            piece = connection.recv(len(reply) - len(got))
            self.assertTrue(piece, got)
            got += piece
        self.assertEqual(got, reply)

    def assert_silent(self, *connections):
        """Nothing more comes."""
        ready, _, _ = select.select(connections, [], [], SILENCE_SECONDS)
        self.assertEqual([(connections.index(one), one.recv(100)) for one in ready], [], "a reply has come")

    def assert_all_wait(self, server, lines):
        """Each of the commands is answered when the disk goes on, and not before."""
        connections = {line: self.send(server, line.split()) for line in lines}
        self.assert_silent(*connections.values())
        self.release()
        for line, connection in connections.items():
            self.assertTrue(connection.recv(1), line)

    def test_a_write_and_who_reads_it_wait(self):
        server = self.begin(appendonly="yes", appendfsync="always")
        writer = self.send(server, ("CPUT", "t", "r", "f:c", MARK))
        self.wait_until_held()
        reader = self.send(server, ("PING",), ("CGET", "t", "r", "f:c"))
        self.read(reader, b"+PONG\r\n")
        self.assert_silent(writer)
        self.assert_silent(reader)
        self.release()
        self.read(writer, b"+OK\r\n")
        self.read(reader, b"$%d\r\n%s\r\n" % (len(MARK), MARK.encode()))

    def test_every_command_that_reads_a_table_waits(self):
        server = self.begin(appendonly="yes", appendfsync="always")
        server.client().execute_command("INDEX", "CREATE", "t", "i", "ON", "1", "f:a")
        self.send(server, ("CPUT", "t", "r", "f:c", MARK))
        self.wait_until_held()
        self.assert_all_wait(server, READS.values())

    def test_that_there_is_no_table_any_more_waits(self):
        server = self.begin(appendonly="yes", appendfsync="always")
        self.send(server, ("CPUT", "t", "r", "f:c", MARK), ("TABLE", "DROP", "t"))
        self.wait_until_held()
        writes = ["CPUT t r f:a 1", "CADD t r f:a 1", "CDEL t r", "CDELRANGE t ALL", "CUPDATE t ALL DELROW",
                  "TABLE DROP t", "DEL t", "RENAME t u", "COPY t u", "CWATCH t r", "INDEX DROP t i"]
        self.assert_all_wait(server, [*READS.values(), *writes])

    def test_a_follower_is_sent_more_than_it_holds_before_it_is_committed(self):
        """What it waits for comes behind that on the same link, so it must go on reading."""
        rows = 48
        writes = [("CPUT", "t", f"r{i}", "f:c", "x" * (1 << 20)) for i in range(rows)]

        def held():
            """Leader and follower; None where the sync was held before there was room for what comes behind it."""
            leader = self.begin(appendonly="yes", appendfsync="always")
            follower = CellarServer(replicaof=f"127.0.0.1 {leader.port}")
            self.addCleanup(follower.__exit__, None, None, None)
            follower.start()
            wait_until(lambda: figure(follower, "master_link_status") == "up", lambda: "the link")
            self.send(leader, ("CPUT", "t", "r", "f:c", MARK), *writes)
            self.wait_until_held()
            refused = lambda: "errorstat_MISCONF" in leader.client().info("errorstats")
            wait_until(lambda: refused() or figure(leader, "master_repl_offset") > rows, lambda: "the writes")
            if not refused():
                return leader, follower
            self.release()
            leader.__exit__(None, None, None)
            follower.__exit__(None, None, None)
            return None

        def wait_for(is_so, what):
            wait_until(is_so, what)

        def figure(server, name):
            return server.client().info("replication")[name]

        pair = held()
        while pair is None:
            os.unlink(self.gate + ".waiting")
            pair = held()
        leader, follower = pair
        records = lambda: figure(leader, "master_repl_offset")
        time.sleep(SILENCE_SECONDS)
        self.assertIsNone(follower.client().execute_command("CGET", "t", f"r{rows - 1}", "f:c"))
        self.release()
        wait_for(lambda: figure(follower, "slave_repl_offset") == records(), lambda: follower.log()[-2000:])
        self.assertEqual(1 << 20, len(follower.client().execute_command("CGET", "t", f"r{rows - 1}", "f:c")))

    def test_that_a_snapshot_is_gone_waits(self):
        server = self.begin(appendonly="yes", appendfsync="always")
        client = server.client()
        for row in "abc":
            client.execute_command("CPUT", "t", row, "f:c", "1")
        client.execute_command("SNAPSHOT", "CREATE", "s")
        cursor = client.execute_command("CSCAN", "t@s", "0", "COUNT", "1")[0].decode()
        self.send(server, ("CPUT", "t", "r", "f:c", MARK), ("SNAPSHOT", "DROP", "s"))
        self.wait_until_held()
        self.assert_all_wait(server, ["CSCAN t@s " + cursor, "CSCAN t@s 0", "CGET t@s a f:c"])

    def test_that_a_watch_is_broken_waits(self):
        server = self.begin(appendonly="yes", appendfsync="always")
        watcher = self.send(server, ("WATCH", "t"), ("MULTI",))
        self.read(watcher, b"+OK\r\n+OK\r\n")
        self.send(server, ("CPUT", "t", "r", "f:c", MARK))
        self.wait_until_held()
        watcher.sendall(command("EXEC"))
        self.assert_silent(watcher)
        self.release()
        self.read(watcher, b"*-1\r\n")

    def test_a_log_turned_on_counts_once_its_snapshot_is_written(self):
        server = self.begin(appendonly="no", appendfsync="always")
        client = server.client()
        client.execute_command("CPUT", "t", "r", "f:c", "before")
        client.config_set("appendonly", "yes")
        wait_until(lambda: not client.info("persistence")["rdb_bgsave_in_progress"], "the snapshot ends", pause=0.001)
        writer = self.send(server, ("CPUT", "t", "r", "f:c", MARK))
        self.wait_until_held()
        self.assert_silent(writer)
        self.release()
        self.read(writer, b"+OK\r\n")
        server.crash()
        self.assertEqual(server.client().execute_command("CGET", "t", "r", "f:c"), MARK.encode())

    def test_with_everysec_a_write_does_not_wait(self):
        server = self.begin(appendonly="yes", appendfsync="everysec")
        writer = self.send(server, ("CPUT", "t", "r", "f:c", MARK))
        self.read(writer, b"+OK\r\n")
        self.wait_until_held()


if __name__ == "__main__":
    unittest.main()
