"""cellar-web: logging in, what it answers and to whom, and the page in a browser where there is one."""

import base64
import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from cellar_server import CellarServer, CellarTest, free_port, tool

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = None

BROWSERS = [path for path in map(shutil.which, ("chromium", "google-chrome")) if path]
HTML = "<img src=x onerror=document.title='run'>"
# Names of tables and families hold none of this; rows, qualifiers and values do.
HOSTILE = [text.encode() for text in (
    HTML, "<script>document.title='run'</script>", "\"'><svg onload=document.title='run'>", "</td></table><iframe src=/>",
    "javascript:document.title='run'", "{{7*7}}${7*7}", "&lt;b&gt;&#60;", "\u202eright to left", "a\r\nSet-Cookie: x=1")]


class Web:
    """cellar-web beside a server, asked as a browser would."""

    def __init__(self, port, *words):
        self.process = subprocess.Popen([tool("cellar-web"), "-p", str(port), "--listen", "0", *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        self.port = int(self.address.rsplit(":", 1)[1].strip("/"))
        self.cookie = None

    def request(self, method, path, body=None, headers=None, plain=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {} if plain else {"X-Cellar": "1"}
        if self.cookie and not plain:
            sent["Cookie"] = self.cookie
        connection.request(method, path, body, {**sent, **(headers or {})})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response, content

    def ask(self, path, status=200):
        response, content = self.request("GET", "/api/" + path)
        assert response.status == status, (path, response.status, content)
        return json.loads(content).get("answer" if status == 200 else "error")

    def log_in(self, user="", password="", status=200):
        response, content = self.request("POST", "/api/login", json.dumps({"user": user, "password": password}))
        assert response.status == status, (response.status, content)
        if status == 200:
            self.cookie = response.headers["Set-Cookie"].split(";")[0]
        return response, content

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


class WebTest(CellarTest):
    OPTIONS = {"save": "", "heat-sample": "1", "slowlog-log-slower-than": "0"}

    def setUp(self):
        super().setUp()
        self.redis.execute_command("TABLE", "CREATE", "planes", "FAMILY", "f", "VERSIONS", "3", "FAMILY", "n", "TYPE", "i64")
        self.redis.execute_command("TABLE", "CREATE", "other", "FAMILY", "f")
        self.redis.execute_command("CPUT", "planes", "a1", "f:q", "old")
        self.redis.execute_command("CPUT", "planes", "a1", "f:q", "new", "n:max", str(2 ** 63 - 1))
        self.redis.execute_command("CPUT", "planes", b"b\xff", b"f:\x80", b"\x00\xfe")
        self.redis.execute_command("CPUT", "other", "x", "f:q", HTML)
        self.redis.execute_command("ACL", "SETUSER", "few", "on", ">pw", "+@all", "%R~other", "%R~other:*")
        self.redis.config_set("requirepass", "sesame")
        self.addCleanup(self.redis.config_set, "requirepass", "")
        self.web = Web(self.server.port)
        self.addCleanup(self.web.end)


class TestApi(WebTest):
    def test_nobody_is_let_in_without_the_password(self):
        web = self.web
        self.assertFalse(web.ask("session"))
        self.assertEqual(web.ask("info", 401), "log in first")
        self.assertIn(b"NOAUTH", web.log_in(status=401)[1])
        self.assertIn(b"WRONGPASS", web.log_in("default", "wrong", 401)[1])
        web.cookie = "cellar=" + "0" * 32
        self.assertEqual(web.ask("rows?table=planes", 401), "log in first")
        response, _ = web.log_in("default", "sesame")
        self.assertTrue(web.ask("session"))
        for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(part, response.headers["Set-Cookie"])
        web.request("POST", "/api/logout")
        self.assertEqual(web.ask("info", 401), "log in first")

    def test_passwords_cannot_be_tried_for_ever(self):
        for _ in range(10):
            self.web.log_in("default", "wrong", 401)
        self.assertIn(b"too many", self.web.log_in("default", "sesame", 429)[1])

    def test_answers(self):
        web = self.web
        web.log_in("default", "sesame")
        self.assertEqual(web.ask("tables?keyspace=0"), ["other", "planes"])
        self.assertEqual(web.ask("tables?keyspace=1"), [])
        self.assertIn("0", web.ask("keyspaces"))
        cursor, rows = web.ask("rows?table=0/planes")
        self.assertEqual(cursor, "0")
        self.assertEqual(rows[0][0], "a1")
        self.assertEqual([rows[0][1][0], rows[0][1][1][0][1]], ["f:q", "new"])
        self.assertEqual(rows[0][1][3][0][1], {"int": str(2 ** 63 - 1)})
        binary = {"b64": base64.b64encode(b"b\xff").decode()}
        self.assertEqual([rows[1][0], rows[1][1][1][0][1]], [binary, {"b64": base64.b64encode(b"\x00\xfe").decode()}])
        versions = web.ask("row?table=planes&row=a1")[1]
        self.assertEqual([value for _, value in versions], ["new", "old"])
        row64 = base64.urlsafe_b64encode(b"b\xff").decode().rstrip("=")
        self.assertEqual(len(web.ask("row?table64=MC9wbGFuZXM&row64=" + row64)), 2)
        self.assertEqual([row for row, _ in web.ask("rows?table=planes&prefix=a")[1]], ["a1"])
        first, page = web.ask("rows?table=planes&count=1")
        self.assertEqual(len(page), 1)
        self.assertEqual(web.ask("rows?table=planes&count=1&cursor=" + first)[1][0][0], binary)
        self.assertIn("families", web.ask("table?table=planes"))
        self.assertIn("versions", web.ask("family?table=planes&family=f"))
        self.assertIn("TABLE CREATE planes", web.ask("definition?table=planes")[0])
        self.assertIn("cellar_version", web.ask("info"))
        self.assertEqual(web.ask("role")[0], "master")
        self.assertIn("keys", web.ask("heat?table=planes&ranges=8"))
        self.assertTrue(web.ask("slowlog"))

    def test_long_values_are_cut(self):
        web = self.web
        web.log_in("default", "sesame")
        for row, value, begin in ((b"cut", "é" * (1 << 20), "é" * (8 << 10)), (b"whole", "x" * (128 << 10), None)):
            self.redis.execute_command("CPUT", "planes", row, "f:q", value)
            told = self.texts(web.ask("row?table=planes&row=" + row.decode()))
            if begin is None:
                self.assertIn(value, told)
            else:
                self.assertIn({"bytes": 2 << 20, "begin": begin}, told)

    def texts(self, answer):
        """All that stands in nested arrays."""
        return [text for one in answer for text in self.texts(one)] if isinstance(answer, list) else [answer]

    def test_wrong_questions_are_told_what_is_wrong(self):
        web = self.web
        web.log_in("default", "sesame")
        for path, text in (("rows", "table is missing"), ("rows?table=nix", "no table 'nix'"), ("rows?table64=A", "not base64"),
                           ("rows?table=planes&count=0", "1 to 1000"), ("rows?table=planes&count=1e3", "1 to 1000"),
                           ("flushall", "no such question"), ("rows?table=planes&cursor=zzz", "cursor")):
            self.assertIn(text, web.ask(path, 400))
        for method, path, status in (("POST", "/api/info", 405), ("GET", "/api/login", 405), ("DELETE", "/", 404),
                                     ("GET", "/nothing", 404), ("GET", "/../Makefile", 404)):
            self.assertEqual(web.request(method, path)[0].status, status, path)
        for body in ("", "{", "[]", '{"user": 1, "password": 2}', '{"user": "x"}'):
            self.assertEqual(web.request("POST", "/api/login", body)[0].status, 400, body)
        self.assertEqual(web.request("POST", "/api/login", "x" * 100_000)[0].status, 413)

    def test_other_pages_cannot_use_it(self):
        web = self.web
        web.log_in("default", "sesame")
        cookie = {"Cookie": web.cookie}
        self.assertEqual(web.request("GET", "/api/info", headers=cookie, plain=True)[0].status, 403)
        self.assertEqual(web.request("POST", "/api/logout", headers=cookie, plain=True)[0].status, 403)
        for host, status in (("evil.example", 403), ("localhost:1", 200), ("127.0.0.1", 200), ("", 403)):
            self.assertEqual(web.request("GET", "/", headers={"Host": host})[0].status, status, host)
        response, content = web.request("GET", "/")
        self.assertIn("default-src 'none'", response.headers["Content-Security-Policy"])
        self.assertNotIn("unsafe", response.headers["Content-Security-Policy"])
        self.assertEqual(response.headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(response.headers["Cache-Control"], "no-store")
        self.assertIsNone(response.headers["Access-Control-Allow-Origin"])
        self.assertNotIn(b"<script>", content)
        self.assertNotIn(b" style=", content)
        named = Web(self.server.port, "--name", "cellar.example")
        self.addCleanup(named.end)
        self.assertEqual(named.request("GET", "/", headers={"Host": "cellar.example"})[0].status, 200)

    def test_every_answer_has_the_headers_that_guard_the_page(self):
        web = self.web
        web.log_in("default", "sesame")
        answers = [web.request("GET", path)[0] for path in ("/", "/app.js", "/style.css", "/nothing", "/api/info", "/api/nix",
                                                            "/api/rows?table=nix")]
        answers += [web.request("POST", "/api/login", "x" * 10_000)[0], web.log_in("default", "wrong", 401)[0],
                    web.request("GET", "/api/info", plain=True)[0], web.request("GET", "/", headers={"Host": "evil"})[0]]
        self.assertEqual({answer.status for answer in answers}, {200, 400, 401, 403, 404, 413})
        for answer in answers:
            policy = answer.headers["Content-Security-Policy"]
            for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'",
                         "form-action 'none'", "base-uri 'none'"):
                self.assertIn(part, policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(answer.headers["X-Frame-Options"], "DENY")
            self.assertEqual(answer.headers["Referrer-Policy"], "no-referrer")
            self.assertEqual(answer.headers["Cache-Control"], "no-store")
            self.assertRegex(answer.headers["Content-Type"], "charset=utf-8|svg|json")

    def test_a_million_rows(self):
        rows = 1_000_000
        self.redis.execute_command("TABLE", "CREATE", "million", "FAMILY", "f")
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("key,f:q\n")
            file.writelines("r%07d,%032d\n" % (i, i) for i in range(rows))
            file.flush()
            subprocess.run([tool("cellar-import"), "-p", str(self.server.port), "-a", "sesame", "-q", "-k", "key",
                            "million", file.name], check=True)
        web = self.web
        web.log_in("default", "sesame")
        self.assertEqual(self.redis.execute_command("CCOUNT", "million"), rows)
        examined = self.reads("million")
        cursor, seen = "0", []
        for _ in range(40):
            cursor, page = web.ask(f"rows?table=million&count=50&cursor={cursor}")
            seen += [row for row, _ in page]
        self.assertEqual(seen, ["r%07d" % i for i in range(2000)])
        for prefix, found in (("r09999", 100), ("r0999999", 1), ("r1", 0), ("r05", 1000)):
            _, page = web.ask(f"rows?table=million&count=1000&prefix={prefix}")
            self.assertEqual(len(page), found)
        # No question walked over more than it showed, or two orders of magnitude would be missing here; and what the
        # tool holds is a page.
        self.assertLess(self.reads("million") - examined, 20_000)
        with open(f"/proc/{web.process.pid}/status", encoding="ascii") as status:
            peak_kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        self.assertLess(peak_kib, 64 << 10)

    def reads(self, table):
        """Rows of the table that have been examined, about: heat-sample is 1."""
        heat = self.redis.execute_command("HEAT", table, "RANGES", "1")
        return sum(step[0] for step in heat[heat.index(b"reads") + 1])

    def test_everybody_sees_what_they_may_see(self):
        web = self.web
        web.log_in("few", "pw")
        self.assertEqual(web.ask("tables?keyspace=0"), ["other"])
        self.assertIn("NOPERM", web.ask("rows?table=planes", 403))
        self.assertEqual(web.ask("rows?table=other")[1][0][0], "x")
        # Not by another door either.
        for path in ("row?table=planes&row=a1", "rows?table=0/planes", "rows?table64=MC9wbGFuZXM", "heat?table=planes",
                     "table?table=planes", "family?table=planes&family=f", "definition?table=planes"):
            self.assertIn("NOPERM", web.ask(path, 403), path)
        self.assertEqual(web.ask("session"), True)

    def test_a_server_that_goes_and_comes(self):
        gone = Web(free_port())
        self.addCleanup(gone.end)
        self.assertIn(b"onnection refused", gone.log_in(status=502)[1])
        server = CellarServer(options={"save": "", "requirepass": "sesame"})
        self.addCleanup(server.close)
        server.start()
        web = Web(server.port)
        self.addCleanup(web.end)
        web.log_in("default", "sesame")
        self.assertEqual(web.ask("role")[0], "master")
        server.restart()
        self.assertEqual(web.ask("role")[0], "master")
        server.stop()
        self.assertIn("refused", web.ask("role", 502))

    def test_the_command_line(self):
        for words, text in ((["--listen", "x"], "x"), (["--bind", "nowhere"], "nowhere is no address"), (["--nix"], "--nix")):
            done = subprocess.run([tool("cellar-web"), *words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 1 if "address" in text else 2)
            self.assertIn(text, done.stderr)
        taken = subprocess.run([tool("cellar-web"), "--listen", str(self.web.port)], capture_output=True, text=True,
                               timeout=60, check=False)
        self.assertEqual(taken.returncode, 1)
        self.assertIn("cannot be listened on", taken.stderr)


@unittest.skipUnless(webdriver and BROWSERS and shutil.which("chromedriver"), "no browser that can be driven")
class TestPage(WebTest):
    def setUp(self):
        super().setUp()
        self.redis.execute_command("TABLE", "CREATE", "hostile", "FAMILY", "f")
        pipe = self.redis.pipeline(transaction=False)
        for i in range(120):
            pipe.execute_command("CPUT", "planes", "p%03d" % i, "f:" + HTML, HTML)
        for text in HOSTILE:
            pipe.execute_command("CPUT", "hostile", text, b"f:" + text, text)
        pipe.execute()
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSERS[0]
        for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1280,900"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.page = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.addCleanup(self.page.quit)
        self.page.get(self.web.address)

    def wait(self, condition):
        # What is looked at may be replaced meanwhile: it is looked for again.
        return WebDriverWait(self.page, 60, ignored_exceptions=[WebDriverException]).until(lambda _: condition())

    def find(self, *selector):
        found = self.page.find_elements(*selector)
        return found[0] if found and found[0].is_displayed() else None

    def click(self, *selector):
        def clicked():
            element = self.find(*selector)
            return element is not None and (element.click() or True)
        self.wait(clicked)

    def follow(self, text):
        self.click(By.LINK_TEXT, text)

    def text(self):
        return self.page.find_element(By.TAG_NAME, "main").text

    def heading(self, text):
        self.wait(lambda: [h for h in self.page.find_elements(By.CSS_SELECTOR, "main h1") if h.text == text])

    def log_in(self, user, password):
        self.wait(lambda: self.find(By.ID, "login"))
        for name, value in (("user", user), ("password", password)):
            self.page.find_element(By.ID, name).clear()
            self.page.find_element(By.ID, name).send_keys(value)
        self.page.find_element(By.CSS_SELECTOR, "#login button").click()

    def test_clicked_through(self):
        self.log_in("default", "wrong")
        self.wait(lambda: "WRONGPASS" in self.page.find_element(By.ID, "trouble").text)
        self.log_in("default", "sesame")
        self.heading("Overview")
        self.follow("planes")
        self.heading("0/planes")
        self.wait(lambda: self.find(By.LINK_TEXT, "b\\xff"))
        self.wait(lambda: HTML in self.text())
        self.assertFalse(self.page.find_elements(By.TAG_NAME, "img"))
        self.click(By.ID, "next")
        self.follow("p060")
        self.heading("p060")
        self.page.back()
        self.wait(lambda: self.find(By.ID, "prefix")).send_keys("p11\n")
        self.wait(lambda: self.find(By.LINK_TEXT, "p119"))
        self.assertFalse(self.find(By.LINK_TEXT, "a1"))
        self.follow("Schema")
        self.wait(lambda: "TABLE CREATE planes" in self.text())
        self.follow("planes")
        self.follow("b\\xff")
        self.heading("b\\xff")
        self.page.back()
        self.click(By.CSS_SELECTOR, ".tabs a:last-child")
        self.heading("Heat of 0/planes")
        self.wait(lambda: self.find(By.ID, "heat"))
        self.follow("Slow log")
        self.heading("Slow log")
        self.follow("Replication")
        self.heading("Replication")
        self.click(By.ID, "leave")
        self.wait(lambda: self.find(By.ID, "login"))
        # Nothing of the values has run, and nothing has been refused by the page's own rules.
        self.assertEqual(self.page.title, "Cellar")
        logged = [entry for entry in self.page.get_log("browser") if "401" not in entry["message"]]
        self.assertEqual(logged, [])

    def test_hostile_texts_stay_texts(self):
        self.log_in("default", "sesame")
        self.follow("hostile")
        self.heading("0/hostile")
        # What would hide or turn text is shown as its number.
        shown = [text.decode().replace("\u202e", "\\u202e").replace("\r", "\\u000d").replace("\n", "\\u000a")
                 for text in HOSTILE]
        self.wait(lambda: len(self.page.find_elements(By.CSS_SELECTOR, "td.key a")) == len(HOSTILE))
        for text in shown:
            self.assertEqual(self.text().count(text), 3 * sum(text in other for other in shown), text)
            self.follow(text)
            self.heading(text)
            self.page.back()
            self.heading("0/hostile")
        self.follow("Slow log")
        self.heading("Slow log")
        self.wait(lambda: shown[1] in self.text())
        for tag in ("img", "iframe", "main script", "main svg"):
            self.assertFalse(self.page.find_elements(By.CSS_SELECTOR, tag), tag)
        self.assertEqual(self.page.title, "Cellar")
        self.assertEqual([entry for entry in self.page.get_log("browser") if "401" not in entry["message"]], [])

    def trouble(self):
        shown = self.find(By.ID, "trouble")
        return shown.text if shown is not None else ""

    def test_a_server_that_goes_while_the_page_is_open(self):
        server = CellarServer(options={"save": "", "requirepass": "sesame"})
        self.addCleanup(server.close)
        server.start()
        web = Web(server.port)
        self.addCleanup(web.end)
        server.stop()
        self.page.get(web.address)
        self.wait(lambda: "refused" in self.trouble())
        server.start()
        self.log_in("default", "sesame")
        self.heading("Overview")
        self.wait(lambda: self.trouble() == "")
        server.stop()
        self.wait(lambda: "refused" in self.trouble())
        self.assertTrue(self.find(By.ID, "head"))
        server.start()
        # It goes on by itself, and nobody has to log in again.
        self.wait(lambda: self.trouble() == "")
        self.assertIsNone(self.find(By.ID, "login"))

    def test_heat_says_where_nothing_was(self):
        for i in range(120):
            self.redis.execute_command("CGET", "planes", "p%03d" % (i % 3), "f:q")
        self.log_in("default", "sesame")
        self.follow("planes")
        self.click(By.CSS_SELECTOR, ".tabs a:last-child")
        self.heading("Heat of 0/planes")
        self.wait(lambda: self.find(By.ID, "heat"))
        legend = self.page.find_element(By.CSS_SELECTOR, ".legend").text
        self.assertIn("no reads", legend)
        self.assertIn("reads", legend.split("no reads")[1])
        keys = [label.text for label in self.page.find_elements(By.CSS_SELECTOR, ".axis.keys span")]
        self.assertEqual(keys[0], "-")
        self.assertTrue(any(key.startswith("p") for key in keys), keys)
        times = [label.text for label in self.page.find_elements(By.CSS_SELECTOR, ".axis.times span")]
        self.assertRegex(times[0], r"^\d\d:\d\d$")
        # Of the painted places some are empty, all others have a colour.
        alphas = set(self.page.execute_script(
            "const c = document.getElementById('heat');"
            "return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((_, i) => i % 4 === 3);"))
        self.assertEqual(alphas, {0, 255})

    def test_few_rights(self):
        self.log_in("few", "pw")
        self.heading("Overview")
        self.assertEqual([link.text for link in self.wait(lambda: self.page.find_elements(By.CSS_SELECTOR, "aside a"))], ["other"])
        # By its address, as somebody else may have sent it.
        planes = base64.urlsafe_b64encode(b"0/planes").decode().rstrip("=")
        for page in ("table/" + planes, "table/" + planes + "/schema", "table/" + planes + "/row/YTE", "heat/" + planes):
            self.page.get(self.web.address + "#/" + page)
            self.wait(lambda: "NOPERM" in self.trouble())
            self.wait(lambda: self.text() == "")
            self.follow("other")
            self.heading("0/other")
            self.wait(lambda: self.trouble() == "")


if __name__ == "__main__":
    unittest.main()
