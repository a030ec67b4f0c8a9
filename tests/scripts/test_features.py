"""A feature is as bad as the worst that any source says of it, in the same step."""

from __future__ import annotations

import msgspec
import pytest

from faena.engine.calls.features import Source
from faena.engine.calls.resilience import GOOD, SHARD
from faena.engine.calls.upstreams import end_panic, panic
from faena.resilience.breaker import Breaker
from tests._support.feature_rig import FeatureRig
from tests._support.rig import SECOND, T0

AFIP = "invoicing.afip"


async def test_a_feature_without_trouble_is_healthy(features: FeatureRig) -> None:
    await features.declare()
    seen = await features.look()
    (feature,) = seen.features
    assert (seen.now, seen.next_at) == (T0, 0)
    assert feature.name == AFIP
    assert (feature.is_critical, feature.fallback) == (True, "queue")
    assert (feature.state, feature.since, feature.sources) == ("healthy", 0, [])
    assert await features.events() == []


async def test_it_follows_its_breaker_without_anybody_looking(features: FeatureRig) -> None:
    await features.declare()
    upstreams = features.upstreams
    await upstreams.declare()
    await upstreams.trip()
    assert await features.told() == "offline"
    upstreams.clock.go(5)
    permit = await upstreams.probe()
    assert await features.told() == "offline", "half open"
    await upstreams.report(probes=[permit, GOOD])
    assert await features.told() == "degraded", "recovering"
    upstreams.clock.go(10)
    await upstreams.ask()
    assert await features.told() == "healthy"
    assert [row[2] for row in await features.events()] == [
        "from=healthy to=offline source=breaker:afip",
        "from=offline to=degraded source=breaker:afip",
        "from=degraded to=healthy",
    ]


async def test_what_an_open_breaker_means_is_the_features_to_say(features: FeatureRig) -> None:
    await features.declare(when_open="degraded")
    await features.upstreams.declare()
    await features.upstreams.trip()
    (source,) = (await features.feature()).sources
    assert source == Source("breaker:afip", "degraded", "", T0, 0, "", "")


async def test_a_feature_declared_later_finds_the_trouble(features: FeatureRig) -> None:
    await features.upstreams.declare()
    await features.upstreams.trip()
    await features.declare()
    assert await features.told() == "offline"


async def test_a_tenants_breaker_says_nothing_of_a_feature(features: FeatureRig) -> None:
    await features.declare()
    await features.upstreams.declare(breaker=Breaker(volume=4, per="tenant"))
    await features.upstreams.report(bad=4, tenant="acme")
    assert await features.told() == "healthy"


async def test_it_recovers_by_time_alone(features: FeatureRig) -> None:
    """Nobody calls any more, so no call closes the breaker."""
    await features.declare()
    upstreams = features.upstreams
    await upstreams.declare()
    await upstreams.trip()
    upstreams.clock.go(5)
    await upstreams.report(probes=[await upstreams.probe(), GOOD])
    assert (await features.look()).next_at == T0 + 15 * SECOND
    upstreams.clock.go(11)
    feature = await features.feature()
    assert (feature.state, feature.since) == ("healthy", T0 + 15 * SECOND)


async def test_a_breaker_that_was_forgotten_is_closed(features: FeatureRig) -> None:
    await features.declare()
    await features.upstreams.declare()
    await features.upstreams.trip()
    await features.engine.command("DEL", SHARD, "breaker:afip")
    assert (await features.feature()).state == "healthy"


async def test_a_panic_counts_from_its_step_until_it_ends(features: FeatureRig) -> None:
    await features.declare()
    await features.upstreams.declare()
    await panic(features.engine, "afip", "they are moving", "ana", 60 * SECOND)
    assert await features.told() == "offline"
    (source,) = (await features.feature()).sources
    until = T0 + 60 * SECOND
    assert source == Source("panic:afip", "offline", "", T0, until, "ana", "they are moving")
    features.clock.go(60)
    assert (await features.feature()).state == "healthy"


async def test_a_panic_that_somebody_ends_counts_no_more(features: FeatureRig) -> None:
    await features.declare()
    await features.upstreams.declare()
    await panic(features.engine, "afip", "they are moving", "ana", None)
    await end_panic(features.engine, "afip", "ana")
    assert await features.told() == "healthy"


async def test_other_trouble_of_an_upstream_counts_too(features: FeatureRig) -> None:
    await features.declare()
    trouble = msgspec.msgpack.encode({"a": T0, "u": T0 + SECOND})
    await features.engine.command("HSET", SHARD, "features", "t:budget afip", trouble)
    (source,) = (await features.feature()).sources
    assert (source.source, source.state) == ("budget:afip", "offline")
    features.clock.go(1)
    assert (await features.feature()).state == "healthy"
    assert await features.engine.command("HEXISTS", SHARD, "features", "t:budget afip") == 0


async def test_a_budget_that_was_used_up_may_be_larger_when_it_is_declared_again(
    features: FeatureRig,
) -> None:
    await features.declare()
    await features.upstreams.declare()
    trouble = msgspec.msgpack.encode({"a": T0, "u": 0})
    await features.engine.command("HSET", SHARD, "features", "t:budget afip", trouble)
    assert (await features.feature()).state == "offline"
    await features.upstreams.declare()
    assert await features.told() == "offline", "nothing new was said"
    await features.upstreams.declare(timeout="31s")
    assert await features.told() == "healthy"


async def test_the_worst_counts_and_the_first_of_equals_is_named(features: FeatureRig) -> None:
    await features.declare(when_open="degraded")
    await features.upstreams.declare()
    await features.upstreams.trip()
    await features.calls.set(AFIP, "degraded", message="by hand", by="ana")
    feature = await features.feature()
    assert [one.source for one in feature.sources] == ["operator", "breaker:afip"]
    await features.calls.set(AFIP, "offline", by="ana")
    assert (await features.feature()).state == "offline"
    await features.calls.set(AFIP, "", by="ana")
    assert (await features.feature()).state == "degraded"


async def test_since_changes_with_the_state_only(features: FeatureRig) -> None:
    await features.declare()
    await features.calls.set(AFIP, "degraded", by="ana")
    features.clock.go(5)
    await features.calls.set(AFIP, "degraded", message="still", by="ana")
    assert (await features.feature()).since == T0
    features.clock.go(5)
    await features.calls.set(AFIP, "offline", by="ana")
    assert (await features.feature()).since == T0 + 10 * SECOND


@pytest.mark.parametrize("field", ["f:x", "m:invoicing.afip", "s:invoicing.afip", "l:x", "odd"])
async def test_what_is_spoilt_is_passed_over(features: FeatureRig, field: str) -> None:
    await features.declare()
    await features.engine.command("HSET", SHARD, "features", field, b"\xc1")
    assert (await features.feature()).state == "healthy"
