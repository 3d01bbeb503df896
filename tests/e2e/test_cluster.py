"""A cluster of one set: CLUSTER and TABLET, the map in _cluster, what a split changes (where tablets end) and what not
(everything else)."""

import os
import random
import subprocess
import sys
import threading
import unittest

import redis

from cellar_server import ROOT, CellarServer, CellarTest, binary, not_on_a_follower
from replica_sets import ReplicaSetCase

sys.path.insert(0, os.path.join(ROOT, "tests"))

from model import resp  # noqa: E402

DISABLED = "This instance has cluster support disabled"
KEPT = "keyspace '_cluster' is the cluster's own, which alone changes it"
ROUNDS = int(os.environ.get("CELLAR_CLUSTER_ROUNDS", "300"))
SEED = int(os.environ.get("CELLAR_CLUSTER_SEED", "0"))
MANY = int(os.environ.get("CELLAR_CLUSTER_TABLETS", "20000"))


def pairs(flat):
    """A map, as RESP2 has it."""
    return dict(zip(*[iter(flat)] * 2))


class ClusterCase(ReplicaSetCase):
    def alone(self, **options):
        """A set of one voter that is a cluster."""
        self.members = self.found(1, **options)
        self.leader = self.members[0]
        self.assertEqual("OK", self.leader.run("CLUSTER INIT"))
        return self.leader

    def three(self, **options):
        options.setdefault("replica_election_timeout", 2000)
        self.members = self.found(3, cluster_forward="yes", **options)
        for member in self.members:
            member.run("CONFIG SET cluster-wait 60000")
        leader = self.wait_leader(self.members)
        self.assertEqual("OK", self.lead(self.members, "CLUSTER", "INIT"))
        leader = self.wait_leader(self.members)
        return leader, next(member for member in self.members if member is not leader)

    def refused(self, member, text, *words):
        told = member.refusal(*words)
        self.assertIn(text, told, words)

    def tablets(self, member, *words):
        """TABLET LIST: the version, and the tablets as dicts."""
        version, listed = member.run("TABLET", "LIST", *words)
        return version, None if listed is None else [pairs(each) for each in listed]

    def listed(self, member):
        """All of the map, without what the node alone knows; or why not."""
        try:
            version, tablets = self.tablets(member)
        except redis.RedisError as error:
            return str(error)
        return version, [{name: value for name, value in each.items() if name not in ("bytes", "rows", "load")} for each in tablets]

    def ends(self, member, table, *words):
        return [(each["start"], each["end"]) for each in self.tablets(member, table, *words)[1]]

    def option(self, member, name):
        return pairs(member.run("CONFIG", "GET", name))[name]

    def raw(self, member):
        return member.server.client()

    def assert_well(self, member):
        self.assertEqual([], member.run("CLUSTER MAP CHECK"))


class Outside(CellarTest):
    """A server without cluster-nodes."""

    OPTIONS = {"enable-debug-command": "yes"}

    @not_on_a_follower("a set knows more")
    def test_there_is_no_cluster(self):
        self.redis.execute_command("TABLE", "CREATE", "plain", "FAMILY", "f")
        for text in ("CLUSTER INIT", "CLUSTER END", "CLUSTER SETS", "CLUSTER INFO", "CLUSTER EVENTS", "CLUSTER MAP CHECK",
                     "CLUSTER MAP REBUILD", "CLUSTER CONFIG GET *", "CLUSTER CONFIG SET tablet-moves 3", "TABLET LIST",
                     "TABLET LIST plain", "TABLET ROUTE plain r", "TABLET SPLIT plain r", "TABLET MERGE plain r",
                     "CLUSTER NODES", "CLUSTER SLOTS", "ASKING", "DEBUG CLUSTER CUT-TABLES utf8 h"):
            with self.assertRaisesRegex(redis.ResponseError, DISABLED, msg=text):
                self.redis.execute_command(*text.split())
        with self.assertRaisesRegex(redis.ResponseError, "Unknown option"):
            self.redis.execute_command("CONFIG", "SET", "tablet-moves", "3")
        self.assertEqual({}, self.redis.config_get("tablet-*"))
        self.assertNotIn("cluster_set", self.redis.info("cluster"))
        # Its name is one like any other here.
        self.redis.execute_command("KEYSPACE", "CREATE", "_cluster")
        self.redis.execute_command("TABLE", "CREATE", "_cluster/tablets", "FAMILY", "f")
        self.redis.execute_command("CPUT", "_cluster/tablets", "r", "f:a", "1")
        self.redis.execute_command("KEYSPACE", "DROP", "_cluster")

    @not_on_a_follower("written on the leader alone")
    def test_colocate_and_whole_are_kept_and_split_at_does_nothing(self):
        run = self.redis.execute_command
        run("TABLE", "CREATE", "u", "FAMILY", "f")
        self.assertNotIn(b"colocate", run("TABLE", "INFO", "u"))
        run(*"TABLE CREATE g KEY utf8/u32 COLOCATE 1 SPLIT AT 2 m p FAMILY f".split())
        self.assertEqual([b"TABLE CREATE g KEY utf8/u32 COLOCATE 1 FAMILY f"], run("TABLE", "SHOW", "g"))
        self.assertEqual((1, 0), tuple(pairs(run("TABLE", "INFO", "g"))[name] for name in (b"colocate", b"whole")))
        self.assertNotIn(b"tablets", run("TABLE", "INFO", "g"))
        digest = run("DEBUG", "DIGEST")
        run("TABLE", "ALTER", "g", "WHOLE")
        self.assertEqual([b"TABLE CREATE g KEY utf8/u32 COLOCATE 1 WHOLE FAMILY f"], run("TABLE", "SHOW", "g"))
        self.assertEqual(digest, run("DEBUG", "DIGEST"))  # where rows lie is not what they are
        run("DEBUG", "RELOAD")
        self.assertEqual([b"TABLE CREATE g KEY utf8/u32 COLOCATE 1 WHOLE FAMILY f"], run("TABLE", "SHOW", "g"))
        run("BGSAVE")
        run("DEBUG", "RELOAD")
        run("TABLE", "ALTER", "g", "SPREAD")
        self.assertEqual([b"TABLE CREATE g KEY utf8/u32 FAMILY f"], run("TABLE", "SHOW", "g"))
        run("INDEX", "CREATE", "g", "i", "ON", 1, "f:a", "UNIQUE")
        self.assertEqual([b"TABLE CREATE g KEY utf8/u32 FAMILY f"], run("TABLE", "SHOW", "g")[:1])
        for text, words in (("COLOCATE names more key components than there are: 2", "TABLE ALTER g COLOCATE 3"),
                            ("COLOCATE names more key components than there are: 1", "TABLE CREATE x COLOCATE 2 FAMILY f"),
                            ("COLOCATE", "TABLE CREATE x COLOCATE 0 FAMILY f"),
                            ("COLOCATE", "TABLE ALTER g COLOCATE"),
                            ("is not COLOCATE, WHOLE or SPREAD", "TABLE ALTER g TOGETHER"),
                            ("SPLIT AT", "TABLE CREATE x SPLIT 1 m FAMILY f"),
                            ("SPLIT AT", "TABLE CREATE x SPLIT AT 3 m p"),
                            ("a WHOLE table is not split", "TABLE CREATE x WHOLE SPLIT AT 1 m FAMILY f"),
                            ("BADKEY", "TABLE CREATE x KEY u8 SPLIT AT 1 300 FAMILY f"),
                            ("the tablet ends there already", "TABLE CREATE x SPLIT AT 2 m m FAMILY f"),
                            ("WHOLE", "TABLE CREATE x FAMILY f WHOLE")):
            with self.assertRaises(redis.ResponseError, msg=words) as caught:
                run(*words.split())
            self.assertIn(text, str(caught.exception), words)


class OneSet(ClusterCase):
    def test_init_and_end(self):
        member = self.found(1)[0]
        member.run("TABLE CREATE t FAMILY f")
        member.run("CPUT t a f:x 1")
        for words in ("CLUSTER END", "CLUSTER INFO", "CLUSTER EVENTS", "CLUSTER MAP CHECK", "CLUSTER CONFIG GET *",
                      "TABLET LIST", "TABLET SPLIT t m", "CLUSTER NODES"):
            self.refused(member, DISABLED, words)
        self.assertEqual([], member.run("CLUSTER SETS"))
        self.assertEqual("local", self.option(member, "cluster-reads"))
        digest = member.run("DEBUG DIGEST CLUSTER")
        self.assertEqual("OK", member.run("CLUSTER INIT"))
        self.refused(member, "this set is set 0 of a cluster", "CLUSTER INIT")
        self.assertEqual(digest, member.run("DEBUG DIGEST CLUSTER"))
        self.assertEqual("leader", self.option(member, "cluster-reads"))
        client = member.server.client(decode_responses=True, single_connection_client=True)
        client.execute_command("SELECT", "_cluster")
        self.assertEqual(["catalog", "cuts", "events", "jobs", "options", "sets", "tablets"], client.execute_command("TABLE", "LIST"))
        self.assertIn("_cluster", member.run("KEYSPACE LIST"))
        version, listed = self.tablets(member)
        self.assertEqual(1, version)
        self.assertEqual(["0/t"] + [f"_cluster/{name}" for name in ("tablets", "sets", "options", "events", "catalog", "jobs", "cuts")],
                         [each["table"] for each in listed])
        self.assertEqual({"table": "0/t", "start": "", "end": "", "set": 0, "epoch": 1, "bytes": listed[0]["bytes"], "rows": 1, "load": None,
                          "state": "owned", "job": None, "to": None, "progress": None}, listed[0])
        info = member.info("cluster")
        self.assertEqual((0, 1, "director", 1, 8), tuple(info[f"cluster_{name}"] for name in
                                                         ("set", "sets", "role", "map_version", "tablets_owned")))
        self.assertEqual("ok", info["set0"]["state"])
        self.assertEqual(["state", "leader", "tablets", "bytes", "load", "catalog"], list(info["set0"]))
        self.assertIn("cluster_role:director", member.run("CLUSTER INFO"))
        one, = (pairs(each) for each in member.run("CLUSTER SETS"))
        self.assertEqual((0, "ok", 8, 1), (one["set"], one["state"], one["tablets"], len(one["members"])))
        self.assertEqual(one["leader"], f"127.0.0.1:{member.port}")
        self.assertRegex(one["id"], "^[0-9a-f]{16}$")
        own = pairs(one["members"][0])
        self.assertEqual(("127.0.0.1", member.port, "voter", "leader"),
                         tuple(own[name] for name in ("ip", "port", "kind", "state")))
        self.refused(member, DISABLED, "CLUSTER NODES")
        self.refused(member, DISABLED, "CLUSTER SHARDS")
        self.assertEqual(0, info["cluster_enabled"])
        self.assertEqual("OK", member.run("CLUSTER END"))
        self.assertEqual("local", self.option(member, "cluster-reads"))
        self.refused(member, DISABLED, "CLUSTER END")
        self.assertNotIn("_cluster", member.run("KEYSPACE LIST"))
        self.assertEqual(digest, member.run("DEBUG DIGEST CLUSTER"))
        self.assertNotIn("cluster_set", member.info("cluster"))
        self.refused(member, "one of the following: local, leader, linearizable", "CONFIG SET cluster-reads nobody")
        # Again, and what was said of reads stays.
        member.run("CONFIG SET cluster-reads local")
        self.assertEqual("OK", member.run("CLUSTER INIT"))
        self.assertEqual("local", self.option(member, "cluster-reads"))
        self.assertEqual("1", member.run("CGET t a f:x"))

    def test_init_needs_the_name(self):
        member = self.found(1)[0]
        member.run("KEYSPACE CREATE _cluster")
        self.refused(member, "BUSYKEY", "CLUSTER INIT")
        self.refused(member, DISABLED, "CLUSTER INFO")
        member.run("KEYSPACE DROP _cluster")
        self.assertEqual("OK", member.run("CLUSTER INIT"))

    def test_words_that_are_none(self):
        member = self.alone()
        member.run("TABLE CREATE t FAMILY f")
        for text, words in (("CHECK or REBUILD", "CLUSTER MAP MAKE"), ("GET or SET", "CLUSTER CONFIG LIST x"),
                            ("wrong number", "CLUSTER CONFIG SET tablet-moves"), ("wrong number", "CLUSTER MAP"),
                            ("Unknown option of the cluster - 'port'", "CLUSTER CONFIG SET port 3"),
                            ("argument must be between 1 and 1024", "CLUSTER CONFIG SET tablet-moves 0"),
                            ("integer", "CLUSTER CONFIG SET tablet-moves x"),
                            ("memory value", "CLUSTER CONFIG SET tablet-split-bytes many"),
                            ("no, size, yes", "CLUSTER CONFIG SET tablet-balance maybe"),
                            ("COUNT", "CLUSTER EVENTS LIMIT 3"), ("COUNT", "CLUSTER EVENTS COUNT 0"),
                            ("unknown subcommand", "CLUSTER NOSUCH"), ("unknown subcommand", "TABLET NOSUCH"),
                            ("FROM needs a table", "TABLET LIST FROM m"), ("FROM, COUNT or SINCE", "TABLET LIST t LIMIT 3"),
                            ("COUNT", "TABLET LIST t COUNT 0"), ("SINCE", "TABLET LIST t SINCE x"),
                            ("SINCE", "TABLET LIST t SINCE 1 SINCE 2"), ("FROM", "TABLET LIST t FROM a FROM b"),
                            ("COUNT", "TABLET LIST t COUNT 1 COUNT 2"),
                            ("NOTABLE", "TABLET LIST u"), ("NOTABLE", "TABLET ROUTE u r"), ("NOTABLE", "TABLET SPLIT u r"),
                            ("NOTABLE", "TABLET MERGE u r"), ("SURE", "TABLET ROUTE t r NOW"),
                            ("wrong number", "TABLET SPLIT t"), ("wrong number", "TABLET MERGE t a b"),
                            ("wrong number", "TABLET ROUTE t")):
            self.refused(member, text, words)
        self.refused(member, "BADKEY", "TABLET", "ROUTE", "t", "")
        for words in ("CLUSTER INIT", "CLUSTER END", "CLUSTER MAP CHECK", "CLUSTER CONFIG GET *", "TABLET SPLIT t m",
                      "TABLET MERGE t m"):
            client = member.server.client(single_connection_client=True)
            client.execute_command("MULTI")
            with self.assertRaisesRegex(redis.ResponseError, "not allowed"):
                client.execute_command(*words.split())
            client.close()

    def test_options_of_the_cluster(self):
        member = self.alone()
        shown = pairs(member.run("CLUSTER CONFIG GET *"))
        own, agreed = member.info("cluster")["cluster_feature_level"].split("/")
        self.assertEqual((own, own), (agreed, shown.pop("feature-level")))
        self.refused(member, "feature-level cannot be set: it rises by itself", "CLUSTER CONFIG SET feature-level 3")
        self.assertNotIn("feature-level", pairs(member.run("CONFIG GET *")))
        self.assertEqual({"cluster-cut-interval": "0", "tablet-split-bytes": "268435456", "tablet-merge-bytes": "67108864",
                          "tablet-balance": "yes", "tablet-move-rate": "67108864", "tablet-moves": "2"}, shown)
        self.assertEqual("OK", member.run("CLUSTER CONFIG SET TABLET-SPLIT-BYTES 1gb"))
        self.assertEqual("OK", member.run("CLUSTER CONFIG SET tablet-balance Size"))
        self.assertEqual(["tablet-split-bytes", "1073741824"], member.run("CONFIG GET tablet-split-*"))
        self.refused(member, "tablet-moves is an option of the cluster: CLUSTER CONFIG SET", "CONFIG SET tablet-moves 3")
        member.server.kill()
        member.server.start()
        self.wait_leader(self.members)
        self.assertEqual("size", self.option(member, "tablet-balance"))
        events = member.run("CLUSTER EVENTS COUNT 2")
        self.assertEqual([["tablet-balance is size", "CLUSTER CONFIG SET"], ["tablet-split-bytes is 1073741824",
                                                                             "CLUSTER CONFIG SET"]],
                         [each[1:] for each in events])
        self.assertEqual("set 0 begins a cluster", member.run("CLUSTER EVENTS")[-1][1])

    def test_splits_and_merges(self):
        member = self.alone()
        member.run("TABLE CREATE t FAMILY f")
        for row in "abcmz":
            member.run(f"CPUT t {row} f:x {row}")
        digest = member.run("DEBUG DIGEST CLUSTER")
        version = self.tablets(member)[0]
        self.assertEqual("OK", member.run("TABLET SPLIT t m"))
        self.assertEqual([("", "m"), ("m", "")], self.ends(member, "t"))
        self.refused(member, "the tablet ends there already", "TABLET SPLIT t m")
        self.refused(member, "the tablet ends there already", "TABLET SPLIT t c m")
        self.refused(member, "the tablet ends there already", "TABLET SPLIT t c c")
        self.refused(member, "the tablet ends there already", "TABLET", "SPLIT", "t", "")
        self.assertEqual(version + 1, self.tablets(member)[0])
        self.assertEqual("OK", member.run("TABLET SPLIT t z c"))  # a row that is there, and in any order
        self.assertEqual([("", "c"), ("c", "m"), ("m", "z"), ("z", "")], self.ends(member, "t"))
        self.assertEqual(4, pairs(member.run("TABLE INFO t"))["tablets"])
        self.assertEqual(1, pairs(member.run("TABLE INFO t"))["sets"])
        self.assertEqual([("c", "m"), ("m", "z"), ("z", "")], self.ends(member, "t", "FROM", "d"))
        self.assertEqual([("c", "m"), ("m", "z")], self.ends(member, "t", "FROM", "c", "COUNT", "2"))
        self.assertEqual([], self.ends(member, "t", "SINCE", str(self.tablets(member)[0])))
        self.assertEqual([("", "c"), ("c", "m"), ("m", "z"), ("z", "")], self.ends(member, "t", "SINCE", str(version)))
        self.assertEqual(digest, member.run("DEBUG DIGEST CLUSTER"))
        self.assertEqual(["a", "b", "c", "m", "z"], [row for row, _ in member.run("CSCAN t 0")[1]])
        for row, (start, end) in (("a", ("", "c")), ("c", ("c", "m")), ("lz", ("c", "m")), ("zz", ("z", ""))):
            for words in ("", " SURE"):
                route = pairs(member.run(f"TABLET ROUTE t {row}{words}"))
                self.assertEqual({"set": 0, "epoch": 1, "start": start, "end": end, "leader": f"127.0.0.1:{member.port}",
                                  "version": self.tablets(member)[0]}, route)
        self.assertEqual("OK", member.run("TABLET MERGE t a"))
        self.assertEqual("OK", member.run("TABLET", "MERGE", "t", ""))
        self.assertEqual([("", "z"), ("z", "")], self.ends(member, "t"))
        self.refused(member, "the tablet is the last one of table 't'", "TABLET MERGE t zz")
        self.assertEqual("OK", member.run("TABLET MERGE t a"))
        self.assertEqual([("", "")], self.ends(member, "t"))
        self.assertEqual(digest, member.run("DEBUG DIGEST CLUSTER"))
        self.assertEqual([5], [each["rows"] for each in self.tablets(member, "t")[1]])
        what = [each[1] for each in member.run("CLUSTER EVENTS COUNT 5")]
        self.assertEqual("merge t at 'a'", what[0])
        self.assertEqual("split t at 'z' and 1 more", what[3])
        self.assert_well(member)

    def test_keys_of_every_kind(self):
        member = self.alone()
        raw = self.raw(member)

        def ends(table):
            return [(bytes(pairs(each)[b"start"]), bytes(pairs(each)[b"end"])) for each in
                    raw.execute_command("TABLET", "LIST", table)[1]]
        run = raw.execute_command
        run("TABLE", "CREATE", "bin", "FAMILY", "f")
        rows = [b"\x00", b"\x00\x00", b"\x00\x01", b"\x00\xff", b"\xff", b"\xff\xff\x00", b"/", b"\r\n$1"]
        run("TABLET", "SPLIT", "bin", *rows)
        self.assertEqual([b""] + sorted(rows), [start for start, _ in ends("bin")])
        run("TABLE", "CREATE", "down", "KEY", "-utf8/-i32", "FAMILY", "f")
        run("TABLET", "SPLIT", "down", "m", "m/5", "m/-2147483648", "m/2147483647")
        self.assertEqual([(b"", b"m"), (b"m", b"m/2147483647"), (b"m/2147483647", b"m/5"), (b"m/5", b"m/-2147483648"),
                          (b"m/-2147483648", b"")], ends("down"))
        for row, start in (("z/1", b""), ("m/6", b"m/2147483647"), ("m/5", b"m/5"), ("a/9", b"m/-2147483648")):
            self.assertEqual(start, pairs(run("TABLET", "ROUTE", "down", row))[b"start"], row)
        run("TABLE", "CREATE", "edge", "KEY", "u8", "FAMILY", "f")
        run("TABLET", "SPLIT", "edge", "0", "255")
        self.assertEqual([(b"", b"0"), (b"0", b"255"), (b"255", b"")], ends("edge"))
        for key, word in (("u8", "256"), ("i64", "9223372036854775808"), ("uuid", "x"), ("u32/utf8", "x"), ("f64", "one")):
            run("TABLE", "CREATE", "bad" + key.replace("/", "_"), "KEY", key, "FAMILY", "f")
            with self.assertRaisesRegex(redis.ResponseError, "BADKEY|must|not"):
                run("TABLET", "SPLIT", "bad" + key.replace("/", "_"), word)
        run("TABLE", "CREATE", "part", "KEY", "u32/utf8", "FAMILY", "f")
        run("TABLET", "SPLIT", "part", "7", "7/m", "8")
        self.assertEqual([(b"", b"7"), (b"7", b"7/m"), (b"7/m", b"8"), (b"8", b"")], ends("part"))
        with self.assertRaisesRegex(redis.ResponseError, "BADKEY"):
            run("TABLET", "ROUTE", "part", "7")
        # As long as a tablet's end may be, and longer.
        run("TABLE", "CREATE", "long", "FAMILY", "f")
        longest = b"k" * (64 * 1024 - 2)
        run("TABLET", "SPLIT", "long", longest)
        self.assertEqual([(b"", longest), (longest, b"")], ends("long"))
        for row in (longest + b"k", b"k" * 70_000, b"\x00" * 40_000):
            with self.assertRaisesRegex(redis.ResponseError, "TOOLARGE"):
                run("TABLET", "SPLIT", "long", row)
        run("TABLET", "SPLIT", "long", b"\x00" * 30_000)
        member.server.kill()
        member.server.start()
        self.wait_leader(self.members)
        self.assertEqual([b"", b"\x00" * 30_000, longest], [start for start, _ in ends("long")])
        self.assert_well(member)
        run("TABLE", "CREATE", "numbers", "KEY", "recno", "FAMILY", "f")
        run("TABLET", "SPLIT", "numbers", "3")
        self.assertEqual([1, 2, 3, 4], [int(run("CPUT", "numbers", "*", "f:a", "1")) for _ in range(4)])

    def test_groups_stay_together(self):
        member = self.alone()
        run = member.run
        run("TABLE CREATE g KEY utf8/u32 COLOCATE 1 SPLIT AT 2 m p FAMILY f")
        self.assertEqual([("", "m"), ("m", "p"), ("p", "")], self.ends(member, "g"))
        self.refused(member, "rows of one group must stay together: the first 1 key components", "TABLET SPLIT g m/5")
        self.refused(member, "rows of one group must stay together: the first 1 key components",
                     "TABLE CREATE x KEY utf8/u32 COLOCATE 1 SPLIT AT 1 m/5 FAMILY f")
        self.assertEqual((1, 0, 3, 1), tuple(pairs(run("TABLE INFO g"))[name] for name in
                                             ("colocate", "whole", "tablets", "sets")))
        run("TABLE CREATE h KEY utf8/u32 SPLIT AT 2 m/5 p FAMILY f")
        run("TABLE ALTER h COLOCATE 1")
        self.assertEqual([("", "p"), ("p", "")], self.ends(member, "h"))
        run("TABLE ALTER h WHOLE")
        self.refused(member, "table h is WHOLE: TABLE ALTER h SPREAD", "TABLET SPLIT h x")
        run("TABLE ALTER h SPREAD")
        run("TABLET SPLIT h x")
        self.refused(member, "a UNIQUE index needs TABLE ALTER h WHOLE, or COLOCATE by its first columns",
                     "INDEX CREATE h i ON 1 f:a UNIQUE")
        run("TABLE CREATE u FAMILY f")
        run("INDEX CREATE u i ON 1 f:a UNIQUE")
        self.assertEqual(1, pairs(run("TABLE INFO u"))["whole"])
        self.assertIn("Table 'u' is WHOLE from now on", member.server.log())
        self.refused(member, "table u is WHOLE: TABLE ALTER u SPREAD", "TABLET SPLIT u m")
        self.refused(member, "has a UNIQUE index", "TABLE ALTER u SPREAD")
        self.assert_well(member)

    def test_init_makes_tables_with_unique_indexes_whole(self):
        member = self.found(1)[0]
        member.run("TABLE CREATE u FAMILY f")
        member.run("INDEX CREATE u i ON 1 f:a UNIQUE")
        member.run("CLUSTER INIT")
        self.assertEqual(1, pairs(member.run("TABLE INFO u"))["whole"])
        member.run("CPUT u a f:a 1")
        self.refused(member, "NOTUNIQUE", "CPUT u b f:a 1")

    def test_nobody_else_writes_the_map(self):
        member = self.alone()
        member.run("TABLE CREATE t FAMILY f")
        member.run("TABLET SPLIT t m")
        rows = {row: pairs(cells) for row, cells in member.run("CSCAN _cluster/tablets 0 COUNT 100")[1]}
        head = rows.pop("0/0")
        self.assertEqual(str(self.tablets(member)[0]), head["f:version"])
        self.assertEqual({"0/t", "_cluster/tablets", "_cluster/sets", "_cluster/options", "_cluster/events", "_cluster/jobs",
                          "_cluster/catalog", "_cluster/cuts"},
                         {cells["f:table"] for cells in rows.values()})
        self.assertEqual(pairs(member.run("CLUSTER SETS")[0])["id"], member.run("CGET _cluster/sets 0 f:id"))
        for words in ("CPUT _cluster/tablets 0/0 f:version 9", "CDEL _cluster/tablets 0/0", "CMUTATE _cluster/sets 0 PUT f:a 1",
                      "CINCRBY _cluster/sets 0 f:n 1", "CDELRANGE _cluster/tablets ALL", "CUPDATE _cluster/tablets ALL PUT f:a 1",
                      "TABLE DROP _cluster/tablets", "TABLE TRUNCATE _cluster/events", "TABLE CREATE _cluster/x FAMILY f",
                      "TABLE RENAME _cluster/sets y", "TABLE RENAME t _cluster/t", "TABLE ALTER _cluster/sets WHOLE",
                      "FAMILY ADD _cluster/sets g", "FAMILY DROP _cluster/sets f", "FAMILY ALTER _cluster/sets f VERSIONS 2",
                      "INDEX CREATE _cluster/sets i ON 1 f:id", "KEYSPACE DROP _cluster", "COPY t _cluster/t",
                      "RENAME t _cluster/tablets", "TABLET SPLIT _cluster/sets 5", "FEED CREATE _cluster/x ON 0"):
            self.refused(member, KEPT, words)
        client = member.server.client(decode_responses=True, single_connection_client=True)
        client.execute_command("SELECT", "_cluster")
        for words in ("FLUSHDB", "DEL tablets", "UNLINK sets events", "SNAPSHOT CREATE s"):
            with self.assertRaisesRegex(redis.ResponseError, KEPT, msg=words):
                client.execute_command(*words.split())
        with member.redis.pipeline(transaction=True) as pipe:
            pipe.execute_command("CPUT", "_cluster/tablets", "0/0", "f:version", "9")
            self.assertIn(KEPT, str(pipe.execute(raise_on_error=False)[0]))
        member.run("FLUSHALL")
        self.assertEqual([], member.run("TABLE LIST"))
        self.assertEqual(7, len(self.tablets(member)[1]))
        self.assert_well(member)
        self.assertLess(int(head["f:version"]), int(member.run("CGET _cluster/tablets 0/0 f:version")))

    def test_the_map_follows_tables(self):
        member = self.alone()
        member.run("TABLE CREATE t FAMILY f")
        member.run("TABLET SPLIT t m")
        version = self.tablets(member)[0]
        member.run("TABLE RENAME t u")
        now, listed = self.tablets(member, "u", "SINCE", str(version))
        self.assertEqual([("", "m"), ("m", "")], [(each["start"], each["end"]) for each in listed])
        member.run("TABLE TRUNCATE u")
        self.assertEqual(now, self.tablets(member)[0])
        member.run("COPY u v")
        self.assertEqual([("", "")], self.ends(member, "v"))
        member.run("SNAPSHOT CREATE s")
        self.refused(member, "has no tablets", "TABLET LIST u@s")
        self.refused(member, "has no tablets", "TABLET ROUTE u@s r")
        self.refused(member, "is a snapshot", "TABLET SPLIT u@s r")
        member.run("TABLE DROP u")
        self.assertIsNone(self.tablets(member, "SINCE", str(now))[1])  # what is gone nothing stands for
        self.assertIsNone(self.tablets(member, "SINCE", "1000000")[1])
        latest = self.tablets(member)[0]
        self.assertEqual([], self.tablets(member, "SINCE", str(latest))[1])
        member.run("KEYSPACE CREATE k")
        member.run("TABLE CREATE k/t SPLIT AT 1 m FAMILY f")
        self.assertEqual([("k/t", "", "m"), ("k/t", "m", "")], [(each["table"], each["start"], each["end"]) for each in
                                                                self.tablets(member, "SINCE", str(latest))[1]])
        member.run("KEYSPACE DROP k")
        self.assert_well(member)

    def test_check_and_rebuild(self):
        member = self.alone()
        member.run("TABLE CREATE t FAMILY f")
        member.run("TABLET SPLIT t m")
        member.run("DEBUG", "TABLETS", "t", "", "c", "x", "")
        self.assertEqual(["hole: 0/t from 'c' to 'x'"], member.run("CLUSTER MAP CHECK"))
        self.assertEqual([("", "c"), ("x", "")], self.ends(member, "t"))
        self.refused(member, "TRYAGAIN the map does not say who owns row 'm' of table 't'", "TABLET ROUTE t m")
        self.refused(member, "TRYAGAIN row 'm' of table 't' has moved", "TABLET ROUTE t m SURE")
        self.refused(member, "TRYAGAIN row 'm' of table 't' has moved", "TABLET SPLIT t m")
        self.refused(member, "the next tablet is another set's: TABLET MOVE first", "TABLET MERGE t a")
        self.refused(member, "this set does not own all of table 0/t", "CLUSTER END")
        member.run("DEBUG", "TABLETS", "t", "", "")
        version = self.tablets(member)[0]
        self.assertEqual("OK", member.run("CLUSTER MAP REBUILD"))
        self.assertEqual(version + 1, self.tablets(member)[0])
        self.assertEqual(8, len(self.tablets(member, "SINCE", str(version))[1]))
        self.assert_well(member)

    def test_a_map_that_was_never_made(self):
        """DEBUG TABLETS makes a cluster without one."""
        member = self.found(1)[0]
        member.run("TABLE CREATE t FAMILY f")
        member.run("DEBUG", "TABLETS", "t", "", "")
        self.assertEqual(["keyspace '_cluster' is not there: CLUSTER END, then CLUSTER INIT"], member.run("CLUSTER MAP CHECK"))
        self.refused(member, "is not there", "CLUSTER MAP REBUILD")
        self.refused(member, "is not there", "CLUSTER CONFIG SET tablet-moves 3")
        self.assertEqual([], member.run("CLUSTER EVENTS"))
        self.assertEqual((0, []), self.tablets(member))
        self.assertEqual("OK", member.run("TABLET SPLIT t m"))
        self.assertEqual("OK", member.run("CLUSTER END"))
        self.assertEqual("OK", member.run("CLUSTER INIT"))
        self.assert_well(member)

    def test_restart_and_snapshot(self):
        member = self.alone()
        member.run("TABLE CREATE t SPLIT AT 2 c m FAMILY f")
        member.run("CPUT t a f:x 1")
        expected = self.listed(member)
        digest = member.run("DEBUG DIGEST")

        def same():
            self.wait_leader(self.members)
            self.assertEqual(digest, member.run("DEBUG DIGEST"))
            self.assertEqual(expected, self.listed(member))
            self.assertEqual("leader", self.wait_reads(member))
            self.assert_well(member)
            self.refused(member, KEPT, "CPUT _cluster/tablets 0/0 f:version 9")
        for save in (False, True, False):
            if save:
                member.run("SAVE")
            member.server.kill()
            member.server.start()
            same()

    def test_check_and_dump(self):
        member = self.alone()
        member.run("TABLE CREATE t KEY utf8/u32 COLOCATE 1 FAMILY f")
        member.run("TABLET SPLIT t m")
        member.run("TABLET MERGE t a")
        member.server.stop()
        done = subprocess.run([binary(), "--check", member.directory], capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        dump = subprocess.run([binary(), "--dump", member.directory], capture_output=True, text=True, check=True).stdout
        for line in ("TABLETS OF SET 0 CATALOG 1", "KEYSPACE CREATE _cluster", "KEY utf8/u32 COLOCATE 1", "TABLET SPLIT",
                     "TABLET MERGE"):
            self.assertIn(line, dump)

    def wait_reads(self, member):
        found = []

        def holds():
            found[:] = [self.option(member, "cluster-reads")]
            return found == ["leader"]
        self.wait_until(holds, lambda: str(found))
        return found[0]

    def test_config_rewrite_keeps_the_default_a_default(self):
        member = self.found(1)[0]
        path = os.path.join(member.directory, "override.conf")
        member.server.stop()
        member.server.options["override-file"] = path
        member.server.start()
        self.wait_leader([member])
        member.run("CLUSTER INIT")
        self.assertEqual("leader", self.wait_reads(member))
        self.assertEqual("OK", member.run("CONFIG REWRITE"))
        with open(path, encoding="utf-8") as file:
            self.assertNotIn("cluster-reads", file.read())

    def test_who_tracks_the_map_is_told(self):
        member = self.alone()
        member.run("TABLE CREATE t FAMILY f")
        for read, change in (("CGET _cluster/tablets 0/0 f:version", "TABLET SPLIT t m"),
                             ("CGET _cluster/options tablet-moves f:value", "CLUSTER CONFIG SET tablet-moves 3"),
                             ("CSCAN _cluster/tablets 0", "TABLE CREATE u FAMILY f"),
                             ("CGET _cluster/sets 0 f:id", "CLUSTER END")):
            reader = resp.Client(member.port, 3, timeout=60)
            reader.call("CLIENT", "TRACKING", "ON")
            reader.call(*read.split())
            member.run(change)
            reader.send("PING")
            told = reader.read()
            while not isinstance(told, resp.Push):  # the map of a new table comes a moment later
                reader.send("PING")
                told = reader.read()
            self.assertEqual(b"invalidate", told[0], change)
            reader.close()

    def test_two_at_once(self):
        """Clients that split and merge side by side: each split is done once, whoever comes first."""
        member = self.alone()
        member.run("TABLE CREATE t FAMILY f")
        done, errors = [], []

        def splits(number):
            client = member.server.client(decode_responses=True)
            for i in range(60):
                try:
                    client.execute_command("TABLET", "SPLIT", "t", f"r{i:03}")
                    done.append(i)
                except redis.ResponseError as error:
                    errors.append(str(error))
            client.close()
        threads = [threading.Thread(target=splits, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(list(range(60)), sorted(done))
        self.assertEqual({"the tablet ends there already"}, set(errors))
        self.assertEqual(61, len(self.tablets(member, "t")[1]))
        self.assert_well(member)

    def test_as_many_as_a_set_may_have(self):
        member = self.alone()
        member.run("TABLE CREATE t FAMILY f")
        room = MANY - 8
        rows = [f"r{i:06}" for i in range(room)]
        member.run("TABLET", "SPLIT", "t", *rows[:-1])
        member.run("TABLET", "SPLIT", "t", rows[-1])
        self.assertEqual(room + 1, len(self.tablets(member, "t")[1]))
        self.assertEqual(("r000500", "r000501"), tuple(pairs(member.run("TABLET ROUTE t r000500x"))[name]
                                                       for name in ("start", "end")))
        self.assert_well(member)
        if MANY == 20_000:
            text = "a set of 20001 tablets, the limit is 20000"
            self.refused(member, text, "TABLET SPLIT t x")
            self.refused(member, text, "TABLE CREATE u FAMILY f")
        member.run("SAVE")
        member.server.kill()
        member.server.start()
        self.wait_leader(self.members)
        self.assertEqual(room + 1, len(self.tablets(member, "t")[1]))
        for row in rows[:50]:
            member.run("TABLET", "MERGE", "t", "")
        self.assertEqual(room - 49, len(self.tablets(member, "t")[1]))
        member.run("TABLE DROP t")
        self.assertEqual(7, len(self.tablets(member)[1]))
        self.assert_well(member)

    def test_groups_of_as_many_as_a_set_may_have(self):
        """That the leader is still one says that its loop was not held for as long as an election takes."""
        member = self.alone()
        term = member.info()["replica_term"]
        member.run("TABLE CREATE t KEY u64/u64 FAMILY f")
        rows = [f"{i // 10}/{i % 10}" if i % 10 else str(i // 10) for i in range(1, MANY - 7)]
        member.run("TABLET", "SPLIT", "t", *rows)
        self.assertEqual(len(rows) + 1, len(self.tablets(member, "t")[1]))
        member.run("TABLE ALTER t COLOCATE 1")
        wanted = [row for row in rows if "/" not in row]
        self.assertEqual([""] + wanted, [tablet["start"] for tablet in self.tablets(member, "t")[1]])
        self.assert_well(member)
        self.assertEqual(term, member.info()["replica_term"])
        member.server.kill()
        member.server.start()
        self.wait_leader(self.members)
        self.assertEqual(len(wanted) + 1, len(self.tablets(member, "t")[1]))

    def test_splits_and_merges_change_no_row(self):
        """A dictionary beside the table, while tablets come and go."""
        member = self.alone()
        seed = SEED or random.SystemRandom().randrange(1 << 30)
        chance = random.Random(seed)
        member.run("TABLE CREATE t KEY utf8/-u16 FAMILY f VERSIONS 1")
        rows, bounds = {}, set()

        def key(prefix_too=False):
            first = chance.choice("abcdefgh")
            return first if prefix_too and chance.random() < 0.3 else f"{first}/{chance.randrange(8)}"

        def order(row):
            first, _, second = row.partition("/")
            return first, -1 if second == "" else 70_000 - int(second)
        with self.subTest(f"CELLAR_CLUSTER_SEED={seed}"):
            for _ in range(ROUNDS):
                what = chance.randrange(8)
                if what < 3:
                    row = key()
                    rows[row] = str(chance.randrange(100))
                    member.run("CPUT", "t", row, "f:x", rows[row])
                elif what == 3:
                    row = key()
                    self.assertEqual(int(rows.pop(row, None) is not None), member.run("CDEL", "t", row))
                elif what == 4:
                    row, digest = key(True), member.run("DEBUG DIGEST CLUSTER")
                    told = member.refusal("TABLET", "SPLIT", "t", row)
                    self.assertIn("the tablet ends there already" if row in bounds else "no error", told)
                    bounds.add(row)
                    self.assertEqual(digest, member.run("DEBUG DIGEST CLUSTER"))
                elif what == 5 and bounds:
                    row, digest = key(), member.run("DEBUG DIGEST CLUSTER")
                    behind = sorted((bound for bound in bounds if order(bound) > order(row)), key=order)
                    told = member.refusal("TABLET", "MERGE", "t", row)
                    self.assertIn("no error" if behind else "the tablet is the last one", told)
                    bounds.difference_update(behind[:1])
                    self.assertEqual(digest, member.run("DEBUG DIGEST CLUSTER"))
                elif what == 6:
                    self.assertEqual(len(rows), member.run("CCOUNT t"))
                    first = chance.choice("abcdefgh")
                    self.assertEqual(sum(row[0] == first for row in rows), member.run("CCOUNT", "t", "PREFIX", f"{first}/"))
                else:
                    found = [(row, cells[1]) for row, cells in member.run("CSCAN t 0 COUNT 1000")[1]]
                    self.assertEqual([(row, rows[row]) for row in sorted(rows, key=order)], found)
                    row = key()
                    route = pairs(member.run("TABLET", "ROUTE", "t", row))
                    before = [bound for bound in bounds if order(bound) <= order(row)]
                    self.assertEqual(max(before, key=order, default=""), route["start"])
            self.assertEqual([""] + sorted(bounds, key=order), [start for start, _ in self.ends(member, "t")])
            self.assert_well(member)
            member.server.kill()
            member.server.start()
            self.wait_leader(self.members)
            self.assertEqual([""] + sorted(bounds, key=order), [start for start, _ in self.ends(member, "t")])
            self.assertEqual(len(rows), member.run("CCOUNT t"))
            self.assert_well(member)

    def test_the_same_rows_have_one_digest(self):
        """With a cluster and without."""
        member = self.alone()
        with CellarServer(enable_debug_command="yes") as plain:
            client = plain.client(decode_responses=True)
            for run in (member.run, client.execute_command):
                run("TABLE", "CREATE", "t", "FAMILY", "f")
                run("CPUT", "t", "a", "f:x", "1", "TS", "5")
            member.run("TABLE ALTER t COLOCATE 1")
            member.run("TABLET SPLIT t m")
            self.assertEqual(client.execute_command("DEBUG", "DIGEST", "CLUSTER"), member.run("DEBUG DIGEST CLUSTER"))
            self.assertEqual(client.execute_command("DEBUG", "DIGEST", "t"), member.run("DEBUG DIGEST t"))

    def test_rights(self):
        member = self.alone()
        member.run("TABLE CREATE t SPLIT AT 1 m FAMILY f")
        member.run("TABLE CREATE hidden SPLIT AT 1 secret FAMILY f")
        member.run("ACL", "SETUSER", "ann", "on", ">p", "+tablet|list", "+tablet|route", "%R~t:*")
        client = member.server.client(decode_responses=True, username="ann", password="p")
        # The words behind a table that is not named are none.
        for words in ("TABLET LIST", "TABLET LIST COUNT 5", "TABLET LIST SINCE 0 COUNT 5"):
            self.assertEqual({"0/t"}, {pairs(each)["table"] for each in client.execute_command(*words.split())[1]})
        keys_of = lambda *words: member.redis.execute_command("COMMAND GETKEYS", *words)
        self.assertEqual(["t"], keys_of("TABLET", "LIST", "t", "COUNT", "5"))
        self.assertEqual([], keys_of("TABLET", "LIST", "COUNT", "5"))
        self.assertEqual(2, len(client.execute_command("TABLET", "LIST", "t")[1]))
        for words in ("TABLET LIST hidden", "TABLET LIST hidden COUNT 5", "TABLET ROUTE hidden r", "TABLET SPLIT t x", "CLUSTER EVENTS"):
            with self.assertRaises(redis.exceptions.NoPermissionError, msg=words):
                client.execute_command(*words.split())


class ThreeNodes(ClusterCase):
    def wait_same_map(self):
        self.wait_until(lambda: len({str(self.listed(member)) for member in self.members}) == 1,
                        lambda: "\n".join(str(self.listed(member)) for member in self.members))

    def test_any_node_takes_it(self):
        leader, follower = self.three()
        self.assertEqual("OK", follower.run("TABLE CREATE t FAMILY f"))
        self.assertEqual("OK", follower.run("TABLET SPLIT t m"))
        # Its own change it sees at once, in its own map.
        self.assertEqual([("", "m"), ("m", "")], self.ends(follower, "t"))
        self.assertEqual("OK", follower.run("TABLET SPLIT t c"))
        self.assertEqual("c", pairs(follower.run("TABLET ROUTE t d"))["start"])
        self.assertEqual(f"127.0.0.1:{leader.port}", pairs(follower.run("TABLET ROUTE t d SURE"))["leader"])
        self.refused(follower, "the tablet ends there already", "TABLET SPLIT t c")
        self.refused(follower, "this set is set 0 of a cluster", "CLUSTER INIT")
        self.assertEqual("OK", follower.run("CLUSTER CONFIG SET tablet-moves 5"))
        self.assertEqual([], follower.run("CLUSTER MAP CHECK"))
        self.assertEqual("OK", follower.run("CLUSTER MAP REBUILD"))
        self.assertEqual("split t at 'c'", follower.run("CLUSTER EVENTS COUNT 3")[2][1])
        self.refused(follower, KEPT, "CPUT _cluster/tablets 0/0 f:version 9")
        self.wait_same_map()
        for member in self.members:
            self.wait_until(lambda: self.option(member, "cluster-reads") == "leader", "the default")  # noqa: B023
            self.assertEqual("5", self.option(member, "tablet-moves"))
            one, = (pairs(each) for each in member.run("CLUSTER SETS"))
            self.assertEqual((3, f"127.0.0.1:{leader.port}"), (len(one["members"]), one["leader"]))
            info = member.info("cluster")
            self.assertEqual("director" if member is leader else "member", info["cluster_role"])
            self.assertEqual(member is leader, "set0" in info)
        # One that answers no reads asks the leader.
        follower.run("CONFIG SET replica-reads no")
        self.assertEqual(self.listed(leader), self.listed(follower))
        self.assertEqual("c", pairs(follower.run("TABLET ROUTE t d"))["start"])
        self.assertEqual("OK", follower.run("CLUSTER END"))
        for member in self.members:
            self.wait_until(lambda: DISABLED in member.refusal("CLUSTER INFO"), "the end")  # noqa: B023
            self.wait_until(lambda: self.option(member, "cluster-reads") == "local", "the default")  # noqa: B023

    def test_another_leader_keeps_the_map(self):
        leader, follower = self.three()
        follower.run("TABLE CREATE t FAMILY f")
        follower.run("TABLET SPLIT t m c x")
        for _ in range(2):
            leader = self.wait_leader(self.members)
            # What was done a moment ago, the next one finds.
            leader.run(f"TABLE CREATE u{leader.port} FAMILY f")
            leader.server.kill()
            rest = [member for member in self.members if member is not leader]
            following = self.wait_leader(rest)
            self.wait_until(lambda: "no error: []" == following.refusal("CLUSTER MAP CHECK"),  # noqa: B023
                            lambda: following.refusal("CLUSTER MAP CHECK"))  # noqa: B023
            self.assertEqual(4, len(self.tablets(following, "t")[1]))
            self.assertEqual(1, len(self.tablets(following, f"u{leader.port}")[1]))
            self.lead(rest, "TABLET", "MERGE", "t", "a")
            self.lead(rest, "TABLET", "SPLIT", "t", "c")
            leader.server.start()
            self.wait_until(leader.has_a_role, leader.server.log)
        self.wait_same_map()
        self.assert_equal(self.members)

    def test_splits_beside_failovers(self):
        """Splits and merges while leaders change: what was acknowledged is there, and the map says what the set owns."""
        _, _ = self.three()
        self.lead(self.members, "TABLE", "CREATE", "t", "FAMILY", "f")
        for i in range(12):
            if i % 4 == 3:
                self.hand_over(self.members, former=self.wait_leader(self.members))
            told = self.lead_once(["TABLET", "SPLIT", "t", f"r{i:02}"])
            self.assertIn(told, ("OK", "the tablet ends there already"))
        leader = self.wait_leader(self.members)
        self.wait_until(lambda: leader.refusal("CLUSTER MAP CHECK") == "no error: []", lambda: leader.refusal("CLUSTER MAP CHECK"))
        self.assertEqual([""] + [f"r{i:02}" for i in range(12)], [start for start, _ in self.ends(leader, "t")])
        self.wait_same_map()

    def lead_once(self, words):
        """The answer of whoever leads, also if it is that an attempt before had done it."""
        try:
            return self.lead(self.members, *words)
        except redis.ResponseError as error:
            return str(error)

    def test_a_full_copy_brings_the_map(self):
        leader, follower = self.three()
        leader.run("TABLE CREATE t SPLIT AT 2 c m FAMILY f")
        for i in range(200):
            leader.run(f"CPUT t r{i} f:x {i}")
        follower.server.kill()
        follower.wipe()
        follower.server.start()
        self.wait_until(follower.has_a_role, follower.server.log)
        self.wait_until(lambda: "NOTABLE" not in follower.refusal("TABLET LIST t") and
                        DISABLED not in follower.refusal("TABLET LIST t"), follower.server.log)
        self.wait_same_map()
        self.assertEqual([("", "c"), ("c", "m"), ("m", "")], self.ends(follower, "t"))
        self.refused(follower, KEPT, "CPUT _cluster/tablets 0/0 f:version 9")
        self.assert_equal(self.members)

    def test_a_set_founded_with_data_of_a_single_server(self):
        """An old store without cluster state becomes a set, and then a cluster."""
        members = self.make(1)
        member = members[0]
        with CellarServer(member.directory, save="", enable_debug_command="yes") as plain:
            client = plain.client(decode_responses=True)
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            client.execute_command("CPUT", "t", "a", "f:x", "1")
            digest = client.execute_command("DEBUG", "DIGEST", "CLUSTER")
        member.server.start()
        self.wait_leader(members)
        self.assertEqual("OK", self.lead(members, "CLUSTER", "INIT"))
        self.assertEqual(digest, member.run("DEBUG DIGEST CLUSTER"))
        self.assertEqual([("", "")], self.ends(member, "t"))
        self.assert_well(member)


if __name__ == "__main__":
    unittest.main()
