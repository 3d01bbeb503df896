"""kill -9 at random times: under every policy nothing acknowledged is lost, nothing is there by half.

CELLAR_CRASH_RUNS (12) kills for each policy; `make crash` makes it 1,000.
"""

import os
import random
import unittest

from cellar_server import CellarServer
from crash_run import CrashRun

RUNS = int(os.environ.get("CELLAR_CRASH_RUNS", "12"))
SEED = int(os.environ.get("CELLAR_CRASH_SEED", str(random.randrange(1 << 30))))
POLICIES = ["always", "everysec", "no"]


class CrashTest(unittest.TestCase):
    def crash(self, policy):
        with CellarServer(appendfsync=policy, save="") as server:
            server.client().execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", "1")
            run = CrashRun(server, SEED)
            for i in range(RUNS):
                with self.subTest(policy=policy, seed=SEED, run=i):
                    run.one()
            print(f"crash: {policy}: {RUNS} kills, {run.operations} acknowledged operations, seed {SEED}")

    def test_always_loses_nothing_acknowledged(self):
        self.crash("always")

    def test_everysec_loses_nothing_acknowledged(self):
        self.crash("everysec")

    def test_no_loses_nothing_acknowledged(self):
        self.crash("no")

    def test_a_single_command_is_there_after_a_kill_at_once(self):
        """One command on an idle server: nothing that follows takes it along to the log."""
        single = [["TABLE", "CREATE", "t", "FAMILY", "f"],
                  ["CPUT", "t", "r", "f:small", "1"],
                  ["CPUT", "t", "r", "f:large", b"l" * 500_000],
                  ["FAMILY", "ADD", "t", "g"],
                  ["TABLE", "RENAME", "t", "u"],
                  ["CDEL", "u", "r", "f:small"],
                  ["TABLE", "DROP", "u"]]
        seen = [lambda client: client.execute_command("TABLE", "LIST") == [b"t"],
                lambda client: client.execute_command("CGET", "t", "r", "f:small") == b"1",
                lambda client: len(client.execute_command("CGET", "t", "r", "f:large")) == 500_000,
                lambda client: client.execute_command("CPUT", "t", "s", "g:x", "1") == b"OK",
                lambda client: client.execute_command("TABLE", "LIST") == [b"u"],
                lambda client: client.execute_command("CGET", "u", "r", "f:small") is None,
                lambda client: client.execute_command("TABLE", "LIST") == []]
        for policy in POLICIES:
            with CellarServer(appendfsync=policy, save="") as server:
                for command, is_there in zip(single, seen):
                    with self.subTest(policy=policy, command=command[:2]):
                        server.client().execute_command(*command)
                        server.kill()
                        server.start()
                        self.assertTrue(is_there(server.client()))


if __name__ == "__main__":
    unittest.main()
