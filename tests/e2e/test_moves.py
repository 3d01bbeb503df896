"""Tablets that move from one set of a cluster to another: nothing is lost, nobody is told an error, and what a set
gives away it does not keep."""

import os
import random
import threading
import time
import unittest

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
        return (member or self.any()).run("TABLET", "MOVE", table, row, "TO", to, "WAIT", wait)

    def wait_purged(self):
        for each in self.sets:
            self.wait_until(lambda each=each: self.wait_leader(each).info("cluster")["cluster_rows_to_purge"] == 0,
                            "rows that are not owned do not go")

    def digest(self):
        return self.lead(self.sets[0], "DEBUG", "DIGEST")

    def assert_whole(self):
        self.wait_until(lambda: self.lead(self.sets[0], "CLUSTER", "MAP", "CHECK") == [],
                        lambda: self.lead(self.sets[0], "CLUSTER", "MAP", "CHECK"))


class Moving(MovesCase):
    def test_its_rows_are_as_they_were(self):
        """Cells of all kinds, versions, expiries, indexes, in two groups of families."""
        self.cluster(3)
        member = self.everyone[1]
        member.run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f", "VERSIONS", 3, "FAMILY", "g", "GROUP", "other",
                   "FAMILY", "n", "TYPE", "i64", "FAMILY", "h", "AGGREGATE", "HLL")
        member.run("INDEX", "CREATE", "t", "i", "ON", 1, "f:c")
        rng = random.Random(7)
        for number in range(600):
            row = f"{chr(97 + number % 26)}{number:04}"
            member.run("CPUT", "t", row, "f:c", rng.randrange(50), "f:d", "x" * rng.randrange(300), "g:e", number, "n:k", number)
            member.run("CADD", "t", row, "h:l", rng.randrange(1000))
            if number % 7 == 0:
                member.run("CPUT", "t", row, "f:c", rng.randrange(50))
            if number % 11 == 0:
                member.run("CPUT", "t", row, "f:t", "soon", "TTL", 500_000)
        before = self.everything(member)
        for round_number, (row, to) in enumerate([("i", 0), ("a", 2), ("z", 1), ("i", 2), ("a", 0), ("i", 1), ("z", 2)]):
            self.assertEqual("OK", self.move(row, to), self.jobs())
            self.assertEqual(before, self.everything(self.any()), f"round {round_number}")
        self.assert_whole()
        self.wait_purged()
        self.assertEqual([0, 1, 2], self.owners())

    def everything(self, member):
        cursor, pages = "0", []
        while True:
            cursor, page = member.run("CSCAN", "t", cursor, "COUNT", 500)
            pages.append(str(page))
            if cursor == "0":
                break
        by_index = [member.run("CSCAN", "t", "0", "INDEX", "i", "WHERE", "f:c", "EQ", value, "COUNT", 5000) for value in range(0, 50, 9)]
        return "".join(pages).replace("][", ", "), str(by_index), member.run("CCOUNT", "t")

    def test_what_is_refused(self):
        self.cluster(2)
        member = self.everyone[0]
        member.run("TABLE", "CREATE", "t", "SPLIT", "AT", 1, "m", "FAMILY", "f")
        for words, wanted in ((("t", "a", "TO", "7"), "set 7 is not of this cluster"),
                              (("t", "a", "TO", "0"), "the tablet is set 0's already"),
                              (("nope", "a", "TO", "1"), "no table"),
                              (("t", "a", "TO"), "wrong number of arguments"),
                              (("t", "a", "AT", "1"), "TO"),
                              (("t", "a", "TO", "1", "WAIT"), "WAIT"),
                              (("t", "a", "TO", "x"), "TO"), (("t", "a", "TO", "1", "WAIT", "0"), "WAIT"),
                              (("_cluster/tablets", "0/0", "TO", "1"), "stay")):
            for each in self.everyone:
                refusal = each.refusal("TABLET", "MOVE", *words)
                self.assertIn(wanted, refusal, words)
        self.assertIn("no job 9", member.refusal("TABLET CANCEL 9"))
        self.assertEqual([], self.jobs())
        self.assertEqual("OK", self.move("a", 1))
        self.assertIn("past the point", self.any().refusal("TABLET CANCEL 1"))
        self.assertEqual(["done"], [job["state"] for job in self.jobs()])

    def test_a_job_is_cancelled(self):
        """Of a tablet whose other set does not answer: nothing has happened then."""
        self.cluster(3)
        member = self.everyone[0]
        member.run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f")
        member.run("CPUT t a f:x 1")
        self.everyone[2].server.kill()
        number = member.run("TABLET MOVE t a TO 2")
        self.assertIn("TRYAGAIN the tablet is moving", member.refusal("TABLET MOVE t a TO 1"))
        self.wait_until(lambda: member.info("cluster")["cluster_tablets_given"] == 1, self.jobs)
        self.assertIn("moving", member.refusal("TABLET SPLIT t c"))
        self.assertEqual("1", self.everyone[1].run("CGET t a f:x"))
        self.everyone[2].server.start()
        self.everyone[2].connect()
        self.wait_until(lambda: self.sees(self.everyone[2], 3), "it is not back")
        got = self.any().refusal("TABLET", "CANCEL", number)
        self.assertTrue(got == "no error: OK" or "past the point" in got, got)
        self.assert_whole()
        self.wait_until(lambda: self.jobs()[0]["state"] in ("cancelled", "done"), self.jobs)

    def test_schema_changes_meanwhile(self):
        """They come to all sets, whatever moves."""
        self.cluster(3)
        member = self.everyone[0]
        member.run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f")
        for number in range(3000):
            member.run("CPUT", "t", f"{chr(97 + number % 26)}{number}", "f:x", "v" * 100)
        stop = threading.Event()

        def moves():
            rng = random.Random(3)
            while not stop.is_set():
                try:
                    self.everyone[2].run("TABLET", "MOVE", "t", rng.choice("aiz"), "TO", rng.randrange(3), "WAIT", 3000)
                except redis.RedisError:
                    pass
        thread = self.beside(moves)
        for number in range(25):
            for words in (("TABLE", "CREATE", "gone", "SPLIT", "AT", 1, "m", "FAMILY", "f"), ("TABLET", "MOVE", "gone", "a", "TO", "0"),
                          ("TABLE", "TRUNCATE", "gone"), ("TABLE", "DROP", "gone"), ("FAMILY", "ADD", "t", f"g{number}"), ("INDEX", "CREATE", "t", f"i{number}", "ON", 1, f"g{number}:c"),
                          ("CPUT", "t", f"a{number}", f"g{number}:c", number), ("CPUT", "t", f"z{number}", f"g{number}:c", number),
                          ("INDEX", "DROP", "t", f"i{number}"), ("FAMILY", "DROP", "t", f"g{number}")):
                while True:
                    refusal = self.any().refusal(*words)
                    if "TRYAGAIN" not in refusal:
                        break
                if words[1] != "MOVE":
                    self.assertEqual("no error: OK", refusal, words)
        stop.set()
        thread.join()
        self.assertEqual(3000, self.any().run("CCOUNT t"))
        self.assert_whole()


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
        return redis.Redis(port=member.port, decode_responses=True, socket_timeout=30)

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
        """What became of a write whose answer got lost: whatever is there now is what there is."""
        while True:
            try:
                client = self.client()
                got = client.execute_command("CGET", "t", row, "f:x")
                count = client.execute_command("CGET", "t", row, "f:n")
                if got != self.known[row] and got not in (self.tried, None):
                    self.errors.append(f"{row}: {got}, neither {self.known[row]} nor {self.tried}")
                if int(count or 0) not in (self.counts[row], self.counts[row] + 1, 0):
                    self.errors.append(f"{row}: counts {count}, not {self.counts[row]} or one more")
                self.known[row] = got
                self.counts[row] = int(count or 0)
                client.close()
                return
            except redis.RedisError:
                time.sleep(0.05)

    def step(self, client, row):
        choice = self.rng.random()
        self.tried = self.known[row]
        if choice < 0.5:
            self.tried = f"{self.done}-{'v' * self.rng.randrange(200)}"
            client.execute_command("CPUT", "t", row, "f:x", self.tried)
            self.known[row] = self.tried
        elif choice < 0.7:
            got = client.execute_command("CINCRBY", "t", row, "f:n", 1)
            self.counts[row] += 1
            if int(got) != self.counts[row]:
                self.errors.append(f"{row}: CINCRBY gives {got}, not {self.counts[row]}")
                self.counts[row] = int(got)
        elif choice < 0.75:
            client.execute_command("CDEL", "t", row)
            self.known[row], self.counts[row] = None, 0
        elif choice < 0.78:
            got = client.execute_command("CDELRANGE", "t", "RANGE", "[" + row, "[" + row)
            if got != (self.known[row] is not None or self.counts[row] > 0):
                self.errors.append(f"{row}: CDELRANGE gives {got}")
            self.known[row], self.counts[row] = None, 0
        else:
            got = client.execute_command("CGET", "t", row, "f:x")
            if got != self.known[row]:
                self.errors.append(f"{row}: read {str(got)[:20]}, not {str(self.known[row])[:20]}")
                self.known[row] = got


class UnderLoad(MovesCase):
    def setUp(self):
        super().setUp()
        self.seed = os.environ.get("CELLAR_SEED", str(random.randrange(1 << 30)))

    def begin(self, sets=3, voters=1, **options):
        self.cluster(sets, voters, **options)
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f", "VERSIONS", 2)

    def load(self, seconds, beside, writers=4, faults=False):
        """Writers for so long while `beside` runs over and over; what they know is what there is afterwards."""
        stop = threading.Event()
        all_writers = [Writer(self, number, faults) for number in range(writers)]
        threads = [self.beside(lambda one=one: one.run(stop)) for one in all_writers]
        until = time.monotonic() + seconds
        rounds = 0
        while time.monotonic() < until:
            beside(rounds)
            rounds += 1
        stop.set()
        for thread in threads:
            thread.join()
        errors = sum((one.errors for one in all_writers), [])
        self.assertEqual([], errors[:5], f"seed {self.seed}: {len(errors)} errors, jobs {self.jobs()[-3:]}")
        self.assert_whole()
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

    def test_writes_go_on(self):
        self.begin()
        rng = random.Random(self.seed)

        def beside(number):
            self.random_move(rng)
            if number % 5 == 4:
                row = rng.choice("bcdehjkoptuvw")
                self.any(rng).refusal("TABLET", "SPLIT" if rng.random() < 0.6 else "MERGE", "t", row)
        done, moves = self.load(float(os.environ.get("CELLAR_MOVE_SECONDS", 8)), beside)
        self.wait_purged()
        print(f"seed {self.seed}: {done} commands, {moves} rounds, slowest {self.slowest * 1000:.0f} ms, "
              f"pauses {[member.info('cluster').get('cluster_pause_us_max') for member in self.everyone]}")

    def test_reads_of_all_rows_go_on(self):
        """Each row that was there all the time is seen once, whatever moves between its tablets."""
        self.begin()
        rows = sorted({f"{chr(97 + number % 26)}{number * 7919 % 100_003:05}" for number in range(3000)})
        with self.everyone[0].redis.pipeline(transaction=False) as pipe:
            for number, row in enumerate(rows):
                pipe.execute_command("CPUT", "t", row, "f:x", number % 10)
            pipe.execute()
        self.any().run("INDEX", "CREATE", "t", "i", "ON", 1, "f:x")
        self.wait_until(lambda: all(pairs(member.run("INDEX", "INFO", "t", "i", "LOCAL"))["state"] == "ready" for member in self.everyone),
                        "the index is not built")
        stop = threading.Event()

        def moves():
            rng = random.Random(self.seed)
            while not stop.is_set():
                self.random_move(rng)
                if rng.random() < 0.3:
                    self.any(rng).refusal("TABLET", "SPLIT" if rng.random() < 0.6 else "MERGE", "t", rng.choice("bcdehjkoptuvw"))
        thread = self.beside(moves)
        until = time.monotonic() + float(os.environ.get("CELLAR_MOVE_SECONDS", 8))
        rounds = 0
        while time.monotonic() < until:
            rounds += 1
            note = f"seed {self.seed}, round {rounds}"
            self.assertEqual(3000, self.any().run("CCOUNT", "t"), note)
            self.assertEqual(300, self.any().run("CCOUNT", "t", "WHERE", "f:x", "EQ", 7), note)
            self.assertIn("3000", str(self.any().run("CAGG", "t", "REDUCE", "COUNT", "*")), note)
            for words, expected in ((("COUNT", 700), rows), (("REVERSE", "COUNT", 900), rows[::-1])):
                cursor, seen = "0", []
                while True:
                    cursor, page = self.any().run("CSCAN", "t", cursor, *words, "KEYSONLY")
                    seen += page
                    if cursor == "0":
                        break
                self.assertEqual(expected, seen, note)
        stop.set()
        thread.join()
        print(f"seed {self.seed}: {rounds} rounds")

    def test_nodes_die_meanwhile(self):
        self.begin(cluster_wait=20000)
        rng = random.Random(self.seed)

        def beside(number):
            mover = self.beside(lambda: self.random_move(rng))
            time.sleep(rng.random() * 0.2)
            member = rng.choice(self.everyone)
            member.server.kill()
            member.server.start()
            member.connect()
            self.wait_until(lambda: self.sees(member, len(self.sets)), lambda: member.server.log()[-800:])
            mover.join()
        done, rounds = self.load(float(os.environ.get("CELLAR_MOVE_SECONDS", 8)), beside, faults=True)
        self.wait_until(lambda: all(job["state"] in ("done", "cancelled") for job in self.jobs()), self.jobs)
        self.wait_purged()
        print(f"seed {self.seed}: {done} commands, {rounds} kills")


class Balance(MovesCase):
    def fill(self, megabytes, table="t"):
        value = "v" * 1000
        with self.everyone[0].redis.pipeline(transaction=False) as pipe:
            for number in range(megabytes * 1000):
                pipe.execute_command("CPUT", table, f"r{number * 7919 % 1_000_003:07}", "f:x", value)
                if number % 1000 == 999:
                    pipe.execute()
            pipe.execute()

    def bytes_of_sets(self):
        return {each["set"]: each["bytes"] for each in self.told_sets(self.wait_leader(self.sets[0]))}

    def is_even(self, sets, within=0.3):
        told = self.bytes_of_sets()
        sizes = [told.get(number, 0) for number in sets]
        return max(sizes) - min(sizes) <= within * sum(sizes) / len(sizes)

    def test_it_grows_and_shrinks(self):
        """One table of one tablet; a second and a third set come; one is drained and removed."""
        self.cluster(2)
        first = self.everyone[0]
        first.run("CLUSTER CONFIG SET tablet-split-bytes 8mb")
        first.run("TABLE CREATE t FAMILY f")
        self.fill(24)
        first.run("CPUT t zz f:x last")
        self.wait_until(lambda: self.is_even([0, 1]) and len(set(self.owners())) == 2, lambda: (self.bytes_of_sets(), self.jobs()))
        self.sets.append(self.new_set(1, join=self.sets[0]))
        self.admit(2)
        self.everyone = sum(self.sets, [])
        self.wait_until(lambda: self.is_even([0, 1, 2], 0.4), lambda: (self.bytes_of_sets(), self.jobs()))
        self.assertEqual(24_001, self.any().run("CCOUNT t"))
        events = str(first.run("CLUSTER EVENTS COUNT 100"))
        self.assertIn("split 0/t at", events)
        self.assertIn("bytes, set", events)
        self.assertRegex(self.any().refusal("CLUSTER REMOVE 1"), "set 1 owns|of set 1 goes on")
        self.assertEqual("OK", self.any().run("CLUSTER DRAIN 1"))
        self.wait_until(lambda: 1 not in self.owners(), lambda: (self.owners(), self.jobs()))
        self.wait_purged()
        self.assertEqual(["draining"], [each["state"] for each in self.told_sets(first) if each["set"] == 1])
        self.wait_until(lambda: first.refusal("CLUSTER REMOVE 1") == "no error: OK", lambda: first.refusal("CLUSTER REMOVE 1"))
        gone = self.sets.pop(1)
        self.everyone = sum(self.sets, [])
        self.assertEqual(24_001, self.any().run("CCOUNT t"))
        self.assertEqual("OK", self.any().run("TABLE CREATE after FAMILY f"))
        self.assertEqual("last", self.any().run("CGET t zz f:x"))
        self.wait_until(lambda: "which was removed from the cluster" in first.refusal("CLUSTER", "ADMIT", f"127.0.0.1:{gone[0].port}"),
                        lambda: first.refusal("CLUSTER", "ADMIT", f"127.0.0.1:{gone[0].port}"))
        self.assert_whole()

    def test_what_is_refused(self):
        self.cluster(2)
        for words, wanted in (("DRAIN 7", "set 7 is not of this cluster"), ("REMOVE 0", "set 0 holds the map"),
                              ("DRAIN x", "set"), ("UNDRAIN 9", "set 9"), ("REMOVE 3", "set 3")):
            self.assertIn(wanted, self.any().refusal(f"CLUSTER {words}"))
        self.assertEqual("OK", self.any().run("CLUSTER DRAIN 0"))
        self.assertIn("no other set", self.any().refusal("CLUSTER DRAIN 1"))
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        self.assertEqual({1}, set(self.owners()))
        self.assertEqual("OK", self.any().run("CLUSTER UNDRAIN 0"))


if __name__ == "__main__":
    unittest.main()
