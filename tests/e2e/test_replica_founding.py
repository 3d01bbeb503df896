"""How a replica set begins when what the nodes say of themselves is wrong, comes from a copied directory or from a version
that could not read what there is."""

import contextlib
import os
import shutil
import socket
import unittest

import peer_frames
from cellar_server import CellarServer, free_port
from peer_frames import DATA, HELLO, FakeNode
from replica_sets import Member, ReplicaSetCase


class FoundingTest(ReplicaSetCase):
    def with_fakes(self, count=2):
        """A member whose address is the first one, not started, and nodes that the test speaks for."""
        ports = set()
        while len(ports) < count + 1:
            ports.add(free_port())
        ports = sorted(ports, key=lambda port: f"127.0.0.1:{port}")
        self.nodes = [f"127.0.0.1:{port}" for port in ports]
        return Member(self, ports[0], self.nodes), [FakeNode(self, port, self.nodes) for port in ports[1:]]

    def dial(self, member, fakes):
        self.wait_until(lambda: all(fake.heard for fake in fakes), lambda: member.server.log())
        for fake in fakes:
            fake.dial(member.port)

    def assert_founded(self, member, fakes, text="founded with 3 nodes"):
        # Of the links that were dialled one may have been given up for what was said on it.
        def founded():
            for fake in fakes:
                fake.greet()
            return text in member.server.log()
        self.wait_until(founded, lambda: member.server.log())
        self.assertIsNone(member.server.process.poll())

    def single(self, member, *commands):
        """What the member's directory holds before it is one."""
        server = CellarServer(member.directory, port=member.port, save="")
        server.start()
        with server.client() as client:
            for words in commands:
                client.execute_command(*words.split())
        server.stop()

    def test_greetings_that_are_wrong_once_end_nothing(self):
        member, fakes = self.with_fakes()
        self.single(member, "TABLE CREATE t FAMILY f")
        member.server.start()
        self.dial(member, fakes)
        fakes[0].greet()
        wrong = ({"has": DATA}, {"has": DATA, "nodes": self.nodes[1:]}, {"nodes": [*self.nodes, "10.0.0.9:1"]},
                 {"nodes": []}, {"nodes": ["x" * 60000]}, {"kind": 2}, {"level": 0xffffffff}, {"has": 2, "cluster": 7})
        for fields in wrong:
            with self.subTest(fields=str(fields)[:100]):
                for fake in fakes:
                    fake.greet(2, **fields)
                # It has looked at that: it greets at each of its ticks' ends, before it looks.
                self.wait_until(fakes[0].hears(HELLO, 2), lambda: member.server.log())
                self.assertIsNone(member.server.process.poll(), member.server.log()[-1000:])
        self.assertNotIn("founded", member.server.log())
        self.assert_founded(member, fakes)

    def test_what_is_said_again_and_again_ends_the_process(self):
        member, fakes = self.with_fakes()
        member.server.start()
        self.dial(member, fakes)
        fakes[0].greet(3, nodes=self.nodes[:2])
        self.wait_until(lambda: member.server.process.poll() is not None, lambda: member.server.log())
        self.assertIn("cluster-nodes differs", member.server.log())

    def test_greetings_that_are_none_close_a_link(self):
        member, fakes = self.with_fakes()
        member.server.start()
        self.wait_until(lambda: all(fake.heard for fake in fakes), lambda: member.server.log())
        whole = peer_frames.hello(fakes[0].address, self.nodes)
        bodies = [whole[:cut] for cut in range(0, len(whole) - 20, 7)]
        bodies += [b"\x03" + whole[1:], peer_frames.hello("no address", self.nodes), peer_frames.hello("h:0", self.nodes),
                   peer_frames.hello("h:1\r\n:1", self.nodes), peer_frames.hello("h" * 300 + ":1", self.nodes),
                   whole + b"x" * (64 << 10), b"\xff" * 64]
        for body in bodies:
            link = fakes[0].dial(member.port)
            with contextlib.suppress(OSError):  # it does not read all of it
                link.sendall(peer_frames.frame(HELLO, body, sender=fakes[0].node))
                # Each link of a node ends the one before, and some of these are greetings.
                link.shutdown(socket.SHUT_WR)
                while link.recv(4096):
                    pass
            self.assertIsNone(member.server.process.poll(), member.server.log()[-1000:])
        self.dial(member, fakes)
        self.assert_founded(member, fakes)

    def test_nodes_with_one_id_found_no_set(self):
        members = self.make()
        members.sort(key=lambda member: f"127.0.0.1:{member.port}")
        one, other = members[1:]
        # Alone it makes itself an id, and waits.
        one.server.start()
        self.wait_until(lambda: os.path.exists(os.path.join(one.directory, "cellar.replica")), lambda: one.server.log())
        one.server.stop()
        shutil.copy(os.path.join(one.directory, "cellar.replica"), other.directory)
        for member in members:
            member.server.start()
        self.wait_until(lambda: "have one id" in members[0].server.log(), lambda: members[0].server.log())
        self.assertIn("have one id", members[0].refusal("CPUT t r f:a 1"))
        self.assertEqual([None] * 3, [member.server.process.poll() for member in members])
        other.server.stop()
        other.wipe()
        other.server.start()
        self.wait_leader(members).run("TABLE CREATE t FAMILY f")
        self.assert_equal(members)

    def test_data_that_older_versions_cannot_read_waits_for_newer_ones(self):
        for level, commands in ((6, ["TABLE CREATE t FAMILY f COLUMN a i64", "CPUT t r f:a 1"]),
                                (6, ["TABLE CREATE t FAMILY f", "FEED CREATE byrow ON 1 t ENTRIES ROW"]),
                                (4, ["TABLE CREATE t FAMILY f COMPRESS lz4", "CPUT t r f:a 1",
                                     "FAMILY ALTER t f COMPRESS none"]),
                                (2, ["TABLE CREATE t FAMILY f", "SNAPSHOT CREATE s"]),
                                (6, ["TABLE CREATE t FAMILY f COLUMN a i64", "SNAPSHOT CREATE s", "TABLE DROP t"])):
            with self.subTest(commands=commands):
                member, fakes = self.with_fakes()
                self.single(member, *commands)
                member.server.start()
                self.dial(member, fakes)
                fakes[0].greet(3, level=7)
                fakes[1].greet(3, level=level - 1)
                text = f"needs feature level {level} of all nodes, and {fakes[1].address} has {level - 1}"
                self.wait_until(lambda: text in member.server.log(), lambda: member.server.log())
                self.assertIn(text, member.refusal("CPUT t r f:a 1"))
                self.assertNotIn("founded with", member.server.log())
                for fake in fakes:
                    fake.greet(3, level=level)
                self.assert_founded(member, fakes)
                member.server.stop()


if __name__ == "__main__":
    unittest.main()
