"""Tests that look at replies exactly as they come over the wire, in RESP2 and RESP3.

    class MyTest(WireTest):
        def test_it(self):
            self.write("CPUT t r f:a 1", OK)                     # once, over RESP2
            self.read("CGET t r f:a", "1")                       # over both, same meaning
            self.read("CROW t r", M(("f:a", "1")))               # a map: %1 in RESP3, flat in RESP2
            self.read("CGET t r f:x", D("1.5"))                  # a double: , in RESP3, bulk in RESP2
            self.refused("CGET t", "ERR wrong number of arguments for 'cget' command")

Commands are written as in redis-cli: words, double quotes with \\xHH, single quotes. Expected replies
are Python objects: str is a bulk string, int an integer, None a null, list an array; OK and S("...")
simple strings; M, D, B, N what differs between the protocols.
"""

import os
import sys

from cellar_server import ROOT, CellarTest

sys.path.insert(0, os.path.join(ROOT, "tests"))

from model import resp  # noqa: E402

OK = resp.OK


def S(text):
    """A simple string."""
    return resp.Simple(text.encode())


class M:
    """A map, as pairs."""

    def __init__(self, *pairs):
        self.pairs = pairs


class D:
    """A double, by its text."""

    def __init__(self, text):
        self.text = text


class B:
    """A boolean."""

    def __init__(self, value):
        self.value = value


class N:
    """An integer above 2^63-1."""

    def __init__(self, value):
        self.value = value


def words_of(line):
    """The words of a command line, with redis-cli's quoting, as bytes."""
    words, at = [], 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        word = bytearray()
        if line[at] == '"':
            at += 1
            while line[at] != '"':
                if line[at] == "\\":
                    if line[at + 1] == "x":
                        word.append(int(line[at + 2:at + 4], 16))
                        at += 4
                        continue
                    at += 1
                word += line[at].encode()
                at += 1
            at += 1
        elif line[at] == "'":
            end = line.index("'", at + 1)
            word += line[at + 1:end].encode()
            at = end + 1
        else:
            while at < len(line) and not line[at].isspace():
                word += line[at].encode()
                at += 1
        words.append(bytes(word))
    return words


def expected_in(protocol, value):
    """`value` as model.resp reads it in this protocol."""
    if isinstance(value, resp.Simple):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return [expected_in(protocol, item) for item in value]
    if isinstance(value, M):
        pairs = [(expected_in(protocol, k), expected_in(protocol, v)) for k, v in value.pairs]
        return resp.make_map(pairs, protocol)
    if isinstance(value, D):
        return resp.Double(value.text) if protocol == 3 else value.text.encode()
    if isinstance(value, B):
        return resp.Boolean(value.value) if protocol == 3 else int(value.value)
    if isinstance(value, N):
        return resp.BigNumber(value.value) if protocol == 3 else b"%d" % value.value
    return value


class WireTest(CellarTest):
    """Two connections to the class's server: self.wires[2] and self.wires[3]."""

    maxDiff = None

    def setUp(self):
        super().setUp()
        self.connect_wires()

    def connect_wires(self):
        """Fresh connections, also after a restart of the server."""
        self.wires = {protocol: resp.Client(self.server.port, protocol) for protocol in (2, 3)}
        for wire in self.wires.values():
            self.addCleanup(wire.close)

    def call(self, line, protocol=2):
        words = words_of(line) if isinstance(line, str) else line
        return self.wires[protocol].call(*words)

    def _same(self, line, protocol, expected, got):
        wanted = expected_in(protocol, expected)
        if not resp.same(wanted, got):
            self.fail(f"RESP{protocol}: {line}\n expected {wanted!r}\n got      {got!r}")

    def write(self, line, expected=OK, protocol=2):
        """Runs a command once."""
        self._same(line, protocol, expected, self.call(line, protocol))

    def read(self, line, expected):
        """Runs a command that changes nothing over both protocols."""
        for protocol in (2, 3):
            self._same(line, protocol, expected, self.call(line, protocol))

    def refused(self, line, error):
        """An error whose line begins with `error`, in both protocols."""
        for protocol in (2, 3):
            got = self.call(line, protocol)
            if not isinstance(got, resp.Error):
                self.fail(f"{line}\n expected an error {error!r}\n got {got!r}")
            text = f"{got.code} {got.text}"
            if not text.startswith(error):
                self.fail(f"{line}\n expected an error {error!r}\n got {text!r}")

    def syntax_error(self, *lines):
        for line in lines:
            self.refused(line, "ERR syntax error")
