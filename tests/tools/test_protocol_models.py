"""The explicit-state models of what sets of a cluster say to each other (tests/cluster/*_model.py)."""

import os
import sys
import unittest

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

    def test_each_fault_is_found(self):
        for fault in move_model.FAULTS:
            with self.subTest(fault):
                sizes = (3, 0, 0, 2) if fault == "no-floor" else (1, 1, 1, 3 if fault == "restart-unbinds" else 2)
                self.assertNotEqual("", move_model.check(fault, *sizes)[1])


if __name__ == "__main__":
    unittest.main()
