"""Indexes over the wire: the call centre, the population of countries, column groups, expiry."""

import unittest

from conversation import ON_MODEL, Conversation


class CallCentreTest(Conversation):
    """Customers by phone; calls by customer and date, newest first."""

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE customers FAMILY c')
        self.ask('INDEX CREATE customers by-phone ON 1 c:phone INCLUDE 2 c:id c:name UNIQUE')
        for row, number, name, phone in (('c1', 1, 'Ann', '555-10'), ('c2', 2, 'Bob', '555-20')):
            self.ask(['CPUT', 'customers', row, 'c:id', number, 'AS', 'i64', 'c:name', name,
                      'c:phone', phone, 'c:address', 'far away'])
        self.ask('TABLE CREATE calls FAMILY c')
        self.ask('INDEX CREATE calls by-customer ON 2 c:customer AS i64 -c:date INCLUDE 1 c:note')
        for number in range(1, 10):
            self.ask(['CPUT', 'calls', 'call%d' % number, 'c:customer', number % 2 + 1, 'AS', 'i64',
                      'c:date', '2024-03-%02d' % number, 'c:note', 'note %d' % number,
                      'c:length', number])

    def test_a_customer_by_phone(self):
        self.expect('CSCAN customers 0 INDEX by-phone EQ 1 555-20 COLUMNS 2 c:id c:name',
                    [b'0', [[b'c2', {b'c:id': 2, b'c:name': b'Bob'}]]])

    def test_the_last_three_calls_without_reading_the_table(self):
        line = 'CSCAN calls 0 INDEX by-customer EQ 1 1 COUNT 3 COLUMNS 2 c:date c:note'
        rows = [[b'call%d' % n, {b'c:date': b'2024-03-%02d' % n, b'c:note': b'note %d' % n}]
                for n in (8, 6, 4)]
        self.assertEqual(self.ask(line)[1], rows)
        if not ON_MODEL:
            reply = self.ask(line + ' STATS')
            self.assertEqual(reply[1], rows)
            self.assertEqual(reply[2][b'groups'], 0)
            reply = self.ask('CSCAN calls 0 INDEX by-customer EQ 1 1 STATS')
            self.assertEqual(reply[2][b'groups'], 1)

    def test_a_phone_belongs_to_one_customer(self):
        self.refused('CPUT customers c3 c:phone 555-10', 'NOTUNIQUE', 'by-phone')
        self.expect('CROW customers c3', {})
        self.ask('CPUT customers c3 c:phone 555-30')
        self.ask('CDEL customers c1')
        self.ask('CPUT customers c4 c:phone 555-10')
        self.assertEqual(self.keys('CSCAN customers 0 INDEX by-phone'), ['c4', 'c2', 'c3'])

    def groups(self, line):
        """Locality groups of the table that a scan opened, and the index that it walked."""
        stats = self.ask(line + ' STATS')[2]
        return stats[b'groups'], stats.get(b'index')

    @unittest.skipIf(ON_MODEL, 'what is read is not for a model to say')
    def test_what_is_covered_does_not_read_the_table(self):
        for line, groups, index in (
                ('customers 0 INDEX by-phone EQ 1 555-20 COLUMNS 2 c:id c:name', 0, b'by-phone'),
                ('customers 0 INDEX by-phone EQ 1 555-20 COLUMNS 2 c:phone c:name WITHTS', 0, b'by-phone'),
                ('customers 0 INDEX by-phone EQ 1 555-20 COLUMNS 1 c:address', 1, b'by-phone'),
                ('customers 0 INDEX by-phone EQ 1 555-20 COLUMNS 1 c:id VERSIONS 2', 1, b'by-phone'),
                ('customers 0 COLUMNS 2 c:id c:name', 1, None),
                ('calls 0 INDEX by-customer EQ 1 1 COUNT 3 COLUMNS 2 c:date c:customer', 0, b'by-customer')):
            with self.subTest(line):
                self.assertEqual(self.groups('CSCAN ' + line), (groups, index))

    def test_near(self):
        self.expect('CNEAR calls INDEX by-customer 1 2', [[2, b'2024-03-09'], b'call9', 0])
        self.expect('CNEAR calls INDEX by-customer 2 1 2024-03-05', [[1, b'2024-03-04'], b'call4', 1])
        self.expect('CNEAR calls INDEX by-customer 1 3', [[2, b'2024-03-01'], b'call1', -1])


@unittest.skipIf(ON_MODEL, 'a model sorts thousands of columns for each answer')
class WideRowTest(Conversation):
    """An index of a whole family: the columns of wide rows come and go a few at a time."""

    WIDTH = 2000

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE t FAMILY f FAMILY g')
        self.ask('INDEX CREATE t up ON 1 f')
        self.ask('INDEX CREATE t down ON 1 -f')
        self.columns = {}  # row -> its qualifiers in f
        for row, step in (('a', 1), ('b', 3)):
            self.columns[row] = {'c%04d' % n for n in range(0, self.WIDTH, step)}
            words = [word for name in sorted(self.columns[row]) for word in ('f:' + name, 'v')]
            self.ask(['CPUT', 't', row, *words])

    def check(self):
        entries = sorted((name, row) for row, names in self.columns.items() for name in names)
        self.assertEqual(self.keys('CSCAN t 0 INDEX up COUNT 5000'), [row for _, row in entries])
        by_name = sorted(entries, key=lambda entry: ([-ord(c) for c in entry[0]] + [1], entry[1]))
        self.assertEqual(self.keys('CSCAN t 0 INDEX down COUNT 5000'), [row for _, row in by_name])
        for index in ('up', 'down'):
            self.assertEqual(self.ask('INDEX INFO t ' + index)[b'entries'], len(entries))

    def delete(self, row, names):
        self.columns[row] -= set(names)

    def test_single_columns(self):
        self.ask('CPUT t a f:new v f:c0003 w g:c0009 v f:c0003z v')
        self.columns['a'] |= {'new', 'c0003z'}
        self.ask('CINCRBY t b f:number 5')
        self.ask('CAPPEND t b f:c0001 text')
        self.columns['b'] |= {'number', 'c0001'}
        self.expect('CDEL t a f:c0007', 1)
        self.expect('CDEL t a f:c0007', 0)
        self.delete('a', ['c0007'])
        self.expect('CPUT t a IF f:c0007 EXISTS f:not v', None)
        self.ask('CPUT t a IF f:c0008 EXISTS f:yes v')
        self.columns['a'].add('yes')
        self.check()

    def test_versions_of_a_column(self):
        self.ask('CPUT t a f:c0005 v TS 5 f:c0005 v TS 9')
        self.ask('CDEL t a f:c0005 TIME 0 5')
        self.ask('CDEL t a f:c0005 TIME 10 +inf')
        self.check()
        self.ask('CDEL t a f:c0005 TIME 9 9')
        self.delete('a', ['c0005'])
        self.check()

    def test_ranges(self):
        self.expect('CDEL t a COLPREFIX f c010', 10)
        self.delete('a', ['c%04d' % n for n in range(100, 110)])
        self.expect('CDEL t b COLRANGE f [c0003 (c0009', 2)
        self.delete('b', ['c0003', 'c0006'])
        self.check()
        self.ask('CDEL t b f')
        self.columns['b'].clear()
        self.check()
        self.ask('CMUTATE t a DELROW PUT f:x v PUT f:z v PUT f:y v DEL f:z')
        self.columns['a'] = {'x', 'y'}
        self.check()

    def test_transactions(self):
        self.ask('MULTI')
        self.ask('CPUT t a f:one v')
        self.ask('CDEL t a f:c0001')
        self.ask('CPUT t b f:one v')
        self.ask('EXEC')
        self.columns['a'].add('one')
        self.columns['b'].add('one')
        self.delete('a', ['c0001'])
        self.check()
        self.ask('MULTI ATOMIC')
        self.ask('CPUT t a f:two v')
        self.ask('CDEL t a COLPREFIX f c')
        self.ask('CINCRBY t a f:two 1')
        self.refused('EXEC', 'EXECABORT')
        self.check()
        self.ask('DEBUG RELOAD')
        self.check()

    def test_qualifiers_that_are_unique(self):
        self.ask('CDEL t b')
        self.columns['b'].clear()
        self.ask('INDEX CREATE t one ON 1 f UNIQUE')
        self.refused('CPUT t b f:mine v f:c0011 v', 'NOTUNIQUE', 'one')
        self.ask('CDEL t a f:c0011')
        self.ask('CPUT t b f:mine v f:c0011 v')
        self.delete('a', ['c0011'])
        self.columns['b'] = {'mine', 'c0011'}
        self.refused('CPUT t a f:new v f:mine v f:other v', 'NOTUNIQUE', 'one')
        self.check()


class IndexTest(Conversation):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE t FAMILY f FAMILY q')

    def test_population_by_country_and_year(self):
        self.ask('INDEX CREATE t country ON 1 f:country')
        self.ask('INDEX CREATE t both ON 2 f:country -f:year AS u16 INCLUDE 1 f:people')
        for row, country, year, people in (('1', 'AU', 1700, 450), ('2', 'AU', 2000, 19053),
                                           ('3', 'CAN', 1700, 35), ('4', 'CAN', 2000, 31)):
            self.ask(['CPUT', 't', row, 'f:country', country, 'f:year', year, 'AS', 'u16',
                      'f:people', people, 'AS', 'u32'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX country'), ['1', '2', '3', '4'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX both'), ['2', '1', '4', '3'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX both EQ 2 CAN 1700'), ['3'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX both EQ 1 AU BETWEEN [1000 [1900'), ['1'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX both FROM 2 AU 1999'), ['1', '4', '3'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX both REVERSE COUNT 1'), ['3', '4', '1', '2'])
        self.expect('CSCAN t 0 INDEX both EQ 1 CAN COLUMNS 1 f:people',
                    [b'0', [[b'4', {b'f:people': 31}], [b'3', {b'f:people': 35}]]])
        self.expect('CCOUNT t INDEX both EQ 1 AU WHERE f:people GT 1000', 1)

    @unittest.skipIf(ON_MODEL, 'what is read is not for a model to say')
    def test_projections_of_the_population(self):
        """Of one column, of the key alone, of nothing: none of them reads the table."""
        self.ask('INDEX CREATE t country ON 1 f:country')
        self.ask('INDEX CREATE t both ON 2 f:country f:year AS u16')
        for row, country, year in (('1', 'AU', 1700), ('2', 'AU', 2000), ('3', 'CAN', 1700)):
            self.ask(['CPUT', 't', row, 'f:country', country, 'f:year', year, 'AS', 'u16', 'f:people', 7])

        def scan(line):
            reply = self.ask(line + ' STATS')
            self.assertEqual(reply[2][b'groups'], 0, line)
            return reply[1]

        self.assertEqual(scan('CSCAN t 0 INDEX country COLUMNS 1 f:country'),
                         [[b'1', {b'f:country': b'AU'}], [b'2', {b'f:country': b'AU'}],
                          [b'3', {b'f:country': b'CAN'}]])
        self.assertEqual(scan('CSCAN t 0 INDEX both EQ 1 AU COLUMNS 2 f:year f:country COLREVERSE'),
                         [[b'1', {b'f:year': 1700, b'f:country': b'AU'}],
                          [b'2', {b'f:year': 2000, b'f:country': b'AU'}]])
        self.assertEqual(scan('CSCAN t 0 INDEX both COLUMNS 1 f:year PERROW 1 REVERSE COUNT 1'),
                         [[b'3', {b'f:year': 1700}]])
        self.assertEqual(scan('CSCAN t 0 INDEX country KEYSONLY'), [b'1', b'2', b'3'])
        self.assertEqual(scan('CSCAN t 0 INDEX both EQ 2 AU 2000 KEYSONLY'), [b'2'])
        for line, count in (('INDEX country', 3), ('INDEX both EQ 1 AU', 2), ('INDEX both EQ 2 CAN 1700', 1)):
            explained = self.ask('CEXPLAIN CCOUNT t ' + line + ' ANALYZE')
            self.assertEqual(explained[b'cells'], b'nothing')
            self.assertEqual(explained[b'examined'][b'groups'], 0)
            self.expect('CCOUNT t ' + line, count)

    @unittest.skipIf(ON_MODEL, 'what is read is not for a model to say')
    def test_the_smallest_column_group_serves_scans_that_do_not_name_it(self):
        for number in range(30):
            self.ask(['CPUT', 't', 'r%02d' % number, 'f:a', number, 'q:page', 'p' * 200])
        plain = self.ask('CSCAN t 0 COLUMNS 1 f:a WITHTS')
        cursor = self.ask('CSCAN t 0 COLUMNS 1 f:a COUNT 10')[0].decode()
        self.ask('INDEX CREATE t wide ON 0 INCLUDE 2 f q:x')
        self.ask('INDEX CREATE t narrow ON 0 INCLUDE 1 f:a')
        reply = self.ask('CSCAN t 0 COLUMNS 1 f:a WITHTS STATS')
        self.assertEqual(reply[:2], plain)
        self.assertEqual((reply[2][b'groups'], reply[2][b'index']), (0, b'narrow'))
        # A cursor of the table goes on in the group, and one of the group in the table.
        cursor, rows, stats = self.ask(f'CSCAN t {cursor} COLUMNS 1 f:a COUNT 10 STATS')
        self.assertEqual(stats[b'index'], b'narrow')
        self.ask('INDEX DROP t narrow')
        self.ask('INDEX DROP t wide')
        end, more, stats = self.ask(f'CSCAN t {cursor.decode()} COLUMNS 1 f:a COUNT 10 STATS')
        self.assertNotIn(b'index', stats)
        self.assertEqual(end, b'0')
        self.assertEqual([row[0] for row in rows + more], [b'r%02d' % n for n in range(10, 30)])
        # A snapshot has the groups of its moment.
        self.ask('INDEX CREATE t narrow ON 0 INCLUDE 1 f:a')
        snapshot = self.ask('CSCAN t 0 COLUMNS 1 f:a COUNT 10 SNAPSHOT')[0].decode()
        self.ask('CDELRANGE t ALL')
        reply = self.ask(f'CSCAN t {snapshot} COLUMNS 1 f:a COUNT 30 STATS')
        self.assertEqual((len(reply[1]), reply[2][b'index']), (20, b'narrow'))

    def test_what_is_dead_on_arrival_is_nobodys_double(self):
        """A row that lived for a step of a command alone, or holds the values in dead cells alone, has no entry."""
        week = 7 * 86400 * 10**6
        self.ask('TABLE CREATE u FAMILY b TYPE i64 AGGREGATE sum BUCKET 7d TTL 30s FAMILY x AGGREGATE sum TYPE i16')
        self.ask('INDEX CREATE u only ON 0 INCLUDE 1 x UNIQUE')
        self.ask('CPUT u a x:q 5')
        self.refused('CPUT u c x:q 5', 'NOTUNIQUE', 'only')
        # Its week began more than 30 seconds ago, so b:zz is dead; x:b lives until the last step.
        self.ask('CMUTATE u c PUT b:zz 2 TS %d ADD x:b -3 DEL COLRANGE x - (zz' % (week + 1))
        self.ask('CMUTATE u c ADD x:b -3 ADD b:zz 2 TS %d DEL x' % (week + 1))
        self.expect('CEXISTS u c', 0)
        self.refused('CMUTATE u c PUT b:zz 2 TS %d ADD x:b -3' % (week + 1), 'NOTUNIQUE', 'only')
        self.assertEqual(self.keys('CSCAN u 0 INDEX only'), ['a'])
        self.ask('CDEL u a')
        self.ask('CPUT u c x:q 1')
        self.assertEqual(self.keys('CSCAN u 0 INDEX only'), ['c'])
        # By values, and by qualifiers.
        for index, on in (('v', 'f:x'), ('w', 'q')):
            self.ask('TABLE CREATE %s FAMILY f TTL 1d FAMILY q TTL 1d' % index)
            self.ask('INDEX CREATE %s one ON 1 %s UNIQUE' % (index, on))
            self.ask('CPUT %s a f:x 1 q:x 1' % index)
            self.refused('CPUT %s b f:x 1 q:x 1' % index, 'NOTUNIQUE', 'one')
            self.ask('CMUTATE %s b PUT f:x 1 PUT q:x 1 DEL f:x DEL q:x PUT f:x 1 TS %d PUT q:x 1 TS %d' % (index, week, week))
            self.expect('CEXISTS %s b' % index, 0)
            self.assertEqual(self.keys('CSCAN %s 0 INDEX one' % index), ['a'])

    def test_a_family_ordered_by_numbers_and_a_table_of_records(self):
        self.ask('TABLE CREATE n KEY recno FAMILY f ORDER i64')
        self.ask('INDEX CREATE n every ON 1 f')
        self.ask('INDEX CREATE n last ON 1 -f')
        self.ask('INDEX CREATE n by-ten ON 1 f:10')
        for qualifiers in ('9 10', '10', '-5'):
            self.ask('CPUT n * ' + ' '.join(f'f:{q} x{q}' for q in qualifiers.split()))
        self.assertEqual(self.keys('CSCAN n 0 INDEX every'), ['3', '1', '1', '2'])
        self.assertEqual(self.keys('CSCAN n 0 INDEX last'), ['1', '2', '1', '3'])
        self.assertEqual(self.keys('CSCAN n 0 INDEX every BETWEEN [9 [10'), ['1', '1', '2'])
        self.assertEqual(self.keys('CSCAN n 0 INDEX by-ten'), ['1', '2'])
        self.expect('CNEAR n INDEX every 1 0', [[b'9'], b'1', 1])
        # Record numbers are given out to rows; qualifiers have none.
        self.refused('TABLE CREATE m FAMILY f ORDER recno', 'ERR', 'recno')
        self.refused('FAMILY ADD n g ORDER recno', 'ERR', 'recno')

    def test_expiry_is_exact(self):
        self.ask('INDEX CREATE t i ON 1 f:x')
        self.ask('CPUT t a f:x old')
        self.advance(1)
        self.ask('CPUT t a f:x new TTL 10s')
        self.assertEqual(self.keys('CSCAN t 0 INDEX i EQ 1 new'), ['a'])
        self.advance(9.999999)
        self.assertEqual(self.keys('CSCAN t 0 INDEX i EQ 1 new'), ['a'])
        self.advance(0.000001)
        self.assertEqual(self.keys('CSCAN t 0 INDEX i EQ 1 new'), [])
        self.assertEqual(self.keys('CSCAN t 0 INDEX i EQ 1 old'), ['a'])

    def test_every_qualifier_and_a_column_group(self):
        self.ask('INDEX CREATE t tags ON 1 q')
        self.ask('INDEX CREATE t group ON 0 INCLUDE 1 f:name')
        for row, tags in (('p1', 'ab'), ('p2', 'b'), ('p3', 'ca')):
            for tag in tags:
                self.ask('CPUT t %s q:%s 1 f:name %s' % (row, tag, row.upper()))
        self.assertEqual(self.keys('CSCAN t 0 INDEX tags'), ['p1', 'p3', 'p1', 'p2', 'p3'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX tags EQ 1 b'), ['p1', 'p2'])
        self.expect('CSCAN t 0 INDEX group COLUMNS 1 f:name BETWEEN (p1 +',
                    [b'0', [[b'p2', {b'f:name': b'P2'}], [b'p3', {b'f:name': b'P3'}]]])

    def test_building_over_rows_and_a_failed_one(self):
        for number in range(50):
            self.ask('CPUT t r%02d f:x %d' % (number, number % 10))
        self.ask('INDEX CREATE t i ON 1 f:x')
        self.assertEqual(len(self.keys('CSCAN t 0 INDEX i COUNT 7')), 50)
        self.ask('INDEX CREATE t u ON 1 f:x UNIQUE')
        self.assertEqual(self.ask('INDEX INFO t u')[b'state'], b'failed')
        self.refused('CSCAN t 0 INDEX u', 'NOTUNIQUE', 'u')
        self.ask('CPUT t r00 f:x 1')
        self.expect('INDEX LIST t', [b'i', b'u'])
        self.ask('INDEX DROP t u')
        self.expect('INDEX LIST t', [b'i'])

    def test_a_forgotten_count_is_named_with_the_syntax(self):
        for line, word, syntax in (
                ('INDEX CREATE t i ON f:x UNIQUE', 'f:x', 'ON count column [AS type] ...'),
                ('INDEX CREATE t i ON 1 f:x INCLUDE f', 'f', 'INCLUDE count column|family ...'),
                ('CNEAR t INDEX i v w', 'v', 'INDEX index count value ...'),
                ('CSCAN t 0 INDEX i EQ v w', 'v', 'EQ count value ...')):
            self.refused(line, 'ERR', "'%s' is not a count, as in %s" % (word, syntax))

    def test_refusals(self):
        self.ask('INDEX CREATE t i ON 1 f:x AS i64')
        self.refused('INDEX CREATE t i ON 1 f:x', 'BUSYKEY', 'i')
        self.refused('INDEX CREATE t j ON 1 no:x', 'NOFAMILY', 'no')
        self.refused('INDEX CREATE t j ON 2 f f:x', 'ERR')
        self.refused('INDEX CREATE t j ON 0', 'ERR')
        self.refused('INDEX CREATE no j ON 1 f:x', 'NOTABLE', 'no')
        self.refused('INDEX DROP t j', 'NOINDEX', 'j')
        self.refused('INDEX INFO t j', 'NOINDEX', 'j')
        self.refused('CSCAN t 0 INDEX j', 'NOINDEX', 'j')
        self.refused('CSCAN t 0 INDEX i EQ 1 many', 'BADVALUE', 'many')
        self.refused('CSCAN t 0 INDEX i EQ 2 1 2', 'ERR')
        self.refused('FAMILY DROP t f', 'ERR')
        self.ask('FAMILY DROP t q')


if __name__ == '__main__':
    unittest.main()
