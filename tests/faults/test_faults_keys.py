"""Limits of keys while workers are killed: never exceeded, nothing lost, nobody else waits."""

from __future__ import annotations

from collections.abc import Callable

from tests._support.chain_order import key_of
from tests._support.eventually import eventually
from tests._support.lane_app import LanePlan, LaneProcesses, LaneWork, at_work, job_id, line_up
from tests._support.lane_limits import (
    completed_though_lost,
    ended_in_order_of_keys,
    no_window_is_exceeded,
)

LIMITS = {3: 200_000, 7: 1_000_000}
TEXTS = ("3/200ms", "7/1s")
TENANTS = ("acme", "bolt")


def no_keys_window_is_exceeded(processes: LaneProcesses) -> None:
    no_window_is_exceeded(key_of, LIMITS, processes.ledger)


async def test_no_keys_window_is_exceeded_while_workers_are_killed(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    works = (
        (job_id(tenant, key, number), LaneWork(ms=20, fails=int(number % 9 == 4)))
        for tenant in TENANTS
        for key in ("a", "b", "c")
        for number in range(20)
    )
    plan = lane_plan_for(key_limits=TEXTS)
    async with completed_though_lost(plan, works, (20, 50, 80)) as processes:
        assert processes.ledger.unexplained() == []
        no_keys_window_is_exceeded(processes)


async def test_order_and_limits_of_keys_hold_together_while_workers_are_killed(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    plan = lane_plan_for(order="key", key_limits=TEXTS)
    async with ended_in_order_of_keys(plan, TENANTS, ms=10, lost=(20, 40)) as processes:
        no_keys_window_is_exceeded(processes)


async def test_a_flooded_key_keeps_no_other_key_of_its_tenant_waiting(
    lane_plan_for: Callable[..., LanePlan],
) -> None:
    async with at_work(lane_plan_for(key_limits=TEXTS), 2) as (processes, app):
        flood = ((job_id("acme", "flood", number), LaneWork()) for number in range(600))
        await line_up(app, flood)
        works = ((job_id("acme", f"quiet{number}", 0), LaneWork()) for number in range(30))
        quiet = await line_up(app, works)
        await eventually(lambda: processes.ledger.jobs("finish").keys() >= quiet)
        assert len(processes.ledger.jobs("finish")) < 300
        no_keys_window_is_exceeded(processes)
