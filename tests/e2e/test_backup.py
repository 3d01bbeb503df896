"""BACKUP START, SEAL, STATUS, LIST, ABORT, CLEANUP: copies of the store while clients write, each a data directory that is
exactly what there was at its SEAL."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import redis
from cellar_server import CellarServer, binary, wait_until

# `make soak` makes a hundred.
BACKUPS = int(os.environ.get("CELLAR_BACKUPS", 6))


def cellar(*words):
    return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False)


class Writers:
    """Clients that write rows of their own as fast as they can, over and over; `acknowledged` of each is how many writes
    are. The value of the i-th begins with i."""

    ROWS = 50_000

    def __init__(self, server, count=3):
        self.server = server
        self.acknowledged = [0] * count
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.write, args=(i,)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def write(self, number):
        client = self.server.client()
        begin = 0
        while not self.ended.is_set():
            pipe = client.pipeline(transaction=False)
            for i in range(begin, begin + 20):
                pipe.execute_command("CPUT", "t", self.row(number, i), "f:v", f"{i}:" + "x" * (i % 200))
            try:
                pipe.execute()
            except redis.RedisError:
                return
            begin += 20
            self.acknowledged[number] = begin
        client.close()

    @staticmethod
    def row(number, i):
        return f"w{number}:{i % Writers.ROWS:09d}"

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()


class BackupTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cellar-backup-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def server(self, **options):
        server = CellarServer(options={"save": "", "enable-debug-command": "local", **options})
        self.addCleanup(server.close)
        return server.start()

    @staticmethod
    def status(client):
        words = client.execute_command("BACKUP", "STATUS")
        return {words[i].decode(): words[i + 1] for i in range(0, len(words), 2)}

    def wait(self, client, state):
        # However long it takes: beside clients that write, snapshots are written with what they leave of a processor.
        def reached():
            status = self.status(client)
            if status["state"].decode() == state:
                return status
            self.assertNotEqual(b"failed", status["state"], f"{status}, not {state}")
            return None
        return wait_until(reached, lambda: f"{state}: {self.status(client)}", 0.005)

    def begin(self, client):
        self.assertEqual(b"OK", client.execute_command("BACKUP", "START"))
        return self.wait(client, "incrementing")

    def seal(self, client):
        self.assertEqual(b"OK", client.execute_command("BACKUP", "SEAL"))
        return self.wait(client, "sealed")

    def refused(self, client, text, *words):
        with self.assertRaisesRegex(redis.ResponseError, text):
            client.execute_command("BACKUP", *words)

    def copy(self, client):
        """What is listed, copied by its names."""
        to = tempfile.mkdtemp(dir=self.folder)
        for path in client.execute_command("BACKUP", "LIST"):
            self.assertTrue(os.path.isabs(path), path)
            shutil.copy(path, to.encode())
        return to

    def checked(self, directory):
        done = cellar("--check", directory)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def served(self, directory, *commands):
        with CellarServer(directory=directory, options={"save": "", "enable-debug-command": "local"}) as server:
            client = server.client()
            replies = [client.execute_command(*words) for words in commands]
            client.close()
        return replies

    def under_load(self, policy, **options):
        # What happened is read from the log once more at the end, from its first record.
        server = self.server(appendfsync=policy, **{"auto-aof-rewrite-percentage": "0"}, **options)
        client = server.client(socket_timeout=120)
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "VERSIONS", "1")
        writers = Writers(server)
        made = []
        try:
            for i in range(BACKUPS):
                self.begin(client)
                if i % 2 == 1 and "snapshot-keep" in options:
                    client.execute_command("SAVE")
                begun = list(writers.acknowledged)
                wait_until(lambda begun=begun: all(now > was for now, was in zip(writers.acknowledged, begun)), "writes go on")
                before = list(writers.acknowledged)
                status = self.seal(client)
                copy = self.copy(client)
                made.append((copy, status["id"].decode(), before))
                self.assertEqual(b"OK", client.execute_command("BACKUP", "CLEANUP"))
        finally:
            writers.end()
        client.close()
        server.stop()
        for copy, last, before in made:
            with self.subTest(backup=copy):
                self.checked(copy)
                commands = [("CGET", "t", Writers.row(n, i - 1), "f:v") for n, i in enumerate(before)]
                *values, digest = self.served(copy, *commands, ("DEBUG", "DIGEST", "t"))
                for value, acknowledged in zip(values, before):
                    if acknowledged > 0:
                        self.assertGreaterEqual(int(value.split(b":")[0]), acknowledged - 1,
                                                "all that was acknowledged before SEAL")
                then = os.path.join(self.folder, "then")
                shutil.rmtree(then, ignore_errors=True)
                done = cellar("--recover", server.directory, "--until", last, "--dir", then)
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertIn(f"recovered to {last} ", done.stdout)
                self.assertEqual([digest], self.served(then, ("DEBUG", "DIGEST", "t")), "nothing behind the id")
                shutil.rmtree(copy)

    def test_backups_under_load(self):
        self.under_load("everysec")

    def test_backups_under_load_with_snapshots_beside(self):
        self.under_load("always", **{"snapshot-keep": 100})

    def test_states_and_their_errors(self):
        server = self.server()
        client = server.client()
        run = client.execute_command
        run("TABLE", "CREATE", "t", "FAMILY", "f")
        idle = self.status(client)
        self.assertEqual({"state": b"idle", "error": b"", "start_time": 0, "end_time": 0, "id": b""}, idle)
        self.assertEqual([], run("BACKUP", "LIST"))
        self.refused(client, "not idle", "SEAL")
        self.refused(client, "the state is idle", "ABORT")
        self.refused(client, "the state is idle", "CLEANUP")
        begun = self.begin(client)
        self.assertLess(abs(begun["start_time"] - time.time()), 60)
        self.assertEqual(0, begun["end_time"])
        base = run("BACKUP", "LIST")
        self.assertEqual(1, len(base))
        self.assertTrue(base[0].endswith(b".snapshot") and os.path.exists(base[0]))
        self.refused(client, "in progress already", "START")
        self.refused(client, "the state is incrementing", "CLEANUP")
        run("CPUT", "t", "r", "f:a", "1")
        sealed = self.seal(client)
        self.assertRegex(sealed["id"].decode(), r"^\d+-\d+$")
        files = [os.path.basename(path) for path in run("BACKUP", "LIST")]
        self.assertEqual(b"cellar.manifest", files[-1])
        self.assertEqual(3, len(files))
        self.refused(client, "CLEANUP", "START")
        self.refused(client, "not sealed", "SEAL")
        self.refused(client, "the state is sealed", "ABORT")
        self.assertEqual("sealed", client.info("persistence")["backup_state"])
        self.assertEqual(b"OK", run("BACKUP", "CLEANUP"))
        self.assertEqual([], run("BACKUP", "LIST"))
        self.begin(client)
        self.assertEqual(b"OK", run("BACKUP", "ABORT"))
        failed = self.status(client)
        self.assertEqual((b"failed", b"aborted"), (failed["state"], failed["error"]))
        self.assertEqual(b"OK", run("BACKUP", "CLEANUP"))
        self.begin(client)
        self.assertEqual(b"OK", run("BACKUP", "ABORT"))
        self.begin(client)  # from failed
        self.seal(client)
        with self.assertRaises(redis.ResponseError):
            run("CONFIG", "SET", "backupdirname", "elsewhere")
        client.close()

    def test_a_sealed_backup_outlives_a_restart_and_not_its_ttl(self):
        server = self.server()
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.begin(client)
        sealed = self.seal(client)
        files = client.execute_command("BACKUP", "LIST")
        client.close()
        server.crash()
        client = server.client()
        self.assertEqual(sealed, self.status(client))
        self.assertEqual(files, client.execute_command("BACKUP", "LIST"))
        client.execute_command("CONFIG", "SET", "backup-sealed-ttl", 1)
        self.wait(client, "idle")
        wait_until(lambda: not any(os.path.exists(path) for path in files))
        client.close()

    def test_without_a_log(self):
        server = self.server(appendonly="no")
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.begin(client)
        client.execute_command("CPUT", "t", "r", "f:a", "late")
        self.seal(client)
        digest = client.execute_command("DEBUG", "DIGEST", "t")
        copy = self.copy(client)
        self.checked(copy)
        self.assertEqual([digest], self.served(copy, ("DEBUG", "DIGEST", "t")))
        client.close()

    def test_kill_at_any_time(self):
        server = self.server(appendfsync="always")
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for i in range(3000):
            client.execute_command("CPUT", "t", f"r{i}", "f:a", "v" * 300)
        for i in range(12):
            if self.status(client)["state"] == b"sealed":
                client.execute_command("BACKUP", "CLEANUP")
            client.execute_command("BACKUP", "START")
            if i % 3 == 1:
                self.wait(client, "incrementing")
            if i % 3 == 2:
                self.wait(client, "incrementing")
                sealing = server.connect()
                sealing.sendall(b"*2\r\n$6\r\nBACKUP\r\n$4\r\nSEAL\r\n")
                time.sleep(0.002 * (i % 4))
                sealing.close()
            else:
                time.sleep(0.003 * (i % 4))
            client.close()
            server.crash()
            client = server.client()
            self.assertEqual(3000, client.execute_command("CCOUNT", "t"))
            state = self.status(client)["state"]
            self.assertIn(state, (b"idle", b"sealed"))
            if state == b"sealed":
                self.checked(self.copy(client))
        if self.status(client)["state"] == b"sealed":
            client.execute_command("BACKUP", "CLEANUP")
        self.begin(client)
        self.seal(client)
        self.checked(self.copy(client))
        client.close()

    def test_a_folder_of_something_else_is_not_touched(self):
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        with CellarServer(directory=other, options={"save": ""}) as store:
            store.client().execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        before = sorted(os.listdir(other))
        server = self.server(backupdirname=other)
        client = server.client()
        client.execute_command("BACKUP", "START")
        wait_until(lambda: self.status(client)["state"] == b"failed")
        self.assertIn(b"is in use otherwise", self.status(client)["error"])
        self.assertEqual(before, sorted(os.listdir(other)))
        client.close()

    def test_an_archive_is_no_folder_for_backups(self):
        """What looks like the files of a backup are those of the archive there."""
        both = os.path.join(self.folder, "both")
        os.mkdir(both)
        server = self.server(**{"backupdirname": both, "archive-dir": both, "archive-timeout": "1s"})
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        wait_until(lambda: "cellar.archive" in os.listdir(both))
        client.execute_command("BACKUP", "START")
        wait_until(lambda: self.status(client)["state"] == b"failed")
        self.assertIn(b"is an archive: a backup needs a folder of its own", self.status(client)["error"])
        wait_until(lambda: any(name.endswith(".log") for name in os.listdir(both)))
        before = sorted(os.listdir(both))
        client.execute_command("BACKUP", "CLEANUP")
        wait_until(lambda: self.status(client)["state"] == b"idle")
        client.execute_command("CPUT", "t", "r", "f:a", "1")
        wait_until(lambda: len(os.listdir(both)) > len(before))
        self.assertLess(set(before), set(os.listdir(both)))
        client.close()

    def test_a_full_disk_ends_the_backup_and_not_the_writes(self):
        mount = os.path.join(self.folder, "disk")
        os.mkdir(mount)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", mount],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("mounting a tmpfs is not allowed here")
        self.addCleanup(subprocess.run, ["umount", mount], check=True)
        server = self.server(backupdirname=mount, appendfsync="always")
        client = server.client(socket_timeout=120)
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        pipe = client.pipeline(transaction=False)
        for i in range(40_000):
            pipe.execute_command("CPUT", "t", f"r{i}", "f:a", f"{i} " + os.urandom(400).hex())
        pipe.execute()
        client.execute_command("BACKUP", "START")
        wait_until(lambda: self.status(client)["state"] == b"failed")
        self.assertIn(b"No space left", self.status(client)["error"])
        client.execute_command("CPUT", "t", "later", "f:a", "1")
        wait_until(lambda: not os.listdir(mount), lambda: os.listdir(mount))
        client.close()
        server.stop()


if __name__ == "__main__":
    unittest.main()
