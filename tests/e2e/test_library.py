"""libcellar as a program outside of the project meets it: installed, found by pkg-config, linked, run."""

import os
import re
import subprocess
import tempfile
import unittest

from cellar_server import ROOT, CellarServer, binary, is_sanitized

BUILD = os.path.dirname(os.path.realpath(binary()))
PAGE = os.path.join(ROOT, "conf", "man", "libcellar.3")


def literals(page):
    """The literal blocks of an mdoc page, as they are printed."""
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"^\.Bd -literal\n(.*?)^\.Ed$", file.read(), re.MULTILINE | re.DOTALL)
    return [block.replace("\\e", "\\") for block in blocks]


@unittest.skipIf(is_sanitized(), "links the release build")
class LibraryTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = directory.name
        cls.prefix = os.path.join(directory.name, "usr")
        done = subprocess.run(["make", f"VARIANT={os.path.basename(BUILD)}", f"PREFIX={cls.prefix}",
                               f"SYSCONFDIR={directory.name}/etc", "install"], cwd=ROOT, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.environment = {**os.environ, "PKG_CONFIG_PATH": os.path.join(cls.prefix, "lib", "pkgconfig"),
                           "LD_LIBRARY_PATH": os.path.join(cls.prefix, "lib")}

    def compile(self, name, source):
        path = os.path.join(self.directory, name)
        with open(path + ".cc", "w", encoding="utf-8") as file:
            file.write(source)
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "cellar"], env=self.environment,
                               capture_output=True, text=True, check=True).stdout.split()
        done = subprocess.run(["g++", "-Wall", "-Wextra", "-Werror", "-o", path, path + ".cc", *flags],
                              capture_output=True, text=True, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return path

    def run_program(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, check=False)

    def test_the_example_of_the_manual_does_what_the_manual_says(self):
        source, printed = literals(PAGE)
        self.assertLess(source.count("\n"), 50)
        program = self.compile("example", source)
        data = os.path.join(self.directory, "data")
        for _ in range(2):  # new, and again
            done = self.run_program(program, data)
            self.assertEqual((0, printed, ""), (done.returncode, done.stdout, done.stderr))
        # A server reads what the program wrote, and the program what the server wrote.
        with CellarServer(directory=data) as server:
            client = server.client()
            self.assertEqual([[b"roof#2", [b"v:celsius", b"31"]], [b"roof#1", [b"v:celsius", b"30.25"]]],
                             client.execute_command("CSCAN", "metrics", "0", "PREFIX", "roof#")[1])
            client.execute_command("CPUT", "metrics", "roof#3", "v:celsius", "29")
            client.execute_command("INDEX", "CREATE", "metrics", "warm", "ON", "1", "v:celsius")
            done = self.run_program(program, data)
            self.assertEqual(1, done.returncode)
            self.assertRegex(done.stderr, "^IOERR .*lock")
        done = self.run_program(program, data)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("roof#3 29\n", done.stdout)

    def test_nothing_but_the_public_names_is_exported(self):
        listed = subprocess.run(["nm", "-DC", "--defined-only", os.path.join(self.prefix, "lib", "libcellar.so")],
                                capture_output=True, text=True, check=True).stdout
        names = [line.split(" ", 2)[2] for line in listed.splitlines()]
        self.assertTrue(any("cellar::embedded::Store::Open" in name for name in names))
        for name in names:
            self.assertRegex(name, r"cellar::(embedded|Status|Clock|ErrorCodeWord)", name)

    def test_the_version_is_the_servers(self):
        done = subprocess.run(["pkg-config", "--modversion", "cellar"], env=self.environment, capture_output=True,
                              text=True, check=True)
        self.assertIn(done.stdout.strip(), subprocess.run([binary(), "--version"], capture_output=True, text=True,
                                                          check=True).stdout)


if __name__ == "__main__":
    unittest.main()
