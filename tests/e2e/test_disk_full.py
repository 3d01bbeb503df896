"""A full disk: writes are refused, all else goes on, and writes resume by themselves.

The disk is a tmpfs of a few MiB, which only root may mount; elsewhere the tests are skipped.
"""

import os
import re
import resource
import subprocess
import tempfile
import unittest

import redis
from cellar_server import CellarServer, wait_until

DISK_BYTES = 12 << 20
VALUE = "v" * 2000


def wait_for_line(server, pattern):
    """Until the server's log has a line that matches."""
    wait_until(lambda: re.search(pattern, server.log()), lambda: f"no {pattern!r} in:\n{server.log()}")


class DiskFullTest(unittest.TestCase):
    def setUp(self):
        self.mount = tempfile.mkdtemp(prefix="cellar-disk-")
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", self.mount],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if mounted.returncode != 0:
            os.rmdir(self.mount)
            self.skipTest("mounting a tmpfs is not allowed here")
        self.addCleanup(self.unmount)

    def unmount(self):
        subprocess.run(["umount", self.mount], check=True)
        os.rmdir(self.mount)

    @staticmethod
    def write(client, i):
        """True if write i was acknowledged, False if it was refused with MISCONF."""
        try:
            client.execute_command("CPUT", "t", f"row{i}", "f:v", f"{i} {VALUE}")
            return True
        except redis.ResponseError as error:
            if not str(error).startswith("MISCONF"):
                raise
            return False

    def check(self, policy):
        """Fill the disk, look, free it, go on, crash, and look again."""
        filler = os.path.join(self.mount, "filler")
        with open(filler, "wb") as file:
            file.write(b"x" * (DISK_BYTES // 2))
        directory = os.path.join(self.mount, "db")
        with CellarServer(directory=self.make(directory), appendfsync=policy, save="") as server:
            client = server.client(socket_timeout=60)
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            written = 0
            went_on_with_little = False
            while self.write(client, written):
                written += 1
                self.assertLess(written * len(VALUE), DISK_BYTES, "the disk never got full")
                # Not before a write is refused is the status `err`; that it will be is told ahead.
                state = client.info("persistence")
                self.assertEqual("ok", state["aof_last_write_status"])
                if state["aof_room_status"] == "low":
                    went_on_with_little = True
                    self.assertIn("No space left", state["aof_last_error"])
            self.assertTrue(went_on_with_little)
            state = client.info("persistence")
            self.assertEqual(("err", "low"), (state["aof_last_write_status"], state["aof_room_status"]))
            self.assertLess(state["aof_room_bytes"], 2 * len(VALUE))
            wait_for_line(server, "The log cannot grow; writes are refused with MISCONF: ")
            self.assertGreater(written * len(VALUE), DISK_BYTES // 8, "room was left unused")

            # Reads and PING go on; a refused write is not there.
            for _ in range(20):
                self.assertFalse(self.write(client, written))
            self.assertTrue(client.ping())
            self.assertIsNone(client.execute_command("CGET", "t", f"row{written}", "f:v"))
            for i in range(0, written, 97):
                self.assertTrue(client.execute_command("CGET", "t", f"row{i}", "f:v"))
            self.assertIsNone(server.process.poll(), "the server has left")

            with self.assertRaisesRegex(redis.ResponseError, "the snapshot failed: .* No space left on device"):
                client.execute_command("SAVE")
            wait_for_line(server, "The log cannot grow; .* MISCONF: .* No space left on device")
            wait_for_line(server, "The snapshot failed; .* No space left on device")

            os.remove(filler)
            wait_until(lambda: self.write(client, written), "writes did not resume")
            for i in range(written + 1, written + 200):
                self.assertTrue(self.write(client, i))
            self.assertEqual("ok", client.info("persistence")["aof_last_write_status"])
            written += 200
            if policy == "everysec":
                def is_on_disk():
                    state = client.info("persistence")
                    return state["aof_durable_lsn"] == state["aof_last_lsn"]
                wait_until(is_on_disk, "the log is not synced")
            server.crash()
            client = server.client()
            for i in range(written):
                value = client.execute_command("CGET", "t", f"row{i}", "f:v")
                self.assertEqual(value, f"{i} {VALUE}".encode(), f"row {i} of {written}")

    @staticmethod
    def make(directory):
        os.mkdir(directory)
        return directory

    def test_always(self):
        self.check("always")

    def test_everysec(self):
        self.check("everysec")


class FileSizeTest(unittest.TestCase):
    """A limit of file sizes (ulimit -f, LimitFSIZE=) is like a full disk; it does not end the server."""

    BYTES_MAX = 2 << 20

    @staticmethod
    def limit(server, size):
        """No file of the server may become larger from now on."""
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def test_writes_are_refused_and_nothing_is_lost(self):
        with CellarServer(appendfsync="always", save="") as server:
            self.limit(server, self.BYTES_MAX)
            client = server.client(socket_timeout=60)
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            written = 0
            while DiskFullTest.write(client, written):
                written += 1
                self.assertLess(written * len(VALUE), 2 * self.BYTES_MAX, "there was no limit")
            self.assertEqual(client.execute_command("CCOUNT", "t"), written)
            self.assertIsNone(server.process.poll(), "the server has left")
            wait_for_line(server, "The log cannot grow; .* MISCONF: .* File too large")
            self.limit(server, self.BYTES_MAX // 2)
            with self.assertRaisesRegex(redis.ResponseError, "the snapshot failed: .* File too large"):
                client.execute_command("SAVE")
            wait_for_line(server, "The snapshot failed; .* File too large")
            self.limit(server, resource.RLIM_INFINITY)
            wait_until(lambda: DiskFullTest.write(client, written), "writes did not resume")
            wait_for_line(server, "The log can be written and has space again")
            state = client.info("persistence")
            self.assertEqual(("ok", "ok"), (state["aof_last_write_status"], state["aof_room_status"]))
            self.assertNotIn("aof_last_error", state)
            client.execute_command("SAVE")
            wait_for_line(server, "Snapshots can be written again")
            wait_for_line(server, r"Snapshot written: \d+ bytes")
            server.crash()
            self.assertEqual(server.client().execute_command("CCOUNT", "t"), written + 1)


if __name__ == "__main__":
    unittest.main()
