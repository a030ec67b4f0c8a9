"""What the machine has found of shards, each as the shortest story that shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from faena.engine import Address
from faena.engine.calls.lock import Lock
from faena.engine.calls.transfer import TransferCalls
from faena.engine.scripts import Turn
from faena.engine.settings import declaration
from faena.errors import ShardsChanged
from faena.options import QueueOptions
from faena.outcomes import Completed, Limited, Released
from faena.sharding import relocation
from faena.sharding.relocation import Relocation
from faena.sharding.routing_table import Change, Table
from tests._support.gated_wire import GatedWire
from tests._support.rig import SECOND, Rig
from tests._support.valkey import Server
from tests.properties.shards_relocation import Hired

OWN = "q/@b"


class MovingQueue:
    """A queue whose lane @b moves, and relocations that stop where a test wants them to."""

    def __init__(self, rig: Rig, server: Server) -> None:
        self.rig = rig
        self.moving = TransferCalls(rig.engine)
        self._server = server
        self._wires: list[GatedWire] = []
        self._hired: list[Hired] = []

    async def relocation(self) -> Hired:
        wire = GatedWire(Address.parse(self._server.url))
        self._wires.append(wire)
        hired = Hired(wire, self.rig.engine.namespace, self.rig.clock)
        await hired.begin("q", declaration(QueueOptions(fair=True)))
        self._hired.append(hired)
        return hired

    async def table(self) -> Table:
        return await Relocation(self.rig.engine, "q").table()

    async def begin(self, change: Change) -> None:
        keeper = Relocation(self.rig.engine, "q")
        assert await keeper.begin(change, await keeper.table(), "ops")

    async def change(self, what: Change) -> None:
        """All of it, by one relocation."""
        await self.begin(what)
        await self.go_on(await self.relocation())

    async def go_on(self, hired: Hired, *, until: str = "") -> None:
        """Until the relocation is done, or is about to make the call that is meant."""
        for _ in range(200):
            if hired.is_done or (until and until in hired.next_call):
                return
            await hired.step()
        raise AssertionError(f"the relocation must come to {until or 'its end'}")

    async def enqueue(self, shard: str, epoch: int, *ids: str) -> None:
        jobs = [(job, b"010 lane=@b\n{}") for job in ids]
        engine = self.rig.engine
        await engine.enqueue(shard, "producer", self.rig.next_call(), jobs, epoch=epoch)

    async def claimed(self, shard: str) -> list[str]:
        turn = Turn(self.rig.next_call(), 9)
        answer = await self.rig.engine.exchange(shard, "worker", "worker", turn)
        return [claim.id for claim in answer.claimed]

    async def close(self) -> None:
        for hired in self._hired:
            await hired.abandon()
        for wire in self._wires:
            await wire.close()
        for shard in ("q/1", OWN):
            while await self.rig.engine.obliterate(shard, 1000, force=True) != "DONE":
                pass


@pytest.fixture
async def queue(
    rig: Rig, valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MovingQueue]:
    async def always(*_: object) -> bool:
        return True

    monkeypatch.setattr(Lock, "take", always)
    monkeypatch.setattr(Lock, "drop", always)
    monkeypatch.setattr(relocation, "_PAUSE_S", 0)
    await rig.declare(fair=True)
    queue = MovingQueue(rig, valkey)
    yield queue
    await queue.close()


async def test_a_change_is_published_though_who_sealed_the_shards_has_died(
    queue: MovingQueue,
) -> None:
    await queue.begin(Change(own="@b"))
    first = await queue.relocation()
    await queue.go_on(first, until="'publish'")  # both shards are sealed
    await first.abandon()
    await queue.go_on(await queue.relocation())
    assert (await queue.table()).own == {"@b"}


async def test_a_producer_brings_no_shard_back_that_was_given_up(queue: MovingQueue) -> None:
    await queue.change(Change(own="@b"))
    await queue.enqueue(OWN, 1, "a")
    await queue.change(Change(shared="@b"))
    with pytest.raises(ShardsChanged):
        await queue.enqueue(OWN, 1, "b")
    assert await queue.rig.states() == {"a": "ready"}


async def test_a_relocation_that_slept_takes_no_new_shard_for_an_old_one(
    queue: MovingQueue,
) -> None:
    await queue.change(Change(own="@b"))
    await queue.begin(Change(shared="@b"))
    slow = await queue.relocation()
    await queue.go_on(slow, until="retire")
    await queue.change(Change(own="@b"))
    await queue.enqueue(OWN, 3, "a")
    await queue.go_on(slow)
    assert await queue.claimed(OWN) == ["a"]


async def test_a_batch_that_arrives_too_late_is_not_taken_in_again(queue: MovingQueue) -> None:
    await queue.enqueue("q", 0, "a")
    await queue.begin(Change(own="@b"))
    slow = await queue.relocation()
    await queue.go_on(slow, until="transfer_in")
    await queue.go_on(await queue.relocation())
    await queue.change(Change(shared="@b"))  # the shard that had taken the batch in is no more
    await queue.go_on(slow)
    assert await queue.claimed("q") == ["a"]
    assert await queue.claimed(OWN) == []


async def test_a_relocation_that_slept_sends_no_job_where_its_lane_lived_before(
    queue: MovingQueue,
) -> None:
    await queue.enqueue("q", 0, "a")
    await queue.begin(Change(own="@b"))
    slow = await queue.relocation()
    await queue.go_on(slow, until="transfer_out")
    await queue.go_on(await queue.relocation())
    await queue.change(Change(shared="@b"))
    await queue.begin(Change(shards=2))
    await queue.go_on(await queue.relocation(), until="transfer_out")
    await queue.go_on(slow)
    await queue.go_on(await queue.relocation())
    assert [*await queue.claimed("q"), *await queue.claimed("q/1")] == ["a"]


async def test_a_relocation_carries_on_with_what_another_took_out_last(queue: MovingQueue) -> None:
    await queue.enqueue("q", 0, "a")
    lease = await queue.rig.claim()
    await queue.begin(Change(own="@b"))
    first, second = await queue.relocation(), await queue.relocation()
    await queue.go_on(first, until="'look'")
    await queue.go_on(second, until="transfer_out")
    await queue.rig.turn(0, ("a", lease, Released()))
    await second.step()
    await second.abandon()
    await queue.go_on(first)
    assert await queue.claimed(OWN) == ["a"]


async def test_a_lane_of_finished_jobs_is_not_served_where_it_lived(queue: MovingQueue) -> None:
    await queue.enqueue("q", 0, "a")
    await queue.rig.turn(0, ("a", await queue.rig.claim(), Completed()))
    await queue.begin(Change(shards=2))
    relocation = await queue.relocation()
    await queue.go_on(relocation, until="'publish'")
    await relocation.step()
    await queue.rig.engine.rerun("q", ["a"])
    assert await queue.claimed("q") == []
    await queue.go_on(relocation)
    assert await queue.claimed("q/1") == ["a"]


async def test_a_lane_is_held_where_it_goes_for_what_a_provider_said_where_it_was(
    queue: MovingQueue,
) -> None:
    await queue.enqueue("q", 0, "a")
    lease = await queue.rig.claim()
    await queue.begin(Change(own="@b"))
    relocation = await queue.relocation()
    await queue.go_on(relocation, until="'look'")
    await queue.rig.turn(0, ("a", lease, Limited(10 * SECOND, "tenant")))
    await queue.go_on(relocation)
    assert await queue.claimed(OWN) == []
    queue.rig.clock.go(10)
    assert await queue.claimed(OWN) == ["a"]


@pytest.mark.parametrize("by", ["the queue", "an operator"])
async def test_no_more_of_a_lane_run_while_it_moves_than_its_maximum(
    queue: MovingQueue, by: str
) -> None:
    if by == "the queue":
        await queue.rig.edit(tenant_max_running=2)
    else:
        await queue.rig.engine.tenant("q", "@b", {"max_running": "2"}, by="ops")
    await queue.enqueue("q", 0, "a", "b", "c", "d")
    lease = await queue.rig.claim(2)
    await queue.begin(Change(own="@b"))
    relocation = await queue.relocation()
    await queue.go_on(relocation, until="'out'")
    assert await queue.claimed(OWN) == []  # two of it run where it was
    await queue.rig.turn(0, ("a", lease, Completed()), ("b", lease, Completed()))
    await queue.go_on(relocation)
    assert await queue.claimed(OWN) == ["c", "d"]


async def test_a_maximum_that_is_set_at_the_new_shard_counts_too(queue: MovingQueue) -> None:
    await queue.enqueue("q", 0, "a", "b")
    await queue.rig.claim()
    await queue.begin(Change(own="@b"))
    relocation = await queue.relocation()
    await queue.go_on(relocation, until="'look'")
    await queue.rig.engine.tenant(OWN, "@b", {"max_running": "1"}, by="ops", epoch=1)
    await queue.go_on(relocation, until="'out'")
    assert await queue.claimed(OWN) == []


async def test_a_lane_without_a_maximum_is_served_while_its_last_jobs_run(
    queue: MovingQueue,
) -> None:
    await queue.enqueue("q", 0, "a", "b")
    await queue.rig.claim()
    await queue.begin(Change(own="@b"))
    await queue.go_on(await queue.relocation(), until="'out'")
    assert await queue.claimed(OWN) == ["b"]


async def test_claims_that_a_lane_left_behind_are_not_brought_to_it_again(
    queue: MovingQueue,
) -> None:
    await queue.rig.edit(tenant_limits=f"2/{3600 * SECOND}")
    await queue.enqueue("q", 0, "a")
    await queue.rig.turn(0, ("a", await queue.rig.claim(), Completed()))
    await queue.change(Change(own="@b"))
    await queue.enqueue(OWN, 1, "b", "c")
    assert await queue.claimed(OWN) == ["b"]
    await queue.change(Change(shards=2))
    assert await queue.claimed(OWN) == []  # two claims in this hour
