"""What cannot be done for one job, or one letter, keeps nobody else's back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

from faena import Faena, Job
from faena.engine.calls.flows import FlowCalls
from faena.engine.scripts import Settlement, Turn
from faena.flows.relay import Relay
from faena.inspection.audit import audit
from faena.outcomes import Completed
from faena.producing.client import Client
from faena.sharding.router import Routers
from faena.worker.fetch.exchanger import Exchanger
from faena.worker.heartbeat import Heartbeat
from faena.worker.leases import Leases
from tests._support.eventually import eventually
from tests._support.failing_script import make_fail
from tests._support.rig import LEASE, SECOND, T0, Rig
from tests._support.valkey import Server
from tests._support.working import running

JOBS = [f"good{number}" for number in range(19)] + ["bad"]
FAILS = "for i = 10, #ARGV do if ARGV[i] == 'bad' {} then error('planted') end end"


@pytest.fixture
async def app(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[Faena]:
    app = Faena("apart", server.url, namespace=f"apart{abs(hash(request.node.name)) % 10**9}")
    yield app
    await app.close()


class Shop:
    """Twenty jobs that end together."""

    def __init__(self, app: Faena) -> None:
        self.app = app
        self.ledger: list[str] = []
        self.all_run = asyncio.Event()
        self.queue = app.queue("q", concurrency=40)
        self.work = self.queue.task(name="work")(self._work)

    async def _work(self, job: Job) -> str:
        self.ledger.append(job.id)
        if len(self.ledger) == len(JOBS):
            self.all_run.set()
        await self.all_run.wait()
        return job.id

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        for job in JOBS:
            await self.work.enqueue(id=job)
        async with running(self.app):
            yield

    async def are_settled(self, **wanted: int) -> bool:
        counts = await self.queue.counts()
        return {state: counts[state] for state in wanted} == wanted


async def test_a_job_that_cannot_be_settled_is_buried_and_the_others_go_on(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(app)
    make_fail(monkeypatch, "exchange", FAILS.format("and ARGV[i + 2] ~= 'bury'"))
    async with shop.working():
        await eventually(lambda: shop.are_settled(completed=19, dead=1, running=0))
        view = await shop.work.handle("bad").view()
        assert view is not None
        (error,) = view.errors
        assert (error.name, error.code) == ("ScriptError", "SCRIPT_ERROR")
        assert "planted" in error.message
        assert sorted(shop.ledger) == sorted(JOBS)
        found = (await app.dead_letters.list(queues="q")).items[0]
        assert (found.id, found.task) == ("bad", "work")
        assert await audit((await app.runtime()).engine, "q") == []


async def test_a_job_that_cannot_even_be_buried_keeps_its_lease_and_nobody_back(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(app)
    make_fail(monkeypatch, "exchange", FAILS.format(""))
    async with shop.working():
        await eventually(lambda: shop.are_settled(completed=19, dead=0, running=1))
        assert sorted(shop.ledger) == sorted(JOBS)
        await shop.work.enqueue(id="next")
        await eventually(lambda: shop.are_settled(completed=20, running=1))


async def test_leases_are_renewed_beside_one_that_cannot_be(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.add("a", "bad", "b")
    lease = await rig.claim(3)
    make_fail(
        monkeypatch, "renew", "for i = 1, #ARGV do if ARGV[i] == 'bad' then error('x') end end"
    )
    rig.clock.go(5)
    leases = Leases()
    heart = Heartbeat(
        lambda: rig.engine,
        leases,
        every_s=1,
        on_stop=lambda *_: None,
        loop=asyncio.get_running_loop(),
        patience_s=lambda: 60.0,
        on_stuck=lambda _: None,
    )
    for job in ("a", "bad", "b"):
        leases.take("q", lease, [(job, time.monotonic() + 60)])
    await heart._renew_all(rig.engine)
    ends = dict((await rig.dump())["running"])
    assert ends == {"a": T0 + 5 * SECOND + LEASE, "bad": T0 + LEASE, "b": T0 + 5 * SECOND + LEASE}


async def test_letters_are_read_beside_one_that_nobody_can_read(rig: Rig) -> None:
    mail = FlowCalls(rig.engine)
    await mail.open_group("q", "g", {})
    for job in ("a", "b"):
        await rig.run(job, Completed(), tells="g:q:g:")
        await rig.engine.command("XADD", "q", "messages:q", "*", "is", b"\xc1garbage")
    await rig.engine.command("ZADD", "q", "pending_sends", 1, "nonsense")
    await Relay(rig.engine, Client(rig.engine, Routers(rig.engine, {}))).carry("q")
    assert (await mail.group("q", "g"))["completed"] == b"2"
    dumped = await rig.dump()
    assert dumped["messages:q"] == []
    assert "pending_sends" not in dumped


async def test_a_turn_that_was_settled_apart_tells_of_lost_leases_and_claims_what_it_wanted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.add("bad", "lost", "good", "next")
    lease = await rig.claim(3)
    make_fail(monkeypatch, "exchange", FAILS.format(""))
    exchanger = Exchanger(rig.engine, "worker", "q", rig.next_call)
    endings = [
        Settlement("bad", lease, Completed()),
        Settlement("lost", "another", Completed()),
        Settlement("good", lease, Completed()),
    ]
    exchanged = await exchanger.ask("worker", Turn(rig.next_call(), 1, endings))
    assert exchanged.lost == ["lost"]
    assert [claim.id for claim in exchanged.claimed] == ["next"]
    assert (await rig.states())["good"] == "completed"
