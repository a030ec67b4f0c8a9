"""Makes the spans of an app: where jobs are enqueued, where they run, where upstreams are called.

    job.enqueue mail ──traceparent──► job.attempt mail             one for each attempt
                                          ├─ upstream.call smtp
                                          └─ job.enqueue print     what the handler enqueues

The span of an attempt is a child of the one in which its job was enqueued, and has a link to it; so
is a sampler's decision that of the enqueue. A batch belongs to no job's trace: its span has a link
for each job. Only this package imports OpenTelemetry, and only for an app that is traced.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from faena.job import Job
from faena.outcomes import Outcome
from faena.telemetry.tracing import attribute
from faena.telemetry.tracing.attribute import Attributes
from faena.telemetry.tracing.trace_header import LONGEST_STATE, TRACEPARENT, TRACESTATE
from faena.values.names import as_words

ENQUEUE: Final = "job.enqueue"
ATTEMPT: Final = "job.attempt"
FALLBACK: Final = "job.fallback"
FIRE: Final = "job.fire"
CALL: Final = "upstream.call"

_LOST: Final = "LEASE_LOST"
_NOWHERE: Final = Context()
_w3c: Final = TraceContextTextMapPropagator()


class Tracing:
    """The spans of one app."""

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        """Without a provider, that of the program, also if it is set later."""
        self._tracer = trace.get_tracer("faena", tracer_provider=provider)

    # -- enqueueing -------------------------------------------------------------------------------

    @contextmanager
    def sending(
        self,
        queue: str,
        task: str,
        tenant: str | None = None,
        headers: Mapping[str, str] | None = None,
        number: int | None = None,
        *,
        operation: str = ENQUEUE,
    ) -> Generator[Span]:
        """A span around enqueueing a job, or `number` jobs; its context is theirs.

        A job whose producer gave a trace in `headers` keeps that; the span has a link to it.
        """
        found = attribute.sent_to(queue, operation, task, tenant)
        if number is not None:
            found[attribute.MESSAGES] = number
        given = _context_in(headers) if headers else None
        with self._tracer.start_as_current_span(
            f"{operation} {queue}",
            kind=SpanKind.PRODUCER,
            attributes=found,
            links=[Link(given)] if given else None,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                _fail(span, error)
                raise

    @staticmethod
    def stamp(headers: dict[str, str]) -> None:
        """Add the current span to the headers of a job, unless they have one."""
        if TRACEPARENT in headers:
            return
        carrier: dict[str, str] = {}
        _w3c.inject(carrier)
        if TRACEPARENT in carrier:
            headers.pop(TRACESTATE, None)  # without a parent, it means nothing
            headers.update(
                (name, text)
                for name, text in carrier.items()
                if name != TRACESTATE or len(text) <= LONGEST_STATE
            )

    def fire(self, queue: str, task: str, schedule: str, headers: dict[str, str]) -> Span:
        """The span of a schedule's job, in a trace of its own; its context is the job's."""
        found = attribute.sent_to(queue, FIRE, task, None)
        found[attribute.SCHEDULE] = schedule
        span = self._tracer.start_span(
            f"{FIRE} {queue}", _NOWHERE, kind=SpanKind.PRODUCER, attributes=found
        )
        with self.current(span):
            self.stamp(headers)
        return span

    # -- running ----------------------------------------------------------------------------------

    def begin(self, job: Job) -> Span:
        """The span of an attempt, in the trace of its job."""
        return self._begin(ATTEMPT, job, None)

    def begin_fallback(self, job: Job) -> Span:
        """The span of a fallback, below that of the attempt if it has begun."""
        span = trace.get_current_span()
        return self._begin(FALLBACK, job, span if span.get_span_context().is_valid else None)

    def _begin(self, operation: str, job: Job, parent: Span | None) -> Span:
        context = _w3c.extract(job.headers, _NOWHERE)
        enqueued = trace.get_current_span(context).get_span_context()
        return self._tracer.start_span(
            f"{operation} {job.queue}",
            context if parent is None else trace.set_span_in_context(parent, _NOWHERE),
            kind=SpanKind.CONSUMER,
            attributes=attribute.of_attempt(operation, job),
            links=[Link(enqueued)] if enqueued.is_valid else None,
        )

    def begin_batch(self, jobs: Sequence[Job]) -> Span:
        """The span of a batch's call, with a link to where each of its jobs was enqueued."""
        first = jobs[0]
        found = attribute.run_by(ATTEMPT, first)
        found[attribute.MESSAGES] = len(jobs)
        tenants = {job.tenant for job in jobs}
        if len(tenants) == 1 and first.tenant:
            found[attribute.TENANT] = first.tenant
        return self._tracer.start_span(
            f"{ATTEMPT} {first.queue}",
            _NOWHERE,
            kind=SpanKind.CONSUMER,
            attributes=found,
            links=[
                Link(enqueued, {attribute.MESSAGE: job.id})
                for job in jobs
                if (enqueued := _context_in(job.headers))
            ],
        )

    def end(self, span: Span, outcome: Outcome | None) -> None:
        """End the span of an attempt; None: its lease was lost."""
        if outcome is None:
            found: Attributes = {attribute.OUTCOME: "lost", attribute.ERROR: _LOST}
        else:
            found = attribute.of_outcome(outcome)
        span.set_attributes(found)
        if attribute.ERROR in found:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def end_early(self, span: Span, *, is_lost: bool) -> None:
        """End the span of an attempt that its job goes on without: it falls back, or was lost."""
        if is_lost:
            self.end(span, None)
        else:
            span.set_attribute(attribute.OUTCOME, "fall_back")
            span.end()

    def end_batch(self, span: Span, errors: Sequence[BaseException], number: int) -> None:
        """End the span of a batch; it has failed if all of its jobs have."""
        if errors:
            span.set_attribute(attribute.FAILED, len(errors))
        if errors and len(errors) == number:
            _fail(span, errors[0])
        span.end()

    @staticmethod
    @contextmanager
    def apart() -> Generator[None]:
        """No current span inside the block."""
        token = contexts.attach(_NOWHERE)
        try:
            yield
        finally:
            contexts.detach(token)

    @staticmethod
    @contextmanager
    def current(span: Span) -> Generator[None]:
        """Make a span the parent of what begins inside the block; it is not ended."""
        token = contexts.attach(trace.set_span_in_context(span, _NOWHERE))
        try:
            yield
        finally:
            contexts.detach(token)

    # -- upstreams --------------------------------------------------------------------------------

    @contextmanager
    def calling(self, upstream: str) -> Generator[None]:
        """A span around one call to an upstream."""
        with self._tracer.start_as_current_span(
            f"{CALL} {upstream}",
            kind=SpanKind.CLIENT,
            attributes={attribute.UPSTREAM: upstream},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:
                _fail(span, error)
                raise


@contextmanager
def continued(carried: Mapping[str, str]) -> Generator[None]:
    """Go on with a span of another process inside the block."""
    token = contexts.attach(_w3c.extract(carried, _NOWHERE))
    try:
        yield
    finally:
        contexts.detach(token)


def _context_in(headers: Mapping[str, str]) -> SpanContext | None:
    found = trace.get_current_span(_w3c.extract(headers, _NOWHERE)).get_span_context()
    return found if found.is_valid else None


def _fail(span: Span, error: BaseException) -> None:
    """The class of an error without its message, which may quote what is secret."""
    span.set_attribute(attribute.ERROR, as_words(type(error).__name__))
    span.set_status(Status(StatusCode.ERROR))
