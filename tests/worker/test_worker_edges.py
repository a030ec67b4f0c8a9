"""A worker at its edges: closed, cancelled, stopped, and with handlers that end badly."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from faena import Faena, Job, Retry, State
from faena.engine import Engine
from faena.engine.scripts import Turn
from faena.errors import PayloadError, StoreUnavailable
from faena.worker.execute import time_limits
from faena.worker.execute.attempt_state import Attempt, Stop
from faena.worker.execute.executor import Executor
from faena.worker.fetch.fetcher import Fetcher
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import running

ONCE = Retry.never()
HOUR = 3_600_000_000


@pytest.fixture
async def app(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[Faena]:
    app = Faena("edges", server.url, namespace=f"edges{abs(hash(request.node.name)) % 10**9}")
    yield app
    await app.close()


async def test_a_worker_whose_app_is_closed_ends_with_an_error(app: Faena) -> None:
    """It must neither spin nor wait for a connection that nobody will open again."""
    queue = app.queue("q")

    @queue.task
    async def nothing() -> None: ...

    async with running(app) as task:
        receipt = await nothing.enqueue()
        await receipt.handle.result(timeout="60s")
        await app.close()
        with pytest.raises(StoreUnavailable, match="closed by this program"):
            await asyncio.wait_for(asyncio.shield(task), 60)


class Bristling(Exception):
    @property
    def code(self) -> str:
        raise RuntimeError("do not touch")


class NoNumber:
    def delay_us(self, attempt: int, error: BaseException | None) -> Any:
        return "soon"


async def test_an_end_that_cannot_be_read_is_a_burial_and_costs_no_slot(app: Faena) -> None:
    queue = app.queue("q", concurrency=1)

    @queue.task(retry=ONCE)
    async def bristle() -> None:
        raise Bristling

    @queue.task(retry=ONCE)
    async def mumble() -> None:
        raise PayloadError("bad", fields=[("name", "\udc80")])

    @queue.task(retry=Retry(NoNumber()))
    async def misplan() -> None:
        raise ValueError("again")

    @queue.task
    async def calm() -> str:
        return "ran"

    async with app, running(app):
        bad = [await task.enqueue() for task in (bristle, mumble, misplan)]
        good = await calm.enqueue()
        assert await good.handle.result(timeout="60s") == "ran"
        assert [await one.handle.state() for one in bad] == [State.DEAD] * 3


async def test_a_repeated_cancellation_grants_no_more_time(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heartbeat repeats it at every beat; a deaf handler is settled without, all the same."""
    monkeypatch.setattr(time_limits, "_STUCK_AFTER_S", 1.0)
    queue = app.queue("q", lease="2s")
    started, release = asyncio.Event(), asyncio.Event()

    @queue.task
    async def deaf() -> None:
        started.set()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    async with app, running(app):
        receipt = await deaf.enqueue()
        await started.wait()
        assert await receipt.handle.cancel() == "asked"
        await eventually(lambda: _is(receipt.handle, State.CANCELLED))
        release.set()


async def test_a_handler_that_goes_on_after_its_job_is_settled_keeps_its_slot(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "_STUCK_AFTER_S", 0.05)
    freed, free = list[str](), Fetcher.slot_freed
    monkeypatch.setattr(Fetcher, "slot_freed", lambda self: (freed.append(self.shard), free(self)))
    release = asyncio.Event()

    @app.queue("q").task(timeout="100ms", retry=ONCE)
    async def deaf() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    async with app, running(app):
        try:
            receipt = await deaf.enqueue()
            await eventually(lambda: _is(receipt.handle, State.DEAD))
            assert freed == []
        finally:
            release.set()
        await eventually(lambda: freed == ["q"])


async def test_a_job_does_not_see_the_context_variables_of_another(app: Faena) -> None:
    colour = ContextVar("colour", default="none")
    queue = app.queue("q", concurrency=10)

    @queue.task
    async def paint(name: str) -> str:
        before = colour.get()
        colour.set(name)
        return before

    receipts = await paint.enqueue_many(["red", "green", "blue"])
    async with app, running(app):
        seen = [await one.handle.result(timeout="60s") for one in receipts]
    assert seen == ["none"] * 3


async def test_what_a_handler_said_under_a_lost_lease_is_dropped(app: Faena) -> None:
    """The next note would be written under the lease that this worker may have by then."""
    said = asyncio.Event()

    @app.queue("q").task
    async def tell(job: Job) -> None:
        job.log("from before")
        said.set()
        await asyncio.Event().wait()

    async with app:
        worker = await app.worker()
        running = asyncio.create_task(worker.run())
        receipt = await tell.enqueue()
        await said.wait()
        fetcher = worker._by_shard["q"]
        lease = fetcher.executor.running[receipt.id].claim.lease
        assert fetcher._notes.has(receipt.id)
        worker._stop_job("q", receipt.id, Stop.LOST, lease)
        assert not fetcher._notes.has(receipt.id)
        worker.stop()
        await running


async def test_no_handler_outlives_a_cancelled_worker(app: Faena) -> None:
    queue = app.queue("q")
    started, ends = asyncio.Event(), []

    @queue.task
    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("stopped")
            raise

    async with app:
        receipt = await wait.enqueue()
        worker = await app.worker()
        running = asyncio.create_task(worker.run())
        await started.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        assert ends == ["stopped"]
        view = await receipt.handle.view()
    assert view is not None
    assert (view.state, view.attempts_made, view.losses) == (State.READY, 0, 0)


async def test_a_stop_strands_nothing_that_was_claimed_ahead(app: Faena) -> None:
    """Jobs arrive all the time while single-queue workers come and go."""
    queue = app.queue("q", concurrency=2)
    runs: list[str] = []

    @queue.task
    async def note(name: str) -> None:
        runs.append(name)

    async def produce() -> None:
        for number in range(150):
            await note.enqueue(str(number))

    async with app:
        producing = asyncio.create_task(produce())
        while not producing.done():
            worker = await app.worker()
            running = asyncio.create_task(worker.run())
            await worker.serving.wait()
            await asyncio.sleep(0.05)
            worker.stop()
            await running
            assert (await queue.counts())["running"] == 0
        await app.run_worker(until_empty=True)
    assert sorted(runs, key=int) == [str(number) for number in range(150)]


async def test_a_lease_shortened_at_run_time_outlives_the_pace_of_the_heartbeat(app: Faena) -> None:
    queue = app.queue("q", lease="30s")
    starts: list[int] = []

    @queue.task
    async def slow() -> None:
        starts.append(1)
        await asyncio.sleep(4)

    async with app:
        await queue.configure(lease="2s")
        async with running(app):
            receipt = await slow.enqueue()
            await receipt.handle.result(timeout="60s")
    assert starts == [1]


async def _is(handle: Any, state: State) -> bool:
    return await handle.state() is state


async def test_a_worker_that_has_stopped_is_known_no_more(app: Faena) -> None:
    queue = app.queue("q")

    @queue.task
    async def nothing() -> None: ...

    async def known() -> bool:
        return bool((await queue.overview()).workers)

    worker = await app.worker()
    running = asyncio.create_task(worker.run())
    await eventually(known)
    (seen,) = (await queue.overview()).workers
    assert (seen.name, seen.host, seen.pid) == (
        worker.options.name,
        socket.gethostname(),
        os.getpid(),
    )
    assert seen.version
    assert seen.since
    worker.stop()
    await running
    assert not await known()
    engine = (await app.runtime()).engine
    assert not await engine.command("EXISTS", "q", "about")


async def test_an_idle_worker_starts_a_job_before_it_notes_what_else_was_answered(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.queue("q").task
    async def nothing() -> None: ...

    done: list[str] = []
    for name in ("_start", "_note"):
        method = getattr(Fetcher, name)

        def record(
            fetcher: Fetcher, *args: Any, name: str = name, method: Callable[..., None] = method
        ) -> None:
            if args[-1].claimed:
                done.append(name)
            method(fetcher, *args)

        monkeypatch.setattr(Fetcher, name, record)
    worker = await app.worker()
    running = asyncio.create_task(worker.run())
    await eventually(lambda: any(one._spare for one in worker._by_shard.values()))
    await (await nothing.enqueue()).handle.result(timeout="30s")
    worker.stop()
    await running
    assert done == ["_start", "_note"]


class Rescue:
    """Another worker's sweep, in an hour of the server's time: it takes what is leased back."""

    def __init__(self, engine: Engine) -> None:
        in_an_hour = time.time_ns() // 1000 + HOUR
        self._later = Engine(engine.wire, namespace=engine.namespace, clock=lambda: in_an_hour)
        self._later.know("q", engine._settings["q"])

    async def __call__(self) -> None:
        await self._later.exchange("q", "other", "other", Turn(call="rescue", want=0))


async def test_a_claim_whose_lease_is_lost_before_its_answer_is_seen_is_not_started(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a process that was frozen while it waited for work."""
    ran: list[int] = []

    @app.queue("q", concurrency=1).task
    async def note(job: Job) -> None:
        ran.append(job.losses)

    worker = await app.worker()
    engine = (await app.runtime()).patient_engine
    rescue, renew = Rescue(engine), engine.renew

    async def lose_first(*args: Any) -> Any:
        await rescue()
        fetching.freshness.lasts_s = HOUR
        return await renew(*args)

    monkeypatch.setattr(engine, "renew", lose_first)
    running = asyncio.create_task(worker.run())
    await eventually(lambda: any(one._spare for one in worker._by_shard.values()))
    (fetching,) = worker._by_shard.values()
    fetching.freshness.lasts_s = 0  # the first answer comes too late
    await (await note.enqueue()).handle.result(timeout="30s")
    worker.stop()
    await running
    assert ran == [1]


@pytest.mark.parametrize("is_lost", [True, False])
async def test_a_claim_whose_lease_may_be_lost_before_its_first_step_is_asked_for_it(
    app: Faena, monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    """As in a process that was frozen after it had looked at the clock."""
    ran: list[int] = []

    @app.queue("q", concurrency=1).task
    async def note(job: Job) -> None:
        ran.append(job.losses)

    engine = (await app.runtime()).patient_engine
    rescue, run, renew = Rescue(engine), Executor._run, engine.renew
    asked: list[str] = []

    async def run_late(executor: Executor, attempt: Attempt) -> None:
        if not asked:
            if is_lost:
                await rescue()
            attempt.fresh_until = attempt.started
        await run(executor, attempt)

    async def noted(shard: str, held: list[tuple[str, str]], least_us: int) -> Any:
        asked.extend(job for job, _ in held)
        return await renew(shard, held, least_us)

    monkeypatch.setattr(Executor, "_run", run_late)
    monkeypatch.setattr(engine, "renew", noted)
    receipt = await note.enqueue()
    await app.run_worker(until_empty=True)
    assert (ran, asked) == ([1 if is_lost else 0], [receipt.id])
    assert await receipt.handle.state() is State.COMPLETED


async def test_jobs_that_report_progress_do_not_let_a_worker_hold_more_than_its_slots(
    app: Faena,
) -> None:
    queue = app.queue("q", concurrency=2)
    held: list[int] = []

    @queue.task
    async def report(job: Job) -> None:
        job.progress(50)
        held.append((await queue.overview()).counts["running"])

    async with app:
        receipts = [await report.enqueue() for _ in range(40)]
        async with running(app):
            for receipt in receipts:
                await receipt.handle.result(timeout="60s")
    assert len(held) == 40
    assert max(held) <= 2
