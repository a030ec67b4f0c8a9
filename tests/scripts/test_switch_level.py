"""A level sets the states of several features together."""

from __future__ import annotations

import pytest

from faena.engine.calls.features import Unknown
from faena.engine.calls.resilience import SHARD
from tests._support.feature_rig import FeatureRig
from tests._support.rig import SECOND, T0

SALE = {"ai.voice": "offline", "tracking": "degraded"}


@pytest.fixture
async def sale(features: FeatureRig) -> FeatureRig:
    for name in (*SALE, "payments"):
        await features.declare(name, upstreams=[])
    await features.calls.declare({}, {"sale": SALE})
    return features


async def states(rig: FeatureRig) -> dict[str, str]:
    return {one.name: one.state for one in (await rig.look()).features}


async def test_it_is_switched_on_and_off(sale: FeatureRig) -> None:
    assert await sale.calls.switch("sale", "on", message="busy", by="ana")
    assert await states(sale) == {**SALE, "payments": "healthy"}
    (source,) = (await sale.feature("tracking")).sources
    assert (source.source, source.message, source.by) == ("level:sale", "busy", "ana")
    level = await sale.level("sale")
    assert (level.is_on, level.by, level.since, level.until) == (True, "ana", T0, 0)
    assert await sale.calls.switch("sale", "off", by="ana")
    assert not await sale.calls.switch("sale", "off", by="ana")
    assert {*(await states(sale)).values()} == {"healthy"}
    assert [row[:3] for row in await sale.events()] == [
        ("level_on", "sale", "message=busy"),
        ("feature_offline", "ai.voice", "from=healthy to=offline source=level:sale"),
        ("feature_degraded", "tracking", "from=healthy to=degraded source=level:sale"),
        ("level_off", "sale", ""),
        ("feature_healthy", "ai.voice", "from=offline to=healthy"),
        ("feature_healthy", "tracking", "from=degraded to=healthy"),
    ]


async def test_it_ends_by_time(sale: FeatureRig) -> None:
    await sale.calls.switch("sale", "on", duration_us=SECOND, by="ana")
    sale.clock.go(1)
    assert {*(await states(sale)).values()} == {"healthy"}
    assert not (await sale.level("sale")).is_on


async def test_rules_that_code_changes_apply_to_a_level_that_is_on(sale: FeatureRig) -> None:
    await sale.calls.switch("sale", "on", by="ana")
    await sale.calls.declare({}, {"sale": {"payments": "degraded"}})
    expected = {"ai.voice": "healthy", "tracking": "healthy", "payments": "degraded"}
    assert await states(sale) == expected


async def test_the_worst_of_two_levels_counts(sale: FeatureRig) -> None:
    await sale.calls.declare({}, {"storm": {"tracking": "offline"}})
    for name in ("sale", "storm"):
        await sale.calls.switch(name, "on", by="ana")
    assert (await states(sale))["tracking"] == "offline"


async def test_a_call_that_is_sent_again_does_nothing_more(sale: FeatureRig) -> None:
    named = {"caller": "c", "id_of_call": "x", "name": "sale", "to": "off", "by": "ana"}
    await sale.calls.switch("sale", "on", by="ana")
    number = len(await sale.events())
    for _ in range(2):
        assert await sale.engine.ask("switch_level", SHARD, **named) == 1
    assert len(await sale.events()) == number + 3


async def test_a_level_that_nobody_declared_is_unknown(sale: FeatureRig) -> None:
    with pytest.raises(Unknown):
        await sale.calls.switch("nope", "on", by="ana")
