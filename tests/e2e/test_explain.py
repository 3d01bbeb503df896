"""CEXPLAIN: the tree that a read walks, its bounds, what is pushed down, and what ANALYZE finds."""

import unittest

from conversation import ON_MODEL, Conversation


@unittest.skipIf(ON_MODEL, 'how a read is done is not for a model to say')
class ExplainTest(Conversation):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE t KEY utf8#i64 FAMILY f FAMILY big GROUP pages')
        for place in ('hamburg', 'munich', 'ulm'):
            for number in range(10):
                self.ask(['CPUT', 't', f'{place}#{number}', 'f:n', number, 'AS', 'i64', 'f:place', place,
                          'big:page', 'p' * 100])

    def explain(self, line, analyze=''):
        if isinstance(line, str):
            return self.ask(f'CEXPLAIN {line} {analyze}')
        return self.ask(['CEXPLAIN'] + line)

    def check(self, line, **fields):
        """Each field of the explanation that is named here."""
        reply = self.explain(line)
        for name, value in fields.items():
            self.assertEqual(reply[name.encode()], value, (line, reply))
        return reply

    def test_the_fields(self):
        reply = self.explain('CSCAN t 0')
        self.assertEqual(list(reply), [b'command', b'tree', b'index', b'cells', b'direction', b'bounds',
                                       b'groups', b'columns', b'pushed', b'checked', b'considered', b'notes',
                                       b'estimated'])
        self.assertEqual(reply, {
            b'command': b'cscan', b'tree': b'table', b'index': None, b'cells': b'rows',
            b'direction': b'forward', b'bounds': [[b'-', b'+']], b'groups': [b'default', b'pages'],
            b'columns': [b'big', b'f'], b'pushed': [], b'checked': [], b'considered': [], b'notes': [],
            b'estimated': {b'rows': 30, b'cells': 90}})

    def test_the_options_of_cget(self):
        for options in ('', ' WITHTS', ' STATE', ' AT 5 STATE WITHTS'):
            self.check(f'CGET t ulm#1 f:n{options}', command=b'cget', tree=b'table')
        self.refused('CEXPLAIN CGET t ulm#1 f:n STATE STATE', 'ERR')

    def test_bounds_of_the_table(self):
        self.check('CSCAN t 0 PREFIX ulm#', bounds=[[b'[ulm', b'[ulm']], pushed=[b'rows'])
        self.check('CSCAN t 0 PREFIX m', bounds=[[b'[m', b'(n']])
        self.check('CSCAN t 0 RANGE [hamburg#3 (hamburg#7', bounds=[[b'[hamburg#3', b'(hamburg#7']])
        self.check('CSCAN t 0 RANGE (hamburg#3 [ulm PREFIX munich#', bounds=[[b'[hamburg#4', b'[ulm']])
        self.check('CSCAN t 0 RANGE [z (a', bounds=[])
        self.check('CCOUNT t ROWS 2 ulm#1 hamburg#1 EACH 2 1 REVERSE', direction=b'reverse',
                   bounds=[[b'[hamburg#1', b'(hamburg#2'], [b'[ulm#1', b'(ulm#2']])
        estimated = self.explain('CSCAN t 0 PREFIX ulm# COLUMNS 1 f')[b'estimated']
        self.assertEqual(estimated, {b'rows': 10, b'cells': 20})

    def test_notes_on_what_is_likely_a_mistake(self):
        self.ask('TABLE CREATE d KEY -u64 FAMILY f ORDER utf8#i64')
        self.ask('INDEX CREATE t n ON 1 f:n AS i64')
        reversed_range = b"RANGE '[z' '(a' is empty: its min comes after its max in the order 'utf8#i64'"
        self.check('CSCAN t 0 RANGE [z (a', notes=[reversed_range])
        self.check('CSCAN d 0 RANGE [1 [9', notes=[
            b"RANGE '[1' '[9' is empty: its min comes after its max in the order '-u64', where a descending component "
            b"begins with the largest value"])
        self.check('CSCAN d 0 RANGE [9 [1', notes=[])
        self.check('CSCAN d 0 RANGE [5 (5', notes=[])  # its own words say that it is empty
        self.check('CSCAN t 0 PREFIX ulm#1', notes=[
            b"PREFIX 'ulm#1' means this one i64, not those that begin with its digits: a range finds neighbours"])
        for prefix in ('ulm#', 'ul', 'ulm'):
            self.check(f'CSCAN t 0 PREFIX {prefix}', notes=[])
        self.check('CSCAN d 0 COLPREFIX f x#7', notes=[
            b"COLPREFIX f 'x#7' means this one i64, not those that begin with its digits: a range finds neighbours"])
        self.check('CSCAN d 0 COLRANGE f [z [a TIME 9 3', notes=[
            b"COLRANGE f '[z' '[a' is empty: its min comes after its max in the order 'utf8#i64'",
            b'TIME is empty: no time is within its min and its max'])
        self.check('CSCAN t 0 INDEX n BETWEEN [9 [1', notes=[
            b"BETWEEN '[9' '[1' is empty: its min is larger than its max"])
        for bounds in ('(2 (2', '(2 [2', '[2 (2', '[2 [2', '(2 (3', '- +', '(-0 (0'):
            self.check('CSCAN t 0 INDEX n BETWEEN ' + bounds, notes=[])
        self.check('CSCAN d 0 RANGE (5 (5', notes=[])
        self.check('CSCAN d 0 COLRANGE f (a#1 (a#1 COLRANGE f (a (a', notes=[])
        self.assertEqual([b'0', []], self.ask('CSCAN t 0 RANGE [z (a'))  # the reply stays what the contract says
        self.assertEqual([reversed_range], self.ask('CSCAN t 0 RANGE [z (a STATS')[2][b'notes'])
        self.assertNotIn(b'notes', self.ask('CSCAN t 0 RANGE [a (z STATS')[2])

    def test_columns_and_groups(self):
        self.check('CROW t ulm#1 COLUMNS 2 f:n big', groups=[b'default', b'pages'],
                   columns=[b'big', b'f:n'], pushed=[b'rows', b'columns'])
        self.check('CGET t ulm#1 f:n', command=b'cget', groups=[b'default'], columns=[b'f:n'])
        self.check('CGET t ulm#1 f:n AT 5 WITHTS', checked=[b'TIME'])
        self.check('CMGET t ulm#1 f:n f:place', columns=[b'f:n', b'f:place'])
        self.check('CEXISTS t ulm#1', bounds=[[b'[ulm#1', b'(ulm#2']])
        self.check('CSCAN t 0 COLRANGE f [a (q', columns=[b'f [a (q'])
        self.check('CSCAN t 0 COLPREFIX f pl', columns=[b'f [pl (pm'])

    def test_what_a_filter_pushes_down(self):
        self.check(['CSCAN', 't', '0', 'FILTER', 'row = "ulm#3" | family = "f" | latest(1)'],
                   bounds=[[b'[ulm#3', b'(ulm#4']], columns=[b'f'],
                   pushed=[b'FILTER rows', b'FILTER columns', b'FILTER versions'], checked=[b'FILTER'])
        self.check(['CSCAN', 't', '0', 'FILTER', 'ts >= 5'], pushed=[b'FILTER time'])
        self.check(['CSCAN', 't', '0', 'FILTER', 'value = 5'], pushed=[], checked=[b'FILTER'])
        self.check('CSCAN t 0 WHERE f:n EQ 3 WHERE f:place EXISTS SAMPLE 0.5 TIME 1 2',
                   checked=[b'TIME', b'WHERE', b'WHERE', b'SAMPLE'])

    def test_a_named_index(self):
        self.ask('INDEX CREATE t by-n ON 2 f:n AS i64 f:place INCLUDE 1 f:place')
        self.check('CSCAN t 0 INDEX by-n EQ 1 3', tree=b'index', index=b'by-n', cells=b'rows',
                   bounds=[[b'[3', b'(4']], pushed=[b'EQ'], groups=[b'default', b'pages'])
        self.check('CSCAN t 0 INDEX by-n EQ 1 3 COLUMNS 1 f', cells=b'rows')
        self.check('CSCAN t 0 INDEX by-n EQ 1 3 COLUMNS 1 f:place', cells=b'entries', groups=[],
                   estimated={b'rows': 3, b'cells': 6})
        self.check('CSCAN t 0 INDEX by-n EQ 1 3 BETWEEN [hamburg (munich KEYSONLY', cells=b'nothing',
                   bounds=[[b'[3 hamburg', b'(3 munich']], pushed=[b'EQ', b'BETWEEN'])
        self.check('CSCAN t 0 INDEX by-n FROM 1 5', bounds=[[b'[5', b'+']], pushed=[b'FROM'])
        self.check('CSCAN t 0 INDEX by-n EQ 2 3 ulm BETWEEN [ulm#2 +',
                   bounds=[[b'[3 ulm ulm#2', b'[3 ulm']])
        self.ask('INDEX CREATE t keys ON 1 f:n AS i64')
        self.check('CSCAN t 0 INDEX keys COLUMNS 1 f:n', cells=b'keys')
        self.check('CSCAN t 0 INDEX keys COLUMNS 1 f:n WITHTS', cells=b'rows')

    def test_conditions_of_entries(self):
        self.ask('INDEX CREATE t by-n ON 1 f:n AS i64 INCLUDE 1 f:place')
        self.check('CSCAN t 0 INDEX by-n WHERE f:place EQ ulm KEYSONLY', cells=b'nothing', groups=[],
                   checked=[b'WHERE of entries'])
        self.check('CSCAN t 0 INDEX by-n WHERE f:place EQ ulm COLUMNS 1 f:n', cells=b'entries', groups=[],
                   checked=[b'WHERE of entries'])
        self.check('CSCAN t 0 INDEX by-n WHERE f:place EQ ulm', cells=b'rows', groups=[b'default', b'pages'],
                   checked=[b'WHERE of entries'])
        self.check('CSCAN t 0 INDEX by-n WHERE big:page EXISTS WHERE f:n GT 3 COLUMNS 1 f:n', cells=b'entries',
                   groups=[b'pages'], checked=[b'WHERE of entries', b'WHERE'])
        self.check('CCOUNT t INDEX by-n WHERE f:n MATCH 3* WHERE ROW EXISTS', cells=b'nothing', groups=[])
        self.check(['CSCAN', 't', '0', 'INDEX', 'by-n', 'WHERE', 'FILTER', 'family = "f"', 'KEYSONLY'],
                   groups=[b'default'], checked=[b'WHERE'])
        # What the table is walked for may be another group than what conditions look into.
        self.check('CSCAN t 0 COLUMNS 1 f:n WHERE big:page EXISTS', groups=[b'default', b'pages'])
        self.check('CCOUNT t WHERE f:n EQ 3', index=b'by-n', cells=b'nothing', groups=[], pushed=[b'WHERE'], checked=[])
        line = 'CCOUNT t WHERE f:n NE 3'
        self.check(line, index=None, groups=[b'default', b'pages'], checked=[b'WHERE'])
        self.ask('INDEX CREATE t group ON 0 INCLUDE 1 f:n')
        self.check(line, index=b'group', cells=b'nothing', groups=[], checked=[b'WHERE of entries'])
        self.assertEqual(self.ask(line), 27)
        self.check('CCOUNT t WHERE f:n NE 3 WHERE ROW EXISTS', index=None)

    def test_a_chosen_one(self):
        self.check('CSCAN t 0 COLUMNS 1 f:n', tree=b'table', index=None)
        self.ask('INDEX CREATE t group ON 0 INCLUDE 1 f:n')
        self.check('CSCAN t 0 COLUMNS 1 f:n PREFIX ulm#', tree=b'index', index=b'group', cells=b'entries',
                   groups=[], bounds=[[b'[ulm', b'[ulm']])
        self.check('CSCAN t 0 KEYSONLY', index=b'group', cells=b'nothing')
        self.check('CCOUNT t', index=b'group', cells=b'nothing')
        self.check('CSCAN t 0 COLUMNS 1 f:place', index=None)
        self.check('CROW t ulm#1 COLUMNS 1 f:n', index=None)

    def test_analyze(self):
        reply = self.explain('CSCAN t 0 WHERE f:n EQ 3 COLUMNS 1 f:place COUNT 2', 'ANALYZE')
        examined = reply[b'examined']
        self.assertEqual(examined.pop(b'micros') >= 0, True)
        self.assertGreater(examined.pop(b'bytes'), 0)
        self.assertEqual(examined[b'rows returned'], 2)
        self.assertEqual(examined[b'cells returned'], 2)
        self.assertGreaterEqual(examined[b'rows'], 14)
        reply = self.explain('CCOUNT t', 'analyze')
        self.assertEqual(reply[b'examined'][b'rows returned'], 30)
        self.assertNotIn(b'examined', self.explain('CCOUNT t'))

    def test_analyze_counts_the_groups_of_conditions(self):
        self.ask('TABLE CREATE apart FAMILY a TYPE i64 FAMILY b TYPE i64 GROUP other')
        for number in range(20):
            self.ask(['CPUT', 'apart', f'r{number}', 'a:x', number, 'b:y', number % 4])
        for line, groups in (('CAGG apart WHERE b:y GE 2 REDUCE SUM a', 2), ('CAGG apart REDUCE SUM a', 1),
                             ('CAGG apart WHERE a:x GE 2 REDUCE SUM a', 1), ('CSCAN apart 0 WHERE b:y GE 2 COLUMNS 1 a', 2)):
            self.assertEqual(self.explain(line, 'ANALYZE')[b'examined'][b'groups'], groups, line)
        self.assertEqual(self.explain('CAGG apart WHERE b:y GE 2 REDUCE SUM a', 'ANALYZE')[b'examined'][b'rows'], 20)

    def test_analyze_of_much_is_sliced(self):
        for number in range(3000):
            self.ask(['CPUT', 't', f'z#{number}', 'f:n', number])
        reply = self.explain('CCOUNT t WHERE f:n EQ 2999', 'ANALYZE')
        self.assertEqual(reply[b'examined'][b'rows returned'], 1)
        self.assertEqual(reply[b'examined'][b'rows'], 3030)
        rows = self.explain('CSCAN t 0 PREFIX z# COLUMNS 1 f')[b'estimated'][b'rows']
        self.assertTrue(2000 < rows < 4000, rows)

    def test_the_last_word_may_be_a_row(self):
        self.ask('TABLE CREATE plain FAMILY f')
        self.ask('CPUT plain ANALYZE f:x 1')
        self.check('CROW plain ANALYZE', bounds=[[b'[ANALYZE', b'[ANALYZE']])
        self.assertIn(b'examined', self.explain('CROW plain ANALYZE', 'ANALYZE'))

    def test_a_cursor(self):
        cursor = self.ask('CSCAN t 0 PREFIX ulm# COUNT 3')[0].decode()
        self.check(f'CSCAN t {cursor} PREFIX ulm#', bounds=[[b'[ulm#3', b'[ulm']])
        self.refused('CEXPLAIN CSCAN t nonsense', 'ERR')

    def test_who_may_not_read_all_of_the_table_is_told_nothing(self):
        self.ask('ACL SETUSER some on nopass +@all %R~t:f %R~u:*')
        self.ask('TABLE CREATE u FAMILY f')
        self.ask('AUTH some x')
        try:
            self.refused('CEXPLAIN CSCAN t 0', 'NOPERM')
            self.refused('CEXPLAIN CSCAN t 0 COLUMNS 1 f ANALYZE', 'NOPERM')
            self.check('CSCAN u 0', tree=b'table')
        finally:
            self.ask('AUTH default x')
            self.ask('ACL DELUSER some')

    def test_refusals(self):
        for line in ('CPUT t ulm#1 f:x 1', 'CSCAN t', 'CEXPLAIN CSCAN t 0', 'CGET t ulm#1', 'CNONE t x',
                     'CSCAN t 0 NONSENSE', 'CSCAN t 0 COUNT', 'CSCAN t 0 NONSENSE ANALYZE',
                     'CSCAN t 0 ANALYZE ANALYZE', 'CGET t ulm#1 f', 'CEXISTS t ulm#1 f:x f:y',
                     'CSCAN t x', 'CSCAN t 0 EQ 1 3'):
            self.refused('CEXPLAIN ' + line, 'ERR')
        self.refused('CEXPLAIN CSCAN no 0', 'NOTABLE', 'no')
        self.refused('CEXPLAIN CSCAN t 0 INDEX no', 'NOINDEX', 'no')
        self.refused('CEXPLAIN CSCAN t 0 COLUMNS 1 no', 'NOFAMILY', 'no')
        self.refused('CEXPLAIN CROW t ulm', 'BADKEY')
        self.refused('CEXPLAIN CPUT t ulm#1 f:n 1', 'ERR', "CSCAN or CUPDATE, not 'CPUT'")
        self.refused('CEXPLAIN CGET t ulm#x f:n', 'BADKEY')
        self.refused(['CEXPLAIN', 'CROW', 't', 'ulm#1', 'FILTER', 'nonsense'], 'BADFILTER')
        self.refused('CEXPLAIN CSCAN t', 'ERR')


if __name__ == '__main__':
    unittest.main()
