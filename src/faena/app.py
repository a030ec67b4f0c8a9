"""The composition root: an app declares queues and tasks, connects to a broker, runs workers."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from faena.alert_registry import QUEUE as NOTICES
from faena.alert_registry import AlertRegistry
from faena.bulk import BulkCarrier, Bulks
from faena.deadletter.desk import Desk
from faena.deadletter.queues import DeskQueues
from faena.deadletter.redrive import Redrives
from faena.deadletter.redrive_takeover import RedriveTakeover
from faena.deadletter.upkeep import Upkeep
from faena.declaring.hooks import ENDS
from faena.engine import Engine
from faena.engine.engine import Clock
from faena.engine.settings import declaration
from faena.errors import ConfigError, shown
from faena.flows import Flow, Group, Plan, chain, chord
from faena.middleware import Middleware
from faena.options import Alerts, DeadLetters, Metrics, build
from faena.options.fields import check_is
from faena.options.queue import HISTORY
from faena.queue import Queue
from faena.runtime.connections import Connection, Runtime
from faena.scheduling.decorators import MISSING, Recurring, RecurringFields, TimedFields, check_task
from faena.scheduling.schedules import Schedules
from faena.sharding.consistent_read import in_sight
from faena.sharding.router import Routers
from faena.task import Draft, Task
from faena.telemetry.events import Event, follow, read_kinds, read_since
from faena.telemetry.tracing.choice import check_tracing
from faena.values.duration import Duration, to_s
from faena.values.ids import IdFactory
from faena.values.keywords import known_keywords
from faena.values.names import check_name
from faena.worker.background_services import BackgroundServices, Service

if TYPE_CHECKING:  # a program that only enqueues does not load the worker
    from opentelemetry.trace import TracerProvider

    from faena.worker.options import Served, WorkerOptions
    from faena.worker.serve.server_check import ServerCheck
    from faena.worker.worker import Worker

T = TypeVar("T")


class Faena(AlertRegistry):
    """An application's queues, tasks and connection to one broker."""

    @known_keywords("app")
    def __init__(  # noqa: PLR0913 - all optional but the name # size: a line an argument
        self,
        name: str,
        url: str | None = None,
        *,
        namespace: str | None = None,
        directory: str | Path = ".faena",
        middleware: Sequence[Middleware] = (),
        allow_eviction: bool = False,
        patience: Duration = "5s",
        clock: Clock | None = None,
        dead_letters: DeadLetters | None = None,
        metrics: Metrics | None = None,
        tracing: bool | TracerProvider | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        """Opens no connection; the first call does.

        Without `url`, environment variables are used (FAENA_URL, REDIS_URL, REDIS_HOST …); without
        those, an embedded Valkey for development, with its data in `directory`. `namespace` is the
        prefix of every key, by default the app's name: programs with the same namespace share
        queues. `allow_eviction` accepts a server that may evict jobs. `patience` is how long a call
        of a producer or reader tries to reach the broker; workers try without end. `clock` replaces
        the server's time in tests. `dead_letters` sets automatic retries and alerts for dead jobs,
        `metrics` what pages of metrics have. `tracing` makes spans of OpenTelemetry: by default if
        the program has set a TracerProvider before its first job; with True also if it sets one
        later; with a provider, by that one; with False never. `alerts` says what is watched and
        who is told; without, nothing is.
        """
        connection = Connection(
            name=check_name("app", name),
            url=url,
            namespace=name if namespace is None else check_name("namespace", namespace),
            directory=_directory(directory),
            allow_eviction=allow_eviction,
            patience_s=to_s("patience", patience),
            clock=clock,
        )
        super().__init__(name, connection, self._renew_ids)
        self.middleware = _layers(middleware)
        self.schedules = Schedules(self)
        self.dead_letter_options = _checked(
            "dead_letters", dead_letters or DeadLetters(), DeadLetters
        )
        self.metric_options = _checked("metrics", metrics or Metrics(), Metrics)
        self._trace_with = check_tracing(tracing)
        self._services: list[Service] = []
        self.servers: dict[str, ServerCheck] = {}
        self._desk_queues = DeskQueues(self._connected, lambda: self.queues, self.new_ids)
        self._renew_ids()
        self._declare_alerts(alerts)

    # -- jobs that belong together ----------------------------------------------------------------

    @known_keywords("flow")
    def flow(self, name: str = "flow", *, id: str | None = None) -> Plan:  # noqa: A002
        """A plan of jobs that wait for each other: add nodes, then `start` it."""
        return Plan(self, name, id=id)

    @known_keywords("chain")
    def chain(self, *drafts: Draft[Any], name: str = "chain") -> Plan:
        """A plan of jobs that run one after another."""
        return chain(self, drafts, name)

    @known_keywords("chord")
    def chord(
        self,
        drafts: Sequence[Draft[Any]],
        callback: Draft[Any],
        *,
        on_failure: str = "fail",
        name: str = "chord",
    ) -> Plan:
        """A plan of parallel jobs, and a callback that runs when all of them have ended."""
        return chord(self, drafts, callback, on_failure=on_failure, name=name)

    @known_keywords("group")
    def group(
        self,
        *,
        on_complete: Draft[Any] | None = None,
        on_success: Draft[Any] | None = None,
        id: str | None = None,  # noqa: A002 - as jobs have one
    ) -> Group:
        """Jobs that are counted together, and callbacks that run when all have ended."""
        return Group(self, on_complete=on_complete, on_success=on_success, id=id)

    def running_flow(self, flow_id: str) -> Flow:
        """A started flow, by its id; the broker is not asked."""
        return Flow(self, flow_id)

    # -- schedules --------------------------------------------------------------------------------

    def cron(self, text: str, **options: Unpack[RecurringFields]) -> Recurring:
        """Run a task, or a plain function, by a cron expression.

        A plain function becomes a task on the queue `scheduler`, created for it, or on the queue
        given. The schedule has the task's name unless `name` is given.
        """
        return Recurring(self, {"cron": text}, options)

    def every(self, interval: Duration, **options: Unpack[RecurringFields]) -> Recurring:
        """Like `cron`, at a fixed interval, counted from `start` or from 1970-01-01 UTC."""
        return Recurring(self, {"every": interval}, options)

    def schedule(
        self,
        name: str,
        task: Task[Any, Any],
        payload: Any = MISSING,
        **terms: Unpack[TimedFields],
    ) -> None:
        """Declare a schedule for a task, with `cron=`, `every=` or `at=`."""
        check_task(name, task)
        self.schedules.add(name, task, payload, terms)

    async def _connected(self) -> tuple[Engine, Routers]:
        runtime = await self.runtime()
        return runtime.engine, runtime.routers

    @property
    def dead_letters(self) -> Desk:
        """The dead-letter desk: list, retry, discard and resolve the dead jobs of all queues."""
        return Desk(self._desk_queues)

    @property
    def bulk(self) -> Bulks:
        """What is done to many jobs at once, by and by; see docs/dashboard.md."""
        return Bulks(self._desk_queues)

    def events(
        self,
        queue: str | Sequence[str] | None = None,
        *,
        since: str | datetime = "now",
        kinds: str | Sequence[str] | None = None,
        details: bool = False,
    ) -> AsyncGenerator[Event]:
        """Follow the events of one queue, of some, or of all and of upstreams; see docs/events.md.

        `since` is "now", "start" (the oldest event kept), an instant, or the cursor of an event.
        `kinds` selects events by name; gaps are always reported. `details` adds task and tenant.
        """
        check_is("details", details, bool)
        return follow(
            self._connected,
            self._desk_queues.chosen(queue),
            read_since(since),
            kinds=read_kinds(kinds),
            has_details=details,
            has_upstreams=queue is None,
        )

    def new_id(self) -> str:
        """A fresh job id."""
        return self._ids.new_id()

    def new_ids(self, number: int) -> list[str]:
        """Several fresh job ids, in increasing order."""
        return self._ids.new_ids(number)

    def _renew_ids(self) -> None:
        """Called after a fork too: another thread may have held the factory's lock meanwhile."""
        self._ids = IdFactory(lambda: time.time_ns() // 1_000_000, os.urandom)

    # -- workers ----------------------------------------------------------------------------------

    async def worker(
        self,
        queues: Iterable[Queue | str] | None = None,
        options: WorkerOptions | None = None,
    ) -> Worker:
        """A worker for the given queues, by default for all of this app; start it with `run()`."""
        from faena.worker.worker import Worker  # noqa: PLC0415 - see above

        self.is_traced = True  # look again: a provider may be set now
        own = [name for name, queue in self.queues.items() if self._is_served(queue)]
        names = [queue.name for queue in self.served_here(own if queues is None else queues)]
        if not names:
            raise ConfigError("a worker must have at least one queue, got none", field="queues")
        runtime = await self.runtime()
        dead_letters = self.dead_letter_options.settled(os.environ)
        background = await self._background(runtime, names, dead_letters)
        served = {name: _served(self.queues[name], runtime) for name in names}
        return Worker(
            runtime.patient_engine,
            runtime.new_engine(await self._links.address()),
            served,
            options=options,
            middleware=self.middleware,
            dead_letters=dead_letters,
            push=await self._push() if self.upstreams else None,
            background=background,
            tracing=self.tracing,
        )

    async def _background(
        self, runtime: Runtime, names: Sequence[str], dead_letters: DeadLetters
    ) -> BackgroundServices:
        """What a worker of these queues does beside its jobs."""
        from faena.worker.libraries import OldLibraries  # noqa: PLC0415 - see above

        takeover = RedriveTakeover(Redrives(self._desk_queues), names)
        carrier, scheduler = BulkCarrier(self.bulk), await self.schedules.scheduler(names)
        keeper = self.features.keeper(runtime.patient_engine)
        await keeper.begin()
        return BackgroundServices(
            services=[
                runtime.relay.run,
                Upkeep(self._desk_queues, dead_letters, names).run,
                takeover.run,
                carrier.run,
                scheduler.run,
                keeper.run,
                OldLibraries(runtime.engine, self._shards).run,
                *await self._alert_services(self._send_notices),
                *self._services,
            ],
            on_outbox=runtime.relay.notify,
            hears={
                "schedules": scheduler.notify,
                "redrives": takeover.notify,
                "bulks": carrier.notify,
                "features": keeper.notify,
            },
        )

    def _is_served(self, queue: Queue) -> bool:
        """Whether a worker serves it that is not told which queues."""
        is_notices = self.alert_options is not None and queue.name == NOTICES
        return not queue.is_remote and not is_notices

    async def _send_notices(self) -> None:
        """Serve the queue of notices until it is empty."""
        from faena.worker.options import WorkerOptions  # noqa: PLC0415 - see above
        from faena.worker.worker import Worker  # noqa: PLC0415

        runtime = await self.runtime()
        connect = runtime.new_engine(await self._links.address())
        served = {NOTICES: _served(self.queues[NOTICES], runtime)}
        options = WorkerOptions(until_empty=True)
        worker = Worker(
            runtime.patient_engine, connect, served, options=options, tracing=self.tracing
        )
        await worker.run()

    async def _shards(self) -> list[str]:
        """The shards of all queues."""
        runtime = await self.runtime()
        seen = [await in_sight(runtime.routers.of(queue)) for queue in self.queues]
        return [shard for one in seen for shard in one.shards]

    def add_service(self, service: Service) -> None:
        """Have every worker of this app run a coroutine function beside its jobs.

        It is cancelled when the worker stops. It must not return: a service that ends or fails ends
        its worker.
        """
        self._services.append(service)

    def add_server(self, name: str, check: ServerCheck) -> None:
        """Have `/health` of workers ask another server, too; its name is a field of the answer.

        `check` is a coroutine function that raises an error of Faena if the server does not answer.
        """
        self.servers[name] = check

    async def run_worker(
        self,
        queues: Iterable[Queue | str] | None = None,
        *,
        serve: str | None = None,
        **options: Any,
    ) -> None:
        """Run a worker in this event loop until it is cancelled or its work is done.

        When cancelled, it releases its running jobs at once, without using an attempt. `serve`,
        such as "3001" or "0.0.0.0:3001", answers /health, /ready and /metrics there, from a
        thread; see docs/health.md.
        """
        from faena.worker.options import WorkerOptions  # noqa: PLC0415 - see above
        from faena.worker.serve.address import ServeAddress  # noqa: PLC0415 - see above
        from faena.worker.serve.reporting import reporting  # noqa: PLC0415 - see above
        from faena.worker.serve.server_thread import serving_at  # noqa: PLC0415 - see above

        address = None if serve is None else ServeAddress.parse(serve)
        async with serving_at(address) as server:
            await self.await_broker()
            worker = await self.worker(queues, build(WorkerOptions, "worker", options))
            if server is not None:
                server.watch(worker)
            async with reporting(self, worker, None if server is None else server.end):
                await worker.run()

    def __repr__(self) -> str:
        return f"<Faena {self.name}: {len(self.queues)} queues>"


def _directory(given: Any) -> Path:
    if not isinstance(given, str | Path):
        raise ConfigError(
            f"directory must be a string or a Path, got {shown(given)}",
            field="directory",
            value=given,
        )
    return Path(given)


def _checked(what: str, given: T, kind: type[T]) -> T:
    check_is(what, given, kind)
    return given


def _layers(given: Any) -> tuple[Middleware, ...]:
    if isinstance(given, list | tuple) and all(isinstance(one, Middleware) for one in given):
        return tuple(given)
    raise ConfigError(
        f"middleware must be a list of Middleware objects, got {shown(given)}",
        field="middleware",
        value=given,
    )


def _served(queue: Queue, runtime: Runtime) -> Served:
    """What a worker needs of a queue.

    The program that runs a task decides its hooks and costs and whether its queue has a history,
    so it also writes that there is none.
    """
    from faena.worker.options import Served  # noqa: PLC0415 - see above

    for end, task in itertools.product(ENDS, queue.tasks):
        queue.options.hooks.setdefault((end, task), "")
    for task in queue.tasks if queue.options.units else ():
        queue.options.costs.setdefault(task, {})
    for name in HISTORY:
        queue.options.history.setdefault(name, None)
    runtime.engine.know(queue.name, declaration(queue.options))
    router = runtime.routers.of(queue.name)
    provider = None if router.is_fixed else router.serving
    return Served(options=queue.options, handlers=queue.handlers, shards=provider)
