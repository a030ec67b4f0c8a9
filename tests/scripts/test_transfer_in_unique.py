"""transfer_in.lua: unique claims come with the jobs that hold them."""

from __future__ import annotations

from typing import Any

import pytest

from faena.outcomes import Completed, Retried
from tests._support.rig import BOOM, SECOND, T0, Rig
from tests._support.transfer import Transfer, run_all

LAST: dict[str, Any] = {"lane": "@a", "unique": "u", "mode": "last"}
LAST_OF_B: dict[str, Any] = LAST | {"lane": "@b"}
CLAIM = "unique:last:u"


@pytest.mark.parametrize("mode", ["live", "waiting", "debounce", "last"])
async def test_a_claim_comes_with_its_holder(rig: Rig, removal: Transfer, mode: str) -> None:
    claim: dict[str, Any] = {"lane": "@a", "unique": "u", "mode": mode}
    await rig.add("a", **claim)
    await removal.move(["@a"], "a")
    assert f"unique:{mode}:u" not in await rig.dump()
    come = await removal.target.dump()
    assert come[f"unique:{mode}:u"] == "a"
    assert f"unique:{mode}:u" not in come.mortal
    (answer,) = await removal.target.add("b", **claim)
    assert (answer.code, answer.replaced) == (
        ("CREATED", "a") if mode == "debounce" else ("DUPLICATE", None)
    )
    await removal.check()


async def test_a_throttle_keeps_its_time(rig: Rig, removal: Transfer) -> None:
    claim: dict[str, Any] = {"lane": "@a", "unique": "u", "mode": "throttle", "ttl": 60 * SECOND}
    await rig.run("a", Completed(), **claim)
    await removal.move(["@a"], "a")
    assert "unique:throttle:u" not in await rig.dump()
    come = await removal.target.dump()
    assert come["unique:throttle:u"] == f"a {T0 + 60 * SECOND}"
    assert "unique:throttle:u" in come.mortal
    left = await rig.engine.command("PTTL", "q/1", "unique:throttle:u")
    assert 0 < left <= 60_000
    (answer,) = await removal.target.add("b", **claim)
    assert (answer.code, answer.detail) == ("DUPLICATE", "a")
    rig.clock.go(60)
    assert (await removal.target.add("c", **claim))[0].code == "CREATED"


async def test_a_claim_of_somebody_else_is_left_where_it_is(rig: Rig, removal: Transfer) -> None:
    claim: dict[str, Any] = {"unique": "u", "mode": "live"}
    await rig.run("a", Completed(), lane="@a", **claim)
    await rig.add("b", lane="@b", **claim)
    await removal.move(["@a"], "a")
    assert (await rig.dump())["unique:live:u"] == "b"
    assert "unique:live:u" not in await removal.target.dump()
    await removal.check()


async def test_a_claim_that_was_made_meanwhile_is_not_taken_away(
    rig: Rig, removal: Transfer
) -> None:
    claim: dict[str, Any] = {"lane": "@a", "unique": "u", "mode": "live"}
    await rig.add("a", **claim)
    await removal.target.add("b", **claim)
    await removal.move(["@a"], "a")
    assert (await removal.target.dump())["unique:live:u"] == "b"
    assert await run_all(removal.target, Completed()) == ["a", "b"]
    assert "unique:live:u" not in await removal.target.dump()


async def test_a_follower_waits_on_behind_its_leader(rig: Rig, removal: Transfer) -> None:
    await rig.run("leader", Retried(5 * SECOND, BOOM), **LAST)
    await rig.add("follower", **LAST)
    await removal.move(["@a"], "leader")
    await removal.check()
    assert (await removal.target.turn(9)).claimed == []
    rig.clock.go(5)
    assert await run_all(removal.target, Completed()) == ["leader", "follower"]
    assert CLAIM not in await removal.target.dump()
    await removal.check()


async def leave_leader(rig: Rig, removal: Transfer, **facts: Any) -> None:
    """The leader is of another lane, which stays: its follower leaves it."""
    await rig.run("leader", Retried(5 * SECOND, BOOM), **LAST_OF_B)
    await rig.add("follower", **LAST, **facts)
    await removal.hand_over("@a")


async def test_a_follower_that_leaves_its_leader_has_a_claim_and_runs(
    rig: Rig, removal: Transfer
) -> None:
    await leave_leader(rig, removal)
    await removal.carry("follower")
    assert (await removal.target.dump())[CLAIM] == "follower"
    assert (await rig.dump())[CLAIM] == "leader"
    assert await removal.states() == ({"leader": "delayed"}, {"follower": "ready"})
    (answer,) = await removal.target.add("dup", **LAST)
    assert (answer.code, answer.detail) == ("DUPLICATE", "follower")
    await removal.check()


async def test_its_own_delay_is_kept(rig: Rig, removal: Transfer) -> None:
    await leave_leader(rig, removal, delay=60 * SECOND)
    await removal.carry("follower")
    assert (await removal.target.dump())["delayed"] == [("follower", float(T0 + 60 * SECOND))]
    await removal.check()


async def test_it_follows_whoever_has_the_claim_where_it_comes(rig: Rig, removal: Transfer) -> None:
    await leave_leader(rig, removal)
    await removal.target.add("holder", **LAST)
    await removal.carry("follower")
    assert await removal.target.states() == {"holder": "ready", "follower": "blocked"}
    await removal.check()
    assert await removal.thaw("@a") == []
    assert await run_all(removal.target, Completed()) == ["holder", "follower"]
    assert CLAIM not in await removal.target.dump()


async def test_a_newer_follower_has_taken_its_place(rig: Rig, removal: Transfer) -> None:
    await leave_leader(rig, removal)
    await removal.target.add("holder", **LAST_OF_B)
    lease = await removal.target.claim()
    await removal.target.add("newer", **LAST)
    await removal.carry("follower")
    assert await removal.target.states() == {"holder": "running", "newer": "blocked"}
    assert (await removal.target.counters())["replaced"] == 1
    assert (await removal.target.dump())["lanes"] == {"@a": "1000000", "@b": "1000001"}
    assert await removal.thaw("@a") == []
    await removal.target.turn(0, ("holder", lease, Completed()))
    assert await run_all(removal.target, Completed()) == ["newer"]
    await removal.check()


async def test_a_follower_of_a_chain_takes_its_place_in_it(rig: Rig, removal: Transfer) -> None:
    chained: dict[str, Any] = LAST | {"chain": "t/a"}
    await rig.run("leader", Retried(5 * SECOND, BOOM), **chained)
    await rig.add("follower", **chained)
    await rig.add("other", lane="@a", chain="t/a")
    await removal.hand_over("@a")
    await removal.carry("other", "leader")
    await removal.thaw("@a")
    await removal.check()
    rig.clock.go(5)
    assert await run_all(removal.target, Completed()) == ["leader", "other", "follower"]
    await removal.check()


async def test_while_the_leader_runs_both_stay(rig: Rig, removal: Transfer) -> None:
    await rig.add("leader", **LAST)
    lease = await rig.claim()
    await rig.add("follower", **LAST)
    await removal.hand_over("@a")
    assert await removal.carry("leader", "follower") == 0
    assert set((await rig.dump())["late"]) == {"leader", "follower"}
    await rig.turn(0, ("leader", lease, Completed()))
    assert await removal.carry("leader", "follower") == 2
    assert await removal.states() == ({}, {"leader": "completed", "follower": "ready"})
    assert (await removal.target.dump())[CLAIM] == "follower"
    assert await removal.thaw("@a") == []
    await removal.check()
