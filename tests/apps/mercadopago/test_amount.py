"""Amounts are centavos, exact in both directions."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from apps.providers.mercadopago import Invalid, Item, Settings, manual_payment
from apps.providers.mercadopago.amount import (
    MOST_CENTAVOS,
    check_centavos,
    from_json,
    to_json,
    to_text,
)
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(min_value=1, max_value=MOST_CENTAVOS))
def test_an_amount_comes_back_as_it_went_through_json(centavos: int) -> None:
    text = json.dumps(to_json(centavos))
    assert from_json(json.loads(text, parse_float=Decimal)) == centavos


@pytest.mark.parametrize(
    ("centavos", "text"), [(1, "0.01"), (10, "0.1"), (1050, "10.5"), (200, "2"), (58_80, "58.8")]
)
def test_json_shows_the_decimals(centavos: int, text: str) -> None:
    assert json.dumps(to_json(centavos)) == text


def test_people_see_two_decimals() -> None:
    assert (to_text(1050), to_text(5), to_text(123_456_789)) == ("10.50", "0.05", "1234567.89")


@pytest.mark.parametrize("text", ["58.80", Decimal("58.8")])
def test_texts_and_numbers_are_read(text: Any) -> None:
    assert from_json(text) == 5880


@pytest.mark.parametrize(
    "wrong",
    [10.5, True, None, "x", "", "NaN", "Infinity", Decimal("1.005"), "1e99", "1e999999999", 10**14],
)
def test_what_is_no_amount_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="amount must"):
        from_json(wrong)


@pytest.mark.parametrize("wrong", [0, -1, MOST_CENTAVOS + 1, 1.5, True, "1", Decimal(1)], ids=repr)
def test_a_program_gives_whole_centavos(wrong: Any) -> None:
    with pytest.raises(Invalid, match="centavos"):
        check_centavos("amount", wrong)


def test_a_price_in_floats_is_refused() -> None:
    with pytest.raises(Invalid, match="unit_price_centavos must be a whole number"):
        Item(title="Visita", unit_price_centavos=10.5)  # pyright: ignore[reportArgumentType]


def test_a_manual_payment_tells_where_and_how_much() -> None:
    settings = Settings(access_token="x", alias="campo.tech.mp", cbu="1" * 22)
    manual = manual_payment(settings, 10_050, "invoice-1")
    assert (manual.alias, manual.cbu, manual.amount_centavos) == ("campo.tech.mp", "1" * 22, 10_050)
    assert manual.text == (
        f"Transferí $100.50 a alias campo.tech.mp / CBU {'1' * 22} con la referencia invoice-1."
    )


def test_a_manual_payment_may_have_an_alias_only() -> None:
    settings = Settings(access_token="x", alias="campo.tech.mp")
    assert "a alias campo.tech.mp con" in manual_payment(settings, 1, "i").text


def test_a_manual_payment_needs_an_account_and_a_reference() -> None:
    with pytest.raises(ValueError, match="alias or cbu must be set"):
        manual_payment(Settings(access_token="x"), 1, "invoice-1")
    with pytest.raises(Invalid, match="reference must be given"):
        manual_payment(Settings(access_token="x", alias="campo.tech"), 1, "")
