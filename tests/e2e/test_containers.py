"""conf/containers: the set that compose.yaml describes, on three network namespaces in place of three containers: the
configuration and the names are the file's."""

import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import redis

from cellar_server import ROOT, binary
from replica_machines import Machines, has_machines

FOLDER = os.path.join(ROOT, "conf", "containers")
PASSWORD = "a password"
SECONDS_MAX = 60


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def configuration():
    """As Docker would write it into a container."""
    text = read("compose.yaml").split("content: |\n")[1]
    lines = [line.strip() for line in text.splitlines()]
    return re.sub(r"\$\{CELLAR_PASSWORD(:\?[^}]*)?\}", f'"{PASSWORD}"', "\n".join(lines)) + "\n"


class Container:
    """A namespace that knows the three names; its volume is `directory`."""

    def __init__(self, machines, number, names):
        self.machines, self.number, self.host = machines, number, machines.ip(number)
        self.directory = tempfile.mkdtemp(prefix="cellar-container-")
        self.hosts = os.path.join("/etc/netns", machines.name(number))
        os.makedirs(self.hosts)
        with open(os.path.join(self.hosts, "hosts"), "w", encoding="utf-8") as file:
            file.writelines(f"{machines.ip(i)} {name}\n" for i, name in enumerate(names))
        self.config = self.directory + ".conf"
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(configuration().replace("/var/lib/cellar", self.directory))
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.machines.words(self.number) + [binary(), self.config],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def remove(self):
        self.kill()
        for directory in (self.directory, self.hosts):
            shutil.rmtree(directory, ignore_errors=True)
        os.remove(self.config)

    def run(self, *words):
        with redis.Redis(host=self.host, port=6479, password=PASSWORD, socket_timeout=5, decode_responses=True) as client:
            return client.execute_command(*words)

    def leads(self):
        try:
            return self.run("ROLE")[0] == "master"
        except redis.RedisError:
            return False


class ContainersTest(unittest.TestCase):
    def wait_until(self, condition, what):
        end = time.monotonic() + SECONDS_MAX
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def test_the_set_of_the_compose_file(self):
        if os.geteuid() != 0 or not has_machines():
            self.skipTest("no network namespaces here")
        names = re.search(r"^\s*cluster-nodes (.*)$", configuration(), re.M).group(1).replace(":6479", "").split()
        services = re.findall(r"^  (cellar-\d):\n    <<: \*node\n    hostname: (\S+)$", read("compose.yaml"), re.M)
        self.assertEqual([(name, name) for name in names], services)
        machines = self.enterContext(Machines(len(names)))
        containers = []
        for i in range(len(names)):
            containers.append(Container(machines, i, names))
            self.addCleanup(containers[-1].remove)
            containers[-1].start()
        self.wait_until(lambda: any(each.leads() for each in containers), "nobody leads")
        leader = next(each for each in containers if each.leads())
        leader.run("TABLE", "CREATE", "t", "FAMILY", "f")
        leader.run("CPUT", "t", "r", "f:a", "1")
        with self.assertRaises(redis.AuthenticationError):
            redis.Redis(host=leader.host, port=6479).execute_command("CGET", "t", "r", "f:a")
        # By name, as a client in the same network asks.
        self.assertEqual([names[leader.number], "6479"],
                         containers[0].run("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "any"))
        leader.kill()
        others = [each for each in containers if each is not leader]
        self.wait_until(lambda: any(each.leads() for each in others), "nobody leads behind it")
        second = next(each for each in others if each.leads())
        self.assertEqual("1", second.run("CGET", "t", "r", "f:a"))
        second.run("CPUT", "t", "r", "f:b", "2")
        # Its volume is lost.
        shutil.rmtree(leader.directory)
        os.mkdir(leader.directory)
        leader.start()
        self.wait_until(lambda: len([row for row in second.run("REPLICA", "LIST") if "voter" in str(row)]) == 3 and
                        "connected_slaves:2" in str(second.run("INFO", "replication")).replace("'", "").replace(" ", ""),
                        lambda: second.run("REPLICA", "LIST"))

    def test_what_the_image_is_made_of(self):
        """The package and its paths are those of this tree."""
        image = read("Dockerfile")
        self.assertIn("cellar_*.deb", image)
        self.assertIn('CMD ["cellar", "/etc/cellar/cellar.conf"]', image)
        self.assertIn("target: /etc/cellar/cellar.conf", read("compose.yaml"))


if __name__ == "__main__":
    unittest.main()
