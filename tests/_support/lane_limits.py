"""What limits of tenants and keys promise while workers are killed, asked of the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from tests._support.chain_order import (
    Naming,
    deliveries,
    fewest_us,
    key_of,
    overlaps,
    overtakings,
)
from tests._support.lane_app import (
    LanePlan,
    LaneProcesses,
    LaneWork,
    all_ended,
    at_work,
    job_id,
    line_up,
)
from tests._support.ledger import Ledger


def claims_by(owner: Naming, ledger: Ledger) -> dict[str, list[int]]:
    """The server's instants of all claims that a worker was told of."""
    found: dict[str, list[int]] = defaultdict(list)
    for one in ledger.entries("claim"):
        found[owner(one.job)].append(int(one.detail))
    return found


def no_window_is_exceeded(owner: Naming, limits: Mapping[int, int], ledger: Ledger) -> None:
    """No window of any owner holds more claims than its limits (number: microseconds) allow."""
    for name, instants in claims_by(owner, ledger).items():
        for most, per_us in limits.items():
            assert fewest_us(instants, most) >= per_us, f"{name} exceeds {most} in {per_us} us"


@asynccontextmanager
async def completed_though_lost(
    plan: LanePlan, works: Iterable[tuple[str, LaneWork]], lost: Sequence[int]
) -> AsyncIterator[LaneProcesses]:
    """Each of these jobs has come to its end, though workers were lost (see `lose`)."""
    async with at_work(plan, 3) as (processes, app):
        accepted = await line_up(app, works)
        await processes.lose(*lost)
        await all_ended(app, completed=len(accepted))
        assert {one.job for one in deliveries(processes.ledger) if one.end == "finish"} == accepted
        yield processes


@asynccontextmanager
async def ended_in_order_of_keys(
    plan: LanePlan, tenants: Sequence[str], *, ms: int, lost: Sequence[int]
) -> AsyncIterator[LaneProcesses]:
    """Jobs of three keys of each tenant, some failing once, have ended though workers were lost."""
    works = (
        (job_id(tenant, key, number), LaneWork(ms=ms, fails=int(number % 5 == 2)))
        for number in range(10)
        for tenant in tenants
        for key in ("a", "b", "c")
    )
    async with completed_though_lost(plan, works, lost) as processes:
        found = deliveries(processes.ledger)
        assert overlaps(found, key_of) == []
        assert overtakings(found, key_of) == []
        yield processes
