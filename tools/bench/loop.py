#!/usr/bin/python3
"""`make bench-loop`: does the loop stay free? PING beside commands that read or delete everything.

    loop.py [--rows 1000000] [--seconds 10] [--only WORD ...]

Loads a table of rows x 10 cells and one row of a million columns. Then, for each long command, one
client runs it in a loop while another one sends a PING every half millisecond. The table shows the
PING's percentiles without and with the command, and the difference. Bars: p99 within 2 ms of its
value without, max within 10 ms.
"""

import argparse
import multiprocessing
import os
import socket
import time

import servers

COLUMNS = 10
WIDE_COLUMNS = 1_000_000
BATCH = 500


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


def load(port, rows):
    connection = connect(port)
    reader = connection.makefile("rb")
    for words in (("TABLE", "CREATE", "t", "FAMILY", "f"), ("TABLE", "CREATE", "wide", "FAMILY", "f")):
        connection.sendall(command(*words))
        read_simple(reader)
    for first in range(0, rows, BATCH):
        count = min(BATCH, rows - first)
        request = []
        for row in range(first, first + count):
            words = ["CPUT", "t", "row#%010d" % (row * 2654435761 % 10_000_000_019)]
            for column in range(COLUMNS):
                words += ["f:c%d" % column, "%08d" % row]
            request.append(command(*words))
        connection.sendall(b"".join(request))
        for _ in range(count):
            read_simple(reader)
    for first in range(0, WIDE_COLUMNS, 1000):
        words = ["CPUT", "wide", "w"]
        for column in range(first, first + 1000):
            words += ["f:%07d" % column, "v"]
        connection.sendall(command(*words))
        read_simple(reader)
    connection.close()


def run_long(port, words, stop, runs):
    os.nice(15)
    connection = connect(port)
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


def ping(port, seconds):
    """Round trips in microseconds, ascending."""
    connection = connect(port)
    request = command("PING")
    trips = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        connection.sendall(request)
        connection.recv(64)
        trips.append((time.perf_counter() - begin) * 1e6)
        time.sleep(0.0005)
    return sorted(trips)


def figures(trips):
    def at(fraction):
        return trips[min(len(trips) - 1, int(len(trips) * fraction))]

    return at(0.5), at(0.99), trips[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    cases = [
        ("CCOUNT of the table", ("CCOUNT", "t", "BY", "CELLS")),
        ("CROW of 1M columns", ("CROW", "wide", "w")),
        ("CSCAN, WHERE matches nothing", ("CSCAN", "t", "0", "WHERE", "f:c0", "EQ", "none")),
        ("CDELRANGE ALL", ("CDELRANGE", "t", "ALL")),
    ]
    os.sched_setaffinity(0, {int(servers.CLIENT_CORE)})
    with servers.Server("cellar") as server:
        print(f"loading {options.rows * COLUMNS} cells and a row of {WIDE_COLUMNS} columns", flush=True)
        load(server.port, options.rows)
        base = figures(ping(server.port, options.seconds))
        print(f"\n{'PING beside':<30} {'p50 us':>9} {'p99 us':>9} {'max us':>9} {'p99 +ms':>8} "
              f"{'max +ms':>8} {'runs':>6}")
        print(f"{'nothing':<30} {base[0]:9.0f} {base[1]:9.0f} {base[2]:9.0f}", flush=True)
        for name, words in cases:
            if options.only and not any(word.lower() in name.lower() for word in options.only):
                continue
            stop = multiprocessing.Event()
            runs = multiprocessing.Value("i", 0)
            process = multiprocessing.Process(target=run_long, args=(server.port, words, stop, runs))
            process.start()
            time.sleep(0.2)
            beside = figures(ping(server.port, options.seconds))
            stop.set()
            process.join()
            print(f"{name:<30} {beside[0]:9.0f} {beside[1]:9.0f} {beside[2]:9.0f} "
                  f"{(beside[1] - base[1]) / 1e3:8.2f} {(beside[2] - base[2]) / 1e3:8.2f} "
                  f"{runs.value:6}", flush=True)


if __name__ == "__main__":
    main()
