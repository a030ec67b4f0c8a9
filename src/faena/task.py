"""A task: what producers call, and what they get back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack, overload

import msgspec

from faena.client import Frame, seal_job
from faena.codec import Codec
from faena.duration import Duration, to_s, to_us
from faena.engine.envelope import lane_in
from faena.engine.scripts import CREATED, Answer
from faena.errors import JobCancelled, JobConflict, JobFailed, JobTimedOut, Overloaded, PayloadError
from faena.explanation import Explanation
from faena.handler import Handler
from faena.job import Job, JobView, Spec
from faena.lanes import place_facts, tenant_of
from faena.middleware import wrap_enqueue
from faena.naming import check_label
from faena.options import Durability, EnqueueOptions, Order, Unique, build, priority_of
from faena.producer import BATCH, BATCH_BYTES, PLACED, NewJob
from faena.states import State

if TYPE_CHECKING:
    from faena.app import Faena

P = TypeVar("P")
R = TypeVar("R")

_DEFAULTS = EnqueueOptions()
_MISSING: Any = object()
_FULL = " at capacity"
_FILLING = " near capacity"


class EnqueueFields(TypedDict, total=False):
    """The options of an enqueue call; see `EnqueueOptions`."""

    tenant: str
    key: str
    delay: Duration
    priority: int | str
    id: str
    unique: Unique | str
    durability: Durability | str
    headers: Mapping[str, str]
    timeout: Duration


class Handle(Generic[R]):
    """One job, from outside."""

    def __init__(self, app: Faena, queue: str, job_id: str, result: Codec[R]) -> None:
        self._app = app
        self.queue = queue
        self.id = job_id
        self._result = result

    async def state(self) -> State | None:
        """Where the job is now; None when it is unknown or was pruned."""
        view = await self.view()
        return view.state if view else None

    async def view(self) -> JobView | None:
        """Everything known of the job."""
        return await (await self._app.runtime()).inspector.job(self.queue, self.id)

    async def explain(self) -> Explanation:
        """Why the job has not started, and when it should, or what became of it; print it."""
        return await (await self._app.runtime()).inspector.explain(self.queue, self.id)

    async def result(self, timeout: timedelta | str | None = None) -> R:
        """Wait for the job and return what its handler returned.

        Raises JobFailed (JobTimedOut, JobCancelled) when it did not complete, ResultTimeout when it
        is not finished in time, and JobNotFound when retention kept nothing of it.
        """
        wait_s = None if timeout is None else to_s("timeout", timeout)
        inspector = (await self._app.runtime()).inspector
        view = await inspector.finished(self.queue, self.id, wait_s)
        if view.state is not State.COMPLETED:
            raise _failure(view)
        return self._result.decode(view.result or b"null")

    async def cancel(self) -> str:
        """Cancel the job: "cancelled", or "asked" when it runs and is being stopped."""
        return await (await self._app.runtime()).client.cancel(self.queue, self.id)

    async def retry(self) -> None:
        """Run a finished job again, with fresh attempts; not one dealt with at the desk."""
        await (await self._app.runtime()).client.retry(self.queue, self.id)

    async def promote(self) -> None:
        """Run a delayed job now."""
        await (await self._app.runtime()).client.promote(self.queue, self.id)

    async def change(
        self, *, delay: Duration | None = None, priority: int | str | None = None
    ) -> None:
        """Change when a waiting job runs, or its priority."""
        await (await self._app.runtime()).client.change(
            self.queue,
            self.id,
            delay_us=None if delay is None else to_us("delay", delay),
            priority=None if priority is None else priority_of(priority),
        )

    def __repr__(self) -> str:
        return f"<Handle {self.queue}/{self.id}>"


def _failure(view: JobView) -> JobFailed:
    last = view.errors[-1] if view.errors else None
    if view.state is State.CANCELLED:
        return JobCancelled(f"job {view.id} was cancelled", error=last)
    kind = JobTimedOut if last is not None and last.code == "TIMEOUT" else JobFailed
    words = f"{last.name}: {last.message}\n{last.stack or ''}" if last else "no error was recorded"
    return kind(f"job {view.id} is dead: {words.rstrip()}", error=last)


class Receipt(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """What became of an enqueued job."""

    id: str
    """The job that counts: the new one, or the one this is a duplicate of."""
    status: str = "created"
    """created, duplicate, conflict or overloaded."""
    state: str | None = None
    """Of the job that was there before, for duplicate and conflict."""
    retry_after: float = 0.0
    """Seconds the producer should wait: until it tries again, or before it sends more."""
    reason: str | None = None
    """What is or grows too deep, where there is a wait: the queue, or a tenant of it."""
    replaced: str | None = None
    """The waiting job that this one took the place of."""
    is_member: bool = False
    """Whether a duplicate belongs to the group that this one was to join."""
    durability: str
    """What was reached: less than asked for when the servers did not confirm in time."""
    task: Task[Any, R]

    @property
    def handle(self) -> Handle[R]:
        """The job, to wait for or to change."""
        return self.task.handle(self.id)

    @property
    def is_accepted(self) -> bool:
        """Whether the work is on the queue, by this call or an earlier one."""
        return self.status in {"created", "duplicate"}


class Draft(msgspec.Struct, Generic[P], frozen=True):
    """A job yet to be: for `enqueue_many`, for flows and for groups."""

    payload: P
    options: EnqueueOptions
    task: Task[P, Any]

    def __repr__(self) -> str:
        return f"<Draft of {self.task.queue}/{self.task.name}>"  # no payload in logs


class Task(Generic[P, R]):
    """A registered function. Calling it runs the function here; `enqueue` has a worker run it."""

    def __init__(self, app: Faena, handler: Handler) -> None:
        self.app = app
        self.handler = handler
        self.name = handler.name
        self.queue = handler.queue
        self.__name__ = handler.function.__name__
        self.__doc__ = handler.function.__doc__
        self.__module__ = handler.function.__module__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it were no task."""
        return self.handler.function(*args, **kwargs)

    @overload
    async def enqueue(
        self: Task[None, R] | Task[Job, R], **options: Unpack[EnqueueFields]
    ) -> Receipt[R]: ...
    @overload
    async def enqueue(self, payload: P, **options: Unpack[EnqueueFields]) -> Receipt[R]: ...
    async def enqueue(
        self, payload: Any = _MISSING, **options: Unpack[EnqueueFields]
    ) -> Receipt[Any]:
        """Put one job on the queue.

        Raises Overloaded when back-pressure refuses it and JobConflict when its id is taken by a
        job with another payload.
        """
        return await self.put(Draft(payload, self._options(options), self))

    async def put(self, draft: Draft[P]) -> Receipt[R]:
        """Put one job on the queue as it was drafted; for `enqueue` and for groups."""
        receipt = await self._send_one(self.spec(draft), draft.options)
        if receipt.status == "overloaded":
            reason = str(receipt.reason)
            raise Overloaded(
                f"{reason.removesuffix(_FULL)} is full: try again in {receipt.retry_after:g} s",
                retry_after=receipt.retry_after,
                reason=reason,
            )
        if receipt.status == "conflict":
            message = f"job {receipt.id} exists with another payload; it is {receipt.state}"
            raise JobConflict(message, op="enqueue")
        return receipt

    async def enqueue_many(
        self, payloads: Iterable[P | Draft[P]], **options: Unpack[EnqueueFields]
    ) -> list[Receipt[R]]:
        """Put many jobs on the queue: a round trip per 300 (100 with lanes), a receipt for each."""
        shared = self._options(options)
        # Every payload is checked before any is sent: a bad one costs no half-sent list.
        pairs = [
            (self._encode(item.payload), item.options)
            if isinstance(item, Draft)
            else (self._encode(item), shared)
            for item in payloads
        ]
        if not self.app.middleware:
            return await self._send_all(pairs)
        specs = [(self._spec(*pair), pair[1]) for pair in pairs]
        return list(await asyncio.gather(*(self._send_one(*pair) for pair in specs)))

    def draft(self, payload: P = _MISSING, **options: Unpack[EnqueueFields]) -> Draft[P]:
        """An item of `enqueue_many` with options of its own."""
        return Draft(payload, self._options(options), self)

    def spec(self, draft: Draft[P]) -> Spec:
        """What a worker would be sent for a draft: its payload is checked and encoded here."""
        return self._spec(self._encode(draft.payload), draft.options)

    def handle(self, job_id: str) -> Handle[R]:
        """A job of this task by its id; nothing is looked up."""
        return Handle(self.app, self.queue, check_label("id", job_id), self.handler.result)

    # -- sending --------------------------------------------------------------------------------

    def _options(self, given: Mapping[str, Any]) -> EnqueueOptions:
        return build(EnqueueOptions, "enqueue", given) if given else _DEFAULTS

    async def _send_one(self, spec: Spec, options: EnqueueOptions) -> Receipt[R]:
        job_id = options.id or self.app.new_id()

        async def send(_queue: str, ready: Spec) -> Receipt[R]:
            place = self.place(ready.tenant, ready.key)
            job = seal_job(job_id, ready, options, self.priority(options), place)
            (receipt,) = await self._deliver([job], Durability.of(options.durability))
            return receipt

        if self.app.middleware:
            return await wrap_enqueue(self.app.middleware, send)(self.queue, spec)
        return await send(self.queue, spec)

    async def _send_all(self, pairs: Sequence[tuple[bytes, EnqueueOptions]]) -> list[Receipt[R]]:
        """The server takes one batch in while the next is sealed and receipts are made."""
        receipts: list[Receipt[R]] = []
        sending: asyncio.Task[list[Receipt[R]]] | None = None
        try:
            for part in _batches(pairs, BATCH // PLACED if self._is_placed else BATCH):
                batch = self._seal(part)
                if sending is not None:
                    receipts += await sending
                sending = asyncio.create_task(self._deliver(*batch))
                await asyncio.sleep(0)  # it goes out now, not when the next batch is sealed
            return receipts if sending is None else receipts + await sending
        except BaseException:
            if sending is not None:
                sending.cancel()
            raise

    def _seal(
        self, pairs: Sequence[tuple[bytes, EnqueueOptions]]
    ) -> tuple[list[NewJob], Durability]:
        asked = {id(one): one for _, one in pairs}.values()
        # A frame costs as much as two jobs: it is for options that several have.
        is_shared = 2 * len(asked) <= len(pairs)
        frames = {id(one): self._frame(one) for one in asked if is_shared and one.id is None}
        jobs = [
            NewJob(fresh, frames[id(one)].fill(payload))
            if id(one) in frames
            else self._sealed(payload, one, fresh)
            for (payload, one), fresh in zip(pairs, self.app.new_ids(len(pairs)), strict=True)
        ]
        asked_for = (Durability.of(one.durability) for one in asked)
        return jobs, max(asked_for, key=lambda one: one.strength)

    def _frame(self, options: EnqueueOptions) -> Frame:
        place = self.place(options.tenant, options.key)
        return Frame(self._spec(b"null", options), options, self.priority(options), place)

    def _sealed(self, payload: bytes, options: EnqueueOptions, fresh: str) -> NewJob:
        spec, place = self._spec(payload, options), self.place(options.tenant, options.key)
        return seal_job(options.id or fresh, spec, options, self.priority(options), place)

    @property
    def _is_placed(self) -> bool:
        options = self.app.queues[self.queue].options
        return options.is_fair or options.order is not Order.NONE

    def place(self, tenant: str | None, key: str | None) -> Mapping[str, str]:
        """The lane and the chain of a job."""
        return place_facts(self.queue, self.app.queues[self.queue].options, tenant, key)

    def priority(self, options: EnqueueOptions) -> int:
        """Of a job with these options."""
        return options.priority or self.handler.priority

    async def _deliver(self, jobs: Sequence[NewJob], durability: Durability) -> list[Receipt[R]]:
        client = (await self.app.runtime()).client
        answers, reached = await client.enqueue(self.queue, jobs, durability)
        text = str(reached)
        return [self._receipt(*pair, text) for pair in zip(jobs, answers, strict=True)]

    def _spec(self, payload: bytes, options: EnqueueOptions) -> Spec:
        return Spec(
            task=self.name,
            payload=msgspec.Raw(payload),
            version=self.handler.version,
            tenant=options.tenant,
            key=options.key,
            timeout_us=options.timeout_us,
            headers=dict(options.headers) if options.headers else {},
        )

    def _encode(self, payload: P) -> bytes:
        codec = self.handler.payload
        if codec is None:
            if payload is not _MISSING:
                raise PayloadError(
                    f"task {self.name} takes no payload, got {type(payload).__name__}", op="enqueue"
                )
            return b"null"
        if payload is _MISSING:
            raise PayloadError(f"task {self.name} must be given its payload", op="enqueue")
        encoded = codec.encode(payload)
        if len(encoded) > self.handler.payload_limit:
            raise PayloadError(
                f"payload of task {self.name} must be at most {self.handler.payload_limit} bytes, "
                f"got {len(encoded)}",
                op="enqueue",
            )
        return encoded

    def _receipt(self, job: NewJob, answer: Answer, durability: str) -> Receipt[R]:
        if answer is CREATED:
            return Receipt(id=job.id, durability=durability, task=self)
        code, detail, extra, replaced = answer
        word = code.removeprefix("TENANT_")
        is_member = word == "MEMBER"
        word = "DUPLICATE" if is_member else word
        is_known = word in {"DUPLICATE", "CONFLICT"}
        is_pressed = word in {"OVERLOADED", "SLOWED"}
        counts = str(detail) if word == "DUPLICATE" else job.id
        return Receipt(
            id=counts,
            status="created" if word == "SLOWED" else word.lower(),
            state=str(extra) if is_known else None,
            retry_after=float(detail) / 1e6 if is_pressed else 0.0,
            reason=self._pressed(code, job.spec) if is_pressed else None,
            replaced=replaced,
            is_member=is_member,
            durability=durability,
            task=self,
        )

    def _pressed(self, code: str, spec: bytes) -> str:
        """What is full, or on its way to be."""
        what = f"queue {self.queue}"
        if code.startswith("TENANT_"):
            tenant = tenant_of(lane_in(spec) or "")
            what = f"tenant {tenant} of {what}" if tenant else f"what has no tenant in {what}"
        return f"{what}{_FULL if code.endswith('OVERLOADED') else _FILLING}"

    def __repr__(self) -> str:
        return f"<Task {self.queue}/{self.name}>"


def _batches(
    pairs: Sequence[tuple[bytes, EnqueueOptions]], most: int
) -> Iterator[Sequence[tuple[bytes, EnqueueOptions]]]:
    """Parts for one call each, by number and by the payloads' bytes."""
    start = size = 0
    for at, (payload, _) in enumerate(pairs):
        size += len(payload)
        if at > start and (at - start == most or size > BATCH_BYTES):
            yield pairs[start:at]
            start, size = at, len(payload)
    if pairs:
        yield pairs[start:]
