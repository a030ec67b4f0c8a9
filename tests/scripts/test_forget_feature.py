"""`forget_feature` removes a feature or a level, and what was set by hand."""

from __future__ import annotations

import pytest

from faena.engine.calls.features import Unknown
from faena.engine.calls.resilience import SHARD
from faena.engine.scripts import texts
from tests._support.feature_rig import FeatureRig
from tests._support.rig import SECOND

VOICE = "ai.voice"


@pytest.fixture
async def two(features: FeatureRig) -> FeatureRig:
    """Two features, of which a level takes one offline."""
    for name in (VOICE, "payments"):
        await features.declare(name, upstreams=[], check="offline")
    await features.calls.declare({}, {"sale": {"payments": "offline"}})
    return features


async def fields(rig: FeatureRig) -> list[str]:
    return sorted(texts(await rig.engine.command("HKEYS", SHARD, "features")))


async def test_a_feature_is_removed_with_its_state_and_check(two: FeatureRig) -> None:
    await two.calls.set(VOICE, "offline", by="ana")
    await two.calls.begin_check(VOICE, "me", SECOND)
    assert await fields(two) == [
        *("c:ai.voice", "f:ai.voice", "f:payments", "l:sale", "m:ai.voice", "s:ai.voice"),
    ]
    await two.calls.forget("feature", VOICE, by="leo")
    assert await fields(two) == ["f:payments", "l:sale"]
    assert (await two.events())[-1] == ("feature_forgotten", VOICE, "", "leo")


async def test_a_level_is_removed_and_its_states_end(two: FeatureRig) -> None:
    await two.calls.switch("sale", "on", by="ana")
    assert await two.told("payments") == "offline"
    await two.calls.forget("level", "sale", by="leo")
    assert await fields(two) == ["f:ai.voice", "f:payments", "s:payments"]
    assert await two.told("payments") == "healthy"
    told = [(event, name) for event, name, _, _ in await two.events()]
    assert told[-2:] == [("level_forgotten", "sale"), ("feature_healthy", "payments")]


async def test_what_is_unknown_is_refused(two: FeatureRig) -> None:
    for kind, name in (("feature", "sale"), ("level", VOICE), ("feature", "none")):
        with pytest.raises(Unknown):
            await two.calls.forget(kind, name, by="leo")
    assert await two.events() == []


async def test_a_call_that_is_sent_again_forgets_once(two: FeatureRig) -> None:
    named = {"caller": "c", "id_of_call": "2", "kind": "feature", "name": VOICE, "by": "leo"}
    assert await two.engine.ask("forget_feature", SHARD, **named) == 1
    await two.declare(VOICE, upstreams=[])
    assert await two.engine.ask("forget_feature", SHARD, **named) == 1
    assert "f:ai.voice" in await fields(two), "it was declared again since"
    older = {**named, "id_of_call": "1"}
    assert await two.engine.ask("forget_feature", SHARD, **older) == b"OVERTAKEN"
