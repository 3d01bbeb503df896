"""The server against the naive model of tests/model: same random commands, same replies.

CELLAR_MODEL_COMMANDS (200,000 together) and CELLAR_MODEL_SEED (printed) choose the run. Longer runs:
python3 tests/model/soak.py --minutes 60.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from model import soak  # noqa: E402

COMMANDS = int(os.environ.get('CELLAR_MODEL_COMMANDS', '200000'))
SEED = int(os.environ.get('CELLAR_MODEL_SEED', '1'))
SEEDS_PER_PROTOCOL = 3


class ModelTest(unittest.TestCase):
    """One seed starts from an empty server; several make different schemas meet."""

    def drive(self, protocol, commands=COMMANDS // 3, follows=False, strangers=False):
        protocols = soak.PROTOCOLS[protocol]
        for number in range(SEEDS_PER_PROTOCOL):
            seed = SEED + number
            with self.subTest(seed=seed, protocol=protocol):
                try:
                    soak.run(seed, commands // SEEDS_PER_PROTOCOL, protocols, follows=follows, strangers=strangers)
                except soak.Failure as failure:
                    shrunk = soak.shrunk(failure, protocols, follows=follows, strangers=strangers)
                    self.fail(shrunk.report())

    def test_the_server_answers_as_the_model_over_resp2(self):
        self.drive('2')

    def test_the_server_answers_as_the_model_over_resp3(self):
        self.drive('3')

    def test_the_server_answers_as_the_model_to_clients_of_both(self):
        self.drive('both')

    def test_a_replica_has_what_the_model_has(self):
        """It is killed, stopped, and takes the lead in between."""
        self.drive('both', COMMANDS // 20, follows=True)

    def test_rows_of_another_set_are_not_there(self):
        """As if tablets had been given away, or were on their way in."""
        self.drive('both', COMMANDS // 10, strangers=True)


if __name__ == '__main__':
    unittest.main()
