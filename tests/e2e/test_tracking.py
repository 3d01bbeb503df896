"""Client side caching: who has read a row or a table is told when it changes."""

import time
import unittest

from cellar_server import not_with_local_reads, wait_until
from table_reads import OF_ROWS, OTHERS, READS, reading_commands
from wire import OK, WireTest

from model import resp

ALL = None  # the invalidation of everything


class TrackingCase(WireTest):
    OPTIONS = {"tracking-names": "row", "enable-debug-command": "yes"}

    def setUp(self):
        super().setUp()
        self.write("TABLE CREATE t FAMILY f FAMILY n TYPE i64")
        self.write("TABLE CREATE 3/t KEY i64 FAMILY f")
        self.write("CPUT t r f:a 1")
        self.reader = self.client(3)
        self.writer = self.client(3)
        self.heard = []

    def client(self, protocol):
        client = resp.Client(self.server.port, protocol, timeout=60)
        self.addCleanup(client.close)
        return client

    def ask(self, *words):
        """A command of the reader; the invalidations that come before its reply are kept for `told`."""
        self.reader.send(*words)
        while True:
            reply = self.reader.read()
            if not isinstance(reply, resp.Push):
                return reply
            self.assertEqual(reply[0], b"invalidate")
            self.heard += [ALL] if reply[1] is None else [name.decode() for name in reply[1]]

    def told(self):
        """The names in all invalidations since the last call; None stands for everything."""
        self.server.settle()
        self.ask("PING")
        names, self.heard = self.heard, []
        return names

    def track(self, *options):
        self.server.settle()
        self.assertEqual(self.ask("CLIENT", "TRACKING", "ON", *options), OK)

    def reads(self, *lines):
        for line in lines:
            self.ask(*line.split())

    def writes(self, *lines):
        for line in lines:
            reply = self.writer.call(*line.split())
            self.assertNotIsInstance(reply, resp.Error, line)

    def tracking_info(self):
        return dict(self.ask("CLIENT", "TRACKINGINFO").pairs)

    def info(self, field):
        return int(self.redis.info("everything")[field])


class TrackingTest(TrackingCase):
    """What is told, and to whom; with names of rows, which say it most exactly."""

    def test_a_row_that_was_read_is_told_once(self):
        self.track()
        self.reads("CGET t r f:a")
        self.writes("CPUT t other f:a 1")
        self.assertEqual(self.told(), [])
        self.writes("CPUT t r f:b 2", "CPUT t r f:c 3")
        self.assertEqual(self.told(), ["t:r"])

    def test_every_reading_command_and_every_change(self):
        self.track()
        for read in ("CGET t r f:a", "CMGET t r f:a f:b", "CROW t r", "CEXISTS t r", "CEXISTS t r f:a"):
            for change in ("CPUT t r f:a 1", "CPUT t r XX f:a 2", "CDEL t r f:a", "CPUT t r f:a 1", "CDEL t r",
                           "CINCRBY t r n:x 1", "CAPPEND t r f:a x", "CMUTATE t r PUT f:a 3"):
                self.reads(read)
                self.writes(change)
                self.assertEqual(self.told(), ["t:r"], (read, change))
        for read in ("CSCAN t 0", "CCOUNT t", "CNEAR t x", "TABLE INFO t", "EXISTS t", "TYPE t"):
            self.reads(read)
            self.writes("CPUT t r f:a 1")
            self.assertEqual(self.told(), ["t"], read)

    def test_no_reading_command_is_left_out(self):
        self.assertEqual(reading_commands(self.writer.call), {*READS, *OTHERS})
        self.writes("INDEX CREATE t i ON 1 f:a")
        self.track()
        for name, line in READS.items():
            self.reads(line)
            self.writes("CPUT t r f:a 1")
            self.assertEqual(self.told(), ["t:r" if name in OF_ROWS else "t"], line)

    def test_names_of_nothing(self):
        """No table can have them: they are refused as ever, and nothing is remembered."""
        self.track()
        lines = [*READS.values(), "XLEN t", "XRANGE t - +", "XREAD STREAMS t 0", "XINFO STREAM t", "FEED INFO t"]
        for line in lines:
            for name in ("", "0/", "/", "/t", "nowhere/", "0/0/t", "@s", "0/@s"):
                words = [name if word == "t" else word for word in line.split()]
                self.ask(*words)
                self.ask("MULTI")
                self.ask(*words)
                self.ask("EXEC")
        self.assertIn("PONG", str(self.ask("PING")))
        self.writes("CPUT t r f:a 1")
        self.assertEqual(self.told(), [])

    @not_with_local_reads("what another connection has deleted is counted when it is applied there")
    def test_what_a_long_deletion_leaves_behind_is_told(self):
        """Its client may leave in the middle: the slices that were done stay done."""
        for begin in range(0, 60_000, 1000):
            for i in range(begin, begin + 1000):
                self.writer.send("CPUT", "t", f"x{i:06d}", "f:a", "1")
            for _ in range(1000):
                self.writer.read()
        count = self.writer.call("CCOUNT", "t")
        self.track()
        while True:
            self.ask("CSCAN", "t", "0", "COUNT", "10")
            self.assertEqual(self.told(), [])
            deleter = self.client(3)
            number = deleter.call("CLIENT", "ID")
            deleter.send("CDELRANGE", "t", "PREFIX", "x")
            self.writer.call("CLIENT", "KILL", "ID", str(number))
            left = self.writer.call("CCOUNT", "t")
            if left < count:
                break
        self.assertEqual(self.told(), ["t"], left)

    def test_a_change_of_a_whole_table_goes_by_its_name(self):
        self.track()
        for change in ("CDELRANGE t PREFIX x", "FAMILY ADD t g", "FAMILY ALTER t g VERSIONS 1", "FAMILY DROP t g",
                       "INDEX CREATE t i ON 1 f:a", "INDEX DROP t i", "TABLE TRUNCATE t", "TABLE RENAME t u"):
            self.writes("CPUT t r f:a 1", "CPUT t x f:a 1")
            self.told()
            self.reads("CGET t r f:a", "CGET t x f:a", "CROW t none")
            self.writes(change)
            self.assertEqual(self.told(), ["t"], change)
        self.reads("CGET u r f:a")
        self.writes("DEL u")
        self.assertEqual(self.told(), ["u"])

    def test_what_changes_nothing_tells_nothing(self):
        self.track()
        self.reads("CGET t r f:a")
        self.writes("CPUT t r NX f:a 9", "CDEL t r f:none", "CMUTATE t r IF f:a EQ 7 PUT f:a 9", "CDELRANGE t PREFIX q")
        self.assertIsInstance(self.writer.call("CPUT", "t", "r", "nosuch:a", "1"), resp.Error)
        self.assertEqual(self.told(), [])

    def test_row_keys_come_in_canonical_form_and_other_keyspaces_by_name(self):
        self.track()
        self.reads("CGET 3/t 007 f:a")
        self.writes("SELECT 3", "CPUT t 7 f:a 1")
        self.assertEqual(self.told(), ["3/t:7"])

    def test_flushes_tell_null(self):
        self.track()
        for change in ("FLUSHALL", "FLUSHDB", "KEYSPACE DROP k"):
            # A follower, which hears of tables that go and not of a command, names one that goes alone.
            self.writes("FLUSHALL", "KEYSPACE CREATE k", "TABLE CREATE k/t FAMILY f", "TABLE CREATE t FAMILY f",
                        "TABLE CREATE u FAMILY f")
            self.reads("CGET t r f:a")
            self.told()
            self.writes(change)
            self.assertEqual(self.told(), [ALL], change)
            if not change.startswith("KEYSPACE"):
                self.writes("KEYSPACE DROP k")

    def test_own_writes_are_told_unless_noloop(self):
        self.track()
        self.reads("CGET t r f:a", "CPUT t r f:a 2")
        self.assertEqual(self.told(), ["t:r"])
        self.ask("CLIENT", "TRACKING", "OFF")
        self.track("NOLOOP")
        self.reads("CGET t r f:a", "CPUT t r f:a 3", "CGET t r f:a", "CDELRANGE t ALL")
        self.assertEqual(self.told(), [])
        self.reads("CGET t r f:a")
        self.writes("CPUT t r f:a 4")
        self.assertEqual(self.told(), ["t:r"])

    def test_transactions_tell_after_exec_and_nothing_when_taken_back(self):
        self.track()
        self.reads("CGET t r f:a")
        self.writes("MULTI ATOMIC", "CPUT t r f:a 2", "CINCRBY t r f:zzz x")
        self.assertIsInstance(self.writer.call("EXEC"), resp.Error)
        self.assertEqual(self.told(), [])
        self.writes("MULTI", "CPUT t r f:a 2", "CPUT t r f:a 3")
        self.assertEqual(self.told(), [])
        self.writes("EXEC")
        self.assertEqual(self.told(), ["t:r"])
        self.reads("MULTI", "CGET t r f:a", "EXEC")
        self.writes("CPUT t r f:a 5")
        self.assertEqual(self.told(), ["t:r"])

    def test_optin(self):
        self.track("OPTIN")
        self.reads("CGET t r f:a")
        self.writes("CPUT t r f:a 2")
        self.assertEqual(self.told(), [])
        self.reads("CLIENT CACHING YES", "CGET t r f:a", "CGET t s f:a")
        self.writes("CPUT t r f:a 3", "CPUT t s f:a 3")
        self.assertEqual(self.told(), ["t:r"])
        self.reads("CLIENT CACHING YES", "MULTI", "CGET t r f:a", "CGET t s f:a", "EXEC", "CGET t u f:a")
        self.writes("CPUT t r f:a 4", "CPUT t s f:a 4", "CPUT t u f:a 4")
        self.assertEqual(self.told(), ["t:r", "t:s"])

    def test_optout(self):
        self.track("OPTOUT")
        self.reads("CGET t r f:a", "CLIENT CACHING NO", "CGET t s f:a")
        self.writes("CPUT t s f:a 2", "CPUT t r f:a 2")
        self.assertEqual(self.told(), ["t:r"])

    def test_bcast_with_prefixes(self):
        self.track("BCAST", "PREFIX", "t:r", "PREFIX", "3/t:")
        self.writes("CPUT t r1 f:a 2", "CPUT t q f:a 2", "CPUT t r1 f:a 3", "CPUT 3/t 8 f:a 3")
        self.assertEqual(self.told(), ["t:r1", "t:r1", "3/t:8"])
        self.writes("TABLE CREATE tt FAMILY f", "CPUT tt r f:a 1", "TABLE TRUNCATE t")
        self.assertEqual(self.told(), ["t"])
        self.assertEqual(self.info("tracking_total_prefixes"), 2)
        self.reads("CLIENT TRACKING OFF")
        self.writes("TABLE TRUNCATE t")
        self.assertEqual((self.told(), self.info("tracking_total_prefixes")), ([], 0))

    def test_bcast_tells_of_a_transaction_in_one_message(self):
        self.track("BCAST")
        self.writes("MULTI", "CPUT t b f:a 1", "CPUT t a f:a 1", "CPUT t b f:a 2", "EXEC")
        self.assertEqual(self.reader.read(), [b"invalidate", [b"t:a", b"t:b"]])

    def test_bcast_tells_of_a_flush(self):
        self.track("BCAST", "PREFIX", "t:", "PREFIX", "3/t:")
        self.writes("MULTI", "CPUT t b f:a 1", "FLUSHALL", "EXEC")
        self.assertEqual(self.told(), ["t:b", ALL])
        self.assertEqual(self.info("tracking_total_prefixes"), 2)

    def test_bcast_without_prefix_hears_everything_once(self):
        self.track("BCAST", "NOLOOP")
        self.reads("CPUT t r f:a 8")
        self.writes("CPUT t r f:a 9", "CDELRANGE t ALL")
        self.assertEqual(self.told(), ["t:r", "t"])

    def test_redirect_to_a_subscriber_of_resp2(self):
        listener = self.client(2)
        listener_id = listener.call("CLIENT", "ID")
        listener.call("SUBSCRIBE", "__redis__:invalidate")
        reader = self.client(2)
        self.assertEqual(reader.call("CLIENT", "TRACKING", "ON", "REDIRECT", str(listener_id)), OK)
        self.assertEqual(reader.call("CLIENT", "GETREDIR"), listener_id)
        reader.call("CGET", "t", "r", "f:a")
        self.writes("CPUT t r f:a 2")
        self.assertEqual(listener.read(), [b"message", b"__redis__:invalidate", [b"t:r"]])

    def test_a_flush_is_told_to_a_subscriber_of_resp2(self):
        listener, reader = self.client(2), self.client(2)
        listener_id = listener.call("CLIENT", "ID")
        listener.call("SUBSCRIBE", "__redis__:invalidate")
        self.assertEqual(reader.call("CLIENT", "TRACKING", "ON", "REDIRECT", str(listener_id)), OK)
        self.writes("FLUSHALL")
        self.assertEqual(listener.read(), [b"message", b"__redis__:invalidate", None])

    def test_a_redirect_that_is_gone(self):
        listener = self.client(3)
        self.track("REDIRECT", str(listener.call("CLIENT", "ID")))
        self.writes("CLIENT KILL ID %d" % self.ask("CLIENT", "GETREDIR"))
        self.reads("CGET t r f:a")
        self.writes("CPUT t r f:a 2")
        self.assertEqual(self.reader.read()[0], b"tracking-redir-broken")
        self.assertIn(b"broken_redirect", self.tracking_info()[b"flags"])
        self.assertIn(b" flags=tR ", self.ask("CLIENT", "INFO"))

    def test_the_table_of_names_is_bounded(self):
        self.addCleanup(self.call, "CONFIG SET tracking-table-max-keys 1000000")
        self.write("CONFIG SET tracking-table-max-keys 10")
        self.track()
        self.reads(*[f"CGET t row{i} f:a" for i in range(25)])
        self.assertEqual(len(self.told()), 15)
        self.assertEqual((self.info("tracking_total_keys"), self.info("tracking_total_items")), (10, 10))
        self.write("CONFIG SET tracking-table-max-keys 4")
        self.assertEqual((len(self.told()), self.info("tracking_total_keys")), (6, 4))
        self.reader.close()
        wait_until(lambda: not self.info("tracking_clients"))
        self.assertEqual(self.info("tracking_total_keys"), 0)

    def test_a_change_during_a_long_read_is_told_after_it(self):
        pipe = self.redis.pipeline(transaction=False)
        for at in range(20_000):
            pipe.execute_command("CPUT", "t", "row%06d" % at, "f:a", "x" * 100)
        pipe.execute()
        self.track()
        self.reader.send("CSCAN", "t", "0", "COUNT", "100000")
        self.writes("CPUT t r f:a 5")
        reply = self.reader.read()
        self.assertEqual(reply[0], b"0")
        self.assertLessEqual(20_001, len(reply[1]))
        self.assertIn(self.told(), ([], ["t"]))  # [] if the write came before the scan

    def test_trackinginfo(self):
        self.assertEqual(self.tracking_info(), {b"flags": [b"off"], b"redirect": -1, b"prefixes": []})
        self.assertEqual(self.wires[2].call("CLIENT", "TRACKINGINFO"), [b"flags", [b"off"], b"redirect", -1, b"prefixes", []])
        self.assertEqual(self.wires[2].call("CLIENT", "GETREDIR"), -1)
        self.track("BCAST", "PREFIX", "x", "PREFIX", "a", "NOLOOP")
        info = self.tracking_info()
        self.assertEqual((sorted(info[b"flags"]), info[b"redirect"], info[b"prefixes"]),
                         ([b"bcast", b"noloop", b"on"], 0, [b"a", b"x"]))
        self.assertIn(b" flags=tB ", self.ask("CLIENT", "INFO"))
        self.ask("RESET")
        self.assertEqual(self.info("tracking_clients"), 0)

    def test_refusals(self):
        for line, text in (
                ("CLIENT TRACKING maybe", "ERR syntax error"),
                ("CLIENT TRACKING ON SOMETIMES", "ERR syntax error"),
                ("CLIENT TRACKING ON REDIRECT 999999", "ERR The client ID you want redirect to does not exist"),
                ("CLIENT TRACKING ON PREFIX a", "ERR PREFIX option requires BCAST mode to be enabled"),
                ("CLIENT TRACKING ON BCAST OPTIN", "ERR OPTIN and OPTOUT are not compatible with BCAST"),
                ("CLIENT TRACKING ON OPTIN OPTOUT", "ERR You can't specify both OPTIN mode and OPTOUT mode"),
                ("CLIENT TRACKING ON BCAST PREFIX ab PREFIX a", "ERR Prefix 'ab' overlaps with another provided"),
                ("CLIENT CACHING YES", "ERR CLIENT CACHING can be called only when")):
            with self.subTest(line):
                self.refused(line, text)
        self.track("OPTIN")
        for words in (("TRACKING", "ON", "OPTOUT"), ("TRACKING", "ON", "BCAST"), ("CACHING", "NO"), ("CACHING", "X")):
            self.assertIsInstance(self.ask("CLIENT", *words), resp.Error)

    def test_what_retention_drops_is_told_when_it_is_reclaimed(self):
        self.addCleanup(self.write, "DEBUG SET-TIME NOW")
        self.writes("TABLE CREATE aged FAMILY f TTL 60s FAMILY v VERSIONS 1", "CPUT aged r f:a 1", "CPUT aged s v:a 1",
                    "CPUT aged q f:a 1 TTL 10s", "CPUT aged p v:a 1")
        self.track("NOLOOP")
        self.reads("CGET aged r f:a", "CGET aged s v:a", "CGET aged q f:a", "CGET aged none f:a")
        self.writes("DEBUG SET-TIME %d" % (int(time.time() + 30) * 1_000_000))
        told = []
        while not told:
            told += self.told()
        self.assertEqual(told, ["aged:q"])
        self.reads("CSCAN aged 0")
        self.writes("DEBUG SET-TIME %d" % (int(time.time() + 90) * 1_000_000))
        while len(told) < 3:
            told += self.told()
        self.assertEqual(told, ["aged:q", "aged:r", "aged"])


class NamesTest(TrackingCase):
    """tracking-names: what a message names."""

    OPTIONS = {"enable-debug-command": "yes"}

    def test_tables_by_default_as_command_getkeys_does(self):
        self.assertEqual(self.call("CONFIG GET tracking-names"), [b"tracking-names", b"table"])
        self.track()
        self.reads("CGET t r f:a")
        self.assertEqual(self.ask("COMMAND", "GETKEYS", "CGET", "t", "r", "f:a"), [b"t"])
        self.writes("CPUT t other f:a 1")
        self.assertEqual(self.told(), [])  # only who has read the row is told
        self.writes("CPUT t r f:a 2", "CPUT t r f:a 3")
        self.assertEqual(self.told(), ["t"])
        self.reads("CSCAN t 0", "CGET t r f:a")
        self.writes("CPUT t r f:a 2")
        self.assertEqual(self.told(), ["t", "t"])
        for change in ("TABLE TRUNCATE t", "CDELRANGE t ALL", "TABLE RENAME t u"):
            self.writes("CPUT t r f:a 1")
            self.told()
            self.reads("CGET t r f:a", "CGET t s f:a")
            self.writes(change)
            self.assertIn(self.told(), (["t"], []), change)

    def test_a_flush_names_no_tables(self):
        self.track()
        self.reads("CGET t r f:a")
        self.writes("FLUSHALL")
        self.assertEqual(self.told(), [ALL])

    def test_the_table_is_named_as_the_client_wrote_it(self):
        self.track()
        self.reads("CGET 3/t 7 f:a")
        self.writes("CPUT 3/t 7 f:a 1")
        self.assertEqual(self.told(), ["3/t"])
        self.reads("SELECT 3", "CGET t 7 f:a", "SELECT 0")
        self.writes("CPUT 3/t 7 f:a 2")
        self.assertEqual(self.told(), ["t"])
        self.reads("CGET 3/t 7 f:a", "SELECT 3", "CROW t 7", "CGET 0/t r f:a", "SELECT 0")
        self.writes("CPUT 3/t 7 f:a 2", "CPUT t r f:a 2")
        self.assertEqual(self.told(), ["3/t", "t", "0/t"])
        self.reads("CGET 0/t r f:a", "CSCAN 3/t 0")
        self.writes("TABLE TRUNCATE t", "TABLE TRUNCATE 3/t")
        self.assertEqual(self.told(), ["0/t", "3/t"])

    def test_both(self):
        self.addCleanup(self.call, "CONFIG SET tracking-names table")
        self.write("CONFIG SET tracking-names both")
        self.track()
        self.reads("CGET t r f:a", "CGET 3/t 07 f:a")
        self.writes("CPUT t r f:a 2", "CPUT 3/t 7 f:a 2")
        self.assertEqual(self.told(), ["t", "t:r", "3/t", "3/t:7"])
        self.reads("CSCAN t 0")
        self.writes("TABLE TRUNCATE t")
        self.assertEqual(self.told(), ["t"])
        self.refused("CONFIG SET tracking-names key", "ERR CONFIG SET failed")

    def test_bcast(self):
        self.track("BCAST", "PREFIX", "t", "PREFIX", "3/t:")
        self.writes("MULTI", "CPUT t r f:a 2", "CPUT t q f:a 2", "CPUT 3/t 8 f:a 3", "EXEC")
        self.assertEqual(sorted(self.told()), ["3/t", "t"])
        self.reads("SELECT 3")
        self.writes("CPUT 3/t 8 f:a 3", "CPUT t r f:a 2")
        self.assertEqual(self.told(), ["t", "0/t"])


if __name__ == "__main__":
    unittest.main()
