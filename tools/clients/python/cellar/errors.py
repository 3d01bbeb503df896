"""What a Cellar server answers instead of a reply: one class for each code.

    try:
        users.put("u3", {"p:mail": "ann@x.org"})
    except cellar.NotUnique as error:
        print(error)  # NOTUNIQUE row 'u1' has 'ann@x.org' already in index 'mail'

Codes without a class of their own are CellarError, whose `code` names them.
"""

from __future__ import annotations

import re

import redis.exceptions

__all__ = ["BadFilter", "BadKey", "BadValue", "BusyKey", "CellarError", "ClusterDown", "CrossSet", "NoFamily", "NoFeed",
           "NoIndex", "NoPermission", "NoTable", "NotUnique", "OutOfMemory", "ReadOnly", "Redirect", "StaleCursor",
           "TooLarge", "Trimmed", "TryAgain", "WrongType"]


class CellarError(Exception):
    """An error reply. `code` is its first word, `message` the rest."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code} {message}")
        self.code = code
        self.message = message


class BadFilter(CellarError):
    """A filter that cannot be read; the message says where."""


class BadKey(CellarError):
    """A row key or qualifier that breaks its order."""


class BadValue(CellarError):
    """A value that is none of its type."""


class BusyKey(CellarError):
    """A table, family, index, feed or snapshot of that name exists."""


class ClusterDown(CellarError):
    """No node can answer now; surely not done. Tried again for `wait` seconds before it is raised."""


class CrossSet(CellarError):
    """What must be one step lies on several sets; not done."""


class NoFamily(CellarError):
    """The table has no such family."""


class NoFeed(CellarError):
    """There is no such feed."""


class NoIndex(CellarError):
    """The table has no such index."""


class NoPermission(CellarError):
    """The user may not do that."""


class NoTable(CellarError):
    """There is no such table."""


class NotUnique(CellarError):
    """A UNIQUE index has the value already."""


class OutOfMemory(CellarError):
    """maxmemory is reached; not done."""


class ReadOnly(CellarError):
    """A follower, which takes no writes; not done."""


class Redirect(CellarError):
    """Another node is to be asked (CLIENT CAPA redirect)."""


class StaleCursor(CellarError):
    """The scan cannot go on: what its cursor stood for is gone."""


class TooLarge(CellarError):
    """Beyond a limit, which the message names."""


class Trimmed(CellarError):
    """The feed has dropped entries that were asked for."""


class TryAgain(CellarError):
    """Surely not done. Tried again for `wait` seconds before it is raised."""


class WrongType(CellarError):
    """The cell, or its family, holds another type."""


_BY_CODE: dict[str, type[CellarError]] = {
    "BADFILTER": BadFilter, "BADKEY": BadKey, "BADVALUE": BadValue, "BUSYKEY": BusyKey, "CLUSTERDOWN": ClusterDown,
    "CROSSSET": CrossSet, "NOFAMILY": NoFamily, "NOFEED": NoFeed, "NOINDEX": NoIndex, "NOPERM": NoPermission,
    "NOTABLE": NoTable, "NOTUNIQUE": NotUnique, "OOM": OutOfMemory, "READONLY": ReadOnly, "REDIRECT": Redirect,
    "STALECURSOR": StaleCursor, "TOOLARGE": TooLarge, "TRIMMED": Trimmed, "TRYAGAIN": TryAgain, "WRONGTYPE": WrongType}

# redis-py takes these codes off the message and raises a class of its own, each version its own list.
_TAKEN_OFF: tuple[tuple[str, str], ...] = (
    ("ReadOnlyError", "READONLY"), ("NoPermissionError", "NOPERM"), ("BusyLoadingError", "LOADING"),
    ("ExecAbortError", "EXECABORT"), ("OutOfMemoryError", "OOM"), ("MasterDownError", "MASTERDOWN"),  # a ClusterDownError
    ("ClusterDownError", "CLUSTERDOWN"), ("TryAgainError", "TRYAGAIN"), ("NoScriptError", "NOSCRIPT"))


def from_redis(error: redis.exceptions.RedisError) -> CellarError:
    """The error of a reply that redis-py has raised or put into a list."""
    text = str(error)
    code, _, message = text.partition(" ")
    for name, taken in _TAKEN_OFF:
        kind = getattr(redis.exceptions, name, None)
        if kind is not None and isinstance(error, kind) and code != taken:
            code, message = taken, text
            break
    else:
        if not code.isupper():  # redis-py takes ERR off, too
            code, message = "ERR", text
    inner, _, rest = message.partition(" ")
    if code == "EXECABORT" and inner in _BY_CODE:  # MULTI ATOMIC says which command was refused, and how
        code, message = inner, rest
    return _BY_CODE.get(code, CellarError)(code, message)


_NOT_DONE = ("CLUSTERDOWN", "TRYAGAIN", "LOADING", "MASTERDOWN", "REDIRECT")
_LEADER = re.compile(r"(?:leader|master) is (\S+:\d+)$")


def leader_named(error: BaseException) -> "str | None":
    """The address of the node that the error says to ask instead."""
    if isinstance(error, Redirect):
        return error.message
    found = _LEADER.search(error.message) if isinstance(error, CellarError) else None
    return found.group(1) if found else None


def is_surely_not_done(error: BaseException) -> bool:
    """Whether it may be done at another time, or by another node."""
    return isinstance(error, CellarError) and (error.code in _NOT_DONE or
                                               (isinstance(error, ReadOnly) and leader_named(error) is not None))
