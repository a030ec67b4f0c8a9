"""`flow`: it is written in parts, begins once, can be called off, and taken up again."""

from __future__ import annotations

import msgspec
import pytest

from faena.engine.calls.flows import FlowCalls
from faena.outcomes import Completed
from tests._support.rig import Rig


@pytest.fixture
def mail(rig: Rig) -> FlowCalls:
    return FlowCalls(rig.engine)


def node(rig: Rig, number: int, waits: int, *kin: object) -> list[object]:
    """The fields of a node whose job is `f.<number>`."""
    seen = msgspec.msgpack.encode([rig.queue, f"f.{number}", f"n{number}", "noop"])
    return [
        *(f"v:{number}", seen, f"j:{number}", b"\x90"),
        *(f"k:{number}", msgspec.msgpack.encode([0, *kin]), f"s:{number}", f"waiting {waits} 0"),
    ]


async def pending_sends(rig: Rig) -> list[str]:
    return [name for name, _ in (await rig.dump()).get("pending_sends", [])]


async def test_nothing_is_sent_before_the_start_and_only_roots_with_it(
    rig: Rig, mail: FlowCalls
) -> None:
    assert await mail.flow("q", "f", "put", *node(rig, 1, 0, 2, "fail"), run=1) == "OK"
    assert await mail.flow("q", "f", "put", *node(rig, 2, 1), run=1) == "OK"
    assert await pending_sends(rig) == []
    assert await mail.flow("q", "f", "start", run=1, nodes=2, left=2) == "OK"
    assert await pending_sends(rig) == ["f:f:1:f.1"]


async def test_a_flow_that_is_not_begun_is_gone_after_an_hour(rig: Rig, mail: FlowCalls) -> None:
    await mail.flow("q", "f", "put", *node(rig, 1, 0), run=1)
    assert 3500 < await rig.engine.command("TTL", "q", "flow:f") <= 3600
    await mail.flow("q", "f", "start", run=1, nodes=1, left=1)
    assert await rig.engine.command("TTL", "q", "flow:f") == -1


async def test_a_start_that_is_sent_twice_begins_once(rig: Rig, mail: FlowCalls) -> None:
    await mail.flow("q", "f", "put", *node(rig, 1, 0), run=1)
    await mail.flow("q", "f", "start", run=1, nodes=1, left=1)
    await mail.done("q", await pending_sends(rig))
    assert await mail.flow("q", "f", "start", run=1, nodes=1, left=1) == "running"
    assert await pending_sends(rig) == []


async def test_what_has_begun_is_not_written_again(rig: Rig, mail: FlowCalls) -> None:
    await mail.flow("q", "f", "put", *node(rig, 1, 0), run=1)
    await mail.flow("q", "f", "start", run=1, nodes=1, left=1)
    await rig.remember()
    assert await mail.flow("q", "f", "put", "s:1", "waiting 0 0", run=1) == "running"
    assert await mail.flow("q", "f", "rerun") == "running"
    assert await rig.is_untouched()


@pytest.mark.parametrize("verb", ["start", "cancel", "rerun"])
async def test_a_flow_that_nobody_wrote_is_unknown(rig: Rig, mail: FlowCalls, verb: str) -> None:
    named = {"run": 1, "nodes": 1, "left": 1} if verb == "start" else {}
    assert await mail.flow("q", "nobody", verb, **named) == "unknown"
    assert "flow:nobody" not in await rig.dump()


async def test_cancelling_ends_what_waits_and_calls_back_what_is_out(
    rig: Rig, mail: FlowCalls
) -> None:
    await mail.flow("q", "f", "put", *node(rig, 1, 0, 2, "fail"), *node(rig, 2, 1), run=1)
    await mail.flow("q", "f", "start", run=1, nodes=2, left=2)
    assert await mail.flow("q", "f", "cancel") == "OK"
    flow = (await rig.dump())["flow:f"]
    assert (flow["s:1"], flow["s:2"], flow["left"]) == ("sent 0 0", "cancelled 1 0", "1")
    assert await pending_sends(rig) == ["f:f:1:f.1", "x:f:1:f.1"]
    assert await mail.flow("q", "f", "cancel") == "OK"
    assert await mail.flow("q", "f", "rerun") == "cancelled"  # a job of it is out


async def test_more_nodes_than_a_call_looks_at_are_left_to_letters(
    rig: Rig, mail: FlowCalls
) -> None:
    for start in range(1, 451, 50):
        fields = [part for n in range(start, start + 50) for part in node(rig, n, 0)]
        await mail.flow("q", "f", "put", *fields, run=1)
    await mail.flow("q", "f", "start", run=1, nodes=450, left=450)
    assert len(await pending_sends(rig)) == 200
    for expected in (400, 450):
        letters = await mail.messages("q", "q")
        await mail.receive("q", "q", letters)
        await mail.delivered("q", "q", letters[-1].id)
        assert len(await pending_sends(rig)) == expected
    assert await mail.messages("q", "q") == []


async def test_only_who_reopened_a_flow_last_may_write_it(rig: Rig, mail: FlowCalls) -> None:
    await mail.flow("q", "f", "put", *node(rig, 1, 0), run=1)
    await mail.flow("q", "f", "start", run=1, nodes=1, left=1)
    assert await mail.flow("q", "f", "end", node=1, job="f.1", state="dead", words="why") == "OK"
    assert await mail.flow("q", "f", "rerun") == "2"
    assert await mail.flow("q", "f", "rerun") == "3"
    assert await mail.flow("q", "f", "put", *node(rig, 1, 0), run=2) == "reopened"
    assert await mail.flow("q", "f", "start", run=2, nodes=1, left=1) == "reopened"
    assert await mail.flow("q", "f", "put", *node(rig, 1, 0), run=3) == "OK"
    assert await mail.flow("q", "f", "start", run=3, nodes=1, left=1) == "OK"
    assert (await rig.dump())["flow:f"]["state"] == "running"


async def test_letters_of_an_earlier_run_are_not_read(rig: Rig, mail: FlowCalls) -> None:
    for start in range(1, 251, 50):
        fields = [part for n in range(start, start + 50) for part in node(rig, n, 0)]
        await mail.flow("q", "f", "put", *fields, run=1)
    await mail.flow("q", "f", "start", run=1, nodes=250, left=250)
    await mail.flow("q", "f", "cancel")
    stale = await mail.messages("q", "q")
    assert len(stale) == 2  # more to launch, and more to call off
    for number in range(1, 251):
        ended = {"node": number, "job": f"f.{number}", "state": "cancelled"}
        await mail.flow("q", "f", "end", **ended)
    flow = (await rig.dump())["flow:f"]
    assert (flow["state"], flow["left"]) == ("cancelled", "50")  # those that were never sent
    await mail.receive("q", "q", stale)
    assert await mail.flow("q", "f", "rerun") == "2"


async def test_an_id_is_written_by_one_plan_at_a_time(rig: Rig, mail: FlowCalls) -> None:
    first, second = ("name", "f", "plan", "one"), ("name", "f", "plan", "two")
    one, two = {"run": 1, "digest": "one"}, {"run": 1, "digest": "two"}
    assert await mail.flow("q", "f", "open", *first, *node(rig, 1, 0), **one) == "OK"
    assert await mail.flow("q", "f", "open", *first, *node(rig, 1, 0), **one) == "OK"
    assert await mail.flow("q", "f", "put", *first, *node(rig, 2, 0), **one) == "OK"
    assert await mail.flow("q", "f", "open", *second, *node(rig, 1, 0), **two) == "OK"
    assert await mail.flow_fields("q", "f", ["s:2"]) == [None]
    assert await mail.flow("q", "f", "put", *first, *node(rig, 2, 0), **one) == "another"
    assert await mail.flow("q", "f", "start", nodes=2, left=2, **one) == "another"
    assert await mail.flow("q", "f", "start", nodes=1, left=1, **two) == "OK"
    assert await mail.flow("q", "f", "open", *first, *node(rig, 1, 0), **one) == "running"


async def end(rig: Rig, mail: FlowCalls, flow: str) -> None:
    """A flow of one node that has completed."""
    fields = [msgspec.msgpack.encode([rig.queue, flow, "n", "noop"]), "j:1", b"\x90", "k:1"]
    await mail.flow(
        "q", flow, "put", "v:1", *fields, msgspec.msgpack.encode([0]), "s:1", "waiting 0 0", run=1
    )
    await mail.flow("q", flow, "start", run=1, nodes=1, left=1)
    await mail.done("q", await pending_sends(rig))
    await rig.run(flow, Completed(), tells=f"f:q:{flow}:1")
    letters = await mail.messages("q", "q")
    await mail.receive("q", "q", letters)
    await mail.delivered("q", "q", letters[-1].id)
    assert await mail.flow_fields("q", flow, ["state"]) == [b"completed"]


async def test_a_flow_that_has_ended_is_kept_for_a_week(rig: Rig, mail: FlowCalls) -> None:
    await end(rig, mail, "old")
    rig.clock.go(1)
    await end(rig, mail, "young")
    rig.clock.go(7 * 86400 - 1)
    await end(rig, mail, "new")
    assert await mail.flows("q", is_live=False, limit=9) == ["new", "young"]
    assert "flow:old" not in await rig.dump()
    assert "flow:young" in await rig.dump()


async def test_no_more_than_ten_thousand_ended_flows_are_kept(rig: Rig, mail: FlowCalls) -> None:
    await end(rig, mail, "first")
    names = [part for number in range(10_000) for part in (rig.clock.now, f"f{number:05d}")]
    await rig.engine.command("ZADD", "q", "flows_done", *names)
    rig.clock.go(1)
    await end(rig, mail, "last")
    assert await rig.engine.command("ZCARD", "q", "flows_done") <= 10_000
    assert await rig.engine.command("ZSCORE", "q", "flows_done", "last") is not None
