"""Waits for work when a worker serves one shard: the next claim is sent before there is work.

The claim is pipelined behind a blocking wait for the shard's wake marker. It runs the moment the
wait ends, so a job reaches an idle worker in one trip. Its slots are reserved meanwhile. If its
outcome is unknown (the connection broke, or the worker stops), it is sent again under the same call
id: either it ran before, and the reply is that of the first run, or it runs now.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial

from faena.engine import Engine
from faena.engine.scripts import Exchanged, Turn
from faena.producing.batcher import CallIds
from faena.worker.fetch.fetcher import Fetcher

_BLOCK_S = 2.0
_BACK_OFF_S = 0.5


class EagerClaim:
    """Waits for work on behalf of one fetcher."""

    def __init__(self, engine: Engine, fetcher: Fetcher, worker: str, calls: CallIds) -> None:
        self._engine = engine
        self._fetcher = fetcher
        self._worker = worker
        self._caller = calls()
        self._idle = asyncio.Event()
        self._pause_s = 0.0
        self._is_answered = False

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
                pause_s, self._pause_s = self._pause_s, 0.0
                if pause_s:
                    await asyncio.sleep(pause_s * (1 + random.random()))

    async def _wait(self, turn: Turn) -> None:
        fetcher, self._is_answered = self._fetcher, False
        try:
            await self._engine.exchange_when_woken(
                fetcher.shard,
                self._caller,
                self._worker,
                turn,
                _BLOCK_S,
                partial(self._begin, turn),
            )
            if not self._is_answered:
                self._begin(turn, await fetcher.ask(self._caller, turn))
                self._pause_s = _BACK_OFF_S  # waiting fails now: do not retry in a tight loop
        except asyncio.CancelledError:
            # If it has not run yet, it claims nothing now; if it has, its jobs are taken in here.
            if not self._is_answered:
                fetcher.take_in(turn, await fetcher.ask(self._caller, turn._replace(want=0)))
            raise

    def _begin(self, turn: Turn, exchanged: Exchanged) -> None:
        """Called when the reply arrives: handlers start before this task gets its turn."""
        self._is_answered = True
        self._fetcher.start_first(turn, exchanged)
