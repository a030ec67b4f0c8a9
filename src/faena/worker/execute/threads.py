"""Runs handlers that are plain functions, in threads.

A thread cannot be killed. A handler that is told to stop sees `job.cancelled`, and an exception is
raised in its thread at the next step of Python code. A handler that waits inside C code ends when
that returns. The threads are daemons: at its end, the interpreter would wait for other threads,
even stuck ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from faena.worker.execute.attempt_state import Call


class Interrupted(BaseException):
    """Raised in a handler's thread to stop it; a BaseException, which handlers rarely catch."""


class _Call:
    """One function call that another thread may interrupt, but only while it runs."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function = function
        self._arguments = arguments
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._is_unwanted = False

    def run(self) -> Any:
        with self._lock:
            if self._is_unwanted:
                raise Interrupted
            self._thread = threading.get_ident()
        try:
            return self._function(*self._arguments)
        except StopIteration as error:  # no future can carry one
            raise RuntimeError("the handler raised StopIteration") from error
        finally:
            self._leave()

    def _leave(self) -> None:
        """Accept no more interrupts, because the thread runs another job next."""
        while True:
            try:
                with self._lock:
                    thread, self._thread = self._thread, None
                    if thread is not None:
                        _raise_in(thread, None)
            except Interrupted:
                continue
            return

    def interrupt(self) -> None:
        with self._lock:
            self._is_unwanted = True
            if self._thread is not None:
                _raise_in(self._thread, Interrupted)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(error) if error else None
    )


class _Work(NamedTuple):
    """A call for a thread, and the future that waits for it."""

    call: _Call
    context: Context
    result: asyncio.Future[Any]

    def perform(self) -> tuple[Any, BaseException | None]:
        try:
            return self.context.run(self.call.run), None
        except BaseException as error:  # noqa: BLE001 - whatever the handler raised
            return None, error


class Threads:
    """Threads for handlers: started when calls need them, and kept for later calls.

    Used by one event loop, which alone counts the running calls.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._started = 0
        self._busy = 0
        self._calls: SimpleQueue[_Work | None] = SimpleQueue()

    def allow(self, size: int) -> None:
        """Set the most threads; those that are started stay."""
        self._size = size

    def call(self, call: Call) -> tuple[asyncio.Future[Any], Callable[[], None]]:
        """Start the handler; returns its future, and a function that interrupts it."""
        handler = call.handler
        under_way = _Call(handler.function, handler.arguments(call.payload, call.job))
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._started <= self._busy and self._started < self._size:
            self._start()
        self._busy += 1
        self._calls.put(_Work(under_way, copy_context(), result))
        return result, under_way.interrupt

    def _start(self) -> None:
        name = f"faena-job-{self._started}"
        threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._started += 1

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            ending = call.perform()
            with contextlib.suppress(RuntimeError):  # the loop is closed
                call.result.get_loop().call_soon_threadsafe(self._hand_over, call.result, *ending)
            del call, ending  # an idle thread must not keep its last job alive

    def _hand_over(
        self, result: asyncio.Future[Any], value: Any, error: BaseException | None
    ) -> None:
        self._busy -= 1
        if result.done():
            return
        if error is None:
            result.set_result(value)
        else:
            result.set_exception(error)

    def close(self) -> None:
        """End idle threads; a stuck one must not keep the process alive."""
        with contextlib.suppress(Empty):
            while (call := self._calls.get_nowait()) is not None:
                call.result.cancel()
        for _ in range(self._started):
            self._calls.put(None)
