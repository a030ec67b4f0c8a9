"""The PostgreSQL of an app: where it is, and the connections to it.

Two ways lead there. The pool serves transactions and works behind PgBouncer in transaction mode:
nothing is kept in a session, and statements are not prepared. `direct_url` leads past PgBouncer,
for what needs a session: LISTEN, and DDL outside of transactions. Without it, notifications are
replaced by polling, and such DDL is refused.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, overload

from psycopg import AsyncConnection

from faena.app import Faena
from faena.embedded.directory import POSTGRES
from faena.errors import ConfigError, StoreRejected
from faena.pg.address import (
    DIRECT_URL,
    REPLICA_URL,
    URL,
    check_url,
    from_environ,
    refuse_embedded,
)
from faena.pg.direct import connect_directly
from faena.pg.effect import effect
from faena.pg.embedded import EmbeddedPostgres
from faena.pg.failure import as_raised, translated
from faena.pg.history.history import JobHistory, keep_history
from faena.pg.history.option import History
from faena.pg.outbox import Outbox
from faena.pg.pool import (
    Connection,
    Pools,
    PromptConnection,
    ReadConnection,
    SyncConnection,
    SyncPool,
    conninfo,
    is_pooled,
    stateless,
)
from faena.pg.replica import Replica
from faena.pg.request import OnRequest
from faena.pg.rollup.registry import RolledUp
from faena.pg.service import serve
from faena.values.duration import Duration, to_s, to_us
from faena.values.numbers import check_whole

P = ParamSpec("P")
R = TypeVar("R")


class Postgres(OnRequest, RolledUp):
    """One PostgreSQL database, used by an app."""

    def __init__(  # noqa: PLR0913 - keyword arguments, all optional but the app
        self,
        app: Faena,
        url: str | None = None,
        *,
        direct_url: str | None = None,
        replica_url: str | None = None,
        pool: int = 10,
        patience: Duration = "10s",
        relay: bool = True,
        late: Duration = "1m",
        keep_effects: Duration | None = "30d",
        history: History | None = None,
    ) -> None:
        """Opens no connection; the first call does.

        Without `url`, FAENA_PG_URL is used; without that, an embedded PostgreSQL under the app's
        directory. `reading` uses the replica at `replica_url`. `pool` is the most connections of
        this process to each server. `patience` is how long a call waits for one of them. With
        `relay`, workers of the app send what is in the outbox; the event `outbox_late` tells that
        a job has waited there for `late`. They also delete records of effects that are older than
        `keep_effects`; None keeps all. With `history`, workers store every end of a job here.
        """
        OnRequest.__init__(self, app)
        RolledUp.__init__(self)
        _attach(self, app)
        self._url, self._direct_url = check_url("url", url), check_url("direct_url", direct_url)
        self._replica_url = check_url("replica_url", replica_url)
        most = check_whole("pool", pool, least=1, most=1000)
        self._patience_s = to_s("patience", patience)
        self._pools = Pools(f"faena-{app.name}", most, self._patience_s)
        self._sync_pool = SyncPool(f"faena-{app.name}-threads", most, self._patience_s)
        self._replica: Replica | None = None
        self.outbox = Outbox(self, to_s("late", late))
        self._embedded: EmbeddedPostgres | None = None
        self._finding = threading.Lock()
        self.keep_effects = _kept(keep_effects)
        if relay:
            app.add_service(lambda: serve(self))
        self._history = None if history is None else keep_history(self, history)

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

    @property
    def history(self) -> JobHistory:
        """What has become of jobs; see `has_history`."""
        if self._history is None:
            raise ConfigError(
                "the app must have a history: write `Postgres(app, history=History())`, with "
                "`from faena.pg import History`",
                field="history",
            )
        return self._history

    @property
    def has_history(self) -> bool:
        """Whether the app keeps one."""
        return self._history is not None

    # -- where it is ------------------------------------------------------------------------------

    async def url(self) -> str:
        """Where transactions go; starts the embedded server if there is no other."""
        return self._url or await asyncio.to_thread(self._find_url)

    def _find_url(self) -> str:
        with self._finding:
            if self._url is None:
                self._url = check_url(URL, os.environ.get(URL))
            if self._url is None:
                refuse_embedded(os.environ)
                self._embedded = EmbeddedPostgres(Path(self.app.directory) / POSTGRES)
                self._url = self._embedded.join()
            return self._url

    async def direct_url(self) -> str:
        """Where sessions go."""
        return self._past() or await self.url()

    def has_direct_url(self) -> bool:
        """Whether sessions go another way than transactions."""
        return self._past() is not None

    def _past(self) -> str | None:
        return self._direct_url or from_environ(DIRECT_URL)

    @property
    def replica(self) -> Replica:
        """Where `reading` may go; there may be none."""
        if self._replica is None:
            url = self._replica_url or from_environ(REPLICA_URL)
            self._replica = Replica(self, url, self._pools.most)
        return self._replica

    @property
    def pool_size(self) -> int:
        """The most connections of this process to each server."""
        return self._pools.most

    # -- connections ------------------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(self, op: str | None = None) -> AsyncGenerator[ReadConnection]:
        """A transaction, committed at the end of the block and rolled back by an exception.

        Errors of your statements are raised as the driver raises them, such as `UniqueViolation`;
        a lost connection is StoreUnavailable. With `op`, all become errors of Faena.
        """
        with as_raised("transaction") if op is None else translated(op):
            async with self.lend(self._patience_s) as connection:
                yield connection

    @contextmanager
    def transaction_sync(self, op: str | None = None) -> Generator[SyncConnection]:
        """The same for a thread without an event loop."""
        with (
            as_raised("transaction") if op is None else translated(op),
            self._sync_pool.open(self._find_url()).connection(self._patience_s) as connection,
        ):
            yield connection

    def reading(self, *, max_lag: Duration = "5s") -> AbstractAsyncContextManager[ReadConnection]:
        """A transaction that only reads: on the replica, if it is behind by `max_lag` at most.

        Otherwise, or without a replica, on the primary. `connection.is_replica` tells where. With
        "0s", whatever was committed before this call is seen.
        """
        return self.replica.reading(to_s("max_lag", max_lag))

    @asynccontextmanager
    async def autocommit(self, op: str = "autocommit") -> AsyncGenerator[Connection]:
        """A session in which each statement is its own transaction, as some DDL must be.

        Such DDL keeps settings and locks between its statements. A pooler in transaction mode
        would hand them to others, so one is refused unless `direct_url` names it.
        """
        async with self.session(op) as connection:
            if not self.has_direct_url() and await is_pooled(connection):
                raise StoreRejected(
                    f"{op} must have a session of its own, and a pooler is in between: set "
                    f"direct_url or {DIRECT_URL} to an address past it",
                    op=op,
                )
            yield connection

    @asynccontextmanager
    async def session(self, op: str = "session") -> AsyncGenerator[Connection]:
        """A connection of its own past PgBouncer, in autocommit.

        LISTEN uses it even where a pooler makes it useless: there is polling besides.
        """
        with translated(op):
            async with await self.connect_past() as connection:
                yield connection

    async def connect_past(self) -> Connection:
        """A new connection past the pooler, in autocommit, to the same database as the pool's."""
        past = self._past()
        if past is None:
            return await self.connect(await self.url(), autocommit=True)
        return await connect_directly(self, past)

    async def connect(self, url: str, **more: Any) -> Connection:
        """A new connection outside of the pool."""
        return await PromptConnection.connect(conninfo(url), **stateless(), **more)

    async def reach(self, seconds: int) -> None:
        """Raise StoreUnavailable if the server takes no connection within so long."""
        with translated("connect"):
            more: dict[str, Any] = {"connect_timeout": seconds}
            await (await self.connect(await self.url(), **more)).close()

    async def check(self) -> None:
        """Raise an error unless the server runs a statement, on a connection of its own: a busy
        pool is not taken for a server that is out."""
        with translated("health"):
            async with await self.connect(await self.url(), autocommit=True) as connection:
                await connection.execute("SELECT 1")

    @asynccontextmanager
    async def lend(self, patience_s: float) -> AsyncGenerator[ReadConnection]:
        """One of the pool's connections, waited for that long; raises errors of the driver."""
        async with self._pools.lend(await self.url(), patience_s) as connection:
            yield connection

    # -- handlers ---------------------------------------------------------------------------------

    @overload
    def effect(
        self, function: Callable[Concatenate[AsyncConnection[Any], P], Awaitable[R]]
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def effect(self, function: Callable[Concatenate[SyncConnection, P], R]) -> Callable[P, R]: ...
    def effect(self, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """A handler that gets a transaction, in which the record of its job commits as well.

        Write it below `@queue.task`. The transaction is the first parameter: a `Connection`, or a
        `SyncConnection` for a `def` handler, which runs in a thread. Payload and job follow as
        usual. A job that is delivered again returns what it returned before, and does nothing.
        """
        return effect(self, function)

    # -- lifecycle --------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close this event loop's connections, and leave an embedded server."""
        if self._replica is not None:
            await self._replica.close()
        await self._pools.close()
        await self._sync_pool.close()
        if self._embedded is not None and self._pools.is_empty:
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


def _attach(pg: Postgres, app: Faena) -> None:
    app.attachments[Postgres] = pg
    app.add_server("database", pg.check)


def _kept(value: Any) -> timedelta | None:
    """Records are answers to repeated deliveries, which come for hours after a commit."""
    if value is None:
        return None
    return timedelta(microseconds=to_us("keep_effects", value, least_us=3_600_000_000))
