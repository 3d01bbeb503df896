"""The levers of an operator: listening elsewhere while running, blocked clients, figures of the loop and of lookups."""

import os
import socket
import subprocess
import threading
import time
import unittest

import redis

from cellar_server import CellarServer, CellarTest, binary, free_port, not_on_a_follower, wait_until


class ListenTest(unittest.TestCase):
    """CONFIG SET port and bind."""

    def setUp(self):
        self.server = CellarServer(save="")
        self.addCleanup(self.server.close)
        self.server.start()
        self.client = self.server.client()
        self.addCleanup(self.client.close)
        self.client.ping()

    def answers(self, port, host="127.0.0.1"):
        try:
            with redis.Redis(host=host, port=port) as client:
                return client.ping()
        except redis.ConnectionError:
            return False

    def test_another_port(self):
        port = free_port()
        self.assertTrue(self.client.config_set("port", port))
        self.assertTrue(self.answers(port))
        self.assertFalse(self.answers(self.server.port))
        self.assertEqual(self.client.config_get("port")["port"], str(port))  # who is connected stays so

    def test_a_port_that_is_taken_changes_nothing(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with self.assertRaisesRegex(redis.ResponseError, "argument 'port'.*Unable to listen on this port"):
                self.client.execute_command("CONFIG", "SET", "maxmemory", "100mb", "port", taken.getsockname()[1])
        self.assertTrue(self.answers(self.server.port))
        self.assertEqual(self.client.config_get("maxmemory")["maxmemory"], "0")

    def test_an_option_that_is_mistyped_is_offered(self):
        with self.assertRaisesRegex(redis.ResponseError, "'maxmemroy', did you mean 'maxmemory'\\?"):
            self.client.execute_command("CONFIG", "SET", "maxmemroy", "1gb")

    def test_another_address(self):
        with self.assertRaisesRegex(redis.ResponseError, "Failed to bind to specified addresses"):
            self.client.config_set("bind", "999.999.999.999")
        self.assertTrue(self.answers(self.server.port))
        self.assertTrue(self.client.config_set("bind", "127.0.0.2 -::1"))
        self.assertTrue(self.answers(self.server.port, "127.0.0.2"))
        self.assertFalse(self.answers(self.server.port))

    def test_a_data_directory_that_is_made_is_told_of_once(self):
        directory = os.path.join(self.server.directory, "mistyped")
        with CellarServer(dir=directory, save="") as server:
            said = f"The data directory {directory} did not exist"
            self.assertEqual(1, server.log().count(said))
            server.stop()
            server.start()
            self.assertEqual(1, server.log().count(said))
        self.assertNotIn("did not exist", self.server.log())

    def test_a_data_directory_that_cannot_be_had(self):
        taken = self.server.directory
        for directory, status, said in (
                (os.path.join(taken, "no", "parent"), 1, "cannot create the data directory: mkdir"),
                ("", 2, "dir must name a directory"),
                (taken, 1, "cellar.lock' is locked: another process is using this directory")):
            done = subprocess.run([binary(), "--port", str(free_port()), "--dir", directory,
                                   "--create-dir", "yes"], capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertEqual(status, done.returncode)
            self.assertIn(said, done.stderr)

    def test_a_store_is_not_begun_unless_told_to(self):
        empty = os.path.join(self.server.directory, "not-mounted")
        missing = os.path.join(self.server.directory, "mistyped-too")
        os.mkdir(empty)
        for directory, said in ((empty, "holds no store"), (missing, "does not exist")):
            done = subprocess.run([binary(), "--port", str(free_port()), "--dir", directory], capture_output=True,
                                  text=True, timeout=60, check=False)
            self.assertEqual(1, done.returncode)
            self.assertIn(f"the data directory {directory} {said}", done.stderr)
            self.assertIn("--create-dir yes", done.stderr)
        self.assertEqual([], os.listdir(empty))
        self.assertFalse(os.path.exists(missing))
        with open(os.path.join(empty, "cellar.new"), "wb"):
            pass
        with CellarServer(dir=empty, create_dir="no", save="") as server:
            server.client().execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            server.stop()
            server.start()
            self.assertNotIn("cellar.new", os.listdir(empty))
            self.assertEqual([b"t"], server.client().execute_command("TABLE", "LIST"))

    def test_no_port_at_all(self):
        path = os.path.join(self.server.directory, "socket")
        with CellarServer(unixsocket=path, save="") as server:
            server.client().config_set("port", 0)
            self.assertFalse(self.answers(server.port))
            self.assertTrue(redis.Redis(unix_socket_path=path).ping())


@not_on_a_follower("the leader answers WAIT, and the others have all at once")
class BlockedTest(CellarTest):
    """WAIT and WAITAOF, the commands that block, and CLIENT UNBLOCK."""

    def blocked(self, *words):
        """Runs a command that blocks in a thread; returns the client's id and a function that joins."""
        client = self.server.client()
        self.addCleanup(client.close)
        got = []

        def run():
            try:
                got.append(client.execute_command(*words))
            except redis.ResponseError as error:
                got.append(error)

        connection = client.connection_pool.get_connection("CLIENT")
        connection.send_command("CLIENT", "ID")
        number = connection.read_response()
        client.connection_pool.release(connection)
        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: self.redis.info("clients")["blocked_clients"] != 0)

        def finish():
            thread.join()
            return got[0]

        return number, finish

    def test_wait_ends_with_its_time(self):
        self.assertEqual(self.run_command("WAIT", 0, 0), 0)
        begin = time.monotonic()
        self.assertEqual(self.run_command("WAIT", 1, 100), 0)
        self.assertLess(0.09, time.monotonic() - begin)
        with self.redis.pipeline() as pipe:  # nothing can wait inside EXEC
            pipe.execute_command("WAIT", 1, 0)
            self.assertEqual(pipe.execute(), [0])

    def test_unblock(self):
        number, finish = self.blocked("WAIT", 1, 0)
        self.assertEqual(self.run_command("CLIENT", "UNBLOCK", number), 1)
        self.assertEqual(finish(), 0)
        number, finish = self.blocked("WAIT", 1, 0)
        self.assertEqual(self.run_command("CLIENT", "UNBLOCK", number, "ERROR"), 1)
        self.assertEqual(str(finish()), "UNBLOCKED client unblocked via CLIENT UNBLOCK")
        self.assertEqual(self.run_command("CLIENT", "UNBLOCK", number), 0)

    def test_kill_of_a_blocked_client(self):
        client = self.server.client(single_connection_client=True)
        number = client.client_id()
        client.connection.send_command("WAIT", 1, 0)
        wait_until(lambda: self.redis.info("clients")["blocked_clients"] != 0)
        # An address that nobody has is nobody's, an empty one too.
        for filter_ in ("ADDR", "LADDR"):
            self.assertEqual(self.run_command("CLIENT", "KILL", filter_, ""), 0)
        self.assertEqual(self.run_command("CLIENT", "KILL", "ID", number), 1)
        with self.assertRaises(redis.ConnectionError):
            client.connection.read_response()
        self.assertEqual(self.redis.info("clients")["blocked_clients"], 0)


class TransactionTest(CellarTest):
    """EXEC under limits, pauses and eyes."""

    def setUp(self):
        super().setUp()
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.other = self.server.client(single_connection_client=True)
        self.addCleanup(self.other.close)

    def test_exec_is_refused_without_memory_unless_it_only_reads(self):
        self.addCleanup(self.redis.config_set, "maxmemory", 0)
        for words, refused in ((("CPUT", "t", "r", "f:a", "1"), True), (("CGET", "t", "r", "f:a"), False)):
            self.other.execute_command("MULTI")
            self.other.execute_command(*words)
            self.redis.config_set("maxmemory", 1)
            if refused:
                with self.assertRaisesRegex(redis.ResponseError, "Transaction discarded because of: OOM command not"):
                    self.other.execute_command("EXEC")
            else:
                self.assertEqual(self.other.execute_command("EXEC"), [None])
            self.redis.config_set("maxmemory", 0)
            self.assertIsNone(self.other.execute_command("CGET", "t", "r", "f:a"))  # out of MULTI

    @not_on_a_follower("MONITOR shows what a node carries out itself")
    def test_monitor_shows_exec_behind_its_commands(self):
        with self.redis.monitor() as watch:
            for words in ("MULTI", "CPUT t r f:a 1", "EXEC"):
                self.other.execute_command(*words.split())
            seen = [watch.next_command()["command"] for _ in range(3)]
        self.assertEqual(seen, ["MULTI", "CPUT t r f:a 1", "EXEC"])

    def test_paused_clients_count_as_blocked(self):
        self.redis.execute_command("CLIENT", "PAUSE", 100_000, "WRITE")
        connection = self.server.connect()
        self.addCleanup(connection.close)
        connection.sendall(b"CPUT t r f:a 1\r\nECHO done\r\n")
        wait_until(lambda: self.redis.info("clients")["blocked_clients"] != 0)
        self.assertEqual([client["flags"] for client in self.redis.client_list()].count("b"), 1)
        self.redis.execute_command("CLIENT", "UNPAUSE")
        with connection.makefile("rb") as replies:  # they may come in parts
            self.assertEqual(replies.read(15), b"+OK\r\n$4\r\ndone\r\n")
        self.assertEqual(self.redis.info("clients")["blocked_clients"], 0)


class FiguresTest(CellarTest):
    """INFO."""

    def difference(self, before, field):
        return self.redis.info("everything")[field] - before[field]

    @not_on_a_follower("a node counts what it answers itself")
    def test_lookups_are_hits_and_misses(self):
        self.run_command("TABLE", "CREATE", "t", "FAMILY", "f")
        self.run_command("CPUT", "t", "r", "f:a", 1)
        before = self.redis.info("everything")
        for words in ("CGET t r f:a", "CMGET t r f:a f:b", "CROW t r", "CEXISTS t r", "EXISTS t u"):
            self.run_command(*words.split())
        for words in ("CGET t none f:a", "CROW t none", "TYPE none"):
            self.run_command(*words.split())
        self.assertEqual((self.difference(before, "keyspace_hits"), self.difference(before, "keyspace_misses")), (5, 5))

    def test_the_loop_counts_its_turns_and_their_time(self):
        before = self.redis.info("everything")
        for _ in range(100):
            self.redis.ping()
        self.assertLessEqual(100, self.difference(before, "eventloop_cycles"))
        self.assertLess(0, self.difference(before, "eventloop_duration_sum"))
        self.assertLess(0, self.redis.info("everything")["eventloop_duration_cmd_sum"])

    def test_client_info_shows_the_bytes_of_the_query(self):
        with self.server.connect() as connection:
            connection.sendall(b"*2\r\n$6\r\nclient\r\n$4\r\ninfo\r\n")
            self.assertIn(b" qbuf=26 ", connection.recv(1000))

    @not_on_a_follower("the leader keeps them")
    def test_watched_keys(self):
        with self.redis.pipeline() as pipe:
            pipe.watch("a", "b")
            self.assertEqual(self.redis.info("everything")["total_watched_keys"], 2)


if __name__ == "__main__":
    unittest.main()
