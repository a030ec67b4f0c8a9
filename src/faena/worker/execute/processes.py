"""Runs handlers in child processes, which can be killed.

A child imports the module that defines the task and calls its handler. Payload and result are
passed as the same bytes as on the broker. If a child dies, in any way, its attempt fails and the
worker is not affected. Progress and log lines come back as datagrams on a private socket, so a
child that is killed during a write holds no lock.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any, cast

import msgspec

from faena.errors import ConfigError, FaenaError
from faena.job import Job
from faena.resilience.lending import lend, take_back
from faena.resilience.permits import mark
from faena.telemetry.logging.setup import configured
from faena.worker.execute import process_runner as child
from faena.worker.execute.attempt_state import Attempt, Call
from faena.worker.execute.failure import WorkerDied
from faena.worker.execute.remote_errors import Failure, rebuild

_READ_AT_ONCE = 1000
"""Notes read in one turn of the loop: more than a socket holds, so that a child's last ones are
included, and few enough that a child which sends without end does not block the loop."""

_log = logging.getLogger("faena.worker")
_note_decoder = msgspec.msgpack.Decoder(child.Note)


class _Inbox:
    """Receives the notes of child processes; a token identifies the attempt."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._jobs: dict[int, Job] = {}
        self._tokens = itertools.count(1)
        self._directory = tempfile.mkdtemp(prefix="faena-")
        self.path = str(Path(self._directory) / "notes")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(self.path)
        loop.add_reader(self._socket, self.read)

    def expect(self, job: Job) -> int:
        """Return a new token for the notes of this job."""
        token = next(self._tokens)
        self._jobs[token] = job
        return token

    def forget(self, order: child.Order) -> None:
        """Drop the tokens of a call that has ended."""
        for item in order.items:
            self._jobs.pop(item.token, None)

    def read(self) -> None:
        """Pass on the notes that have arrived."""
        for _ in range(_READ_AT_ONCE):
            try:
                datagram = self._socket.recv(child.LONGEST_DATAGRAM)
            except OSError:  # no more notes, or the socket is closed
                return
            try:
                self._hand_on(_note_decoder.decode(datagram))
            except (msgspec.MsgspecError, FaenaError, ValueError) as error:
                _log.warning("progress, log or costs of a child process were dropped: %s", error)

    def _hand_on(self, note: child.Note) -> None:
        job = self._jobs.get(note.token)
        if job is None:
            return
        if note.progress:
            job.progress(msgspec.json.decode(note.progress))
        elif note.used:
            job.spend(**note.used)
        else:
            job.log(note.line.decode())

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class Processes:
    """Child processes that can be killed: a call uses an idle one, or starts another.

    A call has a slot of its worker, so there are never more calls than slots. Each process is a
    pool of one. A larger pool would start all its processes together, and would be lost completely
    if one of them died idle.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._inbox: _Inbox | None = None
        self._pools: set[Any] = set()
        self._idle: list[Any] = []
        self._ending: list[threading.Thread] = []

    def call(self, call: Call) -> tuple[asyncio.Future[Any], Callable[[], None]]:
        """Start the handler in a child; interrupting it kills the child."""
        inbox = self._inbox = self._inbox or _Inbox(self._loop)
        pool = self._take(inbox)
        attempt = call if isinstance(call, Attempt) else None  # batches name no upstreams
        order = child.Order.of(call.handler, _items(call, inbox), attempt and lend(attempt))
        try:
            scheduled: Future[Any] = pool.schedule(child.call, args=(order,))
        except BaseException:  # the system cannot start a process
            inbox.forget(order)
            self._retire(pool)
            raise
        result: asyncio.Future[Any] = self._loop.create_future()

        def hand_over() -> None:
            try:
                inbox.read()  # its last notes, before its end
            finally:
                inbox.forget(order)
                self._give_back(pool, is_killed=scheduled.cancelled())
                _settle(scheduled, result, attempt)

        def kill() -> None:
            scheduled.cancel()

        scheduled.add_done_callback(lambda _: self._loop.call_soon_threadsafe(hand_over))
        return result, kill

    def _take(self, inbox: _Inbox) -> Any:
        while self._idle:
            pool = self._idle.pop()
            if pool.active:
                return pool
            self._retire(pool)
        pool = _open(inbox.path)
        self._pools.add(pool)
        return pool

    def _give_back(self, pool: Any, *, is_killed: bool) -> None:
        """Keep the child for the next call, unless it was killed: it dies a little later."""
        if is_killed:
            self._retire(pool)
        elif pool in self._pools:
            self._idle.append(pool)

    def _retire(self, pool: Any) -> None:
        """End a child in a thread, because that may take seconds."""
        if pool in self._pools:
            self._pools.remove(pool)
            thread = threading.Thread(target=_end, args=(pool,), daemon=True)
            thread.start()
            self._ending = [one for one in self._ending if one.is_alive()] + [thread]

    def close(self) -> None:
        """Kill all children and remove the socket."""
        for pool in list(self._pools):
            self._retire(pool)
        for thread in self._ending:
            thread.join()
        if self._inbox is not None:
            self._inbox.close()


def _items(call: Call, inbox: _Inbox) -> list[child.Item]:
    """The jobs of a call; the decoded payloads of a batch are encoded again."""
    codec = call.handler.payload
    if call.handler.batch is None or codec is None:
        return [child.Item.of(call.job, call.payload, inbox.expect(call.job))]
    return [
        child.Item.of(job, codec.encode(payload), inbox.expect(job))
        for job, payload in zip(call.job, call.payload, strict=True)
    ]


def _open(path: str) -> Any:
    from multiprocessing import get_context  # noqa: PLC0415 - slow to load

    try:
        from pebble import ProcessPool  # noqa: PLC0415 - optional: the `process` extra
    except ImportError:
        raise ConfigError(
            'run="process" needs the extra process: install it '
            "(in a clone of Faena: pip install '.[process]')",
            field="run",
        ) from None
    return ProcessPool(
        max_workers=1,
        initializer=child.begin,
        initargs=(path, os.getpid(), configured()),
        context=cast("Any", get_context("spawn")),
    )


def _end(pool: Any) -> None:
    pool.stop()
    pool.join()


def _read(reply: Any, attempt: Attempt | None) -> Any:
    """The result in bytes, or a list of endings for a batch; raises the handler's exception."""
    meaning = None
    if isinstance(reply, child.Told) and attempt is not None:
        take_back(attempt, reply.returned)
        reply, meaning = reply.reply, reply.returned.meaning
    if isinstance(reply, Failure):
        error = rebuild(reply)
        mark(error, meaning)
        raise error
    if isinstance(reply, list):
        endings = cast("list[Any]", reply)
        return [rebuild(one) if isinstance(one, Failure) else one for one in endings]
    return reply


def _settle(done: Future[Any], result: asyncio.Future[Any], attempt: Attempt | None) -> None:
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415 - slow to load

    from pebble import ProcessExpired  # noqa: PLC0415 - optional: the `process` extra

    if result.done():
        return
    try:
        result.set_result(_read(done.result(), attempt))
    except CancelledError:
        result.set_exception(asyncio.CancelledError("killed"))
    except ProcessExpired as expired:
        result.set_exception(WorkerDied(f"its process ended with code {expired.exitcode}"))
    except BrokenProcessPool:
        result.set_exception(WorkerDied("its process ended before the handler started"))
    except BaseException as error:  # noqa: BLE001 - whatever the handler raised
        result.set_exception(error)
