"""lib/worker/hand_over.lua: a job that comes in where a worker waits for it is leased at once.

Two queues get the same; in the second, what was left is taken in before the worker calls. Nobody
must be able to tell them apart, whatever else there is in them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from faena import Limit
from faena.engine.scripts import Turn
from faena.engine.settings import UNSERVED, declaration
from faena.errors import InternalError
from faena.options import QueueOptions, Retain
from faena.outcomes import Buried, Completed, Snoozed
from tests._support.rig import BOOM, SECOND, T0, Rig

STEM = "0123456789ab"
LINES = ("001", "100", "010 lane=@acme", "010 key=k/1/a/x", "x", "010 at=5")
Step = Callable[[Rig], Awaitable[Any]]


@pytest.fixture
async def twin(rig: Rig) -> AsyncIterator[Rig]:
    other = Rig(rig.engine.wire, rig.engine.namespace + "2")
    yield other
    await other.obliterate()


async def leave(rig: Rig, job: str, turn: int, *, line: str = "010", at: int = 0) -> None:
    """Append a job as a producer does, at an instant of the rig's clock."""
    entry = f"{T0 // 1000}-{at or turn}"
    fields = job, f"{line}\n{{}}", f"{STEM}1", f"{STEM}{turn:x}"
    await rig.engine.command("XADD", rig.queue, "arrivals", entry, *fields)


async def pops(rig: Rig) -> int:
    """How often jobs were taken out of `ready`, by any claim."""
    stats = await rig.engine.wire.call("INFO", "commandstats", key=rig.queue, patience_s=5)
    lines = dict(line.split(":", 1) for line in stats.decode().split("\r\n") if ":" in line)
    return int(lines.get("cmdstat_zpopmin", "calls=0,").split(",")[0].removeprefix("calls="))


async def look(rig: Rig) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """All that is stored; a marker that nobody needs may stay, and old jobs be pruned later."""
    taken = {name: value for name, value in (await rig.dump()).items() if name != "wake"}
    taken.get("clock", {}).pop("prune_at", None)
    return {name: taken[name] for name in taken if name != "events"}, await rig.events()


async def nothing(rig: Rig) -> None:
    await rig.declare()


async def earlier_jobs(rig: Rig) -> None:
    await rig.run("before", Completed())
    rig.clock.go(0.5)


async def marked_jobs(rig: Rig) -> None:
    """Their marks stay as long as they are kept: a day, or a thousand jobs."""
    await rig.run("again", Snoozed(SECOND))
    rig.clock.go(2)
    lease = await rig.claim()
    await rig.turn(0, ("again", lease, Completed()))
    await rig.run("failed", Buried(BOOM))
    await rig.run("only", Completed(), unique="u", mode="live")
    await rig.run("early", Completed(), expires=rig.clock.now + SECOND)
    rig.clock.go(2)


async def none_kept(rig: Rig) -> None:
    await rig.declare(retain=Retain(completed_count=0))


async def untold(rig: Rig) -> None:
    await rig.declare()
    await rig.edit(events_kept=0)


HANDED: dict[str, Step] = {
    "nothing else": nothing,
    "jobs that are over": earlier_jobs,
    "marks of jobs that are over": marked_jobs,
    "nothing kept": none_kept,
    "no events": untold,
}


async def a_ready_job(rig: Rig) -> None:
    await rig.add("first")


async def a_running_job(rig: Rig) -> None:
    await rig.add("first")
    await rig.claim()


async def a_lost_job(rig: Rig) -> None:
    await a_running_job(rig)
    rig.clock.go(3600)


async def a_delayed_job(rig: Rig) -> None:
    await rig.add("first", delay=SECOND)
    rig.clock.go(2)


async def a_snoozed_job(rig: Rig) -> None:
    await rig.run("first", Snoozed(SECOND))
    rig.clock.go(2)


async def a_tenant_s_job(rig: Rig) -> None:
    await rig.add("first", lane="@acme")


async def a_hold(rig: Rig) -> None:
    await rig.declare()
    await rig.engine.hold(rig.queue, "ops", None, "ops")


async def a_full_limit(rig: Rig) -> None:
    await rig.declare(limits=(Limit("1/min"),))
    await rig.run("first", Completed())


async def one_at_a_time(rig: Rig) -> None:
    await rig.declare(max_running=1)


async def the_same_job(rig: Rig) -> None:
    await rig.declare()
    await leave(rig, "job", 1)
    lease = await rig.claim()
    await rig.turn(0, ("job", lease, Completed()))


async def the_same_call(rig: Rig) -> None:
    await rig.declare(retain=Retain(completed_count=0))
    await leave(rig, "job", 2, at=1)
    lease = await rig.claim()
    await rig.turn(0, ("job", lease, Completed()))


ASKED: dict[str, Step] = {
    "a ready job": a_ready_job,
    "a running job": a_running_job,
    "a lost job": a_lost_job,
    "a delayed job": a_delayed_job,
    "a snoozed job": a_snoozed_job,
    "a tenant's job": a_tenant_s_job,
    "a hold": a_hold,
    "a full limit": a_full_limit,
    "one at a time": one_at_a_time,
    "the same job": the_same_job,
    "the same call": the_same_call,
}


@pytest.mark.parametrize("want", [1, 10])
@pytest.mark.parametrize("before", [*HANDED, *ASKED])
async def test_nobody_can_tell_it_from_a_claim(rig: Rig, twin: Rig, before: str, want: int) -> None:
    for one in (rig, twin):
        await (HANDED | ASKED)[before](one)
        await leave(one, "job", 2)
    await twin.engine.take_in(twin.queue)
    popped = await pops(rig)
    handed = await rig.turn(want)
    was_handed = await pops(rig) == popped and bool(handed.claimed)
    assert handed == await twin.turn(want)
    assert await look(rig) == await look(twin)
    assert was_handed or before not in HANDED


CALLS: dict[str, Step] = {
    "a sweep": lambda rig: rig.turn(5, is_sweep=True, about="1 0.1 faena_0 host"),
    "samples": lambda rig: rig.turn(5, samples={"waited": 7}),
    "a lost settlement": lambda rig: rig.turn(5, ("gone", "call0000", Completed())),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_that_says_more_is_heard_out(rig: Rig, twin: Rig, call: str) -> None:
    for one in (rig, twin):
        await one.declare()
        await leave(one, "job", 2)
    await twin.engine.take_in(twin.queue)
    assert await CALLS[call](rig) == await CALLS[call](twin)
    assert await look(rig) == await look(twin)


async def test_the_lease_lasts_as_long_as_its_worker_needs(rig: Rig) -> None:
    await rig.declare(lease="30s")
    await leave(rig, "job", 1)
    turn = Turn("call0900", 5, least_lease_us=300 * SECOND)
    assert (await rig.engine.exchange(rig.queue, "w", "w", turn)).claimed
    assert (await rig.dump())["running"] == [("job", float(rig.clock.now + 300 * SECOND))]


async def test_a_queue_that_nobody_has_served_is_declared_first(rig: Rig) -> None:
    """Who left the job may not know the handlers, nor their hooks and costs."""
    rig.engine.know(rig.queue, {**declaration(QueueOptions()), **UNSERVED})
    await rig.engine.declare(rig.queue)
    await leave(rig, "job", 1)
    claim = {"caller": "w", "lease": "call0900", "worker": "w", "want": 5, "least_us": 0}
    answer = await rig.engine.ask("exchange", rig.queue, **claim, plain=0, kept=0)
    assert answer == [b"UNCONFIGURED"]
    assert await rig.states() == {"job": "ready"}


async def test_what_a_job_costs_is_taken_from_its_limit(rig: Rig, twin: Rig) -> None:
    for one in (rig, twin):
        await one.declare(limits=(Limit("1/min", cost="tokens"),))
        for turn in (1, 2):
            await leave(one, f"job{turn}", turn, line="010")
            if one is twin:
                await one.engine.take_in(one.queue)
            await one.turn(5)
    assert await look(rig) == await look(twin)


async def test_a_call_without_a_number_is_no_call(rig: Rig) -> None:
    await rig.declare()
    fields = "job", "010\n{}", f"{STEM}1", f"{STEM}z"
    await rig.engine.command("XADD", rig.queue, "arrivals", "*", *fields)
    assert (await rig.turn(5)).claimed == []
    assert await rig.states() == {}


@pytest.mark.parametrize("line", LINES)
async def test_of_other_lines_as_well(rig: Rig, twin: Rig, line: str) -> None:
    for one in (rig, twin):
        await one.declare()
        await leave(one, "job", 2, line=line)
    await twin.engine.take_in(twin.queue)
    assert await rig.turn(5) == await twin.turn(5)
    assert await look(rig) == await look(twin)


async def test_a_call_that_is_sent_again_gets_the_same_job(rig: Rig) -> None:
    await rig.declare()
    await leave(rig, "job", 1)
    first = await rig.turn(5, call="call0900")
    assert [claim.id for claim in first.claimed] == ["job"]
    rig.clock.go(1)
    again = await rig.turn(5, call="call0900")
    assert again == first._replace(now=first.now + SECOND)


async def test_a_call_that_is_over_takes_no_other_job(rig: Rig) -> None:
    """Its answer was lost and its job is settled: the next job is for the next call."""
    await rig.declare(retain=Retain(completed_count=0))
    await leave(rig, "job", 1)
    await rig.turn(5, call="call0900")
    await rig.turn(0, ("job", "call0900", Completed()), worker="other")
    await leave(rig, "next", 2)
    assert (await rig.turn(5, call="call0900")).claimed == []
    assert await rig.states() == {"next": "ready"}
    assert [claim.id for claim in (await rig.turn(5, call="call0901")).claimed] == ["next"]


async def test_a_call_that_was_overtaken_takes_none_and_loses_none(rig: Rig) -> None:
    await rig.declare()
    await rig.turn(5, call="call0900")
    await leave(rig, "job", 1)
    with pytest.raises(InternalError, match="one at a time"):
        await rig.turn(5, call="call0899")
    assert await rig.states() == {"job": "ready"}
    assert await rig.turn(5, call="call0900") is not None
    assert await rig.states() == {"job": "ready"}


async def test_who_wants_none_gets_none(rig: Rig) -> None:
    await rig.declare()
    await leave(rig, "job", 1)
    assert (await rig.turn(0)).claimed == []
    assert await rig.states() == {"job": "ready"}


async def test_of_several_each_is_claimed(rig: Rig) -> None:
    await rig.declare()
    for turn in (1, 2, 3):
        await leave(rig, f"job{turn}", turn)
    assert [claim.id for claim in (await rig.turn(2)).claimed] == ["job1", "job2"]
    assert [claim.id for claim in (await rig.turn(2)).claimed] == ["job3"]
