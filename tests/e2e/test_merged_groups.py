"""Groups of consumers of a whole feed, in a cluster of several sets: at its home, which moves."""

import random
import threading
import time
import unittest

import redis

from cluster_sets import pairs
from test_cluster_feeds import ROWS, FeedsCase

GONE = (redis.ConnectionError, redis.TimeoutError)


def order(entry_id):
    ms, n = entry_id.split("-")
    return int(ms), int(n)


class GroupsCase(FeedsCase):
    def write(self, count, seed="", value=""):
        rng = random.Random(f"{self.seed}{seed}")
        for number in range(count):
            self.any(rng).run("CPUT", "t", rng.choice(ROWS), "f:x", f"{value}{number}")

    def merged(self):
        return [(entry[0], entry[1]) for entry in self.any().run("XRANGE", "f", "-", "+")]

    def read(self, *words, member=None):
        """Entries of the feed that XREADGROUP gives, or None."""
        found = (member or self.any()).run("XREADGROUP", "GROUP", *words)
        return None if not found else [(entry[0], entry[1]) for entry in found[0][1]]

    def raw(self, *words, member=None):
        """A reply as it is."""
        client = redis.Redis(port=(member or self.any()).port, decode_responses=True)
        client.response_callbacks.clear()
        return client.execute_command(*words)

    def pending(self, group, *words):
        """XPENDING with a range."""
        return self.raw("XPENDING", "f", group, *words)

    def home(self, feed="f"):
        found = []

        def told():
            try:
                found[:] = [pairs(self.any().run("FEED", "INFO", feed))["home"]]
            except redis.RedisError as error:
                self.assertRegex(str(error), "LOADING|TRYAGAIN|CLUSTERDOWN|onnect")
            return found
        self.wait_until(told, "nobody tells where the home is")
        return found[0]

    def move_home(self, to, feed="f"):
        """As often as it takes: what is on its way goes on by itself."""
        told = []

        def moved():
            told.append(self.any().refusal("FEED", "MOVE", feed, "TO", to))
            return told[-1].startswith("no error")
        self.wait_until(moved, lambda: str(told[-3:]))


class WholeGroups(GroupsCase):
    def test_it_is_one_group_at_all_nodes(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        home = self.home()
        self.assertIn(home, (0, 1, 2))
        self.write(120)
        told = self.merged()
        self.assertEqual(121, len(told))
        self.assertEqual("OK", self.any().run("XGROUP", "CREATE", "f", "g", "0"))
        got = []
        for number in range(200):
            entries = self.read("g", f"c{number % 3}", "COUNT", 7, "STREAMS", "f", ">", member=self.everyone[number % 3])
            if entries is None:
                break
            got += entries
        # All of it, in its order, each once.
        self.assertEqual(told, got)
        for member in self.everyone:
            self.assertIsNone(self.read("g", "c0", "STREAMS", "f", ">", member=member))
            summary = member.run("XPENDING", "f", "g")
            self.assertEqual((121, told[0][0], told[-1][0]), (summary["pending"], summary["min"], summary["max"]))
            self.assertEqual(121, len(self.pending("g", "-", "+", 1000)))
            info = pairs(member.run("XINFO", "GROUPS", "f")[0])
            self.assertEqual(("g", 3, 121, told[-1][0], 121, 0), tuple(info[name] for name in (
                "name", "consumers", "pending", "last-delivered-id", "entries-read", "lag")))
            consumers = [pairs(each) for each in member.run("XINFO", "CONSUMERS", "f", "g")]
            self.assertEqual(121, sum(each["pending"] for each in consumers))
            self.assertEqual((1, home), tuple(pairs(member.run("FEED", "INFO", "f"))[name] for name in ("groups", "home")))
            self.assertEqual(1, pairs(member.run("XINFO", "STREAM", "f"))["groups"])
        mine = self.read("g", "c1", "COUNT", 1000, "STREAMS", "f", "0")
        self.assertEqual(sorted(mine, key=lambda entry: order(entry[0])), mine)
        self.assertTrue(mine)
        self.assertTrue({entry[0] for entry in mine} <= {entry[0] for entry in told})
        self.assertEqual(mine[3:5], self.read("g", "c1", "COUNT", 2, "STREAMS", "f", mine[2][0]))
        # What is acknowledged is no more pending, at any node, and does not come again.
        ids = [entry[0] for entry in told]
        self.assertEqual(100, self.any().run("XACK", "f", "g", *ids[:100]))
        self.assertEqual(0, self.any().run("XACK", "f", "g", *ids[:100]))
        self.assertEqual(21, self.any().run("XPENDING", "f", "g")["pending"])
        left = ids[100:]
        claimed = self.any().run("XCLAIM", "f", "g", "d", 0, left[0], left[1], ids[0])
        self.assertEqual(told[100:102], [tuple(entry) for entry in claimed])
        self.assertEqual(left[2:4], self.raw("XCLAIM", "f", "g", "d", 0, *left[2:4], "JUSTID"))
        after, entries, gone = self.raw("XAUTOCLAIM", "f", "g", "e", 0, left[4], "COUNT", 5)
        self.assertEqual((left[9], told[104:109], []), (after, [(entry[0], pairs(entry[1])) for entry in entries], gone))
        after, entries, gone = self.raw("XAUTOCLAIM", "f", "g", "e", 0, "0", "COUNT", 1000, "JUSTID")
        self.assertEqual(("0-0", left, []), (after, entries, gone))
        self.assertEqual(left, [entry[0] for entry in self.pending("g", "-", "+", 100, "e")])
        self.assertEqual(21, self.any().run("XGROUP", "DELCONSUMER", "f", "g", "e"))
        self.assertEqual(0, self.any().run("XPENDING", "f", "g")["pending"])
        # Forced: what nobody has.
        self.assertEqual([told[7]], [tuple(entry) for entry in self.any().run("XCLAIM", "f", "g", "d", 0, ids[7], "FORCE")])
        self.assertEqual([], self.any().run("XCLAIM", "f", "g", "d", 0, "1-5", "77-1000000000007", "FORCE"))
        self.assertEqual(1, self.any().run("XACK", "f", "g", ids[7]))
        # Back to where it was, and on from an id.
        self.assertEqual("OK", self.any().run("XGROUP", "SETID", "f", "g", ids[50]))
        self.assertEqual(70, pairs(self.any().run("XINFO", "GROUPS", "f")[0])["lag"])
        self.assertEqual(told[51:61], self.read("g", "c0", "COUNT", 10, "NOACK", "STREAMS", "f", ">"))
        self.assertEqual(0, self.any().run("XPENDING", "f", "g")["pending"])
        self.assertEqual(told[61:], self.read("g", "c0", "NOACK", "STREAMS", "f", ">"))
        # From now on.
        self.assertEqual("OK", self.any().run("XGROUP", "CREATE", "f", "now", "$"))
        self.assertIsNone(self.read("now", "c", "STREAMS", "f", ">"))
        self.write(30, seed="more", value="m")
        self.wait_until(lambda: len(self.merged()) == 151, "what was written is not told")
        self.assertEqual(self.merged()[121:], self.read("now", "c", "STREAMS", "f", ">"))
        full = pairs(self.any().run("XINFO", "STREAM", "f", "FULL", "COUNT", 5))
        self.assertEqual((151, 5), (full["length"], len(full["entries"])))
        self.assertEqual(self.merged()[:5], [(entry[0], pairs(entry[1])) for entry in full["entries"]])
        groups = [pairs(each) for each in full["groups"]]
        self.assertEqual([("g", 30), ("now", 0)], [(each["name"], each["lag"]) for each in groups])
        self.assertEqual((30, 5), (groups[1]["pel-count"], len(groups[1]["pending"])))
        self.assertEqual(1, self.any().run("XGROUP", "DESTROY", "f", "now"))
        self.assertEqual(0, self.any().run("XGROUP", "DESTROY", "f", "now"))
        self.assertIn("NOGROUP", self.any().refusal("XREADGROUP", "GROUP", "now", "c", "STREAMS", "f", ">"))
        self.any().run("FEED DROP f")
        self.assertIn("NOFEED", self.any().refusal("XPENDING", "f", "g"))

    def test_names_in_the_whole_and_in_its_parts(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        words = ["f", "f@0", "f@1", "f@2"]
        for word in words:
            self.assertEqual("OK", self.any().run("XGROUP", "CREATE", word, "g", "0"))
            self.assertIn("BUSYGROUP", self.any().refusal("XGROUP", "CREATE", word, "g", "0"))
        self.write(40)
        got = {word: self.any().run("XREADGROUP", "GROUP", "g", "c", "STREAMS", word, ">")[0][1] for word in words}
        self.assertEqual(41, len(got["f"]))
        self.assertEqual(41, sum(len(got[word]) for word in words[1:]))
        for word in words:
            self.assertEqual(len(got[word]), self.any().run("XPENDING", word, "g")["pending"])
        self.assertEqual(41, self.any().run("XACK", "f", "g", *[entry[0] for entry in got["f"]]))
        for word in words[1:]:
            self.assertEqual(len(got[word]), self.any().run("XPENDING", word, "g")["pending"])
        home = self.home()
        self.assertEqual(1, self.any().run("XGROUP", "DESTROY", f"f@{home}", "g"))
        self.assertEqual(0, self.any().run("XPENDING", "f", "g")["pending"])
        self.assertIn("NOGROUP", self.any().refusal("XPENDING", f"f@{home}", "g"))
        # Logged, and in snapshot files.
        member = self.sets[home][0]
        self.any().run("XGROUP", "CREATE", "f", "h", "0")
        again = self.read("h", "c", "COUNT", 9, "STREAMS", "f", ">")
        for save in (False, True):
            if save:
                member.run("BGREWRITEAOF")
            self.restart(member)
            self.wait_leader([member])
            self.wait_until(lambda: self.any().refusal("XPENDING", "f", "h").startswith("no error"), lambda: self.any().refusal("XPENDING", "f", "h"))
            self.assertEqual(again, self.read("h", "c", "STREAMS", "f", "0"))
            self.assertEqual(["g", "h"], [pairs(each)["name"] for each in self.any().run("XINFO", "GROUPS", "f")])
            self.assertEqual([], self.any().run("XINFO", "GROUPS", f"f@{home}"))

    def test_wrong_input(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.any().run("FEED CREATE f2 ON 1 t")
        self.any().run("FEED CREATE f3 ON 1 t")
        self.any().run("XGROUP", "CREATE", "f", "g", "0")
        for member in self.everyone:
            for words, error in (
                    (["XGROUP", "CREATE", "f", "g", "$"], "BUSYGROUP"),
                    (["XGROUP", "CREATE", "f", "x", "y"], "Invalid stream ID"),
                    (["XGROUP", "CREATE", "f", "x", "0", "MKSTREAMS"], "unknown subcommand"),
                    (["XGROUP", "CREATE", "h", "x", "0"], "NOFEED"),
                    (["XGROUP", "CREATE", "f", "x" * 1025, "0"], "TOOLARGE"),
                    (["XGROUP", "SETID", "f", "x", "0"], "NOGROUP"),
                    (["XGROUP", "SETID", "f", "g", "-"], "Invalid stream ID"),
                    (["XGROUP", "CREATECONSUMER", "f", "x", "c"], "NOGROUP"),
                    (["XGROUP", "DELCONSUMER", "f", "x", "c"], "NOGROUP"),
                    (["XREADGROUP", "GROUP", "x", "c", "STREAMS", "f", ">"], "NOGROUP"),
                    (["XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", "$"], "meaningless"),
                    (["XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", "x"], "Invalid stream ID"),
                    (["XREADGROUP", "GROUP", "g", "c", "STREAMS", "h", ">"], "NOFEED"),
                    (["XREADGROUP", "GROUP", "g", "c", "STREAMS", "f@9", ">"], "NOFEED"),
                    (["XREADGROUP", "GROUP", "g", "c", "BLOCK", "-1", "STREAMS", "f", ">"], "timeout is negative"),
                    (["XREADGROUP", "GROUP", "g", "c", "STREAMS", *["f"] * 9, *[">"] * 9], "TOOLARGE"),
                    (["XACK", "f", "g", "x"], "Invalid stream ID"),
                    (["XPENDING", "f", "x"], "NOGROUP"),
                    (["XPENDING", "f", "g", "a", "+", "1"], "Invalid stream ID"),
                    (["XCLAIM", "f", "x", "c", "0", "1-1"], "NOGROUP"),
                    (["XCLAIM", "f", "g", "c", "x", "1-1"], "Invalid min-idle-time"),
                    (["XCLAIM", "f", "g", "c", "0", "x"], "Unrecognized XCLAIM option"),
                    (["XAUTOCLAIM", "f", "x", "c", "0", "0"], "NOGROUP"),
                    (["XAUTOCLAIM", "f", "g", "c", "0", "0", "COUNT", "0"], "COUNT must be > 0"),
                    (["XINFO", "CONSUMERS", "f", "x"], "NOGROUP"),
                    (["XINFO", "GROUPS", "h"], "NOFEED"),
                    (["XINFO", "STREAM", "f", "WHOLE"], "unknown subcommand"),
                    (["FEED", "ENTRIES", "f"], "CROSSSET"),
                    (["FEED", "BEHIND", "f"], "CROSSSET"),
                    (["FEED", "ENTRIES", "f@0", "x"], "Invalid stream ID"),
                    (["FEED", "BEHIND", "f@0", "-"], "Invalid stream ID"),
                    (["FEED", "BEHIND", "h@0"], "NOFEED"),
                    (["FEED", "MOVE", "f", "TO", "9"], "set 9 is not of this cluster"),
                    (["FEED", "MOVE", "f", "TO", "x"], "set"),
                    (["FEED", "MOVE", "f", "AT", "1"], "TO"),
                    (["FEED", "MOVE", "h", "TO", "1"], "NOFEED"),
                    (["FEED", "MOVE", "f@1", "TO", "1"], "without '@'"),
                    (["FEED", "MOVE", "f", "TO"], "wrong number")):
                self.assertIn(error, member.refusal(*words), words)
            pipe = member.redis.pipeline(transaction=True)
            pipe.execute_command("XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", ">")
            with self.assertRaisesRegex(redis.ResponseError, "CROSSSET feed 'f' is read of all sets"):
                pipe.execute()
            pipe = member.redis.pipeline(transaction=True)
            pipe.execute_command("XPENDING", "f", "g")
            pipe.execute_command("XACK", "f", "g", "1-1")
            self.assertEqual(0, pipe.execute()[1])
        self.assertEqual([0, 0, 1, []], [self.any().run("XGROUP", "DESTROY", "f", "x"), self.any().run("XACK", "f", "x", "1-1"),
                                            self.any().run("XGROUP", "CREATECONSUMER", "f", "g", "c"), self.read("g", "c", "COUNT", 1, "STREAMS", "f", "9999999999999-1")])
        # Of one home several feeds at once; of two none.
        homes = {feed: self.home(feed) for feed in ("f", "f2", "f3")}
        self.assertEqual({0, 1, 2}, set(homes.values()))
        for feed in ("f2", "f3"):
            self.any().run("XGROUP", "CREATE", feed, "g", "0")
        self.assertIn("CROSSSET", self.any().refusal("XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", "f2", ">", ">"))
        self.move_home(homes["f"], "f2")
        self.write(20)
        two = self.any().run("XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", "f2", ">", ">")
        self.assertEqual([("f", 21), ("f2", 21)], [(name, len(entries)) for name, entries in two])

    def test_rights(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.any().run("XGROUP", "CREATE", "f", "g", "0")
        self.write(10)
        self.lead(self.sets[0], "ACL", "SETUSER", "reader", "on", ">p", "+@stream", "+cput", "%R~t*")
        self.lead(self.sets[0], "ACL", "SETUSER", "other", "on", ">p", "+@all", "~u*")
        self.lead(self.sets[0], "ACL", "SETUSER", "lean", "on", ">p", "+xreadgroup", "+xack", "+xrange", "+feed|resolved", "+feed|entries", "%R~t*")
        for number, member in enumerate(self.everyone):
            self.wait_until(lambda member=member: "lean" in member.run("ACL", "USERS"), "users do not come")
            reader, other, lean = [redis.Redis(port=member.port, decode_responses=True, username=name, password="p") for name in ("reader", "other", "lean")]
            entry = reader.execute_command("XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "STREAMS", "f", ">")[0][1][0]
            self.assertEqual(1 + number, reader.execute_command("XPENDING", "f", "g")["pending"])
            for client, words in ((other, ["XPENDING", "f", "g"]), (other, ["XACK", "f", "g", entry[0]]), (other, ["XGROUP", "DESTROY", "f", "g"]), (lean, ["XINFO", "GROUPS", "f"]),
                                  (other, ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", ">"]), (lean, ["XPENDING", "f", "g"]), (other, ["FEED", "MOVE", "f", "TO", "1"]),
                                  (reader, ["FEED", "MOVE", "f", "TO", "1"])):
                with self.assertRaises(redis.exceptions.NoPermissionError, msg=words):
                    client.execute_command(*words)
            self.assertEqual([entry], lean.execute_command("XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", "0")[0][1])
            self.assertEqual(1, len(lean.execute_command("XREADGROUP", "GROUP", "g", "d", "COUNT", 1, "STREAMS", "f", ">")[0][1]))
            self.assertEqual(1, lean.execute_command("XACK", "f", "g", entry[0]))

    def test_who_waits_hears_of_it(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.any().run("XGROUP", "CREATE", "f", "g", "$")
        for number in range(3):
            row = next(row for row in ROWS if self.owner(row) == number)
            for member in self.everyone:
                got = []
                waiter = self.reader(member, got, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "f", ">")
                self.wait_readers(self.sets[self.home()][0])
                self.any().run("CPUT", "t", row, "f:x", "v")
                waiter.join(10)
                self.assertEqual([[(row, "v")]], got)
        self.assertIsNone(self.read("g", "c", "BLOCK", 100, "STREAMS", "f", ">"))
        # Of several that wait one gets it.
        got = []
        waiters = [self.reader(member, got, "XREADGROUP", "GROUP", "g", f"w{number}", "BLOCK", 1500, "STREAMS", "f", ">")
                   for number, member in enumerate(self.everyone)]
        self.wait_readers(self.sets[self.home()][0], 3)
        self.any().run("CPUT", "t", ROWS[0], "f:x", "one")
        for waiter in waiters:
            waiter.join(20)
        self.assertEqual([None, None, [(ROWS[0], "one")]], sorted(got, key=lambda each: each is not None))
        # The group, or the feed, goes.
        for words, error in ((["XGROUP", "DESTROY", "f", "g"], "NOGROUP"), (["FEED", "DROP", "f"], "NOFEED|no feed")):
            got = []
            waiter = self.reader(self.any(), got, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "f", ">")
            self.wait_readers(self.sets[self.home()][0])
            self.any().run(*words)
            waiter.join(20)
            self.assertRegex(got[0], error)
            if words[0] == "XGROUP":
                self.any().run("XGROUP", "CREATE", "f", "g", "$")

    def test_a_group_is_set_back_while_one_reads(self):
        """What its sets are being asked is asked anew: nothing is left out, and nobody ends."""
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.any().run("XGROUP", "CREATE", "f", "g", "$")
        self.write(40)
        got, ends = [], threading.Event()

        def read(name):
            client = redis.Redis(port=self.any().port, decode_responses=True, socket_timeout=60)
            while not ends.is_set():
                found = client.execute_command("XREADGROUP", "GROUP", "g", name, "COUNT", 5, "BLOCK", 50, "NOACK", "STREAMS", "f", ">")
                got.extend(entry[0] for entry in (found[0][1] if found else ()))
        readers = [self.beside(lambda name=name: read(name)) for name in "ab"]
        rng = random.Random(self.seed)
        for _ in range(150):
            self.any(rng).run("XGROUP", "SETID", "f", "g", rng.choice(["0", "$", "0", "1-1"]))
            if rng.random() < 0.3:
                self.any(rng).run("CPUT", "t", rng.choice(ROWS), "f:x", "more")
            time.sleep(rng.random() * 0.02)
        told = {entry[0] for entry in self.merged()}
        got.clear()
        self.any().run("XGROUP", "SETID", "f", "g", "0")
        self.wait_until(lambda: told <= set(got), lambda: f"{len(told)} told, {len(set(got) & told)} read")
        ends.set()
        for reader in readers:
            reader.join(60)

    def test_a_group_goes_while_a_set_is_away(self):
        """Who waits for the set hears of the group at once, or when the set is back, but hears of it."""
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.move_home(1)
        self.any().run("XGROUP", "CREATE", "f", "g", "$")
        gone = self.sets[2][0]
        gone.server.kill()
        got = []
        waiters = [self.reader(self.sets[number][0], got, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "f", ">") for number in (0, 1)]
        time.sleep(1)
        self.assertEqual([], got)
        self.assertEqual(1, self.sets[1][0].run("XGROUP", "DESTROY", "f", "g"))
        time.sleep(0.5)  # a while without the set
        gone.server.start()
        gone.connect()
        for waiter in waiters:
            waiter.join(30)
        self.assertEqual(["NOGROUP", "NOGROUP"], [str(each)[:7] for each in got])

    def test_homes_are_spread(self):
        """Also where other changes of the catalog come between the feeds."""
        self.start()
        for number in range(9):
            self.any().run("TABLE", "CREATE", f"t{number}", "FAMILY", "f")
            self.any().run("FEED", "CREATE", f"f{number}", "ON", 1, f"t{number}")
        homes = [self.home(f"f{number}") for number in range(9)]
        self.assertEqual([3, 3, 3], [homes.count(number) for number in range(3)])
        for number in range(9):
            if homes[number] == 2:
                self.any().run("FEED", "DROP", f"f{number}")
        for number in range(3):
            self.any().run("FEED", "CREATE", f"g{number}", "ON", 1, "t0")
            self.assertEqual(2, self.home(f"g{number}"))

    def test_claim_while_reading(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.any().run("XGROUP", "CREATE", "f", "g", "0")
        self.write(12)
        told = self.merged()
        self.assertEqual(told[:5], self.read("g", "a", "COUNT", 5, "STREAMS", "f", ">"))
        found = self.raw("XREADGROUP", "GROUP", "g", "b", "COUNT", 8, "CLAIM", 0, "STREAMS", "f", ">")[0][1]
        self.assertEqual([entry[0] for entry in told[:8]], [entry[0] for entry in found])
        self.assertEqual([1] * 5 + [0] * 3, [entry[3] for entry in found])
        self.assertEqual({"b"}, {entry[1] for entry in self.pending("g", "-", "+", 100)})

    def test_what_is_dropped(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t KEEP 2s")
        self.any().run("XGROUP", "CREATE", "f", "g", "0")
        self.write(20)
        got = self.read("g", "c", "COUNT", 15, "STREAMS", "f", ">")
        self.assertEqual(15, len(got))
        self.wait_until(lambda: self.any().run("XLEN", "f") == 0, lambda: self.any().run("XLEN", "f"))
        self.assertRegex(self.any().refusal("XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", ">"), "TRIMMED feed 'f@[012]' has dropped entries up to")
        # What is pending and gone is told as such, and forgotten by a claim.
        self.assertEqual([(entry[0], None) for entry in got], [tuple(entry) for entry in self.raw("XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", "0")[0][1]])
        self.assertEqual([[], [entry[0] for entry in got]], self.raw("XAUTOCLAIM", "f", "g", "d", 0, "0")[1:])
        self.assertEqual(0, self.any().run("XPENDING", "f", "g")["pending"])
        self.assertEqual("OK", self.any().run("XGROUP", "SETID", "f", "g", "0"))
        self.write(5, seed="later", value="l")
        self.assertEqual([f"l{number}" for number in range(5)], [entry["value"] for _, entry in self.read("g", "c", "STREAMS", "f", ">")])

    def test_a_home_that_is_away(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        self.move_home(1)
        self.any().run("XGROUP", "CREATE", "f", "g", "0")
        self.write(10)
        self.assertEqual(5, len(self.read("g", "c", "COUNT", 5, "STREAMS", "f", ">")))
        for away, words in ((1, ["XPENDING", "f", "g"]), (1, ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", ">"]), (2, ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "f", ">"])):
            gone = self.sets[away][0]
            gone.server.kill()
            for member in (self.sets[0][0], self.sets[3 - away][0]):
                member.run("CONFIG SET cluster-wait 300")
                self.assertIn("CLUSTERDOWN", member.refusal(*words))
                info = pairs(member.run("FEED", "INFO", "f"))
                self.assertEqual((1, None if away == 1 else 1), (info["home"], info["groups"]))
            if away == 2:
                got = []
                waiter = self.reader(self.sets[0][0], got, "XREADGROUP", "GROUP", "g", "w", "BLOCK", 0, "STREAMS", "f", ">")
                info = pairs(self.sets[0][0].run("XINFO", "GROUPS", "f")[0])
                self.assertEqual((None, 5), (info["lag"], info["pending"]))
                full = pairs(self.sets[0][0].run("XINFO", "STREAM", "f", "FULL"))
                self.assertEqual((None, 1), (full["entries"], len(full["groups"])))
            gone.server.start()
            gone.connect()
            if away == 2:
                waiter.join(30)
                self.assertEqual(6, len(got[0]), got)
            self.wait_until(lambda: self.any().refusal("XLEN", "f").startswith("no error"), lambda: self.any().refusal("XLEN", "f"))
        self.assertEqual(11, self.any().run("XPENDING", "f", "g")["pending"])


class Homes(GroupsCase):
    def filled(self, voters=1, sets=3):
        self.start(sets, voters)
        self.any().run("FEED CREATE f ON 1 t")
        self.any().run("XGROUP", "CREATE", "f", "g", "0")
        self.any().run("XGROUP", "CREATE", "f", "", "0")
        self.write(60)
        for number in range(6):
            self.read("g", f"c{number % 2}", "COUNT", 5, "STREAMS", "f", ">")
        ids = [entry[0] for entry in self.merged()]
        self.any().run("XACK", "f", "g", *ids[:7])
        self.any().run("XGROUP", "CREATECONSUMER", "f", "", "idle")

    def state(self):
        """All that is known of the groups."""
        groups = [pairs(each) for each in self.any().run("XINFO", "GROUPS", "f")]
        return groups, [[(entry[0], entry[1], entry[3]) for entry in self.pending(each["name"], "-", "+", 1000)] for each in groups], \
            [sorted(pairs(one)["name"] for one in self.any().run("XINFO", "CONSUMERS", "f", each["name"])) for each in groups]

    def test_a_home_moves_with_its_groups(self):
        self.filled()
        before = self.state()
        self.assertEqual(2, len(before[0]))
        homes = []
        for to in (1, 2, 0, 0, 2, 1, 0, 1, 0, 2, 0, 1):
            self.assertEqual("OK", self.any().run("FEED", "MOVE", "f", "TO", to))
            homes.append(self.home())
            self.wait_until(lambda: self.state() == before, self.state)
        self.assertEqual([1, 2, 0, 0, 2, 1, 0, 1, 0, 2, 0, 1], homes)
        # Those of the sets' parts stay where they are, and who was home has none left.
        self.any().run("XGROUP", "CREATE", "f@1", "own", "0")
        self.any().run("FEED", "MOVE", "f", "TO", 2)
        self.assertEqual(["own"], [pairs(each)["name"] for each in self.any().run("XINFO", "GROUPS", "f@1")])
        for number in range(3):
            self.wait_until(lambda number=number: pairs(self.any().run("FEED", "ENTRIES", f"f@{number}"))["groups"] == (2 if number == 2 else 0), "groups stay")
        self.restart(self.sets[2][0])
        self.wait_until(lambda: self.any().refusal("XPENDING", "f", "g").startswith("no error"), lambda: self.any().refusal("XPENDING", "f", "g"))
        self.assertEqual((before, 2), (self.state(), self.home()))
        # Who waits is told where they are.
        got = []
        self.read("g", "c", "STREAMS", "f", ">")
        waiter = self.reader(self.any(), got, "XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "f", ">")
        self.wait_readers(self.sets[2][0])
        self.any().run("FEED", "MOVE", "f", "TO", 0)
        waiter.join(20)
        self.assertIn("the groups of feed 'f' are at set 0", got[0])

    def test_leaders_that_die_in_the_middle(self):
        """Of who was home, who is to be, and of set 0: what has begun comes to its end, and the groups are what they were."""
        self.filled(voters=3)
        before = self.state()
        rng = random.Random(self.seed)
        for _ in range(9):
            home = self.home()
            to = rng.choice([number for number in range(3) if number != home])
            killed = self.wait_leader(self.sets[rng.choice((home, to, 0))])
            killer = threading.Timer(rng.random() * 0.015, killed.server.kill)
            killer.start()
            self.move_home(to)
            killer.join()
            killed.server.start()
            killed.connect()

            def state():
                try:
                    return self.home(), self.state()
                except redis.RedisError as error:
                    return str(error)
            self.wait_until(lambda to=to, state=state: state() == (to, before), lambda state=state: f"seed {self.seed}: {state()}, not {before}")

    def test_a_set_that_drains_is_home_no_more(self):
        self.filled()
        self.move_home(2)
        before = self.state()
        director = self.sets[0][0]
        self.assertIn("set 2 is home to the groups of feed 'f': FEED MOVE 0/f TO another set", self.why_not_removed(director))
        director.run("CLUSTER DRAIN 2")
        self.assertIn("set 2 is draining", self.any().refusal("FEED", "MOVE", "f", "TO", 2))
        self.wait_until(lambda: self.home() != 2, self.home)
        self.wait_until(lambda: "FEED MOVE" not in self.why_not_removed(director), lambda: self.why_not_removed(director))
        self.assertEqual(before, self.state())

    def why_not_removed(self, director):
        for row in ("a", "h", "n", "t"):
            if self.owner(row) == 2:
                self.assertEqual("OK", self.move(row, 0, member=director))
        told = []

        def known():
            told.append(director.refusal("CLUSTER", "REMOVE", 2))
            return "owns" not in told[-1] and "known" not in told[-1]
        self.wait_until(known, lambda: str(told[-1:]))
        return told[-1]

    def test_groups_of_one_set_are_those_of_all(self):
        """What was a group while there was one set is one of the whole feed when there are two, and when there is one again."""
        first = self.new_set()
        self.sets, self.everyone = [first], first
        director = first[0]
        director.run("CLUSTER INIT")
        director.run("TABLE CREATE t SPLIT AT 2 h p FAMILY f VERSIONS 1")
        director.run("FEED CREATE f ON 1 t")
        self.assertNotIn("home", pairs(director.run("FEED", "INFO", "f")))
        director.run("XGROUP", "CREATE", "f", "g", "0")
        for number in range(10):
            director.run("CPUT", "t", ROWS[number], "f:x", number)
        old = self.read("g", "c", "COUNT", 6, "STREAMS", "f", ">")
        self.sets.append(self.new_set(join=first))
        self.admit(1)
        self.everyone = sum(self.sets, [])
        director.run("CLUSTER CONFIG SET tablet-balance no")
        told = self.merged()
        self.assertEqual(0, self.home())
        self.assertEqual(told[:6], self.read("g", "c", "STREAMS", "f", "0"))
        self.assertEqual([], director.run("XINFO", "GROUPS", "f@0"))
        # Ids of then and of now.
        self.assertEqual(3, self.any().run("XACK", "f", "g", old[0][0], old[1][0], told[2][0]))
        self.assertEqual([tuple(told[3])], [tuple(entry) for entry in self.any().run("XCLAIM", "f", "g", "d", 0, old[3][0])])
        self.assertEqual([entry[0] for entry in told[4:6]], [entry[0] for entry in self.pending("g", "(" + old[3][0], "+", 10)])
        self.assertEqual("OK", self.move("t", 1, member=director))
        self.any().run("CPUT", "t", "v2", "f:x", "there")
        self.wait_until(lambda: len(self.merged()) == 12, self.merged)
        told = self.merged()
        self.assertEqual(told[6:], self.read("g", "c", "STREAMS", "f", ">"))
        # One set is left.
        director.run("CLUSTER DRAIN 1")
        self.wait_until(lambda: all(owner == 0 for owner in self.owners(member=director)) or self.move("t", 0, member=director), self.owners)
        self.wait_until(lambda: director.refusal("CLUSTER", "REMOVE", 1, "FORCE").startswith("no error"), lambda: director.refusal("CLUSTER", "REMOVE", 1, "FORCE"))
        self.everyone = first
        pending = self.pending("g", "-", "+", 100)
        self.assertEqual([entry[0] for entry in told[3:]], [entry[0] for entry in pending])
        director.run("CPUT", "t", "v2", "f:x", "alone")
        self.assertEqual(["alone"], [entry["value"] for _, entry in self.read("g", "c", "STREAMS", "f", ">")])
        self.assertIn("feed 'f' has groups with ids of several sets: XGROUP DESTROY", director.refusal("CLUSTER", "END"))
        # What the set had that is gone is forgotten.
        _, entries, gone = self.raw("XAUTOCLAIM", "f", "g", "e", 0, "0")
        self.assertEqual((1, 9), (len(gone), len(entries)))


class Faults(GroupsCase):
    def test_no_entry_is_lost_and_none_comes_again(self):
        """Consumers at every node beside writers, moves of tablets and of the home, and leaders that die."""
        self.check(homes=True)

    def test_leaders_of_the_home_die(self):
        self.check(homes=False)

    def check(self, homes):
        self.start(3, 3)
        self.any().run("FEED CREATE f ON 1 t")
        self.any().run("XGROUP", "CREATE", "f", "g", "0")
        stop = threading.Event()
        sure, failures = [], []
        given, acked = [], []  # of each consumer (id, row, value), as it got them; ids

        def write(number):
            rng = random.Random(f"{self.seed}/w{number}")
            client, count = None, 0
            while not stop.is_set():
                count += 1
                row = f"{rng.choice('abhinopstz')}{number}"
                try:
                    client = client or redis.Redis(port=self.any(rng).port, decode_responses=True)
                    client.execute_command("CPUT", "t", row, "f:x", f"{number}-{count}")
                    sure.append(f"{number}-{count}")
                except redis.RedisError:
                    client = None
                    time.sleep(0.05)

        def consume(number):
            rng = random.Random(f"{self.seed}/c{number}")
            client, quiet, own = None, 0, 0
            mine = []
            done = set()
            given.append(mine)
            while quiet < 4:
                try:
                    client = client or redis.Redis(port=self.any(rng).port, decode_responses=True, socket_timeout=60)
                    # What went to a connection that broke is still its own.
                    at = "0" if own else ">"
                    words = ["XREADGROUP", "GROUP", "g", f"c{number}", "COUNT", rng.choice((1, 10, 200)), *(["BLOCK", rng.choice((50, 400))] if rng.random() < 0.8 else [])]
                    found = client.execute_command(*words, "STREAMS", "f", at)
                    entries = found[0][1] if found else []
                    own = 1 if own and entries else 0
                    again = done & {entry[0] for entry in entries}
                    if again:
                        failures.append(f"again: {again}")
                    for entry in entries:
                        mine.append((entry[0], entry[1].get("row"), entry[1].get("value")))
                    quiet = quiet + 1 if not entries and stop.is_set() else 0
                    if entries and rng.random() < 0.9:
                        client.execute_command("XACK", "f", "g", *[entry[0] for entry in entries])
                        done |= {entry[0] for entry in entries}
                        acked.extend(entry[0] for entry in entries)
                    elif entries:
                        own = 1
                except GONE:
                    client, own = None, 1
                    time.sleep(0.05)
                except redis.ResponseError as error:
                    own = 1
                    if not str(error).startswith(("CLUSTERDOWN", "TRYAGAIN", "LOADING", "UNBLOCKED")):
                        failures.append(str(error))
                        return
                    time.sleep(0.05)
        consumers = [self.beside(lambda number=number: consume(number)) for number in range(4)]
        writers = [self.beside(lambda number=number: write(number)) for number in range(3)]
        rng = random.Random(self.seed)
        home = self.home()
        moves = 0
        for number in range(9):
            self.random_move(rng)
            killed = None
            if number % 3 == 1:
                # In the middle of what it does.
                killed = self.wait_leader(self.sets[home] if not homes else rng.choice(self.sets))
                threading.Timer(rng.random() * 0.02, killed.server.kill).start()
            if homes:
                to = rng.randrange(3)
                self.move_home(to)
                moves += 1
            if killed is not None:
                time.sleep(0.4)  # a while without it
                killed.server.start()
                killed.connect()
        stop.set()
        for thread in writers + consumers:
            thread.join()
        self.assertEqual([], failures, f"seed {self.seed}")
        # What is pending is had by somebody; the rest nobody has lost.
        self.wait_until(lambda: self.any().refusal("XPENDING", "f", "g").startswith("no error"), "the group does not answer")
        told = {entry[0]: entry[1].get("value") for entry in self.all_told()}
        got = {entry[0] for mine in given for entry in mine}
        pending = {entry[0] for entry in self.pending("g", "-", "+", 100_000)}
        self.assertEqual(set(), set(told) - got - pending, f"seed {self.seed}: lost")
        self.assertEqual(set(), got - set(told), f"seed {self.seed}: made up")
        self.assertEqual(set(), set(sure) - set(told.values()), f"seed {self.seed}: not told")
        # One consumer's each, and never again once it is acknowledged.
        owners = {}
        for number, mine in enumerate(given):
            for entry in mine:
                owners.setdefault(entry[0], set()).add(number)
        self.assertEqual([], [entry for entry, who in owners.items() if len(who) > 1], f"seed {self.seed}: two had it")
        self.assertEqual(set(), set(acked) & pending, f"seed {self.seed}: comes again")
        # Each gets a row's changes in their order, but for those that it gets again.
        for mine in given:
            seen, places = set(), {}
            for entry_id, row, value in mine:
                if entry_id in seen or row is None:
                    continue
                seen.add(entry_id)
                places.setdefault(row, []).append(int(value.split("-")[1]))
            for row, numbers in places.items():
                self.assertEqual(sorted(numbers), numbers, f"seed {self.seed}: {row}")
        print(f"seed {self.seed}: {len(sure)} writes, {len(told)} told, {len(acked)} acknowledged, {len(pending)} pending, {moves} moves of the home")

    def all_told(self):
        entries, last = [], "-"
        while True:
            some = []

            def read(last=last, some=some):
                try:
                    some[:] = self.any().run("XRANGE", "f", last, "+", "COUNT", 5000)
                    return True
                except redis.RedisError:
                    return False
            self.wait_until(read, "the feed does not answer")
            entries += some
            if not some:
                return entries
            last = "(" + some[-1][0]


if __name__ == "__main__":
    unittest.main()
