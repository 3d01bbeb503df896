#!/usr/bin/python3
"""`make bench-set`: replica sets of three, all on this machine.

    sets.py [--cells 10000000] [--seconds 60] [--kills 10] [--rounds 48] [--old BINARY] [--only PART ...]

    writes     writes of 256 bytes beside the same binary alone under appendfsync always, taken in turns;
               reads beside writes; kill -9 of the leader
    reads      reads of one follower and of two, by the CPU time that the followers spend
    clients    kill -9 of the leader, --kills times: how long each language's client, which asks the nodes
               as Sentinels, does not write
    members    a fourth node joins, is demoted, promoted and removed, --rounds times: how long a client does
               not write, and the same with the leader killed in the middle
    upgrade    each node is stopped and started again, the leader last, behind a FAILOVER: as another
               version if --old names one, there and back and there: how long a client does not write
    full       the leader's disk of 64 MiB is filled: how long nobody takes a write
    late       what goes to a follower takes 200 ms: the leader's latency beside that of a set without
    grow       two nodes with data and a witness, and --cells cells: the witness's memory, how long an
               empty node takes to join, and the leader's latency while a follower is stopped

Bars are printed beside the figures. The nodes and what loads them share the machine's cores.
"""

import contextlib
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

import redis

import bench
import servers
from replica import ROW, WRITE, Load, Writer, end, is_up, kill_leader, line, run_parts, until

sys.path.insert(0, os.path.join(servers.ROOT, "tests", "e2e"))

from replica_sets import Writer as NumberedWriter  # noqa: E402
from replicas import Link, ReplicaTest  # noqa: E402
from sentinel_writers import HiredisWriters, NodeWriters, PythonWriters, RubyWriters  # noqa: E402


def found(nodes):
    for each in nodes:
        each.options += ["--cluster-nodes", *(f"127.0.0.1:{other.port}" for other in nodes)]
    for each in nodes:
        each.start()
    until(lambda: any(map(leads, nodes)))


def replica_set():
    nodes = [servers.Server("cellar", log="always", pin=False) for _ in range(3)]
    found(nodes)
    return nodes


def leads(each):
    return each.client().info("replication")["role"] == "master"


def leader_of(nodes):
    """Whichever of them leads by then; some may be down."""
    led = []

    def some():
        for each in nodes:
            with contextlib.suppress(redis.ConnectionError):
                if leads(each):
                    led[:] = [each]
        return led
    until(some)
    return led[0]


def kinds(leader):
    """Kind by port."""
    rows = [dict(zip(each[::2], each[1::2])) for each in leader.client().execute_command("REPLICA LIST")]
    return {row[b"port"]: row[b"kind"].decode() for row in rows}


class Waits:
    """A client that writes to a set, and how long it could not."""

    def __init__(self, nodes):
        self.writer = NumberedWriter(nodes)
        until(lambda: len(self.writer.times) > 20)

    def gap(self, begin):
        """The longest time between two writes from `begin` to half a second from now."""
        finish = time.monotonic() + 0.5
        until(lambda: self.writer.times[-1] > finish)
        times = [begin] + [at for at in list(self.writer.times) if at > begin]
        return max(b - a for a, b in zip(times, times[1:]))

    def lost(self, leader):
        self.writer.end()
        pipe = leader.client().pipeline(transaction=False)
        for number in self.writer.acknowledged:
            pipe.execute_command("CGET", "t", f"w{number}", "f:n")
        return sum(value is None for value in pipe.execute())


def order(nodes, words, kind, port):
    """Has the leader do it, whoever that is, until the node at the port is of this kind."""
    def done():
        leader = leader_of(nodes)
        if kinds(leader).get(port) == kind:
            return True
        with contextlib.suppress(redis.ResponseError):  # another one is under way, or it is so by now
            leader.client().execute_command(*words)
        time.sleep(0.05)
        return False
    until(done)


def members(options):
    nodes = replica_set()
    leader_of(nodes).client().execute_command(*"TABLE CREATE t FAMILY f VERSIONS 1".split())
    fourth = servers.Server("cellar", log="always", pin=False)
    address = f"127.0.0.1:{fourth.port}"
    nodes.append(fourth)
    fourth.options += ["--cluster-nodes", *(f"127.0.0.1:{each.port}" for each in nodes)]
    waits = Waits(nodes)
    mix, gaps = random.Random(1), {"without a kill": [], "the leader killed": []}
    steps = (("ADD", "voter"), ("DEMOTE", "standby"), ("PROMOTE", "voter"), ("REMOVE", None))
    for number in range(options.rounds):
        killed = number // len(steps) % 2 == 1
        word, kind = steps[number % len(steps)]
        words = ("REPLICA", word, *(address.split(":") if word == "ADD" else [address]))
        leader, begin = leader_of(nodes), time.monotonic()
        if word == "ADD":
            fourth.start()
        with contextlib.suppress(redis.RedisError):
            leader.client().execute_command(*words)
        if killed:
            time.sleep(mix.random() * 0.05)
            leader.process.kill()
            leader.process.wait()
        gap = waits.gap(begin)
        if killed:
            leader.start()
        order(nodes, words, kind, fourth.port)
        gaps["the leader killed" if killed else "without a kill"].append(gap)
        if word == "REMOVE":
            fourth.stop()
            shutil.rmtree(fourth.directory)
            os.mkdir(fourth.directory)
        until(lambda: sum(is_up(each) for each in nodes[:3]) >= 2)
    for name, bar in (("without a kill", 0.5), ("the leader killed", 1.0)):
        line(f"members change, {name}, x{len(gaps[name])}: longest pause", f"{max(gaps[name]):.2f} s", f"<= {bar} s")
    line("  writes lost", str(waits.lost(leader_of(nodes))), "0")
    end(*nodes)


def upgrade(options):
    versions = [options.old or servers.cellar_binary(), servers.cellar_binary()]
    nodes = [servers.Server("cellar", log="always", pin=False) for _ in range(3)]
    for each in nodes:
        each.binary = versions[0]
    found(nodes)
    leader_of(nodes).client().execute_command(*"TABLE CREATE t FAMILY f VERSIONS 1".split())
    waits, gaps = Waits(nodes), []
    for binary in (versions[1], versions[0], versions[1]):
        leader = leader_of(nodes)
        for each in [*(node for node in nodes if node is not leader), leader]:
            begin = time.monotonic()
            if each is leader:
                leader.client().execute_command("FAILOVER")
                until(lambda: not leads(leader))
            each.stop()
            each.binary = binary
            each.start()
            until(lambda: sum(is_up(node) for node in nodes) == 2)
            gaps.append(waits.gap(begin))
    line(f"nodes started again one by one, x{len(gaps)}: longest pause", f"{max(gaps):.2f} s", "<= 0.5 s")
    line("  writes lost", str(waits.lost(leader_of(nodes))), "0")
    end(*nodes)


def full(_):
    nodes, mounted = [servers.Server("cellar", log="always", pin=False) for _ in range(3)], []
    for each in nodes:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", each.directory], check=True)
        mounted.append(each.directory)
    try:
        found(nodes)
        leader = next(filter(leads, nodes))
        leader.client().execute_command(*"TABLE CREATE t FAMILY f VERSIONS 1".split())
        waits = Waits(nodes)
        begin = time.monotonic()
        with contextlib.suppress(OSError), open(os.path.join(leader.directory, "filler"), "wb", 0) as file:
            while True:
                file.write(bytes(1 << 16))
        until(lambda: not leads(leader) and any(map(leads, nodes)))
        gap = waits.gap(begin)
        line("the leader's disk is full: longest pause", f"{gap:.2f} s", "<= 2 s")
        line("  writes lost", str(waits.lost(next(filter(leads, nodes)))), "0")
        for each in nodes:
            each.stop()
    finally:
        for directory in mounted:
            subprocess.run(["umount", "-l", directory], check=False)
    end(*nodes)


def writes(options):
    nodes = replica_set()
    leader = next(filter(leads, nodes))
    alone = servers.Server("cellar", log="always", pin=False).start()
    for each in (leader, alone):
        each.client().execute_command(*"TABLE CREATE t FAMILY f VERSIONS 1".split())
    write = "CPUT t row#__key__ f:a __data:256__"
    rounds = 3
    for depth, bar in ((1, 0.40), (32, 0.30), (256, 0.60)):
        rates = {alone: [], leader: []}
        for _ in range(rounds):
            for each, results in rates.items():
                results.append(bench.load_generator(each, ["-d", "4", "-c", str(depth), "-P", "1", "--keys", "100000",
                                                           "--command", write], pin=False)["commands_per_second"])
        single, agreed = (statistics.median(results) for results in rates.values())
        line(f"writes/s, {depth} clients: alone / set", f"{single:,.0f} / {agreed:,.0f}", f"{agreed / single:.2f} (>= {bar:.2f})")
    reads = []
    for each in (alone, leader):
        with Load(each, 6, "-c", "16", "-P", "1", "--keys", "100000", "--command", write):
            time.sleep(1)
            reads.append(bench.load_generator(each, ["-d", "4", "-c", "16", "-P", "1", "--keys", "100000", "--command",
                                                     "CGET t row#__key__ f:a"], pin=False)["commands_per_second"])
    line("reads/s beside writes: alone / set", f"{reads[0]:,.0f} / {reads[1]:,.0f}", f"{reads[1] / reads[0]:.2f} (>= 0.60)")
    end(alone)
    gaps, lost = [], 0
    for _ in range(options.kills):
        writer = Writer([each.port for each in nodes])
        gaps.append(kill_leader(nodes, writer, writes_before=100))
        until(lambda: sum(is_up(each) for each in nodes) == 2)
        lost += writer.lost(next(filter(leads, nodes)).client())
    line(f"kill -9 x{options.kills}: writable again, median and longest",
         f"{statistics.median(gaps):.2f} / {max(gaps):.2f} s", "<= 0.7 / 1.0 s")
    line("  writes lost", str(lost), "0")
    end(*nodes)


def reads(options):
    nodes = replica_set()
    leader = next(filter(leads, nodes))
    followers = [each for each in nodes if each is not leader]
    leader.client().execute_command(*"TABLE CREATE t FAMILY f VERSIONS 1".split())
    bench.load(leader, 100_000, [WRITE])
    until(lambda: all(is_up(each) for each in followers))
    read = ["-c", "10", "-P", "16", "--keys", "100000", "--command", "CGET t row#__key__ f:a"]

    def by_cpu(asked):
        """Reads by each second of CPU time of theirs."""
        before = sum(each.cpu_seconds() for each in asked)
        with contextlib.ExitStack() as stack:
            loads = [stack.enter_context(Load(each, 4, *read)) for each in asked]
        count = sum(each.result["commands"] for each in loads)
        return count / (sum(each.cpu_seconds() for each in asked) - before)
    rounds = [(by_cpu(followers[:1]), by_cpu(followers)) for _ in range(3)]
    one, two = (statistics.median(each[i] for each in rounds) for i in (0, 1))
    line("reads per second of CPU: one follower / two", f"{one:,.0f} / {two:,.0f}",
         f"{2 * two / one:.2f}x by twice the CPU (>= 1.7x)")
    end(*nodes)


def clients(options):
    nodes = replica_set()
    next(filter(leads, nodes)).client().execute_command(*"TABLE CREATE t FAMILY f VERSIONS 1".split())
    frame = ReplicaTest()
    ports = [each.port for each in nodes]
    try:
        writers = [kind(frame, ports, "mymaster", "t") for kind in (PythonWriters, NodeWriters, RubyWriters, HiredisWriters)]
        gaps = {(each, library): [] for each in writers for library in each.LIBRARIES}
        for _ in range(options.kills):
            for each in writers:
                each.wait()
            leader = next(filter(leads, nodes))
            leader.process.kill()
            leader.process.wait()
            begin = time.monotonic()
            for each in writers:
                each.wait()
            for (each, library), found in gaps.items():
                found.append(each.gap(library, begin))
            leader.start()
            until(lambda: sum(is_up(each) for each in nodes) == 2)
        leader = next(filter(leads, nodes)).client()
        for (each, library), found in gaps.items():
            lost = sum(leader.execute_command("CGET", "t", f"{library}-{row}", "f:a") is None for row in each.rows(library))
            line(f"{library}: kill -9 x{options.kills}, median and longest; lost",
                 f"{statistics.median(found):.2f} / {max(found):.2f} s; {lost}", "<= 1.5 s; 0")
    finally:
        frame.doCleanups()
    end(*nodes)


def late(options):
    nodes = [servers.Server("cellar", log="always", pin=False) for _ in range(3)]
    link = Link(nodes[2].port)
    addresses = [f"127.0.0.1:{port}" for port in (nodes[0].port, nodes[1].port, link.port)]
    nodes[2].options += ["--replica-announce-ip", "127.0.0.1", "--replica-announce-port", str(link.port)]
    for each in nodes:
        each.options += ["--cluster-nodes", *addresses]
        each.start()
    if leader_of(nodes) is nodes[2]:
        nodes[2].client().execute_command("FAILOVER")
        until(lambda: leader_of(nodes) is not nodes[2])
    leader = leader_of(nodes)
    leader.client().execute_command(*"TABLE CREATE t FAMILY f VERSIONS 1".split())
    load = ["-c", "10", "-P", "1", "--keys", "100000", "--rate", "500", "--command", WRITE]
    found_p99, resident = {0.0: [], 0.2: []}, leader.resident_bytes()
    for _ in range(3):
        for delay, results in found_p99.items():
            link.delay_up = delay
            time.sleep(1)
            with Load(leader, max(3, options.seconds // 10), *load) as seen:
                pass
            results.append(seen.result["latency_us"]["p99"] / 1000)
    near, far = (statistics.median(results) for results in found_p99.values())
    line("write p99, and with a follower 200 ms away", f"{near:.2f} / {far:.2f} ms", f"{far / near:.2f}x (<= 1.5x)")
    line("  the leader's memory meanwhile", f"{(leader.resident_bytes() - resident) / (1 << 20):+.0f} MiB",
         "<= the tail of 64 MiB")
    link.close()
    end(*nodes)


def grow(options):
    nodes = [servers.Server("cellar", log="always", pin=False) for _ in range(3)]
    witness = nodes[2]
    addresses = [f"127.0.0.1:{each.port}" for each in nodes]
    for each in nodes:
        each.options += ["--cluster-nodes", *addresses]
    witness.options += ["--replica-kind", "witness"]
    for each in nodes:
        each.start()
    until(lambda: any(map(leads, nodes[:2])))
    leader = next(filter(leads, nodes[:2]))
    other = next(each for each in nodes[:2] if each is not leader)
    leader.client().execute_command(*"TABLE CREATE r FAMILY f VERSIONS 1".split())
    leader.client().execute_command(*"TABLE CREATE t FAMILY f VERSIONS 1".split())
    bench.load(leader, options.cells // 10, [ROW])
    until(lambda: is_up(other))
    line(f"memory beside {options.cells:,} cells: data / witness",
         f"{leader.resident_bytes() >> 20} / {witness.resident_bytes() >> 20} MiB", "<= 50 MiB")
    leader.client().execute_command("SAVE")

    load = ["-c", "10", "-P", "1", "--keys", "100000", "--rate", "500", "--command", WRITE]
    seconds = min(options.seconds, 60)
    with Load(leader, seconds, *load) as calm:
        pass
    resident = leader.resident_bytes()
    os.kill(other.pid, signal.SIGSTOP)
    with Load(leader, seconds, *load) as without:
        pass
    grown = leader.resident_bytes() - resident
    os.kill(other.pid, signal.SIGCONT)
    until(lambda: is_up(other))
    before, during = (each.result["latency_us"]["p99"] / 1000 for each in (calm, without))
    line(f"write p99, and with a follower stopped {seconds} s", f"{before:.2f} / {during:.2f} ms",
         f"{during / before:.2f}x (<= 1.5x)")
    line("  the leader's memory meanwhile", f"{grown / (1 << 20):+.0f} MiB", "<= the tail of 64 MiB")

    joins = servers.Server("cellar", log="always", pin=False)
    joins.options += ["--cluster-nodes", *addresses, f"127.0.0.1:{joins.port}"]
    with Load(leader, 20, *load):
        begin = time.monotonic()
        joins.start()
        until(lambda: kinds(leader).get(joins.port) == "voter")
        took = time.monotonic() - begin
    line(f"an empty node joins with {options.cells:,} cells, until it votes", f"{took:.1f} s", "<= 15 s at 10M")
    end(*nodes, joins)


PARTS = {"writes": writes, "reads": reads, "clients": clients, "members": members, "upgrade": upgrade, "full": full,
         "late": late, "grow": grow}


if __name__ == "__main__":
    run_parts(__doc__, PARTS, ("--cells", 10_000_000, None), ("--seconds", 60, None), ("--kills", 10, None),
              ("--rounds", 48, None), ("--old", "", "server of an earlier version, for `upgrade`"))
