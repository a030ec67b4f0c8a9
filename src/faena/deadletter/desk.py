"""The desk: lists, shows, retries, discards and resolves dead jobs of all queues.

    page = await app.dead_letters.list(tenant="acme", error="ETIMEDOUT")
    await app.dead_letters.retry_as_new("mail", page.items[0].id, by="ana", reason="it is back")

Dead jobs stay in their queues. A retry makes a new job with the same bytes; the dead job is kept,
marked as retried. Each dead job is retried, discarded or resolved at most once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Unpack

import msgspec

from faena.deadletter.filters import (
    DeadFilter,
    bounded,
    read_decision,
    read_filter,
    read_ids,
    read_retry,
    refuse,
)
from faena.deadletter.pages import Met, Walker, Wanted, continued, cursor_at, gather
from faena.deadletter.queues import HOUR_US
from faena.deadletter.redrive import Redrives
from faena.deadletter.views import (
    DeadGroup,
    DeadLetter,
    DeadPage,
    DeadStats,
    Dealt,
    Status,
    read_letter,
)
from faena.engine import Engine
from faena.engine.calls.deadletter import SLICE, Decision, DeskCalls, Found, Position
from faena.engine.scripts import Look
from faena.options import Priority
from faena.sharding.consistent_read import Seen, Sight, look_at, read_steadily
from faena.values.names import check_label
from faena.values.numbers import check_whole

_LOOKS: Final = 5
"""How often jobs that may be in transit to another shard are searched."""


class Desk(Redrives):
    """The dead-letter desk of an app."""

    # -- looking --------------------------------------------------------------------------------

    async def list(
        self,
        *,
        queues: str | Sequence[str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
        is_newest_first: bool = True,
        **wanted: Unpack[DeadFilter],
    ) -> DeadPage:
        """A page of dead jobs of all queues, or of the given ones, in order of death."""
        limit = check_whole("limit", limit, least=1, most=200)
        names = self._queues.chosen(queues)
        calls, routers = await self._queues.open()
        about, after = await self._wanted(calls, names, wanted, is_newest_first, cursor)

        async def read(sights: Sequence[Sight]) -> DeadPage:
            by_queue = dict(zip(names, sights, strict=True))
            walkers = [
                Walker(calls, queue, shard, about, is_moving=sight.is_moving)
                for queue, sight in by_queue.items()
                for shard in sight.shards
            ]
            met, reached = await gather(walkers, after, limit, is_newest_first=is_newest_first)
            more = cursor_at(about, reached) if reached is not None else None
            return DeadPage(tuple(await _read_all(calls.engine, by_queue, met)), more)

        return await read_steadily([routers.of(queue) for queue in names], read)

    async def _wanted(
        self,
        calls: DeskCalls,
        names: tuple[str, ...],
        given: Mapping[str, Any],
        is_newest_first: bool,
        cursor: str | None,
    ) -> tuple[Wanted, Position]:
        checked, ages = read_filter(given)
        about = Wanted(names, checked, ages, is_newest_first)
        if cursor is not None:
            return continued(cursor, about)
        if any(age is not None for age in ages):
            now = (await calls.numbers(names[0], new_us=HOUR_US)).now
            about = about._replace(filter=bounded(checked, ages, now))
        return about, Position()

    async def get(self, queue: str, job_id: str) -> DeadLetter | None:
        """One dead job with all details; None if the queue has no such dead job."""
        name = self._queues.one(queue)
        calls, routers = await self._queues.open()

        async def look(shard: str) -> DeadLetter | None:
            record = (await calls.records(shard, [check_label("id", job_id)])).get(job_id)
            (seen,) = await calls.engine.look(shard, [job_id]) if record else (None,)
            if record is None or seen is None or seen.state != "dead":
                return None
            found = Found(Position(seen.score, job_id), record)
            due = await calls.engine.command("ZSCORE", shard, "desk_due", job_id)
            letter = read_letter(name, found, seen)
            return msgspec.structs.replace(letter, retry_at=int(float(due)) if due else None)

        return await routers.of(name).first(look, is_found=lambda one: one is not None)

    async def groups(
        self, *, queues: str | Sequence[str] | None = None, limit: int = 50
    ) -> list[DeadGroup]:
        """Dead jobs grouped by kind of error and queue, those with the most pending jobs first."""
        limit = check_whole("limit", limit, least=1, most=200)
        calls, _ = await self._queues.open()
        found: dict[tuple[str, str], DeadGroup] = {}
        shards = await self._queues.shards(self._queues.chosen(queues))
        told = await calls.groups_of_each([shard for _, shard in shards], limit)
        for (queue, _), groups in zip(shards, told, strict=True):
            for one in groups:
                group = DeadGroup(queue=queue, **one._asdict())
                known = found.get((queue, group.fingerprint))
                found[queue, group.fingerprint] = _joined(known, group) if known else group
        ranked = sorted(found.values(), key=lambda one: (-one.pending, -one.last_at))
        return ranked[:limit]

    async def stats(self, *, queues: str | Sequence[str] | None = None) -> DeadStats:
        """Counts of dead jobs by queue and status, and the oldest pending one."""
        calls, _ = await self._queues.open()
        names = self._queues.chosen(queues)
        by_queue, by_status = dict.fromkeys(names, 0), dict.fromkeys((str(s) for s in Status), 0)
        new, due, oldest = 0, 0, list[Position]()
        shards = await self._queues.shards(names)
        told = await calls.numbers_of_each([shard for _, shard in shards], new_us=HOUR_US)
        for (queue, _), numbers in zip(shards, told, strict=True):
            for status, number in numbers.statuses.items():
                by_status[status] += number
                by_queue[queue] += number
            new, due = new + numbers.new, due + numbers.due
            oldest += [numbers.oldest] if numbers.oldest else []
        first = min(oldest, key=Position.key, default=None)
        return DeadStats(
            total=sum(by_queue.values()),
            by_queue=by_queue,
            by_status=by_status,
            new=new,
            due=due,
            oldest_id=first.id if first else None,
            oldest_at=int(float(first.score)) if first else None,
        )

    # -- deciding -------------------------------------------------------------------------------

    async def retry_as_new(
        self, queue: str, job_id: str, *, by: str = "operator", reason: str = "manual retry"
    ) -> str:
        """Make a new job from a dead one, with high priority and fresh attempts; returns its id."""
        (dealt,) = await self.retry_many_as_new(queue, [job_id], by=by, reason=reason)
        refuse(dealt, "retry_as_new", queue)
        return str(dealt.new_id)

    async def retry_many_as_new(
        self,
        queue: str,
        job_ids: Sequence[str],
        *,
        by: str = "operator",
        reason: str = "manual retry",
        action: str = "retry",
    ) -> list[Dealt]:
        """The same for many jobs, in slices; a refused job does not prevent the others.

        `action` is recorded at the desk: retry, redrive or auto.
        """
        decision = read_retry(action, reason, by)

        async def make(calls: DeskCalls, shard: str, epoch: int, ids: Sequence[str]) -> list[Dealt]:
            jobs = list(zip(ids, self._queues.new_ids(len(ids)), strict=True))
            answers = await calls.retry_as_new(shard, decision, Priority.HIGH, jobs, epoch=epoch)
            return [
                Dealt(job, new_id) if answer == "OK" else Dealt(job, refused=answer)
                for (job, new_id), answer in zip(jobs, answers, strict=True)
            ]

        return await self._deal(queue, job_ids, make)

    async def discard(
        self, queue: str, *job_ids: str, by: str = "operator", reason: str = ""
    ) -> list[Dealt]:
        """Mark dead jobs as given up; they are kept until retention removes them."""
        return await self._dismiss(
            queue, job_ids, Status.DISCARDED, read_decision("discard", reason, by)
        )

    async def resolve(
        self, queue: str, *job_ids: str, by: str = "operator", reason: str = ""
    ) -> list[Dealt]:
        """Mark dead jobs as resolved by hand; they are kept until retention removes them."""
        return await self._dismiss(
            queue, job_ids, Status.RESOLVED, read_decision("manual", reason, by)
        )

    async def _dismiss(
        self, queue: str, job_ids: Sequence[str], status: Status, decision: Decision
    ) -> list[Dealt]:
        async def dismiss(
            calls: DeskCalls, shard: str, _epoch: int, ids: Sequence[str]
        ) -> list[Dealt]:
            answers = await calls.dismiss(shard, status.value, decision, ids)
            return [
                Dealt(job, refused=None if answer == "OK" else answer)
                for job, answer in zip(ids, answers, strict=True)
            ]

        dealt = await self._deal(queue, job_ids, dismiss)
        if len(dealt) == 1:
            refuse(dealt[0], "discard" if status is Status.DISCARDED else "resolve", queue)
        return dealt

    # -- at shards -------------------------------------------------------------------------------

    async def _deal(
        self,
        queue: str,
        job_ids: Sequence[str],
        do: Callable[[DeskCalls, str, int, Sequence[str]], Awaitable[Sequence[Dealt]]],
    ) -> list[Dealt]:
        """Run an operation on each job in its shard, in slices."""
        name = self._queues.one(queue)
        ids = read_ids(job_ids)
        answers: dict[str, Dealt] = {}
        for start in range(0, len(ids), SLICE):
            part = ids[start : start + SLICE]
            for _ in range(_LOOKS):
                epoch = await self._queues.steady(name, _at_shards(part, do, answers))
                if not _unknown(part, answers) or epoch == await self._queues.epoch(name):
                    break  # otherwise it may have been in transit
        return [answers[job] for job in ids]


def _at_shards(
    ids: Sequence[str],
    do: Callable[[DeskCalls, str, int, Sequence[str]], Awaitable[Sequence[Dealt]]],
    answers: dict[str, Dealt],
) -> Callable[[DeskCalls, Sequence[str], int], Awaitable[int]]:
    """Find the shard of each job; the first shard answers for unknown ones.

    If shards change during it, the answers so far are kept. Returns the epoch of the shards.
    """

    async def deal(calls: DeskCalls, shards: Sequence[str], epoch: int) -> int:
        for shard in (*shards[1:], shards[0]):
            left = _unknown(ids, answers)
            here = left if shard == shards[0] else list(await calls.records(shard, left))
            dealt = await do(calls, shard, epoch, here) if here else ()
            answers.update({one.id: one for one in dealt})
        return epoch

    return deal


def _unknown(ids: Sequence[str], answers: Mapping[str, Dealt]) -> list[str]:
    return [job for job in ids if job not in answers or answers[job].refused == "unknown"]


async def _read_all(
    engine: Engine, sights: Mapping[str, Sight], met: Sequence[Met]
) -> list[DeadLetter]:
    """The jobs of a page with their details; removed ones are left out."""
    looks: dict[Met, Look | None] = {}
    for queue, sight in sights.items():
        some = [one for one in met if one.walker.queue == queue]
        seen = [Seen(one.position, one.walker.shard, one.is_travelling) for one in some]
        looks |= zip(some, await look_at(engine, sight, seen, "dead"), strict=True)
    letters = [
        read_letter(one.walker.queue, one.found, look) for one in met if (look := looks[one])
    ]
    return list({(one.queue, one.id, one.tenant): one for one in letters}.values())


def _joined(one: DeadGroup, other: DeadGroup) -> DeadGroup:
    last = max(one, other, key=lambda group: group.last_at)
    return msgspec.structs.replace(
        last,
        pending=one.pending + other.pending,
        total=one.total + other.total,
        first_at=min(one.first_at, other.first_at),
    )
