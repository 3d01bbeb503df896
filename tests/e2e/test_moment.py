"""One moment over all sets of a cluster: what a snapshot shows of each of them is of one moment, whatever moves, dies or stands
still meanwhile."""

import os
import random
import signal
import threading
import time
import unittest

import redis

from cluster_sets import pairs
from move_load import MOVED_ERRORS, MovesCase

GROUPS = 6
ACCOUNTS = 8
WRITERS = 4
SECONDS = float(os.environ.get("CELLAR_MOMENT_SECONDS", 10))
CUTS = int(os.environ.get("CELLAR_CUTS", 3))  # at least; each is read


class Bank:
    """Clients that transfer within groups, each by one EXEC, and that write of one row only when another one is written."""

    def __init__(self, test, rng):
        self.test = test
        self.rng = rng
        self.stop = threading.Event()
        self.done = 0
        self.errors = []

    def create(self):
        run = self.test.any().run
        run("TABLE", "CREATE", "bank", "KEY", "g=u64/n=u64", "COLOCATE", 1, "SPLIT", "AT", 2, 2, 4, "FAMILY", "f", "TYPE", "i64", "VERSIONS", 1)
        run("TABLE", "CREATE", "pairs", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f", "VERSIONS", 1)
        for group in range(GROUPS):
            for account in range(ACCOUNTS):
                run("CPUT", "bank", f"{group}/{account}", "f:v", 100)

    def client(self, rng):
        member = rng.choice(self.test.everyone)
        return redis.Redis(port=member.port, socket_timeout=5, decode_responses=True)

    def transfers(self, number):
        rng = random.Random(f"{self.test.seed} t{number}")
        client = self.client(rng)
        while not self.stop.is_set():
            group, amount = rng.randrange(GROUPS), rng.randrange(1, 20)
            one, other = rng.sample(range(ACCOUNTS), 2)
            try:
                with client.pipeline(transaction=False) as pipe:
                    pipe.execute_command("MULTI", "ATOMIC")
                    pipe.execute_command("CINCRBY", "bank", f"{group}/{one}", "f:v", -amount)
                    pipe.execute_command("CINCRBY", "bank", f"{group}/{other}", "f:v", amount)
                    pipe.execute_command("EXEC")
                    pipe.execute(raise_on_error=True)
                self.done += 1
            except MOVED_ERRORS:
                client.close()
                client = self.client(rng)
                time.sleep(0.02)
            except redis.ResponseError:
                client.close()
                client = self.client(rng)
                time.sleep(0.02)

    def causes(self, number):
        """The second row has a number only when the first one has it; where they lie changes."""
        rng = random.Random(f"{self.test.seed} c{number}")
        client = self.client(rng)
        rows = [f"{letter}{number}" for letter in "aiq"]
        rng.shuffle(rows)
        count = 0
        while not self.stop.is_set():
            count += 1
            for row in rows:
                while not self.stop.is_set():
                    try:
                        client.execute_command("CPUT", "pairs", row, "f:v", count)
                        self.done += 1
                        break
                    except redis.RedisError:
                        client.close()
                        client = self.client(rng)
                        time.sleep(0.02)
        self.orders[number] = rows

    def start(self):
        self.orders = {}
        self.rows = {}
        for number in range(WRITERS):
            rng = random.Random(f"{self.test.seed} c{number}")
            rng.choice(self.test.everyone)
            rows = [f"{letter}{number}" for letter in "aiq"]
            rng.shuffle(rows)
            self.rows[number] = rows
        self.threads = [self.test.beside(lambda n=n: self.transfers(n)) for n in range(WRITERS)]
        self.threads += [self.test.beside(lambda n=n: self.causes(n)) for n in range(WRITERS)]

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def faults(self, run, suffix):
        """What is wrong with the moment that `table + suffix` shows."""
        found = []
        bank = self.rows_of(run, "bank" + suffix)
        sums = {}
        for row, value in bank.items():
            group = row.split("/")[0]
            sums[group] = sums.get(group, 0) + int(value)
        if len(bank) != GROUPS * ACCOUNTS:
            found.append(f"{len(bank)} accounts")
        found += [f"group {group} has {total}" for group, total in sums.items() if total != 100 * ACCOUNTS]
        seen = self.rows_of(run, "pairs" + suffix)
        for number, rows in self.rows.items():
            values = [int(seen.get(row, 0)) for row in rows]
            if values != sorted(values, reverse=True) or values[0] - values[-1] > 1:
                found.append(f"writer {number}: {dict(zip(rows, values))}")
        return found

    @staticmethod
    def rows_of(run, table):
        rows, cursor = {}, "0"
        while True:
            cursor, page = run("CSCAN", table, cursor, "COUNT", 20)
            for row, cells in page:
                rows[row] = cells[1]
            if cursor == "0":
                return rows


class MomentCase(MovesCase):
    def setUp(self):
        super().setUp()
        self.seed = os.environ.get("CELLAR_SEED", str(random.randrange(1 << 30)))
        self.rng = random.Random(self.seed)

    def retried(self, *words, patience=20):
        """What a node says in the end, where nodes are away for a while."""
        until = time.monotonic() + patience
        while True:
            try:
                client = redis.Redis(port=self.rng.choice(self.everyone).port, socket_timeout=12, decode_responses=True)
                try:
                    return client.execute_command(*words)
                finally:
                    client.close()
            except MOVED_ERRORS as error:
                last = error
            except redis.ResponseError as error:
                last = error
                if not str(error).startswith(("TRYAGAIN", "CLUSTERDOWN", "LOADING", "NOSNAPSHOT", "READONLY", "STALECURSOR")):
                    raise
            if time.monotonic() > until:
                raise last
            time.sleep(0.05)

    def cuts(self, count=1000):
        return [pairs(each) for each in self.retried("CLUSTER", "CUTS", "COUNT", count)]


class Snapshots(MomentCase):
    def test_create_read_move_drop(self):
        self.cluster(3)
        run = self.any().run
        run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f", "VERSIONS", 3)
        run("TABLE", "CREATE", "u", "FAMILY", "f")
        rows = [f"{letter}{number}" for letter in "adgilnqtw" for number in range(5)]
        for row in rows:
            run("CPUT", "t", row, "f:x", "old")
        run("CPUT", "u", "r", "f:x", "old")
        self.assertEqual("OK", self.any().run("SNAPSHOT", "CREATE", "s"))
        for row in rows[::2]:
            run("CPUT", "t", row, "f:x", "new")
        run("CDEL", "t", rows[1])
        run("CPUT", "t", "zz", "f:x", "new")

        def check(note):
            for member in self.everyone:
                self.assertEqual(["s"], member.run("SNAPSHOT", "LIST"), note)
                got = Bank.rows_of(member.run, "t@s")
                self.assertEqual({row: "old" for row in rows}, got, note)
                for row in self.rng.sample(rows, 5):
                    self.assertEqual("old", member.run("CGET", "t@s", row, "f:x"), note)
                self.assertEqual(len(rows), member.run("CCOUNT", "t@s"), note)
                self.assertEqual(["old"] * 3, [cells[1] for cells in member.run("CROWS", "t@s", 3, "a0", "i1", "w4")], note)
                self.assertEqual("old", member.run("CGET", "u@s", "r", "f:x"), note)
                self.assertIn("is a snapshot", member.refusal("CPUT", "t@s", "a0", "f:x", "1"), note)
                self.assertIn("is a snapshot", member.refusal("CDELRANGE", "t@s", "RANGE", "[a", "[b"), note)
                info = pairs(member.run("SNAPSHOT", "INFO", "s"))
                self.assertEqual((["t", "u"], len(rows) + 1, len(rows) + 1), (info["tables"], info["rows"], info["cells"]), note)
                infos.add((info["id"], info["created"]))
        infos = set()
        check("at first")
        for row, to in (("a", 1), ("i", 2), ("q", 0)):
            self.assertEqual("OK", self.move(row, to))
        check("moved")
        self.any().refusal("TABLET SPLIT t c")
        self.assert_whole()
        self.assertEqual("OK", self.any().run("CLUSTER MAP REBUILD"))
        check("rebuilt")
        self.assert_whole()
        for member in self.everyone:
            self.restart(member)
        self.wait_until(lambda: all(self.sees(member, 3) for member in self.everyone), "they are not back")
        self.wait_until(lambda: self.any().refusal("CCOUNT", "t@s").endswith(str(len(rows))), lambda: self.any().refusal("CCOUNT t@s"))
        check("restarted")
        self.assertEqual(1, len(infos), infos)
        self.assertIn("BUSYKEY", self.any().refusal("SNAPSHOT CREATE s"))
        self.assertEqual("OK", self.any().run("SNAPSHOT CREATE s TABLE 1 t REPLACE"))
        self.assertEqual("new", self.any().run("CGET", "t@s", "zz", "f:x"))
        self.assertIn("NOTABLE", self.any().refusal("CGET", "u@s", "r", "f:x"))
        self.any().run("TABLE DROP t")
        self.assertEqual("new", self.any().run("CGET", "t@s", "zz", "f:x"))
        self.assertEqual("OK", self.any().run("SNAPSHOT DROP s"))
        self.assertIn("NOSNAPSHOT", self.any().refusal("CGET", "t@s", "zz", "f:x"))
        self.assert_whole()
        self.assertEqual("OK", self.any().run("SNAPSHOT CREATE brief TTL 300ms"))
        self.wait_until(lambda: all("NOSNAPSHOT" in member.refusal("SNAPSHOT INFO brief LOCAL") for member in self.everyone), "it stays")

    def test_tables_are_those_of_the_cut(self):
        """Also of one that has to wait: what was created before something that it shows is in it."""
        self.cluster(2)
        self.any().run("TABLE", "CREATE", "told", "SPLIT", "AT", 1, "m", "FAMILY", "f", "VERSIONS", 1)
        stop = threading.Event()
        errors = []

        def creates():
            client = redis.Redis(port=self.everyone[0].port, socket_timeout=30, decode_responses=True)
            for number in range(1, 200):
                if stop.is_set():
                    return
                try:
                    client.execute_command("TABLE", "CREATE", f"x{number:03}", "FAMILY", "f")
                    client.execute_command("CPUT", "told", "z", "f:v", number)
                except redis.ResponseError as error:
                    errors.append(str(error))
                    return

        def moves():
            to = 0
            while not stop.is_set():
                self.everyone[1].refusal("TABLET", "MOVE", "told", "z", "TO", to, "WAIT", 5000)
                to = 1 - to
        threads = [self.beside(creates), self.beside(moves)]
        for number in range(20):
            self.assertEqual("OK", self.everyone[1].run("SNAPSHOT", "CREATE", "s", "REPLACE"))
            told = int(self.everyone[1].run("CGET", "told@s", "z", "f:v") or 0)
            tables = pairs(self.everyone[1].run("SNAPSHOT", "INFO", "s"))["tables"]
            self.assertEqual([], [f"x{each:03}" for each in range(1, told + 1) if f"x{each:03}" not in tables], number)
            self.assertIn("told", tables)
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual([], errors)
        # Who names some, and who may not do everything, gets those.
        self.any().run("SNAPSHOT CREATE s TABLE 1 told REPLACE")
        self.assertEqual(["told"], pairs(self.any().run("SNAPSHOT INFO s"))["tables"])

    def test_a_set_that_joins_knows_them(self):
        self.cluster(1)
        run = self.everyone[0].run
        run("TABLE", "CREATE", "t", "SPLIT", "AT", 1, "m", "FAMILY", "f")
        run("CPUT t a f:x 1 f:y 2")
        run("CPUT t z f:x 1")
        run("SNAPSHOT CREATE before")
        self.sets.append(self.new_set(join=self.sets[0]))
        self.admit(1)
        self.everyone = [member for each in self.sets for member in each]
        newer = self.sets[1][0]
        self.assertEqual(["before"], newer.run("SNAPSHOT LIST"))
        self.assertEqual("OK", self.move("z", 1))
        run("CPUT t z f:x 2")
        self.assertEqual("OK", newer.run("SNAPSHOT CREATE after"))
        for member in self.everyone:
            self.assertEqual("1", member.run("CGET t@before z f:x"))
            self.assertEqual("2", member.run("CGET t@after z f:x"))
            self.assertEqual(2, member.run("CCOUNT t@before"))
            self.assertEqual(2, member.run("CCOUNT t@after"))
        self.assert_whole()
        self.assertEqual("OK", self.move("z", 0))
        self.any().run("CLUSTER DRAIN 1")
        self.wait_until(lambda: "holds snapshot after" in self.any().refusal("CLUSTER REMOVE 1"), lambda: self.any().refusal("CLUSTER REMOVE 1"))
        self.assertEqual("OK", self.any().run("SNAPSHOT DROP after"))
        self.wait_until(lambda: self.any().refusal("CLUSTER REMOVE 1").endswith("OK"), lambda: self.any().refusal("CLUSTER REMOVE 1"))
        self.assertEqual("1", run("CGET t@before z f:x"))

    def test_every_read_of_a_snapshot(self):
        """What reads a table on several sets reads one of a snapshot, also where its rows have moved since."""
        self.cluster(3)
        run = self.any().run
        run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f", "FAMILY", "n", "TYPE", "i64")
        run("INDEX CREATE t i ON 1 f:x")
        rows = [f"{letter}{number}" for letter in "aiq" for number in range(40)]
        for row in rows:
            run("CPUT", "t", row, "f:x", f"v{row}", "n:k", len(row))
        reads = [("CGET", "{}", "i3", "f:x"), ("CMGET", "{}", "q3", "f:x", "n:k"), ("CROW", "{}", "a1"), ("CEXISTS", "{}", "q39"),
                 ("CROWS", "{}", 3, "a1", "i2", "q3"), ("CSCAN", "{}", 0, "COUNT", 1000), ("CSCAN", "{}", 0, "REVERSE", "COUNT", 1000),
                 ("CSCAN", "{}", 0, "INDEX", "i", "COUNT", 1000), ("CCOUNT", "{}"), ("CCOUNT", "{}", "WHERE", "n:k", "GE", 3),
                 ("CCOUNT", "{}", "RANGE", "[c", "(r"), ("CAGG", "{}", "REDUCE", "SUM", "n:k", "REDUCE", "COUNT", "f"),
                 ("CNEAR", "{}", "i"), ("TABLE", "SAMPLE", "{}", 5), ("EXISTS", "{}")]

        def answers(table):
            return [self.any().run(*(str(word).replace("{}", table) for word in words)) for words in reads]
        before = answers("t")
        self.assertEqual("OK", run("SNAPSHOT CREATE s"))
        self.assertEqual(before, answers("t@s"))
        for row, to in (("a", 1), ("i", 2), ("q", 0)):
            self.assertEqual("OK", self.any().run("TABLET", "MOVE", "t", row, "TO", to, "WAIT", 20_000))
        for row in rows[::2]:
            self.any().run("CDEL", "t", row)
        self.any().run("CPUT t zz f:x new n:k 7")
        for _ in range(4):
            self.assertEqual(before, answers("t@s"))
        self.assertNotEqual(before, answers("t"))
        for member in self.everyone:
            self.assertIn("rows", str(member.run("CEXPLAIN CSCAN t@s 0 WHERE n:k GE 3")))
            self.assertEqual(len(rows), pairs(member.run("TABLE INFO t@s"))["rows"])

    def test_copies_and_kept_drops(self):
        self.cluster(3, drop_keep="1h")
        run = self.any().run
        run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f", "GROUP", "g", "FAMILY", "h")
        rows = [f"{letter}{number}" for letter in "aiq" for number in range(50)]
        for row in rows:
            run("CPUT", "t", row, "f:x", row, "h:y", "1")
        self.assertEqual(1, self.any().run("COPY t u"))
        self.assertEqual(0, self.any().run("COPY t u"))
        run("CPUT t a1 f:x new")
        for member in self.everyone:
            self.assertEqual({row: row for row in rows}, Bank.rows_of(member.run, "u"))
            self.assertEqual("new", member.run("CGET t a1 f:x"))
        self.assertEqual(3, len(self.tablets("u")))
        self.assert_whole()
        self.assertEqual(1, self.any().run("COPY t u REPLACE"))
        self.assertEqual("new", self.any().run("CGET u a1 f:x"))
        self.any().run("CPUT u q7 f:x other")
        self.assertEqual("q7", self.any().run("CGET t q7 f:x"))
        self.any().run("TABLE DROP u")
        kept = [name for name in self.any().run("SNAPSHOT LIST") if name.startswith("dropped.u.")]
        self.assertEqual(2, len(kept), kept)
        self.assertEqual("other", self.any().run("CGET", f"u@{kept[-1]}", "q7", "f:x"))
        self.assertEqual(1, self.any().run("COPY", f"u@{kept[-1]}", "back"))
        self.assertEqual("other", self.any().run("CGET back q7 f:x"))
        self.assertEqual(len(rows), self.any().run("CCOUNT back"))
        self.assert_whole()


class Cursors(MomentCase):
    def test_pages_of_one_moment(self):
        """Whatever is written, moves and dies between two of them, and whoever is asked."""
        self.cluster(3)
        run = self.any().run
        run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f", "VERSIONS", 1)
        run("INDEX", "CREATE", "t", "i", "ON", 1, "f:n")
        rows = sorted(f"{letter}{number:02}" for letter in "adgilnqtw" for number in range(10))
        for number, row in enumerate(rows):
            run("CPUT", "t", row, "f:n", number % 7, "f:x", "old")
        self.wait_until(lambda: all(pairs(each.run("INDEX", "INFO", "t", "i", "LOCAL"))["state"] == "ready" for each in self.everyone),
                        "the index is not built")
        self.any().run("ACL", "SETUSER", "reads", "on", "nopass", "+cscan", "%R~t:*")
        self.wait_until(lambda: all("reads" in each.run("ACL", "USERS") for each in self.everyone), "the user is not known")
        for words, expected in (((), rows), (("REVERSE",), rows[::-1]), (("INDEX", "i"), None)):
            cursor, seen = "0", []
            while True:
                client = redis.Redis(port=self.any().port, decode_responses=True, username="reads", password="any")
                cursor, page = client.execute_command("CSCAN", "t", cursor, *words, "COUNT", 7, "SNAPSHOT")
                client.close()
                seen += [(row, dict(zip(*[iter(cells)] * 2))["f:x"]) for row, cells in page]
                if cursor == "0":
                    break
                self.any().run("CPUT", "t", self.rng.choice(rows), "f:x", "new")
                self.any().run("CPUT", "t", self.rng.choice(rows) + "x", "f:n", 3)
                self.any().run("CDEL", "t", self.rng.choice(rows))
                if self.rng.random() < 0.3:
                    self.any().refusal("TABLET", "MOVE", "t", self.rng.choice("aiq"), "TO", self.rng.randrange(3), "WAIT", 5000)
            self.assertEqual({"old"}, {value for _, value in seen}, words)
            self.assertEqual(sorted(rows), sorted(row for row, _ in seen), words)
            if expected:
                self.assertEqual(expected, [row for row, _ in seen], words)
            self.assertEqual([], self.any().run("SNAPSHOT LIST"))
            self.any().run("CDELRANGE", "t", "ALL")
            for number, row in enumerate(rows):
                self.any().run("CPUT", "t", row, "f:n", number % 7, "f:x", "old")
        self.wait_until(lambda: "NOSNAPSHOT" in self.any().refusal("SNAPSHOT INFO #1"), "a snapshot stays")

    def test_all_rows_on_one_set_when_it_begins(self):
        """They move away between the pages: the cursor is of all sets all the same."""
        self.cluster(3)
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 1, "m", "FAMILY", "f", "VERSIONS", 1)
        self.any().run("INDEX", "CREATE", "t", "i", "ON", 1, "f:x")
        for member in self.everyone:
            self.wait_until(lambda member=member: pairs(member.run("INDEX", "INFO", "t", "i", "LOCAL"))["state"] == "ready", "it is not built")
        rows = "abcdwxyz"

        def move(row, to):
            words = ["TABLET", "MOVE", "t", row, "TO", to, "WAIT", 20000]
            self.wait_until(lambda: any(text in self.any().refusal(*words) for text in ("no error", "already")), lambda: self.any().refusal(*words))
        home = 0
        for words in ((), ("REVERSE",), ("INDEX", "i")):
            self.any().run("CDELRANGE", "t", "ALL")
            for row in rows:
                self.any().run("CPUT", "t", row, "f:x", "old")
            for front in "az":
                move(front, home)
            cursor, seen = "0", []
            for page in range(len(rows)):
                cursor, found = self.any().run("CSCAN", "t", cursor, *words, "COUNT", 2, "SNAPSHOT")
                seen += [(row, cells[1]) for row, cells in found]
                if cursor == "0":
                    break
                home = (home + 1) % 3
                move("az"[page % 2], home)
                for row in rows:
                    self.any().run("CPUT", "t", row, "f:x", "new")
            expected = [(row, "old") for row in rows]
            self.assertEqual(expected[::-1] if words == ("REVERSE",) else expected, seen, words)
        # In an EXEC it is of the set that has the rows.
        for front in "az":
            move(front, 1)
        pipe = self.everyone[1].redis.pipeline()
        pipe.execute_command("CSCAN", "t", "0", "COUNT", 2, "SNAPSHOT")
        self.assertEqual(["a", "b"], [row for row, _ in pipe.execute()[0][1]])

    def test_a_cursor_that_has_ended(self):
        """Its snapshot is dropped at set 0, of which other nodes hear a moment later: they may still show the page."""
        self.cluster(3)
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "m", "s", "FAMILY", "f")
        for row in "abmnxyz":
            self.any().run("CPUT", "t", row, "f:x", 1)
        for _ in range(50):
            rows, cursor = "", "0"
            while rows == "" or cursor != "0":
                last = cursor
                cursor, page = self.any().run("CSCAN", "t", cursor, "COUNT", 2, "SNAPSHOT")
                rows += "".join(row for row, _ in page)
            self.assertEqual("abmnxyz", rows)
            told = self.any().refusal("CSCAN", "t", last, "COUNT", 2, "SNAPSHOT")
            self.assertRegex(told, f"STALECURSOR|no error.*'{page[-1][0]}'")

    def test_what_nobody_uses_goes(self):
        self.cluster(2, snapshot_cursor_timeout=10)
        run = self.any().run
        run("TABLE", "CREATE", "t", "SPLIT", "AT", 1, "m", "FAMILY", "f")
        for row in "abcxyz":
            run("CPUT", "t", row, "f:x", 1)
        cursor, page = self.any().run("CSCAN t 0 COUNT 2 SNAPSHOT")
        self.assertEqual(["a", "b"], [row for row, _ in page])
        # The director, and the others, go away and come again: the cursor is good still.
        for member in self.everyone:
            self.restart(member)
        self.wait_until(lambda: all(self.sees(member, 2) for member in self.everyone), "they are not back")
        got = self.retried("CSCAN", "t", cursor, "COUNT", 2, "SNAPSHOT")
        self.assertEqual(["c", "x"], [row for row, _ in got[1]])
        self.wait_until(lambda: "STALECURSOR" in self.any().refusal("CSCAN", "t", cursor, "SNAPSHOT"), "the snapshot of a cursor stays")
        self.assertIn("STALECURSOR", self.any().refusal("CSCAN", "t", cursor))

    def test_there_are_not_many_of_them(self):
        """As many as there may be snapshots, which they do not take the places of; all that nobody uses go at once."""
        self.cluster(2, snapshot_cursor_timeout=10, snapshots_max=5)
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 1, "m", "FAMILY", "f")
        for row in "abcxyz":
            self.any().run("CPUT", "t", row, "f:x", 1)
        for number in range(5):
            self.any().run("SNAPSHOT", "CREATE", f"s{number}")
        self.assertIn("TOOLARGE", self.any().refusal("SNAPSHOT CREATE more"))
        cursors = [self.any().run("CSCAN t 0 COUNT 2 SNAPSHOT")[0] for _ in range(5)]
        self.assertIn("TOOLARGE there are at most 5 cursors", self.any().refusal("CSCAN t 0 COUNT 2 SNAPSHOT"))
        self.assertEqual(["c", "x"], [row for row, _ in self.any().run("CSCAN", "t", cursors[0], "COUNT", 2, "SNAPSHOT")[1]])
        before = self.everyone[0].info("cluster")["cluster_catalog"]
        self.wait_until(lambda: "no error" in self.any().refusal("CSCAN t 0 COUNT 2 SNAPSHOT"), "cursors that nobody uses stay")
        # Some have been used a moment later than others. The new one is a cut, and a name; what is refused is no cut.
        self.assertLess(self.everyone[0].info("cluster")["cluster_catalog"] - before, 10)
        self.assertEqual(5, len(self.any().run("SNAPSHOT LIST")))


class Cuts(MomentCase):
    def test_none_in_an_exec(self):
        self.cluster(2)
        for member in self.everyone:
            for words in (["DEBUG", "DIGEST", "CLUSTER", "CUT"], ["DEBUG", "DIGEST", "CLUSTER"], ["CLUSTER", "CUT"]):
                pipe = member.redis.pipeline(transaction=False)
                pipe.execute_command("MULTI")
                pipe.execute_command(*words)
                pipe.execute_command("EXEC")
                told = pipe.execute(raise_on_error=False)
                self.assertRegex(str(told[1:]), "CROSSSET|ERR|EXECABORT|not allowed|inside", (words, told))
                self.assertEqual(True, member.run("PING"))
        self.assertIsInstance(self.any().run("CLUSTER CUT"), int)

    def test_by_command_and_by_interval(self):
        self.cluster(3)
        first = self.any().run("CLUSTER CUT")
        second = self.any().run("CLUSTER CUT")
        self.assertGreater(second, first)
        told = self.cuts()
        self.assertEqual([second, first], [cut["cut"] for cut in told])
        self.assertEqual([("restore point", "good")] * 2, [(cut["purpose"], cut["state"]) for cut in told])
        self.assertGreater(told[0]["time"], told[1]["time"])
        self.assertEqual(1, len(self.cuts(1)))
        self.any().run("CLUSTER CONFIG SET cluster-cut-interval 1")
        self.wait_until(lambda: len(self.cuts()) >= 4, "no cut comes by itself")
        self.any().run("CLUSTER CONFIG SET cluster-cut-interval 0")
        info = self.wait_leader(self.sets[0]).info("cluster")
        self.assertGreaterEqual(info["cluster_cuts_good"], 3)
        self.assertGreater(info["cluster_hold_us_max"], 0)
        # A set that is away: there is no moment over all.
        self.everyone[2].server.kill()
        got = self.everyone[0].refusal("CLUSTER CUT")
        self.assertRegex(got, "TRYAGAIN .*(set 2 is away|cut [0-9]+ is not one moment).* nothing was done")
        self.everyone[2].server.start()
        self.everyone[2].connect()
        self.wait_until(lambda: "no error" in self.everyone[0].refusal("CLUSTER CUT"), "no cut any more")

    def test_a_restore_point_that_is_due_is_made_in_the_end(self):
        """A set stands still for several cuts; none would be due again for days."""
        self.cluster(2)
        director, other = self.everyone
        director.run("CLUSTER CONFIG SET cluster-cut-interval 1")
        self.wait_until(lambda: [cut for cut in self.cuts() if cut["state"] == "good"], "no cut comes by itself")
        bad = director.info("cluster")["cluster_cuts_bad"]
        other.server.process.send_signal(signal.SIGSTOP)
        try:
            self.wait_until(lambda: director.info("cluster")["cluster_cuts_bad"] > bad, lambda: director.info("cluster"))
            director.run("CLUSTER CONFIG SET cluster-cut-interval 1000000")
            self.wait_until(lambda: "The restore point that is due is not made yet" in director.server.log() or
                            director.info("cluster")["cluster_cuts_bad"] >= bad + 3, lambda: director.info("cluster"))
            good = director.info("cluster")["cluster_cuts_good"]
        finally:
            other.server.process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: director.info("cluster")["cluster_cuts_good"] > good, lambda: director.info("cluster"))

    def test_clocks_that_differ(self):
        self.cluster(3)
        run = self.everyone[0].run
        run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f")
        self.everyone[1].run("DEBUG", "SET-TIME", int((time.time() + 600) * 1e6))
        for row in "aiq":
            run("CPUT", "t", row, "f:x", 1)
        self.assertEqual("OK", run("SNAPSHOT CREATE s"))
        good = [cut for cut in self.cuts() if cut["state"] == "good"]
        self.assertEqual(1, len(good), self.cuts())
        self.assertGreater(good[0]["time"], (time.time() + 500) * 1e6)
        # Its clock is right again. Commit times do not go back, but cuts do not go on ahead of them.
        self.restart(self.everyone[1])
        for _ in range(4):
            self.wait_until(lambda: "no error" in self.everyone[0].refusal("CLUSTER CUT"), "no cut any more")
            time.sleep(2)  # the times of cuts go on by less
        times = [cut["time"] for cut in self.cuts() if cut["state"] == "good"]
        self.assertLess(times[0] - times[1], 1_500_000, times)
        ids = {pairs(member.run("SNAPSHOT INFO s LOCAL"))["id"] for member in self.everyone}
        self.assertEqual(1, len(ids), ids)

    def test_clocks_that_are_set_back(self):
        """All of them far ahead of the machine's, as tests have it, and a set has committed since by what they were before."""
        self.cluster(3)
        run = self.everyone[0].run
        run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f")
        begin = int((time.time() + 40 * 86_400) * 1e6)
        rows = {int(run("TABLET", "ROUTE", "t", row)[1]): row for row in "aiq"}
        for after in (0, 60, 0):
            for member in self.everyone:
                member.run("DEBUG", "SET-TIME", begin + after * 1_000_000)
            if after:
                run("CPUT", "t", rows[1], "f:x", 1)
        self.assertEqual("OK", run("SNAPSHOT CREATE s"))
        self.assertEqual(1, run("CCOUNT t@s"))

class UnderLoad(MomentCase):
    def run_bank(self, seconds, beside, sets=3, voters=1):
        self.cluster(sets, voters)
        bank = Bank(self, self.rng)
        bank.create()
        bank.start()
        stop = threading.Event()
        threads = [self.beside(lambda one=one: one(stop)) for one in beside]
        until = time.monotonic() + seconds
        taken = refused = 0
        last = until
        faults = []
        while time.monotonic() < until or taken < CUTS:
            name = f"s{taken % 50}"
            try:
                self.retried("SNAPSHOT", "CREATE", name, "REPLACE")
            except redis.RedisError:
                refused += 1
                self.assertLess(time.monotonic(), last + 120, f"no snapshot any more, seed {self.seed}")
                continue
            found = None
            patience = time.monotonic() + 60
            while found is None:
                try:
                    found = bank.faults(lambda *words: self.retried(*words), f"@{name}")
                except redis.RedisError:
                    self.assertLess(time.monotonic(), patience, f"the snapshot cannot be read, seed {self.seed}")
            faults += [f"{name}: {each}" for each in found]
            taken += 1
            last = max(until, time.monotonic())
            if taken % 500 == 0:
                print(f"seed {self.seed}: {taken} snapshots, {refused} refused, {bank.done} writes, {len(faults)} faults", flush=True)
            try:
                self.retried("SNAPSHOT", "DROP", name, patience=5)
            except redis.RedisError:
                pass
        stop.set()
        for thread in threads:
            thread.join()
        bank.end()
        states = [cut["state"] for cut in self.cuts()]
        print(f"seed {self.seed}: {taken} snapshots ({refused} refused), {states.count('good')} good cuts, "
              f"{states.count('bad')} bad, {bank.done} writes, {len(faults)} faults")
        self.assertEqual([], faults[:5], f"seed {self.seed}")
        self.wait_until(lambda: self.retried("CLUSTER", "MAP", "CHECK") == [], lambda: self.retried("CLUSTER", "MAP", "CHECK"))

    def moves(self, stop):
        rng = random.Random(f"{self.seed} moves")
        while not stop.is_set():
            table, row = rng.choice([("bank", str(rng.randrange(GROUPS))), ("pairs", rng.choice("abhipqz"))])
            words = rng.choice([("MOVE", table, row, "TO", rng.randrange(len(self.sets)), "WAIT", 3000)] * 3 +
                               [("SPLIT", table, row), ("MERGE", table, row)])
            try:
                client = redis.Redis(port=rng.choice(self.everyone).port, socket_timeout=5, decode_responses=True)
                client.execute_command("TABLET", *words)
            except redis.RedisError:
                pass
            finally:
                client.close()
            time.sleep(0.02)

    def kills(self, stop):
        rng = random.Random(f"{self.seed} kills")
        while not stop.wait(rng.uniform(0.5, 2.5)):
            member = rng.choice(self.everyone)
            if rng.random() < 0.5:
                member.server.kill()
                time.sleep(rng.uniform(0, 0.5))
                member.server.start()
            else:
                process = member.server.process
                process.send_signal(signal.SIGSTOP)
                time.sleep(rng.uniform(0.1, 1.2))
                process.send_signal(signal.SIGCONT)

    def test_calm(self):
        self.run_bank(SECONDS, [])

    def test_while_tablets_move(self):
        self.run_bank(SECONDS, [self.moves])

    def test_while_nodes_die(self):
        self.run_bank(SECONDS, [self.moves, self.kills])

    def test_while_leaders_change(self):
        self.run_bank(SECONDS, [self.moves, self.kills], sets=2, voters=3)


if __name__ == "__main__":
    unittest.main()
