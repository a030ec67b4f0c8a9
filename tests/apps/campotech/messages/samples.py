"""A valid message of each queue, as the web application spells it, with all optional fields."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

ORG: Final = "0f8fad5b-d9cb-469f-a165-70867728950e"
ID: Final = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
OTHER_ID: Final = "e4eaaaf2-d142-11e1-b3e4-080027620cdd"
WHEN: Final = "2025-12-01T10:00:00.000Z"

BASE: Final[dict[str, Any]] = {
    "orgId": ORG,
    "idempotencyKey": "request-4711-abc",
    "correlationId": OTHER_ID,
    "createdAt": WHEN,
    "priority": 5,
    "metadata": {"source": "web"},
}

OPERATION: Final[dict[str, Any]] = {
    "type": "update",
    "localId": "local-1",
    "serverId": ID,
    "entityType": "job",
    "data": {"status": "done", "photos": [1, 2]},
    "clientTimestamp": WHEN,
    "vectorClock": {"device-1": 3, "server": 0},
}

_OWN: Final[dict[str, dict[str, Any]]] = {
    "afip.invoice": {
        "invoiceId": ID,
        "invoiceType": "B",
        "puntoVenta": 4,
        "customerId": OTHER_ID,
        "total": 1500.5,
    },
    "payment.webhook": {
        "webhookId": "12345",
        "eventType": "payment",
        "mpPaymentId": "98765",
        "rawPayload": {"action": "payment.created", "data": {"id": "98765"}},
        "receivedAt": WHEN,
        "signature": "ts=1701234567,v1=abcdef",
    },
    "whatsapp.outbound": {
        "messageType": "template",
        "recipientPhone": "+5491123456789",
        "customerId": OTHER_ID,
        "templateName": "visit_reminder",
        "templateParams": ["Ana", "10:00"],
        "jobId": ID,
        "invoiceId": ID,
    },
    "whatsapp.inbound": {
        "waMessageId": "wamid.HBgNNTQ5MTEyMzQ1Njc4ORUCABIYFjNFQjA=",
        "waTimestamp": WHEN,
        "senderPhone": "5491123456789",
        "messageType": "voice",
        "content": "",
        "mediaId": "1234567890",
        "mediaMimeType": "audio/ogg; codecs=opus",
        "isBusinessInitiated": False,
    },
    "voice.transcription": {
        "messageId": ID,
        "audioUrl": "https://media.example.com/a.ogg?sig=a%2Fb",
        "audioDuration": 42,
        "audioMimeType": "audio/ogg",
        "language": "es",
        "customerId": OTHER_ID,
    },
    "voice.extraction": {
        "transcriptId": ID,
        "transcription": "el martes a las diez",
        "confidence": 0.93,
        "messageId": OTHER_ID,
        "customerId": OTHER_ID,
    },
    "job.notification": {
        "jobId": ID,
        "notificationType": "reminder_24h",
        "customerId": OTHER_ID,
        "technicianId": OTHER_ID,
        "scheduledTime": WHEN,
    },
    "invoice.pdf": {"invoiceId": ID, "regenerate": True, "sendAfter": False, "version": 2},
    "sync.offline": {"userId": ID, "deviceId": "device-1", "operations": [OPERATION]},
    "reconciliation": {
        "reconciliationType": "payments",
        "dateFrom": "2025-11-01",
        "dateTo": "2025-11-30",
        "fullReconciliation": True,
    },
    "cleanup": {"cleanupType": "expired_otps", "olderThan": WHEN, "dryRun": True},
    "analytics": {
        "eventType": "invoice.viewed",
        "eventData": {"page": 3},
        "userId": ID,
        "sessionId": "session-1",
        "timestamp": WHEN,
    },
    "scheduler": {"scheduledJobType": "job_reminder", "targetId": ID, "scheduledFor": WHEN},
}

QUEUES: Final = tuple(_OWN)


def sample(queue: str, **changes: Any) -> dict[str, Any]:
    """A message with other values in some fields; `...` leaves a field out."""
    fields = deepcopy(BASE | _OWN[queue]) | changes
    return {name: value for name, value in fields.items() if value is not ...}


def operation(**changes: Any) -> dict[str, Any]:
    """One change of an entity; `...` leaves a field out."""
    fields = deepcopy(OPERATION) | changes
    return {name: value for name, value in fields.items() if value is not ...}
