"""What the machines have found of lanes and chains, each as the shortest story that shows it."""

from __future__ import annotations

from faena.engine.envelope import seal
from faena.outcomes import Completed, Retried, Snoozed
from tests._support.rig import BOOM, SECOND, Rig
from tests.properties.promises import broken
from tests.properties.sight import Sight


async def check(rig: Rig) -> Sight:
    sight = Sight(rig.clock.now, await rig.dump())
    assert broken(sight) == []
    return sight


async def claimed(rig: Rig, want: int) -> list[str]:
    return [claim.id for claim in (await rig.turn(want)).claimed]


async def test_the_next_job_of_the_queues_chain_enters_its_own_lane(rig: Rig) -> None:
    await rig.add("first", lane="@a", chain="q")
    await rig.add("second", lane="@b", chain="q")
    lease = await rig.claim()
    await rig.turn(0, ("first", lease, Completed()))
    assert (await check(rig)).sets("lane:").keys() == {"@b"}


async def test_a_job_that_its_own_batch_replaces_is_not_counted(rig: Rig) -> None:
    facts = {"lane": "@a", "unique": "u", "mode": "debounce", "ttl": 60 * SECOND}
    spec = seal(10, facts, b"{}")
    await rig.engine.enqueue("q", "producer", rig.next_call(), [("one", spec), ("two", spec)])
    assert (await check(rig)).hash("lanes") == {"@a": "1000000"}


async def test_a_job_that_is_promoted_twice_in_a_call_counts_once(rig: Rig) -> None:
    await rig.add("late", lane="@a", delay=SECOND)
    await rig.engine.promote("q", ["late", "late"])
    await check(rig)


async def test_a_job_that_is_named_twice_is_placed_where_it_is_named_first(rig: Rig) -> None:
    await rig.add("plain", delay=SECOND)
    await rig.add("laned", delay=SECOND, lane="@a")
    await rig.engine.promote("q", ["plain", "laned", "plain"])
    assert (await check(rig)).hash("lanes") == {"@a": "1000000"}


async def test_jobs_that_had_no_lane_fill_what_others_leave_of_a_claim(rig: Rig) -> None:
    await rig.add("1", "2", "3", "4")  # before there is a lane: they share it with the next claim
    await rig.add("laned", lane="@a")
    assert await claimed(rig, 4) == ["1", "2", "laned", "3"]
    await check(rig)


async def test_cleaning_blocked_jobs_brings_no_follower_back(rig: Rig) -> None:
    await rig.declare(order="tenant", on_failure="pass")
    await rig.add("leader", lane="@a", chain="t/a", unique="u", mode="last")
    lease = await rig.claim()
    await rig.add("next", "behind", lane="@a", chain="t/a")
    await rig.turn(0, ("leader", lease, Retried(SECOND, BOOM)))
    await rig.add("follower", lane="@a", unique="u", mode="last")
    rig.clock.go(1)
    await rig.turn(0)
    assert await rig.engine.clean("q", "blocked", 0, 10) == 3
    assert (await check(rig)).jobs.keys() == {"next"}


async def test_a_follower_is_known_by_the_mode_of_its_claim_too(rig: Rig) -> None:
    await rig.add("leader", unique="u", mode="last")
    lease = await rig.claim()
    await rig.add("follower", unique="u", mode="last")
    await rig.engine.clean("q", "blocked", 0, 1)
    await rig.add("head", chain="q")
    await rig.add("follower", chain="q", unique="u", mode="live")
    await rig.turn(0, ("leader", lease, Completed()))
    assert (await check(rig)).jobs["follower"].state == "blocked"


async def test_a_snoozed_job_comes_back_to_its_place_where_failures_pass(rig: Rig) -> None:
    await rig.declare(order="tenant", on_failure="pass")
    await rig.add("first", "second", "third", lane="@a", chain="t/a")
    lease = await rig.claim()
    await rig.turn(1, ("first", lease, Snoozed(SECOND)))
    rig.clock.go(1)
    await rig.turn(0)
    assert list((await check(rig)).sets("tail:")["t/a"]) == ["first", "third"]


async def test_a_lane_is_served_when_a_limit_of_its_own_ends_before_it_opens(rig: Rig) -> None:
    limit = {"limits": f"1/{3600 * SECOND}"}
    await rig.engine.tenant("q", "@a", limit, by="ops", duration_us=10 * SECOND)
    await rig.add("first", "second", lane="@a")
    assert await claimed(rig, 2) == ["first"]
    rig.clock.go(10)
    assert await claimed(rig, 2) == ["second"]


async def test_a_lane_is_served_when_the_limit_of_all_tenants_is_lifted(rig: Rig) -> None:
    await rig.edit(tenant_limits=f"1/{3600 * SECOND}")
    await rig.add("first", "second", lane="@a")
    assert await claimed(rig, 2) == ["first"]
    await rig.edit(tenant_limits="")
    assert await claimed(rig, 2) == ["second"]
