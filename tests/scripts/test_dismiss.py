"""dismiss.lua"""

from __future__ import annotations

import pytest

from tests._support.desk_rig import WHY, DeskRig
from tests._support.rig import SECOND, T0, Rig


@pytest.mark.parametrize("status", ["discarded", "resolved"])
async def test_a_job_that_is_dealt_with_stays_and_says_how(
    rig: Rig, desk_rig: DeskRig, status: str
) -> None:
    await desk_rig.bury("a", "b", retry_us=SECOND, most=2)
    rig.clock.go(3)
    await rig.remember()
    assert await desk_rig.dismiss(status, "a") == ["OK"]
    assert await rig.changed() == {}  # but for the desk
    taken = await rig.dump()
    action = "discard" if status == "discarded" else "manual"
    record = taken["desk"]["a"]
    assert (record["s"], record["r"]) == (status, [action, *WHY[1:], T0 + 3 * SECOND])
    assert taken[f"desk:status:{status}"] == [("a", T0)]
    assert taken["desk_groups"] == [("f00", 1.0)]
    assert [job for job, _ in taken["desk_due"]] == ["b"]
    assert (await rig.events())[-1] == {"by": "ana", f"dead_{status}": "a"}


async def test_what_is_not_pending_is_refused(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", "b")
    await desk_rig.dismiss("resolved", "a")
    await rig.add("waits", delay=SECOND)
    await rig.remember()
    answers = await desk_rig.dismiss("discarded", "a", "waits", "never")
    assert answers == ["resolved", "delayed", "unknown"]
    assert await rig.changed() == {}
    assert (await rig.dump())["desk"]["a"]["r"][0] == "manual"


DISCARD = {
    "caller": "me",
    "id_of_call": "call",
    "status": "discarded",
    "action": "discard",
    "reason": "old",
    "by": "ana",
}


async def test_a_call_that_is_sent_again_is_answered_alike(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a")
    assert await rig.engine.ask("dismiss", "q", "a", **DISCARD) == [b"OK"]
    await rig.remember()
    assert await rig.engine.ask("dismiss", "q", "a", **DISCARD) == [b"OK"]
    assert await rig.is_untouched()


async def test_a_queue_without_settings_has_nothing_to_dismiss(rig: Rig) -> None:
    assert await rig.engine.ask("dismiss", "q", "a", **DISCARD) == [b"UNCONFIGURED"]
    assert await rig.dump() == {}


async def test_retention_takes_them_with_all_that_knows_them(rig: Rig, desk_rig: DeskRig) -> None:
    await desk_rig.bury("a", "b", "c", retry_us=SECOND, most=2)
    await desk_rig.dismiss("discarded", "a")
    await desk_rig.retry_as_new("b")
    await rig.engine.clean("q", "dead", 0, 100)
    assert not [name for name in await rig.dump() if name.startswith("desk")]
