"""transfer_in.lua: jobs come as they left."""

from __future__ import annotations

from typing import Any

import pytest

from faena.limits import Limit
from faena.outcomes import Buried, Cancelled, Completed, Retried, Snoozed
from tests._support.dump import Dump
from tests._support.rig import BOOM, SECOND, T0, Rig
from tests._support.transfer import Transfer

A: dict[str, Any] = {"lane": "@a"}


def of_job(taken: Dump, job: str) -> dict[str, Any]:
    """Every place that names a job, and how."""
    found: dict[str, Any] = {}
    for name, content in taken.items():
        if taken.types[name] == "hash" and job in content:
            found[name] = content[job]
        elif taken.types[name] == "zset" and job in dict(content):
            found[name] = dict(content)[job]
        elif name == f"info:{job}" or (name.startswith("unique:") and content.startswith(job)):
            found[name] = content
    return found


async def make(rig: Rig, state: str) -> None:
    """A job `j` in a state, with whatever it may own there."""
    match state:
        case "ready":
            await rig.add("j", priority=3, **A)
            await rig.engine.change("q", "j", priority=7)
        case "delayed":
            await rig.add("j", delay=60 * SECOND, **A)
        case "retried":
            await rig.run("j", Retried(60 * SECOND, BOOM), **A)
        case "snoozed":
            await rig.run("j", Snoozed(60 * SECOND), **A)
        case "completed":
            await rig.run("j", Completed(b"\x00\xff result"), **A)
        case "dead":
            await rig.run("j", Buried(BOOM), **A)
        case "cancelled":
            await rig.add("j", **A)
            lease = await rig.claim()
            await rig.engine.note("q", "j", lease, progress=b"{}", lines=["so far"])
            await rig.turn(0, ("j", lease, Cancelled(BOOM)))
        case _:
            raise ValueError(state)


STATES = ["ready", "delayed", "retried", "snoozed", "completed", "dead", "cancelled"]


@pytest.mark.parametrize("state", STATES)
async def test_a_job_comes_with_everything_that_is_known_of_it(
    rig: Rig, transfer: Transfer, state: str
) -> None:
    await make(rig, state)
    raw = [await rig.engine.command("HGET", "q", name, "j") for name in ("marks", "specs")]
    wanted = of_job(await rig.dump(), "j")
    await transfer.move(["@a"], "j")
    left, come = await rig.dump(), await transfer.target.dump()
    assert of_job(left, "j") == {}
    assert of_job(come, "j") == wanted
    for name, before in zip(("marks", "specs"), raw, strict=True):
        assert await rig.engine.command("HGET", "q/1", name, "j") == before
    assert come["clock"]["moved_in"] == left["clock"]["moved_out"] == 1
    await transfer.check()


async def test_ready_and_delayed_jobs_are_live_and_finished_ones_are_not(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.run("done", Completed(), **A)
    await rig.add("ready", **A)
    await rig.add("later", delay=SECOND, **A)
    await transfer.move(["@a"], "done", "ready", "later")
    come = await transfer.target.dump()
    assert come["lanes"] == {"@a": "2000000"}
    assert come["clock"]["laned"] == 1
    assert come["wake"]
    assert (await transfer.target.events())[0] == {"worker": "", "moved_in": "done ready later"}
    rig.clock.go(1)
    assert {claim.id for claim in (await transfer.target.turn(9)).claimed} == {"ready", "later"}
    await transfer.check()


async def test_attempts_and_errors_go_on(rig: Rig, transfer: Transfer) -> None:
    await rig.run("j", Retried(SECOND, BOOM), **A)
    await transfer.move(["@a"], "j")
    rig.clock.go(1)
    (claim,) = (await transfer.target.turn(1)).claimed
    assert (claim.id, claim.attempts) == ("j", 1)
    await transfer.target.turn(0, ("j", claim.lease, Buried(BOOM)))
    come = await transfer.target.dump()
    assert come["info:j"]["errors"] == "2"
    assert come["marks"]["j"]["a"] == 2


async def test_a_batch_comes_once(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", "b", **A)
    await transfer.hand_over("@a")
    batch = await transfer.take_out("a", "b")
    assert await transfer.take_in(batch) == 2
    await transfer.target.remember()
    assert await transfer.take_in(batch) == 0
    assert await transfer.target.is_untouched()


async def test_a_batch_that_came_and_has_run_does_not_come_again(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", **A)
    await transfer.hand_over("@a")
    batch = await transfer.take_out("a")
    await transfer.take_in(batch)
    await transfer.moving.thaw("q/1", "in", 1, ["@a"])
    lease = await transfer.target.claim()
    await transfer.target.turn(0, ("a", lease, Completed()))
    await transfer.target.engine.clean("q/1", "completed", 0, 9)
    again = await transfer.take_out(arrived=0)
    assert again.jobs == batch.jobs
    assert await transfer.take_in(again) == 0
    assert await transfer.target.states() == {}


async def test_batches_of_two_shards_are_counted_apart(rig: Rig, transfer: Transfer) -> None:
    await rig.add("a", "b", **A)
    await transfer.hand_over("@a")
    first = await transfer.take_out("a")
    second = await transfer.take_out("b", arrived=first.number)
    assert await transfer.moving.take_in("q/1", "q", second) == 1
    assert await transfer.moving.take_in("q/1", "q/2", first) == 1
    assert await transfer.moving.take_in("q/1", "q", first) == 0
    assert (await transfer.target.dump())["transfer_in"] == {"q": "2", "q/2": "1"}


async def test_a_batch_of_an_earlier_change_has_been_here(rig: Rig, transfer: Transfer) -> None:
    await rig.run("a", Completed(), **A)
    await transfer.know_of_change(epoch=1)
    batch = await transfer.take_out("a", epoch=1)
    assert await transfer.take_in(batch) == 1
    await transfer.target.obliterate()  # and is made again
    await transfer.know_of_change(epoch=2)
    assert await transfer.take_in(batch) == 0
    assert await transfer.target.states() == {}


async def test_an_id_that_is_there_already_is_not_written_over(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", "b", body=b"old", **A)
    await transfer.target.add("a", body=b"new", lane="@x")
    await transfer.hand_over("@a")
    batch = await transfer.take_out("a", "b")
    assert await transfer.take_in(batch) == 1
    come = await transfer.target.dump()
    assert come["specs"]["a"].endswith(b"new")
    assert come["lanes"] == {"@a": "1000000", "@x": "1000000"}
    await transfer.check()


async def test_a_shard_without_settings_is_declared_before_anything_comes(
    rig: Rig, transfer: Transfer
) -> None:
    await rig.add("a", **A)
    await transfer.hand_over("@a")
    batch = await transfer.take_out("a")
    named = {"shard": "q", "number": batch.number, "jobs": batch.jobs}
    assert await rig.engine.ask("transfer_in", "q/1", **named) == [b"UNCONFIGURED"]
    assert "specs" not in await transfer.target.dump()
    assert await transfer.take_in(batch) == 1


async def test_nobody_is_served_at_either_end_on_the_way(rig: Rig, transfer: Transfer) -> None:
    await transfer.declare(tenant_limits=[Limit("100/s")], tenant_max_running=5)
    await rig.add("a1", "a2", "a3", **A)
    await rig.add("a4", delay=SECOND, **A)
    await transfer.hand_over("@a")
    shards = (rig, transfer.target)
    for step in (["a1"], ["a2", "a4"], ["a3"]):
        await transfer.carry(*step)
        rig.clock.go(2)
        await transfer.target.add(f"new{step[0]}", **A)
        for shard in shards:
            assert (await shard.turn(9, is_sweep=True)).claimed == []
            assert (await shard.dump()).get("ring") is None
        await transfer.check()
    assert await transfer.thaw("@a") == []
    assert len((await transfer.target.turn(9)).claimed) == 5
    assert (await rig.turn(9)).claimed == []


async def test_the_order_of_a_lane_is_that_of_the_old_shard(rig: Rig, transfer: Transfer) -> None:
    await rig.add("slow", priority=50, **A)
    await rig.add("fast", priority=1, **A)
    await rig.add("usual", **A)
    await transfer.hand_over("@a")
    await transfer.target.add("new", **A)
    for job in ("usual", "slow", "fast"):
        await transfer.carry(job)
    await transfer.thaw("@a")
    claimed = (await transfer.target.turn(9)).claimed
    assert [claim.id for claim in claimed] == ["fast", "usual", "new", "slow"]
    assert claimed[0].score == T0 + 2 + 300 * SECOND


async def test_there_and_back_again(rig: Rig, transfer: Transfer) -> None:
    await rig.run("done", Completed(b"1"), **A)
    await rig.add("a", "b", lane="@a", chain="t/a")
    await rig.add("late", delay=SECOND, **A)
    wanted = {job: of_job(await rig.dump(), job) for job in ("done", "a", "b", "late")}
    await transfer.move(["@a"], *wanted)
    back = Transfer(transfer.target, "q")
    await back.hand_over("@a", epoch=2)
    await back.carry(*wanted)
    assert await back.thaw("@a", epoch=2) == []
    found = await rig.dump()
    assert {job: of_job(found, job) for job in wanted} == wanted
    await transfer.check()
