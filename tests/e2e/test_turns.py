"""Input of many connections that one turn of the server serves together: order, ends, kills, fairness.

The server is held by DEBUG SLEEP while clients send, so that it finds all of their input at once. On a machine so
busy that it does not, the tests see turns of their own for each client, where the same must hold.
"""

import contextlib
import itertools
import os
import random
import re
import signal
import socket
import struct
import threading
import time
import unittest

from cellar_server import CellarTest, wait_until
from test_protocol import READ_SECONDS_MAX, command

CONNECTIONS = 40
RUNS = int(os.environ.get("CELLAR_TURNS_RUNS", "6"))
needs_order = unittest.skipIf(int(os.environ.get("CELLAR_IO_THREADS", "1")) > 1,
                              "of connections in different threads none comes before the other in a turn")


class Client:
    """A socket that sends bytes as they are."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=READ_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = b""

    def send(self, data):
        """All of it; what the server closes meanwhile is seen when its answer is read."""
        with contextlib.suppress(OSError):
            self.socket.sendall(data)

    def send_some(self, data):
        """As much as goes without waiting; how much that was."""
        sent = 0
        while sent < len(data):
            try:
                sent += self.socket.send(data[sent:sent + 65_536], socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
        return sent

    def ask(self, *words):
        """Sends a command whose reply is one line, and returns that."""
        self.send(command(*words))
        return self.read_until(lambda: self.answer.endswith(b"\r\n"))

    def read_until(self, enough):
        """What has come when enough() or the other side has closed."""
        with contextlib.suppress(ConnectionError):
            while not enough():
                piece = self.socket.recv(1 << 20)
                if not piece:
                    break
                self.answer += piece
        answer, self.answer = self.answer, b""
        return answer

    def read_all(self):
        """What comes until the server closes."""
        return self.read_until(lambda: False)

    def close(self):
        """The end."""
        self.socket.close()


def conversation(rand, table):
    """Commands whose replies depend on nothing but the table's earlier ones; ends in QUIT."""
    parts = [command("TABLE", "CREATE", table, "FAMILY", "f", "FAMILY", "n", "TYPE", "i64")]
    for _ in range(rand.randint(20, 60)):
        row, value = f"r{rand.randint(0, 9)}", rand.randbytes(rand.choice((0, 3, 12, 12, 12, 400, 9000)))
        parts.append(rand.choice([
            command("CPUT", table, row, "f:a", value, "TS", rand.randint(1, 99)),
            command("cput", table, row, "f:b", value, "TS", rand.randint(1, 99)),
            command("CGET", table, row, "f:a"),
            command("CROW", table, row),
            command("CINCRBY", table, row, "n:c", rand.randint(-5, 5)),
            command("CDEL", table, row),
            command("CGET", table),
            command("NOSUCH", row),
            command("ECHO", value),
            f"CGET {table} {row} f:a\r\n".encode(),
            f'ECHO "{row} {row}"\r\nPING\r\n'.encode(),
            b"\r\n",
            command("MULTI") + command("CINCRBY", table, row, "n:c", 1) + command("CGET", table, row, "n:c")
            + command("EXEC"),
            command("CLIENT", "REPLY", "SKIP") + command("PING") + command("ECHO", "heard")]))
    return b"".join(parts) + command("QUIT")


class TurnsTest(CellarTest):
    """What clients see is what they would see alone."""

    OPTIONS = {"save": "", "appendonly": "no"}

    def setUp(self):
        super().setUp()
        self.clients = []

    def tearDown(self):
        for client in self.clients:
            client.close()

    def connect(self):
        """One more client, closed when the test ends."""
        client = Client(self.server.port)
        self.clients.append(client)
        return client

    @contextlib.contextmanager
    def held(self):
        """What is sent inside waits in the server's sockets until the end: its process stands still meanwhile."""
        # A turn of somebody else's: the kernel has none of the test's clients at the front of its list any more, where
        # those stand that were read last.
        self.redis.ping()
        pid = self.server.process.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def cells(self):
        """How many rows table t has."""
        return self.redis.execute_command("CCOUNT", "t")

    def test_each_of_many_connections_is_answered_as_if_it_were_alone(self):
        seed = int(os.environ.get("CELLAR_SEED", time.time_ns() % 1_000_000))
        for run in range(RUNS):
            rand = random.Random(f"{seed}-{run}")
            inputs = [conversation(rand, f"t{i}") for i in range(CONNECTIONS)]
            expected = []
            self.redis.flushall()
            for data in inputs:
                client = self.connect()
                client.send(data)
                expected.append(client.read_all())
            self.redis.flushall()
            clients = [self.connect() for _ in inputs]
            readers = [threading.Thread(target=lambda c=c: c.__setattr__("all", c.read_all())) for c in clients]
            for reader in readers:
                reader.start()
            sent = [0] * len(inputs)
            while any(sent[i] < len(data) for i, data in enumerate(inputs)):
                with self.held() if rand.random() < 0.5 else contextlib.nullcontext():
                    for i in rand.sample(range(len(inputs)), rand.randint(1, len(inputs))):
                        size = rand.choice((1, 5, 40, 400, 4000, 30_000))
                        clients[i].send(inputs[i][sent[i]:sent[i] + size])
                        sent[i] += size
            for i, reader in enumerate(readers):
                reader.join()
                self.assertEqual(expected[i], clients[i].all, f"CELLAR_SEED={seed} run {run} connection {i}")
            for client in clients:
                client.close()

    @needs_order
    def test_a_client_killed_by_one_before_it_in_the_turn_executes_nothing(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for _ in range(5):
            killer, victim = self.connect(), self.connect()
            number = int(victim.ask("CLIENT", "ID")[1:])
            with self.held():
                killer.send(command("CLIENT", "KILL", "ID", number))
                time.sleep(0.02)  # it is the first one in the turn
                victim.send(command("CPUT", "t", "late", "f:a", "1") * 3)
            self.assertEqual(b":1\r\n", killer.read_until(lambda k=killer: k.answer.endswith(b"\r\n")))
            self.assertEqual(b"", victim.read_all())
            self.assertEqual(0, self.cells())

    @needs_order
    def test_a_client_killed_by_one_behind_it_in_the_turn_has_executed(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        killer, victim = self.connect(), self.connect()
        number = int(victim.ask("CLIENT", "ID")[1:])
        with self.held():
            victim.send(command("CPUT", "t", "early", "f:a", "1"))
            time.sleep(0.02)  # likewise
            killer.send(command("CLIENT", "KILL", "ID", number))
        self.assertEqual(b":1\r\n", killer.read_until(lambda: killer.answer.endswith(b"\r\n")))
        victim.read_all()
        self.assertEqual(1, self.cells())

    def test_many_clients_kill_each_other_in_one_turn(self):
        clients = [self.connect() for _ in range(CONNECTIONS)]
        numbers = [int(client.ask("CLIENT", "ID")[1:]) for client in clients]
        with self.held():
            for i, client in enumerate(clients):
                client.send(command("CLIENT", "KILL", "ID", numbers[(i + 1) % len(numbers)], "SKIPME", "yes"))
        # Of two neighbours not both can have killed.
        alive = [client.ask("PING") != b"" for client in clients]
        self.assertTrue(any(alive))
        self.assertFalse(all(alive))
        self.assertTrue(self.redis.ping())

    def test_what_came_before_the_end_of_input_is_executed_and_answered(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        clients = [self.connect() for _ in range(CONNECTIONS)]
        with self.held():
            for i, client in enumerate(clients):
                client.send(b"".join(command("CPUT", "t", f"{i}-{j}", "f:a", j) for j in range(30)) + b"*1\r\n$4\r\nPI")
                client.socket.shutdown(socket.SHUT_WR)
        for client in clients:
            self.assertEqual(30, client.read_all().count(b"+OK\r\n"))
        self.assertEqual(30 * len(clients), self.cells())

    def test_what_came_before_a_client_went_away_is_executed(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        with self.held():
            for i in range(20):
                client = self.connect()
                client.send(b"".join(command("CPUT", "t", f"{i}-{j}", "f:a", j) for j in range(30)))
                client.close()
        wait_until(lambda: self.cells() >= 600, self.cells)
        self.assertEqual(600, self.cells())

    def test_a_reset_connection_among_others_harms_nobody(self):
        clients = [self.connect() for _ in range(CONNECTIONS)]
        with self.held():
            for i, client in enumerate(clients):
                client.send(command("ECHO", f"client {i}"))
                if i % 3 == 0:
                    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    client.close()
        for i, client in enumerate(clients):
            if i % 3 != 0:
                answer = client.read_until(lambda c=client: c.answer.count(b"\r\n") == 2)
                self.assertIn(b"client %d\r\n" % i, answer)

    def test_a_configuration_changed_in_the_turn_holds_for_those_behind(self):
        first, second = self.connect(), self.connect()
        with self.held():
            first.send(command("CLIENT", "PAUSE", "100", "ALL"))
            time.sleep(0.02)  # likewise
            second.send(command("PING") + command("ECHO", "x"))
        self.assertEqual(b"+PONG\r\n$1\r\nx\r\n", second.read_until(lambda: second.answer.endswith(b"x\r\n")))

    def test_a_long_pipeline_does_not_keep_the_others_waiting(self):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "n", "TYPE", "i64")
        count = 30_000
        greedy, modest = self.connect(), self.connect()
        greedy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        data = command("CINCRBY", "t", "r", "n:c", 1) * count
        with self.held():
            sent = greedy.send_some(data)  # as much as there is room for
            self.assertGreater(sent, 2 * 65_536)
            modest.send(command("CGET", "t", "r", "n:c"))
        sender = threading.Thread(target=greedy.send, args=(data[sent:],))
        sender.start()
        found = modest.read_until(lambda: re.search(rb"(_|-1|:\d+|\$\d+\r\n\d+)\r\n$", modest.answer) is not None)
        seen = int(re.findall(rb"-?\d+", found)[-1])
        sender.join()
        greedy.read_until(lambda: greedy.answer.endswith(b":%d\r\n" % count))
        # Two reads of 64 KiB are about 3,000 commands.
        self.assertLess(seen, 2 * 65_536 // len(command("CINCRBY", "t", "r", "n:c", 1)) + 100)
        self.assertEqual(str(count), str(int(self.redis.execute_command("CGET", "t", "r", "n:c"))))

    def test_each_large_transaction_has_a_turn_of_its_own(self):
        """Between them the others are served, and a replica set says that its leader lives. Small ones share a turn."""
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for value, shares in (("x" * (1 << 20), False), ("x", True)):
            clients = [self.connect() for _ in range(8)]
            for i, client in enumerate(clients):
                client.send(command("MULTI"))
                for part in range(5):
                    client.send(command("CPUT", "t", f"r{i}", f"f:{part}", value))
                client.read_until(lambda c=client: c.answer.count(b"QUEUED") == 5)
            with self.held():
                for client in clients:
                    client.send(command("EXEC"))
            for client in clients:
                client.read_until(lambda c=client: c.answer.endswith(b"*5\r\n" + b"+OK\r\n" * 5))
            # A turn has one time, and each write in it the next microsecond; to take in 5 MB lasts longer.
            times = sorted(self.redis.execute_command("CGET", "t", f"r{i}", "f:0", "WITHTS")[0] for i in range(8))
            turns = 1 + sum(after - before > 100 for before, after in itertools.pairwise(times))
            if not shares:
                self.assertEqual(8, turns, times)
            elif "CELLAR_IO_THREADS" not in os.environ:
                self.assertLess(turns, 8, times)


if __name__ == "__main__":
    unittest.main()
