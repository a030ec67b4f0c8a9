"""When schedules fire: by the clock of a zone, also where it is put forward or back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.errors import ConfigError
from faena.scheduling.recurrence import Cron, Every, Once

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
STEP = timedelta(days=5)
"""Shorter than the clocks of any zone stay as they are."""
EPOCH = datetime.fromtimestamp(0, UTC)


def us(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def at(instant: int) -> datetime:
    return EPOCH + timedelta(microseconds=instant)


def fires(cron: Cron, first: datetime, last: datetime) -> list[datetime]:
    """All instants later than `first`, up to `last`."""
    found: list[datetime] = []
    instant = cron.following(us(first))
    while instant is not None and at(instant) <= last:
        found.append(at(instant))
        instant = cron.following(instant)
    return found


# -- zones ----------------------------------------------------------------------------------------


def transitions() -> Iterator[tuple[str, datetime]]:
    """Every change of a clock from 2020 to 2035, once for zones that change alike."""
    seen: set[tuple[datetime, Any, Any]] = set()
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        day = datetime(2020, 1, 1, tzinfo=UTC)
        offset = day.astimezone(zone).utcoffset()
        while day.year < 2036:
            day += STEP
            after = day.astimezone(zone).utcoffset()
            if after != offset:
                moment = _moment(day - STEP, day, zone)
                if (moment, offset, after) not in seen:
                    seen.add((moment, offset, after))
                    yield name, moment
                offset = after


def _moment(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    old = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        middle = middle.replace(microsecond=0)
        low, high = (middle, high) if middle.astimezone(zone).utcoffset() == old else (low, middle)
    return high


def by_the_policy(zone: ZoneInfo, moment: datetime, walls: set[tuple[int, int]]) -> list[datetime]:
    """Minute by minute: the first showing of a wall time, and the end of a gap for what it hid."""
    shown: set[datetime] = set()
    found: list[datetime] = []
    usual = (moment - 4 * HOUR).astimezone(zone).replace(tzinfo=None)
    for now in (moment + number * MINUTE for number in range(-239, 241)):
        wall, usual = now.astimezone(zone).replace(tzinfo=None), usual + MINUTE
        due = [wall]
        while usual < wall:  # what the clock has skipped
            due.append(usual)
            usual += MINUTE
        if any((one.hour, one.minute) in walls and one not in shown for one in due):
            found.append(now)
        shown.update(due)
        usual = wall
    return found


def test_every_change_of_every_clock_is_met_as_the_policy_says() -> None:
    number = 0
    for name, moment in transitions():
        number += 1
        zone = ZoneInfo(name)
        shown = [(moment + step * 10 * MINUTE).astimezone(zone) for step in range(-15, 16)]
        offset = (moment - HOUR).astimezone(zone).utcoffset() or timedelta()
        hidden = [(moment + offset + step * 10 * MINUTE) for step in range(12)]
        hours = sorted({one.hour for one in (*shown, *hidden)})
        cron = Cron(f"0,30,50 {','.join(map(str, hours))} * * *", name)
        walls = {(hour, minute) for hour in hours for minute in (0, 30, 50)}
        span = moment - 4 * HOUR, moment + 4 * HOUR
        assert fires(cron, *span) == by_the_policy(zone, moment, walls), (name, moment)
    assert number > 500


def test_an_expression_for_every_hour_goes_by_elapsed_time() -> None:
    for name, moment in list(transitions())[::25]:
        quarters = fires(Cron("*/30 * * * *", name), moment - 3 * HOUR, moment + 3 * HOUR)
        minutes = {one.astimezone(ZoneInfo(name)).minute for one in quarters}
        assert minutes <= {0, 30}
        gaps = {later - one for one, later in pairwise(quarters)}
        assert max(gaps) <= HOUR


@pytest.mark.parametrize("five", ["30 * * * *", "30 2 * * *", "* 2 * * *"])
def test_seconds_in_front_change_nothing_about_a_repeated_hour(five: str) -> None:
    first = datetime(2026, 10, 24, 22, tzinfo=UTC)  # the clocks go back at 1:00 UTC
    instants = fires(Cron(five, "Europe/Madrid"), first, first + 6 * HOUR)
    assert fires(Cron(f"0 {five}", "Europe/Madrid"), first, first + 6 * HOUR) == instants
    assert len(instants) == {"30 * * * *": 6, "30 2 * * *": 1, "* 2 * * *": 60}[five]


# -- expressions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("0 2 * * *", "2026-01-31T03:00:00", "2026-02-01T02:00:00"),
        ("*/15 * * * * *", "2026-01-31T03:00:01.5", "2026-01-31T03:00:15"),
        ("0 0 29 2 *", "2025-01-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 9 * * MON-FRI", "2026-11-13T09:00:00", "2026-11-16T09:00:00"),
        ("0 0 L * *", "2026-02-01T00:00:00", "2026-02-28T00:00:00"),
        ("0 12 * * 1#2", "2026-11-01T00:00:00", "2026-11-09T12:00:00"),
        ("@hourly", "2026-11-16T09:30:00", "2026-11-16T10:00:00"),
        ("@daily", "2026-11-16T09:30:00", "2026-11-17T00:00:00"),
        ("@weekly", "2026-11-16T09:30:00", "2026-11-22T00:00:00"),
        ("@monthly", "2026-11-16T09:30:00", "2026-12-01T00:00:00"),
        ("@yearly", "2026-11-16T09:30:00", "2027-01-01T00:00:00"),
    ],
)
def test_cron_expressions(text: str, after: str, expected: str) -> None:
    instant = Cron(text).following(us(datetime.fromisoformat(f"{after}+00:00")))
    assert instant is not None
    assert at(instant) == datetime.fromisoformat(f"{expected}+00:00")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "0 0 30 2 *",
            "bad day-of-month; days are 1 to 31, or L .* a chosen month must have the day",
        ),
        ("61 * * * *", "bad minute; minutes are 0 to 59"),
        ("0 24 * * *", "bad hour; hours are 0 to 23"),
        ("0 5-1 * * *", "bad hour; .* ranges must ascend"),
        ("0 0 * 13 *", "bad month; months are 1 to 12"),
        ("0 0 * * MON#6", "bad day-of-week; weekdays are 0 to 7"),
        ("60 0 0 * * *", "bad second; seconds are 0 to 59"),
        ("* * *", "must have 5 fields"),
        ("", "must have 5 fields"),
        ("0 0 31 4,6 *", "bad day-of-month"),
        ("@dayly", "must have 5 fields, .* or be one of @hourly, @daily"),
        (7, "must have 5 fields"),
    ],
)
def test_an_impossible_expression_is_refused(text: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        Cron(text)
    assert refused.value.field == "cron"


def test_an_unknown_zone_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'Europe/Madrid'"):
        Cron("* * * * *", "Europe/Madird")
    unlike: Any
    for unlike in ("Mars/Olympus", "+02:00", None):
        with pytest.raises(ConfigError, match="tz must be a time zone") as refused:
            Cron("* * * * *", unlike)
        assert str(refused.value).endswith("; zoneinfo.available_timezones() lists them all")


@given(st.integers(0, 2**51), st.integers(10**6, 10**13), st.integers(0, 2**51))
def test_an_interval_counts_from_its_start(start: int, interval: int, after: int) -> None:
    instant = Every(interval, start).following(after)
    assert instant is not None
    assert instant > after
    assert instant >= start
    assert (instant - start) % interval == 0
    assert instant - interval <= after or instant == start


def test_an_interval_is_a_second_at_least() -> None:
    assert Every.of("6h").interval_us == 6 * 3600 * 10**6
    with pytest.raises(ConfigError):
        Every.of("100ms")


def test_given_instants_come_in_order_and_end() -> None:
    once = Once((30, 10, 20))
    assert [once.following(after) for after in (0, 10, 25, 30)] == [10, 20, 30, None]
