"""Fires the schedules of one queue: one job per instant, even if several workers try.

    due → decide → one script stores the job and advances the schedule          (the usual case)
    due → decide → store an intent → the job's shard stores it once → advance   (another shard)

The record is in the queue's first shard. If the job belongs to another shard, an intent records the
chosen shard and its epoch. A worker that finds an intent asks that shard again before it chooses
another: the shard has already stored the job, stores it now, or refuses forever because its lanes
have moved. A schedule is not changed before its intent is settled, so all workers send one job.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from faena.engine import Engine
from faena.engine.calls.scheduling import Change, Fired, Firing, fire
from faena.engine.calls.transfer import TransferCalls
from faena.engine.envelope import Facts, NewJob, seal
from faena.engine.requester import requester
from faena.engine.scripts import CREATED
from faena.errors import ShardsChanged
from faena.job import BY_HEADER, INSTANT_HEADER, SCHEDULE_HEADER, Spec
from faena.options import QueueOptions
from faena.scheduling.due import (
    Intent,
    Record,
    Schedule,
    Verdict,
    decide,
    jitter_us,
    job_id,
)
from faena.scheduling.options import Terms, iso
from faena.sharding.router import Routers
from faena.sharding.routing_table import MOVING, Table
from faena.tenancy.lanes import lane_facts, task_facts

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from faena.telemetry.tracing.tracing import Tracing

Around = Callable[[str, Spec], Awaitable[Spec | None]]
"""Changes a spec before it is sent; returns None to prevent the job."""

_MODES: Final = {"skip": "live", "queue": "last"}
"""Overlap → the unique mode that prevents overlapping jobs."""
_AGAIN_US: Final = 1_000_000

_log = logging.getLogger("faena.scheduler")
_encode = msgspec.json.Encoder().encode


def spec_of(name: str, terms: Terms, instant: int | None) -> Spec:
    """The spec of a schedule's job; a job of `run` has no instant."""
    headers = {SCHEDULE_HEADER: name}
    if instant is not None:
        headers[INSTANT_HEADER] = str(instant)
    elif who := requester():
        headers[BY_HEADER] = who
    return Spec(
        task=terms.task,
        payload=msgspec.Raw(terms.payload.encode()),
        version=terms.version,
        tenant=terms.tenant,
        key=terms.key,
        headers=headers,
    )


def seal_job(
    job: str,
    name: str,
    terms: Terms,
    queue: str,
    options: QueueOptions,
    spec: Spec,
    delay_us: int = 0,
) -> NewJob:
    """The sealed job of a schedule, with its lane, cost and unique key."""
    facts: Facts = {
        **lane_facts(queue, options, spec.tenant, spec.key),
        **task_facts(options, terms.task),
        **claim_facts(name, terms),
    }
    if delay_us > 0:
        facts["delay"] = delay_us
    return NewJob(job, seal(terms.priority, facts, _encode(spec)), facts)


def claim_facts(name: str, terms: Terms) -> Facts:
    """The unique key of all jobs of a schedule; it has a space, which users' keys cannot have."""
    if terms.overlap == "allow":
        return {}
    digest = hashlib.blake2b(f"schedule {name}".encode(), digest_size=12).hexdigest()
    return {"unique": digest, "mode": _MODES[terms.overlap]}


class Firer:
    """Fires the due schedules of one queue."""

    def __init__(
        self,
        engine: Engine,
        routers: Routers,
        queue: str,
        options: QueueOptions,
        around: Around | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._tracing = tracing
        self._spans: dict[str, Span] = {}
        """Of the last job that was sealed for each schedule: all workers try, and one ends it."""
        self.queue = queue
        self._engine = engine
        self._router = routers.of(queue)
        self._options = options
        self._around = around

    async def fire(self, schedule: Schedule, now: int) -> int:
        """Fire one instant of a due schedule, or skip missed ones.

        Returns after how many microseconds to check it again; 0: immediately.
        """
        if schedule.record.intent is not None:
            return await self._carry_on(schedule, schedule.record.intent, now)
        if schedule.due is None or schedule.due > now:
            return 0
        verdict = decide(schedule.record, schedule.due, now)
        if verdict.fire is None:
            return await self._move_on(schedule, verdict)
        try:
            return await self._fire(schedule, verdict, verdict.fire, now)
        except ShardsChanged:  # decide again, with the time of the next try
            await self._router.refused()
            return 0

    async def settle(self, schedule: Schedule, now: int) -> int:
        """Complete an intent, if there is one, so that the record may be changed."""
        intent = schedule.record.intent
        return 0 if intent is None else await self._carry_on(schedule, intent, now)

    # -- one instant ----------------------------------------------------------------------------

    async def _fire(self, schedule: Schedule, verdict: Verdict, instant: int, now: int) -> int:
        name, record = schedule.name, schedule.record
        sealed = await self.seal(name, record.terms, instant, now)
        if sealed is None:
            return await self._move_on(schedule, verdict)
        table = await self._router.fresh()
        shard = table.shard_of(self.queue, sealed.facts.get("lane", "@"))
        wait_us = await self._wait_us(table, shard, sealed)
        if wait_us is None:
            return await self._move_on(schedule, verdict)
        if wait_us:
            return wait_us
        if shard != self.queue:
            noted = Intent(instant, shard, table.epoch)
            change = _change(schedule, msgspec.structs.replace(record, intent=noted), schedule.due)
            return await self._at_first(name, verdict, change)
        firing = _firing(name, instant, verdict)._replace(spec=sealed.spec)
        change = _change(schedule, verdict.record, verdict.due)
        fired = await fire(self._engine, shard, firing, change, epoch=table.epoch)
        self._end_span(name, fired)
        return _wait_of(name, fired, verdict)

    async def _carry_on(self, schedule: Schedule, intent: Intent, now: int) -> int:
        """Send the job to the chosen shard, which gives every worker the same answer."""
        name, record = schedule.name, schedule.record
        sealed = await self.seal(name, record.terms, intent.instant, now)
        spec = b"" if sealed is None else sealed.spec
        firing = Firing(name, intent.instant, job_id(name, intent.instant), spec)
        try:
            if sealed is not None:
                fired = await self._fire_at(intent, firing)
                self._end_span(name, fired)
                if fired.outcome == "OVERLOADED":
                    return _wait_of(name, fired)
        except ShardsChanged:  # that shard never stores the job: choose another
            again = msgspec.structs.replace(record, intent=None)
            await self._at_first(name, None, _change(schedule, again, schedule.due))
            await self._router.refused()
            return 0
        done = record.after_firing(intent.instant)
        due = done.first_due(intent.instant)
        return await self._at_first(name, None, _change(schedule, done, due))

    async def _fire_at(self, intent: Intent, firing: Firing) -> Fired:
        table = await self._router.look()
        known = [shard.name for shard in table.all(self.queue)]
        return await fire(
            self._engine,
            intent.shard,
            firing,
            None,
            epoch=intent.epoch,
            is_known=intent.shard in known,
        )

    async def _move_on(self, schedule: Schedule, verdict: Verdict) -> int:
        """Advance the schedule without a job."""
        change = _change(schedule, verdict.record, verdict.due)
        return await self._at_first(schedule.name, verdict, change)

    async def _at_first(self, name: str, verdict: Verdict | None, change: Change) -> int:
        """Write the record, and report missed instants."""
        fired = await fire(self._engine, self.queue, _firing(name, 0, verdict), change, epoch=0)
        return _wait_of(name, fired, verdict)

    # -- the job --------------------------------------------------------------------------------

    async def seal(self, name: str, terms: Terms, instant: int, now: int) -> NewJob | None:
        """The sealed job of an instant; None if a middleware prevents it."""
        spec: Spec | None = spec_of(name, terms, instant)
        if self._tracing is not None:
            self._spans[name] = self._tracing.fire(self.queue, terms.task, name, spec.headers)
        if self._around is not None:
            spec = await self._around(self.queue, spec)
        if spec is None:
            return None
        delay_us = instant + jitter_us(name, instant, terms.jitter) - now
        job = job_id(name, instant)
        return seal_job(job, name, terms, self.queue, self._options, spec, delay_us)

    def _end_span(self, name: str, fired: Fired) -> None:
        """The span of a job that this worker has not made is dropped."""
        span = self._spans.pop(name, None)
        if span is not None and fired.outcome == CREATED.code:
            span.end()

    async def _wait_us(self, table: Table, shard: str, job: NewJob) -> int | None:
        """Ask the lane's former shard while it moves: 0 to continue, a wait, or None to skip.

        A job of the schedule that has not moved yet may hold the unique key.
        """
        facts = job.facts
        former = table.former().shard_of(self.queue, facts.get("lane", "@"))
        if table.phase != MOVING or former == shard or "unique" not in facts:
            return 0
        mode = facts.get("mode", "")
        wanted = [(job.id, mode, facts["unique"])]
        (known,) = await TransferCalls(self._engine).known(former, shard, wanted)
        if known is None:
            return 0
        return None if known.spec or mode == _MODES["skip"] else _AGAIN_US


def _change(schedule: Schedule, record: Record, due: int | None) -> Change:
    return Change.of(schedule.version, record.pack(), due)


def _firing(name: str, instant: int, verdict: Verdict | None) -> Firing:
    if verdict is None:
        return Firing(name, instant, job_id(name, instant))
    missed: Sequence[str] = [job_id(name, one) for one in verdict.missed]
    return Firing(name, instant, job_id(name, instant), b"", missed, verdict.number)


def _wait_of(name: str, fired: Fired, verdict: Verdict | None = None) -> int:
    """After how long to check again; logs missed instants if this worker advanced the schedule."""
    if fired.outcome == "OVERLOADED":
        _log.warning("a job of schedule %s was refused: its queue is full; trying again", name)
        return max(fired.retry_us, _AGAIN_US)
    if verdict is not None and verdict.number and fired.outcome != "STALE":
        fires = "none" if verdict.fire is None else f"the instant {iso(verdict.fire)}"
        first = iso(verdict.missed[0])
        _log.warning(
            "schedule %s missed %d %s from %s on; fires %s",
            name,
            verdict.number,
            "instant" if verdict.number == 1 else "instants",
            first,
            fires,
        )
    return 0
