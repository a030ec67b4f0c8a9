"""Options of queues, tasks and enqueue calls: defaults, derived values, and every refusal."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from faena.errors import ConfigError
from faena.limits import Limit
from faena.options import (
    Backpressure,
    Durability,
    EnqueueOptions,
    Order,
    QueueOptions,
    Retain,
    TaskOptions,
    Unique,
    build,
    telling,
)
from faena.retry import Retry

S = 1_000_000

LOCAL = datetime(2030, 1, 1)  # noqa: DTZ001 - a time without a zone


def test_a_queue_without_options_has_the_documented_defaults() -> None:
    options = QueueOptions()
    assert (options.order, options.concurrency, options.priority) == (Order.NONE, 5, 10)
    assert (options.timeout_us, options.lease_us, options.age_step_us) == (None, 30 * S, 300 * S)
    assert (options.max_deliveries, options.retry_boost) == (3, 2)
    assert (options.payload_limit, options.backpressure) == (1_048_576, None)
    assert options.retry == Retry.exponential()
    assert options.retain == Retain()


def test_the_queue_of_the_product_page_can_be_written() -> None:
    options = build(
        QueueOptions,
        "queue",
        {
            "order": Order.TENANT,
            "limits": [Limit("1000/h"), Limit("60/min")],
            "tenant_limits": [Limit("50/min")],
            "concurrency": 3,
            "max_running": None,
            "tenant_max_running": 2,
            "timeout": "60s",
            "priority": "high",
            "retry": Retry.steps("30s", "2m"),
            "backpressure": Backpressure(soft=100, hard=500),
            "retain": Retain(completed="24h", completed_count=1000, dead="30d"),
        },
    )
    assert options.limits == (Limit("60/min"), Limit("1000/h"))
    assert (options.timeout_us, options.priority) == (60 * S, 5)


def test_options_are_frozen_slotted_and_comparable() -> None:
    options = QueueOptions(concurrency=3)
    assert options == QueueOptions(concurrency=3)
    assert hash(options) == hash(QueueOptions(concurrency=3))
    assert not hasattr(options, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.concurrency = 4  # pyright: ignore[reportAttributeAccessIssue]


def test_a_change_made_with_replace_is_checked_and_derived_again() -> None:
    changed = dataclasses.replace(QueueOptions(), lease="5s")
    assert changed.lease_us == 5 * S
    with pytest.raises(ConfigError):
        dataclasses.replace(changed, lease="2h")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": "fifo"}, "order must be a known order, got 'fifo'"),
        ({"order": 3}, "order must be a known order, got 3"),
        ({"limits": Limit("1/s")}, "limits must be a list of limits such as"),
        ({"limits": ["10/min"]}, "limits must be a list of limits such as"),
        ({"tenant_limits": [Limit("1/s"), Limit("2/1s")]}, "tenant_limits must not contradict"),
        ({"concurrency": 0}, "concurrency must be a whole number from 1 to 10000, got 0"),
        ({"concurrency": "5"}, "concurrency must be a whole number from 1 to 10000, got '5'"),
        ({"max_running": 0}, "max_running must be a whole number from 1"),
        ({"tenant_max_running": -1}, "tenant_max_running must be a whole number from 1"),
        ({"timeout": 60}, "timeout must be a timedelta, or"),
        ({"timeout": "0s"}, "timeout must be a duration from 1ms to 3650d, got '0s'"),
        ({"priority": 0}, "priority must be a whole number from 1 to 100, got 0"),
        ({"priority": "hihg"}, "did you mean 'high'"),
        ({"retry": 3}, "retry must be a Retry, got 3"),
        ({"retain": {"dead": "1d"}}, "retain must be a Retain, got"),
        ({"backpressure": 500}, "backpressure must be a Backpressure, got 500"),
        (
            {"fair": False, "backpressure": Backpressure(tenant_hard=1)},
            "backpressure tenant_hard must not be given in a queue without lanes, got 1: ",
        ),
        (
            {"order": "queue", "backpressure": Backpressure(tenant_soft=1)},
            "backpressure tenant_soft must not be given in a queue without lanes, got 1",
        ),
        ({"lease": "99ms"}, "lease must be a duration from 100ms to 1h, got '99ms'"),
        ({"lease": "61m"}, "lease must be a duration from 100ms to 1h, got '61m'"),
        ({"max_deliveries": 0}, "max_deliveries must be a whole number from 1 to 100"),
        ({"age_step": "2d"}, "age_step must be a duration from 1ms to 1d, got '2d'"),
        ({"retry_boost": 11}, "retry_boost must be a whole number from 0 to 10, got 11"),
        ({"payload_limit": 0}, "payload_limit must be a whole number from 1 to 134217728, got 0"),
        ({"concurency": 3}, "got 'concurency'; did you mean 'concurrency'"),
        ({"lease_us": 3}, "queue option must be a known name, got 'lease_us'"),
    ],
)
def test_a_bad_queue_option_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        build(QueueOptions, "queue", given)
    assert message in str(refused.value)


def test_scores_stay_exact_in_a_double_at_the_far_end_of_every_bound() -> None:
    options = QueueOptions(age_step="1d", retry_boost=10)
    year_2100_us = 4_102_444_800 * S
    highest = year_2100_us + 100 * options.age_step_us
    lowest = -options.retry_boost * 1000 * options.age_step_us
    assert abs(highest) < 2**53
    assert abs(lowest) < 2**53


def test_retention_keeps_a_day_of_completed_and_a_month_of_dead_jobs() -> None:
    retain = Retain()
    assert (retain.completed_us, retain.completed_count) == (86_400 * S, 1_000)
    assert (retain.dead_us, retain.dead_count) == (30 * 86_400 * S, 10_000)
    assert (retain.cancelled_us, retain.cancelled_count) == (86_400 * S, 1_000)
    assert (retain.completed_bytes, retain.dead_bytes, retain.cancelled_bytes) == (None, None, None)


def test_retention_may_keep_nothing_or_lift_some_bounds() -> None:
    assert Retain(completed="0s").completed_us == 0
    assert Retain(completed=None, completed_count=5).completed_us is None
    assert Retain(dead=None, dead_count=None, dead_bytes=10**9).dead_us is None


@pytest.mark.parametrize("state", ["completed", "dead", "cancelled"])
def test_retention_without_any_bound_is_refused(state: str) -> None:
    with pytest.raises(ConfigError, match=f"retain must bound {state} jobs by age, count or bytes"):
        build(Retain, "retain", {state: None, f"{state}_count": None})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dead": "soon"}, "retain dead must be a timedelta, or"),
        ({"dead_count": -1}, "retain dead_count must be a whole number from 0"),
        ({"completed_bytes": 1.5}, "retain completed_bytes must be a whole number"),
    ],
)
def test_a_bad_retention_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(Retain, "retain", given)


@pytest.mark.parametrize("name", ["soft", "hard", "tenant_soft", "tenant_hard"])
def test_back_pressure_bounds_only_what_it_is_told_to(name: str) -> None:
    pressure = build(Backpressure, "backpressure", {name: 10})
    bounds = {one: getattr(pressure, one) for one in ("soft", "hard", "tenant_soft", "tenant_hard")}
    assert bounds == {**dict.fromkeys(bounds), name: 10}
    assert pressure.max_delay_us == 5 * S


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"soft": 500, "hard": 500}, r"backpressure soft must be less than hard \(500\), got 500"),
        ({"soft": -1}, "backpressure soft must be a whole number from 0"),
        ({"hard": True}, "backpressure hard must be a whole number"),
        ({"hard": 1, "max_delay": 5}, "backpressure max_delay must be"),
        ({"tenant_hard": 0}, "backpressure tenant_hard must be a whole number from 1"),
        ({}, "backpressure must be given a bound, such as hard=500 .*, got none"),
        ({"max_delay": "1s"}, "backpressure must be given a bound"),
    ],
)
def test_a_bad_back_pressure_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(Backpressure, "backpressure", given)


def test_a_task_leaves_to_its_queue_whatever_it_does_not_say() -> None:
    task = TaskOptions(name="cae")
    assert (task.timeout_us, task.retry, task.run, task.priority, task.version) == (
        None, None, None, None, 1,
    )  # fmt: skip


def test_a_task_may_say_everything() -> None:
    task = TaskOptions(name="cae", timeout="5s", retry=Retry.never(), run="process", priority=7)
    assert (task.timeout_us, task.priority) == (5 * S, 7)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "task option name must be given, got none"),
        ({"name": "Bad Name"}, "task name must be 1 to 64 of a-z"),
        ({"name": "x", "run": "proces"}, "run must be 'async' or 'thread' or 'process'"),
        ({"name": "x", "run": ["thread"]}, "run must be 'async' or 'thread' or 'process', got"),
        ({"name": "x", "version": 0}, "version must be a whole number from 1"),
        ({"name": "x", "retry": "3"}, "retry must be a Retry"),
        ({"name": "x", "priority": 101}, "priority must be a whole number from 1 to 100, got 101"),
        ({"name": "x", "time_out": "1s"}, "did you mean 'timeout'"),
    ],
)
def test_a_bad_task_option_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(TaskOptions, "task", given)


def test_an_enqueue_call_needs_to_say_nothing() -> None:
    options = EnqueueOptions()
    assert (options.delay_us, options.timeout_us, options.headers) == (0, None, {})
    assert options.durability == Durability()


def test_an_enqueue_call_is_read_into_the_values_of_the_engine() -> None:
    options = EnqueueOptions(
        tenant="org-1",
        key="inv-9",
        delay="5m",
        priority="bulk",
        id="my-id",
        unique="inv-9",
        durability="replicated(2)",
        headers={"traceparent": "00-aa-bb-01"},
        timeout=timedelta(seconds=2),
    )
    assert (options.delay_us, options.priority, options.timeout_us) == (300 * S, 50, 2 * S)
    assert options.unique == Unique.while_live("inv-9")
    assert str(options.durability) == "replicated(2)"


def test_the_headers_are_a_copy() -> None:
    given = {"a": "1"}
    options = EnqueueOptions(headers=given)
    given["a"] = "2"
    assert options.headers == {"a": "1"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tenant": ""}, "tenant must be 1 to 128 printable characters"),
        ({"key": "a b"}, "key must be 1 to 128 printable characters"),
        ({"id": "x" * 129}, "id must be 1 to 128 printable characters"),
        ({"delay": 5}, "delay must be a timedelta, or"),
        ({"priority": "urgent"}, "priority must be 1 to 100 or a level's name, got 'urgent'"),
        ({"unique": 5.0}, "unique must be a key or a Unique"),
        ({"unique": True}, "unique must be a key or a Unique"),
        ({"id": True}, "id must be 1 to 128 printable characters"),
        ({"replace": 1.5}, "replace must be 1 to 128 printable characters"),
        ({"unique": "a", "replace": "b"}, "unique and replace must not both be given"),
        ({"at": "5m"}, "at must be a datetime with a time zone"),
        ({"at": LOCAL}, "at must be a datetime with a time zone"),
        ({"at": datetime(2200, 1, 1, tzinfo=UTC)}, "at must be before the year 2112"),
        ({"at": datetime(2030, 1, 1, tzinfo=UTC), "delay": "5m"}, "delay and at must not both"),
        (
            {"at": datetime(2030, 1, 1, tzinfo=UTC), "unique": Unique.debounce("k", "5s")},
            "at must not be given with Unique.debounce",
        ),
        (
            {"delay": "1h", "unique": Unique.debounce("k", "3s")},
            "delay must not be given with Unique.debounce",
        ),
        ({"expires": 5}, "expires must be a timedelta, or a string .*, or a datetime with a time"),
        ({"expires": "2027-01-01T00:00Z"}, "or a datetime with a time zone, got '2027"),
        ({"expires": "0s"}, "expires must be a duration from 1ms"),
        ({"expires": LOCAL}, "expires must be a datetime with a time zone"),
        ({"expires": "5m", "delay": "5m"}, "expires must be after the job becomes ready"),
        ({"attempts": 0}, "attempts must be"),
        ({"attempts": True}, "attempts must be"),
        ({"attempts": 1001}, "attempts must be"),
        ({"attempts": 3, "retry": Retry.fixed()}, "attempts and retry must not both be given"),
        ({"retry": {"attempts": 3}}, "retry must be a Retry"),
        ({"retry": Retry.custom(lambda *_: "1s")}, "retry of one job must be exponential"),
        ({"retry": Retry.fixed(give_up_on=(KeyError,))}, "got give_up_on, which cannot be stored"),
        ({"on_conflict": "ignore"}, "on_conflict must be 'raise' or 'keep'"),
        ({"durability": "fsync"}, "did you mean 'fsynced'"),
        ({"headers": [("a", "b")]}, "headers must be a mapping of at most 64 strings, got list"),
        ({"headers": {str(n): "" for n in range(65)}}, "headers must be a mapping of at most 64"),
        ({"headers": {"a b": "x"}}, "header name must be"),
        ({"headers": {"a": 5}}, "header a must be a UTF-8 string of at most 4096 characters"),
        (
            {"headers": {"a": "x" * 4097}},
            "header a must be a UTF-8 string of at most 4096 characters",
        ),
        ({"headers": {"a": "\ud800"}}, "header a must be a UTF-8 string"),
        ({"timeout": "0s"}, "timeout must be a duration from 1ms"),
        ({"dealy": "5m"}, "did you mean 'delay'"),
        ({"tells": "f:q:f:1"}, "enqueue option must be a known name, got 'tells'"),
    ],
)
def test_a_bad_enqueue_option_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(EnqueueOptions, "enqueue", given)


def test_only_a_flow_or_a_group_can_be_told() -> None:
    options = EnqueueOptions(priority=3, headers={"a": "1"})
    told = telling(options, "g:q:g:")
    assert (told.tells, options.tells) == ("g:q:g:", None)
    assert (told.priority, told.headers) == (3, {"a": "1"})
    for nobody in ("", "x", "h:q:g:", "g:q:g", "g::g:", "g:q:a b:", "g:a:b:c:d"):
        with pytest.raises(ConfigError, match="id of a flow or a group must be"):
            telling(options, nobody)


def test_a_refused_header_does_not_repeat_its_text() -> None:
    with pytest.raises(ConfigError) as refused:
        EnqueueOptions(headers={"authorization": "secret" * 1000})
    assert "secret" not in str(refused.value)
