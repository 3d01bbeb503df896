#!/usr/bin/python3
"""`make bench-cuts`: what a cut a second costs those who write (cluster-cut-interval 1).

    cuts.py [--rounds 5] [--commands 400000] [--binary FILE]

Three sets of one node on this machine, and a table in twelve tablets on all of them. 20 clients write one cell a time at
one node, in turns without cuts and with one a second: p99 of the writes and the ratio of the medians (bar 1.3), and how
long any node held replies at most (bar 50 ms). Then set 2 is stopped, and one client writes rows of the others: the
longest write (bar 600 ms).
"""

import argparse
import csv
import shutil
import signal
import statistics
import subprocess
import time

import redis

from clusters import cluster

WORDS = ["CPUT", "t", "__rand_int__", "f:x", "v" * 16]
BOUNDS = [f"{place:012}" for place in range(100_000, 1_200_000, 100_000)]


def with_table(nodes):
    nodes[0].client().execute_command("TABLE", "CREATE", "t", "SPLIT", "AT", len(BOUNDS), *BOUNDS, "FAMILY", "f")
    return nodes


def p99(port, commands):
    words = [shutil.which("redis-benchmark"), "-p", str(port), "-c", "20", "-n", str(commands), "-r", "1200000", "--csv", *WORDS]
    lines = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.splitlines()
    return float(next(csv.DictReader(lines))["p99_latency_ms"])


def cut_every(node, interval):
    node.client().execute_command("CLUSTER", "CONFIG", "SET", "cluster-cut-interval", interval)


def cuts_of(node):
    return int(node.client().info("cluster")["cluster_cuts_good"])


def own_rows(node, count):
    """Rows of sets 0 and 1."""
    client = node.client()
    found = []
    for place in range(0, 1_200_000, 1000):
        row = f"{place:012}"
        told = client.execute_command("TABLET", "ROUTE", "t", row)
        if dict(zip(told[::2], told[1::2]))[b"set"] != 2:
            found.append(row)
        if len(found) == count:
            break
    return found


def longest_write(node, rows, seconds):
    """In milliseconds, and how many there were."""
    client = node.client()
    longest, done, until_time = 0, 0, time.monotonic() + seconds
    while time.monotonic() < until_time:
        begin = time.monotonic()
        try:
            client.execute_command("CPUT", "t", rows[done % len(rows)], "f:x", "v")
        except redis.ResponseError as error:
            print(f"  {error}")
        longest = max(longest, time.monotonic() - begin)
        done += 1
    return longest * 1000, done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commands", type=int, default=400_000)
    parser.add_argument("--binary")
    options = parser.parse_args()
    nodes = with_table(cluster(3, options.binary))
    try:
        rows = own_rows(nodes[1], 200)
        p99(nodes[1].port, options.commands)
        without, with_cuts, cuts = [], [], 0
        for _ in range(options.rounds):
            cut_every(nodes[0], "0")
            without.append(p99(nodes[1].port, options.commands))
            cut_every(nodes[0], "1")
            before = cuts_of(nodes[0])
            with_cuts.append(p99(nodes[1].port, options.commands))
            cuts += cuts_of(nodes[0]) - before
        if cuts < options.rounds:
            raise SystemExit(f"{cuts} cuts in {options.rounds} rounds: these are too short to tell, see --commands")
        one, other = statistics.median(without), statistics.median(with_cuts)
        held = max(int(each.client().info("cluster")["cluster_hold_us_max"]) for each in nodes)
        print(f"p99 of writes: {one:.2f} ms, with a cut a second ({cuts} of them) {other:.2f}: {other / one:.2f} (bar 1.3); "
              f"replies held at most {held / 1000:.1f} ms (bar 50)", flush=True)
        nodes[2].process.send_signal(signal.SIGSTOP)
        longest, done = longest_write(nodes[1], rows, 15)
        nodes[2].process.send_signal(signal.SIGCONT)
        print(f"with set 2 stopped: {done} writes of other sets' rows, the longest {longest:.0f} ms (bar 600)")
    finally:
        for each in nodes:
            each.process.send_signal(signal.SIGCONT)
            each.stop()


if __name__ == "__main__":
    main()
