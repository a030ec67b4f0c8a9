"""What handlers say they used takes the place of what their claims reserved."""

from __future__ import annotations

import pytest

from faena import Limit
from faena.engine.calls.costs import spend
from faena.errors import LeaseLost
from faena.outcomes import Completed, Retried, Snoozed
from tests._support.rig import BOOM, SECOND, Rig
from tests.scripts.test_exchange_costs import TOKENS, add, ids


async def test_what_was_not_used_is_free_at_once(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=80, b=50)
    lease = await rig.claim()
    assert ids(await rig.turn(1)) == []
    await spend(rig.engine, "q", "a", lease, {"tokens": 30})
    assert "wake" in await rig.dump()
    assert ids(await rig.turn(1)) == ["b"]


async def test_what_was_used_beyond_is_charged_when_it_is_told(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=50, b=50, c=10)
    lease = await rig.claim(1)
    rig.clock.go(4)
    await spend(rig.engine, "q", "a", lease, {"tokens": 95})
    assert ids(await rig.turn(5)) == []
    rig.clock.go(6)  # the claim has left the window, what was told later has not
    assert ids(await rig.turn(5)) == ["b"]
    rig.clock.go(4)
    assert ids(await rig.turn(5)) == ["c"]


async def test_what_is_told_twice_counts_once_and_the_latest_wins(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=80)
    lease = await rig.claim()
    for used in (30, 30, 60, 60):
        await spend(rig.engine, "q", "a", lease, {"tokens": used})
    await add(rig, b=41, c=40)
    assert ids(await rig.turn(1)) == []
    await rig.engine.cancel("q", ["b"])
    assert ids(await rig.turn(1)) == ["c"]


async def test_nothing_is_given_back_under_a_lease_that_is_lost(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=80, b=50)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Completed()))
    await rig.remember()
    with pytest.raises(LeaseLost, match="no longer held"):
        await spend(rig.engine, "q", "a", lease, {"tokens": 1})
    assert await rig.is_untouched()


async def test_an_attempt_that_is_repeated_costs_again(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=60)
    lease = await rig.claim()
    await spend(rig.engine, "q", "a", lease, {"tokens": 70})
    await rig.turn(0, ("a", lease, Retried(SECOND, BOOM)))
    rig.clock.go(2)
    assert ids(await rig.turn(1)) == []
    rig.clock.go(8)
    again = await rig.claim()  # estimated as before: what the first attempt used is its own
    await spend(rig.engine, "q", "a", again, {"tokens": 0})
    await add(rig, b=100)
    assert ids(await rig.turn(1)) == ["b"]


async def test_a_large_limit_keeps_buckets_and_gives_back_into_them(rig: Rig) -> None:
    await rig.declare(limits=[Limit("90000/min", cost="tokens")])
    for n in range(300):
        await rig.add(f"j{n}", cost="tokens:300")
    for n in range(300):
        lease = await rig.claim()
        await spend(rig.engine, "q", f"j{n}", lease, {"tokens": 299})
        rig.clock.go(0.05)
    dump = await rig.dump()
    assert len(dump["costs:60000000/tokens"]) <= 1 + 2 * 100
    await rig.add("last", cost="tokens:301")
    assert ids(await rig.turn(1)) == []
    await rig.engine.cancel("q", ["last"])
    await rig.add("fits", cost="tokens:300")
    assert ids(await rig.turn(1)) == ["fits"]


async def test_a_tenant_that_used_less_is_looked_at_again(rig: Rig) -> None:
    await rig.declare(tenant_limits=[TOKENS])
    await rig.add("a0", "a1", lane="@a", cost="tokens:80")
    lease = await rig.claim()
    assert ids(await rig.turn(5)) == []
    await spend(rig.engine, "q", "a0", lease, {"tokens": 20})
    assert ids(await rig.turn(5)) == ["a1"]


@pytest.mark.parametrize(("estimated", "used", "later_s"), [(60, 10, 2), (10, 5, 1)])
async def test_a_job_that_said_what_it_used_is_snoozed_as_any(
    rig: Rig, estimated: int, used: int, later_s: int
) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=estimated)
    lease = await rig.claim()
    await spend(rig.engine, "q", "a", lease, {"tokens": used})
    await rig.turn(0, ("a", lease, Snoozed(SECOND, "closed")))
    rig.clock.go(later_s)
    (claim,) = (await rig.turn(1)).claimed
    assert (claim.id, claim.snoozes) == ("a", 1)


async def test_a_window_that_something_was_given_back_to_still_ends_by_itself(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=80)
    lease = await rig.claim()
    await spend(rig.engine, "q", "a", lease, {"tokens": 30})
    assert await rig.engine.command("PTTL", "q", "costs:10000000/tokens") > 0


async def test_a_job_that_was_put_off_can_say_what_it_used(rig: Rig) -> None:
    await rig.declare(limits=[TOKENS])
    await add(rig, a=80, b=50)
    lease = await rig.claim()
    await rig.turn(0, ("a", lease, Snoozed(SECOND, "not yet")))
    rig.clock.go(10)
    lease = rig.next_call()
    (claim,) = (await rig.turn(1, call=lease)).claimed
    assert (claim.id, claim.snoozes) == ("b", 0)
    rig.clock.go(10)
    lease = rig.next_call()
    (claim,) = (await rig.turn(1, call=lease)).claimed
    assert (claim.id, claim.snoozes) == ("a", 1)
    await spend(rig.engine, "q", "a", lease, {"tokens": 30})
    await rig.turn(0, ("a", lease, Snoozed(SECOND, "not yet")))
    rig.clock.go(10)
    (claim,) = (await rig.turn(1)).claimed
    assert claim.snoozes == 2
    assert ids(await rig.turn(1)) == []
