"""What operators were told on the day, and what the pools need: alerts and advice of Faena.

Bounds are those of CampoTech's thresholds. A pool's slots are shared by its queues: what they keep
in use together, by Little's law, says how many are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Final

from apps.campotech import registry
from apps.stage.stage import Stage
from faena import AlertChange, QueueAdvice

_MOST: Final = 1_000
_TARGET: Final = 0.7
"""The part of slots that should be in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """An alert, from when it fired to when it was resolved; seconds count from the first line."""

    rule: str
    subject: str
    severity: str
    """The worst that it was."""
    fired_s: float
    resolved_s: float | None
    """None: it still fires."""
    text: str
    """What was said when it fired, or got worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """All episodes of one alert."""

    episodes: tuple[Episode, ...]

    @property
    def worst(self) -> Episode:
        """The first of those that were critical, if any was."""
        return min(self.episodes, key=lambda one: one.severity != "critical")

    @property
    def resolved_s(self) -> float | None:
        """When the last one was resolved."""
        return self.episodes[-1].resolved_s

    @property
    def lasted_s(self) -> float:
        """All together, without one that still fires."""
        return sum(
            one.resolved_s - one.fired_s for one in self.episodes if one.resolved_s is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNeed:
    """A pool, and how many processes of its size are right."""

    pool: str
    processes: int
    concurrency: int
    in_use: float
    """Slots, on average over the day."""
    recommended_slots: int
    recommended_processes: int
    slowest: str
    """The queue that waited longest."""
    wait_p95_s: float
    words: tuple[str, ...]
    """What Faena advises for the queues of the pool that are not healthy."""

    @property
    def slots(self) -> int:
        """All that it has."""
        return self.processes * self.concurrency

    @property
    def advice(self) -> str:
        """What to do, in a few words."""
        more = self.recommended_processes - self.processes
        if not more:
            return "keep them"
        return f"{more} more" if more > 0 else f"{-more} fewer"


@dataclass(frozen=True, slots=True)
class Told:
    """All of it."""

    episodes: list[Episode]
    pools: list[PoolNeed]

    @property
    def alarms(self) -> list[Alarm]:
        """The episodes, by their alert; the one that fired first comes first."""
        found: dict[tuple[str, str], list[Episode]] = {}
        for one in self.episodes:
            found.setdefault((one.rule, one.subject), []).append(one)
        return [Alarm(episodes=tuple(each)) for each in found.values()]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "alerts": [asdict(one) for one in self.episodes],
            "advice": [asdict(one) for one in self.pools],
        }


async def gather(stage: Stage, began: float, seconds: float) -> Told:
    """Ask the broker. `began` is the instant of the first line, `seconds` how long the day took."""
    history = (await stage.system.app.alerts(history=_MOST)).history
    window = f"{max(1, ceil(seconds / 60))}m"
    advice = {one.queue: one for one in await stage.system.app.advice(window=window)}
    return Told(episodes_of(history, round(began * 1e6)), needs_of(advice, seconds))


def episodes_of(history: Sequence[AlertChange], began_us: int) -> list[Episode]:
    """The alerts of a history, which has the latest change first."""
    ended: list[Episode] = []
    open_ones: dict[tuple[str, str], Episode] = {}
    for change in reversed(history):
        about = change.rule, change.subject
        if change.change == "resolved":
            if about in open_ones:
                resolved_s = (change.at - began_us) / 1e6
                ended.append(replace(open_ones.pop(about), resolved_s=resolved_s))
        elif change.change != "eased":
            open_ones[about] = Episode(
                rule=change.rule,
                subject=change.subject,
                severity=change.severity,
                fired_s=(change.since - began_us) / 1e6,
                resolved_s=None,
                text=change.text,
            )
    return sorted([*ended, *open_ones.values()], key=lambda one: one.fired_s)


def needs_of(advice: Mapping[str, QueueAdvice], seconds: float) -> list[PoolNeed]:
    """What each pool had in use, and needs."""
    return [
        _need(pool, [advice[name] for name in queues], seconds)
        for pool, (*_, queues) in registry.POOLS.items()
    ]


def _need(pool: str, queues: Sequence[QueueAdvice], seconds: float) -> PoolNeed:
    processes, concurrency, *_ = registry.POOLS[pool]
    # A window of advice is whole minutes, in which nothing ran before the day began: what has run
    # is divided by how long the day took.
    in_use = sum(one.count * (one.service_s or 0) for one in queues) / seconds
    slots = max(1, ceil(in_use / _TARGET))
    slowest = max(queues, key=lambda one: one.wait.p95_us or 0)
    return PoolNeed(
        pool=pool,
        processes=processes,
        concurrency=concurrency,
        in_use=in_use,
        recommended_slots=slots,
        recommended_processes=ceil(slots / concurrency),
        slowest=slowest.queue,
        wait_p95_s=(slowest.wait.p95_us or 0) / 1e6,
        words=tuple(_words(queues)),
    )


def _words(queues: Iterable[QueueAdvice]) -> Iterable[str]:
    for one in queues:
        if one.status != "healthy":
            yield from (f"{one.queue}: {sentence}" for sentence in one.words)
