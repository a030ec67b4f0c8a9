"""The write side: new jobs on their way to the broker, and operations on jobs that are there.

One call per queue is in flight; jobs that arrive meanwhile travel together in the next one, so many
concurrent producers cost few round trips and a single one waits for nothing. A call is named, and a
named call that is sent again after a lost reply changes nothing the second time.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from faena.engine import Engine
from faena.engine.envelope import seal
from faena.engine.scripts import Answer
from faena.errors import InvalidTransition, JobNotFound, StoreRejected
from faena.job import Spec
from faena.options import Durability, DurabilityLevel, EnqueueOptions, Unique, UniqueMode

BATCH = 1000
"""Jobs in one enqueue call at most."""

_DURABLE_WITHIN_MS = 5000

_MODES = {
    UniqueMode.WHILE_WAITING: "waiting",
    UniqueMode.WHILE_LIVE: "live",
    UniqueMode.THROTTLE: "throttle",
    UniqueMode.DEBOUNCE: "debounce",
    UniqueMode.KEEP_LAST: "last",
}

_encode = msgspec.json.Encoder().encode


class CallIds:
    """Names of calls: unguessable, never used twice. They become lease ids."""

    def __init__(self) -> None:
        self._stem = secrets.token_urlsafe(9)
        self._count = 0

    def __call__(self) -> str:
        self._count += 1
        return f"{self._stem}{self._count:x}"


class NewJob(NamedTuple):
    """A job ready to be sent."""

    id: str
    spec: bytes


def seal_job(job_id: str, spec: Spec, options: EnqueueOptions, priority: int) -> NewJob:
    """Write the spec and the line before it."""
    facts: dict[str, object] = {}
    if options.delay_us:
        facts["delay"] = options.delay_us
    if options.id is not None:
        facts["digest"] = _digest(spec)
    if isinstance(options.unique, Unique):
        facts |= _unique_facts(options.unique)
    return NewJob(job_id, seal(priority, facts, _encode(spec)))


def _digest(spec: Spec) -> str:
    """What makes two jobs of one id the same: task, payload, tenant, key."""
    parts = (spec.task, bytes(spec.payload), spec.tenant, spec.key)
    return hashlib.blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def _unique_facts(unique: Unique) -> Mapping[str, object]:
    digest = hashlib.blake2b(unique.key.encode(), digest_size=12).hexdigest()
    facts: dict[str, object] = {"unique": digest, "mode": _MODES[unique.mode]}
    if unique.ttl_us:
        facts["ttl"] = unique.ttl_us
    if unique.delay_us:
        facts["delay"] = unique.delay_us
    return facts


class Producer:
    """Sends one queue's new jobs, one call at a time."""

    def __init__(self, engine: Engine, queue: str, calls: CallIds) -> None:
        self._engine = engine
        self._queue = queue
        self._calls = calls
        self._caller = calls()
        self._is_busy = False
        self._waiting: deque[tuple[Sequence[NewJob], asyncio.Future[list[Answer]]]] = deque()
        self._flushing: asyncio.Task[None] | None = None

    async def send(self, jobs: Sequence[NewJob]) -> list[Answer]:
        """An answer for each of 1..1000 jobs."""
        if self._is_busy:
            answered: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
            self._waiting.append((jobs, answered))
            return await answered
        self._is_busy = True
        try:
            return await self._call(jobs)
        finally:
            self._go_on()

    async def _call(self, jobs: Sequence[NewJob]) -> list[Answer]:
        try:
            return await self._engine.enqueue(self._queue, self._caller, self._calls(), jobs)
        except BaseException:
            # The abandoned call may still reach the server, after a later one: its caller's record
            # must not be the one that the later call relies on.
            self._caller = self._calls()
            raise

    def _go_on(self) -> None:
        if self._waiting:
            self._flushing = asyncio.create_task(self._flush())
        else:
            self._is_busy = False

    async def _flush(self) -> None:
        groups = [self._waiting.popleft()]
        size = len(groups[0][0])
        while self._waiting and size + len(self._waiting[0][0]) <= BATCH:
            groups.append(self._waiting.popleft())
            size += len(groups[-1][0])
        try:
            answers = await self._call([job for jobs, _ in groups for job in jobs])
        except Exception as error:  # noqa: BLE001 - handed to each of those who wait
            for _, answered in groups:
                if not answered.done():
                    answered.set_exception(error)
        else:
            _hand_out(answers, groups)
        finally:
            self._go_on()


def _hand_out(
    answers: list[Answer], groups: Sequence[tuple[Sequence[NewJob], asyncio.Future[list[Answer]]]]
) -> None:
    start = 0
    for jobs, answered in groups:
        if not answered.done():
            answered.set_result(answers[start : start + len(jobs)])
        start += len(jobs)


class Client:
    """Enqueues jobs and changes those that wait."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._calls = CallIds()
        self._producers: dict[str, Producer] = {}
        self._can_fsync = False

    async def enqueue(
        self, queue: str, jobs: Sequence[NewJob], durability: Durability
    ) -> tuple[list[Answer], Durability]:
        """Send up to 1000 jobs; also says what durability was reached."""
        if durability.level is not DurabilityLevel.MEMORY:
            return await self._enqueue_durably(queue, jobs, durability)
        producer = self._producers.get(queue)
        if producer is None:
            producer = self._producers[queue] = Producer(self._engine, queue, self._calls)
        return await producer.send(jobs), durability

    async def _enqueue_durably(
        self, queue: str, jobs: Sequence[NewJob], durability: Durability
    ) -> tuple[list[Answer], Durability]:
        wants_disk = durability.level is DurabilityLevel.FSYNCED
        if wants_disk:
            await self._check_fsync()
        wait = (
            ("WAITAOF", 1, 0, _DURABLE_WITHIN_MS)
            if wants_disk
            else ("WAIT", durability.replicas, _DURABLE_WITHIN_MS)
        )
        answers, waited = await self._engine.enqueue_durably(
            queue, self._calls(), self._calls(), jobs, wait
        )
        reached = waited[0] >= 1 if wants_disk else waited >= durability.replicas
        return answers, durability if reached else Durability()

    async def _check_fsync(self) -> None:
        """Refuse before anything is written when the server keeps no append-only file."""
        if not self._can_fsync:
            info = await self._engine.wire.call("INFO", "persistence", patience_s=5.0)
            if b"aof_enabled:1" not in info:
                raise StoreRejected(
                    'durability "fsynced" needs a server with appendonly yes; this one has none: '
                    "set it with CONFIG SET appendonly yes",
                    op="enqueue",
                )
            self._can_fsync = True

    async def cancel(self, queue: str, job: str) -> str:
        """Cancel a job: "cancelled", or "asked" when it runs and will be stopped."""
        (answer,) = await self._engine.cancel(queue, [job])
        return _granted(answer, {"cancelled", "asked"}, job, "cancel")

    async def retry(self, queue: str, job: str) -> None:
        """Run a finished job again, with fresh attempts."""
        (answer,) = await self._engine.retry(queue, [job])
        _granted(answer, {"ready"}, job, "retry")

    async def promote(self, queue: str, job: str) -> None:
        """Run a delayed job now."""
        (answer,) = await self._engine.promote(queue, [job])
        _granted(answer, {"promoted", "ready"}, job, "promote")

    async def change(
        self, queue: str, job: str, *, delay_us: int | None, priority: int | None
    ) -> None:
        """Change when a waiting job runs, or its priority."""
        answer = await self._engine.change(queue, job, delay_us=delay_us, priority=priority)
        _granted(answer, {"ready", "delayed"}, job, "change")

    async def sweep_out(self, queue: str, state: str, age_us: int, most: int | None) -> int:
        """Remove jobs of a state slice by slice; returns how many went."""
        removed = 0
        while most is None or removed < most:
            size = BATCH if most is None else min(BATCH, most - removed)
            gone = await self._engine.clean(queue, state, age_us, size)
            removed += gone
            if gone < size:
                break
        return removed

    async def obliterate(self, queue: str, *, force: bool) -> None:
        """Remove a queue with everything in it; refused while jobs run unless forced."""
        while (answer := await self._engine.obliterate(queue, BATCH, force=force)) != "DONE":
            if answer == "RUNNING":
                raise InvalidTransition(
                    f"queue {queue} has running jobs: stop its workers first, or force it",
                    op="obliterate",
                )


def _granted(answer: str, good: set[str], job: str, op: str) -> str:
    if answer in good:
        return answer
    if answer == "unknown":
        raise JobNotFound(f"no job {job} in this queue (retention may have removed it)", op=op)
    raise InvalidTransition(f"cannot {op} job {job}: it is {answer}", op=op)
