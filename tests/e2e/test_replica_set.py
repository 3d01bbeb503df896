"""Replica sets: three processes that elect, agree and answer; what clients lose when one is killed, stopped or emptied:
nothing that was acknowledged."""

import contextlib
import glob
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import START_SECONDS_MAX, CellarServer, binary, free_port
from feed_model import as_sent, read_to_end
from replica_sets import ASK_AGAIN, STEADY_MS, ReplicaSetCase, Tail, Writer
from replicas import SECONDS_MAX, Writers, chance


class ReplicaSetTest(ReplicaSetCase):
    def test_three_nodes_found_a_set_and_agree(self):
        members = self.make(replica_election_timeout=STEADY_MS, cluster_forward="no")
        members[0].server.start()
        self.wait_until(lambda: "CLUSTERDOWN" in members[0].refusal("CGET t r f:a") or
                        "no leader" in members[0].refusal("CGET t r f:a"), lambda: members[0].refusal("CGET t r f:a"))
        self.assertIn("to found the set", members[0].refusal("CPUT t r f:a 1"))
        self.assertEqual("joining", members[0].info()["replica_state"])
        for member in members[1:]:
            member.server.start()
        leader = self.wait_leader(members)
        others = [member for member in members if member is not leader]
        leader.run("TABLE CREATE t FAMILY f")
        leader.run("CPUT t r f:a 1")
        self.assertEqual("1", leader.run("CGET t r f:a"))
        self.assert_equal(members)
        for other in others:
            self.assertEqual("1", other.run("CGET t r f:a"))
            self.assertEqual("ReadOnlyError You can't write against a read only replica. "
                             f"The leader is 127.0.0.1:{leader.port}", other.refusal("CPUT t r f:a 2"))
            self.wait_until(lambda each=other: each.run("ROLE")[:4] == ["slave", "127.0.0.1", leader.port, "connected"],
                            lambda each=other: str(each.run("ROLE")))
            other.run("CONFIG SET replica-reads no")
            self.assertIn("read only replica", other.refusal("CGET t r f:a"))
            other.run("CONFIG SET replica-reads linearizable")
            for i in range(20):
                leader.run("CPUT", "t", "r", "f:a", str(i))
                self.assertEqual(str(i), other.run("CGET t r f:a"))
            self.assertEqual([None, "19"], [other.run("CGET t none f:a"), other.redis.pipeline(transaction=True)
                                            .execute_command("CGET", "t", "r", "f:a").execute()[0]])
            other.run("CONFIG SET replica-reads stale")
            leader.run("CPUT t r f:a 1")
            self.assert_equal(members)
        self.assertEqual("master", leader.run("ROLE")[0])
        self.wait_until(lambda: len(leader.run("ROLE")[2]) == 2, lambda: str(leader.run("ROLE")))
        self.assertGreaterEqual(leader.run("WAIT 1 60000"), 1)
        info = leader.info()
        self.assertEqual(("leader", 3, 2), (info["replica_state"], info["replica_members"], info["connected_slaves"]))
        self.wait_until(lambda: leader.info()["replica_lease"] > 0, lambda: str(leader.info()))
        self.assertEqual(1, len({member.info()["master_replid"] for member in members}))
        self.assertEqual("always", leader.run("CONFIG GET appendfsync")[1])
        for words in ("REPLICAOF NO ONE", "REPLICAOF 127.0.0.1 1", "SLAVEOF NO ONE"):
            self.assertIn("REPLICAOF is not allowed in a replica set, use FAILOVER or REPLICA", others[0].refusal(words))
        self.assertIn("needs its log", leader.refusal("CONFIG SET appendonly no"))
        self.assertIn("not allowed in a replica set", leader.refusal("DEBUG RELOAD"))

    def test_digests_name_the_state_that_they_are_of(self):
        members = self.found()
        self.lead(members, "TABLE CREATE t FAMILY f")
        seen = [{} for _ in members]
        count = 0

        def shared():
            # Followers apply a record with the next one: the state of each is a little behind.
            nonlocal count
            count += 1
            self.wait_leader(members).run(f"CPUT t r{count} f:a {count}")
            for digests, member in list(zip(seen, members)) * 3:
                digest, lsn = member.run("DEBUG DIGEST WITHLSN")
                self.assertEqual(digest, digests.setdefault(lsn, digest))
            by_all = set(seen[0]) & set(seen[1]) & set(seen[2])
            for lsn in by_all:
                self.assertEqual(1, len({digests[lsn] for digests in seen}), lsn)
            return len(by_all) >= 5
        self.wait_until(shared, lambda: [sorted(digests)[-5:] for digests in seen])
        self.assertGreater(len({digest for digests in seen for digest in digests.values()}), 5)

    def test_killed_leaders_lose_nothing(self):
        members = self.found()
        self.lead(members, "TABLE CREATE t FAMILY f")
        writer = Writer(members)
        for _ in range(3):
            writer.wait()
            leader = self.wait_leader(members)
            moment = time.monotonic()
            leader.server.kill()
            self.wait_until(lambda m=moment: writer.gap_after(m + 0.01) is not None, "writes go on")
            self.wait_leader(members, leader)
            leader.server.start()
            self.wait_until(leader.has_a_role, "it comes back")
        self.wait_until(lambda: len(writer.acknowledged) > 100, "writes go on")
        writer.end()
        self.assert_equal(members)
        self.assert_kept(members, writer)

    def test_a_stopped_leader_answers_nothing_of_the_past(self):
        members = self.found(replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        leader.run("CPUT t r f:a old")
        link = leader.server.connect()
        link.sendall(b"PING\r\n")
        self.assertEqual(b"+PONG\r\n", link.recv(100))
        leader.server.process.send_signal(signal.SIGSTOP)
        try:
            link.sendall(b"CGET t r f:a\r\n")
            self.lead([member for member in members if member is not leader], "CPUT t r f:a new")
        finally:
            leader.server.process.send_signal(signal.SIGCONT)
        link.settimeout(5)
        try:
            answer = link.recv(1000)
        except OSError:
            answer = b""
        self.assertNotIn(b"old", answer)
        link.close()
        self.assert_equal(members)
        self.assertEqual("new", leader.run("CGET t r f:a"))

    def test_large_writes_of_many_at_once_cost_no_leader(self):
        """Each is a turn of its own, with heartbeats between, and goes to the others when there is room for it."""
        members = self.found(replica_election_timeout=5000)  # all in one turn: seconds, on a busy machine
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        term = leader.info()["replica_term"]
        value = os.urandom(25 << 20)
        replies = []

        def put(row, parts):
            with redis.Redis(port=leader.port) as client:
                pipe = client.pipeline(transaction=parts > 1)
                for part in range(parts):
                    pipe.execute_command("CPUT", "t", row, f"f:{part}", value[:len(value) // parts])
                client.ping()
                begins.wait()
                try:
                    replies.extend(set(pipe.execute()))
                except redis.RedisError as error:
                    replies.append(str(error))
        for parts in (1, 25):
            begins = threading.Barrier(5)
            threads = [threading.Thread(target=put, args=(f"r{i}", parts)) for i in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual([b"OK"] * 10, replies)
        self.assertTrue(leader.leads())
        self.assertEqual(term, leader.info()["replica_term"])
        self.assert_equal(members)

    def test_all_are_killed_and_come_back(self):
        members = self.found()
        self.lead(members, "TABLE CREATE t FAMILY f")
        writer = Writer(members)
        writer.wait()
        for member in members:
            member.server.kill()
        for member in members:
            member.server.start()
        self.wait_leader(members)
        writer.wait()
        writer.end()
        self.assert_equal(members)
        self.assert_kept(members, writer)

    def test_a_minority_takes_no_write(self):
        members = self.found()
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        leader.run("CPUT t r f:a 1")
        self.assert_equal(members)
        for member in members:
            if member is not leader:
                member.server.kill()
        self.wait_until(lambda: "no leader" in leader.refusal("CPUT t r f:a 2"), lambda: leader.refusal("CPUT t r f:a 2"))
        self.assertEqual("slave", leader.info()["role"])
        self.assertEqual("PONG", "PONG" if leader.redis.ping() else "")
        # Whether the 2 was taken in is to be decided by the others, so it is neither shown nor denied.
        self.assertRegex(leader.refusal("CGET t r f:a"), "no leader|no error: 1$")
        leader.run("CONFIG SET replica-reads linearizable")
        self.assertIn("no leader", leader.refusal("CGET t r f:a"))
        for member in members:
            if member is not leader:
                member.server.start()
        leader = self.wait_leader(members)
        self.assertIn(leader.run("CGET t r f:a"), ("1", "2"))
        self.assert_equal(members)

    def test_leadership_is_handed_over(self):
        members = self.found(replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        writer = Writer(members)
        writer.wait()
        other = next(member for member in members if member is not leader)
        self.wait_until(lambda: "is not a replica" in leader.refusal("FAILOVER TO 127.0.0.1 1"),
                        lambda: leader.refusal("FAILOVER TO 127.0.0.1 1"))
        self.assertIn("not valid when server is a replica", other.refusal("FAILOVER"))
        self.assertEqual("OK", leader.run(f"FAILOVER TO 127.0.0.1 {other.port}"))
        self.hand_over(members, other)
        writer.wait()
        writer.end()
        self.assert_equal(members)
        self.assert_kept(members, writer)
        self.wait_until(lambda: leader.info().get("master_failover_state") == "no-failover", lambda: str(leader.info()))

    def test_a_feed_tells_what_is_committed_whoever_leads(self):
        members = self.found(cluster_forward="no")
        self.lead(members, "TABLE CREATE t FAMILY f")
        self.lead(members, "FEED CREATE changes ON 0")
        writer = Writer(members)
        tails = [Tail(member) for member in members]
        for end in (lambda member: member.server.kill(), lambda member: member.server.process.send_signal(signal.SIGSTOP)):
            writer.wait()
            leader = self.wait_leader(members)
            end(leader)
            moment = time.monotonic()
            left = [member for member in members if member is not leader]
            self.wait_leader(left)
            self.wait_until(lambda: writer.gap_after(moment) is not None, "writes go on")
            if leader.server.process.poll() is None:
                leader.server.process.send_signal(signal.SIGCONT)
            else:
                leader.server.start()
        writer.wait()
        writer.end()
        self.assert_equal(members)
        told = read_to_end(as_sent(self.wait_leader(members).server.client()), "changes")
        for member, tail in zip(members, tails):
            self.assertEqual(told, read_to_end(as_sent(member.server.client()), "changes"))
            self.wait_until(lambda each=tail: each.entries and each.entries[-1] == told[-1], "the tail is read")
            tail.end()
            # Nothing was told that did not stay, and nothing was left out.
            self.assertEqual(told, tail.entries)
        rows = {dict(zip(fields[::2], fields[1::2])).get(b"row") for _, fields in told}
        self.assertEqual(set(), {f"w{number}".encode() for number in writer.acknowledged} - rows)
        self.wait_until(lambda: any("read only" in member.refusal("FEED CREATE changes ON 0") for member in members),
                        "a follower makes none")

    def test_a_leader_that_leaves_hands_over_first(self):
        members = self.found(replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        writer = Writer(members)
        for leave in (lambda: leader.server.process.send_signal(signal.SIGTERM), lambda: leader.refusal("SHUTDOWN")):
            writer.wait()
            leader = self.wait_leader(members)
            leave()
            self.assertEqual(0, leader.server.process.wait(START_SECONDS_MAX))
            self.assertIn("No longer the leader", leader.server.log())
            # Nobody had to notice that it was gone.
            new = self.wait_leader(members, leader)
            self.assertEqual("no error: PONG", "no error: PONG" if new.redis.ping() else "")
            leader.server.start()
            self.wait_until(leader.has_a_role, "it comes back")
        writer.end()
        self.assert_equal(members)
        self.assert_kept(members, writer)
        self.assertIn("No shutdown in progress", members[0].refusal("SHUTDOWN ABORT"))
        # It is told not to take the time.
        leader = self.wait_leader(members)
        self.assertIn("argument must be", leader.refusal("CONFIG SET shutdown-timeout -1"))
        leader.run("CONFIG SET shutdown-timeout 0")
        before = leader.server.log().count("No longer the leader")
        leader.server.process.send_signal(signal.SIGTERM)
        self.assertEqual(0, leader.server.process.wait(START_SECONDS_MAX))
        self.assertEqual(before, leader.server.log().count("No longer the leader"))
        leader.server.start()
        # There is nobody to hand over to: it leaves all the same.
        leader = self.wait_leader(members)
        for member in members:
            if member is not leader:
                self.assertEqual(0, member.server.stop())
        self.assertEqual(0, leader.server.stop())

    def test_a_full_disk_costs_the_lead_and_two_all_writes(self):
        members = self.make(replica_election_timeout=STEADY_MS)
        for member in members:
            self.mount(member.directory)
            member.server.log_path = tempfile.mktemp(prefix="cellar-log-")  # or it would be full, too
            self.addCleanup(os.remove, member.server.log_path)
            member.server.start()
        self.lead(members, "TABLE CREATE t FAMILY f")
        self.lead(members, "TABLE CREATE quiet FAMILY f")
        self.lead(members, "CPUT quiet first f:n 1")
        writer = Writer(members, "x" * 200)
        leader = self.wait_leader(members)
        self.fill(leader)
        self.wait_until(lambda: "takes no more" in leader.server.log(), lambda: leader.server.log())
        self.wait_until(lambda: not leader.leads(), "it hands over")
        other = self.wait_leader(members, leader)
        other.run("CPUT quiet second f:n 2")
        moment = time.monotonic()
        self.wait_until(lambda: writer.gap_after(moment) is not None, "writes go on")
        self.fill(other)
        third = next(member for member in members if member not in (leader, other))
        tries = []

        def is_refused():
            """Each is another one: what had no answer may be done when there is room."""
            tries.append(third.refusal(f"CPUT t never{len(tries)} f:n 3"))
            return "MISCONF" in tries[-1]
        self.wait_until(is_refused, lambda: tries[-1])
        self.assertEqual("2", third.run("CGET quiet second f:n"))
        for member in (leader, other):
            os.remove(os.path.join(member.directory, "filler"))

        def writes():
            return any(member.refusal("CPUT t third f:n 4") == "no error: OK" for member in members)
        self.wait_until(writes, "writes go on once there is room")
        writer.end()
        self.assert_equal(members)
        self.assert_kept(members, writer)
        self.assertIsNone(self.lead(members, f"CGET t never{len(tries) - 1} f:n"))

    def test_an_emptied_node_joins_again(self):
        members = self.found(replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        for i in range(500):
            leader.run("CPUT", "t", f"r{i}", "f:a", "x" * 100)
        leader.run("BGSAVE")
        lost = next(member for member in members if member is not leader)
        lost.server.kill()
        lost.wipe()
        lost.server.start()

        def voters():
            info = self.wait_leader(members).info()
            kinds = [info[name]["kind"] for name in info if name.startswith("member")]
            return len(kinds) == 3 and set(kinds) == {"voter"} and lost.info().get("replica_state") in ("follower", "leader")
        self.wait_until(voters, lambda: str(leader.info()) + lost.server.log())
        self.assert_equal(members)
        # It counts: another one may go.
        leader = self.wait_leader(members)
        gone = next(member for member in members if member not in (leader, lost))
        gone.server.kill()
        leader.run("CPUT t after f:a 1")

    def test_all_kinds_of_writes_and_large_ones(self):
        seed, mix = chance()
        members = self.found()
        self.lead(members, "TABLE CREATE t FAMILY f FAMILY g VERSIONS 2 TTL 1h")
        self.lead(members, "TABLE CREATE u FAMILY f TTL 1s")
        self.lead(members, "INDEX CREATE t i ON 1 f:a")
        with contextlib.ExitStack() as stack:
            for number in range(2):
                for member in members:
                    stack.enter_context(Writers(member.port, seed + number, pause=0.001))
            for i in range(6):
                time.sleep(0.7)  # writers write
                leader = self.wait_leader(members)
                kind = mix.choice(("kill", "stop", "hand over", "large", "index", "save"))
                if kind == "kill":
                    leader.server.kill()
                    leader.server.start()
                elif kind == "stop":
                    leader.server.process.send_signal(signal.SIGSTOP)
                    time.sleep(2)
                    leader.server.process.send_signal(signal.SIGCONT)
                elif kind == "hand over":
                    leader.refusal("FAILOVER")
                elif kind == "large":
                    leader.refusal("CPUT", "t", f"large{i}", "f:large", "z" * (20 << 20))
                elif kind == "index":
                    leader.refusal(f"INDEX CREATE t i{i} ON 1 g:b")
                else:
                    leader.refusal("BGSAVE")
        self.assert_equal(members)
        # A slow disk may take its time.
        said = []

        def is_written(*words):
            with self.wait_leader(members).server.client(decode_responses=True, socket_timeout=SECONDS_MAX) as client:
                try:
                    said.append(client.execute_command(*words))
                except redis.RedisError as error:
                    said.append(repr(error))
            return said[-1] == "OK"
        for words in (("CPUT", "t", "large", "f:large", "z" * (40 << 20)), ("CPUT", "t", "behind", "f:a", "needle")):
            self.wait_until(lambda each=words: is_written(*each), lambda: f"seed {seed}: {said}")
        self.assert_equal(members)
        # One that would cost each leader its place, whoever it is, is refused at once.
        puts = sum((("PUT", f"f:{i}", "z" * (28 << 20)) for i in range(4)), ())
        refusals = []

        def is_judged():
            """It is, by one that leads still when all of it has come."""
            refusals.append(self.wait_leader(members).refusal("CMUTATE", "t", "larger", *puts))
            return not any(each in refusals[-1] for each in ASK_AGAIN)
        self.wait_until(is_judged, lambda: str(refusals))
        self.assertRegex(refusals[-1], "TOOLARGE a change of 11[0-9]{7} bytes: a replica set takes 100000000 at once, more")
        for member in members:
            self.assertEqual("behind", member.run("CSCAN t 0 INDEX i EQ 1 needle")[1][0][0])
            self.assertEqual(40 << 20, len(member.run("CGET t large f:large")))
        for member in members:
            member.server.kill()
        for member in members:
            member.server.start()
        self.wait_leader(members)
        self.assert_equal(members)

    def test_who_is_too_far_behind_gets_a_copy(self):
        members = self.found(repl_backlog_size="16kb", repl_tail_size="16kb", replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        away = next(member for member in members if member is not leader)
        for how in ("killed", "emptied", "stopped"):
            if how == "stopped":
                away.server.process.send_signal(signal.SIGSTOP)
            else:
                away.server.kill()
            if how == "emptied":
                away.wipe()
            writer = Writer([member for member in members if member is not away], "y" * 3000)
            left = [member for member in members if member is not away]
            leader = self.wait_leader(left)
            for _ in range(3):
                before = len(writer.acknowledged)
                self.wait_until(lambda count=before: len(writer.acknowledged) > count + 20, "writes go on")
                leader.run("BGSAVE")
                self.wait_until(lambda: leader.redis.info("persistence")["rdb_bgsave_in_progress"] == 0, "it saves")
            if how == "stopped":
                away.server.process.send_signal(signal.SIGCONT)
            else:
                away.server.start()
            self.wait_until(lambda: away.leads() or away.info().get("master_link_status") == "up",
                            lambda: away.server.log()[-2000:])
            writer.end()
            self.wait_until(lambda: self.voters(members) == 3, lambda: str(leader.info()))
            self.assert_equal(members)
            self.assert_kept(members, writer)
            # One that was stopped may have had the rest in its sockets.
            self.assertTrue(how == "stopped" or "The copy is in place" in away.server.log(), away.server.log())
        self.assertGreaterEqual(leader.redis.info("stats")["sync_full"], 1)

    def test_clocks_that_are_hours_apart(self):
        library = next((path for path in glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)
        if library is None:
            self.skipTest("libfaketime is not installed")
        members = self.make(replica_election_timeout=STEADY_MS)
        for member in members:  # all are needed where a set begins
            member.server.start()
        self.wait_leader(members)
        for member in members:
            member.server.kill()
        ahead, behind, right = members
        for member, offset in ((ahead, "+1h"), (behind, "-1h"), (right, "+0")):
            member.server.environment.update({"LD_PRELOAD": library, "FAKETIME": offset,
                                              "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
        # One that has led an hour ahead has set the time of all.
        for member in (behind, right):
            member.server.start()

        def lead(member):
            def leads():
                leader = self.wait_leader([each for each in members if each.server.process is not None])
                if leader is member:
                    return True
                leader.refusal(f"FAILOVER TO 127.0.0.1 {member.port}")
                return False
            self.wait_until(leads, "it leads")
        stamps = []

        def stamp(member):
            member.run("CPUT t s f:a x")
            stamps.append(member.run("CGET t s f:a WITHTS")[0])
        lead(right)
        right.run("TABLE CREATE t FAMILY f")
        stamp(right)
        right.run("CMUTATE t r PUT f:soon 1 TTL 30m")
        right.run("CMUTATE t r PUT f:late 1 TTL 3h")
        self.assertEqual("1", right.run("CGET t r f:soon"))
        ahead.server.start()
        lead(ahead)
        stamp(ahead)
        self.assertEqual((None, "1"), (ahead.run("CGET t r f:soon"), ahead.run("CGET t r f:late")))
        for member in (behind, right):
            lead(member)
            self.assertEqual((None, "1"), (member.run("CGET t r f:soon"), member.run("CGET t r f:late")))
            stamp(member)
        self.assert_equal(members)
        last = int(re.split("[-:]", right.run("DEBUG DIGEST WITHLSN")[1])[1])

        def is_marked(member):
            """Whether the time of what came last is in its log: it is marked there once a second."""
            dump = subprocess.run([binary(), "--dump", member.server.directory], capture_output=True, text=True, check=False)
            marks = re.findall(r"^# committed up to [0-9]+[-:]([0-9]+)", dump.stdout, re.MULTILINE)
            return bool(marks) and int(marks[-1]) >= last
        self.wait_until(lambda: all(map(is_marked, members)), "the time is marked")
        for member in members:
            member.server.kill()
        for member in (behind, right):
            member.server.start()
        leader = self.wait_leader([behind, right])
        self.assertEqual((None, "1"), (leader.run("CGET t r f:soon"), leader.run("CGET t r f:late")))
        stamp(leader)
        self.assertEqual(sorted(set(map(int, stamps))), list(map(int, stamps)))
        self.assertGreater(abs(leader.info()["replica_skew_micros"]), 1_000_000_000)

    def test_a_single_server_becomes_the_first_of_a_set(self):
        members = self.make()
        single = CellarServer(members[2].directory, port=members[2].port, save="")
        single.start()
        with single.client() as client:
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            for i in range(100):
                client.execute_command("CPUT", "t", f"r{i}", "f:a", str(i))
        single.stop()
        for member in members:
            member.server.start()
        leader = self.wait_leader(members)
        self.assertEqual("7", leader.run("CGET t r7 f:a"))
        self.assert_equal(members)
        # And no node of a set is a single server by mistake.
        members[0].server.stop()
        wrong = CellarServer(members[0].directory, port=members[0].port)
        wrong.spawn()
        self.assertEqual(1, wrong.process.wait(START_SECONDS_MAX))
        self.assertIn("cluster-nodes", wrong.log())

    def test_what_is_wrong_is_said_at_the_start(self):
        port = free_port()
        for options, text in (({"cluster_nodes": "127.0.0.1:1"}, "names no address of this node"),
                              ({"cluster_nodes": f"127.0.0.1:{port} localhost:{port}"}, "names two addresses"),
                              ({"cluster_nodes": "nonsense"}, "host:port"),
                              ({"cluster_nodes": f"127.0.0.1:{port}", "appendonly": "no"}, "needs a log"),
                              ({"cluster_nodes": f"127.0.0.1:{port}", "replicaof": "127.0.0.1 1"}, "exclude")):
            with tempfile.TemporaryDirectory() as directory:
                if isinstance(options.get("cluster_nodes"), str):
                    options["cluster_nodes"] = options["cluster_nodes"].split()
                server = CellarServer(directory, port=port, **options)
                server.spawn()
                self.assertIn(server.process.wait(START_SECONDS_MAX), (1, 2), options)  # 2: a wrong word
                self.assertIn(text, server.log())

    def test_nodes_that_list_different_sets_do_not_start_one(self):
        members = self.make()
        members[2].server.options["cluster-nodes"] = self.nodes[1:]
        members[1].server.options["cluster-nodes"] = self.nodes[1:] + [f"127.0.0.1:{free_port()}"]
        members[1].server.spawn()
        members[2].server.spawn()
        self.wait_until(lambda: members[1].server.process.poll() is not None or
                        members[2].server.process.poll() is not None, "one of them leaves")
        self.assertIn("cluster-nodes differs", members[1].server.log() + members[2].server.log())

    def test_a_set_of_one(self):
        members = self.found(1)
        members[0].run("TABLE CREATE t FAMILY f")
        members[0].run("CPUT t r f:a 1")
        members[0].server.kill()
        members[0].server.start()
        self.wait_leader(members)
        self.assertEqual("1", members[0].run("CGET t r f:a"))

    def test_without_a_lease_reads_are_right_and_answered(self):
        members = self.found(replica_lease="no", replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        self.assertEqual(0, leader.info()["replica_lease"])
        leader.run("TABLE CREATE t FAMILY f")
        for i in range(20):
            leader.run("CPUT", "t", "r", "f:a", str(i))
            self.assertEqual(str(i), leader.run("CGET t r f:a"))


if __name__ == "__main__":
    unittest.main()
