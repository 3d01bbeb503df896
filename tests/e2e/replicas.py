"""Leaders and followers on this machine, for tests.

    class MyTest(ReplicaTest):
        def test_it(self):
            leader, follower = self.pair(appendfsync="always")   # options of both
            follower.follow(leader)
            self.assert_copied(leader, follower)

A Node keeps its folder over restarts. A Link is what a follower dials instead of its leader, and what can be cut,
slowed down and taken away while it stands.
"""

import contextlib
import os
import random
import select
import shutil
import socket
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import START_SECONDS_MAX, CellarServer, wait_until

SECONDS_MAX = START_SECONDS_MAX  # a hang must end


class Node:
    """A server with a folder of its own, which outlives its restarts."""

    def __init__(self, test, directory=None, **options):
        self.directory = directory or tempfile.mkdtemp(prefix="cellar-node-")
        if directory is None:
            test.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.server = CellarServer(self.directory, save="", enable_debug_command="yes", **options)
        self.server.start()
        test.addCleanup(self.server.stop)
        self.redis = self.server.client(decode_responses=True, password=options.get("requirepass"))

    def run(self, line, *more):
        return self.redis.execute_command(*line.split(), *more)

    def refusal(self, line):
        try:
            return f"no error: {self.run(line)}"
        except (redis.ResponseError, redis.BusyLoadingError) as error:
            # redis-py takes some codes away.
            return f"{type(error).__name__} {error}"

    def info(self, field, section="replication"):
        try:
            return self.redis.info(section)[field]
        except redis.ConnectionError:  # a change of role, or Sentinel, ends connections
            return self.redis.info(section)[field]

    def kill(self):
        self.server.kill()

    def restart(self):
        self.server.start()
        self.redis = self.server.client(decode_responses=True)

    def restart_cleanly(self):
        self.server.stop()
        self.restart()

    def follow(self, leader):
        return self.run(f"REPLICAOF 127.0.0.1 {leader.server.port}")

    def load(self, rows, first=0, table="t"):
        pipe = self.redis.pipeline(transaction=False)
        for i in range(first, first + rows):
            pipe.execute_command("CPUT", table, f"r{i}", "f:a", str(i), "f:b", "x" * 40, "g:c", str(i))
        pipe.execute()


class ReplicaTest(unittest.TestCase):
    def wait_until(self, condition, what, pause=0.01):
        return wait_until(condition, what, pause)

    def assert_copied(self, leader, *followers):
        """They have all that the leader has, and nothing else."""
        for follower in followers:
            self.wait_until(lambda f=follower: f.info("master_link_status") == "up" and
                            f.info("slave_repl_offset") == leader.info("master_repl_offset"),
                            lambda f=follower: str(f.redis.info("replication")))
            # The sweeper may write at any time, so what is compared is what both have at one record.
            seen = {}

            def at_one_record(f=follower, seen=seen):
                seen["leader"] = leader.run("DEBUG DIGEST WITHLSN")
                seen["follower"] = f.run("DEBUG DIGEST WITHLSN")
                return seen["leader"][1] == seen["follower"][1]
            self.wait_until(at_one_record, lambda seen=seen: str(seen))
            self.assertEqual(seen["leader"], seen["follower"])

    def take_over(self, leader, follower):
        """Until the follower leads: a hand-over is given up where it does not get its turn in time."""
        def done():
            with contextlib.suppress(redis.RedisError):  # a change of role ends connections
                if follower.info("role") == "master":
                    return True
                if leader.info("master_failover_state") == "no-failover":
                    leader.refusal(f"FAILOVER TO 127.0.0.1 {follower.server.port}")
            return False
        self.wait_until(done, lambda: leader.server.log()[-2000:] + follower.server.log()[-2000:])

    def pair(self, **options):
        leader, follower = Node(self, **options), Node(self, **options)
        leader.run("TABLE CREATE t FAMILY f FAMILY g VERSIONS 2 TTL 1h")
        return leader, follower

    def link(self, leader):
        link = Link(leader.server.port)
        self.addCleanup(link.close)
        return link


class Link:
    """A relay to a port of this machine. `up` is towards that port, `down` back from it."""

    def __init__(self, port):
        self.port_behind = port
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        self.cut_up = self.cut_down = False  # silently: connections stand, and new ones are taken
        self.delay = self.delay_up = 0.0  # seconds; of what goes down, and up
        self.up_bytes = self.down_bytes = 0
        self.ends_at = None  # so many bytes down until the cut, if any
        self.closed = False
        self.pairs = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def close(self):
        self.closed = True
        self.thread.join()

    def cut(self, up=True, down=True):
        self.cut_up, self.cut_down = up, down

    def heal(self):
        self.ends_at = None
        self.cut(False, False)

    def drop(self):
        """Ends all connections at once, with a reset."""
        for near, far, _, _ in list(self.pairs):
            for end in (near, far):
                try:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def run(self):
        try:
            while not self.closed:
                self.step()
        finally:
            self.listener.close()
            for near, far, _, _ in self.pairs:
                near.close()
                far.close()

    def step(self):
        sources = [self.listener]
        for near, far, down, up in self.pairs:
            if not self.cut_up and sum(len(piece) for _, piece in up) < 1 << 20:
                sources.append(near)
            if not self.cut_down and sum(len(piece) for _, piece in down) < 1 << 20:
                sources.append(far)
        waits = self.delay or self.delay_up or any(down or up for _, _, down, up in self.pairs)
        ready = select.select(sources, [], [], 0.002 if waits else 0.02)[0]
        if self.listener in ready:
            self.accept()
        for pair in list(self.pairs):
            try:
                self.serve(pair, ready)
            except OSError:
                self.pairs.remove(pair)
                pair[0].close()
                pair[1].close()

    def accept(self):
        near = self.listener.accept()[0]
        try:
            far = socket.create_connection(("127.0.0.1", self.port_behind))
        except OSError:  # nobody listens there now
            near.close()
            return
        near.settimeout(5)
        far.settimeout(5)
        self.pairs.append((near, far, [], []))

    def serve(self, pair, ready):
        near, far, down, up = pair
        if near in ready:
            up.append((time.monotonic() + self.delay_up, near.recv(1 << 16)))
        for piece in self.due(up, self.cut_up):
            self.up_bytes += len(piece)
            far.sendall(piece)
        if far in ready:
            down.append((time.monotonic() + self.delay, far.recv(1 << 18)))
        for piece in self.due(down, self.cut_down):
            self.down_bytes += len(piece)
            near.sendall(piece)
            if self.ends_at is not None and self.down_bytes >= self.ends_at:
                self.cut()
                break

    @staticmethod
    def due(waiting, cut):
        """Pieces whose time has come, taken from `waiting`; an end that has closed ends the pair."""
        while waiting and not cut and waiting[0][0] <= time.monotonic():
            piece = waiting.pop(0)[1]
            if not piece:
                raise OSError("closed")
            yield piece


class Writers:
    """Writes of many kinds by a thread, until the block ends; errors and lost connections are none of its business."""

    def __init__(self, port, seed, rows=2000, pause=0.0):
        self.port, self.seed, self.rows, self.pause = port, seed, rows, pause
        self.number = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def command(self, mix):
        self.number += 1
        row = f"r{mix.randrange(self.rows)}"
        return mix.choice((
            ("CPUT", "t", row, "f:a", str(self.number), "g:b", "y" * mix.randrange(300)),
            ("CPUT", "t", row, "f:a", str(self.number)), ("CDEL", "t", row),
            ("CINCRBY", "t", "counter", "f:n", "1"), ("CAPPEND", "t", row, "f:s", "z"),
            ("CPUT", "u", f"{mix.randrange(50)}", "f:x", "1"),
            ("CMUTATE", "t", row, "PUT", "f:z", "1", "TTL", "1s", "DEL", "g")))

    def run(self):
        mix = random.Random(self.seed)
        while not self.ended.is_set():
            try:
                with redis.Redis(port=self.port, socket_timeout=5) as client:
                    while not self.ended.is_set():
                        pipe = client.pipeline(transaction=mix.random() < 0.3)
                        for _ in range(20):
                            pipe.execute_command(*self.command(mix))
                        if mix.random() < 0.01:
                            begin = mix.randrange(self.rows)
                            pipe.execute_command("CDELRANGE", "t", "RANGE", f"[r{begin}", f"[r{begin}~")
                        pipe.execute(raise_on_error=False)
                        time.sleep(self.pause)
            except (redis.RedisError, OSError):
                time.sleep(0.01)


def chance():
    """Random choices that a seed repeats: CELLAR_REPLICA_SEED."""
    seed = int(os.environ.get("CELLAR_REPLICA_SEED", random.randrange(10**9)))
    print(f"seed {seed}", flush=True)
    return seed, random.Random(seed)
