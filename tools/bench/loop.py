#!/usr/bin/python3
"""`make bench-loop`: does the loop stay free? PING beside commands that read, fill or empty a table.

    loop.py [--rows 1000000] [--seconds 10] [--only WORD ...]

Loads a table of rows x 10 cells and one row of a million columns. Then, for each long command, one
client runs it in a loop while another one sends a PING every half millisecond; and what makes a table
grow or go is done once, with PINGs until it is over.

Each PING goes in turn to the server and to a control: a second server that does nothing. What stops
both is the machine. On one that others use too, a trip is long as well because the server's thread
or the client waited for a processor; the kernel counts that (schedstat), and `own max` is the longest
trip less such waits. `>10ms` counts the trips that are longer than that without them.
Bars: p99 within 2 ms of the control's, own max within 10 ms of it.
"""

import argparse
import itertools
import multiprocessing
import os
import socket
import subprocess
import tempfile
import time

import servers

COLUMNS = 10
WIDE_COLUMNS = 1_000_000
BATCH = 500
GAP_MICROS = 10_000


def command(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_simple(reader):
    line = reader.readline()
    if not line or line[:1] == b"-":
        raise RuntimeError(f"unexpected reply {line!r}")
    return line


def skip_reply(reader):
    """Reads one whole reply and throws it away."""
    pending = 1
    while pending:
        line = reader.readline()
        pending -= 1
        kind = line[:1]
        if kind == b"$" and line != b"$-1\r\n":
            reader.read(int(line[1:]) + 2)
        elif kind == b"*":
            pending += int(line[1:])
        elif kind == b"-" or not line:
            raise RuntimeError(f"unexpected reply {line!r}")


def row_key(row):
    """Rows come in no order."""
    return "row#%010d" % (row * 2654435761 % 10_000_000_019)


def load_rows(port, table, rows):
    connection = connect(port)
    reader = connection.makefile("rb")
    for first in range(0, rows, BATCH):
        count = min(BATCH, rows - first)
        request = []
        for row in range(first, first + count):
            words = ["CPUT", table, row_key(row)]
            for column in range(COLUMNS):
                words += ["f:c%d" % column, "%08d" % row]
            request.append(command(*words))
        connection.sendall(b"".join(request))
        for _ in range(count):
            read_simple(reader)
    connection.close()


def load(port, rows):
    connection = connect(port)
    reader = connection.makefile("rb")
    for table in ("t", "wide", "grown", "imported"):
        connection.sendall(command("TABLE", "CREATE", table, "FAMILY", "f"))
        read_simple(reader)
    load_rows(port, "t", rows)
    for first in range(0, WIDE_COLUMNS, 1000):
        words = ["CPUT", "wide", "w"]
        for column in range(first, first + 1000):
            words += ["f:%07d" % column, "v"]
        connection.sendall(command(*words))
        read_simple(reader)
    connection.close()


def run_long(server, words, stop, runs):
    """The command again and again, until `stop`."""
    os.nice(15)
    connection = connect(server.port)
    reader = connection.makefile("rb", buffering=1 << 20)
    while not stop.is_set():
        if words[0] == "CSCAN":
            cursor = b"0"
            while True:
                connection.sendall(command("CSCAN", words[1], cursor, *words[3:]))
                reader.readline()
                size = int(reader.readline()[1:])
                cursor = reader.read(size + 2)[:-2]
                skip_reply(reader)
                if cursor == b"0" or stop.is_set():
                    break
        else:
            connection.sendall(command(*words))
            skip_reply(reader)
        with runs.get_lock():
            runs.value += 1


# ---- what is done once


def grow(server, options):
    load_rows(server.port, "grown", options.rows)


def import_rows(server, options):
    names = ["key"] + ["c%d" % column for column in range(COLUMNS)]
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(",".join(names) + "\n")
        for row in range(options.rows):
            file.write(row_key(row) + ",%08d" % row * COLUMNS + "\n")
        file.flush()
        tool = os.path.join(os.path.dirname(servers.cellar_binary()), "cellar-import")
        subprocess.run([tool, "-q", "-p", str(server.port), "-k", "key", "-F", "f", "imported", file.name], check=True)


def create_index(server, options):
    client = server.client()
    client.execute_command("INDEX", "CREATE", "t", "i", "ON", "1", "f:c0")
    while "ready" not in str(client.execute_command("INDEX", "INFO", "t", "i")):
        time.sleep(0.1)


def save(server, options):
    client = server.client()
    client.execute_command("BGSAVE")
    while client.info("persistence")["rdb_bgsave_in_progress"]:
        time.sleep(0.1)


def backup(server, options):
    client = server.client()
    client.execute_command("BACKUP", "START")
    while "incrementing" not in str(client.execute_command("BACKUP", "STATUS")):
        time.sleep(0.1)
    client.execute_command("BACKUP", "SEAL")
    client.execute_command("BACKUP", "CLEANUP")


def settled(server):
    """Waits until a second has passed in which nothing was given back."""
    before = None
    while before != (now := server.resident_bytes()):
        before = now
        time.sleep(1)


def once(*words):
    def run(server, options):
        server.client().execute_command(*words)
        settled(server)

    return run


REPEATED = [
    ("CCOUNT of the table", ("CCOUNT", "t", "BY", "CELLS")),
    ("CAGG of the table", ("CAGG", "t", "REDUCE", "SUM", "f")),
    ("CROW of 1M columns", ("CROW", "wide", "w")),
    ("CSCAN, WHERE matches nothing", ("CSCAN", "t", "0", "WHERE", "f:c0", "EQ", "none")),
]
ONCE = [
    ("a table that is loaded", grow),
    ("import", import_rows),
    ("BGSAVE", save),
    ("BACKUP", backup),
    ("INDEX CREATE", create_index),
    ("INDEX DROP", once("INDEX", "DROP", "t", "i")),
    ("CDELRANGE ALL", once("CDELRANGE", "t", "ALL")),
    ("FAMILY DROP", once("FAMILY", "DROP", "imported", "f")),
    ("TABLE DROP", once("TABLE", "DROP", "grown")),
    ("FLUSHALL", once("FLUSHALL")),
]


# ---- PING


class Target:
    """A server that is pinged, and what the PINGs took."""

    def __init__(self, server):
        self.connection = connect(server.port)
        self.schedstat = open(f"/proc/{server.pid}/task/{server.pid}/schedstat", encoding="ascii")
        self.trips = []  # microseconds
        self.own = []    # less the waits for a processor

    def waited(self):
        """Microseconds that the server's loop has waited for a processor."""
        self.schedstat.seek(0)
        return int(self.schedstat.read().split()[1]) / 1e3

    def ping(self, client_waited):
        waited = self.waited() + client_waited()
        begin = time.perf_counter()
        self.connection.sendall(b"*1\r\n$4\r\nPING\r\n")
        self.connection.recv(64)
        trip = (time.perf_counter() - begin) * 1e6
        self.trips.append(trip)
        self.own.append(max(0, trip - (self.waited() + client_waited() - waited)))

    def close(self):
        self.connection.close()
        self.schedstat.close()

    def figures(self):
        trips = sorted(self.trips)
        own = sorted(self.own)
        return {"p50": trips[len(trips) // 2], "p99": trips[len(trips) * 99 // 100], "max": trips[-1],
                "own": own[-1], "gaps": sum(trip > GAP_MICROS for trip in own)}


def ping(pair, going):
    """PINGs of both servers in alternation while going(); the figures of each."""
    targets = [Target(server) for server in pair]
    with open("/proc/thread-self/schedstat", encoding="ascii") as file:

        def client_waited():
            file.seek(0)
            return int(file.read().split()[1]) / 1e3

        for target in itertools.cycle(targets):
            if target is targets[0] and target.trips and not going():
                break
            target.ping(client_waited)
            time.sleep(0.0005)
    for target in targets:
        target.close()
    return [target.figures() for target in targets]


def for_seconds(seconds):
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() < end


def report(name, beside, control, runs):
    print(f"{name:<30} {beside['p50']:8.0f} {beside['p99']:8.0f} {beside['max']:8.0f} {beside['own']:8.0f} "
          f"{beside['gaps']:6} {control['p99']:8.0f} {control['max']:8.0f} {control['own']:8.0f} "
          f"{control['gaps']:6} {(beside['p99'] - control['p99']) / 1e3:8.2f} "
          f"{(beside['own'] - control['own']) / 1e3:8.2f} {runs:6}", flush=True)


def run_nicely(run, server, options):
    os.nice(15)
    run(server, options)


def measure(pair, options, wanted):
    server = pair[0]
    report("nothing", *ping(pair, for_seconds(options.seconds)), 0)
    for name, words in filter(wanted, REPEATED):
        stop = multiprocessing.Event()
        runs = multiprocessing.Value("i", 0)
        process = multiprocessing.Process(target=run_long, args=(server, words, stop, runs))
        process.start()
        time.sleep(0.2)
        figures = ping(pair, for_seconds(options.seconds))
        stop.set()
        process.join()
        report(name, *figures, runs.value)
    for name, run in filter(wanted, ONCE):
        process = multiprocessing.Process(target=run_nicely, args=(run, server, options))
        process.start()
        figures = ping(pair, process.is_alive)
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"{name} has failed")
        report(name, *figures, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()

    def wanted(case):
        return not options.only or any(word.lower() in case[0].lower() for word in options.only)

    os.sched_setaffinity(0, {int(servers.CLIENT_CORE)})
    # Not pinned: the server has threads that help the loop.
    with servers.Server("cellar", pin=False) as server, servers.Server("cellar", pin=False) as control:
        for pid in (server.pid, control.pid):
            os.sched_setaffinity(pid, range(os.cpu_count()))
        print(f"loading {options.rows * COLUMNS} cells and a row of {WIDE_COLUMNS} columns", flush=True)
        load(server.port, options.rows)
        print(f"\n{'PING beside':<30} {'p50 us':>8} {'p99 us':>8} {'max us':>8} {'own max':>8} {'>10ms':>6} "
              f"{'idle p99':>8} {'max us':>8} {'own max':>8} {'>10ms':>6} {'p99 +ms':>8} {'own +ms':>8} {'runs':>6}")
        measure((server, control), options, wanted)


if __name__ == "__main__":
    main()
