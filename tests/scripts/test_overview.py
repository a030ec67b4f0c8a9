"""overview.lua"""

from __future__ import annotations

from faena.engine.calls.deadletter import Decision, DeskCalls
from faena.engine.overview import Hold, WorkerView
from faena.outcomes import Buried, Completed
from tests._support.rig import BOOM, LEASE, SECOND, T0, Rig


async def test_a_queue_at_one_instant(rig: Rig) -> None:
    await rig.declare(max_running=7)
    await rig.run("done", Completed())
    await rig.add("running", "first", "second")
    await rig.claim()
    await rig.add("delayed", delay=SECOND)
    await rig.engine.hold("q", "pause", None, "ops")
    await rig.turn(is_sweep=True, about="17 0.1.0 faena_0 slots=3 box")
    seen = await rig.engine.overview("q")
    assert (seen.queue, seen.at, seen.enqueued, seen.removed) == ("q", T0, 5, 0)
    assert seen.counts == {
        "ready": 2,
        "delayed": 1,
        "running": 1,
        "completed": 1,
        "dead": 0,
        "cancelled": 0,
        "blocked": 0,
    }
    assert seen.holds == (Hold("pause", None, "ops", T0),)
    assert seen.settings["max_running"] == "7"
    assert seen.dealt_with == {"retried": 0, "discarded": 0, "resolved": 0}
    until = int((await rig.dump())["workers"][0][1])
    assert until > T0
    assert seen.workers == (WorkerView("worker", T0, "box", 17, "0.1.0", 3, until),)


async def test_dead_jobs_that_somebody_has_dealt_with_are_counted_apart(rig: Rig) -> None:
    for job in "abcd":
        await rig.run(job, Buried(BOOM))
    calls, decision = DeskCalls(rig.engine), Decision("discard", "", "ana")
    await calls.dismiss("q", "discarded", decision, ["a"])
    await calls.dismiss("q", "resolved", decision, ["b"])
    await calls.retry_as_new("q", decision, 10, [("c", "e")], epoch=0)
    seen = await rig.engine.overview("q")
    assert (seen.counts["dead"], seen.counts["ready"]) == (1, 1)
    assert seen.dealt_with == {"retried": 1, "discarded": 1, "resolved": 1}


async def test_a_queue_that_is_not_there_is_empty(rig: Rig) -> None:
    seen = await rig.engine.overview("q")
    assert set(seen.counts.values()) == set(seen.dealt_with.values()) == {0}
    assert (seen.holds, seen.settings, seen.workers) == ((), {}, ())
    assert (seen.enqueued, seen.removed) == (0, 0)


async def test_a_worker_that_is_presumed_gone_is_not_shown(rig: Rig) -> None:
    await rig.turn(is_sweep=True)
    rig.clock.go(2 * LEASE / SECOND + 1)
    assert (await rig.engine.overview("q")).workers == ()
