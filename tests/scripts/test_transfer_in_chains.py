"""transfer_in.lua: jobs of a chain keep their order, whoever of them comes first."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from faena.outcomes import Completed, Released, Retried, Snoozed
from tests._support.rig import BOOM, SECOND, Rig
from tests._support.transfer import Transfer, run_all

CHAIN: dict[str, Any] = {"lane": "@a", "chain": "t/a"}
ORDERS = list(permutations("abc"))


@pytest.mark.parametrize("order", ORDERS, ids="".join)
async def test_jobs_that_come_one_by_one_run_in_the_order_they_were_enqueued(
    rig: Rig, transfer: Transfer, order: tuple[str, ...]
) -> None:
    await rig.add("a", "b", "c", **CHAIN)
    await transfer.hand_over("@a")
    await transfer.target.add("new", **CHAIN)
    for job in order:
        assert await transfer.carry(job) == 1
        await transfer.check()
    assert await transfer.target.states() == {
        "a": "ready",
        "b": "blocked",
        "c": "blocked",
        "new": "blocked",
    }
    assert await transfer.thaw("@a") == []
    assert await run_all(transfer.target, Completed()) == ["a", "b", "c", "new"]
    await transfer.check()
    assert {"heads", "tail:t/a", "blocked"} & set(await transfer.target.dump()) == set()


@pytest.mark.parametrize("order", ORDERS, ids="".join)
async def test_jobs_that_come_together_do_too(
    rig: Rig, transfer: Transfer, order: tuple[str, ...]
) -> None:
    await rig.add("a", "b", "c", **CHAIN)
    await transfer.move(["@a"], *order)
    await transfer.check()
    assert await run_all(transfer.target, Completed()) == ["a", "b", "c"]


@pytest.mark.parametrize("order", ORDERS, ids="".join)
@pytest.mark.parametrize("outcome", [Retried(5 * SECOND, BOOM), Snoozed(5 * SECOND)])
async def test_a_head_that_waits_for_its_next_attempt_keeps_its_turn(
    rig: Rig, transfer: Transfer, order: tuple[str, ...], outcome: Retried | Snoozed
) -> None:
    await rig.add("a", "b", "c", **CHAIN)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, outcome))
    await transfer.hand_over("@a")
    await transfer.target.add("new", **CHAIN)
    for job in order:
        await transfer.carry(job)
        await transfer.check()
    await transfer.thaw("@a")
    assert (await transfer.target.dump())["heads"] == {"t/a": "a"}
    assert (await transfer.target.turn(9)).claimed == []
    rig.clock.go(5)
    assert await run_all(transfer.target, Completed()) == ["a", "b", "c", "new"]


async def test_a_delayed_job_that_never_had_the_turn_takes_none(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("later", delay=5 * SECOND, **CHAIN)
    await rig.add("a", "b", **CHAIN)
    await transfer.move(["@a"], "b", "later", "a")
    assert await run_all(transfer.target, Completed()) == ["a", "b"]
    rig.clock.go(5)
    assert await run_all(transfer.target, Completed()) == ["later"]
    await transfer.check()


async def test_where_failures_pass_the_failed_one_comes_back_in_front(
    rig: Rig, transfer: Transfer
) -> None:
    await transfer.declare(order="tenant", on_failure="pass")
    await rig.add("a", "b", "c", **CHAIN)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Retried(5 * SECOND, BOOM)))
    await transfer.move(["@a"], "c", "a", "b")
    assert await transfer.target.states() == {"a": "delayed", "b": "ready", "c": "blocked"}
    lease = await transfer.target.claim()
    rig.clock.go(5)
    assert (await transfer.target.turn(9)).claimed == []  # it is due, and "b" runs
    await transfer.target.turn(0, ("b", lease, Completed()))
    assert await run_all(transfer.target, Completed()) == ["a", "c"]
    await transfer.check()


@pytest.mark.parametrize("outcome", [None, Retried(5 * SECOND, BOOM)], ids=["ready", "delayed"])
async def test_a_head_that_runs_at_the_new_shard_is_not_displaced(
    rig: Rig, transfer: Transfer, outcome: Retried | None
) -> None:
    await rig.add("a", "b", **CHAIN)
    if outcome:
        lease = await rig.claim()
        await rig.turn(0, ("a", lease, outcome))
    await transfer.target.add("runs", **CHAIN)
    lease = await transfer.target.claim()
    await transfer.move(["@a"], "b", "a")
    assert (await transfer.target.dump())["heads"] == {"t/a": "runs"}
    await transfer.check()
    rig.clock.go(5)
    assert (await transfer.target.turn(9)).claimed == []
    await transfer.target.turn(0, ("runs", lease, Completed()))
    assert await run_all(transfer.target, Completed()) == ["a", "b"]
    await transfer.check()


async def test_a_head_that_waits_for_its_attempt_at_the_new_shard_keeps_its_turn(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", **CHAIN)
    rig.clock.go(1)
    await transfer.target.run("again", Retried(5 * SECOND, BOOM), **CHAIN)
    await transfer.move(["@a"], "a")
    assert await transfer.target.states() == {"a": "blocked", "again": "delayed"}
    rig.clock.go(5)
    assert await run_all(transfer.target, Completed()) == ["again", "a"]
    await transfer.check()


@pytest.mark.parametrize("outcome", [Released(), Retried(0, BOOM)], ids=["released", "retried"])
async def test_a_late_head_comes_before_those_that_went_ahead_of_it(
    rig: Rig, transfer: Transfer, outcome: Released | Retried
) -> None:
    await rig.add("a", "b", "c", **CHAIN)
    lease = await rig.claim()
    await transfer.hand_over("@a")
    await transfer.carry("c", "a", "b")
    assert await transfer.states() == ({"a": "running"}, {"b": "ready", "c": "blocked"})
    assert (await transfer.target.turn(9, is_sweep=True)).claimed == []
    await transfer.check()
    await rig.turn(0, ("a", lease, outcome))
    await transfer.carry("a")
    assert await transfer.thaw("@a") == []
    assert await run_all(transfer.target, Completed()) == ["a", "b", "c"]
    await transfer.check()


async def test_chains_of_a_lane_do_not_wait_for_each_other(rig: Rig, transfer: Transfer) -> None:
    for key in ("x", "y"):
        await rig.add(f"{key}1", f"{key}2", lane="@a", chain=f"k/1/a/{key}")
    await transfer.move(["@a"], "y2", "x2", "x1", "y1")
    claimed = (await transfer.target.turn(9)).claimed
    assert {claim.id for claim in claimed} == {"x1", "y1"}
    await transfer.check()


async def test_one_that_steps_back_leaves_nothing_in_its_lane(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", **CHAIN)
    await transfer.target.declare()
    await transfer.hand_over("@a")
    await transfer.target.add("new", **CHAIN)
    await transfer.carry("a")
    come = await transfer.target.dump()
    assert [job for job, _ in come["lane:@a"]] == ["a"]
    assert come["clock"]["laned"] == 1
    assert come["lanes"] == {"@a": "2000000"}
    assert come["tail:t/a"] == come["blocked"]


async def test_where_it_was_admitted_already_one_that_steps_back_leaves_the_lane_in_the_ring(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", **CHAIN)
    await transfer.target.declare()
    await transfer.hand_over("@a")
    await transfer.target.add("new", **CHAIN)
    await transfer.moving.thaw("q/1", "in", 1, ["@a"])
    await transfer.carry("a")
    await transfer.check()
    assert await run_all(transfer.target, Completed()) == ["a", "new"]
