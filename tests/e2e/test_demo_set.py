"""`make demo-set`: three nodes, a leader that is killed, and nothing that is lost."""

import os
import re
import subprocess
import sys
import unittest

from replica_sets import has_sets

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@unittest.skipUnless(has_sets()[0], "this build has no replica sets")
class DemoSetTest(unittest.TestCase):
    def test_its_last_line_says_that_nothing_was_lost(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "demo", "set.py")], capture_output=True,
                              text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout.splitlines()[-1],
                         r"^lost 0 of the acknowledged writes; for [0-9.]+ s nobody took one$")
        self.assertGreater(int(re.search(r"([0-9,]+) acknowledged rows", done.stdout).group(1).replace(",", "")), 0)


if __name__ == "__main__":
    unittest.main()
