"""Tests of what tools/bench makes of its measurements; no server is started."""

import os
import sys
import unittest
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "bench"))

import bench  # noqa: E402
import figures  # noqa: E402
import memory  # noqa: E402
import pairs  # noqa: E402


def result(ops, cpu, p99=3.0, errors=0):
    """What cellar-benchmark writes, as far as the tables need it."""
    return {"commands_per_second": ops, "server_cpu_us_per_command": cpu, "errors": errors,
            "latency_us": {"p50": 1.0, "p99": p99, "p99.9": 9.0}}


class Options:
    def __init__(self, only=(), skip=()):
        self.only, self.skip, self.keys, self.full = list(only), list(skip), 1000, False


class FiguresTest(unittest.TestCase):
    def test_a_row_has_medians_and_ratios(self):
        row = figures.summarize_pair("CPUT / HSET", 16, [result(100, 1.0), result(300, 3.0), result(200, 2.0)],
                                     [result(100, 4.0)] * 3)
        self.assertEqual(row["cellar"]["ops"], 200)
        self.assertEqual(row["cellar"]["cpu"], 2.0)
        self.assertEqual(row["cpu_ratio"], 0.5)
        self.assertEqual(row["ops_ratio"], 2.0)

    def test_one_slow_repetition_does_not_move_a_median(self):
        self.assertEqual(figures.median_of([result(1, 1.0, p99=p) for p in (2, 1000, 3)], "latency_us/p99"), 3)

    def test_a_missing_server_leaves_dashes(self):
        row = figures.summarize_pair("PING", 1, None, [result(100, 4.0)])
        cells = figures.pair_cells(row)
        self.assertEqual(len(cells), len(figures.PAIR_HEADER))
        self.assertEqual(cells[2], "-")
        self.assertEqual(cells[-1], "-")

    def test_errors_are_shown(self):
        row = figures.summarize_pair("PING", 1, [result(1, 1.0, errors=2)], [result(100, 4.0)])
        self.assertIn("ERRORS", figures.pair_cells(row)[0])

    def test_an_unknown_figure_has_no_ratio(self):
        self.assertIsNone(figures.ratio(None, 1))
        self.assertIsNone(figures.ratio(-1, 1))
        self.assertIsNone(figures.ratio(1, 0))
        self.assertEqual(figures.ratio(1, 4), 0.25)

    def test_markdown_and_plain_tables_have_a_line_each(self):
        rows = [["a", "1"], ["bcd", "22"]]
        self.assertEqual(figures.markdown(["x", "y"], rows).splitlines()[-1], "| bcd | 22 |")
        self.assertEqual(figures.plain(["x", "y"], rows).splitlines()[-1], "bcd  22")

    def test_the_plot_is_well_formed(self):
        root = xml.etree.ElementTree.fromstring(figures.svg_bars("A < B", [("x & y", 0.5), ("z", 2.0)]))
        self.assertEqual(sum(1 for e in root if e.tag.endswith("rect")), 2)

    def test_start_up_cancels_out_of_instruction_counts(self):
        self.assertEqual(figures.instructions_each(1000000 + 20 * 300, 1000000 + 40 * 300, 20, 40), 300)
        with self.assertRaises(ValueError):
            figures.instructions_each(1, 2, 20, 20)

    def test_the_total_is_found_in_a_callgrind_file(self):
        self.assertEqual(figures.callgrind_total("version: 1\nevents: Ir\nsummary: 123\n"), 123)
        self.assertEqual(figures.callgrind_total("events: Ir\ntotals: 77\n"), 77)
        with self.assertRaises(ValueError):
            figures.callgrind_total("events: Ir\n")


class SelectionTest(unittest.TestCase):
    def test_only_and_skip_select_parts_and_pairs(self):
        self.assertTrue(bench.wanted(Options(), "pairs", "PING"))
        self.assertTrue(bench.wanted(Options(only=["ping"]), "pairs", "PING"))
        self.assertFalse(bench.wanted(Options(only=["scan"]), "pairs", "PING"))
        self.assertFalse(bench.wanted(Options(skip=["PING"]), "pairs", "PING"))
        self.assertTrue(bench.wanted(Options(only=["pairs"]), "pairs", "CGET / HGET"))

    def test_every_pair_has_commands_for_both(self):
        for pair in pairs.PAIRS:
            self.assertEqual(sorted(pair.commands), ["cellar", "redis"])
            self.assertEqual(len(pair.commands["cellar"]), len(pair.commands["redis"]))

    def test_every_memory_case_makes_cells(self):
        for case in memory.cases(Options()):
            self.assertGreater(case.keys * case.cells_per_key, 0)
            self.assertEqual(sorted(case.commands), ["cellar", "redis"])


if __name__ == "__main__":
    unittest.main()
