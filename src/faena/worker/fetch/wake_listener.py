"""Blocks on the wake markers of the shards that could take work, on one connection for all.

A marker stays on the server until it is popped, so a job that arrives between an empty claim and
the block is not missed. A shard that holds all slots it could have is not waited for: its marker is
left to other workers. One that only lacks a slot of its pool or process is, because a slot is left
for it once its work is known; looking at it arms the marker again. When a shard becomes idle while
the block is under way, the next block has it too; the wire keeps the wait that was begun and only
adds to it, so that no pop is lost and nobody has to look for one. Shards come and go meanwhile; for
one that has gone the wait that was begun just runs out.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Mapping

from faena.engine import Engine
from faena.errors import FaenaError
from faena.worker.fetch.fetcher import Fetcher
from faena.worker.fetch.slots import Slots

_BLOCK_S = 2.0
_BACK_OFF_S = 0.5

_log = logging.getLogger("faena.worker")


class WakeListener:
    """Wakes fetchers when work arrives."""

    def __init__(self, engine: Engine, fetchers: Mapping[str, Fetcher], slots: Slots) -> None:
        self._engine = engine
        self._fetchers = fetchers
        self._slots = slots
        self._changed = asyncio.Event()
        self._watched: frozenset[str] = frozenset()
        self._blocking: asyncio.Task[None] | None = None

    def idle_changed(self) -> None:
        """A fetcher has nothing left to claim."""
        if not self._idle() <= self._watched:
            self._changed.set()
            if self._blocking is not None:
                self._blocking.cancel()

    def _idle(self) -> frozenset[str]:
        return frozenset(
            shard
            for shard, fetcher in self._fetchers.items()
            if not fetcher.is_hungry and not fetcher.is_closing and self._slots.own(shard) > 0
        )

    async def run(self) -> None:
        """Wait and wake until cancelled."""
        try:
            while True:
                self._changed.clear()
                self._watched = self._idle()
                self._blocking = asyncio.create_task(self._block(self._watched))
                await asyncio.wait({self._blocking})
                if not self._blocking.cancelled():
                    self._blocking.result()
                if not self._watched:
                    await self._changed.wait()
        finally:
            if self._blocking is not None:
                self._blocking.cancel()
            self._engine.wire.unblock()  # what is popped from now on is another worker's

    async def _block(self, watched: frozenset[str]) -> None:
        """Pop again and again while the same shards are idle: the way of a wake-up is short."""
        keys = [self._engine.wake_key(shard) for shard in sorted(watched)]
        try:
            while self._idle() >= watched:
                key = await self._engine.wire.block_pop(keys, _BLOCK_S)
                if key is not None:
                    self._poke(
                        shard for shard in self._fetchers if self._engine.wake_key(shard) == key
                    )
                if key is not None or not keys:
                    return
        except FaenaError as error:
            _log.warning("waiting for work failed: %s", error)
            await asyncio.sleep(_BACK_OFF_S * (1 + random.random()))
            self._poke(watched)

    def _poke(self, shards: Iterable[str]) -> None:
        for shard in tuple(shards):
            if shard in self._fetchers:
                self._fetchers[shard].poke()
