"""Reads that take several slices see one moment, while other clients write all the time."""

import threading
import unittest

from conversation import ON_MODEL, Conversation

ACCOUNTS = 4000
COLUMNS = 5          # of a row, besides the balance, so that a scan takes many slices
WIDE = 20000
READS = 25


@unittest.skipIf(ON_MODEL, 'the model has one client at a time')
class ConsistencyTest(Conversation):
    def setUp(self):
        super().setUp()
        self.ask('TABLE CREATE bank KEY u32 FAMILY f TYPE i64 FAMILY g TYPE i64 GROUP other')
        load = [[b'CPUT', b'bank', b'%d' % row, b'f:balance', b'100', b'g:balance', b'100'] +
                [word for column in range(COLUMNS) for word in (b'f:c%d' % column, b'0')]
                for row in range(ACCOUNTS)]
        for at in range(0, ACCOUNTS, 500):
            self.assertEqual(set(self.connection.pipeline(load[at:at + 500])), {b'OK'})
        self.stop = threading.Event()
        self.errors = []

    def write_while(self, make_batch, read):
        """Calls `read` READS times while another client sends batch after batch."""
        writer = self.connect()

        def work():
            number = 0
            while not self.stop.is_set():
                for reply in writer.pipeline(make_batch(number)):
                    if type(reply).__name__ == 'Error':
                        self.errors.append(reply)
                number += 1

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(READS):
                read()
        finally:
            self.stop.set()
            thread.join()
        self.assertEqual(self.errors, [])

    @staticmethod
    def transfer(number):
        one, other = b'%d' % (number * 7919 % ACCOUNTS), b'%d' % (number * 104729 % ACCOUNTS)
        return [[b'MULTI'], [b'CINCRBY', b'bank', one, b'f:balance', b'-5'],
                [b'CINCRBY', b'bank', other, b'g:balance', b'5'], [b'EXEC']] * 5

    def test_a_scan_sees_all_of_a_transaction_or_nothing(self):
        def read():
            cursor, rows = self.ask('CSCAN bank 0 COUNT 1000000 COLUMNS 2 f:balance g:balance')
            self.assertEqual((cursor, len(rows)), (b'0', ACCOUNTS))
            self.assertEqual(sum(sum(row[1].values()) for row in rows), 200 * ACCOUNTS)
        self.write_while(self.transfer, read)

    def test_a_snapshot_scan_in_many_calls_sees_one_moment(self):
        def read():
            cursor, total, count = '0', 0, 0
            while True:
                cursor, rows = self.ask(['CSCAN', 'bank', cursor, 'SNAPSHOT', 'COUNT', 700, 'COLUMNS',
                                         2, 'f:balance', 'g:balance'])
                total += sum(sum(row[1].values()) for row in rows)
                count += len(rows)
                if cursor == b'0':
                    break
            self.assertEqual((total, count), (200 * ACCOUNTS, ACCOUNTS))
        self.write_while(self.transfer, read)

    def test_a_count_sees_both_rows_of_a_move_or_neither(self):
        def move(number):
            return [[b'MULTI'], [b'CPUT', b'bank', b'%d' % (ACCOUNTS + number % 50), b'f:x', b'1'],
                    [b'CDEL', b'bank', b'%d' % (ACCOUNTS + (number - 1) % 50)], [b'EXEC']]
        self.ask('CPUT bank %d f:x 1' % (ACCOUNTS + 49))
        self.write_while(move, lambda: self.expect('CCOUNT bank', ACCOUNTS + 1))

    def test_a_wide_row_is_read_whole(self):
        for at in range(0, WIDE, 1000):
            self.ask(['CPUT', 'bank', '999999'] + [
                word for column in range(at, at + 1000) for word in (f'g:{column:05}', '0')])

        def change(number):
            return [[b'CMUTATE', b'bank', b'999999', b'INCR', b'g:00001', b'1',
                     b'INCR', b'g:%05d' % (WIDE - 1), b'-1']] * 10

        def read():
            columns = self.row('CROW bank 999999')
            self.assertEqual(len(columns), WIDE)
            self.assertEqual(sum(value for _, value in columns), 0)
        self.write_while(change, read)

    def test_an_index_and_its_table_agree_at_every_moment(self):
        self.ask('INDEX CREATE bank by_balance ON 1 f:balance INCLUDE 1 g:balance')

        def read():
            _, rows = self.ask('CSCAN bank 0 INDEX by_balance COUNT 1000000 '
                               'COLUMNS 2 f:balance g:balance')
            self.assertEqual(len(rows), ACCOUNTS)
            balances = [row[1][b'f:balance'] for row in rows]
            self.assertEqual(balances, sorted(balances))
            self.assertEqual(sum(sum(row[1].values()) for row in rows), 200 * ACCOUNTS)
        self.write_while(self.transfer, read)

    def test_a_range_is_deleted_under_readers(self):
        """Each row goes atomically: no reader sees half of one."""
        reader = self.connect()
        half = []

        def work():
            while not self.stop.is_set():
                reply = reader.call(b'CSCAN', b'bank', b'0', b'COUNT', b'1000000')
                half.extend(row for row in reply[1] if len(row[1].pairs) != COLUMNS + 2)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            self.expect('CDELRANGE bank RANGE [1000 +', ACCOUNTS - 1000)
        finally:
            self.stop.set()
            thread.join()
        self.assertEqual(half, [])
        self.expect('CCOUNT bank', 1000)


if __name__ == '__main__':
    unittest.main()
