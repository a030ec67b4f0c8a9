"""exchange.lua: what lanes were given in a minute, how long they waited, what kept them back."""

from __future__ import annotations

import pytest

from faena.limits import Limit
from faena.options import Order
from faena.outcomes import Completed, Limited, Retried
from faena.tenancy.shares import Shares, Waits, shares_of
from tests._support.rig import BOOM, SECOND, T0, Rig

MINUTE = 60 * SECOND
FIRST = T0 // MINUTE
INTO = T0 % MINUTE
"""How much of the first minute has passed when a test begins."""


async def row(rig: Rig, lane: str = "@a", minute: int = FIRST) -> list[int]:
    """Given, waits, their sum, throttled."""
    taken = await rig.dump()
    assert not taken.get("throttled") or taken["parked"]
    return taken.get(f"shares:{minute}", {}).get(lane, [0, 0, 0, 0])


async def take(rig: Rig, want: int) -> str:
    """Claim what a bound leaves of it; returns the lease."""
    return (await rig.turn(want)).claimed[0].lease


async def read(rig: Rig, minutes: int = 0) -> list[Shares]:
    return await shares_of(rig.engine, rig.queue, minutes)


@pytest.mark.parametrize("priority", [1, 10, 99])
async def test_a_wait_is_what_a_job_was_ready_whatever_its_priority(
    rig: Rig, priority: int
) -> None:
    await rig.declare(fair=True)
    await rig.add("job", lane="@a", priority=priority)
    rig.clock.go(2)
    await rig.claim()
    given, waits, waited, throttled = await row(rig)
    assert (given, waits, throttled) == (1000, 1, 0)
    assert abs(waited - 2 * SECOND) <= 2  # stamps are apart


async def test_a_job_that_failed_waits_from_when_its_next_attempt_is_due(rig: Rig) -> None:
    await rig.declare(fair=True, retry_boost=3)
    await rig.add("job", lane="@a")
    lease = await rig.claim()
    await rig.turn(0, ("job", lease, Retried(5 * SECOND, BOOM)))
    rig.clock.go(5)
    await rig.turn(0)
    rig.clock.go(3)
    await rig.claim()
    _, waits, waited, _ = await row(rig)
    assert waits == 2
    assert abs(waited - 3 * SECOND) <= 3


async def test_in_an_order_a_job_waits_from_when_it_came(rig: Rig) -> None:
    await rig.declare(order=Order.TENANT)
    await rig.add("one", "two", lane="@a", chain="t/a", priority=50)
    lease = await rig.claim()
    rig.clock.go(4)
    await rig.turn(1, ("one", lease, Completed()))
    _, waits, waited, _ = await row(rig)
    assert waits == 2
    assert abs(waited - 4 * SECOND) <= 4


async def test_of_jobs_that_start_together_one_is_asked(rig: Rig) -> None:
    await rig.declare(fair=True)
    for job in range(9):
        await rig.add(f"job{job}", lane="@a")
        rig.clock.go(1)
    await rig.claim(9)
    given, waits, waited, _ = await row(rig)
    assert (given, waits) == (9000, 1)
    assert abs(waited - 5 * SECOND) <= 2  # the middle one of 9, 8, … 1 seconds


async def test_a_lane_over_its_limit_is_throttled_until_it_is_served_again(rig: Rig) -> None:
    await rig.declare(tenant_limits=[Limit("1/10s")])
    await rig.add("one", "two", lane="@a")
    await take(rig, 2)
    assert (await rig.dump())["throttled"] == {"@a": str(T0)}
    rig.clock.go(4)
    assert (await read(rig))[0].throttled_us == {"a": 4 * SECOND}
    rig.clock.go(8)
    await take(rig, 2)
    assert (await row(rig))[3] == 12 * SECOND
    assert "throttled" not in await rig.dump()
    assert (await read(rig))[0].throttled_us == {"a": 12 * SECOND}


async def test_a_lane_that_waits_for_its_own_jobs_is_throttled_until_one_ends(rig: Rig) -> None:
    await rig.declare(tenant_max_running=1)
    await rig.add("one", "two", "three", lane="@a")
    lease = await take(rig, 3)
    rig.clock.go(7)
    await rig.turn(2, ("one", lease, Completed()))
    rig.clock.go(5)
    assert (await row(rig))[3] == 7 * SECOND
    assert (await read(rig))[0].throttled_us == {"a": 12 * SECOND}


async def test_a_hold_is_told_minute_by_minute(rig: Rig) -> None:
    await rig.declare(fair=True)
    await rig.add("one", "two", lane="@a")
    lease = await rig.claim()
    await rig.turn(0, ("one", lease, Limited(130 * SECOND, scope="tenant")))
    rig.clock.go(130)
    before = [minute.throttled_us for minute in await read(rig, 2)]
    await rig.claim()
    after = [minute.throttled_us for minute in await read(rig, 2)]
    last = 130 * SECOND - (MINUTE - INTO) - MINUTE
    assert before == after == [{"a": MINUTE - INTO}, {"a": MINUTE}, {"a": last}]
    assert [await row(rig, minute=FIRST + n) for n in (1,)] == [[0, 0, 0, MINUTE]]


async def test_a_lane_that_is_looked_at_and_parked_again_stays_throttled(rig: Rig) -> None:
    await rig.declare(tenant_max_running=1)
    await rig.add("one", "two", lane="@a")
    await take(rig, 2)
    for _ in range(5):
        rig.clock.go(1)
        await rig.turn(1, is_sweep=True)
    assert (await row(rig))[3] == 5 * SECOND
    assert (await rig.dump())["throttled"] == {"@a": str(T0 + 5 * SECOND)}


async def test_what_is_cancelled_is_throttled_no_longer(rig: Rig) -> None:
    await rig.declare(tenant_limits=[Limit("1/min")])
    await rig.add("one", "two", lane="@a")
    await take(rig, 2)
    rig.clock.go(3)
    await rig.engine.cancel(rig.queue, ["two"])
    rig.clock.go(3)
    assert "throttled" not in await rig.dump()
    assert (await read(rig))[0].throttled_us == {"a": 3 * SECOND}


async def test_a_released_tenant_is_throttled_no_longer(rig: Rig) -> None:
    await rig.declare(fair=True)
    await rig.engine.tenant(rig.queue, "@a", {"held_until": "0"}, by="ops")
    await rig.add("one", lane="@a")
    await rig.turn(1)
    rig.clock.go(3)
    await rig.engine.tenant(rig.queue, "@a", {"held_until": ""}, by="ops")
    rig.clock.go(3)
    assert (await read(rig))[0].throttled_us == {"a": 3 * SECOND}


async def test_a_clock_that_was_set_back_takes_nothing_away(rig: Rig) -> None:
    await rig.declare(tenant_max_running=1)
    await rig.add("one", "two", lane="@a")
    lease = await take(rig, 2)
    rig.clock.go(-5)
    await rig.turn(1, ("one", lease, Completed()))
    assert (await row(rig))[3] == 0


async def test_minutes_are_read_with_the_means_of_their_waits(rig: Rig) -> None:
    await rig.declare(fair=True)
    await rig.add("one", lane="@a")
    await rig.add("two", lane="@")
    rig.clock.go(1)
    await rig.claim(2)
    (now,) = await read(rig)
    assert now.given == {"a": 1, "": 1}
    assert {tenant: one.number for tenant, one in now.waits.items()} == {"a": 1, "": 1}
    assert now.waits["a"].mean_us == pytest.approx(SECOND, abs=2)
    assert Waits(0, 0).mean_us is None
    assert now.throttled_us == {}
