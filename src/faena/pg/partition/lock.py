"""Changes of tables in use: each waits briefly for its lock, lets others pass, and tries again.

Whoever waits for a strong lock makes all later users of the table wait behind it. So no wait is
longer than LOCK_MS, and there is a pause before the next. LOCK_MS is also far below PostgreSQL's
deadlock_timeout (1 s): of two that wait for each other, the one here gives up, not the program.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from psycopg import errors as pg_errors
from psycopg import sql

from faena.errors import FaenaError, StoreUnavailable
from faena.pg.partition.catalog import in_utc

if TYPE_CHECKING:
    from faena.pg.postgres import Connection, Postgres

LOCK_MS: Final = 100
PATIENCE_S: Final = 60.0
_PAUSES_S: Final = (0.02, 0.3)
_BUSY: Final = (pg_errors.LockNotAvailable, pg_errors.DeadlockDetected)

_HOLDERS: Final = """
    SELECT a.pid, coalesce(a.application_name, ''), left(a.query, 80)
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.relation = to_regclass(%s) AND l.granted AND a.pid <> pg_backend_pid()
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY a.xact_start LIMIT 3
"""

T = TypeVar("T")


async def brief(connection: Connection, subject: object, wait_ms: int = LOCK_MS) -> None:
    """Bound the waits of this transaction; only one process at a time changes the subject."""
    await connection.execute(
        sql.SQL("SET LOCAL lock_timeout TO {}").format(sql.Literal(f"{wait_ms}ms"))
    )
    await in_utc(connection)
    await connection.execute(
        "SELECT pg_advisory_xact_lock(hashtextextended('faena.partition ' || %s, 0))",
        [str(subject)],
    )


async def patiently(
    pg: Postgres,
    op: str,
    subject: str,
    work: Callable[[Connection], Awaitable[T]],
    *,
    patience_s: float = PATIENCE_S,
) -> T:
    """Do the work in one transaction; if a lock is not free in time, try again later."""

    async def attempt() -> T:
        async with pg.transaction(op) as connection:
            await brief(connection, subject)
            return await work(connection)

    return await retried(pg, op, subject, attempt, patience_s=patience_s)


async def retried(
    pg: Postgres,
    op: str,
    subject: str,
    attempt: Callable[[], Awaitable[T]],
    *,
    patience_s: float = PATIENCE_S,
) -> T:
    """Try until a lock is free; the error of the last try names who holds it."""
    until = monotonic() + patience_s
    while True:
        try:
            return await attempt()
        except FaenaError as error:
            if not is_busy(error):
                raise
            if monotonic() > until:
                raise await _told(pg, op, subject) from error
        await asyncio.sleep(random.uniform(*_PAUSES_S))


def is_busy(error: FaenaError) -> bool:
    """Whether a lock was not free in time."""
    return isinstance(error.__cause__, _BUSY)


async def _told(pg: Postgres, op: str, subject: str) -> StoreUnavailable:
    async with pg.transaction(op) as connection:
        rows = await (await connection.execute(_HOLDERS, [subject])).fetchall()
    holders = "; ".join(f"pid {pid} {name}: {query}" for pid, name, query in rows)
    return StoreUnavailable(
        f"{op} must get a lock on {subject} within {LOCK_MS} ms, and did not in many tries; "
        f"it is in use by {holders or 'others'}",
        op=op,
    )
