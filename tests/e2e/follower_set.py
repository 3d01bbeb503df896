"""The server of a test as a follower of a replica set of three that passes on what it cannot answer.

`CELLAR_FOLLOWER=leader make test-follower` runs the tests that share one server (CellarTest, Conversation) so, with reads
answered by the leader; with `local` by the follower itself. What a test asks of the process (INFO, CONFIG GET) is the
follower's. Three things a test cannot know, so its clients do them:

  options and the clock (CONFIG SET, DEBUG SET-TIME) are set on all nodes
  a follower that reads for itself promises each connection its own writes alone: whenever a test goes on with another
  connection or program, all that was written until then is waited for; and so are indexes, which each node builds. Of
  users that holds whoever answers reads
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import redis

from cellar_server import ROOT, CellarServer, free_port

sys.path.insert(0, os.path.join(ROOT, "tests"))

from model import resp  # noqa: E402

# A set needs its log, and these name what one process alone can have.
NOT_IN_A_SET = ("appendonly", "replicaof", "cluster-nodes", "unixsocket", "aclfile", "tls-port", "requirepass", "snapshot-keep")
# What each node has for itself.
OWN_OPTIONS = {"port", "bind", "dir", "appendonly", "appendfsync", "save", "maxclients", "requirepass", "aclfile", "unixsocket"}


def mode():
    """Who answers reads: leader or local; None: tests run on a server of its own."""
    return os.environ.get("CELLAR_FOLLOWER")


def can_follow(options):
    names = {name.replace("_", "-") for name in options}
    return not names & set(NOT_IN_A_SET)


def is_for_all(words):
    """Whether each node is to be told the command."""
    if words and isinstance(words[0], str) and " " in words[0]:  # redis-py's way of naming a subcommand
        words = (*words[0].split(), *words[1:])
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words[:3]]
    head = [word.lower() for word in words[:2]]
    if head == [b"config", b"set"] and len(words) > 2:
        return words[2].decode().lower() not in OWN_OPTIONS
    return head == [b"debug", b"set-time"]


def head_of(words):
    """The first two words, as one text."""
    return b" ".join(word if isinstance(word, bytes) else str(word).encode() for word in words[:2]).lower()


class Hooks:
    """What every client of a test's follower does before it sends: by the port that it talks to."""

    def __init__(self):
        self.followers = {}
        self.last = {}
        self.indexing = set()  # ports of nodes whose last command has made an index
        self.users_changed = set()  # ports of nodes that were told of users since they settled
        send, pipeline = resp.Client.send, resp.Client.pipeline
        packed = redis.connection.Connection.send_command
        many = redis.connection.Connection.send_packed_command

        def resp_send(client, *words):
            self.before(client.socket.getpeername()[1], client, [words])
            send(client, *words)

        def resp_pipeline(client, commands):
            self.before(client.socket.getpeername()[1], client, commands)
            return pipeline(client, commands)

        def redis_send(connection, *words, **options):
            # send_packed_command, which it calls, does the rest.
            self.before(getattr(connection, "port", None), connection, [words])
            packed(connection, *words, **options)

        def redis_packed(connection, command, check_health=True):
            self.before(getattr(connection, "port", None), connection, [])
            many(connection, command, check_health)

        run, connect = subprocess.run, socket.create_connection

        def connect_plainly(address, *args, **options):
            self.before(address[1], object(), [])
            return connect(address, *args, **options)

        def run_program(words, *args, **options):
            # A program comes with connections of its own.
            ports = [port for port in self.followers if any(str(port) in str(word) for word in words)]
            for port in ports:
                self.before(port, object(), [])
            try:
                return run(words, *args, **options)
            finally:
                for port in ports:
                    self.last[port] = run

        subprocess.run, socket.create_connection = run_program, connect_plainly
        resp.Client.send, resp.Client.pipeline = resp_send, resp_pipeline
        redis.connection.Connection.send_command = redis_send
        redis.connection.Connection.send_packed_command = redis_packed

    def running(self, port):
        server = self.followers.get(port)
        runs = server is not None and server.process is not None and server.process.poll() is None
        return server if runs else None

    def tell(self, port, commands):
        server = self.running(port)
        for words in commands if server is not None else ():
            if head_of(words) == b"debug reload":
                raise unittest.SkipTest("on a follower: DEBUG RELOAD is not allowed in a set")
            if is_for_all(words):
                server.tell_others(words)
            if head_of(words).startswith((b"debug digest", b"save", b"bgsave")):
                server.settle()

    def before(self, port, client, commands):
        self.tell(port, commands)
        server = self.running(port)
        if server is None:
            return
        last, self.last[port] = self.last.get(port), client
        # Whoever answers reads, each node judges its clients by the users that it knows of.
        if last is not client and (mode() == "local" or port in self.users_changed):
            server.settle()
            self.users_changed.discard(port)
        if any(head_of(words).startswith((b"acl setuser", b"acl deluser")) for words in commands):
            self.users_changed.add(port)
        if mode() != "local":
            return
        if port in self.indexing:
            self.indexing.discard(port)
            server.wait_for_indexes()
        if any(head_of(words) == b"index create" for words in commands):
            self.indexing.add(port)


CONNECT = socket.create_connection
HOOKS = Hooks() if mode() else None


def asked(port, *commands):
    """The replies of a node, asked past the hooks."""
    with CONNECT(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(b"".join(resp.Client.encode(words) for words in commands))
        got = b""
        while got.count(b"\r\n") < len(commands):
            more = connection.recv(1 << 16)
            if not more:
                break
            got += more
        return got


class FollowerServer(CellarServer):
    def __init__(self, options):
        super().__init__(options=options)
        self.others = []
        ports = [self.port]
        while len(ports) < 3:
            port = free_port()
            if port not in ports:
                ports.append(port)
        nodes = [f"127.0.0.1:{port}" for port in ports]
        shared = {"cluster-nodes": nodes, "cluster-forward": "yes", "cluster-wait": 10_000,
                  "cluster-reads": mode(), "appendfsync": "always",
                  # Beside other tests a leader may not run for a while; another one in its place closes connections
                  # whose write may have been done or not.
                  "replica-election-timeout": 3000}
        self.options = {**shared, **self.options}
        self.folders = []
        for port in ports[1:]:
            folder = tempfile.mkdtemp(prefix="cellar-other-")
            self.folders.append(folder)
            self.others.append(CellarServer(folder, port=port, options=self.options))
        HOOKS.followers[self.port] = self

    def start(self):
        for other in self.others:
            if other.process is None:
                other.spawn()
        super().start()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with redis.Redis(port=self.port, socket_timeout=20) as client:
                    info = client.info("replication")
                    if info["role"] == "master":
                        client.execute_command("FAILOVER")
                    elif info.get("replica_state") == "follower" and b"-" not in asked(self.port, (b"WAIT", b"0", b"0")):
                        self.settle()
                        return self
            except redis.RedisError:
                pass
            time.sleep(0.1)
        raise AssertionError("it follows nobody:\n" + self.log())

    def settle(self):
        """Waits until this node has all that any client has been told of: WAIT is answered by the leader, and SELECT
        waits for what its connection was told."""
        asked(self.port, (b"WAIT", b"0", b"0"), (b"SELECT", b"0"))

    def wait_for_indexes(self):
        """Each node builds its own, and reads do without until then."""
        self.settle()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with redis.Redis(port=self.port) as client:
                states = client.info("tables").values()
            if not any("indexes_building" in table for table in states):
                return
            time.sleep(0.002)

    def tell_others(self, words):
        for other in self.others:
            head = str(words[0]).split() if isinstance(words[0], str) else [words[0]]
            asked(other.port, [word if isinstance(word, bytes) else str(word).encode() for word in (*head, *words[1:])])

    def close(self):
        HOOKS.followers.pop(self.port, None)
        for other in self.others:
            other.kill()
        super().close()
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
