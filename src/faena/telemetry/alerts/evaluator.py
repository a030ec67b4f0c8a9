"""Judges all alerts, in turn with other processes: a service of every worker.

A turn is given by the broker, at most one in an interval. Its end is one script call, which changes
the states of alerts and writes notices, and only for whoever has the turn: two evaluators cannot
both act. A notice stays on the broker until its job is enqueued, under the notice's id; so the next
turn sends what a killed evaluator has not, and never a second time.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from faena.engine.calls.alerts import QUIET, AlertCalls, Notice, Reading, Totals, Turn
from faena.errors import FaenaError
from faena.options.alerts import Alerts
from faena.telemetry.alerts.broker_readings import broker_readings, dead_readings
from faena.telemetry.alerts.judgement import Bounds, Judgement
from faena.telemetry.alerts.queue_readings import Before, Watched, queue_readings, totals_of
from faena.telemetry.snapshot import QueueSnapshot, Snapshot

Dead = Mapping[str, tuple[float, Bounds, str]]

_AFTER_ERROR_S: Final = 5.0
_SPREAD: Final = 0.1
"""Programs wait up to this much longer, each its own time, so that turns pass around."""

_log = logging.getLogger("faena.alerts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where an evaluator reads, and where its notices go."""

    app: str
    watched: Mapping[str, Watched]
    snapshot: Callable[[], Awaitable[Snapshot]]
    dead: Callable[[Snapshot], Awaitable[Dead]]
    queue: str
    """That of notices."""
    enqueue: Callable[[str, Notice], Awaitable[object]]
    """Make a job of a notice, once for each id."""


def live(queue: QueueSnapshot) -> int:
    """Jobs that wait or run; those that are to start later change nothing until then."""
    return sum(queue.counts[state] for state in ("ready", "blocked", "running"))


class Evaluator:
    """The evaluator of one process."""

    def __init__(
        self, calls: Callable[[str], AlertCalls], options: Alerts, sources: Sources
    ) -> None:
        """`calls` makes the calls of a set of rules."""
        self._options, self._sources = options, sources
        self._judgement = Judgement(options)
        self._calls = calls(_digest(options, sources))
        self.on_notices: Callable[[], None] = lambda: None
        """Called after a turn if there are notices to send."""

    async def run(self) -> None:
        """Judge whenever it is this program's turn, until cancelled."""
        await asyncio.sleep(random.random() * self._options.interval_us / 1e6 * _SPREAD)
        while True:  # noqa: ASYNC110 - time is what it waits for
            await asyncio.sleep(await self._try() * (1 + random.random() * _SPREAD))

    async def _try(self) -> float:
        """A turn whose errors must not end the worker; returns how long to wait."""
        try:
            return await self.run_once()
        except FaenaError as error:
            _log.warning("alerts are judged later: %s", error)
        except Exception:  # noqa: BLE001 - the border of a service
            _log.exception("alerts are judged later")
        return _AFTER_ERROR_S

    async def run_once(self) -> float:
        """Judge all alerts if it is this program's turn; returns how long to wait."""
        begun = await self._calls.begin(secrets.token_hex(10), list(self._sources.watched))
        if isinstance(begun, int):
            return begun / 1e6
        seen = await self._sources.snapshot()
        readings = [one for one in await self._read(seen, begun) if self._is_told(one, begun)]
        totals = {
            one.queue: totals_of(one) for one in seen.queues if one.queue in self._sources.watched
        }
        wait_us = self._options.interval_us
        has_notices = self._has_notices(seen)
        if not readings and not has_notices and self._is_quiet(seen, begun, totals):
            wait_us *= QUIET
        outstanding = await self._calls.evaluate(begun, readings, totals, wait_us)
        if outstanding:
            await self._send(outstanding)
        if outstanding or has_notices:
            self.on_notices()
        return wait_us / 1e6

    def _has_notices(self, seen: Snapshot) -> bool:
        """Also if a retry is to start later: only who serves the queue starts it."""
        own = [one for one in seen.queues if one.queue == self._sources.queue]
        return any(live(one) + one.counts["delayed"] for one in own)

    @staticmethod
    def _is_quiet(seen: Snapshot, turn: Turn, totals: Mapping[str, Totals]) -> bool:
        """Whether nothing waits or runs, and nothing has happened for five minutes."""
        is_idle = not any(map(live, seen.queues)) and not turn.under_way
        return is_idle and all(turn.lately.get(name) == one for name, one in totals.items())

    async def _read(self, seen: Snapshot, turn: Turn) -> list[Reading]:
        found = [*self._of_queues(seen, turn), *broker_readings(self._judgement, seen)]
        if any(self._judgement.has(rule) for rule in ("dead_surge", "dead_many", "dead_old")):
            dead = await self._sources.dead(seen)
            found += dead_readings(self._judgement, self._sources.app, dead)
        return [one for one in found if one is not None]

    def _of_queues(self, seen: Snapshot, turn: Turn) -> Iterator[Reading | None]:
        for queue in seen.queues:
            if queue.queue in self._sources.watched:
                before = Before(turn.lately.get(queue.queue), turn.hour_ago.get(queue.queue))
                watched = self._sources.watched[queue.queue]
                yield from queue_readings(self._judgement, queue, watched, before)

    @staticmethod
    def _is_told(reading: Reading, turn: Turn) -> bool:
        """What is far below its bounds, and was not above, need not be sent."""
        bounds = [one for one in (reading.warning, reading.critical) if one >= 0]
        return reading.value >= min(bounds) or reading.about in turn.under_way

    async def _send(self, notices: Mapping[str, Notice]) -> None:
        """One that cannot become a job now is left for a later turn."""
        done: list[str] = []
        try:
            for name, notice in sorted(notices.items(), key=lambda one: (one[1].at, one[0])):
                await self._sources.enqueue(name, notice)
                done.append(name)
        finally:
            if done:
                await self._calls.sent(done)


def _digest(options: Alerts, sources: Sources) -> str:
    """A name for what this program watches, and how."""
    channels: Sequence[object] = [
        (one.name, one.severity, one.subjects, one.rules) for one in options.channels
    ]
    rules = sorted((name, repr(rule)) for name, rule in options.settled.items())
    watched = sorted((name, repr(one)) for name, one in sources.watched.items())
    said = repr((sources.app, channels, rules, sorted(options.bounds.items()), watched))
    return hashlib.sha256(said.encode()).hexdigest()[:16]
