"""Finds the shards of a worker's queues: at the start, every few seconds, and when notified.

Queues are read one after the other, so that many queues cost the server no more commands than a
few. A read that fails changes nothing: a shard is closed when the routing table says so, never
because the broker does not answer.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence

from faena.engine import Engine
from faena.errors import FaenaError
from faena.sharding.routing_table import Shard
from faena.values.shards import queue_of

_LOOK_S = 5.0
_LEAST_S = 4.0
"""Between two reads, of any queue: at most a quarter of a command a second in all."""
_JITTER = 0.2

Ask = Callable[[], Awaitable[Sequence[Shard]]]

_log = logging.getLogger("faena.worker")


class ShardWatcher:
    """Watches the shards of one worker's queues."""

    def __init__(
        self,
        engine: Engine,
        queues: Mapping[str, Ask | None],
        *,
        serves: str,
        on_shards: Callable[[str, Sequence[Shard]], None],
    ) -> None:
        """`on_shards` is called with the shards of a queue to serve.

        A queue without a function that returns its shards has only the shard of its own name.
        """
        self._engine = engine
        self._queues = queues
        self._serves = serves
        self._on_shards = on_shards
        self._turns = deque(queue for queue, ask in queues.items() if ask is not None)
        self._urgent: set[str] = set()
        self._notified = asyncio.Event()
        self._looking = asyncio.Lock()
        self._known: dict[str, set[str]] = {queue: set() for queue in queues}
        self._answered_at = 0.0

    @property
    def is_needed(self) -> bool:
        """Whether the shards of any queue can change."""
        return bool(self._turns)

    @property
    def answered_at(self) -> float:
        """When a read was last answered; now, if no queue's shards can change."""
        is_known = self._answered_at and not self.is_needed
        return time.monotonic() if is_known else self._answered_at

    def notify(self, shard: str, _job: str = "") -> None:
        """The shards of this shard's queue have changed."""
        queue = queue_of(shard)
        if self._queues.get(queue) is not None:
            self._urgent.add(queue)
            self._notified.set()

    async def look_everywhere(self) -> None:
        """Find the shards of every queue; raises if one cannot be read."""
        for queue in self._queues:
            await self._look(queue)

    async def run(self) -> None:
        """Read the shards until cancelled."""
        while self._turns:
            queue = await self._next()
            try:
                await self._look(queue)
            except FaenaError as error:
                if self._engine.wire.is_closed:
                    raise  # this program closed it, and will not open it again
                _log.warning("shards of queue %s could not be read: %s", queue, error)

    async def _next(self) -> str:
        """The queue to read next: a changed one immediately, the others in turn."""
        if not self._urgent:
            self._notified.clear()
            pause_s = max(_LOOK_S / len(self._turns), _LEAST_S) * (1 + _JITTER * random.random())
            try:
                async with asyncio.timeout(pause_s):
                    await self._notified.wait()
            except TimeoutError:
                self._turns.rotate(-1)
                return self._turns[-1]
        return self._urgent.pop()

    async def _look(self, queue: str) -> None:
        """Read a queue's shards, one read at a time: an older answer must not undo a newer one."""
        ask = self._queues[queue]
        async with self._looking:
            shards = [Shard(queue, queue)] if ask is None else await ask()
            served = [shard for shard in shards if self._is_served(queue, shard)]
            for shard in served:
                if shard.name not in self._known[queue]:
                    await self._engine.declare(shard.name, serves=True)
            self._known[queue] = {shard.name for shard in served}
            self._answered_at = time.monotonic()
            self._on_shards(queue, served)

    def _is_served(self, queue: str, shard: Shard) -> bool:
        is_shared = shard.pool == queue
        return self._serves == "all" or is_shared == (self._serves == "shared")
