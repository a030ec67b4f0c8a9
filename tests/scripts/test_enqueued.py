"""When jobs were taken in: their scores say it, or marks once they have left their places."""

from __future__ import annotations

from faena.outcomes import Completed, Limited, Released, Retried, Snoozed
from tests._support.rig import BOOM, SECOND, T0, Rig


async def test_a_job_that_leaves_its_place_keeps_the_instant_it_was_taken_in(rig: Rig) -> None:
    await rig.add("delayed", delay=9 * SECOND)
    await rig.add("retried", "snoozed", "plain", priority=5)
    await rig.add("chained", chain="t/acme")
    call = rig.next_call()
    await rig.turn(4, call=call)
    rig.clock.go(3)
    late = Retried(SECOND, BOOM)
    await rig.turn(
        0,
        ("retried", call, late),
        ("snoozed", call, Snoozed(SECOND)),
        ("plain", call, Released()),
        ("chained", call, late),
    )
    expected = {"delayed": T0, "retried": T0 + 1, "snoozed": T0 + 2, "chained": T0 + 4}
    assert (await rig.dump()).enqueued == expected
    looks = await rig.engine.look("q", [*expected, "plain"])
    assert [look and look.enqueued_at for look in looks] == [*expected.values(), T0 + 3]
    rig.clock.go(60)
    claims = (await rig.turn(5)).claimed
    assert {one.id: one.enqueued_at for one in claims} == {**expected, "plain": 0}


async def test_a_job_that_is_put_off_by_hand_keeps_the_instant_it_was_taken_in(rig: Rig) -> None:
    await rig.add("a")
    rig.clock.go(5)
    await rig.engine.change("q", "a", delay_us=SECOND, priority=3)
    assert (await rig.dump()).enqueued == {"a": T0 + 1}


async def test_a_job_in_a_lane_and_a_boosted_one_tell_the_same(rig: Rig) -> None:
    await rig.declare(fair=True)
    await rig.add("a", lane="@acme", priority=3)
    lease = await rig.claim()
    assert await enqueued(rig, "a") == [T0 + 1]
    await rig.turn(0, ("a", lease, Retried(SECOND, BOOM)))
    rig.clock.go(2)
    await rig.turn(0)
    assert await rig.engine.change("q", "a", priority=9) == "ready"
    assert await enqueued(rig, "a") == [T0 + 1]


async def test_a_changed_priority_says_nothing_of_when_a_job_came(rig: Rig) -> None:
    await rig.add("a", "b")
    rig.clock.go(5)
    await rig.engine.change("q", "b", priority=3)
    assert await enqueued(rig, "a", "b") == [T0 + 1, T0 + 2]


async def test_a_job_whose_tenant_is_limited_is_put_off_alone_and_keeps_its_instant(
    rig: Rig,
) -> None:
    await rig.add("a")
    lease = await rig.claim()
    rig.clock.go(3)
    await rig.turn(0, ("a", lease, Limited(SECOND, "tenant")))
    assert (await rig.dump()).enqueued == {"a": T0 + 1}


async def test_a_finished_job_that_is_run_again_was_taken_in_then(rig: Rig) -> None:
    await rig.add("a", delay=SECOND)
    await rig.add("b")
    lease = await rig.claim()
    await rig.turn(0, ("b", lease, Completed()))
    assert await enqueued(rig, "b") == [None]  # an ordinary job leaves no trace
    rig.clock.go(2)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Completed()))
    assert await enqueued(rig, "a") == [T0]
    rig.clock.go(2)
    await rig.engine.rerun("q", ["a"])
    assert await enqueued(rig, "a") == [T0 + 4 * SECOND]


async def enqueued(rig: Rig, *jobs: str) -> list[int | None]:
    return [look and look.enqueued_at for look in await rig.engine.look("q", jobs)]
