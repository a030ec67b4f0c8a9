"""The options of a schedule: when it fires, within which bounds, and which job.

`read_terms` checks the options of a program or an operator, and turns them into the plain values
that are stored. `Terms` has all of them, as declared in code and edited since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec

from faena.errors import ConfigError, shown, unknown_name
from faena.options.fields import check_choice
from faena.options.priority import priority_of
from faena.scheduling.recurrence import Cron, Every, Once, Recurrence, check_zone, instant_of
from faena.values.duration import describe, to_us
from faena.values.names import check_label
from faena.values.numbers import check_whole

TIMINGS: Final = ("cron", "every", "at")
"""The kinds of timing; a schedule has exactly one."""

OVERLAPS: Final = ("allow", "skip", "queue")
_MISSED: Final = ("skip", "latest", "all")
_ALL: Final = re.compile(r"all\(([0-9]{1,4})\)")
MOST_MISSED: Final = 100
"""How many instants "all" fires after an outage; also the most for "all(n)"."""

_SECOND_US: Final = 1_000_000
_MANY: Final = 1_000_000_000
_MOST_INSTANTS: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """All options of a schedule. Instants and durations are in microseconds."""

    task: str
    when: dict[str, Any]
    """{"cron": text}, {"every": length} or {"at": [instant, …]}."""
    version: int = 1
    """The version of the payload."""
    payload: str = "null"
    """The payload as JSON."""
    tz: str = "UTC"
    jitter: int = 0
    start: int | None = None
    """The earliest instant; an interval counts from it."""
    end: int | None = None
    """The latest instant."""
    count: int | None = None
    """The number of instants to fire; None: no bound."""
    overlap: str = "allow"
    missed: str = "latest"
    tenant: str | None = None
    key: str | None = None
    priority: int = 10

    def __post_init__(self) -> None:
        self._recurrence()
        if self.start is not None and self.end is not None and self.end < self.start:
            raise ConfigError(
                f"end must not be before start {iso(self.start)}, got {iso(self.end)}",
                field="end",
                value=self.end,
            )
        interval = self.when.get("every")
        if interval is not None and self.jitter > interval:
            raise ConfigError(
                f"jitter must be at most the interval of {describe(interval)}, "
                f"got {describe(self.jitter)}",
                field="jitter",
                value=describe(self.jitter),
            )

    def following(self, after: int) -> int | None:
        """The first instant later than `after` and within the bounds; None if there is none."""
        if self.start is not None:
            after = max(after, self.start - 1)
        instant = self._recurrence().following(after)
        is_over = instant is None or (self.end is not None and instant > self.end)
        return None if is_over else instant

    @property
    def most_missed(self) -> int:
        """How many missed instants are fired."""
        found = _ALL.fullmatch(self.missed)
        if found is not None:
            return int(found[1])
        return {"skip": 0, "latest": 1}[self.missed]

    @property
    def timing(self) -> tuple[object, ...]:
        """The options that determine the instants; a due instant is kept while they are equal."""
        return self.when, self.tz, self.start, self.end, self.count

    def describe(self) -> str:
        """When it fires, for people."""
        ((kind, value),) = self.when.items()
        if kind == "cron":
            return f"{value} {self.tz}"
        if kind == "every":
            return f"every {describe(value)}"
        return f"at {', '.join(map(iso, value))}"

    def describe_term(self, name: str) -> str:
        """One option of the timing, for people; empty for other options."""
        if name in TIMINGS:
            return self.describe()
        if name not in {"tz", "start", "end", "count"}:
            return ""
        value = getattr(self, name)
        return f"{name} {iso(value) if name in {'start', 'end'} and value else value}"

    def _recurrence(self) -> Recurrence:
        ((kind, value),) = self.when.items()
        fixed = tuple(value) if isinstance(value, list) else value
        return _recurrence(kind, fixed, self.tz, self.start or 0)


@lru_cache(maxsize=1_000)
def _recurrence(kind: str, value: Any, tz: str, start_us: int) -> Recurrence:
    check_zone(tz)
    if kind == "cron":
        return Cron(value, tz)
    return Every(value, start_us) if kind == "every" else Once(value)


def read_terms(given: Mapping[str, Any], tz: str = "UTC") -> dict[str, Any]:
    """Check options and return their plain values; `tz` is for times without a zone."""
    for name in given:
        if name not in NAMES:
            raise unknown_name("schedule option", name, NAMES, value=given[name])
    zone = check_zone(given.get("tz", tz)).key
    terms: dict[str, Any] = {}
    for name, value in given.items():
        if name in TIMINGS:
            continue
        terms[name] = _READERS[name](value, zone)
    when = _read_timing(given, zone)
    return terms | ({"when": when} if when else {})


def _read_timing(given: Mapping[str, Any], zone: str) -> dict[str, Any] | None:
    named = [name for name in TIMINGS if given.get(name) is not None]
    if len(named) > 1:
        raise ConfigError(
            f"a schedule must have one of cron, every and at, got {' and '.join(named)}",
            field=named[1],
            value=given[named[1]],
        )
    if not named:
        _refuse_none(given)
        return None
    (name,) = named
    return {name: _TIMING_READERS[name](given[name], zone)}


def _refuse_none(given: Mapping[str, Any]) -> None:
    for name in TIMINGS:
        if name in given:
            raise ConfigError(
                f"{name} must be set, got None; a schedule has one of cron, every and at",
                field=name,
            )


def check_timing(terms: Mapping[str, Any]) -> None:
    """Refuse options without a timing."""
    if "when" not in terms:
        raise ConfigError("a schedule must have one of cron, every and at, got none", field="cron")


def read_instant(what: str, value: Any, zone: str) -> int:
    """Microseconds of a datetime, or of a string such as 2026-12-24T18:00, by default in `zone`."""
    moment = value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
    if not isinstance(moment, datetime):
        raise ConfigError(
            f"{what} must be a datetime or a string such as 2026-12-24T18:00, got {shown(value)}",
            field=what,
            value=value,
        )
    aware = moment if moment.tzinfo else moment.replace(tzinfo=check_zone(zone))
    try:
        us = instant_of(aware)
    except (OverflowError, ValueError):  # ValueError from a user's tzinfo
        us = -1
    if us < 0:
        raise ConfigError(
            f"{what} must be after 1970 and before 10000, got {shown(value)}",
            field=what,
            value=value,
        )
    return us


def iso(us: int) -> str:
    """An instant for people: 2026-12-24T18:00:00Z."""
    return (_EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")


def _cron(value: Any, zone: str) -> str:
    return Cron(value, zone).text


def _every(value: Any, _: str) -> int:
    return to_us("every", value, least_us=_SECOND_US)


def _at(value: Any, zone: str) -> list[int]:
    is_many = isinstance(value, Iterable) and not isinstance(value, str)
    given = list(value) if is_many else [value]
    check_whole("number of instants in at", len(given), least=1, most=_MOST_INSTANTS)
    return sorted({read_instant("at", one, zone) for one in given})


def _missed(value: Any, _: str) -> str:
    found = _ALL.fullmatch(value) if isinstance(value, str) else None
    if found is not None:
        number = check_whole("missed", int(found[1]), least=1, most=MOST_MISSED)
        return f"all({number})"
    if value not in _MISSED:
        raise ConfigError(
            f"missed must be 'skip', 'latest', 'all' or such as 'all(10)', got {shown(value)}",
            field="missed",
            value=value,
        )
    return f"all({MOST_MISSED})" if value == "all" else str(value)


def _overlap(value: Any, _: str) -> str:
    check_choice("overlap", value, OVERLAPS)
    return str(value)


def _optional(read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, zone: None if value is None else read(value, zone)


_TIMING_READERS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "cron": _cron,
    "every": _every,
    "at": _at,
}
_READERS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "tz": lambda value, _: check_zone(value).key,
    "jitter": lambda value, _: 0 if value is None else to_us("jitter", value),
    "start": _optional(lambda value, zone: read_instant("start", value, zone)),
    "end": _optional(lambda value, zone: read_instant("end", value, zone)),
    "count": _optional(lambda value, _: check_whole("count", value, least=1, most=_MANY)),
    "overlap": _overlap,
    "missed": _missed,
    "tenant": _optional(lambda value, _: check_label("tenant", value)),
    "key": _optional(lambda value, _: check_label("key", value)),
    "priority": lambda value, _: priority_of(value),
}
NAMES: Final = (*TIMINGS, *_READERS)
"""The options of a schedule besides its payload."""
