"""What must be 0, counted from what the database and the ledgers say."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple


class Voucher(NamedTuple):
    """An invoice that was issued."""

    cuit: str
    number: int
    cae: str
    asked_at: datetime

    @property
    def name(self) -> str:
        """As the tax office calls it: all are of the class B and of the first point of sale."""
        return f"{self.cuit}/1/6/{self.number}"


def wrong_caes(ours: Iterable[Voucher], given: Mapping[str, str]) -> int:
    """Invoices with another CAE than the one that the tax office gave, or with none of its own."""
    return sum(given.get(one.name) != one.cae for one in ours)


def gaps(ours: Iterable[Voucher]) -> int:
    """Numbers that a business has skipped."""
    series = _by_business(ours)
    return sum(max(one.number for one in each) - len(each) for each in series)


def inversions(ours: Iterable[Voucher]) -> int:
    """Numbers given against the order in which invoices were asked for."""
    total = 0
    for each in _by_business(ours):
        times = [one.asked_at for one in sorted(each, key=lambda one: one.number)]
        total += sum(later < earlier for earlier, later in pairwise(times))
    return total


def excess(times: Sequence[datetime], window: timedelta, most: int) -> int:
    """By how much the fullest window holds more than it may, wherever it begins."""
    ordered, worst = sorted(times), 0
    for index, at in enumerate(ordered):
        first = bisect_right(ordered, at - window)
        worst = max(worst, index + 1 - first - most)
    return worst


def busiest(times: Sequence[datetime]) -> tuple[datetime, datetime]:
    """The shortest time in which four fifths of them are."""
    ordered = sorted(times)
    behind = max(0, len(ordered) * 4 // 5 - 1)
    spans = zip(ordered, ordered[behind:], strict=False)
    return min(spans, key=lambda span: span[1] - span[0])


def percentile(values: Sequence[float], percent: int) -> float | None:
    """Of the values; None if there are none."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _by_business(ours: Iterable[Voucher]) -> Iterable[list[Voucher]]:
    found: dict[str, list[Voucher]] = defaultdict(list)
    for one in ours:
        found[one.cuit].append(one)
    return found.values()
