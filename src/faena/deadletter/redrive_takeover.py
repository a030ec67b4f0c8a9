"""Lets workers drive redrives, because the process that started or drove one may have died.

Every worker of a queue looks for running redrives: immediately when one starts, and now and then.
One worker at a time drives each redrive; the others look again after some seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Sequence
from typing import Final

from faena.deadletter.redrive import Redrives
from faena.errors import FaenaError
from faena.values.shards import queue_of

_EVERY_S: Final = 60.0
_SOON_S: Final = 2.0
"""Between two looks while a redrive may be running: the lease of its driver may expire soon."""

_log = logging.getLogger("faena.deadletter")


class RedriveTakeover:
    """Drives the redrives of some queues that no other process drives."""

    def __init__(
        self,
        redrives: Redrives,
        queues: Sequence[str],
        *,
        every_s: float = _EVERY_S,
        soon_s: float = _SOON_S,
    ) -> None:
        self._redrives = redrives
        self._queues = queues
        self._every_s = every_s
        self._soon_s = soon_s
        self._notified = asyncio.Event()
        self._driving: dict[tuple[str, str], asyncio.Task[None]] = {}

    def notify(self, shard: str, _redrive: str) -> None:
        """A redrive was started or resumed."""
        if queue_of(shard) in self._queues:
            self._notified.set()

    async def run(self) -> None:
        """Look again and again; what fails is tried again at the next look."""
        try:
            while True:
                self._notified.clear()
                is_any = [await self._look(queue) for queue in self._queues]
                wait_s = (self._soon_s if any(is_any) else self._every_s) * (0.8 + random.random())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._notified.wait()
        finally:
            for task in self._driving.values():
                task.cancel()
            await asyncio.gather(*self._driving.values(), return_exceptions=True)

    async def _look(self, queue: str) -> bool:
        """Drive the redrives that no process drives; returns whether any may be running."""
        try:
            found = await self._redrives.under_way(queue)
        except FaenaError as error:
            _log.warning("redrives of queue %s could not be read: %s", queue, error)
            return True
        for redrive in found:
            one = (queue, redrive)
            if one not in self._driving:
                self._driving[one] = asyncio.create_task(self._drive(*one))
                self._driving[one].add_done_callback(lambda _, one=one: self._driving.pop(one))
        return bool(found)

    async def _drive(self, queue: str, redrive: str) -> None:
        try:
            await self._redrives.carry_on(queue, redrive)
        except FaenaError as error:
            _log.warning("redrive %s of queue %s was interrupted: %s", redrive, queue, error)
        except Exception:  # noqa: BLE001 - the border of a service
            _log.exception("redrive %s of queue %s was interrupted", redrive, queue)
