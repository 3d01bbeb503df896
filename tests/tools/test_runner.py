"""tests/run.py counts right, also when something crashes or hangs; the closing line is as promised."""

import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))

import run  # noqa: E402


class RunnerTest(unittest.TestCase):
    def test_the_summary_of_a_good_run(self):
        self.assertEqual((7, 0), run.parse_catch_summary("All tests passed (31 assertions in 7 test cases)\n", 0))
        self.assertEqual((1, 0), run.parse_catch_summary("All tests passed (1 assertion in 1 test case)\n", 0))

    def test_the_summary_of_a_bad_run(self):
        said = "test cases:  30 |  25 passed |  5 failed\nassertions: 705 | 675 passed | 30 failed\n"
        self.assertEqual((25, 5), run.parse_catch_summary(said, 5))
        self.assertEqual((0, 2), run.parse_catch_summary("test cases: 2 | 2 failed\n", 2))

    def test_a_crash_counts_as_a_failure(self):
        self.assertEqual((0, 1), run.parse_catch_summary("Segmentation fault", -11))
        self.assertEqual((0, 1), run.parse_catch_summary("All tests passed (3 assertions in 2 test cases)\n", 1))

    def run_files(self, **files):
        """Runs the runner's `--one` on a unittest file made of `body`, and gives the outcome."""
        outcomes = {}
        with tempfile.TemporaryDirectory() as directory:
            for name, body in files.items():
                path = os.path.join(directory, f"test_{name}_of_runner.py")
                with open(path, "w", encoding="utf-8") as file:
                    file.write("import os, unittest\nclass T(unittest.TestCase):\n" + body)
                outcomes[name] = run.run_python_file(path, "build/release")
        return outcomes

    def test_python_files_are_counted(self):
        seen = self.run_files(
            good="  def test_a(self): pass\n  def test_b(self): self.skipTest('no such client')\n",
            bad="  def test_a(self): self.fail('because')\n  def test_b(self): pass\n",
            crash="  def test_a(self): os.abort()\n",
            broken="  def test_a(self: pass\n")
        self.assertEqual((1, 0, 1), (seen["good"].passed, seen["good"].failed, len(seen["good"].skipped)))
        self.assertIn("no such client", seen["good"].skipped[0])
        self.assertEqual((1, 1), (seen["bad"].passed, seen["bad"].failed))
        self.assertIn("because", seen["bad"].output)
        self.assertEqual((0, 1), (seen["crash"].passed, seen["crash"].failed))
        self.assertEqual((0, 1), (seen["broken"].passed, seen["broken"].failed))

    def test_what_a_sanitizer_says_of_a_program_counts(self):
        """Also where no test sees it: a server that leaks says so when it ends."""
        told = ("  def test_a(self):\n"
                "    path = os.environ['{}_OPTIONS'].split('log_path=')[-1]\n"
                "    with open(path + '.17', 'w') as file: file.write('runtime error: it is damaged')\n")
        seen = self.run_files(asan=told.format("ASAN"), ubsan=told.format("UBSAN"), tsan=told.format("TSAN"))
        for outcome in seen.values():
            self.assertEqual((1, 1), (outcome.passed, outcome.failed))
            self.assertIn("it is damaged", outcome.output)

    def test_the_closing_line(self):
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "unit-tests")
            with open(program, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho 'test cases: 3 | 2 passed | 1 failed'\nexit 1\n")
            os.chmod(program, stat.S_IRWXU)
            done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "run.py"), "--build", directory, "--only",
                                   "unit-tests"], capture_output=True, text=True, check=False)
        self.assertEqual("2 passed, 1 failed", done.stdout.rstrip().split("\n")[-1])
        self.assertEqual(1, done.returncode)
        self.assertTrue(re.search("failed: unit-tests", done.stdout))


if __name__ == "__main__":
    unittest.main()
