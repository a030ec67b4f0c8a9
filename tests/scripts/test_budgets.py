"""What calls to upstreams may cost is reserved before, and settled afterwards, in `admit`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from faena.engine.calls import resilience
from faena.engine.calls.resilience import SHARD, Ask, Grant, Settled
from faena.engine.scripts import texts
from faena.resilience.money import TOTALS, Budget, Price, total_settings
from tests._support.rig import Rig
from tests._support.upstream_rig import UpstreamRig

DOLLAR = 10**6
MINUTE = 60 * 10**6
PRICES = [Price("call", "1 USD")]


@pytest.fixture
async def upstreams(rig: Rig) -> AsyncIterator[UpstreamRig]:
    made = UpstreamRig(rig)
    at = datetime(2026, 11, 16, 12, tzinfo=UTC)
    made.clock.now = int(at.timestamp()) * 10**6
    yield made
    await made.clear()


async def ask(
    upstreams: UpstreamRig,
    number: int,
    lot: str = "lot",
    tenant: str = "",
    *,
    name: str = "ai",
    micro: int = DOLLAR,
    advance: int = 0,
) -> Grant:
    asked = Ask([name], tenant, number, lot, advance, [micro], MINUTE)
    return (await upstreams.admit([asked])).grants[0]


async def settle(
    upstreams: UpstreamRig, ended: int, micro: int, lot: str = "lot", tenant: str = "", **more: Any
) -> None:
    costs = [more.pop("name", "ai"), micro]
    await upstreams.admit(settled=[Settled(lot, ended, tenant, more.pop("task", ""), costs)])


async def spent(upstreams: UpstreamRig, period: str) -> dict[str, int]:
    flat = texts(await upstreams.engine.command("HGETALL", SHARD, f"spent:{period}"))
    return {name: int(micro) for name, micro in zip(flat[::2], flat[1::2], strict=True)}


async def reserved(upstreams: UpstreamRig) -> dict[str, int]:
    flat = texts(await upstreams.engine.command("HGETALL", SHARD, "reserved"))
    return {name: int(micro) for name, micro in zip(flat[::2], flat[1::2], strict=True)}


async def test_no_more_is_permitted_than_there_is_money_for(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("5 USD")])
    assert (await ask(upstreams, 3)).number == 3
    grant = await ask(upstreams, 9, "two")
    assert (grant.number, grant.upstream, grant.reason) == (2, "ai", "reserved")
    assert grant.wait_us == 10**6, "what is reserved may come back"
    assert await reserved(upstreams) == {"s/ai": 5 * DOLLAR}
    await settle(upstreams, 3, 4_500_000)
    assert (await ask(upstreams, 1, "three")).wait_us == 12 * 60 * MINUTE, "until the next day"


async def test_what_was_not_spent_comes_back(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("5 USD")])
    await ask(upstreams, 5)
    await settle(upstreams, 3, 1_200_000)
    assert await reserved(upstreams) == {"s/ai": 2 * DOLLAR}
    assert await spent(upstreams, "20261116") == {"s/ai": 1_200_000, "t/USD": 1_200_000}
    assert (await ask(upstreams, 9, "two")).number == 1, "of 1.8 dollars that are left"
    await settle(upstreams, 9, 0)
    assert await reserved(upstreams) == {"s/ai": DOLLAR}, "no more than it had"


async def test_a_dead_holders_money_comes_back(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("5 USD")])
    await ask(upstreams, 5)
    await settle(upstreams, 1, DOLLAR)
    upstreams.clock.go(59)
    assert (await ask(upstreams, 5, "two")).number == 0
    upstreams.clock.go(1)
    assert (await ask(upstreams, 5, "two")).number == 4
    await settle(upstreams, 4, 2 * DOLLAR)
    assert await reserved(upstreams) == {"s/ai": 4 * DOLLAR}, "it came back once"
    assert (await spent(upstreams, "20261116"))["s/ai"] == 3 * DOLLAR, "but it was spent"


async def test_a_new_day_has_a_new_budget_and_a_month_goes_on(upstreams: UpstreamRig) -> None:
    budgets = [Budget("2 USD"), Budget("3 USD", per="month")]
    await upstreams.declare("ai", prices=PRICES, budgets=budgets)
    assert (await ask(upstreams, 5)).number == 2
    await settle(upstreams, 2, 2 * DOLLAR)
    upstreams.clock.go(12 * 3600)
    grant = await ask(upstreams, 5, "two")
    assert (grant.number, grant.reason) == (1, "reserved")
    await settle(upstreams, 1, DOLLAR, "two")
    grant = await ask(upstreams, 5, "three")
    assert (grant.number, grant.wait_us) == (0, 14 * 24 * 60 * MINUTE), "until December"
    assert await spent(upstreams, "20261117") == {"s/ai": DOLLAR, "t/USD": DOLLAR}
    assert (await spent(upstreams, "202611"))["s/ai"] == 3 * DOLLAR


async def test_what_is_reserved_today_counts_tomorrow(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("2 USD")])
    upstreams.clock.go(12 * 3600 - 1)
    await ask(upstreams, 2)
    upstreams.clock.go(2)
    assert (await ask(upstreams, 2, "two")).number == 0
    await settle(upstreams, 1, DOLLAR)
    assert (await ask(upstreams, 2, "two")).number == 0
    assert await spent(upstreams, "20261116") == {}


async def test_tenants_have_their_own(upstreams: UpstreamRig) -> None:
    budgets = [Budget("4 USD"), Budget("3 USD", each_tenant=True)]
    await upstreams.declare("ai", prices=PRICES, budgets=budgets)
    grant = await ask(upstreams, 9, "a", tenant="a")
    assert (grant.number, grant.reason) == (3, "tenant_reserved")
    grant = await ask(upstreams, 9, "b", tenant="b")
    assert (grant.number, grant.reason) == (1, "reserved")
    await settle(upstreams, 3, 3 * DOLLAR, "a", tenant="a", task="answer")
    top = await upstreams.engine.command(
        "ZRANGE", SHARD, "spenders:20261116/ai", 0, -1, "WITHSCORES"
    )
    assert texts(top) == ["a", "3000000"]
    assert (await spent(upstreams, "202611"))["k/ai/answer"] == 3 * DOLLAR
    assert (await ask(upstreams, 9, "c", tenant="a")).number == 0
    await settle(upstreams, 1, 0, "b", tenant="b")
    grant = await ask(upstreams, 9, "c", tenant="a")
    assert (grant.number, grant.reason) == (0, "tenant_budget")


async def test_all_upstreams_of_a_currency_share_a_total(upstreams: UpstreamRig) -> None:
    for name in ("ai", "sms"):
        await upstreams.declare(name, prices=PRICES, budgets=[Budget("9 USD")])
    await upstreams.declare("pix", prices=[Price("call", "1 BRL")])
    totals = total_settings([Budget("5 USD")])
    await resilience.declare(upstreams.engine, {TOTALS: totals})
    assert (await ask(upstreams, 3)).number == 3
    grant = await ask(upstreams, 9, "two", name="sms")
    assert (grant.number, grant.upstream, grant.reason) == (2, "sms", "reserved")
    assert (await ask(upstreams, 9, "three", name="pix")).number == 9
    await settle(upstreams, 3, 4_500_000)
    assert (await ask(upstreams, 9, "four", name="sms")).reason == "total_budget"


async def test_a_job_that_needs_two_upstreams_reserves_for_both(upstreams: UpstreamRig) -> None:
    for name in ("ai", "sms"):
        await upstreams.declare(name, prices=PRICES)
    await resilience.declare(upstreams.engine, {TOTALS: total_settings([Budget("10 USD")])})
    both = Ask(["ai", "sms"], "", 9, "lot", 0, [2 * DOLLAR, DOLLAR], MINUTE)
    (grant,) = (await upstreams.admit([both])).grants
    assert grant.number == 3
    assert await reserved(upstreams) == {"t/USD": 9 * DOLLAR}
    costs = ["ai", DOLLAR, "sms", DOLLAR]
    await upstreams.admit(settled=[Settled("lot", 3, "", "", costs)])
    assert await reserved(upstreams) == {}
    assert await spent(upstreams, "20261116") == {
        "s/ai": DOLLAR,
        "s/sms": DOLLAR,
        "t/USD": 2 * DOLLAR,
    }


async def test_thresholds_are_told_once_in_a_period(upstreams: UpstreamRig) -> None:
    budgets = [Budget("10 USD", thresholds=[50, 80, 100])]
    await upstreams.declare("ai", prices=PRICES, budgets=budgets)
    for micro in (4, 1, 1, 1, 2, 5):
        await settle(upstreams, 0, micro * DOLLAR)
    assert await _told(upstreams) == [
        f"{n}% of 10.00 USD for 2026-11-16 is spent" for n in (50, 80, 100)
    ]
    upstreams.clock.go(12 * 3600)
    await settle(upstreams, 0, 9 * DOLLAR)
    assert (await _told(upstreams))[3:] == ["80% of 10.00 USD for 2026-11-17 is spent"]


async def test_a_larger_budget_tells_no_threshold_again(upstreams: UpstreamRig) -> None:
    for amount in ("10 USD", "20 USD"):
        budgets = [Budget(amount, thresholds=[50])]
        await upstreams.declare("ai", prices=PRICES, budgets=budgets)
        await settle(upstreams, 0, 5 * DOLLAR)
    assert len(await _told(upstreams)) == 1


async def test_an_event_says_whose_budget_it_is_and_of_what_period(upstreams: UpstreamRig) -> None:
    budgets = [
        Budget("0.0079 USD", each_tenant=True, hard=False, thresholds=[50]),
        Budget("1234.5 USD", per="month", thresholds=[1]),
    ]
    await upstreams.declare("ai", prices=PRICES, budgets=budgets)
    totals = total_settings([Budget("20 USD", thresholds=[90])])
    await resilience.declare(upstreams.engine, {TOTALS: totals})
    await settle(upstreams, 0, 18 * DOLLAR, tenant="b")
    assert await _events(upstreams) == [
        ("budget_threshold", "ai/@b", "50% of 0.0079 USD for 2026-11-16 is spent by tenant b"),
        ("budget_threshold", "ai", "1% of 1234.50 USD for 2026-11 is spent"),
        ("budget_threshold", "USD", "90% of 20.00 USD for 2026-11-16 is spent by all upstreams"),
    ]


async def test_a_budget_without_room_for_another_call_is_told_once_in_a_period(
    upstreams: UpstreamRig,
) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("2.5 USD", thresholds=[])])
    await settle(upstreams, 0, 1_500_000)
    assert await _events(upstreams) == [], "there is room for one"
    await settle(upstreams, 0, 5)
    words = "2.50 USD for 2026-11-16 is used up: 1.500005 USD is spent, and a call of ai may cost"
    told = [("budget_used_up", "ai", f"{words} 1.00 USD")]
    assert await _events(upstreams) == told
    await settle(upstreams, 0, DOLLAR)
    await ask(upstreams, 1)
    assert await _events(upstreams) == told
    upstreams.clock.go(12 * 3600)
    await settle(upstreams, 0, 2 * DOLLAR)
    assert [words[:23] for _, _, words in await _events(upstreams)] == [
        "2.50 USD for 2026-11-16",
        "2.50 USD for 2026-11-17",
    ]


async def test_a_larger_budget_is_told_again_when_it_is_used_up(upstreams: UpstreamRig) -> None:
    async def told_after(amount: str, dollars: int) -> list[str]:
        await upstreams.declare("ai", prices=PRICES, budgets=[Budget(amount, thresholds=[])])
        await settle(upstreams, 0, dollars * DOLLAR)
        await ask(upstreams, 1)
        return [words.partition(" USD")[0] for _, _, words in await _events(upstreams)]

    assert await told_after("5 USD", 5) == ["5.00"]
    assert await told_after("4 USD", 0) == ["5.00"], "a smaller one says nothing new"
    assert await told_after("9 USD", 0) == ["5.00"], "there is room again"
    assert await told_after("9 USD", 4) == ["5.00", "9.00"]


async def test_what_is_used_up_is_found_by_a_question_too(upstreams: UpstreamRig) -> None:
    for name in ("ai", "sms"):
        await upstreams.declare(name, prices=[Price("call", f"{len(name)} USD")])
    totals = total_settings([Budget("5 USD", thresholds=[])])
    await resilience.declare(upstreams.engine, {TOTALS: totals})
    await settle(upstreams, 0, 3 * DOLLAR)
    assert await _events(upstreams) == [], "there is room for one more of ai"
    await ask(upstreams, 1, name="sms")
    words = "5.00 USD for 2026-11-16 is used up by all upstreams: 3.00 USD is spent"
    told = ("budget_used_up", "USD", f"{words}, and a call of sms may cost 3.00 USD")
    assert await _events(upstreams) == [told]


async def test_tenants_that_have_used_theirs_up_are_told_and_soft_budgets_are_not(
    upstreams: UpstreamRig,
) -> None:
    budgets = [
        Budget("2 USD", each_tenant=True, thresholds=[]),
        Budget("1 USD", hard=False, thresholds=[]),
    ]
    await upstreams.declare("ai", prices=PRICES, budgets=budgets)
    for tenant in ("a", "b", "a"):
        await settle(upstreams, 0, 2 * DOLLAR, tenant=tenant)
    assert [(name, about) for name, about, _ in await _events(upstreams)] == [
        ("budget_used_up", "ai/@a"),
        ("budget_used_up", "ai/@b"),
    ]


async def test_money_that_is_only_reserved_is_not_told(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("2 USD")])
    assert [(await ask(upstreams, 2)).number, (await ask(upstreams, 1)).number] == [2, 0]
    assert await _events(upstreams) == []


async def _told(upstreams: UpstreamRig) -> list[str]:
    """The words of thresholds."""
    return [words for name, _, words in await _events(upstreams) if name == "budget_threshold"]


async def _events(upstreams: UpstreamRig) -> list[tuple[str, str, str]]:
    """What was told, of what, in which words."""
    rows = await upstreams.engine.command("XRANGE", SHARD, "events", "-", "+")
    told = [texts(fields)[4:] for _, fields in rows]
    pairs = [pair for one in told for pair in zip(one[::2], one[1::2], strict=True)]
    return [(name, *subject.split("\n")) for name, subject in pairs]


async def test_a_soft_limit_is_told_and_refuses_nothing(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("10 USD", soft=0.5)])
    assert not (await ask(upstreams, 4)).is_soft
    assert not (await ask(upstreams, 1, "two")).is_soft
    grant = await ask(upstreams, 1, "three")
    assert (grant.number, grant.is_soft) == (1, True)


async def test_a_budget_that_is_not_hard_refuses_nothing(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("1 USD", hard=False)])
    assert (await ask(upstreams, 9)).number == 9


async def test_a_refused_job_reserves_nothing(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("9 USD")], limits=["2/s"])
    assert (await ask(upstreams, 5)).number == 2
    assert await reserved(upstreams) == {"s/ai": 2 * DOLLAR}


async def test_what_is_granted_in_advance_is_reserved_too(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("1000 USD")])
    grant = await ask(upstreams, 100, advance=50)
    assert (grant.number, grant.advance) == (100, 9)
    assert await reserved(upstreams) == {"s/ai": 109 * DOLLAR}
    grant = await ask(upstreams, 891, "two", advance=50)
    assert (grant.number, grant.advance) == (891, 0)


async def test_a_repeated_settlement_counts_once(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("9 USD")])
    await ask(upstreams, 3)
    for _ in range(2):
        row = Settled("lot", 1, "", "", ["ai", DOLLAR])
        await upstreams.admit(settled=[row], turn=77)
    assert await reserved(upstreams) == {"s/ai": 2 * DOLLAR}
    assert (await spent(upstreams, "20261116"))["s/ai"] == DOLLAR


@pytest.mark.parametrize(
    "day", ["1970-01-01", "2000-02-29", "2023-12-31", "2024-02-29", "2100-02-28", "2100-03-01"]
)
async def test_days_and_months_are_those_of_the_calendar(upstreams: UpstreamRig, day: str) -> None:
    await upstreams.declare("ai", prices=PRICES, budgets=[Budget("1 USD", per="month")])
    at = datetime.fromisoformat(day).replace(hour=23, tzinfo=UTC)
    upstreams.clock.now = int(at.timestamp()) * 10**6
    await settle(upstreams, 0, DOLLAR)
    assert (await spent(upstreams, f"{at:%Y%m%d}"))["s/ai"] == DOLLAR
    assert (await spent(upstreams, f"{at:%Y%m}"))["s/ai"] == DOLLAR
    first = (at.replace(day=1, hour=0), 32)
    ends = datetime.fromtimestamp(first[0].timestamp() + first[1] * 86400, UTC).replace(day=1)
    grant = await ask(upstreams, 1)
    assert grant.wait_us == int((ends - at).total_seconds()) * 10**6
