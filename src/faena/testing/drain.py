"""Runs ready jobs in the test's own event loop, with the worker's executor.

No thread renews leases, and nothing waits for work. The test's clock does not move while a handler
runs, so leases do not expire. The drain ends when no job is left that may run.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from faena.engine import Engine, envelope
from faena.engine.scripts import Claim, Exchanged, Late, Settlement, Turn
from faena.flows.relay import Relay
from faena.middleware import Middleware
from faena.options import DeadLetters
from faena.outcomes import ErrorRecord, Expired, Outcome
from faena.producing.batcher import CallIds
from faena.queue import Queue
from faena.resilience.fallback import tell_of_job
from faena.resilience.gate import Gate
from faena.scheduling.scheduler import Scheduler
from faena.sharding.router import Routers
from faena.testing.clock import Clock
from faena.testing.inline import WORKER, Runners, Witness, result_of
from faena.testing.report import Ran, ending_of
from faena.worker.execute.admission import Admission
from faena.worker.execute.attempt_state import Attempt, Stop
from faena.worker.execute.executor import Executor
from faena.worker.execute.fallback_run import Aid
from faena.worker.execute.gatherer import Gatherer
from faena.worker.execute.notes import QueueNotes
from faena.worker.leases import Leases

if TYPE_CHECKING:
    from faena.telemetry.tracing.tracing import Tracing

_LOOK_AGAIN_S = 0.02
"""The pause between two looks for jobs that running handlers may have enqueued."""

_MANY_INSTANTS = 500
"""Instants of schedules after which a drain warns that they make it long."""

_LEASE_S = 86_400.0
_END_WITHIN_S = 1.0


class Drain:
    """Claims, runs and settles jobs until none is left that may run."""

    def __init__(  # noqa: PLR0913 - its parts, those of a worker among them
        self,
        engine: Engine,
        routers: Routers,
        relay: Relay,
        clock: Clock,
        middleware: Sequence[Middleware],
        scheduler: Scheduler | None,
        *,
        dead_letters: DeadLetters,
        at_once: int,
        most: int,
        gate: Gate | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """`gate` is where jobs ask for calls to upstreams, if the app has some."""
        self._tracing = tracing
        self._engine = engine
        self._gate = gate
        self._routers = routers
        self._relay = relay
        self._clock = clock
        self._scheduler = scheduler
        self._fired_at = 0
        self._due_at: int | None = None
        self._instants = 0
        self._middleware = middleware
        self._dead_letters = dead_letters
        self._at_once = at_once
        self._most = most
        self._lines: dict[str, _Line] = {}
        self._news = asyncio.Event()
        self._gatherer: Gatherer
        self.runs: list[Ran] = []

    async def run(self, queues: Iterable[Queue], until_us: int) -> None:
        """Drain the queues; move the clock up to `until_us` whenever nothing is ready."""
        with Runners(self._at_once, lambda _batch: self._news.set(), self._tracing) as runners:
            self._gatherer = runners.gatherer
            for queue in queues:
                for shard in await self._routers.of(queue.name).names():
                    self._lines[shard] = _Line(
                        self._engine,
                        queue,
                        shard,
                        runners=runners,
                        middleware=self._middleware,
                        dead_letters=self._dead_letters,
                        on_ran=self._ended,
                        gate=self._gate,
                    )
            listening = await self._engine.listen(stop=self._stop)
            try:
                await self._until_nothing_is_left(until_us)
            finally:
                await listening.close()
                await self._hand_back()

    async def _until_nothing_is_left(self, until_us: int) -> None:
        while True:
            self._news.clear()
            await self._fire()
            if await self._claim():
                self._refuse_endlessness()
                continue
            if self._running < self._at_once and self._gatherer.begin_next():
                continue
            if self._running:
                await self._wait()
            elif not self._skip_ahead(until_us):
                return

    async def _fire(self) -> None:
        """Fire schedules whenever time has passed."""
        now = self._clock()
        if self._scheduler is not None and now != self._fired_at:
            self._due_at = await self._scheduler.run_once()
            self._fired_at = now

    @property
    def _running(self) -> int:
        """Running handlers: a batch counts as one, jobs that wait for a batch do not count."""
        jobs = sum(len(line.executor.running) for line in self._lines.values())
        return jobs - self._gatherer.held + self._gatherer.calls

    async def _claim(self) -> bool:
        """One exchange with each queue that needs it; returns whether anything happened."""
        has_news = False
        if self._gate is not None:
            self._gate.forget()
        for shard, line in self._lines.items():
            free = max(0, self._at_once - self._running)
            if free or line.settled:
                answer = await line.exchange(free)
                if answer.has_outbox:
                    await self._relay.carry(shard)
                has_news = has_news or answer.has_outbox or bool(answer.claimed or answer.expired)
        return has_news

    def _ended(self, ran: Ran) -> None:
        self.runs.append(ran)
        self._news.set()

    def _refuse_endlessness(self) -> None:
        if len(self.runs) >= self._most:
            raise AssertionError(
                f"a drain must end, got {self._most} attempts and jobs that are still ready; "
                f"the last was {self.runs[-1]}"
            )

    async def _wait(self) -> None:
        is_full = self._running >= self._at_once
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if is_full else _LOOK_AGAIN_S):
                await self._news.wait()

    def _skip_ahead(self, until_us: int) -> bool:
        """Move the clock to the next instant at which anything can change; False without one."""
        instants = [line.next_at for line in self._lines.values() if line.next_at]
        instants += [] if self._due_at is None else [self._due_at]
        if not instants or min(instants) > until_us:
            return False
        self._count(min(instants))
        self._clock.advance_to(max(min(instants), self._clock()))
        return True

    def _count(self, instant: int) -> None:
        """Warn once that schedules make the drain long."""
        self._instants += instant == self._due_at
        if self._instants == _MANY_INSTANTS and instant == self._due_at:
            warnings.warn(
                f"a drain has fired {_MANY_INSTANTS} instants of schedules and has not ended: name "
                f"the queues to drain, or call drain(schedules=False)",
                stacklevel=2,
            )

    def _stop(self, shard: str, job_id: str) -> None:
        if shard in self._lines:
            self._lines[shard].executor.stop(job_id, Stop.CANCEL)

    async def _hand_back(self) -> None:
        """After an interrupted drain, stop all handlers and release their jobs."""
        tasks: list[asyncio.Task[None]] = []
        for line in self._lines.values():
            for job_id, attempt in list(line.executor.running.items()):
                line.executor.stop(job_id, Stop.SHUTDOWN)
                tasks += [attempt.task] if attempt.task else []
        if tasks:
            await asyncio.wait(tasks, timeout=_END_WITHIN_S)
        for line in self._lines.values():
            if line.settled:
                await line.exchange(0)


class _Line:
    """One shard of a queue in a drain."""

    def __init__(
        self,
        engine: Engine,
        queue: Queue,
        shard: str,
        *,
        runners: Runners,
        middleware: Sequence[Middleware],
        dead_letters: DeadLetters,
        on_ran: Callable[[Ran], None],
        gate: Gate | None,
    ) -> None:
        self._engine = engine
        self._queue = queue
        self._shard = shard
        self._on_ran = on_ran
        self._calls = CallIds()
        self._caller = self._calls()
        self._witness = Witness()
        self._leases = Leases()
        self._notes = QueueNotes(engine, shard, self._leases, queue.options.units)
        self.settled: list[Settlement] = []
        self.next_at = 0
        """The next instant at which something becomes due; 0: none."""
        self.executor = Executor(
            queue.name,
            queue.handlers,
            runners=runners.by_name,
            batches=lambda executor: runners.gatherer.runner(executor, queue.name),
            notes=self._notes,
            middleware=(self._witness, *middleware),
            worker=WORKER,
            on_done=self._done,
            on_free=lambda: None,
            dead_letters=dead_letters,
            admission=None if gate is None else Admission(gate, queue.handlers, _ignore),
            aid=Aid(tell=partial(tell_of_job, engine, shard)),
            traced=runners.traced,
        )

    async def exchange(self, want: int) -> Exchanged:
        """Settle what has ended and start up to `want` jobs."""
        settled, self.settled = self.settled, []
        for one in settled:
            await self._notes.flush(one.id)
        turn = Turn(self._calls(), want, settled)
        answer = await self._engine.exchange(self._shard, self._caller, WORKER, turn)
        self._leases.settled(self._shard, settled)
        for late in answer.expired:
            self._on_ran(await self._not_run(late, answer.now))
        until = time.monotonic() + _LEASE_S
        self._leases.take(self._shard, turn.call, [(one.id, until) for one in answer.claimed])
        self.next_at = answer.next_at
        self.executor.start(answer.claimed, answer.now, answer.claimed_at)
        return answer

    async def _not_run(self, late: Late, now: int) -> Ran:
        spec = await self._engine.command("HGET", self._shard, "specs", late.id)
        words = "it expired before it started"
        return Ran(
            queue=self._queue.name,
            task=_task_of(spec),
            id=late.id,
            number=late.attempts + 1,
            ending="expired",
            outcome=Expired(ErrorRecord("Expired", words, "EXPIRED", worker=WORKER, at=now)),
        )

    def _done(self, claim: Claim, outcome: Outcome | None, attempt: Attempt | None) -> None:
        if outcome is None:  # another worker has it
            self._leases.end(self._shard, claim.id, claim.lease)
            return
        self.settled.append(Settlement(claim.id, claim.lease, outcome))
        self._on_ran(self._ran(claim, outcome, attempt))

    def _ran(self, claim: Claim, outcome: Outcome, attempt: Attempt | None) -> Ran:
        return Ran(
            queue=self._queue.name,
            task=_task_of(claim.spec),
            id=claim.id,
            number=claim.attempts + 1,
            ending=ending_of(outcome),
            outcome=outcome,
            result=result_of(attempt.handler, outcome) if attempt else None,
            raised=self._witness.raised.pop(claim.id, None),
        )


def _ignore(_granted: int, _refused: int) -> None:
    """A drain claims what it can, whatever was refused before."""


def _task_of(spec: bytes | None) -> str:
    told = envelope.spec_in(spec)
    return told.task if told else "?"
