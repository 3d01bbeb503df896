"""A consumer of a feed: entries applied to an empty model, and the table as a scan shows it, for comparison.

    model = FeedModel()
    for id, fields in entries: model.apply(id, fields)
    model.cells("t") == table_cells(client, "t")

The model keeps the retention of VERSIONS n itself, as cellar-feeds(7) asks of who applies entries.
"""

import re

import redis


def pairs(flat):
    """The fields of an entry as a dict of text."""
    text = [word.decode("utf-8", "surrogateescape") if isinstance(word, bytes) else word for word in flat]
    return dict(zip(text[::2], text[1::2]))


def key_of(id):
    """An id as a pair of numbers, to be compared."""
    ms, n = (id.decode() if isinstance(id, bytes) else id).split("-")
    return int(ms), int(n)


def drop_feeds(client):
    """All of the client's keyspace: they outlive FLUSHALL."""
    for feed in client.execute_command("FEED LIST"):
        client.execute_command("FEED DROP", feed)


class Table:
    def __init__(self):
        self.rows = {}      # row -> column -> {ts: (type, value, expires)}
        self.versions = {}  # family -> how many are kept; 0: all

    def reclaim(self, row, column):
        cells = self.rows.get(row, {}).get(column, {})
        kept = self.versions.get(column.split(":", 1)[0], 0)
        for ts in sorted(cells, reverse=True)[kept or len(cells):]:
            del cells[ts]


class FeedModel:
    def __init__(self):
        self.tables = {}
        self.last = (0, 0)
        self.applied = 0

    def table(self, name):
        return self.tables.setdefault(name, Table())

    def apply(self, id, flat):
        id = key_of(id)
        assert id > self.last, f"{id} comes behind {self.last}"
        self.last = id
        self.applied += 1
        fields = pairs(flat)
        getattr(self, "on_" + fields["op"])(fields)

    def on_schema(self, fields):
        table = self.table(fields["table"])
        # What the old policy has dropped is gone before there is another one.
        for row, columns in table.rows.items():
            for column in columns:
                table.reclaim(row, column)
        create = fields["commands"].split("\n")[0]
        table.versions = {}
        for family in re.split(r" FAMILY ", create)[1:]:
            words = family.split()
            versions = words[words.index("VERSIONS") + 1] if "VERSIONS" in words else "ALL"
            table.versions[words[0]] = 0 if versions == "ALL" else int(versions)
        for columns in table.rows.values():
            for column in [c for c in columns if c.split(":", 1)[0] not in table.versions]:
                del columns[column]

    def on_put(self, fields):
        table = self.table(fields["table"])
        table.reclaim(fields["row"], fields["column"])
        cells = table.rows.setdefault(fields["row"], {}).setdefault(fields["column"], {})
        cells[int(fields["ts"])] = (fields["type"], fields["value"], fields.get("expires"))

    def on_del(self, fields):
        table = self.table(fields["table"])
        table.reclaim(fields["row"], fields["column"])
        table.rows.get(fields["row"], {}).get(fields["column"], {}).pop(int(fields["ts"]), None)

    def on_delrange(self, fields):
        columns = self.table(fields["table"]).rows.get(fields["row"], {})
        for column in list(columns):
            family, qualifier = column.split(":", 1)
            if fields.get("family", family) == family and inside(qualifier, fields):
                del columns[column]

    def on_delrows(self, fields):
        rows = self.table(fields["table"]).rows
        for row in [row for row in rows if inside(row, fields)]:
            del rows[row]

    def on_rename(self, fields):
        self.tables[fields["to"]] = self.tables.pop(fields["table"])

    def on_truncate(self, fields):
        self.table(fields["table"]).rows = {}

    def on_drop(self, fields):
        self.tables.pop(fields["table"], None)

    def cells(self, name):
        """Sorted (row, column, ts, type, value) of what is live."""
        table = self.table(name)
        found = []
        for row, columns in table.rows.items():
            for column, cells in columns.items():
                kept = table.versions.get(column.split(":", 1)[0], 0)
                for ts in sorted(cells, reverse=True)[:kept or None]:
                    found.append((row, column, ts, *cells[ts][:2]))
        return sorted(found)


def inside(key, fields):
    low, high = fields.get("from"), fields.get("to")
    if low and not (key > low[1:] or (low[0] == "[" and key == low[1:])):
        return False
    return not high or key < high[1:] or (high[0] == "[" and key == high[1:])


def table_cells(client, name):
    """The same as a scan shows it."""
    found, cursor = [], b"0"
    while True:
        cursor, rows = client.execute_command("CSCAN", name, cursor, "COUNT", 10000, "VERSIONS", "ALL",
                                              "WITHTS", "WITHTYPE")
        for row, columns in rows:
            for column, cells in zip(columns[::2], columns[1::2]):
                for ts, value, kind in cells:
                    value = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
                    found.append((row.decode("utf-8", "surrogateescape"),
                                  column.decode("utf-8", "surrogateescape"), ts, kind.decode(), value))
        if cursor == b"0":
            return sorted(found)


def as_sent(client):
    """The client, that gives replies of streams as they come: redis-py makes dicts of entries."""
    for name in ("XREAD", "XRANGE", "XREVRANGE", "XREADGROUP", "XCLAIM", "XAUTOCLAIM"):
        client.response_callbacks.pop(name, None)
    return client


def read_all(client, feed, after="0", count=1000):
    """All entries behind an id, as they are on disk by now."""
    entries = []
    as_sent(client)
    while True:
        reply = client.execute_command("XREAD", "COUNT", count, "STREAMS", feed, after)
        if not reply:
            return entries
        entries += reply[0][1]
        after = entries[-1][0]


def read_to_end(client, feed, after="0", patience_ms=400):
    """The same, with what is still on its way to the disk."""
    entries = []
    as_sent(client)
    try:
        client.execute_command("WAITAOF", 1, 0, 0)
    except redis.ResponseError:  # nobody waits for a follower's disk
        patience_ms *= 5
    while True:
        reply = client.execute_command("XREAD", "COUNT", 5000, "BLOCK", patience_ms, "STREAMS", feed, after)
        if not reply:
            return entries
        entries += reply[0][1]
        after = entries[-1][0]
