#!/usr/bin/python3
"""`make bench-answers`: what an answer costs the server beside the cells it is made of.

    answers.py [--rows 200000] [--commands 100000] [--repeats 3] [--only WORD ...]

Each line is a way to an answer and the way without it: CADD beside CINCRBY and a Redis' HINCRBY, an
hll beside PFADD, CAGG beside the scan that a client would fold, CROWS beside CROWs, CUPDATE beside a
scan and a CMUTATE for each row. Figures are the server's CPU time (all threads) in microseconds for
each thing done, medians of runs that take turns; `client` is what the client itself waits and works
for one whole answer, in milliseconds. Without a redis-server its columns stay empty.

Then, on a server that has all cores: how long a CAGG takes with a thread beside the loop and without
one (`--only threads`), and what a group takes of agg-max-memory (`--only memory`).
"""

import argparse
import statistics
import time

import redis

import servers

PIPELINE = 16
COLUMNS = 8
EACH_ROWS = 1000  # of a group
CROWS_ROWS = 64


def run(server, client, work):
    """(server's CPU in us, client's time in us) of `work(client)`."""
    cpu, begin = server.cpu_seconds(), time.perf_counter()
    work(client)
    return (server.cpu_seconds() - cpu) * 1e6, (time.perf_counter() - begin) * 1e6


def pipelined(commands, depth=PIPELINE):
    """Work: these commands, so many in flight."""
    def work(client):
        for begin in range(0, len(commands), depth):
            pipe = client.pipeline(transaction=False)
            for words in commands[begin:begin + depth]:
                pipe.execute_command(*words)
            pipe.execute()
    return work


def pages(*words):
    """Work: a whole scan; the cells are added up as a client would."""
    def work(client):
        cursor, total = b"0", 0
        while True:
            cursor, rows = client.execute_command("CSCAN", words[0], cursor, "COUNT", 1000, *words[1:])
            for _, columns in rows:
                total += sum(value for value in columns[1::2] if isinstance(value, int))
            if cursor == b"0":
                return total
    return work


def keys_of(client, *words):
    cursor, keys = b"0", []
    while True:
        cursor, found = client.execute_command("CSCAN", words[0], cursor, "COUNT", 1000, *words[1:], "KEYSONLY")
        keys += found
        if cursor == b"0":
            return keys


def once(*words):
    return lambda client: client.execute_command(*words)


def read_and_change(client):
    keys = keys_of(client, "wide", "WHERE", "n:c0", "GE", 0)
    pipelined([("CMUTATE", "wide", key, "PUT", "n:mark", 1) for key in keys])(client)


def load(client, rows):
    client.execute_command("TABLE", "CREATE", "wide", "KEY", "utf8#u64", "FAMILY", "n", "TYPE", "i64", "VERSIONS", 1)
    commands = []
    for row in range(rows):
        words = ["CPUT", "wide", f"g{row // EACH_ROWS:06}#{row % EACH_ROWS}"]
        for column in range(COLUMNS):
            words += [f"n:c{column}", row % 1000 + column]
        commands.append(words)
    pipelined(commands, 200)(client)
    client.execute_command("TABLE", "CREATE", "sums", "FAMILY", "s", "AGGREGATE", "sum", "FAMILY", "h", "AGGREGATE", "hll",
                           "FAMILY", "v", "TYPE", "i64", "VERSIONS", 1)


def writes(count):
    """name -> (things done, Cellar's work, the work beside it, whose that is)."""
    rows = [f"row{i % 1000}" for i in range(count)]
    add = [("CADD", "sums", row, "s:n", 1) for row in rows]
    return {
        "CADD sum / CINCRBY": (count, pipelined(add), pipelined([("CINCRBY", "sums", row, "v:n", 1) for row in rows]), "cellar"),
        "CADD sum / HINCRBY": (count, pipelined(add), pipelined([("HINCRBY", row, "n", 1) for row in rows]), "redis"),
        "CADD hll / PFADD": (count, pipelined([("CADD", "sums", row, "h:n", i) for i, row in enumerate(rows)]),
                             pipelined([("PFADD", "h" + row, i) for i, row in enumerate(rows)]), "redis"),
    }


def reads(client, rows):
    keys = keys_of(client, "wide", "SAMPLE", 0.2)
    keys = keys[:len(keys) // CROWS_ROWS * CROWS_ROWS]
    several = [("CROWS", "wide", CROWS_ROWS, *keys[at:at + CROWS_ROWS]) for at in range(0, len(keys), CROWS_ROWS)]
    groups = rows / EACH_ROWS
    return {
        "CAGG SUM of a column / CSCAN of it": (rows, once("CAGG", "wide", "REDUCE", "SUM", "n:c3"),
                                               pages("wide", "COLUMNS", 1, "n:c3"), "cellar"),
        "CAGG SUM of a family / CCOUNT that walks": (rows * COLUMNS, once("CAGG", "wide", "REDUCE", "SUM", "n"),
                                                   once("CCOUNT", "wide", "BY", "CELLS", "WHERE", "ROW", "EXISTS"), "cellar"),
        "CAGG by group / CSCAN": (rows, once("CAGG", "wide", "BY", "KEY", 1, "REDUCE", "AVG", "n:c1"),
                                  pages("wide", "COLUMNS", 1, "n:c1"), "cellar"),
        "EACH, first row of a group / CSCAN": (groups, lambda client: keys_of(client, "wide", "EACH", 1, 1),
                                               lambda client: keys_of(client, "wide"), "cellar"),
        "CROWS of 64 / CROW": (len(keys), pipelined(several, 1), pipelined([("CROW", "wide", key) for key in keys], 64), "cellar"),
        "CUPDATE / CSCAN and CMUTATE": (rows, once("CUPDATE", "wide", "ALL", "WHERE", "n:c0", "GE", 0, "PUT", "n:mark", 1),
                                        read_and_change, "cellar"),
    }


THREADED = {
    "CAGG SUM of a family": ("CAGG", "wide", "REDUCE", "SUM", "n"),
    "CAGG AVG by group": ("CAGG", "wide", "BY", "KEY", 1, "REDUCE", "AVG", "n"),
    "CAGG MAX by row": ("CAGG", "wide", "BY", "KEY", 2, "REDUCE", "MAX", "n:c0", "LIMIT", 0, 1),
}


def measure_threads(client, options):
    """Milliseconds that an answer takes, in turn without a thread beside the loop and with one."""
    print(f"\n{'ms for an answer':<42}{'one thread':>11}{'two':>11}{'ratio':>8}", flush=True)
    for name, words in THREADED.items():
        runs = {0: [], 1: []}
        for _ in range(5 * options.repeats):
            for threads, found in runs.items():
                client.config_set("agg-threads", threads)
                begin = time.perf_counter()
                client.execute_command(*words)
                found.append((time.perf_counter() - begin) * 1e3)
        one, two = (statistics.median(found) for found in runs.values())
        print(f"{name:<42}{one:>11.1f}{two:>11.1f}{one / two:>8.2f}", flush=True)


def measure_memory(client, rows):
    """The least memory with which a group of each row is answered, found by halving."""
    few, many = 1 << 20, 1 << 30
    client.config_set("agg-threads", 0)
    while many - few > few // 100:
        middle = (few + many) // 2
        client.config_set("agg-max-memory", middle)
        try:
            client.execute_command(*THREADED["CAGG MAX by row"])
            many = middle
        except redis.exceptions.ResponseError:
            few = middle
    print(f"\n{'bytes of agg-max-memory for a group of MAX':<42}{many / rows:>11.0f}", flush=True)


def measure(name, case, hosts, repeats):
    things, ours, theirs, whose = case
    sides = {"cellar": (hosts["cellar"], ours)}
    if hosts.get(whose):
        sides["beside"] = (hosts[whose], theirs)
    runs = {side: [] for side in sides}
    for _ in range(repeats):
        for side, (server, work) in sides.items():
            runs[side].append(run(server, server.client(), work))
    figures = {side: [statistics.median(column) for column in zip(*found)] for side, found in runs.items()}
    line = f"{name:<42}{figures['cellar'][0] / things:>11.3f}"
    if "beside" in figures:
        line += f"{figures['beside'][0] / things:>11.3f}{figures['cellar'][0] / figures['beside'][0]:>8.2f}" \
                f"{figures['cellar'][1] / 1000:>11.1f}{figures['beside'][1] / 1000:>11.1f}"
    print(line, flush=True)


def measure_pairs(options, wanted):
    with servers.Server("cellar") as cellar:
        hosts = {"cellar": cellar}
        beside = servers.Server("redis") if servers.redis_binary() else None
        if beside:
            hosts["redis"] = beside.start()
        try:
            load(cellar.client(), options.rows)
            print(f"{'us of server CPU for each':<42}{'with':>11}{'without':>11}{'ratio':>8}{'ms with':>11}{'ms without':>11}")
            cases = {**writes(options.commands), **reads(cellar.client(), options.rows)}
            for name, case in cases.items():
                if wanted(name):
                    measure(name, case, hosts, options.repeats)
        finally:
            if beside:
                beside.__exit__()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--commands", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="lines that hold one of these words")
    options = parser.parse_args()

    def wanted(name):
        return not options.only or any(word in name for word in options.only)

    measure_pairs(options, wanted)
    if not wanted("threads") and not wanted("memory"):
        return
    with servers.Server("cellar", pin=False) as cellar:
        load(cellar.client(), options.rows)
        if wanted("threads"):
            measure_threads(cellar.client(), options)
        if wanted("memory"):
            measure_memory(cellar.client(), options.rows)


if __name__ == "__main__":
    main()
