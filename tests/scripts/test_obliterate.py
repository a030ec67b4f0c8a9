"""obliterate.lua"""

from __future__ import annotations

from tests._support.populate import populate
from tests._support.rig import Rig


async def test_everything_goes_that_would_stay_by_itself(rig: Rig) -> None:
    await populate(rig)
    before = await rig.dump()
    answers = []
    while "DONE" not in answers:
        answers.append(await rig.engine.obliterate("q", 100, force=False))
    left = await rig.dump()
    assert set(left) == left.mortal
    kept = {"history", "history_stats"}  # for whoever stores it
    counted = {"stats", "stats_hour"}
    families = {name.partition(":")[0] for name in left}
    assert families == {"call", "idem", "unique", *counted, *kept}
    assert "unique:last:u" in before
    assert "unique:last:u" not in left


async def test_a_slice_is_the_most_that_goes_in_one_call(rig: Rig) -> None:
    await rig.add("a", "b", "c")
    assert await rig.engine.obliterate("q", 2, force=False) == "MORE"
    assert await rig.states() == {"c": "ready"}
    assert await rig.engine.obliterate("q", 2, force=False) == "MORE"
    assert await rig.engine.obliterate("q", 2, force=False) == "DONE"


async def test_a_queue_with_running_jobs_is_refused_unless_forced(rig: Rig) -> None:
    await rig.add("a")
    await rig.claim()
    await rig.remember()
    assert await rig.engine.obliterate("q", 100, force=False) == "RUNNING"
    assert await rig.is_untouched()
    assert await rig.engine.obliterate("q", 100, force=True) == "MORE"
    assert await rig.engine.obliterate("q", 100, force=True) == "DONE"
    left = await rig.dump()
    assert set(left) == left.mortal


async def test_what_is_done_is_done(rig: Rig) -> None:
    assert await rig.engine.obliterate("q", 100, force=False) == "DONE"
    assert await rig.dump() == {}


async def test_the_queue_can_be_used_again(rig: Rig) -> None:
    await populate(rig)
    await rig.obliterate()
    await rig.add("done")
    assert [claim.id for claim in (await rig.turn(1)).claimed] == ["done"]
