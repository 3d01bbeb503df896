"""cellar-web: logging in, what it answers and to whom, and the page in a browser where there is one."""

import base64
import http.client
import json
import select
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from cellar_server import CellarServer, free_port, tool
from web_page import HOSTILE, HTML, By, PageTest, Web, WebTest


class TestApi(WebTest):
    def test_nobody_is_let_in_without_the_password(self):
        web = self.web
        self.assertFalse(web.ask("session"))
        self.assertEqual(web.ask("info", 401), "log in first")
        self.assertIn(b"NOAUTH", web.log_in(status=401)[1])
        self.assertIn(b"WRONGPASS", web.log_in("default", "wrong", 401)[1])
        web.session = "0" * 32
        self.assertEqual(web.ask("rows?table=planes", 401), "log in first")
        response, _ = web.log_in("default", "sesame")
        self.assertTrue(web.ask("session"))
        self.assertRegex(web.session, "^[0-9a-f]{32}$")
        self.assertNotIn("Set-Cookie", response.headers)
        # A cookie of that name is nothing.
        cookie = {"Cookie": "cellar=" + web.session, "X-Cellar-Session": ""}
        self.assertEqual(web.request("GET", "/api/info", headers=cookie)[0].status, 401)
        web.request("POST", "/api/logout")
        self.assertEqual(web.ask("info", 401), "log in first")

    def test_passwords_cannot_be_tried_for_ever(self):
        for _ in range(10):
            self.web.log_in("default", "wrong", 401)
        self.assertIn(b"too many", self.web.log_in("default", "sesame", 429)[1])
        # From there alone.
        self.web.source = "127.0.0.2"
        self.web.log_in("default", "sesame")
        for _ in range(20):  # right ones do not count
            self.web.log_in("default", "sesame")
        for i in range(30):
            self.web.source = "127.0.1.%d" % i
            self.web.log_in("default", "wrong", 401)
        self.web.source = "127.0.0.3"
        self.web.log_in("default", "sesame")

    def test_many_passwords_at_once_are_no_more_than_one_after_the_other(self):
        answers = []
        def attempt():
            web = self.web
            connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
            connection.request("POST", "/api/login", json.dumps({"user": "default", "password": "wrong"}), {"X-Cellar": "1"})
            answers.append(connection.getresponse().status)
            connection.close()
        threads = [threading.Thread(target=attempt) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([401] * 10 + [429] * 20, sorted(answers))

    def half(self, source="127.0.0.1", text=b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "):
        """A connection with the beginning of a request."""
        connection = socket.create_connection(("127.0.0.1", self.web.port), timeout=60, source_address=(source, 0))
        self.addCleanup(connection.close)
        connection.sendall(text)
        return connection

    def test_half_requests_keep_nobody_out(self):
        """From one's own address, from many, of heads and of bodies: who comes next is answered at once."""
        login = b"POST /api/login HTTP/1.1\r\nHost: localhost\r\nX-Cellar: 1\r\nContent-Length: 40\r\n\r\n{"
        for texts in ([b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "], [b""], [b"G"], [login], [login, b"", b"GET /"]):
            for sources in (["127.0.0.1"], ["127.0.0.%d" % i for i in range(2, 40)]):
                for i in range(400):
                    self.half(sources[i % len(sources)], texts[i % len(texts)])
                for _ in range(5):  # that nothing is waited for: doors_test.cc, whose time is its own
                    self.assertEqual(200, self.web.request("GET", "/")[0].status)
        self.web.log_in("default", "sesame")

    def test_who_is_slow_is_closed_however_busy(self):
        """A byte now and then does not keep a connection open; who asks whole requests stays."""
        slow = self.half()
        keeps = http.client.HTTPConnection("127.0.0.1", self.web.port, timeout=60)
        self.addCleanup(keeps.close)
        deadline = time.monotonic() + 60
        closed = False
        while not closed:
            self.assertLess(time.monotonic(), deadline)
            keeps.request("GET", "/style.css")
            self.assertEqual(200, keeps.getresponse().read() and 200)
            time.sleep(0.5)
            try:
                slow.sendall(b"x")
                closed = bool(select.select([slow], [], [], 0)[0]) and not slow.recv(100)
            except OSError:
                closed = True

    def test_requests_that_can_be_read_in_two_ways_are_refused(self):
        head = b"POST /api/login HTTP/1.1\r\nX-Cellar: 1\r\n"
        host = b"Host: localhost\r\n"
        for lines in (host + b"Content-Length: 2\r\nContent-Length: 40\r\n", host + b"content-length: 2\r\nCONTENT-LENGTH: 2\r\n",
                      host + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", host + b"Host: evil\r\nContent-Length: 2\r\n",
                      host + b"X-Cellar-Session: a\r\nX-Cellar-Session: b\r\nContent-Length: 2\r\n"):
            with self.half(text=head + lines + b"\r\n{}GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") as connection:
                said = b""
                while piece := connection.recv(1 << 16):
                    said += piece
            self.assertTrue(said.startswith(b"HTTP/1.1 400 "), said[:200])
            self.assertEqual(1, said.count(b"HTTP/1.1"), lines)  # what stands behind is no request

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
        versions = web.ask("row?table=planes&row=a1")[1][0][1][1]
        self.assertEqual([value for _, value, *_ in versions], ["new", "old"])
        row64 = base64.urlsafe_b64encode(b"b\xff").decode().rstrip("=")
        self.assertEqual(len(web.ask("row?table64=MC9wbGFuZXM&row64=" + row64)[1][0][1]), 2)
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

    def test_long_values_are_told_in_pieces(self):
        web = self.web
        web.log_in("default", "sesame")
        sizes = {b"short": 1000, b"cut": 1001, b"large": 16 << 20}
        for row, size in sizes.items():
            self.redis.execute_command("CPUT", "planes", row, "f:q", b"x" * size)
        sent = self.redis.info("stats")["total_net_output_bytes"]
        cells = {row: columns[1][0] for row, columns in web.ask("rows?table=planes&prefix=")[1] if isinstance(row, str)}
        # A value of 16 MB is not sent because its row is looked at.
        self.assertLess(self.redis.info("stats")["total_net_output_bytes"] - sent, 64 << 10)
        self.assertEqual(["x" * 1000, []], [cells["short"][1], cells["short"][4]])
        for row in ("cut", "large"):
            self.assertEqual(["", ["cut"]], [cells[row][1], cells[row][4]])
            ts = cells[row][0]
            told = web.ask(f"value?table=planes&row={row}&column=f:q&ts={ts}")
            size = sizes[row.encode()]
            self.assertEqual([size, ts, min(size, (64 << 10) + 3)], [told["bytes"], told["ts"], len(told["part"])])
            end = web.ask(f"value?table=planes&row={row}&column=f:q&ts={ts}&offset={size - 2}")
            self.assertEqual("xx", end["part"])
        self.assertIsNone(web.ask("value?table=planes&row=nobody&column=f:q&ts=1"))

    def test_wrong_questions_are_told_what_is_wrong(self):
        web = self.web
        web.log_in("default", "sesame")
        for path, text in (("rows", "table is missing"), ("rows?table=nix", "no table 'nix'"), ("rows?table64=A", "not base64"),
                           ("rows?table=planes&count=0", "1 to 1000"), ("rows?table=planes&count=1e3", "1 to 1000"),
                           ("flushall", "no such question"), ("rows?table=planes&cursor=zzz", "cursor")):
            self.assertIn(text, web.ask(path, 400))
        for method, path, status in (("PUT", "/api/info", 405), ("POST", "/api/info", 400), ("GET", "/api/login", 405), ("DELETE", "/", 404),
                                     ("GET", "/nothing", 404), ("GET", "/../Makefile", 404)):
            self.assertEqual(web.request(method, path)[0].status, status, path)
        for body in ("", "{", "[]", '{"user": 1, "password": 2}', '{"user": "x"}'):
            self.assertEqual(web.request("POST", "/api/login", body)[0].status, 400, body)
        self.assertEqual(web.request("POST", "/api/login", "x" * 100_000)[0].status, 413)

    def test_other_pages_cannot_use_it(self):
        web = self.web
        web.log_in("default", "sesame")
        cookie = {"X-Cellar-Session": web.session}
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
        for host in ("LocalHost", "LOCALHOST:80"):
            self.assertEqual(web.request("GET", "/", headers={"Host": host})[0].status, 200, host)
        named = Web(self.server.port, "--name", "Cellar.Example")
        self.addCleanup(named.end)
        for host in ("cellar.example", "CELLAR.EXAMPLE", "cellar.Example:8080"):
            self.assertEqual(named.request("GET", "/", headers={"Host": host})[0].status, 200, host)
        self.assertEqual(named.request("GET", "/", headers={"Host": "cellar.example.org"})[0].status, 403)

    def test_below_a_prefix(self):
        """Whether a proxy leaves the prefix on what it passes on, or takes it off."""
        web = Web(self.server.port, "--prefix", "/db/cellar")
        self.addCleanup(web.end)
        for path in ("/", "/main.js", "/api/session"):
            for prefix in ("", "/db/cellar"):
                self.assertEqual(200, web.request("GET", prefix + path)[0].status, prefix + path)
        moved = web.request("GET", "/db/cellar")[0]
        self.assertEqual((301, "/db/cellar/"), (moved.status, moved.headers["Location"]))
        for path in ("/db", "/db/cellar2/", "/db/cellar/db/cellar/", "/db/cellar//"):
            self.assertEqual(404, web.request("GET", path)[0].status, path)
        self.assertEqual(403, web.request("GET", "/db/cellar/", headers={"Host": "evil"})[0].status)
        # All that the page names is beside it.
        page = web.request("GET", "/")[1]
        self.assertNotRegex(page, rb'(href|src)="/')
        for prefix in ("cellar", "/", "/cellar/", "//x", "/a b", "/%2e"):
            done = subprocess.run([tool("cellar-web"), "--prefix", prefix], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(2, done.returncode, prefix)
            self.assertIn("is no path such as /cellar", done.stderr)

    def test_every_answer_has_the_headers_that_guard_the_page(self):
        web = self.web
        web.log_in("default", "sesame")
        answers = [web.request("GET", path)[0] for path in ("/", "/main.js", "/style.css", "/nothing", "/api/info", "/api/nix",
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


class TestPage(PageTest):
    def fill(self):
        self.redis.execute_command("TABLE", "CREATE", "hostile", "FAMILY", "f")
        pipe = self.redis.pipeline(transaction=False)
        for i in range(120):
            pipe.execute_command("CPUT", "planes", "p%03d" % i, "f:" + HTML, HTML)
        for text in HOSTILE:
            pipe.execute_command("CPUT", "hostile", text, b"f:" + text, text)
        pipe.execute()

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
        self.assertNotEqual(self.page.title, "run")
        self.assertEqual(self.complaints(), [])

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
        self.assertNotEqual(self.page.title, "run")
        self.assertEqual(self.complaints(), [])

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

    def test_behind_a_proxy_with_a_prefix(self):
        web = Web(self.server.port, "--prefix", "/db")
        self.addCleanup(web.end)
        self.page.get(web.address + "db")
        self.log_in("default", "sesame")
        self.follow("planes")
        self.heading("0/planes")
        self.assertIn("/db/#/table/", self.page.current_url)
        self.assertEqual([], self.complaints())

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
