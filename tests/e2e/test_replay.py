"""What is read from the log makes the state that was there: tables too large for the caches, in which rows are looked for
ahead (Engine::CarryOut), and records of many steps in which tables, groups, schemas and kinds of ops change at every place.

By a restart, by DEBUG RELOAD, on a follower and by --recover. The seed is printed; CELLAR_REPLAY_SEED chooses it.
"""

import os
import random
import shutil
import subprocess
import tempfile
import time
import unittest

import redis

from cellar_server import CellarServer, binary, wait_until

SEED = int(os.environ.get("CELLAR_REPLAY_SEED", "1"))
TURNS = 80
TABLES = {
    "one": "FAMILY f",
    "two": "FAMILY f GROUP a FAMILY g GROUP b VERSIONS 1",
    "number": "KEY i64 FAMILY f VERSIONS 2 FAMILY g AGGREGATE sum",
    "small": "FAMILY f TTL 1h",
}


class Draw:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.made = 0

    def row(self, table):
        number = self.rng.randrange(60_000)
        if table == "number":
            return str(number - 20_000)
        if table == "small":
            return f"r{number % 50}"
        return self.rng.choice(["", "row", "a long name of a row "]) + str(number)

    def column(self, table):
        if table == "number" and self.rng.random() < 0.2:
            return None
        family = self.rng.choice("fg") if table == "two" else "f"
        return f"{family}:c{self.rng.randrange(4)}"

    def write(self):
        rng = self.rng
        table = rng.choice(["one", "one", "one", "two", "two", "number", "small"])
        row, column = self.row(table), self.column(table)
        if column is None:
            return ["CADD", table, row, "g:sum", rng.randrange(100)]
        kind = rng.randrange(40)
        if kind == 0:
            return ["CDEL", table, row]
        if kind == 1:
            return ["CDEL", table, row, column]
        if kind == 2:
            return ["CDELRANGE", table, "RANGE", f"[{row}", f"[{row}"]
        if kind == 3:
            return ["CMUTATE", table, row, "PUT", column, "x", "DEL", column, "PUT", column, "y" * rng.randrange(300)]
        if kind == 4:
            return ["CPUT", table, row, column, "soon", "TTL", "1h"]
        if kind == 5 and rng.random() < 0.1:
            self.made += 1
            return ["TABLE", "CREATE", f"made{self.made}", "FAMILY", "f"]
        if kind == 6 and self.made > 0:
            return ["CPUT", f"made{1 + rng.randrange(self.made)}", row, "f:c", "x"]
        if kind == 7 and rng.random() < 0.05:
            return ["FAMILY", "ALTER", "one", "f", "VERSIONS", str(rng.randrange(1, 4))]
        columns = [column, f"f:c{rng.randrange(4, 9)}"] if rng.random() < 0.3 else [column]
        return ["CPUT", table, row] + [word for name in columns for word in (name, "v" * rng.choice([3, 40, 400, 900]))]


class ReplayTest(unittest.TestCase):
    def start(self, **options):
        server = CellarServer(save="", enable_debug_command="yes", appendfsync="always", **options)
        self.addCleanup(server.close)
        return server.start()

    def test_large_tables_come_back_as_they_were(self):
        print(f"replay: seed {SEED}")
        server, follower = self.start(), self.start()
        client = server.client()
        for name, schema in TABLES.items():
            client.execute_command("TABLE", "CREATE", name, *schema.split())
        client.execute_command("INDEX", "CREATE", "two", "i", "ON", "1", "g:c1")
        follower.client().execute_command("REPLICAOF", "127.0.0.1", server.port)
        draw = Draw(SEED)
        for turn in range(TURNS):
            pipe = client.pipeline(transaction=turn % 5 == 0)
            for _ in range(draw.rng.choice([2, 17, 900, 900])):
                pipe.execute_command(*draw.write())
            pipe.execute(raise_on_error=False)
        self.assertGreater(self.bytes_of(client, "one"), 3 << 20)  # replay looks ahead from 2 MiB on
        digest = client.execute_command("DEBUG", "DIGEST")
        with follower.client() as other:
            wait_until(lambda: digest == self.digest_of(other), lambda: f"the follower has {self.digest_of(other)}", 0.05)
        client.execute_command("DEBUG", "RELOAD")
        self.assertEqual(digest, client.execute_command("DEBUG", "DIGEST"))
        client.close()
        server.crash()
        with server.client() as client:
            self.assertEqual(digest, client.execute_command("DEBUG", "DIGEST"))
            rows = client.execute_command("CSCAN", "two", "0", "INDEX", "i", "COUNT", "100000")
            self.assertEqual([b"0", client.execute_command("CCOUNT", "two", "WHERE", "g:c1", "EXISTS", "NOINDEX")],
                             [rows[0], len(rows[1])])
        server.stop()
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        subprocess.run([binary(), "--recover", server.directory, "--until", str(time.time_ns() // 1000), "--dir",
                        os.path.join(folder, "then")], check=True, capture_output=True)
        with CellarServer(directory=os.path.join(folder, "then"), options={"enable-debug-command": "yes"}) as recovered:
            self.assertEqual(digest, recovered.client().execute_command("DEBUG", "DIGEST"))

    @staticmethod
    def bytes_of(client, table):
        words = client.execute_command("TABLE", "INFO", table)
        return dict(zip(words[::2], words[1::2]))[b"memory"]

    @staticmethod
    def digest_of(client):
        try:
            return client.execute_command("DEBUG", "DIGEST")
        except redis.RedisError as error:
            return error


if __name__ == "__main__":
    unittest.main()
