"""A queue of jobs: each is there once, is done by one worker at a time, and is tried three times; and what happens,
for whoever watches it."""

import cellar

TRIES = 3


class Jobs:
    def __init__(self, url, **options):
        self.db = cellar.Cellar(url, **options)
        self.jobs = self.db.table("jobs")
        self.watchers = self.db.feed("job-changes").group("watchers")

    def create(self):
        self.db.create_table("jobs", {"job": "TYPE string VERSIONS 10", "n": "TYPE i64"}, key="recno")
        self.jobs.create_index("name", "job:name", unique=True)
        self.jobs.create_index("state", ["job:state", "n:due"])
        self.db.create_feed("job-changes", ["jobs:job"]).create_group("watchers")

    def submit(self, jobs):
        """Their numbers; None, and none of them is taken, if there is one of that name."""
        try:
            with self.db.transaction() as tx:
                for name, task, due in jobs:
                    tx.table("jobs").append_row({"job:name": name, "job:task": task, "job:state": "ready", "n:due": due})
            return tx.results
        except cellar.NotUnique:
            return None

    def claim(self, worker, now, seconds):
        """(number, task) of the job that has been due the longest, or None."""
        for number, job in self.jobs.scan(index="state", between=("[ready", "[ready"), where=("n:due", "LE", now)):
            taken = [("PUT", "job:state", "running"), ("PUT", "job:worker", worker), ("PUT", "n:due", now + seconds),
                     ("INCR", "n:tries", 1)]
            if self.jobs.mutate(number, taken, when=[("job:state", "EQ", "ready"), ("n:due", "EQ", job["n:due"])])[0]:
                return number, job["job:task"]
        return None

    def finish(self, number, worker, result):
        """False: it was given to somebody else meanwhile."""
        return self.jobs.put(number, {"job:state": "done", "job:result": result},
                             when=[("job:state", "EQ", "running"), ("job:worker", "EQ", worker)])

    def fail(self, number, worker):
        """Back into the queue, or given up; its new state."""
        mine = [("job:state", "EQ", "running"), ("job:worker", "EQ", worker)]
        if not self.jobs.put(number, {"job:state": "given up"}, when=[*mine, ("n:tries", "GE", TRIES)]):
            self.jobs.put(number, {"job:state": "ready"}, when=mine)
        return self.jobs.get(number, "job:state")

    def sweep(self, now):
        """What a worker has left undone is ready again; how many."""
        return self.jobs.update([("PUT", "job:state", "ready")],
                                where=[("job:state", "EQ", "running"), ("n:due", "LT", now)])

    def changes(self, watcher):
        """Numbers and states, since the watchers last asked; each goes to one of them."""
        for entry in self.watchers.entries(watcher):
            if entry.column == "job:state":
                yield entry.row, entry.value

    def close(self):
        self.db.close()
