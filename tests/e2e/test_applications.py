"""The applications of tools/clients/*/examples: a time series with rollups from a feed, a queue of jobs, a wide table in a
web page. Each is there twice, with the client and with raw commands: both give the same, in RESP2 and RESP3, and with the
client it takes at most half the lines."""

import asyncio
import glob
import html
import http.server
import importlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
import threading
import tokenize
import unittest
import urllib.error
import urllib.request

import redis

from cellar_server import ROOT, CellarServer
from test_node_client import installed

CLIENTS = os.path.join(ROOT, "tools", "clients")
PYTHON, NODE = (os.path.join(CLIENTS, language, "examples") for language in ("python", "node"))
RUN = os.path.join(ROOT, "tests", "e2e", "clients", "applications.js")
sys.path[:0] = [os.path.join(CLIENTS, "python"), PYTHON]

import page_html  # noqa: E402

NEWEST_REDIS_PY = os.path.join(ROOT, "build", "pip-python")


def code_lines(path):
    """Lines with code: no blank ones, comments, docstrings."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".js"):
        return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))
    found, begins = set(), True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            begins = True
        elif token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER):
            if not (begins and token.type == tokenize.STRING):
                found.update(range(token.start[0], token.end[0] + 1))
            begins = False
    return len(found)


class Called:
    """An object whose calls are awaited if they are to be, so that one drive is for both kinds."""

    def __init__(self, of):
        self.of, self.loop = of, asyncio.new_event_loop()

    def __getattr__(self, name):
        def call(*words):
            found = getattr(self.of, name)(*words)
            return self.loop.run_until_complete(found) if inspect.isawaitable(found) else found
        return call


class Applications(unittest.TestCase):
    """What each of its calls gives. clients/applications.js has the same for Node.js."""

    maxDiff = None

    def setUp(self):
        self.pages_url = None

    def serve(self):
        server = CellarServer(save="")
        self.addCleanup(server.close)
        server.start()
        self.redis = server.client()
        self.addCleanup(self.redis.close)
        return f"redis://127.0.0.1:{server.port}"

    def serve_pages(self):
        """One server for all, since cursors tell one table from another."""
        if self.pages_url is None:
            self.pages_url = self.serve()
            self.fill()
        return self.pages_url

    def on_disk(self):
        self.redis.execute_command("WAITAOF", 1, 0, 60000)  # a feed tells what is on disk

    def fill(self):
        """The table of the pages."""
        run = self.redis.execute_command
        run("TABLE", "CREATE", "t", "FAMILY", "w", "VERSIONS", 3, "FAMILY", "n", "TYPE", "u64")
        for i in range(45):
            run("CPUT", "t", f"r{i:03}", "n:i", i, "w:a", "<b>", "TS", 5)
        for i in range(70):
            run("CPUT", "t", "r005", f"w:c{i:03}", i / 2, "AS", "f64", "TS", i + 1)
        run("CPUT", "t", "r005", "w:c001", "true", "AS", "bool", "TS", 100, "w:c002", "inf", "AS", "f32", "TS", 100,
            "w:c003", "00112233-4455-6677-8899-aabbccddeeff", "AS", "uuid", "TS", 100, "w:c004", "ü", "AS", "string", "TS", 100)

    def timeseries(self, app):
        app.create()
        for i in range(300):
            app.record(f"h{i % 3}", 1764000000 + 60 * i, {"load": i / 8, "temp": 40 + i % 7} if i % 2 else {"load": i / 8})
        self.on_disk()
        app.roll_up("ann")
        app.record("h1", 1764000001, {"load": 99})
        self.on_disk()
        app.roll_up("ann")
        return [app.newest("h1", 3), app.newest("none", 3), app.chart("h1", "load"), app.chart("h2", "temp"),
                app.report("temp"), app.report("none")]

    def jobs(self, app):
        app.create()
        told = [app.submit([("a", "mail ä", 0), ("b", "print", 5)]), app.submit([("c", "x", 0), ("a", "y", 0)]),
                app.claim("ann", 3, 10), app.claim("bob", 3, 10), app.claim("bob", 6, 10),
                app.finish("1", "bob", "no"), app.finish("1", "ann", "yes"), app.sweep(100), app.fail("2", "bob")]
        for now in range(200, 250, 10):
            told += [app.claim("bob", now, 5), app.fail("2", "bob")]
        self.on_disk()
        return told + [list(app.changes("eve")), list(app.changes("eve"))]

    def pages(self, app):
        """Every page that links lead to."""
        served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), page_html.handler(app.of))
        threading.Thread(target=served.serve_forever, daemon=True).start()
        seen, ways = {}, ["/", "/?prefix=r01", "/?before=r033", "/nowhere"]
        while ways:
            way = ways.pop()
            if way not in seen:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{served.server_port}{way}") as reply:
                        seen[way] = reply.read().decode()
                except urllib.error.HTTPError as error:
                    seen[way] = str(error.code)
                    error.close()
                ways += map(html.unescape, re.findall('href="([^"]*)"', seen[way]))
        served.shutdown()
        served.server_close()
        return seen

    # How an application is called, and its arguments behind the URL.
    KINDS = {"timeseries": ("Measurements", []), "jobs": ("Jobs", []), "pages": ("Pages", ["t"])}
    JOBS = [["1", "2"], None, ["1", "mail ä"], None, ["2", "print"], False, True, 1, "ready", ["2", "print"], "ready",
            ["2", "print"], "given up", None, "given up", None, "given up", None, "given up",
            [["1", "ready"], ["2", "ready"], ["1", "running"], ["2", "running"], ["1", "done"], ["2", "ready"],
             ["2", "running"], ["2", "ready"], ["2", "running"], ["2", "given up"]], []]

    def judge(self, application, told):
        """What nobody may get wrong, both versions least of all."""
        if application == "jobs":
            self.assertEqual(self.JOBS, told)
        elif application == "pages":
            self.assertGreater(len(told), 150)
            self.assertIn("&lt;b&gt;" if "&lt;" in told["/"] else "&#60;b&#62;", told["/"])
        else:
            self.assertEqual([["h1#1764017880", {"v:load": 37.25}],
                              ["h1#1764017700", {"v:load": 36.875, "v:temp": 41}], ["h1#1764017520", {"v:load": 36.5}]], told[0])
            self.assertEqual([490000, 21, 8.226190476190476, 99], told[2][0])
            self.assertEqual([], told[1])

    def told_by_python(self, application, module, protocol):
        url = self.serve_pages() if application == "pages" else self.serve()
        name, more = self.KINDS[application]
        app = Called(getattr(importlib.import_module(module), name)(
            url, *more, **({"protocol": 3} if protocol == 3 else {})))
        told = getattr(self, application)(app)
        app.close()
        app.loop.close()
        return json.loads(json.dumps(told))

    def test_python(self):
        protocols = [2, 3] if int(redis.__version__.split(".")[0]) >= 5 else [2]
        for application in self.KINDS:
            told = {}
            for protocol in protocols:
                for module in (application, "raw_" + application, *(["timeseries_aio"] if application == "timeseries" else [])):
                    told[module, protocol] = self.told_by_python(application, module, protocol)
            first = told[application, 2]
            self.judge(application, first)
            for which, other in told.items():
                self.assertTrue(first == other, (which, first, other))

    def test_python_in_resp3(self):
        if not os.path.isdir(os.path.join(NEWEST_REDIS_PY, "redis")):
            self.skipTest("Debian's redis-py speaks RESP2 alone, and test_python_client.py could not get a newer one")
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "Applications.test_python"], capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": NEWEST_REDIS_PY})
        self.assertEqual(0, done.returncode, done.stderr)

    def run_node(self, which, protocols):
        modules = installed(self, which)
        for application in self.KINDS:
            told = {}
            for protocol in protocols:
                for module in (application, "raw_" + application):
                    url = self.serve_pages() if application == "pages" else self.serve()
                    done = subprocess.run(["node", RUN, module, application], stdin=subprocess.DEVNULL, capture_output=True,
                                          text=True, check=False,
                                          env={**os.environ, "NODE_PATH": modules, "CELLAR_URL": url,
                                               "CELLAR_RESP": str(protocol), "CELLAR_EXAMPLES": NODE})
                    self.assertEqual((0, ""), (done.returncode, done.stderr), (module, protocol))
                    told[module, protocol] = json.loads(done.stdout)
            first = told[application, 2]
            self.judge(application, first)
            for key, other in told.items():
                self.assertTrue(first == other, (key, first, other))

    def test_node_redis_4(self):
        self.run_node("4", [2])

    def test_the_newest_node_redis(self):
        self.run_node("newest", [2, 3])

    def test_half_the_lines(self):
        for folder, ending in ((PYTHON, ".py"), (NODE, ".js")):
            for raw in glob.glob(os.path.join(folder, "raw_*" + ending)):
                name = os.path.basename(raw)[len("raw_"):-len(ending)]
                for path in glob.glob(os.path.join(folder, name + "*" + ending)):
                    self.assertLessEqual(2 * code_lines(path), code_lines(raw), path)


if __name__ == "__main__":
    unittest.main()
