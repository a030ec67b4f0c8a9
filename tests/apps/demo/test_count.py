"""The demo's verdict would notice what must not happen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from apps.demo.count import Voucher
from apps.demo.verdict import Verdict

from apps.demo import count

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def voucher(number: int, cuit: str = "30", at: int | None = None) -> Voucher:
    return Voucher(cuit, number, f"cae-{number}", NOON + SECOND * (number if at is None else at))


def test_a_number_that_was_skipped_is_a_gap_of_that_business() -> None:
    assert count.gaps([voucher(1), voucher(2), voucher(1, "31")]) == 0
    assert count.gaps([voucher(1), voucher(4), voucher(1, "31")]) == 2
    assert count.gaps([voucher(2)]) == 1
    assert count.gaps([]) == 0


def test_numbers_against_the_order_of_requests_are_inversions() -> None:
    assert count.inversions([voucher(2), voucher(1), voucher(3)]) == 0
    assert count.inversions([voucher(1, at=9), voucher(2, at=1), voucher(3, at=2)]) == 1
    assert count.inversions([voucher(1, at=9), voucher(2, "31", at=1)]) == 0


def test_a_cae_that_the_tax_office_did_not_give_is_wrong() -> None:
    ours = [voucher(1), voucher(2), voucher(3)]
    given = {"30/1/6/1": "cae-1", "30/1/6/2": "cae-3"}
    assert count.wrong_caes(ours, given) == 2


@pytest.mark.parametrize(
    ("seconds", "most", "excess"),
    [
        ([0, 1, 2, 10, 11, 12], 3, 0),
        ([0, 1, 2, 9.9], 3, 1),
        ([5, 5, 5, 5, 0], 3, 2),
        ([], 1, 0),
    ],
)
def test_the_fullest_window_counts_wherever_it_begins(
    seconds: list[float], most: int, excess: int
) -> None:
    times = [NOON + SECOND * one for one in seconds]
    assert count.excess(times, SECOND * 10, most) == excess


def test_one_figure_that_must_be_none_and_is_not_spoils_the_verdict() -> None:
    verdict = Verdict()
    verdict.add("jobs", 5)
    verdict.none("lost", 0, "")
    assert verdict.is_good
    verdict.none("doubled", 1, "")
    assert not verdict.is_good


def test_the_busiest_time_is_the_shortest_with_four_fifths() -> None:
    burst = [NOON + SECOND * one for one in range(40, 48)]
    assert count.busiest([NOON, *burst, NOON + SECOND * 500]) == (burst[0], burst[-1])
    assert count.busiest([NOON]) == (NOON, NOON)
