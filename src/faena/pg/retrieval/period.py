"""Which time a request is about: from and to as instants in UTC, and which rows are between them.

A day means all of it: `to` the 31st includes the 31st. An instant ends right before itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from faena.errors import ArchiveUnreadable, ArgumentError, shown


class Period(NamedTuple):
    """A range of instants."""

    start: datetime
    end: datetime
    """The first one after it."""


def read_period(start: Any, end: Any) -> Period:
    """From and to, as dates, instants with a time zone, or texts of one of them."""
    first, last = _read("from", start), _read("to", end)
    after = _midnight(last) + timedelta(days=1) if _is_day(last) else _instant("to", last)
    begin = _midnight(first) if _is_day(first) else _instant("from", first)
    if begin >= after:
        raise ArgumentError(
            f"from must not be after to, got {begin.date()} and {last}", field="from", value=start
        )
    return Period(begin, after)


def _read(what: str, value: Any) -> date | datetime:
    if isinstance(value, date):
        found: date | datetime | None = value
    else:
        found = _parsed(value) if isinstance(value, str) else None
    if found is None or not 1 < found.year < 9999:
        raise ArgumentError(
            f"{what} must be a day of the years 2 to 9998 such as 2023-01-31, or an instant with a "
            f"time zone such as 2023-01-31T09:00Z, got {shown(value)}",
            field=what,
            value=value,
        )
    return found


def _parsed(text: str) -> date | datetime | None:
    try:
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        return None


def _is_day(value: date | datetime) -> bool:
    return not isinstance(value, datetime)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _instant(what: str, value: date) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ArgumentError(
            f"{what} must have a time zone, such as 2023-01-31T09:00Z, got {shown(value)}",
            field=what,
            value=value,
        )
    return value.astimezone(UTC)


def within(period: Period, by: str, key: str) -> Callable[[bytes], bool]:
    """Whether the row of a line is in the period; `by` is the column of its time.

    Times are compared as texts: PostgreSQL writes them in UTC, from the year to the microsecond,
    without zeros at the end.
    """
    decoder = msgspec.json.Decoder(dict[str, Any])
    low, high = _written(period.start), _written(period.end)

    def is_within(line: bytes) -> bool:
        try:
            text = decoder.decode(line)[by]
            return low <= _comparable(text) < high
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArchiveUnreadable(
                f"archive {key} must have a time {by} in each line", op="retrieve"
            ) from error

    return is_within


def _written(at: datetime) -> str:
    text = at.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if at.microsecond else text


def _comparable(text: str) -> str:
    """A date as its first instant; years before the first and after 9999 at the ends."""
    if text.endswith("BC"):
        return ""
    if text.index("-") > 4:
        return "~"
    return f"{text} 00:00:00" if len(text) == 10 else text.removesuffix("+00")
