"""Avro files: what cellar-export writes is read by other libraries (Debian's python3-avro, npm's avsc), what they write
is imported; schemas of all shapes; damaged, cut and hostile files are refused with their name and the place."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import unittest
import zlib

from cellar_server import CellarServer, is_sanitized, measured_run, tool
from test_clients import NPM, install_npm_clients
from tool_test import SECONDS_MAX, ToolTest

sys.path.append("/usr/lib/python3/dist-packages")
try:
    import avro.datafile
    import avro.io
    import avro.schema
except ImportError:
    avro = None

SEED = int(os.environ.get("CELLAR_AVRO_SEED", "1"))
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients", "avro_node.js")
CELL = {"type": "record", "name": "BigtableCell", "fields": [
    {"name": "family", "type": "string"}, {"name": "qualifier", "type": "bytes"},
    {"name": "timestamp", "type": "long", "logicalType": "timestamp-micros"}, {"name": "value", "type": "bytes"}]}
ROW = {"type": "record", "name": "BigtableRow", "namespace": "com.google.cloud.teleport.bigtable", "fields": [
    {"name": "key", "type": "bytes"}, {"name": "cells", "type": {"type": "array", "items": CELL}}]}
SYNC = bytes(range(16))


def long(number):
    """Avro's encoding of an integer."""
    bits = number << 1 if number >= 0 else (-number << 1) - 1
    out = b""
    while bits > 0x7F:
        out += bytes([bits & 0x7F | 0x80])
        bits >>= 7
    return out + bytes([bits])


def text(data):
    data = data.encode() if isinstance(data, str) else data
    return long(len(data)) + data


def header(schema=None, codec="null", **more):
    entries = {"avro.schema": schema if isinstance(schema, (str, bytes)) else json.dumps(schema or ROW),
               "avro.codec": codec, **more}
    return b"Obj\x01" + long(len(entries)) + b"".join(text(k) + text(v) for k, v in entries.items()) + long(0) + SYNC


def deflate(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def block(*records, packed=False, count=None):
    data = b"".join(records)
    data = deflate(data) if packed else data
    return long(len(records) if count is None else count) + text(data) + SYNC


def record(key, *cells):
    """Cells are (family, qualifier, timestamp, value)."""
    return text(key) + (long(len(cells)) if cells else b"") + b"".join(
        text(f) + text(q) + long(t) + text(v) for f, q, t, v in cells) + long(0)


class AvroTest(ToolTest):
    OPTIONS = {"save": "", "enable-debug-command": "yes"}

    def import_(self, data, *words, status=0):
        return self.run_tool("cellar-import", "t", self.write("in.avro", data), *words, status=status)[1]

    def cells(self, table="t"):
        rows = self.server.client().execute_command("CSCAN", table, "0", "COUNT", "100000", "VERSIONS", "ALL", "WITHTS")[1]
        return {row: {c: v for c, v in zip(columns[::2], columns[1::2])} for row, columns in rows}

    def fill(self, rows=500):
        dice = random.Random(SEED)
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "n", "TYPE", "i64", "FAMILY", "s", "AGGREGATE",
                         "sum", "BUCKET", "1h", "FAMILY", "h", "AGGREGATE", "hll")
        for i in range(rows):
            key = dice.choice((b"row%d" % i, b"\xff\x00%d" % i))
            words = ["CPUT", "t", key]
            for _ in range(dice.randrange(1, 6)):
                words += [b"f:" + dice.choice((b"", b"a:b", b"\xfe\n", b"q")), dice.randbytes(dice.choice((0, 3, 2000))),
                          "TS", dice.randrange(2**50)]
            self.run_command(*words, "n:x", dice.randrange(-2**63, 2**63))
            self.run_command("CADD", "t", key, "s:all", i, "h:all", "u%d" % i)
        self.run_command("CPUT", "t", "large", "f:v", b"x\x00" * 500_000)

    def test_it_comes_back_the_same(self):
        """With --schema the types are the families': the digests are equal."""
        self.fill()
        for words in (["--compress", "none"], [], ["--split", "3"], ["--compress", "deflate", "--resume", self.path("s")]):
            self.run_tool("cellar-export", "t", "-f", "avro", "--schema", "-o", self.path("t"), *words)
            names = [f"t.{i}" for i in range(3)] if "--split" in words else ["t"]
            with CellarServer(options=self.OPTIONS) as other:
                for name in names:
                    self.run_tool("cellar-import", "t", self.path(name), "-f", "avro", "--create-table", port=other.port)
                self.assertEqual(self.run_command("DEBUG", "DIGEST", "t"),
                                 other.client().execute_command("DEBUG", "DIGEST", "t"), words)

    @unittest.skipUnless(avro, "python3-avro is not installed")
    def test_debians_library_reads_and_writes_it(self):
        self.fill()
        expected = self.cells()
        for codec in ("none", "deflate"):
            self.run_tool("cellar-export", "t", "-f", "avro", "-o", self.path("t.avro"), "--compress", codec)
            with open(self.path("t.avro"), "rb") as file:
                rows = list(avro.datafile.DataFileReader(file, avro.io.DatumReader()))
            self.assertEqual(sorted(expected), [row["key"] for row in rows])
            for row in rows:
                cells = [(c["family"].encode() + b":" + c["qualifier"], c["timestamp"]) for c in row["cells"]]
                self.assertEqual([(c, ts) for c, versions in expected[row["key"]].items() for ts, _ in versions], cells)
            with open(self.path("back.avro"), "wb") as file:
                writer = avro.datafile.DataFileWriter(file, avro.io.DatumWriter(), avro.schema.parse(json.dumps(ROW)),
                                                      codec="null" if codec == "none" else codec)
                for row in rows:
                    writer.append(row)
                writer.close()
            self.run_command("TABLE", "CREATE", "u", "FAMILY", "f", "FAMILY", "n", "TYPE", "i64", "FAMILY", "s", "AGGREGATE",
                             "sum", "BUCKET", "1h", "FAMILY", "h", "AGGREGATE", "hll")
            self.run_tool("cellar-import", "u", self.path("back.avro"))
            self.assertEqual(self.run_command("DEBUG", "DIGEST", "t"), self.run_command("DEBUG", "DIGEST", "u"))
            self.run_command("TABLE", "DROP", "u")

    def test_npms_library_reads_and_writes_it(self):
        install_npm_clients(self)
        environment = {**os.environ, "NODE_PATH": os.path.join(NPM, "node_modules")}
        self.fill(100)
        expected = self.cells()
        for codec in ("none", "deflate"):
            self.run_tool("cellar-export", "t", "-f", "avro", "-o", self.path("t.avro"), "--compress", codec,
                          "COLUMNS", "1", "f")
            read = subprocess.run(["node", SCRIPT, "read", self.path("t.avro")], env=environment, capture_output=True,
                                  timeout=SECONDS_MAX, check=True)
            rows = [json.loads(line) for line in read.stdout.splitlines()]
            self.assertEqual({row: [[column[2:].hex(), ts, value.hex()] for column, versions in columns.items()
                                    if column.startswith(b"f:") for ts, value in versions]
                              for row, columns in expected.items()},
                             {bytes.fromhex(row["key"]): [cell[1:] for cell in row["cells"]] for row in rows})
            # Its file has other fields, another order, unions, and small blocks.
            subprocess.run(["node", SCRIPT, "write", self.path("back.avro"), codec.replace("none", "null")],
                           env=environment, input=read.stdout, timeout=SECONDS_MAX, check=True)
            self.run_command("TABLE", "CREATE", "u", "FAMILY", "f")
            self.run_tool("cellar-import", "u", self.path("back.avro"))
            self.assertEqual({row: {c: v for c, v in columns.items() if c.startswith(b"f:")}
                              for row, columns in expected.items()}, self.cells("u"))
            self.run_command("TABLE", "DROP", "u")

    def test_what_avro_cannot_say_is_named(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("CPUT", "t", "r", "f:a", "1", "AS", "i64", "f:b", "true", "AS", "bool", "TTL", "1d", "TS", "5")
        said = self.run_tool("cellar-export", "t", "-f", "avro", "-o", self.path("x.avro"), status=1)[1]
        self.assertIn("row 'r': 'f:b' expires: the cell is written without that", said)
        self.run_tool("cellar-import", "u", self.path("x.avro"), "--create-table")
        self.assertEqual({b"f:a": b"1", b"f:b": b"true"}, {c: v[0][1] for c, v in self.cells("u")[b"r"].items()})
        self.run_tool("cellar-import", "w", self.path("x.avro"), "--create-table", "--default-type", "string", "--ttl", "1h")
        self.assertEqual(b"string", self.run_command("CROW", "w", "r", "WITHTYPE", "COLUMNS", "1", "f:a")[1][0][-1])

    def test_a_wide_row_is_several_records_and_little_memory(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for begin in range(0, 45_000, 15_000):
            self.run_command("CPUT", "t", "wide", *[w for i in range(begin, begin + 15_000)
                                                    for w in ("f:%05d" % i, "x" * 1500)])
        self.run_tool("cellar-export", "t", "-o", self.path("t.avro"), "--schema", "--compress", "none")
        self.run_tool("cellar-import", "u", self.path("t.avro"), "--create-table")
        self.assertEqual(45_000, self.run_command("CCOUNT", "u", "BY", "CELLS"))
        # One record of as many cells, as others write it, deflated: it is not held as a whole.
        cells = [("f", b"%05d" % i, 0, b"x" * 1500) for i in range(45_000)]
        path = self.write("one.avro", header(codec="deflate") + block(record("wide", *cells), packed=True))
        status, _, kib = measured_run([tool("cellar-import"), "-p", str(self.server.port), "v", path, "--create-table", "-q"],
                                      SECONDS_MAX)
        self.assertEqual(0, status)
        self.check_memory(kib)
        self.assertEqual(45_000, self.run_command("CCOUNT", "v", "BY", "CELLS"))

    def check_memory(self, kib):
        if not is_sanitized():
            self.assertLess(kib, 64 << 10)

    def test_schemas_of_other_writers(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        cell = {"name": "c", "type": "record", "fields": [
            {"name": "tree", "type": {"type": "record", "name": "Tree", "fields": [
                {"name": "below", "type": {"type": "array", "items": "Tree"}}, {"name": "n", "type": "double"}]}},
            {"name": "family", "type": {"type": "fixed", "name": "one", "size": 1}},
            {"name": "qualifier", "type": "string"}, {"name": "value", "type": ["bytes", "null"]},
            {"name": "timestamp", "type": ["null", "long"]}, {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
            {"name": "again", "type": "one"}, {"name": "nothings", "type": {"type": "array", "items": "null"}}]}
        row = {"name": "a.b.Row", "type": "record", "fields": [
            {"name": "m", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
            {"name": "key", "type": ["null", "string"]}, {"name": "cells", "type": {"type": "array", "items": cell}},
            {"name": "rest", "type": "string"}]}
        leaf = long(0) + bytes(8)
        tree = long(2) + leaf + leaf + long(0) + bytes(8)
        cells = lambda value, ts: tree + b"f" + text("q") + value + ts + long(0) + b"z" + long(2**60) + long(0)
        rows = [long(1) + text("k") + long(-1) + text(text("x")) + long(0) + long(0) +  # a map; its array says its bytes
                long(1) + text("r%d" % i) + long(-1) + long(99) + cells(value, ts) + long(0) + text("rest")
                for i, (value, ts) in enumerate(((long(0) + text("v"), long(1) + long(7)), (long(1), long(0)),
                                                 (long(0) + text("w"), long(0))))]
        said = self.import_(header(row) + block(*rows[:2]) + block(rows[2]), status=1)
        self.assertIn("record 2: a cell's family, qualifier or value is null", said)
        seen = self.cells()
        self.assertEqual([[7, b"v"]], seen[b"r0"][b"f:q"])
        self.assertGreater(seen[b"r2"][b"f:q"][0][0], 10**15)  # the server's time
        for schema, why in (
                ("nonsense", "byte 7: the schema is not JSON"), ("[]", "it is no record"), ('"Row"', "does not define: Row"),
                ({"type": "record", "name": "R", "fields": []}, "it has no key"),
                ({**ROW, "fields": ROW["fields"][:1]}, "no array of cells"),
                ({**ROW, "fields": ROW["fields"][::-1]}, "cells come before the key"),
                ({**ROW, "fields": [ROW["fields"][0], {"name": "cells", "type": {"type": "array", "items": {
                    "type": "record", "name": "C", "fields": CELL["fields"][:3]}}}]}, "a cell has no value"),
                ('{"type":' * 60 + '"int"' + "}" * 60, "nested too deep"),
                ({"type": "record", "name": "R", "fields": [{"name": "R", "type": {"type": "record", "name": "R",
                                                                               "fields": []}}]}, "defines a type twice"),
                ({"type": "fixed", "name": "F", "size": 2**40}, "too large"),
        ):
            said = self.import_(header(schema), status=2)
            self.assertIn(self.path("in.avro") + ": byte ", said)
            self.assertIn(why.split(": ", 1)[-1], said, schema)

    def schema(self, **types):
        """ROW with other types of its fields."""
        cell = {**CELL, "fields": [{"name": field["name"], "type": types.get(field["name"], field["type"])}
                                   for field in CELL["fields"]]}
        return {**ROW, "fields": [{"name": "key", "type": types.get("key", "bytes")},
                                  {"name": "cells", "type": {"type": "array", "items": cell}}]}

    def test_logical_types_are_converted(self):
        dice = random.Random(SEED)
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", "9")
        logical = lambda type_, word, **more: {"type": type_, "logicalType": word, **more}
        for type_, number, micros in ((logical("long", "timestamp-millis"), 1_700_000_000_123, 1_700_000_000_123_000),
                                      (logical("long", "timestamp-micros"), 1_700_000_000_123_456, 1_700_000_000_123_456),
                                      (["null", logical("int", "date")], 19_000, 19_000 * 86_400_000_000),
                                      ("long", 7, 7)):
            branch = long(1) if isinstance(type_, list) else b""
            body = text("at") + long(1) + text("f") + text("q") + branch + long(number) + text("v") + long(0)
            self.import_(header(self.schema(timestamp=type_)) + block(body))
            self.assertEqual([[micros, b"v"]], self.cells()[b"at"][b"f:q"])
            self.run_command("CDEL", "t", "at")
        # Bigtable's own schema says it beside the type.
        beside = self.schema()
        beside["fields"][1]["type"]["items"]["fields"][2]["logicalType"] = "timestamp-millis"
        self.import_(header(beside) + block(record("beside", ("f", "q", 5, "v"))))
        self.assertEqual([[5000, b"v"]], self.cells()[b"beside"][b"f:q"])
        for _ in range(200):
            scale, size = dice.randrange(0, 30), dice.randrange(1, 40)
            number = dice.choice((0, -1, dice.randrange(-2**(8 * size - 1), 2**(8 * size - 1))))
            raw = number.to_bytes(size, "big", signed=True)
            fixed = dice.random() < 0.5
            type_ = logical("fixed", "decimal", name="D", size=size, precision=99, scale=scale) if fixed else \
                logical("bytes", "decimal", precision=99, scale=scale)
            body = text("n") + long(1) + text("f") + text("q") + long(1) + (raw if fixed else text(raw)) + long(0)
            self.import_(header(self.schema(value=type_)) + block(body), "-q")
            digits = str(abs(number)).rjust(scale + 1, "0")
            wanted = ("-" if number < 0 else "") + (digits[:-scale] + "." + digits[-scale:] if scale else digits)
            self.assertEqual(wanted, self.cells()[b"n"][b"f:q"][0][1].decode())
        name = "3b241101-e2bb-4255-8caf-4136c7629d11"
        uuid = {"uuid": (logical("string", "uuid"), text(name)),
                "fixed": (logical("fixed", "uuid", name="U", size=16), bytes.fromhex(name.replace("-", "")))}
        for type_, key in uuid.values():
            body = key + long(1) + text("f") + text("q") + long(1) + text("v") + long(0)
            self.import_(header(self.schema(key=type_)) + block(body))
            self.assertIn(name.encode(), self.cells())
        late = self.import_(header(self.schema(timestamp=logical("long", "timestamp-millis"))) +
                            block(record("late", ("f", "q", 2**60, "v"))), status=1)
        self.assertIn("beyond what microseconds can say", late)
        for field, type_ in (("timestamp", logical("long", "timestamp-nanos")), ("timestamp", logical("int", "time-millis")),
                             ("timestamp", ["null", logical("long", "local-timestamp-millis")]),
                             ("value", logical("bytes", "big-decimal")), ("key", ["null", logical("bytes", "unheard-of")]),
                             ("value", logical("fixed", "duration", name="D", size=12))):
            said = self.import_(header(self.schema(**{field: type_})), status=2)
            self.assertRegex(said, f"the logical type '[a-z-]+' of {field} cannot be read")

    def test_an_import_and_an_export_that_are_killed_go_on(self):
        dice = random.Random(SEED)
        self.fill(3000)
        words = [tool("cellar-export"), "-p", str(self.server.port), "t", "--schema", "-o", self.path("t.avro"), "--resume",
                 self.path("out")]
        self.until_done(words, dice)
        self.until_done([tool("cellar-import"), "-p", str(self.server.port), "u", self.path("t.avro"), "--create-table",
                         "--resume", self.path("in"), "-q"], dice)
        self.assertEqual(self.run_command("DEBUG", "DIGEST", "t"), self.run_command("DEBUG", "DIGEST", "u"))

    def until_done(self, words, dice):
        for _ in range(5):
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                time.sleep(dice.random() * 0.1)
                process.send_signal(dice.choice((signal.SIGKILL, signal.SIGTERM)))
                process.wait(SECONDS_MAX)
        subprocess.run(words, stdin=subprocess.DEVNULL, timeout=SECONDS_MAX, check=True)

    def test_hostile_files(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        one = record("r", ("f", "q", 5, "v"))
        zeros = deflate(bytes(256 << 20))  # a quarter of a megabyte of file
        for data, why in (
                (b"", "this is no Avro container file"), (b"Obj\x02", "this is no Avro container file"),
                (b"PK\x03\x04zip", "this is no Avro container file"),
                (b"Obj\x01" + long(2**62) + text("a") * 5000, "more than 1,000 entries"),
                (b"Obj\x01" + long(1) + long(2**40), "a length of 1099511627776 bytes, above 16777216"),
                (b"Obj\x01" + long(0) + SYNC, "names no schema"),
                (header(codec="snappy"), "its codec is 'snappy': only null and deflate can be read"),
                (header() + long(1) + long(2**60) + b"x", "the file ends here, but more must follow"),
                (header() + long(-1) + long(5), "a length below 0"),
                (header() + b"\xff" * 10, "a number of more than 64 bits"),
                (header() + block(one, count=2), "the block ends inside a record (record 2)"),
                (header() + block(one, one, count=1), "the block holds more than its records"),
                (header() + block(one)[:-1] + b"!", "does not end in the file's sync marker"),
                (header() + block(one)[:-20], "the file ends here"),
                (header() + block(text("r") + long(2**60)), "the block ends inside a record"),
                (header() + block(text("r") + long(-2**63) + long(-1) + one), "ends inside a record"),
                (header() + block(text("r") + long(1) + text("f") + text("q") + long(5) + long(2**40)), "above 536870912"),
                (header(codec="deflate") + block(one), "not what deflate writes"),
                (header(codec="deflate") + long(1) + text(deflate(one)[:-3]) + SYNC, "not what deflate writes"),
                (header(codec="deflate") + long(1) + text(zeros) + SYNC, "the block holds more than its records"),
                (header(codec="deflate") + long(2**40) + text(zeros) + SYNC, "refused"),
        ):
            with self.subTest(why):
                path = self.write("bad.avro", data)
                status, said, kib = measured_run([tool("cellar-import"), "-p", str(self.server.port), "t", path], SECONDS_MAX)
                self.assertEqual(2, status, said)
                self.assertIn(why, said)
                self.check_memory(kib)

    def test_mutated_files_end_in_words(self):
        """Whatever is flipped or cut: a status of 0 to 2, the file's name, little memory and no crash."""
        dice = random.Random(SEED)
        print("avro: seed", SEED)
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        records = [record(b"r%d" % i, *(("f", b"q%d" % j, i, b"v" * j) for j in range(5))) for i in range(30)]
        whole = [header(codec=codec) + block(*records[:20], packed=codec == "deflate") +
                 block(*records[20:], packed=codec == "deflate") for codec in ("null", "deflate")]

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

        for _ in range(int(os.environ.get("CELLAR_AVRO_MUTATIONS", "150"))):
            data = bytearray(dice.choice(whole))
            for _ in range(dice.randrange(1, 4)):
                data[dice.randrange(len(data))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
            if dice.random() < 0.3:
                del data[dice.randrange(len(data)):]
            path = self.write("mutated.avro", bytes(data))
            done = subprocess.run([tool("cellar-import"), "t", path, "--dry-run", "-q"], stdin=subprocess.DEVNULL,
                                  capture_output=True, preexec_fn=None if is_sanitized() else limit,
                                  timeout=SECONDS_MAX, check=False)
            self.assertIn(done.returncode, (0, 1, 2), (done.stderr, data))
            if done.returncode == 2:
                self.assertIn(path.encode() + b": byte ", done.stderr)

    def test_wrong_use(self):
        path = self.write("x.avro", header())
        for name, words, why in (
                ("cellar-import", ["t", path, "-k", "x"], "--key does not go with --format avro"),
                ("cellar-import", ["t", path, "--hex"], "--hex does not go with --format avro"),
                ("cellar-export", ["t", "-f", "csv", "--compress", "deflate"], "--compress deflate goes with --format avro")):
            self.assertIn(why, self.run_tool(name, *words, status=2)[1])
        self.assertIn("0 rows", self.run_tool("cellar-import", "t", path, "--create-table")[1])


if __name__ == "__main__":
    unittest.main()
