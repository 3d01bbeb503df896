"""What clients make the server hold at once: groups of CAGGs, halves of requests, queues of MULTI."""

import socket
import threading
import unittest

from cellar_server import CellarServer, is_sanitized, wait_until
from cluster_sets import SetsCase

MB = 1 << 20
FIGURES = ("mem_work_taken", "mem_work_aggregates", "mem_work_updates", "mem_work_pages", "work_waiting")


def field(client, name, section="memory"):
    return client.info(section)[name]


class Watch:
    """The most that a field of INFO says while it runs, and whether writes are taken."""

    def __init__(self, server):
        self.client = server.client()
        self.used = self.taken = self.waiting = self.written = 0
        self.errors = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.stop.is_set():
            memory = self.client.info("memory")
            self.used = max(self.used, memory["used_memory"])
            self.taken = max(self.taken, memory["mem_work_taken"])
            self.waiting = max(self.waiting, memory["work_waiting"])
            try:
                self.client.execute_command("CPUT", "other", "r%d" % self.written, "f:a", "1")
                self.written += 1
            except Exception as error:
                self.errors.append(str(error))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


class WorkOverSetsTest(SetsCase):
    """Who puts together what several sets fold waits for parts that take memory, too, and nobody waits for him."""

    ROWS = 9_000
    ASKERS = 30

    def test_aggregates_at_once_end(self):
        self.cluster(3)
        self.everyone[0].run("TABLE CREATE t SPLIT AT 2 h p FAMILY f")
        with self.everyone[0].asks.pipeline(transaction=False) as pipe:
            for i in range(self.ROWS):
                pipe.execute_command("CPUT", "t", f"{chr(97 + i % 26)}{i}", "f:a", i, "f:b", "x")
                if i % 1000 == 999:
                    pipe.execute()
        words = ("CAGG", "t", "BY", "KEY", "1", "REDUCE", "COUNT", "*", "REDUCE", "DISTINCT", "f:a")
        expected = self.everyone[0].run(*words)
        self.assertEqual(self.ROWS, len(expected))
        replies, errors = [], []

        def ask(member):
            try:
                replies.append(member.server.client(decode_responses=True).execute_command(*words))
            except Exception as error:
                errors.append(error)
        threads = [threading.Thread(target=ask, args=(self.everyone[i % 3],), daemon=True) for i in range(self.ASKERS)]
        for thread in threads:
            thread.start()
        self.wait_until(lambda: len(replies) + len(errors) == self.ASKERS,
                        lambda: [(len(replies), field(member.redis, "work_waiting"), field(member.redis, "mem_work_merged")) for member in self.everyone])
        self.assertEqual([], errors)
        self.assertTrue(all(reply == expected for reply in replies))
        for member in self.everyone:
            self.assertEqual(0, field(member.redis, "mem_work_merged"))
            self.assertEqual(0, field(member.redis, "work_waiting"))


@unittest.skipIf(is_sanitized(), "memory is not its own")
class WorkMemoryTest(unittest.TestCase):
    ROWS = 100_000

    def fill(self, client):
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "TYPE", "i64")
        client.execute_command("TABLE", "CREATE", "other", "FAMILY", "f")
        pipe = client.pipeline(transaction=False)
        for at in range(self.ROWS):
            pipe.execute_command("CPUT", "t", "row%08d" % at, "f:a", at, "f:b", at % 7)
            if at % 5000 == 4999:
                pipe.execute()
        pipe.execute()

    def run_all(self, server, count, words):
        answers = [None] * count

        def ask(at):
            try:
                answers[at] = server.client().execute_command(*words)
            except Exception as error:
                answers[at] = error
        threads = [threading.Thread(target=ask, args=(at,)) for at in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def test_forty_aggregations_keep_within_one_bound(self):
        for threads in (1, 0):
            with CellarServer(maxmemory="200mb", save="", read_threads=threads) as server:
                client = server.client()
                self.fill(client)
                before = field(client, "used_memory")
                words = ["CAGG", "t", "BY", "KEY", "REDUCE", "SUM", "f:a", "REDUCE", "DISTINCT", "f:b",
                         "SORT", "sum(f:a)", "DESC", "LIMIT", "0", "3"]
                with Watch(server) as watch:
                    answers = self.run_all(server, 40, words)
                self.assertEqual(watch.errors, [])
                self.assertGreater(watch.written, 0)
                self.assertGreater(watch.waiting, 0)
                self.assertLessEqual(watch.taken, 50 * MB)
                self.assertLess(watch.used, before + 50 * MB + 10 * MB)
                for answer in answers:
                    self.assertEqual(str(answer), str(answers[0]))
                if not isinstance(answers[0], Exception):
                    self.assertEqual(len(answers[0]), 3)
                self.assertEqual(field(client, "mem_work_taken"), 0)
                self.assertEqual(field(client, "work_waiting"), 0)

    def test_one_group_takes_next_to_nothing(self):
        with CellarServer(save="", work_max_memory="64mb") as server:
            client = server.client()
            self.fill(client)
            with Watch(server) as watch:
                answers = self.run_all(server, 40, ["CAGG", "t", "REDUCE", "SUM", "f:a", "REDUCE", "DISTINCT", "f:b"])
            total = self.ROWS * (self.ROWS - 1) // 2
            self.assertEqual({str(answer) for answer in answers},
                             {str([[[], [b"sum(f:a)", total, b"distinct(f:b)", 7]]])})
            self.assertLess(watch.taken, 40 * MB)

    def test_who_leaves_while_it_waits_lets_others_pass(self):
        with CellarServer(save="", work_max_memory="64mb", agg_max_memory="64mb") as server:
            client = server.client()
            self.fill(client)
            words = ["CAGG", "t", "BY", "KEY", "REDUCE", "SUM", "f:a", "LIMIT", "0", "1"]
            leavers = [server.client() for _ in range(20)]
            for leaver in leavers:
                leaver.connection_pool.get_connection("x").send_command(*words)
            wait_until(lambda: field(client, "work_waiting") > 0 or self.answered(client, "cagg") == 20)
            for leaver in leavers:
                leaver.connection_pool.disconnect()
            self.assertEqual(len(client.execute_command(*words)), 1)
            wait_until(lambda: self.is_idle(client))

    def answered(self, client, name):
        return client.info("commandstats").get("cmdstat_" + name, {"calls": 0})["calls"]

    def is_idle(self, client):
        return not any(field(client, name) for name in FIGURES)

    # What each client of a kind asks, one after the other.
    KINDS = (
        [["CAGG", "t", "BY", "KEY", "REDUCE", "SUM", "f:a", "SORT", "sum(f:a)", "DESC", "LIMIT", "0", "3"]],
        [["MULTI"], ["CAGG", "t", "BY", "KEY", "REDUCE", "DISTINCT", "f:b", "LIMIT", "0", "3"], ["EXEC"]],
        [["CSCAN", "wide", "0", "COUNT", "1000000"]],
        [["CSCAN", "wide", "0", "COUNT", "1000000", "SNAPSHOT"]],
        [["CSCAN", "t@before", "0", "COUNT", "1000000"]],
        [["CSCAN", "t", "0", "EACH", "1", "1", "COUNT", "1000000"]],
        [["CUPDATE", "t", "INDEX", "each", "ADD", "s:sum", "1"]],
        [["CUPDATE", "t", "ALL", "WHERE", "f:b", "EQ", "3", "ADD", "s:sum", "1"]],
        [["CDELRANGE", "old", "ALL"]],
        [["INDEX", "CREATE", "few", "{name}", "ON", "1", "f:a"], ["INDEX", "DROP", "few", "{name}"]],
    )

    def test_all_kinds_beside_one_another(self):
        with CellarServer(maxmemory="200mb", save="") as server:
            client = server.client()
            self.fill(client)
            self.fill_more(client)
            clients = 40
            failed = []

            def ask(kind, number):
                connection = server.client().connection_pool.get_connection("x")
                for words in kind:
                    connection.send_command(*[word.format(name="i%d" % number) for word in words])
                    try:
                        reply = connection.read_response()
                    except Exception as error:
                        reply = error
                    replies = reply if isinstance(reply, list) else [reply]
                    failed.extend((words, str(each)) for each in replies if isinstance(each, Exception))
                connection.disconnect()
            threads = [threading.Thread(target=ask, args=(kind, number))
                       for number in range(clients) for kind in self.KINDS]
            with Watch(server) as watch:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertEqual(watch.errors, [])
            self.assertGreater(watch.written, 0)
            self.assertEqual(failed, [])
            self.assertLessEqual(watch.taken, 2 * 50 * MB + len(threads) * MB // 4)
            wait_until(lambda: self.is_idle(client))

    def test_those_that_hang_up_leave_nothing(self):
        with CellarServer(maxmemory="200mb", save="") as server:
            client = server.client()
            self.fill(client)
            self.fill_more(client)
            with Watch(server) as watch:
                for kind in self.KINDS:
                    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
                    for number, connection in enumerate(connections):
                        for words in kind:
                            words = [word.format(name="h%d" % number).encode() for word in words]
                            connection.sendall(b"*%d\r\n" % len(words) + b"".join(
                                b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
                    for connection in connections:
                        connection.close()
            self.assertEqual(watch.errors, [])
            wait_until(lambda: self.is_idle(client))
            self.assertLess(field(client, "mem_clients_normal"), 10 * MB)

    def fill_more(self, client):
        """40 MB of wide rows, of which a page takes 16; an index on a family, in which a row stands several times."""
        for words in (["TABLE", "CREATE", "wide", "FAMILY", "f"], ["TABLE", "CREATE", "old", "FAMILY", "f"],
                      ["TABLE", "CREATE", "few", "FAMILY", "f"],
                      ["FAMILY", "ADD", "t", "s", "AGGREGATE", "sum"], ["INDEX", "CREATE", "t", "each", "ON", "1", "f"],
                      ["INDEX", "CREATE", "t", "b", "ON", "1", "f:b"]):
            client.execute_command(*words)
        pipe = client.pipeline(transaction=False)
        for at in range(30_000):
            pipe.execute_command("CPUT", "wide", "row%06d" % at, "f:a", "x" * 1000)
            pipe.execute_command("CPUT", "old", "row%06d" % at, "f:a", "x")
            if at < 5000:
                pipe.execute_command("CPUT", "few", "row%06d" % at, "f:a", "x%d" % at)
            if at % 2000 == 1999:
                pipe.execute()
        client.execute_command("SNAPSHOT", "CREATE", "before")
        wait_until(lambda: b"building" not in client.execute_command("INDEX", "INFO", "t", "each")
                   + client.execute_command("INDEX", "INFO", "t", "b"))


@unittest.skipIf(is_sanitized(), "memory is not its own")
class EvictionTest(unittest.TestCase):
    def connect(self, server):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.settimeout(60)
        return connection

    def is_open(self, connection):
        """Whether it is still answered."""
        try:
            connection.settimeout(0.5)
            return connection.recv(1) != b""
        except socket.timeout:
            return True
        except OSError:
            return False

    def send(self, connection, data):
        try:
            connection.sendall(data)
        except OSError:
            pass

    def half(self, size):
        return b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % (size + 1) + b"x" * size

    def test_requests_do_not_fill_maxmemory(self):
        with CellarServer(maxmemory="200mb", save="") as server:
            client = server.client()
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            connections = [self.connect(server) for _ in range(8)]
            for at, connection in enumerate(connections):
                if at % 2:
                    self.send(connection, self.half(40 * MB))
                else:
                    put = b"*5\r\n$4\r\nCPUT\r\n$1\r\nt\r\n$1\r\nr\r\n$3\r\nf:a\r\n$%d\r\n%s\r\n" % (MB, b"v" * MB)
                    self.send(connection, b"*1\r\n$5\r\nMULTI\r\n" + put * 40)
                self.assertEqual(client.execute_command("CPUT", "t", "other", "f:a", at), b"OK")
                self.assertLess(client.info("memory")["used_memory"], 200 * MB)
            self.assertGreater(client.info("stats")["evicted_clients"], 0)
            self.assertTrue(client.ping())
            for connection in connections:
                connection.close()

    def test_the_largest_go_and_no_evict_stays(self):
        with CellarServer(maxmemory_clients="30mb", save="") as server:
            client = server.client()
            small, large, kept = (self.connect(server) for _ in range(3))
            kept.sendall(b"*3\r\n$6\r\nCLIENT\r\n$8\r\nNO-EVICT\r\n$2\r\nON\r\n")
            self.assertEqual(kept.recv(5), b"+OK\r\n")
            self.send(kept, self.half(40 * MB))
            self.send(small, self.half(5 * MB))
            self.send(large, self.half(28 * MB))
            wait_until(lambda: client.info("stats")["evicted_clients"] > 0, "a client is ended")
            wait_until(lambda: not self.is_open(large), "the largest is ended")
            self.assertTrue(self.is_open(small))
            self.assertTrue(self.is_open(kept))
            self.assertEqual(client.info("stats")["evicted_clients"], 1)
            for connection in (small, large, kept):
                connection.close()

    def test_the_option(self):
        with CellarServer(save="") as server:
            client = server.client()
            self.assertEqual(client.config_get("maxmemory-clients"), {"maxmemory-clients": "0"})
            for text, shown in (("5%", "5%"), ("1gb", str(1 << 30)), ("0", "0")):
                client.config_set("maxmemory-clients", text)
                self.assertEqual(client.config_get("maxmemory-clients")["maxmemory-clients"], shown)
            for wrong in ("-1", "101%", "-1%", "x", "%", ""):
                with self.assertRaises(Exception):
                    client.config_set("maxmemory-clients", wrong)


if __name__ == "__main__":
    unittest.main()
