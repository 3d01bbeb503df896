"""Base of tests of the tools beside the server: a server, a directory of files, and the tool run against it."""

import os
import subprocess
import tempfile

from cellar_server import CellarTest, tool

SECONDS_MAX = 300


class ToolTest(CellarTest):
    """One server for the class, one directory for each test."""

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        """Of a file in the directory."""
        return os.path.join(self.directory, name)

    def write(self, name, data):
        """A file of these bytes, or this text; its path."""
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return self.path(name)

    def run_tool(self, name, *words, status=0, port=None):
        """(stdout, stderr) of a tool that ends with `status`."""
        done = subprocess.run([tool(name), "-p", str(port or self.server.port), *words], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=SECONDS_MAX, check=False)
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode()
