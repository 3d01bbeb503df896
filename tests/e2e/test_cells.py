"""The cell commands (cellar-commands(7), "CELL COMMANDS"): every command and option, with replies in both protocols."""

import unittest

from wire import B, D, M, N, OK, WireTest


class CellTest(WireTest):
    def setUp(self):
        super().setUp()
        self.write("TABLE CREATE t FAMILY f FAMILY g FAMILY n TYPE i64")


class PutAndGetTest(CellTest):
    def test_a_value_comes_back_as_it_went_in(self):
        self.write("CPUT t r f:a hello f:b world n:c 42")
        self.read("CGET t r f:a", "hello")
        self.read("CGET t r n:c", 42)
        self.read("CGET t r f:none", None)
        self.read("CGET t none f:a", None)
        self.read("CMGET t r f:b f:none n:c f:b", ["world", None, 42, "world"])
        self.read("CMGET t none f:a", [None])

    def test_every_type_has_its_reply(self):
        self.write('CPUT t r f:bytes "\\x00\\xff" f:string "h\\xc3\\xa9" AS string')
        self.write("CPUT t r f:true true AS bool f:false 0 AS bool f:byte 255 AS byte")
        self.write("CPUT t r f:i8 -128 AS i8 f:i16 -32768 AS i16 f:i32 -2147483648 AS i32")
        self.write("CPUT t r f:i64 -9223372036854775808 AS i64 f:u8 0 AS u8 f:u16 65535 AS u16")
        self.write("CPUT t r f:u32 4294967295 AS u32 f:u64 18446744073709551615 AS u64")
        self.write("CPUT t r f:small 9223372036854775807 AS u64 f:f32 0.1 AS f32 f:f64 0.1 AS f64")
        self.write("CPUT t r f:inf -inf AS f64 f:large 1.5e16 AS f64 f:zero -0.0 AS f64")
        self.write("CPUT t r f:uuid 0A5E9F40-0000-11EE-8000-00000000ABCD AS uuid")
        for protocol, bulk in ((2, b"\x00\xff"), (3, b"\x00\xff")):
            self.assertEqual(self.call("CGET t r f:bytes", protocol), bulk)
        self.read("CGET t r f:string", "hé")
        self.read("CGET t r f:true", B(True))
        self.read("CGET t r f:false", B(False))
        self.read("CGET t r f:byte", 255)
        self.read("CMGET t r f:i8 f:i16 f:i32", [-128, -32768, -2147483648])
        self.read("CMGET t r f:i64 f:u8 f:u16 f:u32", [-9223372036854775808, 0, 65535, 4294967295])
        self.read("CGET t r f:u64", N(18446744073709551615))
        self.read("CGET t r f:small", 9223372036854775807)
        self.read("CMGET t r f:f32 f:f64 f:inf", [D("0.1"), D("0.1"), D("-inf")])
        self.read("CMGET t r f:large f:zero", [D("1.5e+16"), D("-0")])
        self.read("CGET t r f:uuid", "0a5e9f40-0000-11ee-8000-00000000abcd")
        self.assertEqual(self.call("CROW t r COLUMNS 1 f:byte WITHTYPE")[1][0][2], b"u8")

    def test_timestamps_choose_the_version(self):
        self.write("CPUT t r f:a old TS 100 f:b x TS 0")
        self.write("CPUT t r f:a new TS 200")
        self.write("CPUT t r f:a oldest TS 50")
        self.read("CGET t r f:a", "new")
        self.read("CGET t r f:a WITHTS", [200, "new"])
        self.read("CGET t r f:a AT 199", "old")
        self.read("CGET t r f:a withts at 100", [100, "old"])
        self.read("CGET t r f:a AT 49", None)
        self.read("CGET t r f:b WITHTS", [0, "x"])
        self.write("CPUT t r f:a replaced TS 200")
        self.read("CROW t r COLUMNS 1 f:a VERSIONS ALL",
                  M(("f:a", [[200, "replaced"], [100, "old"], [50, "oldest"]])))

    def test_one_command_has_one_timestamp_and_the_next_a_larger_one(self):
        self.write("CPUT t r f:a 1 f:b 2")
        first = self.call("CGET t r f:a WITHTS")[0]
        self.assertEqual(self.call("CGET t r f:b WITHTS")[0], first)
        self.write("CPUT t r f:a 1")
        self.assertGreater(self.call("CGET t r f:a WITHTS")[0], first)

    def test_nx_xx_and_conditions(self):
        self.write("CPUT t r NX f:a 1 f:b 1")
        self.write("CPUT t r NX f:b 2 f:c 2", None)
        self.write("CPUT t r NX f:b 2 f:c 2", None, protocol=3)
        self.read("CEXISTS t r f:c", 0)
        self.write("CPUT t r XX f:a 2 f:b 2")
        self.write("CPUT t r xx f:a 3 f:c 3", None)
        self.read("CMGET t r f:a f:b f:c", ["2", "2", None])
        self.write("CPUT t r IF f:a EQ 2 IF f:c MISSING f:c 4")
        self.write("CPUT t r IF f:a EQ 2 if f:c MISSING f:c 5", None)
        self.write("CPUT t new IF ROW MISSING f:a 1")
        self.write("CPUT t new IF ROW MISSING f:a 2", None)
        self.write("CPUT t new IF row exists NX f:z 2")

    def test_every_predicate(self):
        self.write("CPUT t r f:a abc n:x 5 f:d 2.5 AS f64 f:u 7 AS u8 f:t true AS bool")
        for predicate, holds in (
                ("f:a EXISTS", True), ("f:zz EXISTS", False), ("f:zz MISSING", True),
                ("f:a MISSING", False), ("f:a EQ abc", True), ("f:a EQ abd", False),
                ("f:a NE abd", True), ("f:zz NE abd", True), ("f:zz EQ abd", False),
                ("f:zz LT abd", False), ("f:a LT abd", True), ("f:a GT abd", False),
                ("n:x EQ 5", True), ("n:x eq 5.0", True), ("n:x GT 4.5", True),
                ("n:x LE 5", True), ("n:x GE 5", True), ("n:x LT 5", False), ("n:x LT 10", True),
                ("n:x EQ five", False), ("n:x NE five", True), ("n:x LT five", False),
                ("f:u LT 300", True), ("f:u GT -1", True), ("f:d GT 2.4", True),
                ("f:d EQ 2.5", True), ("f:t EQ true", True), ("f:t EQ 1", True),
                ("f:a MATCH a*", True), ("f:a MATCH b*", False), ("f:zz MATCH *", False),
                ("n:x MATCH 5", True), ("ROW EXISTS", True), ("ROW MISSING", False),
                ('FILTER \'value = "abc"\'', True), ('FILTER \'value = "x"\'', False)):
            with self.subTest(predicate):
                self.read(f"CCOUNT t WHERE {predicate}", int(holds))
                self.write(f"CMUTATE t r IF {predicate} PUT f:yes 1 ELSE PUT f:no 1",
                           [int(holds), OK])

    def test_what_cput_refuses_leaves_nothing(self):
        self.write("CPUT t r f:a 1 TS 5")
        before = self.call("CROW t r VERSIONS ALL WITHTYPE")
        self.refused("CPUT t r f:a", "ERR wrong number of arguments for 'cput' command")
        self.syntax_error("CPUT t r f:a 1 f:b", "CPUT t r NX XX f:a 1", "CPUT t r NX f:a",
                          "CPUT t r NX NX f:a 1", "CPUT t r f:a 1 NX", "CPUT t r f 1",
                          "CPUT t r f:a 1 AS i64 AS i64", "CPUT t r f:a 1 TS 1 TS 1",
                          "CPUT t r f:a 1 TTL 1s TTL 1s", "CPUT t r f:a 1 EX 5",
                          "CPUT t r IF f:a f:a 1", "CPUT t r IF ROW EQ 1 f:a 1")
        self.refused("CPUT t r f:a 1 AS number", "ERR unknown type")
        self.refused("CPUT t r f:a 1 TS -1", "ERR timestamp")
        self.refused("CPUT t r f:a 1 TS soon", "ERR 'soon' is not a time")
        self.refused("CPUT t r f:a 1 TTL 0", "ERR")
        self.refused("CPUT t r f:a 1 TTL soon", "ERR")
        self.refused("CPUT none r f:a 1", "NOTABLE no table 'none' in keyspace '0'")
        self.refused("CPUT nowhere/t r f:a 1", "NOKEYSPACE")
        self.refused("CPUT t r f:a 1 x:b 2", "NOFAMILY")
        self.refused('CPUT t "" f:a 1', "BADKEY")
        self.refused("CPUT t r f:a 2 n:b x", "BADVALUE")
        self.refused("CPUT t r f:a 2 n:b 1 AS i32", "WRONGTYPE")
        self.refused("CPUT t r f:a 2 f:b 256 AS u8", "BADVALUE")
        self.refused("CPUT t r f:a 2 f:b nan AS f64", "BADVALUE")
        self.refused('CPUT t r f:a 2 f:b "\\xff" AS string', "BADVALUE")
        self.refused("CPUT t r IF FILTER bogus( f:a 2", "BADFILTER")
        self.refused("CPUT t r IF x:a EXISTS f:a 2", "NOFAMILY")
        self.refused(f"CPUT t {'r' * 65537} f:a 1", "TOOLARGE")
        self.refused(f"CPUT t r f:{'q' * 16385} 1", "TOOLARGE")
        self.assertEqual(self.call("CROW t r VERSIONS ALL WITHTYPE"), before)
        self.read("CCOUNT t", 1)

    def test_syntax_is_looked_at_before_the_table(self):
        self.syntax_error("CPUT none r f:a 1 f:b", "CROW none r BOGUS", "CSCAN none 0 COUNT",
                          "CDELRANGE none SOME", "CMUTATE none r NOP", "CCOUNT none BY HAND")
        self.refused("CSCAN none bogus", "ERR invalid cursor")
        self.refused("CGET none r f", "ERR 'f' is not a column")
        self.refused("CINCRBY none r f:a x", "ERR value is not an integer")
        self.refused("CGET none", "ERR wrong number of arguments")

    def test_a_table_of_another_keyspace(self):
        self.write("KEYSPACE CREATE fleet")
        self.addCleanup(self.call, "KEYSPACE DROP fleet")
        self.write("TABLE CREATE fleet/planes FAMILY f")
        self.write("CPUT fleet/planes r f:a 1")
        self.read("CGET fleet/planes r f:a", "1")
        self.refused("CGET planes r f:a", "NOTABLE")
        self.refused("CGET ghost/planes r f:a", "NOKEYSPACE")

    def test_record_numbers(self):
        self.write("TABLE CREATE log KEY recno FAMILY f")
        self.write("CPUT log * f:a 1", "1")
        self.write("CPUT log * f:a 2", "2", protocol=3)
        self.write("CPUT log 10 f:a 3")
        self.write("CPUT log * NX f:a 4", "11")
        self.write("CPUT log * IF ROW EXISTS f:a 5", None)
        self.write("CPUT log * f:a 6", "12")
        self.refused("CPUT log 0 f:a 1", "BADKEY")
        self.refused("CPUT log x f:a 1", "BADKEY")
        self.write("CINCRBY log 20 f:n 1", 1)
        self.write("CPUT log * f:a 7", "21")
        self.write("TABLE TRUNCATE log")
        self.write("CPUT log * f:a 8", "22")
        self.write("CPUT t * f:a 1")  # an ordinary key here
        self.read("CGET t * f:a", "1")

    def test_cget_refuses(self):
        self.refused("CGET t r", "ERR wrong number of arguments for 'cget' command")
        self.syntax_error("CGET t r f:a AT", "CGET t r f:a AT 1 AT 1", "CGET t r f:a WITHTS WITHTS",
                          "CGET t r f:a LATEST")
        self.refused("CGET t r f:a AT -1", "ERR timestamp")
        self.refused("CGET t r f:a AT x", "ERR 'x' is not a time")
        self.refused("CGET t r f", "ERR")
        self.refused("CGET none r f:a", "NOTABLE")
        self.refused("CGET t r x:a", "NOFAMILY")
        self.refused('CGET t "" f:a', "BADKEY")
        self.refused("CMGET t r f:a f", "ERR")
        self.refused("CMGET t r f:a x:b", "NOFAMILY")

    def test_cexists(self):
        self.write("CPUT t r f:a 1")
        self.read("CEXISTS t r", 1)
        self.read("CEXISTS t r f:a", 1)
        self.read("CEXISTS t r f:b", 0)
        self.read("CEXISTS t s", 0)
        self.read("CEXISTS t s f:a", 0)
        self.refused("CEXISTS t r f", "ERR")
        self.refused("CEXISTS t r f:a f:b", "ERR")
        self.refused("CEXISTS t r x:a", "NOFAMILY")

    def test_cnear(self):
        self.read("CNEAR t m", None)
        self.write("CPUT t b f:a 1")
        self.write("CPUT t d f:a 1")
        self.read("CNEAR t b", ["b", 0])
        self.read("CNEAR t c", ["d", 1])
        self.read("CNEAR t a", ["b", 1])
        self.read("CNEAR t z", ["d", -1])
        self.refused("CNEAR none b", "NOTABLE")
        self.refused('CNEAR t ""', "BADKEY")
        self.syntax_error("CNEAR t b c")


class RowTest(CellTest):
    def setUp(self):
        super().setUp()
        self.write("CPUT t r f:a 1 TS 10 f:b 2 TS 20 g:c 3 TS 30 n:d 4 TS 40")
        self.write("CPUT t r f:a 11 TS 110 f:b 12 TS 120")

    def test_a_row_is_a_map_with_families_by_name(self):
        self.read("CROW t r", M(("f:a", "11"), ("f:b", "12"), ("g:c", "3"), ("n:d", 4)))
        self.read("CROW t none", M())

    def test_a_choice_of_columns_is_a_union(self):
        self.read("CROW t r COLUMNS 2 f:b n", M(("f:b", "12"), ("n:d", 4)))
        self.read("CROW t r COLUMNS 2 f f:a COLUMNS 1 g:c",
                  M(("f:a", "11"), ("f:b", "12"), ("g:c", "3")))
        self.read("CROW t r COLPREFIX f a COLRANGE g [a +", M(("f:a", "11"), ("g:c", "3")))
        self.read("CROW t r COLRANGE f (a [b", M(("f:b", "12")))
        self.read("CROW t r COLRANGE f [b [a", M())
        self.read("CROW t r COLUMNS 1 f:zz", M())
        self.write("CPUT t r f: empty TS 1")
        self.read("CROW t r COLUMNS 1 f:", M(("f:", "empty")))

    def test_time_and_versions(self):
        self.read("CROW t r TIME 20 110", M(("f:a", "11"), ("f:b", "2"), ("g:c", "3"), ("n:d", 4)))
        self.read("CROW t r TIME (20 (110", M(("g:c", "3"), ("n:d", 4)))
        self.read("CROW t r TIME -inf 10", M(("f:a", "1")))
        self.read("CROW t r TIME 120 +inf", M(("f:b", "12")))
        self.read("CROW t r TIME 10 5", M())
        self.read("CROW t r VERSIONS 1 COLUMNS 1 f",
                  M(("f:a", [[110, "11"]]), ("f:b", [[120, "12"]])))
        self.read("CROW t r VERSIONS all COLUMNS 1 f:a", M(("f:a", [[110, "11"], [10, "1"]])))
        self.read("CROW t r VERSIONS 5 TIME -inf 100 COLUMNS 1 f:a", M(("f:a", [[10, "1"]])))

    def test_formats(self):
        self.read("CROW t r COLUMNS 1 n WITHTS", M(("n:d", [[40, 4]])))
        self.read("CROW t r COLUMNS 1 n WITHTYPE", M(("n:d", [[40, 4, "i64"]])))
        self.read("CROW t r COLUMNS 1 n WITHLABELS", M(("n:d", [[40, 4, []]])))
        self.read("CROW t r COLUMNS 1 n WITHLABELS WITHTYPE WITHTS FILTER 'label(\"x\")'",
                  M(("n:d", [[40, 4, "i64", ["x"]]])))

    def test_limits_count_columns(self):
        self.read("CROW t r PERROW 2", M(("f:a", "11"), ("f:b", "12")))
        self.read("CROW t r PERROW 2 SKIP 1", M(("f:b", "12"), ("g:c", "3")))
        self.read("CROW t r SKIP 3", M(("n:d", 4)))
        self.read("CROW t r SKIP 0 PERROW 1 VERSIONS ALL", M(("f:a", [[110, "11"], [10, "1"]])))
        self.read("CROW t r SKIP 9", M())
        self.read("CROW t r COLREVERSE", M(("n:d", 4), ("g:c", "3"), ("f:b", "12"), ("f:a", "11")))
        self.read("CROW t r COLREVERSE PERROW 1 SKIP 2 VERSIONS ALL",
                  M(("f:b", [[120, "12"], [20, "2"]])))

    def test_groups_of_super_columns(self):
        self.write("TABLE CREATE blog FAMILY c ORDER utf8:utf8 FAMILY d")
        self.write("CPUT blog post c:ann:name Ann c:ann:text hi c:bob:name Bob c:eve:text bye d:x 1")
        self.read("CROW blog post GROUPS 1", M(("c:ann:name", "Ann"), ("c:ann:text", "hi")))
        self.read("CROW blog post GROUPS 1 COLREVERSE COLUMNS 1 c", M(("c:eve:text", "bye")))
        self.read("CROW blog post GROUPS 2 PERROW 3 SKIP 1",
                  M(("c:ann:text", "hi"), ("c:bob:name", "Bob")))
        self.read("CROW blog post COLPREFIX c ann:", M(("c:ann:name", "Ann"), ("c:ann:text", "hi")))
        self.read("CCOUNT blog BY GROUPS", 4)
        self.read("CCOUNT blog BY COLUMNS", 5)

    def test_filters(self):
        self.read("CROW t r FILTER 'value = \"11\"'", M(("f:a", "11")))
        self.read("CROW t r FILTER 'value > 3'", M(("n:d", 4)))
        # All versions enter the filter; the newest that passed is shown.
        self.read("CROW t r FILTER 'value = \"1\"'", M(("f:a", "1")))
        self.read("CROW t r VERSIONS 1 FILTER 'value = \"1\"'", M())

    def test_refused(self):
        self.syntax_error("CROW t r BOGUS", "CROW t r COLUMNS", "CROW t r COLUMNS 2 f:a",
                          "CROW t r COLPREFIX f", "CROW t r COLRANGE f - ", "CROW t r TIME 1",
                          "CROW t r VERSIONS", "CROW t r WITHTS WITHTS", "CROW t r COUNT 5",
                          "CROW t r REVERSE", "CROW t r TIME 1 2 TIME 1 2",
                          "CROW t r VERSIONS 1 VERSIONS 1", "CROW t r PERROW 1 PERROW 1",
                          "CROW t r FILTER pass FILTER pass", "CROW t r PREFIX a")
        self.refused("CROW t r COLUMNS 0 f", "ERR")
        self.refused("CROW t r VERSIONS 0", "ERR")
        self.refused("CROW t r PERROW 0", "ERR")
        self.refused("CROW t r GROUPS 0", "ERR")
        self.refused("CROW t r SKIP -1", "ERR")
        self.refused("CROW t r TIME a b", "ERR min or max")
        self.refused("CROW t r COLRANGE f a b", "ERR min or max")
        self.refused("CROW none r", "NOTABLE")
        self.refused("CROW t r COLUMNS 1 x", "NOFAMILY")
        self.refused("CROW t r COLPREFIX x a", "NOFAMILY")
        self.refused("CROW t r FILTER 'value ='", "BADFILTER")
        self.refused("CROW t r FILTER 'family = \"x\"'", "NOFAMILY")
        self.refused("CROW t r COLUMNS 1 x FILTER 'value ='", "NOFAMILY")
        self.refused('CROW t "" COLUMNS 1 x', "BADKEY")


class ScanTest(CellTest):
    def setUp(self):
        super().setUp()
        for at in range(10):
            self.write(f"CPUT t row{at} f:a {at} n:b {at * at}")

    def rows(self, options, table="t", protocol=2):
        """All rows of a scan, over as many calls as it takes, with the number of calls."""
        found, cursor, calls = [], b"0", 0
        while True:
            reply = self.call(f"CSCAN {table} {cursor.decode()} {options}", protocol)
            self.assertIsInstance(reply, list, reply)
            found += reply[1]
            calls += 1
            cursor = reply[0]
            if cursor == b"0":
                return found, calls
            self.assertLess(calls, 1000)

    def keys(self, options, table="t"):
        return [key.decode() for key in self.rows(options + " KEYSONLY", table)[0]]

    def test_the_shape_of_a_scan(self):
        self.read("CSCAN t 0 PREFIX row3", ["0", [["row3", M(("f:a", "3"), ("n:b", 9))]]])
        self.read("CSCAN t 0 PREFIX row3 KEYSONLY", ["0", ["row3"]])
        self.read("CSCAN t 0 PREFIX nothing", ["0", []])
        self.read("CSCAN t 0 PREFIX row3 COLUMNS 1 n WITHTYPE TIME -inf +inf PERROW 1 VERSIONS 1 "
                  "FILTER 'strip | label(\"l\")' COLREVERSE WITHLABELS SKIP 1", ["0", []])

    def test_calls_end_with_the_last_row(self):
        for count in (1, 2, 3, 5, 10, 100):
            found, calls = self.rows(f"COUNT {count}")
            self.assertEqual([row[0].decode() for row in found], [f"row{i}" for i in range(10)])
            self.assertEqual(calls, -(-10 // count))

    def test_selectors_are_a_union_and_each_row_comes_once(self):
        self.assertEqual(self.keys("PREFIX row3 ROWS 3 row5 row3 none RANGE [row8 +"),
                         ["row3", "row5", "row8", "row9"])
        self.assertEqual(self.keys("RANGE (row2 (row5"), ["row3", "row4"])
        self.assertEqual(self.keys("RANGE - [row1"), ["row0", "row1"])
        self.assertEqual(self.keys("RANGE [row5 [row1"), [])
        self.assertEqual(self.keys('PREFIX ""'), [f"row{i}" for i in range(10)])
        self.assertEqual(self.keys("RANGE [row2 [row4 RANGE [row3 [row6 COUNT 2 REVERSE"),
                         ["row6", "row5", "row4", "row3", "row2"])

    def test_where_keeps_rows(self):
        self.assertEqual(self.keys("WHERE n:b GT 40 WHERE f:a NE 8"), ["row7", "row9"])
        self.assertEqual(self.keys("WHERE FILTER '{value = 4, value = 9}' COUNT 1"),
                         ["row2", "row3"])

    def test_a_row_without_cells_left_is_absent_and_uses_up_nothing(self):
        self.write("CPUT t row4 g:only here")
        self.assertEqual(self.keys("COLUMNS 1 g COUNT 1"), ["row4"])
        self.read("CSCAN t 0 COLUMNS 1 g COUNT 1", ["0", [["row4", M(("g:only", "here"))]]])

    def test_cells_splits_wide_rows(self):
        self.write("CPUT t wide f:a 1 f:b 2 f:c 3 f:d 4 f:e 5")
        self.assertEqual(self.call("CSCAN t 0 PREFIX wide CELLS 2")[1], [[b"wide", [
            b"f:a", b"1", b"f:b", b"2"]]])
        found, calls = self.rows("PREFIX wide CELLS 2")
        self.assertEqual(found, [[b"wide", [b"f:a", b"1", b"f:b", b"2"]],
                                 [b"wide", [b"f:c", b"3", b"f:d", b"4"]],
                                 [b"wide", [b"f:e", b"5"]]])
        self.assertEqual(calls, 3)
        found, calls = self.rows("PREFIX wide CELLS 5")
        self.assertEqual(calls, 1)
        found, _ = self.rows("PREFIX wide CELLS 1 SKIP 1 PERROW 3 COLREVERSE")
        self.assertEqual([row[1] for row in found], [[b"f:d", b"4"], [b"f:c", b"3"], [b"f:b", b"2"]])

    def test_cells_splits_the_versions_of_a_column(self):
        for ts in (1, 2, 3):
            self.write(f"CPUT t many f:a v{ts} TS {ts}")
        found, _ = self.rows("PREFIX many CELLS 2 VERSIONS ALL")
        self.assertEqual(found, [[b"many", [b"f:a", [[3, b"v3"], [2, b"v2"]]]],
                                 [b"many", [b"f:a", [[1, b"v1"]]]]])
        # Without arrays the other versions do not come up again as columns of their own.
        found, _ = self.rows("PREFIX many CELLS 1 FILTER pass")
        self.assertEqual(found, [[b"many", [b"f:a", b"v3"]]])

    def test_reverse(self):
        found, _ = self.rows("REVERSE COUNT 3")
        self.assertEqual([row[0] for row in found], [b"row%d" % i for i in range(9, -1, -1)])
        self.assertEqual(found[0][1], [b"f:a", b"9", b"n:b", 81])

    def test_sample(self):
        self.assertEqual(self.keys("SAMPLE 0"), [])
        self.assertEqual(self.keys("SAMPLE 1 COUNT 2"), [f"row{i}" for i in range(10)])
        some = self.keys("SAMPLE 0.5 COUNT 2")
        self.assertEqual(some, sorted(set(some)))
        self.refused("CSCAN t 0 SAMPLE 1.5", "ERR")
        self.refused("CSCAN t 0 SAMPLE x", "ERR")
        self.refused("CSCAN t 0 SAMPLE nan", "ERR")

    def test_stats(self):
        for protocol in (2, 3):
            reply = self.call("CSCAN t 0 STATS PREFIX row3", protocol)
            self.assertEqual(len(reply), 3)
            stats = dict(reply[2].pairs if protocol == 3 else zip(reply[2][::2], reply[2][1::2]))
            self.assertEqual(list(stats), [b"rows", b"cells", b"bytes", b"groups", b"micros"])
            self.assertEqual(stats[b"rows"], 1)
            self.assertEqual(stats[b"cells"], 2)
            self.assertEqual(stats[b"groups"], 1)
            self.assertGreater(stats[b"bytes"], 0)

    def test_a_cursor_survives_changes_and_never_skips_or_repeats(self):
        reply = self.call("CSCAN t 0 COUNT 3 KEYSONLY")
        self.write("CDEL t row3", 2)
        self.write("CPUT t row2x f:a new")
        self.write("CPUT t row0 f:a changed")
        rest = self.call(f"CSCAN t {reply[0].decode()} KEYSONLY")
        self.assertEqual(rest[1], [b"row4", b"row5", b"row6", b"row7", b"row8", b"row9"])

    def test_a_snapshot_cursor_sees_the_table_as_at_its_first_call(self):
        reply = self.call("CSCAN t 0 COUNT 3 SNAPSHOT")
        self.write("CDEL t row5", 2)
        self.write("CPUT t row6 f:a changed")
        self.write("CPUT t row99 f:a new")
        found, cursor = reply[1], reply[0]
        while cursor != b"0":
            reply = self.call(f"CSCAN t {cursor.decode()} COUNT 3 SNAPSHOT", 2)
            found += reply[1]
            last, cursor = cursor, reply[0]
        self.assertEqual([row[0] for row in found], [b"row%d" % i for i in range(10)])
        self.assertEqual(found[6][1][1], b"6")
        # The scan has ended, and its snapshot with it.
        self.refused(f"CSCAN t {last.decode()} COUNT 3 SNAPSHOT", "STALECURSOR")

    def test_what_is_no_cursor(self):
        cursor = self.call("CSCAN t 0 COUNT 3")[0].decode()
        self.write("TABLE CREATE numbers KEY i64 FAMILY f")
        for bad in ("1", "00", "-1", "A", cursor[:-1], cursor + "A", "B" + cursor[1:], '""'):
            self.refused(f"CSCAN t {bad}", "ERR invalid cursor")
        self.refused(f"CSCAN t {cursor} REVERSE", "ERR invalid cursor")
        self.refused(f"CSCAN numbers {cursor}", "ERR invalid cursor")

    def test_counts(self):
        self.read("CCOUNT t", 10)
        self.read("CCOUNT t BY ROWS", 10)
        self.read("CCOUNT t BY COLUMNS", 20)
        self.read("CCOUNT t BY GROUPS", 20)
        self.write("CPUT t row1 f:a again")
        self.read("CCOUNT t BY CELLS", 20)
        self.read("CCOUNT t BY CELLS VERSIONS ALL", 21)
        self.read("CCOUNT t WHERE n:b GE 25 COLUMNS 1 f", 5)
        for words in ("COUNT 1", "CELLS 1", "KEYSONLY", "STATS", "SNAPSHOT", "WITHTS", "WITHTYPE", "WITHTTL", "WITHLABELS",
                      "STATE"):
            self.refused(f"CCOUNT t {words}", f"ERR syntax error: '{words.split()[0]}' has no effect in CCOUNT")
        self.refused("CCOUNT t REVERSE", "ERR syntax error: REVERSE has no effect in CCOUNT without EACH or FROM")
        self.read("CCOUNT t REVERSE EACH 1 1", 10)
        self.read("CCOUNT t PREFIX row1 ROWS 1 row2 BY CELLS", 4)
        self.read("CCOUNT t PERROW 1 BY COLUMNS", 10)
        self.read("CCOUNT t FILTER 'value = 81'", 1)

    def test_refused(self):
        self.syntax_error("CSCAN t 0 BOGUS", "CSCAN t 0 PREFIX", "CSCAN t 0 ROWS 2 a",
                          "CSCAN t 0 WHERE f:a", "CSCAN t 0 COUNT 1 COUNT 1", "CSCAN t 0 BY ROWS",
                          "CSCAN t 0 REVERSE REVERSE", "CSCAN t 0 EQ 1 a", "CSCAN t 0 FROM 1 a",
                          "CSCAN t 0 BETWEEN - +", "CSCAN t 0 INDEX i PREFIX a",
                          "CSCAN t 0 INDEX i FROM 1 a EQ 1 a", "CCOUNT t BY", "CCOUNT t BY BYTES",
                          "CCOUNT t BY ROWS BY ROWS")
        self.refused("CSCAN t", "ERR wrong number of arguments for 'cscan' command")
        for option in ("COUNT 0", "CELLS 0", "COUNT -1", "COUNT x", "ROWS 0 a", "RANGE a b"):
            self.refused(f"CSCAN t 0 {option}", "ERR")
        self.refused("CSCAN none 0", "NOTABLE")
        self.refused("CSCAN t 0 COLUMNS 1 x", "NOFAMILY")
        self.refused("CSCAN t 0 WHERE x:a EXISTS", "NOFAMILY")
        self.refused("CSCAN t 0 WHERE FILTER x", "BADFILTER")
        self.refused("CSCAN t 0 INDEX none", "NOINDEX")
        self.refused('CSCAN t 0 ROWS 1 ""', "BADKEY")
        self.refused("CCOUNT none", "NOTABLE")


class OrderTest(WireTest):
    def test_typed_row_keys_come_in_their_order(self):
        self.write("TABLE CREATE n KEY i64 FAMILY f")
        for key in ("10", "-5", "9", "007"):
            self.write(f"CPUT n {key} f:a 1")
        self.read("CSCAN n 0 KEYSONLY", ["0", ["-5", "7", "9", "10"]])
        self.read("CSCAN n 0 KEYSONLY RANGE (-5 [9", ["0", ["7", "9"]])
        self.read("CNEAR n 8", ["9", 1])
        self.refused("CPUT n x f:a 1", "BADKEY")
        self.refused("CGET n 1.5 f:a", "BADKEY")

    def test_composite_keys_newest_first(self):
        self.write("TABLE CREATE bus KEY utf8#utf8#-u64 FAMILY f")
        for key in ("mta#7#100", "mta#7#300", "mta#7#200", "mta#71#1", "ny#1#1"):
            self.write(f"CPUT bus {key} f:a 1")
        self.read("CSCAN bus 0 KEYSONLY PREFIX mta#7#",
                  ["0", ["mta#7#300", "mta#7#200", "mta#7#100"]])
        self.read("CSCAN bus 0 KEYSONLY PREFIX mta#7",
                  ["0", ["mta#7#300", "mta#7#200", "mta#7#100", "mta#71#1"]])
        self.read("CSCAN bus 0 KEYSONLY RANGE [mta#7#250 [mta#7#100",
                  ["0", ["mta#7#200", "mta#7#100"]])
        self.read("CCOUNT bus RANGE [mta [mta", 4)

    def test_typed_qualifiers(self):
        self.write("TABLE CREATE s FAMILY f ORDER -u64")
        self.write("CPUT s r f:1 a f:20 b f:3 c")
        self.read("CROW s r", M(("f:20", "b"), ("f:3", "c"), ("f:1", "a")))
        self.read("CROW s r COLRANGE f [9 [1", M(("f:3", "c"), ("f:1", "a")))
        self.read("CGET s r f:003", "c")
        self.refused("CPUT s r f:x 1", "BADKEY")


class DeleteTest(CellTest):
    def setUp(self):
        super().setUp()
        self.write("CPUT t r f:a 1 TS 10 f:b 2 TS 20 g:c 3 TS 30")
        self.write("CPUT t r f:a 4 TS 40")

    def test_a_row(self):
        self.write("CDEL t r", 4)
        self.write("CDEL t r", 0)
        self.read("CROW t r", M())
        self.read("CCOUNT t", 0)

    def test_columns_families_prefixes_and_ranges(self):
        self.write("CDEL t r f:a", 2)
        self.write("CDEL t r g f:zz", 1)
        self.write("CPUT t r f:x1 1 f:x2 2 f:y 3")
        self.write("CDEL t r COLPREFIX f x", 2)
        self.write("CDEL t r COLRANGE f (b +", 1)
        self.read("CROW t r", M(("f:b", "2")))
        self.write("CDEL t r f f:b f", 1)

    def test_versions(self):
        self.write("CDEL t r f:a TIME 40 40", 1)
        self.read("CGET t r f:a", "1")
        self.write("CDEL t r TIME -inf (20", 1)
        self.read("CROW t r", M(("f:b", "2"), ("g:c", "3")))
        self.write("CDEL t r f time 5 1", 0)

    def test_conditions(self):
        self.write("CDEL t r IF f:a EQ 1 f:a", None)
        self.write("CDEL t r IF f:a EQ 1 f:a", None, protocol=3)
        self.write("CDEL t r IF f:a EQ 4 IF g:c EXISTS f:a", 2)

    def test_the_word_time_may_be_a_family(self):
        self.write("TABLE CREATE u FAMILY TIME FAMILY a")
        self.write("CPUT u r TIME:x 1 a:y 2")
        self.write("CDEL u r TIME", 1)
        self.write("CDEL u r a TIME 0 +inf", 1)
        self.refused("CDEL u r TIME a b", "ERR min or max")

    def test_who_forgets_a_bound_of_time_is_told_of_it(self):
        hint = "NOFAMILY no family '%s' in table '%s' -- the option TIME takes min and max, at the end"
        self.refused("CDEL t r f:a TIME 1", hint % ("TIME", "t"))
        self.refused("CDEL t r f time", hint % ("time", "t"))
        self.refused("CDEL t r TIME 1 2 f:a", hint % ("TIME", "t"))
        self.refused("CDEL none r f:a TIME 1", "NOTABLE")
        self.write("TABLE CREATE u FAMILY TIME")
        self.refused("CDEL u r TIME 1", "NOFAMILY no family '1' in table 'u'")

    def test_an_older_write_after_a_delete_is_visible(self):
        self.write("CDEL t r", 4)
        self.write("CPUT t r f:a back TS 1")
        self.read("CGET t r f:a WITHTS", [1, "back"])

    def test_refused(self):
        self.refused("CDEL t", "ERR wrong number of arguments")
        self.syntax_error("CDEL t r COLPREFIX f", "CDEL t r COLRANGE f -", "CDEL t r IF f:a",
                          "CDEL t r IF")
        self.refused("CDEL none r", "NOTABLE")
        self.refused("CDEL t r x", "NOFAMILY")
        self.refused("CDEL t r f x:a", "NOFAMILY")
        self.refused('CDEL t ""', "BADKEY")
        self.read("CCOUNT t BY CELLS VERSIONS ALL", 4)

    def test_ranges_of_rows(self):
        for row in ("a1", "a2", "b1", "b2", "c1"):
            self.write(f"CPUT t {row} f:x 1 g:y 2")
        self.write("CDELRANGE t PREFIX a", 2)
        self.write("CDELRANGE t RANGE (b1 (c1", 1)
        self.write("CDELRANGE t RANGE [z [a", 0)
        self.read("CSCAN t 0 KEYSONLY", ["0", ["b1", "c1", "r"]])
        self.write("CDELRANGE t all", 3)
        self.write("CDELRANGE t ALL", 0)
        self.read("TABLE LIST", ["t"])
        self.syntax_error("CDELRANGE t PREFIX", "CDELRANGE t PREFIX a PREFIX b", "CDELRANGE t ALL x",
                          "CDELRANGE t RANGE -", "CDELRANGE t EVERYTHING")
        self.refused("CDELRANGE t RANGE a b", "ERR min or max")
        self.refused("CDELRANGE t", "ERR wrong number of arguments")
        self.refused("CDELRANGE none ALL", "NOTABLE")


class ChangeInPlaceTest(CellTest):
    def test_cincrby(self):
        self.write("CINCRBY t r n:x 5", 5)
        self.write("CINCRBY t r n:x -7", -2, protocol=3)
        self.write("CINCRBY t r f:x 3", 3)
        self.assertEqual(self.call("CROW t r COLUMNS 1 f:x WITHTYPE")[1][0][2], b"i64")
        self.write("CPUT t r f:text 41")
        self.write("CINCRBY t r f:text 1", 42)
        self.write("CPUT t r f:u 250 AS u8")
        self.write("CINCRBY t r f:u 5", 255)
        self.refused("CINCRBY t r f:u 1", "ERR")
        self.write("CPUT t r f:big 18446744073709551614 AS u64")
        self.write("CINCRBY t r f:big 1", "18446744073709551615")
        self.write("CINCRBY t r f:big -18", N(18446744073709551597), protocol=3)
        self.write("CINCRBY t r n:new -9223372036854775808", -9223372036854775808)
        self.refused("CINCRBY t r n:new -1", "ERR")
        self.write("CPUT t r f:word abc f:float 1.5 AS f64 f:bool 1 AS bool")
        for column in ("f:word", "f:float", "f:bool"):
            self.refused(f"CINCRBY t r {column} 1", "WRONGTYPE")
        for delta in ("x", "1.5", '""', "18446744073709551616", "-9223372036854775809"):
            self.refused(f"CINCRBY t r n:x {delta}", "ERR value is not an integer")
        self.refused("CINCRBY t r n 1", "ERR")
        self.refused("CINCRBY t r n:x", "ERR wrong number of arguments")
        self.refused("CINCRBY none r n:x 1", "NOTABLE")
        self.refused("CINCRBY t r x:x 1", "NOFAMILY")
        self.read("CGET t r n:x", -2)

    def test_a_new_version_is_newer_than_all(self):
        self.write("CPUT t r n:x 1 TS 9000000000000000000")
        self.write("CINCRBY t r n:x 1", 2)
        self.read("CGET t r n:x WITHTS", [9000000000000000001, 2])
        self.write("CPUT t r n:max 1 TS 9223372036854775807")
        self.refused("CINCRBY t r n:max 1", "ERR")
        self.refused("CAPPEND t r n:max 1", "WRONGTYPE")

    def test_cincrbyfloat(self):
        self.write("CINCRBYFLOAT t r f:x 1.5", "1.5")
        self.write("CINCRBYFLOAT t r f:x 1.5", D("3"), protocol=3)
        self.write("CPUT t r f:text 2.25 f:f 0.5 AS f32")
        self.write("CINCRBYFLOAT t r f:text -0.25", "2")
        self.write("CINCRBYFLOAT t r f:f 0.1", D("0.6"), protocol=3)
        self.refused("CINCRBYFLOAT t r n:x 1", "WRONGTYPE")
        self.write("CPUT t r f:max 1.7e308 AS f64")
        self.refused("CINCRBYFLOAT t r f:max 1.7e308", "ERR")
        for delta in ("x", "nan", "inf", '""'):
            self.refused(f"CINCRBYFLOAT t r f:x {delta}", "ERR value is not a valid float")

    def test_cappend(self):
        self.write("CAPPEND t r f:x abc", 3)
        self.write("CAPPEND t r f:x de", 5)
        self.read("CGET t r f:x", "abcde")
        self.write('CAPPEND t r f:x ""', 5)
        self.write("CPUT t r f:s x AS string")
        self.write('CAPPEND t r f:s "\\xc3\\xa9"', 3)
        self.refused('CAPPEND t r f:s "\\xff"', "BADVALUE")
        self.refused("CAPPEND t r n:x a", "WRONGTYPE")
        self.assertEqual(self.call("CROW t r COLUMNS 1 f:s WITHTYPE")[1][0][2], b"string")

    def test_cmutate_does_all_in_order(self):
        self.write("CMUTATE t r PUT f:a 1 INCR n:c 5 APPEND f:a 2 INCR n:c 1 PUT f:t x AS string TS 7",
                   [1, OK, 5, 2, 6, OK])
        self.read("CMGET t r f:a n:c", ["12", 6])
        self.read("CCOUNT t BY CELLS VERSIONS ALL COLUMNS 1 n", 1)  # one new version
        self.write("CMUTATE t r DEL f:a DEL g DEL COLPREFIX f t DEL COLRANGE n [a [b PUT g:z 1",
                   [1, 2, 0, 1, 0, OK])
        self.write("CMUTATE t r DELROW PUT f:new 1", [1, 2, OK], protocol=3)
        self.read("CROW t r", M(("f:new", "1")))
        self.write("CMUTATE t r PUT f:v 1 TS 1 PUT f:v 2 TS 2 PUT f:v 3 TS 3", [1, OK, OK, OK])
        self.write("CMUTATE t r DEL f:v TIME 2 +inf", [1, 2])
        self.read("CGET t r f:v WITHTS", [1, "1"])
        self.write("CMUTATE t r INCR f:d 1.5 INCR f:d 1", [1, D("1.5"), D("2.5")], protocol=3)

    def test_cmutate_branches(self):
        self.write("CPUT t r f:a 1")
        self.write("CMUTATE t r IF f:a EQ 1 PUT f:b yes ELSE PUT f:b no", [1, OK])
        self.write("CMUTATE t r IF f:a EQ 2 PUT f:b yes ELSE PUT f:b no INCR n:x 1", [0, OK, 1])
        self.write("CMUTATE t r IF f:a EQ 2 PUT f:b yes", [0])
        self.write("CMUTATE t r IF f:a EQ 1 ELSE PUT f:b no", [1])
        self.write("CMUTATE t r IF f:a EQ 1 IF f:b EQ no DELROW ELSE", [1, 4])

    def test_cmutate_refuses_all_or_nothing(self):
        self.write("CPUT t r f:a abc n:x 1")
        before = self.call("CROW t r VERSIONS ALL")
        self.syntax_error("CMUTATE t r PUT f:a", "CMUTATE t r NOP f:a", "CMUTATE t r PUT f:a 1 f:b 2",
                          "CMUTATE t r IF f:a EXISTS", "CMUTATE t r IF f:a EXISTS ELSE",
                          "CMUTATE t r DELROW ELSE DELROW", "CMUTATE t r DEL",
                          "CMUTATE t r DEL f TIME 1", "CMUTATE t r INCR n:x",
                          "CMUTATE t r PUT f:a 1 TS 1 TS 2",
                          "CMUTATE t r IF ROW EXISTS DELROW ELSE DELROW ELSE DELROW")
        self.refused("CMUTATE t r", "ERR wrong number of arguments")
        self.refused("CMUTATE none r DELROW", "NOTABLE")
        self.refused("CMUTATE t r PUT f:a 1 PUT x:a 1", "NOFAMILY")
        self.refused("CMUTATE t r PUT f:a 1 INCR f:a x", "ERR")
        self.refused("CMUTATE t r PUT g:z 1 INCR f:a 1", "WRONGTYPE")
        self.refused("CMUTATE t r INCR n:x 1 INCR n:x 9223372036854775807", "ERR")
        self.refused("CMUTATE t r IF ROW MISSING PUT f:a 1 ELSE PUT n:x abc", "BADVALUE")
        self.refused("CMUTATE t r IF ROW EXISTS PUT f:a 1 ELSE PUT x:x abc", "NOFAMILY")
        self.assertEqual(self.call("CROW t r VERSIONS ALL"), before)


class LongReadTest(WireTest):
    """Reads that examine so much that they go on as tasks; their replies must be the same."""

    ROWS = 3000

    def setUp(self):
        super().setUp()
        self.write("TABLE CREATE big FAMILY f")
        wire = self.wires[2]
        wire.pipeline([(b"CPUT", b"big", b"%05d" % row) + tuple(
            word for at in range(10) for word in (b"f:c%d" % at, b"%d" % (row * at)))
            for row in range(self.ROWS)])

    def test_a_count_of_everything(self):
        self.read("CCOUNT big BY CELLS", self.ROWS * 10)
        self.read("CCOUNT big WHERE f:c1 EQ none", 0)

    def test_a_scan_that_takes_many_slices(self):
        for protocol in (2, 3):
            reply = self.call(f"CSCAN big 0 COUNT {self.ROWS + 1}", protocol)
            self.assertEqual(reply[0], b"0")
            self.assertEqual([row[0] for row in reply[1]], [b"%05d" % i for i in range(self.ROWS)])
            pairs = reply[1][7][1].pairs if protocol == 3 else reply[1][7][1]
            self.assertIn(b"63", str(pairs).encode())
        reply = self.call("CSCAN big 0 WHERE f:c9 EQ 26991 STATS")
        self.assertEqual([row[0] for row in reply[1]], [b"02999"])
        self.assertEqual(reply[0], b"0")
        self.assertEqual(len(reply), 3)

    def test_a_limit_reached_in_a_later_slice(self):
        reply = self.call("CSCAN big 0 COUNT 2000 KEYSONLY")
        self.assertEqual(len(reply[1]), 2000)
        rest = self.call(f"CSCAN big {reply[0].decode()} COUNT 2000 KEYSONLY")
        self.assertEqual(rest[0], b"0")
        self.assertEqual(reply[1] + rest[1], [b"%05d" % i for i in range(self.ROWS)])
        reply = self.call("CSCAN big 0 COUNT 5000 CELLS 15005")
        rest = self.call(f"CSCAN big {reply[0].decode()} COUNT 5000 CELLS 15005")
        self.assertEqual(reply[1][-1][0], rest[1][0][0])
        self.assertEqual(len(reply[1]) + len(rest[1]), self.ROWS + 1)

    def test_a_wide_row(self):
        words = [b"CPUT", b"big", b"wide"]
        for at in range(50_000):
            words += [b"f:q%06d" % at, b"v%d" % at]
        self.assertEqual(self.call(words), OK)
        for protocol in (2, 3):
            reply = self.call("CROW big wide", protocol)
            pairs = reply.pairs if protocol == 3 else list(zip(reply[::2], reply[1::2]))
            self.assertEqual(len(pairs), 50_000)
            self.assertEqual(pairs[49_999], (b"f:q049999", b"v49999"))
            reply = self.call("CROW big wide VERSIONS ALL", protocol)
            pairs = reply.pairs if protocol == 3 else list(zip(reply[::2], reply[1::2]))
            self.assertEqual(len(pairs), 50_000)
            self.assertEqual(pairs[77][1][0][1], b"v77")
        reply = self.call("CSCAN big 0 PREFIX wide")
        self.assertEqual(len(reply[1][0][1]), 100_000)
        self.write("CDEL big wide", 50_000)

    def test_large_values(self):
        value = b"x" * 300_000
        for at in range(8):
            self.assertEqual(self.call([b"CPUT", b"big", b"large", b"f:%d" % at, value]), OK)
        reply = self.call("CROW big large")
        self.assertEqual(reply[1::2], [value] * 8)

    def test_a_read_in_slices_sees_one_moment(self):
        other = self.wires[3]
        wire = self.wires[2]
        for _ in range(5):
            wire.send(b"CCOUNT", b"big", b"BY", b"CELLS")
            other.pipeline([(b"CPUT", b"big", b"%05dx" % at, b"f:new", b"1") for at in range(100)])
            found = wire.read()
            self.assertEqual(found % 100, 0, found)
            self.assertEqual(other.call(b"CDELRANGE", b"big", b"RANGE", b"-", b"+") > 0, True)
            wire.pipeline([(b"CPUT", b"big", b"%05d" % row) + tuple(
                word for at in range(10) for word in (b"f:c%d" % at, b"1"))
                for row in range(1000)])

    def test_a_long_delete(self):
        self.write("CDELRANGE big RANGE [00010 (02000", 1990)
        self.read("CCOUNT big", self.ROWS - 1990)
        self.write("CDELRANGE big ALL", self.ROWS - 1990)
        self.read("CSCAN big 0", ["0", []])

    def test_inside_exec(self):
        self.write("MULTI")
        for line in ("CCOUNT big BY CELLS", "CSCAN big 0 COUNT 3000 KEYSONLY", "CDELRANGE big ALL"):
            self.assertEqual(self.call(line), b"QUEUED")
        replies = self.call("EXEC")
        self.assertEqual(replies[0], self.ROWS * 10)
        self.assertEqual(len(replies[1][1]), self.ROWS)
        self.assertEqual(replies[2], self.ROWS)


class RetentionTest(WireTest):
    OPTIONS = {"enable-debug-command": "yes"}

    def setUp(self):
        super().setUp()
        self.write("DEBUG SET-TIME 1000000000")
        self.addCleanup(self.call, "DEBUG SET-TIME NOW")
        self.write("TABLE CREATE t FAMILY f FAMILY v VERSIONS 2 FAMILY a TTL 10s")

    def test_a_cell_with_a_lifetime(self):
        self.write("CPUT t r f:a 1 TTL 5s f:b 2 TTL 250ms f:c 3")
        self.read("CROW t r", M(("f:a", "1"), ("f:b", "2"), ("f:c", "3")))
        self.write("DEBUG SET-TIME 1000250000")
        self.read("CROW t r", M(("f:a", "1"), ("f:c", "3")))
        self.write("DEBUG SET-TIME 1004999999")
        self.read("CGET t r f:a", "1")
        self.write("DEBUG SET-TIME 1005000000")
        self.read("CGET t r f:a", None)
        self.read("CEXISTS t r f:a", 0)
        self.read("CCOUNT t BY CELLS", 1)
        self.write("CPUT t r NX f:a again")

    def test_versions_and_ages(self):
        for ts in (1, 2, 3):
            self.write(f"CPUT t r v:x {ts} TS {ts}")
        self.read("CROW t r VERSIONS ALL", M(("v:x", [[3, "3"], [2, "2"]])))
        self.write("CPUT t r a:x now TS 1000000000 a:y old TS 991000000 a:z gone TS 990000000 a:0 ageless TS 0")
        self.read("CROW t r COLUMNS 1 a", M(("a:0", "ageless"), ("a:x", "now"), ("a:y", "old")))
        self.write("DEBUG SET-TIME 1010000000")
        self.read("CROW t r COLUMNS 1 a", M(("a:0", "ageless")))
        # The memory goes with the cells that nobody sees any more, whenever the sweeper comes.
        *told, _, memory = self.call("TABLE INFO t")
        self.assertEqual([b"key", b"bytes", b"families", [b"a", b"f", b"v"], b"groups", [b"default"],
                          b"indexes", [], b"rows", 1, b"cells", 3], told)
        self.assertGreater(memory, 0)


if __name__ == "__main__":
    unittest.main()
