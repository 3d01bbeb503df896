"""Cellar: tables of sorted rows, versions and indexes, over the Redis client that you have.

    import cellar

    db = cellar.Cellar("redis://localhost:6479")
    web = db.create_table("web", {"anchor": "TYPE string", "n": "TYPE i64"})
    web.put("com.cnn.www", {"anchor:cnnsi.com": "CNN", "n:hits": 5})
    web.row("com.cnn.www")  # {"anchor:cnnsi.com": "CNN", "n:hits": 5}

`cellar.aio` has the same for asyncio. What the commands do is in Cellar's manual, cellar-query(7) first.
"""

from .client import Cellar, Feed, Group, Snapshot, Table, Transaction
from .errors import *  # noqa: F401,F403
from .requests import Entry
from .values import Cell, Put, Typed

__version__ = "1.0.0"
