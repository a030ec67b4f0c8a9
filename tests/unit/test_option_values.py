"""The small values options are made of: priority, order, uniqueness, durability."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.errors import ConfigError
from faena.options import (
    PRIORITY_TIMEOUT_US,
    Durability,
    DurabilityLevel,
    Order,
    Priority,
    Unique,
    UniqueMode,
    default_timeout_us,
    priority_of,
)

S = 1_000_000


def test_a_priority_is_a_number_a_level_or_a_name() -> None:
    assert priority_of(7) == 7
    assert priority_of(Priority.HIGH) == 5
    assert priority_of("bulk") == priority_of("BULK") == 50
    assert type(priority_of(Priority.LOW)) is int


@pytest.mark.parametrize("value", [0, 101, 5.0, True, None, "", "7", "hi"])
def test_any_other_priority_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="priority must be"):
        priority_of(value)


@pytest.mark.parametrize(
    ("priority", "seconds"),
    [(1, 300), (4, 300), (5, 120), (9, 120), (10, 60), (19, 60), (20, 30), (50, 600), (100, 600)],
)
def test_a_number_between_levels_has_the_timeout_of_the_level_below(
    priority: int, seconds: int
) -> None:
    assert default_timeout_us(priority) == seconds * S


def test_every_level_has_a_timeout() -> None:
    assert set(PRIORITY_TIMEOUT_US) == set(Priority)


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("none", Order.NONE),
        ("tenant", Order.TENANT),
        ("KEY", Order.KEY),
        ("queue", Order.QUEUE),
        (Order.KEY, Order.KEY),
    ],
)
def test_an_order_is_given_by_its_name_too(name: str, order: Order) -> None:
    assert Order.of(name) is order


def test_an_unknown_order_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="got 'tennant'; did you mean 'tenant'"):
        Order.of("tennant")


def test_a_plain_text_is_unique_while_its_job_lives() -> None:
    assert Unique.of("inv-9") == Unique.while_live("inv-9")
    unique = Unique.throttle("inv-9", "10m")
    assert Unique.of(unique) is unique


def test_each_mode_carries_what_it_needs() -> None:
    assert Unique.while_waiting("k").mode is UniqueMode.WHILE_WAITING
    assert Unique.while_live("k").mode is UniqueMode.WHILE_LIVE
    assert Unique.keep_last("k").mode is UniqueMode.KEEP_LAST
    throttle = Unique.throttle("k", "10m")
    assert (throttle.mode, throttle.ttl_us, throttle.delay_us) == ("throttle", 600 * S, 0)


def test_a_debounced_job_waits_for_its_ttl_unless_a_shorter_delay_is_given() -> None:
    assert Unique.debounce("k", "10s").delay_us == 10 * S
    assert Unique.debounce("k", "10s", "3s").delay_us == 3 * S


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Unique.while_live(""), "unique key must be 1 to 128"),
        (lambda: Unique.throttle("k", "0s"), "unique ttl must be a duration from 1ms"),
        (lambda: Unique.debounce("k", "5s", "6s"), "unique delay must be at most the ttl of '5s'"),
        (lambda: Unique.debounce("k", "5s", 6), "unique delay must be"),  # pyright: ignore[reportArgumentType]
        (lambda: Unique.of(None), "unique must be a key or a Unique"),
    ],
)
def test_a_bad_unique_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    ("text", "level", "replicas", "canonical"),
    [
        ("memory", DurabilityLevel.MEMORY, 0, "memory"),
        ("fsynced", DurabilityLevel.FSYNCED, 0, "fsynced"),
        ("replicated", DurabilityLevel.REPLICATED, 1, "replicated(1)"),
        ("replicated(3)", DurabilityLevel.REPLICATED, 3, "replicated(3)"),
    ],
)
def test_a_durability_is_read_and_written_back(
    text: str, level: DurabilityLevel, replicas: int, canonical: str
) -> None:
    durability = Durability.of(text)
    assert (durability.level, durability.replicas) == (level, replicas)
    assert str(durability) == canonical
    assert Durability.of(durability) is durability


@pytest.mark.parametrize(
    "value", ["", "disk", "memory(1)", "replicated(0)", "replicated(17)", "replicated(-1)", None, 1]
)
def test_any_other_durability_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="durability must be"):
        Durability.of(value)


@given(st.integers(1, 16))
def test_any_number_of_replicas_is_read_back(replicas: int) -> None:
    durability = Durability(DurabilityLevel.REPLICATED, replicas)
    assert Durability.of(str(durability)) == durability
