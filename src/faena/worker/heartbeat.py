"""Renews leases from a thread of its own, so that a blocked event loop does not lose its jobs.

The thread has its own event loop and connection. It passes lost leases and requested cancellations
to the worker's loop. It stops renewing the lease of a handler that is far past its timeout, so that
another worker gets the job even if this worker's loop never runs again. It also detects that the
worker's loop is stuck, because nothing on that loop could.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence

from faena.engine import Engine
from faena.errors import FaenaError, ScriptError
from faena.values.shards import queue_of
from faena.worker.blocked_loop import BlockedLoop
from faena.worker.execute.attempt_state import Stop
from faena.worker.leases import Leases

_MOST = 200
"""Leases in one call: each one blocks the server for about 5 us."""
_STOP_WITHIN_S = 5.0

_log = logging.getLogger("faena.worker")

OnStop = Callable[[str, str, Stop, str], None]
"""Called with the shard, the job, why it must stop, and its lease."""
OnStuck = Callable[[float], None]


class Heartbeat:
    """The thread that renews a worker's leases."""

    def __init__(
        self,
        connect: Callable[[], Engine],
        leases: Leases,
        *,
        every_s: float,
        on_stop: OnStop,
        loop: asyncio.AbstractEventLoop,
        patience_s: Callable[[], float],
        on_stuck: OnStuck,
        blocked_loop: BlockedLoop | None = None,
    ) -> None:
        """`on_stuck` is called in this thread when the loop is silent beyond `patience_s()`."""
        self._connect = connect
        self._leases = leases
        self._every_s = every_s
        self._on_stop = on_stop
        self._worker_loop = loop
        self._patience_s = patience_s
        self._on_stuck = on_stuck
        self._blocked_loop = blocked_loop
        self._stopping = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._main, name="faena-heartbeat", daemon=True)
        self._asked_at: float | None = None
        self._is_suspect = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; leases still held will expire."""
        self._stopping.set()
        if self._loop is not None and self._wake is not None:
            self._loop.call_soon_threadsafe(self._wake.set)
        self._thread.join(_STOP_WITHIN_S)

    @property
    def is_alive(self) -> bool:
        """Whether the thread still runs and renews leases."""
        return self._thread.is_alive()

    @property
    def lag_s(self) -> float:
        """How long the worker's event loop has not answered; 0 when no answer is pending."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else time.monotonic() - asked_at

    def _main(self) -> None:
        asyncio.run(self._beat())

    async def _beat(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        engine = self._connect()
        watching = asyncio.create_task(self._blocked_loop.watch()) if self._blocked_loop else None
        try:
            while not self._stopping.is_set():
                await self._beat_once(engine)
                try:
                    async with asyncio.timeout(self._every_s):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            if watching is not None:
                watching.cancel()
            await engine.wire.close()

    async def _beat_once(self, engine: Engine) -> None:
        """Renew once; an error must not prevent the next beat."""
        try:
            self._watch_loop()
            await self._renew_all(engine)
        except Exception:  # noqa: BLE001 - a border: leases depend on the next beat
            _log.exception("a heartbeat failed; trying again at the next one")

    def _watch_loop(self) -> None:
        """Two beats in a row must find the loop silent: a process that was frozen is not stuck."""
        lag_s = self.lag_s
        is_late = lag_s > self._patience_s()
        if is_late and self._is_suspect:
            self._on_stuck(lag_s)
        self._is_suspect = is_late
        if self._asked_at is None and not self._worker_loop.is_closed():
            self._asked_at = time.monotonic()
            self._worker_loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._asked_at = None

    async def _renew_all(self, engine: Engine) -> None:
        for shard, pairs in self._leases.to_renew().items():
            for start in range(0, len(pairs), _MOST):
                await self._renew(engine, shard, pairs[start : start + _MOST])

    async def _renew(self, engine: Engine, shard: str, pairs: Sequence[tuple[str, str]]) -> None:
        try:
            lost, stopping = await engine.renew(shard, pairs, int(self._every_s * 3e6))
        except FaenaError as error:
            _log.warning("queue %s: leases could not be renewed: %s", queue_of(shard), error)
            if isinstance(error, ScriptError) and len(pairs) > 1:
                for pair in pairs:  # one failure must not cost the other jobs their leases
                    await self._renew(engine, shard, [pair])
            return
        leases = dict(pairs)
        for why, ids in ((Stop.LOST, lost), (Stop.CANCEL, stopping)):
            for job in ids:
                self._worker_loop.call_soon_threadsafe(self._on_stop, shard, job, why, leases[job])


def location_of(thread: int) -> str:
    """Where a thread is at this moment: function, file and line, never a value."""
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - no other way
    frame = frames.get(thread)
    if frame is None:
        return "an ended thread"
    code = frame.f_code
    return f"{code.co_qualname} ({code.co_filename}:{frame.f_lineno})"
