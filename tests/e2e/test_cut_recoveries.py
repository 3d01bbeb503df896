"""Cuts of a cluster that is written to, moves its tablets and loses nodes, each recovered from the archives of its sets into a
new cluster: that is what the snapshot of the cut was."""

import itertools
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import binary, free_port, wait_until
from cluster_sets import pairs
from move_load import MovesCase
from replica_sets import Member

RECOVERIES = int(os.environ.get("CELLAR_CUT_RECOVERIES", 3))
SETS = 3
CAUSAL = 3   # writers
MIXED = 3
DIGEST = ("DEBUG", "DIGEST", "CLUSTER")


class CutRecoveries(MovesCase):
    def setUp(self):
        super().setUp()
        self.seed = os.environ.get("CELLAR_SEED", str(random.randrange(1 << 30)))
        self.rng = random.Random(self.seed)
        self.archive = self.folder("archive")
        self.new = self.folder("new")
        self.stop = threading.Event()
        self.errors = []
        self.contents = {}

    def folder(self, name):
        made = tempfile.mkdtemp(prefix=f"cellar-{name}-")
        self.addCleanup(shutil.rmtree, made, ignore_errors=True)
        return made

    def found(self):
        """A cluster, with an archive of each set."""
        options = {"archive_timeout": "1s"}
        first = self.new_set(archive_dir=f"{self.archive}/set-0", **options)
        self.lead(first, "CLUSTER", "INIT")
        self.sets = [first]
        for n in range(1, SETS):
            self.sets.append(self.new_set(join=first, archive_dir=f"{self.archive}/set-{n}", **options))
        for n in range(1, SETS):
            self.admit(n)
        self.everyone = [member for each in self.sets for member in each]
        for line in ("TABLE CREATE pairs SPLIT AT 2 h p FAMILY f VERSIONS 1",
                     "TABLE CREATE t SPLIT AT 3 d m t FAMILY f VERSIONS 2 FAMILY n TYPE i64 GROUP g",
                     "TABLE CREATE groups KEY utf8/u32 COLOCATE 1 SPLIT AT 1 m FAMILY f VERSIONS 1",
                     "TABLE CREATE counted KEY recno FAMILY f",
                     "INDEX CREATE t i ON 1 n:v INCLUDE 1 f:x",
                     "FEED CREATE log TABLE 1 t"):
            self.everyone[0].run(*line.split())

    def client(self, rng):
        return redis.Redis(port=rng.choice(self.everyone).port, socket_timeout=20, decode_responses=True)

    def until_ok(self, rng, *words):
        """What a node says in the end; None if all is over before, or it says what is no passing trouble."""
        while not self.stop.is_set():
            client = self.client(rng)
            try:
                return client.execute_command(*words)
            except (redis.ConnectionError, redis.TimeoutError):
                time.sleep(0.03)
            except redis.ResponseError as error:
                if not str(error).startswith(("TRYAGAIN", "CLUSTERDOWN", "LOADING", "READONLY")):
                    self.errors.append(f"{words}: {error}")
                    self.stop.set()
                time.sleep(0.03)
            finally:
                client.close()
        return None

    def attempt(self, rng, *words):
        client = self.client(rng)
        try:
            return client.execute_command(*words)
        except redis.RedisError:
            return None
        finally:
            client.close()

    # --- what goes on beside

    def causes(self, number):
        """Of three rows on any sets the next one is written once that is acknowledged of the one before."""
        rng = random.Random(f"{self.seed} c{number}")
        count = 0
        while not self.stop.is_set():
            count += 1
            for row in self.causal_rows(number):
                self.until_ok(rng, "CPUT", "pairs", row, "f:v", count)

    def causal_rows(self, number):
        rows = [f"{letter}{number}" for letter in "aiq"]
        random.Random(f"{self.seed} r{number}").shuffle(rows)
        return rows

    def mixes(self, number):
        rng = random.Random(f"{self.seed} m{number}")
        while not self.stop.is_set():
            client = self.client(rng)
            try:
                for _ in range(50):
                    row = f"{rng.choice('abcdefghijklmnopqrstuvwxyz')}{rng.randrange(20)}"
                    client.execute_command(*rng.choice((
                        ("CPUT", "t", row, "f:x", "v" * rng.randrange(200), "n:v", rng.randrange(9)),
                        ("CPUT", "t", row, "f:y", rng.randrange(9), "EXPIREAT", 4_000_000_000_000_000),
                        ("CINCRBY", "t", row, "n:c", 1),
                        ("CDEL", "t", row),
                        ("CDELRANGE", "t", "PREFIX", row),
                        ("CPUT", "groups", f"{row[0]}/{rng.randrange(9)}", "f:x", number),
                        ("CPUT", "counted", "*", "f:x", number))))
            except redis.RedisError:
                time.sleep(0.02)
            finally:
                client.close()

    def moves(self):
        rng = random.Random(f"{self.seed} moves")
        while not self.stop.is_set():
            table = rng.choice(("pairs", "t", "t", "groups"))
            row = rng.choice("abdhimpqtz")
            self.attempt(rng, "TABLET", *rng.choice([("MOVE", table, row, "TO", rng.randrange(SETS), "WAIT", 3000)] * 3 +
                                                    [("SPLIT", table, row), ("MERGE", table, row)]))

    def changes(self):
        """Of the schema, and nodes that save, or die."""
        rng = random.Random(f"{self.seed} changes")
        number = 0
        while not self.stop.wait(rng.uniform(0.2, 1.2)):
            number += 1
            what = rng.randrange(6)
            if what < 2:
                self.attempt(rng, "TABLE", "CREATE", f"x{number}", "FAMILY", "f")
                self.attempt(rng, "CPUT", f"x{number}", "r", "f:x", number)
            elif what == 2:
                self.attempt(rng, "TABLE", "DROP", f"x{number - 1}")
            elif what == 3:
                self.attempt(rng, "FAMILY", "ADD", "t", f"f{number}")
            elif what == 4:
                self.attempt(rng, "BGSAVE")
            else:
                member = rng.choice(self.everyone)
                member.server.kill()
                member.server.start()
                member.connect()

    # --- the test

    def moment(self, number):
        """A snapshot: its cut, its name and its digest. Of a try whose answer got lost nobody knows the cut: it has a name of its own."""
        names = (f"s{number:04}-{attempt:03}" for attempt in itertools.count())

        def made():
            name = next(names)
            return name if self.attempt(self.rng, "SNAPSHOT", "CREATE", name) == "OK" else None
        name = wait_until(made, "a snapshot", 0.03)
        info = pairs(self.until_ok(self.rng, "SNAPSHOT", "INFO", name))
        cuts = [pairs(each) for each in self.until_ok(self.rng, "CLUSTER", "CUTS", "COUNT", 500)]
        cut, state = next((int(each["cut"]), each["state"]) for each in cuts if each["time"] == info["created"])
        self.assertEqual("good", state, name)
        digest = self.until_ok(self.rng, *DIGEST, "SNAPSHOT", name)
        self.contents[name] = self.content(lambda *words: self.until_ok(self.rng, *words) or ("0", []), info["tables"], f"@{name}")
        return cut, name, digest

    @staticmethod
    def content(run, tables, suffix=""):
        """What the digest is of, to be told where it differs."""
        found = {}
        for table in tables:
            cursor = "0"
            found[table] = run("TABLE", "SHOW", table + suffix)[:1]
            while True:
                cursor, page = run("CSCAN", table + suffix, cursor, "COUNT", 100, "VERSIONS", 10, "WITHTS", "WITHTTL")
                found.update({f"{table} {row}": cells for row, cells in page})
                if cursor == "0":
                    break
        return found

    def drop(self, name):
        """Perhaps by a try whose answer got lost."""
        while name in self.until_ok(self.rng, "SNAPSHOT", "LIST"):
            self.attempt(self.rng, "SNAPSHOT", "DROP", name)

    def archived(self):
        for member in self.everyone:
            self.wait_until(lambda member=member: member.info("persistence").get("archive_lag_bytes") == 0,
                            lambda member=member: member.info("persistence"))

    def recovered(self, cut):
        """A new cluster of that cut."""
        places = [os.path.join(self.new, f"{cut}-{n}") for n in range(SETS)]
        tool = os.path.join(os.path.dirname(binary()), "cellar-cluster")
        done = subprocess.run([tool, "recover", self.archive, "--server", binary(), "--until", f"CUT:{cut}", "--sets", *places],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        members = []
        for place in places:
            port = free_port()
            options = {"cluster_join": [members[0].address]} if members else {}
            member = Member(self, port, [f"127.0.0.1:{port}"], **options)
            shutil.rmtree(member.directory)
            shutil.move(place, member.directory)
            member.server.start()
            self.wait_leader([member])
            members.append(member)
        for member in members:
            self.wait_until(lambda member=member: "no error" in member.refusal("CCOUNT", "pairs"),
                            lambda member=member: member.refusal("CCOUNT", "pairs") + member.server.log()[-1500:])
        return members

    def check(self, moment, kept):
        cut, name, digest = moment
        members = self.recovered(cut)
        told = f"seed {self.seed}: cut {cut}, snapshot {name}"
        member = self.rng.choice(members)
        got = member.run(*DIGEST)
        if got != digest:
            now, then = self.content(member.run, member.run("TABLE", "LIST")), self.contents[name]
            rows = sorted(row for row in now.keys() | then.keys() if now.get(row) != then.get(row))
            self.fail(f"{told}: {rows[:10]}: {[now.get(row) for row in rows[:3]]}, not {[then.get(row) for row in rows[:3]]}")
        for number in range(CAUSAL):
            values = [int(self.rng.choice(members).run("CGET", "pairs", row, "f:v") or 0) for row in self.causal_rows(number)]
            self.assertEqual(sorted(values, reverse=True), values, told)
            self.assertLessEqual(values[0] - values[-1], 1, told)
        # Snapshots of before are there, and none of later.
        listed = member.run("SNAPSHOT", "LIST")
        self.assertEqual([], [each[1] for each in kept if each[0] < cut and each[1] not in listed], told)
        self.assertEqual([], [each for each in listed if each >= name], told)
        for _, older, of_older in [each for each in kept if each[0] < cut][-2:]:
            self.assertEqual(of_older, self.rng.choice(members).run(*DIGEST, "SNAPSHOT", older), told)
        # Moves that were under way go on.
        self.wait_until(lambda: members[0].run("CLUSTER", "MAP", "CHECK") == [], lambda: f"{told}: {members[0].run('CLUSTER', 'MAP', 'CHECK')}")
        # It goes on.
        member.refusal("TABLET", "MOVE", "t", "a", "TO", self.rng.randrange(SETS), "WAIT", 20_000)  # or it is there already
        self.assertEqual(digest, self.rng.choice(members).run(*DIGEST), told)
        self.rng.choice(members).run("CPUT", "t", "a", "f:x", "later")
        self.assertNotEqual(digest, self.rng.choice(members).run(*DIGEST), told)
        for each in members:
            each.stop()
            shutil.rmtree(each.directory, ignore_errors=True)

    def test_a_recovered_cut_is_its_snapshot(self):
        self.found()
        threads = [self.beside(lambda n=n: self.causes(n)) for n in range(CAUSAL)]
        threads += [self.beside(lambda n=n: self.mixes(n)) for n in range(MIXED)]
        threads += [self.beside(self.moves), self.beside(self.changes)]
        moments, kept = [], []
        for i in range(RECOVERIES):
            time.sleep(self.rng.uniform(0, 0.5))
            self.assertEqual([], self.errors, f"seed {self.seed}")
            moments.append(self.moment(i))
            if self.rng.random() < 0.1:
                kept.append(moments[-1])
            else:
                self.drop(moments[-1][1])
        self.stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual([], self.errors, f"seed {self.seed}")
        self.archived()
        for member in self.everyone:
            member.stop()
        self.assertEqual(RECOVERIES, len({digest for _, _, digest in moments}))
        for i, moment in enumerate(moments):
            self.check(moment, kept)
            if (i + 1) % 10 == 0:
                print(f"seed {self.seed}: {i + 1} of {RECOVERIES} cuts recovered", flush=True)


if __name__ == "__main__":
    unittest.main()
