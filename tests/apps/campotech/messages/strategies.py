"""Valid messages of every queue, as Hypothesis finds them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from apps.campotech.messages import (
    MESSAGES,
    AfipInvoice,
    Analytics,
    Cleanup,
    InvoicePdf,
    JobNotification,
    Message,
    Operation,
    PaymentWebhook,
    Reconciliation,
    SchedulerMessage,
    SyncOffline,
    VoiceExtraction,
    VoiceTranscription,
    WhatsAppInbound,
    WhatsAppOutbound,
)

_text = st.text(st.characters(codec="utf-8"), max_size=30)
_keyish = st.text(st.sampled_from("_%~. a5F\n:é-"), min_size=1, max_size=40)
names: Final = st.one_of(_keyish, _text.filter(bool)).map(lambda text: text.replace("\0", "0"))
"""Texts, among them many with the separators of keys; none that a database cannot store."""

requests: Final = st.one_of(
    st.text(st.sampled_from("_%~ a5F"), min_size=16, max_size=64),
    st.text(st.characters(codec="utf-8"), min_size=16, max_size=64),
)
instants: Final = st.datetimes(
    datetime(1970, 1, 3), datetime(9999, 12, 29), timezones=st.timezones() | st.just(UTC)  # noqa: DTZ001
)  # fmt: skip
ids: Final = st.uuids()
pesos: Final = st.integers(1, 10**15 - 1).map(lambda centavos: Decimal(centavos) / 100)
phones: Final = st.from_regex(r"\+54[0-9]{10,11}", fullmatch=True)
urls: Final = st.sampled_from(["http://a", "https://a.example:1/b?c=%20#d", "https://[::1]/ñ"])
data: Final = st.dictionaries(
    _text,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | _text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)  # fmt: skip


def _built(kind: type[Any], **fields: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.fixed_dictionaries(fields).map(kind.model_validate)


def _either(kind: type[Any], field: str) -> SearchStrategy[str]:
    return st.sampled_from(get_args(kind.model_fields[field].annotation))


def _message(kind: type[Message], **fields: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return _built(
        kind,
        org_id=ids,
        idempotency_key=requests,
        correlation_id=st.none() | ids,
        created_at=instants,
        priority=st.none() | st.integers(1, 100),
        metadata=st.dictionaries(_text, _text, max_size=2),
        **fields,
    )


def _outbound(**fields: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return _message(
        WhatsAppOutbound,
        recipient_phone=phones,
        customer_id=st.none() | ids,
        job_id=st.none() | ids,
        invoice_id=st.none() | ids,
        **fields,
    )


operations: Final = _built(
    Operation,
    type=_either(Operation, "type"),
    local_id=names,
    server_id=st.none() | ids,
    entity_type=_either(Operation, "entity_type"),
    data=data,
    client_timestamp=instants,
    vector_clock=st.none() | st.dictionaries(names, st.integers(0, 10**20), max_size=3),
)
_templates = st.from_regex("[a-z0-9_]{1,60}", fullmatch=True)
_OUTBOUND: Final = st.one_of(
    _outbound(message_type=st.just("text"), text=_text.filter(str.strip)),
    _outbound(
        message_type=st.just("template"),
        template_name=_templates,
        template_params=st.lists(_text, max_size=3),
    ),
    _outbound(
        message_type=st.just("media"), media_url=urls, media_caption=st.none() | _text
    ),
)  # fmt: skip
_days = st.lists(st.dates(), min_size=2, max_size=2).map(sorted)

VALID: Final[dict[type[Message], SearchStrategy[Any]]] = {
    AfipInvoice: _message(
        AfipInvoice,
        invoice_id=ids,
        invoice_type=_either(AfipInvoice, "invoice_type"),
        punto_venta=st.integers(1, 99_999),
        customer_id=ids,
        total=pesos,
    ),
    PaymentWebhook: _message(
        PaymentWebhook,
        webhook_id=names,
        event_type=_either(PaymentWebhook, "event_type"),
        mp_payment_id=names,
        raw_payload=data,
        received_at=instants,
        signature=names,
    ),
    WhatsAppOutbound: _OUTBOUND,
    WhatsAppInbound: _message(
        WhatsAppInbound,
        wa_message_id=names,
        wa_timestamp=instants,
        sender_phone=names,
        message_type=_either(WhatsAppInbound, "message_type"),
        content=st.none() | _text,
        media_id=st.none() | names,
        media_mime_type=st.none() | names,
        is_business_initiated=st.booleans(),
    ),
    VoiceTranscription: _message(
        VoiceTranscription,
        message_id=ids,
        audio_url=urls,
        audio_duration=st.integers(min_value=1),
        audio_mime_type=names,
        language=names,
        customer_id=st.none() | ids,
    ),
    VoiceExtraction: _message(
        VoiceExtraction,
        transcript_id=ids,
        transcription=_text,
        confidence=st.floats(0, 1),
        message_id=ids,
        customer_id=st.none() | ids,
    ),
    JobNotification: _message(
        JobNotification,
        job_id=ids,
        notification_type=_either(JobNotification, "notification_type"),
        customer_id=ids,
        technician_id=st.none() | ids,
        scheduled_time=instants,
    ),
    InvoicePdf: _message(
        InvoicePdf,
        invoice_id=ids,
        regenerate=st.booleans(),
        send_after=st.booleans(),
        version=st.none() | st.integers(1, 9_999),
    ),
    SyncOffline: _message(
        SyncOffline,
        user_id=ids,
        device_id=names,
        operations=st.lists(operations, min_size=1, max_size=4),
    ),
    Reconciliation: _days.flatmap(
        lambda days: _message(
            Reconciliation,
            reconciliation_type=_either(Reconciliation, "reconciliation_type"),
            date_from=st.just(days[0]),
            date_to=st.just(days[1]),
            full_reconciliation=st.booleans(),
        )
    ),
    Cleanup: _message(
        Cleanup,
        cleanup_type=_either(Cleanup, "cleanup_type"),
        older_than=st.none() | instants,
        dry_run=st.booleans(),
    ),
    Analytics: _message(
        Analytics,
        event_type=names,
        event_data=data,
        user_id=st.none() | ids,
        session_id=st.none() | names,
        timestamp=instants,
    ),
    SchedulerMessage: _message(
        SchedulerMessage,
        scheduled_job_type=_either(SchedulerMessage, "scheduled_job_type"),
        target_id=st.none() | ids,
        scheduled_for=instants,
    ),
}

any_message: Final = st.one_of([VALID[kind] for kind in MESSAGES.values()])
