"""What becomes of jobs while the rest of a budget is reserved by others."""

from __future__ import annotations

import asyncio

import pytest

from faena import Budget, Faena, Price, Queue
from faena.resilience.permits import CURRENT
from tests._support.eventually import eventually
from tests._support.working import Working


async def test_jobs_that_wait_for_reserved_money_look_again_one_after_the_other(
    shop: Faena, working: Working
) -> None:
    ai = shop.upstream("ai", prices=[Price("call", "1 USD")], budgets=[Budget("1 USD")])
    free = asyncio.Event()
    queue = shop.queue("answers", concurrency=11)

    @queue.task(upstreams=[ai])
    async def answer(_number: int) -> None:
        await free.wait()

    @queue.task
    async def count(_number: int) -> None:
        """Needs nobody, so the queue is not held."""

    await answer.enqueue_many([*range(11)])
    async with working(shop):
        await eventually(lambda: _are_parked(queue, 10))
        waiting = await queue.jobs(state="delayed")
        free.set()
    dues = sorted(one.due_at for one in waiting.jobs if one.due_at)
    assert max(dues) - min(dues) > 500_000, "not all at once"


async def _are_parked(queue: Queue, number: int) -> bool:
    return (await queue.overview()).counts["delayed"] == number


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_job_never_waits_for_what_it_has_reserved_itself(
    shop: Faena, working: Working, *, is_late: bool
) -> None:
    """Of two calls, or because its permit was too old for the first."""
    prices, budgets = [Price("call", "1 USD")], [Budget("1 USD")]
    ai = shop.upstream("ai", limits=["100/s"], timeout="90s", prices=prices, budgets=budgets)

    @shop.queue("answers", timeout="80s").task(upstreams=[ai])
    async def answer(_number: int) -> int:
        held = CURRENT.get()
        if is_late and held is not None and held.permits is not None:
            held.permits.sent_at -= 1
        calls = 1 if is_late else 2
        for _ in range(calls):
            async with ai.call() as call:
                call.spend(call=0)
        return calls

    receipt = await answer.enqueue(1)
    async with working(shop):
        assert await receipt.handle.result(timeout="30s") == (1 if is_late else 2)
