"""What nodes say to each other (src/replica/links/frame.h), for tests that speak as one: right, wrong or not at all.

    node = FakeNode(test, port, nodes)      # listens there, and is dialled as a member of a set
    node.dial(member.port)                  # a link of its own to a server
    node.greet(level=5)                     # kHello on all of these
"""

import ctypes
import ctypes.util
import random
import socket
import struct
import threading
import time

HEAD_BYTES = 44
FOLLOW, ERROR, VOTE, VOTE_RESULT, APPEND, APPEND_RESULT, INSTALL, TIMEOUT_NOW, HELLO = 1, 9, 16, 17, 18, 19, 20, 21, 22
READ_INDEX, READ_ANSWER, ORDER, ORDER_ANSWER, CALL, MESSAGE = 23, 24, 25, 26, 32, 57
NOTHING, DATA, SET = 0, 1, 2


def xxh3(data, seed=0):
    library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
    library.XXH3_64bits_withSeed.restype = ctypes.c_uint64
    library.XXH3_64bits_withSeed.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64)
    return library.XXH3_64bits_withSeed(data, len(data), seed)


def frame(kind, body=b"", term=0, sender=0, sent=0, echo=0):
    hashed = struct.pack("<BBBBIQqq", kind, 1, 0, 0, term, sender, sent, echo) + body
    return struct.pack("<IQ", len(hashed), xxh3(hashed, len(hashed))) + hashed


def prefixed(data):
    data = data.encode() if isinstance(data, str) else data
    size, length = len(data), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return length + bytes([size]) + data


def hello(address, nodes, has=NOTHING, cluster=0, level=11, flags=0, kind=1, version="0", priority=101, past=b""):
    return (struct.pack("<BQq", has, cluster, int(time.time() * 1e6)) + prefixed(address) +
            prefixed(" ".join(sorted(nodes))) + struct.pack("<IBB", level, flags, kind) + prefixed(version) +
            struct.pack("<Q", priority) + prefixed(past))


class FakeNode:
    """It answers PEER on its port, and takes what comes; `heard` are the kinds of frames. It says nothing by itself."""

    def __init__(self, test, port, nodes, node=None, cluster=0):
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self.nodes = nodes
        self.node = node or random.getrandbits(63) | 1
        self.cluster = cluster
        self.heard = []
        self.last = {}  # of each kind the term and body that came last
        self.dialled = {}  # by port and purpose
        self.accepted = []
        self.closed = False
        self.listener = socket.create_server(("127.0.0.1", port))
        test.addCleanup(self.close)
        threading.Thread(target=self.listen, daemon=True).start()

    def close(self):
        self.closed = True
        for each in [self.listener, *self.dialled.values(), *self.accepted]:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()

    def listen(self):
        while not self.closed:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            self.accepted.append(link)
            threading.Thread(target=self.take, args=(link,), daemon=True).start()

    def take(self, link):
        try:
            begin = b""
            while b"PEER" not in begin or begin.count(b"\r\n") < 13:
                more = link.recv(4096)
                if not more:
                    return
                begin += more
            link.sendall(f"+PEER 1 {self.cluster:016x} {self.node:016x}\r\n".encode())
            came = b""
            while True:
                while len(came) >= HEAD_BYTES and len(came) >= 12 + struct.unpack_from("<I", came)[0]:
                    end = 12 + struct.unpack_from("<I", came)[0]
                    self.last[came[12]] = (struct.unpack_from("<I", came, 16)[0], came[HEAD_BYTES:end])
                    self.heard.append(came[12])
                    came = came[end:]
                more = link.recv(1 << 16)
                if not more:
                    return
                came += more
        except OSError:
            pass

    def dial(self, port, purpose="member", features="0", patience=60):
        link = socket.create_connection(("127.0.0.1", port), timeout=patience)
        link.sendall(f"PEER 1 {self.cluster:016x} {self.node:016x} {purpose} {features}\r\n".encode())
        said = link.recv(1000).decode()
        if not said.startswith("+PEER 1 "):
            link.close()
            raise ConnectionError(said)
        before = self.dialled.pop((port, purpose), None)
        if before:
            before.close()
        self.dialled[port, purpose] = link
        return link

    def say(self, kind, body=b"", **head):
        """On the links that this node has dialled as a member."""
        for link in [each for (_, purpose), each in self.dialled.items() if purpose == "member"]:
            link.sendall(frame(kind, body, sender=self.node, **head))

    def greet(self, times=1, **fields):
        fields.setdefault("nodes", self.nodes)
        fields.setdefault("address", self.address)
        for _ in range(times):
            self.say(HELLO, hello(**fields))

    def hears(self, kind, more=1):
        """A condition: so many more frames of the kind come than have come by now."""
        enough = self.heard.count(kind) + more
        return lambda: self.heard.count(kind) >= enough
