"""One archiver of a table at a time: each transaction that changes something proves it is that one.

Whoever begins writes a new token into `faena.archive_runs`. A process that was frozen, and has
lost the table to another meanwhile, finds another token in its next transaction and stops, before
anything is changed. Locks of sessions would not survive PgBouncer, and end late with a lost
network; a lease alone would let the frozen one wake up in the middle of a deletion.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from faena.errors import FaenaError, StoreRejected, StoreUnavailable
from faena.pg.partition.catalog import in_utc
from faena.pg.partition.lock import is_busy

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

_TAKE: Final = """
    INSERT INTO faena.archive_runs AS run (table_name, token, step) VALUES (%s, %s, 'beginning')
    ON CONFLICT (table_name) DO UPDATE SET token = excluded.token, step = 'beginning', rows = 0,
        objects = 0, problem = NULL, started_at = now(), renewed_at = clock_timestamp(),
        ended_at = NULL
    WHERE run.ended_at IS NOT NULL
       OR run.renewed_at <= clock_timestamp() - make_interval(secs => %s)
    RETURNING detaching, start_at, end_at
"""
_PROVE: Final = """
    UPDATE faena.archive_runs SET renewed_at = clock_timestamp(), step = coalesce(%s, step)
    WHERE table_name = %s AND token = %s
    RETURNING set_config('idle_in_transaction_session_timeout', %s, true)
"""
"""A process that is frozen while it holds the record loses its session, and with it the lock."""
_NOTE: Final = """
    UPDATE faena.archive_runs SET start_at = %s, end_at = %s, detaching = %s
    WHERE table_name = %s AND token = %s
"""
_COUNT: Final = """
    UPDATE faena.archive_runs SET rows = rows + %s, objects = objects + %s
    WHERE table_name = %s AND token = %s
"""
_END: Final = """
    UPDATE faena.archive_runs SET step = %s, problem = %s, ended_at = clock_timestamp()
    WHERE table_name = %s AND token = %s
"""
_WAIT: Final = "SET LOCAL lock_timeout TO '5s'"
_LEAST_IDLE_S: Final = 4.0


class Busy(StoreUnavailable):
    """Another archiver is at work on the table."""


class Superseded(StoreRejected):
    """Another archiver has taken the table; nothing was changed."""


class Pending(NamedTuple):
    """A partition that an archiver had begun to detach when it was interrupted."""

    oid: int
    start: datetime
    end: datetime


async def read_pending(connection: Connection, table: str) -> Pending | None:
    """What an archiver of a table has begun; it may be at work."""
    await in_utc(connection)
    found = await connection.execute(
        "SELECT detaching, start_at, end_at FROM faena.archive_runs"
        " WHERE table_name = %s AND detaching IS NOT NULL",
        [table],
    )
    row = await found.fetchone()
    return None if row is None else Pending(*row)


class Fence:
    """The right to change one table's archives, and what proves it."""

    def __init__(self, pg: Postgres, table: str, lease_s: float) -> None:
        self._pg = pg
        self._table = table
        self._lease_s = lease_s
        self._token = uuid.uuid4()
        self.pending: Pending | None = None

    async def take(self) -> None:
        """Begin, once no other holds the table; `Busy` if another one keeps it."""
        until = monotonic() + self._lease_s + _LEAST_IDLE_S
        while not await self._try():
            if monotonic() > until:
                raise Busy(f"another process archives {self._table} now", op="archive")
            await asyncio.sleep(min(1.0, self._lease_s / 5))

    async def _try(self) -> bool:
        row = None
        try:
            async with self._pg.transaction("archive") as connection:
                await connection.execute(_WAIT)
                await in_utc(connection)
                found = await connection.execute(_TAKE, [self._table, self._token, self._lease_s])
                row = await found.fetchone()
        except FaenaError as error:
            if not is_busy(error):
                raise
        if row is not None and row[0] is not None:
            self.pending = Pending(*row)
        return row is not None

    async def prove(self, connection: Connection, step: str | None = None) -> None:
        """Lock the record until the end of the transaction; `Superseded` if it is another's."""
        idle = f"{max(self._lease_s, _LEAST_IDLE_S):.0f}s"
        found = await connection.execute(_PROVE, [step, self._table, self._token, idle])
        if found.rowcount != 1:
            raise Superseded(
                f"another process has taken over the archives of {self._table}", op="archive"
            )

    async def note(
        self, connection: Connection, start: datetime, end: datetime, detaching: int | None
    ) -> None:
        """Which period it is at, and which partition must be finished after an interruption."""
        await connection.execute(_NOTE, [start, end, detaching, self._table, self._token])

    async def count(self, connection: Connection, rows: int, objects: int) -> None:
        """Rows that have left, for the status."""
        await connection.execute(_COUNT, [rows, objects, self._table, self._token])

    async def end(self, problem: str | None) -> None:
        """Let the next one begin at once."""
        step = "ended" if problem is None else "failed"
        async with self._pg.transaction("archive") as connection:
            await connection.execute(_END, [step, problem, self._table, self._token])

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[None]:
        """Renew it beside the work, which may wait for slow storage.

        The heartbeat is asked to end, not cancelled: a driver that is cancelled at a bad moment
        may raise another error, and the heartbeat would go on.
        """
        is_over = asyncio.Event()
        beating = asyncio.create_task(self._beat(is_over))
        try:
            yield
        finally:
            is_over.set()
            await beating

    async def _beat(self, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._lease_s / 3):
                    await is_over.wait()
                return
            with suppress(FaenaError):  # the work itself will find out
                async with self._pg.transaction("archive") as connection:
                    await connection.execute(_WAIT)
                    await self.prove(connection)
