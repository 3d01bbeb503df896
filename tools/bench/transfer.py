#!/usr/bin/python3
"""`make bench-transfer`: what cellar-export and cellar-import take, beside a scan and beside the server; and HEAT.

    transfer.py [--cells 10000000] [--repeats 3]

A table of rows of ten columns. In turn it is scanned by cellar-benchmark --scan, once as it is and once with the words
that an export adds (WITHTS WITHTYPE WITHTTL VERSIONS ALL), and exported to /dev/null in each format: time and the
server's CPU of a cell, medians, each relative to the plain scan and to the one of the same words; the tool's memory.
Then the export in `rows`, and a CSV file of the same, are imported: CPU of the tool relative to that of the server.
Last, HEAT of a table with a whole day of minutes in all its ranges: milliseconds of the server's CPU.
"""

import argparse
import os
import random
import statistics
import subprocess
import tempfile

import loading
import servers

COLUMNS = 10
BATCH_ROWS = 20_000
WORDS = "WITHTS WITHTYPE WITHTTL STATE VERSIONS ALL"
DAY_MINUTES = 1440


def tool(name):
    return os.path.join(servers.ROOT, "build", name)


LAUNCHER = """
import resource, subprocess, sys, time
begin = time.monotonic()
subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def run(server, words):
    """Seconds, the server's CPU seconds, the program's own, and the KiB that it took."""
    before = server.cpu_seconds()
    done = subprocess.run(servers.pinned(servers.CLIENT_CORE, ["python3", "-c", LAUNCHER, *words]), capture_output=True,
                          text=True, check=True)
    seconds, own, kib = done.stdout.split()[-3:]
    return float(seconds), server.cpu_seconds() - before, float(own), int(kib)


def fill(server, rows):
    server.client().execute_command("TABLE", "CREATE", "load", "FAMILY", "f")
    data = random.Random(1)
    columns = [b"c%d" % i for i in range(COLUMNS)]
    for begin in range(0, rows, BATCH_ROWS):
        loading.send(server, [loading.put("cellar", b"row#%012d" % number, columns, data)
                              for number in range(begin, min(rows, begin + BATCH_ROWS))])


def exports(server, options):
    port = ["-p", str(server.port)]
    scan = [servers.benchmark_binary(), *port, "--scan", "load", "-d", "0.01"]
    export = [tool("cellar-export"), *port, "load", "-o", "/dev/null", "-q", "-f"]
    cases = {"scan": scan, "scan, same words": [*scan, "--scan-options", WORDS],
             **{f"export {name}": [*export, name] for name in ("rows", "jsonl", "csv", "avro")},
             "export avro, no codec": [*export, "avro", "--compress", "none"]}
    seen = {name: [] for name in cases}
    for _ in range(options.repeats):
        for name, words in cases.items():
            seen[name].append(run(server, words))
    print(f"{'':<24}{'time':>8}{'/scan':>7}{'/same':>7}{'CPU':>9}{'/scan':>7}{'/same':>7}{'tool CPU':>9}{'MiB':>6}")
    middle = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in seen.items()}
    for name, (seconds, server_cpu, own_cpu, kib) in middle.items():
        plain, same = middle["scan"], middle["scan, same words"]
        print(f"{name:<24}{seconds:8.2f}{seconds / plain[0]:7.2f}{seconds / same[0]:7.2f}{server_cpu:9.2f}"
              f"{server_cpu / plain[1]:7.2f}{server_cpu / same[1]:7.2f}{own_cpu:9.2f}{kib / 1024:6.0f}")


def imports(server, options, directory):
    port = ["-p", str(server.port)]
    limit = str(min(options.cells // COLUMNS, 300_000))
    for name, words in (("rows", ["--create-table"]), ("csv", ["-k", "key"]), ("avro", ["--create-table"])):
        path = os.path.join(directory, "load." + name)
        run(server, [tool("cellar-export"), *port, "load", "-o", path, "-q", "RANGE", "-", "(row#%012d" % int(limit)])
        ratios = []
        for repeat in range(options.repeats):
            table = f"{name}{repeat}"
            server.client().execute_command("TABLE", "CREATE", table, "FAMILY", "f")
            seconds, server_cpu, own_cpu, _ = run(server, [tool("cellar-import"), *port, table, path, "-q", *words])
            ratios.append((own_cpu / server_cpu, int(limit) / seconds))
            server.client().execute_command("TABLE", "DROP", table)
        share, rate = (statistics.median(column) for column in zip(*ratios))
        print(f"import {name:<17}tool's CPU / server's {share:5.2f}   {rate:10,.0f} rows/s")


def heat_of_a_day(options):
    words = ["--enable-debug-command", "yes", "--heat-sample", "1"]
    with servers.Server("cellar", options=words) as server:
        client = server.client()
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        loading.send(server, [loading.encode([b"CPUT", b"t", b"row%06d" % i, b"f:q", b"x" * 100]) for i in range(20_000)])
        begin = 1_795_400_400_000_000
        for minute in range(DAY_MINUTES):
            client.execute_command("DEBUG", "SET-TIME", begin + minute * 60_000_000)
            loading.send(server, [loading.encode([b"CMGET", b"t", b"row%06d" % i, b"f:q"])
                                  for i in range(minute % 70, 20_000, 70)])
        for ranges in ("64", "256"):
            runs = []
            for _ in range(20 * options.repeats):
                before = server.cpu_seconds()
                client.execute_command("HEAT", "t", "FROM", begin, "STEP", "1m", "RANGES", ranges)
                runs.append((server.cpu_seconds() - before) * 1000)
            print(f"HEAT of a day, {ranges} ranges: {statistics.median(runs):.1f} ms of CPU")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cells", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with servers.Server("cellar") as server, tempfile.TemporaryDirectory() as directory:
        fill(server, options.cells // COLUMNS)
        exports(server, options)
        imports(server, options, directory)
    heat_of_a_day(options)


if __name__ == "__main__":
    main()
