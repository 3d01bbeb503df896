"""HEAT of a table over several sets: what all of them have counted, at any node."""

import redis

from cluster_sets import pairs
from move_load import MovesCase

LETTERS = "agmsz"


class HeatSets(MovesCase):
    def setUp(self):
        super().setUp()
        self.cluster(3, 1, heat_sample=1)
        self.any().run("TABLE", "CREATE", "t", "SPLIT", "AT", 3, "g", "m", "s", "FAMILY", "f")
        self.lead(self.sets[0], "CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        pipe = self.any().redis.pipeline(transaction=False)
        for number in range(2_000):
            pipe.execute_command("CPUT", "t", f"{LETTERS[number % 5]}{number:05}", "f:x", "v" * 50)
        pipe.execute()

    def heat(self, *words, member=None, table="t"):
        return pairs((member or self.any()).run("HEAT", table, *words))

    def near(self, expected, counted):
        """What was counted by other ranges is shared out, and rounded in each."""
        self.assertLess(abs(expected - counted), expected * 0.1, counted)

    @staticmethod
    def total(heat, metric):
        return sum(map(sum, heat[metric]))

    def test_all_sets_count(self):
        for letter, times in zip(LETTERS, (1, 2, 3, 4, 5)):
            for _ in range(times * 20):
                self.any().run("CGET", "t", f"{letter}0100{LETTERS.index(letter)}", "f:x")
        for member in self.everyone:
            heat = self.heat("RANGES", 16, member=member)
            self.near(2_000, self.total(heat, "writes"))
            self.near(300, self.total(heat, "reads"))
            self.assertEqual({len(heat["keys"])}, {len(step) for metric in ("reads", "writes", "bytes") for step in heat[metric]})
            self.assertEqual(["-", *sorted(heat["keys"][1:])], heat["keys"])
            # Each range is told what was done in it.
            for letter, times in zip(LETTERS, (1, 2, 3, 4, 5)):
                of = [index for index, key in enumerate(heat["keys"]) if key == "-" and letter == "a" or key[0] == letter]
                self.assertLess(times * 20 * 0.6, sum(step[index] for step in heat["reads"] for index in of), (letter, heat["keys"]))
            local = [self.heat("LOCAL", member=each) for each in self.everyone]
            self.near(2_000, sum(self.total(each, "writes") for each in local))
            self.assertLess(self.total(local[0], "writes"), 2_000)

    def test_what_has_moved(self):
        before = self.heat("RANGES", 1)
        owners = self.owners()
        for row, to in (("a", (owners[0] + 1) % 3), ("z", (owners[3] + 1) % 3)):
            self.move(row, to)
        self.wait_purged()
        after = self.heat("RANGES", 1)
        self.assertEqual(self.total(before, "writes"), self.total(after, "writes"))
        self.any().run("CGET", "t", "z00004", "f:x")
        self.assertEqual(1, self.total(self.heat("RANGES", 64), "reads"))

    def test_words(self):
        self.assertEqual(["-", "g", "m5"], self.heat("KEYS", 2, "g", "m5")["keys"])
        self.near(400, sum(step[0] for step in self.heat("KEYS", 1, "b")["writes"]))
        head = self.heat("HEAD", "RANGES", 8)
        self.assertEqual(["table", "from", "step", "keys", "fine"], list(head))
        self.assertEqual(8, len(head["keys"]))
        now = self.heat("RANGES", 1)["from"]
        self.assertEqual(now - now % 900, self.heat("STEP", "15m")["from"])
        self.assertEqual(900, self.heat("STEP", "15m")["step"])
        self.assertEqual(0, self.total(self.heat("TO", (now - 3600) * 1_000_000), "writes"))
        self.near(2_000, self.total(self.heat("FROM", 0), "writes"))
        for words, text in ((("FROM", 20, "TO", 10), "FROM is behind TO"), (("KEYS", 2, "m", "g"), "KEYS must ascend: 'g'"),
                            (("KEYS", 2, "m", "m"), "KEYS must ascend"), (("KEYS", 256), "KEYS must be between 0 and 255"),
                            (("KEYS", 2, "m"), "KEYS"), (("KEYS", -1), "KEYS"), (("RANGES", 257), "RANGES must be between"), (("WHERE",), "'WHERE' is not FROM")):
            for member in self.everyone:
                self.assertIn(text, member.refusal("HEAT", "t", *words))
        self.assertIn("NOTABLE", self.any().refusal("HEAT", "u"))
        pipe = self.any().redis.pipeline(transaction=True)
        pipe.execute_command("HEAT", "t")
        self.assertEqual("table", pipe.execute()[0][0])  # of the node that carries it out

    def test_a_set_that_is_away(self):
        self.sets[2][0].server.kill()
        for member in (self.sets[0][0], self.sets[1][0]):
            member.run("CONFIG SET cluster-wait 300")
            with self.assertRaisesRegex(redis.ResponseError, "CLUSTERDOWN"):
                member.run("HEAT", "t")
            self.assertLess(0, self.total(self.heat("LOCAL", member=member), "writes"))
