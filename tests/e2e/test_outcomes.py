"""What becomes of a command counts, however its reply looks and whether or not anybody gets it: INFO's counters
of failures, and what MULTI ATOMIC takes back."""

import unittest

from cellar_server import not_on_a_follower
from wire import OK, S, WireTest

from model import resp


@not_on_a_follower("who carries a command out counts it")
class OutcomesTest(WireTest):
    def setUp(self):
        super().setUp()
        self.client = resp.Client(self.server.port, 3)
        self.addCleanup(self.client.close)
        self.does("FLUSHALL", "TABLE CREATE t FAMILY f FAMILY n TYPE i64", "CPUT t r f:a old", "CONFIG RESETSTAT")

    def does(self, *lines):
        for line in lines:
            self.assertNotIsInstance(self.client.call(*line.split()), resp.Error, line)

    def fails(self, line, code):
        reply = self.client.call(*line.split())
        self.assertIsInstance(reply, resp.Error, line)
        self.assertEqual(reply.code, code, line)

    def counts(self, command):
        """(calls, rejected, failed) of a command."""
        stats = self.redis.info("commandstats").get("cmdstat_" + command, {})
        return tuple(int(stats.get(field, 0)) for field in ("calls", "rejected_calls", "failed_calls"))

    def errors(self):
        return {name.removeprefix("errorstat_"): int(count.removeprefix("count="))
                for name, count in self.redis.info("errorstats").items()}

    def test_failures_are_counted_by_command_and_by_code(self):
        self.fails("CGET nosuch r f:a", "NOTABLE")
        self.fails("CGET t r nosuch:a", "NOFAMILY")
        self.fails("CGET t r", "ERR")
        self.does("CGET t r f:a")
        self.assertEqual(self.counts("cget"), (3, 1, 2))
        self.assertEqual(self.errors(), {"NOTABLE": 1, "NOFAMILY": 1, "ERR": 1})

    def test_a_reply_that_looks_like_an_error_is_none(self):
        self.does("CPUT t r f:a -ERR", "CGET t r f:a", "CINCRBY t r n:x -5", "PING -ERR", "ECHO -ERR", "CNEAR t a")
        for command in ("cput", "cget", "cincrby", "ping", "echo", "cnear"):
            self.assertEqual(self.counts(command), (1, 0, 0), command)
        self.assertEqual(self.errors(), {})

    def test_inside_exec_each_counts_for_itself(self):
        self.does("MULTI", "CPUT t r nosuch:a 1", "CPUT t r f:a 1", "EXEC")
        self.assertEqual((self.counts("cput"), self.counts("exec")), ((2, 0, 1), (1, 0, 0)))
        self.assertEqual(self.errors(), {"NOFAMILY": 1})

    def test_atomic_counts_the_one_that_failed_and_exec(self):
        self.does("MULTI ATOMIC", "CPUT t r f:a 1", "CPUT t r nosuch:a 1")
        self.fails("EXEC", "EXECABORT")
        self.assertEqual((self.counts("cput"), self.counts("exec")), ((2, 0, 1), (1, 0, 1)))
        self.assertEqual(self.errors(), {"NOFAMILY": 1, "EXECABORT": 1})
        self.assertEqual(self.client.call("CGET", "t", "r", "f:a"), b"old")

    def test_a_task_that_fails_is_counted(self):
        self.does("CONFIG SET reply-max-bytes 1mb")
        for number in range(600):
            self.client.send("CPUT", "t", "long", f"f:{number}", "x" * 4000)
        for _ in range(600):
            self.assertEqual(self.client.read(), OK)
        self.does("CONFIG RESETSTAT")
        self.fails("CROW t long", "TOOLARGE")
        self.fails("CROWS t 2 r long", "TOOLARGE")
        self.assertEqual((self.counts("crow"), self.counts("crows")), ((1, 0, 1), (1, 0, 1)))
        self.assertEqual(self.errors(), {"TOOLARGE": 2})
        self.does("MULTI ATOMIC", "CPUT t r f:a 1", "CROW t long")
        self.fails("EXEC", "EXECABORT")
        self.assertEqual(self.client.call("CGET", "t", "r", "f:a"), b"old")

    def silently(self, *lines):
        """Runs the commands on a connection that wants no replies."""
        silent = resp.Client(self.server.port)
        self.addCleanup(silent.close)
        for line in ("CLIENT REPLY OFF", *lines, "CLIENT REPLY ON"):
            silent.send(*line.split())
        self.assertEqual(silent.read(), OK)

    def test_atomic_is_taken_back_though_nobody_wants_replies(self):
        self.silently("MULTI ATOMIC", "CPUT t r f:a new", "CPUT t r nosuch:a 1", "EXEC")
        self.assertEqual(self.client.call("CGET", "t", "r", "f:a"), b"old")
        self.assertEqual(self.counts("exec"), (1, 0, 1))

    def test_what_nobody_hears_of_is_counted(self):
        self.silently("CGET nosuch r f:a", "CGET t r")
        self.assertEqual(self.counts("cget"), (1, 1, 1))
        self.assertEqual(self.errors(), {"NOTABLE": 1, "ERR": 1})

    def test_a_refusal_by_a_handler_is_in_the_log_of_access_control(self):
        self.does("ACL SETUSER u reset on nopass +@all %R~t:n")
        user = resp.Client(self.server.port)
        self.addCleanup(user.close)
        self.assertEqual(user.call("AUTH", "u", "x"), S("OK"))
        self.does("ACL LOG RESET")
        for line in ("CGET t r f:a", "CMGET t r n:x f:a"):
            self.assertEqual(user.call(*line.split()).code, "NOPERM", line)
        logged = self.redis.acl_log()
        self.assertEqual([entry["object"] for entry in logged], ["t:f"])
        self.assertEqual(logged[0]["count"], 2)


if __name__ == "__main__":
    unittest.main()
