"""kill -9 aimed at indexes: after each kill every index is a sort of its table, and nothing is there twice.

Writers change indexed columns, delete rows and let cells expire; in between an index is created over
rows that are there, so that kills fall into its background build too. CELLAR_CRASH_RUNS (8) kills.
"""

import os
import random
import threading
import time
import unittest

import redis

from cellar_server import CellarServer, wait_until

RUNS = int(os.environ.get("CELLAR_CRASH_RUNS", "8"))
SEED = int(os.environ.get("CELLAR_CRASH_SEED", str(random.randrange(1 << 30))))
ROWS = 12000  # several slices of a background build
INDEXES = {
    "by-n": "ON 1 f:n AS i64 INCLUDE 1 f:s",
    "by-s": "ON 2 f:s -f:n AS i64",
    "tags": "ON 1 g",
    "copy": "ON 0 INCLUDE 2 f g",
    "one": "ON 1 f:u UNIQUE",
}


class Writer(threading.Thread):
    """Random writes until the kill, in pipelines and in EXEC."""

    def __init__(self, server, seed):
        super().__init__(daemon=True)
        self.server = server
        self.random = random.Random(seed)
        self.refused = None

    def command(self):
        draw = self.random
        row = "r%05d" % draw.randrange(ROWS)
        kind = draw.randrange(10)
        if kind == 0:
            return ["CDEL", "t", row]
        if kind == 1:
            return ["CDEL", "t", row, draw.choice(["f:n", "g"])]
        if kind == 2:
            return ["CPUT", "t", row, "f:u", draw.randrange(500)]
        if kind == 3:
            return ["CPUT", "t", row, "f:n", draw.randrange(50), "AS", "i64", "TTL", "100ms"]
        if kind == 4:
            low = draw.randrange(ROWS - 10)
            return ["CDELRANGE", "t", "RANGE", "[r%05d" % low, "(r%05d" % (low + 5)]
        return ["CPUT", "t", row, "f:n", draw.randrange(50), "AS", "i64", "f:s", "s%d" % draw.randrange(20),
                "g:%s" % draw.choice("abc"), draw.randrange(9)]

    def run(self):
        client = self.server.client()
        try:
            while True:
                pipe = client.pipeline(transaction=self.random.random() < 0.3)
                for _ in range(self.random.choice([1, 5, 20])):
                    pipe.execute_command(*self.command())
                for reply in pipe.execute(raise_on_error=False):
                    if isinstance(reply, redis.ResponseError) and not str(reply).startswith("NOTUNIQUE"):
                        self.refused = reply
        except (redis.ConnectionError, redis.TimeoutError, OSError, ValueError):
            pass  # the kill


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def scan(client, *words):
    """All rows: [(key, {column: value})]."""
    cursor, rows = b"0", []
    while True:
        cursor, found = client.execute_command("CSCAN", "t", cursor, *words, "COUNT", "1000")
        rows += [(row[0], pairs(row[1])) for row in found]
        if cursor == b"0":
            return rows


def wait_until_ready(client, name):
    """The state in which the background build ends: ready, or failed (UNIQUE over duplicates)."""
    def state():
        return pairs(client.execute_command("INDEX", "INFO", "t", name))[b"state"]
    wait_until(lambda: state() != b"building")
    return state()


def expected(table, name):
    """(row, ...) in the order of the index, made by sorting the table."""
    found = []
    for key, columns in table:
        n, s, u = (columns.get(b"f:" + c) for c in (b"n", b"s", b"u"))
        if name == "by-n" and n is not None:
            found.append((int(n), key))
        elif name == "by-s" and n is not None and s is not None:
            found.append((s, -int(n), key))
        elif name == "tags":
            found += [(column, key) for column in columns if column.startswith(b"g:")]
        elif name == "copy":
            found.append((key,))
        elif name == "one" and u is not None:
            found.append((u, key))
    return [entry[-1] for entry in sorted(found)]


class IndexCrashTest(unittest.TestCase):
    def check(self, client, names):
        client.execute_command("DEBUG", "DIGEST")  # refused if an index is not what its table says
        # A moment in which nothing more expires: what has a TTL has one of 100 ms.
        time.sleep(0.11)
        # TIME is for the table alone: no index is chosen for this scan.
        table = scan(client, "TIME", "0", str(2**63 - 2))
        for name in names:
            keys = [key for key, _ in scan(client, "INDEX", name)]
            self.assertEqual(keys, expected(table, name), name)
        if "copy" in names:
            self.assertEqual(scan(client), table)

    def test_no_kill_parts_an_index_from_its_table(self):
        draw = random.Random(SEED)
        names = []
        with CellarServer(appendfsync="always", save="", enable_debug_command="yes") as server:
            client = server.client()
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "g", "VERSIONS", "2")
            pipe = client.pipeline(transaction=False)
            for row in range(ROWS):
                pipe.execute_command("CPUT", "t", "r%05d" % row, "f:n", row % 50, "AS", "i64", "g:a", row)
            pipe.execute()
            kills_while_building = 0
            for run in range(RUNS):
                with self.subTest(seed=SEED, run=run):
                    writers = [Writer(server, draw.random()) for _ in range(3)]
                    for writer in writers:
                        writer.start()
                    client = server.client()
                    missing = [name for name in INDEXES if name not in names]
                    time.sleep(draw.random() * 0.2)
                    created = None
                    if missing:
                        created = draw.choice(missing)
                        client.execute_command("INDEX", "CREATE", "t", created, *INDEXES[created].split())
                    elif draw.random() < 0.5:
                        created = draw.choice(names)
                        names.remove(created)
                        client.execute_command("INDEX", "DROP", "t", created)
                        client.execute_command("INDEX", "CREATE", "t", created, *INDEXES[created].split())
                    if draw.random() < 0.3:
                        client.execute_command("BGSAVE")
                    if created:
                        info = pairs(client.execute_command("INDEX", "INFO", "t", created))
                        kills_while_building += info[b"state"] == b"building"
                    else:
                        time.sleep(draw.random() * 0.2)
                    server.kill()
                    for writer in writers:
                        writer.join()
                        self.assertIsNone(writer.refused)
                    server.start()
                    client = server.client()
                    if created and wait_until_ready(client, created) == b"ready":
                        names.append(created)
                    elif created:
                        client.execute_command("INDEX", "DROP", "t", created)
                    self.check(client, names)
            print(f"index crash: {RUNS} kills, {kills_while_building} while building, seed {SEED}")


if __name__ == "__main__":
    unittest.main()
