"""Which job the running code belongs to: its fields are added to every log line.

A worker binds the job before it calls middleware and handler. What these start (asyncio tasks, the
thread or the process of the handler) has it too; a thread that the handler starts itself has not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final

from faena.job import Job
from faena.telemetry.tracing.trace_header import origin_of

BOUND: Final[ContextVar[Job | Sequence[Job] | None]] = ContextVar("faena_bound", default=None)
"""The running job, or those of a running batch."""

FIELDS: Final = (
    "queue",
    "task",
    "job_id",
    "jobs",
    "tenant",
    "attempt",
    "worker",
    "trace_id",
    "span_id",
)

_API: Final = "opentelemetry.trace"


def bound_fields() -> dict[str, Any]:
    """The fields of the running job, and the current trace; empty outside of both."""
    bound = BOUND.get()
    if bound is None:
        return trace_fields(None)
    if isinstance(bound, Job):
        return {**_of_job(bound), **trace_fields(bound)}
    return {**_of_batch(bound), **trace_fields(None)} if bound else {}


def trace_fields(job: Job | None) -> dict[str, Any]:
    """The current span; without one, the trace that a job was enqueued in."""
    api = sys.modules.get(_API)
    if api is not None:
        context = api.get_current_span().get_span_context()
        if context.is_valid:
            return {
                "trace_id": f"{context.trace_id:032x}",
                "span_id": f"{context.span_id:016x}",
            }
    origin = origin_of(job.headers) if job is not None and job.headers else None
    return {} if origin is None else {"trace_id": origin.trace_id}


def _of_job(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = {"queue": job.queue, "task": job.task, "job_id": job.id}
    if job.tenant is not None:
        found["tenant"] = job.tenant
    found["attempt"] = job.attempt
    if job.worker:
        found["worker"] = job.worker
    return found


def _of_batch(jobs: Sequence[Job]) -> dict[str, Any]:
    """What the jobs of a batch have in common, and how many they are."""
    found = _of_job(jobs[0])
    del found["job_id"], found["attempt"]
    found["jobs"] = len(jobs)
    if len({job.tenant for job in jobs}) > 1:
        found.pop("tenant", None)
    return found
