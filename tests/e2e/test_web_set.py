"""cellar-web beside a node of a replica set, its page of the nodes and their lag; and of a cluster, its sets and tablets."""

import base64
import shutil
import tempfile
import unittest

from replica_sets import Member, has_sets
from cellar_server import free_port, wait_until
from cluster_sets import SetsCase
from web_page import By, PageTest, Web


class TestSetPage(PageTest):
    def lines(self, table):
        return self.page.execute_script(
            "return [...document.querySelectorAll(`table[aria-label='${arguments[0]}'] tbody tr`)]"
            ".map((line) => [...line.children].map((cell) => cell.textContent))", table)

    def test_nodes_and_lag(self):
        there, why = has_sets()
        if not there:
            self.skipTest(why)
        ports = [free_port() for _ in range(3)]
        nodes = " ".join(f"127.0.0.1:{port}" for port in ports)
        members = [Member(self, port, nodes) for port in ports]
        for member in members:
            member.server.spawn()
        leader = wait_until(lambda: next((member for member in members if member.leads()), None))
        web = Web(leader.port)
        self.addCleanup(web.end)
        self.page.get(web.address + "#/replication")
        self.heading("Replication")
        address = lambda member: f"127.0.0.1:{member.port}"
        self.wait(lambda: sorted((line[1], line[3]) for line in self.lines("nodes")) == sorted(
            (address(member), "leader" if member is leader else "online") for member in members))
        self.assertTrue(all(line[2] == "voter" and line[4] for line in self.lines("nodes")))
        # One that goes is told without anybody asking again.
        gone = next(member for member in members if member is not leader)
        gone.server.kill()
        self.wait(lambda: ["down"] == [line[3] for line in self.lines("nodes") if line[1] == address(gone)])
        self.assertIn("replica_term", [line[0] for line in self.lines("replication")])
        self.assertEqual([], self.complaints())

    def test_a_set_becomes_a_cluster(self):
        there, why = has_sets()
        if not there:
            self.skipTest(why)
        port = free_port()
        member = Member(self, port, f"127.0.0.1:{port}")
        member.server.start()
        wait_until(member.leads)
        member.run("TABLE CREATE web FAMILY f")
        web = Web(port)
        self.addCleanup(web.end)
        self.page.get(web.address + "#/cluster")
        self.heading("Cluster")
        self.wait(lambda: "part of no cluster" in self.text())
        # What becomes of it is shown without anybody asking again.
        member.run("CLUSTER INIT")
        member.run("TABLET", "SPLIT", "web", "m", b"\x00<b>")
        member.run("CPUT web a f:x 1")
        self.wait(lambda: [line[:5] for line in self.lines("tablets") if line[0] == "0/web"] == [
            ["0/web", "first", "\\u0000<b>", "0", "owned"], ["0/web", "\\u0000<b>", "m", "0", "owned"], ["0/web", "m", "last", "0", "owned"]])
        self.assertEqual([["0", "ok", f"127.0.0.1:{port} (directs)", "1 of 1", "10"]], [line[:5] for line in self.lines("sets")])
        told = [line[1:] for line in self.lines("events")]
        self.assertEqual(["set 0 begins a cluster", "CLUSTER INIT"], told[-1])
        self.assertTrue(told[0][0].startswith("split web at "), told)
        member.run("CLUSTER END")
        self.wait(lambda: "part of no cluster" in self.text())
        self.assertEqual([], self.complaints())


@unittest.skipUnless(has_sets()[0], "this build has no replica sets")
class ClusterPage(PageTest, SetsCase):
    lines = TestSetPage.lines

    def test_sets_nodes_and_tablets(self):
        self.cluster(2, voters=3)
        entry = self.sets[0][0]
        rows = [f"{number:05d}" for number in range(450)]
        entry.run("TABLE", "CREATE", "t", "SPLIT", "AT", len(rows), *rows, "FAMILY", "f")
        web = Web(entry.port)
        self.addCleanup(web.end)
        self.page.get(web.address + "#/cluster")
        self.heading("Cluster")
        self.wait(lambda: len(self.lines("nodes of the cluster")) == 6 and "all well" in self.text())
        self.assertEqual([f"127.0.0.1:{self.wait_leader(each).port}" for each in self.sets],
                         [line[2].split()[0] for line in self.lines("sets")])
        self.assertIn("these are the first 200", self.text())
        # A table's own, page by page.
        self.click(By.CSS_SELECTOR, "#of option[value='0/t']")
        self.wait(lambda: len(self.lines("tablets")) == 200 and self.lines("tablets")[0][:3] == ["0/t", "first", "00000"])
        self.assertEqual({"0", "1"}, {line[3] for line in self.lines("tablets")})
        self.click(By.ID, "next")
        self.wait(lambda: self.lines("tablets") and self.lines("tablets")[0][1] == "00199")
        self.click(By.ID, "next")
        self.wait(lambda: self.lines("tablets") and self.lines("tablets")[-1][1:3] == ["00449", "last"])
        self.assertEqual(51, len(self.lines("tablets")))
        self.click(By.ID, "first")
        self.wait(lambda: self.lines("tablets") and self.lines("tablets")[0][1] == "first")
        owner = int(self.lines("tablets")[0][3])
        self.assertEqual("OK", self.lead(self.sets[0], "TABLET", "MOVE", "t", "", "TO", 1 - owner, "WAIT", 60_000))
        self.wait(lambda: self.lines("jobs") and self.lines("jobs")[0][1:7] == ["0/t", "first", "00000", str(owner), str(1 - owner), "done"])
        self.wait(lambda: self.lines("tablets") and self.lines("tablets")[0][3:5] == [str(1 - owner), "owned"])
        # A node that goes is told, and stands first.
        gone = next(member for member in self.sets[1] if not member.leads())
        gone.server.kill()
        self.wait(lambda: self.lines("nodes of the cluster")[0][1:4] == [f"127.0.0.1:{gone.port}", "voter", "down"])
        self.wait(lambda: "1 not well" in self.text() and "2 of 3" in [line[3] for line in self.lines("sets")])
        self.assertEqual([], self.complaints())

    def test_moments_backup_and_feeds(self):
        folder = tempfile.mkdtemp(prefix="cellar-backup-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.cluster(2, backupdirname=folder)
        entry, other = (each[0] for each in self.sets)
        web = Web(other.port)
        self.addCleanup(web.end)
        self.page.get(web.address + "#/cluster")
        self.heading("Cluster")
        self.wait(lambda: "none is made by itself (cluster-cut-interval)" in self.text() and "none since the nodes began" in self.text())
        entry.run("TABLE CREATE t SPLIT AT 1 m FAMILY f")
        entry.run("FEED CREATE log TABLE 1 t")
        entry.run("CPUT t a f:x 1")
        cut = entry.run("CLUSTER CUT")
        entry.run("CLUSTER CONFIG SET cluster-cut-interval 3600")
        self.wait(lambda: [[line[0], *line[2:]] for line in self.lines("cuts")] == [[str(cut), "restore point", "good"]])
        self.wait(lambda: "one is made every 60 min" in self.text() and "ago, every 60 min" in self.text())
        self.wait(lambda: [(line[0], line[-1]) for line in self.lines("feeds of all sets")] == [("0/log", "")])
        self.assertEqual("OK", entry.run("BACKUP START"))
        self.wait(lambda: [line[:2] for line in self.lines("backup of all sets")] == [
            ["incrementing", "set 0: incrementing · set 1: incrementing"]])
        self.assertEqual("OK", entry.run("BACKUP SEAL"))
        sealed = entry.run("CLUSTER CUTS COUNT 1")[0][1]
        self.wait(lambda: [(line[0], line[4], line[5]) for line in self.lines("backup of all sets")] == [("sealed", str(sealed), "")])
        self.assertEqual(["backup", "restore point"], [line[2] for line in self.lines("cuts")])
        # A set that is away holds feeds back, and what it alone knows is said not to be there.
        entry.server.kill()
        self.wait(lambda: ["set 0, which is away"] == [line[-1] for line in self.lines("feeds of all sets")])
        self.wait(lambda: self.lines("cuts") == [] and "CLUSTERDOWN" in self.text())
        entry.server.start()
        self.wait(lambda: [""] == [line[-1] for line in self.lines("feeds of all sets")] and len(self.lines("cuts")) == 2)

    def test_what_a_user_may_not_see_is_said_to_be_so(self):
        self.cluster(1)
        member = self.sets[0][0]
        member.run("TABLE CREATE seen FAMILY f")
        member.run("TABLE CREATE hidden FAMILY f")
        member.run("ACL SETUSER few on >pw +@all -cluster|events %R~seen:*")
        web = Web(member.port)
        self.addCleanup(web.end)
        web.log_in("few", "pw")
        self.assertEqual(["0/seen"], [one[1] for one in web.ask("tablets")[1]])
        self.assertEqual(["seen"], [one[1] for one in web.ask("tablets?table=seen")[1]])
        self.assertIn("NOPERM", web.ask("tablets?table=hidden", status=403))
        self.assertIn("NOPERM", web.ask("events", status=403))

    def test_an_answer_has_a_mebibyte_at_most(self):
        self.cluster(1)
        member = self.sets[0][0]
        rows = [f"{number:02d}" + "x" * 30_000 for number in range(60)]
        member.run("TABLE", "CREATE", "t", "SPLIT", "AT", len(rows), *rows, "FAMILY", "f")
        web = Web(member.port)
        self.addCleanup(web.end)
        web.log_in()
        web.ask("tablets?table=t&count=61", status=413)
        self.assertEqual(12, len(web.ask("tablets?table=t&count=12")[1]))
        self.page.get(web.address + "#/cluster?table=" + base64.urlsafe_b64encode(b"0/t").decode().rstrip("="))
        self.heading("Cluster")
        self.wait(lambda: 3 <= len(self.lines("tablets")) <= 50)
        self.click(By.ID, "next")
        self.wait(lambda: self.lines("tablets") and self.lines("tablets")[0][1] != "first")


if __name__ == "__main__":
    unittest.main()
