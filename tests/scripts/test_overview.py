"""overview.lua"""

from __future__ import annotations

from faena.engine.scripts import pairs
from faena.outcomes import Completed
from tests._support.rig import LEASE, SECOND, T0, Rig, score


async def test_a_queue_at_one_instant(rig: Rig) -> None:
    await rig.declare(max_running=7)
    await rig.run("done", Completed())
    await rig.add("running", "first", "second")
    await rig.claim()
    await rig.add("delayed", delay=SECOND)
    await rig.engine.hold("q", "pause", None, "ops")
    await rig.turn(is_sweep=True)
    now, numbers, holds, conf, clock, workers, oldest = await rig.engine.overview("q")
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


async def test_a_queue_that_is_not_there_is_empty(rig: Rig) -> None:
    _, numbers, *rest = await rig.engine.overview("q")
    assert set(pairs(numbers).values()) == {0}
    assert rest == [[], [], [], [], b""]


async def test_a_worker_that_is_presumed_gone_is_not_shown(rig: Rig) -> None:
    await rig.turn(is_sweep=True)
    rig.clock.go(2 * LEASE / SECOND + 1)
    assert (await rig.engine.overview("q"))[5] == []
