"""Keyspace notifications: what happens to tables, told to those who listen."""

import unittest

from cellar_server import not_on_a_follower
from wire import OK, WireTest

from model import resp


class TableEventsTest(WireTest):
    def setUp(self):
        super().setUp()
        self.write("CONFIG SET notify-keyspace-events AKEn")
        self.addCleanup(self.call, 'CONFIG SET notify-keyspace-events ""')
        self.server.settle()
        self.listener = resp.Client(self.server.port, 3, timeout=120)
        self.addCleanup(self.listener.close)
        self.listener.call("PSUBSCRIBE", "__key*__:*")

    def events(self):
        """(keyspace, event, table) of all that came since, from both kinds of channels."""
        self.server.settle()
        self.redis.publish("__keymark__:", "end")
        found = {"__keyspace": [], "__keyevent": []}
        while True:
            push = self.listener.read()
            self.assertIsInstance(push, resp.Push)
            channel, message = push[2].decode(), push[3].decode()
            if channel == "__keymark__:":
                break
            kind, _, rest = channel.partition("@")
            space, _, subject = rest.partition("__:")
            pair = (subject, message) if kind == "__keyevent" else (message, subject)
            found[kind].append((space,) + pair)
        self.assertEqual(found["__keyspace"], found["__keyevent"])
        return found["__keyevent"]

    @not_on_a_follower("it tells what a record changes, not by which command")
    def test_cells(self):
        self.write("TABLE CREATE t FAMILY f")
        self.events()
        self.write("CPUT t r f:a 1")
        self.write("CPUT t r NX f:a 1", None)
        self.call("CPUT t r x:a 1")
        self.write("CINCRBY t r f:a 1", 2)
        self.write("CAPPEND t r f:b x", 1)
        self.write("CINCRBYFLOAT t r f:c 1", "1")
        self.write("CMUTATE t r DEL f:zz", [1, 0])
        self.write("CMUTATE t r PUT f:d 1", [1, OK])
        self.write("CDEL t r f:zz", 0)
        self.write("CDEL t r f:a", 2)
        self.write("CDELRANGE t PREFIX zz", 0)
        self.write("CDELRANGE t ALL", 1)
        self.assertEqual(self.events(), [("0", event, "t") for event in (
            "cput", "cincrby", "cappend", "cincrbyfloat", "cmutate", "cdel", "cdelrange")])

    @not_on_a_follower("each slice is a record")
    def test_what_a_long_change_leaves_behind_is_told(self):
        """Its client may leave in the middle: the slices that were done stay done."""
        self.write("TABLE CREATE t FAMILY f")
        writer = resp.Client(self.server.port, 3, timeout=60)
        self.addCleanup(writer.close)
        changes = [("CDELRANGE", "t", "PREFIX", "x"), ("CUPDATE", "t", "PREFIX", "x", "PUT", "f:b", "new")]
        for change, left in [(c, r) for c in changes for r in range(3)]:
            for begin in range(0, 30_000, 1000):
                for i in range(begin, begin + 1000):
                    writer.send("CPUT", "t", f"x{i:06d}", "f:a", "1")
                for _ in range(1000):
                    writer.read()
            self.events()
            client = resp.Client(self.server.port, 3, timeout=60)
            number = client.call("CLIENT", "ID")
            client.send(*change)
            writer.call("CLIENT", "KILL", "ID", str(number))
            client.close()
            if change[0] == "CDELRANGE":
                changed = writer.call("CCOUNT", "t") < 30_000
            else:
                changed = writer.call("CCOUNT", "t", "COLUMNS", "1", "f:b") > 0
            # The client may have been quicker or slower than the one that killed it.
            self.assertEqual(self.events(), [("0", change[0].lower(), "t")] if changed else [], left)
            self.write("TABLE TRUNCATE t")

    @not_on_a_follower("it tells what a record changes, not by which command")
    def test_tables(self):
        self.write("TABLE CREATE t FAMILY f")
        self.write("FAMILY ADD t g")
        self.write("FAMILY ALTER t g TTL 1h")
        self.write("FAMILY DROP t g")
        self.write("TABLE RENAME t u")
        self.write("TABLE TRUNCATE u")
        self.write("TABLE ALTER u WHOLE")
        self.write("TABLE ALTER u WHOLE")
        self.write("RENAME u v")
        self.write("DEL v none", 1)
        self.write("TABLE CREATE 3/w")
        self.write("TABLE DROP 3/w")
        self.assertEqual(self.events(), [
            ("0", "new", "t"), ("0", "table.create", "t"), ("0", "family.add", "t"),
            ("0", "family.alter", "t"), ("0", "family.drop", "t"), ("0", "rename_from", "t"),
            ("0", "rename_to", "u"), ("0", "table.truncate", "u"), ("0", "table.alter", "u"),
            ("0", "rename_from", "u"), ("0", "rename_to", "v"), ("0", "del", "v"), ("3", "new", "w"),
            ("3", "table.create", "w"), ("3", "table.drop", "w")])

    def test_indexes(self):
        self.write("TABLE CREATE t FAMILY f")
        self.events()
        self.write("INDEX CREATE t i ON 1 f:a")
        self.refused("INDEX CREATE t i ON 1 f:a", "BUSYKEY")
        self.write("INDEX DROP t i")
        self.refused("INDEX DROP t i", "NOINDEX")
        self.assertEqual(self.events(), [("0", "index.create", "t"), ("0", "index.drop", "t")])

    @not_on_a_follower("it tells what a record changes, not by which command")
    def test_flushes(self):
        for line in ("TABLE CREATE a", "TABLE CREATE b", "TABLE CREATE 1/c", "KEYSPACE CREATE k", "TABLE CREATE k/d"):
            self.write(line)
        self.events()
        self.write("FLUSHDB")
        self.write("FLUSHDB")
        self.write("KEYSPACE DROP k")
        self.assertEqual(self.events(), [("0", "del", "a"), ("0", "del", "b"), ("k", "table.drop", "d")])
        self.write("FLUSHALL")
        self.assertEqual(self.events(), [("1", "del", "c")])

    def test_what_multi_atomic_takes_back_notifies_nothing(self):
        self.write("TABLE CREATE t FAMILY f")
        self.events()
        for refused in ("CINCRBY t r f:a x", "CGET none r f:a"):
            self.write("MULTI ATOMIC")
            for line in ("CPUT t r f:a x", "TABLE CREATE u", "INDEX CREATE t i ON 1 f:a", "CDELRANGE t ALL", "FLUSHALL",
                         refused):
                self.call(line)
            self.refused_once("EXEC")
            self.assertEqual(self.events(), [])

    def refused_once(self, line):
        self.assertIsInstance(self.call(line), resp.Error)

    def test_transactions(self):
        self.write("TABLE CREATE t FAMILY f")
        self.events()
        self.write("MULTI")
        for line in ("CPUT t r f:a 1", "CPUT t s f:a 1"):
            self.assertEqual(self.call(line), b"QUEUED")
        self.assertEqual(self.events(), [])
        self.write("EXEC", [OK, OK])
        self.assertEqual(self.events(), [("0", "cput", "t")] * 2)
        self.write("MULTI ATOMIC")
        for line in ("CPUT t r f:a 1", "CINCRBY t r f:a x"):
            self.call(line)
        self.assertIsInstance(self.call("EXEC"), resp.Error)
        self.assertEqual(self.events(), [])

    def test_switched_off(self):
        self.write("CONFIG SET notify-keyspace-events Kg")
        self.write("TABLE CREATE t FAMILY f")
        self.write("CPUT t r f:a 1")
        self.call("PUBLISH __keymark__: end")
        self.assertEqual(self.listener.read()[2:], [b"__keyspace@0__:t", b"table.create"])
        self.assertEqual(self.listener.read()[2], b"__keymark__:")


class DurableEventsTest(WireTest):
    OPTIONS = {"appendfsync": "always"}

    def test_events_come_under_always_too(self):
        self.write("CONFIG SET notify-keyspace-events AE")
        listener = resp.Client(self.server.port, 3)
        self.addCleanup(listener.close)
        listener.call("SUBSCRIBE", "__keyevent@0__:cput")
        self.write("TABLE CREATE t FAMILY f")
        for at in range(20):
            self.write(f"CPUT t r{at} f:a 1")
            self.assertEqual(listener.read()[1:], [b"__keyevent@0__:cput", b"t"])


if __name__ == "__main__":
    unittest.main()
