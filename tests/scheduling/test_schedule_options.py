"""What a schedule may say, and how what it may not is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from faena.errors import ConfigError
from faena.scheduling.options import Terms, check_timing, iso, read_instant, read_terms

WHEN = {"every": "1h"}


def terms(**given: Any) -> Terms:
    return msgspec.convert({"task": "t", **read_terms(given)}, Terms)


def test_every_option_becomes_a_plain_value() -> None:
    given = {
        "cron": "0 2 * * *",
        "tz": "Europe/Madrid",
        "jitter": "30s",
        "start": "2026-01-01",
        "end": datetime(2026, 12, 31, tzinfo=UTC),
        "count": 3,
        "overlap": "skip",
        "missed": "all",
        "tenant": "acme",
        "key": "k",
        "priority": "high",
    }
    assert read_terms(given) == {
        "when": {"cron": "0 2 * * *"},
        "tz": "Europe/Madrid",
        "jitter": 30_000_000,
        "start": read_instant("start", "2025-12-31T23:00Z", "UTC"),
        "end": read_instant("end", "2026-12-31T00:00Z", "UTC"),
        "count": 3,
        "overlap": "skip",
        "missed": "all(100)",
        "tenant": "acme",
        "key": "k",
        "priority": 5,
    }


def test_only_what_is_given_is_said() -> None:
    assert read_terms({"count": None}) == {"count": None}
    assert read_terms({}) == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cron": "0 0 30 2 *"}, "cron must be an expression that matches some time"),
        ({"cron": "hourly"}, "cron must have 5 fields"),
        ({"cron": 5}, "cron must have 5 fields"),
        ({**WHEN, "tz": "Europe/Madird"}, "did you mean 'Europe/Madrid'"),
        ({**WHEN, "tz": None}, "tz must be a time zone"),
        ({"every": "500ms"}, "every must be a duration from 1s"),
        ({"every": 60}, "every must be a timedelta, or"),
        ({"every": "1h", "cron": "* * * * *"}, "must have one of cron, every and at"),
        ({"at": "tomorrow"}, "at must be a datetime or a string such as"),
        ({"at": []}, "number of instants in at must be"),
        ({"at": 5}, "at must be a datetime"),
        ({"at": "1950-01-01"}, "at must be after 1970"),
        ({"at": "9999-12-31T23:00", "tz": "America/Lima"}, "at must be after 1970 and before"),
        ({"cron": None}, "cron must be set, got None"),
        ({**WHEN, "jitter": "-5s"}, "jitter must be"),
        ({**WHEN, "start": "soon"}, "start must be a datetime"),
        ({**WHEN, "count": 0}, "count must be a whole number from 1"),
        ({**WHEN, "overlap": "maybe"}, "overlap must be 'allow' or 'skip' or 'queue'"),
        ({**WHEN, "missed": "some"}, "missed must be 'skip', 'latest', 'all'"),
        ({**WHEN, "missed": "all(0)"}, "missed must be a whole number from 1 to 100"),
        ({**WHEN, "missed": "all(101)"}, "missed must be a whole number from 1 to 100"),
        ({**WHEN, "missed": 5}, "missed must be 'skip'"),
        ({**WHEN, "tenant": "a b"}, "tenant must be 1 to 128 printable"),
        ({**WHEN, "priority": "urgent"}, "priority"),
        ({**WHEN, "crom": "x"}, "did you mean 'cron'"),
    ],
)
def test_bad_options_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(").replace(")", r"\)")):
        read_terms(given)


def test_a_schedule_without_a_timing_is_refused() -> None:
    with pytest.raises(ConfigError, match="must have one of cron, every and at, got none"):
        check_timing(read_terms({"tz": "UTC"}))


def test_an_end_before_the_start_is_refused() -> None:
    with pytest.raises(ConfigError, match="end must not be before start"):
        terms(every="1h", start="2026-02-01", end="2026-01-01")


def test_times_without_a_zone_are_those_of_the_schedule() -> None:
    in_madrid = read_terms({"at": "2026-07-01T12:00", "tz": "Europe/Madrid"})
    assert in_madrid["when"] == {"at": [read_instant("at", "2026-07-01T10:00Z", "UTC")]}
    fixed = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=3)))
    assert iso(read_instant("at", fixed, "Europe/Madrid")) == "2026-07-01T09:00:00Z"


@pytest.mark.parametrize(
    ("wall", "instant"),
    [
        ("2026-03-29T01:59", "2026-03-29T00:59:00Z"),
        ("2026-03-29T02:30", "2026-03-29T01:00:00Z"),  # the clock skips it: at the end of the gap
        ("2026-03-29T03:30", "2026-03-29T01:30:00Z"),
        ("2026-10-25T02:30", "2026-10-25T00:30:00Z"),  # the clock shows it twice: the first time
    ],
)
def test_a_time_that_the_clock_skips_or_repeats_is_met_as_by_cron(wall: str, instant: str) -> None:
    zone, day = "Europe/Madrid", datetime.fromisoformat(wall)
    for what in ("at", "start", "end"):
        assert iso(read_instant(what, wall, zone)) == instant
    for fold in (0, 1) if day.month == 3 else (0,):
        aware = day.replace(tzinfo=ZoneInfo(zone), fold=fold)
        assert iso(read_instant("at", aware, "UTC")) == instant
    cron = terms(cron=f"{day.minute} {day.hour} {day.day} {day.month} *", tz=zone)
    assert iso(cron.following(read_instant("at", "2026-01-01", "UTC")) or 0) == instant


def test_instants_are_sorted_and_each_is_there_once() -> None:
    read = terms(at=["2026-01-02", datetime(2026, 1, 1, tzinfo=UTC), "2026-01-02T00:00Z"])
    assert read.describe() == "at 2026-01-01T00:00:00Z, 2026-01-02T00:00:00Z"
    first = read.following(0)
    assert first is not None
    assert read.following(first) == read.when["at"][1]
    assert read.following(read.when["at"][1]) is None


def test_when_is_told_to_people() -> None:
    assert terms(cron="0 2 * * *", tz="Europe/Madrid").describe() == "0 2 * * * Europe/Madrid"
    assert terms(every="1h30m").describe() == "every 1h 30m"
