"""Consumer groups: beside redis-server, against a model over restarts and kill -9, and what is Cellar's own."""

import os
import random
import threading
import time
import unittest

import redis

from cellar_server import CellarServer, not_on_a_follower, wait_until
from feed_model import as_sent, drop_feeds, key_of, read_all
from group_model import GroupModel, state_of
from redis_server import start_redis
from wire import WireTest, resp

SEED = int(os.environ.get("CELLAR_SEED", time.time_ns() % 10**9))
STEPS = int(os.environ.get("CELLAR_GROUP_STEPS", "1500"))
CRASHES = int(os.environ.get("CELLAR_GROUP_CRASHES", "4"))  # for each policy


def text_of(id):
    return "%d-%d" % id


class GroupTest(WireTest):
    OPTIONS = {"appendfsync": "always", "enable-debug-command": "yes", "save": ""}

    def setUp(self):
        super().setUp()
        as_sent(self.redis)
        drop_feeds(self.redis)
        self.redis.execute_command("FLUSHALL")
        self.redis.execute_command("TABLE CREATE", "t", "FAMILY", "f")
        self.redis.execute_command("FEED CREATE", "s", "ON", 1, "t")

    def put(self, count, first=0):
        for i in range(first, first + count):
            self.redis.execute_command("CPUT", "t", f"r{i}", "f:q", i)

    def ids(self, feed="s"):
        return [id.decode() for id, _ in read_all(self.redis, feed)]

    def ids_of(self, reply):
        """Of XREADGROUP's reply about one feed; None where there is none."""
        return [entry[0].decode() for entry in reply[0][1]] if isinstance(reply, list) else None


# --- beside Redis

def without_times(words, reply):
    """A reply without what depends on the clock."""
    if isinstance(reply, resp.Map):
        return [("map", [(k, 0 if k == b"idle" else without_times(words, v)) for k, v in reply.pairs])]
    if isinstance(reply, resp.Error):
        return ("error", reply.code, reply.text)
    if reply is resp.NULL_ARRAY:
        return "null array"
    if not isinstance(reply, list):
        return (type(reply).__name__, reply)
    if words[0] == "XPENDING" and len(words) > 3 and len(reply) == 4 and isinstance(reply[2], int):
        return [reply[0], reply[1], reply[2] // 10**6, reply[3]]
    if words[:2] == ["XINFO", "CONSUMERS"] and len(reply) == 6 and reply[4] == b"idle":
        return [*reply[:5], 0]
    return [without_times(words, item) for item in reply]


class BesideRedis(GroupTest):
    def setUp(self):
        super().setUp()
        port = start_redis(self)
        with redis.Redis(port=port) as client:
            version = client.info("server")["redis_version"]
        if not version.startswith("7.0."):
            self.skipTest(f"this is Redis {version}, and groups are those of 7.0")
        self.theirs = {}
        for protocol in (2, 3):
            self.theirs[protocol] = resp.Client(port, protocol)
            self.addCleanup(self.theirs[protocol].close)
        self.copied = "0"

    def copy_entries(self):
        """What the feed tells becomes a stream over there, with the same ids."""
        for id, flat in read_all(self.redis, "s", self.copied):
            self.theirs[2].call(b"XADD", b"s", id, *flat)
            self.copied = id.decode()

    def both(self, line, protocol=2):
        words = line if isinstance(line, list) else line.split(" ")
        ours = self.wires[protocol].call(*[word.encode() for word in words])
        theirs = self.theirs[protocol].call(*[word.encode() for word in words])
        wanted, got = without_times(words, theirs), without_times(words, ours)
        if words[:2] == ["XINFO", "GROUPS"]:
            wanted, got = self.known(wanted, got)
        self.assertEqual(wanted, got, f"RESP{protocol}: {' '.join(words)} (seed {SEED})")
        return theirs

    def known(self, theirs, ours):
        """Redis does not know how far a group is that was set to an id. Ours is counted."""
        def groups(reply):
            if not isinstance(reply, list):
                return reply
            found = []
            for one in reply:
                maps = isinstance(one[0], tuple) and one[0][0] == "map"
                pairs = one[0][1] if maps else [(k[1], v) for k, v in zip(one[::2], one[1::2])]
                found.append([(k, v) for k, v in pairs if k not in (b"entries-read", b"lag")])
            return found
        return groups(theirs), groups(ours)

    def test_refusals(self):
        self.put(3)
        self.copy_entries()
        id = self.ids()[1]
        for line in ["XGROUP CREATE s g 0", "XGROUP CREATE s g 0", "XGROUP CREATE s g2 x", "XGROUP CREATE s g2 0 FOO",
                     "XGROUP CREATE s g2 0 ENTRIESREAD -2", "XGROUP CREATE s g2 0 ENTRIESREAD x", "XGROUP CREATE s g2 -",
                     "XGROUP CREATE s g2 5 ENTRIESREAD 2 MKSTREAM", "XGROUP SETID s none 0",
                     "XGROUP SETID s g2 $ ENTRIESREAD 1", "XGROUP SETID s g2 $ FOO", "XGROUP SETID s g2 $ MKSTREAM",
                     "XGROUP DESTROY s none", "XGROUP CREATECONSUMER s none c", "XGROUP CREATECONSUMER s g c",
                     "XGROUP CREATECONSUMER s g c", "XGROUP DELCONSUMER s g zzz", "XGROUP DELCONSUMER s none zzz",
                     "XGROUP CREATE s", "XGROUP CREATE s g", "XREADGROUP", "XREADGROUP STREAMS s >",
                     "XREADGROUP GROUP g c COUNT 1 STREAMS s", "XREADGROUP GROUP g c COUNT 1 STREAMS s 1 2",
                     "XREADGROUP GROUP g c COUNT 1 STREAMS s $", "XREADGROUP GROUP g c COUNT 1 STREAMS s +",
                     "XREADGROUP GROUP g c COUNT 1 STREAMS s -", "XREADGROUP COUNT 1 BLOCK 1 STREAMS s >",
                     "XREADGROUP GROUP none c STREAMS s >", "XREADGROUP GROUP g c COUNT -1 FOO STREAMS s >",
                     "XREADGROUP GROUP g c COUNT x STREAMS s >", "XREADGROUP GROUP g c BLOCK x STREAMS s >",
                     "XREADGROUP GROUP g c BLOCK -1 STREAMS s >", "XREADGROUP GROUP g STREAMS s > STREAMS",
                     "XACK s g", "XACK s none x", "XACK s none 1-1", "XACK s g x", "XACK s g 1-1 x", "XACK s g 1-1 5-5",
                     "XREAD COUNT 1 GROUP g c STREAMS s 0", "XREAD NOACK STREAMS s 0", "XREAD STREAMS s >",
                     "XPENDING s", "XPENDING s none", "XPENDING s g", "XPENDING s g -", "XPENDING s g - +",
                     "XPENDING s g - + 10", "XPENDING s g IDLE x - + 10", "XPENDING s g IDLE 0", "XPENDING s g - x 0",
                     "XPENDING s none - + 0", "XPENDING s g - + x", "XPENDING s g (1-1 + 0", "XCLAIM s g d 0",
                     f"XCLAIM s g d x {id}", f"XCLAIM s none d x {id}", "XCLAIM s g d 0 x", f"XCLAIM s g d 0 {id} FOO",
                     f"XCLAIM s g d 0 {id} IDLE x", f"XCLAIM s g d 0 {id} TIME x", f"XCLAIM s g d 0 {id} RETRYCOUNT x",
                     f"XCLAIM s g d 0 {id} RETRYCOUNT -1", f"XCLAIM s g d 0 {id} LASTID x", f"XCLAIM s g d 0 {id} IDLE",
                     f"XCLAIM s g d 0 {id} JUSTID", "XAUTOCLAIM s g f", "XAUTOCLAIM s g f 0", "XAUTOCLAIM s none f 0 0",
                     "XAUTOCLAIM s g f x 0", "XAUTOCLAIM s g f 0 x", "XAUTOCLAIM s g f 0 - COUNT 0",
                     "XAUTOCLAIM s g f 0 - COUNT x", "XAUTOCLAIM s g f 0 - FOO", "XAUTOCLAIM s g f 0 (18446744073709551615-"
                     "18446744073709551615", "XINFO CONSUMERS s none", "XINFO CONSUMERS s g", "XINFO GROUPS s",
                     "XINFO STREAM s FOO", "XINFO STREAM s FULL FOO", "XINFO STREAM s FULL COUNT", "XINFO STREAM s FULL COUNT x",
                     "XINFO STREAM s FULL COUNT 1 2", "XINFO STREAM s FULL FOO 1", "COMMAND GETKEYS XINFO STREAM a FULL",
                     "XGROUP FOO", "COMMAND GETKEYS XREADGROUP GROUP g c COUNT 1 STREAMS a b 0 0",
                     "COMMAND GETKEYSANDFLAGS XREAD COUNT 1 STREAMS a b 0 0", "COMMAND GETKEYS XACK a b 1-1",
                     "COMMAND GETKEYS XRANGE a - +", "COMMAND GETKEYS XINFO GROUPS a", "COMMAND GETKEYS XGROUP CREATE a g 0"]:
            for protocol in (2, 3):
                self.both(line, protocol)

    def test_xinfo_stream_full(self):
        self.put(15)
        self.copy_entries()
        for group, start in (("a", "0"), ("b", "$"), ("c", "0")):
            self.both(f"XGROUP CREATE s {group} {start}")
        self.both("XREADGROUP GROUP a x COUNT 12 STREAMS s >")
        self.both("XREADGROUP GROUP a y COUNT 3 STREAMS s >")
        self.both("XREADGROUP GROUP c x COUNT 2 STREAMS s >")
        self.both("XGROUP CREATECONSUMER s a idle")
        for id in self.ids()[1:3]:
            self.both(f"XCLAIM s a y 0 {id}")
        own_trees = (b"radix-tree-keys", b"radix-tree-nodes")

        def maps(reply):
            """With maps where RESP2 has lists, and without times."""
            if hasattr(reply, "pairs"):
                found = dict(reply.pairs)
            elif isinstance(reply, list) and reply[:1] in ([b"length"], [b"name"]):
                found = dict(zip(reply[::2], reply[1::2]))
            else:
                return [maps(one) for one in reply] if isinstance(reply, list) else reply
            for rows in (found.get(b"pending", []),):
                for row in rows:
                    self.assertIsInstance(row.pop(-2), int)
            self.assertIsInstance(found.pop(b"seen-time", 0), int)
            # Redis does not know how far a group is that was set to an id.
            counted = (b"entries-read", b"lag")
            return [(name, None if name in counted else maps(value)) for name, value in found.items() if name not in own_trees]

        for options in ("", " COUNT 1", " COUNT 5", " COUNT 0", " COUNT 1000", " COUNT -1", " COUNT 10000000000"):
            for protocol in (2, 3):
                with self.subTest(options=options, protocol=protocol):
                    words = f"XINFO STREAM s FULL{options}".encode().split()
                    ours = maps(self.wires[protocol].call(*words))
                    self.assertEqual(maps(self.theirs[protocol].call(*words)), ours)
                    self.assertEqual([b"length", b"last-generated-id", b"max-deleted-entry-id", b"entries-added",
                                      b"recorded-first-entry-id", b"entries", b"groups"], [name for name, _ in ours])
        # In a transaction the same; of a feed without anything too.
        self.call("MULTI")
        self.call("XINFO STREAM s FULL")
        self.assertEqual(maps(self.call("EXEC")[0]), maps(self.call("XINFO STREAM s FULL")))
        self.call("FEED CREATE nothing ON 0 KEEP 1d")
        empty = dict(maps(self.call("XINFO STREAM nothing FULL")))
        self.call("FEED DROP nothing")
        self.assertEqual([], empty[b"groups"])
        self.assertEqual([[b"op", b"schema"]], [flat[:2] for _, flat in empty[b"entries"]])
        self.assertEqual("NOFEED", self.call("XINFO STREAM none FULL").code)

    def test_lag_and_entries_read(self):
        self.put(5)
        self.copy_entries()
        for group, start in (("a", "0"), ("b", "$"), ("c", "0")):
            self.both(f"XGROUP CREATE s {group} {start}")
        self.both("XREADGROUP GROUP a x COUNT 4 STREAMS s >")
        self.both("XREADGROUP GROUP c x NOACK COUNT 2 STREAMS s >")
        self.put(3, first=5)
        self.copy_entries()
        ours = {group["name"]: (group["entries-read"], group["lag"]) for group in self.redis.xinfo_groups("s")}
        self.assertEqual({b"a": (4, 5), b"b": (6, 3), b"c": (2, 7)}, ours)
        theirs = self.theirs[3].call(b"XINFO", b"GROUPS", b"s")
        for group in theirs:
            pairs = dict(group.pairs)
            if pairs[b"lag"] is not None:
                self.assertEqual(ours[pairs[b"name"]][1], pairs[b"lag"])

    @not_on_a_follower("the feeds of a set tell of a change a moment behind its OK")
    def test_whatever_is_done(self):
        chance = random.Random(SEED)
        print(f"seed {SEED}", flush=True)
        groups, consumers = ["g1", "g2", "g3"], ["a", "b", "c", "d"]
        ids = []

        def some_id():
            ms, n = key_of(chance.choice(ids))
            return chance.choice([f"{ms}-{n}", f"{ms}-{n}", f"{ms}-{n}", f"{ms}-{n}", f"{ms}-{n + 1}", f"{ms}", "0-0"])

        def some_ids():
            return " ".join(some_id() for _ in range(chance.randrange(1, 5)))

        def line():
            group, consumer = chance.choice(groups), chance.choice(consumers)
            count = chance.choice(["", "", " COUNT %d" % chance.randrange(1, 6)])
            kind = chance.randrange(18)
            if kind == 0:
                return f"XGROUP CREATE s {group} {chance.choice(['0', '$', some_id()])}"
            if kind == 1 and chance.random() < 0.5:
                return f"XGROUP SETID s {group} {chance.choice(['0', '$', some_id()])}"
            if kind == 1 and chance.random() < 0.2:
                return f"XGROUP DESTROY s {group}"
            if kind <= 2:
                what = "DELCONSUMER" if chance.random() < 0.2 else "CREATECONSUMER"
                return f"XGROUP {what} s {group} {consumer}"
            if kind <= 6:
                ack = " NOACK" if chance.random() < 0.2 else ""
                return f"XREADGROUP GROUP {group} {consumer}{count}{ack} STREAMS s >"
            if kind <= 8:
                return f"XREADGROUP GROUP {group} {consumer}{count} STREAMS s {some_id()}"
            if kind == 9:
                return f"XREADGROUP GROUP {group} {consumer}{count} STREAMS s s > {some_id()}"
            if kind <= 11:
                return f"XACK s {group} {some_ids()}"
            if kind == 12:
                idle = chance.choice(["", "IDLE 5000000 ", "IDLE 0 "])
                of = chance.choice(["", f" {consumer}"])
                low = chance.choice(["-", some_id(), "(" + some_id()])
                high = chance.choice(["+", some_id(), "("  + chance.choice(ids)])
                return f"XPENDING s {group} {idle}{low} {high} {chance.randrange(-1, 20)}{of}"
            if kind == 13:
                return f"XPENDING s {group}"
            if kind <= 15:
                words = [chance.choice(["", "", f" IDLE {chance.choice([0, 6000000])}", " TIME 1000000000000"]),
                         chance.choice(["", "", f" RETRYCOUNT {chance.randrange(9)}"]), chance.choice(["", "", " FORCE"]),
                         chance.choice(["", " JUSTID"]), chance.choice(["", "", "", f" LASTID {some_id()}"])]
                return f"XCLAIM s {group} {consumer} {chance.choice([0, 5000000, -1])} {some_ids()}{''.join(words)}"
            if kind == 16:
                start = chance.choice(["-", "0", some_id(), "(" + some_id()])
                just = chance.choice(["", " JUSTID"])
                return f"XAUTOCLAIM s {group} {consumer} {chance.choice([0, 5000000])} {start}{count}{just}"
            return chance.choice(["XINFO GROUPS s", f"XINFO CONSUMERS s {group}"])

        for step in range(STEPS):
            if step % 25 == 0:
                self.put(chance.randrange(1, 8), first=step * 10)
                self.copy_entries()
                ids = self.ids()
            self.both(line(), chance.choice((2, 3)))
            if step % 400 == 399:
                self.redis.execute_command("DEBUG RELOAD") if chance.random() < 0.5 else self.server.crash()
                self.connect_wires()


# --- the model, over crashes

class Crash(unittest.TestCase):
    """After each kill -9 groups are as they were behind some command: the last one or, if it got no answer, the one
    before; under everysec and no, one of those since the start."""

    def run_policy(self, policy):
        """A store sees 20 crashes at most, since all its entries are read again and again."""
        print(f"{policy}: seed {SEED}", flush=True)
        for begin in range(0, CRASHES, 20):
            self.run_store(policy, SEED + begin, min(20, CRASHES - begin))

    def run_store(self, policy, seed, crashes):
        chance = random.Random(seed)
        with CellarServer(appendfsync=policy, save="", enable_debug_command="yes") as server:
            client = as_sent(server.client())
            client.execute_command("TABLE CREATE", "t", "FAMILY", "f")
            client.execute_command("FEED CREATE", "s", "ON", 1, "t")
            model = GroupModel()
            for life in range(crashes):
                states = [model.copy()]
                self.refresh(client, model)
                killer = threading.Timer(chance.uniform(0.05, 0.6), server.kill)
                killer.start()
                try:
                    while True:
                        after = model.copy()
                        states.append(after)
                        self.step(chance, client, after)
                        model = after
                except redis.ConnectionError:
                    pass
                killer.join()
                server.start()
                client = as_sent(server.client())
                wanted = [state.state() for state in (states[-2:] if policy == "always" else states)]
                found = state_of(client, "s")
                self.assertIn(found, wanted, (policy, seed, life))
                model = states[-len(wanted):][max(i for i, state in enumerate(wanted) if state == found)]
                if chance.random() < 0.5:
                    client.execute_command("SAVE")
                    client.execute_command("DEBUG RELOAD")
                    self.assertEqual(found, state_of(client, "s"))

    def refresh(self, client, model):
        client.execute_command("WAITAOF", 1, 0, 10_000)
        model.entries = [key_of(id) for id, _ in read_all(client, "s")]

    def step(self, chance, client, model):
        run = client.execute_command
        names = list(model.groups)
        kind = chance.randrange(14)
        if kind == 0 or not names:
            name = f"g{chance.randrange(4)}"
            last = chance.choice(model.entries)
            if name not in model.groups:
                model.create(name, last)
                self.assertTrue(run("XGROUP CREATE", "s", name, text_of(last)))
            return
        name, consumer = chance.choice(names), f"c{chance.randrange(3)}"
        group = model.groups[name]
        pending = list(group.pending)
        if kind <= 3:
            for i in range(chance.randrange(1, 9)):
                run("CPUT", "t", f"r{chance.randrange(99)}", "f:q", i)
            return self.refresh(client, model)
        if kind <= 6:
            count, no_ack = chance.randrange(1, 9), chance.random() < 0.2
            wanted = model.read(name, consumer, count, no_ack)
            reply = run("XREADGROUP", "GROUP", name, consumer, "COUNT", count, *(["NOACK"] if no_ack else []), "STREAMS",
                        "s", ">")
            return self.assertEqual(wanted, [key_of(id) for id, _ in reply[0][1]] if reply else [])
        if kind == 7:
            wanted = model.read_again(name, consumer, (0, 0), 5)
            reply = run("XREADGROUP", "GROUP", name, consumer, "COUNT", 5, "STREAMS", "s", "0")
            return self.assertEqual(wanted, [key_of(id) for id, _ in reply[0][1]])
        if kind <= 10 and pending:
            ids = chance.sample(pending, min(len(pending), chance.randrange(1, 6)))
            return self.assertEqual(model.ack(name, ids), run("XACK", "s", name, *map(text_of, ids)))
        if kind == 11 and pending:
            ids = chance.sample(pending, min(len(pending), 3)) + [chance.choice(model.entries)]
            wanted = model.claim(name, consumer, ids, force=True, just_ids=True)
            return self.assertEqual(wanted, [key_of(id) for id in run("XCLAIM", "s", name, consumer, 0, *map(text_of, ids),
                                                                      "FORCE", "JUSTID")])
        if kind == 12 and pending:
            start = chance.choice(pending)
            cursor, claimed = model.claim_oldest(name, consumer, start, 4)
            reply = run("XAUTOCLAIM", "s", name, consumer, 0, text_of(start), "COUNT", 4)
            return self.assertEqual(([cursor, claimed]), [key_of(reply[0]), [key_of(id) for id, _ in reply[1]]])
        what = chance.randrange(6)
        if what == 0:
            self.assertEqual(model.destroy(name), run("XGROUP DESTROY", "s", name))
        elif what == 1:
            self.assertEqual(model.drop_consumer(name, consumer), run("XGROUP DELCONSUMER", "s", name, consumer))
        elif what == 2:
            last = chance.choice(model.entries)
            model.set_last(name, last)
            run("XGROUP SETID", "s", name, text_of(last))
        else:
            self.assertEqual(model.add_consumer(name, consumer), run("XGROUP CREATECONSUMER", "s", name, consumer))

    def test_always(self):
        self.run_policy("always")

    def test_everysec(self):
        self.run_policy("everysec")

    def test_no(self):
        self.run_policy("no")


# --- what is Cellar's own

class OwnTest(GroupTest):
    def group(self, *names, start="0"):
        for name in names or ["g"]:
            self.write(f"XGROUP CREATE s {name} {start}")

    def news(self, consumer="c", *options):
        return self.ids_of(self.call(["XREADGROUP", "GROUP", "g", consumer, *options, "STREAMS", "s", ">"]))

    def call(self, line, protocol=2):
        return super().call([str(word).encode() for word in line] if isinstance(line, list) else line, protocol)

    def wait_for_reader(self, got=()):
        """Until it waits, or has `got` its answer: on a busy machine it may be idle, or its time be over, before anybody looks."""
        # Of a set it waits at the leader, which is one of the others.
        clients = [other.client() for other in self.server.others] if "CELLAR_FOLLOWER" in os.environ else [self.redis]
        wait_until(lambda: got or any(c.get("cmd") == "xreadgroup" and "b" in c["flags"]
                                      for client in clients for c in client.execute_command("CLIENT LIST")))

    def wait(self, act, *options, block=20000):
        """What a reader that waits gets when `act` happens."""
        waiting = as_sent(self.server.client(single_connection_client=True))
        self.addCleanup(waiting.close)
        id = waiting.client_id()
        got = []

        def wait():
            try:
                got.append(waiting.execute_command("XREADGROUP", "GROUP", "g", "w", "BLOCK", block, *options, "STREAMS", "s",
                                                   ">"))
            except redis.RedisError as error:
                got.append(str(error))
        thread = threading.Thread(target=wait)
        thread.start()
        self.wait_for_reader(got)
        act(id)
        thread.join(300)
        return got[0]

    def test_each_entry_goes_to_one_consumer(self):
        self.group()
        told, ended = [], threading.Event()

        def consume(name):
            client = as_sent(self.server.client())
            while True:
                reply = client.execute_command("XREADGROUP", "GROUP", "g", name, "COUNT", 7, "BLOCK", 50, "STREAMS", "s", ">")
                if not reply and ended.is_set():
                    break
                ids = [entry[0] for entry in reply[0][1]] if reply else []
                told.append((name, ids))
                if ids:
                    client.execute_command("XACK", "s", "g", *ids)
            client.close()
        threads = [threading.Thread(target=consume, args=(f"c{i}",)) for i in range(5)]
        for thread in threads:
            thread.start()
        self.put(600)
        ended.set()
        for thread in threads:
            thread.join()
        all_ids = [id.decode() for _, ids in told for id in ids]
        self.assertEqual(sorted(self.ids()), sorted(all_ids))
        self.assertEqual(0, self.redis.xpending("s", "g")["pending"])

    @not_on_a_follower("CLIENT UNBLOCK is for readers that wait here")
    def test_a_reader_waits(self):
        self.group(start="$")
        reply = self.wait(lambda id: self.put(1))
        self.assertEqual(self.ids()[-1:], [entry[0].decode() for entry in reply[0][1]])
        self.assertEqual(1, self.redis.xpending("s", "g")["pending"])
        self.assertEqual(resp.NULL_ARRAY, self.call("XREADGROUP GROUP g c BLOCK 30 STREAMS s >"))
        run = self.redis.execute_command
        self.assertIsNone(self.wait(lambda id: run("CLIENT", "UNBLOCK", id)))
        self.assertIn("UNBLOCKED", self.wait(lambda id: run("CLIENT", "UNBLOCK", id, "ERROR")))
        self.assertIn("no longer exists", self.wait(lambda id: run("XGROUP DESTROY", "s", "g")))
        self.group(start="$")
        self.assertIn("NOFEED", self.wait(lambda id: run("FEED DROP", "s")))

    def test_a_reader_with_claim_waits_until_something_is_idle(self):
        self.group(start="$")
        self.put(2)
        both = self.news("gone")
        reply = self.wait(lambda id: None, "CLAIM", 300)
        self.assertEqual([[id.encode(), 1] for id in both], [[entry[0], entry[3]] for entry in reply[0][1]])
        self.assertTrue(all(entry[2] >= 300 for entry in reply[0][1]))
        # Something new comes first; what XCLAIM has made older is found, too.
        reply = self.wait(lambda id: self.put(1, first=7), "CLAIM", 1_000_000)
        self.assertEqual([[0, 0]], [entry[2:] for entry in reply[0][1]])
        reply = self.wait(lambda id: self.redis.execute_command("XCLAIM", "s", "g", "w", 0, both[0], "IDLE", 2_000_000),
                          "CLAIM", 1_000_000)
        self.assertEqual([both[0].encode()], [entry[0] for entry in reply[0][1]])
        for words, text in ((["CLAIM", "x"], "Invalid min-idle-time argument for XREADGROUP"),
                            (["CLAIM", "-1"], "min-idle-time must not be negative")):
            with self.assertRaisesRegex(redis.ResponseError, text):
                self.redis.execute_command("XREADGROUP", "GROUP", "g", "w", *words, "STREAMS", "s", ">")
        # With an id it says nothing.
        self.assertEqual({2}, {len(entry) for entry in self.call("XREADGROUP GROUP g w CLAIM 5 STREAMS s 0")[0][1]})

    def test_a_pause_of_writes_holds_readers_of_groups(self):
        self.group(start="$")

        def act(_):
            self.put(1)
            self.redis.execute_command("CLIENT PAUSE", 100000, "WRITE")
            self.assertEqual({}, self.redis.execute_command("FEED LIST") and {})
            time.sleep(0.3)  # of the pause
            self.redis.execute_command("CLIENT UNPAUSE")
        # It gets the entry, before the pause or behind it, once.
        self.assertEqual(1, len(self.wait(act)[0][1]))
        begin = time.monotonic()
        self.write("CLIENT PAUSE 300 WRITE")
        self.put(0)
        self.assertEqual(None, self.news())
        self.assertGreater(time.monotonic() - begin, 0.25)

    def test_in_transactions(self):
        self.put(3)
        self.group()
        ids = self.ids()
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.execute_command("XREADGROUP", "GROUP", "g", "c", "COUNT", 2, "STREAMS", "s", ">")
            pipe.execute_command("XACK", "s", "g", ids[0])
            pipe.execute_command("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "COUNT", 9, "STREAMS", "s", ">")
            pipe.execute_command("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "s", ">")
            replies = pipe.execute()
        self.assertEqual([2, 1, 2, None], [len(replies[0][0][1]), replies[1], len(replies[2][0][1]), replies[3]])
        before = state_of(self.redis, "s")
        self.redis.execute_command("CPUT", "t", "word", "f:q", "x")
        # All of it is taken back.
        for last, error in (("CPUT t r", "EXECABORT"), ("CINCRBY t word f:q 1", "EXECABORT")):
            for line in ("MULTI ATOMIC", "XACK s g " + " ".join(ids), "XGROUP CREATE s h 0", "XGROUP DELCONSUMER s g c",
                         "XGROUP CREATECONSUMER s g new", "XGROUP SETID s g 0", "XREADGROUP GROUP g d STREAMS s >",
                         "XCLAIM s g e 0 " + " ".join(ids), "XGROUP DESTROY s g", "XGROUP CREATE s g $",
                         "XGROUP CREATECONSUMER s g other", "FEED DROP s", last):
                reply = self.call(line)
            reply = self.call("EXEC")
            self.assertIsInstance(reply, resp.Error, reply)
            self.assertEqual(error, reply.code)
            self.assertEqual(before, state_of(self.redis, "s"))
        self.assertEqual(before, (self.redis.execute_command("DEBUG RELOAD"), state_of(self.redis, "s"))[1])

    def test_no_pending_beyond_the_limit(self):
        with self.redis.pipeline(transaction=True) as pipe:
            for part in range(11):
                words = ["CPUT", "t", f"r{part}"]
                for i in range(10_000):
                    words += [f"f:{i}", "v"]
                pipe.execute_command(*words)
            pipe.execute()
        self.group()
        before = self.redis.info("memory")["used_memory"]
        first = None
        total = 0
        while True:
            reply = self.call("XREADGROUP GROUP g c COUNT 100000 STREAMS s >")
            if not isinstance(reply, list):
                break
            first = first or reply[0][1][0][0].decode()
            total += len(reply[0][1])
        self.assertEqual(("TOOLARGE", 100_000), (reply.code, total))
        wait_until(lambda: self.redis.info("memory")["used_memory"] - before > 10_000_000)
        self.assertEqual(100_000, self.redis.xpending("s", "g")["pending"])
        # Neither does XCLAIM.
        last = self.ids()[-1]
        self.assertEqual([], self.call(f"XCLAIM s g c 0 {last} FORCE JUSTID"))
        # Without a memory of them it goes on, and behind an XACK too.
        self.write(f"XACK s g {first}", 1)
        self.assertEqual(1, len(self.news("c", "COUNT", 5)))
        self.assertEqual(5, len(self.news("c", "NOACK", "COUNT", 5)))
        self.assertEqual("TOOLARGE", self.call("XREADGROUP GROUP g c COUNT 5 STREAMS s >").code)
        before_save = state_of(self.redis, "s")
        self.write("SAVE")
        self.server.crash()
        self.redis = as_sent(self.server.client())
        self.connect_wires()
        self.assertEqual(before_save, state_of(self.redis, "s"))
        self.write("XGROUP DESTROY s g", 1)
        wait_until(lambda: self.redis.info("memory")["used_memory"] - before < 5_000_000)

    def test_limits(self):
        long_name = "n" * 1025
        self.group()
        self.refused(f"XGROUP CREATE s {long_name} 0", "TOOLARGE")
        self.refused(f"XGROUP CREATECONSUMER s g {long_name}", "TOOLARGE")
        self.refused(f"XREADGROUP GROUP g {long_name} STREAMS s >", "TOOLARGE")
        with self.redis.pipeline(transaction=False) as pipe:
            for i in range(999):
                pipe.execute_command("XGROUP CREATE", "s", f"g{i}", "0")
            for i in range(10_000):
                pipe.execute_command("XGROUP CREATECONSUMER", "s", "g", f"c{i}")
            pipe.execute()
        self.refused("XGROUP CREATE s more 0", "TOOLARGE")
        self.refused("XGROUP CREATECONSUMER s g more", "TOOLARGE")
        self.refused("XREADGROUP GROUP g more STREAMS s >", "TOOLARGE")
        self.assertEqual(1000, len(self.redis.xinfo_groups("s")))
        info = self.redis.execute_command("FEED INFO", "s")
        self.assertEqual(1000, dict(zip(info[::2], info[1::2]))[b"groups"])
        self.assertEqual(1000, self.redis.xinfo_stream("s")["groups"])

    def test_maxmemory(self):
        self.put(5)
        self.group()
        self.write("CONFIG SET maxmemory 1000")
        self.addCleanup(self.redis.config_set, "maxmemory", "0")

        def refuses():
            try:
                self.redis.execute_command("XGROUP CREATE", "s", "more", "0")
            except redis.ResponseError as error:
                self.assertIn("maxmemory", str(error))
                return True
            self.redis.execute_command("XGROUP DESTROY", "s", "more")
            return False
        wait_until(refuses)
        self.refused("XGROUP CREATE s more 0", "OOM")
        self.refused("XREADGROUP GROUP g c STREAMS s >", "OOM")
        self.assertEqual(6, len(self.news("c", "NOACK")))
        self.refused("XGROUP CREATECONSUMER s g x", "OOM")
        self.write("XACK s g 1-1", 0)

    def test_without_a_feed(self):
        for line in ("XGROUP CREATE none g 0", "XGROUP CREATE none g 0 MKSTREAM", "XGROUP SETID none g 0",
                     "XGROUP DESTROY none g", "XGROUP CREATECONSUMER none g c", "XGROUP DELCONSUMER none g c",
                     "XREADGROUP GROUP g c STREAMS none >", "XREADGROUP GROUP g c BLOCK 0 STREAMS none >",
                     "XACK none g 1-1", "XPENDING none g", "XPENDING none g - + 1", "XCLAIM none g c 0 1-1",
                     "XAUTOCLAIM none g c 0 0", "XINFO GROUPS none", "XINFO CONSUMERS none g"):
            self.refused(line, "NOFEED")
            self.refused(line.replace("none", "t"), "WRONGTYPE")

    def test_events(self):
        listener = self.server.client().pubsub()
        self.addCleanup(listener.close)
        self.write("CONFIG SET notify-keyspace-events Kt")
        listener.psubscribe("__keyspace@0__:s")
        listener.get_message(timeout=60)
        self.put(1)
        self.group()
        self.write("XGROUP CREATECONSUMER s g a", 1)
        self.news("b")
        self.write("XGROUP DELCONSUMER s g a", 0)
        self.write("XGROUP SETID s g 0")
        self.write("XGROUP DESTROY s g", 1)
        wanted = ["xgroup-create", "xgroup-createconsumer", "xgroup-createconsumer", "xgroup-delconsumer", "xgroup-setid",
                  "xgroup-destroy"]
        self.assertEqual(wanted, [listener.get_message(timeout=60)["data"].decode() for _ in wanted])

    def test_rights(self):
        self.put(2)
        self.group()
        for rules, may in (("+@stream %R~t:*", True), ("+@stream %W~t:*", False), ("+@all -@stream ~*", False)):
            self.redis.execute_command("ACL", "SETUSER", "u", "reset", "on", ">p", *rules.split())
            user = resp.Client(self.server.port, 2)
            self.addCleanup(user.close)
            user.call(b"AUTH", b"u", b"p")
            for line in ("XREADGROUP GROUP g c STREAMS s >", "XREADGROUP GROUP g c STREAMS s 0", "XACK s g 1-1", "XPENDING s g",
                         "XPENDING s g - + 5", "XCLAIM s g c 0 1-1", "XAUTOCLAIM s g c 0 0", "XGROUP CREATE s u 0",
                         "XGROUP SETID s u 0", "XGROUP CREATECONSUMER s u c", "XGROUP DELCONSUMER s u c",
                         "XGROUP DESTROY s u", "XINFO GROUPS s", "XINFO CONSUMERS s g"):
                with self.subTest(rules=rules, line=line):
                    reply = user.call(*[word.encode() for word in line.split()])
                    self.assertEqual(may, not (isinstance(reply, resp.Error) and reply.code == "NOPERM"), reply)
        self.redis.execute_command("ACL", "DELUSER", "u")

    def test_a_feed_takes_its_groups_along(self):
        self.put(2)
        self.group()
        self.news()
        self.write("FEED DROP s")
        self.write("FEED CREATE s ON 1 t")
        self.assertEqual([], self.call("XINFO GROUPS s"))
        self.refused("XPENDING s g", "NOGROUP")

    def test_groups_are_in_no_feed(self):
        self.redis.execute_command("FEED CREATE", "all", "ON", 0)
        before = self.ids("all")
        self.put(2)
        self.group()
        self.news()
        self.write("XGROUP DESTROY s g", 1)
        self.assertEqual(len(before) + 2, len(self.ids("all")))
        self.assertEqual(len(before) + 2, self.redis.xlen("all"))

    def test_large_entries(self):
        """A reply holds about 1 MiB, whatever is asked for; what it does not hold is not taken either."""
        for i in range(30):
            self.redis.execute_command("CPUT", "t", f"r{i}", "f:q", "v" * 100_000)
        self.group()
        told = []
        while True:
            ids = self.news("c", "COUNT", 1000)
            if ids is None:
                break
            self.assertLess(len(ids), 14)
            told += ids
            self.assertEqual(len(told), self.redis.xpending("s", "g")["pending"])
        self.assertEqual(self.ids(), told)
        claimed = self.call(["XCLAIM", "s", "g", "d", 0, *told])
        self.assertTrue(10 <= len(claimed) <= 13, len(claimed))
        self.assertEqual(len(claimed), {c["name"]: c["pending"] for c in self.redis.xinfo_consumers("s", "g")}[b"d"])
        cursor, got = "0", []
        while True:
            cursor, entries, gone = self.call(["XAUTOCLAIM", "s", "g", "e", 0, cursor, "COUNT", 1000])
            self.assertTrue(len(entries) <= 13 and not gone)
            got += [entry[0].decode() for entry in entries]
            cursor = cursor.decode()
            if cursor == "0-0":
                break
        self.assertEqual(told, got)
        again, after = [], "0"
        while True:
            entries = self.ids_of(self.call(["XREADGROUP", "GROUP", "g", "e", "COUNT", 1000, "STREAMS", "s", after]))
            if not entries:
                break
            again += entries
            after = entries[-1]
        self.assertEqual(told, again)


class Trimmed(unittest.TestCase):
    """What a feed has dropped, and what was pending of it."""

    def test_claim_takes_what_is_idle_and_then_what_is_new(self):
        """XREADGROUP CLAIM against what XPENDING tells before it; each entry tells when and how often it was delivered."""
        seed = random.randrange(1 << 32)
        mix = random.Random(seed)
        now, rows = int(time.time() * 1000) + 10_000, 0
        with CellarServer(appendfsync="always", save="", enable_debug_command="yes") as server, self.subTest(seed=seed):
            wire = resp.Client(server.port, 2)

            def run(*words):
                return wire.call(*[word if isinstance(word, bytes) else str(word).encode()
                                   for each in words for word in (each.split() if isinstance(each, str) else [each])])
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("FEED CREATE", "s", "ON", 1, "t")
            run("XGROUP CREATE", "s", "g", "$")
            last = run("XREVRANGE", "s", "+", "-", "COUNT", 1)[0][0]
            claims = 0
            for _ in range(300):
                now += mix.choice((0, 1, 100, 1000, 5000))
                run("DEBUG SET-TIME", now * 1000)
                for _ in range(mix.randrange(3)):
                    rows += 1
                    run("CPUT", "t", f"r{rows}", "f:q", "v" * mix.choice((1, 300, 2000)))
                ids = [id for id, _ in run("XRANGE", "s", "-", "+")]
                new = [id for id in ids if key_of(id) > key_of(last)]
                pending = run("XPENDING", "s", "g", "-", "+", 100_000)
                count, who = mix.choice((1, 2, 5, 1000)), mix.choice("abc")
                words = ["GROUP", "g", who, "COUNT", count]
                kind = mix.random()
                if kind < 0.2:
                    reply = run("XREADGROUP", *words, "STREAMS", "s", ">")
                    self.assertEqual(new[:count], [] if reply == resp.NULL_ARRAY else [entry[0] for entry in reply[0][1]])
                    last = new[:count][-1] if new else last
                elif kind < 0.3 and pending:
                    run("XACK", "s", "g", *(id for id, _, _, _ in mix.sample(pending, min(len(pending), 3))))
                elif kind < 0.4 and pending:
                    id = mix.choice(pending)[0]
                    run("XCLAIM", "s", "g", who, 0, id, "IDLE", mix.choice((0, 10, 20_000)))
                else:
                    idle, no_ack = mix.choice((0, 1, 100, 3000)), mix.random() < 0.3
                    due = sorted((one for one in pending if one[2] >= idle), key=lambda one: (-one[2], key_of(one[0])))[:count]
                    expected = [[id, was, times] for id, _, was, times in due] + [[id, 0, 0] for id in new[:count - len(due)]]
                    reply = run("XREADGROUP", *words, "CLAIM", idle, *(["NOACK"] if no_ack else []), "STREAMS", "s", ">")
                    told = [] if reply == resp.NULL_ARRAY else reply[0][1]
                    self.assertEqual(expected, [[entry[0], *entry[2:]] for entry in told])
                    self.assertTrue(all(entry[1][0] == b"op" for entry in told))
                    claims += len(due)
                    last = expected[-1][0] if len(expected) > len(due) else last
                    after = {id: [name, was, times] for id, name, was, times in run("XPENDING", "s", "g", "-", "+", 100_000)}
                    for id, _, times in expected:
                        if times == 0 and no_ack:
                            self.assertNotIn(id, after)
                        else:
                            self.assertEqual([who.encode(), 0, times + 1], after[id])
            self.assertGreater(claims, 20)
            wire.close()
            state = state_of(as_sent(server.client()), "s")
            server.crash()
            self.assertEqual(state, state_of(as_sent(server.client()), "s"))

    def test_claim_leaves_what_the_reply_has_no_room_for(self):
        with CellarServer(appendfsync="always", save="", enable_debug_command="yes") as server:
            client = as_sent(server.client())
            run = client.execute_command
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("FEED CREATE", "s", "ON", 1, "t")
            run("XGROUP CREATE", "s", "g", "$")
            for i in range(60):
                run("CPUT", "t", f"r{i:02}", "f:q", "v" * 30_000)
            ids = []
            for _ in range(3):
                ids += [entry[0] for entry in (run("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">") or [[0, []]])[0][1]]
            self.assertEqual(60, len(ids))
            [[_, claimed]] = run("XREADGROUP", "GROUP", "g", "b", "CLAIM", 0, "STREAMS", "s", ">")
            self.assertLess(len(claimed), 60)
            self.assertEqual(ids[:len(claimed)], [entry[0] for entry in claimed])
            self.assertEqual(60 - len(claimed), len(client.xpending_range("s", "g", "-", "+", 100, consumername="a")))
            [[_, rest]] = run("XREADGROUP", "GROUP", "g", "b", "CLAIM", 0, "STREAMS", "s", ">")
            self.assertEqual(ids[len(claimed):], [entry[0] for entry in rest][:60 - len(claimed)])

    def test_claim_waits_no_longer_where_the_clock_is_set_back(self):
        base = int(time.time() * 1e6) + 10_000_000
        with CellarServer(appendfsync="always", save="", enable_debug_command="yes") as server:
            client = as_sent(server.client())
            run = client.execute_command
            run("DEBUG SET-TIME", base)
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("FEED CREATE", "s", "ON", 1, "t")
            run("XGROUP CREATE", "s", "g", "$")
            run("CPUT", "t", "r", "f:q", 1)
            [[_, [[id, _]]]] = run("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">")
            got = []
            waiting = as_sent(server.client())
            reader = threading.Thread(target=lambda: got.append(waiting.execute_command(
                "XREADGROUP", "GROUP", "g", "b", "BLOCK", 0, "CLAIM", 500, "STREAMS", "s", ">")))
            reader.start()
            wait_until(lambda: any(c.get("cmd") == "xreadgroup" and "b" in c["flags"] for c in run("CLIENT LIST")))
            hour_ago = base - 3_600_000_000
            run("DEBUG SET-TIME", hour_ago)
            run("XCLAIM", "s", "g", "a", 0, id)
            time.sleep(0.1)  # the reader looks meanwhile, and waits on
            run("DEBUG SET-TIME", hour_ago + 600_000)
            reader.join(300)
            self.assertEqual([[id, 600, 2]], [[entry[0], *entry[2:]] for entry in got[0][0][1]] if got else [])

    def test_claim_of_what_was_dropped(self):
        base = int(time.time() * 1e6) + 10_000_000
        with CellarServer(appendfsync="always", save="", enable_debug_command="yes") as server:
            client = as_sent(server.client())
            run = client.execute_command
            run("DEBUG SET-TIME", base)
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("FEED CREATE", "s", "ON", 1, "t", "KEEP", "10s")
            run("XGROUP CREATE", "s", "g", "$")
            for seconds in (1, 5):
                run("DEBUG SET-TIME", base + seconds * 1_000_000)
                run("CPUT", "t", f"r{seconds}", "f:q", 1)
            [[_, got]] = run("XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">")
            self.assertEqual(2, len(got))
            run("DEBUG SET-TIME", base + 12_000_000)
            [[_, claimed]] = run("XREADGROUP", "GROUP", "g", "b", "CLAIM", 0, "STREAMS", "s", ">")
            self.assertEqual([[got[1][0], 7000, 1]], [[entry[0], *entry[2:]] for entry in claimed])
            self.assertEqual([(got[1][0], b"b", 2)], [(one["message_id"], one["consumer"], one["times_delivered"])
                                                     for one in client.xpending_range("s", "g", "-", "+", 9)])

    def test_pending_and_dropped(self):
        base = int(time.time() * 1e6) + 10_000_000
        with CellarServer(appendfsync="always", save="", enable_debug_command="yes") as server:
            client = as_sent(server.client())
            wire = resp.Client(server.port, 2)
            run = client.execute_command

            def call(line):
                return wire.call(*[word.encode() for word in line.split()])

            def now(seconds):
                run("DEBUG SET-TIME", base + seconds * 1_000_000)
            now(0)
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("FEED CREATE", "s", "ON", 1, "t", "KEEP", "10s")
            for i in range(6):
                now(1 + i)
                run("CPUT", "t", f"r{i}", "f:q", i)
            ids = [id.decode() for id, _ in read_all(client, "s")]
            for group in "abcd":
                run("XGROUP CREATE", "s", group, "0")
            run("XGROUP CREATE", "s", "late", ids[1])
            for group in "abc":
                call(f"XREADGROUP GROUP {group} x COUNT 5 STREAMS s >")
            now(12)  # what was committed at 2 and before is gone
            self.assertEqual(ids[3:], [id.decode() for id, _ in read_all(client, "s")])
            self.assertEqual(5, client.xpending("s", "a")["pending"])
            # Read again: those that are gone have no fields.
            [[_, again]] = call("XREADGROUP GROUP a x STREAMS s 0")
            self.assertEqual([(id.encode(), i >= 3) for i, id in enumerate(ids[:5])],
                             [(id, fields is not resp.NULL_ARRAY) for id, fields in again])
            self.assertEqual([2, 2], [one["times_delivered"] for one in client.xpending_range("s", "a", ids[3], "+", 9)])
            # XCLAIM and XAUTOCLAIM take them out.
            claimed = call(f"XCLAIM s a y 0 {' '.join(ids)} FORCE")
            self.assertEqual([id.encode() for id in ids[3:]], [id for id, _ in claimed])
            self.assertEqual(4, client.xpending("s", "a")["pending"])
            self.assertEqual([], call(f"XCLAIM s b y 0 {ids[0]} JUSTID"))
            self.assertEqual(4, client.xpending("s", "b")["pending"])
            cursor, claimed, gone = call("XAUTOCLAIM s b y 0 - COUNT 3")
            self.assertEqual((ids[4].encode(), [ids[3].encode()], [id.encode() for id in ids[1:3]]),
                             (cursor, [id for id, _ in claimed], gone))
            self.assertEqual([b"0-0", [], [id.encode() for id in ids[:3]]], call("XAUTOCLAIM s c y 100000 -"))
            # Groups that have not been told of it are told that they have missed something.
            for group in ("d", "late"):
                refusal = call(f"XREADGROUP GROUP {group} x STREAMS s >")
                self.assertEqual("TRIMMED", refusal.code)
                self.assertIn(ids[2], refusal.text)
                run("XGROUP SETID", "s", group, "0")
                [[_, rest]] = call(f"XREADGROUP GROUP {group} x STREAMS s >")
                self.assertEqual([id.encode() for id in ids[3:]], [id for id, _ in rest])
            # One that begins now begins with what is kept.
            run("XGROUP CREATE", "s", "new", "0")
            [[_, rest]] = call("XREADGROUP GROUP new x STREAMS s >")
            self.assertEqual([id.encode() for id in ids[3:]], [id for id, _ in rest])
            lag = {group["name"].decode(): group["lag"] for group in client.xinfo_groups("s")}
            self.assertEqual({"a": 1 + 1, "b": 2, "c": 2, "d": 0, "late": 0, "new": 0}, lag)
            state = state_of(client, "s")
            wire.close()
            server.crash()
            client = as_sent(server.client())
            self.assertEqual(state, state_of(client, "s"))

    def test_the_clock_of_idle_times(self):
        base = int(time.time() * 1e6) + 10_000_000
        with CellarServer(appendfsync="always", save="", enable_debug_command="yes") as server:
            client = as_sent(server.client())
            run = client.execute_command
            run("DEBUG SET-TIME", base)
            run("TABLE CREATE", "t", "FAMILY", "f")
            run("FEED CREATE", "s", "ON", 1, "t")
            run("XGROUP CREATE", "s", "g", "0")
            run("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
            run("DEBUG SET-TIME", base + 7_000_000)
            self.assertEqual([7000], [one["time_since_delivered"] for one in client.xpending_range("s", "g", "-", "+", 9)])
            self.assertEqual([7000], [one["idle"] for one in client.xinfo_consumers("s", "g")])
            server.crash()
            client = as_sent(server.client())
            client.execute_command("DEBUG SET-TIME", base + 9_000_000)
            self.assertEqual([9000], [one["time_since_delivered"] for one in client.xpending_range("s", "g", "-", "+", 9)])
            self.assertEqual([], client.xpending_range("s", "g", "-", "+", 9, idle=9001))
            self.assertEqual([b"0-0", [], []], client.execute_command("XAUTOCLAIM", "s", "g", "d", 9001, "-"))
            self.assertEqual(1, len(client.xpending_range("s", "g", "-", "+", 9, idle=9000)))


if __name__ == "__main__":
    unittest.main()
