"""Traces: the spans of OpenTelemetry's SDK, from where a job is enqueued to where it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import SpanKind, StatusCode, get_current_span

from faena import Discard, Faena, Job, Retry
from faena.errors import Overloaded
from faena.job import JobView
from faena.options import Backpressure
from faena.telemetry.tracing.trace_header import origin_of
from faena.testing import harness, run_inline
from tests._support.eventually import eventually
from tests._support.spans import Spans, is_child, linked
from tests._support.valkey import Server
from tests._support.working import obliterate, serving

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
async def app(valkey: Server, namespace: str, spans: Spans) -> AsyncIterator[Faena]:
    app = Faena("shop", valkey.url, namespace=namespace, tracing=spans.provider)
    yield app
    await obliterate(app)


async def drained(app: Faena) -> None:
    """Serve until no queue has a job left."""

    async def is_empty() -> bool:
        counts = [await queue.counts() for queue in app.queues.values()]
        return not any(one[state] for one in counts for state in LIVE)

    async with serving(app):
        await eventually(is_empty)


LIVE = ("ready", "running", "delayed", "blocked")


async def test_an_attempt_is_in_the_trace_of_its_enqueue(app: Faena, spans: Spans) -> None:
    @app.queue("mail").task
    async def send(secret: str) -> None: ...

    with spans.tracer.start_as_current_span("request"):
        receipt = await send.enqueue("confidential", tenant="acme")
    await drained(app)
    request, enqueue, attempt = map(spans.one, ("request", "job.enqueue mail", "job.attempt mail"))
    assert is_child(enqueue, request)
    assert is_child(attempt, enqueue)
    assert linked(attempt) == {enqueue.context.span_id}
    assert (enqueue.kind, attempt.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert enqueue.attributes == {
        "messaging.system": "faena",
        "messaging.operation.name": "job.enqueue",
        "messaging.operation.type": "send",
        "messaging.destination.name": "mail",
        "messaging.message.id": receipt.id,
        "faena.task": "send",
        "faena.tenant": "acme",
    }
    assert dict(attempt.attributes or {}) == {
        "messaging.system": "faena",
        "messaging.operation.name": "job.attempt",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "messaging.message.id": receipt.id,
        "messaging.client.id": (attempt.attributes or {})["messaging.client.id"],
        "faena.task": "send",
        "faena.tenant": "acme",
        "faena.attempt": 1,
        "faena.max_attempts": send.handler.retry.attempts,
        "faena.outcome": "complete",
    }
    assert attempt.status.status_code is StatusCode.UNSET
    assert "confidential" not in spans.everything()


async def test_each_attempt_has_a_span_and_errors_have_a_class_but_no_message(
    app: Faena, spans: Spans
) -> None:
    queue = app.queue("mail", retry=Retry.fixed("20ms", attempts=3, floor="0s", jitter=0))

    @queue.task
    async def send(card: str, job: Job) -> None:
        if job.attempt == 1:
            raise ConnectionRefusedError(f"no luck with {card}")
        raise Discard(f"nothing for {card}")

    await send.enqueue("4111-1111")
    await drained(app)
    enqueue = spans.one("job.enqueue mail")
    first, second = spans.named("job.attempt mail")
    assert is_child(first, enqueue)
    assert is_child(second, enqueue)
    told = [
        (
            one.attributes["faena.attempt"],
            one.attributes["faena.outcome"],
            one.attributes["error.type"],
        )
        for one in (first, second)
        if one.attributes
    ]
    assert told == [(1, "retry", "ConnectionRefusedError"), (2, "bury", "Discard")]
    assert (first.attributes or {})["faena.error_code"] == "ECONNREFUSED"
    assert first.status.status_code is StatusCode.ERROR
    assert "4111" not in spans.everything()


async def test_a_list_has_one_span_and_a_given_trace_is_kept(app: Faena, spans: Spans) -> None:
    seen: dict[int, dict[str, str]] = {}

    @app.queue("mail").task
    async def send(number: int, job: Job) -> None:
        seen[number] = dict(job.headers)

    headers = {"traceparent": GIVEN, "tracestate": "vendor=1", "x": "y"}
    with spans.tracer.start_as_current_span("request"):
        await send.enqueue_many([1, 2, send.draft(3, headers=headers)])
        await send.enqueue(4, headers=headers)
    await drained(app)
    many, single = spans.named("job.enqueue mail")
    assert (many.attributes or {})["messaging.batch.message_count"] == 3
    ids = f"{many.context.trace_id:032x}", f"{many.context.span_id:016x}"
    assert [origin_of(seen[number]) for number in (1, 2)] == [(*ids, True)] * 2
    assert (seen[3], seen[4]) == (headers, headers)
    assert linked(single) == {0x00F067AA0BA902B7}
    traces = {one.context.trace_id for one in spans.named("job.attempt mail")}
    assert traces == {many.context.trace_id, 0x4BF92F3577B34DA6A3CE929D0E0E4736}


@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": "nonsense\n" * 50},
        {"traceparent": "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
        {"traceparent": f"00-{'0' * 32}-00f067aa0ba902b7-01"},
        {"traceparent": f"{GIVEN}-more"},
        {"tracestate": "x" * 4000},
    ],
)
async def test_a_trace_that_is_not_valid_begins_a_new_one(
    app: Faena, spans: Spans, headers: dict[str, str]
) -> None:
    @app.queue("mail").task
    async def send() -> None: ...

    assert origin_of(headers) is None
    await send.enqueue(headers=headers)
    await drained(app)
    attempt = spans.one("job.attempt mail")
    assert (attempt.attributes or {})["faena.outcome"] == "complete"
    if "traceparent" in headers:
        assert attempt.parent is None


async def test_what_is_refused_is_an_error(app: Faena, spans: Spans) -> None:
    queue = app.queue("mail", backpressure=Backpressure(hard=1))

    @queue.task
    async def send() -> None: ...

    await send.enqueue()
    with pytest.raises(Overloaded):
        await send.enqueue()
    fine, refused = spans.named("job.enqueue mail")
    assert (fine.status.status_code, refused.status.status_code) == (
        StatusCode.UNSET,
        StatusCode.ERROR,
    )
    assert (refused.attributes or {})["error.type"] == "Overloaded"


async def test_what_a_handler_begins_is_below_its_attempt(app: Faena, spans: Spans) -> None:
    queue = app.queue("mail")

    @queue.task
    async def send(number: int) -> None:
        with spans.tracer.start_as_current_span("render"):
            pass
        if number:
            await send.enqueue(number - 1)

    @queue.task
    def stamp() -> None:
        with spans.tracer.start_as_current_span("stamp"):
            pass

    await send.enqueue(1)
    await stamp.enqueue()
    await drained(app)
    attempts = {
        (one.attributes or {})["faena.task"]: one for one in spans.named("job.attempt mail")
    }
    assert is_child(spans.one("stamp"), attempts["stamp"])
    renders, sends = (
        spans.named("render"),
        [
            one
            for one in spans.named("job.attempt mail")
            if (one.attributes or {})["faena.task"] == "send"
        ],
    )
    assert {one.context.trace_id for one in (*renders, *sends)} == {sends[0].context.trace_id}
    assert {one.parent.span_id for one in renders if one.parent} == {
        one.context.span_id for one in sends
    }
    assert not get_current_span().get_span_context().is_valid


async def test_a_batch_has_one_span_with_a_link_for_each_job(app: Faena, spans: Spans) -> None:
    queue = app.queue("mail", retry=Retry.never())

    @queue.batch(size=3, wait="10m")
    async def pack(numbers: list[int]) -> list[Exception | None]:
        with spans.tracer.start_as_current_span("pack"):
            return [None, ValueError("no"), None]

    receipts = [await pack.enqueue(number, tenant="acme") for number in range(3)]
    await drained(app)
    attempt = spans.one("job.attempt mail")
    assert attempt.parent is None
    assert linked(attempt) == {one.context.span_id for one in spans.named("job.enqueue mail")}
    ids = [(link.attributes or {})["messaging.message.id"] for link in attempt.links]
    assert ids == [one.id for one in receipts]
    attributes = attempt.attributes or {}
    assert (attributes["messaging.batch.message_count"], attributes["faena.batch.failed"]) == (3, 1)
    assert attributes["faena.tenant"] == "acme"
    assert attempt.status.status_code is StatusCode.UNSET
    assert is_child(spans.one("pack"), attempt)


async def test_a_batch_whose_call_fails_is_an_error(app: Faena, spans: Spans) -> None:
    queue = app.queue("mail", retry=Retry.never())

    @queue.batch(size=2, wait="10m")
    async def pack(numbers: list[int]) -> None:
        raise ValueError("card 4111")

    await pack.enqueue_many([1, 2])
    await drained(app)
    attempt = spans.one("job.attempt mail")
    assert attempt.status.status_code is StatusCode.ERROR
    assert (attempt.attributes or {})["error.type"] == "ValueError"
    assert "4111" not in spans.everything()


async def test_all_jobs_of_a_flow_are_in_the_trace_that_started_it(
    app: Faena, spans: Spans
) -> None:
    @app.queue("mail").task
    async def send(number: int) -> None: ...

    @app.queue("print").task
    async def render(number: int) -> None: ...

    plan = app.flow("both")
    first = plan.add(send.draft(1))
    plan.add(render.draft(2), after=[first])
    flow = await plan.start()
    async with serving(app):
        await flow.wait("1m")
    start = spans.one("flow.start mail")
    assert (start.attributes or {})["messaging.batch.message_count"] == 2
    assert is_child(spans.one("job.attempt mail"), start)
    assert is_child(spans.one("job.attempt print"), start)


async def test_a_job_that_is_rerun_or_retried_as_new_goes_on_in_its_trace(
    app: Faena, spans: Spans
) -> None:
    queue = app.queue("mail", retry=Retry.never())

    @queue.task
    async def send() -> None:
        raise ValueError("no")

    receipt = await send.enqueue()
    await drained(app)
    await receipt.handle.rerun()
    await drained(app)
    await app.dead_letters.retry_as_new("mail", receipt.id)
    await drained(app)
    enqueue, attempts = spans.one("job.enqueue mail"), spans.named("job.attempt mail")
    assert len(attempts) == 3
    assert all(is_child(one, enqueue) for one in attempts)
    assert (attempts[-1].attributes or {})["faena.origin"] == receipt.id


async def test_a_schedule_begins_a_trace_for_each_instant(
    valkey: Server, namespace: str, spans: Spans
) -> None:
    app = Faena("shop", valkey.url, namespace=namespace, tracing=spans.provider)

    @app.every("1h", name="hourly")
    async def sweep() -> None: ...

    async with harness(app, url=valkey.url) as h:
        await h.drain(through="3h")
    fires, attempts = spans.named("job.fire scheduler"), spans.named("job.attempt scheduler")
    assert len(fires) == len(attempts) == 3
    assert all(is_child(one, fire) for one, fire in zip(attempts, fires, strict=True))
    assert len({one.context.trace_id for one in fires}) == 3
    assert {(one.attributes or {})["faena.schedule"] for one in fires} == {"hourly"}


async def test_the_job_of_a_schedule_is_in_its_trace(app: Faena, spans: Spans) -> None:
    @app.every("1s", name="soon")
    async def sweep() -> None: ...

    async with serving(app), serving(app):  # both try, and one makes the job
        await eventually(lambda: len(spans.named("job.attempt scheduler")) >= 2)
    fires = {one.context.span_id: one for one in spans.named("job.fire scheduler")}
    attempts = spans.named("job.attempt scheduler")
    assert len({one.context.trace_id for one in attempts}) == len(attempts)
    assert all(one.parent and one.parent.span_id in fires for one in attempts)


async def test_a_decision_not_to_sample_holds_in_the_worker(
    valkey: Server, namespace: str, spans: Spans
) -> None:
    """The worker's own sampler follows the one of the producer."""
    quiet = Spans(ParentBased(ALWAYS_OFF))
    producer = Faena("shop", valkey.url, namespace=namespace, tracing=quiet.provider)
    views: list[JobView | None] = []

    def declare(app: Faena) -> Any:
        @app.queue("mail").task
        async def send() -> None: ...

        return send

    receipt = await declare(producer).enqueue()
    views.append(await receipt.handle.view())
    worker = Faena("shop", valkey.url, namespace=namespace, tracing=spans.provider)
    declare(worker)
    await drained(worker)
    assert views[0]
    origin = origin_of(views[0].headers)
    assert origin
    assert not origin.is_sampled
    assert not quiet.ended
    assert not spans.ended
    await producer.close()
    await obliterate(worker)


async def test_a_call_to_an_upstream_has_a_span(server: Server, spans: Spans) -> None:
    app = Faena("shop", server.url, tracing=spans.provider)
    smtp = app.upstream("smtp")
    queue = app.queue("mail", retry=Retry.never())

    @queue.task
    async def send(fails: bool) -> None:
        async with smtp.call():
            if fails:
                raise ConnectionResetError("secret words")

    @queue.task
    def stamp() -> None:
        with smtp.call():
            pass

    await send.enqueue(True)
    await stamp.enqueue()
    await drained(app)
    calls = spans.named("upstream.call smtp")
    assert {one.kind for one in calls} == {SpanKind.CLIENT}
    assert sorted(str((one.attributes or {}).get("error.type")) for one in calls) == [
        "ConnectionResetError",
        "None",
    ]
    attempts = {one.context.span_id for one in spans.named("job.attempt mail")}
    assert {one.parent.span_id for one in calls if one.parent} == attempts
    assert "secret words" not in spans.everything()
    await app.close()


async def test_a_fallback_has_a_span_below_the_attempt_that_fell_back(
    app: Faena, spans: Spans
) -> None:
    queue = app.queue("mail", retry=Retry.never())

    async def instead(number: int) -> str:
        with spans.tracer.start_as_current_span("instead"):
            return "instead"

    @queue.task(fallback=instead)
    async def send(number: int) -> str:
        raise ValueError("no")

    receipt = await send.enqueue(1)
    await drained(app)
    assert await receipt.handle.result(timeout="10s") == "instead"
    attempt, fallback = spans.one("job.attempt mail"), spans.one("job.fallback mail")
    assert (attempt.attributes or {})["faena.outcome"] == "fall_back"
    assert (fallback.attributes or {})["faena.outcome"] == "complete"
    assert is_child(fallback, attempt)
    assert is_child(spans.one("instead"), fallback)


async def test_an_attempt_that_is_cut_off_or_cancelled_says_so(app: Faena, spans: Spans) -> None:
    queue = app.queue("mail", retry=Retry.never(), timeout="200ms")

    @queue.task
    async def send() -> None:
        await asyncio.sleep(3600)

    await send.enqueue()
    await drained(app)
    attempt = spans.one("job.attempt mail")
    attributes = attempt.attributes or {}
    assert (attributes["faena.outcome"], attributes["faena.error_code"]) == ("bury", "TIMEOUT")


async def test_jobs_that_never_wait_do_not_inherit_each_others_spans(
    app: Faena, spans: Spans
) -> None:
    seen: list[tuple[str, int]] = []

    @app.queue("mail", concurrency=50).task
    async def send(number: int, job: Job) -> None:
        seen.append((job.id, get_current_span().get_span_context().span_id))

    for number in range(60):
        await send.enqueue(number)
    await drained(app)
    attempts = {
        (str((one.attributes or {})["messaging.message.id"]), one.context.span_id)
        for one in spans.named("job.attempt mail")
    }
    assert set(seen) == attempts
    assert len(seen) == 60
    assert len({one.context.trace_id for one in spans.named("job.attempt mail")}) == 60


async def test_a_worker_that_is_started_in_a_span_does_not_hand_it_to_its_jobs(
    app: Faena, spans: Spans
) -> None:
    @app.queue("mail").task
    async def send() -> None: ...

    await send.enqueue()
    with spans.tracer.start_as_current_span("main") as main:
        await app.run_worker(until_empty=True)
        assert get_current_span() is main
    assert is_child(spans.one("job.attempt mail"), spans.one("job.enqueue mail"))


async def test_the_attempt_of_a_job_without_a_trace_begins_one(
    valkey: Server, namespace: str, app: Faena, spans: Spans
) -> None:
    @app.queue("mail").task
    async def send() -> None: ...

    untraced = Faena("shop", valkey.url, namespace=namespace, tracing=False)
    await untraced.queue("mail").task(send.handler.function).enqueue()
    with spans.tracer.start_as_current_span("main"):
        await app.run_worker(until_empty=True)
    attempt = spans.one("job.attempt mail")
    assert (attempt.parent, attempt.links) == (None, ())
    await untraced.close()


async def test_a_test_without_a_worker_is_traced_too(app: Faena, spans: Spans) -> None:
    @app.queue("mail").task
    async def send() -> None: ...

    with spans.tracer.start_as_current_span("test"):
        await run_inline(send)
    assert is_child(spans.one("job.attempt mail"), spans.one("test"))
