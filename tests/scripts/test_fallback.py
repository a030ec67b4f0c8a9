"""Events about jobs that fell back, and about calls whose fallback failed."""

from __future__ import annotations

import pytest

from faena.engine.calls.resilience import SHARD
from tests._support.rig import Rig
from tests._support.upstream_rig import UpstreamRig


@pytest.mark.parametrize("event", ["fell_back", "escalated", "fallback_failed"])
async def test_a_job_that_fell_back_is_told_and_counted(rig: Rig, event: str) -> None:
    await rig.add("one")
    assert await rig.engine.ask("fallback", rig.queue, event=event, what="one") == b"OK"
    rows = await rig.engine.command("XREVRANGE", rig.queue, "events", "+", "-", "COUNT", 1)
    assert rows[0][1][-2:] == [event.encode(), b"one"]


async def test_a_call_whose_fallback_failed_is_told_of_its_upstream(upstreams: UpstreamRig) -> None:
    named = {"event": "fallback_failed", "what": "afip", "is_upstreams": "1"}
    assert await upstreams.engine.ask("fallback", SHARD, **named) == b"OK"
    assert await upstreams.events() == ["upstream_fallback_failed afip"]


async def test_another_word_is_refused(rig: Rig) -> None:
    await rig.add("one")
    assert await rig.engine.ask("fallback", rig.queue, event="x", what="one") == b"UNKNOWN_EVENT"
