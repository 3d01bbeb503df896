"""Feeds with ENTRIES ROW: one entry for what a command has changed in a row, beside a feed of cells that tells the same."""

import collections
import os
import random
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cellar_server import CellarTest  # noqa: E402
from feed_model import FeedModel, drop_feeds, pairs, table_cells  # noqa: E402
from model import resp  # noqa: E402

NUMBERED = re.compile(r"(op|column|ts|type|value|expires|old|oldts|oldtype|by|family|from|to)(\d+)")


def expanded(flat):
    """The changes of an entry, each with the fields that an entry of its own would have."""
    fields = pairs(flat)
    assert len(fields) == len(flat) // 2, flat  # no name twice
    if fields["op"] != "row":
        return [fields]
    changes = [{"table": fields["table"], "row": fields["row"]} for _ in range(int(fields["changes"]))]
    for name, value in fields.items():
        found = NUMBERED.fullmatch(name)
        if found:
            changes[int(found.group(2)) - 1][found.group(1)] = value
        else:
            assert name in ("op", "table", "row", "changes", "more"), name
    return changes


class FeedRowsTest(CellarTest):

    def setUp(self):
        super().setUp()
        self.connect()
        self.addCleanup(lambda: (drop_feeds(self.client), self.run_command("FLUSHALL")))

    def connect(self):
        self.client = self.server.client()
        self.run_command = self.client.execute_command
        self.raw = resp.Client(self.server.port)  # redis-py makes dicts of entries
        self.addCleanup(self.raw.close)

    def entries(self, feed, count=100):
        """All of it, in pages."""
        self.run_command("WAITAOF", 1, 0, 5000)
        found, last = [], "-"
        while True:
            page = self.raw.call("XRANGE", feed, last, "+", "COUNT", str(count))
            if not page:
                return found
            found += page
            last = "(" + page[-1][0].decode()

    def test_one_entry_for_a_row(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", 1, "FAMILY", "g", "TYPE", "i64")
        self.run_command("FEED", "CREATE", "r", "ON", 1, "t", "OLD", "ENTRIES", "ROW")
        self.run_command("CPUT", "t", "a", "f:x", "1", "TS", 5, "g:n", 7, "TS", 6)
        self.run_command("CPUT", "t", "a", "f:x", "2", "TS", 8, "f:y", "3", "TS", 9, "EXPIREAT", 4102444800000000)
        pipe = self.client.pipeline(transaction=True)
        for row, value in (("b", 1), ("a", 2), ("b", 3)):
            pipe.execute_command("CPUT", "t", row, "f:z", value, "TS", value)
        pipe.execute()
        self.run_command("CDEL", "t", "a")
        got = [pairs(flat) for _, flat in self.entries("r")][1:]
        self.assertEqual(got[0], {"op": "row", "table": "t", "row": "a", "op1": "put", "column1": "f:x", "ts1": "5", "type1": "bytes",
                                  "value1": "1", "op2": "put", "column2": "g:n", "ts2": "6", "type2": "i64", "value2": "7",
                                  "changes": "2"})
        self.assertEqual(got[1], {"op": "row", "table": "t", "row": "a", "op1": "put", "column1": "f:x", "ts1": "8", "type1": "bytes",
                                  "value1": "2", "old1": "1", "oldts1": "5", "oldtype1": "bytes", "op2": "put", "column2": "f:y",
                                  "ts2": "9", "type2": "bytes", "value2": "3", "expires2": "4102444800000000", "changes": "2"})
        self.assertEqual([(entry["row"], entry["changes"], entry.get("more")) for entry in got[2:4]], [("b", "2", "1"), ("a", "1", None)])
        self.assertEqual([got[2]["value1"], got[2]["value2"], got[2]["old2"]], ["1", "3", "1"])
        self.assertEqual((got[4]["row"], got[4]["changes"]), ("a", "4"))
        self.assertEqual({got[4]["op%d" % at] for at in range(1, 5)}, {"del"})
        self.assertEqual(len(got), 5)
        self.assertEqual(self.run_command("XLEN", "r"), 6)

    def test_a_row_needs_one_xack(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("FEED", "CREATE", "r", "ON", 1, "t", "ENTRIES", "ROW")
        self.run_command("CPUT", "t", "a", *[word for at in range(100) for word in ("f:%d" % at, "x")])
        self.run_command("WAITAOF", 1, 0, 5000)
        self.run_command("XGROUP", "CREATE", "r", "g", 0)
        got = self.raw.call("XREADGROUP", "GROUP", "g", "me", "STREAMS", "r", ">")[0][1]
        self.assertEqual([pairs(flat)["op"] for _, flat in got], ["schema", "row"])
        self.assertEqual(self.run_command("XACK", "r", "g", *[id for id, _ in got]), 2)
        self.assertEqual(self.raw.call("XPENDING", "r", "g")[0], 0)

    def test_info_and_errors(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for words, entries in ((["ENTRIES", "ROW"], b"row"), (["ENTRIES", "cell"], b"cell"), ([], b"cell")):
            self.run_command("FEED", "CREATE", "r", "ON", 1, "t", *words)
            self.server.restart()
            self.connect()
            info = self.run_command("FEED", "INFO", "r")
            self.assertEqual(dict(zip(info[::2], info[1::2]))[b"entries"], entries)
            self.run_command("FEED", "DROP", "r")
        for words in (["ENTRIES"], ["ENTRIES", "TABLE"], ["ENTRIES", "ROW", "ENTRIES", "ROW"]):
            with self.assertRaisesRegex(Exception, "syntax error.*ENTRIES|CELL"):
                self.run_command("FEED", "CREATE", "r", "ON", 1, "t", *words)

    def test_what_a_whole_table_meets_divides_a_row(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("FEED", "CREATE", "r", "ON", 1, "t", "ENTRIES", "ROW")
        pipe = self.client.pipeline(transaction=True)
        pipe.execute_command("CPUT", "t", "a", "f:x", "1")
        pipe.execute_command("TABLE", "TRUNCATE", "t")
        pipe.execute_command("CPUT", "t", "a", "f:y", "1")
        pipe.execute()
        got = [pairs(flat)["op"] for _, flat in self.entries("r")]
        self.assertEqual(got, ["schema", "row", "truncate", "row"])
        model = FeedModel()
        self.replay(model, self.entries("r"))
        self.assertEqual(model.cells("t"), table_cells(self.client, "t"))

    @staticmethod
    def replay(model, entries):
        for _, flat in entries:
            for change in expanded(flat):
                if change["op"] not in ("add", "merge"):  # whose outcome no entry says
                    getattr(model, "on_" + change["op"])(change)

    def test_it_tells_what_the_feed_of_cells_tells(self):
        for seed in range(4):
            with self.subTest(seed=seed):
                self.compare(random.Random(seed), [[], ["OLD"], ["OLD", "EXPIRED"], ["PREFIX", "a"]][seed])
                drop_feeds(self.client)
                self.run_command("TABLE", "DROP", "t")

    def compare(self, rng, options):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", 2, "FAMILY", "h", "AGGREGATE", "hll")
        self.run_command("FEED", "CREATE", "cells", "ON", 1, "t", *options)
        self.run_command("FEED", "CREATE", "rows", "ON", 1, "t", *options, "ENTRIES", "ROW")

        def command(pipe):
            row = rng.choice(["a1", "a2", "b1", "b2"])
            column = "f:%d" % rng.randrange(4)
            choice = rng.random()
            if choice < 0.5:
                words = [word for _ in range(rng.randint(1, 4)) for word in ("f:%d" % rng.randrange(4), rng.randrange(99), "TS", rng.randrange(9))]
                pipe.execute_command("CPUT", "t", row, *words)
            elif choice < 0.6:
                pipe.execute_command("CADD", "t", row, "h:u", rng.randrange(99))
            elif choice < 0.7:
                pipe.execute_command("CMUTATE", "t", row, "PUT", column, "m", "DEL", "f:0", "PUT", "f:1", "n")
            elif choice < 0.8:
                pipe.execute_command("CDEL", "t", row, *rng.choice([[], ["f"], [column]]))
            elif choice < 0.9:
                pipe.execute_command("CDELRANGE", "t", "PREFIX", rng.choice(["a", "b", "a1"]))
            else:
                pipe.execute_command("CUPDATE", "t", "PREFIX", rng.choice(["a", "b"]), "PUT", "f:u", rng.randrange(99))

        for _ in range(150):
            pipe = self.client.pipeline(transaction=rng.random() < 0.4)
            for _ in range(rng.randint(1, 6)):
                command(pipe)
            pipe.execute()
        while True:  # what retention reclaims may come later
            cells = self.entries("cells")
            rows = self.entries("rows", rng.choice([1, 7, 1000]))
            if self.entries("cells") == cells:
                break
        self.assertEqual(rows, self.entries("rows", 1000))
        if "EXPIRED" not in options:
            self.assertEqual(self.run_command("XLEN", "rows"), len(rows))
        self.assertLess(len(rows), len(cells))

        def by_row(changes):
            found = collections.defaultdict(list)
            for change in changes:
                change = {name: value for name, value in change.items() if name != "more"}
                found[change.get("row")].append(change)
            return found
        want = by_row(pairs(flat) for _, flat in cells)
        got = by_row(change for _, flat in rows for change in expanded(flat))
        self.assertEqual({row: changes for row, changes in got.items()}, dict(want))
        # Each row once in a step: `more` says where one ends.
        seen = set()
        for _, flat in rows:
            fields = pairs(flat)
            if fields["op"] == "row":
                self.assertNotIn(fields["row"], seen)
                seen.add(fields["row"])
            if fields.get("more") != "1" or fields["op"] != "row":
                seen = set()
        if options in ([], ["OLD"], ["OLD", "EXPIRED"]):
            model = FeedModel()
            self.replay(model, rows)
            live = [cell for cell in table_cells(self.client, "t") if cell[1][0] == "f"]
            self.assertEqual([cell for cell in model.cells("t") if cell[1][0] == "f"], live)
        self.server.restart()
        self.connect()
        self.assertEqual(self.entries("rows")[:len(rows)], rows)


if __name__ == "__main__":
    unittest.main()
