"""The last position of each technician, and whom a watch is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg.rows import class_row

from apps.campotech.tracking.position import OVERLAP, Position, Watch
from faena.pg import Connection

_LATEST: Final = """
    SELECT organization_id AS organization, user_id AS technician, latitude::float8,
        longitude::float8, accuracy::float8, recorded_at
    FROM campotech.technician_positions
    WHERE organization_id = ANY(%(organizations)s)
        AND received_at > coalesce(%(since)s, now() - interval '1 day')
        AND (%(technician)s::uuid IS NULL OR user_id = %(technician)s)
"""
_USERS: Final = """
    SELECT count(*) FROM campotech.users WHERE organization_id = %s AND id = ANY(%s)
"""
_JOB: Final = """
    SELECT assigned_to, status FROM campotech.jobs WHERE id = %s AND organization_id = %s
"""
_OVER: Final = frozenset({"completed", "cancelled"})


class NobodyToWatch(LookupError):
    """Neither technician nor job are of this organisation."""


class Watched(NamedTuple):
    """Whom a watch is about now."""

    technician: UUID | None
    """None: everybody, unless nobody has the job."""
    is_nobody: bool = False
    is_over: bool = False
    """The job has ended, and nobody is watched for it any more."""


class Seen(NamedTuple):
    """What a reader has found, and where the next one begins."""

    positions: Sequence[Position]
    since: datetime


async def resolve(connection: Connection, watch: Watch) -> Watched:
    """Whom to watch; raises NobodyToWatch."""
    if watch.job is not None:
        found = await connection.execute(_JOB, [watch.job, watch.organization])
        row = await found.fetchone()
        if row is None:
            raise NobodyToWatch("no such job")
        technician, status = row
        return Watched(technician, is_nobody=technician is None, is_over=status in _OVER)
    if watch.technician is not None:
        await check_users(connection, watch.organization, {watch.technician})
    return Watched(watch.technician)


async def check_users(connection: Connection, organization: UUID, users: set[UUID]) -> None:
    """Raises NobodyToWatch unless all are of the organisation."""
    found = await (await connection.execute(_USERS, [organization, list(users)])).fetchone()
    if found is None or found[0] != len(users):
        raise NobodyToWatch("no such technician")


async def latest(
    connection: Connection,
    organizations: Sequence[UUID],
    *,
    since: datetime | None,
    technician: UUID | None = None,
) -> Seen:
    """The last positions that have come since then; None: within a day."""
    given: dict[str, Any] = {
        "organizations": list(organizations),
        "since": since,
        "technician": technician,
    }
    async with connection.cursor(row_factory=class_row(Position)) as cursor:
        await cursor.execute(_LATEST, given)
        positions = await cursor.fetchall()
    now = (await (await connection.execute("SELECT transaction_timestamp()")).fetchall())[0][0]
    return Seen(positions, now - OVERLAP)


async def of_watch(
    connection: Connection, watch: Watch, watched: Watched, since: datetime | None
) -> Seen:
    """Those that the viewer of a watch may see."""
    whose = [] if watched.is_nobody or watched.is_over else [watch.organization]
    return await latest(connection, whose, since=since, technician=watched.technician)
