"""`cellar --recover DIR... --until TIME|ID|SNAPSHOT --dir NEW` on the files of a real server."""

import os
import random
import shutil
import subprocess
import tempfile
import unittest

from cellar_server import CellarServer, binary

SEED = int(os.environ.get("CELLAR_TEST_SEED", random.randrange(1 << 30)))


def cellar(*words):
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False)


class RecoverTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cellar-recover-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.new = os.path.join(self.folder, "new")

    def server(self, **options):
        server = CellarServer(appendfsync="always", save="", enable_debug_command="local", **options)
        self.addCleanup(server.close)
        server.start()
        return server

    def recover(self, until, *directories):
        """What a recovery says, and the store that it makes at self.new."""
        shutil.rmtree(self.new, ignore_errors=True)
        return cellar("--recover", *directories, "--until", until, "--dir", self.new)

    def digest_of_new(self, *tables):
        """Served, of each table (t@s too) the digest."""
        checked = cellar("--check", self.new)
        self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        with CellarServer(directory=self.new, save="", enable_debug_command="local") as server:
            client = server.client()
            digests = [client.execute_command("DEBUG", "DIGEST", table) for table in tables]
            client.close()
        return digests

    def test_every_step_of_a_history(self):
        """Random commands; after some of them what the table is, then a store of each of these moments."""
        chance = random.Random(SEED)
        print(f"CELLAR_TEST_SEED={SEED}")
        server = self.server(snapshot_keep=3)
        client = server.client()
        run = client.execute_command
        run("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", 3)
        run("FEED", "CREATE", "steps", "ON", 1, "t")
        moments = []
        for i in range(120):
            row = f"r{chance.randrange(12)}"
            kind = chance.randrange(8)
            if kind == 0:
                run("CDEL", "t", row)
            elif kind == 1:
                pipe = client.pipeline(transaction=True)
                pipe.execute_command("CPUT", "t", row, "f:a", i)
                pipe.execute_command("CPUT", "t", row + "x", "f:b", i)
                pipe.execute()
            elif kind == 2:
                run("SNAPSHOT", "CREATE", f"s{chance.randrange(3)}", "REPLACE")
            elif kind == 3:
                pipe = client.pipeline(transaction=False)  # steps that share a record
                for k in range(4):
                    pipe.execute_command("CPUT", "t", row, f"f:{k}", i)
                pipe.execute()
            else:
                run("CPUT", "t", row, f"f:{chance.randrange(3)}", i)
            if i in (40, 80):
                run("SAVE")
            last = run("XREVRANGE", "steps", "+", "-", "COUNT", 1)
            if last and kind != 2:
                moments.append((last[0][0].decode(), run("DEBUG", "DIGEST", "t")))
        client.close()
        server.kill()
        copy = os.path.join(self.folder, "copy")
        shutil.copytree(server.directory, copy)
        for until, digest in chance.sample(moments, 10) + [moments[-1]]:
            with self.subTest(until=until):
                done = self.recover(until, copy)
                self.assertEqual(0, done.returncode, done.stdout + done.stderr)
                self.assertRegex(done.stdout.splitlines()[-1],
                                 r"^recovered to \d+-\d+ 20\d\d-\d\d-\d\dT[0-9:.]+Z, \d+ steps? after ")
                self.assertEqual([digest], self.digest_of_new("t"))

    def test_a_snapshot_by_its_name_with_feeds_and_groups(self):
        server = self.server()
        client = server.client()
        run = client.execute_command
        run("TABLE", "CREATE", "t", "FAMILY", "f")
        run("FEED", "CREATE", "changes", "ON", 1, "t")
        run("XGROUP", "CREATE", "changes", "readers", "$")
        run("CPUT", "t", "r", "f:a", "kept")
        run("SNAPSHOT", "CREATE", "monday")
        kept = run("DEBUG", "DIGEST", "t")
        created = run("SNAPSHOT", "INFO", "monday")
        created = dict(zip(created[::2], created[1::2]))[b"id"].decode()
        run("CDELRANGE", "t", "ALL")
        client.close()
        server.stop()
        for until in ("monday", "0/monday", created):
            with self.subTest(until=until):
                done = self.recover(until, server.directory)
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertIn(f"recovered to {created} ", done.stdout)
                self.assertEqual([kept, kept], self.digest_of_new("t", "t@monday"))
        with CellarServer(directory=self.new, save="", enable_debug_command="local") as served:
            client = served.client()
            self.assertEqual([b"changes"], client.execute_command("FEED", "LIST"))
            with self.assertRaisesRegex(Exception, "TRIMMED"):
                client.execute_command("XREAD", "STREAMS", "changes", "1000000000000-0")
            groups = client.execute_command("XINFO", "GROUPS", "changes")
            self.assertIn("readers", str(groups))
            client.execute_command("CPUT", "t", "later", "f:a", "1")
            entries = client.execute_command("XREAD", "BLOCK", 5000, "STREAMS", "changes", "0")
            self.assertIn("later", str(entries))
            client.close()

    def test_what_is_refused(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        client.execute_command("SAVE")
        client.execute_command("CPUT", "t", "r", "f:a", "1")
        client.close()
        directory = server.directory
        late = "2100-01-01T00:00:00Z"
        busy = self.recover(late, directory)
        self.assertEqual(1, busy.returncode)
        self.assertIn("another process is using", busy.stderr)
        server.stop()

        def refused(status, text, *words):
            done = cellar(*words)
            self.assertEqual(status, done.returncode, done.stdout)
            self.assertIn(text, done.stderr)
            self.assertFalse(os.path.exists(self.new) and os.listdir(self.new))

        def recovery(until, *directories):
            return "--recover", *directories, "--until", until, "--dir", self.new

        refused(2, "needs --until", "--recover", directory, "--dir", self.new)
        refused(2, "needs --dir NEW", "--recover", directory, "--until", late)
        refused(2, "needs directories", "--recover", "--until", late, "--dir", self.new)
        refused(2, "'--port'", *recovery(late, directory), "--port", "1")
        refused(2, "is there twice", *recovery(late, directory), "--dir", directory)
        refused(2, "--until needs a value", "--recover", directory, "--until")
        refused(2, "is no point to recover to", *recovery("yesterday at 3", directory))
        refused(2, "must come first", "--port", "1", "--recover", directory)
        refused(1, "does not exist", *recovery(late, directory + ".no"))
        refused(1, "is before the oldest base", *recovery("2001-01-01T00:00:00Z", directory))
        refused(1, "no snapshot 'monday'", *recovery("monday", directory))
        before = sorted(os.listdir(directory))
        over = cellar("--recover", directory, "--until", late, "--dir", directory)
        self.assertEqual(1, over.returncode)
        self.assertIn("is not empty", over.stderr)
        self.assertEqual(before, sorted(os.listdir(directory)))
        self.damage(directory, ".snapshot", refused, recovery(late, directory))
        self.damage(directory, ".log", refused, recovery(late, directory))
        done = self.recover(late, directory)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("is behind the last step", done.stdout)

    def damage(self, directory, ending, refused, words):
        path = next(os.path.join(directory, n) for n in sorted(os.listdir(directory)) if n.endswith(ending))
        with open(path, "r+b") as file:
            file.seek(130)
            byte = file.read(1)[0]
            file.seek(130)
            file.write(bytes([byte ^ 0x10]))
            file.flush()
            refused(1, path, *words)
            file.seek(130)
            file.write(bytes([byte]))

    def test_a_full_disk_leaves_nothing(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        pipe = client.pipeline(transaction=False)
        for i in range(4000):
            pipe.execute_command("CPUT", "t", f"r{i}", "f:a", "v" * 1000)
        pipe.execute()
        client.close()
        server.stop()
        small = os.path.join(self.folder, "small")
        os.mkdir(small)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("mounting a tmpfs is not allowed here")
        try:
            done = cellar("--recover", server.directory, "--until", "2100-01-01T00:00:00Z", "--dir",
                          os.path.join(small, "new"))
            self.assertEqual(1, done.returncode, done.stdout)
            self.assertIn("No space left", done.stderr)
            self.assertEqual([], os.listdir(os.path.join(small, "new")))
        finally:
            subprocess.run(["umount", small], check=True)


if __name__ == "__main__":
    unittest.main()
