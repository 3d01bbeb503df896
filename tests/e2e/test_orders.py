"""Orders against independent sorts: Cassandra's six comparators over randomly made names, every other
component, and row keys, in both directions."""

import random
import struct
import unittest
import uuid

from conversation import ON_MODEL, Conversation

NAMES = 300


def random_bytes(rng):
    return bytes(rng.choice((0, 1, 0x23, 0x61, 0x62, 0x7f, 0x80, 0xff)) for _ in range(rng.randrange(6)))


def random_text(rng):
    return ''.join(rng.choice('\x00ab~\u00fc\u20ac\U0001f600z') for _ in range(rng.randrange(6))).encode()


def random_ascii(rng):
    return bytes(rng.choice(b'\x00\x01 ab~z\x7f') for _ in range(rng.randrange(6)))


def random_uuid(rng):
    high, low = (rng.choice((rng.getrandbits(64), rng.getrandbits(3), 2**64 - 1 - rng.getrandbits(3)))
                 for _ in range(2))
    return str(uuid.UUID(int=high << 64 | low)).encode()


def random_time_uuid(rng):
    time = rng.choice((rng.getrandbits(60), rng.getrandbits(33), rng.getrandbits(3)))
    fields = (time & 0xffffffff, time >> 32 & 0xffff, time >> 48 | 0x1000, rng.getrandbits(8),
              rng.getrandbits(8), rng.choice((0, 1, 2**48 - 1)))
    return str(uuid.UUID(fields=fields)).encode()


def random_i64(rng):
    bits = rng.choice((3, 8, 33, 63))
    return b'%d' % rng.choice((rng.getrandbits(bits), -rng.getrandbits(bits)))


def random_f64(rng):
    while True:
        number = rng.choice((rng.uniform(-1, 1), float(rng.randrange(-5, 5)),
                             struct.unpack('<d', struct.pack('<Q', rng.getrandbits(64)))[0]))
        if number == number:
            return repr(number + 0.0).encode() if number else b'0'


def signed_halves(text):
    raw = uuid.UUID(text.decode()).bytes
    return struct.unpack('>qq', raw)


def time_then_bytes(text):
    made = uuid.UUID(text.decode())
    return made.time, made.bytes


COMPARATORS = {   # Cassandra's name: (order, names, what to sort by)
    'BytesType': ('bytes', random_bytes, bytes),
    'AsciiType': ('ascii', random_ascii, bytes),
    'UTF8Type': ('utf8', random_text, bytes),
    'LongType': ('i64', random_i64, int),
    'LexicalUUIDType': ('luuid', random_uuid, signed_halves),
    'TimeUUIDType': ('timeuuid', random_time_uuid, time_then_bytes),
}
OTHERS = {
    'uuid': ('uuid', random_uuid, lambda text: uuid.UUID(text.decode()).bytes),
    'f64': ('f64', random_f64, float),
    'u64': ('u64', lambda rng: b'%d' % rng.getrandbits(rng.choice((3, 40, 64))), int),
    'i8': ('i8', lambda rng: b'%d' % rng.randrange(-128, 128), int),
}


class OrdersTest(Conversation):
    def setUp(self):
        super().setUp()
        self.seed = random.randrange(10**9)
        self.rng = random.Random(self.seed)

    def canonical(self, order, name):
        return repr_of_float(name) if order == 'f64' else name

    def check(self, order, make, key):
        names = sorted({make(self.rng) for _ in range(NAMES)}, key=key)
        expected = [self.canonical(order, name) for name in names]
        shuffled = list(names)
        self.rng.shuffle(shuffled)
        for descending in (False, True):
            order_text = '-' + order if descending else order
            self.ask(['TABLE', 'CREATE', 't', 'KEY', order_text, 'FAMILY', 'f', 'ORDER', order_text])
            self.ask(['TABLE', 'CREATE', 'wide', 'FAMILY', 'f', 'ORDER', order_text])
            self.ask(['CPUT', 'wide', 'r'] + [word for name in shuffled for word in (b'f:' + name, b'')])
            for name in shuffled:
                if name:
                    self.ask([b'CPUT', b't', name, b'f:' + name, b''])
            columns = [name.encode('latin-1')[2:] for name, _ in self.row('CROW wide r')]
            rows = [name.encode('latin-1') for name in self.keys('CSCAN t 0')]
            wanted = expected[::-1] if descending else expected
            self.assertEqual(columns, wanted, f'seed {self.seed}')
            self.assertEqual(rows, [name for name in wanted if name], f'seed {self.seed}')
            self.ask('FLUSHALL')

    def test_cassandras_comparators(self):
        for name, (order, make, key) in COMPARATORS.items():
            with self.subTest(comparator=name, seed=self.seed):
                self.check(order, make, key)

    def test_other_components(self):
        for name, (order, make, key) in OTHERS.items():
            with self.subTest(component=name, seed=self.seed):
                self.check(order, make, key)

    def test_composites_compare_component_by_component(self):
        self.ask("TABLE CREATE t KEY utf8#-i64#bytes FAMILY f")
        keys = set()
        for _ in range(NAMES):
            keys.add((random_text(self.rng), int(random_i64(self.rng)), random_bytes(self.rng)))
        for text, number, rest in keys:
            self.ask([b'CPUT', b't', b'%s#%d#%s' % (text, number, rest), b'f:', b''])
        expected = [b'%s#%d#%s' % key for key in sorted(keys, key=lambda key: (key[0], -key[1], key[2]))]
        self.assertEqual([key.encode('latin-1') for key in self.keys('CSCAN t 0')], expected,
                         f'seed {self.seed}')

    def test_super_columns_stand_together(self):
        self.ask('TABLE CREATE t FAMILY f ORDER timeuuid:bytes')
        names = {(random_time_uuid(self.rng), random_bytes(self.rng)) for _ in range(NAMES)}
        self.ask(['CPUT', 't', 'r'] + [word for name in names for word in (b'f:' + b':'.join(name), b'')])
        expected = [b':'.join(name) for name in
                    sorted(names, key=lambda name: (time_then_bytes(name[0]), name[1]))]
        self.assertEqual([name.encode('latin-1')[2:] for name, _ in self.row('CROW t r')], expected,
                         f'seed {self.seed}')


def repr_of_float(text):
    """The canonical text: as Python's repr, without `.0`."""
    shown = repr(float(text))
    return (shown[:-2] if shown.endswith('.0') else shown).replace('.0e', 'e').encode()


class SchemaTest(Conversation):
    """What the schema says about itself builds it again."""

    def test_table_show_rebuilds_the_table(self):
        if ON_MODEL:
            self.skipTest('the model does not show')
        commands = ['TABLE CREATE t KEY utf8#-u64 FAMILY a TYPE i64 ORDER utf8:bytes VERSIONS 3 TTL 90s '
                    'FAMILY b GC "maxversions=3 && maxage=7d || maxage=30d" GROUP big FAMILY c',
                    'INDEX CREATE t one ON 2 -a:x:y b:z AS f64 INCLUDE 2 c a UNIQUE',
                    ['INDEX', 'CREATE', 't', 'two', 'ON', '1', b'b:\x00 "\xff'],
                    'INDEX CREATE t three ON 0 INCLUDE 1 c', 'INDEX CREATE t four ON 1 -c']
        for command in commands:
            self.ask(command)
        digest = self.ask('DEBUG DIGEST')
        shown = self.ask('TABLE SHOW t')
        lines = shown if isinstance(shown, list) else shown.split(b'\n')
        self.ask('TABLE DROP t')
        for line in lines:
            if line.strip():
                self.ask(unquote(line))
        self.assertEqual(self.ask('TABLE SHOW t'), shown)
        self.assertEqual(self.ask('DEBUG DIGEST'), digest)

    def test_table_sample_gives_existing_keys_ascending(self):
        if ON_MODEL:
            self.skipTest('the model does not sample')
        self.ask('TABLE CREATE t KEY u32 FAMILY f')
        for number in range(500):
            self.ask(f'CPUT t {number} f:x 0123456789')
        for parts in (1, 2, 5, 50):
            keys = [int(key) for key in self.ask(f'TABLE SAMPLE t {parts}')]
            self.assertEqual(keys, sorted(set(keys)))
            self.assertLessEqual(len(keys), parts - 1)
            self.assertTrue(all(0 <= key < 500 for key in keys))
        middle = [int(key) for key in self.ask('TABLE SAMPLE t 2')]
        self.assertTrue(len(middle) == 1 and 150 <= middle[0] <= 350, middle)

    def test_family_info(self):
        self.ask('TABLE CREATE t FAMILY f TYPE byte ORDER -byte VERSIONS 3 TTL 90s GROUP g')
        if ON_MODEL:
            self.skipTest('the model does not know all fields')
        info = self.ask('FAMILY INFO t f')
        self.assertEqual(sorted(info), [b'aggregate', b'bucket', b'cells', b'columns', b'compress', b'compressed', b'disk',
                                        b'gc', b'group', b'log_bytes', b'memory', b'name', b'order', b'reclaimed', b'saved',
                                        b'ttl', b'type', b'versions'])
        self.assertEqual((info[b'type'], info[b'order'], info[b'group']), (b'u8', b'-u8', b'g'))
        self.assertIn(info[b'ttl'], (b'90000ms', 90000, b'90000'))


def unquote(line):
    """The words of a line in redis-cli's quoting."""
    words, at = [], 0
    simple = {ord('n'): 10, ord('r'): 13, ord('t'): 9, ord('a'): 7, ord('b'): 8}
    while at < len(line):
        if line[at:at + 1].isspace():
            at += 1
            continue
        word = bytearray()
        if line[at:at + 1] == b'"':
            at += 1
            while line[at:at + 1] != b'"':
                if line[at:at + 2] == b'\\x':
                    word.append(int(line[at + 2:at + 4], 16))
                    at += 4
                elif line[at:at + 1] == b'\\':
                    word.append(simple.get(line[at + 1], line[at + 1]))
                    at += 2
                else:
                    word.append(line[at])
                    at += 1
            at += 1
        else:
            while at < len(line) and not line[at:at + 1].isspace():
                word.append(line[at])
                at += 1
        words.append(bytes(word))
    return words


class MistakesTest(Conversation):
    """What a key that does not fit its order may have been meant for is said in the error."""

    def error(self, line):
        return self.refused(line, 'BADKEY').text

    @unittest.skipIf(ON_MODEL, 'the model has no texts')
    def test_the_hints(self):
        self.ask('TABLE CREATE t KEY utf8#i64 FAMILY tl ORDER utf8:i64 FAMILY ids ORDER uuid:utf8')
        self.assertIn("component 2 (i64): 'b#3' is not an integer: a text component before the last cannot hold the "
                      "delimiter '#', an order may have another one of #/|:,;~.", self.error('CPUT t a#b#3 tl:a:1 x'))
        self.assertNotIn('delimiter', self.error('CPUT t a#x tl:a:1 x'))
        self.assertIn("COLPREFIX tl 'SUPER:'", self.error('CROW t a#1 COLUMNS 1 tl:SUPER'))
        self.assertIn("COLPREFIX tl 'SUPER:'", self.error('CDEL t a#1 tl:SUPER'))
        self.assertNotIn('COLPREFIX', self.error('CROW t a#1 COLUMNS 1 tl:SUPER:x'))
        self.assertIn('a prefix ends inside a text or behind a whole component',
                      self.error('CROW t a#1 COLPREFIX ids 123e4567-e89b'))
        self.assertIn('a prefix ends inside a text or behind a whole component', self.error('CSCAN t 0 PREFIX a#-'))


if __name__ == '__main__':
    unittest.main()
