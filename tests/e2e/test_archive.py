"""archive-dir: closed log segments and snapshots kept in another folder, from which the store of any moment is made."""

import os
import random
import shutil
import subprocess
import tempfile
import time
import unittest

from cellar_server import CellarServer, begin_snapshot, binary, wait_until

SEED = int(os.environ.get("CELLAR_TEST_SEED", random.randrange(1 << 30)))
LATE = "2100-01-01T00:00:00Z"


def cellar(*words):
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False)


class ArchiveTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cellar-archive-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.archive = os.path.join(self.folder, "archive")
        self.new = os.path.join(self.folder, "new")

    def server(self, start=True, **options):
        words = {"save": "", "enable-debug-command": "local", "archive-dir": self.archive, "archive-timeout": "1s",
                 "appendfsync": "always"}
        server = CellarServer(options={**words, **options})
        self.addCleanup(server.close)
        return server.start() if start else server

    def wait(self, what, ready):
        wait_until(ready, what)

    def archived(self, client):
        """Until the archive has all that there is."""
        self.wait(lambda: f"all is archived: {client.info('persistence')}", lambda: client.info("persistence")["archive_lag_bytes"] == 0)
        self.assertEqual("", client.info("persistence")["archive_error"])

    def names(self, ending):
        return sorted(name for name in os.listdir(self.archive) if name.endswith(ending))

    def recovered(self, until, *directories):
        shutil.rmtree(self.new, ignore_errors=True)
        done = cellar("--recover", *directories, "--until", until, "--dir", self.new)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        with CellarServer(directory=self.new, options={"save": "", "enable-debug-command": "local"}) as served:
            client = served.client()
            digest = client.execute_command("DEBUG", "DIGEST", "t")
            client.close()
        return digest

    def flip(self, path, offset):
        with open(path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 0x10]))

    def test_a_history_out_of_the_archive_alone(self):
        chance = random.Random(SEED)
        print(f"CELLAR_TEST_SEED={SEED}")
        server = self.server()
        client = server.client()
        run = client.execute_command
        run("TABLE", "CREATE", "t", "FAMILY", "f")
        run("FEED", "CREATE", "steps", "ON", 1, "t", "KEEP", "1s")
        moments = []
        for i in range(60):
            row = f"r{chance.randrange(9)}"
            run("CDEL", "t", row) if chance.randrange(5) == 0 else run("CPUT", "t", row, f"f:{chance.randrange(3)}", i)
            if i % 20 == 10:
                run("SAVE")
            if i % 6 == 3:
                run("CPUT", "t", row, "f:mark", i)
                last = run("XREVRANGE", "steps", "+", "-", "COUNT", 1)
                moments.append((last[0][0].decode(), run("DEBUG", "DIGEST", "t")))
            if i % 10 == 9:
                self.archived(client)
                if i == 29:
                    client.close()
                    server.crash()
                    client = server.client()
                    run = client.execute_command
        # The log that the last snapshot covers is in the archive alone.
        run("SAVE")
        self.archived(client)
        info = client.info("persistence")
        self.assertEqual(1, info["archive_enabled"])
        self.assertGreater(info["archive_bytes"], 0)
        self.assertEqual(0, info["archive_gaps"])
        # One that another follows within moments may have gone before it came here.
        self.assertGreaterEqual(len(self.names(".snapshot")), 2)
        checked = cellar("--check", self.archive)  # beside the server
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        for until, digest in moments:
            with self.subTest(until=until):
                self.assertEqual(digest, self.recovered(until, self.archive))
        client.close()
        server.stop()
        self.assertEqual(moments[-1][1], self.recovered(moments[-1][0], self.archive, server.directory))

    def test_flipped_bits_are_refused_with_the_file(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for i in range(200):
            client.execute_command("CPUT", "t", f"r{i}", "f:a", "v" * 50)
        client.execute_command("SAVE")
        client.execute_command("CPUT", "t", "last", "f:a", "v" * 50)
        self.archived(client)
        client.close()
        server.stop()
        for name in (self.names(".snapshot")[-1], self.names(".log")[-1]):
            path = os.path.join(self.archive, name)
            offset = random.Random(SEED).randrange(64, os.path.getsize(path))
            with self.subTest(path=path, offset=offset):
                self.flip(path, offset)
                for words in (("--check", self.archive),
                              ("--recover", self.archive, "--until", LATE, "--dir", self.new)):
                    done = cellar(*words)
                    self.assertEqual(1, done.returncode, done.stdout)
                    self.assertIn(name, done.stdout + done.stderr)
                self.flip(path, offset)
        segment = os.path.join(self.archive, self.names(".log")[0])
        os.rename(segment, self.folder + "/aside")
        os.rename(self.folder + "/aside", segment)
        self.assertEqual(0, cellar("--check", self.archive).returncode)

    def test_kill_while_archiving(self):
        server = self.server(**{"archive-timeout": "1ms"})
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        written = 0
        for i in range(10):
            for _ in range(50):
                client.execute_command("CPUT", "t", f"r{written}", "f:a", "v" * 500)
                written += 1
            if i % 3 == 2:
                client.execute_command("BGSAVE")
            time.sleep(0.11 * (i % 5))
            client.close()
            server.crash()
            client = server.client()
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        self.archived(client)
        client.close()
        server.stop()
        checked = cellar("--check", self.archive)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        self.assertEqual(digest, self.recovered(LATE, self.archive))

    def test_folders_of_others(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.archived(client)
        client.close()
        server.stop()
        before = sorted(os.listdir(self.archive))

        def refuses(text, directory):
            other = CellarServer(options={"save": "", "archive-dir": directory})
            self.addCleanup(other.close)
            with self.assertRaisesRegex(AssertionError, text):
                other.start()

        refuses("is the archive of another store", self.archive)
        refuses("is in use otherwise", server.directory)
        self.assertEqual(before, sorted(os.listdir(self.archive)))
        started = cellar("--dir", self.archive, "--port", "0")
        self.assertEqual(1, started.returncode)
        # A copy of the store writes to it until it has other files of the same number.
        copy = os.path.join(self.folder, "copy")
        shutil.copytree(server.directory, copy)
        server.start()
        client = server.client()
        client.execute_command("CPUT", "t", "a", "f:a", "1")
        self.archived(client)
        client.close()
        server.stop()
        with CellarServer(directory=copy, options={"save": "", "archive-dir": self.archive, "archive-timeout": "1s"}) as twin:
            client = twin.client()
            client.execute_command("CPUT", "t", "b", "f:a", "1")
            self.wait("it is refused", lambda: "another store" in client.info("persistence")["archive_error"])
            client.close()
        # The disk is not mounted.
        os.rename(self.archive, self.archive + ".away")
        server.start()
        client = server.client()
        self.wait("it is missed", lambda: "mounted" in client.info("persistence")["archive_error"])
        client.close()
        server.stop()
        shutil.rmtree(self.archive)
        os.rename(self.archive + ".away", self.archive)
        server.start()
        client = server.client()
        self.archived(client)
        client.close()

    def test_beyond_its_most_bytes_the_oldest_go(self):
        server = self.server(**{"archive-max-bytes": "300kb"})
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", 1)
        for i in range(8):
            for j in range(10):
                client.execute_command("CPUT", "t", f"r{j}", "f:a", os.urandom(5000))
            client.execute_command("SAVE")
            self.archived(client)

        def size():
            return sum(os.path.getsize(os.path.join(self.archive, name)) for name in os.listdir(self.archive))
        self.wait(lambda: f"it is small enough: {size()}", lambda: size() <= 300 << 10)
        self.assertGreater(len(self.names(".snapshot")), 1)  # and no smaller than it must be
        # It may be changed; the newest snapshot and what follows it stay, however large.
        client.execute_command("CONFIG", "SET", "archive-max-bytes", "1")
        self.wait("one base", lambda: len(self.names(".snapshot")) == 1 and len(self.names(".log")) <= 2)
        note = os.path.join(self.archive, "cellar.archive")
        self.wait("its figure follows", lambda: self.persistence_bytes(client) == size() - os.path.getsize(note))
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        self.assertEqual(digest, self.recovered(LATE, self.archive))
        self.assertEqual(0, cellar("--check", self.archive).returncode)
        client.close()

    def persistence_bytes(self, client):
        return client.info("persistence")["archive_bytes"]

    def test_without_rights(self):
        """As a user who may not write there, or not read."""
        if os.getuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("it takes root to become somebody else")
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        os.chmod(self.folder, 0o755)
        os.mkdir(self.archive, 0o755)
        sealed = os.path.join(self.folder, "sealed")
        os.mkdir(sealed, 0o755)
        server = self.server(start=False, backupdirname=os.path.join(sealed, "backup"))
        os.chown(server.directory, 65534, 65534)
        arguments = server.arguments
        server.arguments = lambda: nobody + arguments()
        server.start()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.wait("it is told", lambda: "Permission denied" in client.info("persistence")["archive_error"])
        self.assertIn(self.archive, client.info("persistence")["archive_error"])
        self.wait("it lags", lambda: client.info("persistence")["archive_lag_bytes"] > 0)
        self.assertEqual([], os.listdir(self.archive))
        client.execute_command("BACKUP", "START")

        def backup():
            return client.execute_command("BACKUP", "STATUS")
        self.wait("the backup fails", lambda: b"failed" in backup())
        self.assertTrue(any(b"Permission denied" in word for word in backup() if isinstance(word, bytes)), backup())
        self.assertEqual([], os.listdir(sealed))
        os.chown(self.archive, 65534, 65534)
        self.archived(client)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        # Not even readable.
        os.chmod(self.archive, 0o000)
        client.execute_command("CPUT", "t", "r", "f:a", "1")
        self.wait("it is told again", lambda: "Permission denied" in client.info("persistence")["archive_error"])
        for words in (("--check", self.archive), ("--recover", self.archive, "--until", LATE, "--dir", self.new)):
            done = subprocess.run([*nobody, binary(), *words], capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(1, done.returncode, done.stdout)
            self.assertIn("Permission denied", done.stderr)
            self.assertFalse(os.path.exists(self.new))
        os.chmod(self.archive, 0o755)
        # NEW cannot be made.
        self.archived(client)
        done = subprocess.run([*nobody, binary(), "--recover", self.archive, "--until", LATE, "--dir", self.new],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("Permission denied", done.stderr)
        self.assertNotEqual(digest, self.recovered(LATE, self.archive))
        client.close()
        server.stop()

    def test_old_files_go_and_a_base_stays(self):
        server = self.server(**{"archive-keep": "1ms"})
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for i in range(4):
            client.execute_command("CPUT", "t", f"r{i}", "f:a", "1")
            client.execute_command("SAVE")
            self.archived(client)
        self.wait("one base", lambda: len(self.names(".snapshot")) == 1 and len(self.names(".log")) <= 2)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        self.assertEqual(digest, self.recovered(LATE, self.archive))
        client.close()

    def test_a_damaged_snapshot_takes_the_place_of_none(self):
        """When it was taken is not known: that does not make it an old one, for which others may go."""
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        digests = []
        for i in range(3):
            client.execute_command("CPUT", "t", f"r{i}", "f:a", "1")
            client.execute_command("SAVE")
            self.archived(client)
            digests.append((int(time.time() * 1e6), client.execute_command("DEBUG", "DIGEST", "t")))
        snapshots = self.names(".snapshot")
        self.assertEqual(len(snapshots), 3)
        logs = self.names(".log")
        server.stop()
        damaged = os.path.join(self.archive, snapshots[1])
        with open(damaged, "rb") as file:
            content = file.read()
        os.unlink(damaged)  # it may be a link to a file of the store
        with open(damaged, "wb") as file:
            file.write(b"x" * 64 + content[64:])
        server.start()
        client = server.client()
        client.execute_command("SAVE")
        self.wait("a snapshot more", lambda: len(set(self.names(".snapshot")) - set(snapshots)) == 1)
        client.execute_command("SAVE")  # behind which the first round has ended
        self.wait("another one", lambda: len(set(self.names(".snapshot")) - set(snapshots)) == 2)
        self.archived(client)
        self.assertLessEqual(set(snapshots), set(self.names(".snapshot")))
        self.assertLessEqual(set(logs), set(self.names(".log")))
        self.assertEqual(digests[0][1], self.recovered(str(digests[0][0]), self.archive))
        client.close()

    def mounted(self, size):
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True, check=False)
        if done.returncode != 0:
            self.skipTest("mounting a tmpfs is not allowed here")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        return disk

    def test_a_full_archive_disk_keeps_the_log(self):
        disk = self.mounted("2m")
        self.archive = os.path.join(disk, "archive")
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for i in range(3000):
            client.execute_command("CPUT", "t", f"r{i % 10}", "f:a", os.urandom(500).hex())
        self.wait("it is told", lambda: "No space left" in client.info("persistence")["archive_error"])
        client.execute_command("SAVE")
        self.wait("it lags", lambda: client.info("persistence")["archive_lag_bytes"] > 0)
        subprocess.run(["mount", "-o", "remount,size=40m", disk], check=True)
        self.archived(client)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        self.assertEqual(0, cellar("--check", self.archive).returncode)
        self.assertEqual(digest, self.recovered(LATE, self.archive))
        client.close()
        server.stop()

    def test_an_archive_whose_disk_goes_leaves_no_gap(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        disk = self.archive + ".disk"

        def write(value):
            for i in range(10):
                client.execute_command("CPUT", "t", f"r{i}", "f:a", value)
            client.execute_command("SAVE")

        write("1")
        self.archived(client)
        # The disk is gone, its mount point is there.
        os.rename(self.archive, disk)
        os.mkdir(self.archive)
        write("2")
        write("3")
        self.wait("it is told", lambda: "Is the disk mounted?" in client.info("persistence")["archive_error"])
        self.assertEqual([], os.listdir(self.archive))
        self.assertGreater(client.info("persistence")["archive_lag_bytes"], 0)
        os.rmdir(self.archive)
        os.rename(disk, self.archive)
        write("4")
        self.wait("it goes on", lambda: client.info("persistence")["archive_error"] == "")
        self.archived(client)
        checked = cellar("--check", self.archive)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        self.assertNotIn("GAP", checked.stdout)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        self.assertEqual(digest, self.recovered(LATE, self.archive))
        client.close()

    def test_a_full_data_disk_drops_what_is_not_archived(self):
        disk = self.mounted("24m")
        # Nobody can write there.
        os.mkdir(self.archive)
        away = self.mounted_read_only()
        directory = os.path.join(disk, "db")
        server = CellarServer(directory=directory, options={
            "save": "", "enable-debug-command": "local", "archive-dir": away, "archive-timeout": "1s",
            "appendfsync": "always", "auto-aof-rewrite-percentage": "0"})
        self.addCleanup(server.close)
        os.mkdir(directory)
        server.start()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.wait("it is told", lambda: client.info("persistence")["archive_error"] != "")
        refused = 0
        for i in range(60_000):
            try:
                client.execute_command("CPUT", "t", f"r{i % 10}", "f:a", "x" * 2000)
            except Exception:  # MISCONF, for a moment
                refused += 1
                time.sleep(0.05)
            if i % 1000 == 999:
                begin_snapshot(client)
            if client.info("persistence")["archive_gaps"] > 0:
                break
        info = client.info("persistence")
        self.assertGreater(info["archive_gaps"], 0)
        self.wait("it is logged", lambda: "THE ARCHIVE HAS A GAP" in server.log())
        client.execute_command("CPUT", "t", "later", "f:a", "1")
        subprocess.run(["mount", "-o", "remount,rw", away], check=True)
        self.wait(lambda: f"it goes on: {client.info('persistence')}",
                  lambda: client.info("persistence")["archive_error"] == ""
                  and client.info("persistence")["archive_files"] > 0)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        client.close()
        server.stop()
        checked = cellar("--check", away)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        with open(os.path.join(away, "cellar.archive"), encoding="utf-8") as file:
            self.assertRegex(file.read(), "gap after [0-9]+-[0-9]+ to [0-9]+-[0-9]+\n")
        # The open segment has what is behind: there was no room for another one.
        self.assertEqual(digest, self.recovered(LATE, away, directory))

    def mounted_read_only(self):
        away = os.path.join(self.folder, "away")
        os.mkdir(away)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,ro", "tmpfs", away], check=True)
        self.addCleanup(subprocess.run, ["umount", away], check=True)
        return away


if __name__ == "__main__":
    unittest.main()
