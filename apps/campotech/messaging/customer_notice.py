"""Tells a customer something in the transaction that makes it true, by the best way there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from apps.campotech.messages import WhatsAppOutbound
from apps.campotech.messaging import notification_log
from apps.campotech.messaging.delivery import CustomerNotice
from apps.campotech.messaging.notification_log import QUEUED, SENT, Begun, Channel, Note
from apps.campotech.messaging.recipient import channel_of
from apps.campotech.messaging.wording import WORDINGS, on_one_line
from faena.pg import Connection

if TYPE_CHECKING:
    from apps.campotech.system import System


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressee:
    """A customer, and how the organisation can reach them."""

    organization: UUID
    number: str | None
    """The organisation's at WhatsApp."""
    customer: UUID
    phone: str | None
    email: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What is said: one of the wordings, with its facts."""

    id: UUID
    """News with the same id are told once."""
    kind: str
    facts: Mapping[str, str]
    at: datetime
    invoice: UUID | None = None


async def tell_customer(
    system: System, connection: Connection, to: Addressee, news: News
) -> Channel | None:
    """By which channel they are told; None if there is none."""
    channel = channel_of(to.number, to.phone, to.email)
    if channel is None:
        return None
    note = Note(
        id=news.id,
        organization=to.organization,
        recipient=str(to.customer),
        channel=channel,
        kind=news.kind,
    )
    begun = await notification_log.note(connection, note)
    if begun.status == QUEUED:
        await _hand_on(system, connection, to, news, begun)
    return begun.channel


async def _hand_on(
    system: System, connection: Connection, to: Addressee, news: News, begun: Begun
) -> None:
    name, tenant, outbox = f"notice-{begun.id.hex}", str(to.organization), system.pg.outbox
    if begun.channel == "whatsapp":
        sent = _template(to, news)
        await outbox.enqueue(connection, system.sender.send, sent, tenant=tenant, id=name)
        await notification_log.change(connection, begun, SENT)
        return
    delivery = system.delivery
    task = delivery.mail_customer if begun.channel == "email" else delivery.text_customer
    await outbox.enqueue(connection, task, _notice(to, news), tenant=tenant, id=name)


def _template(to: Addressee, news: News) -> WhatsAppOutbound:
    wording = WORDINGS[news.kind]
    return WhatsAppOutbound(
        org_id=to.organization,
        idempotency_key=f"notice-{news.id.hex}",
        created_at=news.at,
        message_type="template",
        recipient_phone=to.phone or "",
        customer_id=to.customer,
        template_name=wording.template,
        template_params=[on_one_line(news.facts[each]) for each in wording.parameters],
        invoice_id=news.invoice,
    )


def _notice(to: Addressee, news: News) -> CustomerNotice:
    wording = WORDINGS[news.kind]
    facts = {name: on_one_line(one) for name, one in news.facts.items()}
    return CustomerNotice(
        organization_id=to.organization,
        notification_id=news.id,
        customer_id=to.customer,
        kind=news.kind,
        title=wording.title,
        body=wording.text.format(**facts),
    )
