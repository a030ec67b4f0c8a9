"""Two shards of one queue, and lanes on their way from the one to the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from faena.engine.calls.transfer import Batch, TransferCalls
from faena.inspection.audit import audit
from faena.outcomes import Outcome
from tests._support.rig import Rig

EPOCH = 1


class Transfer:
    """The steps of a move in a test's hand; both shards obey one clock."""

    def __init__(self, source: Rig, shard: str = "q/1") -> None:
        self.source = source
        self.target = Rig(source.engine.wire, source.engine.namespace, shard)
        self.target.engine, self.target.clock = source.engine, source.clock
        self.target.declare_as()
        self.moving = TransferCalls(source.engine)
        self._shards = source.queue, shard
        self._arrived = 0

    async def declare(self, **options: object) -> None:
        """Both shards have the queue's settings."""
        for shard in (self.source, self.target):
            await shard.declare(**options)

    async def hand_over(self, *lanes: str, epoch: int = EPOCH) -> None:
        """Lanes are barred at both ends, and what was decided for them has gone before them."""
        stamp, baggage = await self.moving.freeze_out(self.source.queue, epoch, lanes)
        expected = dict(zip(lanes, baggage, strict=True))
        await self.moving.freeze_in(self.target.queue, epoch, stamp, expected)

    async def know_of_change(self, epoch: int = EPOCH) -> None:
        """Both shards know that a change is under way."""
        for shard in (self.source, self.target):
            await shard.engine.declare(shard.queue)
            await self.moving.set_standing(shard.queue, {"epoch": str(epoch)})

    async def take_out(self, *ids: str, arrived: int | None = None, epoch: int = 0) -> Batch:
        known, shards = self._arrived if arrived is None else arrived, self._shards
        return await self.moving.take_out(*shards, known, ids, epoch=epoch)

    async def take_in(self, batch: Batch) -> int:
        came = await self.moving.take_in(self.target.queue, self.source.queue, batch)
        self._arrived = batch.number
        return came

    async def carry(self, *ids: str, epoch: int = 0) -> int:
        """Take jobs over and strike them off; how many came."""
        batch = await self.take_out(*ids, epoch=epoch)
        came = await self.take_in(batch) if batch.number else 0
        await self.take_out()
        return came

    async def thaw(self, *lanes: str, epoch: int = EPOCH) -> list[str]:
        """Lanes have come; those that are still at the old shard."""
        await self.moving.thaw(self.target.queue, "in", epoch, lanes)
        return await self.moving.thaw(self.source.queue, "out", epoch, lanes)

    async def move(self, lanes: Sequence[str], *ids: str) -> None:
        """All of it, of jobs that can leave at once."""
        await self.hand_over(*lanes)
        await self.carry(*ids)
        assert await self.thaw(*lanes) == []

    async def check(self) -> None:
        """Nothing is wrong at either end."""
        for shard in (self.source, self.target):
            assert await audit(shard.engine, shard.queue) == []

    async def states(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Of the jobs that have stayed, and of those that have come."""
        return await self.source.states(), await self.target.states()


async def run_all(rig: Rig, outcome: Outcome) -> list[str]:
    """Claim and settle until nothing can be claimed; the jobs in the order they started."""
    started: list[str] = []
    while claimed := (await rig.turn(1)).claimed:
        started += [claim.id for claim in claimed]
        await rig.turn(0, *((claim.id, claim.lease, outcome) for claim in claimed))
    return started
