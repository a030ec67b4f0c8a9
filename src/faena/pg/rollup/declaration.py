"""What a program says about a roll-up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Final

from faena.errors import ConfigError, shown
from faena.pg.partition.declaration import check_every
from faena.pg.partition.interval import Every, Period, period_of
from faena.pg.partition.name import Name, check_column, read_name
from faena.scheduling.recurrence import check_zone
from faena.values.numbers import check_whole

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

AGAIN: Final[dict[Every, int]] = {"day": 2, "week": 1, "month": 1}
"""How many periods before the current one the daily job computes again."""
_LONGEST_EXPRESSION: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A table of aggregates, and what it is computed from."""

    name: Name
    """The table of the aggregates, `name` or `schema.name`."""
    of: Name
    """The table with the rows."""
    by: str
    """The column that decides the period: a date or a timestamp."""
    every: Every
    """The time of one period: day, week (from Monday) or month. Its column has this name."""
    group: tuple[str, ...]
    """Columns of the rows; there is one row of aggregates for each combination."""
    measures: tuple[tuple[str, str], ...]
    """Names of columns, and the aggregates that are in them."""
    zone: ZoneInfo
    """The time zone in which periods begin at midnight."""
    again: int
    """How many periods before the current one the daily job computes again."""

    @property
    def digest(self) -> str:
        """Equal for declarations that compute the same."""
        parts = (self.of, self.by, self.every, self.group, self.measures, self.zone.key)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def period(self, day: date) -> Period:
        """The one that contains a day."""
        return period_of(day, self.every)

    def bounds(self, period: Period) -> tuple[datetime, datetime]:
        """Its first instant, and the first one after it."""
        return self._midnight(period.start), self._midnight(period.end)

    def _midnight(self, day: date) -> datetime:
        """The first instant of a day: the first midnight of two, the end of a gap that has none."""
        return datetime.combine(day, time(), self.zone).astimezone(UTC)

    def today(self, at: datetime) -> date:
        """The day in this zone."""
        return at.astimezone(self.zone).date()

    def __str__(self) -> str:
        return str(self.name)


def declaration(
    name: Any,
    *,
    of: Any,
    by: Any,
    every: Any,
    group: Any,
    measures: Any,
    tz: Any,
    again: Any,
) -> Declaration:
    """Check what a program says."""
    interval = check_every(every)
    made = Declaration(
        name=read_name(name, "name"),
        of=read_name(of, "of"),
        by=check_column("by", by),
        every=interval,
        group=_group(group),
        measures=_measures(measures),
        zone=check_zone(tz),
        again=AGAIN[interval] if again is None else check_whole("again", again, least=0, most=1000),
    )
    if made.name == made.of:
        raise ConfigError(
            f"name must be that of another table than {made.of}", field="name", value=name
        )
    _refuse_twice([interval, *made.group, *(one for one, _ in made.measures)])
    return made


def _group(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ConfigError(
            f"group must be a list of columns, got {shown(value)}", field="group", value=value
        )
    return tuple(check_column("group", one) for one in value)


def _measures(value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping) or not value:
        raise ConfigError(
            f'measures must be aggregates by name, such as {{"jobs": "count(*)"}}, got '
            f"{shown(value)}",
            field="measures",
            value=value,
        )
    return tuple((check_column("measures", one), _expression(one, of)) for one, of in value.items())


def _expression(name: str, value: Any) -> str:
    if isinstance(value, str) and value.strip() and len(value) <= _LONGEST_EXPRESSION:
        return value.strip()
    raise ConfigError(
        f"measure {name} must be an aggregate such as sum(total), got {shown(value)}",
        field="measures",
        value=value,
    )


def _refuse_twice(columns: list[str]) -> None:
    for one in columns:
        if columns.count(one) > 1:
            raise ConfigError(
                f"the period, the group and the measures must have names of their own, got two "
                f"columns {one}",
                field="measures",
                value=one,
            )
