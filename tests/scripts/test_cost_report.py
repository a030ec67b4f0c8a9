"""`cost_report` tells what was spent in a day or a month, and changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from faena.engine.calls import spending
from faena.engine.calls.resilience import Settled
from faena.engine.calls.spending import SeenCosts
from faena.resilience.money import Budget, Price
from tests._support.rig import Rig
from tests._support.upstream_rig import MONEY_T0, UpstreamRig


@pytest.fixture
async def upstreams(rig: Rig) -> AsyncIterator[UpstreamRig]:
    made = UpstreamRig(rig)
    made.clock.now = MONEY_T0
    budgets = [Budget("10 USD"), Budget("50 USD", per="month")]
    await made.declare("ai", prices=[Price("call", "1 USD")], budgets=budgets)
    await made.declare("pix", prices=[Price("call", "1 BRL")])
    await made.declare("free")
    yield made
    await made.clear()


async def spend(upstreams: UpstreamRig, name: str, tenant: str, task: str, micro: int) -> None:
    await upstreams.admit(settled=[Settled("lot", 0, tenant, task, [name, micro])])


async def report(upstreams: UpstreamRig, day: str = "", month: str = "", top: int = 2) -> SeenCosts:
    return await spending.costs(upstreams.engine, day=day, month=month, top=top)


async def test_a_month_has_its_services_tasks_tenants_and_days(upstreams: UpstreamRig) -> None:
    for tenant, micro in (("a", 1), ("b", 4), ("c", 2)):
        await spend(upstreams, "ai", tenant, "answer", micro)
    upstreams.clock.go(86400)
    await spend(upstreams, "ai", "", "", 8)
    await spend(upstreams, "pix", "a", "pay", 16)
    seen = await report(upstreams)
    assert (seen.day, seen.month, seen.spent) == ("", "202611", seen.month_spent)
    flat = iter(seen.spent)
    assert dict(zip(flat, flat, strict=True)) == {
        "s/ai": "15",
        "t/USD": "15",
        "k/ai/answer": "7",
        "s/pix": "16",
        "t/BRL": "16",
        "k/pix/pay": "16",
    }
    assert seen.days == [["20261116", "USD", "7"], ["20261117", "USD", "8", "BRL", "16"]]
    ai, pix = seen.services
    assert (ai.name, ai.currency, ai.tenants, ai.top) == ("ai", "USD", 3, ["b", "4", "c", "2"])
    assert (pix.name, pix.currency, pix.top) == ("pix", "BRL", ["a", "16"])
    assert [(row.period, row.spent) for row in seen.budgets] == [("202611", "15")]


async def test_a_day_has_its_own_sums_and_those_of_its_month(upstreams: UpstreamRig) -> None:
    await spend(upstreams, "ai", "a", "answer", 5)
    upstreams.clock.go(86400)
    await spend(upstreams, "ai", "b", "answer", 7)
    seen = await report(upstreams, day="20261116")
    assert ("s/ai", "5") in {*zip(seen.spent[::2], seen.spent[1::2], strict=True)}
    assert ("s/ai", "12") in {*zip(seen.month_spent[::2], seen.month_spent[1::2], strict=True)}
    assert seen.services[0].top == ["a", "5"]
    assert [(row.period, row.spent) for row in seen.budgets] == [
        ("20261116", "5"),
        ("202611", "12"),
    ]


async def test_a_month_without_calls_is_empty(upstreams: UpstreamRig) -> None:
    await spend(upstreams, "ai", "a", "answer", 5)
    seen = await report(upstreams, month="202609", top=0)
    assert (seen.spent, seen.days, seen.services[0].top) == ([], [], [])
    assert [(row.period, row.spent, row.reserved) for row in seen.budgets] == [("202609", "0", "0")]
