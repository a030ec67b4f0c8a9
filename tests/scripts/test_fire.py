"""fire.lua: a schedule's job and its next instant, in one step and once."""

from __future__ import annotations

import asyncio

import pytest

from faena.engine.calls.scheduling import Change, Firing
from faena.errors import ShardsChanged
from faena.options import Backpressure
from faena.outcomes import Completed
from tests._support.faulty_wire import FaultyWire
from tests._support.rig import KEEP_NONE, SECOND, T0, Rig, score
from tests._support.schedules import NEW, OLD, firing, plant, shoot, version_of

CHANGE = Change(OLD, NEW, b"[]", T0 + SECOND)
LIVE = {"unique": "u", "mode": "live"}


async def test_the_job_is_taken_in_and_the_schedule_moves_on(rig: Rig) -> None:
    await rig.declare()
    await plant(rig)
    await rig.remember()
    assert (await shoot(rig, firing(), CHANGE)).outcome == "CREATED"
    assert await rig.changed() == {
        "clock": {"enqueued": 1, "stamp": T0 + 1},
        "ready": [("s@1", score(T0 + 1))],
        "schedule_due": [("s", T0 + SECOND)],
        "schedules": {"s": f"{NEW}\n[]"},
        "specs": {"s@1": b"010\n{}"},
        "wake": [("work", 0.0)],
    }
    assert await rig.events() == [{"worker": "", "enqueued": "s@1", "schedule_fired": "s@1"}]
    assert (await rig.counters())["schedule_fired"] == 1


async def test_a_queue_that_was_never_declared_is(rig: Rig) -> None:
    await plant(rig)
    assert (await shoot(rig, firing(), CHANGE)).outcome == "CREATED"


async def test_a_job_may_be_delayed_and_stand_in_a_lane(rig: Rig) -> None:
    await plant(rig)
    await shoot(rig, firing(delay=5 * SECOND, lane="@a"), CHANGE)
    taken = await rig.dump()
    assert taken["delayed"] == [("s@1", T0 + 5 * SECOND)]
    assert taken["lanes"] == {"@a": "1000000"}


async def test_whoever_has_read_another_version_changes_nothing(rig: Rig) -> None:
    await plant(rig, version=NEW)
    await rig.declare()
    await rig.remember()
    assert (await shoot(rig, firing(), CHANGE)).outcome == "STALE"
    assert await rig.is_untouched()


async def test_of_many_at_once_one_fires(rig: Rig) -> None:
    await plant(rig)
    changes = [Change.of(OLD, b"[]", T0 + SECOND) for _ in range(20)]
    fired = await asyncio.gather(*(shoot(rig, firing(), one) for one in changes))
    assert sorted(one.outcome for one in fired) == ["CREATED"] + ["STALE"] * 19
    assert await rig.states() == {"s@1": "ready"}


@pytest.mark.parametrize("change", [CHANGE, None])
async def test_a_call_sent_again_gets_its_answer_again(
    rig: Rig, faulty: FaultyWire, change: Change | None
) -> None:
    await rig.declare(retain=KEEP_NONE)
    await plant(rig)
    faulty.fault = "kept"
    await shoot(rig, firing(), change)
    lease = await rig.claim()
    await rig.turn(0, ("s@1", lease, Completed()))  # and nothing is left of the job
    await rig.remember()
    assert faulty.copy is not None
    assert await faulty.deliver(faulty.copy, rig.clock.now) == [b"CREATED"]
    assert await rig.is_untouched()


async def test_an_instant_without_a_job_moves_on_and_tells_what_was_missed(rig: Rig) -> None:
    await rig.declare()
    await plant(rig)
    await rig.remember()
    missed = Firing("s", 0, "s@0", b"", ["s@1", "s@2"], 7)
    assert (await shoot(rig, missed, CHANGE)).outcome == "NOTHING"
    assert set(await rig.changed()) == {"schedules", "schedule_due"}
    assert await rig.events() == [{"worker": "", "schedule_missed": "s@1 s@2"}]
    assert (await rig.counters())["schedule_missed"] == 7


async def test_an_id_that_is_there_is_not_taken_in_again(rig: Rig) -> None:
    await plant(rig)
    await rig.add("s@1", body=b"other")
    assert (await shoot(rig, firing(), CHANGE)).outcome == "DUPLICATE"
    assert (await rig.dump())["specs"] == {"s@1": b"010\nother"}
    assert await version_of(rig) == NEW


async def test_a_job_that_may_not_overlap_is_passed_over_while_another_lives(rig: Rig) -> None:
    await plant(rig)
    await rig.add("before", **LIVE)
    assert (await shoot(rig, firing(**LIVE), CHANGE)).outcome == "SKIPPED"
    assert await rig.states() == {"before": "ready"}
    assert (await rig.events())[-1] == {"worker": "", "schedule_skipped": "s@1"}
    assert await version_of(rig) == NEW


async def test_one_job_waits_behind_the_one_that_runs(rig: Rig) -> None:
    last = {"unique": "u", "mode": "last"}
    await plant(rig)
    await rig.add("before", **last)
    await rig.claim()
    assert (await shoot(rig, firing(**last), CHANGE)).outcome == "CREATED"
    again = Change.of(NEW, b"[]", T0 + 2 * SECOND)
    assert (await shoot(rig, firing(T0 + 1, job="s@2", **last), again)).outcome == "CREATED"
    assert await rig.states() == {"before": "running", "s@2": "blocked"}
    replacing = {"enqueued": "s@2", "replaced": "s@1", "schedule_fired": "s@2"}
    assert (await rig.events())[-1] == {"worker": "", **replacing}


async def test_a_full_queue_refuses_and_nothing_moves_on(rig: Rig) -> None:
    await rig.declare(backpressure=Backpressure(soft=1, hard=2, max_delay="3s"))
    await plant(rig)
    await rig.add("a", "b")
    await rig.remember()
    assert await shoot(rig, firing(), CHANGE) == ("OVERLOADED", 3 * SECOND)
    assert await rig.changed() == {}
    assert (await rig.events())[-1] == {"worker": "", "schedule_refused": "s@1"}
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Completed()))
    assert (await shoot(rig, firing(), CHANGE)).outcome == "CREATED"


# -- where the record is at another shard ----------------------------------------------------------


async def test_a_shard_takes_an_instant_in_once(rig: Rig) -> None:
    await rig.declare(retain=KEEP_NONE)
    assert (await shoot(rig, firing(T0), None)).outcome == "CREATED"
    lease = await rig.claim()
    await rig.turn(0, ("s@1", lease, Completed()))  # and nothing is left of the job
    await rig.remember()
    for instant in (T0, T0 - 1):
        assert (await shoot(rig, firing(instant), None)).outcome == "TAKEN"
    assert await rig.is_untouched()
    assert (await shoot(rig, firing(T0 + 1, job="s@2"), None)).outcome == "CREATED"
    assert (await rig.dump())["fired"] == {"s": str(T0 + 1)}


async def test_what_a_shard_has_had_it_says_although_lanes_have_moved(rig: Rig) -> None:
    await rig.declare()
    await shoot(rig, firing(T0), None)
    await rig.engine.ask("configure", "q", "epoch", "3", mode="declare")
    assert (await shoot(rig, firing(T0), None, epoch=2)).outcome == "TAKEN"
    await rig.remember()
    with pytest.raises(ShardsChanged):
        await shoot(rig, firing(T0 + 1, job="s@2"), None, epoch=2)
    assert await rig.is_untouched()
    assert (await shoot(rig, firing(T0 + 1, job="s@2"), None, epoch=3)).outcome == "CREATED"


async def test_a_record_is_written_whatever_the_epoch(rig: Rig) -> None:
    await rig.declare()
    await plant(rig)
    await rig.engine.ask("configure", "q", "epoch", "3", mode="declare")
    with pytest.raises(ShardsChanged):
        await shoot(rig, firing(), CHANGE, epoch=2)
    assert (await shoot(rig, Firing("s", 0, "s@0"), CHANGE)).outcome == "NOTHING"


async def test_a_shard_that_is_gone_is_not_declared_anew(rig: Rig) -> None:
    with pytest.raises(ShardsChanged):
        await shoot(rig, firing(), None, is_known=False)
    assert await rig.dump() == {}


async def test_a_shard_that_is_retired_remembers_for_a_day(rig: Rig) -> None:
    await rig.declare(retain=KEEP_NONE)
    await shoot(rig, firing(T0), None)
    lease = await rig.claim()
    await rig.turn(0, ("s@1", lease, Completed()))
    await rig.engine.ask("configure", "q", "epoch", "3", mode="declare")
    assert await rig.engine.ask("retire", "q", epoch=3) == b"OK"
    taken = await rig.dump()
    assert taken["fired"] == {"s": str(T0)}
    assert "fired" in taken.mortal
    assert (await shoot(rig, firing(T0), None, epoch=2, is_known=False)).outcome == "TAKEN"
    with pytest.raises(ShardsChanged):
        await shoot(rig, firing(T0 + 1), None, epoch=2, is_known=False)
