"""The backup of cellar-admin(7), "BACKUP": a copy of the directory of a running server, checked, and served by another one."""

import os
import shutil
import subprocess
import tempfile
import threading
import unittest

from cellar_server import CellarServer, binary


class BackupTest(unittest.TestCase):
    def test_a_copy_taken_while_rows_are_written_can_be_served(self):
        with tempfile.TemporaryDirectory() as directory, CellarServer(save="", appendfsync="everysec") as server:
            client = server.client()
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            self.write(client, 0, 5_000)
            client.execute_command("SAVE")
            self.write(client, 5_000, 10_000)
            client.execute_command("WAITAOF", 1, 0, 0)
            done = threading.Event()
            writer = threading.Thread(target=self.write_until, args=(server, done))
            writer.start()
            backup = os.path.join(directory, "backup")
            try:
                shutil.copytree(server.directory, backup)
            finally:
                done.set()
                writer.join()
            client.close()
            checked = subprocess.run([binary(), "--check", backup], capture_output=True, text=True, check=False)
            self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
            with CellarServer(directory=backup, save="") as copy:
                client = copy.client()
                self.assertEqual(10_000, client.execute_command("CCOUNT", "t", "PREFIX", "a"))
                client.close()

    def write(self, client, begin, end):
        pipe = client.pipeline(transaction=False)
        for i in range(begin, end):
            pipe.execute_command("CPUT", "t", f"a{i}", "f:v", i)
        pipe.execute()

    def write_until(self, server, done):
        client = server.client()
        i = 0
        while not done.is_set():
            client.execute_command("CPUT", "t", f"b{i}", "f:v", i)
            i += 1
        client.close()


if __name__ == "__main__":
    unittest.main()
