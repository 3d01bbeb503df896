"""What a table keeps together stays in one tablet, whoever splits it at another node meanwhile; a set whose disk is full gets
no tablet."""

import threading
import unittest

from move_load import MovesCase
from replica_sets import Member
from cellar_server import free_port

ROUNDS = 8


class KeptTogether(MovesCase):
    def both(self, first, second):
        """Two commands at two nodes at one time: what they are answered."""
        answers = [None, None]
        begin = threading.Barrier(2)

        def run(number, words):
            begin.wait()
            answers[number] = self.sets[number][0].refusal(words)
        threads = [self.beside(lambda number=number, words=words: run(number, words))
                   for number, words in enumerate((first, second))]
        for thread in threads:
            thread.join()
        return answers

    def crossed(self, change, key, row):
        """A table of set 1, which is split there while set 0 is told that rows stay together: nobody has it parted then."""
        for _ in range(ROUNDS):
            self.director.refusal("TABLE DROP t")
            self.director.run(f"TABLE CREATE t KEY {key} FAMILY f")
            if self.owners(member=self.director) != [1]:
                self.move(row, 1, member=self.director)
            answers = self.both(change, f"TABLET SPLIT t {row}")
            if not answers[0].startswith("no error"):
                continue  # the split was known
            self.wait_until(lambda: len(self.tablets(member=self.director)) == 1,
                            lambda answers=answers: f"{answers}, {self.tablets(member=self.director)}")
            self.assert_whole()
            self.assertEqual([1], self.owners(member=self.director))
            # Nobody parts it any more.
            self.assertNotIn("no error", self.sets[1][0].refusal(f"TABLET SPLIT t {row}"))

    def setUp(self):
        super().setUp()
        self.cluster(3, 1)
        self.director = self.sets[0][0]
        self.director.run("CLUSTER CONFIG SET tablet-balance no")

    def gather(self, rows, to):
        for row, owner in zip(rows, self.owners(member=self.director)):
            if owner != to:
                self.move(row, to, member=self.director)

    def test_whole(self):
        self.crossed("TABLE ALTER t WHOLE", "utf8", "m")

    def test_colocate(self):
        self.crossed("TABLE ALTER t COLOCATE 1", "utf8#u64", "m#5")

    def test_unique(self):
        """A value that is there once stays so."""
        self.crossed("INDEX CREATE t u ON 1 f:x UNIQUE", "utf8", "m")
        self.director.run("CPUT t a f:x 1")
        self.assertIn("UNIQUE", self.sets[1][0].refusal("CPUT t z f:x 1"))

    def test_tablets_of_one_set_become_one(self):
        self.director.run("TABLE CREATE t SPLIT AT 3 c m t FAMILY f")
        self.gather("adnu", 1)
        self.assertIn("rows on other sets", self.director.refusal("TABLE ALTER t WHOLE"))
        self.gather("adnu", 0)
        self.assertEqual(4, len(self.tablets(member=self.director)))
        self.director.run("TABLE ALTER t WHOLE")
        self.wait_until(lambda: len(self.tablets(member=self.director)) == 1, lambda: self.tablets(member=self.director))
        self.assert_whole()

    def test_a_sample_of_very_many_parts(self):
        self.director.run("TABLE CREATE t SPLIT AT 1 m FAMILY f")
        for row in ("a", "b", "n", "o"):
            self.director.run("CPUT", "t", row, "f:x", "v")
        few = self.director.run("TABLE", "SAMPLE", "t", 100)
        for parts in (10**9, 2**63 - 1):
            for member in self.everyone:
                self.assertEqual(few, member.run("TABLE", "SAMPLE", "t", parts))
        self.assertEqual(1, len(self.director.run("TABLE", "SAMPLE", "t", 2)))


class OlderSnapshot(MovesCase):
    def test_a_copy_of_what_was_before_the_cluster(self):
        """A UNIQUE index needs WHOLE, though the snapshot does not say so."""
        first = self.new_set(1)
        leader = self.wait_leader(first)
        for words in ("TABLE CREATE t FAMILY f", "INDEX CREATE t u ON 1 f:x UNIQUE", "CPUT t a f:x 1", "SNAPSHOT CREATE s"):
            leader.run(words)
        self.lead(first, "CLUSTER", "INIT")
        self.sets = [first, self.new_set(1, join=first)]
        self.admit(1)
        self.everyone = sum(self.sets, [])
        leader.run("COPY t@s c")
        leader.run("COPY t@s t REPLACE")
        for table in "ct":
            for member in self.everyone:
                self.wait_until(lambda member=member, table=table: "WHOLE" in member.run("TABLE", "SHOW", table)[0],
                                lambda member=member, table=table: f"{member.address}: {member.run('TABLE', 'SHOW', table)}")
            self.assertIn("is WHOLE", leader.refusal(f"TABLET SPLIT {table} m"))
            self.assertIn("UNIQUE", self.everyone[1].refusal(f"CPUT {table} z f:x 1"))
            self.move("a", 1, table=table, member=leader)
            self.assertIn("UNIQUE", leader.refusal(f"CPUT {table} z f:x 1"))
        self.assert_whole()


class FullDisk(MovesCase):
    def small_set(self, join):
        """Of one node, whose disk is small."""
        port = free_port()
        member = Member(self, port, [f"127.0.0.1:{port}"], cluster_join=[each.address for each in join])
        self.mount(member.directory)
        member.server.start()
        self.wait_leader([member])
        return [member]

    def test_it_gets_none(self):
        first = self.new_set(1)
        self.lead(first, "CLUSTER", "INIT")
        self.director = first[0]
        self.sets = [first, self.small_set(first), self.new_set(1, join=first)]
        self.admit(1)
        self.admit(2)
        self.everyone = sum(self.sets, [])
        self.director.run("CLUSTER CONFIG SET tablet-balance no")
        self.director.run("TABLE CREATE t FAMILY f")
        if self.owners(member=self.director) != [0]:
            self.move("a", 0, member=self.director)
        self.fill(self.sets[1][0])
        self.director.run("DEBUG CLUSTER JOB-PATIENCE 3000")
        number = self.director.run("TABLET", "MOVE", "t", "a", "TO", 1)
        job = {}

        def ended():
            job.update(next(each for each in self.jobs() if each["job"] == number))
            return job["state"] in ("done", "cancelled")
        self.wait_until(ended, lambda: job)
        self.assertEqual("cancelled", job["state"])
        self.assertIn("set 1 has no room for it: ", job["error"])
        self.director.run("CPUT t a f:x 1")
        # By itself nothing is moved there, and all else goes on.
        self.director.run("CLUSTER CONFIG SET tablet-split-bytes 1mb")
        self.director.run("CLUSTER CONFIG SET tablet-balance size")
        pipe = self.director.redis.pipeline(transaction=False)
        for row in range(400):
            pipe.execute_command("CPUT", "t", f"row{row:03}", "f:x", "v" * 20_000)
        pipe.execute()
        self.wait_until(lambda: 2 in self.owners(member=self.director) and
                        all(each["state"] in ("done", "cancelled") for each in self.jobs()),
                        lambda: f"{self.owners(member=self.director)}, {self.jobs()[-3:]}")
        self.assertEqual([number], [each["job"] for each in self.jobs() if each["to"] == 1])
        told = {each["set"]: each["bytes"] for each in self.told_sets(self.director)}
        self.assertGreater(told[2], 1_000_000, told)
        self.assert_whole()


if __name__ == "__main__":
    unittest.main()
