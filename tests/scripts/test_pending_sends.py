"""`pending sends`: what is to be sent or cancelled, with what came of those before; and once."""

from __future__ import annotations

import pytest

from faena.engine.calls.flows import FlowCalls, Made
from faena.options import Backpressure
from faena.outcomes import Completed
from tests._support.rig import KEEP_NONE, SECOND, T0, Rig
from tests.scripts.test_flow import node


@pytest.fixture
def mail(rig: Rig) -> FlowCalls:
    return FlowCalls(rig.engine)


async def test_a_pending_send_tells_queue_job_and_what_it_is_made_of(
    rig: Rig, mail: FlowCalls
) -> None:
    await mail.flow("q", "f", "put", *node(rig, 1, 0), run=1)
    await mail.flow("q", "f", "start", run=1, nodes=1, left=1)
    now, (pending,) = await mail.pending_sends("q", 0)
    assert now == T0
    assert pending == ("f:f:1:f.1", "q", "f.1", b"\x90", [])
    assert await mail.pending_sends("q", 1) == (T0, [])


async def test_nothing_is_cancelled_before_it_was_sent(rig: Rig, mail: FlowCalls) -> None:
    await mail.flow("q", "f", "put", *node(rig, 1, 0), run=1)
    await mail.flow("q", "f", "start", run=1, nodes=1, left=1)
    await mail.flow("q", "f", "cancel")
    _, pending_sends = await mail.pending_sends("q", 0)
    assert [(one.name, one.queue) for one in pending_sends] == [
        ("f:f:1:f.1", "q"),
        ("x:f:1:f.1", ""),
    ]
    assert not pending_sends[1].is_gone
    await mail.done("q", ["f:f:1:f.1"])
    _, pending_sends = await mail.pending_sends("q", 0)
    assert [(one.name, one.queue, one.made) for one in pending_sends] == [("x:f:1:f.1", "q", b"")]


async def test_a_pending_send_of_a_group_tells_its_counts(rig: Rig, mail: FlowCalls) -> None:
    made = Made("elsewhere", 10, {"delay": 5}, "{}", "q.g.complete")
    await mail.open_group("q", "g", {"complete": made.pack()})
    await mail.seal_group("q", "g", 0)
    _, (pending,) = await mail.pending_sends("q", 0)
    assert (pending.queue, pending.job, Made.unpack(pending.made)) == (
        "elsewhere",
        "q.g.complete",
        made,
    )
    assert pending.inputs == [b"total", 0, b"completed", 0, b"dead", 0, b"cancelled", 0]


async def test_a_job_that_comes_late_is_refused(rig: Rig) -> None:
    assert [one.code for one in await rig.add("a", by=T0, digest="d")] == ["CREATED"]
    rig.clock.go(1)
    (answer,) = await rig.add("b", by=T0, digest="d")
    assert (answer.code, answer.detail) == ("LATE", T0 + SECOND)
    assert [one.code for one in await rig.add("a", by=T0, digest="d")] == ["DUPLICATE"]


async def test_a_job_that_has_come_and_gone_does_not_come_again(rig: Rig) -> None:
    await rig.declare(retain=KEEP_NONE)
    facts = {"by": T0 + SECOND, "digest": "d", "tells": "f:other:f:1"}
    await rig.run("a", Completed(), **facts)
    assert await rig.states() == {}
    (answer,) = await rig.add("a", **facts)
    assert (answer.code, answer.extra) == ("DUPLICATE", "removed")
    assert await rig.states() == {}


async def test_bounds_do_not_refuse_what_was_accepted_long_ago(rig: Rig) -> None:
    await rig.declare(backpressure=Backpressure(soft=1, hard=2))
    await rig.add("a", "c")
    assert [one.code for one in await rig.add("b")] == ["OVERLOADED"]
    assert [one.code for one in await rig.add("b", by=T0, digest="d")] == ["CREATED"]
