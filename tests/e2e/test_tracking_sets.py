"""CLIENT TRACKING in a cluster of several sets: a client at any node hears of what any set changes."""

import os
import random
import sys
import threading
import time

import redis

from cellar_server import ROOT
from cluster_sets import pairs
from move_load import LoadCase

sys.path.insert(0, os.path.join(ROOT, "tests"))

from model import resp  # noqa: E402

ROUNDS = int(os.environ.get("CELLAR_TRACKING_ROUNDS", "6"))
ROWS = [f"{letter}{number}" for letter in "aejnrvz" for number in range(3)]


class Reader:
    """A client that keeps what it reads until it is told, as a library with a cache does."""

    def __init__(self, member, *options):
        self.member = member
        self.client = resp.Client(member.port, 3, timeout=60)
        self.cache, self.told, self.hits, self.reads = {}, [], 0, 0
        self.bcast, self.optin = "BCAST" in options, "OPTIN" in options
        assert self.ask("CLIENT", "TRACKING", "ON", *options) == resp.OK

    def take(self):
        """The next reply; what is told before it is heeded."""
        while True:
            reply = self.client.read()
            if not isinstance(reply, resp.Push):
                return reply
            assert reply[0] == b"invalidate", reply
            names = None if reply[1] is None else [name.decode() for name in reply[1]]
            self.told.append(names)
            if names is None or "t" in names:
                self.cache.clear()
            for name in names or ():
                self.cache.pop(name.partition(":")[2], None)

    def ask(self, *words):
        self.client.send(*words)
        return self.take()

    def heard(self):
        """What it was told since the last call."""
        self.ask("PING")
        told, self.told = self.told, []
        return told

    def look(self, rows):
        """Reads what it does not keep, all in one go."""
        missing = [row for row in rows if row not in self.cache]
        self.hits += len(rows) - len(missing)
        self.reads += len(missing)
        for row in missing:
            if self.optin:
                self.client.send("CLIENT", "CACHING", "YES")
            self.client.send("CGET", "t", row, "f:x")
        for row in missing:
            if self.optin:
                self.take()
            reply = self.take()
            if not isinstance(reply, resp.Error):
                self.cache[row] = None if reply is None else reply.decode()

    def close(self):
        self.client.close()


class TrackingSets(LoadCase):
    def start(self, sets=3, voters=1):
        self.cluster(sets, voters, tracking_names="row")
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f", "VERSIONS", 1)
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")

    def reader(self, member, *options):
        reader = Reader(member, *options)
        self.addCleanup(reader.close)
        return reader

    def settled(self, *options, member=None):
        """A reader that keeps rows of all sets: it is told of nothing behind them."""
        reader = self.reader(member or self.any(), *options)

        def keeps():
            reader.cache.clear()
            reader.look(ROWS)
            return not reader.heard()
        self.wait_until(keeps, lambda: f"{reader.member.address} knows of no other sets")
        return reader

    def hears(self, reader, what):
        """It is told exactly that, sooner or later, and nothing else."""
        got = []

        def all_there():
            got.extend(reader.heard())
            return len(got) >= len(what)
        self.wait_until(all_there, lambda: f"{got}, not {what}")
        self.assertEqual(what, got)

    def test_rows_of_all_sets(self):
        self.start()
        for member in self.everyone:
            for options in ((), ("OPTIN",), ("NOLOOP",)):
                reader = self.settled(*options, member=member)
                for row in ROWS:
                    self.any().run("CPUT", "t", row + "-other", "f:x", "1")
                    self.any().run("CPUT", "t", row, "f:x", "1")
                    self.hears(reader, [[f"t:{row}"]])
                    self.any().run("CPUT", "t", row, "f:x", "2")
                for row in ROWS:  # it has read none of them since
                    self.any().run("CDEL", "t", row)
                reader.look(ROWS)
                self.any().run("CDELRANGE", "t", "RANGE", "[" + ROWS[5], "[" + ROWS[5])
                for row in reversed(ROWS):
                    self.any().run("CPUT", "t", row, "f:x", "3")
                    self.hears(reader, [[f"t:{row}"]])
                reader.close()

    def test_what_it_changes_itself(self):
        self.start()
        reader = self.settled()
        for row in ROWS:
            reader.ask("CPUT", "t", row, "f:x", "1")
            self.hears(reader, [[f"t:{row}"]])
        reader.look(ROWS)
        for row in ROWS:
            reader.ask("MULTI")
            reader.ask("CPUT", "t", row, "f:x", "2")
            reader.ask("CPUT", "t", row, "f:y", "2")
            reader.ask("EXEC")
            self.hears(reader, [[f"t:{row}"]])

    def test_scans(self):
        self.start()
        for words in (["CSCAN", "t", 0], ["CCOUNT", "t"], ["CAGG", "t", "REDUCE", "COUNT", "f:x"],
                      ["CROWS", "t", 3, "a0", "j0", "z0"], ["CNEAR", "t", "m"], ["TABLE", "INFO", "t"]):
            reader = self.settled()
            for row in ("a0", "j0", "z0"):
                reader.ask(*words)
                self.assertEqual([], reader.heard(), words)
                self.any().run("CPUT", "t", row + "-new", "f:x", "1")
                self.hears(reader, [["t"]])
            # What is read of a snapshot does not change.
            reader.close()
        self.any().run("SNAPSHOT CREATE s")
        reader = self.settled()
        reader.cache.clear()
        reader.ask("CSCAN", "t@s", 0)
        reader.ask("CGET", "t@s", "z0", "f:x")
        self.any().run("CPUT", "t", "zz", "f:x", "2")
        self.any().run("CPUT", "t", "z0", "f:x", "2")
        self.hears(reader, [["t:z0"]])

    def test_without_caching_yes(self):
        self.start()
        reader = self.settled("OPTIN")
        for row in ROWS:
            self.any().run("CPUT", "t", row, "f:x", "1")
            self.hears(reader, [[f"t:{row}"]])
        for row in ROWS:
            reader.ask("CLIENT", "CACHING", "YES")
            reader.ask("CGET", "t", "e0", "f:x")  # it is for this one alone
            reader.ask("CGET", "t", row, "f:x")
        for row in ROWS:
            self.any().run("CPUT", "t", row, "f:x", "2")
        self.hears(reader, [["t:e0"]])

    def test_prefixes(self):
        self.start()
        for member in self.everyone:
            reader = self.reader(member, "BCAST", "PREFIX", "t:a", "PREFIX", "t:z", "PREFIX", "u")
            other = self.reader(member, "BCAST", "PREFIX", "v")

            def hears(reader=reader):
                self.any().run("CPUT", "t", "a-first", "f:x", "1")
                self.any().run("CPUT", "t", "z-first", "f:x", "1")
                told = [name for names in reader.heard() for name in names or ()]
                return {"t:a-first", "t:z-first"} <= set(told)
            self.wait_until(hears, lambda: "no other set tells")
            # It reads of all sets meanwhile, and is told of nothing for that.
            reader.look(ROWS)
            while reader.heard() or other.heard():
                pass
            for row in ROWS:
                self.any().run("CPUT", "t", row, "f:x", "1")
            self.hears(reader, [[f"t:{row}"] for row in ROWS if row[0] == "a"] + [[f"t:{row}"] for row in ROWS if row[0] == "z"])
            self.assertEqual([], other.heard())
            reader.close()
            other.close()

    def test_a_transaction(self):
        """What it reads is not followed; what it changes is one message for a prefix."""
        self.start()
        reader = self.settled()
        for row in ("a0", "j0", "z0"):
            reader.ask("MULTI")
            reader.ask("CGET", "t", row, "f:x")
            reader.ask("EXEC")
        self.assertLessEqual({str(names) for names in reader.heard()}, {"None"})
        wide = self.reader(self.sets[0][0], "BCAST", "PREFIX", "t:")

        def hears():
            self.any().run("CPUT", "t", "z9", "f:x", "1")
            return wide.heard()
        self.wait_until(hears, lambda: "no other set tells")
        while wide.heard():
            pass
        for row in ("a0", "j0", "z0"):
            pipe = self.any().redis.pipeline(transaction=True)
            for each in (row, row + "-b", row + "-c"):
                pipe.execute_command("CPUT", "t", each, "f:x", "5")
            pipe.execute()
            told = []

            def all_there(row=row, told=told):
                told.extend(name for names in wide.heard() for name in names)
                return {f"t:{row}", f"t:{row}-b", f"t:{row}-c"} <= set(told)
            self.wait_until(all_there, lambda told=told: str(told))

    def test_a_set_that_is_lost(self):
        """Then nobody knows what it changes: whoever may keep something of other sets is told everything."""
        self.start()
        reader = self.settled(member=self.sets[0][0])
        gone = self.sets[2][0]
        gone.server.kill()
        self.hears(reader, [None])
        mine = [row for row in ROWS if self.owner(row) != 2]
        reader.look(mine)  # while a set is away nothing is kept
        self.assertLessEqual({str(names) for names in reader.heard()}, {"None"})
        gone.server.start()
        gone.connect()

        def keeps():
            reader.cache.clear()
            reader.look(ROWS)
            return not reader.heard() and len(reader.cache) == len(ROWS)
        self.wait_until(keeps, lambda: "it is not asked again")
        for row in ROWS:
            self.wait_until(lambda row=row: self.any().refusal("CPUT", "t", row, "f:x", "1").startswith("no error"), "it does not write")
        self.wait_until(lambda: not reader.cache or all(value == "1" for value in reader.cache.values()) or reader.heard() is None,
                        lambda: f"{reader.cache}")

    def owner(self, row):
        return int(pairs(self.sets[0][0].run("TABLET", "ROUTE", "t", row))["set"])

    def test_changes_of_the_schema(self):
        """What set 0 decides every node tells, whichever set is its own."""
        self.start()
        self.any().run("TABLE CREATE u SPLIT AT 1 m FAMILY f")
        for member in self.everyone:
            reader = self.settled(member=member)
            for words, table in ((["FAMILY", "ADD", "t", f"g{member.port}"], "t"), (["INDEX", "CREATE", "t", f"i{member.port}", "ON", 1, "f:y"], "t"),
                                 (["TABLE", "TRUNCATE", "t"], "t"), (["RENAME", "u", "t2"], "u"), (["RENAME", "t2", "u"], "t2")):
                reader.look(ROWS)
                reader.ask("CSCAN", table, 0)
                while reader.heard():
                    pass
                reader.look(ROWS)
                reader.ask("CSCAN", table, 0)
                self.any().run(*words)
                told = []

                def is_told(reader=reader, told=told, table=table):
                    told.extend(name for names in reader.heard() for name in names or ("everything",))
                    return table in told or "everything" in told
                self.wait_until(is_told, lambda words=words, told=told: f"{words}: {told}")
            reader.look(ROWS)
            self.any().run("FLUSHALL")
            self.wait_until(lambda reader=reader: None in reader.heard(), "FLUSHALL is not told")
            self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f", "VERSIONS", 1)
            self.any().run("TABLE CREATE u SPLIT AT 1 m FAMILY f")
            reader.close()

    def test_messages_to_another_connection(self):
        self.start()
        member = self.sets[0][0]
        self.settled(member=member)
        listener = redis.Redis(port=member.port, decode_responses=True).pubsub()
        listener.subscribe("__redis__:invalidate")
        self.assertEqual("subscribe", listener.get_message(timeout=60)["type"])
        number = next(each["id"] for each in member.redis.client_list() if each["sub"] == "1")
        client = redis.Redis(port=member.port, decode_responses=True, single_connection_client=True)
        client.execute_command("CLIENT", "TRACKING", "ON", "REDIRECT", number)
        for row in ROWS:
            client.execute_command("CGET", "t", row, "f:x")
            self.any().run("CPUT", "t", row, "f:x", "1")
            self.assertEqual([f"t:{row}"], listener.get_message(timeout=60)["data"])

    def test_who_leaves_in_between(self):
        """A planned failover and nodes that end are no error to those who write and keep; all that waits goes when nobody tracks."""
        self.start(2, 3)
        entry = self.sets[0][0]
        reader = self.settled(member=entry)
        stop, errors = threading.Event(), []

        def write():
            client = redis.Redis(port=self.sets[0][1].port, socket_timeout=60)
            while not stop.is_set():
                try:
                    client.execute_command("CPUT", "t", random.choice(ROWS), "f:x", "1")
                except redis.RedisError as error:
                    errors.append(str(error))
        writer = self.beside(write)
        for _ in range(3):
            leader = self.wait_leader(self.sets[1])
            leader.run("FAILOVER")
            self.wait_until(lambda leader=leader: self.wait_leader(self.sets[1]) is not leader, "nobody else leads")
        stop.set()
        writer.join()
        self.assertEqual([], errors[:3])
        self.check_caches([reader], (), False)
        self.wait_until(lambda: entry.info("cluster")["cluster_calls_waiting"] > 0, "it asks the other set no more")
        reader.ask("CLIENT", "TRACKING", "OFF")
        for member in self.everyone:
            self.wait_until(lambda member=member: member.info("cluster")["cluster_calls_waiting"] == 0, "calls wait for nobody")

    def test_after_long_silence(self):
        """Nobody has asked for what changes for a while, and much has changed: nothing of it is taken for known."""
        self.start()
        reader = self.settled()
        reader.ask("CLIENT", "TRACKING", "OFF")
        pipe = self.sets[0][0].redis.pipeline(transaction=False)
        for number in range(30_000):
            pipe.execute_command("CPUT", "t", f"{'agmsz'[number % 5]}{number}", "f:x", "v")
        pipe.execute()
        reader.ask("CLIENT", "TRACKING", "ON")

        def keeps():
            reader.cache.clear()
            reader.look(ROWS)
            return not reader.heard()
        self.wait_until(keeps, lambda: "it is not asked again")
        for row in ROWS:
            self.any().run("CPUT", "t", row, "f:x", "new")
            self.hears(reader, [[f"t:{row}"]])

    def caches(self, options, rounds, beside, faults=False):
        """Clients that write and clients that keep what they read: when nobody writes any more, all know what there is."""
        rng = random.Random(f"{self.seed}/{options}")
        readers = [self.reader(member, *options) for member in self.everyone for _ in range(2)]
        for each in range(rounds):
            stop = threading.Event()

            def write(number):
                client = redis.Redis(port=random.choice(self.everyone).port, decode_responses=True, socket_timeout=30)
                own = random.Random(f"{self.seed}/{options}/{each}/{number}")
                while not stop.is_set():
                    try:
                        words = [["CPUT", "t", own.choice(ROWS), "f:x", str(own.randrange(1 << 30))], ["CDEL", "t", own.choice(ROWS)]]
                        client.execute_command(*own.choices(words, [9, 1])[0])
                    except redis.RedisError:
                        if not faults:
                            raise
                        client = redis.Redis(port=own.choice(self.everyone).port, decode_responses=True, socket_timeout=30)

            def read(reader):
                own = random.Random(f"{self.seed}/{id(reader)}/{each}")
                while not stop.is_set():
                    try:
                        reader.look(own.sample(ROWS, own.randrange(1, 6)))
                    except (OSError, EOFError):
                        if not faults:
                            raise
                        return

            threads = [self.beside(lambda number=number: write(number)) for number in range(2)]
            threads += [self.beside(lambda reader=reader: read(reader)) for reader in readers]
            beside(rng)
            stop.set()
            for thread in threads:
                thread.join()
            readers = self.check_caches(readers, options, faults)
        print(f"seed {self.seed} {options}: {sum(reader.hits for reader in readers)} of "
              f"{sum(reader.hits + reader.reads for reader in readers)} looks were kept rows")

    def check_caches(self, readers, options, faults):
        truth = {}

        def knows():
            client = redis.Redis(port=self.any().port, decode_responses=True, socket_timeout=30)
            try:
                truth.update({row: client.execute_command("CGET", "t", row, "f:x") for row in ROWS})
                return True
            except redis.RedisError:
                return False
        self.wait_until(knows, "the rows cannot be read")
        alive = []
        for reader in readers:
            try:
                self.wait_until(lambda reader=reader: reader.heard() is not None and
                                all(truth[row] == value for row, value in reader.cache.items()),
                                lambda reader=reader: f"seed {self.seed} {options} {reader.member.address}: " + str(
                                    {row: (value, truth[row]) for row, value in reader.cache.items() if truth[row] != value}))
                alive.append(reader)
            except (OSError, EOFError):
                if not faults:
                    raise
                reader.close()
                alive.append(self.reader(reader.member, *options))
        return alive

    def test_caches_beside_moves(self):
        self.start()
        for options in ((), ("OPTIN",), ("BCAST",), ("BCAST", "PREFIX", "t:a", "PREFIX", "t:e", "PREFIX", "t:j", "PREFIX", "t:n", "PREFIX", "t:r",
                                                      "PREFIX", "t:v", "PREFIX", "t:z")):
            self.caches(options, ROUNDS, lambda rng: [self.random_move(rng) for _ in range(3)])

    def test_caches_beside_kills(self):
        self.start(2, 3)

        def beside(rng):
            time.sleep(0.3)  # caches fill
            self.restart(self.wait_leader(rng.choice(self.sets)))
            self.random_move(rng)
        for options in ((), ("BCAST",)):
            self.caches(options, ROUNDS // 2, beside, faults=True)
