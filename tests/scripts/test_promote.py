"""promote.lua"""

from __future__ import annotations

from faena.outcomes import Retried
from tests._support.populate import populate_other_states
from tests._support.rig import BOOM, SECOND, T0, Rig, score


async def test_a_delayed_job_is_ready_now(rig: Rig) -> None:
    await rig.add("a", delay=100 * SECOND)
    rig.clock.go(5)
    await rig.engine.wire.call("DEL", rig.engine.wake_key("q"))
    await rig.remember()
    assert await rig.engine.promote("q", ["a"]) == ["promoted"]
    assert await rig.changed() == {
        "delayed": None,
        "ready": [("a", score(T0 + 5 * SECOND))],
        "wake": [("work", 0.0)],
    }
    assert (await rig.events())[-1] == {"worker": "", "promoted": "a"}


async def test_attempts_and_a_changed_priority_count(rig: Rig) -> None:
    await rig.run("a", Retried(100 * SECOND, BOOM))
    await rig.engine.change("q", "a", priority=7)
    await rig.engine.promote("q", ["a"])
    assert (await rig.dump())["ready"] == [("a", score(T0, priority=7, attempts=1))]


async def test_the_second_request_says_it_is_ready_and_changes_nothing(rig: Rig) -> None:
    await rig.add("a", delay=SECOND)
    await rig.engine.promote("q", ["a"])
    await rig.remember()
    assert await rig.engine.promote("q", ["a"]) == ["ready"]
    assert await rig.is_untouched()


async def test_other_states_and_unknown_jobs_are_left_alone(rig: Rig) -> None:
    await populate_other_states(rig)
    await rig.remember()
    answers = await rig.engine.promote("q", ["done", "leader", "follower", "never"])
    assert answers == ["completed", "running", "blocked", "unknown"]
    assert await rig.is_untouched()


async def test_a_queue_without_settings_promotes_nothing(rig: Rig) -> None:
    answer = await rig.engine.ask("promote", "q", "a", caller="caller", id_of_call="call")
    assert answer == [b"UNCONFIGURED"]
    assert await rig.dump() == {}
