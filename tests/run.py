#!/usr/bin/python3
"""Runs all tests of a build and closes on the line `N passed, N failed`.

    tests/run.py [--build build/release] [--only WORD] [--skip-unit] [--jobs N]

Runs BUILD/unit-tests (each Catch2 test case counts), the unittest files tests/tools/test_*.py and,
with CELLAR_BINARY=BUILD/cellar, tests/e2e/test_*.py (each test method counts). Files run beside each
other, one process a file; what they print is shown only when something failed. A file that crashes
or exceeds FILE_SECONDS_MAX counts as one failure. Skipped tests are named with their reason and
counted apart, before the closing line. It builds nothing: `make test` does.
"""

import argparse
import concurrent.futures
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE_SECONDS_MAX = 1800  # a hang must end; no test comes near it, and a wait of one ends before


class Outcome:
    """What one program or file of tests came to."""

    def __init__(self, name, passed=0, failed=0, skipped=(), output="", seconds=0.0):
        self.name = name
        self.passed = passed
        self.failed = failed
        self.skipped = list(skipped)
        self.output = output
        self.seconds = seconds


def parse_catch_summary(output, status):
    """(passed, failed) of a Catch2 v2 run, from its closing lines and exit status."""
    all_passed = re.findall(r"All tests passed \([\d]+ assertions? in (\d+) test cases?\)", output)
    if all_passed and status == 0:
        return int(all_passed[-1]), 0
    line = re.findall(r"^test cases: .*$", output, re.MULTILINE)
    count = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed)", line[-1])} if line else {}
    failed = count.get("failed", 0)
    if status != 0 and failed == 0:
        failed = 1
    return count.get("passed", 0), failed


def run_process(words, environment=None):
    """Runs a program in a process group of its own; returns (status, output, seconds)."""
    begin = time.monotonic()
    if not os.access(os.path.join(ROOT, words[0]), os.X_OK):
        return 1, f"there is no {words[0]}: `make test` builds it", 0.0
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   cwd=ROOT, env=environment, start_new_session=True)
        try:
            status = process.wait(timeout=FILE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
            output.write(f"\nended after {FILE_SECONDS_MAX} s\n".encode())
        output.seek(0)
        return status, output.read().decode("utf-8", "replace"), time.monotonic() - begin


def run_unit_tests(build):
    """The C++ tests."""
    status, output, seconds = run_process([os.path.join(build, "unit-tests")])
    passed, failed = parse_catch_summary(output, status)
    if failed == 0 and status == 0:
        with open(os.path.join(ROOT, build, "unit-tests.passed"), "w", encoding="utf-8"):
            pass
    return Outcome("unit-tests", passed, failed, output=output, seconds=seconds)


def sanitizers_told(directory):
    """What the sanitizers of all programs that a file has started had to say: its tests need not see how these ended."""
    told = []
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
            told.append(file.read())
    return "".join(told)


def run_python_file(path, build):
    """One unittest file, in a process of its own (`--one` below) that writes its counts as JSON."""
    environment = dict(os.environ)
    environment["CELLAR_BINARY"] = os.path.join(ROOT, build, "cellar")
    environment["PYTHONUNBUFFERED"] = "1"
    with tempfile.NamedTemporaryFile() as report, tempfile.TemporaryDirectory() as faults:
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            given = environment.get(name)
            environment[name] = f"{given + ':' if given else ''}log_path={faults}/report"
        status, output, seconds = run_process(
            [sys.executable, os.path.abspath(__file__), "--one", path, "--report", report.name], environment)
        try:
            counts = json.load(report)
        except ValueError:
            counts = {"passed": 0, "failed": 0, "skipped": []}
        told = sanitizers_told(faults)
    output += told
    if (status != 0 or told) and counts["failed"] == 0:
        counts["failed"] = 1
    return Outcome(os.path.relpath(path, ROOT), counts["passed"], counts["failed"], counts["skipped"],
                   output, seconds)


def run_one(path, report):
    """Runs one unittest file in this process; the counts go to the file `report`."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromName(name))
    failed = len({str(test) for test, _ in result.failures + result.errors}) + len(result.unexpectedSuccesses)
    counts = {
        "passed": max(0, result.testsRun - failed - len(result.skipped)),
        "failed": failed,
        "skipped": [f"{test}: {reason}" for test, reason in result.skipped],
    }
    with open(report, "w", encoding="utf-8") as file:
        json.dump(counts, file)
    return 1 if failed else 0


def tell(outcome):
    """One line for each outcome, and all of its output if something failed."""
    verdict = "FAILED" if outcome.failed else "ok"
    print(f"{verdict:6} {outcome.name}: {outcome.passed} passed, {outcome.failed} failed"
          f"{f', {len(outcome.skipped)} skipped' if outcome.skipped else ''} ({outcome.seconds:.1f} s)",
          flush=True)
    for reason in outcome.skipped:
        print(f"       skipped {reason}")
    if outcome.failed:
        print("-" * 30, outcome.name, "-" * 30)
        print(outcome.output.rstrip())
        print("-" * 30, "end of", outcome.name, "-" * 30, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--only", default="", help="run only files whose name contains this")
    parser.add_argument("--skip-unit", action="store_true")
    # Most files wait for servers of theirs more than they compute.
    parser.add_argument("--jobs", type=int, default=os.cpu_count() + 1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--report", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return run_one(options.one, options.report)

    files = sorted(glob.glob(os.path.join(ROOT, "tests", "tools", "test_*.py")))
    files += sorted(glob.glob(os.path.join(ROOT, "tests", "e2e", "test_*.py")))
    files = [path for path in files if options.only in os.path.basename(path)]
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, options.jobs)) as pool:
        jobs = []
        if not options.skip_unit and options.only in "unit-tests":
            jobs.append(pool.submit(run_unit_tests, options.build))
        jobs += [pool.submit(run_python_file, path, options.build) for path in files]
        for job in concurrent.futures.as_completed(jobs):
            outcomes.append(job.result())
            tell(outcomes[-1])
    failed = sum(outcome.failed for outcome in outcomes)
    for outcome in outcomes:
        if outcome.failed:
            print(f"failed: {outcome.name}")
    skipped = sum(len(outcome.skipped) for outcome in outcomes)
    if skipped:
        print(f"{skipped} skipped, for the reasons above")
    print(f"{sum(outcome.passed for outcome in outcomes)} passed, {failed} failed", flush=True)
    return 1 if failed or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
