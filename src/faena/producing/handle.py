"""A handle to one job: wait for it, read it, change it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Generic, TypeVar

from faena.codec import Codec, of_result
from faena.engine.requester import on_behalf
from faena.errors import (
    ArgumentError,
    JobCancelled,
    JobFailed,
    JobHandedOver,
    JobTimedOut,
    PayloadError,
    arguments,
)
from faena.inspection.explanation import Explanation, with_batch
from faena.job import JobView
from faena.options import priority_of
from faena.states import State
from faena.values.duration import Duration, to_s, to_us

if TYPE_CHECKING:
    from faena.app import Faena

R = TypeVar("R")


class Handle(Generic[R]):
    """One job of a queue: read it, wait for its result, change it."""

    def __init__(
        self, app: Faena, queue: str, job_id: str, result: Codec[R], lane: str | None = None
    ) -> None:
        """Without `lane`, it is the first job of that id in any shard of the queue."""
        self._app = app
        self._lane = lane
        self.queue = queue
        self.id = job_id
        self._result = result

    async def state(self) -> State | None:
        """The state of the job; None if it is unknown, or was removed by retention."""
        view = await self.view()
        return view.state if view else None

    async def view(self) -> JobView | None:
        """Everything that is stored about the job, in the broker or else in its history."""
        inspector = (await self._app.runtime()).inspector
        return await inspector.job(self.queue, self.id, lane=self._lane, is_past_too=True)

    async def explain(self) -> Explanation:
        """Why the job is where it is, what must happen next and when it should start, or how it
        ended; made to be printed.
        """
        inspector = (await self._app.runtime()).inspector
        told = await inspector.explain(self.queue, self.id, self._lane)
        queue = self._app.queues.get(self.queue)
        handlers = {} if queue is None or queue.is_remote else queue.handlers
        handler = handlers.get(told.task or "")
        return with_batch(told, handler.batch) if handler and handler.batch else told

    async def result(self, timeout: timedelta | str | None = None) -> R:
        """Wait for the job, through outages of the broker, and return its result.

        Raises JobFailed (JobTimedOut, JobCancelled) if it did not complete, JobHandedOver if a
        fallback gave it to another task without a result and the handler's return type is not
        None, ResultTimeout if it is not finished in time, JobNotFound if retention has removed it,
        and PayloadError if the result does not match the handler's return type.
        """
        with arguments():
            wait_s = None if timeout is None else to_s("timeout", timeout)
        inspector = (await self._app.runtime()).inspector
        view = await inspector.finished(self.queue, self.id, wait_s, self._lane)
        if view.state is not State.COMPLETED:
            raise _failure(view)
        try:
            return self._result.decode(view.result or b"null")
        except PayloadError as error:
            raise of_result(error) if view.result else _without(view) from None

    async def cancel(self, *, by: str | None = None) -> str:
        """Cancel the job: "cancelled", or "asked" if it runs and is being stopped.

        `by`, here and below, names who does this; the event records it.
        """
        with on_behalf(by):
            return await (await self._app.runtime()).client.cancel(self.queue, self.id, self._lane)

    async def rerun(self, *, by: str | None = None) -> None:
        """Run a finished job again: the same job, with fresh attempts.

        Refused if the job was retried, discarded or resolved at the dead-letter desk.
        """
        with on_behalf(by):
            await (await self._app.runtime()).client.rerun(self.queue, self.id, self._lane)

    async def promote(self, *, by: str | None = None) -> None:
        """Run a delayed job now."""
        with on_behalf(by):
            await (await self._app.runtime()).client.promote(self.queue, self.id, self._lane)

    async def remove(self, *, by: str | None = None) -> None:
        """Remove the job; refused if it runs, or if a flow or a group waits for it."""
        with on_behalf(by):
            await (await self._app.runtime()).client.remove(self.queue, self.id, self._lane)

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
            await client.change(self.queue, self.id, self._lane, delay_us=delay_us, priority=number)

    def __repr__(self) -> str:
        return f"<Handle {self.queue}/{self.id}>"


def _without(view: JobView) -> JobHandedOver | PayloadError:
    """Why a completed job has no result."""
    if view.handed_to:
        return JobHandedOver(
            f"job {view.id} has no result: its fallback handed it over to {view.fallback}, as job "
            f"{view.handed_to}"
        )
    whose = f"its fallback {view.fallback}" if view.fallback else "the handler"
    return PayloadError(
        f"job {view.id} must have a result of the handler's return type, has none: {whose} "
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
