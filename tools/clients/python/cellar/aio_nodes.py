"""Which node is asked, and what is sent again. nodes.py is the same without `await`: sync.py makes it.

Of one node only what it says itself is followed: REDIRECT, and READONLY with the leader's address. Of several
(`redis://a:6479,b:6479`) the one that leads is asked, found by ROLE; so all reads see all writes of this client,
whoever leads. What has surely not been done is tried again for `wait` seconds: CLUSTERDOWN, TRYAGAIN, a node that
cannot be reached. Behind a lost connection a read is, too; a write may have been done, and is not.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Sequence
from urllib.parse import urlsplit

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (AuthenticationError, BusyLoadingError, ConnectionError, ResponseError, TimeoutError)

from .errors import CellarError, ClusterDown, TryAgain, from_redis, is_surely_not_done, leader_named
from .values import text

PAUSE_SECONDS_MAX = 0.2
Commands = Sequence[Sequence[Any]]


async def introduce(connection: Any) -> None:
    """A new connection: redis-py's own words, then that this client goes to the leader by itself."""
    await connection.on_connect()
    await connection.send_command("CLIENT", "CAPA", "redirect")
    try:
        await connection.read_response()
    except ResponseError:
        pass  # it may not, or the server is no Cellar that knows it


class Unreached(Exception):
    """No connection, so nothing was sent; the cause says why."""


class Nodes:
    """The nodes of a URL, and connections to the one that is asked now."""

    def __init__(self, url: str, wait: float, options: "dict[str, Any]") -> None:
        self._url = urlsplit(url)
        self._user, _, hosts = self._url.netloc.rpartition("@")
        self._nodes = hosts.split(",")
        self._at = 0  # of _nodes
        self._is_listed = True  # what is asked is _nodes[_at], and not what another node has named
        self._leads = self._is_one
        # Without `retry` redis-py 6 and newer sends once more what was sent, behind a lost connection.
        self._options: dict[str, Any] = {"redis_connect_func": introduce, "retry": Retry(NoBackoff(), 0),
                                         **({} if self._is_one else {"socket_connect_timeout": 1.0}), **options,
                                         "decode_responses": False}
        self._wait = wait
        self.redis = self._open(self._nodes[0])

    @property
    def _is_one(self) -> bool:
        return len(self._nodes) == 1  # nobody to choose from

    def _open(self, node: str) -> Any:
        url = self._url
        if node:
            if url.scheme == "unix":
                url = url._replace(scheme="redis", path="")
            url = url._replace(netloc=f"{self._user}@{node}" if self._user else node)
        client: Any = redis.Redis.from_url(url.geturl(), **self._options)
        client.response_callbacks.clear()  # replies as they come: the decoding is Request's
        return client

    async def close(self) -> None:
        await self.redis.connection_pool.disconnect()

    async def _turn_from(self, client: Any, leader: "str | None") -> None:
        """It was of no use: from now on the one that it named is asked, or the next one, unless another call has
        seen to that."""
        if self.redis is not client or (leader is None and self._is_one and self._is_listed):
            return
        if leader is None:
            self._at = (self._at + 1) % len(self._nodes)
        self._is_listed, self._leads = leader is None, self._is_one
        self.redis = self._open(leader or self._nodes[self._at])
        await client.connection_pool.disconnect(inuse_connections=False)

    async def _exchange(self, client: Any, commands: Commands) -> "list[Any]":
        """Sends commands together; their replies, errors among them."""
        pool = client.connection_pool
        try:
            try:
                connection = await pool.get_connection()
            except TypeError:  # redis-py 4 wants a name
                connection = await pool.get_connection("_")
        except AuthenticationError:
            raise
        except (ConnectionError, TimeoutError) as error:
            raise Unreached(str(error)) from error
        except ResponseError as error:
            raise from_redis(error) from None
        replies: list[Any] = []
        try:
            await connection.send_packed_command(connection.pack_commands(commands))
            for _ in commands:
                try:
                    replies.append(await connection.read_response())
                except (ResponseError, BusyLoadingError) as error:
                    replies.append(from_redis(error))
        except BaseException:
            await connection.disconnect()  # replies may be on their way
            raise
        finally:
            await pool.release(connection)
        return replies

    async def _find_leader(self, client: Any) -> None:
        """ClusterDown, unless that node leads; it says who does, if the node knows."""
        try:
            [role] = await self._exchange(client, [("ROLE",)])
        except AuthenticationError:
            raise
        except (ConnectionError, TimeoutError) as error:
            raise Unreached(str(error)) from error
        if isinstance(role, CellarError):  # who may not ask takes what there is
            if is_surely_not_done(role):
                raise role
        elif role[0] == b"slave":
            raise ClusterDown("CLUSTERDOWN", f"the leader is {text(role[1])}:{int(role[2])}" if role[1] else "no leader")
        self._leads = True

    async def perform(self, commands: Commands, *, is_read: bool) -> "list[Any]":
        """Sends commands together; their replies, errors among them. Again, while the last one is surely not done:
        of several it must be what does them."""
        deadline, pause = time.monotonic() + self._wait, 0.01
        while True:
            client = self.redis
            try:
                if not self._leads:
                    await self._find_leader(client)
                replies = await self._exchange(client, commands)
                told: BaseException = next((each for each in replies if isinstance(each, CellarError)), Unreached())
                if not isinstance(replies[-1], CellarError) or not is_surely_not_done(told):
                    return replies
            except AuthenticationError:
                raise
            except CellarError as error:
                if not is_surely_not_done(error):
                    raise
                told = error
            except Unreached as error:
                told = error.__cause__ or error
            except (ConnectionError, TimeoutError) as error:
                await self._turn_from(client, None)
                if not is_read:
                    raise
                told = error
            if time.monotonic() > deadline:
                raise told
            if not isinstance(told, TryAgain):  # that is the right node, only too early
                await self._turn_from(client, leader_named(told))
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
