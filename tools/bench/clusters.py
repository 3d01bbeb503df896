"""Clusters of sets of one node each, all on this machine, for the programs beside this file."""

import redis

import servers
from replica import until


def works(client, *words):
    """What the command answers, or False: it is refused for now."""
    try:
        return client.execute_command(*words)
    except redis.ResponseError:
        return False


def cluster(count, binary=None, options=()):
    """The nodes of `count` sets in the order of their numbers, whose tablets stay where they are."""
    nodes = [servers.Server("cellar", log="everysec", pin=False, binary=binary, options=options) for _ in range(count)]
    for each in nodes:
        each.options += ["--cluster-nodes", f"127.0.0.1:{each.port}"]
        if each is not nodes[0]:
            each.options += ["--cluster-join", f"127.0.0.1:{nodes[0].port}"]
        each.start()
    head = nodes[0].client()
    until(lambda: works(head, "CLUSTER", "INIT"))
    for each in nodes[1:]:
        until(lambda each=each: works(head, "CLUSTER", "ADMIT", f"127.0.0.1:{each.port}"))
    until(lambda: all(len(each.client().execute_command("CLUSTER", "SETS")) == count for each in nodes))
    head.execute_command("CLUSTER", "CONFIG", "SET", "tablet-balance", "no")
    return nodes
