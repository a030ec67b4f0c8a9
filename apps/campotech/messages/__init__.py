"""The payloads of CampoTech's jobs: one schema for each queue, checked before anything is sent.

Names in Python are `snake_case`; JSON has the web application's `camelCase`, and both are read. How
large a payload may be is the queue's business.
"""

from apps.campotech.messages.base import Message
from apps.campotech.messages.catalogue import DISPATCHED, MESSAGES
from apps.campotech.messages.invoice import AfipInvoice, InvoicePdf
from apps.campotech.messages.notification import JobNotification
from apps.campotech.messages.payment import PaymentWebhook
from apps.campotech.messages.sync import Operation, SyncOffline
from apps.campotech.messages.upkeep import Analytics, Cleanup, Reconciliation, SchedulerMessage
from apps.campotech.messages.voice import VoiceExtraction, VoiceTranscription
from apps.campotech.messages.whatsapp import WhatsAppInbound, WhatsAppOutbound

__all__ = [
    "DISPATCHED",
    "MESSAGES",
    "AfipInvoice",
    "Analytics",
    "Cleanup",
    "InvoicePdf",
    "JobNotification",
    "Message",
    "Operation",
    "PaymentWebhook",
    "Reconciliation",
    "SchedulerMessage",
    "SyncOffline",
    "VoiceExtraction",
    "VoiceTranscription",
    "WhatsAppInbound",
    "WhatsAppOutbound",
]
