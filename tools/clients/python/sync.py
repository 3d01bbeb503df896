#!/usr/bin/python3
"""Makes cellar/client.py of cellar/aio.py, and nodes.py of aio_nodes.py, by taking `async` and `await` out.

    sync.py            writes them
    sync.py --check    status 1 if they are not as they would be written
"""

import os
import re
import sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cellar")
HEADS = {"aio.py": ("client.py", '''"""Cellar for programs that wait. Made of aio.py by sync.py: change that file.

    with Cellar("redis://localhost:6479") as db:
        users = db.table("users")
        users.put("u1", {"p:mail": "ann@x.org", "p:age": 41})
        for key, row in users.scan(prefix="u", where=("p:age", "GT", 40)):
            print(key, row["p:mail"])

What has surely not been done is tried again, for `wait` seconds, and the leader of a set is found anew: see
nodes.py. A write behind a lost connection may have been done, and is raised.
"""
'''), "aio_nodes.py": ("nodes.py", '''"""Which node is asked, and what is sent again. Made of aio_nodes.py by sync.py: change that file."""
''')}
CHANGES = (
    (r"async def|async with|async for", lambda m: m.group(0)[6:]), (r"\bawait ", ""),
    (r"AsyncIterator", "Iterator"), (r"__aenter__", "__enter__"), (r"__aexit__", "__exit__"),
    (r"asyncio\.sleep", "time.sleep"), (r"import asyncio\n", ""), (r"redis\.asyncio as redis", "redis"),
    (r"redis\.asyncio", "redis"), (r"\.aio_nodes", ".nodes"),
    (r"Any, Iterator, Callable, Iterable, Mapping", "Any, Callable, Iterable, Iterator, Mapping"))


def made(name, head):
    """The text of the file that is made of that one."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        text = file.read()
    body = text[text.index('"""', 3) + 4:]
    for pattern, by in CHANGES:
        body = re.sub(pattern, by, body)
    return head + body


def main():
    for name, (target, head) in HEADS.items():
        text, path = made(name, head), os.path.join(HERE, target)
        if "--check" in sys.argv:
            with open(path, encoding="utf-8") as file:
                if file.read() != text:
                    return f"{path} is not what sync.py makes of {name}"
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
