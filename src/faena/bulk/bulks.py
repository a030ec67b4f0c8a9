"""Begins, shows, stops and carries out bulk actions.

    bulk = await app.bulk.begin("cancel", query="tenant:acme state:ready", by="ana")

Whoever may drive one does: any worker of the app, or the process of the dashboard.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from faena.bulk.action import action_of
from faena.bulk.driver import Driver, Overtaken
from faena.bulk.record import BulkView, Item, Plan, Progress, view_of, write
from faena.deadletter.desk import Desk
from faena.deadletter.filters import read_decision
from faena.deadletter.queues import DeskQueues
from faena.engine.calls.bulk import BulkCalls, BulkRecord
from faena.engine.scripts import Look
from faena.errors import ArgumentError, JobNotFound, arguments
from faena.inspection.job_query import JobQuery
from faena.inspection.searcher import Place, Searcher
from faena.states import State
from faena.tenancy.lanes import lane_named
from faena.values.names import check_label

MOST_CHOSEN: Final = 200


class Chosen(NamedTuple):
    """A job that was chosen by hand."""

    queue: str
    id: str
    tenant: str | None = None
    """Where tenants have jobs of the same id."""


class Bulks:
    """The bulk actions of an app."""

    def __init__(self, queues: DeskQueues) -> None:
        self._queues = queues

    async def searcher(self) -> Searcher:
        """Looks for jobs in all queues of the app."""
        calls, routers = await self._queues.open()
        return Searcher(calls.engine, routers, self._queues.chosen(None))

    async def begin(
        self,
        action: str,
        *,
        query: JobQuery | None = None,
        jobs: Iterable[Chosen] = (),
        by: str = "operator",
        reason: str = "",
        total: int = 0,
    ) -> str:
        """Begin one, on all jobs that fit a query or on some jobs; returns its id.

        `total` is how many jobs are to be looked at, as far as known: progress is shown against it.
        """
        states = action_of(action).states
        read_decision("manual", reason, by)
        chosen = list(dict.fromkeys(jobs))
        if (query is None) == (not chosen) or len(chosen) > MOST_CHOSEN:
            raise ArgumentError(
                f"a bulk action must have a query, or 1 to {MOST_CHOSEN} jobs, got {len(chosen)}",
                field="jobs",
            )
        progress = Progress(place=None if query is None else Place())
        for one in chosen:
            await self._choose(one, states, progress)
        plan = Plan(action=action, query=query, by=by, reason=reason, total=total or len(chosen))
        calls = await self._calls()
        (ident,) = self._queues.new_ids(1)
        await calls.ask("begin", ident, plan=write(plan), progress=write(progress))
        return ident

    async def _choose(self, chosen: Chosen, states: frozenset[State], progress: Progress) -> None:
        """Look for a job that was chosen; refuse one that the action does not fit."""
        queue, job = self._queues.one(chosen.queue), check_label("id", chosen.id)
        desk_calls, routers = await self._queues.open()

        async def look(shard: str) -> tuple[str, Look | None]:
            (found,) = await desk_calls.engine.look(shard, [job])
            return shard, found

        shard, found = await routers.of(queue).first(
            look, is_found=lambda one: one[1] is not None, lane=lane_named(chosen.tenant)
        )
        progress.looked += 1
        if found is None:
            progress.count(Item(queue, shard, job, "", ""), "unknown")
        elif found.state not in states:
            progress.count(Item(queue, shard, job, "", ""), found.state)
        else:
            item = Item(queue, shard, job, found.state, found.score, found.enqueued_at)
            progress.pending = [*progress.pending, item]

    async def get(self, ident: str) -> BulkView:
        """One of them."""
        return await self._send("look", ident)

    async def list(self) -> Sequence[BulkView]:
        """The last ones, the newest first; those under way before those that are over."""
        found = await (await self._calls()).all()
        views = [view_of(ident, one) for ident, one in found.items()]
        return sorted(views, key=lambda one: (one.state != "running", -one.at))

    async def stop(self, ident: str) -> BulkView:
        """Stop one after the jobs whose turn it is; what was done stays done."""
        return await self._send("stop", ident)

    async def resume(self, ident: str) -> BulkView:
        """Go on with one that was stopped."""
        return await self._send("resume", ident)

    # -- driving --------------------------------------------------------------------------------

    async def under_way(self) -> Sequence[str]:
        """Those that somebody must drive."""
        found = await (await self._calls()).all()
        return [ident for ident, one in found.items() if one.state == "running"]

    async def carry_on(self, ident: str) -> None:
        """Drive one to its end, unless another process does."""
        calls, searcher = await self._calls(), await self.searcher()
        with contextlib.suppress(Overtaken):
            await Driver(calls, searcher, Desk(self._queues), ident).run()

    async def _calls(self) -> BulkCalls:
        calls, _ = await self._queues.open()
        return BulkCalls(calls.engine)

    async def _send(self, verb: str, ident: str) -> BulkView:
        with arguments():
            check_label("bulk action", ident)
        record = await (await self._calls()).ask(verb, ident)
        return view_of(ident, _known(record, ident))


def _known(record: BulkRecord | None, ident: str) -> BulkRecord:
    if record is None:
        raise JobNotFound(f"no bulk action {ident} (the last 100 are remembered)", op="bulk")
    return record
