"""WhatsApp: messages, media, and what its webhooks tell."""

from apps.providers.whatsapp.client import Client, Sent
from apps.providers.whatsapp.download import StoredMedia
from apps.providers.whatsapp.errors import (
    Blocked,
    Invalid,
    MediaGone,
    MediaTooLarge,
    OutsideWindow,
    PairLimited,
    Permanent,
    RateLimited,
    Retryable,
    Unauthorized,
    UnknownOutcome,
    WebhookRefused,
    WhatsAppError,
)
from apps.providers.whatsapp.incoming import (
    Batch,
    Inbound,
    MediaMessage,
    OtherMessage,
    ReplyMessage,
    ReportedError,
    Status,
    TextMessage,
)
from apps.providers.whatsapp.outgoing import (
    Button,
    Buttons,
    Media,
    Message,
    Template,
    TemplateButton,
    Text,
)
from apps.providers.whatsapp.settings import Settings
from apps.providers.whatsapp.upstream import waiting_for_recipient, whatsapp_upstream
from apps.providers.whatsapp.webhook import answer_challenge, read_webhook

__all__ = [
    "Batch",
    "Blocked",
    "Button",
    "Buttons",
    "Client",
    "Inbound",
    "Invalid",
    "Media",
    "MediaGone",
    "MediaMessage",
    "MediaTooLarge",
    "Message",
    "OtherMessage",
    "OutsideWindow",
    "PairLimited",
    "Permanent",
    "RateLimited",
    "ReplyMessage",
    "ReportedError",
    "Retryable",
    "Sent",
    "Settings",
    "Status",
    "StoredMedia",
    "Template",
    "TemplateButton",
    "Text",
    "TextMessage",
    "Unauthorized",
    "UnknownOutcome",
    "WebhookRefused",
    "WhatsAppError",
    "answer_challenge",
    "read_webhook",
    "waiting_for_recipient",
    "whatsapp_upstream",
]
