"""Log lines about failed attempts and dead jobs. They never contain the payload."""

from __future__ import annotations

import logging

from faena.engine import envelope
from faena.engine.scripts import Claim, Exchanged
from faena.outcomes import Buried, ErrorRecord, Outcome, Retried
from faena.telemetry.logging.bound import trace_fields
from faena.values.duration import describe
from faena.worker.execute.attempt_state import Attempt

_log = logging.getLogger("faena.worker")


def log_end(queue: str, claim: Claim, outcome: Outcome | None, attempt: Attempt | None) -> None:
    """Log a failed attempt, or the death of its job, with the traceback."""
    if isinstance(outcome, Retried):
        next_in = describe(max(10_000, round(outcome.delay_us, -4)))
        words, level = f"failed; the next attempt is in {next_in}", logging.WARNING
    elif isinstance(outcome, Buried):
        words, level = "failed, and the job is dead", logging.ERROR
    else:
        return
    task, tenant = _named(claim, attempt)
    most, number = attempt.retry.attempts if attempt else 0, claim.attempts + 1
    what = f"attempt {number} of {most}" if attempt else "reading it"
    if attempt and isinstance(outcome, Buried) and not outcome.has_run:
        what, words, number = "no attempt was made,", "and the job is dead", 0
    _log.log(
        level,
        "%s: %s %s: %s",
        _whose(queue, task or "", claim.id, tenant or ""),
        what,
        words,
        _told(outcome.error),
        extra={
            "queue": queue,
            "task": task,
            "job_id": claim.id,
            "tenant": tenant,
            "attempt": number,
            "max_attempts": most,
            "worker": outcome.error.worker,
            "error": outcome.error.name,
            "code": outcome.error.code,
            "traceback": (outcome.error.stack or "").rstrip() or None,
            **trace_fields(attempt.job if attempt else None),
        },
    )


def _named(claim: Claim, attempt: Attempt | None) -> tuple[str | None, str | None]:
    """Task and tenant; also known if the spec can be read but the payload cannot."""
    if attempt:
        return attempt.job.task, attempt.job.tenant
    spec = envelope.spec_in(claim.spec)
    return (spec.task, spec.tenant) if spec else (None, None)


def log_losses(queue: str, exchanged: Exchanged) -> None:
    """Log the leases that this worker lost, and the jobs that the server buried as poison."""
    if exchanged.lost:
        _log.warning(
            "queue %s: %d leases were lost before they could be settled: %s",
            queue,
            len(exchanged.lost),
            " ".join(exchanged.lost[:10]),
        )
    for loss in exchanged.buried:
        _log.error(
            "%s is dead: it was delivered %d times, and each time its worker died or froze",
            _whose(queue, loss.task, loss.id, loss.tenant),
            loss.number,
            extra={
                "queue": queue,
                "task": loss.task or None,
                "job_id": loss.id,
                "tenant": loss.tenant or None,
                "code": "WORKER_LOST",
            },
        )


def _whose(queue: str, task: str, job_id: str, tenant: str) -> str:
    of = f" of tenant {tenant}" if tenant else ""
    return f"queue {queue}: job {job_id}{f' ({task})' if task else ''}{of}"


def _told(error: ErrorRecord) -> str:
    code = f" [{error.code}]" if error.code else ""
    head = f"{error.name}{code}: {error.message}"
    return f"{head}\n{error.stack.rstrip()}" if error.stack else head
