"""Limits and abuse: whatever a client sends or does not read, the server stays up, small, and answers the others.

test_protocol.py has the limits that concern one request; here are those of many clients, of memory, and of time.
A test that waits for an end (a pattern that would take for ever) needs no clock: it would not come to its end.
"""

import os
import re
import resource
import socket
import struct
import threading
import time
import unittest

import redis
from cellar_server import CellarServer, CellarTest, START_SECONDS_MAX, is_sanitized, not_on_a_follower, wait_until
from test_protocol import READ_SECONDS_MAX, command, exchange

IDLE_CONNECTIONS = 10_000
OWN_FILES = 200


class Limits(CellarTest):
    """Helpers."""

    OPTIONS = {"save": "", "enable-debug-command": "yes"}

    def resident_bytes(self):
        with open(f"/proc/{self.server.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def set_for_now(self, option, value):
        """CONFIG SET until the test ends."""
        before = self.redis.config_get(option)[option]
        self.redis.config_set(option, value)
        self.addCleanup(self.redis.config_set, option, before)

    def info(self, section="memory"):
        return self.redis.info(section)

    def wait_until(self, holds, what=None):
        wait_until(holds, what)

    def ask(self, connection, data):
        connection.sendall(data)
        return connection.recv(1 << 16)


class ClientLimitsTest(Limits):
    """Of connections, one by one and all together."""

    @not_on_a_follower("other nodes are clients too")
    def test_maxclients_counts_and_frees(self):
        self.redis.ping()
        self.wait_until(lambda: self.info("clients")["connected_clients"] == 1)  # those of the test before are gone
        self.set_for_now("maxclients", 4)
        rejected = self.info("stats")["rejected_connections"]
        others = [self.server.connect() for _ in range(3)]
        for connection in others:
            self.assertEqual(b"+PONG\r\n", self.ask(connection, b"PING\r\n"))
        for _ in range(5):
            with self.server.connect() as refused:
                self.assertEqual(b"-ERR max number of clients reached\r\n", refused.recv(100))
                self.assertEqual(b"", refused.recv(100))
        self.assertEqual(rejected + 5, self.info("stats")["rejected_connections"])
        others.pop().close()
        self.wait_until(lambda: self.info("clients")["connected_clients"] == 3)
        with self.server.connect() as accepted:
            self.assertEqual(b"+PONG\r\n", self.ask(accepted, b"PING\r\n"))
        for connection in others:
            connection.close()

    def test_timeout_spares_subscribers_monitors_and_the_busy(self):
        subscriber, monitor, idle = (self.server.connect() for _ in range(3))
        self.assertTrue(self.ask(subscriber, b"SUBSCRIBE c\r\n").startswith(b"*3"))
        self.assertEqual(b"+OK\r\n", self.ask(monitor, b"MONITOR\r\n"))
        self.assertEqual(b"+PONG\r\n", self.ask(idle, b"PING\r\n"))
        busy = self.server.connect()
        self.set_for_now("timeout", 5)
        idle.setblocking(False)

        def gone():
            self.assertEqual(b"+PONG\r\n", self.ask(busy, b"PING\r\n"))
            try:
                return idle.recv(10) == b""
            except BlockingIOError:
                return False
        self.wait_until(gone)
        self.assertEqual(1, self.redis.publish("c", "still there"))
        self.assertIn(b"still there", subscriber.recv(1000))
        for connection in (subscriber, monitor, idle, busy):
            connection.close()

    def test_timeout_spares_who_waits_and_who_reads(self):
        for table in ("t", "quiet"):
            self.run_command("TABLE", "CREATE", table, "FAMILY", "f")
            self.addCleanup(self.run_command, "TABLE", "DROP", table)
        self.run_command("FEED", "CREATE", "feed", "ON", "1", "quiet")
        self.addCleanup(self.run_command, "FEED", "DROP", "feed")
        self.run_command("CPUT", "t", "r", "f:long", "x" * (8 << 20))
        self.run_command("WAITAOF", "1", "0", "0")  # what a feed shows is on disk
        self.server.settle()  # the reader below is a connection of its own
        self.set_for_now("timeout", 5)
        # Four replies of 8 MB, taken at 4 MB a second.
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        reader.settimeout(READ_SECONDS_MAX)
        reader.connect(("127.0.0.1", self.server.port))
        reader.sendall(b"CGET t r f:long\r\n" * 4)
        consumer = self.server.connect()
        consumer.settimeout(READ_SECONDS_MAX)
        consumer.sendall(b"XREAD BLOCK 7000 STREAMS feed $\r\n")
        # It asks again at once: it is idle only since its answer came, however long the reader takes.
        heard = []
        asks_again = threading.Thread(
            target=lambda: heard.extend((consumer.recv(5), self.ask(consumer, b"PING\r\n"))))
        asks_again.start()
        wanted = 4 * len(b"$8388608\r\n" + b"x" * (8 << 20) + b"\r\n")
        got = 0
        while got < wanted:
            piece = reader.recv(400_000)
            self.assertNotEqual(b"", piece, f"closed after {got} bytes")
            got += len(piece)
            time.sleep(len(piece) / (4 << 20))
        asks_again.join()
        self.assertEqual([b"*-1\r\n", b"+PONG\r\n"], heard)
        self.redis.execute_command("CLIENT", "PAUSE", "7000", "WRITE")
        writer = self.server.connect()
        writer.settimeout(READ_SECONDS_MAX)
        writer.sendall(b"CPUT t r f:q 1\r\n")
        self.assertEqual(b"+OK\r\n", writer.recv(100))
        for connection in (reader, consumer, writer):
            connection.close()

    def keepalive_seconds(self, connection):
        """Seconds to the next keepalive probe of the server's side of `connection`, None without a timer."""
        here, there = connection.getsockname(), connection.getpeername()
        wanted = [f"{struct.unpack('<I', socket.inet_aton(address))[0]:08X}:{port:04X}"
                  for address, port in (there, here)]
        with open("/proc/net/tcp", encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if fields[1:3] == wanted:
                    timer, when = fields[5].split(":")
                    return int(when, 16) / os.sysconf("SC_CLK_TCK") if int(timer, 16) == 2 else None
        raise AssertionError(f"{wanted} is not in /proc/net/tcp")

    def test_tcp_keepalive_is_set_and_changed_on_open_connections(self):
        with self.server.connect() as connection:
            self.assertEqual(b"+PONG\r\n", self.ask(connection, b"PING\r\n"))
            self.wait_until(lambda: self.keepalive_seconds(connection) is not None)
            self.assertTrue(200 < self.keepalive_seconds(connection) <= 300)
            self.set_for_now("tcp-keepalive", 60)
            self.assertTrue(0 < self.keepalive_seconds(connection) <= 60)
            self.redis.config_set("tcp-keepalive", 0)
            self.assertIsNone(self.keepalive_seconds(connection))

    def silent_subscriber(self):
        """A subscriber of `c` that reads nothing any more."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(READ_SECONDS_MAX)
        connection.connect(("127.0.0.1", self.server.port))
        self.addCleanup(connection.close)
        self.assertTrue(self.ask(connection, b"SUBSCRIBE c\r\n").startswith(b"*3"))
        return connection

    def test_the_hard_output_limit_of_subscribers(self):
        self.set_for_now("client-output-buffer-limit", "pubsub 1mb 0 0")
        ended = self.info("stats")["client_output_buffer_limit_disconnections"]
        before = self.resident_bytes()
        self.silent_subscriber()
        sent = 0
        while self.redis.publish("c", "x" * 50_000) == 1:
            sent += 50_000
            self.assertLess(sent, 64 << 20)
        self.assertGreater(sent, 1 << 20)
        self.assertEqual(ended + 1, self.info("stats")["client_output_buffer_limit_disconnections"])
        self.assertLess(self.resident_bytes() - before, 16 << 20)

    def test_the_soft_output_limit_of_subscribers_holds_for_its_seconds(self):
        self.set_for_now("client-output-buffer-limit", "pubsub 0 200kb 5")
        self.silent_subscriber()
        for _ in range(200):
            self.assertEqual(1, self.redis.publish("c", "x" * 50_000))
        self.wait_until(lambda: self.redis.publish("c", "x") == 0)

    @not_on_a_follower("who does not read is not answered beyond a megabyte")
    def test_the_hard_output_limit_of_normal_clients(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.redis.execute_command("CPUT", "t", "r", "f:a", "x" * 8_000_000)
        self.set_for_now("client-output-buffer-limit", "normal 2mb 0 0")
        with self.server.connect() as connection:
            connection.sendall(command("CGET", "t", "r", "f:a"))
            received = 0
            try:
                while piece := connection.recv(1 << 20):
                    received += len(piece)
                    time.sleep(0.05)
            except ConnectionError:
                pass
            self.assertLess(received, 8_000_000)
        self.assertTrue(self.redis.ping())

    @unittest.skipIf(is_sanitized(), "sanitizers keep what is freed")
    def test_what_a_large_request_needed_goes_with_it(self):
        """Its client stays, and holds nothing of it."""
        before = self.resident_bytes()
        value = b"x" * (32 << 20)
        for _ in range(8):
            connection = self.server.connect()
            self.addCleanup(connection.close)
            connection.settimeout(60)
            connection.sendall(command("CPUT", "nosuch", "r", "f:a", value))
            self.assertTrue(connection.recv(100).startswith(b"-NOTABLE"))
        self.wait_until(lambda: self.resident_bytes() < before + (100 << 20),
                        lambda: f"{self.resident_bytes()} of {before}")

    def test_ten_thousand_idle_connections_cost_bounded_memory(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most != resource.RLIM_INFINITY and most < IDLE_CONNECTIONS + OWN_FILES:
            self.skipTest(f"only {most} open files are allowed")
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (IDLE_CONNECTIONS + OWN_FILES, most))
        self.redis.ping()
        self.set_for_now("maxclients", IDLE_CONNECTIONS + OWN_FILES // 2)
        memory = self.resident_bytes()
        connections = []
        try:
            for _ in range(IDLE_CONNECTIONS):
                connections.append(self.server.connect())
                connections[-1].sendall(b"PING\r\n")
            for connection in connections:
                self.assertEqual(b"+PONG\r\n", connection.recv(10))
            self.assertLess((self.resident_bytes() - memory) / IDLE_CONNECTIONS, 4096)
            told = self.info("clients")["connected_clients"]
            self.assertGreater(told, IDLE_CONNECTIONS)
            self.assertTrue(self.redis.ping())
        finally:
            for connection in connections:
                connection.close()
        self.wait_until(lambda: self.info("clients")["connected_clients"] < 100)

    def test_a_hundred_slow_readers_cost_bounded_memory(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.redis.execute_command("CPUT", "t", "r", "f:a", "x" * 100_000)
        before = self.resident_bytes()
        connections = [self.server.connect() for _ in range(100)]
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(command("CGET", "t", "r", "f:a") * 100)
        self.assertTrue(self.redis.ping())
        # Each is held back at a megabyte, and what was read at once is answered.
        if not is_sanitized():
            self.assertLess(self.resident_bytes() - before, 100 * (3 << 20))
        told = self.info()["mem_clients_normal"]
        self.assertLess(told, 100 * (3 << 20))
        for connection in connections:
            connection.close()
        self.wait_until(lambda: self.info()["mem_clients_normal"] < 1 << 20)


class RequestLimitsTest(Limits):
    """Of what one client sends."""

    def test_proto_max_bulk_len(self):
        self.set_for_now("proto-max-bulk-len", "1mb")
        fits = b"x" * (1 << 20)
        self.assertEqual(fits, self.redis.execute_command("ECHO", fits))
        refused = b"-ERR Protocol error: invalid bulk length\r\n"
        self.assertEqual(refused, exchange(self.server.port, [b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % (len(fits) + 1)]))

    def test_the_query_buffer_limit_counts_and_tells(self):
        ended = self.info("stats")["client_query_buffer_limit_disconnections"]
        self.set_for_now("client-query-buffer-limit", "1mb")
        with self.server.connect() as connection:
            try:
                connection.sendall(b"*300\r\n$4\r\nECHO\r\n")
                for _ in range(100):
                    connection.sendall(b"$100000\r\n" + b"x" * 100_000 + b"\r\n")
                self.assertEqual(b"", connection.recv(100))
            except ConnectionError:
                pass
        self.wait_until(lambda: self.info("stats")["client_query_buffer_limit_disconnections"] == ended + 1)

    def test_million_argument_commands_in_progress_cost_what_was_sent(self):
        before = self.resident_bytes()
        connections = [self.server.connect() for _ in range(20)]
        for connection in connections:
            connection.sendall(b"*1000000\r\n$3\r\nfoo\r\n")
        self.assertTrue(self.redis.ping())
        self.assertLess(self.resident_bytes() - before, 4 << 20)
        for connection in connections:  # 20,000 arguments more, of a million
            connection.sendall(b"$1\r\nx\r\n" * 20_000)
        self.assertTrue(self.redis.ping())
        self.assertLess(self.resident_bytes() - before, 40 << 20)
        for connection in connections:
            connection.close()

    def test_a_command_of_a_million_arguments_is_answered_and_leaves_nothing(self):
        self.redis.ping()
        before = self.resident_bytes()
        with self.server.connect() as connection:
            connection.sendall(b"*1000000\r\n$3\r\nfoo\r\n" + b"$1\r\nx\r\n" * 999_999)
            self.assertTrue(connection.recv(1000).startswith(b"-ERR unknown command 'foo', with args beginning with: "))
        for _ in range(5):
            self.assertEqual(b"-ERR Protocol error: invalid multibulk length\r\n",
                             exchange(self.server.port, [b"*2147483648\r\n"]))
        self.assertLess(self.resident_bytes() - before, 64 << 20)

    def test_a_queued_transaction_is_bounded(self):
        self.set_for_now("client-query-buffer-limit", "1mb")
        before = self.resident_bytes()
        with self.server.connect() as connection:
            connection.sendall(b"MULTI\r\n")
            self.assertEqual(b"+OK\r\n", connection.recv(10))
            queued = command("ECHO", "x" * 10_000)
            try:
                for _ in range(1000):
                    connection.sendall(queued)
                    connection.recv(100)
            except ConnectionError:
                pass
        self.assertLess(self.resident_bytes() - before, 16 << 20)
        self.assertTrue(self.redis.ping())

    def test_http_is_turned_away_and_runs_nothing(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        body = b"FLUSHALL\r\nTABLE DROP t\r\n"
        for head in (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 24\r\n\r\n",
                     b"post / HTTP/1.1\r\n\r\n", b"Host: localhost\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            answer = exchange(self.server.port, [head + body])
            self.assertNotIn(b"+OK", answer)
            self.assertEqual(1, self.redis.exists("t"), head)
        self.assertIn("SECURITY ATTACK", self.server.log())

    def test_inputs_that_never_end(self):
        for data in (b"a" * 70_000, b"*" + b"1" * 70_000, b"*1\r\n$" + b"1" * 70_000, b"\x00" * 70_000,
                     b"\r\n" * 500_000, b"*0\r\n" * 300_000, b"*-1\r\n" * 300_000):
            exchange(self.server.port, [data])
            self.assertTrue(self.redis.ping())


class MemoryTest(Limits):
    """maxmemory, and what INFO says about memory."""

    def fill(self, table, rows, size):
        pipe = self.redis.pipeline(transaction=False)
        for i in range(rows):
            pipe.execute_command("CPUT", table, f"row{i:06d}", "f:a", "x" * size, "g:b", i)
        pipe.execute()

    def table_bytes(self, name):
        info = self.redis.execute_command("TABLE", "INFO", name)
        return dict(zip(info[::2], info[1::2]))[b"memory"]

    def family_figures(self, table, name):
        info = self.redis.execute_command("FAMILY", "INFO", table, name)
        info = dict(zip(info[::2], info[1::2]))
        return info[b"cells"], info[b"memory"]

    @not_on_a_follower("there is memory of links")
    def test_info_memory_adds_up(self):
        for name in ("a", "b"):
            self.redis.execute_command("TABLE", "CREATE", name, "FAMILY", "f", "FAMILY", "g", "TYPE", "i64")
        self.fill("a", 3000, 100)
        self.fill("b", 500, 1000)
        # What an earlier test has dropped goes by and by.
        in_tables = sum(self.table_bytes(name) for name in ("a", "b"))
        self.wait_until(lambda: self.info()["used_memory_dataset"] <= in_tables)
        info = self.info()
        parts = ("used_memory_startup", "used_memory_dataset", "mem_clients_normal", "mem_aof_buffer", "mem_prepared")
        self.assertEqual(info["used_memory"], sum(info[part] for part in parts))
        self.assertEqual(info["used_memory_overhead"], info["used_memory"] - info["used_memory_dataset"])
        self.assertEqual(info["used_memory_dataset"], in_tables)
        self.assertGreaterEqual(info["used_memory_peak"], info["used_memory_dataset"])
        for name in ("a", "b"):
            cells = [self.family_figures(name, family) for family in ("f", "g")]
            # The rest is the table's own description.
            self.assertTrue(0 <= self.table_bytes(name) - sum(memory for _, memory in cells) < 4096)
            self.assertEqual(self.redis.execute_command("CCOUNT", name, "BY", "CELLS"), sum(n for n, _ in cells))
        self.assertGreater(self.family_figures("b", "f")[1], 500 * 1000)
        self.assertLess(self.family_figures("b", "g")[1], 500 * 100)

    def test_accounting_goes_back_to_where_it_was(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "g", "TYPE", "i64")
        empty = self.table_bytes("t"), self.family_figures("t", "f")
        for _ in range(3):
            self.fill("t", 2000, 300)
            self.assertGreater(self.table_bytes("t"), 2000 * 300)
            self.assertEqual(2000, self.redis.execute_command("CDELRANGE", "t", "ALL"))
            # Rows that have moved away meanwhile are held until they are deleted there.
            self.wait_until(lambda: self.family_figures("t", "f") == (0, 0), lambda: self.family_figures("t", "f"))
            self.wait_until(lambda: self.table_bytes("t") <= empty[0] + 65536)
        before = self.info()["used_memory_dataset"]
        self.fill("t", 2000, 300)
        self.redis.execute_command("FLUSHALL")
        self.wait_until(lambda: self.info()["used_memory_dataset"] <= before)

    @not_on_a_follower("each node has memory of its own")
    def test_beyond_maxmemory_writes_are_refused_and_the_rest_goes_on(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "g", "TYPE", "i64")
        self.fill("t", 1000, 1000)
        # What the load itself took as input is to be gone again; the log's buffers do not count.
        self.wait_until(lambda: self.info()["mem_clients_normal"] < 200_000)
        info = self.info()
        self.set_for_now("maxmemory", info["used_memory"] - info["mem_not_counted_for_evict"] + (1 << 20))
        with self.assertRaisesRegex(redis.ResponseError, "^OOM|^command not allowed when used memory"):
            for i in range(10_000):
                self.redis.execute_command("CPUT", "t", f"more{i}", "f:a", "x" * 1000)
        rows = self.redis.execute_command("CCOUNT", "t")
        self.assertTrue(1500 < rows < 3000, rows)
        digest = self.redis.execute_command("DEBUG", "DIGEST")
        for words in (("CPUT", "t", "r", "f:a", "1"), ("CINCRBY", "t", "r", "g:b", 1), ("CAPPEND", "t", "r", "f:a", "x"),
                      ("CMUTATE", "t", "r", "PUT", "f:a", "x"), ("TABLE", "CREATE", "u", "FAMILY", "f")):
            with self.assertRaises(redis.ResponseError, msg=words):
                self.redis.execute_command(*words)
        self.assertEqual(digest, self.redis.execute_command("DEBUG", "DIGEST"))
        self.assertEqual(b"x" * 1000, self.redis.execute_command("CGET", "t", "row000001", "f:a"))
        self.assertEqual(rows, self.redis.execute_command("CCOUNT", "t"))
        self.redis.execute_command("CDELRANGE", "t", "PREFIX", "more")

        def counted(info):
            return info["used_memory"] - info["mem_not_counted_for_evict"]

        self.wait_until(lambda: counted(self.info()) < self.info()["maxmemory"])
        self.assertEqual(b"OK", self.redis.execute_command("CPUT", "t", "r", "f:a", "1"))


class PatternTest(Limits):
    """Patterns that take exponential time where a star is tried again for each one before it."""

    EVIL = "*a" * 30 + "*b"

    def test_evil_patterns_end(self):
        self.redis.execute_command("TABLE", "CREATE", "a" * 64, "FAMILY", "f")
        self.redis.execute_command("CPUT", "a" * 64, "r", "f:a", "a" * 100_000)
        table = "a" * 64
        for words in (("KEYS", self.EVIL), ("SCAN", "0", "MATCH", self.EVIL), ("TABLE", "LIST", "MATCH", self.EVIL),
                      ("CONFIG", "GET", self.EVIL), ("PUBSUB", "CHANNELS", self.EVIL),
                      ("COMMAND", "LIST", "FILTERBY", "PATTERN", self.EVIL),
                      ("CSCAN", table, "0", "WHERE", "f:a", "MATCH", self.EVIL),
                      ("CSCAN", table, "0", "FILTER", 'value ~ "' + "(a*)*" * 10 + 'b"')):
            answer = self.redis.execute_command(*words)
            self.assertIn(answer, ([], {}, [b"0", []], (0, [])), words)
        listener = self.redis.pubsub()
        listener.psubscribe(self.EVIL)
        self.assertEqual("psubscribe", listener.get_message(timeout=READ_SECONDS_MAX)["type"])
        self.assertEqual(0, self.redis.publish("a" * 100_000, "x"))
        listener.close()


    def test_words_that_a_client_has_us_keep_are_bounded(self):
        """Each of them at 64 KiB, whatever it is for, and nothing of a command is done when one of its words is longer."""
        most = b"x" * (64 << 10)
        for words in (["CLIENT", "SETNAME"], ["CLIENT", "SETINFO", "lib-name"], ["CLIENT", "SETINFO", "lib-ver"],
                      ["HELLO", "2", "SETNAME"], ["SUBSCRIBE", "a"], ["PSUBSCRIBE", "a"], ["SSUBSCRIBE", "a"],
                      ["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX"]):
            connection = self.server.connect()
            self.addCleanup(connection.close)
            for size in (1, 1 << 10, 50 << 20):
                connection.sendall(command(*words, most + b"y" * size))
                said = connection.recv(1000)
                self.assertIn(b"has at most 65536 bytes", said, words)
            connection.sendall(command("CLIENT", "INFO"))
            info = b""
            while b"\r\n" not in info[-2:]:
                info += connection.recv(100_000)
            self.assertIn(b"name= ", info)
            self.assertIn(b"sub=0 psub=0 ssub=0", info)
            connection.sendall(command(*words, most))
            self.assertNotEqual(b"-", connection.recv(1))

    def test_prefixes_of_a_client_are_bounded(self):
        prefixes = [word for i in range(1001) for word in ("PREFIX", f"p{i:04}")]
        with self.assertRaisesRegex(redis.ResponseError, "at most 1000 prefixes"):
            self.redis.execute_command("CLIENT", "TRACKING", "ON", "BCAST", *prefixes)
        with self.redis.client() as one:
            one.execute_command("CLIENT", "TRACKING", "ON", "BCAST", *prefixes[:1000])
            one.execute_command("CLIENT", "TRACKING", "ON", "BCAST", *prefixes[1000:2000])
            with self.assertRaisesRegex(redis.ResponseError, "at most 1000 prefixes"):
                one.execute_command("CLIENT", "TRACKING", "ON", "BCAST", *prefixes[2000:])

    def test_a_feed_is_read_a_few_times_by_a_command(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for name in ("one", "two"):
            self.redis.execute_command("FEED", "CREATE", name, "ON", "1", "t")
            self.redis.execute_command("XGROUP", "CREATE", name, "g", "0")
        self.redis.execute_command("CPUT", "t", "r", "f:a", "1")
        self.redis.execute_command("WAITAOF", "1", "0", "0")
        for head, start in ((["XREAD"], "0"), (["XREAD", "COUNT", "1"], "$"), (["XREADGROUP", "GROUP", "g", "c"], ">")):
            for feeds in (["one"] * 10_000, ["one"] * 9, ["one", "0/one"] * 5, ["two", "one", "0/two"] * 5):
                with self.assertRaisesRegex(redis.ResponseError, "names a feed at most 8 times"):
                    self.redis.execute_command(*head, "STREAMS", *feeds, *[start] * len(feeds))
            for feeds in (["one"] * 8, ["one", "0/two"] * 8):
                self.redis.execute_command(*head, "STREAMS", *feeds, *[start] * len(feeds))


class FileLimitTest(unittest.TestCase):
    """Fewer files than maxclients needs."""

    def test_a_server_short_of_files_warns_and_survives(self):
        server = CellarServer()
        words = server.arguments()
        self.addCleanup(server.close)
        server.arguments = lambda: ["bash", "-c", 'ulimit -n 100; exec "$@"', "bash"] + words
        server.start()
        self.assertRegex(server.log(), re.compile("the system allows 100 open files"))
        connections = []
        for _ in range(150):
            connections.append(server.connect())
        answered = 0
        for connection in connections:
            # Those that it has no files for are not answered.
            connection.settimeout(START_SECONDS_MAX if answered <= 40 else 0.3)
            try:
                connection.sendall(b"PING\r\n")
                answered += connection.recv(100) == b"+PONG\r\n"
            except OSError:
                break
        self.assertGreater(answered, 40)
        for connection in connections:
            connection.close()
        with server.connect() as connection:
            connection.settimeout(START_SECONDS_MAX)
            connection.sendall(b"PING\r\n")
            self.assertEqual(b"+PONG\r\n", connection.recv(100))


if __name__ == "__main__":
    unittest.main()
