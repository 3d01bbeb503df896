#!/usr/bin/python3
"""`make bench-groups`: what a locality group saves, on the shape of the Webtable.

    groups.py [--rows 4000] [--repeats 5]

Two tables with the same rows: `contents` of 1 to 100 KiB beside `language` of 20 bytes, once in one
group and once in two. Scans `language` alone and prints, for each, the server's own microseconds and
what it examined (STATS), medians over the repeats, and the ratio.
"""

import argparse
import random
import statistics

import redis

import servers

LANGUAGE = b"English, en-GB, utf8"


def load(client, rows, seed):
    draw = random.Random(seed)
    client.execute_command("TABLE", "CREATE", "one", "FAMILY", "contents", "FAMILY", "language")
    client.execute_command("TABLE", "CREATE", "two", "FAMILY", "contents", "GROUP", "pages",
                           "FAMILY", "language")
    for row in range(rows):
        key = "com.example.www/%08d" % row
        page = draw.randbytes(draw.randrange(1024, 100 * 1024))
        for table in ("one", "two"):
            client.execute_command("CPUT", table, key, "contents:", page, "language:", LANGUAGE)


def scan(client, table):
    """Microseconds and cells examined of one scan of `language` alone."""
    micros, cells, cursor = 0, 0, b"0"
    while True:
        cursor, _, stats = client.execute_command(
            "CSCAN", table, cursor, "COUNT", "1000", "COLUMNS", "1", "language", "STATS")
        stats = dict(zip(stats[::2], stats[1::2]))
        micros += stats[b"micros"]
        cells += stats[b"cells"]
        if cursor == b"0":
            return micros, cells


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with servers.Server("cellar") as server:
        client = redis.Redis(port=server.port)
        load(client, options.rows, 1)
        medians = {}
        for table, name in (("one", "one group"), ("two", "two groups")):
            runs = [scan(client, table) for _ in range(options.repeats)]
            medians[table] = statistics.median(run[0] for run in runs)
            print(f"{name:<12} {medians[table]:10.0f} us   {runs[0][1]:8} cells examined")
        print(f"ratio        {medians['one'] / max(1, medians['two']):10.2f}")


if __name__ == "__main__":
    main()
