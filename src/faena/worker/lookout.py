"""The waker of a worker with a single queue: it sends the next claim ahead of the work.

The claim lies on the server behind a wait for the queue's wake marker and runs the moment the wait
ends, so that a job reaches an idle worker in one trip. Its slots are reserved while it waits. A
claim whose fate is unknown (the connection broke, or the worker stops) is asked for again under its
name: either it ran, and this is its answer, or it runs now.
"""

from __future__ import annotations

import asyncio

from faena.client import CallIds
from faena.engine import Engine
from faena.engine.scripts import Turn
from faena.worker.fetcher import Fetcher

_BLOCK_S = 2.0


class Lookout:
    """Waits for work on behalf of one fetcher."""

    def __init__(self, engine: Engine, fetcher: Fetcher, worker: str, calls: CallIds) -> None:
        self._engine = engine
        self._fetcher = fetcher
        self._worker = worker
        self._caller = calls()
        self._idle = asyncio.Event()

    def idle_changed(self) -> None:
        """The fetcher has nothing left to claim."""
        self._idle.set()

    async def run(self) -> None:
        """Wait and claim until cancelled."""
        while True:
            await self._idle.wait()
            self._idle.clear()
            while (turn := self._fetcher.spare_turn()) is not None:
                await self._wait(turn)

    async def _wait(self, turn: Turn) -> None:
        fetcher = self._fetcher
        try:
            exchanged = await self._engine.exchange_when_woken(
                fetcher.queue, self._caller, self._worker, turn, _BLOCK_S
            )
            if exchanged is None:
                exchanged = await fetcher.ask(self._caller, turn)
        except asyncio.CancelledError:
            # If it has not run yet it claims nothing now; if it has, its jobs are not stranded.
            fetcher.take_in(turn, await fetcher.ask(self._caller, turn._replace(want=0)))
            raise
        fetcher.take_in(turn, exchanged)
