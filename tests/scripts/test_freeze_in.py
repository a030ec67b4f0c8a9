"""freeze_in.lua"""

from __future__ import annotations

import pytest

from faena.errors import ShardsChanged
from faena.limits import Limit
from faena.outcomes import Completed, Limited
from tests._support.rig import SECOND, T0, Rig
from tests._support.transfer import Transfer

WINDOW = f"claims:{60 * SECOND}@a"


async def test_a_lane_that_is_expected_is_not_served(rig: Rig, transfer: Transfer) -> None:
    await transfer.target.declare()
    await transfer.hand_over("@a")
    await transfer.target.add("new", lane="@a")
    await transfer.target.add("other", lane="@b")
    assert [claim.id for claim in (await transfer.target.turn(9, is_sweep=True)).claimed] == [
        "other"
    ]
    taken = await transfer.target.dump()
    assert taken["moves"] == {"@a": "in 1"}
    assert taken["parked"] == [("@a", 1e18)]
    assert (await rig.dump())["moves"] == {"@a": "out 1"}


async def test_one_that_waits_there_already_leaves_the_ring(transfer: Transfer) -> None:
    target = transfer.target
    await target.add("early", lane="@a")
    await transfer.hand_over("@a")
    taken = await target.dump()
    assert "ring" not in taken
    assert taken["parked"] == [("@a", 1e18)]
    assert (await target.turn(9)).claimed == []
    await transfer.check()


async def test_stamps_go_on_behind_the_last_one_of_the_old_shard(
    rig: Rig, transfer: Transfer
) -> None:
    rig.clock.go(100)
    await rig.add("a", lane="@a", chain="t/a")
    rig.clock.go(-100)  # the server of the new shard is behind
    await transfer.target.declare()
    await transfer.hand_over("@a")
    await transfer.target.add("b", lane="@a", chain="t/a")
    assert (await transfer.target.dump())["ready"] == [("b", float(T0 + 100 * SECOND + 2))]


async def test_a_stamp_of_an_earlier_one_changes_nothing(transfer: Transfer) -> None:
    rig = transfer.target
    await rig.add("b", lane="@b")
    await transfer.hand_over("@a")
    assert (await rig.dump())["clock"]["stamp"] == T0 + 1


async def test_an_override_comes_as_it_was(rig: Rig, transfer: Transfer) -> None:
    await transfer.declare()
    changes = {
        "weight": "2.5",
        "limits": "5/1000000",
        "max_running": "3",
        "size": "9",
        "held_for": str(10 * SECOND),
        "reason": "unpaid",
    }
    await rig.engine.tenant("q", "@a", changes, by="ops", duration_us=60 * SECOND)
    wanted = (await rig.dump())["tenants"]
    await transfer.hand_over("@a")
    assert (await transfer.target.dump())["tenants"] == wanted
    await transfer.thaw("@a")
    assert "tenants" not in await rig.dump()
    assert (await transfer.target.dump())["tenants"] == wanted


async def test_claims_in_a_window_count_at_the_new_shard(rig: Rig, transfer: Transfer) -> None:
    await transfer.declare(tenant_limits=[Limit("2/min")])
    await rig.run("a0", Completed(), lane="@a")
    await rig.add("a1", "a2", lane="@a")
    wanted = (await rig.dump())[WINDOW]
    await transfer.move(["@a"], "a1", "a2")
    taken = await transfer.target.dump()
    assert taken[WINDOW] == wanted
    assert WINDOW in taken.mortal
    answer = await transfer.target.turn(10)
    assert [claim.id for claim in answer.claimed] == ["a1"]
    rig.clock.go(59)
    assert (await transfer.target.turn(10)).claimed == []
    rig.clock.go(1)
    assert [claim.id for claim in (await transfer.target.turn(10)).claimed][-1:] == ["a2"]
    await transfer.check()


async def test_a_limit_of_its_own_brings_its_own_claims(rig: Rig, transfer: Transfer) -> None:
    await transfer.declare(tenant_limits=[Limit("100/h")])
    await rig.engine.tenant("q", "@a", {"limits": f"1/{60 * SECOND}"}, by="ops")
    await rig.add("a1", "a2", lane="@a")
    await rig.turn(10)
    await transfer.hand_over("@a")
    await transfer.carry("a2")
    await transfer.thaw("@a")
    assert (await transfer.target.turn(10)).claimed == []


async def test_what_a_limit_has_learned_comes_with_it(rig: Rig, transfer: Transfer) -> None:
    await transfer.declare(tenant_limits=[Limit("10/min")], learning=True)
    await rig.add(*(f"a{n}" for n in range(20)), lane="@a")
    lease = await rig.claim()
    await rig.turn(0, ("a0", lease, Limited(SECOND, scope="tenant")))
    learned = (await rig.dump())["learned"]
    assert set(learned) == {WINDOW}
    await transfer.move(["@a"], *(f"a{n}" for n in range(20)))
    assert (await transfer.target.dump())["learned"] == learned
    assert "learned" not in await rig.dump()
    rig.clock.go(1)
    assert len((await transfer.target.turn(20)).claimed) == 6  # 7, less the one before


async def test_no_decision_of_an_operator_serves_it(transfer: Transfer) -> None:
    target = transfer.target
    await target.declare(tenant_limits=[Limit("1/h")])
    await transfer.hand_over("@a")
    await target.add("a", lane="@a")
    hold = {"held_for": str(SECOND), "reason": "unpaid"}
    await target.engine.tenant("q/1", "@a", hold, by="ops")
    assert (await target.turn(10)).claimed == []
    target.clock.go(2)
    assert (await target.turn(10, is_sweep=True)).claimed == []
    await target.engine.tenant("q/1", "@a", {"weight": "2"}, by="ops")
    await target.edit(tenant_limits="")
    assert (await target.turn(10, is_sweep=True)).claimed == []
    await transfer.thaw("@a")
    assert [claim.id for claim in (await target.turn(10)).claimed] == ["a"]


async def test_a_second_call_changes_nothing(rig: Rig, transfer: Transfer) -> None:
    await transfer.declare(tenant_limits=[Limit("2/min")])
    await rig.engine.tenant("q", "@a", {"weight": "2"}, by="ops")
    await rig.run("a", Completed(), lane="@a")
    await transfer.target.add("b", lane="@a")
    await transfer.hand_over("@a")
    await transfer.target.remember()
    await transfer.hand_over("@a")
    assert await transfer.target.changed() == {}


async def test_a_sealed_epoch_refuses(transfer: Transfer) -> None:
    target = transfer.target
    await transfer.moving.seal("q/1", 1)
    await target.remember()
    with pytest.raises(ShardsChanged):
        await transfer.moving.freeze_in("q/1", 1, "0", {"@a": b""})
    assert await target.is_untouched()
    await transfer.moving.freeze_in("q/1", 2, "0", {"@a": b""})
    assert (await target.dump())["moves"] == {"@a": "in 2"}
