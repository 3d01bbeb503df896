"""cellar-heatmap and cellar-top against a server: pictures, lines, a terminal; wrong words, no server, few rights."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest
import xml.etree.ElementTree
import zlib

from cellar_server import CellarTest, free_port, not_on_a_follower, not_with_local_reads, tool


def png_size(data):
    """Width and height, after a look at every chunk's checksum."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, size = 8, None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        at += 12 + length
    return size


class HeatToolsTest(CellarTest):
    OPTIONS = {"heat-sample": "1", "save": "", "slowlog-log-slower-than": "0"}

    def setUp(self):
        super().setUp()
        client = self.redis
        client.execute_command("TABLE", "CREATE", "planes", "FAMILY", "f")
        pipe = client.pipeline(transaction=False)
        for number in range(2000):
            pipe.execute_command("CPUT", "planes", "key%06d" % number, "f:q", "<b>&")
            pipe.execute_command("CGET", "planes", "key%06d" % (number % 50), "f:q")
        pipe.execute()
        client.execute_command("ACL", "SETUSER", "few", "on", ">pw", "+@all", "%R~other:*")
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def run_tool(self, name, *words, status=0, port=None, **environment):
        done = subprocess.run([tool(name), "-p", str(port or self.server.port), *words], capture_output=True, timeout=60,
                              env={**os.environ, **environment}, check=False)
        self.assertEqual(done.returncode, status, (words, done.stderr, done.stdout[-500:]))
        return done.stdout.decode(), done.stderr.decode()


class TestHeatmap(HeatToolsTest):
    def test_files(self):
        for metric in ("reads", "writes", "bytes"):
            for theme in ("dark", "light"):
                self.run_tool("cellar-heatmap", "planes", "--metric", metric, "--theme", theme, "--svg", self.path("a.svg"),
                              "--png", self.path("a.png"))
                root = xml.etree.ElementTree.parse(self.path("a.svg")).getroot()
                self.assertTrue(root.tag.endswith("svg"))
                self.assertGreater(len(list(root)), 10)
                with open(self.path("a.png"), "rb") as file:
                    width, height = png_size(file.read())
                self.assertEqual((width, height), (2 * int(root.get("width")), 2 * int(root.get("height"))))

    @not_with_local_reads("HEAT counts what each node executes")
    def test_terminal(self):
        out, _ = self.run_tool("cellar-heatmap", "planes", "--ranges", "16")
        self.assertIn("reads of planes: 2.0k rows", out)
        self.assertNotIn("\x1b", out)
        self.assertTrue(all(len(line) <= 80 for line in out.splitlines()), out)
        self.assertIn("100.0 %", out)  # the 50 rows are one range
        out, _ = self.run_tool("cellar-heatmap", "planes", "--colour", "true", "--width", "200", "--height", "50")
        self.assertIn("\x1b[38;2;", out)
        out, _ = self.run_tool("cellar-heatmap", "planes", "--colour", "256", "--theme", "light")
        self.assertIn("\x1b[38;5;", out)

    def test_standard_output(self):
        out, _ = self.run_tool("cellar-heatmap", "planes", "--svg", "-")
        self.assertTrue(out.startswith("<svg"))

    def test_what_goes_wrong(self):
        for words, status, text in (
                (["none"], 1, "no table"), (["planes", "--step", "90s"], 1, "whole minutes"),
                (["planes", "--from", "x"], 1, "is not a time"), (["planes", "--svg", "/nowhere/x"], 1, "cannot be written"),
                (["planes", "--ranges", "0"], 2, "--ranges"), (["planes", "--metric", "heat"], 2, "--metric"),
                ([], 2, "table"), (["planes", "--sgv", "x"], 2, "did you mean '--svg'")):
            _, error = self.run_tool("cellar-heatmap", *words, status=status)
            self.assertIn(text, error)
        _, error = self.run_tool("cellar-heatmap", "planes", status=2, port=free_port())
        self.assertIn("cellar-heatmap:", error)
        _, error = self.run_tool("cellar-heatmap", "planes", "--user", "few", "-a", "pw", status=1)
        self.assertIn("NOPERM", error)
        if os.path.exists("/dev/full"):
            self.run_tool("cellar-heatmap", "planes", "--svg", "/dev/full", status=1)


@not_on_a_follower("it shows the INFO of its node, which counts what that node executes")
class TestTop(HeatToolsTest):
    def test_once(self):
        out, _ = self.run_tool("cellar-top", "--once", "--interval", "0.2")
        for part in ("cellar-top  127.0.0.1", "commands ", "memory ", "log  ", "snapshot ", "COMMAND", "TABLE", "0/planes",
                     "HOTTEST RANGES", "SLOW LOG"):
            self.assertIn(part, out)
        self.assertTrue(all(len(line) <= 80 for line in out.splitlines()), out)
        self.assertNotIn("\x1b", out)
        out, _ = self.run_tool("cellar-top", "--once", "--interval", "0.2", "--width", "200", "--sort", "name")
        self.assertTrue(all(len(line) <= 200 for line in out.splitlines()))

    def test_rates(self):
        top = subprocess.Popen([tool("cellar-top"), "-p", str(self.server.port), "--once", "--interval", "1"],
                               stdout=subprocess.PIPE)
        while top.poll() is None:
            self.redis.execute_command("CGET", "planes", "key000001", "f:q")
        out = top.stdout.read().decode()
        top.stdout.close()
        line = next(line for line in out.splitlines() if line.startswith("cget"))
        self.assertNotEqual(line.split()[1], "0.0")

    def test_few_rights(self):
        out, _ = self.run_tool("cellar-top", "--once", "--interval", "0.1", "--user", "few", "-a", "pw")
        self.assertIn("COMMAND", out)
        self.assertNotIn("planes", out)

    def test_what_goes_wrong(self):
        self.run_tool("cellar-top", "--once", status=2, port=free_port())
        self.assertIn("no terminal", self.run_tool("cellar-top", status=2)[1])
        self.assertIn("--interval", self.run_tool("cellar-top", "--interval", "0", status=2)[1])
        self.run_tool("cellar-top", "--once", "-a", "wrong", "--user", "few", status=2)

    def terminal(self, columns, lines, *words):
        child, descriptor = pty.fork()
        if child == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(tool("cellar-top"), ["cellar-top", "-p", str(self.server.port), "--interval", "0.2", *words])
        fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        os.kill(child, signal.SIGWINCH)
        return child, descriptor

    def wait_for(self, descriptor, text, seconds=300):
        seen, deadline = b"", time.time() + seconds
        while text not in seen and time.time() < deadline:
            if select.select([descriptor], [], [], 0.2)[0]:
                try:
                    seen += os.read(descriptor, 65536)
                except OSError:
                    break
        self.assertIn(text, seen)

    def test_in_a_terminal(self):
        for columns, lines in ((80, 24), (200, 60), (20, 5)):
            child, descriptor = self.terminal(columns, lines)
            self.wait_for(descriptor, b"cellar-top")
            os.write(descriptor, b"cnt ")
            self.wait_for(descriptor, b"held"[:4])
            os.write(descriptor, b"q")
            deadline = time.time() + 300
            while select.select([descriptor], [], [], 0.2)[0] and time.time() < deadline:
                try:
                    if not os.read(descriptor, 65536):
                        break
                except OSError:
                    break
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            os.close(descriptor)


if __name__ == "__main__":
    unittest.main()
