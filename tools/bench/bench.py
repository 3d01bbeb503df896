#!/usr/bin/python3
"""`make bench`: Cellar beside Redis on this machine.

    bench.py [--repeats 3] [--seconds 1] [--keys 1000000] [--only WORD ...] [--skip WORD ...]
             [--markdown FILE] [--svg FILE] [--json FILE] [--full]

Both servers run at once, pinned to core 0, and are measured in turn by build/cellar-benchmark on core
1: for each repetition every pair at every pipeline, Redis and Cellar one after the other, so that a
slow minute of the machine hits both. Every figure is the median over the repetitions. CPU is user and
system time of the server process, all its threads, from /proc, by commands.

Parts, for --only and --skip (any part of a pair's name selects that pair): pairs, log, scan, loading,
memory, restart, idle. It needs about six minutes; the build must be there (`make bench` does that).
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time

import figures
import loading
import memory
import pairs
import servers

CONNECTIONS = 50


def log_line(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def load_generator(server, words, pin=True):
    """Runs cellar-benchmark against `server`; its JSON as a dict (empty if it writes none)."""
    with tempfile.NamedTemporaryFile(mode="r", suffix=".json") as output:
        line = [servers.benchmark_binary(), "--port", str(server.port), "--dialect", server.kind,
                "--quiet", "--server-pid", str(server.pid), "--json", output.name] + words
        if pin:
            line = servers.pinned(servers.CLIENT_CORE, line)
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError(" ".join(line) + "\n" + done.stdout + done.stderr)
        text = output.read()
        return json.loads(text) if text else {}


def load(server, keys, commands, setup=(), connections=4):
    """Sends `commands` for each of `keys` keys; over one connection they always arrive in the same
    order."""
    words = ["--preload", str(keys), "--load-only", "-c", str(connections)]
    for command in commands:
        words += ["--load-command", command]
    for command in setup:
        words += ["--setup", command]
    load_generator(server, words)


def load_pairs(server, keys):
    log_line(f"loading {server.name}")
    if server.kind == "cellar":
        for command in pairs.CELLAR_SETUP:
            load(server, 0, [], [command])
    for share, commands in pairs.LOADS[server.kind]:
        load(server, max(1, int(keys * share)), commands)


def measure_pair(server, pair, pipeline, options):
    if pair.writes:
        servers.warm_memory()
    keys = options.keys // 10 if pair.rows else options.keys
    words = ["-c", str(CONNECTIONS), "-P", str(pipeline), "-d", str(options.seconds),
             "--keys", str(max(1, keys)), "--seed", str(options.seed)]
    for command in pair.commands[server.kind]:
        words += ["--command", command]
    return load_generator(server, words)


def measure_pairs(both, selected, options):
    """{(pair name, pipeline): {server name: [result, ...]}}, interleaved."""
    results = {}
    for repeat in range(options.repeats):
        options.seed = repeat + 1
        for pair in selected:
            log_line(f"{repeat + 1}/{options.repeats} {pair.name}")
            for pipeline in pair.pipelines:
                # Who begins changes each time, so that neither always runs on warm or cold ground.
                order = both if repeat % 2 == 0 else both[::-1]
                for server in order:
                    result = measure_pair(server, pair, pipeline, options)
                    if result["errors"]:
                        log_line(f"{server.name}: {result['first_error']}")
                    results.setdefault((pair.name, pipeline), {}).setdefault(
                        server.name, []).append(result)
    return results


def measure_scan(server, options):
    """(cells per second, CPU us per cell) of a scan of the rows of ten columns."""
    rows = options.keys // 10
    words = ["-d", str(options.seconds), "--page-rows", "1000"]
    if server.kind == "cellar":
        words += ["--scan", "r"]
    else:
        words += ["--scan", "index", "--scan-prefix", "row#", "--scan-rows", str(rows)]
    result = load_generator(server, words)
    if result["first_error"]:
        raise RuntimeError(result["first_error"])
    cells = rows * pairs.COLUMNS * result["scans"]
    if result["values"] < 2 * cells:
        raise RuntimeError(f"the scan of {server.name} returned only {result['values']} values")
    return cells / result["seconds"], result["server_cpu_seconds"] * 1e6 / cells


def scan_figures(both, options):
    measured = {server.kind: [] for server in both}
    for _ in range(options.repeats):
        for server in both:
            log_line(f"scan of {server.name}")
            measured[server.kind].append(measure_scan(server, options))
    def median(kind, i):
        found = sorted(m[i] for m in measured.get(kind, []))
        return found[len(found) // 2] if found else None
    return [("scan of 10 columns a row", "cells/s", median("cellar", 0), median("redis", 0)),
            ("scan, server CPU", "us/cell", median("cellar", 1), median("redis", 1))]


def log_figures(options, kinds):
    """CPU with the log on `everysec`, and relative to the CPU without it, interleaved. The log is not
    rewritten meanwhile: Redis does that in a child, whose CPU time would not be counted, Cellar in a
    thread, whose time would; `make bench-durability` has what it costs."""
    selected = [p for p in pairs.PAIRS if p.name in ("CPUT / HSET", "CGET / HGET")]
    all_four = [servers.Server(kind, log=log, options=["--auto-aof-rewrite-percentage", "0"])
                for kind in kinds for log in ("everysec", None)]
    try:
        for server in all_four:
            server.start()
            load_pairs(server, options.keys)
        results = measure_pairs(all_four, selected, options)
    finally:
        for server in all_four:
            server.__exit__()
    rows = []
    for (name, pipeline), by_server in results.items():
        cpu = {server: figures.median_of(runs, "server_cpu_us_per_command")
               for server, runs in by_server.items()}
        shares = {kind: figures.ratio(cpu[kind + "+log"], cpu[kind]) for kind in kinds}
        rows.append((f"{name}, pipeline {pipeline}, log everysec", "CPU us",
                     cpu.get("cellar+log"), cpu.get("redis+log")))
        rows.append(("  the same relative to no log", "x", shares.get("cellar"), shares.get("redis")))
    return rows


def wanted(options, *names):
    """Whether a part or pair of one of these names is asked for."""
    def matches(words):
        return any(word.lower() in name.lower() for word in words for name in names)
    return (not options.only or matches(options.only)) and not matches(options.skip)


def machine():
    """One line about where this was measured."""
    model = "unknown CPU"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    binary = servers.redis_binary()
    version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.split(" sha")[0] \
        if binary else "no Redis"
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}; {version.strip()}"


def run(options):
    """All that is asked for: (rows of the main table, other figures)."""
    kinds = [k for k in options.servers.split(",") if k == "cellar" or servers.redis_binary()]
    selected = [p for p in pairs.PAIRS if wanted(options, "pairs", p.name)]
    rows, other = [], []
    both = [servers.Server(kind) for kind in kinds]
    try:
        if selected or wanted(options, "scan"):
            for server in both:
                server.start()
                load_pairs(server, options.keys)
        for (name, pipeline), by_server in measure_pairs(both, selected, options).items():
            rows.append(figures.summarize_pair(name, pipeline, by_server.get("cellar"),
                                               by_server.get("redis")))
        if wanted(options, "scan"):
            other += scan_figures(both, options)
    finally:
        for server in both:
            server.__exit__()
    if wanted(options, "log"):
        other += log_figures(options, kinds)
    other += loading.measure(kinds, options, wanted, log_line)
    if wanted(options, "memory", "restart", "idle"):
        other += memory.measure(kinds, options, load, wanted, log_line)
    return rows, other


def report(rows, other, options):
    """Markdown text of everything measured."""
    text = ["# Cellar beside Redis", "", f"Machine: {machine()}.",
            f"Method: server on core 0, load generator on core 1, {CONNECTIONS} connections, "
            f"{options.keys:,} keys, {options.repeats} interleaved repetitions of {options.seconds} s "
            "each, medians. CPU: user and system time of the server by commands. A ratio is Cellar / "
            "Redis: below 1 Cellar spends less CPU, or less memory.", ""]
    if rows:
        text += [figures.markdown(figures.PAIR_HEADER, [figures.pair_cells(r) for r in rows]), ""]
    if other:
        text += [figures.markdown(figures.FIGURE_HEADER, [figures.figure_cells(r) for r in other]), ""]
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--keys", type=int, default=1000000)
    parser.add_argument("--only", nargs="*", default=[], help="parts or pairs")
    parser.add_argument("--skip", nargs="*", default=[], help="parts or pairs")
    parser.add_argument("--servers", default="redis,cellar")
    parser.add_argument("--full", action="store_true", help="memory with 100 rows of 100,000 columns")
    parser.add_argument("--markdown")
    parser.add_argument("--svg")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.seed = 1
    rows, other = run(options)
    print(machine())
    if rows:
        print(figures.plain(figures.PAIR_HEADER, [figures.pair_cells(r) for r in rows]), "\n")
    if other:
        print(figures.plain(figures.FIGURE_HEADER, [figures.figure_cells(r) for r in other]))
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(report(rows, other, options))
    if options.svg:
        bars = [(f"{r['name']}, pipeline {r['pipeline']}", r["cpu_ratio"])
                for r in rows if r.get("cpu_ratio")]
        with open(options.svg, "w") as file:
            file.write(figures.svg_bars("Server CPU per command, Cellar / Redis", bars))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": machine(), "pairs": rows, "other": other}, file, indent=2)


if __name__ == "__main__":
    main()
