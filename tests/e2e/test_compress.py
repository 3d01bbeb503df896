"""Families with COMPRESS: two servers get the same commands, one of them with COMPRESS; nobody may tell them apart by any
command, feed, index, copy, follower or tool. And FAMILY INFO's compressed, saved, disk and log_bytes."""

import os
import random
import subprocess
import tempfile
import time
import unittest

import redis

from cellar_server import CellarServer, binary, tool, wait_until

SEED = int(os.environ.get("CELLAR_COMPRESS_SEED", "1"))
NOW = 1_900_000_000_000_000
WORDS = ["<td class=\"x\">", "</td>", "value ", "häuser", "\n", "<a href=\"http://example.com/\">", "row"]
FAMILIES = "FAMILY f VERSIONS 3 {c} FAMILY s TYPE string {c} GROUP g FAMILY m TYPE bytes AGGREGATE max {c} FAMILY n TYPE i64 {c}"


def flat(words):
    return {name.decode(): value for name, value in zip(words[::2], words[1::2])}


def asked(client, words):
    """The reply, or the error."""
    try:
        return client.execute_command(*words)
    except redis.RedisError as error:
        return f"{type(error).__name__} {error}"


class Draw:
    """Random commands; values of all sizes, some of which cannot be compressed."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def value(self):
        rng = self.rng
        size = rng.choice([rng.randrange(140), rng.randrange(120, 140), rng.randrange(2000), rng.randrange(60_000)])
        if rng.random() < 0.2:
            return "".join(chr(rng.randrange(33, 120)) for _ in range(size))
        text = ""
        while len(text) < size:
            text += rng.choice(WORDS)
        return text

    def row(self):
        return f"r{self.rng.randrange(15)}"

    def column(self, families="fsm"):
        return f"{self.rng.choice(families)}:{self.rng.choice('abc')}"

    def write(self):
        rng = self.rng
        kind = rng.choice(["put", "put", "put", "append", "mutate", "del", "incr", "add", "update", "if", "range", "ttl"])
        if kind == "put":
            return ["CPUT", "t", self.row(), self.column(), self.value(), self.column("fs"), self.value()]
        if kind == "append":
            return ["CAPPEND", "t", self.row(), self.column("fs"), self.value()]
        if kind == "mutate":
            return ["CMUTATE", "t", self.row(), "PUT", self.column(), self.value(), "APPEND", self.column("fs"), self.value(),
                    "INCR", "n:a", "1", "DEL", self.column()]
        if kind == "del":
            return ["CDEL", "t", self.row(), self.column()]
        if kind == "incr":
            return ["CINCRBY", "t", self.row(), "n:a", "5"]
        if kind == "add":
            return ["CADD", "t", self.row(), f"m:{rng.choice('abc')}", self.value()]
        if kind == "update":
            return ["CUPDATE", "t", "PREFIX", "r1", "WHERE", "f:a", "EXISTS", "PUT", "s:u", self.value()]
        if kind == "if":
            return ["CMUTATE", "t", self.row(), "IF", self.column("fs"), rng.choice(["GT", "LT", "EQ"]), rng.choice(["v", "<", "row"]),
                    "PUT", "f:c", self.value(), "ELSE", "PUT", "f:b", self.value()]
        if kind == "range":
            return ["CDELRANGE", "t", "RANGE", f"[r{rng.randrange(20)}", f"(r{rng.randrange(20)}"]
        return ["CPUT", "t", self.row(), self.column(), self.value(), "TTL", f"{rng.randrange(1, 60)}s"]

    def reads(self):
        """Every command that shows values, or says something that depends on them."""
        rng = self.rng
        row, column, word = self.row(), self.column(), rng.choice(["value", "<td", "row", "häu"])
        return [["CGET", "t", row, column], ["CGET", "t", row, column, "WITHTS"],
                ["CMGET", "t", row, "f:a", "s:b", "m:c"],
                ["CROW", "t", row], ["CROW", "t", row, "VERSIONS", "ALL", "WITHTYPE", "WITHTTL", "COLUMNS", "2", "f", "m"],
                ["CROWS", "t", "2", row, self.row()], ["CEXISTS", "t", row, column],
                ["CSCAN", "t", "0"], ["CSCAN", "t", "0", "KEYSONLY"], ["CSCAN", "t", "0", "VERSIONS", "ALL", "REVERSE"],
                ["CSCAN", "t", "0", "WHERE", column, "MATCH", f"*{word}*"], ["CSCAN", "t", "0", "WHERE", column, "GE", word, "COUNT", "3"],
                ["CSCAN", "t", "0", "FILTER", f'value ~ "{word}"'], ["CSCAN", "t", "0", "FILTER", "strip"],
                ["CCOUNT", "t", "BY", "CELLS", "VERSIONS", "ALL"], ["CCOUNT", "t", "WHERE", column, "LT", word],
                ["CCOUNT", "t", "BY", "CELLS", "FILTER", f'value ~ "{word}"'],
                ["CAGG", "t", "BY", "VALUE", "f:a", "REDUCE", "COUNT", "*", "REDUCE", "DISTINCT", "f", "REDUCE", "MAX", "s"],
                ["CAGG", "t", "REDUCE", "COUNT", "*", "REDUCE", "ROWS", "f"], ["CAGG", "t", "REDUCE", "MIN", "f:b", "REDUCE", "SUM", "n"],
                ["CNEAR", "t", row], ["DEBUG", "DIGEST", "t"], ["DEBUG", "DIGEST"]]


class CompressTest(unittest.TestCase):
    def start(self, **options):
        server = CellarServer(save="", enable_debug_command="yes", appendfsync="no", **options)
        self.addCleanup(server.close)
        return server.start()

    def pair(self, **options):
        plain, packs = self.start(**options), self.start(**options)
        for server, compress in ((plain, ""), (packs, "COMPRESS lz4")):
            client = server.client()
            client.execute_command("DEBUG", "SET-TIME", NOW)
            client.execute_command(*("TABLE CREATE t " + FAMILIES.format(c=compress)).split())
        return plain, packs

    def info(self, client, family, table="t"):
        return flat(client.execute_command("FAMILY", "INFO", table, family))


class AlikeTest(CompressTest):
    def both(self, words):
        replies = [asked(client, words) for client in self.clients]
        self.assertEqual(replies[0], replies[1], [str(word)[:60] for word in words])
        return replies[0]

    def connect(self):
        self.clients = [self.plain.client(), self.packs.client()]

    def test_every_command_answers_alike(self):
        self.plain, self.packs = self.pair()
        self.connect()
        draw = Draw(SEED)
        now = NOW
        self.both("INDEX CREATE t by_n ON 1 n:a INCLUDE 1 f:a".split())
        self.both("INDEX CREATE t by_s ON 1 s:b AS string".split())
        alters = ["lz4", "zstd", "none"]
        seen = 0
        for step in range(1500):
            self.both(draw.write())
            if step % 10 == 0:
                now += 2_000_000
                self.both(["DEBUG", "SET-TIME", now])
            if step % 25 == 0:
                for words in draw.reads():
                    self.assertNotIsInstance(self.both(words), str, words)
                self.both(["CSCAN", "t", "0", "INDEX", "by_n"])
                self.both(["CSCAN", "t", "0", "INDEX", "by_s"])
            if step % 90 == 0:
                family = draw.rng.choice("fsmn")
                self.clients[1].execute_command("FAMILY", "ALTER", "t", family, "COMPRESS", draw.rng.choice(alters))
            if step % 200 == 50:
                self.both(["SNAPSHOT", "CREATE", "s", "REPLACE"])
                self.both(["COPY", "t@s", "u", "REPLACE"])
                self.both(["CSCAN", "t@s", "0", "VERSIONS", "ALL"])
                self.both(["DEBUG", "DIGEST", "u"])
            if step % 300 == 150:
                self.clients[1].execute_command("SAVE")
            if step % 300 == 250:
                self.clients[1].execute_command("DEBUG", "RELOAD")
            if step % 500 == 400:
                self.clients[1].execute_command("WAITAOF", 1, 0, 0)  # a kill loses nothing then
                self.packs.crash()
                self.connect()
                self.both(["DEBUG", "SET-TIME", now])
            seen += sum(self.info(self.clients[1], family)["compressed"] for family in "fsm")
        self.assertGreater(seen, 1000)
        self.assertEqual([0] * 4, [self.info(self.clients[0], family)["compressed"] for family in "fsmn"])
        self.assertEqual(0, self.info(self.clients[1], "n")["compressed"])
        self.tools_see_plain_values(now)

    def tools_see_plain_values(self, now):
        rows = [subprocess.run([tool("cellar-export"), "t", "--port", str(server.port), "--format", "rows"], capture_output=True,
                               check=True).stdout for server in (self.plain, self.packs)]
        self.assertEqual(rows[0], rows[1])
        self.clients[1].execute_command("FAMILY", "ALTER", "t", "f", "COMPRESS", "zstd")
        self.clients[1].execute_command("CPUT", "t", "dumped", "f:a", "plain to see " * 40)
        digest = self.clients[1].execute_command("DEBUG", "DIGEST")
        self.packs.stop()
        checked = subprocess.run([binary(), "--check", self.packs.directory], capture_output=True, check=False)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        dumped = subprocess.run([binary(), "--dump", self.packs.directory], capture_output=True, check=True).stdout
        self.assertIn(b"plain to see plain to see plain to see", dumped)
        self.assertIn(b"COMPRESS zstd", dumped)
        self.packs.start()
        again = self.packs.client()
        again.execute_command("DEBUG", "SET-TIME", now)  # by the machine's clock what is due but not yet reclaimed shows again
        self.assertEqual(digest, again.execute_command("DEBUG", "DIGEST"))

    def test_feeds_tell_plain_values(self):
        self.plain, self.packs = self.pair()
        self.connect()
        self.both("FEED CREATE changes ON 1 t OLD EXPIRED".split())
        draw = Draw(SEED + 1)
        now = NOW
        for _ in range(200):
            self.both(draw.write())
            now += 1_000_000
            self.both(["DEBUG", "SET-TIME", now])
        entries = []
        for client in self.clients:
            client.execute_command("CONFIG", "SET", "feed-sync", "1")
            client.execute_command("WAITAOF", 1, 0, 0)  # then it shows everything
            told = []
            last = b"0-0"
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                got = client.execute_command("XREAD", "BLOCK", 1000, "STREAMS", "changes", last)
                if not got and told:
                    break
                if not got:
                    continue
                got = got.get(b"changes", got) if isinstance(got, dict) else got
                part = got[0][1] if isinstance(got[0][1], list) else got[0]
                told += [fields for _, fields in part]
                last = part[-1][0]
            entries.append(told)
        # What retention reclaims by itself may come at another time.
        keep = [[dict(e) for e in told if e.get(b"op") != b"schema" and e.get(b"by") != b"expired"] for told in entries]
        self.assertEqual(keep[0], keep[1])
        self.assertGreater(len(keep[0]), 200)
        self.assertTrue(any(len(e.get(b"old", b"")) > 500 for e in keep[1]))

    def test_a_follower_and_its_restarts(self):
        leader, follower = self.start(), self.start()
        one, two = leader.client(), follower.client()
        one.execute_command(*("TABLE CREATE t " + FAMILIES.format(c="COMPRESS zstd")).split())
        draw = Draw(SEED + 2)
        for _ in range(200):
            asked(one, draw.write())
        two.execute_command("REPLICAOF", "127.0.0.1", leader.port)
        for _ in range(200):
            asked(one, draw.write())
        self.same(one, follower)
        follower.crash()
        follower.client().execute_command("REPLICAOF", "127.0.0.1", leader.port)
        asked(one, ["FAMILY", "ALTER", "t", "f", "COMPRESS", "lz4"])
        for _ in range(100):
            asked(one, draw.write())
        self.same(one, follower)
        two = follower.client()
        for family in "fsm":
            mine, theirs = self.info(one, family), self.info(two, family)
            self.assertEqual([mine[name] for name in ("cells", "compressed", "saved", "compress")],
                             [theirs[name] for name in ("cells", "compressed", "saved", "compress")])
        for words in draw.reads():
            self.assertEqual(asked(one, words), asked(two, words), words)

    def same(self, leader, follower):
        def asked_both(words):
            return [asked(client, words) for client in (leader, follower.client())]
        wait_until(lambda: len(set(asked_both(["DEBUG", "DIGEST"]))) == 1,
                   lambda: asked_both(["CSCAN", "t", "0", "VERSIONS", "ALL", "COUNT", "10000"]))

    def test_limits_are_of_the_plain_value(self):
        self.plain, self.packs = self.pair(max_value_bytes="10000")
        self.connect()
        self.both(["CPUT", "t", "r", "f:a", "x" * 10_000])
        self.assertIn("10001", self.both(["CPUT", "t", "r", "f:a", "x" * 10_001]))
        self.assertIn("10001", self.both(["CAPPEND", "t", "r", "f:a", "x"]))
        self.assertIsInstance(self.both(["CPUT", "t", "r", "s:a", b"\xff" * 500]), str)


class FigureTest(CompressTest):
    def test_words(self):
        client = self.start().client()
        run = lambda line: asked(client, line.split())
        self.assertEqual(b"OK", run("TABLE CREATE t FAMILY f COMPRESS LZ4 FAMILY g"))
        self.assertEqual([b"TABLE CREATE t FAMILY f COMPRESS lz4 FAMILY g"], run("TABLE SHOW t"))
        self.assertEqual(b"OK", run("FAMILY ALTER t g COMPRESS zstd"))
        self.assertEqual(b"OK", run("FAMILY ADD t h COMPRESS none"))
        self.assertEqual(b"OK", run("FAMILY ALTER t f COMPRESS NONE"))
        self.assertEqual([b"TABLE CREATE t FAMILY f FAMILY g COMPRESS zstd FAMILY h"], run("TABLE SHOW t"))
        self.assertEqual([b"none", b"zstd", b"none"], [self.info(client, family)["compress"] for family in "fgh"])
        self.assertIn("unknown compression 'gz', there are lz4, zstd and none", run("FAMILY ALTER t f COMPRESS gz"))
        self.assertIn("syntax error", run("FAMILY ALTER t f COMPRESS"))
        self.assertIn("syntax error", run("FAMILY ALTER t f COMPRESS lz4 COMPRESS lz4"))

    def test_compressed_and_saved(self):
        client = self.start().client()
        asked(client, "TABLE CREATE t FAMILY f COMPRESS lz4 FAMILY p".split())
        for size in (0, 1, 127):
            client.execute_command("CPUT", "t", "r", f"f:{size}", "x" * size)
        client.execute_command("CPUT", "t", "r", "f:noise", random.Random(1).randbytes(1000))
        self.assertEqual((0, 0), tuple(self.info(client, "f")[name] for name in ("compressed", "saved")))
        client.execute_command("CPUT", "t", "r", "f:128", "x" * 128, "f:big", "<p>" * 1000, "p:big", "<p>" * 1000)
        info = self.info(client, "f")
        self.assertEqual(2, info["compressed"])
        self.assertTrue(2900 < info["saved"] < 3128, info)
        self.assertEqual(0, self.info(client, "p")["compressed"])
        client.execute_command("CPUT", "t", "r", "f:big", "short", "TS", 10**16)
        client.execute_command("CDELRANGE", "t", "ALL")
        self.assertEqual((0, 0), tuple(self.info(client, "f")[name] for name in ("compressed", "saved")))

    def test_the_disk_of_families_is_that_of_the_files(self):
        server = self.start()
        client = server.client()
        run = lambda line: asked(client, line.split())
        run("TABLE CREATE t FAMILY small FAMILY large COMPRESS zstd FAMILY other GROUP g")
        run("TABLE CREATE u FAMILY f")
        run("INDEX CREATE t i ON 1 small:a")
        for i in range(3000):
            client.execute_command("CPUT", "t", f"row{i}", "small:a", f"{i}", "large:b", f"<td>{i}</td>" * 100, "other:c", "z" * 30)
            client.execute_command("CPUT", "u", f"row{i}", "f:a", f"value {i}")
        place = [("t", "small"), ("t", "large"), ("t", "other"), ("u", "f")]
        each = lambda name: [self.info(client, family, table)[name] for table, family in place]
        self.assertEqual([0] * 4, each("disk"))
        logged = each("log_bytes")
        self.assertTrue(all(logged), logged)
        run("SNAPSHOT CREATE s")
        for i in range(1000):
            client.execute_command("CPUT", "u", f"row{i}", "f:a", f"later {i}")
        run("SAVE")
        self.assertEqual([0] * 4, each("log_bytes"))
        self.of_the_files(server, sum(each("disk")))
        disk = each("disk")
        self.assertLess(disk[1], 3000 * 1000 * 0.4)
        client.execute_command("CPUT", "u", "new", "f:a", "x" * 5000)
        self.assertEqual(disk, each("disk"))
        log = each("log_bytes")
        self.assertEqual([0] * 3, log[:3])
        self.assertTrue(5000 < log[3] < 5100, log)
        server.restart()
        client = server.client()
        self.assertEqual(disk, each("disk"))
        self.assertEqual(log, each("log_bytes"))
        self.assertEqual(0, self.info(client, "f", "u@s")["disk"])

    def of_the_files(self, server, said):
        names = [name for name in os.listdir(server.directory) if name.endswith(".snapshot")]
        size = sum(os.path.getsize(os.path.join(server.directory, name)) for name in names)
        self.assertTrue(0.95 * size <= said <= 1.05 * size, (said, size, names))

    def test_a_flipped_bit_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            with CellarServer(directory, save="") as server:
                client = server.client()
                asked(client, "TABLE CREATE t FAMILY f COMPRESS lz4".split())
                client.execute_command("CPUT", "t", "r", "f:a", "".join(f"<td>{i}</td>" for i in range(5000)))
                client.execute_command("SAVE")
                server.stop()
            name = next(name for name in os.listdir(directory) if name.endswith(".snapshot"))
            path = os.path.join(directory, name)
            with open(path, "r+b") as file:
                content = file.read()
                at = content.index(b"<td>10") if b"<td>10" in content else len(content) // 2
                file.seek(at + 100)
                file.write(bytes([content[at + 100] ^ 4]))
            checked = subprocess.run([binary(), "--check", directory], capture_output=True, check=False)
            self.assertEqual(1, checked.returncode, checked.stdout)
            self.assertIn(name.encode(), checked.stdout + checked.stderr)


if __name__ == "__main__":
    unittest.main()
