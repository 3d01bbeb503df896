"""The clients that people use connect in their default settings and do the same dozen things.

Scripts are in clients/, one a language: connect, generic commands, cell commands, an error, a pipeline of
10,000, MULTI and a WATCH conflict, a value of 10 MB, binary keys, a reconnect after CLIENT KILL, a command that
blocks, passwords (of a second server, at CELLAR_AUTH_PORT), pub/sub.
A client that is not installed is skipped and named; the npm ones are installed below build/npm.
"""

import fcntl
import os
import pty
import re
import shutil
import subprocess
import threading
import unittest
import urllib.request

import redis

from cellar_server import ROOT, CellarServer, CellarTest, free_port, not_with_local_reads

CLIENTS = os.path.join(ROOT, "tests", "e2e", "clients")
NPM = os.path.join(ROOT, "build", "npm")
NPM_PACKAGES = ["ioredis@5", "redis@5", "iovalkey@0", "avsc@5.7.9"]
SCRIPT_SECONDS_MAX = 300
STEPS = ["connect", "generic", "cells", "errors", "pipeline", "transactions", "large", "binary", "reconnect",
         "blocking", "pubsub"]
PASSWORD = "secret"


def run(words, **options):
    """A program to its end; its output comes as one text."""
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          stdin=options.pop("stdin", subprocess.DEVNULL), timeout=SCRIPT_SECONDS_MAX, check=False,
                          **options)


def install_npm_clients(test):
    """Puts the npm clients below build/npm; skips `test` if that cannot be done."""
    if shutil.which("npm") is None:
        test.skipTest("npm is not installed")
    os.makedirs(NPM, exist_ok=True)
    # Other files of tests want them as well: npm moves folders while it works.
    with open(NPM + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if all(os.path.isdir(os.path.join(NPM, "node_modules", name.split("@")[0])) for name in NPM_PACKAGES):
            return
        done = run(["npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", NPM] + NPM_PACKAGES)
    if done.returncode != 0:
        test.skipTest("npm cannot reach its registry: " + done.stdout.strip().split("\n")[-1])


class ClientTest(CellarTest):
    """Client libraries."""

    OPTIONS = {"save": ""}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.guarded = CellarServer(requirepass=PASSWORD, save="")
        cls.addClassCleanup(cls.guarded.close)
        cls.guarded.start()

    def run_beside_others(self, words, environment):
        """On a follower WAIT finds the other nodes at once, where the scripts go on once it waits."""
        ours, theirs = pty.openpty()  # to a terminal they write line by line
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=theirs, env={**os.environ, **(environment or {})})
        os.close(theirs)
        said = os.fdopen(ours, errors="replace")
        self.addCleanup(said.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for step in STEPS[:STEPS.index("blocking")]:
            self.assertEqual(f"ok {step}", said.readline().strip())

    def run_script(self, words, environment=None):
        if "CELLAR_FOLLOWER" in os.environ:
            return self.run_beside_others(words, environment)
        done = run(words, env={**os.environ, "CELLAR_AUTH_PORT": str(self.guarded.port), **(environment or {})})
        said = [f"ok {step}" for step in STEPS[:-1] + ["auth"] + STEPS[-1:]]
        self.assertTrue(done.returncode == 0 and done.stdout.strip().split("\n") == said, done.stdout)

    def script(self, name):
        return os.path.join(CLIENTS, name)

    def where(self, table):
        return ["127.0.0.1", str(self.server.port), table]

    def need(self, words, what):
        """Skips the test unless the command works."""
        if shutil.which(words[0]) is None or run(words).returncode != 0:
            self.skipTest(f"{what} is not installed")

    def test_hiredis(self):
        program = os.path.join(ROOT, "build", "script_hiredis")
        built = run(["g++", "-std=c++20", "-O1", self.script("script_hiredis.cc"), "-lhiredis", "-o", program])
        self.assertEqual(0, built.returncode, built.stdout)
        self.run_script([program] + self.where("hiredis"))

    def test_python(self):
        self.run_script(["/usr/bin/python3", self.script("script_python.py")] + self.where("python"))

    def test_hiredis_py(self):
        """redis-py takes the parser of hiredis-py where that is installed. Debian's (1.0) reads replies of at most 7
        levels: cells and schemas are shallow, the whole of COMMAND DOCS is too deep for it, Redis' own too."""
        if not redis.utils.HIREDIS_AVAILABLE:
            self.skipTest("python3-hiredis is not installed")
        pool = redis.ConnectionPool(port=self.server.port, parser_class=redis.connection.HiredisParser)
        self.addCleanup(pool.disconnect)
        client = redis.Redis(connection_pool=pool)
        client.execute_command("TABLE", "CREATE", "hiredis_py", "FAMILY", "f", "TYPE", "i64")
        client.execute_command("CPUT", "hiredis_py", "r", "f:a", "7", "TS", "5")
        self.assertEqual([b"0", [[b"r", [b"f:a", [[5, 7]]]]]],
                         client.execute_command("CSCAN", "hiredis_py", "0", "WITHTS"))
        self.assertIn([b"f"], client.execute_command("TABLE", "INFO", "hiredis_py"))
        self.assertEqual(b"cget", client.execute_command("COMMAND DOCS", "CGET")[0])
        try:
            self.assertGreater(len(client.execute_command("COMMAND DOCS")), 100)  # a later hiredis-py
        except redis.exceptions.InvalidResponse as error:
            self.assertIn("depth > 7", str(error))
        self.assertTrue(client.ping())

    def test_ruby(self):
        self.need(["ruby", "-e", "require 'redis'"], "ruby-redis")
        self.run_script(["ruby", "-W0", self.script("script_ruby.rb")] + self.where("ruby"))

    def test_php(self):
        self.need(["php", "-r", "exit(extension_loaded('redis') ? 0 : 1);"], "php-redis")
        self.run_script(["php", self.script("script_php.php")] + self.where("php"))

    def test_perl(self):
        self.need(["perl", "-MRedis", "-e", "1"], "libredis-perl")
        self.run_script(["perl", self.script("script_perl.pl")] + self.where("perl"))

    def run_node(self, client, table, protocol=None):
        install_npm_clients(self)
        words = ["node", self.script("script_node.js"), client] + self.where(table)
        self.run_script(words + ([protocol] if protocol else []),
                        {"NODE_PATH": os.path.join(NPM, "node_modules")})

    def test_ioredis(self):
        self.run_node("ioredis", "ioredis")

    def test_iovalkey(self):
        self.run_node("iovalkey", "iovalkey")

    def test_node_redis(self):
        self.run_node("redis", "noderedis")

    def test_node_redis_with_resp3(self):
        self.run_node("redis", "noderedis3", "3")

    @not_with_local_reads("a connection sees its own writes alone")
    def test_node_redis_cache_never_goes_stale(self):
        install_npm_clients(self)
        done = run(["node", self.script("cache_node.js")] + self.where("cached"),
                   env={**os.environ, "NODE_PATH": os.path.join(NPM, "node_modules")})
        self.assertEqual("ok cached ok rows ok scans ok keyspaces ok ttl", done.stdout.replace("\n", " ").strip())


class RedisToolsTest(CellarTest):
    """redis-cli and redis-benchmark."""

    OPTIONS = {"save": ""}

    def setUp(self):
        super().setUp()
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")

    def cli(self, *words, **options):
        done = run(["redis-cli", "-p", str(self.server.port)] + list(words), **options)
        return done.stdout

    def feed(self, words, text):
        return subprocess.run(["redis-cli", "-p", str(self.server.port)] + words, input=text, capture_output=True,
                              text=True, timeout=SCRIPT_SECONDS_MAX, check=False).stdout

    def test_commands_of_a_file(self):
        seen = self.feed([], "CPUT t r f:a 1 f:b 2\nCROW t r\nCGET t r f:c\n")
        self.assertEqual("OK\nf:a\n1\nf:b\n2\n\n", seen)

    def test_resp3(self):
        self.cli("CPUT", "t", "r", "f:a", "1", "f:n", "7", "AS", "i64")
        self.assertEqual('1# "f:a" => "1"\n2# "f:n" => (integer) 7\n', self.cli("-3", "--no-raw", "CROW", "t", "r"))

    def test_json(self):
        self.cli("CPUT", "t", "r", "f:a", "1", "f:n", "7", "AS", "i64")
        self.assertEqual('{"f:a":"1","f:n":7}', self.cli("-3", "--json", "CROW", "t", "r").strip())

    def test_help_and_hints_come_from_command_docs(self):
        seen = re.sub("\x1b\\[[0-9;]*m", "", self.cli("help", "CPUT"))
        self.assertIn("CPUT table row", seen)
        self.assertIn("group:", seen)

    def test_pipe(self):
        commands = "".join(f"CPUT t row{i} f:a {i}\r\n" for i in range(10_000))
        seen = self.feed(["--pipe"], commands)
        self.assertIn("errors: 0, replies: 10000", seen)
        self.assertEqual(10_000, self.run_command("CCOUNT", "t"))

    def test_pipe_counts_errors(self):
        seen = self.feed(["--pipe"], "CPUT t r f:a 1\r\nCPUT t r g:a 1\r\n")
        self.assertIn("errors: 1, replies: 2", seen)

    def test_scan_lists_tables(self):
        self.assertEqual("t\n", self.cli("--scan"))
        self.assertEqual("", self.cli("--scan", "--pattern", "x*").strip())

    def test_bigkeys_and_memkeys_end_well(self):
        self.cli("CPUT", "t", "r", "f:a", "1")
        for option in ("--bigkeys", "--memkeys"):
            seen = self.cli(option)
            self.assertIn("-------- summary -------", seen, seen)
            self.assertNotIn("rror", seen)

    def test_stat_shows_a_line(self):
        process = subprocess.Popen(["redis-cli", "-p", str(self.server.port), "--stat", "-i", "0.1"],
                                   stdout=subprocess.PIPE, text=True)
        try:
            lines = [process.stdout.readline() for _ in range(5)]
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        self.assertIn("clients blocked requests", " ".join(lines[1].split()), lines)
        self.assertRegex(lines[-1], r"^\d+ +\d")

    def test_latency_measures(self):
        process = subprocess.Popen(["redis-cli", "-p", str(self.server.port), "--latency", "-i", "1", "--raw"],
                                   stdout=subprocess.PIPE, text=True)
        seen = process.communicate(timeout=60)[0]
        self.assertRegex(seen, r"^\d+ \d+ [\d.]+ \d+")

    def test_latency_over_time(self):
        process = subprocess.Popen(["redis-cli", "-p", str(self.server.port), "--latency-history", "-i", "1", "--raw"],
                                   stdout=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        self.assertRegex(line, r"^\d+ \d+ [\d.]+ \d+")

    def test_benchmark_of_cput(self):
        seen = run(["redis-benchmark", "-p", str(self.server.port), "-P", "16", "-n", "20000", "-r", "1000", "-q",
                    "CPUT", "t", "__rand_int__", "f:q", "v"]).stdout
        self.assertIn("requests per second", seen)
        self.assertNotIn("rror from server", seen)
        self.assertTrue(900 < self.run_command("CCOUNT", "t") <= 1000)

    def test_benchmark_ping(self):
        seen = run(["redis-benchmark", "-p", str(self.server.port), "-n", "5000", "-t", "ping", "--csv"]).stdout
        self.assertIn('"PING_MBULK"', seen)


class ExporterTest(CellarTest):
    """prometheus-redis-exporter scrapes INFO, CONFIG, SLOWLOG, LATENCY."""

    def test_scrape(self):
        if shutil.which("prometheus-redis-exporter") is None:
            self.skipTest("prometheus-redis-exporter is not installed")
        self.run_command("CONFIG", "SET", "maxmemory", "1gb")
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("CPUT", "t", "r", "f:a", "1")
        for row in ("r", "r", "none"):
            self.run_command("CGET", "t", row, "f:a")
        with self.assertRaises(redis.ResponseError):
            self.run_command("CGET", "t", "r", "nosuch:a")
        self.server.settle()  # INFO is of this node
        port = free_port()
        process = subprocess.Popen(
            ["prometheus-redis-exporter", "-redis.addr", f"redis://127.0.0.1:{self.server.port}",
             "-web.listen-address", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = []
        reader = threading.Thread(target=lambda: said.extend(process.stdout), daemon=True)
        reader.start()
        try:
            text = self.scrape(port, process)
        finally:
            process.kill()
            process.wait()
            reader.join()
            process.stdout.close()
        for line in ("redis_up 1", "redis_connected_clients", "redis_memory_used_bytes", "redis_uptime_in_seconds",
                     'redis_db_keys{db="db0"} 1', "redis_commands_processed_total", "redis_aof_enabled 1"):
            self.assertIn(line, text)
        self.assertIn("redis_exporter_last_scrape_error{err=\"\"} 0", text)
        # Of each command INFO counts what its node has carried out itself.
        if "CELLAR_FOLLOWER" not in os.environ:
            self.check_dashboard(text)

    def check_dashboard(self, text):
        """The metrics that the panels of the exporter's stock dashboard draw."""
        values = {}
        for line in text.split("\n"):
            if line.startswith("redis_"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        for name in ("redis_uptime_in_seconds", "redis_db_keys_expiring{db=\"db0\"}", "redis_expired_keys_total",
                     "redis_evicted_keys_total", "redis_blocked_clients", "redis_connected_slaves",
                     "redis_config_maxclients", "redis_rejected_connections_total", "redis_start_time_seconds"):
            self.assertIn(name, values)
        for name in ("redis_connected_clients", "redis_memory_used_bytes", "redis_memory_used_rss_bytes",
                     "redis_net_input_bytes_total", "redis_net_output_bytes_total",
                     "redis_commands_duration_seconds_total{cmd=\"cput\"}",
                     "redis_latency_percentiles_usec{cmd=\"cget\",quantile=\"99\"}", "redis_process_id"):
            self.assertGreater(values[name], 0, name)
        # The kernel tells the one from the other by ticks, of which so young a server may have seen none as a user.
        self.assertGreater(values["redis_cpu_user_seconds_total"] + values["redis_cpu_sys_seconds_total"], 0)
        for name, value in (("redis_memory_max_bytes", 1 << 30), ("redis_commands_total{cmd=\"cget\"}", 4),
                            ("redis_commands_total{cmd=\"cput\"}", 1), ("redis_keyspace_hits_total", 2),
                            ("redis_commands_failed_calls_total{cmd=\"cget\"}", 1), ("redis_keyspace_misses_total", 1),
                            ("redis_errors_total{err=\"NOFAMILY\"}", 1)):
            self.assertEqual(values[name], value, name)

    def scrape(self, port, process):
        for _ in range(200):
            self.assertIsNone(process.poll())
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                    return answer.read().decode()
            except OSError:
                threading.Event().wait(0.1)
        raise AssertionError("the exporter does not answer")


if __name__ == "__main__":
    unittest.main()
