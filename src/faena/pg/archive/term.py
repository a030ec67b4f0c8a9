"""How long rows are kept: days, weeks, months, years, or for ever.

Months and years are those of the calendar: what is kept for "2y" on 2025-03-01 began on
2023-03-01. A term is compared with a law's at its shortest, so "3650d" is less than "10y".
"""

from __future__ import annotations

import calendar
import re
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from faena.errors import ConfigError, shown

_TEXT: Final = re.compile(r"([0-9]{1,4}) ?(d|days?|w|weeks?|mo|months?|y|years?)")
_DAYS: Final = {"d": 1, "w": 7}
_MONTHS: Final = {"m": 1, "y": 12}
_LONGEST_DAYS: Final = 366 * 1000
FOREVER: Final = "forever"
"""Rows that are never deleted."""

Given: TypeAlias = str | timedelta
"""A term as programs write it."""


class Term(NamedTuple):
    """A length of time on the calendar."""

    months: int = 0
    days: int = 0

    def before(self, at: datetime) -> datetime:
        """The instant that is so long before another; never later than exact arithmetic has it."""
        years, month = divmod(at.year * 12 + at.month - 1 - self.months, 12)
        last = calendar.monthrange(max(years, 1), month + 1)[1]
        moved = at.replace(year=max(years, 1), month=month + 1, day=min(at.day, last))
        return moved - timedelta(days=min(self.days, (moved - _floor(moved)).days))

    def after(self, at: datetime) -> datetime:
        """The instant that is so long after another: until then a law protects it."""
        years, month = divmod(at.year * 12 + at.month - 1 + self.months, 12)
        if years > 9000:
            return datetime.max.replace(tzinfo=at.tzinfo)
        last = calendar.monthrange(years, month + 1)[1]
        return at.replace(year=years, month=month + 1, day=min(at.day, last)) + timedelta(self.days)

    @property
    def longest_days(self) -> int:
        """Where there is no calendar: a year has 366 days and a month 31."""
        years, months = divmod(self.months, 12)
        return years * 366 + months * 31 + self.days

    def is_shorter(self, than: Term) -> bool:
        """Whether it may be shorter in some year; equal terms are not."""
        if self.months >= than.months and self.days >= than.days:
            return False
        return self._days()[0] < than._days()[1]

    def _days(self) -> tuple[int, int]:
        """At the least and at the most, whenever it ends."""
        ends = [datetime(year, month, 1) for year in range(1999, 2027) for month in range(1, 13)]  # noqa: DTZ001 - only differences count
        lengths = [(end - Term(self.months).before(end)).days + self.days for end in ends]
        return min(lengths), max(lengths)

    def __str__(self) -> str:
        if self.months:
            return f"{self.months // 12}y" if self.months % 12 == 0 else f"{self.months}mo"
        return f"{self.days}d"


def _floor(at: datetime) -> datetime:
    return datetime(1, 1, 1, tzinfo=at.tzinfo)


def read_term(what: str, value: Any) -> Term | Literal["forever"]:
    """A term as a program writes it: "90d", "26w", "6mo", "2y", a timedelta, or FOREVER."""
    if value == FOREVER:
        return FOREVER
    if isinstance(value, timedelta):
        found = Term(days=value.days)
        is_whole = timedelta(days=value.days) == value
    else:
        found, is_whole = parse_term(value), True
    if found is None or not is_whole or not 0 < found.months * 31 + found.days < _LONGEST_DAYS:
        raise ConfigError(
            f"{what} must be whole days, weeks, months or years such as '90d', '6mo' or '2y', or "
            f"FOREVER, got {shown(value)}",
            field=what,
            value=value,
        )
    return found


def parse_term(value: Any) -> Term | None:
    """A term that is written as text; None for anything else."""
    match = _TEXT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    number, unit = int(match[1]), match[2][0]
    return Term(number * _MONTHS.get(unit, 0), number * _DAYS.get(unit, 0))


def is_shorter(term: Term | str, than: Term | str | None) -> bool:
    """The same for terms that may be FOREVER; nothing is shorter than none."""
    if than is None or term == FOREVER:
        return False
    if than == FOREVER:
        return True
    return isinstance(term, Term) and isinstance(than, Term) and term.is_shorter(than)
