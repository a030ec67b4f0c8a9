"""statistics.lua, and minutes.lua, which counts what it reads"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from faena.engine.calls.statistics import StatisticsCalls, TaskFacts
from faena.errors import ScriptError
from faena.outcomes import Completed
from tests._support.rig import T0, Rig
from tests._support.search import IS_FULL, SEED

MINUTE = T0 // 60_000_000
HOUR = MINUTE // 60
SEND = [2, 1, 1, 0, [70, 5, 2], [9, 9, 1], [12, 12, 1]]
"""Of a task: 2 started, 1 completed, 1 to be retried, none dead; waits, runs, totals."""


def told(rig: Rig) -> StatisticsCalls:
    return StatisticsCalls(rig.engine)


async def test_what_happens_is_counted_in_the_minute_of_the_call(rig: Rig) -> None:
    await rig.add("a", "b")
    await rig.claim()
    (minute,) = await told(rig).counted("q", "minute", MINUTE - 1, MINUTE + 1)
    assert (minute.at, minute.counters) == (MINUTE, {"enqueued": 2, "claimed": 1})
    assert await told(rig).now("q") == (T0, MINUTE)
    assert await told(rig).counted("q", "hour", HOUR, HOUR) == []


async def test_a_minute_that_is_over_is_added_to_its_hour_and_the_totals(rig: Rig) -> None:
    await rig.run("a", Completed())
    rig.clock.go(60)
    await rig.run("b", Completed())
    (hour,) = await told(rig).counted("q", "hour", HOUR, HOUR)
    assert hour.counters == {"enqueued": 1, "claimed": 1, "completed": 1}
    assert await told(rig).totals("q") == {"enqueued": 2, "claimed": 2, "completed": 2}
    dump = await rig.dump()
    assert {f"stats:{MINUTE}", f"stats_hour:{HOUR}", "totals"} <= dump.mortal
    assert dump["totals"] == {"enqueued": 1, "claimed": 1, "completed": 1, "open": MINUTE + 1}


async def test_minutes_are_kept_for_two_days_and_hours_for_thirty(rig: Rig) -> None:
    await rig.add("a")
    rig.clock.go(60)
    await rig.add("b")
    day = 86_400
    for name, days in ((f"stats:{MINUTE}", 2), (f"stats_hour:{HOUR}", 30)):
        left_s = await rig.engine.command("TTL", "q", name)
        assert (days - 1) * day < left_s <= days * day


async def test_minutes_without_jobs_between_two_change_nothing(rig: Rig) -> None:
    await rig.add("a")
    rig.clock.go(3600 * 5)
    await rig.add("b")
    rig.clock.go(3600 * 5)
    await rig.turn(is_sweep=True)  # nothing that is counted
    assert await told(rig).totals("q") == {"enqueued": 2}
    (hour,) = await told(rig).counted("q", "hour", HOUR, HOUR + 20)
    assert (hour.at, hour.counters) == (HOUR, {"enqueued": 1})


async def test_what_workers_measure_is_added_up_by_task(rig: Rig) -> None:
    await rig.turn(samples={"task:send": SEND, "task:print": SEND})
    await rig.turn(samples={"task:send": [1, 0, 0, 1, [7, 5, 1], [9, 8, 1], [0]]})
    (minute,) = await told(rig).counted("q", "minute", MINUTE, MINUTE)
    assert minute.counters == {}
    print_, send = minute.tasks["print"], minute.tasks["send"]
    assert print_ == TaskFacts(*SEND)  # pyright: ignore[reportArgumentType] - numbers and lists
    assert send[:4] == (3, 1, 1, 1)
    assert (send.waits, send.totals) == ([77, 5, 3], [12, 12, 1])
    assert (send.runs[0], {*zip(send.runs[1::2], send.runs[2::2], strict=True)}) == (
        18,
        {(8, 1), (9, 1)},
    )


async def test_an_hour_has_what_was_measured_in_its_minutes(rig: Rig) -> None:
    for _ in range(3):
        await rig.turn(samples={"task:send": SEND})
        rig.clock.go(60)
    await rig.add("a")
    (hour,) = await told(rig).counted("q", "hour", HOUR, HOUR)
    assert hour.tasks["send"].started == 6
    assert hour.tasks["send"].waits == [210, 5, 6]


@pytest.mark.parametrize(
    "nonsense",
    [{"task:a": 1}, {"task:a": []}, {"task:a": [*SEND[:6], [None]]}, {"other": SEND}, {}]
    + [{"task:a": [*SEND[:6], [one]]} for one in (float("nan"), float("inf"), -1, "x")],
)
async def test_measurements_that_cannot_be_read_are_not_counted(rig: Rig, nonsense: Any) -> None:
    await rig.turn(samples=nonsense)
    assert await told(rig).counted("q", "minute", MINUTE, MINUTE) == []


@pytest.mark.parametrize(
    "stored",
    [b"", b"x", b"\xc0", msgspec.msgpack.encode([1]), msgspec.msgpack.encode([[float("nan")]] * 7)],
)
async def test_what_is_stored_and_cannot_be_read_begins_anew(rig: Rig, stored: bytes) -> None:
    await rig.add("a")
    await rig.engine.command("HSET", "q", f"stats:{MINUTE}", "task:send", stored)
    await rig.engine.command("HSET", "q", "totals", "enqueued", "x")
    await rig.turn(samples={"task:send": SEND})
    (minute,) = await told(rig).counted("q", "minute", MINUTE, MINUTE)
    assert minute.tasks["send"].started == 2
    rig.clock.go(60)
    await rig.add("b")
    assert (await told(rig).totals("q"))["enqueued"] == 2


async def test_a_minute_that_is_counted_on_after_the_clock_was_put_back_is_added_whole(
    rig: Rig,
) -> None:
    await rig.turn(samples={"task:send": SEND})
    await rig.add("a")
    rig.clock.go(60)
    await rig.add("b")
    rig.clock.go(-60)
    await rig.add("c")
    assert (await told(rig).totals("q"))["enqueued"] == 3
    await rig.turn(samples={"task:send": SEND})
    rig.clock.go(120)
    await rig.add("d")
    assert (await told(rig).totals("q"))["enqueued"] == 4
    (hour,) = await told(rig).counted("q", "hour", HOUR, HOUR)
    assert hour.counters["enqueued"] == 3
    assert hour.tasks["send"].started == 4
    (first, *_) = await told(rig).counted("q", "minute", MINUTE, MINUTE)
    assert (first.counters["enqueued"], first.tasks["send"].started) == (2, 4)


async def test_a_queue_that_is_given_up_leaves_its_hours_and_no_totals(rig: Rig) -> None:
    await rig.run("a", Completed())
    await rig.obliterate()
    (hour,) = await told(rig).counted("q", "hour", HOUR, HOUR)
    assert hour.counters["completed"] == 1
    assert await told(rig).totals("q") == {}


async def test_a_unit_that_is_not_known_is_refused(rig: Rig) -> None:
    with pytest.raises(ScriptError, match="minute, hour or total"):
        await rig.engine.ask("statistics", "q", unit="day", first=1, last=2)


async def test_at_most_sixty_are_read_in_one_call(rig: Rig) -> None:
    for minute in range(62):
        name = f"stats:{MINUTE + minute}"
        await rig.engine.command("HSET", "q", name, "enqueued", "1")
        await rig.engine.command("EXPIRE", "q", name, 600)
    reply = await rig.engine.ask("statistics", "q", unit="minute", first=MINUTE, last=MINUTE + 99)
    assert len(reply) == 2 + 2 * 60
    assert len(await told(rig).counted("q", "minute", MINUTE, MINUTE + 99)) == 62


@pytest.mark.parametrize("seed", range(60 if IS_FULL else 6))
async def test_totals_minutes_and_hours_are_what_was_counted_whatever_the_clock_does(
    rig: Rig, seed: int
) -> None:
    dice = random.Random(SEED * 1000 + seed)
    total, by_minute, by_hour = 0, Counter[int](), Counter[int]()
    for _ in range(12):
        steps = [0, 1, 30, 59, 60, 61, 600, 3600, 90_000, -1, -61, -3600]
        minute = rig.clock.go(dice.choice(steps)) // 60_000_000
        jobs = dice.randint(1, 4)
        await rig.add(*(f"j{total + i}" for i in range(jobs)))
        total += jobs
        by_minute[minute] += jobs
        by_hour[minute // 60] += jobs
        assert await told(rig).totals("q") == {"enqueued": total}
    rig.clock.go(100_000)
    await rig.add("last")  # the minutes before are over
    assert await told(rig).totals("q") == {"enqueued": total + 1}
    first, last = min(by_minute), max(by_minute)
    found = await told(rig).counted("q", "hour", first // 60, last // 60)
    assert {one.at: one.counters["enqueued"] for one in found} == by_hour
    minutes = Counter[int]()
    for one in await told(rig).counted("q", "minute", first, last):
        minutes[one.at] += one.counters["enqueued"]
    assert minutes == by_minute
