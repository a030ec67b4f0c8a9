"""Handlers that are plain functions run here, in threads.

A thread cannot be killed. One that is told to stop sees `job.cancelled`, and an exception is raised
in it at its next step in Python; a handler that waits inside C code ends when that returns.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from faena.worker.attempt import Attempt


class Interrupted(BaseException):
    """Raised inside a handler's thread to stop it; no Exception, so handlers rarely catch it."""


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
        """Close the door before the thread serves another job: a late exception is taken back."""
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


class Threads:
    """A pool of threads for handlers."""

    def __init__(self, size: int) -> None:
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="faena-job")

    def call(self, attempt: Attempt) -> tuple[asyncio.Future[Any], Callable[[], None]]:
        """Start the handler; returns its future and what interrupts it."""
        handler = attempt.handler
        call = _Call(handler.function, handler.arguments(attempt.payload, attempt.job))
        context = copy_context()
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._pool, context.run, call.run), call.interrupt

    def close(self) -> None:
        """Let idle threads go; one that is stuck must not keep the process."""
        self._pool.shutdown(wait=False, cancel_futures=True)
