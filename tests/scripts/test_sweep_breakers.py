"""`sweep_breakers` ends what time alone has ended: recoveries, panics, records that expired."""

from __future__ import annotations

from faena.engine.calls import upstreams as calls
from faena.engine.calls.resilience import SHARD, Pending, Swept, sweep
from faena.engine.scripts import texts
from faena.resilience.breaker import Breaker
from tests._support.eventually import eventually
from tests._support.feature_rig import FeatureRig
from tests._support.rig import SECOND
from tests._support.upstream_rig import BREAKER, UpstreamRig

OWN = Breaker(volume=4, open="5s", per="tenant")


async def troubled(rig: UpstreamRig) -> dict[str, str]:
    flat = texts(await rig.engine.command("HGETALL", SHARD, "troubled"))
    return dict(zip(flat[::2], flat[1::2], strict=True))


async def recover(rig: UpstreamRig) -> None:
    """Have the breaker begin to recover, which takes ten seconds."""
    await rig.trip()
    rig.clock.go(5)
    assert await rig.report(probes=[await rig.probe(), 1]) == ["recovering"]


async def test_a_breaker_closes_when_its_ramp_is_over(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=BREAKER)
    await recover(upstreams)
    upstreams.clock.go(4)
    waits = Swept("0", [Pending("afip", "recovering", 6 * SECOND)])
    assert await sweep(upstreams.engine, ["afip"]) == waits
    assert await troubled(upstreams) == {"afip": "recovering"}
    upstreams.clock.go(6)
    assert await sweep(upstreams.engine, ["afip"]) == Swept("0", [])
    assert await troubled(upstreams) == {}
    assert (await upstreams.events())[-1] == "upstream_closed afip"
    number = len(await upstreams.events())
    assert await sweep(upstreams.engine, ["afip"], "0") == Swept("0", [])
    assert len(await upstreams.events()) == number, "a second call changes nothing"


async def test_it_has_the_features_follow(features: FeatureRig) -> None:
    await features.upstreams.declare(breaker=BREAKER)
    await features.declare()
    await recover(features.upstreams)
    assert await features.told() == "degraded"
    features.clock.go(10)
    await sweep(features.engine, ["afip"])
    assert await features.told() == "healthy"


async def test_processes_hear_how_long_a_recovery_lasts(upstreams: UpstreamRig) -> None:
    heard: list[str] = []
    await upstreams.declare(breaker=BREAKER)
    hears = await upstreams.engine.listen(upstreams=lambda _, message: heard.append(message))
    try:
        await recover(upstreams)
        await eventually(lambda: heard[-1:] == ["upstream_recovering 10000000 afip"])
    finally:
        await hears.close()


async def test_others_are_left_as_they_are(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=BREAKER)
    await upstreams.trip()
    before = await upstreams.engine.command("GET", SHARD, "breaker:afip")
    upstreams.clock.go(60)
    assert await sweep(upstreams.engine, ["afip", "unknown", "unknown/@a"], "0") == Swept("0", [])
    assert await upstreams.engine.command("GET", SHARD, "breaker:afip") == before
    assert await troubled(upstreams) == {"afip": "open"}
    assert await upstreams.events() == ["upstream_open afip"]


async def test_a_panic_ends_when_its_time_is_over(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.declare("mp")
    await calls.panic(upstreams.engine, "afip", "expired", "ana", 9 * SECOND)
    await calls.panic(upstreams.engine, "mp", "stop", "ana", None)
    lasting = await sweep(upstreams.engine, ["afip", "mp"])
    assert lasting.pending == [Pending("afip", "panic", 9 * SECOND)]
    upstreams.clock.go(9)
    assert (await sweep(upstreams.engine, ["afip", "mp"])).pending == []
    told = [row[1:] for row in await upstreams.told()]
    assert told[2:] == [["faena", "upstream_panic_ended", "afip\nexpired"]]


async def test_scopes_whose_records_have_expired_are_removed(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=OWN)
    for tenant in ("a", "b"):
        await upstreams.trip(tenant=tenant)
    await upstreams.engine.command("DEL", SHARD, "breaker:afip/@a")
    await sweep(upstreams.engine, (), "0")
    assert await troubled(upstreams) == {"afip/@b": "open"}
    assert (await upstreams.told())[-1][2:] == ["upstream_closed", "afip/@a\nno call for an hour"]
    await upstreams.engine.command("DEL", SHARD, "breaker:afip/@b")
    await upstreams.report(good=1, tenant="b")
    assert await troubled(upstreams) == {}
    assert (await upstreams.told())[-1][2] == "upstream_closed", "or its next call removes it"


async def test_many_are_visited_page_by_page(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=OWN)
    flat = [part for i in range(2_000) for part in (f"afip/@t{i}", "open")]
    await upstreams.engine.command("HSET", SHARD, "troubled", *flat)
    cursor, pages, left = "0", 0, 2_000
    while cursor != "0" or not pages:
        cursor, _ = await sweep(upstreams.engine, (), cursor)
        pages += 1
        rest = await upstreams.engine.command("HLEN", SHARD, "troubled")
        assert left - rest <= 1_000, "a part at a time"
        left = rest
    assert left == 0
    assert pages > 1


async def test_a_long_ramp_outlives_the_hour(upstreams: UpstreamRig) -> None:
    ramp = Breaker(volume=4, open="5s", window="10s", ramp="3h")
    await upstreams.declare(breaker=ramp)
    await recover(upstreams)
    ttl_ms = await upstreams.engine.command("PTTL", SHARD, "breaker:afip")
    assert ttl_ms > 3 * 3_600_000
