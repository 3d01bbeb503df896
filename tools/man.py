#!/usr/bin/python3
"""Man pages that are made from what they describe.

    tools/man.py conf conf/cellar.conf        cellar.conf(5), from the file's own comments
    tools/man.py help build/cellar-import     PROGRAM(1), from what PROGRAM --help prints

In the configuration file a block of comments describes the options that follow it: lines `name value`, commented
out (`# name value`) or not. A commented line is an option if nothing but options follows in its block and it does
not end in a full stop, as sentences do. A line `# --- Title ---` (any number of - or =) or a block between lines
of # or - begins a section. Everything else in front of the first option is the introduction.
"""

import os
import re
import subprocess
import sys

OPTION = re.compile(r"^(?:# ?)?([a-z][a-z0-9-]*)((?: +\S.*)?)$")
HEADING = re.compile(r"^#+ *[-=#]{2,} *(.*?) *[-=#]* *$")


def roff(text):
    """Text as roff takes it literally."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.split("\n"))


def option_lines(lines):
    """Indices of the lines that set an option."""
    found, in_tail = set(), True
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        if not line.strip() or HEADING.match(line):
            in_tail = True
        elif OPTION.match(line) and (not line.startswith("#") or (in_tail and not line.rstrip().endswith("."))):
            found.add(index)
        else:
            in_tail = False
    return found


def parse_conf(text):
    """[(section or None, comment lines, setting lines)], introduction first with no settings."""
    lines = text.split("\n")
    options = option_lines(lines)
    entries, comment, settings, section = [], [], [], None

    def close():
        nonlocal comment, settings
        if comment or settings:
            entries.append((section, comment, settings))
        comment, settings = [], []

    for index, line in enumerate(lines):
        heading = HEADING.match(line)
        if heading and (heading.group(1) or re.match(r"^#+ *[-=#]{5,}", line)):
            close()
            section = heading.group(1) or section
        elif not line.strip():
            if settings:
                close()
            elif comment:
                comment.append("")
        elif index in options:
            settings.append(line.lstrip("# ").rstrip())
        elif line.startswith("#"):
            if settings:
                close()
            comment.append(line.lstrip("#").strip())
    close()
    return entries


def paragraphs(comment):
    """Comment lines as paragraphs."""
    return [" ".join(part.split("\n")) for part in re.split(r"\n\n+", "\n".join(comment).strip()) if part]


def conf_page(text):
    """cellar.conf(5)."""
    out = ['.\\" Made by tools/man.py from conf/cellar.conf.', '.TH CELLAR.CONF 5 "" "Cellar" "File Formats"',
           ".SH NAME", "cellar.conf \\- configuration file of cellar", ".SH DESCRIPTION",
           "Each line is an option and its value; lines that begin with # are comments.",
           "Every option can be given on the command line too, and most can be changed while the server runs, with",
           ".BR \"CONFIG SET\" ."]
    section, opened = None, False
    for entry_section, comment, settings in parse_conf(text):
        if not settings:
            out += [line for part in paragraphs(comment) for line in (".PP", roff(part))]
            continue
        if not opened or entry_section != section:
            out.append(f".SH {roff(entry_section.upper() if entry_section else 'OPTIONS')}")
            section, opened = entry_section, True
        out.append(".TP")
        for index, setting in enumerate(settings):
            name, _, value = setting.partition(" ")
            out.append(f"\\fB{roff(name)}\\fR {roff(value)}".rstrip())
            if index + 1 < len(settings):
                out.append(".TQ")
        for index, part in enumerate(paragraphs(comment)):
            out += ([".IP"] if index else []) + [roff(part)]
        if not comment:
            out.append("\\ ")
    out += [".SH SEE ALSO", ".BR cellar (1)"]
    return "\n".join(out) + "\n"


def help_page(program):
    """A page of section 1 from a program's --help (as CLI11 lays it out)."""
    name = os.path.basename(program)
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    head, _, rest = text.partition("Usage: ")
    usage, _, rest = rest.partition("\n")
    title = head.split(".")[0].strip().replace("\n", " ") or name
    title = title[0].lower() + title[1:]
    out = [f'.\\" Made by tools/man.py from {name} --help.', f'.TH {name.upper()} 1 "" "Cellar" "User Commands"',
           ".SH NAME", f"{roff(name)} \\- {roff(title)}", ".SH SYNOPSIS", roff(usage), ".SH DESCRIPTION",
           roff(head.strip())]
    for line in rest.split("\n"):
        option = re.match(r"^  (\S.*?)(?:  +(\S.*))?$", line)
        if re.match(r"^\S.*:$", line):
            out.append(f".SH {roff(line[:-1].upper())}")
        elif option:
            out += [".TP", f"\\fB{roff(option.group(1))}\\fR", roff(option.group(2) or "")]
        elif line.strip():
            out.append(roff(line.strip()))
    out += [".SH SEE ALSO", ".BR cellar (1)"]
    return "\n".join(line for line in out if line) + "\n"


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("conf", "help"):
        sys.exit(__doc__)
    if sys.argv[1] == "help":
        sys.stdout.write(help_page(sys.argv[2]))
        return
    with open(sys.argv[2], encoding="utf-8") as file:
        sys.stdout.write(conf_page(file.read()))


if __name__ == "__main__":
    main()
