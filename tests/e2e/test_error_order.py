"""Two errors at once: every pair of them over every command that reads or changes a range of rows, in the words' order
and the other way round, and CEXPLAIN of it, which says the same.

The order is that of cellar-commands(7), ERRORS: syntax of the whole command; NOTABLE, NOINDEX; rows, families,
qualifiers, values from left to right; BADFILTER; what an index that is not ready says.
"""

import itertools
import unittest

from cellar_server import CellarTest

SYNTAX, TABLE, INDEX, NAMES, FILTER, READY = range(6)


class Wrong:
    """`words` stand among the options, or take the place of the table, row or column."""

    def __init__(self, rank, code, *words, place=None, slot=None):
        self.rank, self.code, self.words, self.place, self.slot = rank, code, list(words), place, slot or words[0]

    def __repr__(self):
        return " ".join(self.words)


NO_TABLE = Wrong(TABLE, "NOTABLE", "nix", place="table")
CELLS = [
    Wrong(SYNTAX, "ERR", "VERSIONS", "x"), Wrong(SYNTAX, "ERR", "NIX"), Wrong(SYNTAX, "ERR", "PERROW", "0"),
    Wrong(NAMES, "NOFAMILY", "COLUMNS", "1", "nix"), Wrong(NAMES, "NOFAMILY", "COLPREFIX", "nix", "a"),
    Wrong(NAMES, "BADKEY", "COLRANGE", "o", "[x", "+"), Wrong(FILTER, "BADFILTER", "FILTER", "(")]
ROWS = [
    Wrong(SYNTAX, "ERR", "COUNT", "0"), Wrong(SYNTAX, "ERR", "SAMPLE", "7"), Wrong(SYNTAX, "ERR", "WHERE", "f:a", "NIX", "1"),
    Wrong(INDEX, "NOINDEX", "INDEX", "nix", slot="rows"), Wrong(READY, "NOTUNIQUE", "INDEX", "bad", slot="rows"),
    Wrong(READY, "TOOLARGE", "INDEX", "big", slot="rows"), Wrong(READY, "TOOLARGE", "INDEX", "big", "EQ", "1", "x", slot="rows"),
    Wrong(SYNTAX, "ERR", "INDEX", "num", "BETWEEN", "1", "2", slot="rows"),
    Wrong(NAMES, "BADVALUE", "INDEX", "num", "BETWEEN", "[x", "+", slot="rows"),
    Wrong(NAMES, "BADVALUE", "INDEX", "num", "EQ", "1", "x", slot="rows"),
    Wrong(NAMES, "ERR", "INDEX", "num", "EQ", "2", "1", "2", slot="rows"),
    Wrong(NAMES, "BADKEY", "PREFIX", "x", slot="rows"), Wrong(NAMES, "BADKEY", "RANGE", "[x", "+", slot="rows"),
    Wrong(NAMES, "BADKEY", "ROWS", "1", "x", slot="rows"), Wrong(NAMES, "NOFAMILY", "WHERE", "nix:a", "EQ", "1"),
    Wrong(FILTER, "BADFILTER", "WHERE", "FILTER", "("), Wrong(SYNTAX, "ERR", "EACH", "0", "1"),
    Wrong(NAMES, "ERR", "EACH", "7", "1")]
GROUPS = [
    Wrong(SYNTAX, "ERR", "BY", "NIX"), Wrong(SYNTAX, "ERR", "BY", "VALUE", "f:a", "STEP", "0"),
    Wrong(SYNTAX, "ERR", "BY", "PART", "1", "STEP", "x"), Wrong(SYNTAX, "ERR", "REDUCE", "NIX", "f"),
    Wrong(SYNTAX, "ERR", "LIMIT", "0", "0"), Wrong(SYNTAX, "ERR", "BY", "TIME", "0"),
    Wrong(NAMES, "ERR", "BY", "PART", "7"), Wrong(NAMES, "ERR", "BY", "PART", "1", "STEP", "0.5"),
    Wrong(NAMES, "NOFAMILY", "BY", "VALUE", "nix:a"), Wrong(NAMES, "NOFAMILY", "REDUCE", "SUM", "nix"),
    Wrong(NAMES, "NOFAMILY", "REDUCE", "SUM", "nix:a"), Wrong(NAMES, "BADKEY", "REDUCE", "SUM", "o:x"),
    Wrong(NAMES, "BADVALUE", "REDUCE", "QUANTILE", "f", "1", "7"),
    Wrong(NAMES, "BADVALUE", "REDUCE", "HISTOGRAM", "f", "2", "2", "1"), Wrong(NAMES, "ERR", "SORT", "nix"),
    Wrong(NAMES, "ERR", "REDUCE", "QUANTILE", "*", "1", "0.5", "AS", "n1", "SORT", "n1", slot="SORT"),
    Wrong(NAMES, "ERR", "REDUCE", "COUNT", "f", "AS", "twice", "REDUCE", "SUM", "f", "AS", "twice"),
    Wrong(NAMES, "TOOLARGE", "REDUCE", "QUANTILE", "f", "33", *["0.5"] * 33),
    Wrong(NAMES, "TOOLARGE", "REDUCE", "HISTOGRAM", "f", "1001", *map(str, range(1001)))]
ROW = Wrong(NAMES, "BADKEY", "x", place="row")
COLUMN = Wrong(NAMES, "NOFAMILY", "nix:a", place="column")

COMMANDS = {
    ("CSCAN", "{table}", "0"): CELLS + ROWS, ("CCOUNT", "{table}"): CELLS + ROWS,
    ("CAGG", "{table}", "REDUCE", "COUNT", "*"): CELLS + ROWS + GROUPS,
    ("CAGG", "{table}", "REDUCE", "MAX", "f:a"): CELLS + ROWS + GROUPS,
    ("CUPDATE", "{table}", "{rows}", "{ops}"): [
        wrong for wrong in ROWS if wrong.words[0] in ("WHERE", "INDEX", "PREFIX", "RANGE", "ROWS")] + [
            Wrong(SYNTAX, "ERR", "LIMIT", "0"), Wrong(SYNTAX, "ERR", "PUT", "f:a", "1", "AS", "nix"),
            Wrong(SYNTAX, "ERR", "PUT", "nocolon", "1"), Wrong(NAMES, "NOFAMILY", "PUT", "nix:a", "1"),
            Wrong(NAMES, "BADKEY", "PUT", "o:x", "1"), Wrong(NAMES, "BADVALUE", "PUT", "f:a", "x", "AS", "u8")],
    ("CDELRANGE", "{table}"): [wrong for wrong in ROWS if wrong.words[0] in ("PREFIX", "RANGE")] + [
        Wrong(SYNTAX, "ERR", "RANGE", "x", "+", slot="rows"), Wrong(SYNTAX, "ERR", "NIX", slot="rows")],
    ("CROW", "{table}", "{row}"): CELLS + [ROW], ("CROWS", "{table}", "2", "1", "{row}"): CELLS + [ROW],
    ("CGET", "{table}", "{row}", "{column}"): [ROW, COLUMN, Wrong(SYNTAX, "ERR", "AT", "x"), Wrong(SYNTAX, "ERR", "NIX")],
    ("CMGET", "{table}", "{row}", "{column}"): [ROW, COLUMN, Wrong(SYNTAX, "ERR", "nocolon")],
    ("CEXISTS", "{table}", "{row}", "{column}"): [ROW, COLUMN],
    ("CNEAR", "{table}", "{row}"): [ROW],
}
CODES = {"NOTABLE", "NOINDEX", "NOFAMILY", "BADKEY", "BADVALUE", "BADFILTER", "NOTUNIQUE", "TRYAGAIN", "TOOLARGE"}
GOOD = {"table": "t", "row": "1", "column": "f:a"}


class ErrorOrderTest(CellarTest):
    def words(self, command, wrongs):
        places = dict(GOOD, **{wrong.place: wrong.words[0] for wrong in wrongs if wrong.place})
        words = [word.format(**places) for word in command if word not in ("{rows}", "{ops}")]
        if "{ops}" in command:
            return self.update(words, wrongs)
        for wrong in wrongs:
            if wrong.place is None:
                words += wrong.words
        return words + ["ALL"] if words == ["CDELRANGE", places["table"]] else words

    @staticmethod
    def update(words, wrongs):
        """Rows and conditions stand in front, then what is done."""
        fronts = [wrong.words for wrong in wrongs if wrong.place is None and wrong.slot == "rows"]
        options = [wrong.words for wrong in wrongs if wrong.place is None and wrong.slot in ("WHERE", "LIMIT")]
        changes = [wrong.words for wrong in wrongs if wrong.place is None and wrong.slot == "PUT"]
        return sum(fronts or [["ALL"]], words) + sum(options, []) + sum(changes or [["PUT", "f:a", "5"]], [])

    def code(self, words):
        try:
            self.redis.execute_command(*words)
            return None
        except Exception as error:
            first = str(error).split(" ", 1)[0]
            return first if first in CODES else "ERR"  # which redis-py takes away

    def test_every_pair(self):
        for words in (["TABLE", "CREATE", "t", "KEY", "u64", "FAMILY", "f", "FAMILY", "o", "ORDER", "u64"],
                      ["CPUT", "t", "1", "f:a", "5"], ["CPUT", "t", "2", "f:a", "5"],
                      ["CPUT", "t", "3", "f:big", "x" * 70_000],
                      ["INDEX", "CREATE", "t", "bad", "ON", "1", "f:a", "UNIQUE"],
                      ["INDEX", "CREATE", "t", "big", "ON", "1", "f:big"],
                      ["INDEX", "CREATE", "t", "num", "ON", "1", "f:n", "AS", "i64"]):
            self.redis.execute_command(*words)
        for index in ("bad", "big", "num"):
            while b"building" in self.redis.execute_command("INDEX", "INFO", "t", index):
                pass
        pairs = 0
        strange = []
        for command, wrongs in COMMANDS.items():
            wrongs = wrongs + [NO_TABLE]
            explained = [command] if command[0] in ("CNEAR", "CDELRANGE") else [command, ("CEXPLAIN",) + command]
            for each in explained:
                for wrong in wrongs:
                    self.assertEqual(self.code(self.words(each, [wrong])), wrong.code, (each, wrong))
                for a, b in itertools.permutations(wrongs, 2):
                    if a.place and a.place == b.place or (a.slot == b.slot and a.slot not in ("BY", "REDUCE", "WHERE")):
                        continue
                    # An index beside rows is syntax; so is what a command has once, twice.
                    first = min(a.rank, b.rank)
                    expected = {wrong.code for wrong in (a, b) if wrong.rank == first}
                    got = self.code(self.words(each, [a, b]))
                    if got not in expected:
                        strange.append("%s: %s, not %s" % (" ".join(self.words(each, [a, b])), got, expected))
                    pairs += 1
        self.assertEqual(strange, [])
        self.assertGreater(pairs, 9000)


if __name__ == "__main__":
    unittest.main()
