"""desk_stats.lua"""

from __future__ import annotations

from faena.engine.calls.deadletter import Position
from tests._support.desk_rig import DeskRig
from tests._support.rig import SECOND, T0, Rig


async def test_numbers_of_the_desk(rig: Rig) -> None:
    desk_rig = DeskRig(rig)
    await desk_rig.bury("a", "b", retry_us=SECOND, most=2)
    rig.clock.go(3600)
    await desk_rig.bury("c", retry_us=SECOND, most=2, fingerprint="f01")
    await desk_rig.dismiss("discarded", "a")
    await rig.remember()
    numbers = await desk_rig.calls.numbers("q", new_us=60 * SECOND, due=10)
    assert numbers.now == T0 + 3600 * SECOND
    assert numbers.statuses == {"pending": 2, "retried": 0, "discarded": 1, "resolved": 0}
    assert numbers.oldest == Position(str(T0), "b")
    assert (numbers.new, numbers.groups, numbers.due) == (1, 2, 2)
    assert numbers.due_now == ["b"]
    assert await rig.is_untouched()


async def test_an_empty_desk_counts_nothing(rig: Rig) -> None:
    numbers = await DeskRig(rig).calls.numbers("q", new_us=SECOND)
    assert (numbers.oldest, numbers.new, numbers.groups) == (None, 0, 0)
    assert set(numbers.statuses.values()) == {0}
