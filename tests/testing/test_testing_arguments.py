"""What `faena.testing` accepts, and what it says of anything else."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from faena import Faena, Job
from faena.errors import ConfigError
from faena.job import Input
from faena.testing import Clock, Harness, attempt, harness, run_inline, sync_harness

app = Faena("stall")
orders = app.queue("orders")
bills = app.queue("bills")


@dataclass
class Order:
    number: int


@orders.task
async def place(number: int) -> int:
    return number


@orders.task
async def deliver(order: Order, job: Job) -> str:
    return f"{order.number} of {job.parents['prepare'].value(Order).number}"


@orders.task
async def look(job: Job) -> list[Any]:
    return [[one.state, one.value()] for one in job.parents.values()]


@bills.task
async def report(job: Job) -> dict[str, int]:
    return dict(job.group)


@pytest.fixture
async def h() -> AsyncGenerator[Harness]:
    async with harness(app) as tested:
        yield tested


async def test_a_queue_may_be_given_by_its_name(h: Harness) -> None:
    await place.enqueue(1)
    await report.enqueue()
    assert [job.queue for job in await h.jobs("bills")] == ["bills"]
    assert [ran.task for ran in await h.drain("orders")] == ["place"]
    assert [ran.task for ran in await h.drain(bills)] == ["report"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("order", "no queue 'order' in app stall; did you mean 'orders'"),
        (place, "or their names, got .*: its queue is 'orders'; valid: bills, orders"),
        (7, "queues must be queues of app stall or their names, got 7"),
        (Faena("other").queue("orders"), "got queue orders of another app"),
    ],
)
async def test_anything_else_is_refused_as_a_queue(h: Harness, given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await h.drain(given)
    with pytest.raises(ConfigError, match=message):
        await h.jobs(given)


async def test_a_tasks_name_is_no_task(h: Harness) -> None:
    message = "task must be a task, .*, got 'place'; app stall has bills/report, orders/deliver, "
    with pytest.raises(ConfigError, match=message):
        await h.assert_enqueued("place")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=message):
        await h.assert_not_enqueued("place")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="task must be a Task, got 'place'"):
        await run_inline("place", 1)  # type: ignore[call-overload]


@pytest.mark.parametrize("given", [orders, place])
async def test_a_harness_is_of_an_app(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"app must be a Faena, got .*; give the app that has it"):
        async with harness(given):
            pass
    with pytest.raises(ConfigError, match="app must be a Faena"), sync_harness(given):
        pass


@pytest.mark.parametrize("by", ["-5s", timedelta(seconds=-5)])
def test_a_clock_only_moves_forward(by: Any) -> None:
    with pytest.raises(ConfigError, match=r"by must not be negative, got .*: the clock only "):
        Clock().advance(by)


def test_a_clock_goes_to_instants_only() -> None:
    with pytest.raises(ConfigError, match=r"at must be a datetime or microseconds .* got '5m'"):
        Clock().advance_to("5m")  # type: ignore[arg-type]


async def test_a_node_of_a_flow_is_given_what_its_parents_returned() -> None:
    assert await run_inline(deliver, Order(1), parents={"prepare": Order(7)}) == "1 of 7"
    assert await run_inline(deliver, Order(1), parents={"prepare": {"number": 8}}) == "1 of 8"
    told = await run_inline(look, parents={"a": None, "b": [1], "c": Input("dead")})
    assert told == [["completed", None], ["completed", [1]], ["dead", None]]
    ran = await attempt(deliver, Order(2), number=2, parents={"prepare": Order(9)})
    assert (ran.number, ran.result) == (2, "2 of 9")


async def test_the_callback_of_a_group_is_given_its_counts() -> None:
    told = await run_inline(report, group={"completed": 2, "dead": 1})
    assert told == {"total": 3, "completed": 2, "dead": 1, "cancelled": 0}
    assert await run_inline(report) == {}


def test_code_without_an_event_loop_gives_them_too() -> None:
    with sync_harness(app) as h:
        assert h.run_inline(deliver, Order(1), parents={"prepare": Order(7)}) == "1 of 7"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parents": ["prepare"]}, "parents must be a Mapping, got "),
        ({"parents": {"prepare": object()}}, r"parents\['prepare'\] must be something that a hand"),
        ({"group": 3}, "group must be a Mapping, got 3"),
        ({"group": {"ded": 3}}, "got 'ded'; did you mean 'dead'"),
        ({"group": {"dead": -1}}, "group count dead must be .* got -1"),
        ({"group": {"total": 3, "dead": 1}}, "total must be the sum .* which is 1, got 3"),
    ],
)
async def test_what_no_job_could_find_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await run_inline(report, **given)
