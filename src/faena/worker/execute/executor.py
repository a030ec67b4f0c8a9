"""Runs claimed jobs: spec → handler → payload → call → outcome.

Every job ends in exactly one outcome under its lease, or in none when the lease is lost. Nothing
that a handler raises, BaseException included, leaves this module.

Asyncio tasks run one job after another. Before a task starts a job, it makes sure that another task
is ready for the rest, so a handler that waits does not delay other jobs. Handlers that never wait
share one task and need no scheduling. A task whose job was stopped, or has changed context
variables, runs no further job.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import copy_context
from typing import Any, Protocol

from faena.declaring.handler import Handler
from faena.engine import envelope
from faena.engine.scripts import Claim
from faena.errors import PayloadError
from faena.job import Job, Notes
from faena.middleware import Middleware, wrap_execute
from faena.options import DeadLetters
from faena.outcomes import COMPLETED, Completed, Outcome
from faena.resilience.call_group import Permits
from faena.resilience.permits import CURRENT, drop_permits, end_handler
from faena.telemetry.logging.bound import BOUND
from faena.worker.execute.admission import Admission, Asking, be_frugal
from faena.worker.execute.attempt_state import Attempt, Stop
from faena.worker.execute.fallback import HANDED, Fallen, handed_before
from faena.worker.execute.fallback_run import Aid, Fallbacks
from faena.worker.execute.judge import Judge
from faena.worker.execute.log_lines import log_end
from faena.worker.execute.parking import Parking
from faena.worker.execute.time_limits import TimeLimits
from faena.worker.execute.traced import Done, Traced

_TURN_S = 0.005
"""How long one task may run jobs before it yields to the event loop."""


class Runner(Protocol):
    """Runs plain functions: in threads, in processes, or in batches."""

    def call(self, attempt: Attempt, /) -> tuple[asyncio.Future[Any], Callable[[], object]]: ...


class Executor:  # size: the whole way of an attempt, in one place
    """Runs the jobs of one shard."""

    def __init__(  # noqa: PLR0913 - its parts, given by name
        self,
        queue: str,
        handlers: Mapping[str, Handler],
        *,
        runners: Mapping[str, Runner],
        batches: Callable[[Executor], Runner],
        notes: Notes,
        middleware: Sequence[Middleware],
        worker: str,
        on_done: Done,
        on_free: Callable[[], None],
        still_holds: Callable[[Attempt], Awaitable[bool]] | None = None,
        dead_letters: DeadLetters | None = None,
        admission: Admission | None = None,
        aid: Aid | None = None,
        traced: Traced | None = None,
    ) -> None:
        """`batches` creates the runner of batch tasks, which shards of a pool share."""
        self._queue, self._handlers = queue, handlers
        self._runners = {**runners, "batch": batches(self)}
        self._notes, self._middleware = notes, middleware
        self._worker = worker
        self._traced = traced
        self._on_done = traced.settling(on_done) if traced else on_done
        self._perform = traced.running(self._run) if traced else self._run
        self._on_free = on_free
        self._still_holds = still_holds or _surely
        self._parking = Parking(queue, handlers)
        self._judge = Judge(queue, worker, dead_letters or DeadLetters())
        self._admission = self._judge.admission = admission
        self._running: dict[str, Attempt] = {}
        self.time_limits = TimeLimits(
            self._running, on_timeout=self._time_out, on_stuck=self._abandon
        )
        self._pending: deque[Attempt] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_runner_due = False
        self._has_batches = any(handler.batch for handler in handlers.values())
        self._fallbacks = Fallbacks(handlers, self._running, self._judge, self._end, aid or Aid())

    @property
    def tasks(self) -> frozenset[asyncio.Task[None]]:
        """The asyncio tasks that run handlers, abandoned ones included."""
        return frozenset(self._tasks)

    @property
    def running(self) -> Mapping[str, Attempt]:
        """Job id → running attempt."""
        return self._running

    def start(
        self,
        claims: Sequence[Claim],
        now: int,
        claimed_at: int,
        fresh_until: float = math.inf,
    ) -> list[Attempt]:
        """Start an attempt for each claim that can begin; outcomes arrive through `on_done`.

        A job counts as started at its claim; `now` decides whether it has expired. If a handler
        would start after `fresh_until`, its lease is checked first.
        """
        self._judge.now = now
        begun = all_begun = self._begin(claims, claimed_at)
        for attempt in begun:
            attempt.fresh_until = fresh_until
        if self._has_batches:
            begun = self._set_apart(begun)
        if lost := self._fallbacks.to_look_at(begun):
            self._spawn(self._resume(lost))
            begun = [attempt for attempt in begun if attempt not in lost]
        self._proceed(begun)
        return all_begun

    async def _resume(self, lost: Sequence[Attempt]) -> None:
        """Go on with jobs that a worker may have handed over before it died."""
        for attempt in lost:
            if await handed_before(attempt):
                self._end_or_fall_back(attempt, HANDED)
            else:
                self._proceed([attempt])

    def _proceed(self, begun: list[Attempt]) -> None:
        """Run handlers, as soon as their upstreams may be called."""
        if self._admission is not None:
            begun = self._ask_first(self._admission, begun)
        if begun:
            self._pending += begun
            self._call_runner()
            asyncio.get_running_loop().call_soon(self.time_limits.set, begun)

    def stop(self, job_id: str, why: Stop, lease: str | None = None) -> None:
        """Tell a running job to stop; with a lease, only the attempt that runs under it."""
        attempt = self._running.get(job_id)
        if attempt is None or lease not in {None, attempt.claim.lease}:
            return
        if why is Stop.LOST:
            attempt.job.detach()
        if attempt.end_early(why):  # a repeated stop grants no more time
            self.time_limits.expect_end(attempt)

    def _time_out(self, attempt: Attempt) -> None:
        self.stop(attempt.claim.id, Stop.TIMEOUT, attempt.claim.lease)

    # -- before the handler -------------------------------------------------------------------

    def _begin(self, claims: Sequence[Claim], claimed_at: int) -> list[Attempt]:
        begun: list[Attempt] = []
        started = time.monotonic()
        for claim in claims:
            try:
                attempt = self._prepare(claim, claimed_at, started)
            except Exception as error:  # noqa: BLE001 - whatever a spec or a codec does
                attempt = self._judge.unreadable(claim, error)
            if isinstance(attempt, Attempt):
                self._running[claim.id] = attempt
                begun.append(attempt)
            else:
                self._settle(claim, attempt, None)
                self._on_free()
        return begun

    def _prepare(self, claim: Claim, claimed_at: int, started: float) -> Attempt | Outcome:
        """An attempt; or an outcome if the job has expired, or if this worker does not know its
        task or its version, so that the job is parked."""
        if claim.expires_at and (late := self._judge.too_late(claim)):
            return late
        if claim.spec is None:
            raise PayloadError("the job has no spec: its payload is missing")
        priority, is_chained, body = envelope.opened(claim.spec)
        spec = envelope.read_spec(body)
        handler = self._handlers.get(spec.task)
        if handler is None or spec.version > handler.version:
            return self._parking.park(spec)
        priority = claim.priority or priority
        worth = 0 if is_chained else priority * handler.age_step_us
        retry = handler.retry_of(spec.attempts, spec.retry)
        job = Job(self._queue, claim.id, spec, attempt=claim.attempts + 1, notes=self._notes)
        job.losses, job.origin = claim.losses, claim.origin or claim.id
        job.worker, job.max_attempts = self._worker, retry.attempts
        job.enqueued_us = claim.enqueued_at or int(claim.score) - worth
        job.started_us = claimed_at
        timeout_s = handler.timeout_of(spec.timeout_us, priority) / 1e6
        attempt = Attempt(claim, handler, job, timeout_s, retry, started)
        if claim.expires_at:
            attempt.expires_s = (claim.expires_at - self._judge.now) / 1e6
        if handler.payload is not None:
            attempt.payload = handler.payload.decode(spec.payload)
        if handler.runner == "process":
            attempt.payload = bytes(spec.payload)
        return attempt

    # -- the handler ----------------------------------------------------------------------------

    def _call_runner(self) -> None:
        """Make sure that a task will serve the pending attempts."""
        if not self._is_runner_due:
            self._is_runner_due = True
            self._spawn(self._serve_pending())

    def _spawn(self, running: Coroutine[Any, Any, None]) -> None:
        # Not `create_task`: an eager task factory would run it immediately, inside another job.
        task = asyncio.Task(running, loop=asyncio.get_running_loop())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _set_apart(self, begun: Sequence[Attempt]) -> list[Attempt]:
        """Start the attempts of batch tasks, each in its own task, because they wait for others.

        Until the call starts, the time limit includes this wait. Returns the other attempts.
        """
        apart = [attempt for attempt in begun if attempt.handler.batch]
        for attempt in apart:
            attempt.timeout_s += attempt.handler.wait_s
            self._spawn(self._run_apart(attempt))
        self.time_limits.set(apart)
        return [attempt for attempt in begun if not attempt.handler.batch]

    def _ask_first(self, admission: Admission, begun: Sequence[Attempt]) -> list[Attempt]:
        """Ask for those whose tasks call upstreams, where it must be asked. Returns the rest."""
        ready, asking = admission.begin(begun)
        if asking.attempts:
            self._spawn(self._admit(admission, asking))
        return ready

    async def _admit(self, admission: Admission, asking: Asking) -> None:
        granted, refused = await admission.ask(asking)
        for attempt, outcome in refused:
            self._end_or_fall_back(attempt, outcome)
        now = time.monotonic()
        for attempt in granted:
            attempt.started = now
        self._pending += granted
        self._call_runner()
        asyncio.get_running_loop().call_soon(self.time_limits.set, granted)

    async def _run_apart(self, attempt: Attempt) -> None:
        attempt.task = asyncio.current_task()
        await self._perform(attempt)

    async def _serve_pending(self) -> None:
        self._is_runner_due = False
        task, clean = asyncio.current_task(), copy_context()
        until = time.monotonic() + _TURN_S
        while self._pending:
            attempt = self._pending.popleft()
            if self._pending and not self._is_runner_due:
                self._call_runner()
            attempt.task = task
            await self._perform(attempt)
            is_marked = attempt.stop is not None or copy_context() != clean
            if is_marked or (task and task.cancelling()) or time.monotonic() > until:
                break
        if self._pending:
            self._call_runner()

    async def _run(self, attempt: Attempt) -> None:  # noqa: C901, PLR0912 # size: the way of every job, which pays for each call
        permits = held = None
        bound = BOUND.set(attempt.job)
        try:
            if (now := time.monotonic()) >= attempt.fresh_until:
                await self._look_again(attempt)
                now = time.monotonic()
            if attempt.stop is not None:
                raise asyncio.CancelledError  # noqa: TRY301 - stopped before its first step
            if attempt.permits is not None:
                permits = attempt.permits
                if permits.closings.known or now >= permits.lapses_at or permits.is_soft:
                    permits = await self._look_at_permits(attempt, permits, now)
                held = CURRENT.set(attempt)
            handler = attempt.handler
            if self._middleware:
                value = await self._wrapped(attempt)
            elif handler.runner == "async":
                value = await handler.function(*handler.arguments(attempt.payload, attempt.job))
            else:
                value = await self._call(attempt)
            if permits is not None and held is not None:
                held = CURRENT.reset(held)
                if permits.is_plain and attempt.called is attempt.spent is None:
                    attempt.permits = None
                    permits.good += 1  # as `end_handler` does, for most calls go this way
                    if not permits.is_noted:
                        permits.note()
                else:
                    end_handler(attempt, permits, None)
            if value is None and attempt.stop is None:
                outcome = COMPLETED
            else:
                is_encoded = handler.runner == "process" and not self._middleware
                outcome = self._judge.returned(attempt, value, is_encoded=is_encoded)
        except BaseException as error:  # noqa: BLE001 - the border: a handler may raise anything
            if permits is not None and held is not None:
                CURRENT.reset(held)
                late = TimeoutError() if attempt.stop is Stop.TIMEOUT else error
                end_handler(attempt, permits, late)
            self._end_or_fall_back(attempt, self._judge.raised(attempt, error))
        else:
            self._end(attempt, outcome)
        finally:
            BOUND.reset(bound)

    async def _look_at_permits(self, attempt: Attempt, permits: Permits, now: float) -> Permits:
        """What is rarely so: they have lapsed, an upstream was closed since, or money is short."""
        if now >= permits.lapses_at and self._admission is not None:
            permits = await self._admission.renew(attempt)
        if not attempt.probe:
            permits.group.refuse_closed()
        if permits.is_soft:
            be_frugal(attempt)
        return permits

    async def _look_again(self, attempt: Attempt) -> None:
        """Check the lease: the process was frozen, or its loop busy, since the claim."""
        if await self._still_holds(attempt):
            self.time_limits.restart(attempt, attempt.timeout_s)
        elif attempt.stop is None:
            attempt.stop = Stop.LOST
            attempt.job.detach()

    def _wrapped(self, attempt: Attempt) -> Awaitable[Any]:
        async def innermost(_job: Job) -> Any:
            value, handler = await self._call(attempt), attempt.handler
            is_encoded = handler.runner == "process" and isinstance(value, bytes)
            return handler.result.decode(value) if is_encoded else value

        return wrap_execute(self._middleware, innermost)(attempt.job)

    async def _call(self, attempt: Attempt) -> Any:
        handler = attempt.handler
        if handler.runner == "async":
            return await handler.function(*handler.arguments(attempt.payload, attempt.job))
        future, attempt.interrupt = self._runners[handler.runner].call(attempt)
        if attempt.stop is not None:
            attempt.interrupt()
        return await future

    def _end_or_fall_back(
        self, attempt: Attempt, outcome: Outcome | Fallen | None, *, is_abandoned: bool = False
    ) -> None:
        second = self._fallbacks.second(attempt, outcome, is_abandoned=is_abandoned)
        if second is None:
            end = None if isinstance(outcome, Fallen) else outcome
            self._end(attempt, end, is_abandoned=is_abandoned)
        else:
            is_bare = not self._middleware or second.fallback.is_given_all
            call = self._call if is_bare else self._wrapped
            running = self._fallbacks.run(second, call, self.time_limits)
            self._spawn(self._traced.fall_back(second, running) if self._traced else running)

    # -- after the handler ----------------------------------------------------------------------

    def _end(
        self, attempt: Attempt, outcome: Outcome | None, *, is_abandoned: bool = False
    ) -> None:
        """Settle once; the slot becomes free only when the handler has ended."""
        if attempt.timer is not None:
            attempt.disarm()
        if attempt.permits is not None:
            drop_permits(attempt, is_running=is_abandoned)
        claim = attempt.claim
        if self._running.get(claim.id) is attempt:
            del self._running[claim.id]
            self._settle(claim, outcome, attempt)
        if not is_abandoned:
            self._on_free()

    def _abandon(self, attempt: Attempt) -> None:
        outcome = self._judge.raised(attempt, asyncio.CancelledError())
        self._end_or_fall_back(attempt, outcome, is_abandoned=True)

    def _settle(self, claim: Claim, outcome: Outcome | None, attempt: Attempt | None) -> None:
        if type(outcome) is not Completed:
            log_end(self._queue, claim, outcome, attempt)
        self._on_done(claim, outcome, attempt)


async def _surely(_attempt: Attempt) -> bool:
    """The check for jobs whose leases cannot be lost."""
    return True
