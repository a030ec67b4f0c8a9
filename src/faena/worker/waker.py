"""Blocks on the wake markers of the queues that could take work, on one connection for all.

A marker stays on the server until it is popped, so a job that arrives between an empty claim and
the block is not missed. A queue whose slots are all taken is not waited for: its marker is left to
other workers. When a queue becomes idle while the block is under way, the block is begun anew with
it, and every queue that was in it looks once, because a pop may have been on its way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Mapping

from faena.engine import Engine
from faena.errors import FaenaError
from faena.worker.fetcher import Fetcher
from faena.worker.slots import Slots

_BLOCK_S = 2.0
_BACK_OFF_S = 0.5

_log = logging.getLogger("faena.worker")


class Waker:
    """Wakes fetchers when work arrives."""

    def __init__(self, engine: Engine, fetchers: Mapping[str, Fetcher], slots: Slots) -> None:
        self._engine = engine
        self._fetchers = fetchers
        self._slots = slots
        self._by_key = {engine.wake_key(queue): queue for queue in fetchers}
        self._changed = asyncio.Event()
        self._watched: frozenset[str] = frozenset()

    def idle_changed(self) -> None:
        """A fetcher has nothing left to claim."""
        if not self._idle() <= self._watched:
            self._changed.set()

    def _idle(self) -> frozenset[str]:
        return frozenset(
            queue
            for queue, fetcher in self._fetchers.items()
            if not fetcher.is_hungry and not fetcher.is_closing and self._slots.free(queue) > 0
        )

    async def run(self) -> None:
        """Wait and wake until cancelled."""
        while True:
            self._changed.clear()
            self._watched = self._idle()
            if not self._watched:
                await self._changed.wait()
                continue
            try:
                await self._block()
            except FaenaError as error:
                _log.warning("waiting for work failed: %s", error)
                await asyncio.sleep(_BACK_OFF_S * (1 + random.random()))
                self._poke(self._watched)

    async def _block(self) -> None:
        keys = [self._engine.wake_key(queue) for queue in sorted(self._watched)]
        popping = asyncio.ensure_future(self._engine.wire.block_pop(keys, _BLOCK_S))
        changing = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({popping, changing}, return_when=asyncio.FIRST_COMPLETED)
            if popping.done():
                key = popping.result()
                if key is not None:
                    self._poke({self._by_key[key]})
            else:
                self._poke(self._watched)
        finally:
            for future in (popping, changing):
                future.cancel()
            with contextlib.suppress(asyncio.CancelledError, FaenaError):
                await popping

    def _poke(self, queues: frozenset[str] | set[str]) -> None:
        for queue in queues:
            self._fetchers[queue].poke()
