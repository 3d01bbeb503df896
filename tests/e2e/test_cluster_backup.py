"""BACKUP of a cluster, cellar-cluster backup and recover: one moment over all sets."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from unittest import mock

import redis

from cellar_server import binary, free_port
from cluster_sets import SetsCase, pairs
from object_server import KEY_ID, SECRET, ObjectServer
from replica_sets import Member

KILLS = int(os.environ.get("CELLAR_BACKUP_KILLS", 4))


def tool(*words):
    return subprocess.run([os.path.join(os.path.dirname(binary()), "cellar-cluster"), *words], capture_output=True, text=True,
                          timeout=300, check=False)


class CausalWriter(threading.Thread):
    """Writes n to a row of one set, and once that is acknowledged to a row of another one, through any node."""

    def __init__(self, case, number):
        super().__init__(daemon=True)
        self.ports = [member.port for member in case.everyone]
        self.name = f"p{number}"
        self.rng = random.Random(number)
        self.done = 0
        self.ends = False
        self.start()

    def run(self):
        links = [redis.Redis(port=port, socket_timeout=20) for port in self.ports]
        while not self.ends:
            for row in ("a", "m", "z"):
                link = self.rng.choice(links)
                try:
                    link.execute_command("CPUT", "t", f"{row}{self.name}", "f:n", str(self.done + 1))
                except redis.RedisError:
                    return
            self.done += 1

    def end(self):
        self.ends = True
        self.join()


class StubbornWriter(CausalWriter):
    """Likewise, and what is not acknowledged it writes again, until it is."""

    def run(self):
        links = [redis.Redis(port=port, socket_timeout=20) for port in self.ports]
        while not self.ends:
            for row in ("a", "m", "z"):
                while not self.ends:
                    try:
                        self.rng.choice(links).execute_command("CPUT", "t", f"{row}{self.name}", "f:n", str(self.done + 1))
                        break
                    except redis.RedisError:
                        time.sleep(0.05)
                else:
                    return
            self.done += 1


class ClusterBackupTest(SetsCase):
    SETS, VOTERS = 3, 1

    def setUp(self):
        super().setUp()
        self.backup = tempfile.mkdtemp(prefix="cellar-backup-")
        self.addCleanup(shutil.rmtree, self.backup, ignore_errors=True)
        self.found_cluster()
        self.lead(self.sets[0], "TABLE", "CREATE", "t", "SPLIT", "AT", 2, "m", "z", "FAMILY", "f", "TYPE", "i64")
        self.new = tempfile.mkdtemp(prefix="cellar-new-")
        self.addCleanup(shutil.rmtree, self.new, ignore_errors=True)

    def found_cluster(self):
        self.cluster(self.SETS, self.VOTERS, backupdirname=self.backup)

    def status(self, member):
        return pairs(member.run("BACKUP", "STATUS"))

    def started_at(self, member):
        """In an object store it is not known at once if a sealed one is there."""
        told = []

        def is_told():
            told.append(member.refusal("BACKUP", "START"))
            return "TRYAGAIN" not in told[-1]
        self.wait_until(is_told, lambda: told[-3:])
        self.assertIn("no error", told[-1])

    def begun(self, member):
        self.started_at(member)
        self.wait_until(lambda: self.status(member)["state"] == "incrementing", lambda: self.status(member))

    def folders(self, name="new"):
        return [os.path.join(self.new, name, f"set-{i}") for i in range(len(self.sets))]

    def recover(self, *more, source=None, name="new"):
        return tool("recover", source or self.backup, "--server", binary(), *more, "--sets", *self.folders(name))

    def started(self, directories):
        """The recovered sets, at other ports."""
        first = None
        members = []
        for directory in directories:
            port = free_port()
            options = {"cluster_join": [f"127.0.0.1:{first}"]} if first else {}
            member = Member(self, port, [f"127.0.0.1:{port}"], **options)
            shutil.rmtree(member.directory)
            shutil.copytree(directory, member.directory)
            member.server.start()
            self.wait_leader([member])
            first = first or port
            members.append(member)
        for member in members:
            self.wait_until(lambda member=member: "no error" in member.refusal("CCOUNT", "t"),
                            lambda member=member: member.refusal("CCOUNT", "t") + member.server.log()[-1500:])
        return members

    def causal(self, member, writers):
        """What each writer wrote later is there only with what it wrote before; how much of it there is."""
        total = 0
        for writer in writers:
            a, m, z = (int(member.run("CGET", "t", f"{row}{writer.name}", "f:n") or 0) for row in ("a", "m", "z"))
            self.assertTrue(a >= m >= z >= a - 1, (writer.name, a, m, z))
            total += z
        return total


class BackupTest(ClusterBackupTest):
    def test_a_backup_of_a_cluster_that_writes_is_one_moment(self):
        writers = [CausalWriter(self, n) for n in range(4)]
        member = self.any()
        self.begun(member)
        self.wait_until(lambda: all(writer.done > 20 for writer in writers), "they write")
        self.assertEqual("OK", self.any().run("BACKUP", "SEAL"))
        before = sum(writer.done for writer in writers)
        status = self.status(self.any())
        self.assertEqual("sealed", status["state"])
        self.assertEqual(["sealed"] * 3, [pairs(each)["state"] for each in status["sets"]])
        for writer in writers:
            writer.end()
        with open(os.path.join(self.backup, "cluster.json")) as file:
            note = json.load(file)
        self.assertEqual([int(status["cut"]), status["id"]], [note["cut"], note["id"]])
        self.assertEqual(["set-0", "set-1", "set-2"], [each["folder"] for each in note["sets"]])
        self.assertEqual(9, len(self.any().run("BACKUP", "LIST")) + 3)
        done = self.recover()
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        members = self.started(self.folders())
        total = self.causal(members[1], writers)
        self.assertLessEqual(total, before)
        self.assertGreaterEqual(total, 4 * 20)
        self.assertEqual("OK", self.any().run("BACKUP", "CLEANUP"))
        self.wait_until(lambda: not os.path.exists(os.path.join(self.backup, "cluster.json")), lambda: os.listdir(self.backup))

    def test_what_is_missing_damaged_or_another_ones_is_named(self):
        self.begun(self.any())
        self.assertEqual("OK", self.any().run("BACKUP", "SEAL"))
        snapshot = next(name for name in os.listdir(os.path.join(self.backup, "set-1")) if name.endswith(".snapshot"))

        def broken(change):
            folder = tempfile.mkdtemp(prefix="cellar-broken-")
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
            copy = os.path.join(folder, "copy")
            shutil.copytree(self.backup, copy)
            change(copy)
            done = self.recover(source=copy, name="no")
            self.assertEqual(1, done.returncode, done.stdout + done.stderr)
            for made in self.folders("no"):
                shutil.rmtree(made, ignore_errors=True)
            return done.stderr

        def swap(folder):
            one, two = os.path.join(folder, "set-1"), os.path.join(folder, "set-2")
            os.rename(one, one + "x")
            os.rename(two, one)
            os.rename(one + "x", two)

        def flip(folder):
            with open(os.path.join(folder, "set-1", snapshot), "r+b") as file:
                file.seek(100)
                byte = file.read(1)
                file.seek(100)
                file.write(bytes([byte[0] ^ 1]))

        def edit(old, new):
            def change(folder):
                path = os.path.join(folder, "cluster.json")
                with open(path) as file:
                    text = file.read()
                with open(path, "w") as file:
                    file.write(text.replace(old, new, 1))
            return change

        with open(os.path.join(self.backup, "cluster.json")) as file:
            note = json.load(file)
        self.assertIn("set-1/" + snapshot, broken(lambda folder: os.remove(os.path.join(folder, "set-1", snapshot))))
        self.assertIn("it is missing", broken(lambda folder: shutil.rmtree(os.path.join(folder, "set-2"))))
        self.assertIn("bytes, and was made with", broken(lambda folder: os.truncate(os.path.join(folder, "set-1", snapshot), 50)))
        self.assertIn("cannot be recovered", broken(flip))
        self.assertIn("set-1", broken(swap))
        self.assertIn("does not describe a backup", broken(edit("{", "[")))
        self.assertIn("CUT:", broken(edit(f'"cut": {note["cut"]}', f'"cut": {note["cut"] - 1}')))
        self.assertIn("is of cluster", broken(edit(note["cluster"], "0123456789abcdef")))
        few = tool("recover", self.backup, "--server", binary(), "--sets", *self.folders("few")[:2])
        self.assertIn("has 3 sets, and --sets names 2 folders", few.stderr)
        other = self.recover("--until", "CUT:1")
        self.assertIn(f"is a backup of CUT:{note['cut']}", other.stderr)
        nowhere = tool("recover", self.backup, "--server", binary(), "--sets", "", "", "")
        self.assertEqual(1, nowhere.returncode, nowhere.stderr)
        inside = tool("recover", self.backup, "--server", binary(), "--sets", *[f"/dev/null/{i}" for i in range(3)])
        self.assertEqual(1, inside.returncode, inside.stderr)
        self.assertIn("cannot make /dev/null", inside.stderr)
        self.assertEqual(2, tool("recover", self.backup).returncode)
        self.assertEqual(2, tool("recover", "--sets", "a").returncode)

    def test_each_state_refuses_what_it_cannot(self):
        member = self.any()
        self.assertEqual("idle", self.status(member)["state"])
        self.assertIn("set 0: a backup can be sealed when its state is incrementing, not idle", member.refusal("BACKUP", "SEAL"))
        self.assertIn("there is no backup to be aborted", member.refusal("BACKUP", "ABORT"))
        self.assertIn("unexpected word", member.refusal("BACKUP", "START", "x").lower() + "unexpected word")
        self.begun(member)
        self.assertIn("set 0: a backup is in progress already", self.any().refusal("BACKUP", "START"))
        self.assertIn("which is sealed at a cut", self.sets[1][0].refusal("BACKUP", "SEAL", "LOCAL"))
        # A set whose leader has begun anew knows of no part.
        self.sets[2][0].server.stop()
        self.sets[2][0].server.start()
        self.wait_leader(self.sets[2])
        self.wait_until(lambda: "no error" in member.refusal("CCOUNT", "t"), "it is back")
        self.assertIn("set 2: a backup can be sealed when its state is incrementing, not", member.refusal("BACKUP", "SEAL"))
        self.assertEqual("OK", member.run("BACKUP", "ABORT"))
        self.wait_until(lambda: not [name for name in os.listdir(os.path.join(self.backup, "set-1")) if name.endswith(".snapshot")],
                        lambda: os.listdir(os.path.join(self.backup, "set-1")))
        self.wait_until(lambda: "in progress" not in member.refusal("BACKUP", "START"), lambda: self.status(member))

    def test_the_tool_makes_a_backup_and_a_cluster_of_it(self):
        for i in range(300):
            self.any().run("CPUT", "t", f"{'amz'[i % 3]}{i}", "f:n", i)
        rows = self.any().run("CSCAN", "t", "0", "COUNT", 1000)[1]
        done = tool("backup", "-p", str(self.any().port))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^sealed at CUT:\d+, \d+-\d+\n$")
        again = tool("backup", "-p", str(self.any().port))
        self.assertEqual(1, again.returncode)
        self.assertIn("a sealed backup is there: BACKUP CLEANUP removes it", again.stderr)
        recovered = self.recover()
        self.assertEqual(0, recovered.returncode, recovered.stderr)
        self.assertIn("set 2 of 3", recovered.stderr)
        members = self.started(self.folders())
        self.assertEqual(300, members[2].run("CCOUNT", "t"))
        self.assertEqual(rows, members[0].run("CSCAN", "t", "0", "COUNT", 1000)[1])
        full = self.recover()
        self.assertIn("is not empty", full.stderr)


class KilledTest(ClusterBackupTest):
    """A node is killed while a backup is made. What is there then is whole, or is not taken for a backup; and the next
    one is made."""

    SETS, VOTERS = 2, 3

    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("CELLAR_TEST_SEED", time.time()))
        print(f"CELLAR_TEST_SEED={self.seed}")
        self.rng = random.Random(self.seed)
        self.writers = [StubbornWriter(self, n) for n in range(3)]
        self.addCleanup(lambda: [writer.end() for writer in self.writers])

    def is_described(self):
        return os.path.exists(os.path.join(self.backup, "cluster.json"))

    def wait_all(self):
        for member in self.everyone:
            self.wait_until(member.has_a_role, lambda member=member: member.server.log()[-1500:])
        for each in self.sets:
            self.wait_leader(each)
        for member in self.everyone:
            self.wait_until(lambda member=member: "no error" in member.refusal("CCOUNT", "t"),
                            lambda member=member: member.refusal("CCOUNT", "t"))

    def begun_anew(self):
        """START, behind whatever is left; what has to be done is what the refusals say."""
        told = []

        def begun():
            told.append(self.any().refusal("BACKUP", "START"))
            if "no error" in told[-1]:
                told.append(str(self.when_begun(self.any())))
                if "'incrementing'" in told[-1].split("'sets'")[0]:
                    return True
            if "in progress" in told[-1]:
                told.append(self.any().refusal("BACKUP", "ABORT"))
            elif "BACKUP CLEANUP" in told[-1]:
                told.append(self.any().refusal("BACKUP", "CLEANUP"))
            elif "TRYAGAIN" not in told[-1] and "'failed'" not in told[-1] and "'idle'" not in told[-1]:
                self.fail(told)
            return False
        self.wait_until(begun, lambda: told[-9:])

    def when_begun(self, member):
        """The state once it is more than begun, or why it is not known."""
        states = []

        def is_more():
            states.append(member.refusal("BACKUP", "STATUS"))
            return not any(f"'{each}'" in states[-1].split("'sets'")[0] for each in ("pending", "snapshotting"))
        self.wait_until(is_more, lambda: states[-3:])
        return states[-1]

    def made(self, member, marks):
        """Has a backup made there, and notes when; what came of it: OK, or the refusal."""
        marks["start"].set()
        told = member.refusal("BACKUP", "START")
        if "no error" not in told:
            return told
        self.when_begun(member)
        time.sleep(marks["pause"])
        marks["before"] = {writer.name: writer.done for writer in self.writers}
        marks["seal"].set()
        return member.refusal("BACKUP", "SEAL")

    def recovers(self, before, name):
        """What is there is a whole backup, with all that had been acknowledged before."""
        done = self.recover(name=name)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        members = self.started(self.folders(name))
        self.causal(members[0], self.writers)
        for writer in self.writers:
            self.assertGreaterEqual(int(members[1].run("CGET", "t", f"z{writer.name}", "f:n") or 0), before[writer.name], writer.name)
        self.assertEqual([], members[0].run("CLUSTER", "MAP", "CHECK"))
        for member in members:
            member.stop()

    def victim(self, number):
        """Who, and what that is."""
        kind = ("the leader of set 0", "the leader of set 1", "a follower")[number % 3]
        leaders = [self.wait_leader(each) for each in self.sets]
        if number % 3 < 2:
            return leaders[number % 3], kind
        return self.rng.choice([member for member in self.everyone if member not in leaders]), kind

    def round(self, number, seconds):
        victim, kind = self.victim(number)
        asked = self.any(self.rng)
        phase = self.rng.choice(("start", "seal", "seal"))
        marks = {"start": threading.Event(), "seal": threading.Event(), "pause": self.rng.uniform(0, 0.1), "before": None}
        told = []
        thread = self.beside(lambda: told.append(self.made(asked, marks)))
        marks[phase].wait(20)
        delay = self.rng.uniform(0, 1.2 * seconds[phase])
        time.sleep(delay)
        victim.server.kill()
        time.sleep(self.rng.choice((0, 0.2, 2)))
        victim.server.start()
        victim.connect()
        thread.join(120)
        self.assertEqual(1, len(told), "it ends")
        self.wait_all()
        what = f"{kind}{', who was asked' if victim is asked else ''}, {delay * 1000:.0f} ms into {phase}: {told[0]}"
        print(f"  {number}: {what}, {'described' if self.is_described() else 'not described'}", flush=True)
        if "no error" in told[0]:
            self.assertTrue(self.is_described(), what)
        elif victim is not asked:
            self.assertRegex(told[0], r"set \d|TRYAGAIN|CLUSTERDOWN|cut")
        if self.is_described():
            self.assertIsNotNone(marks["before"], what)
            self.recovers(marks["before"], f"killed-{number}")
        else:
            refused = self.recover(name=f"refused-{number}")
            self.assertEqual(1, refused.returncode, what)
            self.assertIn("has no cluster.json", refused.stderr)

    def anew(self, name):
        """A backup that nobody disturbs, and a cluster of it."""
        begin = time.monotonic()
        self.begun_anew()
        ready = time.monotonic()
        before = {writer.name: writer.done for writer in self.writers}
        self.assertEqual("OK", self.any().run("BACKUP", "SEAL"))
        seconds = {"start": ready - begin, "seal": time.monotonic() - ready}
        self.recovers(before, name)
        self.assertEqual("OK", self.any().run("BACKUP", "CLEANUP"))
        return seconds

    def test_a_leader_that_stood_still_leaves_alone_what_the_next_one_has_made(self):
        """They share the folder; and it gives up what it had begun."""
        self.wait_all()
        self.begun_anew()
        former = self.wait_leader(self.sets[1])
        former.server.process.send_signal(signal.SIGSTOP)
        self.wait_leader(self.sets[1], but=former)
        alive = [member for member in self.everyone if member is not former]
        member = self.rng.choice(alive)
        self.wait_until(lambda: "no error" in member.refusal("CCOUNT", "t"), lambda: member.refusal("CCOUNT", "t"))
        self.assertIn("set 1: ", member.refusal("BACKUP", "SEAL"))
        self.assertFalse(self.is_described())
        self.assertEqual("OK", member.run("BACKUP", "ABORT"))
        self.assertIn("no error", member.refusal("BACKUP", "START"))
        self.wait_until(lambda: self.status(member)["state"] == "incrementing", lambda: self.status(member))
        before = {writer.name: writer.done for writer in self.writers}
        self.assertEqual("OK", member.run("BACKUP", "SEAL"))
        former.server.process.send_signal(signal.SIGCONT)
        local = lambda: pairs(former.run("BACKUP", "STATUS", "LOCAL"))["state"]
        # It has given its own up; or its state was made anew, and it has found the other one's.
        self.wait_until(lambda: local() in ("failed", "sealed"), local)
        time.sleep(0.5)  # what it does to files another thread does
        self.assertTrue(self.is_described())
        self.recovers(before, "left")
        # Nor does it begin one of its own over that, when it leads again and knows of none.
        self.wait_until(former.has_a_role, local)
        self.hand_over(self.sets[1], former)
        self.wait_until(lambda: "no error" in former.refusal("CCOUNT", "t"), lambda: former.refusal("CCOUNT", "t"))
        self.assertIn("a sealed backup is there", former.refusal("BACKUP", "START"))
        if local() != "sealed":
            self.wait_until(lambda: former.refusal("BACKUP", "START", "PART") == "no error: OK", local)
            error = lambda: pairs(former.run("BACKUP", "STATUS", "LOCAL"))["error"]
            self.wait_until(lambda: "holds a sealed backup: BACKUP CLEANUP removes it" in error(), error)
        self.assertTrue(self.is_described())
        self.assertEqual(0, self.recover(name="again").returncode)
        self.anew("anew")

    def test_a_node_is_killed(self):
        self.wait_all()
        seconds = self.anew("first")
        for number in range(KILLS):
            with self.subTest(seed=self.seed, number=number):
                self.wait_until(lambda: not self.is_described(), lambda: os.listdir(self.backup))
                self.round(number, seconds)
                self.anew(f"anew-{number}")


class BucketCase(ClusterBackupTest):
    """What all sets have below one prefix of an object store."""

    PLACE = "s3://bucket/of/cluster"

    def found_cluster(self):
        self.store = ObjectServer()
        self.addCleanup(self.store.__exit__)
        environment = mock.patch.dict(os.environ, self.store.environment())
        environment.start()
        self.addCleanup(environment.stop)
        self.backup = self.PLACE
        super().found_cluster()

    def names(self):
        return sorted(key[len("bucket/of/cluster/"):] for key in self.store.objects if key.startswith("bucket/of/cluster/"))

    def filled(self):
        for i in range(300):
            self.any().run("CPUT", "t", f"{'amz'[i % 3]}{i}", "f:n", i)
        return self.any().run("CSCAN", "t", "0", "COUNT", 1000)[1]

    def is_as_before(self, name, rows):
        members = self.started(self.folders(name))
        self.assertEqual(rows, members[1].run("CSCAN", "t", "0", "COUNT", 1000)[1])
        for member in members:
            member.stop()


class BucketTest(BucketCase):
    """The parts of a backup."""

    def test_a_backup_in_a_bucket_and_a_cluster_of_it(self):
        rows = self.filled()
        done = tool("backup", "-p", str(self.any().port))
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        for n in range(3):
            self.assertEqual(["cellar.backup", "cellar.manifest"], [name.split("/")[1] for name in self.names()
                                                                    if name.startswith(f"set-{n}/") and "." in name and "snapshot" not in name])
        self.assertEqual(10, len(self.names()), self.names())
        self.assertEqual({f"{self.PLACE}/{name}" for name in self.names() if not name.endswith(("cluster.json", "cellar.backup"))},
                         set(self.any().run("BACKUP", "LIST")))
        recovered = self.recover()
        self.assertEqual(0, recovered.returncode, recovered.stderr)
        self.is_as_before("new", rows)
        # By options alone, and with a slash.
        keys = os.path.join(self.new, "keys")
        with open(keys, "w") as file:
            file.write(f"aws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n")
        with mock.patch.dict(os.environ):
            for name in self.store.environment():
                if name.startswith("AWS_"):
                    del os.environ[name]
            refused = self.recover(name="keyless")
            self.assertEqual(1, refused.returncode)
            self.assertIn("AWS_ACCESS_KEY_ID", refused.stderr)
            words = ("--s3-endpoint", self.store.url, "--s3-region", "us-east-1", "--s3-credentials-file", keys)
            recovered = self.recover(*words, source=self.PLACE + "/", name="options")
            self.assertEqual(0, recovered.returncode, recovered.stderr)
        self.is_as_before("options", rows)
        self.assertEqual(2, tool("status", "--s3-region", "x").returncode)
        # A leader that begins anew finds its part again.
        self.restart(self.sets[1][0])
        self.wait_leader(self.sets[1])
        self.wait_until(lambda: self.status_or_none().get("state") == "sealed", self.status_or_none)
        self.assertEqual([], self.store.refusals)
        snapshot = next(name for name in self.names() if name.startswith("set-2/") and name.endswith(".snapshot"))
        objects = dict(self.store.objects)
        for change, text in ((lambda: self.store.objects.pop("bucket/of/cluster/" + snapshot), snapshot + ": it is missing"),
                             (lambda: self.cut(snapshot, 50), "and was made with"), (lambda: self.flip(snapshot), "cannot be recovered"),
                             (lambda: self.store.objects.pop("bucket/of/cluster/cluster.json"), "has no cluster.json")):
            with self.subTest(text=text):
                change()
                refused = self.recover(name="broken")
                self.assertEqual(1, refused.returncode)
                self.assertIn(text, refused.stderr)
                for made in self.folders("broken"):
                    shutil.rmtree(made, ignore_errors=True)
                self.store.objects.clear()
                self.store.objects.update(objects)
        self.assertEqual("OK", self.any().run("BACKUP", "CLEANUP"))
        self.wait_until(lambda: not self.names(), self.names)
        self.begun(self.any())
        self.assertEqual("OK", self.any().run("BACKUP", "ABORT"))
        self.wait_until(lambda: not self.names(), self.names)

    def status_or_none(self):
        try:
            return self.status(self.any())
        except redis.RedisError as error:
            return {"error": str(error)}

    def cut(self, name, size):
        self.store.objects["bucket/of/cluster/" + name] = self.store.objects["bucket/of/cluster/" + name][:size]

    def flip(self, name):
        data = bytearray(self.store.objects["bucket/of/cluster/" + name])
        data[100] ^= 1
        self.store.objects["bucket/of/cluster/" + name] = bytes(data)

    def test_a_bucket_that_fails_now_and_then(self):
        rng = random.Random(3)
        faults = ("500", "503", "cut", "lost", "etag", "half", "short", "reset")
        self.store.fault = lambda request: rng.choice(faults) if rng.randrange(4) == 0 else None
        rows = self.filled()
        self.begun(self.any())
        self.assertEqual("OK", self.any().run("BACKUP", "SEAL"))
        recovered = self.recover()
        self.assertEqual(0, recovered.returncode, recovered.stderr)
        self.is_as_before("new", rows)

    def test_a_bucket_that_refuses(self):
        self.store.fault = lambda request: "403" if request.method == "PUT" and "set-1" in request.key else None
        self.started_at(self.any())
        self.wait_until(lambda: self.status(self.any())["state"] == "failed", lambda: self.status(self.any()))
        self.assertIn("set 1: ", self.status(self.any())["error"])
        self.assertIn("a backup can be sealed when its state is incrementing", self.any().refusal("BACKUP", "SEAL"))
        self.wait_until(lambda: "no error" in self.any().refusal("BACKUP", "ABORT"), lambda: self.status(self.any()))
        self.store.fault = lambda request: None
        self.begun(self.any())
        self.assertEqual("OK", self.any().run("BACKUP", "SEAL"))
        self.assertEqual(0, self.recover().returncode)


class BucketArchiveTest(BucketCase):
    """Archives, each set's below the same prefix."""

    def cluster(self, count=3, voters=1, **options):
        options.update(archive_timeout="1s")
        first = self.new_set(voters, archive_dir=f"{self.PLACE}/set-0", **options)
        self.lead(first, "CLUSTER", "INIT")
        self.sets = [first]
        for n in range(1, count):
            self.sets.append(self.new_set(voters, join=first, archive_dir=f"{self.PLACE}/set-{n}", **options))
        for n in range(1, count):
            self.admit(n)
        self.everyone = [member for each in self.sets for member in each]

    def test_archives_in_a_bucket(self):
        rows = self.filled()
        cut = self.any().run("CLUSTER", "CUT")
        for row in ("a0", "m1", "z2"):
            self.any().run("CPUT", "t", row, "f:n", 4711)

        def is_there(member):
            info = member.info("persistence")
            return info.get("archive_lag_bytes") == 0 and info.get("archive_error") == ""
        for member in self.everyone:
            self.wait_until(lambda member=member: is_there(member), lambda member=member: member.info("persistence"))
        self.assertIn("has no cluster.json: say --until", self.recover().stderr)
        done = self.recover("--until", f"CUT:{cut}")
        self.assertEqual(0, done.returncode, done.stderr)
        self.is_as_before("new", rows)


class UntilTimeTest(ClusterBackupTest):
    """The last cut up to a time that all sets have."""

    def test_the_last_good_cut_up_to_a_time(self):
        moments = []
        for value in range(4):
            for row in ("a", "m", "z"):
                self.any().run("CPUT", "t", row, "f:n", value)
            cut = self.any().run("CLUSTER", "CUT")
            told = next(each for each in map(pairs, self.sets[0][0].run("CLUSTER", "CUTS", "COUNT", 9)) if int(each["cut"]) == cut)
            self.assertEqual("good", told["state"])
            moments.append((cut, int(told["time"])))
            if value == 1:
                for member in self.everyone:
                    member.run("SAVE")
        # One that is bad, since a set stands still, is none.
        self.sets[2][0].server.process.send_signal(signal.SIGSTOP)
        self.assertNotIn("no error", self.sets[0][0].refusal("CLUSTER", "CUT"))
        self.sets[2][0].server.process.send_signal(signal.SIGCONT)
        self.wait_until(lambda: "no error" in self.sets[0][0].refusal("CCOUNT", "t"), "it is back")
        for member in self.everyone:
            member.stop()
        source = os.path.join(self.new, "from")
        os.mkdir(source)
        for n, each in enumerate(self.sets):
            os.symlink(each[0].directory, os.path.join(source, f"set-{n}"))
        self.assertIn("no good cut up to", self.recover("--until", str(moments[0][1] - 1), source=source).stderr)
        self.assertIn("is of one set", self.recover("--until", "name", source=source).stderr)
        for name, until, value in (("exact", moments[0][1], 0), ("before", moments[2][1] - 1, 1), ("now", "now", 3)):
            with self.subTest(until=until):
                done = self.recover("--until", str(until), source=source, name=name)
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertIn(f"CUT:{moments[value][0]} of 20", done.stderr)
                self.assertIn("is the last one up to", done.stderr)
                members = self.started(self.folders(name))
                self.assertEqual([str(value)] * 3, [str(members[1].run("CGET", "t", row, "f:n")) for row in ("a", "m", "z")])
                for member in members:
                    member.stop()


if __name__ == "__main__":
    unittest.main()
