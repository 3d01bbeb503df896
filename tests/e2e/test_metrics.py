"""cellar-web's GET /metrics: the token, the text format, the figures beside what the server says; the dashboard and
the alerts of conf/ name nothing that is not served."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

from cellar_server import ROOT, CellarServer, binary, tool, wait_until

TOKEN = "a token"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'({NAME})(?:\{{(.*)\}})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
# Those that cellar-web(1) names.
RIGHTS = ("+ping +select +info +latency|histogram +table|info +family|info +index|list +index|info +feed|list +feed|info "
          "+xinfo|groups +snapshot|list +snapshot|info ~*").split()


def parsed(text):
    """{name: (type, {labels: value})} of the text format, strictly: AssertionError for what breaks its rules."""
    families, name, kind, samples = {}, None, None, None
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if line.startswith("# ") and line.split(" ")[1] not in ("HELP", "TYPE"):
            continue  # a comment
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in families, f"{name} comes twice"
            assert re.fullmatch(NAME, name), name
            kind = None
        elif line.startswith("# TYPE "):
            _, _, named, kind = line.split(" ")
            assert named == name and kind in ("gauge", "counter", "histogram"), line
            samples = {}
            families[name] = (kind, samples)
        else:
            match = SAMPLE.fullmatch(line)
            assert match and kind, line
            sample, inner, value = match.groups()
            allowed = {name + suffix for suffix in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
            assert sample in allowed, line
            labels, rest = [], inner or ""
            while rest:
                label = LABEL.match(rest)
                assert label, line
                labels.append((label.group(1), label.group(2)))
                rest = rest[label.end():]
            assert len({key for key, _ in labels}) == len(labels), line
            place = (sample, tuple(labels))
            assert place not in samples, f"{line} comes twice"
            samples[place] = float(value)
    return families


def value(families, name, **labels):
    """The value of one sample, or None."""
    _, samples = families.get(name, (None, {}))
    return samples.get((name, tuple(labels.items())))


class MetricsTest(unittest.TestCase):
    def setUp(self):
        self.server = CellarServer(save="")
        self.server.start()
        self.addCleanup(self.server.close if hasattr(self.server, "close") else self.server.stop)
        self.redis = self.server.client()
        self.addCleanup(self.redis.close)
        for command in ('TABLE CREATE web FAMILY f FAMILY g TYPE u32', 'INDEX CREATE web i ON 1 f:a',
                        'CPUT web r1 f:a 1 g:n 5', 'CPUT web r2 f:a 2 AS i64', 'FEED CREATE changes ON 1 web',
                        'XGROUP CREATE changes mail 0', 'CPUT web r3 f:a 3', 'WAITAOF 1 0 10000', 'SNAPSHOT CREATE s1',
                        'CGET web r1 f:a', 'CGET web none f:a'):
            self.redis.execute_command(*command.split())
        for wrong in (["CGET", "none", "r", "f:a"], ["CPUT", "web", "r", "g:n", "x"]):
            with self.assertRaises(Exception):
                self.redis.execute_command(*wrong)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.token_file = os.path.join(self.folder.name, "token")
        with open(self.token_file, "w", encoding="utf-8") as file:
            file.write(TOKEN + "\nnot this line\n")

    def web(self, *options):
        """cellar-web beside the server; its address."""
        process = subprocess.Popen([tool("cellar-web"), "-p", str(self.server.port), "--listen", "0", *options],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.started = process
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process.stdout.readline().strip()

    def ask(self, address, token=TOKEN, path="metrics"):
        """(status, body)"""
        request = urllib.request.Request(address + path, headers={} if token is None else {"Authorization": "Bearer " + token})
        try:
            with urllib.request.urlopen(request) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def scrape(self, address, until=lambda families: True):
        """A scrape for which `until` holds: the model's figures come when they have been gathered."""
        families = {}

        def came():
            status, text = self.ask(address)
            self.assertEqual(200, status)
            families.clear()
            families.update(parsed(text))
            return until(families)
        wait_until(came, lambda: families, 0.05)
        return families

    def test_the_token(self):
        address = self.web("--metrics-token-file", self.token_file)
        self.assertEqual(200, self.ask(address)[0])
        for wrong in (None, "", "a toke", "a token ", "a tokem", "A token"):
            self.assertEqual(401, self.ask(address, wrong)[0], wrong)
        self.assertEqual(404, self.ask(self.web())[0])  # off unless a token is given
        for words in (["--metrics-token-file", "/none"], ["--metrics-token-file", os.devnull]):
            done = subprocess.run([tool("cellar-web"), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False)
            self.assertEqual(2, done.returncode)
            self.assertEqual(1, done.stderr.count("\n"), done.stderr)

    def test_figures(self):
        address = self.web("--metrics-token-file", self.token_file)
        families = self.scrape(address, lambda found: "cellar_snapshot_held_bytes" in found)
        self.assertEqual(1, value(families, "cellar_up"))
        self.assertEqual(1, value(families, "cellar_role", role="master"))
        self.assertEqual(3, value(families, "cellar_table_rows", keyspace="0", table="web"))
        self.assertEqual(3, value(families, "cellar_commands_total", command="cput") - 1)
        self.assertEqual(1, value(families, "cellar_errors_total", error="NOTABLE"))
        self.assertEqual(1, value(families, "cellar_index_left_out", keyspace="0", table="web", index="i"))
        self.assertEqual(1, value(families, "cellar_index_ready", keyspace="0", table="web", index="i"))
        self.assertEqual(2, value(families, "cellar_feed_group_lag", keyspace="0", feed="changes", group="mail"))
        self.assertEqual(4, value(families, "cellar_family_cells", keyspace="0", table="web", family="f") + 1)
        self.assertGreater(value(families, "cellar_snapshot_created_timestamp_seconds", keyspace="0", snapshot="s1"), 1e9)
        self.assertGreater(value(families, "cellar_feed_oldest_timestamp_seconds", keyspace="0", feed="changes"), 1e9)
        self.assertEqual("counter", families["cellar_keyspace_hits"][0])
        self.assertEqual("gauge", families["cellar_used_memory"][0])

    def test_latencies_are_a_histogram(self):
        families = self.scrape(self.web("--metrics-token-file", self.token_file))
        kind, samples = families["cellar_command_duration_seconds"]
        self.assertEqual("histogram", kind)
        for (name, labels), calls in samples.items():
            if not name.endswith("_count"):
                continue
            command = dict(labels)["command"]
            buckets = [(dict(other)["le"], count) for (sample, other), count in samples.items()
                       if sample.endswith("_bucket") and dict(other)["command"] == command]
            bounds = [float(bound) for bound, _ in buckets]
            self.assertEqual(sorted(bounds), bounds)
            self.assertEqual(float("inf"), bounds[-1])
            self.assertEqual(sorted(count for _, count in buckets), [count for _, count in buckets])
            self.assertEqual(calls, buckets[-1][1])
            self.assertIn(("cellar_command_duration_seconds_sum", labels), samples)

    def test_names_of_any_bytes(self):
        self.redis.execute_command("KEYSPACE", "CREATE", "crew")
        self.redis.execute_command("TABLE", "CREATE", "crew/t", "FAMILY", "f")
        self.redis.execute_command("XGROUP", "CREATE", "changes", b'q"\\\n\xff', "0")
        families = self.scrape(self.web("--metrics-token-file", self.token_file),
                               lambda found: "cellar_snapshot_held_bytes" in found)
        self.assertEqual(0, value(families, "cellar_table_rows", keyspace="crew", table="t"))
        self.assertEqual({'q\\"\\\\\\n\\\\xff', "mail"},
                         {dict(labels)["group"] for _, labels in families["cellar_feed_group_lag"][1]})

    def test_a_user_of_its_own(self):
        self.redis.execute_command("ACL", "SETUSER", "metrics", "on", ">secret", *RIGHTS)
        self.redis.execute_command("ACL", "SETUSER", "default", ">other", "resetpass", "off")
        password = os.path.join(self.folder.name, "password")
        with open(password, "w", encoding="utf-8") as file:
            file.write("secret\n")
        address = self.web("--metrics-token-file", self.token_file, "--metrics-user", "metrics",
                           "--metrics-password-file", password)
        families = self.scrape(address, lambda found: "cellar_snapshot_held_bytes" in found)
        self.assertEqual(1, value(families, "cellar_up"))
        self.assertIn("cellar_feed_group_lag", families)
        self.assertIn("cellar_index_entries", families)
        self.assertIn("cellar_family_cells", families)
        address = self.web("--metrics-token-file", self.token_file)
        self.assertEqual(0, value(self.scrape(address), "cellar_up"))
        self.assertIn("# 127.0.0.1", self.ask(address)[1])

    def test_a_server_that_goes_and_comes(self):
        address = self.web("--metrics-token-file", self.token_file)
        self.assertEqual(1, value(self.scrape(address), "cellar_up"))
        self.server.kill()
        self.assertEqual(0, value(self.scrape(address), "cellar_up"))
        self.server.start()
        self.assertEqual(1, value(self.scrape(address, lambda found: value(found, "cellar_up") == 1), "cellar_up"))

    @unittest.skipIf(os.path.basename(os.path.dirname(os.path.realpath(binary()))) != "release", "measures the release build")
    def test_a_scrape_each_second_costs_less_than_half_a_hundredth_of_a_core(self):
        for number in range(20):
            for command in (f"TABLE CREATE t{number} FAMILY f", f"INDEX CREATE t{number} i ON 1 f:a"):
                self.redis.execute_command(*command.split())
        address = self.web("--metrics-token-file", self.token_file)
        self.scrape(address, lambda found: "cellar_snapshot_held_bytes" in found)
        processes = (self.server.process.pid, self.started.pid)

        def cpu_seconds():
            """Of both, threads that have ended among them: of the processor, not of a clock on the wall."""
            ticks = 0
            for pid in processes:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
            return ticks / os.sysconf("SC_CLK_TCK")

        before, scrapes = cpu_seconds(), 300
        for _ in range(scrapes):
            self.ask(address)
        self.assertLess((cpu_seconds() - before) / scrapes, 0.005)

    def test_the_dashboard_and_the_alerts_name_what_is_served(self):
        families = self.scrape(self.web("--metrics-token-file", self.token_file),
                               lambda found: "cellar_snapshot_held_bytes" in found)
        served = set(families) | {name + "_bucket" for name, (kind, _) in families.items() if kind == "histogram"}
        with open(os.path.join(ROOT, "conf", "grafana", "cellar.json"), encoding="utf-8") as file:
            dashboard = json.load(file)
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        with open(os.path.join(ROOT, "conf", "prometheus", "cellar.rules.yml"), encoding="utf-8") as file:
            expressions += re.findall(r"^ +expr: (.*)$", file.read(), re.MULTILINE)
        self.assertGreater(len(expressions), 20)
        for expression in expressions:
            named = set(re.findall(r"cellar_\w+", expression))
            self.assertTrue(named and named <= served, f"{expression}: {named - served}")

    def test_the_alerts_are_sound(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed")
        rules = os.path.join(ROOT, "conf", "prometheus", "cellar.rules.yml")
        done = subprocess.run(["promtool", "check", "rules", rules], capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
