"""Turns any ending of an attempt into one outcome.

A user's exception, retry policy or result may fail in any way; there is always an outcome, so that
the slot becomes free.
"""

from __future__ import annotations

import logging
import random
from typing import Any

from faena.deadletter.death_note import death_note
from faena.declaring.fallback import ManualNeeded, NotHandedOver
from faena.declaring.handler import Unfit
from faena.engine.scripts import Claim
from faena.errors import FallbackFailed, PayloadError
from faena.job import Job
from faena.options import DeadLetters
from faena.outcomes import (
    COMPLETED,
    Buried,
    Cancelled,
    Completed,
    Discard,
    ErrorRecord,
    Expired,
    Limited,
    Outcome,
    RateLimited,
    Released,
    Retried,
    Snooze,
    Snoozed,
    UpstreamUnavailable,
)
from faena.resilience.sorting import Sorted, at_least, meaning_of
from faena.values.names import as_words
from faena.worker.execute.admission import Admission, wait_of
from faena.worker.execute.attempt_state import Attempt, Stop
from faena.worker.execute.failure import Lowered, SnoozedTooOften, TimedOut, WorkerDied, record_of
from faena.worker.execute.fallback import Fallen, SecondAttempt, exhausted, refused
from faena.worker.execute.unmarked import Unmarked

_log = logging.getLogger("faena.worker")


class Judge:
    """Determines the outcomes of one queue's attempts."""

    def __init__(self, queue: str, worker: str, dead_letters: DeadLetters) -> None:
        self._queue = queue
        self._worker = worker
        self._dead_letters = dead_letters
        self._dropped: set[str] = set()
        """Tasks whose dropped results were logged."""
        self._unmarked = Unmarked(queue)
        self.admission: Admission | None = None
        """What says which jobs wait when an upstream takes no calls."""
        self.now = 0
        """The server's time in the last answer."""

    def returned(self, attempt: Attempt, value: Any, *, is_encoded: bool) -> Outcome | None:
        """The outcome of a handler that returned a value; `is_encoded` by a child process."""
        if attempt.stop is Stop.LOST:
            return None
        if value is None:
            return COMPLETED
        is_ready = is_encoded or isinstance(value, Unfit)
        result = value if is_ready else attempt.handler.encoded(value)
        if isinstance(result, Unfit):
            self._drop(attempt, result)
            return Completed(dropped=result.reason)
        return Completed(result)

    def _drop(self, attempt: Attempt, unfit: Unfit) -> None:
        """Complete the job without a result: a failure would make the work run twice."""
        attempt.job.log(f"its result was dropped: {unfit.reason}")
        task = attempt.handler.name
        if task not in self._dropped:
            self._dropped.add(task)
            _log.warning(
                "queue %s: results of task %s are dropped, its jobs complete without one: "
                "it returned %s; %s",
                self._queue,
                task,
                unfit.kind,
                unfit.reason,
                extra={"queue": self._queue, "task": task, "job_id": attempt.claim.id},
            )

    def raised(self, attempt: Attempt, error: BaseException) -> Outcome | Fallen | None:
        """The outcome of an exception; buried if the user's exception or policy itself fails."""
        try:
            self._unmarked.look_at(attempt, error)
            return self._judge(attempt, error)
        except Exception:  # noqa: BLE001 - user code may raise anything; the slot must become free
            _log.exception("the outcome of job %s could not be determined", attempt.claim.id)
            words = "its failure could not be read; see the worker's log"
            return Buried(ErrorRecord(name="Unreadable", message=words, at=self.now))

    def too_late(self, claim: Claim) -> Expired | None:
        """The outcome of a job that expired after its claim, because the answer was late."""
        if claim.expires_at > self.now:
            return None
        words = "it expired before it started"
        return Expired(ErrorRecord("Expired", words, "EXPIRED", worker=self._worker, at=self.now))

    def unreadable(self, claim: Claim, error: BaseException) -> Buried:
        """The outcome of a job that cannot be decoded for its handler."""
        if isinstance(error, PayloadError):
            error = error.with_traceback(None)  # it shows only where faena decodes payloads
        return self._bury(claim, error, None, has_run=False)

    def _judge(  # noqa: C901, PLR0911 - the one place where endings become outcomes
        self, attempt: Attempt, error: BaseException
    ) -> Outcome | Fallen | None:
        """The outcome of any ending that is not a plain return."""
        claim = attempt.claim
        match attempt.stop, error:
            case Stop.LOST, _:
                return None
            case Stop.SHUTDOWN, _:
                return Released()
            case Stop.CANCEL, _:
                return Cancelled(self._record(claim, error, attempt.job))
            case _ if isinstance(attempt, SecondAttempt):
                return self._fallback_raised(attempt, attempt.fallen, error)
            case Stop.TIMEOUT, _:
                late = TimedOut(f"ran longer than {attempt.timeout_s:g} s")
                return self._fail(attempt, late.with_traceback(error.__traceback__))
            case _, Lowered():
                return Released(error.priority)
            case _, Snooze():
                return self._snooze(attempt, error)
            case _, Discard():
                return self._bury(claim, error, attempt.job)
            case _, UpstreamUnavailable():
                return self._unavailable(attempt, error)
            case _, RateLimited():
                return self._limited(attempt, error)
            case _ if (meaning := meaning_of(error)) and meaning.kind == "rate_limited":
                return self._rate_limited(attempt, meaning)
            case _:
                return self._fail(attempt, error)

    def _limited(self, attempt: Attempt, error: RateLimited) -> Outcome | Fallen:
        """The queue or the tenant waits, unless the job may fall back meanwhile."""
        delay_us = attempt.retry.promised_us(error.wait_us(self.now), random=random.random)
        if attempt.handler.fallback and attempt.handler.upstreams:
            upstream = attempt.handler.upstreams[0].name
            late = refused(attempt, UpstreamUnavailable(upstream, "rate_limited", delay_us))
            if late is not None:
                return late
        return Limited(delay_us, error.scope)

    def _fallback_raised(
        self, attempt: SecondAttempt, fallen: Fallen, error: BaseException
    ) -> Outcome:
        """The job is dead whatever it was: a fallback is used once."""
        if isinstance(error, NotHandedOver):
            return Snoozed(error.wait_us, as_words(f"fallback: {error}"), is_parked=True)
        if not isinstance(error, ManualNeeded | Discard):
            is_late = attempt.stop is Stop.TIMEOUT
            second = TimedOut(f"ran longer than {attempt.timeout_s:g} s") if is_late else error
            failed = FallbackFailed(attempt.fallback.name, fallen.error, second)
            failed.__cause__ = second
            error = failed.with_traceback(error.__traceback__)
        elif isinstance(error, ManualNeeded):
            error = error.with_traceback(None)  # it is no fault of the program
        return self._bury(attempt.claim, error, attempt.job, has_run=fallen.record is not None)

    def _unavailable(self, attempt: Attempt, error: UpstreamUnavailable) -> Outcome | Fallen:
        if (fallen := refused(attempt, error)) is not None:
            return fallen
        if self.admission is not None:
            return self.admission.outcome_of(error)
        words = f"upstream {error.upstream}: {error.reason}"
        return Snoozed(wait_of(error), words, is_parked=True)

    def _rate_limited(self, attempt: Attempt, meaning: Sorted) -> Outcome | Fallen:
        """An upstream's answer is known for what it is; it costs no attempt either."""
        said, name = meaning.retry_after, meaning.upstream
        try:
            limited = said if isinstance(said, RateLimited) else RateLimited(said)
        except Exception:  # noqa: BLE001 - whatever was in a header
            limited = RateLimited(None)
        asked_us = at_least(limited.wait_us(self.now))
        wait_us = attempt.retry.promised_us(asked_us, random=random.random)
        of_tenant = any(
            one.name == name and one.is_tenants("rate_limited", attempt.tenant)
            for one in attempt.handler.upstreams
        )
        return self._unavailable(
            attempt,
            UpstreamUnavailable(name, "rate_limited", max(1, wait_us), is_for_tenant=of_tenant),
        )

    def _snooze(self, attempt: Attempt, error: Snooze) -> Outcome:
        claim, most = attempt.claim, error.most
        if most is not None and claim.snoozes >= most:
            reason = f", the last time because: {error.reason}" if error.reason else ""
            late = SnoozedTooOften(f"snoozed {claim.snoozes} times, the most is {most}{reason}")
            return self._bury(claim, late.with_traceback(error.__traceback__), attempt.job)
        return Snoozed(error.delay_us, as_words(error.reason))

    def _fail(self, attempt: Attempt, error: BaseException) -> Outcome | Fallen:
        retry, number = attempt.retry, attempt.job.attempt
        is_poison = isinstance(error, WorkerDied) and number >= attempt.handler.max_deliveries
        meaning = meaning_of(error)
        is_refused = meaning is not None and meaning.kind == "permanent"
        if is_poison or is_refused or retry.gives_up(error) or retry.exhausted(number):
            record = self._record(attempt.claim, error, attempt.job)
            fallen = exhausted(attempt, error, record)
            return fallen or self._bury(attempt.claim, error, attempt.job)
        delay = retry.delay(number, error, random=random.random)
        if delay.fault:
            _log.warning("retry policy of task %s: %s", attempt.handler.name, delay.fault)
        return Retried(delay.us, self._record(attempt.claim, error, attempt.job))

    def _bury(
        self, claim: Claim, error: BaseException, job: Job | None, *, has_run: bool = True
    ) -> Buried:
        record = self._record(claim, error, job, has_run=has_run)
        note = death_note(record, error, job, self._dead_letters)
        return Buried(record, has_run, note)

    def _record(
        self, claim: Claim, error: BaseException, job: Job | None, *, has_run: bool = True
    ) -> ErrorRecord:
        return record_of(
            error,
            attempt=claim.attempts + 1 if has_run else 0,
            worker=self._worker,
            at=self.now,
            started_at=job.started_us if job else 0,
        )
