"""Connections to one server: opened when they are needed, for each event loop its own.

A connection that the server has closed meanwhile is not handed out, and one whose network is gone
is given up after half a minute. While the server is away, each call that needs it tries to connect:
no long pause follows a long outage.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final, TypeAlias, cast

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from faena.errors import ArgumentError

Connection: TypeAlias = AsyncConnection[TupleRow]
SyncConnection: TypeAlias = psycopg.Connection[TupleRow]

APPLICATION: Final = "faena"
_CONNECT_S: Final = 10
_CANCEL_S: Final = 1.0
_WATCH: Final = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""A network that swallows everything is noticed in half a minute, not in hours."""


class PromptConnection(AsyncConnection[TupleRow]):
    """A connection whose calls end soon when they are cancelled, also if the server is frozen."""

    async def _try_cancel(self, *, timeout: float = _CANCEL_S) -> None:
        """Ask the server to end a statement. One that does not listen at once is given up: psycopg
        would wait for ten seconds, and a worker that stops has no more than twenty."""
        try:
            await self.cancel_safe(timeout=min(timeout, _CANCEL_S))
        except psycopg.Error:
            sever(self)


class ReadConnection(PromptConnection):
    """A connection that tells where it leads, and that is of no use after its block."""

    is_replica = False
    is_over = False
    """Whether its block has ended: it is the pool's, and soon another block's."""

    def cursor(self, *args: Any, **options: Any) -> Any:
        """As of psycopg; refused after the block."""
        if self.is_over:
            raise ArgumentError("a connection must be used inside of its block, got a call after")
        return super().cursor(*args, **options)


class ReplicaConnection(ReadConnection):
    """One to a replica."""

    is_replica = True


class PromptPool(AsyncConnectionPool[ReadConnection]):
    """A pool whose tasks end when they are cancelled, also while they connect.

    psycopg takes the cancellation for a failed try and goes on. A program that ends without closing
    its pool would wait for that task for ever.
    """

    @classmethod
    async def worker(cls, q: Any) -> None:
        """What connects and closes for the pool."""
        await super().worker(cast("Any", _UntilCancelled(q)))


class _UntilCancelled:
    """The work of a pool's task, until that is cancelled."""

    def __init__(self, queue: asyncio.Queue[Any]) -> None:
        self._queue = queue

    async def get(self) -> Any:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        return await self._queue.get()


class Pools:
    """The connections of this process to one server: one pool for each event loop."""

    def __init__(
        self,
        name: str,
        most: int,
        patience_s: float,
        kind: type[ReadConnection] = ReadConnection,
    ) -> None:
        self.most, self.patience_s = most, patience_s
        self._name, self._kind = name, kind
        self._pools: dict[asyncio.AbstractEventLoop, AsyncConnectionPool[ReadConnection]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no event loop has a pool."""
        return not self._pools

    async def here(self, url: str) -> AsyncConnectionPool[ReadConnection]:
        """The pool of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            self._pools[loop] = PromptPool(
                conninfo(url, connect_s=max(2, min(_CONNECT_S, round(self.patience_s)))),
                connection_class=self._kind,
                min_size=0,
                max_size=self.most,
                kwargs=stateless(),
                check=refuse_closed,
                reconnect_timeout=self.patience_s,
                open=False,
                name=self._name,
            )
            await self._pools[loop].open()
        return self._pools[loop]

    @asynccontextmanager
    async def lend(self, url: str, patience_s: float) -> AsyncGenerator[ReadConnection]:
        """A connection for one block, which commits at its end.

        A task that is cancelled while the pool hands it a connection gets both, and the pool
        forgets the cancellation: it is raised here, else whoever cancels waits for ever.
        """
        pool, task = await self.here(url), asyncio.current_task()
        known = task.cancelling() if task else 0
        async with pool.connection(patience_s) as connection:
            if task and task.cancelling() > known:
                raise asyncio.CancelledError
            connection.is_over = False
            try:
                yield connection
            finally:
                connection.is_over = True

    async def close(self) -> None:
        """Close those of this event loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()


class SyncPool:
    """The connections of this process to one server for threads without an event loop."""

    def __init__(self, name: str, most: int, patience_s: float) -> None:
        self._name, self._most, self._patience_s = name, most, patience_s
        self._pool: ConnectionPool[SyncConnection] | None = None
        self._making = threading.Lock()

    def open(self, url: str) -> ConnectionPool[SyncConnection]:
        """The pool, made by the first thread that needs it."""
        with self._making:
            if self._pool is None:
                self._pool = ConnectionPool(
                    conninfo(url),
                    connection_class=psycopg.Connection[TupleRow],
                    min_size=0,
                    max_size=self._most,
                    kwargs=stateless(),
                    check=_refuse_closed,
                    reconnect_timeout=self._patience_s,
                    open=True,
                    name=self._name,
                )
            return self._pool

    async def close(self) -> None:
        """Close it; connections in use are closed when they come back."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.close)


def stateless() -> dict[str, Any]:
    """PgBouncer hands a connection to another client after each transaction, so no statement may
    be prepared in it."""
    return {"prepare_threshold": None}


def conninfo(url: str, connect_s: int = _CONNECT_S) -> str:
    """The URL with what it does not say itself."""
    known = conninfo_to_dict(url)
    known.setdefault("application_name", APPLICATION)
    known.setdefault("connect_timeout", connect_s)
    for name, value in _WATCH.items():
        known.setdefault(name, value)
    return make_conninfo("", **known)


async def refuse_closed(connection: AsyncConnection[Any]) -> None:
    """Raise if the server has closed the connection; costs no round trip."""
    _refuse_closed(connection)


def _refuse_closed(connection: AsyncConnection[Any] | psycopg.Connection[Any]) -> None:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    while connection.pgconn.status == psycopg.pq.ConnStatus.OK and poll.poll(0):
        connection.pgconn.consume_input()  # its last words first; that it is closed comes after
    if connection.closed or connection.pgconn.status != psycopg.pq.ConnStatus.OK:
        raise psycopg.OperationalError("the server has closed the connection")


async def is_pooled(connection: AsyncConnection[Any]) -> bool:
    """Whether a pooler is in between: it tells its clients another number than the server's."""
    found = await connection.execute("SELECT pg_backend_pid()")
    row = await found.fetchone()
    return row is not None and row[0] != connection.info.backend_pid


@contextmanager
def limited(connection: AsyncConnection[Any], seconds: float) -> Generator[None]:
    """End the connection if the block takes longer: what it waits for fails then."""
    timer = asyncio.get_running_loop().call_later(seconds, sever, connection)
    try:
        yield
    finally:
        timer.cancel()


def sever(connection: AsyncConnection[Any]) -> None:
    """End the connection now, whoever waits for its answer: they get an error.

    To cancel them instead would ask the server to end the statement; one that is frozen does not
    answer, and that takes ten seconds.
    """
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as own:
        own.shutdown(socket.SHUT_RDWR)
