"""Notifications as MercadoPago sends them, and as somebody would who is not MercadoPago."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from urllib.parse import urlencode, urlsplit

import httpx

Forgery = Literal["signature", "secret", "unsigned", "old", "future", "body"]
"""What is wrong with one: digits that sign nothing, another secret, no signature, an instant that
is six minutes away, a body about something else."""

_ANSWER_WITHIN_S: Final = 22
_TOO_FAR: Final = timedelta(minutes=6)
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One notification that was sent; it can be sent again as it is."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    notification_id: int
    status: int | None = None
    """What the receiver answered; None if it did not."""


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


async def send(delivery: Delivery) -> Delivery:
    """Send it, to this machine only; with what the receiver answered."""
    if urlsplit(delivery.url).hostname not in _LOOPBACK:
        raise ValueError("url must be on loopback")
    try:
        async with httpx.AsyncClient(timeout=_ANSWER_WITHIN_S, trust_env=False) as http:
            response = await http.post(
                delivery.url, content=delivery.body, headers=dict(delivery.headers)
            )
    except httpx.HTTPError:
        return replace(delivery, status=None)
    return replace(delivery, status=response.status_code)
