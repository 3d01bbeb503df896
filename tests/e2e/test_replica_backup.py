"""BACKUP and archives of a replica set's members: what comes of them is a store of its own, with what was committed."""

import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from cellar_server import CellarServer, binary, wait_until
from replica_sets import STEADY_MS, ReplicaSetCase, Writer

DEBUG = {"save": "", "enable-debug-command": "local"}


def cellar(*words):
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False)


class ReplicaBackupTest(ReplicaSetCase):
    def digest(self, directory):
        checked = cellar("--check", directory)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        with CellarServer(directory=directory, options=DEBUG) as server:
            client = server.client()
            client.execute_command("CPUT", "t", "new", "f:a", "1")  # it is nobody's follower
            client.execute_command("CDEL", "t", "new")
            digest = client.execute_command("DEBUG", "DIGEST", "t")
            client.close()
        return digest

    def test_of_the_leader_and_of_a_follower(self):
        folder = tempfile.mkdtemp(prefix="cellar-set-backup-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        members = self.found(replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        writer = Writer(members)
        self.wait_until(lambda: len(writer.acknowledged) > 50, "it writes")
        follower = next(member for member in members if not member.leads())
        self.wait_until(lambda: follower.refusal("CCOUNT t").startswith("no error"), "the follower has the table")
        made = []
        for member in (leader, follower):
            self.assertIn(member.run("BACKUP START"), ("OK", b"OK"))
            self.wait_until(lambda m=member: "incrementing" in str(m.run("BACKUP STATUS")), "a base")
            before = len(writer.acknowledged)
            self.assertIn(member.run("BACKUP SEAL"), ("OK", b"OK"))
            status = member.run("BACKUP STATUS")
            self.assertIn("sealed", str(status))
            copy = tempfile.mkdtemp(dir=folder)
            for path in member.run("BACKUP LIST"):
                shutil.copy(path, copy if isinstance(path, str) else copy.encode())
            made.append((copy, before if member is leader else 0))
        writer.end()
        for copy, before in made:
            self.digest(copy)
            with CellarServer(directory=copy, options=DEBUG) as server:
                client = server.client()
                self.assertGreaterEqual(client.execute_command("CCOUNT", "t"), before)
                client.close()
        # To the end, from the directory of a member that is stopped.
        self.assert_equal(members)
        follower.server.stop()
        done = cellar("--recover", follower.directory, "--until", "2100-01-01T00:00:00Z", "--dir",
                      os.path.join(folder, "then"))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn("a store of its own", done.stdout)
        with CellarServer(directory=os.path.join(folder, "then"), options=DEBUG) as server:
            client = server.client()
            self.assertGreaterEqual(client.execute_command("CCOUNT", "t"), len(writer.acknowledged))
            client.close()

    def test_what_is_not_committed_is_no_backup(self):
        """A leader alone: its SEAL waits, and after kill -9 there is nothing that could be taken for a backup."""
        members = self.found(replica_election_timeout=5000)
        leader = self.wait_leader(members)
        folder = os.path.join(leader.directory, "backupdir")
        leader.run("TABLE CREATE t FAMILY f")
        leader.run("CPUT t committed f:a 1")
        self.assertIn(leader.run("BACKUP START"), ("OK", b"OK"))
        self.wait_until(lambda: "incrementing" in str(leader.run("BACKUP STATUS")), "a base")
        base = snapshots(folder)
        others = [member for member in members if member is not leader]
        for member in others:
            member.server.process.send_signal(signal.SIGSTOP)
        try:
            logged = leader.info("persistence")["aof_last_lsn"]
            alone = leader.server.client(socket_timeout=None)
            send = alone.connection_pool.get_connection("CPUT")
            send.send_command("CPUT", "t", "never", "f:a", "1")
            seal = leader.server.client(socket_timeout=None).connection_pool.get_connection("BACKUP")
            self.wait_until(lambda: leader.info("persistence")["aof_last_lsn"] != logged, "a write in its log")
            seal.send_command("BACKUP", "SEAL")
            self.wait_until(lambda: len(snapshots(folder)) > len(base), lambda: str(os.listdir(folder)))
            self.wait_until(lambda: not leader.leads(), "a leader that has heard of nobody for long")
            self.assertNotIn("sealed", str(leader.run("BACKUP STATUS")))
            self.assertFalse([name for name in os.listdir(folder) if "manifest" in name])
            leader.server.kill()
        finally:
            for member in others:
                member.server.process.send_signal(signal.SIGCONT)
        self.assertFalse([name for name in os.listdir(folder) if "manifest" in name])
        leader.server.start()
        self.wait_leader(members)
        self.assertIn("idle", str(leader.run("BACKUP STATUS")))


def snapshots(folder):
    return [name for name in os.listdir(folder) if "snapshot" in name and not name.endswith(".tmp")]


if __name__ == "__main__":
    unittest.main()
