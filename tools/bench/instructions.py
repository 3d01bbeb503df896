#!/usr/bin/python3
"""`make bench-instructions`: user instructions per command, by callgrind, at pipeline 16.

    instructions.py [--only WORD ...] [--commands 20000] [--keys 20000] [--servers cellar,redis]
                    [--limit "CPUT / HSET=2600" ...] [--keep DIR] [--json FILE]
                    [--connections 50] [--against BINARY [--runs 2]]

Two runs of each server that differ only in their number of commands: the difference of their
instruction counts by the difference of their commands is the cost of one command, and start-up, the
loading of data and the ending cancel out. It repeats within a few per cent on any machine, busy or
not: the gate against growing slower. --limit makes it fail above a figure.

--against compares with another Cellar, the least of several runs of each, since all that varies (the
sweeper, HEAT, turns with less input) adds. Over one connection every turn has 16 commands, and one run
differs from the next by a few instructions.
"""

import argparse
import glob
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import bench
import figures
import pairs
import servers

PIPELINE = 16
ROWS_SHARE = 10


def count(kind, command, rows, commands, options, binary=None):
    """Instructions of a whole life of the server with `commands` commands, 0 for none."""
    with tempfile.TemporaryDirectory(prefix="cellar-callgrind-") as directory:
        server_name = os.path.basename(binary) if binary else kind
        pattern = os.path.join(options.keep or directory,
                               f"{server_name}-{'-'.join(command.split()[:2])}-{commands}.callgrind")
        wrapper = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={pattern}", "--quiet"]
        if options.keep:
            wrapper += ["--dump-instr=yes"]
        # Time passes fifty times as fast: without this, commands would be counted that write to the
        # slow log.
        server = servers.Server(kind, wrapper=wrapper, options=["--slowlog-log-slower-than", "-1"],
                                binary=binary)
        keys = options.keys // ROWS_SHARE if rows else options.keys
        with server:
            load_data(server, command, rows, keys)
            words = ["-c", str(options.connections), "-P", str(PIPELINE), "-n", str(commands),
                     "--keys", str(keys), "--command", command]
            result = bench.load_generator(server, words, pin=False)
            if result["errors"]:
                raise RuntimeError(f"{command}: {result['first_error']}")
            if rows and result["nulls"]:
                raise RuntimeError(f"{command}: {result['nulls']} nulls")
        total = 0
        for path in glob.glob(pattern + "*"):
            with open(path) as file:
                total += figures.callgrind_total(file.read())
        return total


def load_data(server, command, rows, keys):
    """Only what the command needs: its table, and its keys. (A table with a retention policy is
    swept by the clock, which would count here, where time passes fifty times as fast.)"""
    if command == "PING":
        return
    words = command.split()
    if server.kind == "cellar":
        bench.load(server, 0, [], [text for text in pairs.CELLAR_SETUP if text.split()[2] == words[1]])
    for share, commands in pairs.LOADS[server.kind]:
        if (share < 1.0) == rows and (server.kind == "redis" or commands[0].split()[1] == words[1]):
            bench.load(server, keys, commands, connections=1)


def instructions(kind, command, rows, options, binary=None):
    """Instructions per command."""
    few, many = options.commands, 2 * options.commands
    totals = [count(kind, command, rows, n, options, binary) for n in (few, many)]
    return figures.instructions_each(totals[0], totals[1], few, many)


def compare(selected, options):
    """Prints what the commands cost in both binaries, and how much more in ours."""
    def least(command, rows, binary):
        return min(instructions("cellar", command, rows, options, binary) for _ in range(options.runs))
    with ThreadPoolExecutor(options.jobs) as pool:
        pairs_of = [(name, [pool.submit(least, command, rows, binary)
                            for binary in (options.against, servers.cellar_binary())])
                    for name, command, _, rows in selected]
        lines = []
        for name, futures in pairs_of:
            before, now = [future.result() for future in futures]
            lines.append([name.split(" / ")[0], f"{before:,.0f}", f"{now:,.0f}",
                          f"{100 * (now / before - 1):+.1f} %"])
    print(figures.plain(["command", "against", "Cellar", "more"], lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--commands", type=int, default=20000)
    parser.add_argument("--keys", type=int, default=20000)
    parser.add_argument("--servers", default="cellar,redis")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--connections", type=int, default=50)
    parser.add_argument("--against", help="another binary of Cellar to compare with")
    parser.add_argument("--runs", type=int, default=2, help="of each binary, with --against")
    parser.add_argument("--limit", nargs="*", default=[], help='"pair=instructions"')
    parser.add_argument("--keep", help="directory for the callgrind files (callgrind_annotate reads them)")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        for path in glob.glob(os.path.join(options.keep, "*.callgrind*")):
            os.unlink(path)
    kinds = [k for k in options.servers.split(",") if k == "cellar" or servers.redis_binary()]
    limits = {name: float(value) for name, value in (text.rsplit("=", 1) for text in options.limit)}
    selected = [p for p in pairs.INSTRUCTION_PAIRS if bench.wanted(options, p[0])]
    if options.against:
        return compare(selected, options)
    with ThreadPoolExecutor(options.jobs) as pool:
        futures = {(name, kind): pool.submit(instructions, kind, cellar if kind == "cellar" else redis,
                                             rows, options)
                   for name, cellar, redis, rows in selected for kind in kinds}
        rows = [(name, "instructions", *(futures[name, kind].result() if kind in kinds else None
                                         for kind in ("cellar", "redis")))
                for name, _, _, _ in selected]
    print(figures.plain(figures.FIGURE_HEADER, [figures.figure_cells(row) for row in rows]))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=2)
    too_many = [row for row in rows if row[0] in limits and row[2] > limits[row[0]]]
    for name, _, cellar, _ in too_many:
        print(f"{name}: {cellar:,.0f} instructions are more than {limits[name]:,.0f}", file=sys.stderr)
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main())
