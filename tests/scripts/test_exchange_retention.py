"""exchange.lua: finished jobs go by age, count and bytes."""

from __future__ import annotations

import pytest

from faena.options import Retain
from faena.outcomes import Buried, Cancelled, Completed, Outcome
from tests._support.rig import BOOM, Rig

ENDINGS: dict[str, Outcome] = {
    "completed": Completed(b"123"),
    "dead": Buried(BOOM),
    "cancelled": Cancelled(BOOM),
}


async def finish(rig: Rig, state: str, *ids: str, body: bytes = b"{}") -> None:
    """One after the other, a second apart."""
    for job in ids:
        rig.clock.go(1)
        await rig.run(job, ENDINGS[state], body=body)


async def kept(rig: Rig) -> list[str]:
    return sorted(await rig.states())


@pytest.mark.parametrize("state", ENDINGS)
async def test_a_job_goes_when_it_is_too_old_with_all_it_owns(rig: Rig, state: str) -> None:
    await rig.declare(retain=Retain(**{state: "10s"}))
    await finish(rig, state, "a", "b")
    rig.clock.go(9)
    await rig.turn()
    taken = await rig.dump()
    assert [job for job, _ in taken[state]] == ["b"]
    assert set(taken["specs"]) == {"b"}
    assert set(taken.get("results", {"b": 0})) == {"b"}
    assert set(taken.get("marks", {"b": 0})) == {"b"}
    assert "info:a" not in taken
    assert taken["clock"]["removed"] == 1


@pytest.mark.parametrize("state", ENDINGS)
async def test_the_oldest_go_when_there_are_too_many(rig: Rig, state: str) -> None:
    await rig.declare(retain=Retain(**{f"{state}_count": 2}))
    await finish(rig, state, "a", "b", "c", "d")
    rig.clock.go(1)
    await rig.turn()
    assert await kept(rig) == ["c", "d"]


async def test_too_many_completed_jobs_do_not_wait_for_the_second(rig: Rig) -> None:
    await rig.declare(retain=Retain(completed_count=1))
    await rig.add("a", "b")
    lease = await rig.claim(2)
    await rig.turn(0, ("a", lease, Completed()))
    await rig.turn(0, ("b", lease, Completed()))
    assert await kept(rig) == ["b"]


@pytest.mark.parametrize("state", ENDINGS)
async def test_the_oldest_go_until_the_bytes_fit(rig: Rig, state: str) -> None:
    await rig.declare(retain=Retain(**{f"{state}_bytes": 40}))
    await finish(rig, state, "a", "b", "c", "d", body=b"0123456789")
    rig.clock.go(1)
    await rig.turn()
    size = 14 + (3 if state == "completed" else 0)
    left = ["c", "d"]
    assert await kept(rig) == left
    assert (await rig.dump())["clock"][f"{state}_bytes"] == size * len(left)


async def test_no_more_goes_than_the_bytes_ask_for(rig: Rig) -> None:
    await rig.declare(retain=Retain(completed_bytes=100))
    await finish(rig, "completed", "a", "b", "c", body=b"0123456789")
    await finish(rig, "completed", "big", body=b"0" * 43)
    rig.clock.go(1)
    await rig.turn()
    assert await kept(rig) == ["b", "big", "c"]


async def test_a_bound_on_bytes_set_later_counts_from_then(rig: Rig) -> None:
    await rig.declare()
    await finish(rig, "completed", "old", body=b"0123456789")
    await rig.edit(completed_bytes=40)
    await finish(rig, "completed", "a", "b", body=b"0123456789")
    assert (await rig.dump())["clock"]["completed_bytes"] == 34
    await finish(rig, "completed", "c", body=b"0123456789")
    rig.clock.go(1)
    await rig.turn()
    assert await kept(rig) == ["b", "c"]
    assert (await rig.dump())["clock"]["completed_bytes"] == 34
    await rig.edit(completed_bytes="")
    assert "completed_bytes" not in (await rig.dump())["clock"]


async def test_a_job_sent_back_to_run_gives_its_bytes_back(rig: Rig) -> None:
    await rig.declare(retain=Retain(dead_bytes=1000))
    await finish(rig, "dead", "a", "b", body=b"0123456789")
    await rig.engine.rerun("q", ["a"])
    assert (await rig.dump())["clock"]["dead_bytes"] == 14


async def test_ages_are_looked_at_once_a_second_and_by_every_sweep(rig: Rig) -> None:
    await rig.declare(retain=Retain(completed="1s"))
    await finish(rig, "completed", "a")
    rig.clock.go(0.5)
    await rig.turn(is_sweep=True)
    rig.clock.go(0.5)
    await rig.turn()
    assert await kept(rig) == ["a"]
    await rig.turn(is_sweep=True)
    assert await kept(rig) == []


async def test_a_large_backlog_goes_in_slices_and_every_call_takes_one(rig: Rig) -> None:
    ids = [f"job{number:03d}" for number in range(250)]
    await rig.add(*ids)
    lease = await rig.claim(250)
    await rig.turn(0, *((job, lease, Completed()) for job in ids))
    await rig.edit(completed_us=1)
    rig.clock.go(2)
    for left in (200, 150, 100, 50, 0):
        await rig.turn()
        assert len(await kept(rig)) == left
