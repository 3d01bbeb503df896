"""What nodes say of themselves (INFO, ROLE, WAITAOF, DEBUG DIGEST), and what a follower tells its own clients of what
it applies: invalidations, notifications, watches."""

import os
import sys
import time
import unittest

import redis

from cellar_server import ROOT
from replicas import Node, ReplicaTest

sys.path.insert(0, os.path.join(ROOT, "tests"))

from model import resp  # noqa: E402

ROW_BYTES = 1 << 20
HOUR = 3_600_000_000


class ReportsTest(ReplicaTest):
    def test_info_has_the_fields_of_redis_and_those_of_cellar(self):
        leader, follower = self.pair()
        before = leader.redis.info("everything")
        self.assertEqual(("standalone", 0, 0), tuple(before[f] for f in (
            "replica_state", "connected_slaves", "repl_backlog_active")))
        self.assertEqual(follower.info("master_replid"), follower.info("master_replid"))
        self.assertNotIn("min_slaves_good_slaves", before)
        follower.follow(leader)
        self.assert_copied(leader, follower)
        leader.run("CONFIG SET min-replicas-to-write 1")
        leader.load(500)
        self.assert_copied(leader, follower)
        self.assertEqual(1, leader.run("WAIT 1 60000"))
        self.wait_until(lambda: leader.info("slave0")["lag_ms"] == 0, "the last acknowledgement")
        of_leader, of_follower = leader.redis.info("everything"), follower.redis.info("everything")
        self.assertEqual(("leader", 1, 1, "no-failover", -1, 1), tuple(of_leader[f] for f in (
            "replica_state", "connected_slaves", "repl_backlog_active", "master_failover_state", "second_repl_offset",
            "min_slaves_good_slaves")))
        self.assertEqual({"ip", "port", "state", "offset", "lag", "lag_ms"}, set(of_leader["slave0"]))
        self.assertEqual((of_leader["master_repl_offset"], "online"),
                         (of_leader["slave0"]["offset"], of_leader["slave0"]["state"]))
        self.assertEqual(of_leader["master_replid"], of_follower["master_replid"])
        self.assertRegex(of_leader["master_replid"], "^[0-9a-f]{40}$")
        self.assertNotEqual(of_leader["run_id"], of_follower["run_id"])
        self.assertRegex(of_leader["run_id"], "^[0-9a-f]{40}$")
        self.assertEqual(("follower", "up", 0, 1, 1, 100), tuple(of_follower[f] for f in (
            "replica_state", "master_link_status", "master_sync_in_progress", "slave_read_only", "replica_announced",
            "slave_priority")))
        self.assertNotIn("master_link_down_since_seconds", of_follower)
        lsn = f"{of_leader['replica_term']}:{of_leader['master_repl_offset']}"
        for info in (of_leader, of_follower):
            self.assertEqual((lsn, lsn), (info["replica_applied"], info["replica_commit"]))
            self.assertLess(abs(int(info["replica_skew_micros"])), 500_000)
        self.assertEqual((1, 0, 0), tuple(of_leader[f] for f in ("sync_full", "sync_partial_ok", "sync_partial_err")))
        self.assertEqual((1, 0), tuple(of_follower[f] for f in ("replica_full_syncs", "replica_partial_syncs")))
        self.assertGreater(of_leader["mem_replication_backlog"], 0)
        # Peers are no clients, their frames no commands.
        self.assertEqual(before["connected_clients"], of_leader["connected_clients"])
        self.assertNotIn("cmdstat_peer", {k for k in of_follower if k.startswith("cmdstat_")})
        leader.kill()
        self.wait_until(lambda: follower.info("master_link_status") == "down", "the link")
        self.assertGreaterEqual(follower.info("master_link_down_since_seconds"), 0)

    def test_a_follower_is_one_while_it_loads(self):
        leader, follower = self.pair()
        follower.follow(leader)
        for i in range(150):
            leader.run("CPUT t", f"r{i}", "f:a", os.urandom(ROW_BYTES // 2).hex())
        self.assert_copied(leader, follower)
        follower.kill()
        follower.server.options["replicaof"] = ("127.0.0.1", leader.server.port)
        follower.server.spawn()
        told = []
        self.wait_until(lambda: self.tells_role(follower, told) == 0, "the store")
        self.assertGreater(len(told), 1, "nothing was asked while it loaded")
        for role, info in told:
            self.assertEqual(["slave", "127.0.0.1", leader.server.port], role[:3])
            self.assertEqual(("slave", "127.0.0.1", leader.server.port, "follower"), tuple(
                info[f] for f in ("role", "master_host", "master_port", "replica_state")))

    def tells_role(self, node, told):
        """What ROLE and INFO say, and whether it loads."""
        try:
            role, info = node.run("ROLE"), node.redis.info("everything")
        except redis.ConnectionError:
            return None
        told.append((role, info))
        return info["loading"]

    def test_bytes_on_the_link_are_those_of_the_log(self):
        leader, follower = self.pair()
        follower.follow(leader)
        self.assert_copied(leader, follower)
        log, sent = leader.info("master_repl_bytes"), leader.info("total_net_repl_output_bytes", "stats")
        leader.load(5000)
        self.assert_copied(leader, follower)
        log = leader.info("master_repl_bytes") - log
        sent = leader.info("total_net_repl_output_bytes", "stats") - sent
        self.assertGreater(log, 5000 * 50)
        self.assertLess(sent, 1.1 * log + 100_000)  # besides a heartbeat ten times a second
        received = follower.info("total_net_repl_input_bytes", "stats")
        self.assertGreaterEqual(received, sent)
        leader.run("CONFIG RESETSTAT")
        self.assertEqual(0, leader.info("sync_full", "stats"))

    def test_role_lists_who_is_online(self):
        leader, follower = self.pair()
        self.assertEqual("OK", follower.run("REPLICAOF 127.0.0.1 1"))
        self.assertEqual(["slave", "127.0.0.1", 1], follower.run("ROLE")[:3])
        self.wait_until(lambda: follower.run("ROLE")[3] in ("connect", "connecting"), "another attempt")
        self.assertEqual(-1, follower.run("ROLE")[4])
        follower.follow(leader)
        self.wait_until(lambda: follower.run("ROLE")[3] == "connected", "the link")
        self.wait_until(lambda: len(leader.run("ROLE")[2]) == 1, "the follower")

    def test_waitaof_counts_disks(self):
        leader, follower = self.pair(appendfsync="no")
        leader.load(1)
        self.assertEqual([0, 0], leader.run("WAITAOF 0 0 100"))
        self.assertEqual([1, 0], leader.run("WAITAOF 1 0 100000"))
        leader.load(1)
        begin = time.monotonic()
        self.assertEqual(0, leader.run("WAITAOF 0 1 200")[1])
        self.assertGreater(time.monotonic() - begin, 0.15)
        follower.follow(leader)
        self.assert_copied(leader, follower)
        leader.load(1)
        self.assertEqual(1, leader.run("WAITAOF 0 1 100000")[1])
        leader.load(1)
        self.assertEqual([1, 1], leader.run("WAITAOF 1 1 100000"))
        self.assertIn("WAITAOF cannot be used with replica instances", follower.refusal("WAITAOF 0 0 0"))
        self.assertIn("must be positive", leader.refusal("WAITAOF 0 -1 0"))
        with leader.redis.pipeline() as pipe:
            pipe.execute_command("WAITAOF", "0", "5", "0")
            self.assertEqual(1, pipe.execute()[0][1])

    def test_wait_ends_when_the_node_follows(self):
        leader, follower = self.pair()
        with leader.server.client() as waits:
            connection = waits.connection_pool.get_connection("_")
            connection.send_command("WAIT", "3", "0")
            self.wait_until(lambda: leader.info("blocked_clients", "clients") == 1, "the client waits")
            leader.follow(follower)
            with self.assertRaisesRegex(Exception, "UNBLOCKED force unblock"):
                connection.read_response()

    def test_digests_agree_though_clocks_do_not(self):
        leader, follower = self.pair()
        follower.follow(leader)
        leader.run("CMUTATE t old PUT f:z 1 TTL 50m")
        leader.load(100)  # g has a TTL of an hour
        self.assert_copied(leader, follower)
        for ahead in (HOUR, -HOUR):
            now = int(time.time() * 1e6)
            follower.run(f"DEBUG SET-TIME {now + ahead}")
            self.assert_copied(leader, follower)
            self.assertEqual(leader.run("DEBUG DIGEST"), follower.run("DEBUG DIGEST WITHLSN")[0])
            self.assertEqual(leader.run("DEBUG DIGEST WITHLSN"), follower.run("DEBUG DIGEST WITHLSN"))
            # What is due is hidden by the node's own clock.
            self.assertEqual(None if ahead > 0 else "1", follower.run("CGET t r1 g:c"))
            leader.run("CPUT t r f:x 1")
        self.assert_copied(leader, follower)
        self.assertEqual(follower.info("replica_applied"), follower.run("DEBUG DIGEST WITHLSN")[1])
        self.assertIn("no table 'WITH'", follower.refusal("DEBUG DIGEST WITH"))

    def test_clocks_far_apart_are_told_of(self):
        leader = Node(self)
        follower = Node(self)
        follower.kill()
        library = next((p for p in ("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
                                    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1") if os.path.exists(p)), None)
        if library is None:
            self.skipTest("libfaketime is not installed")
        follower.server.environment.update(LD_PRELOAD=library, FAKETIME="+1h", FAKETIME_DONT_FAKE_MONOTONIC="1")
        follower.restart()
        follower.follow(leader)
        self.wait_until(lambda: abs(int(leader.info("replica_skew_micros")) - HOUR) < 60_000_000, "the skew")
        self.wait_until(lambda: abs(int(follower.info("replica_skew_micros")) + HOUR) < 60_000_000, "the skew")
        self.assertIn("the clock of 127.0.0.1:", leader.server.log())


class EventsTest(ReplicaTest):
    """What clients of a follower hear of what its leader writes; in both protocols."""

    def setUp(self):
        self.leader, self.follower = self.pair(notify_keyspace_events="KEAn", tracking_names="row")
        self.leader.run("CPUT t r f:a 1")
        self.follower.follow(self.leader)
        self.assert_copied(self.leader, self.follower)

    def client(self, protocol):
        client = resp.Client(self.follower.server.port, protocol, timeout=60)
        self.addCleanup(client.close)
        return client

    def invalidations(self, protocol, *options):
        """A client of the follower that reads, and a function that gives the names it was told by then."""
        reader = self.client(protocol)
        if protocol == 3:
            reader.call("CLIENT", "TRACKING", "ON", *options)
            hears = reader
        else:
            hears = self.client(2)
            number = hears.call("CLIENT", "ID")
            hears.call("SUBSCRIBE", "__redis__:invalidate")
            reader.call("CLIENT", "TRACKING", "ON", "REDIRECT", str(number), *options)

        def told():
            self.assert_copied(self.leader, self.follower)
            names = []
            hears.send("PING")
            while True:
                got = hears.read()
                if got == b"PONG" or got == resp.Simple(b"PONG") or (isinstance(got, list) and got[0] == b"pong"):
                    return names
                if isinstance(got, resp.Push) or (isinstance(got, list) and got[0] == b"message"):
                    names += [None] if got[-1] is None else [name.decode() for name in got[-1]]

        return reader, told

    def read(self, reader, *lines):
        for line in lines:
            reader.send(*line.split())
            while isinstance(reader.read(), resp.Push):
                pass

    def test_what_was_read_is_told_when_the_leader_changes_it(self):
        for protocol in (2, 3):
            reader, told = self.invalidations(protocol)
            self.read(reader, "CGET t r f:a", "CGET t other f:a")
            for line in ("CPUT t r f:b 1", "CPUT t unread f:a 1"):
                self.leader.run(line)
            self.assertEqual(["t:r"], told(), protocol)
            self.read(reader, "CGET t r f:a")
            with self.leader.redis.pipeline() as pipe:
                for word in "abc":
                    pipe.execute_command("CPUT", "t", "r", f"f:{word}", "1")
                pipe.execute()
            self.assertEqual(["t:r"], told())
            self.read(reader, "CGET t r f:a")
            self.leader.run("CDEL t r")
            self.assertEqual(["t:r"], told())
            self.read(reader, "CSCAN t 0", "CGET missing r f:a")
            self.leader.run("CDELRANGE t RANGE [a (z")
            self.leader.run("TABLE CREATE missing FAMILY f")
            self.assertEqual(["t", "missing"], told())
            self.leader.run("TABLE DROP missing")
            self.read(reader, "CGET t r f:a")
            self.leader.run("FAMILY ADD t h")
            self.assertEqual(["t"], told())
            self.leader.run("FAMILY DROP t h")
            self.read(reader, "CGET t r f:a")
            self.leader.run("INDEX CREATE t i ON 1 f:a")
            self.leader.run("INDEX DROP t i")
            self.assertEqual(["t"], told())

    def test_what_a_sketch_gets_more_of_is_told(self):
        """Into a cell that is there: the log says the input, not the cell."""
        self.leader.run("TABLE CREATE s FAMILY h AGGREGATE hll FAMILY f")
        self.leader.run("CADD s r h:u one")
        for protocol in (2, 3):
            for line in (f"CADD s r h:u three{protocol}", f"CADD s r h:u four{protocol} h:v five{protocol}"):
                reader, told = self.invalidations(protocol)
                self.read(reader, "CGET s r h:u")
                self.leader.run(line)
                self.assertEqual(["s:r"], told(), (line, protocol))
        # What the same step says behind it is told too.
        reader, told = self.invalidations(3)
        self.read(reader, "CGET s r h:u", "CGET s x f:a")
        with self.leader.redis.pipeline() as pipe:
            pipe.execute_command("CADD", "s", "r", "h:u", "six")
            pipe.execute_command("CPUT", "s", "x", "f:a", "1")
            pipe.execute()
        self.assertEqual(["s:r", "s:x"], told())

    def test_a_copy_that_is_written_to_in_its_step_is_told(self):
        client = self.client(3)
        client.call("PSUBSCRIBE", "__keyevent@0__:*")
        self.leader.run("SNAPSHOT CREATE before")
        with self.leader.redis.pipeline() as pipe:
            pipe.execute_command("COPY", "t@before", "made")
            pipe.execute_command("CPUT", "made", "r", "f:a", "1")
            pipe.execute()
        told = []
        while b"cput" not in told:
            told.append(client.read()[2].removeprefix(b"__keyevent@0__:"))
        self.assertEqual([b"snapshot", b"copy_to", b"cput"], told)

    def test_feeds_and_groups_are_told(self):
        client = self.client(3)
        client.call("PSUBSCRIBE", "__keyspace@0__:*")
        lines = (("FEED CREATE feed ON 1 t", "feed"), ("XGROUP CREATE feed g 0", "xgroup-create"),
                 ("XGROUP CREATECONSUMER feed g one", "xgroup-createconsumer"), ("CPUT t r f:a 2",), ("WAITAOF 1 0 0",),
                 ("XREADGROUP GROUP g two STREAMS feed >", "xgroup-createconsumer"),
                 ("XGROUP SETID feed g 0", "xgroup-setid"), ("XREADGROUP GROUP g two STREAMS feed >",),
                 ("XGROUP DELCONSUMER feed g two", "xgroup-delconsumer"), ("XGROUP DESTROY feed g", "xgroup-destroy"),
                 ("FEED DROP feed", "del"))
        for line, *_ in lines:
            self.leader.run(line)
        with self.leader.redis.pipeline() as pipe:
            pipe.execute_command("FEED", "CREATE", "brief", "ON", "1", "t")
            pipe.execute_command("FEED", "DROP", "brief")
            pipe.execute()
        self.leader.run("TABLE CREATE end FAMILY f")
        told = []
        while b"table.create" not in told:
            kind, _, channel, event = client.read()
            self.assertEqual(b"pmessage", kind)
            if channel in (b"__keyspace@0__:feed", b"__keyspace@0__:brief", b"__keyspace@0__:end"):
                told.append(event)
        wanted = [event.encode() for _, *events in lines for event in events]
        self.assertEqual([*wanted, b"feed", b"del", b"new", b"table.create"], told)

    def test_broadcasts(self):
        for protocol in (2, 3):
            _, told = self.invalidations(protocol, "BCAST", "PREFIX", "t:r")
            for row in ("r1", "r2", "x"):
                self.leader.run(f"CPUT t {row} f:a 1")
            self.assertEqual(["t:r1", "t:r2"], told())

    def test_a_full_copy_changes_everything(self):
        for protocol in (2, 3):
            reader, told = self.invalidations(protocol)
            self.read(reader, "CGET t r f:a")
            other = Node(self)
            other.run("TABLE CREATE t FAMILY f")
            self.follower.follow(other)
            self.leader, leader = other, self.leader
            self.assert_copied(other, self.follower)
            self.assertEqual([None], told())
            self.leader = leader
            self.follower.follow(leader)
            self.assert_copied(leader, self.follower)

    def test_notifications(self):
        wanted = []
        lines = (("TABLE CREATE n FAMILY f", "new", "table.create"), ("CPUT n a f:x 1", "cput"),
                 ("CINCRBY n a f:y 1", "cput"), ("CDEL n a", "cdel"), ("CDEL n a",), ("CPUT n b f:x 1", "cput"),
                 ("CDELRANGE n RANGE [a (z", "cdelrange"), ("FAMILY ADD n g", "family.add"),
                 ("FAMILY ALTER n g VERSIONS 3", "family.alter"), ("CPUT n a g:x 1", "cput"),
                 ("FAMILY ALTER n g COLUMN x i64 CONVERT", "family.alter"), ("FAMILY DROP n g", "family.drop"),
                 ("INDEX CREATE n i ON 1 f:x", "index.create"), ("INDEX DROP n i", "index.drop"),
                 ("TABLE TRUNCATE n", "table.truncate"), ("TABLE DROP n", "table.drop"))
        hears = {}
        for protocol in (2, 3):
            hears[protocol] = self.client(protocol)
            hears[protocol].call("PSUBSCRIBE", "__keyspace@0__:*")
        for line, *events in lines:
            self.leader.run(line)
            wanted += events
        self.leader.run("TABLE CREATE one FAMILY f")
        self.leader.run("RENAME one two")
        self.assert_copied(self.leader, self.follower)
        for protocol, client in hears.items():
            got = []
            while len(got) < len(wanted) + 4:
                message = client.read()
                if message[0] == b"pmessage":
                    got.append((message[2].decode().removeprefix("__keyspace@0__:"), message[3].decode()))
            self.assertEqual([("n", event) for event in wanted] + [
                ("one", "new"), ("one", "table.create"), ("one", "rename_from"), ("two", "rename_to")], got, protocol)

    def test_exec_is_told_whole(self):
        client = self.client(3)
        client.call("PSUBSCRIBE", "__keyevent@0__:*")
        with self.leader.redis.pipeline() as pipe:
            for row in ("r1", "r2"):
                pipe.execute_command("CPUT", "t", row, "f:a", "1")
            pipe.execute_command("CDEL", "t", "r")
            pipe.execute()
        self.assertEqual([b"cput", b"cput", b"cdel"],
                         [client.read()[2].removeprefix(b"__keyevent@0__:") for _ in range(3)])

    def test_watches(self):
        for watch, change, broken in (("CWATCH t r", "CPUT t r f:w 1", True), ("CWATCH t r", "CPUT t other f:w 1", False),
                                      ("WATCH t", "CPUT t other f:w 2", True), ("WATCH missing", "TABLE CREATE missing", True)):
            for protocol in (2, 3):
                client = self.client(protocol)
                client.call(*watch.split())
                self.leader.run(change)
                self.assert_copied(self.leader, self.follower)
                client.call("MULTI")
                client.call("CGET", "t", "r", "f:a")
                self.assertEqual(broken, client.call("EXEC") in (None, resp.NULL_ARRAY), (watch, change, protocol))
                if "missing" in watch:
                    self.leader.run("TABLE DROP missing")
                    self.assert_copied(self.leader, self.follower)


if __name__ == "__main__":
    unittest.main()
