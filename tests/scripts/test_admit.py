"""Calls to upstreams are permitted by breakers and limits, for all processes together."""

from __future__ import annotations

import pytest

from faena.engine.calls.resilience import BAD, GOOD, VOID, Ask, Grant, Report, Undeclared
from faena.errors import InternalError
from faena.resilience.breaker import Breaker
from tests._support.rig import SECOND, T0
from tests._support.upstream_rig import UpstreamRig

T_CLOSED = T0 + 15 * SECOND
ALL = Grant(5, is_probe=False, upstream="", reason="", wait_us=0)


def refused(reason: str, seconds: float, name: str = "afip") -> Grant:
    return Grant(0, is_probe=False, upstream=name, reason=reason, wait_us=round(seconds * SECOND))


async def test_an_upstream_that_nobody_declared_is_named(upstreams: UpstreamRig) -> None:
    await upstreams.declare("afip")
    with pytest.raises(Undeclared, match="nope") as caught:
        await upstreams.admit([Ask(["afip", "nope"], "", 1, "p")], [Report("afip", "", 9, 9)])
    assert caught.value.names == ["nope"]
    assert await upstreams.ask(5) == ALL, "nothing of the refused call was counted"


async def test_a_closed_breaker_permits_all(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    assert await upstreams.ask(5) == ALL
    assert await upstreams.events() == []


@pytest.mark.parametrize(
    ("good", "bad", "turned"),
    [(0, 3, []), (0, 4, ["open"]), (2, 2, ["open"]), (3, 2, []), (4, 0, []), (7, 7, ["open"])],
)
async def test_it_opens_by_share_and_volume(
    upstreams: UpstreamRig, good: int, bad: int, turned: list[str]
) -> None:
    await upstreams.declare()
    assert await upstreams.report(good, bad) == turned


async def test_calls_that_have_left_the_window_count_no_more(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.report(bad=3)
    upstreams.clock.go(10)
    assert await upstreams.report(bad=1) == []
    assert await upstreams.report(bad=3) == ["open"]


async def test_slow_calls_open_it_too(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=Breaker(volume=4, slow=0.5, slow_after="1s"))
    assert await upstreams.report(good=4, slow=1) == []
    assert await upstreams.report(good=2, slow=2) == ["open"]


async def test_an_open_breaker_permits_nothing_until_its_time(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.trip()
    assert await upstreams.ask(5) == refused("open", 5)
    upstreams.clock.go(4)
    assert await upstreams.ask(5) == refused("open", 1)
    assert await upstreams.events() == ["upstream_open afip"]


async def test_calls_that_began_before_it_opened_change_nothing(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.trip()
    assert await upstreams.report(good=100, bad=100) == []
    assert await upstreams.ask(5) == refused("open", 5)


async def test_one_probe_goes_first_and_the_others_ask_again(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.trip()
    upstreams.clock.go(5)
    await upstreams.probe()
    assert await upstreams.ask(5) == refused("probing", 1)
    assert await upstreams.report(good=9, bad=9) == [], "only the probe tells"


async def test_after_its_probes_it_recovers_in_doublings(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.trip()
    upstreams.clock.go(5)
    permit = await upstreams.probe()
    assert await upstreams.report(probes=[permit, GOOD]) == ["recovering"]
    permitted = []
    for _ in range(10):
        permitted.append((await upstreams.ask(10_000)).number)
        upstreams.clock.go(1)
    assert permitted == [1, 1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert await upstreams.ask(10_000) == ALL._replace(number=10_000)
    assert await upstreams.events() == [
        "upstream_open afip",
        "upstream_half_open afip",
        "upstream_recovering afip",
        "upstream_closed afip",
    ]


async def test_who_is_refused_while_it_recovers_asks_again_in_time(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.trip()
    upstreams.clock.go(5)
    await upstreams.report(probes=[await upstreams.probe(), GOOD])
    for _ in range(20):
        grant = await upstreams.ask(10_000)
        assert grant.number >= 1
        upstreams.clock.now += grant.wait_us - 2
        if upstreams.clock.now >= T_CLOSED:
            break
        assert (await upstreams.ask(10_000)).number == 0
        upstreams.clock.now += 2


async def test_a_probe_that_fails_doubles_the_wait_up_to_a_bound(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.trip()
    for seconds in (5, 10, 20, 20):
        assert await upstreams.ask(1) == refused("open", seconds)
        upstreams.clock.go(seconds)
        assert await upstreams.report(probes=[await upstreams.probe(), BAD]) == ["open"]


async def test_the_wait_is_short_again_after_it_has_closed(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    for _ in range(2):
        await upstreams.trip()
        assert await upstreams.ask(1) == refused("open", 5)
        upstreams.clock.go(5)
        await upstreams.report(probes=[await upstreams.probe(), GOOD])
        upstreams.clock.go(10)
        assert await upstreams.ask(5) == ALL


async def test_a_failure_while_it_recovers_opens_it_for_longer(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.trip()
    upstreams.clock.go(5)
    await upstreams.report(probes=[await upstreams.probe(), GOOD])
    assert await upstreams.report(bad=1) == ["open"]
    assert await upstreams.ask(1) == refused("open", 10)


async def test_a_failure_among_many_successes_does_not(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.trip()
    upstreams.clock.go(5)
    await upstreams.report(probes=[await upstreams.probe(), GOOD])
    assert await upstreams.report(good=9, bad=1) == []


async def test_all_probes_must_succeed(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=Breaker(volume=4, open="5s", probes=3))
    await upstreams.trip()
    upstreams.clock.go(5)
    grant = await upstreams.ask(2)
    assert (grant.number, grant.is_probe) == (2, True)
    assert (await upstreams.ask(5)).number == 1
    assert await upstreams.report(probes=["p2:1", GOOD, "p2:2", GOOD]) == []
    assert await upstreams.ask(1) == refused("probing", 1)
    assert await upstreams.report(probes=["p3:1", GOOD]) == ["recovering"]


async def test_it_recovers_when_fewer_probes_are_declared_while_it_probes(
    upstreams: UpstreamRig,
) -> None:
    await upstreams.declare(breaker=Breaker(volume=4, open="5s", probes=3))
    await upstreams.trip()
    upstreams.clock.go(5)
    await upstreams.ask(2)
    assert await upstreams.report(probes=["p2:1", GOOD, "p2:2", GOOD]) == []
    await upstreams.declare(breaker=Breaker(volume=4, open="5s", probes=2))
    assert await upstreams.report(probes=[await upstreams.probe(), GOOD]) == ["recovering"]


async def test_the_place_of_a_dead_prober_is_free_again(upstreams: UpstreamRig) -> None:
    await upstreams.declare(timeout="20s")
    await upstreams.trip()
    upstreams.clock.go(5)
    lost = await upstreams.probe()
    upstreams.clock.go(29)
    assert await upstreams.ask(1) == refused("probing", 1)
    upstreams.clock.go(1)
    permit = await upstreams.probe()
    assert await upstreams.report(probes=[lost, GOOD]) == [], "it comes too late to count"
    assert await upstreams.report(probes=[permit, GOOD]) == ["recovering"]


async def test_a_probe_without_a_call_leaves_its_place(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.trip()
    upstreams.clock.go(5)
    assert await upstreams.report(probes=[await upstreams.probe(), VOID]) == []
    await upstreams.probe()


async def test_an_upstream_that_asks_to_wait_gets_no_call_before(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    assert await upstreams.report(wait_us=7 * SECOND) == []
    await upstreams.report(wait_us=2 * SECOND)
    assert await upstreams.ask(5) == refused("rate_limited", 7)
    upstreams.clock.go(7)
    assert await upstreams.ask(5) == ALL


async def test_limits_stack_and_are_exact(upstreams: UpstreamRig) -> None:
    await upstreams.declare(limits=["3/s", "5/min"])
    assert (await upstreams.ask(5)).number == 3
    assert await upstreams.ask(5) == refused("limit", 1.05), "a call may begin 50 ms later"
    upstreams.clock.go(1.05)
    assert (await upstreams.ask(5)).number == 2
    assert await upstreams.ask(5) == refused("limit", 59)
    upstreams.clock.go(59)
    assert (await upstreams.ask(5)).number == 3


@pytest.mark.parametrize(("limit", "opens"), [("1/100ms", 0.15), ("1/2s", 2.1), ("1/min", 61)])
async def test_a_window_lasts_longer_by_the_time_in_which_its_calls_may_begin(
    upstreams: UpstreamRig, limit: str, opens: float
) -> None:
    await upstreams.declare(limits=[limit])
    assert (await upstreams.ask(1)).number == 1
    assert await upstreams.ask(1) == refused("limit", opens)


async def test_what_is_asked_for_in_one_call_shares_the_limit(upstreams: UpstreamRig) -> None:
    await upstreams.declare(limits=["3/s"])
    asks = [Ask(["afip"], tenant, 2, tenant) for tenant in ("a", "b", "c")]
    assert [one.number for one in (await upstreams.admit(asks)).grants] == [2, 1, 0]


async def test_a_tenant_has_its_own_limit(upstreams: UpstreamRig) -> None:
    await upstreams.declare(limits=["5/s"], tenant_limits=["2/s"])
    assert (await upstreams.ask(5, tenant="a")).number == 2
    assert await upstreams.ask(5, tenant="a") == refused("tenant_limit", 1.05)
    assert (await upstreams.ask(5, tenant="b")).number == 2
    assert (await upstreams.ask(5, tenant="c")).number == 1
    assert await upstreams.ask(5) == refused("limit", 1.05)


async def test_a_job_needs_all_of_its_upstreams(upstreams: UpstreamRig) -> None:
    await upstreams.declare("afip", limits=["9/s"])
    await upstreams.declare("mp", limits=["3/s"])
    both = Ask(["afip", "mp"], "", 5, "p")
    (grant,) = (await upstreams.admit([both])).grants
    assert (grant.number, grant.upstream, grant.reason) == (3, "mp", "limit")
    assert (await upstreams.ask(9, name="afip")).number == 6, "nothing is used up for refused jobs"


async def test_breakers_of_tenants_are_apart(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=Breaker(volume=4, open="5s", per="tenant"))
    await upstreams.trip(tenant="broken")
    assert await upstreams.ask(5, tenant="broken") == refused("open", 5)
    assert await upstreams.ask(5, tenant="other") == ALL
    assert await upstreams.ask(5) == ALL
    assert await upstreams.events() == ["upstream_open afip/@broken"]


async def test_a_repeated_call_is_answered_again_and_changes_nothing(
    upstreams: UpstreamRig,
) -> None:
    await upstreams.declare(limits=["5/s"])
    asks, reports = [Ask(["afip"], "", 3, "p")], [Report("afip", "", 2, 2)]
    first = await upstreams.admit(asks, reports, turn=1)
    assert await upstreams.admit(asks, reports, turn=1) == first
    assert (await upstreams.admit([Ask(["afip"], "", 3, "p")], turn=2)).grants[0].number == 2
    assert (await upstreams.admit((), [Report("afip", "", 1, 1)], turn=3)).turned == []


async def test_an_overtaken_call_is_refused(upstreams: UpstreamRig) -> None:
    await upstreams.declare()
    await upstreams.admit(turn=9)
    with pytest.raises(InternalError, match="later call"):
        await upstreams.admit([Ask(["afip"], "", 1, "p")], turn=8)


# -- permits in advance ----------------------------------------------------------------------------


async def test_there_is_more_in_advance_where_there_is_plenty(upstreams: UpstreamRig) -> None:
    await upstreams.declare(limits=["1000/min", "9000/h"])
    asks = [Ask(["afip"], "", 100, "p", 50)]
    (grant,) = (await upstreams.admit(asks)).grants
    assert (grant.number, grant.advance) == (100, 9), "a hundredth of what is left"
    upstreams.clock.go(0.05)
    (grant,) = (await upstreams.admit([Ask(["afip"], "", 891, "q", 50)])).grants
    assert (grant.number, grant.advance) == (891, 0)
    assert (await upstreams.ask(1)).reason == "limit", "all of it is spent"


async def test_what_is_used_later_leaves_the_window_later(upstreams: UpstreamRig) -> None:
    await upstreams.declare(limits=["1000/min"])
    await upstreams.admit([Ask(["afip"], "", 90, "p", 10)])
    upstreams.clock.go(60)
    assert (await upstreams.ask(1000)).number == 901
    upstreams.clock.go(1)
    assert (await upstreams.ask(1000)).number == 99


async def test_nothing_is_given_in_advance_when_something_is_refused(
    upstreams: UpstreamRig,
) -> None:
    await upstreams.declare("afip", limits=["5000/min"])
    await upstreams.declare("mp", limits=["3/s"])
    (grant,) = (await upstreams.admit([Ask(["afip", "mp"], "", 5, "p", 50)])).grants
    assert (grant.number, grant.advance) == (3, 0)
    assert (await upstreams.ask(9000)).number == 4997


async def test_nothing_is_given_in_advance_while_a_breaker_recovers(
    upstreams: UpstreamRig,
) -> None:
    await upstreams.declare()
    (grant,) = (await upstreams.admit([Ask(["afip"], "", 1, "p", 50)])).grants
    assert grant.advance == 50
    await upstreams.trip()
    upstreams.clock.go(5)
    permit = await upstreams.probe()
    await upstreams.report(probes=[permit, 1])
    upstreams.clock.go(5)
    (grant,) = (await upstreams.admit([Ask(["afip"], "", 1, "p", 50)])).grants
    assert (grant.number, grant.advance) == (1, 0)


async def test_permits_in_advance_can_be_asked_for_alone(upstreams: UpstreamRig) -> None:
    await upstreams.declare(limits=["1000/min"])
    (grant,) = (await upstreams.admit([Ask(["afip"], "", 0, "p", 50)])).grants
    assert (grant.number, grant.advance, grant.reason) == (0, 10, "")
    upstreams.clock.go(0.05)
    assert (await upstreams.ask(1000)).number == 990, "they are spent"


async def test_none_alone_while_an_upstream_takes_no_calls(upstreams: UpstreamRig) -> None:
    """What forbids one call forbids those in advance, and is told."""
    await upstreams.declare()
    await upstreams.report(wait_us=9_000_000)
    (grant,) = (await upstreams.admit([Ask(["afip"], "", 0, "p", 50)])).grants
    assert (grant.number, grant.advance, grant.reason) == (0, 0, "rate_limited")
    upstreams.clock.go(9)
    await upstreams.trip()
    (grant,) = (await upstreams.admit([Ask(["afip"], "", 0, "q", 50)])).grants
    assert (grant.number, grant.advance, grant.reason) == (0, 0, "open")
    upstreams.clock.go(5)
    (grant,) = (await upstreams.admit([Ask(["afip"], "", 0, "r", 50)])).grants
    assert (grant.number, grant.is_probe, grant.advance) == (0, False, 0)
    assert await upstreams.probe(), "which was not used up"


async def test_an_outage_is_seen_though_calls_that_began_before_it_still_end_well(
    upstreams: UpstreamRig,
) -> None:
    await upstreams.declare(breaker=Breaker(volume=20, window="1m", open="5s"))
    await upstreams.admit(reports=[Report("afip", "", 1000, 0)])
    failed = 0
    for _ in range(10):  # each time, one that was slow ends well
        await upstreams.admit(reports=[Report("afip", "", 5, 4), Report("afip", "", 15, 15)])
        failed += 19
        if (await upstreams.events()) != []:
            break
    assert await upstreams.events() == ["upstream_open afip"]
    assert failed <= 38


async def test_a_share_of_errors_below_the_threshold_opens_nothing(upstreams: UpstreamRig) -> None:
    await upstreams.declare(breaker=Breaker(volume=20, window="1m", open="5s"))
    for _ in range(50):
        await upstreams.admit(reports=[Report("afip", "", 10, 4)])
    assert await upstreams.events() == []
