"""Buckets of pages: as many durations as there are below each bound, and never fewer later."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from faena.telemetry.histogram import Histogram
from faena.telemetry.metrics.bucket import BOUNDS_S, cumulative
from tests._support.search import searching

DURATIONS = st.lists(st.one_of(st.integers(0, 10**6), st.integers(0, 10**10)), max_size=60)


def filled(values: list[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


@searching(100)
@given(DURATIONS)
def test_a_bucket_counts_durations_up_to_its_bound(values: list[int]) -> None:
    found = cumulative(filled(values), BOUNDS_S)
    assert found[-1] == len(values)
    assert all(one <= other for one, other in pairwise(found))
    for bound_s, number in zip(BOUNDS_S, found, strict=False):
        bound_us = round(bound_s * 1e6)
        surely = sum(value < bound_us * 15 / 16 for value in values)
        perhaps = sum(value <= bound_us * 17 / 16 for value in values)
        assert surely <= number <= perhaps


@searching(60)
@given(DURATIONS, DURATIONS)
def test_no_bucket_decreases_while_durations_are_added(first: list[int], then: list[int]) -> None:
    before = cumulative(filled(first), BOUNDS_S)
    after = cumulative(filled([*first, *then]), BOUNDS_S)
    assert all(one <= other for one, other in zip(before, after, strict=True))
