"""The tools against a server that is none: replies that claim much, never end, or make no sense. Each ends in words and
with an exit status of its own, and holds no more memory than came."""

import random
import socket
import threading
import unittest

from cellar_server import is_sanitized, measured_run, tool
from tool_test import SECONDS_MAX, ToolTest

SEED = 1
KIB_MAX = 256 << 10
FILLING = b"x" * (4 << 20)  # behind what was claimed, before the connection is closed
HOSTILE = {
    "elements": b"*2147483647\r\n", "more elements": b"*4294967297\r\n", "most elements": b"*9223372036854775807\r\n",
    "fewer than none": b"*-7\r\n", "arrays in arrays": b"*4000000\r\n" * 200_000, "deep": b"*1\r\n" * 100_000,
    "bytes": b"$2147483647\r\n", "more bytes": b"$1099511627775\r\n", "most bytes": b"$9223372036854775807\r\n",
    "wide pair": b"*2\r\n$1\r\n0\r\n*2147483647\r\n", "wide row": b"*2\r\n$1\r\n0\r\n*1\r\n*2\r\n$1\r\nr\r\n*2147483647\r\n",
    "integer": b":" + b"9" * 100, "error": b"-", "status": b"+", "nonsense": b"\x00\xff", "bulk without end": b"$3\r\nabcd",
}


class Impostor:
    """Answers the greeting as a server would, and everything else in its own way."""

    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client:
            try:
                while request := client.recv(1 << 16):
                    if b"PING\r\n" in request:
                        client.sendall(b"+PONG\r\n")
                    elif b"SNAPSHOT" in request:
                        client.sendall(b"+OK\r\n")
                    elif b"\r\nTABLE\r\n" in request and self.answer.startswith(b"*2\r\n$1"):
                        client.sendall(b"*0\r\n")  # it is CSCAN that is answered so
                    else:
                        client.sendall(self.answer + FILLING)
                        return
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class HostileServers(ToolTest):
    def programs(self, port):
        rows = self.write("rows.csv", "k,v\n" + "".join("%d,x\n" % i for i in range(100)))
        host = ["-p", str(port)]
        yield [tool("cellar-export"), *host, "t", "-o", self.path("out")]
        yield [tool("cellar-export"), *host, "t", "-f", "csv", "-o", self.path("out"), "--split", "3"]
        yield [tool("cellar-import"), *host, "t", rows, "-k", "k", "-F", "f"]
        yield [tool("cellar-import"), *host, "t", rows, "-k", "k", "-F", "f", "--create-table"]
        yield [tool("cellar-import"), "-p", str(self.server.port), "t", "--from-redis", f"127.0.0.1:{port}", "-F", "f"]
        yield [tool("cellar-heatmap"), *host, "t", "--svg", self.path("heat.svg")]
        yield [tool("cellar-top"), *host, "--once", "--interval", "0.1"]
        for action in ("status", "map", "events"):
            yield [tool("cellar-cluster"), action, *host]

    def check(self, name, answer):
        with Impostor(answer) as impostor:
            for words in self.programs(impostor.port):
                status, said, kib = measured_run(words, SECONDS_MAX)
                self.assertIn(status, (1, 2), (name, words, said))
                self.assertRegex(said, r"cellar-\w+: ", (name, words))
                if not is_sanitized():
                    self.assertLess(kib, KIB_MAX, (name, words))

    def test_replies_that_claim_too_much(self):
        for name, answer in HOSTILE.items():
            self.check(name, answer)

    def test_replies_drawn(self):
        dice = random.Random(SEED)
        for i in range(15):
            answer = b"".join(dice.choice((b"*%d\r\n" % dice.choice((0, 1, 2, 5, 4 << 20, 2**31)), b":%d\r\n" % dice.getrandbits(63),
                                           b"$%d\r\n" % dice.choice((0, 3, 2**30, 2**40)), b"$-1\r\n", b"+OK\r\n", b"abc\r\n",
                                           b"-ERR no\r\n")) for _ in range(dice.randrange(1, 40)))
            if answer.startswith((b"-", b"+", b":", b"$-1", b"$0", b"*0")):
                continue  # short, and whole
            self.check("drawn %d" % i, answer)


if __name__ == "__main__":
    unittest.main()
