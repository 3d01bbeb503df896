"""What stands behind the clients of tests whose server is several nodes: whatever a client sends, the nodes' keeper is
told first, so that it can have done at all nodes what a test asks of its one server.

A keeper has `ports`, which clients connect to, `is_running()`, `before(port, client, commands)`, and `ran(port)` when a
program that was told a port has ended.
"""

import os
import socket
import subprocess
import sys

import redis

from cellar_server import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests"))

from model import resp  # noqa: E402

# What each node has for itself.
OWN_OPTIONS = {"port", "bind", "dir", "appendonly", "appendfsync", "save", "maxclients", "requirepass", "aclfile", "unixsocket"}
CONNECT = socket.create_connection


def encoded(words):
    """The words as bytes; redis-py names a subcommand by two words in one."""
    if words and isinstance(words[0], str) and " " in words[0]:
        words = (*words[0].split(), *words[1:])
    return [word if isinstance(word, bytes) else str(word).encode() for word in words]


def is_for_all(words):
    """Whether each node is to be told the command."""
    words = encoded(words[:3])
    head = [word.lower() for word in words[:2]]
    if head == [b"config", b"set"] and len(words) > 2:
        return words[2].decode().lower() not in OWN_OPTIONS
    return head == [b"debug", b"set-time"]


def head_of(words):
    """The first two words, as one text."""
    return b" ".join(word if isinstance(word, bytes) else str(word).encode() for word in words[:2]).lower()


def asked(port, *commands):
    """The replies of a node, asked past the hooks."""
    with CONNECT(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(b"".join(resp.Client.encode(encoded(words)) for words in commands))
        got = b""
        while got.count(b"\r\n") < len(commands):
            more = connection.recv(1 << 16)
            if not more:
                break
            got += more
        return got


class Hooks:
    def __init__(self):
        self.keepers = {}
        self.errors = []  # what any client was refused with, since somebody has looked
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
            self.before(getattr(connection, "port", None), connection, [words])
            connection.is_told = True  # send_packed_command, which it calls, does the rest
            packed(connection, *words, **options)

        def redis_packed(connection, command, check_health=True):
            if not getattr(connection, "is_told", False):
                self.before(getattr(connection, "port", None), connection, [])
            connection.is_told = False
            many(connection, command, check_health)

        run, connect = subprocess.run, socket.create_connection

        def connect_plainly(address, *args, **options):
            self.before(address[1], object(), [])
            return connect(address, *args, **options)

        def run_program(words, *args, **options):
            # A program comes with connections of its own.
            ports = [port for port in self.keepers if any(str(port) in str(word) for word in words)]
            for port in ports:
                self.before(port, object(), [])
            try:
                done = run(words, *args, **options)
                for text in (done.stdout, done.stderr) if ports else ():
                    self.errors.append(text.decode("utf-8", "replace") if isinstance(text, bytes) else text or "")
                return done
            finally:
                for port in ports:
                    if port in self.keepers:
                        self.keepers[port].ran(port)

        read, parse_error = resp.Client.read, redis.connection.BaseParser.parse_error

        def resp_read(client):
            reply = read(client)
            if isinstance(reply, resp.Error):
                self.errors.append(f"{reply.code} {reply.text}")
            return reply

        def redis_error(parser, response):
            self.errors.append(response)
            return parse_error(parser, response)

        resp.Client.read, redis.connection.BaseParser.parse_error = resp_read, redis_error
        subprocess.run, socket.create_connection = run_program, connect_plainly
        resp.Client.send, resp.Client.pipeline = resp_send, resp_pipeline
        redis.connection.Connection.send_command = redis_send
        redis.connection.Connection.send_packed_command = redis_packed

    def keep(self, keeper):
        for port in keeper.ports:
            self.keepers[port] = keeper

    def leave(self, keeper):
        for port in keeper.ports:
            self.keepers.pop(port, None)

    def before(self, port, client, commands):
        keeper = self.keepers.get(port)
        if keeper is not None and keeper.is_running():
            keeper.before(port, client, commands)
