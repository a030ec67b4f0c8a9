"""desk_groups.lua"""

from __future__ import annotations

from tests._support.desk_rig import DeskRig
from tests._support.rig import SECOND, T0, Rig


async def test_groups_come_by_their_pending_jobs_with_a_sample_and_their_ends(rig: Rig) -> None:
    desk_rig = DeskRig(rig)
    await desk_rig.bury("a", code="E1")
    rig.clock.go(1)
    await desk_rig.bury("b", "c", name="Bang", fingerprint="f01")
    rig.clock.go(1)
    await desk_rig.bury("d")
    await desk_rig.dismiss("resolved", "d")
    await rig.remember()
    first, second = await desk_rig.calls.groups("q", 10)
    assert first[:6] == ("f01", "Bang", None, "it broke", 2, 2)
    assert (second.fingerprint, second.code, second.pending, second.total) == ("f00", "E1", 1, 2)
    assert second[6:] == (T0, T0 + 2 * SECOND, "d")
    assert len(await desk_rig.calls.groups("q", 1)) == 1
    assert await rig.is_untouched()


async def test_a_group_goes_with_its_last_job(rig: Rig) -> None:
    desk_rig = DeskRig(rig)
    await desk_rig.bury("a")
    await desk_rig.dismiss("resolved", "a")
    assert len(await desk_rig.calls.groups("q", 10)) == 1
    await rig.engine.clean("q", "dead", 0, 10)
    assert await desk_rig.calls.groups("q", 10) == []
