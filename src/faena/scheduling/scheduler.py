"""Fires schedules: sleeps until one is due, and now and then checks for changes by others.

Every worker process has a scheduler, and all are equal: the scripts let exactly one of them fire an
instant. Schedules in code are declared at the start, and again if the server has lost them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from faena.engine import Engine
from faena.engine.calls.scheduling import MOST, Stored, read, read_due
from faena.errors import ConfigError, FaenaError, Overloaded, PayloadError
from faena.options import QueueOptions
from faena.scheduling.declare import Declared, Start, declare, give_up
from faena.scheduling.due import Schedule
from faena.scheduling.fire import Around, Firer
from faena.sharding.router import Routers

if TYPE_CHECKING:
    from faena.telemetry.tracing.tracing import Tracing

LOOK_S: Final = 5.0
"""Between two routine checks, of any queue: a fifth of a command a second."""
_ROUNDS: Final = 200
"""The most rounds for one queue before other queues get a turn."""
_AFTER_ERROR_S: Final = 5.0
_MOVING_US: Final = 1_000_000

_log = logging.getLogger("faena.scheduler")


class Scheduler:
    """The schedules of some queues."""

    def __init__(
        self,
        engine: Engine,
        routers: Routers,
        queues: Mapping[str, QueueOptions],
        declared: Sequence[Declared] = (),
        *,
        around: Around | None = None,
        tracing: Tracing | None = None,
        start: Start | None = None,
    ) -> None:
        self._engine = engine
        self._firers = {
            queue: Firer(engine, routers, queue, options, around, tracing)
            for queue, options in queues.items()
        }
        self._declared = {
            queue: [one for one in declared if one.queue == queue] for queue in queues
        }
        self._queue_of = {one.name: one.queue for one in declared}
        self._undeclared = set(self._queue_of)
        self._start = start or Start()
        self.look_s = LOOK_S
        self._look_at = dict.fromkeys(queues, 0.0)
        """Queue → when to check it, by this process's clock."""
        self._turns = deque(queues)
        self._notified = asyncio.Event()

    def notify(self, shard: str, _name: str = "") -> None:
        """A schedule of a queue has changed."""
        if shard in self._look_at:
            self._look_at[shard] = 0.0
            self._notified.set()

    async def run(self) -> None:
        """Fire until cancelled."""
        while True:
            queue = await self._next()
            try:
                await self._serve(queue)
            except FaenaError as error:
                if self._engine.wire.is_closed:
                    raise  # this program closed it, and will not open it again
                _log.warning("could not fire schedules of queue %s, trying again: %s", queue, error)
                self._look_at[queue] = time.monotonic() + _AFTER_ERROR_S

    async def run_once(self) -> int | None:
        """Fire everything that is due; returns the next due instant."""
        instants = [await self.look(queue) for queue in self._firers]
        return min((one for _, one in instants if one is not None), default=None)

    async def _next(self) -> str:
        """The queue to check next: the one that is due first, else the next in turn."""
        until = time.monotonic() + self.look_s
        while True:
            self._notified.clear()
            queue, at = min(self._look_at.items(), key=lambda item: item[1])
            pause_s = min(at, until) - time.monotonic()
            if pause_s <= 0:
                break
            try:
                async with asyncio.timeout(pause_s):
                    await self._notified.wait()
            except TimeoutError:
                continue
        if at > until:
            self._turns.rotate(-1)
            return self._turns[-1]
        return queue

    async def _serve(self, queue: str) -> None:
        asked = time.monotonic()
        self._look_at[queue] = math.inf  # so that a change during the check is not lost
        now, next_at = await self.look(queue)
        due_at = math.inf if next_at is None else asked + max(0, next_at - now) / 1e6
        self._look_at[queue] = min(self._look_at[queue], due_at)

    async def look(self, queue: str) -> tuple[int, int | None]:
        """Fire the due schedules of a queue; returns the server's time, and when to check next."""
        firer = self._firers[queue]
        names = [one.name for one in self._declared[queue]]
        skip, now, later = 0, 0, list[int]()
        postponed: dict[str, int] = {}
        for _ in range(_ROUNDS):
            await self._declare(queue, postponed)
            now, next_at, due, missing = await read_due(self._engine, queue, names, skip)
            self._undeclared.update(missing)
            waits = await self._fire_all(firer, due, now)
            if set(missing) - set(postponed) or not all(waits):
                continue
            later += [now + wait_us for wait_us in (*waits, *postponed.values())]
            if len(due) < MOST:
                later += [] if next_at is None else [next_at]
                return now, min(later, default=None)
            skip += MOST  # these all have to wait, and more may be due behind them
        return now, now

    async def _declare(self, queue: str, postponed: dict[str, int]) -> None:
        """Declare schedules that are new, or missing on the server.

        One that cannot be declared now keeps no other back: it is `postponed` to a later check, by
        so many microseconds.
        """
        for one in self._declared[queue]:
            if one.name in self._undeclared and one.name not in postponed:
                try:
                    await declare(self._firers[queue], self._engine, one, self._start, waits=False)
                except (ConfigError, PayloadError) as error:  # it contradicts the stored options
                    _log.error("schedule %s could not be updated: %s", one.name, error)
                except FaenaError as error:
                    postponed[one.name] = self._pause_after(one.name, error)
                    continue
                self._undeclared.discard(one.name)

    def _pause_after(self, name: str, error: FaenaError) -> int:
        """Log why a schedule has to wait; returns for how many microseconds."""
        if self._engine.wire.is_closed:
            raise error
        _log.warning("schedule %s could not be updated yet, trying again: %s", name, error)
        wait_s = error.retry_after if isinstance(error, Overloaded) else _AFTER_ERROR_S
        return round(wait_s * 1e6)

    def _has_moved(self, schedule: Schedule, queue: str) -> bool:
        """Whether code declared it in this queue before, and in another one now.

        A process with the old code may have declared it again in this queue.
        """
        is_elsewhere = self._queue_of.get(schedule.name, queue) != queue
        return is_elsewhere and schedule.record.declared_at is not None

    async def _give_up(self, schedule: Schedule, queue: str) -> int:
        """Remove it from this queue once the new queue has it; until then, wait."""
        _, found = await read(self._engine, self._queue_of[schedule.name], [schedule.name])
        if not found:
            return _MOVING_US
        await give_up(self._engine, queue, schedule.name, schedule.version)
        return 0

    async def _fire_all(self, firer: Firer, due: Sequence[Stored], now: int) -> list[int]:
        """Fire one instant of each due schedule; returns after how long to check each again.

        In random order, so that processes that check at the same moment fire different schedules.
        """
        waits: list[int] = []
        for stored in random.sample(due, len(due)):
            try:
                schedule = Schedule.of(stored)
                if self._has_moved(schedule, firer.queue):
                    waits.append(await self._give_up(schedule, firer.queue))
                else:
                    waits.append(await firer.fire(schedule, now))
            except FaenaError as error:
                if self._engine.wire.is_closed:
                    raise
                _log.warning("could not fire schedule %s, trying again: %s", stored.name, error)
                waits.append(round(_AFTER_ERROR_S * 1e6))
        return waits
