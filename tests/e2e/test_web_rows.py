"""The row browser of cellar-web: what its questions take and answer, and its pages in a browser."""

import base64
import json
import unittest

from web_page import By, PageTest, WebTest


def pack(text):
    """As the page has names and keys in addresses."""
    return base64.urlsafe_b64encode(text if isinstance(text, bytes) else text.encode()).decode().rstrip("=")


def pack_list(*texts):
    return ".".join(map(pack, texts))


class TestRowQuestions(WebTest):
    def setUp(self):
        super().setUp()
        self.web.log_in("default", "sesame")
        pipe = self.redis.pipeline(transaction=False)
        for i in range(100):
            pipe.execute_command("CPUT", "planes", "p%02d" % i, "f:type", "A%d" % (i % 3), "n:x", i)
        pipe.execute()

    def rows(self, **parameters):
        query = "&".join(f"{name}={value}" for name, value in {"table": "planes", "count": 1000, **parameters}.items())
        return [row for row, _ in self.web.ask("rows?" + query)[1]]

    def test_bounds_order_and_conditions(self):
        self.assertEqual(["p10", "p11", "p12"], self.rows(min64=pack("[p10"), max64=pack("(p13")))
        self.assertEqual(["p99", "p98"], self.rows(min64=pack("(p97"), reverse=1))
        self.assertEqual(["p00", "p01", "p02"], self.rows(prefix="p0", max64=pack("-"), where64=pack_list("n:x", "lt", "3")))
        both = ",".join((pack_list("n:x", "GE", "90"), pack_list("f:type", "EQ", "A0")))
        self.assertEqual(["p90", "p93", "p96", "p99"], self.rows(where64=both))
        self.assertEqual(["a1"], self.rows(where64=pack_list("f:q", "EXISTS")))
        self.assertEqual(["p98"], self.rows(where64=pack_list("FILTER", "value = 98")))
        self.assertEqual(["p05"], self.rows(filter64=pack('value = 5 | family = "n"')))
        page = self.web.ask("rows?table=planes&prefix=p07&columns64=" + pack_list("n"))[1]
        self.assertEqual([["p07", "n:x", 7, "i64"]], [[row, c[0], c[1][0][1], c[1][0][2]] for row, c in page])

    def test_a_condition_is_no_option(self):
        for condition in (["x"], ["n:x", "COUNT", "100000"], ["COUNT", "5"], ["n:x", "GT", "5", "6"], []):
            self.assertIn("a condition is", self.web.ask("rows?table=planes&where64=" + pack_list(*condition), 400))
        self.assertIn("not base64", self.web.ask("rows?table=planes&where64=!", 400))
        # What stands in a condition or a key as an option's name is a text.
        self.assertEqual([], self.rows(where64=pack_list("f:type", "EQ", "COUNT"), prefix="KEYSONLY"))

    def test_questions_longer_than_an_address(self):
        key = bytes(range(256)) * 200
        self.redis.execute_command("CPUT", "planes", key, "f:q", "deep")
        body = json.dumps({"table": "planes", "row64": pack(key)})
        response, content = self.web.request("POST", "/api/row", body)
        self.assertEqual(200, response.status)
        self.assertEqual("deep", json.loads(content)["answer"][1][0][1][1][0][1])
        for wrong in ("", "[]", "{", "7"):
            self.assertEqual(400, self.web.request("POST", "/api/row", wrong)[0].status)
        self.assertEqual(413, self.web.request("POST", "/api/row", "x" * (600 << 10))[0].status)

    def test_an_answer_has_a_mebibyte_at_most(self):
        for i in range(30):
            self.redis.execute_command("CPUT", "planes", b"long%02d" % i + b"k" * 60000, "f:q", "v")
        self.assertIn("1 MiB", self.web.ask("rows?table=planes&prefix=long", 413))
        self.assertEqual(5, len(self.web.ask("rows?table=planes&prefix=long&count=5")[1]))

    def test_how_a_read_is_answered(self):
        told = self.web.ask("explain?table=planes&prefix=p&where64=" + pack_list("n:x", "GT", "5"))
        self.assertEqual(["command", "cscan"], told[:2])
        self.assertNotIn("examined", told)
        self.assertIn("examined", self.web.ask("explain?table=planes&analyze=1"))


class TestRowPages(PageTest):
    def fill(self):
        redis = self.redis
        redis.execute_command("TABLE", "CREATE", "blog", "FAMILY", "comments", "ORDER", "u64:utf8", "FAMILY", "meta")
        for i in (1, 2):
            redis.execute_command("CPUT", "blog", "post", f"comments:{i}:by", f"user{i}", f"comments:{i}:text", "Well said.")
        redis.execute_command("CPUT", "blog", "post", "meta:json", '{"n":12345678901234567890,"l":[]}', "TS", "1700000000123456")
        redis.execute_command("CPUT", "blog", "post", "meta:long", "é" * 50_000, "TS", "5", "meta:middle", "y" * 900)
        redis.execute_command("TABLE", "CREATE", "wide", "FAMILY", "g")
        pipe = redis.pipeline(transaction=False)
        for i in range(0, 100_000, 1000):
            pipe.execute_command("CPUT", "wide", "row", *(word for k in range(i, i + 1000) for word in ("g:%05d" % k, k)))
        for i in range(120):
            pipe.execute_command("CPUT", "planes", "p%03d" % i, "f:type", "A%d" % (i % 3), "n:x", i)
        pipe.execute()
        self.page_of = {name: "#/table/" + pack("0/" + name) for name in ("blog", "wide", "planes")}

    def enter(self, address):
        self.log_in("default", "sesame")
        self.heading("Overview")
        self.go(address)

    def keys(self):
        return [link.text for link in self.page.find_elements(By.CSS_SELECTOR, "td.key a")]

    def set(self, **fields):
        for name, text in fields.items():
            field = self.wait(lambda: self.find(By.ID, name))
            field.clear()
            field.send_keys(text)
        self.click(By.CSS_SELECTOR, "form.ask button")

    def test_pages_back_and_links(self):
        self.enter(self.page_of["planes"])
        self.heading("0/planes")
        self.set(prefix="p", where="n:x GE 10 AND f:type EQ A0", columns="n:x")
        expected = ["p%03d" % i for i in range(12, 120, 3)]
        self.wait(lambda: self.keys() == expected)
        self.go(self.page_of["planes"] + "?prefix=p&count=50")
        self.wait(lambda: self.keys() == ["p%03d" % i for i in range(50)])
        self.assertIsNone(self.page.find_element(By.ID, "previous").get_attribute("href"))
        for begin, end in ((50, 100), (100, 120)):
            self.click(By.ID, "next")
            self.wait(lambda: self.keys() == ["p%03d" % i for i in range(begin, end)])
        self.assertIsNone(self.page.find_element(By.ID, "next").get_attribute("href"))
        last = self.page.current_url
        self.page.back()
        self.wait(lambda: self.keys()[:1] == ["p050"])
        self.click(By.ID, "previous")
        self.wait(lambda: self.keys()[:1] == ["p000"])
        # The address alone brings the page back, with what had been typed.
        self.page.get("about:blank")
        self.page.get(last)
        self.wait(lambda: self.keys()[:1] == ["p100"])
        self.assertEqual("p", self.page.find_element(By.ID, "prefix").get_attribute("value"))
        self.click(By.ID, "previous")
        self.wait(lambda: self.keys()[:1] == ["p050"])
        self.click(By.ID, "first")
        self.wait(lambda: self.keys()[:1] == ["p000"])
        self.click(By.ID, "reverse")
        self.set(min="p005", max="(p010", prefix="")
        self.wait(lambda: self.keys() == ["p009", "p008", "p007", "p006", "p005"])
        self.set(where="n:x BIGGER 5")
        self.wait(lambda: "a condition is" in self.trouble())
        self.set(where='f:type EQ "A0')
        self.wait(lambda: "a quote is not closed" in self.trouble())
        self.set(where="f:type EQ A0")
        self.wait(lambda: self.keys() == ["p009", "p006"] and self.trouble() == "")
        self.set(where="", min="", max="", prefix="b\\xff")
        self.wait(lambda: self.keys() == ["b\\xff"])

    def test_a_row_of_a_hundred_thousand_columns(self):
        self.enter(self.page_of["wide"] + "/row/" + pack("row"))
        self.wait(lambda: "100,000 columns" in self.text())
        first = lambda: [cell.text for cell in self.page.find_elements(By.CSS_SELECTOR, "tbody td.key")]
        self.wait(lambda: first() == ["%05d" % i for i in range(200)])
        for page in range(1, 4):
            self.click(By.ID, "next")
            self.wait(lambda: first()[:1] == ["%05d" % (page * 200)])
        self.click(By.ID, "previous")
        self.wait(lambda: first()[:1] == ["00400"])
        self.go(self.page_of["wide"])
        self.follow("more columns")
        self.wait(lambda: first()[:1] == ["00000"])

    def test_super_columns_versions_and_views(self):
        self.redis.execute_command("CPUT", "blog", "post", "meta:json", "older", "TS", "1000001")
        self.enter(self.page_of["blog"] + "/row/" + pack("post"))
        self.wait(lambda: "user2" in self.text())
        headings = [head.text for head in self.page.find_elements(By.CSS_SELECTOR, "tbody th")]
        self.assertEqual(["comments:", "1", "2", "meta:"], headings)
        self.assertEqual(["by", "text", "by", "text"], [cell.text for cell in self.page.find_elements(By.CSS_SELECTOR, "td.sub")])
        for text in ("2023-11-14 22:13:20.123456", "1970-01-01 00:00:01.000001", "older", "open: more than 1,000 bytes"):
            self.assertIn(text, self.text())
        self.assertNotIn("y" * 900, self.text())
        self.click(By.CSS_SELECTOR, "details summary")
        self.wait(lambda: "y" * 900 in self.text())
        self.follow("JSON")
        self.wait(lambda: '"n": 12345678901234567890,' in self.text() and '"l": []' in self.text())
        self.follow("Hex")
        self.wait(lambda: "00000000  6f 6c 64 65 72" in self.text())
        self.page.back()
        self.page.back()
        self.wait(lambda: self.page.find_elements(By.CSS_SELECTOR, ".views a[aria-current]")[0].text == "Text")

    def test_a_long_value_is_opened_in_pieces(self):
        self.enter(self.page_of["blog"] + "/row/" + pack("post"))
        self.follow("open: more than 1,000 bytes")
        self.heading("meta:long")
        value = lambda: self.page.find_element(By.ID, "value").text
        self.wait(lambda: "100,000 bytes" in self.text() and value() == "é" * (32 << 10))
        self.click(By.ID, "next")
        self.wait(lambda: value() == "é" * (50_000 - (32 << 10)))
        self.follow("Hex")
        self.wait(lambda: value().startswith("00010000  c3 a9"))
        self.go(self.page_of["blog"] + "/row/" + pack("post") + "/cell/" + pack("meta:long") + "/4")
        self.wait(lambda: "not there any more" in self.text())
        self.assertEqual([], self.complaints())


if __name__ == "__main__":
    unittest.main()
