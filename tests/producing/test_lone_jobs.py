"""Lone jobs come in without a script, and nobody can tell: order, bounds, lost answers, readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from faena import Backpressure, Faena, Task
from faena.engine import Wire
from faena.errors import Overloaded, StoreUnavailable
from tests._support.eventually import eventually
from tests._support.lossy_proxy import LossyProxy
from tests._support.valkey import Server


@pytest.fixture
def server(tcp_server: Server) -> Server:
    return tcp_server


@pytest.fixture
async def app(server: Server) -> AsyncIterator[Faena]:
    async with Faena("shop", server.url) as app:
        yield app


def noting(app: Faena, ran: list[int], **options: Any) -> Task[int, None]:
    @app.queue("q", **options).task
    async def note(number: int) -> None:
        ran.append(number)

    return note


def scripts_called(server: Server) -> int:
    with server.client() as client:
        told: Any = client.info("commandstats")
        return int(told.get("cmdstat_fcall", {"calls": 0})["calls"])


def left(server: Server) -> int:
    with server.client() as client:
        return int(client.xlen("shop:{q}:arrivals"))  # pyright: ignore[reportArgumentType]


async def drained(app: Faena, ran: list[int], number: int) -> None:
    serving = asyncio.create_task(app.run_worker(queues=["q"]))
    try:
        await eventually(lambda: len(ran) >= number)
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def test_after_the_first_job_no_script_is_called(app: Faena, server: Server) -> None:
    task = noting(app, [])
    await task.enqueue(0)
    before = scripts_called(server)
    for number in range(1, 20):
        receipt = await task.enqueue(number, tenant="acme" if number % 2 else None)
        assert (receipt.status, receipt.durability) == ("created", "memory")
    assert scripts_called(server) == before
    assert left(server) == 19
    assert (await app.queues["q"].counts())["ready"] == 20
    assert left(server) == 0


async def test_they_run_once_each_and_in_the_order_they_came(app: Faena, server: Server) -> None:
    ran: list[int] = []
    task = noting(app, ran, concurrency=1)
    for number in range(250):
        await task.enqueue(number)
    await task.enqueue_many(range(250, 260))
    assert left(server) == 0  # a list goes by the script, which takes in what came before
    for number in range(260, 270):
        await task.enqueue(number)
    await drained(app, ran, 270)
    assert ran == list(range(270))


async def test_no_more_lie_there_than_a_call_takes_in(app: Faena, server: Server) -> None:
    task = noting(app, [])
    for number in range(350):
        await task.enqueue(number)
        assert left(server) <= 100


async def test_whoever_finds_it_closed_does_not_try_it_again_for_a_while(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    push, tried = Wire.push, list[bytes]()

    def noted(wire: Wire, data: bytes, *args: Any) -> Any:
        tried.append(data)
        return push(wire, data, *args)

    monkeypatch.setattr(Wire, "push", noted)
    task = noting(app, [], backpressure=Backpressure(soft=500, hard=1000))
    for number in range(10):
        await task.enqueue(number)
    assert len(tried) == 1


async def test_an_idle_worker_is_woken(app: Faena) -> None:
    ran: list[int] = []
    task = noting(app, ran)
    await task.enqueue(0)
    serving = asyncio.create_task(app.run_worker(queues=["q"]))
    for number in range(1, 20):
        await eventually(lambda number=number: len(ran) == number)
        await task.enqueue(number)
    await eventually(lambda: len(ran) == 20)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert ran == list(range(20))


async def test_a_handle_knows_its_job_at_once(app: Faena) -> None:
    task = noting(app, [])
    await task.enqueue(0)
    handles = [(await task.enqueue(number)).handle for number in range(1, 5)]
    assert await handles[0].state() == "ready"
    await handles[1].cancel()
    assert await handles[1].state() == "cancelled"
    page = await app.queues["q"].jobs(state="ready")
    assert [job.id for job in page.jobs][1:] == [handles[at].id for at in (0, 2, 3)]


async def test_a_bound_that_is_set_under_way_holds_from_the_next_job_on(app: Faena) -> None:
    task = noting(app, [])
    for number in range(5):
        await task.enqueue(number)
    await app.queues["q"].configure(backpressure=Backpressure(soft=5, hard=7))
    await task.enqueue(5)
    await task.enqueue(6)
    with pytest.raises(Overloaded):
        await task.enqueue(7)


async def test_a_tenant_s_bound_holds_too(app: Faena) -> None:
    task = noting(app, [])
    for number in range(3):
        await task.enqueue(number, tenant="acme")
    await app.queues["q"].tenant("acme").configure(size=3)
    with pytest.raises(Overloaded):
        await task.enqueue(3, tenant="acme")
    await task.enqueue(4, tenant="other")


async def test_jobs_of_whoever_has_not_heard_of_new_shards_are_found(
    app: Faena, server: Server
) -> None:
    ran: list[int] = []
    task = noting(app, ran, fair=True)
    async with Faena("shop", server.url) as other:
        late = noting(other, ran, fair=True)
        for number in range(5):
            await late.enqueue(number, tenant=f"t{number}")
        await app.queues["q"].reshard(2)
        for number in range(5, 10):
            await late.enqueue(number, tenant=f"t{number}")
            await task.enqueue(number + 10, tenant=f"t{number}")
    await drained(app, ran, 15)
    assert sorted(ran) == [*range(10), *range(15, 20)]


async def test_a_lost_answer_is_asked_for_by_the_script(server: Server) -> None:
    ran: list[int] = []
    async with (
        LossyProxy(server.port, lambda request: b"XADD" in request) as proxy,
        Faena("shop", proxy.url) as app,
    ):
        task = noting(app, ran)
        for number in range(12):
            assert (await task.enqueue(number)).status == "created"
        assert proxy.lost >= 5
        await drained(app, ran, 12)
    assert ran == list(range(12))


async def test_where_nobody_answers_any_more_the_outcome_is_unknown(server: Server) -> None:
    """And the caller is told so within its own time."""
    with Server("appendonly no") as doomed:
        async with Faena("shop", doomed.url, patience="1s") as app:
            task = noting(app, [])
            await task.enqueue(0)
            await task.enqueue(1)
            # its patience once, and not the silence of a call as well
            (await app.runtime()).engine.wire._call_timeout_s = 3600.0
            doomed.pause()
            async with asyncio.timeout(60):
                with pytest.raises(StoreUnavailable) as told:
                    await task.enqueue(2)
            doomed.resume()
            assert told.value.is_outcome_unknown


async def test_a_queue_that_was_flushed_is_declared_and_goes_on(app: Faena, server: Server) -> None:
    ran: list[int] = []
    task = noting(app, ran)
    for number in range(3):
        await task.enqueue(number)
    with server.client() as client:
        client.flushall()
    for number in range(3, 6):
        await task.enqueue(number)
    await drained(app, ran, 3)
    assert ran == [3, 4, 5]


async def test_many_at_once_travel_together(app: Faena, server: Server) -> None:
    ran: list[int] = []
    task = noting(app, ran)
    await asyncio.gather(*(task.enqueue(number) for number in range(500)))
    assert (await app.queues["q"].counts())["ready"] == 500
    assert left(server) == 0


@pytest.mark.parametrize(
    "option",
    [{"id": "mine"}, {"unique": "x"}, {"delay": "1h"}, {"expires": "1h"}],
    ids=lambda option: next(iter(option)),
)
async def test_whatever_needs_an_answer_goes_by_the_script(
    app: Faena, server: Server, option: dict[str, Any]
) -> None:
    task = noting(app, [])
    await task.enqueue(0)
    before = scripts_called(server)
    await task.enqueue(1, **option)
    assert scripts_called(server) == before + 1


async def test_a_large_job_goes_by_the_script(app: Faena, server: Server) -> None:
    """Those that wait are read by one call."""

    @app.queue("q").task
    async def keep(text: str) -> None: ...

    await keep.enqueue("")
    await keep.enqueue("x" * 16_000)
    assert left(server) == 1
    before = scripts_called(server)
    await keep.enqueue("x" * 17_000)
    assert scripts_called(server) == before + 1


async def test_a_held_queue_takes_in_and_starts_nothing(app: Faena) -> None:
    ran: list[int] = []
    task = noting(app, ran)
    await task.enqueue(0)
    await app.queues["q"].pause()
    await task.enqueue(1)
    overview = await app.queues["q"].overview()
    assert overview.counts["ready"] == 2
    await app.queues["q"].resume()
    await drained(app, ran, 2)
