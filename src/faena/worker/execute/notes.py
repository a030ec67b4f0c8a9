"""Sends progress, log lines and used costs to the broker, a few times a second.

Handlers call from any thread; only the event loop sends. When a job ends, its remaining notes are
sent before its settlement, because a settled job accepts none.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, TypedDict, Unpack

import msgspec

from faena.engine import Engine
from faena.engine.calls.costs import spend
from faena.errors import ConfigError, FaenaError, LeaseLost, PayloadError, nearest, shown
from faena.options.costs import check_used
from faena.worker.leases import Leases

_EVERY_S = 0.25
_LONGEST_LINE = 4096
_MOST_LINES = 100

_log = logging.getLogger("faena.worker")


class _Note:
    __slots__ = ("lines", "progress", "used")

    def __init__(self) -> None:
        self.progress = b""
        self.lines: list[str] = []
        self.used: dict[str, int] = {}


class _Said(TypedDict, total=False):
    progress: bytes
    line: str
    used: Mapping[str, int]


class QueueNotes:
    """The notes of one queue's running jobs."""

    def __init__(
        self, engine: Engine, queue: str, leases: Leases, units: Collection[str] = ()
    ) -> None:
        """`units` are the units that the queue's limits by cost count."""
        self._engine = engine
        self._queue = queue
        self._leases = leases
        self._loop = asyncio.get_running_loop()
        self._units = units
        self._open: dict[str, _Note] = {}
        self._thread = threading.get_ident()
        self._timer: asyncio.TimerHandle | None = None
        self._sending: dict[str, asyncio.Task[None]] = {}

    def progress(self, job_id: str, value: Any) -> None:
        """Replace a job's progress."""
        try:
            encoded = msgspec.json.encode(value)
        except (TypeError, ValueError) as error:
            message = f"progress must be a JSON value, got {type(value).__name__}"
            raise PayloadError(message, op="progress") from error
        self._hand_in(job_id, progress=encoded)

    def log(self, job_id: str, line: str) -> None:
        """Add a line to a job's log."""
        text = str(line)[:_LONGEST_LINE].encode("utf-8", "backslashreplace").decode()
        self._hand_in(job_id, line=text)

    def spend(self, job_id: str, used: Mapping[str, Any]) -> None:
        """Replace the costs that a job has used."""
        checked = check_used(used)
        for unit in checked:
            if unit not in self._units:
                raise ConfigError(
                    f"spend must be given a unit that a limit of the queue counts, "
                    f"got {shown(unit)}; "
                    f"{nearest(unit, self._units)}",
                    field=unit,
                )
        self._hand_in(job_id, used=checked)

    def _hand_in(self, job_id: str, **note: Unpack[_Said]) -> None:
        """A coroutine's note is kept immediately: its job may end before the loop's next turn."""
        if threading.get_ident() == self._thread:
            self._keep(job_id, **note)
        else:
            self._loop.call_soon_threadsafe(partial(self._keep, job_id, **note))

    def _keep(
        self,
        job_id: str,
        progress: bytes = b"",
        line: str | None = None,
        used: Mapping[str, int] | None = None,
    ) -> None:
        note = self._open.setdefault(job_id, _Note())
        note.progress = progress or note.progress
        note.used.update(used or {})
        if line is not None:
            note.lines.append(line)
            del note.lines[:-_MOST_LINES]
        self._arm()

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(_EVERY_S, self._flush_all)

    def _flush_all(self) -> None:
        self._timer = None
        for job_id in list(self._open):
            if job_id in self._sending:  # one at a time: lines stay in order
                self._arm()
                continue
            sending = self._loop.create_task(self.flush(job_id))
            self._sending[job_id] = sending
            sending.add_done_callback(partial(self._sent, job_id))

    def _sent(self, job_id: str, _sending: asyncio.Task[None]) -> None:
        del self._sending[job_id]

    def has(self, job_id: str) -> bool:
        """Whether the job has notes that are not written yet."""
        return job_id in self._open or job_id in self._sending

    def drop(self, job_id: str) -> None:
        """Drop the notes of a job whose lease is lost."""
        self._open.pop(job_id, None)

    async def flush(self, job_id: str) -> None:
        """Write the notes of one job, after those sent before."""
        before = self._sending.get(job_id)
        if before is not None and before is not asyncio.current_task():
            await asyncio.wait({before})
        note = self._open.pop(job_id, None)
        lease = self._leases.lease_of(self._queue, job_id)
        if note is None or lease is None:
            return
        try:
            await self._write(job_id, lease, note)
        except LeaseLost:
            _log.debug("progress, log and costs of job %s dropped: its lease is lost", job_id)
        except FaenaError as error:
            _log.warning("could not write progress, log or costs of job %s: %s", job_id, error)

    async def _write(self, job_id: str, lease: str, note: _Note) -> None:
        if note.used:
            await spend(self._engine, self._queue, job_id, lease, note.used)
        if note.progress or note.lines:
            await self._engine.note(
                self._queue, job_id, lease, progress=note.progress, lines=note.lines
            )
