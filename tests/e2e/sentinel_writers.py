"""Clients of several languages that write by what Sentinels tell them, for tests in which leaders go."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from test_clients import NPM, install_npm_clients

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients")


class Writers:
    """Each of LIBRARIES with rows of its own (`<library>-<n>`, f:a) in `table`, until the test ends."""

    LIBRARIES = ()

    def command(self, test):
        """What is run, before its arguments; skips the test where that cannot be had."""
        raise NotImplementedError

    def __init__(self, test, ports, name, table):
        command = self.command(test)
        self.test = test
        self.said = {library: [] for library in self.LIBRARIES}
        self.times = {library: [] for library in self.LIBRARIES}  # of acknowledgements
        self.processes = {library: subprocess.Popen(
            [*command, library, ",".join(map(str, ports)), name, table], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "NODE_PATH": os.path.join(NPM, "node_modules")}) for library in self.LIBRARIES}
        self.readers = [threading.Thread(target=self.read, args=(library,)) for library in self.LIBRARIES]
        for reader in self.readers:
            reader.start()
        test.addCleanup(self.stop)

    def read(self, library):
        for line in iter(self.processes[library].stdout.readline, ""):
            self.said[library].append(line)
            if line.startswith("acknowledged"):
                self.times[library].append(time.monotonic())

    def gap(self, library, begin):
        """The longest time without an acknowledgement from `begin` on."""
        times = [begin] + [at for at in list(self.times[library]) if at > begin]
        return max(b - a for a, b in zip(times, times[1:]))

    def rows(self, library):
        """Numbers of the rows that it was told are written."""
        return [int(line.split()[1]) for line in list(self.said[library]) if line.startswith("acknowledged")]

    def wait(self, more=20):
        """Until each has written so many more."""
        before = {library: len(self.rows(library)) for library in self.LIBRARIES}
        for library in self.LIBRARIES:
            self.test.wait_until(lambda library=library: len(self.rows(library)) >= before[library] + more,
                                 lambda library=library: library + ": " + "".join(self.said[library][-20:]))

    def stop(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
        for reader in self.readers:
            reader.join()
        for process in self.processes.values():
            process.stdin.close()
            process.stdout.close()


class NodeWriters(Writers):
    LIBRARIES = ("ioredis", "redis", "redis3")

    def command(self, test):
        install_npm_clients(test)
        return ["node", os.path.join(SCRIPTS, "sentinel_node.js")]


class PythonWriters(Writers):
    LIBRARIES = ("python",)

    def command(self, test):
        return [sys.executable, os.path.join(SCRIPTS, "sentinel_python.py")]


class RubyWriters(Writers):
    LIBRARIES = ("ruby",)

    def command(self, test):
        if subprocess.run(["ruby", "-e", "require 'redis'"], capture_output=True, check=False).returncode != 0:
            test.skipTest("ruby-redis is not installed")
        return ["ruby", os.path.join(SCRIPTS, "sentinel_ruby.rb")]


class HiredisWriters(Writers):
    LIBRARIES = ("hiredis",)

    def command(self, test):
        directory = tempfile.mkdtemp(prefix="cellar-hiredis-")
        test.addCleanup(shutil.rmtree, directory)
        program = os.path.join(directory, "sentinel_hiredis")
        built = subprocess.run(["g++", "-std=c++20", "-O1", os.path.join(SCRIPTS, "sentinel_hiredis.cc"), "-lhiredis",
                                "-o", program], capture_output=True, text=True, check=False)
        test.assertEqual(0, built.returncode, built.stderr)
        return [program]
