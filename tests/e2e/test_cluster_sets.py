"""A cluster of several sets: how they join it, one schema everywhere, rows that any node reaches."""

import os
import random
import socket
import sys
import threading
import time
import unittest

import redis

from cellar_server import ROOT
from cluster_sets import SetsCase, pairs

sys.path.insert(0, os.path.join(ROOT, "tests"))

ROUNDS = int(os.environ.get("CELLAR_SETS_ROUNDS", "6"))
SEED = int(os.environ.get("CELLAR_SETS_SEED", "0"))


class Joining(SetsCase):
    def test_a_set_asks_and_is_admitted(self):
        first = self.new_set()
        director = first[0]
        self.assertIn("cluster support disabled", director.refusal("CLUSTER ADMIT 127.0.0.1:1"))
        director.run("CLUSTER INIT")
        second = self.new_set(join=first)[0]
        self.assertIn("no set at 127.0.0.1:1 has asked", director.refusal("CLUSTER ADMIT 127.0.0.1:1"))
        self.wait_until(lambda: len(self.told_sets(director)) == 2, director.server.log)
        waiting = self.told_sets(director)[1]
        self.assertEqual((None, "waiting", f"127.0.0.1:{second.port}"),
                         (waiting["set"], waiting["state"], waiting["leader"]))
        self.assertEqual("OK", director.run("CLUSTER", "ADMIT", waiting["id"]))
        self.wait_until(lambda: self.sees(second, 2), second.server.log)
        self.assertEqual([0, 1], [each["set"] for each in self.told_sets(second)])
        self.assertIn("no set at", director.refusal("CLUSTER", "ADMIT", waiting["id"]))
        self.assertIn("is set 1", str(director.run("CLUSTER EVENTS COUNT 1")))
        self.assertEqual([], director.run("CLUSTER MAP CHECK"))
        self.assertIn("the cluster has 2 sets", director.refusal("CLUSTER END"))

    def test_a_set_with_tables_is_refused_by_their_names(self):
        first = self.new_set()
        first[0].run("CLUSTER INIT")
        second = self.new_set(join=first)[0]
        second.run("TABLE CREATE mine FAMILY f")
        second.run("CPUT mine r f:x 1")
        name = f"127.0.0.1:{second.port}"
        self.wait_until(lambda: "0/mine" in first[0].refusal("CLUSTER", "ADMIT", name),
                        lambda: first[0].refusal("CLUSTER", "ADMIT", name))
        self.assertEqual("1", second.run("CGET mine r f:x"))
        second.run("DEL mine")
        self.wait_until(lambda: "tables that were dropped" in first[0].refusal("CLUSTER", "ADMIT", name),
                        lambda: first[0].refusal("CLUSTER", "ADMIT", name))

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

    def test_feeds_and_snapshots_keep_others_out(self):
        first = self.new_set()
        first[0].run("CLUSTER INIT")
        first[0].run("TABLE CREATE t FAMILY f")
        first[0].run("FEED CREATE changes ON 1 t")
        second = self.new_set(join=first)[0]
        name = f"127.0.0.1:{second.port}"
        self.wait_until(lambda: "feed 'changes' belongs to one set" in first[0].refusal("CLUSTER", "ADMIT", name),
                        lambda: first[0].refusal("CLUSTER", "ADMIT", name))


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

    def test_what_is_not_over_several_sets_is_refused(self):
        self.cluster(2)
        for words in ("FEED CREATE changes ON 1 t", "SNAPSHOT CREATE s", "COPY t u"):
            self.any().run("TABLE CREATE t SPLIT AT 1 m FAMILY f")
            before = self.catalog(self.everyone[0])
            for member in self.everyone:
                self.assertIn("CROSSSET", member.refusal(*words.split()), words)
            self.assertEqual([before, before], [self.catalog(member) for member in self.everyone])
            self.any().run("DEL t")

    def test_what_rows_of_others_would_be_looked_at_for_is_refused(self):
        self.cluster(2)
        self.any().run("TABLE CREATE t KEY utf8/u64 SPLIT AT 1 m FAMILY f VERSIONS 1")
        self.any().run("TABLE CREATE w KEY utf8/u64 WHOLE FAMILY f")
        for row in ("a/1", "z/1"):
            for value in "123":
                self.any().run("CPUT", "t", row, "f:x", value)
        before = [self.catalog(member) for member in self.everyone]
        for words in ("FAMILY ALTER t f VERSIONS 3", "FAMILY ALTER t f TYPE i64", "FAMILY ALTER t f TYPE i64 CONVERT",
                      "TABLE ALTER t WHOLE", "TABLE ALTER t COLOCATE 1"):
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
        time.sleep(0.5)
        stop.set()
        thread.join()
        self.assertGreater(len(told), 2)

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

    def test_rows_of_others_are_not_missing_after_a_start(self):
        self.cluster(3)
        self.any().run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        for row in "ahp":
            self.any().run("CPUT", "t", row, "f:x", row)
        for member in self.everyone:
            for _ in range(3):
                self.restart(member)
                told = set()
                for _ in range(30):
                    for row in "ahp":
                        told.add((row, member.refusal("CGET", "t", row, "f:x")))
                    told.add(("all", member.refusal("CCOUNT t")))
                    if all((row, "no error: " + row) in told for row in "ahp") and ("all", "no error: 3") in told:
                        break
                    time.sleep(0.1)
                answers = {(row, text) for row, text in told if text.startswith("no error")}
                self.assertEqual({("a", "no error: a"), ("h", "no error: h"), ("p", "no error: p"), ("all", "no error: 3")},
                                 answers, told)
        self.assertEqual(3, self.any().run("CCOUNT t"))

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
