"""Jobs out of the outbox of a database tell it that they have ended, and come once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from faena.engine.calls.flows import FlowCalls
from faena.options import Backpressure, Retain
from faena.outcomes import Buried, Completed, ErrorRecord, Outcome
from tests._support.rig import SECOND, T0, Rig

TELLS = {"tells": "o:@db:job:", "by": T0 + 45 * SECOND, "digest": "d"}
BOOM = ErrorRecord(name="Boom", message="it broke")


async def told(rig: Rig) -> list[list[Any]]:
    messages = await FlowCalls(rig.engine).messages("q", "@db")
    return [msgspec.msgpack.decode(one.words) for one in messages]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(Completed(), "completed"), (Buried(BOOM), "dead")],
    ids=["well", "badly"],
)
async def test_the_end_of_a_job_is_told_once(rig: Rig, outcome: Outcome, state: str) -> None:
    await rig.run("a", outcome, **TELLS)
    assert await told(rig) == [["settled", ["a", state]]]


async def test_jobs_that_end_together_share_a_message(rig: Rig) -> None:
    await rig.add("a", "b", **TELLS)
    lease = await rig.claim(2)
    await rig.turn(0, ("a", lease, Completed()), ("b", lease, Completed(b"1")))
    assert await told(rig) == [["settled", ["a", "completed", "b", "completed"]]]


async def test_a_job_that_is_removed_or_cancelled_is_told_as_such(rig: Rig) -> None:
    await rig.add("a", "b", **TELLS)
    assert await rig.engine.remove("q", ["a"]) == ["removed"]
    assert await rig.engine.cancel("q", ["b"]) == ["cancelled"]
    assert await told(rig) == [["settled", ["a", "cancelled"]], ["settled", ["b", "cancelled"]]]


async def test_a_job_that_has_come_and_gone_does_not_come_again(rig: Rig) -> None:
    await rig.declare(retain=Retain(completed_count=0))
    await rig.run("a", Completed(), **TELLS)
    assert await rig.states() == {}
    assert [one.code for one in await rig.add("a", **TELLS)] == ["DUPLICATE"]
    assert await rig.states() == {}


async def test_who_sends_too_late_must_look_again(rig: Rig) -> None:
    rig.clock.go(46)
    assert [one.code for one in await rig.add("a", **TELLS)] == ["LATE"]
    assert await rig.states() == {}


async def test_an_outbox_waits_where_the_queue_is_full(rig: Rig) -> None:
    await rig.declare(backpressure=Backpressure(soft=None, hard=1))
    answers = await rig.add("a", "b", **TELLS)
    assert [one.code for one in answers] == ["CREATED", "OVERLOADED"]
