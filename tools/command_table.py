#!/usr/bin/python3
"""What the README and cellar-commands(7) say of each command, made from COMMAND DOCS of a running server.

    tools/command_table.py [--port N]            print the table of the README
    tools/command_table.py [--port N] --write    bring README.md and conf/man/cellar-commands.7 up to date

README.md has the commands used most (MOST_USED), between two marks. The page has a section for each group and a
subsection for each command: what stands between its two marks is written here, what follows it (details, and the
example that every command needs) is written by hand and stays. A new command gets its subsection here; its example is
then missing, and tests/e2e/test_manual.py says so. The same test, and test_readme.py, compare both with COMMAND DOCS.

Containers (TABLE, CLIENT ...) are listed by their subcommands; arguments are spelled as redis-cli spells its hints, but
with `...` behind what may be repeated instead of a second copy of it. What Cellar has not (ABSENT) comes as one list of
names.
"""

import argparse
import os
import re
import sys

import redis

import man

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(ROOT, "README.md")
BEGIN = "<!-- commands: made by tools/command_table.py -->"
END = "<!-- end of commands -->"
PAGE = os.path.join(ROOT, "conf", "man", "cellar-commands.7")
DOCS = '.\\" DOCS'
END_OF_DOCS = '.\\" END OF DOCS'
ABSENT_TITLE = "ABSENT COMMANDS"
MOST_USED = ["TABLE CREATE", "TABLE SHOW", "FAMILY ADD", "FAMILY ALTER", "CPUT", "CGET", "CMGET", "CROW", "CROWS", "CSCAN", "CCOUNT", "CAGG",
             "CDEL", "CDELRANGE", "CADD", "CINCRBY", "CAPPEND", "CMUTATE", "CUPDATE", "CNEAR", "INDEX CREATE", "CEXPLAIN", "MULTI", "EXEC"]
ARGUMENTS_SHOWN_MAX = 50
# Groups that come first, in this order; the others follow by name.
GROUPS = ["cell", "schema", "stream", "index", "table", "transactions", "keyspace", "generic", "connection", "pubsub", "server"]
# Groups of commands that answer as a Redis does which has no scripts, modules or slots, and those by which a Redis would
# follow another one.
ABSENT = ["scripting", "module", "redis-cluster", "redis-replication"]


def text(word):
    return word.decode() if isinstance(word, bytes) else str(word)


def as_map(flat):
    """A RESP2 flat array (or a map) as a dictionary with text keys."""
    if isinstance(flat, dict):
        return {text(k): v for k, v in flat.items()}
    return {text(k): v for k, v in zip(flat[::2], flat[1::2])}


def argument(node):
    """One argument as hints show it: `[NX|XX]`, `column value [AS type]`, `[COUNT count]`."""
    node = as_map(node)
    kind, flags = text(node.get("type", "")), [text(f) for f in node.get("flags", [])]
    name, token = text(node.get("display_text", node.get("name", ""))), text(node.get("token", ""))
    parts = [argument(part) for part in node.get("arguments", [])]
    if kind == "oneof":
        body = "|".join(parts)
        if "optional" not in flags and len(parts) > 1:
            body = f"<{body}>" if token or any(" " in part for part in parts) else body
    elif kind == "block":
        body = " ".join(parts)
    elif kind == "pure-token":
        body = ""
    else:
        body = name
    shown = " ".join(word for word in (token, body) if word)
    if "multiple" in flags and "multiple_token" not in flags and token:
        shown += " ..."  # the values repeat, the token does not
    elif "multiple" in flags:
        return f"[{shown}] ..." if "optional" in flags else f"{shown} ..."
    return f"[{shown}]" if "optional" in flags else shown


def rows(docs):
    """(group, command, arguments, summary, complexity) of all commands, subcommands in place of their containers."""
    found = []
    for name, doc in as_map(docs).items():
        doc = as_map(doc)
        subcommands = as_map(doc.get("subcommands", []))
        entries = subcommands.items() if subcommands else [(name, doc)]
        for entry_name, entry in entries:
            entry = as_map(entry)
            if entry_name.lower().endswith("|help"):
                continue
            arguments = " ".join(argument(node) for node in entry.get("arguments", []))
            found.append((text(entry.get("group", doc.get("group", b""))), entry_name.replace("|", " ").upper(),
                          arguments, text(entry.get("summary", "")), text(entry.get("complexity", ""))))
    rank = {group: index for index, group in enumerate(GROUPS)}
    return sorted(found, key=lambda row: (rank.get(row[0], len(rank)), row[0], row[1]))


def cell(words):
    return words.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


def markdown(docs):
    """The README's table."""
    known = {command: (arguments, summary) for _, command, arguments, summary, _ in rows(docs)}
    lines = ["| command | what it does |", "| --- | --- |"]
    for command in MOST_USED:
        arguments, summary = known[command]
        shown = f"{command} {arguments if len(arguments) <= ARGUMENTS_SHOWN_MAX else required(arguments)}".strip()
        lines.append(f"| `{shown.replace('|', chr(92) + '|')}` | {cell(summary)} |")
    return "\n".join(lines) + "\n"


def required(arguments):
    """Arguments without the optional ones, for which `[option ...]` stands; `op` for a long choice."""
    left, depth = "", 0
    for letter in arguments.replace("] ...", "]"):
        depth += letter == "["
        left += letter if depth == 0 else ""
        depth -= letter == "]"
    left = re.sub(r"<[^<>]{40,}>", "op", " ".join(left.split()))
    return left + " [option ...]"


def block(command, arguments, summary, complexity):
    """What the page says of a command, between its marks."""
    lines = [DOCS, f".D1 Ic {man.words(command)}" if not arguments else ".Bd -ragged -offset indent"]
    if arguments:
        lines += [f".Ic {man.words(command)}", man.mdoc(arguments), ".Ed"]
    lines += [".Pp", man.mdoc(summary)]
    if complexity not in ("", "O(1)", "depends"):
        lines.append(man.mdoc(f"Cost: {complexity}."))
    return "\n".join(lines + [END_OF_DOCS]) + "\n"


def absent_block(docs):
    """The list of commands that Cellar answers as a Redis without them."""
    found = [(group in ABSENT, command.partition(" ")[0]) for group, command, _, _, _ in rows(docs)]
    names = sorted({name for absent, name in found if absent} - {name for absent, name in found if not absent})
    return "\n".join([DOCS, man.mdoc(", ".join(names) + "."), END_OF_DOCS]) + "\n"


def page(docs, text):
    """The page with what COMMAND DOCS says now: subsections come, go and move; what is written by hand stays."""
    written = {}
    first = text.index(f".Sh {section_title(GROUPS[0])}\n")
    last = text.index(f".Sh {ABSENT_TITLE}\n")
    intros = {}
    for section in re.split(r"^\.Sh ", text[first:last], flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        parts = re.split(r"^\.Ss ", body, flags=re.MULTILINE)
        intros[title] = parts[0]
        for part in parts[1:]:
            command, _, rest = part.partition("\n")
            written[command.replace("\\-", "-")] = rest.partition(END_OF_DOCS + "\n")[2]
    out, group = [text[:first]], None
    for row_group, command, arguments, summary, complexity in rows(docs):
        if row_group in ABSENT:
            continue
        if row_group != group:
            group = row_group
            out.append(f".Sh {section_title(group)}\n{intros.get(section_title(group), '')}")
        out.append(f".Ss {man.title(command)}\n{block(command, arguments, summary, complexity)}{written.get(command, '')}")
    tail = text[last:]
    before, _, rest = tail.partition(DOCS)
    out.append(before + absent_block(docs) + rest.partition(END_OF_DOCS + "\n")[2])
    return "".join(out)


def section_title(group):
    return {"pubsub": "PUBLISH AND SUBSCRIBE"}.get(group, group.upper()) + (" COMMANDS" if group != "transactions" else "")


def command_docs(port):
    """COMMAND DOCS of the server at `port`. Redis' own reply is nested as deep: beyond what the parser of hiredis-py
    1.0, which redis-py takes where it finds it, can read (7 levels)."""
    pool = redis.ConnectionPool(port=port, parser_class=redis.connection.PythonParser)
    try:
        return redis.Redis(connection_pool=pool).execute_command("COMMAND DOCS")
    finally:
        pool.disconnect()


def readme_table():
    """What stands between the marks in README.md."""
    with open(README, encoding="utf-8") as file:
        whole = file.read()
    return whole.partition(BEGIN)[2].partition(END)[0].strip() + "\n"


def write_readme(table):
    with open(README, encoding="utf-8") as file:
        whole = file.read()
    head, _, rest = whole.partition(BEGIN)
    tail = rest.partition(END)[2]
    with open(README, "w", encoding="utf-8") as file:
        file.write(f"{head}{BEGIN}\n\n{table}\n{END}{tail}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=6479)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    docs = command_docs(options.port)
    if not options.write:
        sys.stdout.write(markdown(docs))
        return
    write_readme(markdown(docs))
    with open(PAGE, encoding="utf-8") as file:
        now = page(docs, file.read())
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(now)


if __name__ == "__main__":
    main()
