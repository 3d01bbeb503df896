"""kill -9 under load, and what must be found afterwards.

Each connection writes numbered operations to rows of its own. Operation i of a connection is one
command or one EXEC:

    always      row A: column f:n = i, f:k<i mod 20> = i, f:c incremented by 1
    every 5th   an EXEC that does the same to row A and to row B

so that the rows tell after a crash which operations are in them, whether one is there by half, or twice.
An operation is acknowledged when its reply was read; everything up to the last acknowledged one must be
there under `always`, and up to the last one acknowledged a second before the kill under `everysec`.

    CELLAR_CRASH_RUNS=1000 CELLAR_CRASH_SEED=7 python3 tests/e2e/test_crash.py
"""

import random
import threading
import time

import redis

CONNECTIONS = 4
SLOTS = 20
EXEC_EVERY = 5
EVERYSEC_LOSS_SECONDS_MAX = 1.0


class Writer(threading.Thread):
    """One connection. `sent` and `acknowledged` number operations; `times` says when each was."""

    def __init__(self, server, name, done, seed):
        super().__init__(daemon=True)
        self.server = server
        self.name_prefix = name
        self.sent = done
        self.acknowledged = done
        self.times = []  # (time of the acknowledgement, operation)
        self.random = random.Random(seed)
        self.refused = None
        self.stop = False

    def commands(self, i):
        """The commands of operation i."""
        a, b = self.name_prefix + ":A", self.name_prefix + ":B"
        write = ["CMUTATE", "t", a, "PUT", "f:n", i, "PUT", f"f:k{i % SLOTS}", i, "INCR", "f:c", 1]
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
            replies = [self.read(connection) for _ in commands]
            if any(isinstance(reply, Exception) for reply in replies):
                self.refused = replies
                self.stop = True
                return
            self.acknowledged += 1
            self.times.append((time.monotonic(), self.acknowledged))

    @staticmethod
    def read(connection):
        """One reply; an error as a value."""
        try:
            return connection.read_response()
        except redis.ResponseError as error:
            return error


def expected_row(n, step):
    """The row after operation n, when every step-th one writes to it."""
    last = n - n % step
    row = {}
    for i in range(max(step, last - SLOTS * step + step), last + 1, step):
        row[b"f:k%d" % (i % SLOTS)] = b"%d" % i
    if last:
        row[b"f:n"] = b"%d" % last
        row[b"f:c"] = last // step
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
        raise AssertionError(f"{name}:A is torn: {a}")
    b = read_row(client, name + ":B")
    if b != expected_row(n, EXEC_EVERY):
        raise AssertionError(f"{name}:B does not go with operation {n} of {name}:A: {b}")
    return n


class CrashRun:
    """A server that is killed again and again over one directory."""

    def __init__(self, server, policy, seed):
        self.server = server
        self.policy = policy
        self.random = random.Random(seed)
        self.done = {f"w{i}": 0 for i in range(CONNECTIONS)}
        self.operations = 0

    def one(self):
        """One life: start, load, kill, start, check."""
        writers = [Writer(self.server, name, done, self.random.random())
                   for name, done in self.done.items()]
        for writer in writers:
            writer.start()
        client = self.server.client()
        end = time.monotonic() + self.random.expovariate(6)
        while time.monotonic() < end:
            if self.random.random() < 0.15:
                try:
                    client.execute_command("BGSAVE")
                except redis.ResponseError:
                    pass  # one is running
            time.sleep(0.02)
        self.server.kill()
        killed = time.monotonic()
        for writer in writers:
            writer.join()
        self.server.start()
        client = self.server.client()
        for writer in writers:
            name = writer.name_prefix
            if writer.refused:
                raise AssertionError(f"a write was refused: {writer.refused}")
            must = writer.acknowledged
            if self.policy != "always":
                old = [i for when, i in writer.times if when < killed - EVERYSEC_LOSS_SECONDS_MAX]
                must = max([self.done[name]] + old)
            n = found(client, name)
            if not must <= n <= writer.sent:
                raise AssertionError(f"{name}: {n} operations are there; {must} had to be, of "
                                     f"{writer.sent} that were sent\n{self.server.log()[-2000:]}")
            self.operations += writer.acknowledged - self.done[name]
            self.done[name] = n
        return self
