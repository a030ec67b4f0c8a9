"""hold.lua"""

from __future__ import annotations

import pytest

from tests._support.rig import SECOND, T0, Rig


async def test_a_hold_has_a_reason_an_end_and_an_author(rig: Rig) -> None:
    assert await rig.engine.hold("q", "pause", None, "ops")
    assert await rig.engine.hold("q", "breaker", 5 * SECOND, "guard")
    assert await rig.dump() == {
        "holds": {"pause": f"0 ops {T0}", "breaker": f"{T0 + 5 * SECOND} guard {T0}"}
    }


async def test_the_second_hold_of_a_reason_is_known_and_takes_its_place(rig: Rig) -> None:
    await rig.engine.hold("q", "breaker", 5 * SECOND, "guard")
    await rig.remember()
    assert not await rig.engine.hold("q", "breaker", 5 * SECOND, "guard")
    assert await rig.is_untouched()
    rig.clock.go(1)
    assert not await rig.engine.hold("q", "breaker", None, "ops")
    assert await rig.changed() == {"holds": {"breaker": f"0 ops {T0 + SECOND}"}}


async def test_releasing_ends_a_hold_and_wakes_a_worker(rig: Rig) -> None:
    await rig.engine.hold("q", "pause", None, "ops")
    await rig.engine.hold("q", "panic", None, "ops")
    await rig.remember()
    assert await rig.engine.release("q", "pause")
    assert await rig.changed() == {"holds": {"panic": f"0 ops {T0}"}, "wake": [("work", 0.0)]}


async def test_releasing_what_is_not_held_changes_nothing(rig: Rig) -> None:
    await rig.engine.hold("q", "pause", None, "ops")
    await rig.engine.release("q", "pause")
    await rig.remember()
    assert not await rig.engine.release("q", "pause")
    assert await rig.is_untouched()


async def test_a_hold_whose_time_is_over_counts_as_none(rig: Rig) -> None:
    await rig.engine.hold("q", "breaker", 5 * SECOND, "guard")
    rig.clock.go(5)
    assert not await rig.engine.release("q", "breaker")
    await rig.engine.hold("q", "breaker", 5 * SECOND, "guard")
    rig.clock.go(5)
    assert await rig.engine.hold("q", "breaker", 5 * SECOND, "guard")


@pytest.mark.parametrize(
    ("known", "until"),
    [(None, 5), (1 * SECOND, 5), (9 * SECOND, 9), ("for good", 0)],
)
async def test_a_hold_that_is_the_least_shortens_no_other(
    rig: Rig, known: int | str | None, until: int
) -> None:
    if known is not None:
        lasting = known if isinstance(known, int) else None
        await rig.engine.hold("q", "rate_limited", lasting, "ops")
    longer = {"reason": "rate_limited", "duration": 5 * SECOND, "stays": "1"}
    await rig.engine.ask("hold", "q", by="handler", **longer)
    held_until = (await rig.dump())["holds"]["rate_limited"].split()[0]
    assert held_until == str(T0 + until * SECOND if until else 0)
