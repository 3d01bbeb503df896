"""An index for WHERE: a scan takes by itself the index whose columns its conditions bind."""

import os
import random
import sys
import unittest

from cellar_server import CellarServer
from conversation import ON_MODEL, Conversation

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from model.resp import Client, Error  # noqa: E402


@unittest.skipIf(ON_MODEL, 'what is read is not for a model to say')
class ChoiceTest(Conversation):
    ROWS = 200

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE t FAMILY p FAMILY n TYPE i64')
        for i in range(self.ROWS):
            self.ask(f'CPUT t r{i:03} p:email m{i} p:city c{i % 40} n:age {i % 50} n:x {i}')

    def index_of(self, line):
        """The index that a CSCAN walks by itself; the rows are those of NOINDEX."""
        reply = self.ask(line + ' STATS')
        self.assertEqual(reply[1], self.ask(line + ' NOINDEX')[1], line)
        return reply[2].get(b'index')

    def considered(self, line):
        return [text.decode() for text in self.ask('CEXPLAIN ' + line)[b'considered']]

    def test_equal_on_all_columns(self):
        self.assertIsNone(self.index_of('CSCAN t 0 WHERE p:email EQ m7'))
        self.ask('INDEX CREATE t by-email ON 1 p:email UNIQUE')
        self.assertEqual(b'by-email', self.index_of('CSCAN t 0 WHERE p:email EQ m7'))
        self.assertEqual(b'by-email', self.index_of('CSCAN t 0 WHERE p:email EQ none'))
        self.assertEqual(b'by-email', self.index_of('CSCAN t 0 WHERE n:x GE 3 WHERE p:email EQ m7'))
        self.assertEqual(b'by-email', self.index_of('CSCAN t 0 WHERE p:email EQ m7 WHERE p:email EQ m8'))
        for line in ('WHERE p:email NE m7', 'WHERE p:email GT m7', 'WHERE p:email MATCH m7', 'WHERE p:city EQ c7',
                     'WHERE p:email EXISTS', "WHERE FILTER 'value = \"m7\"'", 'ROWS 2 r001 r007 WHERE p:email EQ m7'):
            self.assertIsNone(self.index_of('CSCAN t 0 ' + line), line)
        self.expect('CCOUNT t WHERE p:email EQ m7', 1)
        self.ask('INDEX CREATE t by-two ON 2 -n:age p:city')
        self.assertIsNone(self.index_of('CSCAN t 0 WHERE n:age EQ 7'))
        line = 'CSCAN t 0 WHERE p:city EQ c7 WHERE n:age EQ 7'
        self.assertEqual(b'by-two', self.index_of(line))
        self.assertEqual(b'by-two', self.index_of(line + ' REVERSE'))
        self.assertEqual(b'by-two', self.index_of(line + ' RANGE [r000 (r100'))

    def test_literals_are_those_of_predicates(self):
        self.ask('INDEX CREATE t by-x ON 1 n:x')
        for literal, rows in (('5', 1), ('5.0', 1), ('5.5', 0), ('05', 1), ('5e0', 1), ('x', 0), ('1e40', 0), ('-1e40', 0)):
            self.assertEqual(b'by-x', self.index_of(f'CSCAN t 0 WHERE n:x EQ {literal}'), literal)
            self.expect(f'CCOUNT t WHERE n:x EQ {literal}', rows)
        for words, rows in (('GT 195.5', 4), ('GE 195.5', 4), ('GT 195', 4), ('GE 196', 4), ('LT 3.5', 4), ('LE 3.5', 4),
                            ('LT 4', 4), ('LE 3', 4), ('GT 1e30', 0), ('LT -1e30', 0)):
            self.expect(f'CCOUNT t WHERE n:x {words}', rows)
            self.assertEqual(b'by-x', self.ask(f'CEXPLAIN CCOUNT t WHERE n:x {words}')[b'index'], words)
        self.expect('CCOUNT t WHERE n:x LT 1e30', self.ROWS)
        self.assertIsNone(self.ask('CEXPLAIN CCOUNT t WHERE n:x LT 1e30')[b'index'])

    def test_at_most_a_tenth_of_the_rows(self):
        self.ask('INDEX CREATE t by-age ON 1 n:age')
        for i in range(20):
            self.ask(f'CPUT t r{i:03} n:age 99')
        self.assertEqual(b'by-age', self.index_of('CSCAN t 0 WHERE n:age EQ 99'))
        self.ask('CPUT t r020 n:age 99')
        self.assertIsNone(self.index_of('CSCAN t 0 WHERE n:age EQ 99'))
        self.assertIn('more than a tenth', self.considered('CSCAN t 0 WHERE n:age EQ 99')[0])
        # Of the scan's own range: nothing there is of this age.
        self.assertEqual(b'by-age', self.index_of('CSCAN t 0 RANGE [r100 + WHERE n:age EQ 99'))

    def test_a_range_where_order_is_of_no_concern(self):
        self.ask('INDEX CREATE t by-city-x ON 2 p:city n:x')
        line = 'WHERE p:city EQ c7 WHERE n:x LT 100'
        self.assertIsNone(self.index_of('CSCAN t 0 ' + line))
        self.assertIn('another order', self.considered('CSCAN t 0 ' + line)[0])
        self.assertEqual(b'by-city-x', self.ask('CEXPLAIN CCOUNT t ' + line)[b'index'])
        self.expect('CCOUNT t ' + line, 3)
        self.expect('CCOUNT t PREFIX r04 PREFIX r00 ' + line, 2)
        words = 'CAGG t %s REDUCE SUM n:x AS s REDUCE ROWS *' % line
        self.assertEqual(b'by-city-x', self.ask('CEXPLAIN ' + words)[b'index'])
        self.assertEqual(self.ask(words), self.ask(words + ' NOINDEX'))
        # A row without the last column has no entry, but would match: every column must be asked for.
        self.ask('CPUT t lonely p:city c7')
        self.expect('CCOUNT t WHERE p:city EQ c7', 6)
        self.expect('CCOUNT t WHERE p:city EQ c7 WHERE n:x EXISTS', 5)
        self.assertEqual(b'by-city-x', self.ask('CEXPLAIN CCOUNT t WHERE p:city EQ c7 WHERE n:x EXISTS')[b'index'])
        self.assertIsNone(self.ask('CEXPLAIN CCOUNT t WHERE p:city EQ c7')[b'index'])
        self.assertIsNone(self.ask('CEXPLAIN CCOUNT t EACH 1 1 ' + line)[b'index'])

    def test_an_index_that_holds_all_that_is_asked_for_is_preferred(self):
        self.ask('INDEX CREATE t a ON 1 p:city')
        self.ask('INDEX CREATE t b ON 1 p:city INCLUDE 1 n')
        self.ask('INDEX CREATE t c ON 1 p:city')
        self.assertEqual(b'b', self.index_of('CSCAN t 0 WHERE p:city EQ c7 COLUMNS 1 n'))
        stats = self.ask('CSCAN t 0 WHERE p:city EQ c7 COLUMNS 1 n STATS')[2]
        self.assertEqual(0, stats[b'groups'])
        self.assertEqual(b'a', self.index_of('CSCAN t 0 WHERE p:city EQ c7'))
        texts = self.considered('CSCAN t 0 WHERE p:city EQ c7 COLUMNS 1 n')
        self.assertEqual(3, len(texts))
        self.assertRegex(texts[0], "^a: not taken: index 'b' costs less")
        self.assertRegex(texts[1], '^b: taken: .*about 5 entries instead of 200 rows; the table is not read')
        self.assertRegex(texts[2], "^c: not taken: index 'b' costs no more")

    def test_rows_left_out(self):
        self.ask('INDEX CREATE t by-email ON 1 p:email')
        self.ask('INDEX CREATE t by-two ON 2 p:email p:city')
        line = 'CSCAN t 0 WHERE p:email EQ 5'

        def left_out():
            return [self.ask('INDEX INFO t ' + name)[b'left_out'] for name in ('by-email', 'by-two')]

        self.assertEqual([0, 0], left_out())
        self.ask('CPUT t z1 p:email 5 AS i64')
        self.ask('CPUT t z2 p:email 5 AS string')
        self.ask('CPUT t z3 p:email 5')
        self.assertEqual([2, 0], left_out())
        self.assertIsNone(self.index_of(line))
        self.assertEqual(3, len(self.ask(line)[1]))
        self.assertIn('by-email: not taken: it leaves out 2 rows', self.considered(line)[0])
        self.ask('CPUT t z1 p:city c1')
        self.ask('CPUT t z2 p:city 1 AS u8')
        self.ask('CPUT t z3 p:city 1 AS u8')
        self.assertEqual([2, 3], left_out())
        self.ask('DEBUG RELOAD')
        self.assertEqual([2, 3], left_out())
        self.ask('SNAPSHOT CREATE s')
        self.ask('COPY t u')
        self.ask('CPUT t z1 p:email 5')
        self.ask('CDEL t z2')
        self.ask('CDEL t z3 p:city')
        self.assertEqual([0, 0], left_out())
        self.assertEqual(b'by-email', self.index_of(line))
        self.ask('INDEX DROP t by-email')
        for name in ('t@s', 'u'):
            self.assertEqual(2, self.ask(f'INDEX INFO {name} by-email')[b'left_out'])
            self.assertIsNone(self.index_of(f'CSCAN {name} 0 WHERE p:email EQ 5'))
        self.ask('MULTI ATOMIC')
        self.ask('CPUT t z9 p:email 1 AS i8 p:city x')
        self.ask('CINCRBY t z9 p:city 1')
        self.assertIsInstance(self.raw('EXEC'), Error)
        self.assertEqual(0, self.ask('INDEX INFO t by-two')[b'left_out'])
        # An older version takes the place of one of another type.
        self.ask('CPUT t z8 p:email old TS 1 p:city x TS 1')
        self.ask('CPUT t z8 p:email 7 AS i64 TS 2')
        self.assertEqual(1, self.ask('INDEX INFO t by-two')[b'left_out'])
        self.ask('CDEL t z8 p:email TIME 2 2')
        self.assertEqual(0, self.ask('INDEX INFO t by-two')[b'left_out'])
        # One that is built finds those that were there.
        self.ask('CPUT t z7 p:email 7 AS i64 p:city x')
        self.ask('INDEX CREATE t again ON 1 p:email')
        self.assertEqual(1, self.ask('INDEX INFO t again')[b'left_out'])
        self.ask('CDELRANGE t RANGE [z [z9')
        self.assertEqual(0, self.ask('INDEX INFO t again')[b'left_out'])
        self.assertEqual([[], [b'again', b'by-two']], [self.ask('CSCAN t 0 INDEX again BETWEEN [zz +')[1],
                                                       self.ask('INDEX LIST t')])

    def test_the_number_left_out_is_no_row_of_the_index(self):
        self.ask('INDEX CREATE t by-x ON 1 p:x')
        self.ask('CPUT t a p:x 1 AS i64')
        self.expect('CSCAN t 0 INDEX by-x', [b'0', []])
        self.expect('CSCAN t 0 INDEX by-x REVERSE', [b'0', []])
        self.assertIsNone(self.ask('CNEAR t INDEX by-x 1 k'))
        self.ask('CPUT t b p:x k')
        for order in ('', ' REVERSE'):
            self.assertEqual([b'b'], self.ask('CSCAN t 0 INDEX by-x KEYSONLY' + order)[1])
            self.assertEqual(1, self.ask('CSCAN t 0 INDEX by-x STATS' + order)[2][b'rows'])
        self.assertEqual(1, self.ask('INDEX INFO t by-x')[b'entries'])
        self.expect('CCOUNT t INDEX by-x', 1)
        self.assertEqual(b'b', self.ask('CNEAR t INDEX by-x 1 z')[1])

    def test_cursors_outlive_the_index(self):
        for i in range(0, self.ROWS, 20):
            self.ask(f'CPUT t r{i:03} p:city here')
        self.ask('INDEX CREATE t by-city ON 1 p:city')
        for order in ('', ' REVERSE'):
            wanted = self.ask('CSCAN t 0 WHERE p:city EQ here KEYSONLY NOINDEX' + order)[1]
            self.assertEqual(10, len(wanted))
            for drops in (True, False):
                cursor, rows = self.ask('CSCAN t 0 WHERE p:city EQ here KEYSONLY COUNT 3' + order)
                self.ask('INDEX DROP t by-city' if drops else 'INDEX CREATE t by-city ON 1 p:city')
                while cursor != b'0':
                    cursor, more = self.ask(['CSCAN', 't', cursor] + ('WHERE p:city EQ here KEYSONLY COUNT 2' + order).split())
                    rows += more
                self.assertEqual(wanted, rows)

    def test_each(self):
        self.ask('TABLE CREATE m KEY utf8#-u64 FAMILY v')
        for i in range(150):
            self.ask(f'CPUT m d{i % 3}#{i} v:s {"hot" if i % 15 < 3 and i < 45 else "cold"}')
        self.ask('INDEX CREATE m by-s ON 1 v:s')
        for words in ('EACH 1 1', 'EACH 1 2', 'EACH 1 2 REVERSE', 'EACH 1 1 PREFIX d1#'):
            line = f'CSCAN m 0 WHERE v:s EQ hot {words} KEYSONLY'
            self.assertEqual(b'by-s', self.ask(line + ' STATS')[2].get(b'index'))
            wanted = self.ask(line + ' NOINDEX')[1]
            self.assertEqual(wanted, self.ask(line)[1])
            cursor, rows = b'0', []
            while True:
                cursor, more = self.ask(line.replace(' 0 ', f' {cursor.decode()} ') + ' COUNT 1')
                rows += more
                if cursor == b'0':
                    break
            self.assertEqual(wanted, rows, words)

    def test_which_index_would_serve(self):
        self.assertEqual(['INDEX CREATE <table> <name> ON 1 p:email would serve this WHERE'],
                         self.considered('CSCAN t 0 WHERE p:email EQ m7 WHERE n:x GT 4'))
        self.assertEqual(['INDEX CREATE <table> <name> ON 2 p:email n:x would serve this WHERE'],
                         self.considered('CCOUNT t WHERE p:email EQ m7 WHERE n:x EQ 4'))
        self.assertEqual(['INDEX CREATE <table> <name> ON 1 n:x would serve this WHERE'],
                         self.considered('CCOUNT t WHERE n:x GT 4'))
        for line in ('CSCAN t 0', 'CSCAN t 0 WHERE n:x GT 4', 'CSCAN t 0 WHERE n:x NE 4', 'CSCAN t 0 NOINDEX WHERE n:x EQ 4',
                     'CSCAN t 0 ROWS 1 r001 WHERE n:x EQ 4', 'CROW t r001'):
            self.assertEqual([], self.considered(line), line)
        self.ask('INDEX CREATE t of-n ON 1 n')
        self.ask('INDEX CREATE t rows ON 0 INCLUDE 1 n')
        self.ask('INDEX CREATE t by-x ON 1 n:x')
        texts = self.considered('CSCAN t 0 COLUMNS 1 n')
        self.assertEqual(['by-x', 'of-n', 'rows'], [text.split(':')[0] for text in texts])
        self.assertIn("no WHERE asks for its column 'n:x'", texts[0])
        self.assertIn('it lists qualifiers', texts[1])
        self.assertIn('rows: taken: it holds all', texts[2])
        self.assertIn('by-x: taken: it is named', self.considered('CSCAN t 0 INDEX by-x')[0])
        self.assertIn('NOINDEX', self.considered('CSCAN t 0 NOINDEX')[0])

    def test_a_named_index_with_all_its_columns_takes_ranges_of_rows(self):
        self.ask('INDEX CREATE t by-city ON 1 p:city')
        for words in ('PREFIX r0', 'RANGE [r047 (r170', 'RANGE [r047 (r170 REVERSE', 'PREFIX r0 PREFIX r1 REVERSE'):
            self.assertEqual(self.ask(f'CSCAN t 0 INDEX by-city EQ 1 c7 {words}')[1],
                             self.ask(f'CSCAN t 0 WHERE p:city EQ c7 {words} NOINDEX')[1])

    def test_rights(self):
        self.ask('INDEX CREATE t by-email ON 1 p:email INCLUDE 1 n')
        self.ask(['ACL', 'SETUSER', 'half', 'on', '>pw', '~t:p', '+@all'])
        other = self.connect()
        other.call(b'AUTH', b'half', b'pw')
        reply = other.call(*b'CSCAN t 0 WHERE p:email EQ m7'.split())
        self.assertEqual([[b'r007', {b'p:city': b'c7', b'p:email': b'm7'}]], [[row, dict(cells.pairs)] for row, cells in reply[1]])
        self.assertIn('NOPERM', str(other.call(*b'CSCAN t 0 WHERE n:x EQ 4'.split())))


class Choices:
    """A table with indexes, changed at random, and reads of it that must be those of NOINDEX."""

    COLUMNS = ('a:x', 'a:y', 'b:x', 'b:n')
    FIXED = {'b:n': 'i64'}

    def __init__(self, seed):
        self.seed = seed
        self.rng = random.Random(seed)
        self.server = CellarServer(options={'enable-debug-command': 'yes', 'save': '', 'appendfsync': 'always'})
        self.client = None
        self.now = 2 * 10**15
        self.taken = 0
        self.asked = 0
        self.snapshots = 0

    def __enter__(self):
        self.server.start()
        self.connect()
        return self

    def __exit__(self, *_):
        self.client.close()
        self.server.close()

    def connect(self):
        self.client = Client(self.server.port, self.rng.choice((2, 3)))
        self.client.call(b'DEBUG', b'SET-TIME', b'%d' % self.now)

    def ask(self, *words):
        words = [str(word).encode() for word in words]
        return self.client.call(*words)

    def must(self, *words):
        reply = self.ask(*words)
        assert not isinstance(reply, Error), (words, reply)
        return reply

    def make(self):
        rng = self.rng
        self.key = rng.choice(('bytes', 'utf8#i64', '-u32', 'i64'))
        self.mixed = rng.random() < 0.6        # cells of other types come
        self.domain = rng.choice((15, 40, 120))
        self.timed = rng.random() < 0.4
        families = ['FAMILY', 'a', 'FAMILY', 'b']
        if rng.random() < 0.4:
            families += ['VERSIONS', rng.choice((1, 2))]
        elif self.timed:
            families += ['TTL', '100s']
        self.types = {'a:x': rng.choice(('bytes', 'string', 'f64')), 'a:y': rng.choice(('bytes', 'i64', 'bool')),
                      'b:x': rng.choice(('u16', 'i64', 'uuid', 'f32')), 'b:n': 'i64'}
        self.must('TABLE', 'CREATE', 't', 'KEY', self.key, *families)
        for _ in range(rng.randint(150, 300)):
            self.write('t')
        for number in range(rng.randint(1, 4)):
            self.create('i%d' % number)

    def row(self):
        number = self.rng.randrange(250)
        return 'k%d#%d' % (number % 7, number) if '#' in self.key else str(number)

    def value(self, kind):
        number = self.rng.randrange(self.domain)
        if kind == 'bool':
            return self.rng.choice(('true', 'false'))
        if kind == 'uuid':
            return '00000000-0000-0000-0000-%012d' % number
        if kind in ('f32', 'f64'):
            return self.rng.choice((str(number), '%d.5' % number, '-0' if number == 0 else str(number)))
        return str(number)

    def puts(self):
        words = []
        for column in self.rng.sample(self.COLUMNS, self.rng.randint(1, 4)):
            kind = self.types[column]
            if self.mixed and self.rng.random() < 0.01:
                kind = self.rng.choice(('i8', 'string', 'bytes', 'f64', 'u64'))
            words += [column, self.value(kind), 'AS', kind]
            if self.rng.random() < 0.2:
                words += ['TS', self.now - self.rng.randrange(10**8)]
            if self.timed and self.rng.random() < 0.1:
                words += ['TTL', '%ds' % self.rng.randint(1, 60)]
        return words

    def write(self, table):
        self.ask('CPUT', table, self.row(), *self.puts())

    def create(self, name):
        words = []
        columns = self.rng.sample(self.COLUMNS, self.rng.choice((1, 1, 2, 2, 3)))
        for column in columns:
            words += [self.rng.choice(('', '-')) + column, 'AS', self.types[column]]
        if self.rng.random() < 0.5:
            words += ['INCLUDE', 2, 'a', self.rng.choice(('b', 'b:n'))]
        self.ask('INDEX', 'CREATE', 't', name, 'ON', len(columns), *words)

    def where(self):
        words = []
        for column in self.rng.sample(self.COLUMNS, self.rng.choice((1, 1, 2, 2, 3))):
            op = self.rng.choice(('EQ', 'EQ', 'EQ', 'EQ', 'LT', 'LE', 'GT', 'GE', 'EXISTS', 'NE'))
            words += ['WHERE', column, op]
            if op != 'EXISTS':
                words.append(self.literal(column))
        return words

    def literal(self, column):
        if self.rng.random() < 0.1:
            return self.rng.choice(('', 'zz', '1e3', '4.5', '-1', '1e99', '-1e99', '07', 'nan', 'inf', '3.0'))
        return self.value(self.types[column])

    def bounds(self):
        choice = self.rng.random()
        if choice < 0.6:
            return []
        if choice < 0.8 or self.key in ('i64', '-u32'):
            return ['RANGE', self.rng.choice('[(') + self.row(), self.rng.choice('[(') + self.row()]
        return ['PREFIX', 'k%d' % self.rng.randrange(7)]

    def cells(self):
        choices = [[], [], ['COLUMNS', 1, self.rng.choice(self.COLUMNS)], ['COLUMNS', 1, 'a'], ['VERSIONS', 'ALL'],
                   ['WITHTS'], ['WITHTYPE'], ['PERROW', 2], ['SKIP', 1], ['TIME', '-inf', self.now - 10**7],
                   ['FILTER', 'value ~ ".*1.*"']]
        return self.rng.choice(choices)

    def pages(self, table, words, count):
        """All rows of a scan, over its cursors."""
        rows, cursor = [], b'0'
        while True:
            reply = self.ask('CSCAN', table, cursor.decode(), *words, 'COUNT', count)
            if isinstance(reply, Error):
                return reply
            cursor = reply[0]
            rows += [str(row) for row in reply[1]]
            if cursor == b'0':
                return rows
            if self.rng.random() < 0.02:
                self.change()

    def compare(self, words, plain):
        assert str(words) == str(plain), 'seed %d: %s is not %s' % (self.seed, str(words)[:500], str(plain)[:500])

    def read(self, table):
        rng = self.rng
        words = self.bounds() + self.where() + self.cells()
        if rng.random() < 0.2:
            words += ['REVERSE']
        if rng.random() < 0.15 and '#' in self.key:
            words += ['EACH', rng.choice((1, 2)), rng.choice((1, 2))]
        choice = rng.random()
        if choice < 0.5:
            if rng.random() < 0.2:
                words += ['KEYSONLY']
            self.note('CSCAN', table, '0', *words)
            plain = self.ask('CSCAN', table, '0', *words, 'NOINDEX', 'COUNT', 1000)
            if not isinstance(plain, Error):
                plain = [str(row) for row in plain[1]]
            frozen = table != 't'
            count = rng.choice((1, 3, 1000)) if frozen else 1000
            self.compare(self.pages(table, words, count), plain)
        elif choice < 0.75:
            words += ['BY', rng.choice(('ROWS', 'CELLS', 'COLUMNS', 'GROUPS'))]
            self.note('CCOUNT', table, *words)
            self.compare(self.ask('CCOUNT', table, *words), self.ask('CCOUNT', table, *words, 'NOINDEX'))
        elif choice < 0.9:
            words += rng.choice(([], ['BY', 'VALUE', 'a:x'], ['BY', 'KEY', '1'], ['BY', 'COLUMN']))
            words += ['REDUCE', 'COUNT', '*', 'REDUCE', 'SUM', 'b:n', 'REDUCE', 'DISTINCT', 'a', 'REDUCE', 'MAX', 'b:x']
            self.note('CAGG', table, *words)
            self.compare(self.ask('CAGG', table, *words), self.ask('CAGG', table, *words, 'NOINDEX'))
        elif table == 't':
            self.update()

    def note(self, *words):
        self.asked += 1
        reply = self.ask('CEXPLAIN', *words)
        if isinstance(reply, Error):
            return
        fields = reply.pairs if hasattr(reply, 'pairs') else list(zip(reply[::2], reply[1::2]))
        self.taken += dict(fields)[b'index'] is not None

    def update(self):
        """The same CUPDATE with and without an index, on two copies."""
        front = self.rng.choice((['ALL'], self.bounds()[:3] or ['ALL']))
        words = front + self.where()
        if self.rng.random() < 0.3:
            words += ['LIMIT', self.rng.randint(1, 5)]
        ops = self.rng.choice((['DELROW'], ['PUT', 'a:x', self.value(self.types['a:x']), 'AS', self.types['a:x'], 'TS', self.now],
                               ['DEL', 'b:x'], ['INCR', 'b:n', '1'], ['DEL', 'a']))
        replies = []
        for name, option in (('u', []), ('v', ['NOINDEX'])):
            self.must('COPY', 't', name, 'REPLACE')
            self.must('DEBUG', 'SET-TIME', self.now)
            replies.append(self.ask('CUPDATE', name, *words[:len(front)], *option, *words[len(front):], *ops))
        self.compare(*replies)
        rows = [[str(row) for row in self.must('CSCAN', name, '0', 'COUNT', 1000)[1]] for name in ('u', 'v')]
        self.compare(*rows)

    def change(self):
        """Something that no read may notice."""
        name = 'i%d' % self.rng.randrange(4)
        if self.rng.random() < 0.5:
            self.ask('INDEX', 'DROP', 't', name)
        else:
            self.create(name)

    def left_out(self):
        """What INDEX INFO tells is what the cells tell."""
        for name in self.must('INDEX', 'LIST', 't'):
            info = self.must('INDEX', 'INFO', 't', name.decode())
            fields = info.pairs if hasattr(info, 'pairs') else list(zip(info[::2], info[1::2]))
            fields = dict(fields)
            if fields[b'state'] != b'ready':
                continue
            columns = [text.decode().lstrip('-') for text in fields[b'on']]
            rows = self.must('CSCAN', 't', '0', 'COUNT', 1000, 'WITHTYPE', 'COLUMNS', len(columns), *columns, 'NOINDEX')[1]
            wrong = 0
            for _, cells in rows:
                pairs = cells.pairs if hasattr(cells, 'pairs') else list(zip(cells[::2], cells[1::2]))
                kinds = {column.decode(): versions[0][2].decode() for column, versions in pairs}
                if len(kinds) == len(columns) and any(kinds[c] != self.types[c] for c in columns):
                    wrong += 1
            if self.timed:
                assert fields[b'left_out'] >= wrong, self.seed
            else:
                self.compare(fields[b'left_out'], wrong)

    def step(self):
        rng = self.rng
        choice = rng.random()
        if choice < 0.25:
            self.write('t')
        elif choice < 0.29:
            self.ask('CDEL', 't', self.row(), *rng.choice(([], [rng.choice(self.COLUMNS)], ['a'])))
        elif choice < 0.30:
            self.change()
        elif choice < 0.31:
            self.now += rng.randrange(30 * 10**6)
            self.must('DEBUG', 'SET-TIME', self.now)
        elif choice < 0.315:
            self.must('SNAPSHOT', 'CREATE', 's', 'REPLACE')
            self.snapshots += 1
        elif choice < 0.32:
            self.ask('FAMILY', 'ALTER', 't', 'a', 'VERSIONS', rng.choice(('ALL', '1', '3')))
        elif choice < 0.325:
            self.ask('CDELRANGE', 't', 'RANGE', '[' + self.row(), '[' + self.row())
        elif choice < 0.33:
            self.left_out()
        elif choice < 0.335:
            self.must('DEBUG', 'RELOAD')
        elif choice < 0.3375:
            if rng.random() < 0.5:
                self.must('SAVE')
            self.client.close()
            self.server.kill()
            self.server.start()
            self.connect()
        else:
            self.read('t@s' if self.snapshots and rng.random() < 0.15 else 't')


@unittest.skipIf(ON_MODEL, 'what is read is not for a model to say')
class RandomChoiceTest(unittest.TestCase):
    def test_chosen_against_noindex(self):
        first = int(os.environ.get('CELLAR_TEST_SEED', random.randrange(10**6)))
        taken = asked = 0
        for seed in range(first, first + int(os.environ.get('CELLAR_TEST_ROUNDS', '6'))):
            with self.subTest(seed=seed), Choices(seed) as choices:
                choices.make()
                for _ in range(int(os.environ.get('CELLAR_TEST_STEPS', '700'))):
                    choices.step()
                taken += choices.taken
                asked += choices.asked
        print('seeds %d.., %d of %d reads took an index' % (first, taken, asked), file=sys.stderr)
        self.assertGreater(taken, asked // 200)


if __name__ == '__main__':
    unittest.main()
