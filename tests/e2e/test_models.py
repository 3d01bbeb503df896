"""The models of classic documents, written down as somebody would who has the manual's pages alone: cellar-model(7),
cellar-query(7), cellar-feeds(7).

Bigtable's web pages and planes, Cassandra's blog of super columns, WiredTiger's call centre, and an application of time
series. Each asserts how many commands it took: a question that takes one more than it did is a step back. Test_examples.py
has more variants of the same models; here each is told from the first command to the last.
"""

import datetime
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cellar_server import not_on_a_follower  # noqa: E402
from conversation import ON_MODEL, Conversation  # noqa: E402
from model.times import least_uuid  # noqa: E402

HOUR = 3600 * 10**6
DAY = 24 * HOUR


class Counted(Conversation):
    """It is noon, at the beginning, of a day of which the tests before have seen nothing."""

    def setUp(self):
        super().setUp()
        self.set_time((self.now // DAY + 1) * DAY + DAY // 2)
        self.taken = 0

    def day(self, days):
        """The date so many days after today."""
        return datetime.datetime.fromtimestamp(self.now // 10**6 + days * 86400, datetime.timezone.utc).strftime('%Y-%m-%d')

    def midnight(self, days):
        return (self.now // DAY + days) * DAY

    def say(self, line):
        self.taken += 1
        return self.ask(line)

    def gives(self, line, reply):
        self.assertEqual(reply, self.say(line), line)

    def is_refused(self, line, *names):
        self.taken += 1
        self.refused(line, *names)

    def took(self, commands):
        """That many since it was asked last."""
        self.assertEqual(commands, self.taken)
        self.taken = 0


class WebPagesTest(Counted):
    """The Webtable of the Bigtable paper: figure 1, and what figures 2 and 3 do with it."""

    def test_pages_with_anchors_and_versions(self):
        self.say('TABLE CREATE web FAMILY anchor TYPE string FAMILY language TYPE string VERSIONS 1 '
                 'FAMILY contents VERSIONS 3 GROUP bulk')
        self.took(1)
        self.say('CPUT web com.cnn.www contents: <html>old TS now-30d')
        self.say(f'CPUT web com.cnn.www contents: <html>one TS {self.day(-1)}')
        self.say('CPUT web com.cnn.www contents: <html>two TS now-1h')
        self.say('CPUT web com.cnn.www contents: <html>three language: EN anchor:cnnsi.com CNN '
                 'anchor:my.look.ca CNN.com TS now-11d')
        self.say('CPUT web com.cnn.edition contents: <html>edition language: EN anchor:cnnsi.com Edition')
        self.say('CPUT web org.example contents: <html>example language: DE')
        self.took(6)
        self.advance(1)
        # The page now, as it was half an hour ago, at the beginning of this day, and of yesterday.
        for at, page in (('', b'<html>three'), ('AT now-30m', b'<html>two'), (f'AT {self.day(0)}', b'<html>one'),
                         (f'AT {self.day(-1)}', b'<html>one'), (f'AT {self.day(-1)}T00:00:00Z', b'<html>one'),
                         (f'AT {self.day(-2)}', None)):  # it is the fourth version, which is not kept
            self.gives(f'CGET web com.cnn.www contents: {at}', page)
        self.took(6)
        versions = self.say(f'CROW web com.cnn.www COLUMNS 1 contents VERSIONS ALL TIME {self.day(0)} now')[b'contents:']
        self.assertEqual([b'<html>three', b'<html>two'], [page for _, page in versions])
        # Figure 2: one link comes, another goes, in one step.
        self.gives('CMUTATE web com.cnn.www PUT anchor:www.c-span.org CNN DEL anchor:www.abc.com', [1, b'OK', 0])
        # Figure 3: the anchors of a page; those of hosts that a pattern names; those of the last ten days.
        self.gives('CROW web com.cnn.www COLUMNS 1 anchor',
                   {b'anchor:cnnsi.com': b'CNN', b'anchor:my.look.ca': b'CNN.com', b'anchor:www.c-span.org': b'CNN'})
        self.gives('CROW web com.cnn.www COLUMNS 1 anchor FILTER \'qualifier ~ ".*\\.com"\'', {b'anchor:cnnsi.com': b'CNN'})
        self.gives('CROW web com.cnn.www COLUMNS 1 anchor TIME now-10d +inf',
                   {b'anchor:cnnsi.com': b'CNN', b'anchor:www.c-span.org': b'CNN'})
        # A site is one range, and the pages are not read for its languages.
        self.gives('CSCAN web 0 PREFIX com.cnn. COLUMNS 1 language',
                   [b'0', [[b'com.cnn.edition', {b'language:': b'EN'}], [b'com.cnn.www', {b'language:': b'EN'}]]])
        # The pages with the most links, and who links most.
        self.gives('CAGG web BY KEY REDUCE COUNT anchor AS links SORT links DESC LIMIT 0 1', [[[b'com.cnn.www'], {b'links': 3}]])
        self.gives('CAGG web BY QUALIFIER 1 REDUCE ROWS anchor AS pages HAVING pages GT 1', [[[b'cnnsi.com'], {b'pages': 2}]])
        self.took(8)

    @unittest.skipIf(ON_MODEL, 'the model makes no UUIDs')
    def test_planes(self):
        """The guides' table of positions: a row for each report, of one plane one range, found by when it came."""
        self.say('TABLE CREATE planes KEY airline=utf8#plane=utf8#at=timeuuid FAMILY pos TYPE f64 TTL 7d')
        for height, lat in ((0, 50.03), (9000, 50.9), (11000, 51.5)):
            self.say(f'CPUT planes LH#D-AIMA#now pos:height {height} pos:lat {lat}')
            self.say(f'CPUT planes UA#N2639U#now pos:height {height / 2} pos:lat 41.97')
            self.advance(1800)
        self.took(7)

        def positions(line):
            reply = self.say(line)
            self.assertEqual(b'0', reply[0])
            return [(row.rsplit(b'#', 1)[0].decode(), cells[b'pos:lat']) for row, cells in reply[1]]

        # The last one of every plane; a plane's last hour; its day; the one at a moment.
        self.assertEqual([('UA#N2639U', 41.97), ('LH#D-AIMA', 51.5)], positions('CSCAN planes 0 EACH 2 1 REVERSE'))
        self.assertEqual([('LH#D-AIMA', 50.9), ('LH#D-AIMA', 51.5)],
                         positions('CSCAN planes 0 RANGE [LH#D-AIMA#now-1h [LH#D-AIMA'))
        self.assertEqual([('LH#D-AIMA', lat) for lat in (50.03, 50.9, 51.5)],
                         positions(f'CSCAN planes 0 RANGE [LH#D-AIMA#{self.day(0)} (LH#D-AIMA#{self.day(1)}'))
        self.assertEqual([], positions(f'CSCAN planes 0 RANGE [LH#D-AIMA#{self.day(-1)} (LH#D-AIMA#{self.day(0)}'))
        reply = self.say('CSCAN planes 0 RANGE [LH#D-AIMA [LH#D-AIMA#now-50m REVERSE COUNT 1')
        self.assertEqual([50.9], [cells[b'pos:lat'] for _, cells in reply[1]])
        # Who was above 10,000 feet, and what all of an airline did.
        self.gives('CAGG planes BY PART plane REDUCE MAX pos:height AS top HAVING top GT 10000', [[[b'D-AIMA'], {b'top': 11000.0}]])
        self.gives('CAGG planes PREFIX UA# REDUCE ROWS * AS reports REDUCE AVG pos:height AS height',
                   [[[], {b'reports': 3, b'height': 10000 / 3}]])
        self.took(7)
        self.advance(7 * 86400)
        self.gives('CCOUNT planes', 0)


class BlogTest(Counted):
    """Posts in order of time under each tag, and under each post its comments: super columns."""

    POSTS = (('hello', 'ann', ''), ('cats', 'bob', 'pets'), ('dogs', 'ann', 'pets'))

    def comment(self, ago, who, text):
        """The columns of one comment share a UUID, which its writer makes: each `now` would be another one."""
        at = least_uuid(b'%d' % (self.now - ago)).decode()
        self.say(f'CPUT comments dogs c:{at}:by {who} c:{at}:text "{text}"')
        return at

    @unittest.skipIf(ON_MODEL, 'the model makes no UUIDs')
    def test_posts_and_comments(self):
        self.say('TABLE CREATE posts FAMILY is TYPE string')
        self.say('TABLE CREATE tagged FAMILY post ORDER timeuuid TYPE string')
        self.say('TABLE CREATE comments FAMILY c ORDER timeuuid:utf8 TYPE string')
        self.took(3)
        for slug, author, tag in self.POSTS:
            self.say('MULTI ATOMIC')
            self.say(f'CPUT posts {slug} is:title "About {slug}" is:author {author}')
            for row in ('all', tag) if tag else ('all',):
                self.say(f'CPUT tagged {row} post:now {slug}')
            self.say('EXEC')
            self.advance(86400)
        self.took(14)
        first = self.comment(2 * HOUR, 'eve', 'No.')
        self.comment(HOUR // 2, 'bob', 'Yes!')
        self.took(2)

        def slugs(line):
            return [slug.decode() for slug in self.say(line).values()]

        # The newest posts, those of a tag, of the last 36 hours, of a day.
        self.assertEqual(['dogs', 'cats'], slugs('CROW tagged all COLREVERSE PERROW 2'))
        self.assertEqual(['cats', 'dogs'], slugs('CROW tagged pets'))
        self.assertEqual(['dogs'], slugs('CROW tagged all COLRANGE post [now-36h +'))
        self.assertEqual(['cats'], slugs(f'CROW tagged all COLRANGE post [{self.day(-2)} (now-1d'))
        self.assertEqual(['cats'], slugs(f'CROW tagged all COLRANGE post [{self.day(-2)} ({self.day(-1)}'))
        self.gives('CROWS posts 2 dogs cats COLUMNS 1 is:title', [{b'is:title': b'About dogs'}, {b'is:title': b'About cats'}])
        # The comments of a post: how many, the newest, those of the last hour.
        self.gives('CCOUNT comments ROWS 1 dogs BY GROUPS', 2)
        for options in ('GROUPS 1 COLREVERSE', 'COLRANGE c [now-1h +'):
            found = self.say(f'CROW comments dogs {options}')
            self.assertEqual({b'by': b'bob', b'text': b'Yes!'}, {name.rsplit(b':', 1)[1]: value for name, value in found.items()})
        self.took(9)
        # One goes, whole; and who is no author yet gets no post.
        self.gives(f'CDEL comments dogs COLPREFIX c {first}', 2)
        self.gives('CMUTATE posts birds IF ROW MISSING PUT is:author ann', [1, b'OK'])
        self.gives('CMUTATE posts birds IF ROW MISSING PUT is:author bob', [0])
        self.took(3)


class CallCentreTest(Counted):
    """Customers and their calls: typed columns, two indexes."""

    def test_typed_columns_and_indexes(self):
        self.say('TABLE CREATE customers KEY recno FAMILY c TYPE string')
        self.say('INDEX CREATE customers phone ON 1 c:phone INCLUDE 1 c:name UNIQUE')
        self.say('TABLE CREATE calls KEY recno FAMILY c TYPE string COLUMN customer u64 COLUMN agent u16')
        self.say('INDEX CREATE calls of_customer ON 2 c:customer -c:day INCLUDE 1 c:kind')
        self.took(4)
        for number, (name, phone) in enumerate((('Oak', '111'), ('Lorelei', '222'), ('Dratini', '123')), 1):
            self.gives(f'CPUT customers * c:name {name} c:phone {phone} c:address "Route {number}"', b'%d' % number)
        for ago, customer, agent, kind in ((9, 1, 2, 'billing'), (8, 1, 2, 'sales'), (7, 2, 2, 'tech'), (2, 1, 1, 'tech'),
                                           (1, 10, 1, 'tech')):
            self.say(f'CPUT calls * c:customer {customer} c:day {self.day(-ago)} c:agent {agent} c:kind {kind} c:notes -')
        self.took(8)
        # Who calls? What were the last three calls, and which since a day? None of them reads the table.
        for line, rows in (
                ('CSCAN customers 0 INDEX phone EQ 1 123 COLUMNS 1 c:name', [[b'3', {b'c:name': b'Dratini'}]]),
                ('CSCAN calls 0 INDEX of_customer EQ 1 1 COLUMNS 1 c:kind COUNT 3',
                 [[b'4', {b'c:kind': b'tech'}], [b'2', {b'c:kind': b'sales'}], [b'1', {b'c:kind': b'billing'}]]),
                (f'CSCAN calls 0 INDEX of_customer EQ 1 1 BETWEEN [{self.day(-8)} + COLUMNS 1 c:kind',
                 [[b'4', {b'c:kind': b'tech'}], [b'2', {b'c:kind': b'sales'}]])):
            reply = self.say(line if ON_MODEL else line + ' STATS')
            self.assertEqual(rows, reply[1], line)
            if not ON_MODEL:
                self.assertEqual(0, reply[2][b'groups'])
        # Without an index, and over all calls.
        self.gives('CSCAN calls 0 WHERE c:agent EQ 1 WHERE c:kind EQ tech KEYSONLY', [b'0', [b'4', b'5']])
        self.gives('CAGG calls BY VALUE c:agent REDUCE ROWS * AS calls SORT calls DESC', [[[2], {b'calls': 3}], [[1], {b'calls': 2}]])
        # What was written since an hour ago: cells have times by themselves.
        self.gives('CCOUNT calls TIME now-1h +inf', 5)
        self.took(6)
        # What must not be.
        self.is_refused('CPUT customers * c:name Eve c:phone 123', 'NOTUNIQUE', 'phone')
        self.is_refused('CPUT calls * c:customer Oak', 'BADVALUE', 'c:customer')
        self.is_refused('CPUT calls * c:agent 2 AS i64', 'WRONGTYPE', 'c:agent')
        self.gives('CPUT customers 3 c:phone 999', b'OK')
        self.gives('CPUT customers * c:name Eve c:phone 123', b'4')
        self.took(5)


class TimeSeriesTest(Counted):
    """Metrics of a week, and what becomes of them for a year."""

    def setUp(self):
        super().setUp()
        self.say('TABLE CREATE metrics FAMILY v TYPE f64 TTL 7d FAMILY c TYPE u64 TTL 7d')
        self.say('TABLE CREATE hourly FAMILY sum TYPE f64 AGGREGATE sum BUCKET 1h TTL 365d '
                 'FAMILY max TYPE f64 AGGREGATE max BUCKET 1h TTL 365d FAMILY n AGGREGATE sum BUCKET 1h TTL 365d')
        self.took(2)

    def write(self):
        """Readings of 9:10, 11:10, 11:40 o'clock, and of 21:00 of the evening before."""
        for at, load, requests in ((f'{self.day(-1)}T21:00:00Z', 8, 50), (f'{self.day(0)}T09:10:00Z', 0.5, 100),
                                   ('now-50m', 1.5, 700), ('now-20m', 2.5, 100)):
            self.say(f'CPUT metrics web1 v:load {load} TS {at} c:requests {requests} TS {at}')
        self.took(4)

    def test_what_charts_ask_for(self):
        self.write()
        self.gives('CGET metrics web1 v:load', 2.5)
        self.gives('CGET metrics web1 v:load AT now-1h', 0.5)
        nine = self.midnight(0) + 9 * HOUR
        of_today = f'CAGG metrics VERSIONS ALL TIME {self.day(0)} now BY TIME 1h REDUCE AVG v:load AS load'
        self.gives(of_today, [[[nine], {b'load': 0.5}], [[nine + 2 * HOUR], {b'load': 2.0}]])
        for fill, load in (('NULL', None), ('PREVIOUS', 0.5), ('0', 0)):
            self.gives(f'{of_today} FILL {fill}', [[[nine], {b'load': 0.5}], [[nine + HOUR], {b'load': load}],
                                                   [[nine + 2 * HOUR], {b'load': 2.0}]])
        # The day of Berlin begins at 22 o'clock of UTC, in summer.
        by_day = 'CAGG metrics VERSIONS ALL BY TIME 1d %s REDUCE COUNT v:load AS n REDUCE MAX v:load AS max'
        yesterday = self.midnight(-1)
        self.gives(by_day % '', [[[yesterday], {b'n': 1, b'max': 8.0}], [[yesterday + DAY], {b'n': 3, b'max': 2.5}]])
        self.gives(by_day % 'TZ Europe/Berlin', [[[yesterday - 2 * HOUR], {b'n': 1, b'max': 8.0}],
                                                 [[yesterday + 22 * HOUR], {b'n': 3, b'max': 2.5}]])
        # A counter that fell has begun anew: 100 more in half an hour; and 50 + 600 + 100 since yesterday.
        self.gives('CAGG metrics VERSIONS ALL TIME now-1h now REDUCE RATE c:requests AS rate', [[[], {b'rate': 100 / 1800}]])
        self.gives('CAGG metrics VERSIONS ALL BY KEY REDUCE DELTA c:requests AS more', [[[b'web1'], {b'more': 750}]])
        self.took(10)

    @unittest.skipIf(ON_MODEL, 'the model has no feeds')
    @not_on_a_follower('the feeds of a set tell of a change a moment behind its OK')
    def test_rollups_by_a_feed_outlive_what_they_were_made_of(self):
        self.addCleanup(self.ask, 'FEED DROP changes')
        self.say('FEED CREATE changes ON 1 metrics ENTRIES ROW')
        self.say('XGROUP CREATE changes rollup 0')
        self.took(2)
        self.write()
        self.say('WAITAOF 1 0 60000')  # a feed tells what is on disk
        entries = self.say('XREADGROUP GROUP rollup ann BLOCK 60000 STREAMS changes >')[b'changes']
        self.took(2)
        self.assertEqual(5, len(entries))  # one for each row that a command has changed, behind that of the schema
        for entry, flat in entries:
            fields = {name.decode(): value.decode() for name, value in zip(flat[::2], flat[1::2])}
            words = []
            for i in range(1, int(fields.get('changes', 0)) + 1):
                family, name = fields[f'column{i}'].split(':')
                if family == 'v':
                    at, value = fields[f'ts{i}'], fields[f'value{i}']
                    words += [f'sum:{name} {value} TS {at} max:{name} {value} TS {at} n:{name} 1 TS {at}']
            if words:
                self.say(f'CADD hourly {fields["row"]} ' + ' '.join(words))
            self.gives(f'XACK changes rollup {entry.decode()}', 1)
        self.took(9)  # a CADD and an XACK for each reading
        self.assertEqual(0, self.say('XPENDING changes rollup')[0])
        self.took(1)
        eleven = self.midnight(0) + 11 * HOUR
        wanted = {b'max:load': [[eleven, 2.5]], b'n:load': [[eleven, 2]], b'sum:load': [[eleven, 4.0]]}
        self.gives('CROW hourly web1 TIME now-1h now WITHTS', wanted)
        day = self.day(0)
        self.advance(8 * 86400)
        self.gives('CCOUNT metrics', 0)
        self.gives(f'CROW hourly web1 TIME {day}T11:00:00Z {day}T11:59:59Z WITHTS', wanted)
        self.gives(f'CAGG hourly VERSIONS ALL TIME {day} ({self.day(-7)} BY COLUMN REDUCE SUM sum REDUCE SUM n',
                   [[[b'n:load'], {b'sum(sum)': 0, b'sum(n)': 3}], [[b'sum:load'], {b'sum(sum)': 4.5, b'sum(n)': 0}]])
        self.took(4)
        self.advance(366 * 86400)
        self.gives('CCOUNT hourly', 0)


if __name__ == '__main__':
    unittest.main()
