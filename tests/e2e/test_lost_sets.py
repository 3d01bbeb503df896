"""A set of a cluster that is lost for good: the others go on, what it had is told of, and another set can have its rows,
empty. Nothing else is lost, and nothing has two owners."""

import os
import random
import signal
import time
import unittest

import redis

from cluster_sets import pairs
from move_load import MovesCase

ROUNDS = int(os.environ.get("CELLAR_LOST_ROUNDS", "2"))
STEPS = int(os.environ.get("CELLAR_LOST_STEPS", "3"))  # at which a set is lost while tablets move; there are nine


class LostCase(MovesCase):
    def setUp(self):
        super().setUp()
        self.seed = os.environ.get("CELLAR_SEED", str(random.randrange(1 << 30)))

    def lose(self, number):
        """All nodes of the set are gone, and so is what they had."""
        for member in self.sets[number]:
            member.server.kill()
        self.everyone = [member for member in self.everyone if member not in self.sets[number]]
        self.wait_until(lambda: self.is_away(number), "it is not missed")

    def is_away(self, number):
        director = self.wait_leader(self.sets[0])
        refusal = director.refusal("CLUSTER", "REMOVE", number)
        return f"set {number} is away. If it is lost for good, with all that it owns: CLUSTER REMOVE {number} FORCE" in refusal

    def give_up(self, number):
        self.lose(number)
        self.force(number)

    def force(self, number):
        """Once it has been away for long enough."""
        got = []

        def forces():
            got[:] = [self.wait_leader(self.sets[0]).refusal("CLUSTER", "REMOVE", number, "FORCE")]
            return "TRYAGAIN" not in got[0] and "CLUSTERDOWN" not in got[0]
        self.wait_until(forces, lambda: got)
        self.assertEqual(["no error: OK"], got)

    def holes(self):
        return self.lead(self.sets[0], "CLUSTER", "MAP", "CHECK")

    def adopt_all(self, rng=random, to=None):
        """Each hole of every table goes to a set that there is."""
        for name in sorted({each["table"] for each in self.all_tablets()}):
            while lost := [each for each in self.all_tablets() if each["table"] == name and each["state"] == "lost"]:
                numbers = [number for number, members in enumerate(self.sets) if members[0] in self.everyone]
                target = rng.choice(numbers) if to is None else to
                self.assertEqual("OK", self.adopt(name.removeprefix("0/"), lost[0]["start"], target), self.jobs()[-3:])

    def adopt(self, table, row, to):
        got = []

        def done():
            got[:] = [self.any().refusal("TABLET", "ADOPT", table, row, "SET", to)]
            return "TRYAGAIN" not in got[0]
        self.wait_until(done, lambda: (got, self.jobs()[-3:]))
        return got[0].removeprefix("no error: ")

    def all_tablets(self):
        return [pairs(each) for each in self.lead(self.sets[0], "TABLET", "LIST")[1]]

    def jobs_end(self):
        self.wait_until(lambda: all(job["state"] in ("done", "cancelled") and job["ended"] for job in self.jobs()), self.jobs)

    def values(self, member=None, table="t"):
        """All rows, by a scan."""
        cursor, rows = "0", {}
        while True:
            cursor, page = (member or self.any()).run("CSCAN", table, cursor, "COUNT", 100)
            rows.update({row: str(cells) for row, cells in page})
            if cursor == "0":
                return rows


class Lost(LostCase):
    def three(self, **options):
        self.cluster(3, cluster_wait=60_000, **options)
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        self.everyone[0].run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        self.assertEqual([0, 1, 2], self.owners())
        for row in ("a", "i", "q"):
            self.any().run("CPUT", "t", row, "f:x", row)

    def test_the_others_go_on(self):
        """What is lost is refused at once, whatever cluster-wait is, at each node; all else goes on, DDL too."""
        self.three()
        director = self.everyone[0]
        self.assertIn("set 9 is not of this cluster", director.refusal("CLUSTER REMOVE 9 FORCE"))
        self.assertIn("set 0 holds the map", director.refusal("CLUSTER REMOVE 0 FORCE"))
        self.assertIn("set 2 owns 1 tablet", director.refusal("CLUSTER REMOVE 2 FORCE"))
        self.assertEqual("OK", director.run("CLUSTER CUT") and "OK")
        self.lose(2)
        self.assertIn("set 2 is away", director.refusal("CLUSTER REMOVE 2"))
        self.assertIn("set 2 is given up once it has been away for 5 seconds", director.refusal("CLUSTER REMOVE 2 FORCE"))
        self.force(2)
        self.assertEqual(["hole: 0/t from 'p' to the end, last owned by set 2 with epoch 1"], self.holes())
        self.assertEqual([0, 1], [pairs(each)["set"] for each in director.run("CLUSTER SETS")])
        self.assertIn("set 2 is removed; lost with it: 1 tablet", str(director.run("CLUSTER EVENTS")))
        for member in self.everyone:
            self.wait_until(lambda member=member: "lost" in [each["state"] for each in self.tablets(member=member)], "not told")
            self.assertEqual(1, member.info("cluster")["cluster_tablets_lost"])
            for words in (("CGET", "t", "q", "f:x"), ("CPUT", "t", "z", "f:x", "1"), ("CDEL", "t", "q", "f:x"), ("CROW", "t", "p"),
                          ("TABLET", "SPLIT", "t", "s")):
                row = words[2] if words[0] != "TABLET" else "s"
                self.assertEqual(f"ResponseError CLUSTERDOWN t '{row}': lost with set 2", member.refusal(*words), words)
            for words in (("CCOUNT", "t"), ("CSCAN", "t", "0"), ("CAGG", "t", "REDUCE", "COUNT", "*"), ("CDELRANGE", "t", "ALL")):
                self.assertIn("CLUSTERDOWN", member.refusal(*words), words)
            self.assertIn("t 'q': lost with set 2", member.refusal("CROWS", "t", 2, "q", "r"))
            self.assertIn("lost with set 2", member.refusal("CROWS", "t", 2, "a", "q"))
            with member.asks.pipeline(transaction=True) as both:
                both.execute_command("CPUT", "t", "a", "f:y", "1")
                both.execute_command("CPUT", "t", "q", "f:y", "1")
                with self.assertRaisesRegex(redis.ResponseError, "lost with set 2"):
                    both.execute()
            told = self.tablets(member=member)[2]
            self.assertEqual((2, "lost", "p"), (told["set"], told["state"], told["start"]))
            self.assertEqual("a", member.run("CGET t a f:x"))
            member.run("CPUT t i f:x i")
            self.assertIn("lost with set 2", member.refusal("TABLET MOVE t q TO 1"))
            self.assertIn("rows of table 't' are lost with set 2", member.refusal("SNAPSHOT CREATE s"))
            self.assertIn("rows of table 't' are lost with set 2", member.refusal("COPY t u"))
            self.assertIn("rows of table 't' are lost with set 2", member.refusal("CSCAN t 0 SNAPSHOT COUNT 1"))
        self.assertEqual("OK", self.any().run("TABLE CREATE u SPLIT AT 1 m FAMILY g"))
        self.assertEqual("OK", self.any().run("FAMILY ADD t g"))
        self.assertIn("good", str(pairs(director.run("CLUSTER CUTS")[0])))
        self.assert_refused()
        self.assertEqual("OK", self.adopt("t", "zebra", 1))
        self.assertEqual([], self.holes())
        self.assertEqual([0, 1, 1], self.owners())
        self.assertIn("is not lost: set 1 has it", director.refusal("TABLET ADOPT t zebra SET 0"))
        self.wait_until(lambda: all(member.info("cluster")["cluster_tablets_lost"] == 0 for member in self.everyone), "still lost")
        job = self.jobs()[-1]
        self.assertEqual((2, 1, "done"), (job["from"], job["to"], job["state"]))
        for member in self.everyone:
            self.wait_until(lambda member=member: member.refusal("CGET t q f:x") == "no error: None", lambda: member.refusal("CGET t q f:x"))
            self.assertEqual({"a", "i"}, set(self.values(member)))
        self.any().run("CPUT t q f:x new g:y more")
        self.assertEqual(3, self.any().run("CCOUNT t"))
        self.assertEqual("OK", self.any().run("SNAPSHOT CREATE s"))
        self.restart(director)
        self.wait_until(lambda: self.sees(director, 2), "it does not come back")
        self.assertEqual("new", self.any().run("CGET t q f:x"))
        self.assert_whole()

    def assert_refused(self):
        for words, wanted in ((("t", "q", "SET", "7"), "set 7 is not of this cluster"), (("t", "a", "SET", "1"), "is not lost: set 0 has it"),
                              (("nope", "a", "SET", "1"), "no table"), (("t", "q", "TO", "1"), "SET"), (("t", "q", "SET", "x"), "SET"),
                              (("t", "q", "SET", "-1"), "SET"), (("t", "q", "SET", "2"), "set 2 is not of this cluster"),
                              (("t", "q"), "wrong number"), (("t@s", "q", "SET", "1"), "no ")):
            for member in self.everyone:
                self.assertIn(wanted, member.refusal("TABLET", "ADOPT", *words), words)

    def test_it_is_there_after_all(self):
        """Who was given up serves nothing, and another set has its rows."""
        self.three()
        gone = self.sets[2][0]
        self.assertEqual("q", gone.run("CGET t q f:x"))
        gone.server.process.send_signal(signal.SIGSTOP)
        self.everyone.remove(gone)
        self.wait_until(lambda: self.is_away(2), "it is not missed")
        self.force(2)
        self.assertEqual("OK", self.adopt("t", "q", 0))
        self.any().run("CPUT t q f:x other")
        gone.server.process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: "this replica set is set 2 no more" in gone.refusal("CGET t q f:x"), lambda: gone.refusal("CGET t q f:x"))
        for _ in range(20):
            time.sleep(0.1)
            self.assertIn("this replica set is set 2 no more", gone.refusal("CPUT t q f:x 1"))
        self.assertIn("was removed from the cluster", self.everyone[0].refusal("CLUSTER", "ADMIT", gone.address))
        self.assertEqual("other", self.any().run("CGET t q f:x"))
        self.assert_whole()

    def test_its_followers_serve_nothing_either(self):
        """A set of three that was given up, while it could not be reached."""
        self.cluster(2)
        self.sets.append(self.new_set(3, join=self.sets[0], cluster_reads="local"))
        self.admit(2)
        self.everyone += self.sets[2]
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        self.everyone[0].run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        self.everyone[0].run("CPUT t q f:x q")
        for member in self.sets[2]:
            self.wait_until(lambda member=member: member.refusal("CGET t q f:x") == "no error: q", lambda: member.refusal("CGET t q f:x"))
        for member in self.sets[2]:
            member.server.process.send_signal(signal.SIGSTOP)
            self.everyone.remove(member)
        self.wait_until(lambda: self.is_away(2), "it is not missed")
        self.force(2)
        self.assertEqual("OK", self.adopt("t", "q", 0))
        for member in self.sets[2]:
            member.server.process.send_signal(signal.SIGCONT)
        for member in self.sets[2]:
            self.wait_until(lambda member=member: "this replica set is set 2 no more" in member.refusal("CGET t q f:x"),
                            lambda member=member: member.refusal("CGET t q f:x"))
        time.sleep(1)  # nor later
        for member in self.sets[2]:
            self.assertIn("CLUSTERDOWN", member.refusal("CGET t q f:x"))
            self.assertIn("CLUSTERDOWN", member.refusal("CPUT t q f:x 1"))

    def test_one_set_is_left(self):
        """It tells of what is lost as several do, has all of it in the end, and is no cluster any more if it likes."""
        self.cluster(2)
        director = self.everyone[0]
        director.run("CLUSTER CONFIG SET tablet-balance no")
        director.run("TABLE CREATE t SPLIT AT 1 m FAMILY f")
        director.run("TABLE CREATE whole FAMILY f")
        for row in "az":
            director.run("CPUT", "t", row, "f:x", row)
        director.run("TABLET MOVE whole x TO 1 WAIT 20000")
        director.run("FEED CREATE events ON 1 t")
        director.run("FEED MOVE events TO 1")
        self.give_up(1)
        self.wait_until(lambda: "set 0 is home to the groups of feed events" in str(director.run("CLUSTER EVENTS COUNT 5")),
                        lambda: director.run("CLUSTER EVENTS COUNT 5"))
        self.assertEqual("ResponseError CLUSTERDOWN t 'z': lost with set 1", director.refusal("CGET t z f:x"))
        self.assertEqual("ResponseError CLUSTERDOWN whole 'x': lost with set 1", director.refusal("CPUT whole x f:x 1"))
        self.assertIn("lost with set 1", director.refusal("CCOUNT whole"))
        self.assertIn("lost with set 1", director.refusal("CCOUNT t"))
        self.assertIn("rows of table 't' are lost", director.refusal("SNAPSHOT CREATE s"))
        self.restart(director)
        self.wait_until(lambda: director.refusal("CGET t z f:x") == "ResponseError CLUSTERDOWN t 'z': lost with set 1",
                        lambda: director.refusal("CGET t z f:x"))
        self.adopt_all()
        self.assert_whole()
        self.assertEqual(["a"], list(self.values(director)))
        director.run("CPUT whole x f:x 1")
        self.assertEqual("OK", director.refusal("CLUSTER END").removeprefix("no error: "))
        self.assertEqual("a", director.run("CGET t a f:x"))

    def test_jobs_of_it_end(self):
        """At each step, the donor or the recipient is lost: one has the tablet, or it is told to be lost."""
        steps = [("begin", 1), ("give", 1), ("done", 1), ("stage", 2), ("run", 2), ("tail", 2), ("own", 2), ("give", 2), ("begin", 2)]
        random.Random(self.seed).shuffle(steps)
        for step, lost in steps[:STEPS]:
            with self.subTest(step=step, lost=lost, seed=self.seed):
                self.jobs_of_lost(step, lost)
                for member in self.everyone:
                    member.stop()

    def jobs_of_lost(self, step, lost):
        self.cluster(3)
        director = self.everyone[0]
        director.run("CLUSTER CONFIG SET tablet-balance no")
        director.run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        for number in range(300):
            director.run("CPUT", "t", f"{chr(97 + number % 26)}{number}", "f:x", number)
        before = self.values()
        donor, recipient = self.sets[1][0], self.sets[2][0]
        member = donor if step in ("begin", "give", "done") else recipient
        member.run("DEBUG CLUSTER STOP-AT", step)
        director.run("TABLET MOVE t i TO 2")
        self.wait_stopped(member)
        for each in (donor, recipient):
            if each is member and each is not self.sets[lost][0]:
                each.server.process.send_signal(signal.SIGCONT)
        self.give_up(lost)
        self.jobs_end()
        self.adopt_all()
        self.assert_whole()
        after = self.values()
        for row, cells in before.items():
            place = "h" <= row < "p"
            if lost == 1 and not place:
                self.assertEqual(cells, after.get(row), row)
            if lost == 2 and row < "h":
                self.assertEqual(cells, after.get(row), row)
            if lost == 2 and place and step != "own" and row in after:
                self.assertEqual(cells, after[row], row)
        if lost == 2 and step in ("begin", "stage", "run", "tail"):
            self.assertEqual({row for row in before if row < "p"}, set(after))
        if step == "done":
            self.assertEqual({row for row in before if row >= "h" or row < "h"}, set(after))
        self.any().run("CPUT", "t", "ii", "f:x", "new")
        self.assertEqual("new", self.any().run("CGET", "t", "ii", "f:x"))
        self.wait_purged_of_those()

    def wait_purged_of_those(self):
        for each in self.everyone:
            self.wait_until(lambda each=each: each.info("cluster")["cluster_rows_to_purge"] == 0, "rows that are not owned do not go")

    def test_what_the_map_does_not_know(self):
        """The director believes that a set has lost rows with it, and another one has had them for long: that one keeps them."""
        self.three()
        director = self.everyone[0]
        # What the new owner reports does not come, since it has stopped right behind its record.
        taker = self.sets[1][0]
        taker.run("DEBUG CLUSTER STOP-AT own")
        director.run("TABLET MOVE t q TO 1")
        self.wait_stopped(taker)
        self.give_up(2)
        self.assertEqual(["lost"], [each["state"] for each in self.tablets(member=director) if each["start"] == "p"])
        self.assertIn("TRYAGAIN a job that has to do with these rows goes on", director.refusal("TABLET ADOPT t q SET 0"))
        taker.server.process.send_signal(signal.SIGCONT)
        self.jobs_end()
        self.assert_whole()
        self.assertEqual([0, 1, 1], self.owners())
        self.assertEqual("q", self.any().run("CGET t q f:x"))

    def test_groups_of_feeds(self):
        """Those whose home is lost are gone; what sets that are there have to tell, is told."""
        self.three()
        director = self.everyone[0]
        director.run("FEED CREATE events ON 1 t")
        director.run("FEED MOVE events TO 2")
        for row in ("b", "j", "r"):
            self.any().run("CPUT", "t", row, "f:x", "1")
        self.any().run("XGROUP CREATE events workers 0")
        self.assertTrue(self.any().run("XREADGROUP GROUP workers me COUNT 2 STREAMS events >"))
        self.give_up(2)
        self.wait_until(lambda: pairs(self.any().run("FEED INFO events"))["home"] != 2, "its home stays")
        for member in self.everyone:
            self.wait_until(lambda member=member: "NOGROUP" in member.refusal("XREADGROUP GROUP workers me STREAMS events >"),
                            lambda: member.refusal("XREADGROUP GROUP workers me STREAMS events >"))
        self.assertEqual("OK", self.any().run("XGROUP CREATE events workers 0"))
        got = self.any().run("XREADGROUP GROUP workers me COUNT 100 STREAMS events >")
        self.assertEqual({"b", "j"}, {row for row in ("a", "b", "i", "j", "r") if f"'{row}'" in str(got)} & {"b", "j", "r"})
        self.assertIn("is home to the groups of feed events", str(director.run("CLUSTER EVENTS COUNT 50")))
        self.assertEqual("OK", self.adopt("t", "r", 1))
        self.any().run("CPUT t r f:x again")
        self.wait_until(lambda: "again" in str(self.any().run("XREADGROUP GROUP workers me COUNT 10 BLOCK 2000 STREAMS events >")), "not told")

    def test_what_waits_for_it(self):
        """A change of the schema, a reader of a feed and a cut go on once the set is given up, and a backup is begun anew."""
        self.three()
        director = self.everyone[0]
        director.run("FEED CREATE events ON 1 t")
        self.any().run("CPUT t a f:x before")
        self.lose(2)
        told, made, read = [], [], []
        create = self.beside(lambda: made.append(self.everyone[1].refusal("TABLE CREATE later SPLIT AT 1 m FAMILY f")))
        reader = self.beside(lambda: read.append(self.everyone[1].refusal("XREAD BLOCK 30000 STREAMS events $")))
        self.wait_until(lambda: "lacks" in str(told) or "later" in str(director.refusal("TABLE LIST")), lambda: director.refusal("TABLE LIST"))
        self.assertIn("set 2 is away", director.refusal("CLUSTER CUT"))
        self.force(2)
        create.join(30)
        self.assertTrue(made and (made[0] == "no error: OK" or "TRYAGAIN" in made[0]), made)
        for member in self.everyone:
            self.wait_until(lambda member=member: "later" in member.run("TABLE LIST"), "not all have it")
        self.any().run("CPUT t i f:x behind")
        reader.join(40)
        self.assertIn("behind", str(read))
        self.assertGreater(int(director.run("CLUSTER CUT")), 0)
        self.assertEqual("OK", self.any().run("CPUT", "later", "zz", "f:x", 1) and "OK")

    def test_two_are_lost_and_directors_too(self):
        """Set 0 has three nodes, of which the leader goes again and again while what was lost is given to others."""
        self.sets = [self.new_set(3)]
        self.lead(self.sets[0], "CLUSTER", "INIT")
        for number in range(1, 4):
            self.sets.append(self.new_set(1, join=self.sets[0]))
            self.admit(number)
        self.everyone = [member for each in self.sets for member in each]
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        letters = "bcdefghijklmnopqrstuvwxyz"
        self.lead(self.sets[0], "TABLE", "CREATE", "t", "SPLIT", "AT", len(letters), *letters, "FAMILY", "f")
        for letter in "a" + letters:
            self.any().run("CPUT", "t", letter + "1", "f:x", letter)
        have = {each["start"] or "a": each["set"] for each in self.all_tablets() if each["table"] == "0/t"}
        for number in (1, 3):
            for member in self.sets[number]:
                member.server.kill()
                self.everyone.remove(member)
        for number in (1, 3):
            self.force(number)
        rng = random.Random(self.seed)
        for letter in sorted(letter for letter, number in have.items() if number in (1, 3)):
            if rng.randrange(4) == 0:
                self.restart(self.wait_leader(self.sets[0]))
            to = rng.choice((0, 2))

            def adopts(letter=letter, to=to):
                try:
                    got = self.wait_leader(self.sets[0]).refusal("TABLET", "ADOPT", "t", letter, "SET", to)
                except (AssertionError, redis.RedisError) as error:
                    got = str(error)
                return got == "no error: OK" or "is not lost" in got
            self.wait_until(adopts, lambda: (self.jobs()[-3:], f"seed {self.seed}"))
        self.jobs_end()
        self.assert_whole()
        for letter, number in have.items():
            wanted = None if number in (1, 3) else letter
            self.assertEqual(wanted, self.lead(self.sets[0], "CGET", "t", letter + "1", "f:x"), f"seed {self.seed}, {letter}")
            self.lead(self.sets[0], "CPUT", "t", letter + "2", "f:x", "new")
        self.assertEqual(sum(number not in (1, 3) for number in have.values()) + len(have), self.lead(self.sets[0], "CCOUNT", "t"))

    def test_sets_come_and_are_lost(self):
        """Rows that sets have which are there are all there, whatever moves; each round a set is lost, and another one comes."""
        rng = random.Random(f"{self.seed}/lost")
        self.cluster(4)
        director = self.everyone[0]
        director.run("TABLE CREATE t SPLIT AT 6 d h l p t x FAMILY f")
        known = {}
        for _ in range(ROUNDS):
            for _ in range(200):
                row = f"{chr(97 + rng.randrange(26))}{rng.randrange(1000)}"
                self.any(rng).run("CPUT", "t", row, "f:x", len(known))
                known[row] = str(len(known))
            known = {row: cells for row, cells in self.values().items()}
            numbers = [number for number, members in enumerate(self.sets) if members[0] in self.everyone]
            for _ in range(rng.randrange(4)):
                try:
                    self.any(rng).run("TABLET", "MOVE", "t", chr(97 + rng.randrange(26)), "TO", rng.choice(numbers))
                except redis.ResponseError:
                    pass
            gone = rng.choice(numbers[1:])
            self.give_up(gone)
            self.jobs_end()
            lost = [(each["start"], each["end"]) for each in self.tablets(member=director) if each["state"] == "lost"]
            self.adopt_all(rng)
            self.assert_whole()
            after = self.values()
            for row, cells in known.items():
                is_lost = any(start <= row and (not end or row < end) for start, end in lost)
                self.assertEqual(None if is_lost else cells, after.get(row), (row, lost, gone))
            self.sets.append(self.new_set(1, join=self.sets[0]))
            self.everyone.append(self.sets[-1][0])
            self.wait_until(lambda: "no set at" not in self.try_admit(self.sets[0], self.sets[-1][0].address), "it does not ask")
            self.wait_until(lambda: all(self.sees(member, len(numbers)) for member in self.everyone), "not all see it")


if __name__ == "__main__":
    unittest.main()
