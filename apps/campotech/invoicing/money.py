"""Amounts in centavos, and how people read them."""

from __future__ import annotations


def pesos(cents: int) -> str:
    """As printed in Argentina: 1234567 is `$ 12.345,67`."""
    sign, whole = ("-" if cents < 0 else ""), abs(cents)
    return f"{sign}$ {whole // 100:,}".replace(",", ".") + f",{whole % 100:02}"
