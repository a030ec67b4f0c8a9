"""The QR code of a voucher holds an address with its data (RG 4892)."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from apps.providers.afip import (
    Authorized,
    DocumentKind,
    Receiver,
    VatCondition,
    Voucher,
    VoucherKind,
    qr_url,
)

DAY = date(2020, 10, 13)
CAE = Authorized(cae="70417054367476", expires_on=date(2020, 10, 23), number=94)
VOUCHER = Voucher(
    kind=VoucherKind.INVOICE_A,
    point_of_sale=10,
    number=94,
    date=DAY,
    receiver=Receiver(
        document_kind=DocumentKind.CUIT,
        document_number=20_000_000_001,
        vat_condition=VatCondition.REGISTERED,
    ),
    net_cents=1_210_000,
    currency="DOL",
    exchange_rate=Decimal(65),
)


def test_the_example_of_the_specification_is_reproduced() -> None:
    assert qr_url("30000000007", VOUCHER, CAE) == (
        "https://www.afip.gob.ar/fe/qr/?p=eyJ2ZXIiOjEsImZlY2hhIjoiMjAyMC0xMC0xMyIsImN1aXQiOjMwMD"
        "AwMDAwMDA3LCJwdG9WdGEiOjEwLCJ0aXBvQ21wIjoxLCJucm9DbXAiOjk0LCJpbXBvcnRlIjoxMjEwMCwibW9uZ"
        "WRhIjoiRE9MIiwiY3R6Ijo2NSwidGlwb0RvY1JlYyI6ODAsIm5yb0RvY1JlYyI6MjAwMDAwMDAwMDEsInRpcG9D"
        "b2RBdXQiOiJFIiwiY29kQXV0Ijo3MDQxNzA1NDM2NzQ3Nn0="
    )


def test_amounts_are_exact_numbers() -> None:
    url = qr_url("30000000007", replace(VOUCHER, net_cents=999_999_999_999_999), CAE)
    content = base64.b64decode(url.partition("?p=")[2])
    assert json.loads(content, parse_float=Decimal)["importe"] == Decimal("9999999999999.99")


def test_the_cae_must_be_that_of_the_voucher() -> None:
    with pytest.raises(ValueError, match="authorized must be that of the voucher"):
        qr_url("30000000007", replace(VOUCHER, number=95), CAE)
