#!/usr/bin/python3
"""What a machine can check of STYLE.md beside the formatting; `make check` and `make tidy` run it.

Layers        an #include points down only: main -> server -> commands -> replica -> store -> engine ->
              {btree, resp, s3} -> base, never to another folder of the same level. A public header
              (include/cellar) belongs to the layer that holds its .cc or, if none does, to base; it
              includes public headers only.
Floors        inside a layer with sub-folders (engine, commands, ...) an #include points down only, in the
              order of FLOORS below; a layer's own folder stands there as "": the top floor, in base the lowest.
libuv         only src/server (and main.cc) includes <uv.h>.
libcurl       only src/s3/http.cc includes <curl/curl.h>.
Files         open with a comment; have at most 1,000 lines, and no comment is wider than 100 columns
              (clang-format sees to the code), but for a link or a word that cannot be divided.
Functions     have at most 70 code lines. A function that is better in one piece says why in its
              body: `// tidy: long because ...`.
Hubs          the classes of HUBS have at most so many data members and public functions as stand there: what is
              new gets a room of its own. Who makes one smaller lowers its figure.
Signs         a file that a comment names exists: `name.h`, `folder/name.cc`. (That manual pages and
              their sections do, tests/e2e/test_manual.py sees to.)
clang-tidy    with --clang-tidy changed|all: on the .cc files that changed since the branch left
              origin/main (on main itself: in the last commit), or on all of them.

    tools/tidy.py [--root DIR] [--clang-tidy changed|all]

The functions take text or a directory, so that tests/tools/test_tidy.py can show them wrong sources.
It trusts clang-format's layout (a function begins at column 0 and ends with `}` at column 0) instead of
parsing C++.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time

LEVELS = {"base": 0, "s3": 1, "btree": 1, "resp": 1, "engine": 2, "store": 3, "embedded": 4, "heat": 4, "replica": 4, "cluster": 5, "commands": 6, "server": 7, "main": 8}
# The floors of a layer, lowest first; "" is the layer's own folder. A layer that is not here has none.
FLOORS = {
    "base": ("", "text", "os"),
    "btree": ("nodes", ""),
    "engine": ("keys", "request", "filter", "schema", "feeds", "table", "state", "rows", "scans", "aggregate"),
    "commands": ("arguments", "config", "catalog", "acl", "session", "clients", "dispatch", "replies", "feeds",
                 "reports", "cluster", "data", "admin", ""),
    "store": ("format", "log", "snapshot", "offline", "journal", "history", ""),
    "replica": ("links", "set", ""),
    "server": ("net", "connection", ""),
}
# Classes that everything would like to move into: file, name, data members, public functions.
HUBS = (
    ("src/server/server.h", "Server", 71, 45),
    ("src/store/store.h", "Store", 55, 111),
    ("src/engine/state/engine.h", "Engine", 26, 53),
    ("src/store/journal/log_writer.h", "LogWriter", 65, 25),
    ("src/commands/config/config.h", "Config", 97, 0),
    ("src/commands/session/session.h", "Session", 49, 17),
)
FILE_LINES_MAX = 1000
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100
CLANG_TIDY_SECONDS_MAX = 300  # for `changed`: a check before a push must not take the afternoon

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def sources(root, folders=("src", "include", "tools", "tests")):
    """Paths of all C++ and C files below `root`, relative to it, sorted."""
    found = []
    for folder in folders:
        for directory, _, names in os.walk(os.path.join(root, folder)):
            found += [os.path.relpath(os.path.join(directory, name), root)
                      for name in names if name.endswith((".cc", ".h", ".c"))]
    return sorted(found)


def layer_of(path):
    """The layer of a file below src/: its folder, `main` for main.cc, None for anything else."""
    parts = path.split("/")
    if parts[0] != "src":
        return None
    return parts[1] if len(parts) > 2 else "main"


def floor_of(path):
    """The sub-folder of a file below its layer: "" if it lies in the layer's own folder."""
    return "/".join(path.split("/")[1:-1])


def check_floors(path, text):
    """Messages on includes inside one layer that point to a higher floor, and on unknown floors."""
    layer = layer_of(path)
    if layer not in LEVELS or layer == "main":
        return []
    floors = FLOORS.get(layer, ("",))
    own = floor_of(path[len("src/"):])
    if os.path.basename(path) == "precompiled.h":
        return []  # a matter of the build: it stands on no floor, and none includes it
    if own not in floors:
        return [f"{path}: {layer} has no floor '{own}'"]
    messages = []
    for match in INCLUDE.finditer(text):
        bracket, target = match.groups()
        if bracket == "<" or target.split("/")[0] != layer:
            continue
        line = text.count("\n", 0, match.start()) + 1
        other = floor_of(target)
        if other not in floors:
            messages.append(f'{path}:{line}: {layer} has no floor \'{other}\' ("{target}")')
        elif floors.index(other) > floors.index(own):
            messages.append(f'{path}:{line}: {layer}/{own} must not see the floor above it ("{target}")')
    return messages


def public_header_layer(root, name):
    """The layer of the public header cellar/`name`.h: where its .cc is, else base."""
    stem = os.path.splitext(name)[0]
    for layer in sorted(LEVELS):
        if os.path.exists(os.path.join(root, "src", layer, stem + ".cc")):
            return layer
    return "base"


def check_layers(root, path, text):
    """Messages on includes of `path` that point up, sideways, or to libuv from outside server/."""
    messages = []
    own = layer_of(path)
    public = path.startswith("include/")
    if public:
        own = public_header_layer(root, os.path.basename(path))
    if own is None:
        return messages
    if own not in LEVELS:
        return [f"{path}: folder {own} is no layer"]
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        bracket, target = match.groups()
        if target in ("uv.h",) or target.startswith("uv/"):
            if own not in ("server", "main") or public:
                messages.append(f"{path}:{line}: only server/ includes <uv.h>")
            continue
        if target.startswith("curl/") and path != "src/s3/http.cc":
            messages.append(f"{path}:{line}: only src/s3/http.cc includes <curl/curl.h>")
        if bracket == "<":
            continue
        folder, _, rest = target.partition("/")
        if folder == "cellar":
            folder = public_header_layer(root, rest)
        elif public:
            messages.append(f'{path}:{line}: a public header includes "{target}", which is not public')
            continue
        if folder not in LEVELS:
            messages.append(f'{path}:{line}: "{target}" names no layer')
        elif folder != own and LEVELS[folder] >= LEVELS[own]:
            messages.append(f'{path}:{line}: {own} must not see {folder} ("{target}")')
    return messages


def check_opening(path, text):
    """A file opens with a comment that says what it is."""
    return [] if text.startswith(("//", "/*")) else [f"{path}:1: does not open with a comment on its design"]


def check_length(path, text):
    """The hard limit on a file."""
    lines = text.count("\n")
    return [f"{path}: {lines} lines, more than {FILE_LINES_MAX}"] if lines > FILE_LINES_MAX else []


def check_columns(path, text):
    """Comments that clang-format leaves as wide as they are."""
    return [f"{path}:{number}: a comment of {len(line)} columns, more than {COLUMNS_MAX}"
            for number, line in enumerate(text.split("\n"), 1)
            if len(line) > COLUMNS_MAX and re.match(r"\s*// \S", line) and not re.search("NOLINT|://", line)]


NAMED_FILE = re.compile(r"(?<![\w/.<>*-])((?:[\w-]+/)*[\w-]+\.(?:h|cc|c|py|sh))(?![\w(])")
FOREIGN_FILES = ("raft.h", "uv.h", "include/leveldb/status.h")  # of others


def known_names(root):
    """Every file below `root` that a comment may name, by each end of its path: a/b/c.h is also
    b/c.h and c.h."""
    names = set()
    for folder in ("src", "include", "tools", "tests", "conf"):
        for directory, _, files in os.walk(os.path.join(root, folder)):
            for file in files:
                parts = os.path.relpath(os.path.join(directory, file), root).split("/")
                names.update("/".join(parts[at:]) for at in range(len(parts)))
    return names


def check_signs(path, text, known):
    """Comments that send the reader to a file that is not there."""
    messages = []
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.search(r"(?:^|\s)//(.*)", line)
        if not comment or "://" in line:
            continue
        messages += [f"{path}:{number}: a comment names {name}, which does not exist"
                     for name in NAMED_FILE.findall(comment.group(1))
                     if name not in known and name not in FOREIGN_FILES]
    return messages


def is_code(line):
    """Blank lines and lines of comment are free."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith(("//", "/*", "* ", "*/"))


def check_functions(path, text):
    """Functions with more than the limit of code lines that do not say why."""
    messages = []
    lines = text.split("\n")
    start = None
    not_function = re.compile(r"^(namespace|class|struct|union|enum|extern|inline constexpr|constexpr|const|"
                              r"static const|using|typedef|#|template <.*> (class|struct))\b|.*= ?\{$|^#")
    for number, line in enumerate(lines):
        if start is None:
            if line[:1] not in ("", " ", "}", "/", "#") and line.rstrip().endswith("{"):
                start = number
                if not_function.match(line) or "(" not in "".join(lines[max(0, number - 6):number + 1]):
                    start = None
            continue
        if line.startswith("}"):
            body = lines[start:number + 1]
            count = sum(is_code(each) for each in body)
            if count > FUNCTION_LINES_MAX and "// tidy: long because" not in "\n".join(body):
                messages.append(f"{path}:{start + 1}: a function of {count} code lines, more than "
                                f"{FUNCTION_LINES_MAX}")
            start = None
    return messages


def without_nested(body):
    """A class's text without comments, and without what stands in inner braces."""
    kept, depth = [], 0
    for char in re.sub(r"//[^\n]*", "", body):
        depth -= char == "}"
        if depth == 0:
            kept.append(char)
        depth += char == "{"
    return "".join(kept)


def count_members(text, name):
    """(data members, public functions) of a class or struct; None if it is not there. Types, constants,
    friends and static assertions inside it do not count."""
    head = re.search(rf"^(class|struct) {name}\b[^;{{]*{{\n", text, re.MULTILINE)
    if not head:
        return None
    body = without_nested(text[head.end():text.index("\n};", head.end() - 1)])
    public, members, functions = head.group(1) == "struct", 0, 0
    # A statement ends with `;`, a function written out with `}` at the end of a line.
    for statement in re.split(r";|(?<=})\n|(?<=:)\n", re.sub(r"\{\}", "{}", body)):
        statement = " ".join(statement.split())
        label = re.fullmatch(r"(public|private|protected):", statement)
        if label:
            public = label.group(1) == "public"
        elif not statement or re.match(r"(struct|class|enum|using|friend|static_assert|static constexpr|template)\b",
                                       statement):
            continue
        elif re.search(r"\w\(|operator\W+\(", re.sub(r"<[^<>]*(<[^<>]*>)*[^<>]*>", "", statement)):
            functions += public
        else:
            members += 1
    return members, functions


def check_hubs(root):
    """Messages on hubs that have grown, or are gone from where they were."""
    messages = []
    for path, name, members_max, functions_max in HUBS:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            counted = count_members(file.read(), name)
        if counted is None:
            messages.append(f"{path}: there is no class {name}")
            continue
        for what, count, limit in (("data members", counted[0], members_max),
                                   ("public functions", counted[1], functions_max)):
            if count > limit:
                messages.append(f"{path}: {name} has {count} {what}, more than {limit}: what is new gets a room of its own")
    return messages


def check_file(root, path, known=None):
    """All messages on one file; `known` is what known_names(root) gave, or None."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    messages = (check_layers(root, path, text) + check_floors(path, text) +
                check_opening(path, text) + check_length(path, text) + check_columns(path, text) +
                check_signs(path, text, known_names(root) if known is None else known))
    if not path.startswith("tests/"):
        messages += check_functions(path, text)
    return messages


def git(root, *words):
    """Output of a git command, or None if it failed."""
    done = subprocess.run(("git", "-C", root) + words, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def changed_files(root):
    """Files that differ from where the branch left origin/main, or from the commit before."""
    head = git(root, "rev-parse", "HEAD")
    base = git(root, "merge-base", "HEAD", "origin/main")
    if base is None or base == head:
        base = git(root, "rev-parse", "HEAD~1")
    names = git(root, "diff", "--name-only", "--diff-filter=d", base) if base else git(root, "ls-files")
    untracked = git(root, "ls-files", "--others", "--exclude-standard")
    return sorted(set((names or "").split("\n") + (untracked or "").split("\n")))


def units_to_tidy(root, which):
    """The .cc files for clang-tidy: a changed header stands for the .cc of its name. No tests: they
    come as parts of one large unit, and Catch2's macros are not ours to mend."""
    every = [path for path in sources(root, ("src", "tools")) if path.endswith(".cc")]
    if which == "all":
        return every
    stems = {os.path.splitext(os.path.basename(path))[0] if path.endswith(".h") else path
             for path in changed_files(root)}
    return [path for path in every
            if path in stems or os.path.splitext(os.path.basename(path))[0] in stems]


def run_clang_tidy(root, units, seconds_max):
    """Runs clang-tidy on `units`, one a processor; returns messages. Names what was left at the limit."""
    begin = time.monotonic()
    flags = ["-std=c++20", "-fconstexpr-steps=50000000", "-Isrc", "-Iinclude", "-Itools"]

    def one(path):
        if seconds_max and time.monotonic() - begin > seconds_max:
            return path, None
        done = subprocess.run(["clang-tidy", "--quiet", path, "--"] + flags, cwd=root, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)
        return path, "" if done.returncode == 0 else done.stdout + done.stderr

    messages, left = [], []
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for path, output in pool.map(one, units):
            if output is None:
                left.append(path)
            elif output:
                print(f"clang-tidy {path}:\n{output.rstrip()}", flush=True)
                messages.append(f"{path}: clang-tidy has something to say, above")
    if left:
        print(f"tidy: time is up, clang-tidy has not seen {len(left)} of {len(units)} files "
              f"(`make tidy` takes all): {' '.join(left)}")
    return messages


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument("--clang-tidy", choices=("changed", "all"))
    options = parser.parse_args()
    files = sources(options.root)
    known = known_names(options.root)
    messages = [message for path in files for message in check_file(options.root, path, known)]
    messages += check_hubs(options.root)
    if options.clang_tidy:
        units = units_to_tidy(options.root, options.clang_tidy)
        print(f"tidy: {len(files)} files looked at, clang-tidy on {len(units)}", flush=True)
        seconds_max = CLANG_TIDY_SECONDS_MAX if options.clang_tidy == "changed" else 0
        messages += run_clang_tidy(options.root, units, seconds_max)
    for message in messages:
        print(message)
    print(f"tidy: {len(messages)} to mend" if messages else "tidy: nothing to mend")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
