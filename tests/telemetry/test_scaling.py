"""The signal for autoscalers: predicted wait by objective, as a metric and as JSON."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest
from msgspec.structs import replace

from faena import Faena, Limit
from faena.engine.overview import Hold
from faena.telemetry.advice.judgement import Capacity
from faena.telemetry.advice.scaling import QueueScaling, scaling_of
from faena.telemetry.statistics import QueueStatistics
from tests._support.eventually import eventually
from tests._support.working import running
from tests.telemetry.test_advice import histogram, hour, queue, task
from tests.telemetry.test_erlang import exact_slots
from tests.telemetry.test_metrics import of, read


def recent(rate: float, run_s: float = 1.0, *, number: int = 1_000) -> QueueStatistics:
    """Five minutes in which that much came each second; run times are exponential."""
    quantiles = [(one + 0.5) / number for one in range(number)]
    runs = histogram(*(run_s * _exponential(one) for one in quantiles))
    one = task(round(rate * 300), runs)
    return replace(hour(one), until=300_000_000)


def _exponential(part: float) -> float:
    return -math.log(1 - part)


def signal(found: QueueStatistics | None, slots: int, **given: Any) -> QueueScaling:
    seen = queue(slots, ready=given.pop("ready", 0), **given.pop("seen", {}))
    capacity = {"concurrency": 5, "objective_us": 10_000_000, **given}
    return scaling_of(seen, found, Capacity(**capacity))


def test_the_ratio_is_one_where_the_objective_is_just_met() -> None:
    found = recent(8.0)
    needed = exact_slots(8.0, 1.0, 2.0)
    enough = signal(found, needed, objective_us=2_000_000)
    assert enough.wait_ratio <= 1
    assert signal(found, needed - 1, objective_us=2_000_000).wait_ratio > 1
    assert enough.slots_wanted == 12  # 70 % of these are in use
    assert enough.arrival_rate == pytest.approx(8)


def test_the_ratio_grows_with_what_is_missing_and_has_an_end() -> None:
    ratios = [signal(recent(8.0), slots).wait_ratio for slots in (20, 10, 9, 8, 7, 4, 1)]
    assert ratios == sorted(ratios)
    assert ratios[0] == 0
    assert ratios[3] == pytest.approx(30, rel=0.02)  # five minutes by ten seconds
    assert ratios[-1] == pytest.approx(240, rel=0.02)


def test_what_waits_is_worked_off_first() -> None:
    idle = signal(recent(1.0), 10)
    full = signal(recent(1.0), 10, ready=200)
    assert full.predicted_wait_s - idle.predicted_wait_s == pytest.approx(19, rel=0.03)
    assert full.wait_ratio == pytest.approx(full.predicted_wait_s / 10)
    assert full.slots_wanted == pytest.approx(1 + 200 / 10, abs=1)
    assert idle.slots_wanted == 2


def test_slots_wanted_do_not_depend_on_those_there_are() -> None:
    wanted = {signal(recent(8.0), slots, ready=10).slots_wanted for slots in (1, 5, 50)}
    assert len(wanted) == 1
    assert signal(None, 3).slots_wanted == 0
    assert signal(recent(0), 3).slots_wanted == 0


def test_what_slots_cannot_help_is_no_reason_for_more() -> None:
    pause = Hold(reason="lunch", until=None, by="ana", since=0)
    held = signal(recent(8.0), 1, ready=1_000, seen={"holds": (pause,)})
    assert held.wait_ratio == 0
    assert held.slots_wanted < 20
    limited = signal(recent(8.0), 5, ready=1_000, limits=[Limit("1/s")])
    assert limited.wait_ratio < 1
    assert limited.slots_wanted <= 5
    assert signal(recent(8.0), 2, ready=50, max_running=2).slots_wanted == 2


def test_jobs_without_a_slot_wake_an_autoscaler() -> None:
    assert signal(None, 0, ready=1).wait_ratio >= 1
    assert signal(None, 0, ready=1).slots_wanted >= 1
    assert signal(recent(0.01, 0.01), 0, ready=1).wait_ratio >= 1
    none = signal(None, 0)
    assert (none.wait_ratio, none.slots_wanted, none.service_s) == (0, 0, None)


async def test_the_signal_is_on_the_page_of_metrics_and_in_json(app: Faena) -> None:
    afip = app.queue("afip.invoice", concurrency=2, objective="1s")

    @afip.task
    async def invoice(number: int) -> None:
        await asyncio.sleep(0.01)

    await invoice.enqueue_many(range(20))
    page = read(await app.metrics())
    assert of(page, "faena_queue_wait_ratio", queue="afip.invoice") >= 1
    assert of(page, "faena_queue_slots_wanted", queue="afip.invoice") >= 1
    async with running(app):
        await eventually(lambda: is_measured(app))
        document = json.loads(json.dumps((await app.scaling()).to_dict()))
    # What KEDA reads with the location queues.afip\.invoice.wait_ratio
    found = document["queues"]["afip.invoice"]
    assert isinstance(found["wait_ratio"], float)
    assert (found["objective_s"], found["slots"], found["ready"]) == (1.0, 2, 0)
    assert found["service_s"] >= 0.01
    assert document["at"] > 0


async def is_measured(app: Faena) -> bool:
    one = (await app.scaling()).queues["afip.invoice"]
    return one.slots == 2 and one.ready == 0 and one.service_s is not None
