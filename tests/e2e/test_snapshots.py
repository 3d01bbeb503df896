"""Named snapshots: table@snapshot stays what it was, whatever is done to the table, the server or its files."""

import os
import random
import shutil
import subprocess
import tempfile
import time
import unittest

import redis

from cellar_server import CellarServer, CellarTest, binary, wait_until
from replicas import Node, ReplicaTest

SEED = int(os.environ.get("CELLAR_SEED", time.time_ns() % 10**9))
DEBUG = {"enable-debug-command": "yes", "save": ""}


def refusal(client, *words):
    """The error that a command answers with."""
    try:
        reply = client.execute_command(*words)
    except redis.ResponseError as error:
        # redis-py strips the first word of those that it knows.
        return f"{type(error).__name__} {error}"
    raise AssertionError(f"{words} was answered: {reply!r}")


class Snapshots(CellarTest):
    OPTIONS = DEBUG

    def setUp(self):
        super().setUp()
        for name in self.run_command("SNAPSHOT LIST"):
            self.run_command("SNAPSHOT DROP", name)
        self.run_command("CONFIG SET", "snapshots-max", 256)
        run = self.run_command
        run("TABLE CREATE", "t", "FAMILY", "f", "FAMILY", "n", "TYPE", "i64", "VERSIONS", 3)
        for i in range(20):
            run("CPUT", "t", f"r{i:02}", "f:q", f"v{i}", "n:x", i)

    def refusal(self, *words):
        return refusal(self.redis, *words)

    def info(self, name):
        reply = self.run_command("SNAPSHOT INFO", name)
        return dict(zip(reply[::2], reply[1::2])) if isinstance(reply, list) else reply

    def test_every_reading_command_sees_the_moment(self):
        run = self.run_command
        run("INDEX CREATE", "t", "byx", "ON", 1, "n:x")
        before = {}
        questions = [("CGET", "r03", "f:q"), ("CMGET", "r03", "f:q", "n:x"), ("CROW", "r04"), ("CROWS", 2, "r01", "r99"),
                     ("CSCAN", 0, "COUNT", 100), ("CSCAN", 0, "INDEX", "byx", "EQ", 1, 7), ("CCOUNT",),
                     ("CCOUNT", "BY", "CELLS"), ("CAGG", "REDUCE", "SUM", "n:x"), ("CNEAR", "r05x"),
                     ("CEXISTS", "r03", "f:q"), ("CEXPLAIN",)]
        ask = lambda name: {q: run(q[0], name, *q[1:]) if q[0] != "CEXPLAIN" else None for q in questions}
        before = ask("t")
        shown = run("TABLE SHOW", "t")
        info = lambda name: [word for word in run("FAMILY INFO", name, "n")[:22]]  # up to its memory
        families = info("t")
        digest = run("DEBUG DIGEST", "t")
        self.assertEqual(b"OK", run("SNAPSHOT CREATE", "monday"))
        self.assertEqual(before, ask("t@monday"))
        for i in range(0, 20, 2):
            run("CPUT", "t", f"r{i:02}", "f:q", "changed", "n:x", 1000 + i)
        run("CDEL", "t", "r03")
        run("FAMILY ADD", "t", "later")
        run("INDEX DROP", "t", "byx")
        self.assertEqual(before, ask("t@monday"))
        self.assertNotEqual(digest, run("DEBUG DIGEST", "t"))
        for change in (lambda: run("CDELRANGE", "t", "ALL"), lambda: run("TABLE TRUNCATE", "t"),
                       lambda: run("TABLE RENAME", "t", "u"), lambda: run("TABLE DROP", "u"),
                       lambda: run("FLUSHALL"), lambda: run("DEBUG RELOAD"),
                       lambda: run("SAVE"), lambda: run("DEBUG RELOAD"), self.server.crash, self.server.restart):
            change()
            self.redis = self.server.client()
            run = self.run_command
            self.assertEqual(before, ask("t@monday"))
            self.assertEqual(digest, run("DEBUG DIGEST", "t@monday"))
            self.assertEqual(shown, run("TABLE SHOW", "t@monday"))
            self.assertEqual(families, info("t@monday"))
            self.assertEqual(before[("CCOUNT",)], run("CCOUNT", "0/t@monday"))
        self.assertIn(b"index", b" ".join(str(w).encode() for w in run("CEXPLAIN", "CSCAN", "t@monday", 0, "INDEX", "byx")).lower())
        self.assertEqual(b"ready", dict(zip(*[iter(run("INDEX INFO", "t@monday", "byx"))] * 2))[b"state"])
        self.assertEqual(20, dict(zip(*[iter(run("TABLE INFO", "t@monday"))] * 2))[b"rows"])
        self.assertGreater(run("MEMORY USAGE", "t@monday"), 0)
        self.assertEqual(1, len(run("TABLE SAMPLE", "t@monday", 2)) or 1)

    def test_info_and_list(self):
        run = self.run_command
        run("TABLE CREATE", "other", "FAMILY", "f")
        run("SNAPSHOT CREATE", "a", "TTL", "1h")
        run("SNAPSHOT CREATE", "b", "TABLE", 1, "other")
        self.assertEqual([b"a", b"b"], run("SNAPSHOT LIST"))
        info = self.info("a")
        self.assertEqual([b"name", b"created", b"id", b"ttl", b"tables", b"rows", b"cells", b"memory", b"held"], list(info))
        self.assertEqual((b"a", [b"other", b"t"], 20, 40), tuple(info[k] for k in (b"name", b"tables", b"rows", b"cells")))
        self.assertTrue(3_500_000 < info[b"ttl"] <= 3_600_000)
        ms, n = info[b"id"].split(b"-")
        self.assertEqual(info[b"created"], int(ms) * 1000 + int(n) // 10**6)
        self.assertEqual(0, info[b"held"])
        self.assertEqual((-1, [b"other"]), tuple(self.info("b")[k] for k in (b"ttl", b"tables")))
        for i in range(2000):
            run("CPUT", "t", f"new{i}", "f:q", "x" * 100)
        run("CDELRANGE", "t", "PREFIX", "r")
        self.assertGreater(self.info("a")[b"held"], 0)
        held = int(run("INFO", "memory")["mem_snapshots_held"])
        self.assertEqual(held, self.info("a")[b"held"] + self.info("b")[b"held"])
        self.assertEqual([], run("SNAPSHOT LIST") if run("SNAPSHOT DROP", "a") and run("SNAPSHOT DROP", "b") else None)
        self.assertEqual(0, int(run("INFO", "memory")["mem_snapshots_held"]))

    def test_wrong_use(self):
        run = self.run_command
        run("SNAPSHOT CREATE", "s")
        self.assertIn("BUSYKEY", self.refusal("SNAPSHOT CREATE", "s"))
        for words in (("CPUT", "t@s", "r", "f:q", "v"), ("CPUT", "t@s", "r", "f:q", "v", "n:x", 1), ("CDEL", "t@s", "r01"),
                      ("CDELRANGE", "t@s", "ALL"), ("CINCRBY", "t@s", "r", "n:x", 1), ("CAPPEND", "t@s", "r", "f:q", "v"),
                      ("CMUTATE", "t@s", "r", "PUT", "f:q", "v"), ("CUPDATE", "t@s", "ALL", "PUT", "f:q", "v"),
                      ("TABLE DROP", "t@s"), ("TABLE TRUNCATE", "t@s"), ("TABLE RENAME", "t@s", "x"), ("DEL", "t@s"),
                      ("UNLINK", "t@s"), ("RENAME", "t@s", "t"), ("RENAMENX", "t@s", "y"), ("FAMILY ADD", "t@s", "g"),
                      ("FAMILY ALTER", "t@s", "f", "TTL", "1d"), ("FAMILY DROP", "t@s", "f"),
                      ("INDEX CREATE", "t@s", "i", "ON", 1, "f:q"), ("INDEX DROP", "t@s", "i")):
            self.assertRegex(self.refusal(*words), "(READONLY|ReadOnlyError).*", words)
            self.assertIn("'t@s' is a snapshot", self.refusal(*words))
        # Of several nothing goes, in a transaction too, which takes nothing back.
        run("TABLE CREATE", "other", "FAMILY", "f")
        self.assertIn("'t@s' is a snapshot", self.refusal("DEL", "other", "t@s"))
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.execute_command("DEL", "other", "t@s")
            self.assertIn("'t@s' is a snapshot", str(pipe.execute(raise_on_error=False)[0]))
        self.assertIn(b"other", run("TABLE LIST"))
        run("DEL", "other")
        for words in (("CPUT", "t@no", "r", "f:q", "v"), ("CGET", "t@no", "r", "f:q"), ("CSCAN", "t@no", 0),
                      ("SNAPSHOT DROP", "no"), ("SNAPSHOT INFO", "no"), ("TABLE DROP", "t@no")):
            self.assertIn("NOSNAPSHOT", self.refusal(*words), words)
        self.assertIn("NOTABLE", self.refusal("CGET", "no@s", "r", "f:q"))
        self.assertIn("in snapshot", self.refusal("CGET", "no@s", "r", "f:q"))
        self.assertIn("NOKEYSPACE", self.refusal("CGET", "nowhere/t@s", "r", "f:q"))
        self.assertIn("NOKEYSPACE", self.refusal("SNAPSHOT CREATE", "nowhere/s"))
        for name in ("", "-a", "a b", "a@b", "x" * 129):
            self.assertIn("invalid snapshot name", self.refusal("SNAPSHOT CREATE", name), name)
        for words in (("TABLE CREATE", "t@s"), ("TABLE RENAME", "t", "t@x"), ("RENAME", "t", "t@x"), ("COPY", "t", "u@x")):
            self.assertIn("is invalid", self.refusal(*words))
        self.assertIn("is invalid", self.refusal("SNAPSHOT CREATE", "x", "TABLE", 1, "t@s"))
        self.assertIn("NOTABLE", self.refusal("SNAPSHOT CREATE", "x", "TABLE", 2, "t", "no"))
        self.assertIn("syntax", self.refusal("SNAPSHOT CREATE", "x", "TABLES"))
        self.assertIn("ERR", "ERR " + self.refusal("SNAPSHOT CREATE", "x", "TTL", "0"))
        run("CONFIG SET", "snapshots-max", 1)
        self.assertIn("TOOLARGE", self.refusal("SNAPSHOT CREATE", "x"))
        run("SNAPSHOT CREATE", "s", "REPLACE")
        self.assertEqual([b"s"], run("SNAPSHOT LIST"))
        run("SNAPSHOT CREATE", "x" * 128) if run("SNAPSHOT DROP", "s") else None

    def test_generic_commands(self):
        run = self.run_command
        run("SNAPSHOT CREATE", "s")
        self.assertEqual(2, run("EXISTS", "t", "t@s", "t@no"))
        self.assertEqual(b"table", run("TYPE", "t@s"))
        self.assertEqual(b"none", run("TYPE", "t@no"))
        self.assertEqual([b"t"], run("KEYS", "*"))
        self.assertEqual(1, run("DBSIZE"))
        self.assertEqual([b"t"], run("TABLE LIST"))
        self.assertEqual(0, run("DEL", "t@no"))
        pipe = self.redis.pipeline()
        pipe.watch("t@s")
        run("SNAPSHOT DROP", "s")
        run("CPUT", "t", "r", "f:q", "v")
        pipe.multi()
        pipe.execute_command("CPUT", "t", "r", "f:q", "w")
        self.assertEqual([b"OK"], pipe.execute())
        run("KEYSPACE CREATE", "ks")
        run("TABLE CREATE", "ks/a", "FAMILY", "f")
        run("SNAPSHOT CREATE", "ks/s")
        self.assertEqual([], run("SNAPSHOT LIST"))
        self.assertEqual(0, run("CCOUNT", "ks/a@s"))
        run("KEYSPACE DROP", "ks")
        run("KEYSPACE CREATE", "ks")
        self.assertIn("NOSNAPSHOT", self.refusal("SNAPSHOT INFO", "ks/s"))
        run("KEYSPACE DROP", "ks")

    def test_time_stands_still_and_a_ttl_is_exact(self):
        run = self.run_command
        start = 1_800_000_000_000_000
        run("DEBUG SET-TIME", start)
        self.addCleanup(self.redis.execute_command, "DEBUG SET-TIME", "NOW")
        run("TABLE CREATE", "e", "FAMILY", "f", "TTL", "10s")
        run("CPUT", "e", "r", "f:a", "1")
        run("CPUT", "e", "r", "f:b", "2", "TTL", "5s")
        run("SNAPSHOT CREATE", "s", "TTL", "60s")
        created = self.info("s")[b"created"]
        digest = run("DEBUG DIGEST", "e@s")
        run("DEBUG SET-TIME", created + 59_999_999)
        self.assertEqual(0, run("CCOUNT", "e"))
        self.assertEqual({b"f:a": b"1", b"f:b": b"2"}, dict(zip(*[iter(run("CROW", "e@s", "r"))] * 2)))
        self.assertEqual(digest, run("DEBUG DIGEST", "e@s"))
        self.assertEqual((21, 42), tuple(self.info("s")[k] for k in (b"rows", b"cells")))
        run("DEBUG SET-TIME", created + 60_000_000)
        self.assertIn("NOSNAPSHOT", self.refusal("CROW", "e@s", "r"))
        self.assertEqual([], run("SNAPSHOT LIST"))
        run("DEBUG SET-TIME", start)  # set back, it does not come again
        self.assertIn("NOSNAPSHOT", self.refusal("CROW", "e@s", "r"))
        run("SNAPSHOT CREATE", "s")
        run("DEBUG RELOAD")
        self.assertEqual([b"s"], run("SNAPSHOT LIST"))

    def test_cursors(self):
        run = self.run_command
        run("SNAPSHOT CREATE", "s")
        cursor, rows = run("CSCAN", "t@s", 0, "COUNT", 7)
        run("CDELRANGE", "t", "ALL")
        self.server.restart()
        self.redis = self.server.client()
        run = self.run_command
        while cursor != b"0":
            cursor, more = run("CSCAN", "t@s", cursor, "COUNT", 7)
            rows += more
        self.assertEqual([f"r{i:02}".encode() for i in range(20)], [row[0] for row in rows])
        cursor, _ = run("CSCAN", "t@s", 0, "COUNT", 7)
        run("CPUT", "t", "a", "f:q", "v")
        run("CPUT", "t", "b", "f:q", "v")
        live, _ = run("CSCAN", "t", 0, "COUNT", 1)
        run("SNAPSHOT CREATE", "s", "REPLACE")
        self.assertIn("STALECURSOR", self.refusal("CSCAN", "t@s", cursor))
        run("SNAPSHOT DROP", "s")
        self.assertIn("STALECURSOR", self.refusal("CSCAN", "t@s", cursor))
        self.assertIn("STALECURSOR", self.refusal("CSCAN", "t", cursor))
        self.assertEqual(1, len(run("CSCAN", "t", live)[1]))

    def test_transactions(self):
        run = self.run_command
        run("SNAPSHOT CREATE", "old")
        digest = run("DEBUG DIGEST", "t")
        for atomic in (False, True):
            run("MULTI", *(["ATOMIC"] if atomic else []))
            run("CPUT", "t", "r", "f:q", "inside")
            run("SNAPSHOT CREATE", "in")
            run("CGET", "t@in", "r", "f:q")
            run("SNAPSHOT DROP", "old")
            run("CPUT", "t", "r", "n:x", "no number") if atomic else None
            if atomic:
                self.assertIn("", refusal(self.redis, "EXEC"))
                self.assertEqual([b"in", b"old2"], run("SNAPSHOT LIST"))
                self.assertEqual(digest, run("DEBUG DIGEST", "t@old2"))
            else:
                self.assertEqual([b"OK", b"OK", b"inside", b"OK"], run("EXEC"))
                self.assertEqual([b"in"], run("SNAPSHOT LIST"))
                run("CDEL", "t", "r")
                self.assertEqual(digest, run("DEBUG DIGEST", "t"))
                run("SNAPSHOT CREATE", "old2")
                run("SNAPSHOT CREATE", "old") and run("SNAPSHOT DROP", "old")
        run("MULTI", "ATOMIC")
        run("SNAPSHOT CREATE", "gone")
        run("SNAPSHOT DROP", "old2")
        run("CPUT", "t", "r", "f:q", "x")
        run("CINCRBY", "t", "r", "f:q", 1)
        refusal(self.redis, "EXEC")
        self.assertEqual([b"in", b"old2"], run("SNAPSHOT LIST"))
        run("DEBUG RELOAD")
        self.assertEqual([b"in", b"old2"], run("SNAPSHOT LIST"))
        self.assertEqual(digest, run("DEBUG DIGEST", "t@old2"))

    def test_what_its_own_exec_writes_behind_it_is_behind_its_id(self):
        """Who copies the snapshot and reads on from its id has all."""
        run = self.run_command
        run("FEED CREATE", "feed", "ON", 1, "t")
        self.addCleanup(run, "FEED DROP", "feed")
        for before, after in ((0, 1), (0, 3), (1, 0), (1, 2), (3, 1)):
            with self.redis.pipeline() as pipe:
                for i in range(before):
                    pipe.execute_command("CPUT", "t", f"before{i}", "f:q", f"{before} {after}")
                pipe.execute_command("SNAPSHOT", "CREATE", "within", "REPLACE")
                for i in range(after):
                    pipe.execute_command("CPUT", "t", f"after{i}", "f:q", f"{before} {after}")
                pipe.execute()
            run("WAITAOF", 1, 0, 0)
            got = run("XREAD", "STREAMS", "feed", self.info("within")[b"id"])
            behind = [entry[b"row"] for _, entry in (got[0][1] if got else []) if entry[b"row"].startswith(b"after")]
            self.assertEqual([f"after{i}".encode() for i in range(after)], behind, (before, after))
            if (before, after) == (0, 1):
                self.assertIsNone(run("CGET", "t@within", "after0", "f:q"))

    def test_rights(self):
        run = self.run_command
        run("TABLE CREATE", "secret", "FAMILY", "f")
        run("ACL SETUSER", "ann", "on", "nopass", "+@all", "~t:*")
        run("ACL SETUSER", "bob", "on", "nopass", "+@all", "%R~t:f")
        run("SNAPSHOT CREATE", "s")
        ann = self.server.client(username="ann", password="")
        bob = self.server.client(username="bob", password="")
        self.addCleanup(run, "ACL DELUSER", "ann", "bob")
        self.assertEqual(b"v1", ann.execute_command("CGET", "t@s", "r01", "f:q"))
        self.assertIn("NoPermission", refusal(ann, "CGET", "secret@s", "r", "f:q"))
        self.assertIn("NoPermission", refusal(ann, "SNAPSHOT CREATE", "mine"))
        self.assertIn("NoPermission", refusal(ann, "SNAPSHOT DROP", "s"))
        self.assertEqual(b"OK", ann.execute_command("SNAPSHOT CREATE", "mine", "TABLE", 1, "t"))
        self.assertEqual(b"v1", bob.execute_command("CGET", "t@mine", "r01", "f:q"))
        self.assertIn("NoPermission", refusal(bob, "CGET", "t@mine", "r01", "n:x"))
        self.assertEqual({b"f:q": b"v1"}, dict(zip(*[iter(bob.execute_command("CROW", "t@mine", "r01"))] * 2)))
        # Figures are of what he may read.
        whole = self.info("mine")
        his = bob.execute_command("SNAPSHOT INFO", "mine")
        his = dict(zip(his[::2], his[1::2])) if isinstance(his, list) else his
        self.assertEqual(bob.execute_command("CCOUNT", "t@mine"), his[b"rows"])
        self.assertEqual(bob.execute_command("CCOUNT", "t@mine", "BY", "CELLS"), his[b"cells"])
        self.assertEqual(0, his[b"held"])
        self.assertEqual(run("CCOUNT", "t@mine", "BY", "CELLS"), whole[b"cells"])
        self.assertLess(his[b"cells"], whole[b"cells"])
        self.assertLess(his[b"memory"], whole[b"memory"])
        self.assertIn("NoPermission", refusal(bob, "SNAPSHOT CREATE", "his", "TABLE", 1, "t"))
        self.assertIn("NoPermission", refusal(bob, "SNAPSHOT DROP", "mine"))
        run("SNAPSHOT CREATE", "hidden", "TABLE", 1, "secret")
        self.assertEqual([b"mine", b"s"], ann.execute_command("SNAPSHOT LIST"))
        self.assertIn("NoPermission", refusal(ann, "SNAPSHOT INFO", "hidden"))
        self.assertEqual(b"OK", ann.execute_command("SNAPSHOT DROP", "mine"))

    def test_memory(self):
        run = self.run_command
        run("FAMILY ALTER", "t", "f", "VERSIONS", 1)
        for i in range(3000):
            run("CPUT", "t", f"m{i}", "f:q", "x" * 200)
        figure = lambda: int(run("INFO", "memory")["used_memory_dataset"])
        before = figure()
        for i in range(10):
            run("SNAPSHOT CREATE", f"s{i}")
            for j in range(300):
                run("CPUT", "t", f"m{(i * 300 + j) % 3000}", "f:q", str(i) * 200)
        self.assertGreater(figure(), before * 1.3)
        self.assertGreater(int(run("INFO", "memory")["mem_snapshots_held"]), before * 0.3)
        run("CONFIG SET", "maxmemory", 1_000_000)
        self.addCleanup(self.redis.execute_command, "CONFIG SET", "maxmemory", 0)
        self.assertIn("OOM", refusal(self.redis, "SNAPSHOT CREATE", "more"))
        run("CONFIG SET", "maxmemory", 0)
        for i in random.Random(SEED).sample(range(10), 10):
            run("SNAPSHOT DROP", f"s{i}")
        # Exactly what they held goes (tests/btree/version_test.cc); leaves that were written twice are cut anew, and by
        # and by those of before, too, which stood half empty.
        wait_until(lambda: 3000 * 200 < figure() < before * 1.03, lambda: (figure(), before))
        run("DEBUG RELOAD")  # which goes through all of them again
        wait_until(lambda: figure() < before * 1.2, lambda: (figure(), before))

    def test_the_file_has_each_leaf_once(self):
        run = self.run_command
        chance = random.Random(1)
        for i in range(4000):
            run("CPUT", "t", f"m{i}", "f:q", chance.randbytes(100))
        size = lambda: max(os.path.getsize(os.path.join(self.server.directory, name))
                           for name in os.listdir(self.server.directory) if name.endswith(".snapshot"))
        run("SAVE")
        before = size()
        for i in range(20):
            run("SNAPSHOT CREATE", f"s{i}")
            run("CPUT", "t", "m77", "f:q", str(i))
        run("SAVE")
        self.assertLess(size(), before * 1.05 + 20 * 5000)


class Model(unittest.TestCase):
    """Snapshots taken, dropped and replaced at random, beside every kind of change: the digest of each is the one that the
    table had, after each reload, restart and kill -9."""

    STEPS = 250

    def test_model(self):
        print(f"seed {SEED}", flush=True)
        chance = random.Random(SEED)
        options = dict(DEBUG, appendfsync="always")
        with CellarServer(options=options) as server:
            self.client = server.client()
            run = self.client.execute_command
            tables = ["a", "b", "c"]
            kept = {}  # snapshot -> table -> digest

            def create(name):
                run("TABLE CREATE", name, "FAMILY", "f", "FAMILY", "g", "GROUP", "other", "FAMILY", "n", "TYPE", "i64")
                run("INDEX CREATE", name, "i", "ON", 1, "n:x")

            def check():
                self.assertEqual(sorted(name.encode() for name in kept), run("SNAPSHOT LIST"))
                for name, digests in kept.items():
                    for table, digest in digests.items():
                        self.assertEqual(digest, run("DEBUG DIGEST", f"{table}@{name}"), (table, name))
                run("DEBUG DIGEST")  # indexes agree with their tables, those of snapshots too

            for name in tables:
                create(name)
            for step in range(self.STEPS):
                kind = chance.randrange(100)
                there = [name.decode() for name in run("TABLE LIST")]
                table = chance.choice(tables)
                if table not in there:
                    create(table)
                if kind < 55:
                    pipe = self.client.pipeline(transaction=chance.random() < 0.3)
                    for _ in range(chance.randrange(1, 40)):
                        row = f"r{chance.randrange(400)}"
                        if chance.random() < 0.2:
                            pipe.execute_command("CDEL", table, row)
                        else:
                            pipe.execute_command("CPUT", table, row, "f:q", "v" * chance.choice((1, 30, 900)), "g:q", step,
                                                 "n:x", chance.randrange(50))
                    pipe.execute()
                elif kind < 70:
                    name = f"s{chance.randrange(8)}"
                    some = chance.sample(tables, chance.randrange(1, 4))
                    some = [one for one in some if one in there or one == table]
                    words = ["TABLE", len(some), *some] if some else []
                    run("SNAPSHOT CREATE", name, *words, "REPLACE")
                    taken = some or [one.decode() for one in run("TABLE LIST")]
                    kept[name] = {one: run("DEBUG DIGEST", one) for one in taken}
                elif kind < 78 and kept:
                    name = chance.choice(list(kept))
                    run("SNAPSHOT DROP", name)
                    del kept[name]
                elif kind < 80:
                    run("TABLE TRUNCATE", table)
                elif kind < 82:
                    run("TABLE DROP", table)
                elif kind < 84:
                    run("FAMILY DROP", table, "g")
                    run("FAMILY ADD", table, "g", "GROUP", "other")
                elif kind < 88 and kept:
                    name = chance.choice(list(kept))
                    if kept[name]:
                        source, digest = chance.choice(list(kept[name].items()))
                        self.assertEqual(1, run("COPY", f"{source}@{name}", table, "REPLACE"))
                        self.assertEqual(digest, run("DEBUG DIGEST", table))
                elif kind < 91:
                    source = chance.choice([name for name in tables if name != table])
                    if source in there:
                        digest = run("DEBUG DIGEST", source)
                        self.assertEqual(1, run("COPY", source, table, "REPLACE"))
                        self.assertEqual(digest, run("DEBUG DIGEST", table))
                elif kind < 94:
                    run("SAVE")
                elif kind < 96:
                    run("DEBUG RELOAD")
                elif kind < 98:
                    server.crash()
                else:
                    server.restart()
                if kind >= 91 or step % 20 == 0:
                    self.client = server.client()
                    run = self.client.execute_command
                    check()
            check()


class Damage(unittest.TestCase):
    """A snapshot file with a bad byte: found, named; what is sound of the tables is saved, snapshots are said to be lost."""

    def test_bit_flips(self):
        chance = random.Random(SEED)
        print(f"seed {SEED}", flush=True)
        with CellarServer(options=dict(DEBUG, appendfsync="always")) as server:
            run = server.client().execute_command
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("INDEX CREATE", "t", "i", "ON", 1, "f:q")
            for i in range(2000):
                run("CPUT", "t", f"m{i}", "f:q", f"x{i}" * 20)
            for k in range(4):
                run("SNAPSHOT CREATE", f"s{k}")
                for j in range(30):
                    run("CPUT", "t", f"m{j * k}", "f:q", str(k) * 200)
            run("CDELRANGE", "t", "PREFIX", "m1")
            run("SAVE")
            digest = run("DEBUG DIGEST", "t")
            rows = run("CCOUNT", "t")
            server.stop()
            self.assertEqual(0, self.check(server.directory)[0])
            [name] = [name for name in os.listdir(server.directory) if name.endswith(".snapshot")]
            for _ in range(8):
                copy = tempfile.mkdtemp(prefix="cellar-test-")
                self.addCleanup(shutil.rmtree, copy)
                shutil.copytree(server.directory, copy, dirs_exist_ok=True)
                path = os.path.join(copy, name)
                with open(path, "r+b") as file:
                    file.seek(chance.randrange(100, os.path.getsize(path)))
                    byte = file.read(1)
                    file.seek(-1, os.SEEK_CUR)
                    file.write(bytes([byte[0] ^ 1 << chance.randrange(8)]))
                status, said = self.check(copy)
                self.assertEqual(1, status)
                self.assertIn(name, said)
                status, said = self.check(copy, "--repair")
                for k in range(4):
                    self.assertIn(f"snapshot 0/s{k}: all of it", said)
                with CellarServer(directory=copy, options=DEBUG) as saved:
                    ask = saved.client().execute_command
                    self.assertEqual([], ask("SNAPSHOT LIST"))
                    self.assertTrue(ask("CCOUNT", "t") < rows or ask("DEBUG DIGEST", "t") == digest)
                    ask("DEBUG DIGEST")

    def check(self, directory, *more):
        done = subprocess.run([binary(), "--check", directory, *more], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class Replicas(ReplicaTest):
    def test_followers_have_them(self):
        leader, follower = Node(self), Node(self)
        leader.run("TABLE CREATE t FAMILY f FAMILY g")
        leader.run("SNAPSHOT CREATE first")
        leader.load(100)
        leader.run("SNAPSHOT CREATE early")
        leader.load(100, first=100)
        follower.follow(leader)  # gets a copy of everything
        self.assert_copied(leader, follower)
        leader.run("SNAPSHOT CREATE late")
        leader.run("CDELRANGE t ALL")
        leader.run("SNAPSHOT DROP first")
        leader.run("COPY t@early u")
        self.assert_copied(leader, follower)
        for node in (leader, follower):
            self.assertEqual(["early", "late"], node.run("SNAPSHOT LIST"))
            self.assertEqual(100, node.run("CCOUNT t@early"))
            self.assertEqual(200, node.run("CCOUNT t@late"))
            self.assertEqual(100, node.run("CCOUNT u"))
        self.assertIn("READONLY", follower.refusal("SNAPSHOT CREATE mine").upper())
        self.assertEqual(leader.run("DEBUG DIGEST t@early"), follower.run("DEBUG DIGEST t@early"))
        follower.kill()
        leader.run("SNAPSHOT CREATE third")
        follower.restart()
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertEqual(["early", "late", "third"], follower.run("SNAPSHOT LIST"))
        self.assertEqual(leader.run("DEBUG DIGEST t@late"), follower.run("DEBUG DIGEST t@late"))


if __name__ == "__main__":
    unittest.main()
