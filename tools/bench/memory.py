"""Memory per cell, restart time, idle connections.

Memory is resident memory after loading less resident memory of the empty server, by cells. Each case
has a fresh server. What Redis stores is what one would have to store there for the same answers: for
versions, fields named `qualifier@timestamp`; for ordered scans, a sorted set of all names besides.
"""

import socket
import time

import redis

import servers
from pairs import ten

IDLE_CONNECTIONS = 10000
VERSIONS = 10
# Columns as people name them.
NAMES = ["temperature", "pressure", "humidity", "altitude", "wind_speed", "wind_direction", "battery_level",
         "signal_strength", "latitude", "longitude"]


class Case:
    """One memory case: what is loaded for each key, and how many cells that makes."""

    def __init__(self, name, cellar, redis_, cells_per_key, keys, setup):
        self.name = name
        self.commands = {"cellar": cellar, "redis": redis_}
        self.cells_per_key = cells_per_key
        self.keys = keys
        self.setup = setup


def cases(options):
    """The cases; 1M rows x 10 columns follow --keys, the others are fixed shares of it."""
    plain_cellar = ["CPUT m plane#__key__ " + ten("meta:c{0} __data:8__")]
    plain_redis = ["HSET plane#__key__ " + ten("c{0} __data:8__")]
    named_cellar = ["CPUT m plane#__key__ " + " ".join(f"meta:{name} __data:8__" for name in NAMES)]
    named_redis = ["HSET plane#__key__ " + " ".join(f"{name} __data:8__" for name in NAMES)]
    versions_cellar = ["CPUT m plane#__key__ " + ten("meta:c{0} __data:8__") for _ in range(VERSIONS)]
    versions_redis = [
        "HSET plane#__key__ " + ten(f"c{{0}}@17000000001234{v:02d} __data:8__") for v in range(VERSIONS)]
    wide_rows = 100 if options.full else 20
    wide_keys = wide_rows * 100000
    # The key number's first digits name the row, its last five the column.
    table = ["TABLE CREATE m FAMILY meta"]
    return [
        Case("memory, rows x 10 columns of 8 bytes", plain_cellar, plain_redis, 10, options.keys, table),
        Case("memory, the same with names of 8 to 15 letters", named_cellar, named_redis, 10, options.keys, table),
        Case("memory, rows x 10 columns with order (Redis: sorted set)", plain_cellar,
             plain_redis + ["ZADD index 0 plane#__key__"], 10, options.keys, table),
        Case("memory, 10 versions per column", versions_cellar, versions_redis, 10 * VERSIONS,
             max(1, options.keys // 50), table),
        Case(f"memory, {wide_rows} rows x 100k columns", ["CPUT m row#__row__ meta:__column__ __data:8__"],
             ["HSET row#__row__ __column__ __data:8__"], 1, wide_keys, table),
        Case("memory, the same with order (Redis: sorted set a row)",
             ["CPUT m row#__row__ meta:__column__ __data:8__"],
             ["HSET row#__row__ __column__ __data:8__", "ZADD index#__row__ 0 __column__"], 1, wide_keys,
             table),
    ]


def load_wide(server, case, load):
    """Loads a case whose commands have __row__: row by row, the key number being the column."""
    rows = case.keys // 100000
    for row in range(rows):
        commands = [c.replace("__row__", f"{row:04d}").replace("__column__", "__key__")
                    for c in case.commands[server.kind]]
        load(server, 100000, commands, case.setup if row == 0 and server.kind == "cellar" else ())


def bytes_per_cell(kind, case, load):
    with servers.Server(kind) as server:
        before = server.resident_bytes()
        if any("__row__" in c for c in case.commands[kind]):
            load_wide(server, case, load)
        else:
            load(server, case.keys, case.commands[kind], case.setup if kind == "cellar" else ())
        return (server.resident_bytes() - before) / (case.keys * case.cells_per_key)


def restart_seconds(kind, options, load):
    """Seconds from the start of the process to its first answer, after a save of rows x 10 columns."""
    case = cases(options)[0]
    with servers.Server(kind) as server:
        load(server, case.keys, case.commands[kind], case.setup if kind == "cellar" else ())
        connection = server.client()
        connection.execute_command("SAVE")
        try:
            connection.execute_command("SHUTDOWN", "NOSAVE")
        except redis.exceptions.ConnectionError:
            pass
        server.process.wait(120)
        begin = time.monotonic()
        server.start()
        seconds = time.monotonic() - begin
        probe = "CROW m plane#000000000000" if kind == "cellar" else "HGETALL plane#000000000000"
        if not server.client().execute_command(*probe.split()):
            raise RuntimeError(f"{server.name} came back without its data")
        return seconds


def idle_bytes(kind):
    """Resident bytes that each idle connection costs; it has sent one PING."""
    with servers.Server(kind, options=["--maxclients", str(IDLE_CONNECTIONS + 100)]) as server:
        before = server.resident_bytes()
        sockets = []
        try:
            for _ in range(IDLE_CONNECTIONS):
                one = socket.create_connection(("127.0.0.1", server.port))
                one.sendall(b"PING\r\n")
                one.recv(16)
                sockets.append(one)
            time.sleep(3)  # Redis gives back query buffers of idle clients after two seconds
            return (server.resident_bytes() - before) / len(sockets)
        finally:
            for one in sockets:
                one.close()


def measure(kinds, options, load, wanted, log_line):
    """Rows (name, unit, cellar, redis) of all that is asked for."""
    rows = []
    for case in cases(options):
        if wanted(options, case.name):
            log_line(case.name)
            found = {kind: bytes_per_cell(kind, case, load) for kind in kinds}
            rows.append((case.name, "bytes/cell", found.get("cellar"), found.get("redis")))
    if wanted(options, "restart"):
        log_line("restart")
        found = {kind: restart_seconds(kind, options, load) for kind in kinds}
        rows.append((f"restart with {options.keys * 10:,} cells", "s", found.get("cellar"),
                     found.get("redis")))
    if wanted(options, "idle"):
        log_line("idle connections")
        found = {kind: idle_bytes(kind) for kind in kinds}
        rows.append((f"{IDLE_CONNECTIONS:,} idle connections", "bytes each", found.get("cellar"),
                     found.get("redis")))
    return rows
