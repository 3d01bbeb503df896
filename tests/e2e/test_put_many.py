"""Writes of many columns of a row leave what the same cells leave that are put one by one.

Whatever the columns are: in no order, named twice, there already, deleted before, in several families
and groups, aggregates and packed ones, with versions that are dropped, with indexes, with timestamps
and lifetimes; by CPUT and CMUTATE, with and without conditions, inside MULTI, after a restart, and as
many and as large as they may be. The seed is printed; CELLAR_PUT_MANY_SEED chooses it,
CELLAR_PUT_MANY_STEPS how long a run is.
"""

import os
import random
import unittest

import redis
from cellar_server import CellarTest

SEED = int(os.environ.get("CELLAR_PUT_MANY_SEED", "1"))
STEPS = int(os.environ.get("CELLAR_PUT_MANY_STEPS", "120"))
START = 2_000_000_000_000_000

SCHEMAS = [
    "FAMILY f",
    "FAMILY f VERSIONS 1",
    "FAMILY f VERSIONS 3 FAMILY g",
    "FAMILY f GROUP one FAMILY g GROUP two FAMILY h VERSIONS 2 GROUP one",
    "KEY i64 FAMILY f ORDER i64 FAMILY g TYPE i64",
    "FAMILY f TTL 50s FAMILY g VERSIONS 2",
    "FAMILY f COMPRESS lz4 FAMILY g AGGREGATE sum BUCKET 10s FAMILY h COMPRESS zstd VERSIONS 1",
    "FAMILY f GC maxversions=2&&maxage=20s FAMILY g AGGREGATE max TYPE i64 FAMILY h VERSIONS 1 TTL 40s",
]


class PutManyTest(CellarTest):
    OPTIONS = {"enable-debug-command": "yes", "save": ""}
    now = START  # never goes back: timestamps do not

    def tearDown(self):
        type(self).now = self.now

    def make(self, schema, with_index):
        self.families = [word for word in "fgh" if f"FAMILY {word}" in schema]
        self.orders = {"f": "i64" in schema.split("FAMILY g")[0].split("FAMILY f")[-1]}
        self.numbers = {"g": "g TYPE i64" in schema or "g AGGREGATE" in schema}
        self.folds = {"g": "AGGREGATE max" in schema}  # its cells have no time of their own
        self.row_is_number = schema.startswith("KEY i64")
        for table in ("many", "single"):
            self.run_command("TABLE", "CREATE", table, *schema.split())
            if with_index:
                self.run_command("INDEX", "CREATE", table, "i", "ON", "1", self.column_of("f", 1))

    def column_of(self, family, number):
        return f"{family}:{number}" if self.orders.get(family) else f"{family}:c{number}"

    def value_of(self, column, below):
        if self.numbers.get(column[0]):
            return str(below(1 << 40))
        size = below(30) if below(20) > 0 else below(3000)
        return bytes(97 + below(26) for _ in range(min(size, 40))).decode() * (1 + size // 40)

    def cells(self, below):
        """[(column, value, words behind it)]"""
        count = 1 + below(14) if below(30) > 0 else 1 + below(400)
        variety = below(30) + 1 if count < 20 else 1000
        first = below(variety)
        in_order = below(2) == 0
        cells = []
        for i in range(count):
            family = self.families[below(len(self.families))] if below(3) == 0 else self.families[0]
            column = self.column_of(family, first + i if in_order else below(variety))
            words = []
            if below(40) == 0:
                words += ["TS", str(self.now - below(20_000_000))]
            if below(40) == 0:
                words += ["TTL", f"{1 + below(60)}s"]
            cells.append((column, self.value_of(column, below), words))
        return cells if below(4) > 0 else [(column, value, []) for column, value, _ in cells]

    def write(self, row, cells, below):
        by = below(4)
        if by == 3:
            return self.write_if(row, cells, below)
        put = ["PUT"] if by == 0 else []
        words = [word for column, value, more in cells for word in (*put, column, value, *more)]
        command = "CMUTATE" if by == 0 else "CPUT"
        if by == 2 and below(2) == 0:
            pipe = self.redis.pipeline(transaction=True)
            pipe.execute_command(command, "many", row, *words)
            reply = pipe.execute()[0]
        else:
            reply = self.run_command(command, "many", row, *words)
        self.assertEqual([1] + [b"OK"] * len(cells) if by == 0 else b"OK", reply)
        self.write_singly(row, cells)

    def write_if(self, row, cells, below):
        column = self.column_of("f", below(20))
        holds = self.run_command("CEXISTS", "single", row, column)
        words = [word for name, value, more in cells for word in ("PUT", name, value, *more)]
        reply = self.run_command("CMUTATE", "many", row, "IF", column, "EXISTS", *words)
        self.assertEqual([1] + [b"OK"] * len(cells) if holds else [0], reply)
        if holds:
            self.write_singly(row, cells)

    def write_singly(self, row, cells):
        for column, value, more in cells:
            if "TS" not in more and not self.folds.get(column[0]):
                more = ["TS", str(self.now), *more]
            self.assertEqual(b"OK", self.run_command("CPUT", "single", row, column, value, *more))

    def stored(self, table, row):
        return self.run_command("CROW", table, row, "VERSIONS", "ALL", "WITHTS")

    def compare(self, with_index):
        def answers(table):
            scans = [["CSCAN", table, "0", "COUNT", "100000", "VERSIONS", "ALL", "WITHTS"],
                     ["CCOUNT", table], ["CCOUNT", table, "CELLS"]]
            if with_index:
                scans.append(["CSCAN", table, "0", "INDEX", "i", "0", "COUNT", "100000"])
            found = []
            for scan in scans:
                try:
                    found.append(self.run_command(*scan))
                except redis.exceptions.ResponseError as error:
                    found.append(str(error).replace(table, "table"))
            return found
        self.assertEqual(answers("single"), answers("many"))

    def drive(self, seed, schema, with_index):
        below = random.Random(seed).randrange
        self.make(schema, with_index)
        for step in range(STEPS):
            self.now += 1 + below(2_000_000)
            self.run_command("DEBUG", "SET-TIME", self.now)
            row = str(below(12)) if self.row_is_number else "row" + "x" * below(3) + str(below(12))
            kind = below(12)
            if kind == 0:
                words = [row] if below(3) == 0 else [row, self.column_of("f", below(20))]
                self.assertEqual(self.run_command("CDEL", "single", *words),
                                 self.run_command("CDEL", "many", *words))
            else:
                self.write(row, self.cells(below), below)
            self.assertEqual(self.stored("single", row), self.stored("many", row))
            if step % 50 == 0:
                self.compare(with_index)
        self.compare(with_index)
        for save in (False, True):
            before = self.run_command("DEBUG", "DIGEST")
            if save:
                self.run_command("SAVE")
            self.run_command("DEBUG", "RELOAD")
            self.assertEqual(before, self.run_command("DEBUG", "DIGEST"))
            self.compare(with_index)

    def test_many_columns_at_once_are_what_they_are_one_by_one(self):
        print(f"put many: seed {SEED}, {STEPS} steps for each schema")
        for number, schema in enumerate(SCHEMAS):
            for with_index in (False, True):
                with self.subTest(schema=schema, with_index=with_index):
                    self.redis.execute_command("FLUSHALL")
                    self.drive(SEED + number, schema, with_index)

    # --- limits

    def write_and_compare(self, row, cells):
        self.now += 1_000_000
        self.run_command("DEBUG", "SET-TIME", self.now)
        words = [word for column, value in cells for word in (column, value)]
        self.assertEqual(b"OK", self.run_command("CPUT", "many", row, *words))
        pipe = self.redis.pipeline(transaction=False)
        for column, value in cells:
            pipe.execute_command("CPUT", "single", row, column, value, "TS", self.now)
        self.assertEqual([b"OK"] * len(cells), pipe.execute())
        self.assertEqual(self.stored("single", row), self.stored("many", row))

    def test_more_keys_than_one_run_takes(self):
        """Around 256 KiB of keys, beyond which puts go one by one (RowPuts)."""
        below = random.Random(SEED).randrange
        for schema in SCHEMAS[1:3]:
            self.redis.execute_command("FLUSHALL")
            self.make(schema, False)
            for row_bytes, counts in ((1, (1500,)), (100, (2100, 2500)), (1000, (240, 255, 256, 257, 300)), (65_536, (2, 3, 4, 5))):
                for count in counts:
                    numbers = list(range(count))
                    random.Random(below(1 << 30)).shuffle(numbers)
                    cells = [(f"f:c{number}", "v" * (number % 20)) for number in numbers]
                    self.write_and_compare("r" * row_bytes, cells)
            self.compare(False)

    def test_long_names_and_large_values(self):
        below = random.Random(SEED + 1).randrange
        self.make("FAMILY f VERSIONS 2", False)
        for _ in range(20):
            sizes = [1, 20, 62, 63, 64, 250, 4000, 16_383, 16_384]
            names = {f"f:{below(4)}" + "q" * (sizes[below(len(sizes))] - 1) for _ in range(1 + below(8))}
            values = [0, 1, 29, 30, 510, 511, 512, 513, 5000, 300_000]
            cells = [(name, bytes([97 + below(26)]) * values[below(len(values))]) for name in sorted(names)]
            random.Random(below(1 << 30)).shuffle(cells)
            self.write_and_compare("row" + "x" * below(70), cells)
        self.compare(False)

    def test_as_many_as_a_write_may_have(self):
        """A million cells; one more is refused, as is a write with one wrong column, and nothing is changed."""
        self.make("FAMILY f", False)
        words = b"".join([b"$9\r\nf:%07d\r\n$1\r\nv\r\n" % number for number in range(999_999)])
        with self.server.connect() as connection:
            def put(*more):
                count = 3 + 2 * 999_999 + len(more)
                connection.sendall(b"*%d\r\n$4\r\nCPUT\r\n$4\r\nmany\r\n$1\r\nr\r\n" % count + words +
                                   b"".join([b"$%d\r\n%b\r\n" % (len(word), word) for word in more]))
                return connection.recv(1000)
            self.assertIn(b"-TOOLARGE a write of 1000001 cells", put(b"f:a", b"v", b"f:b", b"v"))
            self.assertIn(b"-NOFAMILY", put(b"nix:a", b"v"))
            self.assertEqual(0, self.run_command("CCOUNT", "many", "BY", "CELLS"))
            self.assertEqual(b"+OK\r\n", put(b"f:a", b"v"))
        self.server.settle()
        self.assertEqual(1_000_000, self.run_command("CCOUNT", "many", "BY", "CELLS"))
        self.assertEqual(1, self.run_command("CCOUNT", "many"))


if __name__ == "__main__":
    unittest.main()
