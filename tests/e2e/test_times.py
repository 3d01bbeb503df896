"""Times as people write them: wherever a timestamp is read, in bounds of timeuuid, in the log; what is refused."""

import os
import sys
import time
import unittest
import uuid

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from model import resp, times  # noqa: E402
from replicas import ReplicaTest  # noqa: E402
from wire import M, OK, WireTest  # noqa: E402

NOON = 1795694400000000  # 2026-11-26T12:00:00Z


class TimesTest(WireTest):

    OPTIONS = {"enable-debug-command": "yes"}

    def setUp(self):
        super().setUp()
        self.write("DEBUG SET-TIME %d" % NOON, OK)
        self.addCleanup(lambda: self.server.client().execute_command("DEBUG", "SET-TIME", "NOW"))
        self.write("TABLE CREATE t FAMILY f FAMILY v VERSIONS 9", OK)

    def test_forms(self):
        for at, (text, micros) in enumerate((
                ("now", NOON), ("NOW", NOON), ("now-1h", NOON - 3600 * 10**6), ("now+30s", NOON + 30 * 10**6),
                ("now-250ms", NOON - 250000), ("now+5", NOON + 5 * 10**6), ("now-7d", NOON - 7 * 86400 * 10**6),
                ("2026-11-26", NOON - 12 * 3600 * 10**6), ("2026-11-26T12:00:00Z", NOON), ("2026-11-26t12:00:00z", NOON),
                ("'2026-11-26 13:00:00+01:00'", NOON), ("2026-11-26T06:30:00-05:30", NOON),
                ("2026-11-26T12:00:00.5Z", NOON + 500000), ("2026-11-26T12:00:00.000001Z", NOON + 1),
                ("2026-11-26T12:00:00.123456000Z", NOON + 123456), ("1970-01-01", 0), ("2024-02-29", 1709164800000000),
                (str(NOON), NOON), ("0", 0))):
            self.write("CPUT t r%d f:a x TS %s" % (at, text), OK)
            self.read("CGET t r%d f:a WITHTS" % at, [micros, "x"])

    def test_what_is_no_time_is_named(self):
        for text in ("soon", "now-", "now-1y", "now-1h30m", "now 1h", "2026-11-26T12:00", "2026-11-26T12:00:00", "2026-11-26T12:00:00.Z",
                     "2026-11-26T12:00:00+0100", "2026-13-01", "2026-02-29", "2026-11-26T24:00:00Z", "2026-11-26T12:00:60Z",
                     "2026-11-26T12:00:00.1234567Z", "2026-11-26T12:00:00.1234567890Z", "2026-1-1", "1e6", "1.5", "", "now-9223372036854775s0"):
            for line in ("CPUT t r f:a x TS '%s'", "CGET t r f:a AT '%s'", "CPUT t r f:a x EXPIREAT '%s'", "CSCAN t 0 TIME '%s' +inf",
                         "CSCAN t 0 TIME -inf '(%s'"):
                reply = self.call(line % text)
                self.assertIsInstance(reply, resp.Error, line % text)
                self.assertEqual(reply.code, "ERR", reply)
                self.assertIn("'%s'" % text, reply.text)
        self.refused("CPUT t r f:a x TS 2026-11-26T12:00:00.1234567Z",
                     "ERR '2026-11-26T12:00:00.1234567Z' is not a time: it is finer than a microsecond")
        self.refused("CPUT t r f:a x TS 2026-02-29", "ERR '2026-02-29' is not a time: there is no such day")
        self.refused("CPUT t r f:a x TS 1969-12-31", "ERR timestamp is not an integer of 0 or more")
        self.refused("CPUT t r f:a x TS 9223372036854775808", "ERR timestamp is not an integer of 0 or more (microseconds), or out of range")
        self.read("CCOUNT t", 0)

    def test_everywhere(self):
        def row(*values):
            return M(("v:a", [[NOON - (value + 1) * 3600 * 10**6, str(value)] for value in values]))
        for hours in range(5):
            self.write("CPUT t r v:a %d TS now-%dh" % (hours, hours + 1), OK)
        self.read("CGET t r v:a AT now-150m", "2")
        self.read("CROW t r TIME now-3h (now-1h", M(("v:a", "1")))
        self.read("CROW t r TIME 2026-11-26T08:00:00Z 2026-11-26T09:00:00Z VERSIONS ALL", row(2, 3))
        self.read("CSCAN t 0 VERSIONS ALL FILTER 'ts >= now-2h'", ["0", [["r", row(0, 1)]]])
        self.read("CSCAN t 0 VERSIONS ALL FILTER 'ts in [\"2026-11-26T07:00:00Z\", \"2026-11-26T09:00:00+01:00\"]'",
                  ["0", [["r", row(3, 4)]]])
        self.read("CSCAN t 0 FILTER 'ts < 2026-11-26'", ["0", []])
        self.refused("CSCAN t 0 FILTER 'ts < \"soon\"'", "BADFILTER at position 6: 'soon' is not a time")
        self.refused("CSCAN t 0 FILTER 'ts < true'", "BADFILTER")
        self.read("CGET t r v:a WITHTS", [NOON - 3600 * 10**6, "0"])
        self.write("CMUTATE t r DEL v:a TIME now-150m +inf", [1, 2])
        self.write("CMUTATE t r PUT v:b 1 TS 2026-11-26 EXPIREAT now+1h", [1, OK])
        self.read("CROW t r WITHTTL COLUMNS 1 v:b", M(("v:b", [[NOON - 12 * 3600 * 10**6, "1", NOON + 3600 * 10**6]])))
        self.write("CPUT t gone f:a x EXPIREAT now-1s", OK)
        self.read("CEXISTS t gone", 0)
        self.write("DEBUG SET-TIME %d" % (NOON + 3600 * 10**6), OK)
        self.read("CEXISTS t r v:b", 0)
        self.read("CGET t r v:a AT now-7h", None)

    def test_one_moment_in_an_exec(self):
        self.write("DEBUG SET-TIME NOW", OK)
        self.write("MULTI", OK)
        for at in range(50):
            self.call("CPUT t e v:%d x TS now" % at)
        self.call("EXEC")
        row = self.call("CROW t e WITHTS")
        self.assertEqual(len({cell[0][0] for cell in row[1::2]}), 1)

    def test_the_log_holds_what_it_came_to(self):
        self.write("CPUT t r f:a x TS now-1h", OK)
        self.write("TABLE CREATE u KEY timeuuid FAMILY f TYPE uuid", OK)
        self.write("CPUT u now f:id now", OK)
        before = [self.call("CSCAN t 0 WITHTS"), self.call("CSCAN u 0 WITHTS")]
        self.server.kill()
        self.server.start()
        self.connect_wires()
        self.assertEqual([self.call("CSCAN t 0 WITHTS"), self.call("CSCAN u 0 WITHTS")], before)

    def test_seconds_are_taken_and_noted(self):
        self.write("CPUT t r f:a x TS 1795694400", OK)
        self.read("CGET t r f:a WITHTS", [1795694400, "x"])
        for line, note in (
                ("CEXPLAIN CSCAN t 0 TIME 1795694000 +inf", "the time 1795694000 looks like seconds: a timestamp is in microseconds"),
                ("CEXPLAIN CGET t r f:a AT 1795694000000", "the time 1795694000000 looks like milliseconds: a timestamp is in microseconds"),
                ("CEXPLAIN CUPDATE t PREFIX r PUT f:b 1 TS 1795694000", "TS 1795694000 looks like seconds: a timestamp is in microseconds")):
            reply = self.call(line)
            self.assertIn(note.encode(), dict(zip(reply[::2], reply[1::2]))[b"notes"], line)
        reply = self.call("CEXPLAIN CSCAN t 0 TIME now-1h now")
        self.assertEqual(dict(zip(reply[::2], reply[1::2]))[b"notes"], [])


class TimeUuidsTest(WireTest):

    def setUp(self):
        super().setUp()
        self.write("TABLE CREATE e KEY dev=utf8#at=timeuuid FAMILY f FAMILY log ORDER -timeuuid FAMILY id TYPE uuid", OK)

    def keys(self, *words):
        return [row[0] for row in self.call("CSCAN e 0 " + " ".join(words))[1]]

    def test_now_makes_new_ones_that_ascend(self):
        for _ in range(200):
            self.write("CPUT e d1#now f:a x", OK)
        self.write("MULTI", OK)
        for _ in range(50):
            self.call("CPUT e d1#now f:a x AS string")
        self.call("EXEC")
        keys = self.keys("PREFIX d1#", "COUNT", "1000")
        self.assertEqual(len(keys), 250)
        uuids = [uuid.UUID(key.decode().split("#")[1]) for key in keys]
        self.assertEqual(sorted(each.time for each in uuids), [each.time for each in uuids])
        self.assertTrue(all(each.version == 1 and each.variant == uuid.RFC_4122 for each in uuids))
        self.assertEqual(len({each.node for each in uuids}), 1)
        made = (uuids[-1].time - times.TICKS_1970) / 10**7
        self.assertLess(abs(time.time() - made), 3600)
        # They go on ascending over a restart, of another node.
        self.server.restart()
        self.connect_wires()
        self.write("CPUT e d1#now f:a x", OK)
        last = uuid.UUID(self.keys("PREFIX d1#", "REVERSE", "COUNT", "1")[0].decode().split("#")[1])
        self.assertGreater(last.time, uuids[-1].time)
        if "CELLAR_FOLLOWER" not in os.environ:  # they are made where writes are
            self.assertNotEqual(last.node, uuids[-1].node)

    def test_now_in_qualifiers_and_values(self):
        for value in ("a", "b", "c"):
            self.write("CPUT e d2#00000000-0000-1000-8000-000000000000 log:now %s id:last now" % value, OK)
        self.write("CMUTATE e d2#00000000-0000-1000-8000-000000000000 PUT log:NOW d TS 5 PUT id:x now", [1, OK, OK])
        row = self.call("CROW e d2#00000000-0000-1000-8000-000000000000 COLUMNS 1 log")
        self.assertEqual(row[1::2], [b"d", b"c", b"b", b"a"])
        ids = self.call("CROW e d2#00000000-0000-1000-8000-000000000000 COLUMNS 1 id")[1::2]
        self.assertEqual(len({uuid.UUID(each.decode()) for each in ids}), 2)
        self.write("CPUT e d2#00000000-0000-1000-8000-000000000000 f:u now AS uuid f:t now", OK)
        self.read("CGET e d2#00000000-0000-1000-8000-000000000000 f:t", "now")

    def test_only_writes_make_one(self):
        for line in ("CGET e d1#now f:a", "CROW e d1#now", "CSCAN e 0 PREFIX d1#now", "CEXISTS e d1#now"):
            self.refused(line, "BADKEY")
        self.refused("CPUT e d1#now-1h f:a x", "BADKEY")
        self.refused("CPUT e d1#now f:a x id:a now-1h", "BADVALUE")
        self.refused("CPUT e d1#soon f:a x", "BADKEY")
        self.read("CCOUNT e", 0)

    def test_times_in_bounds(self):
        def at(text, node=5):
            base = uuid.UUID(times.least_uuid(text.encode()).decode())
            return str(uuid.UUID(int=base.int | 0x8000000000000000 | node))
        days = ["2026-11-25", "2026-11-26", "2026-11-26T18:00:00Z", "2026-11-27"]
        for day in days:
            self.write("CPUT e d3#%s f:a x log:%s y" % (at(day), at(day)), OK)
        keys = [("d3#" + at(day)).encode() for day in days]
        self.assertEqual(self.keys("RANGE [d3#2026-11-26 (d3#2026-11-27"), keys[1:3])
        self.assertEqual(self.keys("RANGE [d3#2026-11-26 [d3#2026-11-27"), keys[1:3])
        self.assertEqual(self.keys("RANGE (d3#2026-11-26T18:00:00Z [d3"), keys[2:])
        self.assertEqual(self.keys("RANGE [d3#0 [d3#1795694400000000"), keys[:2])
        self.assertEqual(self.keys("RANGE [d3#now-20000d (d3#now+20000d"), keys)
        # Descending: the later one is the min.
        row = "d3#" + at("2026-11-25")
        for day in days[1:]:
            self.write("CPUT e %s log:%s z" % (row, at(day)), OK)
        found = self.call("CROW e %s COLRANGE log (2026-11-27 [2026-11-26" % row)
        self.assertEqual(found[::2], [("log:" + at(day)).encode() for day in (days[2], days[1])])
        self.refused("CSCAN e 0 RANGE [d3#soon +", "BADKEY")
        self.refused("CSCAN e 0 RANGE [d3#6000-01-01 +", "BADKEY")


class FollowersTest(ReplicaTest):

    def test_a_follower_has_what_it_came_to(self):
        leader, follower = self.pair()
        follower.run("DEBUG SET-TIME 1000000000000000")  # another clock
        follower.follow(leader)
        leader.run("TABLE CREATE u KEY timeuuid FAMILY f VERSIONS 9 FAMILY log ORDER timeuuid FAMILY id TYPE uuid")
        for at in range(20):
            leader.run("CPUT u now f:a %d TS now-%dh log:now x id:a now" % (at, at + 1))
        leader.run("CPUT u 00000000-0000-1000-8000-000000000000 f:a 1 TS 2026-11-26 EXPIREAT now+9000d")
        self.assert_copied(leader, follower)


if __name__ == "__main__":
    unittest.main()
