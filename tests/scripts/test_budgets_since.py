"""A budget that is used up for longer is the same trouble, since the same instant."""

from __future__ import annotations

from faena.engine.calls.resilience import Settled
from faena.resilience.money import Budget, Price
from tests._support.feature_rig import FeatureRig
from tests._support.upstream_rig import MONEY_T0

DOLLAR = 10**6


async def test_a_trouble_that_lasts_longer_is_still_the_same(features: FeatureRig) -> None:
    features.clock.now = MONEY_T0
    await features.declare(upstreams=["ai"])
    budgets = [Budget("5 USD"), Budget("6 USD", per="month")]
    await features.upstreams.declare("ai", prices=[Price("call", "1 USD")], budgets=budgets)
    for micro in (5 * DOLLAR, DOLLAR):
        await features.upstreams.admit(settled=[Settled("lot", 0, "", "", ["ai", micro])])
        features.clock.go(60)
    (source,) = (await features.feature()).sources
    assert (source.source, source.since) == ("budget:ai", MONEY_T0)
