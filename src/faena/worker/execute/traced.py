"""Runs attempts inside of spans, in a worker whose app is traced.

An executor without this runs its attempts directly: what is not traced costs nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from faena.engine.scripts import Claim
from faena.outcomes import Outcome, RateLimited, Snooze
from faena.worker.execute.attempt_state import Attempt, Stop
from faena.worker.execute.batch import Batch

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from faena.telemetry.tracing.tracing import Tracing

Done = Callable[[Claim, Outcome | None, Attempt | None], None]
Run = Callable[[Attempt], Awaitable[None]]


class Traced:
    """The spans of the attempts that a worker runs."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._spans: dict[Attempt, Span] = {}
        """Of running attempts whose outcome is not known yet."""

    def apart(self) -> AbstractContextManager[None]:
        """No current span inside the block: a worker serves no request, whoever starts it."""
        return self._tracing.apart()

    def settling(self, done: Done) -> Done:
        """`done`, after the span of the attempt has ended."""

        def end(claim: Claim, outcome: Outcome | None, attempt: Attempt | None) -> None:
            span = self._spans.pop(attempt, None) if attempt is not None else None
            if span is not None:
                self._tracing.end(span, outcome)
            done(claim, outcome, attempt)

        return end

    def running(self, run: Run) -> Run:
        """`run`, in the span of the attempt; one of a batch has none, as the batch's call has."""

        async def run_in_span(attempt: Attempt) -> None:
            if attempt.handler.batch is not None:
                await run(attempt)
            else:
                await self._run(attempt, self._tracing.begin(attempt.job), run(attempt))

        return run_in_span

    async def fall_back(self, attempt: Attempt, running: Coroutine[Any, Any, None]) -> None:
        """Run a fallback: in the span of the attempt that fell back, if it had begun."""
        await self._run(attempt, self._tracing.begin_fallback(attempt.job), running)

    async def _run(self, attempt: Attempt, span: Span, running: Awaitable[None]) -> None:
        self._spans[attempt] = span
        try:
            with self._tracing.current(span):
                await running
        finally:  # without an outcome: it fell back, or another attempt of its job has begun
            if self._spans.pop(attempt, None) is not None:
                self._tracing.end_early(span, is_lost=attempt.stop is Stop.LOST)

    async def call(self, batch: Batch, running: Awaitable[None]) -> None:
        """Run the call of a batch in its span."""
        span = self._tracing.begin_batch(batch.job)
        try:
            with self._tracing.current(span):
                await running
        finally:
            errors = [one for one in batch.errors if not isinstance(one, Snooze | RateLimited)]
            self._tracing.end_batch(span, errors, len(batch))
