"""Queues and tasks of another program, for a program that only enqueues.

    mail = app.remote_queue("mail")
    send = mail.stub("send", payload=Mail, result=Receipt)
    receipt = await send.enqueue(Mail(to="ana@example.com"), tenant="acme")

The program with the handlers declares the queue and writes its settings to the server; this module
never writes them. A producer needs some of them to enqueue a job (order, lanes, priority, largest
payload, costs of tasks): it reads them from the server, at most once a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, Unpack, overload

from faena.codec import codec_for
from faena.declaring.handler import Handler
from faena.engine.settings import COST_OF, PLACING, placing_of
from faena.errors import ConfigError
from faena.job import Job
from faena.options import EnqueueOptions, QueueOptions, priority_of
from faena.options.costs import task_costs
from faena.options.settings import Settings
from faena.queue import Queue
from faena.retry import Retry
from faena.task import Draft, EnqueueFields, Receipt, Task
from faena.tenancy.shares import Shares
from faena.tenancy.tenants import Tenant, TenantView
from faena.values.keywords import known_keywords
from faena.values.names import check_name
from faena.values.numbers import check_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from faena.app import Faena
    from faena.runtime.connections import Runtime

P = TypeVar("P")
R = TypeVar("R")

_FRESH_S: Final = 1.0
"""How long settings are used before they are read again."""
_MOST_VERSION: Final = 1_000_000


class Stub(Task[P, R]):
    """A task whose function is in another program: it can be enqueued, but not called or served."""

    def __init__(self, queue: RemoteQueue, handler: Handler, priority: int | None) -> None:
        super().__init__(queue.app, handler)
        self._origin = queue
        self._own_priority = priority

    @overload
    async def enqueue(
        self: Stub[None, R] | Stub[Job, R], **options: Unpack[EnqueueFields]
    ) -> Receipt[R]: ...
    @overload
    async def enqueue(self, payload: P, **options: Unpack[EnqueueFields]) -> Receipt[R]: ...
    async def enqueue(self, payload: Any = ..., **options: Unpack[EnqueueFields]) -> Receipt[Any]:
        """Enqueue one job; see `Task.enqueue`."""
        given = () if payload is ... else (payload,)
        return await self.put(self.draft(*given, **options))

    async def put(self, draft: Draft[P]) -> Receipt[R]:
        """Enqueue one job from a draft."""
        await self.prepare()
        return await super().put(draft)

    async def put_many(
        self, payloads: Iterable[P | Draft[P]], shared: EnqueueOptions
    ) -> list[Receipt[R]]:
        """Enqueue many jobs; see `Task.put_many`."""
        await self.prepare()
        return await super().put_many(payloads, shared)

    async def prepare(self) -> None:
        """Read the settings that enqueueing needs."""
        options = await self._origin.learn()
        self.handler = replace(
            self.handler,
            priority=self._own_priority or options.priority,
            payload_limit=options.payload_limit,
            cost=task_costs(options, self.name),
        )

    def __repr__(self) -> str:
        return f"<Stub {self.queue}/{self.name}>"


class RemoteQueue(Queue):
    """A queue that another program declares and serves."""

    is_remote = True

    def __init__(self, app: Faena, name: str) -> None:
        super().__init__(app, name, QueueOptions())
        self._read: tuple[Runtime, float] | None = None

    @property
    def handlers(self) -> dict[str, Handler]:
        """Always empty: the handlers are in another program."""
        return {}

    # -- tasks ----------------------------------------------------------------------------------

    @overload
    def stub(
        self,
        name: str,
        *,
        payload: None,
        result: type[R],
        priority: int | str | None = ...,
        version: int = ...,
    ) -> Stub[None, R]: ...
    @overload
    def stub(
        self,
        name: str,
        *,
        payload: type[P],
        result: type[R],
        priority: int | str | None = ...,
        version: int = ...,
    ) -> Stub[P, R]: ...
    @overload
    def stub(
        self,
        name: str,
        *,
        payload: None,
        result: Any = ...,
        priority: int | str | None = ...,
        version: int = ...,
    ) -> Stub[None, Any]: ...
    @overload
    def stub(
        self,
        name: str,
        *,
        payload: type[P],
        result: Any = ...,
        priority: int | str | None = ...,
        version: int = ...,
    ) -> Stub[P, Any]: ...
    @overload
    def stub(
        self,
        name: str,
        *,
        payload: Any = ...,
        result: Any = ...,
        priority: int | str | None = ...,
        version: int = ...,
    ) -> Stub[Any, Any]: ...
    @known_keywords("stub")
    def stub(
        self,
        name: str,
        *,
        payload: Any = Any,
        result: Any = Any,
        priority: int | str | None = None,
        version: int = 1,
    ) -> Stub[Any, Any]:
        """A task of this queue by its name, to enqueue it from here.

        `payload` is the type to check and encode payloads with, as the handler would: any JSON
        value by default, no payload with None. `result` is the type that `handle.result()` returns.
        `priority` is the default of its jobs, or else the queue's; `version` is the task's.
        """
        if check_name("task", name) in self.tasks:
            raise ConfigError(
                f"stub {name!r} is made twice on queue {self.name}: use the first one",
                field="name",
                value=name,
            )
        own = None if priority is None else priority_of(priority)
        handler = self._handler(name, payload, result)
        version = check_whole("version", version, least=1, most=_MOST_VERSION)
        stub: Stub[Any, Any] = Stub(self, replace(handler, version=version), own)
        self.tasks[name] = stub
        self._read = None  # the costs of this task are still unknown
        return stub

    def _handler(self, name: str, payload: Any, result: Any) -> Handler:
        return Handler(
            name=name,
            queue=self.name,
            function=_absent(f"{self.name}/{name}"),
            run="async",
            runner="async",
            batch=None,
            payload=None if payload is None else codec_for(payload),
            result=codec_for(result),
            payload_at=-1 if payload is None else 0,
            job_at=-1,
            retry=Retry.never(),
            priority=self.options.priority,
            timeout_us=None,
            version=1,
            upstreams=(),
            cost={},
            payload_limit=self.options.payload_limit,
            max_deliveries=self.options.max_deliveries,
            age_step_us=self.options.age_step_us,
        )

    @property
    def task(self) -> NoReturn:
        """Refused: the program that declares the queue registers its handlers."""
        self._refuse("register a handler", "use stub() to enqueue its tasks, or app.queue()")

    def batch(self, *_: Any, **__: Any) -> NoReturn:
        """Refused, as `task` is."""
        self._refuse("register a handler", "use stub() to enqueue its tasks, or app.queue()")

    def add_hook(self, *_: Any, **__: Any) -> NoReturn:
        """Refused, as `task` is."""
        self._refuse("register a hook", "register it there")

    # -- settings -------------------------------------------------------------------------------

    async def learn(self) -> QueueOptions:
        """Read the settings that enqueueing needs from the server, and update `options`.

        Raises NotDeclared when no program has declared the queue there yet.
        """
        runtime, read = await self.app.runtime(), self._read
        if read is None or read[0] is not runtime:
            await self._look(runtime)
        elif time.monotonic() - read[1] > _FRESH_S:
            self._read = runtime, time.monotonic()  # of concurrent callers, only one reads
            try:
                await self._look(runtime)
            except BaseException:
                self._read = read
                raise
        return self.options

    async def _look(self, runtime: Runtime) -> None:
        tasks, asked_at = tuple(self.tasks), time.monotonic()
        wanted = (*PLACING, *(f"{COST_OF}{task}" for task in tasks))
        fields = await runtime.engine.command("HMGET", self.name, "conf", *wanted)
        if fields[0] is None:
            await runtime.engine.declare(self.name)  # raises NotDeclared, except in tests
            fields = await runtime.engine.command("HMGET", self.name, "conf", *wanted)
        self.options = placing_of(self.name, fields, tasks)
        if tasks == tuple(self.tasks):  # else the costs of a newer stub are still unknown
            self._read = runtime, asked_at

    def tenant(self, name: str | None) -> Tenant:
        """One tenant, to inspect or to configure."""
        return Tenant(self.app.runtime, self.name, name)

    async def tenants(self, *, limit: int = 50) -> list[TenantView]:
        """The tenants with the most live jobs, then those with settings of their own."""
        await self.learn()
        return await super().tenants(limit=limit)

    async def settings(self) -> Settings:
        """The settings in force on the server."""
        await self.learn()
        return await super().settings()

    async def shares(self, *, minutes: int = 1) -> list[Shares]:
        """Each tenant's share of the last full minutes, oldest first, and of the current one."""
        await self.learn()
        return await super().shares(minutes=minutes)

    async def configure(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: the program that declares the queue changes its settings."""
        self._refuse("change settings", "change them there")

    async def reset(self, *_: str, **__: Any) -> NoReturn:
        """Refused, as `configure` is."""
        self._refuse("reset settings", "reset them there")

    async def reshard(self, *_: Any, **__: Any) -> NoReturn:
        """Refused, as `configure` is."""
        self._refuse("change shards", "change them there")

    def _refuse(self, what: str, instead: str) -> NoReturn:
        raise ConfigError(
            f"cannot {what}: queue {self.name} is declared by another program; {instead}",
            field="queue",
            value=self.name,
        )


def _absent(task: str) -> Callable[..., Any]:
    def absent(*_: Any, **__: Any) -> NoReturn:
        raise ConfigError(
            f"task {task} cannot be called here: its function is in another program; enqueue it",
            field="task",
            value=task,
        )

    return absent
