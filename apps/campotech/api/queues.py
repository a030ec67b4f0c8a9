"""What the queues need: how long work waited and took, how many slots are right, by kind of work.

Kinds of work are named as the web application does, and as `queue/task` where it has no name. What
slots are in use, and so the status and the advice, is that of their queue: its tasks share them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Self

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from apps.campotech.api.answer import Answer
from apps.campotech.api.caller import administrator, system_of
from apps.campotech.api.problem import answers
from apps.campotech.system import System
from apps.campotech.tiers import DISPATCH
from faena import QueueAdvice, TaskAdvice

router: Final = APIRouter(
    prefix="/api/admin",
    tags=["administration"],
    dependencies=[Depends(administrator)],
    responses=answers(401, 503),
)
_NAMES: Final = {(kind.queue, kind.task): name for name, kind in DISPATCH.items()}
_CRITICAL, _WARNING, _LATE_MS = 0.9, 0.7, 30_000.0


class JobTimes(Answer):
    """How long the attempts of a window waited and took, in milliseconds; 0 without any."""

    count: int = 0
    avg_wait_time: float = 0
    avg_process_time: float = 0
    p50_wait_time: float = 0
    p50_process_time: float = 0
    p95_wait_time: float = 0
    p95_process_time: float = 0
    p99_wait_time: float = 0
    p99_process_time: float = 0

    @classmethod
    def of(cls, seen: TaskAdvice | None) -> Self:
        """Those of a task; None: it had no attempts."""
        if seen is None:
            return cls()
        wait, run = seen.wait, seen.run
        return cls(
            count=seen.count,
            avg_wait_time=_ms(wait.mean_us),
            avg_process_time=_ms(run.mean_us),
            p50_wait_time=_ms(wait.p50_us),
            p50_process_time=_ms(run.p50_us),
            p95_wait_time=_ms(wait.p95_us),
            p95_process_time=_ms(run.p95_us),
            p99_wait_time=_ms(wait.p99_us),
            p99_process_time=_ms(run.p99_us),
        )


class Optimization(Answer):
    """Little's law for the last hour. What is not known is 0."""

    current_concurrency: int
    """Slots of the queue, in all workers."""
    recommended_concurrency: int
    """Slots of which this work would use 70 %; 0 if fewer than a hundred attempts began."""
    arrival_rate: float
    """λ: attempts that became ready, per second."""
    avg_service_time: float
    """1/μ, in seconds."""
    current_utilization: float
    """The part of the queue's slots that this work has in use; above 1, what waits grows."""

    @classmethod
    def of(cls, queue: QueueAdvice, seen: TaskAdvice | None) -> Self:
        """That of a task of a queue; None: it had no attempts."""
        return cls(
            current_concurrency=queue.slots,
            recommended_concurrency=(seen and seen.recommended_slots) or 0,
            arrival_rate=(seen and seen.arrival_rate) or 0,
            avg_service_time=(seen and seen.service_s) or 0,
            current_utilization=(seen and seen.utilization) or 0,
        )


class JobMetrics(Answer):
    """One kind of work."""

    queue: str
    task: str
    last_24h: Annotated[JobTimes, Field(alias="last24h")]
    optimization: Optimization
    status: Literal["healthy", "warning", "critical"]
    """critical: more than 90 % of the queue's slots are in use; warning: more than 70 %, or 5 % of
    the day's attempts waited for more than 30 s."""
    advice: tuple[str, ...]
    """What was found of the queue in the last hour and what to do about it, in sentences."""


class QueueMetrics(Answer):
    """All kinds of work."""

    timestamp: datetime
    queues: dict[str, JobMetrics]


@router.get("/queue-metrics")
async def queue_metrics(request: Request) -> QueueMetrics:
    """How long each kind of work waited and took within a day, how many slots it needs by Little's
    law, and what to do."""
    system = system_of(request)
    hour = {one.queue: one for one in await system.app.advice(window="1h")}
    day = {one.queue: one for one in await system.app.advice(window="24h")}
    return QueueMetrics(timestamp=datetime.now(UTC), queues=dict(_kinds(system, hour, day)))


def _kinds(
    system: System, hour: dict[str, QueueAdvice], day: dict[str, QueueAdvice]
) -> Iterator[tuple[str, JobMetrics]]:
    for name, queue in system.queues.items():
        lately = {one.task: one for one in hour[name].tasks}
        today = {one.task: one for one in day[name].tasks}
        for task in queue.tasks:
            times = JobTimes.of(today.get(task))
            yield (
                _NAMES.get((name, task), f"{name}/{task}"),
                JobMetrics(
                    queue=name,
                    task=task,
                    last_24h=times,
                    optimization=Optimization.of(hour[name], lately.get(task)),
                    status=status_of(hour[name], times),
                    advice=hour[name].words,
                ),
            )


def status_of(hour: QueueAdvice, times: JobTimes) -> Literal["healthy", "warning", "critical"]:
    """Slots are those of the last hour, waits those of the day."""
    used = (hour.utilization or 0) if hour.is_enough else 0
    if used > _CRITICAL:
        return "critical"
    return "warning" if used > _WARNING or times.p95_wait_time > _LATE_MS else "healthy"


def _ms(us: float | None) -> float:
    return (us or 0) / 1e3
