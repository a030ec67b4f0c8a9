"""Advice and replays, made beside the pages that show them: a page waits a moment and shows what is
there, so no request takes as long as a hundred queues or a million jobs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from faena.limits import Limit
from faena.telemetry.advice.queue_advice import QueueAdvice
from faena.telemetry.advice.replay import WhatIf

if TYPE_CHECKING:
    from faena.app import Faena

_FRESH_S: Final = 60.0
_PATIENCE_S: Final = 2.0
"""How long a page waits for what is being made."""
_MOST_KEPT: Final = 40
_MOST_WAITING: Final = 6
_LONGEST_S: Final = 20.0
"""After this a replay is given up: it has too many jobs for a page."""


class TooLong(Exception):
    """A replay has taken too much time."""


class Change(NamedTuple):
    """What is asked about."""

    queue: str
    window: str
    slots: int | None
    limits: tuple[str, ...] | None
    weights: tuple[tuple[str, float], ...] | None


class Advised:
    """The advice for an app's queues, and the replays that people have asked for."""

    def __init__(
        self, app: Faena, patience_s: float = _PATIENCE_S, longest_s: float = _LONGEST_S
    ) -> None:
        self._app, self._patience_s, self._longest_s = app, patience_s, longest_s
        self._rounds: dict[str, _Round] = {}
        self._replays: dict[Change, _Replay] = {}
        self._turn = asyncio.Semaphore(1)

    async def advice(self, window: str) -> tuple[Mapping[str, QueueAdvice], bool]:
        """What is known of each queue, and whether that is all of them."""
        if window not in self._rounds:
            self._rounds[window] = _Round(self._app, window)
        return await self._rounds[window].look(self._patience_s)

    async def replay(self, change: Change) -> WhatIf | int:
        """What it would be; while it is being replayed, how many jobs are done so far.

        Raises TooLong where it cannot be told in reasonable time, or what speaks against it.
        """
        found = self._replays.get(change)
        if found is None or found.is_old():
            waiting = sum(not one.task.done() for one in self._replays.values())
            if waiting >= _MOST_WAITING:
                raise TooLong
            found = self._replays[change] = _Replay(self._app, change, self._turn, self._longest_s)
            self._forget_old()
        await asyncio.wait([found.task], timeout=self._patience_s)
        return found.task.result() if found.task.done() else found.jobs

    async def close(self) -> None:
        """End what is being made."""
        tasks: list[asyncio.Task[Any]] = [one.task for one in self._replays.values()]
        tasks += [one.task for one in self._rounds.values() if one.task is not None]
        for task in tasks:
            task.cancel()
        for replay in self._replays.values():
            replay.give_up()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget_old(self) -> None:
        over = [change for change, one in self._replays.items() if one.task.done()]
        for change in over[: max(0, len(self._replays) - _MOST_KEPT)]:
            del self._replays[change]


class _Round:
    """The advice for all queues over one window: one queue after another."""

    def __init__(self, app: Faena, window: str) -> None:
        self._app, self._window = app, window
        self._found: dict[str, tuple[float, QueueAdvice]] = {}
        self.task: asyncio.Task[None] | None = None

    async def look(self, patience_s: float) -> tuple[Mapping[str, QueueAdvice], bool]:
        stale = self._stale()
        if stale and (self.task is None or self.task.done()):
            self.task = asyncio.create_task(self._run(stale))
            self.task.add_done_callback(_seen)
        if self.task is not None:
            await asyncio.wait([self.task], timeout=patience_s)
            if self.task.done():
                self.task.result()
        known = {name: one for name, (_, one) in self._found.items()}
        return known, len(known) == len(self._app.queues)

    def _stale(self) -> list[str]:
        now = time.monotonic()
        old = [name for name, (at, _) in self._found.items() if now - at > _FRESH_S]
        return [*(name for name in self._app.queues if name not in self._found), *old]

    async def _run(self, names: list[str]) -> None:
        for name in names:
            (found,) = await self._app.advice(name, window=self._window)
            self._found[name] = (time.monotonic(), found)


class _Replay:
    """One of them."""

    def __init__(
        self, app: Faena, change: Change, turn: asyncio.Semaphore, longest_s: float
    ) -> None:
        self._app, self._change, self._turn, self._longest_s = app, change, turn, longest_s
        self.jobs = 0
        self._until: float | None = None
        self._is_given_up = False
        self._ended = float("inf")
        self.task = asyncio.create_task(self._run())
        self.task.add_done_callback(_seen)

    def is_old(self) -> bool:
        return time.monotonic() - self._ended > _FRESH_S

    def give_up(self) -> None:
        """Its thread ends soon."""
        self._is_given_up = True

    async def _run(self) -> WhatIf:
        change = self._change
        weights = None if change.weights is None else dict(change.weights)
        try:
            limits = None if change.limits is None else [Limit(one) for one in change.limits]
            async with self._turn:
                self._until = time.monotonic() + self._longest_s
                return await self._app.what_if(
                    change.queue,
                    slots=change.slots,
                    limits=limits,
                    weights=weights,
                    window=change.window,
                    report=self._report,
                )
        finally:
            self._ended = time.monotonic()

    def _report(self, jobs: int) -> None:
        """Called in the thread of the replay."""
        self.jobs = jobs
        if self._is_given_up or (self._until is not None and time.monotonic() > self._until):
            raise TooLong


def _seen(task: asyncio.Task[Any]) -> None:
    """Nobody may come back to ask how it ended."""
    if not task.cancelled():
        task.exception()
