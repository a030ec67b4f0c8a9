"""What became of a job that does not wait any more: it runs, or how it ended."""

from __future__ import annotations

from typing import Any

from faena.inspection.instant import instant, number
from faena.job import JobView
from faena.states import State
from faena.values.view import View

_LONGEST = 100
"""Characters of progress that are shown."""


class DeskNote(View, frozen=True, kw_only=True):
    """What the dead-letter desk knows of a dead job."""

    status: str
    """pending, retried, discarded or resolved."""
    retry_at: int | None
    """When it is retried automatically."""
    retried_as: str | None
    reason: str | None = None
    by: str | None = None


class Past(View, frozen=True, kw_only=True):
    """The history of a job that no longer waits."""

    at: int | None
    """When it was claimed, if it is running; otherwise when it finished."""

    attempts_made: int
    losses: int
    worker: str | None
    error: str | None
    """Name and message of its last error."""
    fallback: str | None = None
    """The fallback that ended it; see `JobView`."""
    handed_to: str | None = None
    """The job that it was handed over to."""
    lease_until: int | None = None
    """Of a running job: when another worker may rescue it, if this one does not renew its lease."""
    is_stopping: bool = False
    """It runs, and its cancellation was requested."""
    is_expired: bool = False
    """It was cancelled because it did not start in time."""
    progress: Any = None
    """What the handler of a running job has last reported."""
    desk: DeskNote | None = None
    """What was decided about a dead job."""

    def words(self, state: State) -> str:
        """What happened, as the end of a sentence."""
        at = "" if self.at is None else f" {instant(self.at)}"
        failed = self.attempts_made - (state is State.COMPLETED)
        notes = [number(failed, "failed attempt")] if failed else []
        notes += [number(self.losses, "lost worker")] if self.losses else []
        behind = f", after {' and '.join(notes)}" if notes else ""
        if state is State.RUNNING:
            by = f" on worker {self.worker}" if self.worker else ""
            return f"runs since{at}{by}{behind}{self._while_running()}"
        said = {State.COMPLETED: "completed", State.DEAD: "died", State.CANCELLED: "was cancelled"}
        why = f" of {self.error}" if self.error and state is State.DEAD else ""
        return f"{said[state]}{at}{self._through(state)}{why}{behind}"

    def _while_running(self) -> str:
        progress = "" if self.progress is None else f"; progress: {_short(self.progress)}"
        return f"{progress}{'; it is to be cancelled' if self.is_stopping else ''}"

    def _through(self, state: State) -> str:
        if self.fallback is None or state is not State.COMPLETED:
            return ""
        handed = f", which made job {self.handed_to}" if self.handed_to else ""
        return f" through its fallback {self.fallback}{handed}"


def past_of(view: JobView, desk: DeskNote | None = None) -> Past:
    """What is known of a job that does not wait."""
    last = view.errors[-1] if view.errors else None
    return Past(
        at=view.finished_at or view.started_at,
        attempts_made=view.attempts_made,
        losses=view.losses,
        worker=view.worker,
        error=f"{last.name}: {last.message}".split("\n")[0] if last else None,
        fallback=view.fallback,
        handed_to=view.handed_to,
        lease_until=view.lease_until,
        is_stopping=view.is_stopping,
        is_expired=last is not None and last.code == "EXPIRED",
        progress=view.progress,
        desk=desk,
    )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
