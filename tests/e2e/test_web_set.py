"""cellar-web beside a node of a replica set: its page of the nodes and their lag."""

import unittest

from replica_sets import Member, has_sets
from cellar_server import free_port, wait_until
from web_page import PageTest, Web


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

    def test_sets_tablets_and_events_of_a_cluster(self):
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
        self.page.get(web.address + "#/replication")
        self.heading("Replication")
        self.wait(lambda: self.lines("nodes"))
        self.assertEqual([], self.lines("tablets"))
        # What becomes of it is shown without anybody asking again.
        member.run("CLUSTER INIT")
        member.run("TABLET", "SPLIT", "web", "m", b"\x00<b>")
        member.run("CPUT web a f:x 1")
        self.wait(lambda: [line[:5] for line in self.lines("tablets")][:3] == [
            ["0/web", "", "\\u0000<b>", "0", "owned"], ["0/web", "\\u0000<b>", "m", "0", "owned"], ["0/web", "m", "", "0", "owned"]])
        self.assertEqual([["0", "ok", f"127.0.0.1:{port}", "1", "8"]], [line[:5] for line in self.lines("sets")])
        told = [line[1:] for line in self.lines("events")]
        self.assertEqual(["set 0 begins a cluster", "CLUSTER INIT"], told[-1])
        self.assertTrue(told[0][0].startswith("split web at "), told)
        member.run("CLUSTER END")
        self.wait(lambda: not self.lines("tablets") and self.lines("nodes"))
        self.assertEqual([], self.complaints())


if __name__ == "__main__":
    unittest.main()
