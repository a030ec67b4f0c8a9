"""The scripts that move lanes from one shard of a queue to another, each one call.

The order of the calls for a whole queue is in `faena.sharding.relocation`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from faena.engine.calls.statistics import StatisticsCalls
from faena.engine.engine import Engine
from faena.engine.scripts import text_pairs, texts
from faena.errors import ShardsChanged
from faena.values.shards import queue_of

LANES: Final = 200
"""The most lanes in one call."""

JOBS: Final = 30
"""The most jobs in one batch: the server serves no other call while it packs or unpacks them."""

T = TypeVar("T")

_SCAN: Final = 200


class Claims(NamedTuple):
    """The number of claims at one instant."""

    instant: int
    number: int


class Batch(NamedTuple):
    """Jobs in the outbox of a shard."""

    number: int
    """0 for none."""
    jobs: bytes
    looked: int
    """How many of the ids were checked."""


class Known(NamedTuple):
    """An existing job that makes a new one a duplicate."""

    id: str
    state: str
    spec: bytes
    """Empty if it has another id and holds the unique key."""


class TransferCalls:
    """The script calls that move lanes and their jobs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # -- the table ------------------------------------------------------------------------------

    async def table(self, queue: str) -> dict[str, str]:
        """The table of shards, stored in the first shard."""
        return text_pairs(await self._engine.command("HGETALL", queue, "shards"))

    async def decide(
        self, queue: str, verb: str, epoch: int, /, *names: str, **named: str | int
    ) -> bool:
        """Begin, publish or finish a change; False if another program was faster."""
        reply = await self._engine.ask("shards", queue, *names, verb=verb, epoch=epoch, **named)
        return reply[:1] != [b"STALE"]

    async def count(self, queue: str, epoch: int, shard: str) -> None:
        """Tell the first shard what one that will be given up has counted, ever."""
        totals = await StatisticsCalls(self._engine).totals(shard)
        packed = msgspec.msgpack.encode(totals)
        named = {"verb": "count", "epoch": epoch}
        await self._engine.ask("shards", queue, shard, packed, **named)

    async def retired(self, queue: str) -> list[str]:
        """Shards retired within the last hour."""
        return texts(await self._engine.command("ZRANGE", queue, "retired", 0, -1))

    async def given_up(self, queue: str) -> dict[str, int]:
        """Shards given up within the last week that may have messages, with their epochs."""
        names = texts(await self._engine.command("ZRANGE", queue, "retired_messages", 0, -1))
        epochs = [await self._engine.command("HGET", name, "conf", "epoch") for name in names]
        return {name: int(epoch or 0) for name, epoch in zip(names, epochs, strict=True)}

    async def server(self, shard: str) -> bytes:
        """The run id of the server of a shard; a scan cursor is valid only for one run."""
        info = await self._engine.info(shard, "server")
        return info.partition(b"run_id:")[2].split()[0]

    async def steady(self, shard: str, look: Callable[[], Awaitable[T]]) -> T:
        """The result of `look` at a whole shard; repeated if its server restarted or changed."""
        while True:
            server = await self.server(shard)
            found = await look()
            if await self.server(shard) == server:
                return found

    async def set_standing(self, shard: str, fields: Mapping[str, str]) -> None:
        """Write the epoch of a shard, its index and the number of shards."""
        flat = [part for pair in fields.items() for part in pair]
        await self._engine.ask("configure", shard, *flat, mode="declare")

    async def claims(self, shard: str, per_us: int) -> list[Claims]:
        """The claims of a shard in a window of the queue's limit, oldest first."""
        entries = texts(await self._engine.command("LRANGE", shard, f"window:{per_us}", 0, -1))
        parts = (entry.split(" ") for entry in entries)
        return [Claims(int(instant), int(number)) for instant, number in parts]

    async def add_claims(
        self, shard: str, epoch: int, per_us: int, claims: Sequence[Claims]
    ) -> None:
        """Count claims of another shard in this one."""
        flat = [part for one in claims for part in one]
        _check_fresh(await self._engine.ask("quota", shard, *flat, epoch=epoch, per=per_us))

    # -- lanes ----------------------------------------------------------------------------------

    async def freeze_out(
        self, shard: str, epoch: int, lanes: Sequence[str]
    ) -> tuple[str, list[bytes]]:
        """Stop serving lanes; returns the last stamp, and a snapshot of each lane's settings."""
        stamp, *snapshots = await self._engine.ask("freeze_out", shard, *lanes, epoch=epoch)
        _check_fresh(stamp)
        return stamp.decode(), snapshots

    async def freeze_in(
        self, shard: str, epoch: int, stamp: str, lanes: Mapping[str, bytes]
    ) -> None:
        """Announce lanes to their new shard, which serves them only after `thaw`."""
        flat = [part for pair in lanes.items() for part in pair]
        answer = await self._engine.ask("freeze_in", shard, *flat, epoch=epoch, stamp=stamp)
        _check_fresh(answer)

    async def seal(self, shard: str, epoch: int) -> None:
        """Refuse further lanes in the move of this epoch."""
        await self._engine.ask("seal", shard, epoch=epoch)

    async def thaw(self, shard: str, why: str, epoch: int, lanes: Sequence[str]) -> list[str]:
        """Serve lanes that came `in`, forget those that moved `out`, or only `look`.

        `early` is `in` for lanes with jobs that still run in the old shard; it skips lanes with an
        order or a maximum of running jobs. `out` and `look` return lanes that have not left yet.
        `stay` serves those again whose move was lost.
        """
        still: list[str] = []
        for start in range(0, len(lanes), LANES):
            some = lanes[start : start + LANES]
            still += texts(await self._engine.ask("thaw", shard, *some, verb=why, epoch=epoch))
        return still

    # -- jobs -----------------------------------------------------------------------------------

    async def scan(self, shard: str, lane: str) -> AsyncIterator[list[tuple[str, str]]]:
        """Jobs with their lanes, all or of one lane; includes each job that exists all the time."""
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
        """The batch after number `arrived`: the unconfirmed one, or a new one of these ids."""
        named = {"shard": to, "arrived": arrived, "epoch": epoch}
        number, jobs, looked = await self._engine.ask("transfer_out", shard, *ids, **named)
        _check_fresh(number)
        return Batch(number, jobs, looked)

    async def under_way(self, shard: str) -> list[str]:
        """The shards whose last batch is not known to have arrived."""
        return texts(await self._engine.command("HKEYS", shard, "transfer_out"))

    async def take_in(self, shard: str, source: str, batch: Batch) -> int:
        """Store a batch in its new shard, once; returns the number of jobs stored."""
        named = {"shard": source, "number": batch.number, "jobs": batch.jobs}
        return int((await self._engine.ask_declared("transfer_in", shard, **named))[0])

    async def retire(self, shard: str, epoch: int) -> bool:
        """Retire a shard that a change has emptied; False if it is in use, or has messages."""
        if await self._engine.ask("retire", shard, epoch=epoch) != b"OK":
            return False
        await self._engine.command("ZREM", queue_of(shard), "retired_messages", shard)
        return True

    async def known(
        self, shard: str, to: str, wanted: Sequence[tuple[str, str, str]]
    ) -> list[Known | None]:
        """For each (id, mode, hash) to be sent to `to`: the job here that it would duplicate."""
        flat = [part for one in wanted for part in one]
        reply: list[Any] = await self._engine.ask("known", shard, *flat, to=to)
        return [
            Known(reply[i].decode(), reply[i + 1].decode(), reply[i + 2]) if reply[i] else None
            for i in range(0, len(reply), 3)
        ]


def _check_fresh(answer: bytes | int) -> None:
    if answer == b"STALE":
        raise ShardsChanged("another program has advanced the change", op="move")
