"""Pages of cellar-web about all tables, what else a store has, users, configuration, and how a read is answered."""

import base64
import unittest

from cellar_server import CellarServer
from web_page import By, PageTest, Web


class TestStatePages(PageTest):
    def fill(self):
        redis = self.redis
        redis.execute_command("INDEX", "CREATE", "planes", "top", "ON", "1", "n:max", "INCLUDE", "1", "f:q")
        redis.execute_command("FEED", "CREATE", "news", "ON", "1", "planes", "KEEP", "7d")
        redis.execute_command("XGROUP", "CREATE", "news", "mail", "0")
        redis.execute_command("SNAPSHOT", "CREATE", "monday", "TTL", "7d")
        redis.execute_command("KEYSPACE", "CREATE", "team")
        redis.execute_command("TABLE", "CREATE", "team/far", "FAMILY", "f")
        self.addCleanup(redis.execute_command, "KEYSPACE", "DROP", "team")
        self.addCleanup(redis.execute_command, "SNAPSHOT", "DROP", "monday")
        self.addCleanup(redis.execute_command, "FEED", "DROP", "news")

    def enter(self, address, heading):
        self.log_in("default", "sesame")
        self.heading("Overview")
        self.go(address)
        self.heading(heading)

    def lines(self, table):
        """The texts of a table's cells."""
        return self.page.execute_script(
            "return [...document.querySelectorAll(`table[aria-label='${arguments[0]}'] tbody tr`)]"
            ".map((line) => [...line.children].map((cell) => cell.textContent))", table)

    def test_a_thousand_tables(self):
        pipe = self.redis.pipeline(transaction=False)
        for i in range(1000):
            pipe.execute_command("TABLE", "CREATE", "t%04d" % i, "FAMILY", "f")
        pipe.execute_command("CPUT", "t0999", "r", "f:a", "x" * 100_000)
        pipe.execute()
        self.enter("#/tables", "Tables")
        self.wait(lambda: self.find(By.ID, "wanted")).send_keys("T099")
        self.wait(lambda: [line[0] for line in self.lines("tables")] == ["0/t%04d" % i for i in range(990, 1000)])
        self.assertIn("1,003 tables", self.text())
        # It is refreshed by itself, and what is typed stays.
        self.redis.execute_command("CPUT", "t0990", "r", "f:a", "1", "f:b", "2")
        self.wait(lambda: self.lines("tables")[0][:3] == ["0/t0990", "1", "2"])
        self.assertEqual("T099", self.page.find_element(By.ID, "wanted").get_attribute("value"))
        self.page.find_element(By.ID, "wanted").send_keys("\n")
        self.click(By.LINK_TEXT, "memory")
        self.wait(lambda: self.lines("tables")[0][0] == "0/t0999")
        # The list beside it has a field of its own.
        self.wait(lambda: "and 703 more" in self.page.find_element(By.ID, "tables").text)
        self.page.find_element(By.ID, "find").send_keys("team")
        self.wait(lambda: [link.text for link in self.page.find_elements(By.CSS_SELECTOR, "#tables a")] == ["far"])
        self.follow("far")
        self.heading("team/far")
        self.assertEqual([], self.complaints())

    def test_what_a_store_has(self):
        self.enter("#/state", "State")
        self.wait(lambda: self.lines("indexes"))
        self.assertEqual(["0/planes", "top", "n:max", "f:q", "", "ready", "1"], self.lines("indexes")[0][:7])
        self.assertEqual(["0/news", "planes", "7d"], self.lines("feeds")[0][:3])
        self.assertEqual(["0/news", "mail", "0", "0", "0-0"], self.lines("groups")[0][:5])
        self.assertEqual(["0/monday", "6 d 23 h"], [self.lines("snapshots")[0][i] for i in (0, 2)])
        self.assertEqual("idle", self.lines("backup")[0][0])
        self.assertIn(["aof_last_write_status", "ok"], self.lines("files"))

    def test_users_and_configuration(self):
        self.redis.execute_command("ACL", "SETUSER", "two", "on", ">a", ">b", "%R~planes:f", "+@read", "(+cput ~other:*)")
        self.addCleanup(self.redis.execute_command, "ACL", "DELUSER", "two")
        self.enter("#/users", "Users")
        self.wait(lambda: len(self.lines("users")) == 3)
        two = self.lines("users")[-1]
        self.assertEqual(["two", "on", "2"], two[:3])
        self.assertIn("+@read", two[3])
        self.assertEqual("%R~planes:f", two[4])
        self.assertIn("~other:*", two[6])
        self.follow("Configuration")
        self.heading("Configuration")
        self.wait(lambda: self.find(By.ID, "wanted")).send_keys("requirepass")
        self.wait(lambda: self.lines("options") == [["requirepass", "(set)"]])
        self.assertNotIn("sesame", self.page.page_source)

    def test_how_a_read_is_answered(self):
        planes = "#/table/" + base64.urlsafe_b64encode(b"0/planes").decode().rstrip("=")
        self.enter(planes + "?where=f:q+EQ+new&prefix=a", "0/planes")
        self.follow("Explain")
        self.wait(lambda: "CSCAN" in self.text() and "[a, (b" in self.text())
        titles = [title.text for title in self.page.find_elements(By.CSS_SELECTOR, ".tree .node b")]
        self.assertEqual(["CSCAN", "Checks", "Table"], titles)
        self.assertNotIn("rows examined", self.text())
        self.click(By.ID, "analyze")
        self.wait(lambda: "rows examined 1" in self.text() and "rows returned 1" in self.text())
        # Each is fed by the one below it.
        self.assertEqual(3, len(self.page.find_elements(By.CSS_SELECTOR, ".tree li")))
        self.assertTrue(self.page.find_elements(By.CSS_SELECTOR, ".tree > li > ul > li > ul > li"))
        self.follow("Rows")
        self.wait(lambda: [link.text for link in self.page.find_elements(By.CSS_SELECTOR, "td.key a")] == ["a1"])

    def test_few_rights(self):
        self.log_in("few", "pw")
        self.heading("Overview")
        self.follow("Tables")
        self.heading("Tables")
        self.wait(lambda: [line[:3] for line in self.lines("tables")] == [["0/other", "1", "1"]])
        self.redis.execute_command("ACL", "SETUSER", "few", "-acl", "-config")
        for page in ("users", "config"):
            self.go("#/" + page)
            self.wait(lambda: "NOPERM" in self.trouble())
        # A part that may not be seen says so, and the others are there.
        self.redis.execute_command("ACL", "SETUSER", "few", "-backup")
        self.go("#/state")
        self.heading("State")
        self.wait(lambda: "NOPERM" in self.text() and "Indexes\nnone" in self.text())

    def test_an_empty_server(self):
        server = CellarServer(options={"save": ""})
        self.addCleanup(server.close)
        server.start()
        web = Web(server.port)
        self.addCleanup(web.end)
        self.page.get(web.address)
        self.heading("Overview")
        for page, text in (("tables", "There are no tables"), ("state", "idle"), ("users", "default"), ("heat", "Of which table?"),
                           ("slow", "Slow log"), ("config", "maxmemory"), ("replication", "master"), ("console", "Console")):
            self.page.get(web.address + "#/" + page)
            self.wait(lambda: text in self.text())
            self.assertEqual("", self.trouble())
        self.assertIn("none, or none that you may see", self.page.find_element(By.ID, "tables").text)
        with server.client() as redis:
            redis.execute_command("TABLE", "CREATE", "first", "FAMILY", "f")
        self.page.get(web.address + "#/tables")
        self.wait(lambda: "0/first" in self.text())


if __name__ == "__main__":
    unittest.main()
