"""The manual: every page is clean, every example true, every command and option there, every reference leads somewhere."""

import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from cellar_server import ROOT, CellarServer, binary

sys.path.insert(0, os.path.join(ROOT, "tools"))

import command_table  # noqa: E402
import man  # noqa: E402
import transcript  # noqa: E402

README_LINES_MAX = 280
SENTENCE_WORDS_MAX = 30
TERMINAL_COLUMNS = 80
# What mandoc says of a page that is not part of NetBSD, and of pages that are not installed here.
LINT_ALLOWED = re.compile(r"operating system explicitly specified|referenced manual not found|lacks .* entry")
CITATION = re.compile(r'\b(cellar[a-z.-]*)\(([1-8])\)(?:, "([A-Z][A-Za-z -]+)")?')
CITING_FOLDERS = ("src", "include", "tools", "tests", "conf")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Links(html.parser.HTMLParser):
    """The ids of an HTML page, and where it leads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.targets = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids.add(attributes.get("id"))
        if tag == "a" and "href" in attributes:
            self.targets.append(attributes["href"])


class ManualTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.out = directory.name
        cls.paths = man.write_pages(cls.out, os.path.dirname(os.path.realpath(binary())))
        cls.pages = {os.path.basename(path): read(path) for path in cls.paths}
        cls.titles = {name: {line[4:].strip().replace("\\&", "") for line in text.split("\n") if re.match(r"\.S[hs] ", line)}
                      for name, text in cls.pages.items()}

    def need(self, program):
        if shutil.which(program) is None:
            self.skipTest(f"{program} is not installed")

    def test_the_linter_has_nothing_to_say(self):
        self.need("mandoc")
        for path in self.paths:
            said = subprocess.run(["mandoc", "-T", "lint", path], capture_output=True, text=True, check=False).stdout
            self.assertEqual([], [line for line in said.splitlines() if not LINT_ALLOWED.search(line)])

    def test_no_heading_is_eaten_by_a_macro(self):
        """Each word of a heading in the sources is there when the page is shown: "In", "An" are macros of mdoc(7)."""
        self.need("mandoc")
        for path in self.paths:
            shown = subprocess.run(["mandoc", "-T", "utf8", path], capture_output=True, check=True).stdout.decode()
            shown = {" ".join(re.sub(".\b", "", line).split()) for line in shown.splitlines()}
            for line in read(path).splitlines():
                if heading := re.match(r"\.S[hs] (.*)", line):
                    title = re.sub(r"\\&|\"", "", heading.group(1)).replace("\\-", "-").replace("\\(dq", '"').strip()
                    self.assertIn(" ".join(title.split()), shown, f"{path}: {line}")

    def test_pages_fit_a_terminal(self):
        self.need("man")
        environment = {**os.environ, "MANWIDTH": str(TERMINAL_COLUMNS), "LC_ALL": "C.UTF-8"}
        for path in self.paths:
            done = subprocess.run(["man", "-l", "--warnings", path], capture_output=True, text=True, env=environment,
                                  check=False)
            self.assertEqual((0, ""), (done.returncode, done.stderr), path)
            self.assertEqual([], [line for line in done.stdout.splitlines() if len(line) > TERMINAL_COLUMNS], path)

    def test_html_leads_nowhere_in_vain(self):
        self.need("mandoc")
        man.write_html(self.paths)
        made = {name: Links(read(os.path.join(self.out, name))) for name in os.listdir(self.out) if name.endswith(".html")}
        self.assertEqual({f"{name}.html" for name in self.pages} | {"index.html"}, set(made))
        for name, links in made.items():
            for target in links.targets:
                page, _, place = target.partition("#")
                if page and not page.startswith("cellar"):
                    continue  # pages of others
                self.assertIn(page or name, made, f"{name} refers to {target}")
                if place:
                    self.assertIn(place, made[page or name].ids, f"{name} refers to {target}")

    def test_every_option_is_in_cellar_conf(self):
        with CellarServer() as server:
            options = set(server.client().config_get("*"))
        named = {match.replace("\\-", "-").replace("\\&", "")
                 for match in re.findall(r"^\.It Cm (\S+)", self.pages["cellar.conf.5"], re.MULTILINE)}
        self.assertEqual(options, named)

    def test_every_command_is_described_as_in_command_docs(self):
        with CellarServer() as server:
            docs = command_table.command_docs(server.port)
        text = read(command_table.PAGE)
        self.assertEqual(command_table.page(docs, text), text,
                         "tools/command_table.py --write brings cellar-commands(7) up to date")

    def test_every_command_has_an_example(self):
        text = read(command_table.PAGE)
        shown = {section: [command for _, _, block in blocks for _, command, _ in block]
                 for section, _, blocks in transcript.sessions(text)}
        for title in re.findall(r"^\.Ss (.*)$", text, re.MULTILINE):
            self.assertTrue(any(command.upper().startswith(title) for command in shown.get(title, [])),
                            f"{title} has no example")

    def test_every_example_is_what_the_server_answers(self):
        for path in man.sources():
            text = read(path)
            self.assertEqual(text, transcript.replay_page(binary(), text),
                             f"{path}: tools/transcript.py --write brings examples up to date")

    def check_reference(self, where, page, section, title):
        name = f"{page}.{section}"
        self.assertIn(name, self.pages, f"{where} refers to {page}({section})")
        if title:
            self.assertIn(title, self.titles[name], f"{where} refers to a section of {page}({section})")

    def test_references_between_pages_lead_somewhere(self):
        for name, text in self.pages.items():
            for page, section, title in re.findall(r'^\.Xr (cellar\S*) (\d)(?: [,.;])?(?:\nsection\n\.Dq ([A-Z].*?)(?: [,.;])?$)?',
                                                   text, re.MULTILINE):
                self.check_reference(name, page, section, title)
            for title in re.findall(r"^\.Sx (.*?)(?: [,.;])?$", text, re.MULTILINE):
                self.assertIn(title, self.titles[name], name)

    def test_references_of_sources_and_readme_lead_somewhere(self):
        paths = [os.path.join(ROOT, "README.md")]
        for folder in CITING_FOLDERS:
            for directory, _, names in os.walk(os.path.join(ROOT, folder)):
                paths += [os.path.join(directory, name) for name in names
                          if name.endswith((".cc", ".h", ".py", ".sh", ".md", ".conf", ".service"))]
        for path in paths:
            # A citation may go over a line's end, comment signs between.
            text = re.sub(r"\n\s*(//|#)? ?", " ", read(path))
            for page, section, title in CITATION.findall(text):
                self.check_reference(os.path.relpath(path, ROOT), page, section, title)

    def test_the_readme_is_short(self):
        self.assertLessEqual(read(os.path.join(ROOT, "README.md")).count("\n"), README_LINES_MAX)

    def test_sentences_are_short(self):
        for path in ("README.md", "tools/bench/README.md"):
            text = re.sub(r"```.*?```|<!--.*?-->|^#.*$|^\|.*$|^    .*$", "\n\n", read(os.path.join(ROOT, path)),
                          flags=re.DOTALL | re.MULTILINE)
            for sentence in re.split(r"(?<=[.!?:;])\s+|\n\n+|\n- ", text):
                self.assertLessEqual(len(sentence.split()), SENTENCE_WORDS_MAX, f"{path}: {sentence}")


class TranscriptTest(unittest.TestCase):
    """The tool that runs the examples."""

    def test_what_differs_may_be_left_open(self):
        self.assertTrue(transcript.matches(["(integer) ..."], ["(integer) 12"]))
        self.assertTrue(transcript.matches(["a", "...", "z"], ["a", "b", "c", "z"]))
        self.assertTrue(transcript.matches(["a", "..."], ["a"]))
        self.assertFalse(transcript.matches(["a", "..."], ["b"]))
        self.assertFalse(transcript.matches(["1"], ["1", "2"]))

    def test_replies_are_shown_as_redis_cli_shows_them(self):
        self.need_redis_cli()
        commands = ("CROW t r", "CROW t r VERSIONS ALL WITHTYPE", "CGET t r f:no", "CGET t no", "CSCAN t 0",
                    "CSCAN t 0 PREFIX x", "CMGET t r f:bin f:n f:f f:b", "COMMAND DOCS CGET", "PING")
        with CellarServer() as server:
            client = transcript.Client(server.port)
            self.addCleanup(client.close)
            for setup in ("TABLE CREATE t FAMILY f", "CPUT t r f:n 1 AS i64 TS 1 f:f 1.5 AS f64 TS 1 f:b true AS bool TS 1",
                          'CPUT t r f:bin "a\\"b\\\\\\\\\u00e9" TS 1'):
                self.assertEqual("OK\n", client.ask(setup))
            for version in ("2", "3"):
                client.ask(f"HELLO {version}")
                for command in commands:
                    done = subprocess.run(["redis-cli", "-p", str(server.port), "-" + version, "--no-raw"] + command.split(),
                                          capture_output=True, text=True, check=False)
                    self.assertEqual(done.stdout, client.ask(command), f"{command} in RESP{version}")

    def need_redis_cli(self):
        if shutil.which("redis-cli") is None:
            self.skipTest("redis-cli is not installed")


if __name__ == "__main__":
    unittest.main()
