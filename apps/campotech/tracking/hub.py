"""The viewers of one process, who are told what is new.

One connection listens for all of them, while there are any. What a viewer has not been sent yet is
the last position of each technician, so a slow one costs no more memory than a fast one. A batch
that was not heard of is found by a look every few seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final
from uuid import UUID

from apps.campotech.tracking.position import CHANNEL, Position, Watch
from apps.campotech.tracking.reading import Watched, latest
from faena.errors import FaenaError
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_SWEEP_S: Final = 5.0
_MODE_S: Final = 0.25
_AGAIN_S: Final = 2.0

_log = logging.getLogger("campotech.tracking")


class Full(Exception):
    """There are as many viewers as may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What viewers may cost."""

    viewers: int = 1000
    """In one process."""
    of_organization: int = 50
    send_s: float = 10.0
    """A viewer that takes nothing for so long is dropped."""
    longest_s: float = 3600.0
    """A viewer shows a new ticket after so long."""


class Viewer:
    """One who looks, and what they have not been sent yet."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.watched = watch, Watched(None, is_nobody=True)
        self.must_poll = False
        self._seen: dict[UUID, datetime] = {}
        self._waiting: dict[UUID, Position] = {}
        self._news = asyncio.Event()

    def offer(self, position: Position) -> None:
        """Take it unless it is known, older, or not of those who are watched."""
        who = position.technician
        is_wanted = not self.watched.is_nobody and self.watched.technician in (None, who)
        is_own = position.organization == self.watch.organization
        known = self._seen.get(who)
        if is_own and is_wanted and (known is None or known < position.recorded_at):
            self._seen[who] = position.recorded_at
            self._waiting[who] = position
            self._news.set()

    def send_away(self) -> None:
        """Have them poll."""
        self.must_poll = True
        self._news.set()

    async def news(self) -> list[Position]:
        """Wait for some; none if they must poll."""
        await self._news.wait()
        return self.taken()

    def taken(self) -> list[Position]:
        """What waits."""
        self._news.clear()
        taken, self._waiting = list(self._waiting.values()), {}
        return taken


class Mode:
    """Whether viewers may look live now."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._following = False

    async def is_live(self) -> bool:
        """No while `tracking.realtime` is worse than healthy, and while nothing is known of it."""
        try:
            if not self._following:
                await self._system.app.features.follow()
                self._following = True
        except FaenaError:
            return False
        return self._system.features.tracking.is_healthy


class Hub:
    """Of one process."""

    def __init__(self, system: System, mode: Mode, bounds: Bounds) -> None:
        self._pg, self._mode, self._bounds = system.pg, mode, bounds
        self._of: dict[UUID, set[Viewer]] = {}
        self._count = 0
        self._task: asyncio.Task[None] | None = None
        self._since: datetime | None = None

    def __len__(self) -> int:
        return self._count

    def join(self, watch: Watch) -> Viewer:
        """Let somebody look; raises Full."""
        own = self._of.get(watch.organization, set())
        if self._count >= self._bounds.viewers or len(own) >= self._bounds.of_organization:
            raise Full
        viewer = Viewer(watch)
        self._of[watch.organization] = own | {viewer}
        self._count += 1
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="tracking")
        return viewer

    async def leave(self, viewer: Viewer) -> None:
        """The last one closes the connection."""
        organization = viewer.watch.organization
        own = self._of.pop(organization) - {viewer}
        if own:
            self._of[organization] = own
        self._count -= 1
        if self._count or self._task is None:
            return
        task, self._task, self._since = self._task, None, None
        task.cancel()
        await asyncio.wait([task])

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as both:
            both.create_task(self._listen())
            both.create_task(self._follow_mode())

    async def _follow_mode(self) -> None:
        while True:
            if not await self._mode.is_live():
                for viewer in [one for own in self._of.values() for one in own]:
                    viewer.send_away()
            await asyncio.sleep(_MODE_S)

    async def _listen(self) -> None:
        """Whatever fails: viewers wait for the next look."""
        while True:
            try:
                async with self._pg.session("tracking") as connection:
                    await connection.execute(f"LISTEN {CHANNEL}".encode())
                    await self._follow(connection)
            except FaenaError as error:
                _log.warning("positions are shown later: %s", error)
                await asyncio.sleep(_AGAIN_S)

    async def _follow(self, connection: Connection) -> None:
        clock = asyncio.get_running_loop().time
        sweep_at = clock()
        while True:
            if clock() >= sweep_at:
                self._since = await self._look(set(self._of))
                sweep_at = clock() + _SWEEP_S
            wait_s = max(0.0, sweep_at - clock())
            async with aclosing(connection.notifies(timeout=wait_s, stop_after=1)) as news:
                told = {name async for one in news for name in one.payload.split(",")}
            await self._look({one for one in self._of if str(one) in told})

    async def _look(self, organizations: Collection[UUID]) -> datetime | None:
        if not organizations:
            return self._since
        async with self._pg.transaction("tracking") as connection:
            seen = await latest(connection, list(organizations), since=self._since)
        for position in seen.positions:
            for viewer in self._of.get(position.organization, ()):
                viewer.offer(position)
        return seen.since
