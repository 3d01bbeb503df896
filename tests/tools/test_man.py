"""tools/man.py reads a configuration file's own comments, and what a program prints for --help."""

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

HELP = """Does a thing.
Usage: thing [OPTIONS] file

Positionals:
  file TEXT REQUIRED          file to read

Options:
  -p,--port UINT:INT in [1 - 65535]=6479
                              port
  --expected-interval-us UINT closed loop
  --ts-unit TEXT:{s,ms}       unit
  -q,--quiet                  say nothing


Workloads:
  ycsb-a      half of each

Placeholders are spelled so.

Exit status: 0 always,
mostly.
"""


class ManTest(unittest.TestCase):
    def test_entries(self):
        entries = man.parse_conf(CONF)
        self.assertEqual([(None, []), ("Network", ["bind 127.0.0.1"]), ("Network", ["save 3600 1", "save 300 100"]),
                          ("Data", ["dir ."])], [(section, settings) for section, _, settings in entries])
        self.assertEqual(["Where to listen. A name such as - this."], entries[1][1])

    def test_the_options_of_a_configuration_file(self):
        page = man.conf_options(CONF)
        for lines in (".Sh NETWORK\n", ".It Cm bind Ar 127.0.0.1\nWhere to listen.\nA name such as \\- this.\n",
                      ".It Cm save Ar 3600 1\n.It Cm save Ar 300 100\nCommented out, and twice.\n", ".Sh DATA\n"):
            self.assertIn(lines, page)
        self.assertNotIn("Second paragraph", page)  # the introduction is the page's own

    def test_the_options_of_a_program(self):
        page = man.help_options(HELP)
        for lines in (".Sh ARGUMENTS\n", ".It Cm file Ar text\nFile to read.\nRequired.\n",
                      ".It Cm \\-p,\\-\\-port Ar number\nPort.\nFrom 1 to 65535.\nDefault: 6479.\n",
                      ".It Cm \\-\\-expected\\-interval\\-us Ar number\nClosed loop.\n",
                      ".It Cm \\-\\-ts\\-unit Ar text\nUnit.\nOne of s, ms.\n",
                      ".It Cm \\-q,\\-\\-quiet\nSay nothing.\n.El\n.Sh WORKLOADS\n",
                      ".It Cm ycsb\\-a\nHalf of each.\n.El\n.Pp\nPlaceholders are spelled so."):
            self.assertIn(lines, page + "\n")
        self.assertNotIn("mostly", page)  # the exit status is the page's own

    def test_mdoc_takes_text_literally(self):
        self.assertEqual("\\&.a \\-b \\e", man.mdoc(".a -b \\"))
        self.assertEqual("see \\(oqport 0\\(cq", man.mdoc("see `port 0`"))
        self.assertEqual("One.\nTwo, e.g. this.", man.mdoc("One. Two, e.g. this."))
        self.assertEqual("\\&Op OP \\&. \\(dq", man.words('Op OP . "'))
        self.assertEqual("NO-EVICT", man.title("NO-EVICT"))


if __name__ == "__main__":
    unittest.main()
