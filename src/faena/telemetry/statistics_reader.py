"""Reads the statistics of a queue out of the minutes and hours of its shards.

Hours that lie inside the window and are over are read as hours, the rest minute by minute. Minutes
are kept for two days: a window that begins earlier begins with a whole hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from faena.engine import Engine
from faena.engine.calls.statistics import Counted, StatisticsCalls, TaskFacts, Unit
from faena.errors import ConfigError
from faena.sharding.router import Routers
from faena.telemetry.histogram import Histogram
from faena.telemetry.statistics import NOT_EVENTS, QueueStatistics, Series, TaskStatistics
from faena.values.duration import describe

MINUTE_US: Final = 60_000_000
_HOUR_US: Final = 60 * MINUTE_US
_MINUTES_KEPT_US: Final = 47 * _HOUR_US
"""An hour less than they are kept, so that none is removed meanwhile."""
LONGEST_US: Final = 30 * 24 * _HOUR_US
_MOST_POINTS: Final = 2_000


class Part(NamedTuple):
    """What was counted in a minute or an hour, and when that began."""

    at_us: int
    counted: Counted


class StatisticsReader:
    """Reads one queue."""

    def __init__(self, engine: Engine, queue: str, shards: Sequence[str]) -> None:
        """`shards` may include those that are retired."""
        self._calls = StatisticsCalls(engine)
        self._queue, self._shards = queue, shards

    @property
    def shards(self) -> list[str]:
        """Those that are read."""
        return list(self._shards)

    async def window(self, window_us: int, until: int | None) -> QueueStatistics:
        """The last `window_us`, or those before `until`."""
        now, _ = await self._calls.now(self._shards[0])
        until = _end(now, until)
        since = _begin(now, until - window_us, needs_minutes=False)
        return added_up(self._queue, since, until, await self._parts(since, until))

    async def series(self, window_us: int, step_us: int, until: int | None) -> Series:
        """The same, step by step; steps begin at multiples of `step_us`."""
        now, _ = await self._calls.now(self._shards[0])
        until = _end(now, until)
        is_fine = step_us % _HOUR_US != 0
        since = _begin(now, until - window_us, needs_minutes=is_fine)
        since -= since % step_us
        steps = range(since, until, step_us)
        if len(steps) > _MOST_POINTS:
            raise ConfigError(
                f"step must be at least {describe(-(-window_us // _MOST_POINTS))} for a window of "
                f"{describe(window_us)}, got {describe(step_us)}",
                field="step",
            )
        by_step: dict[int, list[Part]] = {at: [] for at in steps}
        for part in await self._parts(since, until, only_minutes=is_fine):
            by_step[part.at_us - part.at_us % step_us].append(part)
        points = tuple(
            added_up(self._queue, at, min(at + step_us, until), parts)
            for at, parts in by_step.items()
        )
        return Series(queue=self._queue, step_us=step_us, points=points)

    async def _parts(self, since: int, until: int, *, only_minutes: bool = False) -> list[Part]:
        found = await asyncio.gather(
            *(self._of(shard, since, until, only_minutes=only_minutes) for shard in self._shards)
        )
        return [part for parts in found for part in parts]

    async def _of(self, shard: str, since: int, until: int, *, only_minutes: bool) -> list[Part]:
        first, last = since // MINUTE_US, (until - 1) // MINUTE_US
        _, counted = await self._calls.now(shard)
        # The hour of the minute that is counted now is not complete; after it, there is nothing.
        over = last // 60 if counted is None else min(last // 60, counted // 60 - 1)
        hours = range(-(-first // 60), min(over, (last + 1) // 60 - 1) + 1)
        if only_minutes or not hours:
            return await self._read(shard, "minute", first, last)
        parts = await asyncio.gather(
            self._read(shard, "minute", first, hours.start * 60 - 1),
            self._read(shard, "hour", hours.start, hours.stop - 1),
            self._read(shard, "minute", hours.stop * 60, last),
        )
        return [part for one in parts for part in one]

    async def _read(self, shard: str, unit: Unit, first: int, last: int) -> list[Part]:
        us = MINUTE_US if unit == "minute" else _HOUR_US
        return [
            Part(one.at * us, one) for one in await self._calls.counted(shard, unit, first, last)
        ]


async def reader_of(engine: Engine, routers: Routers, queue: str) -> StatisticsReader:
    """The reader of a queue with all shards that it has, or had lately."""
    names = await routers.of(queue).names()
    gone = await StatisticsCalls(engine).retired(queue)
    return StatisticsReader(engine, queue, [*dict.fromkeys([*names, *gone])])


def _end(now: int, until: int | None) -> int:
    """The first instant that no longer counts."""
    if until is not None and until < now - LONGEST_US:
        raise ConfigError("until must be within the last 30 days", field="until")
    return now + 1 if until is None else min(until, now + 1)


def _begin(now: int, since: int, *, needs_minutes: bool) -> int:
    since -= since % MINUTE_US
    if since >= now - _MINUTES_KEPT_US:
        return since
    if needs_minutes:
        raise ConfigError(
            "step must be whole hours for a window that begins more than 47 hours ago", field="step"
        )
    return since - since % _HOUR_US


def added_up(queue: str, since: int, until: int, parts: Iterable[Part]) -> QueueStatistics:
    """Some minutes and hours as one."""
    counters: dict[str, int] = {}
    by_task: dict[str, list[TaskFacts]] = {}
    for _, counted in parts:
        for name, number in counted.counters.items():
            if name not in NOT_EVENTS:
                counters[name] = counters.get(name, 0) + number
        for task, facts in counted.tasks.items():
            by_task.setdefault(task, []).append(facts)
    tasks = tuple(_task(queue, name, by_task[name]) for name in sorted(by_task))
    return QueueStatistics(queue=queue, since=since, until=until, counters=counters, tasks=tasks)


def _task(queue: str, name: str, facts: Sequence[TaskFacts]) -> TaskStatistics:
    return TaskStatistics(
        queue=queue,
        task=name,
        started=sum(one.started for one in facts),
        completed=sum(one.completed for one in facts),
        retried=sum(one.retried for one in facts),
        dead=sum(one.dead for one in facts),
        waits=_together(one.waits for one in facts),
        runs=_together(one.runs for one in facts),
        totals=_together(one.totals for one in facts),
    )


def _together(packed: Iterable[Sequence[int]]) -> Histogram:
    return Histogram().merge(Histogram.read(one) for one in packed)
