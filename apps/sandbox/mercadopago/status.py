"""The statuses of payments, why a payment has one, and which may follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_REJECTED_CARD: Final = [
    "other_reason",
    "insufficient_amount",
    "bad_filled_card_number",
    "bad_filled_date",
    "bad_filled_security_code",
    "bad_filled_other",
    "call_for_authorize",
    "card_disabled",
    "card_error",
    "duplicated_payment",
    "high_risk",
    "blacklist",
    "invalid_installments",
    "max_attempts",
    "3ds_mandatory",
    "3ds_challenge",
]

STATUSES: Final[Mapping[str, tuple[str, ...]]] = {
    "approved": ("accredited", "partially_refunded"),
    "authorized": ("pending_capture",),
    "in_process": ("pending_contingency", "pending_review_manual", "offline_process"),
    "pending": ("pending_waiting_payment", "pending_waiting_transfer", "pending_challenge"),
    "rejected": (
        *(f"cc_rejected_{one}" for one in _REJECTED_CARD),
        "cc_amount_rate_limit_exceeded",
        "rejected_by_bank",
        "rejected_by_regulations",
        "rejected_insufficient_data",
        "bank_error",
        "insufficient_amount",
    ),
    "cancelled": ("expired", "by_collector", "by_payer"),
    "refunded": ("refunded", "by_admin"),
    "charged_back": ("in_process", "settled", "reimbursed"),
    "in_mediation": ("",),
}
"""Each with its details; the first is the one that is meant if none is given."""

_NEXT: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset({"in_process", "authorized", "approved", "rejected", "cancelled"}),
    "in_process": frozenset({"authorized", "approved", "rejected", "cancelled"}),
    "authorized": frozenset({"approved", "cancelled"}),
    "approved": frozenset({"in_mediation", "charged_back"}),
    "in_mediation": frozenset({"approved", "charged_back"}),
    "charged_back": frozenset({"charged_back"}),
}
"""Money goes back through refunds only, so `refunded` follows from sums."""


def check_detail(status: str, detail: str | None) -> str:
    """The detail of a status: the given one if it belongs to it."""
    if status not in STATUSES:
        raise ValueError(f"status must be one of {', '.join(STATUSES)}, got {status!r}")
    detail = STATUSES[status][0] if detail is None else detail
    if detail not in STATUSES[status]:
        raise ValueError(f"status_detail of {status} must be a known one, got {detail!r}")
    return detail


def check_step(before: str, after: str) -> None:
    """Refuse what cannot follow."""
    if after not in _NEXT.get(before, ()):
        raise ValueError(f"a payment that is {before} cannot become {after}")
