"""The console of cellar-web: what may be typed, as whom, and how it is typed."""

import base64
import json
import os
import re
import tempfile
import threading
import unittest

from cellar_server import ROOT, wait_until
from web_page import By, PageTest, Web, WebTest


def manual_rights():
    """The rule of the console's user, as cellar-web(1) has it."""
    with open(os.path.join(ROOT, "conf", "man", "cellar-web.1"), encoding="utf-8") as manual:
        rule = re.search(r"ACL SETUSER typist (.*?)\n\.Ed", manual.read(), re.DOTALL).group(1)
    return rule.split()


class ConsoleMixin:
    def begin_console(self):
        self.redis.execute_command("ACL", "SETUSER", "typist", *manual_rights())
        with tempfile.NamedTemporaryFile("w", suffix=".password", delete=False) as file:
            file.write("secret\n")
        self.addCleanup(os.unlink, file.name)
        self.web.end()
        self.web = Web(self.server.port, "--console-user", "typist", "--console-password-file", file.name)
        self.addCleanup(self.web.end)


class TestTyped(ConsoleMixin, WebTest):
    def setUp(self):
        super().setUp()
        self.begin_console()
        self.web.log_in("default", "sesame")

    def type(self, *words, status=200):
        packed = ".".join(base64.b64encode(word if isinstance(word, bytes) else str(word).encode()).decode() for word in words)
        response, content = self.web.request("POST", "/api/typed", json.dumps({"words64": packed}))
        self.assertEqual(status, response.status, content)
        return json.loads(content)["answer" if status == 200 else "error"]

    def test_what_reads_is_answered(self):
        self.assertEqual("new", self.type("CGET", "planes", "a1", "f:q"))
        self.assertEqual("new", self.type("cget", "0/planes", "a1", "f:q"))
        self.assertEqual({"b64": "AP4="}, self.type("CGET", "planes", b"b\xff", b"f:\x80"))
        self.assertEqual(["other", "planes"], self.type("TABLE", "LIST"))
        self.assertIn("cellar_version", self.type("INFO", "server"))
        for words in (("CSCAN", "planes", 0), ("CROW", "planes", "a1"), ("CEXPLAIN", "CSCAN", "planes", 0), ("PING",),
                      ("COMMAND", "DOCS", "cget"), ("CAGG", "planes", "REDUCE", "COUNT", "*"), ("INDEX", "LIST", "planes"),
                      ("HEAT", "planes", "RANGES", 1), ("ACL", "WHOAMI"), ("SNAPSHOT", "LIST"), ("XINFO", "GROUPS", "nix")):
            self.type(*words, status=400 if words[0] == "XINFO" else 200)

    def test_what_does_not_only_read_is_refused_by_the_server(self):
        before = self.redis.execute_command("CROW", "planes", "a1")
        for words in (("CPUT", "planes", "a1", "f:q", "x"), ("TABLE", "DROP", "planes"), ("FLUSHALL",), ("CONFIG", "SET", "save", ""),
                      ("CONFIG", "GET", "requirepass"), ("ACL", "SETUSER", "typist", "+@all"), ("SHUTDOWN", "NOW"), ("MULTI",),
                      ("SUBSCRIBE", "x"), ("MONITOR",), ("CLIENT", "REPLY", "OFF"), ("CLIENT", "KILL", "ID", 1),
                      ("XREAD", "BLOCK", 0, "STREAMS", "f", "$"), ("SELECT", 1), ("DEBUG", "SLEEP", 9),
                      ("SLOWLOG", "RESET"), ("CUPDATE", "planes", "PUT", "f:q", 1), ("XGROUP", "CREATE", "f", "g", 0),
                      ("ACL", "GETUSER", "default"), ("SNAPSHOT", "CREATE", "s"), ("KEYS", "*")):
            self.assertRegex(self.type(*words, status=400), "only what reads may be typed: of user typist the server says: .*no permissions",
                             words)
        for words in (("HELLO", 3), ("auth", "few", "pw"), ("QUIT",), ("RESET",)):  # which no right is needed for
            self.assertIn("changes who asks", self.type(*words, status=400))
        self.assertIn("not found", self.type("NIX", status=400))
        self.assertEqual(before, self.redis.execute_command("CROW", "planes", "a1"))
        for words in ((), ("",)):
            self.type(*words, status=400)

    def test_nobody_sees_more_than_they_may(self):
        self.web.log_in("few", "pw")
        self.assertEqual(["other"], self.type("TABLE", "LIST"))
        self.assertIn("NOPERM", self.type("CGET", "planes", "a1", "f:q", status=403))
        self.assertEqual("few", self.type("ACL", "WHOAMI"))
        # Nor does somebody who may do less than the console's user.
        self.redis.execute_command("ACL", "SETUSER", "least", "on", ">pw", "+ping", "+cget", "~*")
        self.web.log_in("least", "pw")
        self.assertEqual("new", self.type("CGET", "planes", "a1", "f:q"))
        self.assertIn("NOPERM", self.type("CSCAN", "planes", 0, status=403))
        self.web.session = "0" * 32
        self.type("PING", status=401)

    def test_a_page_of_another_origin_types_nothing(self):
        body = json.dumps({"words64": "UElORw=="})
        session = {"X-Cellar-Session": self.web.session}
        self.assertEqual(403, self.web.request("POST", "/api/typed", body, session, plain=True)[0].status)
        self.assertEqual(401, self.web.request("POST", "/api/typed", body, {"X-Cellar": "1"}, plain=True)[0].status)

    def test_large_replies_are_refused_and_hold_up_nothing(self):
        self.redis.execute_command("CPUT", "planes", "large", *(word for i in range(20) for word in (f"f:{i}", b"x" * 100_000)))
        self.redis.execute_command("CPUT", "planes", "long", "f:q", b"x" * (8 << 20))
        self.assertIn("ask for less", self.type("CROW", "planes", "large", status=413))
        self.assertEqual("new", self.type("CGET", "planes", "a1", "f:q"))
        self.assertEqual({"bytes": 8 << 20, "begin": "x" * (16 << 10)}, self.type("CGET", "planes", "long", "f:q"))

    def test_without_a_user_for_it_nothing_may_be_typed(self):
        web = Web(self.server.port)
        self.addCleanup(web.end)
        self.web = web
        web.log_in("default", "sesame")
        self.assertIn("--console-user", self.type("PING", status=400))

    def test_a_user_that_is_gone_or_changed(self):
        self.redis.execute_command("ACL", "SETUSER", "typist", "-cget")
        self.assertIn("no permissions", self.type("CGET", "planes", "a1", "f:q", status=400))
        self.redis.execute_command("ACL", "DELUSER", "typist")
        self.assertIn("user typist, who says what may be typed", self.type("PING", status=400))
        self.redis.execute_command("ACL", "SETUSER", "typist", *manual_rights())
        self.assertEqual("PONG", self.type("PING"))

    def test_a_long_question_keeps_no_other_waiting(self):
        """Of the same session, and of others."""
        self.redis.execute_command("ACL", "SETUSER", "typist", "+xread")
        self.redis.execute_command("FEED", "CREATE", "quiet", "ON", "1", "other")
        self.redis.execute_command("WAITAOF", 1, 0, 0)
        answers = []
        def wait_long():
            answers.append(self.web.request("POST", "/api/typed", json.dumps({"words64": ".".join(
                base64.b64encode(word).decode() for word in (b"XREAD", b"BLOCK", b"0", b"STREAMS", b"quiet", b"$"))}))[0].status)
        threads = [threading.Thread(target=wait_long) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: self.redis.info("clients")["blocked_clients"] == 3)
        self.assertEqual("new", self.type("CGET", "planes", "a1", "f:q"))
        self.assertEqual([], answers)
        self.web.log_in("few", "pw")
        self.assertEqual("few", self.type("ACL", "WHOAMI"))
        self.redis.execute_command("CPUT", "other", "x", "f:q", "wakes")
        for thread in threads:
            thread.join()
        self.assertEqual([200] * 3, answers)


class TestConsolePage(ConsoleMixin, PageTest):
    def setUp(self):
        super().setUp()
        self.begin_console()
        self.page.get(self.web.address + "#/console")
        self.log_in("default", "sesame")
        self.heading("Console")
        self.line = self.wait(lambda: self.find(By.ID, "line"))
        self.complaints()  # of the page before, whose program has ended

    def last(self):
        entries = self.page.find_elements(By.CSS_SELECTOR, "#log .entry pre")
        return entries[0].text if entries else ""

    def offers(self):
        return [offer.text for offer in self.page.find_elements(By.CSS_SELECTOR, "#offers li")]

    def test_typing(self):
        keys = self.line.send_keys
        keys("CROW planes a1 COLUMNS 1 f VERSIONS 2\n")
        self.wait(lambda: self.last() .startswith('1) "f:q"\n2) 1) 1) (integer) '))
        self.assertIn('\n      2) "new"\n', self.last())
        keys('CROW planes "b\\xff"\n')
        self.wait(lambda: self.last() == '1) "f:\\x80"\n2) "\\x00\\xfe"')
        keys("CPUT planes a1 f:q y\n")
        self.wait(lambda: "only what reads may be typed" in self.last())
        self.assertTrue(self.page.find_elements(By.CSS_SELECTOR, ".entry.error"))
        keys("CGET other x f:q\n")
        self.wait(lambda: "onerror" in self.last())
        self.assertFalse(self.page.find_elements(By.CSS_SELECTOR, "main img"))
        # Back in history, and forwards to an empty line.
        keys("\ue013\ue013")
        self.assertEqual("CPUT planes a1 f:q y", self.line.get_attribute("value"))
        keys("\ue015\ue015")
        self.assertEqual("", self.line.get_attribute("value"))
        keys('CGET "planes\n')
        self.wait(lambda: "a quote is not closed" in self.trouble())
        # What was asked stays when another page has been shown.
        self.follow("Slow log")
        self.heading("Slow log")
        self.page.back()
        self.wait(lambda: "onerror" in self.last())
        self.assertEqual([], [entry for entry in self.complaints() if "400" not in entry["message"]])

    def test_completion(self):
        self.wait(lambda: self.line.clear() or self.line.send_keys("cs") or self.offers() == ["CSCAN"])
        self.line.send_keys("\ue004")  # Tab
        self.assertEqual("CSCAN ", self.line.get_attribute("value"))
        self.wait(lambda: self.offers() == ["0/other", "0/planes"])
        self.assertIn("Returns rows in key order", self.page.find_element(By.ID, "hint").text)
        self.line.send_keys("0/pl\ue004")
        self.assertEqual("CSCAN 0/planes ", self.line.get_attribute("value"))
        self.line.send_keys("0 COL\ue015\ue015\n")  # the second of three
        self.assertEqual("CSCAN 0/planes 0 COLRANGE ", self.line.get_attribute("value"))
        self.line.clear()
        self.line.send_keys("table l")
        self.wait(lambda: self.offers() == ["TABLE LIST"])
        self.line.send_keys("\ue00c")  # Escape
        self.assertEqual([], self.offers())
        self.line.send_keys("ist\n")
        self.wait(lambda: self.last() == '1) "other"\n2) "planes"')


if __name__ == "__main__":
    unittest.main()
