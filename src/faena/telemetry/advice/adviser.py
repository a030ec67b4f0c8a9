"""Reads what advice is made of: statistics, the snapshot, settings in force, recorded arrivals."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from faena.engine.settings import as_declared, read_settings
from faena.errors import ConfigError
from faena.options import Order, QueueOptions
from faena.options.settings import Settings
from faena.telemetry.advice.event_arrivals import Wanted, exact_arrivals
from faena.telemetry.advice.judgement import Capacity, judge
from faena.telemetry.advice.queue_advice import QueueAdvice
from faena.telemetry.advice.recorded import Recorded
from faena.telemetry.advice.simulation import Report
from faena.telemetry.advice.what_if import Change, Present, WhatIf, what_if
from faena.telemetry.snapshot import QueueSnapshot
from faena.telemetry.statistics_reader import reader_of
from faena.tenancy.shares import shares_of
from faena.tenancy.tenants import weights_of

if TYPE_CHECKING:
    from faena.runtime.connections import Runtime

_MINUTE_US: Final = 60_000_000
_HOUR_US: Final = 60 * _MINUTE_US
_BY_MINUTE_US: Final = 2 * _HOUR_US
"""Up to this window, the busiest minute is looked for; above, the busiest hour."""
_SHARES_KEPT: Final = 59
"""Minutes."""


class Adviser:
    """One queue of an app."""

    def __init__(self, runtime: Runtime, options: QueueOptions, seen: QueueSnapshot) -> None:
        self._runtime, self._options, self._seen = runtime, options, seen
        self._queue = seen.queue

    async def advice(self, window_us: int) -> QueueAdvice:
        """What the last `window_us` say."""
        reader = await reader_of(self._runtime.engine, self._runtime.routers, self._queue)
        found = await reader.window(window_us, None)
        step_us = _MINUTE_US if window_us <= _BY_MINUTE_US else _HOUR_US
        series = await reader.series(window_us, step_us, None)
        return judge(found, series, self._seen, self._capacity(await self._settings()))

    async def what_if(self, window_us: int, change: Change, report: Report) -> WhatIf:
        """The arrivals of the last `window_us`, as it is and with a change."""
        settings = await self._settings()
        capacity = self._capacity(settings)
        _check_slots(change.slots, capacity.max_running, self._options.order)
        if change.weights is not None:
            _check_lanes(self._queue, is_fair=self._options.is_fair)
        weights = await self._weights()
        recorded = await self._recorded(window_us, weights, capacity)
        present = Present(
            objective_s=capacity.objective_us / 1e6,
            slots=capacity.slots(self._seen.slots),
            has_workers=self._seen.slots > 0,
            limits=settings.limits,
            tenant_limits=settings.tenant_limits,
            tenant_most=1 if self._options.order is Order.TENANT else settings.tenant_max_running,
            weights=weights,
            by_time=settings.fair == "time",
        )
        # Seconds of calculation: the event loop goes on with its work meanwhile.
        return await asyncio.to_thread(what_if, recorded, present, change, report)

    async def _settings(self) -> Settings:
        conf = (await self._runtime.inspector.overview(self._queue)).settings
        if "version" not in conf:  # not declared on the server yet
            conf = as_declared(self._options, conf)
        return read_settings(conf, is_fair=self._options.is_fair)

    def _capacity(self, settings: Settings) -> Capacity:
        is_one = self._options.order is Order.QUEUE
        return Capacity(
            concurrency=self._options.concurrency,
            objective_us=self._options.objective_us,
            max_running=1 if is_one else settings.max_running,
            limits=settings.limits,
            is_ordered=self._options.order is not Order.NONE,
        )

    async def _weights(self) -> dict[str, float]:
        return await weights_of(self._runtime, self._queue) if self._options.is_fair else {}

    async def _recorded(
        self, window_us: int, weights: dict[str, float], capacity: Capacity
    ) -> Recorded:
        engine, routers = self._runtime.engine, self._runtime.routers
        reader = await reader_of(engine, routers, self._queue)
        found = await reader.window(window_us, None)
        series = await reader.series(window_us, _MINUTE_US, None)
        waiting, is_ordered = capacity.waiting(self._seen.counts), capacity.is_ordered
        window = Wanted(self._queue, found.since, found.until, waiting, is_ordered)
        exact = await exact_arrivals(engine, routers, window)
        mix = await self._mix(reader.shards, window_us, weights) if self._options.is_fair else {}
        return Recorded(found, series.points, exact, waiting, mix, is_ordered)

    async def _mix(
        self, shards: list[str], window_us: int, weights: dict[str, float]
    ) -> dict[str, float]:
        """How the jobs of the last hour divide among tenants: started ones, and waiting ones."""
        minutes = min(_SHARES_KEPT, window_us // _MINUTE_US)
        started = defaultdict[str, float](float)
        for minute in await shares_of(self._runtime.engine, shards, minutes):
            for tenant, given in minute.given.items():
                started[tenant] += given * weights.get(tenant, 1.0)
        for tenant in self._seen.tenants:
            started[tenant.tenant] += tenant.live - tenant.running
        return {tenant: number for tenant, number in started.items() if number > 0}


def _check_slots(slots: int | None, most: int | None, order: Order) -> None:
    if slots is None or most is None or slots <= most:
        return
    why = "an order of the whole queue" if order is Order.QUEUE else "the queue's max_running"
    raise ConfigError(
        f"slots must be at most {most}, because of {why}, got {slots}", field="slots", value=slots
    )


def _check_lanes(queue: str, *, is_fair: bool) -> None:
    if not is_fair:
        raise ConfigError(
            f"weights need a queue in which tenants have lanes; those of queue {queue} have none",
            field="weights",
        )
