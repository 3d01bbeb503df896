"""Whatever the pieces in which input arrives, the replies are the same.

Each conversation is sent to a fresh keyspace of its own: whole, cut in two at every byte, and byte by byte; the
bytes that come back must be those of the whole. A conversation ends with QUIT or an error of the protocol, so that
the server closes and nothing is waited for in vain. Random conversations print their seed; CELLAR_CHUNKING_RUNS sets
how many there are (sanitizer builds run the same).
"""

import os
import random
import re
import socket
import time
import unittest

from cellar_server import CellarTest
from test_protocol import READ_SECONDS_MAX, command

QUIT = command("QUIT")
RUNS = int(os.environ.get("CELLAR_CHUNKING_RUNS", "40"))
CUTS_MAX = 400  # of one conversation; of a longer one some are drawn
TIME = "1700000000000000"

CONVERSATIONS = {
    "generic commands": [
        command("PING"), b"PING inline\r\n", command("ECHO", b"a\r\nb\x00c"), command("ECHO", ""), b"*0\r\n", b"\r\n",
        command("SELECT", "0"), command("EXISTS", "t"), command("NOSUCH", "a" * 50, "b"), command("GET"),
        command("HELLO", "3"), command("PING", "x"), b'ECHO "a\\x41 \\n"\r\n', b"ECHO 'q q'\r\n", command("RESET")],
    "cells over RESP3": [
        command("HELLO", "3"),
        command("TABLE", "CREATE", "t", "FAMILY", "f", "FAMILY", "n", "TYPE", "i64", "FAMILY", "d", "TYPE", "f64"),
        command("CPUT", "t", "r", "f:a", b"\r\n$5\r\n*1", "TS", TIME, "n:x", "42", "TS", TIME, "d:y", "1.5", "TS", TIME),
        command("CROW", "t", "r"), command("CGET", "t", "r", "f:none"), command("CMGET", "t", "r", "f:a", "n:x", "d:y"),
        command("CSCAN", "t", "0", "PREFIX", "r", "WITHTS", "FILTER", 'family = "n"'),
        command("CCOUNT", "t", "BY", "CELLS"), command("CDEL", "t", "r"), command("CGET", "nosuch", "r", "f:a")],
    "transactions": [
        command("TABLE", "CREATE", "t", "FAMILY", "f"), command("MULTI"), command("CPUT", "t", "r", "f:a", "1"),
        command("CGET", "t", "r", "f:a"), command("NOSUCH"), command("EXEC"), command("MULTI"),
        command("CPUT", "t", "r", "f:a", "2"), command("CCOUNT", "t"), command("EXEC"), command("WATCH", "t"),
        command("MULTI"), command("CGET", "t", "r", "f:a"), command("EXEC"), command("MULTI", "ATOMIC"),
        command("CPUT", "t", "r", "f:a", "3"), command("CINCRBY", "t", "r", "f:a", "x"), command("EXEC"),
        command("DISCARD"), command("EXEC")],
    "pub/sub": [
        command("SUBSCRIBE", "a", "b"), command("PING"), command("PSUBSCRIBE", "p*"), command("ECHO", "no"),
        command("UNSUBSCRIBE", "a"), command("PUNSUBSCRIBE"), command("UNSUBSCRIBE"), command("ECHO", "yes")],
    "reply modes": [
        command("CLIENT", "REPLY", "OFF"), command("ECHO", "1"), command("CLIENT", "REPLY", "ON"),
        command("CLIENT", "REPLY", "SKIP"), command("ECHO", "2"), command("ECHO", "3"), command("CLIENT", "GETNAME"),
        command("CLIENT", "SETNAME", "n"), command("CLIENT", "GETNAME")],
    "large arguments": [
        command("TABLE", "CREATE", "t", "FAMILY", "f"), command("CPUT", "t", "r", "f:a", b"\r\n" * 40_000),
        command("CGET", "t", "r", "f:a"), command("ECHO", "x" * 70_000)],
    "deletes in slices": [
        command("TABLE", "CREATE", "t", "FAMILY", "f"),
        *[command("CPUT", "t", f"r{i}", "f:a", i) for i in range(30)], command("CDELRANGE", "t", "PREFIX", "r1"),
        command("CCOUNT", "t"), command("CSCAN", "t", "0", "COUNT", "3", "KEYSONLY"), command("TABLE", "TRUNCATE", "t"),
        command("CCOUNT", "t")],
    "a wrong bulk length": [command("PING"), b"*2\r\n$4\r\nECHO\r\n$-5\r\n", command("PING")],
    "a wrong array length": [command("PING"), b"*9999999999\r\n", command("PING")],
    "no dollar": [command("PING"), b"*1\r\n+PING\r\n", command("PING")],
    "unbalanced quotes": [command("PING"), b'ECHO "a\r\n', command("PING")],
    "HTTP": [command("PING"), b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", command("PING")],
}

WORDS = ["PING", "ECHO", "CPUT", "CGET", "CROW", "CMUTATE", "CDEL", "CSCAN", "MULTI", "EXEC", "DISCARD", "HELLO", "3", "2",
         "t", "r", "f:a", "f", "IF", "EXISTS", "PUT", "DEL", "ELSE", "0", "COUNT", "1", "TS", "-1", "", "\r\n", "*1", "$3"]


def random_conversation(rand):
    """Right and wrong commands, now and then noise."""
    parts = [command("TABLE", "CREATE", "t", "FAMILY", "f")]
    for _ in range(rand.randint(1, 8)):
        kind = rand.random()
        words = [rand.choice(WORDS) for _ in range(rand.randint(1, 6))]
        if kind < 0.6:
            parts.append(command(*words))
        elif kind < 0.8:
            parts.append(command("CPUT", "t", rand.choice("rst"), "f:" + rand.choice("ab"), rand.randbytes(rand.randint(0, 40)),
                                 "TS", rand.randint(0, 9)))
        elif kind < 0.95:
            parts.append(" ".join(words).replace("\r\n", "").encode() + b"\r\n")
        else:
            parts.append(rand.randbytes(rand.randint(1, 10)))
    return parts


class ChunkingTest(CellarTest):
    """Every chunking of every conversation."""

    OPTIONS = {"save": "", "appendonly": "no"}

    def converse(self, pieces):
        """What the server answers in all until it closes."""
        self.redis.flushall()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=READ_SECONDS_MAX) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answer = b""
            try:
                for piece in pieces[:-1]:
                    connection.sendall(piece)
                    if len(pieces) < 10:
                        time.sleep(0.0003)  # so that the pieces are read apart
                connection.sendall(pieces[-1])
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # the server has closed already
            try:
                while piece := connection.recv(1 << 20):
                    answer += piece
            except ConnectionError:
                pass
        # HELLO tells the connection's number.
        return re.sub(rb"(\$2\r\nid\r\n):\d+", rb"\1:0", answer)

    def check(self, name, parts):
        data = b"".join(parts) + QUIT
        whole = self.converse([data])
        cuts = range(1, len(data))
        if len(cuts) > CUTS_MAX:
            cuts = sorted(random.Random(len(data)).sample(cuts, CUTS_MAX // 4))
        for cut in cuts:
            self.assertEqual(whole, self.converse([data[:cut], data[cut:]]), f"{name}, cut at {cut} of {data[:2000]!r}")
        if len(data) < 5000:
            self.assertEqual(whole, self.converse([data[i:i + 1] for i in range(len(data))]), f"{name}, byte by byte")
        for size in (3, 1000, 65_536):
            if len(data) / size < 2000:
                pieces = [data[i:i + size] for i in range(0, len(data), size)]
                self.assertEqual(whole, self.converse(pieces), f"{name}, in pieces of {size}")
        return whole

    def test_conversations(self):
        for name, parts in CONVERSATIONS.items():
            with self.subTest(name):
                self.assertGreater(len(self.check(name, parts)), 4)
        self.assertTrue(self.redis.ping())

    def test_random_conversations(self):
        seed = int(os.environ.get("CELLAR_SEED", time.time_ns() % 1_000_000))
        for run in range(RUNS):
            rand = random.Random(f"{seed}-{run}")
            data = b"".join(random_conversation(rand)) + QUIT
            whole = self.converse([data])
            for _ in range(6):
                cuts = sorted(rand.sample(range(1, len(data)), min(len(data) - 1, rand.choice((1, 2, 5, 9)))))
                pieces = [data[a:b] for a, b in zip([0] + cuts, cuts + [len(data)])]
                self.assertEqual(whole, self.converse(pieces), f"CELLAR_SEED={seed} run {run}: {pieces!r}")
        self.assertTrue(self.redis.ping())


if __name__ == "__main__":
    unittest.main()
