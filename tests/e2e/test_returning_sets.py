"""A set of a cluster that comes back older than what the others know: what it gave away since is theirs, what it got since is
lost, and told; all else goes on, and nothing has two owners."""

import glob
import os
import random
import shutil
import tempfile
import time
import unittest

from cellar_server import CellarServer, free_ports
from cluster_sets import pairs
from replica_sets import Member
from test_cluster_recover import ReturnTest, cellar

ROUNDS = int(os.environ.get("CELLAR_RETURN_ROUNDS", "2"))


class OlderCase(ReturnTest):
    def setUp(self):
        super().setUp()
        self.seed = os.environ.get("CELLAR_SEED", str(random.randrange(1 << 30)))
        self.director = self.sets[0][0]
        self.director.run("CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
        self.director.run("CLUSTER", "CONFIG", "SET", "cluster-cut-interval", "1")

    @staticmethod
    def moment():
        time.sleep(0.01)  # what is written before and behind has other ones
        micros = str(int(time.time() * 1_000_000))
        time.sleep(0.01)
        return micros

    def tablets(self, table="t"):
        return [pairs(each) for each in self.director.run("TABLET", "LIST", table)[1]]

    def of_set(self, number, table="t"):
        return next(each["start"] or "r00" for each in self.tablets(table) if int(each["set"]) == number)

    def move(self, row, to):
        self.assertEqual("OK", self.director.run("TABLET", "MOVE", "t", row, "TO", to, "WAIT", 20000))

    def comes_back(self, number, until, rng=None):
        directory = self.sets[number][0].directory
        if self.sets[number][0].server.process.poll() is None:
            self.sets[number][0].stop()
        back = self.started(self.recovered(directory, until), self.sets[0])
        self.sets[number] = [back]
        # Whoever is at it may die: the next one goes on, or begins anew.
        for _ in range(0 if rng is None else rng.randrange(3)):
            time.sleep(rng.random() / 20)
            victim = rng.choice([self.director, back])
            victim.server.kill()
            victim.server.start()
        self.wait_until(lambda: "no error" in back.refusal("TABLE", "LIST"),
                        lambda: f"{self.check()} {back.refusal('TABLE', 'LIST')} {back.server.log()[-2000:]} seed {self.seed}")
        return back

    def check(self):
        return self.director.run("CLUSTER", "MAP", "CHECK")

    def events(self):
        return [f"{pairs(each)['what']}: {pairs(each)['why']}" if isinstance(each[0], str) and each[0] == "time" else " ".join(map(str, each))
                for each in self.director.run("CLUSTER", "EVENTS")]

    def everywhere(self, table, row, expected):
        for each in self.sets:
            ask = self.told(each[0], "CGET", table, row, "f:a")
            self.wait_until(lambda ask=ask: expected in ask(), lambda ask=ask: f"{row}: {ask()} seed {self.seed}")


class Older(OlderCase):
    def test_what_it_gave_away_since(self):
        row = self.of_set(2)
        moment = self.moment()
        self.move(row, 1)
        self.put("moved")
        back = self.comes_back(2, moment)
        self.everywhere("t", row, "no error: moved")
        self.assertEqual([], self.check())
        self.assertEqual({0, 1}, {int(each["set"]) for each in self.tablets()})
        # What it had is there still, as it was then: to be read, and to be served.
        events = "\n".join(self.events())
        self.assertIn("set 2 has come back with 0/t from 'r40' to the end, which is not its own any more", events)
        self.assertIn("set aside there as cellar-orphan-t-r40.snapshot", events)
        files = glob.glob(os.path.join(back.directory, "cellar-orphan-*"))
        self.assertEqual([os.path.join(back.directory, "cellar-orphan-t-r40.snapshot")], files)
        dumped = cellar("--dump", files[0])
        self.assertEqual(0, dumped.returncode, dumped.stderr)
        self.assertIn("t", dumped.stdout)
        self.check_served(files[0])
        self.wait_until(lambda: back.info("cluster")["cluster_rows_to_purge"] == 0, "its old rows do not go")
        self.move("r45", 2)
        self.everywhere("t", "r45", "no error: moved")
        self.assertEqual("OK", self.director.run("FAMILY", "ADD", "t", "g"))

    def check_served(self, path):
        """As a store of its own."""
        folder = os.path.join(os.path.dirname(path), "served")
        os.mkdir(folder)
        os.link(path, os.path.join(folder, "cellar-000001.snapshot"))
        new = os.path.join(folder, "new")
        recovered = cellar("--recover", folder, "--until", "now", "--dir", new)
        self.assertEqual(0, recovered.returncode, recovered.stdout + recovered.stderr)
        server = CellarServer(directory=new).start()
        self.addCleanup(server.kill)
        client = server.client(decode_responses=True)
        self.assertEqual(20, client.execute_command("CCOUNT", "t"))
        self.assertEqual("before", client.execute_command("CGET", "t", "r45", "f:a"))

    def test_what_it_got_since_is_lost_and_told(self):
        row = self.of_set(2)
        moment = self.moment()
        self.move(row, 1)
        self.put("moved")
        self.comes_back(1, moment)
        self.everywhere("t", row, "CLUSTERDOWN t 'r40': lost with set 1")
        self.everywhere("t", "r21", "no error: before")
        self.everywhere("t", "r01", "no error: moved")
        self.assertEqual(["hole: 0/t from 'r40' to the end, last owned by set 1 with epoch 2"], self.check())
        self.assertIn("some rows are lost with it", "\n".join(self.events()))
        self.assertEqual("OK", self.director.run("TABLET", "ADOPT", "t", row, "SET", 2))
        self.everywhere("t", row, "no error: None")
        self.director.run("CPUT", "t", row, "f:a", "new")
        self.everywhere("t", row, "no error: new")
        self.assertEqual([], self.check())

    def test_to_and_fro(self):
        """It has had the rows again since: it has what it had then."""
        row = self.of_set(1)
        moment = self.moment()
        self.move(row, 2)
        self.put("between")
        self.move(row, 1)
        self.put("after")
        self.comes_back(1, moment)
        self.everywhere("t", row, "no error: before")
        self.everywhere("t", "r50", "no error: after")
        self.assertEqual([], self.check())
        self.move(row, 2)
        self.everywhere("t", row, "no error: before")

    def test_changes_of_the_schema_since(self):
        """It takes them while nobody is served by it; of tables that are new it has nothing but its part, empty."""
        moment = self.moment()
        run = self.director.run
        run("TABLE", "CREATE", "u", "SPLIT", "AT", 2, "r20", "r40", "FAMILY", "f")
        for i in range(60):
            run("CPUT", "u", f"r{i:02}", "f:a", "x")
        run("FAMILY", "ADD", "t", "g")
        run("INDEX", "CREATE", "t", "i", "ON", 1, "f:a")
        run("TABLE", "CREATE", "gone", "SPLIT", "AT", 1, "m", "FAMILY", "f")
        run("TABLE", "DROP", "gone")
        run("SNAPSHOT", "CREATE", "s")
        mine = self.of_set(2, "u")
        self.comes_back(2, moment)
        self.assertEqual([], self.check())
        self.everywhere("u", mine, "no error: None")
        self.assertEqual(40, run("CCOUNT", "u"))
        self.assertEqual(60, run("CCOUNT", "t"))
        self.wait_until(lambda: "no error" in self.director.refusal("CSCAN", "t", "0", "INDEX", "i", "COUNT", 1), "no index")
        self.director.run("CPUT", "t", "r50", "g:a", "1", "f:a", "2")
        self.assertEqual("OK", run("FAMILY", "ADD", "u", "g"))

    def test_snapshots_that_are_gone(self):
        """What it has frozen, and what it has of tables that were dropped since, is no concern of others; it hears of it."""
        run = self.director.run
        run("SNAPSHOT", "CREATE", "s", "TABLE", "1", "t")
        run("TABLE", "CREATE", "u", "SPLIT", "AT", 2, "r20", "r40", "FAMILY", "f")
        run("CPUT", "u", "r50", "f:a", "x")
        cursor = run("CSCAN", "t", 0, "SNAPSHOT", "COUNT", 50)[0]
        self.assertNotEqual("0", cursor)
        row = self.of_set(2)
        moment = self.moment()
        run("SNAPSHOT", "DROP", "s")
        run("TABLE", "DROP", "u")
        self.move(row, 1)
        self.put("moved")
        self.comes_back(2, moment)
        self.assertEqual([], self.check())
        self.everywhere("t", row, "no error: moved")
        for each in self.sets:
            self.wait_until(lambda each=each: "NOTABLE" in each[0].refusal("CCOUNT", "u"), lambda each=each: each[0].refusal("CCOUNT", "u"))
            self.assertIn("NO", each[0].refusal("CCOUNT", "t@s"))
        self.assertEqual("OK", run("SNAPSHOT", "CREATE", "s", "TABLE", "1", "t"))
        self.assertEqual(60, self.sets[2][0].run("CCOUNT", "t@s"))

    def test_what_cannot_be_set_aside_yet(self):
        """It is tried again, and nothing is dropped before; a file that is there is not replaced."""
        row = self.of_set(2)
        moment = self.moment()
        self.move(row, 1)
        self.put("moved")
        directory = self.sets[2][0].directory
        self.sets[2][0].stop()
        recovered = self.recovered(directory, moment)
        in_the_way = "cellar-orphan-t-r40-2.snapshot.new"
        with open(os.path.join(recovered, "cellar-orphan-t-r40.snapshot"), "w", encoding="ascii") as file:
            file.write("of before")
        os.mkdir(os.path.join(recovered, in_the_way))
        back = self.started(recovered, self.sets[0])
        self.sets[2] = [back]
        self.wait_until(lambda: "cannot be set aside, which is tried again" in back.server.log(), lambda: back.server.log()[-2000:])
        self.assertIn("CLUSTERDOWN recovery", back.refusal("CGET", "t", row, "f:a"))
        self.assertEqual("moved", self.director.run("CGET", "t", row, "f:a"))
        os.rmdir(os.path.join(back.directory, in_the_way))
        # One that died has left this.
        with open(os.path.join(back.directory, in_the_way), "w", encoding="ascii") as file:
            file.write("a half")
        self.everywhere("t", row, "no error: moved")
        self.assertEqual(1, back.server.log().count("cannot be set aside"))
        names = sorted(os.path.basename(each) for each in glob.glob(os.path.join(back.directory, "cellar-orphan-*")))
        self.assertEqual(["cellar-orphan-t-r40-2.snapshot", "cellar-orphan-t-r40.snapshot"], names)
        self.check_served(os.path.join(back.directory, names[0]))

    def test_much_is_set_aside_in_several_files(self):
        """... while the server is told to end, dies, and goes on."""
        self.director.run("TABLE", "CREATE", "big", "SPLIT", "AT", 2, "r20", "r40", "FAMILY", "f", "COMPRESS", "none")
        rows = 1_600
        with self.director.redis.pipeline(transaction=False) as pipe:
            for i in range(rows):
                pipe.execute_command("CPUT", "big", f"r5{i:05}", "f:a", random.randbytes(64 << 10))
                if i % 100 == 99:
                    pipe.execute()
        number = self.owner_of("big", "r50000")
        moment = self.moment()
        other = 3 - number if number != 0 else None
        if other is None:
            self.skipTest("set 0 has them")
        self.assertEqual("OK", self.director.run("TABLET", "MOVE", "big", "r50000", "TO", other, "WAIT", 60000))
        directory = self.sets[number][0].directory
        self.sets[number][0].stop()
        back = self.started(self.recovered(directory, moment), self.sets[0])
        self.sets[number] = [back]
        files = lambda: sorted(os.path.basename(each) for each in glob.glob(os.path.join(back.directory, "cellar-orphan-*")))
        for ends in (back.stop, back.server.kill):
            self.wait_until(lambda: any(name.endswith(".new") for name in files()) or "no error" in back.refusal("TABLE", "LIST"), files)
            ends()
            back.server.start()
        self.wait_until(lambda: "no error" in back.refusal("TABLE", "LIST"), lambda: (files(), back.server.log()[-1500:]))
        self.assertEqual(rows, self.director.run("CCOUNT", "big"))
        whole = [name for name in files() if name.endswith(".snapshot")]
        self.assertGreater(len(whole), 1, files())
        found = 0
        for name in whole:
            folder = tempfile.mkdtemp(prefix="cellar-aside-")
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
            os.link(os.path.join(back.directory, name), os.path.join(folder, "cellar-000001.snapshot"))
            new = os.path.join(folder, "new")
            self.assertEqual(0, cellar("--recover", folder, "--until", "now", "--dir", new).returncode)
            with CellarServer(directory=new) as server:
                found += server.client().execute_command("CCOUNT", "big")
        self.assertGreaterEqual(found, rows)

    def owner_of(self, table, row):
        return int(pairs(self.director.run("TABLET", "ROUTE", table, row))["set"])

    def test_two_at_once(self):
        row1, row2 = self.of_set(1), self.of_set(2)
        moment = self.moment()
        self.move(row1, 2)
        self.move(row2, 0)
        self.put("moved")
        for number in (1, 2):
            self.sets[number][0].stop()
        backs = {}
        for number in (1, 2):
            backs[number] = self.started(self.recovered(self.sets[number][0].directory, moment), self.sets[0])
        for number, back in backs.items():
            self.sets[number] = [back]
        for back in backs.values():
            self.wait_until(lambda back=back: "no error" in back.refusal("TABLE", "LIST"), lambda back=back: f"{self.check()} {back.server.log()[-1500:]}")
        # Of row1 set 2 had the newer one, and has lost it; set 1 has given it up.
        self.everywhere("t", row1, "lost with set")
        self.everywhere("t", row2, "no error: moved")
        self.assertEqual(1, len(self.check()), self.check())
        self.assertIn("hole: 0/t from 'r20' to 'r40', last owned by set 2", self.check()[0])

    def test_it_waits_for_all_others(self):
        self.sets[1][0].stop()
        directory = self.sets[2][0].directory
        self.sets[2][0].stop()
        back = self.started(self.recovered(directory, "now"), self.sets[0])
        self.wait_until(lambda: "set 1" in str(self.check()), self.check)
        self.assertIn("CLUSTERDOWN recovery: the cluster decides what set 2 owns", back.refusal("CGET", "t", "r50", "f:a"))
        self.sets[1][0].server.start()
        self.wait_until(lambda: back.refusal("CGET", "t", "r50", "f:a") == "no error: before", lambda: (self.check(), back.server.log()[-1500:]))

    def test_random(self):
        """What others have nobody loses; what it has is of then, or of later where it got it again."""
        for each in range(ROUNDS):
            with self.subTest(seed=f"{self.seed}/{each}"):
                self.one_random(random.Random(f"{self.seed}/{each}"), each)

    def one_random(self, rng, round_number):
        values = {f"r{i:02}": ["before"] for i in range(60)}
        number = rng.randrange(1, 3)
        moment = None
        steps = rng.randrange(4, 14)
        at = rng.randrange(steps)
        for step in range(steps):
            if step == at:
                moment = self.moment()
            choice = rng.random()
            row = f"r{rng.randrange(60):02}"
            if choice < 0.5:
                self.director.refusal("TABLET", "MOVE", "t", row, "TO", rng.randrange(3), "WAIT", 20000)
            elif choice < 0.65:
                self.director.refusal("TABLET", "SPLIT", "t", row)
            elif choice < 0.75:
                self.director.refusal("TABLET", "MERGE", "t", row)
            elif choice < 0.85:
                self.director.run("TABLE", "CREATE", f"v{round_number}-{step}", "SPLIT", "AT", 1, "m", "FAMILY", "f")
            for _ in range(10):
                row = f"r{rng.randrange(60):02}"
                value = f"{round_number}-{step}-{rng.random()}"
                if "no error" in self.director.refusal("CPUT", "t", row, "f:a", value):
                    values[row].append(value)
        owners = {}
        for each in self.tablets():
            for row in values:
                if row >= each["start"]:
                    owners[row] = int(each["set"])
        self.comes_back(number, moment, rng)
        self.wait_until(lambda: "no error" in self.director.refusal("CCOUNT", "_cluster/sets"), "set 0 is not there")
        faults = self.check()
        self.assertTrue(all(fault.startswith("hole") for fault in faults), faults)
        for row, written in values.items():
            ask = self.told(self.director, "CGET", "t", row, "f:a")
            self.wait_until(lambda ask=ask: "TRYAGAIN" not in ask(), ask)
            got = ask()
            if owners[row] != number:
                self.assertEqual(f"no error: {written[-1]}", got, (row, faults, self.tablets()))
            elif "lost with" not in got:
                self.assertIn(got.removeprefix("no error: "), written + ["None"], (row, faults))
        while holes := [each for each in self.tablets() if each["state"] == "lost"]:
            self.assertEqual("OK", self.director.run("TABLET", "ADOPT", "t", holes[0]["start"] or "", "SET", rng.randrange(3)))
        self.assertEqual([], self.check())
        for row in values:
            self.director.run("CPUT", "t", row, "f:a", "before")
        self.wait_until(lambda: self.director.run("CCOUNT", "t") == 60, lambda: self.director.run("CCOUNT", "t"))


class OlderSetOfThree(OlderCase):
    """The set comes back with three members, of which any may lead when it takes what it is to have."""

    def test_who_leads_dies_meanwhile(self):
        row = self.of_set(2)
        moment = self.moment()
        self.move(row, 1)
        self.move(self.of_set(1), 0)
        self.put("moved")
        directory = self.sets[2][0].directory
        self.sets[2][0].stop()
        recovered = self.recovered(directory, moment)
        ports = free_ports(3)
        nodes = [f"127.0.0.1:{port}" for port in ports]
        members = [Member(self, port, nodes, cluster_join=[self.director.address]) for port in ports]
        shutil.rmtree(members[0].directory)
        shutil.copytree(recovered, members[0].directory)
        # As long as this lies there the leader cannot set aside what it is to.
        os.mkdir(os.path.join(members[0].directory, "cellar-orphan-t-r40.snapshot.new"))
        for member in members:
            member.server.start()
        leader = self.wait_leader(members)
        self.assertIs(members[0], leader)
        self.wait_until(lambda: "cannot be set aside" in leader.server.log(), lambda: (self.check(), leader.server.log()[-1500:]))
        self.wait_until(lambda: all(member.info("replication").get("master_link_status", "up") == "up" for member in members[1:]), "no followers")
        self.wait_until(lambda: leader.run("WAIT", 2, 1000) == 2, "they have not all")
        leader.server.kill()
        self.sets[2] = members[1:]
        leader = self.wait_leader(members[1:])
        self.everywhere("t", row, "no error: moved")
        self.assertEqual([], self.check())
        self.assertEqual(["cellar-orphan-t-r40.snapshot"],
                         [os.path.basename(each) for member in members[1:] for each in glob.glob(os.path.join(member.directory, "cellar-orphan-*"))])
        members[0].server.start()
        self.wait_until(lambda: members[0].refusal("CGET", "t", row, "f:a") == "no error: moved", lambda: members[0].refusal("CGET", "t", row, "f:a"))


if __name__ == "__main__":
    unittest.main()
