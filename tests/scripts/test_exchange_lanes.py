"""exchange.lua: lanes take turns, by weight and by what their jobs cost."""

from __future__ import annotations

from collections import Counter

import pytest

from faena.limits import Limit
from faena.outcomes import Completed, Limited, Released, Retried
from tests._support.rig import BOOM, SECOND, T0, Rig


async def add_each(rig: Rig, number: int, *tenants: str) -> None:
    for tenant in tenants:
        await rig.add(*(f"{tenant}{n:03d}" for n in range(number)), lane=f"@{tenant}")


async def serve(rig: Rig, turns: int, want: int = 1) -> Counter[str]:
    """Claim and complete; how many jobs of each tenant, whose name is a letter."""
    served: Counter[str] = Counter()
    for _ in range(turns):
        claimed = (await rig.turn(want)).claimed
        served.update(claim.id[0] for claim in claimed)
        await rig.turn(0, *((claim.id, claim.lease, Completed()) for claim in claimed))
    return served


async def test_a_claim_writes_the_lane_everywhere_it_belongs(rig: Rig) -> None:
    await rig.declare()
    await rig.add("a", "b", lane="@t")
    taken = await rig.dump()
    assert taken["lane:@t"] == taken["ready"]
    assert taken["lanes"] == {"@t": "2000000"}
    assert taken["ring"] == [("@t", 0.0)]
    assert taken["clock"]["laned"] == 2
    await rig.claim()
    taken = await rig.dump()
    assert [job for job, _ in taken["lane:@t"]] == ["b"]
    assert taken["lanes"] == {"@t": "2000001"}
    assert taken["ring"] == [("@t", 1.0)]
    assert taken["leases"]["a"][4:] == ("lane=@t",)


async def test_nothing_is_left_of_a_lane_but_what_it_owes(rig: Rig) -> None:
    await rig.run("a", Completed(), lane="@t")
    taken = await rig.dump()
    left = {"lanes", "lane:@t", "ring", "parked", "heads"} & set(taken)
    assert left == set()
    assert taken["debts"] == [("@t", 1.0)]
    assert taken["clock"]["laned"] == 0


@pytest.mark.parametrize("want", [1, 7, 100])
async def test_busy_lanes_are_served_alike_whatever_they_have_waiting(rig: Rig, want: int) -> None:
    await add_each(rig, 300, "a")
    await add_each(rig, 80, "b", "c")
    served = await serve(rig, 210 // want, want)
    assert max(served.values()) - min(served.values()) <= 4


async def test_many_lanes_are_served_alike_over_time(rig: Rig) -> None:
    tenants = [chr(ord("A") + n) for n in range(40)]
    await add_each(rig, 70, *tenants)
    served = await serve(rig, 20, 100)
    assert sum(served.values()) == 2000
    assert max(served.values()) - min(served.values()) <= 25  # one visit of a large claim


async def test_a_lane_that_was_idle_has_no_credit(rig: Rig) -> None:
    await add_each(rig, 100, "a", "b")
    await serve(rig, 40)
    await add_each(rig, 100, "c")
    assert await serve(rig, 30) == {"a": 10, "b": 10, "c": 10}


async def test_a_lane_that_leaves_and_returns_still_owes(rig: Rig) -> None:
    await add_each(rig, 50, "a")
    await rig.add(*(f"b{n}" for n in range(4)), lane="@b")
    await serve(rig, 8)
    await rig.add("b-late", lane="@b")
    assert [(await rig.turn(1)).claimed[0].id[0] for _ in range(2)] == ["a", "b"]


async def test_weights_divide_the_service(rig: Rig) -> None:
    await rig.declare()
    for tenant, weight in (("a", 1), ("b", 2), ("c", 4)):
        await rig.engine.tenant("q", f"@{tenant}", {"weight": str(weight)}, by="ops")
    await add_each(rig, 250, "a", "b", "c")
    served = await serve(rig, 12, 35)
    assert sum(served.values()) == 420
    assert [served[tenant] / 60 for tenant in "abc"] == pytest.approx([1, 2, 4], rel=0.02)


async def test_service_time_is_what_is_shared_where_the_queue_says_so(rig: Rig) -> None:
    await rig.declare(fair="time")
    await add_each(rig, 300, "s", "f")
    used: Counter[str] = Counter()
    for _ in range(300):
        (claim,) = (await rig.turn(1)).claimed
        tenths = 9 if claim.id[0] == "s" else 1
        rig.clock.go(tenths / 10)
        used[claim.id[0]] += tenths
        await rig.turn(0, (claim.id, claim.lease, Completed()))
    assert abs(used["s"] - used["f"]) <= 9


async def test_priority_counts_inside_a_lane_only(rig: Rig) -> None:
    await rig.add("bulk", priority=50, lane="@a")
    await rig.add("urgent", priority=1, lane="@a")
    await rig.add("other", priority=50, lane="@b")
    order = [(await rig.turn(1)).claimed[0].id for _ in range(3)]
    assert order == ["urgent", "other", "bulk"]


async def test_jobs_from_before_the_lanes_are_not_forgotten(rig: Rig) -> None:
    await rig.add("old1", "old2")
    await add_each(rig, 20, "a")
    claimed = [claim.id for claim in (await rig.turn(4)).claimed]
    assert {"old1", "old2"} < set(claimed)
    assert len(claimed) == 4


async def test_a_lane_at_its_bound_costs_the_others_nothing(rig: Rig) -> None:
    await rig.declare(tenant_max_running=2)
    await add_each(rig, 10, "a", "b")
    first = (await rig.turn(20)).claimed
    assert Counter(claim.id[0] for claim in first) == {"a": 2, "b": 2}
    answer = await rig.turn(20)
    assert (answer.claimed, answer.more, answer.gate) == ([], False, "")
    ended = next(claim for claim in first if claim.id[0] == "a")
    answer = await rig.turn(20, (ended.id, ended.lease, Completed()))
    assert [claim.id for claim in answer.claimed] == ["a002"]


async def test_a_spent_lane_tells_when_it_opens(rig: Rig) -> None:
    await rig.declare(tenant_limits=[Limit("2/s")])
    await add_each(rig, 5, "a")
    answer = await rig.turn(5)
    assert len(answer.claimed) == 2
    answer = await rig.turn(5)
    assert (answer.claimed, answer.next_at, answer.more) == ([], T0 + SECOND, False)
    rig.clock.go(1)
    assert len((await rig.turn(5)).claimed) == 2


async def test_a_limit_of_one_tenant_is_no_limit_of_another(rig: Rig) -> None:
    await rig.declare()
    await rig.engine.tenant("q", "@a", {"limits": "1/60000000"}, by="ops")
    await add_each(rig, 5, "a", "b")
    assert await serve(rig, 3, 4) == {"a": 1, "b": 5}


async def test_a_held_tenant_waits_and_the_others_do_not(rig: Rig) -> None:
    await rig.declare()
    await add_each(rig, 3, "a", "b")
    await rig.engine.tenant("q", "@a", {"held_until": "0", "reason": "unpaid"}, by="ops")
    assert await serve(rig, 2, 5) == {"b": 3}
    await rig.engine.tenant("q", "@a", {"held_until": "", "reason": ""}, by="ops")
    assert await serve(rig, 1, 5) == {"a": 3}


async def test_released_jobs_go_back_into_their_lane(rig: Rig) -> None:
    await add_each(rig, 2, "a")
    lease = await rig.claim(2)
    await rig.turn(0, ("a000", lease, Released()), ("a001", lease, Retried(SECOND, BOOM)))
    taken = await rig.dump()
    assert [job for job, _ in taken["lane:@a"]] == ["a000"]
    assert taken["lanes"] == {"@a": "2000000"}
    assert taken["ring"]


async def test_a_worker_that_dies_leaves_its_lanes_served(rig: Rig) -> None:
    await rig.declare(tenant_max_running=1)
    await add_each(rig, 2, "a")
    await rig.claim()
    rig.clock.go(31)
    assert [claim.id for claim in (await rig.turn(5)).claimed] == ["a000"]
    assert (await rig.dump())["lanes"] == {"@a": "2000001"}


async def test_shares_of_the_minute_are_kept(rig: Rig) -> None:
    await rig.declare()
    await rig.engine.tenant("q", "@b", {"weight": "2"}, by="ops")
    await add_each(rig, 3, "a", "b")
    await serve(rig, 1, 6)
    minute = T0 // (60 * SECOND)
    shares = (await rig.dump())[f"shares:{minute}"]
    assert {lane: given for lane, (given, *_) in shares.items()} == {"@a": 3000, "@b": 1500}


async def test_sweeps_look_at_every_lane_that_is_full(rig: Rig) -> None:
    """Also where more of them wait than a sweep looks at, and the first are full for good."""
    await rig.declare(fair=True)
    lanes = [f"@{number:03d}" for number in range(120)]
    for lane in lanes:
        lasting = None if lane < "@100" else SECOND
        await rig.engine.tenant("q", lane, {"max_running": "1"}, by="ops", duration_us=lasting)
        await rig.add(f"{lane}a", f"{lane}b", lane=lane)
    for _ in range(10):
        await rig.turn(100)
    assert len((await rig.dump())["running"]) == len(lanes)
    rig.clock.go(2)
    claimed: set[str] = set()
    for _ in range(60):
        claimed |= {claim.id for claim in (await rig.turn(100, is_sweep=True)).claimed}
    assert claimed == {f"{lane}b" for lane in lanes[100:]}


async def test_a_maximum_that_ends_by_itself_lets_jobs_start_at_that_instant(rig: Rig) -> None:
    await rig.declare(fair=True)
    await rig.engine.tenant("q", "@a", {"max_running": "1"}, by="ops", duration_us=5 * SECOND)
    await add_each(rig, 3, "a")
    await rig.claim()
    assert (await rig.turn(5)).next_at == T0 + 5 * SECOND
    assert (await rig.dump())["parked"] == [("@a", T0 + 5 * SECOND)]
    rig.clock.go(5)
    assert [claim.id for claim in (await rig.turn(5)).claimed] == ["a001", "a002"]


async def test_a_maximum_that_will_end_lets_the_next_start_when_a_job_ends(rig: Rig) -> None:
    await rig.declare(fair=True)
    await rig.engine.tenant("q", "@a", {"max_running": "1"}, by="ops", duration_us=5 * SECOND)
    await add_each(rig, 3, "a")
    lease = await rig.claim()
    await rig.turn(5)
    answer = await rig.turn(5, ("a000", lease, Completed()))
    assert [claim.id for claim in answer.claimed] == ["a001"]


async def test_a_large_claim_is_filled_from_shallow_lanes(rig: Rig) -> None:
    await rig.declare(fair=True)
    for number in range(150):
        await rig.add(f"j{number}", lane=f"@t{number}")
    assert len((await rig.turn(100)).claimed) == 100
    assert len((await rig.turn(100)).claimed) == 50


async def test_a_provider_s_wait_does_not_end_a_tenant_s_hold_without_end(rig: Rig) -> None:
    await rig.add("a", lane="@a")
    lease = await rig.claim()
    await rig.engine.tenant("q", "@a", {"held_until": "0", "reason": "unpaid"}, by="ops")
    await rig.turn(0, ("a", lease, Limited(9 * SECOND, scope="tenant")))
    held = (await rig.engine.tenant("q", "@a")).override
    assert (held["held_until"], held["reason"]) == ("0", "unpaid")
