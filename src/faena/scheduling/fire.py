"""Fires the schedules of one queue: a job for an instant, once, whoever else tries.

    due → decide → one script takes the job in and moves the schedule on           (the usual case)
    due → decide → intent noted → the job's shard takes it in, once → moved on     (another shard)

The record is kept at the queue's first shard. Where the job belongs to another, an intent says
which shard was chosen under which epoch. Whoever finds one asks that shard again before choosing
another: it has had the instant, takes it now, or refuses for good because its lanes have moved.
Nobody changes a schedule before its intent is settled, so the job is the same for all who send it.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from faena.engine import Engine
from faena.engine.calls.scheduling import Change, Fired, Firing, fire
from faena.engine.calls.transfer import TransferCalls
from faena.engine.envelope import Facts, NewJob, seal
from faena.engine.requester import requester
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
from faena.sharding.table import MOVING, Table
from faena.tenancy.lanes import lane_facts, task_facts

Around = Callable[[str, Spec], Awaitable[Spec | None]]
"""What is done to a spec before it is sent; None keeps it from being sent."""

_MODES: Final = {"skip": "live", "queue": "last"}
"""The unique claims that keep the jobs of a schedule from overlapping."""
_AGAIN_US: Final = 1_000_000

_log = logging.getLogger("faena.scheduler")
_encode = msgspec.json.Encoder().encode


def spec_of(name: str, terms: Terms, instant: int | None) -> Spec:
    """What a worker is sent; a job that somebody asked for by hand has no instant."""
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
    """A schedule's job as it is sent; its line says its lane, its cost and its claim."""
    facts: Facts = {
        **lane_facts(queue, options, spec.tenant, spec.key),
        **task_facts(options, terms.task),
        **claim_facts(name, terms),
    }
    if delay_us > 0:
        facts["delay"] = delay_us
    return NewJob(job, seal(terms.priority, facts, _encode(spec)), facts)


def claim_facts(name: str, terms: Terms) -> Facts:
    """The claim that all jobs of a schedule make; no key of a user has a space."""
    if terms.overlap == "allow":
        return {}
    digest = hashlib.blake2b(f"schedule {name}".encode(), digest_size=12).hexdigest()
    return {"unique": digest, "mode": _MODES[terms.overlap]}


class Firer:
    """Fires what is due at one queue."""

    def __init__(
        self,
        engine: Engine,
        routers: Routers,
        queue: str,
        options: QueueOptions,
        around: Around | None = None,
    ) -> None:
        self.queue = queue
        self._engine = engine
        self._router = routers.of(queue)
        self._options = options
        self._around = around

    async def fire(self, schedule: Schedule, now: int) -> int:
        """Fire one instant of a schedule that is due, or pass over those that are missed.

        Returns after how many microseconds to look at it again: 0 for at once.
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
        except ShardsChanged:  # decided anew, with the time that it is by then
            await self._router.refused()
            return 0

    async def settle(self, schedule: Schedule, now: int) -> int:
        """Carry on with an intent, if there is one, so that the record may be changed."""
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
        return _wait_of(name, fired, verdict)

    async def _carry_on(self, schedule: Schedule, intent: Intent, now: int) -> int:
        """Ask the shard that was chosen; it says the same to everybody who asks."""
        name, record = schedule.name, schedule.record
        sealed = await self.seal(name, record.terms, intent.instant, now)
        spec = b"" if sealed is None else sealed.spec
        firing = Firing(name, intent.instant, job_id(name, intent.instant), spec)
        try:
            if sealed is not None:
                fired = await self._fire_at(intent, firing)
                if fired.outcome == "OVERLOADED":
                    return _wait_of(name, fired)
        except ShardsChanged:  # it has not had the instant, and never will: choose anew
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
        """Without a job."""
        change = _change(schedule, verdict.record, verdict.due)
        return await self._at_first(schedule.name, verdict, change)

    async def _at_first(self, name: str, verdict: Verdict | None, change: Change) -> int:
        """Write the record, and tell what was missed."""
        fired = await fire(self._engine, self.queue, _firing(name, 0, verdict), change, epoch=0)
        return _wait_of(name, fired, verdict)

    # -- the job --------------------------------------------------------------------------------

    async def seal(self, name: str, terms: Terms, instant: int, now: int) -> NewJob | None:
        """The job of an instant as it is sent; None when somebody keeps it from being sent."""
        spec: Spec | None = spec_of(name, terms, instant)
        if self._around is not None:
            spec = await self._around(self.queue, spec_of(name, terms, instant))
        if spec is None:
            return None
        delay_us = instant + jitter_us(name, instant, terms.jitter) - now
        job = job_id(name, instant)
        return seal_job(job, name, terms, self.queue, self._options, spec, delay_us)

    async def _wait_us(self, table: Table, shard: str, job: NewJob) -> int | None:
        """What the lane's former shard says while it moves: 0 to go on, a wait, None to pass over.

        A job of the schedule that has yet to come has the claim.
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
    """After how long to look again; whoever has moved the schedule on says what was missed."""
    if fired.outcome == "OVERLOADED":
        _log.warning("a job of schedule %s was refused: its queue is full; trying again", name)
        return max(fired.retry_us, _AGAIN_US)
    if verdict is not None and verdict.number and fired.outcome != "STALE":
        fires = "none of them" if verdict.fire is None else f"only {iso(verdict.fire)}"
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
