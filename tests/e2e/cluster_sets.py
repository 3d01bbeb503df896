"""Clusters of several sets for tests: sets that join one, and what all of their nodes must agree on."""

import random
import threading

import redis

from replica_sets import Member, ReplicaSetCase
from cellar_server import free_port


def pairs(flat):
    """A map, as RESP2 has it."""
    return dict(zip(*[iter(flat)] * 2))


def pairs_of_members(sets, members):
    """The states of the members of the set that has these."""
    ports = {member.port for member in members}
    for each in sets:
        listed = [pairs(one) for one in pairs(each)["members"]]
        if {int(one["port"]) for one in listed} == ports:
            return [one["state"] for one in listed]
    return []


class SetsCase(ReplicaSetCase):
    machines = None  # replica_machines.Machines, one for each node; else all are on this one
    machines_used = 0

    def new_set(self, voters=1, join=(), **options):
        """A set that has elected a leader; one that wants to join if there are nodes to ask."""
        ports = []
        while len(ports) < voters:
            port = free_port()
            if port not in ports:
                ports.append(port)
        if join:
            options["cluster_join"] = [member.address for member in join]
        places = [self.place() for _ in ports]
        nodes = [f"{place.get('host', '127.0.0.1')}:{port}" for place, port in zip(places, ports)]
        members = [Member(self, port, nodes, **place, **options) for place, port in zip(places, ports)]
        for member in members:
            member.server.start()
        self.wait_leader(members)
        return members

    def place(self):
        """Where the next node runs."""
        if self.machines is None:
            return {}
        number = self.machines_used
        self.machines_used += 1
        return {"host": self.machines.ip(number), "within": self.machines.words(number), "protected_mode": "no"}

    def cluster(self, count=3, voters=1, **options):
        """Sets that are a cluster: self.sets, and all members in self.nodes_of_all."""
        first = self.new_set(voters, **options)
        self.lead(first, "CLUSTER", "INIT")
        self.sets = [first]
        for _ in range(1, count):
            self.sets.append(self.new_set(voters, join=first, **options))
        for number in range(1, count):
            self.admit(number)
        self.everyone = [member for each in self.sets for member in each]
        return self.sets

    def admit(self, number):
        leader = self.wait_leader(self.sets[number])
        name = leader.address
        director = self.sets[0]
        self.wait_until(lambda: "no set at" not in self.try_admit(director, name), lambda: self.wait_leader(director).server.log()[-800:])
        self.wait_until(lambda: all(self.sees(member, number + 1) for member in sum(self.sets[:number + 1], [])),
                        lambda: "\n".join(member.server.log()[-800:] for member in self.sets[number]))

    def try_admit(self, director, name):
        return self.wait_leader(director).refusal("CLUSTER", "ADMIT", name)

    @staticmethod
    def sees(member, count):
        """It knows of so many sets and who leads them, and is part of them."""
        try:
            told = [pairs(each) for each in member.run("CLUSTER", "SETS")]
        except redis.RedisError:
            return False
        return len([each for each in told if each["state"] in ("ok", "empty")]) == count

    def told_sets(self, member):
        return [pairs(each) for each in member.run("CLUSTER", "SETS")]

    def any(self, rng=random):
        return rng.choice(self.everyone)

    def catalog(self, member):
        """What a node says of all tables, as text."""
        tables = sorted(member.run("KEYS", "*"))
        return [(table, member.run("TABLE", "SHOW", table)) for table in tables]

    def restart(self, member):
        member.server.kill()
        member.server.start()
        member.connect()

    def is_whole(self, members):
        """All members of the set are there."""
        try:
            told = pairs_of_members(members[0].run("CLUSTER", "SETS"), members)
        except redis.RedisError:
            return False
        return bool(told) and all(state in ("leader", "online") for state in told)

    def beside(self, work):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread
