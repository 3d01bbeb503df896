"""The server's side of systemd: what it says to NOTIFY_SOCKET, SIGHUP, and sockets that are handed to it."""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import redis
from cellar_server import CellarServer, binary, tool, wait_until

SECONDS_MAX = 120


class Notifications:
    """Plays systemd: a datagram socket that collects what is said."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.lines = []

    def wait_for(self, word):
        """Everything said up to the first message that holds `word`."""
        deadline = time.monotonic() + SECONDS_MAX
        seen = []
        while time.monotonic() < deadline:
            self.socket.settimeout(max(0.1, deadline - time.monotonic()))
            lines = self.socket.recv(65536).decode().split("\n")
            seen += lines
            if any(line.startswith(word) for line in lines):
                return seen
        raise AssertionError(f"{word} was never said, but {seen}")

    def close(self):
        self.socket.close()


class SystemdTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.notifications = Notifications(self.directory)
        self.addCleanup(self.notifications.close)

    def server(self, conf="", **options):
        """A server that is not started yet, with a configuration file and a NOTIFY_SOCKET."""
        self.conf = os.path.join(self.directory, "cellar.conf")
        self.write_conf(conf)
        server = CellarServer(config=self.conf, **options)
        server.environment["NOTIFY_SOCKET"] = self.notifications.path
        self.addCleanup(server.close)
        return server

    def write_conf(self, text):
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write(text)

    def test_ready_watchdog_stopping(self):
        server = self.server()
        server.environment["WATCHDOG_USEC"] = "200000"
        server.spawn()
        self.assertIn("READY=1", self.notifications.wait_for("READY=1"))
        client = server.client()
        self.assertTrue(client.ping())
        client.close()
        self.notifications.wait_for("WATCHDOG=1")
        self.notifications.wait_for("WATCHDOG=1")
        server.process.send_signal(signal.SIGTERM)
        self.notifications.wait_for("STOPPING=1")
        self.assertEqual(0, server.process.wait(timeout=SECONDS_MAX))

    def test_a_load_asks_for_time_and_ready_comes_after_it(self):
        server = self.server(save="", appendfsync="no").start()
        self.notifications.wait_for("READY=1")
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        pipe = client.pipeline(transaction=False)
        for i in range(20_000):
            pipe.execute_command("CPUT", "t", f"row{i}", "f:a", "x" * 100)
        pipe.execute()
        client.close()
        self.assertEqual(0, server.stop())
        self.notifications.wait_for("STOPPING=1")
        server.spawn()
        seen = self.notifications.wait_for("READY=1")
        self.assertTrue(any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in seen), seen)
        self.assertTrue(any(line.startswith("STATUS=Loading") for line in seen), seen)
        client = server.client()
        self.assertEqual(20_000, client.execute_command("CCOUNT", "t"))
        client.close()

    def test_what_is_set_during_a_load_holds_behind_it(self):
        server = self.server(save="", appendfsync="no").start()
        self.notifications.wait_for("READY=1")
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        client.close()
        done = subprocess.run([tool("cellar-benchmark"), "--port", str(server.port), "--preload", "300000", "--load-only",
                               "--quiet", "--load-command", "CPUT t __key__ f:a __data:10__"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(0, server.stop())
        self.notifications.wait_for("STOPPING=1")
        server.spawn()
        self.notifications.wait_for("STATUS=Loading")
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX) as connection:
            connection.sendall(b"CONFIG SET max-value-bytes 100 appendfsync always\r\n")
            self.assertEqual(b"+OK\r\n", connection.recv(100))
        self.notifications.wait_for("READY=1")
        client = server.client()
        with self.assertRaisesRegex(redis.ResponseError, "100"):
            client.execute_command("CPUT", "t", "r", "f:a", "x" * 1000)
        syncs = client.info("persistence")["aof_syncs"]
        for i in range(20):
            client.execute_command("CPUT", "t", "r", "f:a", str(i))
        self.assertGreaterEqual(client.info("persistence")["aof_syncs"] - syncs, 20)
        client.close()

    def test_a_signal_ends_a_load_at_once_and_the_data_stay(self):
        server = self.server(save="", appendfsync="no").start()
        self.notifications.wait_for("READY=1")
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        done = subprocess.run([tool("cellar-benchmark"), "--port", str(server.port), "--preload", "500000", "--load-only",
                               "--quiet", "--load-command", "CPUT t __key__ f:a __data:10__"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        digest = client.execute_command("CCOUNT", "t")
        self.assertGreater(digest, 100_000)
        for snapshot in (False, True):
            if snapshot:
                client.execute_command("SAVE")
            client.close()
            self.assertEqual(0, server.stop())
            self.notifications.wait_for("STOPPING=1")
            seen = server.log().count("Log replayed")
            server.spawn()
            self.notifications.wait_for("STATUS=Loading")
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(0, server.process.wait(timeout=SECONDS_MAX))
            if not snapshot:  # which may be loaded before the signal is there
                self.assertEqual(seen, server.log().count("Log replayed"), server.log())
                self.assertIn("Stopped while loading", server.log())
            server.start()
            self.notifications.wait_for("READY=1")
            client = server.client()
            self.assertEqual(digest, client.execute_command("CCOUNT", "t"))
        client.close()

    def reload(self, server):
        server.process.send_signal(signal.SIGHUP)
        seen = self.notifications.wait_for("RELOADING=1")
        self.assertTrue(any(line.startswith("MONOTONIC_USEC=") for line in seen), seen)
        self.notifications.wait_for("READY=1")

    def test_sighup_reads_the_configuration_again(self):
        server = self.server("maxclients 500\ntimeout 100\n", slowlog_max_len="77").start()
        self.notifications.wait_for("READY=1")
        client = server.client()
        client.config_set("hz", "20")
        self.write_conf("maxclients 600\nappendfsync always\nslowlog-max-len 5\nrequirepass secret\n"
                        "databases 16\npidfile /nowhere/else\n")
        self.reload(server)
        found = client.config_get("*")
        self.assertEqual(("600", "always", "77", "100", "20", "secret"),
                         tuple(found[name] for name in ("maxclients", "appendfsync", "slowlog-max-len", "timeout",
                                                        "hz", "requirepass")))
        self.assertEqual("", found["pidfile"])
        self.assertIn("pidfile takes effect at the next start", server.log())
        self.assertNotIn("secret", server.log())
        client.close()
        stranger = server.client()
        with self.assertRaises(redis.AuthenticationError):
            stranger.ping()
        stranger.close()

    def test_a_mistake_in_the_file_changes_nothing(self):
        server = self.server("maxclients 500\n").start()
        self.notifications.wait_for("READY=1")
        self.write_conf("maxclients 600\nappendfsync sometimes\n")
        self.reload(server)
        client = server.client()
        self.assertEqual("500", client.config_get("maxclients")["maxclients"])
        client.close()
        self.assertIn("nothing has changed", server.log())

    def test_an_option_that_cannot_be_carried_out_leaves_options_and_users_as_they_were(self):
        server = self.server("maxclients 500\nbind 127.0.0.1\nuser reader on >old ~* +@read\n")
        # What stands on the command line would beat the file.
        server.arguments = lambda: [binary(), self.conf, "--port", str(server.port), "--dir", server.directory,
                                    "--create-dir", "yes"]
        server.start()
        self.notifications.wait_for("READY=1")
        client = server.client()
        before = client.acl_list()
        self.write_conf("maxclients 600\nrequirepass secret\nbind 192.0.2.1\n"
                        "user reader on >new ~* +@all\nuser stranger on nopass ~* +@all\n")
        self.reload(server)
        self.assertEqual(before, client.acl_list())
        self.assertEqual("500", client.config_get("maxclients")["maxclients"])
        self.assertIn("nothing has changed: bind: Failed to bind", server.log())
        # A user that cannot be read refuses the options too.
        self.write_conf("maxclients 600\nuser stranger on nopass ~* +@nosuch\n")
        self.reload(server)
        self.assertEqual(before, client.acl_list())
        self.assertEqual("500", client.config_get("maxclients")["maxclients"])
        self.write_conf("maxclients 600\nrequirepass secret\nuser reader on >new ~* +@all\n")
        self.reload(server)
        self.assertEqual("600", client.config_get("maxclients")["maxclients"])
        other = server.client(username="reader", password="new")
        self.assertTrue(other.ping())
        other.close()
        client.close()

    def test_sighup_without_a_file_is_harmless(self):
        with CellarServer() as server:
            server.process.send_signal(signal.SIGHUP)
            client = server.client()
            self.assertTrue(client.ping())
            client.close()
            self.assertIsNone(server.process.poll())


class SocketActivationTest(unittest.TestCase):
    def test_inherited_sockets_are_served_in_place_of_bind_and_port(self):
        with tempfile.TemporaryDirectory() as directory, socket.socket() as tcp, \
                socket.socket(socket.AF_UNIX) as local:
            tcp.bind(("127.0.0.1", 0))
            path = os.path.join(directory, "socket")
            local.bind(path)
            for listener in (tcp, local):
                listener.listen()
                listener.set_inheritable(True)
            # The shell's process id is the server's after exec; 10 and 11 keep clear of the two descriptors.
            script = (f"exec 10<&{tcp.fileno()} 11<&{local.fileno()}; exec 3<&10 4<&11 10<&- 11<&-; "
                      'LISTEN_PID=$$ LISTEN_FDS=2 exec "$@"')
            process = subprocess.Popen(
                ["bash", "-c", script, "bash", binary(), "--port", "1", "--bind", "127.0.0.1", "--dir", directory,
                 "--create-dir", "yes"],
                pass_fds=(tcp.fileno(), local.fileno()), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
            try:
                for client in (redis.Redis(port=tcp.getsockname()[1]), redis.Redis(unix_socket_path=path)):
                    self.wait_until_it_serves(client, process)
                    client.close()
            finally:
                process.send_signal(signal.SIGTERM)
                self.assertEqual(0, process.wait(timeout=SECONDS_MAX))

    def wait_until_it_serves(self, client, process):
        def serves():
            self.assertIsNone(process.poll())
            with contextlib.suppress(redis.BusyLoadingError):
                self.assertTrue(client.ping())
                return True
            return False
        wait_until(serves, "it serves")


if __name__ == "__main__":
    unittest.main()
