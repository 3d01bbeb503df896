"""The README says what the server does: its transcript, its table of commands."""

import os
import sys
import unittest

from cellar_server import ROOT, CellarServer

sys.path.insert(0, os.path.join(ROOT, "tools"))

import command_table  # noqa: E402
import transcript  # noqa: E402


class ReadmeTest(unittest.TestCase):
    maxDiff = None

    def test_the_transcript_is_what_the_server_answers(self):
        with open(transcript.README, encoding="utf-8") as file:
            text = file.read()
        with CellarServer() as server:
            self.assertEqual(text, transcript.replay(server.port, text))

    def test_the_table_of_commands_is_what_command_docs_says(self):
        with CellarServer() as server:
            docs = command_table.command_docs(server.port)
        self.assertEqual(command_table.markdown(docs), command_table.readme_table(),
                         "tools/command_table.py --write brings README.md up to date")


if __name__ == "__main__":
    unittest.main()
