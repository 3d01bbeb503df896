"""tools/man.py reads a configuration file's own comments."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))

import man  # noqa: E402

CONF = """# The configuration of it.
#
# Second paragraph.

# --- Network ---

# Where to listen. A name such as - this.
bind 127.0.0.1

# Commented out, and twice.
# save 3600 1
# save 300 100

# ------------------------- Data --------------------------
# Where it is.
dir .
"""


class ManTest(unittest.TestCase):
    def test_entries(self):
        entries = man.parse_conf(CONF)
        self.assertEqual([(None, []), ("Network", ["bind 127.0.0.1"]), ("Network", ["save 3600 1", "save 300 100"]),
                          ("Data", ["dir ."])], [(section, settings) for section, _, settings in entries])
        self.assertEqual(["Where to listen. A name such as - this."], entries[1][1])

    def test_the_page(self):
        page = man.conf_page(CONF)
        for line in (".SH NETWORK", "\\fBbind\\fR 127.0.0.1", "Second paragraph.", "\\fBsave\\fR 300 100", ".SH DATA"):
            self.assertIn(line + "\n", page)

    def test_roff_takes_text_literally(self):
        self.assertEqual("\\&.a \\-b \\e", man.roff(".a -b \\"))


if __name__ == "__main__":
    unittest.main()
