"""Whom a job tells of its end: what is stored of that may be anything."""

from __future__ import annotations

import msgspec
import pytest

from faena.outcomes import Buried, Completed
from tests._support.rig import BOOM, KEEP_NONE, Rig

NOBODY = ["x", "f", "f:q", "f:q:f", "h:q:f:1", "::::", "g:::"]


@pytest.mark.parametrize("tells", NOBODY)
async def test_a_job_that_tells_nobody_ends_with_the_others(rig: Rig, tells: str) -> None:
    await rig.add("bad", "worse", tells=tells)
    await rig.add("a", "b", "c", "d")
    lease = await rig.claim(6)
    ends = [(job, lease, Completed()) for job in ("a", "bad", "b", "c")]
    await rig.turn(0, *ends, ("d", lease, Buried(BOOM)), ("worse", lease, Buried(BOOM)))
    states = await rig.states()
    assert [states[job] for job in ("a", "b", "bad", "c")] == ["completed"] * 4
    assert [states[job] for job in ("d", "worse")] == ["dead"] * 2


@pytest.mark.parametrize("told", [1, True, ["f"], {"f": "q"}])
async def test_a_mark_that_names_nobody_keeps_no_job_from_its_end(rig: Rig, told: object) -> None:
    await rig.declare(retain=KEEP_NONE)
    await rig.add("bad", "good")
    mark = msgspec.msgpack.encode({"w": told, "z": "." * 64})
    await rig.engine.command("HSET", "q", "marks", "bad", mark)
    lease = await rig.claim(2)
    await rig.turn(0, ("bad", lease, Completed()), ("good", lease, Completed()))
    assert await rig.states() == {}
