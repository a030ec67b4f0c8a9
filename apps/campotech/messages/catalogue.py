"""Which message each queue takes, and what comes with each name that the web application uses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from apps.campotech.messages.base import Message
from apps.campotech.messages.dispatched import (
    ArchiveProcess,
    Dispatched,
    InvoiceAfipSubmit,
    InvoiceGenerate,
    OfOrganization,
    RatingRequest,
    UserNotification,
    VoiceTranscribe,
    WhatsAppRespond,
)
from apps.campotech.messages.invoice import AfipInvoice, InvoicePdf
from apps.campotech.messages.notification import JobNotification
from apps.campotech.messages.payment import PaymentWebhook
from apps.campotech.messages.sync import SyncOffline
from apps.campotech.messages.upkeep import Analytics, Cleanup, Reconciliation, SchedulerMessage
from apps.campotech.messages.voice import VoiceExtraction, VoiceTranscription
from apps.campotech.messages.whatsapp import WhatsAppInbound, WhatsAppOutbound

MESSAGES: Final[Mapping[str, type[Message]]] = MappingProxyType(
    {
        "afip.invoice": AfipInvoice,
        "payment.webhook": PaymentWebhook,
        "whatsapp.outbound": WhatsAppOutbound,
        "whatsapp.inbound": WhatsAppInbound,
        "voice.transcription": VoiceTranscription,
        "voice.extraction": VoiceExtraction,
        "job.notification": JobNotification,
        "invoice.pdf": InvoicePdf,
        "sync.offline": SyncOffline,
        "reconciliation": Reconciliation,
        "cleanup": Cleanup,
        "analytics": Analytics,
        "scheduler": SchedulerMessage,
    }
)
"""By the queue's name."""

DISPATCHED: Final[Mapping[str, type[Dispatched]]] = MappingProxyType(
    {
        "whatsapp:respond": WhatsAppRespond,
        "notification:push": UserNotification,
        "voice:transcribe": VoiceTranscribe,
        "notification:sms": UserNotification,
        "notification:email": UserNotification,
        "rating:request": RatingRequest,
        "invoice:generate": InvoiceGenerate,
        "invoice:afip-submit": InvoiceAfipSubmit,
        "report:generate": OfOrganization,
        "analytics:calculate": OfOrganization,
        "archive:process": ArchiveProcess,
    }
)
"""By the name that the web application uses."""
