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


if __name__ == "__main__":
    unittest.main()
