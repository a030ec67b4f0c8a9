"""briefs.lua"""

from __future__ import annotations

from tests._support.rig import Rig


async def test_a_job_is_told_by_its_task_and_lane(rig: Rig) -> None:
    await rig.declare(fair=True)
    await rig.add("a", body=b'{"task":"send","payload":{"task":"no"}}', lane="@acme")
    await rig.add("b", body=b'{"task":"send.now"}')
    await rig.add("odd", body=b"{}")
    await rig.remember()
    told = await rig.engine.ask("briefs", "q", "a", "b", "odd", "gone")
    assert told[:2] == [b"send", b"@acme"]
    assert told[2] == b"send.now"
    assert (told[4], told[6:]) == (b"", [b"", b""])
    assert await rig.is_untouched()
