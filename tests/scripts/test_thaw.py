"""thaw.lua"""

from __future__ import annotations

from typing import Any

import pytest

from faena.limits import Limit
from faena.outcomes import Completed, Limited
from tests._support.rig import KEEP_NONE, SECOND, T0, Rig
from tests._support.transfer import Transfer


async def test_a_lane_is_served_again_when_it_has_come(rig: Rig, removal: Transfer) -> None:
    await rig.add("a", lane="@a")
    await removal.hand_over("@a")
    await removal.carry("a")
    assert (await removal.target.turn(9)).claimed == []
    await removal.moving.thaw("q/1", "in", 1, ["@a"])
    taken = await removal.target.dump()
    assert {"moves", "parked"} & set(taken) == set()
    assert taken["ring"] == [("@a", 0.0)]
    assert taken["clock"]["moving"] == 0
    assert taken["wake"]
    assert [claim.id for claim in (await removal.target.turn(9)).claimed] == ["a"]


async def test_to_look_tells_who_is_left_and_changes_nothing(rig: Rig, removal: Transfer) -> None:
    await rig.add("a", lane="@a")
    await removal.hand_over("@a", "@b")
    await rig.remember()
    assert await removal.moving.thaw("q", "look", 1, ["@a", "@b"]) == ["@a"]
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
    removal: Transfer, options: dict[str, Any], override: dict[str, str], *, is_served: bool
) -> None:
    await removal.declare(**options)
    await removal.target.add("a", lane="@a")
    await removal.hand_over("@a")
    if override:
        await removal.target.engine.tenant("q/1", "@a", override, by="ops")
    assert await removal.moving.thaw("q/1", "early", 1, ["@a"]) == []
    assert bool((await removal.target.turn(9)).claimed) == is_served
    await removal.moving.thaw("q/1", "in", 1, ["@a"])
    assert bool((await removal.target.turn(9)).claimed) != is_served


async def test_a_lane_has_not_gone_while_a_job_of_it_is_live(rig: Rig, removal: Transfer) -> None:
    await rig.add("a", lane="@a")
    lease = await rig.claim()
    await removal.hand_over("@a")
    assert await removal.thaw("@a") == ["@a"]
    assert (await rig.dump())["moves"] == {"@a": "out 1"}
    await rig.turn(0, ("a", lease, Completed()))
    assert await removal.thaw("@a") == []
    assert "moves" not in await rig.dump()


async def test_none_has_gone_while_a_batch_is_under_way(rig: Rig, removal: Transfer) -> None:
    await rig.add("a", lane="@a")
    await removal.hand_over("@a", "@b")
    batch = await removal.take_out("a")
    assert await removal.moving.thaw("q", "look", 1, ["@a", "@b"]) == ["@a", "@b"]
    assert await removal.moving.thaw("q", "out", 1, ["@a", "@b"]) == ["@a", "@b"]
    await removal.take_in(batch)
    assert await removal.moving.thaw("q", "look", 1, ["@a"]) == ["@a"]
    await removal.take_out()
    assert await removal.moving.thaw("q", "out", 1, ["@a", "@b"]) == []


async def test_a_late_job_that_has_finished_is_taken_away_before_its_lane_is_struck_off(
    rig: Rig, removal: Transfer
) -> None:
    await rig.add("a", lane="@a")
    lease = await rig.claim()
    await removal.hand_over("@a")
    await removal.carry("a")
    await rig.turn(0, ("a", lease, Completed(b"1")))
    assert await removal.moving.thaw("q", "look", 1, ["@a"]) == []  # it may be served there
    assert await removal.thaw("@a") == ["@a"]
    assert await removal.carry("a") == 1
    assert await removal.thaw("@a") == []
    assert (await removal.target.dump())["results"] == {"a": b"1"}
    await removal.check()


async def test_a_late_job_that_is_gone_is_waited_for_only_until_it_is_looked_at(
    rig: Rig, removal: Transfer
) -> None:
    await rig.declare(retain=KEEP_NONE)
    await rig.add("a", lane="@a")
    lease = await rig.claim()
    await removal.hand_over("@a")
    await removal.carry("a")
    assert (await rig.dump())["late"] == {"a": "@a"}
    await rig.turn(0, ("a", lease, Completed()))
    assert await removal.thaw("@a") == ["@a"]
    assert await removal.carry("a") == 0
    assert await removal.thaw("@a") == []


@pytest.mark.parametrize("why", ["in", "early", "out"])
async def test_a_lane_that_moves_for_another_epoch_is_left_alone(
    rig: Rig, removal: Transfer, why: str
) -> None:
    await removal.hand_over("@a", epoch=2)
    shard = rig if why == "out" else removal.target
    await shard.remember()
    for epoch in (1, 3):
        await removal.moving.thaw(shard.queue, why, epoch, ["@a", "@unknown"])
    assert {name: text for name, text in (await shard.changed()).items() if name != "wake"} == {}


async def test_a_second_call_changes_nothing(rig: Rig, removal: Transfer) -> None:
    await rig.add("a", lane="@a")
    await removal.move(["@a"], "a")
    await rig.remember()
    await removal.target.remember()
    assert await removal.thaw("@a") == []
    assert await rig.changed() == {}
    assert await removal.target.changed() == {}


async def test_a_lane_comes_back_into_the_ring_with_its_debt(removal: Transfer) -> None:
    target = removal.target
    await target.add("a1", "a2", lane="@a")
    await target.add("b1", "b2", lane="@b")
    await target.claim()
    await removal.hand_over("@a")
    assert (await target.dump())["debts"] == [("@a", 1.0)]
    await removal.thaw("@a")
    assert dict((await target.dump())["ring"]) == {"@a": 1.0, "@b": 0.0}


async def test_a_hold_that_came_with_a_lane_is_obeyed(rig: Rig, removal: Transfer) -> None:
    await removal.declare()
    await rig.add("a", lane="@a")
    hold = {"held_for": str(10 * SECOND), "reason": "unpaid"}
    await rig.engine.tenant("q", "@a", hold, by="ops")
    await removal.move(["@a"], "a")
    answer = await removal.target.turn(9)
    assert (answer.claimed, answer.next_at) == ([], T0 + 10 * SECOND)
    rig.clock.go(10)
    assert [claim.id for claim in (await removal.target.turn(9)).claimed] == ["a"]


async def test_times_of_being_throttled_do_not_go_on_once_it_is_admitted(
    removal: Transfer,
) -> None:
    target = removal.target
    await target.declare()
    await target.add("a", "b", lane="@a")
    lease = await target.claim()
    await removal.hand_over("@a")
    await target.turn(0, ("a", lease, Limited(SECOND, scope="tenant")))
    assert (await target.dump())["throttled"] == {"@a": str(T0)}
    target.clock.go(1)
    await removal.moving.thaw("q/1", "in", 1, ["@a"])
    assert "throttled" not in await target.dump()
    assert (await target.counters())["throttled_us"] == SECOND
    await removal.check()


async def test_what_was_learned_of_a_lane_that_went_is_forgotten_here(
    rig: Rig, removal: Transfer
) -> None:
    await removal.declare(tenant_limits=[Limit("10/min")], learning=True)
    for lane in ("@a", "@b"):
        await rig.add(f"{lane}1", lane=lane)
    claimed = (await rig.turn(2)).claimed
    refused = [(one.id, one.lease, Limited(SECOND, scope="tenant")) for one in claimed]
    await rig.turn(0, *refused)
    await removal.move(["@a"], "@a1")
    taken = await rig.dump()
    assert set(taken["learned"]) == {f"claims:{60 * SECOND}@b"}
    assert set(taken["tenants"]) == {"@b"}
