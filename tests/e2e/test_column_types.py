"""Types of single columns, and changes of types (cellar-model(7), "TYPES"; cellar-commands(7), FAMILY ALTER)."""

import threading
import unittest

from cellar_server import wait_until
from replicas import ReplicaTest
from wire import B, D, M, OK, S, WireTest

from model import resp


class ColumnTypesTest(WireTest):
    OPTIONS = {"save": "", "enable-debug-command": "local"}

    def setUp(self):
        super().setUp()
        self.write("FLUSHALL")
        self.write("TABLE CREATE t FAMILY c TYPE i64 COLUMN cust u64 COLUMN \"\" string COLUMN note bytes FAMILY m")

    def show(self, table="t"):
        return [line.decode() for line in self.call(f"TABLE SHOW {table}")]

    def info(self, line):
        return {name.decode(): value for name, value in resp.as_map(self.call(line))}

    def test_writes_and_reads_go_by_the_columns_type(self):
        for _ in range(3):  # a column that is named often is known by its name
            self.write("CPUT t r c:cust 7 c: né c:note x c:other -5")
        self.read("CROW t r COLUMNS 1 c WITHTYPE VERSIONS 1", M(*[
            (f"c:{q}", [[self.stamp("c:" + q), value, kind]]) for q, value, kind in (
                ("", "né", "string"), ("cust", 7, "u64"), ("note", "x", "bytes"), ("other", -5, "i64"))]))
        for _ in range(3):
            self.refused("CPUT t r c:cust -7", "BADVALUE column 'c:cust': '-7' is out of range for type u64")
            self.refused("CPUT t r c:cust 7 AS u16", "WRONGTYPE column 'c:cust' holds u64, not u16")
        self.refused("CPUT t r c:other 7 AS u16", "WRONGTYPE family 'c' holds i64, not u16")
        self.refused("CMUTATE t r PUT c:cust 7 AS i64", "WRONGTYPE column 'c:cust' holds u64, not i64")
        self.write("CPUT t r c:cust 8 AS u64")
        self.write("CINCRBY t s c:cust 3", 3)
        self.read("CROW t s WITHTYPE", M(("c:cust", [[self.stamp("c:cust", "s"), 3, "u64"]])))
        self.refused("CINCRBY t s c:note 3", "WRONGTYPE")
        self.write("CAPPEND t s c: é", 2)
        self.read("CSCAN t 0 WHERE c:cust GE 8 COLUMNS 1 c:cust", ["0", [["r", M(("c:cust", 8))]]])
        self.read("CSCAN t 0 COLUMNS 1 c:cust FILTER \"value < 4\"", ["0", [["s", M(("c:cust", 3))]]])

    def stamp(self, column, row="r"):
        return self.call(f"CGET t {row} {column} WITHTS")[0]

    def test_composite_qualifiers_and_bad_ones(self):
        self.write("TABLE CREATE u FAMILY c ORDER utf8#-u32 COLUMN a#007 bool COLUMN b#1 f64")
        self.write("CPUT u r c:a#7 1 c:b#1 2.5 c:b#2 x")
        self.read("CMGET u r c:a#7 c:b#1 c:b#2", [B(True), D("2.5"), "x"])
        self.assertEqual(self.show("u"), ["TABLE CREATE u FAMILY c ORDER utf8#-u32 COLUMN a#7 bool COLUMN b#1 f64"])
        self.refused("FAMILY ALTER u c COLUMN x i64", "BADKEY")
        self.refused("FAMILY ALTER u c COLUMN a#7 i64 COLUMN a#07 i64", "ERR column 'c:a#07' is named twice")
        self.refused("FAMILY ALTER u c NOCOLUMN a#8", "ERR column 'c:a#8' has no type of its own")

    def test_show_and_info_and_restart(self):
        shown = "TABLE CREATE t FAMILY c TYPE i64 COLUMN \"\" string COLUMN cust u64 COLUMN note bytes FAMILY m"
        self.assertEqual(self.show(), [shown])
        self.assertEqual(self.info("FAMILY INFO t c")["columns"], [b"", b"string", b"cust", b"u64", b"note", b"bytes"])
        self.assertEqual(self.info("FAMILY INFO t m")["columns"], [])
        self.write("CPUT t r c:cust 7")
        self.write("SNAPSHOT CREATE s TABLE 1 t")
        self.write("FAMILY ALTER t c NOCOLUMN note")
        digest = self.call("DEBUG DIGEST")
        for how in ("log", "snapshot"):
            if how == "snapshot":
                self.write("SAVE")
            self.server.kill()
            self.server.start()
            self.connect_wires()
            self.assertEqual(self.call("DEBUG DIGEST"), digest)
            self.assertEqual(self.show(), [shown.replace(" COLUMN note bytes", "")])
            self.assertEqual(self.show("t@s"), [shown])
        self.write("TABLE DROP t")
        self.write(shown)
        self.assertEqual(self.show(), [shown])
        self.write("COPY t copy", 1)
        self.assertEqual(self.show("copy"), [shown.replace("CREATE t ", "CREATE copy ")])

    def test_refusals(self):
        for line in ("FAMILY ADD t n NOCOLUMN x", "FAMILY ADD t n COLUMN x i64 KEEP", "FAMILY ADD t n COLUMN x",
                     "TABLE CREATE n FAMILY f NOCOLUMN x", "FAMILY ALTER t c KEEP", "FAMILY ALTER t c CONVERT VERSIONS 1",
                     "FAMILY ALTER t c COLUMN x i64 KEEP CONVERT", "FAMILY ALTER t c COLUMN x i64 KEEP KEEP"):
            self.refused(line, "ERR syntax error")
        self.refused("FAMILY ADD t n COLUMN x i65", "ERR unknown type 'i65'")
        self.refused("FAMILY ADD t n AGGREGATE sum COLUMN x i64", "ERR family 'n': AGGREGATE sum excludes COLUMN")
        self.write("FAMILY ADD t n AGGREGATE sum")
        self.refused("FAMILY ALTER t n COLUMN x i64", "ERR family 'n': AGGREGATE sum excludes COLUMN")
        many = " ".join(f"COLUMN q{i:03} u32" for i in range(256))
        self.write("FAMILY ADD t many " + many)
        self.refused("FAMILY ALTER t many COLUMN x i64", "TOOLARGE family 'many' would have 257 columns with types of their own")
        self.write("FAMILY ALTER t many NOCOLUMN q255 COLUMN x i64")
        for i in range(255):
            self.refused(f"CPUT t r many:q{i:03} -1", "BADVALUE")
        self.write("CPUT t r many:q255 -1 many:x -1")

    def test_limits_are_asked_first(self):
        for line in ("TABLE CREATE n FAMILY f", "FAMILY ADD t n", "FAMILY ALTER t c"):
            for columns, count in ((" COLUMN q{} i64", 100_000), (" COLUMN same i64", 513)):
                words = line + "".join(columns.format(i) for i in range(count))
                self.refused(words, f"TOOLARGE family '{line[-1]}': COLUMN and NOCOLUMN name {count} columns, the limit is 512")
        self.refused("TABLE SHOW n", "NOTABLE")
        # As many as there may be, and as many others in their place.
        self.write("FAMILY ALTER t m" + "".join(f" COLUMN a{i} i64" for i in range(256)))
        self.write("FAMILY ALTER t m" + "".join(f" NOCOLUMN a{i} COLUMN b{i} u8" for i in range(256)))
        self.assertEqual(self.info("FAMILY INFO t m")["columns"][:2], [b"b0", b"u8"])
        self.refused("FAMILY ALTER t m" + "".join(f" NOCOLUMN b{i} COLUMN b{i} u8" for i in range(256)), "ERR column 'm:b")
        # What they take in a table, whichever families they are of.
        long = "x" * 16_000
        self.write("FAMILY ADD t l" + "".join(f" COLUMN {i:03}{long} i64" for i in range(40)))
        too_many = "TOOLARGE the qualifiers of columns with types of their own would take"
        more = "".join(f" COLUMN {i:03}{long} i64" for i in range(40))
        self.refused("FAMILY ADD t k" + more, too_many)
        self.refused("FAMILY ALTER t c" + more, too_many)
        self.refused("TABLE CREATE n FAMILY f" + more + " FAMILY g" + more, too_many)
        self.write(f"FAMILY ALTER t l NOCOLUMN 007{long} COLUMN short i64 VERSIONS 1")

    def test_indexes_have_the_columns_type(self):
        self.write("INDEX CREATE t cust ON 1 c:cust INCLUDE 1 c:note")
        self.write("INDEX CREATE t other ON 2 c:other c:note")
        for i in (2, 10, 9):
            self.write(f"CPUT t r{i} c:cust {i} c:note n{i} c:other {i}")
        self.read("CSCAN t 0 INDEX cust COLUMNS 1 c:note", ["0", [[f"r{i}", M(("c:note", f"n{i}"))] for i in (2, 9, 10)]])
        self.assertEqual(self.info("INDEX INFO t cust")["left_out"], 0)
        self.assertIn("INDEX CREATE t cust ON 1 c:cust INCLUDE 1 c:note", self.show())
        self.assertIn("INDEX CREATE t other ON 2 c:other c:note", self.show())
        without = "which was created without AS"
        self.refused("FAMILY ALTER t c COLUMN cust i64 KEEP",
                     "ERR the type of column 'c:cust' is that of an ON column of index 'cust', " + without)
        self.refused("FAMILY ALTER t c NOCOLUMN cust CONVERT", "ERR the type of column 'c:cust' is that of an ON column")
        self.refused("FAMILY ALTER t c COLUMN other u8 KEEP", "ERR the type of column 'c:other' is that of an ON column of index 'other'")
        self.refused("FAMILY ALTER t c TYPE u8 KEEP", "ERR the TYPE of family 'c' is that of an ON column of index 'other'")
        self.write("INDEX DROP t other")
        self.write("FAMILY ALTER t c TYPE u8 KEEP")  # cust has its own
        self.write("FAMILY ALTER t c COLUMN fresh i16")

    def test_aggregates_go_by_the_columns_type(self):
        self.write("CPUT t a c:cust 5 m:x 7 m:y 8")
        self.read("CAGG t BY VALUE c:cust STEP 2 REDUCE COUNT *", [[[4], M(("count(*)", 3))]])
        self.refused("CAGG t BY VALUE c:note STEP 2 REDUCE COUNT *", "ERR STEP needs numbers, and column 'c:note' holds bytes")
        self.write("FAMILY ALTER t m COLUMN y bytes")
        # Text is a number where nobody says a type.
        self.read("CAGG t REDUCE SUM m", [[[], M(("sum(m)", 7))]])

    def test_feeds_tell_the_schema(self):
        self.write("FEED CREATE f ON 1 t")
        self.write("FAMILY ALTER t m COLUMN x u32")
        self.call("WAITAOF 1 0 60000")  # feeds tell what is on disk
        entries = self.call("XRANGE f - +")
        self.assertIn(b"FAMILY m COLUMN x u32", dict(zip(entries[-1][1][::2], entries[-1][1][1::2]))[b"commands"])

    def test_in_a_transaction(self):
        self.write("MULTI ATOMIC")
        for line in ("CPUT t r m:x 5", "FAMILY ALTER t m COLUMN x i64 CONVERT", "CPUT t r m:y z", "CINCRBY t r m:x 2",
                     "CPUT t r m:x no"):
            self.write(line, S("QUEUED"))
        self.assertEqual(self.call("EXEC").code, "EXECABORT")
        self.read("CEXISTS t r", 0)
        self.assertEqual(self.info("FAMILY INFO t m")["columns"], [])


class TypeChangeTest(WireTest):
    OPTIONS = {"save": "", "enable-debug-command": "local", "appendfsync": "everysec"}

    def setUp(self):
        super().setUp()
        self.write("FLUSHALL")
        for name in [name for name in self.call("SNAPSHOT LIST") or []]:
            self.call([b"SNAPSHOT", b"DROP", name])
        self.write("TABLE CREATE t FAMILY m FAMILY z GROUP g")

    def types(self, row="r", table="t"):
        """column -> [(timestamp, value, type)]"""
        return {name.decode(): [tuple(version) for version in versions] for name, versions in resp.as_map(
            self.call(f"CROW {table} {row} VERSIONS ALL WITHTYPE"))}

    def test_what_is_refused_and_what_is_kept(self):
        self.write("CPUT t a m:miles 7 TS 1 m:name Ann TS 2")
        found = "WRONGTYPE family 'm' has cells of type bytes (row 'a', column 'm:miles'): CONVERT rewrites them, KEEP leaves them"
        self.refused("FAMILY ALTER t m TYPE i64", found)
        self.refused("FAMILY ALTER t m COLUMN miles i64", found)
        self.write("FAMILY ALTER t m COLUMN miles bytes TYPE NONE")
        self.write("FAMILY ALTER t m COLUMN seats i64 NOCOLUMN miles")
        self.write("CPUT t b m:miles n/a m:name Bob")
        self.write("CPUT t c m:miles 1e3")
        stuck = "WRONGTYPE row 'b': column 'm:miles' holds 'n/a', no i64: 2 cells cannot be converted; CONVERT SKIP leaves those"
        self.refused("FAMILY ALTER t m COLUMN miles i64 CONVERT", stuck)
        self.assertEqual(self.types("a")["m:miles"], [(1, b"7", b"bytes")])
        self.write("FAMILY ALTER t m COLUMN miles i64 KEEP")
        self.assertEqual(self.types("a")["m:miles"], [(1, b"7", b"bytes")])
        self.refused("CPUT t a m:miles x", "BADVALUE")
        # What an earlier KEEP has left is found again.
        self.refused("FAMILY ALTER t m COLUMN miles i64", found)
        self.write("FAMILY ALTER t m COLUMN miles i64 CONVERT SKIP")
        self.assertEqual(self.types("a")["m:miles"], [(1, 7, b"i64")])
        self.assertEqual(self.types("b")["m:miles"][0][1:], (b"n/a", b"bytes"))
        self.write("CPUT t b m:miles 5")
        self.write("FAMILY ALTER t m VERSIONS 1")  # says no type: nothing is looked at
        self.write("CDEL t c m:miles", 1)
        self.write("FAMILY ALTER t m COLUMN miles i64")

    def test_every_version_keeps_its_timestamp_and_expiry(self):
        for at, value in ((5, "5"), (3, "-3"), (9, "900")):
            self.write(f"CPUT t r m:a {value} TS {at} TTL 1h m:b x TS {at} z:c {value} TS {at}")
        before = self.call("CROW t r VERSIONS ALL WITHTTL")
        self.write("FAMILY ALTER t m COLUMN a i32 CONVERT")
        self.assertEqual(self.types()["m:a"], [(9, 900, b"i32"), (5, 5, b"i32"), (3, -3, b"i32")])
        self.assertEqual(self.types()["m:b"][0], (9, b"x", b"bytes"))
        self.assertEqual(self.types()["z:c"][0], (9, b"900", b"bytes"))
        after = self.call("CROW t r VERSIONS ALL WITHTTL")
        self.assertLessEqual(abs(after[1][0][2] - before[1][0][2]), 60_000)
        self.write("FAMILY ALTER t m NOCOLUMN a CONVERT")
        self.assertEqual(self.types()["m:a"], [(9, b"900", b"bytes"), (5, b"5", b"bytes"), (3, b"-3", b"bytes")])

    def test_what_converts(self):
        """(type, value, new type, new value or None)"""
        uuid = "00112233-4455-6677-8899-aabbccddeeff"
        cases = [
            ("i64", "5", "u8", 5), ("i64", "256", "u8", None), ("i64", "-1", "u64", None), ("u64", str(2**64 - 1), "f64", None),
            ("u64", str(2**63), "f64", b"9.223372036854776e+18"), ("i64", str(2**53 + 1), "f64", None), ("i32", "16777217", "f32", None),
            ("f64", "3", "i8", 3), ("f64", "-0", "u8", 0), ("f64", "3.5", "i64", None), ("f64", "inf", "i64", None),
            ("f64", "0.1", "f32", None), ("f64", "0.5", "f32", b"0.5"), ("f64", "1e39", "f32", None), ("f64", "inf", "f32", b"inf"),
            ("f32", "0.1", "f64", b"0.10000000149011612"), ("bool", "true", "i8", 1), ("i64", "0", "bool", 0), ("i64", "2", "bool", None),
            ("f64", "1", "bool", 1), ("bool", "false", "f32", b"0"), ("uuid", uuid, "bytes", uuid.encode()),
            ("bytes", uuid, "uuid", uuid.encode()), ("uuid", uuid, "i64", None), ("i64", "1", "uuid", None),
            ("bytes", "1.5e3", "f64", b"1500"), ("bytes", " 1", "i64", None), ("bool", "true", "string", b"true"),
            ("f32", "1e10", "bytes", b"10000000000"), ("bytes", "true", "bool", 1), ("string", "007", "u16", 7),
        ]
        for number, (kind, value, new, wanted) in enumerate(cases):
            with self.subTest(kind=kind, value=value, new=new):
                self.write(f"CPUT t r m:q{number} \"{value}\" AS {kind}")
                line = f"FAMILY ALTER t m COLUMN q{number} {new} CONVERT"
                if wanted is None:
                    self.refused(line, f"WRONGTYPE row 'r': column 'm:q{number}' holds")
                else:
                    self.write(line)
                    self.assertEqual(self.call(f"CGET t r m:q{number}"), wanted)

    def test_type_none_makes_text(self):
        self.write("CPUT t r m:a 5 AS i64 TS 1 m:b s AS string TS 1 m:c true AS bool TS 1")
        self.write("FAMILY ALTER t m TYPE NONE")
        self.write("FAMILY ALTER t m TYPE NONE CONVERT")
        self.assertEqual(self.types(), {"m:a": [(1, b"5", b"bytes")], "m:b": [(1, b"s", b"string")],
                                        "m:c": [(1, b"true", b"bytes")]})

    def test_indexes_follow(self):
        self.write("INDEX CREATE t miles ON 1 m:miles AS i64 INCLUDE 1 m:note")
        self.write("INDEX CREATE t one ON 1 m:id AS i64 UNIQUE")
        for i in range(50):
            self.write(f"CPUT t r{i} m:miles {i} m:note {i} m:id {i}")
        index = {name.decode(): value for name, value in resp.as_map(self.call("INDEX INFO t miles"))}
        self.assertEqual((index["entries"], index["left_out"]), (0, 50))
        self.write("FAMILY ALTER t m COLUMN miles i64 COLUMN note u8 COLUMN id i64 CONVERT")
        index = {name.decode(): value for name, value in resp.as_map(self.call("INDEX INFO t miles"))}
        self.assertEqual((index["entries"], index["left_out"]), (50, 0))
        self.read("CSCAN t 0 INDEX miles EQ 1 7 COLUMNS 1 m:note", ["0", [["r7", M(("m:note", 7))]]])
        self.refused("CPUT t x m:id 7", "NOTUNIQUE")
        self.write("FAMILY ALTER t m NOCOLUMN id CONVERT")
        self.write("CPUT t x m:id 007")
        self.refused("FAMILY ALTER t m COLUMN id i64 CONVERT", "NOTUNIQUE")
        self.assertEqual(self.types("x")["m:id"][0][1:], (b"007", b"bytes"))
        self.write("CPUT t y m:id 4711")
        self.write("FAMILY ALTER t m COLUMN id i64 CONVERT SKIP")
        self.assertEqual(self.types("x")["m:id"][0][1:], (b"007", b"bytes"))
        self.assertEqual(self.types("y")["m:id"][0][1:], (4711, b"i64"))

    def test_what_an_index_holds_is_told_to_who_may_read_it(self):
        self.write("FAMILY ADD t secret TYPE i64")
        self.write("INDEX CREATE t one ON 2 m:id AS i64 secret:pin UNIQUE")
        self.write("CPUT t a m:id 7 AS i64 secret:pin 4711")
        self.write("CPUT t b m:id 007 secret:pin 4711")
        for rights, text in (("%RW~t:m", "another row has these values in index 'one'"),
                             ("%RW~t:m %R~t:secret", "row 'a' has '7', '4711' already in index 'one'")):
            self.write(f"ACL SETUSER u reset on >p {rights} +@all")
            self.connect_wires()
            for wire in self.wires.values():
                wire.call(b"AUTH", b"u", b"p")
            self.refused("FAMILY ALTER t m COLUMN id i64 CONVERT", "NOTUNIQUE " + text)
            self.connect_wires()
            self.assertEqual(self.types("b")["m:id"][0][1:], (b"007", b"bytes"))
            self.write("FAMILY ALTER t m NOCOLUMN id KEEP")
        self.write("ACL DELUSER u", 1)

    def test_events(self):
        """One of the schema, when it has changed; what is refused is none."""
        self.write("CONFIG SET notify-keyspace-events KEA")
        listener = resp.Client(self.server.port, 3)
        self.addCleanup(listener.close)
        listener.call(b"PSUBSCRIBE", b"__keyevent@0__:*")
        self.write("CPUT t r m:a 5 m:b n/a")
        self.refused("FAMILY ALTER t m COLUMN a i64", "WRONGTYPE")
        self.refused("FAMILY ALTER t m COLUMN b i64 CONVERT", "WRONGTYPE")
        self.write("FAMILY ALTER t m COLUMN a i64 CONVERT")
        self.write("FAMILY ALTER t m VERSIONS 3")
        self.write("CDEL t r", 2)
        told = []
        while told[-1:] != [b"cdel"]:
            message = listener.read()
            # A node that follows may hear of the table a moment after its client.
            if message[0] == b"pmessage" and message[2] != b"__keyevent@0__:table.create":
                told.append(message[2].removeprefix(b"__keyevent@0__:"))
        self.assertEqual(told, [b"cput", b"family.alter", b"family.alter", b"cdel"])
        self.write("CONFIG SET notify-keyspace-events \"\"")

    def test_a_conversion_with_a_change_of_retention(self):
        """The index that is built anew for that is whole before a row is rewritten."""
        self.write("INDEX CREATE t one ON 1 m:a AS i64 UNIQUE")
        self.fill(30_000)
        for begin, versions in (("", 3), ("MULTI", 4), ("MULTI ATOMIC", 5)):
            if begin:
                self.write(begin)
            self.write(f"FAMILY ALTER t m COLUMN a i64 VERSIONS {versions} CONVERT", S("QUEUED") if begin else OK)
            if begin:
                self.write("EXEC", [OK])
            self.assertEqual(self.wrong_cells("i64"), 0)
            self.assert_indexed(30_000)
            self.write("FAMILY ALTER t m NOCOLUMN a CONVERT")
            self.assert_indexed(0)
        self.write("MULTI ATOMIC")
        self.write("FAMILY ALTER t m COLUMN a i64 VERSIONS 6 CONVERT", S("QUEUED"))
        self.write("CPUT t r m:a text", S("QUEUED"))
        self.assertEqual(self.call("EXEC").code, "EXECABORT")
        self.assertEqual(self.wrong_cells("bytes"), 0)
        self.assert_indexed(0)

    def assert_indexed(self, entries):
        index = {}

        def is_ready():
            index.update((name.decode(), value) for name, value in resp.as_map(self.call("INDEX INFO t one")))
            return index["state"] == b"ready"

        wait_until(is_ready, lambda: index)
        self.assertEqual((index["entries"], index["left_out"]), (entries, 30_000 - entries))

    def test_feeds_tell_the_schema_alone_unless_they_tell_old(self):
        self.write("CPUT t r m:a 5 TS 1")
        self.write("FEED CREATE plain ON 1 t")
        self.write("FEED CREATE old ON 1 t OLD")
        self.call("WAITAOF 1 0 60000")  # feeds tell what is on disk
        begin = {name: self.call(f"XRANGE {name} - +") for name in ("plain", "old")}
        self.write("FAMILY ALTER t m COLUMN a i64 CONVERT")
        self.write("CPUT t r m:b 1 TS 1")
        self.call("WAITAOF 1 0 60000")
        told = {}
        for name in ("plain", "old"):
            entries = self.call(f"XRANGE {name} - +")[len(begin[name]):]
            told[name] = [dict(zip(fields[::2], fields[1::2])) for _, fields in entries]
        self.assertEqual([entry[b"op"] for entry in told["plain"]], [b"schema", b"put"])
        self.assertEqual([entry[b"op"] for entry in told["old"]], [b"schema", b"put", b"put"])
        put = told["old"][1]
        self.assertEqual([put[name] for name in (b"column", b"ts", b"type", b"value", b"oldtype", b"old")],
                         [b"m:a", b"1", b"i64", b"5", b"bytes", b"5"])

    def fill(self, rows, column="a"):
        wire = self.wires[2]
        for begin in range(0, rows, 500):
            wire.pipeline([[b"CPUT", b"t", b"r%07d" % i, b"m:" + column.encode(), b"%d" % i, b"m:s", b"x"]
                           for i in range(begin, min(begin + 500, rows))])

    def test_others_write_while_it_looks(self):
        """Whatever they put behind the look is looked at again; behind the change nothing else can be put."""
        self.fill(20_000)
        stop = threading.Event()
        refused, put = [], []

        def write(put_numbers):
            wire = resp.Client(self.server.port, 2)
            number = 0
            while not stop.is_set():
                number += 1
                key = b"r%07d" % (number * 7919 % 20_000)
                got = wire.call(b"CPUT", b"t", key, b"m:a", b"%d" % number if put_numbers else b"n%d" % number)
                (refused if isinstance(got, resp.Error) else put).append(key)
            wire.close()

        for put_numbers in (True, False):
            stop.clear()
            thread = threading.Thread(target=write, args=[put_numbers])
            thread.start()
            try:
                wait_until(lambda: len(put) > 100, "values are put", 0.001)
                got = self.call("FAMILY ALTER t m COLUMN a i64 CONVERT")
            finally:
                stop.set()
                thread.join()
            if put_numbers:
                self.assertEqual(got, OK)
                self.assertEqual(self.wrong_cells("i64"), 0)
                self.write("FAMILY ALTER t m NOCOLUMN a CONVERT")
                self.assertEqual(self.wrong_cells("bytes"), 0)
                put.clear()
            else:
                self.assertIn("cannot be converted", got.text)
                self.assertEqual(refused, [])
                self.assertEqual(self.wrong_cells("bytes"), 0)

    def wrong_cells(self, kind):
        cursor, wrong = "0", 0
        while True:
            cursor, rows = self.call(f"CSCAN t {cursor} COUNT 5000 COLUMNS 1 m:a VERSIONS ALL WITHTYPE")
            cursor = cursor.decode()
            for _, cells in rows:
                wrong += sum(version[2] != kind.encode() for _, versions in resp.as_map(cells) for version in versions)
            if cursor == "0":
                return wrong

    def test_a_client_that_leaves_and_a_process_that_ends(self):
        """What is done stays done, each cell of one type or the other; the rest goes on when it is said again."""
        self.fill(30_000)
        values = self.values()
        for way in ("leave", "kill"):
            wire = resp.Client(self.server.port, 2)
            wire.send(*[word.encode() for word in "FAMILY ALTER t m COLUMN a i64 CONVERT".split()])
            wait_until(lambda: self.types("r0000000")["m:a"][0][2] == b"i64", "it begins", 0.001)
            if way == "kill":
                self.server.kill()
                self.server.start()
                self.connect_wires()
            wire.close()
            self.assertEqual(self.values(), values)
            self.assertIn(b"COLUMN a i64", self.call("TABLE SHOW t")[0])
            self.write("FAMILY ALTER t m COLUMN a i64 CONVERT")
            self.assertEqual(self.wrong_cells("i64"), 0)
            self.assertEqual(self.values(), values)
            self.write("FAMILY ALTER t m NOCOLUMN a CONVERT")
        self.assertEqual(self.wrong_cells("bytes"), 0)

    def values(self):
        found, cursor = [], "0"
        while True:
            cursor, rows = self.call(f"CSCAN t {cursor} COUNT 10000 COLUMNS 1 m:a")
            found += [(row, str(cells[1]) if isinstance(cells[1], int) else cells[1].decode()) for row, cells in rows]
            cursor = cursor.decode()
            if cursor == "0":
                return found


class TypesOnAFollowerTest(ReplicaTest):
    def test_a_follower_has_the_types_and_what_was_converted(self):
        leader, follower = self.pair()
        follower.follow(leader)
        leader.run("TABLE CREATE u FAMILY m COLUMN n u32")
        with leader.redis.pipeline() as pipe:
            for i in range(3000):
                pipe.execute_command("CPUT", "u", f"r{i}", "m:a", i, "m:n", i)
            pipe.execute()
        leader.run("INDEX CREATE u a ON 1 m:a AS i64")
        leader.run("FAMILY ALTER u m COLUMN a i64 CONVERT")
        self.assert_copied(leader, follower)
        self.assertEqual(follower.run("TABLE SHOW u"), leader.run("TABLE SHOW u"))
        self.wait_until(lambda: dict(zip(*[iter(follower.run("INDEX INFO u a"))] * 2))["state"] == "ready", "the index")
        self.assertEqual(follower.run("CSCAN u 0 INDEX a EQ 1 77 COLUMNS 1 m:a"), ["0", [["r77", ["m:a", 77]]]])


if __name__ == "__main__":
    unittest.main()
