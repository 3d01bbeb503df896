"""The wire: bad input is answered as Redis answers it, whatever the chunking; limits; slow readers.

The comparison runs against Debian's redis-server on a port of its own; without one it is skipped.
"""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from cellar_server import CellarServer, CellarTest, free_port, is_sanitized, not_on_a_follower, wait_until

READ_SECONDS_MAX = 120


def exchange(port, pieces):
    """Sends the pieces, closes the sending side, returns all that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=READ_SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answer = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
                if len(pieces) > 1:
                    time.sleep(0.0005)  # so that they are read apart
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # closed on us while we were sending: what it said can still be read
        try:
            while True:
                chunk = connection.recv(65536)
                if not chunk:
                    return answer
                answer += chunk
        except ConnectionResetError:
            return answer


def command(*words):
    """A request as clients send it."""
    out = b"*%d\r\n" % len(words)
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        out += b"$%d\r\n%s\r\n" % (len(word), word)
    return out


def bad_inputs():
    """Named inputs that something is wrong with; each is followed by a PING where that makes sense."""
    ping = b"*1\r\n$4\r\nPING\r\n"
    cases = {}

    def add(name, data):
        cases[name] = data
        cases[name + ", then PING"] = data + ping

    numbers = ["", "-", "+1", "-1", "-2", "-0", "00", "01", "1 ", " 1", "1.0", "1e1", "0x1", "x", "1x",
               "2147483647", "2147483648", "3000000000", "9223372036854775807", "9223372036854775808",
               "-9223372036854775808", "-9223372036854775809", "18446744073709551616",
               "99999999999999999999999999", "\t1", "١", "0", "-10", "10000000000"]
    for number in numbers:
        add(f"array of {number!r}", b"*" + number.encode() + b"\r\n")
        add(f"bulk of {number!r}", b"*1\r\n$" + number.encode() + b"\r\n")
        add(f"second bulk of {number!r}", b"*2\r\n$4\r\nECHO\r\n$" + number.encode() + b"\r\n")
    for kind in b"+-:,_#!=(~%>|@$&a \x00\xff":
        add(f"bulk header {bytes([kind])!r}", b"*1\r\n" + bytes([kind]) + b"4\r\nPING\r\n")
        add(f"request of type {bytes([kind])!r}", bytes([kind]) + b"4\r\nPING\r\n")
    inline = ["", " ", "\t", "PING ", " PING", "ping", "PiNg", "PING hello", "PING a b", "ECHO", "ECHO a b",
              "ECHO \"a b\"", "ECHO 'a b'", "ECHO \"a", "ECHO 'a", "ECHO \"a\"b", "ECHO 'a'b", "ECHO a\"b\"",
              "ECHO a'b'", "ECHO \"\\x41\\x4\"", "ECHO \"\\xzz\"", "ECHO \"\\n\\r\\t\\a\\b\\\\\\\"\"",
              "ECHO 'it\\'s'", "ECHO '\\n'", "ECHO \"\"", "ECHO ''", "\"\"", "''", "\"PING\"", "FOO", "foo bar baz",
              "FOO \"a\\r\\nb\"", "*", "*1 PING", "$4 PING", "get", "SET", "CONFIG", "CONFIG FOO", "CLIENT",
              "CLIENT FOO", "COMMAND FOO", "QUIT", "QUIT now", "QUIT\nPING", "HELLO 4", "HELLO x", "HELLO 3 FOO",
              "HELLO 2 AUTH", "HELLO 2 AUTH a", "HELLO 2 SETNAME", "HELLO 2 SETNAME \"a b\"", "AUTH", "AUTH a b c",
              "AUTH x", "AUTH nobody x", "SELECT", "SELECT 16", "SELECT -1", "SELECT 1 2", "MULTI\nMULTI\nDISCARD",
              "EXEC", "DISCARD", "MULTI\nFOO\nEXEC", "MULTI\nECHO\nEXEC", "MULTI\nPING\nEXEC",
              "MULTI\nWATCH a\nEXEC", "MULTI\nQUIT\nEXEC", "WATCH", "UNWATCH a", "RESET a", "SUBSCRIBE",
              "SUBSCRIBE a\nECHO b\nPING\nPING c\nUNSUBSCRIBE", "PUBLISH a", "PSUBSCRIBE", "UNSUBSCRIBE",
              "PUNSUBSCRIBE x", "PUBSUB", "PUBSUB FOO", "PUBSUB NUMSUB", "PUBSUB NUMPAT a", "CLIENT SETNAME",
              "CLIENT SETNAME \"a b\"", "CLIENT KILL", "CLIENT KILL 1.2.3.4:5", "CLIENT KILL ID x",
              "CLIENT KILL ID 0", "CLIENT KILL TYPE foo", "CLIENT KILL ID 1 FOO", "CLIENT KILL FOO 1",
              "CLIENT KILL SKIPME maybe", "CLIENT LIST TYPE foo", "CLIENT LIST ID x", "CLIENT LIST FOO",
              "CLIENT REPLY", "CLIENT REPLY foo", "CLIENT REPLY SKIP\nPING\nECHO a", "CLIENT REPLY OFF\nPING",
              "CLIENT PAUSE", "CLIENT PAUSE x", "CLIENT PAUSE -1", "CLIENT PAUSE 1 foo", "CLIENT UNBLOCK x",
              "CLIENT UNBLOCK 999999", "CLIENT NO-EVICT", "CLIENT NO-EVICT maybe", "CONFIG GET",
              "CONFIG SET", "CONFIG SET foo", "CONFIG SET foo bar", "CONFIG SET maxmemory", "CONFIG SET daemonize yes",
              "CONFIG SET maxmemory foo", "CONFIG SET timeout -1", "CONFIG SET timeout 1 timeout 2",
              "CONFIG SET appendfsync foo", "CONFIG RESETSTAT a", "CONFIG GET nosuchoption", "COMMAND COUNT a",
              "COMMAND GETKEYS", "COMMAND GETKEYS PING", "COMMAND GETKEYS FOO a", "COMMAND INFO nosuch",
              "COMMAND LIST FILTERBY", "COMMAND LIST FILTERBY FOO a", "COMMAND DOCS nosuch", "SLOWLOG", "SLOWLOG FOO",
              "SLOWLOG GET x", "SLOWLOG GET -2", "SLOWLOG LEN a", "LATENCY", "LATENCY FOO", "LATENCY GRAPH nosuch",
              "LATENCY HISTORY nosuch", "LATENCY RESET nosuch", "MEMORY", "MEMORY FOO", "MEMORY USAGE nosuch",
              "MEMORY USAGE", "OBJECT", "OBJECT FOO a", "OBJECT ENCODING nosuch", "TIME a", "LASTSAVE a", "ROLE a",
              "SHUTDOWN FOO", "SHUTDOWN SAVE NOSAVE", "SHUTDOWN ABORT", "SHUTDOWN ABORT NOW", "BGSAVE FOO",
              "WAIT", "WAIT x 1", "WAIT 0 x", "WAIT 0 -1", "CLUSTER INFO", "READONLY", "READWRITE", "ASKING",
              "EXISTS", "EXISTS nosuch", "TYPE nosuch", "TYPE", "KEYS", "SCAN", "SCAN x", "SCAN -1", "SCAN 0 COUNT",
              "SCAN 0 COUNT x", "SCAN 0 COUNT 0", "SCAN 0 FOO 1", "SCAN 0 MATCH", "DEL", "DEL nosuch", "UNLINK nosuch",
              "RENAME nosuch b", "RENAME a", "RENAMENX nosuch b", "RANDOMKEY a", "TOUCH nosuch", "DBSIZE a",
              "FLUSHDB FOO", "FLUSHALL FOO", "FLUSHALL SYNC ASYNC", "TTL nosuch", "PTTL nosuch", "TTL",
              "DEBUG SLEEP 0", "post / HTTP/1.1", "POST / HTTP/1.1", "Host: localhost", "GET / HTTP/1.1\r\nHost: x"]
    for text in inline:
        cases[f"inline {text!r}"] = text.encode() + b"\r\n"
    for text in ["PING", "ECHO a", "FOO"]:
        cases[f"inline {text!r} with LF alone"] = text.encode() + b"\n"
        cases[f"inline {text!r} with NUL"] = text.encode() + b"\x00\r\nPING\r\n" if text != "FOO" else b"PING\r\n"
    add("inline of 64 KiB", b"a" * 65536 + b"\r\n")
    add("inline of 70000 bytes without end", b"a" * 70000)
    add("array header of 70000 digits", b"*" + b"1" * 70000)
    add("bulk header of 70000 digits", b"*1\r\n$" + b"1" * 70000)
    add("empty array", b"*0\r\n")
    add("empty command name", command(""))
    add("long unknown command", command("x" * 1000))
    add("long arguments of an unknown command", command("FOO", "y" * 200, "z" * 200))
    add("many arguments of an unknown command", command("FOO", *range(50)))
    add("command with CRLF in its name", command(b"a\r\nb"))
    add("binary command name", command(bytes(range(256))))
    add("CR without LF after the count", b"*1\rX$4\r\nPING\r\n")
    add("other bytes after a bulk", b"*1\r\n$4\r\nPINGxx")
    add("a bulk longer than its length", b"*1\r\n$4\r\nPINGPONG\r\n")
    add("a bulk shorter than its length", b"*1\r\n$6\r\nPING\r\n")
    add("an array in an array", b"*1\r\n*1\r\n$4\r\nPING\r\n")
    rand = random.Random(7)
    for i in range(12):
        noise = bytes(b for b in rand.randbytes(80) if b not in b"\x00\r\n*")
        cases[f"noise {i}"] = noise + b"\r\n"
    return cases


# Where Cellar says something else on purpose.
OTHERWISE = {
    "inline 'get'": "there is no GET here",
    "inline 'GET / HTTP/1.1\\r\\nHost: x'": "what was answered before leaves, however the input was cut",
    "inline 'SET'": "there is no SET here",
    "inline 'CONFIG SET daemonize yes'": "there is no such option here",
    "inline 'COMMAND GETKEYS PING'": "Redis 7.2's arity",
    "inline 'SCAN -1'": "no cursor is negative",
    "binary command name": "Redis stops at the NUL",
    "binary command name, then PING": "Redis stops at the NUL",
}


def differs_on_purpose(name):
    """Redis loses its way at a NUL in a header or an inline command: it waits for ever."""
    return name in OTHERWISE or "x00" in name or "with NUL" in name


class BadInputTest(unittest.TestCase):
    """Three hundred kinds of bad input, side by side with Redis."""

    @classmethod
    def setUpClass(cls):
        if shutil.which("redis-server") is None:
            raise unittest.SkipTest("there is no redis-server to compare with")
        cls.cellar = CellarServer()
        cls.addClassCleanup(cls.cellar.close)
        cls.cellar.start()
        cls.port = free_port()
        directory = tempfile.mkdtemp(prefix="cellar-redis-")
        cls.addClassCleanup(shutil.rmtree, directory, ignore_errors=True)
        cls.redis = subprocess.Popen(
            ["redis-server", "--port", str(cls.port), "--save", "", "--dir", directory, "--bind", "127.0.0.1"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.redis.wait)
        cls.addClassCleanup(cls.redis.kill)

        def listens():
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", cls.port), timeout=1).close()
                return True
            return False
        wait_until(listens, "redis-server listens")

    def test_every_bad_input_is_answered_as_redis_answers_it(self):
        cases = bad_inputs()
        self.assertGreaterEqual(len(cases), 300)
        different = []
        for name, data in cases.items():
            if differs_on_purpose(name):
                continue
            ours = exchange(self.cellar.port, [data])
            theirs = exchange(self.port, [data])
            if ours != theirs:
                different.append(f"{name}:\n  redis  {theirs[:300]!r}\n  cellar {ours[:300]!r}")
        self.assertEqual(exchange(self.cellar.port, [command("PING")]), b"+PONG\r\n")
        self.assertFalse(different, f"{len(different)} of {len(cases)}:\n" + "\n".join(different))

    def test_the_replies_are_the_same_byte_by_byte(self):
        cases = list(bad_inputs().items())
        random.Random(11).shuffle(cases)
        for name, data in cases[:60]:
            if len(data) > 200:
                continue
            whole = exchange(self.cellar.port, [data])
            pieces = exchange(self.cellar.port, [data[i:i + 1] for i in range(len(data))])
            self.assertEqual(pieces, whole, name)


class LimitsTest(CellarTest):
    """Limits of cellar-model(7), "LIMITS", that concern the connection."""

    OPTIONS = {"enable-debug-command": "yes"}

    def pid(self):
        """The server's process id."""
        return self.server.process.pid

    def resident_bytes(self):
        """Memory of the server."""
        with open(f"/proc/{self.pid()}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def test_a_pipeline_of_ten_thousand_is_answered_in_order(self):
        with self.server.connect() as connection:
            connection.sendall(b"".join(command("ECHO", i) for i in range(10000)))
            expected = b"".join(b"$%d\r\n%d\r\n" % (len(str(i)), i) for i in range(10000))
            answer = b""
            while len(answer) < len(expected):
                answer += connection.recv(1 << 20)
            self.assertEqual(answer, expected)

    def test_a_pipelined_command_meets_what_the_ones_before_it_have_changed(self):
        large = b"x" * (2 * 1024 * 1024)
        exchange(self.server.port, [command("CONFIG", "SET", "proto-max-bulk-len", "1mb")])
        pipeline = command("PING") + command("CONFIG", "SET", "proto-max-bulk-len", "512mb")
        answer = exchange(self.server.port, [pipeline + command("ECHO", large)])
        self.assertEqual(answer, b"+PONG\r\n+OK\r\n$%d\r\n%s\r\n" % (len(large), large))
        # What comes behind a command that ends the connection is not executed, nor is an error in it.
        answer = exchange(self.server.port, [command("PING") + command("QUIT") + b"*x\r\n"])
        self.assertEqual(answer, b"+PONG\r\n+OK\r\n")
        answer = exchange(self.server.port, [command("PING") + b"*x\r\n"])
        self.assertEqual(answer, b"+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n")

    def test_a_large_argument_comes_back_whole(self):
        payload = os.urandom(10 << 20)
        self.assertEqual(self.redis.execute_command("ECHO", payload), payload)

    def test_a_client_that_does_not_read_costs_bounded_memory(self):
        before = self.resident_bytes()
        with self.server.connect() as connection:
            connection.setblocking(False)
            request = command("ECHO", "x" * 1000) * 100
            sent = 0
            end = time.monotonic() + 3
            while time.monotonic() < end and sent < (64 << 20):
                try:
                    sent += connection.send(request)
                except BlockingIOError:
                    time.sleep(0.02)
            self.assertLess(self.resident_bytes() - before, 24 << 20)
            self.assertTrue(self.redis.ping())

    def test_a_million_element_header_allocates_nothing(self):
        before = self.resident_bytes()
        connections = [self.server.connect() for _ in range(50)]
        for connection in connections:
            connection.sendall(b"*1000000\r\n$3\r\nfoo\r\n")
        self.assertTrue(self.redis.ping())
        self.assertLess(self.resident_bytes() - before, 4 << 20)
        for connection in connections:
            connection.close()

    def test_too_large_a_query_closes_the_connection(self):
        self.redis.config_set("client-query-buffer-limit", 1 << 20)
        self.addCleanup(self.redis.config_set, "client-query-buffer-limit", 1 << 30)
        with self.server.connect() as connection:
            connection.sendall(b"*2\r\n$4\r\nECHO\r\n$5000000\r\n")
            with self.assertRaises((ConnectionError, BrokenPipeError)):
                for _ in range(100):
                    connection.sendall(b"x" * 65536)
                    time.sleep(0.005)
                raise ConnectionError if connection.recv(10) == b"" else AssertionError
        self.assertTrue(self.redis.ping())

    @not_on_a_follower("other nodes are clients too")
    def test_maxclients_refuses_the_one_too_many(self):
        self.redis.ping()
        self.redis.config_set("maxclients", 3)
        self.addCleanup(self.redis.config_set, "maxclients", 10000)
        others = [self.server.connect() for _ in range(2)]
        with self.server.connect() as refused:
            self.assertEqual(refused.recv(100), b"-ERR max number of clients reached\r\n")
        for connection in others:
            connection.sendall(b"PING\r\n")
            self.assertEqual(connection.recv(100), b"+PONG\r\n")
            connection.close()

    def test_idle_clients_are_closed_after_timeout(self):
        with self.server.connect() as idle:
            self.server.client().config_set("timeout", 1)
            # By a client of its own: this one may be closed while it asks.
            self.addCleanup(lambda: self.server.client().config_set("timeout", 0))
            self.redis.close()
            self.assertEqual(idle.recv(10), b"")

    @unittest.skipIf(is_sanitized(), "a sanitizer's own memory is not the server's")
    def test_a_thousand_idle_connections_cost_little(self):
        for connection in [self.server.connect() for _ in range(50)]:
            connection.close()
        before = self.resident_bytes()
        connections = [self.server.connect() for _ in range(1000)]
        for connection in connections:
            connection.sendall(b"PING\r\n")
        for connection in connections:
            self.assertEqual(connection.recv(10), b"+PONG\r\n")
        self.assertLess((self.resident_bytes() - before) / 1000, 4096)
        for connection in connections:
            connection.close()

    def test_client_reply_off_silences_and_pause_holds_back(self):
        with self.server.connect() as connection:
            connection.sendall(b"CLIENT REPLY OFF\r\nPING\r\nCLIENT REPLY ON\r\nPING\r\n")
            answer = b""
            while len(answer) < 12:
                answer += connection.recv(100)
            self.assertEqual(answer, b"+OK\r\n+PONG\r\n")
        # Also of a reply that leaves in pieces.
        self.redis.execute_command("TABLE", "CREATE", "long", "FAMILY", "f")
        with self.redis.pipeline(transaction=False) as pipe:
            for i in range(8000):
                pipe.execute_command("CPUT", "long", f"r{i:05}", "f:q", "x" * 100)
            pipe.execute()
        for mode in (b"OFF", b"SKIP"):
            lines = [b"CLIENT REPLY " + mode, b"CSCAN long 0 COUNT 8000", b"CLIENT REPLY ON", b"CCOUNT long", b"QUIT"]
            self.assertEqual(b"+OK\r\n:8000\r\n+OK\r\n", exchange(self.server.port, [b"\r\n".join(lines) + b"\r\n"]))
        self.redis.execute_command("TABLE", "DROP", "long")
        begin = time.monotonic()
        self.redis.execute_command("CLIENT", "PAUSE", 300, "ALL")
        self.redis.ping()
        self.assertGreaterEqual(time.monotonic() - begin, 0.28)

    def test_every_split_of_a_pipeline_gives_the_same_replies(self):
        data = command("ECHO", "a\r\nb") + b"PING\r\n" + command("HELLO", "3") + command("ECHO", "") + b"*0\r\n"
        data += command("PING", "x")
        whole = blank_ids(exchange(self.server.port, [data]))
        for cut in range(1, len(data)):
            self.assertEqual(blank_ids(exchange(self.server.port, [data[:cut], data[cut:]])), whole)


def blank_ids(answer):
    """HELLO tells the client's id."""
    head, _, rest = answer.partition(b"$2\r\nid\r\n:")
    return head + rest[rest.find(b"\r\n"):] if rest else head


if __name__ == "__main__":
    unittest.main()
