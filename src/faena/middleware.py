"""The hook around every enqueue and every execution.

A middleware subclasses `Middleware` and overrides one method or both; the first one given to the
app is the outermost. It may observe, measure, add headers, or refuse by raising. It must call
`call_next`, or the job is not sent, or not run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from faena.job import Job, Spec

Execute = Callable[[Job], Awaitable[Any]]
Enqueue = Callable[[str, Spec], Awaitable[Any]]


class Middleware:
    """Wraps enqueue and execute; the defaults only call the next one."""

    async def enqueue(self, queue: str, spec: Spec, call_next: Enqueue) -> Any:
        """Around sending one job; it may add to `spec.headers`."""
        return await call_next(queue, spec)

    async def execute(self, job: Job, call_next: Execute) -> Any:
        """Around one attempt; its return value is the job's result, its exception the failure."""
        return await call_next(job)


def wrap_execute(middleware: Sequence[Middleware], innermost: Execute) -> Execute:
    """The chain around one attempt."""
    chain = innermost
    for layer in reversed(middleware):
        chain = partial(_execute, layer, chain)
    return chain


def wrap_enqueue(middleware: Sequence[Middleware], innermost: Enqueue) -> Enqueue:
    """The chain around sending one job."""
    chain = innermost
    for layer in reversed(middleware):
        chain = partial(_enqueue, layer, chain)
    return chain


async def _execute(layer: Middleware, chain: Execute, job: Job) -> Any:
    return await layer.execute(job, chain)


async def _enqueue(layer: Middleware, chain: Enqueue, queue: str, spec: Spec) -> Any:
    return await layer.enqueue(queue, spec, chain)
