"""One call of a handler for many jobs.

    gathering ── full, or the wait is over ──→ running ──→ an ending for each job

A job that is told to stop while it waits leaves immediately. During the call it sees
`job.cancelled` and stays, because its part cannot be stopped alone. The call is stopped when all of
its jobs were told to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from faena.declaring.handler import Handler
from faena.errors import BatchError
from faena.job import Job
from faena.telemetry.logging.bound import BOUND
from faena.worker.execute.attempt_state import Attempt, Call


class Runner(Protocol):
    """Runs plain functions: in threads or in processes."""

    def call(self, call: Call, /) -> tuple[asyncio.Future[Any], Callable[[], object]]:
        """Start the handler; returns its future, and a function that interrupts it."""
        ...


class Host(Protocol):
    """The part that runs the attempts of one shard, which may meet others in a batch."""

    def call_begins(self, attempt: Attempt, timeout_s: float) -> None:
        """Start the attempt's time limit and its lease again, from now."""
        ...

    def call_stops(self, attempt: Attempt) -> None:
        """The call was told to stop; if it does not, the attempt is settled without it."""
        ...


class Key(NamedTuple):
    """What the jobs of one batch have in common."""

    pool: str
    task: str
    tenant: str | None
    """None if a batch may mix tenants, and for jobs without a tenant."""


class _Member(NamedTuple):
    """One job of a batch, and the future on which its attempt waits."""

    attempt: Attempt
    host: Host
    ending: asyncio.Future[Any]

    def end(self, ending: Any) -> None:
        self.attempt.interrupt = None  # from here on, a stop cancels its own task
        if self.ending.done():  # a middleware no longer waits for it
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
        """The payload of each job, in the order of joining; set when the call starts."""
        self.job: list[Job] = []
        self.timer: asyncio.TimerHandle | None = None
        self.is_under_way = False
        self._members: dict[Attempt, _Member] = {}
        self._staying: set[Attempt] = set()
        self._interrupt: Callable[[], object] | None = None
        self.errors: list[BaseException] = []
        """What its jobs have failed with, once the call has ended."""

    def __len__(self) -> int:
        return len(self._members)

    @property
    def attempts(self) -> Sequence[Attempt]:
        """Attempts that wait for the call to start or to end."""
        return [*self._members]

    def join(self, attempt: Attempt, host: Host) -> asyncio.Future[Any]:
        """Add an attempt; returns the future of its ending."""
        ending: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._members[attempt] = _Member(attempt, host, ending)
        return ending

    def leave(self, attempt: Attempt) -> bool:
        """Stop for one job; False when the call continues for the others."""
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
        """Accept no more jobs, because the call starts. False when no job is left."""
        self.is_under_way = True
        members = [one for one in self._members.values() if not one.ending.done()]
        self._members = {one.attempt: one for one in members}
        self._staying = set(self._members)
        self.payload = [one.attempt.payload for one in members]
        self.job = [one.attempt.job for one in members]
        # The call's timeout is the longest of its jobs'; until now theirs included the wait.
        longest_s = max((one.attempt.timeout_s for one in members), default=0.0)
        longest_s -= self.handler.wait_s
        for one in members:
            one.host.call_begins(one.attempt, longest_s)
        return bool(members)

    async def run(self, runners: Mapping[str, Runner]) -> None:
        """Call the handler, and give each job its ending, whatever happens."""
        BOUND.set(self.job)
        try:
            endings = endings_of(await self._call(runners), len(self._members))
        except BaseException as error:  # noqa: BLE001 - the border: a handler may raise anything
            endings = [error] * len(self._members)
        self.errors = [one for one in endings if isinstance(one, BaseException)]
        for member, ending in zip(self._members.values(), endings, strict=True):
            member.end(ending)

    async def _call(self, runners: Mapping[str, Runner]) -> Any:
        handler = self.handler
        if not self._staying:  # all jobs were told to stop before the first step
            raise asyncio.CancelledError
        if handler.run == "async":
            task = asyncio.current_task()
            self._interrupt = task.cancel if task else None
            return await handler.function(*handler.arguments(self.payload, self.job))
        future, self._interrupt = runners[handler.run].call(self)
        value = await future
        if handler.run == "process" and value is not None:  # a child process answers in bytes
            return [_decoded(handler, one) for one in value]
        return value


def _decoded(handler: Handler, ending: Any) -> Any:
    return handler.result.decode(ending) if isinstance(ending, bytes) else ending


def endings_of(value: Any, number: int) -> Sequence[Any]:
    """The entries that a handler returned for its jobs: results and exceptions."""
    if value is None:
        return [None] * number
    wanted = f"None or a list with an entry for each of its {number} payloads"
    if not isinstance(value, list | tuple):
        raise BatchError(f"a batch handler must return {wanted}, got {type(value).__name__}")
    if len(value) != number:
        raise BatchError(f"a batch handler must return {wanted}, got {len(value)}")
    return value
