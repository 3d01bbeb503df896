"""The model of tests/model says what the manual says: sentence by sentence, without a server."""

import glob
import os
import shlex
import subprocess
import sys
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)

from model import globs, orders, resp, retention, values  # noqa: E402
from model.commands import Model  # noqa: E402
from model.filters import Filter  # noqa: E402
from model.refusals import Refused  # noqa: E402
from model.shrink import shrink  # noqa: E402

MICROS = 10**6


class ModelCase(unittest.TestCase):
    def setUp(self):
        self.model = Model(1000 * MICROS)
        self.session = self.model.session(3)

    def ask(self, line, *more):
        words = [word.encode() for word in shlex.split(line)] + list(more)
        reply = self.model.execute(self.session, words)
        return reply.rows if hasattr(reply, 'rows') else reply

    def code(self, line):
        reply = self.ask(line)
        self.assertIsInstance(reply, resp.Error, line)
        return reply.code

    def pairs(self, line):
        return resp.as_map(self.ask(line))

    def keys(self, line):
        return self.ask(line + ' KEYSONLY')


class OrdersTest(unittest.TestCase):
    def sort(self, order, texts):
        held = orders.Order.parse(order.encode(), recno=True)
        return [held.read(text.encode())[1].decode() for text in
                sorted(texts, key=lambda text: held.read(text.encode())[0])]

    def test_numbers_stand_in_numeric_order_without_padding(self):
        self.assertEqual(self.sort('i64', ['10', '9', '-5', '007']), ['-5', '7', '9', '10'])

    def test_a_descending_last_component_is_largest_first(self):
        self.assertEqual(self.sort('utf8#utf8#-u64', ['a#b#1', 'a#b#42', 'a#a#1']),
                         ['a#a#1', 'a#b#42', 'a#b#1'])

    def test_a_descending_text_comes_after_what_it_is_a_prefix_of(self):
        self.assertEqual(self.sort('-utf8', ['a', 'ab', 'b']), ['b', 'ab', 'a'])

    def test_luuid_is_javas_order_of_signed_halves(self):
        low, high = '80000000' + '-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000'
        self.assertEqual(self.sort('luuid', [high, low]), [low, high])
        self.assertEqual(self.sort('uuid', [low, high]), [high, low])

    def test_timeuuid_is_by_time_then_bytes(self):
        early, late = 'ffffffff-0000-1000-8000-000000000000', '00000000-0001-1000-8000-000000000000'
        self.assertEqual(self.sort('timeuuid', [late, early]), [early, late])

    def test_a_key_that_does_not_fit_is_refused(self):
        for order, text in (('i64', ''), ('i64', '+1'), ('u8', '256'), ('ascii', '\x80'),
                            ('f64', 'nan'), ('timeuuid', '00000000-0000-4000-8000-000000000000'),
                            ('utf8#i64', 'a'), ('recno', '0'), ('bool', 'yes')):
            with self.assertRaises(Refused, msg=(order, text)) as caught:
                orders.Order.parse(order.encode(), recno=True).read(text.encode())
            self.assertEqual(caught.exception.code, 'BADKEY')

    def test_the_last_text_component_takes_the_rest(self):
        held = orders.Order.parse(b'i64#utf8')
        self.assertEqual(held.read(b'05#a#b')[1], b'5#a#b')

    def test_prefix_is_of_whole_components_or_ends_inside_a_text_component(self):
        held = orders.Order.parse(b'utf8#i64#utf8')
        key = held.read(b'STC#22#x')[0]
        for prefix in (b'', b'S', b'STC', b'STC#', b'STC#22', b'STC#22#', b'STC#22#x'):
            self.assertTrue(held.prefix(prefix)(key), prefix)
        for prefix in (b'T', b'ST#', b'STC#2', b'STC#2#', b'STC#22#y'):
            self.assertFalse(held.prefix(prefix)(key), prefix)
        with self.assertRaises(Refused):
            held.prefix(b'STC#x')

    def test_a_bound_may_name_only_the_first_components(self):
        held = orders.Order.parse(b'utf8#i64')
        keys = [held.read(text)[0] for text in (b'a#9', b'p#-1', b'p#5', b'q#0')]

        def between(low, high):
            test = orders.Bounds(held, orders.read_bound(low), orders.read_bound(high))
            return [at for at, key in enumerate(keys) if test(key)]
        self.assertEqual(between(b'[p', b'[p'), [1, 2])
        self.assertEqual(between(b'(p', b'+'), [3])
        self.assertEqual(between(b'-', b'(p'), [0])
        self.assertEqual(between(b'[q', b'[a'), [])

    def test_bounds_are_positions_in_the_order(self):
        held = orders.Order.parse(b'-u64')
        test = orders.Bounds(held, ('[', b'9'), ('[', b'1'))
        self.assertEqual([n for n in range(12) if test(held.read(b'%d' % n)[0])], list(range(1, 10)))

    def test_a_float_component_and_a_dot_do_not_go_together(self):
        for text in (b'f64.utf8', b'utf8-i64', b'utf8#i64/u8', b'', b'nonsense'):
            with self.assertRaises(Refused, msg=text):
                orders.Order.parse(text)


class ValuesTest(unittest.TestCase):
    def test_floats_print_with_the_fewest_digits(self):
        for number, text in ((1.5, '1.5'), (3.0, '3'), (1e-4, '0.0001'), (1e-5, '1e-05'),
                             (1e15, '1000000000000000'), (1.5e16, '1.5e+16'), (-0.0, '-0'),
                             (float('inf'), 'inf'), (0.1, '0.1'), (1 / 3, repr(1 / 3))):
            self.assertEqual(values.print_float('f64', number), text)
        self.assertEqual(values.print_float('f32', values.round_f32(0.1)), '0.1')
        self.assertEqual(values.print_float('f32', 16777216.0), '16777216')

    def test_values_that_do_not_fit_are_refused(self):
        for kind, text in (('i8', b'128'), ('u8', b'-1'), ('f32', b'1e39'), ('f64', b'nan'),
                           ('string', b'\xff'), ('bool', b'2'), ('uuid', b'x'), ('i64', b'1.0')):
            with self.assertRaises(Refused, msg=(kind, text)) as caught:
                values.read(kind, text)
            self.assertEqual(caught.exception.code, 'BADVALUE')

    def test_literals_are_read_as_the_cells_own_type(self):
        self.assertEqual(values.compare('u8', 200, b'300'), -1)
        self.assertEqual(values.compare('i64', 5, b'4.5'), 1)
        self.assertEqual(values.compare('f32', values.round_f32(0.1), b'0.1'), 0)
        self.assertIsNone(values.compare('i64', 5, b'five'))

    def test_values_come_back_typed(self):
        self.assertEqual(values.reply('u64', 2**64 - 1, 2), b'18446744073709551615')
        self.assertIsInstance(values.reply('u64', 2**64 - 1, 3), resp.BigNumber)
        self.assertIsInstance(values.reply('bool', True, 3), resp.Boolean)
        self.assertEqual(values.reply('bool', True, 2), 1)


class RetentionTest(ModelCase):
    def test_durations(self):
        self.assertEqual(retention.read_duration(b'250ms'), 250000)
        self.assertEqual(retention.read_duration(b'2'), 2 * MICROS)
        for text in (b'0', b'', b'1.5s', b'1w', b'-1'):
            with self.assertRaises(Refused):
                retention.read_duration(text)

    def test_and_binds_tighter_than_or(self):
        policy = retention.read_policy(b'maxversions=3 && maxage=7d || maxage=30d')
        self.assertEqual(policy[0], 'or')
        self.assertEqual(policy[1][0], 'and')

    def test_a_cell_is_gone_from_the_moment_it_is_due(self):
        self.ask('TABLE CREATE t FAMILY f TTL 5s')
        self.ask('CPUT t r f:a 1')
        self.model.now += 5 * MICROS - 1
        self.assertEqual(self.ask('CGET t r f:a'), b'1')
        self.model.now += 1
        self.assertIsNone(self.ask('CGET t r f:a'))
        self.assertEqual(self.ask('CCOUNT t'), 0)

    def test_timestamp_0_has_no_age(self):
        self.ask('TABLE CREATE t FAMILY f TTL 5s')
        self.ask('CPUT t r f:a 1 TS 0')
        self.assertEqual(self.ask('CGET t r f:a'), b'1')

    def test_nothing_comes_back_when_a_newer_version_is_deleted(self):
        self.ask('TABLE CREATE t FAMILY f VERSIONS 2')
        self.ask('CPUT t r f:a 1 TS 1 f:a 2 TS 2 f:a 3 TS 3')
        self.assertEqual(self.ask('CDEL t r f:a TIME 3 3'), 1)
        self.assertEqual(self.pairs('CROW t r VERSIONS ALL'), [(b'f:a', [[2, b'2']])])

    def test_nothing_comes_back_when_a_policy_is_loosened(self):
        self.ask('TABLE CREATE t FAMILY f VERSIONS 1')
        self.ask('CPUT t r f:a 1 TS 1 f:a 2 TS 2')
        self.ask('FAMILY ALTER t f VERSIONS ALL')
        self.assertEqual(self.pairs('CROW t r VERSIONS ALL'), [(b'f:a', [[2, b'2']])])


class CellsTest(ModelCase):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE t FAMILY a FAMILY n TYPE i64')

    def test_a_delete_is_no_tombstone(self):
        self.ask('CPUT t r a:q 1 TS 10')
        self.assertEqual(self.ask('CDEL t r'), 1)
        self.ask('CPUT t r a:q old TS 5')
        self.assertEqual(self.ask('CGET t r a:q'), b'old')

    def test_cput_conditions(self):
        self.assertIsNone(self.ask('CPUT t r XX a:q 1'))
        self.assertEqual(self.ask('CPUT t r NX a:q 1'), resp.OK)
        self.assertIsNone(self.ask('CPUT t r NX a:q 1 a:z 1'))
        self.assertIsNone(self.ask('CPUT t r IF a:q EQ 2 a:q 3'))

    def test_another_type_than_the_declared_is_wrongtype(self):
        self.assertEqual(self.code('CPUT t r n:q 1 AS f64'), 'WRONGTYPE')

    def test_order_of_checks(self):
        self.assertEqual(self.code('CPUT nix r a:q 1 AS nonsense'), 'ERR')
        self.assertEqual(self.code('CPUT nowhere/t r a:q 1'), 'NOKEYSPACE')
        self.assertEqual(self.code('CPUT nix "" a:q 1'), 'NOTABLE')
        self.assertEqual(self.code('CPUT t "" zz:q 1'), 'BADKEY')
        self.assertEqual(self.code('CPUT t r zz:q 1 n:q x'), 'NOFAMILY')
        self.assertEqual(self.code('CPUT t r n:q x zz:q 1'), 'BADVALUE')

    def test_increments(self):
        self.assertEqual(self.ask('CINCRBY t r a:q 5'), 5)
        self.assertEqual(self.code('CINCRBYFLOAT t r a:q 5'), 'WRONGTYPE')
        self.ask('CPUT t r a:text 41')
        self.assertEqual(self.ask('CINCRBY t r a:text 1'), 42)
        self.ask('CPUT t r n:max 9223372036854775807')
        self.assertEqual(self.code('CINCRBY t r n:max 1'), 'ERR')
        self.assertEqual(self.ask('CAPPEND t r a:s abc'), 3)

    def test_several_increments_in_one_command_make_one_version(self):
        self.assertEqual(self.ask('CMUTATE t r INCR n:q 1 INCR n:q 2'), [1, 1, 3])
        self.assertEqual(self.ask('CCOUNT t VERSIONS ALL BY CELLS'), 1)

    def test_cmutate_branches(self):
        self.assertEqual(self.ask('CMUTATE t r IF ROW EXISTS DELROW ELSE PUT a:q 1'), [0, resp.OK])
        self.assertEqual(self.ask('CMUTATE t r IF ROW MISSING DELROW'), [0])
        self.assertEqual(self.code('CMUTATE t r IF ROW EXISTS DELROW ELSE PUT zz:q 1'), 'NOFAMILY')
        self.assertEqual(self.code('CMUTATE t r IF ROW EXISTS'), 'ERR')
        self.assertEqual(self.code('CMUTATE t r DELROW ELSE DELROW'), 'ERR')

    def test_groups_are_super_columns(self):
        self.ask('TABLE CREATE s FAMILY f ORDER utf8:bytes')
        self.ask('CPUT s r f:x:1 a f:x:2 b f:y:1 c')
        self.assertEqual([name for name, _ in self.pairs('CROW s r GROUPS 1')], [b'f:x:1', b'f:x:2'])
        self.assertEqual(self.ask('CCOUNT s BY GROUPS'), 2)
        self.assertEqual([name for name, _ in self.pairs('CROW s r SKIP 1 GROUPS 2 PERROW 1')],
                         [b'f:x:2'])

    def test_record_numbers(self):
        self.ask('TABLE CREATE r KEY recno FAMILY f')
        self.assertEqual(self.ask('CPUT r * f:a 1'), b'1')
        self.assertIsNone(self.ask('CPUT r * XX f:a 1'))
        self.ask('CPUT r 10 f:a 1')
        self.assertEqual(self.ask('CPUT r * f:a 1'), b'11')
        self.ask('TABLE TRUNCATE r')
        self.assertEqual(self.ask('CPUT r * f:a 1'), b'12')

    def test_cnear(self):
        self.assertIsNone(self.ask('CNEAR t m'))
        self.ask('CPUT t b a:q 1')
        self.assertEqual(self.ask('CNEAR t b'), [b'b', 0])
        self.assertEqual(self.ask('CNEAR t a'), [b'b', 1])
        self.assertEqual(self.ask('CNEAR t c'), [b'b', -1])


class FiltersTest(ModelCase):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE t FAMILY a FAMILY b')
        self.ask('CPUT t r a:p x TS 2 a:p y TS 1 a:q 5 AS i64 TS 1 b:p "x\ny" TS 1')

    def names(self, expression):
        return [name.decode() for name, _ in resp.as_map(
            self.ask('CROW t r FILTER', expression.encode()))]

    def test_the_newest_that_passed_is_shown(self):
        self.assertEqual(resp.as_map(self.ask('CROW t r FILTER', b'value = "y"')), [(b'a:p', b'y')])

    def test_order_of_latest_and_value_matters(self):
        self.assertEqual(self.names('latest(1) | value ~ "y"'), [])
        self.assertEqual(self.names('value ~ "y" | latest(1)'), ['a:p'])

    def test_the_dot_does_not_match_a_newline(self):
        self.assertEqual(self.names('value ~ "x.y"'), [])
        self.assertEqual(self.names('value ~ "(?s)x.y"'), ['b:p'])

    def test_if_without_else(self):
        self.assertEqual(self.names('if(value = 5; family = "b")'), ['b:p'])
        self.assertEqual(self.names('if(value = 6; pass)'), [])

    def test_kinds_must_fit_even_under_not_equal(self):
        self.assertEqual(self.names('value != 6'), ['a:q'])
        self.assertEqual(self.names('value != "z"'), ['a:p', 'b:p'])

    def test_interleave_keeps_duplicates_and_sink_goes_straight(self):
        reply = self.ask('CROW t r WITHTS FILTER', b'qualifier = "q" | {pass, pass}')
        self.assertEqual(resp.as_map(reply), [(b'a:q', [[1, 5], [1, 5]])])
        self.assertEqual(self.names('{sink, pass} | block'), ['a:p', 'a:q', 'b:p'])

    def test_bad_expressions(self):
        for text in (b'', b'pass |', b'limit(0)', b'latest(0)', b'if(sink; pass)', b'value ~ "("',
                     b'label("UP")', b'(' * 21 + b'pass' + b')' * 21, b'x' * 20481):
            with self.assertRaises(Refused, msg=text) as caught:
                Filter(text)
            self.assertEqual(caught.exception.code, 'BADFILTER')

    def test_an_unknown_backslash_stands_for_itself(self):
        self.assertEqual(self.names(r'value ~ "\d"'), ['a:q'])
        self.assertEqual(self.names(r'value ~ "\\d"'), ['a:q'])
        self.assertEqual(self.names(r'value = "x\ny"'), ['b:p'])


class IndexesTest(ModelCase):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE t FAMILY f TYPE i64 FAMILY s')
        for row, number in (('a', 10), ('b', -5), ('c', 10), ('d', 9)):
            self.ask('CPUT t %s f:n %d' % (row, number))

    def test_index_order_and_searches(self):
        self.ask('INDEX CREATE t i ON 1 f:n')
        self.assertEqual(self.keys('CSCAN t 0 INDEX i'), [b'b', b'd', b'a', b'c'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX i EQ 1 10 REVERSE'), [b'c', b'a'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX i EQ 1 10 BETWEEN (a +'), [b'c'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX i BETWEEN (-5 [9'), [b'd'])
        self.assertEqual(self.keys('CSCAN t 0 INDEX i FROM 1 9 REVERSE'), [b'd', b'b'])
        self.assertEqual(self.ask('CNEAR t INDEX i 1 8'), [[9], b'd', 1])

    def test_a_descending_column(self):
        self.ask('INDEX CREATE t i ON 1 -f:n')
        self.assertEqual(self.keys('CSCAN t 0 INDEX i BETWEEN [9 +'), [b'a', b'c', b'd'])
        self.assertEqual(self.ask('CNEAR t INDEX i 1 8'), [[-5], b'b', 1])

    def test_every_qualifier_of_a_family(self):
        self.ask('INDEX CREATE t i ON 1 s')
        self.ask('CPUT t a s:x 1 s:y 1')
        self.ask('CPUT t b s:x 1')
        self.assertEqual(self.keys('CSCAN t 0 INDEX i'), [b'a', b'b', b'a'])

    def test_unique(self):
        self.ask('INDEX CREATE t i ON 1 f:m UNIQUE')
        self.ask('CPUT t a f:m 1 TS 1')
        self.assertEqual(self.code('CPUT t b f:m 1'), 'NOTUNIQUE')
        self.ask('CPUT t a f:m 2 TS 2')
        self.assertEqual(self.ask('CPUT t b f:m 1'), resp.OK)
        self.assertEqual(self.code('CDEL t a f:m TIME 2 2'), 'NOTUNIQUE')
        self.assertEqual(self.ask('INDEX CREATE t j ON 1 f:n UNIQUE'), resp.OK)
        self.assertEqual(self.code('CSCAN t 0 INDEX j'), 'NOTUNIQUE')


class TransactionsTest(ModelCase):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE t FAMILY f')

    def test_atomic_undoes_all(self):
        self.ask('MULTI ATOMIC')
        self.ask('CPUT t r f:a 1')
        self.ask('TABLE CREATE u FAMILY f')
        self.ask('CPUT t r zz:a 1')
        self.assertEqual(self.code('EXEC'), 'EXECABORT')
        self.assertEqual(self.ask('TABLE LIST'), [b't'])
        self.assertEqual(self.ask('CCOUNT t'), 0)

    def test_without_atomic_the_others_stand(self):
        self.ask('MULTI')
        self.ask('CPUT t r zz:a 1')
        self.ask('CPUT t r f:a 1')
        replies = self.ask('EXEC')
        self.assertEqual((replies[0].code, replies[1]), ('NOFAMILY', resp.OK))

    def test_a_watched_row(self):
        other = self.model.session(2)
        for key, aborted in ((b'other', False), (b'r', True)):
            self.ask('CWATCH t r')
            self.model.execute(other, [b'CPUT', b't', key, b'f:a', b'1'])
            self.ask('MULTI')
            self.assertEqual(self.ask('EXEC') is None, aborted)


class ConversationsTest(unittest.TestCase):
    def test_the_conversations_of_e2e_hold_for_the_model(self):
        for path in sorted(glob.glob(os.path.join(TESTS, 'e2e', 'test_*.py'))):
            with open(path, encoding='utf-8') as file:
                if 'from conversation import' not in file.read():
                    continue
            with self.subTest(os.path.basename(path)):
                run = subprocess.run([sys.executable, path], env={**os.environ, 'CELLAR_TEST_MODEL': '1'},
                                     capture_output=True, text=True, timeout=300)
                self.assertEqual(run.returncode, 0, run.stderr)


class ToolsTest(unittest.TestCase):
    def test_globs(self):
        for pattern, text, held in ((b'a*', b'abc', True), (b'*b*', b'abc', True), (b'?', b'', False),
                                    (b'[a-c]x', b'bx', True), (b'[^a]', b'a', False),
                                    (b'\\*', b'*', True), (b'\\*', b'a', False), (b'*', b'', True)):
            self.assertEqual(globs.matches(pattern, text), held, pattern)

    def test_a_shrunk_history_keeps_what_matters(self):
        found = shrink(list(range(100)), lambda steps: 7 in steps and 50 in steps, 10)
        self.assertEqual(found, [7, 50])

    def test_replies_of_different_types_are_not_the_same(self):
        self.assertFalse(resp.same(1, resp.Boolean(True)))
        self.assertFalse(resp.same(b'OK', resp.OK))
        self.assertFalse(resp.same(None, resp.NULL_ARRAY))
        self.assertTrue(resp.same([resp.Error('ERR')], [resp.Error('ERR', 'any text')]))


if __name__ == '__main__':
    unittest.main()
