"""Handlers that run in processes of their own, which can be killed.

A child imports the module that defines the task and calls its handler; payload and result travel
as the bytes they are on the broker. A child that dies, however it dies, is one failed attempt and
costs the worker nothing. Progress and log lines come back as datagrams on a private socket: a child
killed in the middle of a write holds no lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import msgspec

from faena.errors import ConfigError
from faena.job import Job
from faena.worker import child
from faena.worker.attempt import Attempt
from faena.worker.failure import WorkerDied

_LONGEST_DATAGRAM = 65_536


class Processes:
    """A pool of killable processes, started when first needed."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool: Any = None
        self._directory: str | None = None
        self._socket: socket.socket | None = None
        self._jobs: dict[str, Job] = {}

    def call(self, attempt: Attempt) -> tuple[asyncio.Future[Any], Callable[[], None]]:
        """Start the handler in a child; interrupting it kills the child."""
        job, handler = attempt.job, attempt.handler
        pool = self._pool or self._open()
        self._jobs[job.id] = job
        scheduled: Future[Any] = pool.schedule(
            child.call,
            args=(child.Order.of(handler, job, attempt.payload),),
        )
        result: asyncio.Future[Any] = self._loop.create_future()
        scheduled.add_done_callback(
            lambda done: self._loop.call_soon_threadsafe(self._hand_over, job.id, done, result)
        )

        def kill() -> None:
            scheduled.cancel()

        return result, kill

    def _hand_over(self, job_id: str, done: Future[Any], result: asyncio.Future[Any]) -> None:
        from pebble import ProcessExpired  # noqa: PLC0415 - optional: the `process` extra

        self._drain()
        self._jobs.pop(job_id, None)
        if result.done():
            return
        try:
            result.set_result(child.read_reply(done.result()))
        except CancelledError:
            result.set_exception(asyncio.CancelledError("killed"))
        except ProcessExpired as expired:
            result.set_exception(WorkerDied(f"its process ended with code {expired.exitcode}"))
        except BaseException as error:  # noqa: BLE001 - whatever the handler raised
            result.set_exception(error)

    def _open(self) -> Any:
        try:
            from pebble import ProcessPool  # noqa: PLC0415 - optional: the `process` extra
        except ImportError:
            raise ConfigError(
                'run="process" needs the extra faena[process]: install it', field="run"
            ) from None
        self._directory = tempfile.mkdtemp(prefix="faena-")
        path = str(Path(self._directory) / "notes")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(path)
        self._loop.add_reader(self._socket, self._drain)
        self._pool = ProcessPool(
            max_workers=max(2, os.cpu_count() or 2),
            initializer=child.begin,
            initargs=(path, os.getpid()),
            context=cast("Any", get_context("spawn")),
        )
        return self._pool

    def _drain(self) -> None:
        """Hand on whatever children have said so far."""
        with contextlib.suppress(BlockingIOError, OSError):
            while self._socket is not None:
                job_id, progress, line = msgspec.msgpack.decode(
                    self._socket.recv(_LONGEST_DATAGRAM)
                )
                job = self._jobs.get(job_id)
                if job is not None and line is None:
                    job.progress(progress)
                elif job is not None:
                    job.log(line)

    def close(self) -> None:
        """Kill what still runs and remove the socket."""
        if self._pool is not None:
            self._pool.stop()
            self._pool.join()
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
