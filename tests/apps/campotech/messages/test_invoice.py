"""Invoices: types, points of sale, and amounts that are exact."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from apps.campotech.messages import AfipInvoice, InvoicePdf
from tests.apps.campotech.messages.judge import OK, judged
from tests.apps.campotech.messages.samples import sample

A_UUID = "must be a UUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e"
AN_AMOUNT = "total must be an amount in pesos, such as 1500.50"
IN_RANGE = "total must be more than 0 and at most 9999999999999.99"
TWO_DECIMALS = "total must have at most two decimals"

INVOICES: list[tuple[dict[str, Any], str]] = [
    *(({"invoiceType": letter}, OK) for letter in "ABC"),
    *(({"invoiceType": bad}, "invoiceType input should be 'A', 'B' or 'C'")
      for bad in ("D", "a", "", "AB", 1, None)),
    ({"invoiceId": "x"}, f"invoiceId {A_UUID}"),
    ({"customerId": "x"}, f"customerId {A_UUID}"),
    ({"puntoVenta": 1}, OK),
    ({"puntoVenta": 99_999}, OK),
    ({"puntoVenta": 0}, "puntoVenta input should be greater than or equal to 1"),
    ({"puntoVenta": 100_000}, "puntoVenta input should be less than or equal to 99999"),
    ({"puntoVenta": 1.5}, "puntoVenta input should be a valid integer"),
    ({"puntoVenta": "4"}, "puntoVenta input should be a valid integer"),
    ({"puntoVenta": True}, "puntoVenta input should be a valid integer"),
    *(({"total": good}, OK)
      for good in (0.01, 1, 1500, 1500.5, 1500.25, "0.01", "1500.50", "1500.500", "1500",
                   Decimal("0.01"), Decimal("1E+2"), Decimal("1.5000"), 9999999999999.99,
                   "9999999999999.99", 0.29, 1.005e2)),
    *(({"total": bad}, IN_RANGE)
      for bad in (0, -1, -0.01, 0.0, "-5", "0.00", 10**13, 1e22, 10**5000, Decimal("1E+400"),
                  "10000000000000.00")),
    *(({"total": bad}, TWO_DECIMALS)
      for bad in (0.001, 100.005, 0.1 + 0.2, 1e-7, "1.001", Decimal("0.009"),
                  Decimal("1." + "0" * 50 + "1"))),
    *(({"total": bad}, AN_AMOUNT)
      for bad in (True, None, [], {}, "", "a", "1e3", "1_000", " 1", "1\n", "1,50", "٣", "$5",
                  float("nan"), float("inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("-inf"))),
]  # fmt: skip

PDFS: list[tuple[dict[str, Any], str]] = [
    ({"invoiceId": "x"}, f"invoiceId {A_UUID}"),
    *(({name: value}, OK) for name in ("regenerate", "sendAfter") for value in (True, False)),
    *(({name: bad}, f"{name} input should be a valid boolean")
      for name in ("regenerate", "sendAfter") for bad in (1, "true", "yes", None)),
    ({"version": 1}, OK),
    ({"version": 9_999}, OK),
    ({"version": None}, OK),
    ({"version": 0}, "version input should be greater than or equal to 1"),
    ({"version": 10_000}, "version input should be less than or equal to 9999"),
    ({"version": "2"}, "version input should be a valid integer"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), INVOICES)
async def test_an_invoice_is_judged_as_the_specification_says(
    changes: dict[str, Any], says: str
) -> None:
    assert await judged("afip.invoice", sample("afip.invoice", **changes)) == says


@pytest.mark.parametrize(("changes", "says"), PDFS)
async def test_a_pdf_is_judged_as_the_specification_says(
    changes: dict[str, Any], says: str
) -> None:
    assert await judged("invoice.pdf", sample("invoice.pdf", **changes)) == says


@pytest.mark.parametrize(
    ("given", "centavos", "sent"),
    [(1500, 150_000, "1500.00"), (1500.5, 150_050, "1500.50"), ("1500.5", 150_050, "1500.50"),
     (0.29, 29, "0.29"), (Decimal("1E+2"), 10_000, "100.00"),
     (9999999999999.99, 999_999_999_999_999, "9999999999999.99")],
)  # fmt: skip
def test_an_amount_is_exact_however_it_was_written(given: Any, centavos: int, sent: str) -> None:
    invoice = AfipInvoice.model_validate(sample("afip.invoice", total=given))
    assert invoice.total_centavos == centavos
    assert json.loads(invoice.model_dump_json())["total"] == sent


def test_a_number_in_json_is_the_amount_that_it_spells() -> None:
    raw = json.dumps(sample("afip.invoice")).replace("1500.5", "4503599627370.97")
    assert AfipInvoice.model_validate_json(raw).total == Decimal("4503599627370.97")


def test_a_pdf_is_made_once_and_sent_unless_it_says_otherwise() -> None:
    bare = InvoicePdf.model_validate(
        sample("invoice.pdf", regenerate=..., sendAfter=..., version=...)
    )
    assert (bare.regenerate, bare.send_after, bare.version) == (False, True, None)
