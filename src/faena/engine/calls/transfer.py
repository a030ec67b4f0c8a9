"""The scripts that move lanes from one shard of a queue to another, each one call.

What they mean for a whole queue, and the order of calls, is in `faena.sharding.relocation`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from faena.engine.engine import Engine
from faena.engine.scripts import text_pairs, texts
from faena.errors import ShardsChanged

LANES: Final = 200
"""Lanes in one call."""

JOBS: Final = 30
"""Jobs in one batch: the server waits for nothing else while it packs or unpacks them."""

T = TypeVar("T")

_SCAN: Final = 200


class Claims(NamedTuple):
    """Claims made at one instant."""

    instant: int
    number: int


class Batch(NamedTuple):
    """Jobs that lie in an outbox."""

    number: int
    """0 for none."""
    jobs: bytes
    looked: int
    """How many of the ids were looked at."""


class Known(NamedTuple):
    """A job that stands in the way of a new one."""

    id: str
    state: str
    spec: bytes
    """Empty when it is another job, which holds the claim."""


class TransferCalls:
    """The calls, for any shard."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # -- the table ------------------------------------------------------------------------------

    async def table(self, queue: str) -> dict[str, str]:
        """Everything the first shard says of the shards."""
        return text_pairs(await self._engine.command("HGETALL", queue, "shards"))

    async def decide(
        self, queue: str, verb: str, epoch: int, /, *names: str, **named: str | int
    ) -> bool:
        """Begin, publish or finish a change; False when somebody was faster."""
        reply = await self._engine.ask("shards", queue, *names, verb=verb, epoch=epoch, **named)
        return reply[:1] != [b"STALE"]

    async def retired(self, queue: str) -> list[str]:
        """Shards that were retired within the last hour."""
        return texts(await self._engine.command("ZRANGE", queue, "retired", 0, -1))

    async def server(self, shard: str) -> bytes:
        """Which run of which server has a shard. A cursor of one means nothing to another."""
        info = await self._engine.info(shard, "server")
        return info.partition(b"run_id:")[2].split()[0]

    async def steady(self, shard: str, look: Callable[[], Awaitable[T]]) -> T:
        """What a look at the whole of a shard comes to, done again where its server began anew."""
        while True:
            server = await self.server(shard)
            found = await look()
            if await self.server(shard) == server:
                return found

    async def set_standing(self, shard: str, fields: Mapping[str, str]) -> None:
        """Tell a shard its epoch and its part of the whole."""
        flat = [part for pair in fields.items() for part in pair]
        await self._engine.ask("configure", shard, *flat, mode="declare")

    async def claims(self, shard: str, per_us: int) -> list[Claims]:
        """What a shard has claimed in a window of the queue's limit, oldest first."""
        entries = texts(await self._engine.command("LRANGE", shard, f"window:{per_us}", 0, -1))
        parts = (entry.split(" ") for entry in entries)
        return [Claims(int(instant), int(number)) for instant, number in parts]

    async def add_claims(
        self, shard: str, epoch: int, per_us: int, claims: Sequence[Claims]
    ) -> None:
        """Have a shard count claims that others have made."""
        flat = [part for one in claims for part in one]
        _check_fresh(await self._engine.ask("quota", shard, *flat, epoch=epoch, per=per_us))

    # -- lanes ----------------------------------------------------------------------------------

    async def freeze_out(
        self, shard: str, epoch: int, lanes: Sequence[str]
    ) -> tuple[str, list[bytes]]:
        """Serve lanes no more; the last stamp and what was decided for each of them."""
        stamp, *snapshots = await self._engine.ask("freeze_out", shard, *lanes, epoch=epoch)
        _check_fresh(stamp)
        return stamp.decode(), snapshots

    async def freeze_in(
        self, shard: str, epoch: int, stamp: str, lanes: Mapping[str, bytes]
    ) -> None:
        """Let lanes wait here until they are admitted."""
        flat = [part for pair in lanes.items() for part in pair]
        answer = await self._engine.ask("freeze_in", shard, *flat, epoch=epoch, stamp=stamp)
        _check_fresh(answer)

    async def seal(self, shard: str, epoch: int) -> None:
        """Let no further lane move for this epoch."""
        await self._engine.ask("seal", shard, epoch=epoch)

    async def thaw(self, shard: str, why: str, epoch: int, lanes: Sequence[str]) -> list[str]:
        """Serve lanes that came `in`, or forget those that went `out`; or only `look`.

        Those that come `early`, while jobs of theirs run elsewhere, are served unless an order or a
        maximum forbids it. Returns those that are still there.
        """
        return texts(await self._engine.ask("thaw", shard, *lanes, verb=why, epoch=epoch))

    # -- jobs -----------------------------------------------------------------------------------

    async def scan(self, shard: str, lane: str) -> AsyncIterator[list[tuple[str, str]]]:
        """Every job with its lane, or those of one lane; one that is there all the time is told."""
        cursor = "0"
        while True:
            reply = await self._engine.ask("scan", shard, cursor=cursor, most=_SCAN, lane=lane)
            cursor, *flat = texts(reply)
            if flat:
                yield list(zip(flat[::2], flat[1::2], strict=True))
            if cursor == "0":
                return

    async def take_out(
        self, shard: str, to: str, arrived: int, ids: Sequence[str], *, epoch: int = 0
    ) -> Batch:
        """The batch that is on its way, after that of number `arrived`."""
        named = {"shard": to, "arrived": arrived, "epoch": epoch}
        number, jobs, looked = await self._engine.ask("transfer_out", shard, *ids, **named)
        _check_fresh(number)
        return Batch(number, jobs, looked)

    async def under_way(self, shard: str) -> list[str]:
        """The shards to which batches are on their way, or were when somebody last looked."""
        return texts(await self._engine.command("HKEYS", shard, "transfer_out"))

    async def take_in(self, shard: str, source: str, batch: Batch) -> int:
        """Have a batch arrive, once; how many jobs came."""
        named = {"shard": source, "number": batch.number, "jobs": batch.jobs}
        return int((await self._engine.ask_declared("transfer_in", shard, **named))[0])

    async def retire(self, shard: str, epoch: int) -> bool:
        """Give up a shard that a change has emptied; False when it is in use again."""
        return bool(await self._engine.ask("retire", shard, epoch=epoch) == b"OK")

    async def known(
        self, shard: str, to: str, wanted: Sequence[tuple[str, str, str]]
    ) -> list[Known | None]:
        """For each (id, mode, hash): the job that one sent to `to` would be a duplicate of."""
        flat = [part for one in wanted for part in one]
        reply: list[Any] = await self._engine.ask("known", shard, *flat, to=to)
        return [
            Known(reply[i].decode(), reply[i + 1].decode(), reply[i + 2]) if reply[i] else None
            for i in range(0, len(reply), 3)
        ]


def _check_fresh(answer: bytes | int) -> None:
    if answer == b"STALE":
        raise ShardsChanged("another program has advanced the change", op="move")
