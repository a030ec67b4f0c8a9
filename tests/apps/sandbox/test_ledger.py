"""A ledger numbers its entries, counts all of them, and keeps as many as it is told to."""

from __future__ import annotations

import time

from apps.sandbox.ledger import Ledger


def noted(count: int, most: int | None = None) -> Ledger:
    ledger = Ledger()
    ledger.most = most
    for number in range(1, count + 1):
        outcome = "ok" if number % 2 else "refused"
        ledger.note("ask", outcome, began_at=time.monotonic(), subject=str(number))
    return ledger


def test_entries_after_one_are_those_that_came_later() -> None:
    ledger = noted(5)
    assert [one.number for one in ledger.after(3)] == [4, 5]
    assert [one.subject for one in ledger.after(0)] == ["1", "2", "3", "4", "5"]
    assert ledger.after(5) == ledger.after(99) == []


def test_the_last_entries_are_kept_and_all_are_counted() -> None:
    ledger = noted(1001, most=100)
    assert 100 <= len(ledger.entries) <= 200
    assert ledger.entries[-1].number == 1001
    assert ledger.counts() == {"ask": {"ok": 501, "refused": 500}}
    assert [one.number for one in ledger.after(999)] == [1000, 1001]


def test_without_a_bound_all_are_kept() -> None:
    assert len(noted(1001).entries) == 1001
