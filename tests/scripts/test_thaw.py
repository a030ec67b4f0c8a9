"""thaw.lua"""

from __future__ import annotations

from typing import Any

import pytest

from faena.limits import Limit
from faena.outcomes import Completed, Limited
from tests._support.rig import KEEP_NONE, SECOND, T0, Rig
from tests._support.transfer import Transfer


async def test_a_lane_is_served_again_when_it_has_come(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", lane="@a")
    await transfer.hand_over("@a")
    await transfer.carry("a")
    assert (await transfer.target.turn(9)).claimed == []
    await transfer.moving.thaw("q/1", "in", 1, ["@a"])
    taken = await transfer.target.dump()
    assert {"moves", "parked"} & set(taken) == set()
    assert taken["ring"] == [("@a", 0.0)]
    assert taken["clock"]["moving"] == 0
    assert taken["wake"]
    assert [claim.id for claim in (await transfer.target.turn(9)).claimed] == ["a"]


async def test_to_look_tells_who_is_left_and_changes_nothing(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", lane="@a")
    await transfer.hand_over("@a", "@b")
    await rig.remember()
    assert await transfer.moving.thaw("q", "look", 1, ["@a", "@b"]) == ["@a"]
    assert await rig.is_untouched()


@pytest.mark.parametrize(
    ("options", "override", "is_served"),
    [
        ({}, {}, True),
        ({"tenant_limits": [Limit("5/s")]}, {"limits": "5/1000000"}, True),
        ({"tenant_max_running": 3}, {}, False),
        ({"order": "tenant"}, {}, False),
        ({}, {"max_running": "3"}, False),
    ],
)
async def test_a_lane_comes_early_unless_an_order_or_a_maximum_forbids_it(
    transfer: Transfer, options: dict[str, Any], override: dict[str, str], *, is_served: bool
) -> None:
    await transfer.declare(**options)
    await transfer.target.add("a", lane="@a")
    await transfer.hand_over("@a")
    if override:
        await transfer.target.engine.tenant("q/1", "@a", override, by="ops")
    assert await transfer.moving.thaw("q/1", "early", 1, ["@a"]) == []
    assert bool((await transfer.target.turn(9)).claimed) == is_served
    await transfer.moving.thaw("q/1", "in", 1, ["@a"])
    assert bool((await transfer.target.turn(9)).claimed) != is_served


async def test_a_lane_has_not_gone_while_a_job_of_it_is_live(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", lane="@a")
    lease = await rig.claim()
    await transfer.hand_over("@a")
    assert await transfer.thaw("@a") == ["@a"]
    assert (await rig.dump())["moves"] == {"@a": "out 1"}
    await rig.turn(0, ("a", lease, Completed()))
    assert await transfer.thaw("@a") == []
    assert "moves" not in await rig.dump()


async def test_none_has_gone_while_a_batch_is_under_way(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", lane="@a")
    await transfer.hand_over("@a", "@b")
    batch = await transfer.take_out("a")
    assert await transfer.moving.thaw("q", "look", 1, ["@a", "@b"]) == ["@a", "@b"]
    assert await transfer.moving.thaw("q", "out", 1, ["@a", "@b"]) == ["@a", "@b"]
    await transfer.take_in(batch)
    assert await transfer.moving.thaw("q", "look", 1, ["@a"]) == ["@a"]
    await transfer.take_out()
    assert await transfer.moving.thaw("q", "out", 1, ["@a", "@b"]) == []


async def test_a_late_job_that_has_finished_is_taken_away_before_its_lane_is_struck_off(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", lane="@a")
    lease = await rig.claim()
    await transfer.hand_over("@a")
    await transfer.carry("a")
    await rig.turn(0, ("a", lease, Completed(b"1")))
    assert await transfer.moving.thaw("q", "look", 1, ["@a"]) == []  # it may be served there
    assert await transfer.thaw("@a") == ["@a"]
    assert await transfer.carry("a") == 1
    assert await transfer.thaw("@a") == []
    assert (await transfer.target.dump())["results"] == {"a": b"1"}
    await transfer.check()


async def test_a_late_job_that_is_gone_is_waited_for_only_until_it_is_looked_at(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.declare(retain=KEEP_NONE)
    await rig.add("a", lane="@a")
    lease = await rig.claim()
    await transfer.hand_over("@a")
    await transfer.carry("a")
    assert (await rig.dump())["late"] == {"a": "@a"}
    await rig.turn(0, ("a", lease, Completed()))
    assert await transfer.thaw("@a") == ["@a"]
    assert await transfer.carry("a") == 0
    assert await transfer.thaw("@a") == []


@pytest.mark.parametrize("why", ["in", "early", "out"])
async def test_a_lane_that_moves_for_another_epoch_is_left_alone(
    rig: Rig, transfer: Transfer, why: str
) -> None:
    await transfer.hand_over("@a", epoch=2)
    shard = rig if why == "out" else transfer.target
    await shard.remember()
    for epoch in (1, 3):
        await transfer.moving.thaw(shard.queue, why, epoch, ["@a", "@unknown"])
    assert {name: text for name, text in (await shard.changed()).items() if name != "wake"} == {}


async def test_a_second_call_changes_nothing(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", lane="@a")
    await transfer.move(["@a"], "a")
    await rig.remember()
    await transfer.target.remember()
    assert await transfer.thaw("@a") == []
    assert await rig.changed() == {}
    assert await transfer.target.changed() == {}


async def test_a_lane_comes_back_into_the_ring_with_its_debt(transfer: Transfer) -> None:
    target = transfer.target
    await target.add("a1", "a2", lane="@a")
    await target.add("b1", "b2", lane="@b")
    await target.claim()
    await transfer.hand_over("@a")
    assert (await target.dump())["debts"] == [("@a", 1.0)]
    await transfer.thaw("@a")
    assert dict((await target.dump())["ring"]) == {"@a": 1.0, "@b": 0.0}


async def test_a_hold_that_came_with_a_lane_is_obeyed(rig: Rig, transfer: Transfer) -> None:
    await transfer.declare()
    await rig.add("a", lane="@a")
    hold = {"held_for": str(10 * SECOND), "reason": "unpaid"}
    await rig.engine.tenant("q", "@a", hold, by="ops")
    await transfer.move(["@a"], "a")
    answer = await transfer.target.turn(9)
    assert (answer.claimed, answer.next_at) == ([], T0 + 10 * SECOND)
    rig.clock.go(10)
    assert [claim.id for claim in (await transfer.target.turn(9)).claimed] == ["a"]


async def test_times_of_being_throttled_do_not_go_on_once_it_is_admitted(
    transfer: Transfer,
) -> None:
    target = transfer.target
    await target.declare()
    await target.add("a", "b", lane="@a")
    lease = await target.claim()
    await transfer.hand_over("@a")
    await target.turn(0, ("a", lease, Limited(SECOND, scope="tenant")))
    assert (await target.dump())["throttled"] == {"@a": str(T0)}
    target.clock.go(1)
    await transfer.moving.thaw("q/1", "in", 1, ["@a"])
    assert "throttled" not in await target.dump()
    assert (await target.counters())["throttled_us"] == SECOND
    await transfer.check()


async def test_what_was_learned_of_a_lane_that_went_is_forgotten_here(
    rig: Rig, transfer: Transfer
) -> None:
    await transfer.declare(tenant_limits=[Limit("10/min")], learning=True)
    for lane in ("@a", "@b"):
        await rig.add(f"{lane}1", lane=lane)
    claimed = (await rig.turn(2)).claimed
    refused = [(one.id, one.lease, Limited(SECOND, scope="tenant")) for one in claimed]
    await rig.turn(0, *refused)
    await transfer.move(["@a"], "@a1")
    taken = await rig.dump()
    assert set(taken["learned"]) == {f"claims:{60 * SECOND}@b"}
    assert set(taken["tenants"]) == {"@b"}
