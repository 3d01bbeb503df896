#!/usr/bin/python3
"""Three sets of three nodes on this machine that are a cluster; a million cells; a leader that is killed under a scan.

    make demo-cluster        or        tools/demo/cluster.py [--keep] [--rows N]

cellar-cluster starts the nodes on free ports of 127.0.0.1, below build/demo-cluster. A table's tablets are dealt over the
sets, cellar-import fills them through one node, and a scan through each node gives the same bytes. Then kill -9 ends the
leader of set 1 while clients write to all sets and the table is scanned again. The last line says how many acknowledged
writes were lost. --keep leaves the nodes running.
"""

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import redis  # noqa: E402
from cellar_server import binary, free_ports, tool  # noqa: E402

WORK = os.path.join(ROOT, "build", "demo-cluster")
NODES = os.path.join(WORK, "nodes")
SETS, VOTERS, COLUMNS, PAGE = 3, 3, 10, 2000
SECONDS_MAX = 120


def say(text=""):
    print(text, flush=True)


def cluster(*words):
    """What cellar-cluster prints; it must succeed."""
    done = subprocess.run([tool("cellar-cluster"), *words, "--dir", NODES], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"demo-cluster: cellar-cluster {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def leaders():
    """The port of each set's leader, None of one that has none."""
    told = subprocess.run([tool("cellar-cluster"), "status", "--json", "--dir", NODES], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if not told.stdout:
        raise SystemExit(f"demo-cluster: {told.stderr}")
    return [int(each["leader"].rsplit(":", 1)[1]) if each["leader"] else None for each in json.loads(told.stdout)["sets"]]


class Pages:
    """CSCAN page by page over a plain socket: the bytes as they come, for there are many."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.cursor, self.digest, self.cells, self.ended = b"0", hashlib.sha256(), 0, False

    def turn(self):
        """Reads one page."""
        self.socket.sendall(f"CSCAN t {self.cursor.decode()} COUNT {PAGE}\r\nPING\r\n".encode())
        reply = bytearray()
        while not reply.endswith(b"+PONG\r\n"):
            got = self.socket.recv(1 << 20)
            if not got:
                raise SystemExit("demo-cluster: a node has closed the connection of a scan")
            reply += got
        if reply.startswith(b"-"):
            raise SystemExit(f"demo-cluster: {reply[:200].decode()}")
        # *2, $n, the cursor, and the rows behind it, which say nothing of where they lie.
        _, _, self.cursor, rows = bytes(reply).split(b"\r\n", 3)
        self.digest.update(rows)
        self.cells += rows.count(b"f:c")
        self.ended = self.cursor == b"0"

    def all(self):
        while not self.ended:
            self.turn()
        self.socket.close()
        return self.cells, self.digest.hexdigest()[:16]


class Writer(threading.Thread):
    """Writes one row after the other to the tablets of one set, through a node that stays."""

    def __init__(self, number, first_row, port):
        super().__init__(daemon=True)
        self.number, self.first_row, self.port = number, first_row, port
        self.done, self.gap, self.ends = [], 0.0, False
        self.start()

    def run(self):
        client, i, last = None, 0, time.monotonic()
        while not self.ends:
            key = f"{self.first_row}/{i}"
            try:
                client = client or redis.Redis(port=self.port, socket_timeout=SECONDS_MAX)
                client.execute_command("CPUT", "t", key, "w:n", i)
                self.done.append(key)
                i, now = i + 1, time.monotonic()
                self.gap, last = max(self.gap, now - last), now
            except redis.RedisError:
                client = None  # an answer that never came, or a wait that was too long: the same row again
                time.sleep(0.01)


def wait_for(condition, what):
    end = time.monotonic() + SECONDS_MAX
    while not (held := condition()):
        if time.monotonic() > end:
            raise SystemExit(f"demo-cluster: {what} has not come about within {SECONDS_MAX} s")
        time.sleep(0.05)
    return held


def fill(client, port, rows):
    """A table whose nine tablets are dealt over the sets; its cells go in through one node."""
    bounds = [f"row{rows * i // (SETS * 3):07d}" for i in range(1, SETS * 3)]
    client.execute_command("TABLE", "CREATE", "t", "SPLIT", "AT", len(bounds), *bounds, "FAMILY", "f", "FAMILY", "w")
    path = os.path.join(WORK, "cells.csv")
    with open(path, "w", encoding="ascii") as file:
        file.write("key," + ",".join(f"f:c{i}" for i in range(COLUMNS)) + "\n")
        for row in range(rows):
            file.write(f"row{row:07d}," + ",".join(str((row * 31 + i * 7) % 1000) for i in range(COLUMNS)) + "\n")
    began = time.monotonic()
    subprocess.run([tool("cellar-import"), "-q", "-p", str(port), "-k", "key", "t", path], stdin=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def owner_rows(client):
    """Of each set, the first row of one of its tablets."""
    _, tablets = client.execute_command("TABLET", "LIST", "t")
    rows = {}
    for flat in tablets:
        tablet = dict(zip(*[iter(flat)] * 2))
        rows.setdefault(int(tablet["set"]), tablet["start"] or "row")
    return rows


def run(rows):
    ports = free_ports(SETS * VOTERS)
    words = ["--sets", str(SETS), "--voters", str(VOTERS), "--port", str(ports[0])]
    say("A set is three nodes that elect a leader and have the same rows. A cluster is several sets, each with a part of the rows.\n")
    say(f"$ cellar-cluster start {' '.join(words)} --dir {os.path.relpath(NODES, ROOT)}")
    say(cluster("start", "--server", binary(), *words, "--option", 'save ""', "--quiet") + cluster("status"))
    entry = ports[-1]
    client = redis.Redis(port=entry, decode_responses=True, socket_timeout=SECONDS_MAX)
    took = fill(client, entry, rows)
    say(f"A table in nine tablets, dealt over the three sets. {rows * COLUMNS:,} cells went in through node {entry}, in {took:.1f} s.")
    say(f"$ cellar-cluster map t --dir {os.path.relpath(NODES, ROOT)}\n{cluster('map', 't')}")
    say("Any node answers for all of them, whichever set it is of. A scan of everything through each:\n")
    told = set()
    for port in ports:
        began = time.monotonic()
        cells, digest = Pages(port).all()
        say(f"    node {port}, set {(port - ports[0]) // VOTERS}: {cells:,} cells, sha256 {digest}..., {time.monotonic() - began:.1f} s")
        told.add((cells, digest))
    if told != {(rows * COLUMNS, digest)}:
        raise SystemExit("demo-cluster: the nodes do not say the same")
    return ports, client, kill_under_load(ports, client, digest, rows)


def pid_of(port, first):
    with open(os.path.join(NODES, f"set-{(port - first) // VOTERS}-{port}", "cellar.pid"), encoding="ascii") as file:
        return int(file.read())


def kill_under_load(ports, client, digest, rows):
    """Kills the leader of set 1 under a scan and writes; how many of these are lost."""
    entry = ports[-1]
    victim = leaders()[1]
    writers = [Writer(number, row, entry) for number, row in sorted(owner_rows(client).items())]
    scan = Pages(entry)
    pages = rows // PAGE
    for _ in range(pages // 4):
        scan.turn()
    wait_for(lambda: all(len(writer.done) > 20 for writer in writers), "a first write to each set")
    say(f"\nClients write to all sets, a scan is at {scan.cells:,} cells. kill -9 of node {victim}, which leads set 1 ...")
    os.kill(pid_of(victim, ports[0]), signal.SIGKILL)
    at_kill = [len(writer.done) for writer in writers]
    cells, again = scan.all()
    wait_for(lambda: all(len(writer.done) > at + 20 for writer, at in zip(writers, at_kill)), "a write to each set after the kill")
    new = wait_for(lambda: leaders()[1] not in (None, victim) and leaders()[1], "another leader of set 1")
    say(f"... node {new} leads it now. The scan has gone on to its end: {cells:,} cells.")
    cluster("start")
    say(f"$ cellar-cluster start --dir {os.path.relpath(NODES, ROOT)}\n... begins node {victim} again, and it follows.")
    for writer in writers:
        writer.ends = True
        writer.join()
    for writer in writers:
        say(f"    set {writer.number}: {len(writer.done):,} writes acknowledged, {writer.gap:.2f} s between two at most")
    lost = sum(client.execute_command("CGET", "t", key, "w:n") is None for writer in writers for key in writer.done)
    if cells != rows * COLUMNS:
        raise SystemExit(f"demo-cluster: the scan has {cells:,} cells")
    for port in ports:
        kept = Pages(port)
        kept.all()
        if kept.cells != rows * COLUMNS:
            raise SystemExit(f"demo-cluster: node {port} has {kept.cells:,} cells")
    return lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the nodes running")
    parser.add_argument("--rows", type=int, default=100_000, help=f"of {COLUMNS} cells (100000)")
    options = parser.parse_args()
    if os.path.exists(os.path.join(NODES, "cluster.json")):
        cluster("stop", "--quiet")  # of a run that kept it, or was broken off
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    try:
        ports, _, lost = run(options.rows)
    except BaseException:
        if not options.keep and os.path.exists(os.path.join(NODES, "cluster.json")):
            with contextlib.suppress(SystemExit):
                cluster("stop", "--quiet")
        raise
    if options.keep:
        say(f"The nodes go on: redis-cli -p {ports[0]}, cellar-cluster status --dir {NODES}, and stop")
    else:
        cluster("stop", "--quiet")
        shutil.rmtree(WORK)
        say("All nodes are stopped, and their folder is gone.")
    say(f"lost {lost} of the acknowledged writes; every node told of all cells")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
