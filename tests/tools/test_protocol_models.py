"""The explicit-state models of what sets of a cluster say to each other (tests/cluster/*_model.py)."""

import os
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))

import catalog_model  # noqa: E402
import cut_model  # noqa: E402
import move_model  # noqa: E402


class CatalogModel(unittest.TestCase):
    def test_without_a_fault(self):
        for expires in (False, True):
            states, _ = catalog_model.check(expires=expires)
            self.assertGreater(states, 100)

    def test_each_fault_is_found(self):
        for fault in catalog_model.FAULTS:
            with self.subTest(fault):
                found = [catalog_model.check(fault, expires)[0] for expires in (False, True)]
                self.assertTrue(any(isinstance(each, str) for each in found), found)


class CutModel(unittest.TestCase):
    def test_without_a_fault(self):
        states, _ = cut_model.check()
        self.assertGreater(states, 100_000)

    def test_each_fault_is_found(self):
        for fault in cut_model.FAULTS:
            with self.subTest(fault):
                self.assertIsInstance(cut_model.check(fault)[0], str)


class MoveModel(unittest.TestCase):
    def test_without_a_fault(self):
        for owner in (0, 1):
            for jobs, writes, changes, attempts in ((1, 1, 1, 2), (1, 0, 1, 3), (1, 2, 1, 2), (2, 1, 0, 2)):
                states, found = move_model.check("", jobs, writes, changes, attempts, owner)
                self.assertEqual("", found)
                self.assertGreater(states, 10_000)

    def test_a_set_is_lost(self):
        for owner in (0, 1):
            for jobs, writes, changes, attempts, adoptions, sets in (
                    (1, 1, 1, 1, 1, 3), (1, 1, 0, 2, 1, 3), (2, 0, 0, 1, 1, 3), (1, 0, 0, 1, 2, 3), (1, 0, 0, 1, 1, 4)):
                with unittest.mock.patch.object(move_model, "SETS", sets):
                    states, found = move_model.check("", jobs, writes, changes, attempts, owner, loses=1, adoptions=adoptions)
                self.assertEqual("", found)
                self.assertGreater(states, 3_000)
        self.assertEqual("", move_model.check("", 2, 1, 0, 1, owner=0, loses=1)[1])

    # Where a set may be lost: jobs, attempts, owner, adoptions, and what is found.
    OF_A_LOSS = {
        "reclaim-early": (1, 1, 1, 1, "two owners"),
        "reclaim-same-epoch": (1, 1, 1, 1, "no end can be reached"),
        "adopt-unasked": (1, 1, 1, 1, "what was not lost is adopted"),
        "adopt-beside-jobs": (1, 1, 1, 2, "what was not lost is adopted"),
        "job-beside-jobs": (2, 2, 0, 1, "two owners"),
        "moved-unheard": (1, 1, 1, 1, "no end can be reached"),
    }

    def test_each_fault_is_found(self):
        for fault in move_model.FAULTS:
            with self.subTest(fault):
                if fault in self.OF_A_LOSS:
                    jobs, attempts, owner, adoptions, what = self.OF_A_LOSS[fault]
                    found = move_model.check(fault, jobs, 0, 0, attempts, owner, loses=1, adoptions=adoptions)[1]
                    self.assertEqual(what, found)
                    continue
                sizes = (3, 0, 0, 2) if fault == "no-floor" else (1, 1, 1, 3 if fault == "restart-unbinds" else 2)
                self.assertNotEqual("", move_model.check(fault, *sizes)[1])


if __name__ == "__main__":
    unittest.main()
