"""The commands of cellar-admin(7), "BACKUP", run as they stand there, but for the folders and the port."""

import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from cellar_server import ROOT, CellarServer, binary, wait_until
from object_server import ObjectServer

PAGE = os.path.join(ROOT, "conf", "man", "cellar-admin.7")


def recipes():
    """By heading, the lines of the blocks behind `$` and `>`."""
    with open(PAGE, encoding="utf-8") as file:
        section = file.read().split(".Sh BACKUP\n")[1].split("\n.Sh ")[0]
    found, heading = {}, "BACKUP"
    for line in section.splitlines():
        if line.startswith(".Ss "):
            heading = line[4:].replace("\\&", "")
        elif match := re.match(r"[$>] (.*)", line):
            found.setdefault(heading, []).append(match.group(1).replace("\\e", "\\"))
    return found


class RecipesTest(unittest.TestCase):
    def test_they_do_what_they_say(self):
        folder = tempfile.mkdtemp(prefix="cellar-recipes-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        words = recipes()
        self.assertEqual({"BACKUP", "Archive", "In a bucket", "Back to a moment"}, set(words))
        os.mkdir(folder + "/backup")
        options = {"save": "", "archive-dir": folder + "/backup/archive", "archive-timeout": "1s"}
        store = ObjectServer()
        self.addCleanup(store.__exit__)
        with CellarServer(options=options) as server:
            client = server.client()
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            client.execute_command("CPUT", "t", "r", "f:a", "kept")

            def archived():
                wait_until(lambda: client.info("persistence")["archive_lag_bytes"] <= 0, pause=0.1)

            def run(heading):
                script = "set -e -o pipefail\n" + "\n".join(words[heading])
                script = script.replace("/tmp/", folder + "/").replace(" /backup/", f" {folder}/backup/")
                script = script.replace("6479", str(server.port)).replace("cellar --", f"{binary()} --")
                done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300, check=False,
                                      env={**os.environ, **store.environment()})
                self.assertEqual(0, done.returncode, script + done.stdout + done.stderr)
                return done.stdout

            run("BACKUP")
            archived()
            self.assertIn("archive_error:", run("Archive"))
            time.sleep(1.1)  # the recipe's moment has whole seconds
            self.assertIn("recovered to", run("Back to a moment"))
            server.stop()
            server.options.update({"archive-dir": "s3://bucket/archive", "backupdirname": "s3://bucket/backup"})
            server.environment.update(store.environment())
            server.start()
            client = server.client()
            archived()
            time.sleep(1.1)  # likewise
            self.assertEqual(2, run("In a bucket").count("recovered to"))
            client.close()
        for made in ("/backup/monday", "/then"):
            with CellarServer(directory=folder + made, options={"save": ""}) as server:
                client = server.client()
                self.assertEqual(b"kept", client.execute_command("CGET", "t", "r", "f:a"))
                client.close()


if __name__ == "__main__":
    unittest.main()
