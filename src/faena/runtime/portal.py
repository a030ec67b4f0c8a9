"""The portal for code without an event loop: runs coroutines on a loop in its own thread.

    receipt = app.sync.enqueue(welcome, {"to": "ana"}, delay="5m")
    result = app.sync.result(receipt.handle, timeout="30s")

The thread starts with the first call. Any number of threads may call at once. A process that forks
(gunicorn, uwsgi) may use the portal before and after: the child starts a thread and connections of
its own. At the end of the program everything is closed automatically.

Ctrl-C may interrupt the main thread between any two steps. It must take effect soon, and must not
leave anything half done. So the calling thread takes no lock that other threads need, starts
nothing that takes two steps, and sleeps in slices.
"""

from __future__ import annotations

import _thread
import asyncio
import atexit
import contextlib
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from datetime import timedelta
from typing import Any, Generic, NamedTuple, TypeVar, Unpack, cast, overload
from weakref import WeakMethod

from faena.errors import ConfigError, StoreUnavailable, shown
from faena.inspection.explanation import Explanation
from faena.job import Job, JobView
from faena.producing.handle import Handle
from faena.producing.receipt import Receipt
from faena.runtime.connections import Links
from faena.states import State
from faena.task import Draft, EnqueueFields, Task
from faena.values.duration import Duration

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

_CLOSE_WITHIN_S = 5.0
"""How long connections may take to close before the program continues without them."""

_SLICE_S = 0.1
"""The longest sleep in a wait: a signal just before a sleep does not interrupt it."""


class _Call(Generic[T]):
    """A coroutine for the loop, and its outcome for the caller.

    The lock signals the outcome: it is created locked, and the loop releases it but never takes it.
    """

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._make = make
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[T] | None = None
        self._is_given_up = False
        self._is_over = False
        self._result: T | None = None
        self._error: BaseException | None = None
        self._bell = threading.Lock()
        self._bell.acquire()

    # In the calling thread:

    def wait(self) -> T:
        """Wait; return the coroutine's result, or raise its error."""
        while not self._is_over:
            self._bell.acquire(timeout=_SLICE_S)
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # breaks the reference cycle between error and frame
        return cast("T", self._result)

    def give_up(self) -> None:
        """Prevent the start of the coroutine, if it has not started; see `cancel`."""
        self._is_given_up = True

    # In the loop's thread:

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Create the coroutine here, where no signal can interrupt between creation and start."""
        try:
            coroutine = self._make()
            if self._is_given_up:
                coroutine.close()
                return
            self._task = loop.create_task(coroutine, context=self._context)
        except Exception as error:  # noqa: BLE001 - passed to the caller
            self.end(error)
        else:
            self._task.add_done_callback(self._finish)

    def cancel(self) -> None:
        """Cancel the coroutine of a call that was given up, if it has started."""
        if self._task is not None:
            self._task.cancel()

    def end(self, error: BaseException | None) -> None:
        """End the call; without an error, with its result."""
        self._error = error
        self._is_over = True
        self._bell.release()

    def _finish(self, task: asyncio.Task[T]) -> None:
        # A task has weak references with functions, and an interrupt inside one of those is lost:
        # the calling thread must not be the last to hold it.
        self._task = None
        if task.cancelled():
            self.end(StoreUnavailable("app.sync was closed during this call"))
        elif error := task.exception():
            self.end(error)
        else:
            self._result = task.result()
            self.end(None)


class _Serving(NamedTuple):
    """The loop that runs calls, and its thread."""

    loop: asyncio.AbstractEventLoop
    thread: threading.Thread


class Portal:
    """Runs an app's coroutines for threads that have no event loop."""

    def __init__(self, links: Links, on_fork: Callable[[], None]) -> None:
        """`on_fork` is called in a forked child, to reset other state of the parent."""
        self._links = links
        self._on_fork = on_fork
        self._calls: deque[_Call[Any]] = deque()
        """Calls that have not started yet."""
        self._serving: _Serving | None = None
        self._lock = threading.Lock()
        """Guards `_serving`; taken only by threads of the portal, which no signal interrupts."""
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
        """Enqueue one job; see `Task.enqueue`."""
        _check_task(task)
        return self._run(lambda: task.enqueue(*payload, **options))

    def enqueue_many(
        self,
        task: Task[P, R],
        payloads: Iterable[P | Draft[P]],
        /,
        **options: Unpack[EnqueueFields],
    ) -> list[Receipt[R]]:
        """Enqueue many jobs; see `Task.enqueue_many`."""
        _check_task(task)
        return self._run(lambda: task.enqueue_many(payloads, **options))

    def result(self, handle: Handle[R], timeout: timedelta | str | None = None) -> R:
        """Wait for a job and return its result; see `Handle.result`."""
        return self._run(lambda: _known(handle).result(timeout))

    def state(self, handle: Handle[Any]) -> State | None:
        """The state of a job; None if it is unknown, or was removed by retention."""
        return self._run(_known(handle).state)

    def view(self, handle: Handle[Any]) -> JobView | None:
        """Everything that is stored about a job."""
        return self._run(_known(handle).view)

    def explain(self, handle: Handle[Any]) -> Explanation:
        """Why a job has not started, or how it ended; see `Handle.explain`."""
        return self._run(_known(handle).explain)

    def cancel(self, handle: Handle[Any], *, by: str | None = None) -> str:
        """Cancel a job: "cancelled", or "asked" if it runs and is being stopped."""
        return self._run(lambda: _known(handle).cancel(by=by))

    def rerun(self, handle: Handle[Any], *, by: str | None = None) -> None:
        """Run a finished job again; see `Handle.rerun`."""
        self._run(lambda: _known(handle).rerun(by=by))

    def promote(self, handle: Handle[Any], *, by: str | None = None) -> None:
        """Run a delayed job now."""
        self._run(lambda: _known(handle).promote(by=by))

    def change(
        self,
        handle: Handle[Any],
        *,
        delay: Duration | None = None,
        priority: int | str | None = None,
        by: str | None = None,
    ) -> None:
        """Change when a waiting job runs, or its priority."""
        self._run(lambda: _known(handle).change(delay=delay, priority=priority, by=by))

    def remove(self, handle: Handle[Any], *, by: str | None = None) -> None:
        """Remove a job; see `Handle.remove`."""
        self._run(lambda: _known(handle).remove(by=by))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run any coroutine of the app and wait for it; an interrupted wait cancels it."""
        _check_coroutine(coroutine)
        try:
            _refuse_event_loop()
        except ConfigError:
            coroutine.close()
            raise
        return self._run(lambda: coroutine)

    def close(self) -> None:
        """End the thread, its calls and its connections; the next call starts a new thread."""
        serving = self._serving
        if serving is None:
            return
        _call_in_loop(serving.loop, self._stop, serving)
        serving.thread.join(_CLOSE_WITHIN_S)
        if self._serving is serving:  # its loop is blocked: the next call needs another
            self._serving = None
        atexit.unregister(self.close)
        self._links.leave()

    # -- in the calling thread ------------------------------------------------------------------

    def _run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        _refuse_event_loop()
        self._watch_forks()
        call = _Call(make)
        try:
            self._calls.append(call)
            self._wake()
            return call.wait()
        except BaseException:
            call.give_up()
            if (serving := self._serving) is not None:
                _call_in_loop(serving.loop, call.cancel)
            raise

    def _wake(self) -> None:
        """Let the loop start pending calls, after one was appended.

        If the loop is ending, either it is no longer seen here, or its thread sees the call.
        """
        serving = self._serving
        if serving is None:
            _thread.start_new_thread(self._start, ())  # Thread.start can be interrupted halfway
        else:
            _call_in_loop(serving.loop, self._begin, serving)

    # -- in threads of the portal ---------------------------------------------------------------

    def _start(self) -> None:
        try:
            serving = self._started()
        except Exception as error:  # noqa: BLE001 - no thread or file left: passed to the callers
            with contextlib.suppress(IndexError):
                while True:
                    self._calls.popleft().end(error)
        else:
            _call_in_loop(serving.loop, self._begin, serving)

    def _started(self) -> _Serving:
        with self._lock:
            if self._serving is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=self._serve, args=(loop,), name="faena-portal", daemon=True
                )
                try:
                    thread.start()
                except BaseException:
                    loop.close()
                    raise
                self._serving = _Serving(loop, thread)
                atexit.register(self.close)
            return self._serving

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            serving = self._serving
        try:
            while self._serving is serving:
                with contextlib.suppress(SystemExit, KeyboardInterrupt):  # its caller's
                    loop.run_forever()
            loop.run_until_complete(self._end())
        finally:
            loop.close()
        if self._calls:
            self._start()

    def _begin(self, serving: _Serving) -> None:
        while self._calls and self._serving is serving:
            self._calls.popleft().begin(serving.loop)

    def _stop(self, serving: _Serving) -> None:
        with self._lock:
            if self._serving is serving:
                self._serving = None
        serving.loop.stop()

    async def _end(self) -> None:
        """Close the connections, which ends most calls, and cancel the rest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WITHIN_S):
                await self._links.release()
                calls = asyncio.all_tasks() - {asyncio.current_task()}
                for call in calls:
                    call.cancel()
                await asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(0)  # transports that were closed just now end in the next turn

    # -- forks ----------------------------------------------------------------------------------

    def _watch_forks(self) -> None:
        """Reset a forked child: it has no portal thread, and perhaps a lock that stays locked."""
        if not self._is_fork_watched and hasattr(os, "register_at_fork"):
            forked = WeakMethod(self._forked)
            os.register_at_fork(after_in_child=lambda: (still := forked()) and still())
            self._is_fork_watched = True  # afterwards: two watches would do no harm, none would

    def _forked(self) -> None:
        atexit.unregister(self.close)
        self._lock = threading.Lock()
        self._calls = deque()
        self._links.forked(self._serving)
        self._serving = None
        self._on_fork()


def _check_task(given: Any) -> None:
    if not isinstance(given, Task):
        raise ConfigError(
            f"task must be a Task, got {shown(given)}; use queue.tasks[name]",
            field="task",
            value=given,
        )


def _known(given: Handle[R]) -> Handle[R]:
    if not isinstance(given, Handle):  # pyright: ignore[reportUnnecessaryIsInstance] - anything may come
        raise ConfigError(
            f"handle must be the handle of a job, got {shown(given)}; use receipt.handle or "
            f"queue.handle(id)",
            field="handle",
            value=given,
        )
    return given


def _call_in_loop(loop: asyncio.AbstractEventLoop, do: Callable[..., None], *args: Any) -> None:
    with contextlib.suppress(RuntimeError):  # it has been closed
        loop.call_soon_threadsafe(do, *args)


def _check_coroutine(given: Any) -> None:
    if asyncio.iscoroutine(given):
        return
    name = getattr(given, "__qualname__", None)
    hint = f": write {name}()" if callable(given) and name else ""
    raise ConfigError(
        f"app.sync.run must be given a coroutine, such as queue.counts(), got "
        f"{type(given).__name__}{hint}",
        field="coroutine",
        value=given,
    )


def _refuse_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigError(
        "app.sync must be used outside an event loop: inside one, await task.enqueue(…) instead"
    )
