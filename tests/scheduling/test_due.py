"""What is to be done about a schedule that is due, against a plain enumeration of its instants."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faena.errors import ConfigError, PayloadError
from faena.scheduling.catch_up import COUNTED, GRACE_US, TOLD
from faena.scheduling.due import (
    Edit,
    Intent,
    Mark,
    Record,
    decide,
    jitter_us,
    job_id,
    unpack,
)
from faena.scheduling.options import Terms, read_terms

T0 = 1_700_000_040_000_000
"""The beginning of a minute."""
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def record(*, fired: int = 0, **terms: Any) -> Record:
    base = {"task": "t", **read_terms({"every": "10m"} | terms)}
    return Record(base=base, since=Mark("code", T0), fired=fired)


def instants(terms: Terms, first: int, now: int) -> list[int]:
    found: list[int] = []
    instant: int | None = first
    while instant is not None and instant <= now:
        found.append(instant)
        instant = terms.following(instant)
    return found


def fired(kept: Record, due: int | None, now: int) -> tuple[list[int], int, Record, int | None]:
    """All that is fired until nothing is due, and how many were told to be missed."""
    found: list[int] = []
    missed = 0
    while due is not None and due <= now:
        verdict = decide(kept, due, now)
        found += [] if verdict.fire is None else [verdict.fire]
        missed += verdict.number
        assert verdict.due is None or verdict.due > due
        kept, due = verdict.record, verdict.due
    return found, missed, kept, due


TIMINGS = st.sampled_from(
    [
        {"every": "1s"},
        {"every": "30s"},
        {"every": "10m"},
        {"every": "6h"},
        {"every": "7h13m"},
        {"cron": "* * * * *"},
        {"cron": "*/20 * * * * *"},
        {"cron": "30 2 * * *", "tz": "Europe/Madrid"},
        {"cron": "15 1-3 * * *", "tz": "America/New_York"},
        {"cron": "0 9 * * MON-FRI", "tz": "Asia/Kathmandu"},
    ]
)
LATENESS = st.one_of(
    st.integers(0, 3 * MINUTE), st.integers(0, 5 * HOUR), st.integers(0, 40 * 24 * HOUR)
)


@settings(deadline=None)
@given(TIMINGS, st.sampled_from(["skip", "latest", "all", "all(3)"]), LATENESS)
def test_policies_fire_what_they_say(timing: dict[str, str], missed: str, late: int) -> None:
    kept = record(**({"every": None} | timing), missed=missed)
    due = kept.terms.following(T0)
    assert due is not None
    second = kept.terms.following(due) or 0
    now = due + late % (3000 * (second - due))  # as many as a test can enumerate
    all_due = instants(kept.terms, due, now)
    found, told, after, next_due = fired(kept, due, now)
    most = {"skip": 0, "latest": 1, "all": 100, "all(3)": 3}[missed]
    if most:
        assert found == all_due[-most:]
    else:
        assert found == ([all_due[-1]] if now - all_due[-1] <= GRACE_US else [])
    is_last_missed = now - all_due[-1] > GRACE_US
    expected = len(all_due) - 1 + is_last_missed
    dropped = len(all_due) - max(most, 1)
    assert told == (expected if dropped <= COUNTED else told)
    assert next_due == kept.terms.following(all_due[-1])
    assert after.fired == len(found)


@settings(deadline=None)
@given(TIMINGS, st.lists(st.integers(0, 2 * HOUR), min_size=1, max_size=30))
def test_however_often_one_looks_instants_grow_and_none_comes_twice(
    timing: dict[str, str], steps: list[int]
) -> None:
    kept = record(**({"every": None} | timing), missed="all")
    due, now, found = kept.terms.following(T0), T0, []
    for step in steps:
        now += step
        more, _, kept, due = fired(kept, due, now)
        found += more
    assert all(before < after for before, after in pairwise(found))
    assert due is not None
    assert due > now


def test_an_outage_of_a_year_is_no_more_work_than_one_of_a_day() -> None:
    kept = record(every="1s", missed="all(5)")
    due = T0 + SECOND
    now = due + 365 * 24 * HOUR
    verdict = decide(kept, due, now)
    assert verdict.fire == now - 4 * SECOND
    assert (len(verdict.missed), verdict.number) == (TOLD, COUNTED + 1)
    assert verdict.missed[0] == due


def test_an_instant_that_the_next_has_overtaken_is_missed() -> None:
    kept = record(every="10s")
    due = T0 + 10 * SECOND
    assert decide(kept, due, due + 9 * SECOND).number == 0
    verdict = decide(kept, due, due + 10 * SECOND)
    assert (verdict.fire, verdict.missed) == (due + 10 * SECOND, (due,))
    each = record(every="10s", missed="all")
    assert decide(each, due, due + 10 * SECOND - 1).number == 0
    verdict = decide(each, due, due + 10 * SECOND)
    assert (verdict.fire, verdict.missed) == (due, (due,))


def test_an_instant_of_a_minute_ago_is_fired_and_told() -> None:
    kept = record(every="1h")
    due = kept.terms.following(T0) or 0
    assert decide(kept, due, due + MINUTE).number == 0
    verdict = decide(kept, due, due + MINUTE + 1)
    assert (verdict.fire, verdict.missed, verdict.number) == (due, (due,), 1)


def test_a_schedule_that_skips_what_it_missed_fires_an_instant_of_a_minute_ago() -> None:
    kept = record(every="1h", missed="skip")
    due = kept.terms.following(T0) or 0
    assert decide(kept, due, due + MINUTE).fire == due
    assert decide(kept, due, due + MINUTE + 1).fire is None


# -- bounds ---------------------------------------------------------------------------------------


def test_a_schedule_is_over_when_it_has_fired_so_often() -> None:
    kept = record(every="10m", count=2, missed="all")
    due = kept.first_due(T0)
    found, _, after, next_due = fired(kept, due, T0 + 5 * HOUR)
    assert len(found) == 2
    assert next_due is None
    assert after.first_due(T0 + 5 * HOUR) is None


def test_no_instant_comes_before_its_start_or_after_its_end() -> None:
    kept = record(
        every=None, cron="0 * * * *", start="2023-11-15T03:00", end="2023-11-15T05:00", missed="all"
    )
    due = kept.first_due(T0)
    found, *_, next_due = fired(kept, due, T0 + 30 * 24 * HOUR)
    assert [job_id("s", one) for one in found] == [f"s@20231115T0{hour}0000Z" for hour in (3, 4, 5)]
    assert next_due is None


def test_an_interval_counts_from_its_start() -> None:
    kept = record(every="7h", start="2023-11-15T03:30:00Z")
    assert job_id("s", kept.first_due(T0) or 0) == "s@20231115T033000Z"


def test_a_paused_schedule_is_never_due() -> None:
    kept = msgspec.structs.replace(record(), paused=Mark("ana", T0))
    assert kept.first_due(T0) is None


def test_it_is_due_after_what_was_fired_last_whatever_the_clock_says() -> None:
    kept = msgspec.structs.replace(record(every="10m"), last=T0 + HOUR)
    due = kept.first_due(T0)
    assert due is not None
    assert due > T0 + HOUR


# -- code and edits -------------------------------------------------------------------------------


def test_what_was_edited_counts_and_code_decides_the_rest() -> None:
    kept = record(every="10m", tz="Europe/Madrid", tenant="acme")
    kept = msgspec.structs.replace(kept, edits={"tenant": Edit("other", "ana", T0)})
    changed = msgspec.structs.replace(kept, base={**kept.base, "tenant": "code", "jitter": 5})
    assert (changed.terms.tenant, changed.terms.jitter) == ("other", 5)


def test_a_record_comes_back_as_it_was() -> None:
    kept = msgspec.structs.replace(
        record(),
        edits={"count": Edit(None, "ana", T0), "payload": Edit('{"n":9007199254740993}', "b", 1)},
        paused=Mark("ana", T0),
        intent=Intent(T0, "q/1", 4),
        last=T0,
    )
    assert unpack(kept.pack()) == kept
    assert unpack(kept.pack()).terms.payload == '{"n":9007199254740993}'


def test_a_record_that_cannot_be_read_is_said_to_be_so() -> None:
    with pytest.raises(PayloadError, match="record of a schedule must be readable"):
        unpack(b'{"base":7}')


def test_edits_that_do_not_go_together_are_refused() -> None:
    kept = record(every=None, cron="0 2 * * *", start="2024-01-02")
    kept = msgspec.structs.replace(kept, edits={"end": Edit(T0, "ana", T0)})
    with pytest.raises(ConfigError, match="end must not be before start"):
        _ = kept.terms


# -- jobs -----------------------------------------------------------------------------------------


@given(st.integers(0, 2**52), st.integers(1, HOUR))
def test_jitter_is_the_same_everywhere_and_within_its_bound(instant: int, most: int) -> None:
    assert 0 <= jitter_us("s", instant, most) < most
    assert jitter_us("s", instant, most) == jitter_us("s", instant, most)
    assert jitter_us("s", instant, 0) == 0


def test_jitter_spreads() -> None:
    waits = {jitter_us("s", T0 + number * MINUTE, MINUTE) // (6 * SECOND) for number in range(200)}
    assert waits == set(range(10))


@given(st.sets(st.integers(0, 2**52), min_size=2, max_size=2))
def test_instants_have_ids_of_their_own(two: set[int]) -> None:
    assert len({job_id("s", one) for one in two}) == 2


def test_an_id_can_be_read() -> None:
    assert job_id("nightly", T0) == "nightly@20231114T221400Z"
    assert job_id("nightly", T0 + 5) == "nightly@20231114T221400.000005Z"
