"""Whether an attempt falls back, instead of waiting for an upstream or of dying."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from faena.declaring.fallback import TaskFallback, was_handed_over
from faena.engine import envelope
from faena.errors import FaenaError
from faena.outcomes import ErrorRecord, Snoozed, UpstreamUnavailable
from faena.worker.execute.attempt_state import Attempt
from faena.worker.execute.failure import WorkerDied

_SHORTEST_US: Final = 10_000


class Fallen(NamedTuple):
    """Why an attempt fell back."""

    reason: str
    error: BaseException
    record: ErrorRecord | None = None
    """Of an attempt that was used; None where the upstream took no call."""


class SecondAttempt(Attempt):
    """The attempt that runs a fallback, instead of the one that fell back."""

    __slots__ = ("fallback", "fallen", "is_unslotted")

    def __init__(
        self, first: Attempt, fallback: TaskFallback, fallen: Fallen, *, is_unslotted: bool
    ) -> None:
        """`is_unslotted`: the slot is taken until the handler ends, which was given up."""
        super().__init__(first.claim, fallback.handler, first.job, first.timeout_s, first.retry)
        self.fallback = fallback
        self.fallen = fallen
        self.is_unslotted = is_unslotted


HANDED: Final = Fallen(
    "it was handed over before its worker died", WorkerDied("the worker that handed it over died")
)


def refused(attempt: Attempt, error: UpstreamUnavailable) -> Fallen | Snoozed | None:
    """What becomes of a job whose call is refused, by its fallback; None if that has no say."""
    fallback = attempt.handler.fallback
    left_us = fallback and fallback.terms.left_us(error.reason, _waited_us(attempt))
    if left_us is None:
        return None
    if left_us == 0:
        return Fallen(str(error), error)
    wait_us = min(left_us, error.wait_us or left_us)
    words = f"upstream {error.upstream}: {error.reason}"
    return Snoozed(max(_SHORTEST_US, wait_us), words, is_parked=True)


def exhausted(attempt: Attempt, error: BaseException, record: ErrorRecord) -> Fallen | None:
    """Whether a job falls back that would be buried."""
    fallback = attempt.handler.fallback
    if fallback is None or not fallback.terms.ends_attempts:
        return None
    words = f"its attempts are used up: {record.name}: {record.message}"
    return Fallen(words[:1000], error, record)


def _waited_us(attempt: Attempt) -> int:
    """How long the job could have run already; a delay of its own does not count."""
    job, facts = attempt.job, envelope.facts_in(attempt.claim.spec or b"000\n")
    since = max(job.enqueued_us + int(facts.get("delay", 0)), int(facts.get("at", 0)))
    now = job.started_us + round((time.monotonic() - attempt.started) * 1e6)
    return max(0, now - since)


async def handed_before(attempt: Attempt) -> bool:
    """Whether an earlier delivery has handed the job over; if that is unknown, it has not."""
    fallback = attempt.handler.fallback
    try:
        return fallback is not None and await was_handed_over(fallback, attempt.job)
    except FaenaError:
        return False


def may_have_been_handed(attempt: Attempt) -> bool:
    """Whether it is worth a look, where a worker was lost with an earlier delivery."""
    fallback = attempt.handler.fallback
    return fallback is not None and fallback.target is not None
