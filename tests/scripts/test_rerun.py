"""rerun.lua"""

from __future__ import annotations

import pytest

from faena.outcomes import Buried, Cancelled, Completed, Outcome
from tests._support.desk_rig import DeskRig
from tests._support.rig import BOOM, BOOM_JSON, SECOND, T0, Rig, score

ERROR = {"errors": "1", "error:1": BOOM_JSON}


@pytest.mark.parametrize(
    ("state", "outcome"), [("dead", Buried(BOOM)), ("cancelled", Cancelled(BOOM))]
)
async def test_a_finished_job_is_ready_again_with_fresh_attempts_and_its_history(
    rig: Rig, state: str, outcome: Outcome
) -> None:
    await rig.run("a", outcome)
    await rig.engine.wire.call("DEL", rig.engine.wake_key("q"))
    rig.clock.go(5)
    await rig.remember()
    assert await rig.engine.rerun("q", ["a"]) == ["ready"]
    assert await rig.changed() == {
        state: None,
        "marks": {"a": {"i": 1}},
        "ready": [("a", score(T0 + 5 * SECOND))],
        "wake": [("work", 0.0)],
    }
    assert (await rig.dump())["info:a"] == ERROR
    assert (await rig.events())[-1] == {"worker": "", "rerun": "a"}


async def test_a_completed_job_that_runs_again_has_no_result_and_no_mark(rig: Rig) -> None:
    await rig.run("a", Completed(b"1"), unique="u", mode="live")
    await rig.remember()
    assert await rig.engine.rerun("q", ["a"]) == ["ready"]
    assert await rig.changed() == {
        "completed": None,
        "marks": None,
        "ready": [("a", score(T0))],
        "results": None,
        "wake": [("work", 0.0)],
    }


async def test_a_changed_priority_stays(rig: Rig) -> None:
    await rig.add("a")
    await rig.engine.change("q", "a", priority=2)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Completed()))
    await rig.engine.rerun("q", ["a"])
    taken = await rig.dump()
    assert taken["marks"] == {"a": {"p": 2}}
    assert taken["ready"] == [("a", score(T0, priority=2))]


async def test_the_second_request_answers_alike_and_changes_nothing(rig: Rig) -> None:
    await rig.run("a", Buried(BOOM))
    await rig.engine.rerun("q", ["a"])
    await rig.remember()
    rig.clock.go(1)
    assert await rig.engine.rerun("q", ["a"]) == ["ready"]
    assert await rig.is_untouched()


async def test_what_was_decided_at_the_desk_stays_so(rig: Rig) -> None:
    desk_rig = DeskRig(rig)
    await desk_rig.bury("again", "given_up", "mended", "pending")
    await desk_rig.retry_as_new("again")
    await desk_rig.dismiss("discarded", "given_up")
    await desk_rig.dismiss("resolved", "mended")
    await rig.remember()
    answers = await rig.engine.rerun("q", ["again", "given_up", "mended"])
    assert answers == ["retried again2", "discarded", "resolved"]
    assert await rig.is_untouched()
    assert await rig.engine.rerun("q", ["mended", "pending"]) == ["resolved", "ready"]
    assert set((await rig.dump())["desk"]) == {"again", "given_up", "mended"}


async def test_live_and_unknown_jobs_are_left_alone(rig: Rig) -> None:
    await rig.add("running")
    await rig.claim()
    await rig.add("delayed", delay=SECOND)
    await rig.remember()
    answers = await rig.engine.rerun("q", ["running", "delayed", "never"])
    assert answers == ["running", "delayed", "unknown"]
    assert await rig.is_untouched()


async def test_a_queue_without_settings_retries_nothing(rig: Rig) -> None:
    answer = await rig.engine.ask("rerun", "q", "a", caller="caller", id_of_call="call")
    assert answer == [b"UNCONFIGURED"]
    assert await rig.dump() == {}
