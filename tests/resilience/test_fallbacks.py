"""Fallbacks of tasks and of calls: what is done instead, once, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from faena import (
    Backpressure,
    Discard,
    Escalate,
    Escalation,
    Faena,
    Fallback,
    Job,
    Manual,
    RateLimited,
    Retry,
)
from faena.errors import JobFailed
from faena.resilience.breaker import Breaker
from faena.states import State
from tests._support.eventually import eventually
from tests._support.falling import Down, events_of, trip
from tests._support.working import Working

SLOW = Breaker(volume=4, open="10m")


# -- a function ------------------------------------------------------------------------------------


async def test_a_functions_result_becomes_the_jobs_while_the_upstream_is_out(
    shop: Faena, working: Working
) -> None:
    openai = shop.upstream("openai", breaker=SLOW)

    def canned(message: str) -> str:
        return f"canned {message}"

    @shop.queue("answers").task(upstreams=[openai], fallback=canned)
    async def answer(_message: str) -> str:
        raise AssertionError("it must not be called")

    await trip(openai)
    receipts = await answer.enqueue_many([f"m{number}" for number in range(30)])
    async with working(shop):
        results = [await one.handle.result("60s") for one in receipts]
    assert results == [f"canned m{number}" for number in range(30)]
    view = await receipts[0].handle.view()
    assert view is not None
    assert "its fallback canned is used: upstream openai takes no calls" in view.log[0]
    assert await events_of(shop, "fell_back") == ["fell_back"] * 30
    assert (await shop.queues["answers"].overview()).holds == ()


async def test_it_is_used_when_attempts_are_used_up_and_gets_the_job(
    shop: Faena, working: Working
) -> None:
    calls: list[int] = []

    async def instead(job: Job, number: int) -> str:
        return f"{job.id} {number} {job.attempt}"

    @shop.queue("answers", retry=Retry.fixed("10ms", attempts=3)).task(fallback=instead)
    async def answer(number: int) -> str:
        calls.append(number)
        raise Down

    receipt = await answer.enqueue(7)
    async with working(shop):
        assert await receipt.handle.result("60s") == f"{receipt.id} 7 3"
    assert calls == [7, 7, 7]


async def test_a_handler_that_runs_too_long_falls_back_with_time_of_its_own(
    shop: Faena, working: Working
) -> None:
    async def instead(job: Job) -> bool:
        await asyncio.sleep(0.01)
        return job.cancelled

    @shop.queue("answers", retry=Retry.never()).task(timeout="50ms", fallback=instead)
    async def answer() -> bool:
        await asyncio.sleep(600)
        return True

    receipt = await answer.enqueue()
    async with working(shop):
        assert await receipt.handle.result("60s") is False


async def test_a_call_inside_a_handler_that_is_refused_falls_back_too(
    shop: Faena, working: Working
) -> None:
    openai = shop.upstream("openai", breaker=SLOW)

    @shop.queue("answers").task(fallback=lambda: "instead")
    async def answer() -> str:
        async with openai.call():
            return "called"

    await trip(openai)
    receipt = await answer.enqueue()
    async with working(shop):
        assert await receipt.handle.result("60s") == "instead"


async def test_a_discarded_job_is_dead_without_a_fallback(shop: Faena, working: Working) -> None:
    @shop.queue("answers").task(fallback=lambda: "instead")
    async def answer() -> str:
        raise Discard("no")

    receipt = await answer.enqueue()
    async with working(shop):
        with pytest.raises(JobFailed, match="Discard: no"):
            await receipt.handle.result("60s")


async def test_a_task_without_fallback_waits_beside_one_that_has_one(
    shop: Faena, working: Working
) -> None:
    openai = shop.upstream("openai", breaker=SLOW)
    queue = shop.queue("answers")

    @queue.task(upstreams=[openai], fallback=lambda: "instead")
    async def answer() -> str:
        return "called"

    @queue.task(upstreams=[openai])
    async def other() -> str:
        return "called"

    await trip(openai)
    waiting, receipt = await other.enqueue(), await answer.enqueue()
    async with working(shop):
        assert await receipt.handle.result("60s") == "instead"
        await eventually(lambda: _is(waiting, State.DELAYED))
    view = await waiting.handle.view()
    assert view is not None
    assert (view.attempts_made, view.parked) == (0, 1)


async def _is(receipt: Any, state: State) -> bool:
    return await receipt.handle.state() is state


# -- when ------------------------------------------------------------------------------------------


async def test_with_after_a_job_waits_first(shop: Faena, working: Working) -> None:
    openai = shop.upstream("openai", breaker=SLOW)
    fallback = Fallback(lambda: "instead", after="700ms", when="unavailable")

    @shop.queue("answers").task(upstreams=[openai], fallback=fallback)
    async def answer() -> str:
        return "called"

    await trip(openai)
    receipt = await answer.enqueue()
    async with working(shop):
        assert await receipt.handle.result("60s") == "instead"
    view = await receipt.handle.view()
    assert view is not None
    assert view.parked >= 1
    assert view.finished_at is not None
    assert view.enqueued_at is not None
    assert view.finished_at - view.enqueued_at >= 700_000


async def test_with_after_a_limit_that_takes_too_long_counts_as_well(
    shop: Faena, working: Working
) -> None:
    openai = shop.upstream("openai", limits=["1/10m"])
    patient = Fallback(lambda: "instead", after="300ms")

    @shop.queue("answers").task(upstreams=[openai], fallback=patient)
    async def answer() -> str:
        return "called"

    receipts = [await answer.enqueue() for _ in range(2)]
    async with working(shop):
        results = {await one.handle.result("60s") for one in receipts}
    assert results == {"called", "instead"}


async def test_without_after_a_limit_is_waited_for(shop: Faena, working: Working) -> None:
    openai = shop.upstream("openai", limits=["1/s"])

    @shop.queue("answers").task(upstreams=[openai], fallback=lambda: "instead")
    async def answer() -> str:
        return "called"

    receipts = [await answer.enqueue() for _ in range(2)]
    async with working(shop):
        assert {await one.handle.result("60s") for one in receipts} == {"called"}


async def test_a_provider_that_asks_for_patience_is_given_so_much(
    shop: Faena, working: Working
) -> None:
    openai = shop.upstream("openai")
    patient = Fallback(lambda: "instead", after="300ms")

    @shop.queue("answers").task(upstreams=[openai], fallback=patient)
    async def answer() -> str:
        raise RateLimited(3600)

    receipt = await answer.enqueue()
    async with working(shop):
        assert await receipt.handle.result("60s") == "instead"


# -- failing ---------------------------------------------------------------------------------------


async def test_a_fallback_that_fails_is_dead_and_names_both_errors(
    shop: Faena, working: Working
) -> None:
    openai = shop.upstream("openai", breaker=SLOW)
    calls: list[str] = []

    def instead() -> str:
        calls.append("instead")
        raise ValueError("no template")

    @shop.queue("answers", retry=Retry.fixed("10ms", attempts=9)).task(
        upstreams=[openai], fallback=instead
    )
    async def answer() -> str:
        return "called"

    await trip(openai)
    receipt = await answer.enqueue()
    async with working(shop):
        with pytest.raises(JobFailed, match="the fallback instead failed") as failed:
            await receipt.handle.result("60s")
    assert failed.value.error.name == "FallbackFailed"
    assert failed.value.error.code == "FALLBACK_FAILED"
    assert "ValueError: no template" in failed.value.error.message
    assert "UpstreamUnavailable: upstream openai takes no calls" in failed.value.error.message
    assert calls == ["instead"]
    assert await events_of(shop, "fell_back", "fallback_failed") == ["fallback_failed"]
    view = await receipt.handle.view()
    assert view is not None
    assert view.attempts_made == 0


async def test_a_fallback_that_calls_the_upstream_itself_does_not_loop(
    shop: Faena, working: Working
) -> None:
    openai = shop.upstream("openai", breaker=SLOW)

    async def instead() -> str:
        async with openai.call():
            return "called"

    @shop.queue("answers").task(upstreams=[openai], fallback=instead)
    async def answer() -> str:
        return "called"

    await trip(openai)
    receipt = await answer.enqueue()
    async with working(shop):
        with pytest.raises(JobFailed, match="FallbackFailed"):
            await receipt.handle.result("60s")


# -- a person, another task, instructions ----------------------------------------------------------


class Reply(msgspec.Struct):
    text: str


async def test_an_escalation_has_everything_and_the_job_has_its_answer(
    shop: Faena, working: Working
) -> None:
    told: list[Escalation] = []
    answers = shop.queue("answers", retry=Retry.fixed("10ms", attempts=2))

    @shop.queue("people").task
    async def attend(escalation: Escalation) -> None:
        told.append(escalation)

    human = Escalate(attend, answer=Reply("soon"), instructions="answer by hand")

    @answers.task(fallback=human)
    async def answer(message: dict[str, str]) -> Reply:
        raise Down(f"no answer to {message['from']}")

    receipt = await answer.enqueue({"from": "ana"}, tenant="acme", key="k")
    async with working(shop):
        assert await receipt.handle.result("60s") == Reply("soon")
        await eventually(lambda: bool(told))
    (escalation,) = told
    assert (escalation.job_id, escalation.queue, escalation.task) == (
        receipt.id,
        "answers",
        "answer",
    )
    assert (escalation.tenant, escalation.key) == ("acme", "k")
    assert escalation.payload == {"from": "ana"}
    assert escalation.instructions == "answer by hand"
    assert escalation.reason == "its attempts are used up: Down: no answer to ana"
    assert [(one.attempt, one.name) for one in escalation.errors] == [(1, "Down"), (2, "Down")]
    assert escalation.attempts_made == 2
    assert escalation.commands["rerun"] == f"faena rerun answers {receipt.id}"
    assert await escalation.handle(shop).state() is State.COMPLETED
    assert await events_of(shop, "escalated", "fell_back") == ["escalated"]


async def test_a_rerun_that_falls_back_again_is_escalated_again(
    shop: Faena, working: Working
) -> None:
    told: list[str] = []

    @shop.queue("people").task
    async def attend(escalation: Escalation) -> None:
        told.append(escalation.job_id)

    @shop.queue("answers", retry=Retry.never()).task(fallback=Escalate(attend))
    async def answer() -> None:
        raise Down

    receipt = await answer.enqueue()
    async with working(shop):
        await eventually(lambda: len(told) == 1)
        await receipt.handle.result("60s")
        await receipt.handle.rerun()
        await eventually(lambda: len(told) == 2)
    assert told == [receipt.id, receipt.id]


async def test_a_payload_that_is_too_large_for_the_desk_stays_with_the_job(
    shop: Faena, working: Working
) -> None:
    told: list[Escalation] = []

    @shop.queue("people", payload_limit=5_000).task
    async def attend(escalation: Escalation) -> None:
        told.append(escalation)

    @shop.queue("answers", retry=Retry.never()).task(fallback=Escalate(attend))
    async def answer(_text: str) -> None:
        raise Down

    await answer.enqueue("x" * 10_000)
    async with working(shop):
        await eventually(lambda: bool(told))
    assert (told[0].payload, told[0].is_payload_left_out) == (None, True)


async def test_while_the_desk_is_full_jobs_wait(shop: Faena, working: Working) -> None:
    openai = shop.upstream("openai", breaker=SLOW)
    people = shop.queue("people", backpressure=Backpressure(soft=1, hard=2))

    @people.task
    async def attend(_escalation: Escalation) -> None: ...

    @shop.queue("answers").task(upstreams=[openai], fallback=Escalate(attend))
    async def answer() -> None: ...

    await trip(openai)
    await people.pause()
    receipts = [await answer.enqueue() for _ in range(6)]
    worker = await shop.worker(["answers"])
    running = asyncio.create_task(worker.run())
    await eventually(lambda: _counts(shop, "answers", delayed=4))
    await people.resume()
    worker.stop()
    await running
    async with working(shop):
        for receipt in receipts:
            await receipt.handle.result("60s")
        await eventually(lambda: _counts(shop, "people", completed=6))


async def _counts(shop: Faena, queue: str, **wanted: int) -> bool:
    counts = await shop.queues[queue].counts()
    return all(counts[name] == number for name, number in wanted.items())


async def test_another_task_gets_the_same_payload(shop: Faena, working: Working) -> None:
    got: list[Any] = []

    @shop.queue("slow").task
    async def by_mail(reply: Reply, job: Job) -> None:
        got.append((reply, job.tenant))

    @shop.queue("answers", retry=Retry.never()).task(fallback=by_mail)
    async def send(reply: Reply) -> None:
        raise Down(reply.text)

    receipt = await send.enqueue(Reply("hi"), tenant="acme")
    async with working(shop):
        assert await receipt.handle.result("60s") is None
        await eventually(lambda: bool(got))
    assert got == [(Reply("hi"), "acme")]


async def test_instructions_are_found_at_the_desk(
    shop: Faena, working: Working, caplog: pytest.LogCaptureFixture
) -> None:
    afip = shop.upstream("afip", breaker=SLOW)

    @shop.queue("invoices").task(upstreams=[afip], fallback=Manual("Invoice it at afip.gob.ar"))
    async def invoice() -> None: ...

    await trip(afip)
    receipt = await invoice.enqueue()
    async with working(shop):
        with pytest.raises(JobFailed, match="Invoice it at afip"):
            await receipt.handle.result("60s")
    (letter,) = (await shop.dead_letters.list()).items
    assert [(one.code, one.attempt) for one in letter.errors] == [("MANUAL", 0)]
    assert "no attempt was made, and the job is dead: ManualNeeded [MANUAL]" in caplog.text
    assert "attempt 1" not in caplog.text
    await shop.dead_letters.resolve("invoices", receipt.id, by="ana", reason="done by hand")
    assert await events_of(shop, "fell_back", "fallback_failed") == ["fell_back"]
