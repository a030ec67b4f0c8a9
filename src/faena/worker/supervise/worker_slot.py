"""One slot of a supervisor, filled by one worker process after another.

    fill → the process ends → pause → fill …         a death of any kind
    fill another → it serves → the old one stops    a replacement without a gap in service

The lock `_changing` is held to start a process, so that a death and a replacement at the same time
start one process, not two.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from faena.worker.supervise.worker_process import OVER_MEMORY, WorkerProcess, describe

_ENDED_WELL: Final = frozenset({0, OVER_MEMORY, -signal.SIGTERM})
"""Exit codes of a process that was told to stop; SIGTERM kills one that does not serve yet."""

_EXPLAINED: Final = frozenset({1, 2})
"""Exit codes of a command that has printed the error."""

_log = logging.getLogger("faena.supervisor")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSlotOptions:
    """Time limits for a process, in seconds."""

    grace_s: float = 30.0
    """How long its jobs may run after it was told to stop."""

    margin_s: float = 20.0
    """How much longer it may take for its last calls before it is killed."""

    serving_s: float = 60.0
    """How long a replacement may take until it serves."""

    pause_s: float = 0.1
    """The pause before a process that died young is replaced; doubles each time."""

    longest_pause_s: float = 30.0

    young_s: float = 60.0
    """A process that lived longer than this resets the pause."""


class WorkerSlot:
    """Keeps one worker process running."""

    def __init__(
        self,
        start: Callable[[], Awaitable[WorkerProcess]],
        options: WorkerSlotOptions,
        *,
        may_give_up: Callable[[], bool],
    ) -> None:
        """`may_give_up` returns whether to stop trying after a start that printed its error."""
        self._start_process = start
        self._options = options
        self._may_give_up = may_give_up
        self._changing = asyncio.Lock()
        self._closing = asyncio.Event()
        self._pause_ended = asyncio.Event()
        self._pause_s = options.pause_s
        self._process: WorkerProcess | None = None
        self.processes: set[WorkerProcess] = set()
        """Its processes that have not ended."""
        self.restarts = 0
        self.code = 0
        """The exit code of a process that did not end well; else 0."""

    async def keep(self) -> None:
        """Fill the slot until it is closed, or until its first start failed for a stated reason."""
        self._process = await self._fill()
        while self._process is not None:
            process = self._process
            code = await process.ended()
            self.processes.discard(process)
            async with self._changing:
                if self._process is process:
                    self._process = await self._succeed(process, code)

    def close(self) -> None:
        """Start no more processes, and tell the current ones to stop."""
        self._closing.set()
        self._pause_ended.set()
        for process in self.processes:
            process.stop()

    def end_pause(self) -> None:
        """End a pause early."""
        self._pause_ended.set()

    # -- one after another ----------------------------------------------------------------------

    async def _succeed(self, process: WorkerProcess, code: int) -> WorkerProcess | None:
        """Start the process after one that has ended; None when there shall be none."""
        if self._closing.is_set():
            self.code = self.code or (0 if code in _ENDED_WELL else 1)
            _log.info("worker %d %s", process.pid, describe(code))
            return None
        if code in _EXPLAINED and not process.serving.is_set() and self._may_give_up():
            self.code = code
            return None
        pause_s = self._pause_after(process, code)
        level = logging.INFO if code in _ENDED_WELL else logging.WARNING
        _log.log(
            level,
            "worker %d %s after %.1f s; starting another in %.1f s",
            process.pid,
            describe(code),
            process.lived_s,
            pause_s,
        )
        await self._rest(pause_s)
        follower = await self._fill()
        self.restarts += follower is not None
        return follower

    def _pause_after(self, process: WorkerProcess, code: int) -> float:
        """Longer after each early death: an immediate restart would likely die as well."""
        if process.lived_s >= self._options.young_s:
            self._pause_s = self._options.pause_s
        if code == OVER_MEMORY and self._pause_s == self._options.pause_s:
            self._pause_s *= 2
            return 0.0
        pause_s = self._pause_s
        self._pause_s = min(pause_s * 2, self._options.longest_pause_s)
        return pause_s

    async def _rest(self, pause_s: float) -> None:
        """Wait, unless `end_pause` is called, also if it was called just before the pause."""
        if not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._pause_ended.wait()
            self._pause_ended.clear()

    async def _fill(self) -> WorkerProcess | None:
        """Start a process; tried until the system can start one, or the slot is closed."""
        while not self._closing.is_set():
            try:
                process = await self._start_process()
            except OSError as error:
                _log.error("no worker could be started: %s", error)
                await self._rest(self._options.longest_pause_s)
                continue
            self.processes.add(process)
            if self._closing.is_set():
                process.stop()
            return process
        return None

    # -- replacement ------------------------------------------------------------------------------

    async def replace(self) -> bool:
        """Replace the old process by a new one; False if the old one is kept."""
        async with self._changing:
            newcomer = await self._fill()
            if newcomer is None or not await newcomer.served_within(self._options.serving_s):
                await self._dismiss(newcomer)
                return False
            old, self._process = self._process, newcomer
        if old is not None:
            old.stop()
            if not await old.ended_within(self._options.grace_s + self._options.margin_s):
                _log.error("worker %d does not end: killing it", old.pid)
                old.kill()
                await old.ended()
        return True

    async def _dismiss(self, newcomer: WorkerProcess | None) -> None:
        if newcomer is not None:
            newcomer.kill()
            code = await newcomer.ended()
            self.processes.discard(newcomer)
            _log.error("new worker %d was never ready: it %s", newcomer.pid, describe(code))
