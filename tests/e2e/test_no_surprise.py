"""What is answered where a request means something else than it looks like: notes in CEXPLAIN and STATS, literals that are
parts of keys or beyond a type, the form of a command behind a wrong number of words, the words of others."""

import random
import unittest

from wire import D, M, S, WireTest

from model import resp


class Notes(WireTest):
    OPTIONS = {"save": ""}

    def setUp(self):
        super().setUp()
        self.write("FLUSHALL")
        self.write("TABLE CREATE t FAMILY c FAMILY m")

    def notes(self, read):
        """What CEXPLAIN ANALYZE says of a CSCAN or CAGG, and its STATS, which say the same."""
        explained = dict(resp.as_map(self.call(f"CEXPLAIN {read} ANALYZE")))[b"notes"]
        stats = dict(resp.as_map(self.call(f"{read} STATS")[-1]))
        self.assertEqual(stats.get(b"notes", []), explained)
        return [note.decode() for note in explained]


class NotesTest(Notes):
    def test_an_index_that_leaves_rows_out(self):
        self.write("INDEX CREATE t cust ON 1 c:cust AS u64")
        self.write("INDEX CREATE t two ON 2 -c:cust AS u64 m:x")
        for i in range(5):
            self.write(f"CPUT t text{i} c:cust {i} m:x x")
        self.assertEqual(self.notes("CSCAN t 0 INDEX cust"), ["index 'cust' leaves out 5 rows: their 'c:cust' is of another type"])
        self.assertEqual(self.notes("CSCAN t 0 INDEX two"),
                         ["index 'two' leaves out 5 rows: their 'c:cust' or 'm:x' is of another type"])
        self.write("CDELRANGE t RANGE [text1 +", 4)
        self.assertEqual(self.notes("CSCAN t 0 INDEX cust"), ["index 'cust' leaves out 1 row: its 'c:cust' is of another type"])
        self.assertEqual(self.notes("CSCAN t 0"), [])
        self.write("FAMILY ALTER t c COLUMN cust u64 CONVERT")
        self.assertEqual(self.notes("CSCAN t 0 INDEX cust"), [])
        self.read("CSCAN t 0 INDEX cust COLUMNS 1 c", ["0", [["text0", M(("c:cust", 0))]]])

    def test_a_number_that_is_compared_with_text(self):
        self.write("CPUT t a m:miles 9 m:n 1 AS i64")
        self.write("CPUT t b m:miles 10 m:n 2 AS i64")
        self.write("CPUT t c m:miles 11 AS i64")
        self.assertEqual(self.notes("CSCAN t 0 WHERE m:miles GT 10"), ["'m:miles' holds text in 2 cells: GT 10 compared text"])
        self.assertEqual(self.notes("CSCAN t 0 WHERE m:miles EQ x"), [])
        self.assertEqual(self.notes("CSCAN t 0 WHERE m:n GT 1"), [])
        met = "FILTER met text in 2 cells, which its comparisons with numbers do not let pass"
        self.assertEqual(self.notes("CSCAN t 0 FILTER 'qualifier = \"miles\" | value > 10'"), [met])
        self.assertEqual(self.notes("CSCAN t 0 FILTER 'value in [1, 20]'"), [met])
        self.assertEqual(self.notes("CSCAN t 0 WHERE FILTER 'qualifier = \"miles\" | {value > 10, value < 5}'"), [met])
        self.assertEqual(self.notes("CSCAN t 0 FILTER 'value ~ \"1.*\"'"), [])
        # By an index, whose entries tell it.
        self.write("INDEX CREATE t n ON 1 m:n AS i64 INCLUDE 1 m:miles")
        self.assertEqual(self.notes("CSCAN t 0 INDEX n WHERE m:miles GE 9.5"),
                         ["'m:miles' holds text in 2 cells: GE 9.5 compared text"])

    def test_a_prefix_beside_a_range_that_has_it(self):
        union = "PREFIX 'ab' and RANGE '[a' '(b' are a union: the range has all rows of the prefix, which adds none"
        self.assertEqual(self.notes("CSCAN t 0 PREFIX ab RANGE [a (b"), [union])
        self.assertEqual(self.notes("CSCAN t 0 PREFIX ab RANGE [ab (b"), [union.replace("[a'", "[ab'")])
        self.assertEqual(self.notes("CSCAN t 0 PREFIX ab RANGE [abc (b"), [])
        self.assertEqual(self.notes("CSCAN t 0 PREFIX ab RANGE (ab (b"), [])
        self.write("TABLE CREATE d KEY -utf8 FAMILY m")
        self.assertEqual(self.notes("CSCAN d 0 PREFIX ab RANGE [ab +"), [])
        self.assertEqual(self.notes("CSCAN t 0 PREFIX ab PREFIX a"), [])

    def test_aggregates_tell_them_too(self):
        self.write("INDEX CREATE t cust ON 1 c:cust AS u64")
        self.write("CPUT t a c:cust 1 m:miles 9")
        self.write("CPUT t b c:cust 2 AS u64 m:miles 10")
        left_out = "index 'cust' leaves out 1 row: its 'c:cust' is of another type"
        text = "'m:miles' holds text in %s: GT 9.5 compared text"
        union = "PREFIX 'b' and RANGE '-' '+' are a union: the range has all rows of the prefix, which adds none"
        for read, wanted in (("INDEX cust", [left_out]), ("WHERE m:miles GT 9.5", [text % "2 cells"]),
                             ("INDEX cust WHERE m:miles GT 9.5", [left_out, text % "1 cell"]),
                             ("PREFIX b RANGE - +", [union]), ("", []), ("WHERE m:miles EQ x", []),
                             ("RANGE [b [a", ["RANGE '[b' '[a' is empty: its min comes after its max in the order 'bytes'"]),
                             ("COLUMNS 1 m FILTER 'value > 9.5'",
                              ["FILTER met text in 2 cells, which its comparisons with numbers do not let pass"]),
                             ("TIME 5 4", ["TIME is empty: no time is within its min and its max"])):
            for reduce in ("REDUCE COUNT m", "BY KEY REDUCE SUM m:miles AS s REDUCE COUNT * SORT s"):
                self.assertEqual(self.notes(f"CAGG t {read} {reduce}"), wanted, read)
        # Each is asked for by STATS alone, and stands in both protocols.
        self.read("CAGG t RANGE [b [a REDUCE COUNT m", [[[], M(("count(m)", 0))]])
        for protocol in (2, 3):
            stats = resp.as_map(self.call("CAGG t INDEX cust REDUCE COUNT m STATS", protocol)[1])
            self.assertEqual([name for name, _ in stats],
                             [b"rows", b"cells", b"bytes", b"groups", b"micros", b"index", b"skipped", b"notes"])

    def test_a_long_aggregate_tells_them_too(self):
        """It goes on beside others, and inside EXEC it does not."""
        for row in range(20):
            self.write(f"CPUT t r{row} " + " ".join(f"m:c{column} 9" for column in range(3000)))
        met = ["FILTER met text in 60000 cells, which its comparisons with numbers do not let pass"]
        self.assertEqual(self.notes("CAGG t FILTER 'value > 9.5' REDUCE COUNT m"), met)
        self.write("MULTI")
        self.write("CAGG t FILTER 'value > 9.5' REDUCE COUNT m STATS", S("QUEUED"))
        stats = dict(resp.as_map(self.call("EXEC")[0][1]))
        self.assertEqual([note.decode() for note in stats[b"notes"]], met)

    def test_first_components_in_filters(self):
        self.write("TABLE CREATE k KEY utf8#u64 FAMILY f ORDER utf8:-i8")
        for key in ("a#1", "b#1", "b#2", "c#1"):
            self.write(f"CPUT k {key} f:x:1 1 f:x:2 2 f:y:1 3")

        def rows(expression):
            return [row for row, _ in self.call(f"CSCAN k 0 FILTER '{expression}'")[1]]

        for expression, wanted in (("row = \"b\"", ["b#1", "b#2"]), ("row != \"b\"", ["a#1", "c#1"]),
                                   ("row < \"b\"", ["a#1"]), ("row <= \"b\"", ["a#1", "b#1", "b#2"]),
                                   ("row > \"b\"", ["c#1"]), ("row >= \"b\"", ["b#1", "b#2", "c#1"]),
                                   ("row in [\"b\", \"b\"]", ["b#1", "b#2"]), ("row in (\"a\", \"c\")", ["b#1", "b#2"]),
                                   ("row = \"b#2\"", ["b#2"]), ("row >= \"b#2\"", ["b#2", "c#1"]), ("row != \"b#x\"", [])):
            self.assertEqual(rows(expression), [row.encode() for row in wanted], expression)
        self.read("CROW k a#1 FILTER 'qualifier = \"x\"'", M(("f:x:2", "2"), ("f:x:1", "1")))
        self.read("CROW k a#1 FILTER 'qualifier > \"x\"'", M(("f:y:1", "3")))
        self.read("CROW k a#1 FILTER 'qualifier != \"x:1\"'", M(("f:x:2", "2"), ("f:y:1", "3")))

    def test_literals_beyond_a_float(self):
        for row, value in (("a", "-inf"), ("b", "-1"), ("c", "3e38"), ("d", "inf")):
            self.write(f"CPUT t {row} m:f {value} AS f32 m:d {value} AS f64")
        self.write("INDEX CREATE t f ON 1 m:f AS f32")
        self.write("INDEX CREATE t d ON 1 -m:d AS f64")
        everything = {"a", "b", "c", "d"}
        for column, mark in (("m:f", "1e39"), ("m:d", "1e309")):
            for sign, least in (("", {"a", "b", "c"}), ("-", {"a"})):
                number = sign + mark
                for op, symbol, wanted in (("LT", "<", least), ("LE", "<=", least), ("GT", ">", everything - least),
                                           ("GE", ">=", everything - least), ("EQ", "=", set()), ("NE", "!=", everything)):
                    for read in (f"CSCAN t 0 WHERE {column} {op} {number}", f"CSCAN t 0 NOINDEX WHERE {column} {op} {number}",
                                 f"CSCAN t 0 FILTER 'qualifier = \"{column[2:]}\" | value {symbol} {number}'"):
                        self.assertEqual({row.decode() for row, _ in self.call(read)[1]}, wanted, read)
        self.read("CSCAN t 0 COLUMNS 1 m:f WHERE m:f EQ inf", ["0", [["d", M(("m:f", D("inf")))]]])

    def test_the_form_of_a_command(self):
        self.write("CPUT t r m:a 1")
        few = "ERR wrong number of arguments for '%s' command: %s"
        for line, name, form in (("CSCAN t", "cscan", "CSCAN table cursor [option ...]"),
                                 ("CPUT t r m:a", "cput", "CPUT table row [NX|XX] [IF predicate]... (column value ["),
                                 ("INDEX CREATE t i m:a", "index|create", "INDEX CREATE table index ON count [column [AS type]]..."),
                                 ("CGET t r", "cget", "CGET table row column [AT time] [WITHTS] [STATE]"),
                                 ("FAMILY ADD t", "family|add", "FAMILY ADD table family [option ...]")):
            self.refused(line, few % (name, form))
        self.refused("GET", "ERR unknown command 'GET'")
        self.refused("PING a b", "ERR wrong number of arguments for 'ping' command")
        self.refused("CSCAN t COUNT 5", "ERR invalid cursor: 'COUNT', a scan begins with 0: CSCAN table cursor [option ...]")
        self.refused("CDEL t r COLUMNS 1 m:a", "NOFAMILY no family 'COLUMNS' in table 't': CDEL table row")
        self.refused("CDEL t r nix", "NOFAMILY no family 'nix' in table 't'")
        self.refused("INDEX CREATE t i m:a m:b", "ERR syntax error: 'm:a' is not ON: INDEX CREATE table index ON count")
        for line in ("CSCAN t", "CDEL t r COLUMNS 1 m:a"):
            self.assertNotIn("  ", self.call(line).text)

    def test_the_words_of_others(self):
        for line, here in (("PFADD k a", "CADD table row column input"), ("TS.ADD k 1 2", "CPUT table row column value TS micros"),
                           ("JSON.SET k $ 1", "CPUT table row family:path value"), ("LPUSH k a", "CPUT table * column value"),
                           ("SADD k a", "CPUT table row column value"), ("ZADD k 1 a", "CPUT table row column value"),
                           ("GEOADD k 1 2 a", "CPUT table row column value")):
            self.assertIn("-- try " + here, self.call(line).text)
        self.refused("XADD f * a 1", "ERR a feed is written by the server alone; write to its table: CPUT table row column value")


class NotesOfAnyRead(Notes):
    """Random tables and reads: each note stands there when it should, and none otherwise."""

    NUMBERS = ["9", "-3", "9.5", "1e3", "0"]
    TEXTS = ["x", "9x", "z"]
    ROWS = ["a", "ab", "abc", "b", "ba", "bb", "c", "ca"]
    ON = {"ia": ("m:a", "i64"), "ib": ("m:b", "f64")}

    def setUp(self):
        super().setUp()
        self.random = random.Random(self.seed)
        for name, (column, kind) in self.ON.items():
            self.write(f"INDEX CREATE t {name} ON 1 {column} AS {kind}")
        self.cells = {}
        for row in self.random.sample(self.ROWS, 6):
            for column in ("m:a", "m:b", "m:n"):
                kind = self.random.choice(["i64", "f64", "bytes", "string", None])
                if kind is None:
                    continue
                value = self.random.choice(self.NUMBERS[:2] if kind in ("i64", "f64") else self.NUMBERS + self.TEXTS)
                self.write(f"CPUT t {row} {column} {value} AS {kind}")
                self.cells[row, column] = kind

    def selectors(self):
        """Words, the rows that they name, and the notes on them."""
        words, ranges, prefixes, named, notes = [], [], [], set(), []
        for _ in range(self.random.choice([0, 0, 1, 1, 2, 3])):
            low, high = self.random.choice(self.ROWS), self.random.choice(self.ROWS)
            if self.random.random() < 0.4:
                words += ["PREFIX", low]
                prefixes.append(low)
                named |= {row for row in self.ROWS if row.startswith(low)}
                continue
            least, most = self.random.choice(["-", "[" + low, "(" + low]), self.random.choice(["+", "[" + high, "(" + high])
            words += ["RANGE", least, most]
            begin = "" if least == "-" else low if least[0] == "[" else low + "\0"
            end = "~" if most == "+" else high + "\0" if most[0] == "[" else high
            ranges.append((begin, end, least, most))
            named |= {row for row in self.ROWS if begin <= row < end}
            if least != "-" and most != "+" and low > high:
                notes.append(f"RANGE '{least}' '{most}' is empty: its min comes after its max in the order 'bytes'")
        notes += [f"PREFIX '{prefix}' and RANGE '{least}' '{most}' are a union: the range has all rows of the prefix, which adds none"
                  for prefix in prefixes for begin, end, least, most in ranges
                  if begin <= prefix and prefix[:-1] + chr(ord(prefix[-1]) + 1) <= end]
        return words, named if words else set(self.ROWS), notes

    def left_out(self, name):
        column, kind = self.ON[name]
        return sum((row, column) in self.cells and self.cells[row, column] != kind for row in self.ROWS)

    def a_read(self):
        words, named, notes = self.selectors()
        column, op = self.random.choice(["m:a", "m:b", "m:n"]), self.random.choice(["EQ", "NE", "LT", "LE", "GT", "GE"])
        literal = self.random.choice(self.NUMBERS + self.TEXTS)
        compares = self.random.random() < 0.7
        if compares:
            words += ["WHERE", column, op, literal]
        by_index = [["INDEX", "ia"], ["INDEX", "ib"]] if not {"PREFIX", "RANGE"} & set(words) else []
        words += self.random.choice([[], ["NOINDEX"], *by_index])
        if self.random.random() < 0.2:
            words += ["TIME", "9", "5"]
            notes.append("TIME is empty: no time is within its min and its max")
        self.random.shuffle(notes)
        read = self.random.choice(["CSCAN t 0 COUNT 1000 {}", "CAGG t {} REDUCE COUNT m", "CAGG t {} BY KEY REDUCE SUM m:a"])
        read = read.format(" ".join(words))
        reply = self.call(f"{read} STATS")
        self.assertIsInstance(reply, list, read)
        stats = dict(resp.as_map(reply[-1]))
        index = stats.get(b"index", b"").decode()
        if index:
            on, kind = self.ON[index]
            named = {row for row in named if self.cells.get((row, on)) == kind}
            out = self.left_out(index)
            if out:
                notes.append(f"index '{index}' leaves out {out} {'row: its' if out == 1 else 'rows: their'} '{on}' is of another type")
        met = sum(self.cells.get((row, column)) in ("bytes", "string") for row in named)
        if compares and literal in self.NUMBERS and met:
            notes.append(f"'{column}' holds text in {met} {'cell' if met == 1 else 'cells'}: {op} {literal} compared text")
        self.assertEqual(sorted(self.notes(read)), sorted(notes), f"seed {self.seed}: {read}")
        return len(notes)

    def test_any_read(self):
        told = 0
        for self.seed in range(100):
            self.setUp()
            told += sum(self.a_read() for _ in range(50))
        self.assertGreater(told, 1000)

    seed = 0


if __name__ == "__main__":
    unittest.main()
