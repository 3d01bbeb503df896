"""Rows of a table that another set of a cluster owns: whoever names one is told so, everything else passes them by.

The model (test_model.py) goes over all that reads many rows; here are those that name one.
"""

import unittest

from cellar_server import CellarTest, not_on_a_follower

MOVED = "TRYAGAIN row 'm' of table 't' has moved"
# Each names the row m, and must neither show nor change it.
NAMING = [
    "CGET t m f:a", "CGET t m f:a AT 5", "CMGET t m f:a f:b", "CEXISTS t m", "CEXISTS t m f:a", "CROW t m",
    "CROW t m COLUMNS 1 f:a", "CROWS t 1 m", "CROWS t 3 a m z", "CROWS t 2 a m COLUMNS 1 f:a", "CPUT t m f:a 2",
    "CPUT t m f:a 2 f:b 3", "CPUT t m NX f:a 2", "CDEL t m", "CDEL t m f:a", "CINCRBY t m n:a 1", "CAPPEND t m f:a x",
    "CADD t m h:a x", "CMUTATE t m PUT f:a 2", "CMUTATE t m IF f:a EXISTS PUT f:b 1",
]
# Each reads rows, or changes those that it finds, among which m would be.
PASSING = [
    ("CSCAN t 0 COLUMNS 1 f:a", [b"0", [[b"a", [b"f:a", b"a"]], [b"z", [b"f:a", b"z"]]]]),
    ("CSCAN t 0 ROWS 2 m z COLUMNS 1 f:a", [b"0", [[b"z", [b"f:a", b"z"]]]]),
    ("CSCAN t 0 ROWS 1 m", [b"0", []]), ("CCOUNT t", 2), ("CCOUNT t ROWS 1 m", 0), ("CCOUNT t RANGE [m +", 1),
    ("CNEAR t m", [b"z", 1]), ("CCOUNT t WHERE f:a EQ m", 0), ("CCOUNT t INDEX i", 2), ("CNEAR t INDEX i 1 m", [[b"z"], b"z", 1]),
    ("CUPDATE t RANGE [m [m PUT f:b x", 0), ("CDELRANGE t RANGE [m [n", 0), ("CSCAN t 0 INDEX i EQ 1 m", [b"0", []]),
]


class TabletsTest(CellarTest):
    OPTIONS = {"enable-debug-command": "yes"}

    def setUp(self):
        super().setUp()
        run = self.redis.execute_command
        run("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "n", "TYPE", "i64", "FAMILY", "h", "AGGREGATE", "hll")
        for row in "amz":
            run("CPUT", "t", row, "f:a", row)
        run("INDEX", "CREATE", "t", "i", "ON", 1, "f:a")
        while dict(zip(*[iter(run("INDEX", "INFO", "t", "i"))] * 2))[b"state"] != b"ready":
            pass
        run("DEBUG", "TABLETS", "t", "", "c", "x", "")

    def ask(self, text):
        with self.server.connect() as connection:
            words = [word.encode() for word in text.split()]
            connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words))
            return connection.recv(1 << 16)

    @not_on_a_follower("what a node owns is set on the leader alone")
    def test_who_names_a_row_of_another_set_is_told(self):
        digest = self.redis.execute_command("DEBUG", "DIGEST")
        for text in NAMING:
            with self.subTest(text):
                self.assertEqual(b"-" + MOVED.encode() + b"\r\n", self.ask(text))
        self.assertEqual(digest, self.redis.execute_command("DEBUG", "DIGEST"))
        self.redis.execute_command("DEBUG", "TABLETS", "t", "", "")
        self.assertEqual([b"m", None], self.redis.execute_command("CMGET", "t", "m", "f:a", "f:b"))

    @not_on_a_follower("what a node owns is set on the leader alone")
    def test_everything_else_passes_it_by(self):
        for text, expected in PASSING:
            with self.subTest(text):
                self.assertEqual(expected, self.redis.execute_command(*text.split()))
        self.redis.execute_command("DEBUG", "RELOAD")
        self.assertEqual(2, self.redis.execute_command("CCOUNT", "t"))
        self.redis.execute_command("DEBUG", "TABLETS", "t", "", "")
        self.assertEqual(3, self.redis.execute_command("CCOUNT", "t"))
        self.assertEqual([b"m", None], self.redis.execute_command("CMGET", "t", "m", "f:a", "f:b"))

    @not_on_a_follower("what a node owns is set on the leader alone")
    def test_what_is_made_of_a_table_has_what_is_owned(self):
        count = self.redis.execute_command("CCOUNT", "t")
        for text in ("SNAPSHOT CREATE s", "SNAPSHOT CREATE s2 ON 1 t", "COPY t u"):
            self.assertIn(self.ask(text), (b"+OK\r\n", b":1\r\n"))
        for table in ("t@s", "t@s2", "u"):
            self.assertEqual(count, self.redis.execute_command("CCOUNT", table), table)


if __name__ == "__main__":
    unittest.main()
