"""What may be decided for a tenant, told before anything is sent; how an end survives its way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from faena import Discard, Faena, Limit, RateLimited, Snooze
from faena.engine.envelope import Facts, facts_in, seal
from faena.errors import ConfigError
from faena.options import Order, QueueOptions
from faena.outcomes import Limited, Signal
from faena.tenancy.lanes import lane_facts
from faena.tenancy.shares import Shares
from faena.tenancy.tenants import Tenant
from faena.worker.execute.remote_errors import describe, rebuild

app = Faena("unit", "redis://127.0.0.1:1/0")
lanes = app.queue("lanes", fair=True)
plain = app.queue("plain", fair=False)
mixed = app.queue("mixed")


async def no_server() -> Any:
    raise AssertionError("a bad value must be refused before anything is sent")


CONFIGURED: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "must be given a setting, got none; valid: limits, max_running, size, weight"),
    "only an end": ({"lasting": "1h"}, "must be given a setting"),
    "weight of nothing": ({"weight": 0}, "weight must be a number from 0.01 to 1000, got 0"),
    "negative weight": ({"weight": -1.5}, "weight must be a number from 0.01 to 1000, got -1.5"),
    "endless weight": ({"weight": math.inf}, "weight must be a number"),
    "true weight": ({"weight": True}, "weight must be a number"),
    "no place to run": ({"max_running": 0}, "max_running must be a whole number from 1"),
    "half a job": ({"size": 1.5}, "size must be a whole number from 0"),
    "contradiction": (
        {"limits": [Limit("10/s"), Limit("5/min")]},
        "limits must not contradict each other, got 10/s and 5/min: 10/s can never be reached",
    ),
    "a text": ({"limits": "10/s"}, "limits must be a list of limits such as"),
    "typo": ({"wieght": 2}, "got 'wieght'; did you mean 'weight'?"),
    "no time": ({"weight": 2, "lasting": "0s"}, "lasting must be a duration from"),
    "nobody": ({"weight": 2, "by": "an na"}, "by must be 1 to 128 printable characters"),
}


@pytest.mark.parametrize("case", CONFIGURED.values(), ids=CONFIGURED)
async def test_a_bad_setting_is_refused_before_anything_is_sent(
    case: tuple[dict[str, Any], str],
) -> None:
    settings, message = case
    with pytest.raises(ConfigError) as refused:
        await Tenant(no_server, "lanes", "acme").configure(**settings)
    assert message in str(refused.value)


@pytest.mark.parametrize("reason", ["", "  ", "x" * 201, "a\nb", "\x1b[31m", None, 7])
async def test_a_reason_is_a_short_line(reason: Any) -> None:
    with pytest.raises(ConfigError, match="reason must be 1 to 200 printable characters"):
        await Tenant(no_server, "lanes", "acme").hold(reason)


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "a\nb", 7])
def test_a_tenant_has_the_name_that_a_job_may_carry(name: Any) -> None:
    with pytest.raises(ConfigError, match="tenant must be 1 to 128 printable characters"):
        lanes.tenant(name)


async def test_a_queue_without_lanes_says_what_would_give_it_some() -> None:
    calls: tuple[Callable[[], Any], ...] = (plain.tenants, plain.shares)
    with pytest.raises(ConfigError, match="queue plain must have lanes for tenants: declare it"):
        plain.tenant("acme")
    for call in calls:
        with pytest.raises(ConfigError, match=r"without fair=False, or with fair=True if"):
            await call()
    with pytest.raises(ConfigError, match="must have lanes for tenants"):
        await plain.configure(tenant_limits=[Limit("1/s")])


async def test_tenants_are_kept_apart_without_asking_but_for_jobs_that_have_none() -> None:
    assert mixed.tenant("acme").name == "acme"
    with pytest.raises(ConfigError, match="queue mixed has no lane for jobs without a tenant"):
        mixed.tenant(None)
    with pytest.raises(ConfigError, match="has no lane for jobs without a tenant"):
        await mixed.reshard(2)


def test_a_job_has_a_lane_where_its_queue_or_its_tenant_says_so() -> None:
    for options, lane, common in (
        (QueueOptions(), "@acme", None),
        (QueueOptions(fair=True), "@acme", "@"),
        (QueueOptions(tenant_max_running=1), "@acme", "@"),
        (QueueOptions(fair=False), None, None),
        (QueueOptions(order=Order.QUEUE), None, None),
    ):
        assert lane_facts("q", options, "acme", None).get("lane") == lane
        assert lane_facts("q", options, None, None).get("lane") == common


@pytest.mark.parametrize("minutes", [-1, 60, 1.5, True])
async def test_shares_are_kept_for_an_hour(minutes: Any) -> None:
    with pytest.raises(ConfigError, match="minutes must be a whole number from 0 to 59"):
        await lanes.shares(minutes=minutes)


class Slow(RateLimited):
    def __init__(self, provider: str, *, seconds: float) -> None:
        super().__init__(seconds, "tenant")
        self.provider = provider


@pytest.mark.parametrize(
    "signal",
    [
        RateLimited("5m", "tenant"),
        RateLimited(0.5),
        Snooze("1h"),
        Discard("no use"),
        Slow("mail", seconds=3),
    ],
    ids=repr,
)
def test_a_signal_comes_out_of_a_process_as_it_went_in(signal: Signal) -> None:
    back = rebuild(describe(signal))
    assert type(back) is type(signal)
    assert (back.args, vars(back)) == (signal.args, vars(signal))


def test_a_provider_s_wait_says_on_the_wire_whom_it_concerns() -> None:
    assert Limited(5).kind == "limited"
    assert Limited(5, "tenant").kind == "tenant_limited"


def test_the_lane_stands_in_the_line_and_nowhere_else() -> None:
    def lane_of(facts: Facts) -> str | None:
        return facts_in(seal(10, facts, b'{"payload":" lane=@other"}')).get("lane")

    assert lane_of({"lane": "@ac/me", "chain": "t/ac/me"}) == "@ac/me"
    assert lane_of({"delay": 5, "lane": "@"}) == "@"
    assert lane_of({"delay": 5}) is None
    assert lane_of({}) is None


def test_fairness_is_one_for_equals_and_a_share_for_a_monopoly() -> None:
    def shares(**given: float) -> Shares:
        return Shares(at=0, is_over=True, given=given)

    assert shares(a=5.0, b=5.0, c=5.0).fairness == 1
    assert shares(a=9.0, b=0.0, c=0.0).fairness == pytest.approx(1 / 3)
    assert shares().fairness is None
    assert shares(a=3.0, b=1.0).of("a") == 0.75
    assert (shares(a=3.0).of("b"), shares().of(None)) == (0, 0)


async def test_a_tenant_may_be_called_like_any_part_of_a_job(app: Faena) -> None:
    tenant = '"payload":0'

    @app.queue("q").task
    async def keep(number: int) -> None: ...

    receipts = await keep.enqueue_many([1, 2, 3], tenant=tenant)
    views = [await one.handle.view() for one in receipts]
    assert [(view.tenant, bytes(view.payload)) for view in views] == [
        (tenant, b"1"),
        (tenant, b"2"),
        (tenant, b"3"),
    ]
    assert (await app.queues["q"].tenant(tenant).view()).live == 3
