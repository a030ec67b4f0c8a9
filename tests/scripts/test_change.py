"""change.lua"""

from __future__ import annotations

from faena.outcomes import Retried
from tests._support.populate import populate_other_states
from tests._support.rig import BOOM, SECOND, STEP, T0, Rig, score


async def test_a_priority_moves_a_ready_job_by_what_it_is_worth(rig: Rig) -> None:
    await rig.add("a", "b")
    rig.clock.go(5)
    await rig.remember()
    assert await rig.engine.change("q", "b", priority=4) == "ready"
    assert await rig.changed() == {
        "marks": {"b": {"p": 4}},
        "ready": [("b", score(T0 + 2, priority=4)), ("a", score(T0 + 1))],
    }
    assert (await rig.events())[-1] == {"worker": "", "changed": "b"}


async def test_a_priority_of_a_delayed_job_counts_when_it_is_due(rig: Rig) -> None:
    await rig.add("a", delay=SECOND)
    assert await rig.engine.change("q", "a", priority=4) == "delayed"
    rig.clock.go(1)
    await rig.turn()
    assert (await rig.dump())["ready"] == [("a", score(T0 + SECOND, priority=4))]


async def test_a_delay_counts_from_now_whether_the_job_was_ready_or_delayed(rig: Rig) -> None:
    await rig.add("ready")
    await rig.add("delayed", delay=100 * SECOND)
    rig.clock.go(5)
    await rig.remember()
    assert await rig.engine.change("q", "ready", delay_us=7 * SECOND) == "delayed"
    assert await rig.engine.change("q", "delayed", delay_us=8 * SECOND) == "delayed"
    assert await rig.changed() == {
        "delayed": [("ready", T0 + 12 * SECOND), ("delayed", T0 + 13 * SECOND)],
        "ready": None,
    }


async def test_no_delay_makes_a_delayed_job_ready_at_its_new_priority(rig: Rig) -> None:
    await rig.run("a", Retried(100 * SECOND, BOOM))
    rig.clock.go(5)
    assert await rig.engine.change("q", "a", delay_us=0, priority=20) == "ready"
    taken = await rig.dump()
    assert taken["ready"] == [("a", score(T0 + 5 * SECOND, priority=20, attempts=1))]
    assert "delayed" not in taken


async def test_the_second_request_answers_alike_and_changes_no_job(rig: Rig) -> None:
    await rig.add("a")
    await rig.engine.change("q", "a", priority=3)
    await rig.remember()
    assert await rig.engine.change("q", "a", priority=3) == "ready"
    assert await rig.changed() == {}


async def test_a_job_changed_twice_is_where_it_would_be_changed_once(rig: Rig) -> None:
    await rig.add("a")
    await rig.engine.change("q", "a", priority=50)
    await rig.engine.change("q", "a", priority=11)
    assert (await rig.dump())["ready"] == [("a", score(T0 + 1) + STEP)]


async def test_other_states_and_unknown_jobs_are_left_alone(rig: Rig) -> None:
    await populate_other_states(rig)
    await rig.remember()
    for job, state in (
        ("done", "completed"),
        ("leader", "running"),
        ("follower", "blocked"),
        ("never", "unknown"),
    ):
        assert await rig.engine.change("q", job, delay_us=SECOND, priority=1) == state
    assert await rig.is_untouched()


async def test_a_queue_without_settings_changes_nothing(rig: Rig) -> None:
    named = {"caller": "caller", "id_of_call": "call", "id": "a", "delay_us": 1}
    assert await rig.engine.ask("change", "q", **named) == [b"UNCONFIGURED"]
    assert await rig.dump() == {}
