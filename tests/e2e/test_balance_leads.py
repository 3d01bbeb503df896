"""Leads that are evened out over machines by themselves, while clients write and read."""

import random
import threading
import time
import unittest

from cluster_sets import pairs
from move_load import MovesCase, Writer

MACHINES = "abc"


class BalanceLeads(MovesCase):
    def setUp(self):
        super().setUp()
        self.seed = random.randrange(1 << 30)
        self.cluster(3, 3)
        for members in self.sets:
            for member, machine in zip(members, MACHINES):
                member.server.options["cluster-machine"] = machine
                member.run("CONFIG", "SET", "cluster-machine", machine)
        self.lead(self.sets[0], "TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "q", "FAMILY", "f")

    def on(self, machine):
        """Its nodes."""
        return [members[MACHINES.index(machine)] for members in self.sets]

    def leads(self):
        """How many sets each machine leads."""
        leads = dict.fromkeys(MACHINES, 0)
        for members in self.sets:
            leader = self.wait_leader(members)
            leads[MACHINES[members.index(leader)]] += 1
        return leads

    def hurry(self):
        """Whoever directs, now or later, evens out every half second in place of every minute."""
        for member in self.sets[0]:
            self.assertEqual("OK", member.run("DEBUG", "CLUSTER", "LEADS-EVERY", 500))

    def told(self):
        return [pairs(each) for each in self.wait_leader(self.sets[0]).run("CLUSTER", "SETS")]

    def events(self):
        return [" ".join(event[1:]) for event in self.lead(self.sets[0], "CLUSTER", "EVENTS", "COUNT", 1000)]

    def handed(self):
        return [event for event in self.events() if event.startswith("hand set ")]

    def wait_even(self):
        self.wait_until(lambda: list(self.leads().values()) == [1, 1, 1],
                        lambda: f"seed {self.seed}: {self.leads()}, {self.events()[:10]}, {self.told()}")

    def all_to(self, machine):
        for members, member in zip(self.sets, self.on(machine)):
            if self.wait_leader(members) is not member:
                self.hand_over(members, member)
        self.assertEqual(3, self.leads()[machine])

    def test_leads_come_to_be_even_and_nobody_notices(self):
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        self.all_to("a")
        self.hurry()
        stop = threading.Event()
        writers = [Writer(self, number, faults=False) for number in range(4)]
        threads = [self.beside(lambda writer=writer: writer.run(stop)) for writer in writers]
        time.sleep(3)  # some rounds of the director, in which nothing is to be done
        self.assertEqual([], self.handed())
        self.assertEqual({"a": 3, "b": 0, "c": 0}, self.leads())
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "size")
        self.wait_even()
        self.wait_until(lambda: len(self.handed()) == 2, self.handed)  # told once they are seen to lead
        handed = self.handed()
        self.assertTrue(any("machine a leads 3 sets" in event for event in handed), handed)
        # And then it rests, for some rounds of the director.
        time.sleep(5)
        self.wait_even()
        self.assertEqual(handed, self.handed())
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual([[]] * 4, [writer.errors for writer in writers], f"seed {self.seed}")

    def test_a_machine_that_comes_back_leads_again(self):
        self.hurry()
        self.wait_even()
        for member in self.on("b"):
            member.server.kill()
        self.wait_until(lambda: self.leads()["b"] == 0, self.leads)
        for member in self.on("b"):
            member.server.start()
        for member in self.on("b"):
            member.connect()
        self.hurry()
        self.wait_even()


if __name__ == "__main__":
    unittest.main()
