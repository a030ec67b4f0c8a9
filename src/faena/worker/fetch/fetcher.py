"""Keeps the slots of a shard full: one call settles ended jobs and claims the next ones.

A shard is what the engine treats as a queue: the queue itself, one of its shards, or the dedicated
shard of a tenant.

Jobs that end while a call is in flight wait for the next one, so batches grow with the load. A
shard with many slots has two calls in flight, each for half of the slots: the server works on one
while this process runs the jobs of the other. A fetcher never claims more jobs than it has free
slots.

A call without an answer is sent again under the same call id until it is answered. So no settlement
is lost, and no claimed job has to wait until its lease expires.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from faena.engine import Engine
from faena.engine.scripts import Claim, Exchanged, Settlement, Turn
from faena.options import Order, QueueOptions
from faena.outcomes import Completed, Outcome
from faena.producing.batcher import CallIds
from faena.telemetry.measured import Measurements
from faena.values.shards import queue_of
from faena.worker.execute.attempt_state import Attempt, Stop
from faena.worker.execute.executor import Executor
from faena.worker.execute.log_lines import log_losses
from faena.worker.execute.notes import QueueNotes
from faena.worker.fetch.claim_size import ClaimSize
from faena.worker.fetch.exchanger import Exchanger
from faena.worker.fetch.freshness import Freshness
from faena.worker.fetch.pace import Pace
from faena.worker.fetch.samples import Samples
from faena.worker.fetch.slots import Slots
from faena.worker.leases import Leases
from faena.worker.presence import about_this_process

BATCH = 100
"""Settlements, and claims, in one exchange: more is not faster, and blocks the server longer."""

_FAILURE = 3
"""How many completed jobs a failed one counts for, because the server stores its error."""

_LARGEST = 8 * 1024 * 1024
"""Bytes of results in one exchange; the rest waits for the next one."""

_TWO_CHANNELS_FROM = 20
_GRACE_S = 10.0
_EARLY_S = 0.01
"""How early a timer may fire: a sweep just before its time would need a second call."""

_log = logging.getLogger("faena.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The parts and options that all fetchers of a worker share."""

    engine: Engine
    worker: str
    measured: Measurements
    """What this process has measured of its jobs."""
    slots: Slots
    leases: Leases
    calls: CallIds
    pace: Pace
    sweep_s: Callable[[], float]
    """Seconds until the next sweep; the more shards, the longer."""
    least_lease_us: int
    """Three beats: a lease that was shortened at run time must still last until the next beat."""
    on_idle: Callable[[], None]
    """Called when a shard has nothing left to claim."""
    on_outbox: Callable[[str], None]
    """Called with a shard that has messages for other shards."""


class Fetcher:  # size: the exchange loop, in one place
    """The exchange loop of one shard."""

    def __init__(
        self,
        shared: Shared,
        shard: str,
        options: QueueOptions,
        notes: QueueNotes,
        executor: Callable[[Fetcher], Executor],
    ) -> None:
        """`executor` creates the executor of its jobs."""
        self.shard, self._options, self._notes = shard, options, notes
        self.ask = Exchanger(shared.engine, shared.worker, shard, shared.calls).ask
        """Send a turn until it is answered."""
        self._shared, self._pace = shared, shared.pace
        self._slots, self._leases, self._calls = shared.slots, shared.leases, shared.calls
        self._about = about_this_process(shared.slots.bound(options.concurrency))
        self.freshness = Freshness(shard, shared.least_lease_us, shared.engine.renew)
        self._channels = 2 if options.concurrency >= _TWO_CHANNELS_FROM else 1
        self.claim_size = ClaimSize(-(-options.concurrency // self._channels))
        # A job in a chain costs the server three times as much as another job.
        self._batch = BATCH if options.order is Order.NONE else BATCH // 3
        self._settled: deque[Settlement] = deque()
        self.samples = Samples(queue_of(shard), options, shared.measured)
        self._news = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._must_look = True
        """Whether an exchange was requested even if nothing can be claimed."""
        self._sweep_at = 0.0
        self._in_flight = self._noting = 0
        self._spare: set[str] = set()  # call ids of claims that were sent ahead
        self.asked: dict[str, None] = {}  # call ids without an answer yet, the oldest first
        self.claims_answered = 0  # with jobs or without
        self._background: set[asyncio.Task[None]] = set()
        self.may_have_more = True
        """Whether more jobs may be ready: until a claim returns fewer than requested."""
        self.is_closing = False
        """Whether it claims no more jobs, and ends when everything is settled."""
        self._is_over = False
        self.answered_at = time.monotonic()
        """When an exchange was last answered."""
        self.executor = executor(self)

    # -- notifications --------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """Whether it could claim a job now."""
        is_free = self._slots.free(self.shard) > 0 and self._pace.room() > 0
        return is_free and not self.is_closing

    def request_exchange(self) -> None:
        """Run an exchange now, even without free slots: the server's state may have changed."""
        self.may_have_more = True
        self._must_look = True
        self._news.set()

    def close(self) -> None:
        """Claim no more jobs; end when everything is settled."""
        self.is_closing = True
        self._slots.want(self.shard, has_ready_jobs=False)
        self._news.set()

    def reopen(self) -> bool:
        """Undo `close`; False when it is too late, because everything is settled."""
        if not self._is_over:
            self.is_closing = False
            self.request_exchange()
        return not self._is_over

    def done(self, claim: Claim, outcome: Outcome | None, attempt: Attempt | None) -> None:
        """An attempt ended; without an outcome, its lease was lost and nothing is settled."""
        if attempt is not None:
            self.samples.ended(attempt, outcome)
        if outcome is None:
            self._leases.end(self.shard, claim.id, claim.lease)
        elif self._notes.has(claim.id):
            self._in_background(self._settle_after_notes(claim, outcome))
        else:
            self._settle(claim, outcome)

    def slot_freed(self) -> None:
        """A handler has ended, so its slot is free."""
        self._slots.give(self.shard)
        self._news.set()

    def keep(self, attempt: Attempt) -> None:
        """Hold the lease of an attempt whose timeout starts again."""
        until = attempt.started + attempt.timeout_s + _GRACE_S
        self._leases.take(self.shard, attempt.claim.lease, [(attempt.claim.id, until)])

    def room_made(self) -> None:
        """Slots may be free again after a refusal."""
        self._news.set()

    def _settle(self, claim: Claim, outcome: Outcome) -> None:
        self._settled.append(Settlement(claim.id, claim.lease, outcome))
        self._news.set()

    async def _settle_after_notes(self, claim: Claim, outcome: Outcome) -> None:
        self._noting += 1
        try:
            await self._notes.flush(claim.id)
        finally:
            self._noting -= 1
            self._settle(claim, outcome)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that the fetcher waits for before it ends."""
        self._background.add(task := asyncio.create_task(work))
        task.add_done_callback(self._background.discard)

    # -- the loop -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the shard until it is closed and everything is settled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._channels):
                group.create_task(self._serve(self._calls()))

    async def _serve(self, caller: str) -> None:
        while not self._is_finished():
            turn = self._next_turn()
            if turn is None:
                self._news.clear()
                self._report_idle()
                await self._news.wait()
                continue
            self._in_flight += 1
            self.asked[turn.call] = None
            try:
                exchanged = await self.ask(caller, turn)
            finally:
                self._in_flight -= 1
                self.asked.pop(turn.call, None)
            self.take_in(turn, exchanged)
        self._news.set()
        if self._timer is not None:
            self._timer.cancel()

    def _is_finished(self) -> bool:
        """Final once true, so that both channels end."""
        self._is_over = self._is_over or (
            self.is_closing
            and not self._settled
            and not self._background
            and not self.executor.running
            and not self._in_flight
            and not self._spare
            and self.samples.is_empty
        )
        return self._is_over

    def _report_idle(self) -> None:
        if not self.may_have_more:
            self._shared.on_idle()

    def _next_turn(self) -> Turn | None:
        """The next exchange to send; None when there is nothing to settle or claim."""
        want = self._reserve()
        has_told = self.samples.is_empty or not self.is_closing
        if has_told and not (want or self._settled or self._must_look):
            return None
        self._must_look = False
        return self._turn(want, self._settlements())

    def _settlements(self) -> list[Settlement]:
        """The settlements of one call, bounded by the server's work and by bytes."""
        taken: list[Settlement] = []
        work = size = 0
        while self._settled and work < self._batch and size < _LARGEST:
            taken.append(self._settled.popleft())
            outcome = taken[-1].outcome
            if isinstance(outcome, Completed):
                work, size = work + 1, size + len(outcome.result)
            else:
                work += _FAILURE
        return taken

    def spare_turn(self) -> Turn | None:
        """A claim for slots that are free now, to be sent ahead; None when there are none."""
        if self.is_closing or self.may_have_more or self._settled:
            return None
        want = self._take(self.claim_size.most)
        if not want:
            return None
        turn = self._turn(want, ())
        self._spare.add(turn.call)
        self.asked[turn.call] = None
        return turn

    def _turn(self, want: int, settled: Sequence[Settlement]) -> Turn:
        now = time.monotonic()
        is_sweep = now >= self._sweep_at - _EARLY_S
        if is_sweep:
            self._sweep_at = now + self._shared.sweep_s()
        is_last = self.is_closing
        samples = self.samples.take(now, is_last=is_last, is_ahead=not (settled or is_sweep))
        sweep_us = round((self._sweep_at - now) * 1e6)
        sweep = (is_sweep, self._shared.least_lease_us, sweep_us, self._about)
        return Turn(self._calls(), want, settled, samples, *sweep, asked_at=now)

    def _reserve(self) -> int:
        """Slots for the next claim: half of them when two calls are in flight."""
        if self.is_closing or not (self.may_have_more or self._settled):
            return 0
        if self._channels > 1 and self._in_flight and not self._is_worth_it():
            return 0
        return self._take(self.claim_size.most)

    def _take(self, most: int) -> int:
        if self._noting:  # jobs that have ended and still count as running on the server
            most = min(most, self._slots.free(self.shard) - self._noting)
        want = self._slots.take(self.shard, max(0, min(most, self._batch, self._pace.room())))
        self._pace.reserve(want)
        return want

    def _is_worth_it(self) -> bool:
        """Whether a second call has enough to carry; otherwise it waits for the first one."""
        return self._slots.free(self.shard) * 4 >= self._options.concurrency

    # -- the answer -----------------------------------------------------------------------------

    def take_in(self, turn: Turn, exchanged: Exchanged) -> None:
        """Record what the answer says about the queue, and start the claimed jobs."""
        self._note(turn, exchanged)
        self._start(turn, exchanged)

    def start_first(self, turn: Turn, exchanged: Exchanged) -> None:
        """The same for a claim that settled nothing: handlers start before the rest is recorded."""
        self._start(turn, exchanged)
        asyncio.get_running_loop().call_soon(self._note, turn, exchanged)

    def _note(self, turn: Turn, exchanged: Exchanged) -> None:
        self.answered_at = time.monotonic()
        self._leases.settled(self.shard, turn.settled)
        log_losses(queue_of(self.shard), exchanged)
        claimed = exchanged.claimed
        if len(claimed) < turn.want:
            self._slots.give_back(self.shard, turn.want - len(claimed))
        self._pace.settle(turn.want, len(claimed))
        self._spare.discard(turn.call)
        self.asked.pop(turn.call, None)
        self.claims_answered += turn.want > 0
        self.may_have_more = exchanged.more or (turn.want > 0 and len(claimed) == turn.want)
        self._slots.want(self.shard, has_ready_jobs=self.may_have_more and not self.is_closing)
        self._schedule(exchanged)
        if exchanged.has_outbox:
            self._shared.on_outbox(self.shard)
        self._news.set()

    def _start(self, turn: Turn, exchanged: Exchanged) -> None:
        """Start the claimed jobs; immediately, if the next heartbeat will renew in time."""
        if not exchanged.claimed:
            return
        fresh_until = turn.asked_at + self.freshness.lasts_s
        if time.monotonic() < fresh_until:
            self._begin(exchanged.claimed, exchanged, fresh_until)
        else:
            self._in_background(self._begin_if_held(exchanged))

    async def _begin_if_held(self, exchanged: Exchanged) -> None:
        """Check the leases first: the answer is late, and other workers may run the jobs by now."""
        fresh_until = time.monotonic() + self.freshness.lasts_s
        lost = await self.freshness.lost(exchanged.claimed)
        kept = [claim for claim in exchanged.claimed if claim.id not in lost]
        if kept:
            self._begin(kept, exchanged, fresh_until)
        for _ in lost:
            self.slot_freed()

    def _begin(self, claimed: list[Claim], exchanged: Exchanged, fresh_until: float) -> None:
        """Start handlers, and hold their leases.

        The end of a lease is never computed from the instants in an answer, because the answer may
        be a repeated one. `fresh_until` is computed from `asked_at`, which is before any claim.
        """
        over = time.monotonic() + _GRACE_S
        self._part_with(claimed)
        begun = self.executor.start(claimed, exchanged.now, exchanged.claimed_at, fresh_until)
        self.samples.begun(begun)
        running = self.executor.running
        held = [(one.claim.id, over + one.timeout_s) for one in begun if one.claim.id in running]
        self._leases.take(self.shard, claimed[0].lease, held)

    def _part_with(self, claimed: list[Claim]) -> None:
        """Stop old attempts of jobs that this worker has claimed again: their leases were lost.

        This happens if the worker froze past a lease, and claims before its heartbeat notices.
        """
        for job_id, former in self._leases.held(self.shard, [claim.id for claim in claimed]):
            self.stop_job(job_id, Stop.LOST, former)

    def _schedule(self, exchanged: Exchanged) -> None:
        """Schedule the next exchange: when something becomes due, and at every sweep."""
        delay_s = max(0.0, self._sweep_at - time.monotonic())
        if not self._pace.room():
            delay_s = min(delay_s, max(0.001, self._pace.wait_s()))
        if exchanged.next_at:
            delay_s = min(delay_s, max(0.001, (exchanged.next_at - exchanged.now) / 1e6))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.request_exchange)

    def stop_job(self, job_id: str, why: Stop, lease: str | None = None) -> None:
        """Tell a running job to stop; with a lease, only the attempt that runs under it."""
        self.executor.stop(job_id, why, lease)
        if why is Stop.LOST and lease is not None:
            if self._leases.lease_of(self.shard, job_id) == lease:
                self._notes.drop(job_id)
            self._leases.end(self.shard, job_id, lease)
