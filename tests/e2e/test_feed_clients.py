"""Feeds as the clients that people use read them, by their own calls for streams; and the consumers of
cellar-feeds(7), as they stand there, stopped and started again.

A client that is not installed is skipped and named, as in test_clients.py.
"""

import json
import os
import random
import re
import signal
import subprocess
import tempfile
import time
import unittest

from cellar_server import ROOT, CellarTest, wait_until
from feed_model import FeedModel, as_sent, read_to_end, table_cells
from test_clients import CLIENTS, NPM, install_npm_clients, run

PAGE = os.path.join(ROOT, "conf", "man", "cellar-feeds.7")


def scripts():
    """The consumers of the page: {language: text}."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    found = re.findall(r'^\.\\" SCRIPT (\S+)\n\.Bd -literal[^\n]*\n(.*?)^\.Ed$', page, re.DOTALL | re.MULTILINE)
    return {language: text.replace("\\&", "").replace("\\e", "\\") for language, text in found}


class FeedClientTest(CellarTest):
    """Client libraries."""

    OPTIONS = {"save": ""}

    def setUp(self):
        super().setUp()
        self.client = as_sent(self.server.client())
        for line in ("FLUSHALL", "TABLE CREATE web FAMILY anchor FAMILY n TYPE i64", "FEED CREATE links ON 1 web",
                     "CPUT web r1 anchor:a one TS 1 anchor:b two TS 1 n:x 7 TS 1", "CPUT web r2 anchor:a three TS 2 TTL 1h",
                     "CINCRBY web r1 n:x 5", "CDEL web r1 anchor:a", "CDELRANGE web PREFIX r2"):
            self.client.execute_command(*line.split())
        self.addCleanup(self.client.execute_command, "FEED", "DROP", "links")

    def check(self, words, **options):
        done = run(words, **options)
        self.assertEqual(0, done.returncode, done.stdout)
        found = {line["call"]: line["found"] for line in map(json.loads, done.stdout.strip().split("\n"))}
        entries = [[id.decode(), {name.decode(): value.decode() for name, value in zip(flat[::2], flat[1::2])}]
                   for id, flat in read_to_end(self.client, "links")]
        self.assertGreater(len(entries), 7)
        self.assertEqual(entries, [list(entry) for entry in found["xread"]])
        self.assertEqual(entries, [list(entry) for entry in found["xrange"]])
        self.assertEqual(entries[:-3:-1], [list(entry) for entry in found["xrevrange"]])
        self.assertEqual(len(entries), found["xlen"])
        self.assertEqual([len(entries), entries[-1][0], entries[-1][0]], found["xinfo"])
        # By a group: two are acknowledged, two go to bob, and eve takes the oldest three of those that are left.
        ids = [id for id, _ in entries]
        self.assertEqual(entries, [list(entry) for entry in found["xreadgroup"]])
        self.assertEqual(2, found["xack"])
        self.assertEqual([len(ids) - 2, ids[2:]], found["xpending"])
        self.assertEqual(ids[2:4], found["xclaim"])
        self.assertEqual(ids[2:5], found["xautoclaim"])
        self.assertEqual(ids[2:5], found["xhistory"])
        self.assertEqual(["ann", "bob", "eve"], found["consumers"])
        self.assertEqual([0], found["lag"])

    def where(self):
        return ["127.0.0.1", str(self.server.port), "links"]

    def script(self, name):
        return os.path.join(CLIENTS, name)

    def need(self, words, what):
        if run(words).returncode != 0:
            self.skipTest(f"{what} is not installed")

    def check_node(self, library, *protocol):
        install_npm_clients(self)
        self.check(["node", self.script("feed_node.js"), library] + self.where() + list(protocol),
                   env={**os.environ, "NODE_PATH": os.path.join(NPM, "node_modules")})

    def test_redis_py(self):
        self.check(["/usr/bin/python3", self.script("feed_python.py")] + self.where())

    def test_ioredis(self):
        self.check_node("ioredis")

    def test_iovalkey(self):
        self.check_node("iovalkey")

    def test_node_redis(self):
        self.check_node("redis")

    def test_node_redis_with_resp3(self):
        self.check_node("redis", "3")

    def test_ruby(self):
        self.need(["/bin/sh", "-c", "ruby -e \"require 'redis'\""], "ruby-redis")
        self.check(["ruby", "-W0", self.script("feed_ruby.rb")] + self.where())

    def test_php(self):
        self.need(["/bin/sh", "-c", "php -r \"exit(extension_loaded('redis') ? 0 : 1);\""], "php-redis")
        self.check(["php", self.script("feed_php.php")] + self.where())


class ConsumerTest(CellarTest):
    """The consumers of the manual."""

    OPTIONS = {"save": ""}

    def check(self, language, words, environment=None):
        seed = random.randrange(1 << 30)
        chance = random.Random(seed)
        table = "t" + language
        client = as_sent(self.server.client())
        client.execute_command("TABLE", "CREATE", table, "FAMILY", "f")
        client.execute_command("FEED", "CREATE", "links", "ON", 1, table)
        self.addCleanup(client.execute_command, "FEED", "DROP", "links")
        self.server.settle()  # another program reads it
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, "consumer")
        with open(path, "w", encoding="utf-8") as file:
            file.write(scripts()[language])
        lines = []
        written = 0
        for life in range(6):
            out = os.path.join(directory.name, f"out{life}")
            with open(out, "wb") as file:
                process = subprocess.Popen(words + [path, str(self.server.port)], cwd=directory.name, stdout=file,
                                           stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})})
            for _ in range(chance.randrange(40, 200)):
                written += 1
                client.execute_command("CPUT", table, f"r{chance.randrange(30)}", f"f:q{chance.randrange(3)}", written)
            if life == 5:
                self.wait_for(out, str(written))
            else:
                time.sleep(chance.random() * 1.5)
            process.send_signal(signal.SIGKILL)
            process.wait()
            with open(out, encoding="utf-8") as file:
                lines += [line for line in file.read().split("\n")[:-1]]
        # Each entry at least once, in order but for what comes again after a start.
        model, last = FeedModel(), (0, 0)
        for line in lines:
            self.assertTrue(line.startswith("{"), line)
            entry = json.loads(line)
            id = entry["id"]
            at = tuple(map(int, id.split("-")))
            if at > last:
                flat = [word for pair in entry["fields"].items() for word in pair]
                model.apply(id, flat)
                last = at
        self.assertEqual(1 + written, model.applied, f"seed {seed}")
        self.assertEqual(table_cells(client, table), model.cells(table), f"seed {seed}")

    def wait_for(self, path, value):
        def written():
            with open(path, encoding="utf-8") as file:
                return file.read()
        wait_until(lambda: f'"{value}"' in written(), lambda: f"{value} comes: {written()[-1000:]}")

    def test_the_consumer_in_python(self):
        self.check("python", ["/usr/bin/python3"])

    def test_the_consumer_in_javascript(self):
        install_npm_clients(self)
        self.check("javascript", ["node"], {"NODE_PATH": os.path.join(NPM, "node_modules")})


if __name__ == "__main__":
    unittest.main()
