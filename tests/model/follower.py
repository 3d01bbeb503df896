"""A replica beside the server that is driven: all that can be read there must be what the model says."""

import time

from .resp import Client, Error
from .scans import Difference

WAIT_SECONDS_MAX = 600


class Follower:
    """`server` is a started server (tests/e2e/cellar_server.py), `leader` the one that it is to follow."""

    def __init__(self, server, leader):
        self.server = server
        self.leader = leader
        self.client = None
        self.restarts = 0
        self.connect()
        self.call(b'REPLICAOF', b'127.0.0.1', b'%d' % leader.port)

    def connect(self):
        self.close()
        self.client = Client(self.server.port, 3)

    def close(self):
        if self.client is not None:
            self.client.close()
            self.client = None

    def call(self, *words):
        reply = self.client.call(*words)
        if isinstance(reply, Error):
            raise Difference('the follower: %r' % (words,), 'no error', reply)
        return reply

    def come_back(self, how):
        """Kills or stops it, and starts it anew: it follows by itself."""
        self.restarts += 1
        self.close()
        getattr(self.server, how)()
        self.connect()
        self.call(b'REPLICAOF', b'127.0.0.1', b'%d' % self.leader.port)

    def take_lead(self, admin, now, leader):
        """It leads, and `leader` follows it; the server that leads is returned."""
        self.catch_up(admin, now)
        reply = admin.call(b'FAILOVER', b'TO', b'127.0.0.1', b'%d' % self.server.port)
        if isinstance(reply, Error):
            raise Difference('FAILOVER', 'OK', reply)
        self._wait('the follower never leads',
                   lambda: self._info(self.client)[b'role'] == b'master')
        self.server, self.leader = leader, self.server
        self.close()
        self._wait('it never follows', lambda: self._info(self.client)[b'role'] == b'slave')
        return self.leader

    def _wait(self, what, holds):
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            try:
                if self.client is None:
                    self.connect()
                if holds():
                    return
            except (ConnectionError, OSError):
                self.close()  # a node that leads no more closes those that it owes a reply
            if time.monotonic() > deadline:
                raise Difference(what, 'it does', self.server.log()[-2000:])
            time.sleep(0.005)

    def _info(self, client):
        reply = client.call(b'INFO', b'replication')
        text = getattr(reply, 'text', reply)
        return dict(line.split(b':', 1) for line in bytes(text).split(b'\r\n') if b':' in line)

    def catch_up(self, admin, now):
        """Waits until it has all that the leader has, and sets its clock."""
        def has_all():
            there, here = self._info(admin), self._info(self.client)
            # The leader's word is the newer one: the link may be one to the process before.
            return b'state=online' in there.get(b'slave0', b'') and \
                here.get(b'master_link_status') == b'up' and \
                here.get(b'slave_repl_offset') == there.get(b'master_repl_offset')

        self._wait('the follower never has all', has_all)
        self.call(b'DEBUG', b'SET-TIME', b'%d' % now)
