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
async def test_a_claim_comes_with_its_holder(rig: Rig, transfer: Transfer, mode: str) -> None:
    claim: dict[str, Any] = {"lane": "@a", "unique": "u", "mode": mode}
    await rig.add("a", **claim)
    await transfer.move(["@a"], "a")
    assert f"unique:{mode}:u" not in await rig.dump()
    come = await transfer.target.dump()
    assert come[f"unique:{mode}:u"] == "a"
    assert f"unique:{mode}:u" not in come.mortal
    (answer,) = await transfer.target.add("b", **claim)
    assert (answer.code, answer.replaced) == (
        ("CREATED", "a") if mode == "debounce" else ("DUPLICATE", None)
    )
    await transfer.check()


async def test_a_throttle_keeps_its_time(rig: Rig, transfer: Transfer) -> None:
    claim: dict[str, Any] = {"lane": "@a", "unique": "u", "mode": "throttle", "ttl": 60 * SECOND}
    await rig.run("a", Completed(), **claim)
    await transfer.move(["@a"], "a")
    assert "unique:throttle:u" not in await rig.dump()
    come = await transfer.target.dump()
    assert come["unique:throttle:u"] == f"a {T0 + 60 * SECOND}"
    assert "unique:throttle:u" in come.mortal
    left = await rig.engine.command("PTTL", "q/1", "unique:throttle:u")
    assert 0 < left <= 60_000
    (answer,) = await transfer.target.add("b", **claim)
    assert (answer.code, answer.detail) == ("DUPLICATE", "a")
    rig.clock.go(60)
    assert (await transfer.target.add("c", **claim))[0].code == "CREATED"


async def test_a_claim_of_somebody_else_is_left_where_it_is(rig: Rig, transfer: Transfer) -> None:
    claim: dict[str, Any] = {"unique": "u", "mode": "live"}
    await rig.run("a", Completed(), lane="@a", **claim)
    await rig.add("b", lane="@b", **claim)
    await transfer.move(["@a"], "a")
    assert (await rig.dump())["unique:live:u"] == "b"
    assert "unique:live:u" not in await transfer.target.dump()
    await transfer.check()


async def test_a_claim_that_was_made_meanwhile_is_not_taken_away(
    rig: Rig, transfer: Transfer
) -> None:
    claim: dict[str, Any] = {"lane": "@a", "unique": "u", "mode": "live"}
    await rig.add("a", **claim)
    await transfer.target.add("b", **claim)
    await transfer.move(["@a"], "a")
    assert (await transfer.target.dump())["unique:live:u"] == "b"
    assert await run_all(transfer.target, Completed()) == ["a", "b"]
    assert "unique:live:u" not in await transfer.target.dump()


async def test_a_follower_waits_on_behind_its_leader(rig: Rig, transfer: Transfer) -> None:
    await rig.run("leader", Retried(5 * SECOND, BOOM), **LAST)
    await rig.add("follower", **LAST)
    await transfer.move(["@a"], "leader")
    await transfer.check()
    assert (await transfer.target.turn(9)).claimed == []
    rig.clock.go(5)
    assert await run_all(transfer.target, Completed()) == ["leader", "follower"]
    assert CLAIM not in await transfer.target.dump()
    await transfer.check()


async def leave_leader(rig: Rig, transfer: Transfer, **facts: Any) -> None:
    """The leader is of another lane, which stays: its follower leaves it."""
    await rig.run("leader", Retried(5 * SECOND, BOOM), **LAST_OF_B)
    await rig.add("follower", **LAST, **facts)
    await transfer.hand_over("@a")


async def test_a_follower_that_leaves_its_leader_has_a_claim_and_runs(
    rig: Rig, transfer: Transfer
) -> None:
    await leave_leader(rig, transfer)
    await transfer.carry("follower")
    assert (await transfer.target.dump())[CLAIM] == "follower"
    assert (await rig.dump())[CLAIM] == "leader"
    assert await transfer.states() == ({"leader": "delayed"}, {"follower": "ready"})
    (answer,) = await transfer.target.add("dup", **LAST)
    assert (answer.code, answer.detail) == ("DUPLICATE", "follower")
    await transfer.check()


async def test_its_own_delay_is_kept(rig: Rig, transfer: Transfer) -> None:
    await leave_leader(rig, transfer, delay=60 * SECOND)
    await transfer.carry("follower")
    assert (await transfer.target.dump())["delayed"] == [("follower", float(T0 + 60 * SECOND))]
    await transfer.check()


async def test_it_follows_whoever_has_the_claim_where_it_comes(
    rig: Rig, transfer: Transfer
) -> None:
    await leave_leader(rig, transfer)
    await transfer.target.add("holder", **LAST)
    await transfer.carry("follower")
    assert await transfer.target.states() == {"holder": "ready", "follower": "blocked"}
    await transfer.check()
    assert await transfer.thaw("@a") == []
    assert await run_all(transfer.target, Completed()) == ["holder", "follower"]
    assert CLAIM not in await transfer.target.dump()


async def test_a_newer_follower_has_taken_its_place(rig: Rig, transfer: Transfer) -> None:
    await leave_leader(rig, transfer)
    await transfer.target.add("holder", **LAST_OF_B)
    lease = await transfer.target.claim()
    await transfer.target.add("newer", **LAST)
    await transfer.carry("follower")
    assert await transfer.target.states() == {"holder": "running", "newer": "blocked"}
    assert (await transfer.target.counters())["replaced"] == 1
    assert (await transfer.target.dump())["lanes"] == {"@a": "1000000", "@b": "1000001"}
    assert await transfer.thaw("@a") == []
    await transfer.target.turn(0, ("holder", lease, Completed()))
    assert await run_all(transfer.target, Completed()) == ["newer"]
    await transfer.check()


async def test_a_follower_of_a_chain_takes_its_place_in_it(rig: Rig, transfer: Transfer) -> None:
    chained: dict[str, Any] = LAST | {"chain": "t/a"}
    await rig.run("leader", Retried(5 * SECOND, BOOM), **chained)
    await rig.add("follower", **chained)
    await rig.add("other", lane="@a", chain="t/a")
    await transfer.hand_over("@a")
    await transfer.carry("other", "leader")
    await transfer.thaw("@a")
    await transfer.check()
    rig.clock.go(5)
    assert await run_all(transfer.target, Completed()) == ["leader", "other", "follower"]
    await transfer.check()


async def test_while_the_leader_runs_both_stay(rig: Rig, transfer: Transfer) -> None:
    await rig.add("leader", **LAST)
    lease = await rig.claim()
    await rig.add("follower", **LAST)
    await transfer.hand_over("@a")
    assert await transfer.carry("leader", "follower") == 0
    assert set((await rig.dump())["late"]) == {"leader", "follower"}
    await rig.turn(0, ("leader", lease, Completed()))
    assert await transfer.carry("leader", "follower") == 2
    assert await transfer.states() == ({}, {"leader": "completed", "follower": "ready"})
    assert (await transfer.target.dump())[CLAIM] == "follower"
    assert await transfer.thaw("@a") == []
    await transfer.check()
