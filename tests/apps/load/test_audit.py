"""What the count of invoices must notice."""

from __future__ import annotations

from uuid import UUID, uuid4

from apps.load.audit import Counted, Given, Row, count

CUIT = "30700000028"


def invoice(number: int | None = 1, *, cae: str | None = "7" * 14, job: UUID | None = None) -> Row:
    return Row(uuid4(), job or uuid4(), CUIT, 1, "B", number, cae)


def given(*numbers: int, cae: str = "7" * 14) -> list[Given]:
    return [Given(f"{CUIT}/1/6/{number}", cae) for number in numbers]


def jobs(*rows: Row) -> set[UUID]:
    return {row.job for row in rows if row.job is not None}


def judged(rows: list[Row], at_afip: list[Given], accepted: set[UUID] | None = None) -> Counted:
    wanted = jobs(*rows) if accepted is None else accepted
    return count(wanted, wanted, rows, at_afip)


GOOD = Counted(lost=0, unissued=0, doubled=0, unasked=0, given_twice=0, wrong=0, gaps=0)


def test_one_invoice_with_one_cae_for_each_accepted_job_is_good():
    assert judged([invoice(1), invoice(2)], given(1, 2)) == GOOD


def test_an_accepted_job_without_an_invoice_is_lost():
    row = invoice()
    assert judged([row], given(1), jobs(row) | {uuid4()}) == GOOD._replace(lost=1)


def test_an_invoice_without_a_cae_is_noticed():
    assert judged([invoice(None, cae=None)], []) == GOOD._replace(unissued=1)


def test_a_job_with_two_invoices_is_doubled():
    first = invoice(1)
    assert judged([first, invoice(2, job=first.job)], given(1, 2)) == GOOD._replace(doubled=1)


def test_an_invoice_that_nobody_asked_for_is_noticed():
    row = invoice(1)
    assert judged([row, invoice(2)], given(1, 2), jobs(row)) == GOOD._replace(unasked=1)


def test_what_was_tried_and_not_known_to_be_accepted_is_asked_for():
    row = invoice(1)
    assert count(set(), jobs(row), [row], given(1)) == GOOD


def test_a_cae_that_no_invoice_has_was_given_twice():
    assert judged([invoice(1)], given(1, 2)) == GOOD._replace(given_twice=1)


def test_a_cae_that_the_tax_office_has_not_given_is_wrong():
    assert judged([invoice(1)], given(1, cae="8" * 14)) == GOOD._replace(wrong=1)


def test_a_number_that_a_series_has_skipped_is_a_gap():
    assert judged([invoice(1), invoice(3)], given(1, 3)) == GOOD._replace(gaps=1)


def test_an_invoice_may_be_asked_for_by_its_own_id():
    row = invoice(1)
    assert count({row.id}, {row.id}, [row], given(1)) == GOOD
