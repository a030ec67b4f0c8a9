"""Calls that end in odd ways are counted, paid for and never repeated without end."""

from __future__ import annotations

import asyncio
import math
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from faena import Breaker, Budget, Faena, Price, RateLimited, Retry, UpstreamUnavailable
from faena.engine.calls import resilience
from faena.engine.calls.resilience import Settled
from faena.errors import ConfigError, StoreUnavailable
from faena.resilience.call_group import Permits
from faena.resilience.permits import Permit, drop_permits, permit_of
from faena.resilience.question import Wanted
from tests._support.eventually import eventually
from tests._support.working import Working
from tests.resilience.test_money import CENT, _is_nothing_reserved, _spent

PRICES = [Price("call", "0.01 USD")]
SLOW = Breaker(volume=4, open="10m")


async def test_a_call_that_is_cancelled_is_paid(shop: Faena) -> None:
    ai = shop.upstream("ai", prices=PRICES, budgets=[Budget("0.03 USD")])
    has_begun = asyncio.Event()

    async def hang() -> None:
        async with ai.call():
            has_begun.set()
            await asyncio.sleep(600)

    for _ in range(3):
        calling = asyncio.create_task(hang())
        await has_begun.wait()
        has_begun.clear()
        calling.cancel()
        await asyncio.wait([calling])
    assert await _spent(shop, "s/ai") == 3 * CENT
    with pytest.raises(UpstreamUnavailable, match="budget"):
        async with ai.call():
            raise AssertionError("there is no money left")


async def test_a_marked_call_that_the_tasks_timeout_cuts_has_failed(
    shop: Faena, working: Working
) -> None:
    afip = shop.upstream("afip", breaker=SLOW)
    queue = shop.queue("invoices", concurrency=4, retry=Retry.fixed("10ms", attempts=50))

    @queue.task(upstreams=[afip], timeout="1s")
    async def request(_number: int) -> None:
        async with afip.call():
            await asyncio.sleep(600)

    await request.enqueue_many(list(range(8)))
    async with working(shop):
        await eventually(lambda: _is_open(afip))


async def _is_open(upstream: Any) -> bool:
    return (await upstream.view()).state == "open"


async def test_calls_in_a_job_wait_when_the_upstream_asks_to(shop: Faena, working: Working) -> None:
    afip = shop.upstream("afip", breaker=SLOW)
    queue = shop.queue("invoices", concurrency=4)
    called: list[int] = []
    ready = asyncio.Event()

    @queue.task(upstreams=[afip])
    async def request(number: int) -> None:
        await ready.wait()
        async with afip.call():
            called.append(number)

    await request.enqueue_many([1, 2, 3])
    async with working(shop):
        await eventually(lambda: _are_running(queue, 3))
        await afip.panic(reason="certificates")
        ready.set()
        await eventually(lambda: _are_running(queue, 0))
    assert called == []


async def _are_running(queue: Any, number: int) -> bool:
    return (await queue.overview()).counts["running"] == number


async def test_the_second_call_of_a_job_waits_where_it_is(shop: Faena, working: Working) -> None:
    afip = shop.upstream("afip", limits=["5/s"])
    queue = shop.queue("invoices", concurrency=10)
    first: list[int] = []

    @queue.task(upstreams=[afip])
    async def request(number: int) -> None:
        async with afip.call():
            first.append(number)
        async with afip.call():
            pass

    receipts = await request.enqueue_many(list(range(8)))
    async with working(shop):
        for receipt in receipts:
            await receipt.handle.result(timeout="60s")
    assert sorted(first) == list(range(8)), "none is called again"


async def test_a_call_with_its_own_estimate_is_paid_once(shop: Faena, working: Working) -> None:
    ai = shop.upstream("ai", prices=PRICES, budgets=[Budget("1 USD")])
    queue = shop.queue("answers")

    @queue.task(upstreams=[ai])
    async def answer() -> None:
        async with ai.call(estimate={"call": 2}):
            pass
        async with ai.call(tenant="other"):
            pass

    receipt = await answer.enqueue(tenant="acme")
    async with working(shop):
        await receipt.handle.result(timeout="60s")
    assert await _spent(shop, "s/ai") == 3 * CENT


async def test_a_call_that_outlives_its_job_is_paid(shop: Faena, working: Working) -> None:
    ai = shop.upstream("ai", prices=PRICES, budgets=[Budget("1 USD")])
    queue = shop.queue("answers")
    tasks: list[asyncio.Task[None]] = []
    go_on = asyncio.Event()

    async def call() -> None:
        async with ai.call():
            await go_on.wait()

    @queue.task(upstreams=[ai])
    async def answer() -> None:
        tasks.append(asyncio.create_task(call()))
        await asyncio.sleep(0.01)

    receipt = await answer.enqueue()
    async with working(shop):
        await receipt.handle.result(timeout="60s")
        await (await shop.runtime()).gate.flush()
        go_on.set()
        await asyncio.gather(*tasks)
        assert await _spent(shop, "s/ai") == CENT


async def test_a_caller_that_is_cancelled_while_it_asks_keeps_nothing(shop: Faena) -> None:
    ai = shop.upstream("ai", prices=PRICES, budgets=[Budget("1 USD")])
    gate = (await shop.runtime()).gate
    await gate.admit([Wanted(gate.group([ai], ""), 1)])
    asking = [asyncio.create_task(gate.admit([Wanted(gate.group([ai], "a"), 3)])) for _ in range(3)]
    await asyncio.sleep(0)
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    Permit(gate.group([ai], "").permits, ai, is_alone=True).drop()
    await eventually(lambda: _is_nothing_reserved(shop))


async def test_what_may_have_arrived_is_settled_once(
    shop: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    ai = shop.upstream("ai", prices=PRICES, budgets=[Budget("1 USD")])
    gate = (await shop.runtime()).gate
    await gate.admit([Wanted(gate.group([ai], ""), 1)])
    admit, lost = resilience.admit, [2]

    async def lossy(*args: Any) -> Any:
        answer = await admit(*args)
        if lost[0]:
            lost[0] -= 1
            raise StoreUnavailable("the answer was lost")
        return answer

    monkeypatch.setattr(resilience, "admit", lossy)
    await gate.settle(Settled("lot", 0, "", "", ["ai", CENT]))
    assert lost == [0]
    assert await _spent(shop, "s/ai") == CENT


async def test_thousands_ask_at_once(shop: Faena) -> None:
    afip = shop.upstream("afip", tenant_limits=["5/s", "9/min"])
    gate = (await shop.runtime()).gate
    wanted = [Wanted(gate.group([afip], f"t{number}"), 1) for number in range(9_000)]
    answers = await gate.admit(wanted)
    assert sum(one.grant.number for one in answers) == 9_000


@pytest.mark.parametrize("said", [0, "0", "Mon, 16 Nov 2020 12:00:00 GMT", b"5", [1], "nonsense"])
async def test_whatever_a_429_says_there_is_a_pause(shop: Faena, said: Any) -> None:
    afip = shop.upstream("afip")

    class Answer:
        status_code = 429

        def __init__(self) -> None:
            self.headers = {"retry-after": said}

    class TooMany(Exception):
        response = Answer()

    with pytest.raises(TooMany):
        async with afip.call():
            raise TooMany
    with pytest.raises(UpstreamUnavailable) as caught:
        async with afip.call():
            raise AssertionError("it was permitted")
    assert caught.value.reason == "rate_limited"


async def test_a_sorting_that_fails_hides_no_error(shop: Faena) -> None:
    def sort(_error: BaseException) -> str:
        raise ZeroDivisionError

    afip = shop.upstream("afip", breaker=SLOW, sorting=sort)

    class Odd(Exception):
        def __setattr__(self, name: str, value: Any) -> None:
            raise TypeError

        @property
        def response(self) -> Any:
            raise KeyError

    for _ in range(4):
        with pytest.raises(Odd):
            async with afip.call():
                raise Odd
    await eventually(lambda: _is_open(afip))


async def test_an_outage_after_good_calls_opens_within_the_volume(shop: Faena) -> None:
    afip = shop.upstream("afip", breaker=SLOW)
    for _ in range(30):
        async with afip.call():
            pass
    gate = (await shop.runtime()).gate
    await gate.flush()

    @afip
    async def fail() -> None:
        raise ConnectionRefusedError

    for _ in range(SLOW.volume):
        with pytest.raises(ConnectionRefusedError):
            await fail()
        await gate.flush()
    with pytest.raises(UpstreamUnavailable):
        await fail()


async def test_a_call_is_made_once(shop: Faena) -> None:
    call = shop.upstream("ai", prices=PRICES).call()
    with pytest.raises(ConfigError, match="must be entered first"):
        call.spend(call=1)
    async with call:
        with pytest.raises(ConfigError, match="must be made once"):
            await call.__aenter__()


def test_amounts_beyond_all_reason_are_refused(app: Faena) -> None:
    ai = app.upstream("ai", prices=[Price("token", "1000 USD")], estimate={"token": 1})
    with pytest.raises(ConfigError, match=r"a call must cost at most 1000000000\.00 USD"):
        ai.call(estimate={"token": 10**12})
    for wrong in ({"hard": "no"}, {"each_tenant": 1}):
        with pytest.raises(ConfigError, match="must be a bool"):
            Budget("5 USD", **wrong)  # pyright: ignore[reportArgumentType]


# -- closings --------------------------------------------------------------------------------------


async def test_a_pause_holds_for_tenants_that_have_permits(shop: Faena) -> None:
    afip = shop.upstream("afip", tenant_limits=["9000/s"])
    gate = (await shop.runtime()).gate
    one, other = (gate.group([afip], tenant) for tenant in "ab")
    other.permits.left, other.permits.good_until = 5, time.monotonic() + 600
    Permit(one.permits, afip).end(RateLimited(retry_after=60))
    assert other.take(time.monotonic()) is None
    assert other.permits.left == 0


async def test_a_shorter_pause_ends_no_longer_one(shop: Faena) -> None:
    afip = shop.upstream("afip")
    gate = (await shop.runtime()).gate
    group = gate.group([afip], "")
    for seconds in (60, 1):
        Permit(group.permits, afip).end(RateLimited(retry_after=seconds))
    assert (closing := group.closing())
    assert closing.until > time.monotonic() + 30


async def test_a_date_is_read_by_the_wall_clock(shop: Faena) -> None:
    afip = shop.upstream("afip")
    gate = (await shop.runtime()).gate
    group = gate.group([afip], "")
    at = datetime.now(UTC) + timedelta(seconds=300)
    Permit(group.permits, afip).end(RateLimited(format_datetime(at, usegmt=True)))
    assert (closing := group.closing())
    assert 200 < closing.until - time.monotonic() < 301


async def test_an_attempt_that_never_began_frees_its_probe(shop: Faena) -> None:
    afip = shop.upstream("afip", breaker=Breaker(volume=4, open="100ms", longest="100ms"))
    gate = (await shop.runtime()).gate
    group = gate.group([afip], "")
    group.counters[0].add_bad(4)
    await gate.flush()

    async def probes() -> bool:
        (answer,) = await gate.admit([Wanted(group, 1)])
        if answer.grant.is_probe:
            holder = Holding(answer.permits, answer.permits.probe(1))
            drop_permits(holder, is_running=False)
            await gate.flush()
        return answer.grant.is_probe

    await eventually(probes)
    assert await probes(), "its place is free at once"


class Holding:
    """An attempt with a permit."""

    called: set[str] | None = None
    spent: dict[str, int] | None = None
    started, tenant, task_name, is_timed_out = 0.0, "", "", False

    def __init__(self, permits: Permits, probe: str = "") -> None:
        self.permits: Permits | None = permits
        self.probe = probe


async def test_what_still_runs_when_it_is_given_up_is_paid(shop: Faena) -> None:
    ai = shop.upstream("ai", prices=PRICES, budgets=[Budget("1 USD")])
    gate = (await shop.runtime()).gate
    for is_running in (False, True):
        (answer,) = await gate.admit([Wanted(gate.group([ai], ""), 1)])
        drop_permits(Holding(answer.permits), is_running=is_running)
    assert await _spent(shop, "s/ai") == CENT
    await eventually(lambda: _is_nothing_reserved(shop))


async def test_where_there_are_limits_an_old_permit_is_not_used(shop: Faena) -> None:
    afip = shop.upstream("afip", limits=["5/10m"])
    mp = shop.upstream("mp")
    gate = (await shop.runtime()).gate
    for upstream, is_used in ((afip, False), (mp, True)):
        (answer,) = await gate.admit([Wanted(gate.group([upstream], ""), 1)])
        fresh, old = Holding(answer.permits), Holding(answer.permits)
        answer.permits.sent_at = time.monotonic()
        assert permit_of(fresh, upstream) is not None
        answer.permits.sent_at -= 2
        assert (permit_of(old, upstream) is not None) == is_used
        assert {*(old.called or ())} == {upstream.name}, "its handler is not the call"


@pytest.mark.parametrize(
    ("limits", "tenant_limits", "within_s"),
    [
        ([], [], math.inf),
        (["60/min", "1000/h"], [], 1.0),
        (["80/s"], ["50/min"], 0.05),
        (["50/min"], ["20/2s"], 0.1),
        (["9/10ms"], [], 0.05),
    ],
)
def test_a_permit_is_good_for_a_twentieth_of_the_shortest_window(
    shop: Faena, limits: list[str], tenant_limits: list[str], within_s: float
) -> None:
    made = shop.upstream("afip", limits=limits, tenant_limits=tenant_limits)
    assert made.call_within_s == within_s


async def test_a_pause_that_is_shorter_than_an_opening_outlives_it(shop: Faena) -> None:
    afip = shop.upstream("afip")
    gate = (await shop.runtime()).gate
    group = gate.group([afip], "")
    gate.close("afip", "", 900_000_000, "open")
    Permit(group.permits, afip).end(RateLimited(retry_after=600))
    assert (closing := group.closing())
    assert closing.reason == "open", "which lasts longer"
    gate.closings.open("afip", "", {"open", "panic"})
    assert (closing := group.closing())
    assert closing.reason == "rate_limited"


async def test_a_closing_of_one_tenant_leaves_the_others(shop: Faena) -> None:
    mp = shop.upstream("mp", breaker=Breaker(per="tenant"))
    gate = (await shop.runtime()).gate
    ours, others, all_calls = (gate.group([mp], tenant) for tenant in ("a", "b", ""))
    gate.close("mp", "a", 600_000_000, "open")
    assert [one.closing() is None for one in (ours, others, all_calls)] == [False, True, True]
    with pytest.raises(UpstreamUnavailable) as refused:
        ours.refuse_closed()
    assert refused.value.is_for_tenant
    gate.closings.open("mp", "", {"open"})
    assert ours.closing() is None
    assert not gate.closings.known
