"""CROW and CROWS without options, which have a way of their own, show what they show with an option that changes nothing.

Byte by byte, in RESP2 and RESP3: families whose ids have another order than their names, in several
groups, dropped and made again; keys and qualifiers of every order and of any bytes; versions that
retention drops or that expire; all types; values and rows of any size; in EXEC, in a snapshot, by a
restricted user, after a restart. The seed is printed; CELLAR_WHOLE_ROWS_SEED chooses it.
"""

import os
import random
import socket
import unittest

from cellar_server import CellarTest

SEED = int(os.environ.get("CELLAR_WHOLE_ROWS_SEED", "1"))
START = 2_000_000_000_000_000
NO_OPTION = [b"PERROW", b"1000000000"]  # of a row that cannot have so many columns
END = b"$5\r\n#end#\r\n"

FAMILIES = [
    "", "VERSIONS 1", "VERSIONS 2", "TTL 30s", "VERSIONS 1 TTL 40s", "GC maxversions=2&&maxage=20s", "TYPE i64",
    "TYPE string", "TYPE f64 VERSIONS 1", "TYPE bool", "TYPE u64", "ORDER i64", "ORDER -i64", "ORDER utf8#i64",
    "ORDER bytes", "AGGREGATE sum", "AGGREGATE hll", "COMPRESS lz4", "COMPRESS zstd TTL 30s VERSIONS 1",
]


def encode(words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


class WholeRowsTest(CellarTest):
    OPTIONS = {"enable-debug-command": "yes", "save": "", "reply-max-bytes": "1mb"}

    def setUp(self):
        super().setUp()
        self.last = None
        self.connections = [self.open(b"2"), self.open(b"3")]
        self.now = START

    def open(self, version, *more):
        connection = socket.create_connection(("127.0.0.1", self.server.port))
        self.addCleanup(connection.close)
        self.ask(connection, [b"HELLO", version, *more])
        return connection

    def ask(self, connection, *commands):
        """The bytes of all replies. What another connection has written is there."""
        if connection is not self.last and os.environ.get("CELLAR_FOLLOWER") == "local":
            self.last = connection
            self.server.settle()
        connection.sendall(b"".join(encode(words) for words in (*commands, [b"ECHO", b"#end#"])))
        reply = b""
        while not reply.endswith(END):
            reply += connection.recv(1 << 20)
        return reply[:-len(END)]

    def check(self, table, row, connections=None):
        for connection in connections or self.connections:
            whole = self.ask(connection, [b"CROW", table, row])
            scanned = self.ask(connection, [b"CROW", table, row, *NO_OPTION])
            self.assertEqual(scanned[:10_000], whole[:10_000], (table, row))
            self.assertTrue(scanned == whole, (table, row))
        return whole

    def check_rows(self, table, rows, connections=None):
        words = [b"CROWS", table, b"%d" % len(rows), *rows]
        for connection in connections or self.connections:
            whole = self.ask(connection, words)
            scanned = self.ask(connection, words + NO_OPTION)
            self.assertEqual(scanned[:10_000], whole[:10_000], (table, rows[:10]))
            self.assertTrue(scanned == whole, (table, rows[:10]))
        return whole

    def write(self, *words):
        self.ask(self.connections[0], words)

    # --- random tables

    def make(self, below):
        """[(family, its options)]"""
        keys = ["", "KEY bytes", "KEY i64", "KEY utf8#-u64"]
        self.key = keys[below(len(keys))]
        names = [bytes([97 + below(26)]) * (1 + below(20)) for _ in range(1 + below(5))]
        families = {name: FAMILIES[below(len(FAMILIES))] for name in names}
        words = ["TABLE", "CREATE", "t", *self.key.split()]
        for name, options in families.items():
            group = ["GROUP", f"g{below(3)}"] if below(2) == 0 else []
            words += ["FAMILY", name, *options.split(), *group]
        self.assertEqual(b"+OK\r\n", self.ask(self.connections[0], words))
        return families

    def row_of(self, below):
        number = below(8)
        if "u64" in self.key:
            return b"r%d#%d" % (number % 3, number)
        if "i64" in self.key:
            return b"%d" % (number - 4)
        return [b"r%d" % number, b"r\0%d" % number, b"r" * 200 + b"%d" % number][below(3)]

    def qualifier_of(self, options, below):
        if "utf8#" in options:
            return b"q%d#%d" % (below(3), below(9) - 4)
        if "ORDER i64" in options or "ORDER -i64" in options:
            return b"%d" % (below(40) - 20)
        return [b"", b"c%d" % below(30), b"c%d" % below(30), b"\0%d\xff" % below(9), b"long" * 20 + b"%d" % below(9),
                bytes([below(256), below(256)])][below(6)]

    def value_of(self, options, below):
        if "bool" in options:
            return b"true" if below(2) else b"false"
        if "i64" in options or "u64" in options or "sum" in options:
            return b"%d" % below(1 << 62)
        if "f64" in options:
            return b"%d.5" % below(1 << 20)
        return bytes([97 + below(26)]) * [below(12), below(200), below(3000)][below(3)]

    def put(self, families, row, below):
        words = [b"CPUT", b"t", row]
        for _ in range(1 + below(6)):
            name = list(families)[below(len(families))]
            options = families[name]
            column = name + b":" + self.qualifier_of(options.partition("TYPE")[0], below)
            if "AGGREGATE hll" in options:
                self.write(b"CADD", b"t", row, column, b"x%d" % below(99))
                continue
            words += [column, self.value_of(options.partition("ORDER")[0], below)]
            if "AGGREGATE" not in options and below(6) == 0:
                words += [b"TS", [b"0", b"1", b"%d" % (self.now - below(60_000_000)), b"%d" % (2**63 - 2)][below(4)]]
            if below(6) == 0:
                words += [b"TTL", b"%ds" % (1 + below(40))]
        if len(words) > 3:
            self.write(*words)

    def alter(self, families, below):
        name = list(families)[below(len(families))]
        if below(2) == 0 and len(families) > 1:
            self.write(b"FAMILY", b"DROP", b"t", name)
            del families[name]
        else:
            name = bytes([97 + below(26)]) * 2
            options = FAMILIES[below(len(FAMILIES))]
            if name not in families and b"+OK" in self.ask(self.connections[0],
                                                           [b"FAMILY", b"ADD", b"t", name, *options.split()]):
                families[name] = options

    def test_random_tables(self):
        print(f"whole rows: seed {SEED}")
        shown_bytes = []
        for number in range(25):
            below = random.Random(1000 * SEED + number).randrange
            self.write("FLUSHALL")
            families = self.make(below)
            for step in range(60):
                self.now += 1 + below(3_000_000)
                self.run_command("DEBUG", "SET-TIME", self.now)
                row = self.row_of(below)
                kind = below(20)
                if kind == 0:
                    self.alter(families, below)
                elif kind == 1:
                    self.write(b"CDEL", b"t", row)
                elif kind == 2:
                    self.write(b"CDEL", b"t", row, list(families)[below(len(families))])
                else:
                    self.put(families, row, below)
                with self.subTest(table=number, step=step):
                    shown_bytes.append(len(self.check(b"t", row)))
            rows = [self.row_of(below) for _ in range(10)]
            for count in (1, 15, 16, 17, 1 + below(60), 700):
                self.check_rows(b"t", [self.row_of(below) for _ in range(count)])
            if "CELLAR_CLUSTER" in os.environ:  # snapshots over several sets come with one moment
                continue
            self.write("SNAPSHOT", "CREATE", "s")
            shown = [self.check(b"t", row) for row in rows]
            self.write("CDELRANGE", "t", "ALL")
            for row, before in zip(rows, shown):
                self.assertEqual(before, self.check(b"t@s", row))
                self.check(b"t", row)
            self.check_rows(b"t@s", rows)
            self.write("SNAPSHOT", "DROP", "s")
        self.assertGreater(sum(size > 100 for size in shown_bytes), len(shown_bytes) // 2)  # rows with cells

    # --- long rows

    def test_long_rows(self):
        for schema in ("FAMILY f", "FAMILY f VERSIONS 1 FAMILY a GROUP other", "FAMILY f TTL 30s FAMILY e"):
            self.write("FLUSHALL")
            self.write("TABLE", "CREATE", "t", *schema.split())
            for columns in (1, 255, 256, 257, 511, 2000, 5000):
                words = []
                for number in range(columns):
                    words += [b"f:c%d" % number, b"v%d" % number]
                self.write("CPUT", "t", f"row{columns}", *words)
                self.check(b"t", b"row%d" % columns)
                self.write("CPUT", "t", f"row{columns}", "e:last" if "FAMILY e" in schema else "f:z", "v", "f:a", "new")
                shown = self.check(b"t", b"row%d" % columns)
                self.assertEqual(1, shown.count(b"new"))
                for connection in self.connections:
                    multi = [b"MULTI"], [b"CROW", b"t", b"row%d" % columns], [b"CROW", b"t", b"row1"], [b"EXEC"]
                    self.assertIn(self.ask(connection, multi[1]) + self.ask(connection, multi[2]),
                                  self.ask(connection, *multi))

    def test_long_rows_among_short_ones(self):
        self.write("TABLE", "CREATE", "t", "FAMILY", "f")
        for columns in (1, 100, 255, 256, 600):
            words = [word for number in range(columns) for word in (b"f:c%d" % number, b"v%d" % number)]
            self.write(b"CPUT", b"t", b"row%d" % columns, *words)
        self.write("CPUT", "t", "wide", "f:", "x" * 200_000)
        short, long = [b"row1", b"none"], [b"row100", b"row255", b"row256", b"row600", b"wide"]
        for row in long:
            for before in (0, 1, 15, 16, 40):
                rows = short * before + [row] + short * 20
                self.check_rows(b"t", rows)
                self.check_rows(b"t", [row] * 4 + rows)
        self.check_rows(b"t", [b"none"] * 100_000)
        self.check_rows(b"t", [b"row100"] * 50)
        rows = short * 9 + [b"row256"] + short
        ask = [b"CROWS", b"t", b"%d" % len(rows), *rows]
        for connection in self.connections:
            multi = [b"MULTI"], ask, ask, [b"EXEC"]
            self.assertIn(self.ask(connection, ask) * 2, self.ask(connection, *multi))

    def test_rows_that_are_too_long_together(self):
        self.write("TABLE", "CREATE", "t", "FAMILY", "f")
        self.addCleanup(self.redis.config_set, "reply-max-bytes", "1mb")
        for number in range(3):
            self.write("CPUT", "t", f"r{number}", "f:", "x" * 300)
        rows = [b"r0", b"r1", b"none", b"r2", b"none"]
        size = len(self.check_rows(b"t", rows)) // 2 * 2
        for limit in range(size - 40, size + 8):
            self.redis.config_set("reply-max-bytes", max(limit, 1))
            self.check_rows(b"t", rows)
        self.redis.config_set("reply-max-bytes", "1mb")
        self.write("CPUT", "t", "big", "f:", "x" * 400_000)
        self.assertTrue(self.check_rows(b"t", [b"big"] * 4).startswith(b"-TOOLARGE"))

    def test_wrong_rows(self):
        self.write("TABLE", "CREATE", "t", "FAMILY", "f")
        self.write("TABLE", "CREATE", "n", "KEY", "i64", "FAMILY", "f")
        self.write("CPUT", "n", "1", "f:a", "v" * 100)
        for before in (0, 1, 15, 16, 33, 3000):
            self.assertTrue(self.check_rows(b"n", [b"1"] * before + [b"x", b"1"]).startswith(b"-"), before)
        self.assertTrue(self.check_rows(b"t", [b"r"] * 100_001).startswith(b"-TOOLARGE"))
        for table, rows in ((b"t", [b""]), (b"t", [b"k" * 70_000]), (b"nix", [b"r"]), (b"t@no", [b"r"])):
            self.assertTrue(self.check_rows(table, rows).startswith(b"-"), (table, rows))

    def test_large_values(self):
        self.write("TABLE", "CREATE", "t", "FAMILY", "f")
        for size in (1, 1000, 30_000, 60_000, 65_536, 300_000):
            row = b"row%d" % size
            for number in range(3):
                self.write(b"CPUT", b"t", row, b"f:%d" % number, b"x" * size)
                self.check(b"t", row)
            self.write(b"CPUT", b"t", row, b"f:after", b"y")
            self.assertIn(b"f:after", self.check(b"t", row))

    def test_a_row_that_is_too_long(self):
        self.write("TABLE", "CREATE", "t", "FAMILY", "f")
        for columns, size in ((1, 2_000_000), (4, 300_000), (40, 30_000), (3000, 400)):
            for number in range(columns):
                self.write(b"CPUT", b"t", b"r%d" % columns, b"f:%04d" % number, b"x" * size)
            self.assertIn(b"-TOOLARGE row 'r%d' makes a reply of more than reply-max-bytes" % columns,
                          self.check(b"t", b"r%d" % columns))
        # The last cell is what makes it too long.
        self.redis.config_set("reply-max-bytes", "1kb")
        self.addCleanup(self.redis.config_set, "reply-max-bytes", "1mb")
        for size in range(960, 1030):
            self.write(b"CPUT", b"t", b"edge", b"f:", b"x" * size)
            self.check(b"t", b"edge")

    def test_wrong_words(self):
        self.write("TABLE", "CREATE", "t", "FAMILY", "f")
        self.write("TABLE", "CREATE", "n", "KEY", "i64", "FAMILY", "f")
        for table, row in ((b"t", b""), (b"t", b"k" * 70_000), (b"n", b"x"), (b"n", b""), (b"nix", b"r"), (b"t@no", b"r")):
            self.assertTrue(self.check(table, row).startswith(b"-"), (table, row))

    def test_a_restricted_user_sees_its_families(self):
        self.write("TABLE", "CREATE", "t", "FAMILY", "open", "FAMILY", "secret", "FAMILY", "also")
        self.write("CPUT", "t", "r", "open:a", "1", "secret:b", "2", "also:c", "3")
        self.write("ACL", "SETUSER", "ann", "on", ">pw", "+@all", "~t:open", "~t:also")
        self.server.settle()
        connections = [self.open(version, b"AUTH", b"ann", b"pw") for version in (b"2", b"3")]
        shown = self.check(b"t", b"r", connections)
        self.assertIn(b"open:a", shown)
        self.assertNotIn(b"secret", shown)
        self.assertNotIn(b"secret", self.check_rows(b"t", [b"r", b"none", b"r"], connections))
        self.assertIn(b"secret:b", self.check(b"t", b"r"))


if __name__ == "__main__":
    unittest.main()
