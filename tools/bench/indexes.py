#!/usr/bin/python3
"""`make bench-index`: what indexes cost when written, and give when read.

    indexes.py [--rows 1000000] [--inserts 200000] [--repeats 3]

Everything is measured as CPU of the server's threads (/proc/PID/task/*/schedstat), medians over the
repeats, in turns, so that a busy machine disturbs it little. Printed: inserts with no, one, three
indexes and with a UNIQUE one; scans of the same two cells of every row from the table, from an index
that covers them, from the column group that is chosen by itself, and by fetching each row; writes
into rows of ten and of 100,000 columns with an index of their family; a background build; a query
that finds 100 rows by an index and by WHERE; what it costs to take an index by oneself. The bars of
the project stand beside.
"""

import argparse
import statistics
import sys
import time

import bench
import figures
import servers

INSERT = "CPUT %s row__key__ f:x __rand:0:99999999__ f:y __rand:0:99999999__ f:z __data:12__"
INDEXED = {
    "no index": [],
    "one index": ["i1 ON 1 f:x"],
    "three indexes": ["i1 ON 1 f:x", "i2 ON 1 f:y", "i3 ON 1 f:z"],
    "one UNIQUE index": ["i1 ON 2 f:x f:y UNIQUE"],
    "one with INCLUDE": ["i1 ON 1 f:x INCLUDE 2 f:y f:z"],
}
MATCHES = 100  # rows of the selective query
WIDTHS = {"ten": 10, "wide": 100_000}  # columns of rows in an index of their family
WIDE_BAR = 3  # of a write into the wide row: deeper trees and colder memory, nothing that grows with the row


def cpu_of(server, work):
    """CPU seconds that the server spends while `work` is done."""
    before = server.cpu_seconds()
    work()
    return server.cpu_seconds() - before


def insert_costs(options):
    """Median CPU microseconds of an insert, by the kind of indexes."""
    runs = {name: [] for name in INDEXED}
    for _ in range(options.repeats):
        for name, indexes in INDEXED.items():
            bench.log_line("inserts, " + name)
            with servers.Server("cellar") as server:
                client = server.client()
                client.execute_command(*"TABLE CREATE t FAMILY f".split())
                for index in indexes:
                    client.execute_command(*("INDEX CREATE t " + index).split())
                seconds = cpu_of(server,
                                 lambda: bench.load(server, options.inserts, [INSERT % "t"]))
                runs[name].append(seconds / options.inserts * 1e6)
    return {name: statistics.median(values) for name, values in runs.items()}


def scan(client, words):
    """Reads a whole scan; the cells that came."""
    cursor, cells = b"0", 0
    while True:
        cursor, rows = client.execute_command("CSCAN", "t", cursor, "COUNT", "1000", *words)
        cells += sum(len(row[1]) // 2 for row in rows)
        if cursor == b"0":
            return cells


def wait_until_built(client, name):
    while True:
        reply = client.execute_command("INDEX", "INFO", "t", name)
        if dict(zip(reply[::2], reply[1::2]))[b"state"] == b"ready":
            return
        time.sleep(0.02)


def median_cpu(server, work, repeats):
    return statistics.median(cpu_of(server, work) for _ in range(repeats))


def wide_costs(options):
    """Median CPU microseconds of a write into a row with an index of its family, by width."""
    columns, writes = 1000, 20_000
    with servers.Server("cellar") as server:
        client = server.client()
        client.execute_command(*"TABLE CREATE t FAMILY f".split())
        client.execute_command(*"INDEX CREATE t i ON 1 f".split())
        for row, width in WIDTHS.items():
            bench.log_line(f"a row of {width} columns")
            for begin in range(0, width, columns):
                numbers = range(begin, min(width, begin + columns))
                client.execute_command("CPUT", "t", row,
                                       *(word for n in numbers for word in (f"f:{n:08}", "value")))
        costs = {}
        for _ in range(options.repeats):
            for row, width in WIDTHS.items():
                command = f"CPUT t {row} f:__rand:0:{width - 1}__ __data:12__"
                seconds = cpu_of(server, lambda c=command: bench.load(server, writes, [c]))
                costs.setdefault(row, []).append(seconds / writes * 1e6)
    return {WIDTHS[row]: statistics.median(values) for row, values in costs.items()}


def reads(options):
    """Rows of the table of figures: (what, figure, unit, whether its bar is met or None)."""
    rows = []
    values = max(1, options.rows // MATCHES)
    with servers.Server("cellar") as server:
        client = server.client()
        client.execute_command(*"TABLE CREATE t FAMILY f".split())
        bench.log_line(f"loading {options.rows} rows")
        bench.load(server, options.rows,
                   [f"CPUT t row__key__ f:a __rand:1:{values}__ f:b __data:8__ f:c __data:40__"])
        client.execute_command(*"INDEX CREATE t fetch ON 1 f:a".split())
        bench.log_line("building")
        build = cpu_of(server, lambda: wait_until_built(client, "fetch"))
        rows.append(("background build", options.rows / build, "rows/s of CPU", None))
        client.execute_command(*"INDEX CREATE t cover ON 1 f:a INCLUDE 1 f:b".split())
        wait_until_built(client, "cover")
        pair = ["COLUMNS", "2", "f:a", "f:b"]
        cells = 2 * options.rows

        def read(*words):
            if scan(client, [*words, *pair]) != cells:
                raise RuntimeError(f"{words} did not give {cells} cells")

        def count(*words):
            client.execute_command("CCOUNT", "t", *words, *pair, "BY", "CELLS")

        speed = {}
        for what, words in (("of the table", []), ("of a covering index", ["INDEX", "cover"]),
                            ("of the rows of an index", ["INDEX", "fetch"])):
            bench.log_line("scan " + what)
            speed[what] = cells / median_cpu(server, lambda: read(*words), options.repeats)
            speed["count " + what] = cells / median_cpu(server, lambda: count(*words), options.repeats)
        client.execute_command(*"INDEX CREATE t copy ON 0 INCLUDE 2 f:a f:b".split())
        wait_until_built(client, "copy")
        what = "of the chosen column group"
        bench.log_line("scan " + what)
        speed[what] = cells / median_cpu(server, lambda: read(), options.repeats)
        speed["count " + what] = cells / median_cpu(server, lambda: count(), options.repeats)
        plain = speed["of the table"]
        for what, figure in speed.items():
            base = speed["count of the table"] if what.startswith("count") else plain
            covering = "covering" in what or "chosen" in what
            rows.append(((what if what.startswith("count") else "CSCAN " + what), figure,
                         f"cells/s of CPU, {figure / base:.2f} of the table's",
                         figure >= 0.8 * base if covering else None))
        bench.log_line("selective query")
        value = str(values // 2).zfill(len(str(values)))
        query = ["CSCAN", "t", "0", "COUNT", "1000"]
        by_index = cpu_of(server, lambda: [client.execute_command(*query, "INDEX", "fetch", "EQ", "1",
                                                                  value) for _ in range(100)]) / 100
        by_where = cpu_of(server, lambda: scan(client, ["WHERE", "f:a", "EQ", value, "NOINDEX"]))
        rows.append(("selective query by the index", by_index * 1e6, "us", None))
        rows.append(("the same by WHERE NOINDEX", by_where * 1e6, f"us, {by_where / by_index:,.0f} times",
                     by_where >= 1000 * by_index))
        by_itself = cpu_of(server, lambda: [client.execute_command(*query, "WHERE", "f:a", "EQ", value)
                                            for _ in range(100)]) / 100
        rows.append(("the same by WHERE, which takes the index", by_itself * 1e6,
                     f"us, {by_itself / by_index:.2f} of naming it", None))
    return rows


def choice_costs(options):
    """What a scan pays for an index that it takes by itself, and for the choice alone."""
    rows, asked = [], 20_000
    with servers.Server("cellar") as server:
        client = server.client()
        client.execute_command(*"TABLE CREATE t FAMILY f TYPE bytes".split())
        client.execute_command(*"INDEX CREATE t one ON 1 f:a UNIQUE".split())
        bench.log_line(f"loading {options.rows} rows with a UNIQUE index")
        bench.load(server, options.rows, ["CPUT t row__key__ f:a mail__key__ f:b __data:8__"])

        def each(command):
            """Median CPU microseconds of a command."""
            costs = []
            for _ in range(options.repeats):
                costs.append(cpu_of(server, lambda: bench.load(server, asked, [command])) / asked * 1e6)
            return statistics.median(costs)

        sample = client.execute_command("CSCAN", "t", "0", "COUNT", "1")[1][0][1]
        value = sample[1].decode()
        taken = client.execute_command("CSCAN", "t", "0", "WHERE", "f:a", "EQ", value, "STATS")
        if len(taken[1]) != 1 or b"index" not in taken[2]:
            raise RuntimeError("the index was not taken")
        found = each(f"CSCAN t 0 WHERE f:a EQ {value}")
        rows.append((f"EQ on a UNIQUE index of {options.rows:,} rows", found, "us", found <= 20))
        # Of one row, so that the scan itself costs little; a tenth of it is none.
        row = client.execute_command("CSCAN", "t", "0", "COUNT", "1", "KEYSONLY")[1][0].decode()
        words = f"CCOUNT t RANGE [{row} [{row} WHERE f:a EQ "
        own = client.execute_command("CGET", "t", row, "f:a").decode()
        plain = each(words + own + " NOINDEX")
        planned = each(words + own)
        rows.append(("planning, the index not taken", planned - plain, "us", planned - plain <= 2))
        walk = each(f"CSCAN t 0 RANGE [{row} + COUNT 10")
        walk_without = each(f"CSCAN t 0 RANGE [{row} + COUNT 10 NOINDEX")
        rows.append(("CSCAN of ten rows without WHERE", walk, f"us, {walk / walk_without:.3f} of NOINDEX", None))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--inserts", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    costs = insert_costs(options)
    plain = costs["no index"]
    table = []
    for name, micros in costs.items():
        met = micros <= 2.2 * plain if name == "one index" else None
        table.append((f"insert, {name}", micros, f"us, {micros / plain:.2f} of the plain one's", met))
    wide = wide_costs(options)
    narrow = min(wide)
    for width, micros in wide.items():
        met = micros <= WIDE_BAR * wide[narrow] if width != narrow else None
        table.append((f"write, index of the family, {width:,} columns", micros,
                      f"us, {micros / wide[narrow]:.2f} of the narrow row's", met))
    table += reads(options)
    table += choice_costs(options)
    words = {None: "", True: "met", False: "MISSED"}
    print(figures.plain(("", "figure", "unit", "bar"),
                        [(what, f"{figure:,.2f}", unit, words[met]) for what, figure, unit, met in table]))
    return 1 if any(row[3] is False for row in table) else 0


if __name__ == "__main__":
    sys.exit(main())
