"""Replies as Python objects that keep their exact type, and a small blocking client.

A client library would turn `:1` and `#t` into things that compare equal. The model must see the
difference, so each wire type has its own representation:

    $ bulk     bytes            : integer  int             + simple   Simple
    - error    Error            _ null     None            *-1        NULL_ARRAY (RESP2 only)
    # boolean  Boolean          , double   Double(text)    ( big      BigNumber
    % map      Map(pairs)       * array    list            ~ set      Set(list)     > push  Push(list)

In RESP2 a map is a flat list; `as_map` gives back the pairs in both protocols.
"""

import socket


class Simple(bytes):
    """A simple string, for example +OK."""

    def __repr__(self):
        return '+' + self.decode('latin-1')


class Error:
    """An error: its code word, and its text where that matters (None: any text)."""

    def __init__(self, code, text=None, alternatives=()):
        self.code = code
        self.text = text
        self.alternatives = alternatives

    def __repr__(self):
        return '-%s %s' % (self.code, self.text if self.text is not None else '...')


class Boolean:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return '#t' if self.value else '#f'


class Double:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return ',' + self.text


class BigNumber:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return '(%d' % self.value


class Map:
    def __init__(self, pairs):
        self.pairs = pairs

    def __repr__(self):
        return 'Map' + repr(self.pairs)


class Set(list):
    pass


class Push(list):
    pass


class _NullArray:
    def __repr__(self):
        return '*-1'


class _Anything:
    def __repr__(self):
        return '<anything>'


NULL_ARRAY = _NullArray()
ANYTHING = _Anything()
OK = Simple(b'OK')
QUEUED = Simple(b'QUEUED')


class Predicate:
    """An expectation that is a test of the reply, for what the specification leaves open."""

    def __init__(self, name, holds):
        self.name = name
        self.holds = holds

    def __repr__(self):
        return '<%s>' % self.name


class MapWith(Predicate):
    """An expected map of which some fields are known."""

    def __init__(self, known):
        super().__init__('map with %r' % (known,), self._has_known)
        self.known = known

    def _has_known(self, got):
        try:
            found = dict(as_map(got))
        except (ValueError, TypeError):
            return False
        return all(name in found and (value.holds(found[name]) if isinstance(value, Predicate)
                                      else found[name] == value)
                   for name, value in self.known.items())


def same(expected, got):
    """Whether `got` is what was expected, types included."""
    if expected is ANYTHING:
        return True
    if isinstance(expected, Predicate):
        return expected.holds(got)
    if expected is None or got is None or expected is NULL_ARRAY or got is NULL_ARRAY:
        return expected is got
    kind = type(expected)
    if kind is not type(got):
        return False
    if kind is Error:
        if expected.code != got.code and got.code not in expected.alternatives:
            return False
        return expected.text is None or expected.text == got.text
    if kind is Boolean or kind is BigNumber:
        return expected.value == got.value
    if kind is Double:
        return expected.text == got.text
    if kind is Map:
        return (len(expected.pairs) == len(got.pairs) and
                all(same(a[0], b[0]) and same(a[1], b[1])
                    for a, b in zip(expected.pairs, got.pairs)))
    if isinstance(expected, list):
        return len(expected) == len(got) and all(map(same, expected, got))
    return expected == got


def narrow(expected, got):
    """(path, expected, got) of the first place where two replies differ."""
    if isinstance(expected, Map) and isinstance(got, Map):
        expected = [item for pair in expected.pairs for item in pair]
        got = [item for pair in got.pairs for item in pair]
    if isinstance(expected, list) and isinstance(got, list):
        for at, (one, other) in enumerate(zip(expected, got)):
            if not same(one, other):
                path, one, other = narrow(one, other)
                return '/%d%s' % (at, path), one, other
        if len(expected) != len(got):
            at = min(len(expected), len(got))
            return '/%d (of %d and %d)' % (at, len(expected), len(got)), expected[at:at + 2], \
                got[at:at + 2]
    return '', expected, got


def as_map(reply):
    """The pairs of a map reply, in both protocols."""
    if isinstance(reply, Map):
        return reply.pairs
    if not isinstance(reply, list) or len(reply) % 2:
        raise ValueError('not a map: %r' % (reply,))
    return list(zip(reply[0::2], reply[1::2]))


def make_map(pairs, protocol):
    if protocol == 3:
        return Map(list(pairs))
    return [item for pair in pairs for item in pair]


class Client:
    """One connection. `call` sends one command; `pipeline` sends many and returns all replies."""

    def __init__(self, port, protocol=2, host='127.0.0.1', timeout=60):
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b''
        self.at = 0
        self.protocol = 2
        if protocol == 3:
            reply = self.call(b'HELLO', b'3')
            if isinstance(reply, Error):
                raise RuntimeError('HELLO 3: %r' % reply)
            self.protocol = 3

    def close(self):
        self.socket.close()

    @staticmethod
    def encode(words):
        parts = [b'*%d\r\n' % len(words)]
        for word in words:
            if isinstance(word, str):
                word = word.encode()
            elif isinstance(word, int):
                word = b'%d' % word
            parts.append(b'$%d\r\n%s\r\n' % (len(word), word))
        return b''.join(parts)

    def send(self, *words):
        self.socket.sendall(self.encode(words))

    def call(self, *words):
        self.send(*words)
        return self.read()

    def pipeline(self, commands):
        self.socket.sendall(b''.join(map(self.encode, commands)))
        return [self.read() for _ in commands]

    def _fill(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError('the server closed the connection')
        self.buffer = self.buffer[self.at:] + data
        self.at = 0

    def _line(self):
        while True:
            end = self.buffer.find(b'\r\n', self.at)
            if end >= 0:
                line = self.buffer[self.at:end]
                self.at = end + 2
                return line
            self._fill()

    def _exactly(self, size):
        while len(self.buffer) - self.at < size + 2:
            self._fill()
        data = self.buffer[self.at:self.at + size]
        if self.buffer[self.at + size:self.at + size + 2] != b'\r\n':
            raise ValueError('a bulk string without its end')
        self.at += size + 2
        return data

    def read(self):
        line = self._line()
        mark, rest = line[:1], line[1:]
        if mark == b'$':
            size = int(rest)
            return None if size < 0 else self._exactly(size)
        if mark == b':':
            return int(rest)
        if mark == b'+':
            return Simple(rest)
        if mark == b'*':
            size = int(rest)
            return NULL_ARRAY if size < 0 else [self.read() for _ in range(size)]
        if mark == b'-':
            code, _, text = rest.decode('latin-1').partition(' ')
            return Error(code, text)
        if mark == b'_':
            return None
        if mark == b'#':
            return Boolean(rest == b't')
        if mark == b',':
            return Double(rest.decode())
        if mark == b'(':
            return BigNumber(int(rest))
        if mark == b'%':
            return Map([(self.read(), self.read()) for _ in range(int(rest))])
        if mark == b'~':
            return Set(self.read() for _ in range(int(rest)))
        if mark == b'>':
            return Push(self.read() for _ in range(int(rest)))
        if mark == b'=':
            return self._exactly(int(rest))[4:]
        raise ValueError('not a reply: %r' % line)
