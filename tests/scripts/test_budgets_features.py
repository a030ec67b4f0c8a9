"""Features whose upstream has no money left are in trouble until the period ends."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from faena.engine.calls import resilience
from faena.engine.calls.resilience import Ask, Settled
from faena.resilience.money import TOTALS, Budget, Price, total_settings
from tests._support.feature_rig import FeatureRig
from tests._support.rig import Rig
from tests._support.upstream_rig import MONEY_T0, UpstreamRig

DOLLAR = 10**6
PRICES = [Price("call", "1 USD")]


@pytest.fixture
async def features(rig: Rig) -> AsyncIterator[FeatureRig]:
    made = FeatureRig(UpstreamRig(rig))
    made.clock.now = MONEY_T0
    await made.declare(upstreams=["ai"])
    yield made
    await made.clear()
    await made.upstreams.clear()


async def spend(features: FeatureRig, micro: int, tenant: str = "", name: str = "ai") -> None:
    await features.upstreams.admit(settled=[Settled("lot", 0, tenant, "", [name, micro])])


async def ask(features: FeatureRig, micro: int = DOLLAR) -> int:
    asked = Ask(["ai"], "", 1, "lot", 0, [micro], DOLLAR)
    return (await features.upstreams.admit([asked])).grants[0].number


async def declare(features: FeatureRig, *budgets: Budget) -> None:
    await features.upstreams.declare("ai", prices=PRICES, budgets=budgets)


async def test_a_feature_is_offline_from_the_step_that_spends_the_last_money(
    features: FeatureRig,
) -> None:
    await declare(features, Budget("5 USD"))
    await spend(features, 4 * DOLLAR)
    assert await features.told() == "healthy"
    await spend(features, 1)
    assert await features.told() == "offline", "what is left is less than a call"
    (source,) = (await features.feature()).sources
    assert (source.source, source.until) == ("budget:ai", MONEY_T0 + 12 * 3600 * DOLLAR)
    features.clock.go(12 * 3600)
    assert (await features.feature()).state == "healthy", "a new day"


async def test_the_longest_of_two_budgets_counts(features: FeatureRig) -> None:
    await declare(features, Budget("5 USD"), Budget("5 USD", per="month"))
    await spend(features, 5 * DOLLAR)
    features.clock.go(12 * 3600)
    assert (await features.feature()).state == "offline"
    features.clock.go(14 * 86400)
    assert (await features.feature()).state == "healthy"


async def test_money_that_is_only_reserved_or_a_tenants_is_no_trouble(features: FeatureRig) -> None:
    await declare(features, Budget("5 USD"), Budget("2 USD", each_tenant=True))
    assert [await ask(features, 5 * DOLLAR), await ask(features)] == [1, 0]
    await spend(features, 2 * DOLLAR, "acme")
    assert await features.told() == "healthy"


async def test_a_budget_that_only_tells_is_no_trouble(features: FeatureRig) -> None:
    await declare(features, Budget("5 USD", hard=False))
    await spend(features, 9 * DOLLAR)
    assert await features.told() == "healthy"


async def test_one_call_that_is_too_expensive_is_no_trouble(features: FeatureRig) -> None:
    await declare(features, Budget("5 USD"))
    assert await ask(features, 9 * DOLLAR) == 0
    assert await features.told() == "healthy"


async def test_a_total_that_others_have_spent_is_found_by_the_next_question(
    features: FeatureRig,
) -> None:
    await declare(features)
    await features.upstreams.declare("sms", prices=PRICES)
    await resilience.declare(features.engine, {TOTALS: total_settings([Budget("5 USD")])})
    await spend(features, 5 * DOLLAR, name="sms")
    assert await features.told() == "healthy"
    assert await ask(features) == 0
    assert await features.told() == "offline"
    await resilience.declare(features.engine, {TOTALS: total_settings([Budget("6 USD")])})
    assert await features.told() == "healthy", "more may be spent now"
    assert await ask(features) == 1
