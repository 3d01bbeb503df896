"""CUPDATE: the same ops done to each row of a selection, in slices, each row a step."""

import threading
import time
import unittest

from conversation import ON_MODEL, Conversation

from model.resp import Client, Error  # noqa: E402


class UpdateTest(Conversation):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE m KEY utf8#-u64 FAMILY v FAMILY n TYPE i64')
        for device in ('d1', 'd2'):
            for at in range(1, 6):
                self.ask(f'CPUT m {device}#{at} v:t {at * 40} AS i64 n:x {at}')

    def test_rows_that_match_are_changed_and_counted(self):
        self.expect('CUPDATE m PREFIX d1# WHERE v:t GT 100 DEL v:t', 3)
        self.expect('CUPDATE m PREFIX d1# WHERE v:t GT 100 DEL v:t', 0)
        self.expect('CCOUNT m COLUMNS 1 v', 7)
        self.expect('CUPDATE m RANGE [d2 + WHERE n:x LE 2 PUT v:flag yes INCR n:x 10', 2)
        self.expect('CMGET m d2#2 v:flag n:x', [b'yes', 12])
        self.expect('CUPDATE m ROWS 3 d1#1 d9#9 d1#1 APPEND v:log x', 1)
        self.expect('CEXISTS m d9#9', 0)
        self.expect('CUPDATE m ALL WHERE v:flag MISSING DELROW', 8)
        self.expect('CCOUNT m', 2)

    def test_limit_counts_rows_that_changed(self):
        self.expect('CUPDATE m ALL WHERE v:t EXISTS LIMIT 4 DEL v:t', 4)
        self.expect('CUPDATE m ALL LIMIT 4 DEL v:t', 4)
        self.expect('CUPDATE m ALL LIMIT 4 DEL v:t', 2)
        # The order is that of the keys, newest first in each device.
        self.expect('CUPDATE m ALL LIMIT 2 PUT v:first 1', 2)
        self.assertEqual(self.keys('CSCAN m 0 COLUMNS 1 v:first'), ['d1#5', 'd1#4'])

    def test_the_rows_of_an_index_in_its_order(self):
        self.ask('INDEX CREATE m by_x ON 1 n:x')
        self.expect('CUPDATE m INDEX by_x BETWEEN [4 + LIMIT 3 INCR n:x 1', 3)
        self.assertEqual(self.keys('CSCAN m 0 INDEX by_x BETWEEN [5 +'), ['d1#4', 'd2#5', 'd2#4', 'd1#5'])
        # A row that its own change moves on in the index is taken once.
        self.expect('CUPDATE m INDEX by_x FROM 1 1 INCR n:x 100', 10)
        self.expect('CUPDATE m INDEX by_x EQ 1 101 PUT n:x 1', 2)

    def test_an_index_that_names_a_row_twice(self):
        self.ask('INDEX CREATE m columns ON 1 v')
        self.ask('CPUT m d1#1 v:a 1 v:b 2')
        self.expect('CUPDATE m INDEX columns INCR n:x 1', 10)
        self.expect('CGET m d1#1 n:x', 2)

    def test_a_row_that_refuses_ends_it(self):
        self.ask('CPUT m d1#3 n:x 9223372036854775807')
        self.refused('CUPDATE m ALL INCR n:x 1', 'ERR', "row 'd1#3'", 'overflow', 'after 2 rows')
        self.expect('CGET m d1#5 n:x', 6)
        self.expect('CGET m d1#2 n:x', 2)
        self.ask('CPUT m d1#3 v:t text')
        self.refused('CUPDATE m PREFIX d1# INCR v:t 1', 'WRONGTYPE', "row 'd1#3'", 'after 2 rows')

    def test_unique(self):
        self.ask('INDEX CREATE m one ON 1 v:id UNIQUE')
        self.refused('CUPDATE m ALL PUT v:id 1', 'NOTUNIQUE', "row 'd1#4'", "'one'", 'after 1 rows')

    def test_in_transactions(self):
        for line in ('MULTI', 'CUPDATE m PREFIX d1# INCR n:x 1', 'CUPDATE m ALL INCR v:none x', 'CUPDATE m ALL INCR v:t x'):
            self.raw(line)
        self.raw('DISCARD')
        self.ask('CPUT m d2#3 n:x 9223372036854775807')
        for line in ('MULTI', 'CUPDATE m ALL INCR n:x 1', 'CCOUNT m'):
            self.ask(line)
        replies = self.ask('EXEC')
        self.assertIsInstance(replies[0], Error)
        self.expect('CGET m d1#1 n:x', 2)
        for line in ('MULTI ATOMIC', 'CUPDATE m ALL INCR n:x 1'):
            self.ask(line)
        self.assertEqual(self.raw('EXEC').code, 'EXECABORT')
        self.expect('CGET m d1#1 n:x', 2)

    def test_watch(self):
        other = self.connect()
        for touches, line in ((True, 'CUPDATE m PREFIX d1#1 PUT v:t 1'), (False, 'CUPDATE m PREFIX d1#2 PUT v:t 1'),
                              (False, 'CUPDATE m ALL WHERE v:t EQ nothing PUT v:t 1')):
            self.ask('CWATCH m d1#1')
            self.ask(line, other)
            self.ask('MULTI')
            self.ask('PING')
            self.assertEqual(self.ask('EXEC') is None, touches, line)

    def test_wrong_words(self):
        for line, *names in (('CUPDATE m DEL v:t', 'PREFIX', 'ALL'), ('CUPDATE m ALL ALL DEL v:t', 'two'),
                             ('CUPDATE m ALL PREFIX d DEL v:t', 'two'), ('CUPDATE m WHERE v:t EXISTS ALL DEL v:t', 'first'),
                             ('CUPDATE m ALL LIMIT 0 DEL v:t', 'LIMIT'), ('CUPDATE m ALL REVERSE DEL v:t', 'REVERSE'),
                             ('CUPDATE m ALL WHERE v:t EXISTS', 'PUT'), ('CUPDATE m ALL DEL v:t WHERE v:t EXISTS', 'WHERE'),
                             ('CUPDATE m ALL DEL v:t IF v:t EXISTS DELROW', 'IF'), ('CUPDATE m ALL COUNT 5 DEL v:t', 'COUNT')):
            self.refused(line, 'ERR', *names)
        self.refused('CUPDATE m ALL DEL nofam:t', 'NOFAMILY', 'nofam')
        self.refused('CUPDATE m ALL PUT n:x text', 'BADVALUE', 'text')
        self.refused('CUPDATE m ALL WHERE nofam:t EXISTS DEL v:t', 'NOFAMILY', 'nofam')
        self.refused('CUPDATE m INDEX nix DEL v:t', 'NOINDEX', 'nix')
        self.refused('CUPDATE nix ALL DEL v:t', 'NOTABLE', 'nix')
        self.refused('CUPDATE m PREFIX d1#x DEL v:t', 'BADKEY')


@unittest.skipIf(ON_MODEL, 'the model has no users')
class RightsTest(Conversation):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE m FAMILY open FAMILY shown FAMILY hidden')
        for row in range(300):
            self.ask(f'CPUT m r{row:03} open:a 1 shown:b 2 hidden:c 3')
        self.ask('CPUT m secret hidden:c 3')
        self.ask('ACL SETUSER u on >pw +@all resetkeys ~m:open %R~m:shown')
        self.user = self.connect()
        self.ask('AUTH u pw', self.user)

    def test_families_are_asked_for_as_in_cmutate(self):
        self.assertEqual(self.ask('CUPDATE m ALL WHERE shown:b EQ 2 PUT open:a 9', self.user), 300)
        for line in ('CUPDATE m ALL PUT shown:b 1', 'CUPDATE m ALL PUT hidden:c 1', 'CUPDATE m ALL DELROW',
                     'CUPDATE m ALL WHERE hidden:c EXISTS PUT open:a 1', 'CUPDATE m ALL DEL hidden'):
            self.refused(line, 'NOPERM', connection=self.user)
        # A row that shows nothing is none.
        self.assertEqual(self.ask('CUPDATE m ALL PUT open:z 1', self.user), 300)
        self.expect('CCOUNT m COLUMNS 1 open', 300)


@unittest.skipIf(ON_MODEL, 'the model does one thing after the other')
class SlicedUpdateTest(Conversation):
    ROWS = 20_000

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE big KEY u64 FAMILY f')
        client = self.connect()
        for first in range(0, self.ROWS, 1000):
            client.pipeline([[b'CPUT', b'big', b'%d' % row, b'f:n', b'1', b'AS', b'i64'] for row in range(first, first + 1000)])

    def test_every_row_once_beside_other_writers(self):
        """Sums tell of each lost or doubled step; rows that come later are left alone."""
        stop = threading.Event()
        added = [0]

        def write():
            client = Client(self.server.port, 3)
            row = 0
            while not stop.is_set():
                client.pipeline([[b'CINCRBY', b'big', b'%d' % ((row + i * 97) % self.ROWS), b'f:n', b'1000000'] for i in range(20)] +
                                [[b'CPUT', b'big', b'%d' % (10**6 + row), b'f:n', b'0', b'AS', b'i64']])
                added[0] += 20
                row += 1
            client.close()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            done = [self.ask('CUPDATE big RANGE - (1000000 INCR f:n 1') for _ in range(3)]
        finally:
            stop.set()
            writer.join()
        self.assertEqual(done, [self.ROWS] * 3)
        total = sum(row[1][0][1] for row in self.scan('CSCAN big 0 RANGE - (1000000 COUNT 5000'))
        self.assertEqual(total, self.ROWS * 4 + added[0] * 1_000_000)

    def test_killed_in_the_middle_each_row_is_whole(self):
        client = self.connect()
        client.send(b'CUPDATE', b'big', b'ALL', b'INCR', b'f:n', b'1', b'PUT', b'f:mark', b'x')
        time.sleep(0.01)
        self.server.crash()
        self.connection = self.connect()
        rows = self.scan('CSCAN big 0 COUNT 5000')
        self.assertEqual(len(rows), self.ROWS)
        done = [dict(columns).get('f:mark') == b'x' for _, columns in rows]
        for (_, columns), marked in zip(rows, done):
            self.assertEqual(dict(columns)['f:n'], 2 if marked else 1)
        self.assertEqual(done, sorted(done, reverse=True))  # in the order of the keys


if __name__ == '__main__':
    unittest.main()
