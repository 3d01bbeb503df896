"""What followers promise of acknowledged writes: WAIT through a cut link, a leader whose disk is full, peers that the
option `timeout` must not end, and what a leader alone loses, which is saved."""

import contextlib
import os
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import redis

from replicas import SECONDS_MAX, Node, ReplicaTest, chance

DISK_BYTES = 12 << 20


class WaitTest(ReplicaTest):
    def test_what_wait_confirmed_is_on_the_follower_through_cuts(self):
        _, random = chance()
        leader, follower = self.pair(repl_timeout="2")
        confirmed, written, ended = set(), [], threading.Event()
        link = self.link(leader)
        follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.assert_copied(leader, follower)

        def write(name):
            client = leader.server.client()
            for i in range(10**9):
                if ended.is_set():
                    return
                with contextlib.suppress(redis.RedisError, OSError):
                    row = f"{name}-{i}"
                    client.execute_command("CPUT", "t", row, "f:a", row)
                    written.append(row)
                    if client.execute_command("WAIT", "1", "200") >= 1:
                        confirmed.add(row)

        writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
        for writer in writers:
            writer.start()
        try:
            for _ in range(8):
                count = len(confirmed)
                self.wait_until(lambda count=count: len(confirmed) > count + 20, "writes that are confirmed")
                time.sleep(random.random() * 0.1)
                way = random.choice(({}, {"up": False}, {"down": False}))
                link.cut(**way)
                time.sleep(random.random())
                if random.random() < 0.5:
                    link.drop()
                link.heal()
            count = len(confirmed)
            self.wait_until(lambda: len(confirmed) > count + 20, "writes that are confirmed")
            link.cut()
            count = len(written)
            self.wait_until(lambda: len(written) > count + 4, "writes that nobody confirms")
        finally:
            ended.set()
            for writer in writers:
                writer.join()
        leader.kill()
        self.assertEqual("OK", follower.run("REPLICAOF NO ONE"))
        self.assertLess(len(confirmed), len(written))
        lost = [row for row in confirmed if follower.run(f"CGET t {row} f:a") != row]
        self.assertEqual([], lost)
        # The one that comes back has what nobody confirmed: that is saved and counted, not kept.
        leader.restart()
        leader.follow(follower)
        self.assert_copied(follower, leader)
        unknown = [row for row in written if follower.run(f"CGET t {row} f:a") is None]
        self.assertGreaterEqual(leader.info("replica_diverged_records"), 1 if unknown else 0)


class DiskFullTest(ReplicaTest):
    def setUp(self):
        self.mount = tempfile.mkdtemp(prefix="cellar-disk-")
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", self.mount],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        self.addCleanup(os.rmdir, self.mount)
        if mounted.returncode != 0:
            self.skipTest("mounting a tmpfs is not allowed here")
        self.addCleanup(subprocess.run, ["umount", self.mount], check=True)

    def node_on_the_small_disk(self):
        """A node whose log lies there, besides half a disk of something else."""
        filler = os.path.join(self.mount, "filler")
        with open(filler, "wb") as file:
            file.write(b"x" * (DISK_BYTES // 2))
        directory = os.path.join(self.mount, "db")
        os.mkdir(directory)
        return Node(self, directory=directory), filler

    def fill(self, node):
        """Writes until one is refused; how many were not."""
        for i in range(DISK_BYTES // 2000):
            said = node.refusal(f"CPUT t fill{i} f:a {'v' * 2000}")
            if said != "no error: OK":
                self.assertIn("MISCONF", said)
                return i
        self.fail("the disk never got full")

    def test_a_leader_without_room_serves_its_follower_and_goes_on(self):
        leader, filler = self.node_on_the_small_disk()
        follower = Node(self)
        leader.run("TABLE CREATE t FAMILY f")
        follower.follow(leader)
        self.assert_copied(leader, follower)
        rows = self.fill(leader)
        self.assertGreater(rows, 100)
        # Every write that was acknowledged arrives; none that was refused does.
        self.assert_copied(leader, follower)
        self.assertEqual(rows, follower.run("CCOUNT t"))
        self.assertEqual("up", follower.info("master_link_status"))
        os.remove(filler)
        self.wait_until(lambda: leader.refusal("CPUT t again f:a 1") == "no error: OK", "room")
        self.assert_copied(leader, follower)
        # It could have handed over as well.
        self.assertEqual("OK", leader.run("FAILOVER"))
        self.take_over(leader, follower)
        self.assertEqual("1", follower.run("CGET t again f:a"))

    def test_a_leader_without_room_can_hand_over(self):
        leader, _ = self.node_on_the_small_disk()
        follower = Node(self)
        leader.run("TABLE CREATE t FAMILY f")
        follower.follow(leader)
        self.assert_copied(leader, follower)
        rows = self.fill(leader)
        self.assertEqual("OK", leader.run("FAILOVER"))
        self.take_over(leader, follower)
        self.assertEqual(rows, follower.run("CCOUNT t"))
        self.assertEqual("OK", follower.run("CPUT t after f:a 1"))

    def test_a_follower_without_room_comes_back_when_there_is_some(self):
        follower, _ = self.node_on_the_small_disk()
        leader = Node(self)
        leader.run("TABLE CREATE t FAMILY f")
        follower.follow(leader)
        self.assert_copied(leader, follower)
        for i in range(DISK_BYTES // 2000):
            leader.run(f"CPUT t fill{i} f:a {'v' * 2000}")
        self.assertTrue(follower.run("PING"))
        subprocess.run(["mount", "-o", f"remount,size={16 * DISK_BYTES}", self.mount], check=True)
        self.assert_copied(leader, follower)


class TimeoutTest(ReplicaTest):
    def test_links_of_followers_outlive_the_timeout_of_clients(self):
        leader, follower = self.pair(timeout="4")
        follower.follow(leader)
        self.assert_copied(leader, follower)
        with socket.create_connection(("127.0.0.1", leader.server.port), timeout=SECONDS_MAX) as idle:
            idle.sendall(b"PING\r\n")
            self.assertEqual(b"+PONG\r\n", idle.recv(100))
            self.assertEqual(b"", idle.recv(100))  # the client is ended

        def outlives():
            """Unless the leader has had no turn for two seconds, which is a silence."""
            syncs = follower.info("replica_partial_syncs")
            time.sleep(5)
            leader.run("CPUT t after f:a 1")
            self.assert_copied(leader, follower)
            return follower.info("replica_partial_syncs") == syncs
        self.wait_until(outlives, lambda: follower.server.log()[-2000:])


if __name__ == "__main__":
    unittest.main()
