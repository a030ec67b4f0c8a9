"""Durations: what people may write, and that nothing is lost on the way in or out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.errors import ConfigError, shown
from faena.values.duration import LONGEST_US, describe, to_ms, to_s, to_us


@pytest.mark.parametrize(
    ("written", "us"),
    [
        ("0s", 0),
        ("200ms", 200_000),
        ("90s", 90_000_000),
        ("5m", 300_000_000),
        ("24h", 86_400_000_000),
        ("7d", 604_800_000_000),
        ("1h30m", 5_400_000_000),
        ("1h 30m", 5_400_000_000),
        ("1d 2h 3m 4s 5ms 6us", 93_784_005_006),
        ("3650d", LONGEST_US),
        (timedelta(minutes=1), 60_000_000),
        (timedelta(microseconds=1), 1),
    ],
)
def test_a_duration_is_read_to_the_microsecond(written: Any, us: int) -> None:
    assert to_us("delay", written) == us


@pytest.mark.parametrize(
    "written",
    [True, 0, -5, 1e12, 10**40, None, b"5m", "", " ", "5", "m", "5 m", " 5m", "5m ", "1h  30m",
     "1.5h", "5M", "30m1h", "5m5m", "-5m", "+5m", "٣s", "5m\n", "1e3s", "5min", ["5m"]],
)  # fmt: skip
def test_a_text_that_is_no_duration_is_refused_with_field_value_and_examples(written: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        to_us("delay", written)
    assert str(refused.value).startswith("delay must be a timedelta, or a string such as")
    assert str(refused.value).endswith(f"got {shown(written)}")
    assert (refused.value.field, refused.value.value) == ("delay", written)


@pytest.mark.parametrize(
    ("number", "text"), [(5, "5s"), (90, "90s"), (1.5, "1s 500ms"), (0.25, "250ms"), (1e-9, "1us")]
)
def test_a_bare_number_is_refused_with_the_text_for_so_many_seconds(
    number: float, text: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        to_us("delay", number)
    assert str(refused.value).endswith(f", got {number!r}; for seconds, write {text!r}")


@pytest.mark.parametrize("written", ["3651d", "999999999999999999d", timedelta(days=4000)])
def test_more_than_ten_years_is_refused(written: Any) -> None:
    with pytest.raises(ConfigError, match="delay must be a duration from 0s to 3650d, got"):
        to_us("delay", written)


def test_a_negative_timedelta_is_refused() -> None:
    with pytest.raises(ConfigError, match="delay must be a duration from 0s to 3650d, got"):
        to_us("delay", timedelta(seconds=-1))


def test_a_field_may_ask_for_more_than_nothing() -> None:
    assert to_us("lease", "1s", least_us=1_000_000) == 1_000_000
    with pytest.raises(ConfigError, match="lease must be a duration from 1s to 3650d, got '999ms'"):
        to_us("lease", "999ms", least_us=1_000_000)


def test_milliseconds_are_rounded_up_so_that_something_never_becomes_nothing() -> None:
    assert to_ms("delay", "1us") == 1
    assert to_ms("delay", "2ms") == 2
    assert to_ms("delay", "0s") == 0


def test_seconds_keep_their_fraction() -> None:
    assert to_s("timeout", "1500ms") == 1.5


@pytest.mark.parametrize(
    ("us", "text"),
    [(0, "0s"), (5_400_000_000, "1h 30m"), (200_000, "200ms"), (-60_000_000, "-1m"), (1, "1us")],
)
def test_a_duration_is_described_with_its_largest_units_first(us: int, text: str) -> None:
    assert describe(us) == text


@given(st.integers(min_value=0, max_value=LONGEST_US))
def test_what_is_described_is_read_back_exactly(us: int) -> None:
    assert to_us("delay", describe(us)) == us
    assert to_us("delay", describe(us).replace(" ", "")) == us


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3650)))
def test_a_timedelta_loses_nothing(value: timedelta) -> None:
    assert timedelta(microseconds=to_us("delay", value)) == value
