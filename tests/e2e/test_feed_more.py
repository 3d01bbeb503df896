"""Feeds beside other things: aggregate families, and several snapshots that are kept."""

import os
import random
import time
import unittest

from cellar_server import CellarServer, CellarTest, wait_until
from feed_model import FeedModel, as_sent, pairs, read_all, table_cells

SEED = int(os.environ.get("CELLAR_SEED", time.time_ns() % 10**9))


class Aggregates(CellarTest):
    """A consumer that does what it is told has the same aggregates: hll gets inputs and states, the rest results."""

    OPTIONS = {"appendfsync": "always", "enable-debug-command": "yes", "save": ""}

    def apply(self, feed, keyspace=1):
        """The entries of a feed done to another keyspace."""
        copy = as_sent(self.server.client(db=keyspace))
        self.addCleanup(copy.close)
        for _, flat in read_all(self.redis, feed):
            fields = dict(zip(flat[::2], flat[1::2]))
            op = fields[b"op"]
            at = [fields.get(name) for name in (b"table", b"row", b"column")]
            if op == b"schema":
                for line in fields[b"commands"].split(b"\n"):
                    copy.execute_command(*line.split())
            elif op == b"put":
                copy.execute_command("CPUT", *at, fields[b"value"], "TS", fields[b"ts"],
                                     *([] if fields[b"type"] == b"hll" else ["AS", fields[b"type"]]))
            elif op in (b"add", b"merge"):
                copy.execute_command("CMUTATE", at[0], at[1], op.upper(), at[2], fields[b"value"], "TS", fields[b"ts"])
            elif op == b"del":
                copy.execute_command("CDEL", *at, "TIME", fields[b"ts"], fields[b"ts"])
            elif op == b"delrange":
                family = fields.get(b"family")
                bounds = [fields.get(b"from", b"-"), fields.get(b"to", b"+")]
                copy.execute_command("CDEL", *at[:2], *(["COLRANGE", family, *bounds] if family else []))
            else:
                self.fail(fields)
        return copy

    def test_every_kind(self):
        chance = random.Random(SEED)
        print(f"seed {SEED}", flush=True)
        run = self.redis.execute_command
        run("TABLE CREATE", "h", "FAMILY", "uv", "AGGREGATE", "hll", "FAMILY", "day", "AGGREGATE", "hll", "BUCKET", "1h",
            "FAMILY", "sum", "AGGREGATE", "sum", "FAMILY", "low", "AGGREGATE", "min", "TYPE", "f64")
        for name, words in (("plain", []), ("old", ["OLD", "EXPIRED"])):
            run("FEED CREATE", name, "ON", 1, "h", *words)
        for step in range(400):
            row = f"r{chance.randrange(4)}"
            hll = f"{chance.choice(('uv', 'day'))}:q{chance.randrange(2)}"
            kind = chance.randrange(10)
            if kind <= 3:
                run("CADD", "h", row, hll, f"visitor{chance.randrange(10_000)}")
            elif kind == 4:
                run("CADD", "h", row, hll, "a", hll, "b", "sum:n", chance.randrange(9), "low:n", chance.randrange(9) / 2)
            elif kind == 5:
                state = run("CGET", "h", f"r{chance.randrange(4)}", "uv:q0", "STATE")
                if state is not None:
                    run("CMUTATE", "h", row, "MERGE", hll, state, "ADD", hll, "c")
            elif kind == 6:
                state = run("CGET", "h", row, hll, "STATE")
                if state is not None:
                    run("CPUT", "h", f"r{chance.randrange(4)}", "uv:copy", state)
            elif kind == 7:
                run("CMUTATE", "h", row, "DEL", hll, "ADD", hll, "anew", "ADD", "sum:n", 3)
            elif kind == 8 and chance.randrange(4) == 0:
                run("CDEL", "h", row)
            else:
                run("CINCRBY", "h", row, "sum:n", chance.randrange(100))
            if step % 150 == 149:
                run("DEBUG RELOAD")
        ops = {pairs(flat)["op"] for _, flat in read_all(self.redis, "plain")}
        self.assertTrue({"add", "merge", "put", "delrange"} <= ops, ops)
        wanted = self.states(self.redis)
        for keyspace, feed in enumerate(("plain", "old"), 1):
            self.assertEqual(wanted, self.states(self.apply(feed, keyspace)), (SEED, feed))

    def states(self, client):
        return client.execute_command("CSCAN", "h", 0, "COUNT", 1000, "VERSIONS", "ALL", "WITHTS", "STATE")


class SnapshotsKept(unittest.TestCase):
    """snapshot-keep holds log for itself, feeds hold log for themselves, and neither takes the other's away."""

    def segments(self, server):
        return {int(name.split(".")[0]) if name.split(".")[0].isdigit() else name for name in os.listdir(server.directory)
                if name.endswith(".log")}

    def snapshots(self, server):
        return sorted(name for name in os.listdir(server.directory) if "snap" in name and not name.endswith(".tmp"))

    def test_entries_outlive_snapshots_and_snapshots_outlive_feeds(self):
        with CellarServer(appendfsync="always", save="", snapshot_keep=3, enable_debug_command="yes") as server:
            client = as_sent(server.client())
            run = client.execute_command
            run("TABLE CREATE", "t", "FAMILY", "f", "VERSIONS", 2)
            run("FEED CREATE", "f", "ON", 0, "OLD")
            run("FEED CREATE", "plain", "ON", 0)
            run("XGROUP CREATE", "f", "g", "0")
            for i in range(240):
                run("CPUT", "t", f"r{i % 40}", "f:q", i)
                if i % 40 == 39:
                    run("SAVE")
                if i % 100 == 99:
                    server.crash()
                    client = as_sent(server.client())
                    run = client.execute_command
            self.check(client)
            self.assertEqual(241, len(read_all(client, "f")))
            held = len(self.segments(server))
            # Fewer snapshots: the feeds need the log all the same.
            run("CONFIG SET", "snapshot-keep", 1)
            run("SAVE")
            time.sleep(0.5)  # nothing goes
            self.assertGreaterEqual(len(self.segments(server)), held)
            self.check(client)
            # Fewer feeds: the log of the snapshots that are kept stays.
            run("CONFIG SET", "snapshot-keep", 3)
            for _ in range(3):
                run("CPUT", "t", "last", "f:q", 1)
                run("SAVE")
            run("FEED DROP", "f")
            run("FEED DROP", "plain")
            run("SAVE")
            wait_until(lambda: len(self.segments(server)) <= 4)
            self.assertGreaterEqual(len(self.segments(server)), 2)
            cells = table_cells(client, "t")
            server.crash()
            self.assertEqual(cells, table_cells(server.client(), "t"))

    def test_a_start_from_an_older_snapshot_tells_the_same(self):
        with CellarServer(appendfsync="always", save="", snapshot_keep=2, enable_debug_command="yes") as server:
            client = as_sent(server.client())
            run = client.execute_command
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("FEED CREATE", "f", "ON", 0, "OLD", "EXPIRED")
            run("XGROUP CREATE", "f", "g", "0")
            for round in range(3):
                for i in range(30):
                    run("CPUT", "t", f"r{i}", "f:q", f"{round}.{i}")
                run("XREADGROUP", "GROUP", "g", "c", "COUNT", 7, "STREAMS", "f", ">")
                run("TABLE CREATE", f"more{round}", "FAMILY", "f")
                run("SAVE")
            run("CPUT", "t", "r", "f:q", "behind the last one")
            told = read_all(client, "f")
            pending = client.xpending("f", "g")
            server.kill()
            newest = sorted((name for name in os.listdir(server.directory) if "snap" in name),
                            key=lambda name: os.path.getmtime(os.path.join(server.directory, name)))[-1]
            path = os.path.join(server.directory, newest)
            with open(path, "r+b") as file:
                file.seek(os.path.getsize(path) // 2)
                byte = file.read(1)
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte[0] ^ 0xff]))
            server.start()
            client = as_sent(server.client())
            self.assertEqual(told, read_all(client, "f"))
            self.assertEqual(pending, client.xpending("f", "g"))
            self.check(client)

    def check(self, client):
        model = FeedModel()
        for feed in [name.decode() for name in client.execute_command("FEED LIST")]:
            model = FeedModel()
            for id, flat in read_all(client, feed):
                model.apply(id, flat)
            self.assertEqual(table_cells(client, "t"), model.cells("t"), feed)


if __name__ == "__main__":
    unittest.main()
