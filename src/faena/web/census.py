"""How all tenants stand, over all queues: read once for all who ask, and kept for a moment.

With very many tenants a reading takes longer than a page may. A page is given the last one while a
new one is read behind it; only the first, one that is too old, or one after a change is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from faena.queue import Queue
from faena.tenancy.shares import Shares
from faena.tenancy.tenants import TenantView

if TYPE_CHECKING:
    from faena.app import Faena

_FRESH_S: Final = 3.0
_OLDEST_S: Final = 60.0
_AT_ONCE: Final = 8


@dataclass(slots=True)
class Standing:
    """One tenant, over all queues."""

    tenant: str
    """Empty: the jobs without a tenant."""
    live: int = 0
    running: int = 0
    given: float = 0.0
    """Jobs started in the window, divided by its weight."""
    waited: int = 0
    waited_us: int = 0
    throttled_us: int = 0
    """How long some of its jobs were kept back by limits or a hold of its own, at most over its
    queues."""
    queues: list[str] = field(default_factory=list[str])
    """Where it has live jobs."""
    decided: list[tuple[str, TenantView]] = field(default_factory=list[tuple[str, TenantView]])
    """Queues where something is decided for it."""

    @property
    def wait_us(self) -> float | None:
        """The mean wait of the jobs that were started."""
        return self.waited_us / self.waited if self.waited else None

    @property
    def is_held(self) -> bool:
        """Whether any queue holds it."""
        return any(view.is_held for _, view in self.decided)


@dataclass(frozen=True, slots=True)
class Reading:
    """All tenants at about one instant."""

    at: int
    """The server's microseconds."""
    tenants: Mapping[str, Standing]
    given: float
    """The sum of all shares."""
    fairness: float | None
    """Jain's index over all queues together."""

    def share(self, one: Standing) -> float | None:
        """Its part of what was started; None if nothing was."""
        return one.given / self.given if self.given else None


class Census:
    """The readings of an app's tenants."""

    def __init__(self, app: Faena) -> None:
        self._app = app
        self._found: dict[int, tuple[float, Reading]] = {}
        self._under_way: dict[int, asyncio.Task[Reading]] = {}

    async def read(self, minutes: int, *, is_after_change: bool = False) -> Reading:
        """How tenants stand, with their shares of the last full minutes and the current one."""
        read_at, found = self._found.get(minutes, (float("-inf"), None))
        age_s = time.monotonic() - read_at
        if found is not None and age_s < _FRESH_S and not is_after_change:
            return found
        if is_after_change:
            await self._end(minutes)  # it may have begun before the change
        task = self._under_way.get(minutes)
        if task is None:
            task = self._under_way[minutes] = asyncio.create_task(self._read(minutes))
            task.add_done_callback(_heard)
        if found is not None and age_s < _OLDEST_S and not is_after_change:
            return found
        return await asyncio.shield(task)

    async def _end(self, minutes: int) -> None:
        task = self._under_way.pop(minutes, None)
        if task is not None:
            await asyncio.wait([task])

    async def _read(self, minutes: int) -> Reading:
        began, room = time.monotonic(), asyncio.Semaphore(_AT_ONCE)
        try:
            queues = [one for one in self._app.queues.values() if one.options.is_fair]
            parts = await asyncio.gather(*(_of(one, minutes, room) for one in queues))
            at = (await self._app.snapshot(max_age="2s", tenants=False)).at
            found = _together(at, parts)
            self._found[minutes] = began, found
            return found
        finally:
            if self._under_way.get(minutes) is asyncio.current_task():
                del self._under_way[minutes]

    async def close(self) -> None:
        """End readings that nobody waits for."""
        tasks, self._under_way = [*self._under_way.values()], {}
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


_Part = tuple[str, Sequence[TenantView], Sequence[Shares]]


async def _of(queue: Queue, minutes: int, room: asyncio.Semaphore) -> _Part:
    async with room:
        return queue.name, await queue.census(), await queue.shares(minutes=minutes)


def _together(at: int, parts: Sequence[_Part]) -> Reading:
    tenants: dict[str, Standing] = {}

    def of(name: str) -> Standing:
        return tenants.get(name) or tenants.setdefault(name, Standing(name))

    for queue, views, minutes in parts:
        for view in views:
            one = of(view.tenant or "")
            one.live += view.live
            one.running += view.running
            if view.live:
                one.queues.append(queue)
            if view.by is not None or view.is_dedicated:
                one.decided.append((queue, view))
        _add_shares(of, minutes)
    given = sum(one.given for one in tenants.values())
    squares = sum(one.given**2 for one in tenants.values())
    served = sum(one.given > 0 for one in tenants.values())
    fairness = given**2 / (served * squares) if squares else None
    return Reading(at, tenants, given, fairness)


def _add_shares(of: Callable[[str], Standing], minutes: Sequence[Shares]) -> None:
    kept_back: dict[str, int] = {}
    for minute in minutes:
        for name, given in minute.given.items():
            of(name).given += given
        for name, (number, sum_us) in minute.waits.items():
            one = of(name)
            one.waited += number
            one.waited_us += sum_us
        for name, us in minute.throttled_us.items():
            kept_back[name] = kept_back.get(name, 0) + us
    for name, us in kept_back.items():
        one = of(name)
        one.throttled_us = max(one.throttled_us, us)


def _heard(task: asyncio.Task[Reading]) -> None:
    """An error of a reading that nobody waited for is that of the next one too."""
    if not task.cancelled():
        task.exception()
