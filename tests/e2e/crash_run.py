"""kill -9 under load, and what must be found afterwards.

Each connection writes numbered operations to rows of its own. Operation i of a connection is one
command or one EXEC:

    always      row A: column f:n = i, f:k<i mod 20> = i, f:c incremented by 1
    every 20th  and f:v = a value of 1 byte, 300, 70,000 or 600,000
    every 5th   an EXEC that does the same to row A and to row B

so that the rows tell after a crash which operations are in them, whether one is there by half, or twice.
Beside them one connection creates tables and drops those that it created a while before.

An operation is acknowledged when its reply was read. Whatever the policy, everything up to the last
acknowledged one must be there.

    CELLAR_CRASH_RUNS=1000 CELLAR_CRASH_SEED=7 python3 tests/e2e/test_crash.py
"""

import random
import threading
import time

import redis

CONNECTIONS = 4
SLOTS = 20
EXEC_EVERY = 5
VALUE_EVERY = 20
VALUE_BYTES = [1, 300, 70_000, 600_000]  # the last one is more than is written at once
TABLES_KEPT = 5


def value(i):
    """What operation i puts into f:v; None if it does not."""
    if i % VALUE_EVERY:
        return None
    size = VALUE_BYTES[i // VALUE_EVERY % len(VALUE_BYTES)]
    return (b"%d," % i * size)[:size]


def read_reply(connection):
    """One reply; an error as a value."""
    try:
        return connection.read_response()
    except redis.ResponseError as error:
        return error


class Writer(threading.Thread):
    """One connection. `sent` and `acknowledged` number operations."""

    def __init__(self, server, name, done, seed):
        super().__init__(daemon=True)
        self.server = server
        self.name_prefix = name
        self.sent = done
        self.acknowledged = done
        self.random = random.Random(seed)
        self.refused = None
        self.stop = False

    def commands(self, i):
        """The commands of operation i."""
        a, b = self.name_prefix + ":A", self.name_prefix + ":B"
        write = ["CMUTATE", "t", a, "PUT", "f:n", i, "PUT", f"f:k{i % SLOTS}", i, "INCR", "f:c", 1]
        if value(i) is not None:
            write += ["PUT", "f:v", value(i)]
        if i % EXEC_EVERY:
            return [write]
        return [["MULTI"], write, write[:2] + [b] + write[3:], ["EXEC"]]

    def run(self):
        connection = redis.Connection(host="127.0.0.1", port=self.server.port, socket_timeout=60)
        try:
            connection.connect()
            while not self.stop:
                self.turn(connection, self.random.choice([1, 1, 4, 16]))
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            pass  # the kill
        finally:
            connection.disconnect()

    def turn(self, connection, operations):
        """A pipeline of some operations."""
        batch = [self.commands(self.sent + 1 + n) for n in range(operations)]
        self.sent += operations
        connection.send_packed_command(connection.pack_commands([c for cs in batch for c in cs]))
        for commands in batch:
            replies = [read_reply(connection) for _ in commands]
            if any(isinstance(reply, Exception) for reply in replies):
                self.refused = replies
                self.stop = True
                return
            self.acknowledged += 1


class Schemer(threading.Thread):
    """The connection that creates and drops tables, d1, d2, ..., one command at a time."""

    def __init__(self, server, created):
        super().__init__(daemon=True)
        self.server = server
        self.sent = self.acknowledged = created  # the last table
        self.dropping = self.dropped = max(0, created - TABLES_KEPT)
        self.refused = None
        self.stop = False

    def run(self):
        connection = redis.Connection(host="127.0.0.1", port=self.server.port, socket_timeout=60)
        try:
            connection.connect()
            while not self.stop:
                self.sent += 1
                self.send(connection, "TABLE", "CREATE", f"d{self.sent}", "FAMILY", "f")
                self.acknowledged = self.sent
                if self.sent > TABLES_KEPT:
                    self.dropping = self.sent - TABLES_KEPT
                    self.send(connection, "TABLE", "DROP", f"d{self.dropping}")
                    self.dropped = self.dropping
                time.sleep(0.001)
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            pass  # the kill
        finally:
            connection.disconnect()

    def send(self, connection, *words):
        connection.send_command(*words)
        reply = read_reply(connection)
        if isinstance(reply, Exception):
            self.refused = (words, reply)
            self.stop = True
            raise redis.ConnectionError("refused")

    def check(self, client):
        """Returns the last table, from which the next one goes on."""
        if self.refused:
            raise AssertionError(f"refused: {self.refused}")
        found = {int(name[1:]) for name in client.execute_command("TABLE", "LIST") if name[:1] == b"d"}
        must = set(range(self.dropping + 1, self.acknowledged + 1))
        may = {self.sent} | ({self.dropping} if self.dropping > self.dropped else set())
        if not must <= found or not found <= must | may:
            raise AssertionError(f"tables {sorted(found)} are there; {sorted(must)} had to be, {may} may be")
        last = max(found, default=0)
        for table in found:
            if table <= last - TABLES_KEPT:
                client.execute_command("TABLE", "DROP", f"d{table}")
        return last


def expected_row(n, step):
    """The row after operation n, when every step-th one writes to it."""
    last = n - n % step
    row = {}
    for i in range(max(step, last - SLOTS * step + step), last + 1, step):
        row[b"f:k%d" % (i % SLOTS)] = b"%d" % i
    if last:
        row[b"f:n"] = b"%d" % last
        row[b"f:c"] = last // step
    if last >= VALUE_EVERY:
        row[b"f:v"] = value(last - last % VALUE_EVERY)
    return row


def read_row(client, key):
    """A row as a dict, its counter as a number."""
    flat = client.execute_command("CROW", "t", key)
    row = dict(zip(flat[::2], flat[1::2]))
    if b"f:c" in row:
        row[b"f:c"] = int(row[b"f:c"])
    return row


def found(client, name):
    """The number of operations of `name` that are there, after a check that each is whole."""
    a = read_row(client, name + ":A")
    n = int(a.get(b"f:n", 0))
    if a != expected_row(n, 1):
        raise AssertionError(f"{name}:A is torn: {shown(a)}")
    b = read_row(client, name + ":B")
    if b != expected_row(n, EXEC_EVERY):
        raise AssertionError(f"{name}:B does not go with operation {n} of {name}:A: {shown(b)}")
    return n


def shown(row):
    """A row as it can be read."""
    return {column: cell if not isinstance(cell, bytes) or len(cell) < 40 else f"{cell[:20]}... {len(cell)}"
            for column, cell in row.items()}


class CrashRun:
    """A server that is killed again and again over one directory."""

    def __init__(self, server, seed):
        self.server = server
        self.random = random.Random(seed)
        self.done = {f"w{i}": 0 for i in range(CONNECTIONS)}
        self.tables = 0
        self.operations = 0  # that were acknowledged

    def one(self):
        """One life: start, load, kill, start, check."""
        writers = [Writer(self.server, name, done, self.random.random())
                   for name, done in self.done.items()]
        schemer = Schemer(self.server, self.tables)
        for thread in writers + [schemer]:
            thread.start()
        client = self.server.client()
        end = time.monotonic() + self.random.expovariate(6)
        while time.monotonic() < end:
            if self.random.random() < 0.15:
                try:
                    client.execute_command(self.random.choice(["BGSAVE", "BGREWRITEAOF"]))
                except redis.ResponseError:
                    pass  # one is running
            time.sleep(0.02)
        self.server.kill()
        for thread in writers + [schemer]:
            thread.join()
        self.server.start()
        client = self.server.client()
        for writer in writers:
            name = writer.name_prefix
            if writer.refused:
                raise AssertionError(f"a write was refused: {writer.refused}")
            n = found(client, name)
            if not writer.acknowledged <= n <= writer.sent:
                raise AssertionError(f"{name}: {n} operations are there; {writer.acknowledged} had to be, of "
                                     f"{writer.sent} that were sent\n{self.server.log()[-2000:]}")
            self.operations += writer.acknowledged - self.done[name]
            self.done[name] = n
        before = self.tables
        self.tables = schemer.check(client)
        self.operations += schemer.acknowledged - before
