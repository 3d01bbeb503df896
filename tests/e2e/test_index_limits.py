"""What an index refuses: rows too large for it, equal rows, other types; and what it says of it.

An index that is ready has every row that it should have. So each way is tried here by which a row
may come to have ON values that do not fit beside its key into 64 KiB.
"""

import time
import unittest

from cellar_server import not_on_a_follower
from conversation import ON_MODEL, Conversation

LIMIT = 64 * 1024
WIDE = 'w' * 70000


class WideValueTest(Conversation):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE t FAMILY f FAMILY g')

    def holds(self, *rows):
        self.assertEqual(self.keys('CSCAN t 0 INDEX i'), list(rows))

    def too_large(self, line):
        self.refused(line, 'TOOLARGE', "index 'i'", str(LIMIT))

    def test_values_that_come_one_by_one(self):
        self.ask('INDEX CREATE t i ON 3 f:a f:b f:c')
        self.ask(['CPUT', 't', 'r', 'f:a', 'x' * 25000])
        self.ask(['CPUT', 't', 'r', 'f:b', 'x' * 25000])
        self.too_large(['CPUT', 't', 'r', 'f:c', 'x' * 25000])
        self.too_large(['CAPPEND', 't', 'r', 'f:c', 'x' * 25000])
        self.ask(['CPUT', 't', 'r', 'f:c', 'x' * (LIMIT - 50001)])
        self.holds('r')
        self.too_large('CAPPEND t r f:a x')
        self.ask(['CPUT', 't', 's', 'f:a', 'x' * 40000])  # nothing sticks to the next write
        self.expect('CCOUNT t', 2)

    def test_the_limit_counts_the_row_key_and_no_escapes(self):
        self.ask('INDEX CREATE t i ON 2 f:a f:n AS i64')
        row = b'r' * 1000
        self.ask([b'CPUT', b't', row, b'f:n', b'7', b'AS', b'i64', b'f:a', b'\0' * (LIMIT - 1008)])
        self.holds(row.decode())
        self.too_large([b'CPUT', b't', row, b'f:a', b'\0' * (LIMIT - 1007)])
        self.too_large([b'CPUT', b't', row + b'r', b'f:n', b'7', b'AS', b'i64',
                        b'f:a', b'\0' * (LIMIT - 1008)])

    def test_qualifiers_beside_long_row_keys(self):
        self.ask('INDEX CREATE t i ON 1 f')
        row = 'r' * (LIMIT - 100)
        self.ask(['CPUT', 't', row, 'f:' + 'q' * 100, 'v'])
        self.too_large(['CPUT', 't', row, 'f:' + 'q' * 101, 'v'])
        self.ask(['CPUT', 't', row, 'g:' + 'q' * 101, 'v'])
        self.holds(row)

    def test_a_delete_that_uncovers_one(self):
        self.ask(['CPUT', 't', 'r', 'f:a', WIDE, 'TS', 1, 'f:a', 'new', 'TS', 2])
        self.ask('INDEX CREATE t i ON 1 f:a')
        self.too_large('CDEL t r f:a TIME 2 2')
        self.too_large('CMUTATE t r DEL f:a TIME 2 2 PUT f:b 1')
        self.expect('CGET t r f:a', b'new')
        self.holds('r')
        self.ask('CMUTATE t r DEL f:a TIME 2 2 PUT f:a other TS 3')
        self.ask('CDEL t r f:a')
        self.ask(['CPUT', 't', 'r', 'f:a', 'new', 'TS', 2])
        self.ask(['CPUT', 't', 'r', 'f:a', WIDE, 'TS', 1])  # hidden: it is in no entry
        self.too_large('CDEL t r f:a TIME 2 2')
        self.expect('CDEL t r', 2)
        self.holds()

    def test_an_expiry_that_would_uncover_one(self):
        self.ask('INDEX CREATE t i ON 1 f:a')
        self.ask(['CPUT', 't', 'r', 'f:a', 'new', 'TS', 2, 'f:a', WIDE, 'TS', 1])
        self.too_large('CPUT t r f:a new TS 2 TTL 10s')
        self.ask('CPUT t r f:a newer TS 3 TTL 10s')  # behind it stands what is small
        self.advance(11)
        self.expect('CGET t r f:a', b'new')
        self.holds('r')

    def test_a_wide_value_that_has_expired_is_in_nobodys_way(self):
        self.ask(['CPUT', 't', 'r', 'f:a', WIDE, 'TTL', '5s', 'f:b', '1'])
        self.advance(6)
        self.ask('INDEX CREATE t i ON 1 f:a')
        self.ask('CPUT t r f:a new')
        self.holds('r')

    def test_another_type_is_not_indexed(self):
        self.ask('INDEX CREATE t i ON 1 f:a AS string')
        self.ask(['CPUT', 't', 'r', 'f:a', WIDE])
        self.holds()
        self.too_large(['CPUT', 't', 'r', 'f:a', WIDE, 'AS', 'string'])

    def test_transactions(self):
        self.ask('INDEX CREATE t i ON 2 f:a f:b')
        self.ask(['CPUT', 't', 'r', 'f:a', 'x' * 40000])
        put = ['CPUT', 't', 'r', 'f:b', 'x' * 40000]
        for line in ('MULTI', put, 'CPUT t r f:b small'):
            self.ask(line)
        reply = self.raw('EXEC')
        self.assertEqual((reply[0].code, reply[1]), ('TOOLARGE', b'OK' if ON_MODEL else reply[1]))
        self.holds('r')
        for line in ('MULTI ATOMIC', 'CDEL t r f:a', put, ['CPUT', 't', 'r', 'f:a', 'x' * 40000]):
            self.ask(line)
        self.assertEqual(self.raw('EXEC').code, 'EXECABORT')
        self.expect('CGET t r f:b', b'small')
        self.holds('r')

    @not_on_a_follower("the log of the leader tells of it")
    def test_building_over_one_fails_and_says_where(self):
        self.ask(['CPUT', 't', 'good', 'f:a', 'small'])
        self.ask(['CPUT', 't', 'large', 'f:a', WIDE, 'f:b', 'x'])
        self.ask('INDEX CREATE t i ON 2 f:b f:a')
        self.expect('INDEX LIST t', [b'i'])
        self.assertEqual(self.ask('INDEX INFO t i')[b'state'], b'failed')
        words = ("row 'large'", "column 'f:a'", '70006', str(LIMIT))
        self.refused('CSCAN t 0 INDEX i', 'TOOLARGE', "index 'i'", *words)
        self.refused('CNEAR t INDEX i 1 x', 'TOOLARGE')
        if not ON_MODEL:
            error = self.ask('INDEX INFO t i')[b'error'].decode()
            self.assertEqual([word for word in ('TOOLARGE',) + words if word not in error], [])
            self.assertIn("index 'i' of table '0/t' could not be built", self.server.log())
        self.ask(['CPUT', 't', 'more', 'f:a', WIDE, 'f:b', 'x'])  # it holds nothing any more
        self.ask('CDEL t large')
        self.ask('CDEL t more')
        self.ask('INDEX DROP t i')
        self.ask('INDEX CREATE t i ON 2 f:b f:a')
        self.holds()

    def test_a_change_of_retention_that_shows_one(self):
        """What has no age outlives what is newer, so the index cannot stay ready."""
        self.ask(['CPUT', 't', 'r', 'f:a', 'new', 'f:a', WIDE, 'TS', 0])
        self.ask('INDEX CREATE t i ON 1 f:a')
        self.holds('r')
        self.ask('FAMILY ALTER t f TTL 1h')
        self.wait_for_index('t', 'i')
        self.refused('CSCAN t 0 INDEX i', 'TOOLARGE', "row 'r'")

    @unittest.skipIf(ON_MODEL, 'a model does not restart')
    def test_restarts(self):
        self.ask('INDEX CREATE t i ON 2 f:a f:b')
        self.ask(['CPUT', 't', 'r', 'f:a', 'x' * 40000, 'f:b', 'x'])
        self.ask(['CPUT', 't', 'dead', 'f:a', WIDE, 'TTL', '1s'])
        self.ask(['CPUT', 't', 'bad', 'g:a', WIDE])
        self.ask('INDEX CREATE t failed ON 1 g:a')
        why = self.ask('INDEX INFO t failed')[b'error']
        for save in (False, True):
            if save:
                self.ask('SAVE')
            self.ask('DEBUG RELOAD')
            self.holds('r')
            self.too_large(['CPUT', 't', 'r', 'f:b', 'x' * 40000])
            self.assertEqual(self.ask('INDEX INFO t failed')[b'error'], why)


class UniqueTest(Conversation):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE t FAMILY f FAMILY g')

    def test_rows_that_have_expired_block_nobody(self):
        self.ask('INDEX CREATE t u ON 0 INCLUDE 1 g UNIQUE')
        self.ask('CPUT t a f:x 1 TTL 5s')
        self.refused('CPUT t b f:x 1', 'NOTUNIQUE', "row 'a'", "index 'u'")
        self.advance(6)
        self.ask('CPUT t b f:x 1')
        self.refused('CPUT t a f:x 1', 'NOTUNIQUE', "row 'b'")
        self.refused('CPUT t a g:x 1', 'NOTUNIQUE', "row 'b'")

    def test_a_row_that_comes_to_life_again_is_a_second_one(self):
        self.ask('CPUT t a f:x 1 TTL 5s')
        self.advance(6)
        self.ask('CPUT t b f:x 1')
        self.ask('INDEX CREATE t u ON 0 INCLUDE 1 g UNIQUE')
        self.assertEqual(self.ask('INDEX INFO t u')[b'state'], b'ready')
        self.refused('CPUT t a f:y 1', 'NOTUNIQUE')

    def test_values_that_have_expired_block_nobody(self):
        self.ask('INDEX CREATE t u ON 1 f:x UNIQUE')
        self.ask('INDEX CREATE t q ON 1 g UNIQUE')
        self.ask('CPUT t a f:x 1 TTL 5s g:x 1 TTL 5s')
        self.advance(6)
        self.ask('CPUT t b f:x 1 g:x 1')

    def test_the_value_and_the_row_are_named(self):
        self.ask('INDEX CREATE t u ON 2 f:a f:n AS i64 UNIQUE')
        self.ask('CPUT t first f:a v f:n 7 AS i64')
        self.refused('CPUT t second f:a v f:n 7 AS i64', 'NOTUNIQUE', "row 'first' has 'v', '7' already",
                     "index 'u'")
        self.ask(['CPUT', 't', 'third', 'f:a', 'l' * 300, 'f:n', '7', 'AS', 'i64'])
        self.refused(['CPUT', 't', 'fourth', 'f:a', 'l' * 300, 'f:n', '7', 'AS', 'i64'], 'NOTUNIQUE',
                     "row 'third' has '" + 'l' * 64 + "...', '7'")

    def test_building_over_equal_rows_names_them(self):
        self.ask('CPUT t a f:x same')
        self.ask('CPUT t b f:x same')
        self.ask('INDEX CREATE t u ON 1 f:x UNIQUE')
        reply = self.refused('CSCAN t 0 INDEX u', 'NOTUNIQUE', "'same'", "row 'a'", "row 'b'")
        if not ON_MODEL:
            self.assertIn(reply.text.split(': ', 1)[1], self.ask('INDEX INFO t u')[b'error'].decode())

    @unittest.skipIf(ON_MODEL, 'a model has no users')
    def test_who_may_not_read_is_not_told_whose_value_it_is(self):
        self.ask('INDEX CREATE t u ON 1 f:x UNIQUE')
        self.ask('CPUT t secret f:x same')
        self.ask('ACL SETUSER writer on nopass %W~t:f +@all')
        writer = self.connect()
        self.ask('AUTH writer any', writer)
        reply = self.refused('CPUT t b f:x same', 'NOTUNIQUE', "index 'u'", connection=writer)
        self.assertNotIn('secret', reply.text)


class TypeTest(Conversation):
    """An ON column without AS has its family's type, and keeps it."""

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE u FAMILY n TYPE i64 FAMILY m')

    def test_an_index_without_as_holds_the_type(self):
        self.ask('INDEX CREATE u a ON 1 n:age UNIQUE')
        self.ask('CPUT u r n:age 31')
        for kind in ('i32', 'NONE'):
            self.refused('FAMILY ALTER u n TYPE ' + kind, 'ERR', "index 'a'", "'n'")
        self.refused('FAMILY ALTER u n TTL 1h TYPE i32', 'ERR', "index 'a'")
        self.assertEqual(self.ask('FAMILY INFO u n')[b'type'], b'i64')
        self.ask('FAMILY ALTER u n TYPE i64 TTL 1h')
        self.ask('FAMILY ALTER u m TYPE i32')
        self.refused('CPUT u s n:age 31', 'NOTUNIQUE')
        self.ask('INDEX DROP u a')
        self.ask('FAMILY ALTER u n TYPE i32 KEEP')

    def test_others_do_not_care(self):
        self.ask('INDEX CREATE u given ON 1 n:age AS i64')
        self.ask('INDEX CREATE u qualifiers ON 1 n')
        self.ask('INDEX CREATE u included ON 1 m:x INCLUDE 1 n')
        self.ask('CPUT u old n:age 31')
        self.ask('FAMILY ALTER u n TYPE i32 KEEP')
        self.ask('CPUT u new n:age 31')
        self.assertEqual(self.keys('CSCAN u 0 INDEX given'), ['old'])
        self.assertEqual(self.keys('CSCAN u 0 INDEX qualifiers'), ['new', 'old'])

    @unittest.skipIf(ON_MODEL, 'a model does not restart')
    def test_what_is_shown_makes_the_same_index(self):
        self.ask('INDEX CREATE u a ON 2 n:age m:x AS bytes')
        for _ in range(2):
            self.assertIn(b'INDEX CREATE u a ON 2 n:age m:x AS bytes', self.ask('TABLE SHOW u'))
            self.refused('FAMILY ALTER u n TYPE i32 KEEP', 'ERR', "index 'a'")
            self.ask('FAMILY ALTER u m TYPE i32')
            self.ask('FAMILY ALTER u m TYPE NONE')
            self.ask('DEBUG RELOAD')


@unittest.skipIf(ON_MODEL, 'the model has no cursors')
class StaleCursorTest(Conversation):
    def setUp(self):
        super().setUp()
        self.make()

    def make(self):
        self.ask('TABLE CREATE t FAMILY f')
        for number in range(10):
            self.ask(f'CPUT t r{number} f:a {number} f:b {9 - number}')
        self.ask('INDEX CREATE t i ON 1 f:a')

    def first(self, options=''):
        return self.ask(f'CSCAN t 0 INDEX i COUNT 3 KEYSONLY {options}')[0].decode()

    def test_an_index_that_is_gone_or_another_one(self):
        for definition in (None, 'ON 1 f:b', 'ON 1 -f:a', 'ON 0 INCLUDE 1 f', 'ON 1 f', 'ON 1 f:a'):
            with self.subTest(definition):
                cursor = self.first()
                self.ask('INDEX DROP t i')
                if definition:
                    self.ask('INDEX CREATE t i ' + definition)
                self.refused(f'CSCAN t {cursor} INDEX i', 'STALECURSOR', "index 'i'")
                if definition:
                    self.ask('INDEX DROP t i')
                self.refused('CSCAN t 0 INDEX i', 'NOINDEX')
                self.ask('INDEX CREATE t i ON 1 f:a')

    def test_an_index_of_another_table_of_that_name(self):
        cursor = self.first()
        self.ask('TABLE DROP t')
        self.make()
        self.refused(f'CSCAN t {cursor} INDEX i', 'STALECURSOR', "index 'i'")

    def test_the_same_index_goes_on(self):
        cursor = self.first()
        self.ask('TABLE RENAME t u')
        self.ask('SAVE')
        self.ask('DEBUG RELOAD')
        self.ask('TABLE RENAME u t')
        self.expect(f'CSCAN t {cursor} INDEX i COUNT 3 KEYSONLY'.split()[:5] + ['COUNT', '100', 'KEYSONLY'],
                    [b'0', [b'r%d' % number for number in range(3, 10)]])

    def test_a_snapshot_goes_on_over_the_index_as_it_was(self):
        cursor = self.first('SNAPSHOT')
        self.ask('INDEX DROP t i')
        self.ask('INDEX CREATE t i ON 1 f:b')
        self.expect(f'CSCAN t {cursor} INDEX i KEYSONLY',
                    [b'0', [b'r%d' % number for number in range(3, 10)]])


class CountTest(Conversation):
    """CCOUNT of everything takes what is known; it must be what a scan would have counted."""

    def counts(self, connection=None):
        def read(line):
            return self.ask(line, connection)
        counted = [read('CCOUNT t'), read('CCOUNT t VERSIONS ALL BY CELLS')]
        self.assertEqual(counted, [read('CCOUNT t RANGE - +'),
                                   read('CCOUNT t RANGE - + VERSIONS ALL BY CELLS')])
        return counted

    def test_with_retention_and_without(self):
        self.ask('TABLE CREATE t FAMILY f FAMILY v VERSIONS 1 FAMILY a')
        for number in range(20):
            self.ask(f'CPUT t r{number} f:x 1 TS 1 f:x 2 TS 2')
        self.assertEqual(self.counts(), [20, 40])
        self.ask('CPUT t r0 v:x 1 TS 1 v:x 2 TS 2')
        self.assertEqual(self.counts(), [20, 41])
        self.ask('CPUT t mortal v:x 1 TTL 5s')
        self.assertEqual(self.counts(), [21, 42])
        self.advance(6)
        self.assertEqual(self.counts(), [20, 41])
        self.ask('FAMILY ALTER t a TTL 10s')
        self.ask('CPUT t old a:x 1')
        self.assertEqual(self.counts(), [21, 42])
        self.advance(11)
        self.assertEqual(self.counts(), [20, 41])
        self.ask('FAMILY DROP t f')
        self.assertEqual(self.counts(), [1, 1])

    def test_by_other_things(self):
        self.ask('TABLE CREATE t FAMILY f FAMILY g')
        self.ask('CPUT t r f:x 1 TS 1 f:x 2 TS 2 f:y 1 g:z 1')
        for options, count in (('BY CELLS', 3), ('BY COLUMNS', 3), ('VERSIONS 2 BY CELLS', 4),
                               ('SKIP 3', 0), ('COLUMNS 1 g VERSIONS ALL BY CELLS', 1),
                               ('TIME 1 1 VERSIONS ALL BY CELLS', 1), ('WHERE f:x EQ 1', 0),
                               ('PERROW 2 VERSIONS ALL BY CELLS', 3), ('EACH 1 1 REVERSE', 1)):
            self.expect('CCOUNT t ' + options, count)

    @unittest.skipIf(ON_MODEL, 'a model has no users')
    def test_of_a_user_who_may_not_see_all(self):
        self.ask('TABLE CREATE t FAMILY f FAMILY g')
        self.ask('CPUT t a f:x 1 g:x 1')
        self.ask('CPUT t b g:x 1')
        self.ask('ACL SETUSER half on nopass %R~t:f +@all')
        half = self.connect()
        self.ask('AUTH half any', half)
        self.assertEqual(self.counts(half), [1, 1])
        self.assertEqual(self.counts(), [2, 3])

    @unittest.skipIf(ON_MODEL, 'what is read is not for a model to say')
    def test_it_takes_no_longer_for_a_large_table(self):
        self.ask('TABLE CREATE t FAMILY f')
        for number in range(0, 20000, 500):
            row = [word for at in range(number, number + 500) for word in (f'f:{at}', '1')]
            self.ask(['CPUT', 't', f'r{number}'] + row)
        def fastest(line):
            times = []
            for _ in range(9):
                began = time.perf_counter()
                self.ask(line)
                times.append(time.perf_counter() - began)
            return min(times)
        known = 'CCOUNT t VERSIONS ALL BY CELLS'
        self.assertLess(fastest(known) * 1.5, fastest('CCOUNT t RANGE - + VERSIONS ALL BY CELLS'))


class HugeDeltaTest(Conversation):
    def test_a_delta_beyond_64_bits_is_for_floats(self):
        self.ask('TABLE CREATE t FAMILY f')
        self.ask('CPUT t r f:z 1.5 AS f64 f:i 1 AS i64 f:t 5 f:u 1.5 f:w word')
        huge = '99999999999999999999'
        for sign in ('', '-'):
            self.expect(f'CMUTATE t r INCR f:z {sign}{huge}', [1, float(sign + '1e20')] if not sign else [1, 0.0])
            self.refused(f'CMUTATE t r INCR f:i {sign}{huge}', 'ERR', "'f:i'")
            self.refused(f'CMUTATE t r INCR f:t {sign}{huge}', 'ERR', "'f:t'")
            self.refused(f'CMUTATE t r INCR f:new {sign}{huge}', 'ERR', "'f:new'")
            self.refused(f'CMUTATE t r INCR f:w {sign}{huge}', 'WRONGTYPE')
        self.ask(f'CMUTATE t r INCR f:u {huge}')
        self.assertEqual(self.ask('CROW t r COLUMNS 1 f:u WITHTYPE')[b'f:u'][0][2], b'f64')
        self.refused(f'CINCRBY t r f:i {huge}', 'ERR')
        self.refused('CMUTATE t r INCR f:z ' + '9' * 400, 'ERR')


if __name__ == '__main__':
    unittest.main()
