"""`budget_views` tells how much of each budget is used, and changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from faena.engine.calls import resilience, spending
from faena.engine.calls.resilience import Ask, Settled
from faena.engine.calls.spending import BudgetRow
from faena.resilience.money import TOTALS, Budget, Price, total_settings
from tests._support.rig import Rig
from tests._support.upstream_rig import MONEY_T0, UpstreamRig

DOLLAR = 10**6
MINUTE = 60 * 10**6


@pytest.fixture
async def upstreams(rig: Rig) -> AsyncIterator[UpstreamRig]:
    made = UpstreamRig(rig)
    made.clock.now = MONEY_T0
    budgets = [Budget("10 USD", soft=0.5), Budget("3 USD", each_tenant=True, per="month")]
    await made.declare("ai", prices=[Price("call", "1 USD")], budgets=budgets)
    await made.declare("maps", prices=[Price("call", "0.005 USD")])
    totals = {TOTALS: total_settings([Budget("99 USD", per="month", hard=False)])}
    await resilience.declare(made.engine, totals)
    yield made
    await made.clear()


async def rows(upstreams: UpstreamRig, tenant: str = "") -> dict[tuple[str, str], BudgetRow]:
    seen = await spending.budgets(upstreams.engine, tenant)
    return {(row.upstream, row.period): row for row in seen.rows}


async def test_it_tells_what_is_spent_and_reserved(upstreams: UpstreamRig) -> None:
    await upstreams.admit([Ask(["ai"], "a", 3, "lot", 0, [DOLLAR], MINUTE)])
    await upstreams.admit(settled=[Settled("lot", 1, "a", "", ["ai", DOLLAR // 2])])
    found = await rows(upstreams)
    day, month, total = found["ai", "20261116"], found["ai", "202611"], found["", "202611"]
    assert (day.spent, day.reserved, day.call, day.tenant) == ("500000", "2000000", DOLLAR, "")
    assert (month.spent, month.reserved, month.tenant) == ("500000", "2000000", "a")
    assert (total.spent, total.reserved, total.currency) == ("500000", "2000000", "USD")
    assert (total.call, total.settings[:3]) == (0, ["m", 99 * DOLLAR, 0])


async def test_what_dead_holders_have_left_is_not_reserved_any_more(upstreams: UpstreamRig) -> None:
    await upstreams.admit([Ask(["ai"], "a", 3, "lot", 0, [DOLLAR], MINUTE)])
    upstreams.clock.go(60)
    assert {row.reserved for row in (await rows(upstreams)).values()} == {"0"}


async def test_each_tenants_budget_is_that_of_who_was_asked_for_or_has_spent_most(
    upstreams: UpstreamRig,
) -> None:
    assert (await rows(upstreams))["ai", "202611"].tenant == "", "nobody has spent anything"
    for tenant, micro in (("a", 5), ("b", 7)):
        await upstreams.admit(settled=[Settled("lot", 0, tenant, "", ["ai", micro])])
    most, asked = (await rows(upstreams)), (await rows(upstreams, "a"))
    assert (most["ai", "202611"].tenant, most["ai", "202611"].spent) == ("b", "7")
    assert (asked["ai", "202611"].tenant, asked["ai", "202611"].spent) == ("a", "5")
    assert asked["ai", "20261116"].spent == "12", "the others are everybody's"


async def test_a_new_day_has_spent_nothing(upstreams: UpstreamRig) -> None:
    await upstreams.admit(settled=[Settled("lot", 0, "", "", ["ai", 5])])
    upstreams.clock.go(12 * 3600)
    found = await rows(upstreams)
    assert (found["ai", "20261117"].spent, found["", "202611"].spent) == ("0", "5")


async def test_it_names_what_is_declared(upstreams: UpstreamRig) -> None:
    seen = await spending.budgets(upstreams.engine)
    assert (seen.declared, seen.has_totals, seen.now) == (["ai", "maps"], True, MONEY_T0)
