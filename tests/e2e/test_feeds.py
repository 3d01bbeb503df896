"""Feeds: what they tell, how they are read, who may, and that they never tell less or more than the table."""

import os
import random
import subprocess
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import CellarServer, CellarTest, not_on_a_follower, wait_until
from feed_model import FeedModel, as_sent, drop_feeds, key_of, pairs, read_all, read_to_end, table_cells
from wire import M, S, WireTest, resp

CRASHES = int(os.environ.get("CELLAR_FEED_CRASHES", "4"))  # for each policy


class FeedTest(CellarTest):
    OPTIONS = {"appendfsync": "always", "enable-debug-command": "yes", "save": ""}

    def setUp(self):
        super().setUp()
        as_sent(self.redis)
        for keyspace in range(2):
            with self.server.client(db=keyspace) as client:
                drop_feeds(client)

    def do(self, line):
        return self.redis.execute_command(*line.split(" "))

    def told(self, feed, after="0"):
        """The entries behind an id, each as a dict with its id."""
        found = []
        for id, flat in read_all(self.redis, feed, after):
            self.assertEqual(len(flat) % 2, 0)
            fields = pairs(flat)
            self.assertEqual(len(fields), len(flat) // 2, "a field comes twice")
            found.append({"id": id.decode(), **fields})
        return found

    def ops(self, feed, after="0"):
        return [{k: v for k, v in entry.items() if k != "id"} for entry in self.told(feed, after)]

    def refused(self, line, error):
        with self.assertRaises(redis.ResponseError) as caught:
            self.do(line)
        # redis-py takes ERR away.
        self.assertTrue(str(caught.exception).startswith(error.removeprefix("ERR ")), str(caught.exception))


class WhatIsTold(FeedTest):
    def setUp(self):
        super().setUp()
        self.do("TABLE CREATE t FAMILY a VERSIONS 3 FAMILY b TYPE i64")

    def test_the_first_entries_are_the_schemas(self):
        self.do("TABLE CREATE s FAMILY f")
        self.do("FEED CREATE f ON 0")
        shown = [b"\n".join(self.do("TABLE SHOW " + name)).decode() for name in ("s", "t")]
        self.assertEqual(self.ops("f"), [
            {"op": "schema", "table": "s", "commands": shown[0], "more": "1"},
            {"op": "schema", "table": "t", "commands": shown[1]}])

    def test_a_feed_on_a_family_tells_of_that_family(self):
        self.do("FEED CREATE f ON 1 t:a")
        self.do("CMUTATE t r PUT a:x 1 PUT b:y 2 PUT a:z 3")
        self.do("FAMILY ALTER t b VERSIONS 7")
        self.do("FAMILY ALTER t a VERSIONS 4")
        told = self.ops("f")
        self.assertEqual([e["op"] for e in told], ["schema", "put", "put", "schema"])
        self.assertNotIn(" b", told[0]["commands"])
        self.assertEqual([e.get("column") for e in told[1:3]], ["a:x", "a:z"])
        self.assertEqual([e.get("more") for e in told[1:3]], ["1", None])
        self.assertIn("VERSIONS 4", told[3]["commands"])

    def test_puts_have_type_value_and_expiry(self):
        self.do("FEED CREATE f ON 1 t")
        self.do("CPUT t r a:x hello TS 9")
        self.do("CPUT t r b:n -5 TS 10")
        self.do("CPUT t r a:b true AS bool TS 11")
        self.do("CPUT t r a:d 1.5 AS f64 TS 12")
        self.do("CPUT t r a:l v TS 13 TTL 1h")
        told = self.ops("f")[1:]
        row = {"op": "put", "table": "t", "row": "r"}
        self.assertEqual(told[:4], [
            {**row, "column": "a:x", "ts": "9", "type": "bytes", "value": "hello"},
            {**row, "column": "b:n", "ts": "10", "type": "i64", "value": "-5"},
            {**row, "column": "a:b", "ts": "11", "type": "bool", "value": "1"},
            {**row, "column": "a:d", "ts": "12", "type": "f64", "value": "1.5"}])
        self.assertGreater(int(told[4]["expires"]), time.time() * 1e6 + 3e9)

    def test_counters_tell_their_values(self):
        self.do("FEED CREATE f ON 1 t")
        for _ in range(3):
            self.do("CINCRBY t r b:n 2")
        self.do("CAPPEND t r a:x ab")
        self.do("CAPPEND t r a:x cd")
        self.assertEqual([e["value"] for e in self.ops("f")[1:]], ["2", "4", "6", "ab", "abcd"])

    def test_deletions(self):
        for row in "rstuv":
            self.do(f"CMUTATE t {row} PUT a:x 1 TS 5 PUT a:y 2 TS 6 PUT a:z 4 TS 7 PUT b:n 3 TS 7")
        self.do("FEED CREATE f ON 1 t")
        self.do("CDEL t r a:x")
        self.do("CDEL t r a:y TIME 6 6")
        self.do("CDEL t s COLRANGE a [x (z")
        self.do("CDEL t t a")
        self.do("CDEL t u")
        self.do("CDEL t r a:none")
        row = {"table": "t", "row": "r"}
        self.assertEqual(self.ops("f")[1:], [
            {"op": "delrange", **row, "family": "a", "from": "[x", "to": "[x"},
            {"op": "del", **row, "column": "a:y", "ts": "6"},
            {"op": "delrange", "table": "t", "row": "s", "family": "a", "from": "[x", "to": "[y"},
            {"op": "delrange", "table": "t", "row": "t", "family": "a"},
            {"op": "delrange", "table": "t", "row": "u", "family": "a", "more": "1"},
            {"op": "delrange", "table": "t", "row": "u", "family": "b"}])

    def test_rows_deleted_by_range(self):
        for i in range(10):
            self.do(f"CPUT t r{i} a:x 1")
        self.do("FEED CREATE f ON 1 t")
        self.do("CDELRANGE t RANGE (r2 (r6")
        self.do("CDELRANGE t PREFIX r9")
        self.do("CDELRANGE t PREFIX nothing")
        self.assertEqual(self.ops("f")[1:], [
            {"op": "delrows", "table": "t", "from": "[r3", "to": "[r5"},
            {"op": "delrows", "table": "t", "from": "[r9", "to": "[r9"}])

    def test_tables_that_come_and_go(self):
        self.do("FEED CREATE f ON 0")
        self.do("FEED CREATE g ON 1 t")
        self.do("TABLE CREATE n FAMILY f")
        self.do("CPUT n r f:q v TS 1")
        self.do("TABLE TRUNCATE n")
        self.do("RENAME n m")
        self.do("RENAME m t")
        self.do("INDEX CREATE t i ON 1 f:q")
        self.do("TABLE DROP t")
        self.do("FLUSHALL")
        all_ops = [(e["op"], e["table"], e.get("to")) for e in self.ops("f")]
        self.assertEqual(all_ops, [
            ("schema", "t", None), ("schema", "n", None), ("put", "n", None), ("truncate", "n", None),
            ("rename", "n", "m"), ("rename", "m", "t"), ("schema", "t", None), ("drop", "t", None)])
        # t alone: what is renamed onto it comes from outside, and replaces it.
        self.assertEqual([(e["op"], e["table"], e.get("to")) for e in self.ops("g")], [
            ("schema", "t", None), ("rename", "m", "t"), ("schema", "t", None), ("drop", "t", None)])

    def test_flushall_keeps_feeds_and_tells_drops_in_one_step(self):
        self.do("TABLE CREATE a FAMILY f")
        self.do("FEED CREATE f ON 0")
        self.do("FLUSHALL")
        self.do("TABLE CREATE t FAMILY z")
        self.assertEqual([(e["op"], e["table"], e.get("more")) for e in self.ops("f")[2:]],
                         [("drop", "a", "1"), ("drop", "t", None), ("schema", "t", None)])
        self.assertEqual(self.do("FEED LIST"), [b"f"])

    def test_a_transaction_is_one_step(self):
        self.do("FEED CREATE f ON 0")
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.execute_command("CPUT", "t", "r", "a:x", "1")
            pipe.execute_command("TABLE CREATE", "n", "FAMILY", "f")
            pipe.execute_command("CPUT", "n", "r", "f:q", "2")
            pipe.execute_command("RENAME", "n", "m")
            pipe.execute_command("CPUT", "m", "r", "f:q", "3")
            pipe.execute()
        self.do("CPUT t r a:x 4")
        told = self.told("f")[1:]
        self.assertEqual([(e["op"], e["table"], e.get("more")) for e in told], [
            ("put", "t", "1"), ("schema", "n", "1"), ("put", "n", "1"), ("rename", "n", "1"),
            ("put", "m", None), ("put", "t", None)])
        ids = [key_of(e["id"]) for e in told]
        self.assertEqual([n % 1_000_000 for _, n in ids], [0, 1, 2, 3, 4, 0])
        self.assertEqual(len({(ms, n // 1_000_000) for ms, n in ids}), 2)

    def test_what_is_taken_back_is_not_told(self):
        self.do("FEED CREATE f ON 0")
        connection = self.server.client(single_connection_client=True)
        connection.execute_command("MULTI", "ATOMIC")
        connection.execute_command("CPUT", "t", "r", "a:x", "1")
        connection.execute_command("CPUT", "t", "r", "b:n", "word")
        with self.assertRaises(redis.ResponseError):
            connection.execute_command("EXEC")
        connection.close()
        self.assertEqual(len(self.ops("f")), 1)

    def test_prefix_and_slice(self):
        self.do("FEED CREATE p ON 1 t PREFIX com.a PREFIX org")
        for i in range(3):
            self.do(f"FEED CREATE s{i} ON 1 t SLICE {i} 3")
        rows = ["com.a", "com.ab", "com.b", "org.x", "net", "con"] + [f"r{i}" for i in range(60)]
        for row in rows:
            self.do(f"CPUT t {row} a:x 1")
        self.do("CDELRANGE t PREFIX com.b")
        self.do("CDELRANGE t PREFIX com")
        self.assertEqual([(e["op"], e.get("row")) for e in self.ops("p")[1:]],
                         [("put", "com.a"), ("put", "com.ab"), ("put", "org.x"), ("delrows", None)])
        slices = [[e for e in self.ops(f"s{i}")[1:]] for i in range(3)]
        puts = [[e["row"] for e in part if e["op"] == "put"] for part in slices]
        self.assertEqual(sorted(sum(puts, [])), sorted(rows))
        self.assertTrue(all(puts))
        for part in slices:
            self.assertEqual([e["op"] for e in part if e["op"] != "put"], ["delrows", "delrows"])

    def test_names_not_tables_are_covered(self):
        self.do("FEED CREATE f ON 1 t")
        self.do("TABLE DROP t")
        self.do("TABLE CREATE t KEY u32 FAMILY n")
        self.do("CPUT t 7 n:q v TS 1")
        self.assertEqual([(e["op"], e.get("row")) for e in self.ops("f")[1:]],
                         [("drop", None), ("schema", None), ("put", "7")])

    def test_other_keyspaces_are_not_covered(self):
        self.do("FEED CREATE f ON 0")
        other = self.server.client(db=1)
        other.execute_command("TABLE CREATE x FAMILY f")
        other.execute_command("CPUT x r f:q v")
        other.close()
        self.do("RENAME 1/x y")
        self.assertEqual([(e["op"], e["table"], e.get("to")) for e in self.ops("f")[1:]],
                         [("rename", "1/x", "y")])
        self.do("RENAME y 1/x")
        self.assertEqual(self.ops("f")[2], {"op": "rename", "table": "y", "to": "1/x"})

    def test_odd_keys_and_values(self):
        self.do("TABLE CREATE o KEY utf8#-u16 FAMILY f ORDER -i32")
        self.do("FEED CREATE f ON 1 o")
        for qualifier in (-1, 0, 2**31 - 1, -2**31):
            self.redis.execute_command("CPUT", "o", "a#65535", f"f:{qualifier}", b"\0\xff\r\n")
        self.redis.execute_command("CPUT", "o", "é#0", "f:1", "x")
        self.do("CDEL o a#65535 COLRANGE f [0 [-1")
        self.do("CDELRANGE o PREFIX a#")
        told = self.ops("f")[1:]
        self.assertEqual([e.get("column") for e in told[:4]],
                         ["f:-1", "f:0", "f:2147483647", "f:-2147483648"])
        self.assertEqual(told[0]["value"].encode("utf-8", "surrogateescape"), b"\0\xff\r\n")
        self.assertEqual(told[5], {"op": "delrange", "table": "o", "row": "a#65535", "family": "f",
                                   "from": "[0", "to": "(-2"})
        self.assertEqual(told[6], {"op": "delrows", "table": "o", "from": "[a#65535", "to": "(a#65534"})

    @not_on_a_follower("while it carries out so large an EXEC a leader may be taken for dead")
    def test_a_large_step_takes_further_microseconds(self):
        self.do("FEED CREATE f ON 1 t")
        with self.redis.pipeline(transaction=True) as pipe:
            for part in range(11):
                words = ["CPUT", "t", f"r{part}"]
                for i in range(100_000):
                    words += [f"a:{i}", "v"]
                pipe.execute_command(*words)
            pipe.execute()
        self.do("CPUT t last a:x 1")
        # The end of it, and what comes behind.
        last = self.redis.execute_command("XREVRANGE", "f", "+", "-", "COUNT", 3)
        ids = [key_of(id) for id, _ in last]
        self.assertEqual(ids, sorted(ids, reverse=True))
        self.assertEqual(pairs(last[0][1])["row"], "last")
        self.assertEqual(ids[1][1] % 1_000_000, 99_999)
        self.assertEqual(self.do("XLEN f"), 1_100_002)


class HowItIsRead(WireTest):
    OPTIONS = {"appendfsync": "always", "enable-debug-command": "yes", "save": ""}

    def setUp(self):
        super().setUp()
        as_sent(self.redis)
        for feed in self.redis.execute_command("FEED LIST"):
            self.redis.execute_command("FEED DROP", feed)
        self.write("TABLE CREATE web FAMILY anchor")

    def entries(self, feed, count):
        """All that it tells: of another connection's writes a follower hears when its leader's disk has them."""
        wait_until(lambda: len(read_all(self.redis, feed)) == count, lambda: f"{read_all(self.redis, feed)}")
        return read_all(self.redis, feed)

    def test_the_example_of_the_manual(self):
        self.write("FEED CREATE links ON 1 web:anchor PREFIX com.cnn")
        self.write("CPUT web com.cnn.www anchor:cnnsi.com CNN TS 9")
        entries = self.entries("links", 2)
        fields = ["op", "put", "table", "web", "row", "com.cnn.www", "column", "anchor:cnnsi.com", "ts", "9",
                  "type", "bytes", "value", "CNN"]
        id = entries[1][0].decode()
        first = entries[0][0].decode()
        self.write(f"XREAD BLOCK 1000 STREAMS links {first}", [["links", [[id, fields]]]], 2)
        self.write(f"XREAD BLOCK 1000 STREAMS links {first}", M(("links", [[id, fields]])), 3)
        self.read(f"XRANGE links {id} {id}", [[id, fields]])
        self.read(f"XREVRANGE links + ({first}", [[id, fields]])
        self.read("XLEN links", 2)
        self.write(f"XREAD STREAMS links {id}", resp.NULL_ARRAY, 2)
        self.write(f"XREAD STREAMS links {id}", None, 3)

    def test_ranges(self):
        self.write("FEED CREATE f ON 1 web")
        for i in range(300):
            self.write(f"CPUT web r{i} anchor:x {i}")
        entries = self.entries("f", 301)
        ids = [id.decode() for id, _ in entries]
        run = self.redis.execute_command
        self.assertEqual(run("XRANGE", "f", "-", "+"), entries)
        self.assertEqual(run("XREVRANGE", "f", "+", "-"), entries[::-1])
        for low, high in [(0, 10), (5, 5), (200, 300), (17, 250)]:
            self.assertEqual(run("XRANGE", "f", ids[low], ids[high]), entries[low:high + 1])
            self.assertEqual(run("XRANGE", "f", "(" + ids[low], "(" + ids[high]), entries[low + 1:high])
            self.assertEqual(run("XREVRANGE", "f", ids[high], ids[low], "COUNT", 4),
                             entries[low:high + 1][::-1][:4])
            self.assertEqual(run("XREAD", "COUNT", 3, "STREAMS", "f", ids[low]) or [[b"f", []]],
                             [[b"f", entries[low + 1:low + 4]]])
        self.assertEqual(run("XREAD", "STREAMS", "f", "+"), [[b"f", entries[-1:]]])
        self.assertEqual(run("XRANGE", "f", "+", "-"), [])
        ms = ids[150].split("-")[0]
        self.assertEqual(run("XRANGE", "f", ms, ms), [e for e in entries if e[0].decode().startswith(ms + "-")])
        self.assertEqual(run("XRANGE", "f", ids[3], ids[2]), [])

    def test_from_every_id_the_exact_rest(self):
        self.write("FEED CREATE f ON 1 web")
        for i in range(40):
            with self.redis.pipeline(transaction=i % 3 == 0) as pipe:
                for j in range(i % 7 + 1):
                    pipe.execute_command("CPUT", "web", f"r{i}", f"anchor:{j}", "v" * (i * 50))
                pipe.execute()
        entries = read_all(self.redis, "f")
        self.assertEqual(len({id for id, _ in entries}), len(entries))
        for at, (id, _) in enumerate(entries):
            self.assertEqual(read_all(self.redis, "f", id, count=1 + at % 50), entries[at + 1:])
            newer = self.redis.execute_command("XREVRANGE", "f", id, "-", "COUNT", 100000)
            self.assertEqual(newer, entries[:at + 1][::-1])

    def test_replies_are_bounded(self):
        self.write("FEED CREATE f ON 1 web")
        for i in range(40):
            self.redis.execute_command("CPUT", "web", f"r{i}", "anchor:x", "v" * 100_000)
        reply = self.redis.execute_command("XREAD", "COUNT", 100000, "STREAMS", "f", "0")
        self.assertTrue(10 <= len(reply[0][1]) <= 13, len(reply[0][1]))
        self.entries("f", 41)
        self.redis.execute_command("CPUT", "web", "large", "anchor:x", "v" * 5_000_000)
        last = self.redis.execute_command("XREVRANGE", "f", "+", "-")
        self.assertEqual(len(last), 1)

    def test_several_feeds_at_once(self):
        self.write("TABLE CREATE t FAMILY f")
        self.write("FEED CREATE a ON 1 web")
        self.write("FEED CREATE b ON 1 t")
        self.write("CPUT t r f:q 1")
        reply = self.redis.execute_command("XREAD", "STREAMS", "a", "b", "0", "0")
        self.assertEqual([(name, len(entries)) for name, entries in reply], [(b"a", 1), (b"b", 2)])
        id = reply[0][1][0][0]
        reply = self.redis.execute_command("XREAD", "STREAMS", "a", "b", id, "0")
        self.assertEqual([name for name, _ in reply], [b"b"])

    def test_waiting(self):
        self.write("FEED CREATE f ON 1 web")
        waiting = as_sent(self.server.client(single_connection_client=True))
        self.addCleanup(waiting.close)
        for id in ("$", None):
            got = []
            id = id or got_id

            def wait(id=id):
                got.append(waiting.execute_command("XREAD", "BLOCK", 200000, "STREAMS", "f", id))

            thread = threading.Thread(target=wait)
            thread.start()
            self.wait_for_reader()
            self.write("CPUT web r anchor:x 1")
            thread.join(300)
            self.assertEqual(len(got[0][0][1]), 1)
            got_id = got[0][0][1][0][0]
        begin = time.monotonic()
        self.assertIsNone(waiting.execute_command("XREAD", "BLOCK", 60, "STREAMS", "f", "$"))
        self.assertGreaterEqual(time.monotonic() - begin, 0.05)

    def wait_for_reader(self):
        wait_until(lambda: any(c.get("cmd") == "xread" and "b" in c["flags"]
                               for c in self.redis.execute_command("CLIENT LIST")))

    def outcome_of_wait(self, act):
        """What a waiting reader gets when `act` happens."""
        waiting = as_sent(self.server.client(single_connection_client=True))
        id = waiting.client_id()
        got = []

        def wait():
            try:
                got.append(waiting.execute_command("XREAD", "BLOCK", 0, "STREAMS", "f", "$"))
            except redis.RedisError as error:
                got.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        self.wait_for_reader()
        act(id)
        thread.join(300)
        waiting.close()
        self.assertEqual(len(got), 1)
        return got[0]

    def test_waiting_ends(self):
        self.write("FEED CREATE f ON 1 web")
        run = self.redis.execute_command

        def unblock(id, *how):  # 0: at who is to answer its turn has not come yet
            wait_until(lambda: run("CLIENT", "UNBLOCK", id, *how) == 1, "it does not wait")
        self.assertIsNone(self.outcome_of_wait(unblock))
        self.assertIn("UNBLOCKED", self.outcome_of_wait(lambda id: unblock(id, "ERROR")))
        self.assertIn("Connection", self.outcome_of_wait(lambda id: run("CLIENT", "KILL", "ID", id)))
        self.assertIn("NOFEED", self.outcome_of_wait(lambda id: run("FEED", "DROP", "f")))

    def test_a_pause_of_writes_does_not_hold_readers(self):
        self.write("FEED CREATE f ON 1 web")
        self.write("CLIENT PAUSE 600000 WRITE")
        self.assertEqual(len(read_all(self.redis, "f")), 1)
        self.write("CLIENT UNPAUSE")

    def test_inside_a_transaction(self):
        self.write("FEED CREATE f ON 1 web")
        with as_sent(self.redis).pipeline(transaction=True) as pipe:
            pipe.execute_command("CPUT", "web", "r", "anchor:x", "1")
            pipe.execute_command("XREAD", "BLOCK", 0, "STREAMS", "f", "0")
            pipe.execute_command("XREAD", "BLOCK", 0, "STREAMS", "f", "$")
            pipe.execute_command("XLEN", "f")
            replies = pipe.execute()
        self.assertEqual(len(replies[1][0][1]), 1)  # what was on disk before
        self.assertIsNone(replies[2])
        self.assertEqual(replies[3], 1)

    def test_figures(self):
        self.write("FEED CREATE f ON 2 web web:anchor PREFIX a PREFIX b SLICE 1 2 KEEP 36h")
        info = self.redis.execute_command("FEED INFO", "f")
        info = dict(zip(info[::2], info[1::2]))
        first = info[b"first"]
        self.assertEqual(info, {
            b"name": b"f", b"on": [b"web", b"web:anchor"], b"prefix": [b"a", b"b"], b"slice": [1, 2],
            b"old": 0, b"expired": 0, b"entries": b"cell", b"keep": b"36h", b"first": first, b"last": first, b"dropped": b"0-0",
            b"groups": 0, b"bytes": info[b"bytes"]})
        self.assertGreater(info[b"bytes"], 0)
        stream = self.redis.xinfo_stream("f")
        self.assertEqual((stream["length"], stream["last-generated-id"]), (1, first))
        self.assertEqual(stream["first-entry"], stream["last-entry"])

    def test_it_is_a_key(self):
        self.write("FEED CREATE f ON 1 web")
        self.read("TYPE f", S("stream"))
        self.read("EXISTS f web f none", 3)
        self.read("KEYS *", ["f", "web"])
        self.read("DBSIZE", 2)
        self.read("SCAN 0 TYPE stream", ["0", ["f"]])
        self.read("SCAN 0 TYPE table", ["0", ["web"]])
        self.read("TTL f", -1)
        self.read("FEED LIST", ["f"])
        self.refused("RENAME f g", "WRONGTYPE")
        self.refused("RENAME web f", "WRONGTYPE")
        self.refused("TABLE RENAME web f", "WRONGTYPE")
        self.refused("TABLE RENAME f g", "WRONGTYPE")
        self.refused("CPUT f r a:b v", "WRONGTYPE")
        self.refused("CSCAN f 0", "WRONGTYPE")
        self.refused("TABLE CREATE f FAMILY x", "BUSYKEY")
        self.refused("FEED CREATE f ON 1 web", "BUSYKEY")
        self.refused("FEED CREATE web ON 1 web", "BUSYKEY")
        self.write("DEL f none", 1)
        self.read("EXISTS f", 0)
        self.refused("FEED DROP f", "NOFEED")

    def test_a_keyspace_takes_its_feeds_along(self):
        self.write("KEYSPACE CREATE k")
        self.write("TABLE CREATE k/t FAMILY f")
        self.write("FEED CREATE k/f ON 1 t")
        self.read("XLEN k/f", 1)
        self.write("KEYSPACE DROP k")
        self.write("KEYSPACE CREATE k")
        self.refused("XLEN k/f", "NOFEED")
        self.write("KEYSPACE DROP k")

    def test_wrong_use(self):
        self.write("FEED CREATE f ON 1 web")
        self.refused("XREAD STREAMS none 0", "NOFEED")
        self.refused("XREAD BLOCK 0 STREAMS none 0", "NOFEED")
        self.refused("XRANGE none - +", "NOFEED")
        self.refused("XLEN none", "NOFEED")
        self.refused("FEED INFO none", "NOFEED")
        self.refused("XLEN web", "WRONGTYPE")
        self.refused("XREAD STREAMS f 0 f", "ERR Unbalanced")
        self.refused("XREAD STREAMS f x", "ERR Invalid stream ID")
        self.refused("XREAD BLOCK x STREAMS f 0", "ERR timeout is not an integer")
        self.refused("XREAD BLOCK -1 STREAMS f 0", "ERR timeout is negative")
        self.refused("XRANGE f 1-2-3 +", "ERR Invalid stream ID")
        self.refused("XRANGE f (- +", "ERR Invalid stream ID")
        self.refused("XADD f * a 1", "ERR a feed is written by the server alone")
        self.refused("XTRIM f MAXLEN 0", "ERR a feed is written by the server alone")
        self.refused("XDEL f 1-1", "ERR a feed is written by the server alone")
        self.refused("XSETID f 1-1", "ERR a feed is written by the server alone")
        self.refused("FEED CREATE g ON 1 none", "NOTABLE")
        self.refused("FEED CREATE g ON 1 web:none", "NOFAMILY")
        self.refused("FEED CREATE g ON 1 1/web", "ERR")
        self.refused("FEED CREATE g ON 2 web", "ERR syntax error")
        self.refused("FEED CREATE g KEEP 5m", "ERR syntax error: a feed needs ON")
        self.refused("FEED CREATE g ON 1 web KEEP", "ERR syntax error")
        self.refused("FEED CREATE g ON 1 web KEEP 0s", "ERR")
        self.refused("FEED CREATE g ON 1 web SLICE 2 2", "ERR")
        self.refused("FEED CREATE g ON 0 PREFIX a", "ERR PREFIX goes with one table")
        self.refused("FEED CREATE a:b ON 1 web", "ERR")
        self.refused("CONFIG SET appendonly no", "ERR")
        self.read("FEED LIST", ["f"])
        self.write("XREVRANGE f + - COUNT 0", resp.NULL_ARRAY, 2)


class WhoMayRead(FeedTest):
    def setUp(self):
        super().setUp()
        self.do("TABLE CREATE t FAMILY open FAMILY secret")
        self.do("FEED CREATE all ON 1 t")
        self.do("FEED CREATE part ON 1 t:open")
        self.do("FEED CREATE every ON 0")
        self.do("CMUTATE t r PUT open:x 1 PUT secret:y 2")

    def user(self, *rules):
        self.redis.execute_command("ACL", "SETUSER", "u", "reset", "on", ">p", *rules)
        self.addCleanup(self.redis.execute_command, "ACL", "DELUSER", "u")
        client = self.server.client(username="u", password="p")
        self.addCleanup(client.close)
        return client

    def test_all_families_must_be_readable(self):
        user = self.user("+@all", "%R~t:open")
        self.assertEqual(user.execute_command("FEED LIST"), [b"part"])
        self.assertEqual(user.execute_command("KEYS", "*"), [b"part", b"t"])
        self.assertEqual(len(user.execute_command("XRANGE", "part", "-", "+")), 2)
        for feed in ("all", "every"):
            for command in ("XLEN", "FEED INFO", "XINFO STREAM"):
                with self.assertRaisesRegex(redis.ResponseError, "no permissions|NOPERM"):
                    user.execute_command(command, feed)
            with self.assertRaises(redis.exceptions.NoPermissionError):
                user.execute_command("XREAD", "STREAMS", feed, "0")
            with self.assertRaises(redis.exceptions.NoPermissionError):
                user.execute_command("XRANGE", feed, "-", "+")
        for words in (["FEED DROP", "part"], ["FEED CREATE", "n", "ON", 1, "t"], ["FEED CREATE", "n", "ON", 0]):
            with self.assertRaises(redis.exceptions.NoPermissionError):
                user.execute_command(*words)

    def test_the_category(self):
        user = self.user("+@all", "-@stream", "~*")
        with self.assertRaises(redis.exceptions.NoPermissionError):
            user.execute_command("XLEN", "all")
        user = self.user("-@all", "+@stream", "%R~t:*")
        self.assertEqual(user.execute_command("XLEN", "all"), 3)

    def test_rights_that_go_end_the_wait(self):
        user = self.user("+@all", "%R~t:*")
        got = []

        def wait():
            try:
                got.append(user.execute_command("XREAD", "BLOCK", 20000, "STREAMS", "all", "$"))
            except redis.RedisError as error:
                got.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(lambda: self.redis.info("clients")["blocked_clients"] == 1)
        self.do("ACL SETUSER u resetkeys %R~t:open")
        thread.join()
        self.assertIsInstance(got[0], redis.exceptions.NoPermissionError)


class WhatIsDropped(FeedTest):
    # Commit times never go back: each test begins with a store of its own.
    def setUp(self):
        server = CellarServer(options=self.OPTIONS)
        self.addCleanup(server.close)
        self.server = server.start()
        super().setUp()

    def now(self, micros):
        self.redis.execute_command("DEBUG", "SET-TIME", micros)

    def test_keep_drops_exactly(self):
        base = int(time.time() * 1e6) + 10_000_000
        self.now(base)
        self.do("TABLE CREATE t FAMILY f")
        self.do("FEED CREATE f ON 1 t KEEP 10s")
        self.do("FEED CREATE quiet ON 1 t:f PREFIX none KEEP 10s")
        ids = []
        for i in range(5):
            self.now(base + (i + 1) * 1_000_000)
            self.do(f"CPUT t r{i} f:q {i}")
            ids.append(self.told("f")[-1]["id"])
        self.now(base + 12_000_000)  # what was committed 2 seconds behind the base is 10 seconds old
        self.assertEqual([e.get("row") for e in self.told("f")], ["r2", "r3", "r4"])
        self.refused("XREAD STREAMS f 1-1", f"TRIMMED feed 'f' has dropped entries up to {ids[1]}")
        self.refused(f"XREAD STREAMS f {ids[0]}", "TRIMMED")
        self.assertEqual(len(self.told("f", ids[1])), 3)
        self.refused(f"XRANGE f {ids[1]} +", "TRIMMED")
        self.assertEqual(len(self.do(f"XRANGE f ({ids[1]} +")), 3)
        self.assertEqual(len(self.do("XRANGE f - +")), 3)
        self.assertEqual(len(self.do("XREVRANGE f + 0")), 3)
        self.assertEqual(self.do("XLEN f"), 3)
        # For good, whatever the clock and the server do.
        for _ in range(2):
            self.now(base + 5_000_000)
            self.refused(f"XREAD STREAMS f {ids[0]}", "TRIMMED")
            self.now(base + 12_000_000)
            self.do("CPUT t later f:q v")
            self.server.crash()
            self.redis = self.server.client()
            self.now(base + 5_000_000)
        self.assertEqual(self.do("XLEN quiet"), 0)

    def test_a_quiet_feed_does_not_alarm(self):
        base = int(time.time() * 1e6) + 100_000_000
        self.now(base)
        self.do("TABLE CREATE t FAMILY f")
        self.do("FEED CREATE f ON 1 t PREFIX quiet KEEP 10s")
        self.do("CPUT t quiet f:q 1")
        id = self.told("f")[-1]["id"]
        for i in range(1, 60):
            self.now(base + i * 1_000_000)
            self.do(f"CPUT t other{i} f:q v")
        self.assertEqual(self.told("f", id), [])
        self.assertEqual(self.do("XLEN f"), 0)
        self.refused("XREAD STREAMS f 1-1", "TRIMMED feed 'f' has dropped entries up to " + id)


class LogIsKept(unittest.TestCase):
    """Segments stay for readers although a snapshot covers them, and go when nobody wants them."""

    def segments(self, server):
        return sorted(name for name in os.listdir(server.directory) if name.endswith(".log"))

    def test_snapshots_and_restarts_keep_what_feeds_tell(self):
        with CellarServer(appendfsync="always", save="") as server:
            client = server.client()
            run = client.execute_command
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("FEED CREATE", "f", "ON", 1, "t")
            for i in range(200):
                run("CPUT", "t", f"r{i}", "f:q", "v" * 100)
                if i % 50 == 49:
                    run("SAVE")
                    if i % 100 == 99:
                        server.crash()
            self.assertGreater(len(self.segments(server)), 3)
            entries = read_all(client, "f")
            self.assertEqual(len(entries), 201)
            self.assertEqual(len({id for id, _ in entries}), 201)
            run("FEED DROP", "f")
            run("SAVE")
            wait_until(lambda: len(self.segments(server)) <= 1)

    def test_log_keep_bytes(self):
        with CellarServer(appendfsync="no", save="", log_keep_bytes="1mb") as server:
            client = server.client()
            run = client.execute_command
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("FEED CREATE", "f", "ON", 1, "t")
            for part in range(6):
                with client.pipeline(transaction=False) as pipe:
                    for i in range(40):
                        pipe.execute_command("CPUT", "t", f"r{part}-{i}", "f:q", "v" * 10_000)
                    pipe.execute()
                run("SAVE")
            first = None

            def trimmed():
                nonlocal first
                info = run("FEED INFO", "f")
                first = dict(zip(info[::2], info[1::2]))
                return first[b"dropped"] != b"0-0" and len(self.segments(server)) <= 5

            wait_until(trimmed)
            with self.assertRaisesRegex(redis.ResponseError, "TRIMMED"):
                run("XREAD", "STREAMS", "f", "1-1")
            entries = read_to_end(client, "f")
            self.assertEqual(entries[0][0], first[b"first"])
            dropped = first[b"dropped"]
            server.crash()
            info = run("FEED INFO", "f")
            self.assertGreaterEqual(key_of(dict(zip(info[::2], info[1::2]))[b"dropped"]), key_of(dropped))


    def test_what_is_dropped_stays_dropped(self):
        """Whatever log-keep-bytes and the clock say behind a restart."""
        with CellarServer(appendfsync="always", save="", log_keep_bytes="100kb", enable_debug_command="local") as server:
            run = server.client().execute_command
            start = 1_796_000_000_000_000
            run("DEBUG", "SET-TIME", start)
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("FEED CREATE", "long", "ON", 1, "t")
            run("FEED CREATE", "brief", "ON", 1, "t", "KEEP", "10s")
            for i in range(30):
                run("CPUT", "t", f"r{i}", "f:q", "v" * 10_000)
            first = run("XRANGE", "long", "-", "+", "COUNT", 1)[0][0]
            run("DEBUG", "SET-TIME", start + 20_000_000)
            run("SAVE")

            def dropped():
                return [dict(zip(info[::2], info[1::2]))[b"dropped"] for info in (run("FEED INFO", f) for f in ("long", "brief"))]

            wait_until(lambda: b"0-0" not in dropped() and run("XLEN", "long") == run("XLEN", "brief") == 0)
            before = dropped()
            for _ in range(25):  # it is logged within a second, of those in which the process has its turns
                run("PING")
                time.sleep(0.1)
            for options in ({}, {"log_keep_bytes": "8gb"}):
                server.kill()
                server.options.update({name.replace("_", "-"): value for name, value in options.items()})
                server.start()
                run = server.client().execute_command
                run("DEBUG", "SET-TIME", start + 5_000_000)
                self.assertEqual(before, dropped())
                self.assertEqual([0, 0], [run("XLEN", "long"), run("XLEN", "brief")])
                for feed in ("long", "brief"):
                    with self.assertRaisesRegex(redis.ResponseError, "TRIMMED"):
                        run("XREAD", "STREAMS", feed, first)

    def test_a_full_disk_takes_the_oldest_entries_and_no_writes(self):
        mount = tempfile.mkdtemp(prefix="cellar-disk-")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", mount], capture_output=True, check=False)
        if mounted.returncode != 0:
            os.rmdir(mount)
            self.skipTest("mounting a tmpfs is not allowed here")
        self.addCleanup(os.rmdir, mount)
        self.addCleanup(subprocess.run, ["umount", mount], check=True)
        directory = os.path.join(mount, "db")
        os.mkdir(directory)
        with CellarServer(directory=directory, save="", appendfsync="everysec") as server:
            run = server.client().execute_command
            run("TABLE CREATE", "t", "FAMILY", "f", "VERSIONS", 1)
            run("FEED CREATE", "f", "ON", 1, "t", "KEEP", "1d")
            first, refused, i = None, 0, 0
            while i < 10_000:  # 200 MB
                try:
                    run("CPUT", "t", f"r{i % 10}", "f:q", str(i) + "v" * 20_000)
                    i += 1
                except redis.ResponseError as error:
                    self.assertIn("MISCONF", str(error))
                    refused += 1
                    self.assertLess(refused, 6000, run("INFO", "persistence"))
                    time.sleep(0.1)
                    continue
                if i % 100 == 0:
                    try:
                        run("BGSAVE")
                    except redis.ResponseError as error:
                        self.assertIn("already in progress", str(error))
                if first is None:
                    wait_until(lambda: run("XLEN", "f") > 0)
                    first = run("XRANGE", "f", "-", "+", "COUNT", 1)[0][0]
            print("refused for a moment:", refused)
            with self.assertRaisesRegex(redis.ResponseError, "TRIMMED"):
                run("XREAD", "STREAMS", "f", first)
            wait_until(lambda: run("XREVRANGE", "f", "+", "-", "COUNT", 1)[0][1][b"value"].startswith(b"9999v"))
            server.crash()
            run = server.client().execute_command
            with self.assertRaisesRegex(redis.ResponseError, "TRIMMED"):
                run("XREAD", "STREAMS", "f", first)
            self.assertEqual([10], [run("CCOUNT", "t")])


class Writer(threading.Thread):
    """Random changes until it is told to end or the server is gone."""

    def __init__(self, server, seed):
        super().__init__()
        self.client = server.client(single_connection_client=True)
        self.random = random.Random(seed)
        self.ended = False

    def run(self):
        try:
            while not self.ended:
                with self.client.pipeline(transaction=self.random.random() < 0.3) as pipe:
                    for _ in range(self.random.randint(1, 12)):
                        pipe.execute_command(*self.change())
                    pipe.execute(raise_on_error=False)
        except (redis.RedisError, OSError):
            pass

    def change(self):
        pick = self.random
        table, row = f"t{pick.randint(0, 1)}", f"r{pick.randint(0, 30)}"
        column = f"{pick.choice('ab')}:{pick.randint(0, 4)}"
        dice = pick.random()
        if dice < 0.6:
            words = ["CPUT", table, row, column, str(pick.randint(0, 99))]
            return words + (["TS", pick.randint(1, 9)] if pick.random() < 0.3 else [])
        if dice < 0.7:
            return ["CMUTATE", table, row, "PUT", column, "1", "DEL", "a:1", "PUT", "a:2", "x"]
        if dice < 0.75:
            return ["CINCRBY", table, row, "b:n", "1"]
        if dice < 0.82:
            return ["CDEL", table, row, column]
        if dice < 0.88:
            return ["CDEL", table, row, column, "TIME", "1", str(pick.randint(1, 9))]
        if dice < 0.93:
            return ["CDEL", table, row, "COLRANGE", "a", f"[{pick.randint(0, 2)}", "+"]
        if dice < 0.96:
            return ["CDELRANGE", table, "RANGE", f"[r{pick.randint(0, 30)}", "[r3"]
        if dice < 0.98:
            return ["CDEL", table, row]
        return pick.choice([["TABLE TRUNCATE", table], ["FAMILY ALTER", table, "a", "VERSIONS", pick.randint(1, 4)],
                            ["SAVE"], ["TABLE RENAME", "t0", "t2"], ["TABLE RENAME", "t2", "t0"],
                            ["TABLE CREATE", table, "FAMILY", "a", "VERSIONS", "2", "FAMILY", "b"]])


class AfterCrashes(unittest.TestCase):
    """Entries from 0 applied to an empty model equal the tables after each kill -9, under all policies."""

    def follow(self, policy, seed):
        """A store sees 20 crashes at most, since all its entries are read after each."""
        print(f"{policy}: seed {seed}", flush=True)
        told = sum(self.follow_one(policy, seed + begin, min(20, CRASHES - begin)) for begin in range(0, CRASHES, 20))
        self.assertGreater(told, 50)

    def follow_one(self, policy, seed, crashes):
        """How many entries there were in the end."""
        random.seed(seed)
        with CellarServer(appendfsync=policy, save="") as server:
            client = as_sent(server.client())
            # Before there are tables: so the entries from 0 tell everything.
            client.execute_command("FEED CREATE", "f", "ON", 0)
            client.execute_command("FEED CREATE", "past", "ON", 0, "OLD", "EXPIRED")
            # The writers make and drop tables too, but some may not live long enough to draw it.
            for table in ("t0", "t1"):
                client.execute_command("TABLE CREATE", table, "FAMILY", "a", "VERSIONS", "2", "FAMILY", "b")
            model, seen = FeedModel(), {}
            for round in range(crashes):
                writers = [Writer(server, (seed, round, i).__hash__()) for i in range(2)]
                for writer in writers:
                    writer.start()
                # A reader meanwhile: what it is shown must be there ever after.
                until = time.monotonic() + random.uniform(0.05, 0.4)
                after = max(seen, key=key_of) if seen else b"0"
                try:
                    while time.monotonic() < until:
                        for _, entries in client.execute_command("XREAD", "BLOCK", 20, "COUNT", 500, "STREAMS",
                                                                 "f", after) or []:
                            for id, fields in entries:
                                self.assertNotIn(id, seen)
                                seen[id] = fields
                                after = id
                except redis.RedisError:
                    pass
                server.kill()
                for writer in writers:
                    writer.ended = True
                    writer.join()
                server.start()
                entries = read_to_end(client, "f")
                there = dict(entries)
                self.assertEqual(len(there), len(entries), "an id comes twice")
                for id, fields in seen.items():
                    self.assertEqual(there.get(id), fields, f"{id} was shown and is gone or another")
                seen = there
                model = FeedModel()
                for id, fields in entries:
                    model.apply(id, fields)
                for table in [name.decode() for name in client.execute_command("TABLE LIST")]:
                    self.assertEqual(model.cells(table), table_cells(client, table), (policy, seed, round))
                self.assertEqual(client.execute_command("XLEN", "f"), len(entries))
                past = FeedModel()
                for id, fields in read_to_end(client, "past"):
                    past.apply(id, fields)
                for table in [name.decode() for name in client.execute_command("TABLE LIST")]:
                    self.assertEqual(past.cells(table), table_cells(client, table), (policy, seed, round))
            return len(seen)

    def test_always(self):
        self.follow("always", int(os.environ.get("CELLAR_SEED", time.time_ns() % 10**9)))

    def test_everysec(self):
        self.follow("everysec", int(os.environ.get("CELLAR_SEED", time.time_ns() % 10**9)))

    def test_no(self):
        self.follow("no", int(os.environ.get("CELLAR_SEED", time.time_ns() % 10**9)))


if __name__ == "__main__":
    unittest.main()
