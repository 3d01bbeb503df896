"""Feeds of a cluster of several sets: each set tells of its own rows, and any node is asked for what any set tells."""

import os
import random
import re
import signal
import socket
import threading
import time
import unittest

import redis

import cellar_server
from cluster_sets import pairs
from move_load import LoadCase

CHANGES = int(os.environ.get("CELLAR_FEED_CHANGES", "30000"))
ROWS = [f"{letter}{number}" for letter in "aejnrvz" for number in range(3)]


def fields(entry):
    return entry[1]


class FeedsCase(LoadCase):
    def told(self, feed, member=None, after="-"):
        """What a set tells, oldest first: id and a map."""
        entries = (member or self.any()).run("XRANGE", feed, after, "+")
        return [(entry[0], fields(entry)) for entry in entries]

    def rows_told(self, feed, member=None):
        return [(entry["row"], entry.get("value")) for _, entry in self.told(feed, member) if "row" in entry]

    def start(self, sets=3, voters=1):
        self.cluster(sets, voters)
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f", "VERSIONS", 2)
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")

    def owner(self, row):
        return int(pairs(self.any().run("TABLET", "ROUTE", "t", row, "SURE"))["set"])

    def wait_shown(self, count, feeds):
        """What is told is on disk."""
        self.wait_until(lambda: sum(len(self.rows_told(feed)) for feed in feeds) >= count,
                        lambda: str([self.rows_told(feed) for feed in feeds]))

    def reader(self, member, got, *words):
        """Reads in a thread of its own: the entries, or the error."""
        client = redis.Redis(port=member.port, decode_responses=True, socket_timeout=60)

        def read():
            try:
                found = client.execute_command(*words)
                got.append([(entry[1].get("row"), entry[1].get("value")) for entry in found[0][1]] if found else None)
            except redis.RedisError as error:
                got.append(str(error))
        return self.beside(read)

    @staticmethod
    def waiting(node, command):
        """How many of its clients wait with that, channels of other nodes among them."""
        return sum("b" in each["flags"] and each["cmd"].startswith(command) for each in node.redis.client_list())

    def wait_readers(self, node, count=1):
        """So many read the whole feed there, have come to its end, and wait for what any set tells next."""
        self.wait_until(lambda: self.waiting(node, "xread") >= count and
                        all(self.waiting(each[0], "feed|resolved") for each in self.sets), node.redis.client_list)


class Feeds(FeedsCase):
    def test_each_set_tells_of_its_rows(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        feeds = [f"f@{number}" for number in range(3)]
        for member in self.everyone:
            self.wait_until(lambda member=member: member.run("FEED LIST") == ["f"], lambda member=member: member.server.log()[-500:])
        for value in ("1", "2"):
            for row in ROWS:
                self.any().run("CPUT", "t", row, "f:x", value)
        self.wait_shown(2 * len(ROWS), feeds)
        told = {feed: self.rows_told(feed) for feed in feeds}
        for number, feed in enumerate(feeds):
            mine = [row for row in ROWS if self.owner(row) == number]
            self.assertEqual([(row, value) for value in ("1", "2") for row in mine], told[feed])
            self.assertTrue(mine)
            for member in self.everyone:
                self.assertEqual(told[feed], self.rows_told(feed, member))
                self.assertEqual(len(self.told(feed)), member.run("XLEN", feed))
                self.assertEqual(self.told(feed)[-1][0], member.run("XREVRANGE", feed, "+", "-", "COUNT", 1)[0][0])
                self.assertEqual(len(self.told(feed)), pairs(member.run("XINFO", "STREAM", feed))["length"])
                self.assertIn("keep", str(member.run("FEED", "INFO", feed)))
                self.assertEqual([], member.run("XINFO", "GROUPS", feed))
                found = member.run("XREAD", "COUNT", 100, "STREAMS", feed, "0")
                self.assertEqual(feed, found[0][0])
                self.assertEqual(len(self.told(feed)), len(found[0][1]))
        # What becomes of tables set 0 tells.
        self.assertEqual("schema", self.told("f@0")[0][1]["op"])
        for feed in feeds[1:]:
            self.assertEqual({"put"}, {entry["op"] for _, entry in self.told(feed)})

    def test_what_is_refused(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.any().run("FEED CREATE g ON 1 t")
        for member in self.everyone:
            self.assertIn("NOFEED", member.refusal("FEED", "INFO", "h"))
            for words in (["FEED", "RESOLVED", "f"], ["FEED", "ENTRIES", "f", "1-1"], ["FEED", "BEHIND", "f", "1-1"]):
                self.assertIn("CROSSSET feed 'f' lies on several sets: read f@0, f@1, f@2", member.refusal(*words))
            for words in (["XREAD", "STREAMS", "f", "x"], ["XREAD", "STREAMS", "f"], ["XREAD", "BLOCK", "-1", "STREAMS", "f", "0"],
                          ["XRANGE", "f", "-"], ["XRANGE", "f", "-", "+", "COUNT"], ["XRANGE", "f", "a", "+"], ["XLEN", "f", "g"]):
                self.assertIn("Error", member.refusal(*words))
            self.assertIn("NOFEED", member.refusal("XREAD", "STREAMS", "f", "h", "0", "0"))
            pipe = member.redis.pipeline(transaction=True)
            pipe.execute_command("XREAD", "STREAMS", "f", "0")
            with self.assertRaisesRegex(redis.ResponseError, "CROSSSET feed 'f' lies on several sets"):
                pipe.execute()
            for word in ("f@3", "f@18446744073709551615", "f@", "f@01", "f@x", "f@-1", "f@1@2", "h@1", "@1"):
                self.assertIn("NOFEED", member.refusal("XREAD", "STREAMS", word, "0"), word)
            self.assertIn("FEED DROP without '@'", member.refusal("FEED", "DROP", "f@0"))
            self.assertIn("'f@1' is invalid", member.refusal("FEED", "CREATE", "f@1", "ON", 1, "t"))
        # Of one set several feeds at once.
        self.assertEqual(2, len(self.any().run("XREAD", "STREAMS", "f@0", "g@0", "0", "0")))
        told = [self.everyone[0].redis.pipeline(transaction=True)]
        told[0].execute_command("XLEN", "f@1")
        told[0].execute_command("XLEN", "g@1")
        self.assertEqual([0, 0], told[0].execute())

    def test_who_waits_hears_of_it(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        for number in range(3):
            row = next(row for row in ROWS if self.owner(row) == number)
            for member in self.everyone:
                got = []
                waiter = self.reader(member, got, "XREAD", "BLOCK", 0, "STREAMS", f"f@{number}", "$")
                time.sleep(0.1)  # it may wait by then
                while waiter.is_alive():  # `$` is when it has come there
                    self.any().run("CPUT", "t", row, "f:x", "v")
                    waiter.join(0.05)
                self.assertEqual((row, "v"), got[0][0])

    def test_groups_of_each_set(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        for number in range(3):
            self.assertEqual("OK", self.any().run("XGROUP", "CREATE", f"f@{number}", "g", "$"))
        for row in ROWS:
            self.any().run("CPUT", "t", row, "f:x", "1")
        seen = []
        for number in range(3):
            feed = f"f@{number}"
            mine = {row for row in ROWS if self.owner(row) == number}
            got = []

            def read(feed=feed, got=got):
                found = self.any().run("XREADGROUP", "GROUP", "g", self.rng.choice("ab"), "COUNT", 2, "STREAMS", feed, ">")
                got.extend(found[0][1] if found else [])
                return len(got)
            self.rng = random.Random(self.seed)
            self.wait_until(lambda read=read, mine=mine: read() == len(mine), lambda got=got: str(got))
            self.assertEqual(mine, {fields(entry)["row"] for entry in got})
            self.assertEqual(len(mine), self.any().run("XPENDING", feed, "g")["pending"])
            self.assertEqual(len(got) - 1, self.any().run("XACK", feed, "g", *[entry[0] for entry in got[1:]]))
            self.assertEqual(1, pairs(self.any().run("XINFO", "GROUPS", feed)[0])["pending"])
            claimed = self.any().run("XAUTOCLAIM", feed, "g", "c", 0, "0")
            self.assertEqual([got[0][0]], [entry[0] for entry in claimed[1]])
            seen += mine
        self.assertEqual(sorted(ROWS), sorted(seen))

    def test_tables_are_told_of_by_set_0(self):
        self.start()
        self.any().run("FEED CREATE f ON 0")
        self.any().run("FAMILY ADD t g")
        self.any().run("TABLE CREATE u SPLIT AT 2 h p FAMILY f")
        self.any().run("CPUT", "u", "z", "f:x", "1")
        self.any().run("COPY u w")
        self.any().run("RENAME u v")
        self.any().run("DEL v")
        ops = ["schema", "schema", "schema", "copy", "rename", "drop"]
        self.wait_until(lambda: len([entry for _, entry in self.told("f@0") if entry["op"] != "put"]) >= len(ops), lambda: str(self.told("f@0")))
        self.assertEqual(ops, [entry["op"] for _, entry in self.told("f@0") if entry["op"] != "put"])
        for feed in ("f@1", "f@2"):
            self.assertEqual(set(), {entry["op"] for _, entry in self.told(feed)} - {"put"})
        self.any().run("FEED DROP f")
        for member in self.everyone:
            self.assertIn("NOFEED", member.refusal("XLEN", "f@1"))
            self.assertEqual([], member.run("FEED LIST"))

    def test_a_set_that_joins_has_what_there_is(self):
        """Numbers of feeds and tables alternate, and each tells from when it was there."""
        first = self.new_set()
        self.sets = [first]
        director = first[0]
        director.run("TABLE CREATE early FAMILY f")
        director.run("FEED CREATE all ON 0")
        director.run("CLUSTER INIT")
        director.run("TABLE CREATE t SPLIT AT 2 h p FAMILY f VERSIONS 1")
        director.run("FEED CREATE f ON 1 t OLD EXPIRED KEEP 2h")
        director.run("TABLE CREATE late FAMILY f")
        director.run("CPUT t c f:x 0 f:y 0")
        director.run("KEYSPACE CREATE other")
        director.run("FEED CREATE other/g ON 0 ENTRIES ROW")
        self.assertEqual(1, len(director.run("XREAD", "COUNT", 1, "STREAMS", "f", "0")[0][1]))
        for _ in range(2):
            self.sets.append(self.new_set(join=first))
            self.admit(len(self.sets) - 1)
        self.everyone = sum(self.sets, [])
        director.run("CLUSTER CONFIG SET tablet-balance no")
        for member in self.everyone:
            self.assertEqual(["all", "f"], member.run("FEED LIST"))
            self.assertIn("CROSSSET", member.refusal("FEED", "RESOLVED", "f"))
            self.assertEqual(0, member.run("XLEN", "other/g@1"))
        for row, to in (("c", 1), ("t", 2)):
            self.assertEqual("OK", self.move(row, to, member=director))
        self.any().run("CPUT t c f:x 1")
        self.any().run("CPUT t t f:x 1")
        self.any().run("CDEL t c f:y")
        self.wait_until(lambda: len(self.told("f@1")) == 3 and len(self.told("f@2")) == 1, lambda: str([self.told("f@1"), self.told("f@2")]))
        put, expired, gone = [entry for _, entry in self.told("f@1")]
        self.assertEqual(("put", "c", "1", "0"), (put["op"], put["row"], put["value"], put["old"]))
        self.assertEqual(("c", "expired"), (expired["row"], expired["by"]))
        self.assertEqual(("del", "c", "f:y"), (gone["op"], gone["row"], gone["column"]))
        # What has moved is told where it was written, and not again, nor as gone where it was.
        self.assertEqual(["0", "0"], [entry["value"] for _, entry in self.told("f@0") if entry["op"] == "put"])
        self.wait_purged()
        self.assertEqual({"put", "schema"}, {entry["op"] for _, entry in self.told("f@0")})
        for member in (self.sets[1][0], self.sets[2][0]):
            before = [self.told(feed, member) for feed in ("f@0", "f@1", "f@2", "all@1", "all@2", "other/g@2")]
            member.run("BGREWRITEAOF")
            self.restart(member)
            self.wait_leader([member])
            self.wait_until(lambda member=member: member.refusal("XLEN", "f@0").startswith("no error"), lambda member=member: member.refusal("XLEN", "f@0"))
            self.assertEqual(before, [self.told(feed, member) for feed in ("f@0", "f@1", "f@2", "all@1", "all@2", "other/g@2")])

    def test_a_set_whose_entries_nobody_may_have_read_stays(self):
        self.start(2)
        self.any().run("FEED CREATE f ON 1 t")
        director = self.sets[0][0]
        director.run("CLUSTER DRAIN 1")
        for row in ("a", "h", "n", "t"):
            if self.owner(row) == 1:
                self.assertEqual("OK", self.move(row, 0, member=director))
        self.wait_until(lambda: "owns" not in director.refusal("CLUSTER", "REMOVE", "1", "NOW"), lambda: director.refusal("CLUSTER", "REMOVE", "1"))
        self.assertIn("NOW", director.refusal("CLUSTER", "REMOVE", "1", "NOW"))
        self.assertIn("syntax error", director.refusal("CLUSTER", "REMOVE", "1", "FORCE", "FORCE"))
        self.wait_until(lambda: "set 1 may hold entries of feed 'f': read f@1 to its end, then CLUSTER REMOVE 1 FORCE" in
                        director.refusal("CLUSTER", "REMOVE", "1"), lambda: director.refusal("CLUSTER", "REMOVE", "1"))
        self.assertEqual("OK", director.run("CLUSTER", "REMOVE", "1", "FORCE"))
        self.wait_until(lambda: director.refusal("XLEN", "f").startswith("no error"), lambda: director.refusal("XLEN", "f"))


class Many:
    """A connection to one node after another, and what a reply is by its bytes: clients in Python are too slow for millions."""

    def __init__(self, case, name):
        self.case, self.rng, self.link, self.bytes = case, random.Random(f"{case.seed}/{name}"), None, b""

    def close(self):
        if self.link is not None:
            self.link.close()
        self.link, self.bytes = None, b""

    def connect(self):
        self.close()
        self.link = socket.create_connection(("127.0.0.1", self.case.any(self.rng).port), timeout=60)

    def until(self, end):
        """What has come up to there."""
        while (at := self.bytes.find(end)) < 0:
            some = self.link.recv(1 << 20)
            if not some:
                raise ConnectionError
            self.bytes += some
        found, self.bytes = self.bytes[:at], self.bytes[at + len(end):]
        return found


class ManyWrites(Many):
    """Each row's values are 1, 2, 3 ...; what is not acknowledged is sent again, and what is refused is noted: others behind it in the
    pipeline may be done."""

    def __init__(self, case, number, count):
        super().__init__(case, f"w{number}")
        self.rows = [f"{letter}{number}" for letter in "acfgilnpsz"]
        self.wrote = dict.fromkeys(self.rows, 0)
        self.left, self.again, self.refused = count, 0, set()

    def run(self):
        while self.left > 0:
            sent = []
            try:
                if self.link is None or self.rng.random() < 0.01:
                    self.connect()
                sent = [self.rng.choice(self.rows) for _ in range(min(300, self.left))]
                counts = dict(self.wrote)
                for at, row in enumerate(sent):
                    counts[row] += 1
                    sent[at] = row, counts[row]
                self.link.sendall("".join(f"CPUT t {row} f:x {value}\r\n" for row, value in sent).encode())
                while sent:
                    line = self.until(b"\r\n")
                    row, value = sent.pop(0)
                    if line == b"+OK":
                        self.wrote[row] = value
                        self.left -= 1
                    else:
                        self.refused.add((row, value))
            except OSError:
                self.again += len(sent)
                self.close()
                time.sleep(0.05)
        self.close()


class ManyReads(Many):
    ENTRY = re.compile(rb"\r\n(\d+-\d+)\r\n\*\d+\r\n\$2\r\nop\r\n\$3\r\nput\r\n.*?\$3\r\nrow\r\n\$\d+\r\n(\w+)\r\n.*?\$5\r\nvalue\r\n\$\d+\r\n(\d+)\r\n", re.S)

    def __init__(self, case, number):
        super().__init__(case, f"r{number}")
        self.newest, self.told, self.wrong, self.last, self.lacks = {}, 0, [], (0, 0), set()

    def take(self, reply):
        for text, row, value in self.ENTRY.findall(reply):
            told = tuple(map(int, text.split(b"-")))
            newest = self.newest.get(row.decode(), 0)
            if told <= self.last:
                self.wrong.append(f"{told} behind {self.last}")
            self.lacks.update((row.decode(), each) for each in range(newest + 1, int(value)))
            self.newest[row.decode()] = max(newest, int(value))
            self.last = told
            self.told += 1

    def run(self, stop):
        while not stop.is_set() and not self.wrong:
            try:
                if self.link is None or self.rng.random() < 0.05:
                    self.connect()
                self.link.sendall(f"XREAD COUNT {self.rng.choice((10, 1000, 5000))} BLOCK 300 STREAMS f {self.last[0]}-{self.last[1]}\r\nECHO end-of-it\r\n".encode())
                reply = self.until(b"$9\r\nend-of-it\r\n")
                if reply.startswith(b"-"):
                    if not reply.startswith((b"-CLUSTERDOWN", b"-TRYAGAIN", b"-LOADING")):
                        self.wrong.append(reply)
                    time.sleep(0.05)
                self.take(reply)
            except OSError:
                self.close()
                time.sleep(0.05)
        self.close()


def reader_failed(readers):
    return any(reader.wrong for reader in readers)


class Merged(FeedsCase):
    def expected(self, sets=3, feed="f"):
        """All that the sets tell, in the order in which it is to be merged: id, which row, what."""
        entries = []
        for number in range(sets):
            for own, entry in self.told(f"{feed}@{number}"):
                ms, n = map(int, own.split("-"))
                merged = f"{ms}-{(n // 10**6 + 1) * 10**12 + number * 10**6 + n % 10**6}"
                entries.append(((ms, n // 10**6, number, n % 10**6), merged, entry))
        return [(merged, entry) for _, merged, entry in sorted(entries, key=lambda each: each[0])]

    def write(self, count, seed=""):
        rng = random.Random(f"{self.seed}{seed}")
        for number in range(count):
            self.any(rng).run("CPUT", "t", rng.choice(ROWS), "f:x", str(number))
        return count

    def merged(self, *words):
        return [tuple(entry) for entry in self.any().run(*words)]

    def test_it_is_one_feed(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.write(300)
        # What was acknowledged is told at once, by any node.
        for member in self.everyone:
            self.assertEqual(300, len([entry for entry in member.run("XRANGE", "f", "-", "+") if entry[1]["op"] == "put"]))
        expected = self.expected()
        self.assertEqual(301, len(expected))
        self.assertEqual(expected, self.merged("XRANGE", "f", "-", "+"))
        self.assertEqual(expected[::-1], self.merged("XREVRANGE", "f", "+", "-"))
        self.assertEqual(301, self.any().run("XLEN", "f"))
        ids = [merged for merged, _ in expected]
        rng = random.Random(self.seed)
        for _ in range(60):
            begin, end = sorted(rng.sample(range(len(ids)), 2))
            count = rng.choice((1, 2, 7, 1000))
            for open_begin in (0, 1):
                for open_end in (0, 1):
                    part = expected[begin + open_begin:end + 1 - open_end]
                    bounds = "(" * open_begin + ids[begin], "(" * open_end + ids[end]
                    note = f"seed {self.seed}: {bounds}, {count}"
                    self.assertEqual(part[:count], self.merged("XRANGE", "f", *bounds, "COUNT", count), note)
                    self.assertEqual(part[::-1][:count], self.merged("XREVRANGE", "f", bounds[1], bounds[0], "COUNT", count), note)
            found = self.any().run("XREAD", "COUNT", count, "STREAMS", "f", ids[begin])
            self.assertEqual(expected[begin + 1:begin + 1 + count], [tuple(entry) for entry in found[0][1]])
            # Each set's part is read on from there.
            number = rng.randrange(3)
            own = [entry for merged, entry in expected[begin + 1:] if int(merged.split("-")[1]) // 10**6 % 10**6 == number]
            found = self.any().run("XRANGE", f"f@{number}", "(" + ids[begin], "+")
            self.assertEqual(own, [entry[1] for entry in found], f"seed {self.seed}: {ids[begin]}, {number}")
        # As a snapshot's id, and the milliseconds alone.
        ms = ids[len(ids) // 2].split("-")[0]
        later = [entry for entry in expected if int(entry[0].split("-")[0]) > int(ms)]
        self.assertEqual(later, self.merged("XRANGE", "f", f"({ms}-999999999", "+"))
        self.assertEqual(later, self.merged("XRANGE", "f", str(int(ms) + 1), "+"))
        self.assertEqual(expected[:len(expected) - len(later)], self.merged("XRANGE", "f", "-", ms))
        self.assertEqual(1, len(self.any().run("XREAD", "STREAMS", "f", "+")[0][1]))
        self.assertEqual(expected[-1], tuple(self.any().run("XREAD", "STREAMS", "f", "+")[0][1][0]))
        self.assertEqual([], self.any().run("XREAD", "STREAMS", "f", ids[-1]) or [])
        self.assertEqual([], self.merged("XRANGE", "f", "+", "-"))
        for member in self.everyone:
            now = time.time() * 1000
            info = pairs(member.run("FEED", "INFO", "f"))
            self.assertEqual((ids[0], ids[-1], "0-0", 0, "1d", -1, -1), tuple(info[name] for name in (
                "first", "last", "dropped", "groups", "keep", "held-back-by", "held-back-s")))
            self.assertLess(abs(info["resolved-ms"] - now), 2000)
            stream = pairs(member.run("XINFO", "STREAM", "f"))
            self.assertEqual((301, 301, ids[0], ids[-1], 0), tuple(stream[name] for name in (
                "length", "entries-added", "recorded-first-entry-id", "last-generated-id", "groups")))
            self.assertEqual([expected[0], expected[-1]], [(stream[name][0], pairs(stream[name][1])) for name in ("first-entry", "last-entry")])
        two = dict(self.any().run("XREAD", "COUNT", 400, "STREAMS", "f", "f@1", "0", "0"))
        self.assertEqual(expected, [tuple(entry) for entry in two["f"]])
        self.assertEqual(self.told("f@1"), [tuple(entry) for entry in two["f@1"]])
        two = dict(self.any().run("XREAD", "STREAMS", "f@2", "f@1", "0", "0"))
        self.assertEqual([self.told("f@1"), self.told("f@2")], [[tuple(entry) for entry in two[name]] for name in ("f@1", "f@2")])

    def test_who_reads_on_misses_nothing(self):
        """Readers at every node, while there are writers, moves and a leader that dies now and then."""
        self.start(3, 3)
        self.any().run("FEED CREATE f ON 1 t")
        stop, stopped, give_up = threading.Event(), threading.Event(), [0.0]
        readers = [[] for _ in range(3)]
        failures = []

        def read(number, got):
            rng = random.Random(f"{self.seed}/r{number}")
            last, quiet = "0", 0
            client = None
            while quiet < 5:
                try:
                    client = client or redis.Redis(port=self.any(rng).port, decode_responses=True, socket_timeout=60)
                    words = ["XREAD", "COUNT", rng.choice((1, 10, 1000)), *(["BLOCK", rng.choice((50, 500))] if rng.random() < 0.8 else []), "STREAMS", "f", last]
                    found = client.execute_command(*words)
                    entries = found[0][1] if found else []
                    for entry in entries:
                        got.append((entry[0], entry[1].get("row"), entry[1].get("value")))
                        last = entry[0]
                    # What is written last may be told late, where a set has just come back.
                    all_told = stopped.is_set() and (set(sure) <= {each[2] for each in got} or time.monotonic() > give_up[0])
                    quiet = quiet + 1 if not entries and all_told else 0
                    if rng.random() < 0.1:
                        client.close()
                        client = None
                except redis.ConnectionError:
                    client = None
                    time.sleep(0.05)
                except redis.ResponseError as error:
                    if not str(error).startswith(("CLUSTERDOWN", "TRYAGAIN", "LOADING")):
                        failures.append(str(error))
                        return
                    time.sleep(0.05)
        threads = [self.beside(lambda number=number: read(number, readers[number])) for number in range(3)]
        rng = random.Random(self.seed)
        sure = []

        def write(number):
            own = random.Random(f"{self.seed}/w{number}")
            client = None
            count = 0
            while not stop.is_set():
                count += 1
                try:
                    client = client or redis.Redis(port=self.any(own).port, decode_responses=True)
                    client.execute_command("CPUT", "t", own.choice(ROWS), "f:x", f"{number}-{count}")
                    sure.append(f"{number}-{count}")
                except redis.RedisError:
                    client = None
                    time.sleep(0.05)
        writers = [self.beside(lambda number=number: write(number)) for number in range(3)]
        for number in range(10):
            self.random_move(rng)
            if number % 4 == 3:
                member = self.wait_leader(rng.choice(self.sets))
                member.server.kill()
                time.sleep(0.3)  # a while without it
                member.server.start()
                member.connect()
        stop.set()
        for thread in writers:
            thread.join()
        give_up[0] = time.monotonic() + cellar_server.AWAIT_SECONDS_MAX / 2
        stopped.set()
        for thread in threads:
            thread.join()
        self.assertEqual([], failures, f"seed {self.seed}")
        for got in readers:
            ids = [tuple(map(int, each[0].split("-"))) for each in got]
            self.assertEqual(sorted(set(ids)), ids, f"seed {self.seed}")
            missing = set(sure) - {value for _, _, value in got}
            self.assertEqual(set(), missing, f"seed {self.seed}")
            self.assertEqual(readers[0], got, f"seed {self.seed}")
        print(f"seed {self.seed}: {len(sure)} writes, {len(readers[0])} told")

    def note_lags(self, lags, writing):
        """How far behind now the feed is told, while writers write and no node was killed just now."""
        while any(thread.is_alive() for thread in writing):
            try:
                client = redis.Redis(port=self.any().port, decode_responses=True, socket_timeout=30)
                resolved = int(pairs(client.execute_command("FEED INFO f"))["resolved-ms"])
                if resolved >= 0 and time.monotonic() > self.healthy_from:
                    lags.append(time.time() * 1000 - resolved)
                client.close()
            except redis.RedisError:
                pass
            time.sleep(0.05)  # between two looks

    def test_many_changes(self):
        """CELLAR_FEED_CHANGES of them in pipelines, beside moves and nodes that are killed, for readers that go from node to node."""
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        writers = [ManyWrites(self, number, CHANGES // 3) for number in range(3)]
        stop = threading.Event()
        readers = [ManyReads(self, number) for number in range(2)]
        writing = [self.beside(writer.run) for writer in writers]
        reading = [self.beside(lambda reader=reader: reader.run(stop)) for reader in readers]
        lags, self.healthy_from = [], 0.0
        looking = self.beside(lambda: self.note_lags(lags, writing))
        rng = random.Random(self.seed)
        rounds = 0
        while any(thread.is_alive() for thread in writing):
            self.random_move(rng)
            rounds += 1
            if rounds % 40 == 1:
                self.healthy_from = time.monotonic() + 3600
                self.restart(rng.choice(self.everyone))
                self.healthy_from = time.monotonic() + 3
        for thread in (*writing, looking):
            thread.join()
        wrote = {row: last for writer in writers for row, last in writer.wrote.items()}
        self.wait_until(lambda: all(reader.newest == wrote for reader in readers) or reader_failed(readers),
                        lambda: f"seed {self.seed}: {[sum(wrote.values()) - sum(reader.newest.values()) for reader in readers]} missing")
        stop.set()
        for thread in reading:
            thread.join()
        again = sum(writer.again for writer in writers)
        refused = set().union(*(writer.refused for writer in writers))
        print(f"seed {self.seed}: {sum(wrote.values())} changes, {again} of them sent again, {rounds} moves, told {[reader.told for reader in readers]}")
        lags.sort()
        if lags:
            print(f"resolved so far behind: p50 {lags[len(lags) // 2]:.0f} ms, p99 {lags[len(lags) * 99 // 100]:.0f} ms, longest {lags[-1]:.0f} ms, {len(lags)} looks")
        for reader in readers:
            self.assertEqual([], reader.wrong[:3], f"seed {self.seed}")
            self.assertLessEqual(reader.lacks, refused, f"seed {self.seed}")
            self.assertLessEqual(reader.told, sum(wrote.values()) + again, f"seed {self.seed}")

    def test_who_waits_hears_soon(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        for number in range(3):
            row = next(row for row in ROWS if self.owner(row) == number)
            for member in self.everyone:
                got = []
                waiter = self.reader(member, got, "XREAD", "BLOCK", 0, "STREAMS", "f", "$")
                self.wait_readers(member)
                while waiter.is_alive():  # sets may still have the reader before in their lists
                    self.any().run("CPUT", "t", row, "f:x", "v")
                    waiter.join(1)
                self.assertEqual((row, "v"), got[0][0])
        self.assertEqual([], self.any().run("XREAD", "BLOCK", 100, "STREAMS", "f", "$") or [])

    def test_a_set_that_is_away_holds_it_back(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.write(30)
        before = self.merged("XRANGE", "f", "-", "+")
        row = next(row for row in ROWS if self.owner(row) == 1)
        gone = self.sets[2][0]
        gone.server.kill()
        for member in (self.sets[0][0], self.sets[1][0]):
            member.run("CONFIG SET cluster-wait 300")
            for words in (["XRANGE", "f", "-", "+"], ["XLEN", "f"], ["XREAD", "STREAMS", "f", "0"]):
                self.assertIn("CLUSTERDOWN", member.refusal(*words))
            self.assertLess(0, member.run("XLEN", "f@1"))
            info = pairs(member.run("FEED", "INFO", "f"))
            self.assertEqual((2, -1, -1), (info["held-back-by"], info["held-back-s"], info["resolved-ms"]))
            self.assertEqual(2, pairs(member.run("XINFO", "STREAM", "f"))["held-back-by"])
        got = []
        waiter = self.reader(self.sets[1][0], got, "XREAD", "BLOCK", 0, "STREAMS", "f", before[-1][0])
        waiter.join(0.5)
        self.sets[0][0].run("CPUT", "t", row, "f:x", "late")
        waiter.join(0.5)
        gone.server.start()
        gone.connect()
        waiter.join(20)
        self.assertEqual([[(row, "late")]], got)

    def test_sets_that_are_away_or_stand_still(self):
        """Whoever waits goes on when they are back, from where it began; it does not wait for longer than it has said."""
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.write(30)
        last = self.merged("XREVRANGE", "f", "+", "-", "COUNT", 1)[0][1]
        reader = self.sets[0][0]
        rows = [next(row for row in ROWS if self.owner(row) == number) for number in range(3)]
        for end, back in ((signal.SIGKILL, None), (signal.SIGSTOP, signal.SIGCONT)):
            for gone in (1, 2):
                member = self.sets[gone][0]
                member.server.process.send_signal(end)
                if back is None:
                    member.server.process.wait()
                newest, coming, short, mixed = [], [], [], []
                readers = [self.reader(reader, newest, "XREAD", "BLOCK", 0, "STREAMS", "f", "+"),
                           self.reader(reader, coming, "XREAD", "BLOCK", 0, "STREAMS", "f", "$"),
                           self.reader(reader, short, "XREAD", "BLOCK", 700, "STREAMS", "f", "$"),
                           self.reader(reader, mixed, "XREAD", "BLOCK", 700, "STREAMS", "f@0", "f@1", "f@2", "$", "$", "$")]
                begin = time.monotonic()
                for one in readers[2:]:
                    one.join(20)
                self.assertEqual(([None], [None]), (short, mixed), (end, gone))
                self.assertLess(time.monotonic() - begin, 10)
                self.assertEqual(([], []), (newest, coming))
                if back is None:
                    member.server.start()
                    member.connect()
                else:
                    member.server.process.send_signal(back)
                readers[0].join(20)
                self.assertEqual([[(last["row"], last["value"])]], newest, (end, gone))
                # The first thing that is written from then on, to whichever set.
                self.wait_until(lambda member=member: member.refusal("CPUT", "t", rows[gone], "f:x", "back").startswith("no error"),
                                lambda member=member: member.refusal("CPUT", "t", rows[gone], "f:x", "back"))
                readers[1].join(20)
                self.assertEqual([(rows[gone], "back")], coming[0][:1], (end, gone))
                last = {"row": rows[gone], "value": "back"}

    def test_other_feeds_and_sets(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        for words in (["XREAD", "BLOCK", 0, "STREAMS", "f", "f@9", "0", "0"], ["XREAD", "STREAMS", "f@1", "f@9", "0", "0"],
                      ["XREAD", "STREAMS", "f@9", "f", "0", "0"], ["XRANGE", "f@9", "-", "+"], ["XLEN", "f@9"], ["FEED", "INFO", "f@9"]):
            for member in self.everyone:
                self.assertIn("NOFEED", member.refusal(*words), words)
        # One that was dropped, and made anew, is another one.
        for again in (False, True):
            got = []
            waits = self.reader(self.sets[1][0], got, "XREAD", "BLOCK", 0, "STREAMS", "f", "$")
            self.wait_readers(self.sets[1][0])
            self.any().run("FEED DROP f")
            if again:
                self.any().run("FEED CREATE f ON 1 t")
                self.write(1)
            waits.join(20)
            self.assertIn("no feed 'f'", got[0])
            if not again:
                self.any().run("FEED CREATE f ON 1 t")

    def test_writes_that_are_paused(self):
        """Nothing is logged for a reader then either: what other sets have is told up to there, and no reader turns round and round."""
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.write(30)
        paused = self.sets[2][0]
        size = lambda: paused.info("persistence")["aof_current_size"]
        self.wait_until(lambda: (size(), time.sleep(0.5))[0] == size(), size)  # it has said all that a new set says
        before = self.merged("XRANGE", "f", "-", "+")
        paused.run("CLIENT", "PAUSE", 100_000, "WRITE")
        time.sleep(0.05)  # what is written from now on is behind all that it has told
        row = next(row for row in ROWS if self.owner(row) == 1)
        self.sets[0][0].run("CPUT", "t", row, "f:x", "late")
        calls = self.sets[2][0].info("commandstats").get("cmdstat_feed|resolved", {"calls": 0})["calls"]
        logged = size()
        for words in (["XRANGE", "f", "-", "+"], ["XREVRANGE", "f", "+", "-"]):
            self.assertEqual(before, sorted(self.merged(*words), key=lambda entry: [int(n) for n in entry[0].split("-")]))
        got = []
        waits = self.reader(self.sets[0][0], got, "XREAD", "BLOCK", 0, "STREAMS", "f", before[-1][0])
        time.sleep(2)
        self.assertEqual([], got)
        self.assertLess(size(), logged + 300)  # what is trimmed by itself is logged once
        self.assertLess(self.sets[2][0].info("commandstats")["cmdstat_feed|resolved"]["calls"] - calls, 250)
        paused.run("CLIENT", "UNPAUSE")
        waits.join(20)
        self.assertEqual([[(row, "late")]], got)

    def test_many_who_wait_are_one_who_asks(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.any().run("FEED CREATE g ON 1 t")
        self.write(30)
        node = self.sets[1][0]
        got = []
        last = self.merged("XREVRANGE", "f", "+", "-", "COUNT", 1)[0][0]
        readers = [self.reader(node, got, "XREAD", "BLOCK", 0, "STREAMS", "f", last) for _ in range(25)]
        readers += [self.reader(node, got, "XREAD", "BLOCK", 0, "STREAMS", "f", "g", last, last) for _ in range(5)]
        self.wait_until(lambda: node.info("clients")["blocked_clients"] >= 30, lambda: node.info("clients"))

        def asked():
            return sum(member.info("commandstats")["cmdstat_feed|resolved"]["calls"] for member in self.everyone)

        def rests():
            before = asked()
            time.sleep(0.5)
            return asked() - before < 7
        self.wait_until(rests, "they go on asking")
        before = asked()
        time.sleep(3)
        # A question for each set and feed, every five seconds.
        self.assertLess(asked() - before, 20)
        self.assertEqual([], got)
        for number in range(3):
            row = next(row for row in ROWS if self.owner(row) == number)
            self.any().run("CPUT", "t", row, "f:x", "told")
            for reader in readers:
                reader.join(60)
            self.assertEqual(30, len(got), f"set {number}")
            self.assertEqual({(row, "told")}, {entry for entries in got for entry in entries})
            got.clear()
            last = self.merged("XREVRANGE", "f", "+", "-", "COUNT", 1)[0][0]
            readers = [self.reader(node, got, "XREAD", "BLOCK", 0, "STREAMS", "f", last) for _ in range(30)]
        # Nothing is asked for nobody.
        self.any().run("CPUT", "t", ROWS[0], "f:x", "told")
        for reader in readers:
            reader.join(60)
        self.wait_until(lambda: node.info("cluster")["cluster_calls_waiting"] == 0, lambda: node.info("cluster"))

    def test_who_waits_between_two_changes_misses_none(self):
        """Each of many readers, one that comes to its end while another one's question is answered, too."""
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        rng = random.Random(self.seed)
        ends = threading.Event()
        told = {number: [] for number in range(8)}
        wrong = []

        def follow(number):
            client = redis.Redis(port=self.everyone[number % 3].port, decode_responses=True, socket_timeout=60)
            last = "0"
            try:
                while not ends.is_set():
                    found = client.execute_command("XREAD", "COUNT", 1 + number, "BLOCK", 300, "STREAMS", "f", last)
                    for entry in (found[0][1] if found else ()):
                        last = entry[0]
                        if entry[1].get("op") == "put":
                            told[number].append(entry[1]["value"])
            except redis.RedisError as error:
                wrong.append(str(error))
        readers = [self.beside(lambda number=number: follow(number)) for number in told]
        wrote = []
        for number in range(400):
            self.any(rng).run("CPUT", "t", rng.choice(ROWS), "f:x", str(number))
            wrote.append(str(number))
            # Single changes, and some in a row.
            if rng.random() < 0.7:
                time.sleep(rng.choice([0.001, 0.01, 0.03]))
        for number, values in told.items():
            self.wait_until(lambda values=values: len(values) >= 400 or wrong, lambda number=number, values=values: f"reader {number}: {len(values)} told; {wrong}")
        ends.set()
        for reader in readers:
            reader.join(60)
        self.assertEqual([], wrong)
        for values in told.values():
            self.assertEqual(wrote, values, f"seed {self.seed}")

    def test_a_late_answer_does_not_move_the_end(self):
        """`$` is the end of when it was asked for, also where a set that may log nothing says so late."""
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.write(30)
        late = self.sets[2][0]
        row = next(row for row in ROWS if self.owner(row) == 2)
        late.run("CPUT", "t", row, "f:x", "before")
        self.wait_until(lambda: self.merged("XREVRANGE", "f", "+", "-", "COUNT", 1)[0][1]["value"] == "before", "it is told")
        late.run("CLIENT", "PAUSE", 100_000, "WRITE")
        got = {name: [] for name in ("f", "f@2")}
        readers = [self.reader(self.sets[0][0], told, "XREAD", "BLOCK", 4000, "STREAMS", name, "$") for name, told in got.items()]
        time.sleep(2)
        self.assertEqual({"f": [], "f@2": []}, got)
        late.run("CLIENT", "UNPAUSE")
        late.run("CPUT", "t", row, "f:x", "behind")
        for reader in readers:
            reader.join(20)
        self.assertEqual({"f": [[(row, "behind")]], "f@2": [[(row, "behind")]]}, got)

    def test_who_has_just_begun_tells_all_or_nothing(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.write(60)
        expected = self.merged("XRANGE", "f", "-", "+")
        for member in self.everyone:
            self.restart(member)
            good = 0
            while good < 20:
                # That there is no such feed would be taken for the end of it.
                for number in range(3):
                    self.assertNotIn("NOFEED", member.refusal("XLEN", f"f@{number}"))
                    self.assertNotIn("NOFEED", member.refusal("XREAD", "STREAMS", "f", f"f@{number}", "0", "0"))
                try:
                    told = member.run("XRANGE", "f", "-", "+"), member.run("XLEN", "f"), member.run("XREAD", "STREAMS", "f", "0")
                except redis.RedisError as error:
                    self.assertRegex(str(error), "LOADING|TRYAGAIN|CLUSTERDOWN|onnect")
                    continue
                good += 1
                self.assertEqual(expected, [tuple(entry) for entry in told[0]])
                self.assertEqual(len(expected), told[1])
                self.assertEqual(expected, [tuple(entry) for entry in told[2][0][1]])

    def test_a_set_that_joins_is_read_too(self):
        self.start(2)
        self.any().run("FEED CREATE f ON 1 t")
        self.write(20)
        got = []
        last = self.merged("XRANGE", "f", "-", "+")[-1][0]
        waiter = self.reader(self.sets[1][0], got, "XREAD", "BLOCK", 0, "STREAMS", "f", last)
        self.sets.append(self.new_set(join=self.sets[0]))
        self.admit(2)
        self.everyone = sum(self.sets, [])
        for row in ("a", "h", "n", "t"):
            self.assertEqual("OK", self.move(row, 2, member=self.sets[0][0]))
        self.sets[0][0].run("CPUT", "t", "z9", "f:x", "new")
        waiter.join(20)
        self.assertEqual([[("z9", "new")]], got)
        self.assertEqual(22, len(self.merged("XRANGE", "f", "-", "+")))
        self.assertEqual(self.expected(), self.merged("XRANGE", "f", "-", "+"))


class MovingFeeds(FeedsCase):
    def check(self, voters, faults=False):
        """Rows that are written and move meanwhile: each acknowledged write is told once, by one set, in the row's order there."""
        self.start(3, voters)
        self.any().run("FEED CREATE f ON 1 t")
        stop = threading.Event()
        writers = []

        def write(number):
            rng = random.Random(f"{self.seed}/{number}")
            wrote = {}
            writers.append(wrote)
            client = redis.Redis(port=self.any(rng).port, decode_responses=True)
            count = 0
            while not stop.is_set():
                row = f"{rng.choice('abhinopstz')}{number}"
                count += 1
                try:
                    client.execute_command("CPUT", "t", row, "f:x", f"{number}-{count}")
                    wrote.setdefault(row, []).append((f"{number}-{count}", True))
                except (redis.ConnectionError, redis.ResponseError):
                    wrote.setdefault(row, []).append((f"{number}-{count}", False))
                    client = redis.Redis(port=self.any(rng).port, decode_responses=True)
                    time.sleep(0.05)
        threads = [self.beside(lambda number=number: write(number)) for number in range(4)]
        rng = random.Random(self.seed)
        for _ in range(12 if faults else 40):
            self.random_move(rng)
            if faults:
                member = self.wait_leader(rng.choice(self.sets))
                member.server.kill()
                time.sleep(0.3)  # a while without it
                member.server.start()
                member.connect()
        stop.set()
        for thread in threads:
            thread.join()
        self.wait_until(lambda: all(job["state"] in ("done", "cancelled") for job in self.jobs()), self.jobs)
        self.wait_purged()
        wrote = {row: values for each in writers for row, values in each.items()}
        sure = {value for values in wrote.values() for value, is_sure in values if is_sure}
        feeds = [f"f@{number}" for number in range(3)]

        def told_all():
            return {value for feed in feeds for _, value in self.all_of(feed)}
        self.wait_until(lambda: sure <= told_all(), lambda: f"seed {self.seed}: {len(sure - told_all())} missing")
        told = [entry for feed in feeds for entry in self.all_of(feed)]
        self.assertEqual(len(told), len(set(told)), f"seed {self.seed}")
        for feed in feeds:
            places = {}
            for row, value in self.all_of(feed):
                places.setdefault(row, []).append(int(value.split("-")[1]))
            for row, numbers in places.items():
                self.assertEqual(sorted(numbers), numbers, f"seed {self.seed}: {feed}, {row}")
        self.assertTrue(all(row in wrote for row, _ in told))
        print(f"seed {self.seed}: {len(sure)} writes, {len(told)} told")

    def all_of(self, feed):
        entries, last = [], "-"
        while True:
            some = self.wait_leader(self.sets[int(feed[-1])]).run("XRANGE", feed, last, "+", "COUNT", 5000)
            entries += [(each["row"], each["value"]) for each in map(fields, some) if each["op"] != "schema"]
            self.assertLessEqual({each["op"] for each in map(fields, some)}, {"put", "schema"})
            if len(some) < 5000:
                return entries
            last = "(" + some[-1][0]

    def test_moves_tell_nothing(self):
        self.check(1)

    def test_kills_beside_moves(self):
        self.check(3, faults=True)


if __name__ == "__main__":
    unittest.main()
