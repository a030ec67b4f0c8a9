"""What readers are told of upstreams; reading changes nothing."""

from __future__ import annotations

from faena.engine.calls.upstreams import TroubledTenant, UpstreamView, views
from faena.resilience.breaker import Breaker
from tests._support.rig import SECOND
from tests._support.upstream_rig import BREAKER, UpstreamRig

OWN = Breaker(volume=4, open="5s", per="tenant")


async def view(rig: UpstreamRig, name: str = "afip", tenant: str = "") -> UpstreamView:
    (found,) = await views(rig.engine, [name], tenant)
    return found


async def test_one_that_was_never_called_is_closed(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    seen = await view(upstreams)
    assert (seen.name, seen.state, seen.since, seen.calls) == ("afip", "closed", None, 0)
    assert (seen.error_rate, seen.panic, seen.limits, seen.tenants) == (0.0, None, (), ())
    assert str(seen) == "upstream afip is closed"


async def test_of_a_closed_breaker_it_tells_the_calls_of_the_window(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.report(good=9, bad=1, slow=2)
    seen = await view(upstreams)
    assert (seen.calls, seen.failed, seen.slow) == (10, 1, 2)
    assert (seen.error_rate, seen.slow_rate) == (0.1, 0.2)
    upstreams.clock.go(30)
    assert (await view(upstreams)).calls == 0


async def test_of_an_open_one_why_it_opened_and_when_it_is_tried(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.report(good=1, bad=3)
    opened = upstreams.clock()
    upstreams.clock.go(2)
    seen = await view(upstreams)
    assert (seen.state, seen.since, seen.failed, seen.calls) == ("open", opened, 3, 4)
    assert (seen.next_probe_at, seen.openings) == (opened + 5 * SECOND, 1)
    said = "upstream afip is open, 3 of 4 calls failed; the next probe goes in 3s"
    assert str(seen) == said
    upstreams.clock.go(3)
    assert str(await view(upstreams)).endswith("the next probe goes with the next job")


async def test_of_the_states_behind(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.trip()
    upstreams.clock.go(5)
    probe = await upstreams.probe()
    seen = await view(upstreams)
    assert (seen.state, seen.next_probe_at, seen.failed) == ("half_open", None, 4)
    await upstreams.report(probes=[probe, 1])
    assert (await view(upstreams)).state == "recovering"
    upstreams.clock.go(10)
    assert (await view(upstreams)).state == "closed", "although nobody has asked since"


async def test_the_use_of_limits(upstreams: UpstreamRig) -> None:
    await upstreams.declare(limits=["5/min", "100/h"], tenant_limits=["2/s"])
    begun = upstreams.clock()
    await upstreams.ask(2, tenant="acme")
    await upstreams.ask(3)
    limits = (await view(upstreams)).limits
    uses = [(str(use.limit), use.used, use.max, use.opens_at) for use in limits]
    assert uses == [("5/min", 5, 5, begun + 60 * SECOND), ("100/h", 5, 100, None)]
    own = (await view(upstreams, tenant="acme")).limits[-1]
    assert (str(own.limit), own.used, own.is_tenants) == ("2/s", 2, True)
    assert "its limit of 5/min is used up, room in 1m" in str(await view(upstreams))


async def test_what_the_upstream_asked_for(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.report(good=1, wait_us=9 * SECOND)
    seen = await view(upstreams)
    assert seen.no_calls_until == upstreams.clock() + 9 * SECOND == seen.opens_at
    assert str(seen) == "upstream afip is closed; it wants no calls for another 9s"
    upstreams.clock.go(9)
    assert (await view(upstreams)).no_calls_until is None


async def test_tenants_in_trouble_are_listed(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=OWN)
    await upstreams.declare("mp", breaker=OWN)
    for tenant in ("b", "a"):
        await upstreams.trip(tenant=tenant)
    await upstreams.trip("mp", tenant="c")
    seen, at = await view(upstreams), upstreams.clock()
    assert seen.state == "closed", "there is none of all calls"
    assert seen.tenants == (
        TroubledTenant(tenant="a", state="open", since=at),
        TroubledTenant(tenant="b", state="open", since=at),
    )
    assert seen.troubled == 2
    own = await view(upstreams, tenant="a")
    assert (own.state, own.failed, own.per, own.tenant) == ("open", 4, "tenant", "a")
    assert str(own).startswith("upstream afip is open for tenant a, 4 of 4 calls failed")


async def test_the_list_of_tenants_is_bounded(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=OWN)
    for number in range(60):
        await upstreams.trip(tenant=f"t{number:02}")
    seen = await view(upstreams)
    assert (len(seen.tenants), seen.troubled) == (50, 60)


async def test_a_tenant_whose_breaker_was_forgotten_is_not_listed(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=OWN)
    await upstreams.trip(tenant="a")
    await upstreams.engine.command("DEL", "@resilience", "breaker:afip/@a")
    assert (await view(upstreams)).tenants == ()
    await upstreams.report(good=1, tenant="a")
    assert await upstreams.engine.command("HLEN", "@resilience", "troubled") == 0


async def test_without_names_it_tells_of_all_and_of_none_that_is_unknown(
    upstreams: UpstreamRig,
) -> None:
    assert await views(upstreams.engine) == []
    for name in ("mp", "afip"):
        await upstreams.declare(name, breaker=BREAKER)
    assert [one.name for one in await views(upstreams.engine)] == ["afip", "mp"]
    assert await views(upstreams.engine, ["nope"]) == []
