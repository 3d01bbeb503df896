"""OLD and EXPIRED: what was there before, and what retention reclaims; each entry checked against a model that applies
the entries from 0."""

import os
import random
import sys
import time
import unittest

import redis

from cellar_server import ROOT, CellarServer, wait_until
from feed_model import FeedModel, as_sent, drop_feeds, key_of, pairs, read_all, table_cells
from wire import WireTest

sys.path.insert(0, os.path.join(ROOT, "tests"))

from model import hll  # noqa: E402

SEED = int(os.environ.get("CELLAR_SEED", time.time_ns() % 10**9))
STEPS = int(os.environ.get("CELLAR_OLD_STEPS", "700"))
CRASHES = int(os.environ.get("CELLAR_OLD_CRASHES", "6"))


class OldTest(WireTest):
    OPTIONS = {"appendfsync": "always", "enable-debug-command": "yes", "save": ""}

    def setUp(self):
        super().setUp()
        as_sent(self.redis)
        drop_feeds(self.redis)
        self.do("FLUSHALL")

    def do(self, line):
        return self.redis.execute_command(*line.split(" "))

    def ops(self, feed="f", behind=1):
        """The entries but for the first ones, which are schemas, as dicts."""
        return [pairs(flat) for _, flat in read_all(self.redis, feed)][behind:]

    def brief(self, feed="f", behind=1):
        """The same, shortened: op, row, column, ts, then value, old, oldts, by as they are there."""
        return [" ".join([e["op"], *(e[name] for name in ("row", "column", "ts") if name in e),
                          *(f"{name}={e[name]}" for name in ("value", "old", "oldts", "oldtype", "by") if name in e)])
                for e in self.ops(feed, behind)]


class WhatOldTells(OldTest):
    def setUp(self):
        super().setUp()
        self.do("TABLE CREATE t FAMILY a FAMILY b TYPE i64 VERSIONS 2")
        self.do("FEED CREATE f ON 1 t OLD")

    def test_large_values_are_told_in_several_steps(self):
        """A record of the log holds what a slice of CDELRANGE removes, so slices are short in bytes too."""
        for i in range(12):
            self.do(f"CPUT t r{i:02} a:x " + "v" * 300_000)
        self.assertEqual(12, self.do("CDELRANGE t ALL"))
        told = [entry for entry in self.ops() if entry["op"] != "put"]
        self.assertEqual({300_000}, {len(entry["value"]) for entry in told if entry["op"] == "del"})
        self.assertGreater(sum("more" not in entry for entry in told), 3)

    def test_puts(self):
        self.do("CPUT t r a:x one TS 5")
        self.do("CPUT t r a:x two TS 7")
        self.do("CPUT t r a:x late TS 6")
        self.do("CPUT t r a:x again TS 7")
        self.do("CINCRBY t r b:n 5")
        self.do("CINCRBY t r b:n 5")
        self.do("CAPPEND t r a:y ab")
        self.do("CAPPEND t r a:y cd")
        told = self.brief()
        self.assertEqual(["put r a:x 5 value=one", "put r a:x 7 value=two old=one oldts=5 oldtype=bytes",
                          "put r a:x 6 value=late old=two oldts=7 oldtype=bytes",
                          "put r a:x 7 value=again old=two oldts=7 oldtype=bytes"], told[:4])
        self.assertIn("value=10 old=5", told[5])
        self.assertIn("oldtype=i64", told[5])
        self.assertIn("value=abcd old=ab", told[7])

    def test_puts_of_one_command(self):
        self.do("CPUT t r a:x 1 TS 1 a:y 1 TS 1 a:x 2 TS 2 a:x 3 TS 1")
        self.assertEqual(["put r a:x 1 value=1", "put r a:y 1 value=1",
                          "put r a:x 2 value=2 old=1 oldts=1 oldtype=bytes",
                          "put r a:x 1 value=3 old=2 oldts=2 oldtype=bytes"], self.brief())

    def test_what_a_command_removes_again(self):
        self.do("CPUT t r a:x 0 TS 3")
        self.do("CMUTATE t r PUT a:x 1 TS 5 DEL a PUT a:x 2 TS 4")
        told = self.brief(behind=2)
        self.assertEqual(["put r a:x 5 value=1 old=0 oldts=3 oldtype=bytes", "del r a:x 5 value=1", "del r a:x 3 value=0",
                          "put r a:x 4 value=2"], told)

    def test_deletions_are_told_cell_by_cell(self):
        for row in "rst":
            self.do(f"CPUT t {row} a:x 1 TS 1 a:x 2 TS 2 a:y 3 TS 3 b:n 4 TS 4")
        n = len(self.ops()) + 1
        self.do("CDEL t r a:x")
        self.do("CDEL t r a:y TIME 3 3")
        self.do("CDEL t s")
        self.do("CDEL t s")
        self.do("CDEL t none")
        self.do("CDELRANGE t RANGE - +")
        self.assertEqual(["del r a:x 2 value=2", "del r a:x 1 value=1", "del r a:y 3 value=3",
                          "del s a:x 2 value=2", "del s a:x 1 value=1", "del s a:y 3 value=3", "del s b:n 4 value=4",
                          "del r b:n 4 value=4", "del t a:x 2 value=2", "del t a:x 1 value=1", "del t a:y 3 value=3",
                          "del t b:n 4 value=4"], self.brief(behind=n))
        self.assertEqual(["1", None], [e.get("more") for e in self.ops(behind=n)[:2]])

    def test_transactions(self):
        self.do("CPUT t r a:x 0 TS 1")
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.execute_command("CPUT", "t", "r", "a:x", "1", "TS", 2)
            pipe.execute_command("CPUT", "t", "r", "a:x", "2", "TS", 3)
            pipe.execute_command("CDEL", "t", "r", "a:x")
            pipe.execute_command("CPUT", "t", "r", "a:x", "3", "TS", 1)
            pipe.execute_command("CPUT", "t", "s", "a:x", "3", "TS", 1)
            pipe.execute()
        self.assertEqual(["put r a:x 2 value=1 old=0 oldts=1 oldtype=bytes", "put r a:x 3 value=2 old=1 oldts=2 oldtype=bytes",
                          "del r a:x 3 value=2", "del r a:x 2 value=1", "del r a:x 1 value=0", "put r a:x 1 value=3",
                          "put s a:x 1 value=3"], self.brief(behind=2))

    def test_what_is_refused_or_taken_back_is_not_told(self):
        self.do("INDEX CREATE t u ON 1 a:u UNIQUE")
        self.do("CPUT t r a:u 1 TS 1")
        n = len(self.ops()) + 1
        with self.assertRaises(redis.ResponseError):
            self.do("CPUT t s a:u 1 TS 1")
        with self.assertRaises(redis.ResponseError):
            self.do("CMUTATE t r DEL a:u PUT a:u 2 PUT b:n word")
        self.write("MULTI ATOMIC")
        self.call("CDEL t r")
        self.call("CINCRBY t r a:u x")
        self.call("EXEC")
        self.do("CPUT t r a:u 2 TS 2")
        self.assertEqual(["put r a:u 2 value=2 old=1 oldts=1 oldtype=bytes"], self.brief(behind=n))

    def test_other_feeds_are_as_ever(self):
        self.do("FEED CREATE plain ON 1 t")
        self.do("FEED CREATE part ON 1 t:b OLD PREFIX r")
        self.do("FEED CREATE slice0 ON 1 t OLD SLICE 0 2")
        self.do("FEED CREATE slice1 ON 1 t OLD SLICE 1 2")
        for row in ("r1", "r2", "s1", "s2", "s3"):
            self.do(f"CPUT t {row} a:x 1 TS 1 b:n 2 TS 1")
        self.do("CDELRANGE t PREFIX s")
        self.do("CDEL t r1")
        self.do("TABLE TRUNCATE t")
        self.assertEqual(["delrows", "delrange r1", "delrange r1", "truncate"], self.brief("plain")[10:])
        self.assertEqual(["put r1 b:n 1 value=2", "put r2 b:n 1 value=2", "del r1 b:n 1 value=2", "truncate"],
                         self.brief("part"))
        slices = [self.brief(f"slice{i}") for i in (0, 1)]
        self.assertEqual(sorted(self.brief()), sorted(slices[0] + slices[1][:-1]))
        self.assertTrue(all(len(part) > 2 for part in slices))
        info = self.redis.execute_command("FEED INFO", "f")
        self.assertEqual((1, 0), (info[9], info[11]))

    def test_every_type(self):
        values = {"i64": "-5", "u8": "200", "f64": "1.5", "bool": "true", "uuid": "123e4567-e89b-12d3-a456-426614174000",
                  "string": "é", "bytes": "x"}
        for kind, value in values.items():
            self.do(f"CPUT t {kind} a:v {value} AS {kind} TS 1")
            self.do(f"CPUT t {kind} a:v n TS 2")
            self.do(f"CDEL t {kind}")
        for kind, (put, over, *gone) in zip(values, zip(*[iter(self.ops())] * 4)):
            self.assertEqual((put["value"], "1", kind), (over["old"], over["oldts"], over["oldtype"]))
            self.assertEqual([("n", "bytes"), (put["value"], kind)], [(e["value"], e["type"]) for e in gone])

    def test_hll(self):
        self.do("TABLE CREATE h FAMILY uv AGGREGATE hll")
        self.do("FEED CREATE g ON 1 h OLD")
        self.do("CADD h r uv:all alice")
        self.do("CADD h r uv:all bob")
        state = self.redis.execute_command("CGET", "h", "r", "uv:all", "STATE")
        self.do("CDEL h r")
        told = read_all(self.redis, "g")[1:]
        self.assertEqual([b"put", b"add", b"del"], [flat[1] for _, flat in told])
        fields = dict(zip(told[2][1][::2], told[2][1][1::2]))
        self.assertEqual((b"hll", state), (fields[b"type"], fields[b"value"]))


    def test_folds_of_one_command(self):
        """What an ADD makes of a cell no op of the log says: the next put of the same command tells it as `old`."""
        self.do("TABLE CREATE h FAMILY s AGGREGATE hll")
        self.do("FEED CREATE g ON 1 h OLD")
        self.do("CADD h r s:a alice TS 9")
        self.do("CADD h r s:a bob TS 9 s:a carol TS 0")
        self.do("CMUTATE h r ADD s:a dave TS 9 ADD s:a erin TS 9 ADD s:a frank TS 1 ADD s:a frank TS 2")
        olds = [dict(zip(flat[::2], flat[1::2])).get(b"old") for _, flat in read_all(self.redis, "g")[1:]]
        states = {9: ()}
        for name in (b"alice", b"bob"):
            states[9] = hll.add(states[9], name)
        self.assertEqual([None, None, hll.encode(states[9])], olds[:3])
        for name in (b"dave", b"erin"):
            states[9] = hll.add(states[9], name)
        self.assertEqual([None, None, hll.encode(states[9]), hll.encode(states[9])], olds[3:])


class WhatExpiredTells(OldTest):
    def setUp(self):
        super().setUp()
        self.base = int(time.time() * 1e6) + 100_000_000
        self.now(0)

    def now(self, seconds):
        self.redis.execute_command("DEBUG", "SET-TIME", self.base + int(seconds * 1_000_000))

    def tearDown(self):
        self.redis.execute_command("DEBUG", "SET-TIME", "NOW")
        super().tearDown()

    def wait_for(self, told, feed="f"):
        wait_until(lambda: self.brief(feed) == told, lambda: f"{told}, but {self.brief(feed)}")

    def test_versions(self):
        self.do("TABLE CREATE t FAMILY a VERSIONS 2")
        self.do("FEED CREATE f ON 1 t EXPIRED")
        self.do("FEED CREATE both ON 1 t EXPIRED OLD")
        for i in range(1, 5):
            self.do(f"CPUT t r a:x {i} TS {i}")
        told = ["put r a:x 1 value=1", "put r a:x 2 value=2", "put r a:x 3 value=3", "del r a:x 1 by=expired",
                "put r a:x 4 value=4", "del r a:x 2 by=expired"]
        self.assertEqual(told, [line for line in self.brief()])
        self.assertEqual(["put r a:x 3 value=3 old=2 oldts=2 oldtype=bytes", "del r a:x 1 value=1 by=expired"],
                         self.brief("both")[2:4])
        # Of one command, too.
        self.do("CPUT t s a:x 1 TS 1 a:x 2 TS 2 a:x 3 TS 3 a:x 4 TS 4")
        live = {}
        for entry in self.ops()[6:]:
            if entry["op"] == "put":
                live[entry["ts"]] = entry["value"]
            else:
                self.assertEqual("expired", entry["by"])
                del live[entry["ts"]]
        self.do("FAMILY ALTER t a VERSIONS 1")
        self.wait_until_swept({"r": ["4"], "s": ["4"]})

    def wait_until_swept(self, wanted):
        def told():
            model = {}
            for entry in self.ops():
                if entry["op"] == "put":
                    model.setdefault(entry["row"], set()).add(entry["ts"])
                elif entry["op"] == "del":
                    model[entry["row"]].remove(entry["ts"])
            return {row: sorted(cells) for row, cells in model.items() if cells}
        wait_until(lambda: told() == wanted, told)

    def test_age(self):
        self.do("TABLE CREATE t FAMILY a TTL 10s")
        self.do("FEED CREATE f ON 1 t EXPIRED")
        for i in range(3):
            self.now(i)
            self.do(f"CPUT t r{i} a:x {i}")
        self.now(10.5)
        puts = [line for line in self.brief() if line.startswith("put")]
        ts = [line.split()[3] for line in puts]
        self.wait_for(puts + [f"del r0 a:x {ts[0]} by=expired"])
        # By a write, and by a deletion, which tells what was dead before.
        self.now(11.5)
        self.do("CPUT t r1 a:x new")
        told = self.brief()
        self.assertEqual(f"del r1 a:x {ts[1]} by=expired", told[4])
        self.now(100)
        self.wait_until_swept({})

    def test_once_over_crashes(self):
        self.do("TABLE CREATE t FAMILY a VERSIONS 1 TTL 5s")
        self.do("FEED CREATE f ON 1 t EXPIRED OLD")
        for round in range(CRASHES):
            self.now(round * 10)
            for i in range(50):
                self.do(f"CPUT t r{i % 20} a:x {round}.{i}")
            self.now(round * 10 + 7)
            if round % 2:
                time.sleep(0.05)  # the sweeper may begin
            self.server.crash()
            self.redis = as_sent(self.server.client())
            self.connect_wires()
        self.now(CRASHES * 10 + 20)
        self.wait_until_swept({})
        model = {}
        for entry in self.ops():
            key = entry["row"], entry["ts"]
            if entry["op"] == "put":
                model[key] = entry["value"]
            else:
                self.assertEqual(model.pop(key), entry["value"])

    def test_without_expired_the_dead_are_not_told(self):
        self.do("TABLE CREATE t FAMILY a TTL 10s")
        self.do("FEED CREATE f ON 1 t OLD")
        self.do("FEED CREATE plain ON 1 t")
        self.do("CPUT t r a:x 1 TS %d" % self.base)
        self.now(20)
        self.do("CDEL t r")
        self.do("CPUT t r a:x 2 TS %d" % (self.base + 20_000_000))
        self.assertEqual(["put r a:x %d value=1" % self.base, "put r a:x %d value=2" % (self.base + 20_000_000)], self.brief())


class CheckedModel(FeedModel):
    """Applies entries, and looks whether what they say of the past is so."""

    def __init__(self, old, expired):
        super().__init__()
        self.old, self.expired = old, expired
        self.ttl = {}
        self.now = 0

    def apply(self, id, flat):
        ms, n = key_of(id)
        self.now = ms * 1000 + n // 1_000_000
        super().apply(id, flat)

    def on_schema(self, fields):
        if not self.expired:
            super().on_schema(fields)
        create = fields["commands"].split("\n")[0].split(" FAMILY ")[1:]
        table = self.table(fields["table"])
        table.versions = {words.split()[0]: 0 for words in create}
        for words in map(str.split, create):
            if "VERSIONS" in words and words[words.index("VERSIONS") + 1] != "ALL":
                table.versions[words[0]] = int(words[words.index("VERSIONS") + 1])
            self.ttl[words[0]] = int(words[words.index("TTL") + 1].rstrip("s")) * 1_000_000 if "TTL" in words else 0

    def live(self, table, column, cells):
        """The timestamps of live cells, the newest first."""
        family = column.split(":", 1)[0]
        found = []
        for rank, ts in enumerate(sorted(cells, reverse=True), 1):
            kept = table.versions.get(family, 0)
            aged = self.ttl.get(family, 0) and ts + self.ttl[family] <= self.now
            expires = cells[ts][2]
            if not (kept and rank > kept) and not aged and not (expires and int(expires) <= self.now):
                found.append(ts)
        return found

    def reclaim(self, table, row, column):
        if self.expired:
            return
        cells = table.rows.get(row, {}).get(column, {})
        live = self.live(table, column, cells)
        for ts in [ts for ts in cells if ts not in live]:
            del cells[ts]

    def on_put(self, fields):
        table = self.table(fields["table"])
        self.reclaim(table, fields["row"], fields["column"])
        cells = table.rows.setdefault(fields["row"], {}).setdefault(fields["column"], {})
        if self.old:
            live = self.live(table, fields["column"], cells)
            wanted = (str(live[0]), *cells[live[0]][:2]) if live else (None, None, None)
            assert wanted == (fields.get("oldts"), fields.get("oldtype"), fields.get("old")), (wanted, fields)
        cells[int(fields["ts"])] = (fields["type"], fields["value"], fields.get("expires"))

    def on_del(self, fields):
        table = self.table(fields["table"])
        self.reclaim(table, fields["row"], fields["column"])
        cells = table.rows.get(fields["row"], {}).get(fields["column"], {})
        is_live = int(fields["ts"]) in self.live(table, fields["column"], cells)
        assert int(fields["ts"]) in cells, f"it is not there: {fields}"
        if fields.get("by") == "expired":
            assert self.expired
        elif self.old:
            assert is_live or not self.expired, f"it is dead: {fields}"
        if self.old:
            assert cells[int(fields["ts"])][:2] == (fields["type"], fields["value"]), fields
        del cells[int(fields["ts"])]

    def on_add(self, fields):
        cells = self.table(fields["table"]).rows.setdefault(fields["row"], {}).setdefault(fields["column"], {})
        before = cells.get(int(fields["ts"]), ("hll", None, None))
        state = () if before[1] is None else hll.decode(before[1].encode("utf-8", "surrogateescape"))
        state = hll.encode(hll.add(state, fields["value"].encode("utf-8", "surrogateescape")))
        cells[int(fields["ts"])] = ("hll", state.decode("utf-8", "surrogateescape"), before[2])

    def on_delrange(self, fields):
        assert not self.old
        super().on_delrange(fields)

    def on_delrows(self, fields):
        assert not self.old
        super().on_delrows(fields)

    def cells(self, name):
        table = self.table(name)
        return sorted((row, column, ts, cells[ts][0], self.shown(*cells[ts][:2])) for row, columns in table.rows.items()
                      for column, cells in columns.items() for ts in self.live(table, column, cells))

    @staticmethod
    def shown(kind, value):
        """As a scan has it: of a HyperLogLog how many there are."""
        return str(hll.estimate(hll.decode(value.encode("utf-8", "surrogateescape")))) if kind == "hll" else value


class Random(unittest.TestCase):
    def test_entries_from_0_applied_to_an_empty_model_equal_the_table(self):
        print(f"seed {SEED}", flush=True)
        chance = random.Random(SEED)
        with CellarServer(appendfsync="always", save="", enable_debug_command="yes") as server:
            client = as_sent(server.client())
            # In the middle of a second: retention goes by whole ones here.
            base = (int(time.time()) + 10) * 1_000_000
            clock = 0
            client.execute_command("DEBUG", "SET-TIME", base)
            feeds = {"plain": (), "old": ("OLD",), "expired": ("EXPIRED",), "both": ("OLD", "EXPIRED")}
            for name, words in feeds.items():
                client.execute_command("FEED CREATE", name, "ON", 0, *words)
            client.execute_command("TABLE CREATE", "t", "FAMILY", "k", "FAMILY", "v", "VERSIONS", 2, "FAMILY", "age", "TTL",
                                   "20s", "FAMILY", "s", "AGGREGATE", "hll")
            for step in range(STEPS):
                if chance.randrange(8) == 0:
                    clock += chance.randrange(1, 6)
                    client.execute_command("DEBUG", "SET-TIME", base + clock * 1_000_000)
                lines = [self.line(chance, base, clock) for _ in range(chance.choice((1, 1, 1, 3, 6)))]
                if len(lines) == 1:
                    client.execute_command(*lines[0])
                else:
                    with client.pipeline(transaction=True) as pipe:
                        for line in lines:
                            pipe.execute_command(*line)
                        pipe.execute()
                if step % 97 == 96:
                    self.check(client, feeds)
                if step % 200 == 150:
                    server.crash()
                    client = as_sent(server.client())
                    client.execute_command("DEBUG", "SET-TIME", base + clock * 1_000_000)
            self.check(client, feeds)

    def line(self, chance, base, clock):
        row, column = f"r{chance.randrange(6)}", f"q{chance.randrange(3)}"
        ts = base + (clock - chance.randrange(12)) * 1_000_000 + 500_000
        kind = chance.randrange(18)
        if kind >= 14:
            words = ["CADD", "t", row]
            for _ in range(chance.choice((1, 2, 3, 5))):
                words += [f"s:{column}", f"who{chance.randrange(300)}", "TS", base - chance.randrange(4)]
                column = f"q{chance.randrange(2)}"
            return words
        if kind <= 5:
            family = chance.choice(("k", "v", "age"))
            words = ["CPUT", "t", row]
            for _ in range(chance.choice((1, 1, 2, 4))):
                words += [f"{family}:{column}", chance.randrange(1000), "TS", ts - chance.randrange(3) * 1_000_000]
                if family == "k" and chance.randrange(4) == 0:
                    words += ["TTL", f"{chance.randrange(20, 30)}s"]
                column = f"q{chance.randrange(3)}"
            return words
        if kind == 6:
            return ["CMUTATE", "t", row, "PUT", "v:q0", 1, "TS", ts, "DEL", "v", "PUT", "v:q0", 2, "TS", ts + 1, "DEL", "k:q1",
                    "TIME", ts - 5_000_000, ts]
        if kind == 7:
            return ["CDEL", "t", row, chance.choice(("k", "v", "age", "s", "k:q0", "age:q1", "s:q0"))]
        if kind == 8:
            return ["CDEL", "t", row]
        if kind == 9:
            return ["CDEL", "t", row, "k:q0", "v", "TIME", ts - 4_000_000, ts]
        if kind == 10 and chance.randrange(4) == 0:
            return ["CDELRANGE", "t", "RANGE", f"[r{chance.randrange(6)}", f"[r{chance.randrange(6)}"]
        if kind == 11 and chance.randrange(3) == 0:
            return ["FAMILY", "ALTER", "t", "v", "VERSIONS", chance.randrange(1, 4)]
        if kind == 12 and chance.randrange(10) == 0:
            return ["TABLE", "TRUNCATE", "t"]
        return ["CAPPEND", "t", row, f"v:{column}", "x"]

    def check(self, client, feeds):
        found = table_cells(client, "t")
        now = None
        for name, words in feeds.items():
            model = CheckedModel("OLD" in words, "EXPIRED" in words)
            past = []
            for id, flat in read_all(client, name):
                past.append((id, pairs(flat)))
                try:
                    model.apply(id, flat)
                except AssertionError as error:
                    place = {k: past[-1][1].get(k) for k in ("row", "column")}
                    about = [entry for entry in past if entry[1].get("row") in (None, place["row"])
                             and entry[1].get("column") in (None, place["column"])]
                    raise AssertionError(f"{name}, seed {SEED}: {about[-12:]}") from error
            now = max(now or 0, model.now)
            model.now = now
            live = [cell for cell in model.cells("t")]
            self.assertEqual(found, live, (SEED, name))


if __name__ == "__main__":
    unittest.main()
