"""pages.py with nothing but redis-py and the commands; in RESP2 and RESP3."""

import time
import uuid

import redis

ROWS, FIRST, COLUMNS = 10, 3, 20
WAIT_SECONDS = 2


def text(word):
    return word.decode("utf-8", "surrogateescape")


def word(text):
    return text.encode("utf-8", "surrogateescape")


def pairs(reply):
    if isinstance(reply, dict):
        return list(reply.items())
    return list(zip(reply[::2], reply[1::2]))


def value_of(raw, type_name):
    if type_name == b"bytes":
        return raw
    if type_name == b"string":
        return text(raw)
    if type_name == b"bool":
        return raw in (1, True, b"true")
    if type_name == b"uuid":
        return uuid.UUID(text(raw))
    return float(raw) if type_name in (b"f32", b"f64") else int(raw)


def newest(reply):
    row = {}
    for column, versions in pairs(reply):
        ts, raw, type_name = versions[0]
        row[text(column)] = value_of(raw, type_name)
    return row


class Pages:
    def __init__(self, url, table, **options):
        self.redis = redis.Redis.from_url(url, **options)
        self.redis.response_callbacks.clear()
        self.table = table

    def run(self, *words):
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                return self.redis.execute_command(*words)
            except (redis.exceptions.ClusterDownError, redis.exceptions.TryAgainError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def rows(self, cursor, prefix):
        after, rows = self.run("CSCAN", self.table, cursor, "COUNT", ROWS, "PREFIX", word(prefix), "PERROW", FIRST,
                               "WITHTYPE")
        return text(after), [(text(key), newest(cells)) for key, cells in rows]

    def rows_before(self, first, prefix):
        found, cursor = [], b"0"
        while len(found) < ROWS:
            cursor, rows = self.run(
                "CSCAN", self.table, cursor, "COUNT", ROWS - len(found), "RANGE", word(f"[{prefix}"), word(f"({first}"),
                "PERROW", FIRST, "REVERSE", "WITHTYPE")
            found += [(text(key), newest(cells)) for key, cells in rows]
            if cursor == b"0":
                break
        return found[::-1]

    def columns(self, key, family, after):
        begin = word(f"({after}") if after else "-"
        found = newest(self.run("CROW", self.table, word(key), "COLRANGE", family, begin, "+", "PERROW", COLUMNS + 1,
                                "WITHTYPE"))
        return dict(list(found.items())[:COLUMNS]), len(found) > COLUMNS

    def versions(self, key, column):
        reply = self.run("CROW", self.table, word(key), "COLUMNS", 1, word(column), "VERSIONS", "ALL", "WITHTYPE")
        return [(int(ts), text(type_name), value_of(raw, type_name)) for _, versions in pairs(reply)
                for ts, raw, type_name in versions]

    def close(self):
        self.redis.close()
