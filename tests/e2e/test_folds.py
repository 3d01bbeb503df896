"""Aggregate families: CADD, ADD and MERGE, buckets, states of a HyperLogLog against a Redis, hostile ones, restarts."""

import os
import random
import subprocess
import tempfile
import unittest

import redis
from cellar_server import CellarServer, tool
from redis_server import start_redis
from wire import D, M, N, OK, WireTest

from model import hll  # wire has made it known

SEED = int(os.environ.get("CELLAR_FOLDS_SEED", "1"))
COUNTS = (0, 1, 2, 3, 10, 100, 300, 1000, 1500, 2000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
HOUR = 3_600_000_000


class FoldTest(WireTest):
    OPTIONS = {"enable-debug-command": "yes", "save": ""}

    def setUp(self):
        super().setUp()
        self.client = self.server.client()

    def ask(self, *words):
        return self.client.execute_command(*words)

    def digest(self):
        return self.ask("DEBUG", "DIGEST")

    def restarts_alike(self):
        before = self.digest()
        self.ask("DEBUG", "RELOAD")
        self.assertEqual(before, self.digest())
        self.ask("SAVE")
        self.ask("DEBUG", "RELOAD")
        self.assertEqual(before, self.digest())


class TimestampTest(FoldTest):
    def test_an_input_that_changes_nothing_uses_up_no_timestamp(self):
        """Also where it reclaims a dead cell, which the sweeper may have done before."""
        start = 2_000_000_000_000_000
        self.ask("DEBUG", "SET-TIME", start)
        self.ask(*"TABLE CREATE t FAMILY s TYPE u32 AGGREGATE sum BUCKET 10s FAMILY h AGGREGATE hll BUCKET 10s FAMILY p".split())
        for column, element in (("s:c", "0"), ("h:c", "a")):
            self.ask("DEBUG", "SET-TIME", start)
            self.ask("CADD", "t", "r", column, element, "TS", start - 100_000_000)
            self.ask("CADD", "t", "r", column, element)
            self.ask("CMUTATE", "t", "r", "PUT", column, self.ask("CGET", "t", "r", column, "STATE"), "TS", start - 200_000_000, "TTL", 1)
            self.ask("DEBUG", "SET-TIME", start + 2_000_000)
            self.ask("CADD", "t", "r", column, element)
            self.ask("CPUT", "t", column, "p:x", "1")
            self.assertEqual([start + 2_000_000, b"1"], self.ask("CGET", "t", column, "p:x", "WITHTS"))
            start += 10_000_000


class SumTest(FoldTest):
    """Sums, minima, maxima, buckets."""

    def test_the_examples_of_the_contract(self):
        self.write("DEBUG SET-TIME 1795402999000000", OK)
        self.write("TABLE CREATE page FAMILY hits AGGREGATE sum BUCKET 1h TTL 30d FAMILY uv AGGREGATE hll BUCKET 1d", OK)
        self.write("CADD page /index hits:all 1 uv:all alice", OK)
        self.write("CINCRBY page /index hits:all 4", 5)
        self.read("CROW page /index COLUMNS 1 hits VERSIONS 24", M(("hits:all", [[1795402800000000, 5]])))
        self.read("CGET page /index uv:all", 1)
        self.read("TABLE SHOW page", ["TABLE CREATE page FAMILY hits TYPE i64 AGGREGATE sum BUCKET 1h TTL 30d "
                                      "FAMILY uv AGGREGATE hll BUCKET 1d"])
        self.write("CADD page /index uv:all alice TS 1795402800000000 uv:all bob TS 1 uv:all carl TS 2", OK)
        self.read("CAGG page ROWS 1 /index COLUMNS 1 uv VERSIONS 7 REDUCE DISTINCT uv:all",
                  [[[], M(("distinct(uv:all)", 3))]])
        self.restarts_alike()

    def test_buckets_begin_where_they_begin(self):
        self.write("TABLE CREATE t FAMILY s AGGREGATE sum BUCKET 1h FAMILY p BUCKET 1h", OK)
        for at in (0, 1, HOUR - 1, HOUR, HOUR + 1, 2**63 - 1):
            self.write("CADD t r s:a 1 TS %d" % at, OK)
            self.write("CPUT t r p:a %d TS %d" % (at, at), OK)
        last = (2**63 - 1) // HOUR * HOUR
        self.read("CROW t r VERSIONS ALL COLUMNS 1 s", M(("s:a", [[last, 1], [HOUR, 2], [0, 3]])))
        self.read("CROW t r VERSIONS ALL COLUMNS 1 p", M(("p:a", [[last, str(2**63 - 1)], [HOUR, str(HOUR + 1)],
                                                                   [0, str(HOUR - 1)]])))

    def test_an_increment_in_a_plain_bucket_stays_in_it(self):
        self.write("TABLE CREATE t FAMILY p BUCKET 1d", OK)
        for total in (1, 2, 3):
            self.write("CINCRBY t r p:n 1", total)
        self.write("CAPPEND t r p:x ab", 2)
        self.write("CAPPEND t r p:x c", 3)
        self.read("CCOUNT t VERSIONS ALL BY CELLS", 2)

    def test_without_ts_an_aggregate_without_buckets_is_one_cell(self):
        self.write("TABLE CREATE t FAMILY s AGGREGATE sum TTL 1s FAMILY m AGGREGATE max TYPE string", OK)
        self.write("CADD t r s:a 5 m:a b", OK)
        self.write("CADD t r s:a -7 m:a a", OK)
        self.read("CROW t r WITHTYPE", M(("m:a", [[0, "b", "string"]]), ("s:a", [[0, -2, "i64"]])))
        self.write("CDEL t r s:a", 1)
        self.write("CADD t r s:a 1", OK)
        self.read("CGET t r s:a", 1)

    def test_sums_are_exact_or_refused(self):
        self.write("TABLE CREATE t FAMILY i AGGREGATE sum FAMILY u AGGREGATE sum TYPE u64 FAMILY b AGGREGATE sum TYPE u8 "
                   "FAMILY f AGGREGATE sum TYPE f64", OK)
        self.write("CADD t r i:a 9223372036854775807 u:a 18446744073709551615", OK)
        self.read("CGET t r u:a", N(2**64 - 1))
        for words in ("i:a 1", "u:a 1", "b:a 256", "b:a -1", "u:b -1", "i:a -1 i:a 2", "f:a inf", "f:a 1e308 f:a 1e308"):
            self.refused("CADD t r " + words, "ERR increment")
        for words in ("i:a 1.5", "i:a x", "i:a 18446744073709551616", "f:a nan", "f:a x"):
            self.refused("CADD t r " + words, "BADVALUE column '%s'" % words.split()[0])
        self.refused("CMUTATE t r MERGE b:a 256", "BADVALUE column 'b:a'")
        self.write("CADD t r u:a -3 i:a -9223372036854775808", OK)
        self.read("CGET t r i:a", -1)
        self.write("CADD t r f:a 0.5 f:a -0", OK)
        self.read("CGET t r f:a", D("0.5"))
        self.write("CMUTATE t r MERGE b:a 255 PUT b:b 3 ADD b:b 4 INCR b:b -2", [1, OK, OK, OK, 5])
        self.refused("CMUTATE t r ADD i:a 5 ADD b:a 1", "ERR increment")
        self.read("CGET t r i:a", -1)

    def test_minima_and_maxima_of_every_type(self):
        self.write("TABLE CREATE t FAMILY lo AGGREGATE min TYPE f64 FAMILY hi AGGREGATE max TYPE f64 "
                   "FAMILY tx AGGREGATE min TYPE bytes", OK)
        for text in ("0", "-0", "3", "-inf", "inf"):
            self.write("CADD t r lo:%s %s hi:%s %s" % (text, text, text, text), OK)
        self.write("CADD t r lo:z 0 lo:z -0 hi:z -0 hi:z 0 tx:a b tx:a a tx:a ab", OK)
        self.read("CROW t r COLUMNS 3 lo:z hi:z tx:a", M(("hi:z", D("0")), ("lo:z", D("-0")), ("tx:a", "a")))

    def test_what_does_not_fit_is_told(self):
        self.write("TABLE CREATE t FAMILY p FAMILY s AGGREGATE sum FAMILY f AGGREGATE sum TYPE f64 FAMILY h AGGREGATE hll "
                   "FAMILY m AGGREGATE min", OK)
        for line in ("CADD t r p:a 1", "CMUTATE t r MERGE p:a 1", "CINCRBY t r m:a 1", "CINCRBY t r h:a 1",
                     "CINCRBY t r f:a 1", "CINCRBYFLOAT t r s:a 1", "CAPPEND t r s:a 1", "CAPPEND t r h:a 1",
                     "CPUT t r h:a x AS bytes", "CPUT t r s:a 1 AS u8", "CMUTATE t r IF p:a EXISTS ADD p:a 1"):
            self.refused(line, "WRONGTYPE")
        for line in ("FAMILY ALTER t s AGGREGATE max", "FAMILY ALTER t s BUCKET 1h", "FAMILY ALTER t s TYPE i64",
                     "FAMILY ALTER t h TYPE NONE", "FAMILY ADD t x AGGREGATE sum TYPE string", "INDEX CREATE t i ON 1 h:a",
                     "FAMILY ADD t x AGGREGATE max TYPE bool", "FAMILY ADD t x AGGREGATE hll TYPE i64", "CADD t r s:a 1 TS",
                     "FAMILY ADD t x AGGREGATE avg", "FAMILY ADD t x BUCKET 0", "CADD t r s:a 1 TTL 5", "CADD t r s:a",
                     "INDEX CREATE t i ON 1 p:a INCLUDE 1 h"):
            self.refused(line, "ERR")
        self.write("FAMILY ALTER t s VERSIONS 2", OK)
        self.read("FAMILY INFO t h", M(("name", "h"), ("type", "none"), ("columns", M()), ("order", "bytes"), ("versions", "ALL"),
                                       ("ttl", "NONE"), ("gc", "NONE"), ("group", "default"), ("aggregate", "hll"),
                                       ("bucket", "NONE"), ("compress", "none"), ("cells", 0), ("compressed", 0),
                                       ("saved", 0), ("memory", 0), ("disk", 0), ("log_bytes", 0), ("reclaimed", 0)))

    def test_a_cell_keeps_its_own_expiry(self):
        self.write("DEBUG SET-TIME 1000000", OK)
        self.write("TABLE CREATE t FAMILY s AGGREGATE sum FAMILY h AGGREGATE hll", OK)
        self.ask("CPUT", "t", "r", "s:a", "5", "EXPIREAT", "2000000", "h:a", hll.encode(hll.add((), b"x")), "EXPIREAT", "2000000")
        self.write("CADD t r s:a 1 h:a y", OK)
        self.read("CROW t r WITHTTL", M(("h:a", [[0, 2, 2000000]]), ("s:a", [[0, 6, 2000000]])))
        self.write("DEBUG SET-TIME 2000000", OK)
        self.write("CADD t r s:a 1 h:a y", OK)
        self.read("CROW t r WITHTTL", M(("h:a", [[0, 1, None]]), ("s:a", [[0, 1, None]])))

    def test_once_only(self):
        self.write("TABLE CREATE t FAMILY seen FAMILY hits AGGREGATE sum", OK)
        line = 'CMUTATE t r IF seen:id7 MISSING PUT seen:id7 "" TTL 15m ADD hits:all 1'
        self.write(line, [1, OK, OK])
        self.write(line, [0])
        self.read("CGET t r hits:all", 1)
        self.write("CADD t r IF seen:id7 MISSING hits:all 1", None)

    def test_indexes_and_watches_see_folds(self):
        self.write("TABLE CREATE t FAMILY s AGGREGATE sum", OK)
        self.write("INDEX CREATE t top ON 1 -s:n", OK)
        for row, times in (("a", 2), ("b", 5), ("c", 3)):
            for _ in range(times):
                self.write("CADD t %s s:n 1" % row, OK)
        self.assertEqual([row for row, _ in self.ask("CSCAN", "t", "0", "INDEX", "top")[1]], [b"b", b"c", b"a"])
        other = self.server.client().connection_pool.get_connection("x")
        for words, changed in ((("s:n", "1"), True), (("s:n", "0"), False)):
            other.send_command("CWATCH", "t", "a")
            other.read_response()
            self.ask("CADD", "t", "a", *words)
            for line in ("MULTI", "PING"):
                other.send_command(line)
                other.read_response()
            other.send_command("EXEC")
            self.assertEqual(other.read_response() is None, changed)

    def test_many_rows_at_once(self):
        self.write("TABLE CREATE t FAMILY s AGGREGATE sum", OK)
        for row in range(300):
            self.ask("CADD", "t", "r%d" % row, "s:n", row)
        self.write("CUPDATE t ALL WHERE s:n GE 100 ADD s:n 1000", 200)
        self.write("CUPDATE t ALL ADD s:n 0", 0)
        self.read("CAGG t REDUCE SUM s:n AS sum", [[[], M(("sum", 300 * 299 // 2 + 200_000))]])


class HllTest(FoldTest):
    """States."""

    def test_estimates_and_states_are_those_of_a_redis(self):
        there = redis.Redis(port=start_redis(self))
        self.addCleanup(there.close)
        self.write("TABLE CREATE t FAMILY h AGGREGATE hll", OK)
        done = 0
        for count in COUNTS:
            pipe, theirs = self.client.pipeline(transaction=False), there.pipeline(transaction=False)
            for begin in range(done, count, 2000):
                inputs = ["user:%d" % i for i in range(begin, min(count, begin + 2000))]
                pipe.execute_command("CADD", "t", "r", *[word for text in inputs for word in ("h:a", text)])
                theirs.pfadd("k", *inputs)
            pipe.execute(), theirs.execute()
            done = count
            if count == 0:
                continue
            wanted = there.pfcount("k")
            self.assertEqual(self.ask("CGET", "t", "r", "h:a"), wanted, count)
            state = self.ask("CGET", "t", "r", "h:a", "STATE")
            there.set("ours", state)
            self.assertEqual(there.pfcount("ours"), wanted)
            there.pfmerge("both", "k", "ours")
            self.assertEqual(there.pfcount("both"), wanted)
            self.ask("CPUT", "t", "copy", "h:a", there.get("k"))
            self.ask("CMUTATE", "t", "copy", "MERGE", "h:a", there.get("both"))
            self.assertEqual(self.ask("CGET", "t", "copy", "h:a", "STATE"), state)
        self.restarts_alike()

    def test_any_partition_order_and_tree_of_merges_gives_one_state(self):
        dice = random.Random(SEED)
        print("CELLAR_FOLDS_SEED=%d" % SEED)
        self.write("TABLE CREATE t FAMILY h AGGREGATE hll", OK)
        for count in (1, 7, 300, 5000):
            inputs = [b"%x" % dice.getrandbits(40) for _ in range(count)]
            parts = dice.randint(1, 6)
            for text in inputs + dice.choices(inputs, k=count // 3):
                self.ask("CADD", "t", "part%d" % dice.randrange(parts), "h:a", text)
            left = [row for row in (b"part%d" % i for i in range(parts)) if self.ask("CEXISTS", "t", row)]
            dice.shuffle(left)
            while len(left) > 1:
                into, other = left.pop(), left.pop(dice.randrange(len(left)))
                self.ask("CMUTATE", "t", into, "MERGE", "h:a", self.ask("CGET", "t", other, "h:a", "STATE"))
                left.append(into)
            wanted = ()
            for text in inputs:
                wanted = hll.merge(wanted, hll.add((), text))
            self.assertEqual(self.ask("CGET", "t", left[0], "h:a", "STATE"), hll.encode(wanted))
            self.assertEqual(self.ask("CGET", "t", left[0], "h:a"), hll.estimate(wanted))
            self.ask("CDELRANGE", "t", "ALL")

    def test_hostile_states_are_refused_and_the_server_stays_up(self):
        dice = random.Random(SEED + 1)
        self.write("TABLE CREATE t FAMILY h AGGREGATE hll", OK)
        small, large = (), ()
        for i in range(20):
            small = hll.add(small, b"%d" % i)
        for i in range(3000):
            large = hll.merge(large, hll.add((), b"%d" % i))
        states = [hll.encode(()), hll.encode(small), hll.encode(large)]
        dense = bytearray(states[2])
        dense[16] = 63
        bad = [b"", b"HYLL", b"HYLL" + bytes(12), states[1][:15], bytes(states[1][:-1]), states[1] + b"\x80", states[2][:-1],
               states[2] + b"\0", b"HYLL\2" + states[1][5:], b"hyll" + states[1][4:], bytes(dense), states[1][:16] + b"\x7f" * 99]
        for state in bad:
            for line in (("CPUT", "t", "r", "h:a"), ("CMUTATE", "t", "r", "MERGE", "h:a")):
                with self.assertRaises(redis.ResponseError) as raised:
                    self.ask(*line, state)
                self.assertIn("BADVALUE", type(raised.exception).__name__ + str(raised.exception))
        self.assertEqual(self.ask("CCOUNT", "t"), 0)
        for _ in range(2000):
            state = bytearray(dice.choice(states))
            for _ in range(dice.randint(1, 4)):
                state[dice.randrange(len(state))] = dice.randrange(256)
            if dice.random() < 0.3:
                del state[dice.randrange(len(state)):]
            taken = hll.decode(bytes(state))
            try:
                self.ask("CPUT", "t", "r", "h:a", bytes(state))
                self.assertIsNotNone(taken)
                self.assertEqual(self.ask("CGET", "t", "r", "h:a", "STATE"), hll.encode(taken))
            except redis.ResponseError:
                self.assertIsNone(taken)

    def test_reads_see_the_estimate(self):
        self.write("TABLE CREATE t FAMILY h AGGREGATE hll", OK)
        self.write("CADD t r h:a x h:a y h:a x", OK)
        self.read("CROW t r WITHTYPE", M(("h:a", [[0, 2, "hll"]])))
        self.read("CSCAN t 0 WHERE h:a EQ 2 FILTER value>1", ["0", [["r", M(("h:a", 2))]]])
        self.read("CSCAN t 0 WHERE h:a GT 2", ["0", []])
        state = hll.encode(hll.add(hll.add((), b"x"), b"y"))
        self.assertEqual(self.ask("CROW", "t", "r", "STATE"), [b"h:a", state])
        self.assertEqual(self.ask("CSCAN", "t", "0", "STATE", "WITHTS"), [b"0", [[b"r", [b"h:a", [[0, state]]]]]])
        self.assertLessEqual(len(hll.encode(hll.add((), b"x"))), 64)

    def test_export_and_import_keep_states(self):
        self.write("TABLE CREATE t FAMILY h AGGREGATE hll BUCKET 1h FAMILY s AGGREGATE sum TYPE f64 FAMILY m AGGREGATE max", OK)
        for i in range(400):
            self.ask("CADD", "t", "r%d" % (i % 7), "h:a", i, "TS", i * HOUR // 40, "h:b", "x", "s:a", i / 7, "m:a", i)
        before = self.digest()
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "out.rows")
            port = str(self.server.port)
            subprocess.run([tool("cellar-export"), "-p", port, "t", "--schema", "--output", path], check=True)
            self.write("TABLE DROP t", OK)
            subprocess.run([tool("cellar-import"), "-p", port, "t", path, "-f", "rows", "--create-table", "-q"], check=True)
        self.assertEqual(self.digest(), before)

    def test_import_folds_values_in(self):
        self.write("TABLE CREATE t FAMILY hits AGGREGATE sum FAMILY uv AGGREGATE hll", OK)
        lines = "page,hits:all,uv:all\n" + "".join("p%d,2,u%d\n" % (i % 3, i % 10) for i in range(60))
        words = [tool("cellar-import"), "-p", str(self.server.port), "t", "-", "-k", "page", "--aggregate", "-q"]
        subprocess.run(words, input=lines.encode(), check=True)
        self.read("CROW t p1", M(("hits:all", 40), ("uv:all", 10)))
        for option in (["--ttl", "5s"], ["--default-type", "i64"], ["--json-types"]):
            self.assertEqual(subprocess.run(words + option, input=b"", check=False, stderr=subprocess.DEVNULL).returncode, 2)


class CrashTest(unittest.TestCase):
    """What was acknowledged is there after kill -9, folded in once."""

    def test_kill_9_loses_no_fold_and_doubles_none(self):
        dice = random.Random(SEED + 2)
        with CellarServer(options={"enable-debug-command": "yes", "save": "", "appendfsync": "no"}) as server:
            client = server.client()
            client.execute_command("TABLE", "CREATE", "t", "FAMILY", "s", "AGGREGATE", "sum", "FAMILY", "h", "AGGREGATE", "hll",
                                   "FAMILY", "x", "AGGREGATE", "max", "TYPE", "u32")
            total, inputs, largest = 0, (), 0
            for _ in range(4):
                for _ in range(500):
                    number, text = dice.randint(-5, 100), b"%d" % dice.randrange(2000)
                    client.execute_command("CADD", "t", "r", "s:n", number, "h:n", text, "x:n", abs(number))
                    total, inputs, largest = total + number, hll.merge(inputs, hll.add((), text)), max(largest, abs(number))
                    if dice.random() < 0.002:
                        client.execute_command("SAVE")
                digest = client.execute_command("DEBUG", "DIGEST")
                server.kill()
                server.start()
                client = server.client()
                self.assertEqual(client.execute_command("DEBUG", "DIGEST"), digest)
                self.assertEqual(client.execute_command("CMGET", "t", "r", "s:n", "x:n"), [total, largest])
                self.assertEqual(client.execute_command("CGET", "t", "r", "h:n", "STATE"), hll.encode(inputs))


if __name__ == "__main__":
    unittest.main()
