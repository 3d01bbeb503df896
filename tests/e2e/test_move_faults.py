"""Tablets that move while nodes die, stop, lose their power or each other, at each step of a move: one owner, no write lost
that was acknowledged, every job at its end soon after all are back, and nothing is kept of what was given away.

CELLAR_MOVE_FAULTS=25: so many times each, with all who can be hit; else each step once.
"""

import os
import random
import signal
import time
import unittest

import redis

from cluster_sets import pairs
from move_load import LoadCase
from replica_machines import Machines, has_machines

ROUNDS = int(os.environ.get("CELLAR_MOVE_FAULTS", "0"))
# Who stops itself there: set 1 gives to set 2, and set 0 directs.
STEPS = {"begin": "donor", "stage": "recipient", "run": "recipient", "tail": "recipient", "give": "donor", "own": "recipient",
         "done": "donor", "map": "director"}
VICTIMS = (("donor",), ("recipient",), ("director",), ("donor", "recipient"), ("donor", "director"), ("recipient", "director"))


class MoveFaults(LoadCase):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(self.seed)
        self.longest = 0.0
        self.moved = 0

    def begin_with(self, voters):
        """A cluster of three sets; a table of which set 1 has a tablet with some parts to be copied."""
        self.cluster(3, voters, cluster_wait=30_000)
        member = self.everyone[0]
        self.lead(self.sets[0], "TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f", "VERSIONS", 2)
        with member.redis.pipeline(transaction=False) as pipe:
            for number in range(2000):
                pipe.execute_command("CPUT", "t", f"k-{number:05}", "f:x", "v" * 300)
            pipe.execute()
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")

    def leaders(self, donor):
        """By what they are in a move from that set, 1 or 2, to the other one."""
        return {"director": self.wait_leader(self.sets[0]), "donor": self.wait_leader(self.sets[donor]),
                "recipient": self.wait_leader(self.sets[3 - donor])}

    def owner(self):
        """Of the tablet in the middle, as the director's map says. Set 1 has no other one."""
        return [each["set"] for each in self.tablets(member=self.wait_leader(self.sets[0]))][1]

    def is_known(self):
        """The map is as new as the truth: a new director goes by what it said until a set has told what it owns."""
        owned = self.wait_leader(self.sets[1]).info("cluster").get("cluster_tablets_owned")
        return self.owner() == (1 if owned == 1 else 2)

    def alive(self, member):
        return member.server.process.poll() is None

    def bring_back(self, members):
        for member in members:
            if not self.alive(member):
                member.server.start()
                member.connect()
        for member in members:
            self.wait_until(member.has_a_role, lambda member=member: member.server.log()[-800:])

    def fault(self, step, victims, how):
        """One move, in which whoever comes to that step stops there, and then the victims' processes end or stop."""
        donor = 2 if self.owner() == 2 else 1
        roles = self.leaders(donor)
        note = f"seed {self.seed}: {step}, {victims}, {how}"
        stopped = roles[STEPS[step]]
        stopped.run("DEBUG", "CLUSTER", "STOP-AT", step)
        number = self.order(3 - donor)
        self.wait_stopped(stopped)
        struck = [roles[name] for name in victims]
        if how == "power":
            struck = [member for name in victims for member in self.set_of(roles[name])]
        for member in struck:
            if how == "pause":
                member.server.process.send_signal(signal.SIGSTOP)
            else:
                member.server.kill()
        if how == "pause" or (how == "kill" and len(self.sets[1]) > 1):
            time.sleep(self.rng.random() * 2)
        if self.alive(stopped):
            stopped.server.process.send_signal(signal.SIGCONT)
        if how == "pause":
            for member in struck:
                member.server.process.send_signal(signal.SIGCONT)
        self.bring_back([member for member in self.everyone if member in struck or member is stopped])
        healed = time.monotonic()
        self.wait_until(lambda: self.is_over(number), lambda: f"{note}: {self.jobs()[-3:]}")
        self.longest = max(self.longest, time.monotonic() - healed)
        self.wait_until(self.is_known, lambda: (self.tablets(), self.jobs()[-2:]))
        self.moved += self.owner() == 3 - donor
        stopped.refusal("DEBUG", "CLUSTER", "STOP-AT", "OFF")
        self.assert_whole()
        self.wait_purged()

    def set_of(self, member):
        return next(members for members in self.sets if member in members)

    def order(self, to):
        numbers = []

        def ordered():
            got = self.wait_leader(self.sets[0]).refusal("TABLET", "MOVE", "t", "k", "TO", to)
            if got.startswith("no error: "):
                numbers.append(int(got.split()[-1]))
            return numbers
        self.wait_until(ordered, lambda: (self.jobs()[-2:], self.wait_leader(self.sets[0]).refusal("TABLET", "MOVE", "t", "k", "TO", to)))
        return numbers[0]

    def is_over(self, number):
        """Also where its order was lost with the director."""
        try:
            job = [each for each in self.jobs() if each["job"] == number]
        except redis.RedisError:
            return False
        return not job or (job[0]["state"] in ("done", "cancelled") and self.sums() == 0)

    def sums(self):
        """Tablets on their way, as those say who lead."""
        infos = [self.wait_leader(members).info("cluster") for members in self.sets]
        return sum(info.get("cluster_tablets_given", 1) + info.get("cluster_tablets_staged", 1) for info in infos)

    def run_faults(self, voters, hows):
        self.begin_with(voters)
        cases = [(step, victims, how) for step in STEPS for victims in VICTIMS for how in hows]
        if ROUNDS:
            plan = cases * ROUNDS
            self.rng.shuffle(plan)
        else:
            plan = [self.rng.choice([case for case in cases if case[0] == step]) for step in STEPS]
        if os.environ.get("CELLAR_MOVE_CASE"):
            step, victims, how = os.environ["CELLAR_MOVE_CASE"].split(":")
            plan = [(step, tuple(victims.split("+")), how)] * max(ROUNDS, 1)
        done, _ = self.load(0, lambda _: [self.fault(*case) for case in plan], faults=True)
        print(f"seed {self.seed}: {len(plan)} faults, {self.moved} moved, {done} commands, a job was over at most "
              f"{self.longest:.1f} s after all were back")

    def test_each_step_in_sets_of_one(self):
        self.run_faults(1, ("kill", "pause"))

    def test_each_step_in_sets_of_three(self):
        self.run_faults(3, ("kill", "pause", "power"))

    def test_a_new_leader_goes_on_from_where_the_copy_was_complete(self):
        """It has the log behind it, whatever its own snapshots have made superfluous meanwhile."""
        first = self.new_set(3, repl_backlog_size="16kb")
        self.lead(first, "CLUSTER", "INIT")
        self.sets = [first, self.new_set(1, join=first)]
        self.admit(1)
        self.everyone = sum(self.sets, [])
        recipient = self.sets[1][0]
        self.lead(first, "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        self.lead(first, "TABLE", "CREATE", "t", "SPLIT", "AT", 1, "p", "FAMILY", "f")
        leader = self.wait_leader(first)

        def write(prefix, count):
            with leader.redis.pipeline(transaction=False) as pipe:
                for number in range(count):
                    pipe.execute_command("CPUT", "t", f"{prefix}{number:05}", "f:x", "v" * 1000)
                pipe.execute()
        write("k", 4000)
        recipient.run("DEBUG CLUSTER STOP-AT tail")
        leader.run("TABLET MOVE t k TO 1")
        self.wait_stopped(recipient)
        for prefix in "ab":
            write(prefix, 100)
            for member in first:
                self.wait_until(lambda member=member: member.refusal("BGSAVE").startswith("no error"), lambda member=member: member.refusal("BGSAVE"))
                self.wait_until(lambda member=member: member.info("persistence")["rdb_bgsave_in_progress"] == 0, "the snapshot")
        before = self.written_bytes(recipient)
        leader.server.kill()
        self.wait_leader(first, but=leader)
        recipient.server.process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: [each["set"] for each in self.tablets(member=self.wait_leader(first, but=leader))][0] == 1, self.jobs)
        self.assertLess(self.written_bytes(recipient) - before, 2_000_000)
        self.assertEqual(4200, self.wait_leader(first, but=leader).run("CCOUNT t"))
        self.bring_back([leader])
        self.assert_whole()
        self.wait_purged()

    @staticmethod
    def written_bytes(member):
        """Of its log; INFO does not answer while it is stopped."""
        found = 0
        for name in os.listdir(member.directory):
            if name.endswith(".log"):
                with open(os.path.join(member.directory, name), "rb") as file:
                    found += len(file.read().rstrip(b"\0"))
        return found

    def test_leaders_stop_at_any_moment(self):
        """For moments and for seconds."""
        self.begin(3, 3, cluster_wait=30_000)

        def beside(_):
            mover = self.beside(lambda: self.random_move(self.rng))
            time.sleep(self.rng.random() * 0.1)
            member = self.wait_leader(self.rng.choice(self.sets))
            member.server.process.send_signal(signal.SIGSTOP)
            time.sleep(self.rng.choice((0.05, 0.5, 3)) * self.rng.random())
            member.server.process.send_signal(signal.SIGCONT)
            mover.join()
        done, rounds = self.load(float(os.environ.get("CELLAR_MOVE_SECONDS", 10)), beside, faults=True)
        self.settle_all()
        print(f"seed {self.seed}: {done} commands, {rounds} stops")

    def test_nobody_goes_by_a_map_that_was_lost_with_a_director(self):
        """It told of it before its set had it, and the next director gave that version to another map."""
        first = self.new_set(3)
        self.lead(first, "CLUSTER", "INIT")
        self.sets = [first]
        for number in (1, 2, 3):
            self.sets.append(self.new_set(1, join=first))
            self.admit(number)
        self.everyone = sum(self.sets, [])
        self.lead(first, "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        for table in ("t", "u"):
            self.lead(first, "TABLE", "CREATE", table, "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f")
        owners = {table: {each["set"]: each["start"] or "a" for each in self.tablets(table, self.wait_leader(first))} for table in "tu"}
        self.assertEqual([4, 4], [len(each) for each in owners.values()])
        one, two, observer = (self.sets[number][0] for number in (1, 2, 3))
        old = self.wait_leader(first)
        others = [member for member in first if member is not old]

        def start(member, table, number):
            """Where the tablet begins that the node's copy of the map has there. To list them would ask their owners, too."""
            try:
                return pairs(member.run("TABLET", "ROUTE", table, owners[table][number] + "1"))["start"]
            except redis.RedisError as error:  # it makes its state anew
                return str(error)

        def split(member, table, number):
            self.beside(lambda: member.refusal("TABLET", "SPLIT", table, owners[table][number] + "1"))

        def wait_split(member, table, number):
            self.wait_until(lambda: start(member, table, number) == owners[table][number] + "1",
                            lambda: f"{member.address}: table {table}, {start(member, table, number)}")
        for member in others:
            member.server.kill()
        split(one, "t", 1)
        wait_split(observer, "t", 1)
        for member in (old, one, observer):
            member.server.process.send_signal(signal.SIGSTOP)
        self.bring_back(others)
        leader = self.wait_leader(others)
        split(two, "u", 2)
        wait_split(leader, "u", 2)
        for member in (old, one, observer):
            member.server.process.send_signal(signal.SIGCONT)
        for member in self.everyone:
            wait_split(member, "t", 1)
            wait_split(member, "u", 2)

    def test_who_makes_its_state_anew_asks_for_the_map_again(self):
        self.cluster(2, 3)
        director = self.wait_leader(self.sets[0])
        director.run("TABLE", "CREATE", "t", "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f")
        former = self.wait_leader(self.sets[1])
        row = next(each for each in "agms" if pairs(former.run("TABLET", "ROUTE", "t", each))["set"] == 1)
        others = [member for member in self.sets[1] if member is not former]
        for member in others:
            member.server.kill()
        self.beside(lambda: former.refusal("CPUT", "t", row, "f:x", "nobody else has it"))
        self.wait_until(lambda: "cmdstat_cput" in former.info("commandstats"), "it is not written")
        former.server.process.send_signal(signal.SIGSTOP)
        self.bring_back(others)
        self.wait_leader(others)
        self.assertEqual("OK", director.run("CPUT", "t", row, "f:x", "1"))
        former.server.process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: "The state is made anew" in former.server.log().split("Leading from now on")[-1], former.server.log)
        for words in (["CCOUNT", "t"], ["CGET", "t", row, "f:x"], ["CPUT", "t", "zz", "f:x", "2"], ["CDEL", "t", "zz"]):
            self.wait_until(lambda words=words: former.refusal(*words) in ("no error: 1", "no error: OK"), lambda words=words: former.refusal(*words))

    def settle_all(self):
        self.wait_until(lambda: all(job["state"] in ("done", "cancelled") for job in self.jobs()) and self.sums() == 0, self.jobs)
        self.wait_purged()


@unittest.skipUnless(has_machines(), "needs root, for network namespaces")
class CutLinks(MoveFaults):
    def setUp(self):
        super().setUp()
        self.machines = Machines(3)
        self.machines.__enter__()
        self.addCleanup(self.machines.remove)

    def test_each_step_in_sets_of_one(self):
        """Donor and recipient lose each other at each step, one way or both; the director sees both."""
        self.begin_with(1)

        def beside(_):
            for _ in range(max(ROUNDS, 1)):
                for step, who in STEPS.items():
                    if who != "director":
                        self.cut_at(step, who, self.rng.choice(((1, 2), (2, 1), None)))
        done, _ = self.load(0, beside, faults=True)
        print(f"seed {self.seed}: {self.moved} moved, {done} commands, a job was over at most {self.longest:.1f} s after the ways "
              "were open")

    def cut_at(self, step, who, way):
        donor = 2 if self.owner() == 2 else 1
        stopped = self.leaders(donor)[who]
        stopped.run("DEBUG", "CLUSTER", "STOP-AT", step)
        number = self.order(3 - donor)
        self.wait_stopped(stopped)
        for pair in [way] if way else [(1, 2), (2, 1)]:
            self.machines.cut(*pair)
        stopped.server.process.send_signal(signal.SIGCONT)
        time.sleep(self.rng.random() * 2)
        self.machines.heal()
        healed = time.monotonic()
        self.wait_until(lambda: self.is_over(number), lambda: f"seed {self.seed}: {step}, {way}: {self.jobs()[-3:]}")
        self.longest = max(self.longest, time.monotonic() - healed)
        self.wait_until(self.is_known, lambda: (self.tablets(), self.jobs()[-2:]))
        self.moved += self.owner() == 3 - donor
        self.assert_whole()
        self.wait_purged()

    test_each_step_in_sets_of_three = None
    test_a_new_leader_goes_on_from_where_the_copy_was_complete = None
    test_leaders_stop_at_any_moment = None
    test_nobody_goes_by_a_map_that_was_lost_with_a_director = None
    test_who_makes_its_state_anew_asks_for_the_map_again = None


if __name__ == "__main__":
    unittest.main()
