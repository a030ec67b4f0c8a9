"""A worker process: starts its parts, watches that they make progress, stops them in order.

    start   connect → declare queues → heartbeat → fetchers → waker → watchdog
    stop    no more claims → handlers end, or are handed back at the deadline → last settlements →
            heartbeat → connections

It runs nothing itself: `Fetcher` moves jobs, `Executor` runs them, `Heartbeat` keeps their leases.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from faena.client import CallIds
from faena.engine import Engine
from faena.errors import ConfigError, FaenaError, InternalError, StoreUnavailable
from faena.handler import Handler
from faena.middleware import Middleware
from faena.naming import check_label
from faena.number import check_real, check_whole
from faena.options import QueueOptions
from faena.worker.attempt import Stop
from faena.worker.executor import Executor, Place
from faena.worker.fetcher import Fetcher, Shared
from faena.worker.heartbeat import Heartbeat, place_of
from faena.worker.leases import Leases
from faena.worker.lookout import Lookout
from faena.worker.notes import QueueNotes
from faena.worker.pace import Pace
from faena.worker.processes import Processes
from faena.worker.slots import Slots
from faena.worker.threads import Threads
from faena.worker.waker import Waker

_SWEEP_S = 5.0
_SWEEP_PER_QUEUE_S = 1.0
_STALLED_AFTER_S = 15.0
_WATCH_EVERY_S = 1.0
_LAST_WORDS_S = 10.0
_HANDLERS_END_S = 1.0
_LONGEST_S = 86_400.0

_log = logging.getLogger("faena.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A queue and what a worker needs to serve it."""

    options: QueueOptions
    handlers: Mapping[str, Handler]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How one worker process runs."""

    name: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    """What leases, logs and the dead-letter desk call it."""

    concurrency: int | None = None
    """Jobs of all queues together at a time; None adds up the queues' own."""

    grace_s: float = 30.0
    """How long running jobs may go on after a stop was asked for."""

    memory_limit: int | None = None
    """Bytes of resident memory after which the worker finishes and leaves to be restarted."""

    rate_max: int | None = None
    """Claims this process may make in `rate_s` seconds; None for no limit of its own."""

    rate_s: float = 60.0

    stuck_s: float = 15.0
    """How long the event loop may stand still beyond the longest timeout of the jobs it runs."""

    leaves_when_stuck: bool = False
    """End the process, for a supervisor to replace it, when its loop is stuck; else only say so."""

    until_empty: bool = False
    """Stop when no queue has anything ready, delayed or running."""

    def __post_init__(self) -> None:
        check_label("worker name", self.name)
        bounds = {"concurrency": 10_000, "memory_limit": 10**15, "rate_max": 10**9}
        for what, most in bounds.items():
            value = getattr(self, what)
            if value is not None:
                check_whole(what, value, least=1, most=most)
        for what in ("grace_s", "rate_s", "stuck_s"):
            check_real(what, getattr(self, what), least=0, most=_LONGEST_S)


class Worker:
    """One process that serves some queues."""

    def __init__(
        self,
        engine: Engine,
        connect: Callable[[], Engine],
        queues: Mapping[str, Served],
        *,
        options: WorkerOptions | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        if not queues:
            raise ConfigError("a worker must have at least one queue, got none", field="queues")
        self.options = options or WorkerOptions()
        self._engine = engine
        self._connect = connect
        self._queues = queues
        self._middleware = middleware
        self._slots = Slots(self.options.concurrency)
        self._leases = Leases()
        self._calls = CallIds()
        self._heartbeat: Heartbeat | None = None
        self._fetchers: dict[str, Fetcher] = {}
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._rebuilt_at = time.monotonic()
        self._thread = 0
        self.serving = asyncio.Event()
        """Set once every part is at work."""
        self.is_over_memory = False

    # -- for others -----------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask for a graceful stop; a second call hands running jobs back at once."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    @property
    def running(self) -> int:
        """Jobs under way."""
        return sum(len(fetcher.executor.running) for fetcher in self._fetchers.values())

    @property
    def answered_s(self) -> float:
        """Seconds since any queue's exchange was last answered; a liveness probe's measure."""
        newest = max((one.answered_at for one in self._fetchers.values()), default=0.0)
        return time.monotonic() - newest

    # -- lifecycle ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve until `stop`, then leave nothing behind."""
        loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        for queue in self._queues:
            await self._engine.declare(queue)
        threads, processes = Threads(self._threads()), Processes(loop)
        self._build(loop, {"thread": threads, "process": processes})
        waker = self._waker()
        for fetcher in self._fetchers.values():
            fetcher.on_idle = waker.idle_changed
        heartbeat = self._heartbeat = Heartbeat(
            self._connect,
            self._leases,
            every_s=self._lease_us() / 3e6,
            on_stop=self._stop_job,
            loop=loop,
            patience_s=self._patience_s,
            on_stuck=self._stuck,
        )
        heartbeat.start()
        try:
            await self._listen_and_serve(waker)
        finally:
            await asyncio.to_thread(heartbeat.stop)
            threads.close()
            processes.close()

    async def _listen_and_serve(self, waker: Waker | Lookout) -> None:
        listening = await self._engine.listen(
            "stop", lambda queue, job: self._stop_job(queue, job, Stop.CANCEL)
        )
        try:
            await self._serve(waker)
        finally:
            await listening.close()

    def _lease_us(self) -> int:
        """The shortest lease among the queues sets the pace of the heartbeat."""
        return min(served.options.lease_us for served in self._queues.values())

    def _threads(self) -> int:
        total = sum(served.options.concurrency for served in self._queues.values())
        return min(total, self.options.concurrency or total)

    def _build(self, loop: asyncio.AbstractEventLoop, places: Mapping[str, Place]) -> None:
        shared = Shared(
            engine=self._engine,
            worker=self.options.name,
            slots=self._slots,
            leases=self._leases,
            calls=self._calls,
            pace=Pace(self.options.rate_max, self.options.rate_s),
            sweep_s=max(_SWEEP_S, len(self._queues) * _SWEEP_PER_QUEUE_S),
            least_lease_us=self._lease_us(),
        )
        for queue, served in self._queues.items():
            notes = QueueNotes(self._engine, queue, self._leases, loop)
            fetcher = Fetcher(shared, queue, served.options, notes)
            fetcher.executor = Executor(
                queue,
                served.handlers,
                places=places,
                notes=notes,
                middleware=self._middleware,
                worker=self.options.name,
                on_done=fetcher.done,
                on_free=fetcher.slot_freed,
            )
            options = served.options
            self._slots.add(queue, options.concurrency, options.priority, fetcher.room_made)
            self._fetchers[queue] = fetcher

    def _waker(self) -> Waker | Lookout:
        """A single queue has its next claim lie ready on the server; several share one wait."""
        if len(self._fetchers) == 1:
            (fetcher,) = self._fetchers.values()
            return Lookout(self._engine, fetcher, self.options.name, self._calls)
        return Waker(self._engine, self._fetchers, self._slots)

    async def _serve(self, waker: Waker | Lookout) -> None:
        fetching = [asyncio.create_task(fetcher.run()) for fetcher in self._fetchers.values()]
        waking = asyncio.create_task(waker.run())
        watching = asyncio.create_task(self._watch())
        stopping = asyncio.create_task(self._stop.wait())
        parts = [*fetching, waking, watching]
        self.serving.set()
        try:
            await asyncio.wait([*parts, stopping], return_when=asyncio.FIRST_COMPLETED)
            for part in parts:
                if part.done() and not part.cancelled() and (error := part.exception()):
                    raise _first(error)
            await self._wind_down(fetching, waking)
        except asyncio.CancelledError:
            self._hurry.set()
            await self._wind_down(fetching, waking)
            raise
        finally:
            for task in (*parts, stopping):
                task.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            await self._end_handlers()

    async def _end_handlers(self) -> None:
        """No handler goes on in a worker that has ended, unless it ignores every word."""
        for fetcher in self._fetchers.values():
            for job_id in list(fetcher.executor.running):
                fetcher.stop_job(job_id, Stop.SHUTDOWN)
        tasks = [task for each in self._fetchers.values() for task in each.executor.tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=_HANDLERS_END_S)

    async def _wind_down(
        self, fetching: Sequence[asyncio.Task[None]], waking: asyncio.Task[None]
    ) -> None:
        """No attempt is spent by a stop: what does not end in time goes back to its place."""
        for fetcher in self._fetchers.values():
            fetcher.is_closing = True
        waking.cancel()
        await asyncio.wait({waking}, timeout=_LAST_WORDS_S)
        for fetcher in self._fetchers.values():
            fetcher.poke()
        ending = asyncio.gather(*fetching)
        hurrying = asyncio.create_task(self._hurry.wait())
        await asyncio.wait(
            {ending, hurrying},
            timeout=self.options.grace_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        hurrying.cancel()
        for fetcher in self._fetchers.values():
            for job_id in list(fetcher.executor.running):
                fetcher.stop_job(job_id, Stop.SHUTDOWN)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ending, _LAST_WORDS_S)

    def _stop_job(self, queue: str, job_id: str, why: Stop, lease: str | None = None) -> None:
        fetcher = self._fetchers.get(queue)
        if fetcher is not None:
            fetcher.stop_job(job_id, why, lease)

    # -- watching -------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """See that the worker lives: progress, not connectivity, and memory."""
        while not self._stop.is_set():
            await asyncio.sleep(_WATCH_EVERY_S)
            if self._heartbeat is not None and not self._heartbeat.is_alive:
                raise InternalError("the heartbeat has ended: leases are no longer renewed")
            await self._watch_progress()
            self._watch_memory()
            if self.options.until_empty:
                with contextlib.suppress(StoreUnavailable):  # an outage is no reason to leave
                    await self._stop_if_empty()

    async def _watch_progress(self) -> None:
        """Sweeps make every queue answer every few seconds; when none does, start over."""
        now = time.monotonic()
        oldest = min(fetcher.answered_at for fetcher in self._fetchers.values())
        longest = _STALLED_AFTER_S + len(self._fetchers) * _SWEEP_PER_QUEUE_S
        if now - oldest > longest and now - self._rebuilt_at > longest:
            _log.error("no answer for %.0f s: rebuilding every connection", now - oldest)
            self._rebuilt_at = now
            with contextlib.suppress(FaenaError):
                await self._engine.wire.rebuild()
            for fetcher in self._fetchers.values():
                fetcher.poke()

    def _watch_memory(self) -> None:
        limit = self.options.memory_limit
        if limit is not None and resident_bytes() > limit and not self.is_over_memory:
            _log.warning("memory is over its limit of %d bytes: finishing to be restarted", limit)
            self.is_over_memory = True
            self.stop()

    def _patience_s(self) -> float:
        """How long the loop may be silent: a handler that blocks it still has its own time."""
        running = [
            one for each in self._fetchers.values() for one in [*each.executor.running.values()]
        ]
        return max((one.timeout_s for one in running), default=0.0) + self.options.stuck_s

    def _stuck(self, lag_s: float) -> None:
        """Called in the heartbeat's thread: nothing on the loop can act any more."""
        _log.critical("the event loop stands still for %.0f s in %s", lag_s, place_of(self._thread))
        if self.options.leaves_when_stuck:
            os._exit(os.EX_SOFTWARE)

    async def _stop_if_empty(self) -> None:
        for queue in self._fetchers:
            counts = (await self._engine.overview(queue))[1]
            waiting = dict(zip(counts[::2], counts[1::2], strict=True))
            if any(waiting[state] for state in (b"ready", b"delayed", b"running", b"blocked")):
                return
        self.stop()


def _first(error: BaseException) -> BaseException:
    """The error itself out of a group's: channels of one queue fail for one reason."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def resident_bytes() -> int:
    """This process's resident memory."""
    try:
        with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - read every second, no Path
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource  # noqa: PLC0415 - only where there is no /proc

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
