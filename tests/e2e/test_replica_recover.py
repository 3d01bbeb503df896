"""`cellar --replica-recover DIR`, for a replica set whose majority is lost for good, and what `cellar --check` says of a
member's directory."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest

from cellar_server import CellarServer, binary, wait_until
from replica_sets import ReplicaSetCase, Writer

FIRST = "ONLY FOR A REPLICA SET WHOSE MAJORITY IS LOST FOR GOOD"


def cellar(*words):
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False)


def contents(directory):
    found = {}
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as file:
            found[name] = file.read()
    return found


class RecoverTest(ReplicaSetCase):
    def lost(self):
        """A set of three that has written, of which two are gone, and the third is stopped; and what was written."""
        members = self.found()
        self.lead(members, "TABLE CREATE t FAMILY f")
        writer = Writer(members)
        self.wait_until(lambda: len(writer.acknowledged) > 50, "it writes")
        writer.end()
        self.assert_equal(members)
        left = next(member for member in members if not member.leads())
        others = [member for member in members if member is not left]
        for member in others:
            member.server.kill()
        self.wait_until(lambda: "no leader" in left.refusal("CPUT t no f:a 1"), "there is no leader")
        return left, others, writer

    def test_one_of_three_goes_on(self):
        left, others, writer = self.lost()
        busy = cellar("--replica-recover", left.directory, "--yes")
        self.assertEqual(1, busy.returncode, busy.stdout)
        self.assertIn("another process is using", busy.stderr)
        left.server.stop()
        before = contents(left.directory)
        look = cellar("--replica-recover", left.directory)
        self.assertEqual(0, look.returncode, look.stdout + look.stderr)
        for text in (FIRST, "Nothing has been changed", "last record ", f"127.0.0.1:{others[0].port}"):
            self.assertIn(text, look.stdout)
        self.assertEqual(before, contents(left.directory))
        done = cellar("--replica-recover", left.directory, "--yes")
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn(FIRST, done.stdout)
        self.assertIn("Done: set ", done.stdout)
        left.server.start()
        self.wait_leader([left])
        self.assert_kept([left], writer)
        left.run("CPUT t after f:a 1")
        # One of the others that is not emptied has nothing to say here, and is not joined.
        others[0].server.start()
        self.wait_until(lambda: "belongs to another replica set" in left.server.log(), lambda: left.server.log())
        time.sleep(0.5)  # nobody joins it
        self.assertEqual(1, left.info()["replica_members"])
        self.assertIn("no leader", others[0].refusal("CPUT t no f:a 1"))
        others[0].server.kill()
        for member in others:
            member.wipe()
            member.server.start()
        members = [left] + others
        self.wait_until(lambda: self.voters(members) == 3, lambda: str(left.info()))
        self.assert_equal(members)
        self.assert_kept(members, writer)
        left.server.kill()
        self.assertEqual("1", self.lead(others, "CGET t after f:a"))

    def test_a_recovery_that_was_cut_off_can_be_done_again(self):
        left, _, writer = self.lost()
        left.server.kill()
        cut = tempfile.mkdtemp(prefix="cellar-recover-")
        self.addCleanup(shutil.rmtree, cut)
        shutil.rmtree(cut)
        shutil.copytree(left.directory, cut)
        self.assertEqual(0, cellar("--replica-recover", left.directory, "--yes").returncode)
        # Identity is what is written first.
        shutil.copy(os.path.join(left.directory, "cellar.replica"), cut)
        shutil.rmtree(left.directory)
        shutil.copytree(cut, left.directory)
        left.server.start()
        time.sleep(2)  # it could lead by then
        self.assertFalse(left.leads())
        left.server.kill()
        for _ in range(2):
            done = cellar("--replica-recover", left.directory, "--yes")
            self.assertEqual(0, done.returncode, done.stderr)
        left.server.start()
        self.wait_leader([left])
        self.assert_kept([left], writer)

    def test_a_check_tells_of_a_member(self):
        members = self.found(1)
        node = members[0]
        node.run("TABLE CREATE t FAMILY f")
        node.run("BGSAVE")
        node.run("CPUT t r f:a 1")
        id = node.info()["replica_id"]
        node.server.stop()
        said = cellar("--check", node.directory)
        self.assertEqual(0, said.returncode, said.stdout + said.stderr)
        self.assertIn(f"cellar.replica: ok, node {id} of ", said.stdout)
        self.assertIn(f"127.0.0.1:{node.port} ({id}, voter)", said.stdout)
        self.assertRegex(said.stdout, r"last record \d+-\d+; (all is committed|committed up to)")
        path = os.path.join(node.directory, "cellar.replica")
        with open(path, "rb") as file:
            sound = file.read()
        with open(path, "wb") as file:
            file.write(bytes(len(sound)))
        for words in (("--check", node.directory), ("--replica-recover", node.directory),
                      ("--replica-recover", node.directory, "--yes")):
            said = cellar(*words)
            self.assertEqual(1, said.returncode)
            self.assertIn("neither of its two slots is sound", said.stderr)
        os.remove(path)
        said = cellar("--check", node.directory)
        self.assertIn("its cellar.replica is gone", said.stderr)
        self.assertIn("is no member of a replica set", cellar("--replica-recover", node.directory, "--yes").stderr)

    def test_who_is_no_member_is_not_recovered(self):
        with CellarServer(save="") as single:
            single.client().execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            single.stop()
            for more in ((), ("--yes",)):
                said = cellar("--replica-recover", single.directory, *more)
                self.assertEqual(1, said.returncode)
                self.assertIn("is no member of a replica set", said.stderr)
        for words in ((), ("--yes",), ("/tmp", "--no"), ("/tmp", "--yes", "more")):
            said = cellar("--replica-recover", *words)
            self.assertEqual(2, said.returncode, words)
            self.assertIn("--replica-recover", said.stderr)
        # One that was taken out may lack what the set has written since.
        members = self.found()
        leader = self.wait_leader(members)
        gone = next(member for member in members if member is not leader)
        self.wait_until(lambda: self.wait_leader(members).refusal(f"REPLICA DEMOTE 127.0.0.1:{gone.port}") in
                        ("no error: OK", f"ResponseError 127.0.0.1:{gone.port} is a standby already"),
                        lambda: self.wait_leader(members).refusal(f"REPLICA DEMOTE 127.0.0.1:{gone.port}"))
        self.wait_until(lambda: "kind=standby" in str(gone.run("INFO replication")) or
                        any("standby" in str(value) for value in gone.info().values()), lambda: str(gone.info()))
        gone.server.stop()
        said = cellar("--check", gone.directory)
        self.assertIn(", standby)", said.stdout)


if __name__ == "__main__":
    unittest.main()
