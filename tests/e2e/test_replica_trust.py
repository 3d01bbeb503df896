"""Who may speak as a member of a replica set, and what becomes of one whose directory is older than what it has
acknowledged, or damaged."""

import ctypes
import ctypes.util
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import unittest

import redis

from cellar_server import START_SECONDS_MAX, binary
from replica_sets import STEADY_MS, Member, ReplicaSetCase


def cellar(*words):
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False)


def seal(slot, hash_at):
    """The slot with the checksum that its bytes have."""
    library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
    library.XXH3_64bits.restype = ctypes.c_uint64
    library.XXH3_64bits.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    return slot[:hash_at] + struct.pack("<Q", library.XXH3_64bits(slot[:hash_at], hash_at)) + slot[hash_at + 8:]


class LoginTest(ReplicaSetCase):
    """Members log in as masteruser and masterauth say."""

    def secured(self):
        with tempfile.NamedTemporaryFile("w", suffix=".acl", delete=False) as file:
            file.write("user default on nopass ~* &* +@all\n"
                       "user mates on >the-secret +@replication\n"
                       "user monitor on >watching +peer +info +ping\n")
        self.addCleanup(os.remove, file.name)
        return {"aclfile": file.name, "masteruser": "mates", "masterauth": "the-secret"}

    def ask(self, member, login, words):
        """The last reply to PEER by a client that has logged in so."""
        with socket.create_connection(("127.0.0.1", member.port), timeout=START_SECONDS_MAX) as link:
            if login:
                link.sendall(f"AUTH {login}\r\n".encode())
                self.assertTrue(link.recv(1000).startswith(b"+OK"))
            link.sendall((words + "\r\n").encode())
            return link.recv(1000).decode()

    def test_members_log_in_and_nobody_else_is_one(self):
        options = self.secured()
        members = self.found(**options)
        self.lead(members, "TABLE CREATE t FAMILY f")
        self.lead(members, "CPUT t r f:a 1")
        self.assert_equal(members)
        leader = self.wait_leader(members)
        cluster = leader.info()["master_replid"][:16]
        other = next(member for member in members if member is not leader)
        id = other.info()["replica_id"]
        for purpose, features in (("member", "0"), ("command", "0"), ("bulk", "77")):
            claim = f"PEER 1 {cluster} {id} {purpose} {features}"
            # With PEER and without the secret: not as default, which needs no password, nor as another user.
            for login in ("", "monitor watching"):
                with self.subTest(purpose=purpose, login=login):
                    self.assertIn("authenticates as masteruser and masterauth say", self.ask(leader, login, claim))
            with self.subTest(purpose=purpose, login="mates"):
                said = self.ask(leader, "mates the-secret", claim)
                self.assertNotIn("authenticates", said)
        self.assertIn("+PEER 1 ", self.ask(leader, "mates the-secret", f"PEER 1 {cluster} {id} member 0"))
        # The set goes on, also with that one's links.
        self.lead(members, "CPUT t r f:b 2")
        self.assert_equal(members)

    def test_a_wrong_password_is_no_member(self):
        options = self.secured()
        members = self.make(**options)
        wrong = Member(self, members[2].port, self.nodes, **{**options, "masterauth": "a-guess"})
        for member in members[:2] + [wrong]:
            member.server.start()
        self.wait_until(lambda: all("WRONGPASS" in m.server.log() for m in [wrong]), lambda: wrong.server.log())
        self.assertIn("no leader", members[0].refusal("CPUT t r f:a 1"))
        wrong.server.stop()
        members[2].server.start()
        self.lead(members, "TABLE CREATE t FAMILY f")
        self.assert_equal(members)


class OlderCopyTest(ReplicaSetCase):
    """A directory that comes back as it was before holds less than its node has acknowledged."""

    def put_back(self, member, copy):
        shutil.rmtree(member.directory)
        shutil.copytree(copy, member.directory)

    def copy_of(self, member):
        folder = tempfile.mkdtemp(prefix="cellar-copy-")
        self.addCleanup(shutil.rmtree, folder)
        copy = os.path.join(folder, "copy")
        shutil.copytree(member.directory, copy)
        return copy

    def load(self, leader, prefix, members, count=1000):
        """By that leader, also where it loses its lead in between: `members` are those that run."""
        def loaded():
            pipe = leader.redis.pipeline(transaction=False)
            for i in range(count):
                pipe.execute_command("CPUT", "t", f"{prefix}{i}", "f:a", str(i))
            try:
                pipe.execute()
            except redis.RedisError:
                self.hand_over(members, to=leader)
                return False
            return True
        self.wait_until(loaded, lambda: leader.server.log()[-2000:])

    def assert_refused(self, member):
        member.server.spawn()
        self.wait_until(lambda: member.server.process.poll() is not None, lambda: member.server.log()[-2000:])
        self.assertEqual(1, member.server.process.returncode)
        self.assertIn("holds less than it acknowledged: empty it", member.server.log()[-2000:])

    def test_a_follower_comes_back_as_an_older_copy(self):
        members = self.found(replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        self.load(leader, "before", members, 100)
        self.assert_equal(members)
        follower = next(member for member in members if member is not leader)
        follower.server.kill()
        copy = self.copy_of(follower)
        follower.server.start()
        self.assert_equal(members)
        self.load(leader, "later", members)
        self.assert_equal(members)
        follower.server.kill()
        self.put_back(follower, copy)
        self.assert_refused(follower)
        follower.wipe()
        follower.server.start()
        self.wait_until(lambda: self.voters(members) == 3, lambda: str(leader.info()))
        self.assert_equal(members)
        self.assertEqual("999", self.lead(members, "CGET t later999 f:a"))

    # The two that are left could be a majority: of the one that has the writes and the one that has forgotten them
    # the former decides, and of the latter nobody gets a vote.
    def test_an_older_copy_does_not_vote_writes_away(self):
        members = self.found(replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        self.load(leader, "before", members, 100)
        self.assert_equal(members)
        older, behind = [member for member in members if member is not leader]
        older.server.kill()
        copy = self.copy_of(older)
        older.server.start()
        self.assert_equal(members)
        # What is acknowledged now is on the leader and on the one that will forget it.
        behind.server.kill()
        self.load(leader, "later", [leader, older])
        leader.server.kill()
        older.server.kill()
        self.put_back(older, copy)
        older.server.spawn()
        behind.server.start()
        self.wait_until(lambda: older.server.process.poll() is not None or "takes no part before" in older.server.log(),
                        lambda: older.server.log()[-2000:])
        self.assertIn("no leader", behind.refusal("CPUT t no f:a 1"))
        leader.server.start()
        self.wait_leader([leader, behind])
        if older.server.process.poll() is None:
            self.wait_until(lambda: older.server.process.poll() is not None, lambda: older.server.log()[-2000:])
        self.assertIn("holds less than it acknowledged: empty it", older.server.log()[-3000:])
        for i in (0, 999):
            self.assertEqual(str(i), self.lead([leader, behind], f"CGET t later{i} f:a"))
        older.wipe()
        older.server.start()
        self.wait_until(lambda: self.voters(members) == 3, lambda: str(leader.info()))
        self.assert_equal(members)


class DamagedFilesTest(ReplicaSetCase):
    """cellar.replica and cellar.member with bytes flipped (tests/replica/slot_seal_test.cc flips all)."""

    def test_damage_is_named_and_not_started_from(self):
        members = self.found(1)
        node = members[0]
        node.run("TABLE CREATE t FAMILY f")
        node.run("CPUT t r f:a 1")
        for end in (node.server.kill, node.server.stop):
            end()
            self.assertEqual(0, cellar("--check", node.directory).returncode)
            refused = {}
            for name in ("cellar.replica", "cellar.member"):
                path = os.path.join(node.directory, name)
                with open(path, "rb") as file:
                    sound = file.read()
                used = [at for at in range(len(sound)) if any(sound[at - at % 32:at - at % 32 + 32])]
                self.assertGreater(len(used), 100)
                for at in used[::7]:
                    with open(path, "wb") as file:
                        file.write(sound[:at] + bytes([sound[at] ^ 1 << at % 8]) + sound[at + 1:])
                    said = cellar("--check", node.directory)
                    self.assertEqual(1, said.returncode, (name, at))
                    self.assertIn(name, said.stderr)
                    if at % 5 == 0:
                        refused[name] = refused.get(name, 0) + self.refuses(node, name)
                    with open(path, "wb") as file:
                        file.write(sound)
            self.assertTrue(all(refused.values()), refused)
            node.server.start()
            self.assertEqual("1", self.wait_leader([node]).run("CGET t r f:a"))

    def refuses(self, node, name):
        """Whether a start with a copy of its folder, which has that damage, names the file and ends."""
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "copy")
            shutil.copytree(node.directory, copy)
            path = os.path.join(copy, name)
            other = Member(self, node.port, self.nodes)
            shutil.rmtree(other.directory)
            os.rename(copy, other.directory)
            other.server.spawn()
            self.wait_until(lambda: other.server.process.poll() is not None or other.leads(), other.server.log)
            ended = other.server.process.poll()
            log = other.server.log()
            other.server.kill()
            if ended is None:
                return 0
            self.assertEqual(1, ended, log)
            self.assertIn(name, log)
            self.assertNotIn(path + "x", log)
            return 1


class ContradictionTest(ReplicaSetCase):
    def save(self, member):
        found = {}
        for name in os.listdir(member.directory):
            path = os.path.join(member.directory, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    found[name] = file.read()
        return found

    def put_back(self, member, saved):
        """In place: the directory is no copy of itself."""
        for name in os.listdir(member.directory):
            if name not in saved and os.path.isfile(os.path.join(member.directory, name)):
                os.remove(os.path.join(member.directory, name))
        for name, content in saved.items():
            with open(os.path.join(member.directory, name), "wb") as file:
                file.write(content)

    def test_a_node_of_another_history_ends_and_says_so(self):
        members = self.found()
        self.lead(members, "TABLE CREATE t FAMILY f")
        self.assert_equal(members)
        for member in members:
            member.server.stop()
        before = [self.save(member) for member in members]
        # One history, of all three.
        for member in members:
            member.server.start()
        for i in range(50):
            self.lead(members, f"CPUT t one{i} f:a {i}")
        self.assert_equal(members)
        for member in members:
            member.server.stop()
        last, pair = members[2], members[:2]
        other = self.save(last)
        # And another one, of two, in later terms.
        for member, saved in zip(members, before):
            self.put_back(member, saved)
        for _ in range(4):
            for member in pair:
                member.server.start()
            self.wait_leader(pair)
            for member in pair:
                member.server.kill()
        for member in pair:
            member.server.start()
        for i in range(200):
            self.lead(pair, f"CPUT t two{i} f:a {i}")
        self.put_back(last, other)
        last.server.spawn()
        self.wait_until(lambda: last.server.process.poll() is not None, lambda: last.server.log()[-2000:])
        self.assertEqual(1, last.server.process.returncode, last.server.log()[-2000:])
        self.assertIn("contradicts the history of its replica set", last.server.log()[-2000:])
        self.assertIn(f"Keep {last.directory}", last.server.log()[-2000:])
        last.wipe()
        last.server.start()
        self.wait_until(lambda: self.voters(members) == 3, lambda: str(pair[0].info()))
        self.assert_equal(members)
        self.assertEqual("199", self.lead(members, "CGET t two199 f:a"))


class TermsTest(ReplicaSetCase):
    def test_a_recovery_takes_every_stored_term(self):
        members = self.found(1)
        node = members[0]
        node.run("TABLE CREATE t FAMILY f")
        node.run("CPUT t r f:a 1")
        value = 1
        for term in (2**31 - 1, 2**31, 2**31 + 5, 2**32 - 2, 2**32 - 1):
            with self.subTest(term=term):
                node.server.stop()
                path = os.path.join(node.directory, "cellar.replica")
                with open(path, "rb") as file:
                    bytes_ = file.read()
                slots = b""
                for at in (0, 64):
                    slot = bytes_[at:at + 64]
                    slots += seal(slot[:12] + struct.pack("<I", term) + slot[16:], 56)
                with open(path, "wb") as file:
                    file.write(slots + bytes_[128:])
                said = cellar("--check", node.directory)
                self.assertIn(f"term {term}", said.stdout, said.stderr)
                done = cellar("--replica-recover", node.directory, "--yes")
                self.assertEqual(0, done.returncode, done.stdout + done.stderr)
                node.server.start()
                self.wait_leader([node])
                self.assertEqual(str(value), node.run("CGET t r f:a"))
                value += 1
                node.run(f"CPUT t r f:a {value}")
                self.assertTrue(re.match(r"\d+$", str(node.info()["replica_term"])))


if __name__ == "__main__":
    unittest.main()
