"""Keys: the same for the same work, different for different work, and valid ids of jobs."""

from __future__ import annotations

from typing import Any

import pytest
from apps.campotech.keys import key_of, notification_key, parse
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from apps.campotech.messages import (
    MESSAGES,
    InvoicePdf,
    Message,
    PaymentWebhook,
    SyncOffline,
    WhatsAppInbound,
    WhatsAppOutbound,
)
from faena import IdempotencyKey, WebhookKey
from faena.errors import ConfigError
from tests._support.search import searching
from tests.apps.campotech.messages.samples import ID, ORG, OTHER_ID, QUEUES, operation, sample
from tests.apps.campotech.messages.strategies import VALID, any_message, names, requests

STAMP = 1_764_583_200  # of the samples' createdAt
LATER = "2025-12-01T10:00:01Z"


def made(queue: str, **changes: Any) -> Message:
    return MESSAGES[queue].model_validate(sample(queue, **changes))


def key(queue: str, **changes: Any) -> str:
    return str(key_of(made(queue, **changes)))


FORMATS = {
    "afip.invoice": f"idem_{ORG}_invoice_{ID}_cae_4",
    "payment.webhook": "webhook_mp_98765_payment",
    "whatsapp.outbound": f"idem_{ORG}_wa_{OTHER_ID}_visit-reminder.248f245d29e7_{STAMP}",
    "whatsapp.inbound": "webhook_wa_wamid.HBgNNTQ5MTEyMzQ1Njc4ORUCABIYFjNFQjA=",
    "voice.transcription": f"idem_{ORG}_voice_request-4711-abc_transcribe",
    "voice.extraction": f"idem_{ORG}_voice_request-4711-abc_extract",
    "job.notification": f"idem_{ORG}_job_request-4711-abc_notify",
    "invoice.pdf": f"idem_{ORG}_pdf_{ID}_v2",
    "sync.offline": f"idem_{ORG}_sync_device-1_c9e2422d0d1e1886dc8cb759b9c70173",
    "reconciliation": f"idem_{ORG}_period_request-4711-abc_reconcile",
    "cleanup": f"idem_{ORG}_data_request-4711-abc_clean",
    "analytics": f"idem_{ORG}_event_request-4711-abc_record",
    "scheduler": f"idem_{ORG}_schedule_request-4711-abc_fire",
}


@pytest.mark.parametrize("queue", QUEUES)
def test_a_key_has_the_form_that_the_specification_gives_it(queue: str) -> None:
    assert key(queue) == FORMATS[queue]


@pytest.mark.parametrize(
    ("queue", "same"),
    [
        ("afip.invoice", {"total": 9, "createdAt": LATER, "idempotencyKey": "another-request-1",
                          "invoiceType": "A", "customerId": ID, "priority": 1}),
        ("payment.webhook", {"webhookId": "2", "receivedAt": LATER, "createdAt": LATER,
                             "rawPayload": {}, "signature": "b", "orgId": ID}),
        ("whatsapp.outbound", {"idempotencyKey": "another-request-1", "metadata": {}, "priority": 1,
                               "createdAt": "2025-12-01T07:00:00.999-03:00"}),
        ("whatsapp.inbound", {"createdAt": LATER, "content": "a", "orgId": ID}),
        ("invoice.pdf", {"createdAt": LATER, "regenerate": False, "sendAfter": True}),
        ("sync.offline", {"createdAt": LATER, "userId": OTHER_ID,
                          "operations": [operation(vectorClock={"server": 0, "device-1": 3},
                                                   clientTimestamp="2025-12-01T07:00:00-03:00")]}),
        ("scheduler", {"createdAt": LATER, "scheduledFor": LATER, "targetId": OTHER_ID}),
    ],
)  # fmt: skip
def test_the_same_work_has_the_same_key(queue: str, same: dict[str, Any]) -> None:
    assert key(queue, **same) == FORMATS[queue]


def outbound(**changes: Any) -> str:
    return key("whatsapp.outbound", **changes)


def text(**changes: Any) -> str:
    own = {"templateName": ..., "templateParams": ..., "messageType": "text", "text": "hola"}
    return outbound(**(own | changes))


def media(**changes: Any) -> str:
    own = {"templateName": ..., "templateParams": ..., "messageType": "media"}
    return outbound(**(own | {"mediaUrl": "https://a", "mediaCaption": "a"} | changes))


@pytest.mark.parametrize(
    "keys",
    [
        [key("afip.invoice"), key("afip.invoice", orgId=ID), key("afip.invoice", puntoVenta=5),
         key("afip.invoice", invoiceId=OTHER_ID)],
        [key("payment.webhook"), key("payment.webhook", eventType="refund"),
         key("payment.webhook", mpPaymentId="1"), key("payment.webhook", mpPaymentId="1_refund"),
         key("payment.webhook", mpPaymentId="1", eventType="refund"),
         key("payment.webhook", mpPaymentId="1_refund", eventType="refund")],
        [outbound(), outbound(orgId=ID), outbound(customerId=ID), outbound(customerId=...),
         outbound(recipientPhone="+541123456789"), outbound(templateName="visit"),
         outbound(templateName="x" * 20), outbound(templateName="x" * 21),
         outbound(templateParams=["Ana"]), outbound(templateParams=["Ana,10:00"]),
         outbound(jobId=...), outbound(invoiceId=...), outbound(createdAt=LATER),
         outbound(templateName="text"), text(), text(text="hola "), text(jobId=...), media(),
         media(mediaUrl="https://b"), media(mediaCaption="b"), media(mediaCaption=...)],
        [key("invoice.pdf"), key("invoice.pdf", version=1), key("invoice.pdf", orgId=ID),
         key("invoice.pdf", invoiceId=OTHER_ID), key("invoice.pdf", version=...),
         key("invoice.pdf", version=..., idempotencyKey="another-request-1")],
        [key("sync.offline"), key("sync.offline", orgId=ID), key("sync.offline", deviceId="d"),
         *(key("sync.offline", operations=[operation(**one)])
           for one in ({"type": "create"}, {"localId": "2"}, {"serverId": ...}, {"data": {}},
                       {"entityType": "photo"}, {"clientTimestamp": LATER}, {"vectorClock": {}},
                       {"vectorClock": ...}, {"data": {"status": "done", "photos": [2, 1]}})),
         key("sync.offline", operations=[operation(), operation()])],
        [key("cleanup"), key("cleanup", orgId=ID), key("cleanup", idempotencyKey="a" * 16)],
    ],
)  # fmt: skip
def test_other_work_has_another_key(keys: list[str]) -> None:
    assert len(set(keys)) == len(keys)


def test_the_first_pdf_needs_no_version() -> None:
    first = key("invoice.pdf", version=..., regenerate=False)
    assert first == f"idem_{ORG}_pdf_{ID}_v1" == key("invoice.pdf", version=1)


def test_a_customer_without_an_id_is_known_by_the_number() -> None:
    assert outbound(customerId=...).startswith(f"idem_{ORG}_wa_+5491123456789_visit-reminder.")


def test_two_notifications_of_a_payment_are_two_jobs_of_one_key() -> None:
    pending, approved = (
        PaymentWebhook.model_validate(sample("payment.webhook", webhookId=name)) for name in "12"
    )
    assert key_of(pending) == key_of(approved)
    assert str(notification_key(pending)).startswith("webhook_mp.notification_")
    assert notification_key(pending) != notification_key(approved)
    for other in ({"orgId": OTHER_ID}, {"mpPaymentId": "another"}):
        elsewhere = PaymentWebhook.model_validate(sample("payment.webhook", webhookId="1", **other))
        assert notification_key(elsewhere) != notification_key(pending)


@given(any_message)
@settings(searching(200))
def test_a_key_is_a_valid_id_that_can_be_parsed(message: Message) -> None:
    text = str(key_of(message))
    assert 16 <= len(text) <= 128 or isinstance(key_of(message), WebhookKey)
    assert text.isprintable()
    assert " " not in text
    assert parse(text) == key_of(message)
    assert key_of(message) == key_of(type(message).model_validate_json(message.model_dump_json()))
    if isinstance(found := parse(text), IdempotencyKey):
        assert found.tenant == str(message.org_id)


LONGEST = [
    made("afip.invoice", puntoVenta=99_999),
    *(made("payment.webhook", mpPaymentId="9" * n, eventType="chargeback") for n in range(95, 130)),
    made("whatsapp.outbound", templateName="x" * 512, createdAt="9999-12-31T23:59:59Z"),
    *(made("whatsapp.inbound", waMessageId="x" * n) for n in (*range(95, 130), 256)),
    made("invoice.pdf", version=...),
    *(made("sync.offline", deviceId=one) for one in ("x" * 48, "_" * 16, "x" * 49, "_" * 17)),
    *(made(queue, idempotencyKey=one) for queue in QUEUES for one in ("x" * 64, "_" * 64)),
]


@pytest.mark.parametrize("message", LONGEST)
def test_the_longest_key_still_is_a_valid_id(message: Message) -> None:
    assert len(str(key_of(message))) <= 128
    assert parse(str(key_of(message))) == key_of(message)


FREE = {
    "payment.webhook": "mpPaymentId",
    "whatsapp.inbound": "waMessageId",
    "sync.offline": "deviceId",
}
"""Fields of keys in which others may write what they like."""


@pytest.mark.parametrize("queue", FREE)
@settings(searching(300))
@given(names, names)
def test_no_two_texts_of_others_are_written_alike(queue: str, one: str, other: str) -> None:
    assume(one != other)
    assert key(queue, **{FREE[queue]: one}) != key(queue, **{FREE[queue]: other})


@settings(searching(300))
@given(requests, requests)
def test_no_two_idempotency_keys_are_written_alike(one: str, other: str) -> None:
    assume(one != other)
    assert key("cleanup", idempotencyKey=one) != key("cleanup", idempotencyKey=other)


@pytest.mark.parametrize("given_text", ["with space", "x" * 200, "~", "\n", "_" * 40])
def test_a_text_that_looks_like_a_digest_is_not_taken_for_one(given_text: str) -> None:
    hashed = str(key_of(made("whatsapp.inbound", waMessageId=given_text + " ")))
    written = hashed.removeprefix("webhook_wa_")
    assert written.startswith("~")
    assert key("whatsapp.inbound", waMessageId=written) != hashed


@pytest.mark.parametrize(
    "text", ["", "idem_a", "idem_a_b_c_d_e", "webhook_mp", "order-4711", "ñ b"]
)
def test_a_string_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text)


@settings(searching(100))
@given(VALID[SyncOffline])
def test_the_parts_of_a_batch_have_keys_of_their_own(batch: SyncOffline) -> None:
    keys = [key_of(part) for part in batch.by_entity()]
    assert len(set(keys)) == len(keys)


@settings(searching(100))
@given(st.data())
def test_a_key_is_made_of_nothing_but_what_it_names(found: st.DataObject) -> None:
    kind = found.draw(st.sampled_from([InvoicePdf, WhatsAppInbound, WhatsAppOutbound]))
    message: Message = found.draw(VALID[kind])
    noise = {"correlation_id": None, "priority": 7, "metadata": {"a": "b"}}
    assert key_of(message.model_copy(update=noise)) == key_of(message)
