"""Operators stop all calls to an upstream, and every process hears of it at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from faena import Breaker, Faena, Retry
from faena.engine.keys import channel
from faena.errors import ConfigError
from faena.outcomes import UpstreamUnavailable
from faena.resilience.call_group import CallGroup
from faena.resilience.question import Wanted
from faena.resilience.upstream import Upstream
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import Working

SLOW = Breaker(volume=4, open="10m")


@pytest.fixture
async def office(valkey: Server, namespace: str) -> AsyncIterator[Faena]:
    """The program of an operator, which declares nothing."""
    office = Faena("office", valkey.url, namespace=namespace)
    yield office
    await office.close()


async def _subscribers(app: Faena) -> int:
    wire = (await app.runtime()).engine.wire
    name = channel(app.namespace, "upstreams")
    _, number = await wire.call("PUBSUB", "NUMSUB", name, key=name, patience_s=5)
    return int(number)


async def _with_advance(app: Faena, upstream: Upstream) -> CallGroup:
    """The calls of a process that has begun to listen, with some permits in advance."""
    async with upstream.call():
        pass
    gate = (await app.runtime()).gate
    group = gate.group([upstream], "")
    group.permits.left, group.permits.good_until = 100, float("inf")
    assert group.take(0.0)
    return group


# -- jobs ------------------------------------------------------------------------------------------


async def test_no_job_starts_in_a_panic_and_all_do_soon_after_it(
    shop: Faena, office: Faena, working: Working
) -> None:
    afip = shop.upstream("afip")
    queue = shop.queue("invoices", concurrency=3)
    ran: list[int] = []

    @queue.task(upstreams=[afip])
    async def request(number: int) -> None:
        ran.append(number)

    assert await afip.panic(reason="certificates expired", by="ana")
    receipts = await request.enqueue_many(list(range(20)))
    async with working(shop):

        async def is_held() -> bool:
            return "upstream afip" in [one.reason for one in (await queue.overview()).holds]

        await eventually(is_held)
        assert ran == []
        assert await office.upstream_control.end_panic("afip", by="leo")
        for receipt in receipts:  # long before the hold would have ended by itself
            await receipt.handle.result(timeout="30s")
    views = [await receipt.handle.view() for receipt in receipts]
    assert {view.attempts_made for view in views} == {1}


async def test_a_long_panic_holds_a_queue_for_a_minute_at_a_time(
    shop: Faena, working: Working
) -> None:
    """Somebody may end it, and nobody may hear."""
    afip = shop.upstream("afip")
    queue = shop.queue("invoices")

    @queue.task(upstreams=[afip])
    async def request() -> None: ...

    await afip.panic(reason="closed for the day", lasting="8h")
    await request.enqueue()
    async with working(shop):

        async def is_held() -> bool:
            return bool((await queue.overview()).holds)

        await eventually(is_held)
    overview = await queue.overview()
    (hold,) = overview.holds
    assert hold.until is not None
    assert hold.until <= overview.at + 60_000_000


async def test_a_job_that_calls_what_its_task_does_not_name_waits_too(
    shop: Faena, working: Working
) -> None:
    afip = shop.upstream("afip")

    @shop.queue("invoices").task
    async def request() -> None:
        async with afip.call():
            pass

    await afip.panic(reason="stop", by="ana")
    receipt = await request.enqueue()
    async with working(shop):

        async def waits() -> bool:
            return "upstream afip is in panic" in str(await receipt.handle.explain())

        await eventually(waits)
    view = await receipt.handle.view()
    assert (view.attempts_made, view.parked) == (0, 1), "and not again and again"


async def test_repeated_opening_calls_a_panic(shop: Faena, working: Working) -> None:
    breaker = Breaker(volume=2, open="100ms", longest="100ms")
    afip = shop.upstream("afip", breaker=breaker, panic_after=3)
    queue = shop.queue("invoices", retry=Retry.fixed("10ms", attempts=50))

    @queue.task(upstreams=[afip])
    async def request(_number: int) -> None:
        raise ConnectionRefusedError("down")

    await request.enqueue_many(list(range(20)))
    async with working(shop):

        async def is_in_panic() -> bool:
            return (await afip.view()).panic is not None

        await eventually(is_in_panic)
    panic = (await afip.view()).panic
    assert panic is not None
    assert (panic.by, panic.reason) == ("faena", "the breaker has opened 3 times in a row")


# -- calls -----------------------------------------------------------------------------------------


async def test_a_call_says_that_it_is_a_panic(shop: Faena) -> None:
    afip = shop.upstream("afip")
    await afip.panic(reason="certificates expired")
    with pytest.raises(UpstreamUnavailable, match="upstream afip takes no calls: panic"):
        async with afip.call():
            raise AssertionError("it was called")
    assert await afip.end_panic()
    async with afip.call():
        pass


async def test_every_process_drops_its_permits_and_gets_new_ones_after_the_end(
    shop: Faena, office: Faena
) -> None:
    group = await _with_advance(shop, afip := shop.upstream("afip"))
    await office.upstream_control.panic("afip", reason="stop", by="ana", lasting="1h")
    await eventually(lambda: group.permits.left == 0)
    assert (closing := group.closing())
    assert (closing.upstream, closing.reason) == ("afip", "panic")
    await office.upstream_control.end_panic("afip")
    await eventually(lambda: group.closing() is None)
    async with afip.call():
        pass


async def test_a_breaker_that_opens_elsewhere_closes_this_process(
    shop: Faena, office: Faena
) -> None:
    group = await _with_advance(shop, shop.upstream("afip", breaker=SLOW))
    twin = office.upstream("afip", breaker=SLOW)
    for _ in range(3):  # of four calls
        with pytest.raises(ConnectionRefusedError):
            async with twin.call():
                raise ConnectionRefusedError("down")
    await eventually(lambda: group.permits.left == 0)
    await eventually(lambda: (closing := group.closing()) and closing.reason == "open")


async def test_one_tenants_breaker_leaves_the_permits_of_others(shop: Faena, office: Faena) -> None:
    mine = Breaker(volume=1, open="10m", per="tenant")
    mp, twin = shop.upstream("mp", breaker=mine), office.upstream("mp", breaker=mine)
    await _with_advance(shop, mp)
    gate = (await shop.runtime()).gate
    ours, others = (gate.group([mp], tenant) for tenant in ("broken", "good"))
    for group in (ours, others):
        await gate.admit([Wanted(group, 1)])
        group.permits.left = 5
    with pytest.raises(ConnectionRefusedError):
        async with twin.call(tenant="broken"):
            raise ConnectionRefusedError("no such account")
    await eventually(lambda: ours.permits.left == 0)
    assert others.permits.left == 5


async def test_it_listens_again_after_its_connection_was_lost(shop: Faena, office: Faena) -> None:
    group = await _with_advance(shop, shop.upstream("afip"))
    before = await _subscribers(office)
    await (await shop.runtime()).engine.wire.call(
        "CLIENT", "KILL", "TYPE", "pubsub", key="", patience_s=5
    )

    async def is_heard() -> bool:
        return await _subscribers(office) == before

    await eventually(is_heard)
    await office.upstream_control.panic("afip", reason="stop")
    await eventually(lambda: group.permits.left == 0)


async def test_only_programs_that_call_upstreams_listen(shop: Faena) -> None:
    @shop.queue("mail").task
    async def send() -> None: ...

    afip = shop.upstream("afip")
    await send.enqueue()
    await afip.view()
    assert await _subscribers(shop) == 0
    async with afip.call():
        pass
    assert await _subscribers(shop) == 1
    async with afip.call():
        pass
    assert await _subscribers(shop) == 1


async def test_a_program_that_ends_reports_its_last_calls(shop: Faena, office: Faena) -> None:
    afip, twin = shop.upstream("afip", breaker=SLOW), office.upstream("afip", breaker=SLOW)
    with pytest.raises(ConnectionRefusedError):
        async with twin.call():
            raise ConnectionRefusedError("down")
    await office.close()
    assert (await afip.view()).failed == 1


# -- what operators see and say --------------------------------------------------------------------


async def test_all_upstreams_are_seen_also_those_of_other_programs(
    shop: Faena, office: Faena
) -> None:
    shop.upstream("afip", limits=["60/min"])
    shop.upstream("mp")
    assert [one.name for one in await shop.upstream_views()] == ["afip", "mp"]
    afip, _ = await office.upstream_views()
    assert (str(afip.limits[0].limit), afip.to_dict()["state"]) == ("60/min", "closed")


async def test_what_code_says_anew_replaces_what_it_said(shop: Faena, office: Faena) -> None:
    old, new = shop.upstream("afip", limits=["1/h"]), office.upstream("afip", limits=["9/h"])
    for upstream in (old, new):
        async with upstream.call():
            pass
    assert [use.max for use in (await old.view()).limits] == [9]


async def test_a_panic_is_replaced_by_the_next(shop: Faena) -> None:
    afip = shop.upstream("afip")
    assert await afip.panic(reason="stop", by="ana", lasting="1h")
    assert not await afip.panic(reason="really", by="leo")
    panic = (await afip.view()).panic
    assert panic is not None
    assert (panic.reason, panic.by, panic.until) == ("really", "leo", None)
    assert await afip.end_panic(by="leo")
    assert not await afip.end_panic(by="leo")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"reason": ""}, "reason must be 1 to 200 printable characters"),
        ({"reason": "x", "by": "a b"}, "by must be 1 to 128 printable characters without spaces"),
        ({"reason": "x", "lasting": "0s"}, "lasting must be a duration from 1us"),
        ({"reason": "x", "lasting": 5}, "lasting must be a timedelta"),
    ],
)
async def test_a_panic_that_makes_no_sense_is_refused(
    shop: Faena, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        await shop.upstream("afip").panic(**given)


async def test_an_upstream_that_nobody_declared_is_refused(shop: Faena) -> None:
    shop.upstream("afip")
    with pytest.raises(ConfigError, match="got 'affip'; did you mean 'afip'"):
        await shop.upstream_control.panic("affip", reason="stop")
    with pytest.raises(ConfigError, match="upstream must be 1 to 64"):
        await shop.upstream_control.view("A F")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"panic_after": 0}, "panic_after must be a whole number from 1 to 1000"),
        ({"panic_after": True}, "panic_after must be a whole number"),
        ({"panic_after": 3, "breaker": Breaker(per="tenant")}, "with a breaker per upstream"),
    ],
)
def test_what_makes_no_sense_is_refused(app: Faena, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        app.upstream("afip", **options)
