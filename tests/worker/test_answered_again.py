"""A claim whose answer was lost, and that is answered again: it is as old as it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from faena import Faena, Job, State, Task
from faena.engine.script_library import load
from faena.engine.scripts import Exchanged, Turn
from faena.worker.fetch.fetcher import Fetcher
from tests._support.eventually import eventually
from tests._support.lossy_proxy import LossyProxy
from tests._support.valkey import Server

MINUTE = 60_000_000
Seen = list[tuple[datetime, int]]


@pytest.fixture
async def proxy() -> AsyncIterator[LossyProxy]:
    """Loses the first answer to every exchange."""
    name = load("exchange").function.encode()
    with Server("appendonly no") as server:
        async with LossyProxy(server.port, lambda request: name in request) as proxy:
            yield proxy


def telling(app: Faena, seen: Seen) -> Task[None, None]:
    """A task that writes down when it started, beside when its lease began."""

    @app.queue("q").task
    async def tell(job: Job) -> None:
        engine = (await app.runtime()).engine
        record = await engine.command("HGET", "q", "leases", job.id)
        seen.append((job.started_at, int(record.split()[1])))

    return tell


def microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


async def test_a_job_started_when_it_was_claimed(proxy: LossyProxy) -> None:
    seen: Seen = []
    async with Faena("shop", proxy.url) as app:
        await telling(app, seen).enqueue()
        await app.run_worker(until_empty=True)
    assert proxy.lost
    assert [microseconds(started_at) for started_at, _ in seen] == [at for _, at in seen] != []


async def test_so_did_one_whose_claim_was_sent_ahead(proxy: LossyProxy) -> None:
    seen: Seen = []
    async with Faena("shop", proxy.url) as app:
        tell = telling(app, seen)
        worker = await app.worker()
        running = asyncio.create_task(worker.run())
        await eventually(lambda: any(one._spare for one in worker._by_shard.values()))
        lost = proxy.lost
        await tell.enqueue()
        await eventually(lambda: bool(seen))
        worker.stop()
        await running
    assert proxy.lost > lost
    assert [microseconds(started_at) for started_at, _ in seen] == [at for _, at in seen]


async def test_one_that_has_expired_since_is_not_started(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    @app.queue("q").task
    async def note(job: Job) -> None:
        ran.append(job.id)

    receipt = await note.enqueue(expires="5m")
    engine = (await app.runtime()).patient_engine
    exchange = engine.exchange

    async def asked_again_later(*args: Any) -> Exchanged:
        first = await exchange(*args)
        if first.claimed:
            monkeypatch.setattr(engine, "clock", lambda: first.now + 6 * MINUTE)
        return await exchange(*args) if first.claimed else first

    monkeypatch.setattr(engine, "exchange", asked_again_later)
    await app.run_worker(until_empty=True)
    assert (ran, await receipt.handle.state()) == ([], State.CANCELLED)


@pytest.mark.parametrize(("passed", "renewals"), [(0.5, 0), (0.8, 1)])
async def test_a_lease_that_the_next_beat_could_miss_is_renewed_before_the_job_is_started(
    app: Faena, monkeypatch: pytest.MonkeyPatch, passed: float, renewals: int
) -> None:
    steps: list[str] = []

    @app.queue("q", lease="1h").task
    async def note() -> None:
        steps.append("ran")

    start = Fetcher._start

    def start_late(fetcher: Fetcher, turn: Turn, exchanged: Exchanged) -> None:
        asked_at = time.monotonic() - passed * fetcher._shared.least_lease_us / 1e6
        start(fetcher, turn._replace(asked_at=asked_at), exchanged)

    engine = (await app.runtime()).patient_engine
    renew = engine.renew

    async def noted(*args: Any) -> Any:
        steps.append("renewed")
        return await renew(*args)

    monkeypatch.setattr(Fetcher, "_start", start_late)
    monkeypatch.setattr(engine, "renew", noted)
    await note.enqueue()
    await app.run_worker(until_empty=True)
    assert steps == ["renewed"] * renewals + ["ran"]
