"""The parent of worker processes. It runs no user code, so no job can break it.

    start   one worker → it serves → the other workers
    death   another worker is started, after a growing pause if workers die young
    SIGHUP  each worker in turn is replaced by a new one
    stop    every worker is told to stop; those that do not end in time are killed

The first worker starts alone, so that a mistake in the program is reported once and ends the
supervisor with the worker's exit code. After that, only a signal ends the supervisor. If it dies,
the lifelines of its workers close, and the workers stop.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from faena.worker.serve.address import ServeAddress
from faena.worker.serve.endpoints import Endpoints
from faena.worker.serve.server import open_server
from faena.worker.serve.team import State, Team
from faena.worker.serve.totals import Totals
from faena.worker.supervise.signals import Handlers, handling
from faena.worker.supervise.worker_process import WorkerProcess
from faena.worker.supervise.worker_slot import WorkerSlot, WorkerSlotOptions

_log = logging.getLogger("faena.supervisor")


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorOptions:
    """How many worker processes to run, and when to replace them."""

    instances: int | None = None
    """How many processes; None: the number that the first one reports for its pool."""

    silent_s: float = 60.0
    """A serving worker that is silent for this long counts as frozen, and is killed."""

    reloads_on_hangup: bool = True
    """Whether SIGHUP replaces the workers; otherwise it stops them, as when a terminal closes."""

    slot: WorkerSlotOptions = field(default_factory=WorkerSlotOptions)

    serve: ServeAddress | None = None
    """Where to answer for the workers over HTTP; None: nowhere."""


class Supervisor:
    """Keeps worker processes running, and ends after the last one."""

    def __init__(self, argv: Sequence[str], options: SupervisorOptions | None = None) -> None:
        """`argv` starts one worker, which must hold its `Lifeline`."""
        self._argv = tuple(argv)
        self._options = options or SupervisorOptions()
        self._slots: list[WorkerSlot] = []
        self._keeping: set[asyncio.Task[None]] = set()
        self._reloading: asyncio.Task[None] | None = None
        self._must_reload = False
        self.is_stopping = False
        """Whether it was told to stop; if it ends without that, it could not start."""
        self.has_served = False
        """Whether any of its workers has served."""
        self._has_killed = False
        self._totals = Totals() if self._options.serve is not None else None

    @property
    def restarts(self) -> int:
        """The number of processes started to replace one that died."""
        return sum(slot.restarts for slot in self._slots)

    @property
    def instances(self) -> int:
        """The number of processes that it keeps running."""
        return len(self._slots)

    async def run(self) -> int:
        """Serve until stopped.

        Returns 0 if every worker ended well, the exit code of the first one if it could not start,
        else 1. Raises if it cannot listen on a port that was chosen.
        """
        async with self._answering():
            return await self._run()

    @asynccontextmanager
    async def _answering(self) -> AsyncGenerator[None]:
        address, server = self._options.serve, None
        if address is not None and self._totals is not None:
            server = await open_server(address, Endpoints(self._team, self._totals))
        try:
            yield
        finally:
            if server is not None:
                await server.close()

    def _team(self) -> Team:
        """The workers, as they are told about over HTTP."""
        state: State = "serving" if self.has_served else "starting"
        serving = [one.member for one in self._processes() if one.serving.is_set() and one.member]
        return Team("stopping" if self.is_stopping else state, serving, len(self._slots))

    async def _run(self) -> int:
        with handling(self._handlers()):
            watching = asyncio.create_task(self._watch())
            try:
                self._open()
                while self._keeping:
                    await self._one_kept()
                if self._reloading is not None:
                    await self._reloading
            finally:
                watching.cancel()
        codes = [slot.code for slot in self._slots if slot.code]
        return codes[0] if codes else int(self._has_killed)

    async def _one_kept(self) -> None:
        """Wait for a slot to end; called again each time, because slots are added meanwhile."""
        done, _ = await asyncio.wait(self._keeping, return_when=asyncio.FIRST_COMPLETED)
        self._keeping -= done
        for task in done:
            task.result()

    # -- called by signals ------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop every worker gracefully; on a second call, immediately."""
        loop, limits = asyncio.get_running_loop(), self._options.slot
        if self.is_stopping:
            _log.warning("stopping now: running jobs are released")
            for process in self._processes():
                process.hurry()
            loop.call_later(limits.margin_s, self._kill)
            return
        self.is_stopping = True
        if any(process.serving.is_set() for process in self._processes()):
            _log.info("stopping: running jobs have %.0f s to end", limits.grace_s)
        else:
            _log.info("stopping: no worker is ready yet")
        for slot in self._slots:
            slot.close()
        loop.call_later(limits.grace_s + limits.margin_s, self._kill)

    def reload(self) -> None:
        """Replace the workers one after another; a call meanwhile replaces them once more."""
        self._must_reload = True
        for slot in self._slots:
            slot.end_pause()
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._replace_all())

    async def _replace_all(self) -> None:
        while self._must_reload and not self.is_stopping:
            self._must_reload = False
            for slot in list(self._slots):
                if self.is_stopping or not await slot.replace():
                    break
            else:
                _log.info("every worker has been replaced")
                continue
            if not self.is_stopping:
                _log.error("could not replace all workers: the other old ones keep running")

    def _handlers(self) -> Handlers:
        hangup = self.reload if self._options.reloads_on_hangup else self.stop
        return {signal.SIGTERM: self.stop, signal.SIGINT: self.stop, signal.SIGHUP: hangup}

    # -- its workers ------------------------------------------------------------------------------

    def _open(self) -> None:
        slot = WorkerSlot(
            self._start_process, self._options.slot, may_give_up=lambda: not self.has_served
        )
        self._slots.append(slot)
        self._keeping.add(asyncio.create_task(slot.keep()))

    async def _start_process(self) -> WorkerProcess:
        process = await WorkerProcess.start(
            self._argv, on_serving=self._on_serving, totals=self._totals
        )
        _log.debug("worker %d starts", process.pid)
        return process

    def _on_serving(self, wanted: int) -> None:
        if self.has_served or self.is_stopping:
            return
        self.has_served = True
        for _ in range((self._options.instances or wanted) - 1):
            self._open()

    async def _watch(self) -> None:
        """Kill a worker only if two checks find it silent: this process may have been frozen."""
        suspects: set[WorkerProcess] = set()
        while True:
            await asyncio.sleep(self._options.silent_s / 6)
            silent = {one for one in self._processes() if one.silent_s > self._options.silent_s}
            for process in silent & suspects:
                _log.error("worker %d is frozen: killing it", process.pid)
                process.kill()
            suspects = silent

    def _processes(self) -> list[WorkerProcess]:
        return [process for slot in self._slots for process in slot.processes]

    def _kill(self) -> None:
        for process in self._processes():
            _log.error("worker %d does not end: killing it", process.pid)
            self._has_killed = True
            process.kill()
