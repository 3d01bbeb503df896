"""A cluster of several sets: how they join it, one schema everywhere, rows that any node reaches."""

import itertools
import os
import random
import signal
import socket
import sys
import threading
import time
import unittest

import redis

from cellar_server import ROOT, free_port
from cluster_sets import SetsCase, pairs

sys.path.insert(0, os.path.join(ROOT, "tests"))

from model import resp  # noqa: E402

ROUNDS = int(os.environ.get("CELLAR_SETS_ROUNDS", "6"))
SEED = int(os.environ.get("CELLAR_SETS_SEED", "0"))


class Joining(SetsCase):
    def test_a_set_asks_and_is_admitted(self):
        first = self.new_set()
        director = first[0]
        self.assertIn("cluster support disabled", director.refusal("CLUSTER ADMIT 127.0.0.1:1"))
        director.run("CLUSTER INIT")
        second = self.new_set(join=first)[0]
        self.assertIn("no set at '127.0.0.1:1' has asked", director.refusal("CLUSTER ADMIT 127.0.0.1:1"))
        self.wait_until(lambda: len(self.told_sets(director)) == 2, director.server.log)
        waiting = self.told_sets(director)[1]
        self.assertEqual((None, "waiting", f"127.0.0.1:{second.port}"),
                         (waiting["set"], waiting["state"], waiting["leader"]))
        # It has no tables, and is to have none of its own.
        for words in ("CGET t r f:x", "CPUT t r f:x 1", "CSCAN t 0", "TABLE CREATE t FAMILY f", "TABLE INFO t", "DEL t", "WATCH t",
                      "CAGG t REDUCE ROWS *", "CROWS t 1 r", "INDEX CREATE t i ON 1 f:x", "COPY t u"):
            self.assertIn(f"CLUSTERDOWN set at 127.0.0.1:{second.port} waits for CLUSTER ADMIT", second.refusal(words), words)
        self.assertEqual("PONG", str(second.run("PING")).replace("True", "PONG"))
        self.assertEqual("master", second.run("ROLE")[0])
        self.assertEqual([], second.run("KEYS *"))
        pipeline = second.redis.pipeline(transaction=True)
        pipeline.execute_command("CPUT t r f:x 1")
        with self.assertRaises(redis.RedisError):
            pipeline.execute()
        self.assertEqual("OK", director.run("CLUSTER", "ADMIT", waiting["id"]))
        self.wait_until(lambda: self.sees(second, 2), second.server.log)
        self.assertEqual([0, 1], [each["set"] for each in self.told_sets(second)])
        self.assertIn("no set at", director.refusal("CLUSTER", "ADMIT", waiting["id"]))
        self.assertIn("is set 1", str(director.run("CLUSTER EVENTS COUNT 1")))
        self.assertEqual([], director.run("CLUSTER MAP CHECK"))
        self.assertIn("the cluster has 2 sets", director.refusal("CLUSTER END"))
        self.assertEqual("OK", second.run("TABLE CREATE t FAMILY f"))
        self.assertEqual("OK", second.run("CPUT t r f:x 1"))

    def test_a_set_with_tables_is_refused_by_their_names(self):
        first = self.new_set()
        first[0].run("CLUSTER INIT")
        members = self.new_set()
        second = members[0]
        second.run("TABLE CREATE mine FAMILY f")
        second.run("CPUT mine r f:x 1")
        second.server.options["cluster-join"] = f"127.0.0.1:{first[0].port}"
        self.restart(second)
        self.wait_leader(members)
        name = f"127.0.0.1:{second.port}"
        self.wait_until(lambda: "0/mine" in first[0].refusal("CLUSTER", "ADMIT", name),
                        lambda: first[0].refusal("CLUSTER", "ADMIT", name))
        self.assertEqual("1", second.run("CGET mine r f:x"))
        second.run("DEL mine")
        self.wait_until(lambda: "tables that were dropped" in first[0].refusal("CLUSTER", "ADMIT", name),
                        lambda: first[0].refusal("CLUSTER", "ADMIT", name))

    def test_a_set_that_finds_no_cluster_says_so_in_its_log(self):
        lone = self.new_set()[0]
        nobody = free_port()
        ways = {f"127.0.0.1:{lone.port}": "it is not the director", f"127.0.0.1:{nobody}": "connection refused"}
        for where, why in ways.items():
            members = self.new_set()
            members[0].server.options["cluster-join"] = where
            self.restart(members[0])
            self.wait_until(lambda told=members[0], said=f"cluster-join: no cluster is found: {where}: {why}": said in told.server.log(),
                            lambda told=members[0]: told.server.log()[-1500:])

    def test_of_a_table_of_another_set_no_figures_are_told(self):
        self.cluster(2)
        first, second = self.everyone
        first.run("TABLE CREATE a FAMILY f")
        first.run("TABLE CREATE b FAMILY f")
        first.run("CPUT a r f:x 1")
        first.run("CPUT b r f:x 1")
        for member, own in ((first, 0), (second, 1)):
            for flat in member.run("TABLET LIST")[1]:
                tablet = pairs(flat)
                self.assertEqual(tablet["set"] == own, tablet["rows"] is not None, tablet)
                self.assertEqual(tablet["set"] == own, tablet["bytes"] is not None, tablet)
                if tablet["set"] == own and tablet["table"] in ("0/a", "0/b"):
                    self.assertEqual(1, tablet["rows"])

    def test_what_there_is_comes_to_a_set_that_joins(self):
        first = self.new_set()
        director = first[0]
        for command in ("TABLE CREATE old KEY a=u64/b=utf8 FAMILY f VERSIONS 3", "CPUT old 5/x f:q 1", "CLUSTER INIT",
                        "KEYSPACE CREATE more", "TABLE CREATE more/t FAMILY f TYPE i64", "INDEX CREATE old i ON 1 f:q",
                        "TABLE CREATE gone FAMILY f", "DEL gone", "FAMILY ADD old g"):
            director.run(*command.split())
        self.sets = [first, self.new_set(join=first)]
        self.everyone = sum(self.sets, [])
        self.admit(1)
        second = self.sets[1][0]
        self.assertEqual(self.catalog(director), self.catalog(second))
        self.assertEqual("1", second.run("CGET old 5/x f:q"))
        second.run("SELECT", "more")
        self.assertEqual("OK", second.run("CPUT t r f:x 7"))
        self.assertEqual(7, director.run("CGET more/t r f:x"))

    def test_who_asks_is_taken_in_at_once_where_that_is_said(self):
        first = self.new_set()
        first[0].run("CLUSTER INIT")
        first[0].run("CONFIG SET cluster-admit yes")
        first[0].run("TABLE CREATE t FAMILY f")
        second = self.new_set(join=first)[0]
        third = self.new_set(join=[second])[0]  # a node that directs nothing says who does
        for member in (first[0], second, third):
            self.wait_until(lambda member=member: self.sees(member, 3), member.server.log)
        self.assertEqual(["t"], third.run("KEYS *"))
        self.assertIn("cluster-admit yes", str(first[0].run("CLUSTER EVENTS COUNT 1")))


class Schemas(SetsCase):
    def test_followers_know_of_a_change_that_is_told(self):
        self.cluster(2, voters=3)
        for number in range(20):
            self.any().run("TABLE", "CREATE", f"t{number}", "FAMILY", "f")
            for member in self.everyone:
                self.assertIn(f"t{number}", member.run("KEYS *"))
                self.assertEqual("no error: OK", member.refusal("CPUT", f"t{number}", "r", "f:x", "1"))

    def test_a_change_is_everywhere_when_it_is_told(self):
        self.cluster(3)
        seed = SEED or random.randrange(1 << 30)
        rng = random.Random(seed)
        print(f"\nseed {seed}")
        tables = []
        for number in range(60):
            kind = rng.choice(("create", "create", "add", "drop", "rename", "index", "alter"))
            if kind == "create" or not tables:
                name = f"t{number}"
                words = f"TABLE CREATE {name} FAMILY f FAMILY g"
                tables.append(name)
            elif kind == "add":
                words = f"FAMILY ADD {rng.choice(tables)} h{number}"
            elif kind == "drop":
                words = f"DEL {tables.pop(rng.randrange(len(tables)))}"
            elif kind == "rename":
                old = tables.pop(rng.randrange(len(tables)))
                tables.append(f"r{number}")
                words = f"RENAME {old} r{number}"
            elif kind == "index":
                words = f"INDEX CREATE {rng.choice(tables)} i{number} ON 1 f:q"
            else:
                words = f"FAMILY ALTER {rng.choice(tables)} g COMPRESS {rng.choice(('zstd', 'lz4', 'none'))}"
            self.any(rng).run(*words.split())
            told = [self.catalog(member) for member in self.everyone]
            self.assertEqual([told[0]] * 3, told, (seed, words))
            self.assertEqual(sorted(tables), sorted(name for name, _ in told[0]))
        for member in self.everyone:
            self.assertEqual([], member.run("CLUSTER MAP CHECK"))

    def test_what_rows_of_others_would_be_looked_at_for_is_refused(self):
        self.cluster(2)
        self.any().run("TABLE CREATE t KEY utf8/u64 SPLIT AT 1 m FAMILY f VERSIONS 1")
        self.any().run("TABLE CREATE w KEY utf8/u64 WHOLE FAMILY f")
        for row in ("a/1", "z/1"):
            for value in "123":
                self.any().run("CPUT", "t", row, "f:x", value)
        before = [self.catalog(member) for member in self.everyone]
        for words in ("TABLE ALTER t WHOLE", "TABLE ALTER t COLOCATE 1"):
            for member in self.everyone:
                self.assertIn("table 't' has rows on other sets", member.refusal(*words.split()), words)
        self.assertEqual(before, [self.catalog(member) for member in self.everyone])
        self.assertEqual("OK", self.any().run("INDEX CREATE w u ON 1 f:x UNIQUE"))
        self.assertEqual("OK", self.any().run("CPUT w a/1 f:x 5"))
        for member in self.everyone:
            self.assertIn("NOTUNIQUE", member.refusal("CPUT w b/1 f:x 5").replace("ResponseError ", ""))

    def test_unique_needs_one_tablet_whoever_has_it(self):
        """Set 0 decides, by what all sets have."""
        self.cluster(3)
        # Of each of these set 0 has another number of tablets.
        for number, split in enumerate(("2 h p", "1 m", "4 b h m p", "2 h p", "1 m")):
            self.any().run("TABLE", "CREATE", f"t{number}", "SPLIT", "AT", *split.split(), "FAMILY", "f")
            for member in self.everyone:
                self.assertIn("a UNIQUE index needs TABLE ALTER", member.refusal(f"INDEX CREATE t{number} u ON 1 f:x UNIQUE"))
        owners = set()
        for number in range(12):
            table = f"one{number}"
            self.any().run("TABLE", "CREATE", table, "FAMILY", "f")
            owners.add(self.any().run("TABLET", "ROUTE", table, "r")[1])
            if number % 2:
                self.assertEqual("OK", self.any().run("TABLE", "ALTER", table, "WHOLE"))
            self.assertEqual("OK", self.any().run("INDEX", "CREATE", table, "u", "ON", "1", "f:x", "UNIQUE"))
            self.wait_until(lambda table=table: pairs(self.any().run("INDEX", "INFO", table, "u"))["state"] == "ready", table)
            self.assertEqual("OK", self.any().run("CPUT", table, "a", "f:x", "5"))
            for member in self.everyone:
                self.assertIn("NOTUNIQUE", member.refusal("CPUT", table, "b", "f:x", "5").replace("ResponseError ", ""))
        self.assertEqual({0, 1, 2}, owners)

    def test_many_at_once(self):
        """A set that has one in its log but not committed yet says that it does not lead: the next ones come all the same."""
        self.cluster(3, appendfsync="always")
        refused = []
        ended = threading.Event()

        def hold():
            """Much comes to a node at once."""
            rng = random.Random(0)
            while not ended.is_set():
                self.any(rng).run("DEBUG", "SLEEP", "0.02")

        def change(number):
            rng = random.Random(number)
            clients = [redis.Redis(port=member.port) for member in self.everyone]
            for step in range(60):
                for words in (("TABLE", "CREATE", f"t{number}", "FAMILY", "f"), ("CPUT", f"t{number}", "r", "f:x", str(step)),
                              ("DEL", f"t{number}")):
                    try:
                        rng.choice(clients).execute_command(*words)
                    except redis.RedisError as error:
                        refused.append(f"{words}: {error}")
                        return

        holder = self.beside(hold)
        threads = [self.beside(lambda number=number: change(number)) for number in range(16)]
        for thread in threads:
            thread.join()
        ended.set()
        holder.join()
        self.assertEqual([], refused)

    def test_a_set_that_is_down_takes_them_later(self):
        sets = self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        owners = {row: self.any().run("TABLET", "ROUTE", "t", row)[1] for row in "ahp"}
        down = sets[2][0]
        lost = next(row for row, owner in owners.items() if owner == 2)
        left = [row for row in owners if row != lost]
        down.server.kill()
        living = [sets[0][0], sets[1][0]]
        for member in living:
            for row in left:
                self.assertEqual("OK", member.run("CPUT", "t", row, "f:x", "1"))
            self.assertIn("no leader: set 2", member.refusal("CPUT", "t", lost, "f:x", "1"))
        told = living[1].refusal("TABLE CREATE late FAMILY f")
        self.assertIn("TRYAGAIN schema change", told)
        self.assertIn("set 2 has not taken it yet", told.replace("TryAgainError", "TRYAGAIN"))
        for member in living:
            self.assertEqual("OK", member.run("CPUT", "t", left[0], "f:x", "2"))
        down.server.start()
        down.connect()
        self.wait_until(lambda: "late" in down.run("KEYS *"), down.server.log)
        self.wait_until(lambda: self.any().refusal("CPUT", "t", lost, "f:x", "1") == "no error: OK", down.server.log)
        self.assertEqual("OK", self.any().run("TABLE CREATE later FAMILY f"))
        told = [self.catalog(member) for member in self.everyone]
        self.assertEqual([told[0]] * 3, told)

    def test_a_set_that_starts_again_has_all_of_it(self):
        """Numbers of trees are each set's own: those of set 0 do not ascend from table to table."""
        self.cluster(2)
        for words in ("TABLE CREATE a FAMILY f", "TABLE CREATE b FAMILY f", "TABLE TRUNCATE a", "FAMILY ADD a g GROUP x",
                      "TABLE CREATE c FAMILY f GROUP y"):
            self.any().run(*words.split())
        self.sets.append(self.new_set(join=self.sets[0]))
        self.everyone += self.sets[2]
        self.admit(2)
        for words in ("TABLE TRUNCATE b", "FAMILY ADD c h GROUP z", "TABLE CREATE d SPLIT AT 2 h p FAMILY f"):
            self.any().run(*words.split())
        for row in "ahp":
            self.any().run("CPUT", "d", row, "f:x", row)
        before = self.catalog(self.everyone[0])
        for member in self.everyone:
            self.restart(member)
        for member in self.everyone:
            self.wait_until(lambda member=member: member.refusal("CCOUNT d") == "no error: 3", member.server.log)
            self.assertEqual(before, self.catalog(member))

    def test_kills_in_the_middle_of_changes(self):
        """Whoever dies: in the end all sets have the same schema, and what was told as done is done."""
        self.cluster(3)
        stop = threading.Event()
        told = []

        def change():
            number = 0
            while not stop.is_set():
                member = self.any()
                try:
                    link = redis.Redis(port=member.port, socket_timeout=30)
                    link.execute_command("TABLE", "CREATE", f"k{number}", "FAMILY", "f")
                    told.append(f"k{number}")
                    link.close()
                except redis.RedisError:
                    time.sleep(0.05)
                number += 1
        thread = self.beside(change)
        for _ in range(ROUNDS):
            time.sleep(random.uniform(0.1, 0.6))
            self.restart(self.any())
        made = len(told)
        self.wait_until(lambda: len(told) > made + 2, "tables are made")
        stop.set()
        thread.join()

        def are_equal():
            try:
                catalogs = [self.catalog(member) for member in self.everyone]
            except redis.RedisError:
                return False
            return catalogs[0] == catalogs[1] == catalogs[2]
        self.wait_until(are_equal, lambda: "\n".join(member.server.log()[-1500:] for member in self.everyone))
        have = {name for name, _ in self.catalog(self.everyone[0])}
        self.assertEqual([], [name for name in told if name not in have])
        self.wait_until(lambda: "no error: OK" == self.any().refusal("TABLE CREATE end FAMILY f"),
                        lambda: self.any().refusal("TABLE CREATE end FAMILY f"))
        for member in self.everyone:
            self.assertEqual([], member.run("CLUSTER MAP CHECK"))


class Several(SetsCase):
    """What goes over all sets replies what one server with the same rows does."""

    def test_a_table_that_is_dropped_meanwhile(self):
        """What goes over all sets then says so, and does not wait for somebody to have its rows."""
        self.cluster(3, cluster_wait=60_000)
        director = self.sets[0][0]
        told, stop = set(), threading.Event()

        def read(member):
            client = redis.Redis(port=member.port)
            while not stop.is_set():
                for words in ("CSCAN t 0 COUNT 100", "CCOUNT t", "CAGG t REDUCE COUNT f:x", "TABLE SAMPLE t 3", "CEXPLAIN CSCAN t 0"):
                    try:
                        client.execute_command(*words.split())
                    except redis.ResponseError as error:
                        told.add(str(error).split()[0])
        threads = [self.beside(lambda member=member: read(member)) for member in self.everyone]
        for _ in range(60):
            director.run("TABLE CREATE t SPLIT AT 3 g n t FAMILY f")
            pipe = director.redis.pipeline(transaction=False)
            for number in range(40):
                pipe.execute_command("CPUT", "t", f"{chr(97 + number % 26)}{number}", "f:x", "v")
            pipe.execute()
            director.run("TABLE DROP t")
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual({"NOTABLE"}, told)

    def test_clients_that_hang_up(self):
        """In the middle of what goes over all sets: nothing stays under way, and nothing is lost."""
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 3 g n t FAMILY f")
        pipe = self.everyone[0].redis.pipeline(transaction=False)
        for number in range(5000):
            pipe.execute_command("CPUT", "t", f"{'ahou'[number % 4]}{number}", "f:x", "v" * 50)
        pipe.execute()
        for number in range(60):
            link = socket.create_connection(("127.0.0.1", self.any().port))
            words = ("CSCAN t 0 COUNT 5000", "CAGG t BY KEY 1 REDUCE COUNT f:x", "CUPDATE t ALL PUT f:y 1", "CCOUNT t WHERE f:x EQ z")
            link.sendall((words[number % 4] + "\r\n").encode() * (1 + number % 5))
            time.sleep(random.random() * 0.02)
            link.close()
        for member in self.everyone:
            self.wait_until(lambda member=member: {member.info("cluster")[f"cluster_calls_{name}"]
                                                   for name in ("waiting", "held")} == {0}, lambda: str(member.info("cluster")))
        self.assertEqual(5000, self.any().run("CCOUNT t"))

    def test_a_read_ends_at_other_sets_when_its_client_leaves(self):
        """One that has hung up, or was ended, in the middle of it; not one that sends no more and waits for the reply."""
        self.cluster(3)
        entry, *owners = self.everyone
        entry.run("TABLE CREATE t SPLIT AT 2 k p FAMILY f")
        self.wait_until(lambda: all("t" in member.run("TABLE LIST") for member in self.everyone), "the table has not come")
        held = {row: entry.run("TABLET ROUTE t", row)[1] for row in "akp"}
        pipe = entry.redis.pipeline(transaction=False)
        for number in range(40_000):
            pipe.execute_command("CPUT", "t", f"{'kp'[number % 2]}{number}", "f:x", "0")
        pipe.execute()
        self.assertEqual(40_000, entry.run("CUPDATE", "t", "ALL", "PUT", "f:x", format(random.getrandbits(1600), "01600b")))
        # Seconds at each set, if nobody ends it.
        slow = "WHERE f:x MATCH *1" + "?" * 60 + "2*"
        row = next(row for row in "kp" if held[row] != held["a"])
        reads = {"CCOUNT": (f"CCOUNT t {slow}", f"CCOUNT t PREFIX {row} {slow}"),
                 "CAGG": (f"CAGG t BY KEY 1 REDUCE COUNT f:x {slow}", f"CAGG t PREFIX {row} BY KEY 1 REDUCE COUNT f:x {slow}"),
                 "CSCAN": (f"CSCAN t 0 COUNT 100000 {slow}", f"CSCAN t 0 COUNT 100000 PREFIX {row} {slow}"),
                 "CEXPLAIN": (f"CEXPLAIN CCOUNT t {slow} ANALYZE", f"CEXPLAIN CCOUNT t PREFIX {row} {slow} ANALYZE")}

        def under_way(command):
            """At the owners, on behalf of clients of the entry."""
            return [line for member in owners for line in member.run("CLIENT LIST").splitlines()
                    if " flags=Fb " in line and f" cmd={command.lower()} " in line]

        def done(command):
            """How many have come to their end at the owners."""
            stats = [member.info("commandstats").get(f"cmdstat_{command.lower()}", {"calls": 0}) for member in owners]
            return sum(each["calls"] for each in stats)

        def hang_up(link):
            link.close()

        def end(link):
            entry.run("CLIENT KILL ADDR", "{}:{}".format(*link.getsockname()), "SKIPME", "yes")

        for command, texts in reads.items():
            for text, leave in itertools.product(texts, (hang_up, end)):
                with self.subTest(text=text[:40], leave=leave.__name__):
                    before = done(command)
                    link = socket.create_connection(("127.0.0.1", entry.port))
                    link.sendall(text.encode() + b"\r\n")
                    self.wait_until(lambda command=command: under_way(command), "it was not asked")
                    leave(link)
                    self.wait_until(lambda command=command: not under_way(command), lambda: str(owners[0].run("CLIENT LIST")))
                    link.close()
                    self.assertEqual(before, done(command))
                    self.wait_until(lambda: entry.info("cluster")["cluster_calls_waiting"] == 0, "a call is left")

    def test_who_sends_no_more_gets_the_replies_of_other_sets(self):
        self.cluster(2)
        entry = self.everyone[0]
        entry.run("TABLE CREATE t SPLIT AT 1 n FAMILY f")
        pipe = entry.redis.pipeline(transaction=False)
        for number in range(6000):
            pipe.execute_command("CPUT", "t", f"{'ax'[number % 2]}{number}", "f:x", format(random.getrandbits(1600), "01600b"))
        pipe.execute()
        slow = "WHERE f:x MATCH *1" + "?" * 60 + "2*"
        for text, reply in ((f"CCOUNT t {slow}", b":0"), (f"CCOUNT t PREFIX x {slow}", b":0"), (f"CCOUNT t PREFIX a {slow}", b":0"),
                            (f"CAGG t PREFIX x BY KEY 1 REDUCE COUNT f:x {slow}", b"*0"),
                            (f"CSCAN t 0 COUNT 1000 PREFIX x {slow}", b"*2\r\n$1\r\n0\r\n*0")):
            with self.subTest(text=text[:40]), socket.create_connection(("127.0.0.1", entry.port), timeout=60) as link:
                link.sendall((text + "\r\n").encode() * 2 + b"PING\r\n")
                link.shutdown(socket.SHUT_WR)
                answer = b""
                while piece := link.recv(1 << 16):
                    answer += piece
                self.assertEqual((reply + b"\r\n") * 2 + b"+PONG\r\n", answer)
        # A reply that nobody can know, in both protocols: it is whole, and what comes behind it, too.
        for rows, protocol in itertools.product(("", "PREFIX a", "PREFIX x"), (2, 3)):
            with self.subTest(rows=rows, protocol=protocol):
                client = resp.Client(entry.port, protocol)
                client.socket.sendall(f"CEXPLAIN CCOUNT t {rows} {slow} ANALYZE\r\nPING\r\n".encode())
                client.socket.shutdown(socket.SHUT_WR)
                told = dict(resp.as_map(client.read()))
                self.assertEqual(3000 if rows else 6000, dict(resp.as_map(told[b"examined"]))[b"rows"])
                self.assertEqual(b"PONG", client.read())
                client.close()

    def test_beside_one_server(self):
        self.cluster(3)
        alone = self.new_set()[0]
        seed = SEED or random.randrange(1 << 30)
        rng = random.Random(seed)
        print(f"\nseed {seed}")
        bounds = sorted(rng.sample(range(100), 7))
        alone.run("TABLE CREATE t KEY a=u64/b=utf8 FAMILY f TYPE i64 FAMILY g VERSIONS 3")
        self.any(rng).run("TABLE", "CREATE", "t", "KEY", "a=u64/b=utf8", "SPLIT", "AT", "7", *map(str, bounds), "FAMILY", "f",
                          "TYPE", "i64", "FAMILY", "g", "VERSIONS", "3")
        for server in (alone, self.any(rng)):
            server.run("INDEX CREATE t i ON 1 f:x")
        for number in range(400):
            words = ("CPUT", "t", f"{rng.randrange(100)}/{rng.choice('abc')}", "f:x", str(rng.randrange(50)), f"g:{number % 5}",
                     f"v{number}", "TS", str(number + 1))
            self.assertEqual(alone.run(*words), self.any(rng).run(*words), words)
        for number in range(400):
            words = rng.choice((
                lambda: ("CCOUNT", "t"),
                lambda: ("CCOUNT", "t", "WHERE", "f:x", "GT", str(rng.randrange(50))),
                lambda: ("CSCAN", "t", "0", "COUNT", str(rng.choice((1, 3, 10, 1000)))),
                lambda: ("CSCAN", "t", "0", "REVERSE", "COUNT", str(rng.choice((1, 7, 50, 1000)))),
                lambda: ("CSCAN", "t", "0", "RANGE", f"[{rng.randrange(50)}", f"({50 + rng.randrange(50)}", "COUNT", "1000"),
                lambda: ("CSCAN", "t", "0", "WHERE", "f:x", "LT", str(rng.randrange(50)), "KEYSONLY"),
                lambda: ("CSCAN", "t", "0", "INDEX", "i", "COUNT", str(rng.choice((2, 20, 1000)))),
                lambda: ("CAGG", "t", "REDUCE", "SUM", "f:x", "REDUCE", "ROWS"),
                lambda: ("CAGG", "t", "BY", "KEY", "1", "REDUCE", "AVG", "f:x", "SORT", "1", "DESC", "LIMIT", "7"),
                lambda: ("CAGG", "t", "BY", "VALUE", "f:x", "REDUCE", "COUNT", "f:x"),
                lambda: ("CROWS", "t", "3", *(f"{rng.randrange(100)}/{rng.choice('abc')}" for _ in range(3))),
                lambda: ("CNEAR", "t", f"{rng.randrange(100)}/b"),
                lambda: ("CDELRANGE", "t", "RANGE", f"[{number % 100}/c", f"[{number % 100}/c"),
            ))()
            want, told = alone.refusal(*words), self.any(rng).refusal(*words)
            if words[0] == "CSCAN" and "error: [b" not in want:
                # Cursors are texts that only say where to go on.
                self.assertEqual(self.rows_of(alone, words), self.rows_of(self.any(rng), words), (seed, words))
                continue
            self.assertEqual(want, told, (seed, words))

    def test_rows_that_all_sets_choose_together(self):
        """Groups lie on several sets, and which rows an index names first takes all of them to say."""
        self.cluster(3)
        alone = self.new_set()[0]
        seed = SEED or random.randrange(1 << 30)
        rng = random.Random(seed)
        print(f"\nseed {seed}")
        bounds = sorted({f"{rng.randrange(8)}/{rng.randrange(40)}" for _ in range(9)}, key=lambda key: [int(x) for x in key.split("/")])
        create = ("FAMILY", "f", "TYPE", "i64", "FAMILY", "q")
        alone.run("TABLE", "CREATE", "t", "KEY", "a=u64/b=u64", *create)
        self.any(rng).run("TABLE", "CREATE", "t", "KEY", "a=u64/b=u64", "SPLIT", "AT", str(len(bounds)), *bounds, *create)
        for server in (alone, self.any(rng)):
            server.run("INDEX CREATE t i ON 1 f:x")
            server.run("INDEX CREATE t d ON 1 -f:x")
            server.run("INDEX CREATE t names ON 1 q:")
        for number in range(300):
            words = ["CPUT", "t", f"{rng.randrange(8)}/{rng.randrange(40)}", "f:x", str(rng.randrange(9)), "f:y", str(number)]
            for name in rng.sample("uvw", rng.randrange(3)):
                words += [f"q:{name}", "1"]
            words += ["TS", str(number + 1)]
            self.assertEqual(alone.run(*words), self.any(rng).run(*words), words)

        def rows():
            return rng.choice(((), (), ("PREFIX", str(rng.randrange(8))), ("RANGE", f"[{rng.randrange(8)}/7", "+"),
                               ("INDEX", "i"), ("INDEX", "i", "BETWEEN", "[2", "[6"), ("INDEX", "d"), ("INDEX", "names"),
                               ("INDEX", "i", "EQ", "1", str(rng.randrange(10)))))

        def chosen():
            words = [*rows()]
            if rng.random() < 0.4:
                words.append("REVERSE")
            words += ["EACH", "1", str(rng.choice((1, 2, 5, 30)))]
            if rng.random() < 0.4:
                words += ["WHERE", "f:y", rng.choice(("GT", "LT")), str(rng.randrange(300))]
            return words

        def changed():
            words = ["INDEX", rng.choice(("i", "d", "names"))]
            if words[1] == "i" and rng.random() < 0.6:
                words += ["EQ", "1", str(rng.randrange(9))]
            return words + (["WHERE", "f:y", "GT", str(rng.randrange(300))] if rng.random() < 0.3 else [])

        for number in range(250):
            words = rng.choice((
                lambda: ("CCOUNT", "t", *chosen()),
                lambda: ("CCOUNT", "t", *chosen(), "COLUMNS", "2", "f:y", "q", "BY", rng.choice(("CELLS", "COLUMNS", "GROUPS"))),
                lambda: ("CAGG", "t", *chosen(), "BY", "KEY", "1", "REDUCE", "SUM", "f:y", "REDUCE", "ROWS", "*"),
                lambda: ("CAGG", "t", *chosen(), "REDUCE", "MAX", "f:y", "REDUCE", "COUNT", "*"),
                lambda: ("CNEAR", "t", "INDEX", rng.choice(("i", "d")), "1", str(rng.randrange(-1, 11))),
                lambda: ("CNEAR", "t", "INDEX", "names", "1", rng.choice(("a", "u", "vv", "x"))),
                lambda: ("CUPDATE", "t", *changed(), "LIMIT", str(rng.choice((1, 2, 7, 50, 1000))),
                         *rng.choice((("INCR", "f:x", "1"), ("PUT", "f:y", str(number)), ("DEL", "f:z"), ("DELROW",),
                                      ("DEL", f"q:{rng.choice('uvw')}"), ("INCR", "f:y", "3")))),
                lambda: ("CUPDATE", "t", *changed(), "LIMIT", "3", "PUT", "nofam:x", "1"),
                lambda: ("CCOUNT", "t", "INDEX", "nix", "EACH", "1", "1"),
                lambda: ("CSCAN", "t", "0", *chosen(), "COUNT", "1000"),
            ))()
            self.assertEqual(alone.refusal(*words), self.any(rng).refusal(*words), (seed, words))
            whole = ("CSCAN", "t", "0", "COUNT", "10000")
            self.assertEqual(alone.refusal(*whole), self.any(rng).refusal(*whole), (seed, words))

    def test_who_may_read_little_reads_no_more_over_several_sets(self):
        """Families that the user may not read stay hidden at each owner, in the words of one server."""
        self.cluster(3)
        alone = self.new_set()[0]
        rng = random.Random(SEED or random.randrange(1 << 30))
        alone.run("TABLE CREATE t FAMILY f TYPE i64 FAMILY g TYPE i64")
        self.any().run("TABLE CREATE t SPLIT AT 3 c h p FAMILY f TYPE i64 FAMILY g TYPE i64")
        for server in (alone, self.any()):
            server.run("INDEX CREATE t open ON 1 f:x")
            server.run("INDEX CREATE t closed ON 1 g:x")
            for user, rules in (("some", "%R~t:f %W~t:f"), ("none", "~other"), ("reads", "%R~t"), ("all", "~*")):
                server.run("ACL", "SETUSER", user, "on", "nopass", "+@all", *rules.split())
        for number in range(120):
            row = rng.choice("adhkpz") + str(rng.randrange(9))
            words = ["CPUT", "t", row, "f:x", str(rng.randrange(9)), "TS", str(number + 1)]
            if rng.random() < 0.6:
                words += ["g:x", str(rng.randrange(9)), "TS", str(number + 1)]
            if rng.random() < 0.3:
                words = ["CPUT", "t", row[0] + "only" + row[1], "g:x", "5", "TS", str(number + 1)]
            self.assertEqual(alone.run(*words), self.any(rng).run(*words))
        asked = [words.split() for words in (
            "CSCAN t 0 COUNT 1000", "CSCAN t 0 COLUMNS 1 g:", "CSCAN t 0 INDEX open COUNT 1000", "CSCAN t 0 INDEX closed", "CSCAN t 0 STATS",
            "CSCAN t 0 WHERE g:x EQ 5", "CCOUNT t", "CCOUNT t BY CELLS", "CCOUNT t WHERE g:x GT 1", "CCOUNT t EACH 1 1 INDEX open",
            "CCOUNT t INDEX closed EACH 1 1", "CCOUNT t INDEX open EACH 1 2 BY CELLS", "CAGG t REDUCE COUNT * REDUCE SUM f:x",
            "CAGG t REDUCE SUM g:x", "CAGG t INDEX open EACH 1 1 REDUCE COUNT *", "CROWS t 3 a1 h1 z1", "CROWS t 2 a1 z1 COLUMNS 1 g:",
            "CNEAR t aonly", "CNEAR t INDEX open 1 4", "CNEAR t INDEX closed 1 4", "TABLE SAMPLE t 1", "CEXPLAIN CSCAN t 0 COLUMNS 1 g:",
            "CUPDATE t ALL PUT g:y 1", "CUPDATE t INDEX open LIMIT 3 PUT g:y 1", "CUPDATE t INDEX closed LIMIT 3 PUT f:y 1",
            "CUPDATE t INDEX open LIMIT 3 WHERE g:x EQ 5 PUT f:y 1", "CUPDATE t INDEX open LIMIT 3 PUT f:y 1 TS 999", "CDELRANGE t PREFIX a",
            "CCOUNT t")]

        def of(member, user, words):
            with redis.Redis(port=member.port, username=user, password="x", decode_responses=True) as client:
                try:
                    return client.execute_command(*words)
                except redis.RedisError as error:
                    return str(error)
        for user in ("none", "some", "reads", "all"):
            for words in asked:
                want = of(alone, user, words)
                if "STATS" in words and user != "none" and not isinstance(want, str):
                    continue  # times differ
                if words[0] == "CEXPLAIN" and not isinstance(want, str):
                    continue
                self.assertEqual(want, of(self.any(rng), user, words), (user, words))
                self.assertEqual(alone.run("CSCAN t 0 COUNT 1000"), self.any(rng).run("CSCAN t 0 COUNT 1000"), (user, words))
        for words in ("TABLE SAMPLE t 3", "CEXPLAIN CSCAN t 0", "CSCAN t 0 STATS"):
            for member in self.everyone:
                self.assertEqual(of(alone, "some", words.split()), of(member, "some", words.split()), words)

    def test_sample_and_explain(self):
        self.cluster(3)
        self.any().run("TABLE CREATE t KEY u32 SPLIT AT 4 300 500 1500 1800 FAMILY f")
        for member in self.everyone:
            self.assertEqual([], member.run("TABLE SAMPLE t 4"))
        self.any().run("INDEX CREATE t i ON 1 f:x")
        for number in range(2000):
            self.any().run("CPUT", "t", str(number), "f:x", str(number % 7), "f:pad", "p" * 50)
        told = [member.run("TABLE SAMPLE t 4") for member in self.everyone]
        self.assertEqual(1, len({tuple(each) for each in told}), told)
        keys = [int(key) for key in told[0]]
        self.assertEqual(3, len(keys))
        for at, key in enumerate(keys):
            self.assertLess(abs(key - 500 * (at + 1)), 150, keys)
        for parts in (1, 2, 7, 100, 100_000):
            keys = [int(key) for key in self.any().run("TABLE", "SAMPLE", "t", str(parts))]
            self.assertEqual(sorted(set(keys)), keys)
            self.assertLessEqual(len(keys), min(parts - 1, 1999))
            self.assertGreaterEqual(len(keys), min(parts - 1, 50))
        self.assertIn("NOTABLE", self.any().refusal("TABLE SAMPLE no 4"))

        plan = pairs(self.any().run("CEXPLAIN CSCAN t 0 ANALYZE"))
        self.assertEqual("table", plan["tree"])
        self.assertEqual(2000, pairs(plan["estimated"])["rows"])
        self.assertEqual([0, 1, 2], [number for number, _ in plan["sets"]])
        self.assertEqual(2000, sum(pairs(pairs(each)["estimated"])["rows"] for _, each in plan["sets"]))
        plan = pairs(self.any().run("CEXPLAIN CCOUNT t INDEX i EQ 1 3 ANALYZE"))
        self.assertEqual("i", plan["index"])
        self.assertEqual(len([n for n in range(2000) if n % 7 == 3]), pairs(plan["examined"])["rows returned"])
        # One set has it all: as of one server.
        owner = self.any().run("TABLET ROUTE t 7 SURE")[1]
        for words in ("CROW t 7", "CGET t 7 f:x", "CSCAN t 0 RANGE [3 [9"):
            plan = pairs(self.any().run(f"CEXPLAIN {words}"))
            self.assertNotIn("sets", plan, (words, owner))
        self.assertIn("syntax error", self.any().refusal("CEXPLAIN CSCAN t 0 COUNT"))
        self.assertIn("NOFAMILY", self.any().refusal("CEXPLAIN CSCAN t 0 COLUMNS 1 no:"))

    @staticmethod
    def rows_of(member, words):
        """All pages."""
        rows, cursor = [], "0"
        while True:
            cursor, page = member.run(*words[:2], cursor, *words[3:])
            rows += page
            if cursor == "0":
                return rows


class Rows(SetsCase):
    def test_any_node_reaches_all_rows(self):
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 4 c g n t FAMILY f VERSIONS 1")
        owners = {self.any().run("TABLET", "ROUTE", "t", row, "SURE")[1] for row in "adhoz"}
        self.assertEqual({0, 1, 2}, owners)
        seed = SEED or random.randrange(1 << 30)
        rng = random.Random(seed)
        print(f"\nseed {seed}")
        model = {}
        for _ in range(2000):
            row = rng.choice("adhoz") + str(rng.randrange(20))
            member = self.any(rng)
            kind = rng.random()
            if kind < 0.4:
                value = str(rng.randrange(1000))
                self.assertEqual("OK", member.run("CPUT", "t", row, "f:q", value))
                model[row] = value
            elif kind < 0.5:
                self.assertEqual(int(row in model), member.run("CDEL", "t", row, "f:q"), (seed, row))
                model.pop(row, None)
            elif kind < 0.6 and model.get(row, "0").isdigit():
                model[row] = str(int(model.get(row, "0")) + 3)
                self.assertEqual(int(model[row]), member.run("CINCRBY", "t", row, "f:q", "3"), (seed, row))
            elif kind < 0.7:
                self.assertEqual(int(row in model), member.run("CEXISTS", "t", row, "f:q"), (seed, row))
            else:
                told = member.run("CGET", "t", row, "f:q")
                self.assertEqual(model.get(row), told if told is None else str(told), (seed, row))
        counts = [int(member.info("cluster").get("cluster_calls_out", 0)) for member in self.everyone]
        self.assertTrue(all(counts), counts)

    def test_a_table_of_more_tablets_than_one_set_may_have(self):
        self.cluster(3)
        rows = [f"{number:06}" for number in range(60_000)]
        entry = self.everyone[1]
        create = ("TABLE", "CREATE", "t", "SPLIT", "AT")
        self.assertRegex(entry.refusal(*create, len(rows), *rows, "FAMILY", "f"),
                         r"TOOLARGE there is room for \d+ of 60001 tablets: each set has at most 20000")
        rows = rows[::2][:24_000]
        self.assertEqual("OK", entry.run(*create, len(rows), *rows, "FAMILY", "f"))
        self.assertEqual(24_001, pairs(entry.run("TABLE INFO t"))["tablets"])
        for member in self.everyone:
            self.wait_until(lambda member=member: 8000 <= member.info("cluster")["cluster_tablets_owned"] < 8050, lambda member=member: member.info("cluster"))
        for row in random.sample(rows, 100):
            self.assertEqual("OK", self.any().run("CPUT", "t", row, "f:x", row))
            self.assertEqual(row, self.any().run("CGET", "t", row, "f:x"))
        self.assertEqual(100, self.any().run("CCOUNT t"))
        self.assertEqual([], self.any().run("CLUSTER MAP CHECK"))
        self.assertEqual("OK", self.any().run("TABLE DROP t"))

    def test_record_numbers(self):
        """Unique and ascending, whoever is asked and wherever tablets end."""
        self.cluster(3)
        self.any().run("TABLE CREATE t KEY recno SPLIT AT 3 10 50 100 FAMILY f")
        numbers = []
        for round_ in range(4):
            for _ in range(10):
                number = self.any().run("CPUT", "t", "*", "f:x", str(len(numbers)))
                numbers.append(int(number))
                self.assertEqual(str(len(numbers) - 1), self.any().run("CGET", "t", number, "f:x"))
            self.any().run("TABLET", "SPLIT", "t", str(numbers[-1] + (0, 1, 50, 0)[round_]))
            self.any().run("CPUT", "t", str(7 + round_), "f:y", "low")
        self.assertEqual(sorted(set(numbers)), numbers)
        self.assertEqual(44, self.any().run("CCOUNT", "t"))

    def test_now_in_keys(self):
        self.cluster(3)
        self.any().run("TABLE CREATE t KEY utf8#timeuuid SPLIT AT 2 h p FAMILY f")
        for front in "ahz":
            for member in self.everyone:
                self.assertEqual("OK", member.run("CPUT", "t", f"{front}#now", "f:x", "1"))
        for member in self.everyone:
            self.assertEqual(9, member.run("CCOUNT", "t"))
            self.assertEqual(3, member.run("CCOUNT t PREFIX h"))

    def test_which_error_is_told(self):
        """As by one server: what is wrong with the rows asked for comes before what is wrong with columns and groups."""
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        for member in self.everyone:
            self.assertIn("EACH 2 is out of range", member.refusal("CAGG t EACH 2 1 COLUMNS 1 nofam: REDUCE ROWS *"))
            self.assertIn("syntax error", member.refusal("CNEAR t b c"))

    def test_tables_are_cut_where_a_test_says(self):
        self.cluster(3)
        for member in self.everyone:
            self.assertEqual("OK", member.run("DEBUG CLUSTER CUT-TABLES utf8 h p"))
            self.assertIn("syntax error", member.refusal("DEBUG CLUSTER CUT-TABLES no h"))
            self.assertIn("BADKEY", member.refusal("DEBUG CLUSTER CUT-TABLES u8 h").replace("ResponseError ", ""))
        for words, tablets in (("t KEY utf8", 3), ("n KEY u8", 1), ("w KEY utf8 WHOLE", 1), ("s KEY utf8 SPLIT AT 1 x", 2)):
            self.assertEqual("OK", self.any().run(f"TABLE CREATE {words} FAMILY f"))
            self.assertEqual(tablets, pairs(self.any().run("TABLE", "INFO", words[0]))["tablets"])
        for member in self.everyone:
            self.assertEqual("OK", member.run("DEBUG CLUSTER CUT-TABLES OFF"))
        self.any().run("TABLE CREATE u KEY utf8 FAMILY f")
        self.assertEqual(1, pairs(self.any().run("TABLE INFO u"))["tablets"])

    def test_infos_are_of_all_sets(self):
        """As of one server with the same rows; LOCAL is of one node."""
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f TTL 1d FAMILY g")
        self.any().run("INDEX CREATE t i ON 1 f:x")
        for row in "abcdhijpqrst":
            self.any().run("CPUT", "t", row, "f:x", row, "f:y", "1", "g:z", "2")
        for member in self.everyone:
            told = pairs(member.run("TABLE", "INFO", "t"))
            self.assertEqual((12, 36, 3, 3), tuple(told[each] for each in ("rows", "cells", "tablets", "sets")))
            self.assertEqual(24, pairs(member.run("FAMILY", "INFO", "t", "f"))["cells"])
            self.assertEqual(12, pairs(member.run("FAMILY", "INFO", "t", "g"))["cells"])
            self.wait_until(lambda member=member: pairs(member.run("INDEX", "INFO", "t", "i"))["state"] == "ready", "it is never ready")
            self.assertEqual(12, pairs(member.run("INDEX", "INFO", "t", "i"))["entries"])
            self.assertIn("wrong number of arguments", member.refusal("TABLE INFO t all"))
        for words, field, whole in (("TABLE INFO t", "cells", 36), ("FAMILY INFO t f", "cells", 24), ("INDEX INFO t i", "entries", 12)):
            parts = [pairs(member.run(*words.split(), "LOCAL"))[field] for member in self.everyone]
            self.assertEqual((whole, True), (sum(parts), all(0 < part < whole for part in parts)), parts)

    def test_what_all_sets_know_and_who_lacks_what(self):
        self.cluster(2, voters=3)
        level = self.everyone[0].info("cluster")["cluster_feature_level"].split("/")[0]
        for member in self.everyone:
            self.wait_until(lambda member=member: member.run("CLUSTER CONFIG GET feature-level") == ["feature-level", level],
                            lambda member=member: member.run("CLUSTER CONFIG GET *"))
        self.everyone[0].run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        self.assertEqual("OK", self.any().run("TABLET SPLIT t k"))
        for member in self.everyone:
            for name, wanted in (("version", range(2, 1000)), ("behind", (0,))):
                self.wait_until(lambda member=member, name=name, wanted=wanted: member.info("cluster")[f"cluster_map_{name}"] in wanted,
                                lambda member=member: member.info("cluster"))

    def test_rows_of_others_are_not_missing_after_a_start(self):
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        for row in "ahp":
            self.any().run("CPUT", "t", row, "f:x", row)
        for member in self.everyone:
            for _ in range(3):
                self.restart(member)
                told = set()

                def all_told(member=member, told=told):
                    for row in "ahp":
                        told.add((row, member.refusal("CGET", "t", row, "f:x")))
                    told.add(("all", member.refusal("CCOUNT t")))
                    return all((row, "no error: " + row) in told for row in "ahp") and ("all", "no error: 3") in told
                self.wait_until(all_told, lambda told=told: told)
                answers = {(row, text) for row, text in told if text.startswith("no error")}
                self.assertEqual({("a", "no error: a"), ("h", "no error: h"), ("p", "no error: p"), ("all", "no error: 3")},
                                 answers, told)
        self.assertEqual(3, self.any().run("CCOUNT t"))

    def test_a_set_that_stands_still_is_given_up(self):
        """What it was asked before anybody knew of it, too: its system takes everything, and it answers nothing."""
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f VERSIONS 1")
        for row in "ahp":
            self.any().run("CPUT", "t", row, "f:x", row)
        entry, still = self.sets[0][0], self.sets[2][0]
        told = {}

        def ask(words):
            client = redis.Redis(port=entry.port, socket_timeout=300, retry=None, decode_responses=True)
            client.execute_command("CGET", "t", "p", "f:x")
            ready.wait()
            stopped.wait()
            try:
                told[words] = client.execute_command(*words)
            except redis.RedisError as error:
                told[words] = f"{type(error).__name__} {error}"
        words = [("CGET", "t", "p", "f:x"), ("CPUT", "t", "p", "f:x", "2"), ("CCOUNT", "t"), ("CGET", "t", "a", "f:x"), ("CPUT", "t", "a", "f:x", "2")]
        ready = threading.Barrier(len(words) + 1)
        stopped = threading.Event()
        threads = [self.beside(lambda each=each: ask(each)) for each in words]
        ready.wait()
        still.server.process.send_signal(signal.SIGSTOP)
        stopped.set()
        for thread in threads:
            thread.join()
        still.server.process.send_signal(signal.SIGCONT)
        self.assertIn(told[words[3]], ("a", "2"))
        self.assertEqual("OK", told[words[4]])
        self.assertIn("CLUSTERDOWN", told[words[0]])
        self.assertIn("ConnectionError", told[words[1]])
        self.assertIn("CLUSTERDOWN", told[words[2]])
        self.wait_until(lambda: entry.refusal("CCOUNT t") == "no error: 3", lambda: entry.refusal("CCOUNT t"))

    def test_order_on_one_connection(self):
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f VERSIONS 1")
        for member in self.everyone:
            pipe = member.redis.pipeline(transaction=False)
            expected = []
            for number in range(300):
                row = "ahp"[number % 3]
                pipe.execute_command("CPUT", "t", row, "f:n", str(number))
                pipe.execute_command("CGET", "t", row, "f:n")
                pipe.execute_command("PING")
                expected += ["OK", str(number), True]
            self.assertEqual(expected, pipe.execute())

    def test_transactions_of_one_set_and_of_several(self):
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        for member in self.everyone:
            for row in "ahp":
                with member.redis.pipeline(transaction=True) as pipe:
                    pipe.execute_command("CPUT", "t", row, "f:a", "1")
                    pipe.execute_command("CGET", "t", row, "f:a")
                    self.assertEqual(["OK", "1"], pipe.execute())
            with member.redis.pipeline(transaction=True) as pipe:
                pipe.execute_command("CPUT", "t", "a", "f:b", "1")
                pipe.execute_command("CPUT", "t", "h", "f:b", "1")
                with self.assertRaisesRegex(redis.ResponseError, "CROSSSET EXEC touches set .*nothing was done"):
                    pipe.execute()
            self.assertEqual([None, None], [member.run("CGET", "t", row, "f:b") for row in "ah"])
            self.assertEqual("PONG", member.redis.execute_command("PING") and "PONG")

    def test_a_refused_exec_ends_watches_wherever_they_are(self):
        self.cluster(3)
        self.any().run("TABLE CREATE t FAMILY f")
        self.any().run("TABLE CREATE u SPLIT AT 2 h p FAMILY f")
        for entry in self.everyone:
            for watch in ("WATCH t", "CWATCH t r"):
                client = resp.Client(entry.port)
                self.addCleanup(client.close)
                self.assertEqual(resp.OK, client.call(*watch.split()))
                client.call("MULTI")
                for row in "ahz":
                    client.call("CPUT", "u", row, "f:x", "1")
                self.assertIn("CROSSSET", repr(client.call("EXEC")))
                self.any().run("CPUT t r f:x 1")
                client.call("MULTI")
                client.call("CGET", "t", "r", "f:x")
                self.assertEqual([b"1"], client.call("EXEC"), (entry.port, watch))

    def test_a_select_that_fails_inside_exec(self):
        """What comes behind it is of the keyspace before, whose rows lie on several sets."""
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        self.any().run("TABLE CREATE w WHOLE FAMILY f")
        for row in "ahz":
            self.any().run("CPUT", "t", row, "f:x", "1")
            self.any().run("CPUT", "w", row, "f:x", "1")
        for entry in self.everyone:
            client = resp.Client(entry.port)
            self.addCleanup(client.close)
            for words, want in (("CCOUNT t", "CROSSSET"), ("CGET t h f:x", "b'1'"), ("CCOUNT w", "3")):
                client.call("MULTI")
                client.call("SELECT", "nowhere")
                client.call(*words.split())
                self.assertIn(want, repr(client.call("EXEC")), (entry.port, words))

    def test_tablets_of_any_set_are_split_and_merged(self):
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        for row in ("c", "l", "t"):
            self.assertEqual("OK", self.any().run("TABLET", "SPLIT", "t", row))
        starts = ["", "c", "h", "l", "p", "t"]
        for member in self.everyone:
            self.wait_until(lambda member=member: [pairs(each)["start"] for each in member.run("TABLET LIST t")[1]] == starts,
                            lambda member=member: str(member.run("TABLET LIST t")))
        for row in ("a", "h", "p"):
            self.assertEqual("OK", self.any().run("TABLET", "MERGE", "t", row))
        for member in self.everyone:
            self.wait_until(lambda member=member: len(member.run("TABLET LIST t")[1]) == 3, lambda member=member: str(member.run("TABLET LIST t")))
        self.assertEqual([], self.any().run("CLUSTER MAP CHECK"))

        def whole(member):
            return [{name: told for name, told in pairs(each).items() if name not in ("bytes", "rows", "load")}
                    for each in member.run("TABLET LIST")[1]]
        before = whole(self.everyone[0])
        self.assertEqual("OK", self.any().run("CLUSTER MAP REBUILD"))
        self.assertEqual(before, whole(self.everyone[0]))
        for member in self.everyone:
            self.wait_until(lambda member=member: whole(member) == before, lambda member=member: str(whole(member)))
        self.assertEqual([], self.any().run("CLUSTER MAP CHECK"))

    def test_who_listens_is_told_of_tablets(self):
        self.cluster(2)
        self.any().run("TABLE CREATE t SPLIT AT 1 m FAMILY f")
        self.any().run("TABLE CREATE other SPLIT AT 1 m FAMILY f")
        ports = {each["set"]: int(each["leader"].rsplit(":", 1)[1]) for each in self.told_sets(self.everyone[0])}
        clients = []
        for entry in self.everyone:
            self.wait_until(lambda entry=entry: len(entry.run("TABLET LIST other")[1]) == 2, entry.server.log)
            self.assertIn("needs RESP3", entry.refusal("CLIENT TABLETS ON"))
            for listens in (True, False):
                client = resp.Client(entry.port, 3)
                self.addCleanup(client.close)
                if listens:
                    self.assertEqual(resp.OK, client.call("CLIENT", "TABLETS", "ON"))
                route = dict(client.call("TABLET", "ROUTE", "t", "z").pairs)
                self.assertEqual(f"127.0.0.1:{ports[route[b'set']]}".encode(), route[b"leader"])
                clients.append((client, listens))
        self.any().run("TABLET SPLIT other r")
        self.any().run("TABLET SPLIT t r")
        owner = pairs(self.any().run("TABLET ROUTE t z"))["set"]
        self.assertEqual("OK", self.any().run("TABLET", "MOVE", "t", "z", "TO", str(1 - owner), "WAIT", "20000"))
        for client, listens in clients:
            if not listens:
                self.assertIn("PONG", repr(client.call("PING")))
                continue
            told = []
            while not told or told[-1][2:] != [b"r", b"", 1 - owner, f"127.0.0.1:{ports[1 - owner]}".encode()]:
                push = client.read()
                self.assertIsInstance(push, resp.Push)
                told.append(list(push))
            self.assertTrue(all(each[:2] == [b"tablet", b"t"] for each in told), told)
            self.assertIn([b"m", b"r"], [each[2:4] for each in told])

    def test_users_are_those_of_the_cluster(self):
        self.cluster(2)
        self.any().run("TABLE CREATE t SPLIT AT 1 m FAMILY f")
        self.everyone[1].run("ACL SETUSER anna on >secret +@all ~*")

        def knows(member):
            try:
                return redis.Redis(port=member.port, username="anna", password="secret",
                                   decode_responses=True).execute_command("CPUT", "t", "a", "f:x", "1") == "OK"
            except redis.RedisError:
                return False
        for member in self.everyone:
            self.wait_until(lambda member=member: knows(member), member.server.log)
            link = redis.Redis(port=member.port, username="anna", password="secret", decode_responses=True)
            for row in "az":
                self.assertEqual("OK", link.execute_command("CPUT", "t", row, "f:y", "2"))

    def test_a_change_of_users_is_everywhere_when_it_is_told(self):
        self.cluster(3, voters=2)
        rng = random.Random(SEED or random.randrange(1 << 30))
        for number in range(60):
            name = f"u{number % 7}"
            password = f"p{number}"
            self.assertEqual("OK", self.any(rng).run("ACL", "SETUSER", name, "reset", "on", f">{password}", "+@all", "~*"))
            for member in self.everyone:
                with redis.Redis(port=member.port, username=name, password=password, decode_responses=True) as client:
                    self.assertEqual(name, client.execute_command("ACL WHOAMI"), number)
            if number % 5 == 4:
                self.assertEqual(1, self.any(rng).run("ACL", "DELUSER", name))
                for member in self.everyone:
                    self.assertNotIn(name, member.run("ACL", "USERS"), number)
        # Many at once: no set stays behind.
        threads = [self.beside(lambda each=each: self.any().run("ACL", "SETUSER", f"many{each}", "on", "nopass")) for each in range(8)]
        for thread in threads:
            thread.join(30)
        names = {f"many{each}" for each in range(8)}
        for member in self.everyone:
            self.wait_until(lambda member=member: names <= set(member.run("ACL", "USERS")), member.server.log)
        # Who cannot be asked is not waited for.
        for member in self.sets[2]:
            member.server.kill()
        self.assertEqual("OK", self.sets[1][0].run("ACL SETUSER late on nopass"))

    def test_commands_about_other_nodes(self):
        self.cluster(2, voters=2)
        name = {member: f"127.0.0.1:{member.port}" for member in self.everyone}
        for entry in self.everyone:
            for other in self.everyone:
                told = entry.run("CLUSTER", "ON", name[other], "INFO", "server")
                self.assertEqual(str(other.port), dict(line.split(":", 1) for line in told.splitlines() if ":" in line)["tcp_port"])
                other.run("CONFIG", "SET", "slowlog-max-len", str(100 + other.port % 1000))
                self.assertEqual(["slowlog-max-len", str(100 + other.port % 1000)],
                                 entry.run("CLUSTER", "ON", name[other], "CONFIG", "GET", "slowlog-max-len"))
            told = pairs(entry.run("CLUSTER ON ALL PING"))
            self.assertEqual({each: "PONG" for each in name.values()}, told)
            told = pairs(entry.run("CLUSTER ON SET 1 CONFIG GET slowlog-max-len"))
            self.assertEqual({name[member] for member in self.sets[1]}, set(told))
        entry = self.everyone[0]
        node = pairs(self.told_sets(entry)[1]["members"][0])["id"]
        self.assertEqual("OK", entry.run("CLUSTER", "ON", node, "CONFIG", "SET", "slowlog-max-len", "77"))
        # Errors stand in their places.
        told = pairs(entry.run("CLUSTER ON ALL CONFIG SET slowlog-max-len x"))
        self.assertEqual(4, len(told))
        self.assertTrue(all("CONFIG SET failed" in str(each) for each in told.values()), told)
        for words, why in (("CLUSTER ON ALL CGET t r f:x", "commands about a node"), ("CLUSTER ON ALL MONITOR", "commands about a node"),
                           ("CLUSTER ON ALL MULTI", "commands about a node"), ("CLUSTER ON ALL NONSENSE", "commands about a node"),
                           ("CLUSTER ON ALL CLUSTER ON ALL PING", "commands about a node"), ("CLUSTER ON SET 9 PING", "no set 9"),
                           ("CLUSTER ON 127.0.0.1:1 PING", "no node"), ("CLUSTER ON SET 1", "syntax error")):
            self.assertIn(why, entry.refusal(words), words)
        # Who carries it out judges the user.
        entry.run("ACL SETUSER poor on nopass +cluster +ping")
        with redis.Redis(port=entry.port, username="poor", password="x", decode_responses=True) as client:
            self.assertEqual(4, len(client.execute_command("CLUSTER ON ALL PING")) // 2)
            with self.assertRaises(redis.exceptions.NoPermissionError):
                client.execute_command("CLUSTER", "ON", name[self.everyone[3]], "INFO")
        # One is gone, one does not answer.
        self.everyone[3].server.kill()
        os.kill(self.everyone[2].server.process.pid, signal.SIGSTOP)
        try:
            told = pairs(entry.run("CLUSTER ON ALL PING"))
        finally:
            os.kill(self.everyone[2].server.process.pid, signal.SIGCONT)
        self.assertEqual(["PONG", "PONG"], [told[name[member]] for member in self.sets[0]])
        for member in self.sets[1]:
            self.assertIn(f"CLUSTERDOWN {name[member]} does not answer", str(told[name[member]]))
        self.wait_until(lambda: pairs(entry.run("CLUSTER ON ALL PING"))[name[self.everyone[2]]] == "PONG", entry.server.log)

    def test_messages_reach_all_nodes(self):
        self.cluster(3, voters=2)
        listeners = []
        for member in self.everyone:
            listener = member.redis.pubsub()
            listener.subscribe("news")
            listener.psubscribe("*.log")
            while len(listener.channels) + len(listener.patterns) < 2 or listener.get_message(timeout=0.2) is not None:
                pass
            listeners.append(listener)
            self.addCleanup(listener.close)

        def heard(listener):
            message = listener.get_message(ignore_subscribe_messages=True, timeout=0.1)
            return message and message["data"]
        for entry in self.everyone:
            # A link may not stand yet: at most once.
            self.wait_until(lambda entry=entry: entry.run("PUBLISH", "news", f"ready {entry.port}") >= 0 and
                            all([f"ready {entry.port}" in [heard(each) for _ in range(3)] for each in listeners]), entry.server.log)
        for listener in listeners:
            while heard(listener):
                pass
        for entry in self.everyone:
            for number in range(20):
                entry.run("PUBLISH", ("news", "a.log")[number % 2], f"{entry.port} {number}")
        for listener in listeners:
            got = [heard(listener) for _ in range(20 * len(self.everyone))]
            for entry in self.everyone:
                self.assertEqual([f"{entry.port} {number}" for number in range(20)], [each for each in got if each and each.startswith(f"{entry.port} ")])

    def test_hot_keys_of_all_nodes(self):
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        entry = self.everyone[1]
        self.assertIsNone(entry.run("HOTKEYS GET"))
        self.assertIsNone(entry.run("HOTKEYS STOP"))
        self.assertIn("METRICS parameter is required", entry.refusal("HOTKEYS START"))
        self.assertEqual("OK", entry.run("HOTKEYS START METRICS 1 NET SAMPLE 1"))
        self.assertIn("already in progress", self.everyone[2].refusal("HOTKEYS START METRICS 1 NET"))
        for _ in range(50):
            for row in "ahz":
                self.any().run("CPUT", "t", row, "f:x", "v" * 200)
        for member in self.everyone:
            told = member.run("HOTKEYS GET")
            self.assertEqual(3, len(told))
            rows = {name for each in told for name in pairs(each)["by-net-bytes"][::2]}
            self.assertLessEqual({"t:a", "t:h", "t:z"}, rows, told)
            self.assertEqual(1, len(member.run("HOTKEYS GET LOCAL")))
        self.assertIn("stop tracking first", entry.refusal("HOTKEYS RESET"))
        self.assertEqual("OK", entry.run("HOTKEYS STOP"))
        self.assertEqual("OK", self.everyone[0].run("HOTKEYS RESET"))
        for member in self.everyone:
            self.assertIsNone(member.run("HOTKEYS GET LOCAL"))
        self.assertIn("wrong number of arguments for 'hotkeys|get'", entry.refusal("HOTKEYS GET all"))

    def test_where_members_are(self):
        self.cluster(2)
        first, second = self.everyone
        for member, zone in ((first, "north"), (second, "south")):
            self.assertEqual("OK", member.run("CONFIG", "SET", "cluster-zone", zone, "cluster-machine", zone + "-7"))

        def places(member):
            return [[(one["zone"], one["machine"]) for one in map(pairs, each["members"])] for each in self.told_sets(member)]
        for member in self.everyone:
            self.wait_until(lambda member=member: places(member) == [[("north", "north-7")], [("south", "south-7")]],
                            lambda member=member: str(self.told_sets(member)))
            for each in self.told_sets(member):
                self.assertLessEqual(each["load"], 100)
                self.assertEqual(0, each["jobs"])
        self.assertIn("at most 64 bytes", first.refusal("CONFIG", "SET", "cluster-zone", "x" * 65))
        three = self.new_set(3, join=[first])
        self.sets.append(three)
        self.admit(2)
        self.wait_until(lambda: "Members of set 2 are in one place: machine" in first.server.log(), first.server.log)

    def test_a_set_of_three_fails_over(self):
        first = self.new_set()
        first[0].run("CLUSTER INIT")
        self.sets = [first, self.new_set(3, join=first, cluster_wait=20000)]
        self.everyone = sum(self.sets, [])
        first[0].run("CONFIG SET cluster-wait 20000")
        self.admit(1)
        self.any().run("TABLE CREATE t SPLIT AT 1 m FAMILY f VERSIONS 1")
        entry = first[0]
        rows = [row for row in "az" if entry.run("TABLET", "ROUTE", "t", row)[1] == 1]
        number = 0
        for _ in range(3):
            leader = self.wait_leader(self.sets[1])
            leader.server.kill()
            for _ in range(20):
                number += 1
                told = entry.refusal("CPUT", "t", rows[0], "f:n", str(number))
                if "Connection" in told:  # it was under way: nobody knows
                    entry.connect()
                    continue
                self.assertEqual("no error: OK", told)
                self.assertEqual(str(number), entry.run("CGET", "t", rows[0], "f:n"))
            leader.server.start()
            leader.connect()
            self.wait_until(lambda: self.is_whole(self.sets[1]), leader.server.log)
        self.assert_equal(self.sets[1])


if __name__ == "__main__":
    unittest.main()
