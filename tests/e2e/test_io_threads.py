"""io-threads above 1: other threads read, write and speak TLS; what clients see stays the same.

What is said of connections, order and limits elsewhere is tested here once more with three threads (the classes below
that have their tests from test_protocol and test_turns); `make test-threads` runs all of tests/e2e so.
"""

import contextlib
import random
import socket
import threading
import unittest

import redis
import test_protocol
import test_turns
from cellar_server import CellarServer, CellarTest, is_sanitized, not_on_a_follower, not_with_local_reads, wait_until
from test_protocol import READ_SECONDS_MAX, command

THREADS = 3


class LimitsByThreads(test_protocol.LimitsTest):
    """Limits and order of one connection."""

    OPTIONS = {**test_protocol.LimitsTest.OPTIONS, "io-threads": THREADS}


class TurnsByThreads(test_turns.TurnsTest):
    """Many connections at once."""

    # Of connections of two threads nobody can say which one sent first.
    OPTIONS = {**test_turns.TurnsTest.OPTIONS, "io-threads": 2}


# The modules' own tests run in their own files.
del test_protocol, test_turns


def fields(line):
    """A line of CLIENT LIST as a dict."""
    return dict(word.split("=", 1) for word in line.split(" ") if "=" in word)


class ThreadsTest(CellarTest):
    """What is new with threads."""

    OPTIONS = {"io-threads": THREADS, "save": ""}

    def setUp(self):
        super().setUp()
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", "1")

    def clients(self):
        """CLIENT LIST, line by line, without the links of other nodes."""
        lines = self.raw("CLIENT", "LIST").decode().splitlines()
        clients = [fields(line) for line in lines if line.startswith("id=")]
        return [client for client in clients if client["flags"] not in ("S", "M", "F")]

    def raw(self, *words):
        """A reply's bytes, of a connection of its own."""
        with self.server.connect() as client:
            client.sendall(command(*words) + command("QUIT"))
            answer = b""
            while piece := client.recv(1 << 16):
                answer += piece
            return answer

    def info(self, name):
        """A number of INFO."""
        return int(self.redis.info("everything")[name])

    @not_on_a_follower("other nodes are clients too")
    def test_connections_are_spread_evenly_and_info_counts_them(self):
        """As many of each thread, whoever comes and goes."""
        sockets = [self.server.connect() for _ in range(200)]
        for client in sockets:
            client.sendall(command("PING"))
        for client in sockets:
            self.assertEqual(client.recv(100), b"+PONG\r\n")
        for client in sockets[:150:3]:
            client.close()
        self.wait_until(lambda: len(self.clients()) <= 200 - 50 + 2)
        more = [self.server.connect() for _ in range(51)]
        for client in more:
            client.sendall(command("PING"))
            self.assertEqual(client.recv(100), b"+PONG\r\n")
        counts = {}
        for line in self.clients():
            counts[line["io-thread"]] = counts.get(line["io-thread"], 0) + 1
        self.assertEqual(set(counts), {"1", "2"})
        self.assertLessEqual(abs(counts["1"] - counts["2"]), 2, counts)
        self.assertEqual(self.redis.info("server")["io_threads_active"], 1)
        self.assertGreater(self.info("io_threaded_reads_processed"), 250)
        self.assertGreater(self.info("io_threaded_writes_processed"), 250)
        for client in sockets + more:
            client.close()

    def wait_until(self, done):
        """What happens a moment later."""
        wait_until(done, "it did not happen")

    def test_pipelines_of_all_sizes_are_answered_whole_and_in_order(self):
        """Values from nothing to a megabyte, read in pieces of any size, on connections of both threads."""
        seed = random.randrange(1 << 30)
        failures = []

        def run(number):
            rng = random.Random(seed + number)
            try:
                with self.server.connect() as client:
                    for _ in range(12):
                        sent, expected = [], []
                        for i in range(rng.choice([1, 3, 40, 300])):
                            size = rng.choice([0, 1, 15, 100, 5_000, 9_000, 70_000]) if i % 50 else \
                                rng.choice([0, 300_000, 1_000_000])
                            value = bytes([97 + number % 26]) * size
                            sent.append(command("CPUT", "t", f"r{number}", "f:q", value))
                            sent.append(command("CGET", "t", f"r{number}", "f:q"))
                            expected += [b"+OK\r\n", b"$%d\r\n%s\r\n" % (size, value)]
                        want = b"".join(expected)
                        writer = threading.Thread(target=client.sendall, args=(b"".join(sent),))
                        writer.start()
                        got = bytearray()
                        while len(got) < len(want):
                            piece = client.recv(rng.choice([100, 4096, 1 << 20]))
                            if not piece:
                                break
                            got += piece
                        writer.join()
                        if bytes(got) != want:
                            failures.append(f"client {number}: {len(got)} bytes of {len(want)}")
                            return
            except OSError as error:
                failures.append(f"client {number}: {error}")

        threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [], f"seed {seed}")

    def test_a_client_that_does_not_read_hurts_nobody_and_gets_everything(self):
        """Its thread serves the others meanwhile; what waits for it is shown, and bounded."""
        value = b"v" * 1_000_000
        self.redis.execute_command("CPUT", "t", "r", "f:q", value)
        slow = self.server.connect()
        count = 40
        writer = threading.Thread(target=slow.sendall, args=(command("CGET", "t", "r", "f:q") * count,))
        writer.start()
        self.wait_until(lambda: any(int(line["omem"]) > 500_000 for line in self.clients()))
        others = [self.server.connect() for _ in range(10)]  # of both threads
        for _ in range(50):
            for client in others:
                client.sendall(command("PING"))
            for client in others:
                self.assertEqual(client.recv(100), b"+PONG\r\n")
        waiting = max(int(line["omem"]) for line in self.clients())
        self.assertLess(waiting, 8_000_000)
        want = (b"$%d\r\n%s\r\n" % (len(value), value)) * count
        got = bytearray()
        while len(got) < len(want):
            piece = slow.recv(1 << 20)
            self.assertTrue(piece, "closed early")
            got += piece
        writer.join()
        self.assertEqual(bytes(got), want)
        self.wait_until(lambda: all(int(line["omem"]) < 100_000 for line in self.clients()))
        for client in others + [slow]:
            client.close()

    @not_with_local_reads("its sockets read what another connection has written before it has come")
    def test_memory_held_for_who_does_not_read_is_counted(self):
        self.redis.execute_command("CPUT", "t", "r", "f:q", "x" * 700_000)
        before = self.redis.info("memory")
        slow = []
        for _ in range(40):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", self.server.port))
            connection.sendall(b"CGET t r f:q\r\n" * 20)
            slow.append(connection)

        def counted():
            now = self.redis.info("memory")
            held = now["used_memory_rss"] - before["used_memory_rss"]
            return held, now["used_memory"] - before["used_memory"]

        def is_counted():
            """Each has a reply of 700 KB of which little is left to be sent, at the least."""
            held, used = counted()
            listed = sum(int(client["tot-mem"]) for client in self.clients())
            return used >= max(40 * 600_000, held / 2) and listed >= 40 * 600_000

        wait_until(is_counted, counted, pause=0.1)
        for connection in slow:
            connection.close()
        # In a cluster each link to another node keeps what it has read with, up to a megabyte.
        kept = self.redis.info("cluster").get("cluster_links", 0) << 20
        wait_until(lambda: counted()[1] <= (1 << 20) + kept, counted, pause=0.1)

    @not_with_local_reads("what waits for writes to come is a client more, of whom there may be no more")
    def test_the_place_of_who_has_left_is_free(self):
        self.redis.config_set("maxclients", 12)
        self.addCleanup(self.redis.config_set, "maxclients", 10_000)

        def come():
            connection = self.server.connect()
            with contextlib.suppress(OSError):
                connection.sendall(b"PING\r\n")
                if connection.recv(100) == b"+PONG\r\n":
                    return connection
            connection.close()
            return None

        connections = []
        while (connection := come()) is not None:
            connections.append(connection)
        self.assertLess(len(connections), 12)
        for _ in range(300):
            connections.pop(0).close()
            connections.append(come())
            self.assertIsNotNone(connections[-1])
        # Who will send no more, and is not read since it does not take its replies, has not left.
        self.redis.execute_command("CPUT", "t", "r", "f:q", "x" * 700_000)
        for connection in connections:
            connection.sendall(b"CGET t r f:q\r\n" * 100)
        wait_until(lambda: sum(int(client["tot-mem"]) > 700_000 for client in self.redis.client_list()) >= len(connections))
        for connection in connections:
            connection.shutdown(socket.SHUT_WR)
        for _ in range(20):
            self.assertIsNone(come())
        for connection in connections:
            connection.close()

    @not_on_a_follower("other nodes are clients too")
    def test_clients_come_go_and_are_killed_in_any_order(self):
        """Half-closed, reset, killed by others, quitting, in the middle of anything."""
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        for _ in range(15):
            sockets = [self.server.connect() for _ in range(24)]
            for client in sockets:
                client.sendall(command("CLIENT", "ID"))
            ids = [int(client.recv(100)[1:]) for client in sockets]
            for client, number in zip(sockets, ids):
                with contextlib.suppress(OSError):  # killed already
                    self.treat(client, number, rng, ids)
            for client in sockets:
                client.close()
        self.wait_until(lambda: len(self.clients()) <= 3)
        self.assertEqual(self.redis.execute_command("CEXISTS", "t", "never"), 0)
        self.assertTrue(self.redis.ping(), f"seed {seed}")

    @staticmethod
    def treat(client, number, rng, ids):
        """One of the ways in which a client may end."""
        way = rng.randrange(6)
        client.sendall(command("CPUT", "t", f"r{number}", "f:q", b"x" * rng.choice([1, 50_000])) * 3)
        if way == 0:
            client.close()
        elif way == 1:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
        elif way == 2:
            client.sendall(command("QUIT") + command("CPUT", "t", "never", "f:q", "x"))
        elif way == 3:
            client.sendall(command("CLIENT", "KILL", "ID", str(rng.choice(ids))))
        elif way == 4:
            client.shutdown(socket.SHUT_WR)
        else:
            client.sendall(command("CSCAN", "t", "0"))

    def test_what_is_sent_before_quit_arrives(self):
        """The replies, all of them, and then the end."""
        for _ in range(30):
            with self.server.connect() as client:
                client.sendall(command("PING") * 1000 + command("QUIT"))
                answer = b""
                while piece := client.recv(1 << 16):
                    answer += piece
                self.assertEqual(answer, b"+PONG\r\n" * 1000 + b"+OK\r\n")

    @unittest.skipIf(is_sanitized(), "its memory is not its own")
    def test_an_idle_connection_costs_little(self):
        """1.3 KiB of what the server counts of clients."""
        before = self.info("mem_clients_normal")
        sockets = [self.server.connect() for _ in range(1000)]
        for client in sockets:
            self.addCleanup(client.close)
            client.sendall(command("PING"))
        for client in sockets:
            self.assertEqual(client.recv(100), b"+PONG\r\n")
        self.assertLess((self.info("mem_clients_normal") - before) / len(sockets), 1.3 * 1024)

    def test_the_option_is_set_at_the_start_only(self):
        """As in Redis."""
        self.assertEqual(self.redis.config_get("io-threads"), {"io-threads": str(THREADS)})
        with self.assertRaisesRegex(Exception, "io-threads"):
            self.redis.config_set("io-threads", 2)


class EndTest(unittest.TestCase):
    """The end of the process, with clients in the middle of something."""

    def test_sigterm_and_shutdown_end_threads_and_keep_what_was_acknowledged(self):
        """Status 0, and every answered write is there."""
        with CellarServer(io_threads=THREADS, save="", appendfsync="always") as server:
            server.client().execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            for round_number in range(4):
                acknowledged = set()
                ended = []

                def write(number, acknowledged=acknowledged, ended=ended, round_number=round_number):
                    with server.connect() as client, contextlib.suppress(OSError, redis.RedisError):
                        for i in range(100_000):
                            row = f"{round_number}.{number}.{i}"
                            client.sendall(command("CPUT", "t", row, "f:q", "v"))
                            if client.recv(100) != b"+OK\r\n":
                                break
                            acknowledged.add(row)
                    ended.append(number)

                threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
                for thread in threads:
                    thread.start()
                wait_until(lambda acknowledged=acknowledged: len(acknowledged) > 300, "writes are answered")
                if round_number % 2:
                    self.assertEqual(server.stop(), 0)
                else:
                    with contextlib.suppress(OSError, redis.RedisError):
                        server.client().execute_command("SHUTDOWN", "NOSAVE")
                    self.assertEqual(server.process.wait(), 0)
                for thread in threads:
                    thread.join()
                self.assertEqual(len(ended), 6)
                server.start()
                client = server.client()
                for row in acknowledged:
                    self.assertEqual(client.execute_command("CGET", "t", row, "f:q"), b"v", row)


if __name__ == "__main__":
    unittest.main()
