"""kill -9 at random times: nothing acknowledged is lost, nothing is there by half.

CELLAR_CRASH_RUNS (25) kills for each policy; `make crash` makes it 1,000.
"""

import os
import random
import unittest

from cellar_server import CellarServer
from crash_run import CrashRun

RUNS = int(os.environ.get("CELLAR_CRASH_RUNS", "25"))
SEED = int(os.environ.get("CELLAR_CRASH_SEED", str(random.randrange(1 << 30))))


class CrashTest(unittest.TestCase):
    def crash(self, policy):
        with CellarServer(appendfsync=policy, save="") as server:
            client = server.client()
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", "1")
            if policy != "always":
                client.execute_command("SAVE")  # the table itself must survive the first kill
            run = CrashRun(server, policy, SEED)
            for i in range(RUNS):
                with self.subTest(policy=policy, seed=SEED, run=i):
                    run.one()
            print(f"crash: {policy}: {RUNS} kills, {run.operations} acknowledged operations, seed {SEED}")

    def test_always_loses_nothing_acknowledged(self):
        self.crash("always")

    def test_everysec_loses_a_second_at_most(self):
        self.crash("everysec")


if __name__ == "__main__":
    unittest.main()
