"""The arrivals of a window as they were recorded: exact instants where events are kept, and before
them the counts of each minute, whose jobs are spread at random within it.

Tenants and tasks are known of the exact ones. The others get those of the last hour's shares, and
run times out of the histogram of the whole queue.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from faena.errors import ConfigError
from faena.telemetry.advice.demand import arrived, entered
from faena.telemetry.advice.event_arrivals import Arrival, Exact
from faena.telemetry.advice.simulation import Arrivals
from faena.telemetry.histogram import Histogram, bounds_of
from faena.telemetry.statistics import QueueStatistics

MOST_JOBS: Final = 3_000_000
_SEED: Final = 1
"""The same window gives the same answer."""


class Recorded(NamedTuple):
    """What is known of a window."""

    found: QueueStatistics
    minutes: Sequence[QueueStatistics]
    exact: Exact
    ready: int
    """Jobs that are ready now."""
    mix: Mapping[str, float]
    """Tenant -> how much of all jobs it has; empty if no tenant is known, "" for none."""


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
    counts = [_came(point) for point in recorded.minutes]
    total = arrived(recorded.found, recorded.ready)
    scale, owed = total / sum(counts) if sum(counts) else 0.0, 0.0
    for point, count in zip(recorded.minutes, counts, strict=True):
        if point.since >= until:
            return
        owed += count * scale
        whole, owed = int(owed + 0.5), owed - int(owed + 0.5)
        instants = (chance.uniform(point.since, point.until) for _ in range(whole))
        yield from sorted((at - origin) / 1e6 for at in instants if at < until)


def _came(point: QueueStatistics) -> int:
    """Jobs that entered in a minute: at once, or because their delay was over."""
    late = ("promoted", "unblocked")
    return entered(point.counters) + sum(point.counters.get(name, 0) for name in late)


def _service(
    found: QueueStatistics, unknown: int, exact: Iterable[Arrival], chance: random.Random
) -> list[float]:
    every = _Drawer(found.together().runs, chance)
    by_task = {task.task: _Drawer(task.runs, chance) for task in found.tasks if task.runs.count}
    known = [by_task.get(one.task or "", every).one() for one in exact]
    return [*every.many(unknown), *known]


class _Drawer:
    """Draws run times as they were recorded."""

    def __init__(self, runs: Histogram, chance: random.Random) -> None:
        counts = runs.counts
        self._bounds = [bounds_of(bucket) for bucket in counts]
        self._sums = list(itertools.accumulate(counts.values()))
        self._chance = chance

    def many(self, number: int) -> list[float]:
        """Several, in seconds."""
        drawn = self._chance.choices(self._bounds, cum_weights=self._sums, k=number)
        between = self._chance.random
        return [(low + (high - low) * between()) / 1e6 for low, high in drawn]

    def one(self) -> float:
        """One, in seconds."""
        return self.many(1)[0]


def _tenants(
    recorded: Recorded, unknown: int, chance: random.Random
) -> tuple[list[int], list[str]]:
    known = [one.tenant or "" for one in recorded.exact.arrivals]
    mix = recorded.mix or {"": 1.0}
    names = sorted({*mix, *known})
    numbers = {name: number for number, name in enumerate(names)}
    drawn = chance.choices(list(mix), weights=list(mix.values()), k=unknown)
    return [numbers[name] for name in [*drawn, *known]], names
