"""The README says what the server does: its transcript, its table of commands, its programs, its pictures."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

from cellar_server import ROOT, CellarServer, free_ports, tool
from replica_sets import has_sets

sys.path.insert(0, os.path.join(ROOT, "tools"))

from test_node_client import installed  # noqa: E402

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

    def code(self, language, port):
        with open(transcript.README, encoding="utf-8") as file:
            return re.search(rf"```{language}\n(.*?)```", file.read(), re.DOTALL).group(1).replace("localhost:6479", f"127.0.0.1:{port}")

    def test_the_programs_do_what_they_seem_to(self):
        modules = installed(self, "newest")
        with CellarServer(save="") as server:
            done = subprocess.run([sys.executable, "-c", self.code("python", server.port)], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False,
                                  env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "tools", "clients", "python")})
            self.assertEqual(("ann ann@x.org 2\n[{'city': 'Graz', 'users': 1, 'logins': 2}]\n", ""), (done.stdout, done.stderr))
            with tempfile.TemporaryDirectory(dir=os.path.dirname(modules)) as folder:
                # Beside node_modules, as the README's reader has it.
                path = os.path.join(folder, "first.mjs")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(self.code("js", server.port))
                done = subprocess.run(["node", path], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertEqual("", done.stderr)
            self.assertEqual(["true", "bob", "2", "Linz", "2"], re.findall(r"true|\bbob\b(?=\s)|\b2\b|Linz", done.stdout))

    @unittest.skipUnless(has_sets()[0], "this build has no replica sets")
    def test_the_cluster_begins_answers_and_ends(self):
        with open(transcript.README, encoding="utf-8") as file:
            text = re.search(r"```sh\n(build/cellar-cluster.*?)```", file.read(), re.DOTALL).group(1)
        ports = free_ports(3)
        for number, port in enumerate(ports):
            text = text.replace(f"-p {6479 + number} ", f"-p {port} ")
        text = re.sub(r"(?m)^build/(cellar-cluster (?:map t|status))", rf"build/\1 -p {ports[0]}", text)
        text = text.replace("start --sets 3", f"start --sets 3 --port {ports[0]}")
        text = text.replace("build/cellar-cluster", tool("cellar-cluster"))
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["sh", "-e"], input=text, cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual((0, ""), (done.returncode, done.stderr), done.stdout)
            self.assertEqual(["cluster"], os.listdir(folder))
        self.assertIn("\nOK\nOK\nGraz\n", done.stdout)
        self.assertEqual(2, done.stdout.count("3 sets with 3 nodes: all is well\n"))
        self.assertEqual(["0", "1", "2"], re.findall(r"(?m)^t .* (\d) +\S+ +\S+ +(?:\d+ %|-)  owned$", done.stdout))
        self.assertTrue(done.stdout.endswith(f"3 nodes stopped; the data stays in {os.path.realpath(folder)}/cluster\n"))

    def test_its_pictures_are_there(self):
        with open(transcript.README, encoding="utf-8") as file:
            pictures = re.findall(r"!\[[^\]]+\]\((\S+)\)", file.read())
        self.assertEqual(set(os.listdir(os.path.join(ROOT, "conf", "pictures"))), set(map(os.path.basename, pictures)))
        for picture in pictures:
            self.assertTrue(os.path.isfile(os.path.join(ROOT, picture)), picture)


if __name__ == "__main__":
    unittest.main()
