"""A replica set's nodes as Sentinels: what they answer, and real clients that find the leader by them."""

import contextlib
import signal
import time
import unittest

import redis
from redis.sentinel import MasterNotFoundError, Sentinel

from cellar_server import CellarTest, not_on_a_follower, wait_until
from sentinel_writers import HiredisWriters, NodeWriters, PythonWriters, RubyWriters
from replica_sets import STEADY_MS, ReplicaSetCase


def pairs(reply):
    return dict(zip(reply[::2], reply[1::2]))


class SentinelAnswersTest(ReplicaSetCase):
    def known(self, **options):
        """Members that all know their leader, and that one."""
        options.setdefault("replica_election_timeout", STEADY_MS)
        members = self.found(**options)
        self.wait_until(lambda: all(m.run("SENTINEL MASTERS") for m in members), "a leader that all know")
        return members, self.wait_leader(members)

    def test_every_node_names_the_leader(self):
        members, leader = self.known()
        for member in members:
            # Raw replies: redis-py would make something of them.
            raw = redis.Redis(port=member.port, decode_responses=True)
            raw.response_callbacks.clear()
            self.assertEqual(["127.0.0.1", str(leader.port)], raw.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "any"))
            master = pairs(raw.execute_command("SENTINEL", "MASTER", "any"))
            self.assertEqual(("any", "127.0.0.1", str(leader.port), "master", "2", "2", "2"), tuple(
                master[name] for name in ("name", "ip", "port", "flags", "num-slaves", "num-other-sentinels", "quorum")))
            self.assertEqual(["mymaster"], [pairs(each)["name"] for each in raw.execute_command("SENTINEL", "MASTERS")])
            for words in ("REPLICAS", "SLAVES"):
                others = [pairs(each) for each in raw.execute_command("SENTINEL", words, "any")]
                self.assertEqual({str(m.port) for m in members if m is not leader}, {each["port"] for each in others})
                self.assertEqual({"ok"}, {each["master-link-status"] for each in others})
            others = [pairs(each) for each in raw.execute_command("SENTINEL", "SENTINELS", "any")]
            self.assertEqual({str(m.port) for m in members if m is not member}, {each["port"] for each in others})
            self.assertEqual("OK 3 usable Sentinels. Quorum and failover authorization can be reached",
                             raw.execute_command("SENTINEL", "CKQUORUM", "any"))
            own = raw.execute_command("SENTINEL", "MYID")
            self.assertEqual(40, len(own))
            self.assertIn(f"id={own[24:]},ip=127.0.0.1,port={member.port},", raw.execute_command("INFO", "replication"))

    def test_each_node_has_its_own_priority(self):
        members, leader = self.known()
        for number, member in enumerate(members):
            member.run(f"CONFIG SET replica-priority {number * 7}")
        wanted = {str(m.port): str(number * 7) for number, m in enumerate(members) if m is not leader}

        def told(member):
            raw = redis.Redis(port=member.port, decode_responses=True)
            raw.response_callbacks.clear()
            return {each["port"]: each["slave-priority"]
                    for each in map(pairs, raw.execute_command("SENTINEL", "REPLICAS", "any"))}

        for member in members:
            self.wait_until(lambda member=member: told(member) == wanted, f"{wanted} at {member.port}")

    def test_a_name_that_is_given_is_the_only_one(self):
        members, _ = self.known(sentinel_name="orders")
        self.assertIsNone(members[0].run("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"))
        self.assertIsNotNone(members[0].run("SENTINEL GET-MASTER-ADDR-BY-NAME orders"))
        for words in ("MASTER", "REPLICAS", "SENTINELS", "CKQUORUM", "FAILOVER"):
            self.assertIn("No such master with that name", members[0].refusal(f"SENTINEL {words} mymaster"))

    def test_without_a_majority_nobody_is_named(self):
        members, leader = self.known()
        left = next(m for m in members if m is not leader)
        for member in members:
            if member is not left:
                member.server.kill()
        self.wait_until(lambda: left.run("SENTINEL GET-MASTER-ADDR-BY-NAME m") is None, "no leader")
        self.wait_until(lambda: "NOQUORUM 1 usable" in left.refusal("SENTINEL CKQUORUM m"), "no quorum")
        self.assertEqual({}, dict(left.redis.sentinel_masters()))
        self.assertIn("no leader", left.refusal("SENTINEL MASTER m"))
        sentinel = Sentinel([("127.0.0.1", left.port)], socket_timeout=2)
        self.assertRaises(MasterNotFoundError, sentinel.discover_master, "mymaster")

    def test_a_leader_that_has_just_died_is_not_named(self):
        """A client asks the moment its connection breaks: the question is there before the news that the leader is gone."""
        members, _ = self.known()
        for words in (["GET-MASTER-ADDR-BY-NAME", "m"], ["MASTER", "m"], ["MASTERS"]):
            leader = self.wait_leader(members)
            others = [m for m in members if m is not leader]
            asks = [m.redis.connection_pool.get_connection("SENTINEL") for m in others]
            for member, ask in zip(others, asks):
                self.wait_until(lambda m=member: str(leader.port) in m.refusal("SENTINEL", *words), "it knows the leader")
                ask.send_command("SENTINEL", *words)
                self.assertIn(str(leader.port), str(ask.read_response()))
            leader.server.process.send_signal(signal.SIGSTOP)
            time.sleep(0.1)  # nothing of it is on its way any more
            for ask in asks:
                ask.send_command("PING")
                self.assertEqual("PONG", ask.read_response())
            for member, ask in zip(others, asks):
                member.server.process.send_signal(signal.SIGSTOP)
                ask.send_command("SENTINEL", *words)
            leader.server.kill()
            for member in others:
                member.server.process.send_signal(signal.SIGCONT)
            for ask in asks:
                try:
                    self.assertNotIn(str(leader.port), str(ask.read_response()))
                except redis.ResponseError as error:
                    self.assertIn("no leader", str(error))
                ask.disconnect()
            leader.server.start()
            self.wait_until(lambda: sum(m.info().get("master_link_status") == "up" for m in members) == 2, "all are there")

    def test_of_a_leader_that_hangs_the_answer_does_not_wait_for_ever(self):
        members, leader = self.known()
        other = next(m for m in members if m is not leader)
        leader.server.process.send_signal(signal.SIGSTOP)
        try:
            for words in ("SENTINEL GET-MASTER-ADDR-BY-NAME m", "SENTINEL MASTERS"):
                self.assertIsNotNone(other.refusal(words))
            with other.redis.pipeline() as transaction:
                transaction.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m")
                self.assertEqual(1, len(transaction.execute()))
        finally:
            leader.server.process.send_signal(signal.SIGCONT)

    def test_failover_and_the_news_of_it(self):
        members, leader = self.known()
        other = next(m for m in members if m is not leader)
        third = next(m for m in members if m not in (leader, other))
        news = other.redis.pubsub()
        news.subscribe("+switch-master", "+sdown", "-sdown")
        for _ in range(3):
            self.assertEqual("subscribe", news.get_message(timeout=60)["type"])

        def told(channel):
            """What it says next, whatever the others say before."""
            def next_one():
                message = news.get_message(timeout=1)
                return message if message and message["channel"] == channel else None
            return wait_until(next_one, f"news of {channel}")["data"]

        # A first leader is no news, but is noted, as what is told of a third member shows.
        third.server.kill()
        self.assertIn(f"127.0.0.1 {third.port}", told("+sdown"))
        third.server.start()
        address = f"127.0.0.1:{third.port} 127.0.0.1 {third.port}"
        self.assertEqual(f"slave {address} @ mymaster 127.0.0.1 {leader.port}", told("-sdown"))
        self.wait_until(lambda: other.refusal("SENTINEL FAILOVER m") == "no error: OK", lambda: other.refusal("SENTINEL FAILOVER m"))
        self.hand_over(members, former=leader)
        new = self.wait_leader(members, but=leader)
        self.assertEqual(f"mymaster 127.0.0.1 {leader.port} 127.0.0.1 {new.port}", told("+switch-master"))

    def test_redis_py_finds_the_next_leader(self):
        members, leader = self.known()
        leader.run("TABLE CREATE t FAMILY f")
        sentinel = Sentinel([("127.0.0.1", m.port) for m in members], socket_timeout=5)
        client = sentinel.master_for("mymaster", socket_timeout=5)
        reader = sentinel.slave_for("mymaster", socket_timeout=5)

        def answers(by, reply, *words):
            """Whether it does by now: a follower may not have the table yet, a leader may be gone."""
            with contextlib.suppress(redis.RedisError):
                return by.execute_command(*words) == reply
            return False
        self.wait_until(lambda: answers(client, b"OK", "CPUT", "t", "a", "f:q", "1"), "a write")
        self.wait_until(lambda: answers(reader, b"1", "CGET", "t", "a", "f:q"), "a follower that has it")
        leader.server.kill()
        self.wait_until(lambda: answers(client, b"OK", "CPUT", "t", "b", "f:q", "2"), "a write after the kill")
        self.wait_until(lambda: answers(client, b"1", "CGET", "t", "a", "f:q"), "what was written before")

    def test_node_clients_find_the_next_leader(self):
        self.check_writers(NodeWriters)

    def test_ruby_finds_the_next_leader(self):
        self.check_writers(RubyWriters)

    def test_redis_py_writes_on_behind_the_next_leader(self):
        self.check_writers(PythonWriters)

    def test_hiredis_finds_the_next_leader(self):
        self.check_writers(HiredisWriters)

    def check_writers(self, kind):
        members, leader = self.known()
        leader.run("TABLE CREATE t FAMILY f")
        writers = kind(self, [m.port for m in members], "mymaster", "t")
        writers.wait()
        leader.server.kill()
        self.wait_leader(members, but=leader)
        writers.wait()
        for name in writers.LIBRARIES:
            for row in writers.rows(name):
                self.assertEqual(str(row), self.lead(members, f"CGET t {name}-{row} f:a"))


@not_on_a_follower("it is in a set")
class AloneTest(CellarTest):
    def test_a_single_server_says_that_it_is_no_part_of_one(self):
        for words in ("MASTERS", "GET-MASTER-ADDR-BY-NAME m", "MYID", "CKQUORUM m", "FAILOVER m"):
            with self.assertRaisesRegex(redis.ResponseError, "in no replica set: see cluster-nodes"):
                self.redis.execute_command(*f"SENTINEL {words}".split())


if __name__ == "__main__":
    unittest.main()
