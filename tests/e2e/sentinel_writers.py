"""ioredis and node-redis that write by what Sentinels tell them, for tests in which leaders go."""

import os
import subprocess
import threading

from test_clients import NPM, install_npm_clients

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients", "sentinel_node.js")


class NodeWriters:
    """Both, each with rows of its own (`<library>-<n>`, f:a) in `table`, until the test ends."""

    LIBRARIES = ("ioredis", "redis")

    def __init__(self, test, ports, name, table):
        install_npm_clients(test)
        self.test = test
        self.said = {library: [] for library in self.LIBRARIES}
        self.processes = {library: subprocess.Popen(
            ["node", SCRIPT, library, ",".join(map(str, ports)), name, table], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "NODE_PATH": os.path.join(NPM, "node_modules")}) for library in self.LIBRARIES}
        self.readers = [threading.Thread(target=self.read, args=(library,)) for library in self.LIBRARIES]
        for reader in self.readers:
            reader.start()
        test.addCleanup(self.stop)

    def read(self, library):
        self.said[library].extend(iter(self.processes[library].stdout.readline, ""))

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
