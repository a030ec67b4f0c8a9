"""Rules about amounts: precision, sums, VAT lines, tributes, currency."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from apps.sandbox.afip.case import Case, is_close
from apps.sandbox.afip.classes import LOOSE_VAT
from apps.sandbox.afip.detail import TributeLine, VatLine

_PERCENT: Final = {
    3: Decimal(0),
    4: Decimal("10.5"),
    5: Decimal(21),
    6: Decimal(27),
    8: Decimal(5),
    9: Decimal("2.5"),
}
_ZERO_RATE: Final = 3
_TRIBUTES: Final = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 99})
_OTHER_TRIBUTE: Final = 99


def amounts(case: Case) -> Iterator[int]:
    """Each amount alone, then the total."""
    sent = case.detail
    if any(
        _is_too_precise(one)
        for one in (
            *(sent.total, sent.untaxed, sent.net, sent.exempt),
            *(sent.tributes_total, sent.vat_total),
            *(one.base for one in (*(sent.vat or ()), *(sent.tributes or ()))),
            *(one.amount for one in (*(sent.vat or ()), *(sent.tributes or ()))),
        )
    ):
        yield 10056
    if sent.untaxed < 0 or (case.is_c and sent.untaxed):
        yield 10043
    if sent.exempt < 0 or (case.is_c and sent.exempt):
        yield 10044
    if sent.net < 0:
        yield 10045
    if sent.tributes_total < 0:
        yield 10046
    if sent.vat_total < 0 or (case.is_c and sent.vat_total):
        yield 10047
    if sent.total < 0:
        yield 10065
    if not is_close(sent.total, _parts(case)):
        yield 10048


def vat(case: Case) -> Iterator[int]:
    """VAT lines: there, known, each once, and adding up."""
    sent = case.detail
    lines = sent.vat
    if case.is_c:
        if lines is not None:
            yield 10071
        return
    if sent.net > 0 and not lines:
        yield 10070
    if (sent.vat_total > 0 or lines is not None) and not lines:
        yield 10018
    if not lines:
        return
    if sent.vat_total == 0 and any(one.id != _ZERO_RATE for one in lines):
        yield 10018
    if len({one.id for one in lines}) < len(lines):
        yield 10022
    if not is_close(sum((one.amount for one in lines), Decimal(0)), sent.vat_total, len(lines)):
        yield 10023
    yield from _vat_lines(case, lines)


def tributes(case: Case) -> Iterator[int]:
    """Other taxes: there if they have an amount, known, and adding up."""
    lines, total = case.detail.tributes, case.detail.tributes_total
    if bool(lines) != (total > 0) or (lines is not None and not lines):
        yield 10024
    if not lines:
        return
    for one in lines:
        yield from _tribute(one)
    if not is_close(sum((one.amount for one in lines), Decimal(0)), total, len(lines)):
        yield 10029


def currency(case: Case) -> Iterator[int]:
    """Pesos at 1, or a known currency near its official rate."""
    sent = case.detail
    rates, rate, mark = case.terms.exchange_rates, sent.rate, sent.is_same_currency
    if mark not in (None, "S", "N"):
        yield 10239
    if sent.currency == "PES":
        if rate != 1:
            yield 10039
        if mark == "S":
            yield 10241
        return
    official = rates.get(sent.currency)
    if official is None:
        yield 10037
    elif rate is None:
        if mark != "S":
            yield 10038
    elif rate <= 0 or (mark == "S" and rate != official):
        yield 10038
    elif not official * Decimal("0.02") <= rate <= official * 4:
        yield 10119


def _parts(case: Case) -> Decimal:
    sent = case.detail
    if case.is_c:
        return sent.net + sent.tributes_total
    return sent.untaxed + sent.net + sent.exempt + sent.tributes_total + sent.vat_total


def _vat_lines(case: Case, lines: tuple[VatLine, ...]) -> Iterator[int]:
    is_loose = case.kind in LOOSE_VAT
    for one in lines:
        if one.id not in _PERCENT and not (is_loose and one.id == 0):
            yield 10019
        elif not is_loose and not is_close(one.amount, one.base * _PERCENT[one.id] / 100):
            yield 10051
        if not is_loose and one.base <= 0:
            yield 10020
        if one.amount < 0:
            yield 10021
    bases = sum((one.base for one in lines), Decimal(0))
    if not is_loose and not is_close(bases, case.detail.net, len(lines)):
        yield 10061


def _tribute(one: TributeLine) -> Iterator[int]:
    if one.id not in _TRIBUTES:
        yield 10025
    if one.base < 0:
        yield 10026
    if one.percent < 0:
        yield 10027
    if one.amount < 0:
        yield 10028
    if one.id == _OTHER_TRIBUTE and not one.description:
        yield 10042


def _is_too_precise(amount: Decimal) -> bool:
    """More than 13 digits before the point or 2 behind it."""
    return abs(amount) >= 10**13 or amount != amount.quantize(Decimal("0.01"))
