"""Webhooks as Meta sends them, and as somebody would who is not Meta."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from apps.sandbox.webhook import Webhook

Forgery = Literal["signature", "secret", "unsigned", "body"]
"""What is wrong with one: digits that sign nothing, another secret, no signature, a body that was
changed after it was signed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One piece of news: a message of a customer, a status of ours, an error of the account."""

    id: str
    kind: Literal["messages", "statuses", "errors"]
    value: Mapping[str, Any]
    contact: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(Webhook):
    """One webhook, with the ids of what it tells."""

    ids: tuple[str, ...]

    @property
    def subject(self) -> str:
        """As the ledger names it."""
        return " ".join(self.ids)


def envelope(
    events: Sequence[Event], *, account_id: str, metadata: Mapping[str, str]
) -> Mapping[str, Any]:
    """What is sent: an entry for each piece of news."""
    entries = [{"id": account_id, "changes": [_change(one, metadata)]} for one in events]
    return {"object": "whatsapp_business_account", "entry": entries}


def signed(
    url: str, content: Mapping[str, Any], ids: Sequence[str], secret: str, forgery: Forgery | None
) -> Delivery:
    """Ready to be sent."""
    body = json.dumps(content, separators=(",", ":")).encode()  # as Meta: \u for what is not ASCII
    key = "another" if forgery == "secret" else secret
    digest = hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    headers = {"content-type": "application/json"}
    if forgery != "unsigned":
        digits = "0" * 64 if forgery == "signature" else digest
        headers["x-hub-signature-256"] = f"sha256={digits}"
    if forgery == "body":
        body = body.replace(b'"id"', b'"id" ', 1)
    return Delivery(url=url, headers=headers, body=body, ids=tuple(ids))


def _change(event: Event, metadata: Mapping[str, str]) -> dict[str, Any]:
    value: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "metadata": metadata,
        event.kind: [event.value],
    }
    if event.contact is not None:
        value["contacts"] = [event.contact]
    return {"field": "messages", "value": value}
