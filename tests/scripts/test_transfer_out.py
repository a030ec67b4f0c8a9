"""transfer_out.lua"""

from __future__ import annotations

from typing import Any

import pytest

from faena.errors import ShardsChanged
from faena.limits import Limit
from faena.options import Retain
from faena.outcomes import Buried, Completed, Retried
from tests._support.rig import BOOM, SECOND, Rig
from tests._support.transfer import Transfer

CHAIN: dict[str, Any] = {"lane": "@a", "chain": "t/a"}
LAST: dict[str, Any] = {"lane": "@a", "unique": "u", "mode": "last"}
LAST_OF_B: dict[str, Any] = LAST | {"lane": "@b"}


async def test_a_job_leaves_every_place_and_lies_in_the_outbox(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", lane="@a")
    await transfer.hand_over("@a")
    batch = await transfer.take_out("a")
    assert (batch.number, batch.looked) == (1, 1)
    taken = await rig.dump()
    assert taken["transfer_out"] == {"q/1": b"1 " + batch.jobs}
    gone = {"specs", "ready", "lane:@a", "lanes", "ring", "parked", "debts"}
    assert gone & set(taken) == set()
    clock = taken["clock"]
    assert (clock["laned"], clock["removed"], clock["moved_out"], clock["batches"]) == (0, 0, 1, 1)
    assert (await rig.events())[-1] == {"worker": "", "moved_out": "a"}
    await transfer.check()


async def test_a_batch_is_answered_again_until_it_is_said_to_have_arrived(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", "b", lane="@a")
    await transfer.hand_over("@a")
    batch = await transfer.take_out("a")
    await rig.remember()
    again = await transfer.take_out("b", arrived=0)
    assert again == (batch.number, batch.jobs, 0)  # "b" was not looked at
    assert await rig.is_untouched()
    after = await transfer.take_out("b", arrived=batch.number)
    assert (after.number, after.looked) == (2, 1)
    assert after.jobs != batch.jobs


async def test_nothing_is_left_once_the_last_one_has_arrived(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", lane="@a")
    await transfer.hand_over("@a")
    batch = await transfer.take_out("a")
    assert await transfer.take_out(arrived=batch.number) == (0, b"", 0)
    assert "transfer_out" not in await rig.dump()
    assert await transfer.take_out(arrived=batch.number) == (0, b"", 0)


async def test_each_shard_has_a_batch_of_its_own_under_way(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", "b", lane="@a")
    await transfer.hand_over("@a")
    first = await transfer.moving.take_out("q", "q/1", 0, ["a"])
    second = await transfer.moving.take_out("q", "q/2", 0, ["b"])
    assert (first.number, second.number) == (1, 2)
    assert set((await rig.dump())["transfer_out"]) == {"q/1", "q/2"}


@pytest.mark.parametrize("job", ["waits", "later", "runs"])
async def test_a_live_job_of_a_lane_that_stays_is_left_alone(
    rig: Rig, transfer: Transfer, job: str
) -> None:
    await rig.add("runs", lane="@a")
    await rig.claim()
    await rig.add("waits", lane="@a")
    await rig.add("later", lane="@a", delay=1000)
    await transfer.moving.freeze_in("q", 1, "0", {"@a": b""})  # it arrives here, rather
    await rig.remember()
    assert await transfer.take_out(job) == (0, b"", 1)
    assert await rig.is_untouched()


async def test_a_finished_job_leaves_though_nobody_has_noted_its_lane(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.run("a", Completed(b"1"), lane="@a")
    assert await transfer.carry("a") == 1
    assert await transfer.states() == ({}, {"a": "completed"})


async def test_jobs_without_a_lane_and_unknown_ones_are_passed_over(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.run("plain", Completed())
    await rig.remember()
    assert await transfer.take_out("plain", "nobody", "nobody") == (0, b"", 3)
    assert await rig.is_untouched()


async def test_one_that_runs_is_late_until_it_has_ended(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", lane="@a")
    lease = await rig.claim()
    await transfer.hand_over("@a")
    assert await transfer.take_out("a") == (0, b"", 1)
    assert (await rig.dump())["late"] == {"a": "@a"}
    await rig.turn(0, ("a", lease, Retried(5 * SECOND, BOOM)))
    assert await transfer.carry("a") == 1
    assert "late" not in await rig.dump()
    assert await transfer.states() == ({}, {"a": "delayed"})
    await transfer.check()


async def test_one_that_is_late_and_whose_lane_stays_is_not_waited_for(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", lane="@a")
    await rig.claim()
    await transfer.hand_over("@a")
    await transfer.take_out("a")
    await rig.engine.command("HDEL", "q", "moves", "@a")
    await transfer.take_out("a")
    assert "late" not in await rig.dump()


@pytest.mark.parametrize("ids", [("follower", "leader"), ("leader", "follower"), ("leader",)])
async def test_a_follower_leaves_with_the_job_it_waits_for(
    rig: Rig, transfer: Transfer, ids: tuple[str, ...]
) -> None:
    await rig.run("leader", Retried(5 * SECOND, BOOM), **LAST)
    await rig.add("follower", delay=60 * SECOND, **LAST)
    wanted = (await rig.dump())["blocked"]
    await transfer.move(["@a"], *ids)
    assert await transfer.states() == ({}, {"leader": "delayed", "follower": "blocked"})
    assert (await transfer.target.dump())["blocked"] == wanted
    assert "late" not in await rig.dump()
    await transfer.check()


async def test_a_follower_that_is_asked_alone_waits_for_it(rig: Rig, transfer: Transfer) -> None:
    await rig.run("leader", Retried(5 * SECOND, BOOM), **LAST)
    await rig.add("follower", **LAST)
    await transfer.hand_over("@a")
    assert await transfer.carry("follower") == 0
    assert (await rig.dump())["late"] == {"follower": "@a"}
    await transfer.check()
    assert await transfer.carry("leader") == 2
    assert "late" not in await rig.dump()


async def test_a_follower_of_another_lane_is_not_left_waiting_for_nobody(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.run("leader", Retried(5 * SECOND, BOOM), **LAST)
    await rig.add("follower", **LAST_OF_B)
    await transfer.hand_over("@a")
    await transfer.carry("leader")
    assert await transfer.states() == ({"follower": "ready"}, {"leader": "delayed"})
    assert (await rig.dump())["unique:last:u"] == "follower"
    assert (await transfer.target.dump())["unique:last:u"] == "leader"
    await transfer.check()


async def test_a_follower_does_not_wait_for_a_job_that_stays_and_may_stay_for_long(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.run("leader", Retried(5 * SECOND, BOOM), **LAST_OF_B)
    await rig.add("follower", **LAST)
    await transfer.move(["@a"], "follower")
    assert await transfer.states() == ({"leader": "delayed"}, {"follower": "ready"})
    await transfer.check()


async def test_it_waits_for_one_that_runs(rig: Rig, transfer: Transfer) -> None:
    await rig.add("leader", **LAST_OF_B)
    lease = await rig.claim()
    await rig.add("follower", **LAST)
    await transfer.hand_over("@a")
    assert await transfer.carry("follower") == 0
    await rig.turn(0, ("leader", lease, Completed()))
    assert await transfer.carry("follower") == 1
    assert await transfer.thaw("@a") == []
    await transfer.check()


async def test_a_job_that_was_run_again_after_lanes_were_noted_leaves_too(
    rig: Rig, transfer: Transfer
) -> None:
    for job in ("waits", "runs"):
        await rig.run(job, Buried(BOOM), lane=f"@{job}")
    await transfer.know_of_change()
    for job in ("runs", "waits"):
        await rig.engine.rerun("q", [job])
    lease = await rig.claim()
    assert await transfer.carry("waits", "runs", epoch=1) == 1
    assert await transfer.states() == ({"runs": "running"}, {"waits": "ready"})
    assert (await rig.dump())["moves"] == {"@waits": "out 1", "@runs": "out 1"}
    assert await transfer.thaw("@waits", "@runs") == ["@waits", "@runs"]
    await rig.turn(0, ("runs", lease, Completed()))
    assert await transfer.carry("runs", epoch=1) == 1
    assert await transfer.thaw("@waits", "@runs") == []
    assert await transfer.states() == ({}, {"waits": "ready", "runs": "completed"})
    await transfer.check()


async def test_a_change_that_is_over_takes_nothing_out(rig: Rig, transfer: Transfer) -> None:
    await rig.run("a", Completed(), lane="@a")
    await transfer.know_of_change(epoch=3)
    await rig.remember()
    for epoch in (2, 4):
        with pytest.raises(ShardsChanged):
            await transfer.take_out("a", epoch=epoch)
    assert await rig.is_untouched()
    assert await transfer.carry("a", epoch=3) == 1


async def test_when_a_head_leaves_the_next_one_has_the_turn_and_is_not_served(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", "b", "c", **CHAIN)
    await transfer.hand_over("@a")
    await transfer.carry("a")
    assert (await rig.states()) == {"b": "ready", "c": "blocked"}
    assert (await rig.turn(9, is_sweep=True)).claimed == []
    await transfer.check()


async def test_a_large_batch_is_cut_and_says_how_far_it_came(rig: Rig, transfer: Transfer) -> None:
    body = b"x" * 1_500_000
    for number in range(4):
        await rig.add(f"j{number}", lane="@a", body=body)
    await transfer.hand_over("@a")
    batch = await transfer.take_out("j0", "j1", "j2", "j3")
    assert batch.looked == 2
    assert await transfer.take_in(batch) == 2
    assert (await transfer.take_out("j2", "j3")).looked == 2


async def test_one_job_beyond_the_bound_travels_alone(rig: Rig, transfer: Transfer) -> None:
    await rig.add("huge", lane="@a", body=b"x" * 5_000_000)
    await rig.add("small", lane="@a")
    await transfer.hand_over("@a")
    assert (await transfer.take_out("huge", "small")).looked == 1


async def test_numbers_go_on_over_a_shard_that_was_retired(rig: Rig, transfer: Transfer) -> None:
    for epoch in (1, 2):
        await rig.declare()
        await transfer.moving.set_standing("q", {"epoch": str(epoch)})
        await rig.engine.enqueue(
            "q", "p", f"c{epoch}", [(f"j{epoch}", b"010 lane=@a\n")], epoch=epoch
        )
        await transfer.hand_over("@a", epoch=epoch)
        assert await transfer.carry(f"j{epoch}") == 1
        assert (await transfer.target.dump())["transfer_in"] == {"q": str(epoch * 100_000_000 + 1)}
        await transfer.thaw("@a", epoch=epoch)
        await rig.obliterate()
    assert await transfer.target.states() == {"j1": "ready", "j2": "ready"}


async def test_bytes_that_finished_jobs_keep_leave_and_come_with_them(
    rig: Rig, transfer: Transfer
) -> None:
    await transfer.declare(retain=Retain(completed_bytes=10_000, dead_bytes=10_000))
    rig.clock.go(1)
    await rig.run("done", Completed(b"12345"), lane="@a")
    await rig.run("dead", Buried(BOOM), lane="@a")
    kept = [(await rig.dump())["clock"][f"{state}_bytes"] for state in ("completed", "dead")]
    assert min(kept) > 0
    await transfer.carry("done", "dead")
    left, come = (await rig.dump())["clock"], (await transfer.target.dump())["clock"]
    assert [left["completed_bytes"], left["dead_bytes"]] == [0, 0]
    assert [come["completed_bytes"], come["dead_bytes"]] == kept
    await transfer.target.engine.clean("q/1", "completed", 0, 10)
    assert (await transfer.target.dump())["clock"]["completed_bytes"] == 0


async def test_what_finished_before_its_bytes_were_counted_is_counted_at_neither_end(
    rig: Rig, transfer: Transfer
) -> None:
    await transfer.declare()
    await rig.run("done", Completed(b"12345"), lane="@a")
    rig.clock.go(1)
    for shard in (rig, transfer.target):
        await shard.edit(completed_bytes=10_000)
    await transfer.carry("done")
    for shard in (rig, transfer.target):
        assert (await shard.dump())["clock"].get("completed_bytes", 0) == 0


async def test_a_waiter_is_told_that_a_job_is_no_longer_here(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", lane="@a")
    await rig.engine.await_job("q", "a")
    await transfer.hand_over("@a")
    await transfer.carry("a")
    assert "waiters" not in await rig.dump()


async def test_a_spent_lane_leaves_no_trace_but_its_debt(rig: Rig, transfer: Transfer) -> None:
    await transfer.declare(tenant_limits=[Limit("1/min")])
    await rig.add("a", "b", lane="@a")
    lease = await rig.claim()
    await rig.turn(1, ("a", lease, Completed()))
    await transfer.move(["@a"], "a", "b")
    left = set(await rig.dump()) - {"conf", "clock", "events", "wake"}
    kinds = {name.partition(":")[0] for name in left}
    assert kinds == {"call", "debts", "shares", "stats", "totals"}
    await transfer.check()
