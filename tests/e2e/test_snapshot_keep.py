"""snapshot-keep of a real server: what stays on disk, what a damaged snapshot costs, what a replica and a backup have of it."""

import os
import random
import shutil
import subprocess
import tempfile
import unittest

from cellar_server import CellarServer, binary, wait_until
from replicas import Node, ReplicaTest


def manifest_of(directory):
    with open(os.path.join(directory, "cellar.manifest"), encoding="ascii") as file:
        return file.read()


def snapshots_of(directory):
    """The oldest first, as the manifest names them."""
    lines = (line.split() for line in manifest_of(directory).splitlines())
    return [words[1] for words in lines if words[0] in ("snapshot", "earlier-snapshot")]


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


class SnapshotKeepTest(unittest.TestCase):
    def open(self, **options):
        server = CellarServer(save="", **options)
        self.addCleanup(server.close)
        server.start()
        return server

    def write(self, server, begin, end):
        client = server.client()
        pipe = client.pipeline(transaction=False)
        for i in range(begin, end):
            pipe.execute_command("CPUT", "t", f"row{i:05}", "f:v", f"value {i}")
        pipe.execute()
        client.close()

    def rounds(self, server, rounds):
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for n in range(rounds):
            self.write(server, n * 1000, n * 1000 + 1000)
            client.execute_command(("SAVE", "BGREWRITEAOF")[n % 2])
            self.wait_for_save(client, n + 1)
        client.close()

    def wait_for_save(self, client, saves):
        wait_until(lambda: client.info("persistence")["rdb_saves"] >= saves)

    def wait_until(self, condition, what):
        wait_until(condition, what)

    def on_disk(self, server):
        return sorted(n for n in os.listdir(server.directory) if n.endswith(".snapshot"))

    def test_one_stays_unless_more_are_asked_for(self):
        server = self.open()
        self.rounds(server, 3)
        client = server.client()
        self.assertEqual({"snapshot-keep": "1"}, client.config_get("snapshot-keep"))
        info = client.info("persistence")
        path = os.path.join(server.directory, self.on_disk(server)[0])
        self.assertEqual((1, os.path.getsize(path)), (info["rdb_snapshots"], info["rdb_snapshots_bytes"]))
        self.assertEqual(1, len(self.on_disk(server)))
        self.assertTrue(manifest_of(server.directory).startswith("cellar-manifest 1\n"))
        for bad in ("0", "-1", "101", "many"):
            with self.assertRaises(Exception):
                client.config_set("snapshot-keep", bad)

    def test_the_number_can_be_changed_while_the_server_runs(self):
        server = self.open(snapshot_keep=4, enable_debug_command="yes")
        self.rounds(server, 5)
        client = server.client()
        self.assertEqual(4, client.info("persistence")["rdb_snapshots"])
        self.assertEqual(snapshots_of(server.directory), self.on_disk(server))
        self.assertEqual(4, len(self.on_disk(server)))
        logs = sum(n.endswith(".log") for n in os.listdir(server.directory))
        client.config_set("snapshot-keep", 2)
        self.wait_until(lambda: len(self.on_disk(server)) == 2, "files that should be gone")
        self.wait_until(
            lambda: sum(n.endswith(".log") for n in os.listdir(server.directory)) == logs - 2, "log that should be gone"
        )
        self.wait_until(lambda: client.info("persistence")["rdb_snapshots"] == 2, "the count")
        client.config_set("snapshot-keep", 1)
        self.wait_until(lambda: len(self.on_disk(server)) == 1, "files that should be gone")
        self.assertTrue(manifest_of(server.directory).startswith("cellar-manifest 1\n"))
        client.config_set("snapshot-keep", 3)
        for n in range(2):
            client.execute_command("SAVE")
            self.wait_for_save(client, 6 + n)
        self.assertEqual(3, len(self.on_disk(server)))
        self.assertTrue(manifest_of(server.directory).startswith("cellar-manifest 2\n"))
        client.close()
        server.stop()
        # Less at the next start.
        server.options["snapshot-keep"] = 2
        server.start()
        self.wait_until(lambda: len(self.on_disk(server)) == 2, "files that should be gone")
        client = server.client()
        self.assertEqual(5000, client.execute_command("CCOUNT", "t"))
        # DEBUG RELOAD opens the files again, as they are asked for by then.
        client.config_set("snapshot-keep", 3)
        client.execute_command("DEBUG", "RELOAD")
        client.execute_command("SAVE")
        self.assertEqual(3, client.info("persistence")["rdb_snapshots"])

    def test_a_damaged_snapshot_costs_nothing(self):
        dice = random.Random(17)
        server = self.open(snapshot_keep=2, appendfsync="always")
        self.rounds(server, 2)
        for n in range(3):
            self.write(server, 2000 + n * 50, 2050 + n * 50)
            server.kill()
            newest = os.path.join(server.directory, snapshots_of(server.directory)[-1])
            flip(newest, dice.randrange(os.path.getsize(newest)))
            checked = subprocess.run([binary(), "--check", server.directory], capture_output=True, text=True, check=False)
            self.assertNotEqual(0, checked.returncode)
            self.assertIn("nothing is lost", checked.stdout + checked.stderr)
            server.start()
            self.assertIn("THE NEWEST SNAPSHOT IS DAMAGED", server.log())
            client = server.client()
            self.assertEqual(2050 + n * 50, client.execute_command("CCOUNT", "t", "NOINDEX"))
            self.assertEqual(b"value 7", client.execute_command("CGET", "t", "row00007", "f:v"))
            # Another one is written at once, and the store is sound again.
            self.wait_for_save(client, 1)
            client.close()
            self.assertFalse(os.path.exists(newest))
        server.stop()
        checked = subprocess.run([binary(), "--check", server.directory], capture_output=True, text=True, check=False)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        self.assertIn("a snapshot, 1 earlier", checked.stdout)
        dumped = subprocess.run([binary(), "--dump", server.directory], capture_output=True, text=True, check=False)
        self.assertEqual(0, dumped.returncode, dumped.stderr)
        self.assertEqual(2, dumped.stdout.count("# snapshot up to record"))

    def test_a_copy_of_the_directory_has_them_too(self):
        server = self.open(snapshot_keep=3)
        self.rounds(server, 4)
        self.write(server, 4000, 4500)
        client = server.client()
        client.execute_command("WAITAOF", 1, 0, 0)
        with tempfile.TemporaryDirectory() as directory:
            backup = os.path.join(directory, "backup")
            shutil.copytree(server.directory, backup)
            checked = subprocess.run([binary(), "--check", backup], capture_output=True, text=True, check=False)
            self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
            flip(os.path.join(backup, snapshots_of(backup)[-1]), 5000)
            with CellarServer(directory=backup, save="", snapshot_keep=3) as copy:
                with copy.client() as other:
                    self.assertEqual(4500, other.execute_command("CCOUNT", "t", "NOINDEX"))
                    self.wait_for_save(other, 1)
                    self.assertEqual(3, other.info("persistence")["rdb_snapshots"])

    def test_without_a_log_the_last_ones_stay(self):
        server = self.open(snapshot_keep=2, appendonly="no")
        self.rounds(server, 3)
        self.assertEqual(2, len(self.on_disk(server)))
        server.stop()
        newest = os.path.join(server.directory, snapshots_of(server.directory)[-1])
        os.remove(newest)
        with self.assertRaises(Exception):
            server.start()
        repaired = subprocess.run([binary(), "--check", server.directory, "--repair"], capture_output=True, text=True, check=False)
        self.assertEqual(0, repaired.returncode, repaired.stdout + repaired.stderr)
        self.assertIn("LOST: all changes after record", repaired.stdout)
        server.start()
        client = server.client()
        self.assertEqual(2000, client.execute_command("CCOUNT", "t", "NOINDEX"))


class ReplicaKeepTest(ReplicaTest):
    def test_a_full_copy_replaces_them_and_the_options_of_now_count_behind_it(self):
        leader, follower = Node(self, snapshot_keep=2), Node(self)
        leader.run("TABLE CREATE t FAMILY f")
        for n in range(3):
            leader.run(f"CPUT t r{n} f:a {n}")
            leader.run("SAVE")
        follower.run("CONFIG SET snapshot-keep 3")
        follower.run("CONFIG SET appendfsync always")
        follower.run("TABLE CREATE old FAMILY f")
        for _ in range(3):
            follower.run("CPUT old r f:a 1")
            follower.run("SAVE")
        self.assertEqual(3, follower.info("rdb_snapshots", "persistence"))
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertEqual(1, follower.info("rdb_snapshots", "persistence"))
        for n in range(3):
            leader.run(f"CPUT t s{n} f:a {n}")
            self.assert_copied(leader, follower)
            follower.run("SAVE")
        self.assertEqual(3, follower.info("rdb_snapshots", "persistence"))
        # Under always what is answered is on disk.
        follower.run("REPLICAOF NO ONE")
        for n in range(20):
            follower.run(f"CPUT t x{n} f:a {n}")
            self.assertEqual(follower.info("aof_last_lsn", "persistence"), follower.info("aof_durable_lsn", "persistence"))
        self.assertEqual(2, leader.info("rdb_snapshots", "persistence"))
        follower.restart_cleanly()


if __name__ == "__main__":
    unittest.main()
