"""What clients make the server hold, above all replies that nobody reads: counted, bounded, and given back.

Nothing here is about time: a test waits for a figure, and compares figures.
"""

import os
import socket
import time
import unittest

import redis
from cellar_server import is_sanitized, not_on_a_follower
from test_limits import Limits
from test_protocol import command

MB = 1 << 20
ROWS = 40_000
SCAN = command("CSCAN", "big", 0, "COUNT", 100_000_000)


@not_on_a_follower("it counts the clients of a process, and other nodes' links are some; what is passed on: test_any_node")
class ReplyMemoryTest(Limits):
    """One table of 40 MB, one row of 8 MB."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        client = cls.server.client()
        client.execute_command("TABLE", "CREATE", "big", "FAMILY", "f")
        client.execute_command("TABLE", "CREATE", "wide", "FAMILY", "f")
        for begin in range(0, ROWS, 4000):
            pipe = client.pipeline(transaction=False)
            for i in range(begin, begin + 4000):
                pipe.execute_command("CPUT", "big", f"row{i:06d}", "f:a", "x" * 1000)
            pipe.execute()
        for begin in range(0, 80_000, 20_000):
            cells = [word for i in range(begin, begin + 20_000) for word in (f"f:{i:06d}", "y" * 80)]
            client.execute_command("CPUT", "wide", "r", *cells)
        client.close()

    def setUp(self):  # not FLUSHALL, as the others do: the tables stay
        self.redis = self.server.client()
        self.addCleanup(self.redis.close)
        self.redis.ping()

    def client_that_does_not_read(self, data):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", self.server.port))
        connection.sendall(data)
        self.addCleanup(connection.close)
        return connection

    def lines(self):
        """CLIENT LIST without the test's own client."""
        own = self.redis.client_id()
        return [line for line in self.redis.client_list() if int(line["id"]) != own]

    def waiting(self):
        """Bytes that wait for each client."""
        return [int(line["omem"]) for line in self.lines()]

    def ended(self):
        return self.info("stats")["client_output_buffer_limit_disconnections"]

    def read_all(self, connection):
        data = bytearray()
        while piece := connection.recv(MB):
            data += piece
        return bytes(data)

    def assert_counted_and_given_back(self, connections, each_min, each_max):
        """What waits for these clients is seen everywhere, and goes with them."""
        def settled():
            waiting = self.waiting()
            time.sleep(0.1)  # other threads may still be filling the sockets
            return all(bytes_ >= each_min for bytes_ in waiting) and waiting == self.waiting()

        self.wait_until(settled)
        waiting, info = self.waiting(), self.info()
        self.assertEqual(len(connections), len(waiting))
        self.assertLess(max(waiting), each_max)
        self.assertGreaterEqual(info["mem_clients_normal"], sum(waiting))
        self.assertGreaterEqual(info["used_memory"], info["used_memory_dataset"] + sum(waiting))
        self.assertGreaterEqual(self.redis.memory_stats()["clients.normal"], sum(waiting))
        for line in self.lines():
            self.assertGreaterEqual(int(line["tot-mem"]), int(line["omem"]))
        self.assertIn(b"Clients hold", self.redis.execute_command("MEMORY", "DOCTOR"))
        resident = self.resident_bytes()
        for connection in connections:
            connection.close()
        self.wait_until(lambda: self.info()["mem_clients_normal"] < 2 * MB)
        if not is_sanitized():
            # The allocator keeps some of it for the next ones, more on a busy machine.
            self.wait_until(lambda: self.resident_bytes() < resident - sum(waiting) // 2,
                            lambda: f"{self.resident_bytes()} of {resident} bytes, {sum(waiting)} have waited")

    def test_pages_that_nobody_reads(self):
        connections = [self.client_that_does_not_read(SCAN * 50) for _ in range(8)]
        self.assert_counted_and_given_back(connections, 8 * MB, 18 * MB)

    def test_large_pages_are_cut_where_they_should_be(self):
        """Replies that grow in several pieces, of which the last row takes some back."""
        self.redis.execute_command("TABLE", "CREATE", "fat", "FAMILY", "f")
        expected = []
        for i in range(60):
            cells = {f"f:{cell:02d}": f"{i}-{cell}".ljust(1000 + 997 * (i * 7 % 13), "z") for cell in range(70)}
            self.redis.execute_command("CPUT", "fat", f"{i:03d}", *[word for pair in cells.items() for word in pair])
            expected.append([b"%03d" % i, [word.encode() for pair in cells.items() for word in pair]])
        for page in ("300kb", "1mb", "3mb"):
            self.set_for_now("scan-reply-max-bytes", page)
            for options, wanted in (((), expected), (("REVERSE",), expected[::-1])):
                cursor, rows, calls = 0, [], 0
                while cursor != b"0":
                    cursor, more = self.redis.execute_command("CSCAN", "fat", cursor, "COUNT", 1_000_000, *options)
                    rows += more
                    calls += 1
                self.assertGreater(calls, 5)
                self.assertTrue(wanted == rows, (page, options))
        self.redis.execute_command("TABLE", "DROP", "fat")

    def test_wide_rows_that_nobody_reads(self):
        connections = [self.client_that_does_not_read(command("CROW", "wide", "r") * 50) for _ in range(8)]
        self.assert_counted_and_given_back(connections, 3 * MB, 10 * MB)

    def test_the_scans_of_one_exec_are_one_page(self):
        connections = [self.client_that_does_not_read(command("MULTI") + SCAN * 50 + command("EXEC")) for _ in range(4)]
        self.assert_counted_and_given_back(connections, 8 * MB, 18 * MB)

    def test_a_scan_ends_with_its_client(self):
        slow = command("CSCAN", "big", 0, "COUNT", 100_000_000, "FILTER", 'value ~ "(.*x.*){9}z"')
        count = command("CCOUNT", "big", "FILTER", 'value ~ "(.*x.*){9}z"')
        for words, name in ((slow, "cscan"), (count, "ccount")):
            self.redis.config_resetstat()
            for _ in range(20):
                with self.server.connect() as connection:
                    connection.sendall(words)
            self.wait_until(lambda: not self.lines())
            # One that has run to its end counts as a call.
            calls = self.info("commandstats").get("cmdstat_" + name, {"calls": 0})["calls"]
            self.assertLess(calls, 20, name)

    def test_a_client_that_has_left_does_not_wait_for_ever(self):
        with self.server.connect() as connection:
            connection.sendall(command("WAIT", 1, 0))
            self.wait_until(lambda: [line["cmd"] for line in self.lines()] == ["wait"])
        self.wait_until(lambda: not self.lines())

    def test_who_only_sends_no_more_gets_its_replies(self):
        requests = [SCAN, command("CROW", "wide", "r"), command("CCOUNT", "big", "WHERE", "f:a", "GT", "a"),
                    command("CSCAN", "big", 0, "COUNT", 100_000_000, "FILTER", 'value ~ ".*y"'),
                    command("CSCAN", "big", 0, "COUNT", 100_000_000, "STATS", "KEYSONLY"), command("PING"),
                    command("CROW", "wide", "r") * 3 + SCAN + command("PING")]
        for hello in (b"", command("HELLO", 3)):
            for request in requests:
                with self.server.connect() as asking, self.server.connect() as ending:
                    asking.sendall(hello + request + command("QUIT"))
                    expected = self.read_all(asking)
                    ending.sendall(hello + request)
                    ending.shutdown(socket.SHUT_WR)
                    got = self.read_all(ending)
                self.assertTrue(expected.endswith(b"+OK\r\n"))
                if b"STATS" not in request and not hello:  # whose times and ids differ
                    self.assertEqual(expected[:-5], got, request[:60])
                self.assertAlmostEqual(len(expected) - 5, len(got), delta=8)
                self.assertEqual(expected[:4], got[:4])

    def test_the_hard_limit_ends_a_reply_that_is_being_made(self):
        self.set_for_now("client-output-buffer-limit", "normal 2mb 0 0")
        for request in (SCAN, command("CROW", "wide", "r"), command("MULTI") + SCAN * 20 + command("EXEC")):
            ended = self.ended()
            connection = self.client_that_does_not_read(request)
            self.wait_until(lambda: self.ended() > ended)
            self.assertEqual(ended + 1, self.ended())
            try:
                self.assertLess(len(self.read_all(connection)), 2 * MB)
            except ConnectionError:
                pass
        self.wait_until(lambda: self.info()["mem_clients_normal"] < MB)

    def test_what_an_exec_writes_stands_when_its_reply_is_too_long(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.set_for_now("client-output-buffer-limit", "normal 2mb 0 0")
        row = command("CROW", "wide", "r")
        connection = self.client_that_does_not_read(
            command("MULTI") + command("CPUT", "t", "r", "f:a", 1) + row * 20 + command("CPUT", "t", "r", "f:b", 2) +
            command("EXEC"))
        try:
            self.read_all(connection)
        except ConnectionError:
            pass
        self.assertEqual([b"1", b"2"], self.redis.execute_command("CMGET", "t", "r", "f:a", "f:b"))

    def test_the_longest_reply_of_a_row_a_cmget_and_an_exec(self):
        self.set_for_now("reply-max-bytes", "1mb")
        for words in (("CROW", "wide", "r"), ("CSCAN", "wide", 0),
                      ("CMGET", "big", "row000001", *["f:a"] * 2000), ("CMGET", "big", "row000001", *["f:a"] * 2000, "f:none")):
            with self.assertRaisesRegex(redis.ResponseError, "^TOOLARGE .*reply-max-bytes", msg=words[0]):
                self.redis.execute_command(*words)
        self.assertEqual(1, len(self.redis.execute_command("CSCAN", "wide", 0, "CELLS", 1000)[1]))
        pipe = self.redis.pipeline()
        for _ in range(4):
            pipe.execute_command("CMGET", "big", "row000001", *["f:a"] * 600)
        pipe.execute_command("CPUT", "big", "other", "f:a", "1")
        replies = pipe.execute(raise_on_error=False)
        self.assertEqual([list, list, redis.ResponseError, redis.ResponseError, bytes], [type(reply) for reply in replies])
        self.assertRegex(str(replies[2]), "^TOOLARGE")
        self.redis.execute_command("CDEL", "big", "other")

    def test_messages_that_nobody_reads(self):
        """Of MONITOR and of tracking, which have no class of their own."""
        self.set_for_now("client-output-buffer-limit", "pubsub 2mb 0 0")
        self.set_for_now("tracking-names", "row")  # long ones
        hello = command("HELLO", 3)
        for request in (command("MONITOR"), hello + command("CLIENT", "TRACKING", "ON", "BCAST"),
                        command("SUBSCRIBE", "c"), hello + command("PSUBSCRIBE", "*")):
            ended = self.ended()
            self.client_that_does_not_read(request)
            self.wait_until(lambda: len(self.lines()) == 1 and self.lines()[0]["cmd"] != "NULL")
            self.redis.execute_command("TABLE", "CREATE", "u", "FAMILY", "f")
            most = 0
            for i in range(400):
                self.redis.execute_command("CPUT", "u", "x" * 60_000 + str(i), "f:a", "1")
                self.redis.publish("c", "x" * 60_000)
                most = max([most, *self.waiting()])
                if self.ended() > ended:
                    break
            self.assertEqual(ended + 1, self.ended(), request)
            self.assertLess(most, 3 * MB)
            self.redis.execute_command("TABLE", "DROP", "u")
            self.wait_until(lambda: not self.lines())

    def test_one_exec_that_publishes_much_does_not_fill_its_listeners(self):
        self.set_for_now("client-output-buffer-limit", "pubsub 1mb 0 0")
        for _ in range(10):
            self.client_that_does_not_read(command("SUBSCRIBE", "c"))
        self.wait_until(lambda: sum(int(line["sub"]) for line in self.lines()) == 10)
        peak = self.info()["used_memory_peak"]
        pipe = self.redis.pipeline()
        for _ in range(100):
            pipe.publish("c", "x" * 200_000)
        pipe.execute()
        self.assertLess(self.info()["used_memory_peak"] - peak, 100 * MB)
        self.wait_until(lambda: not self.lines())

    def test_what_is_kept_for_a_client_is_counted_and_bounded(self):
        self.set_for_now("client-query-buffer-limit", "1mb")
        name = "n" * 50_000
        requests = ([command("SUBSCRIBE", f"{name}{i}") for i in range(40)],
                    [command("PSUBSCRIBE", f"{name}{i}") for i in range(40)],
                    [command("CWATCH", "big", name + str(i)) for i in range(40)],
                    [command("WATCH", "big")] * 40_000)
        for words in requests:
            before = self.info()["mem_clients_normal"]
            with self.server.connect() as connection:
                connection.sendall(b"".join(words) + command("QUIT"))
                data = b""
                while b"client-query-buffer-limit" not in data:
                    piece = connection.recv(MB)
                    self.assertTrue(piece)
                    data += piece
            connection = self.server.connect()
            self.addCleanup(connection.close)
            connection.sendall(b"".join(words[:10]))
            connection.recv(10)
            if name.encode() in words[0]:
                self.wait_until(lambda: any(int(line["tot-mem"]) > 500_000 for line in self.lines()))
                self.assertGreater(self.info()["mem_clients_normal"], before + 500_000)
            connection.close()
            self.wait_until(lambda: not self.lines())


if __name__ == "__main__":
    unittest.main()
