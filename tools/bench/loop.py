#!/usr/bin/python3
"""`make bench-loop`: does the loop stay free? PING beside commands that read, fill or empty a table.

    loop.py [--rows 1000000] [--seconds 10] [--rounds 3] [--only WORD ...]

Loads a table of rows x 10 cells and one row of a million columns. Then, for each long command, one
client runs it in a loop while another one sends a PING every half millisecond; and what makes a table
grow or go is done once, with PINGs until it is over.

Each PING goes in turn to the server and to a control: a second server that does nothing. What stops
both is the machine. On one that others use too, a trip is long as well because the server's thread
or the client waited for a processor; the kernel counts that (schedstat), and `own max` is the longest
trip less such waits. `>10ms` counts the trips that are longer than that without them.
Bars: p99 within 2 ms of the control's, own max within 10 ms of it.

`writers`: cellar-benchmark puts cells into a table of rows x 10 cells, alone, and while another one scans
it again and again, with read-threads 0 and 1, in turn, `rounds` times. What counts is the rate for the CPU
time of the server's own thread (schedstat of its task), which neither the threads beside it nor other
programs change; the rate by the clock, the PINGs and what a scan takes are shown beside it. Medians.
Bars, with read-threads 1: 0.9 of the rate alone, p99 of PING within 1 ms of what it is alone.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import tempfile
import threading
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


# ---- writers beside a scan


ROW = "row#__key__ " + " ".join(f"f:c{column} __data:8__" for column in range(COLUMNS))


def benchmark(server, *words):
    """cellar-benchmark with these options; what it says as JSON."""
    # Not below the server, which would be starved on a machine of two cores.
    done = subprocess.run(["nice", "-n", "5", servers.benchmark_binary(), "-q", "-p", str(server.port), "-t", "1", "--json", "-", *words],
                          check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout) if done.stdout else {}


def thread_seconds(pid, name=None):
    """CPU time of the server's own thread, or of those of this name."""
    seconds = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm", encoding="ascii") as comm:
            if comm.read().strip() != name if name else int(task) != pid:
                continue
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            seconds += int(file.read().split()[0]) / 1e9
    return seconds


def scan_again_and_again(server, stop, seconds):
    while not stop.is_set():
        begin = time.perf_counter()
        benchmark(server, "--scan", "beside", "--page-rows", "1000000")
        seconds.append(time.perf_counter() - begin)


def write_beside(pair, options, threads):
    """One measurement; `threads` is None without a scan."""
    server = pair[0]
    server.client().config_set("read-threads", threads or 0)
    stop, scans = threading.Event(), []
    scanner = threading.Thread(target=scan_again_and_again, args=(server, stop, scans))
    if threads is not None:
        scanner.start()
    pings = multiprocessing.Queue()
    pinger = multiprocessing.Process(target=ping_for, args=(pair, options.seconds, pings))
    pinger.start()
    loop, readers = thread_seconds(server.pid), thread_seconds(server.pid, "cellar-read")
    result = benchmark(server, "-c", "8", "-P", str(options.pipeline), "--keys", str(options.rows), "-d", str(options.seconds),
                       "--command", "CPUT beside row#__key__ f:c__rand:0:9__ __data:8__")
    loop, readers = thread_seconds(server.pid) - loop, thread_seconds(server.pid, "cellar-read") - readers
    figures = pings.get()
    pinger.join()
    stop.set()
    if threads is not None:
        scanner.join()
    writes = result["operations"]
    return {"cpu rate": writes / loop, "rate": writes / result["seconds"], "p99": figures[0]["p99"], "max": figures[0]["max"],
            "idle": figures[1]["p99"], "scan": statistics.median(scans) if scans else 0, "readers": readers / (loop + readers)}


def ping_for(pair, seconds, figures):
    figures.put(ping(pair, for_seconds(seconds)))


def measure_writers(pair, options):
    client = pair[0].client()
    client.execute_command("TABLE", "CREATE", "beside", "FAMILY", "f", "VERSIONS", "1")
    benchmark(pair[0], "--load-only", "--preload", str(options.rows), "--load-command", "CPUT beside " + ROW)
    cases = [("alone", None), ("a scan, read-threads 0", 0), ("a scan, read-threads 1", 1)]
    figures = {name: [] for name, _ in cases}
    for _ in range(options.rounds):
        for name, threads in cases:
            figures[name].append(write_beside(pair, options, threads))

    def median(name, what):
        return statistics.median(figure[what] for figure in figures[name])

    print(f"\n{'writers beside':<30} {'CPU rate':>9} {'of alone':>9} {'rate':>9} {'of alone':>9} {'p99 us':>8} {'+ms':>6} {'max us':>8} "
          f"{'idle p99':>8} {'scan s':>7} {'in threads':>10}")
    for name, _ in cases:
        values = {what: median(name, what) for what in figures[name][0]}
        print(f"{name:<30} {values['cpu rate']:9.0f} {values['cpu rate'] / median('alone', 'cpu rate'):9.2f} {values['rate']:9.0f} "
              f"{values['rate'] / median('alone', 'rate'):9.2f} {values['p99']:8.0f} {(values['p99'] - median('alone', 'p99')) / 1e3:6.2f} "
              f"{values['max']:8.0f} {values['idle']:8.0f} {values['scan']:7.2f} {values['readers']:10.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pipeline", type=int, default=1, help="of the writers")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()

    def wanted(case):
        return not options.only or any(word.lower() in case[0].lower() for word in options.only)

    os.sched_setaffinity(0, {int(servers.CLIENT_CORE)})
    # Not pinned: the server has threads that help the loop.
    with servers.Server("cellar", pin=False) as server, servers.Server("cellar", pin=False) as control:
        for pid in (server.pid, control.pid):
            os.sched_setaffinity(pid, range(os.cpu_count()))
        if wanted(("writers beside a scan",)):
            measure_writers((server, control), options)
        if not any(map(wanted, REPEATED + ONCE)):
            return
        print(f"loading {options.rows * COLUMNS} cells and a row of {WIDE_COLUMNS} columns", flush=True)
        load(server.port, options.rows)
        print(f"\n{'PING beside':<30} {'p50 us':>8} {'p99 us':>8} {'max us':>8} {'own max':>8} {'>10ms':>6} "
              f"{'idle p99':>8} {'max us':>8} {'own max':>8} {'>10ms':>6} {'p99 +ms':>8} {'own +ms':>8} {'runs':>6}")
        measure((server, control), options, wanted)


if __name__ == "__main__":
    main()
