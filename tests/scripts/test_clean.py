"""clean.lua"""

from __future__ import annotations

import pytest

from faena.errors import InvalidTransition
from faena.options import Retain
from faena.outcomes import Buried, Completed, Retried
from tests._support.rig import BOOM, SECOND, T0, Rig, score


async def test_finished_jobs_older_than_an_age_go_with_all_they_own(rig: Rig) -> None:
    await rig.run("old", Buried(BOOM))
    rig.clock.go(10)
    await rig.run("new", Buried(BOOM))
    await rig.remember()
    assert await rig.engine.clean("q", "dead", 10 * SECOND, 100) == 1
    assert await rig.changed() == {
        "clock": {
            "enqueued": 2,
            "prune_at": T0 + 11 * SECOND,
            "removed": 1,
            "stamp": T0 + 10 * SECOND + 1,
        },
        "dead": [("new", T0 + 10 * SECOND)],
        "info:old": None,
        "marks": {"new": {"a": 1, "i": 1}},
        "specs": {"new": b"010\n{}"},
    }
    assert (await rig.counters())["cleaned"] == 1


@pytest.mark.parametrize(("state", "facts"), [("ready", {}), ("delayed", {"delay": SECOND})])
async def test_waiting_jobs_go_whatever_their_age(
    rig: Rig, state: str, facts: dict[str, int]
) -> None:
    await rig.add("a", "b", **facts)
    assert await rig.engine.clean("q", state, 3600 * SECOND, 100) == 2
    assert {"specs", state}.isdisjoint(await rig.dump())


async def test_a_slice_is_the_most_that_goes_in_one_call(rig: Rig) -> None:
    await rig.add("a", "b", "c")
    assert await rig.engine.clean("q", "ready", 0, 2) == 2
    assert await rig.states() == {"c": "ready"}
    assert await rig.engine.clean("q", "ready", 0, 2) == 1
    await rig.remember()
    assert await rig.engine.clean("q", "ready", 0, 2) == 0
    assert await rig.is_untouched()


async def test_a_cleaned_leader_frees_its_follower(rig: Rig) -> None:
    await rig.run("a", Retried(100 * SECOND, BOOM), unique="u", mode="last")
    await rig.add("b", unique="u", mode="last")
    assert await rig.engine.clean("q", "delayed", 0, 100) == 1
    taken = await rig.dump()
    assert taken["ready"] == [("b", score(T0))]
    assert taken["unique:last:u"] == "b"
    assert "blocked" not in taken


async def test_a_cleaned_follower_leaves_its_leader_alone(rig: Rig) -> None:
    await rig.add("a", unique="u", mode="last")
    lease = await rig.claim()
    await rig.add("b", unique="u", mode="last")
    assert await rig.engine.clean("q", "blocked", 0, 100) == 1
    assert (await rig.dump())["unique:last:u"] == "a"
    await rig.turn(0, ("a", lease, Completed()))
    assert await rig.states() == {"a": "completed"}


async def test_a_cleaned_job_gives_its_bytes_and_its_claim_back(rig: Rig) -> None:
    await rig.declare(retain=Retain(dead_bytes=1000))
    rig.clock.go(1)
    await rig.run("a", Buried(BOOM))
    await rig.add("b", unique="u", mode="live")
    assert (await rig.dump())["clock"]["dead_bytes"] == 6
    await rig.engine.clean("q", "dead", 0, 100)
    await rig.engine.clean("q", "ready", 0, 100)
    taken = await rig.dump()
    assert taken["clock"]["dead_bytes"] == 0
    assert "unique:live:u" not in taken


@pytest.mark.parametrize("state", ["running", "nonsense"])
async def test_running_jobs_have_an_owner_and_stay(rig: Rig, state: str) -> None:
    await rig.add("a")
    await rig.claim()
    rig.clock.go(1000)
    await rig.remember()
    with pytest.raises(InvalidTransition, match=state):
        await rig.engine.clean("q", state, 0, 100)
    assert await rig.is_untouched()


async def test_a_queue_that_is_not_there_has_nothing_to_clean(rig: Rig) -> None:
    assert await rig.engine.clean("q", "dead", 0, 100) == 0
    assert await rig.dump() == {}
