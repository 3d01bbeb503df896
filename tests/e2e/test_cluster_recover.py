"""Sets of a cluster that come back from what was kept of them: all of them at one cut, or one by itself."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from cellar_server import binary, free_port
from cluster_sets import SetsCase, pairs
from move_load import MovesCase
from replica_sets import Member

ROWS = 60


def cellar(*words):
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False)


class ReturnTest(SetsCase):
    def setUp(self):
        super().setUp()
        self.marks = []
        self.cluster(3)
        self.lead(self.sets[0], "TABLE", "CREATE", "t", "SPLIT", "AT", 2, "r20", "r40", "FAMILY", "f")
        self.put("before")

    def put(self, value):
        for i in range(ROWS):
            self.lead(self.sets[0], "CPUT", "t", f"r{i:02}", "f:a", value)

    def catalog(self):
        """The number of a change behind all that was written."""
        self.lead(self.sets[0], "TABLE", "CREATE", f"mark{len(self.marks)}", "FAMILY", "f")
        self.marks.append(0)
        return int(self.told_sets(self.everyone[0])[0]["catalog"])

    def values(self, member):
        return {str(member.run("CGET", "t", f"r{i:02}", "f:a")) for i in range(ROWS)}

    def stop_all(self):
        for member in self.everyone:
            member.stop()

    def recovered(self, directory, until):
        folder = tempfile.mkdtemp(prefix="cellar-recovered-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        to = os.path.join(folder, "new")
        done = cellar("--recover", directory, "--until", until, "--dir", to)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return to

    def started(self, directory, join=()):
        """A set of one voter of that directory, on another port."""
        port = free_port()
        options = {"cluster_join": [f"127.0.0.1:{member.port}" for member in join]} if join else {}
        member = Member(self, port, [f"127.0.0.1:{port}"], **options)
        shutil.rmtree(member.directory)
        shutil.copytree(directory, member.directory)
        member.server.start()
        self.wait_leader([member])
        return member

    def told(self, member, *words):
        """What it is refused, or that it is not."""
        return lambda: member.refusal(*words)

    def opens(self, members):
        for member in members:
            ask = self.told(member, "CEXISTS", "t", "r00")
            self.wait_until(lambda ask=ask: "no error" in ask(), lambda ask=ask, member=member: ask() + member.server.log()[-1500:])

    def join_anew(self, back):
        """All other sets ask at the new set 0, and the cluster opens."""
        for each in self.sets[1:]:
            each[0].server.stop()
            each[0].server.options["cluster-join"] = [f"127.0.0.1:{back.port}"]
            each[0].server.start()
            self.wait_leader(each)
        self.opens([back, self.sets[1][0], self.sets[2][0]])
        count = self.told(back, "CCOUNT", "t")
        self.wait_until(lambda: "no error" in count(), count)

    def directories(self):
        return [each[0].directory for each in self.sets]


class CutTest(ReturnTest):
    def test_all_sets_to_one_cut(self):
        cut = self.catalog()
        self.put("after")
        self.lead(self.sets[0], "TABLE", "CREATE", "later", "FAMILY", "f")
        self.stop_all()
        new = [self.recovered(directory, f"CUT:{cut}") for directory in self.directories()]
        zero = self.started(new[0])
        ask = self.told(zero, "CGET", "t", "r00", "f:a")
        self.wait_until(lambda: "is not here yet" in ask(), ask)
        for words in (["CPUT", "t", "r00", "f:a", "x"], ["CSCAN", "t", "0"], ["TABLE", "CREATE", "no", "FAMILY", "f"], ["KEYS", "*"],
                      ["CCOUNT", "t"], ["TABLET", "SPLIT", "t", "r05"], ["CLUSTER", "MAP", "REBUILD"], ["TABLE", "LIST"]):
            with self.subTest(words=words):
                self.assertIn("CLUSTERDOWN recovery: set 1 is not here yet", zero.refusal(*words))
        check = lambda: zero.run("CLUSTER", "MAP", "CHECK")
        self.assertEqual(["set 1 is not here yet", "set 2 is not here yet"], check())
        one = self.started(new[1], [zero])
        self.wait_until(lambda: check() == ["set 2 is not here yet"], check)
        self.assertIn("CLUSTERDOWN recovery: the cluster decides what set 1 owns", one.refusal("CGET", "t", "r30", "f:a"))
        two = self.started(new[2], [zero])
        self.opens([zero, one, two])
        for member in (zero, one, two):
            self.assertEqual({"before"}, self.values(member))
            self.assertEqual(ROWS, member.run("CCOUNT", "t"))
            self.assertIn("mark0", member.run("TABLE", "LIST"))
            self.assertNotIn("later", member.run("TABLE", "LIST"))
        self.assertEqual([], check())
        what, why = zero.run("CLUSTER", "EVENTS")[0][1:]
        self.assertIn("set 2 as", what)
        self.assertEqual(f"all were recovered to cut {cut}", why)
        # It goes on as any cluster, also over a restart.
        two.run("TABLE", "CREATE", "new", "FAMILY", "f")
        self.sets = [[zero], [one], [two]]
        self.put("again")
        one.server.stop()
        one.server.start()
        self.wait_leader([one])
        self.opens([one])
        self.assertEqual({"again"}, self.values(one))
        self.assertEqual("OK", zero.run("TABLET", "MOVE", "t", "r50", "TO", 0, "WAIT", 20000))
        self.assertEqual({"again"}, self.values(one))
        self.assertEqual([], check())

    def test_what_was_lost_before_the_cut(self):
        """The cluster comes back without it, as it was."""
        self.sets[2][0].stop()
        director = self.sets[0][0]
        force = self.told(director, "CLUSTER", "REMOVE", 2, "FORCE")
        self.wait_until(lambda: "no error" in force() or "is not of this cluster" in force(), force)
        cut = self.catalog()
        self.stop_all()
        new = [self.recovered(directory, f"CUT:{cut}") for directory in self.directories()[:2]]
        zero = self.started(new[0])
        one = self.started(new[1], [zero])
        for member in (zero, one):
            ask = self.told(member, "CGET", "t", "r50", "f:a")
            self.wait_until(lambda ask=ask: ask() == "ResponseError CLUSTERDOWN t 'r50': lost with set 2", ask)
            there = self.told(member, "CGET", "t", "r30", "f:a")
            self.wait_until(lambda there=there: there() == "no error: before", there)
        self.wait_until(lambda: "OK" in self.told(zero, "TABLET", "ADOPT", "t", "r50", "SET", 1)(), lambda: zero.run("TABLET JOBS"))
        one.run("CPUT", "t", "r50", "f:a", "new")
        self.assertEqual("new", zero.run("CGET", "t", "r50", "f:a"))
        self.assertEqual([], zero.run("CLUSTER", "MAP", "CHECK"))

    def test_different_cuts_are_named(self):
        cut = self.catalog()
        self.lead(self.sets[0], "TABLE", "CREATE", "later", "FAMILY", "f")
        self.stop_all()
        new = [self.recovered(directory, f"CUT:{n}") for directory, n in zip(self.directories(), (cut, cut + 1, cut))]
        zero = self.started(new[0])
        others = [self.started(directory, [zero]) for directory in new[1:]]
        text = f"set 1 was recovered to cut {cut + 1}, set 0 to cut {cut}"
        check = lambda: zero.run("CLUSTER", "MAP", "CHECK")
        self.wait_until(lambda: check() == [text], check)
        self.assertIn(text, zero.refusal("CPUT", "t", "r00", "f:a", "x"))
        # The right one comes: all is well.
        others[0].stop()
        right = self.started(self.recovered(self.directories()[1], f"CUT:{cut}"), [zero])
        self.opens([zero, right, others[1]])
        self.assertEqual({"before"}, self.values(right))

    def test_a_set_of_twice_is_named(self):
        cut = self.catalog()
        self.stop_all()
        new = [self.recovered(directory, f"CUT:{cut}") for directory in self.directories()]
        zero = self.started(new[0])
        twins = [self.started(new[1], [zero]) for _ in range(2)]
        two = self.started(new[2], [zero])
        check = lambda: zero.run("CLUSTER", "MAP", "CHECK")
        self.wait_until(lambda: "two sets say that they are set 1" in str(check()), check)
        twins[0].stop()
        self.opens([zero, twins[1], two])
        self.assertEqual({"before"}, self.values(twins[1]))

    def test_what_is_not_there_is_refused(self):
        self.stop_all()
        to = os.path.join(self.everyone[0].directory, "new")
        for until, text in (("CUT:999", "CUT:999 is not in these files: they lead to change "), ("CUT:0", "is no cut"),
                            ("CUT:x", "is no cut"), ("CUT:", "is no cut"), ("CUT:18446744073709551616", "is no cut")):
            with self.subTest(until=until):
                done = cellar("--recover", self.everyone[1].directory, "--until", until, "--dir", to)
                self.assertNotEqual(0, done.returncode)
                self.assertIn(text, done.stdout + done.stderr)
                self.assertFalse(os.path.exists(to))
        alone = self.new_set()
        self.lead(alone, "TABLE", "CREATE", "t", "FAMILY", "f")
        alone[0].stop()
        done = cellar("--recover", alone[0].directory, "--until", "CUT:1", "--dir", to)
        self.assertIn("they are of no set of a cluster", done.stderr)


class AloneTest(ReturnTest):
    def test_one_set_as_it_was(self):
        directory = self.sets[2][0].directory
        self.sets[2][0].stop()
        back = self.started(self.recovered(directory, "now"), self.sets[0])
        self.opens([back, self.sets[0][0], self.sets[1][0]])
        for member in (back, self.sets[0][0], self.sets[1][0]):
            ask = self.told(member, "CGET", "t", "r50", "f:a")
            self.wait_until(lambda ask=ask: "no error" in ask(), ask)
            self.assertEqual({"before"}, self.values(member))
        self.assertEqual([], self.sets[0][0].run("CLUSTER", "MAP", "CHECK"))
        self.assertIn("set 2 as", self.sets[0][0].run("CLUSTER", "EVENTS")[0][1])
        self.assertIn("OK", self.lead(self.sets[0], "TABLE", "CREATE", "new", "FAMILY", "f"))

    def test_the_one_that_was_replaced_serves_nothing_any_more(self):
        """Its data was recovered elsewhere while it was down."""
        old = self.sets[2][0]
        old.server.stop()
        back = self.started(self.recovered(old.directory, "now"), self.sets[0])
        self.opens([back])
        old.server.start()
        self.wait_leader([old])
        ask = self.told(old, "CGET", "t", "r50", "f:a")
        self.wait_until(lambda: "CLUSTERDOWN recovery: this replica set is set 2 no more" in ask(), ask)
        self.assertIn("CLUSTERDOWN recovery", old.refusal("CPUT", "t", "r50", "f:a", "x"))
        check = self.told(self.sets[0][0], "CLUSTER", "MAP", "CHECK")
        self.wait_until(lambda: "comes back as set 2" in check(), check)
        back.run("CPUT", "t", "r50", "f:a", "new")
        self.assertEqual("new", self.sets[0][0].run("CGET", "t", "r50", "f:a"))

    def test_numbers_of_jobs_are_not_given_twice_when_set_0_is_back(self):
        director = self.sets[0][0]
        time.sleep(0.01)  # a moment of its own
        moment = str(int(time.time() * 1_000_000))
        time.sleep(0.01)
        tablets = [pairs(each) for each in director.run("TABLET", "LIST", "t")[1]]
        start, number = next((each["start"], int(each["set"])) for each in tablets if int(each["set"]) != 0)
        # To and fro between the others: in the end each has what set 0 knew of.
        for to in (3 - number, number):
            self.assertEqual("OK", director.run("TABLET", "MOVE", "t", start or "r00", "TO", to, "WAIT", 20000))
        directory = director.directory
        director.stop()
        back = self.started(self.recovered(directory, moment))
        self.join_anew(back)
        self.assertEqual("OK", back.run("TABLET", "MOVE", "t", start or "r00", "TO", 3 - number, "WAIT", 20000))
        self.assertEqual({"before"}, self.values(back))

    def test_jobs_that_were_under_way(self):
        """Where its tablets were about to go, the copy may have what it has lost: it comes to nothing."""
        for step in ("run", "tail"):
            with self.subTest(step=step):
                director = self.sets[0][0]
                listed = [pairs(each) for each in director.run("TABLET", "LIST", "t")[1]]
                start = next(each["start"] for each in listed if int(each["set"]) == 2)
                donor, taker = self.sets[2][0], self.sets[1][0]
                taker.run("DEBUG", "CLUSTER", "STOP-AT", step)
                self.put(f"at {step}")
                number = director.run("TABLET", "MOVE", "t", start or "r00", "TO", 1)
                self.wait_until(lambda: MovesCase.is_stopped(taker), "it does not stop")
                donor.stop()
                taker.server.process.send_signal(signal.SIGCONT)
                back = self.started(self.recovered(donor.directory, "now"), self.sets[0])
                self.opens([back])
                self.sets[2] = [back]
                self.put(f"behind {step}")
                state = lambda: [pairs(each)["state"] for each in director.run("TABLET", "JOBS") if pairs(each)["job"] == number]
                self.wait_until(lambda: state()[0] in ("cancelled", "done"), state)
                self.assertEqual({f"behind {step}"}, self.values(director))
                if state() == ["cancelled"]:
                    move = lambda: director.refusal("TABLET", "MOVE", "t", start or "r00", "TO", 1, "WAIT", 20000)
                    self.wait_until(lambda: "OK" in move() or "is set 1's already" in move(), move)
                self.assertEqual({f"behind {step}"}, self.values(director))
                self.wait_until(lambda: [] == director.run("CLUSTER", "MAP", "CHECK"), lambda: director.run("CLUSTER", "MAP", "CHECK"))
                self.assertEqual("OK", director.run("TABLET", "MOVE", "t", start or "r00", "TO", 2, "WAIT", 20000))

    def test_set_0_as_it_was(self):
        directory = self.sets[0][0].directory
        self.sets[0][0].stop()
        back = self.started(self.recovered(directory, "now"))
        ask = self.told(back, "CGET", "t", "r00", "f:a")
        self.wait_until(lambda: "is not here yet" in ask(), ask)
        self.join_anew(back)
        self.assertEqual({"before"}, self.values(back))
        self.assertEqual([], back.run("CLUSTER", "MAP", "CHECK"))

    def test_a_recovered_majority(self):
        member = self.sets[1][0]
        member.stop()
        done = cellar("--replica-recover", member.directory, "--yes")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        member.server.start()
        self.wait_leader([member])
        self.opens([member, self.sets[0][0]])
        count = self.told(self.sets[0][0], "CCOUNT", "t")
        self.wait_until(lambda: "no error" in count(), count)
        self.assertEqual({"before"}, self.values(self.sets[0][0]))
        self.assertEqual([], self.sets[0][0].run("CLUSTER", "MAP", "CHECK"))

    def test_a_cluster_of_one_set_opens_by_itself(self):
        alone = self.new_set()
        self.lead(alone, "CLUSTER", "INIT")
        self.lead(alone, "TABLE", "CREATE", "t", "FAMILY", "f")
        self.lead(alone, "CPUT", "t", "r00", "f:a", "1")
        alone[0].stop()
        for until in ("now", "CUT:2"):
            with self.subTest(until=until):
                back = self.started(self.recovered(alone[0].directory, until))
                self.opens([back])
                self.assertEqual([], back.run("CLUSTER", "MAP", "CHECK"))
                back.stop()


if __name__ == "__main__":
    unittest.main()
