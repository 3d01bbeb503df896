#!/usr/bin/python3
"""`make bench-feeds`: what reading a feed costs beside XREAD of Redis, and how soon a reader hears of a write.

    feeds.py [--entries 200000] [--rounds 5] [--writes 2000]

Reading: a feed gets its entries by CPUT; a stream of Redis gets the same ids' worth of entries with the same
fields by XADD. Both are read from 0 to the end by XREAD COUNT 1000, round by round in turn. The figure is the
servers' user and system time for each entry, from /proc; the median of the rounds, and the ratio.

Writing: CPUT through a pipeline of 16 without a feed, with one that nobody reads, and with one that is read to
its end all the time, in turn; the same figure for each CPUT.

Delay: one client writes, another waits in XREAD BLOCK; from the write's reply to the reader's, under `always` and
`everysec`.
"""

import argparse
import statistics
import subprocess
import threading
import time

import redis
import servers

VALUE = "x" * 64


def connect(server):
    client = redis.Redis(port=server.port)
    client.response_callbacks.pop("XREAD", None)
    return client


def read_all(client, name):
    """Reads to the end; returns how many entries there were, and the last one's fields."""
    last, count, fields = b"0", 0, []
    while True:
        reply = client.execute_command("XREAD", "COUNT", 1000, "STREAMS", name, last)
        if not reply:
            return count, fields
        last, fields = reply[0][1][-1]
        count += len(reply[0][1])


def fill(cellar, stream, entries):
    one, two = connect(cellar), connect(stream)
    one.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
    one.execute_command("FEED", "CREATE", "feed", "ON", 1, "t")
    for begin in range(0, entries, 1000):
        to_feed, to_stream = one.pipeline(transaction=False), two.pipeline(transaction=False)
        for i in range(begin, min(begin + 1000, entries)):
            to_feed.execute_command("CPUT", "t", f"row:{i:09d}", "f:field", VALUE, "TS", 1_000_000_000 + i)
            to_stream.execute_command("XADD", "feed", "*", "op", "put", "table", "t", "row", f"row:{i:09d}", "column",
                                      "f:field", "ts", 1_000_000_000 + i, "type", "bytes", "value", VALUE)
        to_feed.execute()
        to_stream.execute()
    one.execute_command("WAITAOF", 1, 0, 60_000)


def reading(entries, rounds):
    with servers.Server("cellar", "everysec") as cellar, servers.Server("redis", "everysec") as stream:
        fill(cellar, stream, entries)
        costs = {"cellar": [], "redis": []}
        for _ in range(rounds + 1):  # the first one finds out where pieces begin
            for server in (cellar, stream):
                client = connect(server)
                before = server.cpu_seconds()
                count, _ = read_all(client, "feed")
                costs[server.kind].append((server.cpu_seconds() - before) / count * 1e6)
                client.close()
        found = {kind: statistics.median(those[1:]) for kind, those in costs.items()}
        print(f"XREAD, an entry        cellar {found['cellar']:6.2f} us   redis {found['redis']:6.2f} us   "
              f"ratio {found['cellar'] / found['redis']:.2f}   first pass {costs['cellar'][0]:.2f} us")


def writing(rounds):
    ways = ("no feed", "unread", "read")
    running = {way: servers.Server("cellar", "everysec").start() for way in ways}
    try:
        costs = {way: [] for way in ways}
        for way, server in running.items():
            client = connect(server)
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            if way != "no feed":
                client.execute_command("FEED", "CREATE", "feed", "ON", 1, "t")
        ended = threading.Event()
        reader = threading.Thread(target=follow, args=(connect(running["read"]), ended))
        reader.start()
        for _ in range(rounds):
            for way, server in running.items():
                before = server.cpu_seconds()
                subprocess.run(servers.pinned(servers.CLIENT_CORE, [
                    "redis-benchmark", "-p", str(server.port), "-P", "16", "-n", "200000", "-r", "100000", "-q",
                    "CPUT", "t", "row:__rand_int__", "f:field", VALUE, "TS", "7"]), check=True, capture_output=True)
                costs[way].append((server.cpu_seconds() - before) / 200_000 * 1e6)
        ended.set()
        reader.join()
        found = {way: statistics.median(those) for way, those in costs.items()}
        for way in ways:
            print(f"CPUT, {way:16} cellar {found[way]:6.2f} us   ratio {found[way] / found['no feed']:.3f}")
    finally:
        for server in running.values():
            server.__exit__(None, None, None)


def follow(client, ended):
    last = b"0"
    while not ended.is_set():
        reply = client.execute_command("XREAD", "COUNT", 1000, "BLOCK", 100, "STREAMS", "feed", last)
        if reply:
            last = reply[0][1][-1][0]


def delay(policy, writes):
    with servers.Server("cellar", policy) as server:
        writer, reader = connect(server), connect(server)
        writer.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        writer.execute_command("FEED", "CREATE", "feed", "ON", 1, "t")
        arrived, left, got = {}, {}, threading.Semaphore(0)

        def listen():
            last = b"0"
            while len(arrived) < writes:
                reply = reader.execute_command("XREAD", "BLOCK", 60_000, "STREAMS", "feed", last)
                now = time.monotonic()
                for last, fields in reply[0][1]:
                    if fields[1] == b"put":
                        arrived[fields[-1]] = now
                        got.release()

        listener = threading.Thread(target=listen)
        listener.start()
        for i in range(writes):
            writer.execute_command("CPUT", "t", "row", "f:field", i)
            left[b"%d" % i] = time.monotonic()
            got.acquire()
        listener.join()
        delays = sorted((arrived[value] - left[value]) * 1e3 for value in left)
        print(f"write to reader, {policy:9} p50 {delays[len(delays) // 2]:6.2f} ms   "
              f"p99 {delays[len(delays) * 99 // 100]:6.2f} ms   largest {delays[-1]:.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--writes", type=int, default=500)
    options = parser.parse_args()
    if servers.redis_binary() is None:
        raise SystemExit("there is no redis-server to compare with")
    reading(options.entries, options.rounds)
    writing(options.rounds)
    delay("always", options.writes)
    delay("everysec", options.writes // 5)


if __name__ == "__main__":
    main()
