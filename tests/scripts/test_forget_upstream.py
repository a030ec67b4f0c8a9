"""`forget_upstream` removes all that is known of an upstream but what its calls have cost."""

from __future__ import annotations

import pytest

from faena.engine.calls import resilience, spending
from faena.engine.calls import upstreams as calls
from faena.engine.calls.resilience import SHARD, Ask, Settled, Undeclared
from faena.engine.scripts import texts
from faena.resilience.breaker import Breaker
from faena.resilience.money import TOTALS, Budget, Price, total_settings
from tests._support.feature_rig import FeatureRig
from tests._support.rig import SECOND
from tests._support.upstream_rig import BREAKER, UpstreamRig

OWN = Breaker(volume=4, open="5s", per="tenant")
PRICED = {"prices": [Price("call", "1 USD")], "budgets": [Budget("1 USD")]}


async def keys(rig: UpstreamRig, *patterns: str) -> list[str]:
    found = [await rig.engine.wire.call("KEYS", f"*{{{SHARD}}}:{one}") for one in patterns]
    return sorted(name.decode().partition("}:")[2] for each in found for name in each)


async def fields(rig: UpstreamRig, name: str) -> list[str]:
    return sorted(texts(await rig.engine.command("HKEYS", SHARD, name)))


async def test_settings_breaker_windows_and_panic_are_removed(upstreams: UpstreamRig) -> None:
    for name in ("afip", "mp"):
        await upstreams.declare(name, breaker=BREAKER, limits=["100/min", "5000/h"])
        await upstreams.ask(1, name)
        await upstreams.trip(name)
    await calls.panic(upstreams.engine, "afip", "stop", "ana", None)
    await calls.forget(upstreams.engine, "afip", "leo")
    assert await fields(upstreams, "upstreams") == ["mp"]
    assert await fields(upstreams, "troubled") == ["mp"]
    left = await keys(upstreams, "breaker:*", "claims:*")
    assert left == ["breaker:mp", "claims:3600000000u/mp", "claims:60000000u/mp"]
    assert (await upstreams.told())[-1][1:] == ["leo", "upstream_forgotten", "afip"]
    assert await calls.views(upstreams.engine, ["afip"]) == []


async def test_tenants_breakers_and_windows_are_removed(upstreams: UpstreamRig) -> None:
    for name in ("afip", "afip2"):
        await upstreams.declare(name, breaker=OWN, tenant_limits=["9/s"])
        await upstreams.ask(1, name, "a")
        await upstreams.trip(name, "a")
    await calls.forget(upstreams.engine, "afip", "leo")
    assert await fields(upstreams, "troubled") == ["afip2/@a"]
    left = await keys(upstreams, "breaker:*", "claims:*")
    assert left == ["breaker:afip2/@a", "claims:1000000u/afip2/@a"]


async def test_many_tenants_take_several_calls_and_the_settings_go_last(
    upstreams: UpstreamRig,
) -> None:
    await upstreams.declare(breaker=OWN)
    flat = [part for i in range(2_000) for part in (f"afip/@t{i}", "open")]
    await upstreams.engine.command("HSET", SHARD, "troubled", *flat)
    named = {"caller": "c", "id_of_call": "1", "upstream": "afip", "by": "leo", "cursor": "0"}
    first = await upstreams.engine.ask("forget_upstream", SHARD, **named)
    assert first != b"0"
    assert await upstreams.engine.ask("forget_upstream", SHARD, **named) == first, "sent again"
    assert await fields(upstreams, "upstreams") == ["afip"], "who is interrupted can begin again"
    assert await upstreams.events() == []
    await calls.forget(upstreams.engine, "afip", "leo")
    assert await fields(upstreams, "troubled") == await fields(upstreams, "upstreams") == []
    assert await upstreams.events() == ["upstream_forgotten afip"]


async def test_costs_stay_for_reports(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", **PRICED)
    await upstreams.admit(settled=[Settled("lot", 0, "acme", "answer", ["ai", 700_000])])
    before = await spending.costs(upstreams.engine, day="", month="", top=3)
    await calls.forget(upstreams.engine, "ai", "leo")
    after = await spending.costs(upstreams.engine, day="", month="", top=3)
    assert after.services == before.services
    assert (after.days, after.spent) == (before.days, before.spent)
    assert after.budgets == []
    ttl_s = await upstreams.engine.command("TTL", SHARD, "forgotten")
    assert ttl_s > 120 * 86_400
    await upstreams.declare("ai", **PRICED)
    again = await spending.costs(upstreams.engine, day="", month="", top=3)
    assert again.services == before.services, "named once"


async def test_what_is_reserved_comes_back(upstreams: UpstreamRig) -> None:
    await upstreams.declare("ai", **PRICED)
    await upstreams.admit([Ask(["ai"], "", 1, "lot", 0, [10**6], 60 * SECOND)])
    await calls.forget(upstreams.engine, "ai", "leo")
    upstreams.clock.go(60)
    await upstreams.declare("sms", **PRICED)
    await upstreams.admit([Ask(["sms"], "", 1, "other", 0, [10**6], 60 * SECOND)])
    assert await fields(upstreams, "reserved") == ["s/sms"]


async def test_features_follow(features: FeatureRig) -> None:
    await features.upstreams.declare(breaker=BREAKER)
    await features.declare()
    await features.upstreams.trip()
    assert await features.told() == "offline"
    await calls.forget(features.engine, "afip", "leo")
    assert await features.told() == "healthy"


async def test_total_budgets_are_forgotten_by_their_sign(features: FeatureRig) -> None:
    rig = features.upstreams
    await rig.declare("ai", prices=[Price("call", "1 USD")])
    await resilience.declare(rig.engine, {TOTALS: total_settings([Budget("1 USD")])})
    await features.declare(upstreams=["ai"])
    await rig.admit(settled=[Settled("lot", 0, "", "", ["ai", 10**6])])
    assert await features.told() == "offline"
    await calls.forget(rig.engine, TOTALS, "leo")
    assert (await spending.budgets(rig.engine)).rows == []
    assert await features.told() == "healthy"


async def test_one_that_is_unknown_is_refused(upstreams: UpstreamRig) -> None:
    with pytest.raises(Undeclared, match="afip"):
        await calls.forget(upstreams.engine, "afip", "leo")
    assert await upstreams.events() == []


async def test_a_call_that_is_sent_again_forgets_once(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    named = {"caller": "c", "id_of_call": "2", "upstream": "afip", "by": "leo", "cursor": "0"}
    assert await upstreams.engine.ask("forget_upstream", SHARD, **named) == b"0"
    await upstreams.declare()
    assert await upstreams.engine.ask("forget_upstream", SHARD, **named) == b"0"
    assert await fields(upstreams, "upstreams") == ["afip"]
    assert await upstreams.events() == ["upstream_forgotten afip"]
    older = {**named, "id_of_call": "1"}
    assert await upstreams.engine.ask("forget_upstream", SHARD, **older) == b"OVERTAKEN"
