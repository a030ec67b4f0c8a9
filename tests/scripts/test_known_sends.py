"""known_sends.lua"""

from __future__ import annotations

from faena.engine.calls.flows import FlowCalls
from faena.outcomes import Completed
from tests._support.rig import KEEP_NONE, Rig


async def test_what_was_sent_and_has_ended_is_known_for_a_while(rig: Rig) -> None:
    flows = FlowCalls(rig.engine)
    await rig.declare(retain=KEEP_NONE)
    await rig.run("ours", Completed(), tells="o:@db:job:9a")
    await rig.run("node", Completed(), tells="f:other:f:1")
    await rig.run("plain", Completed())
    await rig.add("waits", tells="o:@db:job:9b")
    await rig.remember()
    asked = ("ours", "node", "plain", "waits", "never")
    assert await flows.known_sends("q", asked) == ["digest=9a", "completed", "", "", ""]
    assert await flows.known_sends("q", []) == []
    assert await rig.is_untouched()
