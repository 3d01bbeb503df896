#!/usr/bin/python3
"""`make bench-compression`: what COMPRESS saves and costs, on HTML.

    compression.py [--rows 2000] [--repeats 5] [--bytes 16384]

Three tables with the same values, pieces of the manual's pages as HTML: one without COMPRESS, one with lz4, one with
zstd. Prints their memory (FAMILY INFO), their part of the snapshot file, and the server's CPU of a CPUT and of a CGET,
one at a time and 16 in flight, interleaved, medians over the repeats; each beside the ratio to the plain table.
"""

import argparse
import glob
import os
import random
import statistics
import subprocess

import redis

import servers

TABLES = ("none", "lz4", "zstd")
DEPTHS = (1, 16)


def html():
    """The pages of the manual, as mandoc makes them."""
    pages = sorted(glob.glob(os.path.join(servers.ROOT, "conf", "man", "*.[1-8]")))
    return b"".join(subprocess.run(["mandoc", "-T", "html", page], capture_output=True, check=True).stdout for page in pages)


def cpu_each(server, client, commands, depth):
    """The server's CPU of one command, in microseconds."""
    before = server.cpu_seconds()
    for begin in range(0, len(commands), depth):
        pipe = client.pipeline(transaction=False)
        for words in commands[begin:begin + depth]:
            pipe.execute_command(*words)
        pipe.execute()
    return (server.cpu_seconds() - before) * 1e6 / len(commands)


def info(client, table):
    words = client.execute_command("FAMILY", "INFO", table, "f")
    return dict(zip(words[::2], words[1::2]))


def show(name, unit, figures):
    line = "".join(f"{table:>6} {figures[table]:10.1f} {figures[table] / figures['none']:5.2f}" for table in TABLES)
    print(f"{name:<22}{line}   {unit}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=16384)
    options = parser.parse_args()
    text, draw = html(), random.Random(1)
    starts = [draw.randrange(len(text) - options.bytes) for _ in range(options.rows)]
    values = [text[start:start + options.bytes] for start in starts]
    with servers.Server("cellar") as server:
        client = redis.Redis(port=server.port)
        for table in TABLES:
            client.execute_command("TABLE", "CREATE", table, "FAMILY", "f", "VERSIONS", 1, "COMPRESS", table)

        def puts(table):
            return [("CPUT", table, f"row{i}", "f:h", value) for i, value in enumerate(values)]

        def gets(table):
            return [("CGET", table, f"row{i}", "f:h") for i in range(options.rows)]

        for table in TABLES:
            cpu_each(server, client, puts(table), 16)
        client.execute_command("SAVE")
        found = {table: info(client, table) for table in TABLES}
        show("memory of a value", "bytes", {table: found[table][b"memory"] / options.rows for table in TABLES})
        show("disk of a value", "bytes", {table: found[table][b"disk"] / options.rows for table in TABLES})
        for name, commands in (("CGET", gets), ("CPUT", puts)):
            for depth in DEPTHS:
                runs = [{table: cpu_each(server, client, commands(table), depth) for table in TABLES}
                        for _ in range(options.repeats)]
                show(f"{name}, {depth} in flight", "us of CPU",
                     {table: statistics.median(run[table] for run in runs) for table in TABLES})


if __name__ == "__main__":
    main()
