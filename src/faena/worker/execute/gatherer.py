"""Where the jobs of batch tasks wait for one another, in one worker process.

Each attempt comes by itself, through the middleware around it, and waits here for its ending. A
batch is called when it is full, when its first job has waited long enough (a timer is set when that
one comes, and nothing looks meanwhile), or when jobs that wait have taken all slots. Shards of a
queue, whose slots are one pool, fill batches together; a tenant's own shard fills its own.

A worker that stops hands back what still waits. What is under way ends as any handler does.
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
from faena.worker.execute.attempt import Attempt, Stop
from faena.worker.execute.batch import Batch, Key, Runner
from faena.worker.execute.executor import Executor

_IN_TIME = 0.8
"""Which part of the time until a job expires it may wait for others: a timer may be late."""


class BatchRunner:
    """Between the executor of one shard and the batches of its pool."""

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
        """Attempts that can wait at a time: the slots of the pool."""

    def call(self, attempt: Attempt) -> tuple[asyncio.Future[Any], Callable[[], bool]]:
        """Join the others; returns the attempt's own ending and what takes it out."""
        return self._gatherer.join(attempt, self)

    def call_begins(self, attempt: Attempt, timeout_s: float) -> None:
        """The time of the attempt counts from now."""
        self._executor.restart(attempt, timeout_s)
        self._on_begin(attempt)

    def call_stops(self, attempt: Attempt) -> None:
        """The call was told to stop, for all of its jobs."""
        self._executor.expect_end(attempt)


class Gatherer:
    """The batches of one worker process, those that gather and those under way."""

    def __init__(
        self, runners: Mapping[str, Runner], on_waiting: Callable[[Batch], None] | None = None
    ) -> None:
        """`on_waiting` is told of each job that waits for more, instead of setting a timer."""
        self._runners = runners
        self._on_waiting = on_waiting or self._set_timer
        self._gathering: dict[Key, Batch] = {}
        self._waiting: Counter[str] = Counter()
        """Attempts in what gathers, by pool."""
        self._under_way: dict[asyncio.Task[None], Batch] = {}
        self._context = copy_context()  # no batch is called in the context of one of its jobs
        self._is_closed = False

    def runner(
        self,
        executor: Executor,
        pool: str,
        most: int = sys.maxsize,
        on_begin: Callable[[Attempt], None] = lambda _: None,
    ) -> BatchRunner:
        """A runner for the attempts of one shard, whose pool has `most` slots.

        `on_begin` is told of each attempt when its call begins.
        """
        return BatchRunner(self, executor, pool, most, on_begin)

    @property
    def calls(self) -> int:
        """Handlers under way."""
        return len(self._under_way)

    def name_of(self, task: object) -> str | None:
        """The batch task whose handler runs in a task of the loop."""
        return next((one.handler.name for at, one in self._under_way.items() if at is task), None)

    @property
    def held(self) -> int:
        """Attempts that wait, here or for a handler under way."""
        return sum(map(len, [*self._gathering.values(), *self._under_way.values()]))

    def join(
        self, attempt: Attempt, runner: BatchRunner
    ) -> tuple[asyncio.Future[Any], Callable[[], bool]]:
        """Have an attempt wait for others; with the last one that fits, the call begins."""
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
        """All slots are taken by jobs that wait: nobody else can come, for any of them."""
        for batch in [one for key, one in self._gathering.items() if key.pool == pool]:
            self.begin(batch)

    def _set_timer(self, batch: Batch) -> None:
        if batch.timer is None:
            loop = asyncio.get_running_loop()
            batch.timer = loop.call_later(
                batch.handler.wait_s, self.begin, batch, context=self._context
            )

    def _hurry(self, batch: Batch, attempt: Attempt) -> None:
        """A batch begins before one of its jobs expires."""
        if attempt.expires_s is None or batch.timer is None:
            return
        loop = asyncio.get_running_loop()
        at = loop.time() + attempt.expires_s * _IN_TIME
        if at < batch.timer.when():
            batch.timer.cancel()
            batch.timer = loop.call_at(at, self.begin, batch, context=self._context)

    def begin(self, batch: Batch) -> None:
        """Call the handler with what has come."""
        self._forget(batch)
        if batch.close():
            # Made by hand, for an eager task factory would run it inside the job that came last.
            task = asyncio.Task(
                batch.run(self._runners),
                loop=asyncio.get_running_loop(),
                context=self._context.copy(),
            )
            self._under_way[task] = batch
            task.add_done_callback(self._under_way.pop)

    def begin_next(self) -> bool:
        """Call with what has come, whatever is still missing; False when nothing waits."""
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
        """Hand back what waits, now and from now on; no attempt is used."""
        self._is_closed = True
        for batch in list(self._gathering.values()):
            for attempt in batch.attempts:
                attempt.end_early(Stop.SHUTDOWN)
