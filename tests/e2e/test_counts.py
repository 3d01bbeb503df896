"""CCOUNT of a whole table, which is folded over the leaves, beside that of RANGE - +, which asks a scan."""

import random
import unittest

from cellar_server import CellarTest


class CountsTest(CellarTest):
    """Random tables of several hundred rows, with what retention drops, rights hide and snapshots keep."""

    FAMILIES = ("", "VERSIONS 1", "VERSIONS 2", "TTL 1h", "TYPE i64", "TYPE i64 VERSIONS 1")

    def fill(self, rng, client):
        client.execute_command("TABLE", "CREATE", "t", "KEY", "utf8#u64",
                               *"FAMILY f".split(), *rng.choice(self.FAMILIES).split(),
                               *"FAMILY g".split(), *rng.choice(self.FAMILIES).split(),
                               *(("GROUP", "own") if rng.randrange(3) == 0 else ()))
        pipe = client.pipeline(transaction=False)
        rows = rng.choice((150, 700))
        for _ in range(rng.choice((400, 4000))):
            row = rng.randrange(rows)
            words = ["CPUT", "t", "r%d#%d" % (row % 7, row)]
            if rng.randrange(4) == 0:
                words += ["TS", str(rng.choice((1, 1000, 2 ** 50)))]
            if rng.randrange(12) == 0:
                words += ["PX", rng.choice((1, 10 ** 8))]
            for _ in range(1 + rng.randrange(3)):
                words += ["%s:q%d" % (rng.choice("fg"), rng.randrange(4)), str(rng.randrange(100))]
            pipe.execute_command(*words)
        for _ in range(30):
            row = rng.randrange(rows)
            pipe.execute_command("CDEL", "t", "r%d#%d" % (row % 7, row), *rng.choice(((), ("f:q1",), ("g",))))
        pipe.execute(raise_on_error=False)

    def options(self, rng):
        """Words behind CCOUNT t: what is counted, and which cells."""
        words = []
        for _ in range(rng.choice((0, 1, 1, 2))):
            column = "%s:q%d" % (rng.choice("fg"), rng.randrange(5))
            words += ["WHERE", *rng.choice(((column, "EXISTS"), (column, "MISSING"), (column, "MATCH", "*1*"),
                                            (column, rng.choice(("EQ", "NE", "LT", "GE")), str(rng.randrange(100))),
                                            (column, "GE", "50"), ("ROW", "EXISTS")))]
        if rng.randrange(3) == 0:
            words += ["VERSIONS", rng.choice(("1", "2", "ALL"))]
        if rng.randrange(5) == 0:
            words += rng.choice((("TIME", "0", "2000"), ("TIME", "2000", "+")))
        if rng.randrange(3) == 0:
            columns = rng.sample(["f", "g", "f:q1", "f:q2", "g:q1", "g:q3", "g:none"], 1 + rng.randrange(2))
            words += ["COLUMNS", len(columns), *columns]
        return words + list(rng.choice(((), (), ("BY", "CELLS"), ("BY", "COLUMNS"))))

    def test_a_whole_table_is_counted_as_its_range_is(self):
        seed = random.randrange(2 ** 32)
        rng = random.Random(seed)
        client = self.server.client()
        client.execute_command("ACL", "SETUSER", "small", "on", ">pw", "+@all", "%RW~t:f", "%RW~t@*:f")
        small = self.server.client()
        small.execute_command("AUTH", "small", "pw")
        counted = 0
        for turn in range(12):
            self.fill(rng, client)
            table = "t"
            if turn % 3 == 2:
                client.execute_command("SNAPSHOT", "CREATE", "then")
                table = "t@then"
                client.execute_command("CDELRANGE", "t", "PREFIX", "r3")
            for _ in range(60):
                words = self.options(rng)
                who = small if rng.randrange(4) == 0 else client
                got, want = (self.answer(who, "CCOUNT", table, *rows, *words) for rows in ((), ("RANGE", "-", "+")))
                self.assertEqual(got, want, "seed %d: %s" % (seed, words))
                counted += isinstance(got, int) and got > 0
            if table != "t":
                client.execute_command("SNAPSHOT", "DROP", "then")
            client.execute_command("TABLE", "DROP", "t")
        self.assertGreater(counted, 100, "seed %d" % seed)

    def answer(self, client, *words):
        try:
            return client.execute_command(*words)
        except Exception as error:
            return str(error)


if __name__ == "__main__":
    unittest.main()
