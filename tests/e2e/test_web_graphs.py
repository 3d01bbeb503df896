"""Graphs of cellar-web: what it has kept of the server's figures, and how that is drawn."""

import base64
import os
import tempfile
import unittest

from cellar_server import CellarServer, wait_until
from web_page import By, PageTest, Web, WebTest

try:
    from selenium.webdriver.common.action_chains import ActionChains
except ImportError:
    ActionChains = None


def secret_file(test, secret):
    """A file that holds a password."""
    with tempfile.NamedTemporaryFile("w", suffix=".password", delete=False) as file:
        file.write(secret + "\n")
    test.addCleanup(os.unlink, file.name)
    return file.name


class TestPast(WebTest):
    def past(self, web, hours=1):
        told = web.ask(f"past?hours={hours}")
        return told, {name: [value for value in values if value is not None] for name, values in told["figures"].items()}

    def test_figures_are_kept_while_nobody_looks(self):
        self.redis.execute_command("ACL", "SETUSER", "graphs", "on", ">secret", "+ping", "+info", "~*")
        web = Web(self.server.port, "--graph-user", "graphs", "--graph-password-file", secret_file(self, "secret"))
        self.addCleanup(web.end)
        web.log_in("default", "sesame")
        for hours, step in ((1, 10), (24, 240)):
            told, kept = wait_until(lambda: (found := self.past(web, hours))[1]["memory"] and found)
            self.assertEqual([step, None], [told["step"], told["trouble"]])
            self.assertEqual({len(values) for values in told["figures"].values()}, {hours * 3600 // step + 1})
            self.assertGreater(kept["memory"][-1], 1 << 20)
            self.assertGreaterEqual(kept["clients"][-1], 2)
        # A rate needs two samples.
        rates = wait_until(lambda: self.past(web)[1]["commands"])
        self.assertTrue(all(0 <= rate < 1e6 for rate in rates), rates)
        for hours in ("0", "25", "x"):
            self.assertIn("1 to 24", web.ask("past?hours=" + hours, 400))

    def test_a_server_that_goes_leaves_a_gap(self):
        server = CellarServer(options={"save": ""})
        self.addCleanup(server.close)
        server.start()
        with server.client() as redis:
            for _ in range(1000):
                redis.ping()
        web = Web(server.port)
        self.addCleanup(web.end)
        web.log_in()
        wait_until(lambda: self.past(web)[1]["commands"])
        server.restart()
        # Whose counters begin anew, so that nothing falls or leaps.
        wait_until(lambda: self.past(web)[0]["trouble"] is None and len(self.past(web)[1]["memory"]) > 1)
        self.assertTrue(all(rate >= 0 for rate in self.past(web)[1]["commands"]))
        server.stop()
        self.assertIn("refused", web.ask("past?hours=1", 502))

    def test_who_may_not_ask_info_sees_nothing(self):
        self.redis.execute_command("ACL", "SETUSER", "few", "-info")
        self.assertEqual("log in first", self.web.ask("past?hours=1", 401))
        self.web.log_in("few", "pw")
        self.assertIn("NOPERM", self.web.ask("past?hours=1", 403))

    def test_why_there_are_none_is_said(self):
        """Without a user of its own it is refused here."""
        self.web.log_in("default", "sesame")
        told = wait_until(lambda: (found := self.past(self.web)[0])["trouble"] and found)
        self.assertIn("NOAUTH", told["trouble"])
        self.assertEqual({None}, {value for values in told["figures"].values() for value in values})


class TestGraphPage(PageTest):
    def test_axes_and_lines(self):
        web = Web(self.server.port, "--graph-user", "default", "--graph-password-file", secret_file(self, "sesame"))
        self.addCleanup(web.end)
        self.page.get(web.address + "#/graphs")
        self.log_in("default", "sesame")
        self.heading("Graphs")
        graphs = lambda: {figure.get_attribute("data-name"): figure
                          for figure in self.page.find_elements(By.CSS_SELECTOR, "figure.graph")}
        self.wait(lambda: len(graphs()) == 8)
        # It is drawn anew by itself.
        self.wait(lambda: graphs()["commands"].find_elements(By.TAG_NAME, "polyline"))
        self.wait(lambda: "B" in graphs()["memory"].find_element(By.TAG_NAME, "text").text)
        name = self.wait(lambda: graphs()["memory"].find_element(By.TAG_NAME, "svg").get_attribute("aria-label"))
        self.assertRegex(name, r"^Memory: now [\d.]+ [KMG]iB, from [\d.]+ [KMG]iB to [\d.]+ [KMG]iB$")
        times = self.wait(lambda: [text.text for text in graphs()["memory"].find_elements(By.TAG_NAME, "text") if ":" in text.text])
        self.assertGreaterEqual(len(times), 3)
        self.page.find_element(By.ID, "hours").send_keys("24")
        self.wait(lambda: "hours=24" in self.page.current_url)
        self.wait(lambda: self.page.find_element(By.ID, "hours").get_attribute("value") == "24")
        self.assertEqual([], self.complaints())

    def test_why_there_are_none_is_shown(self):
        self.page.get(self.web.address + "#/graphs")
        self.log_in("default", "sesame")
        self.heading("Graphs")
        self.wait(lambda: "NOAUTH" in self.text() and "--graph-user" in self.text())


class TestHeatPage(PageTest):
    def fill(self):
        pipe = self.redis.pipeline(transaction=False)
        for i in range(3000):
            pipe.execute_command("CPUT", "planes", "p%04d" % i, "f:q", "x" * 100)
        for _ in range(200):
            pipe.execute_command("CGET", "planes", "p2500", "f:q")
        pipe.execute()
        self.heat = "#/heat/" + base64.urlsafe_b64encode(b"0/planes").decode().rstrip("=")

    def keys(self):
        return [label.text for label in self.page.find_elements(By.CSS_SELECTOR, ".axis.keys span")]

    def hottest(self):
        return self.page.execute_script(
            "return [...document.querySelectorAll(`table[aria-label='hottest ranges'] tbody tr`)]"
            ".map((line) => [...line.children].map((cell) => cell.textContent))")

    def test_zoom_range_and_hot_keys(self):
        self.page.get(self.web.address + self.heat)
        self.log_in("default", "sesame")
        self.heading("Heat of 0/planes")
        self.wait(lambda: self.hottest())
        hot = self.hottest()[0]
        self.assertTrue("p2000" < hot[0] <= "p2500", hot)
        self.assertIn("HOTKEYS START", self.text())
        self.follow(hot[0])
        self.heading("0/planes")
        self.wait(lambda: [link.text for link in self.page.find_elements(By.CSS_SELECTOR, "td.key a")][:1] == [hot[0]])
        self.page.back()
        self.heading("Heat of 0/planes")
        self.wait(lambda: self.keys()[:1] == ["-"])
        # The lower half of the keys, by dragging.
        canvas = self.wait(lambda: self.find(By.ID, "heat"))
        width, height = canvas.size["width"], canvas.size["height"]
        ActionChains(self.page).move_to_element_with_offset(canvas, -width // 2 + 2, 5).click_and_hold().move_to_element_with_offset(
            canvas, width // 2 - 2, height // 2 - 2).release().perform()
        self.wait(lambda: "lo=" in self.page.current_url)
        self.wait(lambda: self.keys() and self.keys()[0] > "p1000")
        self.wait(lambda: self.hottest() and "p2000" < self.hottest()[0][0] <= "p2500")
        self.click(By.ID, "whole")
        self.wait(lambda: self.keys()[:1] == ["-"] and "lo=" not in self.page.current_url)
        self.click(By.ID, "earlier")
        self.wait(lambda: "from=" in self.page.current_url)
        self.page.back()
        self.wait(lambda: "from=" not in self.page.current_url and self.keys()[:1] == ["-"])
        self.redis.execute_command("HOTKEYS", "START", "METRICS", "2", "CPU", "NET")
        self.addCleanup(self.redis.execute_command, "HOTKEYS", "STOP")
        for _ in range(50):
            self.redis.execute_command("CGET", "planes", "p0007", "f:q")
        self.go(self.heat + "?metric=writes&hours=24")
        self.wait(lambda: "p0007" in self.page.find_element(By.CSS_SELECTOR, "table[aria-label='hot rows']").text)
        self.assertIn("writes", self.page.find_element(By.CSS_SELECTOR, ".legend").text)
        self.assertEqual([], self.complaints())


if __name__ == "__main__":
    unittest.main()
