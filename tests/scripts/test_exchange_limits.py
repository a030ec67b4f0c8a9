"""exchange.lua: limits and max_running."""

from __future__ import annotations

from faena.limits import Limit
from faena.outcomes import Completed, Released
from tests._support.rig import SECOND, T0, Rig

MINUTE = 60 * SECOND


async def ids(rig: Rig, want: int) -> list[str]:
    return [claim.id for claim in (await rig.turn(want)).claimed]


async def test_a_granted_claim_is_written_into_the_window(rig: Rig) -> None:
    await rig.declare(limits=[Limit("3/min")])
    await rig.add("a", "b")
    await rig.remember()
    await rig.turn(2)
    changed = await rig.changed()
    assert changed["window:60000000"] == [f"{T0} 2"]
    assert changed["clock"]["window:60000000"] == 2
    assert "window:60000000" in (await rig.dump()).mortal


async def test_a_refused_claim_burns_nothing_and_says_when_to_come_back(rig: Rig) -> None:
    await rig.declare(limits=[Limit("1/min")])
    await rig.add("a", "b")
    await rig.claim()
    rig.clock.go(59.999999)
    lists = {name: content for name, content in (await rig.dump()).items() if "window" in name}
    exchanged = await rig.turn(5)
    assert (exchanged.claimed, exchanged.gate, exchanged.more) == ([], "limit", False)
    assert exchanged.next_at == T0 + MINUTE
    after = {name: content for name, content in (await rig.dump()).items() if "window" in name}
    assert after == lists
    rig.clock.go(0.000001)
    assert await ids(rig, 5) == ["a"]


async def test_a_window_opens_when_its_oldest_claim_leaves(rig: Rig) -> None:
    await rig.declare(limits=[Limit("2/min")], lease="1h")
    await rig.add("a", "b", "c", "d")
    assert await ids(rig, 1) == ["a"]
    rig.clock.go(20)
    assert await ids(rig, 5) == ["b"]
    rig.clock.go(20)
    exchanged = await rig.turn(5)
    assert (exchanged.claimed, exchanged.next_at) == ([], T0 + MINUTE)
    rig.clock.go(20)
    assert await ids(rig, 5) == ["c"]
    assert (await rig.dump())["window:60000000"] == [f"{T0 + 20 * SECOND} 1", f"{T0 + MINUTE} 1"]


async def test_the_tightest_of_several_limits_decides(rig: Rig) -> None:
    await rig.declare(limits=[Limit("2/s"), Limit("3/min")], lease="1h")
    await rig.add(*"abcdef")
    assert await ids(rig, 9) == ["a", "b"]
    rig.clock.go(1)
    exchanged = await rig.turn(9)
    assert [claim.id for claim in exchanged.claimed] == ["c"]
    assert exchanged.next_at == T0 + MINUTE
    rig.clock.go(1)
    assert await ids(rig, 9) == []


async def test_a_job_given_back_has_spent_its_claim(rig: Rig) -> None:
    await rig.declare(limits=[Limit("1/min")])
    await rig.add("a")
    lease = await rig.claim()
    assert (await rig.turn(1, ("a", lease, Released()))).claimed == []


async def test_a_large_window_is_kept_in_buckets_that_leave_with_their_youngest_claim(
    rig: Rig,
) -> None:
    await rig.declare(limits=[Limit(max=1001, per="10s")])
    await rig.add(*(f"job{number}" for number in range(4)))
    rig.clock.go(0.001)
    await rig.claim()
    rig.clock.go(0.007)
    await rig.claim()
    assert (await rig.dump())["window:10000000"] == [f"{T0 + 8_000} 2"]
    rig.clock.go(0.002)
    await rig.claim()
    assert (await rig.dump())["window:10000000"] == [f"{T0 + 8_000} 2", f"{T0 + 10_000} 1"]


async def test_a_bucket_never_leaves_earlier_because_the_clock_went_back(rig: Rig) -> None:
    await rig.declare(limits=[Limit(max=1001, per="10s")])
    await rig.add("a", "b")
    rig.clock.go(0.008)
    await rig.claim()
    rig.clock.go(-0.004)
    await rig.claim()
    assert (await rig.dump())["window:10000000"] == [f"{T0 + 8_000} 2"]


async def test_a_sum_whose_list_has_expired_starts_anew(rig: Rig) -> None:
    await rig.declare(limits=[Limit("1/min")])
    await rig.add("a", "b")
    await rig.claim()
    await rig.engine.wire.call("DEL", rig.engine._keys_of("q")("window:60000000"))
    assert await ids(rig, 1) == ["b"]
    assert (await rig.dump())["clock"]["window:60000000"] == 1


async def test_a_limit_changed_at_run_time_is_obeyed_by_the_next_call(rig: Rig) -> None:
    await rig.declare(limits=[Limit("1/min")])
    await rig.add("a", "b", "c", "d")
    await rig.claim()
    await rig.edit(limits="3/60000000")
    assert await ids(rig, 9) == ["b", "c"]
    await rig.edit(limits="1/60000000")
    assert await ids(rig, 9) == []
    await rig.edit(limits="")
    assert await ids(rig, 9) == ["d"]


async def test_no_more_than_max_running_are_leased(rig: Rig) -> None:
    await rig.declare(max_running=2)
    await rig.add("a", "b", "c", "d")
    exchanged = await rig.turn(3)
    lease = exchanged.claimed[0].lease
    assert (len(exchanged.claimed), exchanged.gate, exchanged.more) == (2, "max_running", False)
    assert await ids(rig, 1) == []
    exchanged = await rig.turn(2, ("a", lease, Completed()))
    assert [claim.id for claim in exchanged.claimed] == ["c"]


async def test_a_lost_worker_gives_its_room_back(rig: Rig) -> None:
    await rig.declare(max_running=1)
    await rig.add("a")
    await rig.claim()
    rig.clock.go(30)
    assert await ids(rig, 1) == ["a"]


async def test_a_full_queue_wakes_nobody_when_its_worker_wants_no_more(rig: Rig) -> None:
    await rig.declare(max_running=1)
    await rig.add("a", "b")
    await rig.claim()
    await rig.engine.wire.call("DEL", rig.engine.wake_key("q"))
    exchanged = await rig.turn(0)
    assert (exchanged.gate, exchanged.more) == ("max_running", False)
    assert "wake" not in await rig.dump()


async def test_a_spent_limit_tells_when_it_opens_even_who_wants_no_more(rig: Rig) -> None:
    await rig.declare(limits=[Limit("1/s")])
    await rig.add("a", "b")
    await rig.claim()
    await rig.engine.wire.call("DEL", rig.engine.wake_key("q"))
    exchanged = await rig.turn(0)
    assert (exchanged.gate, exchanged.next_at) == ("limit", T0 + SECOND)
    assert "wake" not in await rig.dump()
    rig.clock.go(1)
    assert (await rig.turn(0)).gate == ""
    assert (await rig.dump())["wake"] == [("work", 0.0)]
