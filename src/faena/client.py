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
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from faena.engine import Engine
from faena.engine.envelope import has_facts, seal
from faena.engine.scripts import Answer
from faena.errors import InvalidTransition, JobNotFound, StoreRejected, StoreUnavailable
from faena.job import Spec
from faena.options import Durability, DurabilityLevel, EnqueueOptions, Unique, UniqueMode

BATCH = 300
"""Jobs in one enqueue call at most: more would be no faster, and keep others waiting."""

PLACED = 3
"""How many ordinary jobs one with facts counts for: lanes, chains and unique claims cost more."""

BATCH_BYTES = 16 << 20
"""Bytes in one enqueue call at most, unless a single job has more: a longer command would hold up
the connection, and what a server takes of one client is bounded."""

SLICE = 200
"""Jobs removed in one call at most: the server waits for nothing else while it lasts."""

_DURABLE_WITHIN_MS = 5000

_MODES = {
    UniqueMode.WHILE_WAITING: "waiting",
    UniqueMode.WHILE_LIVE: "live",
    UniqueMode.THROTTLE: "throttle",
    UniqueMode.DEBOUNCE: "debounce",
    UniqueMode.KEEP_LAST: "last",
}

_WAITS: Mapping[DurabilityLevel, Callable[[Durability], tuple[str | int, ...] | None]] = {
    DurabilityLevel.MEMORY: lambda _: None,
    DurabilityLevel.FSYNCED: lambda _: ("WAITAOF", 1, 0, _DURABLE_WITHIN_MS),
    DurabilityLevel.REPLICATED: lambda asked: ("WAIT", asked.replicas, _DURABLE_WITHIN_MS),
}
"""What to send after the script, on the same connection, for each level."""

_NO_PLACE: Mapping[str, str] = {}

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


class Sent(NamedTuple):
    """What became of some jobs, and what durability was reached for them."""

    answers: list[Answer]
    durability: Durability


class _Group(NamedTuple):
    """Jobs of one caller that wait for the next call."""

    jobs: Sequence[NewJob]
    work: int
    """How many ordinary jobs they cost as much as."""
    size: int
    """Their bytes."""
    answered: asyncio.Future[Sent]


def seal_job(
    job_id: str,
    spec: Spec,
    options: EnqueueOptions,
    priority: int,
    place: Mapping[str, str] = _NO_PLACE,
) -> NewJob:
    """Write the spec and the line before it; `place` is its lane and chain."""
    facts: dict[str, object] = {**place}
    if options.delay_us:
        facts["delay"] = options.delay_us
    if options.id is not None:
        facts["digest"] = _digest(spec)
    if isinstance(options.unique, Unique):
        facts |= _unique_facts(options.unique)
    return NewJob(job_id, seal(priority, facts, _encode(spec)))


class Frame:
    """A sealed spec with a hole for the payload: what jobs with the same options have in common.

    Not for jobs with an id of their own, whose line depends on the payload.
    """

    __slots__ = ("_head", "_tail")

    def __init__(
        self, spec: Spec, options: EnqueueOptions, priority: int, place: Mapping[str, str]
    ) -> None:
        empty = msgspec.structs.replace(spec, payload=msgspec.Raw(b"0"))
        sealed = seal_job("", empty, options, priority, place).spec
        head, hole, self._tail = sealed.partition(b'"payload":0')
        self._head = head + hole[:-1]

    def fill(self, payload: bytes) -> bytes:
        """The spec of a job with this payload."""
        return self._head + payload + self._tail


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
    """Sends one queue's new jobs at one durability, one call at a time."""

    def __init__(self, engine: Engine, queue: str, calls: CallIds, durability: Durability) -> None:
        self._engine = engine
        self._queue = queue
        self._calls = calls
        self._durability = durability
        self._wait = _WAITS[durability.level](durability)
        self._caller = calls()
        self._is_busy = False
        self._waiting: deque[_Group] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._is_closed = False

    async def send(self, jobs: Sequence[NewJob]) -> Sent:
        """Answers for 1..300 jobs."""
        if self._is_busy:
            answered: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
            self._waiting.append(_Group(jobs, *_weigh(jobs), answered))
            return await answered
        self._is_busy = True
        try:
            return await self._call(jobs)
        finally:
            self._go_on()

    async def _call(self, jobs: Sequence[NewJob]) -> Sent:
        call = self._calls()
        try:
            if self._wait is None:
                answers = await self._engine.enqueue(self._queue, self._caller, call, jobs)
                return Sent(answers, self._durability)
            answers, waited = await self._engine.enqueue_durably(
                self._queue, self._caller, call, jobs, self._wait
            )
        except BaseException:
            # The abandoned call may still reach the server, after a later one: its caller's record
            # must not be the one that the later call relies on.
            self._caller = self._calls()
            raise
        number = waited[0] if isinstance(waited, list) else waited
        is_reached = number >= max(1, self._durability.replicas)
        return Sent(answers, self._durability if is_reached else Durability())

    async def close(self) -> None:
        """Give up what is under way; whoever waits for it is told."""
        self._is_closed = True
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.wait([self._flushing])
        self._go_on()

    def _go_on(self) -> None:
        if self._is_closed:
            _tell(self._waiting, _closed())
            self._waiting.clear()
        self._is_busy = bool(self._waiting)
        if self._is_busy:
            self._flushing = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        groups = self._next_groups()
        try:
            sent = await self._call([job for group in groups for job in group.jobs])
        except asyncio.CancelledError:
            _tell(groups, _closed())
            raise
        except Exception as error:  # noqa: BLE001 - handed to each of those who wait
            _tell(groups, error)
        else:
            _hand_out(sent, groups)
        finally:
            self._go_on()

    def _next_groups(self) -> list[_Group]:
        """The oldest, and as many after it as fit into one call."""
        groups: list[_Group] = []
        work = size = 0
        while self._waiting:
            group = self._waiting[0]
            work, size = work + group.work, size + group.size
            if groups and (work > BATCH or size > BATCH_BYTES):
                break
            groups.append(self._waiting.popleft())
        return groups


def _weigh(jobs: Sequence[NewJob]) -> tuple[int, int]:
    work = sum(PLACED if has_facts(job.spec) else 1 for job in jobs)
    return work, sum(len(job.spec) for job in jobs)


def _tell(groups: Iterable[_Group], error: Exception) -> None:
    for group in groups:
        if not group.answered.done():
            group.answered.set_exception(error)


def _closed() -> StoreUnavailable:
    return StoreUnavailable("the connection was closed before the jobs were sent", op="enqueue")


def _hand_out(sent: Sent, groups: Sequence[_Group]) -> None:
    start = 0
    for jobs, _, _, answered in groups:
        if not answered.done():
            answered.set_result(Sent(sent.answers[start : start + len(jobs)], sent.durability))
        start += len(jobs)


class Client:
    """Enqueues jobs and changes those that wait."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._calls = CallIds()
        self._producers: dict[tuple[str, Durability], Producer] = {}

    async def enqueue(self, queue: str, jobs: Sequence[NewJob], durability: Durability) -> Sent:
        """Send up to 300 jobs."""
        is_known = (queue, durability) in self._producers
        if not is_known and durability.level is DurabilityLevel.FSYNCED:
            await self._check_fsync()
        return await self._producer(queue, durability).send(jobs)

    def _producer(self, queue: str, durability: Durability) -> Producer:
        """Found or made in one step: of two for one queue, `close` would know only the last."""
        producer = self._producers.get((queue, durability))
        if producer is None:
            producer = Producer(self._engine, queue, self._calls, durability)
            self._producers[queue, durability] = producer
        return producer

    async def _check_fsync(self) -> None:
        """Refuse before anything is written when the server keeps no append-only file."""
        info = await self._engine.wire.call("INFO", "persistence", patience_s=5.0)
        if b"aof_enabled:1" not in info:
            raise StoreRejected(
                'durability "fsynced" needs a server with appendonly yes; this one has none: '
                "set it with CONFIG SET appendonly yes",
                op="enqueue",
            )

    async def close(self) -> None:
        """Send nothing more; call it before the connection is closed."""
        for producer in self._producers.values():
            await producer.close()

    async def cancel(self, queue: str, job: str) -> str:
        """Cancel a job: "cancelled", or "asked" when it runs and will be stopped."""
        (answer,) = await self._engine.cancel(queue, [job])
        return _granted(answer, {"cancelled", "asked"}, job, "cancel")

    async def retry(self, queue: str, job: str) -> None:
        """Run a finished job again, with fresh attempts."""
        (answer,) = await self._engine.retry(queue, [job])
        _granted(answer, {"ready", "blocked"}, job, "retry")

    async def promote(self, queue: str, job: str) -> None:
        """Run a delayed job now."""
        (answer,) = await self._engine.promote(queue, [job])
        _granted(answer, {"promoted", "ready", "blocked"}, job, "promote")

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
            size = SLICE if most is None else min(SLICE, most - removed)
            gone = await self._engine.clean(queue, state, age_us, size)
            removed += gone
            if gone < size:
                break
        return removed

    async def obliterate(self, queue: str, *, force: bool) -> None:
        """Remove a queue with everything in it; refused while jobs run unless forced."""
        while (answer := await self._engine.obliterate(queue, SLICE, force=force)) != "DONE":
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
