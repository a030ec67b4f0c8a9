"""overview.lua"""

from __future__ import annotations

from faena.engine.calls.deadletter import Decision, DeskCalls
from faena.engine.scripts import pairs
from faena.outcomes import Buried, Completed
from tests._support.rig import BOOM, LEASE, SECOND, T0, Rig, score


async def test_a_queue_at_one_instant(rig: Rig) -> None:
    await rig.declare(max_running=7)
    await rig.run("done", Completed())
    await rig.add("running", "first", "second")
    await rig.claim()
    await rig.add("delayed", delay=SECOND)
    await rig.engine.hold("q", "pause", None, "ops")
    await rig.turn(is_sweep=True, about="17 0.1.0 box")
    reply = await rig.engine.overview("q")
    now, numbers, holds, conf, clock, workers, oldest, dealt, about = reply
    assert now == T0
    assert pairs(numbers) == {
        "ready": 2,
        "delayed": 1,
        "running": 1,
        "completed": 1,
        "dead": 0,
        "cancelled": 0,
        "blocked": 0,
    }
    assert pairs(holds) == {"pause": f"0 ops {T0}".encode()}
    assert pairs(conf)["max_running"] == b"7"
    assert (pairs(clock)["enqueued"], pairs(workers)) == (
        b"5",
        {"worker": str(T0 + 2 * LEASE).encode()},
    )
    assert float(oldest) == score(T0 + 3)
    assert pairs(dealt) == {"retried": 0, "discarded": 0, "resolved": 0}
    assert pairs(about) == {"worker": f"{T0} 17 0.1.0 box".encode()}


async def test_dead_jobs_that_somebody_has_dealt_with_are_counted_apart(rig: Rig) -> None:
    for job in "abcd":
        await rig.run(job, Buried(BOOM))
    calls, decision = DeskCalls(rig.engine), Decision("discard", "", "ana")
    await calls.dismiss("q", "discarded", decision, ["a"])
    await calls.dismiss("q", "resolved", decision, ["b"])
    await calls.retry_as_new("q", decision, 10, [("c", "e")], epoch=0)
    reply = await rig.engine.overview("q")
    assert (pairs(reply[1])["dead"], pairs(reply[1])["ready"]) == (1, 1)
    assert pairs(reply[7]) == {"retried": 1, "discarded": 1, "resolved": 1}


async def test_a_queue_that_is_not_there_is_empty(rig: Rig) -> None:
    _, numbers, *rest = await rig.engine.overview("q")
    *rest, dealt, about = rest
    assert set(pairs(numbers).values()) == set(pairs(dealt).values()) == {0}
    assert rest == [[], [], [], [], b""]
    assert about == []


async def test_a_worker_that_is_presumed_gone_is_not_shown(rig: Rig) -> None:
    await rig.turn(is_sweep=True)
    rig.clock.go(2 * LEASE / SECOND + 1)
    assert (await rig.engine.overview("q"))[5] == []
