"""Histograms: quantiles of skewed data, exact sums, merging."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faena.telemetry.histogram import Histogram, bounds_of, bucket_of
from tests._support.search import searching

SKEWED: dict[str, Callable[[random.Random], float]] = {
    "lognormal": lambda dice: dice.lognormvariate(9, 2),
    "exponential": lambda dice: dice.expovariate(1 / 40_000),
    "bimodal": lambda dice: dice.gauss(2_000, 200) if dice.random() < 0.9 else dice.gauss(9e6, 1e6),
    "pareto": lambda dice: 1_000 * dice.paretovariate(1.1),
    "constant": lambda _: 12_345,
}


def filled(values: list[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


@pytest.mark.parametrize("shape", SKEWED)
@pytest.mark.parametrize("quantile", [0.5, 0.95, 0.99])
def test_a_quantile_is_within_a_twentieth_of_the_exact_one(shape: str, quantile: float) -> None:
    dice = random.Random(7)
    values = sorted(max(0, int(SKEWED[shape](dice))) for _ in range(20_000))
    exact = values[int(quantile * (len(values) - 1))]
    found = filled(values).quantile_us(quantile)
    assert found == pytest.approx(exact, rel=0.05)


TAIL = st.one_of(
    st.floats(0, 3).map(lambda tail: lambda dice: dice.lognormvariate(9, tail)),
    st.floats(0.5, 3).map(lambda tail: lambda dice: 1_000 * dice.paretovariate(tail)),
    st.floats(1, 1e8).map(lambda mean: lambda dice: dice.expovariate(1 / mean)),
    st.integers(1, 2**40).map(lambda same: lambda _: same),
)
"""Durations that differ little or by orders of magnitude."""


@searching(60)
@given(st.lists(TAIL, min_size=1, max_size=3), st.integers(1, 2_000), st.integers(0, 2**32))
def test_no_mixture_takes_a_quantile_further_from_the_exact_one(
    tails: list[Callable[[random.Random], float]], size: int, seed: int
) -> None:
    dice = random.Random(seed)
    values = sorted(int(dice.choice(tails)(dice)) for _ in range(size))
    histogram = filled(values)
    for quantile in (0.5, 0.95, 0.99):
        exact = values[int(quantile * (size - 1))]
        assert histogram.quantile_us(quantile) == pytest.approx(exact, rel=0.032)


@searching(300)
@given(st.integers(0, 2**62))
def test_a_duration_lies_in_its_bucket_and_buckets_are_narrow(us: int) -> None:
    low, high = bounds_of(bucket_of(us))
    assert low <= us < high
    assert high - low <= max(1, low / 16)
    assert bucket_of(high) == bucket_of(us) + 1


@searching(60)
@given(st.lists(st.lists(st.integers(-5, 10**9), max_size=20), max_size=4))
def test_merged_histograms_are_that_of_all_durations(parts: list[list[int]]) -> None:
    together = filled([us for part in parts for us in part])
    merged = Histogram().merge(filled(part) for part in parts)
    assert (merged.counts, merged.count, merged.sum_us) == (
        together.counts,
        together.count,
        together.sum_us,
    )
    read = Histogram.read(together.packed())
    assert (read.counts, read.count, read.sum_us) == (merged.counts, merged.count, merged.sum_us)


def test_without_durations_nothing_is_said() -> None:
    none = Histogram()
    assert (none.mean_us, none.longest_us, none.quantile_us(0.5), none.beyond(0)) == (
        None,
        None,
        None,
        0.0,
    )


def test_the_part_that_took_longer() -> None:
    values = [10, 20, 30, 1_000, 50_000, 2_000_000, 2_000_000, 9_000_000]
    histogram = filled(values)
    assert histogram.beyond(31) == 5 / 8
    assert histogram.beyond(100_000) == 3 / 8
    assert histogram.beyond(20_000_000) == 0
    assert histogram.mean_us == sum(values) / 8
    assert (histogram.longest_us or 0) >= 9_000_000


@searching(200)
@given(st.lists(st.one_of(st.integers(-3, 70), st.integers(0, 2**53)), max_size=30))
def test_durations_are_counted_in_their_buckets(values: list[int]) -> None:
    assert filled(values).counts == Counter(bucket_of(us) for us in values)
    assert filled(values).sum_us == sum(max(us, 0) for us in values)
    assert filled(values).count == len(values)
