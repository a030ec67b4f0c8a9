"""A queue: where tasks are registered, and what operators do to the jobs in it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, Unpack

from faena.declaring.fallback import handler_with_fallback
from faena.declaring.handler import Handler, name_of, refuse_bare
from faena.declaring.hooks import as_hook, check_hook, word_of
from faena.declaring.registrar import BatchFields, BatchRegistrar, Registrar
from faena.engine import Engine
from faena.engine.requester import on_behalf
from faena.engine.settings import WRITTEN, as_declared, read_settings, written
from faena.errors import ConfigError, shown
from faena.idempotency import Idempotency
from faena.limits import Limit
from faena.options import (
    Backpressure,
    BatchOptions,
    Order,
    QueueOptions,
    Retain,
    TaskOptions,
    Thresholds,
    build,
)
from faena.options.batch import DEFAULT_SIZE, check_batch
from faena.options.costs import check_units
from faena.options.queue import MOST_SHARDS, check_parts
from faena.options.settings import (
    OF_TENANTS,
    RESETTABLE,
    SettingFields,
    Settings,
    changed,
    check_resettable,
)
from faena.queue_reader import QueueReader
from faena.retry import Retry
from faena.sharding.view import ShardsView, reset_shards, reshard, view_shards
from faena.states import FINISHED, State, state_of
from faena.task import Task
from faena.tenancy.tenants import Tenant, TenantView, busiest, check_lanes
from faena.values.duration import Duration, to_s, to_us
from faena.values.keywords import known_keywords
from faena.values.names import check_label, check_name, check_reason
from faena.values.numbers import check_whole

if TYPE_CHECKING:
    from faena.app import Faena

T = TypeVar("T")

Report: TypeAlias = Callable[[int], None]

_log = logging.getLogger("faena.queue")

_WAITING = (State.BLOCKED, State.DELAYED, State.READY)
"""Removed in this order: a blocked job would become ready when the job before it is removed."""


class QueueFields(TypedDict, total=False):
    """The options of a queue; see `QueueOptions`."""

    order: Order | str
    on_failure: str
    fair: bool | str | None
    limits: Sequence[Limit]
    tenant_limits: Sequence[Limit]
    key_limits: Sequence[Limit]
    learning: bool
    concurrency: int
    objective: Duration
    max_running: int | None
    tenant_max_running: int | None
    timeout: Duration | None
    priority: int | str
    retry: Retry
    backpressure: Backpressure | None
    retain: Retain
    lease: Duration
    max_deliveries: int
    age_step: Duration
    retry_boost: int
    payload_limit: int
    events_kept: int
    shards: int
    alerts: Thresholds | None


class Queue(QueueReader):
    """A queue of an app: its options, its tasks, and what operators can do to it."""

    is_remote = False
    """Whether another program declares and serves it."""

    def __init__(self, app: Faena, name: str, options: QueueOptions) -> None:
        super().__init__(app, check_name("queue", name), options)
        self.tasks: dict[str, Task[Any, Any]] = {}

    @property
    def handlers(self) -> dict[str, Handler]:
        """The handlers of its tasks, by name."""
        return {name: task.handler for name, task in self.tasks.items()}

    # -- tasks ----------------------------------------------------------------------------------

    @property
    def task(self) -> Registrar:
        """Registers a function: `@queue.task`, or `@queue.task(timeout=…, run="process")`."""
        return Registrar(self._register, {})

    def batch(
        self, size: int | None = None, wait: Duration = "200ms", **options: Unpack[BatchFields]
    ) -> BatchRegistrar:
        """Registers a function that is called once for many jobs: `@queue.batch(size=50)`.

        Each job is still enqueued, limited, retried and finished on its own; see `BatchOptions`.
        """
        refuse_bare("@queue.batch(size=50)", size)
        size = min(DEFAULT_SIZE, self.options.concurrency) if size is None else size
        given = {**options, "size": size, "wait": wait}
        of_any_name = build(BatchOptions, "batch", {"name": "unnamed", **given})
        check_batch(self.name, of_any_name, self.options.concurrency)
        return BatchRegistrar(self._register_batch, given)

    def _register(
        self, function: Callable[..., Any], options: Mapping[str, Any], names: Mapping[str, Any]
    ) -> Task[Any, Any]:
        given = {"name": name_of(function), **options}
        return self._add(function, build(TaskOptions, "task", given), names)

    def _register_batch(
        self, function: Callable[..., Any], options: Mapping[str, Any], names: Mapping[str, Any]
    ) -> Task[Any, Any]:
        given = {"name": name_of(function), **options}
        return self._add(function, build(BatchOptions, "batch", given), names)

    def _add(
        self, function: Callable[..., Any], options: TaskOptions, names: Mapping[str, Any]
    ) -> Task[Any, Any]:
        if options.name in self.tasks:
            raise ConfigError(
                f"task {options.name!r} is registered twice on queue {self.name}: "
                f"give one of the two another name",
                field="name",
                value=options.name,
            )
        handler = handler_with_fallback(function, self.name, options, self.options, names)
        task: Task[Any, Any] = Task(self._app, handler)
        self.tasks[handler.name] = task
        if handler.cost:
            self.options.costs[handler.name] = handler.cost
        return task

    def add_hook(
        self,
        end: str,
        task: str,
        function: Callable[..., Any],
        options: Mapping[str, Any],
        names: Mapping[str, Any],
    ) -> Task[Any, Any]:
        """Register what runs whenever a job of a task dies, or fails an attempt."""
        if task in self.options.hooks.values():
            raise ConfigError(f"a hook must not have hooks of its own, got one for {shown(task)}")
        if self.options.hooks.get((end, task)):
            raise ConfigError(f"task {task!r} already has an {word_of(end)} hook: remove one")
        check_hook(end, task, function, names)
        given = {"name": f"{task}.{word_of(end)}", **options}
        hook = self._add(function, build(TaskOptions, "task", given), names)
        hook.handler = as_hook(hook.handler, end, self._app)
        self.options.hooks[end, task] = hook.name
        return hook

    # -- tenants --------------------------------------------------------------------------------

    def tenant(self, name: str | None) -> Tenant:
        """One tenant, to inspect or to configure; None stands for jobs without a tenant.

        Raises ConfigError if tenants have no lanes in this queue, or jobs without a tenant have
        none.
        """
        check_lanes(self.name, self.options, is_of_all=name is None)
        is_movable = self.options.order is not Order.QUEUE
        return Tenant(self._app.runtime, self.name, name, is_movable=is_movable)

    async def tenants(self, *, limit: int = 50) -> list[TenantView]:
        """The tenants with the most live jobs, then those with settings of their own."""
        check_lanes(self.name, self.options)
        limit = check_whole("limit", limit, least=1, most=1000)
        return await busiest(await self._app.runtime(), self.name, limit)

    # -- holds and settings ---------------------------------------------------------------------

    @known_keywords("pause")
    async def pause(
        self,
        *,
        reason: str = "pause",
        lasting: Duration | None = None,
        by: str = "operator",
    ) -> bool:
        """Start no more jobs until `resume`, or for a given time; running jobs continue."""
        check_reason(reason)
        check_label("by", by)
        wait_us = None if lasting is None else to_us("lasting", lasting, least_us=1)
        return any(await self._everywhere(lambda one, shard: one.hold(shard, reason, wait_us, by)))

    async def resume(self, *, reason: str = "pause", by: str = "operator") -> bool:
        """End the hold with this reason; holds with other reasons stay."""
        check_reason(reason)
        with on_behalf(by):
            return any(await self._everywhere(lambda engine, shard: engine.release(shard, reason)))

    async def settings(self) -> Settings:
        """The settings in force, named as in `app.queue()`, and which were changed at run time."""
        conf = (await self.overview()).settings
        if "version" not in conf:  # not declared on the server yet
            conf = as_declared(self.options, conf)
        return read_settings(conf, is_fair=self.options.is_fair)

    async def configure(
        self, *, by: str = "operator", **changes: Unpack[SettingFields]
    ) -> Settings:
        """Change options at run time, for every worker at its next call, until `reset`.

        Names and values are those of `app.queue()`; None removes a bound. `backpressure` and
        `retain` are replaced as a whole. `faena.options.settings.parse_setting(name, text)` reads
        values from strings, as of a command line or a form. Returns the settings then in force.
        """
        if OF_TENANTS & changes.keys():
            check_lanes(self.name, self.options)
        if changes.get("key_limits") and not self.options.key_limits:
            raise ConfigError(
                f"key_limits of queue {self.name} must be declared in code before they can be "
                f"changed: without them, jobs are stored without their keys",
                field="key_limits",
                value=changes.get("key_limits"),
            )
        wanted = check_units(self.name, self.options, changed(self.options, changes))
        edit = written(wanted, changes)
        if edit:
            with on_behalf(by):
                await self._everywhere(lambda engine, shard: engine.configure(shard, edit))
        return await self.settings()

    async def reset(self, *names: str, by: str = "operator") -> Settings:
        """Return these options, or all, to the values that code declares; `shards` too."""
        chosen = check_resettable(names or RESETTABLE)
        settings = [one for name in chosen for one in WRITTEN.get(name, ())]
        with on_behalf(by):
            await reset_shards(await self._app.runtime(), self.name, chosen)
            await self._everywhere(lambda engine, shard: engine.reset(shard, settings))
        return await self.settings()

    async def _everywhere(self, do: Callable[[Engine, str], Awaitable[T]]) -> list[T]:
        """The answer of each shard of the queue, the first one first.

        A shard that is added meanwhile may have been given the first one's old values, so it is
        called as well.
        """
        runtime = await self._app.runtime()
        router, answers = runtime.routers.of(self.name), dict[str, T]()
        while untold := [shard for shard in await router.names() if shard not in answers]:
            for shard in untold:
                answers[shard] = await do(runtime.engine, shard)
        return list(answers.values())

    # -- shards ----------------------------------------------------------------------------------

    async def shards(self) -> ShardsView:
        """The number of shards, tenants with a shard of their own, and what is moving."""
        return await view_shards(await self._app.runtime(), self.name)

    async def reshard(
        self, shards: int, *, by: str = "operator", wait: Duration = "30s"
    ) -> ShardsView:
        """Spread the queue over more shards while it runs, or over fewer once those are empty.

        Returns when all jobs have moved, or after `wait`: then the move continues in the
        background, here and in every worker. The number stays, whatever code declares, until
        `reset("shards")`.
        """
        shards = check_whole("shards", shards, least=1, most=MOST_SHARDS)
        check_lanes(self.name, self.options, is_of_all=True)
        check_parts(self.options, shards)
        runtime = await self._app.runtime()
        return await reshard(runtime, self.name, shards, by=by, wait_s=to_s("wait", wait))

    # -- removing -------------------------------------------------------------------------------

    async def clean(
        self,
        state: State | str,
        *,
        age: Duration = "0s",
        most: int | None = None,
        report: Report | None = None,
        by: str = "operator",
    ) -> int:
        """Remove finished jobs older than `age`, at most `most`; returns how many.

        `report` is called after each slice with the number of jobs removed.
        """
        word = state_of(state, FINISHED).value
        if most is not None:
            most = check_whole("most", most, least=0, most=1_000_000_000)
        client = (await self._app.runtime()).client
        with on_behalf(by):
            return await client.sweep_out(self.name, word, to_us("age", age), most, report)

    async def drain(
        self, *, is_delayed_too: bool = True, report: Report | None = None, by: str = "operator"
    ) -> int:
        """Remove every waiting job; running and finished ones stay. Returns how many."""
        sweep_out = (await self._app.runtime()).client.sweep_out
        states = _WAITING if is_delayed_too else (State.READY,)
        with on_behalf(by):
            return sum([await sweep_out(self.name, one.value, 0, None, report) for one in states])

    async def promote_all(self, *, report: Report | None = None, by: str = "operator") -> int:
        """Make every job that is delayed now ready; returns how many."""
        with on_behalf(by):
            return await (await self._app.runtime()).client.promote_all(self.name, report)

    async def obliterate(self, *, force: bool = False, by: str = "operator") -> None:
        """Remove the queue with everything in it; refused while jobs run, unless forced.

        This removes its events too, so only this program's log tells who did it.
        """
        _log.info("obliterating queue %s, by %s", self.name, check_label("by", by))
        runtime = await self._app.runtime()
        await runtime.client.obliterate(self.name, force=force, carry=runtime.relay.try_to_carry)

    @property
    def idempotency(self) -> Idempotency:
        """Records that make this queue's handlers safe to repeat."""
        return Idempotency(self._app.runtime, self.name)

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"
