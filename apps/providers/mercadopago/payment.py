"""Payments, refunds and chargebacks, as read from MercadoPago: it is the one that knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from apps.providers.mercadopago.errors import Invalid
from apps.providers.mercadopago.fields import Fields
from apps.providers.mercadopago.preference import as_instant
from apps.providers.reading import Unreadable

_MOST_PER_PAGE: Final = 100
_OPEN: Final = frozenset({"pending", "in_process", "authorized", "in_mediation"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """One payment and its state."""

    id: str
    status: str
    """Such as `approved`, `pending`, `rejected`, `refunded`, `charged_back`; others may come."""
    status_detail: str
    """Why, such as `accredited`, `partially_refunded`, `cc_rejected_insufficient_amount`."""
    amount_centavos: int
    refunded_centavos: int
    net_received_centavos: int | None
    """After MercadoPago's fee; None while it is not settled."""
    currency: str
    external_reference: str
    payment_method: str
    created_at: datetime | None
    approved_at: datetime | None
    updated_at: datetime | None

    @property
    def is_approved(self) -> bool:
        """Whether the money was received; some of it may have been given back since."""
        return self.status == "approved"

    @property
    def is_open(self) -> bool:
        """Whether it may still come to another end by itself."""
        return self.status in _OPEN

    @property
    def refundable_centavos(self) -> int:
        """What can still be given back."""
        return self.amount_centavos - self.refunded_centavos if self.is_approved else 0

    @classmethod
    def read(cls, value: object) -> Self:
        """From the answer."""
        found = Fields(value)
        return cls(
            id=found.text("id"),
            status=found.text("status"),
            status_detail=found.text_or_empty("status_detail"),
            amount_centavos=found.centavos("transaction_amount"),
            refunded_centavos=found.centavos_or_none("transaction_amount_refunded") or 0,
            net_received_centavos=found.inner("transaction_details").centavos_or_none(
                "net_received_amount"
            ),
            currency=found.text("currency_id"),
            external_reference=found.text_or_empty("external_reference"),
            payment_method=found.text_or_empty("payment_method_id"),
            created_at=found.instant("date_created"),
            approved_at=found.instant("date_approved"),
            updated_at=found.instant("date_last_updated"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentSearch:
    """Which payments are looked for, oldest first."""

    external_reference: str = ""
    status: str = ""
    begin: datetime | None = None
    """Made at this instant or later; given with `end`."""
    end: datetime | None = None

    def __post_init__(self) -> None:
        """Refuse half a range, and instants that could mean two."""
        if (self.begin is None) != (self.end is None):
            raise Invalid("begin and end must be given together")
        if any(one is not None and one.tzinfo is None for one in (self.begin, self.end)):
            raise Invalid("begin and end must have an offset, got none")

    def as_query(self) -> dict[str, str]:
        """As MercadoPago reads it."""
        wanted = {"external_reference": self.external_reference, "status": self.status}
        if self.begin is not None and self.end is not None:
            wanted |= {
                "range": "date_created",
                "begin_date": as_instant(self.begin),
                "end_date": as_instant(self.end),
            }
        given = {name: value for name, value in wanted.items() if value}
        return {"sort": "date_created", "criteria": "asc", **given}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentPage:
    """Some of the payments that were looked for."""

    payments: tuple[Payment, ...]
    total: int
    offset: int

    @property
    def next_offset(self) -> int | None:
        """Where the next page begins; None if this is the last one."""
        reached = self.offset + len(self.payments)
        return reached if self.payments and reached < self.total else None

    @classmethod
    def read(cls, value: object) -> Self:
        """From the answer."""
        found = Fields(value)
        paging = found.inner("paging")
        return cls(
            payments=tuple(Payment.read(one) for one in found.items("results")),
            total=paging.whole("total"),
            offset=paging.whole("offset"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refund:
    """Money that was given back."""

    id: str
    payment_id: str
    amount_centavos: int
    status: str
    """`approved`, `in_process` or `rejected`."""
    created_at: datetime | None

    @classmethod
    def read(cls, value: object) -> Self:
        """From the answer."""
        found = Fields(value)
        return cls(
            id=found.text("id"),
            payment_id=found.text("payment_id"),
            amount_centavos=found.centavos("amount"),
            status=found.text("status"),
            created_at=found.instant("date_created"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chargeback:
    """A payment that the payer's bank takes back."""

    id: str
    payment_ids: tuple[str, ...]
    amount_centavos: int
    currency: str
    is_coverage_eligible: bool
    is_coverage_applied: bool
    is_documentation_required: bool
    documentation_status: str
    """`pending`, `review_pending`, `valid`, `invalid`, `not_supplied` or `not_applicable`."""
    documentation_deadline: datetime | None

    @classmethod
    def read(cls, value: object) -> Self:
        """From the answer, whose names have a spelling of their own."""
        found = Fields(value)
        return cls(
            id=found.text("id"),
            payment_ids=tuple(_id(one) for one in found.items("payments")),
            amount_centavos=found.centavos("amount"),
            currency=found.text_or_empty("currency"),
            is_coverage_eligible=(
                found.truth("coverage_elegible") or found.truth("coverage_eligible")
            ),
            is_coverage_applied=found.truth("coverage_applied"),
            is_documentation_required=found.truth("documentation_required"),
            documentation_status=found.text_or_empty("documentation_status"),
            documentation_deadline=found.instant("date_documentation_deadline"),
        )


def check_per_page(number: int) -> int:
    """How many payments a page may hold."""
    if not 1 <= number <= _MOST_PER_PAGE:
        raise Invalid(f"limit must be from 1 to {_MOST_PER_PAGE}, got {number}")
    return number


def _id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Unreadable("an id is neither a number nor a text")
    return str(value)
