"""Histograms of durations: whole microseconds in buckets of growing width.

Each power of two is divided into sixteen buckets, so a quantile is at most 3.2 % away from the
exact one. Histograms of several workers, minutes or tasks are merged by adding up their buckets.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

_BITS: Final = 4
_EXACT: Final = 2 << _BITS
"""Below this, each microsecond has a bucket of its own."""


_FIRST_HALF: Final = (1023 << _BITS) + 48
"""What `_upper_halves` says of the bucket 0, if it were not exact."""
_UPPER: Final = 3 if sys.byteorder == "little" else 0


def bucket_of(us: int) -> int:
    """The bucket of a duration; one that is negative, by a clock that was put back, is 0."""
    if us < _EXACT:
        return max(0, us)
    shift = us.bit_length() - _BITS - 1
    return (shift << _BITS) + (us >> shift)


def bounds_of(bucket: int) -> tuple[int, int]:
    """The shortest duration of a bucket, and the shortest one of the next."""
    if bucket < _EXACT:
        return bucket, bucket + 1
    shift = (bucket >> _BITS) - 1
    low = (bucket - (shift << _BITS)) << shift
    return low, low + (1 << shift)


def _upper_halves(values: Sequence[int]) -> memoryview[int]:
    """Of each number as a double, its first two bytes: exponent, and four bits of the fraction.

    That is its bucket: as many for each power of two as `bucket_of` makes, counted from another.
    """
    return memoryview(array("d", values)).cast("B").cast("H")[_UPPER::4]


class Histogram:
    """How many durations are in each bucket, and their exact sum."""

    __slots__ = ("_counts", "_fresh", "_sum_us", "add")

    add: Callable[[int], None]
    """Count one duration; one that is negative, by a clock that was put back, is 0."""

    def __init__(self, counts: Mapping[int, int] | None = None, sum_us: int = 0) -> None:
        """`counts` has the number of durations of each bucket."""
        self._counts: dict[int, int] = dict(counts or {})
        self._sum_us = sum_us
        # Three durations are added for each job, so they are only noted here, and counted when
        # somebody asks: equal ones together.
        self._fresh: list[int] = []
        self.add = self._fresh.append

    @property
    def counts(self) -> dict[int, int]:
        """How many durations are in each bucket."""
        if self._fresh:
            self._count_fresh()
        return self._counts

    @property
    def count(self) -> int:
        """How many durations there are."""
        return sum(self.counts.values())

    @property
    def sum_us(self) -> int:
        """Their exact sum."""
        return self._sum_us if not self._fresh else self._count_fresh()

    def _count_fresh(self) -> int:
        """Count what was only noted: at the speed of C, since a worker adds three for each job."""
        fresh = [max(0, us) for us in self._fresh] if min(self._fresh) < 0 else self._fresh
        self._sum_us += sum(fresh)
        for half, number in Counter(_upper_halves(fresh)).items():
            bucket = half - _FIRST_HALF
            if bucket < _EXACT // 2:  # narrower than a microsecond: several halves for each
                bucket = int(math.ldexp(16 + half % 16, half // 16 - 1027)) if half else 0
            self._counts[bucket] = self._counts.get(bucket, 0) + number
        self._fresh.clear()
        return self._sum_us

    @classmethod
    def read(cls, packed: Sequence[int]) -> Histogram:
        """A histogram as the broker keeps it: its sum, then bucket, number, bucket, number …"""
        return cls(dict(zip(packed[1::2], packed[2::2], strict=True)), packed[0] if packed else 0)

    def packed(self) -> list[int]:
        """The same, to be sent."""
        return [self.sum_us, *(part for pair in self.counts.items() for part in pair)]

    def absorb(self, other: Histogram) -> None:
        """Add the durations of another one to this one."""
        counts = self.counts
        for bucket, number in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + number
        self._sum_us += other.sum_us

    def merge(self, others: Iterable[Histogram]) -> Histogram:
        """A new histogram of this one and of others together."""
        merged = Histogram(self.counts, self.sum_us)
        for other in others:
            merged.absorb(other)
        return merged

    @property
    def mean_us(self) -> float | None:
        """The exact mean; None if nothing was counted."""
        count = self.count
        return self.sum_us / count if count else None

    @property
    def longest_us(self) -> int | None:
        """A duration that none exceeds."""
        return bounds_of(max(self.counts))[1] if self.counts else None

    def quantile_us(self, quantile: float) -> float | None:
        """The duration that this part of all does not exceed, such as 0.95 of them.

        It is the middle of its bucket: durations may all lie at one end of it.
        """
        rank, passed = quantile * (self.count - 1), 0
        for bucket in sorted(self.counts):
            passed += self.counts[bucket]
            if rank < passed:
                low, high = bounds_of(bucket)
                return (low + high - 1) / 2
        return None

    def beyond(self, us: int) -> float:
        """The part of all that took longer, between 0 and 1; within its bucket by proportion."""
        at, longer, count = bucket_of(us), 0.0, self.count
        if not count:
            return 0.0
        for bucket, number in self.counts.items():
            if bucket > at:
                longer += number
            elif bucket == at:
                low, high = bounds_of(bucket)
                longer += number * (high - 1 - us) / (high - low) if us < high else 0.0
        return longer / count
