"""Deletes the records of effects that no delivery can ask for any more."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from faena.errors import FaenaError

if TYPE_CHECKING:
    from faena.pg.postgres import Postgres

_KEPT: Final = timedelta(days=30)
"""Longer than jobs are retried, or wait at the desk."""
_AT_ONCE: Final = 1000
_EVERY_S: Final = 3600.0
_DELETE: Final = """
    DELETE FROM faena.effects WHERE (queue, job, digest) IN (
        SELECT queue, job, digest FROM faena.effects WHERE committed_at < now() - %s::interval
        ORDER BY committed_at LIMIT %s FOR UPDATE SKIP LOCKED)
"""

_log = logging.getLogger("faena.pg")


async def keep_effects(pg: Postgres, age: timedelta) -> None:
    """Delete records beyond an age, every hour, until cancelled."""
    while True:
        try:
            await forget_effects(pg, age)
        except FaenaError as error:
            _log.warning("old records of effects are deleted later: %s", error)
        await asyncio.sleep(_EVERY_S)


async def forget_effects(pg: Postgres, older_than: timedelta = _KEPT) -> int:
    """Delete old records, in bounded steps; returns how many.

    Workers that do so at once leave each other's rows alone.
    """
    total = 0
    while True:
        async with pg.transaction("effects") as connection:
            found = await connection.execute(_DELETE, [older_than, _AT_ONCE])
        total += found.rowcount
        if found.rowcount < _AT_ONCE:
            return total
