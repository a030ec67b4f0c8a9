"""`faena.erasures`: one row for each request, who made it, how far it is, and what was erased.

A tenant has one request that waits at a time. Numbers of rows grow in the transaction that deletes
the rows, so they are exact however often the work is interrupted; numbers of jobs and of history
are counted after their deletion, and may lack what was deleted right before a process died.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from faena.pg.erasure.place import Kept
from faena.pg.partition.catalog import in_utc

if TYPE_CHECKING:
    from faena.pg.pool import Connection
    from faena.pg.postgres import Postgres

State: TypeAlias = Literal["waiting", "done"]

_COLUMNS: Final = (
    "id, tenant, requested_by, reason, cancels_live, state, step, erased, kept, problem, "
    "requested_at, done_at"
)
_ADD: Final = """
    INSERT INTO faena.erasures (id, tenant, requested_by, reason, cancels_live)
    VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (tenant) WHERE state = 'waiting'
    DO UPDATE SET cancels_live = faena.erasures.cancels_live OR excluded.cancels_live
    RETURNING id
"""
_COUNT: Final = """
    UPDATE faena.erasures SET changed_at = now(), erased = erased || jsonb_build_object(
        %(place)s::text, coalesce((erased ->> %(place)s)::bigint, 0) + %(number)s)
    WHERE id = %(id)s
"""


class Record(NamedTuple):
    """A row of faena.erasures."""

    id: str
    tenant: str
    by: str
    reason: str
    cancels_live: bool
    state: State
    step: str
    erased: dict[str, int]
    kept: list[dict[str, Any]]
    problem: str | None
    requested_at: datetime
    done_at: datetime | None


class Tally:
    """Counts what an erasure deletes."""

    def __init__(self, pg: Postgres, id_: str) -> None:
        self._pg = pg
        self._id = id_
        self.total = 0

    async def add(self, connection: Connection, place: str, number: int) -> None:
        """In the transaction that deletes it."""
        if number:
            await connection.execute(_COUNT, {"place": place, "number": number, "id": self._id})
            self.total += number

    async def note(self, place: str, number: int) -> None:
        """In a transaction of its own."""
        if number:
            async with self._pg.transaction("erase") as connection:
                await self.add(connection, place, number)


async def add(
    connection: Connection, tenant: str, by: str, reason: str, *, cancels_live: bool
) -> str:
    """A new row, or the one that waits for the same tenant; returns its id."""
    given = [uuid.uuid4().hex, tenant, by, reason, cancels_live]
    row = await (await connection.execute(_ADD, given)).fetchone()
    return str(row[0] if row else "")


async def read(
    connection: Connection, *, id_: str | None = None, tenant: str | None = None, limit: int = 100
) -> list[Record]:
    """Rows, the newest first."""
    await in_utc(connection)
    words = (
        f"SELECT {_COLUMNS} FROM faena.erasures WHERE (%s::text IS NULL OR id = %s)"  # noqa: S608 - constants
        " AND (%s::text IS NULL OR tenant = %s) ORDER BY requested_at DESC, id LIMIT %s"
    )
    found = await connection.execute(words.encode(), [id_, id_, tenant, tenant, limit])
    return [Record(*row) for row in await found.fetchall()]


async def waiting(connection: Connection) -> list[Record]:
    """Those that are not done."""
    words = f"SELECT {_COLUMNS} FROM faena.erasures WHERE state = 'waiting'"  # noqa: S608 - constants
    return [Record(*row) for row in await (await connection.execute(words.encode())).fetchall()]


async def set_step(connection: Connection, id_: str, step: str, problem: str | None = None) -> None:
    """Where it is, and what is in its way."""
    await connection.execute(
        "UPDATE faena.erasures SET step = %s, problem = %s, changed_at = now()"
        " WHERE id = %s AND state = 'waiting'",
        [step, problem, id_],
    )


async def finish(connection: Connection, id_: str, kept: Sequence[Kept]) -> None:
    """Nothing is left."""
    await connection.execute(
        "UPDATE faena.erasures SET state = 'done', step = 'done', problem = NULL, kept = %s::jsonb,"
        " changed_at = now(), done_at = now() WHERE id = %s AND state = 'waiting'",
        [msgspec.json.encode(list(kept)).decode(), id_],
    )
