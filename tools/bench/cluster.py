#!/usr/bin/python3
"""`make bench-cluster`: what it costs that any node takes any command.

    cluster.py [--rounds 5] [--commands 100000]

A set of two on this machine, of which the clients ask one time the leader (direct) and one time the other one, which
passes everything on (cluster-reads leader). For CGET and CPUT, with 50 clients and one, the CPU time of both processes
a command, as medians of --rounds turns taken alternately, and the ratio of the two. Bars: 1.7 with 50 clients; one
client 3.3, with a pipeline of 16 2.5. With 50 clients and a pipeline of 16 a turn has six times as many commands: one of
a tenth of a second tells a ratio only by a third.

Then one client asks through the other node for 1 GB and reads nothing: p99 of 50 others there, beside the same without
it (bar 1.5), and by how much both processes have grown.
"""

import argparse
import csv
import shutil
import socket
import statistics
import subprocess
import time

import servers
from sets import found, leads

KINDS = (("CGET", ["CGET", "t", "row:__rand_int__", "f:x"]), ("CPUT", ["CPUT", "t", "row:__rand_int__", "f:x", "v" * 16]))
SHAPES = ((50, 1, 1.7), (50, 16, 1.7), (1, 1, 3.3), (1, 16, 2.5))


def load(port, clients, pipeline, commands, words):
    generator = shutil.which("redis-benchmark")
    subprocess.run([generator, "-p", str(port), "-c", str(clients), "-P", str(pipeline), "-n", str(commands), "-r", "1000",
                    "-q", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def cost(nodes, port, shape, commands, words):
    """Microseconds of CPU time of all nodes a command."""
    before = sum(node.cpu_seconds() for node in nodes)
    load(port, shape[0], shape[1], commands, words)
    return (sum(node.cpu_seconds() for node in nodes) - before) / commands * 1e6


def p99(port, commands):
    """Of 50 clients, in milliseconds."""
    words = [shutil.which("redis-benchmark"), "-p", str(port), "-c", "50", "-n", str(commands), "-r", "1000", "--csv", *KINDS[0][1]]
    lines = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.splitlines()
    return float(next(csv.DictReader(lines))["p99_latency_ms"])


def ask_for_a_gigabyte(port):
    """A connection that has asked, and reads nothing."""
    link = socket.create_connection(("127.0.0.1", port))
    link.sendall(b"CGET t big f:x\r\n" * 1000)
    return link


def beside_who_does_not_read(leader, entry, options):
    leader.client().execute_command("CPUT", "t", "big", "f:x", "v" * 1_000_000)
    alone, beside = [], []
    before = [node.resident_bytes() for node in (entry, leader)]
    grown = [0, 0]
    for _ in range(options.rounds):
        alone.append(p99(entry.port, options.commands // 2))
        with ask_for_a_gigabyte(entry.port):
            time.sleep(0.5)
            beside.append(p99(entry.port, options.commands // 2))
            grown = [max(most, node.resident_bytes() - was) for most, node, was in zip(grown, (entry, leader), before)]
    one, other = statistics.median(alone), statistics.median(beside)
    print(f"beside a client that asks for 1 GB and does not read: p99 of 50 others {other:.2f} ms, without it {one:.2f}: "
          f"{other / one:.2f} (bar 1.5); grown by {grown[0] / 1e6:.0f} MB where it asks, {grown[1] / 1e6:.0f} MB at the leader")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commands", type=int, default=100_000)
    options = parser.parse_args()
    extra = ["--cluster-forward", "yes", "--cluster-reads", "leader"]
    nodes = [servers.Server("cellar", log="everysec", pin=False, options=extra) for _ in range(2)]
    try:
        found(nodes)
        leader = next(node for node in nodes if leads(node))
        entry = next(node for node in nodes if node is not leader)
        leader.client().execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        load(leader.port, 50, 16, 50_000, KINDS[1][1])
        for name, words in KINDS:
            for shape in SHAPES:
                commands = int(options.commands * {(50, 16): 6, (1, 1): 0.1}.get(shape[:2], 1))
                direct, passed = [], []
                for _ in range(options.rounds):
                    direct.append(cost(nodes, leader.port, shape, commands, words))
                    passed.append(cost(nodes, entry.port, shape, commands, words))
                one, other = statistics.median(direct), statistics.median(passed)
                print(f"{name} {shape[0]:3} clients, P{shape[1]:<3} direct {one:6.2f} us, passed on {other:6.2f} us: "
                      f"{other / one:.2f} (bar {shape[2]}; rounds {min(p / d for p, d in zip(passed, direct)):.2f} to "
                      f"{max(p / d for p, d in zip(passed, direct)):.2f})", flush=True)
        beside_who_does_not_read(leader, entry, options)
    finally:
        for node in nodes:
            node.stop()


if __name__ == "__main__":
    main()
