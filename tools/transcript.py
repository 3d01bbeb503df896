#!/usr/bin/python3
"""Keeps the examples of the README and of the manual true.

    tools/transcript.py [--server build/cellar]             say what differs from what the server answers
    tools/transcript.py [--server build/cellar] --write     put the server's answers in

README.md: a ```text block behind the line `<!-- transcript -->` is a session, answered by a real redis-cli. All blocks
share one server.

Pages (conf/man/): a block `.Bd -literal` whose first line begins with `> ` or `-- ` is a session, shown as redis-cli
shows it. A line `> COMMAND` is typed, `other> COMMAND` is typed by a second client, and what follows is the reply. A line
`-- REMARK` is for the reader alone. A reply line
`...` stands for any number of lines, `...` inside a line for any text: for what differs from run to run. Each section
(.Sh, .Ss) has a fresh server and fresh clients, which the blocks of the section share. A block behind the line
`.\\" GIVEN` is also what all later sections of its page begin with.

tests/e2e/test_readme.py and test_manual.py run all of it. Servers are started on free ports, with directories of their
own.
"""

import argparse
import difflib
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time

import man

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(ROOT, "README.md")
BLOCK = re.compile(r"(<!-- transcript -->\n```text\n)(.*?)(```\n)", re.DOTALL)
PROMPT = "127.0.0.1:6479> "
START_SECONDS_MAX = 120
SUBSCRIBING = re.compile(r"[PS]?(UN)?SUBSCRIBE", re.IGNORECASE)


# --- README: redis-cli itself

def answer(port, command):
    """What redis-cli shows for a command."""
    done = subprocess.run(["redis-cli", "-p", str(port), "--no-raw"] + shlex.split(command), capture_output=True,
                          text=True, check=False, stdin=subprocess.DEVNULL)
    return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).rstrip().split("\n")) + "\n"


def replay(port, text):
    """The README with every transcript as the server answers it now."""
    def block(match):
        commands = [line for line in match.group(2).split("\n") if line.startswith(PROMPT)]
        body = "".join(f"{line}\n{answer(port, line[len(PROMPT):])}" for line in commands)
        return match.group(1) + body + match.group(3)
    return BLOCK.sub(block, text)


# --- pages: a client that keeps its connection, and redis-cli's way to show replies

class Typed:
    """A reply: `kind` is the byte that it begins with on the wire, `value` bytes or a list."""

    def __init__(self, kind, value):
        self.kind, self.value = kind, value


class Client:
    """A connection that sends commands as typed and reads replies of RESP2 and RESP3."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS_MAX)
        self.stream = self.socket.makefile("rb")

    def close(self):
        self.stream.close()
        self.socket.close()

    def read(self):
        """One reply, or None at the end of the connection."""
        line = self.stream.readline()
        if not line:
            return None
        kind, head = chr(line[0]), line[1:-2]
        if kind in "$=" and head != b"-1":
            return Typed(kind, self.stream.read(int(head) + 2)[:-2])
        if kind in "*~>%" and head != b"-1":
            return Typed(kind, [self.read() for _ in range(int(head) * (2 if kind == "%" else 1))])
        return Typed("_", b"") if head == b"-1" and kind in "$*" else Typed(kind, head)

    def ask(self, line):
        """What redis-cli shows for one command: pushes that came before, then the reply."""
        typed = [word.encode() for word in shlex.split(line)]
        try:
            self.socket.sendall(b"*%d\r\n" % len(typed) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in typed))
            subscribing = SUBSCRIBING.fullmatch(typed[0].decode())
            left, shown = max(1, len(typed) - 1) if subscribing else 1, ""
            while left:
                reply = self.read()
                if reply is None:
                    return shown + "Error: Server closed the connection\n"
                shown += show(reply)
                left -= 1 if subscribing or reply.kind != ">" else 0
            return shown
        except ConnectionError:
            return "Error: Server closed the connection\n"


def quoted(value):
    """Bytes as redis-cli quotes them."""
    special = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 92: "\\\\"}
    return '"' + "".join(special.get(b) or (chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in value) + '"'


def show(reply, prefix=""):
    """A reply as redis-cli shows it on a terminal."""
    kind, value = reply.kind, reply.value
    if isinstance(value, list):
        pairs = kind == "%"
        count = len(value) // 2 if pairs else len(value)
        if count == 0:
            return {"*": "(empty array)\n", "%": "(empty hash)\n", "~": "(empty set)\n", ">": "(empty push)\n"}[kind]
        digits, mark = len(str(count)), {"*": ")", "%": "#", "~": "~", ">": ")"}[kind]
        inner, out = prefix + " " * (digits + 2), ""
        for index in range(count):
            out += ("" if index == 0 else prefix) + f"{index + 1:>{digits}}{mark} "
            if pairs:
                inside = show(value[2 * index + 1], inner)
                begin = "\n" + inner if "\n" in inside[:-1] else ""  # what takes several lines begins on its own
                out += show(value[2 * index], inner).rstrip("\n") + " => " + begin + inside
            else:
                out += show(value[index], inner)
        return out
    text = value.decode("utf-8", "backslashreplace")
    return {"+": text, "-": f"(error) {text}", ":": f"(integer) {text}", "$": quoted(value), "=": text, "_": "(nil)",
            ",": f"(double) {text}", "#": "(true)" if text == "t" else "(false)", "(": text}[kind] + "\n"


class Server:
    """A server of an example's own."""

    def __init__(self, program):
        self.directory = tempfile.TemporaryDirectory(prefix="cellar-example-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        # The files' names are those of an installed server.
        self.process = subprocess.Popen(
            [program, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory.name,
             "--create-dir", "yes", "--save", "",
             "--enable-debug-command", "yes"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd=self.directory.name)
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                client = Client(self.port)
                ready = not client.ask("DBSIZE").startswith("(error) LOADING")
                client.close()
                if ready:
                    return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{program} does not serve")
            time.sleep(0.003)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


class Session:
    """Two clients of a fresh server: the prompts `> ` and `other> `."""

    def __init__(self, program):
        self.server = Server(program)
        self.clients = {}

    def ask(self, prompt, command):
        if prompt not in self.clients:
            self.clients[prompt] = Client(self.server.port)
        return self.clients[prompt].ask(command)

    def close(self):
        for client in self.clients.values():
            client.close()
        self.server.close()


PAGE_PROMPT = re.compile(r"^(other)?> (.*)$")
REMARK = "-- "


def plain(line):
    """A literal line of a page without roff's escapes."""
    return line.removeprefix("\\&").replace("\\-", "-").replace("\\e", "\\")


def roff(line):
    """The other way round."""
    line = line.replace("\\", "\\e")
    return "\\&" + line if line[:1] in (".", "'") else line


def steps(block):
    """[(prompt, command, reply lines)] of the lines of a session."""
    found = []
    for line in block:
        match = PAGE_PROMPT.match(plain(line))
        if plain(line).startswith(REMARK):
            found.append((REMARK, plain(line), []))
        elif match:
            found.append((match.group(1) or "", match.group(2), []))
        else:
            found[-1][2].append(plain(line))
    return found


def matches(expected, got):
    """Whether reply lines fit what is expected of them, `...` standing for anything."""
    pattern = "".join("(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n"
                      for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in got)) is not None


def sessions(page):
    """The examples of a page's text: [(section, [given steps], [(first line, last line, steps)])], lines being indices."""
    lines = page.split("\n")
    found, section, given, pending_given = [], "", [], False
    index = 0
    while index < len(lines):
        line = lines[index]
        if re.match(r"\.S[hs] ", line):
            section = line[4:].strip('"')
            found.append((section, list(given), []))
        elif line == '.\\" GIVEN':
            pending_given = True
        elif line.startswith(".Bd -literal") and (PAGE_PROMPT.match(lines[index + 1]) or
                                                   lines[index + 1].startswith(REMARK)):
            end = lines.index(".Ed", index)
            block = steps(lines[index + 1:end])
            found[-1][2].append((index + 1, end, block))
            if pending_given:
                given = given + block
                pending_given = False
            index = end
        index += 1
    return [entry for entry in found if entry[2]]


def run_section(program, given, blocks):
    """The lines of each block as the server answers now; what was there is kept where it fits."""
    session, answered = Session(program), []
    try:
        for prompt, command, _ in given:
            if prompt != REMARK:
                session.ask(prompt, command)
        for _, _, block in blocks:
            out = []
            for prompt, command, expected in block:
                if prompt == REMARK:
                    out.append(roff(command))
                    continue
                got = [line.rstrip() for line in session.ask(prompt, command).rstrip("\n").split("\n")]
                out.append(roff(f"{prompt}> {command}"))
                out += [roff(line) for line in (expected if matches(expected, got) else got)]
            answered.append(out)
    finally:
        session.close()
    return answered


def replay_page(program, page):
    """A page with every example as the server answers it now."""
    lines = page.split("\n")
    for _, given, blocks in reversed(sessions(page)):
        for (first, last, _), answered in reversed(list(zip(blocks, run_section(program, given, blocks)))):
            lines[first:last] = answered
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", default=os.path.join(ROOT, "build", "cellar"))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    differs = 0
    for path in [README] + man.sources():
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if path == README:
            server = Server(options.server)
            now = replay(server.port, text)
            server.close()
        else:
            now = replay_page(options.server, text)
        name = os.path.relpath(path, ROOT)
        differs += now != text
        sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), now.splitlines(True), name, "server"))
        if options.write and now != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(now)
    return 1 if differs and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
