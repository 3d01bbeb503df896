"""The explicit-state models of what sets of a cluster say to each other (tests/cluster/*_model.py)."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))

import catalog_model  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
