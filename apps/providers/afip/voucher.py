"""A voucher to be authorised: invoice, debit or credit note, receipt.

Amounts are whole cents. Totals are sums of what they are made of, so they always agree. What only
AFIP can judge (classes, dates, receivers) is left to AFIP.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final, Self

from apps.providers.afip.cuit import parse_cuit
from apps.providers.afip.errors import Invalid
from apps.providers.afip.kinds import Concept, DocumentKind, VatCondition, VatRate, VoucherKind

PESOS: Final = "PES"
_MOST_CENTS: Final = 10**15 - 1  # 13 digits before the point, 2 behind
_MOST_POINTS_OF_SALE: Final = 99_998
_MOST_NUMBERS: Final = 99_999_999
_MOST_DOCUMENTS: Final = 99_999_999_999
_HUNDRED: Final = Decimal(100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """Who the voucher is for."""

    document_kind: DocumentKind
    document_number: int
    vat_condition: VatCondition

    def __post_init__(self) -> None:
        """Refuse what can be no document."""
        check_whole("document_number", self.document_number, most=_MOST_DOCUMENTS)
        if self.document_kind in (DocumentKind.CUIT, DocumentKind.CUIL):
            parse_cuit(f"{self.document_number:011d}")
        if (self.document_kind == DocumentKind.UNIDENTIFIED) != (self.document_number == 0):
            raise Invalid("document_number must be 0 for the unidentified, and for no others")


@dataclass(frozen=True, slots=True, kw_only=True)
class VatLine:
    """What one rate is applied to, and what it comes to; each rate once."""

    rate: VatRate
    base_cents: int
    amount_cents: int

    def __post_init__(self) -> None:
        """Refuse what can be no amount."""
        check_whole("base_cents", self.base_cents, most=_MOST_CENTS)
        check_whole("amount_cents", self.amount_cents, most=_MOST_CENTS)

    @classmethod
    def of(cls, rate: VatRate, base_cents: int) -> Self:
        """With the amount that follows, rounded half to even as AFIP does."""
        check_whole("base_cents", base_cents, most=_MOST_CENTS)
        amount = (base_cents * rate.percent / _HUNDRED).quantize(Decimal(1), ROUND_HALF_EVEN)
        return cls(rate=rate, base_cents=base_cents, amount_cents=int(amount))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tribute:
    """Another tax or a perception."""

    id: int
    description: str
    base_cents: int
    percent: Decimal
    amount_cents: int

    def __post_init__(self) -> None:
        """Refuse what can be no amount."""
        check_whole("base_cents", self.base_cents, most=_MOST_CENTS)
        check_whole("amount_cents", self.amount_cents, most=_MOST_CENTS)
        check_decimal("percent", self.percent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """When the service was given, and until when it is to be paid."""

    since: date
    until: date
    pay_by: date

    def __post_init__(self) -> None:
        """Refuse a service that ends before it begins."""
        if self.until < self.since:
            raise Invalid("until must not be before since")


@dataclass(frozen=True, slots=True, kw_only=True)
class Associated:
    """A voucher that a note is about."""

    kind: VoucherKind
    point_of_sale: int
    number: int
    cuit: str | None = None
    date: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The days whose vouchers a note is about, where it names none."""

    since: date
    until: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Voucher:
    """One voucher with its number.

    Write the number down with your invoice **before** you ask for the CAE: after a lost answer it
    is the only way to find out what became of it.
    """

    kind: VoucherKind
    point_of_sale: int
    number: int
    date: date
    receiver: Receiver
    concept: Concept = Concept.GOODS
    service: Service | None = None
    """Needed unless the concept is goods."""
    net_cents: int = 0
    """Taxed, without VAT; in class C all that is billed."""
    untaxed_cents: int = 0
    exempt_cents: int = 0
    vat: tuple[VatLine, ...] = ()
    tributes: tuple[Tribute, ...] = ()
    currency: str = PESOS
    exchange_rate: Decimal = Decimal(1)
    is_paid_in_currency: bool = False
    """Whether a voucher in a foreign currency is paid in that currency."""
    associated: tuple[Associated, ...] = ()
    period: Period | None = None

    def __post_init__(self) -> None:
        """Refuse what no voucher can be."""
        check_series(self.point_of_sale, self.kind)
        check_whole("number", self.number, least=1, most=_MOST_NUMBERS)
        for name in ("net_cents", "untaxed_cents", "exempt_cents"):
            check_whole(name, getattr(self, name), most=_MOST_CENTS)
        check_decimal("exchange_rate", self.exchange_rate)
        if not (len(self.currency) == 3 and self.currency.isascii() and self.currency.isalnum()):
            raise Invalid("currency must be a code of three characters such as PES")
        if self.concept != Concept.GOODS and self.service is None:
            raise Invalid("service must be given unless the concept is goods")
        if self.total_cents > _MOST_CENTS:
            raise Invalid(f"total_cents must be up to {_MOST_CENTS}, got {self.total_cents}")

    @property
    def vat_cents(self) -> int:
        """The sum of its lines."""
        return sum(one.amount_cents for one in self.vat)

    @property
    def tributes_cents(self) -> int:
        """The sum of its lines."""
        return sum(one.amount_cents for one in self.tributes)

    @property
    def total_cents(self) -> int:
        """All of it."""
        billed = self.net_cents + self.untaxed_cents + self.exempt_cents
        return billed + self.vat_cents + self.tributes_cents


def check_series(point_of_sale: int, kind: int) -> None:
    """Refuse what numbers no series of vouchers."""
    check_whole("point_of_sale", point_of_sale, least=1, most=_MOST_POINTS_OF_SALE)
    check_whole("kind", int(kind), least=1, most=999)


def check_number(number: int) -> None:
    """Refuse what is no number of a voucher."""
    check_whole("number", number, least=1, most=_MOST_NUMBERS)


def check_whole(name: str, value: object, *, least: int = 0, most: int) -> None:
    """Refuse all but whole numbers: a float of money is a mistake even where it looks whole."""
    if type(value) is not int or not least <= value <= most:
        raise Invalid(f"{name} must be a whole number from {least} to {most}, got {value!r}")


def check_decimal(name: str, value: object) -> None:
    """Refuse floats here, too, and what is no number."""
    if not isinstance(value, Decimal) or not value.is_finite() or value < 0:
        raise Invalid(f"{name} must be a Decimal from 0, got {value!r}")


def decimal_text(cents: int) -> str:
    """`12100` as `121`, `12150` as `121.5`: as AFIP writes amounts."""
    return plain(Decimal(cents) / _HUNDRED)


def plain(number: Decimal) -> str:
    """Without exponent and without zeros that say nothing."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
