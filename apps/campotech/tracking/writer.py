"""Stores positions of many requests in few statements.

While a statement runs, positions of further requests gather; the next statement takes them. A
request is answered after its commit. What waits is bounded: more is refused, to be sent later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from psycopg.errors import CheckViolation

from apps.campotech.tracking.position import CHANNEL, Position
from faena.pg import Connection, Postgres

MOST_WAITING: Final = 20_000
_BATCH: Final = 2_000
_NAMES_IN_NOTICE: Final = 200
"""A notice has 8000 bytes at most."""
_STORE: Final = """
    WITH given AS (
        SELECT * FROM unnest(%(id)s::uuid[], %(organization)s::uuid[], %(technician)s::uuid[],
            %(latitude)s::float8[], %(longitude)s::float8[], %(accuracy)s::float8[],
            %(recorded_at)s::timestamptz[])
            AS one(id, organization_id, user_id, latitude, longitude, accuracy, recorded_at)
    ), kept AS (
        INSERT INTO campotech.technician_locations
            (id, organization_id, user_id, latitude, longitude, accuracy, recorded_at)
        SELECT id, organization_id, user_id, latitude, longitude, accuracy, recorded_at
        FROM given ORDER BY id ON CONFLICT DO NOTHING
    )
    INSERT INTO campotech.technician_positions AS known
        (organization_id, user_id, latitude, longitude, accuracy, recorded_at, received_at)
    SELECT DISTINCT ON (organization_id, user_id)
        organization_id, user_id, latitude, longitude, accuracy, recorded_at, clock_timestamp()
    FROM given ORDER BY organization_id, user_id, recorded_at DESC
    ON CONFLICT (organization_id, user_id) DO UPDATE SET
        latitude = excluded.latitude, longitude = excluded.longitude, accuracy = excluded.accuracy,
        recorded_at = excluded.recorded_at, received_at = excluded.received_at
    WHERE known.recorded_at < excluded.recorded_at
    RETURNING organization_id
"""
_NAMES: Final = (
    "id", "organization", "technician", "latitude", "longitude", "accuracy", "recorded_at"
)  # fmt: skip


class Busy(Exception):
    """Too many positions wait."""


class Unstorable(ValueError):
    """A position is of a day that the table has no part for."""


class _Waiting(NamedTuple):
    positions: Sequence[Position]
    done: asyncio.Future[None]


class Writer:
    """For one event loop."""

    def __init__(self, pg: Postgres, *, most: int = MOST_WAITING) -> None:
        self._pg, self._most = pg, most
        self._waiting = deque[_Waiting]()
        self._count = 0
        self._task: asyncio.Task[None] | None = None

    async def store(self, positions: Sequence[Position]) -> None:
        """Return when they are committed; raises Busy or Unstorable."""
        if self._count + len(positions) > self._most:
            raise Busy
        mine = _Waiting(positions, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self._count += len(positions)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="positions")
        await mine.done

    async def _run(self) -> None:
        while self._waiting:
            taken = self._take()
            try:
                await self._write_or_split(taken)
            finally:
                self._count -= sum(len(one.positions) for one in taken)
                for one in taken:
                    one.done.cancel()  # nothing happens if it has its answer

    def _take(self) -> list[_Waiting]:
        taken, count = list[_Waiting](), 0
        while self._waiting and (not taken or count + len(self._waiting[0].positions) <= _BATCH):
            taken.append(self._waiting.popleft())
            count += len(taken[-1].positions)
        return taken

    async def _write_or_split(self, taken: Sequence[_Waiting]) -> None:
        """One bad request spoils no other."""
        try:
            await self._write([each for one in taken for each in one.positions])
        except CheckViolation:
            if len(taken) > 1:
                for one in taken:
                    await self._write_or_split([one])
            else:
                _fail(taken, Unstorable("recordedAt must be of a day that positions are kept of"))
        except Exception as error:  # noqa: BLE001 - each request answers with it
            _fail(taken, error)
        else:
            for one in taken:
                if not one.done.done():
                    one.done.set_result(None)

    async def _write(self, positions: Sequence[Position]) -> None:
        given: dict[str, Any] = {name: [getattr(one, name) for one in positions] for name in _NAMES}
        async with self._pg.transaction() as connection:
            found = await (await connection.execute(_STORE, given)).fetchall()
            await _tell(connection, sorted({str(row[0]) for row in found}))


async def _tell(connection: Connection, organizations: Sequence[str]) -> None:
    """With the commit."""
    for start in range(0, len(organizations), _NAMES_IN_NOTICE):
        names = ",".join(organizations[start : start + _NAMES_IN_NOTICE])
        await connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, names])


def _fail(taken: Sequence[_Waiting], error: Exception) -> None:
    for one in taken:
        if not one.done.done():
            one.done.set_exception(error)
