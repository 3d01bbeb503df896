"""A Cellar server for one test: starts the binary on a free port with a directory of its own.

    with CellarServer(appendfsync="always") as server:
        server.client().execute_command("PING")
        server.kill(); server.start()          # kill -9, then recovery from the same directory

    class MyTest(CellarTest):                  # one server for the whole class
        OPTIONS = {"save": ""}
        def test_ping(self): self.assertTrue(self.redis.ping())

Options become command line arguments (`max_value_bytes=10` is `--max-value-bytes 10`; a list or tuple
gives several words, or use the name as in a configuration file in a dict). The binary is
build/cellar, or $CELLAR_BINARY; its io-threads are $CELLAR_IO_THREADS where a test does not say how
many. What the server says goes to a file, shown when a start fails. It does not judge anything
itself: tests do.
"""

import contextlib
import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import redis

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START_SECONDS_MAX = 120  # sanitizer builds on a busy machine are slow; a start that failed is seen at once
PORTS = (12_000, 32_000)  # below those that Linux gives to connections
AWAIT_SECONDS_MAX = 600  # a hang must end; however busy the machine is, no wait comes near it


def binary():
    """The server under test."""
    return os.environ.get("CELLAR_BINARY", os.path.join(ROOT, "build", "cellar"))


def is_sanitized():
    """Whether the server under test is one of `make asan` or `make tsan`, whose memory is not its own."""
    return os.path.basename(os.path.dirname(os.path.realpath(binary()))) in ("asan", "tsan")


def tool(name):
    """A program built beside the server, for example `cellar-import`."""
    return os.path.join(os.path.dirname(os.path.realpath(binary())), name)


# A small process, because what a process took before it became another program counts as taken by that.
MEASURED_RUN = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, flush=True)
"""


def measured_run(words, timeout):
    """Runs a program; its status, what it has written to its standard error, and the KiB that it took at most."""
    done = subprocess.run([sys.executable, "-c", MEASURED_RUN, *words], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=timeout, check=True)
    status, kib = done.stdout.split()[-2:]
    return int(status), done.stderr.decode("utf-8", "replace"), int(kib)


class Ports:
    """Those that this process has given out, for good: no other process of tests is given one of them until this one
    ends. A byte of a file is locked for each."""

    def __init__(self):
        self.given = set()
        path = os.path.join(tempfile.gettempdir(), f"cellar-test-ports-{os.getuid()}")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, port):
        """Whether it is this process's now."""
        if port in self.given:
            return False
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
        self.given.add(port)
        return True


TAKEN = Ports()


def free_port():
    """A TCP port that nobody listens on at the moment, and that neither the system gives to a connection by itself nor
    another test to a server: it must still be free when a server begins there, or begins again."""
    while True:
        port = random.SystemRandom().randrange(*PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if TAKEN.take(port):
                return port


def free_ports(count):
    """So many of them, one behind the other."""
    while True:
        first = free_port()
        ports = list(range(first, first + count))
        for port in ports[1:]:
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                if TAKEN.take(port):
                    continue
            break
        else:
            return ports


def wait_until(holds, what="", pause=0.01):
    """Waits until `holds()` is true, however long that takes on a busy machine, and returns what it returned. `what` is
    told when it never is: a text, or a function that makes one."""
    deadline = time.monotonic() + AWAIT_SECONDS_MAX
    while not (held := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"it never came to this: {what() if callable(what) else what}")
        time.sleep(pause)
    return held


def begin_snapshot(client):
    """BGSAVE, behind one that is under way: the server begins some by itself, for a follower or where its disk is full."""
    def begun():
        try:
            return client.execute_command("BGSAVE")
        except redis.ResponseError as error:
            if "already in progress" not in str(error):
                raise
            return None
    return wait_until(begun, "no snapshot is under way")


class CellarServer:
    """One server process. `directory` is kept if it was given, removed at the end if not."""

    DIGEST = "DEBUG DIGEST"  # of all rows that there are

    def __init__(self, directory=None, port=None, config=None, options=None, **more_options):
        self.owns_directory = directory is None
        self.directory = directory or tempfile.mkdtemp(prefix="cellar-test-")
        self.port = port or free_port()
        self.config = config
        self.options = dict(options or {})
        self.options.update({name.replace("_", "-"): v for name, v in more_options.items()})
        self.log_path = os.path.join(self.directory, "server.output")
        self.process = None
        self.environment = dict(os.environ)
        self.host = "127.0.0.1"
        self.within = []  # what the command line begins with, as to run on another machine

    def arguments(self):
        """The command line of the server."""
        words = [*self.within, binary()]
        if self.config:
            words.append(self.config)
        options = {"port": self.port, "bind": self.host, "dir": self.directory,
                   "create-dir": "yes"}
        if "CELLAR_IO_THREADS" in os.environ:
            options["io-threads"] = os.environ["CELLAR_IO_THREADS"]
        options.update(self.options)
        for name, value in options.items():
            words.append("--" + name)
            words += [str(v) for v in value] if isinstance(value, (list, tuple)) else [str(value)]
        return words

    def spawn(self):
        """Starts the process without waiting until it answers."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.arguments(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment)
        return self

    def start(self):
        """Starts the process and waits until it serves (not `LOADING`)."""
        self.spawn()
        deadline = time.monotonic() + START_SECONDS_MAX
        pause = 0.01
        while True:
            if self.process.poll() is not None:
                raise AssertionError(f"the server left with status {self.process.returncode}:\n{self.log()}")
            try:
                with self.probe() as probe:
                    probe.settimeout(START_SECONDS_MAX)
                    probe.sendall(b"*1\r\n$4\r\nPING\r\n")
                    answer = probe.recv(200)
                    if answer and not answer.startswith(b"-LOADING"):
                        return self
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise AssertionError(f"the server did not begin to serve:\n{self.log()}")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.2)

    def probe(self):
        """A connection that is asked whether the server serves."""
        return socket.create_connection((self.host, self.port), timeout=5)

    def log(self):
        """All that the server has printed."""
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def client(self, **options):
        """A new redis-py client of this server; values come as bytes."""
        return redis.Redis(host=self.host, port=self.port, **options)

    def connect(self):
        """A plain socket to the server."""
        return socket.create_connection((self.host, self.port), timeout=START_SECONDS_MAX)

    def kill(self):
        """kill -9, as a crash."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        """SIGTERM; returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=START_SECONDS_MAX)

    def restart(self):
        """Orderly stop and start on the same directory and port."""
        self.stop()
        return self.start()

    def crash(self):
        """kill -9 and start on the same directory and port."""
        self.kill()
        return self.start()

    def begin(self, test):
        """A test on this server begins."""

    def set_up_test(self, _, method):
        """Runs the setUp of a test on this server."""
        method()

    def run_test(self, _, method):
        """Runs a test on this server."""
        method()

    def sub_test(self, made):
        """What a test does its part in."""
        return made

    def settle(self):
        """Waits until what clients have been told of is known here, which is at once but on a follower."""

    def close(self):
        """Ends the process and removes the directory if it is ours."""
        self.kill()
        if self.owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.close()


def passes_on():
    """Whether the server of a class of tests may pass on what it is sent: CELLAR_FOLLOWER, CELLAR_CLUSTER."""
    return "CELLAR_FOLLOWER" in os.environ or "CELLAR_CLUSTER" in os.environ


def not_on_a_follower(reason):
    """Skips a test, or a class of tests, with CELLAR_FOLLOWER or CELLAR_CLUSTER."""
    return unittest.skipIf(passes_on(), f"on a follower: {reason}")


def not_with_local_reads(reason):
    """Skips a test, or a class of tests, with CELLAR_FOLLOWER=local."""
    return unittest.skipIf(os.environ.get("CELLAR_FOLLOWER") == "local", f"on a follower that reads: {reason}")


def shared_server(options, tests):
    """The server of a class of tests; with CELLAR_FOLLOWER one that does not lead its set, with CELLAR_CLUSTER a cluster,
    where that can be."""
    if "CELLAR_CLUSTER" in os.environ:
        import cluster_server  # it needs this module
        if cluster_server.is_for(options, tests):
            return cluster_server.ClusterServer(options)
    if "CELLAR_FOLLOWER" in os.environ:
        import follower_set  # it needs this module
        if follower_set.can_follow(options):
            return follower_set.FollowerServer(options)
    return CellarServer(options=options)


class ServedTest(unittest.TestCase):
    """Base of tests whose class has one server, if it has one."""

    server = None

    def _callSetUp(self):
        if self.server is None:
            super()._callSetUp()
        else:
            self.server.set_up_test(self, self.setUp)

    def _callTestMethod(self, method):
        if self.server is None:
            super()._callTestMethod(method)
        else:
            self.server.run_test(self, method)

    def subTest(self, *args, **words):
        made = super().subTest(*args, **words)
        return made if self.server is None else self.server.sub_test(made)


class CellarTest(ServedTest):
    """Base of tests that share one server; keyspaces are emptied before each test."""

    OPTIONS = {}

    @classmethod
    def setUpClass(cls):
        cls.server = shared_server(cls.OPTIONS, cls)
        cls.addClassCleanup(cls.server.close)
        cls.server.start()

    def setUp(self):
        self.server.begin(self)
        self.redis = self.server.client()
        self.addCleanup(self.redis.close)
        self.redis.execute_command("FLUSHALL")

    def run_command(self, *words):
        """One command as a list of words; errors come back as exceptions of redis-py."""
        return self.redis.execute_command(*words)
