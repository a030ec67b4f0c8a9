"""What all messages have in common, and how fields of each kind are read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError
from pydantic.alias_generators import to_snake

from apps.campotech.messages import MESSAGES, InvoicePdf
from tests.apps.campotech.messages.judge import OK, judged
from tests.apps.campotech.messages.samples import ID, QUEUES, WHEN, sample

AN_INSTANT = "must be an instant with its offset, such as 2025-12-01T10:00:00Z"
A_UUID = "must be a UUID, such as 0f8fad5b-d9cb-469f-a165-70867728950e"
A_DATETIME = (
    "input should be a valid datetime or date, month value is outside expected range of 1-12"
)
EXTRA = "extra inputs are not permitted"
IN_RANGE = "must be an instant from 1970 to 9999"
LATE = datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=5)))
EARLY = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))

TABLE: list[tuple[dict[str, Any], str]] = [
    ({"orgId": ID.upper()}, OK),
    ({"orgId": UUID(ID)}, OK),
    ({"orgId": ...}, "orgId field required"),
    *(({"orgId": bad}, f"orgId {A_UUID}")
      for bad in ("", "org-1", ID[:-1], ID + "0", "g" + ID[1:], f"{{{ID}}}", f"urn:uuid:{ID}",
                  ID.replace("-", ""), f"{ID}\n", bytes(16), 5, None, [ID])),
    ({"idempotencyKey": "k" * 16}, OK),
    ({"idempotencyKey": "k" * 64}, OK),
    ({"idempotencyKey": "k" * 15}, "idempotencyKey string should have at least 16 characters"),
    ({"idempotencyKey": "k" * 65}, "idempotencyKey string should have at most 64 characters"),
    ({"idempotencyKey": 10**20}, "idempotencyKey input should be a valid string"),
    ({"idempotencyKey": ...}, "idempotencyKey field required"),
    ({"correlationId": ...}, OK),
    ({"correlationId": "x" * 36}, f"correlationId {A_UUID}"),
    ({"createdAt": "2025-12-01T07:00:00-03:00"}, OK),
    ({"createdAt": datetime(2025, 12, 1, tzinfo=UTC)}, OK),
    ({"createdAt": "1970-01-01T00:00:00Z"}, OK),
    ({"createdAt": "9999-12-31T23:59:59Z"}, OK),
    ({"createdAt": ...}, "createdAt field required"),
    ({"createdAt": "1969-12-31T23:59:59Z"}, f"createdAt {IN_RANGE}"),
    ({"createdAt": EARLY}, f"createdAt {IN_RANGE}"),
    ({"createdAt": LATE}, f"createdAt {IN_RANGE}"),
    ({"createdAt": "2025-12-01T10:00:00"}, "createdAt input should have timezone info"),
    ({"createdAt": datetime(2025, 12, 1)}, "createdAt input should have timezone info"),  # noqa: DTZ001 - a naive one
    ({"createdAt": "2025-12-01"}, f"createdAt {AN_INSTANT}"),
    ({"createdAt": "1701234567"}, f"createdAt {AN_INSTANT}"),
    ({"createdAt": 1701234567}, f"createdAt {AN_INSTANT}"),
    ({"createdAt": None}, f"createdAt {AN_INSTANT}"),
    ({"createdAt": "2025-13-01T10:00:00Z"}, f"createdAt {A_DATETIME}"),
    ({"priority": 1}, OK),
    ({"priority": 100}, OK),
    ({"priority": ...}, OK),
    ({"priority": 0}, "priority input should be greater than or equal to 1"),
    ({"priority": 101}, "priority input should be less than or equal to 100"),
    ({"priority": 1.5}, "priority input should be a valid integer"),
    ({"priority": "5"}, "priority input should be a valid integer"),
    ({"priority": True}, "priority input should be a valid integer"),
    ({"metadata": {}}, OK),
    ({"metadata": ...}, OK),
    ({"metadata": {"a b": 1}}, "metadata['a b'] input should be a valid string"),
    ({"metadata": {"a": {"b": "c"}}}, "metadata.a input should be a valid string"),
    ({"metadata": ["a"]}, "metadata input should be a valid dictionary"),
    ({"metadata": None}, "metadata input should be a valid dictionary"),
    ({"orgID": ID}, f"orgID {EXTRA}"),
    ({"org_id": ID}, f"org_id {EXTRA}"),
    ({"a": 1, "__proto__": {}}, f"a {EXTRA}; __proto__ {EXTRA}"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), TABLE)
async def test_the_common_fields_are_judged_as_the_specification_says(
    changes: dict[str, Any], says: str
) -> None:
    assert await judged("invoice.pdf", sample("invoice.pdf", **changes)) == says


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize(
    "changes",
    [{"orgId": "x"}, {"idempotencyKey": "short"}, {"createdAt": 5}, {"priority": 0},
     {"metadata": {"a": 1}}, {"correlationId": "x"}, {"more": 1}],
)  # fmt: skip
async def test_the_message_of_every_queue_has_the_common_fields(
    queue: str, changes: dict[str, Any]
) -> None:
    (name,) = changes
    assert (await judged(queue, sample(queue, **changes))).split(";")[0].startswith(name)


@pytest.mark.parametrize("queue", QUEUES)
async def test_the_sample_of_every_queue_is_valid(queue: str) -> None:
    assert await judged(queue, sample(queue)) == OK


@pytest.mark.parametrize("queue", QUEUES)
async def test_a_message_may_be_spelt_as_python_does(queue: str) -> None:
    camel = sample(queue)
    snake = {to_snake(name): value for name, value in camel.items()}
    assert camel.keys() & snake.keys() < camel.keys()
    assert await judged(queue, snake) == OK
    assert MESSAGES[queue].model_validate(snake) == MESSAGES[queue].model_validate(camel)


REQUIRED = {
    "afip.invoice": "invoiceId invoiceType puntoVenta customerId total",
    "payment.webhook": "webhookId eventType mpPaymentId rawPayload receivedAt signature",
    "whatsapp.outbound": "messageType recipientPhone",
    "whatsapp.inbound": "waMessageId waTimestamp senderPhone messageType isBusinessInitiated",
    "voice.transcription": "messageId audioUrl audioDuration audioMimeType",
    "voice.extraction": "transcriptId transcription confidence messageId",
    "job.notification": "jobId notificationType customerId",
    "invoice.pdf": "invoiceId",
    "sync.offline": "userId deviceId operations",
    "reconciliation": "reconciliationType dateFrom dateTo",
    "cleanup": "cleanupType",
    "analytics": "eventType eventData timestamp",
    "scheduler": "scheduledJobType scheduledFor",
}
CONDITIONAL = {"whatsapp.outbound": {"templateName"}, "job.notification": {"scheduledTime"}}


@pytest.mark.parametrize("queue", QUEUES)
async def test_a_message_needs_what_the_specification_requires_and_no_more(queue: str) -> None:
    needed = {"orgId", "idempotencyKey", "createdAt", *REQUIRED[queue].split()}
    for name in sample(queue).keys() - CONDITIONAL.get(queue, set()):
        says = f"{name} field required" if name in needed else OK
        assert await judged(queue, sample(queue, **{name: ...})) == says


def test_an_instant_is_kept_in_utc() -> None:
    here = InvoicePdf.model_validate(sample("invoice.pdf", createdAt="2025-12-01T07:00:00-03:00"))
    assert here.created_at == datetime(2025, 12, 1, 10, tzinfo=UTC)
    assert here.created_at.tzinfo is UTC
    assert here == InvoicePdf.model_validate(sample("invoice.pdf", createdAt=WHEN))


def test_a_message_cannot_be_changed() -> None:
    message = InvoicePdf.model_validate(sample("invoice.pdf"))
    with pytest.raises(ValidationError, match="frozen"):
        message.regenerate = False  # pyright: ignore[reportAttributeAccessIssue]


def test_neither_errors_nor_reprs_show_what_is_private() -> None:
    with pytest.raises(ValidationError) as caught:
        InvoicePdf.model_validate(sample("invoice.pdf", metadata={"a": ["s3cret"]}))
    assert "s3cret" not in str(caught.value)
    private = {
        "payment.webhook": {"signature": "s3cret", "rawPayload": {"payer": "s3cret"}},
        "whatsapp.outbound": {"templateParams": ["s3cret"]},
        "whatsapp.inbound": {"content": "s3cret", "senderPhone": "s3cret"},
        "voice.transcription": {"audioUrl": "https://a.example/s3cret"},
        "voice.extraction": {"transcription": "s3cret"},
        "analytics": {"eventData": {"mail": "s3cret"}},
    }
    for queue, changes in private.items():
        message = MESSAGES[queue].model_validate(sample(queue, **changes))
        assert "s3cret" not in repr(message)
        assert "s3cret" in message.model_dump_json()
