"""`@queue.task`: turns a function into a task and keeps its types.

What `enqueue` takes and what `result()` returns are read from the function's own signature, by type
checkers here and at run time in `faena.handler`. A handler takes its payload, the job, both in
either order, or nothing; it may be a `def` or an `async def`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypedDict, TypeVar, Unpack, overload

from faena.duration import Duration
from faena.job import Job
from faena.options import Run
from faena.retry import Retry
from faena.task import Task

P = TypeVar("P")
R = TypeVar("R")


class TaskFields(TypedDict, total=False):
    """The options of a task; see `TaskOptions`."""

    name: str
    timeout: Duration
    retry: Retry
    run: Run
    priority: int | str
    version: int


Register = Callable[[Callable[..., Any], TaskFields, Mapping[str, Any]], Task[Any, Any]]
"""What a queue does with a function, its options and the names its annotations may use."""


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
        return self._register(function, {**self._options, **options}, names)
