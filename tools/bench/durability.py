#!/usr/bin/python3
"""`make bench-durability`: what durability costs and how fast it gives data back, beside Redis.

    durability.py [--cells 10000000] [--repeats 3] [--seconds 2] [--only PART ...] [--json FILE]

    policies   requests/s of writes under `always`, `everysec` and without a log, 50 connections,
               pipeline 1 and 16, Cellar and Redis in turn
    snapshot   --cells cells in rows of ten columns of 8 bytes: time to save, size of the file, time to
               start from it, replay of the log
    stall      latency of PING beside writers, with snapshots being written all the time and without,
               and the memory that this takes

Servers and load generator may use all cores: the threads are what is measured. Every figure is the
median over the repetitions, of each server by itself; a ratio is made of figures of the same run.
"""

import argparse
import json
import os
import re
import signal
import statistics
import sys
import threading
import time

import redis

import bench
import servers
from pairs import ten

CONNECTIONS = 50
WRITES = {"cellar": "CPUT t plane#__key__ meta:miles __data__", "redis": "HSET plane#__key__ miles __data__"}
ROWS = {"cellar": "CPUT r row#__key__ " + ten("f:c{0} __data:8__"),
        "redis": "HSET row#__key__ " + ten("c{0} __data:8__")}
SETUP = ["TABLE CREATE t FAMILY meta VERSIONS 1", "TABLE CREATE r FAMILY f VERSIONS 1"]
COLUMNS = 10
MIB = 1 << 20


def prepared(server):
    """Starts a server and makes the tables."""
    server.start()
    if server.kind == "cellar":
        client = server.client()
        for command in SETUP:
            client.execute_command(*command.split())
    return server


def writes(server, pipeline, options):
    """(requests/s, CPU us of the server for each) of small writes."""
    result = bench.load_generator(server, [
        "-c", str(CONNECTIONS), "-P", str(pipeline), "-d", str(options.seconds), "--keys", "100000",
        "--command", WRITES[server.kind]], pin=False)
    if result["errors"]:
        raise RuntimeError(f"{server.name}: {result['first_error']}")
    return result["commands_per_second"], result["server_cpu_us_per_command"]


def measure_policies(options):
    """{(kind, policy or None, pipeline): (requests/s, CPU us for each)}."""
    found = {}
    running = [prepared(servers.Server(kind, log=log, pin=False))
               for kind in options.kinds for log in ("always", "everysec", None)]
    try:
        for repeat in range(options.repeats):
            for pipeline in (1, 16):
                for server in running if repeat % 2 == 0 else running[::-1]:
                    rate, cpu = writes(server, pipeline, options)
                    found.setdefault((server.kind, server.log, pipeline), []).append((rate, cpu))
                    bench.log_line(f"{server.kind} {server.log or 'no log'} P{pipeline}: "
                                   f"{rate:,.0f}/s, {cpu:.2f} us")
    finally:
        for server in running:
            server.__exit__()
    return {key: tuple(map(statistics.median, zip(*figures))) for key, figures in found.items()}


def report_policies(measured, lines):
    """Adds the lines of the policies. CPU says what a policy costs on a machine that others use too."""
    for pipeline in (1, 16):
        for i, unit in ((0, "requests/s"), (1, "CPU us")):
            for policy in ("always", "everysec", None):
                row = {kind: measured.get((kind, policy, pipeline), (None, None))[i]
                       for kind in ("cellar", "redis")}
                lines.append((f"writes, {policy or 'no log'}, pipeline {pipeline}", unit,
                              row["cellar"], row["redis"]))
            shares = {}
            for kind in ("cellar", "redis"):
                if (kind, None, pipeline) in measured:
                    shares[kind] = (measured[kind, "everysec", pipeline][i]
                                    / measured[kind, None, pipeline][i])
            lines.append((f"  everysec against no log, {unit}", "x",
                          shares.get("cellar"), shares.get("redis")))


def save(server):
    """Seconds until a background save is done."""
    client = server.client()
    begin = time.monotonic()
    client.execute_command("BGSAVE")
    while client.info("persistence")["rdb_bgsave_in_progress"]:
        time.sleep(0.002)
    if client.info("persistence")["rdb_last_bgsave_status"] != "ok":
        raise RuntimeError(f"{server.name} could not save")
    return time.monotonic() - begin


def snapshot_bytes(server):
    """Size of the newest snapshot file."""
    names = [n for n in os.listdir(server.directory) if n.endswith((".snapshot", ".rdb"))]
    return max(os.path.getsize(os.path.join(server.directory, n)) for n in names)


def load_rows(server, cells):
    bench.load(server, cells // COLUMNS, [ROWS[server.kind]])


def restart_seconds(server, sign):
    """Seconds from the start of the process until it serves."""
    server.stop(sign)
    begin = time.monotonic()
    server.start()
    return time.monotonic() - begin


def replay_seconds(server):
    """What Cellar says about the replay of its log."""
    return float(re.findall(r"Log replayed: \d+ records in ([\d.]+) seconds", server.output())[-1])


def measure_snapshot(options, lines):
    """Save, start, replay."""
    found = {}
    for kind in options.kinds:
        # Cellar's log is on: it is what is replayed. Redis saves and loads its RDB file.
        server = servers.Server(kind, log="everysec" if kind == "cellar" else None, pin=False,
                                options=["--auto-aof-rewrite-percentage", "0"])
        try:
            prepared(server)
            bench.log_line(f"{kind}: loading {options.cells:,} cells")
            load_rows(server, options.cells)
            if kind == "cellar":
                time.sleep(1.5)
                restart_seconds(server, signal.SIGKILL)
                found["replay"] = options.cells / replay_seconds(server)
            found[kind, "save"] = min(save(server) for _ in range(options.repeats))
            found[kind, "bytes"] = snapshot_bytes(server) / options.cells
            found[kind, "start"] = min(restart_seconds(server, signal.SIGKILL)
                                       for _ in range(options.repeats))
            bench.log_line(f"{kind}: save {found[kind, 'save']:.2f} s, "
                           f"start {found[kind, 'start']:.2f} s")
        finally:
            server.__exit__()
    for key, name, unit in (("save", "snapshot", "s"), ("start", "start from the snapshot", "s"),
                            ("bytes", "snapshot file", "bytes/cell")):
        lines.append((f"{name}, {options.cells:,} cells", unit, found.get(("cellar", key)),
                      found.get(("redis", key))))
    lines.append(("replay of the log", "cells/s", found.get("replay"), None))


class Saver(threading.Thread):
    """Saves again and again and watches the server's memory."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.stop = False
        self.saves = 0
        self.peak_bytes = 0

    def run(self):
        client = self.server.client()
        while not self.stop:
            try:
                client.execute_command("BGSAVE")
            except redis.ResponseError:
                pass
            while not self.stop and client.info("persistence")["rdb_bgsave_in_progress"]:
                self.peak_bytes = max(self.peak_bytes, resident_bytes(self.server.pid))
                time.sleep(0.02)
            self.saves += 1


def resident_bytes(pid):
    """Memory that is the process's and its children's own (a forked saver's copies)."""
    total = 0
    children = []
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = file.read().split()
    for process in [str(pid)] + children:
        try:
            with open(f"/proc/{process}/smaps_rollup") as file:
                for line in file:
                    if line.startswith("Pss:"):
                        total += int(line.split()[1]) * 1024
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    return total


def ping(server, options):
    """p99.9 and max of PING in ms while others write."""
    writer = threading.Thread(target=bench.load_generator, kwargs={"pin": False}, args=(server, [
        "-c", "8", "-P", "4", "--rate", "50000", "-d", str(options.stall_seconds + 1), "--keys",
        str(options.cells // COLUMNS), "--command", ROWS[server.kind]]))
    writer.start()
    time.sleep(0.5)
    result = bench.load_generator(server, [
        "-c", "1", "-P", "1", "-d", str(options.stall_seconds), "--command", "PING"], pin=False)
    writer.join()
    return result["latency_us"]["p99.9"] / 1000, result["latency_us"]["max"] / 1000


def measure_stall(options, lines):
    """PING beside writers, with and without snapshots."""
    rows = {}
    for kind in options.kinds:
        server = servers.Server(kind, log="everysec" if kind == "cellar" else None, pin=False,
                                options=["--auto-aof-rewrite-percentage", "0"])
        try:
            prepared(server)
            bench.log_line(f"{kind}: loading {options.cells:,} cells")
            load_rows(server, options.cells)
            quiet, loud, memory = [], [], []
            for _ in range(options.repeats):
                quiet.append(ping(server, options))
                before = resident_bytes(server.pid)
                saver = Saver(server)
                saver.start()
                loud.append(ping(server, options))
                saver.stop = True
                saver.join()
                memory.append((saver.peak_bytes - before) / before)
                bench.log_line(f"{kind}: PING p99.9, max: {quiet[-1]} ms; beside {saver.saves} saves "
                               f"{loud[-1]} ms; memory +{memory[-1]:.0%}")
            for i, name in enumerate(("p99.9", "max")):
                rows[f"PING {name} beside writers", kind] = statistics.median(q[i] for q in quiet)
                rows[f"PING {name} beside writers and a save", kind] = statistics.median(
                    found[i] for found in loud)
            rows["extra memory while saving", kind] = statistics.median(memory)
        finally:
            server.__exit__()
    for name in dict.fromkeys(name for name, _ in rows):
        unit = "x" if "memory" in name else "ms"
        lines.append((name, unit, rows.get((name, "cellar")), rows.get((name, "redis"))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--stall-seconds", type=float, default=5)
    parser.add_argument("--only", nargs="*", default=["policies", "snapshot", "stall"])
    parser.add_argument("--servers", default="cellar,redis")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.kinds = [k for k in options.servers.split(",")
                     if k == "cellar" or servers.redis_binary()]
    lines = []
    if "policies" in options.only:
        report_policies(measure_policies(options), lines)
    if "snapshot" in options.only:
        measure_snapshot(options, lines)
    if "stall" in options.only:
        measure_stall(options, lines)

    print(bench.machine())
    print(f"{'':44} {'unit':>11} {'Cellar':>12} {'Redis':>12} {'ratio':>7}")
    for name, unit, cellar, other in lines:
        ratio = bench.figures.ratio(cellar, other)
        print(f"{name:44} {unit:>11} {bench.figures.show(cellar):>12} "
              f"{bench.figures.show(other):>12} {bench.figures.show(ratio):>7}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(lines, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
