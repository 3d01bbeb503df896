#!/usr/bin/python3
"""`make bench-replica`: leaders and followers, all on this machine.

    replica.py [--cells 10000000] [--seconds 60] [--kills 10] [--only PART ...]

    lag        from sending a write to the leader until the follower shows it, beside 50,000 writes of
               one cell a second
    sync       a copy of --cells cells to an empty follower, while the leader is written (--sync-rate) and
               asked PING; the leader has a core of its own, as it has a machine of its own elsewhere
    away       the follower's link is silent for 5 s at 20,000 writes/s
    failover   FAILOVER under writes: how long nobody takes one, and what is lost
    sentinel   kill -9 of the leader under three stock Sentinels (down-after 1 s)

Bars are printed beside the figures. In all else the nodes and what loads them share the machine's cores.
"""

import argparse
import contextlib
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import redis

import bench
import servers

sys.path.insert(0, os.path.join(servers.ROOT, "tests", "e2e"))

from replicas import Link  # noqa: E402

WRITE = "CPUT t row#__key__ f:a __data:20__"
ROW = "CPUT r row#__key__ " + " ".join(f"f:c{i} __data:8__" for i in range(10))


def line(name, value, bar):
    print(f"{name:52} {value:>22}   {bar}", flush=True)


def node(*options, pin=False):
    return servers.Server("cellar", log="everysec", pin=pin, options=options).start()


@contextlib.contextmanager
def kept_off_the_servers_core():
    """What is started in the block stays there, unless it is pinned itself."""
    cores = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {int(servers.CLIENT_CORE)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def follow(follower, port):
    follower.client().execute_command("REPLICAOF", "127.0.0.1", str(port))


def until(condition, seconds=120):
    """Waits for it. A node that changes its role ends connections: it is asked again then."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(redis.ConnectionError):
            if condition():
                return
        if time.monotonic() > end:
            raise RuntimeError("it takes too long")
        time.sleep(0.005)


def is_up(follower):
    return follower.client().info("replication").get("master_link_status") == "up"


def pair(*options, pin_leader=False):
    leader, follower = node(*options, pin=pin_leader), node(*options)
    leader.client().execute_command(*"TABLE CREATE t FAMILY f VERSIONS 1".split())
    return leader, follower


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Load:
    """cellar-benchmark beside the block; `result` behind it."""

    def __init__(self, server, seconds, *words):
        self.words = ["-d", str(seconds), *words]
        self.server = server
        self.thread = threading.Thread(target=self.run)

    def run(self):
        self.result = bench.load_generator(self.server, self.words, pin=False)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join()


def end(*nodes):
    for each in nodes:
        each.__exit__()


def lag(options):
    leader, follower = pair()
    follow(follower, leader.port)
    until(lambda: is_up(follower))
    writer, reader = leader.client(), follower.client()
    lags = []
    with Load(leader, options.seconds, "--rate", "50000", "-c", "10", "-P", "64", "--keys", "1000000",
              "--command", WRITE) as load:
        time.sleep(0.5)
        while load.thread.is_alive():
            begin = time.monotonic()
            writer.execute_command("CPUT", "t", "probe", "f:n", str(len(lags)))
            while reader.execute_command("CGET", "t", "probe", "f:n") != str(len(lags)).encode():
                time.sleep(0.0005)
            lags.append(1000 * (time.monotonic() - begin))
            time.sleep(0.01)
    rate = load.result["commands_per_second"]
    third = len(lags) // 3
    line(f"lag at {rate:,.0f} writes/s: p50 / p99", f"{percentile(lags, .5):.1f} / {percentile(lags, .99):.1f} ms",
         "p99 <= 50 ms")
    line("  p99 of the first and the last third", f"{percentile(lags[:third], .99):.1f} / "
         f"{percentile(lags[-third:], .99):.1f} ms", "not growing")
    end(leader, follower)


def stolen_ticks():
    """For how long, in ticks, the host of a virtual machine has run others on its processors (man 5 proc)."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8])


class Pings:
    """Latencies of PING, with the time when each was, and the server's memory. A process of its own: in a thread of
    this one they would wait for each other's Python."""

    def __init__(self, server):
        context = multiprocessing.get_context("fork")
        self.ended, self.samples, self.residents = context.Event(), [], []
        here, there = context.Pipe(duplex=False)
        self.results = here
        self.process = context.Process(target=self.run, args=(server, there), daemon=True)
        self.process.start()

    def run(self, server, results):
        # What is measured is the server, not how long this waits for a core that others use.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        client, samples, residents = server.client(), [], []
        while not self.ended.is_set():
            begin = time.monotonic()
            client.ping()
            samples.append((begin, 1000 * (time.monotonic() - begin), stolen_ticks()))
            if len(samples) % 20 == 0:
                residents.append((begin, server.resident_bytes()))
            time.sleep(0.001)
        results.send((samples, residents))

    def end(self):
        self.ended.set()
        self.samples, self.residents = self.results.recv()
        self.process.join()

    def p99(self, begin, finish):
        return percentile([ms for at, ms, _ in self.samples if begin <= at < finish], .99)

    def p99_of_our_time(self, begin, finish):
        """Without the samples near which the host took the processors away from this machine: what comes then is its
        doing. It is known to a tick of 10 ms."""
        samples = [sample for sample in self.samples if begin <= sample[0] < finish]
        near = 15  # samples, of a millisecond and more
        kept = [ms for i, (_, ms, _) in enumerate(samples)
                if samples[max(0, i - near)][2] == samples[min(len(samples) - 1, i + near)][2]]
        return (percentile(kept, .99) if kept else None), len(kept) / len(samples)

    def resident(self, begin, finish):
        return max(bytes_ for at, bytes_ in self.residents if begin <= at < finish)


@kept_off_the_servers_core()
def sync(options):
    leader, follower = pair("--auto-aof-rewrite-percentage", "0", pin_leader=True)
    leader.client().execute_command(*"TABLE CREATE r FAMILY f VERSIONS 1".split())
    bench.load(leader, options.cells // 10, [ROW])
    leader.client().execute_command("SAVE")
    load = ["-c", "10", "-P", "16", "--keys", "100000", "--command", WRITE]
    if options.sync_rate > 0:
        load += ["--rate", str(options.sync_rate)]
    pings = Pings(leader)
    client = leader.client()
    with Load(leader, 20, *load):
        time.sleep(1)
        written = lambda: client.info("stats")["total_commands_processed"]  # noqa: E731
        begin, count = time.monotonic(), written()
        time.sleep(5)
        middle, count_before = time.monotonic(), written()
        resident = leader.resident_bytes()
        follow(follower, leader.port)
        until(lambda: is_up(follower))
        finish, count_during = time.monotonic(), written()
    pings.end()
    rate_before = (count_before - count) / (middle - begin)
    rate_during = (count_during - count_before) / (finish - middle)
    line(f"copy of {options.cells:,} cells under load, until up", f"{finish - middle:.2f} s", "<= 5 s at 10M")
    line("  the leader's writes/s before, and during", f"{rate_before:,.0f} / {rate_during:,.0f}",
         f"{100 * rate_during / rate_before:.0f} % (>= 70 %)")
    calm, busy = pings.p99(begin, middle), pings.p99(middle, finish)
    line("  PING p99 before, and during", f"{calm:.2f} / {busy:.2f} ms", f"{busy / calm:.2f}x (<= 2x)")
    (own_calm, _), (own_busy, share) = pings.p99_of_our_time(begin, middle), pings.p99_of_our_time(middle, finish)
    if own_calm is not None and own_busy is not None and share < 1:
        line(f"  ... of the {100 * share:.0f} % with no time stolen from the machine",
             f"{own_calm:.2f} / {own_busy:.2f} ms", f"{own_busy / own_calm:.2f}x")
    line("  the leader's memory before, and at most", f"{resident >> 20} / {pings.resident(middle, finish) >> 20} MiB",
         "<= + 10 % and the tail of 64 MiB")
    end(leader, follower)


def away(options):
    leader, follower = pair()
    link = Link(leader.port)
    follow(follower, link.port)
    until(lambda: is_up(follower))
    client = leader.client()
    with Load(leader, 12, "--rate", "20000", "-c", "10", "-P", "16", "--keys", "1000000", "--command", WRITE):
        time.sleep(2)
        stats = client.info("everything")
        log, sent = stats["master_repl_bytes"], stats["total_net_repl_output_bytes"]
        link.cut()
        time.sleep(5)
        link.heal()
        healed = time.monotonic()
        until(lambda: is_up(follower) and client.info("replication")["master_repl_offset"] -
              follower.client().info("replication")["slave_repl_offset"] < 2000)
        caught_up = time.monotonic() - healed
    until(lambda: follower.client().info("replication")["slave_repl_offset"] ==
          client.info("replication")["master_repl_offset"])
    stats = client.info("everything")
    log, sent = stats["master_repl_bytes"] - log, stats["total_net_repl_output_bytes"] - sent
    line("away 5 s at 20,000 writes/s: caught up after", f"{caught_up:.2f} s", "<= 2 s")
    line("  full syncs, partial syncs", f"{stats['sync_full'] - 1}, {stats['sync_partial_ok']}", "0 full")
    line("  bytes sent against bytes of the log", f"{sent / log:.3f}", "<= 1.1")
    link.close()
    end(leader, follower)


class Writer:
    """Writes numbered rows to whoever takes them; which were confirmed, and when."""

    def __init__(self, ports):
        self.ports, self.confirmed, self.number = ports, [], 0
        self.clients = {port: redis.Redis(port=port, socket_timeout=1) for port in ports}
        self.port = ports[0]

    def step(self):
        try:
            self.clients[self.port].execute_command("CPUT", "t", f"n{self.number}", "f:a", "1")
            self.confirmed.append((time.monotonic(), self.number))
        except (redis.RedisError, OSError):
            self.port = self.ports[(self.ports.index(self.port) + 1) % len(self.ports)]
            time.sleep(0.02 / len(self.ports))
        self.number += 1

    def gap(self, begin):
        """The longest time without a write from `begin` on."""
        times = [begin] + [at for at, _ in self.confirmed if at > begin]
        return max(b - a for a, b in zip(times, times[1:]))

    def lost(self, client):
        pipe = client.pipeline(transaction=False)
        for _, number in self.confirmed:
            pipe.execute_command("CGET", "t", f"n{number}", "f:a")
        return sum(value is None for value in pipe.execute())


def failover(options):
    leader, follower = pair()
    follow(follower, leader.port)
    until(lambda: is_up(follower))
    gaps, lost = [], 0
    for _ in range(10):
        writer = Writer([leader.port, follower.port])
        finish, begin = time.monotonic() + 1.5, None
        while time.monotonic() < finish:
            if begin is None and time.monotonic() > finish - 1:
                begin = time.monotonic()
                leader.client().execute_command("FAILOVER")
            writer.step()
        leader, follower = follower, leader
        until(lambda: is_up(follower))
        gaps.append(1000 * writer.gap(begin))
        lost += writer.lost(leader.client())
    line("FAILOVER x10: median and longest pause", f"{statistics.median(gaps):.0f} / {max(gaps):.0f} ms", "<= 300 ms")
    line("  writes lost", str(lost), "0")
    end(leader, follower)


def kill_leader(nodes, writer, writes_before=1):
    """kill -9 of the one that takes the writes, and starts it again: seconds until another one takes them."""
    while len(writer.confirmed) < writes_before:
        writer.step()
    leader = next(each for each in nodes if each.port == writer.port)
    leader.process.kill()
    leader.process.wait()
    begin, count = time.monotonic(), len(writer.confirmed)
    while len(writer.confirmed) == count:
        writer.step()
    gap = time.monotonic() - begin
    leader.start()
    return gap


def sentinel(options):
    if shutil.which("redis-sentinel") is None:
        return line("kill -9 under redis-sentinel", "not installed", "")
    nodes = [node() for _ in range(3)]
    nodes[0].client().execute_command(*"TABLE CREATE t FAMILY f VERSIONS 1".split())
    for each in nodes[1:]:
        follow(each, nodes[0].port)
    until(lambda: all(map(is_up, nodes[1:])))
    directory, sentinels, ports = tempfile.mkdtemp(), [], []
    for i in range(3):
        ports.append(servers.free_port())
        path = os.path.join(directory, f"{i}.conf")
        with open(path, "w") as file:
            file.write(f"port {ports[-1]}\nbind 127.0.0.1\ndir {directory}\n"
                       f"sentinel monitor m 127.0.0.1 {nodes[0].port} 2\nsentinel down-after-milliseconds m 1000\n"
                       "sentinel failover-timeout m 3000\n")
        sentinels.append(subprocess.Popen(["redis-sentinel", path], stdout=subprocess.DEVNULL))
    try:
        gaps, returns = sentinel_kills(options, nodes, ports)
        line(f"kill -9 x{options.kills}: writable again, median and longest",
             f"{statistics.median(gaps):.2f} / {max(gaps):.2f} s", "<= 2.5 / 3.5 s")
        line("  the returned node is a follower after at most", f"{max(returns):.1f} s", "<= 12 s")
    finally:
        for each in sentinels:
            each.kill()
            each.wait()
        end(*nodes)
        shutil.rmtree(directory)


def sentinel_kills(options, nodes, ports):
    asked = redis.Redis(port=ports[0])

    def knows():
        try:
            (known,) = asked.sentinel_masters().values()
        except redis.ConnectionError:
            return False
        return known["num-slaves"] == 2 and known["num-other-sentinels"] == 2 and not known["is_odown"]

    until(knows)
    gaps, returns = [], []
    for _ in range(options.kills):
        time.sleep(6)  # a Sentinel waits twice failover-timeout before it tries again
        until(knows)
        writer = Writer([each.port for each in nodes])
        gaps.append(kill_leader(nodes, writer))
        begin = time.monotonic()
        until(lambda: sum(each.client().info("replication")["role"] == "slave" and is_up(each) for each in nodes) == 2)
        returns.append(time.monotonic() - begin)
        print(f"    {gaps[-1]:.2f} s, {returns[-1]:.1f} s", file=sys.stderr, flush=True)
    return gaps, returns


PARTS = {"lag": lag, "sync": sync, "away": away, "failover": failover, "sentinel": sentinel}


def run_parts(doc, parts, *arguments):
    """The command line of a bench: options as (name, default, help), and --only."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default, text in arguments:
        parser.add_argument(name, type=int if isinstance(default, int) else str, default=default, help=text)
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    options = parser.parse_args()
    for part in options.only:
        parts[part](options)


if __name__ == "__main__":
    run_parts(__doc__, PARTS, ("--cells", 10_000_000, None), ("--seconds", 60, None), ("--kills", 10, None),
              ("--sync-rate", 200_000, "writes/s beside the copy; 0: all it takes"))
