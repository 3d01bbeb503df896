"""Several rows in one call (CROWS), the first rows of each group (EACH), and when cells expire (WITHTTL, EXPIREAT)."""

import unittest

from conversation import ON_MODEL, Conversation, plain

from model.resp import Error, as_map  # noqa: E402

MICROS = 10**6


class RowsTest(Conversation):
    OPTIONS = {'reply-max-bytes': '1mb'}

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE blog FAMILY text FAMILY stat TYPE i64 GROUP g VERSIONS 3')
        self.ask('CPUT blog a text:title One stat:reads 5 TS 7')
        self.ask('CPUT blog b text:title Two stat:reads 6 TS 8')

    def test_rows_come_in_the_order_asked_with_an_empty_map_where_there_is_none(self):
        self.expect('CROWS blog 4 b nix a b', [
            {b'stat:reads': 6, b'text:title': b'Two'}, {},
            {b'stat:reads': 5, b'text:title': b'One'}, {b'stat:reads': 6, b'text:title': b'Two'}])

    def test_cell_options_hold_for_every_row(self):
        self.expect('CROWS blog 2 a b COLUMNS 1 stat WITHTS', [{b'stat:reads': [[7, 5]]}, {b'stat:reads': [[8, 6]]}])
        self.expect("CROWS blog 2 a b FILTER 'value = 6'", [{}, {b'stat:reads': 6}])
        self.expect("CROWS blog 2 a b FILTER 'row = \"b\"' PERROW 1 COLREVERSE", [{}, {b'text:title': b'Two'}])

    def test_a_row_is_as_crow_shows_it(self):
        for version in range(4):
            self.ask(f'CPUT blog a stat:reads {version} TS {version + 1} text:{version} x')
        for options in ('', 'VERSIONS ALL', 'VERSIONS ALL WITHTYPE WITHTTL WITHLABELS', 'SKIP 1 PERROW 1', 'GROUPS 2',
                        'COLPREFIX text t', 'TIME 2 3 VERSIONS 2'):
            rows = self.raw(f'CROWS blog 3 a b c {options}')
            self.assertEqual([as_map(row) for row in rows],
                             [as_map(self.raw(f'CROW blog {key} {options}')) for key in 'abc'], options)

    def test_wrong_words(self):
        self.refused('CROWS blog 2 a', 'ERR', 'needs 2 words')
        self.refused('CROWS blog 0 a', 'ERR', 'at least 1')
        self.refused('CROWS blog a b', 'ERR', "'a'", 'count')
        self.refused('CROWS blog 1 a PREFIX b', 'ERR', 'PREFIX', 'CROWS')
        self.refused('CROWS blog 1 a COLUMNS 1 nofam:x', 'NOFAMILY', 'nofam')
        self.refused('CROWS nix 1 a', 'NOTABLE', 'nix')
        self.refused(['CROWS', 'blog', '2', 'a', ''], 'BADKEY')
        self.refused(['CROWS', 'blog', '2', 'a', 'k' * 70000], 'TOOLARGE')
        self.refused("CROWS blog 1 a FILTER 'pass |'", 'BADFILTER')

    @unittest.skipIf(ON_MODEL, 'the model has no limits of replies')
    def test_limits(self):
        self.assertEqual(len(self.ask(['CROWS', 'blog', 100_000] + ['a'] * 100_000 + ['COLUMNS', 1, 'text:no'])), 100_000)
        self.refused(['CROWS', 'blog', 100_001] + ['a'] * 100_001, 'TOOLARGE', '100000')
        self.ask(['CPUT', 'blog', 'wide', 'text:w', 'w' * 600_000])
        self.expect('CROWS blog 2 wide a COLUMNS 1 stat', [{}, {b'stat:reads': 5}])
        self.refused('CROWS blog 2 wide wide', 'TOOLARGE', 'reply-max-bytes')
        self.expect('CROWS blog 1 a COLUMNS 1 stat', [{b'stat:reads': 5}])

    @unittest.skipIf(ON_MODEL, 'the model has no limits of replies')
    def test_no_limit_cuts_a_list_short(self):
        """Wherever the limit falls, the reply has all rows or is refused: the head of a row's map, which is written
        last, may be what passes it."""
        self.addCleanup(self.ask, 'CONFIG SET reply-max-bytes 1mb')
        for key in 'pqr':
            self.ask(['CPUT', 'blog', key] + [word for i in range(12) for word in (f'text:{i:02}', 'x' * 5)])
        whole = self.ask('CROWS blog 3 p q r COLUMNS 1 text')
        refused = set()
        for limit in range(1, 1000):
            self.ask(f'CONFIG SET reply-max-bytes {limit}')
            reply = self.raw('CROWS blog 3 p q r COLUMNS 1 text')
            if isinstance(reply, Error):
                self.assertEqual(reply.code, 'TOOLARGE')
                refused.add(limit)
            else:
                self.assertEqual(plain(reply), whole, limit)
        self.assertEqual(refused, set(range(1, max(refused) + 1)))
        self.assertIn(max(refused), range(800, 999))

    @unittest.skipIf(ON_MODEL, 'the model answers at once')
    def test_a_long_one_shows_one_moment(self):
        """Two rows that always change together never differ, however many are read between them."""
        for number in range(3000):
            self.ask(['CPUT', 'blog', f'r{number:04}', 'stat:reads', 7, 'text:x', 'y'])
        other = self.connect()
        keys = ['r0000'] + [f'r{number:04}' for number in range(1, 2999)] * 3 + ['r2999']
        for round_ in range(20):
            words = [str(word).encode() for word in ['CROWS', 'blog', len(keys)] + keys]
            self.connection.send(*words)
            other.call(b'MULTI')
            for key in (b'r0000', b'r2999'):
                other.call(b'CPUT', b'blog', key, b'stat:reads', b'%d' % (round_ + 10_000), b'text:x', b'y')
            other.call(b'EXEC')
            rows = self.connection.read()
            first, last = plain(rows[0]), plain(rows[-1])
            self.assertEqual(first[b'stat:reads'], last[b'stat:reads'])

    def test_in_a_transaction(self):
        for line in ('MULTI', 'CPUT blog c text:title Three', 'CROWS blog 2 c a COLUMNS 1 text'):
            self.ask(line)
        self.expect('EXEC', [b'OK', [{b'text:title': b'Three'}, {b'text:title': b'One'}]])


class EachTest(Conversation):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE m KEY utf8#utf8#-u64 FAMILY v TYPE i64 FAMILY w')
        for device, sensors, times in (('d1', 'ab', 3), ('d2', 'a', 1), ('d3', 'abc', 4)):
            for sensor in sensors:
                for at in range(1, times + 1):
                    self.ask(f'CPUT m {device}#{sensor}#{at} v:t {at} TS 1')

    def test_the_newest_row_of_each(self):
        self.assertEqual(self.keys('CSCAN m 0 EACH 2 1'),
                         ['d1#a#3', 'd1#b#3', 'd2#a#1', 'd3#a#4', 'd3#b#4', 'd3#c#4'])
        self.assertEqual(self.keys('CSCAN m 0 EACH 1 2'), ['d1#a#3', 'd1#a#2', 'd2#a#1', 'd3#a#4', 'd3#a#3'])
        self.assertEqual(self.keys('CSCAN m 0 EACH 1 1 PREFIX d3#'), ['d3#a#4'])
        self.assertEqual(len(self.keys('CSCAN m 0 EACH 3 1')), 19)

    def test_reverse_keeps_each_groups_last(self):
        self.assertEqual(self.keys('CSCAN m 0 EACH 2 1 REVERSE'),
                         ['d3#c#1', 'd3#b#1', 'd3#a#1', 'd2#a#1', 'd1#b#1', 'd1#a#1'])

    def test_only_rows_that_are_returned_count(self):
        self.assertEqual(self.keys('CSCAN m 0 EACH 1 1 WHERE v:t LT 3'), ['d1#a#2', 'd2#a#1', 'd3#a#2'])
        self.ask('CPUT m d3#b#9 w:x y')
        self.assertEqual(self.keys('CSCAN m 0 EACH 2 1 COLUMNS 1 w'), ['d3#b#9'])
        self.assertEqual(self.keys("CSCAN m 0 EACH 1 1 FILTER 'value = 1'"), ['d1#a#1', 'd2#a#1', 'd3#a#1'])

    def test_over_several_ranges(self):
        self.assertEqual(self.keys('CSCAN m 0 EACH 1 1 RANGE [d1#b + ROWS 1 d1#a#1'), ['d1#a#1', 'd2#a#1', 'd3#a#4'])
        self.assertEqual(self.keys('CSCAN m 0 EACH 1 2 RANGE [d1#b + ROWS 1 d1#a#1 REVERSE'),
                         ['d3#c#1', 'd3#c#2', 'd2#a#1', 'd1#b#1', 'd1#b#2'])
        self.assertEqual(self.keys('CSCAN m 0 EACH 1 1 ROWS 3 d3#c#1 d3#a#1 d2#a#1'), ['d2#a#1', 'd3#a#1'])

    def test_counting(self):
        self.expect('CCOUNT m EACH 1 1', 3)
        self.expect('CCOUNT m EACH 2 2', 11)
        self.expect('CCOUNT m EACH 1 2 BY CELLS', 5)

    def test_groups_of_an_index(self):
        self.ask('INDEX CREATE m by_t ON 1 v:t')
        self.assertEqual(self.keys('CSCAN m 0 INDEX by_t EACH 1 1'), ['d1#a#1', 'd1#a#2', 'd1#a#3', 'd3#a#4'])
        self.assertEqual(self.keys('CSCAN m 0 INDEX by_t EACH 1 1 REVERSE'), ['d3#c#4', 'd3#c#3', 'd3#c#2', 'd3#c#1'])
        self.assertEqual(self.keys('CSCAN m 0 INDEX by_t EACH 1 2 BETWEEN (2 +'), ['d1#a#3', 'd1#b#3', 'd3#a#4', 'd3#b#4'])
        self.expect('CCOUNT m INDEX by_t EACH 1 1', 4)
        self.refused('CSCAN m 0 INDEX by_t EACH 2 1', 'ERR', 'EACH', 'by_t', '1 ON column')
        self.ask('INDEX CREATE m group ON 0 INCLUDE 1 v')
        self.refused('CSCAN m 0 INDEX group EACH 1 1', 'ERR', 'EACH')
        self.assertEqual(self.keys('CSCAN m 0 EACH 1 1'), ['d1#a#3', 'd2#a#1', 'd3#a#4'])

    def test_wrong_words(self):
        self.refused('CSCAN m 0 EACH 4 1', 'ERR', 'EACH', '3 components')
        self.refused('CSCAN m 0 EACH 0 1', 'ERR', 'EACH')
        self.refused('CSCAN m 0 EACH 1 0', 'ERR', 'EACH')
        self.refused('CSCAN m 0 EACH 1 x', 'ERR', 'EACH')
        self.refused('CSCAN m 0 EACH 1', 'ERR', 'EACH', 'components count')
        self.refused('CSCAN m 0 EACH 1 1 EACH 1 1', 'ERR', 'twice')
        self.refused('CROW m d1#a#1 EACH 1 1', 'ERR', 'EACH')

    @unittest.skipIf(ON_MODEL, 'the model has no cursors')
    def test_a_cursor_remembers_its_place_in_a_group_over_a_restart(self):
        for options in ('EACH 1 3', 'EACH 1 3 REVERSE', 'EACH 2 2', 'EACH 1 4 SNAPSHOT', 'INDEX by_t EACH 1 2',
                        'INDEX by_t EACH 1 3 REVERSE'):
            if 'INDEX' in options and b'by_t' not in self.ask('INDEX LIST m'):
                self.ask('INDEX CREATE m by_t ON 1 v:t')
            whole = self.scan(f'CSCAN m 0 {options} COUNT 1000')
            for page in ('COUNT 1', 'COUNT 2', 'CELLS 1', 'CELLS 3'):
                cursor, found, calls = '0', [], 0
                while True:
                    cursor, rows = self.raw(f'CSCAN m {cursor} {options} {page}')
                    found += [(row[0].decode(), [(name.decode(), plain(value)) for name, value in as_map(row[1])]) for row in rows]
                    calls += 1
                    if cursor == b'0':
                        break
                    cursor = cursor.decode()
                    if calls == 3 and page == 'COUNT 2' and 'SNAPSHOT' not in options:
                        self.server.restart()
                        self.connection.close()
                        self.connection = self.connect()
                        self.set_time(self.now)
                self.assertEqual(found, whole, (options, page))

    @unittest.skipIf(ON_MODEL, 'the model has no cursors')
    def test_a_row_that_goes_between_two_pages_of_it_makes_no_room_in_its_group(self):
        self.ask('CPUT m d1#a#3 v:a 1 v:b 1 v:c 1')
        cursor, rows = self.ask('CSCAN m 0 EACH 1 1 CELLS 2')
        self.assertEqual(rows[0][0], b'd1#a#3')
        self.ask('CDEL m d1#a#3')
        self.assertEqual(self.ask(f'CSCAN m {cursor.decode()} EACH 1 1')[1][0][0], b'd2#a#1')


class ExpiryTest(Conversation):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE s FAMILY f VERSIONS 1 FAMILY all')

    def test_the_moment_of_expiry_shows(self):
        self.ask(f'CPUT s r f:q v TS 5 TTL 10s all:x y TS 6 all:z z TS 7 EXPIREAT {self.now + 3}')
        self.expect('CROW s r WITHTTL', {b'all:x': [[6, b'y', None]], b'all:z': [[7, b'z', self.now + 3]],
                                         b'f:q': [[5, b'v', self.now + 10 * MICROS]]})
        self.expect('CROW s r COLUMNS 1 f WITHLABELS WITHTTL WITHTYPE',
                    {b'f:q': [[5, b'v', b'bytes', self.now + 10 * MICROS, []]]})
        self.expect("CROW s r COLUMNS 1 f WITHTTL FILTER 'label(\"x\") | strip'",
                    {b'f:q': [[5, b'', self.now + 10 * MICROS]]})

    def test_an_index_does_not_hide_it(self):
        self.ask('INDEX CREATE s by_q ON 1 f:q INCLUDE 1 all')
        self.ask('INDEX CREATE s group ON 0 INCLUDE 1 f')
        self.ask('CPUT s r f:q v TS 5 TTL 10s all:x y TS 6')
        rows = [(b'r'.decode(), [('f:q', [[5, b'v', self.now + 10 * MICROS]])])]
        self.assertEqual(self.scan('CSCAN s 0 INDEX by_q COLUMNS 1 f:q WITHTTL'), rows)
        self.assertEqual(self.scan('CSCAN s 0 COLUMNS 1 f WITHTTL'), rows)

    def test_what_is_shown_can_be_put_back(self):
        self.ask('CPUT s r f:q v TS 5 TTL 10s')
        expiry = self.ask('CROW s r WITHTTL')[b'f:q'][0][2]
        self.ask(f'CPUT s copy f:q v TS 5 EXPIREAT {expiry}')
        self.assertEqual(self.ask('CROW s copy WITHTTL'), self.ask('CROW s r WITHTTL'))
        self.advance(10 - 1e-6)
        self.expect('CEXISTS s copy', 1)
        self.advance(1e-6)
        self.expect('CEXISTS s copy', 0)

    def test_a_moment_in_the_past(self):
        self.ask('CPUT s r f:q old TS 5')
        self.ask('CPUT s r f:q new TS 9 EXPIREAT 1')
        # It took the place of the one version that is kept.
        self.expect('CGET s r f:q', None)
        self.ask('CPUT s r all:q old TS 5 all:q older TS 4')
        self.ask('CPUT s r all:q new TS 9 EXPIREAT 0')
        self.expect('CGET s r all:q', b'old')
        self.ask('CPUT s r all:q gone TS 5 EXPIREAT 3')
        self.expect('CGET s r all:q', b'older')
        self.expect('CCOUNT s', 1)

    def test_in_cmutate(self):
        self.expect(f'CMUTATE s r PUT all:a 1 EXPIREAT {self.now + 1} PUT all:b 2 EXPIREAT 5 TS 3', [1, b'OK', b'OK'])
        self.assertEqual(self.row('CROW s r COLUMNS 1 all'), [('all:a', b'1')])

    def test_wrong_words(self):
        self.refused('CPUT s r f:q v EXPIREAT 5 TTL 3', 'ERR', 'EXPIREAT', 'TTL')
        self.refused('CPUT s r f:q v TTL 3 EXPIREAT 5', 'ERR', 'EXPIREAT', 'TTL')
        self.refused('CPUT s r f:q v EXPIREAT 5 EXPIREAT 5', 'ERR', 'twice')
        self.refused('CPUT s r f:q v EXPIREAT -1', 'ERR', '-1')
        self.refused('CPUT s r f:q v EXPIREAT soon', 'ERR', 'soon')
        self.refused('CROW s r WITHTTL WITHTTL', 'ERR', 'twice')


if __name__ == '__main__':
    unittest.main()
