"""Members of a replica set that get frames which no member has made: damaged, forged with right checksums, of strangers, or
never ending. No process ends, memory stays bounded, and the set goes on."""

import contextlib
import os
import random
import re
import socket
import struct
import unittest

import peer_frames
from cellar_server import START_SECONDS_MAX, CellarServer, free_port, is_sanitized
from peer_frames import (APPEND, APPEND_RESULT, CALL, HEAD_BYTES, HELLO, INSTALL, MESSAGE, ORDER, ORDER_ANSWER, READ_ANSWER,
                         READ_INDEX, SET, TIMEOUT_NOW, VOTE, VOTE_RESULT, FakeNode, frame, prefixed)
from replica_sets import ReplicaSetCase

LAST = 0xffffffffffffffff
KINDS = (VOTE, VOTE_RESULT, APPEND, APPEND_RESULT, INSTALL, TIMEOUT_NOW, HELLO, READ_INDEX, READ_ANSWER, ORDER,
         ORDER_ANSWER)


def members_payload(count=1, users=b""):
    payload = struct.pack("<BIQI", 2 if users else 1, 6, 1, count)
    for i in range(count):
        payload += struct.pack("<QBH", i + 1, 1, 1) + prefixed("h")
    return payload + (prefixed(users) if users else b"")


def install(term, seq, bytes_, end, payload):
    return (b"\x00" + struct.pack("<IQQQQQ", term, seq, bytes_, 7, 7, end) + prefixed(payload) + struct.pack("<q", 0))


class ForgedTest(ReplicaSetCase):
    def peak(self, member):
        with open(f"/proc/{member.server.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) << 10

    def start(self):
        members = self.found()
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f")
        leader.run("CPUT t r f:a 1")
        self.assert_equal(members)
        return members

    def assert_goes_on(self, members):
        for member in members:
            self.assertIsNone(member.server.process.poll(), member.server.log()[-2000:])

        def writes():
            return self.wait_leader(members).refusal("CPUT t r f:b 2").startswith("no error")
        self.wait_until(writes, "nobody takes a write")
        self.assert_equal(members)

    def say(self, port, cluster, node, data):
        """On a new link: all of that, until the server closes it or has taken it."""
        with socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS_MAX) as link, \
                contextlib.suppress(ConnectionError):
            link.sendall(f"PEER 1 {cluster} {node} member 0\r\n".encode())
            self.assertIn(b"+PEER 1 ", link.recv(1000))
            with contextlib.suppress(OSError):
                link.sendall(data)
                link.shutdown(socket.SHUT_WR)
            while link.recv(4096):
                pass

    def forged(self, mix, term, own, other, seq):
        """Bodies that are wrong in ways of their own."""
        append = struct.pack("<BQQQqI", 0, term, seq, seq, 0, 0)
        record = struct.pack("<IQ", 40, 1) + b"x" * 40
        bodies = [
            (APPEND, struct.pack("<BQQQqI", 0, term, LAST, LAST, 0, 0), term),
            (APPEND, struct.pack("<BQQQqI", 0, term, seq, LAST, 0, 3), term),
            (APPEND, struct.pack("<BQQQqI", 0, term, seq, seq, 0, 1) + record, term),
            (APPEND, struct.pack("<BQQQqI", 0, term, seq, seq, 0, 0xffffffff), term),
            (APPEND, struct.pack("<BQQQqI", 0, term, seq, seq, -1, 0), term),
            (APPEND, append, 0xffffffff), (APPEND, append, 0),
            (APPEND_RESULT, struct.pack("<BQQHHQ", 0, 0, LAST, 0, 0, 0), term),
            (APPEND_RESULT, struct.pack("<BQQHHQ", 0, LAST, LAST, 0, 0, LAST), term),
            (VOTE, struct.pack("<BQQBQ", 2, LAST, LAST, 3, LAST), 0xffffffff),
            (VOTE, struct.pack("<BQQBQ", 2, term, LAST, 1, term + 1), term),
            (VOTE_RESULT, struct.pack("<BBHHQ", 2, 6, 0xffff, 0xffff, term + 1), term),
            (TIMEOUT_NOW, struct.pack("<BQQ", 0, LAST, LAST), term),
            (INSTALL, install(term, seq + 5, LAST, LAST, members_payload()), term),
            (INSTALL, install(term, seq + 5, 0, 0, members_payload()), term),
            (INSTALL, install(term, seq + 5, 1 << 40, 1 << 39, members_payload()), term),
            (INSTALL, install(term, seq + 5, 1 << 20, LAST - 10, members_payload()), term),
            (INSTALL, install(term, seq + 5, 1 << 20, 100, members_payload(65)), term),
            (INSTALL, install(term, seq + 5, 1 << 20, 100, members_payload(3, b"u" * (1 << 20))), term),
            (ORDER, struct.pack("<QBQ", 1, 99, own), term), (ORDER, struct.pack("<QBQ", 1, 1, other), term),
            (ORDER_ANSWER, struct.pack("<QB", 1, 1) + prefixed(b"\r\n" * 1000), term),
            (READ_INDEX, struct.pack("<Q", LAST), term), (READ_ANSWER, struct.pack("<QIQ", LAST, 1, LAST), term),
            (MESSAGE, b"\x00" + prefixed("c") + prefixed("m"), term), (CALL, b"\x01\x01\x00" + prefixed("x"), term),
        ]
        bodies += [(kind, mix.randbytes(mix.randrange(200)), mix.choice((term, term + 1, 0xffffffff)))
                   for kind in KINDS for _ in range(4)]
        return bodies

    def test_forged_and_damaged_frames_end_nothing(self):
        members = self.start()
        seed = random.randrange(1 << 30)
        mix = random.Random(seed)
        ids = {member: member.info()["replica_id"] for member in members}
        cluster = members[0].info()["master_replid"][:16]
        for to in members:
            for speaks in members:
                if speaks is to:
                    continue
                node = int(ids[speaks], 16)
                # Else each first frame would be refused for nothing but that.
                greeting = frame(HELLO, peer_frames.hello(f"127.0.0.1:{speaks.port}", self.nodes, SET, int(cluster, 16)),
                                 sender=node)
                info = self.wait_leader(members).info()
                term, seq = [int(part) for part in str(info.get("replica_commit", "1:1")).split(":")]
                for kind, body, of_term in self.forged(mix, term, node, int(ids[to], 16), seq):
                    whole = frame(kind, body, of_term, node)
                    sent = mix.choice((whole, whole, whole * 3, whole[:-1], whole[:HEAD_BYTES],
                                       whole[:4] + bytes([whole[4] ^ 1]) + whole[5:],
                                       struct.pack("<I", mix.choice((0, 31, 1 << 20, 0xffffffff))) + whole[4:],
                                       frame(mix.choice((0, 40, 63, 64, 200, 255)), body, of_term, node),
                                       frame(kind, body, of_term, mix.choice((0, 1, int(ids[to], 16))))))
                    with self.subTest(seed=seed, kind=kind, body=body[:60]):
                        self.say(to.port, cluster, ids[speaks], greeting + sent)
                        self.assertIsNone(to.server.process.poll(), to.server.log()[-2000:])
        self.assert_goes_on(members)

    def test_strangers_take_no_memory_and_no_place(self):
        members = self.start()
        cluster = members[0].info()["master_replid"][:16]
        before = {member: self.peak(member) for member in members}
        # A record of a gigabyte, most of which comes, of nobody who has greeted, and a greeting that never ends.
        long_append = bytearray(frame(APPEND, struct.pack("<BQQQqI", 0, 1, 1, 1, 0, 1) + struct.pack("<I", (1 << 30) - 16)))
        struct.pack_into("<I", long_append, 0, HEAD_BYTES - 12 + 37 + (1 << 30))
        piece = bytes(1 << 20)
        for member in members:
            for begin in (f"PEER 1 {cluster} 77 member 0\r\n".encode() + bytes(long_append), b"*7\r\n$4\r\nPEER\r\n$900000000\r\n",
                          b"PEER 1 "):
                with socket.create_connection(("127.0.0.1", member.port), timeout=START_SECONDS_MAX) as link, \
                        contextlib.suppress(OSError):
                    link.sendall(begin)
                    for _ in range(300):
                        link.sendall(piece)
            self.assertIsNone(member.server.process.poll(), member.server.log()[-2000:])
            if not is_sanitized():
                self.assertLess(self.peak(member) - before[member], 150 << 20)
        # Who says nothing at all loses its links.
        silent = FakeNode(self, free_port(), self.nodes, cluster=int(cluster, 16))
        links = []
        for _ in range(100):
            silent.node = random.getrandbits(63) | 1
            links.append(silent.dial(members[0].port, patience=START_SECONDS_MAX))
            silent.dialled.clear()
        for link in links:
            self.assertEqual(b"", link.recv(100))
            link.close()
        self.assert_goes_on(members)

    def open_snapshots(self, member):
        """Files of snapshots that are gone from the directory, and that the process still holds."""
        folder = f"/proc/{member.server.process.pid}/fd"
        found = []
        for each in os.listdir(folder):
            with contextlib.suppress(OSError):
                found.append(os.readlink(os.path.join(folder, each)))
        return [path for path in found if "snapshot" in path and path.endswith("(deleted)")]

    def test_a_copy_that_nobody_fetches_is_let_go(self):
        member = self.make(1)[0]
        member.server.options["repl-timeout"] = 1
        single = CellarServer(member.directory, port=member.port, save="")
        single.start()
        with single.client() as client:
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "f")
        single.stop()
        member.server.start()
        self.wait_leader([member])
        port = free_port()
        cluster = int(member.info()["master_replid"][:16], 16)
        fake = FakeNode(self, port, self.nodes)

        # It joins, refuses whatever it is sent, for it has nothing, and does not come for the copy that it is offered.
        def is_offered():
            if not fake.dialled:
                fake.dial(member.port)
            if APPEND not in fake.last:
                fake.greet()
            else:
                fake.greet(has=SET, cluster=cluster)
                term, body = fake.last[APPEND]
                refused = struct.unpack_from("<BQQ", body)[2]
                fake.say(APPEND_RESULT, struct.pack("<BQQHHQ", 0, refused, 0, 0, 0xffff, 1), term=term)
            return INSTALL in fake.last
        self.wait_until(is_offered, lambda: member.server.log())
        # Who cannot be reached is offered nothing, or newer offers would take the place of the older.
        fake.close()
        self.wait_until(lambda: "down" in str(member.run("REPLICA LIST")), lambda: str(member.run("REPLICA LIST")))
        offers = member.info("stats")["sync_full"]
        member.run("CPUT t r f:a 1")
        member.run("SAVE")
        self.wait_until(lambda: not self.open_snapshots(member), lambda: str(self.open_snapshots(member)))
        self.assertEqual(offers, member.info("stats")["sync_full"])
        # To have it vote was tried, and refused, with every tick.
        self.assertNotIn("it votes", member.server.log())
        self.assertIsNone(member.server.process.poll())


if __name__ == "__main__":
    unittest.main()
