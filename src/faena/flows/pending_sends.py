"""Runs the errands of flows and groups: jobs are sent to their queues, or cancelled there.

An errand stays where it is until it is done, and may be run by several at once: a job has one id.
One that cannot be done ends its node, so that no flow waits for what will not come.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from faena.engine.calls.flows import Errand, Made, Mail
from faena.engine.envelope import Facts, NewJob, seal
from faena.engine.scripts import Answer
from faena.errors import FaenaError, JobError, ScriptError
from faena.job import Input, Spec
from faena.options import Durability
from faena.outcomes import ErrorRecord
from faena.producing.batcher import BATCH_BYTES
from faena.producing.client import Client

_VALID_US: Final = 20_000_000
"""How long an errand that was read may be run; beyond that it is read again."""

_LARGEST: Final = 8 << 20
"""Bytes of results that travel with a job that comes after others."""

_PARENTS: Final = 50
"""Parents looked at in one call."""

_KEPT: Final = frozenset({"LATE", "OVERLOADED"})
"""Answers after which an errand is run again."""

_log = logging.getLogger("faena.flows")


class Parent(NamedTuple):
    """A node that has ended."""

    name: str
    state: str
    words: bytes


class Errands:
    """Runs the errands of any queue."""

    def __init__(self, mail: Mail, client: Client) -> None:
        self._mail = mail
        self._client = client
        self._skews: dict[str, int] = {}
        """How far the clocks of queues are ahead of those they were sent jobs from."""

    async def run(self, home: str) -> FaenaError | None:
        """Run all of a home; what kept some of them back, if something did."""
        start = 0
        failure: FaenaError | None = None
        while True:
            read_at = time.monotonic()
            now, errands = await self._mail.errands(home, start)
            if not errands:
                return failure
            done = [one.name for one in errands if one.is_gone]
            for queue, some in _by_queue(errands).items():
                try:
                    done += await self._run(home, queue, some, now, read_at)
                except FaenaError as error:
                    _log.warning("jobs of flows wait for queue %s: %s", queue, error)
                    failure = error
            await self._mail.done(home, done)
            start += len(errands) - len(done)

    async def _run(
        self, home: str, queue: str, errands: Sequence[Errand], now: int, read_at: float
    ) -> list[str]:
        """Run errands in one queue; the names of those that are done."""
        made = [(one, await self._made(home, one, now)) for one in errands if one.made]
        jobs = [(one, job) for one, job in made if job is not None]
        answers = await self._send(home, queue, jobs)
        self._learn_clock(queue, now, read_at, answers)
        done = [one.name for one, job in made if job is None]
        for (errand, _), answer in zip(jobs, answers, strict=True):
            if answer.code == "CONFLICT":
                await self._give_up(home, errand, f"job {errand.job} exists and is another's")
            if answer.code not in _KEPT:
                done.append(errand.name)
        for errand in errands:
            if not errand.made:
                await self._cancel(home, queue, errand)
                done.append(errand.name)
        return done

    async def _send(
        self, home: str, queue: str, jobs: Sequence[tuple[Errand, NewJob]]
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
                await self._give_up(home, jobs[0][0], str(error))
                return [Answer("REFUSED")]
        return [answer for one in jobs for answer in await self._send(home, queue, [one])]

    async def _made(self, home: str, errand: Errand, now: int) -> NewJob | None:
        """The job as it is sent; None for one that nobody can make, which ends its node."""
        by = now + _VALID_US + self._skews.get(errand.queue, 0)
        try:
            if errand.name.startswith("g:"):
                return job_of(errand, by, group=_counts(errand.inputs))
            return job_of(errand, by, parents=await self._parents(home, errand))
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            await self._give_up(home, errand, f"its job cannot be read: {error}")
            return None

    def _learn_clock(self, queue: str, now: int, read_at: float, answers: Sequence[Answer]) -> None:
        """A queue whose clock is ahead refuses everything as late; so does one after a sleep."""
        late = [int(answer.detail) for answer in answers if answer.code == "LATE"]
        if late and (time.monotonic() - read_at) * 1e6 < _VALID_US / 2:
            self._skews[queue] = max(late) - now

    async def _cancel(self, home: str, queue: str, errand: Errand) -> None:
        """One that has ended, or is not there any more, cannot tell its flow later: it is told."""
        try:
            await self._client.cancel(queue, errand.job)
        except JobError:
            flow, node = errand.flow
            await self._mail.flow(home, flow, "end", node, errand.job, "cancelled", b"")

    async def _give_up(self, home: str, errand: Errand, why: str) -> None:
        _log.error("%s of a flow or group of %s is not sent: %s", errand.name, home, why)
        if not errand.name.startswith("g:"):
            flow, node = errand.flow
            error = msgspec.json.encode(ErrorRecord(name="NotSent", message=why))
            await self._mail.flow(home, flow, "end", node, errand.job, "dead", error)

    async def _parents(self, home: str, errand: Errand) -> dict[str, Input]:
        """What came of the nodes before it; one that was to be ignored only if it completed."""
        flow, _ = errand.flow
        found: list[Parent] = []
        for start in range(0, len(errand.inputs), _PARENTS):
            numbers = [int(number) for number in errand.inputs[start : start + _PARENTS]]
            names = [f"{part}:{abs(number)}" for number in numbers for part in "vsr"]
            read = await self._mail.flow_fields(home, flow, names)
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


def _by_queue(errands: Sequence[Errand]) -> dict[str, list[Errand]]:
    queues: dict[str, list[Errand]] = defaultdict(list)
    for one in errands:
        if one.queue:
            queues[one.queue].append(one)
    return queues


def job_of(
    errand: Errand,
    by: int,
    *,
    parents: dict[str, Input] | None = None,
    group: dict[str, int] | None = None,
) -> NewJob:
    """The job as it is sent: with what came of those before it."""
    made = Made.unpack(errand.made)
    spec = msgspec.json.decode(made.body, type=Spec)
    spec.parents, spec.group = parents or {}, group or {}
    words = f"{errand.job} {made.facts.get('tells')}"
    digest = hashlib.blake2b(words.encode(), digest_size=12).hexdigest()
    facts: Facts = {**made.facts, "digest": digest, "by": by}
    return NewJob(errand.job, seal(made.priority, facts, msgspec.json.encode(spec)), facts)


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
