"""Two nodes with data and a witness, which votes and keeps the log alone: any one of the three can be lost, also when only the
witness has what was acknowledged last."""

import os
import shutil
import signal
import subprocess
import unittest

import redis

from cellar_server import CellarServer, binary, free_port
from replica_sets import STEADY_MS, Member, ReplicaSetCase, Writer
from replicas import chance


def cellar(*words):
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False)


class WitnessTest(ReplicaSetCase):
    def found_with_witness(self, **options):
        """Two members with data, and a witness."""
        options.setdefault("replica_election_timeout", STEADY_MS)
        members = self.make(3, **options)
        members[2].server.options["replica-kind"] = "witness"
        for member in members:
            member.server.start()
        self.wait_leader(members)
        return members[:2], members[2]

    def kinds(self, member):
        try:
            listed = [dict(zip(each[::2], each[1::2])) for each in member.run("REPLICA LIST")]
        except redis.RedisError:
            return {}
        return {row["port"]: row["kind"] for row in listed}

    def witnesses(self, leader):
        """Ids of the members without data."""
        told = [dict(zip(each[::2], each[1::2])) for each in leader.redis.execute_command("REPLICA", "LIST")]
        return {each["id"] for each in told if each["kind"] == "witness"}

    def wait_kinds(self, leader, kinds):
        wanted = {member.port: kind for member, kind in kinds.items()}
        self.wait_until(lambda: self.kinds(leader) == wanted, lambda: f"{self.kinds(leader)} {wanted} {leader.server.log()[-2000:]}")

    def wait_online(self, data, seed):
        """Until no member is down, or so far behind that it could be the only one that is missing next."""
        def states():
            info = self.wait_leader(data).info()
            return {info[name]["state"] for name in info if name.startswith("member")}
        self.wait_until(lambda: states() <= {"leader", "online", "behind"} and "leader" in states(),
                        lambda: f"seed {seed}: {states()}\n" + "\n".join(m.server.log()[-1500:] for m in data))

    def save(self, member):
        self.wait_until(lambda: "TRYAGAIN" not in member.refusal("SAVE"), lambda: member.refusal("SAVE"))

    def order(self, leader, words):
        """Has it done, by a leader that may be busy with something of its own."""
        answers = []

        def done():
            answers.append(leader.refusal(words))
            return not any(each in answers[-1] for each in ("TRYAGAIN", "under way", "has no quorum"))
        self.wait_until(done, lambda: answers[-1])
        return answers[-1]

    def test_a_witness_votes_and_answers_nothing(self):
        data, witness = self.found_with_witness(cluster_forward="no")
        leader = self.wait_leader(data)
        other = next(member for member in data if member is not leader)
        self.wait_kinds(leader, {leader: "voter", other: "voter", witness: "witness"})
        leader.run("TABLE CREATE t FAMILY f")
        for i in range(200):
            leader.run("CPUT", "t", f"r{i}", "f:a", "x" * 100)
        self.assert_equal(data)
        self.wait_until(lambda: witness.info().get("replica_commit") == leader.info().get("replica_commit"), "it has the log")
        told = f"CLUSTERDOWN this node is a witness, the leader is 127.0.0.1:{leader.port}"
        for words in ("CGET t r1 f:a", "CPUT t r1 f:a v", "TABLE LIST", "CSCAN t ALL", "DBSIZE"):
            self.assertIn(told, witness.refusal(words), words)
        self.assertIn("a witness holds no data: ask another node", witness.refusal("BACKUP START"))
        witness.run("CONFIG SET replica-reads linearizable")
        self.assertIn(told, witness.refusal("CGET t r1 f:a"))
        info = witness.info()
        self.assertEqual(("slave", "follower"), (info["role"], info["replica_state"]))
        self.assertEqual("PONG", str(witness.run("PING")).replace("True", "PONG"))
        # Clients ask it who leads, and are not sent to it for anything else.
        self.wait_until(lambda: len(leader.run("ROLE")[2]) == 1, lambda: str(leader.run("ROLE")))
        for member in data + [witness]:
            self.assertEqual(["127.0.0.1", str(leader.port)], member.run("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"))
            replicas = [dict(zip(each[::2], each[1::2])) for each in member.run("SENTINEL REPLICAS mymaster")]
            self.assertEqual([str(other.port)], [row["port"] for row in replicas])
            self.assertEqual(2, len(member.run("SENTINEL SENTINELS mymaster")))
            self.wait_until(lambda m=member: "OK 3 usable" in m.refusal("SENTINEL CKQUORUM mymaster"),
                            lambda m=member: m.refusal("SENTINEL CKQUORUM mymaster"))
        self.assertEqual([str(other.port)], [each[1] for each in leader.run("ROLE")[2]])
        self.wait_until(lambda: leader.info().get("connected_slaves") == 1, lambda: str(leader.info()))
        self.assertEqual(0, witness.info("keyspace").get("db0", {}).get("keys", 0))

    def test_any_one_of_the_three_is_lost(self):
        seed, mix = chance()
        data, witness = self.found_with_witness()
        every = data + [witness]
        self.wait_leader(data).run("TABLE CREATE t FAMILY f")
        writer = Writer(data)
        for _ in range(6):
            leader = self.wait_leader(data)
            lost = mix.choice([leader, leader, witness, next(member for member in data if member is not leader)])
            count = len(writer.acknowledged)
            lost.server.kill()
            self.wait_until(lambda c=count: len(writer.acknowledged) > c + 50, lambda: f"seed {seed}: writes end, {lost.port} is lost\n" +
                            "\n".join(m.server.log()[-1500:] for m in every))
            lost.server.start()
            lost.connect()
            self.wait_online(data, seed)
        writer.end()
        self.assert_equal(data)
        self.assert_kept(data, writer)

    def test_only_the_witness_has_it(self):
        """The leader's disk is lost, and the other one with data was stopped before the last writes."""
        seed, mix = chance()
        for _ in range(3):
            data, witness = self.found_with_witness()
            leader = self.wait_leader(data)
            second = next(member for member in data if member is not leader)
            leader.run("TABLE CREATE t FAMILY f")
            self.assert_equal(data)
            second.server.process.send_signal(signal.SIGSTOP)
            count = 20 + mix.randrange(400)
            for i in range(count):
                leader.run("CPUT", "t", f"r{i}", "f:a", str(i))
            leader.server.kill()
            leader.wipe()
            second.server.process.send_signal(signal.SIGCONT)
            self.assertIs(second, self.wait_leader(data + [witness]), f"seed {seed}")
            self.assertEqual(count, second.run("CCOUNT t"), f"seed {seed}")
            # The one that was lost joins again with nothing.
            leader.server.start()
            leader.connect()
            self.wait_kinds(second, {leader: "voter", second: "voter", witness: "witness"})
            self.assert_equal(data)
            for member in data + [witness]:
                member.stop()

    def test_a_witness_that_is_emptied_or_late_needs_no_copy(self):
        data, witness = self.found_with_witness(repl_backlog_size="1mb")
        leader = self.wait_leader(data)
        leader.run("TABLE CREATE t FAMILY f")
        witness.server.kill()
        value = "v" * 10000
        for i in range(400):
            leader.run("CPUT", "t", f"r{i}", "f:a", value)
        self.assert_equal(data)
        for member in data:
            self.save(member)
        for wiped in (False, True):
            if wiped:
                witness.server.kill()
                witness.wipe()
            for member in data:
                self.save(member)
            witness.server.start()
            witness.connect()
            self.wait_kinds(leader, {data[0]: "voter", data[1]: "voter", witness: "witness"})
            # As who it is now: emptied, it joins anew, and who it was is listed until it has taken that one's place.
            self.wait_until(lambda: witness.info().get("replica_id") in self.witnesses(leader),
                            lambda: f"{witness.info()}\n{self.witnesses(leader)}")
            self.wait_until(lambda: witness.info().get("replica_commit") == leader.info().get("replica_commit"),
                            lambda: f"{witness.info()}\n{witness.server.log()[-2000:]}")
            self.assertIn("The log goes on behind record", witness.server.log())
            size = sum(os.path.getsize(os.path.join(witness.directory, name)) for name in os.listdir(witness.directory)
                       if name.endswith(".snapshot"))
            self.assertLess(size, 10000)
            for i in range(20):
                leader.run("CPUT", "t", f"r{i}", "f:b", value)
        # It counts: with it alone the leader goes on.
        next(member for member in data if member is not leader).server.kill()
        self.wait_until(lambda: leader.refusal("CPUT t last f:a v") == "no error: OK", "two of three go on")
        said = cellar("--check", witness.directory)
        self.assertIn("is locked", said.stdout + said.stderr)
        witness.server.kill()
        said = cellar("--check", witness.directory)
        self.assertEqual(0, said.returncode, said.stdout + said.stderr)
        self.assertIn("of a witness, which holds no data", said.stdout)
        self.assertNotIn("warning", said.stdout)
        said = cellar("--check", witness.directory, "--repair")
        self.assertEqual(0, said.returncode, said.stdout + said.stderr)
        self.assertIn("warning: this is a member of a replica set", said.stdout)
        self.assertIn("witness", said.stdout)
        new = witness.directory + ".new"
        said = cellar("--recover", witness.directory, "--until", "2100-01-01T00:00:00Z", "--dir", new)
        self.assertEqual(1, said.returncode)
        self.assertIn("belongs to a witness, which holds no data", said.stdout + said.stderr)
        self.assertFalse(os.path.exists(new))
        said = cellar("--replica-recover", witness.directory, "--yes")
        self.assertNotEqual(0, said.returncode)
        self.assertIn("belongs to a witness, which holds no data", said.stdout + said.stderr)

    def test_what_a_witness_cannot_be_is_said(self):
        data, witness = self.found_with_witness()
        leader = self.wait_leader(data)
        other = next(member for member in data if member is not leader)
        leader.run("TABLE CREATE t FAMILY f")
        at = f"127.0.0.1:{witness.port}"
        for words, text in ((f"REPLICA PROMOTE {at}", "is a witness: it votes"), (f"REPLICA DEMOTE {at}", "is a witness: a standby holds"),
                            (f"FAILOVER TO 127.0.0.1 {witness.port}", "FAILOVER target is a witness"),
                            (f"REPLICA REMOVE 127.0.0.1:{other.port}", "fewer witnesses than voters with data, and that would be 1 and 1"),
                            (f"REPLICA DEMOTE 127.0.0.1:{other.port}", "fewer witnesses"),
                            ("REPLICA ADD h 1 WITNESSES", "takes STANDBY, WITNESS or nothing"),
                            (f"REPLICA ADD 127.0.0.1 {free_port()} WITNESS", "fewer witnesses than voters with data, and that would be 2 and 2")):
            self.assertIn(text, self.order(leader, words), words)
        # A fourth one with data; then a second witness may come, one that is none may not come as one.
        third = Member(self, port := free_port(), self.nodes + [f"127.0.0.1:{port}"])
        third.server.start()
        self.wait_kinds(leader, {data[0]: "voter", data[1]: "voter", third: "voter", witness: "witness"})
        self.assertEqual("no error: OK", self.order(leader, f"REPLICA REMOVE 127.0.0.1:{port}"))
        self.assertEqual("no error: OK", self.order(leader, f"REPLICA REMOVE {at}"))
        self.assertIn("keeps data: a witness has replica-kind witness", self.order(leader, f"REPLICA ADD 127.0.0.1 {port} WITNESS"))
        third.server.kill()
        witness.server.kill()
        witness.wipe()
        witness.server.start()
        self.assertIn("is a witness: add it as WITNESS", self.order(leader, f"REPLICA ADD 127.0.0.1 {witness.port}"))
        self.assertEqual("no error: OK", self.order(leader, f"REPLICA ADD 127.0.0.1 {witness.port} WITNESS"))
        self.wait_kinds(leader, {data[0]: "voter", data[1]: "voter", witness: "witness"})

        witness.server.options["archive-dir"] = witness.directory + ".archive"
        witness.server.kill()
        witness.server.spawn()
        self.wait_until(lambda: witness.server.process.poll() is not None, lambda: witness.server.log())
        self.assertIn("archive-dir: a witness holds no data", witness.server.log())
        del witness.server.options["archive-dir"]
        witness.server.start()
        witness.connect()

        # As something else its directory is refused, or it stays what it is.
        def has_the_log():
            committed = leader.info().get("replica_commit")
            return committed is not None and committed == witness.info().get("replica_applied")
        self.wait_until(has_the_log, "it has the log")
        witness.server.kill()
        single = CellarServer(witness.directory, port=witness.port, save="")
        single.spawn()
        self.wait_until(lambda: single.process.poll() is not None, lambda: f"{single.log()} {witness.server.log()}")
        self.assertIn("belongs to a witness: it holds the log of a replica set, and no data", single.log())
        del witness.server.options["replica-kind"]
        witness.server.start()
        self.wait_until(lambda: "this one stays a witness" in witness.server.log(), lambda: witness.server.log())
        self.wait_until(lambda: self.kinds(leader).get(witness.port) == "witness", "it is one still")
        other.server.kill()
        other.server.options["replica-kind"] = "witness"
        other.server.start()
        self.wait_until(lambda: "this one stays a member with data" in other.server.log(), lambda: other.server.log())
        other.connect()
        self.assert_equal(data)

    def test_a_set_that_would_not_be_safe_is_not_founded(self):
        for kinds, text in ((("voter", "witness", "witness"), "fewer witnesses than voters with data, and that would be 2 and 1"),
                            (("witness",), "cluster-nodes lists witnesses alone")):
            members = self.make(len(kinds))
            for member, kind in zip(members, kinds):
                member.server.options["replica-kind"] = kind
                member.server.spawn()
            self.assertEqual(1, members[0].server.process.wait(60))
            self.assertIn(text, members[0].server.log())
            for member in members:
                member.stop()
        # A store of its own does not become a witness's, and an empty one does.
        port = free_port()
        member = Member(self, port, [f"127.0.0.1:{port}"])
        alone = CellarServer(member.directory, port=port, save="")
        alone.start()
        with alone.client() as client:
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        alone.stop()
        member.server.options["replica-kind"] = "witness"
        member.server.spawn()
        self.assertNotEqual(0, member.server.process.wait(60))
        self.assertIn("holds data of no set: empty it", member.server.log())
        data, witness = self.found_with_witness()
        for each in data + [witness]:
            each.stop()
        shutil.rmtree(data[0].directory)

    def test_its_log_does_not_grow_for_ever(self):
        data, witness = self.found_with_witness(repl_backlog_size="1mb", auto_aof_rewrite_min_size="1mb")
        leader = self.wait_leader(data)
        leader.run("TABLE CREATE t FAMILY f")
        value = "v" * 20000
        for i in range(2000):
            leader.run("CPUT", "t", f"r{i % 10}", "f:a", value)
            if i % 500 == 499:
                witness.server.kill()
                witness.server.start()
                witness.connect()

        self.wait_until(lambda: witness.info().get("replica_commit") == leader.info().get("replica_commit"), "it has the log")
        # Of 40 MB; it is cut beside what comes.
        self.wait_until(lambda: witness.info("persistence").get("aof_current_size", 40 << 20) < 25 << 20,
                        lambda: f"{witness.info('persistence')} {witness.server.log()[-2000:]}")
        # Its log goes back 1 MB: who is further behind, as where a node is slow, would need the leader's data.
        other = next(member for member in data if member is not leader)
        self.wait_until(lambda: other.info().get("replica_applied") == leader.info().get("replica_applied"),
                        "the other one has all of it")
        leader.server.kill()
        after = self.wait_leader(data, leader)
        self.wait_until(lambda: after.refusal("CCOUNT t") == "no error: 10", lambda: after.refusal("CCOUNT t"))


if __name__ == "__main__":
    unittest.main()
