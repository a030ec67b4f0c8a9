"""The door for code without an event loop: a thread with a loop of its own, and nothing else.

    receipt = app.sync.enqueue(welcome, {"to": "ana"}, delay="5m")
    result = app.sync.result(receipt.handle, timeout="30s")

The thread starts with the first call. Any number of threads may call at once. A process that forks
(gunicorn, uwsgi) may use the portal before and after: the child starts a thread and connections of
its own. At the end of the program everything is closed by itself.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from datetime import timedelta
from typing import Any, TypeVar, Unpack, overload
from weakref import WeakMethod

from faena.errors import ConfigError, StoreUnavailable
from faena.job import Job
from faena.runtime import Links
from faena.states import State
from faena.task import Draft, EnqueueFields, Handle, Receipt, Task

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

_CLOSE_WITHIN_S = 5.0
"""How long open connections may take to end before the program goes on without them."""


class Portal:
    """Runs an app's coroutines for threads that have no event loop."""

    def __init__(self, links: Links, on_fork: Callable[[], None]) -> None:
        """`on_fork` is called in a forked child, for whatever else must not be the parent's."""
        self._links = links
        self._on_fork = on_fork
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_fork_watched = False

    # -- the operations -------------------------------------------------------------------------

    @overload
    def enqueue(
        self, task: Task[None, R] | Task[Job, R], /, **options: Unpack[EnqueueFields]
    ) -> Receipt[R]: ...
    @overload
    def enqueue(
        self, task: Task[P, R], payload: P, /, **options: Unpack[EnqueueFields]
    ) -> Receipt[R]: ...
    def enqueue(
        self, task: Task[Any, Any], /, *payload: Any, **options: Unpack[EnqueueFields]
    ) -> Receipt[Any]:
        """Put one job on the queue; see `Task.enqueue`."""
        return self.run(task.enqueue(*payload, **options))

    def enqueue_many(
        self,
        task: Task[P, R],
        payloads: Iterable[P | Draft[P]],
        /,
        **options: Unpack[EnqueueFields],
    ) -> list[Receipt[R]]:
        """Put many jobs on the queue; see `Task.enqueue_many`."""
        return self.run(task.enqueue_many(payloads, **options))

    def result(self, handle: Handle[R], timeout: timedelta | str | None = None) -> R:
        """Wait for a job and return what its handler returned; see `Handle.result`."""
        return self.run(handle.result(timeout))

    def state(self, handle: Handle[Any]) -> State | None:
        """Where a job is now; None when it is unknown or was pruned."""
        return self.run(handle.state())

    def cancel(self, handle: Handle[Any]) -> str:
        """Cancel a job: "cancelled", or "asked" when it runs and is being stopped."""
        return self.run(handle.cancel())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run any coroutine of the app and wait for it; an interrupted wait cancels it."""
        future = self._submit(coroutine)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise StoreUnavailable("app.sync was closed while this call was under way") from None
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the thread, its calls and its connections; the next call starts anew."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is not None and thread is not None:
            atexit.unregister(self.close)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_CLOSE_WITHIN_S)
            self._links.leave()

    # -- the thread -----------------------------------------------------------------------------

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        try:
            _refuse_event_loop()
            self._watch_forks()
            with self._lock:  # so that `close` sees the call or the call a new loop
                return asyncio.run_coroutine_threadsafe(coroutine, self._started())
        except BaseException:
            coroutine.close()
            raise

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._serve, args=(loop,), name="faena-portal", daemon=True
            )
            self._thread.start()
            self._loop = loop
            atexit.register(self.close)
        return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
            loop.run_until_complete(self._end())
        finally:
            loop.close()

    async def _end(self) -> None:
        """Close the connections, which ends most calls, and cancel the rest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WITHIN_S):
                await self._links.release()
                calls = asyncio.all_tasks() - {asyncio.current_task()}
                for call in calls:
                    call.cancel()
                await asyncio.gather(*calls, return_exceptions=True)

    # -- forks ----------------------------------------------------------------------------------

    def _watch_forks(self) -> None:
        """A forked child has no thread for the portal, and perhaps a lock that nobody frees.

        Hence before the lock is taken for the first time; two watches would do no harm.
        """
        if not self._is_fork_watched and hasattr(os, "register_at_fork"):
            self._is_fork_watched = True
            forked = WeakMethod(self._forked)
            os.register_at_fork(after_in_child=lambda: (still := forked()) and still())

    def _forked(self) -> None:
        atexit.unregister(self.close)
        self._lock = threading.Lock()
        self._links.forked(self._loop)
        self._loop = self._thread = None
        self._on_fork()


def _refuse_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigError("app.sync must be used outside an event loop, where calls are awaited")
