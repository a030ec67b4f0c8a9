"""The PostgreSQL of an app: where it is, and the connections to it.

Two ways lead there. The pool serves transactions and works behind PgBouncer in transaction mode:
nothing is kept in a session, and statements are not prepared. `direct_url` leads past PgBouncer,
for what needs a session: LISTEN. Without it, notifications are replaced by polling.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeAlias, TypeVar

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from faena.app import Faena
from faena.errors import ConfigError, shown
from faena.pg.effect import effect
from faena.pg.embedded import EmbeddedPostgres
from faena.pg.failure import translated
from faena.pg.outbox import Outbox
from faena.pg.partition.registry import Partitioned
from faena.pg.service import serve
from faena.values.duration import Duration, to_s
from faena.values.numbers import check_whole

P = ParamSpec("P")
R = TypeVar("R")

Connection: TypeAlias = AsyncConnection[TupleRow]

URL: Final = "FAENA_PG_URL"
DIRECT_URL: Final = "FAENA_PG_DIRECT_URL"
_CONNECT_S: Final = 10
_APPLICATION: Final = "faena"


class Postgres(Partitioned):
    """One PostgreSQL database, used by an app."""

    def __init__(
        self,
        app: Faena,
        url: str | None = None,
        *,
        direct_url: str | None = None,
        pool: int = 10,
        patience: Duration = "10s",
        relay: bool = True,
        late: Duration = "1m",
    ) -> None:
        """Opens no connection; the first call does.

        Without `url`, FAENA_PG_URL is used; without that, an embedded PostgreSQL under the app's
        directory. `pool` is the most connections of this process. `patience` is how long a call
        waits for one of them. With `relay`, workers of the app send what is in the outbox;
        the event `outbox_late` tells that a job has waited there for `late`.
        """
        super().__init__(app)
        app.attachments[Postgres] = self
        self._url, self._direct_url = _checked("url", url), _checked("direct_url", direct_url)
        self._most = check_whole("pool", pool, least=1, most=1000)
        self._patience_s = to_s("patience", patience)
        self.outbox = Outbox(self, to_s("late", late))
        self._embedded: EmbeddedPostgres | None = None
        self._pools: dict[asyncio.AbstractEventLoop, AsyncConnectionPool[Connection]] = {}
        if relay:
            app.add_service(lambda: serve(self))

    @classmethod
    def of(cls, app: Faena) -> Self:
        """The one that was made last for this app."""
        found = app.attachments.get(Postgres)
        if isinstance(found, cls):
            return found
        raise ConfigError(
            f"app {app.name} must have a PostgreSQL: write `pg = Postgres(app)` beside it, with "
            f"`from faena.pg import Postgres`",
            field="pg",
        )

    # -- where it is ------------------------------------------------------------------------------

    async def url(self) -> str:
        """Where transactions go; starts the embedded server if there is no other."""
        if self._url is None:
            self._url = _checked(URL, os.environ.get(URL))
        if self._url is None:
            self._embedded = EmbeddedPostgres(Path(self.app.directory) / "postgres")
            self._url = await asyncio.to_thread(self._embedded.join)
        return self._url

    async def direct_url(self) -> str:
        """Where sessions go."""
        return self._direct_url or os.environ.get(DIRECT_URL) or await self.url()

    # -- connections ------------------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(self, op: str = "transaction") -> AsyncGenerator[Connection]:
        """A transaction, committed at the end of the block and rolled back by an exception."""
        with translated(op):
            pool = await self._pool()
            async with pool.connection(self._patience_s) as connection:
                yield connection

    @asynccontextmanager
    async def autocommit(self, op: str = "autocommit") -> AsyncGenerator[Connection]:
        """A connection in which each statement is its own transaction, as some DDL must be."""
        with translated(op):
            connection = await self.connect(await self.url(), autocommit=True)
            async with connection:
                yield connection

    @asynccontextmanager
    async def session(self, op: str = "session") -> AsyncGenerator[Connection]:
        """A connection of its own past PgBouncer, in autocommit, for LISTEN."""
        with translated(op):
            connection = await self.connect(await self.direct_url(), autocommit=True)
            async with connection:
                yield connection

    async def connect(self, url: str, **more: Any) -> Connection:
        """A new connection outside of the pool."""
        return await AsyncConnection.connect(_conninfo(url), **_session(), **more)

    async def _pool(self) -> AsyncConnectionPool[Connection]:
        """The pool of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            url = await self.url()
            self._pools.setdefault(
                loop,
                AsyncConnectionPool[Connection](
                    _conninfo(url),
                    min_size=0,
                    max_size=self._most,
                    kwargs=_session(),
                    open=False,
                    name=f"{_APPLICATION}-{self.app.name}",
                ),
            )
            await self._pools[loop].open()
        return self._pools[loop]

    # -- handlers ---------------------------------------------------------------------------------

    def effect(
        self, function: Callable[Concatenate[AsyncConnection[Any], P], Awaitable[R]]
    ) -> Callable[P, Coroutine[Any, Any, R]]:
        """A handler that gets a transaction, in which the record of its job commits as well.

        Write it below `@queue.task`. The transaction is the first parameter; payload and job follow
        as usual. A job that is delivered again returns what it returned before, and does nothing.
        """
        return effect(self, function)

    # -- lifecycle --------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close this event loop's connections, and leave an embedded server."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()
        if self._embedded is not None and not self._pools:
            embedded, self._embedded, self._url = self._embedded, None, None
            await asyncio.to_thread(embedded.leave)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Postgres of {self.app.name}>"


def _session() -> dict[str, Any]:
    """PgBouncer hands a connection to another client after each transaction, so no statement may
    be prepared in it."""
    return {"prepare_threshold": None}


def _conninfo(url: str) -> str:
    known = conninfo_to_dict(url)
    known.setdefault("application_name", _APPLICATION)
    known.setdefault("connect_timeout", _CONNECT_S)
    return make_conninfo("", **known)


def _checked(name: str, url: Any) -> str | None:
    if not url and url is None:
        return None
    is_url = isinstance(url, str) and url.startswith(("postgresql://", "postgres://"))
    if not is_url:
        raise ConfigError(
            f"{name} must be a URL such as postgresql://user@host/database, got {shown(url)}",
            field=name,
            value=url,
        )
    return url
