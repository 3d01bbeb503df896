"""FAMILY ALTER of a table over several sets: what was dropped anywhere never comes back, whatever is kept from now on."""

import os
import random
import threading
import time
import unittest

import redis

from cluster_sets import pairs
from move_load import MOVED_ERRORS, LoadCase

ROWS = [f"{letter}{number}" for letter in "aejnrvz" for number in range(2)]
SECONDS = float(os.environ.get("CELLAR_ALTER_SECONDS", "8"))


class AlterTest(LoadCase):
    def start(self, sets=3, voters=1, versions="1"):
        self.cluster(sets, voters)
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f", "VERSIONS", versions)
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")

    def write(self, *values):
        for value in values:
            for row in ROWS:
                self.any().run("CPUT", "t", row, "f:x", value)

    def shown(self, row, member=None):
        """The values of all versions, newest first."""
        cells = (member or self.any()).run("CROW", "t", row, "VERSIONS", 1000)
        return [value for _, value in cells[1]] if cells else []

    def assert_shown(self, values):
        for row in ROWS:
            self.assertEqual(values, self.shown(row), row)

    def alter(self, *words):
        self.assertEqual("OK", self.any().run("FAMILY", "ALTER", "t", "f", *words))

    def test_more_versions_bring_nothing_back(self):
        self.start()
        self.write("1", "2", "3")
        self.assert_shown(["3"])
        self.alter("VERSIONS", 3)
        self.assert_shown(["3"])
        for member in self.everyone:
            for words in (("FAMILY", "INFO", "t", "f"), ("FAMILY", "INFO", "t", "f", "LOCAL")):
                self.assertEqual("3", pairs(member.run(*words))["versions"])
            self.assertIn("VERSIONS 3", str(member.run("TABLE", "SHOW", "t")))
        self.write("4", "5", "6")
        self.assert_shown(["6", "5", "4"])
        self.alter("VERSIONS", 1)
        self.assert_shown(["6"])
        self.alter("VERSIONS", "ALL")
        self.assert_shown(["6"])
        self.write("7")
        self.assert_shown(["7", "6"])
        self.alter("GC", "maxversions=1")
        self.alter("GC", "none")
        self.assert_shown(["7"])

    def test_a_longer_life_brings_nothing_back(self):
        self.start(versions="ALL")
        now = int(time.time() * 1_000_000)
        for row in ROWS:
            for hours in (1, 3, 5):
                self.any().run("CPUT", "t", row, "f:x", str(hours), "TS", now - hours * 3_600_000_000)
        self.alter("TTL", "4h")
        self.assert_shown(["1", "3"])
        self.alter("TTL", "2h")
        self.alter("TTL", "NONE")
        self.assert_shown(["1"])

    def test_types(self):
        self.start(versions="ALL")
        self.write("words")
        for words in (["TYPE", "i64"], ["TYPE", "i64", "CONVERT"]):
            self.assertIn("WRONGTYPE", self.any().refusal("FAMILY", "ALTER", "t", "f", *words))
        self.assert_shown(["words"])
        self.alter("TYPE", "i64", "KEEP", "VERSIONS", 2)
        for row in ROWS:
            self.assertIn("BADVALUE", self.any().refusal("CPUT", "t", row, "f:x", "more"))
        self.write(5, 6)
        self.assert_shown([6, 5])
        self.alter("COMPRESS", "lz4")
        self.alter("TYPE", "NONE", "COMPRESS", "none")

    def test_an_index_of_it_goes_along(self):
        self.start()
        self.any().run("INDEX", "CREATE", "t", "i", "ON", 1, "f:x")
        self.write("1", "2")
        self.alter("VERSIONS", 3)
        self.write("3")

        self.wait_until(lambda: "ready" in str(self.any().run("INDEX", "INFO", "t", "i")), lambda: str(self.any().run("INDEX", "INFO", "t", "i")))
        self.assertEqual(ROWS, sorted(self.any().run("CSCAN", "t", 0, "INDEX", "i", "KEYSONLY", "COUNT", 100)[1]))

    def test_a_set_that_is_away_comes_after(self):
        self.start()
        self.write("1", "2")
        gone = self.sets[2][0]
        gone.stop()
        self.assertRegex(self.sets[1][0].refusal("FAMILY", "ALTER", "t", "f", "VERSIONS", 3), "TRYAGAIN .*(set 2|is away)")
        gone.server.start()
        gone.connect()
        self.wait_until(lambda: pairs(gone.run("FAMILY", "INFO", "t", "f", "LOCAL"))["versions"] == "3", "it has not come")
        self.alter("VERSIONS", 3)
        self.assert_shown(["2"])
        self.write("3")
        self.assert_shown(["3", "2"])

    def watch(self, stop, wrong):
        """What is not shown any more is not shown again."""
        links = [redis.Redis(port=member.port, decode_responses=True) for member in self.everyone]
        seen = {row: set() for row in ROWS}
        shown = {row: set() for row in ROWS}
        while not stop.is_set():
            row = random.choice(ROWS)
            try:
                cells = random.choice(links).execute_command("CROW", "t", row, "VERSIONS", 1000)
            except (*MOVED_ERRORS, redis.ResponseError):
                continue
            stamps = {stamp for stamp, _ in cells[1]} if cells else set()
            if again := (stamps & seen[row]) - shown[row]:
                wrong.append(f"{row}: {sorted(again)} again of {sorted(stamps)}, before {sorted(shown[row])}")
            shown[row] = stamps
            seen[row] |= stamps

    def put(self, stop):
        link = redis.Redis(port=random.choice(self.everyone).port)
        while not stop.is_set():
            try:
                link.execute_command("CPUT", "t", random.choice(ROWS), "f:x", "v")
            except (*MOVED_ERRORS, redis.ResponseError):
                pass

    def under_load(self, beside):
        rng = random.Random(self.seed)
        stop, wrong = threading.Event(), []
        threads = [self.beside(lambda: self.put(stop)) for _ in range(2)] + [self.beside(lambda: self.watch(stop, wrong)) for _ in range(2)]
        until, altered = time.monotonic() + SECONDS, 0
        while time.monotonic() < until or altered == 0:
            words = rng.choice((["VERSIONS", 1], ["VERSIONS", 2], ["VERSIONS", 7], ["VERSIONS", "ALL"], ["TTL", "100ms"], ["TTL", "NONE"],
                                ["GC", "maxversions=3 && maxage=50ms"], ["GC", "none"]))
            try:
                altered += self.any(rng).run("FAMILY", "ALTER", "t", "f", *words) == "OK"
            except MOVED_ERRORS:
                pass
            except redis.ResponseError as error:
                self.assertRegex(str(error), "TRYAGAIN|CLUSTERDOWN|LOADING")
            beside(rng)
        stop.set()
        for thread in threads:
            thread.join()
        print(f"seed {self.seed}: {altered} changes", flush=True)
        self.assertEqual([], wrong[:3], f"seed {self.seed}: {len(wrong)}")

    def test_while_tablets_move(self):
        self.start()
        self.under_load(lambda rng: self.random_move(rng))

    def test_while_nodes_are_killed(self):
        self.start()

        def kill(rng):
            if rng.random() < 0.2:
                self.restart(rng.choice(self.everyone))
        self.under_load(kill)


if __name__ == "__main__":
    unittest.main()
