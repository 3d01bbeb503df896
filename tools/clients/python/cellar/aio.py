"""Cellar for asyncio. `cellar.Cellar` is the same without `await`: tools/clients/python/sync.py makes
client.py of this file.

    async with Cellar("redis://localhost:6479") as db:
        users = db.table("users")
        await users.put("u1", {"p:mail": "ann@x.org", "p:age": 41})
        async for key, row in users.scan(prefix="u", where=("p:age", "GT", 40)):
            print(key, row["p:mail"])

What has surely not been done is tried again, for `wait` seconds, and the leader of a set is found anew: see
aio_nodes.py. A write behind a lost connection may have been done, and is raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Iterable, Mapping, Protocol, Sequence, TypeVar

from redis.exceptions import ResponseError

from . import requests
from .aio_nodes import Nodes
from .errors import CellarError, NoTable, WrongType, from_redis
from .requests import CellOptions, Cells, DeleteOptions, Entry, Item, Request, Row, RowOptions, ScanOptions, Schema, Step
from .values import Value, Word, text, word_of

__all__ = ["Cellar", "Feed", "Group", "Snapshot", "Table", "Transaction"]

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")


class Run(Protocol):
    """What sends a request: a connection of the pool, or a transaction's queue."""

    async def __call__(self, request: Request[T]) -> T: ...


def done(reply: Any) -> bool:
    """What a conditional write answers: null, if a condition did not hold."""
    return reply is not None


class Cellar:
    """A server, a set or a cluster. `url` has one node or several (`redis://a:6479,b:6479`): of several the one that
    leads is asked. `options` are those of redis-py's from_url."""

    def __init__(self, url: str = "redis://localhost:6479", *, wait: float = 2.0, **options: Any) -> None:
        self._nodes = Nodes(url, wait, options)
        self._schemas: dict[str, Schema] = {}

    @property
    def redis(self) -> Any:
        """redis-py's client of the node that is asked now."""
        return self._nodes.redis

    async def __aenter__(self) -> Cellar:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections."""
        await self._nodes.close()

    async def run(self, request: Request[T]) -> T:
        """Sends a request, again while it is surely not done."""
        [reply] = await self._nodes.perform([request.words], is_read=request.is_read())
        if isinstance(reply, CellarError):
            raise reply
        return request.decode(reply)

    async def command(self, *words: Any) -> Any:
        """Any command, with its reply as redis-py gives it: `await db.command("INFO", "memory")`."""
        return await self.run(Request(words, lambda reply: reply))

    async def schema(self, table: str, fresh: bool = False) -> Schema:
        """The types that a table declares, as last asked for."""
        name = table.partition("@")[0]
        if fresh or name not in self._schemas:
            self._schemas[name] = await self.run(Request(("TABLE", "SHOW", name), Schema))
        return self._schemas[name]

    def table(self, name: str) -> Table:
        """A table by its name; `web@backup` as a snapshot has it. Nothing is sent."""
        return Table(self, name, self.run)

    async def create_table(self, name: str, families: "Mapping[str, str] | Iterable[str]",
                           *, key: "str | None" = None) -> Table:
        """`create_table("m", {"v": "TYPE f64 TTL 30d", "info": ""}, key="dev=utf8#-at=u64")`"""
        await self.run(requests.create_table(name, families, key))
        # At once, since a connection of its own may not see the table yet where a follower answers reads.
        await self.schema(name, fresh=True)
        return self.table(name)

    async def tables(self) -> "list[str]":
        """Names of the tables of this keyspace."""
        return await self.run(Request(("TABLE", "LIST"), lambda reply: [text(name) for name in reply]))

    def feed(self, name: str) -> Feed:
        """A feed by its name. Nothing is sent."""
        return Feed(self, name)

    async def create_feed(self, name: str, tables: Sequence[str] = (), *, prefix: "Word | None" = None,
                          old: bool = False, expired: bool = False, keep: "str | None" = None,
                          slice: "tuple[int, int] | None" = None) -> Feed:
        """The changes of `tables` (`web`, `web:anchor`; none: all) from now on; `slice=(1, 4)`: of a quarter of the rows."""
        words: list[Any] = ["FEED", "CREATE", name, "ON", len(tables), *tables]
        words += ["PREFIX", word_of(prefix)] if prefix is not None else []
        words += ["SLICE", *slice] if slice else []
        words += ["OLD"] * old + ["EXPIRED"] * expired + (["KEEP", keep] if keep else [])
        await self.command(*words)
        return self.feed(name)

    def snapshot(self, name: str) -> Snapshot:
        """A named snapshot. Nothing is sent."""
        return Snapshot(self, name)

    def transaction(self, *, atomic: bool = True) -> Transaction:
        """Commands of one step: see Transaction."""
        return Transaction(self, atomic)


class Table:
    """The commands of one table. Rows are dicts from `family:qualifier` to value."""

    def __init__(self, cellar: Cellar, name: str, run: Run) -> None:
        self._cellar = cellar
        self._run = run
        self.name = name

    def at(self, snapshot: str) -> Table:
        """The table as a named snapshot has it."""
        return Table(self._cellar, f"{self.name}@{snapshot}", self._run)

    async def _write(self, make: "Callable[[Schema], Request[T]]") -> T:
        """Sends what was made by the schema; made anew, once, if a type has changed meanwhile."""
        try:
            return await self._run(make(await self._cellar.schema(self.name)))
        except (WrongType, NoTable):
            known = self._cellar._schemas[self.name].types if self.name in self._cellar._schemas else None
            schema = await self._cellar.schema(self.name, fresh=True)
            if schema.types == known:
                raise
            return await self._run(make(schema))

    async def put(self, row: Word, cells: "Mapping[str, Item]", *, when: Any = None, nx: bool = False,
                  xx: bool = False) -> bool:
        """Writes cells, all or none; False if `when` (conditions), `nx` or `xx` did not hold."""
        mode = "NX" if nx else "XX" if xx else None
        return await self._write(lambda schema: requests.put(schema, self.name, row, cells, when, mode, done))

    async def append_row(self, cells: "Mapping[str, Item]") -> str:
        """A new row of a table with KEY recno; its number."""
        return await self._write(lambda schema: requests.put(schema, self.name, "*", cells, None, None, text))

    async def get(self, row: Word, column: str, *, at: "int | str | None" = None) -> Any:
        """The newest value, or that of a time; None: there is none."""
        options: CellOptions = {"columns": [column]}
        if at is not None:
            options["time"] = ("-inf", at)
        return await self._run(requests.row(
            self.name, row, options, lambda cells: next(iter(cells.values()))[0].value if cells else None))

    async def row(self, row: Word, **options: Unpack[CellOptions]) -> Row:
        """The newest value of each column; empty: no such row."""
        return await self._run(requests.row(self.name, row, options, requests.newest))

    async def cells(self, row: Word, **options: Unpack[CellOptions]) -> Cells:
        """Versions with time, type, expiry: `cells("r", versions="ALL")`."""
        return await self._run(requests.row(self.name, row, options, lambda cells: cells))

    async def rows(self, keys: Iterable[Word], **options: Unpack[CellOptions]) -> "list[Row]":
        """Several rows by name, as at one moment."""
        return await self._run(requests.rows(self.name, keys, options))

    async def exists(self, row: Word, column: "str | None" = None) -> bool:
        words = ("CEXISTS", self.name, word_of(row), *([column] if column else []))
        return await self._run(Request(words, lambda reply: bool(reply == 1)))

    async def _pages(self, keys_only: bool, limit: "int | None", page: int, options: ScanOptions) -> AsyncIterator[Any]:
        cursor, left = b"0", limit
        while left is None or left > 0:
            asked = page if left is None else min(page, left)
            cursor, found = await self._run(requests.page(self.name, cursor, asked, keys_only, options))
            for each in found:
                yield each
            left = None if left is None else left - len(found)
            if cursor == b"0":
                return

    async def scan(self, *, limit: "int | None" = None, page: int = 100,
                   **options: Unpack[ScanOptions]) -> AsyncIterator["tuple[str, Row]"]:
        """Row keys and rows, in order; `limit` rows at most, `page` rows a command."""
        async for key, cells in self._pages(False, limit, page, options):
            yield key, requests.newest(cells)

    async def scan_cells(self, *, limit: "int | None" = None, page: int = 100,
                         **options: Unpack[ScanOptions]) -> AsyncIterator["tuple[str, Cells]"]:
        """As scan, with versions, times and types."""
        async for key, cells in self._pages(False, limit, page, options):
            yield key, cells

    async def keys(self, *, limit: "int | None" = None, page: int = 1000,
                   **options: Unpack[ScanOptions]) -> AsyncIterator[str]:
        """Row keys alone."""
        async for key in self._pages(True, limit, page, options):
            yield key

    async def page(self, cursor: "str | bytes" = "0", *, count: int = 100,
                   **options: Unpack[ScanOptions]) -> "tuple[str, list[tuple[str, Row]]]":
        """One page, and the cursor of the next one ("0": that was all), for a link in a web page."""
        begin = word_of(cursor)
        after, found = await self._run(requests.page(self.name, begin, count, False, options))
        return text(after), [(key, requests.newest(cells)) for key, cells in found]

    async def count(self, of: str = "ROWS", **options: Unpack[RowOptions]) -> int:
        """ROWS, GROUPS, COLUMNS or CELLS that a scan would return."""
        return await self._run(requests.count(self.name, of, options))

    async def aggregate(self, reduce: "Mapping[str, str | Sequence[Any]]",
                        by: "Mapping[str, str | Sequence[Any]]" = {}, *, sort: "str | None" = None,
                        limit: "tuple[int, int] | None" = None, **options: Unpack[RowOptions]) -> "list[Row]":
        """Groups as dicts: `aggregate({"n": "COUNT pos"}, by={"plane": "KEY 1"}, sort="n DESC")`"""
        more = [*(["SORT", *sort.split()] if sort else []), *(["LIMIT", *limit] if limit else [])]
        return await self._write(
            lambda schema: requests.aggregate(schema, self.name, reduce, by, more, options))

    async def aggregate_columns(self, reduce: "Mapping[str, str | Sequence[Any]]",
                                by: "Mapping[str, str | Sequence[Any]]" = {}, *, sort: "str | None" = None,
                                limit: "tuple[int, int] | None" = None,
                                **options: Unpack[RowOptions]) -> "dict[str, list[Any]]":
        """The same as columns, which pandas.DataFrame takes."""
        groups = await self.aggregate(reduce, by, sort=sort, limit=limit, **options)
        return {name: [group[name] for group in groups] for name in (*by, *reduce)}

    async def mutate(self, row: Word, steps: Iterable[Step], *, when: Any = None,
                     otherwise: "Iterable[Step] | None" = None) -> "tuple[bool, list[Any]]":
        """Steps of one row, atomically: `mutate("r", [("PUT", "f:a", 1), ("DEL", "g")], when=...)`. Whether the
        conditions held, and a result for each step taken."""
        taken, other = list(steps), None if otherwise is None else list(otherwise)
        return await self._write(
            lambda schema: requests.mutate(schema, self.name, row, taken, when, other))

    async def update(self, steps: Iterable[Step], *, update_limit: "int | None" = None,
                     **selection: Unpack[ScanOptions]) -> int:
        """The steps in each row of a selection (none: all rows); how many were changed."""
        taken = list(steps)
        return await self._write(
            lambda schema: requests.update(schema, self.name, taken, update_limit, selection))

    async def add(self, row: Word, inputs: "Mapping[str, Value]", *, ts: "int | str | None" = None,
                  when: Any = None) -> bool:
        """Folds inputs into cells of aggregate families."""
        return await self._run(requests.fold(self.name, row, inputs, ts, when))

    async def increment(self, row: Word, column: str, by: int = 1) -> int:
        return await self._run(Request(("CINCRBY", self.name, word_of(row), column, by), int))

    async def delete(self, row: Word, columns: "str | Iterable[str] | None" = None, *, when: Any = None,
                     **options: Unpack[DeleteOptions]) -> "int | None":
        """A row, or some of its columns and families; how many cells. None: `when` did not hold."""
        return await self._run(requests.delete(self.name, row, columns, when, options))

    async def delete_range(self, *, prefix: "Word | None" = None, range: "tuple[Word, Word] | None" = None,
                           all: bool = False) -> int:
        """Rows; how many there were."""
        return await self._run(requests.delete_range(self.name, prefix, range, all))

    async def create_index(self, name: str, on: "str | Iterable[str]", *, include: "str | Iterable[str]" = (),
                           unique: bool = False) -> None:
        """`create_index("mail", "p:mail", unique=True)`, `on=["-stat:people AS u32"]`"""
        await self._run(requests.create_index(self.name, name, on, include, unique))

    async def drop_index(self, name: str) -> None:
        await self._run(Request(("INDEX", "DROP", self.name, name), lambda reply: None))

    async def info(self) -> "dict[str, Any]":
        return await self._run(requests.info("TABLE", "INFO", self.name))

    async def drop(self) -> None:
        await self._run(Request(("TABLE", "DROP", self.name), lambda reply: None))
        self._cellar._schemas.pop(self.name, None)


class Transaction:
    """MULTI ... EXEC. What is called on its tables is sent when the block ends, and done in one step;
    each call's result is in `results` then. `atomic`: one refused command undoes all and is raised.

        async with db.transaction() as tx:
            await tx.table("a").put("r", {"f:a": 1})
            await tx.table("b").increment("r", "f:n")
        print(tx.results)
    """

    def __init__(self, cellar: Cellar, atomic: bool) -> None:
        self._cellar = cellar
        self._atomic = atomic
        self._queue: list[Request[Any]] = []
        self.results: list[Any] = []

    async def _take(self, request: Request[Any]) -> Any:
        self._queue.append(request)

    def table(self, name: str) -> Table:
        """A table whose calls are queued, and return None."""
        return Table(self._cellar, name, self._take)

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(self, kind: Any, *_: Any) -> None:
        if kind is None and self._queue:
            await self._send()

    async def _send(self) -> None:
        begin: list[Any] = ["MULTI", "ATOMIC"] if self._atomic else ["MULTI"]
        replies = await self._cellar._nodes.perform(
            [begin, *(request.words for request in self._queue), ["EXEC"]], is_read=False)
        refused = [each for each in replies if isinstance(each, CellarError)]
        if refused:
            raise refused[0]
        self.results = [from_redis(reply) if isinstance(reply, ResponseError) else request.decode(reply)
                        for request, reply in zip(self._queue, replies[-1])]
        failed = [each for each in self.results if isinstance(each, CellarError)]
        if failed and self._atomic:
            raise failed[0]


class Feed:
    """A stream of changes: cellar-feeds(7)."""

    def __init__(self, cellar: Cellar, name: str) -> None:
        self._cellar = cellar
        self.name = name

    async def read(self, after: str = "0", *, count: int = 1000, block_ms: "int | None" = None) -> "list[Entry]":
        """Entries behind an id; `block_ms`: waits for one, 0 for ever."""
        words: list[Any] = ["XREAD", "COUNT", count, *(["BLOCK", block_ms] if block_ms is not None else [])]
        return await self._cellar.run(Request((*words, "STREAMS", self.name, after), requests.streams))

    async def entries(self, after: str = "0", *, follow: bool = False) -> AsyncIterator[Entry]:
        """Entries behind an id up to the end; `follow`: then those that come, for ever."""
        while True:
            found = await self.read(after, block_ms=1000 if follow else None)
            for each in found:
                yield each
                after = each.id
            if not found and not follow:
                return

    async def create_group(self, name: str, after: str = "0") -> Group:
        """A group of consumers that begins behind an id ("$": the end)."""
        await self._cellar.command("XGROUP", "CREATE", self.name, name, after)
        return self.group(name)

    def group(self, name: str) -> Group:
        return Group(self._cellar, self.name, name)

    async def info(self) -> "dict[str, Any]":
        return await self._cellar.run(requests.info("FEED", "INFO", self.name))

    async def drop(self) -> None:
        await self._cellar.command("FEED", "DROP", self.name)


class Group:
    """Consumers that share a feed's entries."""

    def __init__(self, cellar: Cellar, feed: str, name: str) -> None:
        self._cellar = cellar
        self.feed = feed
        self.name = name

    async def read(self, consumer: str, *, count: int = 100, block_ms: "int | None" = None,
                   pending: bool = False, claim_ms: "int | None" = None) -> "list[Entry]":
        """New entries for this consumer; `pending`: those that it has read and not acknowledged; `claim_ms`: before
        the new ones those that any consumer has left unacknowledged for so long."""
        words: list[Any] = ["XREADGROUP", "GROUP", self.name, consumer, "COUNT", count]
        words += ["BLOCK", block_ms] if block_ms is not None else []
        words += ["CLAIM", claim_ms] if claim_ms is not None and not pending else []
        return await self._cellar.run(Request((*words, "STREAMS", self.feed, "0" if pending else ">"), requests.streams))

    async def entries(self, consumer: str, *, follow: bool = False,
                      claim_ms: "int | None" = None) -> AsyncIterator[Entry]:
        """What this consumer left, then what others did (`claim_ms`) and new entries; each is acknowledged when the
        next one is asked for."""
        pending = True
        while True:
            found = await self.read(consumer, pending=pending, block_ms=1000 if follow and not pending else None,
                                    claim_ms=claim_ms)
            for each in found:
                yield each
                await self.ack(each)
            if not found and not pending and not follow:
                return
            pending = pending and bool(found)

    async def ack(self, *entries: "Entry | str") -> int:
        """They have been dealt with."""
        ids = [each.id if isinstance(each, Entry) else each for each in entries]
        return int(await self._cellar.command("XACK", self.feed, self.name, *ids))


class Snapshot:
    """A named moment of a keyspace: read by `db.table("web").at("name")`."""

    def __init__(self, cellar: Cellar, name: str) -> None:
        self._cellar = cellar
        self.name = name

    async def create(self, *words: Any) -> None:
        """`words`: the options of SNAPSHOT CREATE."""
        await self._cellar.command("SNAPSHOT", "CREATE", self.name, *words)

    async def info(self) -> "dict[str, Any]":
        return await self._cellar.run(requests.info("SNAPSHOT", "INFO", self.name))

    async def drop(self) -> None:
        await self._cellar.command("SNAPSHOT", "DROP", self.name)
