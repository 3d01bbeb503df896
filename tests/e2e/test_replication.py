"""Followers: what they get, what they refuse, and who leads when; two and three servers on this machine."""

import contextlib
import os
import random
import re
import socket
import struct
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import CellarServer, begin_snapshot
from peer_frames import FOLLOW, frame, prefixed
from replicas import SECONDS_MAX, Node, ReplicaTest


class ReplicationTest(ReplicaTest):
    def test_a_follower_gets_what_is_there_and_what_comes(self):
        leader, follower = self.pair()
        leader.load(3000)
        self.assertEqual("OK", follower.follow(leader))
        self.assert_copied(leader, follower)
        leader.load(2000, 2500)
        leader.run("INDEX CREATE t i ON 1 f:a")
        leader.run("CDEL t r1")
        leader.run("FAMILY ADD t h TYPE i64")
        leader.run("CINCRBY t r2 h:n 5")
        leader.run("TABLE CREATE u KEY recno FAMILY f")
        leader.run("CPUT u * f:x 1")
        with leader.redis.pipeline() as pipe:
            for i in range(5):
                pipe.execute_command("CPUT", "t", f"m{i}", "f:a", "1")
            pipe.execute()
        self.assert_copied(leader, follower)
        self.wait_until(lambda: dict(zip(*[iter(follower.run("INDEX INFO t i"))] * 2))["state"] == "ready", "the index")
        self.assertEqual(leader.run("CSCAN t 0 INDEX i EQ 1 1"), follower.run("CSCAN t 0 INDEX i EQ 1 1"))
        leader.run("TABLE DROP u")
        leader.run("RENAME t v")
        self.assert_copied(leader, follower)

    def test_two_that_follow_each_other_say_so(self):
        one, other = self.pair()
        one.load(10)
        other.follow(one)
        self.assert_copied(one, other)
        one.run(f"REPLICAOF 127.0.0.1 {other.server.port}")
        said = "which follows it: neither of them takes writes"
        self.wait_until(lambda: any(said in node.server.log() for node in (one, other)), "a word in a log")
        self.assertLess(sum(node.server.log().count(said) for node in (one, other)), 4)

    def test_a_follower_answers_reads_and_refuses_writes(self):
        leader, follower = self.pair()
        leader.load(10)
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertEqual("3", follower.run("CGET t r3 f:a"))
        port = leader.server.port
        for line in ("CPUT t r f:a 1", "TABLE CREATE x", "CDELRANGE t ALL", "FLUSHALL", "RENAME t u"):
            self.assertEqual("ReadOnlyError You can't write against a read only replica. "
                             f"The master is 127.0.0.1:{port}", follower.refusal(line))
        with self.assertRaisesRegex(redis.exceptions.RedisError, "(?i)execabort|read only"):
            with follower.redis.pipeline() as pipe:
                pipe.execute_command("CPUT", "t", "r", "f:a", "1")
                pipe.execute()
        self.assertIn("WAIT cannot be used", follower.refusal("WAIT 1 10"))
        follower.run("CONFIG SET replica-reads no")
        self.assertIn("read only replica", follower.refusal("CGET t r3 f:a"))
        follower.run("CONFIG SET replica-reads stale replica-max-lag 500")
        self.wait_until(lambda: follower.refusal("CGET t r3 f:a") == "no error: 3", lambda: follower.refusal("CGET t r3 f:a"))
        leader.kill()
        self.wait_until(lambda: "MASTERDOWN" in follower.refusal("CGET t r3 f:a") or
                        "MasterDown" in follower.refusal("CGET t r3 f:a"), "stale reads end")
        self.assertEqual("PONG", "PONG" if follower.redis.ping() else "")
        leader.restart()
        self.wait_until(lambda: follower.refusal("CGET t r3 f:a") == "no error: 3", "reads again")

    def test_roles_are_told_as_redis_tells_them(self):
        leader, follower = self.pair()
        self.assertEqual(["master", leader.run("ROLE")[1], []], leader.run("ROLE"))
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertEqual("OK Already connected to specified master", follower.follow(leader))
        offset = leader.info("master_repl_offset")
        self.assertEqual(["slave", "127.0.0.1", leader.server.port, "connected", offset], follower.run("ROLE"))
        self.wait_until(lambda: leader.run("ROLE") == ["master", offset, [["127.0.0.1", str(follower.server.port),
                                                                           str(offset)]]], "the acknowledgement")
        entry = leader.info("slave0")
        self.assertEqual(("127.0.0.1", follower.server.port, "online"), (entry["ip"], entry["port"], entry["state"]))
        self.assertEqual(["replica"], [line["flags"].replace("S", "replica") for line in
                                       leader.redis.client_list(_type="replica")])
        self.assertEqual("M", follower.redis.client_list(_type="master")[0]["flags"])
        self.assertEqual(1, leader.run("WAIT 1 60000"))
        self.assertEqual("slave", follower.info("role"))
        self.assertEqual(f"127.0.0.1 {leader.server.port}", follower.run("CONFIG GET replicaof")[1])
        self.assertEqual("OK", follower.run("REPLICAOF NO ONE"))
        self.assertEqual("master", follower.info("role"))
        self.assertEqual("", follower.run("CONFIG GET replicaof")[1])

    def test_a_follower_that_was_away_gets_what_it_lacks(self):
        leader, follower = self.pair()
        follower.follow(leader)
        self.assert_copied(leader, follower)
        port = follower.server.port
        for round_ in range(3):
            follower.kill()
            leader.load(500, round_ * 500)
            follower.restart()
            follower.follow(leader)
            self.assert_copied(leader, follower)
            self.assertGreaterEqual(follower.info("replica_partial_syncs"), 1)
        self.assertEqual(1, leader.info("sync_full", "stats"))
        # And where it heard nothing for two seconds, as on a busy machine.
        self.assertGreaterEqual(leader.info("sync_partial_ok", "stats"), 3)
        self.assertEqual(port, follower.server.port)

    def test_a_leader_that_was_away_is_found_again(self):
        leader, follower = self.pair()
        follower.follow(leader)
        self.assert_copied(leader, follower)
        leader.load(100)
        leader.kill()
        self.wait_until(lambda: follower.info("master_link_status") == "down", "the link")
        leader.restart()
        self.assert_copied(leader, follower)
        leader.load(100, 100)
        self.assert_copied(leader, follower)
        self.assertEqual(1, follower.info("replica_full_syncs"))

    def test_a_copy_begins_with_the_snapshot(self):
        leader, follower = self.pair()
        leader.load(5000)
        leader.run("SAVE")
        leader.load(500, 5000)
        follower.run("TABLE CREATE other FAMILY f")
        follower.run("CPUT other r f:a 1")
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertEqual(["t"], follower.run("TABLE LIST"))
        follower.kill()
        follower.restart()
        self.assertEqual("4999", follower.run("CGET t r4999 f:a"))

    def test_a_record_beyond_the_output_limit_comes_nonetheless(self):
        leader, follower = self.pair()
        leader.run("CONFIG SET", "client-output-buffer-limit", "replica 1mb 512kb 1")
        follower.follow(leader)
        leader.load(100)
        self.assert_copied(leader, follower)
        value = os.urandom(1 << 20).hex() * 8
        leader.redis.execute_command("CMUTATE", "t", "large", *sum((("PUT", f"f:{i}", value) for i in range(4)), ()))
        leader.load(100, 100)
        self.assert_copied(leader, follower)
        self.wait_until(lambda: follower.info("mem_clients_slaves", "memory") < 16 << 20,
                        lambda: str(follower.redis.info("memory")))
        # From the log, too.
        follower.kill()
        leader.redis.execute_command("CMUTATE", "t", "more", *sum((("PUT", f"f:{i}", value) for i in range(3)), ()))
        leader.load(100, 200)
        follower.restart()
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertEqual(0, leader.info("client_output_buffer_limit_disconnections", "stats"))
        # Behind small ones, from files: the start has none of them in memory.
        follower.kill()
        leader.load(100, 300)
        leader.redis.execute_command("CMUTATE", "t", "behind", *sum((("PUT", f"f:{i}", value) for i in range(3)), ()))
        leader.load(100, 400)
        leader.kill()
        leader.restart()
        follower.restart()
        follower.follow(leader)
        self.assert_copied(leader, follower)

    def test_log_is_kept_behind_a_snapshot_for_those_who_come_back(self):
        leader, follower = self.pair()
        follower.follow(leader)
        leader.load(200)
        self.assert_copied(leader, follower)
        for kept, full_syncs in (("1gb", 0), ("1kb", 1)):
            follower.kill()
            leader.run(f"CONFIG SET repl-backlog-size {kept}")
            for i in range(3):
                leader.load(300, i * 300)
                leader.run("SAVE")
            leader.kill()  # a start skips what the snapshot covers, and keeps it
            leader.restart()
            follower.restart()
            follower.follow(leader)
            self.assert_copied(leader, follower)
            self.assertEqual(full_syncs, follower.info("replica_full_syncs"))

    def test_wait_has_followers_sync_at_once(self):
        leader, follower = self.pair(appendfsync="no")
        follower.follow(leader)
        self.assert_copied(leader, follower)
        for i in range(5):  # with `no` a follower would sync once in half a minute
            leader.load(1, i)
            self.assertEqual(1, leader.run("WAIT 1 100000"))

    def test_a_follower_of_a_follower(self):
        leader, middle = self.pair()
        last = Node(self)
        leader.load(100)
        middle.follow(leader)
        last.follow(middle)
        self.assert_copied(leader, middle)
        leader.load(100, 100)
        self.assert_copied(leader, middle, last)

    def test_a_store_that_is_loaded_again_is_still_followed(self):
        leader, middle = self.pair()
        last = Node(self)
        middle.follow(leader)
        last.follow(middle)
        leader.load(100)
        self.assert_copied(leader, middle, last)
        for i, node in enumerate((leader, middle, last, leader)):
            leader.load(100, 100 * i)  # some of it may still be on its way
            node.run("DEBUG RELOAD")
            leader.load(100, 100 * i + 50)
            self.assert_copied(leader, middle, last)
        leader.run("SAVE")
        self.assertEqual([0, 1, 1], [node.info("replica_full_syncs") for node in (leader, middle, last)])

    def test_failover_hands_over_without_loss(self):
        leader, follower = self.pair()
        self.assertIn("FAILOVER requires connected replicas", leader.refusal("FAILOVER"))
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertIn("is not a replica", leader.refusal("FAILOVER TO 127.0.0.1 1"))
        self.assertIn("not valid when server is a replica", follower.refusal("FAILOVER"))
        leader.load(1000)
        self.assertEqual("OK", leader.run("FAILOVER"))
        self.take_over(leader, follower)
        self.assert_copied(follower, leader)
        follower.load(100, 1000)
        self.assert_copied(follower, leader)
        self.assertEqual("1099", leader.run("CGET t r1099 f:a"))
        self.assertEqual(0, leader.info("replica_diverged_records"))
        self.assertEqual(0, leader.info("replica_full_syncs"))

    def test_what_a_former_leader_wrote_alone_is_saved_and_dropped(self):
        leader, follower = self.pair()
        follower.follow(leader)
        leader.load(100)
        self.assert_copied(leader, follower)
        leader.kill()
        follower.run("REPLICAOF NO ONE")
        follower.load(10, 100)
        leader.restart()
        leader.run("CPUT t lost f:a 1")
        leader.run("CPUT t lost f:a 2")
        leader.follow(follower)
        self.assert_copied(follower, leader)
        self.assertIsNone(leader.run("CGET t lost f:a"))
        self.assertEqual(2, leader.info("replica_diverged_records"))
        self.assertTrue([name for name in os.listdir(leader.directory) if re.match(r"cellar-diverged-\d+-\d+\.log", name)])

    def test_writes_need_followers_where_that_is_asked_for(self):
        leader, follower = self.pair()
        leader.run("CONFIG SET min-replicas-to-write 1")
        self.assertIn("Not enough good replicas to write", leader.refusal("CPUT t r f:a 1"))
        self.assertIsNone(leader.run("CGET t r f:a"))
        follower.follow(leader)
        self.wait_until(lambda: leader.refusal("CPUT t r f:a 1") == "no error: OK", "a follower")

    def test_peers_that_cannot_be(self):
        leader, follower = self.pair(requirepass="secret")
        follower.follow(leader)
        self.wait_until(lambda: "refuses: NOAUTH" in follower.server.log(), "the refusal")
        follower.run("CONFIG SET masterauth wrong")
        self.wait_until(lambda: "refuses: WRONGPASS" in follower.server.log(), "the other refusal")
        follower.run("CONFIG SET masterauth secret")
        leader.run("TABLE CREATE x FAMILY f")
        self.assert_copied(leader, follower)
        leader.run("ACL SETUSER weak on >weak +@all -@replication ~*")
        follower.run("CONFIG SET masteruser weak masterauth weak")
        follower.run("REPLICAOF NO ONE")
        follower.follow(leader)
        self.wait_until(lambda: "refuses: NOPERM" in follower.server.log(), "the right")
        self.assertIn("version 9 is not spoken here (1)", leader.refusal("PEER 9 0 1 follow 0"))
        self.assertIn("no such purpose", leader.refusal("PEER 1 0 1 rule 0"))
        self.assertIn("hexadecimal", leader.refusal("PEER 1 0 0 follow 0"))

    def test_frames_that_are_none_harm_nobody(self):
        leader = Node(self)
        for bytes_ in (b"\x00" * 44, b"\xff" * 100, struct.pack("<I", 4000) + os.urandom(5000),
                       struct.pack("<I", 512 << 20) + os.urandom(5000), b"PING\r\n" * 100,
                       b"\x20\x00\x00\x00" + b"\x00" * 40):
            with socket.create_connection(("127.0.0.1", leader.server.port), timeout=SECONDS_MAX) as connection:
                connection.sendall(b"PEER 1 0 77 follow 0\r\n")
                self.assertTrue(connection.recv(1000).startswith(b"+PEER 1 "))
                connection.sendall(bytes_)
                with contextlib.suppress(ConnectionResetError):  # it did not read all of that
                    while connection.recv(1000):
                        pass
        self.assertTrue(leader.redis.ping())
        self.wait_until(lambda: leader.info("connected_slaves") == 0, "the peers")

    def test_a_follower_that_calls_itself_no_host_is_none(self):
        leader = Node(self)
        for host in (b"x\r\nrole:slave", b"two words", b"h" * 256, b'"h"', b"\x1b[2J", b"\xff"):
            with self.subTest(host=host), socket.create_connection(("127.0.0.1", leader.server.port),
                                                                   timeout=SECONDS_MAX) as link:
                link.sendall(b"PEER 1 0 77 follow 0\r\n")
                self.assertTrue(link.recv(1000).startswith(b"+PEER 1 "))
                link.sendall(frame(FOLLOW, struct.pack("<IQqQQIH", 0, 0, 0, 0, 0, 100, 1) + prefixed(host), sender=0x77))
                said = b""
                while more := link.recv(1000):
                    said += more
                    self.assertLess(len(said), 1000, "it is answered as a follower")
                self.assertIn(b"its request cannot be read", said)
        self.assertEqual("master", leader.info("role"))
        self.wait_until(lambda: leader.info("connected_slaves") == 0, "the peers")
        for words in ("two words", "h" * 256, 'quo"ted'):
            with tempfile.TemporaryDirectory() as directory:
                server = CellarServer(directory, replica_announce_ip=words)
                server.spawn()
                self.assertIn(server.process.wait(SECONDS_MAX), (1, 2))
                self.assertIn("takes a host", server.log())

    def test_kills_of_either_side_under_load_end_in_equal_copies(self):
        """CELLAR_REPLICA_KILLS says how many; CELLAR_REPLICA_SEED repeats a run."""
        seed = int(os.environ.get("CELLAR_REPLICA_SEED", random.randrange(10**9)))
        print(f"seed {seed}", flush=True)
        chance = random.Random(seed)
        leader, follower = self.pair()
        leader.run("INDEX CREATE t i ON 1 f:a")
        follower.follow(leader)
        ended = threading.Event()

        def write():
            mix, number = random.Random(seed + 1), 0
            while not ended.is_set():
                try:
                    with leader.server.client() as client:
                        while not ended.is_set():
                            pipe = client.pipeline(transaction=mix.random() < 0.3)
                            for _ in range(20):
                                number += 1
                                row = f"r{mix.randrange(2000)}"
                                pipe.execute_command(*mix.choice((
                                    ("CPUT", "t", row, "f:a", str(number), "g:b", "y" * mix.randrange(300)),
                                    ("CPUT", "t", row, "f:a", str(number)), ("CDEL", "t", row),
                                    ("CINCRBY", "t", "counter", "f:n", "1"), ("CAPPEND", "t", row, "f:s", "z"),
                                    ("CMUTATE", "t", row, "PUT", "f:z", "1", "TTL", "1s", "DEL", "g"))))
                            pipe.execute(raise_on_error=False)
                except (redis.RedisError, OSError):
                    time.sleep(0.01)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(int(os.environ.get("CELLAR_REPLICA_KILLS", "8"))):
                time.sleep(chance.random() * 0.3)
                node = chance.choice((leader, follower))
                node.kill()
                time.sleep(chance.random() * 0.2)
                node.restart()
                if node is follower:
                    follower.follow(leader)
                if chance.random() < 0.3:
                    begin_snapshot(leader.redis)
                if chance.random() < 0.1:
                    leader.run("TABLE TRUNCATE t")
        finally:
            ended.set()
            writer.join()
        time.sleep(1.1)  # until what has a TTL is due on both sides
        self.assert_copied(leader, follower)

    def test_exec_makes_a_follower_the_leader_while_records_wait(self):
        """As Sentinel does it: what has come and is not applied yet is applied inside of EXEC."""
        leader, follower = self.pair()
        ended = threading.Event()

        batch = b"".join(b"CPUT t r%d f:a %s\r\n" % (i % 3000, b"x" * 20) for i in range(20000))

        def write():  # as fast as it goes, so that more comes than a turn applies
            with leader.server.connect() as connection:
                while not ended.is_set():
                    connection.sendall(batch)
                    left = 20000 * len(b"+OK\r\n")
                    while left > 0:
                        left -= len(connection.recv(1 << 20))

        def listen():  # to what is told of the changes, which that must not wait for
            with follower.server.connect() as connection:
                connection.sendall(b"HELLO 3\r\nCLIENT TRACKING ON BCAST\r\nPSUBSCRIBE __keyspace@*\r\n")
                connection.settimeout(0.1)
                while not ended.is_set():
                    try:
                        heard[0] += len(connection.recv(1 << 20))
                    except TimeoutError:
                        pass

        heard = [0]
        follower.run("CONFIG SET notify-keyspace-events AK")
        threads = [threading.Thread(target=target) for target in (write, listen)]
        for thread in threads:
            thread.start()
        try:
            for attempt in range(20):
                follower.follow(leader)
                self.wait_until(lambda: follower.info("master_link_status") == "up", "the link")
                if attempt == 19:  # on a busy machine nothing may have come so far
                    self.wait_until(lambda: heard[0] > 1000, "nothing is told")
                time.sleep(0.05)  # records come
                with follower.redis.pipeline() as pipe:
                    pipe.execute_command("SLAVEOF", "NO", "ONE")
                    self.assertEqual([True], pipe.execute())
                self.assertEqual("master", follower.info("role"))
        finally:
            ended.set()
            for thread in threads:
                thread.join()
        self.assertEqual("OK", follower.run("MULTI ATOMIC"))
        self.assertIn("not allowed inside MULTI ATOMIC", follower.refusal("REPLICAOF NO ONE"))

    def test_a_log_is_needed(self):
        leader, follower = Node(self, appendonly="no"), Node(self)
        self.assertIn("appendonly is no", leader.refusal(f"REPLICAOF 127.0.0.1 {follower.server.port}"))
        follower.follow(leader)
        self.wait_until(lambda: "no log that could be followed" in follower.server.log(), "the refusal")
        self.assertIn("Invalid master port", follower.refusal("REPLICAOF 127.0.0.1 0"))


    def test_a_link_that_was_dead_for_a_while_is_not_filled_in_vain(self):
        leader, follower = self.pair()
        link = self.link(leader)
        follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.assert_copied(leader, follower)

        def figures():
            info = leader.redis.info("everything")
            return info["master_repl_bytes"], info["total_net_repl_output_bytes"]

        def write(rows):
            pipe = leader.redis.pipeline(transaction=False)
            for i in range(rows):
                pipe.execute_command("CPUT", "t", f"r{i}", "f:a", os.urandom(500).hex())
            pipe.execute()

        write(2000)
        self.assert_copied(leader, follower)
        log, sent = figures()
        link.cut()
        write(200)
        time.sleep(1)  # nothing of it is answered
        rows = 0
        # More than may wait in a link, and until the follower has given this one up.
        while rows < 15_000 or follower.info("master_link_status") == "up":
            write(500)
            rows += 500
            time.sleep(0.05)
        link.heal()
        self.assert_copied(leader, follower)
        now = figures()
        log, sent = now[0] - log, now[1] - sent
        self.assertGreater(log, 15 << 20)
        self.assertLess(sent, log * 1.03 + (1 << 20))
        self.assertEqual(1, leader.redis.info("stats")["sync_full"])


if __name__ == "__main__":
    unittest.main()
