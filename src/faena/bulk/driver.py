"""Drives one bulk action, slice by slice.

    note     the next jobs, found by its search, with how far that has come
    change   these jobs
    note     the next ones, and how these have ended

A driver that dies after a note leaves jobs of which nobody knows whether they were changed. The
next one looks at each: a job that is no longer as it was found was changed, others are changed now.
So no job is forgotten. None is changed twice wrongly either, also where a driver that was taken for
dead comes back between its note and its call: the desk decides about a job once, what is cancelled
or removed stays so, and a job is rerun only if it had ended before the action began.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

from faena.bulk.action import Action, action_of
from faena.bulk.record import Item, Plan, Progress, plan_of, progress_of, write
from faena.deadletter.desk import Desk
from faena.deadletter.views import Status
from faena.engine.calls.bulk import BulkCalls, BulkRecord
from faena.engine.calls.deadletter import SLICE as DESK_SLICE
from faena.engine.calls.deadletter import Decision, DeskCalls
from faena.engine.requester import on_behalf
from faena.engine.scripts import Look
from faena.inspection.searcher import Searcher

SLICE: Final = 100
"""Jobs that are noted together."""
CALL: Final = 20
"""Jobs of a call, which blocks the server."""
_BUDGET_S: Final = 0.5

_DECIDED: Final = {"retry": "retried", "resolve": "resolved", "discard": "discarded"}
"""What a dead job is afterwards."""

Answers = Sequence[str]


class Overtaken(Exception):
    """Another process drives the bulk action now."""


class Driver:
    """Drives one bulk action."""

    def __init__(self, calls: BulkCalls, searcher: Searcher, desk: Desk, ident: str) -> None:
        self._calls, self._searcher, self._desk = calls, searcher, desk
        self.id = ident
        self.owner = secrets.token_hex(8)

    async def run(self) -> None:
        """Drive it to its end; at once back if it is stopped, or another one drives it."""
        record = await self._calls.ask("take", self.id, owner=self.owner)
        if record is None:
            return
        plan, progress = plan_of(record), progress_of(record)
        work = _Work(self._calls, self._desk, plan, int(record.at))
        with on_behalf(plan.by):
            while record.state == "running":
                is_doubtful = bool(progress.pending) and progress.is_sent
                if progress.pending:
                    await self._look_again(work.action, progress)
                elif progress.place is not None:
                    await self._search(plan, progress)
                else:
                    await self._note(progress, "end")
                    return
                record = await self._note(progress)
                if record.state == "running":
                    await work.change(progress, is_doubtful=is_doubtful)

    async def _note(self, progress: Progress, verb: str = "save") -> BulkRecord:
        record = await self._calls.ask(verb, self.id, owner=self.owner, progress=write(progress))
        if record is None:
            raise Overtaken
        return record

    async def _search(self, plan: Plan, progress: Progress) -> None:
        """Find the next jobs."""
        if plan.query is None or progress.place is None:
            progress.place = None
            return
        among = action_of(plan.action).states
        found = await self._searcher.find(
            plan.query, progress.place, limit=SLICE, budget_s=_BUDGET_S, among=among
        )
        progress.place, progress.looked = found.place, found.looked
        progress.pending, progress.is_sent = [Item.of(hit) for hit in found.hits], True

    async def _look_again(self, action: Action, progress: Progress) -> None:
        """Leave those that another driver has changed, if one may have."""
        kept: list[Item] = []
        for shard, items in _by_shard(progress.pending, SLICE):
            looks = await self._calls.engine.look(shard, [one.id for one in items])
            for item, look in zip(items, looks, strict=True):
                if not progress.is_sent or _is_as_found(action, item, look):
                    kept.append(item)
                else:
                    progress.count(item, None)
        progress.pending, progress.is_sent = kept, True


def _is_as_found(action: Action, item: Item, look: Look | None) -> bool:
    """Whether nobody has done it yet; to be cancelled, a job may have gone on by itself."""
    if look is None:
        return False
    if action.name == "cancel":
        return look.state in action.states and item.enqueued_at in {None, look.enqueued_at}
    return (look.state, look.score) == (item.state, item.score)


class _Work:
    """What is done to jobs."""

    def __init__(self, calls: BulkCalls, desk: Desk, plan: Plan, began_at: int) -> None:
        self._desk, self._plan = desk, plan
        self.action = action_of(plan.action)
        engine, decision = calls.engine, Decision("manual", plan.reason, plan.by)
        desk_calls = DeskCalls(engine)

        async def dismiss(shard: str, ids: Sequence[str], status: Status) -> Answers:
            return await desk_calls.dismiss(shard, status.value, decision, ids)

        self._ways: Mapping[str, Callable[[str, Sequence[str]], Awaitable[Answers]]] = {
            "cancel": engine.cancel,
            "promote": engine.promote,
            "remove": engine.remove,
            "rerun": lambda shard, ids: calls.rerun(shard, ids, began_at),
            "resolve": lambda shard, ids: dismiss(shard, ids, Status.RESOLVED),
            "discard": lambda shard, ids: dismiss(shard, ids, Status.DISCARDED),
        }

    async def change(self, progress: Progress, *, is_doubtful: bool) -> None:
        """Change the jobs whose turn it is, and count them.

        A dead job stays as it was found: what another driver may have decided about it was done.
        """
        done = self.action.done | ({_DECIDED.get(self.action.name, "")} if is_doubtful else set())
        is_retry = self.action.name == "retry"
        at_once = CALL if self.action.name in {"cancel", "promote", "remove"} else DESK_SLICE
        for shard, items in _by_shard(progress.pending, at_once):
            ids = [one.id for one in items]
            if is_retry:
                answers = await self._retry(items[0].queue, ids)
            else:
                answers = await self._ways[self.action.name](shard, ids)
            for item, answer in zip(items, answers, strict=True):
                is_done = answer.split()[0] in done
                progress.count(item, None if is_done else answer.split()[0])
        progress.pending, progress.is_sent = [], False

    async def _retry(self, queue: str, ids: Sequence[str]) -> Answers:
        dealt = await self._desk.retry_many_as_new(
            queue, ids, by=self._plan.by, reason=self._plan.reason or "bulk retry"
        )
        return [one.refused or "OK" for one in dealt]


def _by_shard(items: Sequence[Item], most: int) -> Iterator[tuple[str, list[Item]]]:
    """The jobs of each shard, so many at once, each only once."""
    by_shard: dict[str, dict[str, Item]] = {}
    for one in items:
        by_shard.setdefault(one.shard, {})[one.id] = one
    for shard, some in by_shard.items():
        listed = [*some.values()]
        for start in range(0, len(listed), most):
            yield shard, listed[start : start + most]
