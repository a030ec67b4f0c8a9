"""Schedules whose jobs live at another shard than their records."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from faena import Backpressure, Faena
from faena.engine import Address, Engine
from faena.engine.calls.scheduling import read
from faena.engine.settings import declaration
from faena.engine.wire.request import Argument, Key, Script
from faena.errors import StoreUnavailable
from faena.scheduling.due import unpack
from faena.scheduling.scheduler import Scheduler
from faena.sharding.router import Routers
from faena.sharding.routing_table import Change, Table
from faena.testing import Harness
from tests._support.failing_script import make_fail
from tests._support.faulty_wire import FaultyWire
from tests._support.valkey import Server
from tests.scheduling.conftest import ids, look

AWAY = next(
    f"t{number}"
    for number in itertools.count()
    if Table(shards=3).shard_of("q", f"@t{number}") != "q"
)
HERE = next(
    f"t{number}"
    for number in itertools.count()
    if Table(shards=3).shard_of("q", f"@t{number}") == "q"
)
FULL = "return {err = \"OOM command not allowed when used memory > 'maxmemory'\"}"
SOON_US = 5_000_000
"""After which a scheduler tries again."""
INSTANT, SECOND = "s@20260301T010000Z", "s@20260301T020000Z"


class DyingWire(FaultyWire):
    """Carries so many scripts; of the last one the answer is lost, and nothing follows."""

    left = 10**9

    async def run(
        self, script: Script, keys: Sequence[Key], args: Sequence[Argument], *, patience_s: float
    ) -> Any:
        if self.left == 0:
            raise StoreUnavailable("this process is dead")
        self.left -= 1
        self.fault = "none" if self.left else "vanished"
        return await super().run(script, keys, args, patience_s=patience_s)


@pytest.fixture
async def queue(app: Faena, h: Harness) -> Any:
    made = app.queue("q", fair=True, shards=3)

    @made.task
    async def work() -> None: ...

    app.schedule("s", work, every="1h", tenant=AWAY, overlap="skip")
    router = (await app.runtime()).routers.of("q")
    await router.grown()
    assert await router.settled(10)
    return made


class Mortal:
    """A scheduler that dies at a call."""

    def __init__(self, app: Faena, h: Harness, url: str) -> None:
        options = app.queues["q"].options
        self.wire = DyingWire(Address.parse(url))
        engine = Engine(self.wire, namespace=h.namespace, clock=h.clock)
        engine.know("q", declaration(options))
        self._routers = Routers(engine, {"q": options})
        self._scheduler = Scheduler(engine, self._routers, {"q": options})

    async def look(self, calls: int = 10**9) -> bool:
        """Whether it has outlived so many calls of its look."""
        self.wire.left = calls
        try:
            await self._scheduler.run_once()
        except StoreUnavailable:
            return False
        return self.wire.left > 0

    async def close(self) -> None:
        await self._routers.close()
        await self.wire.close()


@pytest.fixture
async def mortal(app: Faena, h: Harness, valkey: Server, queue: Any) -> AsyncIterator[Mortal]:
    """It has fired once and knows everything: the next instant is `SECOND`."""
    made = Mortal(app, h, valkey.url)
    await look(app)
    h.clock.advance("1h")
    assert await made.look()
    assert await ids(h) == [INSTANT]
    await h.drain()
    await queue.clean("completed")
    h.clock.advance("1h")
    yield made
    await made.close()


async def change_nothing(queue: Any) -> None:
    pass


async def dedicate(queue: Any) -> None:
    await queue.tenant(AWAY).dedicate()


async def rejoin(queue: Any) -> None:
    await queue.tenant(AWAY).dedicate()
    await queue.tenant(AWAY).rejoin()


async def reshard(queue: Any) -> None:
    await queue.reshard(7)


async def intent(app: Faena) -> Any:
    _, found = await read((await app.runtime()).engine, "q", ["s"])
    return unpack(found["s"].record).intent


async def test_the_job_goes_to_the_shard_of_its_tenant(app: Faena, h: Harness, queue: Any) -> None:
    await look(app)
    h.clock.advance("1h")
    await look(app)
    assert await ids(h) == [INSTANT]
    shards = (await queue.shards()).jobs
    assert shards == {**dict.fromkeys(shards, 0), Table(shards=3).shard_of("q", f"@{AWAY}"): 1}
    assert await intent(app) is None
    view = await app.schedules.get("s")
    assert (view.fired, view.last_job) == (1, INSTANT)


@pytest.mark.parametrize("change", [change_nothing, dedicate, rejoin, reshard])
@pytest.mark.parametrize("calls", range(1, 7))
async def test_whoever_comes_after_one_that_died_carries_on(
    app: Faena, h: Harness, queue: Any, mortal: Mortal, calls: int, change: Any
) -> None:
    await mortal.look(calls)
    await change(queue)
    await look(app)
    assert await ids(h) == [SECOND]
    assert await intent(app) is None
    assert (await app.schedules.get("s")).fired == 2
    await h.drain()
    await queue.clean("completed")
    await mortal.look()  # it was only asleep
    await look(app)
    assert await ids(h) == []


async def test_a_full_look_takes_no_more_calls_than_are_tried(
    app: Faena, h: Harness, mortal: Mortal
) -> None:
    assert await mortal.look(7)


async def test_an_edit_settles_what_is_under_way(app: Faena, h: Harness, mortal: Mortal) -> None:
    await mortal.look(2)  # it looks, and notes what it is about to do
    assert await intent(app)
    await app.schedules.edit("s", tenant="another", every="10m")
    (job,) = await h.jobs()
    assert (job.id, job.tenant) == (SECOND, AWAY)
    view = await app.schedules.get("s")
    assert (view.fired, view.terms["tenant"]) == (2, "another")


async def test_a_full_shard_puts_an_instant_off_and_loses_none(
    app: Faena, h: Harness, queue: Any
) -> None:
    await queue.configure(backpressure=Backpressure(hard=3))  # one for each shard
    scheduler = await app.schedules.scheduler(["q"])
    await scheduler.run_once()
    before = await queue.tasks["work"].enqueue(tenant=AWAY)
    h.clock.advance("1h")
    for _ in range(2):
        await scheduler.run_once()
    assert await ids(h) == [before.id]
    assert (await app.schedules.get("s")).fired == 0
    await before.handle.cancel()
    await queue.clean("cancelled")
    await scheduler.run_once()
    assert await ids(h) == [INSTANT]


async def fill(queue: Any, patch: pytest.MonkeyPatch) -> None:
    """Back-pressure: one job for each shard."""
    await queue.configure(backpressure=Backpressure(hard=3))
    await queue.tasks["work"].enqueue(tenant=AWAY)


async def use_up_memory(queue: Any, patch: pytest.MonkeyPatch) -> None:
    """The server of all shards but the first is full."""
    make_fail(patch, "fire", f"if string.find(KEYS[1], '{{q/', 1, true) then {FULL} end")


@pytest.mark.parametrize("make_full", [fill, use_up_memory])
async def test_a_scheduler_that_starts_beside_a_full_shard_fires_at_the_others(
    app: Faena, h: Harness, queue: Any, monkeypatch: pytest.MonkeyPatch, make_full: Any
) -> None:
    app.schedule("here", queue.tasks["work"], every="1h", tenant=HERE)
    await look(app)
    await make_full(queue, monkeypatch)
    h.clock.advance("1h")
    await look(app)
    assert await intent(app)
    assert await clear(h, queue, HERE) == ["here@20260301T010000Z"]
    h.clock.advance("1h")
    scheduler = await app.schedules.scheduler(["q"])
    assert await scheduler.run_once() == h.clock() + SOON_US
    assert await clear(h, queue, HERE) == ["here@20260301T020000Z"]
    assert await intent(app)
    monkeypatch.undo()
    await clear(h, queue, AWAY)
    h.clock.advance("5s")
    await scheduler.run_once()
    assert INSTANT in await ids(h)
    assert await declared_at(app, "s") == h.clock()


async def test_a_schedule_that_cannot_be_stored_keeps_no_other_back(
    app: Faena, h: Harness, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.schedule("here", queue.tasks["work"], every="1h", tenant=HERE)
    scheduler = await app.schedules.scheduler(["q"])
    with monkeypatch.context() as patch:
        make_fail(
            patch, "schedule", f"for _, one in ipairs(ARGV) do if one == 's' then {FULL} end end"
        )
        assert await scheduler.run_once() == h.clock() + SOON_US
    assert (await declared_at(app, "s"), await declared_at(app, "here")) == (None, h.clock())
    await scheduler.run_once()
    assert await declared_at(app, "s") == h.clock()


async def declared_at(app: Faena, name: str) -> int | None:
    """When a schedule was stored as code declares it."""
    _, found = await read((await app.runtime()).engine, "q", [name])
    return unpack(found[name].record).declared_at if found else None


async def clear(h: Harness, queue: Any, tenant: str) -> list[str]:
    """Cancel the jobs of a tenant; their ids."""
    found = [job.id for job in await h.jobs() if job.tenant == tenant]
    for job in found:
        await queue.handle(job).cancel()
    await queue.clean("cancelled")
    return found


async def test_overlap_counts_while_the_tenant_moves(app: Faena, h: Harness, queue: Any) -> None:
    await look(app)
    h.clock.advance("1h")
    await look(app)
    router = (await app.runtime()).routers.of("q")
    assert await router.relocation.begin(Change(own=f"@{AWAY}"), await router.look(), "ops")
    assert await router.relocation.work(until_published=True)
    assert (await router.look()).phase == "moving"
    h.clock.advance("1h")
    await look(app)
    assert await ids(h) == [INSTANT]
    assert (await app.schedules.get("s")).fired == 2
    await router.settled(10)
    assert await ids(h) == [INSTANT]


async def test_a_removed_schedule_leaves_nothing_at_any_shard(
    app: Faena, h: Harness, queue: Any
) -> None:
    task = queue.tasks["work"]
    await app.schedules.create("once", task, every="1h", tenant=AWAY)
    h.clock.advance("1h")
    await look(app)
    shard = Table(shards=3).shard_of("q", f"@{AWAY}")
    engine = (await app.runtime()).engine
    assert b"once" in await engine.command("HKEYS", shard, "fired")
    await app.schedules.remove("once")
    assert b"once" not in await engine.command("HKEYS", shard, "fired")
