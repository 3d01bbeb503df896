"""The package `cellar` of tools/clients/python against a server: what comes back is what was put, each call does
what its command does, in both clients, and the examples of its README are true.
"""

import asyncio
import os
import random
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

import redis

from cellar_server import ROOT, CellarTest

PACKAGE = os.path.join(ROOT, "tools", "clients", "python")
sys.path.insert(0, PACKAGE)

import cellar  # noqa: E402
import cellar.aio  # noqa: E402


class PythonClientTest(CellarTest):
    OPTIONS = {"save": ""}
    RESP2 = {"protocol": 2} if int(redis.__version__.split(".")[0]) >= 5 else {}  # for servers of a few lines

    def setUp(self):
        super().setUp()
        self.redis.execute_command("FLUSHALL")
        for feed in self.redis.execute_command("FEED LIST"):
            self.redis.execute_command("FEED", "DROP", feed)
        self.url = f"redis://127.0.0.1:{self.server.port}"
        self.db = cellar.Cellar(self.url)
        self.addCleanup(self.db.close)

    def test_values_come_back_as_they_went(self):
        table = self.db.create_table("t", {"x": "", "s": "TYPE string", "n": "TYPE u8", "f": "TYPE f32"})
        values = [b"", b"\x00\xff", True, False, 0, -1, 2**63 - 1, -2**63, 2**64 - 1, 0.5, 1e308, float("inf"),
                  uuid.uuid4(), cellar.Typed(7, "u16"), cellar.Typed("7", "string")]
        table.put("r", {f"x:{i}": value for i, value in enumerate(values)})
        row = table.row("r")
        for i, value in enumerate(values):
            plain = value.value if isinstance(value, cellar.Typed) else value
            self.assertEqual(plain, row[f"x:{i}"], value)
            self.assertIs(type(plain), type(row[f"x:{i}"]), value)
        table.put("r", {"s:a": "ü", "s:b": b"z", "n:": 255, "f:": 0.1})
        self.assertEqual({"s:a": "ü", "s:b": "z", "n:": 255}, table.row("r", columns=["s", "n"]))
        self.assertAlmostEqual(0.1, table.get("r", "f:"), 6)
        with self.assertRaises(cellar.BadValue):
            table.put("r", {"n:": 256})
        with self.assertRaises(cellar.WrongType):
            table.put("r", {"n:": cellar.Typed(1, "i64")})

    def test_binary_row_keys(self):
        table = self.db.create_table("t", ["f"])
        rng = random.Random(7)
        keys = {bytes(rng.randrange(256) for _ in range(rng.randrange(1, 40))) for _ in range(200)}
        for key in keys:
            table.put(key, {"f:": key})
        found = list(table.scan(page=7))
        self.assertEqual(sorted(keys), [row["f:"] for _, row in found])
        for key, row in found:  # a key that came back names its row
            self.assertEqual(row["f:"], table.get(key, "f:"))

    def test_versions_and_times(self):
        table = self.db.create_table("t", {"f": "TYPE i64"})
        table.put("r", {"f:a": cellar.Put(1, ts=10)})
        table.put("r", {"f:a": cellar.Put(2, ts=20), "f:b": cellar.Put(3, ts=5, ttl="1h")})
        cells = table.cells("r", versions="ALL")
        self.assertEqual([(2, 20), (1, 10)], [(cell.value, cell.ts) for cell in cells["f:a"]])
        self.assertIsNone(cells["f:a"][0].expires)
        self.assertGreater(cells["f:b"][0].expires, time.time() * 1e6)
        self.assertEqual(1, table.get("r", "f:a", at=15))
        self.assertIsNone(table.get("r", "f:none"))
        self.assertEqual({"f:a": 1}, table.row("r", time=(10, 10)))

    def test_scans_are_pages_with_every_option(self):
        table = self.db.create_table("t", {"f": "TYPE i64", "s": "TYPE string"})
        for i in range(300):
            table.put(f"k{i:03}", {"f:n": i, "s:parity": "even" if i % 2 == 0 else "odd"})
        everything = [f"k{i:03}" for i in range(300)]
        for page in (1, 7, 100, 1000):
            self.assertEqual(everything, list(table.keys(page=page)))
        self.assertEqual(everything[:13], [key for key, _ in table.scan(limit=13, page=5)])
        self.assertEqual(["k010", "k011"], list(table.keys(range=("[k010", "(k012"))))
        self.assertEqual(["k299", "k298"], list(table.keys(reverse=True, limit=2)))
        self.assertEqual(["k005", "k007"], list(table.keys(rows=["k007", "k005", "none"])))
        self.assertEqual(150, table.count(where=("s:parity", "EQ", "odd")))
        self.assertEqual(5, table.count(where=[("s:parity", "EQ", "odd"), ("f:n", "LT", 10)]))
        self.assertEqual([{"f:n": 3}], [row for _, row in table.scan(prefix="k003", columns="f")])
        self.assertEqual([{"s:parity": "odd"}], [row for _, row in table.scan(prefix="k003", filter='family = "s"')])
        cursor, rows = table.page(count=2)
        self.assertEqual(["k000", "k001"], [key for key, _ in rows])
        self.assertEqual("k002", table.page(cursor, count=1)[1][0][0])
        with self.assertRaises(TypeError):
            next(table.scan(no_such_option=1))
        table.create_index("n", "-f:n")
        self.assertEqual(["k299", "k298"], [key for key, _ in table.scan(index="n", limit=2)])
        self.assertEqual(["k042"], list(table.keys(index="n", eq=[42])))

    def test_conditions_steps_and_updates(self):
        table = self.db.create_table("t", {"f": "TYPE i64", "a": "AGGREGATE sum", "x": ""})
        self.assertTrue(table.put("r", {"f:n": 1}, nx=True))
        self.assertFalse(table.put("r", {"f:n": 2}, nx=True))
        self.assertFalse(table.put("r", {"f:n": 2}, when=("f:n", "GT", 1)))
        self.assertEqual((True, [b"OK", 4, 0]),
                         table.mutate("r", [("PUT", "x:", "v"), ("INCR", "f:n", 3), ("DEL", "x:none")],
                                      when=("ROW", "EXISTS")))
        self.assertEqual((False, [3]), table.mutate("r", [], when=[("ROW", "MISSING")], otherwise=[("DELROW",)]))
        table.put("r", {"f:n": 7})
        self.assertEqual(8, table.increment("r", "f:n"))
        self.assertTrue(table.add("r", {"a:": 5}))
        self.assertTrue(table.add("r", {"a:": 2}))
        self.assertEqual(7, table.get("r", "a:"))
        table.put("s", {"f:n": 1})
        self.assertEqual(1, table.update([("PUT", "x:big", b"1")], where=("f:n", "GT", 5)))
        self.assertEqual(2, table.update([("PUT", "x:all", b"1")]))
        self.assertIsNone(table.delete("s", when=("f:n", "GT", 5)))
        self.assertEqual(1, table.delete("s", ["x"]))
        for call in (lambda: table.delete("r", []), lambda: table.update([("DELROW",)], prefix=[])):
            with self.assertRaises(ValueError):  # nothing is not all
                call()
        self.assertTrue(table.exists("r"))
        self.assertEqual(1, table.delete_range(prefix="s"))
        with self.assertRaises(TypeError):
            table.delete_range()
        self.assertFalse(table.exists("s"))

    def test_aggregates(self):
        table = self.db.create_table("m", {"v": "TYPE f64", "p": "TYPE string"}, key="dev=utf8#-at=u64")
        for dev in ("a", "b"):
            for at in range(10):
                table.put(f"{dev}#{at}", {"v:t": at / 2, "p:city": dev.upper()})
        self.assertEqual([{"dev": "a", "n": 10, "avg": 2.25, "q": [2.0, 4.5]},
                          {"dev": "b", "n": 10, "avg": 2.25, "q": [2.0, 4.5]}],
                         table.aggregate({"n": "ROWS *", "avg": "AVG v:t", "q": ("QUANTILE", "v:t", 2, 0.5, 1)},
                                         by={"dev": "PART dev"}))
        self.assertEqual({"city": ["B"], "max": [4.5]},
                         table.aggregate_columns({"max": "MAX v:t"}, by={"city": "VALUE p:city"}, sort="max DESC",
                                                 limit=(1, 1)))
        self.assertEqual([{"n": 0, "avg": None}], table.aggregate({"n": "COUNT v", "avg": "AVG v"}, prefix="none#"))

    def test_transactions(self):
        table = self.db.create_table("t", {"f": "TYPE i64"})
        with self.db.transaction() as tx:
            tx.table("t").put("r", {"f:n": 1})
            tx.table("t").increment("r", "f:n", 4)
            tx.table("t").row("r")
        self.assertEqual([True, 5, {"f:n": 5}], tx.results)
        with self.assertRaises(cellar.BadValue):
            with self.db.transaction() as tx:
                tx.table("t").put("r", {"f:n": 9})
                tx.table("t").put("r", {"f:n": "no"})
        self.assertEqual(5, table.get("r", "f:n"))
        with self.assertRaises(ValueError):
            with self.db.transaction() as tx:
                tx.table("t").put("r", {"f:n": 9})
                raise ValueError
        self.assertEqual(5, table.get("r", "f:n"))

    def test_a_type_that_changes_is_noticed(self):
        table = self.db.create_table("t", {"f": "TYPE i64"})
        table.put("r", {"f:a": 1})
        table.drop()
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        table.put("r", {"f:a": 1.5})
        other = cellar.Cellar(self.url)
        other.table("t").put("r", {"f:b": 2})
        self.redis.execute_command("TABLE", "DROP", "t")
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "TYPE", "u8")
        other.table("t").put("r", {"f:b": 2})
        self.assertEqual({"f:b": 2}, other.table("t").row("r"))
        other.close()

    def test_feeds_and_groups(self):
        table = self.db.create_table("t", {"f": "TYPE i64"})
        feed = self.db.create_feed("changes", ["t"], old=True)
        for i in range(5):
            table.put("r", {"f:n": i})
        self.redis.execute_command("WAITAOF", 1, 0, 10000)
        puts = [entry for entry in feed.entries() if entry.op == "put"]
        self.assertEqual([(0, None), (1, 0), (2, 1), (3, 2), (4, 3)], [(entry.value, entry.old) for entry in puts])
        group = feed.create_group("mail")
        first = next(group.entries("ann"))
        self.assertEqual(first.id, group.read("ann", pending=True)[0].id)
        seen = [entry.id for entry in group.entries("ann")]
        self.assertEqual(6, len(seen))
        self.assertEqual([], group.read("ann", pending=True))
        table.put("r", {"f:n": 9})
        self.redis.execute_command("WAITAOF", 1, 0, 10000)
        left = group.read("ann")
        self.assertEqual(1, len(left))
        self.assertEqual([], group.read("bob"))
        self.assertEqual([left[0].id], [entry.id for entry in group.entries("bob", claim_ms=0)])
        self.assertEqual([], group.read("ann", pending=True))
        half = self.db.create_feed("half", ["t"], slice=(0, 2))
        for i in range(40):
            table.put(f"r{i}", {"f:n": i})
        self.redis.execute_command("WAITAOF", 1, 0, 10000)
        self.assertIn(len([entry for entry in half.entries() if entry.op == "put"]), range(5, 36))
        half.drop()
        self.assertEqual("changes", feed.info()["name"])
        feed.drop()
        with self.assertRaises(cellar.NoFeed):
            feed.read()

    def test_snapshots(self):
        table = self.db.create_table("t", {"f": "TYPE i64"})
        table.put("r", {"f:n": 1})
        snapshot = self.db.snapshot("s")
        snapshot.create()
        table.put("r", {"f:n": 2})
        self.assertEqual(1, table.at("s").get("r", "f:n"))
        snapshot.drop()

    def test_errors_have_classes(self):
        with self.assertRaises(cellar.NoTable) as caught:
            self.db.table("none").row("r")
        self.assertEqual("NOTABLE", caught.exception.code)
        table = self.db.create_table("t", ["f"])
        for wrong, call in ((cellar.BusyKey, lambda: self.db.create_table("t", ["f"])),
                            (cellar.NoFamily, lambda: table.put("r", {"g:a": 1})),
                            (cellar.BadFilter, lambda: table.count(filter="(")),
                            (cellar.CellarError, lambda: self.db.command("NOSUCH"))):
            with self.assertRaises(wrong):
                call()

    def serve(self, answer):
        """A server that answers so all but what a client says at first; its port, and what it has heard."""
        heard = []

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                while words := self.request.recv(65536):
                    heard.append(words)  # newer clients say several things in one packet
                    begins = words.count(b"CLIENT") + words.count(b"AUTH")
                    self.request.sendall(b"+OK\r\n" * begins if begins else answer())
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_address[1], heard

    def test_what_is_surely_not_done_is_tried_again_and_not_for_ever(self):
        answers = [b"-TRYAGAIN it is moved\r\n", b"-CLUSTERDOWN no leader\r\n", b"-LOADING the dataset\r\n",
                   b"-MASTERDOWN it is behind\r\n", b":7\r\n"]
        port, heard = self.serve(lambda: answers.pop(0))
        with cellar.Cellar(f"redis://127.0.0.1:{port}", wait=60, **self.RESP2) as db:
            self.assertEqual(7, db.command("X"))
            self.assertEqual(5, sum(b"\r\nX\r\n" in words for words in heard))
        for code, kind in (("TRYAGAIN", cellar.TryAgain), ("CLUSTERDOWN", cellar.ClusterDown), ("MASTERDOWN", cellar.CellarError)):
            port, _ = self.serve(lambda: f"-{code} still\r\n".encode())
            with cellar.Cellar(f"redis://127.0.0.1:{port}", wait=0.1, **self.RESP2) as db, self.assertRaises(kind) as caught:
                db.command("X")
            self.assertEqual(code, caught.exception.code)

    def test_a_redirect_is_followed_as_the_same_user_and_not_for_ever(self):
        there, heard = self.serve(lambda: b":7\r\n")
        here, _ = self.serve(lambda: b"-REDIRECT 127.0.0.1:%d\r\n" % there)
        with cellar.Cellar(f"redis://ann:secret@127.0.0.1:{here}", **self.RESP2) as db:
            self.assertEqual([7, 7], [db.command("X"), db.command("X")])
        self.assertIn(b"secret", b"".join(heard))
        circle = []
        circle.append(self.serve(lambda: b"-REDIRECT 127.0.0.1:%d\r\n" % circle[0])[0])
        with cellar.Cellar(f"redis://127.0.0.1:{circle[0]}", wait=0.1, **self.RESP2) as db, self.assertRaises(cellar.Redirect):
            db.command("X")

    def test_a_write_behind_a_lost_connection_is_sent_once_and_a_read_again(self):
        heard = []

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                while words := self.request.recv(65536):
                    if b"CINCRBY" in words or b"CCOUNT" in words:
                        heard.append(words)
                        if b"CINCRBY" in words or len(heard) < 3:
                            return
                        self.request.sendall(b":7\r\n")
                    else:  # what a client says at first; newer ones in one packet
                        self.request.sendall(b"-ERR\r\n" if b"HELLO" in words else b"+OK\r\n" * words.count(b"CLIENT"))
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            db = cellar.Cellar(f"redis://127.0.0.1:{server.server_address[1]}", wait=60, **self.RESP2)
            with self.assertRaises(redis.ConnectionError):
                db.table("t").increment("r", "f:n")
            self.assertEqual(1, len(heard))
            self.assertEqual(7, db.table("t").count())
            self.assertEqual(3, len(heard))
            db.close()
            server.shutdown()

    def test_asyncio(self):
        async def run():
            async with cellar.aio.Cellar(self.url) as db:
                table = await db.create_table("t", {"f": "TYPE i64"})
                await asyncio.gather(*(table.put(f"k{i}", {"f:n": i}) for i in range(50)))
                self.assertEqual(50, len([key async for key, _ in table.scan(page=7)]))
                async with db.transaction() as tx:
                    await tx.table("t").put("r", {"f:n": 1})
                    await tx.table("t").increment("r", "f:n", 4)
                self.assertEqual([True, 5], tx.results)
        asyncio.run(run())

    def test_the_two_clients_are_one(self):
        done = subprocess.run([sys.executable, os.path.join(PACKAGE, "sync.py"), "--check"], check=False)
        self.assertEqual(0, done.returncode)

    def test_types_are_clean(self):
        if shutil.which("mypy") is None:
            self.skipTest("mypy is not installed")
        done = subprocess.run(["mypy", "--config-file", "pyproject.toml", "cellar"], cwd=PACKAGE, capture_output=True,
                              text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout)

    def test_pip_installs_it(self):
        if subprocess.run([sys.executable, "-c", "import setuptools, wheel, pip"], capture_output=True, check=False).returncode:
            self.skipTest("pip, setuptools and wheel are not all there")
        with tempfile.TemporaryDirectory() as folder:
            source, target = os.path.join(folder, "source"), os.path.join(folder, "target")
            shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))
            done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation",
                                   "--target", target, source], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual({name for name in os.listdir(os.path.join(PACKAGE, "cellar")) if name != "__pycache__"},
                             {name for name in os.listdir(os.path.join(target, "cellar")) if name != "__pycache__"})
            done = subprocess.run([sys.executable, "-c", "import cellar.aio; print(cellar.__file__)"], cwd=folder,
                                  env={**os.environ, "PYTHONPATH": target}, capture_output=True, text=True, check=False)
            self.assertEqual((os.path.join(target, "cellar", "__init__.py"), ""), (done.stdout.strip(), done.stderr))

    def test_over_the_newest_redis_py(self):
        """All of this once more, over the redis-py that pip brings."""
        if "CELLAR_REDIS_PY" in os.environ:
            self.skipTest("it is this run")
        folder = os.path.join(ROOT, "build", "pip-python")
        if not os.path.isdir(os.path.join(folder, "redis")):
            done = subprocess.run([sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--target", folder,
                                   "redis"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                self.skipTest("pip cannot bring redis-py: " + (done.stderr.strip().split("\n") or [""])[-1])
        done = subprocess.run([sys.executable, os.path.abspath(__file__)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, env={**os.environ, "PYTHONPATH": folder, "CELLAR_REDIS_PY": folder})
        self.assertEqual(0, done.returncode, done.stderr)

    def test_the_readme_is_true(self):
        with open(os.path.join(PACKAGE, "README.md"), encoding="utf-8") as file:
            blocks = file.read().split("```python\n")[1:]
        scope = {}
        for block in blocks:
            code = block.split("```")[0].replace("redis://localhost:6479", self.url)
            exec(compile(code, "README.md", "exec"), scope)  # its asserts judge
        scope["db"].close()


if __name__ == "__main__":
    unittest.main()
