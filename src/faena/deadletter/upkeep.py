"""Automatic retries and alerts, which workers do for the dead-letter desk beside their jobs.

Any number of workers may do this at the same time: a dead job is retried once, and an alert is sent
once an hour. Each worker retries the dead jobs of its own queues. Alerts are about all queues of
the app together, and are sent in the first of them by name.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from faena.deadletter.desk import Dealt, Desk
from faena.deadletter.queues import HOUR_US, DeskQueues
from faena.engine.calls.deadletter import SLICE, DeskCalls, Numbers, Position
from faena.errors import FaenaError, ScriptError
from faena.options import DeadLetters

EVERY_S: Final = 60.0
_SOON_S: Final = 10.0
"""The latest first check after the start of a worker."""

_log = logging.getLogger("faena.deadletter")


class Upkeep:
    """Retries the dead jobs of some queues, and sends alerts about those of all queues."""

    def __init__(
        self,
        desk_queues: DeskQueues,
        options: DeadLetters,
        queues: Sequence[str],
        *,
        every_s: float = EVERY_S,
    ) -> None:
        self._desk_queues = desk_queues
        self._desk = Desk(desk_queues)
        self._options = options
        self._queues = queues
        self._every_s = every_s
        self._seen: dict[str, Sequence[Numbers]] = {}
        """The numbers of the last check, for `send_alerts`: an idle worker sends few commands."""

    async def run(self) -> None:
        """Look again and again; what fails is tried again at the next look."""
        await asyncio.sleep(min(_SOON_S, self._every_s) * random.random())
        while True:
            for queue in self._queues:
                await _try(f"queue {queue}", partial(self.look_after, queue))
            await _try("all queues", self.send_alerts)
            await asyncio.sleep(self._every_s)

    async def look_after(self, queue: str) -> list[str]:
        """Retry the dead jobs that are due; returns the ids of the new jobs."""
        made: list[str] = []
        while True:
            parts = await self._desk_queues.steady(queue, _numbers)
            due = [job for part in parts for job in part.due_now]
            if not due or not self._options.auto_retry:
                self._seen[queue] = parts
                break
            dealt = await self._retry(queue, due)
            made += [one.new_id for one in dealt if one.new_id]
            if not any(one.new_id for one in dealt):
                break
        return made

    async def _retry(self, queue: str, due: Sequence[str]) -> list[Dealt]:
        """Retry jobs; one that cannot be retried must not prevent the others."""
        try:
            return await self._desk.retry_many_as_new(
                queue, due, by="faena", reason="automatic retry", action="auto"
            )
        except ScriptError as error:
            if len(due) == 1:
                _log.error("dead job %s of %s cannot be retried: %s", due[0], queue, error)
                return []
        return [dealt for job in due for dealt in await self._retry(queue, [job])]

    async def send_alerts(self) -> list[str]:
        """Send alerts about all queues; returns the names of those sent now."""
        queues = self._desk_queues.chosen(None)
        parts, self._seen = self._seen, {}
        for queue in queues:
            if queue not in parts:
                parts[queue] = await self._desk_queues.anywhere(queue, _numbers)
        conditions = self._conditions(parts)
        if not conditions:
            return []

        async def alert(calls: DeskCalls, shards: Sequence[str]) -> list[str]:
            return await calls.alert(shards[0], conditions)

        told = await self._desk_queues.anywhere(min(queues), alert)
        for name in told:
            _log.warning("alert about dead jobs of all queues: %s %s", name, conditions[name])
        return told

    def _conditions(self, by_queue: Mapping[str, Sequence[Numbers]]) -> dict[str, str]:
        """Event name → detail, for every alert whose condition is true."""
        options, told = self._options, dict[str, str]()
        parts = [part for some in by_queue.values() for part in some]
        new = sum(part.new for part in parts)
        waiting = sum(part.statuses["pending"] for part in parts)
        queue, oldest = _oldest(by_queue)
        if options.alert_new is not None and new > options.alert_new:
            told["dead_surge"] = str(new)
        if options.alert_waiting is not None and waiting > options.alert_waiting:
            told["dead_many"] = str(waiting)
        age_us = options.alert_age_us
        if age_us is not None and oldest and parts[0].now - float(oldest.score) > age_us:
            told["dead_old"] = f"{queue}/{oldest.id}"
        return told


async def _try(whose: str, look: Callable[[], Awaitable[object]]) -> None:
    """Run a check; its errors must not end the worker."""
    try:
        await look()
    except FaenaError as error:
        _log.warning("dead jobs of %s could not be checked: %s", whose, error)
    except Exception:  # noqa: BLE001 - the border of a service
        _log.exception("dead jobs of %s could not be checked", whose)


def _oldest(by_queue: Mapping[str, Sequence[Numbers]]) -> tuple[str, Position | None]:
    """The oldest pending job, and its queue."""
    found = [
        (queue, part.oldest) for queue, some in by_queue.items() for part in some if part.oldest
    ]
    return min(found, key=lambda one: one[1].key(), default=("", None))


async def _numbers(calls: DeskCalls, shards: Sequence[str], _epoch: int = 0) -> list[Numbers]:
    return [await calls.numbers(shard, new_us=HOUR_US, due=SLICE) for shard in shards]
