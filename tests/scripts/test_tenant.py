"""tenant.lua"""

from __future__ import annotations

import pytest

from faena.engine.scripts import pairs
from faena.errors import HomesChanged
from tests._support.removal import Removal
from tests._support.rig import SECOND, T0, Rig


async def test_an_override_is_read_as_it_was_written_and_ends_by_itself(rig: Rig) -> None:
    await rig.declare()
    changes = {"weight": "2.5", "limits": "5/1000000"}
    await rig.engine.tenant("q", "@a", changes, by="ops", duration_us=10 * SECOND)
    fields, live, running, again = await rig.engine.tenant("q", "@a")
    assert pairs(fields) == {
        "weight": b"2.5",
        "limits": b"5/1000000",
        "by": b"ops",
        "at": str(T0).encode(),
        "ends_at": str(T0 + 10 * SECOND).encode(),
    }
    assert (live, running, again) == (0, 0, b"")
    rig.clock.go(10)
    assert (await rig.engine.tenant("q", "@a"))[0] == []
    assert "tenants" not in await rig.dump()


async def test_whoever_knows_older_homes_is_refused_and_nothing_changes(
    rig: Rig, removal: Removal
) -> None:
    await rig.add("a", lane="@a")
    await removal.place(epoch=2)
    await rig.remember()
    for changes in ({"held_until": "0", "reason": "unpaid"}, None):
        with pytest.raises(HomesChanged):
            await rig.engine.tenant("q", "@a", changes, epoch=1, by="ops")
    assert await rig.is_untouched()
    await rig.engine.tenant("q", "@a", {"weight": "2"}, epoch=2, by="ops")
    assert pairs((await rig.engine.tenant("q", "@a", epoch=3))[0])["weight"] == b"2"


async def test_a_home_that_was_given_up_takes_no_decision(rig: Rig, removal: Removal) -> None:
    await removal.place(epoch=2)
    assert await removal.moving.vacate("q", 2)
    await rig.remember()
    with pytest.raises(HomesChanged):
        await rig.engine.tenant("q", "@a", {"weight": "2"}, epoch=1, by="ops")
    assert await rig.is_untouched()


async def test_a_lane_that_leaves_is_decided_about_at_its_new_home_only(
    rig: Rig, removal: Removal
) -> None:
    await rig.add("a", lane="@a")
    await removal.hand_over("@a")
    await rig.remember()
    with pytest.raises(HomesChanged):
        await rig.engine.tenant("q", "@a", {"weight": "2"}, by="ops")
    assert await rig.is_untouched()
    assert (await rig.engine.tenant("q", "@a"))[1] == 1  # it may be looked at
