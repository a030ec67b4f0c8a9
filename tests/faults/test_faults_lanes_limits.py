"""Tenants' limits under faults: no window of any tenant holds more claims than its maximum, by the
server's own instants, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faena import Faena
from tests._support.chain_order import (
    Delivery,
    deliveries,
    key_of,
    overlaps,
    overtakings,
    tenant_of,
)
from tests._support.eventually import eventually
from tests._support.fault_app import QueuePlan, task_of
from tests._support.lane_app import (
    QUEUE,
    LanePlan,
    LaneProcesses,
    LaneWork,
    all_ended,
    at_work,
    job_id,
    line_up,
)
from tests._support.lane_limits import (
    completed_though_lost,
    ended_in_order_of_keys,
    no_window_is_exceeded,
)
from tests._support.search import IS_FULL

LIMITS = {5: 300_000, 12: 1_000_000}
TEXTS = ("5/300ms", "12/1s")
TENANTS = ("acme", "bolt", "corp")

is_long = pytest.mark.skipif(not IS_FULL, reason="runs with FAENA_SEARCH=full")


def no_tenants_window_is_exceeded(processes: LaneProcesses) -> None:
    no_window_is_exceeded(tenant_of, LIMITS, processes.ledger)


async def test_no_tenants_window_is_exceeded_while_workers_are_killed(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    works = (
        (job_id(tenant, "a", number), LaneWork(ms=20, fails=int(number % 9 == 4)))
        for number in range(40)
        for tenant in TENANTS
    )
    plan = lane_plan_for(tenant_limits=TEXTS)
    async with completed_though_lost(plan, works, (20, 50, 80)) as processes:
        no_tenants_window_is_exceeded(processes)


async def test_a_tenant_at_its_limit_keeps_nobody_else_waiting(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    async with at_work(lane_plan_for(tenant_limits=TEXTS), 2) as (processes, app):
        noisy = ((job_id("acme", "a", number), LaneWork()) for number in range(200))
        await line_up(app, noisy)
        await eventually(lambda: len(processes.ledger.entries("start")) >= 5)
        works = ((job_id(f"quiet{number}", "a", 0), LaneWork()) for number in range(50))
        quiet = await line_up(app, works)
        await eventually(lambda: processes.ledger.jobs("finish").keys() >= quiet)
        assert (await app.queues[QUEUE].counts())["ready"] > 0  # of the noisy one, which waits
        no_tenants_window_is_exceeded(processes)


async def test_order_and_limits_hold_together_while_workers_are_killed(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    plan = lane_plan_for(QueuePlan(retry_wait="100ms"), order="key", tenant_limits=TEXTS)
    async with ended_in_order_of_keys(plan, TENANTS, ms=30, lost=(25, 60)) as processes:
        assert processes.ledger.unexplained() == []
        no_tenants_window_is_exceeded(processes)


async def test_order_and_limits_hold_with_every_fault_at_once(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    plan = lane_plan_for(
        QueuePlan(retry_wait="100ms", attempts=2), order="tenant", tenant_limits=TEXTS
    )
    async with at_work(plan, 3) as (processes, app):
        jobs = [job_id(tenant, "a", number) for number in range(20) for tenant in TENANTS]
        accepted = await line_up(app, ((job, _trouble(job)) for job in jobs))
        doomed = {job for job in jobs if _number(job) % 10 == 9}
        dead = {job for job in jobs if _number(job) % 10 == 7}
        await processes.lose(10)
        for job in sorted(doomed):
            assert await task_of(app).handle(job).cancel() == "cancelled"
        await processes.lose(25, 40)
        left = accepted - doomed - dead
        ended = {"completed": len(left), "dead": len(dead), "cancelled": len(doomed)}
        await all_ended(app, **ended)
        first = deliveries(processes.ledger)
        for job in sorted(dead):
            await task_of(app).handle(job).rerun()
        await eventually(lambda: min(processes.ledger.jobs("fail")[job] for job in dead) == 4)
        await all_ended(app, **ended)
        no_tenants_window_is_exceeded(processes)
        assert overtakings(first, tenant_of) == []
        assert overlaps(deliveries(processes.ledger), tenant_of) == []
        assert {one.job for one in first if one.end == "finish"} == left
        assert processes.ledger.jobs("start").keys().isdisjoint(doomed)


def _number(job: str) -> int:
    return int(job.rpartition(".")[2])


def _trouble(job: str) -> LaneWork:
    """Every tenth job fails once, every tenth is refused by its provider, every tenth dies."""
    match _number(job) % 10:
        case 3:
            return LaneWork(ms=20, fails=1)
        case 5:
            return LaneWork(ms=20, limited=2, limited_ms=150)
        case 7:
            return LaneWork(ms=20, fails=2)
        case _:
            return LaneWork(ms=20)


async def test_running_jobs_of_a_tenant_never_exceed_its_maximum_while_workers_are_killed(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    works = (
        (job_id(tenant, "a", number), LaneWork(ms=30)) for number in range(40) for tenant in TENANTS
    )
    plan = lane_plan_for(tenant_max_running=2)
    async with completed_though_lost(plan, works, (20, 50)) as processes:
        found = deliveries(processes.ledger)
    assert {max(_at_once(found, tenant)) for tenant in TENANTS} == {2}


def _at_once(found: list[Delivery], tenant: str) -> list[int]:
    """How many of a tenant's were under way whenever one of them began."""
    own = [one for one in found if tenant_of(one.job) == tenant]
    return [sum(other.began_ns <= one.began_ns < other.ended_ns for other in own) for one in own]


@is_long
async def test_a_million_claims_keep_every_order_and_every_window(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    """Batch after batch, each with deaths and retries, on one server."""
    plan = lane_plan_for(
        QueuePlan(retry_wait="50ms", concurrency=50),
        order="key",
        tenant_limits=("2000/1s", "9000/5s"),
    )
    for batch in range(20):
        await _work_off(plan, batch)


async def _work_off(plan: LanePlan, batch: int) -> None:
    before = 50_000 * batch
    async with at_work(plan, 3) as (processes, app):
        works = (
            (job_id(f"t{tenant}", f"k{key}", 10_000 * batch + number), _mixed(number))
            for number in range(100)
            for tenant in range(20)
            for key in range(25)
        )
        accepted = await line_up(app, works)
        for number in (5_000, 20_000, 35_000):
            await eventually(lambda number=number: _has_completed(app, before + number), within=600)
            processes.replace()
        await all_ended(app, completed=before + len(accepted), within=600)
        _judge(processes, {2000: 1_000_000, 9000: 5_000_000})
        processes.ledger.path.unlink()


def _mixed(number: int) -> LaneWork:
    return LaneWork(fails=int(number % 20 == 7))


async def _has_completed(app: Faena, number: int) -> bool:
    return (await app.queues[QUEUE].counts())["completed"] >= number


def _judge(processes: LaneProcesses, limits: dict[int, int]) -> None:
    found = deliveries(processes.ledger)
    assert overlaps(found, key_of) == []
    assert overtakings(found, key_of) == []
    no_window_is_exceeded(tenant_of, limits, processes.ledger)
