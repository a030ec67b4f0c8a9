"""Broadcasts a hold: when a provider limits a job (429), all shards of its queue are held.

The settlement of the job holds the shard where it ran. The provider's limit applies to the whole
queue, so the other shards are held for at least as long; a longer hold stays. A shard that cannot
be reached is skipped: the provider will limit its jobs too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from faena.engine import Engine
from faena.engine.calls.holds import extend_hold
from faena.engine.scripts import Claim
from faena.errors import FaenaError
from faena.outcomes import Limited, Outcome
from faena.sharding.routing_table import Shard
from faena.values.shards import queue_of
from faena.worker.execute.attempt_state import Attempt
from faena.worker.execute.executor import Done

_log = logging.getLogger("faena.worker")

Ask = Callable[[], Awaitable[Sequence[Shard]]]


class _Hold(NamedTuple):
    """What is told to the shards of a queue."""

    queue: str
    reason: str


class HoldBroadcast:
    """Holds the shards of a queue one by one; a longer hold meanwhile starts another round."""

    def __init__(self, engine: Engine, queues: Mapping[str, Ask | None]) -> None:
        """`queues` maps each queue to a function that returns its shards; None: only one shard."""
        self._engine = engine
        self._queues = queues
        self._ends: dict[_Hold, float] = {}
        """Hold → the end of the longest hold in the current round. It is dropped with the round:
        the next hold is broadcast even if it is shorter, because this one may be released."""
        self._rounds: dict[_Hold, asyncio.Task[None]] = {}

    def listening(self, shard: str, done: Done) -> Done:
        """Wrap `done` so that this object sees every outcome of a shard."""
        queue = queue_of(shard)
        ask = self._queues[queue]
        if ask is None:
            return done

        def heard(claim: Claim, outcome: Outcome | None, attempt: Attempt | None) -> None:
            if isinstance(outcome, Limited) and outcome.scope == "queue":
                self._hear(_Hold(queue, outcome.reason), ask, outcome.delay_us)
            done(claim, outcome, attempt)

        return heard

    def _hear(self, hold: _Hold, ask: Ask, delay_us: int) -> None:
        end = time.monotonic() + delay_us / 1e6
        self._ends[hold] = max(end, self._ends.get(hold, 0.0))
        if hold not in self._rounds:
            self._rounds[hold] = asyncio.create_task(self._go_round(hold, ask))

    async def _go_round(self, hold: _Hold, ask: Ask) -> None:
        told = 0.0
        try:
            while told < self._ends[hold]:
                told = self._ends[hold]
                shards = await ask()
                for shard in shards if len(shards) > 1 else ():
                    await self._hold(shard.name, hold.reason, told)
        except FaenaError as error:
            _log.warning("queue %s: could not hold its other shards: %s", hold.queue, error)
        finally:
            del self._rounds[hold], self._ends[hold]

    async def _hold(self, shard: str, reason: str, until: float) -> None:
        left_us = round((until - time.monotonic()) * 1e6)
        if left_us > 0:
            await extend_hold(self._engine, shard, reason, left_us, "handler")

    async def finish(self, within_s: float) -> None:
        """Wait for the running rounds, and cancel those that take longer."""
        rounds = [*self._rounds.values()]
        if rounds:
            await asyncio.wait(rounds, timeout=within_s)
        for task in rounds:
            task.cancel()
        await asyncio.gather(*rounds, return_exceptions=True)
