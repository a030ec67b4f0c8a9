"""What makes two messages the same work.

| queue             | key                                                            |
|-------------------|----------------------------------------------------------------|
| afip.invoice      | `idem_{org}_invoice_{invoice}_cae_{punto de venta}`            |
| payment.webhook   | `webhook_mp_{payment}_{event}`                                 |
| whatsapp.outbound | `idem_{org}_wa_{customer}_{template}.{digest}_{made at}`       |
| whatsapp.inbound  | `webhook_wa_{message}`                                         |
| invoice.pdf       | `idem_{org}_pdf_{invoice}_v{version}`                          |
| sync.offline      | `idem_{org}_sync_{device}_{digest of the operations}`          |
| all others        | `idem_{org}_{entity}_{the caller's idempotency key}_{action}`  |

A key is a valid id of a job, made of nothing but the message. A part that is too long for it, or
that has spaces, is written as `~` and its digest; one that begins with `~` is, too, so that no two
texts are written alike. Give keys with `on_conflict="keep"`: a caller that makes its message anew
gives it another time, and it is the same work all the same.

The specification's key of a message has neither its text nor its parameters, and two reminders of
two invoices would be one; so the digest says what is sent, and to which number.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from apps.campotech.messages import (
    AfipInvoice,
    Analytics,
    Cleanup,
    InvoicePdf,
    JobNotification,
    Message,
    PaymentWebhook,
    Reconciliation,
    SchedulerMessage,
    SyncOffline,
    VoiceExtraction,
    VoiceTranscription,
    WhatsAppInbound,
    WhatsAppOutbound,
)
from faena import IdempotencyKey, WebhookKey
from faena.errors import ConfigError

Key = IdempotencyKey | WebhookKey

_WORDS: Final[dict[type[Message], tuple[str, str]]] = {
    VoiceTranscription: ("voice", "transcribe"),
    VoiceExtraction: ("voice", "extract"),
    JobNotification: ("job", "notify"),
    Reconciliation: ("period", "reconcile"),
    Cleanup: ("data", "clean"),
    Analytics: ("event", "record"),
    SchedulerMessage: ("schedule", "fire"),
}
"""Entity and action where the caller's idempotency key says which work it is."""

_MOST_OUTSIDE: Final = 100
_MOST_DEVICE: Final = 48
_MOST_TEMPLATE: Final = 20
_MOST_KEY: Final = 64
_MOST_DISPATCHED: Final = 48
"""With these, no key has more than the 128 characters that an id may have."""


def key_of(message: Message) -> Key:  # noqa: PLR0911 - one for each format
    """The key of a message's work; the same for the same work."""
    match message:
        case AfipInvoice():
            org, invoice = message.org_id, message.invoice_id
            return IdempotencyKey(org, "invoice", invoice, "cae", message.punto_venta)
        case PaymentWebhook():
            payment = _outside(message.mp_payment_id, _MOST_OUTSIDE)
            return WebhookKey("mp", f"{payment}_{message.event_type}")
        case WhatsAppOutbound():
            return _outbound(message)
        case WhatsAppInbound():
            return WebhookKey("wa", _outside(message.wa_message_id, _MOST_OUTSIDE))
        case InvoicePdf():
            return IdempotencyKey(message.org_id, "pdf", message.invoice_id, _version(message))
        case SyncOffline():
            device = _part(message.device_id, _MOST_DEVICE)
            operations = [one.model_dump(mode="json") for one in message.operations]
            return IdempotencyKey(message.org_id, "sync", device, _digest(operations, 32))
        case _:
            entity, action = _WORDS[type(message)]
            request = _part(message.idempotency_key, _MOST_KEY)
            return IdempotencyKey(message.org_id, entity, request, action)


def notification_key(message: PaymentWebhook) -> WebhookKey:
    """The key of one notification, as opposed to that of the payment.

    A payment that is pending and then approved is told twice, under one key of `key_of`. A job with
    that id would drop the second notification, so jobs are told apart by this one. The organisation
    and the payment are part of it: the address and the id of a notification are not signed, so one
    that was sent elsewhere before must not count as known.
    """
    which = [str(message.org_id), message.mp_payment_id, message.webhook_id]
    return WebhookKey("mp.notification", _digest(which, 32))


def dispatch_key(organization: str, name: str, key: str) -> IdempotencyKey:
    """The key of work that was handed over by name: of one organisation, with the caller's key."""
    request = _part(key, _MOST_DISPATCHED)
    return IdempotencyKey(organization, "dispatch", request, name.replace(":", "."))


def parse(text: str) -> Key:
    """The parts of a key; raises ConfigError for a string that is none."""
    try:
        return IdempotencyKey.parse(text)
    except ConfigError:
        return WebhookKey.parse(text)


def _outbound(message: WhatsAppOutbound) -> IdempotencyKey:
    said = message.model_dump(
        mode="json",
        include={
            "message_type", "recipient_phone", "text", "template_name", "template_params",
            "media_url", "media_caption", "job_id", "invoice_id",
        },
    )  # fmt: skip
    name = (message.template_name or message.message_type).replace("_", "-")[:_MOST_TEMPLATE]
    return IdempotencyKey(
        message.org_id,
        "wa",
        message.customer_id or message.recipient_phone,
        f"{name}.{_digest(said, 12)}",
        int(message.created_at.timestamp()),
    )


def _version(message: InvoicePdf) -> str:
    """A PDF that is made again without a version is a version that the caller's key names."""
    if message.version is not None or not message.regenerate:
        return f"v{message.version or 1}"
    return f"again.{_digest(message.idempotency_key, 32)}"


def _part(text: str, most: int) -> str:
    """A part of a key: `_` and `%` inside one take three characters."""
    return _written(text, len(text) + 2 * (text.count("_") + text.count("%")), most)


def _outside(text: str, most: int) -> str:
    """The last part of a webhook's key, which stands there as it is."""
    return _written(text, len(text), most)


def _written(text: str, length: int, most: int) -> str:
    is_clean = text.isprintable() and " " not in text and not text.startswith("~")
    return text if is_clean and length <= most else f"~{_digest(text, 32)}"


def _digest(value: Any, letters: int) -> str:
    exact = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.blake2b(exact, digest_size=letters // 2).hexdigest()
