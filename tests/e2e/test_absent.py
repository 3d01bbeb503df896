"""What Redis has and Cellar has not: each command answers as that of a Redis without scripts, modules, cluster or
replicas."""

import unittest

from cellar_server import not_on_a_follower
from wire import OK, M, S, WireTest


class AbsentTest(WireTest):
    def refuse_all(self, text, lines):
        for line in lines:
            with self.subTest(line):
                self.refused(line, text)

    def test_scripts(self):
        self.refuse_all("ERR This instance has scripting disabled",
                        ["EVAL 'return 1' 0", "EVAL_RO x 1 key", "SCRIPT LOAD x", "SCRIPT DEBUG yes"])
        self.refuse_all("NOSCRIPT No matching script. Please use EVAL.", ["EVALSHA abc 0", "EVALSHA_RO abc 1 k x"])
        self.refused("EVAL x a", "ERR value is not an integer or out of range")
        self.refused("EVAL x 2 a", "ERR Number of keys can't be greater than number of args")
        self.refused("EVAL x -1", "ERR Number of keys can't be negative")
        self.refused("EVAL x", "ERR wrong number of arguments for 'eval' command")
        self.read("SCRIPT EXISTS a b", [0, 0])
        self.read("SCRIPT FLUSH ASYNC", OK)
        self.refused("SCRIPT FLUSH NOW", "ERR SCRIPT FLUSH only support SYNC|ASYNC option")
        self.refused("SCRIPT KILL", "NOTBUSY No scripts in execution right now.")

    def test_functions(self):
        self.read("FUNCTION FLUSH", OK)
        self.refused("FUNCTION FLUSH NOW", "ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
        self.read("FUNCTION LIST LIBRARYNAME * WITHCODE", [])
        self.refused("FUNCTION LIST all", "ERR Unknown argument all")
        self.read("FUNCTION STATS", M(("running_script", None), ("engines", M())))
        self.refused("FUNCTION DELETE l", "ERR Library not found")
        self.refused("FUNCTION KILL", "NOTBUSY No scripts in execution right now.")
        self.refuse_all("ERR Function not found", ["FCALL f 0", "FCALL_RO f 1 k"])
        self.refused("FUNCTION LOAD x", "ERR This instance has scripting disabled")

    @not_on_a_follower("READONLY and READWRITE mean something in a set")
    def test_a_cluster(self):
        self.refuse_all("ERR This instance has cluster support disabled",
                        ["CLUSTER INFO", "CLUSTER SLOTS", "cluster keyslot k", "READONLY", "READWRITE", "ASKING"])
        self.refused("CLUSTER NOSUCH", "ERR unknown subcommand 'NOSUCH'. Try CLUSTER HELP.")
        self.refused("CLUSTER KEYSLOT", "ERR wrong number of arguments for 'cluster|keyslot' command")

    def test_modules(self):
        self.read("MODULE LIST", [])
        self.refused("MODULE LOAD /x.so", "ERR MODULE command not allowed")

    @not_on_a_follower("a set knows no REPLICAOF")
    def test_replicas(self):
        self.read("REPLICAOF no one", OK)
        self.read("SLAVEOF NO ONE", OK)
        self.refused("REPLICAOF host port", "ERR Invalid master port")
        self.refuse_all("ERR Replicas of Cellar follow by PEER, not by Redis' protocol",
                        ["SYNC", "PSYNC ? -1", "REPLCONF listening-port 1"])
        self.refused("FAILOVER", "ERR FAILOVER requires connected replicas.")
        self.refused("FAILOVER ABORT", "ERR No failover in progress.")

    def test_keys_that_a_command_counts(self):
        self.read("COMMAND GETKEYS EVAL x 2 a b c", ["a", "b"])
        self.read("COMMAND GETKEYS EVAL x 0", [])
        self.read("COMMAND GETKEYSANDFLAGS FCALL_RO f 1 a", [["a", [S("RO"), S("access")]]])


if __name__ == "__main__":
    unittest.main()
