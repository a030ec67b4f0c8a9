"""snapshot.lua"""

from __future__ import annotations

from typing import Any

import pytest

from faena.engine.calls.deadletter import Decision, DeskCalls
from faena.engine.calls.snapshot import read_shard
from faena.engine.overview import Hold, WorkerView
from faena.outcomes import Buried, Completed, Retried
from tests._support.rig import BOOM, SECOND, T0, Rig


async def test_a_shard_at_one_instant(rig: Rig) -> None:
    await rig.run("done", Completed())
    await rig.add("running", "first", "second")
    await rig.claim()
    await rig.add("delayed", delay=SECOND)
    await rig.engine.hold("q", "pause", None, "ops")
    await rig.turn(is_sweep=True, about="17 0.1.0 faena_0 slots=3 box")
    rig.clock.go(2)
    seen = await read_shard(rig.engine, "q")
    assert seen.now == rig.clock.now
    counts = {"ready": 2, "delayed": 1, "running": 1, "completed": 1}
    assert {name: number for name, number in seen.counts.items() if number} == counts
    assert seen.holds == (Hold("pause", None, "ops", T0),)
    (worker,) = seen.workers
    assert worker == WorkerView("worker", T0, "box", 17, "0.1.0", 3, worker.listed_until)
    totals = {"enqueued": 5, "claimed": 2, "completed": 1}
    assert {name: seen.totals[name] for name in totals} == totals
    assert seen.ready_since is not None
    assert 0 <= seen.ready_since - T0 < 10  # jobs have instants of their own


async def test_dead_jobs_that_somebody_has_dealt_with_do_not_count(rig: Rig) -> None:
    for job in "ab":
        await rig.run(job, Buried(BOOM))
        rig.clock.go(10)
    await DeskCalls(rig.engine).dismiss("q", "resolved", Decision("discard", "", "ana"), ["a"])
    seen = await read_shard(rig.engine, "q")
    assert (seen.counts["dead"], seen.totals["dead"]) == (1, 2)
    assert seen.now - (seen.dead_since or 0) == 10 * SECOND
    await DeskCalls(rig.engine).dismiss("q", "resolved", Decision("discard", "", "ana"), ["b"])
    assert (await read_shard(rig.engine, "q")).dead_since is None


@pytest.mark.parametrize(
    "facts", [{"priority": 1}, {"priority": 100}, {"lane": "@acme"}, {"lane": "@a", "chain": "t/a"}]
)
async def test_the_age_of_the_first_job_has_no_part_of_its_priority(
    rig: Rig, facts: dict[str, Any]
) -> None:
    await rig.add("a", **facts)
    rig.clock.go(90)
    since = (await read_shard(rig.engine, "q")).ready_since
    assert since is not None
    assert 0 <= since - T0 < 10


async def test_a_job_that_failed_is_ready_since_its_retry_was_due(rig: Rig) -> None:
    await rig.run("a", Retried(10 * SECOND, BOOM))
    rig.clock.go(15)
    await rig.turn(is_sweep=True)  # promotes it
    rig.clock.go(5)
    since = (await read_shard(rig.engine, "q")).ready_since
    assert since in {T0 + 10 * SECOND, T0 + 15 * SECOND}


async def test_a_queue_that_is_not_there_is_empty(rig: Rig) -> None:
    seen = await read_shard(rig.engine, "q")
    assert set(seen.counts.values()) == {0}
    assert (seen.holds, seen.workers, seen.totals, seen.ready_since) == ((), (), {}, None)


async def test_a_hold_that_is_over_is_none_though_nobody_has_swept_it_away(rig: Rig) -> None:
    await rig.engine.hold("q", "pause", 10 * SECOND, "ops")
    assert len((await read_shard(rig.engine, "q")).holds) == 1
    rig.clock.go(10)
    assert (await read_shard(rig.engine, "q")).holds == ()
    assert (await rig.engine.overview("q")).holds == ()
