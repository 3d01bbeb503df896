"""What tests of moving tablets have in common: who owns what, which jobs there are, and clients that write meanwhile."""

import os
import random
import threading
import time

import redis

from cluster_sets import SetsCase, pairs

MOVED_ERRORS = (redis.ConnectionError, redis.TimeoutError)


class MovesCase(SetsCase):
    def tablets(self, table="t", member=None):
        _, listed = (member or self.everyone[0]).run("TABLET", "LIST", table)
        return [pairs(each) for each in listed]

    def owners(self, table="t", member=None):
        return [each["set"] for each in self.tablets(table, member)]

    def jobs(self):
        return [pairs(each) for each in self.wait_leader(self.sets[0]).run("TABLET", "JOBS")]

    def move(self, row, to, table="t", member=None, wait=20_000):
        """Once both sets have the schema that it goes by: until then the answer is TRYAGAIN."""
        told = []

        def is_told():
            try:
                told.append((member or self.any()).run("TABLET", "MOVE", table, row, "TO", to, "WAIT", wait))
            except redis.ResponseError as error:
                if "has not taken schema change" not in str(error):
                    raise
            return told
        self.wait_until(is_told, "a set has not taken the schema")
        return told[0]

    def wait_stopped(self, member):
        """It has stopped itself, as DEBUG CLUSTER STOP-AT says."""
        self.wait_until(lambda: self.is_stopped(member), lambda: f"{member.address} does not stop: {self.jobs()[-2:]}")

    @staticmethod
    def is_stopped(member):
        try:
            with open(f"/proc/{member.server.process.pid}/stat", encoding="ascii") as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "T"
        except OSError:
            return False

    def wait_purged(self):
        for each in self.sets:
            self.wait_until(lambda each=each: self.wait_leader(each).info("cluster")["cluster_rows_to_purge"] == 0,
                            "rows that are not owned do not go")

    def digest(self):
        return self.lead(self.sets[0], "DEBUG", "DIGEST")

    def assert_whole(self):
        self.wait_until(lambda: self.lead(self.sets[0], "CLUSTER", "MAP", "CHECK") == [],
                        lambda: self.lead(self.sets[0], "CLUSTER", "MAP", "CHECK"))


class Writer:
    """Rows of its own, over all tablets, and what is known of them."""

    def __init__(self, case, number, faults):
        self.case, self.faults = case, faults
        self.rng = random.Random(f"{case.seed}/{number}")
        self.rows = [f"{chr(97 + self.rng.randrange(26))}{number}-{each}" for each in range(40)]
        self.known = {row: None for row in self.rows}  # of f:x; None: no row
        self.counts = {row: 0 for row in self.rows}
        self.errors = []
        self.done = 0
        self.slowest = 0.0

    def client(self):
        member = self.case.any(self.rng)
        return redis.Redis(host=member.server.host, port=member.port, decode_responses=True, socket_timeout=30)

    def run(self, stop):
        client = self.client()
        while not stop.is_set():
            if self.rng.random() < 0.02:
                client.close()
                client = self.client()
            row = self.rng.choice(self.rows)
            try:
                begun = time.monotonic()
                self.step(client, row)
                self.slowest = max(self.slowest, time.monotonic() - begun)
                self.done += 1
            except MOVED_ERRORS as error:
                if not self.faults:
                    self.errors.append(repr(error))
                client = self.client()
                self.settle(row, stop)
            except redis.ResponseError as error:
                if not self.faults or not str(error).startswith(("TRYAGAIN", "CLUSTERDOWN", "LOADING", "MISCONF")):
                    self.errors.append(f"{row}: {error}")
        client.close()

    def settle(self, row, stop):
        """What became of a write whose answer got lost: it was done or not, and what is there now is what there is."""
        while True:
            try:
                client = self.client()
                got = client.execute_command("CGET", "t", row, "f:x"), int(client.execute_command("CGET", "t", row, "f:n") or 0)
                known = self.known[row], self.counts[row]
                if got not in (known, self.tried):
                    self.errors.append(f"{row}: {got}, neither {known} nor {self.tried}")
                self.known[row], self.counts[row] = got
                client.close()
                return
            except redis.RedisError:
                time.sleep(0.05)

    def step(self, client, row):
        choice = self.rng.random()
        value, count = self.known[row], self.counts[row]
        self.tried = value, count
        if choice < 0.5:
            self.tried = f"{self.done}-{'v' * self.rng.randrange(200)}", count
            client.execute_command("CPUT", "t", row, "f:x", self.tried[0])
        elif choice < 0.7:
            self.tried = value, count + 1
            got = int(client.execute_command("CINCRBY", "t", row, "f:n", 1))
            if got != count + 1:
                self.errors.append(f"{row}: CINCRBY gives {got}, not {count + 1}")
                self.tried = value, got
        elif choice < 0.75:
            self.tried = None, 0
            client.execute_command("CDEL", "t", row)
        elif choice < 0.78:
            self.tried = None, 0
            got = client.execute_command("CDELRANGE", "t", "RANGE", "[" + row, "[" + row)
            if got != (value is not None or count > 0):
                self.errors.append(f"{row}: CDELRANGE gives {got}")
        else:
            got = client.execute_command("CGET", "t", row, "f:x")
            if got != value:
                self.errors.append(f"{row}: read {str(got)[:20]}, not {str(value)[:20]}")
                self.tried = got, count
        self.known[row], self.counts[row] = self.tried


class LoadCase(MovesCase):
    """A table that is written to all the time, by clients that check each reply."""

    def setUp(self):
        super().setUp()
        self.seed = os.environ.get("CELLAR_SEED", str(random.randrange(1 << 30)))

    def begin(self, sets=3, voters=1, **options):
        self.cluster(sets, voters, **options)
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f", "VERSIONS", 2)

    def run_writers(self, all_writers, seconds, beside):
        """They write for so long while `beside` runs over and over, once at least; how often it ran."""
        stop = threading.Event()
        threads = [self.beside(lambda one=one: one.run(stop)) for one in all_writers]
        until = time.monotonic() + seconds
        rounds = 0
        while rounds == 0 or time.monotonic() < until:
            beside(rounds)
            rounds += 1
        stop.set()
        for thread in threads:
            thread.join()
        errors = sum((one.errors for one in all_writers), [])
        self.assertEqual([], errors[:5], f"seed {self.seed}: {len(errors)} errors, jobs {self.jobs()[-3:]}")
        self.assert_whole()
        return rounds

    def load(self, seconds, beside, writers=4, faults=False):
        """Writers beside that; what they know is what there is afterwards."""
        all_writers = [Writer(self, number, faults) for number in range(writers)]
        rounds = self.run_writers(all_writers, seconds, beside)
        for one in all_writers:
            for row in one.rows:
                self.assertEqual(one.known[row], self.any().run("CGET", "t", row, "f:x"), f"seed {self.seed}, {row}")
                self.assertEqual(one.counts[row], int(self.any().run("CGET", "t", row, "f:n") or 0), f"seed {self.seed}, {row}")
        self.slowest = max(one.slowest for one in all_writers)
        return sum(one.done for one in all_writers), rounds

    def random_move(self, rng):
        row, to = rng.choice("afgimnsz"), rng.randrange(len(self.sets))
        try:
            self.any(rng).run("TABLET", "MOVE", "t", row, "TO", to, "WAIT", 10_000)
        except redis.ResponseError as error:
            self.assertRegex(str(error), "already|moving|goes on|cancelled|does not say|CLUSTERDOWN|TRYAGAIN")
        except MOVED_ERRORS:
            pass
