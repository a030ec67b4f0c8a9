"""An amount of money, in whole millionths of a currency."""

from __future__ import annotations

from typing import Final, NamedTuple

_MICRO: Final = 1_000_000
_FEWEST: Final = 2


class Money(NamedTuple):
    """An amount."""

    micro: int
    """In millionths."""
    currency: str

    def __str__(self) -> str:
        return amount_text(self)


def amount_text(money: Money, thousands: str = "") -> str:
    """An amount such as `12.30 USD`: exact, with two decimals at least.

    `thousands` separates groups of three digits, for readers; a program reads the text without it.
    """
    whole, rest = divmod(abs(money.micro), _MICRO)
    sign = "-" if money.micro < 0 else ""
    decimals = f"{rest:06}".rstrip("0").ljust(_FEWEST, "0")
    return f"{sign}{whole:,}".replace(",", thousands) + f".{decimals} {money.currency}"
