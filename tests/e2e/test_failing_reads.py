"""A leader whose disk does not give back the snapshot that it sends: the copy ends with a word in the log, the leader goes
on, and the copy is made once the disk is well."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import redis

from cellar_server import is_sanitized
from replica_sets import ReplicaSetCase
from replicas import Node, ReplicaTest, chance

HERE = os.path.dirname(os.path.abspath(__file__))
VALUE = "v" * 1000
ROWS = 4000
# What the log says of a read that fails, and of a file that ends before its end.
SAID = {"": "Input/output error", "short": "is shorter than it was|ends too early"}


def make_library(folder, name):
    library = os.path.join(folder, name + ".so")
    subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", os.path.join(HERE, name + ".cc"), "-o", library, "-ldl"],
                   check=True)
    return library


class FailingReads:
    """Beside a test case: what makes reads fail, and who is subject to it."""

    def begin(self):
        self.folder = tempfile.mkdtemp(prefix="cellar-failing-reads-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.order = os.path.join(self.folder, "order")
        self.environment = {"LD_PRELOAD": make_library(self.folder, "failing_reads"), "FAILING_READS": self.order}

    def fail(self, begin, end, how=""):
        with open(self.order + ".new", "w", encoding="ascii") as file:
            file.write(f"{begin} {end} {how}\n")
        os.rename(self.order + ".new", self.order)

    def heal(self):
        os.unlink(self.order)

    def load_values(self, node):
        pipe = node.redis.pipeline(transaction=False)
        for i in range(ROWS):
            pipe.execute_command("CPUT", "t", f"r{i}", "f:a", VALUE)
        pipe.execute()

    def shorten_log(self, node):
        """A copy is a snapshot from now on."""
        def begins():
            try:
                return node.run("BGREWRITEAOF")
            except redis.ResponseError as error:  # TRYAGAIN, or one is under way
                self.assertRegex(str(error), "TRYAGAIN|in progress")
                return False
        self.wait_until(begins, node.server.log)
        self.wait_until(lambda: node.redis.info("persistence")["aof_rewrite_in_progress"] == 0, node.server.log)

    def damage(self, node):
        """Flips a bit of the newest snapshot, anywhere, and tells where."""
        seed, mix = chance()
        path = max(glob.glob(os.path.join(glob.escape(node.directory), "cellar-*.snapshot")))
        with open(path, "r+b") as file:
            offset = mix.randrange(os.path.getsize(path))
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 1 << mix.randrange(8)]))
        return f"seed {seed}: {path} at {offset}"

    def faults(self):
        """Which bytes, and how: those by which a snapshot is opened, and some between them."""
        seed, mix = chance()
        print(f"seed {seed}", flush=True)
        some = mix.randrange(100_000, 2_000_000)
        return [(0, 1 << 40, mix.choice(["", "short"])), (some, some + mix.randrange(1, 1_000_000), mix.choice(["", "short"]))]


@unittest.skipIf(is_sanitized(), "the sanitizers' own functions must be loaded first")
class FollowerTest(FailingReads, ReplicaTest):
    def test_the_copy_is_given_up_and_made_again(self):
        self.begin()
        leader = Node(self, repl_backlog_size="1mb")
        leader.run("TABLE CREATE t FAMILY f")
        leader.server.stop()
        leader.server.environment.update(self.environment)
        leader.restart()
        self.load_values(leader)
        self.shorten_log(leader)
        for begin, end, how in self.faults():
            self.fail(begin, end, how)
            follower = Node(self)
            known = len(leader.server.log())
            follower.follow(leader)
            self.wait_until(lambda k=known, h=how: any("is dropped" in line and re.search(SAID[h], line) for line in
                                                       leader.server.log()[k:].splitlines()),
                            lambda: leader.server.log()[-3000:])
            self.assertEqual("OK", leader.run("CPUT", "t", f"fault-{begin}-{how}", "f:a", "1"))
            self.heal()
            self.assert_copied(leader, follower)
            follower.server.stop()

    def test_another_snapshot_is_written_in_place_of_a_damaged_one(self):
        leader = Node(self, repl_backlog_size="1mb")
        leader.run("TABLE CREATE t FAMILY f")
        self.load_values(leader)
        self.shorten_log(leader)
        where = self.damage(leader)
        follower = Node(self)
        follower.follow(leader)
        self.wait_until(lambda: "another one is written" in leader.server.log(), lambda: where + leader.server.log()[-2000:])
        self.assert_copied(leader, follower)

    def test_who_needs_no_copy_goes_on_while_it_is_written(self):
        folder = tempfile.mkdtemp(prefix="cellar-failing-reads-")
        self.addCleanup(shutil.rmtree, folder)
        gate = os.path.join(folder, "gate")
        leader = Node(self, repl_backlog_size="1mb", appendfsync="no")
        leader.run("TABLE CREATE t FAMILY f")
        leader.server.stop()
        leader.server.environment.update(LD_PRELOAD=make_library(folder, "held_sync"), HELD_SYNC_MARK=VALUE, HELD_SYNC_GATE=gate)
        leader.restart()
        self.load_values(leader)
        self.shorten_log(leader)
        link, near = self.link(leader), Node(self)
        near.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.assert_copied(leader, near)
        where = self.damage(leader)
        with open(gate, "w", encoding="ascii"):
            pass
        try:
            new = Node(self)
            new.follow(leader)
            self.wait_until(lambda: os.path.exists(gate + ".waiting") and leader.redis.info("persistence")["rdb_bgsave_in_progress"],
                            lambda: where + leader.server.log()[-2000:])
            link.drop()
            leader.run("CPUT t later f:a 1")
            self.wait_until(lambda: near.run("CGET t later f:a") == "1", lambda: where + leader.server.log()[-2000:])
            self.assertEqual(1, leader.redis.info("persistence")["rdb_bgsave_in_progress"])
        finally:
            os.unlink(gate)
        self.assert_copied(leader, near, new)


@unittest.skipIf(is_sanitized(), "the sanitizers' own functions must be loaded first")
class MemberTest(FailingReads, ReplicaSetCase):
    def test_the_copy_is_given_up_and_made_again(self):
        self.begin()
        members = self.make(3, repl_backlog_size="1mb")
        for member in members:
            member.server.environment.update(self.environment)
            member.server.start()
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        self.load_values(leader)
        for begin, end, how in self.faults():
            leader = self.wait_leader(members)
            lost = next(member for member in members if member is not leader)
            lost.server.kill()
            lost.wipe()
            self.shorten_log(leader)
            self.fail(begin, end, how)
            known = {member: 0 if member is lost else len(member.server.log()) for member in members}
            lost.server.start()
            lost.redis = lost.server.client(decode_responses=True, socket_timeout=5)
            self.wait_until(lambda k=known, h=how: any(re.search(SAID[h], member.server.log()[k[member]:]) for member in members),
                            lambda: "\n".join(member.server.log()[-2000:] for member in members))
            self.wait_leader(members).run("CPUT", "t", f"fault-{begin}-{how}", "f:a", "1")
            self.heal()
            self.wait_until(lambda m=lost: m.info().get("replica_state") == "follower", lambda m=lost: m.server.log()[-2000:])
            self.assert_equal(members)

    def test_another_snapshot_is_written_in_place_of_a_damaged_one(self):
        members = self.found(3, repl_backlog_size="1mb")
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        self.load_values(leader)
        leader = self.wait_leader(members)
        lost = next(member for member in members if member is not leader)
        lost.server.kill()
        lost.wipe()
        for member in members:
            if member is not lost:  # either may lead by the time that the copy is made
                self.shorten_log(member)
                where = self.damage(member)
        lost.server.start()
        lost.redis = lost.server.client(decode_responses=True, socket_timeout=5)
        self.wait_until(lambda: any("another one is written" in member.server.log() for member in members),
                        lambda: where + "\n".join(member.server.log()[-2000:] for member in members))
        self.wait_until(lambda: lost.info().get("replica_state") == "follower", lambda: where + lost.server.log()[-2000:])
        self.assert_equal(members)


if __name__ == "__main__":
    unittest.main()
