"""exchange.lua: every way an attempt can end, and the lease that is needed for it."""

from __future__ import annotations

from typing import Any

import pytest

from faena.outcomes import (
    Buried,
    Cancelled,
    Completed,
    Limited,
    Outcome,
    Released,
    Retried,
    Snoozed,
)
from tests._support.rig import BOOM, BOOM_JSON, KEEP_NONE, LEASE, SECOND, T0, Rig, score

ENDINGS: list[Outcome] = [
    Completed(),
    Completed(b"1"),
    Retried(SECOND, BOOM),
    Buried(BOOM),
    Cancelled(BOOM),
    Snoozed(SECOND),
    Limited(SECOND),
    Released(),
]
ERROR = {"errors": "1", "error:1": BOOM_JSON}
FAILED = {"info:a": ERROR, "marks": {"a": {"a": 1, "i": 1}}}
"""What an attempt that was used up leaves."""


async def ended(rig: Rig, outcome: Outcome) -> dict[str, Any]:
    """What settling the one running job changes, apart from its lease and the clock."""
    await rig.add("a")
    lease = await rig.claim()
    await rig.remember()
    assert (await rig.turn(0, ("a", lease, outcome))).lost == []
    changed = await rig.changed()
    assert (changed.pop("leases"), changed.pop("running")) == (None, None)
    return changed


async def test_a_completed_job_is_kept_by_its_finish(rig: Rig) -> None:
    assert await ended(rig, Completed()) == {"completed": [("a", T0)]}
    assert (await rig.events())[-1] == {"worker": "worker", "completed": "a"}


async def test_a_result_is_kept_with_its_job(rig: Rig) -> None:
    assert await ended(rig, Completed(b"\x00{}")) == {
        "completed": [("a", T0)],
        "results": {"a": b"\x00{}"},
    }


async def test_a_retried_job_is_delayed_with_one_more_attempt_and_its_error(rig: Rig) -> None:
    assert await ended(rig, Retried(7 * SECOND, BOOM)) == {
        "delayed": [("a", T0 + 7 * SECOND)],
        **FAILED,
    }
    assert (await rig.counters())["retried"] == 1


async def test_a_job_retried_at_once_is_ready_and_ahead_by_its_boost(rig: Rig) -> None:
    changed = await ended(rig, Retried(0, BOOM))
    assert changed["ready"] == [("a", score(T0, attempts=1))]


async def test_a_buried_job_is_dead_with_its_error(rig: Rig) -> None:
    assert await ended(rig, Buried(BOOM)) == {"dead": [("a", T0)], **FAILED}


async def test_a_job_that_could_not_even_start_has_used_no_attempt(rig: Rig) -> None:
    assert await ended(rig, Buried(BOOM, has_run=False)) == {
        "dead": [("a", T0)],
        "info:a": ERROR,
        "marks": {"a": {"i": 1}},
    }


async def test_a_job_stopped_by_its_worker_is_cancelled(rig: Rig) -> None:
    assert await ended(rig, Cancelled(BOOM)) == {"cancelled": [("a", T0)], **FAILED}


async def test_a_snoozed_job_is_delayed_and_no_attempt_is_used(rig: Rig) -> None:
    assert await ended(rig, Snoozed(7 * SECOND)) == {"delayed": [("a", T0 + 7 * SECOND)]}


async def test_a_released_job_goes_back_to_its_place(rig: Rig) -> None:
    assert await ended(rig, Released()) == {
        "ready": [("a", score(T0 + 1))],
        "wake": [("work", 0.0)],
    }
    assert (await rig.counters())["released"] == 1


async def test_a_job_released_with_another_priority_goes_to_the_place_of_that(rig: Rig) -> None:
    assert await ended(rig, Released(priority=50)) == {
        "marks": {"a": {"p": 50}},
        "ready": [("a", score(T0 + 1, priority=50))],
        "wake": [("work", 0.0)],
    }
    (claim,) = (await rig.turn(1)).claimed
    assert (claim.priority, claim.attempts) == (50, 0)
    await rig.turn(0, ("a", claim.lease, Released(priority=1)))
    assert (await rig.dump())["ready"] == [("a", score(T0 + 1, priority=1))]


async def test_a_rate_limited_job_goes_back_and_the_queue_is_held(rig: Rig) -> None:
    assert await ended(rig, Limited(7 * SECOND)) == {
        "ready": [("a", score(T0 + 1))],
        "holds": {"rate_limited": f"{T0 + 7 * SECOND} handler {T0}"},
    }
    exchanged = await rig.turn(1)
    assert (exchanged.claimed, exchanged.gate) == ([], "held rate_limited")
    assert exchanged.next_at == T0 + 7 * SECOND


@pytest.mark.parametrize("outcome", ENDINGS, ids=lambda outcome: repr(outcome)[:20])
async def test_a_stale_lease_changes_nothing_and_is_reported(rig: Rig, outcome: Outcome) -> None:
    await rig.add("a")
    stale = await rig.claim(worker="slow")
    rig.clock.go(LEASE / SECOND)
    await rig.claim(worker="quick")
    await rig.remember()
    exchanged = await rig.turn(0, ("a", stale, outcome), worker="slow")
    assert exchanged.lost == ["a"]
    assert await rig.changed() == {}


@pytest.mark.parametrize("lease", ["", "call", "call000", "call00011"])
@pytest.mark.parametrize("outcome", [Completed(), Retried(SECOND, BOOM)])
async def test_only_the_whole_lease_counts(rig: Rig, lease: str, outcome: Outcome) -> None:
    await rig.add("a")
    await rig.turn(1, call="call0001")
    await rig.remember()
    assert (await rig.turn(0, ("a", lease, outcome))).lost == ["a"]
    assert await rig.changed() == {}


async def test_of_two_leases_on_one_job_only_the_valid_one_settles_it(rig: Rig) -> None:
    await rig.add("a")
    stale = await rig.claim()
    rig.clock.go(LEASE / SECOND)
    valid = await rig.claim()
    exchanged = await rig.turn(0, ("a", stale, Retried(0, BOOM)), ("a", valid, Completed(b"1")))
    assert exchanged.lost == ["a"]
    assert await rig.states() == {"a": "completed"}
    assert (await rig.dump())["marks"]["a"].get("a") is None


async def test_a_job_is_settled_only_once(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Retried(SECOND, BOOM)))
    await rig.remember()
    assert (await rig.turn(0, ("a", lease, Completed()))).lost == ["a"]
    assert await rig.changed() == {}


async def asked_to_stop(rig: Rig, outcome: Outcome) -> dict[str, str]:
    """Where a job is whose attempt ends like this after somebody cancelled it."""
    await rig.add("a")
    lease = await rig.claim()
    await rig.engine.cancel("q", ["a"])
    await rig.turn(0, ("a", lease, outcome))
    return await rig.states()


@pytest.mark.parametrize("outcome", ENDINGS[2:], ids=lambda outcome: repr(outcome)[:20])
async def test_a_job_asked_to_stop_is_cancelled_however_it_stopped(
    rig: Rig, outcome: Outcome
) -> None:
    assert await asked_to_stop(rig, outcome) == {"a": "cancelled"}


@pytest.mark.parametrize("outcome", ENDINGS[:2])
async def test_a_job_asked_to_stop_that_completed_first_is_completed(
    rig: Rig, outcome: Outcome
) -> None:
    assert await asked_to_stop(rig, outcome) == {"a": "completed"}


async def test_a_providers_not_before_holds_though_its_job_is_cancelled(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.engine.cancel("q", ["a"])
    await rig.turn(0, ("a", lease, Limited(SECOND)))
    assert "rate_limited" in (await rig.dump())["holds"]


@pytest.mark.parametrize("outcome", [ENDINGS[0], ENDINGS[1], ENDINGS[3], ENDINGS[4]])
async def test_a_job_that_nobody_keeps_leaves_nothing(rig: Rig, outcome: Outcome) -> None:
    await rig.declare(retain=KEEP_NONE)
    await rig.add("a", unique="u", mode="live")
    lease = await rig.claim()
    await rig.engine.note("q", "a", lease, progress=b"50", lines=["half"])
    await rig.engine.await_job("q", "a")
    await rig.turn(0, ("a", lease, outcome))
    assert set(await rig.dump()) - {"wake"} == {
        "conf",
        "clock",
        "events",
        "call:producer",
        "call:worker",
        "stats:28333333",
        "totals",
    }
    assert (await rig.dump())["clock"]["removed"] == 1


async def test_twenty_errors_are_kept_and_the_oldest_go(rig: Rig) -> None:
    await rig.add("a")
    for _ in range(23):
        lease = await rig.claim()
        await rig.turn(0, ("a", lease, Retried(0, BOOM)))
    info = (await rig.dump())["info:a"]
    assert info.pop("errors") == "23"
    assert sorted(info) == sorted(f"error:{number}" for number in range(4, 24))


async def test_a_result_is_kept_byte_for_byte(rig: Rig) -> None:
    for result in (b"9007199254740993", b"-1e400", b"[]", b'{"n":18446744073709551615}'):
        await rig.run("a", Completed(result))
        (look,) = await rig.engine.look("q", ["a"])
        assert look is not None
        assert look.result == result
        await rig.engine.remove("q", ["a"])


async def test_what_is_no_error_is_not_noted_as_one_of_a_job_that_was_called_off(rig: Rig) -> None:
    await rig.add("a", "b")
    lease = await rig.claim(2)
    await rig.engine.cancel("q", ["a", "b"])
    limited, snoozed = Limited(SECOND, "queue"), Snoozed(SECOND, "not now")
    await rig.turn(0, ("a", lease, limited), ("b", lease, snoozed))
    assert await rig.states() == {"a": "cancelled", "b": "cancelled"}
    assert not {"info:a", "info:b"} & {*(await rig.dump())}
