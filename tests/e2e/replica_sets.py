"""Replica sets for tests: their members, who leads them, clients that write to them and read their feeds."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import CellarServer, free_port, wait_until
from feed_model import as_sent
from replicas import SECONDS_MAX, ReplicaTest


# An election timeout for tests that hold on to one leader: beside others a process may not run for seconds.
STEADY_MS = 3000
# What is answered by who does not lead any more, or not yet; what was asked may be asked again.
ASK_AGAIN = ("ReadOnlyError", "ConnectionError", "TimeoutError", "BusyLoadingError", "CLUSTERDOWN", "no leader", "TRYAGAIN")


def has_sets():
    """Whether this build has libraft."""
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        server = CellarServer(directory, port=port, cluster_nodes=f"127.0.0.1:{port}")
        server.spawn()
        try:
            server.process.wait(0.5)
        except subprocess.TimeoutExpired:
            server.stop()
            return True, ""
        return "libraft" not in server.log(), server.log()


class Member:
    def __init__(self, test, port, nodes, host="127.0.0.1", within=(), **options):
        # Beside other tests a process may not run for a while.
        options.setdefault("replica_election_timeout", 1000)
        self.directory = tempfile.mkdtemp(prefix="cellar-member-")
        test.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.port = port
        self.server = CellarServer(self.directory, port=port, cluster_nodes=nodes, save="",
                                   enable_debug_command="yes", **options)
        self.server.host, self.server.within = host, list(within)
        test.addCleanup(self.stop)
        self.connect()

    def connect(self):
        """New clients, of where it listens now."""
        self.redis = self.server.client(decode_responses=True, socket_timeout=SECONDS_MAX)
        # What it says of itself is asked again and again, also of one that is stopped.
        self.asks = self.server.client(decode_responses=True, socket_timeout=5)

    @property
    def address(self):
        return f"{self.server.host}:{self.port}"

    def stop(self):
        if self.server.process:
            self.server.process.send_signal(signal.SIGCONT)  # it may be stopped
            self.server.stop()

    def run(self, *words):
        if len(words) == 1:
            words = words[0].split()
        return self.redis.execute_command(*words)

    def refusal(self, *words):
        try:
            return f"no error: {self.run(*words)}"
        except redis.RedisError as error:
            return f"{type(error).__name__} {error}"

    def info(self, section="replication"):
        try:
            return self.asks.info(section)
        except redis.RedisError:
            return {}

    def leads(self):
        return self.info().get("role") == "master"

    def has_a_role(self):
        """It is back in its set: where processes wait for their turn, it may soon lead."""
        return self.info().get("replica_state") in ("follower", "leader")

    def wipe(self):
        shutil.rmtree(self.directory)
        os.mkdir(self.directory)


class Writer(threading.Thread):
    """A client that writes one row after the other, each with its own number, to whoever takes it."""

    def __init__(self, members, more=""):
        super().__init__(daemon=True)
        self.more = more
        self.ports = [member.port for member in members]
        self.acknowledged = []
        self.times = []
        self.ends = False
        self.start()

    def run(self):
        number, at, link = 0, 0, None
        while not self.ends:
            try:
                if link is None:
                    link = redis.Redis(port=self.ports[at % len(self.ports)], socket_timeout=5, socket_connect_timeout=2)
                link.execute_command("CPUT", "t", f"w{number}", "f:n", str(number), "f:more", self.more)
                self.acknowledged.append(number)
                self.times.append(time.monotonic())
            except redis.RedisError:
                at += 1
                if link is not None:
                    link.close()
                link = None
                time.sleep(0.01)
            number += 1

    def end(self):
        self.ends = True
        self.join()

    def wait(self, more=50):
        """Until so many more are acknowledged."""
        count = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) >= count + more, lambda: f"{len(self.acknowledged) - count} writes more")

    def gap_after(self, moment):
        """Seconds from then to the first write that is acknowledged by another one."""
        later = [each for each in self.times if each > moment]
        return later[0] - moment if later else None


class Tail(threading.Thread):
    """Reads a node's feed as it grows."""

    def __init__(self, member):
        super().__init__(daemon=True)
        self.member = member
        self.entries = []
        self.ends = False
        self.start()

    def run(self):
        while not self.ends:
            try:
                client = as_sent(redis.Redis(port=self.member.port, socket_timeout=SECONDS_MAX))
                while not self.ends:
                    last = self.entries[-1][0] if self.entries else "0"
                    found = client.execute_command("XREAD", "COUNT", "100", "BLOCK", "100", "STREAMS", "changes", last)
                    self.entries += found[0][1] if found else []
            except redis.RedisError:
                time.sleep(0.05)

    def end(self):
        self.ends = True
        self.join()


class ReplicaSetCase(ReplicaTest):
    """A test of sets: founds them, asks who leads, compares the members. Skipped in a build without libraft."""

    @classmethod
    def setUpClass(cls):
        works, why = has_sets()
        if not works:
            raise unittest.SkipTest("built without libraft: " + why)

    def setUp(self):
        self.unmounts = []
        self.addCleanup(lambda: [subprocess.run(["umount", "-l", each], check=False) for each in self.unmounts])

    def make(self, count=3, **options):
        ports = []
        while len(ports) < count:
            port = free_port()
            if port not in ports:
                ports.append(port)
        self.nodes = [f"127.0.0.1:{port}" for port in ports]
        members = [Member(self, port, self.nodes, **options) for port in ports]
        return members

    def found(self, count=3, **options):
        members = self.make(count, **options)
        for member in members:
            member.server.start()
        self.wait_leader(members)
        return members

    def wait_leader(self, members, but=None):
        found = []

        def holds():
            found[:] = [member for member in members if member is not but and member.leads()]
            return found
        self.wait_until(holds, lambda: "nobody leads:\n" + "\n".join(m.server.log()[-1500:] for m in members))
        return found[0]

    def lead(self, members, *words):
        """Has whoever leads do it, and again where another one leads by then: it may be done twice. Its answer; where it
        had been done by an attempt that was not answered, OK. Another error is raised."""
        answers, unanswered = [], []

        def answered():
            leader = self.wait_leader(members)
            try:
                answers.append(leader.run(*words))
            except redis.RedisError as error:
                told = f"{type(error).__name__} {error}"
                if any(each in told for each in ASK_AGAIN):
                    unanswered.append(told)
                elif unanswered and "BUSYKEY" in told:
                    answers.append("OK")
                else:
                    raise
            return bool(answers)
        self.wait_until(answered, lambda: f"{words} {unanswered}\n" + "\n".join(m.server.log()[-1500:] for m in members))
        return answers[-1]

    def hand_over(self, members, to=None, former=None):
        """Until `to` leads, or another one than `former`: a hand-over is given up where nobody gets a turn in time."""
        def done():
            leader = self.wait_leader(members)
            if leader is to or (to is None and leader is not former):
                return True
            if leader.info().get("master_failover_state") == "no-failover":
                leader.refusal(f"FAILOVER TO 127.0.0.1 {to.port}" if to else "FAILOVER")
            return False
        self.wait_until(done, lambda: "\n".join(m.server.log()[-1500:] for m in members))

    def assert_equal(self, members):
        def digests():
            try:
                return [member.run("DEBUG DIGEST") for member in members]
            except redis.RedisError as error:
                return [str(error), ""]

        def states():
            return [(m.info().get("replica_commit"), m.info().get("replica_applied")) for m in members]
        self.wait_until(lambda: len(set(states())) == 1 and states()[0][0] == states()[0][1] and
                        len(set(digests())) == 1, lambda: f"{states()} {digests()}\n" +
                        "\n".join(m.server.log()[-1500:] for m in members))

    def assert_kept(self, members, writer):
        def found():
            """None where the leader has gone meanwhile."""
            leader = self.wait_leader(members)
            with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):
                return {str(leader.run("CGET", "t", f"w{n}", "f:n")) for n in numbers}, None
            return None
        numbers = writer.acknowledged[-20000:]
        rows, _ = wait_until(found, "the rows")
        self.assertEqual({str(n) for n in numbers}, rows)

    def mount(self, directory):
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", directory], capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("mounting a tmpfs is not allowed here")
        self.unmounts.append(directory)

    def fill(self, member):
        with open(os.path.join(member.directory, "filler"), "wb") as file:
            try:
                while True:
                    file.write(bytes(4096))
                    file.flush()
            except OSError:
                pass
            try:
                file.close()
            except OSError:
                pass

    def voters(self, members):
        info = self.wait_leader(members).info()
        return sum(info[name]["kind"] == "voter" for name in info if name.startswith("member"))
