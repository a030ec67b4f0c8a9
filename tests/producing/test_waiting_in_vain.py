"""A wait for a result that is over before the job is: what is said of how the job stands."""

from __future__ import annotations

import asyncio

import pytest

from faena import Faena
from faena.errors import JobNotFound, ResultTimeout
from faena.inspection.inspector import _Waiter
from tests._support.eventually import eventually


async def test_a_wait_that_is_over_before_anything_was_answered_does_not_say_that_the_job_goes_on(
    app: Faena,
) -> None:
    queue = app.queue("mail")
    with pytest.raises(
        ResultTimeout, match="its state is unknown: the broker did not answer in time"
    ):
        await queue.handle("unknown").result(timeout="1us")
    with pytest.raises(JobNotFound, match="no job unknown in queue mail"):
        await queue.handle("unknown").result(timeout="1m")


async def test_a_wait_that_is_over_after_the_job_was_seen_says_that_it_goes_on(app: Faena) -> None:
    @app.queue("mail").task
    async def shout(word: str) -> str:
        return word.upper()

    waiter = _Waiter()
    inspector = (await app.runtime()).inspector
    receipt = await shout.enqueue("hola")
    waiting = asyncio.create_task(inspector._wait("mail", receipt.id, None, waiter))
    await eventually(lambda: waiter.is_seen)
    waiting.cancel()
    assert str(waiter.too_late(receipt.id, 1.5)).endswith(
        "is not finished after 1.5 s; it was not cancelled"
    )
