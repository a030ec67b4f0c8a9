"""`receive`: a message is read once, whoever brings it and however often."""

from __future__ import annotations

import pytest

from faena.engine.calls.flows import FlowCalls, Message
from faena.outcomes import Buried, Completed
from tests._support.rig import BOOM, Rig
from tests.scripts.test_flow import node


@pytest.fixture
def mail(rig: Rig) -> FlowCalls:
    return FlowCalls(rig.engine)


async def begin(rig: Rig, mail: FlowCalls, *rules: str) -> None:
    """A flow of a root and a child for each rule; the root runs."""
    kin = [part for at, rule in enumerate(rules, 2) for part in (at, rule)]
    fields = node(rig, 1, 0, *kin)
    for at in range(2, 2 + len(rules)):
        fields += node(rig, at, 1)
    await mail.flow("q", "f", "put", *fields, run=1)
    await mail.flow("q", "f", "start", run=1, nodes=1 + len(rules), left=1 + len(rules))
    await rig.add("f.1", tells="f:q:f:1")


async def states(rig: Rig) -> list[str]:
    flow = (await rig.dump())["flow:f"]
    nodes = sorted((name, text) for name, text in flow.items() if name.startswith("s:"))
    return [text.split(" ")[0] for _, text in nodes]


async def test_a_letter_that_is_brought_twice_is_read_once(rig: Rig, mail: FlowCalls) -> None:
    await begin(rig, mail, "fail")
    lease = await rig.claim()
    await rig.turn(0, ("f.1", lease, Completed(b'"done"')))
    messages = await mail.messages("q", "q")
    assert await mail.receive("q", "q", messages)
    before = await rig.dump()
    assert not await mail.receive("q", "q", messages)
    assert await rig.dump() == before
    assert before["flow:f"]["r:1"] == '"done"'
    assert await states(rig) == ["completed", "sent"]


async def test_a_result_reaches_the_flow_byte_for_byte(rig: Rig, mail: FlowCalls) -> None:
    await begin(rig, mail, "fail")
    lease = await rig.claim()
    await rig.turn(0, ("f.1", lease, Completed(b"9007199254740993")))
    await mail.receive("q", "q", await mail.messages("q", "q"))
    assert await mail.flow_fields("q", "f", ["r:1"]) == [b"9007199254740993"]


async def test_rules_decide_for_each_child(rig: Rig, mail: FlowCalls) -> None:
    await begin(rig, mail, "fail", "continue", "ignore")
    lease = await rig.claim()
    await rig.turn(0, ("f.1", lease, Buried(BOOM)))
    await mail.receive("q", "q", await mail.messages("q", "q"))
    assert await states(rig) == ["dead", "skipped", "sent", "sent"]
    assert "it broke" in (await rig.dump())["flow:f"]["r:1"]


async def test_the_end_of_another_job_of_the_node_is_not_its_end(rig: Rig, mail: FlowCalls) -> None:
    await begin(rig, mail)
    await rig.add("stray", tells="f:q:f:1")
    lease = await rig.claim(2)
    await rig.turn(0, ("stray", lease, Completed()))
    await mail.receive("q", "q", await mail.messages("q", "q"))
    assert await states(rig) == ["sent"]


async def test_letters_to_a_flow_or_group_that_is_gone_are_read_all_the_same(
    rig: Rig, mail: FlowCalls
) -> None:
    await rig.add("a", tells="f:q:gone:1")
    await rig.add("b", tells="g:q:gone:")
    lease = await rig.claim(2)
    await rig.turn(0, ("a", lease, Completed()), ("b", lease, Completed()))
    messages = await mail.messages("q", "q")
    assert len(messages) == 2
    await mail.receive("q", "q", messages)
    await mail.delivered("q", "q", messages[-1].id)
    assert not await mail.has_outbox("q")
    taken = await rig.dump()
    assert "flow:gone" not in taken
    assert "group:gone" not in taken


async def test_ids_are_compared_as_numbers(rig: Rig, mail: FlowCalls) -> None:
    await mail.open_group("q", "g", {})
    word = b"\x93\xa7counted\xa1g\x81\xa9completed\x01"
    for number in ("9-9", "9-10", "10-0", "9-11"):
        await mail.receive("q", "elsewhere", [Message(number, word)])
    assert (await mail.group("q", "g"))["completed"] == b"3"
