"""Statistics of a queue: what a window has, by task, over shards and times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from faena import Discard, Faena, Job, Queue, Retry, Snooze
from faena.engine.calls.statistics import StatisticsCalls
from faena.engine.scripts import Claim
from faena.errors import ConfigError
from faena.options import QueueOptions
from faena.outcomes import Snoozed
from faena.telemetry.measured import Measurements
from faena.worker.fetch.samples import Samples
from tests._support.eventually import eventually
from tests._support.rig import Clock
from tests._support.valkey import Server
from tests._support.working import obliterate, serving

MINUTE_US = 60_000_000


async def test_each_attempt_is_counted_by_how_it_ended(app: Faena) -> None:
    queue = app.queue("mail", retry=Retry.fixed("0s", attempts=2))

    @queue.task
    async def send(number: int, job: Job) -> None:
        if number == 1 and job.attempt == 1:
            raise ConnectionError("not yet")
        if number == 2:
            raise Discard("no such address")
        if number == 3:
            raise Snooze("1h")

    await send.enqueue_many([0, 1, 2, 3])
    async with serving(app):
        await eventually(lambda: ended(queue))
    found = await queue.statistics("10m")
    task = found.task("send")
    assert task is not None
    assert (task.started, task.completed, task.retried, task.dead) == (5, 2, 1, 1)
    assert (task.wait.count, task.run.count, task.total.count) == (5, 5, 2)
    assert task.error_rate == 2 / 4
    assert found.counters["completed"] == 2
    assert found.task("other") is None
    together = found.together()
    assert (together.task, together.started, together.runs.count) == ("", 5, 5)


async def test_a_worker_that_stops_tells_what_it_has_measured(app: Faena) -> None:
    queue, work = working(app)
    await work.enqueue_many(range(10))
    await app.run_worker(until_empty=True)
    task = (await queue.statistics("10m")).task("work")
    assert task is not None
    assert (task.started, task.completed, task.run.count) == (10, 10, 10)


def test_a_retry_waits_since_it_was_due() -> None:
    """Not since its job was enqueued: its score says when it became ready."""
    hour_us = 60 * MINUTE_US
    options = QueueOptions()
    worth = 100 * options.age_step_us - options.retry_boost * options.age_step_us
    claim = Claim("a", "lease", b"100\n", 2.0 * hour_us + worth, attempts=1)
    job = SimpleNamespace(enqueued_us=hour_us, started_us=2 * hour_us + 5)
    attempt: Any = SimpleNamespace(handler=SimpleNamespace(name="send"), claim=claim, job=job)
    measured: Measurements = {}
    samples = Samples("mail", options, measured)
    samples.begun([attempt])
    samples.take(0.0, is_last=True)
    assert measured["mail", "send"].waits.sum_us == 5


def test_an_attempt_that_a_worker_has_put_off_took_no_time() -> None:
    """Its handler has not begun."""
    job = SimpleNamespace(headers={})
    attempt: Any = SimpleNamespace(handler=SimpleNamespace(name="send"), job=job, started=0.0)
    measured: Measurements = {}
    samples = Samples("mail", QueueOptions(), measured)
    samples.ended(attempt, Snoozed(1, "no worker here knows it", is_parked=True))
    samples.ended(attempt, Snoozed(1, "later"))
    samples.take(0.0, is_last=True)
    assert measured["mail", "send"].runs.count == 1


async def test_counters_are_events_also_where_tenants_take_turns(app: Faena) -> None:
    queue, work = working(app)
    for tenant in ("acme", "zen"):
        await work.enqueue(1, tenant=tenant)
    await app.run_worker(until_empty=True)
    events = {"enqueued", "claimed", "completed"}
    assert (await queue.statistics("10m")).counters.keys() == events
    (seen,) = (one for one in (await app.snapshot()).queues if one.queue == queue.name)
    assert seen.totals.keys() == events


async def ended(queue: Queue) -> bool:
    counts = await queue.counts()
    return (counts["completed"], counts["dead"], counts["delayed"]) == (2, 1, 1)


def working(app: Faena, **options: Any) -> tuple[Queue, Any]:
    queue = app.queue("mail", **options)

    @queue.task
    async def work(number: int) -> None:
        pass

    return queue, work


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def timed(valkey: Server, namespace: str, clock: Clock) -> Any:
    app = Faena("timed", valkey.url, namespace=namespace, clock=clock)
    yield app
    await obliterate(app)


async def test_the_last_minute_of_an_hour_is_counted_before_it_is_added(
    timed: Faena, clock: Clock
) -> None:
    """The hour has it only once it is over."""
    queue, work = working(timed)
    hour_us = 60 * MINUTE_US
    clock.now += hour_us - clock.now % hour_us + 58 * MINUTE_US
    await work.enqueue(1)
    clock.now += MINUTE_US
    await work.enqueue(2)
    assert (await queue.statistics("2h")).counters["enqueued"] == 2


async def test_a_window_has_whole_minutes_and_older_ones_whole_hours(
    timed: Faena, clock: Clock
) -> None:
    queue, work = working(timed)
    began = clock.now
    for hour in range(100):
        clock.now = began + hour * 60 * MINUTE_US
        await work.enqueue(hour)
    for window, jobs in {"1m": 1, "1h": 2, "10h": 11, "47h": 48, "99h": 100}.items():
        found = await queue.statistics(window)
        assert found.counters["enqueued"] == jobs, window
        assert found.until == clock.now + 1
        assert found.since % MINUTE_US == 0
    past = datetime.fromtimestamp(began / 1e6, UTC) + timedelta(hours=50, minutes=30)
    found = await queue.statistics("10h", until=past)
    assert found.counters["enqueued"] in {10, 11}  # began before: whole hours


async def test_a_series_has_each_step_also_those_without_jobs(timed: Faena, clock: Clock) -> None:
    queue, work = working(timed)
    clock.now -= clock.now % (60 * MINUTE_US)
    for number in range(3):
        await work.enqueue(number)
    clock.now += 10 * MINUTE_US
    await work.enqueue(4)
    series = await queue.series("20m", step="5m")
    numbers = [point.counters.get("enqueued", 0) for point in series.points]
    assert numbers == [0, 0, 3, 0, 1]
    assert all(point.since % (5 * MINUTE_US) == 0 for point in series.points)
    hours = await queue.series("72h", step="24h")
    assert sum(point.counters.get("enqueued", 0) for point in hours.points) == 4


async def test_what_retired_shards_have_counted_is_read_and_totals_go_on(app: Faena) -> None:
    queue, work = working(app, shards=3)
    await work.enqueue_many(range(30), tenant="a")
    for tenant in "bcdefgh":
        await work.enqueue_many(range(10), tenant=tenant)
    await app.run_worker(until_empty=True)
    before = (await app.snapshot(max_age="0s")).queues[0].totals
    assert before["completed"] == 100
    await queue.reshard(1, wait="60s")
    after = (await app.snapshot(max_age="0s")).queues[0].totals
    assert (after["enqueued"], after["completed"]) == (100, 100)
    found = await queue.statistics("10m")
    task = found.task("work")
    assert task is not None
    assert (task.completed, found.counters["completed"]) == (100, 100)
    assert await StatisticsCalls((await app.runtime()).engine).retired("mail")
    for shards in (2, 1):  # what was taken over once is not taken over again
        await queue.reshard(shards, wait="60s")
    again = (await app.snapshot(max_age="0s")).queues[0].totals
    assert (again["enqueued"], again["completed"]) == (100, 100)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"window": "10s"}, "window must be a duration from 1m to 30d"),
        ({"window": "31d"}, "window must be a duration from 1m to 30d"),
        ({"window": "soon"}, "window must be a timedelta"),
        ({"until": datetime(2026, 1, 1)}, "until must have a time zone"),  # noqa: DTZ001
        ({"until": datetime(2000, 1, 1, tzinfo=UTC)}, "until must be within the last 30 days"),
    ],
)
async def test_windows_that_cannot_be_are_refused(app: Faena, asked: Any, said: str) -> None:
    queue, _ = working(app)
    with pytest.raises(ConfigError, match=said):
        await queue.statistics(**asked)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"step": "90s"}, "step must be whole minutes"),
        ({"window": "5m", "step": "10m"}, "step must be a duration from 1m to 5m"),
        ({"window": "30d", "step": "5m"}, "step must be whole hours"),
        ({"window": "40h", "step": "1m"}, "step must be at least"),
    ],
)
async def test_steps_that_cannot_be_are_refused(app: Faena, asked: Any, said: str) -> None:
    queue, _ = working(app)
    with pytest.raises(ConfigError, match=said):
        await queue.series(**asked)
