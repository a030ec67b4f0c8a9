"""What follows a failure, and how a handler says it itself."""

from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from faena import Discard, Faena, Job, RateLimited, Retry, Snooze
from faena.testing import Harness, attempt


async def test_a_failed_attempt_is_tried_again_with_growing_waits(app: Faena, h: Harness) -> None:
    policy = Retry.exponential(base="1s", factor=3, attempts=4, jitter=0)

    @app.queue("calls", retry=policy).task
    async def call(job: Job) -> str:
        if job.attempt < 4:
            raise ConnectionError("busy")
        return "through"

    receipt = await call.enqueue()
    waits = []
    for _ in range(3):
        (ran,) = await h.drain()
        waits.append(ran.outcome.delay_us / 1e6)
        h.clock.advance("30s")
    await h.drain()
    assert waits == [1, 3, 9]
    assert await receipt.handle.result() == "through"
    view = await receipt.handle.view()
    assert view is not None
    assert view.attempts_made == 4
    assert "completed" in str(told := await receipt.handle.explain())
    assert "after 3 failed attempts" in str(told)


async def test_a_job_out_of_attempts_is_dead_and_keeps_its_errors(app: Faena, h: Harness) -> None:
    @app.queue("calls", retry=Retry.fixed("30s", attempts=2)).task
    async def call(job: Job) -> None:
        raise ConnectionRefusedError(f"attempt {job.attempt}")

    receipt = await call.enqueue()
    assert (await h.drain(through="5m")).counts == {"retried": 1, "dead": 1}
    view = await receipt.handle.view()
    assert view is not None
    assert [error.message for error in view.errors] == ["attempt 1", "attempt 2"]
    assert {error.code for error in view.errors} == {"ECONNREFUSED"}


async def test_waits_may_be_a_list_or_a_function(app: Faena, h: Harness) -> None:
    def slower_for_timeouts(attempt: int, error: BaseException | None) -> str:
        return "10m" if isinstance(error, TimeoutError) else "5s"

    steps = app.queue("steps", retry=Retry.steps("30s", "2m", jitter=0))
    custom = app.queue("custom", retry=Retry.custom(slower_for_timeouts, jitter=0))

    @steps.task
    async def first() -> None:
        raise OSError

    @custom.task
    async def second() -> None:
        raise TimeoutError

    await first.enqueue()
    await second.enqueue()
    await h.drain()
    await h.assert_enqueued(first, due_in="30s")
    await h.assert_enqueued(second, due_in="10m")


async def test_some_errors_are_not_worth_another_attempt(app: Faena, h: Harness) -> None:
    @app.queue("calls", retry=Retry.exponential(attempts=9, give_up_on=(KeyError,))).task
    async def call() -> None:
        raise KeyError("no such invoice")

    await call.enqueue()
    assert (await h.drain(through="1h")).counts == {"dead": 1}


async def test_snooze_puts_a_job_off_without_using_an_attempt(app: Faena, h: Harness) -> None:
    is_open = False

    @app.queue("calls").task
    async def call(job: Job) -> int:
        if not is_open:
            raise Snooze("10m")
        return job.attempt

    receipt = await call.enqueue()
    assert (await h.drain(through="1h")).counts == {"snoozed": 7}
    is_open = True
    await h.drain(through="10m")
    assert await receipt.handle.result() == 1


async def test_discard_gives_a_job_up_at_once(app: Faena, h: Harness) -> None:
    @app.queue("calls").task
    async def call() -> None:
        raise Discard("the customer is gone")

    await call.enqueue()
    assert (await h.drain()).counts == {"dead": 1}


async def test_a_providers_not_before_holds_the_whole_queue(app: Faena, h: Harness) -> None:
    calls = app.queue("calls", retry=Retry.exponential(jitter=0))
    answers = [RateLimited(retry_after=60), None, None]

    @calls.task
    async def call(job: Job) -> int:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        return job.attempt

    await call.enqueue_many([call.draft(), call.draft()])
    assert (await h.drain()).counts == {"limited": 1}
    (hold,) = (await calls.overview()).holds
    assert hold.reason == "rate_limited"
    h.clock.advance("60s")
    assert [ran.result for ran in await h.drain()] == [1, 1]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 1.5 ", 1.5),
        ("90s", 90),
        (2.5, 2.5),
        (timedelta(minutes=2), 120),
        ("-5", 0),
        (-5, 0),
        (timedelta(seconds=-5), 0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        (None, 60),
        ("", 60),
        ("soon", 60),
        ("nan", 60),
    ],
)
async def test_a_retry_after_header_is_taken_as_it_comes(
    app: Faena, header: Any, seconds: float
) -> None:
    policy = Retry.exponential(attempts=1, jitter=0, floor="0s")

    @app.queue("calls", retry=policy).task
    async def call() -> None:
        raise RateLimited(header)

    outcome = (await attempt(call)).outcome
    assert (outcome.kind, outcome.delay_us) == ("limited", seconds * 1_000_000)


async def test_a_providers_date_is_compared_with_the_servers_time(app: Faena, h: Harness) -> None:
    @app.queue("calls", retry=Retry.exponential(attempts=1, jitter=0)).task
    async def call() -> None:
        raise RateLimited(format_datetime(h.clock.now + timedelta(hours=1), usegmt=True))

    await call.enqueue()
    (ran,) = await h.drain()
    assert 3598 < ran.outcome.delay_us / 1e6 <= 3600


async def test_a_task_may_say_how_many_attempts_its_jobs_have(app: Faena, h: Harness) -> None:
    queue = app.queue("mail", retry=Retry.steps("1m", "2m", attempts=3, jitter=0))

    @queue.task(attempts=2)
    async def send(_: str) -> None:
        raise ConnectionError("no answer")

    await send.enqueue("ana")
    ran = await h.drain(through="1h")
    assert ran.counts == {"retried": 1, "dead": 1}
