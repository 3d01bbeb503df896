"""Who leads: FAILOVER in all its forms, Sentinel, links that are encrypted, and peers that mean no good."""

import contextlib
import os
import random
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import free_port
from certificates import Authority
from replicas import SECONDS_MAX, Node, ReplicaTest
from sentinel_writers import NodeWriters


class FailoverTest(ReplicaTest):
    def three(self, **options):
        leader, follower = self.pair(**options)
        other = Node(self, **options)
        for node in (follower, other):
            node.follow(leader)
        self.assert_copied(leader, follower, other)
        return leader, follower, other

    def test_the_one_that_is_named_takes_over(self):
        leader, follower, other = self.three()
        leader.load(500)
        self.assertEqual("OK", leader.run(f"FAILOVER TO 127.0.0.1 {other.server.port} TIMEOUT 100000"))
        self.take_over(leader, other)
        self.wait_until(lambda: leader.info("role") == "slave", "the old one")
        self.assertEqual("no-failover", leader.info("master_failover_state"))
        other.load(100, 500)
        self.assert_copied(other, leader)
        self.assert_copied(other, leader, follower)
        self.assertEqual(0, leader.info("replica_diverged_records"))

    def test_nothing_is_lost_under_writes(self):
        leader, follower = self.pair()
        follower.follow(leader)
        self.assert_copied(leader, follower)
        ended, confirmed = threading.Event(), []

        def write(first):
            nodes, number = [leader, follower], first
            clients = [node.server.client(socket_timeout=SECONDS_MAX) for node in nodes]
            while not ended.is_set():
                try:
                    clients[0].execute_command("CPUT", "t", f"n{number}", "f:a", "1")
                    confirmed.append(number)
                except (redis.RedisError, OSError):
                    clients.reverse()
                number += 4

        writers = [threading.Thread(target=write, args=(i,)) for i in range(4)]
        for writer in writers:
            writer.start()
        try:
            for _ in range(6):
                time.sleep(0.1)  # writers write
                self.take_over(leader, follower)
                leader, follower = follower, leader
                self.wait_until(lambda: follower.info("role") == "slave" and
                                follower.info("master_link_status") == "up", "the old one")
        finally:
            ended.set()
            for writer in writers:
                writer.join()
        self.assert_copied(leader, follower)
        pipe = leader.redis.pipeline(transaction=False)
        for number in confirmed:
            pipe.execute_command("CGET", "t", f"n{number}", "f:a")
        self.assertEqual({"1"}, set(pipe.execute()))
        for node in (leader, follower):
            self.assertEqual((0, 0), (node.info("replica_diverged_records"), node.info("replica_full_syncs") - (
                1 if node.info("replica_full_syncs") else 0)))

    def test_it_waits_is_given_up_and_is_forced(self):
        leader, follower = self.pair()
        link = self.link(leader)
        follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.assert_copied(leader, follower)
        to = f"TO 127.0.0.1 {follower.server.port}"
        for words, error in ((f"{to} FORCE", "requires both a timeout and target"), ("TIMEOUT 0", "greater than 0"),
                             ("ABORT", "No failover in progress"), ("TO 127.0.0.1", "syntax error"),
                             ("TO 127.0.0.1 1", "is not a replica"), ("ABORT TIMEOUT 1", "syntax error")):
            self.assertIn(error, leader.refusal(f"FAILOVER {words}"), words)
        link.cut()
        leader.run("CPUT t behind f:a 1")
        self.assertEqual("OK", leader.run("FAILOVER"))
        self.assertEqual("waiting-for-sync", leader.info("master_failover_state"))
        self.assertEqual("handing-over", leader.info("replica_state"))
        self.assertIn("FAILOVER already in progress", leader.refusal("FAILOVER"))
        self.assertIn("not allowed while failing over", leader.refusal("REPLICAOF 127.0.0.1 1"))
        held = leader.server.client()
        connection = held.connection_pool.get_connection("_")
        connection.send_command("CPUT", "t", "held", "f:a", "1")
        self.assertEqual("1", leader.run("CGET t behind f:a"))
        self.assertIsNone(leader.run("CGET t held f:a"))
        self.assertEqual("OK", leader.run("FAILOVER ABORT"))
        self.assertEqual(b"OK", connection.read_response())
        self.assertEqual("master", leader.info("role"))
        link.heal()
        self.assert_copied(leader, follower)
        link.cut(up=True, down=False)
        leader.run("CPUT t behind f:a 2")
        self.assertEqual("OK", leader.run("FAILOVER TIMEOUT 100"))
        self.wait_until(lambda: leader.info("master_failover_state") == "no-failover", "the end of it")
        self.assertEqual("master", leader.info("role"))
        self.assertIn("no follower had everything in time", leader.server.log())
        link.heal()
        self.assert_copied(leader, follower)

    def test_force_hands_over_to_one_that_is_not_known_to_have_all(self):
        leader, follower = self.pair()
        link = self.link(leader)
        follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.assert_copied(leader, follower)
        link.cut(up=True, down=False)  # its acknowledgements no longer come
        leader.run("CPUT t behind f:a 1")
        self.assertEqual("OK", leader.run(f"FAILOVER TO 127.0.0.1 {follower.server.port} FORCE TIMEOUT 100"))
        self.wait_until(lambda: follower.info("role") == "master", "the takeover")
        # It follows the new one at its own address, where nothing is cut.
        self.wait_until(lambda: leader.info("role") == "slave", "the old leader")
        self.assertEqual("OK", follower.run("CPUT t behind f:b 2"))
        self.assert_copied(follower, leader)
        self.assertEqual(["1", "2"], leader.run("CMGET t behind f:a f:b"))

    def test_who_does_not_take_over_leaves_the_leader_leading(self):
        leader, follower = self.pair(repl_timeout="60")
        link = self.link(leader)
        follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.assert_copied(leader, follower)
        self.assertEqual(1, leader.run("WAITAOF 0 1 0")[1])  # of which the leader knows
        link.cut(up=False, down=True)
        self.assertEqual("OK", leader.run("FAILOVER"))
        # It has everything, and never hears that it shall lead. Nobody else dials anew in time.

        def leads_again():
            with contextlib.suppress(redis.ConnectionError):
                return leader.refusal("CPUT t after f:a 1") == "no error: OK"
            return False

        self.wait_until(leads_again, "the leader again")
        self.assertEqual("master", leader.info("role"))
        link.heal()
        self.assert_copied(leader, follower)
        self.assertEqual(0, leader.info("replica_diverged_records") + follower.info("replica_diverged_records"))


class SentinelTest(ReplicaTest):
    def watched(self):
        """A leader and two followers, the Sentinels' ports, and the three nodes by name."""
        if shutil.which("redis-sentinel") is None:
            self.skipTest("redis-sentinel is not installed")
        leader, follower = self.pair()
        other = Node(self)
        for node in (follower, other):
            node.follow(leader)
        self.assert_copied(leader, follower, other)
        directory = tempfile.mkdtemp(prefix="cellar-sentinel-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        ports = [free_port() for _ in range(3)]
        for port in ports:
            path = os.path.join(directory, f"{port}.conf")
            with open(path, "w", encoding="ascii") as file:
                file.write(f"port {port}\nbind 127.0.0.1\ndir {directory}\nsentinel monitor m 127.0.0.1 "
                           f"{leader.server.port} 2\nsentinel down-after-milliseconds m 1000\n"
                           "sentinel failover-timeout m 3000\n")
            process = subprocess.Popen(["redis-sentinel", path], stdout=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
        known = redis.Redis(port=ports[0])

        def all_known():
            with contextlib.suppress(redis.ConnectionError):
                (state,) = known.sentinel_masters().values()
                return state["num-slaves"] == 2 and state["num-other-sentinels"] == 2
            return False

        self.wait_until(all_known, "the Sentinels")
        return ports, leader, follower, other

    def test_stock_sentinel_finds_fails_over_and_brings_back(self):
        ports, leader, follower, other = self.watched()
        sentinel = redis.sentinel.Sentinel([("127.0.0.1", port) for port in ports], socket_timeout=SECONDS_MAX)
        client = sentinel.master_for("m")
        self.assertEqual(b"OK", client.execute_command("CPUT", "t", "r", "f:a", "1"))
        self.assertGreaterEqual(client.execute_command("WAIT", "2", "100000"), 2)
        leader.kill()

        def writes_and_reads():
            with contextlib.suppress(redis.RedisError, OSError):
                client.execute_command("CPUT", "t", "r", "f:b", "2")
                self.assertEqual(b"1", client.execute_command("CGET", "t", "r", "f:a"))
                return True
            return False
        self.wait_until(writes_and_reads, lambda: follower.server.log() + other.server.log())
        leader.restart()
        nodes = (leader, follower, other)

        def together():
            # Asked anew each time: Sentinels may choose twice where the machine is slow.
            with contextlib.suppress(redis.RedisError, KeyError):
                roles = sorted(node.info("role") for node in nodes)
                links = [node.info("master_link_status") for node in nodes if node.info("role") == "slave"]
                digests = {node.run("DEBUG DIGEST") for node in nodes}
                return roles == ["master", "slave", "slave"] and links == ["up", "up"] and len(digests) == 1
            return False

        self.wait_until(together, lambda: "\n".join(f"{node.info('role')}\n{node.server.log()}" for node in nodes))

    def test_node_clients_write_again_by_themselves(self):
        ports, leader, follower, other = self.watched()
        writers = NodeWriters(self, ports, "m", "t")
        writers.wait()
        leader.kill()
        self.wait_until(lambda: "master" in (follower.info("role"), other.info("role")), "a new leader")
        writers.wait()
        # Sentinels may choose twice where the machine is slow: who is the master now has what it has acknowledged.
        for name in writers.LIBRARIES:
            def newest(name=name):
                try:
                    masters = [node for node in (follower, other) if node.info("role") == "master"]
                    last = writers.rows(name)[-1]
                    return [(last, node.run(f"CGET t {name}-{last} f:a")) for node in masters]
                except redis.RedisError:  # a change of role ends connections
                    return []
            self.wait_until(lambda newest=newest: any(str(last) == found for last, found in newest()),
                            lambda newest=newest: f"{newest()}\n{follower.server.log()[-2000:]}\n{other.server.log()[-2000:]}")


class TlsTest(ReplicaTest):
    def test_links_are_encrypted_and_both_ends_are_checked(self):
        directory = tempfile.mkdtemp(prefix="cellar-certificates-")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        ours, theirs = Authority(directory, "ca"), Authority(directory, "other")
        for name in ("one", "two"):
            ours.issue(name)
        theirs.issue("stranger")

        def node(name, authority="ca", **options):
            port = free_port()
            return Node(self, tls_port=port, tls_replication="yes", tls_ca_cert_file=ours.path(authority + ".crt"),
                        tls_cert_file=ours.path(name + ".crt"), tls_key_file=ours.path(name + ".key"), **options), port

        leader, port = node("one", requirepass="secret")
        leader.run("ACL SETUSER copies on >word +@replication")
        leader.run("TABLE CREATE t FAMILY f FAMILY g")
        leader.load(5000)
        leader.run("SAVE")
        follower, _ = node("two", masteruser="copies", masterauth="word")
        follower.run(f"REPLICAOF 127.0.0.1 {port}")
        self.assert_copied(leader, follower)
        leader.load(500, 5000)
        self.assert_copied(leader, follower)
        stranger, _ = node("stranger", masterauth="secret")
        stranger.run(f"REPLICAOF 127.0.0.1 {port}")
        distrusts, _ = node("two", authority="other", masterauth="secret")
        distrusts.run(f"REPLICAOF 127.0.0.1 {port}")
        plain = Node(self, masterauth="secret")
        plain.run(f"REPLICAOF 127.0.0.1 {port}")
        for refused in (stranger, distrusts, plain):
            self.wait_until(lambda n=refused: f"Leader 127.0.0.1:{port}: " in n.server.log(), "the refusal")
            self.assertEqual("down", refused.info("master_link_status"))
            self.assertEqual([], refused.run("TABLE LIST"))
        self.assertEqual(1, leader.info("connected_slaves"))


class HostilePeersTest(ReplicaTest):
    def peer(self, node, purpose="follow", features="0"):
        connection = socket.create_connection(("127.0.0.1", node.server.port), timeout=SECONDS_MAX)
        self.addCleanup(connection.close)
        connection.sendall(f"PEER 1 0 77 {purpose} {features}\r\n".encode())
        return connection, connection.recv(1000)

    def ends(self, connection):
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(1 << 16):
                pass

    def test_lengths_are_judged_before_the_bytes_come(self):
        leader = Node(self)
        before = leader.info("used_memory", "memory")
        for kind in range(256):
            for length in (4200, 9 << 20, 1 << 30, (1 << 32) - 1):
                connection, _ = self.peer(leader)
                connection.sendall(struct.pack("<IQB", length, 0, kind) + bytes(40))
                self.ends(connection)
        self.assertLess(leader.info("used_memory", "memory"), before + (4 << 20) + (64 << 20))
        self.assertTrue(leader.redis.ping())

    def test_a_bulk_link_needs_a_ticket(self):
        leader, follower = self.pair()
        for ticket in ("0", "1", "zz", "ffffffffffffffff"):
            self.assertIn(b"no copy is waiting", self.peer(leader, "bulk", ticket)[1])
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertIn(b"no copy is waiting", self.peer(leader, "bulk", "1")[1])

    def test_a_leader_that_talks_nonsense(self):
        mix = random.Random(5)
        follower = Node(self)
        follower.run("TABLE CREATE old FAMILY f")
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(8)
            listener.settimeout(SECONDS_MAX)
            follower.run(f"REPLICAOF 127.0.0.1 {listener.getsockname()[1]}")
            for round_ in range(12):
                connection = listener.accept()[0]
                connection.settimeout(SECONDS_MAX)
                connection.recv(1000)
                if round_ % 4 == 0:
                    connection.sendall(b"-ERR no\r\n")
                elif round_ % 4 == 1:
                    connection.sendall(b"x" * 20000)
                else:
                    connection.sendall(b"+PEER 1 0 5\r\n")
                    connection.recv(1000)
                    if round_ % 4 == 2:
                        connection.sendall(struct.pack("<IQB", 1 << 30, 0, mix.randrange(12)) + mix.randbytes(3000))
                    else:
                        connection.sendall(mix.randbytes(3000))
                self.ends(connection)
                connection.close()
        self.assertEqual(["old"], follower.run("TABLE LIST"))
        self.assertTrue(follower.redis.ping())


if __name__ == "__main__":
    unittest.main()
