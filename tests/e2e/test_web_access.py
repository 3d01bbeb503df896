"""cellar-web for those who see it otherwise: axe-core's rules on every page, keys alone, narrow windows."""

import base64
import glob
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from web_page import By, PageTest

PLANES = base64.urlsafe_b64encode(b"0/planes").decode().rstrip("=")
PAGES = ("", "graphs", "tables", "heat", "heat/" + PLANES, "console?line=CSCAN", "state", "users", "config", "slow", "replication",
         "table/" + PLANES, "table/" + PLANES + "?view=hex", "table/" + PLANES + "/row/YTE", "table/" + PLANES + "/schema",
         "table/" + PLANES + "/explain?analyze=1")


def axe():
    """axe-core's script; nothing, and why, if it cannot be had."""
    if not shutil.which("npm"):
        return None, "npm is not there"
    with tempfile.TemporaryDirectory() as directory:
        try:
            subprocess.run(["npm", "pack", "axe-core@4", "--silent"], cwd=directory, check=True, timeout=120, capture_output=True)
        except (subprocess.SubprocessError, OSError) as error:
            return None, f"axe-core cannot be had: {error}"
        with tarfile.open(glob.glob(os.path.join(directory, "*.tgz"))[0]) as package:
            return package.extractfile("package/axe.min.js").read().decode(), ""


class TestAccess(PageTest):
    def enter(self):
        self.log_in("default", "sesame")
        self.heading("Overview")

    def show(self, page):
        """Shows a page, and waits until it is whole."""
        self.go("#/" + page)
        self.wait(lambda: self.page.find_elements(By.CSS_SELECTOR, "main h1") and
                  not self.page.find_elements(By.CSS_SELECTOR, "main[aria-busy]"))

    def serious(self):
        told = self.page.execute_async_script("const done = arguments[0]; axe.run().then((told) => done(told.violations));")
        return [(found["id"], found["impact"], found["nodes"][0]["html"][:200], found["nodes"][0]["failureSummary"]) for found in told
                if found["impact"] in ("serious", "critical")]

    def test_axe_finds_nothing_serious(self):
        script, why = axe()
        if script is None:
            self.skipTest(why)
        for scheme in ("light", "dark"):
            self.page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            if scheme == "light":
                self.wait(lambda: self.find(By.ID, "login"))
                self.page.execute_script(script)
                self.assertEqual([], self.serious(), "login")
                self.enter()
            for page in PAGES:
                self.show(page)
                self.page.execute_script(script)
                self.assertEqual([], self.serious(), (scheme, page))

    def narrow(self):
        self.enter()
        self.page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1,
                                                                         "mobile": False})

    def test_what_is_asked_for_is_on_the_first_screen_of_a_telephone(self):
        self.narrow()
        for page in PAGES:
            self.show(page)
            top = self.page.execute_script("return document.querySelector('main').children[1].getBoundingClientRect().top")
            self.assertLess(top, 844, page)
        self.show("table/" + PLANES)
        top = self.page.execute_script("return document.querySelector('main tbody tr').getBoundingClientRect().bottom")
        self.assertLess(top, 844)

    def test_words_and_dumps_stay_whole_in_a_narrow_window(self):
        self.redis.execute_command("INDEX", "CREATE", "planes", "top", "ON", "1", "n:max")
        self.redis.execute_command("CPUT", "planes", "a0", "f:dump", bytes(range(100)))
        self.narrow()
        broken = '''
            const linesOf = (cell) => {
              const range = document.createRange();
              range.selectNodeContents(cell);
              return new Set([...range.getClientRects()].map((box) => Math.round(box.bottom / 6))).size;
            };
            return [...document.querySelectorAll('main td')].map((cell) => [cell.textContent, linesOf(cell)])
                .filter(([text, lines]) => /^\\S{1,8}$/.test(text) && lines > 1)'''
        for page in ("state", "users", "tables", "table/" + PLANES + "?prefix=b"):
            self.show(page)
            self.assertEqual([], self.page.execute_script(broken), page)
        lines = '''
            const dump = document.querySelector('main pre');
            return [dump.textContent.split('\\n').length, Math.round(dump.clientHeight / parseFloat(
                getComputedStyle(dump).lineHeight))]'''
        for page in ("?view=hex&prefix=a0", "/row/YTA?view=hex"):
            self.show("table/" + PLANES + page)
            self.wait(lambda: self.page.find_elements(By.CSS_SELECTOR, "main pre"))
            there, drawn = self.page.execute_script(lines)
            self.assertEqual((7, 7), (there, drawn), page)

    def test_nothing_is_wider_than_a_narrow_window(self):
        self.narrow()
        for page in PAGES:
            self.show(page)
            wide, there = self.page.execute_script(
                "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
            self.assertLessEqual(wide, there, page)

    def test_keys_alone(self):
        self.enter()
        focused = lambda: self.page.switch_to.active_element
        self.page.execute_script("document.body.focus()")
        for _ in range(60):
            focused().send_keys("\ue004")  # Tab
            if focused().text == "planes":
                break
        self.assertEqual("planes", focused().text)
        self.assertTrue(self.page.execute_script("return getComputedStyle(document.activeElement).outlineStyle") != "none")
        focused().send_keys("\n")
        self.heading("0/planes")
        # What comes next is the content.
        self.wait(lambda: focused().get_attribute("id") == "main")
        focused().send_keys("\ue004")
        self.assertEqual("Rows", focused().text)


if __name__ == "__main__":
    unittest.main()
