"""Warns of handlers that do not mark their calls to upstreams, when that made a difference.

A handler that marks no call is the call itself. Two things are then not as its author may expect:
an error counts for none of several upstreams, and an upstream's timeout does not cut it off.
Neither can be seen when the task is declared, because only a run shows whether calls are marked.
"""

from __future__ import annotations

import logging

from faena.resilience.sorting import sort_error
from faena.values.duration import describe
from faena.worker.execute.attempt_state import Attempt, Stop
from faena.worker.execute.failure import WorkerDied

_log = logging.getLogger("faena.worker")


class Unmarked:
    """The warnings of one queue, one for each task."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._warned: set[str] = set()

    def look_at(self, attempt: Attempt, error: BaseException) -> None:
        """Warn if an attempt has ended with an error and has marked none of its calls."""
        task, upstreams = attempt.handler.name, attempt.handler.upstreams
        if not upstreams or attempt.called is not None or task in self._warned:
            return
        words = _about_many(attempt, error) if len(upstreams) > 1 else _about_timeout(attempt)
        if words:
            self._warned.add(task)
            known = {"queue": self._queue, "task": task, "job_id": attempt.claim.id}
            _log.warning("queue %s: task %s %s", self._queue, task, words, extra=known)


def _about_many(attempt: Attempt, error: BaseException) -> str:
    """Errors that say nothing of an upstream need no attribution."""
    is_error = not isinstance(error, WorkerDied) and sort_error(error) is not None
    if attempt.stop is not Stop.TIMEOUT and (attempt.stop or not is_error):
        return ""
    names = ", ".join(one.name for one in attempt.handler.upstreams)
    return (
        f"names several upstreams ({names}) and has marked no call, so its error counts for none "
        f"of their breakers: write {_marking(attempt)} around each call"
    )


def _about_timeout(attempt: Attempt) -> str:
    (upstream,) = attempt.handler.upstreams
    timeout_us = round(attempt.timeout_s * 1e6)
    if attempt.stop is not Stop.TIMEOUT or upstream.timeout_us >= timeout_us:
        return ""
    shorter = describe(upstream.timeout_us)
    return (
        f"was stopped after {describe(timeout_us)}, its own timeout; that of upstream "
        f"{upstream.name}, {shorter}, is for calls that are marked: write {_marking(attempt)} "
        f'around the call, or give the task timeout="{shorter}"'
    )


def _marking(attempt: Attempt) -> str:
    word = "async with" if attempt.handler.runner == "async" else "with"
    return f"`{word} {attempt.handler.upstreams[0].name}.call():`"
