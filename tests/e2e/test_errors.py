"""Every refusal of cellar-model(7), "ERROR REPLIES": its code, a text that names the thing, the order of the checks, and that
nothing has changed afterwards."""

import unittest

from conversation import ON_MODEL, Conversation

LONG_KEY = 'k' * (64 * 1024 + 1)
LONG_QUALIFIER = 'q' * (16 * 1024 + 1)


class ErrorsTest(Conversation):
    OPTIONS = {'max-value-bytes': '1000000'}

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE planes KEY utf8#i64 FAMILY a FAMILY n TYPE i64 FAMILY u ORDER u8 '
                 'FAMILY s TYPE string')
        self.ask('CPUT planes x#1 a:q text n:q 5')
        self.ask('INDEX CREATE planes by_n ON 1 n:q')
        self.ask('INDEX CREATE planes by_key ON 1 a:key UNIQUE')
        self.ask('TABLE CREATE log KEY recno FAMILY a')
        self.digest = self.state()

    def state(self):
        return None if ON_MODEL else self.ask(self.server.DIGEST)

    def refused(self, line, code, *names, connection=None):
        reply = super().refused(line, code, *names, connection=connection)
        if connection is None:
            self.assertEqual(self.state(), self.digest, 'changed by a refused command: %s' % (line,))
        return reply

    # Names.

    def test_a_table_that_does_not_exist(self):
        reply = self.refused('CGET plains x#1 a:q', 'NOTABLE')
        if not ON_MODEL:
            self.assertEqual(reply.text, "no table 'plains' in keyspace '0'")
        for line in ('CPUT nix r a:q 1', 'CROW nix r', 'CSCAN nix 0', 'CCOUNT nix', 'CNEAR nix r',
                     'CEXISTS nix r', 'CDEL nix r', 'CDELRANGE nix ALL', 'CINCRBY nix r a:q 1',
                     'CINCRBYFLOAT nix r a:q 1', 'CAPPEND nix r a:q 1', 'CMUTATE nix r DELROW',
                     'CMGET nix r a:q', 'TABLE DROP nix', 'TABLE TRUNCATE nix', 'TABLE INFO nix',
                     'TABLE RENAME nix nax', 'FAMILY ADD nix f', 'FAMILY ALTER nix f VERSIONS 1',
                     'FAMILY DROP nix f', 'FAMILY INFO nix f', 'INDEX CREATE nix i ON 1 a:q',
                     'INDEX DROP nix i', 'INDEX LIST nix', 'INDEX INFO nix i', 'CWATCH nix r'):
            self.refused(line, 'NOTABLE', 'nix')
        if not ON_MODEL:
            self.refused('TABLE SHOW nix', 'NOTABLE', 'nix')
            self.refused('TABLE SAMPLE nix 3', 'NOTABLE', 'nix')

    def test_an_impossible_name_in_a_read_is_no_table(self):
        self.refused(['CGET', 'no such', 'r', 'a:q'], 'NOTABLE', 'no such')
        self.refused(['CGET', '', 'r', 'a:q'], 'NOTABLE')

    def test_an_impossible_name_cannot_be_created(self):
        for name in ('', '-x', '.x', 'a b', 'a' * 65, 'ü'):
            self.refused(['TABLE', 'CREATE', name, 'FAMILY', 'f'], 'ERR')
            self.refused(['FAMILY', 'ADD', 'planes', name], 'ERR')
            self.refused(['INDEX', 'CREATE', 'planes', name, 'ON', '1', 'a:q'], 'ERR')
            self.refused(['KEYSPACE', 'CREATE', name], 'ERR')
        self.refused('TABLE RENAME planes -x', 'ERR')

    def test_a_keyspace_that_does_not_exist(self):
        self.refused('CGET nowhere/planes x#1 a:q', 'NOKEYSPACE', 'nowhere')
        self.refused('TABLE CREATE nowhere/t FAMILY f', 'NOKEYSPACE', 'nowhere')
        self.refused('KEYSPACE DROP nowhere', 'NOKEYSPACE', 'nowhere')
        self.refused('SELECT nowhere', 'NOKEYSPACE', 'nowhere')
        self.refused('RENAME nowhere/nix nowhere/nix', 'NOKEYSPACE', 'nowhere')

    def test_the_first_sixteen_keyspaces_stay(self):
        self.refused('KEYSPACE DROP 0', 'ERR')
        self.refused('KEYSPACE DROP 15', 'ERR')
        self.refused('KEYSPACE CREATE 3', 'BUSYKEY', '3')

    def test_a_family_that_does_not_exist_wherever_it_is_named(self):
        for line in ('CPUT planes x#1 zz:q 1', 'CGET planes x#1 zz:q', 'CMGET planes x#1 a:q zz:q',
                     'CROW planes x#1 COLUMNS 1 zz', 'CROW planes x#1 COLUMNS 2 a zz:q',
                     'CROW planes x#1 COLPREFIX zz p', 'CROW planes x#1 COLRANGE zz - +',
                     'CSCAN planes 0 WHERE zz:q EXISTS', 'CCOUNT planes COLUMNS 1 zz',
                     'CEXISTS planes x#1 zz:q', 'CDEL planes x#1 zz', 'CDEL planes x#1 zz:q',
                     'CDEL planes x#1 COLPREFIX zz p', 'CINCRBY planes x#1 zz:q 1',
                     'CINCRBYFLOAT planes x#1 zz:q 1', 'CAPPEND planes x#1 zz:q 1',
                     'CMUTATE planes x#1 PUT zz:q 1', 'CMUTATE planes x#1 DEL zz',
                     'CMUTATE planes x#1 IF zz:q MISSING DELROW', 'CPUT planes x#1 IF zz:q EXISTS a:q 1',
                     'FAMILY ALTER planes zz VERSIONS 1', 'FAMILY DROP planes zz',
                     'FAMILY INFO planes zz', 'INDEX CREATE planes i ON 1 zz:q',
                     'INDEX CREATE planes i ON 1 zz', 'INDEX CREATE planes i ON 1 a:q INCLUDE 1 zz',
                     "CROW planes x#1 FILTER 'family = \"zz\"'"):
            self.refused(line, 'NOFAMILY', 'zz')

    def test_an_index_that_does_not_exist(self):
        for line in ('CSCAN planes 0 INDEX zz', 'CCOUNT planes INDEX zz', 'CNEAR planes INDEX zz 1 1',
                     'INDEX DROP planes zz', 'INDEX INFO planes zz'):
            self.refused(line, 'NOINDEX', "no index 'zz' on table 'planes'")

    def test_what_does_not_fit_into_an_index_is_named_with_the_index(self):
        self.ask('TABLE CREATE numbered KEY u32 FAMILY f FAMILY n ORDER i64')
        self.ask('INDEX CREATE numbered by_n ON 1 f:n AS u8')
        self.ask('INDEX CREATE numbered every ON 1 n')
        self.ask('INDEX CREATE numbered one ON 1 f:key UNIQUE')
        self.ask('CPUT numbered 1 f:key same')
        self.digest = self.state()
        no_byte = "index 'by_n': 'x' is not a value of type u8"
        no_integer = "index 'every': component 1 (i64): 'x' is not an integer"
        for line, code, text in (
                ('CSCAN numbered 0 INDEX by_n EQ 1 x', 'BADVALUE', no_byte),
                ('CSCAN numbered 0 INDEX by_n FROM 1 x', 'BADVALUE', no_byte),
                ('CSCAN numbered 0 INDEX by_n BETWEEN [x +', 'BADVALUE', no_byte),
                ('CSCAN numbered 0 INDEX by_n BETWEEN - (300', 'BADVALUE',
                 "index 'by_n': '300' is out of range for type u8"),
                ('CCOUNT numbered INDEX by_n EQ 1 x', 'BADVALUE', no_byte),
                ('CNEAR numbered INDEX by_n 1 x', 'BADVALUE', no_byte),
                ('CSCAN numbered 0 INDEX every EQ 1 x', 'BADVALUE', no_integer),
                ('CSCAN numbered 0 INDEX every BETWEEN (x +', 'BADVALUE', no_integer),
                ('CNEAR numbered INDEX every 1 x', 'BADVALUE', no_integer),
                ('CSCAN numbered 0 INDEX by_n EQ 1 1 BETWEEN [x +', 'BADKEY',
                 "index 'by_n': component 1 (u32): 'x' is not an integer"),
                ('CSCAN numbered 0 INDEX by_n EQ 2 1 2', 'ERR', "index 'by_n' has only 1 ON column"),
                ('CSCAN numbered 0 INDEX by_n FROM 2 1 2', 'ERR', "index 'by_n' has only 1 ON column"),
                ('CNEAR numbered INDEX by_n 2 1 2', 'ERR', "index 'by_n' has only 1 ON column"),
                ('CPUT numbered 2 f:key same', 'NOTUNIQUE', "index 'one'")):
            self.refused(line, code, text)
        if not ON_MODEL:  # which has no such limit
            self.refused(['CPUT', 'numbered', '2', 'f:key', 'x' * 70000], 'TOOLARGE', "index 'one'")

    def test_an_order_of_unknown_components(self):
        self.refused('TABLE CREATE fresh KEY utf8#int', 'ERR', "'int'", 'utf8', 'i64', 'timeuuid', 'recno')

    def test_creating_what_exists(self):
        self.refused('TABLE CREATE planes FAMILY a', 'BUSYKEY', 'planes')
        self.refused('TABLE CREATE fresh FAMILY a FAMILY a', 'BUSYKEY', 'a')
        self.refused('TABLE RENAME planes log', 'BUSYKEY', 'log')
        self.refused('FAMILY ADD planes a', 'BUSYKEY', 'a')
        self.refused('INDEX CREATE planes by_n ON 1 a:q', 'BUSYKEY', 'by_n')

    # Words.

    def test_a_syntax_error_names_the_word_and_what_was_expected(self):
        for line, *names in (
                ('CPUT planes x#1 model A380', 'model', 'family:qualifier'),
                ('CPUT planes x#1 a:q 1 model A380', 'model', 'AS, TS, TTL or EXPIREAT'),
                ('CPUT planes x#1 a:q 1 a:r', 'a:r'), ('CPUT planes x#1 a:q 1 TTL', 'TTL', 'duration'),
                ('CPUT planes x#1 IF a:q IS 1 a:q 1', 'IS', 'MATCH'), ('CGET planes x#1 a:q NOW', 'NOW', 'AT'),
                ('CDEL planes x#1 COLPREFIX a', 'COLPREFIX', 'family prefix'),
                ('CMUTATE planes x#1 SET a:q 1', 'SET', 'DELROW'), ('CROW planes x#1 a:q', 'a:q', 'COLUMNS'),
                ('CSCAN planes 0 LIMIT 5', 'LIMIT', 'CSCAN'), ('CSCAN planes 0 STATS STATS', 'STATS', 'twice'),
                ('CSCAN planes 0 WHERE a:q', 'a:q', 'EXISTS'), ('CCOUNT planes BY BYTES', 'BYTES', 'CELLS'),
                ('CDELRANGE planes EVERYTHING', 'EVERYTHING', 'ALL'), ('CNEAR planes x#1 x#2', 'INDEX'),
                ('TABLE CREATE t FAMILY a COLOUR red', 'COLOUR', 'FAMILY'), ('TABLE LIST LIKE a', 'LIKE', 'MATCH'),
                ('FAMILY ALTER planes a', 'VERSIONS'), ('INDEX CREATE planes i OVER 1 a:q', 'OVER', 'ON'),
                ('INDEX CREATE planes i ON 2 a:q', 'ON 2'), ('INDEX CREATE planes i ON 1 a:q COVERING', 'COVERING'),
                ('CAGG planes BY FAMILY SUM a:q', 'SUM', 'REDUCE SUM'), ('CAGG planes BY FAMILY LOT a:q', 'LOT'),
                ('MULTI ATOMICALLY', 'ATOMICALLY')):
            if ON_MODEL:
                names = ()
            reply = self.refused(line, 'ERR', *names)
            if not ON_MODEL:
                self.assertTrue(reply.text.startswith('syntax error: '), reply.text)

    # Keys and values.

    def test_row_keys_that_do_not_fit(self):
        for key in ('', 'x', 'x#', 'x#y', 'x#1#2', 'x#9223372036854775808', b'\xff#1'):
            self.refused(['CPUT', 'planes', key, 'a:q', '1'], 'BADKEY')
            self.refused(['CGET', 'planes', key, 'a:q'], 'BADKEY')
            self.refused(['CSCAN', 'planes', '0', 'ROWS', '2', 'x#1', key], 'BADKEY')
        for key in ('0', '-1', 'x', '9223372036854775808'):
            self.refused(['CPUT', 'log', key, 'a:q', '1'], 'BADKEY')
        for line in ('CINCRBY log * a:q 1', 'CMUTATE log * PUT a:q 1', 'CAPPEND log * a:q 1'):
            self.refused(line, 'BADKEY')

    def test_the_component_is_named(self):
        self.refused('CPUT planes x#y a:q 1', 'BADKEY', 'i64')

    def test_qualifiers_that_do_not_fit(self):
        for qualifier in ('', 'x', '256', '-1'):
            self.refused(f'CPUT planes x#1 u:{qualifier} 1', 'BADKEY')
            self.refused(f'CGET planes x#1 u:{qualifier}', 'BADKEY')
            self.refused(f'CROW planes x#1 COLUMNS 1 u:{qualifier}', 'BADKEY')
        self.refused('CROW planes x#1 COLPREFIX u x', 'BADKEY')
        self.refused('CROW planes x#1 COLRANGE u [x +', 'BADKEY')
        self.refused('CSCAN planes 0 PREFIX x#y', 'BADKEY')
        self.refused('CSCAN planes 0 RANGE [x#y +', 'BADKEY')
        self.refused('CDELRANGE planes PREFIX x#y', 'BADKEY')

    def test_what_is_too_large(self):
        self.refused(['CPUT', 'planes', LONG_KEY + '#1', 'a:q', '1'], 'TOOLARGE')
        self.refused(['CPUT', 'planes', 'x#1', 'a:' + LONG_QUALIFIER, '1'], 'TOOLARGE')
        if not ON_MODEL:
            self.refused(['CPUT', 'planes', 'x#1', 'a:q', 'v' * 1000001], 'TOOLARGE')
            self.ask(['CPUT', 'planes', 'x#2', 'a:q', 'v' * 1000000])
            self.digest = self.state()
            self.refused('CAPPEND planes x#2 a:q v', 'TOOLARGE')
        families = ' '.join(f'FAMILY f{number}' for number in range(257))
        self.refused(f'TABLE CREATE many {families}', 'TOOLARGE')

    def test_the_largest_that_fits(self):
        self.ask(['CPUT', 'planes', 'k' * (64 * 1024 - 2) + '#1', 'a:q', '1'])
        self.ask(['CPUT', 'planes', 'x#1', 'a:' + 'q' * (16 * 1024), '1'])
        self.ask('TABLE CREATE many ' + ' '.join(f'FAMILY f{number}' for number in range(256)))
        self.digest = self.state()
        self.refused('FAMILY ADD many f256', 'TOOLARGE')

    def test_values_that_do_not_fit(self):
        for kind, text in (('i8', '128'), ('i8', '-129'), ('u8', '256'), ('u8', '-1'), ('byte', '-1'),
                           ('u64', '18446744073709551616'), ('i64', '1.0'), ('i64', '+1'),
                           ('i64', ''), ('i64', ' 1'), ('f32', '1e39'), ('f64', '1e309'),
                           ('f64', 'nan'), ('f64', ''), ('bool', 'yes'), ('uuid', 'x'),
                           ('string', b'\xff')):
            self.refused(['CPUT', 'planes', 'x#1', 'a:q', text, 'AS', kind], 'BADVALUE')
        self.refused('CPUT planes x#1 n:q five', 'BADVALUE')
        self.refused(['CAPPEND', 'planes', 'x#1', 's:q', b'\xff'], 'BADVALUE')

    def test_types_that_do_not_fit(self):
        self.refused('CPUT planes x#1 n:q 5 AS i32', 'WRONGTYPE')
        self.refused('CINCRBY planes x#1 a:q 1', 'WRONGTYPE', "column 'a:q' holds bytes '", ", no integer")
        self.refused('CINCRBYFLOAT planes x#1 n:q 1.5', 'WRONGTYPE', "column 'n:q' holds i64, no float")
        self.refused('CAPPEND planes x#1 n:q x', 'WRONGTYPE')
        self.refused('CINCRBY planes x#1 s:q 1', 'WRONGTYPE')
        self.refused('CMUTATE planes x#1 PUT a:z 1 INCR a:q 1', 'WRONGTYPE')

    def test_the_column_at_fault_is_named(self):
        self.ask('CPUT planes x#1 n:max 9223372036854775807 a:f 1.7e308 AS f64 a:text 9223372036854775807')
        self.digest = self.state()
        for line, code, text in (
                ('CPUT planes x#1 a:q 1 n:q five', 'BADVALUE', "column 'n:q': 'five' is not a value of type i64"),
                ('CMUTATE planes x#1 PUT a:q 256 AS u8', 'BADVALUE', "column 'a:q': '256' is out of range for type u8"),
                (['CAPPEND', 'planes', 'x#1', 's:q', b'\xff'], 'BADVALUE', "column 's:q': '\\xff' is not valid UTF-8"),
                ('CINCRBY planes x#1 n:max 1', 'ERR',
                 "increment or decrement would overflow: column 'n:max' of type i64"),
                ('CINCRBY planes x#1 a:text 1', 'ERR',
                 "increment or decrement would overflow: column 'a:text' of type i64"),
                ('CMUTATE planes x#1 PUT a:q 1 INCR a:f 1.7e308', 'ERR',
                 "increment would produce NaN or Infinity: column 'a:f' of type f64"),
                ('CINCRBY planes x#1 n:q x', 'ERR', "value is not an integer or out of range: 'x' for column 'n:q'"),
                ('CMUTATE planes x#1 PUT a:q 1 INCR n:max 1.5', 'ERR',
                 "value is not an integer or out of range: '1.5' for column 'n:max'"),
                ('CPUT planes x#1 a:q 1 u:x 1', 'BADKEY', "qualifier in family 'u': component 1 (u8): 'x' is not"),
                ('CROW planes x#1 COLPREFIX u x', 'BADKEY', "qualifier in family 'u': "),
                ('CROW planes x#1 COLRANGE u [x +', 'BADKEY', "qualifier in family 'u': ")):
            self.refused(line, code, *([] if ON_MODEL else [text]))

    def test_results_that_do_not_fit(self):
        self.ask('CPUT planes x#1 n:q 9223372036854775807 a:f 1.7e308 AS f64 a:i inf AS f64')
        self.digest = self.state()
        self.refused('CINCRBY planes x#1 n:q 1', 'ERR')
        self.refused('CINCRBYFLOAT planes x#1 a:f 1.7e308', 'ERR')
        self.refused('CINCRBYFLOAT planes x#1 a:i 1', 'ERR')

    def test_a_version_that_cannot_be_followed(self):
        self.ask('CPUT planes x#1 n:q 1 TS 9223372036854775807')
        self.digest = self.state()
        self.refused('CINCRBY planes x#1 n:q 1', 'ERR')

    def test_values_of_an_index_search_that_do_not_fit(self):
        for line in ('CSCAN planes 0 INDEX by_n EQ 1 x', 'CSCAN planes 0 INDEX by_n BETWEEN [x +',
                     'CSCAN planes 0 INDEX by_n FROM 1 x', 'CNEAR planes INDEX by_n 1 x'):
            self.refused(line, 'BADVALUE')

    def test_a_second_row_in_a_unique_index(self):
        self.ask('CPUT planes x#1 a:key one TS 5')
        self.digest = self.state()
        self.refused('CPUT planes x#2 a:key one', 'NOTUNIQUE', 'by_key')
        self.refused('CMUTATE planes x#2 PUT a:q 1 PUT a:key one', 'NOTUNIQUE')
        self.ask('CPUT planes x#1 a:key two TS 6')
        self.ask('CPUT planes x#2 a:key one')
        self.digest = self.state()
        self.refused('CDEL planes x#1 a:key TIME 6 6', 'NOTUNIQUE')
        self.refused('CAPPEND planes x#3 a:key one', 'NOTUNIQUE')

    def test_unique_over_duplicates(self):
        self.ask('CPUT planes x#1 a:d same')
        self.ask('CPUT planes x#2 a:d same')
        self.ask('INDEX CREATE planes twice ON 1 a:d UNIQUE')
        self.digest = self.state()
        self.refused('CSCAN planes 0 INDEX twice', 'NOTUNIQUE', 'twice')
        self.refused('CNEAR planes INDEX twice 1 x', 'NOTUNIQUE')
        self.ask('CPUT planes x#3 a:d same')  # it holds nothing, so it refuses nothing
        self.ask('INDEX DROP planes twice')

    def test_a_family_that_an_index_names_cannot_be_dropped(self):
        self.refused('FAMILY DROP planes n', 'ERR', 'by_n')
        self.ask('INDEX DROP planes by_n')
        self.ask('FAMILY DROP planes n')

    # Syntax.

    def test_syntax_errors(self):
        for line in (
                'CPUT planes x#1 a:q', 'CPUT planes x#1 a:q 1 b', 'CPUT planes x#1 a:q 1 AS',
                'CPUT planes x#1 a:q 1 AS nonsense', 'CPUT planes x#1 a:q 1 TS -1',
                'CPUT planes x#1 a:q 1 TS x', 'CPUT planes x#1 a:q 1 TS 9223372036854775808',
                'CPUT planes x#1 a:q 1 TTL 0', 'CPUT planes x#1 a:q 1 TTL 1.5s',
                'CPUT planes x#1 a:q 1 TTL 1w', 'CPUT planes x#1 a:q 1 TS 1 TS 2',
                'CPUT planes x#1 NX XX a:q 1', 'CPUT planes x#1 NX NX a:q 1',
                'CPUT planes x#1 IF a:q a:q 1', 'CPUT planes x#1 IF a:q SOUNDS like a:q 1',
                'CGET planes x#1 a', 'CGET planes x#1 a:q AT x', 'CGET planes x#1 a:q WITHTS WITHTS',
                'CGET planes x#1 a:q nonsense', 'CROW planes x#1 COLUMNS 2 a', 'CROW planes x#1 COLUMNS 0',
                'CROW planes x#1 VERSIONS 0', 'CROW planes x#1 VERSIONS 1 VERSIONS 2',
                'CROW planes x#1 PERROW 0', 'CROW planes x#1 SKIP -1', 'CROW planes x#1 GROUPS 0',
                'CROW planes x#1 TIME 1', 'CROW planes x#1 TIME x y', 'CROW planes x#1 COUNT 5',
                'CROW planes x#1 COLRANGE a x y', 'CSCAN planes 0 RANGE x y', 'CSCAN planes 0 COUNT 0',
                'CSCAN planes 0 COUNT x', 'CSCAN planes 0 CELLS 0', 'CSCAN planes 0 REVERSE REVERSE',
                'CSCAN planes 0 ROWS 0', 'CSCAN planes 0 ROWS 2 x#1', 'CSCAN planes 0 EQ 1 5',
                'CSCAN planes 0 INDEX by_n PREFIX x', 'CSCAN planes 0 INDEX by_n RANGE - +',
                'CSCAN planes 0 INDEX by_n FROM 1 5 EQ 1 5', 'CSCAN planes 0 BY ROWS',
                'CSCAN planes 0 SAMPLE 2', 'CSCAN planes nonsense', 'CCOUNT planes BY nonsense',
                'CDELRANGE planes', 'CDELRANGE planes RANGE - ', 'CDELRANGE planes ALL ALL',
                'CMUTATE planes x#1', 'CMUTATE planes x#1 JUMP', 'CMUTATE planes x#1 IF ROW EXISTS',
                'CMUTATE planes x#1 IF ROW EXISTS ELSE', 'CMUTATE planes x#1 DELROW ELSE DELROW',
                'CMUTATE planes x#1 PUT a:q', 'CMUTATE planes x#1 INCR a 1', 'CEXISTS planes x#1 a',
                'TABLE', 'TABLE nonsense', 'TABLE CREATE t KEY nonsense', 'TABLE CREATE t KEY f64.utf8',
                'TABLE CREATE t KEY utf8 KEY utf8', 'TABLE CREATE t FAMILY', 'TABLE CREATE t nonsense',
                'TABLE CREATE t FAMILY f TYPE nonsense', 'TABLE CREATE t FAMILY f VERSIONS 0',
                'TABLE CREATE t FAMILY f TTL 0', 'TABLE CREATE t FAMILY f GC maxversions=0',
                'TABLE CREATE t FAMILY f GC "maxversions=1 &&"', 'TABLE CREATE t FAMILY f GC ""',
                'TABLE CREATE t FAMILY f GC maxage=1d VERSIONS 1', 'FAMILY ADD planes f TTL 1d GC maxage=1d',
                'FAMILY ALTER planes a', 'FAMILY ALTER planes a ORDER utf8', 'FAMILY ALTER planes a GROUP g',
                'FAMILY ALTER planes a TYPE i64 TYPE i64', 'INDEX CREATE planes i', 'TABLE LIST LIKE x',
                'INDEX CREATE planes i ON 2 a:q', 'INDEX CREATE planes i ON 1 a:q UNIQUE UNIQUE',
                'INDEX CREATE planes i ON 1 a:q INCLUDE 0', 'KEYSPACE nonsense', 'CWATCH planes'):
            self.refused(line, 'ERR')

    def test_arity(self):
        for line in ('CPUT', 'CPUT planes x#1', 'CGET planes x#1', 'CROW planes', 'CSCAN planes',
                     'CCOUNT', 'CINCRBY planes x#1 n:q', 'CINCRBY planes x#1 n:q 1 2', 'EXEC 1',
                     'CAPPEND planes x#1 a:q', 'CDEL planes', 'CNEAR planes', 'SELECT'):
            self.refused(line, 'ERR', 'wrong number of arguments' if line != 'EXEC 1' else '')

    def test_an_unknown_command(self):
        self.refused('CFLY planes', 'ERR', 'CFLY')

    def test_bad_filters(self):
        self.refused(['CROW', 'planes', 'x#1', 'FILTER', 'pass | nonsense'], 'BADFILTER')
        self.refused(['CPUT', 'planes', 'x#1', 'IF', 'FILTER', '(', 'a:q', '1'], 'BADFILTER')
        self.refused(['CSCAN', 'planes', '0', 'WHERE', 'FILTER', ''], 'BADFILTER')

    # Order of checks.

    def test_each_kind_of_check_comes_before_the_next(self):
        bad_filter = "IF FILTER '('"
        for line, code in (
                ('CPUT nix "" zz:q', 'ERR'),                                  # arity
                ('CPUT nowhere/nix "" zz:q 1 AS nonsense', 'ERR'),            # syntax
                ('CPUT nowhere/nix "" zz:q 1', 'NOKEYSPACE'),
                ('CPUT nix "" zz:q 1', 'NOTABLE'),
                ('CPUT planes "" zz:q 1', 'BADKEY'),                          # row key
                ('CPUT planes x#1 zz:q 1 u:x 1', 'NOFAMILY'),                 # then left to right
                ('CPUT planes x#1 u:x 1 zz:q 1', 'BADKEY'),
                ('CPUT planes x#1 n:q x AS i32 zz:q 1', 'WRONGTYPE'),         # type before value
                ('CPUT planes x#1 n:q x zz:q 1', 'BADVALUE'),
                (f'CPUT planes x#1 {bad_filter} zz:q 1', 'NOFAMILY'),         # filters after names
                (f'CPUT planes x#1 {bad_filter} n:q x', 'BADVALUE'),
                (f'CPUT planes x#1 XX {bad_filter} a:none 1', 'BADFILTER'),   # before conditions
                ('CSCAN planes 0 INDEX zz EQ 1 x COLUMNS 1 zz', 'NOINDEX'),
                ('CSCAN planes 0 INDEX by_n EQ 1 x COLUMNS 1 zz', 'BADVALUE'),
                ('CSCAN nix 0 INDEX zz', 'NOTABLE'),
                ('CSCAN planes 0 ROWS 1 x WHERE zz:q EXISTS', 'BADKEY')):
            self.refused(line, code)

    def test_conditions_never_hide_an_error(self):
        self.refused('CMUTATE planes x#1 IF ROW MISSING PUT zz:q 1', 'NOFAMILY')
        self.refused('CMUTATE planes x#1 IF ROW EXISTS DELROW ELSE PUT n:q x', 'BADVALUE')
        self.refused('CPUT planes x#1 IF ROW MISSING n:q x', 'BADVALUE')
        self.refused('CPUT planes x#1 NX a:q 1 n:q x', 'BADVALUE')

    def test_what_only_running_shows_comes_after_the_conditions(self):
        self.expect('CMUTATE planes x#1 IF ROW MISSING INCR a:q 1', [0])
        self.refused('CMUTATE planes x#1 IF ROW EXISTS INCR a:q 1', 'WRONGTYPE')

    def test_a_refused_put_uses_up_no_record_number(self):
        self.expect('CPUT log * a:q 1', b'1')
        self.digest = self.state()
        self.refused('CPUT log * zz:q 1', 'NOFAMILY')
        self.assertIsNone(self.ask('CPUT log * XX a:q 1'))
        self.expect('CPUT log * a:q 1', b'2')

    # Transactions.

    def test_transactions(self):
        self.refused('EXEC', 'ERR', 'EXEC without MULTI')
        self.refused('DISCARD', 'ERR', 'DISCARD without MULTI')
        self.ask('MULTI')
        self.refused('CPUT', 'ERR', connection=self.connection)
        self.ask('CPUT planes x#9 a:q 1')
        self.refused('EXEC', 'EXECABORT')

    def test_atomic_answers_with_the_whole_first_error(self):
        self.ask('MULTI ATOMIC')
        self.ask('CPUT planes x#9 a:q 1')
        self.ask('CGET plains x#9 a:q')
        reply = self.refused('EXEC', 'EXECABORT')
        if not ON_MODEL:
            self.assertEqual(reply.text, "NOTABLE no table 'plains' in keyspace '0'")
        self.expect('CEXISTS planes x#9', 0)

    def test_without_atomic_an_error_stands_in_its_place(self):
        self.ask('MULTI')
        self.ask('CPUT planes x#9 zz:q 1')
        self.ask('CPUT planes x#9 a:q 1')
        replies = self.raw('EXEC')
        self.assertEqual((replies[0].code, replies[1]), ('NOFAMILY', b'OK'))


class ErrorsOverResp2Test(ErrorsTest):
    """Errors are the same on the older protocol."""

    PROTOCOL = 2


class StaleCursorTest(Conversation):
    OPTIONS = {'snapshot-cursor-timeout': '1'}

    def test_a_snapshot_cursor_dies_with_the_server(self):
        if ON_MODEL:
            self.skipTest('the model has no cursors')
        self.ask('TABLE CREATE t FAMILY f')
        for number in range(10):
            self.ask(f'CPUT t r{number} f:q 1')
        cursor = self.ask('CSCAN t 0 SNAPSHOT COUNT 3')[0]
        self.ask('CPUT t r55 f:q 1')
        rows = self.ask(['CSCAN', 't', cursor, 'SNAPSHOT', 'COUNT', '100', 'KEYSONLY'])[1]
        self.assertNotIn(b'r55', rows)
        self.server.crash()
        self.connection = self.connect()
        self.refused(['CSCAN', 't', cursor, 'SNAPSHOT', 'COUNT', '3'], 'STALECURSOR')

    def test_a_plain_cursor_survives_the_server(self):
        if ON_MODEL:
            self.skipTest('the model has no cursors')
        self.ask('TABLE CREATE t FAMILY f')
        for number in range(10):
            self.ask(f'CPUT t r{number} f:q 1')
        cursor, rows = self.ask('CSCAN t 0 COUNT 3 KEYSONLY')
        self.server.restart()
        self.connection = self.connect()
        while cursor != b'0':
            cursor, more = self.ask(['CSCAN', 't', cursor, 'COUNT', '3', 'KEYSONLY'])
            rows += more
        self.assertEqual(rows, [b'r%d' % number for number in range(10)])


if __name__ == '__main__':
    unittest.main()
