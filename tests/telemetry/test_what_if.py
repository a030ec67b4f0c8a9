"""What if: the replay of recorded arrivals, on real queues."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from msgspec.structs import replace

from faena import Faena, Limit, Queue
from faena.errors import ConfigError, UnknownQueue
from faena.telemetry.advice.event_arrivals import Arrival, Exact
from faena.telemetry.advice.recorded import Recorded, replayable
from faena.telemetry.advice.replay import Replay, WhatIf
from faena.telemetry.statistics import QueueStatistics
from tests._support.eventually import eventually
from tests._support.valkey import Server
from tests._support.working import obliterate, running, serving
from tests.telemetry.test_advice import histogram, task

MINUTE_US = 60_000_000


def both(found: WhatIf) -> tuple[Replay, Replay]:
    assert found.before is not None
    assert found.after is not None
    return found.before, found.after


def sleeping(app: Faena, name: str, **options: Any) -> tuple[Queue, Any]:
    queue = app.queue(name, **options)

    @queue.task(name=f"{name}.work")
    async def work(seconds: float) -> None:
        await asyncio.sleep(seconds)

    return queue, work


async def drained(app: Faena, queue: Queue) -> None:
    async def is_counted() -> bool:
        found = await queue.statistics("10m")
        return found.together().completed == found.counters["enqueued"]

    async with serving(app):
        await eventually(is_counted)


async def test_the_replay_is_near_a_real_run_with_other_slots(app: Faena) -> None:
    """Recorded with 5 slots, replayed with 10, and then really run with 10.

    Two waves of jobs that sleep make waits of seconds, long beside what a busy machine adds.
    """
    chance = random.Random(5)
    seconds = [one for _ in range(54) for one in chance.sample((0.2, 0.3, 0.45), 3)]
    few, first = sleeping(app, "few", concurrency=5, events_kept=100_000)
    many, again = sleeping(app, "many", concurrency=10)
    for queue, work in ((few, first), (many, again)):
        async with running(app, queues=[queue]):
            await eventually(lambda queue=queue: has_workers(queue))
            await work.enqueue_many(seconds[:81])
            await asyncio.sleep(1)  # between the waves, in both runs
            await work.enqueue_many(seconds[81:])
            await eventually(lambda queue=queue: is_done(queue, len(seconds)))
    found = await app.what_if("few", slots=10, window="10m")
    before, after = both(found)
    real = (await many.statistics("10m")).together().wait
    recorded = (await few.statistics("10m")).together().wait
    assert (found.jobs, found.exact) == (162, 162)
    assert (before.slots, after.slots) == (5, 10)
    assert recorded.p50_us is not None
    assert real.p50_us is not None
    assert before.wait_p50_s == pytest.approx(recorded.p50_us / 1e6, rel=0.1)
    assert after.wait_p50_s == pytest.approx(real.p50_us / 1e6, rel=0.1)


async def has_workers(queue: Queue) -> bool:
    return bool((await queue.overview()).workers)


async def is_done(queue: Queue, number: int) -> bool:
    together = (await queue.statistics("10m")).together()
    return together.completed == number == together.started


async def test_limits_and_their_absence_are_replayed(app: Faena) -> None:
    queue, work = sleeping(app, "mail", limits=[Limit("20/s")], events_kept=10_000)
    await work.enqueue_many([0.0] * 60)
    await drained(app, queue)
    before, after = both(await app.what_if(queue, limits=[], window="10m"))
    assert (before.limits, after.limits) == (("20/s",), ())
    assert 1.9 < before.wait_p99_s < 3
    assert after.wait_p99_s < 0.5
    _, slower = both(await app.what_if(queue, limits=[Limit("10/s")], slots=50, window="10m"))
    assert 4.9 < slower.wait_p99_s < 6
    assert slower.slots == 50


async def test_a_tenant_with_more_weight_would_wait_less(app: Faena) -> None:
    queue, work = sleeping(app, "mail", concurrency=2, events_kept=10_000, fair=True)
    drafts = [work.draft(0.02, tenant=tenant) for tenant in ("acme", "zen") for _ in range(60)]
    await work.enqueue_many(drafts)
    await drained(app, queue)
    found = await app.what_if(queue, weights={"acme": 10}, window="10m")
    before, after = both(found)
    assert found.exact == 120
    assert sorted(after.tenants) == ["", "acme"]
    assert after.tenants["acme"] < 0.75 * before.tenants["acme"]
    assert after.tenants[""] == pytest.approx(before.tenants[""], rel=0.2)
    with pytest.raises(ConfigError, match="tenant 'zn' had no jobs in the window; did you mean"):
        await app.what_if(queue, weights={"zn": 2}, window="10m")


async def test_without_events_jobs_are_spread_within_their_minutes(app: Faena) -> None:
    queue, work = sleeping(app, "mail", events_kept=0)
    await work.enqueue_many([0.001] * 50)
    await drained(app, queue)
    found = await app.what_if(queue, slots=2, window="10m")
    assert (found.jobs, found.exact) == (50, 0)
    assert "spread at random within their minutes" in found.words[-1]


async def test_an_empty_window_and_one_without_run_times_are_said(app: Faena) -> None:
    queue, work = sleeping(app, "mail")
    none = await app.what_if(queue, slots=2, window="1m")
    assert (none.jobs, none.before, none.after) == (0, None, None)
    assert none.words == ("nothing came in the window",)
    await work.enqueue(0.0)
    waiting = await app.what_if(queue, slots=2, window="10m")
    assert "no attempt has ended" in waiting.words[0]
    await drained(app, queue)
    single = await app.what_if(queue, slots=2, window="10m")
    assert single.jobs == 1
    assert both(single)[1].wait_p99_s == 0


def minute(at: int, enqueued: int, *tasks: Any) -> QueueStatistics:
    counters = {"enqueued": enqueued}
    since, until = at * MINUTE_US, (at + 1) * MINUTE_US
    return QueueStatistics(queue="q", since=since, until=until, counters=counters, tasks=tasks)


def test_minutes_before_the_first_kept_event_are_spread_and_the_rest_is_exact() -> None:
    whole = QueueStatistics(
        queue="q",
        since=0,
        until=10 * MINUTE_US,
        counters={"enqueued": 1_000},
        tasks=(task(1_000, histogram(*[0.5] * 1_000)),),
    )
    minutes = [minute(at, 100) for at in range(10)]
    begun = 9 * MINUTE_US + MINUTE_US // 2
    exact = Exact(begun, [Arrival(begun + one, "send", "acme") for one in range(50)])
    recorded = Recorded(whole, minutes, exact, 0, {"acme": 1.0, "zen": 3.0})
    arrivals, number = replayable(recorded, by_tenant=True)
    assert number == 50
    assert len(arrivals.at) == pytest.approx(1_000, abs=40)
    assert list(arrivals.at) == sorted(arrivals.at)
    for at in range(9):
        assert sum(at * 60 <= one < (at + 1) * 60 for one in arrivals.at) == 100
    assert all(0.45 < one < 0.56 for one in arrivals.service_s)
    spread = arrivals.tenant[:-50]
    share = sum(arrivals.tenants[one] == "zen" for one in spread) / len(spread)
    assert share == pytest.approx(0.75, abs=0.06)
    again, _ = replayable(recorded, by_tenant=True)
    assert again == arrivals  # the same question has the same answer


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "what_if must be given slots, limits or weights, got none"),
        ({"slots": 0}, "slots must be a whole number from 1 to 1000000, got 0"),
        ({"slots": 2.5}, "slots must be a whole number"),
        ({"slots": 9}, "slots must be at most 4, because of the queue's max_running, got 9"),
        ({"slots": 2, "window": "2d"}, "window must be a duration from 1m to 1d"),
        ({"slots": 2, "window": "10s"}, "window must be a duration from 1m to 1d"),
        ({"limits": ["10/s"]}, "limits must be a list of limits"),
        ({"limits": [Limit("10/s", cost="tokens")]}, "limits must count claims"),
        ({"weights": {}}, "weights must be a mapping of tenants to weights"),
        ({"weights": ["acme"]}, "weights must be a mapping of tenants to weights"),
        ({"weights": {"acme": 0}}, "weight must be a number from 0.01 to 1000, got 0"),
        ({"weights": {"acme": 2}}, "tenant 'acme' had no jobs in the window; no tenant is known"),
        ({"slot": 2}, "slot"),
    ],
)
async def test_questions_that_cannot_be_are_refused(app: Faena, asked: Any, said: str) -> None:
    app.queue("mail", max_running=4)
    with pytest.raises(ConfigError, match=said):
        await app.what_if("mail", **asked)


async def test_weights_need_lanes_and_a_queue_must_be_known(app: Faena) -> None:
    app.queue("mail", fair=False)
    with pytest.raises(ConfigError, match="weights need a queue in which tenants have lanes"):
        await app.what_if("mail", weights={"acme": 2})
    with pytest.raises(UnknownQueue, match="did you mean 'mail'"):
        await app.what_if("mial", slots=2)


def test_delayed_jobs_come_when_their_delay_is_over() -> None:
    """A hundred at once in the first minute, a hundred delayed to the fifth, fifty retried late."""
    counters = {"enqueued": 200, "promoted": 150, "retried": 50}
    runs = histogram(*[0.1] * 250)
    whole = QueueStatistics(
        queue="q", since=0, until=6 * MINUTE_US, counters=counters, tasks=(task(250, runs),)
    )
    minutes = [minute(at, 0) for at in range(6)]
    minutes[0] = minute(0, 200)
    minutes[2] = replace(minutes[2], counters={"retried": 50})
    minutes[4] = replace(minutes[4], counters={"promoted": 150})
    recorded = Recorded(whole, minutes, Exact(6 * MINUTE_US, []), 0, {})
    arrivals, _ = replayable(recorded, by_tenant=False)
    assert [sum(at * 60 <= one < at * 60 + 60 for one in arrivals.at) for at in range(6)] == [
        *(100, 0, 0, 0, 150, 0)
    ]


@pytest.mark.parametrize("options", [{"shards": 3}, {"order": "queue", "concurrency": 1}])
async def test_shards_and_orders_are_replayed_as_one_queue(app: Faena, options: Any) -> None:
    queue, work = sleeping(app, "mail", events_kept=10_000, **options)
    await work.enqueue_many([work.draft(0.01, tenant=one) for one in "abcdef" for _ in range(5)])
    await drained(app, queue)
    if "order" in options:
        with pytest.raises(ConfigError, match="slots must be at most 1, because of an order"):
            await app.what_if(queue, slots=2, window="10m")
    found = await app.what_if(queue, slots=1, window="10m")
    assert (found.jobs, found.exact) == (30, 30)
    whole_s = (await queue.statistics("10m")).together().runs.sum_us / 1e6
    assert both(found)[1].wait_p99_s == pytest.approx(whole_s, rel=0.3)  # one after another
    assert (await app.advice(queue, window="10m"))[0].count == 30


async def test_a_queue_of_another_program_is_read_as_well(
    app: Faena, valkey: Server, namespace: str
) -> None:
    queue, work = sleeping(app, "mail", limits=[Limit("1000/s")])
    await work.enqueue_many([0.001] * 10)
    await drained(app, queue)
    other = Faena("other", valkey.url, namespace=namespace)
    async with other:
        other.remote_queue("mail")
        found = await other.what_if("mail", slots=3, window="10m")
        assert (await other.advice("mail"))[0].limit_rate == 1000
        assert (await other.scaling()).queues["mail"].ready == 0
    assert both(found)[0].limits == ("1000/s",)


async def test_jobs_with_and_without_a_tenant_may_come_at_one_instant(
    valkey: Server, namespace: str
) -> None:
    now = [1_790_000_000_000_000]
    app = Faena("timed", valkey.url, namespace=namespace, clock=lambda: now[0])
    queue, work = sleeping(app, "mail")
    for tenant in ("acme", None, "acme"):
        options = {} if tenant is None else {"tenant": tenant}
        await work.enqueue(0.1, **options)
    now[0] += MINUTE_US
    found = await app.what_if(queue, slots=2, window="5m")
    assert found.before is None  # no attempt has ended
    await obliterate(app)
