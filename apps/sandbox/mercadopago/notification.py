"""Notifications as MercadoPago sends them, and as somebody would who is not MercadoPago."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from urllib.parse import urlencode

from apps.sandbox.webhook import Webhook

Forgery = Literal["signature", "secret", "unsigned", "old", "future", "body"]
"""What is wrong with one: digits that sign nothing, another secret, no signature, an instant that
is six minutes away, a body about something else."""

_TOO_FAR: Final = timedelta(minutes=6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(Webhook):
    """One notification."""

    notification_id: int

    @property
    def subject(self) -> str:
        """As the ledger names it."""
        return str(self.notification_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What is told, and how."""

    url: str
    data_id: str
    notification_id: int
    topic: str = "payment"
    action: str = "payment.updated"
    user_id: int = 0
    at: datetime
    secret: str = field(repr=False)
    forgery: Forgery | None = None
    unit: Literal["s", "ms"] = "s"
    is_id_lowered: bool = False
    """Whether the id is signed in lower case, as the reference has it; SDKs keep it as it is."""

    def signed(self) -> Delivery:
        """Ready to be sent."""
        request_id = str(uuid.uuid4())
        headers = {"content-type": "application/json", "x-request-id": request_id}
        if self.forgery != "unsigned":
            headers["x-signature"] = self._signature(request_id)
        query = urlencode({"data.id": self.data_id, "type": self.topic})
        return Delivery(
            url=f"{self.url}?{query}",
            headers=headers,
            body=json.dumps(self._body()).encode(),
            notification_id=self.notification_id,
        )

    def _signature(self, request_id: str) -> str:
        moved = {"old": -_TOO_FAR, "future": _TOO_FAR}.get(self.forgery or "", timedelta())
        seconds = (self.at + moved).timestamp()
        ts = f"{seconds * 1000:.0f}" if self.unit == "ms" else f"{seconds:.0f}"
        id_ = self.data_id.lower() if self.is_id_lowered else self.data_id
        manifest = f"id:{id_};request-id:{request_id};ts:{ts};"
        secret = "another" if self.forgery == "secret" else self.secret
        digest = hmac.new(secret.encode(), manifest.encode(), hashlib.sha256).hexdigest()
        return f"ts={ts},v1={'0' * 64 if self.forgery == 'signature' else digest}"

    def _body(self) -> dict[str, Any]:
        about = f"{self.data_id}0" if self.forgery == "body" else self.data_id
        return {
            "id": self.notification_id,
            "live_mode": True,
            "type": self.topic,
            "date_created": self.at.isoformat(timespec="milliseconds"),
            "user_id": self.user_id,
            "api_version": "v1",
            "action": self.action,
            "data": {"id": about},
        }
