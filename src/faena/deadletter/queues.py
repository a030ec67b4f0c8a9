"""Gives the desk access to the queues of an app, in all of their shards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from faena.engine import Engine
from faena.engine.calls.deadletter import DeskCalls
from faena.errors import ConfigError, StoreUnavailable, nearest, shown
from faena.sharding.router import Routers
from faena.sharding.routing_table import Table

HOUR_US: Final = 3_600_000_000
_SETTLE_S: Final = 30.0
"""How long a retry waits for lanes that are moving to another shard."""

T = TypeVar("T")


class DeskQueues:
    """The queues of an app and the connection to their broker."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[tuple[Engine, Routers]]],
        queues: Callable[[], Iterable[str]],
        new_ids: Callable[[int], list[str]],
    ) -> None:
        self._connect = connect
        self._queues = queues
        self.new_ids = new_ids

    async def open(self) -> tuple[DeskCalls, Routers]:
        """The script calls, and the routers of the queues."""
        engine, routers = await self._connect()
        return DeskCalls(engine), routers

    async def steady(
        self, queue: str, do: Callable[[DeskCalls, Sequence[str], int], Awaitable[T]]
    ) -> T:
        """Run an operation while no lanes of a queue move; again if they start to move."""
        calls, routers = await self.open()

        async def at_shards(table: Table) -> T:
            if table.phase:
                raise StoreUnavailable(
                    f"tenants of queue {queue} are moving (see faena shards {queue}); "
                    "its dead jobs cannot be changed until that has ended: try again later",
                    op="dlq",
                )
            return await do(calls, [shard.name for shard in table.all(queue)], table.epoch)

        return await routers.of(queue).on_current_shards(at_shards, settle_s=_SETTLE_S)

    async def anywhere(
        self, queue: str, do: Callable[[DeskCalls, Sequence[str]], Awaitable[T]]
    ) -> T:
        """Run an operation with every shard that may have jobs, also while lanes move."""
        calls, routers = await self.open()
        return await do(calls, await routers.of(queue).names())

    async def shards(self, queues: Sequence[str]) -> list[tuple[str, str]]:
        """Queue and shard, for every shard of some queues that may have jobs."""
        _, routers = await self.open()
        names = await routers.names_of_each(queues)
        pairs = zip(queues, names, strict=True)
        return [(queue, shard) for queue, shards in pairs for shard in shards]

    async def epoch(self, queue: str) -> int:
        """The epoch of a queue's shards; -1 while lanes move."""
        _, routers = await self.open()
        table = await routers.of(queue).look()
        return -1 if table.phase else table.epoch

    def chosen(self, queues: Any) -> tuple[str, ...]:
        """Check that the app has declared these queues; None: all queues."""
        if queues is None:
            queues = self._queues()
        is_one = isinstance(queues, str) or not isinstance(queues, Iterable)
        names: tuple[Any, ...] = (queues,) if is_one else tuple(queues)
        if not names:
            raise ConfigError("queues must be at least one, got none", field="queues")
        return tuple(self.one(name) for name in names)

    def one(self, queue: Any) -> str:
        """Check that the app has declared this queue."""
        known = tuple(self._queues())
        if isinstance(queue, str) and queue in known:
            return queue
        raise ConfigError(
            f"queue must be the name of a queue of the app, got {shown(queue)}; "
            f"{nearest(queue, known)}",
            field="queue",
            value=queue,
        )
