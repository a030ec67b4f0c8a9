"""Pages over shards while tenants move, relocations die, and other jobs come and go.

A reader and a relocation make calls in turns that chance decides. All jobs are of one instant.
Those that nobody touches must be seen once, whatever the page, the state and the direction.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from faena.deadletter.desk import Desk
from faena.deadletter.queues import DeskQueues
from faena.engine import Address, Engine
from faena.engine.calls.lock import Lock
from faena.engine.envelope import seal
from faena.engine.settings import declaration
from faena.inspection.inspector import Inspector
from faena.options import QueueOptions, Retain
from faena.outcomes import Buried, Completed
from faena.sharding import relocation
from faena.sharding.relocation import Relocation
from faena.sharding.router import Routers
from faena.sharding.routing_table import Change, Table
from faena.states import State
from tests._support.gated_wire import GatedWire, Stepped
from tests._support.rig import BOOM, Rig
from tests._support.search import IS_FULL
from tests._support.valkey import Server
from tests.properties.shards_relocation import Hired

OPTIONS = QueueOptions(fair=True, retain=Retain(completed_count=1000))
LANES = ("@a", "@b", "@c", "@d", "@e")
SHARDS = ("q", "q/1", "q/2", "q/3", "q/@a", "q/@b")
STABLE = 40

Read = Callable[[Engine, Routers, bool], Awaitable[list[str]]]


class BusyQueue:
    """A queue full of jobs, and chance."""

    def __init__(self, rig: Rig, server: Server, seed: int) -> None:
        self.rig = rig
        self._server = server
        self._chance = random.Random(seed)
        self._wires: list[GatedWire] = []
        self._hired: Hired | None = None
        self._busy = [f"busy-{number}" for number in range(30)]

    async def fill(self) -> list[str]:
        """Ready, completed and dead jobs of every lane; the ids of those that nobody will touch."""
        await self.rig.declare(fair=True, retain=OPTIONS.retain)
        for state in ("completed", "dead", "ready"):
            ids = [f"{state}-{number}" for number in range(STABLE)]
            ids += [f"{state}-{job}" for job in self._busy]
            await self._add(ids)
            if state != "ready":
                outcome = Completed() if state == "completed" else Buried(BOOM)
                lease = await self.rig.claim(len(ids))
                await self.rig.turn(0, *((job, lease, outcome) for job in ids))
        return [f"{number}" for number in range(STABLE)]

    async def _add(self, ids: list[str]) -> None:
        jobs = []
        for number, job in enumerate(ids):
            lane = LANES[number % len(LANES)]
            body = b'{"task":"work","tenant":"%b"}' % lane[1:].encode()
            jobs.append((job, seal(10, {"lane": lane}, body)))
        await self.rig.engine.enqueue("q", "producer", self.rig.next_call(), jobs)

    def wire(self) -> GatedWire:
        self._wires.append(GatedWire(Address.parse(self._server.url)))
        return self._wires[-1]

    async def disturb(self) -> None:
        """Let the relocation make a call, or die, or begin another change; or touch a job."""
        hired = self._hired
        if hired is None or hired.is_done:
            await self._begin()
        elif self._chance.random() < 0.02:
            await hired.abandon()
            await self._hire()
        elif self._chance.random() < 0.1:
            await self._touch()
        else:
            await hired.step()

    async def _begin(self) -> None:
        keeper = Relocation(self.rig.engine, "q")
        table = await keeper.table()
        if not table.phase:
            await keeper.begin(self._change(table), table, "ops")
        await self._hire()

    def _change(self, table: Table) -> Change:
        changes = [Change(own=lane) for lane in ("@a", "@b") if lane not in table.own]
        changes += [Change(shared=lane) for lane in table.own]
        changes += [Change(shards=number) for number in (1, 2, 3, 4) if number != table.shards]
        return self._chance.choice(changes)

    async def _hire(self) -> None:
        self._hired = Hired(self.wire(), self.rig.engine.namespace, self.rig.clock)
        await self._hired.begin("q", declaration(OPTIONS))

    async def _touch(self) -> None:
        """Some job of the others starts over, or is cancelled."""
        state = self._chance.choice(["completed", "dead", "ready"])
        job = f"{state}-{self._chance.choice(self._busy)}"
        act = self._chance.choice([self.rig.engine.rerun, self.rig.engine.cancel])
        for shard in SHARDS:
            if await self.rig.engine.look(shard, [job]) != [None]:
                await act(shard, [job])

    async def read(self, read: Read, *, is_newest_first: bool) -> list[str]:
        """What a reader sees whose calls meet all that."""
        wire, reader = self.wire(), list[list[str]]()
        engine = Engine(wire, namespace=self.rig.engine.namespace, clock=self.rig.clock)
        engine.know("q", declaration(OPTIONS))

        async def work() -> None:
            reader.append(await read(engine, Routers(engine, {"q": OPTIONS}), is_newest_first))

        stepped = Stepped(wire)
        await stepped.start(work())
        while stepped.is_busy:
            for _ in range(self._chance.choice([0, 0, 1, 2, 8])):
                await self.disturb()
            await stepped.step()
        return reader[0]

    async def close(self) -> None:
        if self._hired is not None:
            await self._hired.abandon()
        for wire in self._wires:
            await wire.close()
        for shard in SHARDS:
            while await self.rig.engine.obliterate(shard, 1000, force=True) != "DONE":
                pass


@pytest.fixture
async def make_queue(
    rig: Rig, valkey: Server, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[[int], BusyQueue]]:
    async def always(*_: object) -> bool:
        return True

    monkeypatch.setattr(Lock, "take", always)
    monkeypatch.setattr(Lock, "drop", always)
    monkeypatch.setattr(relocation, "_PAUSE_S", 0)
    queues: list[BusyQueue] = []

    def make(seed: int) -> BusyQueue:
        queues.append(BusyQueue(rig, valkey, seed))
        return queues[-1]

    yield make
    for queue in queues:
        await queue.close()


def jobs_of(state: State, limit: int) -> Read:
    async def read(engine: Engine, routers: Routers, is_newest_first: bool) -> list[str]:
        inspector, cursor, seen = Inspector(engine, routers), None, list[str]()
        while True:
            page = await inspector.page(
                "q", state, limit=limit, cursor=cursor, is_newest_first=is_newest_first
            )
            assert all(job.state is state for job in page.jobs)
            seen += [job.id for job in page.jobs]
            cursor = page.cursor
            if cursor is None:
                return seen

    return read


def desk_of(limit: int, **wanted: Any) -> Read:
    async def read(engine: Engine, routers: Routers, is_newest_first: bool) -> list[str]:
        async def connect() -> tuple[Engine, Routers]:
            return engine, routers

        desk = Desk(DeskQueues(connect, lambda: ["q"], lambda _: []))
        cursor, seen = None, list[str]()
        while True:
            page = await desk.list(
                limit=limit, cursor=cursor, is_newest_first=is_newest_first, **wanted
            )
            seen += [one.id for one in page.items]
            cursor = page.cursor
            if cursor is None:
                return seen

    return read


READS = {
    "ready": jobs_of(State.READY, 4),
    "completed": jobs_of(State.COMPLETED, 7),
    "dead": jobs_of(State.DEAD, 1),
    "dead at the desk": desk_of(5),
    "dead of a filter": desk_of(3, error="Boom", status="pending"),
}


@pytest.mark.parametrize("seed", range(20 if IS_FULL else 1))
@pytest.mark.parametrize("is_newest_first", [False, True])
@pytest.mark.parametrize("what", READS)
async def test_whoever_reads_all_pages_sees_each_job_once(
    make_queue: Callable[[int], BusyQueue], what: str, is_newest_first: bool, seed: int
) -> None:
    queue = make_queue(seed)
    stable = [f"{what.split(maxsplit=1)[0]}-{number}" for number in await queue.fill()]
    seen = Counter(await queue.read(READS[what], is_newest_first=is_newest_first))
    assert {job: seen[job] for job in stable if seen[job] != 1} == {}


async def test_nobody_in_the_way_sees_all_in_order(make_queue: Callable[[int], BusyQueue]) -> None:
    queue = make_queue(0)
    await queue.fill()
    routers = Routers(queue.rig.engine, {"q": OPTIONS})
    for is_newest_first in (False, True):
        for read in READS.values():
            seen = await read(queue.rig.engine, routers, is_newest_first)
            assert len(seen) == len(set(seen)) == STABLE + 30
            assert seen == sorted(seen, reverse=is_newest_first) or seen[0].startswith("ready")
