"""A voucher's totals follow from its parts, in whole cents."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from apps.providers.afip import (
    Concept,
    DocumentKind,
    Invalid,
    Receiver,
    Service,
    Tribute,
    VatCondition,
    VatLine,
    VatRate,
    Voucher,
)
from apps.providers.afip.voucher import decimal_text, plain
from hypothesis import given
from hypothesis import strategies as st

DAY = date(2026, 11, 17)


def test_totals_are_sums(voucher: Voucher) -> None:
    tribute = Tribute(
        id=99, description="municipal", base_cents=10_000, percent=Decimal("1.5"), amount_cents=150
    )
    full = replace(voucher, untaxed_cents=7, exempt_cents=30, tributes=(tribute,))
    assert (full.vat_cents, full.tributes_cents, full.total_cents) == (2_100, 150, 12_287)


@pytest.mark.parametrize(
    ("rate", "base", "amount"),
    [
        (VatRate.TWENTY_ONE, 50, 10),  # 10.5
        (VatRate.TWENTY_ONE, 150, 32),  # 31.5
        (VatRate.TEN_AND_A_HALF, 100, 10),  # 10.5
        (VatRate.TWENTY_SEVEN, 10_001, 2_700),
        (VatRate.ZERO, 10_000, 0),
        (VatRate.FIVE, 10_000, 500),
        (VatRate.TWO_AND_A_HALF, 10_000, 250),
    ],
)
def test_vat_is_rounded_half_to_even(rate: VatRate, base: int, amount: int) -> None:
    assert VatLine.of(rate, base).amount_cents == amount


@pytest.mark.parametrize("amount", [100.0, True, -1, "100", Decimal(100), 10**15, None])
def test_an_amount_is_a_whole_number_of_cents(voucher: Voucher, amount: Any) -> None:
    with pytest.raises(Invalid, match="net_cents must be a whole number"):
        replace(voucher, net_cents=amount)
    with pytest.raises(Invalid, match="base_cents must be a whole number"):
        VatLine.of(VatRate.TWENTY_ONE, amount)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"point_of_sale": 0}, "point_of_sale"),
        ({"point_of_sale": 99_999}, "point_of_sale"),
        ({"number": 0}, "number"),
        ({"number": 100_000_000}, "number"),
        ({"exchange_rate": 1.0}, "exchange_rate"),
        ({"exchange_rate": Decimal("NaN")}, "exchange_rate"),
        ({"currency": "pesos"}, "currency"),
        ({"currency": '"P"'}, "currency"),
        ({"concept": Concept.SERVICES}, "service"),
        ({"net_cents": 10**15 - 1}, "total_cents"),
    ],
)
def test_what_no_voucher_can_be_is_refused(
    voucher: Voucher, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(Invalid, match=f"{problem} must"):
        replace(voucher, **changes)


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        (DocumentKind.UNIDENTIFIED, 1),
        (DocumentKind.DNI, 0),
        (DocumentKind.CUIT, 30_500_010_911),
        (DocumentKind.DNI, -5),
        (DocumentKind.DNI, 10**11),
    ],
)
def test_a_receiver_has_a_document_that_can_be_one(kind: DocumentKind, number: int) -> None:
    with pytest.raises(Invalid):
        Receiver(
            document_kind=kind, document_number=number, vat_condition=VatCondition.FINAL_CONSUMER
        )


def test_a_service_does_not_end_before_it_begins() -> None:
    with pytest.raises(Invalid, match="until must"):
        Service(since=DAY, until=date(2026, 11, 16), pay_by=DAY)


@given(st.integers(0, 10**15 - 1))
def test_cents_are_written_exactly(cents: int) -> None:
    text = decimal_text(cents)
    assert Decimal(text) * 100 == cents
    assert "E" not in text
    assert not ("." in text and text.endswith(("0", ".")))


def test_numbers_are_written_without_exponent() -> None:
    assert [plain(Decimal(text)) for text in ("1E+3", "65.00", "1450.5", "0", "100")] == [
        *("1000", "65", "1450.5", "0", "100")
    ]
