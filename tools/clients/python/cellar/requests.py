"""Commands as data: words to send, and what makes a Python value of the reply. No connection here,
so that the two clients, `cellar` and `cellar.aio`, say everything once.
"""

from __future__ import annotations

import shlex
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Generic, Iterable, Mapping, Sequence, TypedDict, TypeVar, Union

from .values import Cell, Put, Typed, Value, Word, listed, pairs, text, type_of, value_of, word_of

T = TypeVar("T")
Condition = Union[str, Sequence[Any]]  # ("f:a", "GT", 5), ("ROW", "EXISTS"), ("FILTER", "..."), "f:a EXISTS"
Step = Sequence[Any]  # ("PUT", "f:a", 1), ("INCR", "f:n", 1), ("DEL", "f"), ("DELROW",) ...
Row = dict[str, Any]  # column -> newest value
Cells = dict[str, list[Cell]]  # column -> versions, newest first
Item = Union[Value, Typed, Put]


_READS = frozenset(("CAGG", "CCOUNT", "CEXISTS", "CEXPLAIN", "CGET", "CMGET", "CNEAR", "CROW", "CROWS", "CSCAN", "INFO",
                    "XRANGE", "XREAD", "XREVRANGE"))


@dataclass(frozen=True)
class Request(Generic[T]):
    words: "tuple[Any, ...]"
    decode: "Callable[[Any], T]"

    def is_read(self) -> bool:
        """Whether it does no harm twice."""
        return self.words[0] in _READS or (len(self.words) > 1 and self.words[1] in ("SHOW", "LIST", "INFO"))


class CellOptions(TypedDict, total=False):
    """Which cells of a row (cellar-query(7), CELL OPTIONS)."""

    columns: "str | Iterable[str]"
    column_prefix: "tuple[str, Word]"
    column_range: "tuple[str, Word, Word]"
    time: "tuple[int | str, int | str]"
    versions: "int | str"
    per_row: int
    skip: int
    groups: int
    column_reverse: bool
    filter: str


class DeleteOptions(TypedDict, total=False):
    """Which cells CDEL deletes, beside columns and families by name."""

    column_prefix: "tuple[str, Word]"
    column_range: "tuple[str, Word, Word]"
    time: "tuple[int | str, int | str]"


class RowOptions(CellOptions, total=False):
    """Which rows (cellar-query(7), ROW OPTIONS). Bounds are written [a and (a."""

    prefix: "Word | Iterable[Word]"
    range: "tuple[Word, Word]"
    rows: "Iterable[Word]"
    where: "Condition | Iterable[Condition]"
    index: str
    eq: "Sequence[Value]"
    between: "tuple[Word, Word]"
    from_values: "Sequence[Value]"
    reverse: bool
    each: "tuple[int, int]"
    sample: float
    no_index: bool


class ScanOptions(RowOptions, total=False):
    """Which rows of a scan, and whether all its pages show one moment."""

    snapshot: bool


def condition(of: Condition) -> "list[Any]":
    if isinstance(of, str):
        return shlex.split(of)
    return [of[0], *(word_of(word) for word in of[1:])]


def conditions(word: str, given: Any) -> "list[Any]":
    """One condition, or a list of them, each behind WHERE or IF."""
    if given is None:
        return []
    one = isinstance(given, str) or (isinstance(given, tuple) and given and isinstance(given[0], str)
                                     and (given[0] in ("ROW", "FILTER") or ":" in given[0]))
    return [each for of in ([given] if one else given) for each in (word, *condition(of))]


_FLAGS = {"reverse": "REVERSE", "snapshot": "SNAPSHOT", "no_index": "NOINDEX", "column_reverse": "COLREVERSE"}
_WORDS = {"column_prefix": "COLPREFIX", "column_range": "COLRANGE", "time": "TIME", "range": "RANGE",
          "between": "BETWEEN", "each": "EACH", "versions": "VERSIONS", "per_row": "PERROW", "skip": "SKIP",
          "groups": "GROUPS", "filter": "FILTER", "index": "INDEX", "sample": "SAMPLE"}
_COUNTED = {"rows": "ROWS", "columns": "COLUMNS", "eq": "EQ", "from_values": "FROM"}


def options(given: Mapping[str, Any]) -> "list[Any]":
    """Keyword arguments as the options of a read. TypeError for one that there is not."""
    words: list[Any] = []
    order = ["index", *(name for name in given if name != "index")]  # EQ, BETWEEN, FROM follow INDEX
    for name in order:
        value = given.get(name)
        if value is None or value is False:
            continue
        if name in _FLAGS:
            words.append(_FLAGS[name])
        elif name in _COUNTED:
            several = listed(value)
            words += [_COUNTED[name], len(several), *map(word_of, several)]
        elif name == "prefix":
            several = listed(value) if not isinstance(value, (int, float)) else [value]
            if not several:
                raise ValueError("no prefix: leave it out to mean all rows")
            for each in several:
                words += ["PREFIX", word_of(each)]
        elif name == "where":
            words += conditions("WHERE", value)
        elif name in _WORDS:
            words += [_WORDS[name], *map(word_of, value if isinstance(value, tuple) else (value,))]
        else:
            raise TypeError(f"a read has no option {name!r}")
    return words


class Schema:
    """The types that a table declares, from TABLE SHOW: with them a value is written as its cell wants it."""

    def __init__(self, lines: Iterable[Any]) -> None:
        self.types: dict[str, str | None] = {}  # of families and columns; None: the writer's choice
        family = ""
        for line in lines:
            words = shlex.split(text(line))
            if words[:2] not in (["TABLE", "CREATE"], ["FAMILY", "ADD"]):
                continue
            at = 3
            if words[0] == "FAMILY":
                family, at = words[3], 4
                self.types[family] = None
            while at < len(words):
                if words[at] == "FAMILY":
                    family = words[at + 1]
                    self.types[family] = None
                elif words[at] in ("TYPE", "AGGREGATE"):
                    self.types[family] = words[at + 1]
                elif words[at] == "COLUMN":
                    self.types[f"{family}:{words[at + 1]}"] = words[at + 2]
                    at += 1
                at += 2

    def declared(self, column: str) -> "str | None":
        """The type, or the AGGREGATE, that the column's cells have in any case."""
        return self.types.get(column) or self.types.get(column.partition(":")[0])


def put_words(schema: Schema, column: str, item: Item) -> "list[Any]":
    """column value [AS type] [TS ts] [TTL ttl | EXPIREAT at]"""
    put = item if isinstance(item, Put) else Put(item)
    typed = put.value
    name = typed.type if isinstance(typed, Typed) else None
    value = typed.value if isinstance(typed, Typed) else typed
    if name is None and schema.declared(column) is None:
        name = type_of(value)
    words: list[Any] = [column, word_of(value)]
    for word, given in (("AS", name), ("TS", put.ts), ("TTL", put.ttl), ("EXPIREAT", put.expire_at)):
        words += [] if given is None else [word, given]
    return words


def put(schema: Schema, table: str, row: Word, cells: Mapping[str, Item], when: Any, mode: "str | None",
        decode: "Callable[[Any], T]") -> Request[T]:
    words = ["CPUT", table, word_of(row), *([mode] if mode else []), *conditions("IF", when)]
    for column, item in cells.items():
        words += put_words(schema, column, item)
    return Request(tuple(words), decode)


def step_words(schema: Schema, step: Step) -> "list[Any]":
    if str(step[0]).upper() == "PUT":
        return ["PUT", *put_words(schema, step[1], step[2])]
    return [step[0], *(word_of(word) for word in step[1:])]


def mutate(schema: Schema, table: str, row: Word, steps: Iterable[Step], when: Any,
           otherwise: "Iterable[Step] | None") -> "Request[tuple[bool, list[Any]]]":
    words = ["CMUTATE", table, word_of(row), *conditions("IF", when)]
    for step in steps:
        words += step_words(schema, step)
    if otherwise is not None:
        words.append("ELSE")
        for step in otherwise:
            words += step_words(schema, step)
    return Request(tuple(words), lambda reply: (reply[0] == 1, list(reply[1:])))


def update(schema: Schema, table: str, steps: Iterable[Step], limit: "int | None",
           selection: ScanOptions) -> Request[int]:
    rows = options(selection)
    if not rows or rows[0] == "WHERE":
        rows.insert(0, "ALL")
    words = ["CUPDATE", table, *rows, *(["LIMIT", limit] if limit else [])]
    for step in steps:
        words += step_words(schema, step)
    return Request(tuple(words), int)


def fold(table: str, row: Word, inputs: Mapping[str, Value], ts: "int | str | None", when: Any) -> Request[bool]:
    words = ["CADD", table, word_of(row), *conditions("IF", when)]
    for column, value in inputs.items():
        words += [column, word_of(value), *([] if ts is None else ["TS", ts])]
    return Request(tuple(words), lambda reply: reply is not None)


def delete(table: str, row: Word, columns: "Iterable[str] | None", when: Any,
           more: Mapping[str, Any]) -> "Request[int | None]":
    cells = [*listed(columns), *options(more)]
    if columns is not None and not cells:
        raise ValueError("no column: leave them out to delete the row")
    words = ["CDEL", table, word_of(row), *conditions("IF", when), *cells]
    return Request(tuple(words), lambda reply: None if reply is None else int(reply))


def delete_range(table: str, prefix: "Word | None", bounds: "tuple[Word, Word] | None", all_rows: bool) -> Request[int]:
    if (prefix is not None) + (bounds is not None) + all_rows != 1:
        raise TypeError("one of prefix, range and all")
    rows = (["PREFIX", word_of(prefix)] if prefix is not None else
            ["RANGE", *map(word_of, bounds)] if bounds is not None else ["ALL"])
    return Request(("CDELRANGE", table, *rows), int)


def cells_of(reply: Any) -> Cells:
    """A row's map under WITHTYPE WITHTTL WITHLABELS."""
    return {text(column): [Cell(value_of(cell[1], text(cell[2])), int(cell[0]), text(cell[2]), cell[3],
                                [text(label) for label in cell[4]]) for cell in versions]
            for column, versions in pairs(reply)}


def newest(cells: Cells) -> Row:
    return {column: versions[0].value for column, versions in cells.items()}


_SHOWN = ("WITHTYPE", "WITHTTL", "WITHLABELS")


def row(table: str, key: Word, given: CellOptions, decode: "Callable[[Cells], T]") -> Request[T]:
    return Request(("CROW", table, word_of(key), *options(given), *_SHOWN), lambda reply: decode(cells_of(reply)))


def rows(table: str, keys: Iterable[Word], given: CellOptions) -> "Request[list[Row]]":
    named = [word_of(key) for key in keys]
    return Request(("CROWS", table, len(named), *named, *options(given), *_SHOWN),
                   lambda reply: [newest(cells_of(each)) for each in reply])


def page(table: str, cursor: bytes, count: int, keys_only: bool, given: ScanOptions) -> "Request[tuple[bytes, list[Any]]]":
    words = ("CSCAN", table, cursor, "COUNT", count, *options(given), *(("KEYSONLY",) if keys_only else _SHOWN))

    def decode(reply: Any) -> "tuple[bytes, list[Any]]":
        if keys_only:
            return reply[0], [text(key) for key in reply[1]]
        return reply[0], [(text(key), cells_of(cells)) for key, cells in reply[1]]
    return Request(words, decode)


def count(table: str, of: str, given: RowOptions) -> Request[int]:
    return Request(("CCOUNT", table, *options(given), "BY", of), int)


_NUMBERS = {"SUM", "AVG", "STDDEV", "VARIANCE", "DELTA", "RATE", "QUANTILE"}


def aggregate(schema: Schema, table: str, reduce: "Mapping[str, str | Sequence[Any]]",
              by: "Mapping[str, str | Sequence[Any]]", more: Iterable[Any], given: RowOptions) -> "Request[list[Row]]":
    """`reduce={"n": "COUNT pos", "q": ("QUANTILE", "pos", 2, 0.5, 0.99)}`, `by={"plane": "KEY 1"}`"""
    words: list[Any] = ["CAGG", table, *options(given)]
    kinds: dict[str, list[Any]] = {}
    for name, term in by.items():
        words += ["BY", *(shlex.split(term) if isinstance(term, str) else map(word_of, term))]
    for name, of in reduce.items():
        kinds[name] = shlex.split(of) if isinstance(of, str) else [text(word_of(word)) for word in of]
        words += ["REDUCE", *kinds[name], "AS", name]

    def result(name: str, raw: Any) -> Any:
        function, target = kinds[name][0].upper(), kinds[name][1]
        if isinstance(raw, (list, tuple)):
            return [result(name, each) for each in raw]
        if not isinstance(raw, bytes):
            return raw
        if function in _NUMBERS:
            return float(raw) if not raw.lstrip(b"-").isdigit() or function != "SUM" else int(raw)
        declared = schema.declared(target)
        known = declared is not None and declared not in ("sum", "min", "max", "hll")
        return value_of(raw, declared) if known and declared is not None else raw

    def decode(reply: Any) -> "list[Row]":
        return [{**{name: text(term) if isinstance(term, bytes) else term for name, term in zip(by, terms)},
                 **{text(name): result(text(name), value) for name, value in pairs(results)}}
                for terms, results in reply]
    return Request((*words, *more), decode)


def create_table(name: str, families: "Mapping[str, str] | Iterable[str]", key: "str | None") -> Request[None]:
    words: list[Any] = ["TABLE", "CREATE", name, *(["KEY", key] if key else [])]
    for family in families:
        said = families[family] if isinstance(families, Mapping) else ""
        words += ["FAMILY", family, *shlex.split(said)]
    return Request(tuple(words), lambda reply: None)


def create_index(table: str, name: str, on: "str | Iterable[str]", include: "str | Iterable[str]",
                 unique: bool) -> Request[None]:
    """`on=["-stat:people AS u32", "info:name"]`"""
    columns, held = listed(on), listed(include)
    words: list[Any] = ["INDEX", "CREATE", table, name, "ON", len(columns)]
    for column in columns:
        words += shlex.split(column)
    words += ["INCLUDE", len(held), *held] if held else []
    return Request((*words, *(["UNIQUE"] if unique else [])), lambda reply: None)


def info(*words: Any) -> "Request[dict[str, Any]]":
    """A command that answers a map of names."""
    def plain(value: Any) -> Any:
        return text(value) if isinstance(value, bytes) else [plain(v) for v in value] if isinstance(value, list) else value
    return Request(words, lambda reply: {text(name): plain(value) for name, value in pairs(reply)})


@dataclass(frozen=True)
class Entry:
    """What a feed tells: cellar-feeds(7), ENTRIES. `fields` has all of it, as bytes."""

    id: str
    op: str
    table: str
    row: "str | None"
    column: "str | None"
    ts: "int | None"
    value: Any
    old: Any
    fields: "dict[str, bytes]"


def entry(raw: Any) -> Entry:
    fields = {text(name): value for name, value in pairs(raw[1] or [])}

    def said(name: str) -> "str | None":
        return text(fields[name]) if name in fields else None

    def typed(name: str, type_name: str) -> Any:
        return value_of(fields.get(name), text(fields.get(type_name, b"bytes")))
    ts = fields.get("ts")
    return Entry(text(raw[0]), said("op") or "", said("table") or "", said("row"), said("column"),
                 None if ts is None else int(ts), typed("value", "type"), typed("old", "oldtype"), fields)


def streams(reply: Any) -> "list[Entry]":
    """Entries of an XREAD or XREADGROUP of one feed; null: none came."""
    return [entry(each) for _, entries in (pairs(reply) if isinstance(reply, Mapping) else reply or []) for each in entries]


def record_id() -> str:
    """A time-ordered UUID (version 1) for keys and qualifiers of type timeuuid."""
    return str(uuid.uuid1())
