"""The server of a test as a cluster of three sets, of one voter each.

`CELLAR_CLUSTER=3 make test`, or `make test-cluster`, runs the tests that share one server (CellarTest, Conversation) so:
every table is cut into four tablets that lie on all sets, and each client comes to a node of its own. Where tables are cut
and who comes where is drawn for each test from a seed, which is printed and may be given (CELLAR_CLUSTER_SEED).

What one server answers is what the cluster must answer. EXCEPTIONS says where that cannot be: what is skipped, which tests
ask things of one process, and whose tables stay in one piece. What each node has for itself (options, the clock) is set on
all nodes. With CELLAR_CHAOS=1 tablets move, are split and merged all the time.
"""

import contextlib
import inspect
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import unittest

import redis

from cellar_server import CellarServer, free_port, wait_until
from client_hooks import Hooks, asked, head_of, is_for_all
from cluster_exceptions import ALONE, CALM, ONE_NODE, ONE_TABLET, SKIP, STILL, exception_of, refusal_of

# A set needs its log, and these name what one process alone can have.
NOT_IN_A_CLUSTER = ("replicaof", "cluster-nodes", "unixsocket", "aclfile", "tls-port", "requirepass", "snapshot-keep")
SETS = int(os.environ.get("CELLAR_CLUSTER", "0"))
SEED = int(os.environ.get("CELLAR_CLUSTER_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
CHAOS = os.environ.get("CELLAR_CHAOS") == "1"

TEXTS = ("a", "b", "c", "com", "d", "e", "g", "k1", "k5", "m", "n", "p", "q", "r", "r0", "r00", "r001", "r01", "r02", "r1",
         "r2", "r3", "r5", "row", "row1", "row2", "row3", "s", "t", "u1", "x", "y", "1", "2", "5")
COUNTS = ("1", "2", "3", "4", "5", "7", "10", "20", "50", "100")
SIGNED = ("-5", "-1", "0", *COUNTS)
UUIDS = tuple(f"{byte:02x}000000-0000-1000-8000-000000000000" for byte in (0x10, 0x40, 0x80, 0xa0, 0xc0, 0xe0))
# Not recno: the numbers that `*` gives begin where the last tablet does, and tests count from 1.
ROWS_OF_TYPES = {
    **{name: TEXTS for name in ("bytes", "ascii", "utf8")}, "u8": COUNTS,
    **{name: (*COUNTS, "1000", "10000") for name in ("u16", "u32", "u64")}, "i8": SIGNED,
    **{name: (*SIGNED, "1000", "10000") for name in ("i16", "i32", "i64")},
    **{name: (*SIGNED, "0.5", "1.5") for name in ("f32", "f64")},
    **{name: UUIDS for name in ("uuid", "luuid", "timeuuid")}}


def is_on():
    return SETS > 0


def is_for(options, tests):
    """Whether a class of tests can have a cluster for its server."""
    kind, reason = exception_of(tests)
    if kind == SKIP:
        raise unittest.SkipTest(f"in a cluster: {reason}")
    return kind != ALONE and not {name.replace("_", "-") for name in options} & set(NOT_IN_A_CLUSTER)


HOOKS = Hooks() if is_on() else None
if is_on():
    print(f"cluster seed {SEED}", file=sys.stderr, flush=True)


def rows_of_source(test):
    """What rows the test's own text names."""
    try:
        source = inspect.getsource(type(test))
    except (OSError, TypeError):
        return []
    return sorted({row for row in re.findall(r"CPUT'?,? \S+ '?([A-Za-z0-9]{1,12})\b", source)})


class ClusterServer(CellarServer):
    """The process that a test knows of is its home, one of the nodes."""

    DIGEST = "DEBUG DIGEST CLUSTER"

    def __init__(self, options):
        self.fixed = True  # clients come to the home alone
        self.rng = random.Random(SEED)
        super().__init__(options=options)
        self.own_port = self.port
        self.ports = [self.own_port, *(free_port() for _ in range(SETS - 1))]
        shared = {"cluster-forward": "yes", "cluster-wait": 10_000, "cluster-admit": "yes", "replica-election-timeout": 1000,
                  "enable-debug-command": "yes", **self.options}
        shared.pop("appendonly", None)
        self.others = []
        self.folders = []
        self.home = self.rng.randrange(SETS)
        for port in self.ports[1:]:
            folder = tempfile.mkdtemp(prefix="cellar-other-")
            self.folders.append(folder)
            self.others.append(CellarServer(folder, port=port))
        # In the order of sets, or nearly: set 0 is the first.
        self.nodes = list(self.others)
        self.nodes.insert(self.home, self)
        first = self.nodes[0].own_port if self.nodes[0] is self else self.nodes[0].port
        for node in self.nodes:
            port = self.own_port if node is self else node.port
            node.options = {**shared, "port": port, "cluster-nodes": f"127.0.0.1:{port}"}
            if node is not self.nodes[0]:
                node.options["cluster-join"] = f"127.0.0.1:{first}"
        self.director = first
        self.founded = False
        self.test = None
        self.uncut = False  # as with ONE_TABLET
        self.calm = False  # as with CALM
        self.chaos = None
        HOOKS.keep(self)

    @property
    def port(self):
        """Where the next client comes to."""
        return self.own_port if self.fixed else self.rng.choice(self.ports)

    @port.setter
    def port(self, port):
        self.own_port = port

    def is_running(self):
        return self.founded and all(node.process is not None and node.process.poll() is None for node in self.nodes)

    def ran(self, port):
        pass

    def before(self, port, _, commands):
        for words in commands:
            if head_of(words) == b"debug reload":
                raise unittest.SkipTest("in a cluster: DEBUG RELOAD is not allowed in a set")
            if is_for_all(words):
                for other in self.ports:
                    if other != port:
                        asked(other, words)

    def start(self):
        fixed, self.fixed = self.fixed, True
        for node in self.others:
            if node.process is None or node.process.poll() is not None:
                node.spawn()
        if self.process is None or self.process.poll() is not None:
            super().start()
        wait_until(self.is_ready, lambda: "a cluster\n" + "\n".join(node.log()[-2000:] for node in self.nodes), 0.005)
        self.founded = True
        self.fixed = fixed
        return self

    def is_ready(self):
        """All nodes know of all sets and who leads them. The first one founds the cluster."""
        try:
            if not self.founded and b"disabled" in asked(self.director, ("CLUSTER", "INFO")):
                asked(self.director, ("CLUSTER", "INIT"))
            for port in self.ports:
                with redis.Redis(port=port, socket_timeout=20) as client:
                    states = [dict(zip(*[iter(each)] * 2))[b"state"] for each in client.execute_command("CLUSTER SETS")]
                    if len(states) != SETS or not set(states) <= {b"ok", b"empty"}:
                        return False
        except (OSError, redis.RedisError):
            return False
        return True

    def set_up_test(self, test, method):
        self.attempt(test, method, lambda: None)

    def run_test(self, test, method):
        def run():
            self.begin_chaos(test)
            method()
        self.attempt(test, run, lambda: self.set_up_again(test))

    def attempt(self, test, method, before_again):
        """Again with tables of one tablet, if the contract has several of them refuse what the test does, and in chaos once
        more without it; if that does not help, the test is skipped."""
        while True:
            HOOKS.errors.clear()
            try:
                return method()
            except unittest.SkipTest:
                raise
            except Exception:
                refusal = refusal_of(HOOKS.errors)
                if refusal is None:
                    raise
                if self.uncut and (self.calm or not CHAOS):
                    raise unittest.SkipTest(f"in a cluster: {refusal}")
            self.stop_chaos()
            self.calm = self.uncut
            self.uncut = True
            with redis.Redis(port=self.director, socket_timeout=60) as client:
                for name in client.execute_command("KEYSPACE LIST"):
                    client.execute_command("SELECT", name)
                    for feed in client.execute_command("FEED LIST"):
                        client.execute_command("FEED DROP", feed)
                    for snapshot in client.execute_command("SNAPSHOT LIST"):
                        client.execute_command("SNAPSHOT DROP", snapshot)
                client.execute_command("SELECT", 0)
                for name in client.execute_command("KEYSPACE LIST"):
                    if not name.isdigit() and name != b"_cluster":
                        client.execute_command("KEYSPACE DROP", name)
                client.execute_command("FLUSHALL")
            before_again()

    @staticmethod
    def set_up_again(test):
        test.tearDown()
        test.setUp()

    def sub_test(self, made):
        return contextlib.nullcontext()  # what fails is seen by `attempt`

    def begin(self, test):
        """A test of this server begins: who comes where, and where its tables are cut."""
        kind, reason = exception_of(test)
        if test is not self.test:
            self.test, self.uncut, self.calm = test, False, False
        if kind == SKIP:
            raise unittest.SkipTest(f"in a cluster: {reason}")
        self.rng = random.Random(f"{SEED} {test.id()}")
        self.fixed = kind is not None and ONE_NODE in kind
        self.stop_chaos()
        asked(self.director, ("DEBUG", "CLUSTER", "CUT-TABLES", "OFF"))
        if not self.uncut and (kind is None or ONE_TABLET not in kind):
            told = asked(self.director, *(("DEBUG", "CLUSTER", "CUT-TABLES", *cut) for cut in self.cuts(test)))
            if b"-" in told:
                raise AssertionError(told)
        # A table that has to be in one piece is made so by setUp, mostly; then it may move.
        if not self.uncut:
            self.begin_chaos(test)

    def begin_chaos(self, test):
        kind, _ = exception_of(test)
        if not CHAOS or self.chaos is not None or self.calm or (kind is not None and CALM in kind):
            return
        moves = kind is None or STILL not in kind
        end = threading.Event()
        thread = threading.Thread(target=self.make_chaos, args=(end, self.rng.randrange(1 << 30), moves), daemon=True)
        self.chaos = (end, thread)
        thread.start()

    def cuts(self, test):
        """The type of a key, and where tables with such keys are cut."""
        named = rows_of_source(test)
        for kind, rows in ROWS_OF_TYPES.items():
            if rows is TEXTS and len(named) > 3 and self.rng.random() < 0.6:
                rows = named
            yield (kind, *self.rng.sample(rows, 3))
        yield ("bool", "true")

    def make_chaos(self, end, seed, moves):
        """Moves, splits and merges tablets until `end`; refusals are none of its business."""
        rng = random.Random(seed)
        while not end.is_set():
            try:
                with redis.Redis(port=rng.choice(self.ports), socket_timeout=60) as client:
                    _, tablets = client.execute_command("TABLET LIST")
                    tablets = [dict(zip(*[iter(tablet)] * 2)) for tablet in tablets]
                    tablet = rng.choice([each for each in tablets if not each[b"table"].startswith(b"_cluster/")])
                    choice = rng.random() if moves else rng.uniform(0.4, 1)
                    if choice < 0.4:
                        client.execute_command("TABLET MOVE", tablet[b"table"], tablet[b"start"], "TO", rng.randrange(SETS), "WAIT", 300)
                    elif choice < 0.7:
                        row = rng.choice(TEXTS if rng.random() < 0.7 else SIGNED)
                        client.execute_command("TABLET SPLIT", tablet[b"table"], row)
                    else:
                        client.execute_command("TABLET MERGE", tablet[b"table"], tablet[b"start"])
            except (OSError, IndexError, redis.RedisError):
                pass
            end.wait(0.002)

    def stop_chaos(self):
        """What it has begun has ended then."""
        if self.chaos is not None:
            end, thread = self.chaos
            self.chaos = None
            end.set()
            thread.join()

    def kill(self):
        self.stop_chaos()
        for node in self.others:
            node.kill()
        super().kill()

    def stop(self):
        self.stop_chaos()
        for node in self.others:
            node.stop()
        return super().stop()

    def close(self):
        HOOKS.leave(self)
        super().close()
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
