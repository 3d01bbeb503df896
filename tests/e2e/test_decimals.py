"""STEP, HISTOGRAM and QUANTILE against Python's Decimal and Fraction: edges of every type, and numbers at random."""

import math
import os
import random
import struct
import unittest
from decimal import Decimal
from fractions import Fraction

from cellar_server import CellarTest

SEED = int(os.environ.get("CELLAR_TEST_SEED", random.randrange(2**32)))
INTEGERS = {"i8": (-2**7, 2**7 - 1), "i16": (-2**15, 2**15 - 1), "i32": (-2**31, 2**31 - 1), "i64": (-2**63, 2**63 - 1),
            "u8": (0, 2**8 - 1), "u16": (0, 2**16 - 1), "u32": (0, 2**32 - 1), "u64": (0, 2**64 - 1)}
LOWEST = -struct.unpack("<d", b"\xff\xff\xff\xff\xff\xff\xef\x7f")[0]


def to_double(number):
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else LOWEST


class DecimalsTest(CellarTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(SEED)
        self.redis.execute_command("FLUSHALL")
        print("decimals: seed", SEED)

    def integers(self, kind):
        low, high = INTEGERS[kind]
        edges = {low, low + 1, -1, 0, 1, high - 1, high, 2**53, 2**53 + 1, -2**53 - 1, 1795720514999999999}
        return sorted({n for n in edges if low <= n <= high} | {self.rng.randint(low, high) for _ in range(60)})

    def floats(self, kind):
        rng = self.rng
        found = [0.0, 0.1, 0.3, 0.7, 1.7, -0.3, 1e-7, 2.5, 1e16, 123456789.125]
        found += [rng.randint(-10**6, 10**6) / 10**rng.randint(0, 8) for _ in range(100)]
        if kind == "f64":
            found += [5e-324, -5e-324, -LOWEST, LOWEST, 2.0**53, 2.0**53 + 2, 1e308, 0.1 + 0.2, 1 - 2.0**-53]
            found += [struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0] for _ in range(60)]
        else:
            found += [3.4028235e38, 1.4e-45, 16777216.0, 16777218.0]
            found += [struct.unpack("<f", struct.pack("<I", rng.getrandbits(32)))[0] for _ in range(60)]
        return [number for number in found if math.isfinite(number)]

    def steps(self):
        rng = self.rng
        fixed = ["0.1", "0.25", "0.3", "1", "2.5", "7", "1e9", "3600", "1e-20", "5e-324", "1e300", "1e308",
                 "9223372036854775808", "18446744073709551615", "0.12345678901234567", "1e15", "1e22", "1e23"]
        return fixed + ["%de%d" % (rng.randint(1, 10**rng.randint(1, 18)), rng.randint(-30, 12)) for _ in range(25)]

    def groups(self, *words):
        return [(group[0], group[1][1]) for group in self.redis.execute_command("CAGG", "t", *words)]

    def compare(self, written, whole, step, *words):
        """`written`: what each row holds, as text. The groups of the multiples, counted."""
        by = Fraction(Decimal(step))
        exact = whole and by.denominator == 1 and by < 2**64
        if whole and not exact and any(abs(int(text)) > 2**53 for text in written):
            with self.assertRaisesRegex(Exception, "STEP|step"):
                self.groups(*words)
            return
        expected = {}
        for text in written:
            multiple = Fraction(Decimal(text)) // by * by
            key = int(multiple) if exact else to_double(multiple)
            if not exact:
                self.assertLessEqual(key, float(Decimal(text)))
            expected[key] = expected.get(key, 0) + 1
        got = {}
        for (value,), count in self.groups(*words):
            key = int(value) if exact else float(value)
            self.assertTrue(exact or math.isfinite(key))
            got[key] = got.get(key, 0) + count
        self.assertEqual(got, expected, (step, words))

    def put(self, kind, texts):
        self.redis.execute_command("TABLE", "CREATE", "t", "FAMILY", "f", "TYPE", kind)
        pipe = self.redis.pipeline(transaction=False)
        for at, text in enumerate(texts):
            pipe.execute_command("CPUT", "t", "r%d" % at, "f:x", text)
        pipe.execute()
        held = self.redis.execute_command("CSCAN", "t", "0", "COUNT", "100000")[1]
        return [row[1][1] for row in held]

    @staticmethod
    def text(value):
        return value.decode() if isinstance(value, bytes) else str(value)

    def test_values(self):
        for kind in list(INTEGERS) + ["f32", "f64"]:
            whole = kind in INTEGERS
            numbers = self.integers(kind) if whole else self.floats(kind)
            texts = [str(n) if whole else repr(n) for n in numbers]
            written = [self.text(value) for value in self.put(kind, texts)]
            self.assertEqual(len(written), len(texts))
            for step in self.steps():
                self.compare(written, whole, step, "BY", "VALUE", "f:x", "STEP", step, "REDUCE", "COUNT", "f:x")
            self.redis.execute_command("DEL", "t")

    def test_components(self):
        for kind in list(INTEGERS) + ["f32", "f64"]:
            whole = kind in INTEGERS
            numbers = self.integers(kind) if whole else self.floats(kind)
            for sign in ("", "-"):
                self.redis.execute_command("TABLE", "CREATE", "t", "KEY", sign + kind, "FAMILY", "f")
                pipe = self.redis.pipeline(transaction=False)
                for number in numbers:
                    pipe.execute_command("CPUT", "t", str(number) if whole else repr(number), "f:x", "1")
                pipe.execute()
                written = [self.text(row) for row in self.redis.execute_command(
                    "CSCAN", "t", "0", "COUNT", "100000", "KEYSONLY")[1]]
                for step in self.steps():
                    words = ["BY", "PART", "1", "STEP", step, "REDUCE", "COUNT", "f:x"]
                    if whole and (Fraction(Decimal(step)).denominator != 1 or Fraction(Decimal(step)) >= 2**64):
                        with self.assertRaisesRegex(Exception, "STEP"):
                            self.groups(*words)
                        continue
                    self.compare(written, whole, step, *words)
                self.redis.execute_command("DEL", "t")

    def test_bounds_and_ranks(self):
        for kind in ("i64", "u64", "f32", "f64"):
            whole = kind in INTEGERS
            numbers = self.integers(kind) if whole else self.floats(kind)
            written = [self.text(value) for value in self.put(kind, [str(n) if whole else repr(n) for n in numbers])]
            for _ in range(30):
                texts = {"0.1", "0.7", "1e39", "-1e39", "1795720514999999999", "0.10000000000000000001"}
                texts |= {self.rng.choice(written) for _ in range(5)}
                texts |= {"%d.%d" % (self.rng.randint(-1000, 1000), self.rng.randint(0, 10**20)) for _ in range(5)}
                bounds = sorted({Fraction(Decimal(text)): text for text in texts}.items())
                counts = [0] * (len(bounds) + 1)
                for text in written:
                    counts[sum(bound <= Fraction(Decimal(text)) for bound, _ in bounds)] += 1
                got = self.groups("REDUCE", "HISTOGRAM", "f:x", len(bounds), *[text for _, text in bounds])
                self.assertEqual(got[0][1], counts, (kind, bounds))
            self.redis.execute_command("DEL", "t")
        # Nearest rank: of a hundred numbers 7 in 100 is the seventh, though 0.07 * 100 is more than 7 in doubles.
        self.put("i64", [str(n) for n in range(1, 101)])
        for per_cent in range(1, 101):
            got = self.groups("REDUCE", "QUANTILE", "f:x", 1, "0.%02d" % per_cent if per_cent < 100 else "1")
            self.assertEqual(float(got[0][1][0]), per_cent)


if __name__ == "__main__":
    unittest.main()
