"""The arrivals of a window as they were recorded: exact instants where events are kept, and before
them the counts of each minute, whose jobs are spread at random within it.

Tenants and tasks are known of the exact ones. The others get those of the last hour's shares, and
run times out of the histogram of the whole queue.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from faena.errors import ConfigError
from faena.telemetry.advice.demand import arrived
from faena.telemetry.advice.event_arrivals import Arrival, Exact
from faena.telemetry.advice.simulation import Arrivals
from faena.telemetry.histogram import Histogram, bounds_of
from faena.telemetry.statistics import QueueStatistics

MOST_JOBS: Final = 3_000_000
_LATER: Final = ("promoted", "unblocked")
_AGAIN: Final = ("retried", "snoozed", "limited", "parked")
_READY: Final = ("released", "rescued", "rerun")
_SEED: Final = 1
"""The same window gives the same answer."""


class Recorded(NamedTuple):
    """What is known of a window."""

    found: QueueStatistics
    minutes: Sequence[QueueStatistics]
    exact: Exact
    waiting: int
    """Jobs that have come and wait now."""
    mix: Mapping[str, float]
    """Tenant -> how much of all jobs it has; empty if no tenant is known, "" for none."""
    is_ordered: bool = False
    """Whether jobs wait behind others: they come when they are enqueued, not with their turn."""


def replayable(recorded: Recorded, *, by_tenant: bool) -> tuple[Arrivals, int]:
    """The arrivals with a run time each, and how many have their exact instant."""
    chance = random.Random(_SEED)
    exact = recorded.exact
    spread = list(_spread(recorded, chance))
    number = len(spread) + len(exact.arrivals)
    if number > MOST_JOBS:
        raise ConfigError(
            f"window must be shorter: it has {number:,} arrivals, and at most {MOST_JOBS:,} are "
            f"replayed",
            field="window",
        )
    origin = recorded.found.since
    at = [*spread, *((one.at_us - origin) / 1e6 for one in exact.arrivals)]
    service_s = _service(recorded.found, len(spread), exact.arrivals, chance)
    tenant, names = _tenants(recorded, len(spread), chance) if by_tenant else ([], [])
    return Arrivals(at, service_s, tenant, names), len(exact.arrivals)


def _spread(recorded: Recorded, chance: random.Random) -> Iterator[float]:
    """Instants of what came before the exact ones, in seconds of the window."""
    origin, until = recorded.found.since, recorded.exact.since_us
    later = _LATER[:1] if recorded.is_ordered else _LATER
    now, again = _at_once(recorded.found.counters, later)
    counts = [
        point.counters.get("enqueued", 0) * now
        + _sum(point.counters, _AGAIN) * again
        + _sum(point.counters, (*later, *_READY))
        for point in recorded.minutes
    ]
    total = arrived(recorded.found, recorded.waiting)
    scale, owed = total / sum(counts) if sum(counts) else 0.0, 0.0
    for point, count in zip(recorded.minutes, counts, strict=True):
        if point.since >= until:
            return
        owed += count * scale
        whole, owed = int(owed + 0.5), owed - int(owed + 0.5)
        instants = (chance.uniform(point.since, point.until) for _ in range(whole))
        yield from sorted((at - origin) / 1e6 for at in instants if at < until)


def _at_once(counters: Mapping[str, int], names: Sequence[str]) -> tuple[float, float]:
    """Which part of enqueued jobs, and of those put back, was ready at once.

    As many of them were delayed as were promoted or unblocked; first those that were put back.
    """
    later, again = _sum(counters, names), _sum(counters, _AGAIN)
    enqueued = counters.get("enqueued", 0)
    left = max(0, later - again)
    return (
        max(0.0, 1 - left / enqueued) if enqueued else 0.0,
        max(0.0, 1 - later / again) if again else 0.0,
    )


def _sum(counters: Mapping[str, int], names: Iterable[str]) -> int:
    return sum(counters.get(name, 0) for name in names)


def _service(
    found: QueueStatistics, unknown: int, exact: Sequence[Arrival], chance: random.Random
) -> list[float]:
    every = found.together().runs
    service_s = _drawn(every, unknown + len(exact), chance)
    by_task: dict[str, list[int]] = {}
    for place, one in enumerate(exact, start=unknown):
        by_task.setdefault(one.task or "", []).append(place)
    for task in found.tasks if len(found.tasks) > 1 else ():
        places = by_task.get(task.task, []) if task.runs.count else []
        for place, one_s in zip(places, _drawn(task.runs, len(places), chance), strict=True):
            service_s[place] = one_s
    return service_s


def _drawn(runs: Histogram, number: int, chance: random.Random) -> list[float]:
    """Run times in seconds, in any order: each bucket as often as it was recorded, by proportion.

    Drawn one by one, a few hundred of them would add up to some per cent more or less.
    """
    drawn, count, passed, between = list[float](), runs.count, 0, chance.random
    for bucket, recorded in sorted(runs.counts.items()):
        passed += recorded
        (low, high), wanted = bounds_of(bucket), round(passed * number / count) - len(drawn)
        drawn += [(low + (high - low) * between()) / 1e6 for _ in range(wanted)]
    chance.shuffle(drawn)
    return drawn


def _tenants(
    recorded: Recorded, unknown: int, chance: random.Random
) -> tuple[list[int], list[str]]:
    known = [one.tenant or "" for one in recorded.exact.arrivals]
    mix = recorded.mix or {"": 1.0}
    names = sorted({*mix, *known})
    numbers = {name: number for number, name in enumerate(names)}
    drawn = chance.choices(list(mix), weights=list(mix.values()), k=unknown)
    return [numbers[name] for name in [*drawn, *known]], names
