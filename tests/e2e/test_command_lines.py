"""Every program's command line: what makes no sense is told in one line, and the exit status is 2."""

import os
import random
import subprocess
import tempfile
import unittest

from cellar_server import binary, tool

PROGRAMS = ("cellar", "cellar-benchmark", "cellar-cluster", "cellar-export", "cellar-heatmap", "cellar-import", "cellar-top",
            "cellar-web", "bench-btree")
SEED = 1


class CommandLines(unittest.TestCase):
    def refused(self, program, *words):
        path = binary() if program == "cellar" else tool(program)
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([path, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                                  check=False, cwd=directory)
            self.assertEqual((2, ""), (done.returncode, done.stdout), (program, words, done.stderr))
            self.assertRegex(done.stderr, rf"\A{program}: [^\n]+\n\Z", words)
            self.assertEqual([], os.listdir(directory), words)
        return done.stderr

    def test_options_that_are_none(self):
        dice = random.Random(SEED)
        for program in PROGRAMS:
            for word in ("--nonsense", "--nonsense=1", "--" + "x" * 300,
                         "--" + "".join(dice.choice("abcdefgh") for _ in range(8))):
                self.assertIn("--help", self.refused(program, word, "1"))

    def test_values_that_make_no_sense(self):
        for program in PROGRAMS:
            names = {"cellar-web": ("--port", "--listen"), "bench-btree": ("--cells",)}.get(program, ("--port",))
            for name in names:
                for value in ("abc", "-1", "1e3", "70000000000", "") if program != "bench-btree" else ("abc", "-1", ""):
                    self.refused(program, *(["t"] if program in ("cellar-export", "cellar-import", "cellar-heatmap") else
                                           ["status"] if program == "cellar-cluster" else []),
                                 name, value)
                self.refused(program, name)

    def test_words_of_the_server_and_of_its_other_uses(self):
        for words in (["--check"], ["--check", "a", "b"], ["--check", "--repair"], ["--repair"], ["--dump"], ["--dump", "a", "b"],
                      ["--recover"], ["--recover", "a"], ["--recover", "a", "--until", "x"], ["--replica-recover"],
                      ["--replica-recover", "a", "b"], ["-p", "1"], ["--port=1"], ["--maxmemory", "5zb"],
                      ["--appendfsync", "maybe"], ["--port", "1", "--check", "d"], ["--prot", "1"]):
            self.refused("cellar", *words)

    def test_words_of_a_cluster(self):
        for words, said in ((["strat"], "did you mean 'start'"), (["start", "now"], "what is 'now'"), (["map", "a", "b"], "what is 'b'"),
                            (["plan"], "which machines"), (["status", "--sets", "2"], "status takes no --sets"),
                            (["stop", "-p", "1"], "stop takes no --port"), (["start", "--sets", "0"], "--sets"),
                            (["start", "--voters", "10"], "--voters"), (["status", "--dir", "d", "-p", "1"], "either --dir or"),
                            (["start", "--user", "u"], "start takes no --user"), (["plan", "a", "--dir", "d"], "plan takes no --dir"),
                            (["events", "--count", "0"], "--count"), (["start", "--auth-file", "none"], "cannot be read")):
            self.assertIn(said, self.refused("cellar-cluster", *words))

    def test_words_that_are_missing_or_too_many(self):
        for program in ("cellar-cluster", "cellar-export", "cellar-import", "cellar-heatmap"):
            self.refused(program)
        for program in ("cellar-benchmark", "cellar-cluster", "cellar-heatmap", "cellar-import", "cellar-top", "cellar-web", "bench-btree"):
            self.refused(program, "a", "b", "c", "d")


if __name__ == "__main__":
    unittest.main()
