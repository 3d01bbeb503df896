"""Tablets that move by themselves for what commands of their rows take: a hot tablet is cut and spread over the sets, a hot
row is told and left alone.

CELLAR_MOVE_SECONDS: how long nodes die.
"""

import os
import random
import socket
import threading
import time
import unittest

import redis

from move_load import MovesCase

ROWS = 300
SECONDS = float(os.environ.get("CELLAR_MOVE_SECONDS", "6"))


def request(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words))


def get(row):
    return request("CGET", "t", row, "f:x"), 2


class Load:
    """Clients that ask as fast as they are answered, each of them in pipelines at one node: what `draw` gives, a request and
    how many lines its reply has. `faults`: nodes die, and what they are told then is none of theirs."""

    def __init__(self, case, draw, clients=3, faults=False):
        self.case, self.faults, self.stopped, self.errors = case, faults, threading.Event(), []
        self.threads = [case.beside(lambda number=number: self.run(number, draw)) for number in range(clients)]
        case.addCleanup(self.stop)

    def run(self, number, draw):
        rng = random.Random(f"{self.case.seed}/{number}")
        batches = [[draw(rng) for _ in range(400)] for _ in range(8)]
        batches = [(b"".join(words for words, _ in batch), [lines for _, lines in batch]) for batch in batches]
        port = self.case.everyone[number % len(self.case.everyone)].port
        while not self.stopped.is_set():
            try:
                self.read(port, rng, batches)
            except OSError as error:
                if not self.faults:
                    self.errors.append(repr(error))
                    return
                self.stopped.wait(0.05)

    def read(self, port, rng, batches):
        with socket.create_connection(("127.0.0.1", port)) as client:
            reader = client.makefile("rb")
            while not self.stopped.is_set():
                requests, replies = rng.choice(batches)
                client.sendall(requests)
                for lines in replies:
                    line = reader.readline()
                    if not line:
                        raise ConnectionError("it has closed")
                    if line.startswith(b"-"):
                        if not self.faults or not line.startswith((b"-TRYAGAIN", b"-CLUSTERDOWN", b"-LOADING")):
                            self.errors.append(line)
                        continue
                    for _ in range(lines - 1):
                        reader.readline()

    def stop(self):
        self.stopped.set()
        for each in self.threads:
            each.join()


class BalanceByLoad(MovesCase):
    def setUp(self):
        super().setUp()
        self.seed = random.randrange(1 << 30)
        self.cluster(3, 1)
        self.director = self.sets[0][0]
        # Whatever else goes on on this machine.
        self.director.run("DEBUG", "CLUSTER", "BUSY-AT", 3)
        self.director.run("TABLE", "CREATE", "t", "FAMILY", "f")
        pipe = redis.Redis(port=self.director.port).pipeline(transaction=False)
        for number in range(ROWS):
            pipe.execute_command("CPUT", "t", self.row(number), "f:x", "v")
        pipe.execute()

    @staticmethod
    def row(number):
        return f"row{number:04}"

    def events(self):
        return [" ".join(event[1:]) for event in self.director.run("CLUSTER", "EVENTS", "COUNT", 1000)]

    def shares(self):
        """What each set has of the rows, by number of the set."""
        rows = [self.row(number) for number in range(ROWS)]
        shares = {}
        for each in self.tablets(member=self.director):
            inside = [row for row in rows if row >= each["start"] and (not each["end"] or row < each["end"])]
            shares[each["set"]] = shares.get(each["set"], 0) + len(inside)
        return shares

    def test_a_hot_tablet_is_spread_over_all_sets(self):
        load = Load(self, lambda rng: get(self.row(rng.randrange(ROWS))))
        self.wait_until(lambda: any((each["load"] or 0) > 0 for each in self.tablets(member=self.director)),
                        lambda: f"nobody tells of it: {self.tablets(member=self.director)}")
        self.wait_until(lambda: len(self.shares()) == 3 and max(self.shares().values()) <= ROWS * 55 // 100,
                        lambda: f"{self.shares()}, {self.events()[:20]}, {self.told_sets(self.director)}")
        load.stop()
        self.assertEqual([], load.errors)
        told = self.events()
        self.assertTrue(any(event.startswith("split 0/t at ") and "of a core" in event for event in told), told)
        self.assertTrue(any("is to move from set 0" in event and "of a core" in event for event in told), told)
        self.assert_whole()
        self.assert_all_there()

    def assert_all_there(self):
        pipe = redis.Redis(port=self.any().port).pipeline(transaction=False)
        for number in range(ROWS):
            pipe.execute_command("CGET", "t", self.row(number), "f:x")
        self.assertEqual([b"v"] * ROWS, pipe.execute())

    def test_what_is_scanned_is_spread_too(self):
        def draw(rng):
            first, last = sorted(rng.sample(range(ROWS), 2))
            rows = ("RANGE", f"[{self.row(first)}", f"[{self.row(last)}")
            scan = request("CSCAN", "t", "0", *rows, "COUNT", "1000", "KEYSONLY"), 4 + 2 * (last + 1 - first)
            return rng.choice((scan, (request("CCOUNT", "t", *rows), 1),
                               (request("CCOUNT", "t", *rows, "WHERE", "f:x", "EQ", "w"), 1)))
        load = Load(self, draw)
        self.wait_until(lambda: len(self.shares()) == 3 and max(self.shares().values()) <= ROWS * 80 // 100,
                        lambda: f"{self.shares()}, {self.events()[:20]}, {self.told_sets(self.director)}")
        load.stop()
        self.assertEqual([], load.errors[:5], f"seed {self.seed}")
        self.assertFalse([event for event in self.events() if event.startswith("hot row")], f"seed {self.seed}")
        self.assert_whole()
        self.assert_all_there()

    def test_it_goes_on_when_nodes_die(self):
        """The director, who forgets what he has seen, owners, and those who are to own."""
        rng = random.Random(self.seed)
        load = Load(self, lambda rng: get(self.row(rng.randrange(ROWS))), faults=True)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            time.sleep(rng.random() * 3)
            victim = rng.choice(self.everyone)
            victim.server.kill()
            victim.server.start()
            victim.connect()
            self.director.run("DEBUG", "CLUSTER", "BUSY-AT", 3)
        self.wait_until(lambda: len(self.shares()) == 3 and max(self.shares().values()) <= ROWS * 55 // 100,
                        lambda: f"seed {self.seed}: {self.shares()}, {self.events()[:20]}")
        load.stop()
        self.assertEqual([], load.errors[:5], f"seed {self.seed}")
        self.wait_until(lambda: all(job["state"] in ("done", "cancelled") for job in self.jobs()), self.jobs)
        self.assert_whole()
        self.assert_all_there()

    def test_a_hot_row_is_told_and_stays(self):
        hot = self.row(200)
        load = Load(self, lambda rng: get(hot if rng.random() < 0.9 else self.row(rng.randrange(ROWS))))
        self.wait_until(lambda: any(event.startswith(f"hot row '{hot}' of 0/t") for event in self.events()),
                        lambda: f"{self.events()[:20]}, {self.told_sets(self.director)}")
        load.stop()
        self.assertEqual([], load.errors)
        self.assertEqual(1, len([event for event in self.events() if event.startswith("hot row")]))
        self.assertEqual(1, len(self.tablets(member=self.director)), self.events()[:5])


class MergeWhatIsQuiet(MovesCase):
    """Small neighbours in which nothing happens become one."""

    CUTS = 40

    def setUp(self):
        super().setUp()
        self.seed = random.randrange(1 << 30)
        self.cluster(3, 1)
        self.director = self.sets[0][0]
        self.director.run("TABLE", "CREATE", "t", "SPLIT", "AT", self.CUTS, *map(self.row, range(self.CUTS)), "FAMILY", "f")

    def merges(self):
        return [event for event in (" ".join(each[1:]) for each in self.director.run("CLUSTER", "EVENTS", "COUNT", 1000))
                if event.startswith("merge ")]

    @staticmethod
    def row(cut):
        return f"row{cut:04}"

    def fill(self):
        pipe = redis.Redis(port=self.director.port).pipeline(transaction=False)
        for cut in range(self.CUTS):
            pipe.execute_command("CPUT", "t", self.row(cut), "f:x", f"v{cut}")
        pipe.execute()

    def test_tablets_without_load_become_fewer(self):
        self.director.run("DEBUG", "CLUSTER", "QUIET-AFTER", 1)
        # What has no rows stays as it was cut, and is told with the others once there are some.
        self.wait_until(lambda: all(each["load"] is not None for each in self.tablets(member=self.director)),
                        lambda: self.tablets(member=self.director))
        self.assertEqual([], self.merges())
        self.fill()
        before = self.digest_of_all()
        self.wait_until(lambda: len(self.tablets(member=self.director)) <= 24,
                        lambda: f"{len(self.tablets(member=self.director))}, {self.merges()[:5]}, {self.director.server.log()[-800:]}")
        self.assertEqual(24, len(self.tablets(member=self.director)))
        self.wait_until(lambda: len(self.merges()) == self.CUTS + 1 - 24, self.merges)
        self.assertIn("their table has 25 tablets for 3 sets", self.merges()[0])
        self.assertTrue(self.merges()[0].startswith("merge 0/t at 'row"), self.merges()[0])
        self.assertEqual(3, len(set(self.owners(member=self.director))))
        self.assert_whole()
        self.assertEqual(before, self.digest_of_all())
        for member in self.everyone:
            rows = member.run("CSCAN", "t", "0", "COUNT", 1000)[1]
            self.assertEqual(list(map(self.row, range(self.CUTS))), [row[0] for row in rows])

    def digest_of_all(self):
        return self.any().run("DEBUG", "DIGEST", "CLUSTER")

    def test_nothing_is_merged_where_it_is_turned_off(self):
        for name, value in (("tablet-merge-bytes", 0), ("tablet-balance", "no")):
            self.director.run("CLUSTER", "CONFIG", "SET", name, value)
            self.director.run("DEBUG", "CLUSTER", "QUIET-AFTER", 0)
            self.fill()
            self.wait_until(lambda: all(each["load"] is not None for each in self.tablets(member=self.director)),
                            lambda: self.tablets(member=self.director))
            # What drains is looked at at once, with all the rest.
            self.director.run("CLUSTER", "DRAIN", 2)
            self.wait_until(lambda: 2 not in self.owners(member=self.director), lambda: self.owners(member=self.director))
            self.director.run("CLUSTER", "UNDRAIN", 2)
            self.assertEqual([], self.merges())
            self.assertEqual(self.CUTS + 1, len(self.tablets(member=self.director)))
            self.director.run("DEBUG", "CLUSTER", "QUIET-AFTER", 3_600_000)
            self.director.run("CLUSTER", "CONFIG", "SET", name, {"tablet-merge-bytes": "64mb", "tablet-balance": "yes"}[name])


if __name__ == "__main__":
    unittest.main()
