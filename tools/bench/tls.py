#!/usr/bin/python3
"""`make bench-tls`: what TLS costs, Cellar beside Redis.

    tls.py [--rounds 7] [--requests 60000] [--pipelines 1 16] [--plain]

Both servers run with the same certificate, pinned to core 0; redis-benchmark --tls drives them in turn from
core 1, 50 connections, round by round, so that a slow minute of the machine hits both. The figure is the
user and system time of the server process from /proc by requests, the median of the rounds; handshakes are
in it for both alike, and are few. `--plain` measures the same without TLS besides. Needs a redis-server
that is built with TLS, as Debian's is.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

import redis
import servers

CONNECTIONS = 50
COMMANDS = [
    ("PING", {"cellar": ["PING"], "redis": ["PING"]}),
    ("CPUT / HSET", {"cellar": ["CPUT", "t", "row:__rand_int__", "f:field", "x" * 64, "TS", "0"],
                     "redis": ["HSET", "row:__rand_int__", "f:field", "x" * 64]}),
    ("CGET / HGET", {"cellar": ["CGET", "t", "row:__rand_int__", "f:field"],
                     "redis": ["HGET", "row:__rand_int__", "f:field"]}),
    ("CGET / HGET of 16 KiB", {"cellar": ["CGET", "t", "large", "f:field"], "redis": ["HGET", "large", "f:field"]}),
]


def make_certificate(directory):
    """ca.crt, server.crt, server.key."""
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, cwd=directory, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-days", "30",
            "-subj", "/CN=bench")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj",
            "/CN=localhost")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", "server.crt", "-days", "30")


def tls_server(kind, certificates, **options):
    """A server, not started, with a TLS port too."""
    server = servers.Server(kind, **options)
    server.tls_port = servers.free_port()
    server.options += ["--tls-port", str(server.tls_port), "--tls-auth-clients", "no"]
    for option, file in (("cert", "server.crt"), ("key", "server.key"), ("ca-cert", "ca.crt")):
        server.options += [f"--tls-{option}-file", os.path.join(certificates, file)]
    return server


def load(server):
    """What the reads find."""
    client = redis.Redis(port=server.port)
    if server.kind == "cellar":
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
    pipe = client.pipeline(transaction=False)
    for i in range(20_000):
        row = f"row:{i:012d}"
        if server.kind == "cellar":
            pipe.execute_command("CPUT", "t", row, "f:field", "x" * 64, "TS", "0")
        else:
            pipe.execute_command("HSET", row, "f:field", "x" * 64)
    large = ["CPUT", "t", "large"] if server.kind == "cellar" else ["HSET", "large"]
    pipe.execute_command(*large, "f:field", "x" * 16384)
    pipe.execute()
    client.close()


def measure(server, tls, command, pipeline, requests):
    """Microseconds of the server's CPU for each request."""
    words = ["redis-benchmark", "-c", str(CONNECTIONS), "-P", str(pipeline), "-n", str(requests), "-r", "20000", "-q"]
    if tls:
        words += ["--tls", "--cacert", os.path.join(tls, "ca.crt"), "-p", str(server.tls_port)]
    else:
        words += ["-p", str(server.port)]
    before = server.cpu_seconds()
    done = subprocess.run(servers.pinned(servers.CLIENT_CORE, words + command), capture_output=True, text=True,
                          check=False)
    if done.returncode != 0 or "rror" in done.stdout + done.stderr:
        raise RuntimeError(" ".join(words) + "\n" + done.stdout + done.stderr)
    return (server.cpu_seconds() - before) * 1e6 / requests


def measure_all(both, certificates, options):
    """Prints a line for each command and pipeline."""
    kinds = [("TLS", certificates)] + ([("plain", None)] if options.plain else [])
    print(f"{'server CPU, us a request':28} {'':6} {'pipeline':>8} {'cellar':>8} {'redis':>8} {'ratio':>6}")
    for name, commands in COMMANDS:
        for kind, tls in kinds:
            for pipeline in options.pipelines:
                requests = options.requests * (1 if pipeline == 1 else 4) // (4 if "16 KiB" in name else 1)
                seen = {server.kind: [] for server in both}
                for turn in range(options.rounds):
                    for server in (both if turn % 2 == 0 else both[::-1]):
                        seen[server.kind].append(measure(server, tls, commands[server.kind], pipeline, requests))
                cellar, other = (statistics.median(seen[kind]) for kind in ("cellar", "redis"))
                print(f"{name:28} {kind:6} {pipeline:8} {cellar:8.2f} {other:8.2f} {cellar / other:6.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=60_000, help="at pipeline 1; four times as many at others, a quarter of the large ones")
    parser.add_argument("--pipelines", type=int, nargs="*", default=[1, 16])
    parser.add_argument("--plain", action="store_true", help="also without TLS")
    options = parser.parse_args()
    if servers.redis_binary() is None:
        sys.exit("there is no redis-server to compare with")
    with tempfile.TemporaryDirectory() as certificates:
        make_certificate(certificates)
        both = []
        try:
            for kind in ("cellar", "redis"):
                server = tls_server(kind, certificates)
                both.append(server.start())
                load(server)
            measure_all(both, certificates, options)
        finally:
            for server in both:
                server.__exit__()


if __name__ == "__main__":
    main()
