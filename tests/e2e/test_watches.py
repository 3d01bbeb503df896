"""What WATCH and CWATCH see: every change that was made, no other one, also where the server reloads its data."""

import threading
import time
import unittest

from cellar_server import AWAIT_SECONDS_MAX, not_on_a_follower, wait_until
from wire import OK, WireTest

from model import resp

ROW = "CWATCH t r"
TABLE = "WATCH t"
BOTH = (TABLE, ROW)


class WatchCase(WireTest):
    OPTIONS = {"enable-debug-command": "yes", "save": "", "appendfsync": "no"}

    def setUp(self):
        super().setUp()
        self.server_port = self.server.port
        self.begin()

    def begin(self):
        self.watcher = self.connect()
        self.other = self.connect()
        self.does("DEBUG SET-TIME NOW")
        self.does("TABLE CREATE t FAMILY f FAMILY g TTL 60s FAMILY h")
        for row in "qrs":
            self.does(f"CPUT t {row} f:a 1 f:b 2")

    def connect(self):
        client = resp.Client(self.server_port, 2, timeout=AWAIT_SECONDS_MAX)
        self.addCleanup(client.close)
        return client

    def does(self, *lines):
        """Commands of the other client; an error that is expected stands behind a `-`."""
        for line in lines:
            reply = self.other.call(*line.lstrip("-").split())
            self.assertEqual(isinstance(reply, resp.Error), line.startswith("-"), (line, reply))

    def expect(self, watch, lines, broken):
        self.assertEqual(self.watcher.call(*watch.split()), OK)
        self.does(*lines)
        self.assertEqual(self.watcher.call("MULTI"), OK)
        self.watcher.call("PING")
        reply = self.watcher.call("EXEC")
        self.assertEqual(reply is resp.NULL_ARRAY, broken, (watch, lines, reply))

    def touches(self, watches, *lines):
        for watch in watches:
            self.expect(watch, lines, True)
            self.does("FLUSHALL")
            self.begin()

    def leaves(self, watches, *lines):
        for watch in watches:
            self.expect(watch, lines, False)
            self.does("FLUSHALL")
            self.begin()


class WatchTest(WatchCase):
    """Without a reload."""

    def test_writes(self):
        self.touches(BOTH, "CPUT t r f:a 1")
        self.touches(BOTH, "CDEL t r f:a")
        self.touches(BOTH, "CDELRANGE t ALL")
        self.touches(BOTH, "CDELRANGE t RANGE [r (s")
        self.touches((TABLE,), "CPUT t q f:a 1")
        self.leaves((ROW,), "CPUT t q f:a 1", "CDEL t s", "CDELRANGE t RANGE - (r")
        self.leaves(BOTH, "CDEL t r f:nosuch", "CDEL t nosuch", "CDEL t r h", "CPUT t r NX f:a 1",
                    "-CPUT t r nosuch:a 1", "CDELRANGE t PREFIX nosuch", "CDELRANGE t RANGE [r1 [r2")

    def test_schema(self):
        self.touches(BOTH, "TABLE RENAME t u", "TABLE RENAME u t")
        self.touches(BOTH, "RENAME t u", "RENAME u t")
        self.touches(BOTH, "RENAME t u")
        self.touches(BOTH, "TABLE TRUNCATE t")
        self.touches(BOTH, "TABLE DROP t")
        self.touches(BOTH, "TABLE DROP t", "TABLE CREATE t FAMILY f", "CPUT t r f:a 1")
        self.touches(BOTH, "FLUSHALL", "TABLE CREATE t FAMILY f")
        self.touches(BOTH, "FAMILY DROP t h")
        self.touches(BOTH, "FAMILY ALTER t h VERSIONS 3")
        self.touches(BOTH, "FAMILY ADD t i")
        self.touches(BOTH, "INDEX CREATE t i ON 1 f:a")
        self.touches(BOTH, "TABLE CREATE u FAMILY f", "RENAME u t")
        self.leaves(BOTH, "TABLE CREATE u FAMILY f", "CPUT u r f:a 1", "TABLE DROP u", "-FAMILY DROP t nosuch",
                    "-FAMILY ALTER t f ORDER i64", "KEYSPACE CREATE k", "KEYSPACE DROP k")

    def test_a_keyspace_that_is_dropped(self):
        for watch in ("WATCH k/t", "CWATCH k/t r"):
            self.does("KEYSPACE CREATE k", "TABLE CREATE k/t FAMILY f")
            again = ("KEYSPACE DROP k", "KEYSPACE CREATE k", "TABLE CREATE k/t FAMILY f")
            self.expect(watch, again, True)
            self.expect(watch, ("KEYSPACE DROP k",), True)

    def test_a_table_that_is_not_there(self):
        self.touches(("WATCH u",), "TABLE CREATE u")
        self.touches(("WATCH u", "WATCH 0/u"), "TABLE CREATE u", "TABLE DROP u")
        self.touches(("WATCH u",), "RENAME t u", "RENAME u t")
        self.leaves(("WATCH u",), "TABLE CREATE v", "RENAME v w", "TABLE DROP w", "-TABLE CREATE u KEY nosuch")

    def test_multi_atomic_that_is_undone_touches_nothing(self):
        for commands in ("CPUT t r f:a 9", "TABLE TRUNCATE t", "TABLE DROP t", "RENAME t v", "FAMILY DROP t h",
                         "CDELRANGE t ALL", "TABLE CREATE u", "INDEX CREATE t i ON 1 f:a"):
            undone = ("MULTI ATOMIC", commands, "CPUT t r nosuch:a 1", "-EXEC")
            self.leaves(("WATCH t", "CWATCH t r", "WATCH u"), *undone)

    @not_on_a_follower("the clock of a set does not go back")
    def test_what_time_drops_touches_nothing(self):
        self.does("CPUT t r g:a 1", "CPUT t x g:a 1")
        later = int(time.time() + 3600) * 1_000_000
        for watch in ("WATCH t", "CWATCH t r", "CWATCH t x"):
            self.expect(watch, (f"DEBUG SET-TIME {later}",), False)
            # Dead cells, swept or not, are nothing that anybody could see go.
            self.expect(watch, ("CDEL t x", "CDELRANGE t PREFIX x", "CDEL t r g"), False)
            self.does("DEBUG SET-TIME NOW", "CPUT t r g:a 1", "CPUT t x g:a 1")

    def test_an_index_that_is_built_meanwhile_touches_nothing(self):
        for at in range(0, 6000, 500):
            self.does("MULTI", *(f"CPUT t row{i} f:a {i}" for i in range(at, at + 500)), "EXEC")
        self.does("INDEX CREATE t i ON 1 f:a")
        for watch in ("WATCH t", "CWATCH t r"):
            self.expect(watch, ("CCOUNT t",), False)
        self.assertEqual(self.watcher.call("CWATCH", "t", "r"), OK)
        self.assertEqual(self.watcher.call("WATCH", "t"), OK)
        wait_until(lambda: b"ready" in self.other.call("INDEX", "INFO", "t", "i"))
        self.watcher.call("MULTI")
        self.assertEqual(self.watcher.call("EXEC"), [])


class ReloadTest(WatchCase):
    """DEBUG RELOAD under clients that hold on to something."""

    def test_it_touches_nothing(self):
        self.leaves(BOTH + ("WATCH u",), "DEBUG RELOAD")
        self.leaves(BOTH + ("WATCH u",), "SAVE", "DEBUG RELOAD")
        self.leaves((ROW,), "CPUT t q f:a 1", "DEBUG RELOAD", "CPUT t s f:a 1", "SAVE", "DEBUG RELOAD")

    def test_changes_before_and_after_it_are_seen(self):
        for reload in (("DEBUG RELOAD",), ("SAVE", "DEBUG RELOAD"), ("DEBUG RELOAD", "DEBUG RELOAD")):
            self.touches(BOTH, "CPUT t r f:a 1", *reload)
            self.touches(BOTH, *reload, "CPUT t r f:a 1")
            self.touches(BOTH, "RENAME t u", *reload, "RENAME u t")
            self.touches(BOTH, "TABLE TRUNCATE t", *reload)
            self.touches(("WATCH u",), "TABLE CREATE u", *reload, "TABLE DROP u")
            self.touches(BOTH, "TABLE DROP t", *reload, "TABLE CREATE t FAMILY f")

    def test_watches_of_several_clients_of_one_row(self):
        third = self.connect()
        for client in (self.watcher, third):
            client.call("CWATCH", "t", "r")
        self.does("DEBUG RELOAD")
        third.call("UNWATCH")
        third.close()
        self.does("CPUT t r f:a 2")
        self.watcher.call("MULTI")
        self.assertIs(self.watcher.call("EXEC"), resp.NULL_ARRAY)

    def test_what_a_snapshot_cursor_saw_is_gone(self):
        cursor, _ = self.other.call(*"CSCAN t 0 COUNT 1 SNAPSHOT".split())
        self.does("DEBUG RELOAD")
        self.assertRegex(str(self.other.call("CSCAN", "t", cursor, "COUNT", "1", "SNAPSHOT")), "STALECURSOR")
        cursor, _ = self.other.call(*"CSCAN t 0 COUNT 1".split())
        self.does("DEBUG RELOAD")
        _, rows = self.other.call("CSCAN", "t", cursor, "COUNT", "1")
        self.assertEqual([row[0] for row in rows], [b"r"])

    def test_long_commands_go_on(self):
        """Scans of tables and indexes, counts, changes in slices and a WAITAOF, each with reloads under it."""
        for at in range(0, 40_000, 1000):
            self.does("MULTI", *(f"CPUT t row{i:06} f:a {i} h:p {'x' * 50}" for i in range(at, at + 1000)), "EXEC")
        self.does("INDEX CREATE t i ON 1 f:a")
        wait_until(lambda: self.other.call("CNEAR", "t", "INDEX", "i", "1", "0").__class__ is not resp.Error)
        commands = ["CSCAN t 0 COUNT 100000 WHERE f:a MATCH *7", "CSCAN t 0 INDEX i COUNT 100000 WHERE h:p EXISTS",
                    "CSCAN t 0 COUNT 100000 SNAPSHOT WHERE f:a MATCH *7", "CCOUNT t FILTER qualifier=\"a\"|value~\".*7\"",
                    "CROW t r", "FAMILY ALTER t f VERSIONS 2", "WAITAOF 1 0 0", "CDELRANGE t PREFIX row"]
        for command in commands:
            if not command.startswith(("FAMILY", "CDEL", "WAIT")):
                expected = self.other.call(*command.split())
            else:
                expected = {"FAMILY": OK, "CDEL": 40_000, "WAIT": [1, 0]}[
                    next(name for name in ("FAMILY", "CDEL", "WAIT") if command.startswith(name))]
            replies = []
            reader = self.connect()
            thread = threading.Thread(target=lambda: replies.append(reader.call(*command.split())))
            thread.start()
            reloads = 0
            while thread.is_alive() or reloads == 0:
                self.does("DEBUG RELOAD")
                reloads += 1
                time.sleep(0.001 * reloads)  # where each takes long, what goes on has its turns between
            thread.join()
            self.assertFalse(replies[0] != expected, command)
        self.does("CPUT t r f:a 1", "DEBUG DIGEST")

    def test_a_reload_beside_a_save(self):
        for at in range(0, 20_000, 1000):
            self.does("MULTI", *(f"CPUT t row{i:06} f:a {i}" for i in range(at, at + 1000)), "EXEC")
        digest = self.other.call("DEBUG", "DIGEST")
        self.assertEqual(self.watcher.call("WATCH", "t"), OK)
        for _ in range(5):
            self.does("BGSAVE", "DEBUG RELOAD")
        self.assertEqual(self.other.call("DEBUG", "DIGEST"), digest)
        self.watcher.call("MULTI")
        self.assertEqual(self.watcher.call("EXEC"), [])

    def test_options_that_were_changed_meanwhile_hold(self):
        self.does("CONFIG SET appendfsync always", "DEBUG RELOAD")
        self.addCleanup(self.does, "CONFIG SET appendfsync no")
        before = self.redis.info("persistence")
        self.does("CPUT t r f:a 3")
        after = self.redis.info("persistence")
        self.assertEqual(after["aof_durable_lsn"], after["aof_last_lsn"], (before, after))

    def test_tracked_tables_are_as_they_were(self):
        reader = resp.Client(self.server.port, 3, timeout=AWAIT_SECONDS_MAX)
        self.addCleanup(reader.close)
        reader.call("CLIENT", "TRACKING", "ON")
        reader.call("CGET", "t", "r", "f:a")
        self.does("DEBUG RELOAD")
        self.assertEqual(reader.call("PING"), resp.Simple(b"PONG"))
        self.does("CPUT t r f:a 2")
        self.assertIsInstance(reader.read(), resp.Push)


class OtherStateTest(WatchCase):
    """Without a log a reload brings back an earlier state: whoever held on to something is told."""

    OPTIONS = {**WatchCase.OPTIONS, "appendonly": "no"}

    def test_every_watch_is_broken(self):
        self.does("SAVE")
        self.leaves(BOTH, "SAVE", "DEBUG RELOAD")
        for watch in BOTH + ("WATCH u",):
            self.does("SAVE")
            # A change of another table is lost: ids of tables may come again.
            self.expect(watch, ("TABLE CREATE lost FAMILY f", "DEBUG RELOAD"), True)
            self.does("CPUT t r f:a 1")

    def test_caches_are_told_to_forget_everything(self):
        self.does("SAVE", "CPUT t r f:a 5")
        reader = resp.Client(self.server.port, 3, timeout=AWAIT_SECONDS_MAX)
        self.addCleanup(reader.close)
        reader.call("CLIENT", "TRACKING", "ON")
        self.assertEqual(reader.call("CGET", "t", "r", "f:a"), b"5")
        self.does("DEBUG RELOAD")
        self.assertEqual(reader.read()[1], None)
        self.assertEqual(reader.call("CGET", "t", "r", "f:a"), b"1")

    def test_a_change_in_slices_ends(self):
        self.does("SAVE", "TABLE CREATE big FAMILY f")
        for at in range(0, 60_000, 1000):
            self.does("MULTI", *(f"CPUT big row{i:06} f:a {i}" for i in range(at, at + 1000)), "EXEC")
        replies = []
        thread = threading.Thread(target=lambda: replies.append(self.watcher.call("CDELRANGE", "big", "ALL")))
        thread.start()
        self.does("DEBUG RELOAD", "TABLE CREATE new FAMILY f", "CPUT new r f:a 1")
        thread.join()
        self.assertTrue(replies[0] == 60_000 or "NOTABLE" in str(replies[0]), replies)
        self.assertEqual(self.other.call("CCOUNT", "new"), 1)


if __name__ == "__main__":
    unittest.main()
