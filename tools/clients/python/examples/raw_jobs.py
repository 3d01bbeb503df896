"""jobs.py with nothing but redis-py and the commands; in RESP2 and RESP3."""

import time

import redis

TRIES = 3
WAIT_SECONDS = 2


def pairs(reply):
    if isinstance(reply, dict):
        return list(reply.items())
    return list(zip(reply[::2], reply[1::2]))


class Jobs:
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
        self.run("TABLE", "CREATE", "jobs", "KEY", "recno", "FAMILY", "job", "TYPE", "string",
                                   "VERSIONS", 10, "FAMILY", "n", "TYPE", "i64")
        self.run("INDEX", "CREATE", "jobs", "name", "ON", 1, "job:name", "UNIQUE")
        self.run("INDEX", "CREATE", "jobs", "state", "ON", 2, "job:state", "n:due")
        self.run("FEED", "CREATE", "job-changes", "ON", 1, "jobs:job")
        self.run("XGROUP", "CREATE", "job-changes", "watchers", "0")

    def exec(self, commands):
        with self.redis.client() as link:  # all on one connection
            link.response_callbacks.clear()
            link.execute_command("MULTI", "ATOMIC")
            for words in commands:
                try:
                    link.execute_command(*words)
                except redis.ResponseError:
                    pass  # EXEC says so, too
            return link.execute_command("EXEC")

    def submit(self, jobs):
        commands = [("CPUT", "jobs", "*", "job:name", name, "job:task", task, "job:state", "ready", "n:due", due)
                    for name, task, due in jobs]
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                return [number.decode() for number in self.exec(commands)]
            except redis.ResponseError as error:
                reason = str(error).removeprefix("EXECABORT ")
                if reason.startswith("NOTUNIQUE "):
                    return None
                if not reason.startswith(("CLUSTERDOWN ", "TRYAGAIN ")) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def due(self, now):
        cursor = b"0"
        while True:
            cursor, rows = self.run(
                "CSCAN", "jobs", cursor, "COUNT", 100, "INDEX", "state", "BETWEEN", "[ready", "[ready",
                "WHERE", "n:due", "LE", now)
            for number, cells in rows:
                job = dict(pairs(cells))
                yield number.decode(), job[b"job:task"].decode(), int(job[b"n:due"])
            if cursor == b"0":
                return

    def claim(self, worker, now, seconds):
        for number, task, due in self.due(now):
            reply = self.run(
                "CMUTATE", "jobs", number, "IF", "job:state", "EQ", "ready", "IF", "n:due", "EQ", due,
                "PUT", "job:state", "running", "PUT", "job:worker", worker, "PUT", "n:due", now + seconds,
                "INCR", "n:tries", 1)
            if reply[0] == 1:
                return number, task
        return None

    def put_own(self, number, worker, cells, *conditions):
        return self.run(
            "CPUT", "jobs", number, "IF", "job:state", "EQ", "running", "IF", "job:worker", "EQ", worker,
            *conditions, *cells) is not None

    def finish(self, number, worker, result):
        return self.put_own(number, worker, ["job:state", "done", "job:result", result])

    def fail(self, number, worker):
        if not self.put_own(number, worker, ["job:state", "given up"], "IF", "n:tries", "GE", TRIES):
            self.put_own(number, worker, ["job:state", "ready"])
        state = self.run("CGET", "jobs", number, "job:state")
        return None if state is None else state.decode()

    def sweep(self, now):
        return int(self.run(
            "CUPDATE", "jobs", "ALL", "WHERE", "job:state", "EQ", "running", "WHERE", "n:due", "LT", now,
            "PUT", "job:state", "ready"))

    def changes(self, watcher):
        last = "0"
        while True:
            reply = self.run("XREADGROUP", "GROUP", "watchers", watcher, "COUNT", 100, "STREAMS", "job-changes", last)
            streams = reply.items() if isinstance(reply, dict) else reply or []
            entries = [entry for _, found in streams for entry in found]
            for entry_id, fields in entries:
                of = dict(pairs(fields or []))
                if of.get(b"column") == b"job:state":
                    yield of[b"row"].decode(), of[b"value"].decode()
                self.run("XACK", "job-changes", "watchers", entry_id)
            if not entries:
                if last == ">":
                    return
                last = ">"

    def close(self):
        self.redis.close()
