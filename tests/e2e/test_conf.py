"""conf/cellar.conf names every option with the server's own default, and the server takes it."""

import os
import re
import sys
import tempfile
import unittest

from cellar_server import ROOT, CellarServer

sys.path.insert(0, os.path.join(ROOT, "tools"))

import man  # noqa: E402

CONF = os.path.join(ROOT, "conf", "cellar.conf")


def settings():
    """The lines of conf/cellar.conf that set an option, commented out or not."""
    with open(CONF, encoding="utf-8") as file:
        return [line for _, _, lines in man.parse_conf(file.read()) for line in lines]


class ConfTest(unittest.TestCase):
    maxDiff = None

    def options_of(self, conf=None):
        """CONFIG GET * of a server with this configuration file, or with none."""
        with CellarServer(config=conf) as server:
            client = server.client()
            found = client.config_get("*")
            client.close()
        for name in ("dir", "create-dir", "port", "bind"):  # the test's own
            found.pop(name)
        return found

    def test_every_option_is_there(self):
        with CellarServer() as server:
            client = server.client()
            options = set(client.config_get("*"))
            client.close()
        self.assertEqual(options, {line.split()[0] for line in settings()})

    def test_what_it_shows_are_the_defaults(self):
        defaults = self.options_of()
        self.assertEqual(defaults, self.options_of(CONF))
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("\n".join(settings()))
            file.flush()
            self.assertEqual(defaults, self.options_of(file.name))

    def test_every_option_has_a_reason(self):
        with open(CONF, encoding="utf-8") as file:
            for _, comment, lines in man.parse_conf(file.read()):
                if lines:
                    self.assertTrue(re.search(r"\w{3,}", " ".join(comment)), lines)


if __name__ == "__main__":
    unittest.main()
