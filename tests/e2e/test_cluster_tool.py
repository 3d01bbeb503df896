"""cellar-cluster: sets on this machine begun, looked at, ended; what is wrong is named."""

import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import redis

from cellar_server import CellarServer, binary, free_port, free_ports, tool, wait_until
from replica_sets import has_sets

SYSTEMCTL = """#!/bin/sh
# Units that are processes of {folder}: what cellar-cluster asks of systemd, and no more.
for unit; do :; done
name=${{unit#cellar@}}
name=${{name%.service}}
pid={folder}/$name.pid
echo "$@" >>{folder}/asked
case $1 in
  is-active) [ -e "$pid" ] && kill -0 "$(cat "$pid")" 2>/dev/null ;;
  is-failed) exit 1 ;;
  enable) mkdir -p {folder}/data/$name
    setsid {server} {folder}/etc/$name.conf --dir {folder}/data/$name >>{folder}/$name.log 2>&1 </dev/null &
    echo $! >"$pid" ;;
  disable) kill "$(cat "$pid")"; while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.05; done; rm "$pid" ;;
esac
"""


@unittest.skipUnless(has_sets()[0], "this build has no replica sets")
class ClusterToolCase(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="cellar-cluster-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.folder = os.path.join(self.root, "cluster")
        self.environment = {**os.environ, "LC_ALL": "C"}

    def run_tool(self, *words, status=0):
        """What it prints: its output, or, where it must fail, its one line of complaint."""
        done = subprocess.run([tool("cellar-cluster"), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, env=self.environment, cwd=self.root)
        self.assertEqual(status, done.returncode, (words, done.stdout, done.stderr))
        if done.stderr:
            self.assertRegex(done.stderr, r"\Acellar-cluster: [^\n]+\n\Z", words)
            self.assertNotEqual(0, status)
            return done.stderr
        return done.stdout

    def start(self, *words, sets=2, voters=1, status=0):
        """Begins a cluster; its ports."""
        ports = free_ports(sets * voters)
        self.addCleanup(self.end)
        self.run_tool("start", "--dir", self.folder, "--server", binary(), "--sets", str(sets), "--voters", str(voters),
                      "--port", str(ports[0]), "--option", "save ''", "--wait", "500", *words, status=status)
        return ports

    def end(self):
        # Who stands still does not end.
        for file in glob.glob(os.path.join(self.folder, "*", "cellar.pid")):
            with open(file, encoding="ascii") as text:
                for pid in text.read().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGCONT)
        subprocess.run([tool("cellar-cluster"), "stop", "--dir", self.folder], stdin=subprocess.DEVNULL, capture_output=True,
                       check=False, env=self.environment)

    def pid(self, port):
        name = next(each for each in os.listdir(self.folder) if each.endswith(f"-{port}"))
        with open(os.path.join(self.folder, name, "cellar.pid"), encoding="ascii") as file:
            return int(file.read())

    def status(self, *words, status=0):
        return json.loads(self.run_tool("status", "--json", *(words or ("--dir", self.folder)), status=status))

    def run_once_more(self, *words, status=0):
        return self.run_tool("start", "--dir", self.folder, "--server", binary(), "--wait", "500", *words, status=status)

    def run_any(self, *words):
        done = subprocess.run([tool("cellar-cluster"), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, env=self.environment)
        return done.returncode, done.stdout


class Starting(ClusterToolCase):
    def test_a_cluster_begins_is_looked_at_and_ends(self):
        ports = self.start(sets=3)
        client = redis.Redis(port=ports[2], decode_responses=True)
        client.execute_command("TABLE", "CREATE", "t", "SPLIT", "AT", "2", "h", "p", "FAMILY", "f")
        for row in "ajz":
            client.execute_command("CPUT", "t", row, "f:x", row)
        for port in ports:
            told = self.status("-p", str(port))
            self.assertEqual(([0, 1, 2], []), ([each["set"] for each in told["sets"]], told["wrong"]))
            self.assertEqual([f"127.0.0.1:{each}" for each in ports], [each["leader"] for each in told["sets"]])
            text = self.run_tool("map", "t", "-p", str(port))
            self.assertRegex(text, r"(?m)^t +\(first\) +h +0 ")
            self.assertRegex(text, r"(?m)^t +p +\(last\) +2 ")
        told = json.loads(self.run_tool("map", "--dir", self.folder, "--json", "--count", "2"))
        self.assertEqual((True, 2), (told["more"], len(told["tablets"])))
        events = self.run_tool("events", "-p", str(ports[1]))
        self.assertIn("set 0 begins a cluster  (CLUSTER INIT)", events.splitlines()[-1])
        self.assertEqual(1, len(json.loads(self.run_tool("events", "-p", str(ports[1]), "--json", "--count", "1"))))
        text = self.run_tool("status", "-p", str(ports[0]))
        self.assertIn("3 sets with 3 nodes: all is well", text)
        self.assertRegex(text, rf"(?m)^set 0  ok  \d+ tablets, [0-9.]+K, 127.0.0.1:{ports[0]} leads and directs$")
        self.assertIn("no table 'x'", self.run_tool("map", "x", "-p", str(ports[0]), status=1))

        top = subprocess.run([tool("cellar-top"), "-p", str(ports[1]), "--once", "-i", "0.1", "--sets"], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, check=True).stdout
        self.assertRegex(top, rf"(?m)^2 +ok +127.0.0.1:{ports[2]} +1 of 1 +1 ")
        self.assertRegex(top, r"(?m)^0/t +3  0: 1, 1: 1, 2: 1$")
        self.assertRegex(top, rf"(?m)^1 +127.0.0.1:{ports[1]} +voter +leader ")
        self.assertRegex(top, "(?m)^cut      none, none by itself$")
        client.execute_command("FEED", "CREATE", "log", "TABLE", 1, "t")
        client.execute_command("CLUSTER", "CONFIG", "SET", "cluster-cut-interval", 3600)
        cut = client.execute_command("CLUSTER", "CUT")
        client.execute_command("BACKUP", "START")
        top = subprocess.run([tool("cellar-top"), "-p", str(ports[1]), "--once", "-i", "0.1", "--sets"], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, check=True).stdout
        self.assertRegex(top, rf"(?m)^cut      {cut}, restore point, (now|[0-9]+m [0-9]+s ago); one every 3600 s$")
        self.assertRegex(top, r"(?m)^backup   (pending|snapshotting|incrementing), begun ")
        self.assertRegex(top, r"(?m)^log, set [0-9]+ +0 +[0-9.]+[BKM] +(now|[0-9]+m [0-9]+s ago)")

        again = self.run_once_more()
        self.assertEqual(3, again.count("stands already"))
        self.assertIn("3 nodes stopped", self.run_tool("stop", "--dir", self.folder))
        self.assertEqual("nothing runs\n", self.run_tool("stop", "--dir", self.folder))
        self.assertIn("none of the cluster's nodes answers", self.run_tool("status", "--dir", self.folder, status=1))
        # What was there is there again, at the same places.
        self.run_once_more("--quiet")
        self.assertEqual(["a", "j", "z"], [redis.Redis(port=ports[0], decode_responses=True).execute_command("CGET", "t", row, "f:x")
                                           for row in "ajz"])

    def test_a_start_that_is_broken_off_goes_on_later(self):
        self.addCleanup(self.end)
        words = ("--sets", "3", "--voters", "3", "--port", str(free_ports(9)[0]), "--dir", self.folder, "--server", binary())
        for turn in range(3):
            begun = subprocess.Popen([tool("cellar-cluster"), "start", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            begun.stdout.readline()  # the folder is its own by now
            if turn == 0:  # it waits for leaders
                begun.send_signal(signal.SIGSTOP)
                self.assertIn("another cellar-cluster is at work there", self.run_tool("stop", "--dir", self.folder, status=1))
                begun.send_signal(signal.SIGCONT)
            begun.send_signal(signal.SIGINT)
            said = begun.communicate()[1]
            self.assertIn(begun.returncode, (0, 1))
            self.assertTrue(begun.returncode == 0 or "broken off; what was begun runs on" in said, said)
        self.run_once_more("--quiet")
        self.assertEqual([0, 1, 2], [each["set"] for each in self.status()["sets"]])

    def test_more_sets_come_later(self):
        ports = free_ports(3)
        self.addCleanup(self.end)
        words = ("--sets", "2", "--port", str(ports[0]))
        self.run_once_more(*words)
        self.assertIn("set 2: admitted", self.run_once_more("--sets", "3"))
        self.assertEqual([0, 1, 2], [each["set"] for each in self.status()["sets"]])
        self.assertIn("has 3 sets, and start takes none away", self.run_once_more("--sets", "2", status=1))

    def test_three_voters_and_a_password(self):
        path = os.path.join(self.root, "secret")
        with open(path, "w", encoding="ascii") as file:
            file.write('pa "ss\\1\n')
        ports = self.start("--auth-file", path, voters=3)
        self.assertIn("NOAUTH", self.run_tool("status", "-p", str(ports[0]), status=1))
        self.assertIn("WRONGPASS", self.run_tool("status", "--dir", self.folder, "-a", "x", status=1))
        self.assertIn("NOAUTH", self.run_once_more(status=1))
        secret = ("--dir", self.folder, "--auth-file", path)
        told = self.status(*secret)
        self.assertEqual(([3, 3], []), ([len(each["nodes"]) for each in told["sets"]], told["wrong"]))
        victim = int(told["sets"][1]["leader"].rsplit(":", 1)[1])
        os.kill(self.pid(victim), signal.SIGKILL)
        wait_until(lambda: self.status(*secret, status=1)["sets"][1]["leader"] not in ("", f"127.0.0.1:{victim}"))
        told = self.status(*secret, status=1)
        self.assertIn(f"127.0.0.1:{victim} of set 1 does not answer: Connection refused", told["wrong"])
        self.assertRegex(self.run_tool("status", *secret, status=1),
                         rf"(?s)see below.*{victim} +voter +Connection refused.*What is wrong:\n  127.0.0.1:{victim} of set 1 does not")
        self.assertIn(f"set 1: 1 of 3 begun: 127.0.0.1:{victim}\n", self.run_once_more("--auth-file", path))
        self.assertEqual([], self.status(*secret)["wrong"])
        # A set without a majority, seen from another one.
        for port in ports[3:]:
            os.kill(self.pid(port), signal.SIGKILL)
        wait_until(lambda: any("set 1 has no leader" in each for each in self.status(*secret, status=1)["wrong"]))

    def test_a_user_who_only_looks(self):
        ports = self.start()
        client = redis.Redis(port=ports[0])
        client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        client.execute_command("ACL", "SETUSER", "eye", "on", ">pw", "+ping", "+info", "+cluster|sets", "+cluster|events", "+tablet|list",
                               "+replica|list", "%R~*")
        eye = ("--dir", self.folder, "--user", "eye", "-a", "pw")
        wait_until(lambda: self.run_any("status", *eye)[0] == 0)  # users come to the other set, too
        self.assertIn("2 sets with 2 nodes: all is well", self.run_tool("status", *eye))
        self.assertIn("The map was not checked: this user may not.\n", self.run_tool("status", *eye))
        self.assertEqual(("0/t", "CLUSTER INIT"), (json.loads(self.run_tool("map", *eye, "--json"))["tablets"][-1]["table"],
                                                   json.loads(self.run_tool("events", *eye, "--json"))[-1]["why"]))
        client.execute_command("ACL", "SETUSER", "eye", "-cluster|sets")
        wait_until(lambda: self.run_any("status", *eye)[0] == 1)
        self.assertIn("NOPERM", self.run_tool("status", *eye, status=1))

    def test_units_of_systemd(self):
        programs = os.path.join(self.root, "bin")
        os.mkdir(programs)
        path = os.path.join(programs, "systemctl")
        with open(path, "w", encoding="ascii") as file:
            file.write(SYSTEMCTL.format(folder=self.root, server=binary()))
        os.chmod(path, 0o755)
        self.environment["PATH"] = programs + ":" + self.environment["PATH"]
        self.folder = os.path.join(self.root, "etc")
        os.mkdir(self.folder)
        with open(os.path.join(self.folder, "cellar.conf"), "w", encoding="ascii"):
            pass  # other things are there, too
        ports = self.start("--systemd")
        self.assertEqual([], self.status()["wrong"])
        names = [f"set-{number}-{port}" for number, port in enumerate(ports)]
        self.assertEqual(sorted(["cellar.conf", "cluster.json", *(name + ".conf" for name in names)]), sorted(os.listdir(self.folder)))
        with open(os.path.join(self.folder, names[1] + ".conf"), encoding="ascii") as file:
            text = file.read()
        self.assertIn(f"\ndir /var/lib/cellar/{names[1]}\n", text)
        self.assertNotIn("logfile", text)
        self.assertEqual(2, self.run_once_more().count("stands already"))
        self.assertIn("2 nodes stopped", self.run_tool("stop", "--dir", self.folder))
        with open(os.path.join(self.root, "asked"), encoding="ascii") as file:
            asked = file.read()
        for name in names:
            self.assertIn(f"enable --now --no-block --quiet cellar@{name}.service\n", asked)
            self.assertIn(f"disable --now --quiet cellar@{name}.service\n", asked)


class Wrong(ClusterToolCase):
    def test_ports_that_are_in_use(self):
        first = free_ports(2)[0]
        with socket.create_server(("127.0.0.1", first + 1)):
            said = self.run_once_more("--sets", "2", "--port", str(first), status=1)
        self.assertIn(f"port {first + 1}, of set-1-{first + 1}, is in use by another program", said)
        self.assertFalse(os.path.exists(self.folder))  # nothing was begun

    def test_addresses_that_nobody_reaches(self):
        for host, said in (("0.0.0.0", "an address at which others reach it"), ("a@b", "no zone here"), ("x y", "is no machine"),
                           ("192.0.2.77", "nodes take nobody without a password")):
            self.assertIn(said, self.run_once_more("--host", host, status=1))
        self.assertIn("cannot be listened on", self.run_once_more("--host", "203.0.113.77", "-a", "x", status=1))
        self.assertIn("is no address of this machine", self.run_once_more("--host", "nowhere.invalid", "-a", "x", status=1))
        self.assertFalse(os.path.exists(self.folder))

    def test_a_name_for_this_machine(self):
        self.addCleanup(self.end)
        ports = free_ports(2)
        self.run_once_more("--sets", "2", "--host", "localhost", "--port", str(ports[0]))
        self.assertEqual([], self.status()["wrong"])

    def test_folders_of_others(self):
        os.mkdir(self.folder)
        with open(os.path.join(self.folder, "file"), "w", encoding="ascii"):
            pass
        self.assertIn("holds other things", self.run_once_more(status=1))
        self.assertIn("is the folder of no cluster", self.run_tool("stop", "--dir", self.folder, status=1))
        self.assertIn("is the folder of no cluster", self.run_tool("status", "--dir", "none", status=1))
        self.folder = os.path.join(self.folder, "file")
        self.assertIn("is no folder", self.run_once_more(status=1))
        self.folder = os.path.join(self.root, "damaged")
        os.mkdir(self.folder)
        for text in ("", "{}", "[1]", '{"sets":0,"voters":1,"host":"h","port":1,"systemd":false,"id":""}',
                     '{"sets":3,"voters":1,"host":"h","port":-1,"systemd":false,"id":""}', "x" * 10_000):
            with open(os.path.join(self.folder, "cluster.json"), "w", encoding="ascii") as file:
                file.write(text)
            for action in ("start", "stop", "status"):
                self.assertIn("cluster.json: is no note of a cluster", self.run_tool(action, "--dir", self.folder, status=1))

    def test_a_folder_of_another_cluster(self):
        ports = self.start()
        for words, said in ((("--voters", "3"), "with --voters 1, and that stays"), (("--port", "1"), f"with --port {ports[0]}, and"),
                            (("--host", "127.0.0.2"), "with --host 127.0.0.1"), (("--systemd",), "nodes of its own, no units"),
                            (("--option", "save ''"), "--option is for nodes that are new")):
            self.assertIn(said, self.run_once_more(*words, status=1))
        note = os.path.join(self.folder, "cluster.json")
        with open(note, encoding="ascii") as file:
            told = json.load(file)
        with open(note, "w", encoding="ascii") as file:
            json.dump({**told, "id": "0123456789abcdef"}, file)
        self.assertIn("is the folder of another cluster: its set 0 was 0123456789abcdef", self.run_once_more(status=1))
        with open(note, "w", encoding="ascii") as file:
            json.dump(told, file)
        # The data of set 1's node comes to lie in set 0's folder, and the other way round.
        self.run_tool("stop", "--dir", self.folder)
        data = [os.path.join(self.folder, f"set-{number}-{port}", "data") for number, port in enumerate(ports)]
        os.rename(data[0], data[0] + ".old")
        os.rename(data[1], data[0])
        os.rename(data[0] + ".old", data[1])
        self.assertRegex(self.run_once_more(status=1), "set-0-.* has ended|another cluster")

    def test_nodes_that_do_not_begin(self):
        said = self.run_once_more("--option", "nonsense 3", "--port", str(free_ports(3)[0]), status=1)
        self.assertRegex(said, r"set-0-\d+ has ended: .*nonsense.*cellar\.log\)")
        self.folder += "2"
        said = self.run_tool("start", "--dir", self.folder, "--server", "/nowhere/cellar", "--port", str(free_ports(3)[0]), status=1)
        self.assertIn("/nowhere/cellar cannot be run: No such file", said)

    def test_nodes_that_stand_still(self):
        ports = self.start(sets=1, voters=3)
        for port in ports[1:]:
            os.kill(self.pid(port), signal.SIGSTOP)
        try:
            told = wait_until(lambda: (said := self.run_any("status", "--dir", self.folder, "--json"))[0] == 1 and
                              "has no leader" in said[1] and json.loads(said[1]))
            self.assertIn(f"127.0.0.1:{ports[1]} of set 0 does not answer: no answer in time", told["wrong"])
            self.assertRegex(self.run_tool("start", "--dir", self.folder, "--wait", "6", status=1),
                             "waited 6 s in vain for a leader of set 0: .*no answer in time")
            # The first of them, too: another one is asked, of those that answer.
            os.kill(self.pid(ports[0]), signal.SIGSTOP)
            os.kill(self.pid(ports[2]), signal.SIGCONT)
            self.assertIn("has no leader", self.run_tool("status", "--dir", self.folder, status=1))
            self.assertIn("no answer in time", self.run_tool("status", "-p", str(ports[0]), status=1))
        finally:
            for port in ports:
                os.kill(self.pid(port), signal.SIGCONT)

    def test_a_former_leader_that_nobody_follows(self):
        """It has logged what is committed nowhere: it says what it knows all the same, or that nobody leads."""
        for _ in range(3):
            ports = self.start(sets=1, voters=3)
            leader = wait_until(lambda ports=ports: next((port for port in ports if redis.Redis(port=port).info("replication")["role"] == "master"), None))
            others = [port for port in ports if port != leader]
            client = redis.Redis(port=leader, decode_responses=True)
            for port in others:
                os.kill(self.pid(port), signal.SIGSTOP)
            # A change of the schema that nobody else gets.
            changes = redis.Redis(port=leader, socket_timeout=1, retry=None)
            try:
                changes.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
            except redis.RedisError:
                pass
            def info(leader=leader):
                return redis.Redis(port=leader, socket_timeout=30).info("replication")
            wait_until(lambda info=info: info()["role"] != "master", lambda info=info: info())
            told = {}
            for words in (["CLUSTER", "SETS"], ["SELECT", "1"], ["TABLE", "LIST"], ["CLUSTER", "EVENTS"], ["TABLET", "LIST"], ["CLUSTER", "INFO"]):
                client = redis.Redis(port=leader, socket_timeout=60, retry=None, decode_responses=True)
                try:
                    told[" ".join(words)] = client.execute_command(*words)
                except redis.TimeoutError:
                    told[" ".join(words)] = "nothing"
                except redis.RedisError as error:
                    told[" ".join(words)] = str(error)
            self.assertNotIn("nothing", [value for value in told.values() if isinstance(value, str)], told)
            self.assertEqual(1, len(told["CLUSTER SETS"]), told)
            for words in ("SELECT 1", "TABLE LIST"):
                self.assertIn("no leader", told[words], told)
            self.assertIn("has no leader", self.run_tool("status", "-p", str(leader), status=1))
            for port in others:
                os.kill(self.pid(port), signal.SIGCONT)
            self.end()
            shutil.rmtree(self.folder, ignore_errors=True)

    def test_what_is_no_cluster(self):
        self.assertIn("Connection refused", self.run_tool("status", "-p", str(free_port()), status=1))
        with CellarServer(save="") as server:
            self.assertIn(f"127.0.0.1:{server.port} is a server of its own",
                          self.run_tool("status", "-p", str(server.port), status=1))
            for action in ("map", "events"):
                self.assertIn("cluster support disabled", self.run_tool(action, "-p", str(server.port), status=1))
        ports = free_ports(2)
        with CellarServer(save="", port=ports[0], cluster_nodes=f"127.0.0.1:{ports[0]}") as server:
            said = wait_until(lambda: "of a set" in (text := self.run_tool("status", "-p", str(ports[0]), status=1)) and text)
            self.assertIn("is of a set that is no cluster: CLUSTER INIT makes it one", said)
            wait_until(lambda: server.client(decode_responses=True).info("replication")["replica_state"] == "leader")
            wait_until(lambda: server.client().execute_command("CLUSTER", "INIT") == b"OK")
            with CellarServer(save="", port=ports[1], cluster_nodes=f"127.0.0.1:{ports[1]}", cluster_join=f"127.0.0.1:{ports[0]}"):
                said = wait_until(lambda: "of a set" in (text := self.run_tool("status", "-p", str(ports[1]), status=1)) and text)
                self.assertIn(f"waits to be taken in: CLUSTER ADMIT 127.0.0.1:{ports[1]} at a node of the cluster", said)
                wait_until(lambda: self.run_any("status", "-p", str(ports[0]))[0] == 1)
                self.assertIn(f"the set at 127.0.0.1:{ports[1]} waits to be taken in: CLUSTER ADMIT 127.0.0.1:{ports[1]}",
                              self.run_tool("status", "-p", str(ports[0]), status=1))

    def test_a_set_that_has_tables_is_not_taken_in(self):
        ports = free_ports(2)
        self.addCleanup(self.end)
        self.run_once_more("--sets", "1", "--port", str(ports[0]))
        # The second set was one of its own before.
        home = os.path.join(self.folder, f"set-1-{ports[1]}")
        os.makedirs(os.path.join(home, "data"))
        server = CellarServer(os.path.join(home, "data"), port=ports[1], cluster_nodes=f"127.0.0.1:{ports[1]}", save="")
        server.start()
        client = server.client(decode_responses=True)
        wait_until(lambda: client.info("replication")["replica_state"] == "leader")
        wait_until(lambda: client.execute_command("TABLE", "CREATE", "mine", "FAMILY", "f") == "OK")
        server.stop()
        self.assertIn("set 1 is not taken in: ERR the set is not empty: it has table 0/mine", self.run_once_more("--sets", "2", status=1))


class Plans(ClusterToolCase):
    def test_a_plan_is_files_that_servers_take(self):
        out = os.path.join(self.root, "out")
        text = self.run_tool("plan", "192.0.2.1@a", "192.0.2.2@b", "192.0.2.3@c", "--write", out, "-a", "secret")
        self.assertIn("set 1   192.0.2.2:6480 192.0.2.3:6480 192.0.2.1:6480\n", text)
        self.assertIn("redis-cli -h 192.0.2.1 -p 6479 CLUSTER ADMIT 192.0.2.2:6480\n", text)
        self.assertNotIn("Note:", text)
        self.assertEqual(["192.0.2.1", "192.0.2.2", "192.0.2.3"], sorted(os.listdir(out)))
        self.assertEqual(0o600, os.stat(os.path.join(out, "192.0.2.1", "set-0-6479.conf")).st_mode & 0o777)
        told = json.loads(self.run_tool("plan", "a", "b", "--sets", "4", "--voters", "2", "--json"))
        self.assertEqual((8, 2), (len(told["nodes"]), len(told["notes"])))
        # As they are, two sets on one machine are a cluster.
        ports = free_ports(2)
        self.run_tool("plan", "127.0.0.1", "--sets", "2", "--voters", "1", "--port", str(ports[0]), "--write", out)
        servers = [subprocess.Popen([binary(), f"set-{number}-{port}.conf"], cwd=os.path.join(out, "127.0.0.1"),
                                    stdout=subprocess.DEVNULL) for number, port in enumerate(ports)]
        try:
            client = redis.Redis(port=ports[0])
            wait_until(lambda: self.answer(client, "CLUSTER", "INIT") == b"OK")
            wait_until(lambda: self.answer(client, "CLUSTER", "ADMIT", f"127.0.0.1:{ports[1]}") == b"OK")
            wait_until(lambda: self.run_status(ports[1]) == 0)
        finally:
            for server in servers:
                server.terminate()
                server.wait()

    def run_status(self, port):
        return subprocess.run([tool("cellar-cluster"), "status", "-p", str(port)], stdin=subprocess.DEVNULL, capture_output=True,
                              check=False).returncode

    @staticmethod
    def answer(client, *words):
        try:
            return client.execute_command(*words)
        except redis.RedisError as error:
            return str(error)


if __name__ == "__main__":
    unittest.main()
