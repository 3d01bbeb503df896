"""COPY of tables, live ones and those of snapshots; and drop-keep, which keeps what is dropped."""

import threading
import time
import unittest

from cellar_server import CellarTest, not_on_a_follower, wait_until
from feed_model import as_sent, read_to_end
from replicas import Node, ReplicaTest
from test_snapshots import DEBUG, refusal


class Copies(CellarTest):
    OPTIONS = DEBUG

    def setUp(self):
        super().setUp()
        for name in self.run_command("SNAPSHOT LIST"):
            self.run_command("SNAPSHOT DROP", name)
        self.run_command("TABLE CREATE", "t", "KEY", "bytes", "FAMILY", "f", "FAMILY", "n", "TYPE", "i64", "GROUP", "other")
        self.run_command("INDEX CREATE", "t", "byx", "ON", 1, "n:x", "UNIQUE")
        self.fill(0, 2000)

    def fill(self, first, end, table="t"):
        pipe = self.redis.pipeline(transaction=False)
        for i in range(first, end):
            pipe.execute_command("CPUT", table, f"r{i}", "f:q", "x" * (1000 if i % 50 == 0 else 20), "n:x", i)
        pipe.execute()

    def test_the_copy_is_equal_and_a_table_of_its_own(self):
        run = self.run_command
        digest = run("DEBUG DIGEST", "t")
        self.assertEqual(1, run("COPY", "t", "u"))
        self.assertEqual(digest, run("DEBUG DIGEST", "u"))
        run("CDELRANGE", "u", "PREFIX", "r1")
        self.assertEqual(digest, run("DEBUG DIGEST", "t"))
        self.assertEqual(0, run("COPY", "t", "u"))
        self.assertEqual(1, run("COPY", "t", "u", "REPLACE"))
        self.assertEqual(digest, run("DEBUG DIGEST", "u"))
        self.assertEqual([[b"r7"]], [run("CSCAN", "u", 0, "KEYSONLY", "INDEX", "byx", "EQ", 1, 7)[1]])
        self.assertIn("NOTUNIQUE", refusal(self.redis, "CPUT", "u", "new", "n:x", 7))
        self.assertEqual([], run("SNAPSHOT LIST"))
        for change in (lambda: run("DEBUG RELOAD"), self.server.crash, lambda: run("SAVE"), self.server.restart):
            change()
            self.redis = self.server.client()
            run = self.run_command
            self.assertEqual(digest, run("DEBUG DIGEST", "u"))
            run("DEBUG DIGEST")
        self.assertEqual(0, run("INFO", "memory")["mem_snapshots_held"])

    def test_names(self):
        run = self.run_command
        self.assertEqual(0, run("COPY", "nowhere", "u"))
        self.assertEqual(0, run("COPY", "nokeyspace/t", "u"))
        self.assertIn("the same", refusal(self.redis, "COPY", "t", "t"))
        self.assertIn("the same", refusal(self.redis, "COPY", "t", "0/t", "REPLACE"))
        self.assertIn("NOKEYSPACE", refusal(self.redis, "COPY", "t", "u", "DB", "nowhere"))
        self.assertIn("syntax", refusal(self.redis, "COPY", "t", "1/u", "DB", 1))
        self.assertIn("syntax", refusal(self.redis, "COPY", "t", "u", "AGAIN"))
        self.assertIn("NOSNAPSHOT", refusal(self.redis, "COPY", "t@no", "u"))
        run("TABLE CREATE", "later", "FAMILY", "f")
        run("SNAPSHOT CREATE", "s", "TABLE", 1, "t")
        self.assertEqual(0, run("COPY", "later@s", "u"))
        self.assertEqual(1, run("COPY", "t", "t", "DB", 3))
        self.assertEqual(2000, run("CCOUNT", "3/t"))
        self.assertEqual(1, run("COPY", "t", "3/t", "REPLACE"))
        run("CDELRANGE", "t", "ALL")
        self.assertEqual(1, run("COPY", "t@s", "t", "REPLACE"))
        self.assertEqual(2000, run("CCOUNT", "t"))
        run("FEED CREATE", "feed", "ON", 0)
        self.assertIn("WRONGTYPE", refusal(self.redis, "COPY", "t", "feed", "REPLACE"))
        run("FEED DROP", "feed")

    def test_inside_exec(self):
        run = self.run_command
        run("MULTI")
        run("COPY", "t", "u")
        run("CCOUNT", "u")
        self.assertEqual([1, 2000], run("EXEC"))
        run("MULTI", "ATOMIC")
        run("COPY", "t", "v")
        run("CINCRBY", "t", "r1", "f:q", 1)
        refusal(self.redis, "EXEC")
        self.assertEqual(0, run("EXISTS", "v"))
        run("DEBUG RELOAD")
        self.assertEqual([b"t", b"u"], run("TABLE LIST"))

    def test_others_are_served_and_the_moment_is_the_beginning(self):
        run = self.run_command
        self.fill(2000, 30000)
        digest = run("DEBUG DIGEST", "t")
        other = self.server.client()
        answers, pings = [], 0
        thread = threading.Thread(target=lambda: answers.append(other.execute_command("COPY", "t", "u")))
        thread.start()
        while thread.is_alive():
            run("PING")
            pings += 1
            if run("EXISTS", "u"):  # at once whole
                self.assertEqual(30000, run("CCOUNT", "u"))
        thread.join()
        self.assertEqual([1], answers)
        self.assertEqual(digest, run("DEBUG DIGEST", "u"))

    def test_a_copy_that_is_not_finished_leaves_nothing(self):
        """The client leaves, or the server is killed: no table, no snapshot, no memory held."""
        run = self.run_command
        self.fill(2000, 30000)
        for crash in (False, True):
            with self.server.connect() as socket:
                socket.sendall(b"*3\r\n$4\r\nCOPY\r\n$1\r\nt\r\n$1\r\nz\r\n")
                if crash:
                    time.sleep(0.005)  # in the middle, more or less
                    self.server.crash()
            self.redis = self.server.client()
            run = self.run_command

            def holds_nothing(run=run):
                run("CPUT", "t", "r1", "n:x", 1)
                return run("INFO", "memory")["mem_snapshots_held"] == 0
            wait_until(holds_nothing, "nothing is held any more")
            self.assertIn(run("EXISTS", "z"), (0, 1))
            if run("EXISTS", "z"):
                self.assertEqual(30000, run("CCOUNT", "z"))
                run("TABLE DROP", "z")

    def test_feeds_tell_of_it(self):
        run = self.run_command
        run("FEED CREATE", "changes", "ON", 0)
        run("SNAPSHOT CREATE", "s")
        run("COPY", "t", "u")
        run("COPY", "t@s", "u", "REPLACE")
        run("CPUT", "u", "new", "f:q", "v")
        run("RENAME", "u", "w")
        told = [dict(zip(flat[::2], flat[1::2])) for _, flat in read_to_end(as_sent(self.redis), "changes")]
        told = [entry for entry in told if entry[b"op"] != b"schema"]
        self.assertEqual([b"copy", b"copy", b"put", b"rename"], [entry[b"op"] for entry in told])
        self.assertEqual([b"u", b"u", b"u", b"u"], [entry[b"table"] for entry in told])
        self.assertEqual([b"t", b"t@s"], [entry[b"from"] for entry in told[:2]])
        info = run("SNAPSHOT INFO", "s")
        self.assertEqual(dict(zip(info[::2], info[1::2]))[b"id"], told[1][b"at"])
        run("FEED DROP", "changes")

    @not_on_a_follower("it tells what a record changes, not by which command")
    def test_events(self):
        run = self.run_command
        run("CONFIG SET", "notify-keyspace-events", "KEA")
        events = self.server.client().pubsub()
        events.psubscribe("__keyevent@*")
        events.get_message(timeout=60)
        run("COPY", "t", "u")
        run("SNAPSHOT CREATE", "s")
        heard = [events.get_message(timeout=60)["channel"] for _ in range(2)]
        self.assertEqual([b"__keyevent@0__:copy_to", b"__keyevent@0__:snapshot"], heard)
        run("CONFIG SET", "notify-keyspace-events", "")

    def test_memory_and_oom(self):
        run = self.run_command
        run("CONFIG SET", "maxmemory", 1_000_000)
        self.addCleanup(self.redis.execute_command, "CONFIG SET", "maxmemory", 0)
        self.assertIn("OOM", refusal(self.redis, "COPY", "t", "u"))


class DropKeep(CellarTest):
    OPTIONS = dict(DEBUG, **{"drop-keep": "1h"})

    def dropped(self, keyspace=0):
        client = self.server.client(db=keyspace)
        names = client.execute_command("SNAPSHOT LIST")
        client.close()
        return [name.decode() for name in names]

    def setUp(self):
        super().setUp()
        for name in self.run_command("SNAPSHOT LIST"):
            self.run_command("SNAPSHOT DROP", name)
        self.table("a")

    def table(self, name):
        self.run_command("TABLE CREATE", name, "FAMILY", "f", "FAMILY", "g")
        self.run_command("CPUT", name, "r", "f:q", "v", "g:q", "w")

    def test_whatever_drops_keeps(self):
        run = self.run_command
        for step in (["TABLE DROP", "a"], ["TABLE TRUNCATE", "a"], ["DEL", "a"], ["UNLINK", "a"], ["FLUSHDB"], ["FLUSHALL"],
                     ["FAMILY DROP", "a", "g"], ["RENAME", "b", "a"], ["COPY", "b", "a", "REPLACE"]):
            with self.subTest(step=step):
                for name in self.dropped():
                    run("SNAPSHOT DROP", name)
                run("TABLE DROP", "a") if run("EXISTS", "a") else None
                run("TABLE DROP", "b") if run("EXISTS", "b") else None
                for name in self.dropped():
                    run("SNAPSHOT DROP", name)
                self.table("a")
                if "b" in step:
                    run("TABLE CREATE", "b", "FAMILY", "f")
                digest = run("DEBUG DIGEST", "a")
                run(*step)
                names = self.dropped()
                self.assertEqual(1, len(names), names)
                self.assertRegex(names[0], r"^dropped\.a\.[0-9]{16}$")
                self.assertEqual(digest, run("DEBUG DIGEST", f"a@{names[0]}"))
                info = run("SNAPSHOT INFO", names[0])
                info = dict(zip(info[::2], info[1::2]))
                self.assertEqual(int(names[0].split(".")[2]), info[b"created"])
                self.assertTrue(3_000_000 < info[b"ttl"] <= 3_600_000)
                run("DEBUG RELOAD")
                self.assertEqual(digest, run("DEBUG DIGEST", f"a@{names[0]}"))

    def test_in_exec_and_empty_ones(self):
        run = self.run_command
        run("MULTI")
        run("TABLE DROP", "a")
        run("TABLE CREATE", "a", "FAMILY", "f")
        run("TABLE DROP", "a")
        run("EXEC")
        self.assertEqual(2, len(self.dropped()))
        run("TABLE CREATE", "e", "FAMILY", "f")
        run("TABLE TRUNCATE", "e")
        self.assertEqual(3, len(self.dropped()))
        run("KEYSPACE CREATE", "ks")
        run("TABLE CREATE", "ks/t", "FAMILY", "f")
        run("KEYSPACE DROP", "ks")
        self.assertEqual(3, len(self.dropped()))

    def test_no_room(self):
        run = self.run_command
        self.addCleanup(self.redis.execute_command, "CONFIG SET", "snapshots-max", 256)
        self.addCleanup(self.redis.execute_command, "CONFIG SET", "maxmemory", 0)
        run("CONFIG SET", "snapshots-max", 2)
        run("SNAPSHOT CREATE", "mine")
        run("TABLE TRUNCATE", "a")
        first = self.dropped()[0]
        run("TABLE TRUNCATE", "a")
        self.assertEqual(2, len(self.dropped()))
        self.assertNotIn(first, self.dropped())
        run("SNAPSHOT CREATE", "second") if run("SNAPSHOT DROP", self.dropped()[0]) else None
        self.assertIn("TOOLARGE", refusal(self.redis, "TABLE DROP", "a"))
        self.assertEqual(1, run("EXISTS", "a"))
        run("CONFIG SET", "drop-keep", "0")
        self.addCleanup(self.redis.execute_command, "CONFIG SET", "drop-keep", "1h")
        run("TABLE DROP", "a")
        self.assertEqual(["mine", "second"], self.dropped())
        run("CONFIG SET", "snapshots-max", 256)
        run("CONFIG SET", "drop-keep", "1h")
        self.table("a")
        run("CONFIG SET", "maxmemory", 1000)
        self.assertIn("TOOLARGE", refusal(self.redis, "TABLE DROP", "a"))
        run("CONFIG SET", "maxmemory", 0)
        run("TABLE DROP", "a")
        self.assertEqual(3, len(self.dropped()))

    def test_option(self):
        for wrong in ("-1", "1x", "x", ""):
            self.assertIn("drop-keep", refusal(self.redis, "CONFIG SET", "drop-keep", wrong), wrong)
        self.assertEqual({"drop-keep": "1h"}, self.run_command("CONFIG GET", "drop-keep"))


class Replicas(ReplicaTest):
    def test_followers_make_the_same_copy(self):
        leader, follower = Node(self), Node(self)
        follower.follow(leader)
        leader.run("TABLE CREATE t FAMILY f FAMILY g")
        leader.run("INDEX CREATE t i ON 1 f:a")
        leader.load(500)
        self.assertEqual(1, leader.run("COPY t u"))
        leader.run("CDELRANGE t PREFIX r1")
        leader.run("COPY t u REPLACE")
        leader.run("CPUT u new f:a 1")
        self.assert_copied(leader, follower)
        self.assertEqual(leader.run("CCOUNT u"), follower.run("CCOUNT u"))
        self.assertEqual([], follower.run("SNAPSHOT LIST"))


if __name__ == "__main__":
    unittest.main()
