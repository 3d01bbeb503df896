"""Consumer groups of one feed, as Redis' streams define them: what a test expects of XREADGROUP and its kin.

    model = GroupModel()
    model.entries.append(id)              # ids are pairs of numbers, ascending
    model.create("g", (0, 0))
    model.read("g", "alice", 10)          # the ids that it gets
    model.state() == state_of(client, feed)

Times are left out: when an entry was given to whom is not compared, how often is.
"""

import copy

from feed_model import key_of


class Group:
    def __init__(self, last):
        self.last = last
        self.consumers = set()
        self.pending = {}  # id -> [consumer, times]


class GroupModel:
    def __init__(self):
        self.entries = []
        self.groups = {}

    def copy(self):
        return copy.deepcopy(self)

    def create(self, name, last):
        if name in self.groups:
            return "BUSYGROUP"
        self.groups[name] = Group(last)
        return "OK"

    def set_last(self, name, last):
        self.groups[name].last = last

    def destroy(self, name):
        return 1 if self.groups.pop(name, None) else 0

    def add_consumer(self, name, consumer):
        is_new = consumer not in self.groups[name].consumers
        self.groups[name].consumers.add(consumer)
        return int(is_new)

    def drop_consumer(self, name, consumer):
        group = self.groups[name]
        gone = [id for id, (owner, _) in group.pending.items() if owner == consumer]
        for id in gone:
            del group.pending[id]
        group.consumers.discard(consumer)
        return len(gone)

    def read(self, name, consumer, count, no_ack=False):
        group = self.groups[name]
        ids = [id for id in self.entries if id > group.last][:count]
        if ids:
            group.last = ids[-1]
            group.consumers.add(consumer)
        for id in ids if not no_ack else []:
            group.pending[id] = [consumer, 1]
        return ids

    def read_again(self, name, consumer, after, count):
        group = self.groups[name]
        group.consumers.add(consumer)
        ids = sorted(id for id, (owner, _) in group.pending.items() if owner == consumer and id > after)[:count]
        for id in ids:
            group.pending[id][1] += 1
        return ids

    def ack(self, name, ids):
        group = self.groups[name]
        known = {id for id in ids if id in group.pending}
        for id in known:
            del group.pending[id]
        return len(known)

    def claim(self, name, consumer, ids, force=False, just_ids=False, times=None):
        group = self.groups[name]
        claimed = []
        for id in ids:
            if id not in self.entries:
                group.pending.pop(id, None)
                continue
            if id not in group.pending:
                if not force:
                    continue
                group.pending[id] = [consumer, 1]
            pending = group.pending[id]
            pending[0] = consumer
            pending[1] = times if times is not None else pending[1] + (0 if just_ids else 1)
            claimed.append(id)
        if claimed:
            group.consumers.add(consumer)
        return claimed

    def claim_oldest(self, name, consumer, start, count):
        ids = sorted(id for id in self.groups[name].pending if id >= start)
        claimed = self.claim(name, consumer, ids[:count])
        return (ids[count] if len(ids) > count else (0, 0)), claimed

    def state(self):
        """{group: (last, consumers, [(id, consumer, times)])}"""
        return {name: (group.last, sorted(group.consumers),
                       [(id, owner, times) for id, (owner, times) in sorted(group.pending.items())])
                for name, group in self.groups.items()}


def state_of(client, feed):
    """The same as the server tells it. redis-py's own callbacks are used where they keep everything."""
    found = {}
    for group in client.xinfo_groups(feed):
        name = group["name"].decode()
        consumers = sorted(one["name"].decode() for one in client.xinfo_consumers(feed, name))
        pending = client.xpending_range(feed, name, "-", "+", 100_000)
        summary = client.xpending(feed, name)
        assert summary["pending"] == group["pending"] == len(pending)
        found[name] = (key_of(group["last-delivered-id"]), consumers,
                       [(key_of(one["message_id"]), one["consumer"].decode(), one["times_delivered"])
                        for one in pending])
    return found
