"""A broker that dies, freezes, forgets or goes silent: workers go on by themselves."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from faena import Faena
from faena.errors import JobNotFound
from faena.worker.options import WorkerOptions
from tests._support.eventually import eventually
from tests._support.fault_app import (
    Plan,
    QueuePlan,
    Work,
    all_completed,
    enqueue,
    open_app,
    task_of,
)
from tests._support.proxy import Proxy
from tests._support.search import IS_FULL
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcesses

RESUMED_WITHIN_S = 30.0
POSTPONED_S = 3.0
"""What `everysec` may lose: two seconds of postponed writes and one between flushes."""

is_long = pytest.mark.skipif(not IS_FULL, reason="runs with FAENA_SEARCH=full")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def lease() -> str:
    return "2s"


@pytest.fixture
def queues(lease: str) -> dict[str, QueuePlan]:
    return {"q": QueuePlan(lease=lease, concurrency=2)}


@pytest.mark.parametrize(
    "outage_s",
    [0.1, 1.0, 5.0, pytest.param(120.0, marks=is_long)],
)
async def test_workers_resume_after_the_broker_was_killed(
    app: Faena, processes: WorkerProcesses, server: Server, outage_s: float
) -> None:
    processes.start(2)
    accepted = await enqueue(app, [Work(ms=20) for _ in range(200)], durability="fsynced")
    accepted |= await enqueue(
        app, [Work(fails=1) for _ in range(20)], delay="500ms", durability="fsynced"
    )
    waiting = asyncio.create_task(task_of(app).handle(min(accepted)).result())
    await _some_starts(processes, 20)
    killed_ns = time.monotonic_ns()
    server.kill()
    await asyncio.sleep(outage_s)
    await asyncio.to_thread(server.start)
    assert await _resumed_after_s(processes, time.monotonic_ns()) <= RESUMED_WITHIN_S
    await all_completed(app, accepted)
    assert (await waiting).startswith("1/")
    assert all(process.is_alive for process in processes.started)
    _only_the_crash_explains_repeats(processes, killed_ns)


async def test_a_broker_that_dies_again_and_again_loses_no_fsynced_job(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    processes.start(2)
    await eventually(processes.are_up)
    accepted = Accepted()
    killed: list[float] = []
    for _ in range(3):
        async with _batchers(app, accepted):
            before = len(accepted.fsynced)
            await eventually(lambda before=before: len(accepted.fsynced) > before + 50)
            server.kill()
            killed.append(time.monotonic())
            await asyncio.to_thread(server.start)
    assert len(accepted.fsynced) > 150
    assert await _gone(app, accepted.fsynced) == []
    for job in await _gone(app, accepted.memory):
        assert any(0 <= at - accepted.memory[job] <= POSTPONED_S for at in killed)
    await eventually(lambda: _are_completed(app, accepted.fsynced))


async def test_workers_get_over_connections_that_went_silent(
    server: Server, tmp_path: Path
) -> None:
    queues = {"q": QueuePlan(lease="10s", concurrency=2)}
    plan = Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues=queues)
    async with Proxy(server.port) as proxy:
        with WorkerProcesses(msgspec.structs.replace(plan, url=proxy.url)) as processes:
            async with open_app(plan, processes.ledger) as app:
                processes.start()
                accepted = await enqueue(app, [Work(ms=10) for _ in range(300)])
                await _some_starts(processes, 20)
                frozen_ns = time.monotonic_ns()
                assert proxy.freeze() > 1
                resumed_s = await _resumed_after_s(processes, frozen_ns, pause_s=0.5)
                assert resumed_s <= RESUMED_WITHIN_S
                await all_completed(app, accepted)
                assert processes.ledger.jobs("start") == Counter(accepted)


async def test_workers_resume_after_the_broker_was_frozen(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    processes.start(2)
    accepted = await enqueue(app, [Work(ms=20) for _ in range(200)])
    await _some_starts(processes, 20)
    server.pause()
    try:
        await asyncio.sleep(5)  # longer than a call may take
    finally:
        server.resume()
    assert await _resumed_after_s(processes, time.monotonic_ns()) <= RESUMED_WITHIN_S
    await all_completed(app, accepted)
    assert processes.ledger.unexplained() == []


@pytest.mark.parametrize("lease", ["1h"])
async def test_scripts_and_functions_may_vanish_at_any_moment(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    processes.start(2)
    accepted: set[str] = set()
    with server.client() as client:
        for _ in range(20):
            client.script_flush()
            client.function_flush()
            accepted |= await enqueue(app, [Work(ms=1) for _ in range(20)])
            await _some_starts(processes, len(accepted) - 20)
    await all_completed(app, accepted)
    assert processes.ledger.jobs("start") == Counter(accepted)


async def test_workers_go_on_when_everything_was_flushed(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    processes.start(2)
    await enqueue(app, [Work(ms=20) for _ in range(100)])
    doomed = (await task_of(app).enqueue(Work(), delay="1h")).handle
    waiting = asyncio.create_task(doomed.result())
    await _some_starts(processes, 20)
    with server.client() as client:
        settings = client.hgetall("shop:{q}:conf")
        client.flushall()
        accepted = await enqueue(app, [Work(ms=1, fails=1) for _ in range(100)])
        await all_completed(app, accepted)
        assert client.hgetall("shop:{q}:conf") == settings
    with pytest.raises(JobNotFound):
        await waiting
    assert all(process.is_alive for process in processes.started)


async def test_a_worker_that_leaves_when_all_is_done_does_not_leave_for_an_outage(
    app: Faena, processes: WorkerProcesses, server: Server
) -> None:
    accepted = await enqueue(app, [Work(), Work(fails=1)], delay="2s", durability="fsynced")
    worker = await app.worker(options=WorkerOptions(until_empty=True))
    (await app.runtime()).engine._patience_s = 0.2
    running = asyncio.create_task(worker.run())
    await eventually(lambda: worker.answered_s < 1)
    server.kill()
    await asyncio.sleep(2.5)  # the worker asks once a second whether all is done
    assert not running.done()
    await asyncio.to_thread(server.start)
    await running
    await all_completed(app, accepted)


# -- what the tests share -----------------------------------------------------------------------


async def _some_starts(processes: WorkerProcesses, number: int) -> None:
    """With every worker up: one that starts during an outage gives up, as it should."""
    await eventually(lambda: processes.are_up() and len(processes.ledger.jobs("start")) >= number)


async def _resumed_after_s(
    processes: WorkerProcesses, since_ns: int, *, pause_s: float = 0.0
) -> float:
    """Until a handler starts; with `pause_s`, until one starts after nothing did for so long."""

    def resumed_ns() -> int | None:
        starts = [one.at_ns for one in processes.ledger.entries("start", since_ns=since_ns)]
        before = [since_ns, *starts]
        gaps = zip(before, starts, strict=False)
        return next((now for last, now in gaps if now - last >= pause_s * 1e9), None)

    await eventually(resumed_ns)
    return ((resumed_ns() or 0) - since_ns) / 1e9


class Accepted:
    """Jobs by durability, each with the instant of its receipt."""

    def __init__(self) -> None:
        self.fsynced: dict[str, float] = {}
        self.memory: dict[str, float] = {}


@asynccontextmanager
async def _batchers(app: Faena, accepted: Accepted) -> AsyncIterator[None]:
    """Enqueue one by one and note what each receipt promised."""

    async def produce() -> None:
        for durability in itertools.cycle(["fsynced", "memory"]):
            receipt = await task_of(app).enqueue(Work(ms=1), durability=durability)
            assert receipt.durability == durability
            getattr(accepted, durability)[receipt.id] = time.monotonic()

    producing = [asyncio.create_task(produce()) for _ in range(8)]
    try:
        yield
    finally:
        for task in producing:
            task.cancel()
        ended = await asyncio.gather(*producing, return_exceptions=True)
        assert {type(end) for end in ended} == {asyncio.CancelledError}


async def _gone(app: Faena, jobs: Iterable[str]) -> list[str]:
    """Those of the jobs that the server does not know."""
    ids = sorted(jobs)
    engine = (await app.runtime()).engine
    gone: list[str] = []
    for start in range(0, len(ids), 1000):
        part = ids[start : start + 1000]
        found = await engine.look("q", part)
        gone += [job for job, look in zip(part, found, strict=True) if not look]
    return gone


async def _are_completed(app: Faena, jobs: Iterable[str]) -> bool:
    engine = (await app.runtime()).engine
    looks = await engine.look("q", sorted(jobs))
    return all(look is not None and look.state == "completed" for look in looks)


def _only_the_crash_explains_repeats(processes: WorkerProcesses, killed_ns: int) -> None:
    repeated = set(processes.ledger.unexplained())
    firsts: dict[tuple[str, int, int], int] = {}
    for one in processes.ledger.entries("start"):
        firsts.setdefault((one.job, one.attempt, one.losses), one.at_ns)
    for delivery in repeated:
        assert 0 <= killed_ns - firsts[delivery] <= POSTPONED_S * 1e9
