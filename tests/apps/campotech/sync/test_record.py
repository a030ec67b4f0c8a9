"""Changes of one record from several devices become one state."""

from __future__ import annotations

from itertools import permutations

import pytest
from apps.campotech.sync.clock import Relation, compare, merge
from apps.campotech.sync.record import Change, Record, apply
from hypothesis import given
from hypothesis import strategies as st

CLOCKS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3)
OPPOSITE = {
    Relation.SAME: Relation.SAME,
    Relation.AFTER: Relation.BEFORE,
    Relation.BEFORE: Relation.AFTER,
    Relation.CONCURRENT: Relation.CONCURRENT,
}


@given(CLOCKS, CLOCKS)
def test_two_clocks_stand_to_each_other_in_one_way(
    one: dict[str, int], other: dict[str, int]
) -> None:
    assert compare(one, other) is OPPOSITE[compare(other, one)]
    both = merge(one, other)
    assert both == merge(other, one)
    assert compare(both, one) in (Relation.SAME, Relation.AFTER)
    if compare(one, other) is Relation.AFTER:
        assert compare(both, one) is Relation.SAME


def test_a_device_that_is_missing_has_made_no_change() -> None:
    assert compare({"a": 0}, {}) is Relation.SAME
    assert compare({"a": 1}, {"b": 1}) is Relation.CONCURRENT
    assert compare({"a": 1, "b": 1}, {"b": 1}) is Relation.AFTER


@st.composite
def concurrent_changes(draw: st.DrawFn) -> list[Change]:
    """One change of each of some devices that have not heard of each other."""
    devices = draw(st.lists(st.sampled_from("abcd"), min_size=2, max_size=4, unique=True))
    return [
        Change(
            device,
            draw(st.integers(1, 3)),
            draw(
                st.dictionaries(
                    st.sampled_from(["description", "address"]), st.integers(0, 2), min_size=1
                )
            ),
            {device: 1},
        )
        for device in devices
    ]


@given(concurrent_changes())
def test_concurrent_changes_end_in_one_state_whatever_their_order(changes: list[Change]) -> None:
    ends: list[Record] = []
    for order in permutations(changes):
        record = Record()
        for change in order:
            record = apply(record, change).record
        ends.append(record)
    assert all(one == ends[0] for one in ends)


STATUSES = ["draft", "pending", "scheduled", "en_camino", "in_progress", "cancelled", "completed"]


@given(st.lists(st.tuples(st.sampled_from(STATUSES), st.integers(1, 5)), min_size=2, max_size=5))
def test_of_concurrent_states_of_a_job_the_furthest_stays(
    states: list[tuple[str, int]],
) -> None:
    record = Record()
    for number, (status, at_us) in enumerate(states):
        device = f"d{number}"
        record = apply(record, Change(device, at_us, {"status": status}, {device: 1})).record
    furthest = max((status for status, _ in states), key=STATUSES.index)
    assert record.fields["status"] == furthest


def test_who_has_seen_a_state_may_set_it_back() -> None:
    done = apply(Record(), Change("a", 10, {"status": "completed"}, {"a": 1})).record
    back = apply(done, Change("b", 11, {"status": "in_progress"}, {"a": 1, "b": 1}))
    assert back.result == "applied"
    assert back.record.fields["status"] == "in_progress"


def test_a_change_that_has_seen_the_state_wins_though_its_clock_is_slow() -> None:
    first = apply(Record(), Change("a", 1_000, {"address": "one"}, {"a": 1})).record
    second = apply(first, Change("b", 5, {"address": "two"}, {"a": 1, "b": 1})).record
    assert second.fields["address"] == "two"
    late = apply(second, Change("c", 900, {"address": "three"}, {"c": 1}))
    assert (late.result, late.record.fields["address"]) == ("merged", "two")


@pytest.mark.parametrize("clock", [{"a": 1}, {"a": 2}])
def test_a_change_that_the_record_has_seen_changes_nothing(clock: dict[str, int]) -> None:
    record = Record({"address": "one"}, {}, {"a": 2})
    assert apply(record, Change("a", 99, {"address": "old"}, clock)) == (record, "superseded")


def test_a_part_of_a_change_may_lose() -> None:
    first = apply(Record(), Change("a", 10, {"address": "a"}, {"a": 1})).record
    made = apply(first, Change("b", 5, {"address": "b", "description": "d"}, {"b": 1}))
    assert made.result == "merged"
    assert made.record.fields == {"address": "a", "description": "d"}
    assert made.record.clock == {"a": 1, "b": 1}


def test_without_clocks_the_later_change_stays() -> None:
    first = apply(Record(), Change("a", 10, {"address": "a"}, {})).record
    assert apply(first, Change("b", 5, {"address": "b"}, {})).record.fields["address"] == "a"
    assert apply(first, Change("b", 15, {"address": "b"}, {})).record.fields["address"] == "b"
