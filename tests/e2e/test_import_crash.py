"""kill -9 of the server during an import, at random moments, with `appendfsync always`.

Each round imports a file into a table of its own, kills the server at some moment, starts it again and
looks: every row that the importer counts as acknowledged is there, and no row is there by half. Then the
import is resumed to its end and all must be there. Half of the rounds write several rows in one MULTI ...
EXEC. Every ten rounds begin with an empty server, or the log to read back would grow and grow.
CELLAR_CRASH_ROUNDS (20; `make soak` does 50) sets the rounds; CELLAR_CRASH_SEED repeats a run.
"""

import json
import os
import random
import subprocess
import tempfile
import time
import unittest

from cellar_server import CellarServer, tool

ROUNDS = int(os.environ.get("CELLAR_CRASH_ROUNDS", "20"))
SEED = int(os.environ.get("CELLAR_CRASH_SEED", str(random.SystemRandom().randrange(1 << 32))))
ROWS = 3_000
ROUNDS_PER_SERVER = 10
COLUMNS = 5


def value(row, column):
    return f"{row * 7919 + column}-{'x' * (row % 97)}"


class ImportCrashTest(unittest.TestCase):
    def test_acknowledged_rows_survive_and_no_row_is_half_there(self):
        print(f"seed {SEED}, {ROUNDS} rounds")
        chance = random.Random(SEED)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "rows.csv")
            with open(path, "w", encoding="ascii") as file:
                file.write("k," + ",".join(f"c{c}" for c in range(COLUMNS)) + "\n")
                for row in range(ROWS):
                    file.write(f"{row:08}," + ",".join(value(row, c) for c in range(COLUMNS)) + "\n")
            crashes = 0
            while crashes < ROUNDS:
                with CellarServer(appendfsync="always") as server:
                    crashes += self.rounds(server, path, directory, chance, min(ROUNDS_PER_SERVER, ROUNDS - crashes))

    def rounds(self, server, path, directory, chance, count):
        """`count` crashes of one server."""
        seconds_max = self.time_of_an_import(server, path)
        crashes, tables = 0, []
        while crashes < count:
            table = f"t{len(tables)}"
            tables.append(table)
            crashes += self.round(server, path, table, directory, chance, seconds_max)
        client = server.client()
        for table in tables:  # the rounds after it took nothing away
            self.assertEqual(ROWS, client.execute_command("CCOUNT", table))
        client.close()
        return crashes

    def words(self, server, path, table, *more):
        return [tool("cellar-import"), "-p", str(server.port), table, path, "-k", "k", "-F", "f", "-q",
                "--create-table"] + list(more)

    def time_of_an_import(self, server, path):
        begin = time.monotonic()
        subprocess.run(self.words(server, path, "whole"), check=True, timeout=300)
        self.check_rows(server, "whole", ROWS)
        return time.monotonic() - begin

    def round(self, server, path, table, directory, chance, seconds_max):
        """One import with a crash in it; 0 if the import was done before the crash came."""
        state = os.path.join(directory, table + ".state")
        batch = chance.choice(["1", "1", "7", "100"])
        words = self.words(server, path, table, "--resume", state, "--batch-rows", batch, "--pipeline",
                           str(chance.choice([8, 32, 256])))
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(chance.uniform(0, seconds_max))
        server.kill()
        said = process.communicate(timeout=300)[1]
        server.start()
        is_crash = process.returncode != 0
        if is_crash:
            self.assertEqual(2, process.returncode, said)
        acknowledged = 0
        if os.path.exists(state):
            with open(state, encoding="ascii") as file:
                acknowledged = json.load(file)["rows"]
        client = server.client()
        if client.exists(table):
            self.check_rows(server, table, acknowledged)
        else:
            self.assertEqual(0, acknowledged)
        client.close()
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        self.check_rows(server, table, ROWS)
        os.unlink(state)
        return 1 if is_crash else 0

    def check_rows(self, server, table, rows_min):
        """The first `rows_min` rows are there; whatever row is there is whole."""
        client = server.client()
        found, cursor = 0, b"0"
        while True:
            cursor, rows = client.execute_command("CSCAN", table, cursor, "COUNT", "4000")
            for key, cells in rows:
                row = int(key)
                if row < rows_min:
                    found += 1
                wanted = [word for c in range(COLUMNS) for word in (f"f:c{c}".encode(), value(row, c).encode())]
                self.assertEqual(wanted, cells, f"row {row} of {table}")
            if cursor == b"0":
                break
        client.close()
        self.assertEqual(rows_min, found, f"acknowledged rows of {table}")


if __name__ == "__main__":
    unittest.main()
