"""One call of a handler for many jobs.

    gathering ── full, or its time is over ──→ under way ──→ an ending for each job

A job that is told to stop while it waits leaves at once. One that is told so while the call is
under way sees `job.cancelled` and stays, for its part cannot be stopped alone: the call is stopped
when none of its jobs is to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from faena.declaring.handler import Handler
from faena.errors import BatchError
from faena.job import Job
from faena.worker.execute.attempt import Attempt, Call


class Runner(Protocol):
    """Somewhere that runs plain functions: threads or processes."""

    def call(self, call: Call, /) -> tuple[asyncio.Future[Any], Callable[[], object]]:
        """Start the handler; returns its future and what interrupts it."""
        ...


class Host(Protocol):
    """Who runs the attempts that meet in a batch, those of one shard."""

    def call_begins(self, attempt: Attempt, timeout_s: float) -> None:
        """The attempt's time limit and its lease count from now."""
        ...

    def call_stops(self, attempt: Attempt) -> None:
        """The call was told to stop; should it not, the attempt is settled without it."""
        ...


class Key(NamedTuple):
    """What the jobs of one batch have in common."""

    pool: str
    task: str
    tenant: str | None
    """None where jobs of different tenants may meet, and for those without one."""


class _Member(NamedTuple):
    """One job of a batch, and where its attempt waits for the ending."""

    attempt: Attempt
    host: Host
    ending: asyncio.Future[Any]

    def end(self, ending: Any) -> None:
        self.attempt.interrupt = None  # from here on its own task is what can be stopped
        if self.ending.done():  # a middleware has given up waiting for it
            return
        if isinstance(ending, StopIteration):  # no future can carry one
            ending = RuntimeError("the handler returned a StopIteration")
        if isinstance(ending, BaseException):
            self.ending.set_exception(ending)
        else:
            self.ending.set_result(ending)


class Batch:
    """The jobs of one call."""

    def __init__(self, key: Key, handler: Handler, size: int) -> None:
        self.key = key
        self.handler = handler
        self.size = size
        self.payload: list[Any] = []
        """Of each job, in the order they came, once the call begins."""
        self.job: list[Job] = []
        self.timer: asyncio.TimerHandle | None = None
        self.is_under_way = False
        self._members: dict[Attempt, _Member] = {}
        self._staying: set[Attempt] = set()
        self._interrupt: Callable[[], object] | None = None

    def __len__(self) -> int:
        return len(self._members)

    @property
    def attempts(self) -> Sequence[Attempt]:
        """Those that wait, or wait for the call to end."""
        return [*self._members]

    def join(self, attempt: Attempt, host: Host) -> asyncio.Future[Any]:
        """Wait for others, and for the ending that comes of the call."""
        ending: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._members[attempt] = _Member(attempt, host, ending)
        return ending

    def leave(self, attempt: Attempt) -> bool:
        """Stop for one job; False when the call goes on for the others."""
        if not self.is_under_way:
            member = self._members.pop(attempt, None)
            if member is not None:
                member.end(asyncio.CancelledError())
            return True
        self._staying.discard(attempt)
        if not self._staying:
            self._stop()
        return not self._staying

    def _stop(self) -> None:
        for member in self._members.values():
            member.host.call_stops(member.attempt)
        if self._interrupt is not None:
            self._interrupt()

    # -- the call -------------------------------------------------------------------------------

    def close(self) -> bool:
        """Let nobody else in: the call begins. False when nobody waits for it any more."""
        self.is_under_way = True
        members = [one for one in self._members.values() if not one.ending.done()]
        self._members = {one.attempt: one for one in members}
        self._staying = set(self._members)
        self.payload = [one.attempt.payload for one in members]
        self.job = [one.attempt.job for one in members]
        # The call has the longest time that one of its jobs may take; so far theirs had the wait.
        longest_s = max((one.attempt.timeout_s for one in members), default=0.0)
        longest_s -= self.handler.wait_s
        for one in members:
            one.host.call_begins(one.attempt, longest_s)
        return bool(members)

    async def run(self, runners: Mapping[str, Runner]) -> None:
        """Call the handler, and give each job its ending, whatever happens."""
        try:
            endings = endings_of(await self._call(runners), len(self._members))
        except BaseException as error:  # noqa: BLE001 - the border: a handler may raise anything
            endings = [error] * len(self._members)
        for member, ending in zip(self._members.values(), endings, strict=True):
            member.end(ending)

    async def _call(self, runners: Mapping[str, Runner]) -> Any:
        handler = self.handler
        if not self._staying:  # all were told to stop before its first step
            raise asyncio.CancelledError
        if handler.run == "async":
            task = asyncio.current_task()
            self._interrupt = task.cancel if task else None
            return await handler.function(*handler.arguments(self.payload, self.job))
        future, self._interrupt = runners[handler.run].call(self)
        value = await future
        if handler.run == "process" and value is not None:  # it came in bytes, as from any child
            return [_decoded(handler, one) for one in value]
        return value


def _decoded(handler: Handler, ending: Any) -> Any:
    return handler.result.decode(ending) if isinstance(ending, bytes) else ending


def endings_of(value: Any, number: int) -> Sequence[Any]:
    """What a handler returned for each of so many jobs: results, and exceptions."""
    if value is None:
        return [None] * number
    wanted = f"None or a list with an entry for each of its {number} payloads"
    if not isinstance(value, list | tuple):
        raise BatchError(f"a batch handler must return {wanted}, got {type(value).__name__}")
    if len(value) != number:
        raise BatchError(f"a batch handler must return {wanted}, got {len(value)}")
    return value
