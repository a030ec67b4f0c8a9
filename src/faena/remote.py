"""Queues and tasks of another program, for one that only produces.

    mail = app.remote_queue("mail")
    send = mail.stub("send", payload=Mail, result=Receipt)
    receipt = await send.enqueue(Mail(to="ana@example.com"), tenant="acme")

The program with the handlers declares the queue: its settings are on the server, and nothing here
writes them. What a producer must know of them to place a job (order, lanes, priority, the largest
payload, what jobs of a task cost) is read from there, and again every second.
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
"""How long what was read of a queue's settings counts: jobs may be placed by it for as long."""
_MOST_VERSION: Final = 1_000_000


class Stub(Task[P, R]):
    """A task whose function is in another program: it can be enqueued, not called or served."""

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
        """Put one job on the queue; see `Task.enqueue`."""
        given = () if payload is ... else (payload,)
        return await self.put(self.draft(*given, **options))

    async def put(self, draft: Draft[P]) -> Receipt[R]:
        """Put one job on the queue as it was drafted."""
        await self.prepare()
        return await super().put(draft)

    async def put_many(
        self, payloads: Iterable[P | Draft[P]], shared: EnqueueOptions
    ) -> list[Receipt[R]]:
        """Put many jobs on the queue; see `Task.put_many`."""
        await self.prepare()
        return await super().put_many(payloads, shared)

    async def prepare(self) -> None:
        """Know how jobs are placed in the queue."""
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
        """None: they are elsewhere."""
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
        """A task of this queue by its name, to be enqueued from here.

        `payload` is the type that is checked and encoded, as the handler's own would be: any JSON
        value without one, nothing at all with None. `result` is what `handle.result()` returns.
        `priority` is that of jobs which name none, by default the queue's; `version` the task's.
        """
        if check_name("task", name) in self.tasks:
            raise ConfigError(
                f"stub {name!r} is made twice on queue {self.name}: use the one there is",
                field="name",
                value=name,
            )
        own = None if priority is None else priority_of(priority)
        handler = self._handler(name, payload, result)
        version = check_whole("version", version, least=1, most=_MOST_VERSION)
        stub: Stub[Any, Any] = Stub(self, replace(handler, version=version), own)
        self.tasks[name] = stub
        self._read = None  # what its jobs cost is not known yet
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
            cost={},
            payload_limit=self.options.payload_limit,
            max_deliveries=self.options.max_deliveries,
            age_step_us=self.options.age_step_us,
        )

    @property
    def task(self) -> NoReturn:
        """Refused: handlers are registered where the queue is declared."""
        self._refuse("register a handler", "use stub() to enqueue its tasks, or app.queue()")

    def batch(self, *_: Any, **__: Any) -> NoReturn:
        """Refused, as `task` is."""
        self._refuse("register a handler", "use stub() to enqueue its tasks, or app.queue()")

    def add_hook(self, *_: Any, **__: Any) -> NoReturn:
        """Refused, as `task` is."""
        self._refuse("register a hook", "do it there")

    # -- settings -------------------------------------------------------------------------------

    async def learn(self) -> QueueOptions:
        """What counts for whoever places jobs, read from the server; `options` says it from now on.

        Raises NotDeclared when no program has declared the queue there yet.
        """
        runtime, read = await self.app.runtime(), self._read
        if read is None or read[0] is not runtime:
            await self._look(runtime)
        elif time.monotonic() - read[1] > _FRESH_S:
            self._read = runtime, time.monotonic()  # of many callers one asks
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
            await runtime.engine.declare(self.name)  # which refuses, unless it is a test
            fields = await runtime.engine.command("HMGET", self.name, "conf", *wanted)
        self.options = placing_of(self.name, fields, tasks)
        if tasks == tuple(self.tasks):  # what jobs of a stub made meanwhile cost is not known
            self._read = runtime, asked_at

    def tenant(self, name: str | None) -> Tenant:
        """One tenant, to look at or to decide about."""
        return Tenant(self.app.runtime, self.name, name)

    async def tenants(self, *, limit: int = 50) -> list[TenantView]:
        """The tenants with the most live jobs, then those that something is decided for."""
        await self.learn()
        return await super().tenants(limit=limit)

    async def settings(self) -> Settings:
        """What counts on the server now."""
        await self.learn()
        return await super().settings()

    async def shares(self, *, minutes: int = 1) -> list[Shares]:
        """What each tenant was given in the last full minutes, oldest first, and in this one."""
        await self.learn()
        return await super().shares(minutes=minutes)

    async def configure(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: settings are changed where the queue is declared."""
        self._refuse("change settings", "do it there")

    async def reset(self, *_: str, **__: Any) -> NoReturn:
        """Refused, as `configure` is."""
        self._refuse("reset settings", "do it there")

    async def reshard(self, *_: Any, **__: Any) -> NoReturn:
        """Refused, as `configure` is."""
        self._refuse("change shards", "do it there")

    def _refuse(self, what: str, instead: str) -> NoReturn:
        raise ConfigError(
            f"cannot {what}: queue {self.name} is declared by another program; {instead}",
            field="queue",
            value=self.name,
        )


def _absent(task: str) -> Callable[..., Any]:
    def absent(*_: Any, **__: Any) -> NoReturn:
        raise ConfigError(
            f"task {task} must be enqueued: it is a stub, its function is in another program",
            field="task",
            value=task,
        )

    return absent
