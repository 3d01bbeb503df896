#!/usr/bin/python3
"""Debian's package index (`apt-cache dumpavail`) from standard input as JSON lines, one a package.

    {"package": "vim", "meta": {"version": "2:9.0.1378-2", "installed-size": 3738, ...},
     "dep": {"libc6": ">= 2.36", "vim-common": "= 2:9.0.1378-2"}, "tag": {"role::program": ""}}

`dep` has a member for each package that Depends names, alternatives too; its value is the version
constraint, several joined with ", ", empty if there is none. Architecture qualifiers (":any") are left
out. Everything else of a paragraph is not of interest here.
"""

import json
import re
import sys

META = {
    "Version": "version", "Section": "section", "Priority": "priority", "Maintainer": "maintainer",
    "Architecture": "architecture", "Source": "source", "Homepage": "homepage",
    "Description": "description", "Multi-Arch": "multi-arch",
}
NUMBERS = {"Installed-Size": "installed-size", "Size": "size"}
DEPENDENCY = re.compile(r"\s*([^\s:(|,]+)(?::\S+)?\s*(?:\(([^)]*)\))?")


def paragraphs(lines):
    """Field dictionaries; continuation lines are joined to their field."""
    fields, name = {}, None
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if fields:
                yield fields
            fields, name = {}, None
        elif line[0] in " \t":
            fields[name] += " " + line.strip()
        else:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    if fields:
        yield fields


def dependencies(text):
    """Package name -> version constraint."""
    found = {}
    for part in re.split(r"[,|]", text):
        match = DEPENDENCY.match(part)
        if match:
            name, constraint = match.group(1), match.group(2) or ""
            found[name] = ", ".join(filter(None, (found.get(name), constraint)))
    return found


def convert(fields):
    """One paragraph as the object to write."""
    meta = {short: fields[name] for name, short in META.items() if fields.get(name)}
    meta.update({short: int(fields[name]) for name, short in NUMBERS.items() if fields.get(name)})
    row = {"package": fields["Package"], "meta": meta}
    if fields.get("Depends"):
        row["dep"] = dependencies(fields["Depends"])
    if fields.get("Tag"):
        row["tag"] = {tag.strip(): "" for tag in fields["Tag"].split(",") if tag.strip()}
    return row


def main():
    for fields in paragraphs(sys.stdin):
        sys.stdout.write(json.dumps(convert(fields), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
