"""Whether a worker consumes: claims that stop are told, and nothing that explains why jobs wait."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from faena import Faena, Worker
from faena.worker import progress
from faena.worker.progress import Progress
from tests._support.eventually import eventually
from tests._support.working import serving

Asked = asyncio.Event


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three looks are too long."""
    monkeypatch.setattr(progress, "_LATE_S", -2.5)


@pytest.fixture
def task(app: Faena) -> Any:
    mail = app.queue("mail", concurrency=2)
    app.queue("print", concurrency=2)

    @mail.task
    async def send(number: int) -> int:
        return number

    return send


@pytest.fixture
async def worker(app: Faena, task: Any, quick: None) -> AsyncIterator[Worker]:
    async with serving(app) as worker:
        await worker.serving.wait()
        yield worker


def sulk(worker: Worker, shard: str) -> None:
    """A fetcher that has lost its way: it is woken, and asks for nothing any more."""
    fetcher = worker._by_shard[shard]
    fetcher._next_turn = lambda: None
    fetcher.spare_turn = lambda: None


def heal(worker: Worker, shard: str) -> None:
    fetcher = worker._by_shard[shard]
    del fetcher._next_turn, fetcher.spare_turn
    fetcher.request_exchange()


async def test_jobs_that_are_ready_while_nothing_is_claimed_are_told(
    worker: Worker, task: Any
) -> None:
    sulk(worker, "mail")
    await task.enqueue_many(range(30))  # what was asked for before still comes
    await eventually(lambda: _stalls(worker))
    (said,) = (await worker.vitals()).stalled
    assert re.match(r"queue mail: \d+ jobs are ready, [12] slots are free and nothing holds", said)
    heal(worker, "mail")
    await eventually(lambda: _goes_on(worker))


async def _stalls(worker: Worker) -> bool:
    return bool((await worker.vitals()).stalled)


async def _goes_on(worker: Worker) -> bool:
    return not (await worker.vitals()).stalled


async def test_a_fetcher_that_asks_for_nothing_is_no_problem_where_no_job_is_ready_or_a_hold_is(
    app: Faena, worker: Worker, task: Any
) -> None:
    sulk(worker, "mail")
    watched = worker._health_checks.progress
    await eventually(lambda: watched.stalled)
    assert (await worker.vitals()).stalled == ()
    await app.queues["mail"].pause()
    await task.enqueue(1)
    assert (await worker.vitals()).stalled == ()
    await app.queues["mail"].resume()
    assert len((await worker.vitals()).stalled) == 1
    heal(worker, "mail")


async def test_an_exchange_without_an_answer_is_told(worker: Worker, task: Any) -> None:
    fetcher, answered = worker._by_shard["mail"], Asked()
    ask = fetcher.ask

    async def wait(*args: Any) -> Any:
        await answered.wait()
        return await ask(*args)

    fetcher.ask = wait
    await task.enqueue(1)
    await eventually(lambda: _stalls(worker))
    (said,) = (await worker.vitals()).stalled
    assert said.startswith("queue mail: the broker has not answered an exchange for ")
    answered.set()
    await eventually(lambda: _goes_on(worker))


async def test_a_worker_that_is_busy_or_idle_is_never_told_to_stall(app: Faena, task: Any) -> None:
    release = asyncio.Event()

    @app.queues["print"].task
    async def hold(number: int) -> None:
        await release.wait()

    async with serving(app) as worker:
        await hold.enqueue_many(range(10))
        await eventually(lambda: worker.running == 2)
        looks = worker._health_checks.progress
        seen = [looks._seen]

        def has_looked() -> bool:
            if looks._seen is not seen[-1]:
                seen.append(looks._seen)
            return len(seen) > 8

        await eventually(has_looked)
        assert (await worker.vitals()).stalled == ()
        assert all(one.idle_s <= 7 for one in looks._seen.values()), looks._seen
        release.set()


class _Fetcher:
    """As much of one as is looked at."""

    def __init__(self) -> None:
        self.asked: dict[str, None] = {}
        self.claims_answered = 0
        self.has_room = True


def test_time_passes_only_in_looks_and_an_answer_ends_a_wait() -> None:
    fetcher: Any = _Fetcher()
    watched = Progress({"mail": fetcher}, lambda: 5.0)
    fetcher.asked["call"] = None
    for _ in range(5):
        watched.look()
    assert watched.unanswered is None
    watched.look()
    assert watched.unanswered == ("mail", 5.0)
    del fetcher.asked["call"]
    fetcher.asked["next"] = None
    watched.look()
    assert watched.unanswered is None


@pytest.mark.parametrize("change", ["claims_answered", "has_room"])
def test_a_claim_that_was_answered_and_full_slots_are_progress(change: str) -> None:
    fetcher: Any = _Fetcher()
    watched = Progress({"mail": fetcher}, lambda: 5.0)
    for _ in range(11):
        watched.look()
    assert watched.stalled == [("mail", 11.0)]
    setattr(fetcher, change, 1 if change == "claims_answered" else False)
    watched.look()
    assert watched.stalled == []
