"""Writes the note about a dying job for the dead-letter desk."""

from __future__ import annotations

from faena.deadletter.fingerprint import fingerprint, sample_of
from faena.job import Job
from faena.options import DeadLetters
from faena.outcomes import DeathNote, Discard, ErrorRecord


def death_note(
    record: ErrorRecord, error: BaseException | None, job: Job | None, options: DeadLetters
) -> DeathNote:
    """The facts for the desk, and whether the job may be retried automatically.

    A job that its handler discarded is not retried.
    """
    is_again = not isinstance(error, Discard) and options.retries(record.code, error)
    return DeathNote(
        task=job.task if job else "",
        tenant=(job.tenant or "") if job else "",
        name=record.name,
        code=record.code or "",
        fingerprint=fingerprint(record),
        sample=sample_of(record.message),
        retry_us=options.retry_after_us if is_again else 0,
        most=options.most_retries,
    )
