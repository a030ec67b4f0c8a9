"""`@queue.task` and `@queue.batch`: turn a function into a task and keep its types.

The types of `enqueue` and `result()` come from the function's own signature: for type checkers
here, at run time in `faena.declaring.signature`. A handler takes its payload, the job, both in
either order, or nothing. A batch handler takes a list of payloads, and may take a list of their
jobs. Both may be a `def` or an `async def`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack, overload

from faena.errors import ConfigError, shown
from faena.job import Job
from faena.options import Run
from faena.outcomes import Discard, RateLimited, Snooze
from faena.resilience.escalation import Escalate
from faena.resilience.fallback import Fallback, Manual
from faena.resilience.upstream import Upstream
from faena.retry import Retry
from faena.task import Task
from faena.values.duration import Duration

P = TypeVar("P")
R = TypeVar("R")


class TaskFields(TypedDict, total=False):
    """The options of a task; see `TaskOptions`."""

    name: str
    timeout: Duration
    retry: Retry
    attempts: int
    run: Run
    priority: int | str
    version: int
    cost: Mapping[str, int]
    upstreams: Sequence[Upstream]
    cheaper: Callable[..., Awaitable[Any]]
    frugal_priority: int | str
    fallback: Fallback | Escalate | Manual | Task[Any, Any] | Callable[..., Any]


class BatchFields(TaskFields, total=False):
    """The options of a batch task besides its size and its wait; see `BatchOptions`."""

    per_tenant: bool


Register = Callable[[Callable[..., Any], Mapping[str, Any], Mapping[str, Any]], Task[Any, Any]]
"""Registers a function, with its options and the names that its annotations may use."""

Ending: TypeAlias = Exception | BaseException | Snooze | Discard | RateLimited
"""Listed one by one, because a type checker removes only listed types from a union."""

Entries: TypeAlias = Sequence[R | Ending] | None
"""The return type of a batch handler: for each payload, its result or another ending."""


def refuse_task(target: Any) -> None:
    """Refuse a function that another decorator has already made a task."""
    if isinstance(target, Task):
        raise ConfigError(
            f"a task must be a function, got {shown(target)}, which is a task already; "
            f"write @app.cron(…) or @app.every(…) above @queue.task, not below; a hook such as "
            f"@task.on_dead needs no @queue.task",
            field="task",
            value=target,
        )


class Registrar:
    """The decorator of one queue: used directly, or called with options first.

    A handler that takes only the job is typed as `Task[Job, …]`, because a type checker cannot tell
    it from a handler whose payload is a `Job`; `enqueue` handles this case.
    """

    def __init__(self, register: Register, options: TaskFields) -> None:
        self._register = register
        self._options = options

    @overload
    def __call__(self, function: Callable[[P, Job], Awaitable[R] | R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[[Job, P], Awaitable[R] | R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[[P], Awaitable[R] | R], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[[], Awaitable[R] | R], /) -> Task[None, R]: ...
    @overload
    def __call__(self, /, **options: Unpack[TaskFields]) -> Registrar: ...
    def __call__(
        self, function: Callable[..., Any] | None = None, /, **options: Unpack[TaskFields]
    ) -> Any:
        """Register the function, or keep the options for the next function."""
        if function is None:
            return Registrar(self._register, options)
        # Annotations may name classes that are local to the decorating function.
        names = sys._getframe(1).f_locals  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return self.register(function, names, **options)

    def register(
        self, function: Callable[..., Any], names: Mapping[str, Any], **options: Unpack[TaskFields]
    ) -> Task[Any, Any]:
        """The same for other decorators, which give the names."""
        refuse_task(function)
        return self._register(function, {**self._options, **options}, names)


class BatchRegistrar:
    """The decorator of one queue for batch handlers, with its options.

    The task has the types of one job: `enqueue` takes an element of the handler's list, and a
    result is an entry of the returned list.
    """

    def __init__(self, register: Register, options: Mapping[str, Any]) -> None:
        self._register = register
        self._options = options

    @overload
    def __call__(
        self, function: Callable[[list[P], list[Job]], Awaitable[None] | None], /
    ) -> Task[P, None]: ...
    @overload
    def __call__(
        self, function: Callable[[list[P]], Awaitable[None] | None], /
    ) -> Task[P, None]: ...
    @overload
    def __call__(
        self, function: Callable[[list[P], list[Job]], Awaitable[Entries[R]] | Entries[R]], /
    ) -> Task[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[[list[P]], Awaitable[Entries[R]] | Entries[R]], /
    ) -> Task[P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        """Register the function."""
        refuse_task(function)
        names = sys._getframe(1).f_locals  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return self._register(function, self._options, names)
