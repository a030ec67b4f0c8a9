"""Notifications of MercadoPago: whether one is genuine and fresh, and what it is about.

The signature covers the id in the address, the request's id and an instant; **the body is not
signed**. So a notification says only where to look: read the payment back, always. It comes at
least once, in no certain order; its `id` is the same when it is sent again.

Notifications of QR codes are not signed, and are refused.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from apps.providers.mercadopago.errors import WebhookRefused
from apps.providers.mercadopago.fields import Fields
from apps.providers.mercadopago.settings import Settings
from apps.providers.reading import Unreadable, decode

MOST_AGE_S: Final = 300
_MOST_BYTES: Final = 64 * 1024
_LONGEST_ID: Final = 256
_INSTANT: Final = re.compile(r"\d{10}|\d{13}", re.ASCII)
_MS_DIGITS: Final = 13
"""The reference says milliseconds, its samples have seconds: each is known by its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """Something has happened to `data_id`."""

    id: str
    """Of the notification: one that is sent again has the same."""
    type: str
    """Such as `payment` or `topic_chargebacks_wh`."""
    action: str
    """Such as `payment.updated`; empty if it names none."""
    data_id: str
    """What to read back."""
    is_live: bool
    request_id: str


def read_notification(
    settings: Settings,
    *,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
    now: float | None = None,
) -> Notification:
    """The notification of a request, if MercadoPago sent it in the last five minutes."""
    sent = {name.lower(): value for name, value in headers.items()}
    data_id, request_id = query.get("data.id", ""), sent.get("x-request-id", "")
    instant, signature = _signature_of(sent.get("x-signature", ""))
    manifests = [_manifest(one, request_id, instant) for one in (data_id, data_id.lower())]
    if not _is_genuine(settings.webhook_secret, manifests, signature):
        raise WebhookRefused("the signature of a notification is wrong")
    _check_age(instant, time.time() if now is None else now)
    return _read(body, data_id, request_id)


def _signature_of(header: str) -> tuple[str, str]:
    """The instant and the digest of `ts=…,v1=…`."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    found = {name: value for name, _, value in parts}
    instant, signature = found.get("ts", ""), found.get("v1", "")
    if len(found) != len(parts) or not _INSTANT.fullmatch(instant) or not signature:
        raise WebhookRefused("the signature of a notification is missing or malformed")
    return instant, signature


def _manifest(data_id: str, request_id: str, instant: str) -> str:
    """What is signed; a pair without a value is left out."""
    pairs = ("id", data_id), ("request-id", request_id), ("ts", instant)
    return "".join(f"{name}:{value};" for name, value in pairs if value)


def _is_genuine(secret: str, manifests: Iterable[str], signature: str) -> bool:
    if not secret:  # anyone can sign with an empty one
        raise WebhookRefused("notifications are refused while no webhook_secret is set")
    digests = [
        hmac.new(secret.encode(), one.encode(errors="replace"), hashlib.sha256).hexdigest()
        for one in manifests
    ]
    given = signature.encode(errors="replace")
    return any([hmac.compare_digest(one.encode(), given) for one in digests])  # noqa: C419 - all are compared, always


def _check_age(instant: str, now: float) -> None:
    sent_at = int(instant) / (1000 if len(instant) == _MS_DIGITS else 1)
    if abs(now - sent_at) > MOST_AGE_S:
        raise WebhookRefused(f"a notification must not be older than {MOST_AGE_S} s")


def _read(body: bytes, data_id: str, request_id: str) -> Notification:
    if len(body) > _MOST_BYTES:
        raise WebhookRefused(f"a notification must have at most {_MOST_BYTES} bytes")
    try:
        found = Fields(decode(body, has_decimals=True))
        about = found.inner("data").text_or_empty("id")
        read = Notification(
            id=found.text("id"),
            type=found.text("type"),
            action=found.text_or_empty("action"),
            data_id=data_id or about,
            is_live=found.truth("live_mode"),
            request_id=request_id,
        )
    except Unreadable as error:
        raise WebhookRefused(f"a notification cannot be read: {error}") from None
    if not (_is_name(read.id) and _is_name(read.data_id)):
        raise WebhookRefused("the ids of a notification must be short and printable")
    if about and about.lower() != read.data_id.lower():
        raise WebhookRefused("the body of a notification is about something else than its address")
    return read


def _is_name(text: str) -> bool:
    """The id in a body is not signed: it may be anything."""
    return 0 < len(text) <= _LONGEST_ID and text.isprintable()
