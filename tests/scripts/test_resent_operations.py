"""rerun.lua, promote.lua, change.lua and remove.lua, sent again because their reply was lost.

Between the two the job may have run: the second must not make it run once more.
"""

from __future__ import annotations

from faena.options import Retain
from faena.outcomes import Buried, Completed
from tests._support.faulty_wire import Copy, FaultyWire
from tests._support.rig import BOOM, SECOND, Rig


async def finish(rig: Rig, job: str) -> None:
    lease = await rig.claim()
    await rig.turn(0, (job, lease, Completed()))


def kept(faulty: FaultyWire) -> Copy:
    assert faulty.copy is not None
    return faulty.copy


async def test_a_job_rerun_once_runs_once_more(rig: Rig, faulty: FaultyWire) -> None:
    await rig.run("a", Buried(BOOM))
    faulty.fault = "kept"
    assert await rig.engine.rerun("q", ["a", "never"]) == ["ready", "unknown"]
    await finish(rig, "a")
    await rig.remember()
    assert await faulty.deliver(kept(faulty), rig.clock.now) == [b"ready", b"unknown"]
    assert await rig.is_untouched()


async def test_a_job_promoted_once_is_not_promoted_from_its_next_delay(
    rig: Rig, faulty: FaultyWire
) -> None:
    await rig.add("a", delay=SECOND)
    faulty.fault = "kept"
    assert await rig.engine.promote("q", ["a"]) == ["promoted"]
    await rig.engine.change("q", "a", delay_us=9 * SECOND)
    await rig.remember()
    assert await faulty.deliver(kept(faulty), rig.clock.now) == [b"promoted"]
    assert await rig.is_untouched()


async def test_a_job_changed_once_is_where_a_later_change_put_it(
    rig: Rig, faulty: FaultyWire
) -> None:
    await rig.add("a")
    faulty.fault = "kept"
    assert await rig.engine.change("q", "a", delay_us=SECOND, priority=3) == "delayed"
    await rig.engine.change("q", "a", delay_us=0, priority=7)
    await rig.remember()
    assert await faulty.deliver(kept(faulty), rig.clock.now) == b"delayed"
    assert await rig.is_untouched()


async def test_what_changed_nothing_leaves_no_record_and_the_others_end_by_themselves(
    rig: Rig,
) -> None:
    await rig.add("a", delay=SECOND)
    before = set(await rig.dump())
    await rig.engine.rerun("q", ["a"])
    await rig.engine.promote("q", ["never"])
    await rig.engine.change("q", "never", priority=1)
    assert set(await rig.dump()) == before
    await rig.engine.promote("q", ["a"])
    taken = await rig.dump()
    (record,) = (name for name in set(taken) - before if name.startswith("call:"))
    assert record in taken.mortal
    assert 500 < await rig.engine.command("TTL", "q", record) <= 600


async def test_any_number_of_jobs_may_be_named(rig: Rig) -> None:
    await rig.declare(retain=Retain(cancelled_count=5000))
    jobs = [f"job{number:04d}" for number in range(4500)]
    for start in range(0, len(jobs), 1000):
        await rig.add(*jobs[start : start + 1000], delay=SECOND)
    assert await rig.engine.promote("q", jobs) == ["promoted"] * len(jobs)
    assert await rig.engine.cancel("q", jobs) == ["cancelled"] * len(jobs)
    assert await rig.engine.rerun("q", jobs) == ["ready"] * len(jobs)
    looks = await rig.engine.look("q", [*jobs, "never"])
    assert [look and look.state for look in looks] == ["ready"] * len(jobs) + [None]


async def test_a_job_removed_once_is_told_so_and_its_successor_of_that_id_stays(
    rig: Rig, faulty: FaultyWire
) -> None:
    await rig.add("a")
    faulty.fault = "kept"
    assert await rig.engine.remove("q", ["a", "never"]) == ["removed", "unknown"]
    await rig.add("a")
    await rig.remember()
    assert await faulty.deliver(kept(faulty), rig.clock.now) == [b"removed", b"unknown"]
    assert await rig.is_untouched()
