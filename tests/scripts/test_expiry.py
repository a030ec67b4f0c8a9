"""Instants of jobs: when they are ready, and when it is too late for them."""

from __future__ import annotations

from faena.outcomes import Completed, ErrorRecord, Expired, Released, Retried
from tests._support.rig import SECOND, T0, Rig, score

LATE = ErrorRecord("Expired", "it expired before it was started", "EXPIRED")
BOOM = ErrorRecord("Boom", "boom")


async def test_a_job_waits_for_an_instant_that_is_to_come_and_for_none_that_is_past(
    rig: Rig,
) -> None:
    await rig.add("later", at=T0 + 5 * SECOND)
    await rig.add("past", at=T0 - 5 * SECOND)
    found = await rig.dump()
    assert found["delayed"] == [("later", T0 + 5 * SECOND)]
    assert found["ready"] == [("past", score(T0 + 1))]
    assert "marks" not in found


async def test_when_a_job_expires_is_the_server_s_to_say_and_comes_with_its_claim(rig: Rig) -> None:
    await rig.add("lasts", lasts=5 * SECOND)
    await rig.add("until", expires=T0 + 7 * SECOND)
    await rig.add("unique", lasts=9 * SECOND, unique="u", mode="live")
    assert (await rig.dump())["marks"] == {
        "lasts": {"e": T0 + 5 * SECOND},
        "until": {"e": T0 + 7 * SECOND},
        "unique": {"u": "u", "m": "live", "e": T0 + 9 * SECOND},
    }
    call = rig.next_call()
    claimed = (await rig.turn(3, call=call)).claimed
    assert {one.id: one.expires_at - T0 for one in claimed} == {
        "lasts": 5 * SECOND,
        "until": 7 * SECOND,
        "unique": 9 * SECOND,
    }
    assert (await rig.turn(3, call=call)).claimed == claimed, "the same call says the same"


async def test_a_job_that_was_claimed_too_late_is_cancelled_and_has_used_no_attempt(
    rig: Rig,
) -> None:
    await rig.add("a", lasts=SECOND)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Expired(LATE)))
    found = await rig.dump()
    assert found["cancelled"] == [("a", T0)]
    assert found["marks"] == {"a": {"e": T0 + SECOND, "i": 1}}


async def test_a_retry_that_would_come_too_late_ends_the_job(rig: Rig) -> None:
    await rig.add("a", "b", lasts=5 * SECOND)
    lease = await rig.claim(2)
    await rig.turn(0, ("a", lease, Retried(5 * SECOND, BOOM)), ("b", lease, Retried(SECOND, BOOM)))
    found = await rig.dump()
    assert found["cancelled"] == [("a", T0)]
    assert found["delayed"] == [("b", T0 + SECOND)]
    assert b'"code":"EXPIRED"' in found["info:a"]["error:2"].encode()


async def test_the_next_of_a_chain_has_its_turn_when_the_head_expires(rig: Rig) -> None:
    await rig.add("a", chain="t/acme", lasts=5 * SECOND)
    await rig.add("b", chain="t/acme")
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Retried(9 * SECOND, BOOM)))
    found = await rig.dump()
    assert [job for job, _ in found["ready"]] == ["b"]
    assert found["cancelled"] == [("a", T0)]


async def test_a_job_that_is_handed_back_expires_as_before(rig: Rig) -> None:
    await rig.add("a", lasts=5 * SECOND)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Released()))
    (again,) = (await rig.turn(1)).claimed
    assert again.expires_at == T0 + 5 * SECOND


async def test_a_job_that_waits_behind_its_like_still_expires(rig: Rig) -> None:
    await rig.add("first", unique="u", mode="last")
    lease = await rig.claim()
    await rig.add("newest", unique="u", mode="last", lasts=5 * SECOND)
    await rig.turn(0, ("first", lease, Completed()))
    (claim,) = (await rig.turn(1)).claimed
    assert (claim.id, claim.expires_at) == ("newest", T0 + 5 * SECOND)
