"""Calls in threads, and permits that a process has in advance."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Never

import pytest

from faena import Faena, RateLimited, Retry
from faena.errors import ConfigError, StoreUnavailable
from faena.outcomes import UpstreamUnavailable
from faena.resilience.breaker import Breaker
from faena.resilience.call_group import CallGroup
from faena.resilience.gate import Gate
from faena.resilience.permits import Permit
from faena.resilience.question import Wanted
from faena.resilience.upstream import Upstream
from tests._support.eventually import eventually
from tests._support.working import Working

SLOW = Breaker(volume=4, open="10m")


# -- threads ---------------------------------------------------------------------------------------


def _in_thread(do: Callable[[], object]) -> list[BaseException]:
    """Run it in a thread; the error it ended with."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            do()
        except BaseException as error:  # noqa: BLE001 - for the test to look at
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    return ended


def test_a_plain_function_is_guarded(shop: Faena) -> None:
    afip = shop.upstream("afip", breaker=SLOW)

    @afip
    def fail() -> None:
        raise ConnectionRefusedError("down")

    for _ in range(4):
        (error,) = _in_thread(fail)
        assert isinstance(error, ConnectionRefusedError)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # the last report is sent shortly after
        (error,) = _in_thread(fail)
        if isinstance(error, UpstreamUnavailable):
            break
    assert isinstance(error, UpstreamUnavailable)
    assert error.reason == "open"
    (error,) = _in_thread(lambda: afip.run_sync(len, "abc"))
    assert isinstance(error, UpstreamUnavailable)


async def test_with_is_refused_in_an_event_loop(shop: Faena) -> None:
    call = shop.upstream("afip").call()
    with pytest.raises(ConfigError, match="`async with` inside an event loop"):
        call.__enter__()


async def test_a_handler_in_a_thread_uses_its_jobs_permit(shop: Faena, working: Working) -> None:
    afip = shop.upstream("afip", limits=["1/10m"])
    queue = shop.queue("invoices")
    seen: list[str] = []

    @queue.task(upstreams=[afip])
    def request() -> None:
        with afip.call():
            seen.append("first")
        try:
            with afip.call():
                seen.append("second")
        except UpstreamUnavailable as error:
            seen.append(error.reason)

    receipt = await request.enqueue()
    async with working(shop):
        await receipt.handle.result(timeout="60s")
    assert seen == ["first", "limit"]


# -- in advance ------------------------------------------------------------------------------------


async def _with_advance(upstream: Upstream, gate: Gate) -> CallGroup:
    """Ask until some permits are left over; the machine may be slow."""
    group = gate.group([upstream], "")
    for _ in range(1000):
        await gate.admit([Wanted(group, 1)])
        if group.permits.left:
            return group
    raise AssertionError("nothing was granted in advance")


async def test_a_failure_drops_what_was_granted_in_advance(shop: Faena) -> None:
    afip = shop.upstream("afip", breaker=SLOW)
    gate = (await shop.runtime()).gate
    group = await _with_advance(afip, gate)
    Permit(group.permits, afip).end(None)
    assert group.permits.left > 0
    Permit(group.permits, afip).end(ConnectionRefusedError("down"))
    assert group.permits.left == 0


async def test_a_failure_drops_what_is_being_granted(shop: Faena) -> None:
    afip = shop.upstream("afip", breaker=SLOW)
    gate = (await shop.runtime()).gate
    group = await _with_advance(afip, gate)
    group.permits.left, group.used = 0, 100
    asking = asyncio.create_task(gate.admit([Wanted(group, 1)]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    Permit(group.permits, afip).end(ConnectionRefusedError("down"))
    await asking
    assert group.permits.left == 0


async def test_permits_are_good_for_a_moment_only(shop: Faena) -> None:
    afip = shop.upstream("afip")
    gate = (await shop.runtime()).gate
    group = await _with_advance(afip, gate)
    assert group.take(group.permits.good_until - 0.001)
    assert not group.take(group.permits.good_until)


async def test_permits_are_asked_for_before_they_run_out(shop: Faena) -> None:
    gate = (await shop.runtime()).gate
    group = await _with_advance(shop.upstream("afip"), gate)
    before, group.permits.left, group.used = group.permits, 5, 500
    gate.refresh(group, 5, before.good_until - 0.04)
    assert not group.is_refreshing, "five are left, for a while"
    gate.refresh(group, 6, before.good_until - 0.04)
    assert group.is_refreshing
    assert group.take(before.good_until - 0.04), "which go on being used meanwhile"
    await eventually(lambda: not group.is_refreshing)
    assert group.permits is not before
    assert group.permits.left > 5
    gate.refresh(group, 1, group.permits.good_until - 0.01)
    assert group.is_refreshing, "they lapse soon"
    await eventually(lambda: not group.is_refreshing)


async def test_permits_that_cannot_be_asked_for_in_time_are_asked_for_later(shop: Faena) -> None:
    gate = (await shop.runtime()).gate
    group = await _with_advance(shop.upstream("afip"), gate)
    broken, gate._declared = gate._declared, _unreachable
    gate.refresh(group, 10_000, 0.0)
    await eventually(lambda: not group.is_refreshing)
    gate._declared = broken
    (answer,) = await gate.admit([Wanted(group, 10_000)])
    assert answer.grant.number == 10_000


async def _unreachable(*_: object) -> Never:
    raise StoreUnavailable("the broker cannot be reached")


async def test_jobs_that_were_permitted_wait_when_the_upstream_asks_to(
    shop: Faena, working: Working
) -> None:
    """All of them were permitted in one batch, but the handler never waits: they run in turn."""
    mp = shop.upstream("mp")
    queue = shop.queue("payments", concurrency=50, retry=Retry.never())
    began: list[float] = []

    @queue.task(upstreams=[mp])
    async def pay(_number: int) -> None:
        began.append(time.monotonic())
        if len(began) == 10:
            raise RateLimited(retry_after=2)

    receipts = await pay.enqueue_many(list(range(50)))
    async with working(shop):
        for receipt in receipts:
            await receipt.handle.result(timeout="60s")
    assert len(began) == 51
    assert min(began[10:]) - began[9] >= 2


async def test_an_open_breaker_stops_what_was_permitted(shop: Faena, working: Working) -> None:
    mp = shop.upstream("mp", breaker=SLOW)
    queue = shop.queue("payments", concurrency=4, retry=Retry.never())
    calls: list[int] = []

    @queue.task(upstreams=[mp])
    async def pay(number: int) -> None:
        calls.append(number)
        raise ConnectionRefusedError("down")

    await pay.enqueue_many(list(range(100)))
    async with working(shop):

        async def is_held() -> bool:
            return [hold.reason for hold in (await queue.overview()).holds] == ["upstream mp"]

        await eventually(is_held)
    assert 4 <= len(calls) <= 8, "the volume, and one for each slot"


async def test_a_call_that_is_cut_off_says_so(shop: Faena) -> None:
    afip = shop.upstream("afip", timeout="20ms")
    with pytest.raises(TimeoutError, match=r"^upstream afip did not answer within 20ms$"):
        await afip.run(asyncio.Event().wait)
