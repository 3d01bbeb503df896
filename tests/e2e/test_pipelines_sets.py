"""Pipelines of one client over several sets: their commands go to all owners beside one another, and the replies are what one
server would have answered, in the order of the commands, whatever moves, stops or dies meanwhile.

CELLAR_PIPELINE_ROUNDS: so many random pipelines each; CELLAR_MOVE_SECONDS: how long writers write.
"""

import itertools
import os
import random
import signal
import socket
import threading
import time
import unittest

import redis

from cellar_server import CellarServer
from move_load import MOVED_ERRORS, LoadCase

ROUNDS = int(os.environ.get("CELLAR_PIPELINE_ROUNDS", "150"))
SECONDS = float(os.environ.get("CELLAR_MOVE_SECONDS", "6"))


def request(*words):
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Raw:
    """A connection whose replies are compared byte for byte."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.marks = 0

    def run(self, requests, pieces=1):
        """All that is answered; the requests are sent in so many writes."""
        self.marks += 1
        mark = f"mark-{self.marks}-{'#' * 20}".encode()
        sent = b"".join(requests) + request("ECHO", mark.decode())
        reply_end = b"$%d\r\n%s\r\n" % (len(mark), mark)
        step = max(1, len(sent) // pieces + 1)
        sender = threading.Thread(target=lambda: [self.socket.sendall(sent[at:at + step]) for at in range(0, len(sent), step)])
        sender.start()
        got = bytearray()
        while not got.endswith(reply_end):
            more = self.socket.recv(1 << 20)
            if not more:
                raise AssertionError(f"closed behind {bytes(got[-200:])}")
            got += more
        sender.join()
        return bytes(got[:-len(reply_end)])

    def close(self):
        self.socket.close()


class Pipelines:
    """Random commands whose replies tell nothing of when and where they were carried out."""

    def __init__(self, rng):
        self.rng = rng
        self.clock = 1
        self.rows = [f"{chr(97 + rng.randrange(26))}{number}" for number in range(30)]

    def plain(self):
        rng = self.rng
        row = rng.choice(self.rows)
        self.clock += 1
        size = rng.choice([0, 3, 3, 3, 40, 1000, 70_000 if rng.random() < 0.2 else 9])
        return rng.choice([
            lambda: ("CPUT", "t", row, "f:x", "v" * size, "TS", self.clock),
            lambda: ("CPUT", "t", row, "f:x", self.clock, "f:y", "w" * size, "TS", self.clock),
            lambda: ("CGET", "t", row, "f:x"),
            lambda: ("CMGET", "t", row, 2, "f:x", "f:y"),
            lambda: ("CROW", "t", row),
            lambda: ("CEXISTS", "t", row),
            lambda: ("CDEL", "t", row, "f:x"),
            lambda: ("CINCRBY", "t", row, "n:c", rng.randrange(-3, 9)),
            lambda: ("CINCRBY", "t", row, "f:x", 1),  # no number
            lambda: ("CGET", "t", row, "g:x"),  # no family
            lambda: ("CGET", "nowhere", row, "f:x"),
            lambda: ("CGET", "t"),
            lambda: ("TABLET", "ROUTE", "t"),
        ])()

    def other(self):
        """What waits for all that is before it, and is waited for."""
        rng = self.rng
        row = rng.choice(self.rows)
        self.clock += 1
        return rng.choice([
            lambda: [("CSCAN", "t", 0, "COUNT", rng.choice([1, 5, 100]))],
            lambda: [("CCOUNT", "t")],
            lambda: [("CAGG", "t", "REDUCE", "SUM", "n:c")],
            lambda: [("CROWS", "t", 3, *rng.sample(self.rows, 3))],
            lambda: [("MULTI",), ("CPUT", "t", row, "f:x", "m", "TS", self.clock), ("CGET", "t", row, "f:x"), ("EXEC",)],
            lambda: [("WATCH", "k"), ("CGET", "t", row, "f:x"), ("UNWATCH",)],
            lambda: [("CLIENT", "REPLY", "SKIP"), ("CPUT", "t", row, "f:x", "s", "TS", self.clock)],
            lambda: [("CLIENT", "REPLY", "OFF"), ("CPUT", "t", row, "f:x", "o", "TS", self.clock), ("CLIENT", "REPLY", "ON")],
            lambda: [("SELECT", 1), ("CGET", "t", row, "f:x"), ("SELECT", 0)],
            lambda: [("PING",)],
            lambda: [("nonsense", row)],
            lambda: [("CDELRANGE", "t", "RANGE", "[" + row, "[" + row)],
        ])()

    def draw(self):
        rng = self.rng
        commands = []
        for _ in range(rng.choice([2, 5, 16, 60])):
            commands += self.other() if rng.random() < 0.08 else [self.plain()]
        return [request(*words) for words in commands]


def told_apart(one, other):
    """Where two long texts differ."""
    at = next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return f"at byte {at}: {one[max(0, at - 150):at + 60]} and {other[max(0, at - 150):at + 60]}"


class AsOneServerTest(LoadCase):
    def setUp(self):
        super().setUp()
        self.alone = CellarServer()
        self.addCleanup(self.alone.close)
        self.alone.start()
        self.cluster(3, 1, cluster_wait=10_000)
        self.any().run("CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 5, "d", "h", "m", "r", "v", "FAMILY", "f", "FAMILY", "n", "TYPE",
                       "i64")
        self.alone.client().execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "n", "TYPE", "i64")
        for run in (self.any().run, self.alone.client().execute_command):
            run("ACL", "SETUSER", "few", "on", ">pw", "~t", "+@all", "-cincrby", "-cexists")

    def compare(self, rounds, node=None):
        rng = random.Random(self.seed)
        drawn = Pipelines(rng)
        one, other = Raw(self.alone.port), Raw((node or self.everyone[0]).port)
        for number in range(rounds):
            if rng.random() < 0.05:
                other.close()
                other = Raw(rng.choice(self.everyone).port)
                one.close()
                one = Raw(self.alone.port)
                first = rng.choice([[], ["HELLO", 3], ["AUTH", "few", "pw"], ["HELLO", 3, "AUTH", "few", "pw"]])
                if first:
                    self.assertNotIn(b"-", (one.run([request(*first)])[:1], other.run([request(*first)])[:1]))
            requests = drawn.draw()
            pieces = rng.choice([1, 1, 2, 7])
            expected, got = one.run(requests, pieces), other.run(requests, pieces)
            self.assertTrue(expected == got, f"seed {self.seed}, round {number}: {told_apart(expected, got)}")
        one.close()
        other.close()

    def test_as_one_server(self):
        self.compare(ROUNDS)

    def test_as_one_server_while_tablets_move(self):
        stop = threading.Event()
        rng = random.Random(self.seed)

        def move():
            while not stop.is_set():
                self.random_move(rng)
        mover = self.beside(move)
        try:
            self.compare(ROUNDS)
        finally:
            stop.set()
            mover.join()
        self.assert_whole()


class BesideTest(LoadCase):
    """Sets of one node, and where their rows are."""

    def setUp(self):
        super().setUp()
        self.begin(3, 1)
        self.any().run("CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        for row, to in (("a", 0), ("g", 1), ("m", 2), ("s", 0)):
            if self.any().run("TABLET", "ROUTE", "t", row)[1] != to:
                try:
                    self.move(row, to)
                except redis.ResponseError as error:
                    self.assertIn("already", str(error))
        self.entry = self.sets[0][0]
        self.wait_until(lambda: [each["set"] for each in self.tablets(member=self.entry)] == [0, 1, 2, 0], "they are not there")

    def connect(self):
        client = Raw(self.entry.port)
        self.addCleanup(client.close)
        return client

    def test_one_owner_does_not_hold_up_the_others(self):
        stopped = self.sets[1][0]
        client = self.connect()
        client.run([request("CPUT", "t", row, "f:x", "before") for row in ("a", "h", "n", "s")])
        stopped.server.process.send_signal(signal.SIGSTOP)
        try:
            client.socket.sendall(b"".join([
                request("CPUT", "t", "n", "f:x", "first"), request("CPUT", "t", "h", "f:x", "stopped"),
                request("CPUT", "t", "n", "f:x", "second"), request("CPUT", "t", "a", "f:x", "own"), request("PING")]))
            self.wait_until(lambda: self.entry.run("CGET", "t", "n", "f:x") == "second", "set 2 has not done it")
            self.wait_until(lambda: self.entry.run("CGET", "t", "a", "f:x") == "own", "set 0 has not done it")
            # What comes in front is told.
            self.assertEqual(b"+OK\r\n", client.socket.recv(100))
            client.socket.settimeout(0.3)
            with self.assertRaises(TimeoutError):
                client.socket.recv(100)
        finally:
            stopped.server.process.send_signal(signal.SIGCONT)
        client.socket.settimeout(60)
        got = b""
        while not got.endswith(b"+PONG\r\n"):
            got += client.socket.recv(100)
        self.assertEqual(b"+OK\r\n+OK\r\n+OK\r\n+PONG\r\n", got)
        self.assertEqual("stopped", self.entry.run("CGET", "t", "h", "f:x"))

    def test_who_does_not_read_is_bounded(self):
        rows = ["a", "h", "n", "s1", "h2", "n3"]
        value = "v" * 100_000
        for number, row in enumerate(rows):
            self.entry.run("CPUT", "t", row, "f:x", f"{number}{value}")
        before = self.entry.info("memory")["used_memory"]
        client = self.connect()
        wanted = [rows[number % len(rows)] for number in range(3000)]
        sender = self.beside(lambda: client.socket.sendall(b"".join(request("CGET", "t", row, "f:x") for row in wanted)))
        other = self.entry.server.client()
        for _ in range(200):
            self.assertEqual(100_001, len(other.execute_command("CGET", "t", "n", "f:x")))
        self.assertLess(self.entry.info("memory")["used_memory"] - before, 16 << 20)
        reader = client.socket.makefile("rb")
        for row in wanted:
            self.assertEqual(b"$100001\r\n", reader.readline())
            got = reader.read(100_003)
            self.assertEqual(str(rows.index(row)).encode(), got[:1])
        sender.join()

    def test_who_leaves_in_the_middle(self):
        """Nothing is left of it anywhere."""
        for _ in range(30):
            client = Raw(self.entry.port)
            client.socket.sendall(b"".join(request("CPUT", "t", row, "f:x", "v" * 1000) for row in "ahns" * 20))
            client.close()
        self.wait_until(lambda: all(member.info("clients")["connected_clients"] <= 2 and
                                    member.info("cluster")["cluster_calls_waiting"] == 0 for member in self.everyone),
                        lambda: [(member.info("clients"), member.info("cluster")) for member in self.everyone])
        self.assertEqual(b"+PONG\r\n", self.connect().run([request("PING")]))

    def test_a_table_that_goes_meanwhile(self):
        """What is sent back finds no table any more, or rows that nobody has."""
        rng = random.Random(self.seed)
        for number in range(20):
            client = Raw(self.entry.port)
            self.entry.run("TABLE", "CREATE", "w", "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f")
            requests = [request("CPUT", "w", rng.choice("ahns"), "f:x", "v") for _ in range(400)]
            dropper = self.beside(lambda: self.sets[rng.randrange(3)][0].run("TABLE", "DROP", "w"))
            lines = client.run(requests, 9).split(b"\r\n")[:-1]
            dropper.join()
            self.assertEqual(400, len(lines), f"round {number}")
            self.assertLessEqual({line.split()[0] for line in lines}, {b"+OK", b"-NOTABLE", b"-TRYAGAIN"})
            client.close()


class OwnLogTest(LoadCase):
    """What the entry carries out itself, of rows of its own set, waits for that set's log, behind replies of others."""

    def setUp(self):
        super().setUp()
        self.begin(2, 3)
        self.any().run("CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        head = self.wait_leader(self.sets[0])
        for row, to in (("a", 0), ("g", 0), ("m", 1), ("s", 1)):
            if head.run("TABLET", "ROUTE", "t", row, "SURE")[1] != to:
                self.move(row, to)

    def read_all(self, client, requests):
        """What comes until the connection ends, or so many lines."""
        got = b""
        while got.count(b"\r\n") < requests:
            try:
                piece = client.socket.recv(65536)
            except ConnectionResetError:
                break
            if not piece:
                break
            got += piece
        return got.split(b"\r\n")[:-1]

    def test_nothing_is_told_that_the_own_set_has_not_agreed_to(self):
        """The followers of the entry stand still, others take over, and what it had done alone is gone: whether its replies
        wait for that alone, or for others before them, too; whether it gives up the lead or finds it gone."""
        for number, (gives_up, front_waits) in enumerate(itertools.product([True, False], [True, False])):
            with self.subTest(gives_up=gives_up, front_waits=front_waits):
                self.lose_lead(f"round {number}", gives_up, front_waits)

    @staticmethod
    def writes_done(member):
        return member.info("commandstats").get("cmdstat_cput", {"calls": 0})["calls"]

    def lose_lead(self, text, gives_up, front_waits):
        entry, front = self.wait_leader(self.sets[0]), self.wait_leader(self.sets[1])
        followers = [member for member in self.sets[0] if member is not entry]
        self.wait_until(lambda: self.is_whole(self.sets[0]), "a member is missing")
        client = Raw(entry.port)
        self.addCleanup(client.close)
        client.run([request("CPUT", "t", row, "f:x", "before") for row in ("a", "n")])
        stopped = followers + ([front] if front_waits else [])
        for each in stopped:
            each.server.process.send_signal(signal.SIGSTOP)
        rows = ["n", "a", "m", "b", "o", "g"]
        before = self.writes_done(entry)
        client.socket.sendall(b"".join(request("CPUT", "t", row, "f:x", text) for row in rows))
        if not front_waits:
            self.wait_until(lambda: all(front.run("CGET", "t", row, "f:x") == text for row in "nmo"), "set 1 has not done it")
            self.assertEqual(b"+OK\r\n", client.socket.recv(100))
        if gives_up:  # it hears nothing of its followers
            self.wait_until(lambda: entry.info("replication")["role"] != "master", "it leads on")
        else:
            self.wait_until(lambda: self.writes_done(entry) == before + 3, "it does not do those of its own rows")
            entry.server.process.send_signal(signal.SIGSTOP)
        for each in stopped:
            each.server.process.send_signal(signal.SIGCONT)
        self.wait_leader(self.sets[0] if gives_up else followers)
        entry.server.process.send_signal(signal.SIGCONT)
        told = self.read_all(client, len(rows) - (not front_waits))
        self.wait_leader(self.sets[0])
        kept = [self.any().run("CGET", "t", row, "f:x") for row in "abg"]
        # The second reply is of a row of the own set.
        self.assertTrue(len(told) < (2 if front_waits else 1) or kept == [text] * 3, f"{told} and {kept}")

    def test_a_planned_change_of_the_lead_is_not_noticed(self):
        stop = threading.Event()
        errors, counts = [], {}

        def write(name):
            rng = random.Random(f"{self.seed}/{name}")
            client = None
            rows = [f"{letter}-{name}" for letter in "abghmnst"]
            counts[name] = dict.fromkeys(rows, 0)
            while not stop.is_set():
                client = client or redis.Redis(port=rng.choice(self.everyone).port, socket_timeout=40)
                pipe = client.pipeline(transaction=False)
                chosen = [rng.choice(rows) for _ in range(rng.choice([1, 5, 40]))]
                for row in chosen:
                    pipe.execute_command("CINCRBY", "t", row, "f:n", 1)
                try:
                    replies = pipe.execute(raise_on_error=False)
                except redis.RedisError as error:
                    return errors.append(repr(error))
                for row, reply in zip(chosen, replies):
                    counts[name][row] += 1
                    if reply != counts[name][row]:
                        return errors.append(f"{row}: {reply}, not {counts[name][row]}")
                if rng.random() < 0.1:
                    client.close()
                    client = None
        threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
        for each in threads:
            each.start()
        try:
            for number in range(10):
                members = self.sets[number % 2]
                self.wait_until(lambda members=members: self.is_whole(members), "a member is missing")
                leader = self.wait_leader(members)
                leader.run("FAILOVER")
                self.wait_until(lambda leader=leader, members=members: self.wait_leader(members) is not leader, "it leads on")
        finally:
            stop.set()
            for each in threads:
                each.join()
        self.assertEqual([], errors, f"seed {self.seed}")
        self.assertGreater(sum(sum(each.values()) for each in counts.values()), 100)


class CountingWriter:
    """Counts of rows of its own, raised in pipelines: each reply says how many came before it."""

    def __init__(self, case, number, faults):
        self.case, self.faults = case, faults
        self.rng = random.Random(f"{case.seed}/{number}")
        self.rows = [f"{chr(97 + self.rng.randrange(26))}{number}-{each}" for each in range(12)]
        self.counts = dict.fromkeys(self.rows, 0)
        self.due = dict.fromkeys(self.rows, 0)  # of what was never answered, and may be done yet
        self.errors, self.done = [], 0

    def run(self, stop):
        client = None
        while not stop.is_set():
            member = self.case.any(self.rng)
            client = client or redis.Redis(host=member.server.host, port=member.port, decode_responses=True, socket_timeout=40)
            rows = [self.rng.choice(self.rows) for _ in range(self.rng.choice([2, 8, 40, 150]))]
            try:
                pipe = client.pipeline(transaction=False)
                for row in rows:
                    pipe.execute_command("CINCRBY", "t", row, "f:n", 1)
                self.take(rows, pipe.execute(raise_on_error=False))
            except MOVED_ERRORS as error:
                if not self.faults:
                    self.errors.append(repr(error))
                client = None
                self.settle(rows)
            if self.rng.random() < 0.05 and client is not None:
                client.close()
                client = None

    def take(self, rows, replies):
        for row, reply in zip(rows, replies):
            if isinstance(reply, redis.ResponseError):
                if not self.faults or not str(reply).startswith(("TRYAGAIN", "CLUSTERDOWN", "LOADING", "MISCONF")):
                    self.errors.append(f"{row}: {reply}")
                continue
            self.counts[row] += 1
            self.done += 1
            self.agree(row, int(reply))

    def agree(self, row, count):
        late = count - self.counts[row]
        if not 0 <= late <= self.due[row]:
            self.errors.append(f"{row}: {count}, not {self.counts[row]}, and {self.due[row]} were not answered")
        self.due[row] -= max(0, late)
        self.counts[row] = count

    def settle(self, rows):
        """Of those without an answer the first ones were done, for each row; the others may still be on their way."""
        for row in set(rows):
            while True:
                try:
                    got = int(self.case.any(self.rng).run("CGET", "t", row, "f:n") or 0)
                    break
                except redis.RedisError:
                    time.sleep(0.05)
            self.due[row] += rows.count(row)
            self.agree(row, got)


class OrderTest(LoadCase):
    def write(self, beside, faults):
        writers = [CountingWriter(self, number, faults) for number in range(4)]
        self.run_writers(writers, SECONDS, beside)
        for one in writers:
            for row in one.rows:
                one.agree(row, int(self.any().run("CGET", "t", row, "f:n") or 0))
        self.assertEqual([], sum((one.errors for one in writers), []), f"seed {self.seed}")
        self.assertGreater(min(one.done for one in writers), 0)

    def test_each_row_keeps_its_order_while_tablets_move(self):
        rng = random.Random(self.seed)
        self.begin(3, 1)
        self.write(lambda _: self.random_move(rng), False)

    def test_each_row_keeps_its_order_while_nodes_die(self):
        rng = random.Random(self.seed)

        def beside(number):
            if number % 4 == 3:
                victim = rng.choice(self.everyone)
                victim.server.kill()
                time.sleep(rng.random() / 4)
                victim.server.start()
            self.random_move(rng)
        self.begin(3, 3)
        self.write(beside, True)

    def test_a_set_becomes_a_cluster_and_grows(self):
        """Nobody who writes meanwhile notices."""
        first = self.new_set(1)
        self.sets, self.everyone = [first], list(first)
        self.lead(first, "TABLE", "CREATE", "t", "FAMILY", "f")
        rng = random.Random(self.seed)

        def beside(number):
            if number == 0:
                self.assertEqual("OK", self.lead(first, "CLUSTER", "INIT"))
            elif number in (1, 2):
                self.sets.append(self.new_set(1, join=first))
                self.admit(number)
                self.wait_until(lambda: self.sees(self.sets[-1][0], number + 1), "it does not know the others")
                self.everyone = sum(self.sets, [])
                self.lead(first, "TABLET", "SPLIT", "t", "fm"[number - 1])
            else:
                self.random_move(rng)
        self.write(beside, False)


if __name__ == "__main__":
    unittest.main()
