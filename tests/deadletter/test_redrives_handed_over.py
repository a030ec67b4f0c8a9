"""Whoever drives a redrive is killed at any of its calls: another finds it, and ends it."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from faena import Faena, RedriveView, Retain
from faena.deadletter import redrive_driver as driver
from faena.deadletter.queues import DeskQueues
from faena.deadletter.redrive import Redrives
from faena.deadletter.redrive_takeover import RedriveTakeover
from faena.engine import Engine
from faena.engine.calls.deadletter import DeskCalls
from faena.engine.scripts import Settlement, Turn
from faena.errors import StoreUnavailable
from faena.outcomes import Buried, Completed, DeathNote, ErrorRecord
from faena.producing.batcher import CallIds
from faena.sharding.router import Routers
from tests._support.eventually import eventually
from tests._support.valkey import Server

SHARDS = ("mail", "mail/1")
TENANTS = ("t0", "t1", "t2", "t3")
NAP_S = 0.01
MOST_CALLS = 60


class Killed(Exception):
    """As far as its driver can do anything, from here on."""


class Fuse:
    """A wire that ends with one of its calls, just before it is sent or when it was answered."""

    def __init__(self, wire: Any, calls: int, *, is_sent: bool) -> None:
        self._wire = wire
        self._left = calls
        self._is_sent = is_sent

    def call(self, *command: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        return self._spend(self._wire.call(*command, **options))

    def run(self, *script: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        return self._spend(self._wire.run(*script, **options))

    async def _spend(self, sending: Coroutine[Any, Any, Any]) -> Any:
        self._left -= 1
        if self._left > 0:
            return await sending
        if self._left == 0 and self._is_sent:
            await sending
        sending.close()
        raise Killed


class DeadJobs:
    """Two shards with dead jobs, each batch with an error of its own, and somebody in place
    of workers.
    """

    def __init__(self, app: Faena, engine: Engine, routers: Routers) -> None:
        self.app = app
        self.engine = engine
        self.routers = routers
        self.done: Counter[str] = Counter()
        self._calls = CallIds()

    async def bury(self, error: str) -> int:
        """A dead job of every tenant."""
        for tenant in TENANTS:
            await self.app.queues["mail"].tasks["send"].enqueue(error, tenant=tenant)
        note = DeathNote("send", "", error, "", "f", "")
        await self._settle(Buried(ErrorRecord(name=error, message=""), note=note))
        return len(TENANTS)

    async def complete(self) -> None:
        """Do whatever is ready, until cancelled."""
        while True:
            self.done.update(await self._settle(Completed()))
            await asyncio.sleep(0.01)

    async def _settle(self, outcome: Any) -> list[str]:
        ids: list[str] = []
        for shard in SHARDS:
            answer = await self._exchange(shard, 100)
            ids += [one.id for one in answer.claimed]
            endings = [Settlement(one.id, one.lease, outcome) for one in answer.claimed]
            await self._exchange(shard, 0, endings)
        return ids

    def _exchange(self, shard: str, want: int, endings: Sequence[Settlement] = ()) -> Any:
        turn = Turn(self._calls(), want, list(endings))
        return self.engine.exchange(shard, f"worker-{shard}", "worker", turn)

    def redrives(self, fuse: Fuse | None = None) -> Redrives:
        """Of a driver of its own, which lives as long as its fuse."""
        engine = self.engine
        if fuse is not None:
            engine = copy.copy(self.engine)
            engine.wire = fuse  # type: ignore[assignment]

        async def connect() -> tuple[Engine, Routers]:
            return engine, self.routers

        queues = DeskQueues(connect, lambda: self.app.queues, self.app.new_ids)
        return Redrives(queues, lease_s=3600)

    async def begin(self, error: str, canary: int) -> str:
        return await self.redrives().start_redrive(
            "mail", canary=canary, by="ana", reason="mended", error=error
        )

    async def view(self, redrive: str) -> RedriveView:
        return await self.redrives().redrive_state("mail", redrive)


@pytest.fixture
async def jobs(
    valkey: Server, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[DeadJobs]:
    monkeypatch.setattr(driver, "LONGEST_NAP_S", NAP_S)
    app = Faena("shop", valkey.url, namespace=namespace)
    queue = app.queue("mail", shards=2, retain=Retain(dead_count=None))

    @queue.task
    async def send(error: str) -> None: ...

    runtime = await app.runtime()
    yield DeadJobs(app, runtime.engine, runtime.routers)
    await queue.obliterate(force=True)
    await app.close()


@asynccontextmanager
async def at_work(jobs: DeadJobs) -> AsyncIterator[None]:
    working = asyncio.create_task(jobs.complete())
    try:
        yield
    finally:
        working.cancel()
        await asyncio.wait({working})


async def carried_on(jobs: DeadJobs, redrive: str) -> RedriveView:
    """Once the lease of whoever is gone has ended: here at once."""
    await jobs.engine.command("DEL", "mail", f"redriver:{redrive}")
    found: list[RedriveView] = []

    async def is_over() -> bool:
        view = await jobs.redrives().carry_on("mail", redrive)
        found.extend([view] if view else [])
        return bool(found)

    await eventually(is_over)
    return found[0]


@pytest.mark.parametrize("is_sent", [False, True], ids=["unsent", "sent"])
@pytest.mark.parametrize("canary", [0, 3])
async def test_another_ends_a_redrive_wherever_its_driver_was_killed(
    jobs: DeadJobs, canary: int, is_sent: bool
) -> None:
    for calls in range(1, MOST_CALLS):
        error = f"Boom{calls}"
        number = await jobs.bury(error)
        redrive = await jobs.begin(error, canary)
        fuse = Fuse(jobs.engine.wire, calls, is_sent=is_sent)
        async with at_work(jobs):
            try:
                view = await jobs.redrives(fuse).carry_on("mail", redrive)
                is_killed = False
            except Killed:
                is_killed = True
                if (await jobs.view(redrive)).state != "done":
                    assert await jobs.redrives().under_way("mail") == [redrive], calls
                view = await carried_on(jobs, redrive)
            assert view
            assert (view.state, view.moved) == ("done", number), calls
            await eventually(lambda: sum(jobs.done.values()) == number * calls)  # noqa: B023 - awaited here
        assert set(jobs.done.values()) == {1}
        assert await jobs.redrives().under_way("mail") == []
        if not is_killed:
            return
    pytest.fail(f"a driver must end within {MOST_CALLS} calls")


@pytest.mark.parametrize(("verb", "state"), [("fail", "failed"), ("stop", "stopped")])
async def test_what_one_shard_was_told_before_somebody_died_counts_for_all(
    jobs: DeadJobs, verb: str, state: str
) -> None:
    await jobs.bury("Boom")
    redrive = await jobs.begin("Boom", canary=3)
    await DeskCalls(jobs.engine).redrives(SHARDS[1], verb, redrive)
    assert await jobs.redrives().under_way("mail") == [redrive]
    view = await jobs.redrives().carry_on("mail", redrive)
    assert view
    assert (view.state, view.moved) == (state, 0)
    assert await jobs.redrives().under_way("mail") == []


class Blind(Redrives):
    """Sees nothing at its first look."""

    looks = 0

    async def under_way(self, queue: str) -> list[str]:
        self.looks += 1
        if self.looks == 1:
            raise StoreUnavailable("no answer", op="redrives")
        return await super().under_way(queue)


async def test_a_look_that_failed_is_followed_by_another_soon(jobs: DeadJobs) -> None:
    number = await jobs.bury("Boom")
    redrive = await jobs.begin("Boom", canary=0)
    takeover = RedriveTakeover(Blind(jobs.app._desk_queues), ["mail"], every_s=3600, soon_s=0.01)
    carrying = asyncio.create_task(takeover.run())

    async def is_done() -> bool:
        view = await jobs.view(redrive)
        return (view.state, view.moved) == ("done", number)

    await eventually(is_done)
    carrying.cancel()
    await asyncio.wait({carrying})
