"""Amounts: whole centavos here, decimal numbers on the wire, floats nowhere in between.

A float carries the digits to the encoder only: up to fifteen of them come out as they went in.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from apps.providers.mercadopago.errors import Invalid

MOST_CENTAVOS: Final = 10**13
"""A hundred billion pesos: beyond it a JSON number might not come out as it went in."""


def check_centavos(what: str, centavos: object) -> int:
    """A whole number of centavos above 0."""
    if isinstance(centavos, bool) or not isinstance(centavos, int):
        raise Invalid(f"{what} must be a whole number of centavos, got {type(centavos).__name__}")
    if not 0 < centavos <= MOST_CENTAVOS:
        raise Invalid(f"{what} must be from 1 to {MOST_CENTAVOS} centavos, got {centavos}")
    return centavos


def to_json(centavos: int) -> int | float:
    """The number that JSON shows: 1050 is 10.5."""
    whole, rest = divmod(centavos, 100)
    return whole if rest == 0 else float(Decimal(centavos).scaleb(-2))


def to_text(centavos: int) -> str:
    """For people and forms: 1050 is `10.50`."""
    return f"{Decimal(centavos).scaleb(-2):.2f}"


def from_json(value: object) -> int:
    """The centavos of a number, or of a text that is one, as MercadoPago writes either."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise ValueError("an amount must be a number")  # noqa: TRY004 - data, not a program's types
    try:
        centavos = Decimal(value).scaleb(2)
    except ArithmeticError:
        raise ValueError("an amount must be a number") from None
    if not centavos.is_finite() or abs(centavos) > MOST_CENTAVOS or centavos % 1:
        raise ValueError("an amount must have at most two decimals")
    return int(centavos)
