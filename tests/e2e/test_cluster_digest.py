"""DEBUG DIGEST CLUSTER: one digest of the rows of all sets, wherever they lie, and that of one server with the same rows."""

import os
import random
import threading
import time
import unittest

import redis

from cellar_server import CellarServer
from move_load import MOVED_ERRORS, MovesCase

SECONDS = float(os.environ.get("CELLAR_DIGEST_SECONDS", 5))
CLUSTER = ("DEBUG", "DIGEST", "CLUSTER")
EXPIRES = 4_000_000_000_000_000  # micros

SCHEMA = (
    "TABLE CREATE t SPLIT AT 2 h p FAMILY f VERSIONS 3 FAMILY n TYPE i64 GROUP g",
    "TABLE CREATE groups KEY utf8/u32 COLOCATE 1 FAMILY f",
    "TABLE CREATE small WHOLE FAMILY f",
    "TABLE CREATE counted KEY recno FAMILY f",
    "TABLE CREATE empty FAMILY f",
    "KEYSPACE CREATE other",
    "TABLE CREATE other/t SPLIT AT 1 m FAMILY f TTL 36500d",
    "INDEX CREATE t i ON 1 n:v INCLUDE 1 f:x",
)


def data():
    for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz"):
        for version in range(4):
            yield "CPUT", "t", letter, "f:x", f"{letter}{version}", "TS", 1_700_000_000_000_000 + version
        yield "CPUT", "t", letter, "n:v", number, "TS", 1_700_000_000_000_000
        yield "CPUT", "groups", f"{letter}/{number}", "f:x", "1", "TS", 1_700_000_000_000_000
        yield "CPUT", "other/t", letter, "f:x", "1", "TS", 1_700_000_000_000_000, "EXPIREAT", EXPIRES + number
    for number in range(1, 5):
        yield "CPUT", "counted", number, "f:x", "1", "TS", 1_700_000_000_000_000
    yield "CPUT", "small", "r", "f:x", b"\x00\xff", "TS", 1_700_000_000_000_000
    yield "CPUT", "t", "gone", "f:x", "1", "TS", 1_700_000_000_000_000
    yield "CDEL", "t", "gone"


def fill(run):
    for line in SCHEMA:
        run(*line.split())
    for words in data():
        run(*words)


class DigestCase(MovesCase):
    def setUp(self):
        super().setUp()
        self.seed = os.environ.get("CELLAR_SEED", str(random.randrange(1 << 30)))
        self.rng = random.Random(self.seed)

    def digest_of(self, *words):
        return self.any(self.rng).run(*CLUSTER, *words)

    def digests(self):
        """At every node."""
        return {member.run(*CLUSTER) for member in self.everyone}


class SameRows(DigestCase):
    def test_one_server_and_clusters_of_every_shape(self):
        with CellarServer(enable_debug_command="yes") as plain:
            run = plain.client(decode_responses=True).execute_command
            fill(run)
            digest = run(*CLUSTER)
            self.assertEqual(digest, run(*CLUSTER, "LOCAL"))
            self.assertRegex(digest, "^[0-9a-f]{32}$")
            run("SNAPSHOT", "CREATE", "s")
            of_snapshot = run(*CLUSTER, "SNAPSHOT", "s")
            self.assertEqual(of_snapshot, run(*CLUSTER, "snapshot", "0/s"))
            self.assertNotEqual(digest, of_snapshot)  # it has no table of the other keyspace
            run("DEBUG", "RELOAD")
            self.assertEqual(digest, run(*CLUSTER))
            client = plain.client(decode_responses=True)
            client.execute_command("MULTI")
            client.execute_command(*CLUSTER)
            self.assertEqual([digest], client.execute_command("EXEC"))
            for text, words in (("LOCAL or SNAPSHOT", "NOWHERE"), ("LOCAL or SNAPSHOT", "LOCAL 1"), ("LOCAL or SNAPSHOT", "SNAPSHOT"),
                                ("NOSNAPSHOT", "SNAPSHOT none"), ("NOKEYSPACE", "SNAPSHOT none/s"), ("invalid snapshot name", "SNAPSHOT #1"),
                                ("cluster support disabled", "CUT"), ("nothing of cut 7", "PART 7"), ("PART", "PART x"),
                                ("NOSNAPSHOT", "PART 0/x")):
                with self.assertRaises(redis.ResponseError, msg=words) as caught:
                    run(*CLUSTER, *words.split())
                self.assertIn(text, str(caught.exception), words)
        lone = self.new_set(3)
        fill(self.wait_leader(lone).run)
        for member in lone:
            self.wait_until(lambda member=member: member.run(*CLUSTER) == digest, "another digest in a set")
        self.lead(lone, "CLUSTER", "INIT")
        for member in lone:
            self.wait_until(lambda member=member: digest in member.refusal(*CLUSTER), lambda member=member: member.refusal(*CLUSTER))
        for member in lone:
            member.stop()
        self.cluster(3)
        fill(self.any(self.rng).run)
        self.assertEqual({digest}, self.digests())
        for member in self.everyone:
            self.assertNotEqual(digest, member.run(*CLUSTER, "LOCAL"))
        run = self.any(self.rng).run
        run("TABLET", "SPLIT", "t", "c")
        run("TABLET", "SPLIT", "t", "x")
        run("TABLET", "SPLIT", "groups", "m")
        self.assertEqual({digest}, self.digests())
        for table, row, to in (("t", "a", 2), ("t", "x", 0), ("groups", "m", 1), ("other/t", "a", 1), ("counted", "1", 2), ("small", "r", 1)):
            self.any(self.rng).refusal("TABLET", "MOVE", table, row, "TO", to, "WAIT", 20_000)  # or it is there already
            self.assertEqual(digest, self.digest_of(), (table, row, to))
        run("TABLET", "MOVE", "t", "c", "TO", 2, "WAIT", 20_000)
        self.assertEqual("OK", run("TABLET", "MERGE", "t", "a"))
        self.assertEqual({digest}, self.digests())
        self.wait_purged()
        self.assertEqual({digest}, self.digests())
        self.assertEqual("OK", run("SNAPSHOT", "CREATE", "s"))
        for member in self.everyone:
            self.assertEqual(of_snapshot, member.run(*CLUSTER, "SNAPSHOT", "s"))
        run("CPUT", "t", "a", "f:x", "new")
        self.assertNotEqual(digest, self.digest_of())
        run("TABLE", "DROP", "groups")
        self.assertEqual(of_snapshot, self.digest_of("SNAPSHOT", "0/s"))
        after = self.digest_of()
        for member in self.everyone:
            member.run("SAVE")
            self.restart(member)
        self.wait_until(lambda: all(after in member.refusal(*CLUSTER) for member in self.everyone),
                        lambda: [member.refusal(*CLUSTER) for member in self.everyone])
        self.assertEqual(of_snapshot, self.digest_of("SNAPSHOT", "s"))
        self.any(self.rng).run("CLUSTER", "DRAIN", "2")
        self.wait_until(lambda: self.owners("t").count(2) == 0, "it does not drain")
        self.assertEqual({after}, self.digests())
        self.assert_whole()

    def test_whatever_differs_is_seen(self):
        self.cluster(2)
        run = self.any(self.rng).run
        run("TABLE", "CREATE", "t", "SPLIT", "AT", 1, "m", "FAMILY", "f")
        seen = [self.digest_of()]
        for words in (("CPUT", "t", "a", "f:x", "1", "TS", 5), ("CPUT", "t", "z", "f:x", "1", "TS", 5), ("CPUT", "t", "z", "f:x", "1", "TS", 6),
                      ("CPUT", "t", "z", "f:x", "2", "TS", 6), ("CPUT", "t", "z", "f:x", "2", "TS", 6, "EXPIREAT", EXPIRES),
                      ("CPUT", "t", "z", "f:y", "2", "TS", 6), ("CPUT", "t", "z", "f:y", "2", "AS", "string", "TS", 6),
                      ("CDEL", "t", "a"), ("FAMILY", "ADD", "t", "g"), ("TABLE", "CREATE", "u", "FAMILY", "f"),
                      ("TABLE", "RENAME", "u", "v"), ("FAMILY", "ALTER", "v", "f", "VERSIONS", 7)):
            self.any(self.rng).run(*words)
            seen.append(self.digest_of())
        self.assertEqual(len(seen), len(set(seen)), seen)
        # Where rows lie, how they are kept, and what is a set's own, is not what they are.
        for words in (("TABLE", "ALTER", "v", "COLOCATE", 1), ("TABLE", "ALTER", "v", "WHOLE"), ("FAMILY", "ALTER", "v", "f", "COMPRESS", "lz4"),
                      ("INDEX", "CREATE", "t", "i", "ON", 1, "f:x"), ("FEED", "CREATE", "log", "TABLE", 1, "t"),
                      ("CLUSTER", "CONFIG", "SET", "tablet-moves", 3)):
            self.any(self.rng).run(*words)
            self.assertEqual(seen[-1], self.digest_of(), words)

    def test_rights(self):
        self.cluster(2)
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 1, "m", "FAMILY", "f")
        self.any().run("ACL", "SETUSER", "ann", "on", ">p", "+debug|digest", "%R~*")
        self.any().run("ACL", "SETUSER", "bob", "on", ">p", "+debug|digest", "%R~t:*")
        digest = self.digest_of()
        for member in self.everyone:
            self.wait_until(lambda member=member: {"ann", "bob"} <= set(member.run("ACL", "USERS")), "the users are not known")
            ann = member.server.client(decode_responses=True, username="ann", password="p")
            self.assertEqual(digest, ann.execute_command(*CLUSTER))
            bob = member.server.client(decode_responses=True, username="bob", password="p")
            for words in ((), ("LOCAL",), ("CUT",), ("PART", "5")):
                with self.assertRaisesRegex(redis.ResponseError, "NOPERM|permission"):
                    bob.execute_command(*CLUSTER, *words)


class Faults(DigestCase):
    def test_a_set_that_is_away_is_named(self):
        self.cluster(3)
        fill(self.any().run)
        digest = self.digest_of()
        self.everyone[2].server.kill()
        self.assertRegex(self.everyone[1].refusal(*CLUSTER), "(TRYAGAIN|CLUSTERDOWN).*(set 2|cut [0-9]+ is not one moment)")
        self.everyone[2].server.start()
        self.everyone[2].connect()
        self.wait_until(lambda: all(digest in member.refusal(*CLUSTER) for member in self.everyone),
                        lambda: [member.refusal(*CLUSTER) for member in self.everyone])
        # Set 0, which makes cuts.
        self.everyone[0].server.kill()
        self.assertRegex(self.everyone[1].refusal(*CLUSTER), "(TRYAGAIN|CLUSTERDOWN).*set 0")
        client = self.everyone[1].server.client(decode_responses=True)
        client.execute_command("MULTI")
        client.execute_command(*CLUSTER)
        with self.assertRaisesRegex(redis.ResponseError, "goes over all sets, not into an EXEC"):
            got = client.execute_command("EXEC")
            raise got[0]

    def test_nobody_writes_and_all_moves_and_leaders_change(self):
        """The digest is one, whatever goes on, and an error that it could not be made names what was in the way."""
        self.cluster(2, 3)
        fill(self.any().run)
        digest = self.digest_of()
        stop = threading.Event()
        threads = [self.beside(lambda: self.moves(stop)), self.beside(lambda: self.changes(stop))]
        until = time.monotonic() + SECONDS
        good, refused = 0, []
        while time.monotonic() < until or good < 5:
            try:
                client = redis.Redis(port=self.any(self.rng).port, socket_timeout=40, decode_responses=True)
                self.assertEqual(digest, client.execute_command(*CLUSTER), f"seed {self.seed}")
                good += 1
            except MOVED_ERRORS:
                pass
            except redis.ResponseError as error:
                refused.append(str(error))
                self.assertRegex(str(error), "^(TRYAGAIN|CLUSTERDOWN|LOADING)", f"seed {self.seed}")
            finally:
                client.close()
        stop.set()
        for thread in threads:
            thread.join()
        print(f"seed {self.seed}: {good} digests, {len(refused)} refused")
        self.wait_until(lambda: all(digest in member.refusal(*CLUSTER) for member in self.everyone),
                        lambda: [member.refusal(*CLUSTER) for member in self.everyone])

    def moves(self, stop):
        rng = random.Random(f"{self.seed} moves")
        while not stop.is_set():
            table, row = rng.choice([("t", rng.choice("abhipqz")), ("groups", rng.choice("amz")), ("other/t", rng.choice("az"))])
            words = rng.choice([("MOVE", table, row, "TO", rng.randrange(2), "WAIT", 3000)] * 3 + [("SPLIT", table, row), ("MERGE", table, row)])
            client = redis.Redis(port=rng.choice(self.everyone).port, socket_timeout=5, decode_responses=True)
            try:
                client.execute_command("TABLET", *words)
            except redis.RedisError:
                pass
            finally:
                client.close()

    def changes(self, stop):
        rng = random.Random(f"{self.seed} changes")
        while not stop.wait(rng.uniform(0.3, 1.5)):
            member = rng.choice(self.everyone)
            member.server.kill()
            time.sleep(rng.uniform(0, 0.5))
            member.server.start()
            member.connect()

    def test_writers_go_on(self):
        """What a digest counts is of one moment: that of a snapshot, which is asked again and again while rows move and change."""
        self.cluster(2)
        fill(self.any().run)
        self.any().run("SNAPSHOT", "CREATE", "s")
        of_snapshot = self.digest_of("SNAPSHOT", "s")
        stop = threading.Event()
        threads = [self.beside(lambda: self.moves(stop)), self.beside(lambda: self.writes(stop))]
        until = time.monotonic() + SECONDS
        seen = set()
        while time.monotonic() < until or len(seen) < 3:
            self.assertEqual(of_snapshot, self.digest_of("SNAPSHOT", "s"), f"seed {self.seed}")
            try:
                seen.add(self.digest_of())
            except redis.ResponseError as error:  # a tablet may be on its way at each attempt
                self.assertRegex(str(error), "^TRYAGAIN cut [0-9]+ is not one moment of all sets", f"seed {self.seed}")
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(1, len(self.digests()))

    def writes(self, stop):
        rng = random.Random(f"{self.seed} writes")
        count = 0
        while not stop.is_set():
            count += 1
            self.any(rng).run("CPUT", "t", rng.choice("abchipqz"), "f:x", count)


if __name__ == "__main__":
    unittest.main()
