"""What MONITOR, and what else tells of others' work, shows to who may not read everything.

Calls of all commands are made from COMMAND DOCS: each argument that may be the name of a table, of what stands for tables,
or a pattern of names is one that the watcher may know or one that it may not. A line with one of the latter must never
reach the watcher; a call that names only the former, and that it may therefore see, must.
"""

import os
import random
import re
import time
import unittest

import redis

from cellar_server import CellarServer, CellarTest, not_on_a_follower

CALLS = int(os.environ.get("CELLAR_MONITORED_CALLS", 4000))
# Names of arguments that stand for tables in one way or another; all others are values.
NAMING = re.compile("table|feed|snapshot|pattern|prefix|^name$|channel|^key$|^arg|command$")
# In a command about one table patterns and prefixes are of what is in it.
NAMING_BESIDE_TABLE = re.compile("table|feed|snapshot|^key$")
# They would end the test, its server, or the connection.
LEFT_OUT = {"shutdown", "monitor", "quit", "reset", "auth", "hello", "sync", "psync", "debug", "failover", "replicaof", "slaveof",
            "subscribe", "psubscribe", "ssubscribe", "client|kill", "client|pause", "client|reply", "flushall", "flushdb",
            "keyspace|drop", "peer", "config|set", "acl|setuser", "acl|deluser", "acl|load", "select", "multi", "exec",
            "acl|save", "waitaof", "wait", "backup|start", "hotkeys|start", "table|drop", "del", "unlink", "rename", "renamenx",
            "table|rename", "feed|drop", "snapshot|drop", "client|no-evict", "swapdb", "save", "bgsave", "bgrewriteaof"}
OPEN, HIDDEN = "open", "secret"


class Generator:
    """Words of calls, from the arguments' tree of COMMAND DOCS."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.naming = NAMING

    def name(self, argument):
        """A word where a name stands: of something that may be known, or that may not."""
        word = HIDDEN if self.random.random() < 0.4 else OPEN
        shapes = ["{}", "{}", "{}", "{}2", "0/{}"]
        if not re.search("table|feed|snapshot", argument["name"]):
            shapes += ["{}*", "__keyspace@0__:{}"]
        return self.random.choice(shapes).format(word)

    def value(self, argument):
        kind = argument.get("type")
        if kind in ("integer", "double", "unix-time"):
            return str(self.random.randrange(3))
        return self.random.choice(["1", "r", "f:a", "0", "10s", "-", "+"])

    def call(self, first, arguments):
        """The words of a command."""
        of_table = first[0] == "feed" or any(argument["name"] == "table" for argument in arguments)
        self.naming = NAMING_BESIDE_TABLE if of_table else NAMING
        return first + self.words(arguments)

    def words(self, arguments):
        words = []
        for argument in arguments:
            flags = argument.get("flags", [])
            if "optional" in flags and self.random.random() < 0.5:
                continue
            for _ in range(self.random.choice([1, 1, 2]) if "multiple" in flags else 1):
                words += self.one(argument)
        return words

    def one(self, argument):
        words = [argument["token"]] if argument.get("token") else []
        kind = argument["type"]
        if kind == "pure-token":
            return words
        if kind == "oneof":
            return words + self.one(self.random.choice(argument["arguments"]))
        if kind == "block":
            return words + self.words(argument["arguments"])
        return words + [self.name(argument) if self.naming.search(argument["name"]) else self.value(argument)]


def pairs(reply):
    """A map of RESP2."""
    return dict(zip((key.decode() for key in reply[::2]), reply[1::2]))


def argument_of(reply):
    """An argument of COMMAND DOCS as a dictionary of text."""
    one = pairs(reply)
    for key, value in one.items():
        if key == "arguments":
            one[key] = [argument_of(each) for each in value]
        else:
            one[key] = [each.decode() for each in value] if isinstance(value, list) else value
            one[key] = value.decode() if isinstance(value, bytes) else one[key]
    return one


def commands_of(client):
    """Full name ("client|list"), first words, arguments."""
    connection = client.connection_pool.get_connection("COMMAND")  # whose replies nobody takes apart
    connection.send_command("COMMAND", "DOCS")
    docs = pairs(connection.read_response())
    connection.disconnect()
    for name, doc in list(docs.items()):
        doc = pairs(doc)
        if "subcommands" in doc:
            docs.update(pairs(doc["subcommands"]))
            del docs[name]
    for name, doc in docs.items():
        yield name, name.split("|"), [argument_of(each) for each in pairs(doc).get("arguments", [])]


class Watcher:
    """A connection in MONITOR; what it has seen since it was asked last."""

    def __init__(self, server, **user):
        self.client = server.client(**user)
        self.connection = self.client.connection_pool.get_connection("MONITOR")
        self.connection.send_command("MONITOR")
        assert self.connection.read_response() == b"OK"
        self.mark = 0

    def lines(self, other):
        """All up to a mark, which it is shown too."""
        self.mark += 1
        mark = f"until {self.mark}"
        other.execute_command("ECHO", mark)
        seen = []
        while True:
            line = self.connection.read_response().decode("latin-1")
            if mark in line:
                return seen
            seen.append(line)


class MonitorTest(CellarTest):
    OPTIONS = {"save": ""}

    def setUp(self):
        super().setUp()
        for user in (OPEN, HIDDEN):
            self.redis.execute_command("TABLE", "CREATE", user, "FAMILY", "f")
            self.redis.execute_command("TABLE", "CREATE", user + "2", "FAMILY", "f")
        self.redis.execute_command("ACL", "SETUSER", "watcher", "on", "nopass", "+@all", f"~{OPEN}*", "resetchannels",
                                   f"&{OPEN}*", f"&__keyspace@0__:{OPEN}*")

    def watch(self):
        return Watcher(self.server, username="watcher", password="x"), Watcher(self.server)

    def test_no_line_names_a_table_that_may_not_be_read(self):
        seed = int(os.environ.get("CELLAR_SEED", time.time()))
        generator = Generator(seed)
        restricted, all_seeing = self.watch()
        commands = [one for one in commands_of(self.redis) if one[0] not in LEFT_OUT]
        self.assertGreater(len(commands), 100)
        raw = self.server.client(socket_timeout=60)
        called = set()
        shown = 0
        for step in range(CALLS):
            full, first, arguments = commands[step % len(commands)]
            words = generator.call(first, arguments)
            if any(word.upper() == "BLOCK" for word in words):
                continue
            try:
                raw.execute_command(*words)
            except (redis.RedisError, ValueError, KeyError, TypeError, IndexError, AttributeError):
                pass
            called.add(full)
            if step % 50 < 49:
                continue
            seen = restricted.lines(self.redis)
            shown += len(seen)
            for line in seen:
                self.assertNotIn(HIDDEN, line, f"seed {seed}")
            everything = all_seeing.lines(self.redis)
            self.assertGreaterEqual(len(everything), len(seen))
        self.assertEqual(len(commands), len(called))
        self.assertGreater(shown, CALLS / 20)

    @not_on_a_follower("MONITOR of the leader shows what it carries out")
    def test_named_things(self):
        """What stands for tables, and is no key."""
        self.redis.execute_command("FEED", "CREATE", "of-open", "ON", "1", OPEN)
        self.redis.execute_command("FEED", "CREATE", "of-both", "ON", "2", OPEN, HIDDEN)
        self.redis.execute_command("SNAPSHOT", "CREATE", "snap-open", "TABLE", "1", OPEN)
        self.redis.execute_command("SNAPSHOT", "CREATE", "snap-both", "TABLE", "2", OPEN, HIDDEN)
        restricted, _ = self.watch()
        raw = self.server.client()
        calls = [
            (True, f"CPUT {OPEN} r f:a 1"), (False, f"CPUT {HIDDEN} r f:a 1"), (True, f"CGET {OPEN}@snap-open r f:a"),
            (True, f"FEED CREATE x ON 1 {OPEN}"), (False, f"FEED CREATE y ON 2 {OPEN} {HIDDEN}"),
            (False, f"FEED CREATE z ON 1 {HIDDEN}:f"), (False, "FEED CREATE all ON 0"), (False, f"FEED CREATE w ON 9 {OPEN}"),
            (True, f"FEED CREATE v TABLE 1 {OPEN}"), (False, f"FEED CREATE u TABLE 1 {HIDDEN}"),
            (True, "XREAD STREAMS of-open 0"), (False, "XREAD STREAMS of-both 0"), (False, "XREAD STREAMS of-open of-both 0 0"),
            (False, f"XREAD STREAMS {HIDDEN} 0"), (False, f"XREAD STREAMS of-open {HIDDEN} 0"), (True, "XLEN of-open"),
            (False, "XLEN of-both"), (False, "FEED INFO of-both"), (True, "XRANGE of-open - +"), (False, "FEED INFO nosuch"),
            (True, f"SNAPSHOT CREATE a TABLE 1 {OPEN}"), (False, f"SNAPSHOT CREATE b TABLE 2 {OPEN} {HIDDEN}"),
            (True, f"SNAPSHOT CREATE c ON 1 {OPEN}"), (False, f"SNAPSHOT CREATE d ON 1 {HIDDEN}"), (False, "SNAPSHOT CREATE all"),
            (True, "SNAPSHOT INFO snap-open"), (False, "SNAPSHOT INFO snap-both"), (False, "SNAPSHOT DROP snap-both"),
            (True, "SNAPSHOT DROP snap-open"), (True, f"COPY {OPEN} {OPEN}9"), (False, f"COPY {OPEN} {HIDDEN}9"),
            (False, f"COPY {HIDDEN} {OPEN}8"), (False, f"COPY {OPEN} t9 DB {HIDDEN}"), (False, f"RENAME {OPEN}9 {HIDDEN}7"),
            (False, f"SCAN 0 MATCH {HIDDEN}*"), (True, "SCAN 0"), (False, f"KEYS {HIDDEN}*"), (False, f"TABLE LIST MATCH {HIDDEN}"),
            (True, "TABLE LIST"), (False, f"CLIENT TRACKING ON BCAST PREFIX {HIDDEN}"), (True, "CLIENT TRACKING OFF"),
            (False, f"PUBLISH __keyspace@0__:{HIDDEN} x"), (True, f"PUBLISH {OPEN}-channel x"), (False, f"PUBSUB CHANNELS {HIDDEN}*"),
            (False, f"COMMAND GETKEYS CGET {HIDDEN} r f:a"), (True, "PING"), (True, "SELECT 0"), (False, f"DEL {OPEN}9 {HIDDEN}9"),
            (True, f"EXISTS {OPEN}"), (False, f"EXISTS {OPEN} {HIDDEN}"), (False, f"EXPLAIN CGET {HIDDEN} r f:a"),
        ]
        for is_shown, words in calls:
            if words.startswith("CLIENT TRACKING OFF"):
                continue  # its syntax also takes prefixes: hidden, which nobody minds
            try:
                raw.execute_command(*words.split())
            except (redis.RedisError, ValueError, KeyError, TypeError, IndexError, AttributeError):
                pass
            seen = restricted.lines(self.redis)
            self.assertEqual(is_shown, bool(seen), (words, seen))

    @not_on_a_follower("MONITOR of the leader shows what it carries out")
    def test_transactions_are_looked_at_by_command(self):
        restricted, _ = self.watch()
        with self.redis.pipeline(transaction=True) as pipe:
            pipe.execute_command("CPUT", OPEN, "r", "f:a", "1")
            pipe.execute_command("CPUT", HIDDEN, "r", "f:a", "1")
            pipe.execute_command("SNAPSHOT", "CREATE", "s", "TABLE", "1", HIDDEN)
            pipe.execute()
        seen = "\n".join(restricted.lines(self.redis))
        self.assertIn(OPEN, seen)
        self.assertNotIn(HIDDEN, seen)

    def test_figures_do_not_move_with_what_is_hidden(self):
        """Of one table with a hidden family, and of hidden tables beside it."""
        server = CellarServer(save="")
        self.addCleanup(server.close)
        owner = server.start().client()
        owner.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "hid")
        owner.execute_command("TABLE", "CREATE", "h", "FAMILY", "f")
        owner.execute_command("FEED", "CREATE", "feed", "ON", "1", "t:f")
        owner.execute_command("ACL", "SETUSER", "u", "on", "nopass", "+@all", "-@dangerous", "~t:f")
        owner.execute_command("CPUT", "t", "r", "f:a", "1")
        user = server.client(username="u", password="x")

        def figures():
            all_of = []
            for words in ("FEED INFO feed", "FAMILY INFO t f", "TABLE INFO t", "MEMORY USAGE t", "XLEN feed", "XINFO STREAM feed"):
                try:
                    reply = user.execute_command(*words.split())
                except redis.ResponseError as error:
                    reply = str(error)
                all_of.append((words, reply))
            return all_of

        owner.execute_command("WAITAOF", "1", "0", "0")
        before = figures()
        for i in range(2000):
            owner.execute_command("CPUT", "t", "r", f"hid:{i}", "x" * 50)
            owner.execute_command("CPUT", "h", f"r{i}", "f:a", "x" * 50)
        owner.execute_command("WAITAOF", "1", "0", "0")
        after = figures()
        for one, other in zip(before, after):
            self.assertEqual(one, other)


if __name__ == "__main__":
    unittest.main()
