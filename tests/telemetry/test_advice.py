"""Advice: Little's law and Erlang C, from what was counted of a queue."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from msgspec.structs import replace

from faena import Faena, Limit
from faena.engine.overview import Hold
from faena.errors import ConfigError, UnknownQueue
from faena.telemetry.advice.judgement import Capacity, judge
from faena.telemetry.advice.queue_advice import QueueAdvice
from faena.telemetry.histogram import Histogram
from faena.telemetry.snapshot import QueueSnapshot
from faena.telemetry.statistics import QueueStatistics, TaskStatistics
from tests._support.working import running
from tests.telemetry.test_erlang import exact_slots

HOUR_US = 3_600_000_000


def histogram(*durations_s: float) -> Histogram:
    made = Histogram()
    for one in durations_s:
        made.add(round(one * 1e6))
    return made


def task(started: int, runs: Histogram, waits: Histogram | None = None, name: str = "send") -> Any:
    return TaskStatistics(
        queue="mail",
        task=name,
        started=started,
        waits=waits or Histogram(),
        runs=runs,
        totals=Histogram(),
    )


def hour(*tasks: TaskStatistics, enqueued: int | None = None) -> QueueStatistics:
    started = sum(one.started for one in tasks)
    return QueueStatistics(
        queue="mail",
        since=0,
        until=HOUR_US,
        counters={"enqueued": started if enqueued is None else enqueued},
        tasks=tasks,
    )


def queue(
    slots: int, *, ready: int = 0, oldest_s: float | None = None, holds: tuple[Hold, ...] = ()
) -> QueueSnapshot:
    counts = {"ready": ready, "delayed": 0, "running": 0, "blocked": 0}
    return QueueSnapshot(
        queue="mail",
        counts=counts,
        oldest_us=None if oldest_s is None else int(oldest_s * 1e6),
        totals={},
        holds=holds,
        workers=(),
        slots=slots,
        tenants=(),
        other_tenants=None,
    )


def judged(found: QueueStatistics, seen: QueueSnapshot, **capacity: Any) -> QueueAdvice:
    given = {"concurrency": 5, "objective_us": 30_000_000, **capacity}
    return judge(found, None, seen, Capacity(**given))


def test_the_formulas_are_those_of_the_specification() -> None:
    """720 jobs an hour of 35 s each in 8 slots: lambda 0.2, rho 7/8, c = 0.2 x 35 / 0.7."""
    found = judged(hour(task(720, histogram(*[35.0] * 720))), queue(8))
    assert found.arrival_rate == pytest.approx(0.2)
    assert found.service_s == pytest.approx(35)
    assert found.utilization == pytest.approx(7 / 8)
    assert (found.recommended_slots, found.slots, found.status) == (10, 8, "warning")


@pytest.mark.parametrize(
    ("slots", "late_s", "status"),
    [
        (10, 0.1, "healthy"),  # 70 % exactly
        (9, 0.1, "warning"),
        (7, 0.1, "critical"),
        (100, 29.0, "healthy"),
        (100, 31.5, "warning"),
    ],
)
def test_the_status_is_by_use_and_by_waits(slots: int, late_s: float, status: str) -> None:
    waits = histogram(*[0.01] * 600, *[late_s] * 120)
    found = judged(hour(task(720, histogram(*[35.0] * 720), waits)), queue(slots))
    assert found.status == status


@pytest.mark.parametrize("rate", [0.05, 0.4, 1.5, 6.0, 30.0])
@pytest.mark.parametrize("load", [0.02, 0.5, 1.9, 8.0, 25.0, 60.0])
def test_the_advice_is_within_one_slot_of_the_exact_answer(rate: float, load: float) -> None:
    """Arrivals and run times are drawn as M/M/c has them; the advice sees only what is counted."""
    chance, number, service_s = random.Random(11), 60_000, load / rate
    window_s = sum(chance.expovariate(rate) for _ in range(number))
    runs = histogram(*(chance.expovariate(1 / service_s) for _ in range(number)))
    for objective_s in (0.1, 1.0, 30.0):
        counted = replace(hour(task(number, runs)), until=int(window_s * 1e6))
        found = judged(counted, queue(4), objective_us=int(objective_s * 1e6))
        assert found.objective_slots is not None
        assert abs(found.objective_slots - exact_slots(rate, service_s, objective_s)) <= 1
        right = max(1, math.ceil(load / 0.7 - 1e-9))
        assert abs((found.recommended_slots or 0) - right) <= 1


def test_tasks_share_the_slots_of_their_queue() -> None:
    found = judged(
        hour(
            task(300, histogram(*[12.0] * 300), name="slow"),
            task(3_300, histogram(*[1.0] * 3_300), name="fast"),
        ),
        queue(4),
    )
    slow, fast = found.tasks
    assert (slow.arrival_rate, fast.arrival_rate) == pytest.approx((1 / 12, 11 / 12))
    assert slow.utilization == pytest.approx(0.25)
    assert found.utilization == pytest.approx((slow.utilization or 0) + (fast.utilization or 0))
    assert (slow.recommended_slots, fast.recommended_slots, found.recommended_slots) == (2, 2, 3)
    assert found.variability == pytest.approx(0.5 * (300 * 144 + 3_300) * 3_600 / 6_900**2, rel=0.1)


def test_what_waits_of_the_new_jobs_counts_as_come() -> None:
    one = task(720, histogram(*[35.0] * 720))
    grows = judged(hour(one, enqueued=1_440), queue(8, ready=720))
    assert grows.arrival_rate == pytest.approx(0.4)
    assert grows.predicted_wait_s is None
    assert any("cannot keep up" in sentence for sentence in grows.words)
    later = judged(hour(one, enqueued=1_000_000), queue(8))  # enqueued for next week
    assert later.arrival_rate == pytest.approx(0.2)
    old = judged(hour(one), queue(8, ready=5_000))  # waited before the window began
    assert old.arrival_rate == pytest.approx(0.2)


def test_nothing_is_advised_from_nothing() -> None:
    none = judged(hour(), queue(0))
    assert (none.status, none.arrival_rate, none.recommended_slots) == ("healthy", None, None)
    assert (none.slots, none.has_workers, none.tasks) == (5, False, ())
    assert any("no attempt has ended" in sentence for sentence in none.words)
    single = judged(hour(task(1, histogram(2.0))), queue(5))
    assert (single.count, single.is_enough) == (1, False)
    assert (single.recommended_slots, single.objective_slots) == (None, None)
    assert any("too few" in sentence for sentence in single.words)
    begun = judged(hour(task(200, Histogram())), queue(5))  # none has ended
    assert begun.recommended_slots is None
    instant = judged(hour(task(200, histogram(*[0.0] * 200))), queue(5))
    assert (instant.recommended_slots, instant.utilization) == (1, 0)


def test_jobs_without_a_worker_are_critical_once_they_wait_too_long() -> None:
    assert judged(hour(), queue(0, ready=3, oldest_s=31)).status == "critical"
    assert judged(hour(), queue(0, ready=3, oldest_s=29)).status == "healthy"
    assert judged(hour(), queue(2, ready=3, oldest_s=31)).status == "warning"
    pause = Hold(reason="lunch", until=None, by="ana", since=0)
    held = judged(hour(), queue(0, ready=3, oldest_s=31, holds=(pause,)))
    assert held.status == "warning"
    assert "the queue is held (lunch)" in held.words[0]


def test_slots_that_a_bound_makes_useless_do_not_count() -> None:
    one = hour(task(720, histogram(*[35.0] * 720)))
    found = judged(one, queue(100), max_running=8, limits=[Limit("6/min"), Limit("200/h")])
    assert (found.slots, found.utilization) == (8, pytest.approx(7 / 8))
    assert found.limit_rate == pytest.approx(200 / 3600)
    assert any("more slots do not help" in sentence for sentence in found.words)


async def test_a_real_queue_is_advised_by_what_its_workers_measured(app: Faena) -> None:
    mail = app.queue("mail", concurrency=4, objective="10s")
    app.queue("print")

    @mail.task
    async def send(number: int) -> None:
        pass

    await send.enqueue_many(range(150))
    async with running(app, until_empty=True) as worker:
        await worker
    mailing, printing = await app.advice(window="10m")
    assert (mailing.queue, printing.queue) == ("mail", "print")
    assert (mailing.count, mailing.is_enough, mailing.objective_s) == (150, True, 10)
    assert mailing.wait.count == mailing.run.count == 150
    assert (mailing.recommended_slots, mailing.objective_slots) == (1, 1)
    assert [one.task for one in mailing.tasks] == ["send"]
    assert printing.count == 0
    (alone,) = await app.advice("mail", window="10m")
    assert alone.to_dict()["tasks"][0]["run"]["count"] == 150


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"window": "10s"}, "window must be a duration from 1m to 30d"),
        ({"window": "31d"}, "window must be a duration from 1m to 30d"),
        ({"window": "yesterday"}, "window must be a timedelta"),
    ],
)
async def test_windows_that_cannot_be_are_refused(app: Faena, asked: Any, said: str) -> None:
    app.queue("mail")
    with pytest.raises(ConfigError, match=said):
        await app.advice("mail", **asked)


async def test_an_unknown_queue_is_refused_with_the_nearest(app: Faena) -> None:
    app.queue("mail")
    with pytest.raises(UnknownQueue, match="did you mean 'mail'"):
        await app.advice("mial")


@pytest.mark.parametrize("value", ["0s", "31d", 30, "soon"])
def test_objectives_that_cannot_be_are_refused(app: Faena, value: Any) -> None:
    with pytest.raises(ConfigError, match="objective must be"):
        app.queue("mail", objective=value)
