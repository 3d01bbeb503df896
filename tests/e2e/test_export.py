"""cellar-export: what it writes, read back by cellar-import, gives the same store; parts, resuming, wrong use."""

import base64
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from cellar_server import CellarServer, is_sanitized, measured_run, tool
from tool_test import SECONDS_MAX, ToolTest

MARK = re.compile(rb'^\{"(begin|schema|end)":.*\n', re.MULTILINE)
SEED = int(os.environ.get("CELLAR_EXPORT_SEED", "1"))
TYPES = {
    "string": lambda r: "".join(r.choice("aé\n\"\\\t, 日") for _ in range(r.randrange(20))),
    "bytes": lambda r: r.randbytes(r.choice((0, 1, 30, 3000))),
    "bool": lambda r: r.choice(("true", "false")),
    "u8": lambda r: r.choice((0, 255)), "i8": lambda r: r.choice((-128, 127)),
    "i16": lambda r: r.choice((-2**15, 2**15 - 1)), "i32": lambda r: r.choice((-2**31, 2**31 - 1)),
    "u16": lambda r: r.choice((0, 2**16 - 1)), "u32": lambda r: r.choice((0, 2**32 - 1)),
    "i64": lambda r: r.choice((-2**63, 2**63 - 1, 0)), "u64": lambda r: r.choice((2**64 - 1, 2**63, 7)),
    "f32": lambda r: r.choice(("0.1", "-0", "inf", "3e38")),
    "f64": lambda r: r.choice(("0.1", "-0", "-inf", "1e300", "2", "5e-324")),
    "uuid": lambda r: "3b241101-e2bb-4255-8caf-4136c7629d11",
}


class LostAnswer:
    """A door to a server that closes the first connection that has asked for a snapshot once the answer is there."""

    def __init__(self, port):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.target, self.lost = self.listener.getsockname()[1], port, 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.create_connection(("127.0.0.1", self.target)) as server:
            while request := client.recv(1 << 16):
                server.sendall(request)
                answer = server.recv(1 << 20)
                if b"SNAPSHOT\r\n$6\r\nCREATE" in request and self.lost == 0:
                    self.lost += 1
                    return
                client.sendall(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class ExportTest(ToolTest):
    OPTIONS = {"save": "", "enable-debug-command": "yes"}

    def export(self, *words, status=0, port=None):
        return self.run_tool("cellar-export", *words, status=status, port=port)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def fill(self, rows=300):
        """A table of every type, binary names, versions, expiries, aggregates, an index."""
        dice = random.Random(SEED)
        self.run_command("TABLE", "CREATE", "t", "KEY", "bytes", "FAMILY", "f", "FAMILY", "n", "TYPE", "i64",
                         "VERSIONS", "3", "FAMILY", "b_c", "ORDER", "bytes", "FAMILY", "sum", "AGGREGATE", "sum", "BUCKET", "1h",
                         "FAMILY", "least", "AGGREGATE", "min", "TYPE", "f64", "FAMILY", "most", "AGGREGATE", "max", "FAMILY",
                         "uv", "AGGREGATE", "hll", "BUCKET", "1d")
        self.run_command("INDEX", "CREATE", "t", "by_n", "ON", "1", "n:x")
        for i in range(rows):
            key = dice.choice((b"row%d" % i, b"\xff\x00%d" % i, b"r\n%d" % i))
            words = ["CPUT", "t", key]
            for _ in range(dice.randrange(1, 8)):
                kind = dice.choice(list(TYPES))
                words += [dice.choice((b"f:", b"b_c:")) + dice.choice((b"", b"a:b", b"\xfe", b"q%d" % dice.randrange(9))),
                          TYPES[kind](dice), "AS", kind]
                if dice.random() < 0.3:
                    words += ["TS", dice.randrange(2**40)]
                if dice.random() < 0.2:
                    words += ["EXPIREAT", 4 * 10**15 + dice.randrange(10**6)]
            words += ["n:x", dice.randrange(100)]
            self.run_command(*words)
            for family, input_ in (("sum", dice.randrange(-9, 9)), ("least", dice.random()), ("most", dice.randrange(99)),
                                   ("uv", dice.randrange(10**9))):
                self.run_command("CADD", "t", key, family + ":" + dice.choice("ab"), input_, "TS",
                                 dice.choice((1_700_000_000_000_000, 1_700_000_000_000_000 + 10**11)))
        self.run_command("CADD", "t", "many", *[word for i in range(20_000) for word in ("uv:all", i, "TS", "0")])
        for i in range(3):
            self.run_command("CPUT", "t", "large", "f:v", dice.randbytes(1 << 20), "TS", i)

    def test_rows_read_back_give_the_same_store(self):
        print("export: seed", SEED)
        self.fill()
        self.export("t", "-o", self.path("t.rows"), "--schema")
        with CellarServer(options=self.OPTIONS) as other:
            self.run_tool("cellar-import", "t", self.path("t.rows"), "-f", "rows", "--create-table", port=other.port)
            digest = self.run_command("DEBUG", "DIGEST")
            self.assertEqual(digest, other.client().execute_command("DEBUG", "DIGEST"))
            # And once more, from there, in parts and compressed.
            self.export("t", "-o", self.path("u.rows.zst"), "--split", "3", port=other.port)
        whole = b"".join(subprocess.run(["zstd", "-dc", self.path(f"u.rows.zst.{i}")], capture_output=True,
                                        check=True).stdout for i in range(3)) if self.has_zstd() else None
        if whole is not None:
            self.assertEqual(self.rows_of(self.read("t.rows")), self.rows_of(whole))

    @staticmethod
    def rows_of(export):
        """Its lines without those that mark its beginning and end."""
        return MARK.sub(b"", export)

    @staticmethod
    def has_zstd():
        return subprocess.run(["which", "zstd"], capture_output=True, check=False).returncode == 0

    def test_a_line_of_rows_is_what_the_manual_says(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("CPUT", "t", "r", "f:a", "7", "AS", "u64", "TS", "5", "f:b", b"\xff", "TS", "6", "EXPIREAT",
                         "4000000000000000", "f:c", "true", "AS", "bool", "TS", "7")
        out, said = self.export("t")
        begin, row, end = map(json.loads, out.splitlines())
        self.assertEqual([{"begin": "rows"}, {"end": {"lines": 1}}], [begin, end])
        self.assertEqual({"row": "r", "cells": [["f:a", 5, "u64", 7, None],
                                                ["f:b", 6, "bytes", {"b64": base64.b64encode(b"\xff").decode()},
                                                 4000000000000000],
                                                ["f:c", 7, "bool", True, None]]}, row)
        self.assertIn("1 rows, 3 cells written", said)

    def test_other_formats_are_read_back_too(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "g")
        self.run_command("CPUT", "t", 'a,"b"', "f:x", "1", "AS", "i64", "g:y\tz", "two\nlines", "AS", "string")
        self.run_command("CPUT", "t", "c", "f:x", "-2", "AS", "i64", "f:d", "2", "AS", "f64")
        def cells(client):  # without their timestamps
            rows = client.execute_command("CSCAN", "t", "0", "WITHTYPE")[1]
            return [(row, column, versions[0][1:]) for row, columns in rows
                    for column, versions in zip(columns[::2], columns[1::2])]

        scanned = cells(self.server.client())
        for format_, words in (("csv", []), ("tsv", []), ("jsonl", ["--json-types"])):
            self.export("t", "-f", format_, "-o", self.path("x." + format_))
            with CellarServer(options=self.OPTIONS) as other:
                other.client().execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "g")
                self.run_tool("cellar-import", "t", self.path("x." + format_), "-k", "key", *words, port=other.port)
                self.assertEqual(scanned, cells(other.client()), format_)

    def test_what_a_format_cannot_say_is_named(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("CPUT", "t", "r1", "f:a", b"\xff", "f:b", "1", "AS", "i64")
        self.run_command("CPUT", "t", "r2", "f:b", "x", "f:e", "")
        out, said = self.export("t", "-f", "jsonl", status=1)
        self.assertIn("row 'r1': 'f:a' is not UTF-8", said)
        self.assertEqual([{"key": "r1", "f": {"b": 1}}, {"key": "r2", "f": {"b": "x", "e": ""}}],
                         [json.loads(line) for line in out.splitlines()])
        out, said = self.export("t", "-f", "csv", status=1)
        self.assertIn("row 'r2': 'f:b' is bytes, not i64", said)
        self.assertIn("row 'r2': 'f:e' is empty", said)

    def test_row_and_cell_options_are_those_of_cscan(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "g")
        for row in ("a1", "a2", "b"):
            self.run_command("CPUT", "t", row, "f:q", row, "g:q", row)
        out, _ = self.export("t", "-f", "csv", "PREFIX", "a", "COLUMNS", "1", "g")
        self.assertEqual("key,g:q:bytes\na1,a1\na2,a2\n", out)
        out, _ = self.export("t", "-f", "csv", "--fields", "f:q", "REVERSE")
        self.assertEqual("key,f:q\nb,b\na2,a2\na1,a1\n", out)

    def test_an_export_that_is_killed_goes_on(self):
        dice = random.Random(SEED)
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        client = self.server.client()
        pipe = client.pipeline(transaction=False)
        for i in range(40_000):
            pipe.execute_command("CPUT", "t", "row%06d" % i, "f:a", "x" * dice.randrange(3000), "f:b", i)
            if i % 5000 == 0:
                pipe.execute()
        pipe.execute()
        self.export("t", "-o", self.path("whole"))
        words = [tool("cellar-export"), "-p", str(self.server.port), "t", "-o", self.path("part"), "--resume",
                 self.path("state"), "-q"]
        kills = 0
        for _ in range(60):
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(dice.random() * 0.3)
            if process.poll() is not None:
                break
            process.send_signal(dice.choice((signal.SIGKILL, signal.SIGTERM)))
            process.wait(SECONDS_MAX)
            kills += 1
            if kills >= 6:
                process = subprocess.run(words, stdin=subprocess.DEVNULL, timeout=SECONDS_MAX, check=True)
                break
        self.assertEqual(self.read("whole"), self.read("part"))
        # The same command once more has nothing to do.
        self.run_tool("cellar-export", "t", "-o", self.path("part"), "--resume", self.path("state"))
        self.assertEqual(self.read("whole"), self.read("part"))
        _, said = self.export("t", "-o", self.path("part"), "--resume", self.path("state"), "PREFIX", "r", status=2)
        self.assertIn("is the state of another export", said)

    def test_a_cut_export_is_told_of_when_it_is_imported(self):
        """Cut at every line and at bytes drawn, in one file and in parts behind each other; one without marks is warned of."""
        dice = random.Random(SEED)
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.put_rows(30, "v" * 5000)
        self.export("t", "-o", self.path("part"), "--split", "2", "--schema")
        whole = self.read("part.0") + self.read("part.1")
        self.write("t.rows", whole)
        words = ("cellar-import", "t", self.path("t.rows"), "--create-table")
        with CellarServer(options=self.OPTIONS) as other:
            self.assertNotIn("warning", self.run_tool(*words, port=other.port)[1])
            ends = [i + 1 for i, byte in enumerate(whole[:-1]) if byte == 10]
            ends += [dice.randrange(20, len(whole) - 2) for _ in range(30)]
            for end in ends:
                if end == len(self.read("part.0")):
                    continue
                self.write("t.rows", whole[:end])
                said = subprocess.run([tool(words[0]), "-p", str(other.port), *words[1:]], capture_output=True, text=True,
                                      timeout=SECONDS_MAX, check=False)
                self.assertEqual(2, said.returncode, (end, said.stderr))
                self.assertIn("cut", said.stderr)
            lines = whole.splitlines(keepends=True)
            for at in (i for i, line in enumerate(lines) if line.startswith(b'{"row"')):  # a hole in the middle
                self.write("t.rows", b"".join(lines[:at] + lines[at + 1:]))
                self.assertIn("some are missing", self.run_tool(*words, port=other.port, status=2)[1])
            self.write("t.rows", self.rows_of(whole))
            self.assertIn("warning: the export has no end mark", self.run_tool(*words, port=other.port)[1])
            # What has grown since goes on where it stopped.
            self.write("t.rows", whole[:ends[20]])
            self.run_tool(*words, "--resume", self.path("s"), port=other.port, status=2)
            self.write("t.rows", whole)
            self.run_tool(*words, "--resume", self.path("s"), port=other.port)
            self.assertEqual(30, other.client().execute_command("CCOUNT", "t"))

    def test_a_wide_row_is_several_lines(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for i in range(30):
            self.run_command("CPUT", "t", "wide", "f:%d" % i, "x" * (1 << 20), "TS", "1")
        self.export("t", "-o", self.path("t.rows"), "--schema")
        lines = self.read("t.rows").splitlines()
        self.assertGreater(len(lines), 6)
        self.assertLess(max(map(len, lines)), 6 << 20)
        with CellarServer(options=self.OPTIONS) as other:
            self.run_tool("cellar-import", "t", self.path("t.rows"), "--create-table", port=other.port)
            self.assertEqual(self.run_command("DEBUG", "DIGEST"), other.client().execute_command("DEBUG", "DIGEST"))

    def test_a_failed_export_counts_what_is_safe(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.put_rows(20_000, "v" * 1000)
        _, said = self.export("t", "-o", "/dev/full", status=2)
        self.assertIn("\n0 rows, 0 cells are safe", said)
        for words in ([], ["--resume", self.path("state")]):
            # A disk that is full behind 4 MB.
            done = subprocess.run(["bash", "-c", 'ulimit -f 4000; trap "" XFSZ; exec "$@"', "-", tool("cellar-export"), "-p",
                                   str(self.server.port), "t", "-o", self.path("x"), *words], capture_output=True, text=True,
                                  timeout=SECONDS_MAX, check=False)
            self.assertEqual(2, done.returncode, done.stderr)
            told = int(re.search(r"(\d+) rows, \d+ cells are safe", done.stderr).group(1))
            if not words:
                self.assertEqual(0, told)
                continue
            with open(self.path("state"), encoding="utf-8") as file:
                state = json.load(file)
            self.assertEqual(state["rows"], told)
            self.assertEqual(told, self.read("x")[:state["bytes"]].count(b'{"row"'))
            self.export("t", "-o", self.path("x"), *words)
            self.assertEqual(20_000, self.read("x").count(b'{"row"'))
        self.assertNotIn(b"export.", b"".join(self.run_command("SNAPSHOT", "LIST")))

    def test_no_error_leaves_the_snapshot_behind(self):
        """A state that cannot be written, parts that cannot be found, an answer that is lost."""
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.put_rows(100, "v")
        before = self.run_command("SNAPSHOT", "LIST")
        self.run_command("ACL", "SETUSER", "few", "on", ">pw", "~*", "+@all", "-table|sample")
        few = ["--user", "few", "-a", "pw"]
        for words in (["--resume", "/nowhere/s"], ["--resume", "/nowhere/s", "--split", "2"],
                      ["--resume", self.path("s"), "--split", "2", *few], ["--split", "2", *few]):
            _, said = self.export("t", "-o", self.path("x"), *words, status=2)
            self.assertNotIn("the same command continues", said)
            self.assertEqual(before, self.run_command("SNAPSHOT", "LIST"), words)
        for words in ([], ["--resume", self.path("s")], ["--split", "2"]):
            with LostAnswer(self.server.port) as door:
                self.export("t", "-o", self.path("x"), *words, status=2, port=door.port)
            self.assertEqual(1, door.lost)
            self.assertEqual(before, self.run_command("SNAPSHOT", "LIST"), words)

    def put_rows(self, rows, value):
        pipe = self.server.client().pipeline(transaction=False)
        for i in range(rows):
            pipe.execute_command("CPUT", "t", "row%06d" % i, "f:a", value, "TS", 1)
            if i % 5000 == 0:
                pipe.execute()
        pipe.execute()

    def test_all_of_it_shows_one_moment(self):
        """Killed and resumed, split, the server restarted, and the table overwritten meanwhile: the rows of the beginning."""
        dice = random.Random(SEED)
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.put_rows(20_000, "then" + "x" * 300)
        self.export("t", "-o", self.path("whole"))
        for parts in ("1", "3"):
            words = [tool("cellar-export"), "-p", str(self.server.port), "t", "-o", self.path("part"), "--resume",
                     self.path("state" + parts), "-q", "--split", parts]
            kills = 0
            while kills < 4:
                with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                    time.sleep(dice.random() * 0.15)
                    if kills == 2:
                        self.server.kill()
                        self.server.start()
                    else:
                        process.send_signal(dice.choice((signal.SIGKILL, signal.SIGTERM)))
                    process.wait(SECONDS_MAX)
                begun = os.path.exists(self.path("state" + parts + (".parts" if parts == "3" else "")))
                if begun and kills == 0:  # the moment is chosen
                    self.put_rows(20_000, "now")
                kills += begun
            subprocess.run(words, stdin=subprocess.DEVNULL, timeout=SECONDS_MAX, check=True)
            names = ["part"] if parts == "1" else ["part.0", "part.1", "part.2"]
            self.assertTrue(self.rows_of(self.read("whole")) == self.rows_of(b"".join(map(self.read, names))), parts)
            for name in names:
                self.assertEqual(self.read(name).count(b'{"row"'), json.loads(self.read(name).splitlines()[-1])["end"]["lines"])
            left = [name for name in self.run_command("SNAPSHOT", "LIST")]
            self.put_rows(20_000, "then" + "x" * 300)
        print("snapshots of exports that were killed before they had a state:", len(left))

    def test_its_snapshot_is_dropped_at_the_end(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("CPUT", "t", "r", "f:a", "1")
        for left in self.run_command("SNAPSHOT", "LIST"):  # by exports that other tests have killed
            self.run_command("SNAPSHOT", "DROP", left)
        self.run_command("SNAPSHOT", "CREATE", "mine")
        self.run_command("CPUT", "t", "r", "f:a", "2")
        self.export("t", "-o", self.path("x"), "--split", "2", "--resume", self.path("s"))
        self.export("t", "-o", "/nowhere/x", status=2)
        self.export("t", "COLUMNS", "1", "nope", status=2)
        self.assertEqual([b"mine"], self.run_command("SNAPSHOT", "LIST"))
        out, _ = self.export("t", "--snapshot", "mine", "-f", "csv")
        self.assertIn("r,1", out)
        out, _ = self.export("0/t", "-f", "csv")
        self.assertIn("r,2", out)
        out, _ = self.export("t@mine", "-f", "csv")
        self.assertIn("r,1", out)
        self.assertEqual([b"mine"], self.run_command("SNAPSHOT", "LIST"))
        # One that goes while an export is broken off: its name is told.
        with open(self.path("s"), "w", encoding="utf-8") as file:
            json.dump({"table": "t", "words": ["VERSIONS", "ALL"], "format": "rows", "snapshot": "export.gone", "bytes": 0,
                       "cursor": "0", "rows": 0, "cells": 0, "done": False}, file)
        _, said = self.export("t", "-o", self.path("x"), "--resume", self.path("s"), status=2)
        self.assertIn("the snapshot that this export reads has gone", said)
        _, said = self.export("t", "-o", self.path("x"), "--resume", self.path("s"), "--snapshot", "mine", status=2)
        self.assertIn("is the state of an export of another snapshot", said)

    def test_who_cannot_make_a_snapshot_exports_all_the_same(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("CPUT", "t", "r", "f:a", "1")
        self.run_command("ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+@connection")
        for words in ([], ["--resume", self.path("s")], ["--split", "2"]):
            _, said = self.export("t", "-o", self.path("x"), "--user", "reader", "-a", "pw", *words)
            self.assertEqual(bool(words), "cellar-export: no snapshot, so rows are as they are when they are read: NOPERM" in said)

    def test_it_takes_little_memory(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("CPUT", "t", "wide", *[w for i in range(50_000) for w in ("f:%05d" % i, "x" * 1500)])
        self.put_rows(50_000, "y" * 500)
        for words in ([], ["-f", "avro"], ["-f", "csv", "PREFIX", "row"], ["--compress", "zstd"]):
            status, said, kib = measured_run([tool("cellar-export"), "-p", str(self.server.port), "t", "-o", self.path("x"),
                                              *words], SECONDS_MAX)
            self.assertEqual(0, status, said)
            if not is_sanitized():
                self.assertLess(kib, 64 << 10, words)

    def test_wrong_use(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for words, text in (
                (["none"], "NOTABLE no table 'none' in keyspace '0'"),
                (["t", "COLUMNS", "1", "nope"], "NOFAMILY"),
                (["t", "COUNT", "5"], "COUNT is what cellar-export says itself"),
                (["t", "--split", "2"], "--split needs --output"),
                (["t", "--split", "2", "-o", "x", "PREFIX", "a"], "PREFIX does not go with it"),
                (["t", "--resume", "x"], "--resume needs --output"),
                (["t", "-f", "csv", "--schema"], "--schema goes with --format rows or avro"),
                (["t", "-f", "csv", "VERSIONS", "2"], "VERSIONS goes with --format rows or avro"),
                (["t@s", "--snapshot", "s"], "--snapshot: t@s names a snapshot already"),
                (["t", "--snapshot", "none"], "NOSNAPSHOT no snapshot 'none'"),
                (["t", "--fields", "a:b"], "--fields goes with"),
                (["t", "-f", "xml"], "not in"),
                (["t", "--formt", "csv"], "did you mean '--format'?"),
                (["t", "-o", "/nowhere/x"], "/nowhere/x: open"),
        ):
            _, said = self.export(*words, status=2)
            self.assertIn(text, said, words)
        bad = self.path("bad.rows")
        lines = ("nonsense", '{"row":"r"}', '{"row":"r","cells":[]}', '{"row":"r","cells":[["f:q",1,"i64","x",null]]}',
                 '{"row":{"b64":"!"},"cells":[["f:q",1,"bytes","x",null]]}', '{"row":"r","cells":[["fq",1,"bytes","x",null]]}',
                 '{"row":"r","cells":[["f:q",1,"bytes","x"]]}', '{"row":"ok","cells":[["f:q",1,"bytes","x",null]]}')
        with open(bad, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        _, said = self.run_tool("cellar-import", "t", bad, "-f", "rows", status=1)
        self.assertIn("1 rows, 1 cells written, 7 refused", said)
        _, said = self.run_tool("cellar-import", "t", bad, "-f", "rows", "-k", "x", status=2)
        self.assertIn("--key does not go with --format rows", said)


if __name__ == "__main__":
    unittest.main()
