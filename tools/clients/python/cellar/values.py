"""Python's values as Cellar's cells, and back.

    Python     cell                      a cell of     comes back as
    bytes      bytes                     bytes         bytes
    str        bytes                     string        str
    int        i64, above 2^63-1 u64     i8 ... u64    int
    float      f64                       f32, f64      float
    bool       bool                      bool          bool
    UUID       uuid                      uuid          UUID

The left half holds where the family declares no TYPE; where it does, the value is written as that
type. So text comes back as str from a family with TYPE string. `Typed(7, "u16")` names a type.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, NamedTuple, Union

Value = Union[bytes, str, int, float, bool, uuid.UUID]
Word = Union[bytes, str, int, float]


class Typed(NamedTuple):
    """A value with the type that its cell shall have."""

    value: Value
    type: str


@dataclass(frozen=True)
class Put:
    """A value with what CPUT can say of it: `Put("x", ttl="7d")`, `Put(5, ts=1)`."""

    value: "Value | Typed"
    ts: "int | str | None" = None
    ttl: "str | int | None" = None
    expire_at: "int | str | None" = None


@dataclass(frozen=True)
class Cell:
    """One version of a column. `expires` is in microseconds of Unix time; None: never, by itself."""

    value: Value
    ts: int
    type: str
    expires: "int | None" = None
    labels: "list[str]" = field(default_factory=list)


def text(word: Any) -> str:
    """Text of the server; bytes that are no UTF-8 survive the way there and back."""
    return word.decode("utf-8", "surrogateescape") if isinstance(word, bytes) else str(word)


def word_of(value: "Word | uuid.UUID") -> bytes:
    """What is sent for a value, a row key, a bound."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return (repr(value) if isinstance(value, float) else str(value)).encode("utf-8", "surrogateescape")


def type_of(value: Value) -> "str | None":
    """The type of a Python value's cell; None: bytes, which needs no word."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "i64" if value < 2**63 else "u64"
    if isinstance(value, float):
        return "f64"
    return "uuid" if isinstance(value, uuid.UUID) else None


def value_of(raw: Any, type_name: str) -> Any:
    """The Python value of a cell as it came, in RESP2 or RESP3."""
    if raw is None or type_name == "bytes":
        return raw
    if type_name == "string":
        return text(raw)
    if type_name == "bool":
        return raw in (1, True, b"1", b"true")
    if type_name in ("f32", "f64"):
        return float(raw)
    if type_name == "uuid":
        return uuid.UUID(text(raw))
    return int(raw)


def pairs(reply: Any) -> "list[tuple[Any, Any]]":
    """A map of RESP3, or a flat array of RESP2."""
    if isinstance(reply, Mapping):
        return list(reply.items())
    return list(zip(reply[::2], reply[1::2]))


def listed(value: "str | bytes | Iterable[Any] | None") -> "list[Any]":
    """One word or several."""
    if value is None:
        return []
    return [value] if isinstance(value, (str, bytes)) else list(value)
