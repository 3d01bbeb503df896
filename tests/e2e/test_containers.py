"""conf/containers: the set that compose.yaml describes, on three network namespaces in place of three containers: the
configuration and the names are the file's."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import redis

from cellar_server import ROOT, binary, wait_until
from replica_machines import Machines, has_machines

FOLDER = os.path.join(ROOT, "conf", "containers")
PASSWORD = "a password"


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
        with redis.Redis(host=self.host, port=6479, password=PASSWORD, socket_timeout=60, decode_responses=True) as client:
            return client.execute_command(*words)

    def leads(self):
        try:
            return self.run("ROLE")[0] == "master"
        except redis.RedisError:
            return False


class ContainersTest(unittest.TestCase):
    def wait_until(self, condition, what):
        wait_until(condition, what)

    def lead(self, containers, *words):
        """Has whoever leads do it, again where another one leads by then; that one and its answer."""
        done = []

        def answered():
            for each in containers:
                try:
                    if each.leads():
                        done.append((each, each.run(*words)))
                        return True
                except redis.RedisError as error:
                    if "BUSYKEY" in str(error):  # it had been done before
                        done.append((each, "OK"))
                        return True
            return False
        self.wait_until(answered, f"nobody leads and does {words}")
        return done[-1]

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
        self.lead(containers, "TABLE", "CREATE", "t", "FAMILY", "f")
        leader, _ = self.lead(containers, "CPUT", "t", "r", "f:a", "1")
        with self.assertRaises(redis.AuthenticationError):
            redis.Redis(host=leader.host, port=6479).execute_command("CGET", "t", "r", "f:a")
        # By name, as a client in the same network asks.
        def named():
            """Whether it is who leads, or one that leads by then."""
            told = containers[0].run("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "any")
            return told in [[names[each.number], "6479"] for each in containers if each.leads()]
        self.wait_until(named, lambda: containers[0].run("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "any"))
        leader.kill()
        others = [each for each in containers if each is not leader]
        self.assertEqual("1", self.lead(others, "CGET", "t", "r", "f:a")[1])
        self.lead(others, "CPUT", "t", "r", "f:b", "2")
        # Its volume is lost.
        shutil.rmtree(leader.directory)
        os.mkdir(leader.directory)
        leader.start()

        def is_whole():
            leads, members = self.lead(containers, "REPLICA", "LIST")
            return sum("voter" in str(row) for row in members) == 3 and leads.run("INFO", "replication")["connected_slaves"] == 2
        self.wait_until(is_whole, lambda: self.lead(containers, "REPLICA", "LIST"))

    def test_what_the_image_is_made_of(self):
        """The package and its paths are those of this tree."""
        image = read("Dockerfile")
        self.assertIn("cellar_*.deb", image)
        self.assertIn('CMD ["cellar", "/etc/cellar/cellar.conf"]', image)
        self.assertIn("target: /etc/cellar/cellar.conf", read("compose.yaml"))
        self.assertIn("docker build -f conf/containers/Dockerfile -t cellar .", read("compose.yaml"))

    def test_what_goes_to_docker_is_all_that_the_package_is_built_of(self):
        self.assertIn("make build-deps && make -j\"$(nproc)\" deb", read("Dockerfile"))
        sent = [line[1:] for line in read("Dockerfile.dockerignore").splitlines() if line.startswith("!")]
        with tempfile.TemporaryDirectory() as folder:
            for name in sent:
                source = os.path.join(ROOT, name)
                if os.path.isdir(source):
                    shutil.copytree(source, os.path.join(folder, name))
                else:
                    shutil.copy(source, folder)
            planned = subprocess.run(["make", "--dry-run", "deb"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                                     text=True, check=False)
            self.assertEqual((0, ""), (planned.returncode, planned.stderr))
            self.assertIn("tools/deb.sh", planned.stdout)
            # What its scripts read beside that.
            for script in ("deb.sh", "install.sh", "libraft.sh", "deps.sh"):
                with open(os.path.join(folder, "tools", script), encoding="utf-8") as file:
                    for name in re.findall(r"(?<![\w/.])(?:conf|tools|include|tests|src)/[\w/.@-]+\w", file.read()):
                        self.assertTrue(os.path.exists(os.path.join(folder, name)), f"{script}: {name}")


if __name__ == "__main__":
    unittest.main()
