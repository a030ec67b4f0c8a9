"""Blocks on the wake markers of the shards that could take work, on one connection for all.

A marker stays on the server until it is popped, so a job that arrives between an empty claim and
the block is not missed. A shard that holds all slots of its pool is not waited for: its marker is
left to other workers. A shard that waits for a slot of its pool or process is waited for, because a
slot is left for it once its work is known; its next exchange arms the marker again. If a shard
becomes idle during a block, the next block includes it: the wire keeps the running wait and only
adds to it, so no pop is lost. If a shard is closed meanwhile, the wait for it just times out.
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
            if not fetcher.may_have_more and not fetcher.is_closing and self._slots.own(shard) > 0
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
            self._engine.wire.unblock()  # leaves the next markers to other workers

    async def _block(self, watched: frozenset[str]) -> None:
        """Pop markers as long as the same shards are idle, which keeps a wake-up short."""
        keys = [self._engine.wake_key(shard) for shard in sorted(watched)]
        try:
            while self._idle() >= watched:
                key = await self._engine.wire.block_pop(keys, _BLOCK_S)
                if key is not None:
                    self._request_exchanges(
                        shard for shard in self._fetchers if self._engine.wake_key(shard) == key
                    )
                if key is not None or not keys:
                    return
        except FaenaError as error:
            _log.warning("waiting for work failed: %s", error)
            await asyncio.sleep(_BACK_OFF_S * (1 + random.random()))
            self._request_exchanges(watched)

    def _request_exchanges(self, shards: Iterable[str]) -> None:
        for shard in tuple(shards):
            if shard in self._fetchers:
                self._fetchers[shard].request_exchange()
