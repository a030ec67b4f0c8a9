"""The verdict finds what it is there to find, and blames nobody for what a fault explains."""

from __future__ import annotations

import time

import pytest

from tests._support.ledger import Entry
from tests.chaos.shop import ATTEMPTS, LEASE_S, MAX_RUNNING, RATE, job_id
from tests.chaos.verdict import FOUND, NOBODY, Fault, judge

SECOND = 1_000_000_000
T0 = time.monotonic_ns() - 100 * SECOND
WALL = time.time_ns() - time.monotonic_ns()


class Book:
    """A ledger in the making; instants in seconds."""

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.entries: list[Entry] = []
        self.faults: list[Fault] = []

    def job(self, queue: str, number: int, fails: int = 0) -> str:
        job = job_id(queue, "k", number, fails)
        self.accepted.add(job)
        return job

    def run(
        self, job: str, began: float, ended: float | None, end: str = "finish", **facts: int
    ) -> None:
        pid, attempt, losses = (facts.get(name, 0) for name in ("pid", "attempt", "losses"))
        name = (job, attempt or 1, losses, pid or 7)
        at_ns = T0 + int(began * SECOND)
        claimed_us = facts.get("claimed_us", (at_ns + WALL) // 1000)
        self.entries.append(Entry("start", *name, at_ns, str(claimed_us)))
        if ended is not None:
            self.entries.append(Entry(end, *name, T0 + int(ended * SECOND), "-"))

    def wall_us(self, at: float) -> int:
        """An instant by the server's clock."""
        return (T0 + WALL + int(at * SECOND)) // 1000

    def fault(self, pid: int | None, began: float, ended: float) -> None:
        at = (T0 + int(began * SECOND), T0 + int(ended * SECOND))
        self.faults.append(Fault("fault", pid, *at))

    def found(self) -> dict[str, int]:
        verdicts = judge(self.accepted, self.entries, self.faults).values()
        counts = {kind: sum(one.counts[kind] for one in verdicts) for kind in FOUND}
        return {kind: number for kind, number in counts.items() if number}


@pytest.fixture
def book() -> Book:
    return Book()


def test_jobs_that_end_as_planned_are_nobodys_concern(book: Book) -> None:
    book.run(book.job("plain", 1), 0, 1)
    failing = book.job("plain", 2, fails=1)
    book.run(failing, 0, 1, "fail")
    book.run(failing, 2, 3, attempt=2)
    doomed = book.job("plain", 3, fails=ATTEMPTS)
    for attempt in range(1, ATTEMPTS + 1):
        book.run(doomed, attempt, attempt + 0.5, "fail", attempt=attempt)
    assert book.found() == {}


def test_what_never_ended_is_lost(book: Book) -> None:
    book.job("plain", 1)
    book.run(book.job("ordered", 2), 0, None)
    book.run(book.job("limited", 3, fails=1), 0, 1, "fail")
    assert book.found() == {"lost": 3}


def test_a_delivery_that_begins_twice_is_doubled_even_when_a_fault_explains_the_run(
    book: Book,
) -> None:
    job = book.job("plain", 1)
    book.run(job, 0, 1, pid=7)
    book.run(job, 2, 3, pid=8)
    assert book.found() == {"doubled": 1, "unexplained": 1}
    book.fault(7, 0.5, 0.5)
    assert book.found() == {"doubled": 1}


def test_a_run_too_many_is_explained_by_a_fault_of_its_own_process_only(book: Book) -> None:
    job = book.job("plain", 1)
    book.run(job, 0, 1, pid=7)
    book.run(job, 6, 7, pid=8, losses=1)
    assert book.found() == {"unexplained": 1}
    book.fault(9, 0.5, 0.5)
    book.fault(7, 20, 20)
    assert book.found() == {"unexplained": 1}
    book.fault(7, 1.5, 1.5)  # before it can have been settled
    assert book.found() == {}


def test_a_loss_before_a_lease_can_have_ended_is_explained_by_nothing(book: Book) -> None:
    job = book.job("plain", 1)
    book.run(job, 0, None, pid=7)
    book.run(job, LEASE_S - 0.1, 6, pid=8, losses=1)
    book.fault(7, 0.5, 0.5)
    assert book.found() == {"unexplained": 1}
    book.entries.clear()
    book.run(job, 0, None, pid=7)
    book.run(job, LEASE_S, 6, pid=8, losses=1)
    assert book.found() == {}


def test_order_is_broken_by_an_earlier_job_that_begins_later_and_by_two_at_a_time(
    book: Book,
) -> None:
    first, second = book.job("ordered", 1), book.job("ordered", 2)
    book.run(second, 0, 1)
    book.run(first, 2, 3)
    assert book.found() == {"inversions": 1}
    book.entries.clear()
    book.run(first, 0, 2, pid=7)
    book.run(second, 1, 3, pid=8)
    assert book.found() == {"inversions": 1}


def test_a_run_that_a_fault_has_hit_holds_its_place_while_its_lease_lasts(book: Book) -> None:
    first, second = book.job("ordered", 1), book.job("ordered", 2)
    book.run(first, 0, LEASE_S + 3, pid=7)
    book.run(second, LEASE_S + 1, LEASE_S + 2, pid=8)
    assert book.found() == {"inversions": 1}
    book.fault(7, 0.5, 9)  # frozen, and not heard of before its lease was another's
    assert book.found() == {}
    book.entries.clear()
    book.run(first, 0, LEASE_S + 3, pid=7)
    book.run(second, LEASE_S - 1, LEASE_S, pid=8)
    assert book.found() == {"inversions": 1}


def test_a_fault_before_it_began_takes_no_place_away(book: Book) -> None:
    first, second = book.job("ordered", 1), book.job("ordered", 2)
    book.run(second, 1, 2, pid=7, claimed_us=book.wall_us(0))
    book.run(first, 3, 4, pid=8)
    book.fault(7, 0.5, 0.9)
    assert book.found() == {"inversions": 1}


def test_a_claim_that_slept_through_its_lease_is_not_out_of_order(book: Book) -> None:
    first, second = book.job("ordered", 1), book.job("ordered", 2)
    book.run(first, 6, 7, pid=8, losses=1)
    book.run(second, 7, 8, pid=8)
    book.run(first, 10, 11, pid=7, claimed_us=book.wall_us(1))
    assert book.found() == {"unexplained": 1, "inversions": 1}
    book.fault(7, 2, 9.9)
    assert book.found() == {}


def test_more_than_a_rate_allows_is_excess_whatever_befell_the_workers(book: Book) -> None:
    for number in range(RATE + 1):
        book.run(book.job("limited", number), number * 0.9 / RATE, number * 0.9 / RATE + 0.001)
    assert book.found() == {"excess": 1}
    for pid in (NOBODY, None, 7):
        book.fault(pid, 0.1, 0.1)
    assert book.found() == {"excess": 1}


def test_more_than_max_running_at_a_time_is_excess_while_leases_last(book: Book) -> None:
    for number in range(MAX_RUNNING):
        book.run(book.job("limited", number), number / 10, 10, pid=number + 1)
    book.run(book.job("limited", MAX_RUNNING), LEASE_S, 10)
    assert book.found() == {"excess": 1}
    book.fault(2, 0.5, 0.5)  # its lease lasts a tenth of a second longer
    assert book.found() == {"excess": 1}
    book.fault(1, 0.5, 0.5)
    assert book.found() == {}
