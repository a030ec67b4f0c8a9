"""What providers tell. The signature is checked on the raw bytes; the work is done in jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.responses import PlainTextResponse

from apps.campotech.api.caller import system_of
from apps.campotech.api.problem import Problem, answers
from apps.campotech.keys import notification_key
from apps.campotech.messages import PaymentWebhook, WhatsAppInbound
from apps.campotech.messaging.status import record_status
from apps.providers import mercadopago, whatsapp
from faena.pg import Connection

router: Final = APIRouter(
    prefix="/webhooks", tags=["webhooks"], responses=answers(400, 401, 413, 422, 503)
)
_MOST_BYTES: Final = 4 << 20
_EVENTS: Final = {"payment": "payment", "topic_chargebacks_wh": "chargeback"}
_KNOWN: Final = "SELECT 1 FROM campotech.organizations WHERE id = %s"
_TAKE: Final = """
    INSERT INTO campotech.payment_events (id, organization_id, kind, resource_id)
    VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
_WHOSE: Final = "SELECT id FROM campotech.organizations WHERE phone_number_id = %s"


@router.post("/mercadopago/{organization}", responses=answers(404))
async def take_payment(request: Request, organization: UUID) -> dict[str, str]:
    """A payment or a chargeback has changed; the address is the one that our links name."""
    system, body = system_of(request), await _body(request)
    try:
        told = mercadopago.read_notification(
            system.settings.mercadopago,
            query=request.query_params,
            headers=request.headers,
            body=body,
        )
    except mercadopago.WebhookRefused as error:
        raise Problem(401, str(error)) from None
    event = _EVENTS.get(told.type)
    if event is None:
        return {"status": "ignored"}
    async with system.pg.transaction("webhook") as connection:
        if await (await connection.execute(_KNOWN, [organization])).fetchone() is None:
            raise Problem(404, "no such organisation")
        given = [told.id, organization, event, told.data_id]
        if (await connection.execute(_TAKE, given)).rowcount == 0:
            return {"status": "known"}
        message = _payment(organization, event, told)
        await system.pg.outbox.enqueue(
            connection,
            system.payments.take,
            message,
            tenant=str(organization),
            id=str(notification_key(message)),
        )
    return {"status": "accepted"}


def _payment(organization: UUID, event: str, told: mercadopago.Notification) -> PaymentWebhook:
    now = datetime.now(UTC)
    return PaymentWebhook.model_validate(
        {
            "org_id": organization,
            "idempotency_key": f"mp-notification-{told.id}"[:64],
            "created_at": now,
            "webhook_id": told.id,
            "event_type": event,
            "mp_payment_id": told.data_id,
            "raw_payload": {"type": told.type, "action": told.action},
            "received_at": now,
            "signature": "checked",
        }
    )


@router.get("/whatsapp", response_class=PlainTextResponse, responses=answers(403))
async def confirm_whatsapp(request: Request) -> PlainTextResponse:
    """Meta asks whether the address is ours."""
    settings = system_of(request).settings.whatsapp
    try:
        return PlainTextResponse(whatsapp.answer_challenge(settings, request.query_params))
    except whatsapp.WebhookRefused as error:
        raise Problem(403, str(error)) from None


@router.post("/whatsapp")
async def take_whatsapp(request: Request) -> dict[str, int]:
    """Messages of customers, and how far ours have come."""
    system, body = system_of(request), await _body(request)
    try:
        batch = whatsapp.read_webhook(system.settings.whatsapp, headers=request.headers, body=body)
    except whatsapp.WebhookRefused as error:
        raise Problem(401, str(error)) from None
    async with system.pg.transaction("webhook") as connection:
        for status in batch.statuses:
            await record_status(connection, status)
        found = [await _inbound(connection, one) for one in batch.messages]
        messages = [one for one in found if one is not None]
        for message in messages:
            await system.inbound.take(connection, message)
    return {"messages": len(messages), "statuses": len(batch.statuses)}


async def _inbound(connection: Connection, one: whatsapp.Inbound) -> WhatsAppInbound | None:
    """As a message of the queue; None if nobody here has the number that it was sent to.

    The same bytes however often it is told: they are the same job.
    """
    row = await (await connection.execute(_WHOSE, [one.phone_number_id])).fetchone()
    if row is None:
        return None
    given: dict[str, Any] = {
        "org_id": row[0],
        "idempotency_key": f"whatsapp-message-{one.id}"[-64:],
        "created_at": one.at,
        "wa_message_id": one.id,
        "wa_timestamp": one.at,
        "sender_phone": one.sender,
        "is_business_initiated": False,
    }
    return _valid({**given, **_content(one)}) or _valid({**given, "message_type": "document"})


def _valid(given: dict[str, Any]) -> WhatsAppInbound | None:
    """One message that is odd must not hold up the others of its webhook for ever: what cannot be
    passed on is a file that a person looks at, or nothing, if even its id cannot be stored."""
    try:
        return WhatsAppInbound.model_validate(given)
    except ValidationError:
        return None


def _content(one: whatsapp.Inbound) -> dict[str, Any]:
    match one:
        case whatsapp.TextMessage():
            return {"message_type": "text", "content": _storable(one.text)}
        case whatsapp.ReplyMessage():
            return {"message_type": "interactive", "content": _storable(one.title)}
        case whatsapp.MediaMessage():
            kind = {"voice": "voice", "audio": "voice", "image": "image"}.get(one.kind, "document")
            media = {"media_id": one.media_id, "media_mime_type": one.mime_type}
            return {"message_type": kind, "content": _storable(one.caption) or None, **media}
        case _:
            return {"message_type": "document"}


def _storable(text: str) -> str:
    """PostgreSQL has no NUL."""
    return text.replace("\0", "")


async def _body(request: Request) -> bytes:
    """All of it, unless it is larger than any webhook."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise Problem(413, f"a webhook must have at most {_MOST_BYTES} bytes")
    return bytes(body)
