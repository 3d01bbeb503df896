"""cellar-web beside a server, and its page in a browser: what the tests of both share."""

import http.client
import json
import shutil
import signal
import subprocess
import unittest

from cellar_server import CellarTest, tool

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
        self.session = None
        self.source = "127.0.0.1"

    def request(self, method, path, body=None, headers=None, plain=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60, source_address=(self.source, 0))
        sent = {} if plain else {"X-Cellar": "1"}
        if self.session and not plain:
            sent["X-Cellar-Session"] = self.session
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
            self.session = json.loads(content)["answer"]
        return response, content

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


class WebTest(CellarTest):
    # Passwords of a replica set belong to its users: who names this option has a server of its own.
    OPTIONS = {"save": "", "heat-sample": "1", "slowlog-log-slower-than": "0", "requirepass": ""}

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


@unittest.skipUnless(webdriver and BROWSERS and shutil.which("chromedriver"), "no browser that can be driven")
class PageTest(WebTest):
    """A browser that shows the page."""

    def setUp(self):
        super().setUp()
        self.fill()
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

    def trouble(self):
        shown = self.find(By.ID, "trouble")
        return shown.text if shown is not None else ""

    def fill(self):
        """What the tables hold besides."""

    def go(self, address):
        """Shows what stands behind the # of an address."""
        self.page.get(self.web.address + address)

    def complaints(self):
        """What the browser has said, but for refused logins."""
        return [entry for entry in self.page.get_log("browser") if "401" not in entry["message"]]
