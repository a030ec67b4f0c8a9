"""Webhooks of WhatsApp: the first question, and whether a delivery is genuine.

The signature covers the raw bytes and has no time: a delivery can be replayed for ever, so messages
and statuses must be known by their ids. Answer 200 at once, and do the work in a job.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from apps.providers.reading import Unreadable, decode
from apps.providers.whatsapp.errors import WebhookRefused
from apps.providers.whatsapp.incoming import Batch, read_batch
from apps.providers.whatsapp.settings import Settings

_MOST_BYTES: Final = 4 * 1024 * 1024
_PREFIX: Final = "sha256="
_LONGEST_CHALLENGE: Final = 1024


def answer_challenge(settings: Settings, query: Mapping[str, str]) -> str:
    """What to answer, as plain text, when Meta asks whether this address is ours."""
    if not settings.verify_token:
        raise WebhookRefused("challenges are refused while no verify_token is set")
    given = query.get("hub.verify_token", "").encode(errors="replace")
    is_known = hmac.compare_digest(given, settings.verify_token.encode())
    if query.get("hub.mode") != "subscribe" or not is_known:
        raise WebhookRefused("a challenge must be a subscription with our verify_token")
    challenge = query.get("hub.challenge", "")
    # Whoever knows the token might have us show their page otherwise.
    if not 0 < len(challenge) <= _LONGEST_CHALLENGE or not challenge.isalnum():
        raise WebhookRefused("a challenge must be letters and digits")
    return challenge


def read_webhook(settings: Settings, *, headers: Mapping[str, str], body: bytes) -> Batch:
    """What a delivery tells, if Meta signed these very bytes."""
    sent = {name.lower(): value for name, value in headers.items()}
    _check_signature(settings.app_secret, sent.get("x-hub-signature-256", ""), body)
    if len(body) > _MOST_BYTES:
        raise WebhookRefused(f"a webhook must have at most {_MOST_BYTES} bytes")
    try:
        return read_batch(decode(body))
    except Unreadable as error:
        raise WebhookRefused(f"a webhook cannot be read: {error}") from None


def _check_signature(secret: str, header: str, body: bytes) -> None:
    if not secret:  # anyone can sign with an empty one
        raise WebhookRefused("webhooks are refused while no app_secret is set")
    expected = _PREFIX + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), header.encode(errors="replace")):
        raise WebhookRefused("the signature of a webhook is wrong")
