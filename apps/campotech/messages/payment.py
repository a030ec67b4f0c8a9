"""Payments: what MercadoPago tells."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from apps.campotech.messages.base import Message
from apps.campotech.messages.fields import Data, Instant, Name


class PaymentWebhook(Message):
    """A notification whose signature was checked when it came in."""

    webhook_id: Name
    """Of the notification: several of them may be about one payment."""
    event_type: Literal["payment", "chargeback", "refund"]
    mp_payment_id: Name
    raw_payload: Annotated[Data, Field(repr=False)]
    received_at: Instant
    signature: Annotated[Name, Field(repr=False)]
