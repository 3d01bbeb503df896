"""cellar-import against a server: formats, types, errors, resuming, reconnecting, exit statuses."""

import bz2
import gzip
import json
import lzma
import os
import random
import shutil
import subprocess
import unittest

from cellar_server import CellarServer, is_sanitized, measured_run, tool, wait_until
from tool_test import SECONDS_MAX, ToolTest



class ImportTest(ToolTest):
    OPTIONS = {"save": ""}

    def load(self, *words, text=None, port=None, status=0):
        """Runs the importer; returns what it said."""
        done = subprocess.run([tool("cellar-import"), "-p", str(port or self.server.port)] + list(words), input=text,
                              stdin=None if text is not None else subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS_MAX, check=False)
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stdout + done.stderr

    def rows(self, table, *options):
        cursor, rows = self.run_command("CSCAN", table, "0", "COUNT", "100000", *options)
        self.assertEqual(b"0", cursor)
        return {key: dict(zip(cells[::2], cells[1::2])) for key, cells in rows}

    def test_csv_with_quoted_line_breaks_and_types(self):
        path = self.write("a.csv", 'id,name,m:size:i64\r\n1,"a ""b""\nc",5\r\n2,"x,y",-7\r\n')
        said = self.load("t", path, "-k", "id", "-F", "f", "--create-table")
        self.assertIn("2 rows, 4 cells written, 0 refused", said)
        self.assertEqual({b"1": {b"f:name": b'a "b"\nc', b"m:size": 5}, b"2": {b"f:name": b"x,y", b"m:size": -7}},
                         self.rows("t"))

    def test_types_of_a_header_are_those_of_columns(self):
        path = self.write("a.csv", "id,m:size:i64,m:note,n:ok:bool,f:x\n1,5,x,true,7\n2,6,y,,8\n")
        self.load("t", path, "-k", "id", "--create-table", "--family", "f TYPE u16", "--family", "n VERSIONS 2")
        self.assertEqual([b"TABLE CREATE t FAMILY f TYPE u16 FAMILY m COLUMN size i64 "
                          b"FAMILY n COLUMN ok bool VERSIONS 2"], self.run_command("TABLE", "SHOW", "t"))
        self.assertEqual({b"m:size": 5, b"m:note": b"x", b"n:ok": 1, b"f:x": 7},
                         self.rows("t", "ROWS", "1", "1")[b"1"])
        exported = subprocess.run([tool("cellar-export"), "-p", str(self.server.port), "t", "--format", "rows", "--schema"],
                                  capture_output=True, check=True, timeout=SECONDS_MAX).stdout
        self.run_command("TABLE", "DROP", "t")
        self.load("t", self.write("t.rows", exported), "--format", "rows", "--create-table")
        self.assertIn(b"COLUMN size i64", self.run_command("TABLE", "SHOW", "t")[0])
        self.run_command("CPUT", "t", "3", "m:size", "9")
        self.assertEqual(9, self.run_command("CGET", "t", "3", "m:size"))

    def test_tsv_from_standard_input_with_a_key_of_two_fields(self):
        self.run_command("TABLE", "CREATE", "t", "KEY", "utf8#-u64", "FAMILY", "f")
        self.load("t", "-f", "tsv", "--fields", "a,b,c", "-k", "a,b", "-c", "c=f:see", text="x\t1\tone\nx\t2\ttwo\n")
        self.assertEqual([b"x#2", b"x#1"], list(self.rows("t")))

    def test_json_lines(self):
        path = self.write("a.jsonl", "\n".join(json.dumps(row) for row in (
            {"id": "r", "m": {"n": 1, "deep": {"er": True}}, "tag": ["a", "b"], "none": None},
            {"id": 7, "m": {"f": 1.5, "big": 2**64 - 1}})))
        self.load("t", path, "-k", "id", "--json-types", "--arrays", "set", "--create-table")
        self.assertEqual(
            {b"r": {b"m:deep.er": 1, b"m:n": 1, b"tag:a": b"", b"tag:b": b""},
             b"7": {b"m:big": str(2**64 - 1).encode(), b"m:f": b"1.5"}}, self.rows("t"))

    def test_create_table_takes_an_order_and_family_options_and_leaves_a_table_that_is_there(self):
        path = self.write("a.csv", "k,f:v\n10,1\n9,2\n")
        words = ["t", path, "-k", "k", "--create-table", "--key-order", "i64", "--family",
                 'f TYPE i32 GC "maxversions=3 && maxage=7d"']
        self.load(*words)
        self.assertEqual([b"9", b"10"], list(self.rows("t")))
        info = self.run_command("FAMILY", "INFO", "t", "f")
        self.assertEqual(b"i32", dict(zip(info[::2], info[1::2]))[b"type"])
        self.load(*words)
        self.assertEqual(2, self.run_command("CCOUNT", "t"))

    def test_record_numbers(self):
        self.run_command("TABLE", "CREATE", "t", "KEY", "recno", "FAMILY", "f")
        self.load("t", "-k", "*", "-F", "f", text="v\na\nb\n")
        self.assertEqual({b"1": {b"f:v": b"a"}, b"2": {b"f:v": b"b"}}, self.rows("t"))

    def test_timestamps_come_from_a_field(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.load("t", "-k", "k", "-F", "f", "--ts", "at", "--ts-unit", "s",
                  text="k,v,at\nr,old,1\nr,new,1970-01-01T00:00:02Z\n")
        self.assertEqual([[2_000_000, b"new"], [1_000_000, b"old"]],
                         self.run_command("CROW", "t", "r", "VERSIONS", "ALL")[1])

    def test_timestamps_that_look_too_early_are_warned_of(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for unit, at, warned in (("us", 1_700_000_000, "in seconds?"), ("us", 1_700_000_000_000, "milliseconds"),
                                 ("ms", 1_700_000_000, "milliseconds or seconds?"), ("s", 1_700_000_000, None),
                                 ("ms", 1_700_000_000_000, None), ("us", 1_700_000_000_000_000, None), ("us", 7, None)):
            said = self.load("t", "-k", "k", "-F", "f", "--ts", "at", "--ts-unit", unit, text=f"k,v,at\nr,x,{at}\ns,x,{at}\n")
            self.assertEqual(warned is not None, "warning" in said, (unit, at, said))
            if warned:
                self.assertIn("line 2: warning", said)
                self.assertIn(warned, said)
                self.assertIn("2 timestamps look", said)
        self.assertNotIn("warning: the", self.load("t", "-q", "-k", "k", "-F", "f", "--ts", "at", text="k,v,at\nr,x,1700000000\n"))

    def test_gzip_and_zstd_are_read(self):
        """By a file's name or through a pipe, from one member or several; resumed inside; a cut one is refused."""
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        text = b"k,v\n" + b"".join(b"%d,value %d\n" % (i, i * i) for i in range(5000))
        kinds = [("gz", gzip.compress(text[:20_000]) + gzip.compress(text[20_000:]))]
        zstd = subprocess.run(["zstd", "-c"], input=text, capture_output=True, check=False) if shutil.which("zstd") else None
        if zstd is not None:
            kinds.append(("zst", zstd.stdout))
        for suffix, packed in kinds:
            path = self.write("a.csv." + suffix, packed)
            self.assertIn("5,000 rows", self.load("t", path, "-k", "k", "-F", "f"))
            with open(path, "rb") as file:
                done = subprocess.run([tool("cellar-import"), "-p", str(self.server.port), "t", "-", "-k", "k", "-F", "f"],
                                      stdin=file, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
            self.assertIn("5,000 rows", done.stderr)
            lines = self.write("b.jsonl." + suffix, packed)  # the format is that of the name in front
            self.assertIn("not JSON", self.load("t", lines, "-k", "k", "-F", "f", "--limit", "3", status=1))
            words = ["t", path, "-k", "k", "-F", "f", "--resume", self.path("state")]
            self.load(*words, "--limit", "3000")
            self.assertIn("5,000 rows", self.load(*words))
            os.remove(self.path("state"))
            for end in (len(packed) - 1, len(packed) - 9, len(packed) // 2, 12):
                said = self.load("t", self.write("cut." + suffix, packed[:end]), "-f", "csv", "-k", "k", "-F", "f", status=2)
                self.assertRegex(said, r"cut\.\w+: is cut: its (gzip|zstd) data has no end")
            self.run_command("TABLE", "DROP", "t")
            self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
            # What stands in front of the cut is written; half a record is not.
            self.load("t", self.write("cut." + suffix, packed[:len(packed) // 2]), "-f", "csv", "-k", "k", "-F", "f", status=2)
            for key, columns in self.rows("t").items():
                self.assertEqual({b"f:v": b"value %d" % int(key) ** 2}, columns)

    def test_other_compressed_input_is_named_with_what_to_do(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        text = b"k,v\n" + b"".join(b"%d,x\n" % i for i in range(1000))
        for name, packed, program in (("a.csv.xz", lzma.compress(text), "xz -dk"), ("a.csv.bz2", bz2.compress(text), "bzip2 -dk")):
            path = self.write(name, packed)
            said = self.load("t", path, "-k", "k", "-F", "f", status=2)
            self.assertRegex(said, f"{path} is compressed .*: unpack it first: {program} {path}")

    def test_numbers_of_json_keep_their_text(self):
        """Generated ones, in keys, cells of no type, texts, nested values and arrays; typed cells are parsed from it."""
        dice = random.Random(int(os.environ.get("CELLAR_IMPORT_SEED", "1")))
        numbers = ["2.50", "3e2", "-0", "1e400", "0.1000000000000000055511151231257827", "9007199254740993"]
        for _ in range(500):
            number = str(dice.randrange(10 ** dice.randrange(1, 45)))
            if dice.random() < 0.5:
                number += "." + "".join(dice.choice("0123456789") for _ in range(dice.randrange(1, 30)))
            numbers.append(dice.choice(("", "-")) + number + dice.choice(("", "", "e5", "E-30", "e+400")))
        numbers = sorted(set(numbers))
        path = self.write("n.jsonl", "".join('{"id":%s,"v":%s,"m":{"n":%s},"a":[1.10,[%s]]}\n' % (n, n, n, n) for n in numbers))
        self.load("t", path, "-k", "id", "-F", "f", "--create-table")
        wanted = {n.encode(): {b"f:v": n.encode(), b"m:n": n.encode(), b"f:a": b"[1.10,[%s]]" % n.encode()} for n in numbers}
        self.assertEqual(wanted, self.rows("t"))
        text = '{"id":"r","v":18446744073709551615,"w":-9223372036854775808,"x":1.50}\n'
        self.load("u", "-f", "jsonl", "-k", "id", "-F", "f", "-c", "v=f:v:u64", "-c", "w=f:w:i64", "-c", "x=f:x:f64",
                  "--create-table", text=text)
        self.assertEqual({b"r": {b"f:v": b"18446744073709551615", b"f:w": -2**63, b"f:x": b"1.5"}}, self.rows("u"))

    def test_lines_that_end_in_a_carriage_return_alone_are_refused(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for words, text, status in ((["-f", "csv"], "k,v\ra,1\rb,2\r", 2), (["-f", "tsv"], "k\tv\ra\t1\r", 2),
                                    (["-f", "csv"], "k,v\na,1\rb,2\r\nc,3\n", 1),
                                    (["-f", "csv", "--no-header", "-k", "1"], "a,1\rb,2\r", 1)):
            path = self.write("cr", text)
            keys = [] if "-k" in words else ["-k", "k"]
            said = self.load("t", path, *words, *keys, "-F", "f", status=status)
            self.assertIn("a carriage return without a line feed", said)
        self.assertEqual({b"c": {b"f:v": b"3"}}, self.rows("t"))

    def test_a_last_line_without_its_end_is_warned_of(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for format_, text in (("csv", "k,v\na,1"), ("tsv", "k\tv\na\t1"), ("jsonl", '{"k":"a","v":1}')):
            words = ["t", "-f", format_, "-k", "k", "-F", "f"]
            self.assertIn("warning: the last line has no line end", self.load(*words, text=text))
            self.assertNotIn("warning", self.load(*words, text=text + "\n"))
            self.assertEqual("", self.load(*words, "-q", text=text))

    def test_hostile_lines_take_little_memory(self):
        """Nested without end, longer than any record, of very many values: refused, and the rest is read."""
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for name, line in (("deep", '"x":' + "[" * 100_000 + "]" * 100_000), ("open", '"x":' + '{"a":' * 100_000),
                           ("long", '"x":"' + "y" * (300 << 20) + '"'), ("many", '"x":[' + "1," * 20_000_000 + "1]")):
            path = self.write(name, '{"k":"a",' + line + '}\n{"k":"b","v":"1"}\n')
            status, said, kib = measured_run([tool("cellar-import"), "-p", str(self.server.port), "t", path, "-f", "jsonl",
                                              "-k", "k", "-F", "f"], SECONDS_MAX)
            os.remove(path)
            self.assertEqual(1, status, (name, said[:300]))
            self.assertRegex(said, "line 1: (nested too deep|not JSON|a line of more than|more than)")
            self.assertIn("1 rows, 1 cells written, 1 refused", said)
            if not is_sanitized():
                self.assertLess(kib, 700 << 10, name)
        for format_ in ("csv", "tsv"):
            path = self.write("long", 'k,v\na,"' + "y" * (300 << 20))
            status, said, kib = measured_run([tool("cellar-import"), "-p", str(self.server.port), "t", path, "-f", format_,
                                              "-k", "k", "-F", "f"], SECONDS_MAX)
            os.remove(path)
            self.assertEqual(2, status, said[:300])
            if not is_sanitized():
                self.assertLess(kib, 700 << 10, format_)

    def test_timestamps_may_have_a_fraction(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", "9")
        text = "k,v,at\nr,a,1700000000.25\nr,b,1700000001\nr,c,1700000002.123456789\n"
        self.load("t", "-k", "k", "-F", "f", "--ts", "at", "--ts-unit", "s", text=text)
        self.assertEqual([1_700_000_002_123_456, 1_700_000_001_000_000, 1_700_000_000_250_000],
                         [ts for ts, _ in self.run_command("CROW", "t", "r", "VERSIONS", "ALL")[1]])
        self.assertIn("not a timestamp", self.load("t", "-k", "k", "-F", "f", "--ts", "at", text=text.replace("01\n", "01.5\n"),
                                                   status=1))

    def test_refused_records_are_reported_by_line_and_the_others_are_written(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f", "TYPE", "i64")
        path = self.write("a.csv", 'k,v\n1,1\n2,"x\ny"\n3,3,3\n4,\n5,"5"5\n\n6,6\n')
        errors = self.path("errors")
        said = self.load("t", path, "-k", "k", "-F", "f", "--errors", errors, status=1)
        self.assertIn("2 rows, 2 cells written, 4 refused", said)
        with open(errors, encoding="utf-8") as file:
            lines = [line.split("\t") for line in file.read().splitlines()]
        self.assertEqual(["3", "5", "6", "7"], sorted(line[0] for line in lines), lines)
        self.assertTrue(any("BADVALUE" in line[1] for line in lines), lines)
        self.assertEqual([b"1", b"6"], list(self.rows("t")))

    def test_too_many_refused_records_stop_the_import(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f", "TYPE", "i64")
        text = "k,v\n" + "".join(f"{i},x\n" for i in range(5000))
        said = self.load("t", "-k", "k", "-F", "f", "--errors-max", "10", text=text, status=2)
        self.assertIn("more than 10 records", said)

    def test_mistakes_end_with_status_2_and_a_reason(self):
        self.assertIn("NOTABLE", self.load("nosuch", "-k", "k", "-F", "f", text="k,v\n1,1\n", status=2))
        self.assertIn("mapped nowhere", self.load("t", "-k", "k", text="k,v\n1,1\n", status=2))
        self.assertIn("no field 'x'", self.load("t", "-k", "x", "-F", "f", text="k,v\n1,1\n", status=2))
        self.assertIn("--key is required", self.load("t", status=2))
        self.assertIn("cellar-import: there is no option '--nonsense' (see cellar-import --help)\n", self.load("--nonsense", status=2))
        self.assertIn("no option '--bach-rows', did you mean '--batch-rows'?", self.load("t", "--bach-rows=5", status=2))
        self.assertIn("too many words: b.csv", self.load("t", "a.csv", "b.csv", "-k", "k", status=2))
        self.assertIn("--limit = x is not a number", self.load("t", "--limit", "x", "-k", "k", status=2))
        self.assertTrue(self.load("--version").startswith("Cellar "))
        self.assertIn("--create-table", self.load("nosuch", "-k", "k", "-F", "f", text="k,v\n1,1\n", status=2))
        self.assertIn("No such file", self.load("t", "/nonexistent", "-k", "k", status=2))
        self.assertIn("refused", self.load("t", "-k", "k", "-F", "f", text="k,v\n", port=1, status=2))

    def test_a_dry_run_writes_nothing(self):
        said = self.load("t", "-k", "k", "-F", "f", "--dry-run", "--show", "1", text="k,v\n1,a b\n2,c\n")
        self.assertIn('CPUT t 1 f:v "a b"\n', said)
        self.assertIn("2 rows, 2 cells read, none written", said)
        self.assertEqual(0, self.run_command("EXISTS", "t"))

    def test_quiet_says_nothing(self):
        self.assertEqual("", self.load("t", "-k", "k", "-F", "f", "-q", "--create-table", text="k,v\n1,1\n"))

    def test_batches_of_rows_and_of_cells(self):
        text = "k," + ",".join(f"c{i}" for i in range(10)) + "\n"
        text += "".join(f"{i}," + ",".join(["v"] * 10) + "\n" for i in range(1003))
        self.load("t", "-k", "k", "-F", "f", "--create-table", "--batch-rows", "50", text=text)
        self.assertEqual(1003, self.run_command("CCOUNT", "t"))
        self.load("u", "-k", "k", "-F", "f", "--create-table", "--batch-cells", "3", "--pipeline", "7", text=text)
        self.assertEqual(10030, self.run_command("CCOUNT", "u", "BY", "CELLS"))

    def test_another_keyspace(self):
        self.load("t", "-k", "k", "-F", "f", "--create-table", "-n", "3", text="k,v\n1,1\n")
        self.assertEqual(1, self.run_command("CCOUNT", "3/t"))

    def test_a_password_and_a_unix_socket(self):
        socket = self.path("socket")
        with CellarServer(directory=self.path(""), options={"save": ""}, unixsocket=socket) as server:
            client = server.client()
            client.execute_command("CONFIG", "SET", "requirepass", "secret")
            client.close()
            said = self.load("t", "-k", "k", "-F", "f", "-s", socket, text="k,v\n1,1\n", status=2)
            self.assertIn("NOAUTH", said)
            password = self.write("password", "secret\n")
            self.load("t", "-k", "k", "-F", "f", "--create-table", "-s", socket, "--auth-file", password,
                      text="k,v\n1,1\n")

    def test_an_import_goes_on_where_it_stopped(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        path = self.write("a.csv", "k,v\n" + "".join(f'{i},"line\nbreak"\n' for i in range(1000)))
        state = self.path("state")
        words = ["t", path, "-k", "k", "-F", "f", "--resume", state]
        self.load(*words, "--limit", "400")
        self.assertEqual(400, self.run_command("CCOUNT", "t"))
        with open(state, encoding="utf-8") as file:
            saved = json.load(file)
        self.assertEqual((400, 802), (saved["rows"], saved["line"]))
        self.run_command("TABLE", "TRUNCATE", "t")
        said = self.load(*words)
        self.assertIn("1,000 rows", said)
        self.assertEqual(600, self.run_command("CCOUNT", "t"))
        self.assertEqual("nothing was left to do: 1,000 rows, 1,000 cells written, 0 refused by earlier runs\n",
                         self.load(*words))
        self.assertEqual(600, self.run_command("CCOUNT", "t", "VERSIONS", "ALL", "BY", "CELLS"))
        self.write("a.csv", "k,v\n1,1\n")
        self.assertIn("state of another import", self.load(*words, status=2))

    def test_what_is_left_out_at_the_beginning_is_left_out_once(self):
        path = self.write("rows.csv", "k,v\n" + "".join(f"{i},{i}\n" for i in range(1, 10)))
        words = ["t", path, "-k", "k", "-F", "f", "--create-table", "--skip", "2", "--resume", self.path("state")]
        self.load(*words, "--limit", "5")
        self.assertEqual([b"3", b"4", b"5"], list(self.rows("t")))
        self.load(*words)
        self.assertEqual([b"%d" % i for i in range(3, 10)], list(self.rows("t")))

    def test_a_finished_import_goes_on_with_what_has_come_since(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f", "TYPE", "i64")
        path = self.write("a.jsonl", '{"k": 1, "v": 1}\n{"k": 2, "v": "x"}\n' + " " * 70000 + "\n")
        words = ["t", path, "-k", "k", "-F", "f", "--resume", self.path("state")]
        self.assertIn("1 rows, 1 cells written, 1 refused, in", self.load(*words, status=1))
        done = "nothing was left to do: 1 rows, 1 cells written, 1 refused by earlier runs\n"
        self.assertEqual(done, self.load(*words, status=1))  # the status of the whole import
        self.assertEqual(done, self.load(*words, "--dry-run", status=1))
        self.assertEqual("", self.load(*words, "-q", status=1))
        self.assertNotIn("nothing", self.load(*words, "--limit", "0", status=1))
        with open(path, "a", encoding="utf-8") as file:
            file.write('{"k": 3, "v": 3}\n')
        self.assertIn("2 rows, 2 cells written, 1 refused, in", self.load(*words, status=1))
        empty = self.write("empty.csv", "k,v\n")
        said = self.load("t", empty, "-k", "k", "-F", "f", "--resume", self.path("none"))
        self.assertIn("0 rows, 0 cells written, 0 refused, in", said)

    def test_an_import_survives_a_restart_of_the_server(self):
        count = 60_000
        path = self.write("a.csv", "k,v\n" + "".join(f"{i:06},{i}\n" for i in range(count)))
        with CellarServer(appendfsync="always") as server:
            client = server.client()
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            process = subprocess.Popen([tool("cellar-import"), "-p", str(server.port), "t", path, "-k", "k", "-F",
                                        "f", "--reconnect", "60", "--pipeline", "50"], stderr=subprocess.PIPE)

            def has_begun():
                self.assertIsNone(process.poll())
                return client.execute_command("CCOUNT", "t") >= 1000
            wait_until(has_begun, "rows come")
            client.close()
            server.crash()
            said = process.communicate(timeout=SECONDS_MAX)[1]
            self.assertEqual(0, process.returncode, said)
            client = server.client()
            self.assertEqual(count, client.execute_command("CCOUNT", "t"))
            client.close()


if __name__ == "__main__":
    unittest.main()
