"""`@app.cron` and `@app.every`: give a task a schedule, and make a plain function a task first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, overload

import msgspec

from faena.declaring.handler import refuse_bare
from faena.errors import ConfigError, shown
from faena.job import Job
from faena.task import Task
from faena.values.duration import Duration

if TYPE_CHECKING:
    from faena.app import Faena
    from faena.queue import Queue

P = TypeVar("P")
R = TypeVar("R")

QUEUE: Final = "scheduler"
"""The default queue of tasks made from plain functions."""

MISSING: Final[Any] = object()
"""Means that no payload was given, which differs from None."""

_EXAMPLES: Final = {"cron": '"0 2 * * *"', "every": '"6h"'}

_encode = msgspec.json.Encoder().encode


class ScheduleFields(TypedDict, total=False):
    """The options of a schedule besides its timing; see `faena.scheduling.options.Terms`."""

    tz: str
    """The time zone of a cron expression, and of times without a zone; UTC by default."""
    jitter: Duration | None
    """The longest delay of each job; the delay is the same in every process."""
    start: datetime | str | None
    """The earliest instant; an interval counts from it."""
    end: datetime | str | None
    """The latest instant."""
    count: int | None
    """The number of instants to fire; no bound by default."""
    overlap: str
    """If its previous job is still live: "allow" (default), "skip", or "queue" at most one."""
    missed: str
    """After an outage, fire: "skip" (none), "latest" (default), "all", or such as "all(10)"."""
    tenant: str | None
    """The tenant of its jobs; none by default."""
    key: str | None
    """The key of its jobs; none by default."""
    priority: int | str
    """The priority of its jobs: 1 (soonest) to 100, or a level; the task's by default."""


class RecurringFields(ScheduleFields, total=False):
    """The options of a decorator besides the timing."""

    name: str
    """The name of the schedule; the task's by default."""
    queue: Queue | str
    """The queue for a plain function."""
    payload: Any


class TimedFields(ScheduleFields, total=False):
    """The same with the timing: exactly one of `cron`, `every` and `at`."""

    cron: str
    every: Duration
    at: datetime | str | Sequence[datetime | str]


class Recurring:
    """The decorator behind `@app.cron` and `@app.every`."""

    def __init__(self, app: Faena, timing: Mapping[str, Any], options: RecurringFields) -> None:
        for name, value in timing.items():
            refuse_bare(f"@app.{name}({_EXAMPLES[name]})", value)
        self._app = app
        self._name = options.get("name")
        self._queue = options.get("queue")
        self._payload = options.get("payload", MISSING)
        own = ("name", "queue", "payload")
        self._terms = {**timing, **{one: value for one, value in options.items() if one not in own}}

    @overload
    def __call__(self, target: Task[P, R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, target: Callable[[], Any], /) -> Task[None, Any]: ...
    @overload
    def __call__(self, target: Callable[[Job], Any], /) -> Task[None, Any]: ...
    @overload
    def __call__(self, target: Callable[..., Any], /) -> Task[Any, Any]: ...
    def __call__(self, target: Any, /) -> Any:
        """Give a task a schedule; a plain function becomes a task first."""
        task: Task[Any, Any] = target
        if not isinstance(target, Task):
            names = sys._getframe(1).f_locals  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            return self._make(target, names)
        if self._queue is not None:
            raise ConfigError(
                f"queue must be left out if a task is given, which has a queue, "
                f"got {shown(self._queue)}",
                field="queue",
                value=self._queue,
            )
        self._schedule(task)
        return task

    def _make(self, function: Callable[..., Any], names: Mapping[str, Any]) -> Task[Any, Any]:
        """Register a function and its schedule, or neither if one of them is refused."""
        is_new = self._queue in {None, QUEUE} and QUEUE not in self._app.queues
        queue = self._app.queue(QUEUE) if is_new else self._app.known(self._queue or QUEUE)
        before = dict(queue.tasks)
        try:
            task = queue.task.register(function, names)
            self._schedule(task)
        except BaseException:
            queue.tasks.clear()
            queue.tasks.update(before)
            if is_new:
                self._app.withdraw(queue)
            raise
        return task

    def _schedule(self, task: Task[Any, Any]) -> None:
        self._app.schedules.add(self._name or task.name, task, self._payload, self._terms)


def check_task(schedule: str, task: Any) -> None:
    """Refuse a plain function, or anything else that is not a task."""
    if not isinstance(task, Task):
        raise ConfigError(
            f"task of schedule {schedule!r} must be a task, got {shown(task)}: write @queue.task "
            f"above the function, or use @app.cron(…) or @app.every(…) instead of this call",
            field="task",
            value=task,
        )


def payload_text(task: Task[Any, Any] | None, payload: Any) -> str:
    """The encoded payload, checked if the task is known."""
    if task is None:
        return _encode(payload).decode()
    draft = task.draft() if payload is MISSING else task.draft(payload)
    return bytes(task.spec(draft).payload).decode()
