"""A queue whose jobs are done in batches, and a diary of the calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from faena import Faena, Job, Queue, Retry, Task
from faena.worker.options import WorkerOptions
from faena.worker.worker import Worker

Answer = Callable[[list[Any], list[Job]], Any]

QUICK = Retry.fixed("10ms", attempts=2, floor="0s", jitter=0)


class BatchQueue:
    """`task` takes any payload; what it answers is the test's choice, by default the payloads."""

    def __init__(self, queue: Queue, answer: Answer | None = None, **options: Any) -> None:
        self.queue = queue
        self.calls: list[list[Any]] = []
        """The payloads of each call, in the order the calls began."""
        self.jobs: list[list[Job]] = []
        self._answer = answer or (lambda items, _jobs: items)
        self.task: Task[Any, Any] = queue.batch(name="bulk", **options)(self._handle)

    async def _handle(self, items: list[Any], jobs: list[Job]) -> Any:
        self.calls.append(items)
        self.jobs.append(jobs)
        answer = self._answer(items, jobs)
        return await answer if asyncio.iscoroutine(answer) else answer

    @property
    def sizes(self) -> list[int]:
        return [len(call) for call in self.calls]


@asynccontextmanager
async def working(app: Faena, **options: Any) -> AsyncIterator[Worker]:
    """A worker in the test's own loop, stopped at the end unless it has stopped before."""
    worker = await app.worker(options=WorkerOptions(**options))
    running = asyncio.create_task(worker.run())
    try:
        await worker.serving.wait()
        yield worker
    finally:
        worker.stop()
        with suppress(asyncio.CancelledError):
            await running


async def results(receipts: Sequence[Any]) -> list[Any]:
    """What became of each job, its result or its error."""
    waiting = [receipt.handle.result(timeout="60s") for receipt in receipts]
    return await asyncio.gather(*waiting, return_exceptions=True)
