"""Buckets as Prometheus has them: how many durations do not exceed each of some bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from faena.telemetry.histogram import Histogram, bounds_of

BOUNDS_S: Final = (
    *(0.001, 0.0015, 0.0025, 0.004, 0.0065, 0.01, 0.015, 0.025, 0.04, 0.065),
    *(0.1, 0.15, 0.25, 0.4, 0.65, 1.0, 1.5, 2.5, 4.0, 6.5),
    *(10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0),
    *(450.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0),
)
"""Five for each power of ten, then whole parts of minutes: Prometheus takes durations to be spread
evenly in a bucket, so wide ones would make quantiles wrong by half."""


def cumulative(histogram: Histogram, bounds_s: Sequence[float]) -> list[int]:
    """How many durations are at most as long as each bound, and the number of all.

    A bucket of ours that a bound divides counts by proportion, rounded down: no number decreases
    while durations are added.
    """
    counts, found = histogram.counts, list[int]()
    buckets, at, passed = sorted(counts), 0, 0
    for bound_s in bounds_s:
        bound_us = round(bound_s * 1e6)
        while at < len(buckets) and bounds_of(buckets[at])[1] - 1 <= bound_us:
            passed += counts[buckets[at]]
            at += 1
        part = _part_of(buckets[at], counts[buckets[at]], bound_us) if at < len(buckets) else 0
        found.append(passed + part)
    return [*found, passed + sum(counts[one] for one in buckets[at:])]


def _part_of(bucket: int, number: int, bound_us: int) -> int:
    low, high = bounds_of(bucket)
    return number * max(0, bound_us - low + 1) // (high - low)
