"""What programs say of features and levels is kept for every process."""

from __future__ import annotations

from tests._support.feature_rig import FeatureRig


async def test_the_latest_declaration_counts(features: FeatureRig) -> None:
    await features.declare(fallback="queue")
    await features.declare(fallback="email")
    assert (await features.feature()).fallback == "email"


async def test_a_declaration_changes_states_at_once(features: FeatureRig) -> None:
    await features.upstreams.declare()
    await features.declare(upstreams=[])
    await features.upstreams.trip()
    assert await features.told() == "healthy"
    await features.declare()
    assert await features.told() == "offline"


async def test_other_features_and_levels_stay(features: FeatureRig) -> None:
    await features.calls.declare({}, {"sale": {"ai.voice": "offline"}})
    await features.declare("ai.voice")
    await features.declare("ai.whatsapp")
    seen = await features.look()
    assert sorted(one.name for one in seen.features) == ["ai.voice", "ai.whatsapp"]
    assert [one.rules for one in seen.levels] == [[("ai.voice", "offline")]]
