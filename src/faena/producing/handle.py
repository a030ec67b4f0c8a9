"""One job, seen from outside: to wait for, to look at, to change."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Generic, TypeVar

from faena.codec import Codec, of_result
from faena.engine.requester import on_behalf
from faena.errors import ArgumentError, JobCancelled, JobFailed, JobTimedOut, PayloadError
from faena.inspection.explanation import Explanation
from faena.job import JobView
from faena.options import priority_of
from faena.states import State
from faena.values.duration import Duration, to_s, to_us

if TYPE_CHECKING:
    from faena.app import Faena

R = TypeVar("R")


class Handle(Generic[R]):
    """One job, from outside."""

    def __init__(self, app: Faena, queue: str, job_id: str, result: Codec[R]) -> None:
        self._app = app
        self.queue = queue
        self.id = job_id
        self._result = result

    async def state(self) -> State | None:
        """Where the job is now; None when it is unknown or was pruned."""
        view = await self.view()
        return view.state if view else None

    async def view(self) -> JobView | None:
        """Everything known of the job."""
        return await (await self._app.runtime()).inspector.job(self.queue, self.id)

    async def explain(self) -> Explanation:
        """Why the job has not started, and when it should, or what became of it; print it."""
        return await (await self._app.runtime()).inspector.explain(self.queue, self.id)

    async def result(self, timeout: timedelta | str | None = None) -> R:
        """Wait for the job and return what its handler returned; outages are waited out.

        Raises JobFailed (JobTimedOut, JobCancelled) when it did not complete, ResultTimeout when it
        is not finished in time, JobNotFound when retention kept nothing of it, and PayloadError
        when what it returned is not what its annotation says.
        """
        wait_s = None if timeout is None else to_s("timeout", timeout)
        inspector = (await self._app.runtime()).inspector
        view = await inspector.finished(self.queue, self.id, wait_s)
        if view.state is not State.COMPLETED:
            raise _failure(view)
        try:
            return self._result.decode(view.result or b"null")
        except PayloadError as error:
            raise of_result(error) if view.result else _dropped(view) from None

    async def cancel(self, *, by: str | None = None) -> str:
        """Cancel the job: "cancelled", or "asked" when it runs and is being stopped.

        `by`, here and below, is who asks for it: the event says so.
        """
        with on_behalf(by):
            return await (await self._app.runtime()).client.cancel(self.queue, self.id)

    async def rerun(self, *, by: str | None = None) -> None:
        """Run a finished job again: the same job, with fresh attempts.

        Not one that was dealt with at the dead-letter desk.
        """
        with on_behalf(by):
            await (await self._app.runtime()).client.rerun(self.queue, self.id)

    async def promote(self, *, by: str | None = None) -> None:
        """Run a delayed job now."""
        with on_behalf(by):
            await (await self._app.runtime()).client.promote(self.queue, self.id)

    async def remove(self, *, by: str | None = None) -> None:
        """Remove the job for good; not one that runs, or that a flow or a group waits for."""
        with on_behalf(by):
            await (await self._app.runtime()).client.remove(self.queue, self.id)

    async def change(
        self,
        *,
        delay: Duration | None = None,
        priority: int | str | None = None,
        by: str | None = None,
    ) -> None:
        """Change when a waiting job runs, or its priority."""
        if delay is None and priority is None:
            raise ArgumentError("change must be given a delay or a priority, got neither")
        delay_us = None if delay is None else to_us("delay", delay)
        number = None if priority is None else priority_of(priority)
        with on_behalf(by):
            client = (await self._app.runtime()).client
            await client.change(self.queue, self.id, delay_us=delay_us, priority=number)

    def __repr__(self) -> str:
        return f"<Handle {self.queue}/{self.id}>"


def _dropped(view: JobView) -> PayloadError:
    return PayloadError(
        f"job {view.id} must have a result of the handler's return type, has none: the handler "
        f"returned None, or a value that could not be stored; see the job's log",
        op="result",
    )


def _failure(view: JobView) -> JobFailed:
    last = view.errors[-1] if view.errors else None
    if view.state is State.CANCELLED:
        is_late = last is not None and last.code == "EXPIRED"
        words = "expired before it could run" if is_late else "was cancelled"
        return JobCancelled(f"job {view.id} {words}", error=last)
    kind = JobTimedOut if last is not None and last.code == "TIMEOUT" else JobFailed
    words = f"{last.name}: {last.message}\n{last.stack or ''}" if last else "no error was recorded"
    return kind(f"job {view.id} is dead: {words.rstrip()}", error=last)
