"""exchange.lua and its neighbours: jobs of a chain start one after the other, in order."""

from __future__ import annotations

import pytest

from faena.outcomes import Buried, Completed, Limited, Outcome, Released, Retried, Snoozed
from tests._support.rig import BOOM, SECOND, Rig

CHAIN = {"lane": "@t", "chain": "t/t"}


async def next_job(rig: Rig) -> tuple[str, str]:
    """The only one that can be claimed."""
    claimed = (await rig.turn(10)).claimed
    assert len(claimed) == 1, claimed
    return claimed[0].id, claimed[0].lease


async def run_next(rig: Rig, outcome: Outcome | None = None) -> str:
    job, lease = await next_job(rig)
    await rig.turn(0, (job, lease, outcome or Completed()))
    return job


async def test_one_is_ready_and_the_others_are_blocked_behind_it(rig: Rig) -> None:
    await rig.add("a", "b", "c", **CHAIN)
    assert await rig.states() == {"a": "ready", "b": "blocked", "c": "blocked"}
    taken = await rig.dump()
    assert taken["heads"] == {"t/t": "a"}
    assert [job for job, _ in taken["tail:t/t"]] == ["b", "c"]
    assert taken["tail:t/t"] == taken["blocked"]


async def test_jobs_run_in_the_order_they_came_whatever_their_priority(rig: Rig) -> None:
    for number, priority in enumerate((50, 1, 10)):
        await rig.add(f"j{number}", priority=priority, **CHAIN)
    assert [await run_next(rig) for _ in range(3)] == ["j0", "j1", "j2"]
    assert {"heads", "tail:t/t", "blocked"} & set(await rig.dump()) == set()


@pytest.mark.parametrize(
    "outcome",
    [Retried(5 * SECOND, BOOM), Snoozed(5 * SECOND)],
    ids=["retried", "snoozed"],
)
async def test_a_head_that_comes_again_keeps_its_turn(rig: Rig, outcome: Outcome) -> None:
    await rig.add("a", "b", **CHAIN)
    assert await run_next(rig, outcome) == "a"
    assert (await rig.turn(10)).claimed == []
    rig.clock.go(5)
    assert [await run_next(rig) for _ in range(2)] == ["a", "b"]


async def test_where_failures_pass_the_next_one_goes_and_the_failed_one_comes_back_in_front(
    rig: Rig,
) -> None:
    await rig.declare(order="tenant", on_failure="pass")
    await rig.add("a", "b", "c", "d", **CHAIN)
    assert await run_next(rig, Retried(5 * SECOND, BOOM)) == "a"
    job, lease = await next_job(rig)
    assert job == "b"
    rig.clock.go(5)
    assert (await rig.turn(10)).claimed == []  # it is due, and "b" runs
    assert (await rig.states())["a"] == "blocked"
    await rig.turn(0, (job, lease, Completed()))
    assert [await run_next(rig) for _ in range(3)] == ["a", "c", "d"]


@pytest.mark.parametrize("outcome", [Buried(BOOM), Completed(b"1")], ids=["buried", "completed"])
async def test_a_head_that_ends_passes_its_turn(rig: Rig, outcome: Outcome) -> None:
    await rig.add("a", "b", **CHAIN)
    await run_next(rig, outcome)
    assert (await rig.states())["b"] == "ready"


@pytest.mark.parametrize(
    "outcome",
    [Released(), Released(priority=100), Limited(SECOND)],
    ids=["released", "lowered", "limited"],
)
async def test_a_head_that_is_put_back_is_still_the_head(rig: Rig, outcome: Outcome) -> None:
    await rig.add("a", "b", **CHAIN)
    await run_next(rig, outcome)
    rig.clock.go(1)
    assert await run_next(rig) == "a"


async def test_a_rescued_head_runs_again_before_the_others(rig: Rig) -> None:
    await rig.add("a", "b", **CHAIN)
    await next_job(rig)
    rig.clock.go(31)
    assert [await run_next(rig) for _ in range(2)] == ["a", "b"]


async def test_a_delayed_job_takes_its_place_when_it_is_due(rig: Rig) -> None:
    await rig.add("later", delay=5 * SECOND, **CHAIN)
    await rig.add("a", **CHAIN)
    assert await run_next(rig) == "a"
    await rig.add("b", **CHAIN)
    rig.clock.go(5)
    await rig.add("c", **CHAIN)
    assert [await run_next(rig) for _ in range(3)] == ["b", "later", "c"]


async def test_a_cancelled_head_passes_its_turn_and_a_cancelled_follower_is_skipped(
    rig: Rig,
) -> None:
    await rig.add("a", "b", "c", **CHAIN)
    assert await rig.engine.cancel("q", ["b", "a"]) == ["cancelled", "cancelled"]
    assert await rig.states() == {"a": "cancelled", "b": "cancelled", "c": "ready"}
    assert await run_next(rig) == "c"


async def test_a_head_cancelled_while_it_waits_for_its_retry_passes_its_turn(rig: Rig) -> None:
    await rig.add("a", "b", **CHAIN)
    await run_next(rig, Retried(3600 * SECOND, BOOM))
    await rig.engine.cancel("q", ["a"])
    assert await run_next(rig) == "b"


async def test_a_job_that_is_run_again_takes_its_place_behind_the_others(rig: Rig) -> None:
    await rig.add("a", "b", "c", **CHAIN)
    await run_next(rig, Buried(BOOM))
    assert await rig.engine.rerun("q", ["a"]) == ["blocked"]
    assert [await run_next(rig) for _ in range(3)] == ["b", "c", "a"]


async def test_draining_clears_chains_and_lanes(rig: Rig) -> None:
    await rig.add("a", "b", "c", **CHAIN)
    for state in ("blocked", "ready"):
        await rig.engine.clean("q", state, 0, 100)
    assert await rig.states() == {}
    assert {"heads", "tail:t/t", "lanes", "lane:@t", "ring"} & set(await rig.dump()) == set()


async def test_a_head_that_is_put_off_by_hand_lets_the_next_one_go(rig: Rig) -> None:
    await rig.add("a", "b", **CHAIN)
    assert await rig.engine.change("q", "a", delay_us=5 * SECOND) == "delayed"
    assert await run_next(rig) == "b"
    rig.clock.go(5)
    assert await run_next(rig) == "a"


async def test_keys_of_a_tenant_have_chains_of_their_own_and_one_lane(rig: Rig) -> None:
    for key in ("x", "y"):
        await rig.add(f"{key}1", f"{key}2", lane="@t", chain=f"k/1/t/{key}")
    claimed = [claim.id for claim in (await rig.turn(10)).claimed]
    assert claimed == ["x1", "y1"]


async def test_a_failing_head_blocks_its_own_chain_only(rig: Rig) -> None:
    await rig.add("a1", "a2", lane="@a", chain="t/a")
    await rig.add("b1", "b2", lane="@b", chain="t/b")
    first = (await rig.turn(10)).claimed
    lease = first[0].lease
    answer = await rig.turn(
        10, ("a1", lease, Retried(3600 * SECOND, BOOM)), ("b1", lease, Completed())
    )
    assert [claim.id for claim in answer.claimed] == ["b2"]
