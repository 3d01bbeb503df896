"""Long reads in threads beside the loop (read-threads): replies, order, limits and rights as ever.

Every test holds whether the read is still going on or has just ended when something else happens: what
clients see may not depend on that. That reads are in the threads at all, INFO's reads_in_threads tells.
"""

import os
import random
import re
import socket
import threading
import time
import unittest

import redis
from cellar_server import CellarServer, CellarTest, not_on_a_follower, wait_until
from test_protocol import command

ROWS = 12_000
SLOW = 'value ~ "(a|b)*[0-9]+x?y?z?[0-9]*[^q]*q"'  # holds nowhere, and takes its time
READ_SECONDS_MAX = 600  # a hang must end; a busy machine comes nowhere near it
SEED = int(os.environ.get("CELLAR_SEED", time.time_ns() % 1_000_000))


def fill(client, table="t", rows=ROWS):
    """Rows of four cells and a family of longer values, two in a group of their own."""
    client.execute_command("TABLE", "CREATE", table, "KEY", "utf8#u32", "FAMILY", "n", "TYPE", "i64", "VERSIONS", "2",
                           "FAMILY", "s", "GROUP", "other", "COMPRESS", "lz4", "FAMILY", "gone")
    for begin in range(0, rows, 1000):
        pipe = client.pipeline(transaction=False)
        for row in range(begin, begin + 1000):
            pipe.execute_command("CPUT", table, f"{'abcdefgh'[row % 8]}#{row}", "n:a", row, "n:b", -row, "n:c", row % 10,
                                 "s:text", f"ab{row:06d} " + "lorem ipsum " * (12 if row % 50 == 0 else 2), "gone:x", "y")
        pipe.execute()


class Sender:
    """A socket whose replies are read when they are wanted."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=READ_SECONDS_MAX)
        self.reader = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(command(*words))

    def read(self):
        """One RESP2 reply; an error is its text as str."""
        line = self.reader.readline()
        if not line:
            raise ConnectionError("closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            return rest.decode()
        if kind == b"$":
            return None if rest == b"-1" else self.reader.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def ask(self, *words):
        self.send(*words)
        return self.read()

    def close(self):
        self.reader.close()
        self.socket.close()


@not_on_a_follower("the threads are those of who answers")
class ReadThreadsTest(CellarTest):
    """With one thread; below with two."""

    THREADS = 1
    OPTIONS = {"save": "", "enable-debug-command": "yes", "tracking-names": "table"}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with cls.server.client() as client:
            client.config_set("read-threads", cls.THREADS)

    def setUp(self):
        super().setUp()
        fill(self.redis)
        self.senders = []
        self.before = self.in_threads()

    def tearDown(self):
        for sender in self.senders:
            sender.close()
        self.assertTrue(self.redis.ping())

    def connect(self):
        self.senders.append(Sender(self.server.port))
        return self.senders[-1]

    def in_threads(self):
        return int(self.redis.info("stats")["reads_in_threads"])

    def reads_go_to_threads(self, at_least=1):
        went = self.in_threads() - self.before
        self.assertGreaterEqual(went, at_least)

    def run_beside(self, words, *others):
        """Several of the same read, and commands of others while they go on; the replies."""
        readers = [self.connect() for _ in range(3)]
        other = self.connect()
        begun = self.in_threads()
        for reader in readers:
            reader.send(*words)
            reader.send("ECHO", "behind")
        if int(os.environ.get("CELLAR_IO_THREADS", "1")) > 1:  # which keep no order between connections
            deadline = time.monotonic() + READ_SECONDS_MAX
            while self.in_threads() < begun + len(readers):
                self.assertLess(time.monotonic(), deadline, words)
        answers = [other.ask(*w) for w in others]
        replies = [reader.read() for reader in readers]
        for reader in readers:
            self.assertEqual(reader.read(), b"behind")
        return replies, answers

    READS = [
        "CSCAN t 0 COUNT 100000", "CSCAN t 0 COUNT 100000 COLUMNS 1 s KEYSONLY", "CSCAN t 0 COUNT 3000 REVERSE",
        "CSCAN t 0 COUNT 100000 WHERE n:a GT 6000 COLUMNS 1 n:c", "CSCAN t 0 CELLS 20000", "CCOUNT t BY CELLS FAMILIES 1 n",
        "CSCAN t 0 COUNT 100000 PREFIX c# VERSIONS ALL WITHTS", "CSCAN t 0 EACH 1 700 COUNT 100000",
        "CAGG t BY KEY 1 REDUCE SUM n REDUCE DISTINCT s:text", "CAGG t BY KEY REDUCE COUNT *", "CSCAN t 0 COUNT 5000 STATS",
    ]

    def test_replies_are_those_of_the_loop(self):
        for words in self.READS:
            self.redis.config_set("read-threads", 0)
            reader = self.connect()
            want = reader.ask(*words.split())
            self.redis.config_set("read-threads", self.THREADS)
            got = reader.ask(*words.split())
            if "STATS" in words:
                self.assertEqual(want[2][:8], got[2][:8])
                want, got = want[:2], got[:2]
            self.assertEqual(want, got, words)
            while isinstance(got, list) and isinstance(got[0], bytes) and got[0] != b"0" and "CAGG" not in words:
                page = words.replace(" 0 ", f" {got[0].decode()} ").split()
                self.redis.config_set("read-threads", 0)
                want = reader.ask(*page)
                self.redis.config_set("read-threads", self.THREADS)
                got = reader.ask(*page)
                if "STATS" in words:
                    want, got = want[:2], got[:2]
                self.assertEqual(want, got, words)
        self.reads_go_to_threads(len(self.READS) // 2)

    def test_small_reads_stay_in_the_loop(self):
        reader = self.connect()
        for words in ("CSCAN t 0", "CSCAN t 0 COUNT 300", "CROW t a#0", "CCOUNT t PREFIX a#0", "CSCAN t 0 ROWS 1 a#0",
                      "CAGG t PREFIX a#80 REDUCE COUNT *"):
            reader.ask(*words.split())
            self.assertEqual(self.in_threads(), self.before, words)

    def test_a_read_sees_one_moment_while_others_write(self):
        stop = threading.Event()

        def write(number):
            rng = random.Random(number)
            with self.server.client() as client:
                while not stop.is_set():
                    row = rng.randrange(ROWS)
                    key = f"{'abcdefgh'[row % 8]}#{row}"
                    client.execute_command("CMUTATE", "t", key, "INCR", "n:a", 1, "INCR", "n:b", -1)
                    client.execute_command("CPUT", "t", key, "s:text", "ab%d" % rng.randrange(10**6))

        writers = [threading.Thread(target=write, args=(i,)) for i in range(2)]
        for writer in writers:
            writer.start()
        try:
            reader = self.connect()
            want = sum(row % 10 for row in range(ROWS))
            for _ in range(8):
                rows = reader.ask("CSCAN", "t", "0", "COUNT", "100000", "COLUMNS", "1", "n")[1]
                self.assertEqual(len(rows), ROWS)
                self.assertEqual(sum(int(cells[i + 1]) for _, cells in rows for i in range(0, len(cells), 2)), want)
                self.assertEqual(reader.ask("CAGG", "t", "REDUCE", "SUM", "n")[0][1][1], want)
                self.assertEqual(reader.ask("CCOUNT", "t", "BY", "CELLS", "WHERE", "n:c", "GE", "0"), 5 * ROWS)
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        self.reads_go_to_threads(16)

    def test_what_becomes_of_the_table_does_not_matter(self):
        read = "CSCAN t 0 COUNT 100000".split()
        changes = [
            ["FAMILY DROP t gone"], ["FAMILY ADD t more", "CPUT t a#0 more:x 1"], ["FAMILY ALTER t n VERSIONS 1"],
            ["CDELRANGE t PREFIX a"], ["COPY t u", "TABLE DROP t", "RENAME u t"], ["RENAME t w", "RENAME w t"],
            ["INDEX CREATE t i ON 1 n:c"], ["SNAPSHOT CREATE s TABLE 1 t", "SNAPSHOT DROP s"], ["DEBUG RELOAD"],
            ["TABLE DROP t"]]
        for words in changes:
            want = self.connect().ask(*read)
            replies, answers = self.run_beside(read, *[w.split() for w in words])
            self.assertFalse([a for a in answers if isinstance(a, str)], words)
            for reply in replies:
                # Those that the server read behind the change see it.
                if reply != want:
                    now = self.connect().ask(*read)
                    self.assertEqual(str(reply)[:300], str(now)[:300], words)
                    self.assertEqual(reply, now, words)
        fill(self.redis)
        replies, _ = self.run_beside(["CCOUNT", "t", "FILTER", SLOW], ["FLUSHALL"])
        for reply in replies:
            self.assertIn(reply, (0, "NOTABLE no table 't' in keyspace '0'"))
        self.assertEqual(self.redis.execute_command("TABLE", "LIST"), [])

    def test_clients_that_leave_or_are_killed_end_their_reads(self):
        for _ in range(6):
            readers = [self.connect() for _ in range(4)]
            numbers = [reader.ask("CLIENT", "ID") for reader in readers]
            for reader, words in zip(readers, (["CSCAN", "t", "0", "COUNT", "100000", "FILTER", SLOW],
                                               ["CAGG", "t", "BY", "KEY", "REDUCE", "DISTINCT", "*"],
                                               ["CCOUNT", "t", "FILTER", SLOW], ["CSCAN", "t", "0", "COUNT", "100000"])):
                reader.send(*words)
            for number in numbers[:2]:
                self.redis.execute_command("CLIENT", "KILL", "ID", number)
            for reader in readers[2:]:
                reader.close()
                self.senders.remove(reader)
            for reader in readers[:2]:
                with self.assertRaises((ConnectionError, OSError)):
                    while True:
                        reader.read()
        self.reads_go_to_threads(4)
        # Nothing holds what is dropped.
        self.redis.execute_command("TABLE", "DROP", "t")
        fill(self.redis)
        self.assertEqual(self.redis.execute_command("CCOUNT", "t", "BY", "CELLS", "FILTER", "value > 0"), ROWS * 2 - 1 - ROWS // 10)

    def test_a_right_that_is_lost_ends_the_read(self):
        self.redis.execute_command("ACL", "SETUSER", "reader", "on", "nopass", "+@all", "~*")
        readers = [self.connect() for _ in range(3)]
        for reader in readers:
            self.assertEqual(reader.ask("AUTH", "reader", "x"), b"OK")
            reader.send("CCOUNT", "t", "FILTER", SLOW)
        self.redis.execute_command("ACL", "SETUSER", "reader", "resetkeys", "~other")
        for reader in readers:
            reply = reader.read()
            self.assertTrue(reply == 0 or reply.startswith("NOPERM"), reply)
            self.assertTrue(reader.ask("CCOUNT", "t").startswith("NOPERM"))
        self.redis.execute_command("ACL", "DELUSER", "reader")

    def test_limits_of_replies(self):
        pipe = self.redis.pipeline(transaction=False)
        for i in range(0, 40_000, 1000):
            pipe.execute_command("CPUT", "t", "wide#1", *[x for k in range(i, i + 1000) for x in (f"s:{k:06d}", "v" * 90)])
        pipe.execute()
        self.redis.config_set("reply-max-bytes", "1mb")
        try:
            reader = self.connect()
            self.assertRegex(reader.ask("CROW", "t", "wide#1"), "^TOOLARGE row 'wide#1'")
            self.assertRegex(reader.ask("CROWS", "t", "1", "wide#1"), "^TOOLARGE")
            # Rows that cross pieces of the reply, each with another number of digits in its count.
            rows = [f"uneven#{i}" for i in range(6)]
            for i, row in enumerate(rows):
                for begin in range(0, 4 ** (i + 1), 500):
                    names = [x for k in range(begin, min(begin + 500, 4 ** (i + 1))) for x in (f"s:{k:06d}", "v" * 1000)]
                    self.redis.execute_command("CPUT", "t", row, *names)
                    self.redis.execute_command("CPUT", "t", row, *names)
            for order in (rows, rows[::-1], rows * 2):
                for words in ((), ("VERSIONS", "2"), ("WITHTS",)):
                    self.assertRegex(reader.ask("CROWS", "t", str(len(order)), *order, *words), "^TOOLARGE")
            for limit in ("500kb", "700kb"):
                self.redis.config_set("scan-reply-max-bytes", limit)
                cursor, seen = b"0", 0
                while isinstance(cursor, bytes) and (cursor != b"0" or seen == 0):
                    reply = reader.ask("CSCAN", "t", cursor, "PREFIX", "uneven", "VERSIONS", "2", "COUNT", "100000")
                    if isinstance(reply, str):  # the last rows are too large for any page
                        self.assertRegex(reply, "^TOOLARGE row 'uneven#[45]'")
                        break
                    cursor, seen = reply[0], seen + len(reply[1])
                self.assertGreaterEqual(seen, 4)
            cursor, rows = reader.ask("CSCAN", "t", "0", "PREFIX", "wide", "CELLS", "100000")
            self.assertLess(sum(len(c) for c in rows[0][1]), 1 << 20)
            self.assertNotEqual(cursor, b"0")
            self.assertRegex(reader.ask("CAGG", "t", "BY", "KEY", "BY", "COLUMN", "REDUCE", "SUM", "n"), "^TOOLARGE .*reply-max-bytes")
        finally:
            self.redis.config_set("reply-max-bytes", "512mb")
            self.redis.config_set("scan-reply-max-bytes", "16mb")
        self.redis.config_set("agg-max-memory", "1mb")
        try:
            self.assertRegex(reader.ask("CAGG", "t", "BY", "KEY", "REDUCE", "SUM", "n"), "^TOOLARGE .*agg-max-memory")
        finally:
            self.redis.config_set("agg-max-memory", "64mb")
        self.redis.config_set("client-output-buffer-limit", "normal 300kb 0 0")
        try:
            # Seen while the reply grows, or when it is sent: it is not, but to a client that takes it.
            reader = self.connect()
            reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.send("CSCAN", "t", "0", "COUNT", "100000")
            wait_until(lambda: int(self.redis.info("stats")["client_output_buffer_limit_disconnections"]) != 0)
        finally:
            self.redis.config_set("client-output-buffer-limit", "normal 256mb 64mb 60")
        self.reads_go_to_threads(4)

    def test_a_client_that_does_not_read_costs_a_page(self):
        used = int(self.redis.info("memory")["used_memory"])
        self.redis.config_set("scan-reply-max-bytes", "500kb")
        try:
            readers = [self.connect() for _ in range(4)]
            for reader in readers:
                for _ in range(5):
                    reader.send("CSCAN", "t", "0", "COUNT", "100000")
            for _ in range(50):
                self.assertEqual(self.redis.execute_command("CGET", "t", "a#0", "n:a"), 0)
            self.assertLess(int(self.redis.info("memory")["used_memory"]) - used, len(readers) * (8 << 20))
            for reader in readers:
                pages = [reader.read() for _ in range(5)]
                self.assertTrue(all(page == pages[0] for page in pages))
        finally:
            self.redis.config_set("scan-reply-max-bytes", "16mb")
        self.reads_go_to_threads(4)

    def test_transactions_read_in_the_loop(self):
        pipe = self.redis.pipeline(transaction=True)
        pipe.execute_command("CPUT", "t", "a#0", "n:c", 1000)
        pipe.execute_command("CSCAN", "t", 0, "COUNT", 100000, "KEYSONLY")
        pipe.execute_command("CAGG", "t", "REDUCE", "SUM", "n:c")
        pipe.execute_command("CCOUNT", "t", "FILTER", SLOW)
        _, scanned, summed, counted = pipe.execute()
        self.assertEqual((len(scanned[1]), counted), (ROWS, 0))
        self.assertEqual(summed[0][1][1], 1000 + sum(row % 10 for row in range(ROWS)))
        self.assertEqual(self.in_threads(), self.before)

    def test_what_is_read_is_tracked(self):
        reader = self.connect()
        listener = self.connect()
        number = listener.ask("CLIENT", "ID")
        listener.ask("SUBSCRIBE", "__redis__:invalidate")
        self.assertEqual(reader.ask("CLIENT", "TRACKING", "ON", "REDIRECT", number), b"OK")
        reader.send("CSCAN", "t", "0", "COUNT", "100000")
        self.redis.execute_command("CPUT", "t", "c#2", "n:a", 5)
        reader.read()
        self.redis.execute_command("CPUT", "t", "c#2", "n:a", 6)
        self.assertEqual(listener.read(), [b"message", b"__redis__:invalidate", [b"t"]])

    def test_the_number_of_threads_changes_while_reads_go_on(self):
        readers = [self.connect() for _ in range(4)]
        for threads in (3, 0, 1, 5, self.THREADS):
            for reader in readers:
                reader.send("CSCAN", "t", "0", "COUNT", "100000", "COLUMNS", "1", "n:c")
            self.redis.config_set("read-threads", threads)
            for reader in readers:
                self.assertEqual(len(reader.read()[1]), ROWS)
        with self.assertRaisesRegex(redis.ResponseError, "read-threads.*between 0 and 64"):
            self.redis.config_set("read-threads", 65)

    def test_two_clients_read_one_snapshot_cursor(self):
        """The one that comes to the end first ends the cursor, not the other one's read."""
        first = self.connect().ask("CSCAN", "t", "0", "COUNT", "5000", "SNAPSHOT")
        self.redis.execute_command("CDELRANGE", "t", "PREFIX", "h")
        readers = [self.connect() for _ in range(3)]
        for reader in readers:
            reader.send("CSCAN", "t", first[0], "COUNT", "100000", "SNAPSHOT", "WHERE", "n:c", "GE", "0")
        replies = [reader.read() for reader in readers]
        for reply in replies:
            if isinstance(reply, str):
                self.assertRegex(reply, "^STALECURSOR")  # it came when another one had been answered
            else:
                self.assertEqual((reply[0], len(reply[1])), (b"0", ROWS - 5000))
        self.assertIsInstance(replies[0], list)
        self.assertRegex(self.connect().ask("CSCAN", "t", first[0], "COUNT", "10", "SNAPSHOT"), "^STALECURSOR")

    def test_statistics_tell_of_them(self):
        self.redis.config_resetstat()
        self.redis.config_set("slowlog-log-slower-than", 1000)
        self.redis.execute_command("SLOWLOG", "RESET")
        self.before = 0
        try:
            self.assertEqual(self.redis.execute_command("CCOUNT", "t", "FILTER", SLOW), 0)
            entries = [e for e in self.redis.slowlog_get() if e["command"].startswith(b"CCOUNT t FILTER")]
            self.assertEqual(len(entries), 1)
            self.assertGreater(entries[0]["duration"], 1000)
            stats = self.redis.info("commandstats")["cmdstat_ccount"]
            self.assertEqual(stats["calls"], 1)
            self.assertGreaterEqual(stats["usec"], entries[0]["duration"])
        finally:
            self.redis.config_set("slowlog-log-slower-than", 10_000)
        self.reads_go_to_threads()

    def test_heat_is_told_where_rows_were_read(self):
        self.redis.config_set("heat-sample", 1)
        try:
            for _ in range(10):
                self.redis.execute_command("CCOUNT", "t", "FILTER", SLOW)
            text = str(self.redis.execute_command("HEAT", "t"))
            self.assertTrue(re.search(r"[1-9]\d{3}", text), text[:500])
        finally:
            self.redis.config_set("heat-sample", 64)

    def test_shutdown_ends_reads(self):
        for signal_first in (False, True):
            with CellarServer(save="", read_threads=self.THREADS, agg_threads=2) as server:
                with server.client() as client:
                    fill(client, rows=4000)
                readers = [Sender(server.port) for _ in range(4)]
                for reader in readers:
                    reader.send("CCOUNT", "t", "FILTER", SLOW)
                    reader.send("CAGG", "t", "BY", "KEY", "REDUCE", "DISTINCT", "*")
                if not signal_first:
                    readers[0].close()
                self.assertEqual(server.stop(), 0, server.log())
                for reader in readers:
                    reader.close()


@not_on_a_follower("the threads are those of who answers")
class TwoReadThreadsTest(ReadThreadsTest):
    """The same with two."""

    THREADS = 2


class DifferentialTest(CellarTest):
    """Random reads of a frozen table, by the loop and by two threads, while others write and change it."""

    OPTIONS = {"save": "", "enable-debug-command": "yes"}
    READS = int(os.environ.get("CELLAR_READS", "20"))
    CHANGES = ["FAMILY ADD t x", "FAMILY DROP t x", "CDELRANGE t PREFIX b", "RENAME t u", "RENAME u t",
               "FAMILY ALTER t n VERSIONS 1", "FAMILY ALTER t n VERSIONS 3", "DEBUG RELOAD"]

    def random_read(self, rng):
        """A read without a cursor, as words."""
        rows = rng.choice([[], ["PREFIX", rng.choice("abcdefgh")], ["RANGE", "[b", f"({rng.choice('cdefg')}"], ["REVERSE"],
                           ["EACH", "1", str(rng.randrange(1, 900))], ["WHERE", "n:c", rng.choice(["GT", "NE", "LE"]), str(rng.randrange(10))],
                           ["WHERE", "s:text", "MATCH", "ab*%d*" % rng.randrange(10)], ["NOINDEX"]])
        cells = rng.choice([[], ["COLUMNS", "1", "n"], ["COLUMNS", "2", "s:text", "n:a"], ["VERSIONS", "ALL", "WITHTS"], ["PERROW", "2"],
                            ["FILTER", 'value ~ "ab.*5"'], ["FILTER", "family = n | limit(2)"], ["COLREVERSE"], ["TYPES"]])
        kind = rng.choice(["CSCAN", "CSCAN", "CSCAN", "CCOUNT", "CAGG"])
        if kind == "CCOUNT":
            return ["CCOUNT", "t@s", "BY", rng.choice(["ROWS", "CELLS", "COLUMNS"])] + rows + cells
        if kind == "CAGG":
            if rows[:1] == ["EACH"]:
                rows = []
            return ["CAGG", "t@s"] + rows + rng.choice([[], ["BY", "KEY", "1"], ["BY", "COLUMN"]]) + ["REDUCE", "COUNT", "*", "REDUCE", "SUM", "n:a"]
        page = rng.choice([["COUNT", "100000"], ["COUNT", "2500"], ["CELLS", "9000", "COUNT", "100000"], ["KEYSONLY", "COUNT", "100000"]])
        return ["CSCAN", "t@s", "0"] + rows + cells + page

    def test_threads_answer_what_the_loop_answers(self):
        fill(self.redis, rows=8000)
        self.redis.execute_command("SNAPSHOT", "CREATE", "s", "TABLE", "1", "t")
        stop = threading.Event()

        def disturb():
            rng = random.Random(SEED)
            with self.server.client() as client:
                i = 0
                while not stop.is_set():
                    i += 1
                    row = rng.randrange(8000)
                    client.execute_command("CPUT", "t", f"{'abcdefgh'[row % 8]}#{row}", "n:c", i, "s:text", "zz")
                    time.sleep(0.001)
                    if i % 200 == 0:
                        client.execute_command(*rng.choice(self.CHANGES).split())

        def disturb_safely():
            while not stop.is_set():
                try:
                    disturb()
                except redis.ResponseError:
                    pass  # it is not there at the moment, or there already

        def leave():
            rng = random.Random(SEED + 1)
            while not stop.is_set():
                sender = Sender(self.server.port)
                sender.send(*self.random_read(rng))
                time.sleep(rng.random() / 20)
                sender.close()
                time.sleep(0.05)

        threads = [threading.Thread(target=disturb_safely), threading.Thread(target=leave)]
        for thread in threads:
            thread.start()
        rng = random.Random(SEED)
        reader = Sender(self.server.port)
        try:
            for _ in range(self.READS):
                words = self.random_read(rng)
                for _ in range(2):
                    self.redis.config_set("read-threads", 0)
                    want = reader.ask(*words)
                    self.redis.config_set("read-threads", 2)
                    got = reader.ask(*words)
                    self.assertEqual(want, got, f"CELLAR_SEED={SEED} {words}")
                    if words[0] != "CSCAN" or isinstance(want, str) or want[0] == b"0":
                        break
                    words[2] = want[0]
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            reader.close()


if __name__ == "__main__":
    unittest.main()
