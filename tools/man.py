#!/usr/bin/python3
"""The manual's pages, made from conf/man/ and from what they describe.

    tools/man.py OUT [--programs build]            the pages, complete, ready to install
    tools/man.py OUT [--programs build] --html     and each as HTML beside it, with an index (needs mandoc)

A page is one mdoc(7) file, conf/man/NAME.SECTION, found by its name: to add one, write the file. `make install`, the
package and `make manual` take it from there, and tests/e2e/test_manual.py lints it, runs its examples (tools/transcript.py
says what counts as one) and looks for the pages and sections that it refers to. A page may hold these lines, which are
replaced:

    .\\" INSERT conf FILE      the options of a configuration file, from its own comments
    .\\" INSERT help PROGRAM   the options of a program, from its --help (left empty if it is not built)

What cellar-commands(7) says of each command is checked in: tools/command_table.py writes it.

In the configuration file a block of comments describes the options that follow it: lines `name value`, commented
out (`# name value`) or not. A commented line is an option if nothing but options follows in its block and it does
not end in a full stop, as sentences do. A line `# --- Title ---` (any number of - or =) or a block between lines
of # or - begins a section. Comments in front of the first option are the introduction, which the page has in its own
words; a later block without options belongs to the section that it stands in.
"""

import argparse
import glob
import html
import os
import re
import subprocess
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = os.path.join(ROOT, "conf", "man")
STYLE = os.path.join(PAGES, "manual.css")
OPTION = re.compile(r"^(?:# ?)?([a-z][a-z0-9-]*)((?: +\S.*)?)$")
HEADING = re.compile(r"^#+ *[-=#]{2,} *(.*?) *[-=#]* *$")
INSERT = re.compile(r'^\.\\" INSERT (conf|help) (\S+)$', re.MULTILINE)
TIGHT = re.compile(r"^  (-\S+ (?:TEXT|UINT|INT|FLOAT)\S*) ((?!in \[|REQUIRED|\.\.\.|\(|  )\S.*)$")  # no room for its column
SENTENCE_END = re.compile(r"(?<=[^.\W][.!?])[ \n]+(?=[A-Z`(])|(?<=\)\.)[ \n]+(?=[A-Z`(])")


def mdoc(text):
    """Text as mdoc takes it literally, a sentence a line; `words` get quotation marks."""
    text = re.sub(r"`([^`]+)`", r"\\(oq\1\\(cq", text.replace("\\", "\\e").replace("-", "\\-"))
    lines = [line for sentence in SENTENCE_END.split(text)
             for line in textwrap.wrap(sentence, 80, break_long_words=False, break_on_hyphens=False)]
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in lines)


def words(text):
    """Text as words of a macro line: none of them is taken for a macro or for punctuation."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return " ".join("\\&" + word if re.fullmatch(r"[A-Z][a-z][a-z]?|%[A-Z]|[^\w\\]|\\-", word) else word
                    for word in text.split())


def title(text):
    """Text as the title of a section, whose hyphens are part of its address in HTML."""
    return words(text).replace("\\-", "-")


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


def conf_options(text):
    """The options of a configuration file, a section of the page for each of its own."""
    out, section, in_list = [], None, False
    for entry_section, comment, settings in parse_conf(text):
        if section is None and not settings:
            continue  # the introduction
        if section != (entry_section or "Options"):
            out += [".El"] if in_list else []
            section, in_list = entry_section or "Options", False
            out.append(f".Sh {title(section.upper())}")
        if not in_list:
            out.append(".Bl -tag -width Ds")
            in_list = True
        for setting in settings:
            name, _, value = setting.partition(" ")
            out.append(f".It Cm {words(name)} Ar {words(value)}" if value.strip() else f".It Cm {words(name)}")
        if not settings:
            out.append(".It Em Note")
        for index, part in enumerate(paragraphs(comment)):
            out += ([".Pp"] if index else []) + [mdoc(part)]
    return "\n".join(out + ([".El"] if in_list else []))


def help_item(words_shown, description):
    """An option as CLI11 shows it, `-t,--threads UINT:INT in [1 - 256]=4`, as an item of a list."""
    name, _, rest = words_shown.partition(" ")
    default = re.search(r"=(\S+)", rest) or re.match(r"\((.*)\)$", description)
    choice = re.search(r":\{([^}]*)\}", rest)
    choices = choice.group(1).split(",") if choice else []
    description = "" if re.match(r"\(.*\)$", description) else re.sub(r"(?<!\.)\.$", "", description)
    within = re.search(r" in \[(\d+) - (\d+)\]", rest)
    kind = re.match(r"(TEXT|UINT|INT|FLOAT)\b", rest)
    item = f".It Cm {words(name)}"
    if kind:
        item += " Ar " + ("text" if kind.group(1) == "TEXT" else "number") + (" ..." if " ..." in rest else "")
    notes = ["Required"] if "REQUIRED" in rest else []
    notes += [f"One of {', '.join(choices)}"] if not all(each in description for each in choices) else []
    notes += [f"From {within.group(1)} to {within.group(2)}"] if within else []
    notes += [f"Default: {default.group(1)}"] if default else []
    notes = ([description] if description else []) + notes
    sentences = [(part if part.startswith(tuple(choices)) else part[:1].upper() + part[1:]) +
                 ("" if part.endswith("...") else ".") for part in notes]
    return [item] + [mdoc(sentence) for sentence in sentences]


def help_options(text):
    """The options in what a program prints for --help (as CLI11 lays it out): sections of lists. The exit status and
    what stands in front of the usage have the page's own words."""
    out, in_list, pending, skipped = [], False, None, True

    def flush(description=""):
        nonlocal pending
        if pending is not None:
            out.extend(help_item(pending, description))
        pending = None

    for line in text.partition("Usage: ")[2].split("\n")[1:]:
        option = TIGHT.match(line) or re.match(r"^  (\S.*?)(?:   *(\S.*))?$", line)
        if re.match(r"^\S.*:$", line):
            flush()
            out += [".El"] if in_list else []
            out.append(f".Sh {title('ARGUMENTS' if line == 'Positionals:' else line[:-1].upper())}")
            in_list, skipped = False, False
        elif re.match(r"^   ", line) and pending is not None:
            flush(line.strip())
        elif option:
            flush()
            out += [] if in_list else [".Bl -tag -width Ds"]
            in_list = True
            pending = option.group(1)
            if option.group(2):
                flush(option.group(2))
        elif line.strip() and not skipped and not line.startswith("Exit status"):
            flush()
            if in_list:
                out += [".El", ".Pp"]
                in_list = False
            out.append(mdoc(line.strip()))
        elif line.startswith("Exit status"):
            skipped = True
    flush()
    return "\n".join(out + ([".El"] if in_list else []))


def expand(text, programs):
    """A page with what its INSERT lines ask for."""
    def insert(match):
        kind, name = match.groups()
        if kind == "conf":
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                return conf_options(file.read())
        program = os.path.join(programs, name)
        if not os.access(program, os.X_OK):
            return f'.\\" {name} was not built'
        return help_options(subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout)
    return INSERT.sub(insert, text)


def sources():
    """The files of conf/man that are pages, by name."""
    return sorted(glob.glob(os.path.join(PAGES, "*.[1-8]")))


def write_pages(out, programs):
    """Writes all pages; returns their paths."""
    os.makedirs(out, exist_ok=True)
    made = []
    for source in sources():
        with open(source, encoding="utf-8") as file:
            text = expand(file.read(), programs)
        made.append(os.path.join(out, os.path.basename(source)))
        with open(made[-1], "w", encoding="utf-8") as file:
            file.write(text)
    return made


def write_html(pages):
    """Each page as HTML beside it, and an index."""
    out = os.path.dirname(pages[0])
    with open(STYLE, encoding="utf-8") as file:
        style = file.read()
    with open(os.path.join(out, "manual.css"), "w", encoding="utf-8") as file:
        file.write(style)
    entries = []
    for page in sorted(pages, key=lambda path: (-int(path[-1]), path)):  # what explains, before what lists options
        done = subprocess.run(["mandoc", "-T", "html", "-O", "style=manual.css,man=%N.%S.html,toc", page],
                              capture_output=True, text=True, check=True)
        with open(page + ".html", "w", encoding="utf-8") as file:
            file.write(done.stdout.replace("<body>", '<body>\n<p class="up"><a href="index.html">Cellar manual</a></p>', 1))
        with open(page, encoding="utf-8") as file:
            about = re.search(r"^\.Nd (.*)$", file.read(), re.MULTILINE).group(1).replace("\\-", "-")
        name, _, section = os.path.basename(page).rpartition(".")
        entries.append(f'<dt><a href="{name}.{section}.html">{name}({section})</a></dt><dd>{html.escape(about)}</dd>')
    with open(os.path.join(out, "index.html"), "w", encoding="utf-8") as file:
        file.write('<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Cellar manual</title>\n'
                   '<meta name="viewport" content="width=device-width, initial-scale=1.0">\n'
                   '<link rel="stylesheet" href="manual.css">\n<body>\n<div class="manual-text">\n<h1>Cellar manual</h1>\n'
                   '<dl class="Bl-tag">\n' + "\n".join(entries) + "\n</dl>\n</div>\n</body>\n</html>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out")
    parser.add_argument("--programs", default=os.path.join(ROOT, "build"))
    parser.add_argument("--html", action="store_true")
    options = parser.parse_args()
    pages = write_pages(options.out, options.programs)
    if options.html:
        write_html(pages)
        print(f"manual: {os.path.join(options.out, 'index.html')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
