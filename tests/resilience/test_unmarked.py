"""A worker warns of handlers that do not mark their calls, when that has made a difference."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from faena import Discard, Faena, Retry
from faena.errors import JobFailed
from tests._support.working import Working

Handler = Callable[[int], Awaitable[None]]


async def _fail(shop: Faena, working: Working, handler: Handler, **options: Any) -> None:
    """Run two jobs of a task, which fail."""
    queue = shop.queue("payments", retry=Retry.never())
    task = queue.task(name="settle", **options)(handler)
    receipts = await task.enqueue_many([1, 2])
    async with working(shop):
        for receipt in receipts:
            with pytest.raises(JobFailed):
                await receipt.handle.result(timeout="60s")


def _warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if ".call():`" in one.getMessage()]


async def test_an_error_that_is_about_none_of_several_upstreams_is_told_once(
    shop: Faena, working: Working, caplog: pytest.LogCaptureFixture
) -> None:
    async def settle(_number: int) -> None:
        raise ConnectionRefusedError("down")

    both = [shop.upstream("mp"), shop.upstream("afip")]
    await _fail(shop, working, settle, upstreams=both)
    (warning,) = _warnings(caplog)
    assert warning == (
        "queue payments: task settle names several upstreams (mp, afip) and has marked no call, so "
        "its error counts for none of their breakers: write `async with mp.call():` around each "
        "call"
    )


async def test_where_calls_are_marked_or_the_handler_has_decided_nothing_is_told(
    shop: Faena, working: Working, caplog: pytest.LogCaptureFixture
) -> None:
    mp, afip = shop.upstream("mp"), shop.upstream("afip")

    async def settle(number: int) -> None:
        if number == 1:
            raise Discard("it is paid")
        async with mp.call():
            raise ConnectionRefusedError("down")

    await _fail(shop, working, settle, upstreams=[mp, afip])
    assert _warnings(caplog) == []


async def test_a_task_that_its_upstreams_timeout_did_not_cut_is_told_why(
    shop: Faena, working: Working, caplog: pytest.LogCaptureFixture
) -> None:
    async def settle(_number: int) -> None:
        await asyncio.Event().wait()

    mp = shop.upstream("mp", timeout="10ms")
    await _fail(shop, working, settle, upstreams=[mp], timeout="200ms")
    (warning,) = _warnings(caplog)
    assert warning == (
        "queue payments: task settle was stopped after 200ms, its own timeout; that of upstream "
        "mp, 10ms, is for calls that are marked: write `async with mp.call():` around the call, "
        'or give the task timeout="10ms"'
    )


async def test_a_timeout_that_is_not_longer_than_its_upstreams_needs_no_words(
    shop: Faena, working: Working, caplog: pytest.LogCaptureFixture
) -> None:
    async def settle(_number: int) -> None:
        await asyncio.Event().wait()

    mp = shop.upstream("mp", timeout="200ms")
    await _fail(shop, working, settle, upstreams=[mp], timeout="200ms")
    assert _warnings(caplog) == []
