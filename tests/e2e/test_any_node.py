"""Any node of a replica set takes any command: what a follower cannot answer it passes on to who leads."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import redis

from cellar_server import ROOT, is_sanitized
from replica_sets import ReplicaSetCase

sys.path.insert(0, os.path.join(ROOT, "tests"))

from model import resp  # noqa: E402

ROUNDS = int(os.environ.get("CELLAR_NODE_ROUNDS", "3"))
SEED = int(os.environ.get("CELLAR_NODE_SEED", str(random.randrange(1 << 30))))
COMMANDS = int(os.environ.get("CELLAR_NODE_COMMANDS", "20000"))
ELECTION_MS = int(os.environ.get("CELLAR_NODE_ELECTION_MS", "1000"))


class Link:
    """A connection that is written to and read from as the test likes; replies as redis-py takes them apart."""

    def __init__(self, port):
        self.connection = redis.Connection(port=port, socket_timeout=120)
        self.connection.connect()

    def send(self, *commands):
        self.connection.send_packed_command(self.connection.pack_commands([c if isinstance(c, tuple) else tuple(c.split())
                                                                           for c in commands]))

    def read(self):
        try:
            return self.connection.read_response()
        except redis.ResponseError as error:
            return error

    def has_more(self):
        return self.connection.can_read(0)

    def run(self, *commands):
        self.send(*commands)
        return [self.read() for _ in commands]

    def close(self):
        self.connection.disconnect()


class AnyNodeCase(ReplicaSetCase):
    def begin(self, **options):
        """A set of three that passes commands on, with a table; its leader and one of its followers."""
        options.setdefault("replica_election_timeout", 2000)  # a follower hears each 200 ms what is committed
        self.members = self.found(3, cluster_forward="yes", **options)
        for member in self.members:
            self.have_wait(member)
        leader = self.wait_leader(self.members)
        leader.run("TABLE CREATE t FAMILY f VERSIONS 1")
        follower = next(member for member in self.members if member is not leader)
        self.wait_until(lambda: "t" in follower.run("TABLE LIST"), "the table has not come")
        return leader, follower

    def have_wait(self, member):
        """Its commands wait for a leader, however long that takes on a busy machine."""
        member.run("CONFIG SET cluster-wait 60000")

    def figures(self, member):
        return {name: value for name, value in member.info("cluster").items() if name.startswith("cluster_")}

    def assert_at_rest(self, members):
        """Nothing is under way any more, anywhere."""
        def rests():
            return all(self.figures(member).get(f"cluster_calls_{name}") == 0
                       for member in members for name in ("waiting", "held"))
        self.wait_until(rests, lambda: f"{[self.figures(member) for member in members]}")

    def outcome(self, link, command):
        """Its reply on a channel that the leader has been told of anew: the user was gone with its channel."""
        try:
            return link.run(command)[0]
        except redis.ConnectionError:
            again = Link(link.connection.port)
            again.run("AUTH ann secret")
            got = again.run(command)[0]
            again.close()
            return got


class PassedOn(AnyNodeCase):
    def test_a_follower_takes_everything(self):
        leader, follower = self.begin()
        self.assertEqual("OK", follower.run("CPUT t a f:x 1"))
        self.assertEqual("1", leader.run("CGET t a f:x"))
        self.assertEqual("OK", follower.run("TABLE CREATE u FAMILY f"))
        self.assertEqual("3", str(follower.run("CINCRBY u r f:n 3")))
        self.assertEqual("OK", follower.run("FAMILY ADD u g"))
        self.assertIn("ERR", follower.refusal("CPUT t a nofamily:x 1") + " ERR")
        self.assertTrue(follower.run("PING"))
        self.assertGreater(self.figures(follower)["cluster_calls_out"], 3)
        self.assert_at_rest(self.members)
        self.assert_equal(self.members)

    def test_a_node_that_could_not_leave_passes_on_again(self):
        leader, _ = self.begin()
        for number in range(1, 300):  # in the way of the snapshot, whatever its number
            os.mkdir(os.path.join(leader.directory, f"cellar-{number:06}.snapshot.tmp"))
        link = Link(leader.port)
        link.send("SHUTDOWN SAVE")
        self.wait_until(lambda: "cannot shut down" in leader.server.log(), leader.server.log)
        link.close()
        self.wait_leader(self.members, leader)
        self.wait_until(lambda: leader.refusal("CPUT t a f:x 1") == "no error: OK", lambda: leader.refusal("CPUT t a f:x 1"))
        self.assert_at_rest(self.members)

    def test_a_channel_as_its_owner_shows_it(self):
        """It is another node's client: shown as that, counted apart, and ended there alone."""
        leader, follower = self.begin()
        leader.run("ACL SETUSER ann ON >secret +@all ~*")
        leader.run("KEYSPACE CREATE k")
        link = Link(follower.port)
        self.wait_until(lambda: link.run("AUTH ann secret")[0] == b"OK", "ann is not known")
        self.wait_until(lambda: link.run("SELECT k")[0] == b"OK", "the keyspace has not come")
        self.assertEqual([b"OK"], link.run("CPUT 0/t a f:x 1"))
        connected = leader.info("clients")["connected_clients"]
        channel = next(line for line in leader.redis.client_list() if line["user"] == "ann")
        self.assertEqual(("F", "k"), (channel["flags"], channel["db"]))
        self.assertRegex(channel["name"], "^@[0-9a-f]{16}$")
        self.assertTrue(channel["addr"].endswith(f"/127.0.0.1:{follower.port}"), channel["addr"])
        self.assertLess(connected, len(leader.redis.client_list()))
        refusal = f"it belongs to node 127.0.0.1:{follower.port}"
        for words in (("ID", channel["id"]), ("ADDR", channel["addr"]), (channel["addr"],)):
            self.assertIn(refusal, leader.refusal("CLIENT", "KILL", *words))
        # Of all that are of a kind, these are not meant.
        self.assertEqual(0, leader.run("CLIENT KILL USER ann"))
        self.assertEqual([b"1", b"OK"], link.run("CGET 0/t a f:x", "CPUT 0/t a f:x 2"))
        self.assertEqual(channel["id"], next(line["id"] for line in leader.redis.client_list() if line["user"] == "ann"))
        # At its own node it is a client as any other.
        self.assertEqual(1, follower.run("CLIENT KILL USER ann"))
        self.wait_until(lambda: all(line["user"] != "ann" for line in leader.redis.client_list()), "the channel stays")
        self.assert_at_rest(self.members)

    def test_by_default_a_follower_passes_on(self):
        members = self.found(3)
        leader = self.wait_leader(members)
        follower = next(member for member in members if member is not leader)
        self.have_wait(follower)
        self.assertEqual("yes", follower.redis.config_get("cluster-forward")["cluster-forward"])
        self.assertEqual("OK", follower.run("TABLE CREATE t FAMILY f"))
        self.assertEqual("OK", follower.run("CPUT t a f:x 1"))
        self.assertEqual("1", follower.run("CGET t a f:x"))

    def test_a_follower_that_passes_nothing_on_refuses(self):
        members = self.found(3, cluster_forward="no")
        leader = self.wait_leader(members)
        follower = next(member for member in members if member is not leader)
        self.assertIn("read only replica", follower.refusal("CPUT t a f:x 1"))

    def test_replies_come_in_order_and_reads_see_the_writes_of_their_connection(self):
        _, follower = self.begin()
        for reads in ("local", "leader", "linearizable"):
            follower.run("CONFIG", "SET", "cluster-reads", reads)
            links = [Link(follower.port) for _ in range(3)]
            chance = random.Random(7)
            known = [{} for _ in links]
            for round_number in range(40):
                for which, link in enumerate(links):
                    commands, expected = [], []
                    for step in range(chance.randrange(1, 60)):
                        row = f"{reads}{which}-{chance.randrange(5)}"
                        kind = chance.randrange(8)
                        if kind < 3:
                            value = f"{round_number}.{step}"
                            commands.append(("CPUT", "t", row, "f:x", value))
                            known[which][row] = value.encode()
                            expected.append(b"OK")
                        elif kind < 6:
                            commands.append(("CGET", "t", row, "f:x"))
                            expected.append(known[which].get(row))
                        elif kind == 6:
                            commands.append(("ECHO", f"e{step}"))
                            expected.append(f"e{step}".encode())
                        else:
                            commands.append(("NONSENSE",))
                            expected.append(None)
                    for command, wanted, got in zip(commands, expected, link.run(*commands)):
                        if command[0] == "NONSENSE":
                            self.assertIsInstance(got, redis.ResponseError)
                        else:
                            self.assertEqual(wanted, got, (reads, which, command))
            for link in links:
                link.close()
        self.assert_at_rest(self.members)

    def test_transactions_and_watches(self):
        leader, follower = self.begin()
        link = Link(follower.port)
        self.assertEqual([b"OK", b"QUEUED", b"QUEUED", [b"OK", b"1"]],
                         link.run("MULTI", "CPUT t m f:x 1", "CGET t m f:x", "EXEC"))
        self.assertEqual([b"OK"], link.run("CWATCH t m"))
        leader.run("CPUT t m f:x 2")
        self.assertEqual([b"OK", b"QUEUED", None], link.run("MULTI", "CPUT t m f:x 3", "EXEC"))
        self.assertEqual([b"OK", b"OK", b"QUEUED", [b"OK"]], link.run("CWATCH t m", "MULTI", "CPUT t m f:x 4", "EXEC"))
        self.assertEqual([b"OK", b"OK"], link.run("WATCH t", "UNWATCH"))
        leader.run("CPUT t m f:x 5")
        self.assertEqual([b"OK", b"QUEUED", [b"OK"]], link.run("MULTI", "CPUT t m f:x 6", "EXEC"))
        self.assertEqual([b"OK", b"OK", b"OK"], link.run("WATCH t", "MULTI", "DISCARD"))
        link.run("CPUT t m f:x 7")
        self.assertEqual([b"OK", b"QUEUED", [b"7"]], link.run("MULTI", "CGET t m f:x", "EXEC"))
        got = link.run("MULTI ATOMIC", "CPUT t m f:x 8", "CPUT t m g:x 8", "EXEC")
        self.assertIsInstance(got[3], redis.ResponseError)
        self.assertEqual("7", leader.run("CGET t m f:x"))
        got = link.run("MULTI", "NONSENSE", "EXEC")
        self.assertIn("EXECABORT", str(got[2]) + type(got[2]).__name__.upper())
        link.close()
        self.assert_at_rest(self.members)

    def test_unwatch_that_is_queued(self):
        """It ends no watch before EXEC, and is carried out wherever that is."""
        leader, follower = self.begin()
        for member in (leader, follower):
            link = Link(member.port)
            self.assertEqual([b"OK", b"OK", b"QUEUED", b"QUEUED", [b"OK", b"OK"]],
                             link.run("WATCH t", "MULTI", "UNWATCH", "CPUT t u f:x 1", "EXEC"))
            self.assertEqual([b"OK", b"OK", b"QUEUED", b"QUEUED"], link.run("WATCH t", "MULTI", "UNWATCH", "CGET t u f:x"))
            leader.run("CPUT t u f:x 2")
            self.assertEqual([None], link.run("EXEC"))
            link.close()
        self.assert_at_rest(self.members)

    def test_a_refused_exec_ends_what_was_watched(self):
        """For what is no fault of it: later transactions, which watch nothing, are not null."""
        leader, follower = self.begin()
        for member in (leader, follower):
            link = Link(member.port)
            self.assertEqual([b"OK", b"OK", b"QUEUED"], link.run("WATCH t", "MULTI", "CPUT t r f:x mine"))
            member.run("CONFIG SET maxmemory 1")
            refused = link.run("EXEC")[0]
            member.run("CONFIG SET maxmemory 0")
            self.assertIsInstance(refused, redis.ResponseError)
            self.assertIn("EXECABORT", str(refused) + type(refused).__name__.upper())
            leader.run("CPUT t r f:x others")
            self.assertEqual([b"OK", b"QUEUED", [b"OK"]], link.run("MULTI", "CPUT t r f:x mine", "EXEC"))
            link.close()
        self.assert_at_rest(self.members)

    def test_watches_that_were_kept_by_who_led_before(self):
        """A node that leads by now knows nothing of them: EXEC answers null once, also where nothing has changed."""
        leader, follower = self.begin()
        link = Link(follower.port)
        self.assertEqual([b"OK", b"OK", b"QUEUED"], link.run("CWATCH t m", "MULTI", "CPUT t m f:x mine"))
        other = Link(follower.port)
        self.assertEqual([b"OK"], other.run("WATCH t"))
        third = Link(follower.port)
        self.assertEqual([b"OK", b"OK"], third.run("WATCH t", "UNWATCH"))
        self.hand_over(self.members, to=follower)
        follower.run("CPUT t m f:x others")
        self.assertEqual([None], link.run("EXEC"))
        self.assertEqual([b"OK", b"QUEUED", None], other.run("MULTI", "CPUT t m f:x mine", "EXEC"))
        self.assertEqual([b"OK", b"QUEUED", [b"others"]], link.run("MULTI", "CGET t m f:x", "EXEC"))
        self.assertEqual([b"OK", b"OK", b"QUEUED", [b"OK"]], other.run("CWATCH t m", "MULTI", "CPUT t m f:x 5", "EXEC"))
        self.assertEqual([b"OK", b"QUEUED", [b"5"]], third.run("MULTI", "CGET t m f:x", "EXEC"))
        for each in (link, other, third):
            each.close()
        self.assert_at_rest(self.members)

    def test_replies_that_are_not_wanted(self):
        _, follower = self.begin()
        link = Link(follower.port)
        link.send("CLIENT REPLY OFF", "CPUT t q f:x 1", "CGET t q f:x", "CLIENT REPLY ON")
        self.assertEqual(b"OK", link.read())
        link.send("CLIENT REPLY SKIP", "CPUT t q f:x 2", "CGET t q f:x")
        self.assertEqual(b"2", link.read())
        link.close()

    def test_a_user_has_the_same_rights_at_the_owner(self):
        _, follower = self.begin(cluster_acl="no")
        for member in self.members:
            member.run("ACL SETUSER ann on >secret ~t:* +@all -@dangerous")
        link = Link(follower.port)
        self.assertEqual([b"OK", b"OK"], link.run("AUTH ann secret", "CPUT t r f:x 1"))
        self.assertIsInstance(link.run("TABLE CREATE nope FAMILY f")[0], redis.ResponseError)
        self.assertEqual([b"OK", b"OK"], link.run("SELECT 1", "SELECT 0"))
        leader = self.wait_leader(self.members)
        leader.run("ACL DELUSER ann")
        self.assertIn("is not known at the owner", str(self.outcome(link, "CPUT t r f:x 2")))
        link.close()

    def test_rights_that_go_between_multi_and_exec(self):
        leader, follower = self.begin()
        leader.run("ACL SETUSER ann on >secret ~t:* +@all")
        self.wait_until(lambda: "ann" in follower.run("ACL USERS"), "the user has not come")
        link = Link(follower.port)
        self.assertEqual([b"OK", b"OK", b"OK", b"QUEUED", b"QUEUED"],
                         link.run("AUTH ann secret", "CPUT t r f:x 1", "MULTI", "CGET t r f:x", "CPUT t r f:x 2"))
        leader.run("ACL SETUSER ann -cput")
        got, refused = link.run("EXEC")[0]
        self.assertEqual(b"1", got)
        self.assertIn("no permission to execute the command", str(refused))
        self.assertEqual([b"1"], link.run("CGET t r f:x"))
        link.close()

    def test_a_keyspace_that_the_connection_has_made_itself(self):
        leader, follower = self.begin()
        for number in range(20):
            link = Link(follower.port)
            name = f"own{number}"
            self.assertEqual([b"OK", b"OK", b"OK", b"OK", b"1"],
                             link.run(f"KEYSPACE CREATE {name}", f"SELECT {name}", "TABLE CREATE t FAMILY f", "CPUT t r f:x 1",
                                      "CGET t r f:x"))
            # EXEC changes the keyspace of the connection, whoever carries it out.
            got = link.run("MULTI", "SELECT 0", "CPUT t e f:x 2", f"SELECT {name}", "CPUT t e f:x 3", "SELECT 0", "EXEC",
                           "CGET t e f:x", "CPUT t e f:y 4")
            self.assertEqual([[b"OK"] * 5, b"2", b"OK"], got[6:])
            self.assertEqual("3", leader.run("CGET", f"{name}/t", "e", "f:x"))
            self.assertEqual("4", leader.run("CGET", "0/t", "e", "f:y"))
            link.close()
        link = Link(follower.port)
        got = link.run("MULTI", "CPUT t r f:x 1", "CLIENT ID", "EXEC", "CGET t r f:x", "PING")
        self.assertIn("answered by each node for itself", str(got[3]))
        self.assertEqual([None, b"PONG"], got[4:])
        link.close()

    def test_a_read_misses_nothing_that_a_refused_write_has_told(self):
        leader, follower = self.begin()
        link = Link(follower.port)
        for number in range(200):
            leader.run("CPUT", "t", f"n{number}", "f:x", "1")
            # What is there has been written by somebody else, and the reply tells that it is.
            self.assertEqual([None, b"1"], link.run(f"CPUT t n{number} NX f:x 2", f"CGET t n{number} f:x"), number)
        link.close()

    def test_tracking_tells_of_what_was_read_here(self):
        leader, follower = self.begin()
        for reads in ("local", "leader"):
            follower.run("CONFIG", "SET", "cluster-reads", reads)
            reader, pushes = resp.Client(follower.port, 3), []
            self.addCleanup(reader.close)

            def ask(*words):
                reader.send(*words)
                while isinstance(reply := reader.read(), resp.Push):
                    pushes.append(reply[1])
                return reply
            self.assertEqual(b"OK", ask("CLIENT", "TRACKING", "ON"))
            for number in range(50):
                leader.run("CPUT", "t", "r", "f:x", str(number))
                ask("CPUT", "t", "other", "f:x", str(number))
                if reads == "leader":
                    self.assertEqual(b"%d" % number, ask("CGET", "t", "r", "f:x"))
                else:
                    self.wait_until(lambda: ask("CGET", "t", "r", "f:x") == b"%d" % number, "it has not come")
                pushes.clear()
                leader.run("CPUT", "t", "r", "f:x", "changed")
                if not pushes:
                    self.assertEqual([b"invalidate", [b"t"]], list(reader.read()))
            # What EXEC has read at the leader is not to be kept.
            pushes.clear()
            self.assertEqual([resp.OK, b"1"], [ask(*line.split()) for line in ("MULTI", "CPUT t r f:x 1", "CGET t r f:x", "EXEC")][3])
            if None not in pushes:
                self.assertEqual([b"invalidate", None], list(reader.read()))

    def test_noloop_keeps_own_writes_alone_from_a_client(self):
        """Writes of several clients share records of the log, and the one that is passed on is under way meanwhile."""
        leader, follower = self.begin()
        for reads in ("local", "leader"):
            for words in (("cluster-reads", reads), ("tracking-names", "row")):
                follower.run("CONFIG", "SET", *words)
            listener = resp.Client(follower.port, 3, timeout=120)
            self.addCleanup(listener.close)
            others = [resp.Client(member.port, 3, timeout=120) for member in (leader, follower)]
            told = []

            def read():
                while isinstance(reply := listener.read(), resp.Push):
                    told.extend(reply[1] or [None])
                return reply

            def ask(*words):
                listener.send(*words)
                return read()
            self.assertEqual(b"OK", ask("CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP"))
            wanted = []
            for number in range(100):
                for writer, other in enumerate(others):
                    for i in range(5):
                        row = f"{writer}-{number}-{i}"
                        other.send("CPUT", "t", row, "f:x", "1")
                        wanted.append(f"t:{row}".encode())
                for i in range(5):
                    listener.send("CPUT", "t", f"own-{number}-{i}", "f:x", "1")
                if number % 2:
                    listener.send("CDELRANGE", "t", "PREFIX", "nothing")
                    listener.send("MULTI")
                    listener.send("CPUT", "t", f"own-{number}", "f:x", "1")
                    listener.send("EXEC")
                for _ in range(9 if number % 2 else 5):
                    self.assertNotIsInstance(read(), resp.Error)
                for other in others:
                    for _ in range(5):
                        self.assertEqual(b"OK", other.read())
            # What all have been told of is here then, and with it what is told of it.
            for other in others:
                other.close()
            ask("WAIT", "0", "0")
            self.assertEqual(b"OK", ask("SELECT", "0"))
            self.assertEqual(b"PONG", ask("PING"))
            self.assertEqual(sorted(wanted), sorted(name or b"all" for name in told), reads)
            listener.close()

    def test_noloop_of_a_client_that_waits_for_others(self):
        """What waits for ever holds nothing back."""
        leader, follower = self.begin()
        follower.run("CONFIG", "SET", "tracking-names", "row")
        leader.run("TABLE CREATE quiet FAMILY f")
        leader.run("FEED CREATE changes ON 1 quiet")
        self.wait_until(lambda: "changes" in str(follower.run("FEED LIST")), "the feed has not come")
        self.assertEqual("OK", follower.run("XGROUP CREATE changes g $"))
        listener = resp.Client(follower.port, 3, timeout=120)
        self.addCleanup(listener.close)
        self.assertEqual(b"OK", listener.call("CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP", "PREFIX", "t:"))
        listener.send("CPUT", "t", "own", "f:x", "1")
        listener.send(*"XREADGROUP GROUP g me BLOCK 0 STREAMS changes >".split())
        self.assertEqual(b"OK", listener.read())
        leader.run("CPUT t b f:x 1")
        self.assertEqual([b"invalidate", [b"t:b"]], list(listener.read()))
        # Nor what stands behind it.
        def calls_out():
            return follower.redis.info("cluster")["cluster_calls_out"]
        calls = calls_out()
        listener.send("CPUT", "t", "own", "f:x", "2")
        self.wait_until(lambda: calls_out() > calls, "it has not gone")
        leader.run("CPUT t c f:x 1")
        while (told := list(listener.read())) == [b"invalidate", [b"t:own"]]:
            pass  # behind what waits, its own writes may be told
        self.assertEqual([b"invalidate", [b"t:c"]], told)

    def test_what_is_published_reaches_all_nodes(self):
        self.begin()
        listeners = []
        for member in self.members:
            listener = redis.Redis(port=member.port, socket_timeout=120).pubsub()
            listener.subscribe("news")
            listener.psubscribe("ne*")
            for _ in range(2):
                listener.get_message(timeout=120)
            listeners.append(listener)
        # What is published before the links between the nodes stand is not kept.
        heard = [set() for _ in listeners]

        def all_hear():
            for sender, member in enumerate(self.members):
                member.run("PUBLISH", "news", f"begin{sender}")
            for listener, known in zip(listeners, heard):
                while (got := listener.get_message(timeout=0.05)) is not None:
                    known.add(got["data"])
            return all(len(known) == 3 for known in heard)
        self.wait_until(all_hear, lambda: str(heard))
        for sender, member in enumerate(self.members):
            for number in range(100):
                self.assertEqual(2, member.run("PUBLISH", "news", f"{sender}.{number}"))
        for listener in listeners:
            got = {"message": [], "pmessage": []}
            while len(got["message"]) + len(got["pmessage"]) < 600:
                message = listener.get_message(timeout=120)
                if not message["data"].startswith(b"begin"):
                    got[message["type"]].append(message["data"].decode())
            for kind in got.values():
                for sender in range(3):
                    self.assertEqual([f"{sender}.{number}" for number in range(100)],
                                     [data for data in kind if data.startswith(f"{sender}.")])
            listener.close()

    def test_a_node_that_is_stopped_answers_what_is_under_way(self):
        _, follower = self.begin()
        links = [Link(follower.port) for _ in range(8)]
        for number, link in enumerate(links):
            link.send(*[("CPUT", "t", f"s{number}.{i}", "f:x", "1") for i in range(200)])
        follower.server.process.send_signal(signal.SIGTERM)
        for number, link in enumerate(links):
            answered = 0
            try:
                while answered < 200:
                    self.assertEqual(b"OK", link.read())
                    answered += 1
            except (redis.ConnectionError, ConnectionError):
                pass
            link.answered = answered
        self.assertEqual(0, follower.server.process.wait(timeout=120))
        leader = self.wait_leader([member for member in self.members if member is not follower])
        for number, link in enumerate(links):
            there = [leader.run("CGET", "t", f"s{number}.{i}", "f:x") == "1" for i in range(200)]
            self.assertEqual([True] * link.answered + [False] * (200 - link.answered), there, number)

    def test_a_reader_that_waits_for_others(self):
        leader, follower = self.begin()
        leader.run("FEED CREATE changes ON 0")
        self.wait_until(lambda: "changes" in str(follower.run("FEED LIST")), "the feed has not come")
        self.assertEqual("OK", follower.run("XGROUP CREATE changes g $"))
        link = Link(follower.port)

        def waits():
            """At the leader, as a channel."""
            return any(each["cmd"] == "xreadgroup" and "b" in each["flags"] for each in leader.redis.client_list())
        link.send("XREADGROUP GROUP g me BLOCK 0 COUNT 1 STREAMS changes >")
        self.wait_until(waits, leader.redis.client_list)
        leader.run("CPUT t b f:x 1")
        self.assertIn("changes", str(link.read()))
        # One that hangs up leaves nothing behind.
        link.send("XREADGROUP GROUP g me BLOCK 0 COUNT 1 STREAMS changes >")
        self.wait_until(waits, leader.redis.client_list)
        link.close()
        self.assert_at_rest(self.members)

    def shown_blocked(self, node, client):
        """What the node says of a client: its flag in CLIENT LIST, and how many of all are blocked."""
        flags = str(node.run(f"CLIENT LIST ID {client}")).split(" flags=")[1].split()[0]
        return "b" in flags, node.info("clients")["blocked_clients"]

    def test_a_client_that_waits_at_the_owner_is_unblocked(self):
        leader, follower = self.begin()
        leader.run("TABLE CREATE quiet FAMILY f")
        leader.run("FEED CREATE changes ON 1 quiet")
        self.wait_until(lambda: "changes" in str(follower.run("FEED LIST")), "the feed has not come")
        self.assertEqual("OK", follower.run("XGROUP CREATE changes g $"))
        follower.run("CONFIG SET cluster-reads leader")
        link = Link(follower.port)
        own = link.run("CLIENT ID")[0]
        self.assertEqual(0, follower.run(f"CLIENT UNBLOCK {own}"))
        read, read_group = "XREAD BLOCK 0 STREAMS changes $", "XREADGROUP GROUP g me BLOCK 0 STREAMS changes >"
        for waits, nothing in ((read, (None,)), (read_group, (None,)), ("WAIT 7 0", (0, 1, 2))):
            link.run("CPUT t a f:x 1")
            for how in ("", " TIMEOUT", " ERROR"):
                link.send(waits)
                self.wait_until(lambda: self.shown_blocked(follower, own) == (True, 1), waits)
                self.assertEqual(0, leader.info("clients")["blocked_clients"])  # the client is not its own
                # It has not begun to wait there before it says so.
                self.wait_until(lambda: follower.run(f"CLIENT UNBLOCK {own}{how}") == 1, waits)
                got = link.read()
                if how == " ERROR":
                    self.assertEqual("UNBLOCKED client unblocked via CLIENT UNBLOCK", str(got))
                else:
                    self.assertIn(got, nothing, waits)
                self.assertEqual([b"PONG", b"OK"], link.run("PING", "CPUT t b f:x 1"))
                self.assertEqual((False, 0), self.shown_blocked(follower, own))
        # One that works and does not wait; one whose asker leaves before the answer.
        self.assertEqual(0, follower.run(f"CLIENT UNBLOCK {own}"))
        link.send("WAIT 7 0")
        asker = Link(follower.port)
        asker.send(f"CLIENT UNBLOCK {own}")
        asker.close()
        self.wait_until(lambda: follower.run(f"CLIENT UNBLOCK {own}") == 1 or link.connection.can_read(0), "it waits on")
        self.assertIn(link.read(), (0, 1, 2))
        link.close()
        self.assert_at_rest(self.members)

    def test_a_reply_that_crosses_an_unblocking(self):
        leader, follower = self.begin(replica_election_timeout=10_000)
        leader.run("FEED CREATE changes ON 0")
        self.wait_until(lambda: "changes" in str(follower.run("FEED LIST")), "the feed has not come")
        self.assertEqual("OK", follower.run("XGROUP CREATE changes g $"))
        link, asker = Link(follower.port), Link(follower.port)
        own = link.run("CLIENT ID")[0]
        asker.run("PING")
        for number in range(5):
            calls = self.figures(leader)["cluster_calls_in"]
            link.send("XREADGROUP GROUP g me BLOCK 0 STREAMS changes >")
            self.wait_until(lambda: self.figures(leader)["cluster_calls_in"] > calls, "it has not been passed on")
            follower.server.process.send_signal(signal.SIGSTOP)
            try:
                leader.run(f"CPUT t b f:x {number}")
                asker.send(f"CLIENT UNBLOCK {own}")
                # What the leader tells of it here it has told the reader, too.
                self.wait_until(lambda: leader.run("XPENDING changes g")["pending"] == number + 1, "nobody has read it")
            finally:
                follower.server.process.send_signal(signal.SIGCONT)
            # Whichever of the two the node reads first, the reader gets what it was given, and nobody is told otherwise.
            self.assertIn("changes", str(link.read()))
            self.assertEqual(0, asker.read())
            self.assertEqual([b"PONG"], link.run("PING"))
        for each in (link, asker):
            each.close()
        self.assert_at_rest(self.members)

    def test_a_thousand_of_other_users_and_keyspaces(self):
        """Each client has a channel while it has something to pass on, and a while longer."""
        leader, follower = self.begin()
        for member in (leader, follower):
            member.run("CONFIG SET maxclients 3000")
        users, keyspaces = 100, 10
        for user in range(users):
            follower.run(f"ACL SETUSER u{user} ON NOPASS +@all ~*")
        # A node knows of users what it has applied of the log; other connections than the one that wrote do not wait.
        early = Link(follower.port)
        self.wait_until(lambda: early.run(f"AUTH u{users - 1} x") == [b"OK"], "the follower does not know the users")
        early.close()
        clients = [(f"AUTH u{number % users} x", f"SELECT {number // users}", f"CPUT 0/t r{number} f:x 1")
                   for number in range(users * keyspaces)]
        # One connection that is some of them in turn has one. (AUTH waits there for what it has written.)
        link = Link(follower.port)
        for commands in clients[::20]:
            self.assertEqual([b"OK"] * 3, link.run(*commands))
        self.assertLessEqual(self.figures(leader)["cluster_channels"], 2)
        link.close()
        links = []
        for commands in clients:
            links.append(Link(follower.port))
            self.assertEqual([b"OK"] * 3, links[-1].run(*commands))
        self.assertLessEqual(self.figures(leader)["cluster_channels"], len(clients) + 2)
        # They stay connected, and their channels go; whoever has something to say again gets one again.
        self.wait_until(lambda: self.figures(leader)["cluster_channels"] <= 1, lambda: str(self.figures(leader)))
        for number in (0, len(clients) - 1):
            self.assertEqual([b"1", b"OK"], links[number].run(f"CGET 0/t r{number} f:x", f"CPUT 0/t r{number} f:x 2"))
        self.assertGreaterEqual(self.figures(leader)["cluster_channels"], 2)
        for each in links:
            each.close()
        self.wait_until(lambda: self.figures(leader)["cluster_channels"] <= 1, lambda: str(self.figures(leader)))
        self.assert_at_rest(self.members)

    def test_feeds_tell_what_their_connection_has_written(self):
        """Also what is on no disk of the node that reads yet, and in an EXEC."""
        leader, follower = self.begin(appendfsync="everysec")
        leader.run("FEED CREATE changes ON 1 t")
        link = Link(follower.port)
        for number in range(1, 41):
            follower.run("CONFIG", "SET", "cluster-reads", "local" if number <= 20 else "leader")
            got = link.run(("CPUT", "t", f"r{number}", "f:x", "1"), "XLEN changes", "XREVRANGE changes + - COUNT 1",
                           ("CPUT", "t", f"r{number}", "f:x", "2"), "MULTI", "XLEN changes", "EXEC")
            self.assertEqual([b"OK", 2 * number], got[:2])
            self.assertIn(f"r{number}".encode(), got[2][0][1])
            self.assertEqual([2 * number + 1], got[-1])  # with that of the feed itself
        # Another one sees what there is.
        other = Link(follower.port)
        self.assertLessEqual(80, other.run("XLEN changes")[0])
        for one in (link, other):
            one.close()
        self.assert_at_rest(self.members)

    @unittest.skipIf(is_sanitized(), "the sanitizers' own functions must be loaded first")
    def test_an_exec_that_waits_for_feeds_keeps_what_it_watches(self):
        """The leader's own disk stands still, and those of the others do not: so it is told what its feeds cannot show yet."""
        leader, follower = self.begin(appendfsync="always", cluster_wait=120_000)
        leader.run("FEED CREATE changes ON 1 t")
        third = next(member for member in self.members if member not in (leader, follower))
        folder = tempfile.mkdtemp(prefix="cellar-held-")
        self.addCleanup(shutil.rmtree, folder)
        library, gate = os.path.join(folder, "held_sync.so"), os.path.join(folder, "gate")
        subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", os.path.join(os.path.dirname(__file__), "held_sync.cc"),
                        "-o", library, "-ldl"], check=True)
        leader.server.stop()
        leader.server.environment.update(LD_PRELOAD=library, HELD_SYNC_MARK="held-from-here", HELD_SYNC_GATE=gate)
        leader.server.start()
        leader.connect()
        self.wait_leader(self.members)
        self.wait_until(lambda: self.has_caught_up(leader), "it does not come back")
        if self.wait_leader(self.members) is not leader:
            self.hand_over(self.members, to=leader)
        link, other = Link(follower.port), Link(third.port)
        with open(gate, "w", encoding="ascii"):
            pass
        try:
            self.assertEqual([b"OK"], other.run("CPUT t mark f:x held-from-here"))
            self.assertEqual([b"OK", b"OK", b"OK", b"QUEUED", b"QUEUED"],
                             link.run("CPUT t w f:x 1", "CWATCH t w", "MULTI", "XLEN changes", "CPUT t w f:x mine"))
            link.send("EXEC")
            self.assertFalse(link.connection.can_read(0.5), "the feed shows what is on no disk of the leader's")
            self.assertEqual([b"OK"], other.run("CPUT t w f:x others"))
            # Patience is of the EXEC, however often it is tried.
            self.assertFalse(link.connection.can_read(0.5))
        finally:
            os.unlink(gate)
        self.assertIsNone(link.read())
        self.assertEqual("others", leader.run("CGET t w f:x"))
        with open(gate, "w", encoding="ascii"):
            pass
        try:
            leader.run("CONFIG SET cluster-wait 0")
            self.assertEqual([b"OK", b"OK", b"QUEUED", b"QUEUED", b"QUEUED"],
                             link.run("CPUT t w f:x 2", "MULTI", "XLEN changes", "CPUT t w f:x half", "CPUT t v f:x half"))
            refused = link.run("EXEC")[0]
            self.assertTrue(str(refused).startswith("TRYAGAIN what this connection has been told of"), refused)
        finally:
            os.unlink(gate)
        self.assertEqual([b"2", None], link.run("CGET t w f:x", "CGET t v f:x"))
        for each in (link, other):
            each.close()
        self.assert_at_rest(self.members)

    @staticmethod
    def has_caught_up(member):
        try:
            return member.info("replication").get("master_link_status", "up") == "up" and "no error" in member.refusal("CGET t m f:x")
        except redis.RedisError:
            return False

    def test_feeds_tell_who_may_read_them(self):
        """Also those of what the owner alone judges, and while they wait there."""
        leader, follower = self.begin()
        leader.run("FEED CREATE changes ON 1 t")
        leader.run("ACL SETUSER ann ON >secret +@all %R~t:open")
        leader.run("CPUT t a f:x 1")
        follower.run("CONFIG SET cluster-reads leader")
        link = Link(follower.port)
        self.wait_until(lambda: link.run("AUTH ann secret")[0] == b"OK", "ann is not known")
        for read in ("XRANGE changes - +", "XLEN changes", "XREAD STREAMS changes 0", "XREAD BLOCK 0 STREAMS changes $"):
            self.assertIsInstance(link.run(read)[0], redis.exceptions.NoPermissionError, read)
        leader.run("ACL SETUSER ann %R~t:*")
        self.wait_until(lambda: link.run("XLEN changes") == [2], lambda: link.run("XLEN changes"))
        link.send("XREAD BLOCK 0 STREAMS changes $")
        self.wait_until(lambda: any(line["user"] == "ann" and "b" in line["flags"] for line in leader.redis.client_list()),
                        "it does not wait")
        leader.run("ACL SETUSER ann resetkeys %R~t:open")
        self.assertIsInstance(link.read(), redis.exceptions.NoPermissionError)
        leader.run("CPUT t b f:x 1")
        self.assertIsInstance(link.run("XLEN changes")[0], redis.exceptions.NoPermissionError)
        link.close()
        self.assert_at_rest(self.members)

    def load_numbers(self, leader):
        """Rows enough that an index over them is built in many turns; 600 of them have 7."""
        for begin in range(0, 60_000, 2_000):
            with leader.redis.pipeline(transaction=False) as pipe:
                for number in range(begin, begin + 2_000):
                    pipe.execute_command("CPUT", "t", f"r{number}", "f:x", str(number % 100))
                pipe.execute()

    def test_an_index_that_is_not_built_here(self):
        """Its node passes the reads on that want it, whatever it answers itself."""
        leader, follower = self.begin()
        self.load_numbers(leader)
        link = Link(follower.port)
        for number, reads in enumerate(("local", "local", "linearizable")):
            index = f"i{number}"
            count = f"CCOUNT t INDEX {index} EQ 1 7"
            follower.run("CONFIG", "SET", "cluster-reads", reads)
            # SELECT waits until the node knows the index; it builds it in many turns.
            commands = ["MULTI", count, "EXEC"] if number == 0 else [count, f"CSCAN t 0 INDEX {index} EQ 1 7"]
            before = self.figures(follower)["cluster_calls_out"]
            link.run(f"INDEX CREATE t {index} ON 1 f:x", "SELECT 0", *commands)
            self.assertEqual(before + (2 if number == 0 else 3), self.figures(follower)["cluster_calls_out"])
            self.wait_until(lambda: leader.refusal(count) == "no error: 600", lambda: leader.refusal(count))
            self.assertEqual([600], link.run(count))
            self.wait_until(lambda: "ready" in str(follower.run("INDEX", "INFO", "t", index)), "it is not built")
            before = self.figures(follower)["cluster_calls_out"]
            self.assertEqual([600], link.run(count))
            self.assertEqual(before, self.figures(follower)["cluster_calls_out"])
        link.close()
        self.assert_at_rest(self.members)

    def test_memory_of_what_is_passed_on_is_counted(self):
        """At the entry the calls without an answer, at the owner those that have not had their turn."""
        leader, follower = self.begin()
        follower.run("CONFIG SET cluster-wait 60000")
        self.assertEqual("OK", follower.run("CPUT t a f:x 1"))
        nodes = (leader, follower)

        def held():
            return [node.info("memory")["mem_cluster_links"] for node in nodes]
        before = held()
        self.assertTrue(all(before), before)
        calls_before = self.figures(follower)["cluster_calls_out"]
        leader.run("CLIENT PAUSE 1000000 WRITE")
        links = [Link(follower.port) for _ in range(30)]
        for number, link in enumerate(links):
            link.send(*[("CPUT", "t", f"m{number}.{i}", "f:x", "v" * 100_000) for i in range(2)])
        self.wait_until(lambda: self.figures(follower)["cluster_calls_out"] == calls_before + 60,
                        lambda: str(self.figures(follower)))
        self.wait_until(lambda: all(now - was >= 6_000_000 for was, now in zip(before, held())), lambda: str(held()))
        leader.run("CLIENT UNPAUSE")
        for link in links:
            self.assertEqual([b"OK"] * 2, [link.read() for _ in range(2)])
            link.close()
        self.assert_at_rest(self.members)
        self.wait_until(lambda: all(now - was < 3_000_000 for was, now in zip(before, held())), lambda: str(held()))

    def test_a_scan_that_belongs_here_waits_for_its_index_here(self):
        """Its cursor holds a state of this node: it is not passed on for an index that others may have."""
        leader, follower = self.begin()
        self.load_numbers(leader)
        link = Link(follower.port)
        for number, scan in enumerate(("CSCAN t 0 INDEX {} EQ 1 7 SNAPSHOT", "CSCAN t 99 INDEX {} EQ 1 7")):
            for words in ([scan], ["MULTI", scan, "EXEC"]):
                index = f"i{number}{len(words)}"
                before = self.figures(follower)["cluster_calls_out"]
                # SELECT waits until the node knows the index; it builds it in many turns.
                got = link.run(f"INDEX CREATE t {index} ON 1 f:x", "SELECT 0", *[line.format(index) for line in words])[-1]
                error = got[0] if isinstance(got, list) else got
                self.assertRegex(str(error), "is being built|cursor", words)
                self.assertEqual(before + 1, self.figures(follower)["cluster_calls_out"], words)
                self.wait_until(lambda: "ready" in str(follower.run("INDEX", "INFO", "t", index)), "it is not built")
        link.close()
        self.assert_at_rest(self.members)

    def test_a_read_whose_leader_does_not_answer(self):
        """It is not told that something has not come yet: it waits for nothing but the leader."""
        leader, follower = self.begin(replica_election_timeout=10_000)
        follower.run("CONFIG SET cluster-reads leader")
        follower.run("CONFIG SET cluster-wait 200")
        leader.server.process.send_signal(signal.SIGSTOP)
        self.addCleanup(leader.server.process.send_signal, signal.SIGCONT)
        self.assertIn("CLUSTERDOWN no leader: ", follower.refusal("CGET t a f:x"))
        leader.server.process.send_signal(signal.SIGCONT)

    def test_what_is_under_way_when_nobody_leads_any_more(self):
        """Two of three stand still, as do their systems' queues: who has asked the leader before is told, and not left to wait."""
        self.begin()
        for member in self.members:
            member.run("CONFIG SET cluster-wait 200")
            member.run("CONFIG SET cluster-reads leader")
        rng = random.Random(SEED)
        for _ in range(6):
            # Who has stood still thinks for a moment that it leads.
            self.wait_until(lambda: [member.leads() for member in self.members].count(True) == 1, "nobody leads alone")
            follower = rng.choice([member for member in self.members if not member.leads()])
            self.wait_until(lambda follower=follower: follower.refusal("CPUT t a f:x 1").startswith("no error"), "it takes no writes")
            others = [member for member in self.members if member is not follower]
            led = follower.server.log().count("Leading from now on")
            if follower.leads():
                continue
            told = []

            def ask(command, pause, follower=follower, told=told):
                client = redis.Redis(port=follower.port, socket_timeout=120, retry=None, decode_responses=True)
                time.sleep(pause)
                try:
                    told.append((command, client.execute_command(*command.split())))
                except redis.TimeoutError:
                    told.append((command, "nothing"))
                except redis.RedisError as error:
                    told.append((command, str(error)))
            threads = [threading.Thread(target=ask, args=(command, rng.random() * 2))
                       for command in ("CGET t a f:x", "CPUT t a f:x 1", "TABLE LIST", "XREAD BLOCK 0 STREAMS none 0") for _ in range(12)]
            for thread in threads:
                thread.start()
            time.sleep(rng.random() * 0.3)
            for member in others:
                member.server.process.send_signal(signal.SIGSTOP)
            for thread in threads:
                thread.join()
            for member in others:
                member.server.process.send_signal(signal.SIGCONT)
            self.assertEqual([], [each for each in told if each[1] == "nothing"])
            wrong = [each for each in told if each[0].startswith(("CGET", "TABLE")) and "onnection" in str(each[1])]
            # Where it came to lead meanwhile, it has lost that again, and its clients with it.
            if follower.server.log().count("Leading from now on") == led:
                self.assertEqual([], wrong, f"seed {SEED}: {follower.server.log()[-3000:]}")
        self.assert_at_rest(self.members)

    def test_a_node_that_begins_again_tells_nothing_older(self):
        """The last mark of what is committed may lie before what it has told: without a leader it waits, but for READONLY."""
        _, follower = self.begin()
        waited = 0
        for number in range(4):
            others = [member for member in self.members if member is not follower]
            row, table = f"r{number}", f"u{number}"
            self.assertEqual("OK", follower.run("CPUT", "t", row, "f:x", "v"))
            self.assertEqual("OK", follower.run("TABLE", "CREATE", table, "FAMILY", "f"))
            self.assertEqual("v", follower.run("CGET", "t", row, "f:x"))
            self.assertIn(table, follower.run("TABLE LIST"))
            self.assertEqual("OK", follower.run(f"KEYSPACE CREATE k{number}"))
            digest = follower.run("DEBUG DIGEST CLUSTER")
            follower.server.kill()
            for member in others:
                member.server.process.send_signal(signal.SIGSTOP)
            follower.server.start()
            follower.connect()
            self.have_wait(follower)
            links = [Link(follower.port) for _ in range(7)]
            tracks = links[3].run(f"CLIENT TRACKING ON REDIRECT {links[4].run('CLIENT ID')[0]}")
            self.assertEqual([b"OK"], tracks)
            for link, command in zip(links, (f"CGET t {row} f:x", "TABLE LIST", f"CCOUNT {table}", f"CGET t {row} f:x", "CSCAN t 0 COUNT 10",
                                            f"SELECT k{number}", "DEBUG DIGEST CLUSTER")):
                link.send(command)
            stale = Link(follower.port)
            self.assertNotIn("CLUSTERDOWN", str(stale.run("READONLY", f"CGET t {row} f:x")[1]))
            stale.close()
            # Where its last mark was made after all of that it has nothing to wait for.
            self.wait_until(lambda: self.held(follower) == len(links) or all(link.has_more() for link in links),
                            lambda: f"{self.figures(follower)}")
            waited += self.held(follower)
            for member in others:
                member.server.process.send_signal(signal.SIGCONT)
            got = [link.read() for link in links]
            self.assertEqual(b"v", got[0])
            self.assertIn(table.encode(), got[1])
            self.assertEqual([0, b"v"], got[2:4])
            self.assertIn(row.encode(), [each[0] for each in got[4][1]])
            self.assertEqual([b"OK", digest.encode()], got[5:])
            for link in links:
                link.close()
            self.wait_leader(self.members)
            follower = next(member for member in self.members if not member.leads())
        self.assertGreater(waited, 0)
        self.assert_at_rest(self.members)

    def held(self, member):
        return sum(self.figures(member).get(f"cluster_calls_{name}", 0) for name in ("waiting", "held"))

    def test_clients_that_hang_up(self):
        _, follower = self.begin()
        for number in range(200):
            link = socket.create_connection(("127.0.0.1", follower.port))
            row = f"h{number}".encode()
            request = b"*5\r\n$4\r\nCPUT\r\n$1\r\nt\r\n$%d\r\n%s\r\n$3\r\nf:x\r\n$1\r\n1\r\n" % (len(row), row)
            link.sendall(request * 20)
            link.close()
        self.assert_at_rest(self.members)
        self.wait_until(lambda: self.figures(self.wait_leader(self.members))["cluster_channels"] <= 1,
                        lambda: str(self.figures(self.wait_leader(self.members))))

    def test_one_that_asks_for_much_and_does_not_read(self):
        leader, follower = self.begin(client_output_buffer_limit="normal 0 0 0")
        follower.run("CONFIG SET cluster-reads leader")
        value = "v" * 100_000
        for number in range(300):
            leader.run("CPUT", "t", f"big{number}", "f:x", value)
        greedy = Link(follower.port)
        greedy.send(*["CSCAN t 0 COUNT 1000"] * 30)  # 900 MB
        before = [member.info("memory")["used_memory"] for member in (leader, follower)]
        for number in range(200):
            self.assertEqual("OK", follower.run("CPUT", "t", f"s{number}", "f:x", "1"))
        after = [member.info("memory")["used_memory"] for member in (leader, follower)]
        for was, now in zip(before, after):
            self.assertLess(now - was, 150 << 20)
        greedy.close()
        self.assert_at_rest(self.members)


class Failing(AnyNodeCase):
    def write_until(self, ports, stop, results):
        """Each acknowledged write, each error, each closed connection with its time."""
        def run(port, name):
            link, number = None, 0
            while not stop.is_set():
                try:
                    if link is None:
                        link = redis.Redis(port=port, socket_timeout=120, decode_responses=True)
                    row = f"{name}-{number}"
                    link.execute_command("CPUT", "t", row, "f:x", number)
                    results["done"].append((row, str(number), time.monotonic()))
                    got = link.execute_command("CGET", "t", row, "f:x")
                    if got != str(number):
                        results["missed"].append((row, got))
                except redis.ConnectionError as error:
                    results["closed"].append(str(error))
                    link = None
                except redis.ResponseError as error:
                    results["errors"].append(str(error))
                number += 1
        threads = [threading.Thread(target=run, args=(port, f"{port}.{i}"), daemon=True) for port in ports for i in range(3)]
        for thread in threads:
            thread.start()
        return threads

    def wait_writes(self, results, more=100):
        """Until so many more are acknowledged."""
        count = len(results["done"])
        self.wait_until(lambda: len(results["done"]) >= count + more, lambda: f"{len(results['done']) - count} writes more")

    @unittest.skipIf(is_sanitized(), "elections take longer than a command waits")
    def test_planned_failover_is_not_noticed(self):
        self.begin()
        results = {"done": [], "missed": [], "closed": [], "errors": []}
        stop = threading.Event()
        threads = self.write_until([member.port for member in self.members], stop, results)
        for _ in range(ROUNDS):
            leader = self.wait_leader(self.members)
            self.wait_writes(results)
            self.hand_over(self.members, former=leader)
        self.wait_writes(results)
        stop.set()
        for thread in threads:
            thread.join()
        print(f"\n{ROUNDS} failovers: {len(results['done'])} writes, {results['errors'][:3]} {results['closed'][:3]}")
        self.assertEqual(([], [], []), (results["missed"], results["errors"], results["closed"]))
        self.assert_at_rest(self.members)
        self.assert_equal(self.members)

    def pipelines(self, port, name, commands, wrong):
        """Mixed commands on one connection, whose replies are known."""
        rng = random.Random(f"{SEED}/{name}")
        link = Link(port)
        known, counts = {}, {}
        done = 0
        while done < commands and not wrong:
            asked, expected = [], []
            for step in range(rng.randrange(1, 200)):
                row = f"{name}-{rng.randrange(20)}"
                kind = rng.randrange(10)
                if kind < 3:
                    known[row] = f"{done}.{step}".encode()
                    asked.append(("CPUT", "t", row, "f:x", known[row]))
                    expected.append(b"OK")
                elif kind < 7:
                    asked.append(("CGET", "t", row, "f:x"))
                    expected.append(known.get(row))
                elif kind == 7:
                    counts[row] = counts.get(row, 0) + 1
                    asked.append(("CINCRBY", "t", row, "f:n", 1))
                    expected.append(counts[row])
                elif kind == 8:
                    asked.append(("ECHO", f"e{step}"))
                    expected.append(f"e{step}".encode())
                else:
                    asked.append(("CDEL", "t", row, "f:x"))
                    expected.append(1 if known.pop(row, None) is not None else 0)
            got = link.run(*asked)
            if got != expected:
                at = next(i for i, (one, other) in enumerate(zip(got, expected)) if one != other)
                wrong.append(f"seed {SEED}: {name}: {asked[at]}: {got[at]!r}, not {expected[at]!r}")
            done += len(asked)
        link.close()

    @unittest.skipIf(is_sanitized(), "elections take longer than a command waits")
    def test_replies_in_order_over_failovers(self):
        self.begin()
        wrong = []
        threads = [threading.Thread(target=self.pipelines, args=(member.port, f"{member.port}.{i}", COMMANDS // 6, wrong), daemon=True)
                   for member in self.members for i in range(2)]
        for thread in threads:
            thread.start()
        failovers = 0
        while any(thread.is_alive() for thread in threads):
            leader = self.wait_leader(self.members)
            self.hand_over(self.members, former=leader)
            failovers += 1
            time.sleep(0.5)  # one now and then
        for thread in threads:
            thread.join()
        print(f"\nseed {SEED}: {COMMANDS} commands, {failovers} failovers")
        self.assertEqual([], wrong)
        self.assert_at_rest(self.members)
        self.assert_equal(self.members)

    def test_what_a_leader_sends_back_is_counted(self):
        leader, follower = self.begin()
        self.assertEqual("OK", follower.run("CPUT t a f:x 0"))
        before = self.figures(follower)["cluster_calls_out"]
        leader.run("CLIENT PAUSE 100000 WRITE")
        link = Link(follower.port)
        link.send(*[("CPUT", "t", f"b{number}", "f:x", "1") for number in range(10)])
        self.wait_until(lambda: self.figures(follower)["cluster_calls_out"] == before + 10,
                        lambda: str(self.figures(follower)))
        self.assertEqual(0, self.figures(follower)["cluster_calls_bounced"])
        leader.run("FAILOVER")
        self.assertEqual([b"OK"] * 10, [link.read() for _ in range(10)])
        link.close()
        figures = self.figures(follower)
        self.assertEqual([10, 1, 0], [figures[f"cluster_{name}"] for name in
                                      ("calls_bounced", "calls_retried", "connections_closed")])
        own, agreed = figures["cluster_feature_level"].split("/")
        self.assertGreaterEqual(int(own), int(agreed))
        self.assertEqual(follower.info()["replica_feature_level"], f"{own}/{agreed}")
        leader.run("CLIENT UNPAUSE")
        self.assert_at_rest(self.members)

    def test_a_leader_that_dies(self):
        self.begin(replica_election_timeout=ELECTION_MS)
        results = {"done": [], "missed": [], "closed": [], "errors": []}
        gaps = []
        for _ in range(ROUNDS):
            leader = self.wait_leader(self.members)
            stop = threading.Event()
            others = [member for member in self.members if member is not leader]
            threads = self.write_until([member.port for member in others], stop, results)
            self.wait_writes(results)
            killed = time.monotonic()
            leader.server.kill()
            self.wait_leader(others)
            self.wait_writes(results)
            stop.set()
            for thread in threads:
                thread.join()
            # Writes of several threads: the first one that is acknowledged by the next leader ends the gap.
            times = sorted(at for _, _, at in results["done"] if at > killed - 0.2)
            gaps.append(max((b - a for a, b in zip(times, times[1:])), default=0))
            leader.server.start()
            self.have_wait(leader)
        print(f"\n{ROUNDS} kills: {len(results['done'])} writes, {len(results['closed'])} closed, {results['errors'][:3]}, "
              f"none for {sorted(gaps)[len(gaps) // 2]:.2f} s, {max(gaps):.2f} at most")
        self.assertEqual(([], []), (results["missed"], results["errors"]))
        leader = self.wait_leader(self.members)
        lost = [row for row, value, _ in results["done"] if leader.run("CGET", "t", row, "f:x") != value]
        self.assertEqual([], lost)
        self.assert_at_rest(self.members)
        self.assert_equal(self.members)


if __name__ == "__main__":
    unittest.main()
