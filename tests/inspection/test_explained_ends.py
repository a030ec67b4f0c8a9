"""What is said of jobs that run, have ended, or are not in their queue."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from faena.engine.calls.flows import FlowCalls, Made
from faena.inspection.explanation import Explanation
from faena.inspection.reason import Reason
from faena.outcomes import Buried, Cancelled, Completed, DeathNote
from tests._support.desk_rig import DeskRig
from tests._support.explained import explain, runs
from tests._support.rig import BOOM, SECOND, T0, Rig


@pytest.fixture(autouse=True)
async def served(rig: Rig) -> None:
    """A worker has signed in."""
    await rig.turn(is_sweep=True)


async def first_reason(rig: Rig, job: str) -> Reason:
    """The first reason of a job that does not wait in its queue, so that it has no start."""
    told = await explain(rig, job)
    assert told.expected_start is None
    assert told.expected_at is None
    return told.reasons[0]


def codes(told: Explanation) -> list[str]:
    return [one.code for one in told.reasons]


# -- running ---------------------------------------------------------------------------------------


async def test_a_job_that_runs_names_its_worker_and_its_lease(rig: Rig) -> None:
    await rig.add("job")
    await rig.claim(worker="w1")
    told = await explain(rig, "job")
    assert codes(told) == ["running"]
    assert told.past is not None
    assert (told.past.worker, told.past.at) == ("w1", T0)
    assert told.past.lease_until == T0 + 30 * SECOND
    assert told.next == ("its handler ends",)


async def test_a_job_that_is_to_stop_says_so_and_ends_so(rig: Rig) -> None:
    await rig.add("job")
    lease = await rig.claim()
    await rig.engine.cancel("q", ["job"])
    told = await explain(rig, "job")
    assert codes(told) == ["stopping"]
    assert str(told).endswith("it is to be cancelled")
    await rig.turn(0, ("job", lease, Cancelled(BOOM)))
    assert (await first_reason(rig, "job")).code == "cancelled"


async def test_a_job_whose_worker_is_gone_is_rescued_next(rig: Rig) -> None:
    await rig.add("job")
    await rig.claim(worker="w1")
    rig.clock.go(31)
    told = await explain(rig, "job")
    assert codes(told) == ["running", "lease_over"]
    assert told.next == ("its handler ends", "a worker of queue q rescues it")
    assert await runs(rig, "job")


# -- ended -----------------------------------------------------------------------------------------


async def test_a_job_that_completed_has_nothing_next(rig: Rig) -> None:
    await rig.run("job", Completed())
    told = await explain(rig, "job")
    assert (codes(told), told.next) == (["completed"], ())


async def test_a_job_that_expired_is_told_from_one_that_was_cancelled(rig: Rig) -> None:
    await rig.add("late", expires=T0 + 5 * SECOND)
    await rig.add("job", delay=5 * SECOND)
    await rig.engine.cancel("q", ["job"])
    rig.clock.go(6)
    assert not await runs(rig, "late")
    assert (await first_reason(rig, "late")).code == "expired"
    assert (await first_reason(rig, "job")).code == "cancelled"


async def test_what_the_desk_did_with_a_dead_job_is_told(rig: Rig) -> None:
    desk = DeskRig(rig)
    await desk.bury("a", "b", "c", "d")
    await desk.retry_as_new("b")
    await desk.dismiss("discarded", "c")
    await desk.dismiss("resolved", "d")
    found = {job: await first_reason(rig, job) for job in "abcd"}
    assert [one.code for one in found.values()] == ["dead", "retried", "discarded", "resolved"]
    assert found["a"].next == "an operator decides at the desk"
    assert found["b"].next == "job b2 tells how it goes on"
    assert found["c"].details["by"] == "ana"
    assert await runs(rig, "b2"), "it goes on there"


async def test_a_dead_job_that_is_retried_automatically_says_when(rig: Rig) -> None:
    await rig.add("job")
    note = DeathNote(task="send", name="Boom", fingerprint="f", retry_us=60 * SECOND, most=3)
    await rig.turn(0, ("job", await rig.claim(), Buried(BOOM, True, note)))
    reason = await first_reason(rig, "job")
    assert (reason.code, reason.until) == ("dead_retry", T0 + 60 * SECOND)


# -- flows and groups ------------------------------------------------------------------------------


def node(number: int, waits: int, kin: list[object], parents: list[int]) -> list[Any]:
    """The fields of a node of flow q/f."""
    pack = msgspec.msgpack.encode
    seen = pack(["q", f"q.f.{number}", f"n{number}", "noop"])
    return [
        *(f"v:{number}", seen, f"j:{number}", b"\x90", f"p:{number}", pack(parents)),
        *(f"k:{number}", pack([0, *kin]), f"s:{number}", f"waiting {waits} 0"),
    ]


CHAIN = [
    *node(1, 0, [2, "fail"], []),
    *node(2, 1, [3, "fail"], [1]),
    *node(3, 1, [], [2]),
]


async def start(rig: Rig) -> FlowCalls:
    """A flow of three nodes, the first of which is sent and not relayed."""
    flows = FlowCalls(rig.engine)
    await flows.flow("q", "f", "put", *CHAIN, run=1)
    await flows.flow("q", "f", "start", run=1, nodes=3, left=3)
    return flows


async def relay(rig: Rig, flows: FlowCalls, number: int) -> None:
    await rig.add(f"q.f.{number}", tells=f"f:q:f:{number}")
    await flows.done("q", [f"f:f:{number}:q.f.{number}"])


async def carry(flows: FlowCalls) -> None:
    """Messages of the queue to itself arrive."""
    letters = await flows.messages("q", "q")
    await flows.receive("q", "q", letters)
    await flows.delivered("q", "q", letters[-1].id)


async def test_a_flow_that_is_being_written_says_so(rig: Rig) -> None:
    await FlowCalls(rig.engine).flow("q", "f", "put", *CHAIN, run=1)
    reason = await first_reason(rig, "q.f.1")
    assert reason.code == "flow_building"
    assert reason.next == "the program that starts flow q/f ends its call"


async def test_a_node_that_is_not_relayed_yet_says_who_does_it(rig: Rig) -> None:
    flows = await start(rig)
    reason = await first_reason(rig, "q.f.1")
    assert (reason.code, reason.next) == ("pending_send", "a worker of queue q relays it")
    await relay(rig, flows, 1)
    assert await runs(rig, "q.f.1")


async def test_a_node_names_what_it_waits_for_and_why_that_waits(rig: Rig) -> None:
    flows = await start(rig)
    await relay(rig, flows, 1)
    await rig.engine.hold("q", "deploy", None, "ana")
    told = await explain(rig, "q.f.3")
    assert (told.state, told.source, codes(told)) == (None, "flow", ["flow"])
    assert "which waits for 1 of 1 node: n2 (waiting); those wait for n1 (sent)" in str(told)
    assert told.next == ("job q.f.1 in queue q ends",)
    (behind,) = told.waits_for
    assert (behind.id, codes(behind)) == ("q.f.1", ["held"])
    await rig.engine.release("q", "deploy")
    for number in (1, 2):  # do what is said to be next, until it is its turn
        await rig.turn(0, (f"q.f.{number}", await rig.claim(), Completed(b"1")))
        await carry(flows)
        await relay(rig, flows, number + 1)
    assert await runs(rig, "q.f.3")


async def test_a_node_behind_one_that_failed_is_skipped(rig: Rig) -> None:
    flows = await start(rig)
    await relay(rig, flows, 1)
    await rig.turn(0, ("q.f.1", await rig.claim(), Buried(BOOM)))
    await carry(flows)
    reason = await first_reason(rig, "q.f.2")
    assert (reason.code, reason.next) == ("skipped", "the flow is run again")


async def test_a_node_that_retention_removed_is_known_to_its_flow(rig: Rig) -> None:
    flows = await start(rig)
    await relay(rig, flows, 1)
    await rig.turn(0, ("q.f.1", await rig.claim(), Completed(b"1")))
    await carry(flows)
    rig.clock.go(1)
    await rig.engine.clean("q", "completed", 0, 10)
    told = await explain(rig, "q.f.1")
    assert (codes(told), told.source) == (["removed"], "flow")
    assert "was completed; its queue has removed it" in str(told)


async def test_a_callback_of_a_group_says_what_its_group_lacks(rig: Rig) -> None:
    flows = FlowCalls(rig.engine)
    made = {name: Made("q", 10, {}, "{}", f"q.g.{name}").pack() for name in ("complete", "success")}
    await flows.open_group("q", "g", made)
    reason = await first_reason(rig, "q.g.complete")
    assert (reason.code, reason.next) == ("group_open", "the program seals group q/g")
    await rig.add("a", "b", tells="g:q:g:")
    await flows.seal_group("q", "g", 2)
    reason = await first_reason(rig, "q.g.complete")
    assert (reason.code, reason.words.endswith("waits for 2 of 2 members")) == ("group", True)
    lease = await rig.claim(2)
    await rig.turn(0, ("a", lease, Completed()), ("b", lease, Buried(BOOM)))
    await carry(flows)
    assert (await first_reason(rig, "q.g.complete")).code == "pending_send"
    reason = await first_reason(rig, "q.g.success")
    assert (reason.code, reason.details["dead"]) == ("group_failed", 1)


async def test_a_large_flow_is_read_in_part(rig: Rig) -> None:
    flows, most = FlowCalls(rig.engine), 1_000
    for number in range(1, most + 1):
        kin = [most, "fail"] if number < most else []
        parents = [*range(1, most)] if number == most else []
        fields = node(number, len(parents), kin, parents)
        await flows.flow("q", "f", "put", *fields, run=1)
    await flows.flow("q", "f", "start", run=1, nodes=most, left=most)
    told = await explain(rig, f"q.f.{most}")
    assert codes(told) == ["flow"]
    assert "waits for 999 of 999 nodes: n1 (sent), " in str(told)
    assert "and 994 more" in str(told)
    assert len(str(told)) < 400


# -- nowhere ---------------------------------------------------------------------------------------


async def test_an_unknown_id_says_when_it_was_made_if_that_can_be_read(rig: Rig) -> None:
    reason = await first_reason(rig, "0Nx0000000000000000~")
    assert reason.code == "unknown"
    assert "it never existed, or it has ended and was removed" in reason.words
    assert reason.details["made_at"] is not None
