"""Users of a replica set: changed at any node, in force at all of them, whatever happens to nodes."""

import os
import shutil
import signal
import socket
import tempfile
import threading
import unittest

import redis

from replica_sets import STEADY_MS, ReplicaSetCase
from test_any_node import Link


class SetUsersCase(ReplicaSetCase):
    def begin(self, forward="yes", **options):
        options = {"replica_election_timeout": STEADY_MS, **options}
        self.members = self.found(3, cluster_forward=forward, **options)
        self.leader = self.wait_leader(self.members)
        self.followers = [member for member in self.members if member is not self.leader]
        self.leader.run("TABLE CREATE t FAMILY f FAMILY g")

    def lists(self):
        def of(member):
            try:
                return tuple(sorted(member.run("ACL LIST")))
            except (redis.exceptions.BusyLoadingError, redis.ConnectionError) as error:
                return member.port, str(error)
        return [of(member) for member in self.members]

    def wait_same(self):
        self.wait_until(lambda: len(set(self.lists())) == 1, lambda: str(self.lists()))
        return self.lists()[0]

    def files(self, text):
        """An aclfile for all of them."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = os.path.join(folder, "users.acl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def wait_taken_in(self):
        told = "The users of this node are those of the replica set"
        self.wait_until(lambda: any(told in member.server.log() for member in self.members), "they are not taken in")
        self.assert_equal(self.members)

    def assert_ended(self, link):
        """It has been closed, without another reply."""
        with self.assertRaises((redis.ConnectionError, ConnectionError)):
            link.read()
        link.close()

    def as_user(self, member, name, password, *words):
        link = redis.Redis(port=member.port, username=name, password=password, socket_timeout=120, decode_responses=True)
        try:
            return link.execute_command(*words)
        finally:
            link.close()


class SetUsers(SetUsersCase):
    def test_a_user_made_at_one_node_is_one_at_all(self):
        self.begin()
        first, second = self.followers
        link = Link(first.port)
        # What the connection has changed it sees at once, there.
        self.assertEqual([b"OK", b"ann"], [link.run("ACL SETUSER ann on >secret ~t:* +@all -@dangerous")[0],
                                           link.run("AUTH ann secret", "ACL WHOAMI")[1]])
        link.close()
        self.wait_same()
        for number, member in enumerate(self.members):
            self.assertEqual("OK", self.as_user(member, "ann", "secret", "CPUT", "t", f"r{number}", "f:x", "1"))
            with self.assertRaises(redis.exceptions.NoPermissionError):
                self.as_user(member, "ann", "secret", "TABLE", "DROP", "t")
        # A right that is lost at one node is lost at all, also for who is connected.
        links = [Link(member.port) for member in self.members]
        for each in links:
            self.assertEqual([b"OK", b"OK"], each.run("AUTH ann secret", "CPUT t r f:x 1"))
        second.run("ACL", "SETUSER", "ann", "resetkeys", "~t:f")
        self.wait_same()
        for each in links:
            self.assertIn("o permissions", str(each.run("CPUT t r g:x 1")[0]))
            self.assertEqual([b"OK"], each.run("CPUT t r f:x 1"))
        self.assertEqual(1, first.run("ACL DELUSER ann nobody"))
        self.assertEqual(0, first.run("ACL DELUSER ann"))
        self.wait_same()
        for each in links:
            with self.assertRaises((redis.ConnectionError, ConnectionError)):
                for _ in range(2):
                    each.run("CGET t r f:x")
        self.assertIn("11/11", self.leader.info()["replica_feature_level"])

    def test_refusals_change_nothing(self):
        self.begin()
        before = self.lists()
        first = self.followers[0]
        for words, text in ((("ACL", "SETUSER", "ann", "nonsense"), "Syntax error"), (("ACL", "SETUSER", "a b", "on"), "spaces"),
                            (("ACL", "DELUSER", "default"), "cannot be removed"),
                            (("ACL", "SETUSER", "ann", "~" + "k" * (1 << 20)), "may take")):
            for member in (self.leader, first):
                self.assertIn(text, member.refusal(*words))
        for member in (self.leader, first):
            link = Link(member.port)
            got = link.run("MULTI", "ACL SETUSER ann on", "CPUT t r f:x 1", "EXEC")
            self.assertIn("transaction" if member is self.leader else "each node", str(got[3]))
            link.close()
        self.assertEqual(before, self.lists())

    def test_many_at_once(self):
        self.begin()
        errors = []

        def change(port, name):
            link = Link(port)
            got = link.run(*[f"ACL SETUSER {name} on >p{i} ~t:* +@read" for i in range(20)])
            errors.extend(str(each) for each in got if each != b"OK")
            link.close()
        threads = [threading.Thread(target=change, args=(member.port, f"u{i}{j}"))
                   for i, member in enumerate(self.members) for j in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], errors)
        self.assertEqual(7, len(self.wait_same()))
        got = self.leader.run("ACL GETUSER u00")
        self.assertEqual(20, len(got[got.index("passwords") + 1]))

    def test_they_outlive_leaders_and_come_to_new_nodes(self):
        self.begin()
        self.followers[0].run("ACL SETUSER ann on >secret ~t:* +@all")
        users = self.wait_same()
        self.hand_over(self.members, former=self.leader)
        leader = self.wait_leader(self.members, but=self.leader)
        self.assertEqual(users, self.wait_same())
        leader.server.kill()
        others = [member for member in self.members if member is not leader]
        new = self.wait_leader(others)
        new.run("ACL SETUSER bob on >other ~t:* +@all")
        leader.server.start()
        self.wait_same()
        self.assertEqual("PONG", str(self.as_user(leader, "bob", "other", "PING")).upper().replace("TRUE", "PONG"))
        # One that has lost its disk has them from the copy, one that starts alone from its own files.
        away = next(member for member in self.members if not member.leads())
        away.server.kill()
        away.wipe()
        away.server.start()
        self.wait_same()
        away.server.stop()  # then its log says how far it is committed, which else it does each second
        for member in self.members:
            member.server.kill()
        away.server.start()
        self.assertEqual("PONG", str(self.as_user(away, "ann", "secret", "PING")).upper().replace("TRUE", "PONG"))
        self.assertIn("WRONGPASS", str(self.wrong(away)))

    def wrong(self, member):
        try:
            return self.as_user(member, "ann", "wrong", "PING")
        except redis.RedisError as error:
            return f"{type(error).__name__} {error} WRONGPASS" if "password" in str(error) else error

    def test_an_aclfile_is_taken_in(self):
        self.begin(aclfile=self.files("user default on nopass ~* &* +@all\nuser ann on >secret ~t:* +@all\n"))
        self.assertIn("user ann", " ".join(self.wait_same()))
        self.wait_until(lambda: "belong to the replica set" in self.leader.refusal("ACL LOAD"), "it has not been taken in")
        self.followers[0].run("ACL DELUSER ann")
        self.assertNotIn("user ann", " ".join(self.wait_same()))
        # The file of a node that starts says something else, and counts no more.
        self.followers[1].server.restart()
        self.wait_until(self.followers[1].has_a_role, "it follows nobody")
        self.assertNotIn("user ann", " ".join(self.wait_same()))
        self.assertIn("belong to the replica set", self.leader.refusal("CONFIG SET requirepass x"))

    def test_each_node_has_its_own_where_that_is_said(self):
        self.begin(cluster_acl="no")
        self.followers[0].run("ACL SETUSER ann on >secret ~t:* +@all")
        self.assertEqual([False, True], ["user ann" in " ".join(member.run("ACL LIST"))
                                         for member in (self.leader, self.followers[0])])

    def test_a_leader_with_users_of_its_own_changes_none_for_others(self):
        self.begin()
        self.leader.run("CONFIG SET cluster-acl no")
        before = [self.lists(), self.leader.run("ACL LIST")]
        for change in ("ACL SETUSER ann on >secret ~t:* +@all", "acl deluser default", "ACL DELUSER nobody"):
            self.assertIn("its leader has users of its own (cluster-acl no)", self.followers[0].refusal(change))
        self.assertEqual(before, [self.lists(), self.leader.run("ACL LIST")])
        self.leader.run("CONFIG SET cluster-acl yes")
        self.assertEqual("OK", self.followers[0].run("ACL SETUSER ann on >secret ~t:* +@all"))
        self.assertIn("user ann", " ".join(self.wait_same()))

    def test_a_follower_that_passes_nothing_on_says_who_leads(self):
        self.begin(forward="no")
        self.assertIn(str(self.leader.port), self.followers[0].refusal("ACL SETUSER ann on"))
        self.leader.run("ACL SETUSER ann on >secret ~t:* +@read")
        self.assertIn("user ann", " ".join(self.wait_same()))

    def test_a_connection_sees_what_it_has_changed(self):
        self.begin()
        for number, member in enumerate(self.members):
            link = Link(member.port)
            got = link.run(f"ACL SETUSER u{number} on >p ~* +@all", f"ACL SETUSER u{number} >q <p", f"AUTH u{number} q",
                           "ACL WHOAMI", f"ACL DELUSER u{number} nobody")
            self.assertEqual([b"OK", b"OK", b"OK", f"u{number}".encode(), 1], got)
            self.assert_ended(link)  # it was its own user
        self.assertEqual(1, len(self.wait_same()))

    def test_a_start_lets_nobody_in_before_the_users_are_known(self):
        everything = "~* &* +@all"
        self.begin(aclfile=self.files(f"user default on nopass {everything}\nuser node on >known {everything} +@replication\n"),
                   masteruser="node", masterauth="known")
        self.wait_taken_in()
        for row in range(400):  # so that loading takes a while
            self.leader.run("CPUT", "t", f"r{row}", *[word for cell in range(200) for word in (f"f:{cell}", "x" * 20)])
        away = self.followers[0]
        self.assert_equal(self.members)
        link = Link(self.leader.port)
        self.assertEqual([b"OK", b"OK"], link.run(f"ACL SETUSER ann on >secret {everything}", "AUTH ann secret"))
        # From now on the users of the file and those of the set differ: `default` needs a password.
        self.assertEqual([b"OK"], link.run("ACL SETUSER default resetpass >other"))
        for member in self.members:
            self.wait_until(lambda port=member.port: "user default on #" in self.list_of(port), "not there")
        away.server.kill()
        away.server.spawn()
        answers = []
        early = self.early(away.port)
        while not answers or b"LOADING" in answers[-1]:
            early.sendall(b"INFO server\r\n")
            answers.append(early.recv(65536))
            early.sendall(b"AUTH node wrong\r\n")
            self.assertNotIn(b"+OK", early.recv(65536))
        self.assertIn(b"-NOAUTH", answers[-1])
        early.sendall(b"AUTH default other\r\n")
        self.assertEqual(b"+OK\r\n", early.recv(100))
        early.close()
        self.assertEqual("PONG", str(self.as_user(away, "ann", "secret", "PING")).upper().replace("TRUE", "PONG"))

    def begin_with_other_words(self):
        """Nodes log in by another password than their files have."""
        everything = "~* &* +@all"
        self.begin(aclfile=self.files(f"user default on nopass {everything}\nuser node on >known {everything} +@replication\n"),
                   masteruser="node", masterauth="known")
        self.wait_taken_in()
        self.leader.run("ACL SETUSER node >later")
        self.wait_same()
        for member in self.members:
            member.run("CONFIG SET masterauth later")
            member.server.options["masterauth"] = "later"
        self.leader.run("ACL SETUSER node <known")
        self.wait_same()

    def test_a_crash_right_behind_a_change_shuts_no_node_out(self):
        self.begin_with_other_words()
        # That it is committed the others hear with the next heartbeat, if anybody lives until then.
        self.leader.run("ACL SETUSER bob on >b")
        for member in self.members:
            member.server.kill()
        for member in self.members:
            member.server.spawn()
        self.assertIn("bob", self.wait_leader(self.members).run("ACL USERS"))
        self.wait_same()

    def test_a_change_that_is_under_way_shuts_no_node_out(self):
        self.begin_with_other_words()
        for member in self.followers:
            member.server.process.send_signal(signal.SIGSTOP)
        link = Link(self.leader.port)
        link.send("ACL SETUSER bob on >b")
        self.wait_until(lambda: b"bob" in self.log_of(self.leader), "it is not in the log")
        self.leader.server.kill()
        link.close()
        for member in self.followers:
            member.server.process.send_signal(signal.SIGCONT)
        self.wait_leader(self.followers)
        self.leader.server.spawn()
        early = self.early(self.leader.server.port)
        answer = b""
        while not answer.startswith(b"$"):
            # What its files say counts for nobody, and what nodes log in with opens nothing to others.
            for words in (b"AUTH node known\r\n", b"CONFIG GET masterauth\r\n"):
                early.sendall(words)
                self.assertNotIn(b"+OK", early.recv(65536))
            early.sendall(b"INFO server\r\n")
            answer = early.recv(65536)
        early.close()
        self.wait_same()

    def log_of(self, member):
        """The bytes of its log."""
        folder = member.server.directory
        found = b""
        for name in os.listdir(folder):
            if name.endswith(".log"):
                with open(os.path.join(folder, name), "rb") as file:
                    found += file.read()
        return found

    def early(self, port):
        """The first connection that a server takes."""
        found = []

        def taken():
            try:
                found.append(socket.create_connection(("127.0.0.1", port), timeout=60))
            except OSError:
                return False
            return True
        self.wait_until(taken, "it does not listen")
        return found[0]

    def list_of(self, port):
        link = Link(port)
        got = link.run("AUTH ann secret", "ACL LIST")[1]
        link.close()
        return str(got)

    def test_who_has_come_in_by_the_files_is_looked_at_again(self):
        # A node that joins goes by its files until then.
        self.begin()
        self.leader.run("ACL SETUSER ann on >secret ~* +@read")
        self.leader.run("ACL SETUSER bob on >secret ~* &* +@all")
        self.wait_same()
        away = self.followers[0]
        away.server.kill()
        away.wipe()
        away.server.options["aclfile"] = self.files("user default on nopass ~* &* +@all\nuser ann on >secret ~* &* +@all\n"
                                                    "user eve on >secret ~* &* +@all\n")
        for member in (self.leader, self.followers[1]):
            os.kill(member.server.process.pid, signal.SIGSTOP)
        away.server.spawn()
        self.wait_until(lambda: "user eve" in str(away.refusal("ACL LIST")), "it does not go by its file")
        links = [Link(away.port) for _ in range(3)]
        for link, name in zip(links, ("ann", "eve", "default")):
            self.assertEqual([b"OK", name.encode()], link.run(f"AUTH {name} secret", "ACL WHOAMI"))
        for member in (self.leader, self.followers[1]):
            os.kill(member.server.process.pid, signal.SIGCONT)
        self.wait_same()
        self.assertEqual([b"default"], links[2].run("ACL WHOAMI"))
        for link in links[:2]:
            self.assert_ended(link)
        links[2].close()

    def test_a_change_that_is_lost_with_its_leader_is_in_force_nowhere(self):
        self.begin(replica_election_timeout=5000)
        link = Link(self.leader.port)
        before = self.leader.info("persistence")["aof_last_lsn"]
        for member in self.followers:
            member.server.kill()
        link.send("ACL SETUSER eve on >secret ~* &* +@all")
        self.wait_until(lambda: self.leader.info("persistence")["aof_last_lsn"] != before, "nothing is written")
        self.assertNotIn("user eve", str(self.leader.run("ACL LIST")))
        os.kill(self.leader.server.process.pid, signal.SIGSTOP)
        for member in self.followers:
            member.server.start()
        new = self.wait_leader(self.followers)
        new.run("TABLE CREATE u FAMILY f")
        os.kill(self.leader.server.process.pid, signal.SIGCONT)
        self.assert_ended(link)
        self.assert_equal(self.members)
        self.assertNotIn("user eve", str(self.lists()))
        # Nor does it come back by the next change there.
        self.hand_over(self.members, to=self.leader)
        self.leader.run("ACL SETUSER bob on")
        users = str(self.wait_same())
        self.assertIn("user bob", users)
        self.assertNotIn("user eve", users)

    def test_what_a_node_had_for_itself_goes_when_it_goes_by_the_set_again(self):
        self.begin()
        self.leader.run("ACL SETUSER ann on >secret ~* +@read")
        users = self.wait_same()
        for member in (self.leader, self.followers[0]):
            self.assert_equal(self.members)
            member.run("CONFIG SET cluster-acl no")
            member.run("ACL SETUSER ann +@all")
            member.run("ACL SETUSER eve on >secret ~* +@all")
            links = [Link(member.port) for _ in range(2)]
            for link, name in zip(links, ("ann", "eve")):
                self.assertEqual([b"OK", [b"port", str(member.port).encode()]], link.run(f"AUTH {name} secret", "CONFIG GET port"))
            member.run("CONFIG SET cluster-acl yes")
            for link in links:
                self.assert_ended(link)
            self.assertEqual(users, self.wait_same())
        # Nor does it come back by the next change.
        self.leader.run("ACL SETUSER bob on")
        users = str(self.wait_same())
        self.assertIn("user bob", users)
        self.assertNotIn("user eve", users)

    def test_a_reload_leaves_the_users_of_the_set(self):
        self.begin(aclfile=self.files("user default on nopass ~* &* +@all\nuser ann on >secret ~* +@all\n"))
        self.wait_taken_in()
        self.leader.run("ACL SETUSER bob on >secret ~* +@all")
        users = self.wait_same()
        links = [Link(member.port) for member in self.members]
        for member, link in zip(self.members, links):
            self.assertEqual([b"OK"], link.run("AUTH bob secret"))
            member.server.process.send_signal(signal.SIGHUP)
            self.wait_until(lambda log=member.server.log: "SIGHUP" in log(), "it is not read again")
            self.assertEqual([b"bob"], link.run("ACL WHOAMI"))
            link.close()
        self.assertEqual(users, self.wait_same())

    def test_where_a_version_is_not_known_nothing_changes(self):
        old = os.environ.get("CELLAR_OLD_BINARY")
        if old is None:
            self.skipTest("CELLAR_OLD_BINARY names no server of an earlier version")
        self.members = self.make(cluster_forward="yes")
        for member in self.members:
            arguments = member.server.arguments
            member.server.arguments = lambda of=arguments: [old] + of()[1:]
            member.server.start()
        self.wait_leader(self.members)
        for member in self.members:
            member.server.stop()
            del member.server.arguments
        for member in self.members:
            member.server.start()
        leader = self.wait_leader(self.members)
        away, other = (member for member in self.members if member is not leader)
        before = self.wait_same()
        away.server.kill()
        self.wait_until(lambda: "down" in str(leader.info()), lambda: str(leader.info()))
        for member in (leader, other):
            self.wait_until(lambda m=member: "cannot be asked" in m.refusal("ACL SETUSER ann on"),
                            lambda m=member: m.refusal("ACL SETUSER ann on"))
            self.assertEqual(before, tuple(sorted(member.run("ACL LIST"))))
        away.server.start()
        self.wait_until(lambda: other.refusal("ACL SETUSER ann on") == "no error: OK", lambda: other.refusal("ACL SETUSER ann on"))
        self.assertIn("user ann", str(self.wait_same()))


if __name__ == "__main__":
    unittest.main()
