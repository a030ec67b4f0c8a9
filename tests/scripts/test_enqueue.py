"""enqueue.lua: new jobs, ids that are known, and depth."""

from __future__ import annotations

import pytest

from faena.engine.envelope import seal
from faena.engine.scripts import CREATED, Answer
from faena.errors import InternalError
from faena.options import Backpressure
from faena.outcomes import Completed
from tests._support.rig import SECOND, T0, Rig, score


async def test_jobs_become_ready_in_the_order_they_came(rig: Rig) -> None:
    await rig.declare()
    await rig.remember()
    assert await rig.add("b", "a") == [CREATED, CREATED]
    assert await rig.changed() == {
        "clock": {"enqueued": 2, "stamp": T0 + 2},
        "ready": [("b", score(T0 + 1)), ("a", score(T0 + 2))],
        "specs": {"b": b"010\n{}", "a": b"010\n{}"},
        "wake": [("work", 0.0)],
    }
    assert await rig.events() == [{"worker": "", "enqueued": "b a"}]
    assert await rig.counters() == {"enqueued": 2}


async def test_a_priority_step_is_worth_one_age_step(rig: Rig) -> None:
    await rig.add("late", priority=50)
    await rig.add("soon", priority=1)
    assert (await rig.dump())["ready"] == [
        ("soon", score(T0 + 2, priority=1)),
        ("late", score(T0 + 1, priority=50)),
    ]


async def test_stamps_grow_though_the_clock_goes_back(rig: Rig) -> None:
    await rig.add("a")
    rig.clock.go(-5)
    await rig.add("b")
    assert [job for job, _ in (await rig.dump())["ready"]] == ["a", "b"]


async def test_a_delayed_job_waits_for_its_instant_and_wakes_a_worker_only_when_it_is_first(
    rig: Rig,
) -> None:
    await rig.declare()
    await rig.remember()
    await rig.add("a", delay=5 * SECOND)
    assert await rig.changed() == {
        "clock": {"enqueued": 1, "stamp": T0},
        "delayed": [("a", T0 + 5 * SECOND)],
        "specs": {"a": b"010 delay=5000000\n{}"},
        "wake": [("work", 0.0)],
    }
    await rig.engine.wire.call("DEL", rig.engine.wake_key("q"))
    await rig.add("later", delay=9 * SECOND)
    assert "wake" not in await rig.dump()


async def test_the_same_id_with_the_same_spec_is_the_same_job(rig: Rig) -> None:
    await rig.add("a")
    await rig.remember()
    assert await rig.add("a") == [Answer("DUPLICATE", "a", "ready")]
    assert await rig.changed() == {}


async def test_the_same_id_with_another_spec_is_a_conflict(rig: Rig) -> None:
    await rig.add("a")
    await rig.remember()
    assert await rig.add("a", body=b"[]") == [Answer("CONFLICT", "a", "ready")]
    assert await rig.changed() == {}
    assert (await rig.counters())["conflict"] == 1


async def test_a_digest_says_what_makes_two_specs_the_same(rig: Rig) -> None:
    await rig.add("a", digest="d1", body=b"1")
    answers = await rig.add("a", digest="d1", body=b"2")
    answers += await rig.add("a", digest="d2", body=b"1")
    assert [answer.code for answer in answers] == ["DUPLICATE", "CONFLICT"]


async def test_a_finished_job_still_owns_its_id(rig: Rig) -> None:
    await rig.run("a", Completed())
    assert await rig.add("a") == [Answer("DUPLICATE", "a", "completed")]


async def test_an_id_twice_in_one_call_is_one_job(rig: Rig) -> None:
    same, other = seal(10, {}, b"{}"), seal(10, {}, b"[]")
    answers = await rig.engine.enqueue("q", "c", "1", [("a", same), ("a", same), ("a", other)])
    assert answers == [CREATED, Answer("DUPLICATE", "a", "ready"), Answer("CONFLICT", "a", "ready")]
    assert (await rig.dump())["clock"]["enqueued"] == 1


async def test_a_repeated_call_gets_its_answer_again_and_changes_nothing(rig: Rig) -> None:
    await rig.add("a", "b", call="1")
    await rig.add("a", "c", call="2")
    await rig.remember()
    rig.clock.go(1)
    assert await rig.add("a", "c", call="2") == [Answer("DUPLICATE", "a", "ready"), CREATED]
    assert await rig.is_untouched()


@pytest.mark.parametrize("ids", [["never"], ["a", "never"]], ids=["lone", "several"])
async def test_a_call_that_a_later_one_has_overtaken_is_refused(rig: Rig, ids: list[str]) -> None:
    """Else a job that ran and was removed meanwhile would run a second time."""
    await rig.add("a", call="9")
    await rig.add("b", call="10")
    await rig.remember()
    with pytest.raises(InternalError, match="one at a time"):
        await rig.add(*ids, call="9")
    assert await rig.is_untouched()


async def test_callers_do_not_overtake_each_other(rig: Rig) -> None:
    await rig.add("a", caller="one", call="2")
    assert await rig.add("b", caller="two", call="1") == [CREATED]


@pytest.mark.parametrize("ids", [["a"], ["a", "b"]], ids=["lone", "several"])
async def test_the_record_of_a_call_ends_after_an_hour(rig: Rig, ids: list[str]) -> None:
    await rig.add(*ids)
    assert 3_500 < await rig.engine.command("TTL", "q", "call:producer") <= 3_600


async def test_a_queue_that_was_never_declared_takes_nothing(rig: Rig) -> None:
    await rig.add("a")
    await rig.obliterate()
    await rig.remember()
    call = {"caller": "producer", "id_of_call": "call9999"}
    answer = await rig.engine.ask("enqueue", "q", "a", b"010\n{}", **call)
    assert answer == [b"UNCONFIGURED"]
    assert await rig.is_untouched()


async def test_between_soft_and_hard_a_growing_delay_is_suggested_and_at_hard_jobs_are_refused(
    rig: Rig,
) -> None:
    await rig.declare(backpressure=Backpressure(soft=1, hard=3, max_delay="4s"))
    assert await rig.add("a", "b", "c", "d") == [
        CREATED,
        Answer("SLOWED", 0, 1),
        Answer("SLOWED", 2 * SECOND, 2),
        Answer("OVERLOADED", 4 * SECOND, 3),
    ]
    assert set((await rig.dump())["specs"]) == {"a", "b", "c"}
    counters = await rig.counters()
    assert (counters["slowed"], counters["overloaded"]) == (2, 1)


async def test_depth_is_every_job_that_is_not_finished(rig: Rig) -> None:
    await rig.declare(backpressure=Backpressure(soft=100, hard=101))
    await rig.add("leader", unique="u", mode="last")
    await rig.claim()
    await rig.add("follower", unique="u", mode="last")
    await rig.add("delayed", delay=SECOND)
    await rig.add("ready")
    await rig.edit(soft=0)
    assert await rig.add("next") == [Answer("SLOWED", 4 * 5 * SECOND // 101, 4)]


async def test_a_known_id_is_answered_however_deep_the_queue_is(rig: Rig) -> None:
    await rig.declare(backpressure=Backpressure(soft=0, hard=1))
    await rig.add("a")
    assert await rig.add("a") == [Answer("DUPLICATE", "a", "ready")]


async def test_a_bound_set_at_run_time_without_a_delay_suggests_the_default_one(rig: Rig) -> None:
    await rig.declare()
    await rig.edit(hard=0)
    assert await rig.add("a") == [Answer("OVERLOADED", 5 * SECOND, 0)]
