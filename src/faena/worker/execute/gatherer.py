"""Collects jobs of batch tasks into batches, in one worker process.

Each attempt arrives by itself, through its middleware, and waits here for its ending. A batch is
called when it is full, when its first job has waited long enough (one timer, no polling), or when
waiting jobs have taken all slots. Shards with a common pool of slots fill batches together; a
dedicated shard fills its own.

A stopping worker releases the jobs that still wait. Running calls end like any handler.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any

from faena.errors import InternalError
from faena.worker.execute.attempt_state import Attempt, Stop
from faena.worker.execute.batch import Batch, Key, Runner
from faena.worker.execute.executor import Executor
from faena.worker.execute.traced import Traced

_IN_TIME = 0.8
"""The part of the time until its expiry that a job may wait for others: a timer may be late."""


class BatchRunner:
    """Connects the executor of one shard with the batches of its pool."""

    def __init__(
        self,
        gatherer: Gatherer,
        executor: Executor,
        pool: str,
        most: int,
        on_begin: Callable[[Attempt], None],
    ) -> None:
        self._gatherer = gatherer
        self._executor = executor
        self._on_begin = on_begin
        self.pool = pool
        self.most = most
        """The most attempts that can wait: the slots of the pool."""

    def call(self, attempt: Attempt) -> tuple[asyncio.Future[Any], Callable[[], bool]]:
        """Join a batch; returns the future of the ending, and a function that leaves the batch."""
        return self._gatherer.join(attempt, self)

    def call_begins(self, attempt: Attempt, timeout_s: float) -> None:
        """Start the attempt's time limit again, from now."""
        self._executor.time_limits.restart(attempt, timeout_s)
        self._on_begin(attempt)

    def call_stops(self, attempt: Attempt) -> None:
        """The call was told to stop for all of its jobs."""
        self._executor.time_limits.expect_end(attempt)


class Gatherer:
    """The batches of one worker process, gathering and running."""

    def __init__(
        self,
        runners: Mapping[str, Runner],
        on_waiting: Callable[[Batch], None] | None = None,
        traced: Traced | None = None,
    ) -> None:
        """`on_waiting` is called for each job that waits for others, and replaces the timer;
        `traced` has spans around calls."""
        self._runners, self._traced = runners, traced
        self._on_waiting = on_waiting or self._set_timer
        self._gathering: dict[Key, Batch] = {}
        self._waiting: Counter[str] = Counter()
        """Pool → attempts in gathering batches."""
        self._under_way: dict[asyncio.Task[None], Batch] = {}
        self._context = copy_context()  # a batch must not run in the context of one of its jobs
        self._is_closed = False

    def runner(
        self,
        executor: Executor,
        pool: str,
        most: int = sys.maxsize,
        on_begin: Callable[[Attempt], None] = lambda _: None,
    ) -> BatchRunner:
        """A runner for the attempts of one shard, whose pool has `most` slots.

        `on_begin` is called with each attempt when its call starts.
        """
        return BatchRunner(self, executor, pool, most, on_begin)

    @property
    def calls(self) -> int:
        """The number of running calls."""
        return len(self._under_way)

    def name_of(self, task: object) -> str | None:
        """The name of the batch task whose handler an asyncio task runs, if any."""
        return next((one.handler.name for at, one in self._under_way.items() if at is task), None)

    @property
    def held(self) -> int:
        """Attempts that wait for a call to start or to end."""
        return sum(map(len, [*self._gathering.values(), *self._under_way.values()]))

    def join(
        self, attempt: Attempt, runner: BatchRunner
    ) -> tuple[asyncio.Future[Any], Callable[[], bool]]:
        """Add an attempt to a batch; a full batch is called."""
        batch = self._batch_for(attempt, runner.pool)
        ending, leave = batch.join(attempt, runner), partial(self._leave, batch, attempt)
        ending.add_done_callback(lambda ended: ended.cancelled() and leave())  # by a middleware
        self._waiting[runner.pool] += 1
        attempt.interrupt = leave
        if self._is_closed:
            attempt.end_early(Stop.SHUTDOWN)
        elif len(batch) >= batch.size:
            self.begin(batch)
        elif self._waiting[runner.pool] >= runner.most:
            self._begin_all(runner.pool)
        else:
            self._on_waiting(batch)
            self._hurry(batch, attempt)
        return ending, leave

    def _batch_for(self, attempt: Attempt, pool: str) -> Batch:
        options = attempt.handler.batch
        if options is None:
            raise InternalError(f"task {attempt.handler.name} must be a batch task, and is not")
        tenant = attempt.job.tenant if options.per_tenant else None
        key = Key(pool, attempt.handler.name, tenant)
        batch = self._gathering.get(key)
        if batch is None:
            batch = self._gathering[key] = Batch(key, attempt.handler, options.size)
        return batch

    def _leave(self, batch: Batch, attempt: Attempt) -> bool:
        before = len(batch)
        is_over = batch.leave(attempt)
        self._waiting[batch.key.pool] -= before - len(batch)
        if not len(batch):
            self._forget(batch)
        return is_over

    def _begin_all(self, pool: str) -> None:
        """Call all batches of a pool whose slots are taken by waiting jobs: no other can join."""
        for batch in [one for key, one in self._gathering.items() if key.pool == pool]:
            self.begin(batch)

    def _set_timer(self, batch: Batch) -> None:
        if batch.timer is None:
            loop = asyncio.get_running_loop()
            batch.timer = loop.call_later(
                batch.handler.wait_s, self.begin, batch, context=self._context
            )

    def _hurry(self, batch: Batch, attempt: Attempt) -> None:
        """Make sure that a batch is called before one of its jobs expires."""
        if attempt.expires_s is None or batch.timer is None:
            return
        loop = asyncio.get_running_loop()
        at = loop.time() + attempt.expires_s * _IN_TIME
        if at < batch.timer.when():
            batch.timer.cancel()
            batch.timer = loop.call_at(at, self.begin, batch, context=self._context)

    def begin(self, batch: Batch) -> None:
        """Call the handler with the jobs of a batch."""
        self._forget(batch)
        if batch.close():
            # Not `create_task`: an eager task factory would run it inside the job that joined last.
            running = batch.run(self._runners)
            task = asyncio.Task(
                self._traced.call(batch, running) if self._traced else running,
                loop=asyncio.get_running_loop(),
                context=self._context.copy(),
            )
            self._under_way[task] = batch
            task.add_done_callback(self._under_way.pop)

    def begin_next(self) -> bool:
        """Call the next batch, even if it is not full; False when none waits."""
        batch = next(iter(self._gathering.values()), None)
        if batch is not None:
            self.begin(batch)
        return batch is not None

    def _forget(self, batch: Batch) -> None:
        if batch.timer is not None:
            batch.timer.cancel()
        if self._gathering.get(batch.key) is batch:
            del self._gathering[batch.key]
            self._waiting[batch.key.pool] -= len(batch)

    def close(self) -> None:
        """Release waiting jobs, now and from now on; they use no attempt."""
        self._is_closed = True
        for batch in list(self._gathering.values()):
            for attempt in batch.attempts:
                attempt.end_early(Stop.SHUTDOWN)
