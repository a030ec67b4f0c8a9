"""What differs between AFIP's environments, or changes with time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal


def _rates() -> dict[str, Decimal]:
    return {"DOL": Decimal("1450.5"), "060": Decimal(1600)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Settings of the stand-in."""

    guard_window: timedelta = timedelta(minutes=10)
    """How long WSAA gives no second ticket; zero: it always does."""
    ticket_life: timedelta = timedelta(hours=12)
    most_per_request: int = 250
    identified_from: Decimal = Decimal(10_000_000)
    """From which total in pesos on the receiver of a voucher of class B must be identified."""
    is_vat_condition_required: bool = True
    """Without it, a missing condition is observed (10245) instead of refused (10246)."""
    exchange_rates: Mapping[str, Decimal] = field(default_factory=_rates)
    """The official ones, of all currencies there are besides pesos."""
