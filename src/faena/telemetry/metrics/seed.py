"""The names that other systems gave to the same numbers: CampoTech, CEP and ZapHub.

Where theirs has a queue's name inside, ours has a label: two queues could have the same name once
dots and dashes are replaced, and a query over all queues needs one name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from faena.telemetry.metrics.metric import Alias

_ANY: Final[Mapping[str, str]] = MappingProxyType({})
_QUEUE: Final = {"queue": "queue"}
_CEP_BOUNDS_S: Final = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0)


def _campotech(name: str, ending: str = "_total", *, only: Mapping[str, str] = _ANY) -> Alias:
    written, exposed = f"queue.{{name}}.{name}", f"queue_{name}{ending}"
    return Alias("CampoTech", written, exposed, ("queue",), _QUEUE, only=only)


def _plain(written: str) -> Alias:
    name = f"{written.replace('.', '_')}_total"
    return Alias("CampoTech", written, name, ("queue",), _QUEUE)


def _processed(status: str) -> tuple[Alias, Alias]:
    fixed, labels = {"status": status}, ("queue", "status")
    return (
        Alias("CEP", "jobs_processed_total", "jobs_processed_total", labels, _QUEUE, fixed),
        Alias(
            "ZapHub",
            "bullmq_jobs_processed_total",
            "bullmq_jobs_processed_total",
            labels,
            _QUEUE,
            fixed,
        ),
    )


def _state(ours: str, theirs: str) -> tuple[Alias, Alias]:
    only = {"state": ours}
    return (
        _campotech(theirs, "", only=only),
        Alias(
            "CEP",
            "queue_length",
            "queue_length",
            ("queue", "state"),
            _QUEUE,
            {"state": theirs},
            only,
        ),
    )


ENQUEUED: Final = (_campotech("enqueued"), _plain("queue.dispatched"))
COMPLETED: Final = (
    _campotech("completed"),
    _plain("queue.job.completed"),
    *_processed("completed"),
)
_FAILED: Final = (_campotech("failed"), _plain("queue.job.failed"), *_processed("failed"))
"""There, an attempt that will be retried counts as failed too."""
RETRIED: Final = (_campotech("retried"), *_FAILED)
DEAD: Final = (_campotech("dlq_added"), *_FAILED)
RESCUED: Final = (_campotech("stalled"), _plain("queue.job.stalled"))
LIMITED: Final = (_campotech("rate_limited"),)
DUPLICATE: Final = (_campotech("idempotent_skip"), _plain("queue.duplicate_prevented"))
REJECTED: Final = (_plain("backpressure.rejected"),)
SLOWED: Final = (_plain("backpressure.delayed"),)
RETRIED_AS_NEW: Final = (_plain("dlq.retried"),)
DISCARDED: Final = (_plain("dlq.discarded"),)

JOBS: Final = (
    *_state("ready", "waiting"),
    *_state("running", "active"),
    *_state("delayed", "delayed"),
)
DEPTH: Final = (Alias("ZapHub", "bullmq_queue_depth", "bullmq_queue_depth", ("queue",), _QUEUE),)
PAUSED: Final = (_campotech("paused", ""),)
WORKERS: Final = (_campotech("workers", ""),)


def _ms(name: str) -> Alias:
    """In milliseconds, as CampoTech measures."""
    return Alias(
        "CampoTech", f"queue.{{name}}.{name}", f"queue_{name}", ("queue",), _QUEUE, factor=1000.0
    )


DURATIONS: Final[Mapping[str, tuple[Alias, ...]]] = {
    "wait": (_ms("wait_time"),),
    "run": (
        _ms("process_time"),
        Alias(
            "CEP",
            "job_duration_seconds",
            "job_duration_seconds",
            ("queue", "job_name"),
            {"queue": "queue", "job_name": "task"},
            bounds_s=_CEP_BOUNDS_S,
        ),
    ),
    "total": (_ms("total_time"),),
}
