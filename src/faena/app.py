"""The composition root: an app names its queues and tasks, connects, and runs workers."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

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
from faena.options import DeadLetters, build
from faena.options.fields import check_is
from faena.queue import Queue
from faena.registry import Registry
from faena.runtime.connections import Connection, Runtime
from faena.scheduling.decorators import MISSING, Recurring, RecurringFields, TimedFields, check_task
from faena.scheduling.schedules import Schedules
from faena.sharding.consistent_read import in_sight
from faena.sharding.router import Routers
from faena.task import Draft, Task
from faena.telemetry.events import Event, follow, read_kinds, read_since
from faena.values.duration import Duration, to_s
from faena.values.ids import IdFactory
from faena.values.keywords import known_keywords
from faena.values.names import check_name
from faena.worker.background_services import BackgroundServices

if TYPE_CHECKING:  # whoever only enqueues does not load what runs jobs
    from faena.worker.options import Served, WorkerOptions
    from faena.worker.worker import Worker


class Faena(Registry):
    """An application's queues, tasks and connection to one broker."""

    @known_keywords("app")
    def __init__(  # noqa: PLR0913 - each by its name, and all but the first may be left out
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
    ) -> None:
        """Nothing is connected yet.

        Without `url` the environment decides (FAENA_URL, REDIS_URL, REDIS_HOST …), and without that
        an embedded Valkey keeps its data under `directory`, for development. `namespace` begins
        every key and is the app's name unless given: programs meet on a server when they have the
        same one. `allow_eviction` accepts a server that may throw jobs away. `patience` is how long
        a producer's or a reader's call tries to reach the broker; workers wait for it. `clock`
        replaces the server's time, in tests. `dead_letters`: what becomes of dead jobs unasked.
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
        self.dead_letter_options = _checked(dead_letters or DeadLetters())
        self._desk_queues = DeskQueues(self._connected, lambda: self.queues, self.new_ids)
        self._renew_ids()

    # -- jobs that belong together ----------------------------------------------------------------

    @known_keywords("flow")
    def flow(self, name: str = "flow", *, id: str | None = None) -> Plan:  # noqa: A002
        """A plan of jobs that wait for each other: add to it, then `start` it."""
        return Plan(self, name, id=id)

    @known_keywords("chain")
    def chain(self, *drafts: Draft[Any], name: str = "chain") -> Plan:
        """A plan of jobs one after the other."""
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
        """A plan of jobs side by side, and one more when all of them have ended."""
        return chord(self, drafts, callback, on_failure=on_failure, name=name)

    @known_keywords("group")
    def group(
        self,
        *,
        on_complete: Draft[Any] | None = None,
        on_success: Draft[Any] | None = None,
        id: str | None = None,  # noqa: A002 - as jobs have one
    ) -> Group:
        """Jobs that are counted as they end; see `Group`."""
        return Group(self, on_complete=on_complete, on_success=on_success, id=id)

    def running_flow(self, flow_id: str) -> Flow:
        """A flow that has begun, by its id; nothing is looked up."""
        return Flow(self, flow_id)

    # -- schedules --------------------------------------------------------------------------------

    def cron(self, text: str, **options: Unpack[RecurringFields]) -> Recurring:
        """Have a task, or a plain function that becomes one, run by a cron expression.

        A function is put on the queue `scheduler`, which is made for it, or on another; the
        schedule is called as the task unless it is given a name.
        """
        return Recurring(self, {"cron": text}, options)

    def every(self, interval: Duration, **options: Unpack[RecurringFields]) -> Recurring:
        """The same for a fixed interval, counted from `start` or from the beginning of 1970."""
        return Recurring(self, {"every": interval}, options)

    def schedule(
        self,
        name: str,
        task: Task[Any, Any],
        payload: Any = MISSING,
        **terms: Unpack[TimedFields],
    ) -> None:
        """Declare a schedule for a task: by `cron=`, `every=` or `at=`."""
        check_task(name, task)
        self.schedules.add(name, task, payload, terms)

    async def _connected(self) -> tuple[Engine, Routers]:
        runtime = await self.runtime()
        return runtime.engine, runtime.routers

    @property
    def dead_letters(self) -> Desk:
        """The dead-letter desk: dead jobs of all queues, to look at, retry and deal with."""
        return Desk(self._desk_queues)

    def events(
        self,
        queue: str | Sequence[str] | None = None,
        *,
        since: str | datetime = "now",
        kinds: str | Sequence[str] | None = None,
        details: bool = False,
    ) -> AsyncGenerator[Event]:
        """What happens to jobs, as it happens, of one queue, of some or of all; see docs/events.md.

        `since` is "now", "start" (what is kept), an instant, or the cursor of an event. `kinds` are
        names of events; of a gap one is told in any case. `details` adds task and tenant.
        """
        check_is("details", details, bool)
        return follow(
            self._connected,
            self._desk_queues.chosen(queue),
            read_since(since),
            kinds=read_kinds(kinds),
            has_details=details,
        )

    def new_id(self) -> str:
        """A fresh job id."""
        return self._ids.new_id()

    def new_ids(self, number: int) -> list[str]:
        """Fresh job ids."""
        return self._ids.new_ids(number)

    def _renew_ids(self) -> None:
        """Also after a fork, in whose moment another thread may have held the factory's lock."""
        self._ids = IdFactory(lambda: time.time_ns() // 1_000_000, os.urandom)

    # -- workers ----------------------------------------------------------------------------------

    async def worker(
        self,
        queues: Iterable[Queue | str] | None = None,
        options: WorkerOptions | None = None,
    ) -> Worker:
        """A worker for some queues, or for all; `run()` it."""
        from faena.worker.libraries import OldLibraries  # noqa: PLC0415 - see above
        from faena.worker.worker import Worker  # noqa: PLC0415 - see above

        own = [name for name, queue in self.queues.items() if not queue.is_remote]
        names = [queue.name for queue in self.served_here(own if queues is None else queues)]
        if not names:
            raise ConfigError("a worker must have at least one queue, got none", field="queues")
        runtime = await self.runtime()
        dead_letters = self.dead_letter_options.settled(os.environ)
        takeover = RedriveTakeover(Redrives(self._desk_queues), names)
        scheduler = await self.schedules.scheduler(names)
        served = {name: _served(self.queues[name], runtime) for name in names}
        return Worker(
            runtime.patient_engine,
            runtime.new_engine(await self._links.address()),
            served,
            options=options,
            middleware=self.middleware,
            dead_letters=dead_letters,
            background=BackgroundServices(
                services=[
                    runtime.relay.run,
                    Upkeep(self._desk_queues, dead_letters, names).run,
                    takeover.run,
                    scheduler.run,
                    OldLibraries(runtime.engine, self._shards).run,
                ],
                on_outbox=runtime.relay.tell,
                hears={"schedules": scheduler.tell, "redrives": takeover.tell},
            ),
        )

    async def _shards(self) -> list[str]:
        """Of all queues."""
        runtime = await self.runtime()
        seen = [await in_sight(runtime.routers.of(queue)) for queue in self.queues]
        return [shard for one in seen for shard in one.shards]

    async def run_worker(self, queues: Iterable[Queue | str] | None = None, **options: Any) -> None:
        """Run a worker in this event loop until it is cancelled or its work is done.

        Cancelled, it hands its running jobs back at once, no attempt used.
        """
        from faena.worker.options import WorkerOptions  # noqa: PLC0415 - see above

        await self.await_broker()
        worker = await self.worker(queues, build(WorkerOptions, "worker", options))
        await worker.run()

    def __repr__(self) -> str:
        return f"<Faena {self.name}: {len(self.queues)} queues>"


def _directory(given: Any) -> Path:
    if not isinstance(given, str | Path):
        raise ConfigError(
            f"directory must be a text or a Path, got {shown(given)}",
            field="directory",
            value=given,
        )
    return Path(given)


def _checked(given: DeadLetters) -> DeadLetters:
    check_is("dead_letters", given, DeadLetters)
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
    """What a worker needs of a queue; who runs a task says which hooks and which costs it has, and
    which not.
    """
    from faena.worker.options import Served  # noqa: PLC0415 - see above

    for end, task in itertools.product(ENDS, queue.tasks):
        queue.options.hooks.setdefault((end, task), "")
    for task in queue.tasks if queue.options.units else ():
        queue.options.costs.setdefault(task, {})
    runtime.engine.know(queue.name, declaration(queue.options))
    router = runtime.routers.of(queue.name)
    provider = None if router.is_fixed else router.serving
    return Served(options=queue.options, handlers=queue.handlers, shards=provider)
