"""note.lua"""

from __future__ import annotations

import pytest

from faena.errors import LeaseLost
from faena.outcomes import Completed
from tests._support.rig import LEASE, SECOND, Rig


async def test_progress_and_lines_are_kept_with_the_job(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.remember()
    await rig.engine.note("q", "a", lease, progress=b"40", lines=["one", "two"])
    assert await rig.changed() == {
        "info:a": {"progress": "40", "logs": "2", "log:1": "one", "log:2": "two"},
        "marks": {"a": {"i": 1}},
    }


async def test_the_latest_progress_wins_and_lines_pile_up(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.engine.note("q", "a", lease, progress=b"40", lines=["one"])
    await rig.engine.note("q", "a", lease, progress=b"80")
    await rig.engine.note("q", "a", lease, lines=["two"])
    assert (await rig.dump())["info:a"] == {
        "progress": "80",
        "logs": "2",
        "log:1": "one",
        "log:2": "two",
    }


async def test_the_same_progress_again_changes_nothing(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.engine.note("q", "a", lease, progress=b"40")
    await rig.remember()
    await rig.engine.note("q", "a", lease, progress=b"40")
    assert await rig.is_untouched()


async def test_a_hundred_lines_are_kept_and_the_oldest_go(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.engine.note("q", "a", lease, lines=[str(number) for number in range(1, 104)])
    info = (await rig.dump())["info:a"]
    assert info.pop("logs") == "103"
    assert {name: f"log:{text}" for name, text in info.items()} == {name: name for name in info}
    assert sorted(int(text) for text in info.values()) == list(range(4, 104))


async def test_whoever_lost_the_lease_writes_nothing(rig: Rig) -> None:
    await rig.add("a")
    stale = await rig.claim()
    rig.clock.go(LEASE / SECOND)
    valid = await rig.claim(worker="other")
    await rig.remember()
    for lease in (stale, valid[:-1], ""):
        with pytest.raises(LeaseLost):
            await rig.engine.note("q", "a", lease, progress=b"1", lines=["x"])
    assert await rig.is_untouched()


async def test_a_finished_job_takes_no_notes(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Completed()))
    await rig.remember()
    with pytest.raises(LeaseLost):
        await rig.engine.note("q", "a", lease, progress=b"1")
    assert await rig.is_untouched()
