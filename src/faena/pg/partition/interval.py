"""The periods of partitions: months, ISO weeks that begin on Monday, and days, all in UTC.

Pure arithmetic of dates. A period contains its start and not its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from faena.errors import ArgumentError, shown

Every: TypeAlias = Literal["month", "week", "day"]

AHEAD: Final[dict[Every, int]] = {"month": 3, "week": 12, "day": 90}
"""How many periods after the current one have partitions, by default."""
MOST_PARTITIONS: Final = 3000
"""Of one table: each plan of a query that does not name the time, and each change, visits all."""

_SUFFIXES: Final[dict[Every, re.Pattern[str]]] = {
    "month": re.compile(r"_y(\d{4})m(\d{2})\Z"),
    "week": re.compile(r"_(\d{4})w(\d{2})\Z"),
    "day": re.compile(r"_(\d{4})(\d{2})(\d{2})\Z"),
}


class Period(NamedTuple):
    """The time of one partition."""

    start: date
    end: date

    @property
    def starts_at(self) -> datetime:
        """Midnight, in UTC."""
        return datetime.combine(self.start, time())

    @property
    def ends_at(self) -> datetime:
        """Midnight, in UTC; the first instant that is outside."""
        return datetime.combine(self.end, time())

    def __str__(self) -> str:
        return f"{self.start} to {self.end}"


def utc(at: datetime) -> datetime:
    """An instant in UTC, without its zone, as bounds are; one without a zone is in UTC already."""
    return at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)


def check_day(field: str, value: Any) -> date:
    """A day; an instant is none, because its day depends on a time zone."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise ArgumentError(f"{field} must be a date, got {shown(value)}", field=field, value=value)


def check_instant(field: str, at: Any) -> None:
    """Whether it is None or an instant; one without a zone would mean another time elsewhere."""
    if at is not None and not (isinstance(at, datetime) and at.tzinfo is not None):
        raise ArgumentError(
            f"{field} must be a datetime with a time zone, got {shown(at)}", field=field, value=at
        )


def check_instants(since: Any, until: Any) -> None:
    """Whether two instants, each of which may be None, can have something in between."""
    for field, at in (("since", since), ("until", until)):
        check_instant(field, at)
    if since is not None and until is not None and since >= until:
        raise ArgumentError(
            f"since must be before until, got {since.isoformat()} and {until.isoformat()}",
            field="since",
            value=since,
        )


def period_of(day: date, every: Every) -> Period:
    """The period that contains a day."""
    try:
        match every:
            case "day":
                return Period(day, day + timedelta(days=1))
            case "week":
                monday = day - timedelta(days=day.weekday())
                return Period(monday, monday + timedelta(days=7))
            case "month":
                first = day.replace(day=1)
                return Period(first, (first + timedelta(days=31)).replace(day=1))
    except OverflowError:
        raise ArgumentError(
            f"a period must lie between the years 1 and 9999, got the {every} of {day}",
            field="at",
            value=day,
        ) from None


def periods(first: date, last: date, every: Every) -> Iterator[Period]:
    """All periods from the one that contains `first` to the one that contains `last`."""
    period = period_of(first, every)
    while period.start <= last:
        yield period
        period = period_of(period.end, every)


def ahead_of(day: date, every: Every, ahead: int) -> list[Period]:
    """The period of a day and `ahead` more."""
    found = [period_of(day, every)]
    for _ in range(ahead):
        found.append(period_of(found[-1].end, every))
    return found


def suffix(period: Period, every: Every) -> str:
    """How the name of a partition ends: _y2025m01, _2025w01 or _20250101."""
    start = period.start
    match every:
        case "month":
            return f"_y{start.year:04d}m{start.month:02d}"
        case "week":
            week = start.isocalendar()
            return f"_{week.year:04d}w{week.week:02d}"
        case "day":
            return f"_{start.year:04d}{start.month:02d}{start.day:02d}"


def period_named(name: str, every: Every) -> Period | None:
    """The period that the end of a name tells; None if it tells none."""
    found = _SUFFIXES[every].search(name)
    if found is None:
        return None
    numbers = [int(one) for one in found.groups()]
    try:
        match every:
            case "month":
                return period_of(date(numbers[0], numbers[1], 1), every)
            case "week":
                return period_of(date.fromisocalendar(numbers[0], numbers[1], 1), every)
            case "day":
                return period_of(date(*numbers), every)
    except ValueError:
        return None
