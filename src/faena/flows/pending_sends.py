"""Runs the pending sends of flows and groups: jobs are sent to their queues, or cancelled there.

A pending send stays in its list until it is done, and several workers may run it at once: a job
has one id. One that cannot be done ends its node, so that no flow waits forever.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine.calls.flows import FlowCalls, Made, PendingSend
from faena.engine.envelope import Facts, NewJob, seal
from faena.engine.scripts import Answer
from faena.errors import FaenaError, JobError, ScriptError
from faena.job import Input, Spec
from faena.options import Durability
from faena.outcomes import ErrorRecord
from faena.producing.batcher import BATCH_BYTES
from faena.producing.client import Client

_VALID_US: Final = 20_000_000
"""How long a pending send that was read may be run; beyond that it is read again."""

_LARGEST: Final = 8 << 20
"""Bytes of results that travel with a job that comes after others."""

_PARENTS: Final = 50
"""Parents looked at in one call."""

_log = logging.getLogger("faena.flows")


class Parent(NamedTuple):
    """A node that has ended."""

    name: str
    state: str
    words: bytes


class PendingSends:
    """Runs the pending sends of any queue."""

    def __init__(self, calls: FlowCalls, client: Client) -> None:
        self._calls = calls
        self._client = client
        self._skews: dict[str, int] = {}
        """How far the clocks of queues are ahead of those they were sent jobs from."""

    async def run(self, shard: str) -> FaenaError | None:
        """Run all of a shard; what kept some of them back, if something did."""
        start = 0
        failure: FaenaError | None = None
        while True:
            read_at = time.monotonic()
            now, pending_sends = await self._calls.pending_sends(shard, start)
            if not pending_sends:
                return failure
            done = [one.name for one in pending_sends if one.is_gone]
            for queue, some in _by_queue(pending_sends).items():
                try:
                    done += await self._run(shard, queue, some, now, read_at)
                except FaenaError as error:
                    _log.warning("could not send jobs of flows to queue %s: %s", queue, error)
                    failure = error
            await self._calls.done(shard, done)
            start += len(pending_sends) - len(done)

    async def _run(
        self, shard: str, queue: str, pending_sends: Sequence[PendingSend], now: int, read_at: float
    ) -> list[str]:
        """Run pending sends in one queue; the names of those that are done."""
        made = [(one, await self._made(shard, one, now)) for one in pending_sends if one.made]
        jobs = [(one, job) for one, job in made if job is not None]
        answers = await self._send(shard, queue, jobs)
        self._learn_clock(queue, now, read_at, answers)
        done = [one.name for one, job in made if job is None]
        for (pending, _), answer in zip(jobs, answers, strict=True):
            if answer.code == "CONFLICT":
                await self._give_up(shard, pending, f"another job has the id {pending.job}")
            if answer.code != "LATE":  # it is read and sent again
                done.append(pending.name)
        for pending in pending_sends:
            if not pending.made:
                await self._cancel(shard, queue, pending)
                done.append(pending.name)
        return done

    async def _send(
        self, shard: str, queue: str, jobs: Sequence[tuple[PendingSend, NewJob]]
    ) -> list[Answer]:
        """Send jobs; one that no script takes in is given up, and keeps no other back."""
        try:
            return [
                answer
                for part in _parts([job for _, job in jobs])
                for answer in (await self._client.enqueue(queue, part, Durability())).answers
            ]
        except ScriptError as error:
            if len(jobs) == 1:
                await self._give_up(shard, jobs[0][0], str(error))
                return [Answer("REFUSED")]
        return [answer for one in jobs for answer in await self._send(shard, queue, [one])]

    async def _made(self, shard: str, pending: PendingSend, now: int) -> NewJob | None:
        """The job as it is sent; None for one that nobody can make, which ends its node."""
        by = now + _VALID_US + self._skews.get(pending.queue, 0)
        try:
            if pending.name.startswith("g:"):
                return job_of(pending, by, group=_counts(pending.inputs))
            return job_of(pending, by, parents=await self._parents(shard, pending))
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            await self._give_up(shard, pending, f"its job cannot be read: {error}")
            return None

    def _learn_clock(self, queue: str, now: int, read_at: float, answers: Sequence[Answer]) -> None:
        """A queue whose clock is ahead refuses everything as late; so does one after a sleep."""
        late = [int(answer.detail) for answer in answers if answer.code == "LATE"]
        if late and (time.monotonic() - read_at) * 1e6 < _VALID_US / 2:
            self._skews[queue] = max(late) - now

    async def _cancel(self, shard: str, queue: str, pending: PendingSend) -> None:
        """One that has ended, or is not there any more, cannot tell its flow later: it is told."""
        try:
            await self._client.cancel(queue, pending.job)
        except JobError:
            flow, node = pending.flow
            await self._calls.flow(
                shard, flow, "end", node=node, job=pending.job, state="cancelled"
            )

    async def _give_up(self, shard: str, pending: PendingSend, why: str) -> None:
        _log.error("could not send %s of a flow or group of %s: %s", pending.name, shard, why)
        if not pending.name.startswith("g:"):
            flow, node = pending.flow
            error = msgspec.json.encode(ErrorRecord(name="NotSent", message=why))
            ended = {"job": pending.job, "state": "dead", "words": error}
            await self._calls.flow(shard, flow, "end", node=node, **ended)

    async def _parents(self, shard: str, pending: PendingSend) -> dict[str, Input]:
        """What came of the nodes before it; one that was to be ignored only if it completed."""
        flow, _ = pending.flow
        found: list[Parent] = []
        for start in range(0, len(pending.inputs), _PARENTS):
            numbers = [int(number) for number in pending.inputs[start : start + _PARENTS]]
            names = [f"{part}:{abs(number)}" for number in numbers for part in "vsr"]
            read = await self._calls.flow_fields(shard, flow, names)
            for at, number in enumerate(numbers):
                parent = _parent(*read[3 * at : 3 * at + 3])
                if number > 0 or parent.state == "completed":
                    found.append(parent)
        return inputs_of(found)


def _parent(seen: bytes | None, state: bytes | None, words: bytes | None) -> Parent:
    name = msgspec.msgpack.decode(seen or b"\x93\xa0\xa0\xa0")[2]
    return Parent(name, (state or b"").decode().partition(" ")[0], words or b"")


def _parts(jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
    """As much as one call may carry, by bytes."""
    start = size = 0
    for at, job in enumerate(jobs):
        size += len(job.spec)
        if at > start and size > BATCH_BYTES:
            yield jobs[start:at]
            start, size = at, len(job.spec)
    if jobs:
        yield jobs[start:]


def _by_queue(pending_sends: Sequence[PendingSend]) -> dict[str, list[PendingSend]]:
    queues: dict[str, list[PendingSend]] = defaultdict(list)
    for one in pending_sends:
        if one.queue:
            queues[one.queue].append(one)
    return queues


def job_of(
    pending: PendingSend,
    by: int,
    *,
    parents: dict[str, Input] | None = None,
    group: dict[str, int] | None = None,
) -> NewJob:
    """The job as it is sent: with what came of those before it."""
    made = Made.unpack(pending.made)
    spec = msgspec.json.decode(made.body, type=Spec)
    spec.parents, spec.group = parents or {}, group or {}
    words = f"{pending.job} {made.facts.get('tells')}"
    digest = hashlib.blake2b(words.encode(), digest_size=12).hexdigest()
    facts: Facts = {**made.facts, "digest": digest, "by": by}
    return NewJob(pending.job, seal(made.priority, facts, msgspec.json.encode(spec)), facts)


def _counts(flat: Sequence[Any]) -> dict[str, int]:
    return {flat[i].decode(): int(flat[i + 1]) for i in range(0, len(flat), 2)}


def inputs_of(parents: Sequence[Parent]) -> dict[str, Input]:
    """As they travel with a job; when all together are too large, only their states do."""
    is_too_large = sum(len(one.words) for one in parents) > _LARGEST
    return {one.name: _input(one.state, b"" if is_too_large else one.words) for one in parents}


def _input(state: str, words: bytes) -> Input:
    if not words:
        return Input(state)
    if state == "completed":
        return Input(state, result=msgspec.Raw(words))
    return Input(state, error=msgspec.Raw(words))
