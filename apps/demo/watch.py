"""Looks on: the queues as they are, and what upstreams, features and budgets tell of themselves."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from apps.stage.stage import Stage
from faena import Event

_KINDS: Final = (
    "upstream_open",
    "upstream_closed",
    "upstream_panic",
    "feature_healthy",
    "feature_degraded",
    "feature_offline",
    "budget_threshold",
    "budget_used_up",
    "rescued",
    "dead",
)
_HEALTHY: Final = "feature_healthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One queue at one moment."""

    queue: str
    counts: dict[str, int]
    ended: int
    """Jobs that have come to an end since it began."""
    hold: str


@dataclass(slots=True)
class Seen:
    """What was told."""

    degraded_s: dict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    since: dict[str, float] = field(default_factory=dict[str, float])
    openings: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    rescued: int = 0
    dead: int = 0

    def degraded(self, now: float) -> dict[str, float]:
        """Seconds that each feature was not well, until now."""
        total = dict(self.degraded_s)
        for name, since in self.since.items():
            total[name] = total.get(name, 0.0) + now - since
        return total


class Watch:
    """One pair of eyes."""

    def __init__(self, stage: Stage, tell: Callable[[str], None]) -> None:
        self._stage, self._tell = stage, tell
        self.seen = Seen()

    async def look(self) -> list[Row]:
        """All queues."""
        rows: list[Row] = []
        for queue in self._stage.system.queues.values():
            view = await queue.overview()
            hold = ", ".join(one.reason for one in view.holds)
            ended = view.enqueued - view.live
            rows.append(Row(queue=queue.name, counts=view.counts, ended=ended, hold=hold))
        return rows

    async def listen(self) -> None:
        """Follow the events until cancelled."""
        async for event in self._stage.system.app.events(kinds=_KINDS):
            self._note(event)

    def _note(self, event: Event) -> None:
        name, about = event.name, event.value or ""
        match name:
            case "rescued":
                self.seen.rescued += 1
            case "dead":
                self.seen.dead += 1
            case "upstream_open":
                self.seen.openings[about] += 1
                self._tell(f"{about} is left alone: {event.reason or 'it fails'}")
            case "upstream_closed":
                self._tell(f"{about} is called again")
            case "upstream_panic":
                self._tell(f"{about} is not called until an operator says so: {event.reason}")
            case "budget_threshold" | "budget_used_up":
                self._tell(f"budget of {about}: {event.reason or 'used up'}")
            case "gap":
                pass  # of a busy queue: upstreams, features and budgets have a stream of their own
            case _:
                self._feature(name, about)

    def _feature(self, name: str, feature: str) -> None:
        now = time.monotonic()
        if name == _HEALTHY:
            since = self.seen.since.pop(feature, now)
            self.seen.degraded_s[feature] += now - since
        else:
            self.seen.since.setdefault(feature, now)
        self._tell(f"{feature} is {name.removeprefix('feature_')}")
