"""Order under faults, judged by the ledger: chains start in order and never overlap, and none waits
for another's failures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from faena import Faena
from tests._support.chain_order import (
    Delivery,
    began_between,
    by_chain,
    deliveries,
    first_overtakings,
    key_of,
    overlaps,
    overtakings,
    tenant_of,
)
from tests._support.eventually import eventually
from tests._support.fault_app import QueuePlan, task_of
from tests._support.lane_app import (
    LanePlan,
    LaneWork,
    all_ended,
    at_work,
    job_id,
    line_up,
)

NAMING = {"tenant": tenant_of, "key": key_of}
LEASE = "5s"
"""A worker that lives keeps its leases, however busy the machine: a job that is lost and given to
another may overlap with itself."""


def in_turn(
    chains: list[tuple[str, str]], jobs: int, make: Callable[[int], LaneWork]
) -> Iterator[tuple[str, LaneWork]]:
    """The works of several chains, mixed as tenants mix them."""
    for number in range(jobs):
        for tenant, key in chains:
            yield job_id(tenant, key, number), make(number)


FOUR_BY_TENANT = [(tenant, "a") for tenant in ("acme", "bolt", "corp", "dune")]
SIX_BY_KEY = [(tenant, key) for tenant in ("acme", "bolt") for key in ("a", "b", "c")]


@pytest.mark.parametrize(("order", "chains"), [("tenant", FOUR_BY_TENANT), ("key", SIX_BY_KEY)])
async def test_chains_keep_their_order_while_workers_are_killed_and_heads_fail(
    lane_plan_for: Callable[..., LanePlan], order: str, chains: list[tuple[str, str]]
) -> None:
    plan = lane_plan_for(QueuePlan(retry_wait="100ms", lease=LEASE), order=order)
    found = await run_all_while_workers_die(plan, chains)
    assert overlaps(found, NAMING[order]) == []
    assert overtakings(found, NAMING[order]) == []


async def run_all_while_workers_die(
    plan: LanePlan, chains: list[tuple[str, str]]
) -> list[Delivery]:
    """Some heads fail once and three workers are killed; every job completes."""
    async with at_work(plan, 3) as (processes, app):
        works = in_turn(chains, 25, lambda number: LaneWork(ms=20, fails=int(number % 5 == 3)))
        accepted = await line_up(app, works)
        await processes.lose(20, 50, 80)
        await all_ended(app, completed=len(accepted))
        found = deliveries(processes.ledger)
    assert {one.end for one in found} == {"finish", "fail", "died"}
    assert {one.job for one in found if one.end == "finish"} == accepted
    assert processes.ledger.unexplained() == []
    return found


@pytest.mark.parametrize(("order", "chains"), [("tenant", FOUR_BY_TENANT), ("key", SIX_BY_KEY)])
async def test_where_failures_pass_first_attempts_keep_their_order_and_nothing_overlaps(
    lane_plan_for: Callable[..., LanePlan], order: str, chains: list[tuple[str, str]]
) -> None:
    plan = lane_plan_for(QueuePlan(retry_wait="100ms", lease=LEASE), order=order, on_failure="pass")
    found = await run_all_while_workers_die(plan, chains)
    assert overlaps(found, NAMING[order]) == []
    assert first_overtakings(found, NAMING[order]) == []
    assert overtakings(found, NAMING[order]) != []  # others did pass the ones that failed
    for chain in by_chain(found, NAMING[order]).values():
        second = next(one for one in chain if one.attempt == 2)
        assert second.began_ns < chain[-1].began_ns  # it came back before those that came later


@pytest.mark.parametrize(("order", "chains"), [("tenant", FOUR_BY_TENANT), ("key", SIX_BY_KEY)])
async def test_a_failing_head_blocks_its_own_chain_and_no_other(
    lane_plan_for: Callable[..., LanePlan], order: str, chains: list[tuple[str, str]]
) -> None:
    plan = lane_plan_for(QueuePlan(retry_wait="2s"), order=order)
    async with at_work(plan, 2) as (processes, app):
        failing = job_id(*chains[0], 0)
        works = [
            (job, LaneWork(ms=5, fails=int(job == failing)))
            for job, _ in in_turn(chains, 10, lambda _: LaneWork())
        ]
        accepted = await line_up(app, works)
        await all_ended(app, completed=len(accepted))
        found = deliveries(processes.ledger)
    assert overlaps(found, NAMING[order]) == []
    assert overtakings(found, NAMING[order]) == []
    failed, again = [one for one in found if one.job == failing]
    assert (failed.end, again.end) == ("fail", "finish")
    served = by_chain(began_between(found, 0, again.began_ns), NAMING[order])
    assert {name: len({one.job for one in chain}) for name, chain in served.items()} == {
        NAMING[order](job_id(*chain, 0)): 1 if chain == chains[0] else 10 for chain in chains
    }


async def test_cancelled_heads_and_members_let_their_chain_go_on_in_order(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    plan = lane_plan_for(QueuePlan(retry_wait="1h"), order="tenant")
    async with at_work(plan, 2) as (processes, app):
        long, doomed = job_id("acme", "a", 0), job_id("bolt", "a", 0)
        chains = [("acme", "a"), ("bolt", "a"), ("corp", "a")]
        special = {long: LaneWork(ms=60_000), doomed: LaneWork(fails=1)}
        works = in_turn(chains, 12, lambda _: LaneWork(ms=10))
        accepted = await line_up(app, ((job, special.get(job, work)) for job, work in works))
        await eventually(
            lambda: processes.ledger.jobs("start")[long] and processes.ledger.jobs("fail")
        )
        await eventually(lambda: _state_is(app, doomed, "delayed"))
        blocked = {job_id(tenant, "a", number) for tenant in ("acme", "bolt") for number in (4, 5)}
        for job in sorted(blocked):
            assert await task_of(app).handle(job).cancel() == "cancelled"
        assert await task_of(app).handle(doomed).cancel() == "cancelled"
        assert await task_of(app).handle(long).cancel() == "asked"
        gone = blocked | {doomed, long}
        await all_ended(app, completed=len(accepted - gone), cancelled=len(gone))
        found = deliveries(processes.ledger)
    assert {one.job for one in found if one.end == "finish"} == accepted - gone
    assert {one.job: one.end for one in found if one.job in gone} == {long: "stop", doomed: "fail"}
    assert overlaps(found, tenant_of) == []
    assert overtakings(found, tenant_of) == []


async def test_a_job_that_is_rerun_takes_its_turn_behind_those_that_wait(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    plan = lane_plan_for(QueuePlan(attempts=1, lease=LEASE), order="tenant")
    async with at_work(plan, 2) as (processes, app):
        chains = [("acme", "a"), ("bolt", "a")]
        dead = [job_id(tenant, "a", 0) for tenant, _ in chains]
        works = in_turn(chains, 20, lambda number: LaneWork(ms=60, fails=int(number == 0)))
        accepted = await line_up(app, works)
        for job in dead:
            await eventually(lambda job=job: _state_is(app, job, "dead"))
            await task_of(app).handle(job).rerun()
        processes.replace()
        await all_ended(app, completed=len(accepted) - 2, dead=2)
        found = deliveries(processes.ledger)
    assert overlaps(found, tenant_of) == []
    for chain in by_chain(found, tenant_of).values():
        jobs = [one.job for one in chain]
        assert jobs[0] == jobs[-1]  # the last to begin is the one that was rerun
        assert jobs[:-1] == sorted(jobs[:-1])


async def test_a_limited_tenant_waits_for_its_provider_and_keeps_its_order(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    wait_ms = 400
    async with at_work(lane_plan_for(order="tenant"), 3) as (processes, app):
        limited = job_id("acme", "a", 2)
        works = in_turn(FOUR_BY_TENANT, 20, lambda _: LaneWork(ms=10))
        told = LaneWork(ms=10, limited=3, limited_ms=wait_ms)
        accepted = await line_up(app, ((job, told if job == limited else w) for job, w in works))
        await all_ended(app, completed=len(accepted))
        found = deliveries(processes.ledger)
    assert overlaps(found, tenant_of) == []
    assert overtakings(found, tenant_of) == []
    refusals = [one for one in found if one.end == "fail"]
    assert [(one.job, one.attempt) for one in refusals] == [(limited, 1)] * 3
    for one in refusals:
        until_ns = one.ended_ns + wait_ms * 1_000_000
        assert _of_tenant("acme", began_between(found, one.ended_ns, until_ns)) == []
    held = began_between(found, refusals[0].ended_ns, refusals[-1].began_ns)
    assert {tenant_of(one.job) for one in held} == {"acme", "bolt", "corp", "dune"}
    assert len(_of_tenant("acme", held)) == 1


def _of_tenant(tenant: str, found: list[Delivery]) -> list[Delivery]:
    return [one for one in found if tenant_of(one.job) == tenant]


async def _state_is(app: Faena, job: str, state: str) -> bool:
    return await task_of(app).handle(job).state() == state
