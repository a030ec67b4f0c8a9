"""Sends the new jobs of one queue to the broker.

One call per queue is in flight. Jobs that arrive meanwhile are sent together in the next one, so
many concurrent producers need few round trips, and a single producer does not wait. A call has an
id: a call that is sent again after a lost reply changes nothing the second time.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from faena.engine import Engine
from faena.engine.calls.arrivals import arrivals_of
from faena.engine.envelope import NewJob
from faena.engine.scripts import CREATED, Answer
from faena.engine.wire.patience import bound_at, within
from faena.errors import StoreError, StoreUnavailable
from faena.options import Durability, DurabilityLevel, EnqueueOptions

BATCH = 300
"""The most jobs in one enqueue call: more is not faster, and blocks the server longer."""

PLACED = 3
"""How many ordinary jobs a job with facts counts for: lanes, chains and unique keys cost more."""

BATCH_BYTES = 16 << 20
"""The most bytes in one enqueue call, unless a single job has more: a longer command would block
the connection, and servers bound the input of one client."""

_DURABLE_WITHIN_S = 5.0

_WAITED = 0.5
"""The part of a caller's patience that replicas or the disk may use; the rest is for the answer."""

_ALIKE = 2.0
"""How much longer one caller may wait than another, as a factor, to share a durable call."""

_LOOKS = 10
"""How often callers behind a patient one are checked, during the app's patience."""

UNSENT = "nothing was enqueued"
_UNKNOWN = "whether it was enqueued is unknown: the same call with the same id= may be repeated"

_WAITS: Mapping[DurabilityLevel, Callable[[Durability], tuple[str | int, ...] | None]] = {
    DurabilityLevel.MEMORY: lambda _: None,
    DurabilityLevel.FSYNCED: lambda _: ("WAITAOF", 1, 0),
    DurabilityLevel.REPLICATED: lambda asked: ("WAIT", asked.replicas),
}
"""The command to send after the script, on the same connection, for each level."""


class CallIds:
    """Call ids: unguessable and never used twice. They become lease ids."""

    def __init__(self) -> None:
        self._stem = secrets.token_urlsafe(9)
        self._count = 0

    def __call__(self) -> str:
        self._count += 1
        return f"{self._stem}{self._count:x}"


class Sent(NamedTuple):
    """The answers for some jobs, and the durability that was reached."""

    answers: list[Answer]
    durability: Durability


class _Group(NamedTuple):
    """Jobs of one caller that wait for the next call."""

    jobs: Sequence[NewJob]
    work: int
    """Their cost, in ordinary jobs."""
    size: int
    """Their bytes."""
    epoch: int
    """The epoch of the routing table that sent them to this shard."""
    since: float
    """When they arrived, by the loop's clock."""
    until: float | None
    """The caller's deadline, if it has one."""
    is_patient: bool
    """Whether the caller waits longer than the app's patience."""
    answered: asyncio.Future[Sent]


class Batcher:
    """Sends one queue's new jobs at one durability, one call at a time."""

    def __init__(self, engine: Engine, queue: str, calls: CallIds, durability: Durability) -> None:
        self._engine = engine
        self._queue = queue
        self._calls = calls
        self._durability = durability
        self._wait = _WAITS[durability.level](durability)
        self._caller = calls()
        self._arrivals = arrivals_of(engine, queue) if self._wait is None else None
        self._is_busy = False
        self._waiting: deque[_Group] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._is_closed = False

    async def send(self, jobs: Sequence[NewJob], epoch: int = 0) -> Sent:
        """Send 1..300 jobs; raises ShardsChanged if their shard has changed since the epoch."""
        if self._is_busy:
            return await self._wait_for_turn(jobs, epoch)
        self._is_busy = True
        try:
            until = bound_at()
            call = self._ask if until is None else self._call
            return await call(jobs, epoch, until)
        finally:
            self._go_on()

    async def _wait_for_turn(self, jobs: Sequence[NewJob], epoch: int) -> Sent:
        loop = asyncio.get_running_loop()
        until = bound_at()
        since, is_patient = loop.time(), self._is_patient(until)
        answered: asyncio.Future[Sent] = loop.create_future()
        group = _Group(jobs, *_weigh(jobs), epoch, since, until, is_patient, answered)
        self._waiting.append(group)
        if until is None:
            return await group.answered
        try:
            async with asyncio.timeout_at(until):
                return await group.answered
        except TimeoutError:
            is_unsent = group in self._waiting
            if is_unsent:
                self._waiting.remove(group)
            waited_s = loop.time() - group.since
            raise _late(self._queue, waited_s, is_unsent=is_unsent) from None

    def _is_patient(self, until: float | None) -> bool:
        """Whether a caller waits longer than the app's patience."""
        now = asyncio.get_running_loop().time
        return until is not None and until - now() > self._engine.patience_s

    async def _call(self, jobs: Sequence[NewJob], epoch: int, until: float | None) -> Sent:
        is_patient = self._is_patient(until)
        with self._watched() if is_patient else nullcontext():
            return await self._ask(jobs, epoch, until)

    async def _ask(self, jobs: Sequence[NewJob], epoch: int, until: float | None) -> Sent:
        call = self._queue, self._caller, self._calls()
        try:
            if self._wait is None:
                return Sent(await self._leave_or_ask(*call, jobs, epoch), self._durability)
            wait = (*self._wait, _within_ms(until))
            answers, waited = await self._engine.enqueue_durably(*call, jobs, wait, epoch=epoch)
        except StoreUnavailable as error:
            self._caller = self._calls()
            raise told(error) from error
        except BaseException:
            # The abandoned call may still reach the server after a later one. With a new caller
            # name, it cannot overwrite the record of the later call.
            self._caller = self._calls()
            raise
        number = waited[0] if isinstance(waited, list) else waited
        is_reached = number >= max(1, self._durability.replicas)
        return Sent(answers, self._durability if is_reached else Durability())

    async def _leave_or_ask(
        self, queue: str, caller: str, call: str, jobs: Sequence[NewJob], epoch: int
    ) -> list[Answer]:
        """Append a single job to the stream of arrivals.

        Other jobs, and one that may not have arrived, are sent with the script, under the same id.
        """
        arrivals = self._arrivals
        if arrivals is None or not arrivals.is_for(jobs, epoch):
            answers = await self._engine.enqueue(queue, caller, call, jobs, epoch=epoch)
            if arrivals is not None:
                arrivals.passed()
            return answers
        now = asyncio.get_running_loop().time
        since, until = now(), bound_at() or now() + self._engine.patience_s
        is_left = await arrivals.leave(caller, call, jobs[0], until - since)
        if is_left:
            return [CREATED]
        try:
            with within(until - now(), spent_s=now() - since):
                answers = await self._engine.enqueue(queue, caller, call, jobs, epoch=epoch)
        except StoreUnavailable as error:
            if is_left is None:
                error.op, error.is_outcome_unknown = "enqueue", True
            raise
        arrivals.passed()
        return answers

    async def close(self) -> None:
        """Cancel the running call; its callers get an error."""
        self._is_closed = True
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.wait([self._flushing])
        self._go_on()

    def _go_on(self) -> None:
        if self._is_closed:
            _fail(self._waiting, _closed())
            self._waiting.clear()
        self._is_busy = bool(self._waiting)
        if self._is_busy:
            self._flushing = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        groups = self._next_groups()
        try:
            jobs = [job for group in groups for job in group.jobs]
            ends = [group.until for group in groups if group.until is not None]
            last, is_patient = max(ends, default=0.0), groups[0].is_patient
            # set here, because this task inherits the bound of the caller that created it
            with within(last - asyncio.get_running_loop().time() if is_patient else None):
                until = last if is_patient and self._wait is None else min(ends, default=None)
                sent = await self._call(jobs, groups[0].epoch, until)
        except asyncio.CancelledError:
            _fail(groups, _closed(is_sent=True))
            raise
        except Exception as error:  # noqa: BLE001 - passed to every waiting caller
            _fail(groups, error)
            if isinstance(error, StoreUnavailable):
                self._give_up_old()
        else:
            _hand_out(sent, groups)
        finally:
            self._go_on()

    def _next_groups(self) -> list[_Group]:
        """The oldest group, and as many after it as fit into one call."""
        groups: list[_Group] = []
        work = size = 0
        while self._waiting:
            group = self._waiting[0]
            work, size = work + group.work, size + group.size
            is_full = work > BATCH or size > BATCH_BYTES
            if groups and (is_full or not self._may_share(groups[0], group)):
                break
            groups.append(self._waiting.popleft())
        return groups

    # -- patience -------------------------------------------------------------------------------

    def _may_share(self, first: _Group, other: _Group) -> bool:
        """Whether the jobs of two callers may be sent in one call.

        A caller less patient than the app gives up alone, and the call continues for the others.
        But a durable call has one timeout for the servers' confirmation, for all of its callers.
        """
        is_alike = first.epoch == other.epoch and first.is_patient == other.is_patient
        return is_alike and (self._wait is None or _end_together(first, other))

    @contextmanager
    def _watched(self) -> Generator[None]:
        """During a patient call, callers behind it still wait only for the app's patience."""
        loop = asyncio.get_running_loop()

        def look() -> asyncio.TimerHandle:
            self._give_up_old()
            timers.append(loop.call_later(self._engine.patience_s / _LOOKS, look))
            return timers[-1]

        timers: deque[asyncio.TimerHandle] = deque(maxlen=1)
        look()
        try:
            yield
        finally:
            timers[-1].cancel()

    def _give_up_old(self) -> None:
        """Fail the callers that have waited for the app's patience: do not start another call."""
        now, patience_s = asyncio.get_running_loop().time(), self._engine.patience_s
        waiting, self._waiting = self._waiting, deque()
        for group in waiting:
            if group.until is None and now - group.since >= patience_s:
                _fail([group], _late(self._queue, now - group.since, is_unsent=True))
            else:
                self._waiting.append(group)


def in_calls(
    pairs: Sequence[tuple[bytes, EnqueueOptions]], most: int
) -> Iterator[Sequence[tuple[bytes, EnqueueOptions]]]:
    """Parts of at most `most` jobs and `BATCH_BYTES` of payloads, one call each."""
    start = size = 0
    for at, (payload, _) in enumerate(pairs):
        size += len(payload)
        if at > start and (at - start == most or size > BATCH_BYTES):
            yield pairs[start:at]
            start, size = at, len(payload)
    if pairs:
        yield pairs[start:]


def _end_together(first: _Group, other: _Group) -> bool:
    """Whether two callers have about the same time left."""
    if first.until is None or other.until is None:
        return first.until is other.until
    now = asyncio.get_running_loop().time()
    left_s, others_s = first.until - now, max(other.until - now, 0.001)
    return 1 / _ALIKE <= left_s / others_s <= _ALIKE


def _within_ms(until: float | None) -> int:
    """How long servers may take to confirm; never 0, which means without a timeout."""
    if until is None:
        return int(_DURABLE_WITHIN_S * 1000)
    left_s = (until - asyncio.get_running_loop().time()) * _WAITED
    return max(1, int(min(_DURABLE_WITHIN_S, left_s) * 1000))


def _weigh(jobs: Sequence[NewJob]) -> tuple[int, int]:
    work = sum(PLACED if job.facts else 1 for job in jobs)
    return work, sum(len(job.spec) for job in jobs)


def _fail(groups: Iterable[_Group], error: Exception) -> None:
    for group in groups:
        if not group.answered.done():
            group.answered.set_exception(error)


def told(error: StoreUnavailable) -> StoreUnavailable:
    """The error, extended by whether the jobs may have been enqueued."""
    is_unknown = error.is_outcome_unknown and error.op == "enqueue"
    end = _UNKNOWN if is_unknown else UNSENT
    return StoreUnavailable(f"{error}; {end}", op=error.op, is_outcome_unknown=is_unknown)


def cut_off(error: StoreError, receipts: Sequence[Any], total: int) -> StoreError:
    """The error of a list that was sent in part, with the receipts of that part."""
    if not receipts:
        return error
    words = str(error).removesuffix(f"; {UNSENT}")
    cut = copy.copy(error)
    cut.args = (f"the first {len(receipts)} of {total} jobs were enqueued, then: {words}",)
    cut.receipts = receipts
    return cut


def _late(queue: str, waited_s: float, *, is_unsent: bool) -> StoreUnavailable:
    return StoreUnavailable(
        f"enqueue waited {waited_s:.1f} s for earlier jobs of queue {queue}, which the broker has "
        f"not answered; {UNSENT if is_unsent else _UNKNOWN}",
        op="enqueue",
        is_outcome_unknown=not is_unsent,
    )


def _closed(*, is_sent: bool = False) -> StoreUnavailable:
    words = f"the connection was closed by this program; {_UNKNOWN if is_sent else UNSENT}"
    return StoreUnavailable(words, op="enqueue", is_outcome_unknown=is_sent)


def _hand_out(sent: Sent, groups: Sequence[_Group]) -> None:
    start = 0
    for group in groups:
        end = start + len(group.jobs)
        if not group.answered.done():
            group.answered.set_result(Sent(sent.answers[start:end], sent.durability))
        start = end
