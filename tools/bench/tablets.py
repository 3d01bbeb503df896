#!/usr/bin/python3
"""`make bench-tablets`: what a table over several sets costs, beside the same table in one.

    tablets.py [--rounds 5] [--commands 200000] [--rows 1000000] [--binary FILE] [--only PART ...]

Three sets of one node on this machine with a table in twelve tablets on all of them, and one set with the same rows in
one tablet. All figures are CPU time of all nodes, as medians of --rounds turns taken alternately.

    points   CPUT and CGET of rows of all sets at one node, 50 clients: the ratio to one set (bars: pipeline 1 2.2,
             pipeline 16 2.6)
    scans    CSCAN of all rows and CAGG of all of them, asked at one node (bars 1.25 and 1.2)
    owners   pipelined CPUT of clients who ask the owners of two sets: how many the busier of the two processes takes in
             a second of its CPU time, over what one set takes (bar 1.7; the load generators are not counted)
"""

import argparse
import shutil
import statistics
import subprocess

import servers
from clusters import cluster

PUT = ["CPUT", "t", "__rand_int__", "f:x", "v" * 16]
GET = ["CGET", "t", "__rand_int__", "f:x"]


def bounds(rows, tablets):
    return [f"{rows * part // tablets:012}" for part in range(1, tablets)]


def create(node, rows, tablets):
    at = bounds(rows, tablets)
    split = ["SPLIT", "AT", len(at), *at] if at else []
    node.client().execute_command("TABLE", "CREATE", "t", *split, "FAMILY", "f", "FAMILY", "n", "TYPE", "i64")


def fill(node, rows):
    pipe = node.client().pipeline(transaction=False)
    for row in range(rows):
        pipe.execute_command("CPUT", "t", f"{row:012}", "f:x", "v" * 16, "n:y", row)
        if row % 5000 == 4999:
            pipe.execute()
    pipe.execute()


def generator(port, clients, pipeline, commands, rows, words):
    return [shutil.which("redis-benchmark"), "-p", str(port), "-c", str(clients), "-P", str(pipeline), "-n", str(commands), "-r",
            str(rows), "-q", *words]


def run(*lines):
    """All at once."""
    running = [subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for line in lines]
    if any([each.wait() for each in running]):
        raise SystemExit("a load generator failed")


def cpu_of(nodes, work):
    """Seconds of each node's CPU time."""
    before = [node.cpu_seconds() for node in nodes]
    work()
    return [node.cpu_seconds() - start for node, start in zip(nodes, before)]


def compared(rounds, one, several):
    """Medians of what both give, and of their ratio."""
    pairs = [(one(), several()) for _ in range(rounds)]
    return (statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs),
            statistics.median(b / a for a, b in pairs))


def points(lone, nodes, options):
    for name, words in (("CGET", GET), ("CPUT", PUT)):
        for pipeline, bar in ((1, 2.2), (16, 2.6)):
            commands = options.commands if pipeline > 1 else options.commands // 2

            def cost(group, entry, words=words, pipeline=pipeline, commands=commands):
                load = generator(entry.port, 50, pipeline, commands, options.rows, words)
                return sum(cpu_of(group, lambda: run(load))) / commands * 1e6
            one, several, ratio = compared(options.rounds, lambda: cost([lone], lone), lambda: cost(nodes, nodes[1]))
            print(f"{name} 50 clients, P{pipeline:<3} one set {one:5.2f} us, three {several:5.2f} us: {ratio:.2f} (bar {bar})",
                  flush=True)


def scans(lone, nodes, options):
    def scan(node):
        client = node.client()
        cursor = b"0"
        while True:
            cursor, _ = client.execute_command("CSCAN", "t", cursor, "COUNT", "1000")
            if cursor == b"0":
                return

    def aggregate(node):
        node.client().execute_command("CAGG", "t", "REDUCE", "SUM", "n:y")

    def grouped(node):
        node.client().execute_command("CAGG", "t", "BY", "VALUE", "f:x", "REDUCE", "COUNT", "f:x")
    for name, work, bar in (("CSCAN", scan, 1.25), ("CAGG SUM", aggregate, 1.2), ("CAGG BY VALUE", grouped, 1.2)):
        one, several, ratio = compared(options.rounds, lambda work=work: sum(cpu_of([lone], lambda: work(lone))),
                                       lambda work=work: sum(cpu_of(nodes, lambda: work(nodes[1]))))
        print(f"{name} of {options.rows} rows: one set {one * 1000:.0f} ms, twelve tablets {several * 1000:.0f} ms: "
              f"{ratio:.2f} (bar {bar})", flush=True)


def owners(lone, nodes, options):
    two = nodes[:2]
    head = two[0].client()
    head.execute_command("TABLE", "CREATE", "w", "SPLIT", "AT", 1, "b", "FAMILY", "f")
    lone.client().execute_command("TABLE", "CREATE", "w", "FAMILY", "f")
    for place, row in enumerate("ab"):
        told = head.execute_command("TABLET", "ROUTE", "w", row)
        two[place] = nodes[dict(zip(told[::2], told[1::2]))[b"set"]]

    def lines(ports):
        share = options.commands // 2
        return [generator(port, 25, 16, share, options.rows, ["CPUT", "w", f"{row}__rand_int__", "f:x", "v" * 16])
                for port, row in zip(ports, "ab")]

    def rate(group, ports):
        return options.commands // 2 * 2 / max(cpu_of(group, lambda: run(*lines(ports))))
    one, several, ratio = compared(options.rounds, lambda: rate([lone], [lone.port] * 2),
                                   lambda: rate(two, [node.port for node in two]))
    print(f"CPUT P16 a second of CPU: one set {one:.0f}, two {several:.0f}: {ratio:.2f} (bar 1.7)", flush=True)


PARTS = {"points": points, "scans": scans, "owners": owners}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commands", type=int, default=200_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--binary")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    nodes = cluster(3, options.binary)
    lone = None
    try:
        lone = servers.Server("cellar", log="everysec", pin=False, binary=options.binary)
        lone.options += ["--cluster-nodes", f"127.0.0.1:{lone.port}"]
        lone.start()
        create(nodes[0], options.rows, 12)
        create(lone, options.rows, 1)
        for node in (nodes[0], lone):
            fill(node, options.rows)
        for part in options.only:
            PARTS[part](lone, nodes, options)
    finally:
        for each in [*nodes, *([lone] if lone else [])]:
            each.stop()


if __name__ == "__main__":
    main()
