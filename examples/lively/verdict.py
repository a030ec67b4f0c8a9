"""Plan, ledger and broker compared, job by job.

The plan says how every job must end and how often its handler must start. A start beyond that needs
a reason: a delivery lost with its worker, or an upstream that asked to wait. A start without one is
doubled; a planned job that the broker does not know is lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, fields

from examples.lively.ledger import Reader
from faena import JobView, Queue, State
from faena.states import FINISHED

_PAGE = 1000


@dataclass(frozen=True)
class Ending:
    """How a job must end, and how many starts that takes."""

    state: State
    starts: int


Plan = dict[str, Ending]
"""Accepted jobs by id."""


@dataclass
class Verdict:
    """The closing figures; verdicts of several days add up."""

    jobs: int = 0
    completed: int = 0
    dead: int = 0
    cancelled: int = 0
    waiting: int = 0
    retries: int = 0
    rescued: int = 0
    starts: int = 0
    planned_starts: int = 0
    after_rescue: int = 0
    after_limit: int = 0
    lost: int = 0
    doubled: int = 0
    astray: int = 0
    """Finished otherwise than planned, or with fewer starts."""

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.astray)

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            *(getattr(self, one.name) + getattr(other, one.name) for one in fields(self))
        )


async def judge(plan: Plan, ledger: Reader, queues: list[Queue]) -> Verdict:
    """Look at every job there is."""
    ledger.read()
    verdict = Verdict(jobs=len(plan))
    missing = set(plan)
    for queue in queues:
        async for view in _every_job(queue):
            if view.id in plan:
                missing.discard(view.id)
                _weigh(verdict, plan[view.id], view, ledger)
    verdict.lost = len(missing)
    return verdict


def _weigh(verdict: Verdict, ending: Ending, view: JobView, ledger: Reader) -> None:
    starts, limited = ledger.starts[view.id], ledger.limited[view.id]
    verdict.starts += starts
    verdict.rescued += view.losses
    if view.state not in FINISHED:
        verdict.waiting += 1
        verdict.planned_starts += starts  # it is not over: whatever it did so far is as planned
        return
    setattr(verdict, view.state.value, getattr(verdict, view.state.value) + 1)
    verdict.retries += max(0, view.attempts_made - 1)
    verdict.planned_starts += ending.starts
    extra = starts - ending.starts - limited
    verdict.after_limit += limited
    verdict.after_rescue += max(0, min(extra, view.losses))
    verdict.doubled += max(0, extra - view.losses)
    verdict.astray += extra < 0 or view.state is not ending.state


async def _every_job(queue: Queue) -> AsyncIterator[JobView]:
    for state in State:
        cursor: str | None = None
        while True:
            page = await queue.jobs(state, limit=_PAGE, cursor=cursor)
            for view in page.jobs:
                yield view
            cursor = page.cursor
            if cursor is None:
                break
