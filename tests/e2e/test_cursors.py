"""Cursors: a row that is there throughout comes exactly once, whatever else happens in between."""

import random
import re
import unittest

from conversation import ON_MODEL, Conversation, plain

from model.resp import as_map  # noqa: E402

ROWS = 120


@unittest.skipIf(ON_MODEL, 'the model has no cursors')
class CursorTest(Conversation):
    OPTIONS = {'appendfsync': 'always'}

    def setUp(self):
        super().setUp()
        self.seed = random.randrange(10**9)
        self.rng = random.Random(self.seed)
        self.ask('TABLE CREATE t KEY utf8#u32 FAMILY f TYPE i64 FAMILY w ORDER u32')
        self.ask('INDEX CREATE t by_n ON 1 f:n')
        self.stable = []
        for number in range(ROWS):
            key = f'{self.rng.choice("abc")}#{number}'
            self.stable.append((key, number))
            self.ask(f'CPUT t {key} f:n {number % 7} f:m {number}')
        self.sort = lambda pair: (pair[0].split('#')[0], pair[1])

    def disturb(self):
        """Rows come and go, and stable rows change in a column that no scan here orders by."""
        for _ in range(6):
            key = f'{self.rng.choice("abc")}#{self.rng.randrange(1000, 1100)}'
            choice = self.rng.random()
            if choice < 0.5:
                self.ask(f'CPUT t {key} f:n {self.rng.randrange(7)}')
            elif choice < 0.8:
                self.ask(f'CDEL t {key}')
            else:
                self.ask(f'CINCRBY t {self.rng.choice(self.stable)[0]} f:m 1')

    def follow(self, options, between=None):
        """Row keys in the order in which they came, below 1000."""
        cursor, found = '0', []
        while True:
            cursor, rows = self.ask(f'CSCAN t {cursor} {options}')
            found += [row if isinstance(row, bytes) else row[0] for row in rows]
            if cursor == b'0':
                return [key.decode() for key in found if int(key.split(b'#')[1]) < 1000]
            cursor = cursor.decode()
            (between or self.disturb)()

    def check(self, options, expected, between=None):
        self.assertEqual(self.follow(options, between), expected, f'seed {self.seed}, {options}')

    def keys_where(self, test=lambda pair: True):
        return [pair[0] for pair in sorted(self.stable, key=self.sort) if test(pair)]

    def test_a_plain_scan(self):
        for count in (1, 7, 100):
            self.check(f'COUNT {count} KEYSONLY', self.keys_where())

    def test_backwards(self):
        self.check('COUNT 5 REVERSE KEYSONLY', self.keys_where()[::-1])

    def test_unions(self):
        def wanted(pair):
            return pair[0][0] in 'ac'
        self.check('COUNT 4 KEYSONLY PREFIX c# PREFIX a# RANGE [a [a', self.keys_where(wanted))
        self.check('COUNT 4 KEYSONLY REVERSE PREFIX c# PREFIX a#', self.keys_where(wanted)[::-1])

    def test_conditions(self):
        self.check('COUNT 3 KEYSONLY WHERE f:n EQ 3', self.keys_where(lambda pair: pair[1] % 7 == 3))
        self.check('COUNT 3 KEYSONLY WHERE f:n EQ 99', [])

    def test_an_index(self):
        by_index = [key for key, _ in sorted(self.stable, key=lambda pair: (pair[1] % 7, self.sort(pair)))]
        self.check('INDEX by_n COUNT 5 KEYSONLY', by_index)
        self.check('INDEX by_n COUNT 5 KEYSONLY REVERSE', by_index[::-1])
        self.check('INDEX by_n EQ 1 3 COUNT 2 KEYSONLY',
                   self.keys_where(lambda pair: pair[1] % 7 == 3))

    def test_cursors_survive_a_restart(self):
        def restart():
            self.disturb()
            if self.rng.random() < 0.2:
                self.rng.choice((self.server.crash, self.server.restart))()
                self.connection = self.connect()
                self.set_time(self.now)
        self.check('COUNT 15 KEYSONLY', self.keys_where(), restart)
        self.check('COUNT 15 REVERSE KEYSONLY', self.keys_where()[::-1], restart)

    def test_cursors_survive_a_snapshot_of_the_state(self):
        self.check('COUNT 15 KEYSONLY', self.keys_where(), lambda: self.ask('SAVE'))

    def test_a_snapshot_scan_sees_the_table_as_at_its_first_call(self):
        before = self.keys('CSCAN t 0')

        def change():
            self.disturb()
            self.ask(f'CDEL t {self.rng.choice(self.stable)[0]}')
        for options in ('SNAPSHOT COUNT 7 KEYSONLY', 'SNAPSHOT COUNT 9 REVERSE KEYSONLY'):
            found = self.follow(options, change)
            wanted = [key for key in before if int(key.split('#')[1]) < 1000]
            self.assertEqual(found, wanted[::-1] if 'REVERSE' in options else wanted,
                             f'seed {self.seed}')
            before = self.keys('CSCAN t 0')

    def test_a_wide_row_goes_on_in_the_next_call(self):
        self.ask('CPUT t wide#1 ' + ' '.join(f'w:{number} v' for number in range(250)))
        cursor, found = '0', []
        while True:
            cursor, rows = self.ask(f'CSCAN t {cursor} CELLS 17 COLUMNS 1 w')
            self.assertLessEqual(sum(len(row[1]) for row in rows), 17)
            found += [name for row in rows for name in row[1]]
            if cursor == b'0':
                break
            cursor = cursor.decode()
            self.disturb()
        self.assertEqual(found, [b'w:%d' % number for number in range(250)])

    def test_the_row_at_the_cursor_may_go(self):
        """The last row of a call is deleted before the next call: nothing is skipped or repeated."""
        keys, cursor, found = self.keys_where(), '0', []
        while True:
            cursor, rows = self.ask(f'CSCAN t {cursor} COUNT 2 KEYSONLY')
            found += [key.decode() for key in rows]
            if cursor == b'0':
                break
            cursor = cursor.decode()
            if rows:
                self.ask(['CDEL', 't', rows[-1]])
        self.assertEqual(found, keys)

    def test_a_bad_cursor_is_refused(self):
        for cursor in ('abc', '-1', '0x', '99999999999999999999999', ''):
            self.refused(['CSCAN', 't', cursor], 'ERR')


@unittest.skipIf(ON_MODEL, 'the model has no cursors')
class PageTest(Conversation):
    """scan-reply-max-bytes: where a page ends, and that what follows begins there."""

    PAGE = 2000
    HEAD = 200      # what stands before the rows: the cursor

    def setUp(self):
        super().setUp()
        self.rng = random.Random(7)
        self.set_page(1 << 24)
        self.ask('TABLE CREATE t FAMILY f FAMILY n TYPE i64')
        self.ask('INDEX CREATE t by_n ON 1 n:n')
        for number in range(150):
            cells = [word for column in range(self.rng.randrange(1, 9))
                     for word in (f'f:{column}', 'x' * self.rng.choice((1, 30, 200)))]
            self.ask(['CPUT', 't', f'{number:03d}', 'n:n', number % 5, *cells])
        for number in (20, 21, 77, 149):  # rows that are longer than a page
            self.ask(['CPUT', 't', f'{number:03d}', 'n:n', 9, 'f:z', 'x' * 3 * self.PAGE, 'f:zz', 'y'])

    def set_page(self, size):
        self.ask(['CONFIG', 'SET', 'scan-reply-max-bytes', size])

    def pages(self, options):
        """The rows of each call, as (key, [(column, entry)]) or keys."""
        cursor, pages = '0', []
        while True:
            cursor, rows = self.raw(f'CSCAN t {cursor} COUNT 100000000 {options}')[:2]
            pages.append([row if isinstance(row, bytes) else (row[0], as_map(row[1])) for row in rows])
            if cursor == b'0':
                return pages
            cursor = cursor.decode()

    def size(self, row):
        return len(row) + 6 if isinstance(row, bytes) else \
            len(row[0]) + sum(len(column) + len(str(plain(entry))) for column, entry in row[1])

    def test_a_page_is_no_longer_than_it_may_be_and_nothing_is_lost(self):
        for options in ('', 'REVERSE', 'KEYSONLY', 'INDEX by_n', 'INDEX by_n REVERSE', 'INDEX by_n EQ 1 9', 'SNAPSHOT',
                        'SNAPSHOT REVERSE', 'WITHTS', 'WHERE n:n GT 1', 'PREFIX 0 PREFIX 14', 'COLUMNS 1 f',
                        'FILTER \'value != "x"\'', 'PERROW 3', 'STATS'):
            self.set_page(1 << 24)
            whole, = self.pages(options)
            self.set_page(self.PAGE)
            cut = self.pages(options)
            self.assertEqual(whole, [row for page in cut for row in page], options)
            sizes = [sum(map(self.size, page)) for page in cut]
            for page, size in zip(cut, sizes):
                self.assertTrue(size <= self.PAGE + self.HEAD or len(page) == 1, options)
            if max(map(self.size, whole)) < self.PAGE:  # what could have gone with the page before has
                self.assertLessEqual(len(cut), 2 + 2 * sum(sizes) // self.PAGE, options)

    def test_a_row_that_is_longer_than_a_page_comes_alone(self):
        self.set_page(self.PAGE)
        long = {b'020', b'021', b'077', b'149'}
        found = [page[0][0] for page in self.pages('') if page[0][0] in long and len(page) == 1]
        self.assertEqual(sorted(long), found)

    def test_cells_splits_a_row_at_the_end_of_the_page(self):
        whole, = self.pages('CELLS 1000000')
        self.set_page(self.PAGE)
        joined = []
        for page in self.pages('CELLS 1000000'):
            for at, (key, cells) in enumerate(page):
                if at == 0 and joined and joined[-1][0] == key:
                    joined[-1][1].extend(cells)
                else:
                    joined.append((key, list(cells)))
        self.assertEqual([(key, list(cells)) for key, cells in whole], joined)
        pages = self.pages('CELLS 1000000 ROWS 1 020')
        self.assertEqual([b'f:zz', b'n:n'], [column for column, _ in pages[-1][0][1]])

    def test_cells_that_go_between_pages(self):
        """A page inside a row goes on with what lies behind its last cell, whatever has gone or come since."""
        self.seed = random.randrange(10**9)
        self.rng = random.Random(self.seed)
        self.ask('TABLE CREATE u FAMILY f FAMILY g VERSIONS 2 FAMILY v FAMILY w GROUP other')
        for round in range(200):
            self.ask('TABLE TRUNCATE u')
            for _ in range(self.rng.randrange(1, 40)):
                self.change_cells(5)
            reverse, backwards = self.rng.random() < 0.5, self.rng.random() < 0.3
            options = ' COLREVERSE' * reverse + ' REVERSE' * backwards
            options += self.rng.choice(['', ' VERSIONS 2', ' RANGE [b [d', ' COLUMNS 2 f v', ' COLUMNS 3 g:b v w', ' COLUMNS 2 f:b g:a'])
            cursor, last, pages, ended, before = '0', None, [], False, set('abcde')
            while True:
                whole = self.cells_of(f'CSCAN u 0 CELLS 1000000{options}')
                count = self.rng.randrange(1, 5)
                cursor, rows = self.ask(f'CSCAN u {cursor} CELLS {count} WITHTS{options}')
                page = self.cells_in(rows)
                # In the order of the scan: rows, families by name, columns, versions.
                place = lambda cell: self.place_of(cell, reverse, backwards)
                behind = [cell for cell in whole if last is None or place(cell) > place(last)]
                if ended:  # nothing was left of its row: what has come there since is behind the cursor
                    behind = [cell for cell in behind if cell[0] != last[0]]
                # Rows that have come since may be passed by: which one is next was known before.
                behind = [cell for cell in behind if cell[0] in before or cell[0] in {each[0] for each in page}]
                before = {cell[0] for cell in whole}
                pages.append(page)
                self.assertEqual(page, behind[:len(page)], f'seed {self.seed}, round {round}, {options}, {pages}')
                if cursor == b'0':
                    self.assertEqual(page, behind, f'seed {self.seed}, round {round}, {options}, {pages}')
                    break
                last = page[-1] if page else last
                if page:
                    ended = not any(cell[0] == last[0] and place(cell) > place(last) for cell in whole)
                cursor = cursor.decode()
                for _ in range(self.rng.randrange(4)):
                    self.change_cells(2)
                if last and self.rng.random() < 0.4:  # all that is behind it in its row
                    for family in 'fgvw':
                        if family != last[1][0]:
                            self.ask(f'CDEL u {last[0]} {family}')

    def change_cells(self, puts):
        row = self.rng.choice('abcde')
        column = f'{self.rng.choice("fgvw")}:{self.rng.choice("abc")}'
        choice = self.rng.randrange(puts + 3)
        if choice == 0:
            self.ask(f'CDEL u {row} {column.split(":")[0]}')
        elif choice == 1:
            self.ask(f'CDEL u {row}')
        elif choice == 2:
            self.ask(f'CDEL u {row} {column}')
        else:
            self.ask(f'CPUT u {row} {column} {self.rng.randrange(100)} TS {self.rng.randrange(1, 9)}')

    @staticmethod
    def place_of(cell, reverse, backwards):
        row, column, stamp = cell
        turned = tuple(255 - byte for byte in column.replace(':', '\0').encode()) if reverse else tuple(column.replace(':', '\0').encode())
        return (-ord(row) if backwards else ord(row)), turned, -stamp

    @staticmethod
    def cells_in(rows):
        found = []
        for row, cells in rows:
            for column, versions in (cells if isinstance(cells, dict) else dict(zip(cells[::2], cells[1::2]))).items():
                alone = isinstance(versions[0], int)
                found += [(row.decode(), column.decode(), stamp) for stamp, _ in ([versions] if alone else versions)]
        return found

    def cells_of(self, command):
        _, rows = self.ask(command + ' WITHTS')
        return self.cells_in(rows)

    def test_the_pages_of_an_exec_share_one(self):
        self.set_page(self.PAGE)
        self.ask('MULTI')
        for _ in range(5):
            self.ask('CSCAN t 0 COUNT 100000000')
        replies = self.ask('EXEC')
        self.assertGreater(len(replies[0][1]), 1)
        for cursor, rows in replies[1:]:
            self.assertEqual([b'000'], [row[0] for row in rows])
            self.assertNotEqual(b'0', cursor)


@unittest.skipIf(ON_MODEL, 'the model has no cursors')
class CutCursorTest(CursorTest):
    """All of the above with pages that end by their bytes instead of COUNT."""

    OPTIONS = {**CursorTest.OPTIONS, 'scan-reply-max-bytes': '100'}

    def follow(self, options, between=None):
        return super().follow(re.sub(r'COUNT \d+', 'COUNT 100000', options), between)


if __name__ == '__main__':
    unittest.main()
