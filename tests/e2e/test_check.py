"""`cellar --check DIR [--repair]` and `cellar --dump DIR|FILE` on the files of a real server."""

import os
import random
import re
import subprocess
import time
import unittest

from cellar_server import CellarServer, binary


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.server = CellarServer(appendfsync="always", save="")
        self.addCleanup(self.server.close)
        self.server.start()
        client = self.server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for i in range(50):
            client.execute_command("CPUT", "t", f"row{i}", "f:v", f"value {i}")
        client.execute_command("SAVE")
        for i in range(50, 100):
            client.execute_command("CPUT", "t", f"row{i}", "f:v", f"value {i}")

    @staticmethod
    def cellar(*words):
        return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=300, check=False)

    def paths(self, ending):
        directory = self.server.directory
        return sorted(os.path.join(directory, n) for n in os.listdir(directory) if n.endswith(ending))

    def contents(self):
        found = {}
        for path in self.paths(""):
            with open(path, "rb") as file:
                found[path] = file.read()
        return found

    @staticmethod
    def flip(path, offset):
        with open(path, "r+b") as file:
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 0x10]))

    def test_a_sound_store_is_said_to_be_sound_and_is_not_changed(self):
        busy = self.cellar("--check", self.server.directory)
        self.assertNotEqual(busy.returncode, 0, "a running server holds the lock")
        self.server.stop()
        before = self.contents()
        done = self.cellar("--check", self.server.directory)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("50 records", done.stdout)
        self.assertIn("a snapshot, 1 log segment\n", done.stdout)
        self.assertEqual(before, self.contents())

    def test_a_store_on_a_read_only_disk_can_be_checked(self):
        self.server.stop()
        directory = self.server.directory
        bound = subprocess.run(["mount", "--bind", directory, directory], capture_output=True, check=False)
        if bound.returncode != 0:
            self.skipTest("mounting is not allowed here")
        try:
            subprocess.run(["mount", "-o", "remount,ro,bind", directory], check=True)
            done = self.cellar("--check", directory)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        finally:
            subprocess.run(["umount", directory], check=True)

    def test_a_check_says_what_is_wrong_with_its_words(self):
        self.server.stop()
        done = self.cellar("--check", self.server.directory, "--nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'--nonsense'", done.stderr)
        done = self.cellar("--check", self.server.directory, "--repair", "nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("not 'nonsense'", done.stderr)
        for words, said in ((("--check",), "--check needs a directory"), (("--check", "--repair"), "--check needs a directory"),
                            (("--repair",), "cellar --check DIR --repair"), (("--dump",), "--dump needs a directory"),
                            (("--dump", "a", "b"), "not 'b'"), (("--port", "0", "--check", "d"), "--check must come first"),
                            (("a.conf", "--help"), "--help must come first")):
            done = self.cellar(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr.splitlines()[0])
        os.remove(os.path.join(self.server.directory, "cellar.manifest"))
        done = self.cellar("--check", self.server.directory)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cellar.manifest: MISSING", done.stdout)

    def test_dump_prints_the_records_as_commands_beside_a_running_server(self):
        done = self.cellar("--dump", self.server.directory)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("snapshot up to record", done.stdout)
        for i in range(50, 100):
            self.assertIn(f"value {i}", done.stdout)
        for path in self.paths(".log") + self.paths(".snapshot") + self.paths(".manifest"):
            self.assertEqual(self.cellar("--dump", path).returncode, 0, path)

    def test_damage_stops_the_start_and_repair_cuts_the_log_there(self):
        self.server.stop()
        log = self.paths(".log")[-1]
        self.flip(log, os.path.getsize(log) // 2)
        self.server.spawn()
        self.assertNotEqual(self.server.process.wait(120), 0)
        said = self.server.log()
        for word in (log, "offset", "record", "--check", "--repair"):
            self.assertIn(word, said)
        look = self.cellar("--check", self.server.directory)
        self.assertNotEqual(look.returncode, 0)
        self.assertIn("DAMAGED", look.stdout)
        repair = self.cellar("--check", self.server.directory, "--repair")
        self.assertEqual(repair.returncode, 0, repair.stdout + repair.stderr)
        self.assertTrue(os.path.exists(log + ".damaged"))
        client = self.server.start().client()
        rows = client.execute_command("CCOUNT", "t")
        self.assertGreater(rows, 50)
        self.assertLess(rows, 100)

    def test_a_damaged_snapshot_stops_the_start(self):
        self.server.stop()
        self.flip(self.paths(".snapshot")[0], 200)
        self.server.spawn()
        self.assertNotEqual(self.server.process.wait(120), 0)
        self.assertIn("checksum", self.server.log())
        self.assertNotEqual(self.cellar("--check", self.server.directory).returncode, 0)

    def test_what_is_sound_of_a_snapshot_is_salvaged_however_often_the_repair_is_killed(self):
        """Snapshot damaged and manifest gone; CELLAR_CHECK_SEED repeats a run."""
        seed = int(os.environ.get("CELLAR_CHECK_SEED", random.randrange(10**9)))
        print(f"seed {seed}", flush=True)
        chance = random.Random(seed)
        client = self.server.client()
        rows = 20_000
        pipe = client.pipeline(transaction=False)
        for i in range(rows):
            pipe.execute_command("CPUT", "t", f"key{i:06}", "f:v", f"{i} " + "x" * 200)
        pipe.execute()
        client.execute_command("SAVE")
        client.execute_command("CPUT", "t", "behind", "f:v", "the snapshot")
        self.server.stop()
        snapshot = self.paths(".snapshot")[0]
        for _ in range(3):
            self.flip(snapshot, chance.randrange(os.path.getsize(snapshot) // 10, os.path.getsize(snapshot) // 10 * 9))
        with open(snapshot, "rb") as file:
            damaged = file.read()
        os.remove(self.paths(".manifest")[0])
        for _ in range(12):
            with subprocess.Popen([binary(), "--check", self.server.directory, "--repair"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as repair:
                time.sleep(chance.random() * 0.03)
                repair.kill()
            if not os.path.exists(snapshot):
                break
        told = self.cellar("--check", self.server.directory, "--repair")
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        with open(snapshot + ".damaged", "rb") as file:
            self.assertEqual(damaged, file.read())
        client = self.server.start().client(decode_responses=True)
        self.assertEqual("the snapshot", client.execute_command("CGET", "t", "behind", "f:v"))
        there = 0
        for i in range(rows):
            value = client.execute_command("CGET", "t", f"key{i:06}", "f:v")
            self.assertIn(value, (None, f"{i} " + "x" * 200))
            there += value is not None
        self.assertLess(there, rows)
        self.assertGreater(there, rows // 2)
        lost = re.search(r"table 0/t: (\d+) of (\d+) cells; (\d+) of (\d+) rows are gone wholly", told.stdout)
        if lost:  # else one that was killed had come so far
            self.assertEqual([str(rows - there), str(rows + 100)] * 2, list(lost.groups()))
            self.assertIn("all between row key", told.stdout)

    def test_a_tail_of_zeros_or_noise_is_cut_with_a_warning(self):
        self.server.kill()
        log = self.paths(".log")[-1]
        for tail in (b"\0", b"\0" * 4096, b"\x01" * 12, os.urandom(100)):
            with open(log, "ab") as file:
                file.write(tail)
            self.server.start()
            self.assertEqual(self.server.client().execute_command("CCOUNT", "t"), 100)
            if tail.strip(b"\0"):
                self.assertIn("cut off", self.server.log())
            self.server.kill()


if __name__ == "__main__":
    unittest.main()
