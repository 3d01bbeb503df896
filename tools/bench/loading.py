"""Loading: rows of ten columns by pipelined CPUT beside HSET of ten fields, and rows of 100,000 columns.

Each measurement has a fresh server, so that none pays for what an earlier one left behind, and the two
servers take turns. The commands are put together before the clock runs; one connection sends them,
PIPELINE at a time. CPU is that of the server process, all its threads, from its CPU clock.
"""

import random
import socket
import statistics

import servers

PIPELINE = 64
COLUMNS = 10
WIDE_COLUMNS = 100000


def encode(words):
    """A command in the protocol's form."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def put(kind, row, columns, data):
    """One command that puts `columns` into `row`, each with a value of 8 bytes from `data`."""
    if kind == "cellar":
        words = [b"CPUT", b"load", row]
        columns = [b"f:" + column for column in columns]
    else:
        words = [b"HSET", row]
    for column in columns:
        words += [column, data.randbytes(4).hex().encode()]
    return encode(words)


def rows_of_ten(kind, rows, order, data):
    numbers = list(range(rows))
    if order == "random":
        data.shuffle(numbers)
    columns = [b"c%d" % i for i in range(COLUMNS)]
    return [put(kind, b"row#%012d" % number, columns, data) for number in numbers]


def wide_rows(kind, rows, order, data, at_once):
    """Rows of 100,000 columns, one after the other, `at_once` columns by each command."""
    commands = []
    for row in range(rows):
        numbers = list(range(WIDE_COLUMNS))
        if order == "random":
            data.shuffle(numbers)
        for i in range(0, WIDE_COLUMNS, at_once):
            columns = [b"%012d" % number for number in numbers[i:i + at_once]]
            commands.append(put(kind, b"row#%04d" % row, columns, data))
    return commands


def cases(options):
    """(name, cells, commands of a kind of server)."""
    rows = max(1, options.keys // COLUMNS)
    wide = max(1, options.keys // WIDE_COLUMNS)
    found = [(f"loading rows of 10 columns, {order} order", rows * COLUMNS,
              lambda kind, data, order=order: rows_of_ten(kind, rows, order, data))
             for order in ("random", "sorted")]
    found += [(f"loading rows of 100k columns, {at_once} at once, {order} order", wide * WIDE_COLUMNS,
               lambda kind, data, at_once=at_once, order=order:
               wide_rows(kind, wide, order, data, at_once))
              for at_once, order in ((1, "random"), (10, "random"), (10, "sorted"))]
    return found


def send(server, commands):
    """Sends all commands, waiting for the replies of each pipeline's worth."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(0, len(commands), PIPELINE):
            batch = commands[i:i + PIPELINE]
            connection.sendall(b"".join(batch))
            lines = 0
            while lines < len(batch):
                replies = connection.recv(1 << 16)
                if not replies or b"-" in replies:
                    raise RuntimeError(f"{server.name}: {replies[:200]!r}")
                lines += replies.count(b"\r\n")


def load_cpu(kind, commands, wrapper=(), options=()):
    """CPU seconds that a fresh server spends on the commands."""
    with servers.Server(kind, wrapper=wrapper, options=options) as server:
        if kind == "cellar":
            server.client().execute_command("TABLE", "CREATE", "load", "FAMILY", "f")
        before = server.cpu_seconds()
        send(server, commands)
        return server.cpu_seconds() - before


def measure(kinds, options, wanted, log_line):
    """Rows of the figures: CPU us per cell, medians, interleaved."""
    rows = []
    for name, cells, make in cases(options):
        if not wanted(options, "loading", name):
            continue
        seconds = {kind: [] for kind in kinds}
        for repeat in range(options.repeats):
            for kind in kinds if repeat % 2 == 0 else kinds[::-1]:
                log_line(f"{repeat + 1}/{options.repeats} {name}: {kind}")
                servers.warm_memory()
                seconds[kind].append(load_cpu(kind, make(kind, random.Random(repeat + 1))))
        each = {kind: statistics.median(found) * 1e6 / cells for kind, found in seconds.items()}
        rows.append((name, "CPU us/cell", each.get("cellar"), each.get("redis")))
    return rows
