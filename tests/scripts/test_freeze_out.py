"""freeze_out.lua"""

from __future__ import annotations

import pytest

from faena.errors import ShardsChanged
from faena.limits import Limit
from faena.outcomes import Completed, Limited
from tests._support.rig import SECOND, T0, Rig
from tests._support.transfer import Transfer


async def test_a_lane_with_ready_jobs_is_served_no_more(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", lane="@a")
    await rig.add("b", lane="@b")
    stamp, snapshots = await transfer.moving.freeze_out("q", 1, ["@a"])
    assert (stamp, snapshots) == (str(T0 + 2), [b""])
    taken = await rig.dump()
    assert taken["moves"] == {"@a": "out 1"}
    assert taken["parked"] == [("@a", 1e18)]
    assert taken["clock"]["moving"] == 1
    assert [claim.id for claim in (await rig.turn(10)).claimed] == ["b"]


async def test_a_lane_without_jobs_is_noted_all_the_same(rig: Rig, transfer: Transfer) -> None:
    await transfer.moving.freeze_out("q", 1, ["@a", "@b"])
    assert await rig.dump() == {
        "moves": {"@a": "out 1", "@b": "out 1"},
        "clock": {"moving": 2},
    }


async def test_a_second_call_answers_the_same_and_changes_nothing(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.declare(tenant_limits=[Limit("1/min")])
    await rig.engine.tenant("q", "@a", {"weight": "3"}, by="ops")
    await rig.run("a", Completed(), lane="@a")
    await rig.add("b", lane="@a")
    stamp, (packed, nothing) = await transfer.moving.freeze_out("q", 1, ["@a", "@b"])
    await rig.remember()
    again = await transfer.moving.freeze_out("q", 1, ["@a", "@b"])
    of_real_time = 4  # the last bytes tell how long the window has to live
    assert (again[0], again[1][1]) == (stamp, nothing)
    assert again[1][0][:-of_real_time] == packed[:-of_real_time]
    assert await rig.changed() == {}


async def test_what_a_lane_owes_stays_with_the_shard(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a1", "a2", lane="@a")
    await rig.add("b1", "b2", lane="@b")
    await rig.claim()
    await transfer.moving.freeze_out("q", 1, ["@a"])
    taken = await rig.dump()
    assert taken["debts"] == [("@a", 1.0)]
    assert [lane for lane, _ in taken["ring"]] == ["@b"]


async def test_the_override_of_a_tenant_is_told(rig: Rig, transfer: Transfer) -> None:
    await rig.declare()
    changes = {"weight": "2.5", "limits": "5/1000000", "max_running": "3"}
    await rig.engine.tenant("q", "@a", changes, by="ops", duration_us=60 * SECOND)
    _, (packed, nothing) = await transfer.moving.freeze_out("q", 1, ["@a", "@b"])
    assert b"5/1000000" in packed
    assert nothing == b""
    assert (await rig.dump())["tenants"]["@a"]["weight"] == 2.5  # until the lane is struck off


async def test_an_override_that_has_ended_is_not(rig: Rig, transfer: Transfer) -> None:
    await rig.declare()
    await rig.engine.tenant("q", "@a", {"weight": "2"}, by="ops", duration_us=SECOND)
    rig.clock.go(1)
    assert await transfer.moving.freeze_out("q", 1, ["@a"]) == ("0", [b""])


async def test_the_queues_windows_go_along_with_an_override_that_will_end(
    rig: Rig, transfer: Transfer
) -> None:
    await transfer.declare(tenant_limits=[Limit("2/h")])
    for job in ("a", "b"):
        await rig.run(job, Completed(), lane="@a")
    override = {"limits": f"5/{SECOND}"}
    await rig.engine.tenant("q", "@a", override, by="ops", duration_us=10 * SECOND)
    await rig.add("c", "d", lane="@a")
    await transfer.move(["@a"], "c", "d")
    rig.clock.go(10)
    assert (await transfer.target.turn(9)).claimed == []
    rig.clock.go(3600)
    assert len((await transfer.target.turn(9)).claimed) == 2


async def test_a_sealed_epoch_refuses_and_a_later_one_does_not(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", lane="@a")
    await transfer.moving.seal("q", 2)
    await rig.remember()
    for epoch in (1, 2):
        with pytest.raises(ShardsChanged, match="has advanced the change"):
            await transfer.moving.freeze_out("q", epoch, ["@a"])
    assert await rig.is_untouched()
    await transfer.moving.freeze_out("q", 3, ["@a"])
    assert (await rig.dump())["moves"] == {"@a": "out 3"}


async def test_the_time_for_which_a_lane_was_throttled_ends_when_it_leaves(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.declare(tenant_limits=[Limit("1/h")])
    await rig.add("a", "b", lane="@a")
    await rig.turn(10)
    await rig.turn(10)
    assert (await rig.dump())["throttled"] == {"@a": str(T0)}
    rig.clock.go(7)
    await transfer.moving.freeze_out("q", 1, ["@a"])
    assert "throttled" not in await rig.dump()
    assert (await rig.counters())["throttled_us"] == 7 * SECOND
    rig.clock.go(7)  # to be on the way is not to be throttled
    await transfer.carry("b")
    assert (await rig.counters())["throttled_us"] == 7 * SECOND


@pytest.mark.parametrize("is_sweep", [False, True])
async def test_neither_a_sweep_nor_time_serves_it(
    rig: Rig, transfer: Transfer, *, is_sweep: bool
) -> None:
    await rig.declare(tenant_limits=[Limit("1/s")])
    await rig.add("a", "b", lane="@a")
    await rig.turn(10)
    await rig.turn(10)
    await transfer.moving.freeze_out("q", 1, ["@a"])
    rig.clock.go(3600)
    answer = await rig.turn(10, is_sweep=is_sweep)
    assert "b" not in {claim.id for claim in answer.claimed}
    assert (await rig.dump())["parked"] == [("@a", 1e18)]


async def test_no_ending_of_a_job_that_still_runs_serves_it(rig: Rig, transfer: Transfer) -> None:
    await rig.declare(tenant_max_running=2)
    await rig.add("a", "b", "c", lane="@a")
    lease = await rig.claim(2)
    await transfer.moving.freeze_out("q", 1, ["@a"])
    answer = await rig.turn(10, ("a", lease, Completed()))
    assert (answer.claimed, answer.more) == ([], False)
    answer = await rig.turn(10, ("b", lease, Limited(SECOND, scope="tenant")))
    assert answer.claimed == []
    rig.clock.go(2)
    assert (await rig.turn(10, is_sweep=True)).claimed == []


async def test_no_decision_of_an_operator_serves_it(rig: Rig, transfer: Transfer) -> None:
    await rig.declare(tenant_limits=[Limit("1/h")])
    await rig.add("a", "b", lane="@a")
    await rig.turn(10)
    await transfer.moving.freeze_out("q", 1, ["@a"])
    with pytest.raises(ShardsChanged):
        await rig.engine.tenant("q", "@a", {"limits": "9/1000000"}, by="ops")
    await rig.edit(tenant_limits="")
    assert (await rig.turn(10, is_sweep=True)).claimed == []
    await rig.add("c", lane="@a")
    await rig.add("d", lane="@d")
    assert [claim.id for claim in (await rig.turn(10)).claimed] == ["d"]
