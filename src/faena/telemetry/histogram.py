"""Histograms of durations: whole microseconds in buckets of growing width.

Each power of two is divided into sixteen buckets, so a quantile is at most 3.2 % away from the
exact one. Histograms of several workers, minutes or tasks are merged by adding up their buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_BITS: Final = 4
_EXACT: Final = 2 << _BITS
"""Below this, each microsecond has a bucket of its own."""
LONGEST_US: Final = 2**42
"""Longer durations, of 50 days and more, count as this one."""


def bucket_of(us: int) -> int:
    """The bucket of a duration; one that is negative, by a clock that was put back, is 0."""
    if us < _EXACT:
        return max(0, us)
    us = min(us, LONGEST_US)
    shift = us.bit_length() - _BITS - 1
    return (shift << _BITS) + (us >> shift)


def bounds_of(bucket: int) -> tuple[int, int]:
    """The shortest duration of a bucket, and the shortest one of the next."""
    if bucket < _EXACT:
        return bucket, bucket + 1
    shift = (bucket >> _BITS) - 1
    low = (bucket - (shift << _BITS)) << shift
    return low, low + (1 << shift)


class Histogram:
    """How many durations are in each bucket, and their exact sum."""

    __slots__ = ("count", "counts", "sum_us")

    def __init__(self, counts: Mapping[int, int] | None = None, sum_us: int = 0) -> None:
        """`counts` has the number of durations of each bucket."""
        self.counts: dict[int, int] = dict(counts or {})
        self.count = sum(self.counts.values())
        self.sum_us = sum_us

    def add(self, us: int) -> None:
        """Count one duration."""
        bucket = bucket_of(us)
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.count += 1
        self.sum_us += max(0, us)

    def absorb(self, other: Histogram) -> None:
        """Add the durations of another one to this one."""
        for bucket, number in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + number
        self.count += other.count
        self.sum_us += other.sum_us

    def merge(self, others: Iterable[Histogram]) -> Histogram:
        """A new histogram of this one and of others together."""
        merged = Histogram(self.counts, self.sum_us)
        for other in others:
            merged.absorb(other)
        return merged

    @property
    def mean_us(self) -> float | None:
        """The exact mean; None if nothing was counted."""
        return self.sum_us / self.count if self.count else None

    @property
    def longest_us(self) -> int | None:
        """A duration that none exceeds."""
        return bounds_of(max(self.counts))[1] if self.counts else None

    def quantile_us(self, quantile: float) -> float | None:
        """The duration that this part of all does not exceed, such as 0.95 of them."""
        rank, passed = quantile * (self.count - 1), 0
        for bucket in sorted(self.counts):
            number = self.counts[bucket]
            if rank < passed + number:
                low, high = bounds_of(bucket)
                return low + (high - 1 - low) * (rank - passed + 0.5) / number
            passed += number
        return None

    def beyond(self, us: int) -> float:
        """The part of all that took longer, between 0 and 1; within its bucket by proportion."""
        if not self.count:
            return 0.0
        at, longer = bucket_of(us), 0.0
        for bucket, number in self.counts.items():
            if bucket > at:
                longer += number
            elif bucket == at:
                low, high = bounds_of(bucket)
                longer += number * (high - 1 - us) / (high - low) if us < high else 0.0
        return longer / self.count
