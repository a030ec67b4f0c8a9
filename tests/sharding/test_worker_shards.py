"""A worker whose queues live in several shards, which come and go while it serves them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from faena import Worker
from faena.errors import ConfigError, StoreUnavailable
from faena.sharding.routing_table import Shard
from faena.worker import health_checks
from faena.worker import worker as worker_module
from faena.worker.fetch import shard_watcher
from faena.worker.options import WorkerOptions
from tests._support.eventually import eventually
from tests._support.sharded_queue import MAIN, OWN, SHARD, ShardedQueue
from tests._support.valkey import Server

Settle = Callable[..., ShardedQueue]


@pytest.fixture
async def settle(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[Settle]:
    """Makes estates, and closes their apps."""
    made: list[ShardedQueue] = []

    def make(*shards: Shard, **options: object) -> ShardedQueue:
        namespace = f"shards{abs(hash(request.node.name)) % 10**9}-{len(made)}"
        made.append(ShardedQueue(server, namespace, *shards, **options))
        return made[-1]

    yield make
    for sharded in made:
        await sharded.app.close()


@pytest.fixture
def rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """No look and no sweep comes by itself."""
    monkeypatch.setattr(shard_watcher, "_LOOK_S", 1000.0)
    monkeypatch.setattr(worker_module, "_SWEEP_S", 1000.0)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks come by themselves, and soon."""
    monkeypatch.setattr(shard_watcher, "_LOOK_S", 0.02)
    monkeypatch.setattr(shard_watcher, "_LEAST_S", 0.02)


def shards_of(worker: Worker) -> set[str]:
    """The shards that the worker has something of, closed ones included."""
    return set(worker._fetchers.fetchers)


def served_by(worker: Worker) -> set[Shard]:
    """Those that it claims from."""
    fetchers = worker._fetchers.fetchers.values()
    return {
        shard
        for shard in (MAIN, SHARD, OWN)
        if shard.name in {fetcher.shard for fetcher in fetchers if not fetcher.is_closing}
    }


@pytest.mark.usefixtures("rarely")
async def test_a_shard_that_appears_is_served_as_soon_as_the_worker_is_told(settle: Settle) -> None:
    sharded = settle(MAIN)
    async with sharded.working():
        await sharded.put(MAIN)
        await eventually(lambda: sharded.done == ["q"])
        await sharded.put(SHARD)
        await sharded.put(OWN)
        await sharded.move(MAIN, SHARD, OWN)
        await eventually(lambda: sorted(sharded.done) == ["q", "q/1", "q/@acme"])
        await sharded.put(SHARD)
        await sharded.put(MAIN)
        await eventually(lambda: len(sharded.done) == 5)
    assert {job.queue for job in sharded.seen} == {"q"}


@pytest.mark.usefixtures("rarely")
async def test_a_worker_is_known_in_its_shards_beyond_its_next_sweep(settle: Settle) -> None:
    sharded = settle(MAIN, SHARD)
    engine = (await sharded.app.runtime()).engine
    async with sharded.working():
        for shard in (MAIN, SHARD):
            await sharded.put(shard)
        await eventually(lambda: len(sharded.done) == 2)
        for shard in (MAIN, SHARD):
            now = (await engine.overview(shard.name)).at
            _, gone_at = await engine.command("ZRANGE", shard.name, "workers", 0, 0, "WITHSCORES")
            assert float(gone_at) - now > 1500 * 1e6


@pytest.mark.usefixtures("often")
async def test_a_shard_is_found_without_a_word(settle: Settle) -> None:
    sharded = settle(MAIN)
    async with sharded.working():
        await sharded.put(SHARD)
        sharded.shards = (MAIN, SHARD)
        await eventually(lambda: sharded.done == ["q/1"])


@pytest.mark.usefixtures("rarely")
async def test_a_shard_that_vanishes_keeps_what_runs_and_claims_no_more(settle: Settle) -> None:
    sharded = settle(MAIN, SHARD, concurrency=2, lease="2s")
    await sharded.put(SHARD, 3, waits=True)
    async with sharded.working() as worker:
        await eventually(lambda: sharded.running["q/1"] == 2)
        await sharded.move(MAIN)
        await _is_renewed_twice(sharded, SHARD)
        sharded.let_go(SHARD, 3)
        await eventually(lambda: shards_of(worker) == {"q"})
        counts = await sharded.counts(SHARD)
        assert (counts["completed"], counts["ready"], counts["running"]) == (2, 1, 0)
        assert sharded.started["q/1"] == 2
        await sharded.put(MAIN, 3, waits=True)
        await eventually(lambda: sharded.running["q"] == 2)


@pytest.mark.usefixtures("rarely")
async def test_a_shard_that_vanishes_leaves_its_part_to_the_others(settle: Settle) -> None:
    sharded = settle(MAIN, SHARD, concurrency=4)
    for shard in (MAIN, SHARD):
        await sharded.put(shard, 8, waits=True)
    async with sharded.working() as worker:
        await eventually(lambda: sharded.running == {"q": 2, "q/1": 2})
        await sharded.move(MAIN)
        await eventually(lambda: served_by(worker) == {MAIN})
        sharded.let_go(SHARD)
        await eventually(lambda: sharded.running == {"q": 3, "q/1": 1})
        sharded.let_go(SHARD)
        await eventually(lambda: sharded.running["q"] == 4)


async def _is_renewed_twice(sharded: ShardedQueue, shard: Shard) -> None:
    engine = (await sharded.app.runtime()).engine
    deadlines: set[str] = set()

    async def is_renewed() -> bool:
        held = await engine.page(shard.name, "running", 10, after=("", ""), is_reverse=False)
        assert held
        deadlines.update(score for _, score in held)
        return len(deadlines) > 2 * len(held)

    await eventually(is_renewed)


@pytest.mark.usefixtures("rarely")
async def test_a_shard_that_comes_back_is_served_beside_what_still_runs_of_it(
    settle: Settle,
) -> None:
    sharded = settle(MAIN, SHARD, concurrency=2)
    await sharded.put(SHARD, waits=True)
    async with sharded.working() as worker:
        await eventually(lambda: sharded.running["q/1"] == 1)
        await sharded.move(MAIN)
        await eventually(lambda: served_by(worker) == {MAIN})
        await sharded.put(SHARD)
        await sharded.move(MAIN, SHARD)
        await eventually(lambda: sharded.done == ["q/1"])
        assert sharded.running["q/1"] == 1
        sharded.let_go(SHARD)
        await eventually(lambda: len(sharded.done) == 2)


@pytest.mark.usefixtures("rarely")
async def test_a_shard_that_comes_back_after_its_end_is_served_anew(settle: Settle) -> None:
    sharded = settle(MAIN, SHARD)
    async with sharded.working() as worker:
        for number in range(1, 4):
            await sharded.move(MAIN)
            await eventually(lambda: shards_of(worker) == {"q"})
            await sharded.put(SHARD)
            await sharded.move(SHARD)
            await eventually(lambda number=number: sharded.done == ["q/1"] * number)
            await eventually(lambda: shards_of(worker) == {"q/1"})
            await sharded.move(MAIN, SHARD)
            await eventually(lambda: shards_of(worker) == {"q", "q/1"})


@pytest.mark.usefixtures("rarely")
async def test_a_shard_that_comes_back_in_the_moment_of_its_end_is_served(settle: Settle) -> None:
    """Two channels end one after the other, and their fetcher after both."""
    sharded = settle(MAIN, OWN, concurrency=20)
    async with sharded.working() as worker:
        for turns in range(8):
            await sharded.put(OWN)
            await eventually(lambda turns=turns: len(sharded.done) == turns + 1)
            await eventually(lambda: not worker._fetchers.fetchers["q/@acme"].may_have_more)
            worker._fetchers.settle("q", [MAIN])
            for _ in range(turns):
                await asyncio.sleep(0)
            worker._fetchers.settle("q", [MAIN, OWN])
        await sharded.put(OWN)
        await eventually(lambda: len(sharded.done) == 9)


@pytest.mark.parametrize(
    ("serves", "served"),
    [
        ("all", ["q", "q/1", "q/@acme"]),
        ("shared", ["q", "q/1"]),
        ("dedicated", ["q/@acme"]),
    ],
)
async def test_a_worker_serves_all_shards_or_those_of_one_kind(
    serves: str, served: list[str], settle: Settle
) -> None:
    sharded = settle(MAIN, SHARD, OWN)
    for shard in sharded.shards:
        await sharded.put(shard)
    await (await sharded.worker(serves=serves, until_empty=True)).run()
    assert sorted(sharded.done) == served


@pytest.mark.usefixtures("rarely")
async def test_a_worker_without_a_shard_waits_for_one(
    settle: Settle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_checks, "EVERY_S", 0.01)
    sharded = settle(MAIN)
    async with sharded.working(serves="dedicated") as worker:
        await sharded.put(MAIN)
        assert (shards_of(worker), worker.running) == (set(), 0)
        for _ in range(2):
            await sharded.put(OWN, waits=True)
            await sharded.move(MAIN, OWN)
            await eventually(lambda: sharded.running["q/@acme"] == 1)
            await sharded.move(MAIN)
            sharded.let_go(OWN)
            await eventually(lambda: shards_of(worker) == set())
        assert (worker.answered_s < 30, worker._slots.most) == (True, 0)
    assert sharded.done == ["q/@acme"] * 2


async def test_the_slots_of_a_pool_are_even_between_two_busy_shards(settle: Settle) -> None:
    sharded = settle(MAIN, SHARD, concurrency=4)
    for shard in (MAIN, SHARD):
        await sharded.put(shard, 30, waits=True)
    async with sharded.working():
        for shard in (MAIN, MAIN, SHARD, MAIN, SHARD, SHARD):
            await eventually(lambda: sharded.running == {"q": 2, "q/1": 2})
            sharded.let_go(shard)
        await eventually(lambda: sharded.started.total() == 10)
        assert sharded.running == {"q": 2, "q/1": 2}


async def test_a_shard_has_the_whole_pool_while_the_other_has_no_work(settle: Settle) -> None:
    sharded = settle(MAIN, SHARD, concurrency=4)
    await sharded.put(MAIN, 200, waits=True)
    async with sharded.working():
        await eventually(lambda: sharded.running["q"] == 4)
        await sharded.put(SHARD, 8, waits=True)
        while sharded.running["q/1"] < 2:
            before = sharded.started.total()
            sharded.let_go(MAIN)
            await eventually(lambda before=before: sharded.started.total() > before)
        assert sharded.running == {"q": 2, "q/1": 2}


async def test_shards_take_turns_where_there_are_fewer_slots(settle: Settle) -> None:
    shards = [MAIN, *(Shard(f"q/{number}", "q") for number in range(1, 5))]
    sharded = settle(*shards, concurrency=1)
    for shard in shards:
        await sharded.put(shard, 4)
    await (await sharded.worker(until_empty=True)).run()
    rounds = [set(sharded.done[start : start + 5]) for start in range(0, 20, 5)]
    assert rounds == [{shard.name for shard in shards}] * 4


async def test_a_tenant_of_its_own_has_slots_and_threads_of_its_own(settle: Settle) -> None:
    sharded = settle(MAIN, OWN, concurrency=1)
    both = threading.Barrier(2, timeout=60)

    def meet(shard: str) -> None:
        both.wait()
        sharded.done.append(shard)

    sharded.work = sharded.queue.task(meet)
    await sharded.put(MAIN)
    await sharded.put(OWN)
    await (await sharded.worker(until_empty=True)).run()
    assert sorted(sharded.done) == ["q", "q/@acme"]


@pytest.mark.usefixtures("rarely")
async def test_a_cancellation_reaches_a_job_in_any_shard(settle: Settle) -> None:
    sharded = settle(MAIN, SHARD)
    (job,) = await sharded.put(SHARD, waits=True)
    async with sharded.working():
        await eventually(lambda: sharded.running["q/1"] == 1)
        await sharded.move(MAIN)
        engine = (await sharded.app.runtime()).engine
        assert await engine.cancel(SHARD.name, [job]) == ["asked"]
        await eventually(lambda: _has(sharded, SHARD, "cancelled", 1))


async def _has(sharded: ShardedQueue, shard: Shard, state: str, number: int) -> bool:
    return (await sharded.counts(shard))[state] == number


@pytest.mark.usefixtures("often")
async def test_a_look_that_fails_changes_nothing(settle: Settle) -> None:
    sharded = settle(MAIN, SHARD)
    async with sharded.working() as worker:
        sharded.is_away = True
        looks = sharded.looks
        await eventually(lambda: sharded.looks > looks + 2)
        await sharded.put(SHARD)
        await eventually(lambda: sharded.done == ["q/1"])
        assert shards_of(worker) == {"q", "q/1"}


async def test_a_worker_that_cannot_look_at_all_does_not_start(settle: Settle) -> None:
    sharded = settle(MAIN)
    sharded.is_away = True
    with pytest.raises(StoreUnavailable):
        await (await sharded.worker()).run()


@pytest.mark.usefixtures("often")
async def test_a_worker_without_a_shard_whose_app_is_closed_ends_with_an_error(
    settle: Settle,
) -> None:
    sharded = settle(MAIN)
    worker = await sharded.worker(serves="dedicated")
    running = asyncio.create_task(worker.run())
    await worker.serving.wait()
    await sharded.app.close()
    sharded.shards = (MAIN, OWN)
    with pytest.raises(StoreUnavailable, match="closed by this program"):
        await running


@pytest.mark.usefixtures("rarely")
async def test_a_worker_that_leaves_when_all_is_done_looks_for_new_shards_first(
    settle: Settle,
) -> None:
    sharded = settle(MAIN)
    worker = await sharded.worker(until_empty=True)
    running = asyncio.create_task(worker.run())
    await worker.serving.wait()
    await sharded.put(SHARD, 5)
    sharded.shards = (MAIN, SHARD)
    await running
    assert sharded.done == ["q/1"] * 5


@pytest.mark.usefixtures("rarely")
async def test_a_stop_hands_back_what_a_vanished_shard_still_runs(settle: Settle) -> None:
    sharded = settle(MAIN, SHARD)
    for shard in (MAIN, SHARD):
        await sharded.put(shard, waits=True)
    async with sharded.working() as worker:
        await eventually(lambda: sharded.running.total() == 2)
        await sharded.move(MAIN)
        await eventually(lambda: served_by(worker) == {MAIN})
    for shard in (MAIN, SHARD):
        counts = await sharded.counts(shard)
        assert (counts["ready"], counts["running"]) == (1, 0)
    sharded.let_go(MAIN)
    sharded.let_go(SHARD)
    sharded.shards = (MAIN, SHARD)
    await (await sharded.worker(until_empty=True)).run()
    assert [(job.attempt, job.losses) for job in sharded.seen[2:]] == [(1, 0)] * 2


@pytest.mark.usefixtures("rarely")
async def test_nothing_is_stranded_while_shards_come_and_go(settle: Settle) -> None:
    """One shard and three, again and again: claims ahead and the wake listener take turns."""
    sharded = settle(MAIN, concurrency=3)

    async def produce() -> None:
        for number in range(150):
            await sharded.put((MAIN, SHARD, OWN)[number % 3])

    producing = asyncio.create_task(produce())
    while not producing.done():
        async with sharded.working() as worker:
            for shards in ((MAIN, SHARD, OWN), (MAIN,), (OWN,), (), (SHARD, OWN)):
                await sharded.move(*shards)
                await eventually(lambda shards=shards: {*shards} == served_by(worker))
    sharded.shards = (MAIN, SHARD, OWN)
    for shard in sharded.shards:
        assert await _has(sharded, shard, "running", 0)
    await (await sharded.worker(until_empty=True)).run()
    assert {name: sharded.done.count(name) for name in sharded.done} == dict.fromkeys(
        ("q", "q/1", "q/@acme"), 50
    )


@pytest.mark.parametrize("serves", ["some", "", None])
def test_a_worker_serves_a_known_kind_of_shards(serves: object, settle: Settle) -> None:
    sharded = settle(MAIN)
    with pytest.raises(ConfigError, match="serves must be 'all' or 'shared' or 'dedicated', got"):
        WorkerOptions(serves=serves)  # pyright: ignore[reportArgumentType] - what is refused
    with pytest.raises(ConfigError, match="serves must be 'all' or 'shared' or 'dedicated', got"):
        sharded.app.pool("own", ["q"], serves=serves)  # pyright: ignore[reportArgumentType] - same
    assert sharded.app.pool("own", ["q"], serves="dedicated").serves == "dedicated"
