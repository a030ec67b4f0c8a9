"""A worker whose queues live in several homes, which come and go while it serves them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from faena import Worker
from faena.errors import ConfigError, StoreUnavailable
from faena.sharding.table import Home
from faena.worker import watchdog
from faena.worker import worker as worker_module
from faena.worker.fetch import shard_watcher as census
from faena.worker.worker import WorkerOptions
from tests._support.estate import MAIN, OWN, SHARD, Estate
from tests._support.eventually import eventually
from tests._support.valkey import Server

Settle = Callable[..., Estate]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("appendonly no", unix=True) as server:
        yield server


@pytest.fixture
async def settle(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[Settle]:
    """Makes estates, and closes their apps."""
    estates: list[Estate] = []

    def make(*homes: Home, **options: object) -> Estate:
        namespace = f"homes{abs(hash(request.node.name)) % 10**9}-{len(estates)}"
        estates.append(Estate(server, namespace, *homes, **options))
        return estates[-1]

    yield make
    for estate in estates:
        await estate.app.close()


@pytest.fixture
def rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """No look and no sweep comes by itself."""
    monkeypatch.setattr(census, "_LOOK_S", 1000.0)
    monkeypatch.setattr(worker_module, "_SWEEP_S", 1000.0)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks come by themselves, and soon."""
    monkeypatch.setattr(census, "_LOOK_S", 0.02)
    monkeypatch.setattr(census, "_LEAST_S", 0.02)


def homes_of(worker: Worker) -> set[str]:
    """The homes that the worker has something of, closed ones included."""
    return set(worker._household.fetchers)


def served_by(worker: Worker) -> set[Home]:
    """Those that it claims from."""
    fetchers = worker._household.fetchers.values()
    return {
        home
        for home in (MAIN, SHARD, OWN)
        if home.name in {fetcher.home for fetcher in fetchers if not fetcher.is_closing}
    }


@pytest.mark.usefixtures("rarely")
async def test_a_home_that_appears_is_served_as_soon_as_the_worker_is_told(settle: Settle) -> None:
    estate = settle(MAIN)
    async with estate.working():
        await estate.put(MAIN)
        await eventually(lambda: estate.done == ["q"])
        await estate.put(SHARD)
        await estate.put(OWN)
        await estate.move(MAIN, SHARD, OWN)
        await eventually(lambda: sorted(estate.done) == ["q", "q/1", "q/@acme"])
        await estate.put(SHARD)
        await estate.put(MAIN)
        await eventually(lambda: len(estate.done) == 5)
    assert {job.queue for job in estate.seen} == {"q"}


@pytest.mark.usefixtures("rarely")
async def test_a_worker_is_known_in_its_homes_beyond_its_next_sweep(settle: Settle) -> None:
    estate = settle(MAIN, SHARD)
    engine = (await estate.app.runtime()).engine
    async with estate.working():
        for home in (MAIN, SHARD):
            await estate.put(home)
        await eventually(lambda: len(estate.done) == 2)
        for home in (MAIN, SHARD):
            now, _, _, _, _, workers, *_ = await engine.overview(home.name)
            assert float(workers[1]) - int(now) > 1500 * 1e6


@pytest.mark.usefixtures("often")
async def test_a_home_is_found_without_a_word(settle: Settle) -> None:
    estate = settle(MAIN)
    async with estate.working():
        await estate.put(SHARD)
        estate.homes = (MAIN, SHARD)
        await eventually(lambda: estate.done == ["q/1"])


@pytest.mark.usefixtures("rarely")
async def test_a_home_that_vanishes_keeps_what_runs_and_claims_no_more(settle: Settle) -> None:
    estate = settle(MAIN, SHARD, concurrency=2, lease="2s")
    await estate.put(SHARD, 3, waits=True)
    async with estate.working() as worker:
        await eventually(lambda: estate.running["q/1"] == 2)
        await estate.move(MAIN)
        await _is_renewed_twice(estate, SHARD)
        estate.let_go(SHARD, 3)
        await eventually(lambda: homes_of(worker) == {"q"})
        counts = await estate.counts(SHARD)
        assert (counts["completed"], counts["ready"], counts["running"]) == (2, 1, 0)
        assert estate.started["q/1"] == 2
        await estate.put(MAIN, 3, waits=True)
        await eventually(lambda: estate.running["q"] == 2)


@pytest.mark.usefixtures("rarely")
async def test_a_home_that_vanishes_leaves_its_part_to_the_others(settle: Settle) -> None:
    estate = settle(MAIN, SHARD, concurrency=4)
    for home in (MAIN, SHARD):
        await estate.put(home, 8, waits=True)
    async with estate.working() as worker:
        await eventually(lambda: estate.running == {"q": 2, "q/1": 2})
        await estate.move(MAIN)
        await eventually(lambda: served_by(worker) == {MAIN})
        estate.let_go(SHARD)
        await eventually(lambda: estate.running == {"q": 3, "q/1": 1})
        estate.let_go(SHARD)
        await eventually(lambda: estate.running["q"] == 4)


async def _is_renewed_twice(estate: Estate, home: Home) -> None:
    engine = (await estate.app.runtime()).engine
    deadlines: set[str] = set()

    async def is_renewed() -> bool:
        held = await engine.page(home.name, "running", 10, after=("", ""), is_reverse=False)
        assert held
        deadlines.update(score for _, score in held)
        return len(deadlines) > 2 * len(held)

    await eventually(is_renewed)


@pytest.mark.usefixtures("rarely")
async def test_a_home_that_comes_back_is_served_beside_what_still_runs_of_it(
    settle: Settle,
) -> None:
    estate = settle(MAIN, SHARD, concurrency=2)
    await estate.put(SHARD, waits=True)
    async with estate.working() as worker:
        await eventually(lambda: estate.running["q/1"] == 1)
        await estate.move(MAIN)
        await eventually(lambda: served_by(worker) == {MAIN})
        await estate.put(SHARD)
        await estate.move(MAIN, SHARD)
        await eventually(lambda: estate.done == ["q/1"])
        assert estate.running["q/1"] == 1
        estate.let_go(SHARD)
        await eventually(lambda: len(estate.done) == 2)


@pytest.mark.usefixtures("rarely")
async def test_a_home_that_comes_back_after_its_end_is_served_anew(settle: Settle) -> None:
    estate = settle(MAIN, SHARD)
    async with estate.working() as worker:
        for number in range(1, 4):
            await estate.move(MAIN)
            await eventually(lambda: homes_of(worker) == {"q"})
            await estate.put(SHARD)
            await estate.move(SHARD)
            await eventually(lambda number=number: estate.done == ["q/1"] * number)
            await eventually(lambda: homes_of(worker) == {"q/1"})
            await estate.move(MAIN, SHARD)
            await eventually(lambda: homes_of(worker) == {"q", "q/1"})


@pytest.mark.usefixtures("rarely")
async def test_a_home_that_comes_back_in_the_moment_of_its_end_is_served(settle: Settle) -> None:
    """Two channels end one after the other, and their fetcher after both."""
    estate = settle(MAIN, OWN, concurrency=20)
    async with estate.working() as worker:
        for turns in range(8):
            await estate.put(OWN)
            await eventually(lambda turns=turns: len(estate.done) == turns + 1)
            await eventually(lambda: not worker._household.fetchers["q/@acme"].is_hungry)
            worker._household.settle("q", [MAIN])
            for _ in range(turns):
                await asyncio.sleep(0)
            worker._household.settle("q", [MAIN, OWN])
        await estate.put(OWN)
        await eventually(lambda: len(estate.done) == 9)


@pytest.mark.parametrize(
    ("serves", "served"),
    [
        ("all", ["q", "q/1", "q/@acme"]),
        ("shared", ["q", "q/1"]),
        ("dedicated", ["q/@acme"]),
    ],
)
async def test_a_worker_serves_all_homes_or_those_of_one_kind(
    serves: str, served: list[str], settle: Settle
) -> None:
    estate = settle(MAIN, SHARD, OWN)
    for home in estate.homes:
        await estate.put(home)
    await (await estate.worker(serves=serves, until_empty=True)).run()
    assert sorted(estate.done) == served


@pytest.mark.usefixtures("rarely")
async def test_a_worker_without_a_home_waits_for_one(
    settle: Settle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "_EVERY_S", 0.01)
    estate = settle(MAIN)
    async with estate.working(serves="dedicated") as worker:
        await estate.put(MAIN)
        assert (homes_of(worker), worker.running) == (set(), 0)
        for _ in range(2):
            await estate.put(OWN, waits=True)
            await estate.move(MAIN, OWN)
            await eventually(lambda: estate.running["q/@acme"] == 1)
            await estate.move(MAIN)
            estate.let_go(OWN)
            await eventually(lambda: homes_of(worker) == set())
        assert (worker.answered_s < 30, worker._slots.most) == (True, 0)
    assert estate.done == ["q/@acme"] * 2


async def test_the_slots_of_a_pool_are_even_between_two_busy_shards(settle: Settle) -> None:
    estate = settle(MAIN, SHARD, concurrency=4)
    for home in (MAIN, SHARD):
        await estate.put(home, 30, waits=True)
    async with estate.working():
        for home in (MAIN, MAIN, SHARD, MAIN, SHARD, SHARD):
            await eventually(lambda: estate.running == {"q": 2, "q/1": 2})
            estate.let_go(home)
        await eventually(lambda: estate.started.total() == 10)
        assert estate.running == {"q": 2, "q/1": 2}


async def test_a_shard_has_the_whole_pool_while_the_other_has_no_work(settle: Settle) -> None:
    estate = settle(MAIN, SHARD, concurrency=4)
    await estate.put(MAIN, 200, waits=True)
    async with estate.working():
        await eventually(lambda: estate.running["q"] == 4)
        await estate.put(SHARD, 8, waits=True)
        while estate.running["q/1"] < 2:
            before = estate.started.total()
            estate.let_go(MAIN)
            await eventually(lambda before=before: estate.started.total() > before)
        assert estate.running == {"q": 2, "q/1": 2}


async def test_shards_take_turns_where_there_are_fewer_slots(settle: Settle) -> None:
    shards = [MAIN, *(Home(f"q/{number}", "q") for number in range(1, 5))]
    estate = settle(*shards, concurrency=1)
    for home in shards:
        await estate.put(home, 4)
    await (await estate.worker(until_empty=True)).run()
    rounds = [set(estate.done[start : start + 5]) for start in range(0, 20, 5)]
    assert rounds == [{home.name for home in shards}] * 4


async def test_a_tenant_of_its_own_has_slots_and_threads_of_its_own(settle: Settle) -> None:
    estate = settle(MAIN, OWN, concurrency=1)
    both = threading.Barrier(2, timeout=60)

    def meet(home: str) -> None:
        both.wait()
        estate.done.append(home)

    estate.work = estate.queue.task(meet)
    await estate.put(MAIN)
    await estate.put(OWN)
    await (await estate.worker(until_empty=True)).run()
    assert sorted(estate.done) == ["q", "q/@acme"]


@pytest.mark.usefixtures("rarely")
async def test_a_cancellation_reaches_a_job_in_any_home(settle: Settle) -> None:
    estate = settle(MAIN, SHARD)
    (job,) = await estate.put(SHARD, waits=True)
    async with estate.working():
        await eventually(lambda: estate.running["q/1"] == 1)
        await estate.move(MAIN)
        engine = (await estate.app.runtime()).engine
        assert await engine.cancel(SHARD.name, [job]) == ["asked"]
        await eventually(lambda: _has(estate, SHARD, "cancelled", 1))


async def _has(estate: Estate, home: Home, state: str, number: int) -> bool:
    return (await estate.counts(home))[state] == number


@pytest.mark.usefixtures("often")
async def test_a_look_that_fails_changes_nothing(settle: Settle) -> None:
    estate = settle(MAIN, SHARD)
    async with estate.working() as worker:
        estate.is_away = True
        looks = estate.looks
        await eventually(lambda: estate.looks > looks + 2)
        await estate.put(SHARD)
        await eventually(lambda: estate.done == ["q/1"])
        assert homes_of(worker) == {"q", "q/1"}


async def test_a_worker_that_cannot_look_at_all_does_not_start(settle: Settle) -> None:
    estate = settle(MAIN)
    estate.is_away = True
    with pytest.raises(StoreUnavailable):
        await (await estate.worker()).run()


@pytest.mark.usefixtures("often")
async def test_a_worker_without_a_home_whose_app_is_closed_ends_with_an_error(
    settle: Settle,
) -> None:
    estate = settle(MAIN)
    worker = await estate.worker(serves="dedicated")
    running = asyncio.create_task(worker.run())
    await worker.serving.wait()
    await estate.app.close()
    estate.homes = (MAIN, OWN)
    with pytest.raises(StoreUnavailable, match="closed by this program"):
        await running


@pytest.mark.usefixtures("rarely")
async def test_a_worker_that_leaves_when_all_is_done_looks_for_new_homes_first(
    settle: Settle,
) -> None:
    estate = settle(MAIN)
    worker = await estate.worker(until_empty=True)
    running = asyncio.create_task(worker.run())
    await worker.serving.wait()
    await estate.put(SHARD, 5)
    estate.homes = (MAIN, SHARD)
    await running
    assert estate.done == ["q/1"] * 5


@pytest.mark.usefixtures("rarely")
async def test_a_stop_hands_back_what_a_vanished_home_still_runs(settle: Settle) -> None:
    estate = settle(MAIN, SHARD)
    for home in (MAIN, SHARD):
        await estate.put(home, waits=True)
    async with estate.working() as worker:
        await eventually(lambda: estate.running.total() == 2)
        await estate.move(MAIN)
        await eventually(lambda: served_by(worker) == {MAIN})
    for home in (MAIN, SHARD):
        counts = await estate.counts(home)
        assert (counts["ready"], counts["running"]) == (1, 0)
    estate.let_go(MAIN)
    estate.let_go(SHARD)
    estate.homes = (MAIN, SHARD)
    await (await estate.worker(until_empty=True)).run()
    assert [(job.attempt, job.losses) for job in estate.seen[2:]] == [(1, 0)] * 2


@pytest.mark.usefixtures("rarely")
async def test_nothing_is_stranded_while_homes_come_and_go(settle: Settle) -> None:
    """One home and three, again and again: whoever waits for work is relieved with claims ahead."""
    estate = settle(MAIN, concurrency=3)

    async def produce() -> None:
        for number in range(150):
            await estate.put((MAIN, SHARD, OWN)[number % 3])

    producing = asyncio.create_task(produce())
    while not producing.done():
        async with estate.working() as worker:
            for homes in ((MAIN, SHARD, OWN), (MAIN,), (OWN,), (), (SHARD, OWN)):
                await estate.move(*homes)
                await eventually(lambda homes=homes: {*homes} == served_by(worker))
    estate.homes = (MAIN, SHARD, OWN)
    for home in estate.homes:
        assert await _has(estate, home, "running", 0)
    await (await estate.worker(until_empty=True)).run()
    assert {name: estate.done.count(name) for name in estate.done} == dict.fromkeys(
        ("q", "q/1", "q/@acme"), 50
    )


@pytest.mark.parametrize("serves", ["some", "", None])
def test_a_worker_serves_a_known_kind_of_homes(serves: object, settle: Settle) -> None:
    estate = settle(MAIN)
    with pytest.raises(ConfigError, match="serves must be 'all' or 'shared' or 'dedicated', got"):
        WorkerOptions(serves=serves)  # pyright: ignore[reportArgumentType] - what is refused
    with pytest.raises(ConfigError, match="serves must be 'all' or 'shared' or 'dedicated', got"):
        estate.app.pool("own", ["q"], serves=serves)  # pyright: ignore[reportArgumentType] - same
    assert estate.app.pool("own", ["q"], serves="dedicated").serves == "dedicated"
