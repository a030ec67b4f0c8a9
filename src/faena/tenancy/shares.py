"""Each tenant's share of a queue's service by minute, and how long its jobs waited.

The scripts count what each lane starts. This module reads the counts in bounded pages, so those of
the current minute may change between two pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from faena.engine import Engine
from faena.engine.calls.survey import Survey
from faena.tenancy.lanes import tenant_of
from faena.values.view import View

_MINUTE_US: Final = 60_000_000


class Waits(NamedTuple):
    """How long jobs were ready before they started; of jobs started together, one is measured."""

    number: int
    sum_us: int

    @property
    def mean_us(self) -> float | None:
        """None when nothing was measured."""
        return self.sum_us / self.number if self.number else None


class Shares(View, frozen=True, kw_only=True):
    """The tenants' shares of one minute; "" stands for jobs without a tenant."""

    also = ("fairness",)

    at: int
    """The server's instant at which the minute began."""
    is_over: bool
    """False for the current minute."""
    given: Mapping[str, float]
    """Jobs started, divided by the tenant's weight."""
    waits: Mapping[str, Waits] = msgspec.field(default_factory=dict[str, Waits])
    """The waits of the tenants served, from ready to start; in a queue with an order, from
    enqueue to start."""
    throttled_us: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """How much of the minute a tenant had ready jobs and was kept back by its limits, its
    max_running or a hold of its own; absent when it never was."""

    @property
    def fairness(self) -> float | None:
        """Jain's index: 1 if all had the same share, 1/n if one of n had everything; None if no
        tenant was served. It counts only tenants that were served, whatever their demand.
        """
        squares = sum(number * number for number in self.given.values())
        return sum(self.given.values()) ** 2 / (len(self.given) * squares) if squares else None

    def of(self, tenant: str | None) -> float:
        """A tenant's share of the whole: 0 to 1."""
        total = sum(self.given.values())
        return self.given.get(tenant or "", 0.0) / total if total else 0.0


async def shares_of(engine: Engine, shards: Sequence[str], minutes: int) -> list[Shares]:
    """The last full minutes of a queue's shards, oldest first, and the one that runs."""
    now = (await engine.overview(shards[0])).at  # of all: another may be in the next minute
    parts = [await _shares_at(engine, shard, minutes, now) for shard in shards]
    return [_together(minute) for minute in zip(*parts, strict=True)]


def _together(parts: Sequence[Shares]) -> Shares:
    """One minute of all shards; a tenant that has moved was served at two of them."""
    if len(parts) == 1:
        return parts[0]
    given, throttled, waits = Counter[str](), Counter[str](), dict[str, Waits]()
    for part in parts:
        given.update(part.given)
        throttled.update(part.throttled_us)
        for tenant, (number, sum_us) in part.waits.items():
            before = waits.get(tenant, Waits(0, 0))
            waits[tenant] = Waits(before.number + number, before.sum_us + sum_us)
    return msgspec.structs.replace(parts[0], given=given, waits=waits, throttled_us=throttled)


async def _shares_at(engine: Engine, queue: str, minutes: int, now: int) -> list[Shares]:
    survey, this = Survey(engine, queue), now // _MINUTE_US
    parked: dict[str, int] = {}
    async for page in survey.numbers("throttled"):
        parked.update(page)
    return [await _minute(survey, this - back, now, parked) for back in range(minutes, -1, -1)]


async def _minute(survey: Survey, minute: int, now: int, parked: Mapping[str, int]) -> Shares:
    """What was written of a minute, and the part of it for which lanes are parked until now."""
    at, over = minute * _MINUTE_US, (minute + 1) * _MINUTE_US
    given: dict[str, float] = {}
    waits: dict[str, Waits] = {}
    throttled = {lane: min(now, over) - max(since, at) for lane, since in parked.items()}
    async for page in survey.doubles(f"shares:{minute}", 4):
        for lane, (share, number, waited, kept_back) in page.items():
            if share:
                given[tenant_of(lane) or ""] = share / 1000
                waits[tenant_of(lane) or ""] = Waits(int(number), int(waited))
            throttled[lane] = max(0, throttled.get(lane, 0)) + int(kept_back)
    return Shares(
        at=at,
        is_over=over <= now,
        given=given,
        waits=waits,
        throttled_us={tenant_of(lane) or "": us for lane, us in throttled.items() if us > 0},
    )
