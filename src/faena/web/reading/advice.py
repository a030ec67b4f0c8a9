"""How many slots queues need, what it would be with others, and what autoscalers read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from faena.limits import Limit
from faena.telemetry.advice.queue_advice import QueueAdvice
from faena.telemetry.advice.replay import WhatIf
from faena.telemetry.advice.scaling import Scaling
from faena.telemetry.statistics import Timing
from faena.web.answer import Refusal, not_found
from faena.web.reading.reading import Limited, Many, Reading, Rows, Wanted

_DAY: Final = "24h"
_CRITICAL: Final = 0.9
_WARNING: Final = 0.7
_SLOW_US: Final = 30_000_000
_PART: Final = 10


class Window(msgspec.Struct, forbid_unknown_fields=True):
    """Which queues and which time are meant."""

    queue: str | None = None
    """Only this one; none: all."""
    window: str = "1h"
    """What counts: 1m to 30d."""
    limit: Limited = _PART
    cursor: str | None = None


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """What would be different."""

    slots: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """Of all workers together."""
    limit: list[str] = []
    """Limits instead of the queue's, such as 100/min."""
    no_limits: bool = False
    """Without the queue's limits."""
    weight: list[str] = []
    """Other weights of tenants, such as acme=3."""
    window: str = "1h"
    """What is replayed: 1m to 1d."""


class Page(msgspec.Struct, forbid_unknown_fields=True):
    """Which queues are meant."""

    limit: Limited = _PART
    cursor: str | None = None


class LastDay(msgspec.Struct, frozen=True):
    """What happened to the jobs of a queue in 24 hours."""

    started: int
    completed: int
    failed: int
    error_rate: float | None
    wait: Timing
    run: Timing


class QueueMetrics(msgspec.Struct, frozen=True):
    """A queue's last day, and how many slots would be right."""

    last24h: LastDay
    optimization: QueueAdvice
    status: Literal["healthy", "warning", "critical"]
    """critical: over 90 % of its slots in use; warning: over 70 %, or 5 % wait over 30 s."""


class Metrics(msgspec.Struct, frozen=True):
    """All queues, for pages that show how they do."""

    timestamp: datetime
    queues: Mapping[str, QueueMetrics]
    cursor: str | None


async def _advice(wanted: Wanted) -> Rows:
    names = list(wanted.app.queues)
    if wanted.given.queue is not None:
        if wanted.given.queue not in wanted.app.queues:
            raise not_found(f"queue {wanted.given.queue}")
        names = [wanted.given.queue]
    page = wanted.page(names, str, "advice")
    found = [await _about(wanted, name, wanted.given.window) for name in page.items]
    return Rows(found, page.cursor)


async def _about(wanted: Wanted, name: str, window: str) -> QueueAdvice:
    (found,) = await wanted.app.advice(name, window=window)
    return found


async def _what_if(wanted: Wanted) -> WhatIf:
    given = wanted.given
    if given.limit and given.no_limits:
        raise Refusal(422, "invalid", "limit and no_limits must not be given together")
    limits = [_limit(one) for one in given.limit] if given.limit or given.no_limits else None
    weights = dict(_weight(one) for one in given.weight) or None
    if given.slots is None and limits is None and weights is None:
        words = "one of slots, limit, no_limits or weight must be given"
        raise Refusal(422, "invalid", words)
    return await wanted.app.what_if(
        wanted.queue, slots=given.slots, limits=limits, weights=weights, window=given.window
    )


def _limit(text: str) -> Limit:
    return Limit(text)


def _weight(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        words = "weight must be a tenant and a number such as acme=3"
        raise Refusal(422, "invalid", words) from None


async def _scaling(wanted: Wanted) -> Scaling:
    return await wanted.app.scaling()


async def _metrics(wanted: Wanted) -> Mapping[str, Any]:
    page = wanted.page(wanted.app.queues, str, "queue metrics")
    found = await asyncio.gather(*(_metrics_of(wanted, name) for name in page.items))
    return {
        "timestamp": datetime.fromtimestamp(time.time(), UTC).isoformat(),
        "queues": dict(zip(page.items, found, strict=True)),
        "cursor": page.cursor,
    }


async def _metrics_of(wanted: Wanted, name: str) -> Mapping[str, Any]:
    found, advice = await asyncio.gather(
        wanted.app.queues[name].statistics(_DAY), _about(wanted, name, _DAY)
    )
    day = found.together()
    return {
        "last24h": {
            "started": day.started,
            "completed": day.completed,
            "failed": day.retried + day.dead,
            "error_rate": day.error_rate,
            "wait": day.wait.to_dict(),
            "run": day.run.to_dict(),
        },
        "optimization": advice.to_dict(),
        "status": _status(advice.utilization or 0.0, day.wait.p95_us or 0.0),
    }


def _status(used: float, late_us: float) -> str:
    if used > _CRITICAL:
        return "critical"
    return "warning" if used > _WARNING or late_us > _SLOW_US else "healthy"


READINGS: Final = (
    Reading(
        name="advice.list",
        path="/advice",
        text="How many slots queues need, by what came in a window.",
        answers=Many(QueueAdvice),
        read=_advice,
        arguments=Window,
    ),
    Reading(
        name="advice.what-if",
        path="/queues/{queue}/what-if",
        text="Replay what came in a window, as it is and with other slots, limits or weights.",
        answers=WhatIf,
        read=_what_if,
        arguments=Change,
    ),
    Reading(
        name="scaling.show",
        path="/scaling",
        text="The signal that autoscalers read.",
        answers=Scaling,
        read=_scaling,
    ),
    Reading(
        name="queue-metrics",
        path="/queue-metrics",
        text="The last day of queues, how many slots would be right, and how they do.",
        answers=Metrics,
        read=_metrics,
        arguments=Page,
    ),
)
