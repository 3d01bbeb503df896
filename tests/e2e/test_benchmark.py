"""The load generator against a real server: every workload runs without an error reply."""

import json
import subprocess
import tempfile
import unittest

from cellar_server import CellarTest, tool


class BenchmarkTest(CellarTest):
    OPTIONS = {"save": "", "appendonly": "no"}

    def run_tool(self, *words):
        """The JSON result of a run, which must not contain an error reply."""
        with tempfile.NamedTemporaryFile(mode="r", suffix=".json") as output:
            done = subprocess.run(
                [tool("cellar-benchmark"), "--port", str(self.server.port), "--quiet", "--json", output.name, "--server-pid", str(self.server.process.pid), *words],
                capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            result = json.loads(output.read())
        self.assertEqual(result["first_error"], "")
        return result

    def test_every_workload_runs(self):
        for name in ("ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f", "timeseries",
                     "webtable"):
            with self.subTest(name):
                self.redis.flushall()
                result = self.run_tool("-w", name, "--preload", "500", "-n", "400", "-t", "2",
                                       "-c", "4", "--pipeline", "4")
                self.assertEqual(result["operations"], 400)
                self.assertGreaterEqual(result["commands"], 400)
                self.assertEqual(result["latency_us"]["count"], 400)

    def test_a_command_of_the_user_is_repeated_with_its_placeholders(self):
        self.redis.flushall()
        result = self.run_tool(
            "--setup", "TABLE CREATE t FAMILY f", "--command", "CPUT t row#__key__ f:q __data:8__",
            "--keys", "100", "--distribution", "sequence", "-t", "1", "-c", "1", "-n", "100",
            "--pipeline", "10")
        self.assertEqual(result["commands"], 100)
        self.assertEqual(self.redis.execute_command("CCOUNT", "t"), 100)
        value = self.redis.execute_command("CGET", "t", "row#" + "0" * 11 + "7", "f:q")
        self.assertEqual(len(value), 8)

    def test_a_scan_reads_every_cell(self):
        self.redis.flushall()
        self.run_tool("--setup", "TABLE CREATE t FAMILY f", "--load-command",
                      "CPUT t row#__key__ f:a 1 f:b 2", "--preload", "1000", "--command", "PING",
                      "-n", "1")
        result = self.run_tool("--scan", "t", "--page-rows", "70", "-d", "0.01")
        # Of each scan: a key and two cells of two values a row; a cursor a page.
        self.assertEqual(result["values"], result["scans"] * 1000 * 5 + result["pages"])

    def test_an_open_loop_run_keeps_its_rate(self):
        result = self.run_tool("--command", "PING", "--rate", "2000", "-n", "1000")
        self.assertEqual(result["operations"], 1000)
        self.assertGreaterEqual(result["seconds"], 0.45)

    def run_refused(self, *words):
        """Exit status, standard output and standard error of a run."""
        done = subprocess.run([tool("cellar-benchmark"), "--port", str(self.server.port), "--quiet", *words],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_errors_are_counted_and_shown_and_the_exit_status_tells(self):
        for words in (("--json", "-"), ()):
            status, output, errors = self.run_refused("--command", "CGET nowhere row f:q", "-n", "10", *words)
            self.assertEqual(status, 1)
            self.assertEqual(errors, "cellar-benchmark: 10 errors in 10 replies, the first: "
                                     "NOTABLE no table 'nowhere' in keyspace '0'\n")
            if words:
                result = json.loads(output)
                self.assertEqual(result["errors"], 10)
                self.assertTrue(result["first_error"].startswith("NOTABLE"))
            else:
                self.assertIn("  10 errors\n", output)

    def test_one_refused_command_among_others_shows_in_the_exit_status(self):
        status, _, errors = self.run_refused("--command", "PING", "--command", "CGET nowhere row f:q", "-n", "200",
                                             "-c", "1")
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"^cellar-benchmark: \d+ errors in 200 replies, the first: NOTABLE ")

    def test_refusals_of_setup_preload_and_scan_show_in_the_exit_status(self):
        for words, begin in ((("--setup", "NOSUCH a", "--command", "PING", "-n", "1"), "NOSUCH a: ERR unknown command"),
                             (("--load-command", "CPUT nowhere __key__ f:a 1", "--preload", "30", "--load-only"),
                              "preload: 30 errors in 30 replies, the first: NOTABLE"),
                             (("--scan", "nowhere", "-d", "0.01"), "scan: NOTABLE")):
            status, _, errors = self.run_refused(*words)
            self.assertEqual(status, 1, errors)
            self.assertTrue(errors.startswith("cellar-benchmark: " + begin), errors)

    def test_a_run_that_cannot_begin_or_go_on_has_another_status(self):
        for words in (("--nonsense",), ("--workload", "nosuch"), (), ("--command", "GET 'open", "-n", "1"),
                      ("--port", "1", "--command", "PING", "-n", "1"), ("--command", "QUIT", "-n", "10", "-c", "1")):
            status, _, errors = self.run_refused(*words)
            self.assertEqual(status, 2, errors)
            self.assertNotEqual(errors, "")
        self.assertEqual(self.run_refused("--help")[0], 0)
        self.assertEqual(self.run_refused("--version")[0], 0)
        self.assertTrue(self.run_refused("--nonsense")[2].startswith("cellar-benchmark: there is no option '--nonsense'"))
        self.assertIn("--operations = x is not a number", self.run_refused("-n", "x")[2])
        # -h is a host, not help.
        self.assertEqual(self.run_refused("-h", "nosuchhost.invalid", "--command", "PING", "-n", "1")[0], 2)


if __name__ == "__main__":
    unittest.main()
