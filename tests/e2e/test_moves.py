"""Tablets that move from one set of a cluster to another: nothing is lost, nobody is told an error, and what a set
gives away it does not keep."""

import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import is_sanitized, tool
from cluster_sets import pairs
from move_load import LoadCase, MovesCase


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

    def test_an_index_that_has_failed_has_failed_wherever_its_rows_are(self):
        """A set that has an index of no rows finds nothing wrong with it; then rows come."""
        self.cluster(3)
        member = self.everyone[1]
        member.run("TABLE", "CREATE", "t", "KEY", "u64", "FAMILY", "f")
        for row in (1, 2):
            member.run("CPUT", "t", row, "f:a", 5)
        member.run("CPUT", "t", 3, "f:big", "x" * 70_000)
        member.run("INDEX", "CREATE", "t", "twice", "ON", 1, "f:a", "UNIQUE")
        member.run("INDEX", "CREATE", "t", "long", "ON", 1, "f:big")
        member.run("INDEX", "CREATE", "t", "good", "ON", 1, "f:a")
        for to in (None, 1, 2, 0):
            if to is not None:
                self.assertEqual("OK", self.move("1", to), self.jobs())
            for each in self.everyone:
                for words in ("CSCAN t 0", "CEXPLAIN CSCAN t 0", "CCOUNT t"):
                    self.assertIn("row '2' is not the only one", each.refusal(f"{words} INDEX twice"), to)
                    self.assertIn("it takes 70001 bytes in an entry", each.refusal(f"{words} INDEX long"), to)
                self.assertEqual(2, each.run("CCOUNT t INDEX good"))
                self.assertIn("NOTUNIQUE", pairs(each.run("INDEX INFO t twice"))["error"])
                self.assertIn("TOOLARGE", pairs(each.run("INDEX INFO t long"))["error"])

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
        self.everyone[2].run("DEBUG CLUSTER STOP-AT stage")
        number = member.run("TABLET MOVE t a TO 2")
        self.wait_stopped(self.everyone[2])
        self.everyone[2].server.kill()
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

    def test_who_takes_nothing_in_is_named(self):
        """A set without a leader, or that is full; and what is known of a tablet while it moves."""
        self.cluster(3)
        director, _, other = self.everyone
        director.run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f")
        director.run("CLUSTER CONFIG SET tablet-balance no")
        for number in range(500):
            other.run("CPUT", "t", f"p{number}", "f:x", "v" * 1000)
        other.server.kill()
        self.wait_until(lambda: director.refusal("TABLET MOVE t a TO 2") == "ResponseError TRYAGAIN set 2 has no leader",
                        lambda: director.refusal("TABLET MOVE t a TO 2"))
        other.server.options["maxmemory"] = "600kb"
        other.server.start()
        other.connect()
        self.wait_until(lambda: "set 2 is full: it has" in director.refusal("TABLET MOVE t a TO 2"),
                        lambda: director.refusal("TABLET MOVE t a TO 2"))
        other.run("CONFIG SET maxmemory 0")
        other.run("DEBUG CLUSTER STOP-AT run")
        director.run("CPUT t a f:x 1")
        number = []

        def ordered():
            number[:] = [director.refusal("TABLET MOVE t a TO 2").removeprefix("no error: ")]
            return number[0].isdigit()
        self.wait_until(ordered, lambda: number)
        self.wait_stopped(other)
        told = self.tablets(member=director)[0]
        self.assertEqual(("moving", int(number[0]), 2), tuple(told[name] for name in ("state", "job", "to")))
        self.wait_until(lambda: self.tablets(member=director)[0]["progress"] == "copying", lambda: self.tablets(member=director))
        for member in (director, self.everyone[1]):
            self.assertEqual(["copying"], [pairs(job)["state"] for job in member.run("TABLET JOBS")])
            top = subprocess.run([tool("cellar-top"), "-p", str(member.port), "--once", "-i", "0.1", "--sets"], stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, check=True).stdout
            self.assertRegex(top, rf"(?m)^ +{number[0]}  0/t +0 +2  copying ")
        self.assertEqual((1, 1), tuple(director.info("cluster")[name] for name in ("cluster_jobs_running", "cluster_tablets_given")))
        other.server.process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: self.jobs()[0]["state"] == "done", self.jobs)
        # The map hears of it from the set that has it now.
        self.wait_until(lambda: self.owners(member=director) == [2, 1, 2], lambda: self.owners(member=director))
        self.assertEqual(["owned"] * 3, [each["state"] for each in self.tablets(member=director)])
        # The director hears of sizes every few seconds.
        self.wait_until(lambda: all(each["bytes"] is not None and each["rows"] is not None for each in self.tablets(member=director)),
                        lambda: self.tablets(member=director))
        self.assertGreater(self.tablets(member=director)[2]["rows"], 250)
        self.assertIsNotNone(self.jobs()[0]["bytes"])

    def test_a_job_that_comes_no_further_is_cancelled(self):
        """Also where its recipient never answers: what is cancelled at the donor is cancelled."""
        self.cluster(3)
        director, donor, other = self.everyone
        director.run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f")
        director.run("DEBUG CLUSTER JOB-PATIENCE 300")
        other.run("DEBUG CLUSTER STOP-AT stage")
        number = director.run("TABLET MOVE t i TO 2")
        self.wait_stopped(other)
        other.server.kill()
        self.wait_until(lambda: self.jobs()[0]["state"] == "cancelled", self.jobs)
        self.assertIn("no progress for", self.jobs()[0]["error"])
        self.assertEqual(0, director.info("cluster")["cluster_jobs_running"])
        self.assertEqual("OK", director.run("TABLET", "CANCEL", number))
        self.assertEqual("OK", donor.run("TABLET SPLIT t k"))
        other.server.start()
        other.connect()
        self.wait_until(lambda: other.info("cluster").get("cluster_tablets_staged") == 0, lambda: other.info("cluster"))
        self.wait_until(lambda: director.refusal("TABLET MOVE t k TO 2 WAIT 20000") == "no error: OK", self.jobs)
        self.assert_whole()

    def test_a_set_without_room_is_named(self):
        """While the job waits for it, and for ever once it is cancelled."""
        self.cluster(3)
        director, donor, other = self.everyone
        director.run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f")
        director.run("CLUSTER CONFIG SET tablet-balance no")
        pipe = donor.redis.pipeline(transaction=False)
        for number in range(3000):
            pipe.execute_command("CPUT", "t", f"i{number}", "f:x", f"{number}" * 300)
        pipe.execute()
        limit = other.info("memory")["used_memory"] + (1 << 20)
        other.run("CONFIG SET maxmemory", limit * 100 // 85)
        number = director.run("TABLET MOVE t i TO 2")
        text = rf"set 2 has no room for it: it uses \d+ bytes, and takes nothing in beyond 85 % of maxmemory, {limit * 100 // 85}"
        self.wait_until(lambda: re.fullmatch(text, self.jobs()[0]["error"] or ""), self.jobs)
        self.assertEqual("copying", self.jobs()[0]["state"])
        director.run("DEBUG CLUSTER JOB-PATIENCE 300")
        self.wait_until(lambda: self.jobs()[0]["state"] == "cancelled", self.jobs)
        self.assertRegex(self.jobs()[0]["error"], rf"no progress for \d+ s: {text}")
        self.wait_until(lambda: director.info("cluster")["cluster_jobs_running"] == 0, self.jobs)
        told = self.wait_until(lambda: [event for event in director.run("CLUSTER EVENTS") if event[1] == f"job {number} is cancelled"],
                               lambda: director.run("CLUSTER EVENTS"))
        self.assertRegex(told[0][2], text)
        other.run("CONFIG SET maxmemory 0")
        director.run("DEBUG CLUSTER JOB-PATIENCE 60000")
        self.wait_until(lambda: director.refusal("TABLET MOVE t i TO 2 WAIT 20000") == "no error: OK", self.jobs)
        self.assert_whole()

    def test_what_is_watched_ends_with_a_move(self):
        """EXEC is null then, wherever its rows are now; it is CROSSSET where nothing has moved, and splits end nothing."""
        self.cluster(3)
        self.everyone[0].run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f")
        self.everyone[0].run("CLUSTER CONFIG SET tablet-balance no")
        row = "i"
        for entry in self.everyone:
            client = entry.redis.connection_pool.get_connection("_")

            def ask(*words, client=client):
                client.send_command(*words)
                try:
                    return client.read_response()
                except redis.ResponseError as error:
                    return str(error)

            def executed(written):
                return [ask("MULTI"), ask("CPUT", "t", written, "f:x", "1"), ask("EXEC")][-1]
            self.assertEqual("OK", ask("CWATCH", "t", row))
            self.assertRegex(str(executed("a" if self.owners()[1] else "z")), "CROSSSET EXEC touches set .*, and what is watched lies on set")
            self.assertEqual("OK", ask("CWATCH", "t", row))
            self.assertEqual("OK", self.any().run("TABLET SPLIT t k"))
            self.assertEqual(["OK"], executed(row))
            self.assertEqual("OK", self.any().run("TABLET MERGE t i"))
            for written in (row, "a", "z"):
                self.assertEqual("OK", ask("CWATCH", "t", row))
                before = self.owners()[1]
                self.assertEqual("OK", self.move(row, (before + 1) % 3))
                self.wait_until(lambda before=before: all(self.owners(member=member)[1] != before for member in self.everyone), self.owners)
                self.assertIsNone(executed(written), f"{entry.port}, {written}")
                self.assertEqual(["OK"], executed(written))
            entry.redis.connection_pool.release(client)

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


@unittest.skipIf(is_sanitized(), "the sanitizers' own functions must be loaded first")
class HeldSyncs(MovesCase):
    def test_what_is_told_is_on_disk(self):
        """With appendfsync everysec, too, where a set's clients are told of what is not."""
        folder = tempfile.mkdtemp(prefix="cellar-held-")
        self.addCleanup(shutil.rmtree, folder)
        library, gate = os.path.join(folder, "held_sync.so"), os.path.join(folder, "gate")
        subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", os.path.join(os.path.dirname(__file__), "held_sync.cc"),
                        "-o", library, "-ldl"], check=True)
        self.cluster(2, appendfsync="everysec")
        director, other = self.everyone
        director.run("TABLE", "CREATE", "t", "SPLIT", "AT", 1, "h", "FAMILY", "f")
        director.run("CPUT t a f:x 1")
        other.server.kill()
        other.server.environment.update(LD_PRELOAD=library, HELD_SYNC_MARK="from-here-on", HELD_SYNC_GATE=gate)
        other.server.start()
        other.connect()
        self.wait_until(lambda: self.sees(director, 2) and self.sees(other, 2), lambda: other.server.log()[-800:])
        with open(gate, "w", encoding="ascii"):
            pass
        self.addCleanup(lambda: os.path.exists(gate) and os.unlink(gate))
        self.assertEqual("OK", other.run("CPUT t z f:x from-here-on"))
        director.run("TABLET MOVE t a TO 1")
        self.wait_until(lambda: os.path.exists(gate + ".waiting"), "nothing is synced")
        time.sleep(0.3)  # it would have moved several times
        self.assertEqual(["ordered"], [job["state"] for job in self.jobs()])
        self.assertEqual("1", director.run("CGET t a f:x"))
        os.unlink(gate)
        self.wait_until(lambda: self.jobs()[0]["state"] == "done", self.jobs)
        self.assertEqual("1", director.run("CGET t a f:x"))
        self.assert_whole()


class UnderLoad(LoadCase):
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
        # It tells all that it has once more, and is no set that comes back.
        gone[0].server.stop()
        gone[0].server.start()
        self.wait_leader(gone)
        self.wait_until(lambda: "which was removed from the cluster" in first.refusal("CLUSTER", "ADMIT", f"127.0.0.1:{gone[0].port}"),
                        lambda: first.refusal("CLUSTER", "ADMIT", f"127.0.0.1:{gone[0].port}"))
        for _ in range(30):
            self.assertEqual([], first.run("CLUSTER MAP CHECK"))
            time.sleep(0.1)

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
