"""The small files beside a store, each with a byte flipped: --check names the file, a start says what is damaged, and
nothing that it spoke for goes. (tests/store/notes_test.cc flips every bit.)"""

import os
import random
import shutil
import subprocess
import tempfile
import unittest

import redis
from cellar_server import CellarServer, binary, wait_until

NOTES = ("cellar.manifest", "cellar.store", "cellar.replica", "override.conf", "backupdir/cellar.backup",
         "backupdir/cellar.manifest", "archive/cellar.archive")


def check(directory):
    done = subprocess.run([binary(), "--check", directory], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


class DamagedNotesTest(unittest.TestCase):
    """One rich store: an archive in its folder, a sealed backup, options that CONFIG REWRITE has written, an identity."""

    OPTIONS = {"save": "", "archive-timeout": "1s", "override-file": "override.conf", "backup-sealed-ttl": "3600"}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="cellar-notes-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.directory = os.path.join(cls.folder, "db")
        os.mkdir(cls.directory)
        with cls.server(cls.directory) as server:
            client = server.client()
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            client.execute_command("CPUT", "t", "r", "f:a", "1")
            client.execute_command("CONFIG", "SET", "maxmemory", "1gb")
            client.execute_command("CONFIG", "REWRITE")
            client.execute_command("BACKUP", "START")
            wait_until(lambda: cls.status(client)["state"] == b"incrementing", "the base is written")
            client.execute_command("BACKUP", "SEAL")
            archive = os.path.join(cls.directory, "archive")
            wait_until(lambda: os.path.exists(os.path.join(archive, "cellar.archive")), "the archive is begun")
            with CellarServer(options={"save": "", "replicaof": f"127.0.0.1 {server.port}"}) as follower:
                wait_until(lambda: follower.client().info("replication")["master_link_status"] == "up", "it follows")
            cls.sealed = cls.status(client)
            client.close()
            server.stop()

    @classmethod
    def server(cls, directory):
        return CellarServer(directory=directory, options={**cls.OPTIONS, "archive-dir": os.path.join(directory, "archive")})

    @staticmethod
    def status(client):
        words = client.execute_command("BACKUP", "STATUS")
        return {words[i].decode(): words[i + 1] for i in range(0, len(words), 2)}

    def setUp(self):
        self.copy = os.path.join(self.folder, "copy")
        shutil.copytree(self.directory, self.copy)
        self.addCleanup(shutil.rmtree, self.copy)

    def flip(self, name, offset, mask):
        with open(os.path.join(self.copy, name), "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ mask]))

    def contents(self, name):
        found = {}
        folder = os.path.dirname(os.path.join(self.copy, name))
        for file in sorted(os.listdir(folder)):
            path = os.path.join(folder, file)
            if os.path.isfile(path):
                with open(path, "rb") as opened:
                    found[file] = opened.read()
        return found

    def test_check_finds_every_flipped_byte_and_names_the_file(self):
        dice = random.Random(16)
        for name in NOTES:
            folder = os.path.dirname(os.path.join(self.copy, name))
            self.assertEqual(0, check(folder)[0], check(folder)[1])
            for offset in range(os.path.getsize(os.path.join(self.copy, name))):
                mask = 1 << dice.randrange(8)
                self.flip(name, offset, mask)
                status, said = check(folder)
                with self.subTest(name=name, offset=offset, mask=mask):
                    self.assertEqual(1, status, said)
                    self.assertIn(os.path.basename(name) + ": DAMAGED", said)
                self.flip(name, offset, mask)

    def test_a_start_names_the_damage(self):
        dice = random.Random(17)
        for name in ("cellar.store", "archive/cellar.archive", "override.conf"):
            size = os.path.getsize(os.path.join(self.copy, name))
            for offset in sorted(dice.sample(range(size), 4)) + [0, size - 1]:
                mask = 1 << dice.randrange(8)
                self.flip(name, offset, mask)
                before = self.contents("archive/x")
                with self.subTest(name=name, offset=offset, mask=mask):
                    server = self.server(self.copy)
                    with self.assertRaisesRegex(AssertionError, f"{os.path.basename(name)}(: its| is damaged)"):
                        server.start()
                    server.kill()
                    self.assertNotIn("another store", server.log())
                    self.assertEqual(before, self.contents("archive/x"))
                    os.remove(server.log_path)
                self.flip(name, offset, mask)

    def test_a_damaged_backup_is_kept_and_said(self):
        dice = random.Random(18)
        for name in ("backupdir/cellar.backup", "backupdir/cellar.manifest"):
            size = os.path.getsize(os.path.join(self.copy, name))
            with open(os.path.join(self.copy, name), "rb") as file:
                text = file.read()
            digit = text.find(b"end ") + 4 if name.endswith("backup") else 1
            for offset in [digit, 0] + sorted(dice.sample(range(size), 2)):
                mask = 1 << dice.randrange(3)
                self.flip(name, offset, mask)
                before = self.contents(name)
                with self.subTest(name=name, offset=offset, mask=mask), self.server(self.copy) as server:
                    client = server.client()
                    status = self.status(client)
                    self.assertEqual(b"failed", status["state"], status)
                    self.assertIn(name.encode(), status["error"])
                    with self.assertRaisesRegex(redis.ResponseError, "damaged"):
                        client.execute_command("BACKUP", "START")
                    wait_until(lambda: os.path.basename(name) in server.log(), "the log says it")
                    client.close()
                    server.stop()
                    self.assertEqual(before, self.contents(name))
                self.flip(name, offset, mask)
        with self.server(self.copy) as server:
            client = server.client()
            self.assertEqual(self.sealed, self.status(client))
            client.close()


if __name__ == "__main__":
    unittest.main()
