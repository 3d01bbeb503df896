#!/usr/bin/python3
"""Loads this machine's Debian package index into a Cellar of its own and asks it a dozen questions.

    make demo        or        tools/demo/demo.py [--port N] [--keep]

One row a package; families `meta` (version, section, size ...), `dep` (one column per dependency),
`tag`. The rows go through cellar-import. The counts of TABLE INFO and CCOUNT must equal those that
count.awk makes of the index itself; after an orderly restart and after kill -9 everything must still
be there. The server listens on 127.0.0.1:6480 with its data in build/demo/data; --keep leaves it running.
"""

import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import redis  # noqa: E402
from cellar_server import CellarServer  # noqa: E402

WORK = os.path.join(ROOT, "build", "demo")
PACKAGES_MIN = 1000  # a machine that knows fewer has no index: `apt-get update` fetches it

IMPORT = [
    "packages", "packages.jsonl", "--key", "package", "--create-table",
    "--family", "meta", "--family", "dep GROUP links", "--family", "tag GROUP links",
    "--column", "meta.installed-size=meta:installed-size:u64", "--column", "meta.size=meta:size:u64",
]

QUESTIONS = [
    ("One row, one family of it", "CROW packages bash COLUMNS 1 meta"),
    ("One cell with its timestamp", "CGET packages bash meta:version WITHTS"),
    ("What does it depend on, and from which version on?", "CROW packages apt COLUMNS 1 dep"),
    ("Rows by prefix, one column of each",
     "CSCAN packages 0 PREFIX postgresql COUNT 5 COLUMNS 1 meta:version"),
    ("The last five keys of a range, backwards",
     'CSCAN packages 0 RANGE "[python3-a" "(python3-b" REVERSE COUNT 5 KEYSONLY'),
    ("How many packages are there?", "CCOUNT packages"),
    ("How many of them depend on libc6?", "CCOUNT packages COLUMNS 1 dep:libc6"),
    ("Programs for the terminal, by tag",
     "CSCAN packages 0 WHERE tag:role::program EXISTS WHERE tag:interface::commandline EXISTS "
     "COUNT 5 KEYSONLY"),
    ("Packages of more than 2 GB when installed (the number is compared as a number)",
     "CSCAN packages 0 WHERE meta:installed-size GT 2000000 COLUMNS 1 meta:installed-size COUNT 100"),
    ("A filter: which cells of the library's users name a version?",
     "CSCAN packages 0 PREFIX nginx FILTER 'family = \"dep\" | qualifier ~ \"libssl.*\"' COUNT 100"),
    ("A new version of a cell ...", "CPUT packages bash meta:version 99.9-demo"),
    ("... stands before the old one", "CROW packages bash COLUMNS 1 meta:version VERSIONS ALL"),
    ("A counter", "CINCRBY packages bash meta:votes 41"),
    ("... counts", "CINCRBY packages bash meta:votes 1"),
    ("The nearest key to one that is not there", "CNEAR packages emacz"),
    ("Keys that cut the table into four equal parts", "TABLE SAMPLE packages 4"),
]


class Demo:
    """The server, what was asked of it, and what went wrong."""

    def __init__(self, port):
        self.data = os.path.join(WORK, "data")
        shutil.rmtree(self.data, ignore_errors=True)
        os.makedirs(self.data)
        self.server = CellarServer(directory=self.data, port=port, appendfsync="always",
                                   enable_debug_command="yes")
        self.failures = 0

    def cli(self, words):
        """The answer as redis-cli shows it to a person."""
        done = subprocess.run(["redis-cli", "-p", str(self.server.port), "--no-raw"] + words,
                              capture_output=True, text=True, check=False)
        return (done.stdout + done.stderr).rstrip()

    def ask(self, question, command):
        """Shows a command and its answer; an error is a failure of the demo."""
        answer = self.cli(shlex.split(command))
        print(f"\n# {question}\n$ redis-cli -p {self.server.port} {command}\n{shorten(answer)}")
        if answer.startswith("(error)") or not answer:
            self.failures += 1

    def call(self, *words):
        """The answer for a program."""
        return self.server.client(decode_responses=True).execute_command(*words)

    def expect(self, what, found, wanted):
        """One line; a difference is a failure of the demo."""
        verdict = "equal" if found == wanted else "DIFFERENT"
        print(f"{verdict:9} {what}: {found:,} (the index itself: {wanted:,})")
        self.failures += found != wanted

    def info(self):
        answer = self.call("TABLE", "INFO", "packages")
        return dict(zip(answer[::2], answer[1::2])) if isinstance(answer, list) else answer

    def digest(self):
        """A hash of every row, every version of every cell: the server's own, or one made here."""
        try:
            return self.call("DEBUG", "DIGEST")
        except redis.ResponseError:
            pass
        digest, cursor = hashlib.sha256(), "0"
        client = self.server.client()
        while True:
            cursor, rows = client.execute_command("CSCAN", "packages", cursor, "COUNT", "2000", "VERSIONS", "ALL",
                                                  "WITHTYPE")
            digest.update(repr(rows).encode())
            if cursor in (b"0", "0", 0):
                return digest.hexdigest()

    def check_counts(self, rows, cells, cells_with_versions):
        info = self.info()
        self.expect("rows by TABLE INFO", int(info["rows"]), rows)
        self.expect("rows by CCOUNT", self.call("CCOUNT", "packages"), rows)
        self.expect("cells by TABLE INFO", int(info["cells"]), cells_with_versions)
        self.expect("cells by CCOUNT, newest only", self.call("CCOUNT", "packages", "BY", "CELLS"), cells)
        self.expect("cells by CCOUNT, all versions",
                    self.call("CCOUNT", "packages", "VERSIONS", "ALL", "BY", "CELLS"), cells_with_versions)
        return info

    def check_same(self, what, found, wanted):
        same = found == wanted
        print(f"{'the same' if same else 'DIFFERENT'} {what}")
        self.failures += not same


def shorten(text, lines_max=24):
    """The beginning of a long answer."""
    lines = text.split("\n")
    if len(lines) <= lines_max:
        return text
    return "\n".join(lines[:lines_max] + [f"... and {len(lines) - lines_max} lines more"])


def read_index():
    """The package index as text; fetched first when the machine has none."""
    for attempt in range(2):
        done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=True)
        if done.stdout.count(b"\nPackage: ") >= PACKAGES_MIN:
            return done.stdout
        if attempt == 0:
            print("The machine has no package lists: apt-get update")
            as_root = [] if os.geteuid() == 0 else ["sudo"]
            subprocess.run(as_root + ["apt-get", "update", "-q"], stdin=subprocess.DEVNULL, check=False)
    sys.exit("demo: `apt-cache dumpavail` shows no packages, and apt-get update did not help")


def load(demo):
    """Index -> JSON lines -> table; returns the counts that awk makes of the index."""
    index = read_index()
    with open(os.path.join(WORK, "packages.jsonl"), "wb") as file:
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "demo", "packages_to_json.py")], input=index,
                       stdout=file, check=True)
    awk = subprocess.run(["awk", "-f", os.path.join(ROOT, "tools", "demo", "count.awk")], input=index,
                         capture_output=True, check=True)
    command = ["--port", str(demo.server.port)] + IMPORT
    print("$ apt-cache dumpavail | tools/demo/packages_to_json.py > packages.jsonl")
    print("$ cellar-import " + " ".join(shlex.quote(word) for word in command), flush=True)
    status = subprocess.run([os.path.join(ROOT, "build", "cellar-import")] + command, cwd=WORK, check=False).returncode
    if status != 0:
        sys.exit(f"demo: cellar-import left with status {status}")
    return [int(word) for word in awk.stdout.split()]


def run(demo, keep):
    demo.server.start()
    counts = load(demo)
    print()
    info = demo.check_counts(*counts)
    print(f"          memory: {int(info['memory']):,} bytes, {int(info['memory']) / counts[2]:.1f} a cell")
    for question, command in QUESTIONS:
        demo.ask(question, command)

    print()
    info, digest = demo.info(), demo.digest()
    for what, again in (("after an orderly restart", demo.server.restart), ("after kill -9", demo.server.crash)):
        begin = time.monotonic()
        again()
        print(f"{what}, {time.monotonic() - begin:.1f} s later:")
        demo.check_same("rows and cells", {k: demo.info()[k] for k in ("rows", "cells")},
                        {k: info[k] for k in ("rows", "cells")})
        demo.check_same("hash of every cell", demo.digest(), digest)
        demo.ask("The counter is still there", "CGET packages bash meta:votes")
    if keep:
        print(f"\nThe server goes on: redis-cli -p {demo.server.port}   (process {demo.server.process.pid})")
    else:
        demo.server.stop()
    print("\ndemo: " + (f"{demo.failures} failures" if demo.failures else "all is well"))
    return 1 if demo.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=6480)
    parser.add_argument("--keep", action="store_true", help="leave the server running")
    options = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    demo = Demo(options.port)
    try:
        return run(demo, options.keep)
    finally:
        if not options.keep:
            demo.server.kill()


if __name__ == "__main__":
    sys.exit(main())
