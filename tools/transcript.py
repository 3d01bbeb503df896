#!/usr/bin/python3
"""Keeps the README's redis-cli transcripts true.

    tools/transcript.py [--port N]             say what differs from what the server answers
    tools/transcript.py [--port N] --write     put the server's answers into README.md

A transcript is a ```text block behind the line `<!-- transcript -->`: each line that begins with the prompt is a
command, and what follows is its answer as redis-cli shows it on a terminal. The commands change data: point it at a
server of its own. tests/e2e/test_readme.py runs it against a fresh one.
"""

import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(ROOT, "README.md")
BLOCK = re.compile(r"(<!-- transcript -->\n```text\n)(.*?)(```\n)", re.DOTALL)
PROMPT = "127.0.0.1:6479> "


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=6479)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with open(README, encoding="utf-8") as file:
        text = file.read()
    now = replay(options.port, text)
    if options.write:
        with open(README, "w", encoding="utf-8") as file:
            file.write(now)
        return 0
    sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), now.splitlines(True), "README.md", "server"))
    return 0 if now == text else 1


if __name__ == "__main__":
    sys.exit(main())
