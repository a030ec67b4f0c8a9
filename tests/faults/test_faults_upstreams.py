"""Many worker processes and one outside service that fails for a while, or asks to be left alone.

The service is a stand-in that writes down every call. Bounds are numbers of calls and the instants
of that ledger, never how fast the machine is. With FAENA_SEARCH=full there are as many processes
and jobs as the promises speak of.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate
from pathlib import Path

import pytest
from msgspec.structs import replace

from faena import Faena
from tests._support.eventually import eventually
from tests._support.fault_app import QueuePlan
from tests._support.search import IS_FULL
from tests._support.stand_in import (
    Call,
    Reply,
    StandIn,
    broken_for,
    down,
    fine,
    held,
    now_us,
)
from tests._support.upstream_app import (
    Happened,
    UpstreamPlan,
    all_called,
    attempts_made,
    counted,
    enqueue_calls,
    history,
    plan_for,
    turned,
    upstreams_at_work,
)
from tests._support.valkey import Server

WORKERS = 20 if IS_FULL else 4
SLOTS = 3
JOBS = 10_000 if IS_FULL else 1200
"""More than the 1024 calls of a ramp, so that some are made when it is over."""
QUEUE = QueuePlan(lease="30s", concurrency=SLOTS, attempts=100, retry_wait="10ms")
VOLUME = 10
SECOND_US = 1_000_000
OPEN_US, RAMP_US = SECOND_US, 2 * SECOND_US
BREAKER = {"volume": VOLUME, "open": "1s", "longest": "1s", "ramp": "2s", "errors": 0.5}
PROBE_US = 10_100_000
"""How long a probe is waited for: a call's 100 ms, and ten seconds."""
PATIENCE_S = 300.0

Planned = Callable[..., UpstreamPlan]


@pytest.fixture
async def service() -> AsyncIterator[StandIn]:
    async with StandIn() as service:
        yield service


@pytest.fixture
def planned(server: Server, service: StandIn, tmp_path: Path) -> Planned:
    def plan(queue: QueuePlan = QUEUE, **more: object) -> UpstreamPlan:
        return plan_for(server.url, str(tmp_path / "ledger"), service, queue, **more)

    return plan


async def test_an_outage_costs_few_calls_and_no_attempt_and_ends_without_a_herd(
    planned: Planned, service: StandIn
) -> None:
    service.mode = down
    async with upstreams_at_work(planned(breaker=BREAKER), WORKERS) as (_, app):
        ids = await enqueue_calls(app, JOBS)
        await turned(app, "open")
        await eventually(lambda: _is_quiet(app, service))
        service.mode = fine
        await all_called(app, JOBS, within=PATIENCE_S)
        told, used = await history(app), await attempts_made(app, ids)
    failed, probed = service.answered(503), sum(one.event == "half_open" for one in told)
    assert VOLUME <= len(failed) <= VOLUME + WORKERS * SLOTS + probed
    assert used == len(service.calls) == JOBS + len(failed), "an attempt is a call"
    for opened, probing in zip(_when("open", told), _when("half_open", told), strict=True):
        assert probing - opened >= OPEN_US
        in_flight = WORKERS * SLOTS if opened == _when("open", told)[0] else 0
        assert len(service.between(opened, probing)) <= in_flight
    _recovered_in_doublings(told, service)


def _recovered_in_doublings(told: list[Happened], service: StandIn) -> None:
    """One probe, and then never more calls than the ramp has room for."""
    assert [one.event for one in told[-4:]] == ["open", "half_open", "recovering", "closed"]
    _, probing, recovering, closed = (one.at for one in told[-4:])
    assert len(service.between(probing, recovering)) == 1
    for number, call in enumerate(service.between(recovering, closed), 1):
        assert number <= 2 ** (10 * (call.arrived_us - recovering) / RAMP_US)


def _when(event: str, told: list[Happened]) -> list[int]:
    return [one.at for one in told if one.event == event]


async def _is_quiet(app: Faena, service: StandIn) -> bool:
    """No job runs and no call is under way: whatever was permitted before it opened has ended."""
    counts = await counted(app.queues["q"])
    return not counts.get("running") and all(one.ended_us for one in service.calls)


class Spells:
    """A service that takes no calls for a second, each time it has taken so many."""

    def __init__(self, every: int, *, as_date: bool) -> None:
        self.every, self.as_date = every, as_date
        self.taken = 0
        self.spells: list[tuple[int, int, list[Call]]] = []
        """From when to when it took none, and which came all the same."""

    def __call__(self, call: Call) -> Reply:
        if self.spells and call.arrived_us < self.spells[-1][1]:
            self.spells[-1][2].append(call)
        elif self.taken >= self.every * (len(self.spells) + 1):
            whole_s = call.arrived_us // SECOND_US + 2
            until = whole_s * SECOND_US if self.as_date else call.arrived_us + SECOND_US
            self.spells.append((call.arrived_us, until, [call]))
        else:
            self.taken += 1
            return Reply()
        left_us = self.spells[-1][1] - call.arrived_us
        said = formatdate(self.spells[-1][1] // SECOND_US, usegmt=True)
        return Reply(429, (f"retry-after: {said if self.as_date else -(-left_us // SECOND_US)}",))


@pytest.mark.parametrize("as_date", [False, True])
async def test_no_call_begins_before_retry_after_but_those_under_way(
    planned: Planned, service: StandIn, *, as_date: bool
) -> None:
    """One per slot at most was permitted before, and none begins in a process that knows."""
    service.mode = spells = Spells(JOBS // 4, as_date=as_date)
    async with upstreams_at_work(planned(), WORKERS) as (processes, app):
        ids = await enqueue_calls(app, JOBS)
        await all_called(app, JOBS, within=PATIENCE_S)
        assert await attempts_made(app, ids) == JOBS, "waiting costs no attempt"
        told = [(one.pid, int(one.detail)) for one in processes.ledger.entries("refused")]
    assert len(spells.spells) >= 3
    for since, until, early in spells.spells:
        assert max(Counter(one.pid for one in early).values()) <= SLOTS
        knows = {pid: at for pid, at in reversed(told) if since <= at < until}
        begun = [one for one in service.calls if one.sent_us < until]
        assert [one for one in begun if one.sent_us > knows.get(one.pid, until)] == []


async def test_a_broken_tenant_leaves_the_others_untouched(
    planned: Planned, service: StandIn
) -> None:
    service.mode = broken_for("broken")
    plan = planned(breaker={**BREAKER, "open": "1h", "longest": "1h", "per": "tenant"}, fair=True)
    async with upstreams_at_work(plan, WORKERS) as (_, app):
        broken = await enqueue_calls(app, 50 * WORKERS, tenant="broken")
        for tenant in (tenants := [f"t{number}" for number in range(WORKERS)]):
            await enqueue_calls(app, 50, tenant=tenant)
        await eventually(lambda: _have_completed(app, 50 * WORKERS), within=PATIENCE_S)
        told, used = await history(app), await attempts_made(app, broken)
        counts = await counted(app.queues["q"])
    calls = Counter((one.tenant, one.status) for one in service.calls)
    assert {(one.event, one.scope) for one in told} == {("open", "service/@broken")}
    assert {tenant: calls[tenant, 200] for tenant in tenants} == dict.fromkeys(tenants, 50)
    assert VOLUME <= calls["broken", 503] <= VOLUME + WORKERS * SLOTS
    assert used == calls["broken", 503]
    assert sum(counts.values()) == 100 * WORKERS
    assert counts["completed"] == 50 * WORKERS


async def _have_completed(app: Faena, number: int) -> bool:
    return (await app.queues["q"].counts())["completed"] == number


# -- deaths ----------------------------------------------------------------------------------------


async def test_another_probes_when_a_prober_is_killed(planned: Planned, service: StandIn) -> None:
    """Nobody does before the killed one's time is over, as long as a call may take."""
    service.mode = down
    plan = planned(replace(QUEUE, lease="2s"), breaker=BREAKER, timeout="100ms")
    async with upstreams_at_work(plan, 2) as (processes, app):
        await enqueue_calls(app, 20)
        await turned(app, "open")
        await eventually(lambda: _is_quiet(app, service))
        service.mode = held(asyncio.Event())
        before = len(service.calls)
        await eventually(lambda: len(service.calls) > before)
        probe = service.calls[before]
        service.mode = fine
        processes.kill(next(one for one in processes.started if one.pid == probe.pid))
        await all_called(app, 20, within=PATIENCE_S)
        recovering = await turned(app, "recovering")
        probing = [one.at for one in await history(app) if one.event == "half_open"][-1]
    assert probing < probe.arrived_us < recovering
    (second,) = service.between(probe.arrived_us, recovering)
    assert second.pid != probe.pid
    assert second.arrived_us - probing >= PROBE_US


async def test_a_breaker_stays_open_when_the_process_that_opened_it_is_killed(
    planned: Planned, service: StandIn
) -> None:
    """It dies right after its report, and holds no queue any more; nor does anybody need it to."""
    service.mode = down
    breaker = {**BREAKER, "open": "3s", "longest": "3s"}
    async with upstreams_at_work(planned(breaker=breaker), 1) as (processes, app):
        ids = await enqueue_calls(app, 50)
        opened = await turned(app, "open")
        (dead,) = processes.started
        processes.kill(dead)
        service.mode = fine
        processes.start(2)
        await all_called(app, 50, within=PATIENCE_S)
        probing, used = await turned(app, "half_open"), await attempts_made(app, ids)
    assert VOLUME <= sum(one.pid == dead.pid for one in service.calls) <= VOLUME + SLOTS
    assert probing - opened >= 3 * SECOND_US
    assert {one.pid for one in service.calls if one.arrived_us < probing} == {dead.pid}
    lost = len(service.calls) - used
    assert 0 <= lost <= SLOTS, "its last calls may have ended unsettled, and are no attempts"


async def test_a_frozen_worker_begins_no_call_with_what_it_was_granted_before(
    planned: Planned, service: StandIn
) -> None:
    """It had permits in advance; when it goes on, an outage has begun of which it heard nothing."""
    breaker = {**BREAKER, "open": "1h", "longest": "1h", "errors": 0.001}
    async with upstreams_at_work(planned(breaker=breaker), 2) as (processes, app):
        await enqueue_calls(app, 3000)
        frozen = processes.started[0]
        await eventually(lambda: sum(one.pid == frozen.pid for one in service.calls) >= 100)
        frozen.freeze()
        service.mode = down
        await turned(app, "open")
        await eventually(lambda: _is_quiet_but(frozen.pid, service))
        thawed, failed = now_us(), len(service.answered(503))
        frozen.thaw()
        await eventually(lambda: _is_quiet(app, service))
        begun = [one for one in service.calls if one.pid == frozen.pid and one.sent_us > thawed]
        told = await history(app)
    assert failed <= VOLUME + SLOTS
    assert len(begun) <= SLOTS, "those of jobs that were about to begin when it froze"
    assert [one.event for one in told] == ["open"]


def _is_quiet_but(pid: int, service: StandIn) -> bool:
    return all(one.ended_us or one.pid == pid for one in service.calls)
