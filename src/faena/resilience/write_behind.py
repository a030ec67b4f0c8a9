"""Writes that become jobs when they are slow.

    done = await write_behind(save_order, order, save, within="2s")

`save(id)` is tried here. If it takes too long, or its upstream takes no calls, it becomes a job of
`save_order` with the same id: whatever has come of the try, the receiver can tell by the id that it
is the same write.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, Unpack

from faena.errors import ArgumentError, ConfigError, FaenaError, shown
from faena.idempotency import COMPLETED_TTL, Steps
from faena.outcomes import UpstreamUnavailable
from faena.values.duration import Duration, to_us
from faena.values.ids import as_label, check_key
from faena.values.view import View

if TYPE_CHECKING:
    from faena.producing.receipt import Receipt
    from faena.task import Draft, EnqueueFields, Task

P = TypeVar("P")
R = TypeVar("R")

_SHORTEST_US: Final = 1_000
_UNWIND_S: Final = 1.0
"""How long a try that was cancelled may take to end."""

_log = logging.getLogger("faena.resilience")


class Written(View, Generic[R], frozen=True, kw_only=True):
    """The write is done."""

    id: str
    result: R
    """What the operation returned."""


class Queued(View, Generic[R], frozen=True, kw_only=True):
    """The write is a job now."""

    receipt: Receipt[R]

    @property
    def id(self) -> str:
        """The id of the write, which is the job's."""
        return self.receipt.id


class _Write(Generic[P, R]):
    """One write, under one id."""

    def __init__(self, task: Task[P, R], draft: Draft[P], write_id: str) -> None:
        self._task, self._draft, self.id = task, draft, write_id
        self._records = Steps(task.app.runtime, task.queue)
        self._late: set[asyncio.Task[None]] = set()

    async def earlier(self) -> Written[R] | Queued[R] | None:
        """What has come of it before, when a caller repeats it."""
        if await self._task.handle(self.id).state() is not None:
            return await self.enqueue()
        status, *found = await self._records.begin(self.id, self.id, COMPLETED_TTL)
        if status != b"completed":
            return None
        return Written(id=self.id, result=self._task.handler.result.decode(found[1] or b"null"))

    async def enqueue(self) -> Queued[R]:
        """Make it a job; the same one, however often."""
        try:
            return Queued(receipt=await self._task.put(self._draft))
        except FaenaError as error:
            error.add_note(f"to repeat this write, give it the same id: {self.id}")
            raise

    async def record(self, result: R) -> None:
        """Say under its id that it is done: a job of this id then has nothing to do."""
        try:
            blob = self._task.handler.result.encode(result)
            await self._records.end(self.id, "complete", self.id, COMPLETED_TTL, blob)
        except FaenaError as error:
            _log.warning("write %s is done, which could not be recorded: %s", self.id, error)

    def expect(self, trying: asyncio.Future[R]) -> None:
        """Record it if a try that could not be stopped succeeds after all."""

        def ended(_trying: asyncio.Future[R]) -> None:
            if not trying.cancelled() and trying.exception() is None:
                telling = asyncio.ensure_future(self.record(trying.result()))
                self._late.add(telling)
                telling.add_done_callback(self._late.discard)

        trying.add_done_callback(ended)


async def write_behind(
    task: Task[P, R],
    payload: P,
    operation: Callable[[str], Awaitable[R]],
    *,
    within: Duration = "2s",
    **options: Unpack[EnqueueFields],
) -> Written[R] | Queued[R]:
    """Try to write here, within a time; else let a job of `task` do it.

    `operation` is called with the id of the write, which becomes the job's. The other options are
    those of `task.enqueue`; give an `id` of your own, of at least 16 characters, to be able to
    repeat a call that was lost. Errors of the operation are raised, but for slowness (a
    TimeoutError counts) and UpstreamUnavailable.
    """
    if not callable(getattr(task, "put", None)):
        raise ConfigError(f"task must be a task, got {shown(task)}", field="task", value=task)
    within_s = to_us("within", within, least_us=_SHORTEST_US) / 1e6
    given = options.pop("id", None)
    write_id = task.app.new_id() if given is None else check_key("id", as_label("id", given))
    if not callable(operation):
        raise ConfigError(
            f"operation must be a function that takes the write's id, got {shown(operation)}",
            field="operation",
            value=operation,
        )
    options["id"] = write_id
    draft = task.draft(payload, **options)
    task.spec(draft)  # a payload that no job can have is refused before anything is written
    write = _Write(task, draft, write_id)
    if given is not None and (earlier := await write.earlier()) is not None:
        return earlier
    trying = _started(operation, write_id)
    result = await _tried(trying, within_s)
    if result is None:
        write.expect(trying)
        return await write.enqueue()
    if given is not None:
        await write.record(result.value)
    return Written(id=write_id, result=result.value)


class _Result(Generic[R]):
    def __init__(self, value: R) -> None:
        self.value = value


async def _tried(trying: asyncio.Future[R], within_s: float) -> _Result[R] | None:
    """What the operation returned; None if it is to become a job."""
    is_late = False
    try:
        await asyncio.wait([trying], timeout=within_s)
        if not trying.done():
            is_late = trying.cancel()
            await asyncio.wait([trying], timeout=_UNWIND_S)
    except asyncio.CancelledError:
        trying.cancel()
        raise
    if not trying.done() or trying.cancelled():
        return None
    error = trying.exception()
    if error is None:
        return _Result(trying.result())
    if is_late or isinstance(error, UpstreamUnavailable | TimeoutError):
        return None
    raise error


def _started(operation: Callable[[str], Awaitable[R]], write_id: str) -> asyncio.Future[R]:
    running: Any = operation(write_id)
    if not inspect.isawaitable(running):
        raise ArgumentError(
            f"operation must return an awaitable, got {shown(running)}; is it an async def?",
            field="operation",
        )
    return asyncio.ensure_future(running)
