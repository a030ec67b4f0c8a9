"""What a customer is asked to pay: a preference, and the link to its checkout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self

from apps.providers.mercadopago.amount import check_centavos, to_json
from apps.providers.mercadopago.errors import Invalid
from apps.providers.mercadopago.fields import Fields

_MOST_REFERENCE: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of what is paid for."""

    title: str
    unit_price_centavos: int
    quantity: int = 1
    id: str = ""
    description: str = ""
    currency: str = "ARS"

    def __post_init__(self) -> None:
        """Refuse what MercadoPago would refuse."""
        if not self.title:
            raise Invalid("title must be given, got none")
        check_centavos("unit_price_centavos", self.unit_price_centavos)
        if self.quantity < 1:
            raise Invalid(f"quantity must be 1 or more, got {self.quantity}")

    def as_json(self) -> dict[str, Any]:
        """As MercadoPago reads it."""
        return {
            "title": self.title,
            "quantity": self.quantity,
            "currency_id": self.currency,
            "unit_price": to_json(self.unit_price_centavos),
            **({"id": self.id} if self.id else {}),
            **({"description": self.description} if self.description else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """What a customer is asked to pay."""

    items: Sequence[Item]
    external_reference: str
    """Our own id of what is paid; payments carry it, and are found by it."""
    payer_email: str = field(default="", repr=False)
    notification_url: str = ""
    """Where notifications of this payment go; empty: where the application says."""
    success_url: str = ""
    failure_url: str = ""
    pending_url: str = ""
    expires_at: datetime | None = None
    statement_descriptor: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        """Refuse what could not be found again, or would never end."""
        if not self.items:
            raise Invalid("items must hold one at least, got none")
        if not 0 < len(self.external_reference) <= _MOST_REFERENCE:
            raise Invalid(f"external_reference must have 1 to {_MOST_REFERENCE} characters")
        if self.expires_at is not None and self.expires_at.tzinfo is None:
            raise Invalid("expires_at must have an offset, got none")

    @property
    def amount_centavos(self) -> int:
        """What is paid in all."""
        return sum(one.unit_price_centavos * one.quantity for one in self.items)

    def as_json(self) -> dict[str, Any]:
        """As MercadoPago reads it: what was not given is left out."""
        wanted: dict[str, Any] = {
            "items": [one.as_json() for one in self.items],
            "external_reference": self.external_reference,
            "payer": {"email": self.payer_email} if self.payer_email else None,
            "notification_url": self.notification_url,
            "statement_descriptor": self.statement_descriptor,
            "metadata": dict(self.metadata),
            **self._addresses(),
            **self._expiry(),
        }
        return {name: value for name, value in wanted.items() if value}

    def _addresses(self) -> dict[str, Any]:
        urls = {
            "success": self.success_url,
            "failure": self.failure_url,
            "pending": self.pending_url,
        }
        given = {name: url for name, url in urls.items() if url}
        return {"back_urls": given, "auto_return": "approved" if self.success_url else ""}

    def _expiry(self) -> dict[str, Any]:
        if self.expires_at is None:
            return {}
        return {"expires": True, "expiration_date_to": as_instant(self.expires_at)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A preference that was made, and where the customer pays."""

    id: str
    url: str
    sandbox_url: str
    external_reference: str

    @classmethod
    def read(cls, value: object) -> Self:
        """From the answer."""
        found = Fields(value)
        return cls(
            id=found.text("id"),
            url=found.text("init_point"),
            sandbox_url=found.text_or_empty("sandbox_init_point"),
            external_reference=found.text_or_empty("external_reference"),
        )


def as_instant(instant: datetime) -> str:
    """ISO 8601 with milliseconds and offset, as MercadoPago writes and reads instants."""
    return instant.isoformat(timespec="milliseconds")
