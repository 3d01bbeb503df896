"""The model test, seed after seed, for SOAK_SECONDS (`make soak`)."""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests'))

from model import soak  # noqa: E402

if __name__ == '__main__':
    minutes = float(os.environ.get('SOAK_SECONDS', '600')) / 60
    sys.argv += ['--minutes', str(minutes), '--commands', '100000']
    sys.exit(soak.main())
