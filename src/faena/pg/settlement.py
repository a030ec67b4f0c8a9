"""Learns from the broker which jobs of the outbox are settled, and deletes their rows.

The script that ends a job writes a message beside it (`report_job_end.lua`). The message is struck
off when the row is gone, so whatever dies in between, it comes again; deleting twice is harmless.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from faena.engine import Engine
from faena.engine.calls.flows import FlowCalls, Message
from faena.engine.calls.transfer import TransferCalls
from faena.errors import FaenaError
from faena.pg.postgres import Postgres
from faena.values.shards import queue_of

SWEEP_S: Final = 20.0
"""Every shard is looked at so often, whether it has said that it has messages or not."""
_AGAIN_S: Final = 1.0

_log = logging.getLogger("faena.pg")


class Settlements:
    """Takes the settlements of all shards into one database."""

    def __init__(self, pg: Postgres, engine: Engine, recipient: str) -> None:
        """`recipient` is what jobs call the database."""
        self._pg, self._engine, self._recipient = pg, engine, recipient
        self._calls = FlowCalls(engine)
        self._shards: set[str] = set()
        self._news = asyncio.Event()
        self._sweeping = asyncio.Lock()
        self.complete_until_us = 0
        """What was settled before this instant of the broker's clock has no row any more."""
        self.swept_at = 0.0

    def notify(self, shard: str) -> None:
        """A shard has messages."""
        self._shards.add(shard)
        self._news.set()

    async def run(self) -> None:
        """Take them in until cancelled."""
        while True:
            wait_s = max(0.0, self.swept_at + SWEEP_S - time.monotonic())
            try:
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
            except TimeoutError:
                self._news.set()
            self._news.clear()
            try:
                await self.run_once()
            except FaenaError as error:
                _log.warning("the outbox learns later which jobs are settled: %s", error)
                await asyncio.sleep(_AGAIN_S)

    async def run_once(self) -> None:
        """Take in those of shards that have told of them, or of all when that is due."""
        if time.monotonic() >= self.swept_at + SWEEP_S:
            await self.sweep()
            return
        while self._shards:
            shard = self._shards.pop()
            try:
                await self._take(shard)
            except FaenaError:
                self.notify(shard)
                raise

    async def sweep(self) -> None:
        """Take in everything that was settled before this call."""
        async with self._sweeping:
            began, now_us = time.monotonic(), await self._time_us()
            for shard in await self._all_shards():
                await self._take(shard)
            await self._take_from_given_up()
            self.swept_at, self.complete_until_us = began, now_us

    async def _time_us(self) -> int:
        """The broker's clock."""
        return (await self._engine.overview(next(iter(self._pg.app.queues)))).at

    async def _all_shards(self) -> list[str]:
        runtime = await self._pg.app.runtime()
        names = [await runtime.routers.of(queue).names() for queue in self._pg.app.queues]
        return [shard for one in names for shard in one]

    async def _take_from_given_up(self) -> None:
        """Shards that no tenant is in any more; with messages, they could not be retired.

        Epochs are read before the shards in use: one that is used again later has another epoch.
        """
        runtime, transfer = await self._pg.app.runtime(), TransferCalls(self._engine)
        for queue in self._pg.app.queues:
            given_up = await transfer.given_up(queue)
            used = await runtime.routers.of(queue).names() if given_up else ()
            for shard, epoch in given_up.items():
                await self._take(shard)
                if shard not in used:
                    await transfer.retire(shard, epoch)

    async def _take(self, shard: str) -> None:
        left = 1
        while left and (messages := await self._calls.messages(shard, self._recipient)):
            await self._apply(queue_of(shard), messages)
            left = await self._calls.delivered(shard, self._recipient, messages[-1].id)

    async def _apply(self, queue: str, messages: Sequence[Message]) -> None:
        ids = [job for one in messages for job in _settled(one)]
        async with self._pg.transaction("settle") as connection:
            await connection.execute(
                "DELETE FROM faena.outbox WHERE queue = %s AND id = ANY(%s)", [queue, ids]
            )


def _settled(message: Message) -> list[str]:
    """The jobs that a message is about, each followed by its state."""
    kind, flat = msgspec.msgpack.decode(message.words)
    return list(flat[::2]) if kind == "settled" else []
