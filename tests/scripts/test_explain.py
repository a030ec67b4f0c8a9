"""explain.lua: the gate before a waiting job, for every gate there is."""

from __future__ import annotations

import msgspec
import pytest

from faena.inspection.ended import Past
from faena.inspection.explanation import Explanation, explanation_of
from faena.inspection.gate import Gate
from faena.limits import Limit
from faena.outcomes import Completed, Retried, Snoozed
from faena.states import State
from tests._support.rig import BOOM, SECOND, T0, Rig
from tests._support.transfer import Transfer


@pytest.fixture(autouse=True)
async def served(rig: Rig) -> None:
    """A worker has signed in."""
    await rig.turn(is_sweep=True)


async def explain(rig: Rig, job: str) -> Explanation:
    return explanation_of("q", job, await rig.engine.explain("q", job))


async def test_a_ready_job_says_how_many_come_first(rig: Rig) -> None:
    await rig.add("a", "b", "c")
    found = await explain(rig, "c")
    assert (found.state, found.gates, found.ahead) == (State.READY, (), 2)
    assert str(found) == "job c is ready: 2 jobs come first"
    assert found.expected_at is None  # nothing was claimed of late
    await rig.claim()
    found = await explain(rig, "c")
    assert found.ahead == 1
    assert (found.expected_at or 0) > T0
    assert (await explain(rig, "b")).expected_at == T0


async def test_a_delayed_job_names_its_instant(rig: Rig) -> None:
    await rig.add("a", delay=5 * SECOND)
    found = await explain(rig, "a")
    assert found.gates == (Gate("delayed", "", T0 + 5 * SECOND),)
    assert found.expected_at == T0 + 5 * SECOND
    assert str(found) == "job a is delayed: it is not due yet, for another 5s"


async def test_a_held_queue_names_every_reason_that_counts(rig: Rig) -> None:
    await rig.add("a")
    await rig.engine.hold("q", "pause", None, "ops")
    await rig.engine.hold("q", "deploy", 60 * SECOND, "ops")
    rig.clock.go(30)
    found = await explain(rig, "a")
    assert set(found.gates) == {
        Gate("held", "pause", None),
        Gate("held", "deploy", T0 + 60 * SECOND),
    }
    assert found.expected_at is None
    rig.clock.go(30)
    assert (await explain(rig, "a")).gates == (Gate("held", "pause", None),)


async def test_a_spent_limit_is_named_with_the_instant_it_opens(rig: Rig) -> None:
    await rig.declare(limits=[Limit("1/s"), Limit("2/min")])
    await rig.add("a", "b", "c")
    await rig.claim()
    rig.clock.go(0.5)
    found = await explain(rig, "c")
    assert found.gates == (Gate("limit", "1/s", T0 + SECOND),)
    assert "the queue's limit of 1/s is used up, for another 500ms" in str(found)
    rig.clock.go(1)
    await rig.claim()
    rig.clock.go(2)
    assert (await explain(rig, "c")).gates == (Gate("limit", "2/min", T0 + 60 * SECOND),)


async def test_max_running_is_a_gate_while_it_is_reached(rig: Rig) -> None:
    await rig.declare(max_running=1)
    await rig.add("a", "b")
    lease = await rig.claim()
    found = await explain(rig, "b")
    assert (found.gates, found.expected_at) == ((Gate("max_running", "1", None),), None)
    await rig.turn(0, ("a", lease, Completed()))
    assert (await explain(rig, "b")).gates == ()


async def test_a_lane_says_how_many_lanes_come_first(rig: Rig) -> None:
    await rig.add("a1", "a2", lane="@a")
    await rig.add("b1", lane="@b")
    found = await explain(rig, "a2")
    assert found.gates == (Gate("turn", "0", None),)
    assert found.ahead == 2
    assert (await explain(rig, "b1")).gates == (Gate("turn", "1", None),)


async def test_a_tenant_has_gates_of_its_own(rig: Rig) -> None:
    await rig.declare(tenant_limits=[Limit("1/min")], tenant_max_running=1)
    await rig.add("a1", "a2", lane="@a")
    await rig.add("b1", "b2", lane="@b")
    await rig.engine.tenant("q", "@b", {"held_until": "0", "reason": "unpaid"}, by="ops")
    await rig.turn(4)
    found = await explain(rig, "a2")
    assert found.gates == (
        Gate("tenant_max_running", "1", None),
        Gate("tenant_limit", "1/min", T0 + 60 * SECOND),
    )
    assert found.expected_at is None  # nobody knows when a1 ends
    found = await explain(rig, "b1")
    assert found.gates == (Gate("tenant_held", "unpaid", None),)
    assert found.expected_at is None


async def test_what_was_decided_for_a_tenant_is_a_gate_until_its_end(rig: Rig) -> None:
    async def gates() -> list[Gate]:
        found = await explain(rig, "a2")
        return [gate for gate in found.gates if gate.name.startswith("tenant_")]

    await rig.add("a1", "a2", lane="@a")
    await rig.claim()
    changes = {"max_running": "1", "held_until": str(T0 + 20 * SECOND)}
    await rig.engine.tenant("q", "@a", changes, by="ops", duration_us=10 * SECOND)
    held = Gate("tenant_held", "", T0 + 20 * SECOND)  # a hold has an end of its own
    assert await gates() == [held, Gate("tenant_max_running", "1", None)]
    rig.clock.go(10)
    assert await gates() == [held]
    rig.clock.go(10)
    assert await gates() == []


async def test_nobody_can_tell_when_a_tenant_that_moves_is_served(
    rig: Rig, transfer: Transfer
) -> None:
    await transfer.hand_over("@a")
    await transfer.target.turn(is_sweep=True)
    await transfer.target.add("a", lane="@a")
    found = explanation_of("q", "a", await rig.engine.explain("q/1", "a"))
    assert (found.gates, found.expected_at) == ((Gate("tenant_moving", "", None),), None)


async def test_a_shard_without_workers_says_so(rig: Rig, transfer: Transfer) -> None:
    await transfer.target.add("a", lane="@a")
    found = explanation_of("q", "a", await rig.engine.explain("q/1", "a"))
    assert found.gates == (Gate("unserved", "q/1", None), Gate("turn", "0", None))
    assert found.expected_at is None
    assert "no worker serves q/1" in str(found)
    await transfer.target.turn(is_sweep=True)
    found = explanation_of("q", "a", await rig.engine.explain("q/1", "a"))
    assert (found.gates, found.expected_at) == ((Gate("turn", "0", None),), T0)


async def test_a_blocked_job_names_the_one_whose_turn_it_is(rig: Rig) -> None:
    await rig.add("a", "b", "c", lane="@t", chain="t/t")
    found = await explain(rig, "c")
    assert (found.state, found.gates, found.ahead) == (
        State.BLOCKED,
        (Gate("behind", "a ready", None),),
        1,
    )
    lease = await rig.claim()
    assert str(await explain(rig, "b")) == "job b is blocked: job a runs"
    await rig.turn(0, ("a", lease, Retried(9 * SECOND, BOOM)))
    found = await explain(rig, "b")
    assert found.gates == (Gate("behind", "a delayed", T0 + 9 * SECOND),)
    assert "job a waits for its next attempt, for another 9s" in str(found)


async def test_nobody_can_tell_when_a_parked_job_runs(rig: Rig) -> None:
    await rig.add("a")
    await rig.turn(0, ("a", await rig.claim(), Snoozed(9 * SECOND, "no such task", is_parked=True)))
    found = await explain(rig, "a")
    assert found.gates == (Gate("parked", "no such task; parked once", T0 + 9 * SECOND),)
    assert found.expected_at is None


async def test_a_job_that_is_parked_for_an_upstream_is_expected_when_that_is_asked_again(
    rig: Rig,
) -> None:
    await rig.add("a")
    parked = Snoozed(9 * SECOND, "upstream afip: open", is_parked=True)
    await rig.turn(0, ("a", await rig.claim(), parked))
    found = await explain(rig, "a")
    assert found.gates == (Gate("parked", "upstream afip: open; parked once", T0 + 9 * SECOND),)
    assert found.expected_at == T0 + 9 * SECOND


def test_the_attempt_that_completed_a_job_is_none_that_failed() -> None:
    def told(attempts: int) -> str:
        past = Past(at=None, attempts_made=attempts, losses=0, worker=None, error=None)
        return past.words(State.COMPLETED)

    assert [told(1), told(2)] == ["completed", "completed, after 1 failed attempt"]


async def test_jobs_that_do_not_wait_say_so(rig: Rig) -> None:
    await rig.run("done", Completed())
    assert str(await explain(rig, "done")) == "job done is not waiting: it is completed"
    assert str(await explain(rig, "nobody")) == "queue q has no job nobody"


async def test_explaining_changes_nothing(rig: Rig) -> None:
    await rig.declare(limits=[Limit("1/s")], tenant_limits=[Limit("1/s")])
    await rig.add("a", "b", lane="@a")
    await rig.claim()
    rig.clock.go(5)
    await rig.remember()
    await explain(rig, "b")
    assert await rig.is_untouched()


def test_a_job_that_its_fallback_completed_says_so() -> None:
    past = Past(at=None, attempts_made=1, losses=0, worker=None, error=None, fallback="canned")
    assert past.words(State.COMPLETED) == "completed through its fallback canned"
    handed = msgspec.structs.replace(past, fallback="people/attend", handed_to="fallback-1")
    assert handed.words(State.COMPLETED) == (
        "completed through its fallback people/attend, which made job fallback-1"
    )
    assert past.words(State.DEAD) == "died, after 1 failed attempt"
