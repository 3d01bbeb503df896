"""cellar-import --from-redis: hashes and strings of a real redis-server, their expiry, resuming after kills on either
side; fields that expire by themselves, from a stand-in for a newer Redis; wrong use."""

import contextlib
import os
import random
import shutil
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import CellarTest, free_port, tool, wait_until


# redis-tools holds the server too: it is what it is called as.
REDIS = shutil.which("redis-server") or shutil.which("redis-check-rdb")


class RedisServer:
    """Debian's redis-server on a free port, without files."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="cellar-redis-")
        self.port = free_port()
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.directory,
             "--appendonly", "no"], executable=REDIS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.serves, "redis-server does not start")

    def serves(self):
        with contextlib.suppress(redis.ConnectionError):
            return redis.Redis(port=self.port).ping()
        return False

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class FakeRedis(socketserver.ThreadingTCPServer):
    """Answers the import's commands as Redis 7.4 does, whose fields can expire."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, hashes, expiries):
        self.hashes, self.expiries = hashes, expiries
        super().__init__(("127.0.0.1", 0), FakeRedisHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]


class FakeRedisHandler(socketserver.StreamRequestHandler):
    def handle(self):
        while True:
            line = self.rfile.readline()
            if not line:
                return
            words = []
            for _ in range(int(line[1:])):
                size = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(size + 2)[:-2])
            self.wfile.write(self.answer(words[0].upper(), words[1:]))

    @staticmethod
    def bulk(text):
        return b"$%d\r\n%s\r\n" % (len(text), text)

    def array(self, parts):
        return b"*%d\r\n" % len(parts) + b"".join(parts)

    def answer(self, name, words):
        hashes, expiries = self.server.hashes, self.server.expiries
        if name == b"SCAN":
            return self.array([self.bulk(b"0"), self.array([self.bulk(key) for key in hashes])])
        if name == b"TYPE":
            return b"+hash\r\n"
        if name == b"PEXPIRETIME":
            return b":%d\r\n" % expiries.get((words[0], None), -1 if words[0] in hashes else -2)
        if name == b"HLEN":
            return b":%d\r\n" % len(hashes[words[0]])
        if name == b"HGETALL":
            return self.array([self.bulk(text) for pair in hashes[words[0]].items() for text in pair])
        if name == b"HPEXPIRETIME":
            fields = words[3:]
            return self.array([b":%d\r\n" % expiries.get((words[0], field), -1) for field in fields])
        if name == b"DBSIZE":
            return b":%d\r\n" % len(hashes)
        return b"+OK\r\n"


class FromRedisTest(CellarTest):
    def setUp(self):
        super().setUp()
        self.redis.execute_command("FLUSHALL")
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def words(self, port, *words):
        return [tool("cellar-import"), "-p", str(self.server.port), "t", "--from-redis", f"127.0.0.1:{port}", "-F", "f",
                *words]

    def run_import(self, port, *words, status=0):
        done = subprocess.run(self.words(port, *words), capture_output=True, timeout=300, check=False)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stderr.decode()

    def row(self, key):
        reply = self.redis.execute_command("CROW", "t", key)
        return dict(zip(reply[::2], reply[1::2]))

    def expiry(self, key):
        """Of the row's first cell."""
        return self.redis.execute_command("CROW", "t", key, "WITHTTL")[1][0][-1]


@unittest.skipUnless(REDIS, "there is no redis-server")
class TestFromRedis(FromRedisTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.source = RedisServer()
        cls.addClassCleanup(cls.source.stop)

    def setUp(self):
        super().setUp()
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", 1)
        self.from_redis = redis.Redis(port=self.source.port)
        self.from_redis.flushall()

    def fill(self, rng, keys):
        pipe = self.from_redis.pipeline(transaction=False)
        for number in range(keys):
            fields = {b"f%d" % rng.randrange(40): rng.randbytes(rng.randrange(30)) for _ in range(rng.randrange(1, 8))}
            pipe.hset(b"h:%d" % number, mapping=fields)
            if number % 5000 == 4999:
                pipe.execute()
        pipe.execute()

    def compare(self):
        """Every hash is the row of its name, and there are no others."""
        cursor, seen = "0", 0
        while True:
            cursor, rows = self.redis.execute_command("CSCAN", "t", cursor, "COUNT", 1000)
            pipe = self.from_redis.pipeline(transaction=False)
            for key, _ in rows:
                pipe.hgetall(key)
            for (key, cells), fields in zip(rows, pipe.execute()):
                self.assertEqual(dict(zip(cells[::2], cells[1::2])),
                                 {b"f:" + field: value for field, value in fields.items()}, key)
            seen += len(rows)
            if cursor == b"0":
                break
        self.assertEqual(seen, self.from_redis.dbsize())

    def test_hashes_and_strings(self):
        self.from_redis.hset("user:1", mapping={"name": "Ada", "age": "36", "a:b": "c", b"\x00\xff": b"\r\n\x00"})
        self.from_redis.set("motd", "hello")
        self.from_redis.set(b"bin\x00\xff", b"\x00")
        self.run_import(self.source.port)
        self.assertEqual(self.row("user:1"), {b"f:name": b"Ada", b"f:age": b"36", b"f:a:b": b"c",
                                              b"f:\x00\xff": b"\r\n\x00"})
        self.assertEqual(self.row("motd"), {b"f:value": b"hello"})
        self.assertEqual(self.row(b"bin\x00\xff"), {b"f:value": b"\x00"})

    def test_expiry(self):
        self.from_redis.hset("h", "a", "1")
        self.from_redis.pexpireat("h", 4_000_000_000_123)
        self.from_redis.set("s", "v", px=3_600_000)
        self.from_redis.set("stays", "v")
        self.run_import(self.source.port)
        self.assertEqual(self.expiry("h"), 4_000_000_000_123_000)
        left = self.expiry("s") / 1e6 - time.time()
        self.assertTrue(3000 < left < 3601, left)
        self.assertIsNone(self.expiry("stays"))

    def test_other_types_are_named(self):
        self.from_redis.rpush("list", 1)
        self.from_redis.zadd("zset", {"a": 1})
        self.from_redis.hset("h", "a", "1")
        error = self.run_import(self.source.port, "--errors", self.path("errors"), status=1)
        self.assertIn("2 refused", error)
        with open(self.path("errors")) as file:
            text = file.read()
        self.assertIn("key 'list' is a list", text)
        self.assertIn("key 'zset' is a zset", text)
        self.assertEqual(self.row("h"), {b"f:a": b"1"})

    def test_match_columns_and_delimiter(self):
        self.redis.execute_command("TABLE", "DROP", "t")
        self.from_redis.hset("s:de:5", mapping={"n": "7", "skip": "x", "rest": "y"})
        self.from_redis.hset("other", "a", "1")
        self.run_import(self.source.port, "--match", "s:*", "--key-delimiter", ":", "--create-table", "--key-order",
                        "utf8#utf8#u32", "--family", "f", "--family", "stat TYPE u64", "--column", "n=stat:n:u64",
                        "--ignore", "skip")
        self.assertEqual(self.row("s#de#5"), {b"stat:n": 7, b"f:rest": b"y"})
        self.assertEqual(self.redis.execute_command("CCOUNT", "t"), 1)

    def test_wide_hash_comes_in_pieces(self):
        self.from_redis.hset("wide", mapping={b"%d" % number: b"v%d" % number for number in range(25_000)})
        for number in range(30):
            self.from_redis.hset(f"h{number}", "a", number)
        self.run_import(self.source.port)
        self.compare()

    def test_another_database(self):
        other = redis.Redis(port=self.source.port, db=3)
        other.hset("in3", "a", "1")
        self.addCleanup(other.flushdb)
        self.run_import(self.source.port, "--redis-db", "3")
        self.assertEqual(self.row("in3"), {b"f:a": b"1"})

    def test_dry_run_writes_nothing(self):
        self.fill(random.Random(1), 50)
        self.run_import(self.source.port, "--dry-run", "--show", "2")
        self.assertEqual(self.redis.execute_command("CCOUNT", "t"), 0)

    def test_many_hashes(self):
        keys = int(os.environ.get("CELLAR_REDIS_KEYS", "20000"))
        self.fill(random.Random(5), keys)
        self.assertIn(f"{keys:,} rows", self.run_import(self.source.port))
        self.compare()

    def test_killed_and_resumed(self):
        seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
        print(f"seed {seed}")
        rng = random.Random(seed)
        self.fill(rng, 30_000)
        words = self.words(self.source.port, "--resume", self.path("state"))
        for _ in range(8):
            running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.random() * 0.25)
            running.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
            running.wait()
        self.run_import(self.source.port, "--resume", self.path("state"))
        self.compare()
        times = {entry[0][0] for reply in self.redis.execute_command("CSCAN", "t", "0", "COUNT", 20000, "WITHTS")[1]
                 for entry in reply[1][1::2]}
        self.assertEqual(len(times), 1)  # of the first run
        self.assertIn("nothing was left to do", self.run_import(self.source.port, "--resume", self.path("state")))

    def test_the_server_is_killed(self):
        self.fill(random.Random(3), 20_000)
        running = subprocess.Popen(self.words(self.source.port, "--resume", self.path("state")), stderr=subprocess.DEVNULL)
        run = self.redis.execute_command
        wait_until(lambda: run("EXISTS", "t") and run("CCOUNT", "t") > 0, "rows come")
        self.server.kill()
        running.wait()
        self.server.start()
        self.redis = self.server.client()
        self.run_import(self.source.port, "--resume", self.path("state"))
        # What the kill has taken from the log's end comes from a run of its own.
        self.run_import(self.source.port)
        self.compare()

    def test_wrong_use(self):
        for words, text in ((["--key", "k"], "--key does not go with --from-redis"),
                            (["--format", "csv"], "--format does not go"), (["--redis-db", "99"], "")):
            self.assertIn(text, self.run_import(self.source.port, *words, status=2))
        for place in ("127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", ":6379"):
            done = subprocess.run([tool("cellar-import"), "t", "--from-redis", place, "-F", "f"], capture_output=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("is not HOST:PORT", done.stderr.decode())
        done = subprocess.run([tool("cellar-import"), "t", "--from-redis", "127.0.0.1:1"], capture_output=True, check=False)
        self.assertIn("--default-family is required", done.stderr.decode())
        self.run_import(free_port(), status=2)
        self.assertIn("goes with --from-redis", subprocess.run(
            [tool("cellar-import"), "t", "--match", "x", "-k", "k"], capture_output=True, check=False).stderr.decode())


class TestFieldExpiry(FromRedisTest):
    def test_fields_expire_by_themselves(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        source = FakeRedis({b"a": {b"x": b"1", b"y": b"2"}, b"b": {b"x": b"3"}},
                           {(b"a", b"x"): 4_000_000_000_000, (b"b", None): 4_100_000_000_000,
                            (b"b", b"x"): 4_200_000_000_000})
        self.addCleanup(source.server_close)
        self.addCleanup(source.shutdown)
        self.run_import(source.port)
        reply = self.redis.execute_command("CROW", "t", "a", "WITHTTL")
        self.assertEqual([reply[1][0][-1], reply[3][0][-1]], [4_000_000_000_000_000, None])
        self.assertEqual(self.expiry("b"), 4_100_000_000_000_000)

    def test_a_source_that_hangs_up(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()

            def hang_up():
                peer, _ = listener.accept()
                peer.recv(100)
                peer.close()

            threading.Thread(target=hang_up, daemon=True).start()
            self.run_import(listener.getsockname()[1], status=2)


if __name__ == "__main__":
    unittest.main()
