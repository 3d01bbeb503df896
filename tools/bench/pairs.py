"""What is compared: pairs of the same work in the words of Cellar and of Redis.

The data that the pairs need, `keys` being 1,000,000 by default:

    t, plane#...   one column of 12 bytes in each of `keys` rows; hashes of one field
    r, row#...     10 columns of 8 bytes in each of `keys`/10 rows; hashes of ten fields, and the
                   sorted set `index` of all of them, which an ordered scan needs in Redis
"""

COLUMNS = 10


def ten(pattern):
    return " ".join(pattern.format(i) for i in range(COLUMNS))


class Pair:
    """One line of the table. `cellar` and `redis` are lists of [weight:]command."""

    def __init__(self, name, cellar, redis, rows=False, pipelines=(1, 16, 64)):
        self.name = name
        self.commands = {"cellar": cellar, "redis": redis}
        self.rows = rows  # works on the rows of ten columns
        self.writes = any("CPUT" in command or "CINCRBY" in command for command in cellar)
        self.pipelines = pipelines


PAIRS = [
    Pair("PING", ["PING"], ["PING"]),
    Pair("CPUT / HSET", ["CPUT t plane#__key__ meta:miles __data__"],
         ["HSET plane#__key__ miles __data__"]),
    Pair("CPUT, 1 version kept / HSET", ["CPUT one plane#__key__ meta:miles __data__"],
         ["HSET plane#__key__ miles __data__"]),
    Pair("CGET / HGET", ["CGET t plane#__key__ meta:miles"], ["HGET plane#__key__ miles"]),
    Pair("CMGET 5 / HMGET 5", ["CMGET r row#__key__ f:c0 f:c2 f:c4 f:c6 f:c8"],
         ["HMGET row#__key__ c0 c2 c4 c6 c8"], rows=True),
    Pair("CROW 10 / HGETALL 10", ["CROW r row#__key__"], ["HGETALL row#__key__"], rows=True),
    Pair("CINCRBY / HINCRBY", ["CINCRBY n plane#__key__ meta:n 1"],
         ["HINCRBY n#plane#__key__ n 1"]),
    Pair("80 % CGET 20 % CPUT / HGET HSET",
         ["80:CGET t plane#__key__ meta:miles", "20:CPUT t plane#__key__ meta:miles __data__"],
         ["80:HGET plane#__key__ miles", "20:HSET plane#__key__ miles __data__"]),
]

# Setup of Cellar, and what is loaded for each key: (number of keys relative to `keys`, commands).
CELLAR_SETUP = ["TABLE CREATE t FAMILY meta", "TABLE CREATE one FAMILY meta VERSIONS 1",
                "TABLE CREATE r FAMILY f VERSIONS 1", "TABLE CREATE n FAMILY meta VERSIONS 1",
                "TABLE CREATE a FAMILY meta AGGREGATE sum"]
LOADS = {
    "cellar": [(1.0, ["CPUT t plane#__key__ meta:miles __data__"]),
               (1.0, ["CPUT one plane#__key__ meta:miles __data__"]),
               (0.1, ["CPUT r row#__key__ " + ten("f:c{0} __data:8__")])],
    "redis": [(1.0, ["HSET plane#__key__ miles __data__"]),
              (0.1, ["HSET row#__key__ " + ten("c{0} __data:8__"), "ZADD index 0 row#__key__"])],
}

# For callgrind: one command each, over fewer keys.
INSTRUCTION_PAIRS = [
    ("PING", "PING", "PING", False),
    ("CPUT / HSET", "CPUT t plane#__key__ meta:miles __data__",
     "HSET plane#__key__ miles __data__", False),
    ("CPUT, 1 version kept / HSET", "CPUT one plane#__key__ meta:miles __data__",
     "HSET plane#__key__ miles __data__", False),
    ("CGET / HGET", "CGET t plane#__key__ meta:miles", "HGET plane#__key__ miles", False),
    ("CMGET 5 / HMGET 5", "CMGET r row#__key__ f:c0 f:c2 f:c4 f:c6 f:c8",
     "HMGET row#__key__ c0 c2 c4 c6 c8", True),
    ("CROW 10 / HGETALL 10", "CROW r row#__key__", "HGETALL row#__key__", True),
    ("CINCRBY / HINCRBY", "CINCRBY n plane#__key__ meta:n 1", "HINCRBY n#plane#__key__ n 1", False),
    ("CADD / HINCRBY", "CADD a plane#__key__ meta:n 1", "HINCRBY n#plane#__key__ n 1", False),
    ("CSCAN 10 rows / ZRANGEBYLEX 10", "CSCAN r 0 RANGE [row#__key__ + COUNT 10",
     "ZRANGEBYLEX index [row#__key__ + LIMIT 0 10", True),
]
