"""Middleware: what wraps every enqueue and every attempt, in the order it was given."""

from __future__ import annotations

import contextvars
from typing import Any

import msgspec
import pytest

from faena import Death, Faena, Job, Middleware, Retry
from faena.errors import JobConflict, PayloadError
from faena.job import Spec
from faena.middleware import Enqueue, Execute
from faena.testing import attempt, harness, run_inline

URL = "redis://localhost"  # never dialled: the harness takes its place


class Diary(Middleware):
    """Writes down when each side of it is passed."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self._name = name
        self._lines = lines

    async def enqueue(self, queue: str, spec: Spec, call_next: Enqueue) -> Any:
        self._lines.append(f"{self._name} sends {queue}/{spec.task}")
        receipt = await call_next(queue, spec)
        self._lines.append(f"{self._name} sent: {receipt.status}")
        return receipt

    async def execute(self, job: Job, call_next: Execute) -> Any:
        self._lines.append(f"{self._name} runs attempt {job.attempt}")
        try:
            return await call_next(job)
        finally:
            self._lines.append(f"{self._name} ran")


async def test_the_first_middleware_is_the_outermost_on_both_sides() -> None:
    lines: list[str] = []
    app = Faena("shop", URL, middleware=[Diary("outer", lines), Diary("inner", lines)])

    @app.queue("mail").task
    async def note() -> None:
        lines.append("note")

    async with harness(app) as h:
        await note.enqueue()
        (await h.drain()).check()
    assert lines == [
        "outer sends mail/note",
        "inner sends mail/note",
        "inner sent: created",
        "outer sent: created",
        "outer runs attempt 1",
        "inner runs attempt 1",
        "note",
        "inner ran",
        "outer ran",
    ]


class Tracing(Middleware):
    """Carries a value from the producer to the handler in a header."""

    def __init__(self) -> None:
        self.trace = contextvars.ContextVar("trace", default="none")

    async def enqueue(self, queue: str, spec: Spec, call_next: Enqueue) -> Any:
        spec.headers["trace"] = self.trace.get()
        return await call_next(queue, spec)

    async def execute(self, job: Job, call_next: Execute) -> Any:
        token = self.trace.set(job.headers["trace"])
        try:
            return await call_next(job)
        finally:
            self.trace.reset(token)


@pytest.mark.parametrize("is_async", [True, False], ids=["coroutine", "thread"])
async def test_a_header_carries_context_from_the_producer_to_the_handler(is_async: bool) -> None:
    tracing = Tracing()
    app = Faena("shop", URL, middleware=[tracing])
    queue = app.queue("mail")
    if is_async:

        @queue.task(name="read")
        async def read() -> str:
            return tracing.trace.get()
    else:

        @queue.task(name="read")
        def read() -> str:
            return tracing.trace.get()

    async with harness(app) as h:
        tracing.trace.set("abc")
        await read.enqueue()
        await read.enqueue(headers={"colour": "red"})
        tracing.trace.set("other")
        report = await h.drain()
        assert [ran.result for ran in report] == ["abc", "abc"]
        await h.assert_enqueued(read, headers={"colour": "red", "trace": "abc"})
    tracing.trace.set("inline")
    assert await run_inline(read) == "inline"


async def test_a_header_added_for_one_job_does_not_reach_the_next() -> None:
    class Mark(Middleware):
        async def enqueue(self, queue: str, spec: Spec, call_next: Enqueue) -> Any:
            if bytes(spec.payload) == b"1":
                spec.headers["marked"] = "yes"
            return await call_next(queue, spec)

    app = Faena("shop", URL, middleware=[Mark()])

    @app.queue("mail").task
    async def note(number: int) -> None: ...

    shared = {"batch": "7"}
    async with harness(app) as h:
        await note.enqueue_many([1, 2], headers=shared)
        await h.assert_enqueued(note, payload=1, headers={"batch": "7", "marked": "yes"})
        (second,) = await h.assert_enqueued(note, payload=2)
        assert second.headers == shared == {"batch": "7"}


async def test_a_refusal_sends_nothing_and_reaches_the_caller() -> None:
    class OfficeHours(Middleware):
        async def enqueue(self, queue: str, spec: Spec, call_next: Enqueue) -> Any:
            if spec.tenant == "closed":
                raise PermissionError("tenant is closed")
            return await call_next(queue, spec)

    app = Faena("shop", URL, middleware=[OfficeHours()])

    @app.queue("mail").task
    async def note() -> None: ...

    async with harness(app) as h:
        with pytest.raises(PermissionError, match="tenant is closed"):
            await note.enqueue(tenant="closed")
        await h.assert_not_enqueued(note)


async def test_a_bad_payload_in_a_batch_is_found_before_anything_is_sent() -> None:
    lines: list[str] = []
    app = Faena("shop", URL, middleware=[Diary("diary", lines)])

    @app.queue("mail").task
    async def note(number: int) -> None: ...

    async with harness(app) as h:
        with pytest.raises(PayloadError):
            await note.enqueue_many([1, 2, "three"])  # type: ignore[list-item]
        assert lines == []
        await h.assert_not_enqueued(note)


async def test_what_a_middleware_returns_is_the_jobs_result_and_what_it_raises_its_failure() -> (
    None
):
    class Judge(Middleware):
        async def execute(self, job: Job, call_next: Execute) -> Any:
            value = await call_next(job)
            if value < 0:
                raise ValueError("negative")
            return value * 10

    app = Faena("shop", URL, middleware=[Judge()])

    @app.queue("sums", retry=Retry.exponential(attempts=1)).task
    async def double(number: int) -> int:
        return number * 2

    assert await run_inline(double, 4) == 80
    assert (await attempt(double, -1)).ending == "dead"
    async with harness(app) as h:
        receipt = await double.enqueue(2)
        await h.drain()
        assert await receipt.handle.result() == 40


async def test_a_middleware_may_answer_for_the_handler() -> None:
    ran: list[int] = []

    class Cache(Middleware):
        async def execute(self, job: Job, call_next: Execute) -> Any:
            return "cached" if job.key == "known" else await call_next(job)

    app = Faena("shop", URL, middleware=[Cache()])

    @app.queue("sums").task
    async def compute(number: int) -> str:
        ran.append(number)
        return "computed"

    assert await run_inline(compute, 1, key="known") == "cached"
    assert await run_inline(compute, 2, key="new") == "computed"
    assert ran == [2]


async def test_the_bytes_a_middleware_puts_into_a_spec_are_those_on_the_broker() -> None:
    class Seal(Middleware):
        async def enqueue(self, queue: str, spec: Spec, call_next: Enqueue) -> Any:
            spec.payload = msgspec.Raw(msgspec.json.encode({"sealed": bytes(spec.payload).hex()}))
            return await call_next(queue, spec)

    app = Faena("shop", URL, middleware=[Seal()])

    @app.queue("sums").task
    async def read(payload: Any) -> Any:
        return payload

    async with harness(app) as h:
        await read.enqueue([1, 2])
        (job,) = await h.jobs()
        assert msgspec.json.decode(job.payload) == {"sealed": b"[1,2]".hex()}


async def test_an_enqueue_that_is_answered_without_a_new_job_passes_the_middleware_too() -> None:
    lines: list[str] = []
    app = Faena("shop", URL, middleware=[Diary("diary", lines)])

    @app.queue("mail").task
    async def note(number: int) -> None: ...

    async with harness(app):
        await note.enqueue(1, id="one")
        await note.enqueue(1, id="one")
        with pytest.raises(JobConflict):
            await note.enqueue(2, id="one")
    sent = [line for line in lines if "sent" in line]
    assert sent == ["diary sent: created", "diary sent: duplicate", "diary sent: conflict"]


class Traced(Middleware):
    """Says where a job comes from, as a tracer would."""

    async def enqueue(self, queue: str, spec: Spec, call_next: Enqueue) -> Any:
        spec.headers["trace"] = "t-1"
        return await call_next(queue, spec)


async def test_a_trace_goes_on_in_the_hook_and_in_the_retry_of_a_dead_job() -> None:
    app = Faena("shop", URL, middleware=[Traced()])
    seen: list[tuple[str, str | None]] = []

    @app.queue("mail", retry=Retry.never()).task
    async def send(_: str, job: Job) -> None:
        seen.append(("send", job.headers.get("trace")))
        raise ConnectionError

    @send.on_dead
    async def tell(_: Death, job: Job) -> None:
        seen.append(("tell", job.headers.get("trace")))

    async with harness(app) as h:
        receipt = await send.enqueue("ana")
        await h.drain()
        await app.dead_letters.retry_as_new("mail", receipt.id, by="ana", reason="again")
        await h.drain()
    assert seen == [("send", "t-1"), ("tell", "t-1")] * 2
