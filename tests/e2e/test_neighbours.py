"""Nodes of one machine pass commands on by unix sockets, and by TCP wherever that does not do; links that rest are closed."""

import os
import subprocess
import sys
import unittest

from test_any_node import AnyNodeCase

# Listens at argv[1] as user argv[2], and writes what it is told to argv[3]; answers argv[4] to each who comes.
LISTENER = """
import os, socket, sys
path, user, told, answer = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4].encode()
server = socket.socket(socket.AF_UNIX)
out = open(told, "wb", buffering=0)
if user:
    os.setuid(user)
server.bind(path)
server.listen()
os.chmod(path, 0o777)
print("listens", flush=True)
while True:
    client = server.accept()[0]
    out.write(b"<came>")
    if answer:
        client.sendall(answer)
    try:
        while bytes_in := client.recv(4096):
            out.write(bytes_in)
    except OSError:
        pass
"""


# Nodes that log in to each other.
SECRET = {"user": "node on >secret ~* +@all +peer".split(), "masteruser": "node", "masterauth": "secret"}


class Neighbours(AnyNodeCase):
    def begin(self, sockets=True, apart=False, **options):
        self.members = self.make(3, replica_election_timeout=2000, **options)
        for number, member in enumerate(self.members):
            if sockets:
                member.server.options["unixsocket"] = os.path.join(member.directory, "cellar.sock")
            if apart:
                member.server.options["cluster-machine"] = f"m{number}"
            member.server.start()
        for member in self.members:
            self.have_wait(member)
        leader = self.wait_leader(self.members)
        follower = next(member for member in self.members if member is not leader)
        self.assertEqual("OK", leader.run("TABLE CREATE t FAMILY f VERSIONS 1"))
        return leader, follower

    def path(self, member):
        return member.server.options["unixsocket"]

    def by_socket(self, leader):
        """How many of the leader's connections with other nodes are by its unix socket."""
        return sum(line["cmd"] == "peer" and line["addr"].startswith("/") for line in leader.redis.client_list())

    def assert_passes_on(self, follower, leader, value):
        self.assertEqual("OK", follower.run("CPUT", "t", "a", "f:x", value))
        self.assertEqual(value, leader.run("CGET t a f:x"))

    def replace(self, member, user=0, answer=""):
        """Somebody else's socket where the member's was."""
        path, told = self.path(member), os.path.join(member.directory, "told")
        os.remove(path)
        if user:
            os.chmod(member.directory, 0o777)
        process = subprocess.Popen([sys.executable, "-c", LISTENER, path, str(user), told, answer], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(b"listens\n", process.stdout.readline())
        return told

    def test_commands_go_by_the_socket_of_a_neighbour(self):
        leader, follower = self.begin()
        self.assertEqual(0, self.by_socket(leader))
        self.assert_passes_on(follower, leader, "1")
        self.assertEqual(1, self.by_socket(leader))
        # The other one by its own; replies of any length, in order.
        other = next(member for member in self.members if member not in (leader, follower))
        self.assertEqual("OK", other.run("CPUT", "t", "b", "f:x", "v" * 3_000_000))
        pipeline = other.redis.pipeline(transaction=False)
        for number in range(200):
            pipeline.execute_command("CPUT", "t", f"r{number}", "f:x", number)
            pipeline.execute_command("CGET", "t", f"r{number}", "f:x")
        got = pipeline.execute()
        self.assertEqual([str(number) for number in range(200)], [str(each) for each in got[1::2]])
        self.assertEqual(2, self.by_socket(leader))
        self.assertEqual(3_000_000, len(other.run("CGET t b f:x")))
        # Another one leads: everybody goes to its socket.
        self.hand_over(self.members)
        leader = self.wait_leader(self.members)
        for member in self.members:
            self.assert_passes_on(member, leader, member.server.options["unixsocket"])
        self.assertEqual(2, self.by_socket(leader))
        self.assert_equal(self.members)

    def test_a_leader_that_is_killed(self):
        leader, follower = self.begin()
        self.assert_passes_on(follower, leader, "1")
        leader.server.kill()
        leader = self.wait_leader([member for member in self.members if member is not leader])
        self.assertEqual("OK", follower.run("CPUT t a f:x 2"))
        self.assertEqual("2", follower.run("CGET t a f:x"))

    def test_nodes_of_other_machines_or_without_sockets_use_tcp(self):
        leader, follower = self.begin(apart=True)
        self.assert_passes_on(follower, leader, "1")
        self.assertEqual(0, self.by_socket(leader))

    def test_nobody_listens_there(self):
        leader, follower = self.begin()
        os.remove(self.path(leader))
        self.assert_passes_on(follower, leader, "1")
        self.assertEqual(0, self.by_socket(leader))

    def test_another_one_listens_there(self):
        """One that says it is another node, that refuses, that is no Cellar, and that never answers."""
        leader, follower = self.begin(**SECRET)
        for number, answer in enumerate(("+OK\r\n+PEER 1 0 1\r\n", "-ERR no\r\n", "x" * 20_000, "+OK\r\n+PEER", "")):
            told = self.replace(leader, answer=answer)
            self.assert_passes_on(follower, leader, f"{number}")
            self.assertEqual(0, self.by_socket(leader))
            with open(told, "rb") as file:
                self.assertIn(b"<came>", file.read(), answer)
            # The next link tries again.
            peers = [int(line["id"]) for line in leader.redis.client_list() if line["cmd"] == "peer"]
            self.assertEqual(1, leader.run("CLIENT KILL ID", max(peers)))
            self.wait_until(lambda: self.figures(follower)["cluster_links"] == 0, "the link stays")

    @unittest.skipUnless(os.geteuid() == 0, "other users' processes can be started by root alone")
    def test_another_users_process_is_not_told_the_password(self):
        leader, follower = self.begin(**SECRET)
        told = self.replace(leader, user=65534)
        self.assert_passes_on(follower, leader, "1")
        with open(told, "rb") as file:
            self.assertEqual(b"<came>", file.read())

    def test_a_path_is_no_host(self):
        """Whom an operator, or another node, names as a host is looked up by name, and no socket is opened."""
        leader, follower = self.begin()
        told = self.replace(leader)
        self.assertIn("ERR", leader.refusal("REPLICA", "ADD", self.path(leader), "1"))
        self.assertIn("ERR", follower.refusal("CONFIG", "SET", "replica-announce-ip", self.path(leader)) + " ERR")
        with open(told, "rb") as file:
            self.assertEqual(b"", file.read())

    def test_links_that_rest_are_closed(self):
        leader, follower = self.begin(sockets=False)
        self.assert_passes_on(follower, leader, "1")
        self.assertEqual(1, self.figures(follower)["cluster_links"])
        follower.run("CONFIG SET cluster-link-idle 1")
        self.wait_until(lambda: self.figures(follower)["cluster_links"] == 0, "the link stays")
        self.assert_passes_on(follower, leader, "2")
        self.assert_at_rest(self.members)

    def test_the_options_have_bounds(self):
        _, follower = self.begin(sockets=False)
        for value in ("0", "-1", "x", "2147483648"):
            self.assertIn("ERR", follower.refusal(f"CONFIG SET cluster-link-idle {value}") + " ERR")
        self.assertEqual("300", follower.redis.config_get("cluster-link-idle")["cluster-link-idle"])
        self.assertEqual("OK", follower.run("CONFIG SET cluster-machine rack-7"))
        self.assertEqual("rack-7", follower.redis.config_get("cluster-machine")["cluster-machine"])


if __name__ == "__main__":
    unittest.main()
