#!/usr/bin/python3
"""Pipelined mixed commands at all nodes of a set of three, over failovers: every reply is compared, byte for byte.

    any_node_soak.py [--commands 10000000] [--seed N] [--reads leader]

Each connection has rows of its own, so what it must be answered is known; the other half of what it asks goes to rows
that it alone writes, too, at whatever node it is. Every few seconds another node leads (planned: no client may notice).
"""

import argparse
import os
import random
import select
import socket
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

from replica_sets import ReplicaSetCase  # noqa: E402

OPTIONS = argparse.Namespace(commands=int(os.environ.get("SOAK_COMMANDS", "10000000")), seed=None, reads=None)
CONNECTIONS = 4  # to each node
PIPELINE_MAX = 400
FAILOVER_SECONDS = 10


def request(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def bulk(value):
    return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value)


class Talker:
    """A connection, and what it knows of its rows."""

    def __init__(self, port, name, seed):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.port, self.name, self.chance = port, name, random.Random(seed)
        self.rows, self.count = {}, 0
        self.to_send, self.expected, self.got = b"", b"", b""

    def row(self):
        return b"%s-%d" % (self.name, self.chance.randrange(20))

    def command(self):
        """One command, or a transaction: request, reply, how many commands."""
        chance, rows, row = self.chance, self.rows, self.row()
        kind = chance.randrange(20)
        if kind < 7:
            value = b"%d" % self.count if chance.randrange(50) else b"v" * chance.randrange(20_000)
            rows[row] = value
            return request(b"CPUT", b"t", row, b"f:x", value), b"+OK\r\n", 1
        if kind < 14:
            return request(b"CGET", b"t", row, b"f:x"), bulk(rows.get(row)), 1
        if kind == 14:
            return request(b"CDEL", b"t", row, b"f:x"), b":%d\r\n" % (rows.pop(row, None) is not None), 1
        if kind == 15:
            word = b"%d" % self.count
            return request(b"ECHO", word), bulk(word), 1
        if kind == 16:
            return request(b"PING"), b"+PONG\r\n", 1
        if kind == 17:
            return request(b"CPUT", b"t"), b"-ERR wrong number of arguments for 'cput' command", 1
        if kind == 18:
            return request(b"CPUT", b"none", row, b"f:x", b"1"), b"-NOTABLE no table 'none' in keyspace '0'\r\n", 1
        value, other = b"%d" % self.count, self.row()
        rows[row] = value
        answer = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n" + bulk(rows.get(other))
        words = (request(b"MULTI"), request(b"CPUT", b"t", row, b"f:x", value), request(b"CGET", b"t", other, b"f:x"), request(b"EXEC"))
        return b"".join(words), answer, 4

    def begin(self):
        """The next pipeline; how many commands it has."""
        parts, replies, made = [], [], 0
        for _ in range(self.chance.randrange(1, PIPELINE_MAX)):
            text, reply, commands = self.command()
            parts.append(text)
            replies.append(reply)
            made += commands
            self.count += 1
        self.to_send, self.got, self.replies = b"".join(parts), [], replies
        return made

    def send(self):
        sent = self.socket.send(self.to_send[:1 << 20])
        self.to_send = self.to_send[sent:]

    def matches(self):
        """None: more is to come; else what is wrong, or an empty text."""
        got = b"".join(self.got)
        self.got = [got]
        at = 0
        for number, reply in enumerate(self.replies):
            if reply.endswith(b"\r\n"):
                end = at + len(reply)
                if len(got) < end:
                    return None if got[at:] == reply[:len(got) - at] else f"{number}: {got[at:at + 100]} instead of {reply[:100]}"
            else:  # the beginning of an error that goes on
                stop = got.find(b"\r\n", at)
                if stop < 0:
                    return None
                end = stop + 2
            if not got[at:end].startswith(reply):
                return f"{number}: {got[at:end][:100]} instead of {reply[:100]}"
            at = end
        return "" if at == len(got) else f"more than was asked for: {got[at:at + 100]}"


class AnyNodeSoak(ReplicaSetCase):
    def test_replies_to_mixed_commands(self):
        seed = OPTIONS.seed if OPTIONS.seed is not None else random.randrange(1 << 30)
        for reads in (OPTIONS.reads,) if OPTIONS.reads else ("local", "leader"):
            self.soak(reads, seed, OPTIONS.commands // (1 if OPTIONS.reads else 2))

    def soak(self, reads, seed, commands):
        members = self.found(3, replica_election_timeout=2000, cluster_wait=60_000, cluster_reads=reads)
        leader = self.wait_leader(members)
        leader.run("TABLE CREATE t FAMILY f VERSIONS 1")
        self.assert_equal(members)
        talkers = [Talker(member.port, b"%d.%d" % (number, each), seed + 100 * number + each)
                   for number, member in enumerate(members) for each in range(CONNECTIONS)]
        done, failovers, moved, began = 0, 0, time.monotonic(), time.monotonic()
        busy = {}
        while done < commands or busy:
            if done < commands:
                for talker in talkers:
                    if talker.socket.fileno() not in busy:
                        done += talker.begin()
                        busy[talker.socket.fileno()] = talker
            writers = [number for number, talker in busy.items() if talker.to_send]
            readable, writable, _ = select.select(list(busy), writers, [], 60)
            self.assertTrue(readable or writable, f"seed {seed}: nothing comes; {[m.info('cluster') for m in members]}")
            for number in writable:
                busy[number].send()
            for number in readable:
                talker = busy[number]
                came = talker.socket.recv(1 << 20)
                self.assertTrue(came, f"seed {seed}, {reads}, {talker.name}: closed after {talker.count}")
                talker.got.append(came)
                wrong = talker.matches()
                self.assertFalse(wrong, f"seed {seed}, {reads}, {talker.name} at {talker.count}: {wrong}")
                if wrong is not None:
                    self.assertFalse(talker.to_send)
                    del busy[number]
            if time.monotonic() - moved > FAILOVER_SECONDS:
                self.hand_over(members)
                moved, failovers = time.monotonic(), failovers + 1
        print(f"{reads}, seed {seed}: {done} commands, {failovers} failovers, {done / (time.monotonic() - began):.0f} a second")
        for talker in talkers:
            talker.socket.close()
        figures = [member.info("cluster") for member in members]
        self.assertEqual(0, sum(figure["cluster_connections_closed"] for figure in figures), figures)
        self.assert_equal(members)
        for member in members:
            member.server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=OPTIONS.commands)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--reads")
    parser.parse_args(namespace=OPTIONS)
    unittest.main(argv=sys.argv[:1])
