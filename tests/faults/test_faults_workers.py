"""Workers that die, freeze and are replaced: nothing is lost, nothing repeated without a cause."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from faena import Faena
from faena.engine.scripts import Turn
from faena.errors import LeaseLost
from faena.outcomes import (
    Buried,
    Cancelled,
    Completed,
    ErrorRecord,
    Limited,
    Outcome,
    Released,
    Retried,
    Snoozed,
)
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
from tests._support.ledger import Entry
from tests._support.rig import Rig
from tests._support.valkey import Server
from tests._support.worker_processes import WorkerProcesses

LEASE_S = 2.0
SWEEP_S = 5.0
RUNNABLE_WITHIN_S = LEASE_S + 2 * SWEEP_S + 30


async def test_every_job_finishes_while_workers_are_killed_over_and_over(
    app: Faena, processes: WorkerProcesses
) -> None:
    processes.start(3)
    await eventually(processes.are_up)
    killed: list[tuple[int, int]] = []
    async with _producing(app) as accepted:
        for _ in range(8):
            await _more_starts(processes, 60)
            victim = processes.started[-3]
            killed.append((victim.pid, processes.kill(victim)))
            processes.start()
    await all_completed(app, accepted)
    assert set(processes.ledger.jobs("finish")) >= accepted
    assert processes.ledger.unexplained() == []
    assert await _losses(app, accepted) <= len(killed) * 10
    assert _longest_wait_s(processes, killed) <= RUNNABLE_WITHIN_S


async def test_a_frozen_worker_can_neither_settle_nor_go_on_after_its_lease(
    app: Faena, processes: WorkerProcesses
) -> None:
    frozen, heir = processes.start(2)
    await eventually(processes.are_up)
    heir.freeze()
    short = await enqueue(app, [Work(ms=3_000, once=True) for _ in range(5)])
    long = await enqueue(app, [Work(ms=600_000, once=True, note="on my way") for _ in range(5)])
    await eventually(lambda: len(processes.ledger.jobs("start")) == 10)
    frozen.freeze()
    # A claim that the heir had sent ahead may have been answered: such jobs were lost once before.
    starts = [one for one in processes.ledger.entries("start") if one.pid == frozen.pid]
    begun = {(one.job, one.losses) for one in starts}
    heir.thaw()
    await eventually(lambda: set(processes.ledger.jobs("finish")) >= short | long)
    frozen.thaw()
    await all_completed(app, short | long)
    assert processes.ledger.unexplained() == []

    def ended() -> dict[tuple[str, int], str]:
        return {(one.job, one.losses): one.kind for one in _ends(processes, frozen.pid)}

    await eventually(lambda: ended().keys() >= begun)
    kinds = {ended()[job, losses] for job, losses in begun if job in long and losses == 0}
    assert kinds <= {"stop"}  # short ones end, or are stopped before
    views = [await task_of(app).handle(job).view() for job in short | long]
    settled = {view.result for view in views}  # by attempt and losses; a slow machine may lose more
    assert b'"1/0"' not in settled
    assert all(result.startswith(b'"1/') for result in settled)
    assert frozen.is_alive


async def test_a_frozen_worker_that_gets_its_own_job_back_stops_the_old_attempt(
    app: Faena, processes: WorkerProcesses
) -> None:
    (frozen,) = processes.start()
    forever = Work(ms=600_000, once=True)
    accepted = await enqueue(app, [forever], name="work")
    accepted |= await enqueue(app, [forever], name="grind")
    await eventually(lambda: len(processes.ledger.entries("start")) == 2)
    frozen.freeze()
    await eventually(lambda: _has_rescued_for(app, 2))
    frozen.thaw()
    await all_completed(app, accepted)
    assert processes.ledger.unexplained() == []
    assert processes.ledger.jobs("finish") == Counter(accepted)

    def kinds() -> list[str]:
        return [one.kind for one in _ends(processes, frozen.pid) if one.losses == 0]

    await eventually(lambda: kinds() == ["stop", "stop"])


async def _has_rescued_for(app: Faena, number: int) -> bool:
    """Look at the queue as any worker does, without claiming; True once so many are ready."""
    engine = (await app.runtime()).engine
    await engine.exchange("q", "looker", "looker", Turn(call=f"{time.monotonic_ns():x}", want=0))
    return (await app.queues["q"].counts())["ready"] == number


async def test_a_stale_lease_is_refused_ten_thousand_times(rig: Rig) -> None:
    await rig.declare(lease="2s", max_deliveries=100)
    jobs = [f"job{number:04d}" for number in range(1000)]
    await rig.add(*jobs)
    stale = await rig.claim(1000, worker="zombie")
    rig.clock.go(3)
    await eventually(lambda: _has_rescued(rig, 1000))
    fresh = await rig.claim(1000, worker="heir")
    refused = 0
    for round_ in range(2):
        await rig.remember()
        refused += await _replay(rig, jobs, stale)
        assert await rig.changed() == {}
        if round_ == 0:
            ended = [(job, fresh, Completed(b'"heir"')) for job in jobs]
            assert (await rig.turn(0, *ended, worker="heir")).lost == []
    assert refused >= 10_000
    assert set((await rig.dump())["results"].values()) == {b'"heir"'}


async def _has_rescued(rig: Rig, number: int) -> bool:
    await rig.turn(0, worker="heir")
    return len((await rig.dump())["ready"]) == number


async def _replay(rig: Rig, jobs: list[str], lease: str) -> int:
    """Every way to end, extend or annotate a lease; returns how many were refused."""
    boom = ErrorRecord(name="Boom", message="late")
    endings: list[Outcome] = [
        Completed(),
        Completed(b'"zombie"'),
        Retried(1000, boom),
        Buried(boom),
        Cancelled(boom),
        Snoozed(1000),
        Limited(1000),
        Released(),
    ]
    refused = 0
    for ending in endings:
        settled = [(job, lease, ending) for job in jobs]
        refused += len((await rig.turn(0, *settled, worker="zombie")).lost)
    lost, stopping = await rig.engine.renew(rig.queue, [(job, lease) for job in jobs])
    assert stopping == []
    return refused + len(lost)


async def test_a_stale_lease_writes_no_progress(rig: Rig) -> None:
    await rig.add("job")
    stale = await rig.claim(worker="zombie")
    rig.clock.go(31)
    await rig.claim(worker="heir")
    await rig.remember()
    for _ in range(100):
        with pytest.raises(LeaseLost):
            await rig.engine.note(rig.queue, "job", stale, progress=b"50", lines=["late"])
    assert await rig.changed() == {}


async def test_rolling_restarts_lose_nothing_spend_nothing_and_repeat_nothing(
    server: Server, tmp_path: Path
) -> None:
    queues = {"q": QueuePlan(lease="10s")}
    plan = Plan(url=server.url, ledger=str(tmp_path / "ledger"), queues=queues)
    with WorkerProcesses(plan) as processes:
        async with open_app(plan, processes.ledger) as app:
            processes.start(2)
            async with _producing(app, ms=20) as accepted:
                for _ in range(4):
                    old = processes.started[-2]
                    processes.start()
                    await eventually(processes.are_up)
                    await _more_starts(processes, 20)
                    old.terminate()
                    assert await old.ended() == 0
            await all_completed(app, accepted)
        assert (
            processes.ledger.jobs("start") == processes.ledger.jobs("finish") == Counter(accepted)
        )
        assert {(one.attempt, one.losses) for one in processes.ledger.entries("start")} == {(1, 0)}


async def test_a_job_that_outlives_the_grace_is_handed_back_without_spending_an_attempt(
    app: Faena, processes: WorkerProcesses
) -> None:
    (hasty,) = processes.start(plan=msgspec.structs.replace(processes.plan, grace_s=0.1))
    accepted = await enqueue(app, [Work(ms=1000) for _ in range(5)])
    accepted |= await enqueue(app, [Work(ms=1000) for _ in range(5)], name="grind")
    await eventually(lambda: len(processes.ledger.entries("start")) == 10)
    hasty.terminate()
    assert await hasty.ended() == 0
    assert (await app.queues["q"].counts())["ready"] == 10
    processes.start()
    await all_completed(app, accepted)
    assert {(one.attempt, one.losses) for one in processes.ledger.entries("finish")} == {(1, 0)}
    assert processes.ledger.jobs("finish") == Counter(accepted)


async def test_delayed_and_failing_jobs_survive_the_death_of_every_worker(
    app: Faena, processes: WorkerProcesses
) -> None:
    accepted = await enqueue(app, [Work(ms=5, fails=2) for _ in range(20)])
    accepted |= await enqueue(app, [Work(ms=5) for _ in range(20)], delay="600ms")
    for _ in range(3):
        (victim,) = processes.start()
        before = len(processes.ledger.entries("start"))
        await eventually(lambda before=before: len(processes.ledger.entries("start")) > before)
        processes.kill(victim)
    processes.start()
    await all_completed(app, accepted)
    assert processes.ledger.unexplained() == []
    fails = Counter(one.job for one in processes.ledger.entries("fail"))
    assert all(times >= 2 for times in fails.values())
    assert len(fails) == 20


# -- what the tests share -----------------------------------------------------------------------


@asynccontextmanager
async def _producing(app: Faena, *, ms: int = 10) -> AsyncIterator[set[str]]:
    """Enqueue as long as the block lasts, never far ahead of the workers; fills the set of ids."""
    accepted: set[str] = set()
    is_over = asyncio.Event()

    async def produce() -> None:
        while not is_over.is_set():
            accepted.update(await enqueue(app, [Work(ms=ms) for _ in range(20)]))
            await eventually(lambda: _is_short(app))

    async with asyncio.TaskGroup() as group:
        group.create_task(produce())
        yield accepted
        is_over.set()


async def _more_starts(processes: WorkerProcesses, number: int) -> None:
    enough = len(processes.ledger.entries("start")) + number
    await eventually(lambda: len(processes.ledger.entries("start")) >= enough)


async def _is_short(app: Faena) -> bool:
    return (await app.queues["q"].counts())["ready"] < 50


async def _losses(app: Faena, accepted: set[str]) -> int:
    views = [await task_of(app).handle(job).view() for job in accepted]
    return sum(view.losses for view in views)


def _ends(processes: WorkerProcesses, pid: int) -> list[Entry]:
    return [one for one in processes.ledger.entries("finish", "fail", "stop") if one.pid == pid]


def _longest_wait_s(processes: WorkerProcesses, killed: list[tuple[int, int]]) -> float:
    """From a worker's death to the next start of each job it held."""
    longest = 0
    starts = processes.ledger.entries("start")
    for pid, died_ns in killed:
        ended = {one.job for one in _ends(processes, pid)}
        for held in (one for one in starts if one.pid == pid and one.job not in ended):
            again = min(
                one.at_ns for one in starts if one.job == held.job and one.losses > held.losses
            )
            longest = max(longest, again - died_ns)
    return longest / 1e9
