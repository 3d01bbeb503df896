"""Retention to the microsecond, by an injected clock: what is due is gone, in every read."""

import unittest

from cellar_server import not_on_a_follower, wait_until
from conversation import ON_MODEL, Conversation

MICROS = 10**6


class RetentionTest(Conversation):
    OPTIONS = {'appendfsync': 'always'}

    def versions(self, column='f:a', row='r'):
        """The timestamps of a column's live versions."""
        entries = dict(self.row(f'CROW t {row} VERSIONS ALL'))
        return [version[0] for version in entries.get(column, [])]

    def test_every_read_forgets_at_the_same_moment(self):
        self.ask('TABLE CREATE t FAMILY f TYPE i64 TTL 10s')
        self.ask('INDEX CREATE t i ON 1 f:a')
        self.ask(f'CPUT t r f:a 5 TS {self.now}')
        began = self.now
        for passed, alive in ((10 * MICROS - 1, True), (10 * MICROS, False)):
            with self.subTest(passed=passed):
                self.set_time(began + passed)
                self.expect('CGET t r f:a', 5 if alive else None)
                self.expect('CMGET t r f:a', [5 if alive else None])
                self.expect('CEXISTS t r', int(alive))
                self.expect('CEXISTS t r f:a', int(alive))
                self.expect('CCOUNT t BY CELLS', int(alive))
                self.assertEqual(self.keys('CSCAN t 0'), ['r'] if alive else [])
                self.assertEqual(self.keys('CSCAN t 0 INDEX i'), ['r'] if alive else [])
                self.expect('CNEAR t r', [b'r', 0] if alive else None)
                self.expect('CNEAR t INDEX i 1 5', [[5], b'r', 0] if alive else None)
                info = self.ask('TABLE INFO t')
                self.assertEqual((info[b'rows'], info[b'cells']), (int(alive), int(alive)))
                self.expect('CMUTATE t r IF f:a EXISTS DEL f:none', [1, 0] if alive else [0])
        self.expect('CDEL t r', 0)

    def test_an_increment_does_not_see_what_is_due(self):
        self.ask('TABLE CREATE t FAMILY f TYPE i64')
        self.ask('CPUT t r f:a 5 TTL 10s')
        self.advance(10)
        self.expect('CINCRBY t r f:a 1', 1)

    def test_an_increment_keeps_the_expiry(self):
        self.ask('TABLE CREATE t FAMILY f TYPE i64')
        self.ask('CPUT t r f:a 5 TTL 10s')
        self.advance(9)
        self.expect('CINCRBY t r f:a 1', 6)
        self.advance(1)
        self.expect('CGET t r f:a', None)

    def test_a_cells_own_ttl_counts_from_the_write_whatever_its_timestamp(self):
        self.ask('TABLE CREATE t FAMILY f')
        self.ask('CPUT t r f:a 1 TS 0 TTL 5s f:b 1 TS %d TTL 5s' % (self.now + 100 * MICROS))
        self.advance(5)
        self.expect('CCOUNT t', 0)

    def test_when_the_newest_expires_the_next_takes_over(self):
        self.ask('TABLE CREATE t FAMILY f')
        self.ask('CPUT t r f:a old TS 1')
        self.ask('CPUT t r f:a new TTL 5s')
        self.expect('CGET t r f:a', b'new')
        self.advance(5)
        self.expect('CGET t r f:a', b'old')

    def test_a_rank_counts_expired_versions_too(self):
        self.ask('TABLE CREATE t FAMILY f VERSIONS 2')
        self.ask('CPUT t r f:a 1 TS 1')
        self.ask('CPUT t r f:a 2 TS 2')
        self.ask('CPUT t r f:a 3 TS 3 TTL 5s')
        self.advance(5)
        self.assertEqual(self.versions(), [2])  # 1 was dropped when 3 came, and does not come back

    def test_an_older_version_than_the_limit_is_never_there(self):
        self.ask('TABLE CREATE t FAMILY f VERSIONS 2')
        self.ask('CPUT t r f:a 3 TS 3 f:a 2 TS 2')
        self.expect('CPUT t r f:a 1 TS 1', b'OK')
        self.assertEqual(self.versions(), [3, 2])
        self.ask('CDEL t r f:a TIME 3 3')
        self.assertEqual(self.versions(), [2])

    def test_and_or_and_parentheses(self):
        self.ask('TABLE CREATE t FAMILY f GC "(maxversions=1 && maxage=10s) || maxage=30s"')
        now = self.now
        self.ask(f'CPUT t r f:a 1 TS {now - 20 * MICROS} f:a 2 TS {now - 5 * MICROS} f:a 3 TS {now}')
        self.assertEqual(self.versions(), [now, now - 5 * MICROS])
        self.advance(5)
        self.assertEqual(self.versions(), [now])
        self.advance(24.999999)
        self.assertEqual(self.versions(), [now])
        self.advance(0.000001)
        self.assertEqual(self.versions(), [])

    def test_timestamp_zero_has_no_age(self):
        self.ask('TABLE CREATE t FAMILY f TTL 1s')
        self.ask('CPUT t r f:a 1 TS 0')
        self.advance(10**6)
        self.assertEqual(self.versions(), [0])

    def test_timestamp_zero_stays_behind_versions_that_are_too_old(self):
        self.ask('TABLE CREATE t FAMILY f TTL 1s')
        self.ask('CPUT t r f:a zero TS 0 f:a old TS 5')
        self.expect('CGET t r f:a', b'zero')
        self.assertEqual(self.versions(), [0])
        self.expect('CCOUNT t BY CELLS', 1)

    def test_a_tighter_policy_holds_for_what_is_there_at_once(self):
        self.ask('TABLE CREATE t FAMILY f')
        self.ask('CPUT t r f:a 1 TS 1 f:a 2 TS 2 f:a 3 TS 3')
        self.ask('FAMILY ALTER t f VERSIONS 1')
        self.assertEqual(self.versions(), [3])

    def test_a_looser_policy_brings_nothing_back(self):
        self.ask('TABLE CREATE t FAMILY f VERSIONS 1 TTL 10s')
        self.ask('CPUT t r f:a 1 TS 0')
        self.ask('CPUT t r f:b 1')
        self.advance(10)
        self.ask('FAMILY ALTER t f GC NONE')
        self.assertEqual(self.versions('f:b'), [])
        self.assertEqual(self.versions(), [0])

    def test_options_that_an_alter_does_not_name_stay(self):
        self.ask('TABLE CREATE t FAMILY f VERSIONS 2 TTL 10s')
        self.ask('FAMILY ALTER t f VERSIONS 3')
        now = self.now
        self.ask(' '.join(['CPUT t r'] + [f'f:a v TS {now + n}' for n in range(5)]))
        self.assertEqual(len(self.versions()), 3)
        self.advance(11)
        self.assertEqual(self.versions(), [])
        self.ask('FAMILY ALTER t f GC maxversions=1')   # replaces both
        now = self.now
        self.ask(f'CPUT t r f:a v TS {now - 100 * MICROS}')
        self.assertEqual(self.versions(), [now - 100 * MICROS])
        self.ask('FAMILY ALTER t f TTL 50s')              # and is replaced
        self.assertEqual(self.versions(), [])

    def test_time_stands_still_inside_exec(self):
        self.ask('TABLE CREATE t FAMILY f')
        self.ask('MULTI')
        for _ in range(3):
            self.ask('CPUT t r f:a v')
        self.ask('CROW t r VERSIONS ALL')
        replies = self.ask('EXEC')
        stamps = [version[0] for version in replies[3][b'f:a']]
        self.assertEqual(sorted(set(stamps), reverse=True), stamps)  # one new timestamp a command
        self.assertEqual(len(stamps), 3)

    def test_a_clock_set_back(self):
        self.ask('TABLE CREATE t FAMILY f')
        self.ask('CPUT t r f:a 1')
        first = self.versions()[0]
        self.connection.call(b'DEBUG', b'SET-TIME', b'%d' % (first - 1000 * MICROS))
        self.ask('CPUT t r f:a 2')
        self.assertEqual(len(self.versions()), 2)
        self.assertGreater(self.versions()[0], first)      # timestamps still increase
        self.ask('CPUT t r f:b 3 TTL 10s')
        self.connection.call(b'DEBUG', b'SET-TIME', b'%d' % (first - 990 * MICROS))
        self.expect('CGET t r f:b', None)                  # expiry follows the clock

    def test_all_of_it_after_a_restart(self):
        if ON_MODEL:
            self.skipTest('the model does not restart')
        self.ask('TABLE CREATE t FAMILY f VERSIONS 2')
        self.ask('CPUT t r f:a 1 TS 1 f:a 2 TS 2 f:a 3 TS 3 f:b 1 TTL 5s')
        self.ask('CPUT t r f:s 1')
        stamp = self.versions('f:s')[0]
        for way in (self.server.crash, self.server.restart, lambda: self.ask('SAVE'), self.server.crash,
                    lambda: self.ask('DEBUG RELOAD')):
            way()
            self.connection = self.connect()
            self.set_time(self.now)
            self.assertEqual(self.versions(), [3, 2])
            self.assertEqual(len(self.versions('f:b')), 1)
        self.ask('CPUT t r f:s 2')
        self.assertGreater(self.versions('f:s')[0], stamp)
        self.advance(5)
        self.assertEqual(self.versions('f:b'), [])


@unittest.skipIf(ON_MODEL, 'counters and the log are the server\'s')
class ArrivalTest(Conversation):
    """Timestamps that are taken, and most likely a mistake: INFO counts them and the log tells."""

    OPTIONS = {'ts-future-max': '3600'}

    def counts(self):
        """(in the future, dead on arrival, not in micros)"""
        found = self.server.client().info('stats')
        return tuple(found[name] for name in ('cells_in_future', 'cells_dead_on_arrival', 'cells_not_in_micros'))

    def wait_for(self, line):
        wait_until(lambda: line in self.server.log(), self.server.log)

    @not_on_a_follower("the leader counts them")
    def test_odd_timestamps_are_counted_and_told(self):
        self.ask('TABLE CREATE t FAMILY f FAMILY short TTL 1h FAMILY two VERSIONS 2')
        now = self.now
        before = self.counts()

        def counted(line):
            nonlocal before
            self.ask(line)
            found, old = self.counts(), before
            before = found
            return tuple(a - b for a, b in zip(found, old))

        self.assertEqual((0, 0, 0), counted('CPUT t r f:a 1'))
        for ts in (0, 1, 5_000, now, now - 86_400 * MICROS, now + 3_599 * MICROS):
            self.assertEqual((0, 0, 0), counted(f'CPUT t r f:a 1 TS {ts}'), ts)
        self.assertEqual((1, 0, 0), counted(f'CPUT t r f:a 1 TS {now + 3_601 * MICROS}'))
        self.assertEqual((0, 0, 1), counted(f'CPUT t r f:a 1 TS {now // 1_000}'))
        self.assertEqual((0, 0, 2), counted(f'CPUT t r f:a 1 TS {now // MICROS} f:b 2 TS {now // 1_000}'))
        self.assertEqual((0, 1, 1), counted(f'CMUTATE t r DEL f:a PUT short:a 1 TS {now // 1_000}'))
        self.assertEqual((0, 1, 0), counted(f'CPUT t r short:a 1 TS {now - 7_200 * MICROS}'))
        self.expect('CGET t r short:a', None)
        for ts in (10, 20, 30):
            self.assertEqual((0, 0, 0), counted(f'CPUT t r two:a 1 TS {ts}'), ts)
        self.assertEqual((0, 1, 0), counted('CPUT t r two:a 1 TS 15'))
        # What is refused, or does not happen, is not counted.
        self.refused(f'CPUT t r f:a 1 TS {now // 1_000} none:a 1', 'NOFAMILY')
        self.ask(f'CPUT t r NX f:b 1 TS {now // 1_000}')
        self.assertEqual(before, self.counts())
        self.wait_for("further in the future than ts-future-max allows for; the last: TS "
                      f"{now + 3_601 * MICROS} of column 'f:a' in table 't'")
        self.wait_for('in milliseconds or seconds, by the look of it')
        self.wait_for('drops them at once: nobody will read them')
        self.server.client().config_set('ts-future-max', 0)
        self.assertEqual((0, 0, 0), counted(f'CPUT t r f:a 1 TS {now + 10 ** 15}'))


if __name__ == '__main__':
    unittest.main()
