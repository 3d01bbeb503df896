#!/usr/bin/python3
"""Three nodes on this machine that are a replica set; their leader is killed while they are written to.

    make demo-set        or        tools/demo/set.py [--keep]

The nodes listen on free ports of 127.0.0.1, each with a directory of its own. Clients write rows and note which were
acknowledged; kill -9 ends the leader; another one takes over, the dead one comes back, and every acknowledged row is
looked for on all three. The last line says how many were lost, and how long nobody took a write. --keep leaves the
nodes running.
"""

import argparse
import contextlib
import os
import shutil
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import redis  # noqa: E402
from cellar_server import CellarServer, free_port  # noqa: E402

WORK = os.path.join(ROOT, "build", "demo-set")
CLIENTS = 4
PICTURE = """

    clients --- CPUT ---> {leader}: leads        a write is acknowledged
                           /        \\             when two of the three
                     {one}       {two}          have it on disk
"""


class Node:
    def __init__(self, number, port, nodes):
        self.name, self.port = f"node {number}", port
        directory = os.path.join(WORK, str(number))
        os.makedirs(directory)
        self.server = CellarServer(directory, port=port, cluster_nodes=nodes, save="")
        self.redis = redis.Redis(port=port, socket_timeout=3, decode_responses=True)

    def role(self):
        with contextlib.suppress(redis.RedisError):
            return self.redis.info("replication")["replica_state"]
        return "down"


class Writer(threading.Thread):
    """Writes one row after the other, to whoever takes it."""

    def __init__(self, number, nodes):
        super().__init__(daemon=True)
        self.number, self.ports = number, [node.port for node in nodes]
        self.done, self.times, self.ends = [], [], False
        self.start()

    def run(self):
        client, at, i = None, 0, 0
        while not self.ends:
            try:
                client = client or redis.Redis(port=self.ports[at], socket_timeout=1)
                client.execute_command("CPUT", "t", f"{self.number}:{i}", "f:n", i)
                self.done.append(i)
                self.times.append(time.monotonic())
                i += 1
            except redis.ResponseError as error:
                # The leader is named by those who know it.
                words = str(error).rsplit(":", 1)
                known = int(words[-1]) if str(error).startswith("You can't write") and words[-1].isdigit() else None
                at = self.ports.index(known) if known in self.ports else (at + 1) % len(self.ports)
                client = None
                time.sleep(0.01)
            except redis.RedisError:
                client, at = None, (at + 1) % len(self.ports)
                time.sleep(0.01)


def wait_for(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"demo-set: {what} has not come about within {seconds} s")
        time.sleep(0.02)


def leader_of(nodes):
    return next((node for node in nodes if node.role() == "leader"), None)


def say(text):
    print(text, flush=True)


def run():
    ports = [free_port() for _ in range(3)]
    listed = " ".join(f"127.0.0.1:{port}" for port in ports)
    nodes = [Node(i + 1, port, listed) for i, port in enumerate(ports)]
    say(f"Each node gets the same line:\n\n    cluster-nodes {listed}\n")
    for node in nodes:
        node.server.spawn()
    wait_for(lambda: leader_of(nodes), "a leader")
    leader = leader_of(nodes)
    others = [node for node in nodes if node is not leader]
    say("They have founded a set." + PICTURE.format(leader=leader.name, one=others[0].name, two=others[1].name))
    leader.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
    writers = [Writer(i, nodes) for i in range(CLIENTS)]
    time.sleep(3)
    say(f"{sum(len(w.done) for w in writers):,} writes are acknowledged. kill -9 of {leader.name} ...")
    killed = time.monotonic()
    leader.server.kill()
    wait_for(lambda: all(w.times and w.times[-1] > killed + 0.05 for w in writers), "a write after the kill")
    new = leader_of(others)
    say(f"... and {new.name if new else 'another node'} leads. It comes back:")
    time.sleep(2)
    leader.server.spawn()
    wait_for(lambda: leader.role() == "follower", "the dead node as a follower")
    time.sleep(1)
    for writer in writers:
        writer.ends = True
        writer.join()
    written = [(w.number, i) for w in writers for i in w.done]
    say(f"{leader.name} follows. {len(written):,} acknowledged rows are looked for on all three:")
    gap = max(min(t for t in w.times if t > killed) - max(t for t in w.times if t <= killed) for w in writers)
    lost = 0
    for node in nodes:
        wait_for(lambda node=node: int(node.redis.execute_command("CCOUNT", "t")) >= len(written), f"all rows on {node.name}")
        missing = 0
        for begin in range(0, len(written), 1000):
            pipe = node.redis.pipeline(transaction=False)
            for number, i in written[begin:begin + 1000]:
                pipe.execute_command("CGET", "t", f"{number}:{i}", "f:n")
            missing += sum(value is None for value in pipe.execute())
        say(f"    {node.name}: {len(written) - missing:,} of {len(written):,}")
        lost = max(lost, missing)
    return nodes, lost, gap


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the nodes running")
    options = parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    nodes, lost, gap = run()
    if options.keep:
        say("The nodes go on: " + ", ".join(f"redis-cli -p {node.port}" for node in nodes))
    else:
        for node in nodes:
            node.server.stop()
    say(f"lost {lost} of the acknowledged writes; for {gap:.2f} s nobody took one")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
