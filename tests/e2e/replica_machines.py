"""A replica set on machines of its own: network namespaces behind one bridge, whose ways to each other can be cut.

    with Machines(3) as machines:
        nodes = [SetNode(test, machines.ip(i), machines, i) for i in range(3)]
        machines.cut(0, 1)      # what 0 sends to 1 is lost; not the other way
        machines.heal()
        machines.slow_down(0, 80)

Needs root. Without namespaces all nodes are on this machine's loopback, and cannot be cut off.
"""

import itertools
import os
import subprocess

NOWHERE = "02:00:00:00:00:01"  # a MAC address that nobody has


def run(*words):
    subprocess.run(words, check=True, capture_output=True)


class Machines:
    made = itertools.count()

    def __init__(self, count):
        self.count = count
        pid, number = os.getpid(), next(Machines.made)
        self.tag = f"c{pid}n{number}"  # what was removed may not have gone yet
        self.net = f"10.{64 + (pid + number) % 128}.{pid // 128 % 256}"
        self.cuts = set()

    def name(self, i):
        return f"{self.tag}-{i}"

    def ip(self, i):
        return f"{self.net}.{i + 1}"

    def __enter__(self):
        try:
            self.make()
        except (OSError, subprocess.CalledProcessError):
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def make(self):
        run("ip", "link", "add", self.tag, "type", "bridge")
        run("ip", "addr", "add", f"{self.net}.254/24", "dev", self.tag)
        run("ip", "link", "set", self.tag, "up")
        for i in range(self.count):
            run("ip", "netns", "add", self.name(i))
            run("ip", "link", "add", f"{self.tag}v{i}", "type", "veth", "peer", "name", "eth0", "netns", self.name(i))
            run("ip", "link", "set", f"{self.tag}v{i}", "master", self.tag, "up")
            run("ip", "-n", self.name(i), "addr", "add", f"{self.ip(i)}/24", "dev", "eth0")
            run("ip", "-n", self.name(i), "link", "set", "eth0", "up")
            run("ip", "-n", self.name(i), "link", "set", "lo", "up")

    def remove(self):
        for i in range(self.count):
            subprocess.run(("ip", "netns", "del", self.name(i)), check=False, capture_output=True)
        subprocess.run(("ip", "link", "del", self.tag), check=False, capture_output=True)

    def words(self, i):
        """What a command line begins with that runs there."""
        return ["ip", "netns", "exec", self.name(i)]

    def cut(self, sender, receiver):
        """Silently: what is sent goes to nobody."""
        run("ip", "-n", self.name(sender), "neigh", "replace", self.ip(receiver), "lladdr", NOWHERE, "nud", "permanent",
            "dev", "eth0")
        self.cuts.add((sender, receiver))

    def cut_off(self, i, others=None):
        """Both ways, from all others."""
        for other in range(self.count) if others is None else others:
            if other != i:
                self.cut(i, other)
                self.cut(other, i)

    def slow_down(self, sender, mbit):
        """What it sends leaves at so many Mbit/s at most, all together. OSError or CalledProcessError: not here."""
        run("tc", "-n", self.name(sender), "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", f"{mbit}mbit",
            "burst", "256kb", "latency", "100ms")

    def heal(self):
        for sender, receiver in self.cuts:
            run("ip", "-n", self.name(sender), "neigh", "del", self.ip(receiver), "dev", "eth0")
        self.cuts.clear()


def has_machines():
    try:
        with Machines(2):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
