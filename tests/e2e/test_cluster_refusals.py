"""What a cluster of several sets refuses, and what it says where something was done."""

import re

import redis

from cluster_sets import SetsCase, pairs

OWN = ("tablets", "sets", "options", "jobs", "events", "catalog", "cuts")


class Refusals(SetsCase):
    def start(self, sets=3):
        self.cluster(sets)
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 2, "h", "p", "FAMILY", "f")

    def test_copies_into_the_clusters_own_keyspace(self):
        self.start()
        self.lead(self.sets[0], "CLUSTER", "CUT")
        self.any().run("CPUT", "t", "7", "f:a", "1")
        self.any().run("SNAPSHOT CREATE s")
        kept = {name: self.any().run("CCOUNT", f"_cluster/{name}") for name in OWN if name not in ("jobs", "options", "catalog", "events")}
        for member in self.everyone:
            for source in ("t", "t@s"):
                for name in (*OWN, "new"):
                    plain = [["COPY", source, name, "DB", "_cluster"]] if name == "new" else []
                    for words in (*plain, ["COPY", source, name, "DB", "_cluster", "REPLACE"], ["COPY", source, f"_cluster/{name}", "REPLACE"]):
                        self.assertIn("keyspace '_cluster' is the cluster's own", member.refusal(*words), words)
        for name, count in kept.items():
            if name != "cuts":
                self.assertEqual(count, self.any().run("CCOUNT", f"_cluster/{name}"))
        self.assertEqual(sorted(["t"]), sorted(self.any().run("KEYS", "*")))
        self.assertEqual([], self.lead(self.sets[0], "CLUSTER", "MAP", "CHECK"))
        # There are no snapshots of it, and so no copies.
        self.assertIn("keyspace '_cluster' is the cluster's own", self.any().refusal("COPY", "_cluster/sets", "mine", "DB", 0))

    def test_restore_points_stay(self):
        """Cuts that readers make take no place from those that were made to be recovered to."""
        self.start(2)
        points = [self.lead(self.sets[0], "CLUSTER", "CUT") for _ in range(3)]
        pipe = self.any().redis.pipeline(transaction=False)
        for _ in range(300):
            pipe.execute_command("CSCAN", "t", 0, "SNAPSHOT")
        pipe.execute()
        told = [pairs(each) for each in self.lead(self.sets[0], "CLUSTER", "CUTS", "COUNT", 10_000)]
        self.assertEqual(points[::-1], [each["cut"] for each in told if each["purpose"] == "restore point"])
        self.assertLessEqual(len(told), 200 + 3 + 32)
        self.assertGreaterEqual(len(told), 200)

    def test_what_was_changed_before_an_error(self):
        """An error of a change that goes over all sets says how many rows all of them have changed."""
        self.start()
        for row in "ablyz":
            self.any().run("CPUT", "t", row, "f:n", 5, "TS", 5)
        self.any().run("CPUT", "t", "k", "f:n", "x", "TS", 5)
        for member in self.everyone:
            before = {row: int(self.any().run("CGET", "t", row, "f:n")) for row in "abyzl"}
            said = member.refusal("CUPDATE", "t", "ALL", "INCR", "f:n", 1)
            now = {row: int(self.any().run("CGET", "t", row, "f:n")) for row in "abyzl"}
            changed = sum(now[row] - before[row] for row in now)
            self.assertEqual(4, changed)
            self.assertRegex(said, "WRONGTYPE row 'k': .* after 4 rows$")
        self.sets[2][0].run("CONFIG", "SET", "maxmemory", 1)
        said = self.sets[0][0].refusal("CUPDATE", "t", "ALL", "PUT", "f:q", 1)
        changed = sum(self.any().run("CEXISTS", "t", row, "f:q") for row in "abklyz")
        self.assertRegex(said, f"OOM .* after {changed} rows$")
        self.assertLess(0, changed)
        self.sets[2][0].run("CONFIG", "SET", "maxmemory", 0)
        self.assertEqual(6, self.any().run("CUPDATE", "t", "ALL", "PUT", "f:r", 1))
        # What only reads says nothing of the kind.
        self.assertNotIn("after", self.any().refusal("CCOUNT", "t", "WHERE", "f:n", "GE"))

    def test_a_set_that_waits(self):
        self.start(2)
        waiting = self.new_set(join=self.sets[0])[0]
        for words in (["CLUSTER", "INIT"], ["CLUSTER", "INIT"]):
            self.assertRegex(waiting.refusal(*words), "waits to be taken into another cluster .cluster-join .*CLUSTER ADMIT it there")
        self.sets.append([waiting])
        self.admit(2)
        self.everyone.append(waiting)
        self.assertIn("no set at 'nobody:1' has asked", self.lead_refusal("CLUSTER", "ADMIT", "nobody:1"))
        self.assertIn("no set at '' has asked", self.lead_refusal("CLUSTER", "ADMIT", ""))

    def lead_refusal(self, *words):
        return self.wait_leader(self.sets[0]).refusal(*words)

    def test_watching_inside_a_transaction(self):
        self.start()
        for member in self.everyone:
            client = redis.Redis(port=member.port, decode_responses=True, single_connection_client=True)
            for words in (["CWATCH", "t", "a"], ["CWATCH", "t", "k"], ["CWATCH", "t", "z"], ["WATCH", "t"], ["WATCH", "none"]):
                client.execute_command("MULTI")
                with self.assertRaisesRegex(redis.ResponseError, f"{words[0]} inside MULTI is not allowed"):
                    client.execute_command(*words)
                client.execute_command("CPUT", "t", "k", "f:x", "1")
                self.assertEqual(1, len(client.execute_command("EXEC")), words)
            client.close()

    def test_what_errors_name(self):
        self.start()
        for number, members in enumerate(self.sets):
            self.assertIn(f"this set is set {number} of a cluster", members[0].refusal("CLUSTER", "INIT"))
        owners = {row: int(pairs(self.any().run("TABLET", "ROUTE", "t", row))["set"]) for row in "ahp"}
        for row, following in (("a", "h"), ("h", "p")):
            self.assertNotEqual(owners[row], owners[following])
            for member in self.everyone:
                self.assertIn(f"the next tablet is set {owners[following]}'s: TABLET MOVE first", member.refusal("TABLET", "MERGE", "t", row))
        for member in self.everyone:
            said = member.refusal("CSCAN", "t", 0, "SNAPSHOT", "COLUMNS", 1, "none")
            self.assertIn("no family 'none'", said)
            self.assertNotIn("#", said)
            self.assertIn("TABLET MOVE its tablets to set 0 first", member.refusal("TABLE", "ALTER", "t", "WHOLE"))
        for row in "ahp":
            if owners[row]:
                self.any().run("TABLET", "MOVE", "t", row, "TO", 0, "WAIT", 30_000)
        self.wait_until(lambda: self.any().refusal("TABLE", "ALTER", "t", "WHOLE").startswith("no error"), "it does not become whole")
        self.any().run("INDEX", "CREATE", "t", "u", "ON", 1, "f:a", "UNIQUE")

    def test_words_of_feeds(self):
        self.start()
        self.any().run("FEED CREATE f ON 1 t")
        for member in self.everyone:
            for words in (["XADD", "f", "*", "a", "1"], ["XDEL", "f", "1-1"], ["XTRIM", "f", "MAXLEN", 1], ["XSETID", "f", "1-1"]):
                said = member.refusal(*words)
                self.assertFalse(re.search("CROSSSET|read f@0", said), said)
