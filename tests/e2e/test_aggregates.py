"""CAGG: the contract's examples, what is refused, limits, threads, one moment. tests/model folds it at random."""

import collections
import datetime
import os
import random
import sys
import threading
import unittest
import zoneinfo

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from model import aggregates, zones  # noqa: E402
from wire import D, M, N, OK, WireTest, resp


class GroupsTest(WireTest):
    """Terms, targets, functions by hand."""

    def setUp(self):
        super().setUp()
        self.write("TABLE CREATE m KEY utf8#-u64 FAMILY v TYPE f64", OK)
        for at, value in ((0, 19), (60, 19.5), (3600, 20), (7200, 20), (7260, 21), (10799, 20.5)):
            self.write("CPUT m d1#%d v:t %s" % (at, value), OK)
        self.write("CPUT m d2#5 v:t 1", OK)
        self.write("TABLE CREATE cities FAMILY geo FAMILY stat", OK)
        for name, country, people in (("a", "de", 5), ("b", "fr", 7), ("c", "de", 8), ("d", "it", 1)):
            self.write("CPUT cities %s geo:country %s stat:pop %d" % (name, country, people), OK)
        self.write("CPUT cities e stat:pop some", OK)

    def test_series_by_the_hour(self):
        self.read("CAGG m PREFIX d1# BY KEY 1 BY PART 2 STEP 3600 REDUCE COUNT v:t AS n REDUCE AVG v:t AS avg LIMIT 0 2",
                  [[["d1", 7200], M(("n", 3), ("avg", D("20.5")))],
                   [["d1", 3600], M(("n", 1), ("avg", D("20")))]])

    def test_components_have_names(self):
        self.write("TABLE CREATE pop KEY country=utf8#-year=u16 FAMILY n TYPE i64", OK)
        for year in range(1995, 2005):
            self.write("CPUT pop de#%d n:all %d" % (year, year - 1990), OK)
        self.read("CAGG pop BY PART country BY PART year STEP 10 REDUCE SUM n AS n",
                  [[["de", 2000], M(("n", 60))], [["de", 1990], M(("n", 35))]])
        self.read("CAGG pop BY PART 1 REDUCE COUNT n AS n", [[["de"], M(("n", 10))]])
        self.refused("CAGG pop BY PART town REDUCE COUNT n", "ERR no component 'town' in KEY 'country=utf8#-year=u16'")
        self.read("TABLE SHOW pop", ["TABLE CREATE pop KEY country=utf8#-year=u16 FAMILY n TYPE i64"])
        self.read("CSCAN pop 0 PREFIX de#2004 KEYSONLY", ["0", ["de#2004"]])
        for order in ("a=utf8#a=u8", "=utf8", "a.b=utf8", "a.b=utf8#c=u8", "a=b=utf8", "x=recno", "a=utf8#b=nix", "é=utf8",
                      "-=u8", "a" * 65 + "=u8"):
            self.refused("TABLE CREATE other KEY %s" % order, "ERR invalid order")
        self.refused("FAMILY ADD pop x ORDER a=utf8", "ERR invalid order")
        self.write("TABLE CREATE wide KEY %s" % "#".join("n%02d%s=u8" % (i, "x" * 61) for i in range(32)), OK)
        self.server.restart()
        self.connect_wires()
        self.read("CAGG pop BY PART year STEP 1000 REDUCE ROWS * AS n", [[[2000], M(("n", 5))], [[1000], M(("n", 5))]])
        self.read("TABLE SHOW pop", ["TABLE CREATE pop KEY country=utf8#-year=u16 FAMILY n TYPE i64"])

    def test_top_k(self):
        self.read("CAGG cities BY VALUE geo:country REDUCE SUM stat:pop AS pop SORT pop DESC LIMIT 0 3",
                  [[["de"], M(("pop", 13))], [["fr"], M(("pop", 7))], [["it"], M(("pop", 1))]])

    def test_groups_in_the_order_of_their_terms(self):
        self.read("CAGG cities BY VALUE geo:country REDUCE COUNT stat AS n",
                  [[[None], M(("n", 1))], [["de"], M(("n", 2))], [["fr"], M(("n", 1))],
                   [["it"], M(("n", 1))]])
        self.read("CAGG cities REVERSE BY VALUE geo:country REDUCE COUNT stat AS n LIMIT 1 2",
                  [[["fr"], M(("n", 1))], [["de"], M(("n", 2))]])

    def test_what_is_no_number_is_skipped_and_counted(self):
        client = self.server.client()
        groups, stats = client.execute_command("CAGG", "cities", "REDUCE", "SUM", "stat:pop", "STATS")
        self.assertEqual(groups, [[[], [b"sum(stat:pop)", 21]]])
        stats = dict(zip(stats[::2], stats[1::2]))
        self.assertEqual(stats[b"skipped"], 1)
        self.assertEqual(set(stats), {b"rows", b"cells", b"bytes", b"groups", b"micros", b"skipped"})

    def test_text_without_an_end_is_no_number(self):
        """What is a float says so by its type; of text inf, Infinity and nan are words."""
        self.write("TABLE CREATE words FAMILY f FAMILY g TYPE f64", OK)
        for number, word in enumerate(("1", "2.5", "inf", "-inf", "Infinity", "infinity", "nan", "NaN", "1e999", "1e308")):
            self.write(f"CPUT words r f:{number} {word}", OK)
        client = self.server.client()
        groups, stats = client.execute_command("CAGG", "words", "REDUCE", "SUM", "f", "REDUCE", "QUANTILE", "f", 3, 0, 0.5, 1, "STATS")
        self.assertEqual([[[], [b"sum(f)", b"1e+308", b"quantile(f)", [b"1", b"2.5", b"1e+308"]]]], groups)
        self.assertEqual(7, dict(zip(stats[::2], stats[1::2]))[b"skipped"])
        self.write("CPUT words r g:x inf", OK)
        self.read("CAGG words REDUCE SUM g", [[[], M(("sum(g)", D("inf")))]])

    def test_quantiles_are_exact_among_up_to_1024_numbers(self):
        """Nearest rank: the number at place ceil(q * n), and the first for 0."""
        self.write("TABLE CREATE exact FAMILY f TYPE f64", OK)
        client = self.server.client()
        numbers = [number * 1.0001 + 1000 for number in range(1024)]
        for number in numbers:
            client.execute_command("CPUT", "exact", f"r{number}", "f:x", repr(number), "f:y", repr(number))
        ask = ("CAGG", "exact", "REDUCE", "QUANTILE", "f", 5, 0, 0.0001, 0.5, 0.999, 1)
        self.assertEqual([numbers[0], numbers[0], numbers[511], numbers[1022], numbers[1023]],
                         [float(each) for each in client.execute_command(*ask)[0][1][1]])
        client.execute_command("CPUT", "exact", "one more", "f:x", "0.5")
        for got, wanted in zip(client.execute_command(*ask)[0][1][1], (0.5, 0.5, numbers[511], numbers[1022], numbers[1023])):
            self.assertLessEqual(abs(float(got) - wanted), wanted / 100)

    def test_each_counts_rows_without_a_target(self):
        self.write("CPUT m d1#11000 v:other 1", OK)
        self.read("CAGG m EACH 1 1 BY KEY 1 REDUCE COUNT v:t AS n", [[["d2"], M(("n", 1))]])
        self.read("CAGG m EACH 1 2 BY KEY 1 REDUCE MAX v:t AS last",
                  [[["d1"], M(("last", D("20.5")))], [["d2"], M(("last", D("1")))]])

    def test_nothing_is_one_group_without_by(self):
        self.read("CAGG m PREFIX nix# REDUCE SUM v REDUCE COUNT v REDUCE ROWS * REDUCE DISTINCT v REDUCE AVG v "
                  "REDUCE MIN v REDUCE QUANTILE v 1 0.5 REDUCE HISTOGRAM v 1 0",
                  [[[], M(("sum(v)", 0), ("count(v)", 0), ("rows(*)", 0), ("distinct(v)", 0), ("avg(v)", None),
                                 ("min(v)", None), ("quantile(v)", None), ("histogram(v)", [0, 0]))]])
        self.read("CAGG m PREFIX nix# BY KEY REDUCE SUM v", [])

    def test_sums_at_the_edges_of_64_bits(self):
        self.write("TABLE CREATE n FAMILY i TYPE i64 FAMILY u TYPE u64 FAMILY f TYPE f64 FAMILY x", OK)
        self.write("CPUT n a i:a 9223372036854775807 u:a 18446744073709551615 f:a inf", OK)
        self.write("CPUT n b i:a -9223372036854775808", OK)
        self.read("CAGG n REDUCE SUM i", [[[], M(("sum(i)", -1))]])
        self.read("CAGG n REDUCE SUM u REDUCE MAX *", [[[], M(("sum(u)", N(2**64 - 1)), ("max(*)", D("inf")))]])
        self.write("CPUT n c u:a 18446744073709551615 i:a 1", OK)
        self.read("CAGG n REDUCE SUM u", [[[], M(("sum(u)", N(2**65 - 2)))]])
        self.read("CAGG n REDUCE SUM f REDUCE AVG i", [[[], M(("sum(f)", D("inf")), ("avg(i)", D("0")))]])
        self.write("CPUT n d f:a -inf", OK)
        self.read("CAGG n REDUCE SUM f", [[[], M(("sum(f)", D("nan")))]])
        self.write("CPUT n x x:a 0.1 AS f64 x:b 0.2 AS f64 x:c 0.3 AS f64 x:d 1 AS u8 x:e 1e300 AS f64 x:f -1e300 AS f64", OK)
        self.read("CAGG n REDUCE SUM x", [[[], M(("sum(x)", D("1.6")))]])

    def test_refusals_name_the_thing(self):
        for words, code, named in (
                ("CAGG cities BY PART 2 REDUCE COUNT *", "ERR", "PART 2"),
                ("CAGG cities BY PART 0 REDUCE COUNT *", "ERR", "PART '0'"),
                ("CAGG cities BY PART 1 STEP 5 REDUCE COUNT *", "ERR", "STEP"),
                ("CAGG cities BY KEY 2 REDUCE COUNT *", "ERR", "KEY 2"),
                ("CAGG m BY PART 2 STEP 1.5 REDUCE COUNT *", "ERR", "1.5"),
                ("CAGG m BY PART 2 STEP 0 REDUCE COUNT *", "ERR", "'0'"),
                ("CAGG m BY BYTES 2 REDUCE COUNT *", "ERR", "BYTES"),
                ("CAGG m BY PART dev REDUCE COUNT *", "ERR", "dev"),
                ("CAGG cities REDUCE COUNT * SORT n", "ERR", "'n'"),
                ("CAGG cities REDUCE QUANTILE * 1 0.5 AS q SORT q", "ERR", "'q'"),
                ("CAGG cities REDUCE COUNT * REDUCE COUNT *", "ERR", "'count(*)'"),
                ("CAGG cities REDUCE SUM nix:pop", "NOFAMILY", "'nix'"),
                ("CAGG cities BY VALUE nix:pop REDUCE SUM stat", "NOFAMILY", "'nix'"),
                ("CAGG nix REDUCE SUM stat", "NOTABLE", "'nix'"),
                ("CAGG cities REDUCE QUANTILE stat 1 1.01", "BADVALUE", "1.01"),
                ("CAGG cities REDUCE QUANTILE stat 1 x", "BADVALUE", "'x'"),
                ("CAGG cities REDUCE HISTOGRAM stat 2 5 5", "BADVALUE", "'5'"),
                ("CAGG cities REDUCE MEDIAN stat", "ERR", "MEDIAN"),
                ("CAGG cities BY HOUR REDUCE SUM stat", "ERR", "HOUR"),
                ("CAGG cities BY KEY COUNT 5", "ERR", "'COUNT' has no effect in CAGG"),
                ("CAGG cities BY KEY", "ERR", "REDUCE"),
                ("CAGG cities REDUCE SUM stat LIMIT 0 0", "ERR", "LIMIT"),
                ("CAGG cities REDUCE SUM stat LIMIT 0 1 LIMIT 0 1", "ERR", "LIMIT"),
                ("CAGG cities " + "REDUCE SUM stat " * 65, "TOOLARGE", "65"),
                ("CAGG cities " + "BY KEY " * 33 + "REDUCE SUM stat", "TOOLARGE", "33"),
                ("CAGG cities REDUCE QUANTILE stat 33 " + "0.5 " * 33, "TOOLARGE", "33")):
            with self.subTest(words=words[:60]):
                reply = self.call(words)
                self.assertIsInstance(reply, resp.Error)
                self.assertEqual(reply.code, code, reply)
                self.assertIn(named, reply.text)

    def test_a_hidden_family_is_not_added(self):
        admin = self.server.client()
        admin.execute_command("ACL", "SETUSER", "reader", "on", "nopass", "~cities:stat", "+@all")
        self.addCleanup(admin.execute_command, "ACL", "DELUSER", "reader")
        raw = resp.Client(self.server.port)
        self.addCleanup(raw.close)
        raw.call("AUTH", "reader", "x")
        self.assertEqual(raw.call("CAGG", "cities", "REDUCE", "COUNT", "*"), [[[], [b"count(*)", 5]]])
        for words in ("REDUCE SUM geo", "REDUCE SUM stat BY VALUE geo:country", "WHERE geo:country EQ de REDUCE SUM stat",
                      "REDUCE SUM stat STATS"):
            self.assertEqual(raw.call("CAGG", "cities", *words.split()).code, "NOPERM", words)

    def test_explain(self):
        client = self.server.client()
        reply = client.execute_command(*"CEXPLAIN CAGG cities BY KEY REDUCE SUM stat:pop ANALYZE".split())
        fields = dict(zip(reply[::2], reply[1::2]))
        self.assertEqual(fields[b"command"], b"cagg")
        self.assertEqual(fields[b"columns"], [b"stat:pop"])


class FunctionsTest(WireTest):
    """FIRST, LAST, STDDEV, VARIANCE, DELTA, RATE; HAVING; FILL; steps of the calendar."""

    def setUp(self):
        super().setUp()
        self.write("TABLE CREATE c KEY dev=utf8#-at=u32 FAMILY n TYPE i64 FAMILY f TYPE f64 FAMILY x", OK)

    def counter(self, row, *values):
        for at, value in enumerate(values):
            self.write("CPUT c %s n:c %d TS %d" % (row, value, 1000000 * (1 + at)), OK)

    def test_first_and_last_are_told_by_time(self):
        for row, at, value in (("a#1", 300, "late"), ("a#2", 100, "low"), ("b#1", 100, "high"), ("b#2", 200, "mid")):
            self.write("CPUT c %s x:a %s TS %d" % (row, value, at), OK)
        self.read("CAGG c REDUCE FIRST x AS first REDUCE LAST x AS last",
                  [[[], M(("first", "low"), ("last", "late"))]])
        # Rows of 'b' begin with the highest number.
        self.write("CPUT c b#3 x:a end TS 300", OK)
        self.read("CAGG c REDUCE LAST x:a SORT last(x:a)", [[[], M(("last(x:a)", "end"))]])
        self.read("CAGG c BY PART dev REDUCE LAST x:a AS v REVERSE SORT v",
                  [[["b"], M(("v", "end"))], [["a"], M(("v", "late"))]])
        self.read("CAGG c PREFIX nix REDUCE FIRST x REDUCE STDDEV x REDUCE VARIANCE x REDUCE DELTA x REDUCE RATE x",
                  [[[], M(("first(x)", None), ("stddev(x)", None), ("variance(x)", None), ("delta(x)", None),
                          ("rate(x)", None))]])

    def test_spread_of_the_sample(self):
        for at, value in enumerate((2, 4, 4, 4, 5, 5, 7, 9)):
            self.write("CPUT c a#%d n:a %d f:a %s" % (at, value + 2**62, value * 1e307), OK)
        self.read("CAGG c REDUCE VARIANCE n AS v REDUCE STDDEV n AS s REDUCE VARIANCE f AS fv",
                  [[[], M(("v", D("4.571428571428571")), ("s", D("2.138089935299395")), ("fv", D("inf")))]])
        self.read("CAGG c RANGE [a#0 [a#0 REDUCE VARIANCE n AS v", [[[], M(("v", None))]])
        stddev = self.call("CAGG c REDUCE STDDEV f")[0][1]
        self.assertAlmostEqual(float(dict(stddev)["stddev(f)"] if isinstance(stddev, dict) else stddev[1]) / 1e307,
                               2.138089935299395)
        self.write("CPUT c a#9 f:a inf", OK)
        self.read("CAGG c REDUCE VARIANCE f AS v", [[[], M(("v", D("nan")))]])
        self.read("CAGG c REDUCE VARIANCE f AS v HAVING v GE 0", [])
        self.read("CAGG c REDUCE VARIANCE f AS v HAVING v NE 0", [[[], M(("v", D("nan")))]])

    def test_growth_of_counters(self):
        self.counter("a#1", 10, 15, 15, 3, 4)
        self.counter("b#1", 100, 50)
        self.read("CAGG c BY PART dev REDUCE DELTA n AS d REDUCE RATE n AS r VERSIONS ALL",
                  [[["a"], M(("d", 9), ("r", D("2.25")))], [["b"], M(("d", 50), ("r", D("50")))]])
        self.read("CAGG c REDUCE DELTA * AS d REDUCE RATE * AS r VERSIONS ALL",
                  [[[], M(("d", 59), ("r", D("14.75")))]])
        # The newest version alone has not grown.
        self.read("CAGG c REDUCE DELTA n AS d REDUCE RATE n:c AS r BY KEY",
                  [[["a#1"], M(("d", 0), ("r", None))], [["b#1"], M(("d", 0), ("r", None))]])
        self.read("CAGG c BY TIME 2s REDUCE DELTA n AS d VERSIONS ALL",
                  [[[0], M(("d", 0))], [[2000000], M(("d", 0))], [[4000000], M(("d", 1))]])
        self.write("CPUT c z#1 f:a 0.1 TS 1", OK)
        self.write("CPUT c z#1 f:a 0.3 TS 2", OK)
        self.read("CAGG c REDUCE DELTA f AS d VERSIONS ALL", [[[], M(("d", D("0.19999999999999998")))]])

    def test_having_comes_before_sort_and_limit(self):
        for dev, count in (("a", 1), ("b", 5), ("c", 3), ("d", 4)):
            for at in range(count):
                self.write("CPUT c %s#%d n:a %d x:t %s" % (dev, at, at, "z" + dev), OK)
        self.read("CAGG c BY PART dev REDUCE COUNT n AS n HAVING n GE 3 HAVING n NE 5 SORT n DESC LIMIT 0 1",
                  [[["d"], M(("n", 4))]])
        self.read("CAGG c BY PART dev REDUCE SUM n AS n REDUCE MAX x AS x HAVING n LT 9.5 HAVING x gt zb",
                  [[["c"], M(("n", 3), ("x", "zc"))], [["d"], M(("n", 6), ("x", "zd"))]])
        self.read("CAGG c BY PART dev REDUCE AVG n AS n HAVING n EQ 1.0", [[["c"], M(("n", D("1")))]])
        self.read("CAGG c BY PART dev REDUCE SUM f AS n REDUCE MAX f AS x REDUCE COUNT * AS k HAVING x EQ 0", [])
        self.refused("CAGG c REDUCE COUNT * AS n HAVING m GT 1", "ERR HAVING 'm' is the name of no REDUCE")
        self.refused("CAGG c REDUCE COUNT * AS n HAVING n GT x", "BADVALUE HAVING 'n': 'x' is not a number")
        self.refused("CAGG c REDUCE COUNT * AS n HAVING n MATCH 1", "ERR syntax error: 'MATCH'")
        self.refused("CAGG c REDUCE COUNT * AS n HAVING n GT", "ERR syntax error")
        self.refused("CAGG c REDUCE HISTOGRAM n 1 0 AS h HAVING h GT 1", "ERR HAVING 'h' is not one number")
        self.refused("CAGG c REDUCE COUNT * AS n " + "HAVING n GT 1 " * 65, "TOOLARGE 65 HAVINGs, the limit is 64")

    def test_fill_adds_steps_between_first_and_last(self):
        for row, value in (("a#0", 5), ("a#30", 7), ("b#10", 1), ("b#25", 2), ("c#10", 1)):
            self.write("CPUT c %s n:a %d" % (row, value), OK)
        self.read("CAGG c BY PART dev BY PART at STEP 10 REDUCE SUM n AS n FILL NULL",
                  [[["a", 30], M(("n", 7))], [["a", 20], M(("n", None))], [["a", 10], M(("n", None))], [["a", 0], M(("n", 5))],
                   [["b", 20], M(("n", 2))], [["b", 10], M(("n", 1))], [["c", 10], M(("n", 1))]])
        # Before in time, which is behind in the order of the keys.
        self.read("CAGG c PREFIX a BY PART at STEP 10 REDUCE SUM n AS n REDUCE MAX n AS m FILL PREVIOUS",
                  [[[30], M(("n", 7), ("m", 7))], [[20], M(("n", 5), ("m", 5))], [[10], M(("n", 5), ("m", 5))],
                   [[0], M(("n", 5), ("m", 5))]])
        self.read("CAGG c BY PART at STEP 10 BY PART dev REDUCE SUM n AS n FILL -1 HAVING n LT 2 SORT n",
                  [[[20, "a"], M(("n", -1))], [[10, "a"], M(("n", -1))], [[10, "b"], M(("n", 1))], [[10, "c"], M(("n", 1))]])
        self.read("CAGG c PREFIX a BY VALUE n:a STEP 0.5 REDUCE COUNT n AS n FILL 0 LIMIT 1 2",
                  [[[D("5.5")], M(("n", 0))], [[D("6")], M(("n", 0))]])
        # Behind the greatest integer steps are floats.
        self.write("CPUT c e#1 x:a 0 AS u64", OK)
        self.write("CPUT c e#2 x:a 8e19 AS f64", OK)
        self.read("CAGG c PREFIX e BY VALUE x:a STEP 18446744073709551615 REDUCE COUNT * AS n FILL NULL LIMIT 0 4",
                  [[[0], M(("n", 1))], [[N(18446744073709551615)], M(("n", None))], [[D("3.6893488147419103e+19")], M(("n", None))],
                   [[D("5.5340232221128655e+19")], M(("n", None))]])
        self.refused("CAGG c BY PART dev REDUCE COUNT * FILL NULL",
                     "ERR FILL needs one BY TIME or BY with STEP, and there are 0")
        self.refused("CAGG c BY TIME 1d BY PART at STEP 5 REDUCE COUNT * FILL NULL",
                     "ERR FILL needs one BY TIME or BY with STEP, and there are 2")
        self.refused("CAGG c BY TIME 1d REDUCE COUNT * FILL PREV", "BADVALUE FILL 'PREV' is not NULL, PREVIOUS or a number")
        self.write("CPUT c z#4000000000 n:a 1", OK)
        self.refused("CAGG c BY PART at STEP 1 REDUCE COUNT * FILL NULL", "TOOLARGE the groups take more than agg-max-memory")

    def test_steps_of_the_calendar(self):
        def day(text):
            when = datetime.datetime.fromisoformat(text + "+00:00")
            return int(when.timestamp()) * 1000000
        for at, text in enumerate(("2026-01-31T23:30", "2026-02-01T00:10", "2026-03-29T12:00", "2026-12-31T23:30")):
            self.write("CPUT c a#%d n:a 1 TS %d" % (at, day(text)), OK)
        self.read("CAGG c BY TIME 1mo REDUCE COUNT n AS n FILL 0 LIMIT 0 3",
                  [[[day("2026-01-01")], M(("n", 1))], [[day("2026-02-01")], M(("n", 1))], [[day("2026-03-01")], M(("n", 1))]])
        self.read("CAGG c BY TIME 1mo TZ Europe/Berlin REDUCE COUNT n AS n LIMIT 0 2",
                  [[[day("2026-01-31T23:00")], M(("n", 2))], [[day("2026-02-28T23:00")], M(("n", 1))]])
        self.read("CAGG c BY TIME 1y REDUCE COUNT n AS n", [[[day("2026-01-01")], M(("n", 4))]])
        self.read("CAGG c BY TIME 1y TZ Europe/Berlin REDUCE COUNT n AS n",
                  [[[day("2025-12-31T23:00")], M(("n", 3))], [[day("2026-12-31T23:00")], M(("n", 1))]])
        self.read("CAGG c BY TIME 1w REDUCE COUNT n AS n LIMIT 0 2",
                  [[[day("2026-01-26")], M(("n", 2))], [[day("2026-03-23")], M(("n", 1))]])
        for words, code in (("BY TIME 1mo TZ Europe/Nowhere", "ERR no time zone 'Europe/Nowhere'"),
                            ("BY TIME 1mo TZ ../../../etc/passwd", "ERR no time zone"), ("BY TIME 1d TZ /etc/localtime", "ERR no time zone"),
                            ("BY TIME 1d TZ Europe", "ERR no time zone 'Europe'"),
                            ("BY TIME 1d TZ Europe//Berlin", "ERR no time zone 'Europe//Berlin'"), ("BY TIME 0mo", "ERR TIME '0mo' is no duration"),
                            ("BY TIME mo", "ERR TIME 'mo'"), ("BY TIME 1000001w", "ERR TIME"), ("BY TIME -1y", "ERR TIME"),
                            ("BY TIME 1x TZ UTC", "ERR")):
            self.refused("CAGG c %s REDUCE COUNT *" % words, code)

    def test_local_days_beside_python(self):
        """Instants of 1970 to 2037: many in some zones, some in all that there are."""
        client = self.server.client()
        rng = random.Random(7)
        end = 68 * 365 * zones.DAY
        some = ("Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Asia/Kolkata", "Asia/Tehran",
                "Australia/Lord_Howe", "Pacific/Apia", "Africa/Monrovia", "Pacific/Chatham", "Antarctica/Troll", "UTC")
        for table, count, names in (("many", 10000, some), ("all", 200, sorted(zoneinfo.available_timezones()))):
            client.execute_command("TABLE", "CREATE", table, "FAMILY", "t")
            # In the first day a step may begin before 1970.
            early = {at * zones.DAY // 60 for at in range(120)}
            instants = sorted({rng.randrange(end) for _ in range(count)} | early)
            for begin in range(0, len(instants), 1000):
                pipe = client.pipeline(transaction=False)
                for at in instants[begin:begin + 1000]:
                    pipe.execute_command("CPUT", table, "r", "t:%d" % at, "1", "TS", at)
                pipe.execute()
            compared = 0
            for zone in names:
                words = ["1d", rng.choice(["1w", "1mo", "1y", "3mo", "5d", "2w"]), rng.choice(["1h", "6h", "90m", "7h"])]
                for word in words if table == "many" else [rng.choice(words)]:
                    step = zones.TimeStep(word.encode(), zone.encode(), aggregates.read_duration)
                    got = client.execute_command("CAGG", table, "BY", "TIME", word, "TZ", zone, "REDUCE", "COUNT", "*")
                    want = collections.Counter(step.begin(at) for at in instants)
                    self.assertEqual([(group[0][0], group[1][1]) for group in got], sorted(want.items()), (zone, word))
                    compared += len(instants)
            self.assertGreaterEqual(compared, 100000)


class LargeTest(WireTest):
    """Slices, threads, memory, writers beside it."""

    ROWS = 120000

    def fill(self):
        client = self.server.client()
        client.execute_command("TABLE", "CREATE", "big", "KEY", "utf8#u32", "FAMILY", "v", "FAMILY", "t", "TYPE", "i64")
        rng = random.Random(5)
        self.total = 0
        for begin in range(0, self.ROWS, 500):
            pipe = client.pipeline(transaction=False)
            for row in range(begin, begin + 500):
                numbers = [rng.randrange(-1000, 1000) for _ in range(4)]
                self.total += sum(numbers)
                pipe.execute_command("CPUT", "big", "%s#%d" % ("abcdefghij"[row % 10], row), "t:a", numbers[0], "t:b",
                                     numbers[1], "t:c", numbers[2], "t:d", numbers[3], "v:f", "%.3f" % rng.random())
            pipe.execute()
        return client

    def test_threads_slices_and_writers(self):
        client = self.fill()
        queries = ["REDUCE SUM t REDUCE COUNT * REDUCE ROWS * REDUCE AVG v:f",
                   "BY KEY 1 REDUCE SUM t REDUCE MIN t:a REDUCE MAX v:f REDUCE DISTINCT t",
                   "BY COLUMN REDUCE QUANTILE * 3 0.1 0.5 0.99 REDUCE HISTOGRAM * 2 0 500",
                   "RANGE [c [f BY KEY 1 BY VALUE t:a STEP 100 REDUCE COUNT t:b SORT count(t:b) DESC LIMIT 0 7",
                   "BY PART 2 STEP 1000 REVERSE REDUCE SUM t:d REDUCE DISTINCT v:f",
                   "BY KEY 1 BY PART 2 STEP 5000 FILL PREVIOUS REDUCE FIRST t:a REDUCE LAST t REDUCE DELTA v:f REDUCE RATE t "
                   "HAVING first(t:a) GT 0 SORT first(t:a) LIMIT 0 9"]
        want = None
        for threads in (0, 1, 3):
            client.config_set("agg-threads", threads)
            got = [client.execute_command("CAGG", "big", *words.split()) for words in queries]
            self.assertEqual(got[0][0][1][:6], [b"sum(t)", self.total, b"count(*)", 5 * self.ROWS, b"rows(*)", self.ROWS])
            want = want or got
            self.assertEqual(got, want)
        # The answer is that of one moment: every row is moved from one column to another, 1 at a time.
        client.config_set("agg-threads", 1)
        stop = threading.Event()

        def write():
            other = self.server.client()
            rng = random.Random(6)
            while not stop.is_set():
                row = rng.randrange(self.ROWS)
                key = "%s#%d" % ("abcdefghij"[row % 10], row)
                other.execute_command("CMUTATE", "big", key, "INCR", "t:a", 1, "INCR", "t:b", -1)
                other.execute_command("CDEL", "big", key, "v")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(20):
                self.assertEqual(client.execute_command("CAGG", "big", "REDUCE", "SUM", "t")[0][1][1], self.total)
        finally:
            stop.set()
            writer.join()
        # A client that leaves in the middle ends the work.
        for _ in range(5):
            other = self.server.client()
            other.connection_pool.get_connection("x").send_command("CAGG", "big", "BY", "KEY", "REDUCE", "DISTINCT", "*")
            other.connection_pool.disconnect()
        self.assertTrue(client.ping())
        # Memory: all or an error.
        client.config_set("agg-max-memory", "1mb")
        for threads in (0, 2):
            client.config_set("agg-threads", threads)
            with self.assertRaisesRegex(Exception, "TOOLARGE .*agg-max-memory"):
                client.execute_command("CAGG", "big", "BY", "KEY", "REDUCE", "SUM", "t")
            with self.assertRaisesRegex(Exception, "TOOLARGE .*agg-max-memory"):
                client.execute_command("CAGG", "big", "BY", "KEY", "1", "BY", "PART", "2", "STEP", "50", "REDUCE", "DISTINCT", "t")
        client.config_set("agg-max-memory", "64mb")
        pipe = client.pipeline(transaction=True)
        pipe.execute_command("CAGG", "big", "REDUCE", "SUM", "t")
        self.assertEqual(pipe.execute(), [[[[], [b"sum(t)", self.total]]]])
        client.config_set("reply-max-bytes", "100kb")
        with self.assertRaisesRegex(Exception, "TOOLARGE .*reply-max-bytes"):
            client.execute_command("CAGG", "big", "BY", "KEY", "REDUCE", "SUM", "t")


if __name__ == "__main__":
    unittest.main()
