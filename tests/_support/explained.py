"""Explanations of jobs of a rig, and what makes them run."""

from __future__ import annotations

from faena.inspection.explainer import Explainer
from faena.inspection.explanation import Explanation
from faena.inspection.past import PastJobs
from faena.options import QueueOptions
from faena.outcomes import Completed
from faena.sharding.router import Routers
from tests._support.rig import Rig

ROUNDS = 50


async def explain(rig: Rig, job: str) -> Explanation:
    """As `handle.explain()` does."""
    routers = Routers(rig.engine, {rig.queue: QueueOptions(fair=False)})
    try:
        return await Explainer(rig.engine, routers, PastJobs()).explain(rig.queue, job)
    finally:
        await routers.close()


async def runs(rig: Rig, job: str) -> bool:
    """Whether a worker that serves all it can claims the job now."""
    for _ in range(ROUNDS):
        claimed = (await rig.turn(100)).claimed
        if any(one.id == job for one in claimed):
            return True
        if not claimed:
            return False
        await rig.turn(0, *((one.id, one.lease, Completed()) for one in claimed))
    return False
