"""Sends messages to customers, each once as far as WhatsApp can tell.

WhatsApp knows no idempotency. So a message is written down before it is sent, and its id travels
with it: statuses name it.

    sending   an attempt is under way, or has ended and nobody knows how
    unknown   WhatsApp does not have it, as far as is known: the next attempt sends it

An attempt that finds a message `sending` waits for a status of it for `_STATUS_WAIT`: the answer
was lost, or the worker was. What WhatsApp has refused for now it does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from uuid import NAMESPACE_OID, UUID, uuid5

import httpx

from apps.campotech.invoicing.invoice import Invoice
from apps.campotech.invoicing.money import pesos
from apps.campotech.messages import WhatsAppOutbound
from apps.providers import whatsapp
from apps.providers.whatsapp import (
    Client,
    Media,
    Permanent,
    RateLimited,
    Retryable,
    Settings,
    Template,
    Text,
)
from apps.providers.whatsapp.outgoing import MediaKind
from faena import Discard, Job, Snooze, Upstream, UpstreamUnavailable
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System

_OLDEST: Final = timedelta(days=1)
"""A message that could not be sent for a day says nothing any more."""
_STATUS_WAIT: Final = timedelta(seconds=30)
"""How long a status may take; the network does not follow the pace."""
_NUMBER: Final = "SELECT phone_number_id FROM campotech.organizations WHERE id = %s"
_CONVERSATION: Final = """
    INSERT INTO campotech.conversations (id, organization_id, phone, customer_id)
    VALUES (gen_random_uuid(), %(org)s, %(phone)s, (
        SELECT id FROM campotech.customers WHERE id = %(customer)s AND organization_id = %(org)s))
    ON CONFLICT (organization_id, phone) DO UPDATE SET updated_at = now()
    RETURNING id
"""
_BEGIN: Final = """
    INSERT INTO campotech.whatsapp_messages
        (id, organization_id, conversation_id, direction, kind, content, status, created_at)
    VALUES (%(id)s, %(org)s, %(conversation)s, 'outbound', %(kind)s, %(content)s, 'sending', %(at)s)
    ON CONFLICT (id, created_at) DO NOTHING
"""
_KNOWN: Final = """
    SELECT status, wa_message_id FROM campotech.whatsapp_messages
    WHERE id = %(id)s AND created_at = %(at)s
"""
_END: Final = """
    UPDATE campotech.whatsapp_messages
    SET status = %(status)s, wa_message_id = coalesce(%(wa)s, wa_message_id)
    WHERE id = %(id)s AND created_at = %(at)s AND status IN ('sending', 'unknown')
"""
_TURN: Final = """
    UPDATE campotech.whatsapp_messages SET status = %(now)s
    WHERE id = %(id)s AND created_at = %(at)s AND status = %(old)s
"""
_ANNOUNCED: Final = """
    UPDATE campotech.invoices SET announced_at = now() WHERE id = %s AND announced_at IS NULL
"""
_OPEN: Final = ("sending", "unknown")
_NOT_SENT: Final = (Retryable, RateLimited, Snooze, UpstreamUnavailable)
"""Snooze: the recipient gets too many messages."""
_KINDS: Final[dict[str, MediaKind]] = {
    ".jpg": "image",
    ".jpeg": "image",
    ".png": "image",
    ".mp4": "video",
    ".3gp": "video",
}
"""What WhatsApp shows as it is; all else is a document."""
_MOST_NAME: Final = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message is stored: partitions are found by the instant."""

    id: UUID
    at: datetime

    @property
    def callback_data(self) -> str:
        """What WhatsApp says with each status."""
        return f"{self.id}.{int(self.at.timestamp() * 1e6)}"

    def values(self) -> dict[str, Any]:
        """For a statement."""
        return {"id": self.id, "at": self.at}

    @staticmethod
    def read(text: str) -> Place | None:
        """From a status; None if it is not one of ours."""
        name, _, instant = text.partition(".")
        try:
            at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(instant))
            return Place(UUID(name), at)
        except (ValueError, OverflowError):
            return None


class Sender:
    """The task `send` of the queue `whatsapp.outbound`."""

    def __init__(
        self, system: System, settings: Settings, http: httpx.AsyncClient, upstream: Upstream
    ) -> None:
        self._pg, self._settings, self._http = system.pg, settings, http
        self._upstream = upstream
        queue = system.queues["whatsapp.outbound"]
        self.send = queue.task(name="send", upstreams=[upstream])(self._send)

    async def _send(self, message: WhatsAppOutbound, job: Job) -> str:
        """The id that WhatsApp has given the message."""
        if datetime.now(UTC) - message.created_at > _OLDEST:
            raise Discard("a message must be sent within a day")
        place = Place(uuid5(NAMESPACE_OID, f"{job.queue}/{job.origin}"), message.created_at)
        client, known = await self._begin(message, place)
        if known is not None:
            return known
        try:
            async with self._upstream.call():
                with whatsapp.waiting_for_recipient():
                    sent = await client.send(
                        message.recipient_phone,
                        _content(message),
                        callback_data=place.callback_data,
                    )
        except Permanent:
            await self._end(place, "failed")
            raise
        except _NOT_SENT:
            await self._end(place, "unknown")
            raise
        await self._end(place, "sent", sent.message_id)
        return sent.message_id

    async def announce_invoice(self, connection: Connection, one: Invoice) -> str:
        """Have a customer told that their invoice is there, once; how."""
        if not (await connection.execute(_ANNOUNCED, [one.id])).rowcount:
            return "known"
        if one.phone is None:
            return "no phone"
        message = WhatsAppOutbound(
            org_id=one.organization_id,
            idempotency_key=f"invoice-ready-{one.id}",
            created_at=datetime.now(UTC),
            message_type="template",
            recipient_phone=one.phone,
            customer_id=one.customer_id,
            template_name="invoice_ready",
            template_params=[one.receiver, one.document().title, pesos(one.total_cents)],
            invoice_id=one.id,
        )
        await self._pg.outbox.enqueue(
            connection,
            self.send,
            message,
            tenant=str(one.organization_id),
            id=message.idempotency_key,
        )
        return "whatsapp"

    async def _begin(self, message: WhatsAppOutbound, place: Place) -> tuple[Client, str | None]:
        """Write it down; WhatsApp's id of one that was sent before."""
        given: dict[str, Any] = {
            **place.values(),
            "org": message.org_id,
            "kind": message.message_type,
            "content": message.text or message.template_name or message.media_caption,
        }
        async with self._pg.transaction("message") as connection:
            number = await _value(connection, _NUMBER, [message.org_id])
            if number is None:
                raise Discard(f"organisation {message.org_id} must have a number at WhatsApp")
            who = {"phone": message.recipient_phone, "customer": message.customer_id}
            given["conversation"] = await _value(connection, _CONVERSATION, {**given, **who})
            is_new = (await connection.execute(_BEGIN, given)).rowcount == 1
            row = await (await connection.execute(_KNOWN, given)).fetchone()
            status, known = row or ("sending", None)
            was_cut_off = status == "sending" and not is_new
            if was_cut_off or status == "unknown":
                now = {**given, "now": "unknown" if was_cut_off else "sending", "old": status}
                await connection.execute(_TURN, now)
        if was_cut_off:
            raise Snooze(_STATUS_WAIT, reason="a status may tell that WhatsApp has the message")
        own = replace(self._settings, phone_number_id=number)
        return Client(own, self._http), None if status in _OPEN else str(known or status)

    async def _end(self, place: Place, status: str, wa_message_id: str | None = None) -> None:
        given = {**place.values(), "status": status, "wa": wa_message_id}
        async with self._pg.transaction("message") as connection:
            await connection.execute(_END, given)


def _content(message: WhatsAppOutbound) -> whatsapp.Message:
    if message.message_type == "text":
        return Text(body=message.text or "")
    if message.message_type == "template":
        parameters = tuple(message.template_params)
        return Template(name=message.template_name or "", parameters=parameters)
    link, caption = message.media_url or "", message.media_caption or ""
    name = urlsplit(link).path.rpartition("/")[2]
    kind = _KINDS.get(PurePosixPath(name.lower()).suffix, "document")
    if kind == "document":
        return Media(kind=kind, link=link, caption=caption, filename=name[-_MOST_NAME:])
    return Media(kind=kind, link=link, caption=caption)


async def _value(connection: Connection, query: str, given: list[Any] | dict[str, Any]) -> Any:
    row = await (await connection.execute(query.encode(), given)).fetchone()
    return None if row is None else row[0]
