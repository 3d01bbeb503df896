"""The design examples of the field as tests that read like documentation.

Where an example comes from: the fleet, the bus lines and the tenants from Bigtable's guides to schema
design; the Webtable from the Bigtable paper; the blog from the early Cassandra articles on super
columns; the call centre and the populations from WiredTiger's manual. The data here are our own.
"""

import unittest

from conversation import ON_MODEL, Conversation

DAY = 86400


class FleetTest(Conversation):
    """Aircraft that report height and speed: three ways to lay them out."""

    def test_one_row_an_aircraft_with_its_history_as_versions(self):
        """Few versions of few columns: the newest is a plain CGET, the history is VERSIONS."""
        self.ask('TABLE CREATE planes KEY utf8#utf8 FAMILY state TYPE i32 VERSIONS 3')
        for minute, height in enumerate((0, 1200, 5400, 9800)):
            self.ask(f'CPUT planes lh#D-ABCD state:height {height} TS {minute + 1}')
        self.ask('CPUT planes lh#D-XYZA state:height 100 TS 1 state:speed 210 TS 1')
        self.ask('CPUT planes af#F-GKXA state:height 11000 TS 1')
        self.expect('CGET planes lh#D-ABCD state:height', 9800)
        self.expect('CGET planes lh#D-ABCD state:height AT 3', 5400)
        self.expect('CGET planes lh#D-ABCD state:height AT 1', None)  # the fourth version is gone
        self.assertEqual(self.row('CROW planes lh#D-ABCD VERSIONS ALL'),
                         [('state:height', [[4, 9800], [3, 5400], [2, 1200]])])
        self.assertEqual(self.keys('CSCAN planes 0 PREFIX lh#'), ['lh#D-ABCD', 'lh#D-XYZA'])
        self.assertEqual(self.keys('CSCAN planes 0 WHERE state:height GT 9000'),
                         ['af#F-GKXA', 'lh#D-ABCD'])

    def test_one_row_a_report_newest_first(self):
        """A tall table: the key ends in a descending time, so a scan begins with the newest."""
        self.ask('TABLE CREATE reports KEY utf8#utf8#-u64 FAMILY state TYPE i32')
        for minute, height in enumerate((0, 1200, 5400, 9800)):
            self.ask(f'CPUT reports lh#D-ABCD#{minute} state:height {height} TS 0')
        self.ask('CPUT reports lh#D-ABC#7 state:height 1 TS 0')
        self.assertEqual(self.scan('CSCAN reports 0 PREFIX lh#D-ABCD# COUNT 2')[:2], [
            ('lh#D-ABCD#3', [('state:height', 9800)]), ('lh#D-ABCD#2', [('state:height', 5400)])])
        # Between minute 2 and minute 1: positions in the order, so the later one comes first.
        self.assertEqual(self.keys('CSCAN reports 0 RANGE [lh#D-ABCD#2 [lh#D-ABCD#1'),
                         ['lh#D-ABCD#2', 'lh#D-ABCD#1'])
        self.assertEqual(self.keys('CSCAN reports 0 RANGE [lh#D-ABC [lh#D-ABC'), ['lh#D-ABC#7'])
        self.expect('CCOUNT reports PREFIX lh#D-ABCD#', 4)

    def test_one_row_a_day_with_a_column_a_report(self):
        """A wide table: the time is the qualifier; a slice of the day is a COLRANGE."""
        self.ask('TABLE CREATE days KEY utf8#utf8 FAMILY height TYPE i32 ORDER u32')
        for second, height in ((0, 0), (9, 150), (10, 160), (3600, 11000)):
            self.ask(f'CPUT days D-ABCD#2026-11-21 height:{second} {height} TS 0')
        self.assertEqual(self.row('CROW days D-ABCD#2026-11-21 COLRANGE height [9 (3600'),
                         [('height:9', 150), ('height:10', 160)])
        self.assertEqual(self.row('CROW days D-ABCD#2026-11-21 COLREVERSE PERROW 1'),
                         [('height:3600', 11000)])
        self.expect('CCOUNT days PREFIX D-ABCD# BY COLUMNS', 4)


class ManyRowsTest(Conversation):
    """A page of the blog needs the posts that a list names, in that order, in one round trip."""

    def test_rows_in_the_order_asked(self):
        self.ask('TABLE CREATE blog FAMILY text')
        self.ask('CPUT blog b text:title Second')
        self.expect('CROWS blog 2 b a', [{b'text:title': b'Second'}, {}])

    def test_a_cell_that_expires_can_be_copied_with_its_expiry(self):
        self.ask('TABLE CREATE s FAMILY f')
        self.ask('CPUT s r f:q v TS 5 EXPIREAT 2795406000000000')
        self.expect('CROW s r WITHTTL', {b'f:q': [[5, b'v', 2795406000000000]]})


class WebtableTest(Conversation):
    """Pages under reversed domains, so that a site's pages are neighbours."""

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE web KEY utf8 FAMILY contents VERSIONS 3 GROUP pages '
                 'FAMILY anchor FAMILY language TYPE string VERSIONS 1')
        for version, page in enumerate(('<html>one', '<html>two', '<html>three', '<html>four'), 1):
            self.ask(['CPUT', 'web', 'com.cnn.www', 'contents:', page, 'TS', version])
        self.ask('CPUT web com.cnn.www anchor:cnnsi.com CNN TS 9 anchor:my.look.ca CNN.com TS 8 '
                 'language: EN TS 3')
        self.ask('CPUT web com.cnn.edition contents: "<html>edition" TS 1 language: EN TS 1')
        self.ask('CPUT web org.example contents: "<html>example" TS 1 language: DE TS 1')

    def test_the_newest_page_and_the_pages_before(self):
        self.expect('CGET web com.cnn.www contents:', b'<html>four')
        self.expect('CGET web com.cnn.www contents: AT 2', b'<html>two')
        self.assertEqual(self.row('CROW web com.cnn.www COLUMNS 1 contents VERSIONS ALL'), [
            ('contents:', [[4, b'<html>four'], [3, b'<html>three'], [2, b'<html>two']])])

    def test_a_site_is_a_prefix(self):
        self.assertEqual(self.keys('CSCAN web 0 PREFIX com.cnn.'), ['com.cnn.edition', 'com.cnn.www'])

    def test_who_links_here(self):
        self.assertEqual(self.row('CROW web com.cnn.www COLUMNS 1 anchor'),
                         [('anchor:cnnsi.com', b'CNN'), ('anchor:my.look.ca', b'CNN.com')])
        self.assertEqual(self.row('CROW web com.cnn.www COLPREFIX anchor my.'),
                         [('anchor:my.look.ca', b'CNN.com')])

    def test_languages_without_the_pages(self):
        self.assertEqual(self.scan('CSCAN web 0 COLUMNS 1 language'), [
            ('com.cnn.edition', [('language:', b'EN')]), ('com.cnn.www', [('language:', b'EN')]),
            ('org.example', [('language:', b'DE')])])

    def test_a_page_that_is_fetched_again_is_swapped_in_one_step(self):
        self.expect('CMUTATE web org.example IF language: EQ DE PUT contents: new PUT language: FR',
                    [1, b'OK', b'OK'])
        self.expect('CMUTATE web org.example IF language: EQ DE DELROW', [0])
        self.expect('CMGET web org.example contents: language: anchor:x', [b'new', b'FR', None])


class BusTest(Conversation):
    """Positions of buses by company#route#vehicle#time."""

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE buses KEY utf8#utf8#u32#u64 FAMILY loc TYPE f64')
        for company, route, vehicle, at in (
                ('MTA', 'M86-SBS', 824, 5), ('MTA', 'M86-SBS', 824, 40), ('MTA', 'M86-SBS', 91, 7),
                ('MTA', 'M86', 824, 1), ('NYW', 'B1', 3, 1)):
            self.ask(f'CPUT buses {company}#{route}#{vehicle}#{at} loc:lat 40.{at} loc:lon -73.5')

    def test_a_company_a_route_a_vehicle(self):
        self.expect('CCOUNT buses PREFIX MTA#', 4)
        self.assertEqual(self.keys('CSCAN buses 0 PREFIX MTA#M86#'), ['MTA#M86#824#1'])
        self.assertEqual(self.keys('CSCAN buses 0 PREFIX MTA#M86-SBS#824'),
                         ['MTA#M86-SBS#824#5', 'MTA#M86-SBS#824#40'])
        # Vehicles are numbers: 91 comes before 824.
        self.assertEqual(self.keys('CSCAN buses 0 PREFIX MTA#M86-SBS#')[0], 'MTA#M86-SBS#91#7')

    def test_where_a_vehicle_was_last(self):
        self.assertEqual(self.scan('CSCAN buses 0 PREFIX MTA#M86-SBS#824 REVERSE COUNT 1')[0],
                         ('MTA#M86-SBS#824#40', [('loc:lat', 40.4), ('loc:lon', -73.5)]))

    def test_all_routes_that_begin_alike(self):
        self.expect('CCOUNT buses PREFIX MTA#M8', 4)

    def test_two_companies_in_one_scan(self):
        self.expect('CCOUNT buses PREFIX MTA#M86# PREFIX NYW#', 2)

    def test_half_a_number_is_no_prefix(self):
        self.refused('CSCAN buses 0 PREFIX MTA#M86#x', 'BADKEY')


class TimeSeriesTest(Conversation):
    """Newest first by a descending component: no reversed timestamps in the client."""

    def test_a_change_of_all_rows_that_match(self):
        self.ask('TABLE CREATE m KEY utf8#-u64 FAMILY v TYPE f64')
        for at in range(90, 112):
            self.ask(f'CPUT m d1#{at} v:t {at + 0.5} v:u 1')
        self.expect('CUPDATE m PREFIX d1# WHERE v:t GT 100 DEL v:t', 12)
        self.expect('CUPDATE m PREFIX d1# WHERE v:t MISSING LIMIT 5 DELROW', 5)
        self.expect('CCOUNT m', 17)

    def test_the_latest_reading_of_each_device(self):
        self.ask('TABLE CREATE m KEY utf8#-u64 FAMILY v TYPE f64')
        for device, at in (('d1', 100), ('d1', 200), ('d2', 50), ('d3', 7), ('d3', 8)):
            self.ask(f'CPUT m {device}#{at} v:t {at / 10}')
        self.assertEqual(self.scan('CSCAN m 0 EACH 1 1'), [
            ('d1#200', [('v:t', 20.0)]), ('d2#50', [('v:t', 5.0)]), ('d3#8', [('v:t', 0.8)])])
        self.assertEqual(self.keys('CSCAN m 0 EACH 1 1'), ['d1#200', 'd2#50', 'd3#8'])  # all devices

    def test_the_newest_readings_of_a_sensor(self):
        self.ask('TABLE CREATE series KEY utf8#-u64 FAMILY v TYPE f64 TTL 30d')
        for at in (100, 200, 300):
            self.ask(f'CPUT series cpu#{at} v:load 0.{at}')
        self.ask('CPUT series disk#999 v:load 1')
        self.assertEqual(self.scan('CSCAN series 0 PREFIX cpu# COUNT 2')[:2],
                         [('cpu#300', [('v:load', 0.3)]), ('cpu#200', [('v:load', 0.2)])])
        self.expect('CNEAR series cpu#250', [b'cpu#200', 1])  # the last reading not after 250

    def test_old_readings_are_never_seen_from_the_moment_they_are_due(self):
        self.ask('TABLE CREATE series KEY utf8#-u64 FAMILY v TTL 30d')
        self.ask('CPUT series cpu#1 v:load 1')
        self.advance(30 * DAY - 1)
        self.expect('CCOUNT series', 1)
        self.advance(1)
        self.expect('CCOUNT series', 0)
        self.expect('CEXISTS series cpu#1', 0)
        self.expect('CNEAR series cpu#1', None)

    def test_counters_of_a_day(self):
        self.ask('TABLE CREATE hits KEY utf8#-u64 FAMILY n TYPE u64')
        for _ in range(3):
            self.ask('CINCRBY hits home#20261121 n:views 1')
        self.expect('CGET hits home#20261121 n:views', 3)


class TenantsTest(Conversation):
    """Many tenants in one table, each under a prefix of its own."""

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE app KEY utf8#utf8 FAMILY d')
        for tenant in ('acme', 'acme2', 'zeta'):
            for number in range(3):
                self.ask(f'CPUT app {tenant}#user{number} d:name n{number}')

    def test_a_tenant_sees_only_its_rows(self):
        self.expect('CCOUNT app PREFIX acme#', 3)
        self.assertEqual(self.keys('CSCAN app 0 RANGE [acme [acme'),
                         ['acme#user0', 'acme#user1', 'acme#user2'])

    def test_a_tenant_leaves(self):
        self.expect('CDELRANGE app PREFIX acme#', 3)
        self.assertEqual(self.keys('CSCAN app 0')[0], 'acme2#user0')
        self.expect('CCOUNT app', 6)

    def test_a_keyspace_for_each_tenant_keeps_names_apart(self):
        self.ask('KEYSPACE CREATE acme')
        self.ask('TABLE CREATE acme/users FAMILY d')
        self.ask('CPUT acme/users u1 d:name Ann')
        self.expect('TABLE LIST', [b'app'])
        self.ask('SELECT acme')
        self.expect('TABLE LIST', [b'users'])
        self.expect('CGET users u1 d:name', b'Ann')
        self.ask('SELECT 0')
        self.ask('KEYSPACE DROP acme')
        self.refused('CGET acme/users u1 d:name', 'NOKEYSPACE', 'acme')


def time_uuid(number):
    """A version 1 UUID whose time is `number`, spelled so that byte order is not time order."""
    return f'{number:08x}-0000-1000-8000-00000000000{9 - number % 10}'


class BlogTest(Conversation):
    """A blog in four tables: authors, posts, tagged posts in order of time, comments."""

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE authors KEY utf8 FAMILY is TYPE string')
        self.ask('TABLE CREATE posts KEY utf8 FAMILY is TYPE string')
        self.ask('TABLE CREATE tagged KEY utf8 FAMILY post ORDER timeuuid TYPE string')
        self.ask('TABLE CREATE comments KEY utf8 FAMILY c ORDER timeuuid:utf8 TYPE string')
        for name, mail in (('arin', 'arin@example.org'), ('bo', 'bo@example.org')):
            self.ask(f'CPUT authors {name} is:mail {mail} is:city Bonn')
        for number in range(1, 13):
            slug, author = f'post-{number}', 'arin' if number % 2 else 'bo'
            self.ask(f'CPUT posts {slug} is:title "Post {number}" is:author {author}')
            for tag in ('__notag__',) + (('cats',) if number % 3 == 0 else ()):
                self.ask(f'CPUT tagged {tag} post:{time_uuid(number)} {slug}')
        for number, (who, text) in enumerate((('bo', 'First!'), ('eve', 'No.'), ('bo', 'Yes.')), 1):
            self.ask(['CPUT', 'comments', 'post-12', f'c:{time_uuid(number)}:name', who,
                      f'c:{time_uuid(number)}:text', text])

    def test_the_ten_newest_posts_of_all_and_their_authors(self):
        newest = self.row('CROW tagged __notag__ COLREVERSE PERROW 10')
        slugs = [slug.decode() for _, slug in newest]
        self.assertEqual(slugs, [f'post-{number}' for number in range(12, 2, -1)])
        authors = [self.ask(f'CGET posts {slug} is:author').decode() for slug in slugs[:2]]
        self.assertEqual(authors, ['bo', 'arin'])
        self.expect('CMGET authors bo is:mail is:city', [b'bo@example.org', b'Bonn'])

    def test_the_newest_posts_of_a_tag(self):
        self.assertEqual([slug for _, slug in self.row('CROW tagged cats COLREVERSE PERROW 2')],
                         [b'post-12', b'post-9'])

    def test_older_posts_by_the_place_where_the_page_ended(self):
        page = self.row('CROW tagged __notag__ COLREVERSE PERROW 5')
        last = page[-1][0].split(':', 1)[1]
        more = self.row(f'CROW tagged __notag__ COLRANGE post - ({last} COLREVERSE PERROW 5')
        self.assertEqual([slug for _, slug in more],
                         [b'post-7', b'post-6', b'post-5', b'post-4', b'post-3'])

    def test_the_comments_of_a_post_are_super_columns_in_order_of_time(self):
        self.assertEqual([text for name, text in self.row('CROW comments post-12')
                          if name.endswith(':text')], [b'First!', b'No.', b'Yes.'])
        self.assertEqual(self.row('CROW comments post-12 COLREVERSE GROUPS 1'), [
            (f'c:{time_uuid(3)}:text', b'Yes.'), (f'c:{time_uuid(3)}:name', b'bo')])
        self.expect('CCOUNT comments BY GROUPS', 3)

    def test_a_comment_is_taken_away_whole(self):
        self.expect(f'CDEL comments post-12 COLPREFIX c {time_uuid(2)}', 2)
        self.expect('CCOUNT comments BY GROUPS', 2)

    def test_a_post_with_its_tags_is_written_in_one_transaction(self):
        self.ask('MULTI ATOMIC')
        self.ask('CPUT posts post-13 is:title New is:author bo')
        self.ask(f'CPUT tagged cats post:{time_uuid(13)} post-13')
        self.ask(f'CPUT tagged __notag__ nofamily:{time_uuid(13)} post-13')
        self.refused('EXEC', 'EXECABORT', 'NOFAMILY', 'nofamily')
        self.expect('CEXISTS posts post-13', 0)
        self.expect('CCOUNT tagged BY COLUMNS', 16)


class CallCentreTest(Conversation):
    """Customers and their calls, by record number, found by indexes."""

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE customers KEY recno FAMILY is TYPE string')
        self.ask('TABLE CREATE calls KEY recno FAMILY of TYPE u64 FAMILY is TYPE string')
        self.ask('INDEX CREATE customers phone ON 1 is:phone INCLUDE 2 is:id is:name UNIQUE')
        self.ask('INDEX CREATE calls by_customer ON 2 of:customer of:date INCLUDE 2 is:kind of:agent')
        for number, (name, phone) in enumerate((('Professor Oak', '111'), ('Lorelei', '222'),
                                                ('Dratini', '123')), 1):
            self.expect(['CPUT', 'customers', '*', 'is:id', number, 'is:name', name, 'is:phone', phone,
                         'is:address', f'Route {number}'], b'%d' % number)
        for date, customer, agent, kind in (
                (32, 1, 2, 'billing'), (33, 1, 2, 'billing'), (34, 2, 2, 'tech'), (35, 1, 1, 'sales'),
                (31, 1, 1, 'tech'), (36, 10, 1, 'tech')):
            self.ask(f'CPUT calls * of:customer {customer} of:date {date} of:agent {agent} '
                     f'is:kind {kind} is:notes none')

    def stats(self, line):
        return {key.decode(): value for key, value in self.ask(line + ' STATS')[2].items()}

    def test_who_calls_from_this_number(self):
        line = 'CSCAN customers 0 INDEX phone EQ 1 123 COLUMNS 2 is:id is:name'
        self.assertEqual(self.scan(line), [('3', [('is:id', b'3'), ('is:name', b'Dratini')])])

    def test_the_last_three_calls_of_a_customer(self):
        line = ('CSCAN calls 0 INDEX by_customer EQ 1 1 REVERSE COUNT 3 '
                'COLUMNS 3 of:date is:kind of:agent')
        reply = self.ask(line)
        self.assertEqual([row[0] for row in reply[1]][:3], [b'4', b'2', b'1'])
        self.assertEqual(reply[1][0][1], {b'is:kind': b'sales', b'of:agent': 1, b'of:date': 35})

    def test_a_covering_index_leaves_the_table_alone(self):
        if ON_MODEL:
            self.skipTest('the model has no statistics')
        covered = self.stats('CSCAN customers 0 INDEX phone EQ 1 123 COLUMNS 2 is:id is:name')
        whole = self.stats('CSCAN customers 0 INDEX phone EQ 1 123')
        self.assertEqual(covered['rows'], 1)
        self.assertGreater(whole['cells'], covered['cells'])

    def test_two_customers_cannot_have_one_number(self):
        self.refused('CPUT customers * is:phone 123', 'NOTUNIQUE', 'phone')
        self.expect('CCOUNT customers', 3)
        self.expect('CPUT customers * is:phone 124', b'4')  # the refused one used up no number

    def test_a_customer_who_moves_is_found_under_the_new_number_at_once(self):
        self.ask('CPUT customers 3 is:phone 999')
        self.assertEqual(self.keys('CSCAN customers 0 INDEX phone EQ 1 123'), [])
        self.assertEqual(self.keys('CSCAN customers 0 INDEX phone EQ 1 999'), ['3'])
        self.ask('CDEL customers 3 is:phone TIME %d +inf' % self.now)
        self.expect('CNEAR customers INDEX phone 1 200', [[b'222'], b'2', 1])

    def test_calls_between_two_dates(self):
        self.assertEqual(self.keys('CSCAN calls 0 INDEX by_customer EQ 1 1 BETWEEN [32 (35'), ['1', '2'])
        self.expect('CCOUNT calls INDEX by_customer EQ 1 1', 4)
        self.expect('CNEAR calls INDEX by_customer 2 1 34', [[1, 35], b'4', 1])


class PopulationTest(Conversation):
    """Populations by country and year: column groups, indexes, projections."""

    ROWS = (('AU', 1900, 4000000), ('AU', 2000, 19053186), ('CAN', 1900, 5500000),
            ('CAN', 2000, 31099561), ('UK', 1900, 369000000), ('UK', 2000, 59522468),
            ('USA', 1900, 76212168), ('USA', 2000, 301279593))

    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE population KEY recno FAMILY c')
        for country, year, people in self.ROWS:
            self.ask(f'CPUT population * c:country {country} AS string c:year {year} AS u16 '
                     f'c:population {people} AS u64')
        self.ask('INDEX CREATE population country ON 1 c:country AS string')
        self.ask('INDEX CREATE population country_year ON 2 c:country AS string c:year AS u16')
        self.ask('INDEX CREATE population newest ON 2 c:country AS string -c:year AS u16 '
                 'INCLUDE 1 c:population')
        self.ask('INDEX CREATE population main ON 0 INCLUDE 2 c:country c:year')

    def test_by_country(self):
        self.assertEqual(self.keys('CSCAN population 0 INDEX country EQ 1 AU'), ['1', '2'])

    def test_by_country_and_year(self):
        self.assertEqual(self.keys('CSCAN population 0 INDEX country_year EQ 2 USA 1900'), ['7'])
        self.assertEqual(self.keys('CSCAN population 0 INDEX country_year EQ 1 USA REVERSE'), ['8', '7'])
        self.assertEqual(self.keys('CSCAN population 0 INDEX country_year FROM 2 UK 1950'),
                         ['6', '7', '8'])

    def test_newest_first(self):
        self.assertEqual(self.scan('CSCAN population 0 INDEX newest EQ 1 CAN COLUMNS 1 c:population'), [
            ('4', [('c:population', 31099561)]), ('3', [('c:population', 5500000)])])

    def test_projections_of_one_column_of_the_key_and_of_nothing(self):
        self.assertEqual(self.scan('CSCAN population 0 INDEX country EQ 1 UK COLUMNS 1 c:year'), [
            ('5', [('c:year', 1900)]), ('6', [('c:year', 2000)])])
        self.assertEqual(self.keys('CSCAN population 0 INDEX country EQ 1 UK'), ['5', '6'])
        self.expect('CCOUNT population INDEX country EQ 1 UK', 2)
        self.expect('CNEAR population INDEX country 1 UK', [[b'UK'], b'5', 0])

    def test_a_column_group_is_read_by_row_key(self):
        rows = self.scan('CSCAN population 0 INDEX main COLUMNS 2 c:country c:year COUNT 2')
        self.assertEqual(rows[2], ('3', [('c:country', b'CAN'), ('c:year', 1900)]))
        self.assertEqual(len(rows), 8)
        self.assertEqual(self.keys('CSCAN population 0 INDEX main BETWEEN [3 (5'), ['3', '4'])

    def test_numbers_in_an_index_sort_as_numbers(self):
        self.ask('INDEX CREATE population size ON 1 c:population AS u64')
        self.assertEqual(self.keys('CSCAN population 0 INDEX size')[:2], ['1', '3'])
        self.assertEqual(self.keys('CSCAN population 0 INDEX size BETWEEN [76212168 +'), ['7', '8', '5'])

    def test_an_index_shows_no_expired_value(self):
        self.ask('CPUT population 1 c:country NZ AS string TTL 5s')
        self.assertEqual(self.keys('CSCAN population 0 INDEX country EQ 1 NZ'), ['1'])
        self.advance(5)
        self.assertEqual(self.keys('CSCAN population 0 INDEX country EQ 1 NZ'), [])
        self.assertEqual(self.keys('CSCAN population 0 INDEX country EQ 1 AU'), ['1', '2'])


if __name__ == '__main__':
    unittest.main()
