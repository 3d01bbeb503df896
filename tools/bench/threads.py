#!/usr/bin/python3
"""`make bench-threads`: what io-threads take off the thread that executes commands.

    threads.py [--rounds 5] [--requests 100000] [--pipelines 1 16] [--tls] [--threads 2]

Two Cellars, with io-threads 1 and --threads, and a Redis, driven in turn, round by round, by redis-benchmark with 50
connections; nothing is pinned, as a user has it. With VALKEY=CHECKOUT two Valkeys with the same numbers of threads take
Redis' place. The figures are microseconds of CPU for a request, from
/proc/PID/task/TID/schedstat: of the thread that executes commands, and of all threads. --tls measures over TLS besides.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import servers
from tls import COMMANDS, CONNECTIONS, load, make_certificate, tls_server


def thread_seconds(pid):
    """CPU seconds of the first thread, which executes commands, and of all."""
    all_threads = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        # Nanoseconds on a processor; stat counts ticks of 10 ms.
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            all_threads[int(task)] = int(file.read().split()[0]) / 1e9
    return all_threads[pid], sum(all_threads.values())


def measure(server, certificates, command, pipeline, requests):
    """Microseconds of the executing thread, and of all, for each request."""
    words = ["redis-benchmark", "-c", str(CONNECTIONS), "-P", str(pipeline), "-n", str(requests), "-r", "20000", "-q"]
    if certificates:
        words += ["--tls", "--cacert", os.path.join(certificates, "ca.crt"), "-p", str(server.tls_port)]
    else:
        words += ["-p", str(server.port)]
    first, every = thread_seconds(server.pid)
    done = subprocess.run(words + command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or "rror" in done.stdout + done.stderr:
        raise RuntimeError(" ".join(words) + "\n" + done.stdout + done.stderr)
    first_after, every_after = thread_seconds(server.pid)
    return (first_after - first) * 1e6 / requests, (every_after - every) * 1e6 / requests


def measure_all(all_servers, certificates, options):
    """Prints a line for each command, kind of connection and pipeline."""
    heads = [f"{server.label:>16}" for server in all_servers]
    print(f"{'CPU us: executing / all':24} {'':6} {'pipeline':>8} " + " ".join(heads) + f" {'all, ratio':>10}")
    for kind, tls in [("plain", None)] + ([("TLS", certificates)] if options.tls else []):
        for name, commands in COMMANDS:
            for pipeline in options.pipelines:
                requests = options.requests * (1 if pipeline == 1 else 4) // (4 if "16 KiB" in name else 1)
                seen = {server.label: [] for server in all_servers}
                for turn in range(options.rounds):
                    for server in (all_servers if turn % 2 == 0 else all_servers[::-1]):
                        seen[server.label].append(measure(server, tls, commands[server.kind], pipeline, requests))
                medians = {one: [statistics.median(part) for part in zip(*figures)] for one, figures in seen.items()}
                cells = [f"{medians[server.label][0]:7.2f} /{medians[server.label][1]:7.2f}" for server in all_servers]
                ratio = medians[all_servers[1].label][1] / medians[all_servers[0].label][1]
                print(f"{name:24} {kind:6} {pipeline:8} " + " ".join(cells) + f" {ratio:10.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100_000,
                        help="at pipeline 1; four times as many at others, a quarter of the large ones")
    parser.add_argument("--pipelines", type=int, nargs="*", default=[1, 16])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tls", action="store_true", help="also over TLS")
    options = parser.parse_args()
    if servers.redis_binary() is None:
        sys.exit("there is no redis-server to compare with")
    with tempfile.TemporaryDirectory() as certificates:
        make_certificate(certificates)
        all_servers = []
        try:
            kinds = [("cellar", 1), ("cellar", options.threads)]
            kinds += [("redis", 1), ("redis", options.threads)] if servers.valkey_binary() else [("redis", None)]
            for kind, threads in kinds:
                server = tls_server(kind, certificates, pin=False)
                server.label = "redis" if threads is None else \
                    f"{'io-threads' if kind == 'cellar' else 'Valkey'} {threads}"
                if threads is not None:
                    server.options += ["--io-threads", str(threads)]
                all_servers.append(server.start())
                load(server)
            measure_all(all_servers, certificates, options)
        finally:
            for server in all_servers:
                server.__exit__()


if __name__ == "__main__":
    main()
