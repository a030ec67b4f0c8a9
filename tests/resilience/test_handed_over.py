"""What a waiter and an operator learn of a job that another task has now."""

from __future__ import annotations

import pytest

from faena import Breaker, Escalate, Escalation, Faena, Manual
from faena.errors import JobHandedOver, PayloadError
from faena.job import JobView
from faena.producing.receipt import Receipt
from faena.testing import harness


@pytest.fixture
def app() -> Faena:
    return Faena("handed")


async def _view(receipt: Receipt[object]) -> JobView:
    view = await receipt.handle.view()
    assert view is not None
    return view


async def test_a_waiter_learns_where_a_job_without_an_answer_is(app: Faena) -> None:
    openai = app.upstream("openai", breaker=Breaker(open="10m"))
    answers, people = app.queue("answers"), app.queue("people")

    @people.task
    async def attend(_escalation: Escalation) -> None: ...

    @people.task
    async def answer_later(_text: str) -> None: ...

    @answers.task(upstreams=[openai], fallback=Escalate(attend))
    async def answer(_text: str) -> str:
        raise AssertionError("it must not be called")

    @answers.task(upstreams=[openai], fallback=answer_later)
    async def note(_text: str) -> str:
        raise AssertionError("it must not be called")

    @answers.task(upstreams=[openai], fallback=answer_later)
    async def maybe(_text: str) -> str | None:
        raise AssertionError("it must not be called")

    async with harness(app) as h:
        await h.open_breaker(openai)
        for task, target in ((answer, "people/attend"), (note, "people/answer_later")):
            receipt = await task.enqueue("hello")
            await h.drain("answers")
            view = await _view(receipt)
            assert view.fallback == target
            assert await people.handle(view.handed_to or "").state() == "ready"
            words = f"handed it over to {target}, as job {view.handed_to}"
            with pytest.raises(JobHandedOver, match=words):
                await receipt.handle.result()
            told = str(await receipt.handle.explain())
            assert f" through its fallback {target}, which made job {view.handed_to}" in told
        receipt = await maybe.enqueue("hello")
        await h.drain("answers")
        assert await receipt.handle.result() is None


async def test_a_fallback_that_returns_nothing_is_named(app: Faena) -> None:
    openai = app.upstream("openai", breaker=Breaker(open="10m"))

    async def canned(text: str) -> None: ...

    @app.queue("answers").task(upstreams=[openai], fallback=canned)
    async def answer(text: str) -> str:
        return text

    async with harness(app) as h:
        before = await answer.enqueue("hello")
        await h.drain()
        await h.open_breaker(openai)
        receipt = await answer.enqueue("hello")
        await h.drain()
        with pytest.raises(PayloadError, match="has none: its fallback canned returned None"):
            await receipt.handle.result()
        assert str(await receipt.handle.explain()).endswith(" through its fallback canned")
        assert (await _view(before)).fallback is None
        h.clock.advance("1h")
        await receipt.handle.rerun()
        await h.drain()
        assert await receipt.handle.result() == "hello"
        assert (await _view(receipt)).fallback is None


async def test_jobs_that_wait_alone_are_parked_and_those_for_a_person_made_no_attempt(
    app: Faena,
) -> None:
    openai = app.upstream("openai", breaker=Breaker(open="10m"))
    queue = app.queue("answers")

    @queue.task(upstreams=[openai])
    async def answer() -> None: ...

    @queue.task(upstreams=[openai], fallback=Manual("Call them."))
    async def call() -> None: ...

    async with harness(app) as h:
        await h.open_breaker(openai)
        receipt = await answer.enqueue()
        assert (await h.drain()).counts == {"parked": 1}
        assert (await _view(receipt)).parked == 1
        assert "it is parked (upstream openai is open" in str(await receipt.handle.explain())
        receipt = await call.enqueue()
        (ran,) = (await h.drain()).runs
        assert str(ran).startswith(
            f"answers/call {receipt.id} no attempt: dead, ManualNeeded: Call"
        )
        assert (await _view(receipt)).attempts_made == 0
