"""What readers are told of upstreams; reading changes nothing."""

from __future__ import annotations

from faena.engine.calls import resilience
from faena.engine.calls.resilience import Ask, Settled
from faena.engine.calls.upstreams import TroubledTenant, UpstreamView, views
from faena.resilience.breaker import Breaker
from faena.resilience.money import TOTALS, Budget, Price, total_settings
from tests._support.rig import SECOND
from tests._support.upstream_rig import BREAKER, MONEY_T0, UpstreamRig

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
    assert not seen.is_probe_due
    said = "upstream afip is open, 3 of 4 calls failed; the next probe goes in 3s"
    assert str(seen) == said
    upstreams.clock.go(3)
    due = await view(upstreams)
    assert str(due).endswith("the next probe goes with the next call")
    assert (due.is_probe_due, due.next_probe_at, due.opens_at) == (True, upstreams.clock(), None)
    assert due.to_dict()["is_probe_due"]
    assert seen.to_dict()["opens_at"] == opened + 5 * SECOND


async def test_one_that_the_last_calls_have_opened_says_so(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.report(good=9)
    await upstreams.report(bad=4)
    seen = await view(upstreams)
    assert (seen.state, seen.failed, seen.calls, seen.is_latest) == ("open", 4, 4, True)
    assert str(seen).startswith("upstream afip is open, 4 of the last 4 calls failed;")
    rows = await upstreams.engine.command("XRANGE", "@resilience", "events", "-", "+")
    assert rows[-1][1][-1] == b"afip\n4 of the last 4 calls failed"


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
    assert uses == [("5/min", 5, 5, begun + 61 * SECOND), ("100/h", 5, 100, None)]
    assert [str(one) for one in (await view(upstreams)).tenant_limits] == ["2/s"]
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


DOLLAR = 10**6
OF_AI = [Budget("10 USD"), Budget("2 USD", per="month", each_tenant=True)]
CALL = Price("call", "1 USD")


async def declare_ai(rig: UpstreamRig) -> None:
    rig.clock.now = MONEY_T0
    await rig.declare("ai", prices=[CALL], budgets=OF_AI)
    await rig.declare("maps", prices=[CALL])
    await rig.declare("pix", prices=[Price("call", "1 BRL")])
    totals = {TOTALS: total_settings([Budget("20 USD", per="month"), Budget("9 BRL", hard=False)])}
    await resilience.declare(rig.engine, totals)


async def spend(rig: UpstreamRig, dollars: int, tenant: str = "", name: str = "ai") -> None:
    await rig.admit(settled=[Settled("lot", 0, tenant, "", [name, dollars * DOLLAR])])


async def reserve(rig: UpstreamRig, calls: int, name: str = "ai") -> None:
    asked = Ask([name], "", calls, f"lot{calls}", 0, [DOLLAR], 60 * SECOND)
    assert (await rig.admit([asked])).grants[0].number == calls


async def test_the_use_of_budgets_and_of_those_of_its_currency(upstreams: UpstreamRig) -> None:
    await declare_ai(upstreams)
    await spend(upstreams, 3, "acme")
    await reserve(upstreams, 2)
    seen = await view(upstreams, "ai")
    uses = [(one.upstream, one.per, str(one.spent), str(one.reserved)) for one in seen.budgets]
    assert uses == [
        ("ai", "day", "3.00 USD", "2.00 USD"),
        ("ai", "month", "3.00 USD", "0.00 USD"),
        (None, "month", "3.00 USD", "2.00 USD"),
    ]
    assert seen.budgets[1].tenant == "acme", "the tenant that has spent most"
    assert str(seen) == "upstream ai is closed", "calls without a tenant have room"
    assert [one.upstream for one in (await view(upstreams, "maps")).budgets] == [None]
    assert [str(one.amount) for one in (await view(upstreams, "pix")).budgets] == ["9.00 BRL"]
    assert seen.to_dict()["budgets"][0]["spent"]["micro"] == 3 * DOLLAR


async def test_a_budget_that_is_used_up_is_named_with_the_end_of_its_period(
    upstreams: UpstreamRig,
) -> None:
    await declare_ai(upstreams)
    await spend(upstreams, 10)
    seen = await view(upstreams, "ai")
    assert str(seen) == (
        "upstream ai is closed; its budget of 10.00 USD per day is used up: 10.00 USD spent, "
        "0.00 USD reserved; the day ends in 12h"
    )
    assert seen.opens_at == MONEY_T0 + 12 * 3600 * SECOND


async def test_one_that_is_only_reserved_is_told_apart(upstreams: UpstreamRig) -> None:
    await declare_ai(upstreams)
    await spend(upstreams, 6)
    await reserve(upstreams, 4)
    seen = await view(upstreams, "ai")
    assert (seen.budgets[0].is_full, seen.budgets[0].is_used_up, seen.opens_at) == (
        *(True, False),
        None,
    )
    assert str(seen) == (
        "upstream ai is closed; its budget of 10.00 USD per day has no room until calls under way "
        "have ended: 6.00 USD spent, 4.00 USD reserved"
    )


async def test_the_budget_of_a_tenant_and_the_total_of_a_currency_are_named(
    upstreams: UpstreamRig,
) -> None:
    await declare_ai(upstreams)
    await spend(upstreams, 2, "acme")
    await spend(upstreams, 18, name="maps")
    assert "its tenant budget of 2.00 USD per month is used up: 2.00 USD spent" in str(
        await view(upstreams, "ai", "acme")
    )
    assert "tenant budget" not in str(await view(upstreams, "ai", "other"))
    assert "; the total budget of 20.00 USD per month is used up: 20.00 USD spent" in str(
        await view(upstreams, "maps")
    )


async def test_of_a_job_that_waits_the_tightest_budget_is_named_in_any_case(
    upstreams: UpstreamRig,
) -> None:
    await declare_ai(upstreams)
    await spend(upstreams, 7)
    seen = await view(upstreams, "ai")
    assert str(seen) == "upstream ai is closed"
    assert seen.words() == (
        "upstream ai is closed; its budget of 10.00 USD per day has 3.00 USD left: 7.00 USD spent, "
        "0.00 USD reserved"
    )


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
