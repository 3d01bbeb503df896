"""The server of a test as a follower of a replica set of three that passes on what it cannot answer.

`CELLAR_FOLLOWER=leader make test-follower` runs the tests that share one server (CellarTest, Conversation) so, with reads
answered by the leader; with `local` by the follower itself. What a test asks of the process (INFO, CONFIG GET) is the
follower's. Three things a test cannot know, so its clients do them:

  options and the clock (CONFIG SET, DEBUG SET-TIME) are set on all nodes
  a follower that reads for itself promises each connection its own writes alone: whenever a test goes on with another
  connection or program, all that was written until then is waited for; and so are indexes, which each node builds. Of
  users that holds whoever answers reads
"""

import contextlib
import os
import shutil
import tempfile
import unittest

import redis

from cellar_server import CellarServer, free_port, wait_until
from client_hooks import Hooks, asked, head_of, is_for_all

# A set needs its log, and these name what one process alone can have.
NOT_IN_A_SET = ("appendonly", "replicaof", "cluster-nodes", "unixsocket", "aclfile", "tls-port", "requirepass", "snapshot-keep")


def mode():
    """Who answers reads: leader or local; None: tests run on a server of its own."""
    return os.environ.get("CELLAR_FOLLOWER")


def can_follow(options):
    names = {name.replace("_", "-") for name in options}
    return not names & set(NOT_IN_A_SET)


HOOKS = Hooks() if mode() else None


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
        self.ports = [self.port]
        self.last = None
        self.indexing = False  # its last command has made an index
        self.users_changed = False  # it was told of users since it settled
        HOOKS.keep(self)

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def ran(self, port):
        self.last = port

    def tell(self, commands):
        for words in commands:
            if head_of(words) == b"debug reload":
                raise unittest.SkipTest("on a follower: DEBUG RELOAD is not allowed in a set")
            if is_for_all(words):
                self.tell_others(words)
            if head_of(words).startswith((b"debug digest", b"save", b"bgsave")):
                self.settle()

    def before(self, _, client, commands):
        """What every client of this node does before it sends."""
        self.tell(commands)
        last, self.last = self.last, client
        # Whoever answers reads, each node judges its clients by the users that it knows of.
        if last is not client and (mode() == "local" or self.users_changed):
            self.settle()
            self.users_changed = False
        if any(head_of(words).startswith((b"acl setuser", b"acl deluser")) for words in commands):
            self.users_changed = True
        if mode() != "local":
            return
        if self.indexing:
            self.indexing = False
            self.wait_for_indexes()
        if any(head_of(words) == b"index create" for words in commands):
            self.indexing = True

    def start(self):
        for other in self.others:
            if other.process is None:
                other.spawn()
        super().start()
        wait_until(self.follows, lambda: "it follows somebody\n" + self.log(), 0.1)
        return self

    def follows(self):
        """It hands over if it leads."""
        with contextlib.suppress(redis.RedisError), redis.Redis(port=self.port, socket_timeout=20) as client:
            info = client.info("replication")
            if info["role"] == "master":
                client.execute_command("FAILOVER")
            elif info.get("replica_state") == "follower" and b"-" not in asked(self.port, (b"WAIT", b"0", b"0")):
                self.settle()
                return True
        return False

    def settle(self):
        """Waits until this node has all that any client has been told of: WAIT is answered by the leader, and SELECT
        waits for what its connection was told."""
        asked(self.port, (b"WAIT", b"0", b"0"), (b"SELECT", b"0"))

    def wait_for_indexes(self):
        """Each node builds its own, and reads do without until then."""
        self.settle()

        def are_built():
            with redis.Redis(port=self.port) as client:
                return not any("indexes_building" in table for table in client.info("tables").values())
        wait_until(are_built, "indexes are built", 0.002)

    def tell_others(self, words):
        for other in self.others:
            asked(other.port, words)

    def close(self):
        HOOKS.leave(self)
        for other in self.others:
            other.kill()
        super().close()
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
