"""Runs a fallback: the second attempt of a job, instead of the one that fell back.

It is run under the same lease and in the same slot, with a time limit of its own. It ends the job,
unless the queue that it hands the job over to is full.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from faena.declaring.handler import Handler
from faena.engine import envelope
from faena.errors import FallbackFailed, InternalError
from faena.outcomes import Buried, Outcome
from faena.resilience.escalation import Handed, handed_id
from faena.resilience.permits import drop_permits
from faena.telemetry.logging.bound import BOUND
from faena.worker.execute.attempt_state import Attempt
from faena.worker.execute.fallback import Fallen, SecondAttempt, may_have_been_handed
from faena.worker.execute.judge import Judge
from faena.worker.execute.time_limits import TimeLimits

Tell = Callable[[str, str, str, str], Awaitable[None]]
"""Writes an event: its name, the job, its lease, and which fallback was used."""


class End(Protocol):
    """Settles a job."""

    def __call__(
        self, attempt: Attempt, outcome: Outcome | None, /, *, is_abandoned: bool
    ) -> None: ...


class Aid(NamedTuple):
    """What a worker does for fallbacks."""

    keep: Callable[[Attempt], None] | None = None
    """Holds the lease of an attempt whose time begins again."""
    tell: Tell | None = None


class Fallbacks:
    """The second attempts of an executor."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        running: dict[str, Attempt],
        judge: Judge,
        end: End,
        aid: Aid,
    ) -> None:
        self._running, self._judge, self._end, self._aid = running, judge, end, aid
        fallbacks = [one.fallback for one in handlers.values() if one.fallback]
        self._hands_over = any(one.target for one in fallbacks)

    def to_look_at(self, begun: Sequence[Attempt]) -> list[Attempt]:
        """Jobs that may have been handed over by a worker that died then."""
        if not self._hands_over:
            return []
        return [one for one in begun if one.claim.losses and may_have_been_handed(one)]

    def second(
        self, attempt: Attempt, outcome: Outcome | Fallen | None, *, is_abandoned: bool
    ) -> SecondAttempt | None:
        """The attempt that takes the place of one that fell back; None if it did not."""
        is_running = self._running.get(attempt.claim.id) is attempt
        if not (isinstance(outcome, Fallen) and is_running):
            return None
        attempt.disarm()
        drop_permits(attempt, is_running=is_abandoned)
        second = _second(attempt, outcome, is_unslotted=is_abandoned)
        self._running[attempt.claim.id] = second
        return second

    async def run(
        self,
        attempt: SecondAttempt,
        call: Callable[[Attempt], Awaitable[Any]],
        limits: TimeLimits,
    ) -> None:
        """Call it, tell what became of it, and only then settle its job."""
        attempt.task = asyncio.current_task()
        BOUND.set(attempt.job)
        limits.set([attempt])
        if self._aid.keep is not None:
            self._aid.keep(attempt)
        if attempt.is_unslotted and attempt.handler.runner == "thread":
            call = _call_apart  # the handler that was given up may have the last thread
        event = attempt.fallback.event
        outcome: Outcome | None
        try:
            outcome = self._judge.returned(attempt, await call(attempt), is_encoded=False)
        except BaseException as error:  # noqa: BLE001 - the border: a fallback may raise anything
            judged = self._judge.raised(attempt, error)
            outcome = None if isinstance(judged, Fallen) else judged
            event = _event_of(outcome, event)
        try:
            if event and self._aid.tell is not None:
                claim = attempt.claim
                await self._aid.tell(event, claim.id, claim.lease, _used(attempt))
        finally:
            self._end(attempt, outcome, is_abandoned=attempt.is_unslotted)


async def _call_apart(attempt: Attempt) -> Any:
    handler = attempt.handler
    return await asyncio.to_thread(
        handler.function, *handler.arguments(attempt.payload, attempt.job)
    )


def _second(attempt: Attempt, fallen: Fallen, *, is_unslotted: bool) -> SecondAttempt:
    job, fallback = attempt.job, attempt.handler.fallback
    if fallback is None:
        raise InternalError(f"task {job.task} has no fallback")
    handler = fallback.handler
    job.cancelled = False  # that was about the handler
    job.log(f"its fallback {fallback.name} is used: {fallen.reason}")
    second = SecondAttempt(attempt, fallback, fallen, is_unslotted=is_unslotted)
    spec = envelope.read_spec(envelope.body_of(attempt.claim.spec or b""))
    if fallback.is_given_all:
        is_unavailable = fallen.record is None
        second.payload = Handed(bytes(spec.payload), fallen.reason, fallen.record, is_unavailable)
    elif handler.payload is not None:
        second.payload = handler.payload.decode(spec.payload)
    return second


def _used(attempt: SecondAttempt) -> str:
    fallback = attempt.fallback
    return f"{fallback.name} {handed_id(attempt.job)}" if fallback.target else fallback.name


def _event_of(outcome: Outcome | None, event: str) -> str:
    """What is told of a fallback that raised; `event` where that is its way, as for Manual."""
    if not isinstance(outcome, Buried):
        return ""
    return "fallback_failed" if outcome.error.code == FallbackFailed.code else event
