"""FAMILY ALTER of types over several sets: what one server does, whatever moves, splits and dies beside it."""

import os
import random
import signal
import threading
import time
import unittest

import redis

from cellar_server import CellarServer
from cluster_sets import pairs
from move_load import MOVED_ERRORS, LoadCase

SECONDS = float(os.environ.get("CELLAR_ALTER_SECONDS", "8"))
ROWS = [f"{letter}{number}" for letter in "aejnrvz" for number in range(3)]
TYPES = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "bool", "bytes", "string", "uuid")
EDGES = ([str(sign * 2 ** bits + more) for bits in (0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64) for more in (-1, 0, 1) for sign in (1, -1)]
         + ["0.5", "-0", "1e39", "inf", "-inf", "nan", "0.1", "16777217", "3.0", "true", "false", "n/a", "007", " 1", "",
            "00112233-4455-6677-8899-aabbccddeeff"])
# What is refused for a while, and never done in part.
BEFORE = "TRYAGAIN|CLUSTERDOWN|LOADING|WRONGTYPE|MISCONF"


class TypesCase(LoadCase):
    def start(self, sets=3, voters=1, *family):
        self.cluster(sets, voters)
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f", *family)
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")

    def write(self, **columns):
        for row in ROWS:
            self.any().run("CPUT", "t", row, *sum(([f"f:{name}", value] for name, value in columns.items()), []))

    def alter(self, *words):
        self.assertEqual("OK", self.any().run("FAMILY", "ALTER", "t", "f", *words))

    def refused(self, pattern, *words):
        self.assertRegex(self.any().refusal("FAMILY", "ALTER", "t", "f", *words), pattern)

    def shown(self, row, member=None):
        """column -> [(value, type)], newest first."""
        cells = (member or self.any()).run("CROW", "t", row, "VERSIONS", 1000, "WITHTYPE")
        return {name: [(value, kind) for _, value, kind in versions] for name, versions in pairs(cells or []).items()}

    def kinds(self, column):
        """The types that cells of the column have."""
        return {kind for row in ROWS for _, kind in self.shown(row).get(f"f:{column}", [])}

    def assert_same_catalogs(self):
        self.wait_until(lambda: len({str(self.catalog(member)) for member in self.everyone}) == 1,
                        lambda: "\n".join(str(self.catalog(member)) for member in self.everyone))


class SameAsOneServer(TypesCase):
    def setUp(self):
        super().setUp()
        self.alone = CellarServer(save="")
        self.addCleanup(self.alone.close)
        self.alone.start()
        self.one = redis.Redis(port=self.alone.port, decode_responses=True)
        self.addCleanup(self.one.close)

    def both(self, *words):
        """The reply of both, or the line of the error."""
        try:
            expected = self.one.execute_command(*words)
        except redis.ResponseError as error:
            expected = f"ResponseError {error}"
        try:
            told = self.any().run(*words)
        except redis.ResponseError as error:
            told = f"ResponseError {error}"
        self.assertEqual(expected, told, f"seed {self.seed}: {words}")
        return told

    def assert_same_rows(self, words):
        for row in ROWS:
            of_one = self.one.execute_command("CROW", "t", row, "VERSIONS", 1000, "WITHTYPE", "WITHTTL")
            of_sets = self.any().run("CROW", "t", row, "VERSIONS", 1000, "WITHTYPE", "WITHTTL")
            self.assertEqual(str(of_one), str(of_sets), f"seed {self.seed}: {row} behind {words}")

    def test_generated(self):
        rng = random.Random(self.seed)
        self.start()
        self.one.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        stamp = 0
        done = 0
        until = time.monotonic() + SECONDS
        while time.monotonic() < until or done < 10:
            for _ in range(60):
                stamp += 1
                words = ["CPUT", "t", rng.choice(ROWS), f"f:{rng.choice('abc')}", rng.choice(EDGES), "TS", stamp]
                if rng.random() < 0.7:
                    words += ["AS", rng.choice(TYPES)]
                self.both(*words)
            for _ in range(4):
                words = ["FAMILY", "ALTER", "t", "f"]
                columns = "".join(rng.sample("abc", rng.choice((0, 1, 1, 2))))
                for column in columns:
                    words += rng.choice((["COLUMN", column, rng.choice(TYPES)], ["NOCOLUMN", column]))
                if not columns or rng.random() < 0.3:
                    words += ["TYPE", rng.choice(TYPES + ("NONE",))]
                words += rng.choice(([], ["CONVERT"], ["CONVERT", "SKIP"], ["CONVERT", "SKIP"], ["KEEP"]))
                if rng.random() < 0.1:
                    words += ["VERSIONS", rng.choice((3, 20))]
                done += self.both(*words) == "OK"
                self.assert_same_rows(words)
            for row in rng.sample(ROWS, 5):
                self.both("CDEL", "t", row)
        print(f"seed {self.seed}: {done} changes", flush=True)
        self.assert_same_catalogs()


class AlterTypesTest(TypesCase):
    def test_what_is_refused_has_changed_nothing(self):
        self.start()
        self.write(x="7", y="8")
        shown = [self.any().run("TABLE", "SHOW", "t"), self.shown("v1")]
        self.refused("WRONGTYPE family 'f' has cells of type bytes .row 'a0', column 'f:x'.: CONVERT rewrites them", "TYPE", "i64")
        self.any().run("CPUT", "t", "v1", "f:x", "n/a")
        self.any().run("CPUT", "t", "e1", "f:x", "x", "f:y", "y")
        shown[1] = self.shown("v1")
        # Of all sets together, as one server tells it.
        self.refused("WRONGTYPE row 'e1': column 'f:x' holds 'x', no i64: 3 cells cannot be converted; CONVERT SKIP leaves those",
                     "TYPE", "i64", "CONVERT")
        for words, pattern in ((["ORDER", "i64"], "ORDER of family 'f' is fixed"), (["NOCOLUMN", "x"], "has no type of its own"),
                               (["TYPE", "i65"], "unknown type"), (["COLUMN", "x", "i64", "COLUMN", "x", "i8"], "is named twice")):
            self.refused(pattern, *words)
        self.assertIn("no family", self.any().refusal("FAMILY", "ALTER", "t", "g", "TYPE", "i64"))
        self.assertIn("NOTABLE", self.any().refusal("FAMILY", "ALTER", "u", "f", "TYPE", "i64"))
        self.assertIn("is for nodes", self.any().refusal("CLUSTER", "TYPES", "LOOK", 1, "t", "f", "TYPE", "i64"))
        self.assertEqual(shown, [self.any().run("TABLE", "SHOW", "t"), self.shown("v1")])
        client = self.any().redis.pipeline(transaction=True)
        client.execute_command("FAMILY", "ALTER", "t", "f", "TYPE", "i64", "CONVERT", "SKIP")
        self.assertRaisesRegex(redis.ResponseError, "CROSSSET", client.execute)
        self.alter("TYPE", "i64", "CONVERT", "SKIP")
        self.assertEqual({"f:x": [("n/a", "bytes"), (7, "i64")], "f:y": [(8, "i64")]}, self.shown("v1"))
        self.assertEqual({"f:x": [("x", "bytes"), (7, "i64")], "f:y": [("y", "bytes"), (8, "i64")]}, self.shown("e1"))

    def test_what_needs_no_word(self):
        self.start()
        self.alter("TYPE", "i64")
        self.write(x=5)
        self.alter("COLUMN", "x", "i64")
        self.refused("WRONGTYPE family 'f' has cells of type i64", "COLUMN", "x", "u8")
        self.alter("COLUMN", "x", "u8", "CONVERT")
        self.assertEqual({"u8"}, self.kinds("x"))
        self.alter("NOCOLUMN", "x", "TYPE", "NONE", "CONVERT")
        self.assertEqual({"bytes"}, self.kinds("x"))
        for member in self.everyone:
            self.assertEqual("none", pairs(member.run("FAMILY", "INFO", "t", "f", "LOCAL"))["type"])

    def test_with_what_is_kept(self):
        self.start(3, 1, "VERSIONS", "1")
        self.write(x="1")
        self.write(x="2")
        self.alter("TYPE", "i64", "CONVERT", "VERSIONS", 3)
        self.assertEqual({"f:x": [(2, "i64")]}, self.shown("z1"))
        self.write(x=3)
        self.assertEqual({"f:x": [(3, "i64"), (2, "i64")]}, self.shown("z1"))

    def test_an_index_goes_along(self):
        self.start()
        self.any().run("INDEX", "CREATE", "t", "i", "ON", 1, "f:x", "AS", "i64")
        self.write(x="7")
        self.wait_until(lambda: "ready" in str(self.any().run("INDEX", "INFO", "t", "i")), "it is not built")
        self.assertEqual([], self.any().run("CSCAN", "t", 0, "INDEX", "i", "EQ", 1, 7, "KEYSONLY", "COUNT", 100)[1])
        self.alter("COLUMN", "x", "i64", "CONVERT")
        self.assertEqual(ROWS, sorted(self.any().run("CSCAN", "t", 0, "INDEX", "i", "EQ", 1, 7, "KEYSONLY", "COUNT", 100)[1]))
        self.assertEqual(str(7 * len(ROWS)), str(self.any().run("CAGG", "t", "REDUCE", "SUM", "f:x")[0][-1][-1]))

    def held_up(self, *words):
        """Begins the command while set 2 stands still; what ends that, and gives the reply."""
        def looks():
            return [each[0].info("commandstats").get("cmdstat_cluster|types", {"calls": 0})["calls"] for each in self.sets[:2]]
        told, before = [], looks()
        process = self.sets[2][0].server.process
        process.send_signal(signal.SIGSTOP)
        thread = self.beside(lambda: told.append(self.sets[0][0].refusal("FAMILY", "ALTER", "t", "f", *words)))
        self.wait_until(lambda: all(now > was for now, was in zip(looks(), before)), "the other sets do not look")
        self.assertEqual([], told)

        def go_on():
            process.send_signal(signal.SIGCONT)
            thread.join()
            return told[0]
        return go_on

    def owned_by(self, number):
        owners = {each["start"]: each["set"] for each in self.tablets()}
        starts = sorted(owners)
        return next(row for row in ROWS if owners[max(start for start in starts if start <= row)] == number)

    def test_what_is_written_behind_the_look_is_told(self):
        self.start()
        self.write(x="7")
        row, link = self.owned_by(1), self.sets[1][0]
        go_on = self.held_up("TYPE", "i64", "CONVERT")
        link.run("CPUT", "t", row, "f:x", "n/a", "f:y", "12")
        self.assertIn(f"WRONGTYPE row '{row}': column 'f:x' holds 'n/a', no i64, since it was written meanwhile: the type has changed, "
                      "and 1 cells were left", go_on())
        # That one alone.
        self.assertEqual({"f:x": [("n/a", "bytes"), (7, "i64")], "f:y": [(12, "i64")]}, self.shown(row))
        self.refused("WRONGTYPE row", "TYPE", "i64", "CONVERT")
        link.run("CDEL", "t", row, "f:x")
        self.alter("TYPE", "i64", "CONVERT")
        self.assertEqual({"i64"}, self.kinds("x") | self.kinds("y"))
        go_on = self.held_up("COLUMN", "z", "u8")
        link.run("CPUT", "t", row, "f:z", "12")
        self.assertIn(f"WRONGTYPE the types of family 'f' have changed, and meanwhile cells were written of type i64 (row '{row}'", go_on())
        self.refused("WRONGTYPE family 'f' has cells of type i64", "COLUMN", "z", "u8")
        self.alter("COLUMN", "z", "u8", "CONVERT")
        self.assertEqual({"u8"}, self.kinds("z"))
        self.assert_same_catalogs()

    def test_others_that_alter_the_same_end_a_look(self):
        self.start()
        self.write(x="7")
        go_on = self.held_up("TYPE", "i64", "CONVERT")
        threading.Timer(0.3, lambda: self.sets[2][0].server.process.send_signal(signal.SIGCONT)).start()
        other = self.sets[1][0].refusal("FAMILY", "ALTER", "t", "f", "TYPE", "u8", "CONVERT")
        told = [go_on(), other]
        self.assertTrue(all("OK" in each or "TRYAGAIN" in each or "changed again" in each for each in told), told)
        self.assertTrue(any("OK" in each for each in told), told)
        self.assert_same_catalogs()
        self.alter("TYPE", "u8", "CONVERT")
        self.assertEqual({"u8"}, self.kinds("x"))

    def test_a_set_that_is_away(self):
        self.start()
        self.write(x="7")
        gone = self.sets[2][0]
        gone.stop()
        told = self.sets[1][0].refusal("FAMILY", "ALTER", "t", "f", "TYPE", "i64", "CONVERT")
        self.assertRegex(told, "(TRYAGAIN|CLUSTERDOWN) .*")
        self.assertNotIn("i64", str(self.sets[1][0].run("TABLE", "SHOW", "t")))
        gone.server.start()
        gone.connect()
        self.wait_until(lambda: self.any().refusal("FAMILY", "ALTER", "t", "f", "TYPE", "i64", "CONVERT") == "no error: OK", "it stays away")
        self.assertEqual({"i64"}, self.kinds("x"))

    def fill(self, rows, letters="aejnrvz"):
        """Each with its number."""
        pipeline = self.sets[0][0].redis.pipeline(transaction=False)
        for number in range(rows):
            pipeline.execute_command("CPUT", "t", f"{letters[number % len(letters)]}{number}", "f:x", number)
            if number % 1000 == 999:
                pipeline.execute()
        pipeline.execute()

    def numbers(self, kind):
        """The values of all cells, which have that type."""
        cursor, values = 0, set()
        while True:
            cursor, rows = self.any().run("CSCAN", "t", cursor, "WITHTYPE", "COUNT", 5000)
            for row, cells in rows:
                (version,) = cells[1]
                self.assertEqual(kind, version[2], row)
                values.add(int(version[1]))
            if str(cursor) == "0":
                return values

    def test_an_owner_is_killed_while_it_converts(self):
        self.start()
        letter = self.owned_by(1)[0]
        self.fill(30_000, letter)
        first = letter + "0"
        # A call waits a second for who leads.
        for kind, away in (("i64", 0), ("u32", 3), ("string", 0)):
            told = []
            thread = self.beside(lambda kind=kind, told=told: told.append(
                self.sets[0][0].refusal("FAMILY", "ALTER", "t", "f", "TYPE", kind, "CONVERT")))
            owner = self.sets[1][0]
            self.wait_until(lambda kind=kind: owner.run("CROW", "t", first, "WITHTYPE")[1][0][2] == kind, "it does not begin")
            was_under_way = not told
            owner.server.kill()
            time.sleep(away)
            owner.server.start()
            owner.connect()
            thread.join()
            print(f"{kind}: killed {'while it converted' if was_under_way else 'behind it'}: {told}", flush=True)
            # It is asked again.
            self.assertEqual(["no error: OK"], told)
            self.assertEqual(set(range(30_000)), self.numbers(kind))

    def test_tablets_move_while_sets_convert(self):
        self.start()
        self.fill(30_000, self.owned_by(1)[0])
        stop = threading.Event()
        first = self.owned_by(1)

        def move():
            to = 1
            while not stop.is_set():
                to = 3 - to
                self.any().refusal("TABLET", "MOVE", "t", first, "TO", to, "WAIT", 10_000)
        thread = self.beside(move)
        try:
            for kind in ("i64", "string", "u32"):
                self.wait_until(lambda kind=kind: self.any().refusal("FAMILY", "ALTER", "t", "f", "TYPE", kind, "CONVERT") == "no error: OK",
                                "it is not done")
                self.assertEqual(set(range(30_000)), self.numbers(kind))
        finally:
            stop.set()
            thread.join()

    def test_the_director_is_killed_in_the_middle(self):
        self.start()
        self.write(x="7")
        for seconds in (0.0, 0.002, 0.005, 0.01, 0.02, 0.05):
            kind = "i64" if "i64" not in str(self.any().run("TABLE", "SHOW", "t")) else "u8"
            thread = self.beside(lambda kind=kind: self.sets[1][0].refusal("FAMILY", "ALTER", "t", "f", "TYPE", kind, "CONVERT"))
            time.sleep(seconds)
            self.restart(self.sets[0][0])
            thread.join()
            self.wait_until(lambda kind=kind: self.any().refusal("FAMILY", "ALTER", "t", "f", "TYPE", kind, "CONVERT") == "no error: OK",
                            "it is not done")
            for row in ROWS:
                self.assertEqual({"f:x": [(7, kind)]}, self.shown(row), (row, seconds))
            self.assert_same_catalogs()


class AmongOthers(TypesCase):
    """Numbers that are counted up all the time, as text and as numbers, whatever type they have."""

    def put(self, number, stop, known, wrong):
        rng = random.Random(f"{self.seed}/{number}")
        rows = [f"{letter}-{number}" for letter in "aejnrvz"]
        link = redis.Redis(port=self.any(rng).port, decode_responses=True)
        while not stop.is_set():
            row, value = rng.choice(rows), str(rng.randrange(120))
            try:
                link.execute_command("CPUT", "t", row, "f:x", value)
                known[row] = {value}
                got = link.execute_command("CGET", "t", row, "f:x")
                if str(got) != value:
                    wrong.append(f"{row} is {got}, not {value}")
            except MOVED_ERRORS:
                known[row] = known.get(row, {None}) | {value}
            except redis.ResponseError as error:
                if not str(error).startswith(("TRYAGAIN", "CLUSTERDOWN", "LOADING", "MISCONF")):
                    wrong.append(str(error))

    def under_load(self, beside, seconds=SECONDS, calm=lambda: None):
        """`calm` ends what kills nodes, before what there is in the end is looked at."""
        rng = random.Random(self.seed)
        stop, wrong, known = threading.Event(), [], [{} for _ in range(3)]
        threads = [self.beside(lambda at=at: self.put(at, stop, known[at], wrong)) for at in range(3)]
        until, altered = time.monotonic() + seconds, 0
        while time.monotonic() < until or altered == 0:
            words = rng.choice((["TYPE", "i64", "CONVERT"], ["TYPE", "u8", "CONVERT"], ["TYPE", "NONE", "CONVERT"], ["TYPE", "f64", "CONVERT", "SKIP"],
                                ["TYPE", "string", "CONVERT"], ["TYPE", "i32"]))
            try:
                done = self.any(rng).run("FAMILY", "ALTER", "t", "f", *words) == "OK"
            except MOVED_ERRORS:
                done = False
            except redis.ResponseError as error:
                done = False
                self.assertRegex(str(error), BEFORE)
            altered += done
            if done:
                self.check_types(words[1], rng)
            beside(rng)
        calm()
        stop.set()
        for thread in threads:
            thread.join()
        print(f"seed {self.seed}: {altered} changes", flush=True)
        self.assertEqual([], wrong[:3], f"seed {self.seed}: {len(wrong)}")
        self.wait_until(lambda: self.any().refusal("FAMILY", "ALTER", "t", "f", "TYPE", "i64", "CONVERT") == "no error: OK", "it is not done")
        for each in known:
            for row, values in each.items():
                cells = self.shown(row).get("f:x", [])
                self.assertTrue(all(kind == "i64" for _, kind in cells), f"seed {self.seed}: {row} {cells}")
                self.assertIn(str(cells[0][0]) if cells else None, values, f"seed {self.seed}: {row}")
        self.assert_same_catalogs()
        self.assert_whole()

    def check_types(self, kind, rng):
        """OK is told when no cell has another type."""
        wanted = {"NONE": {"bytes", "string"}}.get(kind, {kind})
        cursor = 0
        while True:
            try:
                cursor, rows = self.any(rng).run("CSCAN", "t", cursor, "VERSIONS", 1000, "WITHTYPE", "COUNT", 50)
            except (*MOVED_ERRORS, redis.ResponseError):
                return
            kinds = {version[2] for _, cells in rows for versions in pairs(cells).values() for version in versions}
            self.assertLessEqual(kinds, wanted, f"seed {self.seed}: {kind}")
            if str(cursor) == "0":
                return

    def start_many(self, sets=3, voters=1):
        self.start(sets, voters, "VERSIONS", "3")
        for row in ROWS:
            for value in range(40):
                self.any().run("CPUT", "t", row + str(value), "f:x", str(value))

    def test_nothing_beside_it(self):
        self.start_many()
        self.under_load(lambda rng: None)

    def test_while_tablets_move(self):
        self.start_many()
        stop = threading.Event()

        def move():
            rng = random.Random(f"{self.seed}/moves")
            while not stop.is_set():
                self.random_move(rng)
        thread = self.beside(move)
        try:
            self.under_load(lambda rng: None)
        finally:
            stop.set()
            thread.join()

    def test_while_tablets_split(self):
        self.start_many()

        def cut(rng):
            row = rng.choice("abcdefghijklmnopqrstuvwxyz")
            self.any(rng).refusal("TABLET", *rng.choice((("SPLIT", "t", row), ("MERGE", "t", row))))
        self.under_load(cut)

    def test_while_nodes_are_killed(self):
        self.kill_beside()

    def test_while_leaders_are_killed(self):
        self.kill_beside(2, 3)

    def kill_beside(self, sets=3, voters=1):
        self.start_many(sets, voters)
        stop = threading.Event()

        def kill():
            rng = random.Random(f"{self.seed}/kills")
            while not stop.is_set():
                time.sleep(rng.random())
                self.restart(rng.choice(self.everyone))
        thread = self.beside(kill)

        def calm():
            stop.set()
            thread.join()
        try:
            self.under_load(lambda rng: None, 2 * SECONDS, calm)
        finally:
            calm()

    def test_two_at_once(self):
        self.start_many()

        def alter_too(stop):
            rng = random.Random(f"{self.seed}/too")
            while not stop.is_set():
                words = rng.choice((["COLUMN", "y", "i64"], ["TYPE", "u8", "CONVERT"], ["TYPE", "NONE", "KEEP"], ["VERSIONS", rng.choice((2, 3))]))
                told = self.any(rng).refusal("FAMILY", "ALTER", "t", "f", *words)
                if not any(word in told for word in ("OK", "TRYAGAIN", "WRONGTYPE", "changed again", "CLUSTERDOWN")):
                    self.wrong.append(told)
        self.wrong = []
        stop = threading.Event()
        self.check_types = lambda kind, rng: None  # the other one may have changed it by then
        thread = self.beside(lambda: alter_too(stop))
        try:
            self.under_load_of_two(stop, thread)
        finally:
            stop.set()
            thread.join()
        self.assertEqual([], self.wrong[:3])

    def under_load_of_two(self, stop, thread):
        until, done = time.monotonic() + SECONDS, 0
        rng = random.Random(self.seed)
        while time.monotonic() < until or done == 0:
            told = self.any(rng).refusal("FAMILY", "ALTER", "t", "f", "TYPE", rng.choice(("i64", "f64", "string")), "CONVERT")
            self.assertTrue(any(word in told for word in ("OK", "TRYAGAIN", "WRONGTYPE", "changed again")), told)
            done += "OK" in told
        stop.set()
        thread.join()
        self.alter("TYPE", "string", "CONVERT")
        for row in ROWS:
            for value in range(40):
                self.assertEqual([(str(value), "string")], self.shown(row + str(value))["f:x"])
        self.assert_same_catalogs()


if __name__ == "__main__":
    unittest.main()
