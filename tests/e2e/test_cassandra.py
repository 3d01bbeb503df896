"""cellar-import --format sstabledump: what sstabledump and sstable2json of every age say, mapped to rows; deletions hide
what they hide; wide partitions in little memory; resuming; damaged dumps end in words."""

import json
import os
import random
import signal
import subprocess
import time
import unittest

from cellar_server import is_sanitized, measured_run, tool
from tool_test import SECONDS_MAX, ToolTest

SEED = int(os.environ.get("CELLAR_DUMP_SEED", "1"))


def micros(text):
    """The microseconds of hh:mm on 2 March 2024."""
    hours, minutes = map(int, text.split(":"))
    return 1709337600_000_000 + (hours * 60 + minutes) * 60_000_000


def at(text):
    return f"2024-03-02T{text}:00Z"


def deletion(text):
    return {"marked_deleted": at(text), "local_delete_time": at(text)}


def bound(kind, clustering, when):
    return {"type": "range_tombstone_bound",
            kind: {"type": "inclusive", "clustering": clustering, "deletion_info": deletion(when)}}


def row(clustering, cells, when="10:00", **more):
    return {"type": "row", "position": 9, "clustering": clustering, "liveness_info": {"tstamp": at(when)},
            "cells": cells, **more}


def partition(key, rows, **more):
    return {"partition": {"key": key, "position": 0, **more}, "rows": rows}


FLIGHTS = [
    partition(["LH", "400"], [
        {"type": "static_block", "position": 5, "cells": [{"name": "airline", "value": "Air", "tstamp": at("09:00")}]},
        row([7, "a b"], [
            {"name": "seats", "value": 364}, {"name": "\"Gate \"\"B\"\"\"", "value": "b12", "tstamp": at("11:00")},
            {"name": "price", "value": 12.50}, {"name": "open", "value": True}, {"name": "nothing", "value": None},
            {"name": "gone", "deletion_info": {"local_delete_time": at("10:30")}, "tstamp": at("10:30")},
            {"name": "photo", "value": "0x00ff"}, {"name": "frozen", "value": ["x", {"y": 1}]},
            {"name": "tags", "deletion_info": deletion("09:59")},
            {"name": "tags", "path": ["red"], "value": ""}, {"name": "tags", "path": ["old"], "value": "",
                                                             "tstamp": at("09:30")},
            {"name": "m", "path": ["k"], "value": "v", "ttl": 60, "expires_at": "2099-01-01T00:00:00Z", "expired": False}]),
        row([8, "only its key"], []),
    ]),
    partition(["LH", "401"], [
        row([1], [{"name": "seats", "value": 1}]),                                           # by the partition
        row([2], [{"name": "seats", "value": 2}, {"name": "crew", "value": 3, "tstamp": at("13:00")}], "12:30"),
        bound("start", [3, "*"], "14:00"),
        row([3], [{"name": "seats", "value": 3}], "13:30"),                                  # by the range
        {"type": "range_tombstone_boundary",
         "start": {"type": "exclusive", "clustering": [4], "deletion_info": deletion("13:00")},
         "end": {"type": "inclusive", "clustering": [4], "deletion_info": deletion("14:00")}},
        row([5], [{"name": "seats", "value": 5}], "13:30"),
        bound("end", [6, "*"], "13:00"),
        row([7], [{"name": "seats", "value": 7}], "12:30"),
        row([8], [{"name": "seats", "value": 8}, {"name": "crew", "value": 9, "tstamp": at("16:00")}],
            deletion_info=deletion("15:00")),
    ], deletion_info=deletion("12:00")),
]


class CassandraTest(ToolTest):
    OPTIONS = {"save": "", "enable-debug-command": "yes"}

    def write_dump(self, dump, name="dump.json"):
        """A dump as text, or as what JSON says."""
        return self.write(name, dump if isinstance(dump, str) else json.dumps(dump, indent=2))

    def import_(self, dump, *words, status=0, family=("-F", "f")):
        done = subprocess.run([tool("cellar-import"), "-p", str(self.server.port), "t", self.write_dump(dump), "-f",
                               "sstabledump", "--create-table", *family, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stderr

    def rows(self):
        """{row: {column: [timestamp, value, type, expiry]}} of the newest versions."""
        found = self.run_command("CSCAN", "t", "0", "COUNT", "100000", "WITHTS", "WITHTYPE", "WITHTTL")[1]
        return {r.decode(): {c.decode(): v[0] if isinstance(v[0], list) else v for c, v in zip(cells[::2], cells[1::2])}
                for r, cells in found}

    def values(self):
        return {r: {c: v[1] for c, v in cells.items()} for r, cells in self.rows().items()}

    def test_rows_of_sstabledump(self):
        said = self.import_(FLIGHTS, "--json-types", "-c", "photo=f:photo:bytes", "-c", "tags=tag:", "--family", "tag")
        self.assertIn("11 deletions, and cells that they hide, are left out", said)
        rows = self.rows()
        self.assertEqual({"f:airline": [micros("09:00"), b"Air", b"string", None]}, rows["LH#400"])
        ten = micros("10:00")
        self.assertEqual({
            "f:seats": [ten, 364, b"i64", None], 'f:Gate "B"': [micros("11:00"), b"b12", b"string", None],
            "f:price": [ten, b"12.5", b"f64", None], "f:photo": [ten, b"\x00\xff", b"bytes", None],
            "f:frozen": [ten, b'["x",{"y":1}]', b"bytes", None], "tag:red": [ten, b"", b"string", None],
            "f:m.k": [ten, b"v", b"string", 4070908800000000]},
            {c: v for c, v in rows["LH#400#7#a b"].items() if c != "f:open"})
        self.assertEqual({"f:": [ten, b"", b"bytes", None]}, rows["LH#400#8#only its key"])
        self.assertEqual({"LH#401#2": {"f:seats": 2, "f:crew": 3}, "LH#401#5": {"f:seats": 5}, "LH#401#7": {"f:seats": 7},
                          "LH#401#8": {"f:crew": 9}}, {r: c for r, c in self.values().items() if r.startswith("LH#401")})

    def test_forms_of_the_same_dump(self):
        """-t gives raw timestamps; -l a partition a line; other tools other blanks: the same table."""
        def raw(value):
            if isinstance(value, list):
                return [raw(v) for v in value]
            if not isinstance(value, dict):
                return value
            out = {k: raw(v) for k, v in value.items()}
            for name in ("tstamp", "marked_deleted"):
                if name in value:
                    out[name] = str(micros(value[name][11:16]))
            if "expires_at" in value:
                out["expires_at"] = "4070908800"
            return out

        self.import_(FLIGHTS)
        digest = self.run_command("DEBUG", "DIGEST", "t")
        forms = [json.dumps(raw(FLIGHTS)), "\n".join(json.dumps(p) for p in FLIGHTS),
                 json.dumps([{"table kind": "REGULAR", **p} for p in FLIGHTS]),
                 json.dumps(FLIGHTS, separators=(",", ":")), "\r\n" + json.dumps(FLIGHTS, indent="\t") + "\n\n"]
        for form in forms:
            self.run_command("TABLE", "DROP", "t")
            self.import_(form)
            self.assertEqual(digest, self.run_command("DEBUG", "DIGEST", "t"), form[:200])

    def test_numbers_keep_their_digits(self):
        self.import_('[{"partition": {"key": ["k"]}, "rows": [{"type": "row", "liveness_info": {"tstamp": "5"}, "cells": '
                     '[{"name": "varint", "value": 123456789012345678901234567890}, {"name": "decimal", "value": 0.100}, '
                     '{"name": "big", "value": 18446744073709551615}, {"name": "list", "value": [1.50]}]}]}]', "--json-types")
        self.assertEqual({"f:varint": b"123456789012345678901234567890", "f:decimal": b"0.1",
                          "f:big": 18446744073709551615, "f:list": b"[1.50]"},
                         {c: int(v) if c == "f:big" else v for c, v in self.values()["k"].items()})

    def test_sstable2json(self):
        counter = "0001" + "8000" + "11" * 16 + "%016x" % 4 + "%016x" % 40 + "22" * 16 + "%016x" % 1 + "%016x" % 2
        self.import_([
            {"key": b"LH 400".hex(), "columns": [["2024:name", "x", 5], ["b", "", 6, "d"], ["c", "3", 7, "e", 60, 4070908800],
                                                 ["n", counter, 8, "c", -1], ["p", "q", 9, "t", 1]]},
            {"key": b"LI".hex(), "metadata": {"deletionInfo": {"markedForDeleteAt": 10, "localDeletionTime": 1}},
             "columns": {"s1": {"deletedAt": -2**63, "subColumns": [["n", "v", 11], ["o", "v", 9]]},
                         "s2": {"metadata": {"deletionInfo": {"markedForDeleteAt": 12}}, "subColumns": [["n", "v", 11]]}}}])
        self.assertEqual({"LH 400": {"f:2024:name": [5, b"x", b"bytes", None],
                                     "f:c": [7, b"3", b"bytes", 4070908800000000], "f:n": [8, b"42", b"bytes", None]},
                          "LI": {"f:s1.n": [11, b"v", b"bytes", None]}}, self.rows())
        # 2.1 says "cells", and keys as they are.
        self.import_([{"key": "6b", "cells": [["a", "z", 20]]}])
        self.assertEqual({"f:a": b"z"}, self.values()["6b"])
        # 0.6 to 0.8: an object of rows, all of it hexadecimal.
        self.import_({b"o1".hex(): [["6e", "76", 5, False], ["6f", "76", 5, True]],
                      b"o2".hex(): {"73": {"deletedAt": -2**63, "subColumns": [["6e", "77", 5, False]]}}}, "--hex")
        self.assertEqual(({"f:n": b"v"}, {"f:s.n": b"w"}), (self.values()["o1"], self.values()["o2"]))

    def test_a_wide_partition_takes_little_memory(self):
        with open(self.path("wide.json"), "w", encoding="utf-8") as file:
            file.write('[{"partition": {"key": ["k"]}, "rows": [')
            for i in range(30_000):
                file.write("%s\n" % ("," if i else "") + json.dumps(row([i], [{"name": "v", "value": "x" * 3000}])))
            file.write("]},\n" + json.dumps({"key": "6b", "columns": [["c%06d" % i, "y" * 500, 5] for i in range(60_000)]}) + "]")
        status, said, kib = measured_run([tool("cellar-import"), "-p", str(self.server.port), "t", self.path("wide.json"), "-f",
                                          "sstabledump", "-F", "f", "--create-table"], SECONDS_MAX)
        self.assertEqual(0, status, said)
        if not is_sanitized():
            self.assertLess(kib, 64 << 10)
        self.assertEqual(90_000, self.run_command("CCOUNT", "t", "BY", "CELLS"))
        self.assertEqual(30_001, self.run_command("CCOUNT", "t"))

    def test_an_import_that_is_killed_goes_on(self):
        dice = random.Random(SEED)
        rows = []
        for i in range(0, 20_000, 2):  # every other row lies in a range that is deleted
            rows += [bound("start", [i], "11:00"), row([i], [{"name": "v", "value": i}]), bound("end", [i], "11:00"),
                     row([i + 1], [{"name": "v", "value": i}])]
        path = self.write_dump([partition(["k"], rows)])
        words = [tool("cellar-import"), "-p", str(self.server.port), "t", path, "-f", "sstabledump", "-F", "f",
                 "--create-table", "--resume", self.path("state"), "-q", "--pipeline", "20"]
        for _ in range(4):
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                time.sleep(0.05 + dice.random() * 0.4)
                process.send_signal(dice.choice((signal.SIGKILL, signal.SIGTERM)))
                process.wait(SECONDS_MAX)
        subprocess.run(words, stdin=subprocess.DEVNULL, timeout=SECONDS_MAX, check=True)
        self.assertEqual(10_000, self.run_command("CCOUNT", "t"))

    def test_mistakes_are_named_with_their_line(self):
        good = json.dumps(row([1], [{"name": "v", "value": 1}]))
        start = '[\n{"partition": {"key": ["k"]}, "rows": [\n'
        for element, why in (
                ('{"type": "row"', "the input ends inside a value"), ('{"type": "row", x}', "not JSON at its byte"),
                ('{"cells": []}', "does not say its type"), ('{"type": "cow", "cells": []}', "no row of the type 'cow'"),
                ('{"type": "row", "cells": [{"name": "v", "value": 1}]}', "column 'v' has no timestamp"),
                ('{"type": "row", "cells": [{"value": 1}]}', "a cell has no name"),
                ('{"type": "row", "liveness_info": {"tstamp": "then"}, "cells": [{"name": "v", "value": 1}]}',
                 "'then' is not a timestamp"),
                ("[" * 40 + "]" * 40, "nested too deep"), ("7", "does not say its type")):
            fatal = "ends inside" in why
            text = start + element + ("" if fatal else ",\n" + good + "\n]}\n]")
            said = self.import_(text, status=2 if fatal else 1)
            self.assertIn(why, said)
            self.assertIn(self.path("dump.json") + ": line 3, byte" if fatal else "line 3: row 'k", said)
            if not fatal:
                self.assertIn("1 rows, 1 cells written, 1 refused", said)
        for text, why in (
                ("7", "this is no dump"), ('[{"rows": []}]', '"rows" stands before the key'),
                ("[{]", "'\"' must stand here"), ("[{}", "the input ends here"), ("[] []", "behind the end of the dump"),
                ('[{"partition": 5 "rows": []}]', "',' must stand here"), (start + good + " " + good, "',' must stand here"),
                ('[{"partition": {"key": ["k"]}, "rows": {}}]', "'[' must stand here")):
            self.assertIn(why, self.import_(text, status=2), text)
        said = self.import_(start + good + "]}]", family=("-c", "other=f:x"), status=1)
        self.assertIn("column 'v' is mapped nowhere", said)
        said = self.import_(start + good + "]}]", family=(), status=2)
        self.assertIn("--default-family is required with --format sstabledump", said)
        self.assertIn("--key does not go with --format sstabledump", self.import_("[]", "-k", "x", status=2))
        self.assertIn("0 rows", self.import_(""))
        self.assertIn("1 rows", self.import_([{"key": "6b", "columns": [["zz", "1", 5], ["zz", "q", 5]]}], "--ignore-unmapped"))

    def test_mutated_dumps_end_in_words(self):
        dice = random.Random(SEED)
        print("cassandra: seed", SEED)
        old = json.dumps([{"key": "6b", "columns": {"s": {"deletedAt": 1, "subColumns": [["a", "b", 5, "e", 1, 2]]}}}])
        for _ in range(150):
            data = bytearray(dice.choice((json.dumps(FLIGHTS), old)).encode())
            for _ in range(dice.randrange(1, 4)):
                data[dice.randrange(len(data))] = dice.choice(b"{}[],:\"\\0\xff9e-")
            if dice.random() < 0.3:
                del data[dice.randrange(len(data)):]
            with open(self.path("mutated"), "wb") as file:
                file.write(data)
            done = subprocess.run([tool("cellar-import"), "t", self.path("mutated"), "-f", "sstabledump", "-F", "f", "--hex",
                                   "--dry-run", "-q"], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS_MAX,
                                  check=False)
            self.assertIn(done.returncode, (0, 1, 2), (done.stderr, bytes(data)))
            if done.returncode == 2:
                self.assertIn(self.path("mutated").encode() + b": line ", done.stderr)


if __name__ == "__main__":
    unittest.main()
