"""Periods and names: every day has one period, periods touch, names tell them apart."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.errors import ArgumentError, ConfigError
from faena.pg.partition.declaration import declaration
from faena.pg.partition.interval import ahead_of, period_named, period_of, periods, suffix
from faena.pg.partition.name import LONGEST, fit, partition_name, read_name

DAYS = st.dates(date(1, 1, 8), date(9999, 10, 1))
EVERY: Any = st.sampled_from(["month", "week", "day"])


@given(DAYS, EVERY)
def test_a_day_is_in_its_period_and_so_is_every_day_of_it(day: date, every: Any) -> None:
    period = period_of(day, every)
    assert period.start <= day < period.end
    assert period_of(period.start, every) == period
    assert period_of(period.end - timedelta(days=1), every) == period
    assert period_of(period.end, every).start == period.end


@given(DAYS, EVERY, st.integers(1, 40))
def test_periods_ahead_touch_and_have_names_of_their_own(day: date, every: Any, ahead: int) -> None:
    if (date(9999, 10, 1) - day).days < 31 * 41:
        return
    found = ahead_of(day, every, ahead)
    assert all(before.end == after.start for before, after in pairwise(found))
    assert found == [*periods(day, found[-1].start, every)]
    assert len({suffix(one, every) for one in found}) == ahead + 1


@given(DAYS, EVERY)
def test_a_name_tells_its_period(day: date, every: Any) -> None:
    period = period_of(day, every)
    assert period_named(partition_name("jobs", period, every), every) == period


@pytest.mark.parametrize(
    ("day", "every", "name", "start", "end"),
    [
        (date(2024, 12, 31), "week", "t_2025w01", date(2024, 12, 30), date(2025, 1, 6)),
        (date(2027, 1, 1), "week", "t_2026w53", date(2026, 12, 28), date(2027, 1, 4)),
        (date(2024, 2, 29), "month", "t_y2024m02", date(2024, 2, 1), date(2024, 3, 1)),
        (date(2024, 12, 31), "month", "t_y2024m12", date(2024, 12, 1), date(2025, 1, 1)),
        (date(2024, 2, 29), "day", "t_20240229", date(2024, 2, 29), date(2024, 3, 1)),
    ],
)
def test_weeks_are_those_of_iso_and_leap_days_count(
    day: date, every: Any, name: str, start: date, end: date
) -> None:
    period = period_of(day, every)
    assert (partition_name("t", period, every), period) == (name, (start, end))


def test_a_period_after_the_last_year_is_refused() -> None:
    with pytest.raises(ArgumentError, match="between the years 1 and 9999"):
        period_of(date(9999, 12, 31), "month")


@pytest.mark.parametrize("name", ["t_y2024m13", "t_2025w54", "t_20250230", "t", "t_y24m01"])
def test_a_name_that_tells_no_period_tells_none(name: str) -> None:
    every: tuple[Any, ...] = ("month", "week", "day")
    assert [period_named(name, one) for one in every] == [None, None, None]


@given(st.text("aü", min_size=1, max_size=80), st.text("aü", min_size=1, max_size=80))
def test_long_names_fit_and_stay_apart(first: str, second: str) -> None:
    period = period_of(date(2025, 1, 1), "day")
    one, two = (partition_name(name, period, "day") for name in (first, second))
    assert len(one.encode()) <= LONGEST
    assert one.endswith("_20250101")
    assert (one == two) == (first == second)
    assert fit("short", "_idx") == "short_idx"


@pytest.mark.parametrize("table", ["", "a.b.c", ".a", "a.", 7, None, "x" * 64, "a\nb", " "])
def test_a_name_that_no_table_can_have_is_refused(table: Any) -> None:
    with pytest.raises(ConfigError, match=r"table must be a name such as jobs or shop\.jobs"):
        read_name(table)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"every": "year"}, "every must be month, week or day, got 'year'"),
        ({"every": None}, "every must be month, week or day"),
        ({"ahead": 0}, "ahead must be a whole number from 1 to 120"),
        ({"ahead": True}, "ahead must be a whole number"),
        ({"by": ""}, "by must be the name of a column"),
        ({"tenant": 7}, "tenant must be the name of a column"),
        ({"indexes": "status"}, "indexes must be a list"),
        ({"indexes": [()]}, "each index must be one or more names"),
        ({"indexes": [["a", 7]]}, "indexes must be the name of a column"),
    ],
)
def test_a_wrong_declaration_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        declaration("jobs", **{"every": "month", **wrong})


def test_the_defaults_are_three_months_twelve_weeks_and_ninety_days() -> None:
    found = [declaration("t", every=every).ahead for every in ("month", "week", "day")]
    assert found == [3, 12, 90]
