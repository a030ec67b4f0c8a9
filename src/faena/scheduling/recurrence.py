"""Computes the instants of a schedule, in microseconds, without I/O.

A cron expression names wall-clock times of a time zone. A time that the clock skips, when it is set
forward, fires once, at the first instant after the gap. A time that the clock shows twice, when it
is set back, fires only the first time. The same holds for a single wall-clock time. An expression
for every hour (`*`) follows elapsed time instead: it fires whenever the clock shows a matching
minute, also in a repeated hour.

An interval counts from its start, or from the Unix epoch, so that every process computes the same
instants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from faena.errors import ConfigError, nearest, shown
from faena.values.duration import Duration, describe, to_us

if TYPE_CHECKING:  # slow to load, and for programs with schedules only
    from zoneinfo import ZoneInfo

_SECOND_US: Final = 1_000_000
_LEAST_INTERVAL_US: Final = _SECOND_US
_FIELDS: Final = (5, 6)
_EXAMPLE: Final = datetime(2024, 1, 1)  # noqa: DTZ001 - a wall time; any year with a 29 February
_RIGHT: Final = {
    "Bad second": "seconds are 0 to 59",
    "Bad minute": "minutes are 0 to 59",
    "Bad hour": "hours are 0 to 23",
    "Bad day-of-month": (
        "days are 1 to 31, or L for the last, and a chosen month must have the day"
    ),
    "Bad month": "months are 1 to 12, or JAN to DEC",
    "Bad day-of-week": "weekdays are 0 to 7, SUN to SAT, such as MON#2 or 5L",
}
"""The parser's message about an expression → what is valid."""


NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
"""Expressions with a name."""


class Recurrence(Protocol):
    """Computes the instants of a schedule."""

    def following(self, after: int) -> int | None:
        """The first instant later than `after`; None if there is none."""
        ...


def check_zone(value: Any) -> ZoneInfo:
    """A time zone of the IANA database by its name."""
    known = _zones()
    if not isinstance(value, str) or value not in known:
        close = nearest(value, known).partition("valid: ")[0].strip()
        raise ConfigError(
            f"tz must be a time zone such as Europe/Madrid, got {shown(value)}; "
            f"{close or 'zoneinfo.available_timezones() lists them all'}",
            field="tz",
            value=value,
        )
    return _zone(value)


def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - see above

    return ZoneInfo(name)


@cache
def _zones() -> frozenset[str]:
    """Cached: reading the database takes as long as a thousand expressions."""
    from zoneinfo import available_timezones  # noqa: PLC0415 - see above

    return frozenset(available_timezones())


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields, six with seconds first, or one of NAMED, in a zone."""

    text: str
    tz: str = "UTC"

    def __post_init__(self) -> None:
        from cronsim import CronSim, CronSimError  # noqa: PLC0415 - see above

        check_zone(self.tz)
        given: Any = self.text
        fields = self._six.split() if isinstance(given, str) else []
        if len(fields) not in _FIELDS:
            raise ConfigError(
                f"cron must have 5 fields, or 6 with seconds first, or be one of "
                f"{', '.join(NAMED)}, got {shown(self.text)}",
                field="cron",
                value=self.text,
            )
        try:
            next(CronSim(self._six, _EXAMPLE))
        except (CronSimError, StopIteration) as error:
            why = str(error) or "No day matches it"
            right = (
                f"; {_RIGHT[why]}; ranges must ascend and steps be 1 or more"
                if why in _RIGHT
                else ""
            )
            raise ConfigError(
                f"cron must be an expression that matches some time, got {shown(self.text)}: "
                f"{why[:1].lower()}{why[1:]}{right}",
                field="cron",
                value=self.text,
            ) from None

    @property
    def _six(self) -> str:
        fields = NAMED.get(self.text.strip(), self.text).split()
        return " ".join(fields if len(fields) == max(_FIELDS) else ["0", *fields])

    def following(self, after: int) -> int | None:
        """The first instant later than `after`."""
        from cronsim import CronSim  # noqa: PLC0415 - see above

        zone = _zone(self.tz)
        local = _at(after).astimezone(zone)
        if self._six.split()[2] == "*":
            return _first(map(_to_us, CronSim(self._six, local)), after)
        walls = CronSim(self._six, local.replace(tzinfo=None))
        return _first((instant_of(wall.replace(tzinfo=zone)) for wall in walls), after)


@dataclass(frozen=True, slots=True)
class Every:
    """A fixed interval, counted from an instant."""

    interval_us: int
    start_us: int = 0

    @classmethod
    def of(cls, interval: Duration, start_us: int = 0) -> Every:
        """An interval such as "6h"."""
        return cls(to_us("interval", interval, least_us=_LEAST_INTERVAL_US), start_us)

    def following(self, after: int) -> int | None:
        """The first instant later than `after`."""
        steps = max(0, (after - self.start_us) // self.interval_us + 1)
        return self.start_us + steps * self.interval_us

    def __str__(self) -> str:
        return f"every {describe(self.interval_us)}"


@dataclass(frozen=True, slots=True)
class Once:
    """A fixed list of instants."""

    instants: tuple[int, ...]

    def following(self, after: int) -> int | None:
        """The first instant later than `after`."""
        return min((one for one in self.instants if one > after), default=None)


def _first(instants: Iterable[int], after: int) -> int | None:
    return next((one for one in instants if one > after), None)


def _at(us: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=us)


def _to_us(moment: datetime) -> int:
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def instant_of(wall: datetime) -> int:
    """When the clock of its zone first shows a time; for a skipped time, the end of the gap."""
    instant = _to_us(wall)
    if _at(instant).astimezone(wall.tzinfo).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return instant
    return _end_of_gap(wall)


def _end_of_gap(hidden: datetime) -> int:
    """The instant at which the clock jumps over a time."""
    zone = hidden.tzinfo
    low, high = (_to_us(hidden.replace(fold=fold)) for fold in (1, 0))
    old = _at(low).astimezone(zone).utcoffset()
    low, high = low // _SECOND_US, -(-high // _SECOND_US)
    while high - low > 1:
        middle = (low + high) // 2
        is_before = _at(middle * _SECOND_US).astimezone(zone).utcoffset() == old
        low, high = (middle, high) if is_before else (low, middle)
    return high * _SECOND_US
