#!/usr/bin/python3
"""`make bench-moves`: a tablet that moves while it is written to.

    moves.py [--rows 1000000] [--rate 20000] [--seconds 20] [--rounds 3] [--binary FILE]

Two sets of one node on this machine, and a table in two tablets at set 0: --rows rows of 1,000 bytes in the one that moves,
and a fiftieth as many in the other. First it moves there and back without load: bytes of the recipient's log over those of
the range's snapshot (bar 1.3). Then --rate writes a second of 1,000 bytes come at set 0, half of them for each tablet, and
the one moves to and fro: how long its calls wait (p99 bar 50 ms, at most 200), p99 of those of the other tablet over p99
without a move (bar 1.5), and by how much both processes have grown at most beside what they store.

Both nodes and the load share this machine's cores and its disk. What a disk that takes a quarter of a second for a sync
costs who writes, with and without a move, TMPDIR=/dev/shm leaves out.
"""

import argparse
import json
import os
import subprocess
import tempfile
import threading
import time

import servers
from clusters import cluster
from replica import until

ROW = 1000


class Load:
    """Writes for one tablet at a fixed rate, and how long they took."""

    def __init__(self, node, prefix, keys, rate, seconds):
        self.path = tempfile.mktemp(suffix=".json")
        self.process = subprocess.Popen(
            [servers.benchmark_binary(), "-p", str(node.port), "--command", f"CPUT t {prefix}__key__ f:x __data__", "--keys",
             str(keys), "--key-digits", "8", "--data-bytes", str(ROW), "--rate", str(rate), "-c", "32", "-d", str(seconds), "-q",
             "--json", self.path], stdout=subprocess.DEVNULL)

    def figures(self):
        """p99 and the longest, in milliseconds."""
        if self.process.wait() != 0:
            raise SystemExit("the load generator failed")
        with open(self.path) as file:
            told = json.load(file)
        os.unlink(self.path)
        if told["errors"]:
            raise SystemExit(f"{told['errors']} errors: {told['first_error']}")
        return told["latency_us"]["p99"] / 1000, told["latency_us"]["max"] / 1000


def fill(node, prefix, keys):
    subprocess.run([servers.benchmark_binary(), "-p", str(node.port), "--load-command", f"CPUT t {prefix}__key__ f:x __data__",
                    "--preload", str(keys), "--key-digits", "8", "--data-bytes", str(ROW), "--load-only", "-q"],
                   check=True, stdout=subprocess.DEVNULL)


def move(head, to):
    """Seconds it took."""
    begin = time.monotonic()
    head.execute_command("TABLET", "MOVE", "t", "m", "TO", to)

    def is_over():
        jobs = [dict(zip(each[::2], each[1::2])) for each in head.execute_command("TABLET", "JOBS")]
        return not jobs or jobs[-1][b"state"] in (b"done", b"cancelled")
    until(is_over)
    seconds = time.monotonic() - begin
    until(lambda: owner(head) == to)
    return seconds


def owner(head):
    told = head.execute_command("TABLET", "ROUTE", "t", "m", "SURE")
    return dict(zip(told[::2], told[1::2]))[b"set"]


def log_bytes(node):
    return int(node.client().info("persistence")["aof_current_size"])


def wait_purged(nodes):
    for node in nodes:
        until(lambda node=node: node.client().info("cluster")["cluster_rows_to_purge"] == 0)


def snapshot_bytes(node):
    node.client().execute_command("BGSAVE")
    until(lambda: node.client().info("persistence")["rdb_bgsave_in_progress"] == 0)
    return max(os.path.getsize(os.path.join(node.directory, name)) for name in os.listdir(node.directory)
               if name.endswith(".snapshot"))


def without_load(nodes, options):
    head = nodes[0].client()
    stored = snapshot_bytes(nodes[0])
    for to in (1, 0):
        before = log_bytes(nodes[to])
        seconds = move(head, to)
        grown = log_bytes(nodes[to]) - before
        wait_purged(nodes)
        print(f"{stored >> 20} MiB to set {to} without load: {seconds:.1f} s, log {grown >> 20} MiB: {grown / stored:.2f} "
              "(bar 1.3)", flush=True)


class Peak(threading.Thread):
    """The most that the processes take."""

    def __init__(self, nodes):
        super().__init__()
        self.nodes, self.over, self.most = nodes, False, [0] * len(nodes)

    def run(self):
        while not self.over:
            self.most = [max(most, node.resident_bytes()) for most, node in zip(self.most, self.nodes)]
            time.sleep(0.05)


def under_load(nodes, options):
    head = nodes[0].client()
    small = options.rows // 50
    rate = options.rate // 2
    at = 0
    for number in range(options.rounds):
        still = [Load(nodes[0], prefix, keys, rate, options.seconds) for prefix, keys in (("m", options.rows), ("a", small))]
        (_, _), (other_before, _) = [each.figures() for each in still]
        wait_purged(nodes)
        before = [node.resident_bytes() for node in nodes]
        peak = Peak(nodes)
        peak.start()
        moving = [Load(nodes[0], prefix, keys, rate, options.seconds) for prefix, keys in (("m", options.rows), ("a", small))]
        time.sleep(1)
        at = 1 - at
        seconds = move(head, at)
        (p99, longest), (other, _) = [each.figures() for each in moving]
        peak.over = True
        peak.join()
        if seconds > options.seconds - 1:
            print(f"  it took longer than the load, see --seconds: {seconds:.1f} s")
        grown = [(most - start) >> 20 for most, start in zip(peak.most, before)]
        print(f"round {number}: to set {at} in {seconds:.1f} s at {options.rate} writes/s: its writes p99 {p99:.1f} ms (bar 50), at "
              f"most {longest:.0f} (200); the other tablet's p99 {other:.2f} ms, without a move {other_before:.2f}: "
              f"{other / other_before:.2f} (bar 1.5); resident memory + {grown[1 - at]} MiB at the donor, + {grown[at]} at the "
              "recipient, what it stores included", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--binary")
    options = parser.parse_args()
    nodes = cluster(2, options.binary, ["--auto-aof-rewrite-percentage", "0"])  # the log grows
    try:
        head = nodes[0].client()
        head.execute_command("TABLE", "CREATE", "t", "SPLIT", "AT", 1, "m", "FAMILY", "f", "VERSIONS", 1)
        for row in ("a", "m"):
            told = head.execute_command("TABLET", "ROUTE", "t", row)
            if dict(zip(told[::2], told[1::2]))[b"set"] != 0:
                head.execute_command("TABLET", "MOVE", "t", row, "TO", 0, "WAIT", 10_000)
        fill(nodes[0], "m", options.rows)
        fill(nodes[0], "a", options.rows // 50)
        without_load(nodes, options)
        under_load(nodes, options)
    finally:
        for each in nodes:
            each.stop()


if __name__ == "__main__":
    main()
