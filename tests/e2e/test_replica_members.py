"""Members of a replica set come, go and change their kind: REPLICA LIST, ADD, REMOVE, PROMOTE, DEMOTE, and nodes that join
by themselves; under load, with the leader killed in the middle: nothing that was acknowledged is lost.

CELLAR_MEMBER_ROUNDS: how many changes are made with a leader killed in the middle.
CELLAR_OLD_BINARY: a server of an earlier version that has sets, for a rolling upgrade and back.
"""

import os
import time
import unittest

import redis

from cellar_server import CellarServer, CellarTest, binary, free_port, not_on_a_follower, wait_until
from replicas import chance
from replica_sets import STEADY_MS, Member, ReplicaSetCase, Writer

ROUNDS = int(os.environ.get("CELLAR_MEMBER_ROUNDS", "4"))


class MembersTest(ReplicaSetCase):
    def one_more(self, nodes=None, **options):
        """A node beside those of self.nodes, not started; it lists `nodes`, or all, and itself."""
        port = free_port()
        member = Member(self, port, (nodes or self.nodes) + [f"127.0.0.1:{port}"], **options)
        member.connect()
        return member

    def rows(self, member):
        """REPLICA LIST by port, or nothing while it cannot be asked."""
        try:
            listed = member.run("REPLICA LIST")
        except redis.RedisError:
            return {}
        rows = [dict(zip(each[::2], each[1::2])) for each in listed]
        return {row["port"]: row for row in rows}

    def kinds(self, members):
        """What the leader lists: kind by port. More than one member at an address is no end."""
        try:
            leader = next(member for member in members if member.leads())
            listed = [dict(zip(each[::2], each[1::2])) for each in leader.run("REPLICA LIST")]
        except (StopIteration, redis.RedisError):
            return {}
        return {row["port"]: row["kind"] for row in listed} if len({row["port"] for row in listed}) == len(listed) else {}

    def wait_kinds(self, members, kinds):
        wanted = {member.port: kind for member, kind in kinds.items()}
        self.wait_until(lambda: self.kinds(members) == wanted,
                        lambda: f"{self.kinds(members)} instead of {wanted}\n" + "\n".join(m.server.log()[-1500:] for m in members))

    def order(self, members, words):
        """Has the leader do it, whoever that is; asks again where it is to be asked again."""
        def done():
            leader = self.wait_leader(members)
            answer = leader.refusal(words)
            if any(each in answer for each in ("TRYAGAIN", "under way", "ConnectionError", "TimeoutError", "read only", "no leader",
                                               "not connected", "nobody can take over", "has no quorum")):
                return False
            return answer == "no error: OK" or any(each in answer for each in ("already", "no member"))
        self.wait_until(done, lambda: f"{words}: {self.wait_leader(members).refusal(words)}", 0.05)

    def at(self, member):
        return f"127.0.0.1:{member.port}"

    def test_members_are_listed_on_each_node(self):
        members = self.found(replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        self.wait_until(lambda: {row["state"] for row in self.rows(leader).values()} == {"leader", "online"}, "all are online")
        for member in members:
            self.wait_until(lambda m=member: self.rows(m).get(leader.port, {}).get("state") == "leader", "it knows the leader")
            rows = self.rows(member)
            self.assertEqual({each.port for each in members}, set(rows))
            listed = member.run("REPLICA LIST")
            self.assertEqual(["id", "ip", "port", "kind", "state", "lsn", "lag-ms", "version"], listed[0][::2])
            self.assertEqual(sorted(row[1] for row in listed), [row[1] for row in listed])
            self.assertEqual({("127.0.0.1", "voter")}, {(row["ip"], row["kind"]) for row in rows.values()})
            self.assertRegex(rows[leader.port]["version"], r"^\d+\.\d+")
            self.assertIn(rows[member.port]["id"], member.run("SENTINEL MYID"))
        other = next(member for member in members if member is not leader)
        for words in ("ADD 127.0.0.1 1", f"REMOVE {self.at(leader)}", f"PROMOTE {self.at(leader)}", f"DEMOTE {self.at(leader)}"):
            self.assertEqual(f"ReadOnlyError You can't write against a read only replica. The leader is {self.at(leader)}",
                             other.refusal("REPLICA " + words))

    def test_wrong_words_say_what_was_wanted(self):
        members = self.found(1)
        node = members[0]
        self.assertEqual({"voter"}, {row["kind"] for row in self.rows(node).values()})
        for words, text in (("ADD here", "wrong number of arguments"), ("ADD 127.0.0.1 none", "takes the host and the port"),
                            ("ADD 127.0.0.1 70000", "takes the host and the port"), ("ADD h 1 OBSERVER", "takes STANDBY, WITNESS or nothing"),
                            ("ADD h 1 STANDBY more", "takes STANDBY, WITNESS or nothing"),
                            (f"ADD 127.0.0.1 {node.port}", "is this node"),
                            ("REMOVE 12", "16 hexadecimal digits, or its host:port"), ("PROMOTE nobody:x", "REPLICA PROMOTE takes a member's id"),
                            ("DEMOTE 0000000000000000", "16 hexadecimal digits"), ("REMOVE 00000000000000ff", "there is no member 00000000000000ff"),
                            ("REMOVE 127.0.0.1:1", "there is no member 127.0.0.1:1"), (f"PROMOTE {self.at(node)}", "is a voter already"),
                            (f"REMOVE {self.at(node)}", "a set without voters has no quorum"),
                            (f"DEMOTE {self.at(node)}", "a set without voters has no quorum"),
                            ("NONE", "unknown subcommand")):
            self.assertIn(text, node.refusal("REPLICA " + words), words)
        for name in ("a b", "a\tb", 'a"b', "größe"):
            self.assertIn("letters, digits", node.refusal("CONFIG", "SET", "sentinel-name", name))
        node.run("CONFIG SET sentinel-name my.set-1_2")

    def test_who_cannot_be_added_is_told_why(self):
        members = self.found(replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        nobody = free_port()
        single = CellarServer(save="")
        single.start()
        self.addCleanup(single.stop)
        port = free_port()
        other = Member(self, port, [f"127.0.0.1:{port}"])
        other.server.start()
        self.wait_leader([other])
        filled = self.one_more([f"127.0.0.1:{free_port()}"])
        before = CellarServer(filled.directory, port=filled.port, save="")
        before.start()
        with before.client() as client:
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        before.stop()
        filled.server.start()
        leader.connect()
        for what, text in ((nobody, "does not answer as a node of a replica set: "),
                           (single.port, "does not answer as a node of a replica set: it refuses: ERR this server is no member"),
                           (port, "belongs to another replica set"), (filled.port, "holds data of no set"),
                           (members[0].port, "already" if members[0] is not leader else "is this node")):
            answer = leader.refusal(f"REPLICA ADD 127.0.0.1 {what}")
            if "no leader" in answer or "read only" in answer or "Connection" in answer:
                leader = self.wait_leader(members)
                leader.connect()
                answer = leader.refusal(f"REPLICA ADD 127.0.0.1 {what}")
            self.assertIn(text, answer)
        self.assertIsNone(filled.server.process.poll(), "to ask a node does not end it")
        self.assertEqual(3, len(self.rows(leader)))

    def test_a_node_that_lists_the_others_joins_by_itself(self):
        members = self.found()
        self.lead(members, "TABLE CREATE t FAMILY f")
        writer = Writer(members)
        new = self.one_more()
        new.server.start()
        self.wait_kinds(members, {member: "voter" for member in members + [new]})
        # One that is known to none but a follower: it finds the others by that one.
        other = next(member for member in members if not member.leads())
        standby = self.one_more([self.at(other)], replica_kind="standby")
        standby.server.start()
        kinds = {member: "voter" for member in members + [new]} | {standby: "standby"}
        self.wait_kinds(members, kinds)
        every = members + [new, standby]
        for member in every:
            self.wait_until(lambda m=member: {row["kind"] for row in self.rows(m).values()} == {"voter", "standby"} and
                            "down" not in {row["state"] for row in self.rows(m).values()}, "each is linked with each")
        writer.end()
        self.assert_equal(every)
        self.assert_kept(every, writer)
        self.wait_until(lambda: standby.info().get("replica_feature_level") == "11/11", lambda: str(standby.info()))
        # It stays one over restarts of all, and it counts for nothing.
        for member in every:
            member.server.kill()
        for member in every:
            member.server.start()
        self.wait_leader(every)
        self.wait_kinds(every, kinds)
        self.wait_until(lambda: "4 usable" in self.wait_leader(every).refusal("SENTINEL CKQUORUM any"), "voters count")
        self.assert_equal(every)
        # The set survives two of its four voters no more than one of three: but the standby may be gone.
        standby.server.kill()
        self.lead(every, "CPUT t after f:a 1")

    def test_a_node_is_added_promoted_demoted_and_removed(self):
        members = self.found()
        self.lead(members, "TABLE CREATE t FAMILY f")
        writer = Writer(members)
        new = self.one_more([self.at(members[0])])
        new.server.options["cluster-nodes"] = [self.at(new), f"127.0.0.1:{free_port()}"]  # it finds nobody
        new.server.start()
        every = members + [new]
        self.order(members, f"REPLICA ADD 127.0.0.1 {new.port} STANDBY")
        self.wait_kinds(every, {member: "voter" for member in members} | {new: "standby"})
        time.sleep(0.5)  # it stays one
        self.assertEqual("standby", self.kinds(every).get(new.port, "standby"))
        self.order(members, f"REPLICA PROMOTE {self.at(new)}")
        self.wait_kinds(every, {member: "voter" for member in every})
        gone = next(member for member in members if not member.leads())
        self.order(every, f"REPLICA DEMOTE {self.at(gone)}")
        self.wait_kinds(every, {member: "standby" if member is gone else "voter" for member in every})
        self.order(every, f"REPLICA REMOVE {self.rows(self.wait_leader(every))[gone.port]['id']}")
        left = [member for member in every if member is not gone]
        self.wait_kinds(left, {member: "voter" for member in left})
        # It knows, and does not come back, though it is listed, and though it is started again.
        for _ in range(2):
            self.wait_until(lambda: "this node is no member of the set any more" in gone.refusal("CPUT t no f:a 1"),
                            lambda: gone.refusal("CPUT t no f:a 1"))
            gone.server.kill()
            gone.server.start()
        time.sleep(1)  # it could come back in
        self.wait_kinds(left, {member: "voter" for member in left})
        # Unless it is asked to: then it goes on from what it has.
        self.order(left, f"REPLICA ADD 127.0.0.1 {gone.port}")
        self.wait_kinds(every, {member: "voter" for member in every})
        writer.end()
        self.assert_equal(every)
        self.assert_kept(every, writer)

    def test_a_leader_hands_over_before_it_goes(self):
        members = self.found()
        self.lead(members, "TABLE CREATE t FAMILY f")
        writer = Writer(members)
        writer.wait()
        leader = self.wait_leader(members)
        self.order(members, f"REPLICA DEMOTE {self.at(leader)}")
        self.wait_kinds(members, {member: "standby" if member is leader else "voter" for member in members})
        self.order(members, f"REPLICA PROMOTE {self.at(leader)}")
        self.wait_kinds(members, {member: "voter" for member in members})
        gone = self.wait_leader(members)
        self.order(members, f"REPLICA REMOVE {self.at(gone)}")
        left = [member for member in members if member is not gone]
        self.wait_kinds(left, {member: "voter" for member in left})
        self.wait_until(lambda: "is no member of its replica set any more" in gone.server.log(), lambda: gone.server.log())
        writer.end()
        self.assert_equal(left)
        self.assert_kept(left, writer)

    def test_what_would_leave_no_majority_is_refused(self):
        members = self.found(replica_election_timeout=STEADY_MS)
        leader = self.wait_leader(members)
        others = [member for member in members if member is not leader]
        others[0].server.kill()
        refused = "a set of 2 voters, 1 of which is up and has caught up, has no quorum"
        self.wait_until(lambda: refused in leader.refusal(f"REPLICA REMOVE {self.at(others[1])}"),
                        lambda: leader.refusal(f"REPLICA REMOVE {self.at(others[1])}"))
        self.assertIn(refused, leader.refusal(f"REPLICA REMOVE {self.at(leader)}"))
        self.assertIn(refused, leader.refusal(f"REPLICA DEMOTE {self.at(others[1])}"))
        self.order([leader, others[1]], f"REPLICA REMOVE {self.at(others[0])}")
        self.wait_kinds(members, {leader: "voter", others[1]: "voter"})
        self.order([leader, others[1]], f"REPLICA REMOVE {self.at(others[1])}")
        self.wait_kinds([leader], {leader: "voter"})
        leader.run("TABLE CREATE t FAMILY f")
        self.assertIn("a set without voters has no quorum", leader.refusal(f"REPLICA REMOVE {self.at(leader)}"))

    def test_a_set_grows_from_one_node(self):
        first = self.found(1)[0]
        first.run("TABLE CREATE t FAMILY f")
        for i in range(100):
            first.run("CPUT", "t", f"r{i}", "f:a", str(i))
        self.assertIn("nothing survives its loss", first.server.log())
        members = [first]
        for _ in range(2):
            new = self.one_more([self.at(first)])
            new.server.start()
            members.append(new)
            self.wait_kinds(members, {member: "voter" for member in members})
        self.assert_equal(members)
        first.server.kill()
        self.assertEqual("99", self.lead(members[1:], "CGET t r99 f:a"))

    def start_elsewhere(self, member, members):
        """Starts it at another port, of which the others are not told; they list it there."""
        member.port = member.server.port = free_port()
        member.server.options["cluster-nodes"] = [self.at(each) for each in members]
        member.server.start()
        member.connect()
        self.wait_kinds(members, {each: "voter" for each in members})

    def test_a_member_moves_to_another_address(self):
        members = self.found()
        self.lead(members, "TABLE CREATE t FAMILY f")
        for _ in range(2):
            moved = next(member for member in members if not member.leads())
            moved.server.stop()
            self.start_elsewhere(moved, members)
            self.lead(members, "CPUT t r f:a 1")
            self.assert_equal(members)
        # Also the leader, which follows then.
        leader = self.wait_leader(members)
        leader.server.kill()
        self.start_elsewhere(leader, members)
        self.assert_equal(members)

    def told(self, members):
        return "\n".join(f"{m.port}: {m.info()}\n{self.rows(m)}\n{m.server.log()[-1500:]}" for m in members)

    def is_itself(self, members, member):
        """It is listed, and not the one that was emptied there."""
        leader = next((each for each in members if each.leads()), None)
        return leader is not None and self.rows(leader).get(member.port, {}).get("id") == member.info().get("replica_id")

    def outcomes(self, member):
        """How often it has said what came of its leaving."""
        return sum(member.server.log().count(text) for text in ("is no member of its replica set", "stays what it is"))

    def wait_left(self, killed):
        """A leader that is to leave asks the next one for it, which may come late."""
        if self.leaves is None or self.leaves[0] is killed:
            return
        member, before = self.leaves
        wait_until(lambda: self.outcomes(member) != before)
        self.assertGreater(self.outcomes(member), before, member.server.log()[-2000:])

    def change(self, mix, members, spare):
        """One change, begun: what has to be so in the end, as a list of voters and one of standbys."""
        kinds = self.kinds(members)
        self.leaves = None
        if not kinds:
            return None
        voters = [member for member in members if kinds.get(member.port) == "voter"]
        out = [member for member in spare if member.port not in kinds]
        leader = self.wait_leader(members)
        what = mix.choice(("add", "replace", "demote", "remove", "leave"))
        if what == "add" and out:
            leader.refusal(f"REPLICA ADD 127.0.0.1 {out[0].port} {mix.choice(('STANDBY', ''))}".strip())
        elif what == "replace" and len(voters) >= 3:
            lost = mix.choice([member for member in voters if member is not leader])
            lost.server.kill()
            lost.wipe()
            lost.server.start()
        elif what in ("demote", "remove") and len(voters) > 3:
            leader.refusal(f"REPLICA {what} {self.at(mix.choice([member for member in voters if member is not leader]))}")
        elif what == "leave" and len(voters) > 3:
            self.leaves = (leader, self.outcomes(leader))
            if leader.refusal(f"REPLICA REMOVE {self.at(leader)}") != "no error: OK":
                self.leaves = None
        else:
            return None
        return what

    def test_members_change_while_leaders_are_killed(self):
        seed, mix = chance()
        members = self.found()
        every = members + [self.one_more() for _ in range(2)]
        self.lead(members, "TABLE CREATE t FAMILY f")
        for new in every[3:]:
            new.server.start()
        self.wait_kinds(every, {member: "voter" for member in every})
        writer = Writer(every)
        done = 0
        while done < ROUNDS:
            what = self.change(mix, every, every)
            if what is None:
                continue
            time.sleep(mix.random() * 0.3)
            leader = next((member for member in every if member.leads()), None)
            moment = time.monotonic()
            if leader is not None:
                leader.server.kill()
            self.wait_until(lambda m=moment: writer.gap_after(m) is not None,
                            lambda: f"seed {seed}: writes go on after {what}\n" + self.told(every))
            if leader is not None:
                leader.server.start()
            self.wait_left(leader)
            done += 1
            # All come back as voters, one way or the other.
            for member in every:
                def back(member=member):
                    kind = self.kinds(every).get(member.port)
                    if kind == "voter" and self.is_itself(every, member):
                        return True
                    if kind == "voter":
                        return False
                    if kind is not None:
                        self.wait_leader(every).refusal(f"REPLICA PROMOTE {self.at(member)}")
                    elif self.kinds(every):
                        self.wait_leader(every).refusal(f"REPLICA ADD 127.0.0.1 {member.port}")
                    return False
                self.wait_until(back, lambda m=member: f"seed {seed}: after {what} {m.port} is no voter: {self.kinds(every)}\n" +
                                m.server.log()[-2000:] + self.wait_leader(every).server.log()[-2000:], 0.05)
        self.wait_until(lambda: len(writer.acknowledged) > 50, "writes go on")
        writer.end()
        self.assert_equal(every)
        self.assert_kept(every, writer)


    def use(self, member, path):
        arguments = type(member.server).arguments
        member.server.arguments = lambda: [path] + arguments(member.server)[1:]

    def roll(self, members, path):
        """The followers, then the last one."""
        for member in sorted(members, key=lambda each: each.leads()):
            if member.leads():
                member.refusal("FAILOVER")
                self.wait_until(lambda m=member: not m.leads(), "it hands over")
            member.server.stop()
            self.use(member, path)
            member.server.start()
            self.wait_until(lambda m=member: m.leads() or m.info().get("master_link_status") == "up", lambda: self.told(members))

    def test_versions_change_node_by_node_and_back(self):
        old = os.environ.get("CELLAR_OLD_BINARY")
        if old is None:
            self.skipTest("CELLAR_OLD_BINARY names no server of an earlier version")
        members = self.make()
        for member in members:
            self.use(member, old)
            member.server.start()
        self.lead(members, "TABLE CREATE t FAMILY f")
        writer = Writer(members)
        for path in (binary(), old, binary()):
            self.roll(members, path)
        self.wait_until(lambda: len(writer.acknowledged) > 50, "writes go on")
        writer.end()
        self.assert_equal(members)
        self.assert_kept(members, writer)
        # What an older one could not read is not written while it is there.
        followers = [member for member in members if not member.leads()]
        followers[0].server.stop()
        self.use(followers[0], old)
        followers[0].server.start()
        self.wait_until(lambda: followers[0].info().get("master_link_status") == "up", lambda: self.told(members))
        level = int(followers[0].info()["replica_feature_level"].split("/")[0])
        asked = [(2, f"REPLICA DEMOTE {self.at(followers[1])}"), (2, "SNAPSHOT CREATE s REPLACE"), (2, "COPY t u REPLACE"),
                 (4, "TABLE CREATE c FAMILY f COMPRESS lz4"), (4, "FAMILY ALTER t f COMPRESS zstd"),
                 (6, "TABLE CREATE d FAMILY f COLUMN a i64"), (6, "FAMILY ADD t g COLUMN a i64"),
                 (6, "FAMILY ALTER t f COLUMN a i64 KEEP"), (6, "FAMILY ALTER t f TYPE NONE CONVERT"),
                 (6, "FEED CREATE byrow ON 1 t ENTRIES ROW")]
        refused = [(needed, words) for needed, words in asked if needed > level]
        self.assertTrue(refused, "the other binary is no older one")
        for needed, words in refused:
            text = f"needs feature level {needed} of all members, and {self.at(followers[0])} has {level}"
            self.wait_until(lambda: text in self.wait_leader(members).refusal(words),
                            lambda: self.wait_leader(members).refusal(words))
        for words in ("COMPRESS none", "TYPE NONE"):
            self.assertEqual("no error: OK", self.wait_leader(members).refusal("FAMILY ALTER t f " + words))
        self.assert_equal(members)
        followers[0].server.stop()
        self.use(followers[0], binary())
        followers[0].server.start()
        for needed, words in refused:
            if "DEMOTE" not in words:
                self.wait_until(lambda: self.wait_leader(members).refusal(words).startswith("no error"),
                                lambda: self.wait_leader(members).refusal(words))
                self.assert_equal(members)
                self.assertEqual({str(needed)}, {m.info()["replica_feature_level"].split("/")[1] for m in members})


@not_on_a_follower("it is in a set")
class AloneTest(CellarTest):
    def test_a_single_server_has_no_members(self):
        for words in ("LIST", "ADD h 1", "REMOVE h:1", "PROMOTE h:1", "DEMOTE h:1"):
            with self.assertRaisesRegex(redis.ResponseError, "in no replica set: see cluster-nodes"):
                self.redis.execute_command(*f"REPLICA {words}".split())


if __name__ == "__main__":
    unittest.main()
