"""Feeds on replicas: the same entries with the same ids, over restarts, copies and a change of leader."""

import time
import unittest

import redis

from feed_model import FeedModel, as_sent, key_of, read_to_end, table_cells
from group_model import state_of
from replica_sets import ReplicaSetCase
from replicas import Node, ReplicaTest


class FeedReplicaTest(ReplicaTest):
    def entries(self, node, feed="changes"):
        return read_to_end(as_sent(node.server.client()), feed)

    def assert_told_alike(self, leader, *others):
        """Each has what the leader tells, from where it has been following on."""
        self.assert_copied(leader, *others)
        told = self.entries(leader)
        for other in others:
            found = self.entries(other)
            self.assertEqual(told[len(told) - len(found):], found)
            model = FeedModel()
            for id, fields in told:
                model.apply(id, fields)
            self.assertEqual(table_cells(other.server.client(), "t"), model.cells("t"))
        return told

    def pair(self, **options):
        leader, follower = Node(self, **options), Node(self, **options)
        leader.run("TABLE CREATE t FAMILY f FAMILY g")
        return leader, follower

    def test_a_replica_tells_the_same_and_so_does_who_takes_over(self):
        leader, follower = self.pair(appendfsync="everysec")
        follower.follow(leader)
        self.assert_copied(leader, follower)
        leader.run("FEED CREATE changes ON 0")
        leader.run("FEED CREATE past ON 0 OLD EXPIRED")
        leader.load(200)
        leader.run("FAMILY ALTER t f VERSIONS 1")
        leader.load(30)
        leader.run("CDEL t r1")
        leader.run("CDELRANGE t PREFIX r2")
        self.assert_copied(leader, follower)
        past = self.entries(leader, "past")
        self.assertEqual(past, self.entries(follower, "past"))
        self.assertTrue(any(b"old" in flat for _, flat in past) and any(b"by" in flat for _, flat in past))
        leader.run("TABLE CREATE later FAMILY f")
        told = self.assert_told_alike(leader, follower)
        self.assertEqual(len(told), len(self.entries(follower)))
        self.assertIn("READONLY", follower.refusal("FEED CREATE mine ON 0").upper())
        self.assertIn("READONLY", follower.refusal("FEED DROP changes").upper())
        follower.kill()
        leader.load(50, first=200)
        follower.restart()
        follower.follow(leader)
        told = self.assert_told_alike(leader, follower)
        self.assertEqual(len(told), len(self.entries(follower)))
        # The former follower goes on behind what has been told.
        follower.run("REPLICAOF NO ONE")
        leader.kill()
        follower.load(20, first=300)
        after = self.entries(follower)
        self.assertEqual(told, after[:len(told)])
        self.assertEqual(len(told) + 60, len(after))
        self.assertGreater(key_of(after[len(told)][0]), key_of(told[-1][0]))

    def test_a_copy_has_the_feed_and_says_what_it_lacks(self):
        leader, follower = self.pair(appendfsync="always")
        leader.run("FEED CREATE changes ON 1 t")
        leader.load(100)
        leader.run("SAVE")
        told = self.entries(leader)
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertEqual(["changes"], follower.run("FEED LIST"))
        leader.load(30, first=500)
        told = self.assert_told_alike(leader, follower)
        found = self.entries(follower)
        if len(found) < len(told):
            with self.assertRaisesRegex(redis.ResponseError, "TRIMMED"):
                follower.run("XREAD STREAMS changes", told[0][0])
        self.assertGreaterEqual(len(found), 90)
        rest = as_sent(follower.server.client()).execute_command("XREAD", "STREAMS", "changes", found[-31][0])
        self.assertEqual(found[-30:], rest[0][1])

    def test_a_reader_that_waits_on_a_replica_is_woken(self):
        leader, follower = self.pair(appendfsync="always")
        follower.follow(leader)
        self.assert_copied(leader, follower)
        leader.run("FEED CREATE changes ON 1 t")
        leader.run("CPUT t r f:a 1")
        last = self.assert_told_alike(leader, follower)[-1][0]
        client = as_sent(follower.server.client())
        pool = client.connection_pool.get_connection("XREAD")
        pool.send_command("XREAD", "BLOCK", 20_000, "STREAMS", "changes", last)
        leader.run("CPUT t r f:a 2")
        reply = pool.read_response()
        self.assertIn(b"2", reply[0][1][0][1])
        # FEED DROP on the leader ends the wait on the replica.
        pool.send_command("XREAD", "BLOCK", 20_000, "STREAMS", "changes", reply[0][1][0][0])
        leader.run("FEED DROP changes")
        with self.assertRaisesRegex(redis.ResponseError, "NOFEED"):
            pool.read_response()
        client.connection_pool.release(pool)

    def test_groups_are_the_same_and_go_on_with_who_takes_over(self):
        leader, follower = self.pair(appendfsync="always")
        follower.follow(leader)
        self.assert_copied(leader, follower)
        leader.run("FEED CREATE changes ON 1 t")
        leader.load(20)
        client = as_sent(leader.server.client())
        run = client.execute_command
        run("XGROUP CREATE", "changes", "g", "0")
        run("XREADGROUP", "GROUP", "g", "ann", "COUNT", 9, "STREAMS", "changes", ">")
        # In the copy that a follower begins with, and in what comes behind it.
        leader.run("SAVE")
        late = Node(self, appendfsync="always")
        late.follow(leader)
        self.assert_copied(leader, late)
        told = []
        for _ in range(3):
            [[_, entries]] = run("XREADGROUP", "GROUP", "g", "bob", "COUNT", 5, "STREAMS", "changes", ">")
            told += [id for id, _ in entries]
            run("XACK", "changes", "g", *told[-2:])
        run("XCLAIM", "changes", "g", "eve", 0, told[0], "JUSTID")
        run("XGROUP CREATE", "changes", "gone", "$")
        run("XGROUP DESTROY", "changes", "gone")
        self.assert_copied(leader, follower, late)
        state = state_of(client, "changes")
        self.assertEqual(state, state_of(follower.server.client(), "changes"))
        self.assertEqual(state, state_of(late.server.client(), "changes"))
        for line in ("XGROUP CREATE changes mine 0", "XGROUP SETID changes g 0", "XGROUP DESTROY changes g",
                     "XGROUP CREATECONSUMER changes g x", "XGROUP DELCONSUMER changes g bob",
                     "XREADGROUP GROUP g ann STREAMS changes >", "XREADGROUP GROUP g ann STREAMS changes 0",
                     "XACK changes g 1-1", "XCLAIM changes g ann 0 1-1", "XAUTOCLAIM changes g ann 0 0"):
            self.assertIn("READONLY", follower.refusal(line).upper(), line)
        self.assertEqual(state, state_of(follower.server.client(), "changes"))
        follower.run("REPLICAOF NO ONE")
        leader.kill()
        self.assertEqual(state, state_of(follower.server.client(), "changes"))
        follower.load(5, first=700)
        client = as_sent(follower.server.client())
        [[_, entries]] = client.execute_command("XREADGROUP", "GROUP", "g", "bob", "STREAMS", "changes", ">")
        every = [id for id, _ in self.entries(follower)]
        self.assertEqual(every[every.index(told[-1]) + 1:], [id for id, _ in entries])
        client.execute_command("XACK", "changes", "g", *every)
        self.assertEqual(0, client.xpending("changes", "g")["pending"])


class FeedSetTest(ReplicaSetCase):
    def test_a_reader_that_waits_on_any_member_hears_of_a_write_before_the_next_heartbeat(self):
        """What is committed a follower would learn with that. Each write here follows what was heard of the one before, so
        that it would be heard of a whole second later, and never soon."""
        heartbeat = 1.0
        members = self.found(replica_election_timeout=int(heartbeat * 10_000))
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        leader.run("FEED CREATE changes ON 1 t")
        leader.run("CPUT t r f:a first")
        self.assert_equal(members)
        last = read_to_end(as_sent(leader.server.client()), "changes")[-1][0]
        for member in members:
            client = as_sent(member.server.client())
            reader = client.connection_pool.get_connection("XREAD")
            took = []
            for turn in range(11):
                reader.send_command("XREAD", "BLOCK", 60_000, "STREAMS", "changes", last)
                self.wait_until(lambda member=member: member.info("clients")["blocked_clients"] == 1, "a client that waits")
                begin = time.monotonic()
                leader.run("CPUT", "t", "r", "f:a", turn)
                [[_, [[last, fields]]]] = reader.read_response()
                took.append(time.monotonic() - begin)
                self.assertEqual(str(turn).encode(), dict(zip(fields[::2], fields[1::2]))[b"value"])
            client.connection_pool.release(reader)
            took.sort()
            self.assertLess(took[len(took) // 4], heartbeat / 2, f"{member is leader} {took}")


if __name__ == "__main__":
    unittest.main()
