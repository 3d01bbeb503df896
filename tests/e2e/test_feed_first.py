"""The first feed of a store: what it tells, compared with a model, whatever was done to schemas before and behind it.

No history reaches back before the first feed (engine/feeds/feed_set.h), so each round drops all feeds first. Commands
come one by one, in batches that share a record of the log, and in transactions, with the feed made anywhere in them.
Named snapshots are made, replaced and dropped among them, which no feed tells; copies of them are told.
"""

import os
import random
import re
import subprocess
import time
import unittest

import redis

from cellar_server import CellarServer, CellarTest, binary, not_on_a_follower, wait_until
from feed_model import as_sent, drop_feeds, pairs, read_all

SEED = int(os.environ.get("CELLAR_SEED", time.time_ns() % 10**9))
ROUNDS = int(os.environ.get("CELLAR_FIRST_FEED_ROUNDS", "60"))
NAMES = ("a", "b", "c", "d")
SNAPSHOTS = ("s", "u")


class Model:
    """Keyspaces "0" and "side", and what a feed in "0" tells since it is there."""

    def __init__(self, chance):
        self.chance = chance
        self.tables = {}   # (keyspace, name) -> {"families", "versions", "indexes"}
        self.side = False  # whether keyspace "side" is there
        self.snapshots = {}  # of "0": name -> {table: as in tables}
        self.on = None     # names that the feed covers; (): all; None: there is no feed
        self.told = []
        self.row = 0
        self.dropped = None  # by the command before

    def covers(self, place):
        return self.on is not None and place[0] == "0" and (not self.on or place[1] in self.on)

    def tell(self, place, op, *more):
        if self.covers(place):
            self.told.append((op, place[1], *more))

    @staticmethod
    def text(place):
        return place[1] if place[0] == "0" else f"{place[0]}/{place[1]}"

    def free(self):
        places = [(keyspace, name) for keyspace in ("0", "0", *(("side",) if self.side else ())) for name in NAMES]
        places = [place for place in places if place not in self.tables]
        return self.chance.choice(places) if places else None

    def create(self):
        place = self.free()
        if place is None:
            return None
        self.tables[place] = {"families": {"f"}, "versions": 1, "indexes": set()}
        self.tell(place, "schema")
        return ["TABLE CREATE", self.text(place), "FAMILY", "f"]

    def feed(self):
        names = sorted(name for keyspace, name in self.tables if keyspace == "0")
        some = [name for name in names if self.chance.randrange(2)]
        self.on = tuple(some)
        for name in names:
            self.tell(("0", name), "schema")
        words = [str(len(some)), *some] if some else ["0"]
        return ["FEED CREATE", "feed", "ON", *words, *self.chance.choice(([], ["OLD"], ["EXPIRED"]))]

    def command(self):
        """One that is carried out, as words."""
        dropped, self.dropped = self.dropped, None
        if not self.tables or self.chance.randrange(8) == 0:
            words = self.create()
            if words is not None:
                return words
        place = self.chance.choice(sorted(self.tables))
        table = self.tables[place]
        name = self.text(place)
        kind = self.chance.randrange(18)
        if kind == 0:
            if table["indexes"]:
                index = table["indexes"].pop()
                self.tell(place, "schema")
                return ["INDEX DROP", name, index]
            table["indexes"].add("i")
            self.tell(place, "schema")
            return ["INDEX CREATE", name, "i", "ON", "1", "f:x"]
        if kind == 1:
            added = "g" not in table["families"]
            (table["families"].add if added else table["families"].remove)("g")
            self.tell(place, "schema")
            return ["FAMILY ADD" if added else "FAMILY DROP", name, "g"]
        if kind == 2:
            table["versions"] = table["versions"] % 5 + 1
            self.tell(place, "schema")
            return ["FAMILY ALTER", name, "f", "VERSIONS", str(table["versions"])]
        if kind in (3, 4):
            to = self.free()
            if to is None or to == dropped:  # in one step that is what REPLACE does: told as that
                return ["CPUT", name, "r", "f:x", self.put(place)]
            if kind == 3:
                del self.tables[place]
                if self.covers(place) or self.covers(to):
                    self.told.append(("rename", name, self.text(to)))
                self.tables[to] = table
                return ["TABLE RENAME", name, self.text(to)]
            self.tables[to] = self.copied(table)
            self.tell(to, "copy", name)
            return ["COPY", name, self.text(to)]
        if kind == 5:
            del self.tables[place]
            self.dropped = place
            self.tell(place, "drop")
            return ["TABLE DROP", name]
        if kind == 6:
            self.tell(place, "truncate")
            return ["TABLE TRUNCATE", name]
        if kind == 7 and self.chance.randrange(3) == 0:
            self.side = not self.side
            for other in [other for other in self.tables if other[0] == "side"]:
                del self.tables[other]
            return ["KEYSPACE CREATE" if self.side else "KEYSPACE DROP", "side"]
        if kind in (8, 9, 10):
            words = self.snapshot() if kind < 10 else self.copy_of_snapshot(dropped)
            if words is not None:
                return words
        return ["CPUT", name, f"r{self.chance.randrange(5)}", "f:x", self.put(place)]

    @staticmethod
    def copied(table):
        return {**table, "families": set(table["families"]), "indexes": set(table["indexes"])}

    def snapshot(self):
        """One is made, of all tables or of some, or replaced, or dropped."""
        snapshot = self.chance.choice(SNAPSHOTS)
        was_there = self.snapshots.pop(snapshot, None) is not None
        if was_there and self.chance.randrange(2):
            return ["SNAPSHOT DROP", snapshot]
        names = sorted(name for keyspace, name in self.tables if keyspace == "0")
        some = [name for name in names if self.chance.randrange(2)]
        self.snapshots[snapshot] = {name: self.copied(self.tables["0", name]) for name in some or names}
        return ["SNAPSHOT CREATE", snapshot, *(["TABLE", str(len(some)), *some] if some else []),
                *(["REPLACE"] if was_there else [])]

    def copy_of_snapshot(self, dropped):
        """A table comes back as it was, under another name. Which indexes were complete then is no model's business."""
        there = [(snapshot, name) for snapshot, tables in sorted(self.snapshots.items())
                 for name, table in sorted(tables.items()) if not table["indexes"]]
        to = self.free()
        if not there or to is None or to == dropped:
            return None
        snapshot, name = self.chance.choice(there)
        self.tables[to] = self.copied(self.snapshots[snapshot][name])
        self.tell(to, "copy", f"{name}@{snapshot}")
        return ["COPY", f"{name}@{snapshot}", self.text(to)]

    def put(self, place):
        self.row += 1
        self.tell(place, "put", str(self.row))
        return str(self.row)


class FirstFeed(unittest.TestCase):
    def setUp(self):
        self.chance = random.Random(SEED)
        print(f"seed {SEED}", flush=True)
        self.server = CellarServer(appendfsync=self.chance.choice(("always", "everysec")), save="",
                                   drop_keep=self.chance.choice(("0", "1h"))).start()
        self.addCleanup(self.server.close)
        self.client = as_sent(self.server.client())

    def send(self, model, commands):
        self.history += commands
        kind = self.chance.randrange(4)
        if kind == 0 or len(commands) == 1:
            for words in commands:
                self.client.execute_command(*words)
            return
        with self.client.pipeline(transaction=kind == 1) as pipe:
            for words in commands:
                pipe.execute_command(*words)
            pipe.execute()

    def between(self):
        kind = self.chance.randrange(10)
        if kind == 0:
            self.save("SAVE")
        elif kind == 1:
            self.server.restart()
        elif kind == 2:
            self.client.execute_command("WAITAOF", 1, 0, 0)
            self.server.crash()
        elif kind == 3:
            self.save("BGREWRITEAOF")

    def save(self, command):
        try:
            self.client.execute_command(command)
        except redis.ResponseError as refusal:
            self.assertIn("in progress", str(refusal))

    def entries(self):
        """All of them: a feed tells what is on disk, and a read that comes to its end asks for a sync."""
        def told():
            state = self.client.info("persistence")
            entries = read_all(self.client, "feed")
            return [entries] if state["aof_durable_lsn"] == state["aof_last_lsn"] else None
        return [pairs(flat) for _, flat in wait_until(told, "the log is not synced")[0]]

    def read(self):
        told = []
        for entry in self.entries():
            if entry["op"] == "del" and entry.get("by") == "expired":
                continue
            more = [entry[name] for name in ("to", "from") if name in entry]
            if entry["op"] == "put":
                more = [entry["value"]]
            told.append((entry["op"], entry["table"], *more))
        return told

    @not_on_a_follower("the feeds of a set tell of a change a moment behind its OK")
    def test_it_tells_what_the_model_tells(self):
        for round in range(ROUNDS):
            self.history = []
            drop_feeds(self.client)
            self.client.execute_command("FLUSHALL")
            for snapshot in self.client.execute_command("SNAPSHOT LIST"):
                self.client.execute_command("SNAPSHOT DROP", snapshot)
            if b"side" in self.client.execute_command("KEYSPACE LIST"):
                self.client.execute_command("KEYSPACE DROP", "side")
            model = Model(self.chance)
            at = self.chance.randrange(1, 30)
            made = 0
            while made < at + 25:
                commands = []
                for _ in range(self.chance.choice((1, 1, 3, 8))):
                    commands.append(model.feed() if made == at else model.command())
                    made += 1
                self.send(model, commands)
                self.between()
                if made > at and self.chance.randrange(6) == 0:
                    self.assertEqual(model.told, self.read(), (SEED, round, self.history))
            self.assertEqual(model.told, self.read(), (SEED, round, self.history))
            self.assertEqual(len(model.told), self.shown(), (SEED, round))
        self.assertNotIn("cannot be read", self.server.log())
        self.server.stop()
        checked = subprocess.run([binary(), "--check", self.server.directory], capture_output=True, text=True)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)

    def shown(self):
        """XLEN, without what retention reclaims, which it may do at this moment."""
        while True:
            before, entries = self.client.execute_command("XLEN", "feed"), self.entries()
            if self.client.execute_command("XLEN", "feed") == before:
                return before - sum(1 for entry in entries if entry.get("by") == "expired")


class Forgotten(CellarTest):
    """Schemas are forgotten up to where all feeds have dropped everything; what is behind stays readable."""

    OPTIONS = {"appendfsync": "always", "save": "", "enable-debug-command": "yes"}

    @not_on_a_follower("SAVE takes what a node has applied, which may be a moment behind")
    def test_behind_a_change_of_a_schema_that_is_dropped(self):
        run = as_sent(self.redis).execute_command
        drop_feeds(self.redis)
        run("TABLE CREATE", "t", "FAMILY", "f")
        run("TABLE CREATE", "other", "FAMILY", "f")
        run("FEED CREATE", "f", "ON", 1, "t", "KEEP", "5s")
        for turn in range(3):
            run("CPUT", "t", "r", "f:x", turn)
            run("FAMILY ALTER", "t" if turn < 2 else "other", "f", "VERSIONS", turn + 2)
            wait_until(lambda: run("XLEN", "f") == 0, lambda: run("FEED INFO", "f"))
            time.sleep(0.3)  # nothing comes back
            self.assertEqual([], run("XRANGE", "f", "-", "+"))
            run("SAVE")
            run("CPUT", "t", "s", "f:x", turn)
            self.assertEqual([b"s"], [dict(zip(flat[::2], flat[1::2]))[b"row"]
                                      for _, flat in run("XRANGE", "f", "-", "+")])
            self.server.restart()
            self.redis = as_sent(self.server.client())
            run = self.redis.execute_command
        self.assertIsNone(re.search("cannot be read", self.server.log()))


if __name__ == "__main__":
    unittest.main()
