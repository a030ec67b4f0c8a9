"""How the system is, looked at once a second at most, however many ask.

Load balancers, status pages and users ask at once, most of all while something is wrong. A look has
a connection of its own to the database, so that a busy pool is not taken for one that does not
answer, and it ends in time whatever hangs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from faena import FeaturesView
from faena.errors import FaenaError

if TYPE_CHECKING:
    from apps.campotech.system import System

T = TypeVar("T")
_FRESH_S: Final = 1.0
_WITHIN_S: Final = 0.7
"""Health must be told within a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What one look has seen."""

    at: datetime
    has_database: bool
    """Whether it answers."""
    broker_ms: float | None
    """How long the broker took to tell of the features; None: it does not answer."""
    features: FeaturesView | None

    @property
    def overall(self) -> str:
        """As the features are, unless a server does not answer."""
        return self.features.overall if self.features and self.has_database else "offline"


class Doctor:
    """Who looks. Those who ask during a look get what it sees."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._seen: Vitals | None = None
        self._seen_at = 0.0
        self._looking: asyncio.Task[Vitals] | None = None

    async def ask(self) -> Vitals:
        """How the system is, or was less than a second ago."""
        if self._seen is not None and time.monotonic() - self._seen_at < _FRESH_S:
            return self._seen
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)  # whoever leaves does not take the look along

    async def _look(self) -> Vitals:
        try:
            at, began = datetime.now(UTC), time.perf_counter()
            features, database = await asyncio.gather(
                _in_time(self._features()), _in_time(self._database())
            )
            view, ended = features if features is not None else (None, began)
            self._seen_at = time.monotonic()
            self._seen = Vitals(
                at=at,
                has_database=database is not None,
                broker_ms=None if view is None else 1000 * (ended - began),
                features=view,
            )
            return self._seen
        finally:
            self._looking = None

    async def _features(self) -> tuple[FeaturesView, float]:
        return await self._system.app.features(), time.perf_counter()

    async def _database(self) -> bool:
        async with self._system.pg.session("health") as connection:
            await connection.execute("SELECT 1")
        return True


async def _in_time(work: Awaitable[T]) -> T | None:
    try:
        async with asyncio.timeout(_WITHIN_S):
            return await work
    except (FaenaError, TimeoutError):
        return None
