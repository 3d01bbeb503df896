"""Replica sets under faults, on machines of their own: killed, stopped, cut off in every way, while clients write and
read. What they saw is judged: nothing acknowledged is lost, rows are linearizable, transactions that append are strictly
serializable, all nodes end equal.

CELLAR_SET_ROUNDS (2) says how often each fault comes, CELLAR_SET_CUT (4) for how many seconds a node is cut off,
CELLAR_SET_MINUTES how long faults of all kinds come at least, CELLAR_REPLICA_SEED repeats choices.
"""

import contextlib
import glob
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import binary, wait_until
from replica_machines import Machines, has_machines
from replicas import chance

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from histories import appends, rows  # noqa: E402
from histories.rows import FOREVER, Command  # noqa: E402

ROUNDS = int(os.environ.get("CELLAR_SET_ROUNDS", "2"))
CUT_SECONDS = float(os.environ.get("CELLAR_SET_CUT", "4"))
MINUTES = float(os.environ.get("CELLAR_SET_MINUTES", "0"))
PORT = 6479
SECONDS_MAX = 120
# What a leader answers, and what a follower does. CELLAR_SET_FORWARD=1: any node, and it asks the leader.
FORWARD = ["yes", "--cluster-reads", "leader"] if os.environ.get("CELLAR_SET_FORWARD") else ["no"]
NOT_DONE = ("READONLY", "CLUSTERDOWN", "MASTERDOWN", "LOADING", "MISCONF", "TRYAGAIN", "OOM", "EXECABORT")


class Node:
    """One process of the set, on its machine."""

    def __init__(self, machines, number):
        self.machines = machines
        self.number = number
        self.host = machines.ip(number)
        self.directory = tempfile.mkdtemp(prefix="cellar-set-")
        self.process = None
        self.stopped = False
        self.options = []
        self.environment = dict(os.environ)

    def start(self):
        nodes = [f"{self.machines.ip(i)}:{PORT}" for i in range(self.machines.count)]
        with open(os.path.join(self.directory, "server.output"), "ab") as log:
            self.process = subprocess.Popen(
                self.machines.words(self.number) + [
                    binary(), "--port", str(PORT), "--bind", self.host, "--protected-mode", "no", "--dir", self.directory,
                    "--create-dir", "yes", "--save", "", "--enable-debug-command", "yes",
                    "--cluster-forward", *FORWARD, *self.options,
                    "--cluster-nodes", *nodes],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)
        self.stopped = False

    def log(self):
        with open(os.path.join(self.directory, "server.output"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def signal(self, number):
        # `ip netns exec` has become the server.
        self.process.send_signal(number)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        self.signal(signal.SIGSTOP)
        self.stopped = True

    def go_on(self):
        if self.stopped:
            self.signal(signal.SIGCONT)
        self.stopped = False

    def connect(self, timeout=5.0):
        return redis.Redis(host=self.host, port=PORT, socket_timeout=timeout, socket_connect_timeout=2,
                           decode_responses=True, single_connection_client=True, retry_on_timeout=False)

    def ask(self, *words, timeout=5.0):
        try:
            with self.connect(timeout) as link:
                return link.execute_command(*words)
        except (redis.RedisError, OSError) as error:
            return error

    def info(self):
        answer = self.ask("INFO", "replication")
        return answer if isinstance(answer, dict) else {}

    def leads(self):
        return self.info().get("role") == "master"


class Client(threading.Thread):
    """Asks whoever leads, and notes what it is answered. Reads count only on a connection on which the node has said
    that it leads."""

    def __init__(self, nodes, seed, number, clock, anywhere=False):
        super().__init__(daemon=True)
        self.anywhere = anywhere  # it reads only, from any node: of a set where reads are linearizable
        self.nodes = nodes
        self.mix = random.Random(seed * 1000 + number)
        self.number = number
        self.clock = clock  # a list: the period, of which rows have their names
        self.link = None
        self.at = number
        self.ends = False
        self.count = 0
        self.acknowledged = []  # (row, value, moment)
        self.rows = {}
        self.transactions = []
        self.wrong = []

    def connect(self):
        """False: this one does not lead."""
        self.at += 1
        link = None
        try:
            link = self.nodes[self.at % len(self.nodes)].connect(0.7)
            if self.anywhere or link.execute_command("ROLE")[0] == "master":
                self.link = link
                return True
        except (redis.RedisError, OSError):
            pass
        if link is not None:
            link.close()
        return False

    def count_answered(self):
        return sum(map(len, list(self.rows.values())))

    def leave(self):
        if self.link is not None:
            self.link.close()
        self.link = None

    def run(self):
        while not self.ends:
            if self.link is None and not self.connect():
                time.sleep(0.02)
                continue
            self.count += 1
            chosen = self.mix.random()
            try:
                if self.anywhere:
                    self.change_row()
                    if chosen < 0.01:
                        self.leave()
                elif chosen < 0.3:
                    self.write_own()
                elif chosen < 0.75:
                    self.change_row()
                else:
                    self.append()
            except (redis.RedisError, OSError) as error:
                if not isinstance(error, redis.ResponseError):
                    self.leave()
                elif not refused(error):
                    self.wrong.append(repr(error))
        self.leave()

    def write_own(self):
        row = f"w{self.number}-{self.count}"
        self.link.execute_command("CPUT", "t", row, "f:n", str(self.count))
        self.acknowledged.append((row, str(self.count), time.monotonic()))

    def change_row(self):
        row = f"x{self.clock[0]}-{self.mix.randrange(4)}"
        kind = "get" if self.anywhere else self.mix.choice(("put", "get", "get", "add"))
        argument = None
        words = ["CGET", "c", row, "f:n"]
        if kind == "put":
            argument = self.mix.randrange(1000) * 1000
            words = ["CPUT", "c", row, "f:n", str(argument)]
        elif kind == "add":
            argument = self.mix.randrange(1, 100)
            words = ["CINCRBY", "c", row, "f:n", str(argument)]
        call = time.monotonic()
        answer, reply = None, FOREVER
        try:
            answer = self.link.execute_command(*words)
            reply = time.monotonic()
        except (redis.RedisError, OSError) as error:
            if refused(error):
                raise
            if kind != "get":
                self.rows.setdefault(row, []).append(Command(call, FOREVER, kind, argument, None))
            raise
        if kind == "get":
            answer = None if answer is None else int(answer)
        elif kind == "add":
            answer = int(answer)
        else:
            answer = None
        self.rows.setdefault(row, []).append(Command(call, reply, kind, argument, answer))

    def append(self):
        one, two = (f"a{self.clock[0]}-{i}" for i in self.mix.sample(range(3), 2))
        value = f"{self.number}.{self.count};"
        steps = [("append", one, value), ("append", two, value), ("read", one, None)]
        begin = time.monotonic()
        try:
            with self.link.pipeline(transaction=True) as pipe:
                pipe.execute_command("CAPPEND", "t", one, "f:s", value)
                pipe.execute_command("CAPPEND", "t", two, "f:s", value)
                pipe.execute_command("CGET", "t", one, "f:s")
                answer = pipe.execute()
        except (redis.RedisError, OSError) as error:
            self.transactions.append(appends.Transaction(begin, FOREVER, steps, refused=refused(error)))
            if self.transactions[-1].refused:
                self.transactions.pop()
            raise
        steps[2] = ("read", one, [piece + ";" for piece in answer[2].split(";")[:-1]])
        self.transactions.append(appends.Transaction(begin, time.monotonic(), steps))


def refused(error):
    """Whether that answer says that nothing has been done."""
    text = str(error)
    if isinstance(error, redis.ReadOnlyError):
        return True
    return isinstance(error, (redis.ResponseError, redis.BusyLoadingError)) and (
        any(word in text for word in NOT_DONE) or "no leader" in text or isinstance(error, redis.BusyLoadingError))


@unittest.skipUnless(has_machines(), "needs root, for network namespaces")
class ReplicaSetFaultsTest(unittest.TestCase):
    COUNT = 3

    def setUp(self):
        self.seed, self.mix = chance()
        self.machines = Machines(self.COUNT)
        self.machines.__enter__()
        self.addCleanup(self.machines.remove)
        self.nodes = [Node(self.machines, i) for i in range(self.COUNT)]
        for node in self.nodes:
            self.addCleanup(shutil.rmtree, node.directory, ignore_errors=True)
            self.addCleanup(node.kill)
        for node in self.nodes:
            node.start()
        if not has_set(self.nodes[0]):
            self.skipTest("built without libraft")
        for name, kind in (("t", []), ("c", ["TYPE", "i64"])):
            self.lead("TABLE", "CREATE", name, "FAMILY", "f", *kind)
        self.period = [0]
        self.clients = [Client(self.nodes, self.seed, i, self.period) for i in range(6)]
        self.moments = []

    def wait_until(self, condition, what):
        wait_until(condition, lambda: f"{what() if callable(what) else what}\n" + "\n".join(
            f"--- {node.host}\n{node.log()[-3000:]}" for node in self.nodes))

    def lead(self, *words, but=None):
        """Has whoever leads do it, again where another one leads by then, or it took too long: it may be done twice."""
        answers = []

        def done():
            answers.append(str(self.wait_leader(but).ask(*words, timeout=SECONDS_MAX)))
            return answers[-1] == "OK" or (len(answers) > 1 and "BUSYKEY" in answers[-1])
        self.wait_until(done, lambda: f"{words}: {answers[-1]}")

    def set_at(self, node, name, value):
        """CONFIG SET there, and at its next starts."""
        self.wait_until(lambda: node.ask("CONFIG", "SET", name, value) == "OK", f"{name} is set")
        node.options += [f"--{name}", value]

    def wait_leader(self, but=None):
        found = []

        def holds():
            found[:] = [node for node in self.nodes if node is not but and not node.stopped and node.leads()]
            return found
        self.wait_until(holds, "nobody leads")
        return found[0]

    def begin(self):
        for client in self.clients:
            client.start()
        self.wait_writes(time.monotonic())

    def writes_after(self, moment):
        later = [each[2] for client in self.clients for each in client.acknowledged[-3000:] if each[2] > moment]
        return min(later) if later else None

    def wait_writes(self, moment):
        """Seconds from then to the first write acknowledged."""
        self.wait_until(lambda: self.writes_after(moment) is not None, "nothing is written")
        return self.writes_after(moment) - moment

    def gap_of(self, moment):
        """Seconds without an acknowledged write, the longest of about that moment."""
        times = sorted(each[2] for client in self.clients for each in client.acknowledged)
        return max((later - former for former, later in zip(times, times[1:])
                    if later > moment - 0.5 and former < moment + 1), default=0)

    def rest(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.3)
            self.period[0] += 1

    def finish(self):
        for client in self.clients:
            client.ends = True
        for client in self.clients:
            client.join()
        self.machines.heal()
        for node in self.nodes:
            node.go_on()
            if node.process.poll() is not None:
                node.start()
        self.wait_equal()
        self.judge()

    def wait_equal(self):
        seen = []

        def equal():
            infos = [node.info() for node in self.nodes]
            seen[:] = [(i.get("replica_commit"), i.get("replica_applied"), i.get("replica_state")) for i in infos]
            if len({each[:2] for each in seen}) != 1 or seen[0][0] is None or seen[0][0] != seen[0][1]:
                return False
            seen.append([node.ask("DEBUG", "DIGEST", timeout=SECONDS_MAX) for node in self.nodes])
            return isinstance(seen[-1][0], str) and len(set(map(str, seen[-1]))) == 1
        self.wait_until(equal, lambda: f"not equal: {seen}")

    def values_of(self, rows):
        """As the leader has them; None where it has gone meanwhile."""
        with contextlib.suppress(redis.RedisError, OSError), self.wait_leader().connect(SECONDS_MAX) as link:
            pipe = link.pipeline(transaction=False)
            for row in rows:
                pipe.execute_command("CGET", "t", row, "f:n")
            return pipe.execute()
        return None

    def judge(self):
        lost = []
        for client in self.clients:
            self.assertEqual([], client.wrong[:5])
            for at in range(0, len(client.acknowledged), 500):
                some = client.acknowledged[at:at + 500]
                values = wait_until(lambda rows=[row for row, _, _ in some]: self.values_of(rows), "what is there")
                lost += [row for (row, value, _), found in zip(some, values) if found != value]
        count = sum(len(client.acknowledged) for client in self.clients)
        self.assertEqual([], lost[:10], f"{len(lost)} of {count} acknowledged writes are lost; seed {self.seed}")
        history = {}
        for client in self.clients:
            for row, commands in client.rows.items():
                history.setdefault(row, []).extend(commands)
        for row, commands in history.items():
            self.assertTrue(rows.linearizable(commands), f"row {row}, seed {self.seed}: " + "\n".join(
                map(str, sorted(commands, key=lambda each: each.call))))
        transactions = [each for client in self.clients for each in client.transactions]
        self.assertIsNone(appends.fault(transactions), f"seed {self.seed}")
        print(f"{self.id().split('.')[-1]}: {count} writes, {sum(map(len, history.values()))} commands on {len(history)} rows, "
              f"{len(transactions)} transactions", flush=True)

        if not self.moments:
            return
        gaps = [self.gap_of(moment) for moment in self.moments]
        print(f"  gaps: {' '.join(f'{gap:.2f}' for gap in sorted(gaps))} s, median {statistics.median(gaps):.2f}", flush=True)

    def test_leaders_are_killed(self):
        self.begin()
        for _ in range(ROUNDS):
            self.rest(1)
            leader = self.wait_leader()
            self.moments.append(time.monotonic())
            leader.kill()
            self.wait_leader()
            self.wait_writes(time.monotonic())
            leader.start()
            self.wait_until(lambda node=leader: has_a_role(node), "it comes back")
        self.finish()

    def test_all_are_killed(self):
        self.begin()
        for _ in range(ROUNDS):
            self.rest(1)
            for node in self.nodes:
                node.kill()
            for node in self.nodes:
                node.start()
            self.wait_writes(time.monotonic())
        self.finish()

    def test_leaders_are_stopped(self):
        self.begin()
        for _ in range(ROUNDS):
            self.rest(1)
            leader = self.wait_leader()
            self.moments.append(time.monotonic())
            leader.stop()
            self.rest(2)
            leader.go_on()
            self.wait_writes(time.monotonic())
        self.rest(1)
        self.finish()

    def part(self, cut):
        """`cut` separates the leader in some way, for a while."""
        self.begin()
        heals = []
        for _ in range(ROUNDS):
            self.rest(1)
            leader = self.wait_leader()
            self.moments.append(time.monotonic())
            cut(leader.number)
            self.rest(CUT_SECONDS)
            self.wait_writes(time.monotonic())
            self.machines.heal()
            healed = time.monotonic()
            self.wait_until(lambda: sum(node.leads() for node in self.nodes) == 1 and sum(
                node.info().get("replica_state") == "follower" and node.info().get("master_link_status") == "up"
                for node in self.nodes) == self.COUNT - 1, "all are together again")
            heals.append(time.monotonic() - healed)
        self.finish()
        print(f"  healed: {' '.join(f'{heal:.2f}' for heal in heals)} s", flush=True)

    def test_leaders_are_alone(self):
        self.part(self.machines.cut_off)

    def test_leaders_are_not_heard(self):
        self.part(lambda i: [self.machines.cut(i, other) for other in range(self.COUNT) if other != i])

    def test_leaders_hear_nothing(self):
        self.part(lambda i: [self.machines.cut(other, i) for other in range(self.COUNT) if other != i])

    def test_one_way_is_cut(self):
        def cut(i):
            other = (i + 1) % self.COUNT
            self.machines.cut_off(i, [other])
        self.part(cut)

    def test_clocks_run_at_different_speeds(self):
        """1 % fast, and slow, and hours apart. (Those that leases and timers go by are so in the simulation.)"""
        library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)
        if library is None:
            self.skipTest("libfaketime is not installed")
        for node, clock in zip(self.nodes, ("+1h x1.01", "-1h x0.99", "+0")):
            node.environment.update({"LD_PRELOAD": library, "FAKETIME": clock, "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
            node.kill()
            node.start()
        self.wait_leader()
        self.begin()
        for _ in range(ROUNDS):
            for cut in (True, False):
                self.rest(1)
                leader = self.wait_leader()
                if cut:
                    self.machines.cut_off(leader.number)
                else:
                    leader.stop()
                self.rest(2)
                self.machines.heal()
                leader.go_on()
        self.finish()

    def test_an_isolated_leader_answers_nothing(self):
        self.lead("CPUT", "t", "r", "f:a", "old")
        with contextlib.ExitStack() as stack:
            def leads_on_it():
                """A link to one that has said on it that it leads."""
                found[:] = [self.wait_leader()]
                found.append(stack.enter_context(found[0].connect(1)))
                with contextlib.suppress(redis.RedisError, OSError):
                    return found[1].execute_command("ROLE")[0] == "master"
                return False
            found = []
            self.wait_until(leads_on_it, "one that leads")
            leader, link = found
            self.machines.cut_off(leader.number)
            self.lead("CPUT", "t", "r", "f:a", "new", but=leader)
            answers = []
            for words in (("CGET", "t", "r", "f:a"), ("CPUT", "t", "r", "f:a", "wrong")):
                try:
                    answers.append(link.execute_command(*words))
                except (redis.RedisError, OSError) as error:
                    answers.append(error)
        self.assertTrue(all(isinstance(answer, Exception) for answer in answers), answers)
        self.wait_until(lambda: "no leader" in str(leader.ask("CPUT", "t", "r", "f:a", "wrong")), "it has stepped down")
        self.machines.heal()
        self.wait_equal()
        self.wait_until(lambda: self.wait_leader().ask("CGET", "t", "r", "f:a") == "new", "what the next leader took")

    def test_a_long_record_over_slow_links_changes_no_leader(self):
        """It takes several election timeouts to each of the others, in which nothing else comes from the leader."""
        # To take in 24 MB costs the leader some 65 ms of a processor, for which it may have to wait for long on a busy
        # machine: that is no silence of a link.
        for node in self.nodes:
            node.kill()
            node.options = ["--replica-election-timeout", "4000"]
            node.start()
        leader = self.wait_leader()
        try:
            self.machines.slow_down(leader.number, 20)
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"links cannot be slowed down: {error}")
        told = []
        self.wait_until(lambda: told.append(leader.info().get("replica_term")) or told[-1], "its term")
        for size in (1, 12, 24):
            value = "x" * (size << 20)
            self.assertEqual("OK", leader.ask("CPUT", "t", f"row{size}", "f:a", value, timeout=SECONDS_MAX))
        term = told[-1]
        self.wait_until(lambda: told.append(leader.info().get("replica_term")) or told[-1], "its term")
        self.assertEqual(term, told[-1])
        self.assertEqual("master", leader.ask("ROLE", timeout=SECONDS_MAX)[0])
        self.wait_equal()

    def test_followers_read_what_is_newest(self):
        self.read_anywhere()
        self.begin()
        for _ in range(ROUNDS):
            for cut in (False, True):
                self.rest(1)
                leader = self.wait_leader()
                if cut:
                    self.machines.cut_off(leader.number)
                else:
                    leader.kill()
                self.rest(2)
                self.machines.heal()
                if not cut:
                    leader.start()
                    self.wait_until(lambda node=leader: has_a_role(node), "it comes back")
        readers = [client for client in self.clients if client.anywhere]
        self.wait_until(lambda: min(client.count_answered() for client in readers) > 50, "all of them are answered")
        self.finish()

    def read_anywhere(self):
        for node in self.nodes:
            self.set_at(node, "replica-reads", "linearizable")
        self.clients = self.clients[:3] + [Client(self.nodes, self.seed, 10 + i, self.period, True) for i in range(6)]

    def test_all_kinds_of_faults(self):
        """Several at once, by chance."""
        self.clients += [Client(self.nodes, self.seed, i, self.period) for i in range(6, 10)]
        self.begin()
        end, count = time.monotonic() + 60 * MINUTES, 0
        while count < 8 * ROUNDS or time.monotonic() < end:
            count += 1
            node = self.mix.choice(self.nodes)
            kind = self.mix.choice(("kill", "kill", "stop", "alone", "silent", "deaf", "bridge", "hand over", "save", "heal"))
            if kind == "kill":
                node.kill()
            elif kind == "stop" and not node.stopped and node.process.poll() is None:
                node.stop()
            elif kind == "alone":
                self.machines.cut_off(node.number)
            elif kind == "silent":
                self.machines.cut(node.number, self.mix.randrange(self.COUNT))
            elif kind == "deaf":
                self.machines.cut(self.mix.randrange(self.COUNT), node.number)
            elif kind == "bridge":
                self.machines.cut_off(node.number, [(node.number + 1) % self.COUNT])
            elif kind == "hand over":
                for each in self.nodes:
                    if not each.stopped and each.leads():
                        each.ask("FAILOVER")
            elif kind == "save":
                node.ask("BGSAVE")
            self.rest(self.mix.choice((0.1, 0.4, 1.5)))
            if self.mix.random() < 0.4:
                self.machines.heal()
            for each in self.nodes:
                if self.mix.random() < 0.5:
                    each.go_on()
                    if each.process.poll() is not None:
                        each.start()
        self.finish()


def has_a_role(node):
    """It is back in its set: where processes wait for their turn, it may soon lead."""
    return node.info().get("replica_state") in ("follower", "leader")


def has_set(node):
    with contextlib.suppress(subprocess.TimeoutExpired):
        node.process.wait(0.5)
    return node.process.poll() is None or "libraft" not in node.log()


if __name__ == "__main__":
    unittest.main()
