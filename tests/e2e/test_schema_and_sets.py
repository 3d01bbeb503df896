"""Changes of the schema beside sets that come: in the same turn, while they die, while a commit takes long, where a set cannot
take what it is given. Whatever the order, each row has one owner, and each set has each change."""

import os
import resource
import shutil
import signal
import subprocess
import time
import unittest

import redis

from cellar_server import binary, free_port
from cluster_sets import pairs
from move_load import MovesCase
from replica_sets import Member

SPLIT = ("SPLIT", "AT", "4", "b", "c", "d", "e")
ROWS = "abcdef"


class SchemaCase(MovesCase):
    def founded(self, voters=1):
        first = self.new_set(voters)
        self.lead(first, "CLUSTER", "INIT")
        self.sets, self.everyone = [first], list(first)
        self.lead(first, "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        return self.wait_leader(first)

    def waiting(self, director):
        """The node of a set that wants to join, and that the director knows of."""
        port = free_port()
        new = Member(self, port, [f"127.0.0.1:{port}"], cluster_join=[member.address for member in self.sets[0]])
        new.server.start()
        self.wait_leader([new])
        self.sets.append([new])
        self.everyone.append(new)
        self.wait_until(lambda: "waiting" in str(director.run("CLUSTER", "SETS")), lambda: new.server.log()[-800:])
        return new

    def assert_all_serve(self, table):
        """Each row of it can be written and read at each node, and the next change is taken by all."""
        director = self.wait_leader(self.sets[0])
        self.wait_until(lambda: all(self.sees(member, len(self.sets)) for member in self.everyone),
                        lambda: [member.server.log()[-800:] for member in self.everyone])
        self.assert_whole()
        for row in ROWS:
            for member in self.everyone:
                self.assertEqual("OK", member.run("CPUT", table, row, "f:x", member.address))
                self.assertEqual({member.address}, {each.run("CGET", table, row, "f:x") for each in self.everyone})
        self.assertEqual({len(ROWS)}, {member.run("CCOUNT", table) for member in self.everyone})
        self.assertEqual("OK", director.run("TABLE", "CREATE", "next", *SPLIT, "FAMILY", "f"))
        self.wait_until(lambda: len({str(self.catalog(member)) for member in self.everyone}) == 1, "the sets differ")
        self.assert_whole()
        self.assertIn(len(self.sets) - 1, self.owners("next", director))
        self.assertFalse([line for member in self.everyone for line in member.server.log().splitlines()
                          if "cannot be taken" in line and "Errors writing to the log" not in line])


class WhoComes(SchemaCase):
    def test_in_the_turn_of_a_change(self):
        for sets in (1, 2):
            director = self.founded()
            if sets == 2:
                self.waiting(director)
                self.admit(1)
            new = self.waiting(director)
            with director.redis.pipeline(transaction=False) as pipe:
                pipe.execute_command("TABLE", "CREATE", "a", *SPLIT, "FAMILY", "f")
                pipe.execute_command("CLUSTER", "ADMIT", new.address)
                self.assertEqual(["OK", "OK"], pipe.execute())
            self.assert_all_serve("a")
            for member in self.everyone:
                member.stop()

    def test_in_the_turn_of_anothers_change(self):
        """The director's loop stands still, and then both are there at once."""
        director = self.founded()
        self.waiting(director)
        self.admit(1)
        new = self.waiting(director)
        connections = [redis.Connection(port=director.port, socket_timeout=30) for _ in range(3)]
        for each in connections:
            each.connect()
        connections[0].send_command("DEBUG", "SLEEP", "0.5")
        time.sleep(0.1)
        connections[1].send_command("TABLE", "CREATE", "a", *SPLIT, "FAMILY", "f")
        time.sleep(0.05)
        connections[2].send_command("CLUSTER", "ADMIT", new.address)
        self.assertEqual([b"OK"] * 3, [each.read_response() for each in connections])
        for each in connections:
            each.disconnect()
        self.assert_all_serve("a")

    def test_it_dies_before_it_has_joined(self):
        director = self.founded()
        new = self.waiting(director)
        self.assertEqual("OK", director.run("CLUSTER", "ADMIT", new.address))
        new.server.kill()
        told = director.refusal("TABLE", "CREATE", "a", *SPLIT, "FAMILY", "f")
        self.assertTrue(told.endswith("OK") or "set 1 has not taken it yet" in told, told)
        new.server.start()
        new.connect()
        self.assert_all_serve("a")

    def test_while_a_commit_takes_long(self):
        """What was made between ADMIT and the joining is dealt to sets that have joined."""
        director = self.founded(voters=3)
        new = self.waiting(director)
        followers = [member for member in self.sets[0] if member is not director]
        connections = [redis.Connection(port=director.port, socket_timeout=30) for _ in range(3)]
        for each in connections:
            each.connect()
            each.send_command("PING")
            each.read_response()
        for follower in followers:
            follower.server.process.send_signal(signal.SIGSTOP)
        for each, words in zip(connections, (("TABLE", "CREATE", "b", "FAMILY", "f"), ("CLUSTER", "ADMIT", new.address),
                                             ("TABLE", "CREATE", "a", *SPLIT, "FAMILY", "f"))):
            each.send_command(*words)
            time.sleep(0.02)
        for follower in followers:
            follower.server.process.send_signal(signal.SIGCONT)
        for each in connections:
            try:
                each.read_response()
            except redis.ResponseError as error:  # on a busy machine another one leads by now
                self.assertIn("TRYAGAIN", str(error))
            each.disconnect()
        self.assert_all_serve("a")


class WhoCannot(SchemaCase):
    def test_a_set_that_cannot_take_what_it_is_given(self):
        """Its disk takes no more: what it is to own is no hole, and nobody else gets it."""
        self.cluster(3)
        director = self.everyone[0]
        director.run("CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        full = self.sets[2][0]
        director.run("TABLE", "CREATE", "u", *SPLIT, "FAMILY", "f")
        self.limit_files(full, 1)
        row = next(tablet["start"] or "a" for tablet in self.tablets("u", director) if tablet["set"] == 2)
        held = redis.Connection(port=director.port)
        held.connect()
        self.addCleanup(held.disconnect)
        held.send_command("CPUT", "u", row, "f:x", "v" * 100_000)
        self.assertFalse(held.can_read(2), "it is on no disk")
        told = director.refusal("TABLE", "CREATE", "t", *SPLIT, "FAMILY", "f")
        self.assertIn("set 2 has not taken it yet", told)
        row = next(tablet["start"] or "a" for tablet in self.tablets("t", director) if tablet["set"] == 2)
        # Its link comes back again and again, each time with what it had before.
        for _ in range(20):
            self.assertEqual([], director.run("CLUSTER", "MAP", "CHECK"))
            time.sleep(0.1)
        self.assertIn("is not lost: set 2 has it", director.refusal("TABLET", "ADOPT", "t", row, "SET", 0))
        self.assertEqual([], self.jobs())
        self.limit_files(full, resource.RLIM_INFINITY)
        self.wait_until(lambda: director.refusal("CPUT", "t", row, "f:x", "1") == "no error: OK",
                        lambda: (director.refusal("CPUT", "t", row, "f:x", "1"), full.server.log()[-1500:]))
        self.assertEqual(b"OK", held.read_response())
        director.run("CDEL", "t", row)
        self.assert_all_serve("t")

    @staticmethod
    def limit_files(member, size):
        resource.prlimit(member.server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class WhoComesBackOlder(SchemaCase):
    def test_jobs_that_ended_since(self):
        """Set 0 is that of a moment in which a job was ordered; what became of it the other sets have forgotten by now."""
        self.cluster(3)
        director = self.everyone[0]
        director.run("CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        director.run("TABLE", "CREATE", "t", "FAMILY", "f")
        for row in ROWS:
            director.run("CPUT", "t", row, "f:x", row)
        if self.owners(member=director) != [1]:
            self.move("a", 1, member=director)
        donor = self.sets[1][0]
        donor.server.process.send_signal(signal.SIGSTOP)
        number = director.run("TABLET", "MOVE", "t", "a", "TO", 2)
        director.server.kill()
        older = director.directory + ".older"
        shutil.copytree(director.directory, older)
        director.server.start()
        director.connect()
        donor.server.process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: self.state_of(number) == "done", self.jobs)
        for to in (1, 2, 1, 2, 1):
            self.move("a", to, member=director)
        director.server.kill()
        shutil.rmtree(director.directory)
        os.rename(older, director.directory)
        recovered = subprocess.run([binary(), "--replica-recover", director.directory, "--yes"], capture_output=True, text=True, check=False)
        self.assertEqual(0, recovered.returncode, recovered.stdout + recovered.stderr)
        director.server.start()
        director.connect()
        self.wait_until(lambda: self.state_of(number) in ("done", "cancelled"), lambda: f"{self.told()}")
        self.assert_whole()
        self.move("a", 2, member=director)
        self.assertEqual([2], self.owners(member=director))
        self.assertEqual({len(ROWS)}, {member.run("CCOUNT", "t") for member in self.everyone})
        self.assertEqual("OK", director.run("FAMILY", "ADD", "t", "g"))

    def state_of(self, number):
        try:
            return next((job["state"] for job in self.jobs() if job["job"] == number), None)
        except redis.RedisError:
            return None

    def told(self):
        return [[pairs(each) if isinstance(each, list) else each for each in member.run("CLUSTER", "EVENTS")] for member in self.sets[0]]


if __name__ == "__main__":
    unittest.main()
