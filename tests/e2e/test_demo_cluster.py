"""`make demo-cluster`: three sets, a scan through each node, a leader that is killed, nothing lost, nothing left."""

import os
import re
import subprocess
import sys
import unittest

from cellar_server import ROOT
from replica_sets import has_sets


@unittest.skipUnless(has_sets()[0], "this build has no replica sets")
class DemoClusterTest(unittest.TestCase):
    def test_it_loses_nothing_and_leaves_nothing(self):
        for _ in range(2):
            done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "demo", "cluster.py"), "--rows", "20000"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)
            self.assertEqual("lost 0 of the acknowledged writes; every node told of all cells", done.stdout.splitlines()[-1])
            scans = re.findall(r"(?m)^    node (\d+), set (\d): 200,000 cells, sha256 (\w+)\.\.\.", done.stdout)
            self.assertEqual((9, 3, 1), tuple(len(set(each)) for each in zip(*scans)), done.stdout)
            self.assertEqual(3, len(re.findall(r"(?m)^    set \d: [1-9][0-9,]* writes acknowledged", done.stdout)))
            self.assertFalse(os.path.exists(os.path.join(ROOT, "build", "demo-cluster")))


if __name__ == "__main__":
    unittest.main()
