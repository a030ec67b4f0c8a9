"""What is reserved now is no part of a month or a day that is over."""

from __future__ import annotations

from faena.engine.calls import spending
from faena.engine.calls.budget_view import budget_views
from faena.engine.calls.resilience import Ask
from faena.resilience.money import Budget, Price
from tests._support.upstream_rig import MONEY_T0, UpstreamRig


async def test_nothing_is_reserved_in_a_period_that_is_over(upstreams: UpstreamRig) -> None:
    upstreams.clock.now = MONEY_T0
    budgets = [Budget("5 USD"), Budget("9 USD", per="month")]
    await upstreams.declare("ai", prices=[Price("call", "1 USD")], budgets=budgets)
    await upstreams.admit([Ask(["ai"], "", 2, "lot", 0, [10**6], 60 * 10**6)])
    for period, micro in (
        ({"day": "20261116", "month": ""}, [2 * 10**6, 2 * 10**6]),
        ({"day": "20261115", "month": ""}, [0, 2 * 10**6]),
        ({"day": "20261016", "month": ""}, [0, 0]),
        ({"day": "", "month": "202610"}, [0]),
    ):
        seen = await spending.costs(upstreams.engine, **period, top=0)
        assert [one.reserved.micro for one in budget_views(seen.budgets)] == micro, period
