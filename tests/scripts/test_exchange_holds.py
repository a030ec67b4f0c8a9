"""exchange.lua: a queue that is held is not served."""

from __future__ import annotations

from faena.outcomes import Limited
from tests._support.rig import SECOND, T0, Rig


async def test_a_held_queue_settles_but_does_not_serve(rig: Rig) -> None:
    await rig.add("a", "b")
    lease = await rig.claim()
    await rig.engine.hold("q", "pause", None, "ops")
    exchanged = await rig.turn(1, ("a", lease, Limited(0)))
    assert (exchanged.claimed, exchanged.gate, exchanged.lost) == ([], "held pause", [])
    assert exchanged.next_at == 0


async def test_a_held_queue_says_when_it_opens(rig: Rig) -> None:
    await rig.add("a")
    await rig.engine.hold("q", "breaker", 5 * SECOND, "ops")
    assert (await rig.turn(1)).next_at == T0 + 5 * SECOND


async def test_the_longest_hold_decides(rig: Rig) -> None:
    await rig.add("a")
    await rig.engine.hold("q", "breaker", 5 * SECOND, "ops")
    await rig.engine.hold("q", "budget", 9 * SECOND, "ops")
    exchanged = await rig.turn(1)
    assert (exchanged.gate, exchanged.next_at) == ("held budget", T0 + 9 * SECOND)


async def test_a_hold_that_is_over_is_swept_away(rig: Rig) -> None:
    await rig.add("a")
    await rig.engine.hold("q", "breaker", 5 * SECOND, "ops")
    await rig.engine.hold("q", "budget", 9 * SECOND, "ops")
    rig.clock.go(5)
    await rig.turn(1)
    assert list((await rig.dump())["holds"]) == ["budget"]
    rig.clock.go(4)
    assert len((await rig.turn(1)).claimed) == 1
    assert "holds" not in await rig.dump()


async def test_rate_limits_extend_each_other_and_never_shorten(rig: Rig) -> None:
    await rig.add("a", "b")
    lease = await rig.claim(2)
    await rig.turn(0, ("a", lease, Limited(9 * SECOND)), ("b", lease, Limited(3 * SECOND)))
    assert (await rig.dump())["holds"] == {"rate_limited": f"{T0 + 9 * SECOND} handler {T0}"}


async def test_a_rate_limit_does_not_end_a_hold_without_end(rig: Rig) -> None:
    await rig.add("a")
    lease = await rig.claim()
    await rig.engine.hold("q", "rate_limited", None, "ops")
    await rig.turn(0, ("a", lease, Limited(9 * SECOND)))
    assert (await rig.dump())["holds"] == {"rate_limited": f"0 ops {T0}"}
