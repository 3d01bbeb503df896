#!/usr/bin/python3
"""The README's table of commands, made from what a running server says in COMMAND DOCS.

    tools/command_table.py [--port N]            print the table
    tools/command_table.py [--port N] --write    put it between the marks in README.md

tests/e2e/test_readme.py compares the two, so that neither can go its own way. Containers (TABLE, CLIENT ...)
are listed by their subcommands; arguments are spelled as redis-cli spells its hints, but with `...` behind what
may be repeated instead of a second copy of it. What Cellar has not (ABSENT) comes as one list of names.
"""

import argparse
import os
import sys

import redis

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(ROOT, "README.md")
BEGIN = "<!-- commands: made by tools/command_table.py -->"
END = "<!-- end of commands -->"
# Groups that come first, in this order; the others follow by name.
GROUPS = ["cell", "schema", "index", "table", "transactions", "keyspace", "generic", "connection", "pubsub", "server"]
# Groups of commands that answer as a Redis does which has no scripts, modules, cluster or replicas.
ABSENT = ["scripting", "module", "cluster", "replication"]


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
    """(group, command, arguments, summary) of all commands, subcommands in place of their containers."""
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
                          arguments, text(entry.get("summary", ""))))
    rank = {group: index for index, group in enumerate(GROUPS)}
    return sorted(found, key=lambda row: (rank.get(row[0], len(rank)), row[0], row[1]))


def cell(words):
    return words.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")


def markdown(docs):
    """The table, a heading for each group."""
    lines, group, absent = [], None, []
    for row_group, command, arguments, summary in rows(docs):
        if row_group in ABSENT:
            absent.append(command.partition(" ")[0])
            continue
        if row_group != group:
            group = row_group
            lines += ["", f"**{group}**", "", "| command | what it does |", "| --- | --- |"]
        lines.append(f"| `{command}` {cell(arguments)} | {cell(summary)} |".replace("`  |", "` |"))
    names = " ".join(f"`{name}`" for name in sorted(set(absent)))
    lines += ["", "**scripting, modules, cluster, replication**", "",
              f"Cellar has none of these, and answers as a Redis without them does: {names}."]
    return "\n".join(lines).strip() + "\n"


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
    table = markdown(command_docs(options.port))
    if options.write:
        write_readme(table)
    else:
        sys.stdout.write(table)


if __name__ == "__main__":
    main()
