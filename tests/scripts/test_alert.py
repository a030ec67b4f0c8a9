"""alert.lua"""

from __future__ import annotations

from tests._support.desk_rig import DeskRig
from tests._support.rig import SECOND, T0, Rig


async def test_a_condition_is_told_once_an_hour_by_whoever_notices(rig: Rig) -> None:
    await rig.declare()
    calls = DeskRig(rig).calls
    assert await calls.alert("q", {"dead_surge": "11", "dead_old": "a"}) == [
        "dead_surge",
        "dead_old",
    ]
    assert (await rig.events())[-1] == {"worker": "", "dead_surge": "11", "dead_old": "a"}
    assert (await rig.dump())["desk_alerts"] == {"dead_surge": str(T0), "dead_old": str(T0)}
    await rig.remember()
    rig.clock.go(3599)
    assert await calls.alert("q", {"dead_surge": "12"}) == []
    assert await rig.is_untouched()
    assert await calls.alert("q", {"dead_surge": "12", "dead_many": "101"}) == ["dead_many"]
    rig.clock.go(1)
    assert await calls.alert("q", {"dead_surge": "13"}) == ["dead_surge"]


async def test_a_queue_without_settings_is_declared_first(rig: Rig) -> None:
    assert await rig.engine.ask("alert", "q", "dead_many", "101") == [b"UNCONFIGURED"]
    assert await rig.dump() == {}


async def test_a_clock_that_was_set_back_silences_nobody(rig: Rig) -> None:
    await rig.declare()
    calls = DeskRig(rig).calls
    await calls.alert("q", {"dead_many": "101"})
    rig.clock.now -= 7 * 86400 * SECOND
    assert await calls.alert("q", {"dead_many": "101"}) == ["dead_many"]
