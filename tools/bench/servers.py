"""The servers under measurement: started pinned to one core, on a free port, in a directory of their own.

A Server is a context manager. Both kinds are started with the same sort of options (no save points;
the log off, or on with `everysec`), so that a difference is theirs and not the configuration's.
"""

import mmap
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import redis

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START_SECONDS_MAX = 300
SERVER_CORE = "0"
CLIENT_CORE = "1"


WARMED_BYTES = 512 << 20


def warm_memory():
    """Touches memory and gives it back, so that a server that grows in the next second gets memory
    that a virtual machine's host has backed already. Else the host may take 5 ms for a huge page,
    which would be counted as the server's CPU time: 13 times in a second of CPUT. As many bytes as
    the server will need are too few: the kernel hands out huge pages that lie alone before it breaks
    larger blocks, where those that were just given back may be. A gibibyte is too much: the host took
    that back in one stroke, which stopped a processor for 20 ms."""
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) for line in file if line.startswith("MemAvailable:")) * 1024
    size = min(WARMED_BYTES, available // 4)
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, size, 4096):
            memory[at] = 1


def pinned(core, words):
    """The command line `words`, tied to a core; as it is on a machine without one to spare."""
    if shutil.which("taskset") and (os.cpu_count() or 1) > 1:
        return ["taskset", "-c", core] + words
    return words


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def valkey_binary():
    """valkey-server of the checkout that the variable VALKEY names, built if it is not yet; None without the variable."""
    checkout = os.environ.get("VALKEY")
    if not checkout:
        return None
    binary = os.path.join(os.path.abspath(checkout), "src", "valkey-server")
    if not os.access(binary, os.X_OK):
        if not os.path.isfile(os.path.join(checkout, "src", "valkey-cli.c")):
            sys.exit(f"VALKEY={checkout}: no checkout of Valkey is there")
        print(f"building {binary}", file=sys.stderr)
        words = ["make", "-C", os.path.join(checkout, "src"), f"-j{os.cpu_count()}", "BUILD_TLS=yes", "valkey-server"]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"VALKEY={checkout}: the build failed\n{done.stdout[-2000:]}")
    return binary


def redis_binary():
    """What is compared with: Valkey of VALKEY's checkout if one is named, else Debian's server; None without either."""
    return valkey_binary() or shutil.which("valkey-server") or shutil.which("redis-server")


def cellar_binary():
    return os.environ.get("CELLAR_BINARY", os.path.join(ROOT, "build", "cellar"))


def benchmark_binary():
    return os.environ.get("CELLAR_BENCHMARK", os.path.join(ROOT, "build", "cellar-benchmark"))


class Server:
    """One server process. `kind` is "cellar" or "redis"; `log` is None or an appendfsync policy."""

    def __init__(self, kind, log=None, wrapper=(), options=(), pin=True, binary=None):
        self.kind = kind
        self.log = log
        self.wrapper = list(wrapper)  # words before the server's own, for example valgrind
        self.options = list(options)
        self.pin = pin  # False: all cores, for servers whose threads are what is measured
        self.binary = binary or (cellar_binary() if kind == "cellar" else redis_binary())
        self.port = free_port()
        self.directory = tempfile.mkdtemp(prefix=f"cellar-bench-{kind}-")
        self.process = None

    @property
    def name(self):
        return self.kind + ("+log" if self.log else "")

    @property
    def pid(self):
        return self.process.pid

    def words(self):
        # Not --create-dir: Redis has no such option, nor has an older Cellar that is measured beside.
        with open(os.path.join(self.directory, "cellar.new"), "wb"):
            pass
        words = [self.binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory,
                 "--save", "", "--appendonly", "yes" if self.log else "no"]
        if self.log:
            words += ["--appendfsync", self.log]
        return words + self.options

    def start(self):
        with open(os.path.join(self.directory, "output"), "ab") as output:
            words = self.wrapper + self.words()
            self.process = subprocess.Popen(
                pinned(SERVER_CORE, words) if self.pin else words, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output)
        end = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {self.output()}")
            try:
                self.client().ping()
                return self
            except (redis.exceptions.ConnectionError, redis.exceptions.BusyLoadingError):
                time.sleep(0.005)
        raise RuntimeError(f"{self.name} does not answer: {self.output()}")

    def output(self):
        with open(os.path.join(self.directory, "output"), errors="replace") as file:
            return file.read()[-2000:]

    def client(self):
        return redis.Redis(port=self.port, socket_timeout=600)

    def stop(self, sign=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(sign)
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def cpu_seconds(self):
        """User and system time of all its threads so far, by the process's CPU clock (clock_getcpuclockid(3))."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def resident_bytes(self):
        with open(f"/proc/{self.pid}/status") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")

    def __enter__(self):
        return self.start()

    def __exit__(self, *unused):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
