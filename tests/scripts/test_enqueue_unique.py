"""enqueue.lua: the five modes of a unique claim."""

from __future__ import annotations

import pytest

from faena.engine.envelope import seal
from faena.engine.scripts import CREATED, Answer
from faena.outcomes import Completed, Released, Retried, Snoozed
from tests._support.rig import BOOM, KEEP_NONE, LEASE, SECOND, T0, Rig, score

LIVE = {"unique": "u", "mode": "live"}
WAITING = {"unique": "u", "mode": "waiting"}
LAST = {"unique": "u", "mode": "last"}
REPLACE = {"unique": "u", "mode": "debounce"}
DEBOUNCE = {**REPLACE, "ttl": 60 * SECOND, "delay": 10 * SECOND}
THROTTLE = {"unique": "u", "mode": "throttle", "ttl": 60 * SECOND}


async def test_a_claim_is_a_key_and_a_mark(rig: Rig) -> None:
    await rig.declare()
    await rig.remember()
    assert await rig.add("a", **LIVE) == [CREATED]
    assert await rig.changed() == {
        "clock": {"enqueued": 1, "stamp": T0 + 1},
        "marks": {"a": {"u": "u", "m": "live"}},
        "ready": [("a", score(T0 + 1))],
        "specs": {"a": b"010 unique=u mode=live\n{}"},
        "unique:live:u": "a",
        "wake": [("work", 0.0)],
    }


@pytest.mark.parametrize("facts", [LIVE, WAITING, LAST])
async def test_a_second_job_is_a_duplicate_while_the_first_waits(
    rig: Rig, facts: dict[str, object]
) -> None:
    await rig.add("a", **facts)
    await rig.remember()
    assert await rig.add("b", **facts) == [Answer("DUPLICATE", "a", "ready")]
    assert await rig.changed() == {}
    assert (await rig.counters())["duplicate"] == 1


async def test_two_of_a_claim_in_one_call_are_one_job(rig: Rig) -> None:
    assert await rig.add("a", "b", **LIVE) == [CREATED, Answer("DUPLICATE", "a", "ready")]


async def test_modes_do_not_meet(rig: Rig) -> None:
    await rig.add("a", **LIVE)
    assert await rig.add("b", **WAITING) == [CREATED]


async def test_a_live_claim_lasts_until_the_job_is_finished(rig: Rig) -> None:
    await rig.add("a", **LIVE)
    lease = await rig.claim()
    assert await rig.add("b", **LIVE) == [Answer("DUPLICATE", "a", "running")]
    await rig.turn(0, ("a", lease, Retried(SECOND, BOOM)))
    assert await rig.add("b", **LIVE) == [Answer("DUPLICATE", "a", "delayed")]
    rig.clock.go(1)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Completed()))
    assert "unique:live:u" not in await rig.dump()
    assert await rig.add("b", **LIVE) == [CREATED]


async def test_a_waiting_claim_lasts_until_the_job_is_claimed(rig: Rig) -> None:
    await rig.add("a", **WAITING)
    lease = await rig.claim()
    assert "unique:waiting:u" not in await rig.dump()
    assert await rig.add("b", **WAITING) == [CREATED]
    await rig.turn(0, ("a", lease, Completed()))
    assert (await rig.dump())["unique:waiting:u"] == "b"


async def test_a_throttle_lasts_for_its_time_whatever_becomes_of_the_job(rig: Rig) -> None:
    await rig.declare(retain=KEEP_NONE)
    await rig.remember()
    assert await rig.add("a", **THROTTLE) == [CREATED]
    changed = await rig.changed()
    assert changed["unique:throttle:u"] == f"a {T0 + 60 * SECOND}"
    assert "marks" not in changed
    assert "unique:throttle:u" in (await rig.dump()).mortal
    assert await rig.add("b", **THROTTLE) == [Answer("DUPLICATE", "a", "ready")]
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Completed()))
    assert await rig.add("b", **THROTTLE) == [Answer("DUPLICATE", "a", "removed")]
    rig.clock.go(60)
    assert await rig.add("b", **THROTTLE) == [CREATED]


async def test_a_debounced_job_replaces_the_waiting_one_and_starts_its_wait_again(rig: Rig) -> None:
    await rig.add("a", **DEBOUNCE)
    rig.clock.go(4)
    await rig.remember()
    assert await rig.add("b", **DEBOUNCE) == [CREATED._replace(replaced="a")]
    assert await rig.changed() == {
        "clock": {"enqueued": 2, "removed": 1, "stamp": T0 + 4 * SECOND},
        "delayed": [("b", T0 + 14 * SECOND)],
        "marks": {"b": {"u": "u", "m": "debounce"}},
        "specs": {"b": b"010 unique=u mode=debounce ttl=60000000 delay=10000000\n{}"},
        "unique:debounce:u": "b",
    }
    assert (await rig.counters())["replaced"] == 1
    assert (await rig.events())[-1] == {"worker": "", "enqueued": "b", "replaced": "a"}


async def test_a_debounced_job_without_a_delay_waits_for_its_ttl(rig: Rig) -> None:
    await rig.add("a", unique="u", mode="debounce", ttl=7 * SECOND)
    assert (await rig.dump())["delayed"] == [("a", T0 + 7 * SECOND)]


async def test_a_debounced_job_that_has_run_is_not_replaced(rig: Rig) -> None:
    await rig.add("a", **DEBOUNCE)
    rig.clock.go(10)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Retried(SECOND, BOOM)))
    assert await rig.add("b", **DEBOUNCE) == [CREATED]
    assert await rig.states() == {"a": "delayed", "b": "delayed"}


async def test_replace_takes_the_place_of_a_job_that_waits_for_its_next_attempt(rig: Rig) -> None:
    await rig.add("a", **REPLACE)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Retried(SECOND, BOOM)))
    assert await rig.add("b", **REPLACE) == [CREATED._replace(replaced="a")]
    dump = await rig.dump()
    assert (dump["marks"], dump["unique:debounce:u"]) == ({"b": {"u": "u", "m": "debounce"}}, "b")
    assert not {"delayed", "info:a"} & dump.keys()
    assert (await rig.events())[-1] == {"worker": "", "enqueued": "b", "replaced": "a"}


async def test_replace_takes_the_place_of_a_ready_job_that_has_lost_its_worker(rig: Rig) -> None:
    await rig.add("a", **REPLACE)
    await rig.claim()
    rig.clock.go(60)
    await rig.turn(0)
    assert await rig.states() == {"a": "ready"}
    assert await rig.add("b", **REPLACE) == [CREATED._replace(replaced="a")]
    assert await rig.states() == {"b": "ready"}


async def test_replace_leaves_a_running_job_alone(rig: Rig) -> None:
    await rig.add("a", **REPLACE)
    await rig.claim()
    assert await rig.add("b", **REPLACE) == [CREATED]
    assert await rig.states() == {"a": "running", "b": "ready"}


async def test_one_that_is_replaced_between_attempts_passes_the_turn_of_its_chain(rig: Rig) -> None:
    await rig.declare(order="tenant")
    chain = {"lane": "@a", "chain": "t/a"}
    await rig.add("a", **REPLACE, **chain)
    lease = await rig.claim()
    await rig.add("behind", **chain)
    await rig.turn(0, ("a", lease, Retried(SECOND, BOOM)))
    await rig.add("b", **REPLACE, **chain)
    dump = await rig.dump()
    assert (dump["heads"], dump["lanes"]) == ({"t/a": "behind"}, {"@a": "2000000"})
    assert await rig.states() == {"behind": "ready", "b": "blocked"}


async def test_a_replaced_job_still_answers_for_its_id_within_the_same_call(rig: Rig) -> None:
    spec = seal(10, DEBOUNCE, b"{}")
    answers = await rig.engine.enqueue("q", "c", "1", [("a", spec), ("b", spec), ("a", spec)])
    assert answers == [
        CREATED,
        CREATED._replace(replaced="a"),
        Answer("DUPLICATE", "a", "removed"),
    ]
    assert await rig.states() == {"b": "delayed"}


async def test_keep_last_blocks_one_follower_behind_a_running_job(rig: Rig) -> None:
    await rig.add("a", **LAST)
    await rig.claim()
    await rig.remember()
    assert await rig.add("b", **LAST) == [CREATED]
    assert await rig.changed() == {
        "blocked": [("b", T0)],
        "clock": {"enqueued": 2, "prune_at": T0 + SECOND, "stamp": T0 + 1},
        "marks": {"a": {"u": "u", "m": "last", "n": "b"}, "b": {"u": "u", "m": "last"}},
        "specs": dict.fromkeys("ab", b"010 unique=u mode=last\n{}"),
    }


async def test_the_newest_follower_wins(rig: Rig) -> None:
    await rig.add("a", **LAST)
    await rig.claim()
    await rig.add("b", **LAST)
    assert await rig.add("c", **LAST) == [CREATED._replace(replaced="b")]
    assert await rig.states() == {"a": "running", "c": "blocked"}


async def test_a_follower_twice_in_one_call_is_one_job(rig: Rig) -> None:
    await rig.add("a", **LAST)
    await rig.claim()
    assert await rig.add("b", "b", **LAST) == [CREATED, Answer("DUPLICATE", "b", "blocked")]


async def test_a_follower_is_ready_when_the_job_before_it_is_finished(rig: Rig) -> None:
    await rig.add("a", **LAST)
    lease = await rig.claim()
    await rig.add("b", **LAST)
    rig.clock.go(2)
    await rig.remember()
    await rig.turn(0, ("a", lease, Completed()))
    changed = await rig.changed()
    assert changed["blocked"] is None
    assert changed["ready"] == [("b", score(T0 + 2 * SECOND))]
    assert changed["unique:last:u"] == "b"
    assert {"worker": "worker", "unblocked": "b", "completed": "a"} in await rig.events()


async def test_a_follower_keeps_its_own_delay(rig: Rig) -> None:
    await rig.add("a", **LAST)
    lease = await rig.claim()
    await rig.add("b", **LAST, delay=9 * SECOND)
    assert (await rig.dump())["blocked"] == [("b", T0 + 9 * SECOND)]
    await rig.turn(0, ("a", lease, Completed()))
    assert (await rig.dump())["delayed"] == [("b", T0 + 9 * SECOND)]


@pytest.mark.parametrize("outcome", [Retried(SECOND, BOOM), Snoozed(SECOND), Released()])
async def test_a_job_that_has_a_follower_keeps_it_while_it_waits_to_run_again(
    rig: Rig, outcome: Retried | Snoozed | Released
) -> None:
    await rig.add("a", **LAST)
    lease = await rig.claim()
    await rig.add("b", **LAST)
    await rig.turn(0, ("a", lease, outcome))
    assert await rig.add("c", **LAST) == [CREATED._replace(replaced="b")]


async def test_a_rescued_job_has_started_and_may_be_followed(rig: Rig) -> None:
    await rig.add("a", **LAST)
    await rig.claim()
    rig.clock.go(LEASE / SECOND)
    await rig.turn()
    assert await rig.add("b", **LAST) == [CREATED]
    assert await rig.states() == {"a": "ready", "b": "blocked"}


async def test_an_id_that_came_back_behind_another_job_is_not_freed_by_its_former_leader(
    rig: Rig,
) -> None:
    await rig.declare(retain=KEEP_NONE)
    await rig.add("a", **LAST)
    await rig.add("x", unique="other", mode="last")
    lease = await rig.claim(2)
    await rig.add("b", **LAST)
    await rig.engine.cancel("q", ["b"])
    await rig.add("b", unique="other", mode="last")
    await rig.turn(0, ("a", lease, Completed()))
    assert await rig.states() == {"x": "running", "b": "blocked"}


async def test_a_repeated_call_does_not_replace_again(rig: Rig) -> None:
    await rig.add("a", **DEBOUNCE)
    await rig.add("b", **DEBOUNCE, call="call9000")
    await rig.remember()
    answers = await rig.add("b", **DEBOUNCE, call="call9000")
    assert answers == [CREATED._replace(replaced="a")]
    assert await rig.is_untouched()
