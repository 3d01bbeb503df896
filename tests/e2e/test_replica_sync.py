"""A copy of everything on its way to a follower: what is answered meanwhile, and what may happen to it."""

import os
import time
import unittest

from replicas import Link, Node, ReplicaTest, Writers, chance


class SyncTest(ReplicaTest):
    def large(self, rows=40_000, **options):
        """A leader whose snapshot holds some megabytes, and an empty follower."""
        leader, follower = Node(self, **options), Node(self, **options)
        leader.run("TABLE CREATE t FAMILY f FAMILY g VERSIONS 2 TTL 1h")
        leader.run("TABLE CREATE u KEY i64 FAMILY f")
        leader.run("INDEX CREATE t i ON 1 f:a")
        pipe = leader.redis.pipeline(transaction=False)
        for i in range(rows):
            pipe.execute_command("CPUT", "t", f"r{i:06}", "f:a", str(i), "f:b", os.urandom(40).hex(), "g:c", "x")
            if i % 10_000 == 9_999:
                pipe.execute()
        pipe.execute()
        leader.run("SAVE")
        return leader, follower

    def copying(self, follower):
        return follower.info("master_sync_in_progress") == 1 and follower.info("master_sync_read_bytes") > 0

    def test_a_new_follower_answers_loading_until_the_copy_is_whole(self):
        leader, follower = self.large(repl_sync_rate="50kb")
        follower.follow(leader)
        self.wait_until(lambda: self.copying(follower), "the copy")
        self.assertIn("loading the dataset", follower.refusal("CGET t r000001 f:a"))
        self.assertIn("read only replica", follower.refusal("CPUT t r f:a 1"))
        info = follower.redis.info("persistence")
        self.assertEqual((1, 0), (info["loading"], info["async_loading"]))
        self.assertGreater(info["loading_total_bytes"], info["loading_loaded_bytes"])
        replication = follower.redis.info("replication")
        self.assertEqual(("down", 1), (replication["master_link_status"], replication["master_sync_in_progress"]))
        self.assertGreater(replication["master_sync_total_bytes"], replication["master_sync_read_bytes"])
        self.assertEqual("sync", follower.run("ROLE")[3])
        self.assertEqual("send_bulk", leader.info("slave0")["state"])
        self.assertTrue(follower.redis.ping())
        leader.run("CONFIG SET repl-sync-rate 0")
        self.assert_copied(leader, follower)
        self.assertEqual("1", follower.run("CGET t r000001 f:a"))
        self.assertEqual((0, 0), tuple(follower.info(f, "persistence") for f in ("loading", "async_loading")))
        self.assertEqual(leader.run("CSCAN t 0 INDEX i EQ 1 17"), follower.run("CSCAN t 0 INDEX i EQ 1 17"))

    def test_old_data_is_served_until_the_copy_is_whole(self):
        leader, follower = self.large(repl_sync_rate="50kb")
        follower.run("TABLE CREATE old FAMILY f")
        follower.run("CPUT old r f:a before")
        follower.follow(leader)
        self.wait_until(lambda: self.copying(follower), "the copy")
        for _ in range(5):
            self.assertEqual("before", follower.run("CGET old r f:a"))
            self.assertIn("no table", follower.refusal("CGET t r000001 f:a"))
        info = follower.redis.info("persistence")
        self.assertEqual((0, 1), (info["loading"], info["async_loading"]))
        self.assertTrue(self.copying(follower))
        # Given up in the middle, the old data is still there.
        self.assertEqual("OK", follower.run("REPLICAOF NO ONE"))
        self.assertEqual("before", follower.run("CGET old r f:a"))
        follower.run("CPUT old r f:a after")
        follower.restart_cleanly()
        self.assertEqual("after", follower.run("CGET old r f:a"))
        leader.run("CONFIG SET repl-sync-rate 0")
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertIn("no table", follower.refusal("CGET old r f:a"))

    def test_no_more_is_sent_than_the_rate_allows(self):
        leader, follower = self.large(20_000, repl_sync_rate="1mb")
        bytes_ = os.path.getsize(next(os.path.join(leader.directory, n) for n in os.listdir(leader.directory)
                                      if n.endswith(".snapshot")))
        begin = time.monotonic()
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertGreater(time.monotonic() - begin, 0.8 * bytes_ / (1 << 20) - 0.1)

    def test_heartbeats_and_acknowledgements_pass_a_copy_that_is_slow(self):
        silence = 8  # seconds of it are borne with
        leader, follower = self.large(repl_sync_rate="50kb", repl_timeout=silence)
        follower.follow(leader)
        self.wait_until(lambda: self.copying(follower), "the copy")
        end = time.monotonic() + 1.5 * silence
        while time.monotonic() < end:
            self.wait_until(lambda: follower.info("master_last_io_seconds_ago") == 0, "a heartbeat")
            time.sleep(0.1)
        self.assertTrue(self.copying(follower))
        self.wait_until(lambda: leader.info("slave0")["lag"] <= 1, "an acknowledgement")
        leader.run("CONFIG SET repl-sync-rate 0")
        self.assert_copied(leader, follower)
        self.assertEqual((1, 1), (leader.info("sync_full", "stats"), follower.info("replica_full_syncs")))

    def test_log_that_a_copy_will_need_is_kept(self):
        leader, follower = self.large(repl_sync_rate="50kb", repl_backlog_size="1kb")
        follower.follow(leader)
        self.wait_until(lambda: self.copying(follower), "the copy")
        for i in range(3):
            leader.load(500, 100_000 + i * 500)
            leader.run("SAVE")
        self.assertTrue(self.copying(follower))
        leader.run("CONFIG SET repl-sync-rate 0")
        self.assert_copied(leader, follower)
        self.assertEqual(1, leader.info("sync_full", "stats"))

    def test_two_followers_are_copied_to_at_once(self):
        leader, one = self.large()
        two = Node(self)
        with Writers(leader.server.port, 1):
            one.follow(leader)
            two.follow(leader)
            self.wait_until(lambda: all(n.info("replica_full_syncs") >= 1 for n in (one, two)), "both")
        time.sleep(1.1)  # until what has a TTL is due on both sides
        self.assert_copied(leader, one, two)

    def test_cuts_and_ends_in_the_middle(self):
        seed, mix = chance()
        leader, follower = self.large(20_000)
        link = self.link(leader)
        with Writers(leader.server.port, seed, pause=0.01):
            for round_ in range(int(os.environ.get("CELLAR_REPLICA_ROUNDS", "8"))):
                how = mix.choice(("cut", "one way", "drop", "kill follower", "kill leader", "no one", "other leader"))
                print(how, end=" ", flush=True)
                # Who stops following is to have nothing of it, though it may take a while to say so.
                leader.run(f"CONFIG SET repl-sync-rate {'50kb' if how == 'no one' else '4mb'}")
                follower.run("REPLICAOF NO ONE")
                follower.run("FLUSHALL")  # a history of its own
                follower.run("TABLE CREATE mine")
                link.down_bytes = 0
                link.ends_at = mix.randrange(3_000_000) if how in ("cut", "one way") else None
                follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
                # It may be cut, or over, before anybody sees it.
                self.wait_until(lambda: self.copying(follower) or link.cut_down or
                                follower.info("master_link_status") == "up", "the copy")
                time.sleep(mix.random() * 0.5)
                if how == "cut":
                    self.wait_until(lambda: link.cut_down or not self.copying(follower), "the cut")
                    time.sleep(mix.random())
                elif how == "one way":
                    link.ends_at = None
                    link.cut(**{mix.choice(("up", "down")): False})
                    time.sleep(mix.random() * 3)
                elif how == "drop":
                    link.drop()
                elif how == "kill follower":
                    follower.kill()
                    follower.restart()
                    follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
                elif how == "kill leader":
                    leader.kill()
                    leader.restart()
                elif how == "other leader":
                    follower.run("REPLICAOF 127.0.0.1 1")
                    follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
                else:
                    follower.run("REPLICAOF NO ONE")
                    self.assertEqual(["mine"], follower.run("TABLE LIST"))
                    follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
                link.heal()
                leader.run("CONFIG SET repl-sync-rate 0")
                self.wait_until(lambda: follower.info("master_link_status") == "up",
                                lambda: str(follower.redis.info("replication")) + follower.server.log()[-2000:])
        print()
        time.sleep(1.1)  # until what has a TTL is due on both sides
        self.assert_copied(leader, follower)
        follower.kill()
        follower.restart()
        follower.follow(leader)
        self.assert_copied(leader, follower)
        self.assertFalse([n for n in os.listdir(follower.directory) if n.endswith(".tmp")])

    def test_a_follower_that_takes_nothing_costs_a_window(self):
        leader, follower = self.large(40_000)
        link = self.link(leader)
        link.ends_at = 500_000
        follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.wait_until(lambda: link.cut_down, "the cut")
        leader.load(1000, 500_000)
        self.assertLess(leader.info("mem_clients_slaves", "memory"), 16 << 20)
        link.heal()
        self.assert_copied(leader, follower)


class LinkTest(ReplicaTest):
    """Links that die without a word."""

    def test_a_cut_of_any_direction_is_noticed_and_mended(self):
        leader, follower = self.pair()
        link = self.link(leader)
        follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.assert_copied(leader, follower)
        for up, down in ((True, True), (False, True), (True, False)):
            leader.load(50)
            link.cut(up, down)
            leader.load(50, 50)
            if down:
                self.wait_until(lambda: follower.info("master_link_status") == "down", "silence")
                self.assertIn("nothing heard for a while", follower.server.log())
            else:
                self.wait_until(lambda: leader.info("slave0")["lag"] >= 2, "no acknowledgement")
            link.heal()
            self.assert_copied(leader, follower)
            self.wait_until(lambda: leader.info("connected_slaves") == 1, "one link")
        self.assertEqual(1, leader.info("sync_full", "stats"))
        self.assertGreaterEqual(leader.info("sync_partial_ok", "stats"), 2)

    def test_a_follower_that_is_silent_is_dropped_after_repl_timeout(self):
        leader, follower = self.pair(repl_timeout="2")
        link = self.link(leader)
        follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.assert_copied(leader, follower)
        link.cut(up=True, down=False)
        self.wait_until(lambda: leader.info("connected_slaves") == 0, "the end of it")
        self.assertIn("it has been silent", leader.server.log())
        link.heal()
        self.assert_copied(leader, follower)

    def test_a_slow_link_is_no_dead_one(self):
        leader, follower = self.pair()
        link = self.link(leader)
        link.delay = 0.2
        follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.assert_copied(leader, follower)

        def is_borne_with():
            """Unless the leader has had no turn for two seconds, which is a silence."""
            before = leader.info("sync_partial_ok", "stats")
            leader.load(5000)
            self.assertEqual(1, leader.run("WAIT 1 100000"))
            self.assert_copied(leader, follower)
            return leader.info("sync_partial_ok", "stats") == before
        self.wait_until(is_borne_with, lambda: follower.server.log()[-2000:])
        self.assertEqual(1, leader.info("sync_full", "stats"))

    def test_who_does_not_answer_is_dialled_again(self):
        leader, follower = self.pair()
        link = Link(leader.server.port)
        self.addCleanup(link.close)
        link.cut()  # it takes connections, and is silent
        follower.run(f"REPLICAOF 127.0.0.1 {link.port}")
        self.wait_until(lambda: "nothing heard for a while" in follower.server.log(), "the first attempt")
        link.heal()
        self.assert_copied(leader, follower)
        follower.run("REPLICAOF no.such.host.invalid 6479")
        self.wait_until(lambda: "no.such.host.invalid" in follower.server.log(), "the name")
        follower.follow(leader)
        self.assert_copied(leader, follower)


if __name__ == "__main__":
    unittest.main()
