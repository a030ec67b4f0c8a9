"""`@queue.task` and `@queue.batch`: turn a function into a task and keep its types.

What `enqueue` takes and what `result()` returns are read from the function's own signature, by type
checkers here and at run time in `faena.declaring.signature`. A handler takes its payload, the job,
both in either order, or nothing; one for a batch takes a list of payloads, and may take that of
their jobs. Either may be a `def` or an `async def`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack, overload

from faena.errors import ConfigError, shown
from faena.job import Job
from faena.options import Run
from faena.outcomes import Discard, RateLimited, Snooze
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


class BatchFields(TaskFields, total=False):
    """The options of a batch task beside its size and its wait; see `BatchOptions`."""

    per_tenant: bool


Register = Callable[[Callable[..., Any], Mapping[str, Any], Mapping[str, Any]], Task[Any, Any]]
"""What a queue does with a function, its options and the names its annotations may use."""

Ending: TypeAlias = Exception | BaseException | Snooze | Discard | RateLimited
"""Named one by one, for a type checker takes out of a union only what is named there."""

Entries: TypeAlias = Sequence[R | Ending] | None
"""What a batch handler returns: for each payload its result, or what became of it instead."""


def refuse_task(target: Any) -> None:
    """Refuse what another decorator has made a task already."""
    if isinstance(target, Task):
        raise ConfigError(
            f"a task must be a function, got {shown(target)}, which is a task already; "
            f"write @app.cron(…) or @app.every(…) above @queue.task, not below; a hook such as "
            f"@task.on_dead needs no @queue.task",
            field="task",
            value=target,
        )


class Registrar:
    """The decorator of one queue: used plainly, or called with options first.

    A handler of the job alone is a `Task[Job, …]`: a type checker cannot tell it from one whose
    payload has that type, and `enqueue` knows that nobody sends jobs.
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
        """Register the function, or remember the options for the function that follows."""
        if function is None:
            return Registrar(self._register, options)
        # Annotations may name classes that are local to the decorating function.
        names = sys._getframe(1).f_locals  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return self.register(function, names, **options)

    def register(
        self, function: Callable[..., Any], names: Mapping[str, Any], **options: Unpack[TaskFields]
    ) -> Task[Any, Any]:
        """The same for decorators of others, who know the names."""
        refuse_task(function)
        return self._register(function, {**self._options, **options}, names)


class BatchRegistrar:
    """The decorator of one queue for a handler of many jobs, its options given.

    The task is typed by one job: what `enqueue` takes is an element of the handler's list, and a
    result is an entry of the list that it returns.
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
