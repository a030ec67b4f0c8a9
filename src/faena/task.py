"""A task: what producers enqueue."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, TypeVar, Unpack, overload

import msgspec

from faena.engine.envelope import LaneFacts, NewJob
from faena.engine.wire.patience import within
from faena.errors import (
    ArgumentError,
    ConfigError,
    PayloadError,
    StoreError,
    StoreUnavailable,
    as_argument,
)
from faena.job import Job, Spec
from faena.middleware import wrap_enqueue
from faena.options import (
    Durability,
    EnqueueOptions,
    OnConflict,
    Order,
    Unique,
    check_conflict,
    merged,
    of_many,
    of_one,
)
from faena.options.costs import cost_fact
from faena.producing.batcher import BATCH, PLACED, cut_off, in_calls, told
from faena.producing.handle import Handle
from faena.producing.payload import MISSING, encode_payload
from faena.producing.receipt import Receipt, accepted, kept, receipt_of
from faena.producing.sealing import Frame, seal_job
from faena.resilience.fallback import refuse_foreign_task
from faena.resilience.upstream import refuse_foreign
from faena.retry import Retry
from faena.telemetry.tracing.attribute import MESSAGE
from faena.tenancy.lanes import lane_facts, lane_named
from faena.values.duration import Duration
from faena.values.ids import Label, as_label

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from faena.app import Faena
    from faena.declaring.handler import Handler
    from faena.declaring.hooks import Death, Failure
    from faena.declaring.registrar import TaskFields
    from faena.runtime.connections import Runtime

P = TypeVar("P")
R = TypeVar("R")

_MEMORY = Durability()

Hooking: TypeAlias = "Callable[[Callable[..., Any]], Task[Any, Any]]"
"""A decorator that registers a hook with given options."""


class EnqueueFields(TypedDict, total=False):
    """The options of an enqueue call; see `EnqueueOptions`."""

    tenant: Label
    key: Label
    delay: Duration
    at: datetime
    expires: Duration | datetime
    priority: int | str
    id: Label
    unique: Unique | Label
    replace: Label
    on_conflict: OnConflict
    durability: Durability | str
    headers: Mapping[str, str]
    timeout: Duration
    attempts: int
    retry: Retry
    patience: Duration
    cost: Mapping[str, int]


class Draft(msgspec.Struct, Generic[P], frozen=True):
    """A job that is not enqueued yet: for `enqueue_many`, flows and groups."""

    payload: P
    options: EnqueueOptions
    task: Task[P, Any]

    def __repr__(self) -> str:
        return f"<Draft of {self.task.queue}/{self.task.name}>"  # no payload in logs


class Task(Generic[P, R]):
    """A registered function. A call runs it here; `enqueue` lets a worker run it."""

    def __init__(self, app: Faena, handler: Handler) -> None:
        whose = f"upstreams of task {handler.name}"
        refuse_foreign(whose, handler.upstreams, app.name, app.upstreams)
        if handler.fallback is not None:
            refuse_foreign_task(handler.name, handler.fallback.target, app)
        self.app = app
        self.handler = handler
        self.name = handler.name
        self.queue = handler.queue
        self.__name__ = handler.function.__name__
        self.__doc__ = handler.function.__doc__
        self.__module__ = handler.function.__module__

    @overload
    def on_dead(self, function: Callable[..., Any], /) -> Task[Death, Any]: ...
    @overload
    def on_dead(self, /, **options: Unpack[TaskFields]) -> Hooking: ...
    def on_dead(self, function: Any = None, /, **options: Unpack[TaskFields]) -> Any:
        """Register a hook that runs as a job of its own whenever a job of this task dies.

        It runs once for each death, whatever the cause: the call that buries the job creates it.
        """
        return self._hook("dead", function, options, sys._getframe(1).f_locals)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    @overload
    def on_failure(self, function: Callable[..., Any], /) -> Task[Failure, Any]: ...
    @overload
    def on_failure(self, /, **options: Unpack[TaskFields]) -> Hooking: ...
    def on_failure(self, function: Any = None, /, **options: Unpack[TaskFields]) -> Any:
        """Like `on_dead`, for every failed attempt of a job of this task, including the last."""
        return self._hook("failed", function, options, sys._getframe(1).f_locals)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def _hook(self, end: str, function: Any, options: Any, names: Mapping[str, Any]) -> Any:
        def register(given: Callable[..., Any]) -> Task[Any, Any]:
            queue = self.app.queues[self.queue]
            return queue.add_hook(end, self.name, given, options, names)

        return register if function is None else register(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function here and now."""
        return self.handler.function(*args, **kwargs)

    @overload
    async def enqueue(
        self: Task[None, R] | Task[Job, R], **options: Unpack[EnqueueFields]
    ) -> Receipt[R]: ...
    @overload
    async def enqueue(self, payload: P, **options: Unpack[EnqueueFields]) -> Receipt[R]: ...
    async def enqueue(
        self, payload: Any = MISSING, **options: Unpack[EnqueueFields]
    ) -> Receipt[Any]:
        """Enqueue one job.

        Raises Overloaded when back-pressure refuses it, and JobConflict when a job with the same id
        but another task, payload, tenant or key exists.
        """
        if options or self.app.middleware or self.app.is_traced:
            return await self.put(Draft(payload, of_one(options), self))
        job = self._plain.fill(self.app.new_id(), self.encode(payload))
        client = (self.app.at_hand() or await self._runtime()).client
        (answer,), _ = await client.enqueue(self.queue, (job,), _MEMORY)
        return accepted(receipt_of(self, job, answer, "memory"))

    async def put(self, draft: Draft[P]) -> Receipt[R]:
        """Enqueue one job from a draft; for `enqueue` and groups."""
        with _patience(draft.options), self._span(draft.options) as span:
            receipt = await self._send_one(self.spec(draft), draft.options)
            if span is not None:
                span.set_attribute(MESSAGE, receipt.id)
            return accepted(receipt)

    async def enqueue_many(
        self, payloads: Iterable[P | Draft[P]], **options: Unpack[EnqueueFields]
    ) -> list[Receipt[R]]:
        """Enqueue many jobs: one round trip per 300 (100 with lanes), one receipt per job.

        Items are payloads or drafts of this task. The options apply to every job; those of a draft
        take precedence. An `id` can only be given in a draft.
        """
        return await self.put_many(payloads, of_many(options))

    async def put_many(
        self, payloads: Iterable[P | Draft[P]], shared: EnqueueOptions
    ) -> list[Receipt[R]]:
        """Like `enqueue_many`, with parsed options; for `enqueue_many` and groups."""
        # Every payload is checked before any is sent, so that a bad one stops the whole list.
        pairs = self._pairs(payloads, shared)
        if not any(one.id for _, one in pairs):
            check_conflict(shared)
        with _patience(shared), self._span(shared, len(pairs)):
            if not self.app.middleware:
                return await self._send_all(pairs)
            specs = [(self._spec(*pair), pair[1]) for pair in pairs]
            return list(await asyncio.gather(*(self._send_one(*pair) for pair in specs)))

    async def put_sealed(self, jobs: Sequence[NewJob]) -> list[Receipt[R]]:
        """Enqueue jobs by one call, without middleware; for the outbox."""
        return await self._deliver(jobs, _MEMORY)

    def at_once(self, *, has_tenants: bool) -> int:
        """The most jobs in one call: lanes and chains cost the server more."""
        options = self.app.queues[self.queue].options
        is_placed = options.is_laned or options.order is not Order.NONE
        return BATCH // PLACED if is_placed or (options.is_fair and has_tenants) else BATCH

    def items(self, payloads: Iterable[P | Draft[P]]) -> list[P | Draft[P]]:
        """Payloads and drafts as a list; refuses anything else."""
        if isinstance(payloads, str | bytes | Mapping) or not isinstance(payloads, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's
            raise ArgumentError(
                f"payloads must be a list, one for each job, got {type(payloads).__name__}: "
                f"for a single job, use {self.name}.enqueue",
                field="payloads",
            )
        return list(payloads)

    def _pairs(
        self, items: Iterable[P | Draft[P]], shared: EnqueueOptions
    ) -> list[tuple[bytes, EnqueueOptions]]:
        pairs: list[tuple[bytes, EnqueueOptions]] = []
        for item in self.items(items):
            try:
                if isinstance(item, Draft):
                    pairs.append(self._drafted(item, shared))
                else:
                    pairs.append((self.encode(item), shared))
            except PayloadError as error:
                words = f"item {len(pairs)} of the list: {error}"
                raise PayloadError(words, fields=error.fields, op="enqueue") from error
            except ConfigError as error:
                words = f"item {len(pairs)} of the list: {error}"
                raise type(error)(words, field=error.field, value=error.value) from error
        return pairs

    def _drafted(self, draft: Draft[P], shared: EnqueueOptions) -> tuple[bytes, EnqueueOptions]:
        if draft.task is not self:
            mine, its = f"{self.queue}/{self.name}", f"{draft.task.queue}/{draft.task.name}"
            raise ConfigError(
                f"draft must be of task {mine}, got one of {its}: "
                f"use {draft.task.name}.enqueue_many",
                field="draft",
            )
        return self.encode(draft.payload), merged(shared, draft.options)

    def draft(self, payload: P = MISSING, **options: Unpack[EnqueueFields]) -> Draft[P]:
        """An item of `enqueue_many` with options of its own."""
        return Draft(payload, of_one(options), self)

    async def prepare(self) -> None:
        """Read what enqueueing needs to know; nothing for a task of this program."""

    def spec(self, draft: Draft[P]) -> Spec:
        """The spec of a draft's job; this checks and encodes its payload."""
        return self._spec(self.encode(draft.payload), draft.options)

    def encode(self, payload: P) -> bytes:
        """The payload as JSON; raises PayloadError if it is not one of this task."""
        handler = self.handler
        return encode_payload(self.name, handler.payload, handler.payload_limit, payload)

    def frame(self, options: EnqueueOptions) -> Frame:
        """What jobs with these options have in common; for the outbox."""
        facts = self.lane_facts(options.tenant, options.key, options.cost)
        return Frame(self._spec(b"null", options), options, self.priority(options), facts)

    def handle(self, job_id: Label, *, tenant: Label | None = None) -> Handle[R]:
        """A job of this task by its id; the broker is not asked.

        Name the tenant where tenants choose ids: they may choose the same in different shards.
        """
        name, lane = as_label("id", job_id), lane_named(tenant)
        return Handle(self.app, self.queue, name, self.handler.result, lane)

    # -- sending --------------------------------------------------------------------------------

    async def _send_one(self, spec: Spec, options: EnqueueOptions) -> Receipt[R]:
        job_id = options.id or self.app.new_id()

        async def send(_queue: str, ready: Spec) -> Receipt[R]:
            facts = self.lane_facts(ready.tenant, ready.key, options.cost)
            job = seal_job(job_id, ready, options, self.priority(options), facts)
            (receipt,) = await self._deliver([job], Durability.of(options.durability))
            return kept(receipt, options.on_conflict)

        if self.app.middleware:
            return await wrap_enqueue(self.app.middleware, send)(self.queue, spec)
        return await send(self.queue, spec)

    async def _send_all(self, pairs: Sequence[tuple[bytes, EnqueueOptions]]) -> list[Receipt[R]]:
        """While the server stores one batch, the next is sealed and receipts are made."""
        receipts: list[Receipt[R]] = []
        sending: asyncio.Task[list[Receipt[R]]] | None = None
        try:
            most = self.at_once(has_tenants=any(one.tenant for _, one in pairs))
            for part in in_calls(pairs, most):
                batch = self._seal(part)
                if sending is not None:
                    receipts += await sending
                sending = asyncio.create_task(self._deliver(*batch))
                await asyncio.sleep(0)  # send it now, before the next batch is sealed
            if sending is not None:
                receipts += await sending
            return [kept(one, of.on_conflict) for one, (_, of) in zip(receipts, pairs, strict=True)]
        except StoreError as error:
            raise cut_off(error, receipts, len(pairs)) from error
        except BaseException:
            if sending is not None:
                sending.cancel()
            raise

    def _seal(
        self, pairs: Sequence[tuple[bytes, EnqueueOptions]]
    ) -> tuple[list[NewJob], Durability]:
        asked = {id(one): one for _, one in pairs}.values()
        # A frame costs as much as two jobs, so it pays only for options that several jobs share.
        is_shared = 2 * len(asked) <= len(pairs)
        frames = {id(one): self.frame(one) for one in asked if is_shared and one.id is None}
        jobs = [
            frames[id(one)].fill(fresh, payload)
            if id(one) in frames
            else self._sealed(payload, one, fresh)
            for (payload, one), fresh in zip(pairs, self.app.new_ids(len(pairs)), strict=True)
        ]
        asked_for = (Durability.of(one.durability) for one in asked)
        return jobs, max(asked_for, key=lambda one: one.strength)

    @cached_property
    def _plain(self) -> Frame:
        """The frame of a job with default options."""
        return self.frame(EnqueueOptions())

    def _sealed(self, payload: bytes, options: EnqueueOptions, fresh: str) -> NewJob:
        facts = self.lane_facts(options.tenant, options.key, options.cost)
        spec = self._spec(payload, options)
        return seal_job(options.id or fresh, spec, options, self.priority(options), facts)

    def lane_facts(
        self, tenant: str | None, key: str | None, cost: Mapping[str, int] | None = None
    ) -> LaneFacts:
        """The lane, the chain and the estimated cost of a job."""
        options = self.app.queues[self.queue].options
        try:
            facts, default = lane_facts(self.queue, options, tenant, key), self.handler.cost
            if not (cost or default):
                return facts
            return {**facts, "cost": cost_fact(self.queue, options, {**default, **(cost or {})})}
        except ConfigError as error:
            raise as_argument(error) from None

    def priority(self, options: EnqueueOptions) -> int:
        """The priority of a job with these options."""
        return options.priority or self.handler.priority

    async def _runtime(self) -> Runtime:
        try:
            return await self.app.runtime()
        except StoreUnavailable as error:
            raise told(error) from error

    async def _deliver(self, jobs: Sequence[NewJob], durability: Durability) -> list[Receipt[R]]:
        client = (await self._runtime()).client
        answers, reached = await client.enqueue(self.queue, jobs, durability)
        text = str(reached)
        return [receipt_of(self, *pair, text) for pair in zip(jobs, answers, strict=True)]

    def _span(
        self, options: EnqueueOptions, number: int | None = None
    ) -> AbstractContextManager[Span | None]:
        """The span around enqueueing a job, or so many jobs."""
        if (tracing := self.app.tracing) is None:
            return nullcontext()
        return tracing.sending(self.queue, self.name, options.tenant, options.headers, number)

    def _spec(self, payload: bytes, options: EnqueueOptions) -> Spec:
        headers = dict(options.headers) if options.headers else {}
        if (tracing := self.app.tracing) is not None:
            tracing.stamp(headers)
        return Spec(
            task=self.name,
            payload=msgspec.Raw(payload),
            version=self.handler.version,
            tenant=options.tenant,
            key=options.key,
            timeout_us=options.timeout_us,
            attempts=options.attempts,
            retry=options.terms,
            headers=headers,
        )

    def __repr__(self) -> str:
        return f"<Task {self.queue}/{self.name}>"


def _patience(options: EnqueueOptions) -> AbstractContextManager[None]:
    return nullcontext() if options.patience_s is None else within(options.patience_s)
