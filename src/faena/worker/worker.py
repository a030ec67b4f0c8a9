"""A worker process: starts its parts, watches that they make progress, stops them in order.

    start   connect → heartbeat → find and declare shards → fetchers → wait strategy →
            shard watcher → health checks → background services
    stop    graceful stop → heartbeat → connections

It runs no jobs itself: `Fetcher` claims and settles them, `Executor` runs them, `Heartbeat` renews
their leases. `ShardWatcher` notices when shards come and go, and `Fetchers` opens and closes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from faena.engine import Engine
from faena.errors import ConfigError
from faena.limits import Limit
from faena.middleware import Middleware
from faena.options import DeadLetters
from faena.producing.batcher import CallIds
from faena.resilience.fallback import tell_of_job
from faena.resilience.push import UpstreamPush
from faena.sharding.routing_table import Shard
from faena.telemetry.measured import Measurements
from faena.values.shards import queue_of
from faena.worker.background_services import BackgroundServices
from faena.worker.blocked_loop import BlockedLoop, Blocker
from faena.worker.execute.attempt_state import Stop
from faena.worker.execute.batch import Runner
from faena.worker.execute.executor import Executor
from faena.worker.execute.fallback_run import Aid
from faena.worker.execute.gatherer import Gatherer
from faena.worker.execute.notes import QueueNotes
from faena.worker.execute.processes import Processes
from faena.worker.execute.threads import Threads
from faena.worker.execute.traced import Traced
from faena.worker.fetch.eager_claim import EagerClaim
from faena.worker.fetch.fetcher import Fetcher, Shared
from faena.worker.fetch.fetchers import Fetchers
from faena.worker.fetch.hold_broadcast import HoldBroadcast
from faena.worker.fetch.pace import Pace
from faena.worker.fetch.shard_watcher import ShardWatcher
from faena.worker.fetch.slots import Slots
from faena.worker.fetch.wait_strategy import WaitStrategy
from faena.worker.fetch.wake_listener import WakeListener
from faena.worker.graceful_stop import GracefulStop
from faena.worker.health_checks import HealthChecks
from faena.worker.heartbeat import Heartbeat, location_of
from faena.worker.leases import Leases
from faena.worker.options import Served, WorkerOptions
from faena.worker.presence import sign_out
from faena.worker.serve.vitals import Vitals
from faena.worker.upstreams import WorkerUpstreams
from faena.worker.vitals import check_broker, stalls

if TYPE_CHECKING:
    from faena.telemetry.tracing.tracing import Tracing

_SWEEP_S = 5.0
_SWEEP_PER_QUEUE_S = 1.0
_SWEEP_PER_SHARD_S = 1.25
_NOTHING = BackgroundServices()

_log = logging.getLogger("faena.worker")


class Worker:
    """One process that serves some queues."""

    def __init__(  # noqa: PLR0913 - its parts, given by name
        self,
        engine: Engine,
        connect: Callable[[], Engine],
        queues: Mapping[str, Served],
        *,
        options: WorkerOptions | None = None,
        middleware: Sequence[Middleware] = (),
        dead_letters: DeadLetters | None = None,
        background: BackgroundServices = _NOTHING,
        push: UpstreamPush | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        if not queues:
            raise ConfigError("a worker must have at least one queue, got none", field="queues")
        self.options = options or WorkerOptions()
        self._engine, self._connect = engine, connect
        self._queues, self._background = queues, background
        self._middleware, self._dead_letters = middleware, dead_letters
        self._slots, self._leases = Slots(self.options.concurrency), Leases()
        self.measured: Measurements = {}
        """What it has measured of its jobs, by queue and task; it lags by a second."""
        self._calls, self._threads = CallIds(), Threads(1)
        self._runners: dict[str, Runner] = {"thread": self._threads}
        self._traced = Traced(tracing) if tracing else None
        self._gatherer = Gatherer(self._runners, traced=self._traced)
        self._thread = 0
        self._served_at: set[str] = set()
        self.serving = asyncio.Event()
        """Set when all parts have started."""
        self._fetchers = Fetchers(self._move_in, self._move_out, self._shards_changed)
        self._by_shard = self._fetchers.fetchers
        self._asks = {queue: served.shards for queue, served in queues.items()}
        self._shard_watcher = self._new_shard_watcher()
        self._hold_broadcast = HoldBroadcast(engine, self._asks)
        self._upstreams = WorkerUpstreams(engine, push, queues, lambda: self._by_shard)
        self._wait_strategy = WaitStrategy(self._by_shard, self._new_listener, self._new_claim)
        self._graceful_stop = self._new_graceful_stop()
        self._health_checks = self._new_health_checks()
        self._shared = self._new_shared()

    # -- public ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """Request a graceful stop; a second call releases running jobs immediately."""
        self._graceful_stop.request()

    @property
    def running(self) -> int:
        """The number of running jobs."""
        return sum(len(fetcher.executor.running) for fetcher in self._by_shard.values())

    @property
    def answered_s(self) -> float:
        """Seconds since the broker last answered, for liveness probes."""
        answered = (one.answered_at for one in self._by_shard.values())
        return time.monotonic() - max(answered, default=self._shard_watcher.answered_at)

    @property
    def is_stopping(self) -> bool:
        """Whether a stop was requested."""
        return self._graceful_stop.requested.is_set()

    async def vitals(self) -> Vitals:
        """How it is, for the server that answers probes; it takes about two seconds at most."""
        latency_ms, problem = await check_broker(self._engine)
        progress = self._health_checks.progress
        is_asked = problem is None and not self.is_stopping
        return Vitals(
            name=self.options.name,
            is_stopping=self.is_stopping,
            running=self.running,
            slots=self._slots.most,
            queues=tuple(self._queues),
            latency_ms=latency_ms,
            broker=problem,
            stalled=await stalls(self._engine, progress, self._slots.free) if is_asked else (),
        )

    @property
    def is_over_memory(self) -> bool:
        """Whether the memory limit is the reason for its stop."""
        return self._health_checks.is_over_memory

    # -- lifecycle ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until `stop`, then settle or release all jobs and close everything."""
        with self._traced.apart() if self._traced else contextlib.nullcontext():
            await self._run()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        processes = self._runners["process"] = Processes(loop)
        heartbeat = Heartbeat(
            self._connect,
            self._leases,
            every_s=self._lease_us() / 3e6,
            on_stop=self._stop_job,
            loop=loop,
            patience_s=self._patience_s,
            on_stuck=self._stuck,
            blocked_loop=BlockedLoop(loop, self._blocker),
        )
        self._upstreams.start()
        heartbeat.start()
        try:
            await self._listen_and_serve(heartbeat)
        finally:
            await asyncio.to_thread(heartbeat.stop)
            self._threads.close()
            processes.close()

    async def _listen_and_serve(self, heartbeat: Heartbeat) -> None:
        """Subscribe first, so that no change after the first read is missed."""
        async with contextlib.AsyncExitStack() as listening:
            hints = await self._engine.listen(
                stop=lambda shard, job: self._stop_job(shard, job, Stop.CANCEL),
                shards=self._shard_watcher.notify,
                **self._background.hears,
            )
            listening.push_async_callback(hints.close)
            await self._shard_watcher.look_everywhere()
            await self._serve(heartbeat)

    async def _serve(self, heartbeat: Heartbeat) -> None:
        self._fetchers.start()
        fetching = asyncio.create_task(self._fetchers.run())
        waking = asyncio.create_task(self._wait_strategy.run())
        checking = [asyncio.create_task(self._health_checks.run(heartbeat))]
        checking.append(asyncio.create_task(self._upstreams.run()))
        if self._shard_watcher.is_needed:
            checking.append(asyncio.create_task(self._shard_watcher.run()))
        stopping = asyncio.create_task(self._graceful_stop.requested.wait())
        serving = [asyncio.create_task(service()) for service in self._background.services]
        parts = [fetching, waking, *checking, *serving]
        self.serving.set()
        try:
            await asyncio.wait([*parts, stopping], return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                if part.done() and not part.cancelled() and (error := part.exception()):
                    raise _first(error)
            await self._graceful_stop.wind_down(waking, checking)
        except asyncio.CancelledError:
            self._graceful_stop.hurry()
            await self._graceful_stop.wind_down(waking, checking)
            raise
        finally:
            stopping.cancel()
            await self._graceful_stop.end(parts)
            await self._upstreams.finish()
            await sign_out(self._engine, self.options.name, self._served_at)

    def _stop_job(self, shard: str, job_id: str, why: Stop, lease: str | None = None) -> None:
        fetcher = self._by_shard.get(shard)
        if fetcher is not None:
            fetcher.stop_job(job_id, why, lease)

    # -- its parts ------------------------------------------------------------------------------

    def _new_shard_watcher(self) -> ShardWatcher:
        return ShardWatcher(
            self._engine,
            self._asks,
            serves=self.options.serves,
            on_shards=self._fetchers.settle,
        )

    def _new_graceful_stop(self) -> GracefulStop:
        return GracefulStop(
            self._fetchers, self._gatherer, self._hold_broadcast, grace_s=self.options.grace_s
        )

    def _new_health_checks(self) -> HealthChecks:
        return HealthChecks(
            self._engine,
            self._fetchers,
            self._shard_watcher,
            sweep_s=self._sweep_s,
            on_over=self._graceful_stop.requested.set,
            memory_limit=self.options.memory_limit,
            until_empty=self.options.until_empty,
        )

    def _new_shared(self) -> Shared:
        return Shared(
            engine=self._engine,
            worker=self.options.name,
            measured=self.measured,
            slots=self._slots,
            leases=self._leases,
            calls=self._calls,
            pace=self._new_pace(),
            sweep_s=self._sweep_s,
            least_lease_us=self._lease_us(),
            on_idle=self._wait_strategy.idle_changed,
            on_outbox=self._background.on_outbox,
        )

    def _new_pace(self) -> Pace:
        rate = self.options.rate
        return Pace(rate.max, rate.per_us / 1e6) if isinstance(rate, Limit) else Pace()

    def _new_listener(self) -> WakeListener:
        return WakeListener(self._engine, self._by_shard, self._slots)

    def _new_claim(self, fetcher: Fetcher) -> EagerClaim:
        return EagerClaim(self._engine, fetcher, self.options.name, self._calls)

    def _lease_us(self) -> int:
        """The shortest lease among the queues sets the pace of the heartbeat."""
        return min(served.options.lease_us for served in self._queues.values())

    def _sweep_s(self) -> float:
        """Longer with more shards: an idle worker may send only two commands a second."""
        each_s = _SWEEP_PER_SHARD_S if self._shard_watcher.is_needed else _SWEEP_PER_QUEUE_S
        return max(_SWEEP_S, len(self._by_shard) * each_s)

    def _move_in(self, shard: Shard) -> Fetcher:
        self._served_at.add(shard.name)
        options = (served := self._queues[queue_of(shard.name)]).options
        notes = QueueNotes(self._engine, shard.name, self._leases, options.units)
        fetcher = Fetcher(
            self._shared,
            shard.name,
            options,
            notes,
            lambda fetcher: self._new_executor(shard, served, notes, fetcher),
        )
        self._slots.add(
            shard.name, options.concurrency, options.priority, fetcher.room_made, pool=shard.pool
        )
        if served.shards is not None:  # until its first look: others take only their part
            self._slots.want(shard.name, has_ready_jobs=True)
        self._threads.allow(self._slots.most)
        return fetcher

    def _new_executor(
        self, shard: Shard, served: Served, notes: QueueNotes, fetcher: Fetcher
    ) -> Executor:
        slots = served.options.concurrency
        most = min(slots, self.options.concurrency or slots)
        return Executor(
            queue_of(shard.name),
            served.handlers,
            runners=self._runners,
            batches=lambda executor: self._gatherer.runner(
                executor, shard.pool, most, fetcher.keep
            ),
            notes=notes,
            middleware=self._middleware,
            worker=self.options.name,
            on_done=self._hold_broadcast.listening(shard.name, fetcher.done),
            on_free=fetcher.slot_freed,
            still_holds=fetcher.freshness.still_holds,
            dead_letters=self._dead_letters,
            admission=self._upstreams.admission(served, fetcher.claim_size.admitted),
            aid=Aid(fetcher.keep, partial(tell_of_job, self._engine, shard.name)),
            traced=self._traced,
        )

    def _move_out(self, fetcher: Fetcher) -> None:
        self._slots.remove(fetcher.shard)
        self._leases.forget(fetcher.shard)

    def _shards_changed(self) -> None:
        self._wait_strategy.shards_changed()

    # -- called in the heartbeat's thread -------------------------------------------------------

    def _patience_s(self) -> float:
        """How long the loop may be silent: a handler that blocks it may use its whole timeout."""
        running = self._fetchers.attempts()
        return max((one.timeout_s for one in running), default=0.0) + self.options.stuck_s

    def _blocker(self, task: object) -> Blocker | None:
        """The handler that blocks the loop; None when no handler has started."""
        running = self._fetchers.attempts()
        names = (one.handler.name for one in running if one.task is task)
        name = next(names, None) or self._gatherer.name_of(task)
        return Blocker(name, location_of(self._thread)) if running else None

    def _stuck(self, lag_s: float) -> None:
        """Act here, because nothing on the loop can."""
        where = location_of(self._thread)
        _log.critical("the event loop has been blocked for %.0f s in %s", lag_s, where)
        if self.options.leaves_when_stuck:
            os._exit(os.EX_SOFTWARE)


def _first(error: BaseException) -> BaseException:
    """The first error of an exception group: channels of one queue fail for the same reason."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
