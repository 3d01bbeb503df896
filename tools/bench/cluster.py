#!/usr/bin/python3
"""`make bench-cluster`: what it costs that any node takes any command.

    cluster.py [--rounds 5] [--seconds 1]

A set of two on this machine, of which the clients ask one time the leader (direct) and one time the other one, which
passes everything on (cluster-reads leader). For CGET and CPUT, with 50 clients and one, the CPU time of both processes
a command, as medians of --rounds turns taken alternately, and the ratio of the two. Bars: 1.7 with 50 clients; one
client 3.3, with a pipeline of 16 2.5.
"""

import argparse
import shutil
import statistics
import subprocess

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
                commands = options.commands // (10 if shape[0] == 1 and shape[1] == 1 else 1)
                direct, passed = [], []
                for _ in range(options.rounds):
                    direct.append(cost(nodes, leader.port, shape, commands, words))
                    passed.append(cost(nodes, entry.port, shape, commands, words))
                one, other = statistics.median(direct), statistics.median(passed)
                print(f"{name} {shape[0]:3} clients, P{shape[1]:<3} direct {one:6.2f} us, passed on {other:6.2f} us: "
                      f"{other / one:.2f} (bar {shape[2]}; rounds {min(p / d for p, d in zip(passed, direct)):.2f} to "
                      f"{max(p / d for p, d in zip(passed, direct)):.2f})", flush=True)
    finally:
        for node in nodes:
            node.stop()


if __name__ == "__main__":
    main()
