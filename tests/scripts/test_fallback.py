"""Events about jobs that fell back, and about calls whose fallback failed."""

from __future__ import annotations

import pytest

from faena.engine.calls.resilience import SHARD
from faena.inspection.job_view import read_job
from faena.job import JobView
from faena.outcomes import Completed
from tests._support.rig import Rig
from tests._support.upstream_rig import UpstreamRig


async def view_of(rig: Rig) -> JobView:
    (look,) = await rig.engine.look(rig.queue, ["one"])
    assert look is not None
    return read_job(rig.queue, "one", look)


@pytest.mark.parametrize("event", ["fell_back", "escalated", "fallback_failed"])
async def test_a_job_that_fell_back_is_told_and_counted(rig: Rig, event: str) -> None:
    await rig.add("one")
    assert await rig.engine.ask("fallback", rig.queue, event=event, what="one") == b"OK"
    rows = await rig.engine.command("XREVRANGE", rig.queue, "events", "+", "-", "COUNT", 1)
    assert rows[0][1][-2:] == [event.encode(), b"one"]


@pytest.mark.parametrize("event", ["fell_back", "escalated"])
async def test_what_was_used_is_kept_under_the_lease_of_the_job(rig: Rig, event: str) -> None:
    await rig.add("one")
    lease = await rig.claim()
    named = {"event": event, "what": "one", "used": "people/attend two"}
    await rig.engine.ask("fallback", rig.queue, lease="another", **named)
    assert (await view_of(rig)).fallback is None
    await rig.engine.ask("fallback", rig.queue, lease=lease, **named)
    view = await view_of(rig)
    assert (view.fallback, view.handed_to) == ("people/attend", "two")
    await rig.turn(0, ("one", lease, Completed()))
    assert (await view_of(rig)).fallback == "people/attend"


async def test_what_was_used_goes_with_a_lost_worker(rig: Rig) -> None:
    await rig.add("one")
    named = {"event": "fell_back", "what": "one", "used": "canned"}
    await rig.engine.ask("fallback", rig.queue, lease=await rig.claim(), **named)
    rig.clock.go(3600)
    await rig.turn(0)
    view = await view_of(rig)
    assert (view.losses, view.fallback) == (1, None)


async def test_a_call_whose_fallback_failed_is_told_of_its_upstream(upstreams: UpstreamRig) -> None:
    named = {"event": "fallback_failed", "what": "afip", "is_upstreams": "1"}
    assert await upstreams.engine.ask("fallback", SHARD, **named) == b"OK"
    assert await upstreams.events() == ["upstream_fallback_failed afip"]


async def test_another_word_is_refused(rig: Rig) -> None:
    await rig.add("one")
    assert await rig.engine.ask("fallback", rig.queue, event="x", what="one") == b"UNKNOWN_EVENT"
