"""timeseries.py with nothing but redis-py and the commands; in RESP2 and RESP3."""

import time

import redis

HOUR = 3600
WAIT_SECONDS = 2


def pairs(reply):
    if isinstance(reply, dict):
        return list(reply.items())
    return list(zip(reply[::2], reply[1::2]))


def number(value):
    return None if value is None else float(value)


class Measurements:
    def __init__(self, url, **options):
        self.redis = redis.Redis.from_url(url, **options)
        self.redis.response_callbacks.clear()

    def run(self, *words):
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                return self.redis.execute_command(*words)
            except (redis.exceptions.ClusterDownError, redis.exceptions.TryAgainError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def create(self):
        self.run("TABLE", "CREATE", "readings", "KEY", "host=utf8#-at=u64",
                                   "FAMILY", "v", "TYPE", "f64", "VERSIONS", 1, "TTL", "30d")
        self.run("TABLE", "CREATE", "hours", "KEY", "host=utf8#hour=u64",
                                   "FAMILY", "n", "TYPE", "u64", "FAMILY", "avg", "TYPE", "f64",
                                   "FAMILY", "max", "TYPE", "f64")
        self.run("FEED", "CREATE", "new-readings", "ON", 1, "readings")
        self.run("XGROUP", "CREATE", "new-readings", "rollup", "0")

    def record(self, host, at, values):
        words = ["CPUT", "readings", f"{host}#{at}"]
        for name, value in values.items():
            words += [f"v:{name}", repr(float(value))]
        self.run(*words)

    def scan(self, table, count, *options):
        found, cursor = [], b"0"
        while True:
            page = 100 if count is None else min(100, count - len(found))
            cursor, rows = self.run("CSCAN", table, cursor, "COUNT", page, *options)
            for key, cells in rows:
                found.append((key.decode(), {column.decode(): value for column, value in pairs(cells)}))
            if cursor == b"0" or len(found) == count:
                return found

    def newest(self, host, count):
        return [(key, {column: float(value) for column, value in row.items()})
                for key, row in self.scan("readings", count, "PREFIX", f"{host}#")]

    def entries(self, worker):
        last = "0"
        while True:
            reply = self.run("XREADGROUP", "GROUP", "rollup", worker, "COUNT", 100,
                                               "STREAMS", "new-readings", last)
            streams = reply.items() if isinstance(reply, dict) else reply or []
            entries = [entry for _, found in streams for entry in found]
            for entry_id, fields in entries:
                yield {name.decode(): value.decode() for name, value in pairs(fields or [])}
                self.run("XACK", "new-readings", "rollup", entry_id)
            if not entries:
                if last == ">":
                    return
                last = ">"

    def roll_up(self, worker):
        for entry in self.entries(worker):
            if entry.get("op") == "put":
                host, at = entry["row"].split("#")
                name = entry["column"][2:]
                hour = int(at) // HOUR
                [[_, results]] = self.run(
                    "CAGG", "readings", "RANGE", f"[{host}#{(hour + 1) * HOUR - 1}", f"[{host}#{hour * HOUR}",
                    "REDUCE", "COUNT", f"v:{name}", "AS", "n", "REDUCE", "AVG", f"v:{name}", "AS", "avg",
                    "REDUCE", "MAX", f"v:{name}", "AS", "max")
                of = {what.decode(): value for what, value in pairs(results)}
                self.run(
                    "CPUT", "hours", f"{host}#{hour}", f"n:{name}", int(of["n"]),
                    f"avg:{name}", repr(float(of["avg"])), f"max:{name}", repr(float(of["max"])))

    def chart(self, host, name):
        return [(int(key.split("#")[1]), int(row[f"n:{name}"]), float(row[f"avg:{name}"]), float(row[f"max:{name}"]))
                for key, row in self.scan("hours", None, "PREFIX", f"{host}#", "WHERE", f"n:{name}", "EXISTS")]

    def report(self, name):
        groups = self.run(
            "CAGG", "readings", "BY", "PART", "host", "REDUCE", "QUANTILE", f"v:{name}", 1, 0.5, "AS", "median",
            "REDUCE", "MAX", f"v:{name}", "AS", "max", "SORT", "max", "DESC")
        found = []
        for terms, results in groups:
            of = {what.decode(): value for what, value in pairs(results)}
            found.append({"host": terms[0].decode(), "median": [number(each) for each in of["median"]],
                          "max": number(of["max"])})
        return found

    def close(self):
        self.redis.close()
