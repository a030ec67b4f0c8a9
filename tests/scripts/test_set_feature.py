"""An operator sets the state of a feature by hand, for a time."""

from __future__ import annotations

import pytest

from faena.engine.calls.features import Source, Unknown
from faena.engine.calls.resilience import SHARD
from tests._support.feature_rig import FeatureRig
from tests._support.rig import SECOND, T0

AFIP = "invoicing.afip"
MINUTE = 60 * SECOND


async def test_it_lasts_until_it_is_cleared(features: FeatureRig) -> None:
    await features.declare()
    assert await features.calls.set(AFIP, "offline", message="they move", by="ana")
    (source,) = (await features.feature()).sources
    assert source == Source("operator", "offline", "they move", T0, 0, "ana", "")
    features.clock.go(10**6)
    assert await features.calls.set(AFIP, "", by="luis")
    assert not await features.calls.set(AFIP, "", by="luis")
    assert await features.events() == [
        ("feature_set", AFIP, "to=offline message=they move", "ana"),
        ("feature_offline", AFIP, "from=healthy to=offline source=operator", "ana"),
        ("feature_cleared", AFIP, "", "luis"),
        ("feature_healthy", AFIP, "from=offline to=healthy", "luis"),
    ]


async def test_it_ends_by_time_and_whoever_looks_first_tells(features: FeatureRig) -> None:
    await features.declare()
    await features.calls.set(AFIP, "degraded", duration_us=MINUTE, by="ana")
    assert (await features.look()).next_at == T0 + MINUTE
    features.clock.go(90)
    feature = await features.feature()
    assert (feature.state, feature.since) == ("healthy", T0 + MINUTE)
    await features.look()
    assert await features.events() == [
        ("feature_set", AFIP, "to=degraded", "ana"),
        ("feature_degraded", AFIP, "from=healthy to=degraded source=operator", "ana"),
        ("feature_healthy", AFIP, "from=degraded to=healthy", ""),
    ]


async def test_a_call_that_is_sent_again_does_nothing_more(features: FeatureRig) -> None:
    await features.declare()
    named = {"caller": "c", "id_of_call": "x", "name": AFIP, "by": "ana"}
    for _ in range(2):
        assert await features.engine.ask("set_feature", SHARD, **named, state="offline") == 1
        features.clock.go(1)
    assert (await features.feature()).sources[0].since == T0
    named["id_of_call"] = "y"
    for _ in range(2):
        assert await features.engine.ask("set_feature", SHARD, **named) == 1
    assert len(await features.events()) == 4


async def test_a_feature_that_nobody_declared_is_unknown(features: FeatureRig) -> None:
    with pytest.raises(Unknown):
        await features.calls.set("nope", "offline", by="ana")
    assert (await features.look()).features == []
