"""Where a server listens: names of unix sockets, the pidfile, ports, and how many clients there is room for."""

import glob
import itertools
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import unittest

import redis

from cellar_server import CellarServer, CellarTest, START_SECONDS_MAX, free_port, wait_until


def run_refused(server):
    """A server that must not start: what it says."""
    done = subprocess.run(server.arguments(), capture_output=True, text=True, timeout=START_SECONDS_MAX, check=False)
    if done.returncode != 1:
        raise AssertionError(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stderr.splitlines()[-1]


def status_of(path):
    """What is there, without following a link."""
    info = os.lstat(path)
    return info.st_ino, info.st_mode, info.st_size


class UnixSocketTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cellar-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name="s"):
        return os.path.join(self.folder, name)

    def server(self, **options):
        server = CellarServer(save="", **options)
        self.addCleanup(server.close)
        return server

    def test_whose_name_is_taken_leaves_it_as_it_is(self):
        """Each kind of thing that may have the name, and each way to end."""
        def living():
            return self.server(unixsocket=self.path()).start()

        def listening(kind):
            holder = socket.socket(socket.AF_UNIX, kind)
            holder.bind(self.path())
            if kind == socket.SOCK_STREAM:
                holder.listen(1)
            self.addCleanup(holder.close)

        def file():
            with open(self.path(), "w", encoding="utf-8") as made:
                made.write("keep me")

        def link_to(target):
            with open(self.path("target"), "w", encoding="utf-8") as made:
                made.write("keep me")
            os.symlink(target, self.path())

        makers = {"a server": living, "a listener": lambda: listening(socket.SOCK_STREAM),
                  "datagrams": lambda: listening(socket.SOCK_DGRAM), "a file": file,
                  "a link to a file": lambda: link_to(self.path("target")), "a link to nothing": lambda: link_to("nothing"),
                  "a folder": lambda: os.mkdir(self.path()), "a pipe": lambda: os.mkfifo(self.path())}
        for name, make in makers.items():
            with self.subTest(name):
                held = make()
                before = status_of(self.path())
                second = self.server(unixsocket=self.path())
                self.assertIn(f"cannot listen on {self.path()}: ", run_refused(second))
                self.assertEqual(before, status_of(self.path()))
                if held is not None:
                    self.assertTrue(redis.Redis(unix_socket_path=self.path()).ping())
                    held.stop()
                    self.assertFalse(os.path.lexists(self.path()))
                elif stat.S_ISDIR(before[1]):
                    os.rmdir(self.path())
                else:
                    os.unlink(self.path())

    def test_a_long_path_is_refused_and_the_longest_is_not(self):
        longest = self.path("x" * (107 - len(self.folder) - 1))
        self.assertEqual(107, len(longest))
        for path in (longest + "x", longest + "/", "y" * 5000):
            said = run_refused(self.server(unixsocket=path))
            self.assertIn("at most 107 bytes", said)
        self.assertEqual([], os.listdir(self.folder))
        server = self.server(unixsocket=longest).start()
        self.assertTrue(redis.Redis(unix_socket_path=longest).ping())
        self.assertEqual(0, server.stop())
        self.assertEqual([], os.listdir(self.folder))

    def test_a_dead_socket_is_replaced(self):
        for threads in (1, 2):
            server = self.server(unixsocket=self.path(), unixsocketperm="600", io_threads=threads).start()
            server.kill()
            self.assertTrue(os.path.exists(self.path()))
            server.start()
            self.assertTrue(redis.Redis(unix_socket_path=self.path()).ping())
            self.assertEqual(0o600, os.stat(self.path()).st_mode & 0o777)
            self.assertEqual(0, server.stop())
            self.assertFalse(os.path.exists(self.path()))

    def test_of_many_that_find_a_dead_socket_one_has_it(self):
        for _ in range(3):
            dead = socket.socket(socket.AF_UNIX)
            dead.bind(self.path())
            dead.close()
            servers = [self.server(unixsocket=self.path()).spawn() for _ in range(4)]
            wait_until(lambda servers=servers: sum(server.process.poll() is not None for server in servers) >= 3, "three leave")
            left = [server for server in servers if server.process.poll() is None]
            self.assertEqual(1, len(left))
            client = redis.Redis(unix_socket_path=self.path())
            self.assertEqual(left[0].port, int(client.config_get("port")["port"]))
            client.close()
            self.assertEqual(0, left[0].stop())

    def test_what_is_not_its_own_any_more_stays_at_the_end(self):
        server = self.server(unixsocket=self.path()).start()
        os.unlink(self.path())
        with open(self.path(), "w", encoding="utf-8") as file:
            file.write("another's")
        self.assertEqual(0, server.stop())
        with open(self.path(), encoding="utf-8") as file:
            self.assertEqual("another's", file.read())

    def test_a_pidfile_is_its_own_servers(self):
        pid = self.path("pid")
        first = self.server(pidfile=pid).start()
        with open(pid, encoding="utf-8") as file:
            self.assertEqual(first.process.pid, int(file.read()))
        second = self.server(pidfile=pid, port=first.port)
        self.assertIn("address already in use", run_refused(second))
        with open(pid, encoding="utf-8") as file:
            self.assertEqual(first.process.pid, int(file.read()))
        third = self.server(pidfile=pid).start()
        self.assertEqual(0, first.stop())
        self.assertTrue(os.path.exists(pid))
        self.assertEqual(0, third.stop())
        self.assertFalse(os.path.exists(pid))


class DoorTest(CellarTest):
    OPTIONS = {"save": ""}

    def test_the_last_door_is_not_closed(self):
        before = self.redis.config_get("port")["port"]
        for options in ({"port": 0}, {"port": 0, "tls-port": 0}, {"bind": ""}, {"bind": "-192.0.2.1"}):
            words = itertools.chain(*options.items())
            with self.assertRaisesRegex(redis.ResponseError, "nothing to listen on"):
                self.redis.execute_command("CONFIG", "SET", *words)
            self.assertTrue(self.server.client().ping(), options)
        self.assertEqual(before, self.redis.config_get("port")["port"])

    def test_with_another_door_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s")
            with CellarServer(unixsocket=path, save="") as server:
                client = redis.Redis(unix_socket_path=path)
                client.config_set("port", 0)
                with self.assertRaises(OSError):
                    server.connect()
                client.config_set("port", server.port)
                self.assertTrue(server.client().ping())


class DescriptorTest(unittest.TestCase):
    """The system allows fewer open files than maxclients needs."""

    def start(self, files, **options):
        server = CellarServer(save="", appendonly="yes", **options)
        self.addCleanup(server.close)
        words = server.arguments()
        server.arguments = lambda: ["bash", "-c", f'ulimit -n {files}; exec "$@"', "bash"] + words
        return server.start()

    def test_a_full_house_says_so_and_saves(self):
        for files, threads in ((100, 1), (100, 2), (160, 3)):
            with self.subTest(files=files, threads=threads):
                server = self.start(files, io_threads=threads)
                client = server.client()
                self.assertIn(f"the system allows {files} open files", server.log())
                places = int(client.config_get("maxclients")["maxclients"])
                self.assertTrue(30 < places < files - 30, places)
                held, refused = [], 0
                for _ in range(3 * files):
                    connection = server.connect()
                    connection.sendall(b"PING\r\n")
                    said = connection.recv(100)
                    if said == b"+PONG\r\n":
                        held.append(connection)
                    else:
                        self.assertEqual(b"-ERR max number of clients reached\r\n", said)
                        refused += 1
                        connection.close()
                self.assertEqual(places, len(held) + 1)
                self.assertEqual(refused, client.info("stats")["rejected_connections"])
                client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
                client.execute_command("CPUT", "t", "r", "f:a", "1")
                client.bgsave()
                wait_until(lambda client=client: not client.info("persistence")["rdb_bgsave_in_progress"], "it is saved")
                self.assertEqual("ok", client.info("persistence")["rdb_last_bgsave_status"])
                with self.assertRaisesRegex(redis.ResponseError, f"try with {places}"):
                    client.config_set("maxclients", 5000)
                self.assertEqual(places, int(client.config_get("maxclients")["maxclients"]))
                client.config_set("maxclients", places - 1)
                for connection in held:
                    connection.close()
                self.assertEqual(0, server.stop())

    def test_the_file_keeps_what_was_wanted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cellar.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write("maxclients 3000\n")
            server = self.start(100, config=path)
            client = server.client()
            client.execute_command("CONFIG", "REWRITE")
            with open(path, encoding="utf-8") as file:
                self.assertIn("maxclients 3000\n", file.read())
            # A signal to read it again does not fail for that.
            server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "SIGHUP: 0 options have changed" in server.log(), server.log)

    def test_too_few_for_any_client_is_no_start(self):
        server = CellarServer()
        self.addCleanup(server.close)
        words = ["bash", "-c", 'ulimit -n 40; exec "$@"', "bash"] + server.arguments()
        done = subprocess.run(words, capture_output=True, text=True, timeout=START_SECONDS_MAX, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("the system allows 40 open files", done.stderr.splitlines()[-1])


class FileModeTest(unittest.TestCase):
    """Who may read the files of a store does not depend on the umask."""

    def modes(self, folder):
        return {os.path.basename(path): os.stat(path).st_mode & 0o777
                for path in glob.glob(os.path.join(folder, "cellar*"))}

    def fill(self, server):
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        for i in range(20):
            client.execute_command("CPUT", "t", f"r{i}", "f:a", "1")
        client.save()
        for word, state in (("START", b"incrementing"), ("SEAL", b"sealed")):
            self.assertEqual(b"OK", client.execute_command("BACKUP", word))
            wait_until(lambda state=state: state in client.execute_command("BACKUP", "STATUS"), state.decode())
        client.close()

    def test_new_and_old_ones(self):
        for mask in (0, 0o022, 0o077, 0o777 & random.Random(7).getrandbits(9) & 0o177):
            with self.subTest(umask=oct(mask)), tempfile.TemporaryDirectory() as parent:
                store, archive = os.path.join(parent, "store"), os.path.join(parent, "archive")
                server = CellarServer(directory=store, archive_dir=archive)
                server.log_path = os.path.join(parent, "output")
                self.addCleanup(server.kill)
                words = server.arguments()
                server.arguments = lambda w=words, m=mask: ["bash", "-c", f'umask {m:o}; exec "$@"', "bash"] + w
                server.start()
                self.fill(server)
                folders = [store, archive, os.path.join(store, "backupdir")]
                for old in (False, True):
                    if old:
                        server.stop()
                        for folder in folders:
                            os.chmod(folder, 0o755)
                            for name in self.modes(folder):
                                os.chmod(os.path.join(folder, name), random.choice((0o644, 0o666, 0o600)))
                        with open(os.path.join(store, "cellar.conf"), "w", encoding="utf-8") as file:
                            os.fchmod(file.fileno(), 0o600)
                        server.start()
                    for folder in folders:
                        self.assertEqual(0o750, os.stat(folder).st_mode & 0o777, folder)
                        modes = self.modes(folder)
                        self.assertGreater(len(modes), 1)
                        self.assertEqual({0o640}, {mode for name, mode in modes.items() if name != "cellar.conf"}, modes)
                self.assertEqual(0o600, self.modes(store)["cellar.conf"])
                server.stop()


class ShutdownTest(unittest.TestCase):
    def test_who_stays_has_not_said_that_it_leaves(self):
        with CellarServer(appendonly="no", save="3600 1") as server:
            client = server.client()
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            # A folder where the snapshot is to be written: it cannot be.
            os.chmod(server.directory, 0o500)
            if os.geteuid() == 0:
                for number in range(1, 60):
                    os.makedirs(os.path.join(server.directory, f"cellar-{number:06}.snapshot.tmp"), exist_ok=True)
            with self.assertRaises(redis.ResponseError):
                client.execute_command("SHUTDOWN", "SAVE")
            self.assertNotIn("leaving", server.log())
            self.assertIn("staying", server.log())
            os.chmod(server.directory, 0o700)


if __name__ == "__main__":
    unittest.main()
