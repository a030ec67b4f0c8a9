"""Automatic retries and alerts, which workers do for the dead-letter desk beside their jobs.

Any number of workers may do this at the same time: a dead job is retried once, and an alert is sent
once an hour. Each worker retries the dead jobs of its own queues. Alerts are about all queues of
the app together, and are sent in the first of them by name.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from faena.deadletter.conditions import conditions
from faena.deadletter.desk import Dealt, Desk
from faena.deadletter.queues import HOUR_US, DeskQueues
from faena.engine.calls.deadletter import SLICE, DeskCalls, Numbers
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
            parts = await self._desk_queues.steady(queue, read_numbers)
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
                parts[queue] = await self._desk_queues.anywhere(queue, read_numbers)
        found = conditions(self._options, parts)
        true = {name: one.detail for name, one in found.items() if one.is_true}
        if not true:
            return []

        async def alert(calls: DeskCalls, shards: Sequence[str]) -> list[str]:
            return await calls.alert(shards[0], true)

        told = await self._desk_queues.anywhere(min(queues), alert)
        for name in told:
            _log.warning("alert about dead jobs of all queues: %s %s", name, true[name])
        return told


async def _try(whose: str, look: Callable[[], Awaitable[object]]) -> None:
    """Run a check; its errors must not end the worker."""
    try:
        await look()
    except FaenaError as error:
        _log.warning("dead jobs of %s could not be checked: %s", whose, error)
    except Exception:  # noqa: BLE001 - the border of a service
        _log.exception("dead jobs of %s could not be checked", whose)


async def read_numbers(calls: DeskCalls, shards: Sequence[str], _epoch: int = 0) -> list[Numbers]:
    """The numbers of some shards, for retries and alerts."""
    return [await calls.numbers(shard, new_us=HOUR_US, due=SLICE) for shard in shards]
