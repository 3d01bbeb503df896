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

    def drive(self, protocol):
        protocols = soak.PROTOCOLS[protocol]
        for number in range(SEEDS_PER_PROTOCOL):
            seed = SEED + number
            with self.subTest(seed=seed, protocol=protocol):
                try:
                    soak.run(seed, COMMANDS // (3 * SEEDS_PER_PROTOCOL), protocols)
                except soak.Failure as failure:
                    self.fail(soak.shrunk(failure, protocols).report())

    def test_the_server_answers_as_the_model_over_resp2(self):
        self.drive('2')

    def test_the_server_answers_as_the_model_over_resp3(self):
        self.drive('3')

    def test_the_server_answers_as_the_model_to_clients_of_both(self):
        self.drive('both')


if __name__ == '__main__':
    unittest.main()
